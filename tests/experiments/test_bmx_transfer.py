"""Calibrate on some data sets, evaluate on others: what is chosen, judged, corrected, marked and refused."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import whyscore as ws
from support import tiny_models
from support.cli import run_command
from whyscore.analysis.calibrate.file import Calibration
from whyscore.errors import DataError, UserError
from whyscore.experiments.bmx import study
from whyscore.experiments.bmx.transfer import (
    Judgement,
    Measure,
    Task,
    TransferRun,
    bmx,
    correct_judgements,
    kind_of,
    spread,
)
from whyscore.present import Look, latex, markdown, text
from whyscore.types import Dataset, Entry, Segment

WORDS = "abcdefghij"


def judged(name: str, column: str = "da", *, pairs: tuple[str, ...] = ("de-en", "cs-en"), systems: int = 1,
           size: int = 30, seed: int = 0) -> Dataset:  # fmt: skip
    """Translations whose human score follows the share of right words, with noise."""
    random = np.random.default_rng([seed, *name.encode()])
    entries = []
    for pair in pairs:
        for k in range(size):
            reference = [str(one) for one in random.choice(list(WORDS), 8)]
            for system in range(systems):
                hypothesis = [word if random.random() < 0.5 + 0.1 * system else "x" for word in reference]
                right = sum(a == b for a, b in zip(reference, hypothesis, strict=True))
                human = {column: right + float(random.random()) * 3}
                segment = Segment(" ".join(hypothesis), " ".join(reference), (" ".join(reference),))
                entries.append(Entry(f"{pair} {k}", f"s{system}", segment, human, extra={"LP": pair}))
    return Dataset(name, tuple(entries))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> TransferRun:
    return bmx(
        [judged("first"), judged("second", "hand")], [judged("third", seed=1)], ["token_f1", "chrf"],
        ["erasure", "random"], human=["da", "second:hand"], mode="paper", resamples=49, grid=[-1.0, 1.0, 2.0],
        output=tmp_path_factory.mktemp("run"),
    )  # fmt: skip


def test_every_pair_metric_and_explainer_is_judged_beside_the_controls(run: TransferRun) -> None:
    found = {(one.pair, one.metric, one.source) for one in run.judgements}
    sources = ("erasure", "random", "length")
    assert found == {(pair, metric, source) for pair in ("de-en", "cs-en") for metric in ("token_f1", "chrf")
                     for source in sources}  # fmt: skip
    assert all(one.after - one.before == pytest.approx(one.gain) for one in run.judgements)
    assert {one.task for one in run.judgements} == {"translation"}


def test_the_original_correlation_is_that_of_the_metric_alone(run: TransferRun) -> None:
    data = judged("third", seed=1)
    rows = [k for k, entry in enumerate(data.entries) if entry.extra["LP"] == "cs-en"]
    scores = ws.score(data, "chrf").values[rows]
    wanted = float(np.corrcoef(scores, data.human("da")[rows])[0, 1])
    found = next(one for one in run.judgements if (one.pair, one.metric, one.source) == ("cs-en", "chrf", "erasure"))
    assert found.before == pytest.approx(wanted)


def test_calibrations_are_files_that_boost_the_same_way(run: TransferRun) -> None:
    chosen = next(one for one in run.chosen if (one.metric, one.source) == ("chrf", "erasure"))
    calibration = Calibration.load(run.folder.path / chosen.file)
    assert (calibration.metric, calibration.explainer) == ("chrf", "erasure")
    assert calibration.w == chosen.w
    assert {one.group for one in calibration.settings} == {
        f"{name} {pair}" for name in ("first", "second") for pair in ("de-en", "cs-en")
    }
    data = judged("third", seed=1)
    values = ws.boost(data, calibration=calibration).scores.values
    rows = [k for k, entry in enumerate(data.entries) if entry.extra["LP"] == "de-en"]
    wanted = float(np.corrcoef(values[rows], data.human("da")[rows])[0, 1])
    found = next(one for one in run.judgements if (one.pair, one.metric, one.source) == ("de-en", "chrf", "erasure"))
    assert found.after == pytest.approx(wanted)


def test_the_table_has_original_boosted_and_averages(run: TransferRun) -> None:
    table = run.results()
    assert table.columns[-4:] == ("original", "erasure", "length", "random")
    averages = [row for row in table.rows if row[1] == "average"]
    own = [row[6] for row in table.rows if row[1] != "average" and row[4] == "chrf"]
    assert [row[4] for row in averages] == ["token_f1", "chrf"]
    assert averages[1][6] == pytest.approx(np.mean([float(str(value)) for value in own]))
    assert any("calibrated on first (pearson@global); second" in note for note in table.notes)


def test_a_run_goes_on_from_its_explanations(run: TransferRun, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(list(run.folder.path.glob("explanations/*/*/importances_*.jsonl"))) == 12
    monkeypatch.setattr(study, "explain", None)
    again = bmx(
        [judged("first"), judged("second", "hand")], [judged("third", seed=1)], ["token_f1", "chrf"],
        ["erasure", "random"], human=["da", "second:hand"], mode="paper", resamples=49, grid=[-1.0, 1.0, 2.0],
        output=run.folder.path,
    )  # fmt: skip
    assert again.judgements == run.judgements


def test_figures_are_drawn_of_what_was_found(run: TransferRun) -> None:
    charts = {name: chart.to_json() for name, chart, _ in run.figures()}
    assert set(charts) == {
        *(f"curves_{k}" for k in range(4)), "improving_0", "improving_1", "settings", "counts",
    }  # fmt: skip
    assert not any("NaN" in chart for chart in charts.values())


def judgement(metric: str, task: Task, p_value: float, source: str = "erasure", gain: float = 0.1) -> Judgement:
    return Judgement(
        "d", "", "da", "pearson", "global", task, metric, source, 1, 50, 1.0, 0.5, 0.5, 0.5 + gain, gain, p_value
    )


def test_bonferroni_counts_all_tests_of_a_metric_and_task() -> None:
    given = [
        judgement("chrf", "translation", 0.01),
        judgement("chrf", "translation", 0.02, "lime"),
        judgement("chrf", "summarisation", 0.02),
        judgement("bleu", "translation", 0.03),
        judgement("chrf", "translation", 0.03, "random"),
    ]
    found = correct_judgements(given, "bonferroni")
    assert [one.adjusted for one in found] == pytest.approx([0.02, 0.04, 0.02, 0.03, 0.03])


def test_marks_are_shown_in_text_markdown_and_latex(run: TransferRun) -> None:
    own = (judgement("chrf", "translation", 0.01), replace(judgement("chrf", "translation", 0.04), pair="x"),
           replace(judgement("chrf", "translation", 0.3), pair="y"))  # fmt: skip
    marked = replace(run, judgements=correct_judgements(own, "bonferroni"), chosen=())
    look = Look()
    assert [line.split()[-1] for line in list(text.lines(marked, look))[2:5]] == ["0.600+*!", "0.600+*", "0.600+"]
    shown = "".join(markdown.lines(marked, look))
    assert '**<u><span style="color:blue">0.600</span></u>**' in shown
    assert '| **<span style="color:blue">0.600</span>** |' in shown
    assert r"\textbf{\underline{\textcolor{blue}{0.600}}}" in "".join(latex.lines(marked, look))


def test_the_measures_are_those_of_the_paper_unless_named(tmp_path: Path) -> None:
    mqm = judged("mqm21", pairs=("zh-en",), systems=4)
    options = {"resamples": 0, "grid": [1.0], "controls": False}
    found = bmx([judged("wmt17")], [mqm], ["token_f1"], output=tmp_path / "a", **options)
    assert [one.measure for one in found.judgements] == ["kendall_b@system", "kendall_b@global"]
    other = bmx(
        [judged("wmt17")], [mqm], ["token_f1"], output=tmp_path / "b", measure=["mqm:spearman@segment"], **options
    )
    assert [one.measure for one in other.judgements] == ["spearman@segment"]


def test_data_sets_can_be_dropped_from_the_calibration(tmp_path: Path) -> None:
    found = bmx(
        [judged("wmt17"), judged("mlqe")], [judged("wmt22")], ["token_f1"], output=tmp_path, drop=["wmt17"],
        resamples=0, grid=[1.0],
    )  # fmt: skip
    calibration = Calibration.load(tmp_path / found.chosen[0].file)
    assert {one.group for one in calibration.settings} == {"mlqe de-en", "mlqe cs-en"}


def test_splits_take_the_means_of_their_choices(tmp_path: Path) -> None:
    summaries = judged("summeval", systems=4, pairs=("en",))
    options = {"mode": "paper", "resamples": 0, "grid": [-2.0, 1.0, 3.0], "controls": False}
    found = bmx(
        [summaries], [judged("realsumm", systems=4, pairs=("en",), seed=2)], ["chrf"], output=tmp_path, **options
    )
    assert [one.measure for one in found.judgements] == ["kendall_b@system", "pearson@global"]
    assert {one.task for one in found.judgements} == {"summarisation"}
    assert any("means of the choices on 8 blocks" in note for note in found.notes)
    held = [judged("realsumm", systems=4, pairs=("en",), seed=2)]
    whole = bmx([summaries], held, ["chrf"], output=tmp_path / "whole",
                splits=1, **options)  # fmt: skip
    assert found.chosen[0].w != whole.chosen[0].w


def test_each_iteration_starts_from_the_boosted_metric(tmp_path: Path) -> None:
    found = bmx([judged("first")], [judged("third")], ["chrf"], output=tmp_path, iterations=2, mode="compat",
                resamples=0, grid=[1.0, 2.0], controls=False)  # fmt: skip
    first, second = ([one for one in found.judgements if one.iteration == k] for k in (1, 2))
    assert [one.before for one in second] == pytest.approx([one.after for one in first])
    assert found.results().columns[-2:] == ("erasure", "erasure 2")


def test_data_sets_without_a_human_score_are_named_with_what_they_have(tmp_path: Path) -> None:
    both = judged("both")
    both = replace(both, entries=tuple(replace(one, human={**one.human, "z": 1.0}) for one in both.entries))
    message = "both: no human score was named. first has da; both has da, z. Say --human 'both:COLUMN'"
    with pytest.raises(DataError, match=re.escape(message)):
        bmx([judged("first"), both], [judged("third")], ["chrf"], output=tmp_path)
    with pytest.raises(DataError, match="first has no human score 'hand'; it has: da"):
        bmx([judged("first")], [judged("third")], ["chrf"], human=["first:hand"], output=tmp_path)


def test_what_cannot_be_judged_is_left_out_and_said(tmp_path: Path) -> None:
    third = judged("mqm", systems=2)
    constant = replace(judged("flat"), entries=tuple(replace(one, human={"da": 1.0}) for one in judged("flat").entries))
    few = judged("few", size=3)
    options = {"resamples": 0, "grid": [1.0], "output": tmp_path}
    found = bmx([judged("first"), constant], [judged("third"), third, few], ["token_f1"], **options)
    told = "\n".join(found.left_out)
    assert "mqm de-en da was left out: 2 systems, the level system needs at least 3" in told
    assert "few de-en da was left out: 3 judged segments, at least 10 are needed" in told
    assert "flat de-en da was left out: its human scores are all 1" in told
    with pytest.raises(DataError, match="nothing to evaluate token_f1 on: few de-en da was left out: 3 judged"):
        bmx([judged("first")], [few], ["token_f1"], **options)


def test_a_metric_needs_texts_that_the_data_have(tmp_path: Path) -> None:
    bare = judged("bare")
    bare = replace(bare, entries=tuple(replace(one, segment=Segment(one.segment.hypothesis)) for one in bare.entries))
    message = "chrf needs a reference, which no data set to evaluate has: bare"
    with pytest.raises(UserError, match=re.escape(message)):
        bmx([judged("first")], [bare], ["chrf"], output=tmp_path)


def test_inputs_that_were_calibrated_on_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="60 of 60 segments of first are also in the calibration data"):
        bmx([judged("first")], [judged("first")], ["chrf"], output=tmp_path)


def test_names_tell_the_data_set_of_the_paper() -> None:
    assert [kind_of(name) for name in ("eval4nlp2021/dev/et-en", "mqm/wmt17.jsonl", "WMT22_task2/x", "mine")] == [
        "eval4nlp", "wmt17", "wmt22", "mine",
    ]  # fmt: skip
    assert Measure.parse("kendall@system") == ("kendall_b", "system")
    with pytest.raises(UserError, match="cannot read the measure 'kendall': write COEFFICIENT@LEVEL"):
        Measure.parse("kendall")


def test_a_limit_takes_segments_from_everywhere_of_each_pair() -> None:
    found = spread(judged("first", systems=2), 3)
    assert [entry.id for entry in found.entries if entry.system == "s1"] == [
        f"{pair} {k}" for pair in ("de-en", "cs-en") for k in (0, 14, 29)
    ]


def test_the_command_reads_several_files_with_their_own_columns(tmp_path: Path) -> None:
    for name, column in (("wmt17", "hand"), ("other", "da")):
        data = judged(name, column)
        rows = [
            {"LP": one.extra["LP"], "id": one.id, "hypothesis": one.segment.hypothesis,
             "reference": one.segment.references[0], **one.human}
            for one in data.entries
        ]  # fmt: skip
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    done = run_command(
        "experiment", "bmx", "--calibrate", str(tmp_path / "wmt17.jsonl"), "--evaluate", str(tmp_path / "other.jsonl"),
        "--human", "wmt17:hand", "other:da", "-m", "token_f1", "-e", "erasure", "--resamples", "9", "--grid=1:2:1",
        "-o", str(tmp_path / "run"), "--no-figures", "-f", "jsonl", "--store", "none",
    )  # fmt: skip
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in done.out.splitlines()]
    kept = [row for row in rows if row.get("source") == "erasure"]
    assert [(row["data"], row["pair"], row["human"]) for row in kept] == [
        ("other", "de-en", "da"),
        ("other", "cs-en", "da"),
    ]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    tiny_models.save(folder, "bert", "BertModel", texts=[" ".join([*WORDS, "x"])])
    return folder


def fine_tuned(network: Path, folder: Path, **options: object) -> TransferRun:
    options = {
        "fine_tune_rate": 0.01,
        "fine_tune_epochs": 12,
        "resamples": 9,
        "grid": [1.0],
        "controls": False,
        **options,
    }
    return bmx(
        [judged("first", size=40)], [judged("third", seed=1)], [f"bertscore(model='{network}', layer=2)"],
        output=folder, fine_tune=True, **options,
    )  # fmt: skip


def test_fine_tuning_is_judged_beside_boosting(network: Path, tmp_path: Path) -> None:
    found = fine_tuned(network, tmp_path / "a")
    rows = {(one.pair, one.source): one for one in found.judgements}
    assert {source for _, source in rows} == {"erasure", "fine-tuned"}
    for pair in ("de-en", "cs-en"):
        original, tuned = rows[pair, "erasure"].before, rows[pair, "fine-tuned"]
        assert tuned.before == original
        assert tuned.after > original, "the network learns to count right words"
    again = fine_tuned(network, tmp_path / "b")
    assert [one.after for one in again.judgements] == [one.after for one in found.judgements]
    assert "fine_tuning" in [name for name, _, _ in found.figures()]


def test_metrics_without_a_network_are_not_fine_tuned(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="chrf has no network to fine-tune"):
        bmx([judged("first")], [judged("third", seed=1)], ["chrf"], output=tmp_path, fine_tune=True)


def test_a_diverging_loss_is_told(network: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="smaller --fine-tune-rate"):
        fine_tuned(network, tmp_path, fine_tune_rate=1e30)
