"""BERTScore of a segment behind the segments before it: only its own units are matched."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from whyscore.errors import SpecError
from whyscore.metrics.matching.bertscore import BertScore, XBertScore
from whyscore.models.encoders.embedded import Embedded
from whyscore.models.matching import InContext, Reader, by_phrases, by_pieces
from whyscore.models.pairs import Pinned
from whyscore.protocols import Encoded
from whyscore.text.splitters import white_space
from whyscore.types import HYPOTHESIS, FloatVector, Segment, Signature

CONTEXT = Segment("The woman came in.", "Die Frau kam herein.", ("A woman entered.",))
SEGMENT = Segment("They laughed.", "Sie lachte.", ("She laughed.",), (CONTEXT,))


def by_hand(other: str, before: str, hypothesis: str, hypothesis_before: str) -> FloatVector:
    """Return precision and recall of the pieces of two texts that were encoded behind others."""

    def unit(text: str, context: str) -> NDArray[np.float64]:
        own = Embedded().encode([f"{context} {text}"])[0]
        kept = ~own.special & (own.spans[:, 1] > len(context) + 1)
        vectors = own.vectors[kept].astype(np.float64)
        found: NDArray[np.float64] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return found

    cosines = unit(other, before) @ unit(hypothesis, hypothesis_before).T
    return np.array([cosines.max(axis=0).mean(), cosines.max(axis=1).mean()])


def test_pieces_are_those_of_the_segment_in_its_context() -> None:
    source = XBertScore(mode="paper").statistics([SEGMENT])[0, :2]
    np.testing.assert_allclose(
        source, by_hand("Sie lachte.", "Die Frau kam herein.", "They laughed.", "The woman came in."), rtol=1e-6
    )
    reference = BertScore(model="embedded", mode="paper").statistics([SEGMENT])[0, :2]
    np.testing.assert_allclose(
        reference, by_hand("She laughed.", "A woman entered.", "They laughed.", "A woman entered."), rtol=1e-6
    )


@pytest.mark.parametrize("metric", [XBertScore(), XBertScore(mode="paper"), BertScore(model="embedded")])
def test_words_and_order_do_not_depend_on_how_often_one_asks(metric: BertScore) -> None:
    alone = Segment(SEGMENT.hypothesis, SEGMENT.source, SEGMENT.references)
    together = metric.score([SEGMENT, alone, SEGMENT])
    assert together[0] == together[2] != together[1]
    assert together[1] == metric.score([alone])[0]
    words = white_space(SEGMENT.hypothesis)
    (own,) = metric.word_scores([SEGMENT], HYPOTHESIS, [words])
    assert len(own.importance) == len(words) == 2
    blank = Segment("", SEGMENT.source, SEGMENT.references, (CONTEXT,))
    assert metric.score([blank]).tolist() == [0.0]


def test_a_context_without_texts_changes_nothing() -> None:
    alone = Segment(SEGMENT.hypothesis, SEGMENT.source, SEGMENT.references)
    empty = Segment(SEGMENT.hypothesis, SEGMENT.source, SEGMENT.references, (Segment(" ", None, ()),))
    for metric in (XBertScore(), BertScore(model="embedded")):
        assert metric.score([empty]) == metric.score([alone])


class Short:
    """An encoder that reads five pieces, each a word."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def signature(self) -> Signature:
        return Signature("short")

    def languages(self) -> None:
        return None

    def lengths(self, texts: Sequence[str]) -> list[tuple[int, int]]:
        return [(min(5, len(text.split())), len(text.split())) for text in texts]

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        self.read += texts
        found = []
        for text in texts:
            spans = np.array(white_space(text).spans, dtype=np.int64).reshape(-1, 2)
            vectors = np.eye(8, dtype=np.float32)[: len(spans)]
            pieces = tuple(text[start:end] for start, end in spans.tolist())
            found.append(Encoded(vectors, spans, pieces, np.zeros(len(spans), dtype=np.bool_), len(spans)))
        return found

    def pooled(self, texts: Sequence[str]) -> NDArray[np.float32]:
        raise NotImplementedError


def test_context_that_is_too_long_is_left_out_from_the_front() -> None:
    encoder = Short()
    reader = Reader(encoder, partial(by_pieces, encoder=encoder, specials="exclude"), Pinned(), Pinned(), Pinned())
    text = InContext("e f", ("a b", "c d"))
    ((own, _, _),) = reader.pairs([(text, InContext("e f"))])
    assert "c d e f" in encoder.read
    assert "a b c d e f" not in encoder.read
    assert (own.pieces, own.spans.tolist()) == (("e", "f"), [[0, 1], [2, 3]])
    assert own.vectors.argmax(axis=1).tolist() == [2, 3]
    ((alone, _, _),) = reader.pairs([(InContext("e f", ("a b c d",)), InContext("e f"))])
    assert alone.vectors.argmax(axis=1).tolist() == [0, 1]


def test_runs_of_words_never_reach_into_the_context() -> None:
    encoder = Short()
    reader = Reader(encoder, partial(by_phrases, encoder=encoder, orders=3), Pinned(), Pinned(), Pinned())
    ((own, _, _),) = reader.pairs([(InContext("e f", ("a b",)), InContext("e f"))])
    assert own.runs == (2, 1)
    assert len(own.vectors) == 3
    np.testing.assert_allclose(own.vectors[2], [0, 0, 0.5, 0.5, 0, 0, 0, 0])


def test_a_network_is_not_looked_into_with_context() -> None:
    with pytest.raises(SpecError, match="cannot be looked into with context"):
        XBertScore(mode="paper").inspect([SEGMENT])
