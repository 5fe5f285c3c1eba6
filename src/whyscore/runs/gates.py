"""Quality gates: what a pipeline refuses to ship.

| gate | passed where |
|---|---|
| `under`: a metric and a number | every system reaches the number (or stays below it, where lower is better) |
| `worse`: a system | no other system is worse than it beyond chance, by any metric |
"""

from collections.abc import Iterable, Mapping

from whyscore.errors import DataError, GateNotPassed, UserError
from whyscore.runs.reading import Run
from whyscore.runs.tests import pairs_tested


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
            raise UserError(f"a gate on {name!r}, which is not evaluated: use one of {', '.join(known)}")
    if worse is not None and worse not in there:
        raise UserError(f"a gate against {worse!r}, which is no system here: use one of {', '.join(there)}")
    if worse is not None and len(there) < 2:  # noqa: PLR2004 - a comparison takes two
        raise UserError(f"a gate against {worse!r} needs another system beside it: give more with -t")


def failures(run: Run, under: Mapping[str, float], worse: str | None) -> list[str]:
    """Return what keeps the gates shut, one sentence each; nothing where they are passed."""
    found = []
    for name, limit in under.items():
        better = run.metric(name).higher_is_better
        for system, total in run.totals[name].items():
            passed = total.value >= limit if better else total.value <= limit
            if not passed:
                side = "below" if better else "above"
                found.append(f"{name} of {system} is {total.value:.2f}, {side} {limit:g}")
    if worse is not None:
        found += [
            f"{one.worse} is worse than {worse} by {one.metric} ({abs(one.difference):.2f}, p = {one.p:.3g})"
            for one in pairs_tested(run)
            if one.better == worse and one.p is not None
        ]
    return found


def check_gates(run: Run, under: Mapping[str, float], worse: str | None) -> None:
    """Raise where a gate is not passed."""
    found = failures(run, under, worse)
    if found:
        raise GateNotPassed(f"the quality gate is not passed: {'; '.join(found)}")
    if worse is not None and not run.comparisons:
        raise DataError("nothing was tested, so the gate against a system cannot be judged: evaluate with --draws")
