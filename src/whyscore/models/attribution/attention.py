"""How much the pieces of a row are attended to in the blocks of an encoder.

1. Attention of a head: softmax(Q K' / sqrt(d)) over the real pieces, from what the query and key projections give, so
   that it does not matter which attention kernel the network was loaded with.
2. Norm of a piece in a head (Kobayashi et al. 2020, arXiv 2004.10102): the length of its value vector after the head's
   share of the output projection, without its bias.
3. Gradient of a piece in a head: the length of the score's gradient with respect to its value vector there.
4. All are reduced to one number per head and piece while the block computes; no table of pairs outlives its block.
"""

import contextlib
import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from whyscore.models.attribution.blocks import blocks_of, real, strange, unread
from whyscore.models.attribution.interface import Inside, Reading, rows_of

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Linear, Module

_PROJECTIONS = ("query", "key", "value")


def attended(
    inside: Inside, readings: Sequence[Reading], layers: Sequence[int], asking: "Tensor", *, norm: bool
) -> "Tensor":
    """Return how much each piece is attended to: rows x layers x heads x pieces.

    Args:
        inside: The opened metric.
        readings: What the network reads.
        layers: The blocks to watch, from 1 upwards.
        asking: Which pieces' attention is averaged, rows x pieces; NaN comes back for rows without any.
        norm: Multiply the attention by the norm of the attended piece.
    """
    torch = importlib.import_module("torch")
    seen = real(rows_of(readings), inside.device)
    blocks = blocks_of(inside)
    found: list[Tensor] = []

    def watcher(heads: "_Heads") -> Callable[["Tensor", "Tensor", "Tensor"], None]:
        def watch(query: "Tensor", key: "Tensor", value: "Tensor") -> None:
            mean = heads.attention(query, key, seen, asking)
            found.append(mean * heads.norms(value) if norm else mean)

        return watch

    with contextlib.ExitStack() as stack, torch.no_grad():
        for layer in layers:
            heads = _heads(inside, blocks[layer - 1])
            stack.enter_context(_watched(heads.module, watcher(heads)))
        inside.score(readings)
    table: Tensor = torch.stack(found, dim=1)
    return table


def steered(inside: Inside, readings: Sequence[Reading], layers: Sequence[int]) -> "Tensor":
    """Return attention times the length of the score's gradient at the value vectors: rows x layers x heads x pieces.

    The attention is what `attended` gives, averaged over all pieces of a row. Each layer's gradient is the whole one,
    through the blocks above it.
    """
    torch = importlib.import_module("torch")
    blocks = blocks_of(inside)
    seen = real(rows_of(readings), inside.device)
    own = [_heads(inside, blocks[layer - 1]) for layer in layers]
    weights: list[Tensor] = []
    nudges: list[Tensor] = []

    def watcher(heads: "_Heads") -> Callable[["Tensor", "Tensor", "Tensor"], None]:
        def watch(query: "Tensor", key: "Tensor", _value: "Tensor") -> None:
            weights.append(heads.attention(query.detach(), key.detach(), seen, seen))

        return watch

    with contextlib.ExitStack() as stack, torch.enable_grad():
        for heads in own:
            stack.enter_context(_nudged(heads.module, nudges))
            stack.enter_context(_watched(heads.module, watcher(heads)))
        scores = inside.score(readings)
        if len(nudges) < len(layers):
            raise unread(inside, layers[len(nudges)])
        slopes = torch.autograd.grad(scores.sum(), nudges, allow_unused=True)
    for layer, slope in zip(layers, slopes, strict=True):
        if slope is None:
            raise unread(inside, layer)
    norms = [heads.lengths(slope) for heads, slope in zip(own, slopes, strict=True)]
    table: Tensor = torch.stack(weights, dim=1) * torch.stack(norms, dim=1)
    return table


@dataclass(frozen=True)
class _Heads:
    """The attention of one block."""

    module: "Module"
    output: "Linear"
    number: int

    def attention(self, query: "Tensor", key: "Tensor", seen: "Tensor", asking: "Tensor") -> "Tensor":
        """Return the attention each piece gets, averaged over the asking pieces: rows x heads x pieces."""
        q, k = (self._split(vectors).transpose(1, 2) for vectors in (query, key))
        logits = q @ k.transpose(2, 3) / q.shape[-1] ** 0.5
        weights = logits.masked_fill(~seen[:, None, None, :], float("-inf")).softmax(-1)
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


def _heads(inside: Inside, block: "Module") -> _Heads:
    """Return the attention of a block; blocks that are not built as BERT's are refused."""
    attention = getattr(block, "attention", None)
    own, output = getattr(attention, "self", None), getattr(getattr(attention, "output", None), "dense", None)
    if own is None or output is None or not all(hasattr(own, name) for name in (*_PROJECTIONS, "num_attention_heads")):
        raise strange(inside, "its blocks have no attention.self with query, key and value as BERT's have")
    config = inside.network.config
    positions = getattr(config, "position_embedding_type", None) or "absolute"
    if positions != "absolute" or getattr(config, "is_decoder", False):
        raise strange(inside, "its attention depends on more than queries and keys (relative positions, a decoder)")
    return _Heads(own, output, own.num_attention_heads)


@contextlib.contextmanager
def _watched(attention: "Module", watch: Callable[["Tensor", "Tensor", "Tensor"], None]) -> Iterator[None]:
    """Call `watch` with the query, key and value vectors whenever the attention of a block is computed."""
    held: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[[object, object, "Tensor"], None]:
        return lambda _module, _inputs, output: held.update({name: output})

    def done(_module: object, _inputs: object, _output: object) -> None:
        watch(*(held.pop(name) for name in _PROJECTIONS))

    handles = [getattr(attention, name).register_forward_hook(keep(name)) for name in _PROJECTIONS]
    handles.append(attention.register_forward_hook(done))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextlib.contextmanager
def _nudged(attention: "Module", nudges: list["Tensor"]) -> Iterator[None]:
    """Add zeros to the value vectors, and keep them: the gradient with respect to the zeros is that of the vectors."""
    torch = importlib.import_module("torch")

    def add(_module: object, _inputs: object, output: "Tensor") -> "Tensor":
        nudges.append(torch.zeros_like(output, requires_grad=True))
        return output + nudges[-1]

    value: Module = getattr(attention, "value")  # noqa: B009 - torch types the attribute as tensor or module
    handle = value.register_forward_hook(add)
    try:
        yield
    finally:
        handle.remove()
