"""A report as one page that opens from disk, without network, in five years too.

1. The tables, bars and sentences are HTML already; only the segment browser needs scripts. Small pictures inside tables
   (intervals and bars) are SVG that follows the colours of the page; they carry numbers only, and stand beside them.
2. The segments are JSON in a data block. Characters that could end the block or a line are escaped; scripts set texts
   as text only, never as HTML.
3. A content policy allows exactly the styles and scripts in the page, by their digests: nothing else runs, nothing is
   fetched, even if a text found a way in.
"""

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterable, Sequence
from functools import cache, partial
from importlib import resources
from typing import NamedTuple

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from whyscore.report.model import Report, TrendPoint, feature_name, p_value
from whyscore.report.verdict import find_test
from whyscore.text.files import finite
from whyscore.types import Estimate, FeatureShare
from whyscore.version import __version__

WIDTH = 100
_NAME = 16
"""Characters of a name in a chart."""


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

    def beyond(self, value: float | None) -> bool:
        """Return whether a value lies outside of what is shown."""
        return value is not None and math.isfinite(value) and not self.low <= value <= self.high


def scale(estimates: Sequence[Estimate]) -> Scale:
    """Return the range that holds all values with their intervals."""
    ends = [end for estimate in estimates for end in (estimate.value, estimate.low, estimate.high) if end is not None]
    finite = [end for end in ends if math.isfinite(end)]
    return Scale(min(finite), max(finite)) if finite else Scale(0.0, 1.0)


def interval(estimate: Estimate, on: Scale, chance: float | None = None) -> Markup:
    """Return a dot with its interval as a line, and a small upright line where chance is."""
    if not math.isfinite(estimate.value):
        return Markup("")
    line = ""
    if estimate.low is not None and estimate.high is not None:
        line = f'<line class="reach" x1="{on.place(estimate.low)}" x2="{on.place(estimate.high)}" y1="6" y2="6"/>'
    if chance is not None:
        line += f'<line class="chance" x1="{on.place(chance)}" x2="{on.place(chance)}" y1="0" y2="12"/>'
    dot = f'<circle class="point" cx="{on.place(estimate.value)}" cy="6" r="3.2"/>'
    return _svg(f'<line class="axis" x1="0" x2="100" y1="6" y2="6"/>{line}{dot}')


def bars(value: float, low: float | None, high: float | None, on: Scale) -> Markup:
    """Return a bar from zero with its interval as a whisker."""
    zero, end = on.place(0.0), on.place(value)
    start, width = min(zero, end), abs(end - zero)
    kind = "bar" if value >= 0 else "bar turned"
    whisker = ""
    if low is not None and high is not None:
        whisker = f'<line class="reach" x1="{on.place(low)}" x2="{on.place(high)}" y1="6" y2="6"/>'
    cut = "".join(_cut(end, on) for end in dict.fromkeys((value, low, high)) if end is not None and on.beyond(end))
    line = f'<line class="axis" x1="{zero}" x2="{zero}" y1="0" y2="12"/>'
    bar = f'<rect class="{kind}" x="{start}" y="2" width="{round(width, 2)}" height="8" rx="1"/>'
    return _svg(f"{line}{bar}{whisker}{cut}")


def _cut(value: float, on: Scale) -> str:
    """Return the mark of what goes on beyond the edge: a gap in the bar and an arrow, coloured as the bar there."""
    right = value > on.high
    base, tip = (95, 101) if right else (5, -1)
    gap = f'<rect class="gap-mark" x="{86 if right else 11}" y="0" width="3" height="12"/>'
    return f'{gap}<path class="cut{"" if right else " turned"}" d="M{base} 1 L{tip} 6 L{base} 11 Z"/>'


_ROOM = 30
"""The width of two names of ticks, in parts of a hundred of the axis."""


def axis(on: Scale) -> Markup:
    """Return the axis of a column of bars of shares: its ends and zero, in percent."""
    ends = sorted({on.low, 0.0, on.high})
    ticks = "".join(f'<line class="tick" x1="{on.place(end)}" x2="{on.place(end)}" y1="9" y2="12"/>' for end in ends)
    # Zero is named always, an end only where its name has room beside that of zero.
    named = [end for end in ends if end == 0.0 or abs(on.place(end) - on.place(0.0)) >= _ROOM]
    texts = "".join(
        f'<text x="{on.place(end)}" y="7" text-anchor="{_anchor(end, on)}">{100 * end:.0f} %</text>' for end in named
    )
    return _svg(f'<line class="axis" x1="2" x2="98" y1="12" y2="12"/>{ticks}{texts}')


def _anchor(value: float, on: Scale) -> str:
    return "start" if value == on.low else "end" if value == on.high else "middle"


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
    rectangles, start = [], 0.0
    for number, part in enumerate(parts):
        left, right = on.place(start), on.place(start + max(0.0, part))
        if right > left:
            width = round(max(0.3, right - left - 0.6), 2)
            rectangles.append(f'<rect class="part part-{number}" x="{left}" y="1" width="{width}" height="10"/>')
        start += max(0.0, part)
    return _svg("".join(rectangles))


def trend_chart(points: Sequence[TrendPoint]) -> Markup:
    """Return the scores of systems over runs as lines with confidence intervals; names are escaped."""
    runs = list(dict.fromkeys(point.run for point in points))
    systems = list(dict.fromkeys(point.system for point in points))
    on = scale([point.score for point in points])
    across = {run: 60 + 440 * k / max(1, len(runs) - 1) for k, run in enumerate(runs)}
    step = -(-len(runs) // 8)
    parts = [_trend_label(f"{end:.4g}", 52, 190 - 1.7 * on.place(end), "end") for end in (on.low, on.high)]
    parts += [_trend_label(_short(run), across[run], 215, "middle") for run in runs[::step]]
    for number, system in enumerate(systems):
        series = [point for point in points if point.system == system and math.isfinite(point.score.value)]
        places = [(across[point.run], 190 - 1.7 * on.place(point.score.value)) for point in series]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<g class="trend-{number % 4}"><polyline points="{line}"/>')
        for (x, y), point in zip(places, series, strict=True):
            if point.score.low is not None and point.score.high is not None:
                low, high = (190 - 1.7 * on.place(end) for end in (point.score.low, point.score.high))
                parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>')
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>')
        parts.append("</g>")
        if places:
            parts.append(_trend_label(_short(system), places[-1][0] + 10, places[-1][1] + 4, "start"))
    # Numbers of our own making and escaped names.
    return Markup(f'<svg class="trend" viewBox="0 0 640 225" aria-hidden="true">{"".join(parts)}</svg>')  # noqa: S704


def _short(name: str) -> str:
    return name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"


def _trend_label(text: str, x: float, y: float, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(inner: str) -> Markup:
    # Numbers of our own making: there is nothing in it to escape.
    return Markup(f'<svg class="mini" viewBox="0 0 {WIDTH} 12" aria-hidden="true" focusable="false">{inner}</svg>')  # noqa: S704


SCRIPTS = ("data.js", "words.js", "list.js", "segment.js", "notes.js", "pictures.js", "page.js")
STYLES = ("page.css",)
_FLAGS = {"few": "few segments", "negative": "below 0", "above-one": "above 100 %"}
_MINUS = re.compile(r"(?<=[ (\[])-(?=\d)")
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def html(report: Report, home: str | None = None) -> str:
    """Return the whole page; where a server shows it, `home` is the address of the list of runs."""
    style, script = read_static(STYLES), read_static(SCRIPTS)
    page = environment().get_template("report.html")
    return page.render(
        report=report,
        home=home,
        style=Markup(style),  # noqa: S704 - our own file
        script=Markup(script),  # noqa: S704 - our own file
        policy=policy(style, script),
        data=Markup(escape_json(_data(report))),  # noqa: S704 - escaped for its place
        version=__version__,
        share_scale=_shares(report),
        count_scale=_counts(report),
        digits_of={metric.name: digits for metric, digits in zip(report.metrics, report.digits, strict=True)},
    )


def _data(report: Report) -> dict[str, object]:
    """Return what the scripts of the page read."""
    matched = [match.metric for match in report.matches]
    return dict(report.explorer) | {"pair": list(report.pair or ()), "changed": report.changed, "matched": matched}


def escape_json(value: object) -> str:
    r"""Return JSON that can stand in a script element: nothing in it ends the element or starts another.

    >>> escape_json({"text": "</script>"})
    '{"text":"\\u003c/script\\u003e"}'
    """
    text = _json(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair has no UTF-8 form; escaped, it reads back as it was
        text = _json(value, ensure_ascii=True)
    for character, escaped in _ESCAPES.items():
        text = text.replace(character, escaped)
    return text


def _json(value: object, *, ensure_ascii: bool) -> str:
    dumps = partial(json.dumps, ensure_ascii=ensure_ascii, allow_nan=False, separators=(",", ":"))
    try:
        return dumps(value)
    except (ValueError, TypeError):  # a number that is not finite, or not Python's own
        return dumps(finite(value))


def policy(style: str, script: str) -> str:
    """Return the content policy for a page with this style and script, and nothing else."""
    return (
        "default-src 'none'; "
        f"script-src 'sha256-{_digest(script)}'; style-src 'sha256-{_digest(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def environment() -> Environment:
    """Return the templates, with every value escaped."""
    templates = Environment(
        loader=FunctionLoader(_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals.update(
        interval=interval,
        axis=axis,
        bars=bars,
        dots=dots,
        stacked=stacked,
        trend_chart=trend_chart,
        scale=scale,
        pair_tested=find_test,
        unit_scale=Scale(0.0, 1.0),
    )
    templates.filters["p"] = p_value
    templates.filters["feature_name"] = feature_name
    templates.filters["flag"] = lambda flag: _FLAGS.get(flag, flag)
    templates.filters["minus"] = lambda text: _MINUS.sub("−", text)
    templates.filters["grouped"] = _group_rows
    templates.filters["by_frequency"] = _by_frequency
    templates.filters["trusted"] = Markup  # pictures that were cleaned
    return templates


@cache
def read_static(names: tuple[str, ...]) -> str:
    """Return static files as one."""
    folder = resources.files("whyscore.report") / "static"
    return "\n".join((folder / name).read_text("utf-8") for name in names)


def _template(name: str) -> str:
    return (resources.files("whyscore.report") / "templates" / name).read_text("utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _group_rows(rows: Iterable[object], attribute: str) -> list[tuple[object, list[object]]]:
    """Return rows with the same value of an attribute together, in the order in which the values first occur."""
    groups: dict[object, list[object]] = {}
    for row in rows:
        groups.setdefault(getattr(row, attribute), []).append(row)
    return list(groups.items())


def _by_frequency(groups: Sequence[tuple[str, list[FeatureShare]]]) -> tuple[list[object], list[object]]:
    """Return the features that some system has in enough segments, and the others; all as common where none is."""
    rare = [(feature, rows) for feature, rows in groups if all("few" in row.flags or row.share is None for row in rows)]
    if len(rare) == len(groups):
        return list(groups), []
    return [group for group in groups if group not in rare], list(rare)


def _counts(report: Report) -> Scale:
    """Return the range of too few and too many, for all features."""
    ends = [report.rate(row, kind) or 0.0 for row in report.features for kind in ("under", "over")]
    return Scale(0.0, max([0.1, *ends]))


def _shares(report: Report) -> Scale:
    """Return the range of all features: from nothing lost, or less, to the largest share.

    Features of few segments lie anywhere; they must not press the others together.
    """
    every = [row for row in report.features if row.share is not None]
    shares = [row for row in every if "few" not in row.flags] or every
    ends = [end for row in shares for end in (row.share, row.low, row.high) if end is not None]
    return Scale(min([0.0, *ends]), max([0.1, *ends]))
