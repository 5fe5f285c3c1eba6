"""Maskers that put plausible words in the place of hidden ones."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyscore.errors import DataError, SpecError
from whyscore.protocols import Masker, Probes
from whyscore.text.infill import Infill, InfillFile, learn
from whyscore.text.splitters import Characters, white_space
from whyscore.types import KeepMasks, Words

CORPUS = ("the cat sat on the mat", "the dog sat on the rug", "a cat ran", "a dog ran home")


def _hiding(number: int, *hidden: int) -> KeepMasks:
    mask = np.ones((1, number), dtype=np.bool_)
    mask[0, list(hidden)] = False
    return mask


def _one(masker: Masker, words: Words, masks: KeepMasks) -> Probes:
    (probes,) = masker.render([(words, masks)])
    return probes


# The n-gram model.


def test_a_place_is_filled_by_what_both_sides_expect() -> None:
    words = white_space("the  ??? sat on")
    probes = _one(Infill(CORPUS, top=2), words, _hiding(4, 1))
    assert sorted(probes.texts) == ["the  cat sat on", "the  dog sat on"]
    assert probes.rows == [0, 0]
    assert probes.weights == pytest.approx([0.5, 0.5])


def test_the_hidden_word_itself_is_not_looked_at() -> None:
    shown = [
        _one(Infill(CORPUS, top=5), white_space(f"the {word} sat"), _hiding(3, 1)).texts for word in ("cat", "unseen")
    ]
    assert shown[0] == shown[1]


def test_probabilities_by_hand() -> None:
    model = learn([["a", "b"], ["a", "b"], ["a", "c"]])
    assert model.words == ("a", "b", "c")
    frequency = np.array([3, 2, 1]) / 6
    left = frequency
    for seen, kinds in (([0, 2, 1], 2), ([0, 2, 1], 2)):  # after "a", then after border and "a"
        left = left * kinds / (3 + kinds) + np.array(seen) / (3 + kinds)
    right = frequency
    for seen, kinds in (([0, 2, 1], 2), ([0, 2, 1], 2)):  # before one border, then before two
        right = right * kinds / (3 + kinds) + np.array(seen) / (3 + kinds)
    expected = left * right / frequency
    assert model.probabilities(["a", "?"], 1) == pytest.approx(expected / expected.sum(), abs=1e-15)


@settings(deadline=None)
@given(
    corpus=st.lists(st.lists(st.sampled_from("abcde"), max_size=6), min_size=1, max_size=6).filter(any),
    sentence=st.lists(st.sampled_from("abcxyz"), min_size=1, max_size=6),
    data=st.data(),
)
def test_probabilities_are_positive_and_sum_to_one(
    corpus: list[list[str]], sentence: list[str], data: st.DataObject
) -> None:
    model = learn(corpus)
    found = model.probabilities(sentence, data.draw(st.integers(0, len(sentence) - 1)))
    assert found.sum() == pytest.approx(1)
    assert (found > 0).all()
    assert len(found) == len({word for words in corpus for word in words})


def test_a_corpus_is_a_file_or_texts_and_both_give_the_same(tmp_path: Path) -> None:
    path = tmp_path / "ref.txt"
    path.write_text("\n".join(CORPUS) + "\n")
    words, mask = white_space("the cat sat"), _hiding(3, 2)
    from_file, from_texts = _one(Infill(str(path)), words, mask), _one(Infill(CORPUS), words, mask)
    assert list(from_file.texts) == list(from_texts.texts)
    assert np.array_equal(from_file.weights, from_texts.weights)
    path.write_text("the cat slept")
    assert list(_one(Infill(str(path)), words, mask).texts) == ["the cat slept", "the cat cat", "the cat the"]


def test_what_is_rendered_together_changes_nothing() -> None:
    masker = Infill(CORPUS, top=3)
    asked = [(white_space(text), _hiding(len(text.split()), 0, 1)) for text in CORPUS]
    together = masker.render(asked)
    alone = [_one(masker, *one) for one in reversed(asked)][::-1]
    assert [list(probes.texts) for probes in together] == [list(probes.texts) for probes in alone]
    assert all(np.array_equal(a.weights, b.weights) for a, b in zip(together, alone, strict=True))


def test_a_corpus_is_cut_as_the_texts_are() -> None:
    words = Characters().split("你好吗")
    probes = _one(Infill(("你好", "我好"), splitter=Characters(), top=1), words, _hiding(3, 2))
    assert list(probes.texts) == ["你好好"]


# What all infill maskers share.


def test_keeping_every_word_gives_the_text_back() -> None:
    words = white_space(" the  cat\t")
    probes = _one(Infill(CORPUS), words, np.ones((2, 2), dtype=np.bool_))
    assert list(probes.texts) == [" the  cat\t"] * 2
    assert probes.rows == [0, 1]
    assert probes.weights is not None
    assert probes.weights.tolist() == [1, 1]


def test_no_mask_gives_no_text() -> None:
    probes = _one(Infill(CORPUS), white_space(""), np.zeros((0, 0), dtype=np.bool_))
    assert list(probes.texts) == []


def test_weights_of_each_mask_sum_to_one() -> None:
    words = white_space("the cat sat on the mat")
    masks = np.vstack([~np.eye(6, dtype=np.bool_), np.zeros((1, 6), dtype=np.bool_), np.ones((1, 6), dtype=np.bool_)])
    probes = _one(Infill(CORPUS, draws=7), words, masks)
    assert probes.rows is not None
    assert np.bincount(probes.rows, probes.weights) == pytest.approx(np.ones(8))
    assert np.bincount(probes.rows)[6:].tolist() == [7, 1]


def test_several_hidden_words_are_drawn_by_their_weights() -> None:
    words = white_space("the ? sat ? the mat")
    probes = _one(Infill(CORPUS, draws=4000, threshold=0.0), words, _hiding(6, 1, 3))
    singles = _one(Infill(CORPUS, threshold=0.0), words, _hiding(6, 1))
    share = {text.split()[1]: weight for text, weight in zip(singles.texts, singles.weights, strict=True)}
    drawn = [text.split()[1] for text in probes.texts]
    for word, weight in share.items():
        assert drawn.count(word) / 4000 == pytest.approx(weight, abs=0.03)


def _table(tmp_path: Path, probabilities: dict[str, float]) -> str:
    path = tmp_path / "candidates.jsonl"
    rows = [{"text": "a b", "word": 1, "candidate": c, "probability": p} for c, p in probabilities.items()]
    path.write_text("\n".join(map(json.dumps, rows)))
    return str(path)


@pytest.mark.parametrize(("options", "texts", "weights"), [
    ({}, ["a x", "a y", "a z"], [0.5 / 0.8, 0.2 / 0.8, 0.1 / 0.8]),
    ({"top": 2}, ["a x", "a y"], [0.5 / 0.7, 0.2 / 0.7]),
    ({"threshold": 0.1}, ["a x", "a y"], [0.5 / 0.7, 0.2 / 0.7]),
    ({"threshold": 0.9}, ["a x"], [1.0]),
    ({"top": 2, "mode": "compat"}, ["a x", "a y"], [1 / (1 + np.exp(-0.3)), 1 / (1 + np.exp(0.3))]),
])  # fmt: skip
def test_candidates_are_kept_by_threshold_and_rank(
    tmp_path: Path, options: dict[str, object], texts: list[str], weights: list[float]
) -> None:
    path = _table(tmp_path, {"z": 0.1, "x": 0.5, "y": 0.2, "rare": 0.00001})
    probes = _one(InfillFile(path, **options), white_space("a b"), _hiding(2, 1))  # type: ignore[arg-type]
    assert list(probes.texts) == texts
    assert probes.weights == pytest.approx(weights, abs=1e-15)


def test_candidates_of_probability_zero_share_equally(tmp_path: Path) -> None:
    probes = _one(InfillFile(_table(tmp_path, {"x": 0.0, "y": 0.0})), white_space("a b"), _hiding(2, 1))
    assert list(probes.texts) == ["a x"]
    assert probes.weights is not None
    assert probes.weights.tolist() == [1]


def test_a_word_without_candidates_is_named(tmp_path: Path) -> None:
    path = _table(tmp_path, {"x": 0.5})
    with pytest.raises(DataError, match=re.escape(f"{path}: no candidates for word 0 'a' of 'a b'; add its lines")):
        _one(InfillFile(path), white_space("a b"), _hiding(2, 0))


@pytest.mark.parametrize(("line", "message"), [
    ("nonsense", ":1:1: not JSON: Expecting value"),
    ('{"text": "a"}', ':1: expected text, word (from 0), candidate and probability (0 to 1), found {"text": "a"}'),
    ('{"text": "a", "word": -1, "candidate": "b", "probability": 0.5}', ":1: expected text, word (from 0)"),
    ('{"text": "a", "word": 0, "candidate": "b", "probability": 1.5}', ":1: expected text, word (from 0)"),
    ('{"text": "a", "word": 0, "candidate": "b", "probability": NaN}', ":1: expected text, word (from 0)"),
    ('{"text": "a", "word": 0, "candidate": "b", "probability": 1}\n' * 2, ":2: candidate 'b' of word 0 is given twi"),
])  # fmt: skip
def test_lines_that_cannot_be_used_are_refused(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "candidates.jsonl"
    path.write_text(line)
    with pytest.raises(DataError, match=re.escape(f"{path}{message}")):
        _one(InfillFile(str(path)), white_space("a"), _hiding(1, 0))


def test_corpora_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    words, mask = white_space("a"), _hiding(1, 0)
    with pytest.raises(DataError, match=re.escape("nowhere.txt: cannot be read: No such file or directory")):
        _one(Infill(str(tmp_path / "nowhere.txt")), words, mask)
    (tmp_path / "blank.txt").write_text("\n \n")
    with pytest.raises(DataError, match=re.escape("blank.txt: has no word to learn from; give a text file, one text")):
        _one(Infill(str(tmp_path / "blank.txt")), words, mask)
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    with pytest.raises(DataError, match=re.escape("latin.txt: is not UTF-8 at byte 3; convert it")):
        _one(Infill(str(tmp_path / "latin.txt")), words, mask)
    with pytest.raises(SpecError, match="infill: the corpus has no word; give texts, or the path of a text file"):
        _one(Infill(("", " ")), words, mask)


@pytest.mark.parametrize(("options", "message"), [
    ({"corpus": 3}, "Infill: corpus is 3, expected a text or a list of texts"),
    ({"threshold": 1.0}, "infill: threshold is 1.0, expected a probability of 0 or more and below 1"),
    ({"top": 0}, "infill: top is 0, expected 1 or more, or None for all"),
    ({"draws": 0}, "infill: draws is 0, expected 1 or more"),
])  # fmt: skip
def test_options_out_of_range_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        Infill(**{"corpus": "ref.txt", **options})  # type: ignore[arg-type]
