"""The blocks of an encoder, watched from outside while a metric computes its score.

1. The state after layer k (0: the embeddings, k: block k) is what a hook on that module sees; the score as a function
   of that state is the metric's own function with a hook that puts another state in its place. States below it, which
   some metrics read too, stay as they were.
2. Readings go through the network in batches that fit the device; tables over rows are taken apart again.

This works for encoders whose blocks are built as BERT's (BERT, DistilBERT, RoBERTa, XLM-R and their kin) and for BART,
where the rows of a reading come in pairs: the first one goes through the encoder, the second one through the decoder.
Layer k is block k of both. Other networks are refused.
"""

import contextlib
import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from whyscore.errors import SpecError
from whyscore.models.attribution.interface import Inside, Line, Reading, rows_of
from whyscore.models.pairs import budget_of, in_batches
from whyscore.types import FloatMatrix, Place

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

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
    found: list[tuple[slice, Tensor]] = []

    def keeper(rows: slice) -> Callable[[object, object, object], None]:
        return lambda _module, _inputs, output: found.append((rows, _state(output)))

    modules = modules_of(inside, layer)
    with contextlib.ExitStack() as stack, torch.no_grad():
        for module, rows in modules:
            stack.callback(module.register_forward_hook(keeper(rows)).remove)
        inside.score(readings)
    if len(found) < len(modules):
        raise unread(inside, layer)
    return joined_rows(found, len(rows_of(readings)))


def joined_rows(parts: Sequence[tuple[slice, "Tensor"]], count: int) -> "Tensor":
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


def batched(inside: Inside, compute: Callable[[list[Reading]], Sequence[Result]]) -> list[Result]:
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
