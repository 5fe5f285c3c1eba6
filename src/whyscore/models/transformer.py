"""Vectors from any encoder of transformers: a local folder, a hub name, or one revision of it.

1. Layer L is the output after L blocks, 0 the output of the embeddings; the blocks above are not computed. Where an
   architecture ends in a norm (mBART, T5, XLM-R-XL, GPT-2), the value is that of the shorter stack followed by the
   norm. Of encoder-decoders the encoder is read (`stacks`). Which L, where none is given: `layers`.
2. Texts are read without outer white space; the pieces know where they stand in the text as it was given (`rows`).
3. Each distinct text is encoded once, texts of like length together, as many as fit a budget of pieces with padding.
   When memory runs out the batch is halved and the work goes on. Answers come back in the order that was asked.
4. A text that is too long is cut, read in windows, or refused.

Weights are safetensors; a `.bin` file is read only where the caller allows it, and then as tensors and nothing else. No
code of a model repository is run. torch and transformers are imported at the first use.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import SpecError
from whyscore.models.cards import languages_of
from whyscore.models.checkpoints import Precision, device_of
from whyscore.models.encoding import Encoding, batch_of, lengths, limit_facts, mean
from whyscore.models.every_layer import EveryLayer
from whyscore.models.layers import checked, recommended
from whyscore.models.pairs import Cuts
from whyscore.models.rows import Long, RowCoder
from whyscore.models.stacks import Source, Stack, source, stack
from whyscore.options import check_fields
from whyscore.protocols import Encoded
from whyscore.registry import spec_of
from whyscore.types import Signature

WHO = "transformer"

# bert_score puts a blank before the first word for these, so that it is the same piece as elsewhere.
_BLANK_BEFORE = ("roberta", "bart", "gpt2", "longformer")


@dataclass(frozen=True, slots=True)
class Transformer:
    """Vectors of the pieces of a text after some blocks of a network.

    Args:
        model: a folder or a hub name; `name@revision` for one version of it.
        layer: after how many blocks; None for the recommended layer.
        device: `auto` (a GPU where there is one), `cpu`, `cuda`, `cuda:1`, `mps`.
        precision: of the network's numbers; vectors come back in fp32.
        long: what becomes of texts the model cannot read whole: `truncate`, `window` or `error`.
        revision: a branch, tag or commit of the hub, instead of `name@revision`.
        first_blank: whether RoBERTa, BART and GPT-2 see a blank before the first word, as in bert_score.
        allow_pickle: whether weights may come from a `.bin` file.
        batch: how many pieces, padding counted, are computed at once; None for 2,048, or 32,768 on a GPU.
    """

    model: str
    layer: int | None = None
    device: str = "auto"
    precision: Precision = "fp32"
    long: Long = "truncate"
    revision: str | None = None
    first_blank: bool = True
    allow_pickle: bool = False
    batch: int | None = None

    def __post_init__(self) -> None:
        """Refuse options that mean nothing."""
        check_fields(self)
        if self.layer is not None and self.layer < 0:
            raise SpecError(f"transformer: layer is {self.layer}, expected 0 or more")
        if self.batch is not None and self.batch < 1:
            raise SpecError(f"transformer: batch is {self.batch}, expected 1 or more")
        if self.revision is not None and "@" in self.model:
            raise SpecError(
                f"transformer: {self.model} names a revision, and so does revision={self.revision!r}; drop one"
            )

    def signature(self) -> Signature:
        """Return the spec, then revision, layer, precision, limit and licence."""
        plan = self._plan()
        model = plan.source
        facts = {"rev": model.revision, "layer": f"{plan.layer}/{model.shape.blocks}", "prec": self.precision}
        facts |= limit_facts(model.limit, self.long) | {"licence": model.licence}
        return Signature(spec_of(self), tuple(facts.items()))

    def languages(self) -> frozenset[str] | None:
        """Return the languages that the model's card names."""
        return languages_of(self._plan().source.home.folder)

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        """Return the pieces of each text with their vectors."""
        return self._encoding().encode(texts)

    def every_layer(self, texts: Sequence[str]) -> list[list[Encoded]]:
        """Return for each layer, from 0 on, what `encode` gives there, all of it from one pass (`every_layer`)."""
        plan = self._plan()
        layers, width = plan.source.shape.blocks + 1, plan.source.shape.width
        full = stack(plan.source, plan.source.shape.blocks, device_of(self.device, WHO), self.precision, WHO)
        encoding = replace(self._encoding(full), stack=EveryLayer(full, layers - 1), width=layers * width)
        found = encoding.encode(texts)
        parts = [slice(layer * width, (layer + 1) * width) for layer in range(layers)]
        return [[text._replace(vectors=text.vectors[:, part]) for text in found] for part in parts]

    def lengths(self, texts: Sequence[str]) -> list[tuple[int, int]]:
        """Return how many pieces of each text are read, and how many it has; only the tokenizer is asked."""
        plan = self._plan()
        return lengths(plan.coder, texts, plan.source.limit, self.long)

    @property
    def layers(self) -> int:
        """How many layers there are to choose from, the output of the embeddings included."""
        return self._plan().source.shape.blocks + 1

    def pooled(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the mean of the vectors of each text, special pieces included; zeros for a text without any."""
        encoding = self._encoding()
        means = {text: mean(encoded) for text, encoded in encoding.each(texts)}
        return np.array([means[text] for text in texts], dtype=np.float32).reshape(-1, encoding.width)

    def _plan(self) -> "_Plan":
        name = self.model if self.revision is None else f"{self.model}@{self.revision}"
        return _plan(source(name, WHO, allow_pickle=self.allow_pickle), self.layer, self.first_blank)

    def _encoding(self, ready: Stack | None = None) -> Encoding:
        plan = self._plan()
        device = device_of(self.device, WHO)
        return Encoding(
            coder=plan.coder,
            stack=ready or stack(plan.source, plan.layer, device, self.precision, WHO),
            width=plan.source.shape.width,
            limit=plan.source.limit,
            long=self.long,
            batch=self.batch or batch_of(device),
            cuts=plan.cuts,
            who=WHO,
        )


class _Plan(NamedTuple):
    """What is decided before the weights are loaded."""

    source: Source
    layer: int
    coder: RowCoder
    cuts: Cuts


@lru_cache(maxsize=8)
def _plan(model: Source, layer: int | None, first_blank: bool) -> _Plan:  # noqa: FBT001 - lru_cache needs positions
    name, shape = model.home.name, model.shape
    chosen = recommended(name, model.stored, shape) if layer is None else checked(layer, shape.blocks, name)
    blank = first_blank and shape.kind in _BLANK_BEFORE
    return _Plan(model, chosen, RowCoder(model.tokenizer, WHO, first_blank=blank), Cuts(WHO, model.limit or 0))
