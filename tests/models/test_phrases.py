"""Vectors of phrases: those of the whole text are the model's own, and pieces are summed as they stand."""

from collections.abc import Sequence

import numpy as np
import pytest

from whyscore.models.encoders.embedded import Embedded, Ranges, Surprising, phrase_vectors, pools_itself
from whyscore.models.encoders.static import Static
from whyscore.protocols import Encoder

TEXTS = ["The cat sat on the mat.", "我喜欢狗。", "one", "  two  blanks "]


def wholes(encoder: Encoder, texts: Sequence[str]) -> list[np.ndarray]:
    encoded = encoder.encode(texts)
    ranges: list[Ranges] = [np.array([[0, int((~own.special).sum())]], dtype=np.intp) for own in encoded]
    return [rows[0] for rows in phrase_vectors(encoder, encoded, ranges)]


def test_the_phrase_that_is_the_whole_text_has_the_vector_of_the_text() -> None:
    for vector, pooled in zip(wholes(Embedded(), TEXTS), Embedded().pooled(TEXTS), strict=True):
        np.testing.assert_allclose(vector / np.linalg.norm(vector), pooled, rtol=0, atol=1e-5)


@pytest.mark.parametrize("encoder", [Embedded(1), Embedded(0), Static()])
def test_other_encoders_take_the_mean_of_the_pieces(encoder: Encoder) -> None:
    for vector, own in zip(wholes(encoder, TEXTS), encoder.encode(TEXTS), strict=True):
        np.testing.assert_allclose(vector, own.vectors[~own.special].mean(axis=0), rtol=0, atol=1e-5)


def test_a_phrase_is_the_sum_of_its_pieces_alone() -> None:
    (own,) = Static().encode(["a cat and a dog"])
    ((first, middle),) = phrase_vectors(Static(), [own], [np.array([[0, 1], [1, 3]], dtype=np.intp)])
    np.testing.assert_allclose(first, own.vectors[0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(middle, own.vectors[1:3].mean(axis=0), rtol=0, atol=1e-6)


def test_a_text_without_pieces_has_a_vector_all_the_same() -> None:
    for encoder in (Embedded(), Static()):
        (vector,) = wholes(encoder, [" "])
        assert np.isfinite(vector).all()
    assert phrase_vectors(Static(), [], []) == []


def test_the_embedded_encoder_pools_by_itself_and_knows_surprise() -> None:
    assert pools_itself(Embedded())
    assert not pools_itself(Embedded(1))
    assert not pools_itself(Static())
    assert isinstance(Embedded(), Surprising)
    assert not isinstance(Static(), Surprising)
