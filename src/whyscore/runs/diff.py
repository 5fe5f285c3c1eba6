"""Several runs as one, to see what changed: `old/` and `new/` side by side, segment by segment.

1. A system is identified by its run and its name there. In the merged run it keeps its name, with the label of its run
   before it where the name occurs in several runs: `old: base`, `new: base`.
2. Metrics are those that all runs have. Where their signatures differ, the numbers cannot be compared: refused.
3. Each system is tested against its older self, by flipping the signs of the differences between segments. The tests
   inside each run are kept; its clusters are not, because they know nothing of the other run.
4. Segments are joined by their ids; a segment whose source or references differ is shown with both.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from whyscore.errors import DataError
from whyscore.runs.folder import Row, Run
from whyscore.stats.correction import ALPHA
from whyscore.stats.systems import DRAWS, flip_test
from whyscore.types import Dataset, ExplanationRecord, FloatVector, RunMetric


class Identity(NamedTuple):
    """A system of a merged run: the label of its run, and its name there."""

    run: str
    system: str


@dataclass(frozen=True, eq=False)
class MergedRun(Run):
    """The systems of several runs."""

    runs: tuple[Run, ...] = ()
    identities: Mapping[str, Identity] = field(default_factory=dict)
    """By the name of the system in the merged run."""

    @property
    def changes(self) -> dict[str, tuple[str, str]]:
        """By system, its names in the merged run, in the first and in the last run that have it."""
        names: dict[str, list[str]] = {}
        for name, identity in self.identities.items():
            names.setdefault(identity.system, []).append(name)
        return {system: (same[0], same[-1]) for system, same in names.items() if len(same) > 1}

    def read_explanations(self) -> Iterator[ExplanationRecord]:
        """Yield the explanations of all runs by the metrics that they have in common."""
        metrics, start = {one.name for one in self.metrics}, 0
        for run in self.runs:
            yield from (replace(one, entry=one.entry + start) for one in run.explanations if one.metric in metrics)
            start += len(run.dataset)


def merge_runs(runs: Sequence[Run]) -> MergedRun:
    """Return one run that holds the systems of all."""
    labels, metrics = _labels(runs), _common_metrics(runs)
    names = _names(runs, labels)
    entries = [
        replace(entry, system=known[entry.system])
        for run, known in zip(runs, names, strict=True)
        for entry in run.dataset.entries
    ]
    whole = MergedRun(
        folder=runs[-1].folder,
        facts=_facts(runs, labels),
        dataset=Dataset(" → ".join(labels), tuple(entries), runs[0].dataset.languages),
        metrics=metrics,
        totals={
            one.name: {
                known[system]: total
                for run, known in zip(runs, names, strict=True)
                for system, total in run.totals[one.name].items()
            }
            for one in metrics
        },
        scores={one.name: np.concatenate([run.scores[one.name] for run in runs]) for one in metrics},
        decomposition=_renamed([run.decomposition for run in runs], names),
        comparisons=_renamed([[row for row in run.comparisons if "row" not in row] for run in runs], names),
        signatures={key: text for run in runs for key, text in run.signatures.items()},
        runs=tuple(runs),
        identities={
            new: Identity(label, old) for label, known in zip(labels, names, strict=True) for old, new in known.items()
        },
    )
    return replace(whole, comparisons=(*whole.comparisons, *_change_tests(whole)))


def _change_tests(run: MergedRun) -> Iterator[Row]:
    """Yield the test of each system against its older self, on the scores of the segments that both have."""
    place = {(entry.system, entry.id): k for k, entry in enumerate(run.dataset.entries)}
    for one in run.metrics:
        values, totals = run.scores[one.name], run.totals[one.name]
        for old, new in run.changes.values():
            both = [name for name in run.dataset.ids if (old, name) in place and (new, name) in place]
            gaps = values[[place[new, name] for name in both]] - values[[place[old, name] for name in both]]
            p = _p(gaps[np.isfinite(gaps)])
            size = totals[new].value - totals[old].value
            better = (new if (size > 0) == one.higher_is_better else old) if p <= ALPHA and size else None
            row = {"metric": one.name, "first": new, "second": old, "difference": size, "low": None, "high": None}
            yield row | {"p": p, "better": better}


def _p(gaps: FloatVector) -> float:
    """Return the p-value of the differences between segments; 1 where there are none."""
    return flip_test(gaps, n=DRAWS, seed=0).two_sided if len(gaps) and gaps.any() else 1.0


def _labels(runs: Sequence[Run]) -> list[str]:
    """Return the shortest tails of the folders' paths that differ."""
    parts = [Path(run.folder).resolve().parts for run in runs]
    for length in range(1, max(map(len, parts)) + 1):
        tails = ["/".join(part[-length:]) for part in parts]
        if len(set(tails)) == len(tails):
            return tails
    raise DataError(f"{runs[0].folder} is given twice: a run cannot be compared with itself")


def _common_metrics(runs: Sequence[Run]) -> tuple[RunMetric, ...]:
    shared = [one for one in runs[0].metrics if all(one.name in {m.name for m in run.metrics} for run in runs)]
    if not shared:
        raise DataError("the runs have no metric in common: evaluate both with the same -m")
    for one in shared:
        signatures = {run.metric(one.name).signature for run in runs}
        if len(signatures) > 1:
            both = "' and '".join(sorted(signatures))
            raise DataError(f"{one.name} has different signatures: '{both}'. Evaluate both runs with the same settings")
    return tuple(shared)


def _names(runs: Sequence[Run], labels: Sequence[str]) -> list[dict[str, str]]:
    """Return, for each run, the names that its systems have in the merged run: all different."""
    every = [system for run in runs for system in run.dataset.systems]
    taken = {system for system in every if every.count(system) == 1}
    found: list[dict[str, str]] = []
    for run, label in zip(runs, labels, strict=True):
        known = {}
        for system in run.dataset.systems:
            name = system
            while every.count(system) > 1 and (name == system or name in taken):
                name = f"{label}: {name}"
            known[system] = name
            taken.add(name)
        found.append(known)
    return found


def _renamed(tables: Sequence[Sequence[Row]], names: Sequence[Mapping[str, str]]) -> tuple[Row, ...]:
    keys = ("system", "first", "second", "better")
    return tuple(
        {key: known.get(str(value), value) if key in keys else value for key, value in row.items()}
        for rows, known in zip(tables, names, strict=True)
        for row in rows
    )


def _facts(runs: Sequence[Run], labels: Sequence[str]) -> Row:
    created = [f"{label} {run.facts.get('created')}" for label, run in zip(labels, runs, strict=True)]
    own = {key: _listed(runs, labels, key) for key in ("findings", "problems")}
    return dict(runs[-1].facts) | own | {"created": ", ".join(created), "command": None, "seconds": None}


def _listed(runs: Sequence[Run], labels: Sequence[str], key: str) -> list[object]:
    """Return a list of all runs; each message begins with the label of its run."""
    found: list[object] = []
    for label, run in zip(labels, runs, strict=True):
        listed = run.facts.get(key)
        for item in listed if isinstance(listed, list) else ():
            told = (
                item | {"message": f"{label}: {item.get('message')}"} if isinstance(item, dict) else f"{label}: {item}"
            )
            found.append(told)
    return found
