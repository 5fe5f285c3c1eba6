"""Whatever a notebook cell ends with fits into a hundred lines, however many segments there are."""

from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

import whyscore as ws

LINES = 100
BLOCKS = ("tr", "p", "div", "li", "br", "h1", "h2", "h3", "caption")


class Lines(HTMLParser):
    """Counts the elements that start a line."""

    count = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        del attrs
        self.count += tag in BLOCKS


RESULTS: dict[str, Callable[[ws.Dataset], object]] = {
    "data": lambda data: data,
    "scores": lambda data: ws.score(data, "chrf"),
    "systems": lambda data: ws.score_systems(data, ["chrf"], draws=20),
    "explanations": lambda data: ws.explain(data, "token_f1", "erasure"),
    "explanation": lambda data: ws.explain(data, "token_f1", "erasure")[0],
    "comparison": lambda data: ws.compare(data, ["chrf", "token_f1"], draws=50),
    "decomposition": lambda data: ws.decompose(data, "bleu", draws=0),
    "boost": lambda data: ws.boost(data, "token_f1", p=1.0, w=0.6),
    "calibration": lambda data: ws.calibrate(data, "token_f1", "erasure", human="mqm", grid="coarse", resamples=20),
    "agreement": lambda data: ws.metaevaluate(data, ws.score(data, "chrf"), human="mqm", level="segment"),
}


def shown_lines(result: object) -> int:
    """Return the lines of what a notebook shows: HTML where there is some, else the text."""
    page = getattr(result, "_repr_html_", None)
    if page is None:
        return len(repr(result).splitlines())
    counter = Lines()
    counter.feed(page())
    return counter.count


@pytest.mark.parametrize("name", RESULTS)
def test_a_cell_shows_at_most_a_hundred_lines(name: str) -> None:
    result = RESULTS[name](ws.sample())
    assert shown_lines(result) <= LINES
    assert len(repr(result).splitlines()) <= LINES


def test_runs_and_reports_fit_too(tmp_path: Path) -> None:
    run = ws.evaluate(ws.sample(), ["token_f1"], output=tmp_path / "run", draws=20, budget=2, tagger=None)
    for result in (run, ws.build_report(run)):
        assert shown_lines(result) <= LINES
        assert len(repr(result).splitlines()) <= LINES
