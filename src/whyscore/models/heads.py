"""What trained metrics put on top of an encoder: a mix of its layers, pooling, and a small feed-forward network.

1. Mix: `gamma * sum_k w_k h_k` over the states before and after every block, with w = softmax or sparsemax (Martins
   and Astudillo 2016, arXiv 1602.02068) of one learned number per state. On request each state is first normalised
   over all numbers of all real pieces of its sentence.
2. Pool: the mean or the maximum over the real pieces, specials included, or the first piece.
3. Feed-forward: linear layers with an activation between them.

All of it runs in float32, whatever the precision of the encoder.
"""

import importlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from whyscore.errors import SpecError
from whyscore.models.checkpoints import refuse

if TYPE_CHECKING:
    from torch import Tensor

LayerMix = Literal["softmax", "sparsemax"]
Pooling = Literal["avg", "max", "cls"]

ACTIVATIONS = (
    *("Tanh", "ReLU", "GELU", "Sigmoid", "SiLU", "ELU", "LeakyReLU", "Identity", "Softplus", "Softsign", "Softshrink"),
    *("Tanhshrink", "Hardtanh", "Hardsigmoid", "Hardswish", "Hardshrink", "Mish"),
)

_TINY = 1e-12  # keeps the normalisation of a constant sentence defined, as in the trainer


class Mix(NamedTuple):
    """Weights of the states, already normalised, with the factor for the whole sum."""

    weights: "Tensor"
    gamma: "Tensor"
    norm: bool


class FeedForward(NamedTuple):
    """Linear layers as (weight, bias), the activation between them, and the one at the end, if any."""

    layers: tuple[tuple["Tensor", "Tensor"], ...]
    activation: str
    final: str | None = None

    def __call__(self, features: "Tensor") -> "Tensor":
        nn = importlib.import_module("torch.nn")
        for number, (weight, bias) in enumerate(self.layers):
            last = number == len(self.layers) - 1
            name = self.final if last else self.activation
            features = nn.functional.linear(features, weight, bias)
            features = getattr(nn, name)()(features) if name else features
        return features


def sparsemax(scores: "Tensor") -> "Tensor":
    """Return the point of the simplex that is nearest to a vector; unlike softmax it reaches zero.

    With scores sorted downwards, the support is the largest k with `1 + k z_k > z_1 + ... + z_k`, and every score is
    lowered by the same threshold, the one at which the support sums to one.
    """
    torch = importlib.import_module("torch")
    ordered = scores.sort(descending=True).values
    sums = ordered.cumsum(0)
    ranks = torch.arange(1, len(scores) + 1, dtype=scores.dtype, device=scores.device)
    support = int((1 + ranks * ordered > sums).sum())
    threshold = (sums[support - 1] - 1) / support
    result: Tensor = (scores - threshold).clamp(min=0)
    return result


def mix_of(parameters: "Tensor", gamma: "Tensor", how: LayerMix, *, norm: bool) -> Mix:
    """Return the mix that learned parameters stand for."""
    weights = sparsemax(parameters) if how == "sparsemax" else parameters.softmax(0)
    return Mix(weights, gamma, norm)


def mix_states(states: Sequence["Tensor"], mask: "Tensor", mix: Mix) -> "Tensor":
    """Return the weighted sum of the states, batch x pieces x width; states of weight zero are not touched."""
    total = states[0].new_zeros(()).float()
    for state, weight in zip(states, mix.weights, strict=True):
        if weight != 0:
            total = total + weight * (normalise(state.float(), mask) if mix.norm else state.float())
    return mix.gamma * total


def normalise(state: "Tensor", mask: "Tensor") -> "Tensor":
    """Return a state with mean 0 and variance 1 over the real pieces of each sentence, all numbers together."""
    real = mask.unsqueeze(-1).float()
    count = real.sum((1, 2), keepdim=True) * state.shape[-1]
    mean = (state * real).sum((1, 2), keepdim=True) / count
    variance = (((state - mean) * real) ** 2).sum((1, 2), keepdim=True) / count
    return (state - mean) / (variance + _TINY).sqrt()


def pool_states(vectors: "Tensor", mask: "Tensor", how: Pooling) -> "Tensor":
    """Return one vector per sentence from one per piece."""
    if how == "cls":
        return vectors[:, 0]
    real = mask.unsqueeze(-1).bool()
    if how == "max":
        return vectors.masked_fill(~real, float("-inf")).amax(1)
    return vectors.masked_fill(~real, 0.0).sum(1) / real.sum(1)


def widen(tensor: "Tensor") -> "Tensor":
    """Return a tensor in float64, or in float32 where the device has no longer numbers (Apple's GPUs)."""
    return tensor.float() if tensor.device.type == "mps" else tensor.double()


def activation(name: object, where: Path) -> str:
    """Return the name of an activation as torch writes it, whatever its case, or refuse one that is not known."""
    for candidate in ACTIVATIONS:
        if str(name).lower() == candidate.lower():
            return candidate
    raise SpecError(f"{where}: the activation is {name!r}, expected one of {', '.join(ACTIVATIONS)}")


def feed_forward_keys(width: int, sizes: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Return the names and sizes of a feed-forward network's weights; between linear layers stand two without any.

    >>> feed_forward_keys(6, [4])
    {'0.weight': (4, 6), '0.bias': (4,), '3.weight': (1, 4), '3.bias': (1,)}
    """
    ends = [width, *sizes, 1]
    keys: dict[str, tuple[int, ...]] = {}
    for number, (inner, outer) in enumerate(pairwise(ends)):
        keys |= {f"{3 * number}.weight": (outer, inner), f"{3 * number}.bias": (outer,)}
    return keys


def take(
    weights: Mapping[str, "Tensor"], expected: Mapping[str, tuple[int, ...]], unexpected: Sequence[str], where: Path
) -> dict[str, "Tensor"]:
    """Return the expected weights in float32; missing ones, ones of another size and unexpected ones are refused."""
    sizes = {
        key: f"{tuple(weights[key].shape)} instead of {size}"
        for key, size in expected.items()
        if key in weights and tuple(weights[key].shape) != size
    }
    refuse(where, [key for key in expected if key not in weights], unexpected, sizes)
    return {key: weights[key].float() for key in expected}
