"""Tests between systems, as readers meet them."""

from whyscore.report.model import PairTest
from whyscore.runs.reading import Run
from whyscore.runs.tests import pairs_tested


def pair_tests(run: Run) -> tuple[PairTest, ...]:
    """Return every tested pair."""
    return tuple(PairTest(*one) for one in pairs_tested(run))
