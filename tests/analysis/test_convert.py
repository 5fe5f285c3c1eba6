import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from support.cli import Run
from whyscore.analysis.convert import categorise, convert, spans_by, thresholds_of, to_submission
from whyscore.analysis.explain import explain
from whyscore.analysis.metaeval.settings import MetaevalWordsSettings
from whyscore.analysis.metaeval.words import judge, logprob, stored_submissions
from whyscore.analysis.submit import submit
from whyscore.data.formats.eval4nlp import Gold, GoldSide, read_gold, read_submission
from whyscore.data.reading import read_foreign
from whyscore.data.records import explanation_lines, read_explanations
from whyscore.errors import DataError, SpecError, UserError
from whyscore.protocols import Tagged
from whyscore.stats.spans import Marked, Thresholds, judge_spans, to_spans
from whyscore.stats.words import Ragged
from whyscore.types import Dataset, Entry, ErrorSpan, ExplanationRecord, Segment, Signature

TEXTS = [("a dog sat down", "a cat sat down"), ("the big cat", "the big cat"), ("he is there", "she is here")]


@pytest.fixture
def data() -> Dataset:
    entries = [Entry(str(k), "sys", Segment(hyp, "quelle", (ref,))) for k, (hyp, ref) in enumerate(TEXTS)]
    return Dataset("toy", tuple(entries))


@pytest.fixture
def stored(data: Dataset, tmp_path: Path) -> Path:
    found = explain(data, "token_f1", "erasure", sides=["hypothesis"])
    rows = [ExplanationRecord.of(data.entries[one.index], "token_f1", "erasure", one) for one in found]
    path = tmp_path / "explanations.jsonl"
    path.write_text("".join(explanation_lines(data, rows, {})), "utf-8")
    return path


@cache
def span_numbers(shipped: Path, pair: str) -> object:
    gold = read_gold(shipped / "eval4nlp2021" / "dev" / pair)
    scores = logprob(shipped / "mlqe_pe_wordprobas" / "dev" / pair, gold, "sum").sides["target"].scores.rows()
    texts = []
    for words, tags, own in zip(gold.target.words or (), gold.target.tags.rows(), scores, strict=True):
        marked = to_spans(words, tags, Thresholds(major=0.5))
        texts.append(Marked(len(words.text), marked, to_spans(words, own, Thresholds(minor=1.0, major=2.0))))
    return judge_spans(texts)


@pytest.mark.parametrize(
    ("pair", "counts", "characters", "scores", "matches", "credit"),
    [
        (
            "et-en",
            (2702, 2165),
            (7332.5, 18336, 28478),
            (0.399896, 0.257479, 0.313261),
            (0.193959, 0.511198),
            (0.4418, 0.3755, 0.4060),
        ),
        (
            "ro-en",
            (1798, 1399),
            (6593.5, 13503, 18249),
            (0.488299, 0.361307, 0.415312),
            (0.249609, 0.510479),
            (0.4380, 0.4254, 0.4316),
        ),
    ],
)
def test_spans_out_of_log_probabilities(
    shipped: Path,
    pair: str,
    counts: tuple[int, int],
    characters: tuple[float, ...],
    scores: tuple[float, ...],
    matches: tuple[float, float],
    credit: tuple[float, ...],
) -> None:
    found = span_numbers(shipped, pair)
    assert (found.predicted, found.gold) == counts  # type: ignore[attr-defined]
    own = found.characters  # type: ignore[attr-defined]
    assert (own.precision_credit, own.predicted, own.gold) == characters
    assert (own.precision, own.recall, own.f1) == pytest.approx(scores, abs=1e-6)
    assert (found.exact.f1, found.partial.f1) == pytest.approx(matches, abs=1e-6)  # type: ignore[attr-defined]
    best = found.credit  # type: ignore[attr-defined]
    assert (best.precision, best.recall, best.f1) == pytest.approx(credit, abs=1e-4)


def test_stored_explanations_become_a_submission_with_equal_floats(stored: Path, tmp_path: Path) -> None:
    explanations = read_explanations(stored)
    done = to_submission(explanations, tmp_path / "out", team="me", track="unconstrained")
    assert [file.name for file in done.files] == ["target.submission", "sentence.submission", "metadata.txt"]
    back = read_submission(tmp_path / "out")
    [group] = explanations.groups.values()
    wanted = [(-one.importance).tolist() for one in group["target"].values()]
    assert [row.tolist() for row in back.sides["target"].scores.rows()] == wanted
    assert back.metadata == ("me", "unconstrained", "token_f1 erasure")


def test_words_that_lower_the_score_become_spans(stored: Path) -> None:
    explanations = read_explanations(stored)
    data = spans_by(explanations, thresholds_of(explanations, threshold=[0.0]))
    texts = [[entry.segment.hypothesis[s.start : s.end] for s in entry.spans or ()] for entry in data.entries]
    assert texts == [["dog"], [], ["he", "there"]]
    records = [json.loads(line) for line in convert(data, "spans", origin="me").lines]
    assert records[1]["spans"][0]["text"] == "dog"


def test_auto_never_calls_a_helping_word_an_error(stored: Path) -> None:
    explanations = read_explanations(stored)
    found = thresholds_of(explanations, threshold="auto")
    assert found.minor is not None
    assert found.minor >= 0
    texts = [len(entry.spans or ()) for entry in spans_by(explanations, found).entries]
    assert texts == [1, 0, 2]


def test_thresholds_are_learnt_on_gold_of_the_same_segments(stored: Path) -> None:
    tags = Ragged.of([[0, 1, 0, 0], [0, 0, 0], [1, 0, 1]])
    gold = Gold("toy", "eval4nlp2021", GoldSide(tags, "toy"))
    explanations = read_explanations(stored)
    for options in ({}, {"precision": 1.0}, {"rate": 0.3}):
        found = thresholds_of(explanations, gold=gold, **options)  # type: ignore[arg-type]
        spans = spans_by(explanations, found)
        assert [len(entry.spans or ()) for entry in spans.entries] == [1, 0, 2], options


def test_thresholds_are_learnt_on_the_segments_of_one_of_several_systems(stored: Path) -> None:
    explanations = read_explanations(stored)
    (system,) = {one.system for sides in explanations.groups.values() for one in sides["target"].values()}
    tags = Ragged.of([[1, 1], [0, 1, 0, 0], [0, 0, 0], [1, 0, 1]])
    ids = ("other/0", *(f"{system}/{number}" for number in range(3)))
    gold = Gold("toy", "eval4nlp2021", GoldSide(tags, "toy"), ids=ids, several=True)
    spans = spans_by(explanations, thresholds_of(explanations, gold=gold))
    assert [len(entry.spans or ()) for entry in spans.entries] == [1, 0, 2]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, SpecError, "spans need thresholds: give numbers, auto, a share of words, or gold to learn on"),
        ({"threshold": [1.0, 2.0, 3.0, 4.0]}, SpecError, "4 thresholds, expected one to three: minor, major, critical"),
        ({"threshold": [1.0], "pick": "x"}, None, ""),
        ({"threshold": "auto", "pick": "x"}, UserError, "holds 'token_f1 erasure': choose one with --pick"),
        (
            {"gold": Gold("g", "eval4nlp2021", GoldSide(Ragged.of([[0, 1]]), "g"))},
            DataError,
            "the explanations ('0' ...) and g ('0' ...) cover different segments: give gold data for these segments",
        ),
    ],
)
def test_thresholds_that_cannot_be_had_are_refused(
    stored: Path, options: dict[str, object], error: type[Exception] | None, message: str
) -> None:
    explanations = read_explanations(stored)
    if error is None:
        assert thresholds_of(explanations, **options) == Thresholds(minor=1.0)  # type: ignore[arg-type]
        return
    with pytest.raises(error, match=re.escape(message)):
        thresholds_of(explanations, **options)  # type: ignore[arg-type]


def test_ids_that_do_not_match_the_gold_are_named(stored: Path) -> None:
    message = (
        "the ids of token_f1 erasure and of the gold do not match; not in the gold: 2; without an explanation: 7, 8"
    )
    with pytest.raises(DataError, match=re.escape(message)):
        stored_submissions(read_explanations(stored), ["0", "1", "7", "8"])


def test_stored_explanations_are_judged_in_the_order_of_the_ids(stored: Path) -> None:
    [found] = stored_submissions(read_explanations(stored), ["2", "0", "1"])
    gold = Gold("toy", "eval4nlp2021", GoldSide(Ragged.of([[1, 0, 1], [0, 1, 0, 0], [0, 0, 0]]), "toy"))
    assert judge(gold, found, MetaevalWordsSettings(draws=0)).sides["target"].mean("auc") == 1.0  # type: ignore[union-attr]


def test_a_submission_is_written_and_read_back(data: Dataset, tmp_path: Path) -> None:
    done = submit(data, "token_f1", "erasure", tmp_path / "sub", team="me")
    assert [file.name for file in done.files] == ["target.submission", "sentence.submission", "metadata.txt"]
    assert done.submission.metadata == ("me", "constrained", "token_f1 erasure")
    assert done.submission.sides["target"].scores.lengths.tolist() == [4, 3, 3]
    wmt = submit(data, "token_f1", "erasure", tmp_path / "wmt", team="me", task="wmt22", description="mine")
    assert wmt.submission.metadata == ("me", "mine")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "x"}, "task is 'x', expected 'eval4nlp' or 'eval4nlp2021' or 'wmt22'"),
        ({"team": " "}, "needs the name of a team"),
    ],
)
def test_a_submission_that_cannot_be_made_is_refused(
    data: Dataset, tmp_path: Path, options: dict[str, str], message: str
) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        submit(data, "token_f1", "erasure", tmp_path, **({"team": "me"} | options))


def test_spans_as_error_scores_are_their_severities(tmp_path: Path) -> None:
    entry = Entry("0", "s", Segment("a bad cat"), spans=(ErrorSpan(2, 5, "major"), ErrorSpan(6, 7, "minor")))
    convert(Dataset("d", (entry,)), "eval4nlp", output=tmp_path / "out")
    assert (tmp_path / "out" / "target.submission").read_text("utf-8") == "0.0 2.0 1.0\n"


@dataclass(frozen=True)
class Letters:
    """Calls words by their first letter, and the whole text a text."""

    def signature(self) -> Signature:
        return Signature("letters")

    def tag(self, texts: Sequence[str]) -> list[tuple[Tagged, ...]]:
        return [(Tagged(0, 5, ("first",)), Tagged(6, 9, ("second", "also"))) for _ in texts]


def test_spans_without_a_category_take_the_feature_of_most_of_their_characters() -> None:
    spans = (ErrorSpan(0, 5), ErrorSpan(4, 9), ErrorSpan(0, 2, category="kept"), ErrorSpan(5, 6))
    found = categorise(Dataset("d", (Entry("0", "s", Segment("a bad cat"), spans=spans),)), Letters())
    assert [span.category for span in found.entries[0].spans or ()] == ["first", "also", "kept", None]


def test_real_taggers_give_categories() -> None:
    text = "in 1984 he was there"
    data = Dataset("d", (Entry("0", "s", Segment(text), spans=(ErrorSpan(3, 7),)),))
    assert [span.category for span in categorise(data, "rules").entries[0].spans or ()] == ["number"]


@pytest.mark.parametrize(
    ("to", "message"),
    [
        ("eval4nlp", "a submission is a folder: name it with -o"),
        ("xliff", "name it with --into, and the new file with -o"),
    ],
)
def test_folders_and_files_must_be_named(to: str, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        convert(Dataset("d", ()), to)


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(SpecError, match=re.escape("no dialect named 'x' can be written: use whyscore, spans")):
        convert(Dataset("d", ()), "x")


def test_equal_scores_have_no_automatic_threshold(tmp_path: Path) -> None:
    word = {"text": "a", "start": 0, "end": 1, "importance": 1.0}
    record = {"id": "0", "system": "s", "metric": "m", "explainer": "e", "side": "hypothesis", "reference": None}
    record |= {"words": [word], "score": 1.0, "probes": 1, "fit": None}
    header = {"schema": "whyscore/1", "schema_version": 1, "kind": "explanations", "signatures": {}, "created": "x"}
    path = tmp_path / "e.jsonl"
    lines = [json.dumps(header | {"dataset": {}, "counts": {}}), json.dumps(record)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    with pytest.raises(DataError, match=re.escape("all words have the same score: no threshold splits them")):
        thresholds_of(read_explanations(path), threshold="auto")
    path.write_text("\n".join([*lines, lines[1]]) + "\n", "utf-8")
    with pytest.raises(DataError, match=re.escape("e.jsonl:3: the id '0' is explained twice, first on line 2")):
        read_explanations(path)
    record["words"] = [word | {"importance": None}]
    path.write_text("\n".join([lines[0], json.dumps(record)]) + "\n", "utf-8")
    with pytest.raises(DataError, match=re.escape("e.jsonl:2: the importance of 'a' is null, expected a number")):
        read_explanations(path)


def test_spans_and_scores_go_into_the_file_they_were_read_from(tmp_path: Path) -> None:
    path = tmp_path / "x.xlf"
    unit = '<trans-unit id="7"><source>eine Katze</source><target>a dog</target></trans-unit>'
    path.write_text(f'<xliff version="1.2"><file><body>{unit}</body></file></xliff>', "utf-8")
    data = read_foreign(path)
    entry = Entry("7", "x", Segment("a dog", "eine Katze", ("a cat",)))
    assert (data.entries[0].id, data.entries[0].segment.hypothesis) == ("7", "a dog")
    [one] = explain([entry.segment], "token_f1", "erasure", sides=["hypothesis"])
    rows = explanation_lines(data, [ExplanationRecord.of(entry, "token_f1", "erasure", one)], {})
    (tmp_path / "e.jsonl").write_text("".join(rows), "utf-8")
    explanations = read_explanations(tmp_path / "e.jsonl")
    spans = spans_by(explanations, Thresholds(minor=0.0), texts=data)
    convert(spans, "xliff", into=path, output=tmp_path / "y.xlf")
    written = (tmp_path / "y.xlf").read_text("utf-8")
    assert 'its:locQualityIssueSeverity="25">dog</mrk></target>' in written
    assert '<note from="whyscore">token_f1 erasure 0.5</note></trans-unit>' in written
    assert read_foreign(tmp_path / "y.xlf").entries[0].segment == data.entries[0].segment


@pytest.mark.parametrize("target", ["mqm", "marot", "mtme", "wmtqe"])
@pytest.mark.parametrize("character", ["\n", "\t", "\r"])
def test_a_name_adds_no_row_to_a_file_that_knows_no_quotes(target: str, character: str, run: Run) -> None:
    rows = [
        {"id": "0", "system": name, "source": "a", "hypothesis": "a cat", "spans": [{"start": 0, "end": 1}]}
        for name in (f"x{character}forged", "y")
    ]
    Path("data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    done = run("convert", "data.jsonl", "--to", target, "-o", "out.tsv")
    assert done.code == 3
    assert "has a tab or a line end" in done.err
    assert not Path("out.tsv").exists()
