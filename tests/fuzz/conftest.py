"""Small sound documents of every format, and how they are spoiled."""

from collections.abc import Callable, Sequence

import pytest

from support.documents import DOCUMENTS
from support.spoiling import Edit, Swap, spoiled, swapped


@pytest.fixture(scope="session")
def documents() -> dict[str, bytes]:
    return DOCUMENTS


@pytest.fixture(scope="session")
def spoil() -> Callable[[bytes, Sequence[Edit]], bytes]:
    return spoiled


@pytest.fixture(scope="session")
def swap() -> Callable[[bytes, Sequence[Swap]], bytes]:
    """How values of JSON lines are exchanged for others: which place, which value."""
    return swapped
