"""The one sentence on top says no more than was tested, and the steps below it can be taken."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from whyscore.errors import SpecError
from whyscore.present import present
from whyscore.report import build_report
from whyscore.report.model import Report, SystemRow
from whyscore.report.verdict import headline, with_advice, with_verdict
from whyscore.runs.folder import Run
from whyscore.types import Estimate, Gate, PairTest, RunMetric


def ranked(report: Report, clusters: dict[str, Sequence[int | None]]) -> Report:
    """A report whose systems have these clusters, by metric; the first named is the best."""
    count = len(next(iter(clusters.values())))
    rows = tuple(
        SystemRow(name, tuple(Estimate(9.0 - k) for _ in ranks), tuple(ranks))
        for k, (name, ranks) in enumerate(clusters.items())
    )
    metrics = tuple(RunMetric(name, name) for name in ("chrf", "bleu", "ter")[:count])
    return replace(report, systems=rows, metrics=metrics, digits=(2,) * count, comparisons=(), human=())


@pytest.fixture(scope="module")
def report(run: Run) -> Report:
    return build_report(run)


@pytest.mark.parametrize(
    ("clusters", "told"),
    [
        ({"a": [1, 1], "b": [2, 2]}, "a is significantly better than b on both metrics."),
        ({"a": [1], "b": [2], "c": [2]}, "a is significantly better than both other systems on chrf."),
        (
            {"a": [1, 1, 1], "b": [1, 1, 1]},
            "No clear winner: a and b do not differ significantly on any of 3 metrics.",
        ),
        (
            {"a": [1, 1], "b": [1, 1], "c": [2, 2]},
            (
                "No clear winner: a and b are in the top cluster on both metrics; "
                "the difference between them is not statistically significant."
            ),
        ),
        (
            {"a": [1, 1], "b": [1, 2]},
            "Only a is in the top cluster on both metrics; its lead is not significant on every metric.",
        ),
        ({"a": [1, 2], "b": [2, 1]}, "The metrics disagree: a leads on chrf, b leads on bleu."),
        (
            {"a": [1, 2], "b": [1, 2], "c": [2, 1]},
            "The metrics disagree: a and b are in the top cluster on chrf, c leads on bleu.",
        ),
        (
            {name: [1] for name in "abcdef"} | {"g": [2]},
            (
                "No clear winner: a, b, c and 3 others are in the top cluster on chrf; "
                "the differences between them are not statistically significant."
            ),
        ),
        ({"a": [None], "b": [None]}, ""),
        ({"a": [1]}, ""),
    ],
)
def test_the_headline_says_who_is_at_the_top(report: Report, clusters: dict[str, Sequence[int]], told: str) -> None:
    assert headline(ranked(report, clusters)) == told


def test_one_system_in_the_top_cluster_is_the_best_only_if_it_beats_every_other_one(report: Report) -> None:
    systems = ranked(report, {"a": [1], "b": [2], "c": [2]})
    beaten, level = PairTest("chrf", "a", "b", 1.0, p=0.01, better="a"), PairTest("chrf", "a", "c", 2.0, p=0.2)
    assert headline(replace(systems, comparisons=(beaten, level))) == (
        "Only a is in the top cluster on chrf, but not significantly better than c on chrf."
    )
    beaten_too = replace(level, p=0.01, better="a")
    assert headline(replace(systems, comparisons=(beaten, beaten_too))) == (
        "a is significantly better than both other systems on chrf."
    )


def test_a_system_level_with_the_best_may_be_below_the_top_cluster_and_the_sentence_says_why(report: Report) -> None:
    systems = ranked(report, {"a": [1], "b": [1], "c": [2], "d": [2]})
    level = [PairTest("chrf", "a", name, 1.0, p=0.3) for name in "bc"]
    beaten = [PairTest("chrf", *pair, 1.0, p=0.01, better=pair[0]) for pair in ("ad", "bc")]
    found = with_verdict(replace(systems, comparisons=(*level, *beaten)))
    assert found.verdict[0] == (
        "chrf: a scores highest (9.00), but not significantly above b or c (b: 8.00, p = 0.30); "
        "the top cluster ends above c, which is significantly worse than b."
    )
    inside = ranked(report, {"a": [1], "b": [1], "c": [1], "d": [2]})
    assert "cluster" not in with_verdict(replace(inside, comparisons=(*level, *beaten))).verdict[0]


def test_a_metric_without_tests_does_not_count(report: Report) -> None:
    assert headline(ranked(report, {"a": [1, None], "b": [2, None]})) == "a is significantly better than b on chrf."


@pytest.mark.parametrize(
    ("better", "told"),
    [
        ([None, None], "No significant change in 2 comparisons."),
        (["new: s", None], "1 of 2 comparisons improved significantly."),
        (["old: s", "old: s"], "2 of 2 comparisons got significantly worse."),
        (["new: s", "old: s"], "Mixed: 1 of 2 comparisons improved significantly, 1 got significantly worse."),
    ],
)
def test_the_headline_of_two_runs_says_what_changed(report: Report, better: list[str | None], told: str) -> None:
    tests = [PairTest("chrf", "new: s", "old: s", 1.0, None, None, 0.01, one) for one in better]
    tests.append(PairTest("chrf", "new: s", "new: other", 1.0, None, None, 0.01, "new: s"))
    changes = (("old: s", "new: s"),)
    assert headline(replace(report, comparisons=tuple(tests), changes=changes)) == told
    assert headline(replace(report, comparisons=(), changes=changes)) == ""


def test_the_steps_lead_to_the_segments_that_matter(report: Report) -> None:
    assert [(step.text, dict(step.controls)) for step in report.steps if step.controls] == [
        ("Read where good and bad differ most", {"system": "good", "other": "bad", "sort": "spread"}),
        ("Read the worst segments of good", {"system": "good", "sort": "worst"}),
        ("Read the 4 segments with major errors marked by human raters", {"error": "s2"}),
    ]


def test_a_lead_within_chance_says_what_would_show(report: Report) -> None:
    test = PairTest("chrf", "good", "bad", 1.5, -1.0, 4.0, 0.3, None, detectable=6.25, n=4)
    texts = [step.text for step in with_advice(replace(report, comparisons=(test,))).steps]
    assert texts[1] == (
        "Test more segments to separate good and bad: they differ by 1.50 chrf, "
        "but 4 segments can only detect differences of about 6.25"
    )
    clear = replace(test, better="good")
    assert not any("Test more" in step.text for step in with_advice(replace(report, comparisons=(clear,))).steps)


def test_without_segments_there_is_nothing_to_read(report: Report) -> None:
    assert [step for step in with_advice(replace(report, explorer={})).steps if step.controls] == []


def test_the_system_to_read_first_is_the_one_that_is_at_the_top_by_all(report: Report) -> None:
    found = with_advice(replace(ranked(report, {"a": [1, 2], "b": [1, 1], "c": [2, 2]}), pair=("a", "b")))
    assert found.headline.startswith("Only b is in the top cluster on both metrics")
    assert dict(found.steps[1].controls) == {"system": "b", "sort": "worst"}
    after = with_advice(replace(found, changes=(("old: s", "new: s"),), pair=("old: s", "new: s")))
    assert [dict(step.controls)["system"] for step in after.steps[:2]] == ["new: s", "new: s"]
    assert after.steps[0].text == "Read the segments that got worse"


def test_terminal_and_markdown_begin_with_the_headline(report: Report) -> None:
    found = replace(report, headline="good leads")
    assert next(iter(list(present(found.summary()))[1:])) == "good leads\n"
    assert "\n\ngood leads\n\nchrf: good scores highest" in "".join(present(found, "markdown"))


def test_significance_comes_from_the_tested_pair_also_where_there_are_no_clusters(report: Report) -> None:
    systems = ranked(report, {"a": [None], "b": [None], "c": [None]})
    level = PairTest("chrf", "a", "b", 1.0, p=1.0, better=None)
    apart = PairTest("chrf", "a", "c", 2.0, p=0.001, better="a")
    said = with_verdict(replace(systems, comparisons=(level, apart))).verdict[0]
    assert said == "chrf: a scores highest (9.00), but not significantly above b (8.00, p = 1.00)."
    assert with_verdict(replace(systems, comparisons=(apart,))).verdict[0].endswith("followed by b (8.00); not tested.")


def test_a_baseline_is_named_and_significance_is_stated_only_where_it_was_tested(report: Report) -> None:
    systems = replace(ranked(report, {"a": [None, None], "prod": [None, None], "c": [None, None]}), pair=None)
    lower = replace(systems.metrics[1], higher_is_better=False)
    tests = (PairTest("chrf", "prod", "a", -1.0, p=0.0001, better="a"), PairTest("bleu", "prod", "a", -1.0, p=0.4))
    found = replace(systems, baseline="prod", metrics=(systems.metrics[0], lower), comparisons=tests)
    said = with_verdict(found)
    assert said.verdict[:2] == (
        "a vs prod: +1.00 chrf (significantly better, p < 0.001); +1.00 bleu (not significant, p = 0.40).",
        "c vs prod: -1.00 chrf (not tested); -1.00 bleu (not tested).",
    )
    assert said.pair == ("a", "prod")
    worse = replace(found, comparisons=(replace(tests[0], better="prod"),))
    assert "+1.00 chrf (significantly worse, p < 0.001)" in with_verdict(worse).verdict[0]


def test_the_baseline_is_given_or_that_of_the_gates_and_must_exist(run: Run) -> None:
    assert build_report(run).baseline is None
    said = build_report(run, baseline="bad")
    assert (said.baseline, said.pair) == ("bad", ("good", "bad"))
    assert said.verdict[0].startswith("good vs bad: +")
    assert not any("scores highest" in sentence for sentence in said.verdict)
    gates = (Gate("chrf", "good", passed=True, score=1.0, baseline="bad"),)
    assert build_report(replace(run, facts=replace(run.facts, gates=gates))).baseline == "bad"
    with pytest.raises(SpecError, match=r"--baseline: no system 'nobody'\. Systems: "):
        build_report(run, baseline="nobody")
