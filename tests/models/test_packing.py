from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from whyscore.models.encoders.stacks import Stack
from whyscore.models.encoders.transformer import Transformer
from whyscore.models.pairs import MemoryWarning, Row, in_batches

Tiny = Callable[[str], Path]

PACKED, PADDED = ["bert", "roberta", "xlm-roberta"], ["xlm-roberta-xl", "mbart", "bart", "t5", "gpt2"]
TEXTS = [" ".join(f"cat {number}" for number in range(count)) for count in (9, 1, 4, 4, 12, 2, 9, 7)]


def loaded(folder: Path) -> Stack:
    return Transformer(str(folder), 3, device="cpu").encoding().stack


def rows_of(folder: Path) -> list[Row]:
    model = Transformer(str(folder), 3, device="cpu").encoding()
    return [
        row for text, coded in model.coder.code(TEXTS).items() for row in model.coder.rows(text, coded, 60, "truncate")
    ]


@pytest.mark.parametrize("kind", PACKED)
def test_rows_behind_one_another_have_the_states_that_each_has_alone(kind: str, tiny: Tiny) -> None:
    stack, rows = loaded(tiny(kind)), rows_of(tiny(kind))
    assert not stack.pads
    assert len({len(row.ids) for row in rows}) > 4
    padding = Stack(stack.network, stack.device, stack.padding, None)
    for together, padded, row in zip(stack.states(rows), padding.states(rows), rows, strict=True):
        (alone,) = padding.states([row])
        np.testing.assert_allclose(together, alone, rtol=0, atol=2e-6)
        np.testing.assert_allclose(together, padded, rtol=0, atol=2e-6)


@pytest.mark.parametrize("kind", PACKED)
def test_the_order_of_packed_rows_moves_no_state(kind: str, tiny: Tiny) -> None:
    stack, rows = loaded(tiny(kind)), rows_of(tiny(kind))
    for states, again in zip(stack.states(rows), stack.states(rows[::-1])[::-1], strict=True):
        np.testing.assert_allclose(states, again, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", PADDED)
def test_networks_with_other_positions_are_padded(kind: str, tiny: Tiny) -> None:
    assert loaded(tiny(kind)).pads


def test_packs_hold_as_many_rows_as_fit_the_budget() -> None:
    packs: list[list[int]] = []
    lengths = [3, 10, 1, 7, 7, 2]

    def compute(batch: list[int]) -> list[int]:
        packs.append([lengths[number] for number in batch])
        return batch

    assert in_batches(lengths, 17, compute, "x", pads=False) == [0, 1, 2, 3, 4, 5]
    assert packs == [[10, 7], [7, 3, 2, 1]]
    packs.clear()
    in_batches(lengths, 9, compute, "x", pads=False)
    assert packs == [[10], [7], [7], [3, 2, 1]], "a row that is longer than the budget is computed alone"


def test_packs_of_rows_of_any_lengths_become_smaller_where_memory_runs_out() -> None:
    lengths = [20, *[5] * 7]
    sizes: list[int] = []

    def compute(batch: list[int]) -> list[int]:
        sizes.append(len(batch))
        if len(batch) > 3:
            raise MemoryError
        return batch

    with pytest.warns(MemoryWarning, match="going on with"):
        assert in_batches(lengths, 80, compute, "x", pads=False) == list(range(8))
    assert sizes[:2] == [8, 4]
    assert sum(size for size in sizes if size <= 3) == 8
