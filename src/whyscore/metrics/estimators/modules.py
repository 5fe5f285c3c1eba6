"""The networks that `whyscore train` trains, in PyTorch. Imported where torch is needed, never before.

1. `Heads`: what both networks put on the states of words. Two layers for words of both sides; two layers on the states
   left and right of each gap of the hypothesis; two layers on means, maxima and error rates of both sides for the
   sentence; and, for labels from metrics, one embedding per metric that attends to the words of both sides (after
   NICT-Kyoto at Eval4NLP 2021): the attended mean gives the value of the metric, the attention a score per word.
2. `Network`: the states come from features of words and vectors of a frozen encoder. Names of weights and numbers are
   those of `network`, which runs it in numpy.
3. `JointNetwork`: the states are those of an encoder of transformers that reads both texts together and is trained
   along; a word has the state of its first subword (after CUNI-Prague at Eval4NLP 2021).
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

_FARTHEST = 8
_MASKED = -1e4

Pair = tuple[Tensor, Tensor]


class Predictions(NamedTuple):
    """What a network says of a batch; K kinds of labels, M metrics."""

    words: Pair
    """Of hypothesis and source: segments x words x K logits of being wrong."""
    gaps: Tensor
    """Segments x (hypothesis words + 1) x K logits that something is missing."""
    sentences: Tensor
    """Segments x K standardised scores."""
    metrics: Tensor
    """Segments x M standardised values of metrics."""
    attention: Pair
    """Of both sides: segments x M x words."""


def _gelu(values: Tensor) -> Tensor:
    return functional.gelu(values, approximate="tanh")


class Heads(nn.Module):  # type: ignore[misc] # torch is not followed
    """Words, gaps, sentences and metrics from the states of the words of both sides."""

    def __init__(self, width: int, kinds: int, metrics: int, dropout: float) -> None:
        super().__init__()
        self.w1, self.w2 = nn.Linear(width, width // 2), nn.Linear(width // 2, kinds)
        self.p1, self.p2 = nn.Linear(2 * width, width // 2), nn.Linear(width // 2, kinds)
        self.s1, self.s2 = nn.Linear(4 * width + 2 * kinds, 64), nn.Linear(64, kinds)
        if metrics:
            self.metric, self.m1 = nn.Parameter(torch.randn(metrics, width) * width**-0.5), nn.Linear(width, width)
        self.metrics = metrics
        self.dropout = nn.Dropout(dropout)

    def predict(self, sides: Sequence[Tensor], present: Pair) -> Predictions:
        """Return what the heads say of states, segments x words x width on each side."""
        words = [self.w2(_gelu(self.w1(side))) for side in sides]
        pooled, rates = [], []
        for side, logits, mask in zip(sides, words, present, strict=True):
            weights = mask[..., None].float()
            count = weights.sum(1)
            pooled += [(side * weights).sum(1) / count, (side + (1 - weights) * _MASKED).max(1).values]
            rates.append((torch.sigmoid(logits) * weights).sum(1) / count)
        table = torch.stack(rates, 2).flatten(1)
        sentences = self.s2(_gelu(self.s1(torch.cat([*pooled, table], 1))))
        here = sides[0] * present[0][..., None]
        gaps = torch.cat([functional.pad(here, (0, 0, 1, 0)), functional.pad(here, (0, 0, 0, 1))], 2)
        values, attention = self._ask_metrics(torch.cat(list(sides), 1), torch.cat(list(present), 1))
        border = sides[0].shape[1]
        return Predictions(
            (words[0], words[1]),
            self.p2(_gelu(self.p1(gaps))),
            sentences,
            values,
            (attention[..., :border], attention[..., border:]),
        )

    def _ask_metrics(self, states: Tensor, present: Tensor) -> Pair:
        if not self.metrics:
            return states.new_zeros(len(states), 0), states.new_zeros(len(states), 0, states.shape[1])
        scores = self.m1(states) @ self.metric.T / states.shape[-1] ** 0.5
        attention = torch.where(present[..., None], scores, scores.new_tensor(_MASKED)).softmax(1)
        attended = attention.transpose(1, 2) @ states
        return (attended * self.metric).sum(-1), attention.transpose(1, 2)


class Layer(nn.Module):  # type: ignore[misc] # torch is not followed
    """Attention over the own side and over the other side, then two fully connected layers."""

    def __init__(self, width: int, heads: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.n1, self.qkv, self.o1 = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.rel = nn.Parameter(torch.zeros(heads, 2 * _FARTHEST + 1))
        self.n2, self.n2o = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.kv, self.o2 = nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)
        self.cos = nn.Parameter(torch.full((heads,), 5.0))
        self.n3, self.f1, self.f2 = nn.LayerNorm(width), nn.Linear(width, inner), nn.Linear(inner, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, here: Tensor, there: Tensor, cosines: Tensor, masks: Pair) -> Pair:
        """Return the states of both sides after the layer."""
        here, there = self._own(here, masks[0]), self._own(there, masks[1])
        here, there = (
            self._other(here, there, cosines, masks[1]),
            self._other(there, here, cosines.transpose(1, 2), masks[0]),
        )
        return self._inner(here), self._inner(there)

    def _own(self, states: Tensor, mask: Tensor) -> Tensor:
        queries, keys, values = self.qkv(self.n1(states)).chunk(3, -1)
        places = torch.arange(states.shape[1], device=states.device)
        distance = (places[None] - places[:, None]).clamp(-_FARTHEST, _FARTHEST) + _FARTHEST
        return states + self.dropout(self.o1(self._attend(queries, keys, values, self.rel[:, distance][None] + mask)))

    def _other(self, states: Tensor, other: Tensor, cosines: Tensor, mask: Tensor) -> Tensor:
        keys, values = self.kv(self.n2o(other)).chunk(2, -1)
        bias = self.cos[None, :, None, None] * cosines[:, None] + mask
        return states + self.dropout(self.o2(self._attend(self.q(self.n2(states)), keys, values, bias)))

    def _inner(self, states: Tensor) -> Tensor:
        return states + self.dropout(self.f2(_gelu(self.f1(self.n3(states)))))

    def _attend(self, queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
        split = [part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (queries, keys, values)]
        weights = split[0] @ split[1].transpose(2, 3) / split[0].shape[-1] ** 0.5 + bias
        return (weights.softmax(-1) @ split[2]).transpose(1, 2).flatten(2)


class Network(Heads):
    """Features and vectors of the words of both sides in, predictions out."""

    def __init__(
        self,
        features: int,
        vectors: int,
        *,
        width: int = 96,
        heads: int = 4,
        inner: int = 192,
        layers: int = 2,
        kinds: int = 1,
        metrics: int = 0,
        dropout: float = 0.1,
    ) -> None:
        super().__init__(width, kinds, metrics, dropout)
        self.fi, self.vi = nn.Linear(features, width), nn.Linear(vectors, width)
        self.side, self.n0 = nn.Parameter(torch.zeros(2, width)), nn.LayerNorm(width)
        self.g1, self.g2 = nn.Linear(width, width), nn.Linear(width, width)
        self.layers = nn.ModuleList(Layer(width, heads, inner, dropout) for _ in range(layers))
        self.nf = nn.LayerNorm(width)

    def forward(self, features: Pair, vectors: Pair, cosines: Tensor, present: Pair) -> Predictions:
        """Return predictions for padded words; `present` says which are real."""
        masks = tuple(torch.where(there, 0.0, _MASKED)[:, None, None] for there in present)
        here, there = (self.dropout(self._enter(features[k], vectors[k], k)) for k in (0, 1))
        for layer in self.layers:
            here, there = layer(here, there, cosines, masks)
        return self.predict([self.nf(here), self.nf(there)], present)

    def _enter(self, features: Tensor, vectors: Tensor, side: int) -> Tensor:
        states = self.fi(features) + self.vi(vectors) + self.side[side]
        return self.n0(states + self.g2(_gelu(self.g1(states))))


class JointNetwork(Heads):
    """Two texts as one row of subwords in, predictions for their words out."""

    def __init__(self, encoder: nn.Module, width: int, *, kinds: int = 1, metrics: int = 0, types: bool) -> None:
        super().__init__(width, kinds, metrics, 0.1)
        self.encoder, self.types = encoder, types

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor, firsts: Pair, present: Pair) -> Predictions:
        """Return predictions; `firsts` are the places of the first subwords of the words of both sides."""
        more = {"token_type_ids": types} if self.types else {}
        states = self.encoder(input_ids=ids, attention_mask=mask, **more).last_hidden_state.float()
        sides = [states.gather(1, places[..., None].expand(-1, -1, states.shape[-1])) for places in firsts]
        return self.predict([self.dropout(side) for side in sides], present)
