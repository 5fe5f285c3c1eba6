"""The one sentence on top says no more than was tested, and the steps below it can be taken."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from whyscore.report import build_report
from whyscore.report.model import MetricView, Report, SystemRow
from whyscore.report.tables import paper, summary
from whyscore.report.verdict import advised, headline
from whyscore.runs.reading import Run
from whyscore.types import Estimate, PairTest


def ranked(report: Report, clusters: dict[str, Sequence[int | None]]) -> Report:
    """A report whose systems have these clusters, by metric; the first named is the best."""
    count = len(next(iter(clusters.values())))
    rows = tuple(
        SystemRow(name, tuple(Estimate(9.0 - k) for _ in ranks), tuple(ranks))
        for k, (name, ranks) in enumerate(clusters.items())
    )
    metrics = tuple(
        MetricView(name, higher_is_better=True, explainer=None, digits=2) for name in ("chrf", "bleu", "ter")[:count]
    )
    return replace(report, systems=rows, metrics=metrics, comparisons=(), human=())


@pytest.fixture(scope="module")
def report(run: Run) -> Report:
    return build_report(run)


@pytest.mark.parametrize(
    ("clusters", "told"),
    [
        ({"a": [1, 1], "b": [2, 2]}, "a is the best of 2 systems by both metrics, beyond chance."),
        ({"a": [1], "b": [2]}, "a is the best of 2 systems by chrf, beyond chance."),
        (
            {"a": [1, 1, 1], "b": [1, 1, 1]},
            "No clear winner: chance explains the differences between a and b by all 3 metrics.",
        ),
        (
            {"a": [1, 1], "b": [1, 1], "c": [2, 2]},
            "No clear winner: a and b are at the top by both metrics, and chance explains what parts them.",
        ),
        (
            {"a": [1, 1], "b": [1, 2]},
            "a is the only system that nobody beats by both metrics; its lead is not beyond chance everywhere.",
        ),
        ({"a": [1, 2], "b": [2, 1]}, "The metrics disagree: a is at the top by chrf, b is at the top by bleu."),
        (
            {name: [1] for name in "abcdef"} | {"g": [2]},
            "No clear winner: a, b, c and 3 others are at the top by chrf, and chance explains what parts them.",
        ),
        ({"a": [None], "b": [None]}, ""),
        ({"a": [1]}, ""),
    ],
)
def test_the_headline_says_who_is_at_the_top(report: Report, clusters: dict[str, Sequence[int]], told: str) -> None:
    assert headline(ranked(report, clusters)) == told


def test_a_metric_without_tests_does_not_count(report: Report) -> None:
    assert headline(ranked(report, {"a": [1, None], "b": [2, None]})).startswith("a is the best of 2 systems by chrf,")


@pytest.mark.parametrize(
    ("better", "told"),
    [
        ([None, None], "Nothing changed beyond chance."),
        (["new: s", None], "It got better: beyond chance in 1 of 2 comparisons."),
        (["old: s", "old: s"], "It got worse: beyond chance in 2 of 2 comparisons."),
        (["new: s", "old: s"], "Mixed: beyond chance 1 better and 1 worse, of 2 comparisons."),
    ],
)
def test_the_headline_of_two_runs_says_what_changed(report: Report, better: list[str | None], told: str) -> None:
    tests = [PairTest("chrf", "new: s", "old: s", 1.0, None, None, 0.01, one) for one in better]
    tests.append(PairTest("chrf", "new: s", "new: other", 1.0, None, None, 0.01, "new: s"))
    assert headline(replace(report, comparisons=tuple(tests), changed=True)) == told
    assert headline(replace(report, comparisons=(), changed=True)) == ""


def test_the_steps_lead_to_the_segments_that_matter(report: Report) -> None:
    assert [(step.text, dict(step.controls)) for step in report.steps if step.controls] == [
        ("Read where good and bad differ most", {"system": "good", "other": "bad", "sort": "spread"}),
        ("Read the worst segments of good", {"system": "good", "sort": "worst"}),
        ("Read the 4 segments with major errors that people marked", {"error": "s2"}),
    ]


def test_a_lead_within_chance_says_what_would_show(report: Report) -> None:
    test = PairTest("chrf", "good", "bad", 1.5, -1.0, 4.0, 0.3, None, detectable=6.25)
    texts = [step.text for step in advised(replace(report, comparisons=(test,))).steps]
    assert texts[1] == (
        "Test more segments to tell good and bad apart: they differ by 1.50 chrf; this many segments can only show "
        "6.25 or more"
    )
    clear = replace(test, better="good")
    assert not any("Test more" in step.text for step in advised(replace(report, comparisons=(clear,))).steps)


def test_without_segments_there_is_nothing_to_read(report: Report) -> None:
    assert [step for step in advised(replace(report, explorer={})).steps if step.controls] == []


def test_the_system_to_read_first_is_the_one_that_is_at_the_top_by_all(report: Report) -> None:
    found = advised(replace(ranked(report, {"a": [1, 2], "b": [1, 1], "c": [2, 2]}), pair=("a", "b")))
    assert found.headline.startswith("b is the only system that nobody beats by both metrics")
    assert dict(found.steps[1].controls) == {"system": "b", "sort": "worst"}
    after = advised(replace(found, changed=True, pair=("old: s", "new: s")))
    assert [dict(step.controls)["system"] for step in after.steps[:2]] == ["new: s", "new: s"]
    assert after.steps[0].text == "Read what got worse"


def test_terminal_and_markdown_begin_with_the_headline(report: Report) -> None:
    found = replace(report, headline="good is the best of 2 systems by chrf, beyond chance.")
    assert summary(found).splitlines()[1] == found.headline
    assert f"\n\n**{found.headline}**\n\n- By chrf" in paper(found, "markdown")
