"""Small pictures inside tables: intervals and bars, as SVG that follows the colours of the page.

They carry numbers only, never texts, and stand beside the numbers they show: no reader depends on them.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from whyscore.types import Estimate

WIDTH = 100


class Scale(NamedTuple):
    """The range of values that a column of pictures shows."""

    low: float
    high: float

    def place(self, value: float) -> float:
        """Return where a value lies, 2 .. 98 of a hundred: marks keep off the edges."""
        if not math.isfinite(value) or self.high <= self.low:
            return WIDTH / 2
        share = (value - self.low) / (self.high - self.low)
        return round(2 + 96 * min(1.0, max(0.0, share)), 2)


def scale(estimates: Sequence[Estimate]) -> Scale:
    """Return the range that holds all values with their intervals."""
    ends = [end for one in estimates for end in (one.value, one.low, one.high) if end is not None]
    known = [end for end in ends if math.isfinite(end)]
    return Scale(min(known), max(known)) if known else Scale(0.0, 1.0)


def interval(one: Estimate, on: Scale, chance: float | None = None) -> Markup:
    """Return a dot with its interval as a line, and a small upright line where chance is."""
    if not math.isfinite(one.value):
        return Markup("")
    line = ""
    if one.low is not None and one.high is not None:
        line = f'<line class="reach" x1="{on.place(one.low)}" x2="{on.place(one.high)}" y1="6" y2="6"/>'
    if chance is not None:
        line += f'<line class="chance" x1="{on.place(chance)}" x2="{on.place(chance)}" y1="0" y2="12"/>'
    dot = f'<circle class="point" cx="{on.place(one.value)}" cy="6" r="3.2"/>'
    return _svg(f'<line class="axis" x1="0" x2="100" y1="6" y2="6"/>{line}{dot}')


def bars(value: float, low: float | None, high: float | None, on: Scale) -> Markup:
    """Return a bar from zero with its interval as a whisker."""
    zero, end = on.place(0.0), on.place(value)
    start, width = min(zero, end), abs(end - zero)
    kind = "bar" if value >= 0 else "bar turned"
    whisker = ""
    if low is not None and high is not None:
        whisker = f'<line class="reach" x1="{on.place(low)}" x2="{on.place(high)}" y1="6" y2="6"/>'
    return _svg(f'<rect class="{kind}" x="{start}" y="2" width="{round(width, 2)}" height="8" rx="1"/>{whisker}')


def dots(under: float, over: float, on: Scale) -> Markup:
    """Return two bars from the middle: to the left what is missing, to the right what is too much."""
    left, right = (48 * min(1.0, part / on.high) for part in (under, over))
    return _svg(
        f'<rect class="under" x="{round(50 - left, 2)}" y="2" width="{round(left, 2)}" height="8" rx="1"/>'
        f'<rect class="over" x="50" y="2" width="{round(right, 2)}" height="8" rx="1"/>'
        '<line class="axis" x1="50" x2="50" y1="0" y2="12"/>'
    )


def stacked(parts: Sequence[float], on: Scale) -> Markup:
    """Return parts of a whole in one bar, one after the other; each has its own shade and a gap to the next."""
    found, start = [], 0.0
    for number, part in enumerate(parts):
        left, right = on.place(start), on.place(start + max(0.0, part))
        if right > left:
            width = round(max(0.3, right - left - 0.6), 2)
            found.append(f'<rect class="part part-{number}" x="{left}" y="1" width="{width}" height="10"/>')
        start += max(0.0, part)
    return _svg("".join(found))


def _svg(inner: str) -> Markup:
    # Numbers of our own making: there is nothing in it to escape.
    return Markup(f'<svg class="mini" viewBox="0 0 {WIDTH} 12" aria-hidden="true" focusable="false">{inner}</svg>')  # noqa: S704
