"""The blocks of an encoder, watched from outside while a metric computes its score.

1. The state after layer k (0: the embeddings, k: block k) is what a hook on that module sees; the score as a function
   of that state is the metric's own function with a hook that puts another state in its place. States below it, which
   some metrics read too, stay as they were.
2. Readings go through the network in batches that fit the device; tables over rows are taken apart again.

This works for encoders whose blocks are built as BERT's: BERT, RoBERTa, XLM-R and their kin. Others are refused.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np

from whyscore.errors import SpecError
from whyscore.models.attribution.interface import Inside, Line, Reading, rows_of
from whyscore.models.pairs import budget_of, in_batches
from whyscore.types import FloatMatrix, Place

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

Result = TypeVar("Result")


def blocks_of(inside: Inside) -> list["Module"]:
    """Return the blocks of the encoder, from the embeddings upwards."""
    encoder = getattr(inside.network, "base_model", inside.network)
    blocks = getattr(getattr(encoder, "encoder", None), "layer", None)
    if blocks is None or getattr(encoder, "embeddings", None) is None:
        raise strange(inside, "its encoder is not built of embeddings and blocks as BERT's is")
    return list(blocks)


def module_of(inside: Inside, layer: int) -> "Module":
    """Return the module that a layer is the output of: 0 the embeddings, k block k."""
    blocks = blocks_of(inside)
    if not 0 <= layer <= len(blocks):
        raise SpecError(
            f"{inside.who}: layer is {layer}, expected 0 (the embeddings) to {len(blocks)} (the last block)"
        )
    if layer:
        return blocks[layer - 1]
    return cast("Module", getattr(inside.network, "base_model", inside.network).embeddings)


def states(inside: Inside, readings: Sequence[Reading], layer: int) -> "Tensor":
    """Return the state after a layer, rows x pieces x width, cut off from any gradient."""
    torch = importlib.import_module("torch")
    found: list[Tensor] = []

    def keep(_module: object, _inputs: object, output: object) -> None:
        found.append(_state(output))

    handle = module_of(inside, layer).register_forward_hook(keep)
    try:
        with torch.no_grad():
            inside.score(readings)
    finally:
        handle.remove()
    if not found:
        raise unread(inside, layer)
    return found[0].detach()


def score_from(inside: Inside, readings: Sequence[Reading], layer: int, given: "Tensor") -> "Tensor":
    """Return the scores with another state after a layer; several stacked states give the scores of all readings each.

    Args:
        inside: The opened metric.
        readings: What the network reads.
        layer: Whose output is put aside.
        given: What the blocks above see: rows x pieces x width, or several of these one after the other.
    """
    times = len(given) // len(rows_of(readings))

    def replace(_module: object, _inputs: object, output: object) -> object:
        return (given, *output[1:]) if isinstance(output, tuple) else given

    # First among the hooks, so that those by which transformers collects states see the new one.
    handle = module_of(inside, layer).register_forward_hook(replace, prepend=True)
    try:
        return inside.score(list(readings) * times)
    finally:
        handle.remove()


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
        f"{inside.who}: {name} cannot be looked into, {reason}; known are BERT, RoBERTa, XLM-R and their kin. "
        "Explain the metric with erasure, lime or shap"
    )


def _state(output: object) -> "Tensor":
    state: Tensor = output[0] if isinstance(output, tuple) else output
    return state


def _longest(lines: Sequence[Line]) -> int:
    return max(len(line.row.ids) for line in lines)
