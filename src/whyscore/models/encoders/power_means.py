"""Vectors from several layers at once: minimum, mean and maximum over the last ones, joined (Rueckle et al. 2018).

1. The states after each of the last blocks are scaled to unit length, piece by piece.
2. Their minimum, mean and maximum, number by number, stand one after the other: three times the width of the network.

This is how the first MoverScore reads BERT (Zhao et al. 2019, arXiv 1909.02622). All layers come from one pass.
"""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import SpecError
from whyscore.models.checkpoints import Precision, device_of
from whyscore.models.encoders.stacks import (
    Encoding,
    Source,
    Stack,
    languages_of,
    limit_facts,
    mean,
    source,
    stack,
)
from whyscore.models.pairs import Cuts, Inputs, Long, RowCoder, budget_of
from whyscore.protocols import Encoded
from whyscore.registry import spec_of
from whyscore.settings import check_fields
from whyscore.types import Signature

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

WHO = "power_means"
_PARTS = 3


@dataclass(frozen=True, slots=True)
class PowerMeans:
    """Minimum, mean and maximum of the last layers of a network, joined.

    Args:
        model: a folder or a hub name; `name@revision` for one version of it.
        layers: how many of the last layers.
        device: `auto` (a GPU where there is one), `cpu`, `cuda`, `cuda:1`, `mps`.
        precision: of the network's numbers; vectors come back in fp32.
        long: what becomes of texts the model cannot read whole: `truncate`, `window` or `error`.
    """

    model: str
    layers: int = 5
    device: str = "auto"
    precision: Precision = "fp32"
    long: Long = "truncate"

    def __post_init__(self) -> None:
        check_fields(self)
        if self.layers < 1:
            raise SpecError(f"power_means: layers is {self.layers}, expected 1 or more")

    @property
    def layer_read(self) -> int:
        return self._source().shape.blocks - self.layers + 1

    def signature(self) -> Signature:
        model = self._source()
        blocks = model.shape.blocks
        facts = {"rev": model.revision, "layer": f"{self.layer_read}-{blocks}/{blocks}"}
        facts |= {"prec": self.precision} | limit_facts(model.limit, self.long) | {"licence": model.licence}
        return Signature(spec_of(self), tuple(facts.items()))

    def languages(self) -> frozenset[str] | None:
        return languages_of(self._source().home.folder)

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        return self._encoding().encode(texts)

    def pooled(self, texts: Sequence[str]) -> NDArray[np.float32]:
        encoding = self._encoding()
        means = {text: mean(encoded) for text, encoded in encoding.each(texts)}
        return np.array([means[text] for text in texts], dtype=np.float32).reshape(-1, encoding.width)

    def _source(self) -> Source:
        model = source(self.model, WHO)
        if self.layers > model.shape.blocks:
            raise SpecError(f"power_means: {self.model} has {model.shape.blocks} blocks, got layers={self.layers}")
        return model

    def _encoding(self) -> Encoding:
        model = self._source()
        device = device_of(self.device, WHO)
        coder, cuts = _reading(model)
        lower = stack(model, model.shape.blocks, device, self.precision, WHO)
        return Encoding(
            coder=coder,
            stack=_Joined(lower.network, device, coder.padding, self.layers),
            width=_PARTS * model.shape.width,
            limit=model.limit,
            long=self.long,
            batch=budget_of(device),
            cuts=cuts,
            who=WHO,
        )


@lru_cache(maxsize=4)
def _reading(model: Source) -> tuple[RowCoder, Cuts]:
    """Return what turns texts into rows, and the count of those that are cut."""
    return RowCoder(model.tokenizer, WHO), Cuts(WHO, model.limit or 0)


class _Joined(Stack):
    """An encoder of which the last layers are read."""

    def __init__(self, network: "Module", device: str, padding: int, layers: int) -> None:
        super().__init__(network, device, padding, None)
        self._layers = layers

    def table(self, inputs: Inputs) -> "Tensor":
        """Return the joined vectors of the pieces, rows x pieces x three times the width."""
        torch = importlib.import_module("torch")
        answer = self.network(input_ids=inputs.ids, attention_mask=inputs.mask, output_hidden_states=True)
        chosen = answer.hidden_states[-self._layers :]
        states = torch.nn.functional.normalize(torch.stack(chosen).float(), dim=-1)
        joined: Tensor = torch.cat([states.amin(0), states.mean(0), states.amax(0)], dim=-1)
        return joined
