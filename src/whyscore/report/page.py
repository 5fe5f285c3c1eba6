"""A report as one page that opens from disk, without network, in five years too.

1. The tables, bars and sentences are HTML already; only the segment browser needs scripts.
2. The segments are JSON in a data block. Characters that could end the block or a line are escaped; scripts set texts
   as text only, never as HTML.
3. A content policy allows exactly the styles and scripts in the page, by their digests: nothing else runs, nothing is
   fetched, even if a text found a way in.
"""

import base64
import hashlib
import json
from collections.abc import Iterable
from functools import cache
from importlib import resources

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from whyscore.data.strict import finite
from whyscore.report import drawing
from whyscore.report.model import Report
from whyscore.report.verdict import p_value
from whyscore.version import __version__

SCRIPTS = ("data.js", "words.js", "list.js", "segment.js", "page.js")
STYLES = ("page.css",)
_FLAGS = {"few": "few segments", "negative": "below zero", "above-one": "above all"}
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def html(report: Report) -> str:
    """Return the whole page."""
    style, script = joined(STYLES), joined(SCRIPTS)
    page = environment().get_template("report.html")
    return page.render(
        report=report,
        style=Markup(style),  # noqa: S704 - our own file
        script=Markup(script),  # noqa: S704 - our own file
        policy=policy(style, script),
        data=Markup(embedded(_data(report))),  # noqa: S704 - escaped for its place
        version=__version__,
        share_scale=_shares(report),
        count_scale=_counts(report),
        digits_of={metric.name: metric.digits for metric in report.metrics},
    )


def _data(report: Report) -> dict[str, object]:
    """Return what the scripts of the page read."""
    matched = [one.metric for one in report.matches]
    return dict(report.explorer) | {"pair": list(report.pair or ()), "changed": report.changed, "matched": matched}


def embedded(value: object) -> str:
    r"""Return JSON that can stand in a script element: nothing in it ends the element or starts another.

    >>> embedded({"text": "</script>"})
    '{"text":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(finite(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair has no UTF-8 form; escaped, it reads back as it was
        text = json.dumps(finite(value), allow_nan=False, separators=(",", ":"))
    for character, escaped in _ESCAPES.items():
        text = text.replace(character, escaped)
    return text


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
    found = Environment(
        loader=FunctionLoader(_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals.update(
        interval=drawing.interval,
        bars=drawing.bars,
        dots=drawing.dots,
        stacked=drawing.stacked,
        scale=drawing.scale,
        unit_scale=drawing.Scale(0.0, 1.0),
    )
    found.filters["p"] = p_value
    found.filters["flag"] = lambda flag: _FLAGS.get(flag, flag)
    found.filters["minus"] = lambda text: text.replace("(-", "(−")
    found.filters["grouped"] = _grouped
    found.filters["trusted"] = Markup  # pictures that were cleaned
    return found


@cache
def joined(names: tuple[str, ...]) -> str:
    """Return static files as one."""
    folder = resources.files("whyscore.report") / "static"
    return "\n".join((folder / name).read_text("utf-8") for name in names)


def _template(name: str) -> str:
    return (resources.files("whyscore.report") / "templates" / name).read_text("utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _grouped(rows: Iterable[object], attribute: str) -> list[tuple[object, list[object]]]:
    """Return rows with the same value of an attribute together, in the order in which the values first occur."""
    found: dict[object, list[object]] = {}
    for row in rows:
        found.setdefault(getattr(row, attribute), []).append(row)
    return list(found.items())


def _counts(report: Report) -> drawing.Scale:
    """Return the range of too few and too many, for all features."""
    return drawing.Scale(0.0, max([0.1, *(end or 0.0 for row in report.features for end in (row.under, row.over))]))


def _shares(report: Report) -> drawing.Scale:
    """Return the range of all features: from nothing lost, or less, to the largest share.

    Features of few segments lie anywhere; they must not press the others together.
    """
    every = [row for row in report.features if row.share is not None]
    known = [row for row in every if "few" not in row.flags] or every
    ends = [end for row in known for end in (row.share, row.low, row.high) if end is not None]
    return drawing.Scale(min([0.0, *ends]), max([0.1, *ends]))
