"""Which segments need no review."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.support.cli import Run

from whyscore.analysis.metaeval.scores import score_by_language
from whyscore.analysis.triage import error_free, triage
from whyscore.data.formats.xliff import read_xliff, with_states
from whyscore.data.reading import read
from whyscore.errors import DataError
from whyscore.types import Dataset, Entry, ErrorSpan, FloatVector, Segment


def rated(scores: list[float], *, human: str = "esa", per_document: int = 4) -> Dataset:
    entries = [
        Entry(str(k), "S", Segment(f"text {k}"), {human: score}, (), f"d{k // per_document}")
        for k, score in enumerate(scores)
    ]
    return Dataset("rated", tuple(entries))


def simulated(n: int, seed: int) -> tuple[Dataset, FloatVector]:
    """Segments whose chance of being error-free is their metric score."""
    rng = np.random.default_rng(seed)
    scores = rng.random(n)
    return rated(np.where(rng.random(n) < scores, 90.0, 60.0).tolist()), scores


def test_esa_of_85_without_a_span_is_error_free_as_in_wmt26() -> None:
    data = rated([85.0, 84.9, 100.0, 100.0, float("nan")])
    marked = (ErrorSpan(0, 2, "minor"),)
    neutral = (ErrorSpan(0, 2, "neutral"),)
    spans = [(), (), marked, neutral, ()]
    data = replace(data, entries=tuple(replace(e, spans=own) for e, own in zip(data.entries, spans, strict=True)))
    labels, human, limit, notes = error_free(data, triage.settings())
    assert labels[:4].tolist() == [1.0, 0.0, 0.0, 1.0]
    assert np.isnan(labels[4])
    assert (human, limit, notes) == ("esa", 85.0, [])
    assert error_free(data, triage.settings(ignore_spans=True))[0][:3].tolist() == [1.0, 0.0, 1.0]


def test_the_precision_is_reached_on_other_data_where_scores_are_probabilities() -> None:
    tuning, scores = simulated(3000, 1)
    data, others = simulated(3000, 2)
    result = triage(data, others, tuning, scores, precision=0.9, draws=200)
    # The mean of a uniform number above t is (1 + t) / 2: a precision of .9 needs t = .8, and a lower bound more.
    assert 0.78 < result.threshold < 0.88
    accepted = [one for one in result.decisions if not one.review]
    assert np.mean([one.entry.human["esa"] >= 85 for one in accepted]) >= 0.88
    assert result.precision.low is not None
    assert result.precision.low <= 0.9 <= (result.precision.high or 1) + 0.02
    assert result.coverage.value == pytest.approx(len(accepted) / 3000)
    assert [one.rank for one in result.decisions] == list(range(1, 3001))
    review = [one.score for one in result.decisions if one.review]
    assert review == sorted(review)
    assert result.curve[-1].precision == pytest.approx(result.share_free)
    again = triage(data, others, replace(tuning, entries=tuning.entries[::-1]), scores[::-1], precision=0.9, draws=200)
    assert (again.threshold, again.precision) == (result.threshold, result.precision)


def test_what_cannot_be_reached_is_said_and_everything_is_reviewed() -> None:
    tuning, scores = simulated(400, 3)
    result = triage(tuning, scores, tuning, scores, precision=0.999, draws=100)
    assert np.isnan(result.threshold)
    assert all(one.review for one in result.decisions)
    assert "no threshold on score reaches a precision of 0.999" in result.notes[0]
    assert "400 segments are rated data too" in result.notes[1]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (rated([90.0] * 8), "all 8 rated segments of rated are error-free (esa >= 85): a threshold needs both kinds"),
        (rated([10.0] * 8), "all 8 rated segments of rated are with errors"),
        (rated([90.0, 10.0], human="points"), "which points makes a segment error-free is not known: give the lowest"),
        (rated([90.0, 10.0, 90.0]), "rated has only one document"),
        (Dataset("none", (Entry("1", "S", Segment("a")),)), "none has no human score: name one with --human"),
    ],
)
def test_rated_data_that_cannot_teach_are_refused(data: Dataset, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        triage(data, np.arange(len(data), dtype=float), data, np.arange(len(data), dtype=float))


def ted(folder: Path) -> Iterator[Dataset]:
    """TED zh-en with reference A, twenty-five neighbouring segments a document; two halves of the documents."""
    whole = read(folder / "mqm/ted_zhen_ratings.jsonl", languages=("zh", "en"))
    references = {entry.id: entry.segment.hypothesis for entry in whole.entries if entry.system == "ref-A"}
    number = {name: k // 25 for k, name in enumerate(whole.ids)}
    for half in (0, 1):
        yield Dataset(
            f"ted {half}",
            tuple(
                replace(e, segment=replace(e.segment, references=(references[e.id],)), document=str(number[e.id]))
                for e in whole.entries
                if not e.system.startswith("ref-") and number[e.id] % 2 == half
            ),
            ("zh", "en"),
        )


@pytest.mark.slow
def test_on_ted_talks_the_precision_asked_for_is_reached_on_other_documents(shared: Path) -> None:
    tuning, others = ted(shared)
    scores = [score_by_language(data, "chrf") for data in (tuning, others)]
    for precision in (0.6, 0.65, 0.7):
        result = triage(others, scores[1], tuning, scores[0], metric="chrf", precision=precision, draws=200)
        accepted = [one.entry for one in result.decisions if not one.review]
        reached = np.mean([entry.human["mqm"] >= 0 and not entry.spans for entry in accepted])
        assert len(accepted) > 50
        assert reached >= precision > result.share_free  # without a threshold it would not be reached
        assert (result.precision.low or 0) <= reached
        assert (result.precision.high or 0) >= precision


XLIFF_1 = """<?xml version="1.0"?>
<xliff version="1.2"><file source-language="en" target-language="de"><body>
<trans-unit id="1"><source>a</source><target state='new' note="x > y">b</target></trans-unit>
<trans-unit id="2"><source>a</source><target>c</target><alt-trans><target>d</target></alt-trans></trans-unit>
<trans-unit id="3"><source>a</source><target>e</target></trans-unit>
</body></file></xliff>"""
XLIFF_2 = """<xliff version="2.0" srcLang="en" trgLang="de"><file id="f">
<unit id="1"><segment id="s" state="initial"><source>a</source><target>b</target></segment></unit>
<unit id="2"><segment><source>a</source><target>c</target></segment></unit></file></xliff>"""


def test_states_are_written_into_xliff_and_nothing_else_changes(tmp_path: Path) -> None:
    path = tmp_path / "job.xlf"
    path.write_text(XLIFF_1, "utf-8")
    written = with_states(read_xliff(path), {"1": True, "2": False}).decode()
    expected = XLIFF_1.replace("<target state='new' note", '<target state="needs-review-translation" note')
    assert written == expected.replace("<target>c", '<target state="translated">c')
    path.write_text(XLIFF_2, "utf-8")
    written = with_states(read_xliff(path), {"1/s": True, "2": False}).decode()
    expected = XLIFF_2.replace('<segment id="s" state="initial">', '<segment state="translated" id="s">')
    assert written == expected.replace("<segment><", '<segment state="reviewed"><')


def test_the_command_writes_the_list_the_states_and_what_the_page_filters(run: Run, tmp_path: Path) -> None:
    data, scores = simulated(120, 5)
    lines = [
        json.dumps({"id": e.id, "doc": e.document, "source": f"s {e.id}", "reference": "a b c d e f g h i j",
                    "hypothesis": " ".join("abcdefghij"[: 1 + int(10 * score)]), "esa": e.human["esa"]})
        for e, score in zip(data.entries, scores, strict=True)
    ]  # fmt: skip
    (tmp_path / "rated.jsonl").write_text("\n".join(lines), "utf-8")
    units = "".join(
        f'<trans-unit id="{k}"><source>s</source><target>{t}</target></trans-unit>'
        for k, t in enumerate(["a", "a b c d e f g h i j"])
    )
    text = f'<xliff version="1.2"><file source-language="en" target-language="de"><body>{units}</body></file></xliff>'
    (tmp_path / "job.xlf").write_text(text, "utf-8")
    (tmp_path / "ref.txt").write_text("a b c d e f g h i j\n" * 2, "utf-8")
    folder = tmp_path / "run"
    done = run(*("evaluate", tmp_path / "job.xlf", "-r", tmp_path / "ref.txt", "-m", "token_f1", "-o", folder, "-q"))
    assert done.code == 0, done.err
    asked = ("triage", folder, "--tune-on", tmp_path / "rated.jsonl", "--precision", "0.6", "--draws", "100")
    marked = tmp_path / "out.xlf"
    done = run(*asked, "-f", "csv", "--xliff", tmp_path / "job.xlf", "--xliff-output", marked)
    assert done.code == 0, done.err
    rows = done.out.splitlines()
    assert rows[0] == "rank,id,system,document,decision,score,source,hypothesis"
    assert rows[1].startswith("1,0,job,,review,")
    assert rows[2].startswith("2,1,job,,error-free,")
    assert 'state="needs-review-translation">a<' in marked.read_text("utf-8")
    assert json.loads((folder / "triage.json").read_text("utf-8"))["review"] == {"job": {"0": True, "1": False}}
    page = tmp_path / "report.html"
    assert run("report", folder, "-o", page).code == 0
    assert '"review":[[true,false]]' in page.read_text("utf-8").replace(" ", "")
    done = run(*asked, "--by", "spans")
    assert (done.code, done.err.strip()) == (2, "whyscore: error: token_f1 marks no error spans: use --by score")
    done = run("triage", folder)
    assert done.code == 2
    assert "triage needs a run folder and rated data" in done.err
