"""Word scores from attention, weighted by the length of what is attended to.

1. In each block and head, piece i attends to piece j with weight a_ij. What j sends is its value vector after the
   head's share of the output projection, f(x_j); its effect is a_ij * |f(x_j)| (Kobayashi et al. 2020, arXiv
   2004.10102; for quality estimation Treviso et al. 2021). Without `norm` it is a_ij alone.
2. Relevance of piece j: the mean of this over the pieces i of its row, special ones included; with `cross` only over
   the pieces of the other texts in the row, for networks that read texts together. Where an encoder reads one text
   and a decoder the other (BART), that is the attention of the decoder to the text of the encoder.
3. Take one block and one head, or the mean over blocks or heads. With `weights`, one per block, take the weighted sum
   over blocks instead: those of a metric that mixes its layers, or some learned on labelled data.
4. Importance = -relevance. Attention is a magnitude without a sign: it says that a word mattered, not in which way.
   Quality estimators look at errors, and the Eval4NLP 2021 shared task took it as the error score, un-negated; the
   error score is minus the importance.

Heads differ much. `best_head` picks one on labelled data; the choice stands in the options, marked `tuned`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from whyscore.errors import DataError, SpecError
from whyscore.explainers.checks import check_least
from whyscore.models.attribution.attention import attended
from whyscore.models.attribution.blocks import batched, beside, depth_of, per_reading, real, towers_of
from whyscore.models.attribution.interface import (
    Fill,
    Inside,
    PieceScorer,
    Reading,
    at_place,
    opened,
    pooled_words,
    rows_of,
)
from whyscore.protocols import Metric, WordScorer
from whyscore.settings import check_fields
from whyscore.text.alignment import Pool
from whyscore.types import FloatMatrix, FloatVector, Place, Segment, Words

WHO = "attention"

Mean = Literal["mean"]

HeadScores = NDArray[np.float64]
"""Blocks x heads x words."""


@dataclass(frozen=True, slots=True)
class Attention:
    """Explains a metric by the attention in its network; needs a metric with a network inside.

    Args:
        norm: weight attention by the norm of the attended piece.
        layer: which block, from 1; or the mean over all.
        head: which head of it, from 1; or the mean over all.
        cross: only attention from the other texts, for networks that read texts together.
        pool: how pieces make a word.
        fill: what a word without a piece gets.
        tuned: whether layer, head or weights were chosen on labelled data; changes no number, but is in the signature.
        weights: one per block, for their weighted sum in place of `layer`; taken as they are, not scaled to one.
    """

    norm: bool = True
    layer: int | Mean = "mean"
    head: int | Mean = "mean"
    cross: bool = False
    pool: Pool = "sum"
    fill: Fill = "error"
    tuned: bool = False
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        for name, value in (("layer", self.layer), ("head", self.head)):
            if value != "mean":
                check_least(WHO, name, value, 1)
        if self.weights is not None:
            self._check_weights(self.weights)

    def inside(self, metric: Metric) -> WordScorer:
        """Return the word scores of a metric that can be looked into."""

        def values(inside: Inside, place: Place) -> list[list[FloatVector]]:
            layers = range(1, depth_of(inside) + 1) if self.layer == "mean" else [self.layer]
            tables = self._tables(inside, place, layers)
            return [[-self._chosen(table) for table in rows] for rows in tables]

        what = "-attention x norm" if self.norm else "-attention"
        return PieceScorer(opened(metric, WHO), values, "mean", self.pool, self.fill, what)

    def heads(
        self, metric: Metric, segments: Sequence[Segment], place: Place, words: Sequence[Words]
    ) -> list[HeadScores]:
        """Return the relevance of each word in every block and head, for `best_head`; layer and head are not read."""
        inside = opened(metric, WHO).inspected(segments)
        tables = self._tables(inside, place, range(1, depth_of(inside) + 1))
        found = []
        for own, reading, rows in zip(words, inside.readings, tables, strict=True):
            part, values = at_place(reading, place, rows, "mean")
            pooled = [
                [pooled_words(own, part, vector, self.pool, self.fill).values for vector in block] for block in values
            ]
            found.append(np.array(pooled, dtype=np.float64))
        return found

    def _check_weights(self, weights: tuple[float, ...]) -> None:
        if self.layer != "mean":
            told = f"layer is {self.layer} and weights are given; say one block, or the weight of every block"
            raise SpecError(f"{WHO}: {told}")
        if not np.isfinite(weights).all() or not any(weights):
            raise SpecError(f"{WHO}: weights are {weights}, expected finite numbers that are not all 0")

    def _tables(self, inside: Inside, place: Place, layers: Sequence[int]) -> list[list[FloatMatrix]]:
        """Return the relevance of each piece of each row of each reading, as blocks x heads x pieces."""
        blocks = depth_of(inside)
        if max(layers) > blocks:
            told = f"layer is {self.layer!r}, but the network has {blocks} blocks; say 1 to {blocks} or 'mean'"
            raise SpecError(f"{WHO}: {told}")
        across = self.cross and len(towers_of(inside)) > 1
        if self.cross:
            _check_cross(inside, place, across=across)

        def compute(batch: list[Reading]) -> list[list[FloatMatrix]]:
            lines = rows_of(batch)
            asking = beside(lines, place, inside.device) if self.cross else real(lines, inside.device)
            return per_reading(batch, attended(inside, batch, layers, asking, norm=self.norm, across=across))

        return batched(inside, compute)

    def _chosen(self, table: FloatMatrix) -> FloatVector:
        """Return one number per piece from blocks x heads x pieces."""
        blocks, heads = table.shape[:2]
        if self.head != "mean" and self.head > heads:
            raise SpecError(f"{WHO}: head is {self.head}, but a block has {heads}; say 1 to {heads} or 'mean'")
        chosen = table.mean(axis=1) if self.head == "mean" else table[:, self.head - 1]
        if self.weights is None:
            return np.asarray(chosen.mean(axis=0))
        if len(self.weights) != blocks:
            raise SpecError(
                f"{WHO}: {len(self.weights)} weights came, but the network has {blocks} blocks; say one each"
            )
        return np.asarray(np.array(self.weights) @ chosen)


def _check_cross(inside: Inside, place: Place, *, across: bool) -> None:
    """Refuse attention across texts where no text attends to the one at a place."""
    lines = rows_of(inside.readings)
    if across:
        written = any(part.place == place for line in lines[towers_of(inside)[1].rows] for part in line.parts)
        reason = f"no text attends to the {place}, which {inside.who} predicts" if written else None
    else:
        together = any(len(line.parts) > 1 for line in lines)
        reason = None if together else f"{inside.who} reads each text by itself, so that no text attends to another"
    if reason is not None:
        raise SpecError(f"{WHO}: {reason}; leave out cross=True")


class BestHead(NamedTuple):
    """The head whose relevance finds errors best, both counted from 1, and how well every head does."""

    layer: int
    head: int
    auc: FloatMatrix
    """Blocks x heads: the mean area under the ROC curve over the texts."""
    texts: int
    """How many texts stand behind it: those with words of both labels."""

    def chosen(self, attention: Attention) -> Attention:
        """Return an explainer with this head, marked as tuned."""
        return replace(attention, layer=self.layer, head=self.head, tuned=True)


def best_head(scores: Sequence[HeadScores], labels: Sequence[Sequence[int]]) -> BestHead:
    """Return the head with the largest area under the ROC curve, averaged over texts; the lowest one among equals.

    Args:
        scores: Of each text, the relevance of its words in every block and head; words without a number do not count.
        labels: Of each text, 1 for words that are errors and 0 for the others.

    >>> best_head([np.array([[[0.1, 0.9], [0.9, 0.1]]])], [[1, 0]])[:2]
    (1, 2)
    """
    areas = []
    for number, (table, own) in enumerate(zip(scores, labels, strict=True), start=1):
        if table.shape[-1] != len(own):
            raise DataError(f"text {number} has {table.shape[-1]} words, but {len(own)} labels came")
        read = ~np.isnan(table).any(axis=(0, 1))
        wrong = np.asarray(own, dtype=np.bool_)[read]
        if wrong.any() and not wrong.all():
            areas.append(_area(table[:, :, read], wrong))
    if not areas:
        raise DataError(f"none of the {len(labels)} texts has words of both labels: a head cannot be chosen by them")
    mean = np.mean(areas, axis=0)
    layer, head = np.unravel_index(int(mean.argmax()), mean.shape)
    return BestHead(int(layer) + 1, int(head) + 1, mean, len(areas))


def _area(table: HeadScores, wrong: NDArray[np.bool_]) -> FloatMatrix:
    """Return the share of pairs of a wrong and a right word in which the wrong one scores higher; ties count half."""
    count = int(wrong.sum())
    ranks = rankdata(table, axis=-1)[:, :, wrong].sum(axis=-1)
    return np.asarray((ranks - count * (count + 1) / 2) / (count * (len(wrong) - count)))
