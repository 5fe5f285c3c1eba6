"""Quality gates on a run or a comparison: what a pipeline refuses to ship.

| gate | passed where |
|---|---|
| `under`: a metric and a number | every candidate reaches the number (or stays below it, where lower is better) |
| `worse`: a baseline | no candidate is significantly worse than it, by any metric |

Candidates are all systems but the baseline.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from whyscore.analysis.common import requested_name
from whyscore.analysis.compare.compare import smallness
from whyscore.analysis.compare.result import CompareSettings
from whyscore.errors import DataError, GateNotPassed, SpecError, UserError
from whyscore.types import Gate, PairTest, Total
from whyscore.types.result import Table


class Tested(Protocol):
    """What gates look at: a run, or a comparison."""

    @property
    def pairs(self) -> Sequence[PairTest]:
        """The tested differences."""

    def total_records(self) -> Iterator[Total]:
        """Yield the corpus scores."""


def read_limits(texts: Iterable[str], metrics: Iterable[str]) -> dict[str, float]:
    """Return by metric the limits that `METRIC=NUMBER` texts name; metrics are written in any way that `-m` takes.

    >>> read_limits(["chrf=50", "ter=60.5"], ["chrf", "ter"])
    {'chrf': 50.0, 'ter': 60.5}
    >>> read_limits(["chrF++=50"], ["bleu", "chrf(word_order=2)"])
    {'chrf(word_order=2)': 50.0}
    """
    spellings = {_fold_name(name): name for name in metrics} if texts else {}
    limits = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        try:
            limit = float(value)
        except ValueError:
            limit = math.nan
        if not name or not math.isfinite(limit):
            raise UserError(f"cannot read the gate {text!r}: write METRIC=NUMBER, for example chrf=50")
        if _fold_name(name) not in spellings:
            raise UserError(f"--fail-under: no metric {name!r}. Metrics: {', '.join(spellings.values())}")
        limits[spellings[_fold_name(name)]] = limit
    return limits


def _fold_name(name: str) -> str:
    """Return the name of a metric without differences of case, quotes and spaces; human scores have any name."""
    try:
        return requested_name(name).casefold()
    except SpecError:
        return name.strip().casefold()


def check_baseline(systems: Iterable[str], worse: str | None) -> None:
    """Refuse a gate on a system that is not evaluated, or that has nothing beside it, before any work."""
    there = list(systems)
    if worse is not None and worse not in there:
        raise UserError(f"--fail-if-worse: no system {worse!r}. Systems: {', '.join(there)}")
    if worse is not None and len(there) < 2:  # noqa: PLR2004 - a comparison takes two
        raise UserError(f"--fail-if-worse {worse} needs at least one other system: give more with -t")


def judge_gates(
    tested: Tested,
    under: Mapping[str, float],
    worse: str | None,
    unsupported: Mapping[str, Sequence[str]] | None = None,
    settings: CompareSettings | None = None,
) -> list[Gate]:
    """Return every gate on every candidate, passed or not.

    Args:
        tested: A run or a comparison.
        under: By metric, the number that candidates have to reach.
        worse: The baseline that no candidate may be significantly worse than; it is no candidate itself.
        unsupported: By metric, the languages that it was not made for: a reason why it should not decide.
        settings: Of the tests; None for the defaults, which runs have.
    """
    warnings = {name: f"does not support {', '.join(codes)}" for name, codes in (unsupported or {}).items()}
    totals = [total for total in tested.total_records() if total.system != worse]
    gates = []
    for total in totals:
        limit = under.get(total.metric)
        if limit is not None:
            passed = total.score >= limit if total.higher_is_better else total.score <= limit  # a NaN does not pass
            up, note = total.higher_is_better, warnings.get(total.metric)
            names = total.metric, total.system, passed, total.score
            gates.append(Gate(*names, limit=limit, higher_is_better=up, warning=note))
    if worse is not None:
        scores = {(total.metric, total.system): total for total in totals}
        pairs = [pair for pair in tested.pairs if worse in (pair.first, pair.second)]
        gates += [_against(pair, worse, scores, warnings, settings or CompareSettings()) for pair in pairs]
    return gates


def _against(
    pair: PairTest,
    baseline: str,
    scores: Mapping[tuple[str, str], Total],
    warnings: Mapping[str, str],
    settings: CompareSettings,
) -> Gate:
    """Return the gate of a candidate against the baseline."""
    system = pair.second if pair.first == baseline else pair.first
    total = scores.get((pair.metric, system))
    up = total is None or total.higher_is_better
    gap = pair.difference if pair.first == system else -pair.difference
    passed = pair.better != baseline and pair.decisive is not None  # what could not be tested does not pass
    warning = warnings.get(pair.metric) or (smallness(pair.n, pair.blocks, settings) if passed else None)
    return Gate(
        pair.metric,
        system,
        passed,
        float("nan") if total is None else total.score,
        baseline=baseline,
        difference=gap if up else -gap,
        p=pair.decisive,
        higher_is_better=up,
        warning=warning,
    )


def check_gates(gates: Sequence[Gate], worse: str | None, under: Mapping[str, float] | None = None) -> None:
    """Raise where a gate is not passed, or where a requested one had nothing to judge by."""
    failed = [str(gate) for gate in gates if not gate.passed]
    if failed:
        raise GateNotPassed(f"quality gate not passed: {'; '.join(failed)}")
    limited = {gate.metric for gate in gates if gate.limit is not None}
    if not set(under or ()) <= limited or (worse is not None and not any(gate.baseline == worse for gate in gates)):
        raise DataError("nothing was tested, so the gates cannot be judged: evaluate more systems, and with --draws")


def junit_lines(gates: Sequence[Gate], name: str) -> Iterator[str]:
    """Yield the gates as JUnit XML, one test case each, for continuous integration."""
    from xml.sax.saxutils import escape, quoteattr  # noqa: PLC0415 - imports urllib and ssl

    failed = sum(not gate.passed for gate in gates)
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f'<testsuite name={quoteattr(name)} tests="{len(gates)}" failures="{failed}" errors="0">\n'
    for gate in gates:
        what = f"under {gate.limit:g}" if gate.limit is not None else f"worse than {gate.baseline}"
        yield f"  <testcase classname={quoteattr(gate.metric)} name={quoteattr(f'{gate.system} not {what}')}"
        inner = "" if gate.passed else f"    <failure message={quoteattr(str(gate))}/>\n"
        inner += f"    <system-out>{escape(gate.warning)}</system-out>\n" if gate.warning else ""
        yield f">\n{inner}  </testcase>\n" if inner else "/>\n"
    yield "</testsuite>\n"


def gate_table(gates: Sequence[Gate]) -> Table:
    """Return the gates as a table."""
    rows = [
        (
            *("passed" if gate.passed else "FAILED", gate.metric, gate.system, gate.score),
            f"{'at least' if gate.higher_is_better else 'at most'} {gate.limit:g}"
            if gate.limit is not None
            else f"not significantly worse than {gate.baseline}",
            *(gate.difference, gate.p, gate.warning or ""),
        )
        for gate in gates
    ]
    return Table(("gate", "metric", "system", "score", "required", "difference", "p", "note"), tuple(rows))
