"""Quality gates on a run or a comparison: what a pipeline refuses to ship.

| gate | passed where |
|---|---|
| `under`: a metric and a number | every system reaches the number (or stays below it, where lower is better) |
| `worse`: a system | no other system is significantly worse than it, by any metric |
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from whyscore.errors import DataError, GateNotPassed, UserError
from whyscore.types import PairTest, Total


class Tested(Protocol):
    """What gates look at: a run, or a comparison."""

    @property
    def pairs(self) -> Sequence[PairTest]:
        """The tested differences."""

    def total_records(self) -> Iterator[Total]:
        """Yield the corpus scores."""


def read_limits(given: Iterable[str]) -> dict[str, float]:
    """Return the limits that `METRIC=NUMBER` texts name.

    >>> read_limits(["chrf=50", "ter=60.5"])
    {'chrf': 50.0, 'ter': 60.5}
    """
    found = {}
    for text in given:
        name, _, value = text.rpartition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            name = ""
        if not name:
            raise UserError(f"cannot read the gate {text!r}: write METRIC=NUMBER, for example chrf=50")
    return found


def check_names(metrics: Iterable[str], systems: Iterable[str], under: Mapping[str, float], worse: str | None) -> None:
    """Refuse gates on metrics and systems that are not evaluated, before any work."""
    known, there = list(metrics), list(systems)
    for name in under:
        if name not in known:
            raise UserError(f"--fail-under: no metric {name!r}. Metrics: {', '.join(known)}")
    if worse is not None and worse not in there:
        raise UserError(f"--fail-if-worse: no system {worse!r}. Systems: {', '.join(there)}")
    if worse is not None and len(there) < 2:  # noqa: PLR2004 - a comparison takes two
        raise UserError(f"--fail-if-worse {worse} needs another system beside it: give more with -t")


def failures(tested: Tested, under: Mapping[str, float], worse: str | None) -> list[str]:
    """Return why gates are not passed, one sentence each; nothing where they are."""
    found = []
    for total in tested.total_records():
        limit = under.get(total.metric)
        if limit is None:
            continue
        passed = total.score >= limit if total.higher_is_better else total.score <= limit
        if not passed:  # also where the score is not a number
            side = "below" if total.higher_is_better else "above"
            found.append(f"{total.metric} of {total.system} is {total.score:.2f}, {side} {limit:g}")
    found += [
        f"{one.worse} is significantly worse than {worse} by {one.metric} "
        f"({abs(one.difference):.2f}, p = {one.decisive:.3g})"
        for one in tested.pairs
        if worse is not None and one.better == worse
    ]
    return found


def check_gates(tested: Tested, under: Mapping[str, float], worse: str | None) -> None:
    """Raise where a gate is not passed."""
    found = failures(tested, under, worse)
    if found:
        raise GateNotPassed(f"the quality gate is not passed: {'; '.join(found)}")
    if worse is not None and not tested.pairs:
        raise DataError("nothing was tested, so the gate against a system cannot be judged: evaluate with --draws")
