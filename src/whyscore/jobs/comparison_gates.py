"""Quality gates on a comparison, as `runs_gates` has them on a run.

| gate | passed where |
|---|---|
| `under`: a metric and a number | every system reaches the number (or stays below it, where lower is better) |
| `worse`: a system | no other system is worse than it beyond chance, by any metric |
"""

from collections.abc import Mapping

from whyscore.errors import GateNotPassed
from whyscore.jobs.comparison import Comparison


def comparison_failures(found: Comparison, under: Mapping[str, float], worse: str | None) -> list[str]:
    """Return what keeps the gates shut, one sentence each; nothing where they are passed."""
    told = []
    for one in found:
        if one.metric in under:
            limit = under[one.metric]
            for system, total in one.totals.items():
                passed = total.value >= limit if one.higher_is_better else total.value <= limit
                if not passed:  # also where the score is not a number
                    side = "below" if one.higher_is_better else "above"
                    told.append(f"{one.metric} of {system} is {total.value:.2f}, {side} {limit:g}")
        told += [
            f"{pair.second if pair.better == pair.first else pair.first} is worse than {worse} by {pair.metric} "
            f"({abs(pair.difference):.2f}, p = {pair.adjusted:.3g})"
            for pair in one.pairs
            if worse is not None and pair.better == worse
        ]
    return told


def check_comparison(found: Comparison, under: Mapping[str, float], worse: str | None) -> None:
    """Raise where a gate is not passed."""
    told = comparison_failures(found, under, worse)
    if told:
        raise GateNotPassed(f"the quality gate is not passed: {'; '.join(told)}")
