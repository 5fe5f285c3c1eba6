"""What a metric must show to be looked into: what its network read, and how the score follows from it.

1. A metric that is `Inspectable` opens itself for some segments: per segment a `Reading`, the rows of pieces its
   network reads and which text stands where in them, and one differentiable function from readings to scores.
2. An explainer that is `LooksInside` takes such a metric and gives a word scorer. It finds one number per piece of a
   row, by running that function with an eye on the blocks of the network (`blocks`).
3. The same text may stand in several rows (UniTE reads the hypothesis three times): the numbers of a piece are added,
   or averaged, over the rows. Special pieces belong to no text and are left out.
4. Pieces become words by their characters (`whyscore.text.alignment`). Words the network did not read have no number.

The blocks of an encoder, watched from outside while a metric computes its score.

1. The state after layer k (0: the embeddings, k: block k) is what a hook on that module sees; the score as a function
   of that state is the metric's own function with a hook that puts another state in its place. States below it, which
   some metrics read too, stay as they were.
2. Readings go through the network in batches that fit the device; tables over rows are taken apart again.

This works for encoders whose blocks are built as BERT's (BERT, DistilBERT, RoBERTa, XLM-R and their kin) and for BART,
where the rows of a reading come in pairs: the first one goes through the encoder, the second one through the decoder.
Layer k is block k of both. Other networks are refused.

How much the pieces of a row are attended to in the blocks of an encoder.

1. Attention of a head: softmax(Q K' / sqrt(d)) over the real pieces, from what the query and key projections give, so
   that it does not matter which attention kernel the network was loaded with.
2. Norm of a piece in a head (Kobayashi et al. 2020, arXiv 2004.10102): the length of its value vector after the head's
   share of the output projection, without its bias.
3. Gradient of a piece in a head: the length of the score's gradient with respect to its value vector there.
4. A decoder's piece attends to itself and to the pieces before it. Attention across texts is that of the decoder to
   what the encoder read.
5. All are reduced to one number per head and piece while the block computes; no table of pairs outlives its block.
"""

import contextlib
import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

import numpy as np

from whyscore.errors import SpecError
from whyscore.marking import Span
from whyscore.models.pairs import Coded, Coder, Cuts, Frame, Row, TextNetwork, budget_of, in_batches
from whyscore.protocols import Metric, WordScorer
from whyscore.text.alignment import Fill, PieceScores, Pool, score_words
from whyscore.types import FloatMatrix, FloatVector, Place, Segment, Words, WordScores

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Linear, Module


class Part(NamedTuple):
    """A text in a row: which one, where its pieces begin, where they stand in it and how they are written."""

    place: Place
    start: int
    spans: tuple[Span, ...]
    pieces: tuple[str, ...]
    total: int
    """How many pieces the text has; more than there are spans where it was cut."""

    @property
    def inside(self) -> slice:
        """Where the pieces are in the row."""
        return slice(self.start, self.start + len(self.spans))


class Line(NamedTuple):
    """A row of pieces with the texts in it."""

    row: Row
    parts: tuple[Part, ...]


Reading = tuple[Line, ...]
"""All that a network reads for the score of one segment."""


@dataclass(frozen=True, eq=False)
class Inside:
    """A metric, opened for some segments."""

    who: str
    network: "Module"
    readings: tuple[Reading, ...]
    """One per segment."""
    score: Callable[[Sequence[Reading]], "Tensor"]
    """One number per reading, differentiable; the network sees the rows of all readings, one after the other."""
    device: str
    padding: int
    masking: int | None = None
    """The piece that stands for a hidden one, where the tokenizer has it."""


@runtime_checkable
class Inspectable(Protocol):
    """A metric whose score comes from a network that can be looked into."""

    def inspect(self, segments: Sequence[Segment]) -> Inside:
        """Return what the network reads of each segment, and the scores as a differentiable function of it."""


@runtime_checkable
class LooksInside(Protocol):
    """An explainer that reads word scores off the network of a metric."""

    def inside(self, metric: Metric) -> WordScorer:
        """Return the word scores of a metric; one that cannot be looked into is refused."""


class Shown(NamedTuple):
    """A text as a network sees it: which one, its pieces, and how many of them are read."""

    place: Place
    coded: Coded
    kept: int


def line(frame: Frame, texts: Sequence[Shown], limit: int | None = None) -> Line:
    """Return texts joined to one row with special pieces around them, cut at the end after `limit` pieces."""
    whole = frame.join([text.coded.ids[: text.kept] for text in texts])
    row = Row(whole.ids[:limit], whole.first)
    parts, start = [], len(frame.before)
    for place, coded, count in texts:
        end = max(start, min(start + count, len(row.ids)))
        read = end - start
        parts.append(Part(place, start, coded.spans[:read], coded.pieces[:read], len(coded.ids)))
        start += min(count, len(coded.ids)) + len(frame.between)
    return Line(row, tuple(parts))


def look_inside(
    model: TextNetwork, readings: tuple[Reading, ...], score: Callable[[Sequence[Reading]], "Tensor"]
) -> Inside:
    """Return a loaded network, opened for what it reads of some segments; texts that were cut are told."""
    warn_of_cuts(model.cuts, readings)
    return Inside(
        model.cuts.who, model.network, readings, score, model.device, model.coder.padding, model.coder.masking
    )


def masking_of(coder: Coder) -> int | None:
    """Return the piece by which a model hides others, if it knows one."""
    return coder.masking


def warn_of_cuts(cuts: Cuts, readings: Sequence[Reading]) -> None:
    """Tell of texts that were cut, unless the same model has told of it before."""
    cut = sum(len(part.spans) < part.total for line in rows_of(readings) for part in line.parts)
    if not cuts.told:
        cuts.add(cut, sum(len(line.parts) for line in rows_of(readings)))


def rows_of(readings: Sequence[Reading]) -> list[Line]:
    """Return the rows of all readings, one after the other."""
    return [line for reading in readings for line in reading]


PieceValues = Callable[[Inside, Place], Sequence[Sequence[FloatVector]]]
"""From an opened metric and a place, one number per piece of each row of each reading."""


@dataclass(frozen=True, eq=False)
class PieceScorer:
    """Word scores of a metric from numbers for the pieces its network reads."""

    metric: Inspectable
    values: PieceValues
    combine: Literal["sum", "mean"]
    """What becomes of the numbers of a piece that stands in several rows."""
    pool: Pool
    fill: Fill
    what: str
    """What the numbers are, for notes."""

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        opened = self.metric.inspect(segments)
        values_by_reading = self.values(opened, place)
        return [
            score_words(
                *(text, at_place(reading, place, values, self.combine), self.pool, self.fill, self.what),
                split=self.pool == "sum",
            )
            for text, reading, values in zip(words, opened.readings, values_by_reading, strict=True)
        ]


def at_place(
    reading: Reading, place: Place, values: Sequence[FloatVector], combine: Literal["sum", "mean"]
) -> PieceScores:
    """Return one number per piece of the text at a place, as far as any row has it.

    `values` holds, on its last axis, one number per piece of each row; a piece that stands in several rows gets their
    sum or mean.
    """
    parts = [
        (part, numbers[..., part.inside])
        for line, numbers in zip(reading, values, strict=True)
        for part in line.parts
        if part.place == place
    ]
    if not parts:  # an empty reference beside others is not read
        return PieceScores((), (), np.zeros((*values[0].shape[:-1], 0)), 0)
    longest = max((part for part, _ in parts), key=lambda part: len(part.spans))
    total, count = np.zeros((*values[0].shape[:-1], len(longest.spans))), np.zeros(len(longest.spans))
    for part, numbers in parts:
        total[..., : len(part.spans)] += numbers
        count[: len(part.spans)] += 1
    return PieceScores(longest.spans, longest.pieces, total / count if combine == "mean" else total, longest.total)


def require_inspectable(metric: object, who: str) -> Inspectable:
    """Return a metric that can be looked into, or refuse it with what works instead."""
    if isinstance(metric, Inspectable):
        return metric
    name = metric.signature().spec if isinstance(metric, Metric) else repr(metric)
    raise SpecError(
        f"{name} cannot be looked into: {who} needs a metric with a network of its own, such as comet or transquest. "
        "Explain it with erasure, lime or shap"
    )


Result = TypeVar("Result")


class Tower(NamedTuple):
    """Blocks on top of embeddings, and which of all rows go through them."""

    embeddings: "Module"
    blocks: "tuple[Module, ...]"
    rows: slice


def towers_of(inside: Inside) -> list[Tower]:
    """Return what the rows go through: one encoder, or an encoder and a decoder."""
    network = getattr(inside.network, "base_model", inside.network)
    encoder, decoder = (getattr(network, name, None) for name in ("encoder", "decoder"))
    if decoder is not None and all(hasattr(side, "layernorm_embedding") for side in (encoder, decoder)):
        pair = [Tower(side.layernorm_embedding, tuple(side.layers), slice(k, None, 2)) for k, side in _sides(network)]
        if len(pair[0].blocks) != len(pair[1].blocks):
            raise strange(inside, "its encoder and its decoder have different numbers of blocks")
        return pair
    blocks = getattr(encoder or getattr(network, "transformer", None), "layer", None)
    embeddings = getattr(network, "embeddings", None)
    if blocks is None or embeddings is None:
        raise strange(inside, "its encoder is not built of embeddings and blocks as BERT's is")
    return [Tower(embeddings, tuple(blocks), slice(None))]


def depth_of(inside: Inside) -> int:
    """Return how many blocks there are on top of the embeddings."""
    return len(towers_of(inside)[0].blocks)


def modules_of(inside: Inside, layer: int) -> list[tuple["Module", slice]]:
    """Return the modules that a layer is the output of, 0 the embeddings, k block k, each with the rows it reads."""
    depth = depth_of(inside)
    if not 0 <= layer <= depth:
        raise SpecError(f"{inside.who}: layer is {layer}, expected 0 (the embeddings) to {depth} (the last block)")
    towers = towers_of(inside)
    return [(tower.blocks[layer - 1] if layer else tower.embeddings, tower.rows) for tower in towers]


def states(inside: Inside, readings: Sequence[Reading], layer: int) -> "Tensor":
    """Return the state after a layer, rows x pieces x width, cut off from any gradient."""
    torch = importlib.import_module("torch")
    outputs: list[tuple[slice, Tensor]] = []

    def keeper(rows: slice) -> Callable[[object, object, object], None]:
        return lambda _module, _inputs, output: outputs.append((rows, _state(output)))

    modules = modules_of(inside, layer)
    with contextlib.ExitStack() as stack, torch.no_grad():
        for module, rows in modules:
            stack.callback(module.register_forward_hook(keeper(rows)).remove)
        inside.score(readings)
    if len(outputs) < len(modules):
        raise unread(inside, layer)
    return join_rows(outputs, len(rows_of(readings)))


def join_rows(parts: Sequence[tuple[slice, "Tensor"]], count: int) -> "Tensor":
    """Return tables of some rows each as one table of all `count` rows; rows that no table has are NaN."""
    torch = importlib.import_module("torch")
    first = parts[0][1]
    whole: Tensor = torch.full((count, *first.shape[1:]), float("nan"), dtype=first.dtype, device=first.device)
    for rows, part in parts:
        whole[rows] = part.detach()
    return whole


def score_from(inside: Inside, readings: Sequence[Reading], layer: int, given: "Tensor") -> "Tensor":
    """Return the scores with another state after a layer; several stacked states give the scores of all readings each.

    Args:
        inside: The opened metric.
        readings: What the network reads.
        layer: Whose output is put aside.
        given: What the blocks above see: rows x pieces x width, or several of these one after the other.
    """
    times = len(given) // len(rows_of(readings))

    def replacer(rows: slice) -> Callable[[object, object, object], object]:
        return lambda _, __, output: (given[rows], *output[1:]) if isinstance(output, tuple) else given[rows]

    with contextlib.ExitStack() as stack:
        for module, rows in modules_of(inside, layer):
            # First among the hooks, so that those by which transformers collects states see the new one.
            stack.callback(module.register_forward_hook(replacer(rows), prepend=True).remove)
        return inside.score(list(readings) * times)


def where(lines: Sequence[Line], place: Place, device: str) -> "Tensor":
    """Return which pieces belong to the text at a place, rows x pieces."""
    torch = importlib.import_module("torch")
    marks: Tensor = torch.zeros((len(lines), _longest(lines)), dtype=torch.bool)
    for number, line in enumerate(lines):
        for part in line.parts:
            if part.place == place:
                marks[number, part.inside] = True
    return marks.to(device)


def beside(lines: Sequence[Line], place: Place, device: str) -> "Tensor":
    """Return which pieces belong to another text than the one at a place, rows x pieces."""
    torch = importlib.import_module("torch")
    others = {part.place for line in lines for part in line.parts} - {place}
    marks: Tensor = torch.zeros((len(lines), _longest(lines)), dtype=torch.bool, device=device)
    for other in others:
        marks |= where(lines, other, device)
    return marks


def real(lines: Sequence[Line], device: str) -> "Tensor":
    """Return which pieces are no padding, rows x pieces."""
    torch = importlib.import_module("torch")
    lengths = torch.tensor([len(line.row.ids) for line in lines], device=device)
    marks: Tensor = torch.arange(_longest(lines), device=device) < lengths[:, None]
    return marks


def compute_batched(inside: Inside, compute: Callable[[list[Reading]], Sequence[Result]]) -> list[Result]:
    """Return one answer per reading, computed in batches that fit the device."""
    lengths = [len(reading) * _longest(reading) for reading in inside.readings]
    readings = inside.readings
    return in_batches(
        lengths, budget_of(inside.device), lambda batch: compute([readings[k] for k in batch]), inside.who
    )


def per_reading(readings: Sequence[Reading], table: "Tensor") -> list[list[FloatMatrix]]:
    """Return a table over rows as the part of each row, reading by reading; padding stays."""
    values = np.asarray(table.cpu().double().numpy(), dtype=np.float64)
    ends = np.cumsum([len(reading) for reading in readings]).tolist()
    return [list(values[end - len(reading) : end]) for reading, end in zip(readings, ends, strict=True)]


def unread(inside: Inside, layer: int) -> SpecError:
    """Return the error for a layer above the one that a metric reads."""
    return SpecError(f"{inside.who}: the score does not depend on layer {layer}; choose a lower one")


def strange(inside: Inside, reason: str) -> SpecError:
    """Return the error for a network whose parts are not where they are looked for."""
    name = type(inside.network).__name__
    return SpecError(
        f"{inside.who}: {name} cannot be looked into, {reason}; known are BERT, DistilBERT, RoBERTa, XLM-R and BART. "
        "Explain the metric with erasure, lime or shap"
    )


def _sides(network: "Module") -> Iterator[tuple[int, "Module"]]:
    return enumerate(network.get_submodule(name) for name in ("encoder", "decoder"))


def _state(output: object) -> "Tensor":
    state: Tensor = output[0] if isinstance(output, tuple) else output
    return state


def _longest(lines: Sequence[Line]) -> int:
    return max(len(line.row.ids) for line in lines)


_NAMES = (
    ("attention.self", ("query", "key", "value"), "attention.output.dense", "num_attention_heads"),
    ("attention", ("q_lin", "k_lin", "v_lin"), "attention.out_lin", "n_heads"),
    ("self_attn", ("q_proj", "k_proj", "v_proj"), "self_attn.out_proj", "num_heads"),
)
"""The attention of a block, its projections, that of its output, and how many heads it has: BERT, DistilBERT, BART."""
_ACROSS = ("encoder_attn", ("q_proj", "k_proj", "v_proj"), "encoder_attn.out_proj", "num_heads")


def measure_attention(
    inside: Inside, readings: Sequence[Reading], layers: Sequence[int], asking: "Tensor", *, norm: bool, across: bool
) -> "Tensor":
    """Return how much each piece is attended to: rows x layers x heads x pieces.

    Args:
        inside: The opened metric.
        readings: What the network reads.
        layers: The blocks to watch, from 1 upwards.
        asking: Which pieces' attention is averaged, rows x pieces; NaN comes back for rows without any.
        norm: Multiply the attention by the norm of the attended piece.
        across: Watch how a decoder attends to what the encoder read; rows of the decoder get NaN.
    """
    torch = importlib.import_module("torch")
    seen = real(rows_of(readings), inside.device)
    outputs: dict[int, list[tuple[slice, Tensor]]] = {layer: [] for layer in layers}

    def watcher(heads: "_Heads", layer: int) -> Callable[["Tensor", "Tensor", "Tensor"], None]:
        def watch(query: "Tensor", key: "Tensor", value: "Tensor") -> None:
            mean = heads.attention(query, key, seen[heads.keys], asking[heads.queries])
            outputs[layer].append((heads.keys, mean * heads.norms(value) if norm else mean))

        return watch

    with contextlib.ExitStack() as stack, torch.no_grad():
        for layer in layers:
            for heads in _heads(inside, layer, across=across):
                stack.enter_context(_watch_attention(heads, watcher(heads, layer)))
        inside.score(readings)
    table: Tensor = torch.stack([join_rows(parts, len(seen)) for parts in outputs.values()], dim=1)
    return table


def measure_steering(inside: Inside, readings: Sequence[Reading], layers: Sequence[int]) -> "Tensor":
    """Return attention times the length of the score's gradient at the value vectors: rows x layers x heads x pieces.

    The attention is what `measure_attention` gives, averaged over all pieces of a row. Each layer's gradient is the
    whole one, through the blocks above it.
    """
    torch = importlib.import_module("torch")
    seen = real(rows_of(readings), inside.device)
    attentions = [(layer, heads) for layer in layers for heads in _heads(inside, layer)]
    weights: dict[_Heads, Tensor] = {}
    nudges: dict[_Heads, Tensor] = {}

    def watcher(heads: "_Heads") -> Callable[["Tensor", "Tensor", "Tensor"], None]:
        def watch(query: "Tensor", key: "Tensor", _value: "Tensor") -> None:
            weights[heads] = heads.attention(query.detach(), key.detach(), seen[heads.keys], seen[heads.queries])

        return watch

    with contextlib.ExitStack() as stack, torch.enable_grad():
        for _, heads in attentions:
            stack.enter_context(_nudge_values(heads, nudges))
            stack.enter_context(_watch_attention(heads, watcher(heads)))
        scores = inside.score(readings)
        for layer, heads in attentions:
            if heads not in nudges:
                raise unread(inside, layer)
        slopes = torch.autograd.grad(scores.sum(), [nudges[heads] for _, heads in attentions], allow_unused=True)
    products: dict[int, list[tuple[slice, Tensor]]] = {layer: [] for layer in layers}
    for (layer, heads), slope in zip(attentions, slopes, strict=True):
        if slope is None:
            raise unread(inside, layer)
        products[layer].append((heads.keys, weights[heads] * heads.lengths(slope)))
    table: Tensor = torch.stack([join_rows(parts, len(seen)) for parts in products.values()], dim=1)
    return table


@dataclass(frozen=True, eq=False)
class _Heads:
    """The attention of one block, and which rows ask and are attended to."""

    module: "Module"
    projections: Sequence[str]
    output: "Linear"
    number: int
    queries: slice
    keys: slice
    causal: bool

    def attention(self, query: "Tensor", key: "Tensor", seen: "Tensor", asking: "Tensor") -> "Tensor":
        """Return the attention each piece gets, averaged over the asking pieces: rows x heads x pieces."""
        q, k = (self._split(vectors).transpose(1, 2) for vectors in (query, key))
        logits = q @ k.transpose(2, 3) / q.shape[-1] ** 0.5
        hidden = ~seen[:, None, None, :]
        if self.causal:
            hidden = hidden | ~hidden.new_ones(logits.shape[2:]).tril()
        weights = logits.masked_fill(hidden, float("-inf")).softmax(-1)
        counted = asking.float()[:, None, :, None]
        mean: Tensor = (weights * counted).sum(2) / counted.sum(2)
        return mean

    def norms(self, value: "Tensor") -> "Tensor":
        """Return the length of each piece's value vector after the output projection: rows x heads x pieces."""
        torch = importlib.import_module("torch")
        vectors, weight = self._split(value), self._split(self.output.weight[None])[0]
        # One head at a time, as all at once would take heads times the memory of a state.
        norms = [(vectors[:, :, head] @ weight[:, head].T).norm(dim=-1) for head in range(self.number)]
        stacked: Tensor = torch.stack(norms, dim=1)
        return stacked

    def lengths(self, vectors: "Tensor") -> "Tensor":
        """Return the length of each piece's vector in each head: rows x heads x pieces."""
        lengths: Tensor = self._split(vectors).norm(dim=-1).transpose(1, 2)
        return lengths

    def _split(self, vectors: "Tensor") -> "Tensor":
        """Return rows x pieces x width as rows x pieces x heads x width of a head."""
        return vectors.float().reshape(*vectors.shape[:2], self.number, -1)


def _heads(inside: Inside, layer: int, *, across: bool = False) -> list[_Heads]:
    """Return the attention in a layer; blocks that are built in another way than those known are refused."""
    towers = towers_of(inside)
    if across:
        reading, writing = towers
        return [_attention(inside, writing.blocks[layer - 1], _ACROSS, (writing.rows, reading.rows), causal=False)]
    attentions = []
    for number, tower in enumerate(towers):
        block = tower.blocks[layer - 1]
        names = next((names for names in _NAMES if hasattr(_inner(block, names[0]), names[1][0])), None)
        config = inside.network.config
        positions = getattr(config, "position_embedding_type", None) or "absolute"
        if names is None or getattr(_inner(block, names[2]), "weight", None) is None:
            raise strange(inside, "its blocks have no attention with query, key and value as BERT's or BART's have")
        if positions != "absolute" or getattr(config, "is_decoder", False):
            raise strange(inside, "its attention depends on more than queries and keys (relative positions, a decoder)")
        attentions.append(_attention(inside, block, names, (tower.rows, tower.rows), causal=number > 0))
    return attentions


def _attention(
    inside: Inside,
    block: "Module",
    names: tuple[str, tuple[str, ...], str, str],
    rows: tuple[slice, slice],
    *,
    causal: bool,
) -> _Heads:
    path, projections, output, number = names
    module = block.get_submodule(path)
    heads = getattr(module, number, None)
    if heads is None:
        raise strange(inside, f"its attention has no {number}")
    return _Heads(module, projections, cast("Linear", block.get_submodule(output)), int(heads), *rows, causal)


def _inner(module: object, path: str) -> object:
    for name in path.split("."):
        module = getattr(module, name, None)
    return module


@contextlib.contextmanager
def _watch_attention(heads: _Heads, watch: Callable[["Tensor", "Tensor", "Tensor"], None]) -> Iterator[None]:
    """Call `watch` with the query, key and value vectors whenever the attention of a block is computed."""
    vectors: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[[object, object, "Tensor"], None]:
        return lambda _module, _inputs, output: vectors.update({name: output})

    def done(_module: object, _inputs: object, _output: object) -> None:
        watch(*(vectors.pop(name) for name in heads.projections))

    with contextlib.ExitStack() as stack:
        for name in heads.projections:
            stack.callback(heads.module.get_submodule(name).register_forward_hook(keep(name)).remove)
        stack.callback(heads.module.register_forward_hook(done).remove)
        yield


@contextlib.contextmanager
def _nudge_values(heads: _Heads, nudges: dict[_Heads, "Tensor"]) -> Iterator[None]:
    """Add zeros to the value vectors, and keep them: the gradient with respect to the zeros is that of the vectors."""
    torch = importlib.import_module("torch")

    def add(_module: object, _inputs: object, output: "Tensor") -> "Tensor":
        nudges[heads] = torch.zeros_like(output, requires_grad=True)
        return output + nudges[heads]

    handle = heads.module.get_submodule(heads.projections[2]).register_forward_hook(add)
    try:
        yield
    finally:
        handle.remove()
