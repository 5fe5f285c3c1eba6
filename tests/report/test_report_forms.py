"""A report in its forms: sentences, tables, JSON, files, and two runs set against each other."""

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from whyscore.cli.main import main
from whyscore.errors import DataError, MissingExtra
from whyscore.present import present
from whyscore.report import build_report
from whyscore.report.figures import save_figures
from whyscore.report.model import Report, SystemRow, about
from whyscore.report.page import html
from whyscore.report.verdict import with_verdict
from whyscore.runs.evaluate import EvaluateSettings, evaluate
from whyscore.runs.folder import Identity, Run, merge_runs
from whyscore.scoring.store import Store
from whyscore.types import Dataset, Entry, Estimate, PairTest, Segment

QUICK = EvaluateSettings(draws=50)


def test_the_verdict_names_the_leader_and_what_people_say(run: Run) -> None:
    found = build_report(run)
    assert found.about == "2 systems, 4 segments, 1 reference, de → en"
    assert found.verdict[1] == (
        "token_f1: good scores highest (0.9375), but not significantly above bad (0.7500, p = 0.25)."
    )
    assert found.verdict[2] == (
        "Human raters (mqm) rank good first (mean -1.25), not significantly above bad; chrf and token_f1 agree."
    )
    assert found.pair == ("good", "bad")


def changed(report: Report, tests: Sequence[PairTest], clusters: Sequence[int | None]) -> Report:
    rows = [
        SystemRow(row.system, row.totals, (rank, None), row.human)
        for row, rank in zip(report.systems, clusters, strict=True)
    ]
    return with_verdict(replace(report, systems=tuple(rows), comparisons=tuple(tests)))


def test_a_lead_beyond_chance_is_called_one(run: Run) -> None:
    test = PairTest("chrf", "good", "bad", 9.0, 5.0, 12.0, 0.0004, "good")
    found = changed(build_report(run), [test], [1, 2])
    assert re.fullmatch(
        r"chrf: good scores highest \([\d.]+\), significantly above bad \([\d.]+, p < 0\.001\)\.", found.verdict[0]
    )


def test_without_tests_only_numbers_are_told(run: Run) -> None:
    found = changed(build_report(run), [], [None, None])
    assert re.fullmatch(
        r"chrf: good scores highest \([\d.]+\), followed by bad \([\d.]+\); not tested\.", found.verdict[0]
    )


def test_one_system_is_not_compared(small: Dataset, tmp_path: Path) -> None:
    alone = evaluate(small.of("bad"), ["token_f1"], output=tmp_path / "run", settings=QUICK)
    found = build_report(alone)
    assert found.verdict[0] == "bad: token_f1 0.7500 [0.7500, 0.7500]. There is no other system to compare with."
    assert found.pair is None
    assert "Compare with" in html(found)


def test_references_that_vary_are_told() -> None:
    entries = (Entry("0", "a", Segment("x", None, ("y",))), Entry("1", "a", Segment("x", None, ("y", "z"))))
    assert about(Dataset("vary", entries)) == "1 system, 2 segments, references vary"


def test_the_terminal_gets_verdict_and_table(run: Run) -> None:
    text = "".join(present(build_report(run).summary()))
    assert text.startswith("good vs bad on small: 2 systems, 4 segments, 1 reference, de → en\n")
    assert re.search(r"^system +chrf ↑ +token_f1 ↑ +human: mqm$", text, re.MULTILINE)


def test_papers_get_tables_with_signatures(run: Run) -> None:
    markdown, latex = ("".join(present(build_report(run), form)) for form in ("markdown", "latex"))
    for heading in ("## Systems", "## Tests between systems", "## Score lost by feature", "## Do highlights match"):
        assert heading in markdown
    assert "chrf\\|" in markdown
    assert latex.count(r"\begin{tabular}") == 4
    assert r"token\_f1 $\uparrow$" in latex


def test_programs_get_json_without_packed_data(run: Run) -> None:
    found = json.loads("".join(present(build_report(run), "json")))
    assert found["systems"][0]["system"] == "good"
    assert found["systems"][0]["totals"][1]["value"] == 0.9375
    assert "explorer" not in found


def test_two_runs_are_set_against_each_other(run: Run, small: Dataset, tmp_path: Path) -> None:
    entries = [
        replace(entry, segment=replace(entry.segment, hypothesis=entry.segment.references[0]))
        if entry.system == "bad"
        else entry
        for entry in small.entries
    ]
    better = replace(small, entries=tuple(entries))
    new = evaluate(better, ["chrf", "token_f1"], output=tmp_path / "new", settings=QUICK)
    whole = merge_runs([run, new])
    assert whole.dataset.systems == ("run: good", "run: bad", "new: good", "new: bad")
    assert whole.identities["new: bad"] == Identity("new", "bad")
    assert whole.changes == {"good": ("run: good", "new: good"), "bad": ("run: bad", "new: bad")}
    found = build_report([run, new])
    assert found.title == "run → new"
    assert {row.system: row.totals[1].value for row in found.systems} == {
        "run: good": 0.9375, "run: bad": 0.75, "new: good": 0.9375, "new: bad": 1.0,
    }  # fmt: skip
    assert len(found.explorer["why"][0]) == 16
    assert found.pair == ("run: bad", "new: bad")
    assert re.fullmatch(r"good: chrf [\d.]+, unchanged; token_f1 0\.9375, unchanged\.", found.verdict[0])
    assert found.changed
    assert found.verdict[1].endswith("token_f1 0.7500 → 1.0000 (not significant, p = 0.12).")
    assert {one.metric for one in found.comparisons if one.first == "new: bad"} == {"chrf", "token_f1"}
    assert all(rank is None for row in found.systems for rank in row.clusters)


def test_the_order_of_lines_changes_no_test_of_a_change(tmp_path: Path) -> None:
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    versions = {
        name: [
            Entry(str(k), "made", Segment(" ".join(words[: (k * step) % 11]), None, (" ".join(words),)))
            for k in range(40)
        ]
        for name, step in (("old", 7), ("new", 5))
    }
    changes = []
    for order in (1, -1):
        runs = [
            evaluate(
                Dataset("made", tuple(entries[::order])),
                ["token_f1"],
                output=tmp_path / f"{order}/{name}",
                settings=QUICK,
            )
            for name, entries in versions.items()
        ]
        changes += [(test.difference, test.p) for test in merge_runs(runs).pairs]
    assert changes[0] == changes[1]


def test_a_change_beyond_chance_is_called_better_or_worse(tmp_path: Path) -> None:
    def made(end: str, folder: str) -> Run:
        entries = [Entry(str(k), "base", Segment(f"word {k} {end}", None, (f"word {k} right",))) for k in range(12)]
        data = Dataset("gate", tuple(entries))
        return evaluate(data, ["token_f1"], output=tmp_path / folder, budget=0, settings=QUICK)

    old, new = made("wrong", "old"), made("right", "new")
    assert build_report([old, new]).verdict == ("base: token_f1 0.6667 → 1.0000 (significantly better, p < 0.001).",)
    assert build_report([new, old]).verdict == ("base: token_f1 1.0000 → 0.6667 (significantly worse, p < 0.001).",)


def test_runs_with_different_segments_are_compared_on_those_that_both_have(tmp_path: Path) -> None:
    def made(ends: Sequence[str], start: int, folder: str) -> Run:
        entries = [
            Entry(str(start + k), "base", Segment(f"word {start + k} {end}", None, (f"word {start + k} right",)))
            for k, end in enumerate(ends)
        ]
        data = Dataset("gate", tuple(entries))
        return evaluate(data, ["token_f1"], output=tmp_path / folder, budget=0, settings=QUICK)

    # All that both have got worse; what only the new run has is right, so that its total is higher.
    old = made([*["wrong"] * 30, *["right"] * 10], 0, "old")
    new = made([*["wrong"] * 10, *["right"] * 90], 30, "new")
    found = build_report([old, new])
    (test,) = (one for one in found.comparisons if one.first == "new: base")
    assert (test.n, test.better) == (10, "old: base")
    assert test.difference == pytest.approx(-1 / 3)
    (said,) = found.verdict
    assert "token_f1 0.7500 → 0.9667 on 40 and 100 segments, -0.3333 per segment on the 10 that both have" in said
    apart = build_report([old, made(["right"] * 3, 200, "apart")])
    assert [one.decisive for one in apart.comparisons] == [None]
    assert "0.7500 → 1.0000 on 40 and 3 segments, none of them in both runs." in apart.verdict[0]


def test_systems_are_the_same_only_by_run_and_name(tmp_path: Path) -> None:
    def made(systems: Sequence[str], folder: str) -> Run:
        entries = tuple(Entry(str(k), name, Segment("a b", None, ("a c",))) for name in systems for k in range(3))
        return evaluate(Dataset("x", entries), ["token_f1"], output=tmp_path / folder, budget=0, settings=QUICK)

    whole = merge_runs([made(["en: big"], "one"), made(["de: big"], "two")])
    assert whole.dataset.systems == ("en: big", "de: big")
    assert whole.changes == {}
    assert not build_report(whole.runs).changed
    clash = merge_runs([made(["new: s", "s"], "old"), made(["s"], "new")])
    assert clash.dataset.systems == ("new: s", "old: s", "new: new: s")
    assert clash.changes == {"s": ("old: s", "new: new: s")}


def test_a_report_shows_itself_in_a_screenful(run: Run) -> None:
    found = build_report(run)
    assert repr(found).startswith("<Report 'good vs bad on small': 2 systems, 4 segments, 1 reference, de → en. ")
    assert len(repr(found)) < 400
    assert "<table>" in found._repr_html_()
    assert len(found._repr_html_()) < 4000
    assert [record["cluster"] for record in found.records()] == [
        row.clusters[k] for row in found.systems for k in (0, 1)
    ]


def test_runs_that_cannot_be_compared_are_refused(run: Run, small: Dataset, tmp_path: Path) -> None:
    other = evaluate(small, ["ter"], output=tmp_path / "other", budget=0, settings=QUICK)
    with pytest.raises(DataError, match=re.escape("the runs have no metric in common")):
        merge_runs([run, other])
    with pytest.raises(DataError, match=re.escape("is given twice: a run cannot be compared with itself")):
        merge_runs([run, run])
    changed_ = replace(run, folder=tmp_path / "x", metrics=tuple(replace(one, signature="old") for one in run.metrics))
    with pytest.raises(DataError, match=re.escape("chrf has different signatures: ")):
        merge_runs([run, changed_])


def test_charts_are_saved_in_every_format(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    written = save_figures(build_report(run), tmp_path / "figures", ["svg", "pdf"])
    names = {path.name for path in written}
    assert {"systems.svg", "systems.pdf", "highlights.svg", "features.svg", "systems.txt"} <= names
    assert "good" in (tmp_path / "figures" / "systems.svg").read_text("utf-8")


def test_charts_need_an_extra(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingExtra, match=re.escape("needs extra packages: pip install 'whyscore[report]'")):
        save_figures(build_report(run), tmp_path)


def test_undefined_totals_leave_a_report_that_can_be_read(run: Run) -> None:
    found = build_report(run)
    empty = tuple(
        replace(row, totals=tuple(Estimate(float("nan"), reason="empty") for _ in row.totals)) for row in found.systems
    )
    page = html(replace(found, systems=empty))
    assert not re.search(r"\bnan\b", re.sub(r"<script.*", "", page, flags=re.DOTALL), re.IGNORECASE)


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ref.txt").write_text("a cat sat\na dog ran\n", "utf-8")
    (tmp_path / "base.txt").write_text("a cat sat\na dog ran\n", "utf-8")
    (tmp_path / "new.txt").write_text("a bat sat\na dog ran\n", "utf-8")
    return tmp_path


EVALUATE = ["evaluate", "-r", "ref.txt", "-t", "base.txt", "new.txt", "-m", "token_f1", "--store", "none", "-q"]


def test_the_command_writes_a_folder_a_page_and_a_summary(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*EVALUATE, "-o", "run", "--title", "Two cats"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("Two cats: 2 systems, 2 segments, 1 reference\n")
    assert told.err == ""
    assert (texts / "run" / "report.html").read_text("utf-8").startswith("<!doctype html>")
    assert main(["report", "run", "-o", "again.html", "-q"]) == 0
    assert main(["report", "run", "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["about"] == "2 systems, 2 segments, 1 reference"
    assert (texts / "again.html").exists()


def test_a_gate_that_is_not_passed_is_exit_code_5(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*EVALUATE, "-o", "run", "--fail-under", "token_f1=0.9"]) == 5
    told = capsys.readouterr()
    assert "quality gate not passed: token_f1 of new is 0.83, below 0.9" in told.err
    assert "token_f1: base scores highest" in told.out
    assert (texts / "run" / "report.html").exists()
    assert main([*EVALUATE, "-o", "run", "--fail-under", "token_f1=0.8", "--fail-if-worse", "base"]) == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--fail-under", "bleu=1"], 2, "--fail-under: no metric 'bleu'"),
        (["--fail-if-worse", "nobody"], 2, "--fail-if-worse: no system 'nobody'. Systems: base, new"),
        (["--draws", "-1"], 2, "argument --draws: expected a whole number, 0 or more"),
        (["--budget", "-2"], 2, "argument --budget: expected a whole number, 0 or more"),
        (["-e", "lmie"], 2, "no explainer named 'lmie'. Did you mean 'lime'?"),
    ],
)
@pytest.mark.usefixtures("texts")
def test_wrong_use_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    assert main([*EVALUATE, *arguments]) == code
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
    assert not Path("run").exists()


@pytest.mark.usefixtures("texts")
def test_a_dry_run_says_what_it_would_take(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*EVALUATE, "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "read: 4 texts, 2 systems, 2 segments",
        "score token_f1: 4 texts, 3 distinct, 0 already stored",
        "explain token_f1 by erasure: about 2 segments, 17 more texts to score",
        "test: 1 difference (1 pair of systems, 1 score)",
        "report: run/report.html",
    ]
    assert not Path("run").exists()
    assert main([*EVALUATE, "-o", "run", "--store", "scores.sqlite"]) == 0
    [held] = [one for one in Store(Path("scores.sqlite")).held() if one.signature.startswith("token_f1")]
    assert held.segments == 3 + 17


@pytest.mark.usefixtures("texts")
def test_reports_refuse_what_they_cannot_write(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*EVALUATE, "-o", "run"]) == 0
    assert main(["report", "run", "-o", "report.docx"]) == 2
    assert main(["report", "run", "-f", "html"]) == 2
    assert main(["report", "nowhere"]) == 3
    told = capsys.readouterr().err
    assert "cannot tell the format of report.docx: use .html" in told
    assert "a page needs a file: name it with -o report.html" in told
    assert "nowhere is no run folder: it has no run.json" in told


def test_systems_with_the_same_score_are_level(tmp_path: Path) -> None:
    entries = [Entry(str(i), system, Segment("a cat", None, ("a dog",))) for system in "ab" for i in range(3)]
    found = evaluate(Dataset("level", tuple(entries)), ["token_f1"], output=tmp_path / "run", budget=0)
    assert build_report(found).verdict[0] == "token_f1: a and b tie at 0.5000."


def test_the_title_names_the_systems_and_the_data(run: Run) -> None:
    assert build_report(run).title == f"good vs bad on {run.dataset.name}"
