"""The network of `whyscore.metrics.estimators.network` in PyTorch, to be trained; names of weights are the same."""

import torch
from torch import Tensor, nn
from torch.nn import functional

_FARTHEST = 8
_MASKED = -1e4


def _gelu(values: Tensor) -> Tensor:
    return functional.gelu(values, approximate="tanh")


class Layer(nn.Module):
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

    def forward(
        self, here: Tensor, there: Tensor, cosines: Tensor, masks: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        here, there = self._own(here, masks[0]), self._own(there, masks[1])
        here, there = (
            self._other(here, there, cosines, masks[1]),
            self._other(there, here, cosines.transpose(1, 2), masks[0]),
        )
        return self._inner(here), self._inner(there)

    def _own(self, states: Tensor, mask: Tensor) -> Tensor:
        queries, keys, values = self.qkv(self.n1(states)).chunk(3, -1)
        places = torch.arange(states.shape[1])
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


class Network(nn.Module):
    """Words of both sides in, two logits per word and two scores per segment out."""

    def __init__(
        self, features: int, vectors: int, *, width: int, heads: int, inner: int, layers: int, dropout: float
    ) -> None:
        super().__init__()
        self.fi, self.vi = nn.Linear(features, width), nn.Linear(vectors, width)
        self.side, self.n0 = nn.Parameter(torch.zeros(2, width)), nn.LayerNorm(width)
        self.g1, self.g2 = nn.Linear(width, width), nn.Linear(width, width)
        self.layers = nn.ModuleList(Layer(width, heads, inner, dropout) for _ in range(layers))
        self.nf, self.w1, self.w2 = nn.LayerNorm(width), nn.Linear(width, width // 2), nn.Linear(width // 2, 2)
        self.s1, self.s2 = nn.Linear(4 * width + 4, 64), nn.Linear(64, 2)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        features: tuple[Tensor, Tensor],
        vectors: tuple[Tensor, Tensor],
        cosines: Tensor,
        present: tuple[Tensor, Tensor],
    ) -> tuple[Tensor, Tensor, Tensor]:
        masks = tuple(torch.where(there, 0.0, _MASKED)[:, None, None] for there in present)
        here, there = (self.dropout(self._enter(features[k], vectors[k], k)) for k in (0, 1))
        for layer in self.layers:
            here, there = layer(here, there, cosines, masks)
        sides = [self.nf(here), self.nf(there)]
        words = [self.w2(_gelu(self.w1(side))) for side in sides]
        pooled, rates = [], []
        for side, logits, known in zip(sides, words, present, strict=True):
            kept = known[..., None].float()
            count = kept.sum(1)
            pooled += [(side * kept).sum(1) / count, (side + (1 - kept) * _MASKED).max(1).values]
            rates.append((torch.sigmoid(logits) * kept).sum(1) / count)
        table = torch.stack(rates, 2).flatten(1)
        sentences = self.s2(_gelu(self.s1(torch.cat([*pooled, table], 1))))
        return words[0], words[1], sentences

    def _enter(self, features: Tensor, vectors: Tensor, side: int) -> Tensor:
        states = self.fi(features) + self.vi(vectors) + self.side[side]
        return self.n0(states + self.g2(_gelu(self.g1(states))))
