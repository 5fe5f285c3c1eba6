"""Log-probabilities of the generating system as word scores."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from whyscore.errors import DataError, SpecError
from whyscore.explainers.logprob import LogProb
from whyscore.protocols import WordScorer
from whyscore.text.splitters import WhiteSpace, white_space
from whyscore.types import HYPOTHESIS, SOURCE, Segment, WordScores


def _scores(explainer: LogProb, *texts: str) -> list[WordScores]:
    return explainer.word_scores([Segment(text) for text in texts], HYPOTHESIS, [white_space(text) for text in texts])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "probs.jsonl"
    lines = [
        {"tokens": ["▁The", "▁ca", "t", "▁s", "at", "."], "logprobs": [-1, -0.5, -2.5, -3, -1, -0.25, -9]},
        {"tokens": [" On", " the mat"], "logprobs": [-0.5, -4.0]},
    ]
    path.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines), encoding="utf-8")
    return path


@pytest.mark.parametrize(("pool", "expected"), [
    ("min", [-1, -2.5, -3]),
    ("sum", [-1, -3, -4.25]),
    ("mean", [-1, -1.5, -4.25 / 3]),
    ("first", [-1, -0.5, -3]),
])  # fmt: skip
def test_pieces_are_pooled_to_words_and_the_end_belongs_to_none(table: Path, pool: str, expected: list[float]) -> None:
    explainer = LogProb(str(table), pool=pool)  # type: ignore[arg-type]
    (found,) = _scores(explainer, "The  cat sat.")
    assert found.importance.tolist() == expected
    assert found.notes == ("The -1", "ca -0.5, t -2.5", "s -3, at -1, . -0.25")
    assert isinstance(explainer, WordScorer)


def test_a_piece_over_a_border_counts_for_both_words(table: Path) -> None:
    (found,) = _scores(LogProb(str(table)), "On the mat")
    assert found.importance.tolist() == [-0.5, -4.0, -4.0]


def test_a_text_without_words_needs_no_line(table: Path) -> None:
    (found,) = _scores(LogProb(str(table)), "  ")
    assert found.importance.shape == (0,)


@pytest.mark.parametrize("pair", ["et-en", "ro-en"])
def test_all_published_translations_are_found_and_aligned(shipped: Path, pair: str) -> None:
    texts = (shipped / "eval4nlp2021" / "dev" / pair / "dev.mt").read_text(encoding="utf-8").split("\n")[:-1]
    folder = shipped / "mlqe_pe_wordprobas" / "dev" / pair
    found = {pool: _found(folder, pool, texts) for pool in ("min", "sum", "mean", "first")}
    pieces = (folder / "mt.bpe").read_text(encoding="utf-8").split("\n")
    numbers = (folder / "word_probas").read_text(encoding="utf-8").split("\n")
    crossing = 0
    for k, text in enumerate(texts):
        values = np.array(numbers[k].split(), dtype=np.float64)[:-1]
        own = {pool: found[pool][k].importance for pool in found}
        assert len(values) == len(pieces[k].split())
        assert all(len(vector) == len(text.split(" ")) for vector in own.values())
        assert (own["sum"] <= own["min"]).all()
        assert (own["min"] <= own["mean"] + 1e-12).all()
        assert (own["min"] <= own["first"]).all()
        assert own["first"][0] == values[0]
        assert own["min"].min() == values.min()
        crossing += bool(abs(own["sum"].sum() - values.sum()) > 1e-9)
    assert len(texts) == 1000
    assert 1 <= crossing <= 2  # two pieces per set cross a border and are counted twice


def _found(folder: Path, pool: str, texts: list[str]) -> list[WordScores]:
    words = [WhiteSpace(separator="space").split(text) for text in texts]
    explainer = LogProb(str(folder), pool=pool)  # type: ignore[arg-type]
    return explainer.word_scores([Segment(text) for text in texts], HYPOTHESIS, words)


def test_the_first_published_sentence_by_hand(shipped: Path) -> None:
    text = "Two soldiers were injured and brought to Tskinvali 's hospital for treatment ."
    (found,) = _scores(LogProb(str(shipped / "mlqe_pe_wordprobas" / "dev" / "et-en"), pool="sum"), text)
    assert found.importance[7] == pytest.approx(-0.1798 - 0.4658 - 0.8249 - 0.2150 - 0.0062, abs=1e-12)
    assert found.importance[8] == -0.8025


def test_entities_hyphens_and_joints_of_bpe_are_read(tmp_path: Path) -> None:
    (tmp_path / "mt.bpe").write_text("it &apos;s a w@@ ell @-@ known &lt;b&gt;\n")
    (tmp_path / "word_probas").write_text("-1 -2 -3 -4 -5 -6 -7 -8 -9\n")
    (found,) = _scores(LogProb(str(tmp_path), pool="sum"), "it 's a well-known <b>")
    assert found.importance.tolist() == [-1, -2, -3, -22, -8]


def test_an_unknown_text_is_an_error_and_never_a_near_match(table: Path) -> None:
    message = f"{table}: no log-probabilities for the hypothesis 'The cat sat!'; add its line"
    with pytest.raises(DataError, match=re.escape(message)):
        _scores(LogProb(str(table)), "The cat sat!")


def test_only_the_hypothesis_was_generated(table: Path) -> None:
    with pytest.raises(SpecError, match="logprob explains the hypothesis, which the system generated; asked for the s"):
        LogProb(str(table)).word_scores([Segment("a", "b")], SOURCE, [white_space("b")])


@pytest.mark.parametrize(("content", "message"), [
    ('{"tokens": ["a"]}', ':1: expected tokens and logprobs, two lists, found {"tokens": ["a"]}'),
    ('{"tokens": [1], "logprobs": [-1]}', ":1: expected tokens and logprobs, two lists"),
    ('\n{"tokens" 3}', ":2:11: not JSON: Expecting ':' delimiter"),
    ('{"tokens": ["a"], "logprobs": [-1, -2, -3]}', ":1: 3 log-probabilities for 1 pieces, expected as many or one"),
    ('{"tokens": ["a"], "logprobs": ["x"]}', ":1: 'x' is not a log-probability, expected a finite number"),
    ('{"tokens": ["a"], "logprobs": [null]}', ":1: None is not a log-probability, expected a finite number"),
    ('{"tokens": ["a"], "logprobs": [-1]}\n{"tokens": ["a"], "logprobs": [-2]}', ":2: the same text as line 1 with "),
])  # fmt: skip
def test_files_that_cannot_be_used_are_refused_with_their_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "probs.jsonl"
    path.write_text(content)
    with pytest.raises(DataError, match=re.escape(f"{path}{message}")):
        _scores(LogProb(str(path)), "a")


def test_equal_lines_are_one(tmp_path: Path) -> None:
    path = tmp_path / "probs.jsonl"
    path.write_text('{"tokens": ["a"], "logprobs": [-1]}\n' * 2)
    assert _scores(LogProb(str(path)), "a")[0].importance.tolist() == [-1]


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "probs.jsonl"
    path.write_text('{"tokens": ["a"], "logprobs": [-1]}')
    assert _scores(LogProb(str(path)), "a")[0].importance.tolist() == [-1]
    path.write_text('{"tokens": ["a"], "logprobs": [-1.25]}')
    assert _scores(LogProb(str(path)), "a")[0].importance.tolist() == [-1.25]


def test_missing_and_unequal_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=re.escape("nowhere.jsonl: cannot be read: No such file or directory")):
        _scores(LogProb(str(tmp_path / "nowhere.jsonl")), "a")
    with pytest.raises(DataError, match=re.escape("mt.bpe: cannot be read: No such file or directory")):
        _scores(LogProb(str(tmp_path)), "a")
    (tmp_path / "mt.bpe").write_text("a\nb\n")
    (tmp_path / "word_probas").write_text("-1 -2\n")
    with pytest.raises(DataError, match=re.escape("mt.bpe has 2 lines, ")):
        _scores(LogProb(str(tmp_path)), "a")
    (tmp_path / "latin.jsonl").write_bytes(b'{"tokens": ["\xe9"]}')
    with pytest.raises(DataError, match=re.escape("latin.jsonl: is not UTF-8 at byte 13; convert it")):
        _scores(LogProb(str(tmp_path / "latin.jsonl")), "a")
