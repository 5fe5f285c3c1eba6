"""Tests between systems, as readers meet them."""

from whyscore.jobs.runs_reading import Run
from whyscore.jobs.runs_tests import pairs_tested
from whyscore.report.model import PairTest


def pair_tests(run: Run) -> tuple[PairTest, ...]:
    """Return every tested pair."""
    return tuple(PairTest(*one) for one in pairs_tested(run))
