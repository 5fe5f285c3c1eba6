"""Vectors from any encoder of transformers: a local folder, a hub name, or one revision of it.

1. Layer L is the output after L blocks, 0 the output of the embeddings; the blocks above are not computed. Where an
   architecture ends in a norm (mBART, T5, XLM-R-XL, GPT-2), the value is that of the shorter stack followed by the
   norm. Of encoder-decoders the encoder is read (`stacks`). Which L, where none is given: `stacks`.
2. Texts are read without outer white space; the pieces know where they stand in the text as it was given (`rows`).
3. Each distinct text is encoded once, texts of like length together, as many as fit a budget of pieces with padding.
   When memory runs out the batch is halved and the work goes on. Answers come back in the order that was asked.
4. A text that is too long is cut, read in windows, or refused.

Weights are safetensors; a `.bin` file is read only where the caller allows it, and then as tensors and nothing else. No
code of a model repository is run. torch and transformers are imported at the first use.

All layers from one pass, each as the stack that is cut there would give it:

1. What a block is given is the state after all blocks below it: layer L is what block L + 1 is given, the last layer is
   what the network returns.
2. Parts that follow the last block (the norm of mBART, T5, XLM-R-XL, GPT-2) also follow a shorter stack. They are found
   by watching one pass: the chain of parts that leads from the last block to what the network returns. They are applied
   to every layer below.
3. Where the blocks are no list (shared or split ones), the states that the network itself tells are taken, as `stacks`
   does.

Where no such chain is found, the layers cannot be had from one pass, and `Inseparable` says so.

Vectors from several layers at once (`PowerMeans`), after Rueckle et al. (2018): minimum, mean and maximum over the last
layers, joined. This is how the first MoverScore reads BERT (Zhao et al. 2019, arXiv 1909.02622).

1. The states after each of the last blocks are scaled to unit length, piece by piece.
2. Their minimum, mean and maximum, number by number, stand one after the other: three times the width of the network.
"""

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import SpecError
from whyscore.models.encoders.stacks import (
    Arguments,
    Encoding,
    NetworkEncoder,
    Plan,
    Source,
    Stack,
    block_list,
    check_layer,
    lengths,
    recommend_layer,
    source,
)
from whyscore.models.pairs import Cuts, Long, RowCoder
from whyscore.protocols import Encoded
from whyscore.registry import runs_code
from whyscore.settings import Precision, check_fields
from whyscore.types import Signature

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module, ModuleList


class Inseparable(SpecError):
    """A network whose layers cannot be had from one pass."""


class EveryLayer(Stack):
    """An encoder whose vectors are those of all its layers, one after the other."""

    def __init__(self, full: Stack, blocks: int) -> None:
        super().__init__(full.network, full.device, full.padding, None, full.first)
        self._blocks = blocks
        self._list = block_list(self.network, blocks)

    def read(self, arguments: Arguments) -> "Tensor":
        """Return the vectors of the pieces: rows x pieces x (layers x width)."""
        torch = importlib.import_module("torch")
        layer_states = self._read_states(arguments) if self._list is None else self._watch(arguments, self._list)
        if len(layer_states) != self._blocks + 1 or len({state.shape for state in layer_states}) > 1:
            raise Inseparable(f"the network has {self._blocks} blocks and tells {len(layer_states)} states")
        table: Tensor = torch.cat([state.float() for state in layer_states], dim=-1)
        return table

    def _read_states(self, arguments: Arguments) -> "list[Tensor]":
        return list(self.network(**arguments, output_hidden_states=True).hidden_states)

    def _watch(self, arguments: Arguments, blocks: "ModuleList") -> "list[Tensor]":
        watcher = _Watcher()
        with watcher.watching(self.network, blocks):
            last: Tensor = self.network(**arguments).last_hidden_state
        tail = watcher.tail(last)
        return [*(_through(tail, state) for state in watcher.given), last]


class _Watcher:
    """Notes what the blocks of a network are given, and what happens after the last of them."""

    def __init__(self) -> None:
        self.given: list[Tensor] = []
        self._end: Tensor | None = None
        self._after: list[tuple[Module, Tensor, Tensor]] = []

    @contextmanager
    def watching(self, network: "Module", blocks: "ModuleList") -> Iterator[None]:
        """Watch all parts for as long as this lasts."""
        inside = {id(part) for part in blocks.modules()}
        parts = [part for part in network.modules() if id(part) not in inside and not list(part.children())]
        hooks = [block.register_forward_pre_hook(self._before, with_kwargs=True) for block in blocks]
        hooks += [blocks[-1].register_forward_hook(self._last)] if len(blocks) else []
        hooks += [part.register_forward_hook(self._outside) for part in parts]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def tail(self, last: "Tensor") -> "list[Module]":
        """Return the parts that lead from the last block to what the network returned."""
        parts: list[Module] = []
        state = self._end
        for part, received, answer in self._after:
            if state is None or _same(state, last):
                break
            if _same(received, state):
                parts.append(part)
                state = answer
        if state is None or not _same(state, last):
            raise Inseparable("what the network does after its last block is not a chain of parts")
        return parts

    def _before(self, _: "Module", args: "tuple[Tensor, ...]", named: "dict[str, Tensor]") -> None:
        state = args[0] if args else named.get("hidden_states")
        if state is None:
            raise Inseparable("the blocks of the network are not given hidden_states")
        self.given.append(state)

    def _last(self, _: "Module", __: object, answer: "Tensor | tuple[Tensor, ...]") -> None:
        self._end = answer[0] if isinstance(answer, tuple) else answer

    def _outside(self, part: "Module", args: "tuple[Tensor, ...]", answer: object) -> None:
        torch = importlib.import_module("torch")
        if self._end is not None and args and isinstance(answer, torch.Tensor):
            self._after.append((part, args[0], answer))


def _through(tail: "Sequence[Module]", state: "Tensor") -> "Tensor":
    for part in tail:
        state = part(state)
    return state


def _same(state: "Tensor", other: "Tensor") -> bool:
    torch = importlib.import_module("torch")
    return state is other or (state.shape == other.shape and bool(torch.equal(state, other)))


WHO = "transformer"
_PARTS = 3

# bert_score puts a blank before the first word for these, so that it is the same piece as elsewhere.
_BLANK_BEFORE = ("roberta", "gpt2", "longformer")


@dataclass(frozen=True, slots=True)
class Transformer(NetworkEncoder):
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
        batch: how many pieces are computed at once; None for 512, with padding 2,048, and on a GPU 32,768.
    """

    model: str
    layer: int | None = None
    device: str = "auto"
    precision: Precision = "fp32"
    long: Long = "truncate"
    revision: str | None = None
    first_blank: bool = True
    allow_pickle: bool = runs_code(default=False)
    batch: int | None = None

    who: ClassVar[str] = WHO

    def __post_init__(self) -> None:
        check_fields(self)
        if self.layer is not None and self.layer < 0:
            raise SpecError(f"transformer: layer is {self.layer}, expected 0 or more")
        if self.batch is not None and self.batch < 1:
            raise SpecError(f"transformer: batch is {self.batch}, expected 1 or more")
        if self.revision is not None and "@" in self.model:
            raise SpecError(
                f"transformer: {self.model} names a revision, and so does revision={self.revision!r}; drop one"
            )

    @property
    def layer_read(self) -> int:
        return self.plan().layer

    def signature(self) -> Signature:
        plan = self.plan()
        return self.sign(layer=f"{plan.layer}/{plan.source.shape.blocks}")

    def every_layer(self, texts: Sequence[str]) -> list[list[Encoded]]:
        """Return for each layer, from 0 on, what `encode` gives there, all of it from one pass (`every_layer`)."""
        model = self.plan().source
        layers, width = model.shape.blocks + 1, model.shape.width
        encoding = replace(self, layer=layers - 1).encoding()
        encoded = replace(encoding, stack=EveryLayer(encoding.stack, layers - 1), width=layers * width).encode(texts)
        parts = [slice(layer * width, (layer + 1) * width) for layer in range(layers)]
        return [[text._replace(vectors=text.vectors[:, part]) for text in encoded] for part in parts]

    def lengths(self, texts: Sequence[str]) -> list[tuple[int, int]]:
        return lengths(self.plan(), texts, self.long)

    @property
    def layers(self) -> int:
        """How many layers there are to choose from, the output of the embeddings included."""
        return self.plan().source.shape.blocks + 1

    def averaged(self, text: str, encoded: Encoded) -> NDArray[np.bool_]:  # noqa: ARG002 - all pieces of any text
        return np.ones(len(encoded.pieces), dtype=np.bool_)

    def plan(self) -> Plan:
        name = self.model if self.revision is None else f"{self.model}@{self.revision}"
        return _plan(source(name, WHO, allow_pickle=self.allow_pickle), self.layer, self.first_blank)


@lru_cache(maxsize=8)
def _plan(model: Source, layer: int | None, first_blank: bool) -> Plan:  # noqa: FBT001 - lru_cache needs positions
    name, shape = model.home.name, model.shape
    layer_read = recommend_layer(name, model.stored, shape) if layer is None else check_layer(layer, shape.blocks, name)
    blank = first_blank and shape.kind in _BLANK_BEFORE
    coder = RowCoder(model.tokenizer, WHO, first_blank=blank)
    return Plan(model, layer_read, coder, model.limit, Cuts(WHO, model.limit or 0))


@dataclass(frozen=True, slots=True)
class PowerMeans(NetworkEncoder):
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

    who: ClassVar[str] = "power_means"

    def __post_init__(self) -> None:
        check_fields(self)
        if self.layers < 1:
            raise SpecError(f"power_means: layers is {self.layers}, expected 1 or more")

    @property
    def layer_read(self) -> int:
        return self.plan().layer - self.layers + 1

    def signature(self) -> Signature:
        blocks = self.plan().layer
        return self.sign(layer=f"{self.layer_read}-{blocks}/{blocks}")

    def plan(self) -> Plan:
        model = source(self.model, self.who)
        if self.layers > model.shape.blocks:
            raise SpecError(f"power_means: {self.model} has {model.shape.blocks} blocks, got layers={self.layers}")
        return _power_means_plan(model)

    def encoding(self) -> Encoding:
        lower = NetworkEncoder.encoding(self)
        return replace(lower, stack=_Joined(lower.stack, self.layers), width=_PARTS * lower.width)


@lru_cache(maxsize=4)
def _power_means_plan(model: Source) -> Plan:
    who = PowerMeans.who
    return Plan(model, model.shape.blocks, RowCoder(model.tokenizer, who), model.limit, Cuts(who, model.limit or 0))


class _Joined(Stack):
    """An encoder of which the last layers are read."""

    def __init__(self, full: Stack, layers: int) -> None:
        super().__init__(full.network, full.device, full.padding, None, full.first)
        self._layers = layers

    def read(self, arguments: Arguments) -> "Tensor":
        """Return the joined vectors of the pieces, rows x pieces x three times the width."""
        torch = importlib.import_module("torch")
        answer = self.network(**arguments, output_hidden_states=True)
        last_states = answer.hidden_states[-self._layers :]
        states = torch.nn.functional.normalize(torch.stack(last_states).float(), dim=-1)
        joined: Tensor = torch.cat([states.amin(0), states.mean(0), states.amax(0)], dim=-1)
        return joined
