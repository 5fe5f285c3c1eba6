"""Maps between languages: what was planted is found again, and files keep it."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from whyscore.analysis.learn_map import learn_map
from whyscore.errors import DataError, SpecError
from whyscore.models.maps import Gram, LanguageMap, ibm1, mutual_nearest, read_links, read_map, write_map
from whyscore.protocols import Encoded
from whyscore.text.randomness import generator
from whyscore.text.splitters import white_space
from whyscore.types import Signature

WIDTH = 12


def rotation(seed: int = 0) -> NDArray[np.float64]:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((WIDTH, WIDTH)))[0]


class Bilingual:
    """Gives each word a random vector; words in capitals get that of the small word, turned round."""

    turn = rotation(1)

    def signature(self) -> Signature:
        return Signature("bilingual", (("rev", "1"), ("layer", "2")))

    def languages(self) -> None:
        return None

    def pooled(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([self.encode([text])[0].vectors.mean(axis=0) for text in texts])

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> Encoded:
        words = white_space(text)
        rows = [generator(0, word.lower()).standard_normal(WIDTH) for word in words]
        turned = [row @ self.turn if word.isupper() else row for row, word in zip(rows, words, strict=True)]
        vectors = np.array(turned, dtype=np.float32).reshape(-1, WIDTH)
        spans = np.array(words.spans, dtype=np.int64).reshape(-1, 2)
        return Encoded(vectors, spans, tuple(words), np.zeros(len(words), dtype=np.bool_), len(words))


def corpus(count: int = 60) -> tuple[list[str], list[str]]:
    rng = np.random.default_rng(2)
    vocabulary = [f"w{number}" for number in range(40)]
    sources = [" ".join(rng.choice(vocabulary, 6, replace=False)) for _ in range(count)]
    return sources, [text.upper() for text in sources]


def test_a_planted_rotation_is_recovered() -> None:
    source = np.random.default_rng(3).standard_normal((400, WIDTH))
    turn = rotation()
    gram = Gram(WIDTH)
    gram.add(source, source @ turn)
    found = gram.solve()
    assert found.projection == pytest.approx(turn, abs=1e-6)
    assert found.apply(source, "clp") == pytest.approx(source @ turn, abs=1e-6)


def test_a_planted_direction_is_recovered_up_to_its_sign() -> None:
    rng = np.random.default_rng(4)
    direction = rotation()[0]
    source = rng.standard_normal((400, WIDTH))
    gram = Gram(WIDTH)
    gram.add(source, source - np.outer(rng.standard_normal(400), direction))
    found = gram.solve()
    assert abs(float(found.direction @ direction)) == pytest.approx(1, abs=1e-6)
    assert np.abs(found.apply(source, "umd") @ direction).max() < 1e-6


def test_blocks_give_what_one_shot_gives() -> None:
    rng = np.random.default_rng(5)
    source, target = rng.standard_normal((2, 300, WIDTH))
    once, often = Gram(WIDTH), Gram(WIDTH)
    once.add(source, target)
    for start in range(0, 300, 7):
        often.add(source[start : start + 7], target[start : start + 7])
    whole, summed = once.solve(), often.solve()
    assert summed.projection == pytest.approx(whole.projection, abs=1e-10)
    assert summed.direction == pytest.approx(whole.direction, abs=1e-10)
    assert whole.projection.T @ whole.projection == pytest.approx(np.eye(WIDTH), abs=1e-8)
    assert (summed.facts["links"], whole.facts["links"]) == ("300", "300")


@pytest.mark.parametrize("aligner", ["given", "ibm1"])
def test_a_map_is_learned_from_translated_texts(aligner: str) -> None:
    sources, targets = corpus()
    links = [[(k, k) for k in range(6)] for _ in sources] if aligner == "given" else None
    options = {} if links is not None else {"aligner": aligner}
    found = learn_map(sources, targets, model=Bilingual(), alignments=links, **options)  # type: ignore[arg-type]
    assert found.projection == pytest.approx(Bilingual.turn, abs=1e-5)
    assert (found.facts["aligner"], found.facts["pairs"], found.facts["layer"]) == (aligner, "60", "2")


@pytest.mark.parametrize("ending", [".npz", ".safetensors"])
def test_a_written_map_is_read_back(tmp_path: Path, ending: str) -> None:
    learned = LanguageMap(rotation(), rotation()[0], {"model": "bilingual", "layer": "2"})
    write_map(learned, tmp_path / f"map{ending}")
    found = read_map(tmp_path / f"map{ending}")
    assert np.array_equal(found.projection, learned.projection)
    assert np.array_equal(found.direction, learned.direction)
    assert found.facts["digest"] == learned.digest


def test_published_maps_are_read_as_numbers(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "clp.txt", rotation())
    np.savetxt(tmp_path / "umd.txt", 3 * rotation()[0])
    assert read_map(tmp_path / "clp.txt").projection == pytest.approx(rotation())
    assert read_map(tmp_path / "umd.txt").direction == pytest.approx(rotation()[0])


def test_vectors_of_another_layer_are_refused() -> None:
    learned = LanguageMap(rotation(), None, {"model": "bilingual", "rev": "1", "layer": "8"})
    with pytest.raises(SpecError, match=re.escape("a.npz was learned for layer 8, the metric uses layer 2; learn it")):
        learned.check("a.npz", Bilingual().signature(), WIDTH)
    with pytest.raises(SpecError, match=re.escape("a.npz maps vectors of 12 numbers, the model gives 5")):
        learned.check("a.npz", Bilingual().signature(), 5)
    with pytest.raises(SpecError, match=re.escape("the map has no direction (umd); choose the other one")):
        learned.apply(rotation(), "umd")


def test_what_cannot_be_learned_or_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=re.escape("2 sources, 1 targets: every line needs its counterpart")):
        learn_map(["a", "b"], ["A"], model=Bilingual())
    with pytest.raises(DataError, match=re.escape("1: a link points outside the texts of 1 and 1 words")):
        learn_map(["a"], ["A"], model=Bilingual(), alignments=[[(0, 1)]])
    with pytest.raises(DataError, match="no pair of texts to learn from: every text is empty or too long"):
        learn_map([" "], ["A"], model=Bilingual())
    with pytest.raises(DataError, match=re.escape("learn one with learn_map")):
        read_map(tmp_path / "none.npz")
    (tmp_path / "bad.txt").write_text("not numbers\n", "utf-8")
    with pytest.raises(DataError, match="cannot be read as a map"):
        read_map(tmp_path / "bad.txt")


def test_words_are_linked_by_how_often_they_meet() -> None:
    sources = [["a", "b"], ["b", "c"], ["c", "a"], ["a"]]
    targets = [["A", "B"], ["B", "C"], ["C", "A"], ["A"]]
    assert ibm1(sources, targets) == [((0, 0), (1, 1)), ((0, 0), (1, 1)), ((0, 0), (1, 1)), ((0, 0),)]
    assert mutual_nearest(np.zeros((0, 3))) == ()


def test_published_links_are_read(shipped: Path) -> None:
    for pair, count in (("et-en", 13_541), ("ro-en", 16_659)):
        path = shipped / "eval4nlp2021" / "dev" / pair / "dev.src-mt.alignments"
        links = read_links(path.read_text("utf-8").splitlines(), file=str(path))
        assert len(links) == 1000
        assert sum(map(len, links)) == count
