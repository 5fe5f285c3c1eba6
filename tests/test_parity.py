"""Parity with the original code: every setting of docs/parity.md, on tiny random models."""

from collections.abc import Iterator

import pytest

from support import parity

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

CASES = list(parity.cases())


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[parity.Workshop]:
    """Tiny networks lose more by sharing work between threads than they gain."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield parity.Workshop(tmp_path_factory.mktemp("parity"))
    torch.set_num_threads(threads)


@pytest.mark.parametrize("case", CASES, ids=[f"{case.metric}: {case.setting}" for case in CASES])
def test_the_original_gives_the_same_numbers(case: parity.Case, workshop: parity.Workshop) -> None:
    assert case.difference(workshop) <= case.limit
