"""Many values at once."""

import gc
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyscore.data.gathering import make_values
from whyscore.garbage import gc_paused
from whyscore.types import Entry, Segment

rows = st.lists(st.tuples(st.text(), st.none() | st.text(), st.lists(st.text()).map(tuple)))


@given(rows)
def test_values_made_at_once_are_those_made_one_by_one(columns: list[tuple[str, str | None, tuple[str, ...]]]) -> None:
    expected = [Segment(*row) for row in columns]
    segments = make_values(Segment, [*([row[k] for row in columns] for k in range(3)), [()] * len(columns)])
    assert segments == expected
    assert list(map(hash, segments)) == list(map(hash, expected))
    nothing = [None] * len(columns)
    entries = make_values(
        Entry, [["i"] * len(columns), ["s"] * len(columns), segments, nothing, nothing, nothing, nothing]
    )
    assert entries == [Entry("i", "s", segment, None, None, None, None) for segment in expected]  # type: ignore[arg-type]


def test_values_made_at_once_are_frozen() -> None:
    (segment,) = make_values(Segment, [["a"], [None], [()], [()]])
    with pytest.raises(FrozenInstanceError):
        segment.hypothesis = "b"  # type: ignore[misc]


def test_the_collector_rests_only_inside_and_only_if_it_ran() -> None:
    assert gc.isenabled()
    with gc_paused():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), gc_paused():
        _ = 1 / 0
    assert gc.isenabled()
    gc.disable()
    try:
        with gc_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
