"""Vectors of phrases: those of the whole text are the model's own, and pieces are summed as they stand."""

from collections.abc import Sequence

import numpy as np
import pytest

from whyscore.models.encoders import embedded
from whyscore.models.encoders.embedded import (
    Embedded,
    Surprising,
    code,
    mean_phrases,
    parts,
    pool_phrases,
    pools_itself,
)
from whyscore.models.encoders.static import Static
from whyscore.protocols import Encoder

TEXTS = ["The cat sat on the mat.", "我喜欢狗。", "one", "  two  blanks "]


def wholes(encoder: Encoder, texts: Sequence[str]) -> list[np.ndarray]:
    return [
        mean_phrases(own, np.array([[0, int((~own.special).sum())]], dtype=np.intp))[0] for own in encoder.encode(texts)
    ]


def pooled_runs(texts: Sequence[str], *, whole: bool = True) -> list[np.ndarray]:
    """Return the vectors of all runs of one to three pieces, and of the whole text."""
    coded = [code(text) for text in texts]
    sizes = [len(own.places) for own in coded]
    ranges = [
        np.array([(k, k + n) for n in (1, 2, 3) for k in range(size - n + 1)] + [(0, size)] * whole, dtype=np.intp)
        for size in sizes
    ]
    return [own.vectors for own in pool_phrases(coded, [own.reshape(-1, 2) for own in ranges], sizes)]


def unit_rows(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_the_phrase_that_is_the_whole_text_has_the_vector_of_the_text() -> None:
    for rows, pooled in zip(pooled_runs([*TEXTS, " "]), Embedded().pooled([*TEXTS, " "]), strict=True):
        np.testing.assert_allclose(rows[-1] / np.linalg.norm(rows[-1]), pooled, rtol=0, atol=1e-6)


def test_a_phrase_is_pooled_like_a_text_of_its_pieces() -> None:
    """The definition, in double precision: projections summed with begin and end, then the last layers."""
    entrance, d1, exits, d3 = (own.values for own in parts().weights.hidden)
    (p1, d0), (p3, d2) = np.split(entrance, 2, axis=1), np.split(exits, 2, axis=1)
    text = TEXTS[0]
    (own,) = Embedded().encode([text])
    vectors = own.vectors.astype(np.float64)
    (found,) = pooled_runs([text], whole=False)
    (means,) = (one.means for one in pool_phrases([code(text)], [np.array([[1, 4]], dtype=np.intp)], [1]))
    np.testing.assert_allclose(means[0], vectors[2:5].mean(axis=0), rtol=0, atol=1e-5)
    size = len(vectors) - 2
    for row, (start, end) in zip(found, [(k, k + n) for n in (1, 2, 3) for k in range(size - n + 1)], strict=True):
        mean = (vectors[1 + start : 1 + end].sum(axis=0) + vectors[0] + vectors[-1]) / np.sqrt(end - start + 2)
        middle = np.maximum(mean @ p1 + np.maximum(mean @ d0, 0) @ d1, 0)
        np.testing.assert_allclose(row, np.tanh(middle @ p3 + np.maximum(middle @ d2, 0) @ d3), rtol=0, atol=2e-6)


def test_phrases_are_the_same_beside_other_texts() -> None:
    """Texts that share words with this one, and so its phrases, change no digit."""
    (alone,) = pooled_runs([TEXTS[0]])
    among = pooled_runs(["The cat sat", *TEXTS[1:], "The cat sat on the mat, too", TEXTS[0], TEXTS[0]])
    for rows in among[-2:]:
        np.testing.assert_array_equal(rows, alone)


@pytest.mark.parametrize("encoder", [Embedded(1), Embedded(0), Static()])
def test_other_encoders_take_the_mean_of_the_pieces(encoder: Encoder) -> None:
    for vector, own in zip(wholes(encoder, TEXTS), encoder.encode(TEXTS), strict=True):
        np.testing.assert_allclose(vector, own.vectors[~own.special].mean(axis=0), rtol=0, atol=1e-5)


@pytest.mark.parametrize("atoms", [1, 3])
def test_phrases_are_the_same_however_many_stretches_are_held_at_once(
    atoms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Masked words: many stretches of pieces and their neighbourhoods are equal, and stand in several groups.
    words = ["The", "unbelievable", "cat", "of", "Szczebrzeszyn", "sat", "on", "the", "extraordinarily", "old", "mat"]
    probes = [*TEXTS, *(" ".join(words[:k] + words[k + 1 :]) for k in range(len(words)))]
    whole = pooled_runs(probes)
    monkeypatch.setattr(embedded, "_ATOMS", atoms)
    for here, there in zip(pooled_runs(probes), whole, strict=True):
        np.testing.assert_array_equal(here, there)


def test_a_phrase_is_the_sum_of_its_pieces_alone() -> None:
    (own,) = Static().encode(["a cat and a dog"])
    first, middle = mean_phrases(own, np.array([[0, 1], [1, 3]], dtype=np.intp))
    np.testing.assert_allclose(first, own.vectors[0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(middle, own.vectors[1:3].mean(axis=0), rtol=0, atol=1e-6)


def test_a_text_without_pieces_has_a_vector_all_the_same() -> None:
    assert np.isfinite(wholes(Static(), [" "])[0]).all()
    assert pool_phrases([], []) == []


def test_the_embedded_encoder_pools_by_itself_and_knows_surprise() -> None:
    assert pools_itself(Embedded())
    assert not pools_itself(Embedded(1))
    assert not pools_itself(Static())
    assert isinstance(Embedded(), Surprising)
    assert not isinstance(Static(), Surprising)
