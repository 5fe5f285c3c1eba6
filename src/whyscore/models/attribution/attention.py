"""How much the pieces of a row are attended to in the blocks of an encoder.

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
from typing import TYPE_CHECKING, cast

from whyscore.models.attribution.blocks import joined_rows, real, strange, towers_of, unread
from whyscore.models.attribution.interface import Inside, Reading, rows_of

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Linear, Module

_NAMES = (
    ("attention.self", ("query", "key", "value"), "attention.output.dense", "num_attention_heads"),
    ("attention", ("q_lin", "k_lin", "v_lin"), "attention.out_lin", "n_heads"),
    ("self_attn", ("q_proj", "k_proj", "v_proj"), "self_attn.out_proj", "num_heads"),
)
"""The attention of a block, its projections, that of its output, and how many heads it has: BERT, DistilBERT, BART."""
_ACROSS = ("encoder_attn", ("q_proj", "k_proj", "v_proj"), "encoder_attn.out_proj", "num_heads")


def attended(
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
    found: dict[int, list[tuple[slice, Tensor]]] = {layer: [] for layer in layers}

    def watcher(heads: "_Heads", layer: int) -> Callable[["Tensor", "Tensor", "Tensor"], None]:
        def watch(query: "Tensor", key: "Tensor", value: "Tensor") -> None:
            mean = heads.attention(query, key, seen[heads.keys], asking[heads.queries])
            found[layer].append((heads.keys, mean * heads.norms(value) if norm else mean))

        return watch

    with contextlib.ExitStack() as stack, torch.no_grad():
        for layer in layers:
            for heads in _heads(inside, layer, across=across):
                stack.enter_context(_watched(heads, watcher(heads, layer)))
        inside.score(readings)
    table: Tensor = torch.stack([joined_rows(own, len(seen)) for own in found.values()], dim=1)
    return table


def steered(inside: Inside, readings: Sequence[Reading], layers: Sequence[int]) -> "Tensor":
    """Return attention times the length of the score's gradient at the value vectors: rows x layers x heads x pieces.

    The attention is what `attended` gives, averaged over all pieces of a row. Each layer's gradient is the whole one,
    through the blocks above it.
    """
    torch = importlib.import_module("torch")
    seen = real(rows_of(readings), inside.device)
    own = [(layer, heads) for layer in layers for heads in _heads(inside, layer)]
    weights: dict[_Heads, Tensor] = {}
    nudges: dict[_Heads, Tensor] = {}

    def watcher(heads: "_Heads") -> Callable[["Tensor", "Tensor", "Tensor"], None]:
        def watch(query: "Tensor", key: "Tensor", _value: "Tensor") -> None:
            weights[heads] = heads.attention(query.detach(), key.detach(), seen[heads.keys], seen[heads.queries])

        return watch

    with contextlib.ExitStack() as stack, torch.enable_grad():
        for _, heads in own:
            stack.enter_context(_nudged(heads, nudges))
            stack.enter_context(_watched(heads, watcher(heads)))
        scores = inside.score(readings)
        for layer, heads in own:
            if heads not in nudges:
                raise unread(inside, layer)
        slopes = torch.autograd.grad(scores.sum(), [nudges[heads] for _, heads in own], allow_unused=True)
    found: dict[int, list[tuple[slice, Tensor]]] = {layer: [] for layer in layers}
    for (layer, heads), slope in zip(own, slopes, strict=True):
        if slope is None:
            raise unread(inside, layer)
        found[layer].append((heads.keys, weights[heads] * heads.lengths(slope)))
    table: Tensor = torch.stack([joined_rows(parts, len(seen)) for parts in found.values()], dim=1)
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
    found = []
    for number, tower in enumerate(towers):
        block = tower.blocks[layer - 1]
        names = next((own for own in _NAMES if hasattr(_inner(block, own[0]), own[1][0])), None)
        config = inside.network.config
        positions = getattr(config, "position_embedding_type", None) or "absolute"
        if names is None or getattr(_inner(block, names[2]), "weight", None) is None:
            raise strange(inside, "its blocks have no attention with query, key and value as BERT's or BART's have")
        if positions != "absolute" or getattr(config, "is_decoder", False):
            raise strange(inside, "its attention depends on more than queries and keys (relative positions, a decoder)")
        found.append(_attention(inside, block, names, (tower.rows, tower.rows), causal=number > 0))
    return found


def _attention(
    inside: Inside,
    block: "Module",
    names: tuple[str, tuple[str, ...], str, str],
    rows: tuple[slice, slice],
    *,
    causal: bool,
) -> _Heads:
    own, projections, output, number = names
    module = block.get_submodule(own)
    heads = getattr(module, number, None)
    if heads is None:
        raise strange(inside, f"its attention has no {number}")
    return _Heads(module, projections, cast("Linear", block.get_submodule(output)), int(heads), *rows, causal)


def _inner(module: object, path: str) -> object:
    for name in path.split("."):
        module = getattr(module, name, None)
    return module


@contextlib.contextmanager
def _watched(heads: _Heads, watch: Callable[["Tensor", "Tensor", "Tensor"], None]) -> Iterator[None]:
    """Call `watch` with the query, key and value vectors whenever the attention of a block is computed."""
    held: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[[object, object, "Tensor"], None]:
        return lambda _module, _inputs, output: held.update({name: output})

    def done(_module: object, _inputs: object, _output: object) -> None:
        watch(*(held.pop(name) for name in heads.projections))

    with contextlib.ExitStack() as stack:
        for name in heads.projections:
            stack.callback(heads.module.get_submodule(name).register_forward_hook(keep(name)).remove)
        stack.callback(heads.module.register_forward_hook(done).remove)
        yield


@contextlib.contextmanager
def _nudged(heads: _Heads, nudges: dict[_Heads, "Tensor"]) -> Iterator[None]:
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
