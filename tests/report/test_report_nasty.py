"""A thousand texts that break programs go through a whole run and every form of its report."""

import json
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

from support.nasty import NASTY
from whyscore.present import present
from whyscore.report import build_report
from whyscore.report.page import html
from whyscore.runs.evaluate import EvaluateSettings, evaluate
from whyscore.runs.folder import Run
from whyscore.types import Dataset, Entry, Segment


class Tags(HTMLParser):
    """Counts what a page consists of, and keeps what stands in its first script: the data."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.counts: Counter[str] = Counter()
        self.handlers: set[str] = set()
        self.scripts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] += 1
        self.handlers |= {name for name, _ in attrs if name.startswith("on")}
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.lasttag == "script" and self.scripts:
            self.scripts[-1] += data


@pytest.fixture(scope="module")
def nasty(tmp_path_factory: pytest.TempPathFactory) -> Run:
    entries = []
    for k, system in enumerate(("one", "<b>two</b>")):
        for i, text in enumerate(NASTY):
            hypothesis = text if k == 0 else NASTY[(i * 3 + 1) % len(NASTY)]
            segment = Segment(hypothesis, NASTY[(i * 7 + 3) % len(NASTY)], (NASTY[(i * 11 + 5) % len(NASTY)] or "a",))
            entries.append(Entry(str(i), system, segment))
    folder = tmp_path_factory.mktemp("nasty") / "run"
    return evaluate(
        Dataset("</script><script>alert(1)</script>", tuple(entries)),
        ["chrf", "token_f1"],
        output=folder,
        settings=EvaluateSettings(draws=20),
    )


def test_the_page_holds_every_text_and_runs_none(nasty: Run) -> None:
    page = html(build_report(nasty))
    page.encode("utf-8")
    found = Tags(page)
    assert found.counts["script"] == 2
    assert found.counts["b"] == found.counts["img"] == found.counts["iframe"] == 0
    assert found.handlers == set()
    held = texts_in(json.loads(found.scripts[0]))
    assert {entry.segment.hypothesis for entry in nasty.dataset.entries} <= held


def texts_in(value: object) -> set[str]:
    if isinstance(value, str):
        return {value}
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return set().union(*map(texts_in, parts))


@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_every_other_form_can_be_written(nasty: Run, form: str, tmp_path: Path) -> None:
    report = build_report(nasty)
    for text in map("".join, (present(report, form), present(report.summary()), present(report, "json"))):
        (tmp_path / "report").write_text(text, "utf-8")
        assert "\x1b" not in text
    assert json.loads("".join(present(report, "json")))["systems"]


def test_without_texts_nothing_of_them_is_left(nasty: Run) -> None:
    page = html(build_report(nasty, texts=False))
    assert Tags(page).counts["script"] <= 1
    longest = {text for text in NASTY if len(text) > 30 and text.isprintable()}
    assert longest
    assert not [text for text in longest if text in page]
