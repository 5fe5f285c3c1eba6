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

Texts of similar length are computed together; masked places have no weight, so that no number depends on the batch
beyond rounding.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Array = NDArray[np.float32]
Numbers = Mapping[str, Array]

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


def run(numbers: Numbers, batch: Batch) -> Outputs:
    """Return logits of words and scores of sentences."""
    masks = [np.where(present, np.float32(0), _MASKED)[:, None, None, :] for present in batch.present]
    sides = [
        _enter(numbers, features, vectors, side)
        for side, (features, vectors) in enumerate(zip(batch.features, batch.vectors, strict=True))
    ]
    layer = 0
    while f"layers.{layer}.f1.weight" in numbers:
        own = _under(numbers, f"layers.{layer}.")
        sides = [_attend_own(own, side, mask) for side, mask in zip(sides, masks, strict=True)]
        sides = [
            _attend_other(own, sides[0], sides[1], batch.cosines, masks[1]),
            _attend_other(own, sides[1], sides[0], batch.cosines.transpose(0, 2, 1), masks[0]),
        ]
        sides = [side + _linear(own, "f2", _gelu(_linear(own, "f1", _norm(own, "n3", side)))) for side in sides]
        layer += 1
    sides = [_norm(numbers, "nf", side) for side in sides]
    words = [_linear(numbers, "w2", _gelu(_linear(numbers, "w1", side))) for side in sides]
    return Outputs(
        (words[0], words[1]),
        _sentences(numbers, sides, words, batch.present),
        _gaps(numbers, sides[0] * batch.present[0][..., None]) if "p1.weight" in numbers else None,
        _metric_attention(numbers, sides, masks) if "metric" in numbers else None,
    )


def _enter(numbers: Numbers, features: Array, vectors: Array, side: int) -> Array:
    states = _linear(numbers, "fi", features) + _linear(numbers, "vi", vectors) + numbers["side"][side]
    return _norm(numbers, "n0", states + _linear(numbers, "g2", _gelu(_linear(numbers, "g1", states))))


def _attend_own(own: Numbers, states: Array, mask: Array) -> Array:
    queries, keys, values = np.split(_linear(own, "qkv", _norm(own, "n1", states)), 3, axis=-1)
    places = np.arange(states.shape[1])
    distance = np.clip(places[None] - places[:, None], -_FARTHEST, _FARTHEST) + _FARTHEST
    bias = own["rel"][:, distance][None] + mask
    return states + _linear(own, "o1", _attend(queries, keys, values, bias))


def _attend_other(own: Numbers, states: Array, other: Array, cosines: Array, mask: Array) -> Array:
    keys, values = np.split(_linear(own, "kv", _norm(own, "n2o", other)), 2, axis=-1)
    queries = _linear(own, "q", _norm(own, "n2", states))
    bias = own["cos"][None, :, None, None] * cosines[:, None] + mask
    return states + _linear(own, "o2", _attend(queries, keys, values, bias))


def _attend(queries: Array, keys: Array, values: Array, bias: Array) -> Array:
    """Return attention with as many heads as the bias has."""
    heads = bias.shape[1]
    split = [part.reshape(*part.shape[:2], heads, -1).transpose(0, 2, 1, 3) for part in (queries, keys, values)]
    weights: Array = split[0] @ split[1].transpose(0, 1, 3, 2) / np.float32(np.sqrt(split[0].shape[-1]))
    weights += bias
    weights -= weights.max(axis=-1, keepdims=True)
    np.exp(weights, out=weights)
    weights /= weights.sum(axis=-1, keepdims=True)
    joined = (weights @ split[2]).transpose(0, 2, 1, 3)
    result: Array = np.ascontiguousarray(joined).reshape(*joined.shape[:2], -1)
    return result


def _sentences(
    numbers: Numbers, sides: Sequence[Array], words: Sequence[Array], present: Sequence[NDArray[np.bool_]]
) -> Array:
    pooled, rates = [], []
    for side, logits, there in zip(sides, words, present, strict=True):
        kept = there[..., None].astype(np.float32)
        count = kept.sum(axis=1)
        pooled += [(side * kept).sum(axis=1) / count, (side + (1 - kept) * _MASKED).max(axis=1)]
        rates.append((expit(logits) * kept).sum(axis=1) / count)
    # Rates of both sides for the one kind of error, then for the other.
    table = np.stack(rates, axis=2).reshape(len(rates[0]), -1)
    return _linear(numbers, "s2", _gelu(_linear(numbers, "s1", np.concatenate([*pooled, table], axis=1))))


def _gaps(numbers: Numbers, states: Array) -> Array:
    empty = np.zeros_like(states[:, :1])
    both = [np.concatenate([empty, states], axis=1), np.concatenate([states, empty], axis=1)]
    return _linear(numbers, "p2", _gelu(_linear(numbers, "p1", np.concatenate(both, axis=2))))


def _metric_attention(numbers: Numbers, sides: Sequence[Array], masks: Sequence[Array]) -> tuple[Array, Array]:
    states = np.concatenate(sides, axis=1)
    scores = _linear(numbers, "m1", states) @ numbers["metric"].T / np.float32(np.sqrt(states.shape[-1]))
    scores += np.concatenate([mask[:, 0, 0] for mask in masks], axis=1)[..., None]
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = (weights / weights.sum(axis=1, keepdims=True)).transpose(0, 2, 1)
    border = sides[0].shape[1]
    return weights[..., :border], weights[..., border:]


def _under(numbers: Numbers, prefix: str) -> dict[str, Array]:
    return {name.removeprefix(prefix): values for name, values in numbers.items() if name.startswith(prefix)}


def _linear(numbers: Numbers, name: str, states: Array) -> Array:
    result: Array = states @ numbers[f"{name}.weight"].T
    result += numbers[f"{name}.bias"]
    return result


def _norm(numbers: Numbers, name: str, states: Array) -> Array:
    centred: Array = states - states.mean(axis=-1, keepdims=True)
    centred /= np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + _EPSILON)
    centred *= numbers[f"{name}.weight"]
    centred += numbers[f"{name}.bias"]
    return centred


def _gelu(values: Array) -> Array:
    """Return the Gaussian error linear unit by its tanh formula (Hendrycks and Gimpel 2016, arXiv 1606.08415)."""
    inner = np.float32(0.7978845608028654) * (values + np.float32(0.044715) * values * values * values)
    result: Array = np.float32(0.5) * values * (1 + np.tanh(inner))
    return result
