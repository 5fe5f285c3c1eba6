"""All layers of an encoder from one pass, each as the stack that is cut there would give it.

1. What a block is given is the state after all blocks below it: layer L is what block L + 1 is given, the last layer is
   what the network returns.
2. Parts that follow the last block (the norm of mBART, T5, XLM-R-XL, GPT-2) also follow a shorter stack. They are found
   by watching one pass: the chain of parts that leads from the last block to what the network returns. They are applied
   to every layer below.
3. Where the blocks are no list (shared or split ones), the states that the network itself tells are taken, as `stacks`
   does.

Where no such chain is found, the layers cannot be had from one pass, and `Inseparable` says so.
"""

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from whyscore.errors import SpecError
from whyscore.models.pairs import Inputs, Row, as_tensors
from whyscore.models.rows import Vectors
from whyscore.models.stacks import Stack, block_list

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module, ModuleList


class Inseparable(SpecError):
    """A network whose layers cannot be had from one pass."""


class EveryLayer(Stack):
    """An encoder whose vectors are those of all its layers, one after the other."""

    def __init__(self, full: Stack, blocks: int) -> None:
        """Take a stack with all its blocks."""
        super().__init__(full._network, full._device, full._padding, None)  # noqa: SLF001 - of its own kind
        self._blocks = blocks
        self._list = block_list(self._network, blocks)

    def states(self, rows: Sequence[Row]) -> list[Vectors]:
        """Return for each row pieces x (layers x width)."""
        torch = importlib.import_module("torch")
        inputs = as_tensors(rows, self._padding, self._device)
        with torch.inference_mode():
            found = self._told(inputs) if self._list is None else self._watched(inputs, self._list)
            if len(found) != self._blocks + 1 or len({state.shape for state in found}) > 1:
                raise Inseparable(f"the network has {self._blocks} blocks and tells {len(found)} states")
            table = torch.cat([state.float() for state in found], dim=-1).cpu().numpy()
        return [table[number, : len(row.ids)].copy() for number, row in enumerate(rows)]

    def _told(self, inputs: Inputs) -> "list[Tensor]":
        answer = self._network(input_ids=inputs.ids, attention_mask=inputs.mask, output_hidden_states=True)
        return list(answer.hidden_states)

    def _watched(self, inputs: Inputs, blocks: "ModuleList") -> "list[Tensor]":
        watcher = _Watcher()
        with watcher.watching(self._network, blocks):
            last: Tensor = self._network(input_ids=inputs.ids, attention_mask=inputs.mask).last_hidden_state
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
        found: list[Module] = []
        state = self._end
        for part, given, answer in self._after:
            if state is None or _same(state, last):
                break
            if _same(given, state):
                found.append(part)
                state = answer
        if state is None or not _same(state, last):
            raise Inseparable("what the network does after its last block is not a chain of parts")
        return found

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


def _same(one: "Tensor", other: "Tensor") -> bool:
    torch = importlib.import_module("torch")
    return one is other or (one.shape == other.shape and bool(torch.equal(one, other)))
