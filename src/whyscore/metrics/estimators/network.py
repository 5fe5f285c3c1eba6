"""The network behind `qe`, in numpy: words of both sides look at their own side and at each other.

1. A word enters as its features and its vector, each mapped to the width of the network, added, and passed through one
   residual layer.
2. Each layer: attention over the words of the own side, biased by distance; attention over the words of the other
   side, biased by the cosine of the two words; two fully connected layers. All three add to their input and norm first
   (Vaswani et al. 2017, arXiv 1706.03762; norm first: Xiong et al. 2020, arXiv 2002.04745).
3. Word head: one number per word and kind of label; of `qe`, the logits of being changed in post-editing and of
   standing in a marked error span.
4. Sentence head: from means and maxima of the words of both sides and the mean error probabilities, one standardised
   score per kind of label: direct assessment and MQM score.
5. Networks of `whyscore train` also have a head for gaps, the places before, between and after the words of the
   hypothesis, which reads the states on both sides of a gap; and, where they learned from metrics, one embedding per
   metric that attends to the words of both sides.

Texts of similar length are computed together. Masked places have no weight, and products and sums over words are exact
(`whyscore.models.exact`), so that no number depends on the batch.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from whyscore.models.exact import Factor, add, factor, multiply, multiply_rows

Array = NDArray[np.float32]


class Network(NamedTuple):
    """The weights of a network by their names."""

    layers: Mapping[str, Factor]
    """Of what is multiplied: inputs x outputs."""
    numbers: Mapping[str, Array]
    """All others."""

    def under(self, prefix: str) -> "Network":
        """Return the weights whose names begin so, without the beginning."""
        return Network(_under(self.layers, prefix), _under(self.numbers, prefix))


_T = TypeVar("_T")

_FARTHEST = 8
_MASKED = np.float32(-1e4)
_EPSILON = np.float32(1e-5)


class Batch(NamedTuple):
    """Padded texts: hypothesis words and source words of several segments."""

    features: tuple[Array, Array]
    """Of each side: segments x words x features."""
    vectors: tuple[Array, Array]
    """Of each side: segments x words x width."""
    cosines: Array
    """Segments x hypothesis words x source words."""
    present: tuple[NDArray[np.bool_], NDArray[np.bool_]]
    """Of each side: segments x words."""


class Outputs(NamedTuple):
    """What the network says."""

    words: tuple[Array, Array]
    """Of each side: segments x words x kinds of labels, logits."""
    sentences: Array
    """Segments x kinds of labels."""
    gaps: Array | None = None
    """Segments x (hypothesis words + 1) x kinds of labels, logits that something is missing there."""
    attention: tuple[Array, Array] | None = None
    """Of each side: segments x metrics x words."""


def make_network(numbers: Mapping[str, NDArray[np.generic]]) -> Network:
    """Return a network from its weights, those of layers outputs x inputs."""
    layers = {name for name, values in numbers.items() if values.ndim == 2 and name.endswith(".weight")}  # noqa: PLR2004
    layers |= {"metric"} & numbers.keys()
    return Network(
        {name.removesuffix(".weight"): factor(numbers[name].astype(np.float32).T) for name in layers},
        {name: values.astype(np.float32) for name, values in numbers.items() if name not in layers},
    )


def run(network: Network, batch: Batch) -> Outputs:
    """Return logits of words and scores of sentences."""
    masks = [np.where(present, np.float32(0), _MASKED)[:, None, None, :] for present in batch.present]
    sides = [
        _enter(network, features, vectors, side)
        for side, (features, vectors) in enumerate(zip(batch.features, batch.vectors, strict=True))
    ]
    layer = 0
    while f"layers.{layer}.f1" in network.layers:
        block = network.under(f"layers.{layer}.")
        sides = [_attend_own(block, side, mask) for side, mask in zip(sides, masks, strict=True)]
        sides = [
            _attend_other(block, sides[0], sides[1], batch.cosines, masks[1]),
            _attend_other(block, sides[1], sides[0], batch.cosines.transpose(0, 2, 1), masks[0]),
        ]
        sides = [side + _linear(block, "f2", _gelu(_linear(block, "f1", _norm(block, "n3", side)))) for side in sides]
        layer += 1
    sides = [_norm(network, "nf", side) for side in sides]
    words = [_linear(network, "w2", _gelu(_linear(network, "w1", side))) for side in sides]
    return Outputs(
        (words[0], words[1]),
        _sentences(network, sides, words, batch.present),
        _gaps(network, sides[0] * batch.present[0][..., None]) if "p1" in network.layers else None,
        _metric_attention(network, sides, masks) if "metric" in network.layers else None,
    )


def _enter(network: Network, features: Array, vectors: Array, side: int) -> Array:
    states = _linear(network, "fi", features) + _linear(network, "vi", vectors) + network.numbers["side"][side]
    return _norm(network, "n0", states + _linear(network, "g2", _gelu(_linear(network, "g1", states))))


def _attend_own(block: Network, states: Array, mask: Array) -> Array:
    queries, keys, values = np.split(_linear(block, "qkv", _norm(block, "n1", states)), 3, axis=-1)
    places = np.arange(states.shape[1])
    distance = np.clip(places[None] - places[:, None], -_FARTHEST, _FARTHEST) + _FARTHEST
    bias = block.numbers["rel"][:, distance][None] + mask
    return states + _linear(block, "o1", _attend(queries, keys, values, bias, mask))


def _attend_other(block: Network, states: Array, other: Array, cosines: Array, mask: Array) -> Array:
    keys, values = np.split(_linear(block, "kv", _norm(block, "n2o", other)), 2, axis=-1)
    queries = _linear(block, "q", _norm(block, "n2", states))
    bias = block.numbers["cos"][None, :, None, None] * cosines[:, None] + mask
    return states + _linear(block, "o2", _attend(queries, keys, values, bias, mask))


def _attend(queries: Array, keys: Array, values: Array, bias: Array, mask: Array) -> Array:
    """Return attention with as many heads as the bias has; masked values count nothing."""
    heads = bias.shape[1]
    split = [part.reshape(*part.shape[:2], heads, -1).transpose(0, 2, 1, 3) for part in (queries, keys, values)]
    weights = multiply_rows(split[0], split[1]).astype(np.float32) / np.float32(np.sqrt(split[0].shape[-1]))
    weights += bias
    weights -= weights.max(axis=-1, keepdims=True)
    np.exp(weights, out=weights)
    weights /= add(weights, -1).astype(np.float32)
    unmasked = split[2].transpose(0, 1, 3, 2) * (mask == 0)
    joined = multiply_rows(weights, unmasked).transpose(0, 2, 1, 3)
    return joined.astype(np.float32, order="C").reshape(*joined.shape[:2], -1)


def _sentences(
    network: Network, sides: Sequence[Array], words: Sequence[Array], present: Sequence[NDArray[np.bool_]]
) -> Array:
    pooled, rates = [], []
    for side, logits, there in zip(sides, words, present, strict=True):
        mask = there[..., None].astype(np.float32)
        count = mask.sum(axis=1)
        mean = add(side * mask, 1)[:, 0].astype(np.float32) / count
        pooled += [mean, (side + (1 - mask) * _MASKED).max(axis=1)]
        rates.append(add(expit(logits) * mask, 1)[:, 0].astype(np.float32) / count)
    # Rates of both sides for the one kind of error, then for the other.
    table = np.stack(rates, axis=2).reshape(len(rates[0]), -1)
    return _linear(network, "s2", _gelu(_linear(network, "s1", np.concatenate([*pooled, table], axis=1))))


def _gaps(network: Network, states: Array) -> Array:
    empty = np.zeros_like(states[:, :1])
    both = [np.concatenate([empty, states], axis=1), np.concatenate([states, empty], axis=1)]
    return _linear(network, "p2", _gelu(_linear(network, "p1", np.concatenate(both, axis=2))))


def _metric_attention(network: Network, sides: Sequence[Array], masks: Sequence[Array]) -> tuple[Array, Array]:
    states = np.concatenate(sides, axis=1)
    scores = multiply(_linear(network, "m1", states), network.layers["metric"]) / np.float32(np.sqrt(states.shape[-1]))
    scores += np.concatenate([mask[:, 0, 0] for mask in masks], axis=1)[..., None]
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = (weights / add(weights, 1).astype(np.float32)).transpose(0, 2, 1)
    border = sides[0].shape[1]
    return weights[..., :border], weights[..., border:]


def _under(numbers: Mapping[str, _T], prefix: str) -> dict[str, _T]:
    return {name.removeprefix(prefix): values for name, values in numbers.items() if name.startswith(prefix)}


def _linear(network: Network, name: str, states: Array) -> Array:
    result = multiply(states, network.layers[name])
    result += network.numbers[f"{name}.bias"]
    return result


def _norm(network: Network, name: str, states: Array) -> Array:
    centred: Array = states - states.mean(axis=-1, keepdims=True)
    centred /= np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + _EPSILON)
    centred *= network.numbers[f"{name}.weight"]
    centred += network.numbers[f"{name}.bias"]
    return centred


def _gelu(values: Array) -> Array:
    """Return the Gaussian error linear unit by its tanh formula (Hendrycks and Gimpel 2016, arXiv 1606.08415)."""
    inner = np.float32(0.7978845608028654) * (values + np.float32(0.044715) * values * values * values)
    result: Array = np.float32(0.5) * values * (1 + np.tanh(inner))
    return result
