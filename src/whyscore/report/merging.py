"""Several runs as one, to see what changed: `old/` and `new/` side by side, segment by segment.

1. Systems are named after their run where a name occurs in several of them: `old: base`, `new: base`.
2. Metrics are those all runs have. Where their signatures differ, the numbers cannot be compared: refused.
3. Each system is tested against its older self, by flipping the signs of the differences between segments. The tests
   inside each run are kept; its clusters are not, because they know nothing of the other run.
4. Segments are joined by their ids; a segment whose source or references differ is shown with both.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from whyscore.errors import DataError
from whyscore.runs.reading import Row, Run
from whyscore.runs.tests import ROW
from whyscore.stats.correction import ALPHA
from whyscore.stats.systems import DRAWS, flip_test
from whyscore.types import Dataset, Estimate, ExplanationRecord, FloatVector, RunMetric

_RUNS = 2


def merged(runs: Sequence[Run]) -> Run:
    """Return one run that holds the systems of all."""
    if len(runs) < _RUNS:
        return runs[0]
    labels = _labels(runs)
    metrics = _common(runs)
    names = [_renamed(runs, k, label) for k, label in enumerate(labels)]
    entries = [
        replace(entry, system=names[k][entry.system]) for k, run in enumerate(runs) for entry in run.dataset.entries
    ]
    dataset = Dataset(" → ".join(labels), tuple(entries), runs[0].dataset.languages)
    totals: dict[str, dict[str, Estimate]] = {
        one.name: {
            names[k][system]: total for k, run in enumerate(runs) for system, total in run.totals[one.name].items()
        }
        for one in metrics
    }
    scores = {one.name: np.concatenate([run.scores[one.name] for run in runs]) for one in metrics}
    whole = Run(
        folder=runs[-1].folder,
        facts=_facts(runs, labels),
        dataset=dataset,
        metrics=metrics,
        totals=totals,
        scores=scores,
        decomposition=_rows([run.decomposition for run in runs], names),
        comparisons=_rows([[row for row in run.comparisons if ROW not in row] for run in runs], names),
        signatures={key: text for run in runs for key, text in run.signatures.items()},
    )
    whole = replace(whole, comparisons=(*whole.comparisons, *_changes(whole)))
    # Explanations are read once, from all folders; the merged run has none of its own.
    whole.__dict__["explanations"] = tuple(_told(runs, {one.name for one in metrics}))
    return whole


def pairs(run: Run) -> list[tuple[str, str]]:
    """Return the systems of a merged run that are the same one, old and new."""
    found: dict[str, list[str]] = {}
    for system in run.dataset.systems:
        _, sign, name = system.partition(": ")
        if sign:
            found.setdefault(name, []).append(system)
    return [(same[0], same[-1]) for same in found.values() if len(same) > 1]


def _changes(run: Run) -> list[Row]:
    """Return the test of each system against its older self, on the scores of the segments that both have."""
    found: list[Row] = []
    place = {(entry.system, entry.id): k for k, entry in enumerate(run.dataset.entries)}
    for one in run.metrics:
        values, totals = run.scores[one.name], run.totals[one.name]
        for old, new in pairs(run):
            both = [name for name in run.dataset.ids if (old, name) in place and (new, name) in place]
            gaps = values[[place[new, name] for name in both]] - values[[place[old, name] for name in both]]
            p = _p(gaps[np.isfinite(gaps)])
            size = totals[new].value - totals[old].value
            better = (new if (size > 0) == one.higher_is_better else old) if p <= ALPHA and size else None
            row = {"metric": one.name, "first": new, "second": old, "difference": size, "low": None, "high": None}
            found.append(row | {"p": p, "better": better})
    return found


def _p(gaps: FloatVector) -> float:
    """Return how well chance explains differences between segments; 1 where there are none."""
    return flip_test(gaps, n=DRAWS, seed=0).two_sided if len(gaps) and gaps.any() else 1.0


def _labels(runs: Sequence[Run]) -> list[str]:
    """Return the shortest tails of the folders' paths that differ."""
    parts = [Path(run.folder).resolve().parts for run in runs]
    for length in range(1, max(map(len, parts)) + 1):
        tails = ["/".join(part[-length:]) for part in parts]
        if len(set(tails)) == len(tails):
            return tails
    raise DataError(f"{runs[0].folder} is given twice: a run has no difference to itself")


def _common(runs: Sequence[Run]) -> tuple[RunMetric, ...]:
    shared = [one for one in runs[0].metrics if all(one.name in {m.name for m in run.metrics} for run in runs)]
    if not shared:
        raise DataError("the runs have no metric in common: evaluate both with the same -m")
    for one in shared:
        signatures = {run.metric(one.name).signature for run in runs}
        if len(signatures) > 1:
            told = "' and '".join(sorted(signatures))
            raise DataError(f"{one.name} was made in different ways: '{told}'. Evaluate both in the same way")
    return tuple(shared)


def _renamed(runs: Sequence[Run], number: int, label: str) -> dict[str, str]:
    others = {system for k, run in enumerate(runs) if k != number for system in run.dataset.systems}
    return {name: f"{label}: {name}" if name in others else name for name in runs[number].dataset.systems}


def _rows(tables: Sequence[Sequence[Row]], names: Sequence[dict[str, str]]) -> tuple[Row, ...]:
    keys = ("system", "first", "second", "better")
    return tuple(
        {key: known.get(str(value), value) if key in keys else value for key, value in row.items()}
        for rows, known in zip(tables, names, strict=True)
        for row in rows
    )


def _told(runs: Sequence[Run], metrics: set[str]) -> list[ExplanationRecord]:
    found, start = [], 0
    for run in runs:
        found += [replace(one, entry=one.entry + start) for one in run.explanations if one.metric in metrics]
        start += len(run.dataset)
    return found


def _facts(runs: Sequence[Run], labels: Sequence[str]) -> Row:
    def gathered(key: str) -> list[str]:
        known = [(label, run.facts.get(key)) for label, run in zip(labels, runs, strict=True)]
        return [f"{label}: {text}" for label, told in known if isinstance(told, list) for text in told]

    created = [f"{label} {run.facts.get('created')}" for label, run in zip(labels, runs, strict=True)]
    whole = {"created": ", ".join(created), "findings": gathered("findings"), "problems": gathered("problems")}
    return dict(runs[-1].facts) | whole | {"command": None, "seconds": None}
