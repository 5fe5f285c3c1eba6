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

Word scores from gradients of the score, after the network of a metric was opened.

1. Take the state x after a layer, one vector per piece: 0 is the output of the embeddings, k that of block k.
2. Contribution of a piece, summed over its vector, with f the score as a function of x and x' a baseline:
   `input` = x * df/dx at x;
   `integrated` = (x - x') * the mean of df/dx on the straight way from x' to x (Sundararajan, Taly and Yan 2017,
   arXiv 1703.01365), at the points of a Gauss-Legendre rule;
   `deeplift` = (x - x') * the multipliers of the rescale rule (Shrikumar, Greenside and Kundaje 2017, arXiv
   1704.02685).
3. The baseline differs from x only at the pieces of the explained text: zeros, or the state after the same layer when
   these pieces are all the mask or the padding piece. So `integrated` and `deeplift` add up, over the pieces of the
   text, to the score minus the score of the baseline, all other texts unchanged.
4. Negated for metrics where lower is better; pieces are pooled to words.
5. `values` stands apart: in each block and head, the attention that a piece gets times the length of df/dv, the
   gradient with respect to its value vector there (Treviso et al. 2021), the mean over heads; `layer` names the block,
   0 takes the mean over all. Like attention it is a magnitude without a sign: importance = -relevance, whichever way
   the metric counts.

The other three methods are captum's. Its DeepLIFT has rules for activations that are modules of their own (Tanh, ReLU,
Sigmoid ...), none for products, norms and GELU, where it takes the gradient: through the blocks of an encoder that is
little more than gradient x (x - x'), and does not add up. The miss, |sum - expected| / (sum of sizes + |expected|),
is measured for every text: more than `gap` is an error for `deeplift` and a warning for `integrated`, which more steps
cure.
"""

import importlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import DataError, MissingExtra, SpecError, need_package
from whyscore.explainers.engine import check_least
from whyscore.models.attribution import (
    Inside,
    Line,
    PieceScorer,
    Reading,
    at_place,
    beside,
    compute_batched,
    depth_of,
    measure_attention,
    measure_steering,
    per_reading,
    real,
    require_inspectable,
    rows_of,
    score_from,
    states,
    towers_of,
    unread,
    where,
)
from whyscore.models.pairs import Row, budget_of
from whyscore.protocols import Metric, WordScorer
from whyscore.settings import check_fields
from whyscore.stats.coefficients import ranks
from whyscore.text.alignment import Fill, Pool, pool_words
from whyscore.types import FloatMatrix, FloatVector, Place, Segment, Side, Words

if TYPE_CHECKING:
    from torch import Tensor


ATTENTION = "attention"

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
        pool: how the values of a word's subwords are combined.
        fill: the value of a word without subwords.
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
                check_least(ATTENTION, name, value, 1)
        if self.weights is not None:
            self._check_weights(self.weights)

    def inside(self, metric: Metric) -> WordScorer:
        def values(inside: Inside, place: Place) -> list[list[FloatVector]]:
            layers = range(1, depth_of(inside) + 1) if self.layer == "mean" else [self.layer]
            tables = self._tables(inside, place, layers)
            return [[-self._select(table) for table in rows] for rows in tables]

        what = "-attention x norm" if self.norm else "-attention"
        return PieceScorer(require_inspectable(metric, ATTENTION), values, "mean", self.pool, self.fill, what)

    def heads(
        self, metric: Metric, segments: Sequence[Segment], place: Place, words: Sequence[Words]
    ) -> list[HeadScores]:
        """Return the relevance of each word in every block and head, for `best_head`; layer and head are not read."""
        inside = require_inspectable(metric, ATTENTION).inspect(segments)
        tables = self._tables(inside, place, range(1, depth_of(inside) + 1))
        head_scores = []
        for text_words, reading, rows in zip(words, inside.readings, tables, strict=True):
            scores = at_place(reading, place, rows, "mean")
            vectors = scores.values.reshape(-1, scores.values.shape[-1])
            pooled = [
                pool_words(
                    text_words, scores.read, vector, pool=self.pool, fill=self.fill, split=self.pool == "sum"
                ).values
                for vector in vectors
            ]
            head_scores.append(np.array(pooled, dtype=np.float64).reshape(*scores.values.shape[:-1], len(text_words)))
        return head_scores

    def _check_weights(self, weights: tuple[float, ...]) -> None:
        if self.layer != "mean":
            problem = f"layer is {self.layer} and weights are given; give one block, or the weight of every block"
            raise SpecError(f"{ATTENTION}: {problem}")
        if not np.isfinite(weights).all() or not any(weights):
            raise SpecError(f"{ATTENTION}: weights are {weights}, expected finite numbers that are not all 0")

    def _tables(self, inside: Inside, place: Place, layers: Sequence[int]) -> list[list[FloatMatrix]]:
        """Return the relevance of each piece of each row of each reading, as blocks x heads x pieces."""
        blocks = depth_of(inside)
        if max(layers) > blocks:
            problem = f"layer is {self.layer!r}, but the network has {blocks} blocks; use 1 to {blocks} or 'mean'"
            raise SpecError(f"{ATTENTION}: {problem}")
        across = self.cross and len(towers_of(inside)) > 1
        if self.cross:
            _check_cross(inside, place, across=across)

        def compute(batch: list[Reading]) -> list[list[FloatMatrix]]:
            lines = rows_of(batch)
            asking = beside(lines, place, inside.device) if self.cross else real(lines, inside.device)
            return per_reading(batch, measure_attention(inside, batch, layers, asking, norm=self.norm, across=across))

        return compute_batched(inside, compute)

    def _select(self, table: FloatMatrix) -> FloatVector:
        """Return one number per piece from blocks x heads x pieces."""
        blocks, heads = table.shape[:2]
        if self.head != "mean" and self.head > heads:
            raise SpecError(f"{ATTENTION}: head is {self.head}, but a block has {heads}; use 1 to {heads} or 'mean'")
        by_block = table.mean(axis=1) if self.head == "mean" else table[:, self.head - 1]
        if self.weights is None:
            return np.asarray(by_block.mean(axis=0))
        if len(self.weights) != blocks:
            raise SpecError(
                f"{ATTENTION}: {len(self.weights)} weights were given, but the network has {blocks} blocks; "
                "give one per block"
            )
        return np.asarray(np.array(self.weights) @ by_block)


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
        raise SpecError(f"{ATTENTION}: {reason}; leave out cross=True")


class BestHead(NamedTuple):
    """The head whose relevance finds errors best, both counted from 1, and how well every head does."""

    layer: int
    head: int
    auc: FloatMatrix
    """Blocks x heads: the mean area under the ROC curve over the texts."""
    texts: int
    """How many texts stand behind it: those with words of both labels."""

    def apply_to(self, attention: Attention) -> Attention:
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
    for number, (table, text_labels) in enumerate(zip(scores, labels, strict=True), start=1):
        if table.shape[-1] != len(text_labels):
            raise DataError(f"text {number} has {table.shape[-1]} words, but {len(text_labels)} labels were given")
        read = ~np.isnan(table).any(axis=(0, 1))
        wrong = np.asarray(text_labels, dtype=np.bool_)[read]
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
    total = ranks(table)[:, :, wrong].sum(axis=-1)
    return np.asarray((total - count * (count + 1) / 2) / (count * (len(wrong) - count)))


GRADIENT = "gradient"
_UNUSED = "not have been used in the graph"  # how torch says that nothing depends on the state
_HOOKS = "Setting forward, backward hooks"  # what captum announces at each use of DeepLIFT
_NOISE = 1e-6  # of scores in float32, below which nothing is missing


class IncompleteWarning(UserWarning):
    """The contributions of the pieces do not add up to the score."""


@dataclass(frozen=True, slots=True)
class Gradient:
    """Explains a metric by the gradient of its score; needs a metric with a network inside.

    Args:
        method: gradient x input, integrated gradients, DeepLIFT, or attention x length of the gradient at the values.
        layer: the state that is looked at; 0 for the embeddings, k for the output of block k. Of `values` the block,
            0 for the mean over all.
        steps: points on the way from the baseline, for `integrated`.
        baseline: what stands for a text without meaning: zero vectors, mask pieces or padding pieces.
        pool: how the values of a word's subwords are combined.
        fill: the value of a word without subwords.
        gap: how far contributions may be from adding up, 0 to 1; `input` and `values` promise nothing and ignore it.
    """

    method: Literal["input", "integrated", "deeplift", "values"] = "input"
    layer: int = 0
    steps: int = 50
    baseline: Literal["zero", "mask", "pad"] = "zero"
    pool: Pool = "sum"
    fill: Fill = "error"
    gap: float = 0.05

    def __post_init__(self) -> None:
        check_fields(self)
        check_least(GRADIENT, "layer", self.layer, 0)
        check_least(GRADIENT, "steps", self.steps, 1)
        check_least(GRADIENT, "gap", self.gap, 0.0)

    def inside(self, metric: Metric) -> WordScorer:
        if self.method == "values":
            label = "-attention x gradient at the values"
            return PieceScorer(require_inspectable(metric, GRADIENT), self._steer, "mean", self.pool, self.fill, label)
        sign = 1.0 if metric.higher_is_better else -1.0
        what = {"input": "gradient x input", "integrated": "integrated gradient", "deeplift": "DeepLIFT"}[self.method]

        def values(inside: Inside, place: Place) -> list[list[FloatVector]]:
            contributions = compute_batched(
                inside, lambda batch: per_reading(batch, sign * self.contributions(inside, batch, place))
            )
            self._check_any(inside, place, contributions)
            return contributions

        return PieceScorer(require_inspectable(metric, GRADIENT), values, "sum", self.pool, self.fill, what)

    def _steer(self, inside: Inside, place: Place) -> list[list[FloatVector]]:  # noqa: ARG002 - pieces of all places
        """Return minus the attention times the length of the gradient at the values, for every piece."""
        blocks = depth_of(inside)
        if self.layer > blocks:
            raise SpecError(
                f"{GRADIENT}: layer is {self.layer}, but the network has {blocks} blocks; use 1 to {blocks} or 0"
            )
        layers = [self.layer] if self.layer else range(1, blocks + 1)
        return compute_batched(
            inside, lambda batch: per_reading(batch, -measure_steering(inside, batch, layers).mean(dim=(1, 2)))
        )

    def contributions(self, inside: Inside, readings: Sequence[Reading], place: Place) -> "Tensor":
        """Return what each piece contributes to the score, rows x pieces; only those at the place mean something."""
        captum = _captum()
        state = states(inside, readings, self.layer).requires_grad_()
        neutral = state if self.method == "input" else self._neutral(inside, readings, place, state.detach())
        way = _Way(lambda x: score_from(inside, readings, self.layer, x), state, neutral)
        try:
            total = self._attribute(captum, inside, way).detach().sum(-1)
        except RuntimeError as error:
            if _UNUSED not in str(error):
                raise
            raise unread(inside, self.layer) from error
        if self.method != "input":
            self._check(_missing(readings, total, way))
        return total

    def _attribute(self, captum: ModuleType, inside: Inside, way: "_Way") -> "Tensor":
        """Return the contribution of each number of the state."""
        if self.method == "input":
            contributions: Tensor = captum.InputXGradient(way.score).attribute(way.state)
        elif self.method == "integrated":
            room = max(len(way.state), budget_of(inside.device) // way.state.shape[1])
            contributions = captum.IntegratedGradients(way.score).attribute(
                way.state, way.neutral, n_steps=self.steps, internal_batch_size=room
            )
        else:
            contributions = _deeplift(captum, inside, way)
        return contributions

    def _neutral(self, inside: Inside, readings: Sequence[Reading], place: Place, state: "Tensor") -> "Tensor":
        """Return the baseline: the state itself, but without meaning at the place."""
        explained = where(rows_of(readings), place, inside.device).unsqueeze(-1)
        if self.baseline == "zero":
            return state.masked_fill(explained, 0.0)
        piece = inside.padding if self.baseline == "pad" else inside.masking
        if piece is None:
            raise SpecError(f"{inside.who}: the tokenizer has no mask token; choose baseline='zero' or 'pad'")
        hidden = [tuple(_hide(line, place, piece) for line in reading) for reading in readings]
        return states(inside, hidden, self.layer).where(explained, state)

    def _check_any(self, inside: Inside, place: Place, contributions: Sequence[Sequence[FloatVector]]) -> None:
        """Refuse a layer at which no piece of any text counts; a reference may lose to better ones everywhere."""
        pairs = zip(rows_of(inside.readings), [row for rows in contributions for row in rows], strict=True)
        pieces = [row[part.inside] for line, row in pairs for part in line.parts if part.place == place]
        values = np.concatenate([np.zeros(0), *pieces])
        if len(values) and not values.any() and place.side is not Side.REFERENCE:
            raise SpecError(
                f"{GRADIENT}: the score does not depend on the pieces of the {place} at layer {self.layer}; a metric "
                "that reads the first piece alone has gathered all there. Choose a lower layer"
            )

    def _check(self, missing: float) -> None:
        """Warn, or fail for DeepLIFT, where the contributions do not add up."""
        if missing <= self.gap:
            return
        message = f"{GRADIENT}: contributions miss the score by {missing:.1%}, more than gap={self.gap!r}"
        if self.method == "deeplift":
            raise SpecError(
                f"{message}: captum's DeepLIFT has no rule for some step between layer {self.layer} and the score "
                "(products as in attention, norms, most activations). Use method='integrated', or accept a larger gap"
            )
        cure = f"take more than {self.steps} steps, and the network in fp32"
        warnings.warn(f"{message}; {cure}", IncompleteWarning, stacklevel=2)


class _Way(NamedTuple):
    """The score as a function of a state, the state itself, and the baseline it is compared with."""

    score: Callable[["Tensor"], "Tensor"]
    state: "Tensor"
    neutral: "Tensor"


def _captum() -> ModuleType:
    with need_package(MissingExtra.of(GRADIENT, "neural")):
        return importlib.import_module("captum.attr")


def _deeplift(captum: ModuleType, inside: Inside, way: _Way) -> "Tensor":
    # captum wants a module, to find those with rules of their own in it.
    scored = importlib.import_module("torch").nn.Module()
    scored.network, scored.forward = inside.network, way.score
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_HOOKS)
        contributions: Tensor = captum.DeepLift(scored).attribute(way.state, way.neutral)
    return contributions


def _missing(readings: Sequence[Reading], total: "Tensor", way: _Way) -> float:
    """Return the largest miss over the readings: |sum - expected| / (sum of sizes + |expected|), from 0 to 1."""
    torch = importlib.import_module("torch")
    with torch.no_grad():
        expected = way.score(way.state) - way.score(way.neutral)
    by_reading = torch.split(total.float(), [len(reading) for reading in readings])
    sums, sizes = (
        torch.stack([each.sum() for each in parts]) for parts in (by_reading, [part.abs() for part in by_reading])
    )
    shares = (sums - expected).abs() / (sizes + expected.abs()).clamp(min=_NOISE)
    return float(shares.max())


def _hide(line: Line, place: Place, piece: int) -> Line:
    """Return a row with one and the same piece wherever the text at a place stands."""
    ids = list(line.row.ids)
    for part in line.parts:
        if part.place == place:
            ids[part.inside] = [piece] * len(part.spans)
    return line._replace(row=Row(tuple(ids), line.row.first))
