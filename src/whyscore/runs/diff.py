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
from typing import NamedTuple, TypeVar

import numpy as np

from whyscore.errors import DataError
from whyscore.runs.folder import Run
from whyscore.stats.correction import ALPHA
from whyscore.stats.systems import DRAWS, flip_test
from whyscore.types import (
    Dataset,
    ExplanationRecord,
    FeatureShare,
    Finding,
    FloatVector,
    PairTest,
    RunFacts,
    RunMetric,
    SegmentFeatures,
    ShareTest,
)

F = TypeVar("F", FeatureShare, ShareTest, SegmentFeatures, PairTest)


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
        shares=_renamed([run.shares for run in runs], names),
        share_tests=_renamed([run.share_tests for run in runs], names),
        segment_features=_renamed([run.segment_features for run in runs], names),
        pairs=_renamed([run.pairs for run in runs], names),
        signatures={key: text for run in runs for key, text in run.signatures.items()},
        runs=tuple(runs),
        identities={
            new: Identity(label, old) for label, known in zip(labels, names, strict=True) for old, new in known.items()
        },
    )
    return replace(whole, pairs=(*whole.pairs, *_change_tests(whole)))


def _change_tests(run: MergedRun) -> Iterator[PairTest]:
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
            yield PairTest(one.name, new, old, size, p=p, better=better)


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


def _renamed(tables: Sequence[Sequence[F]], names: Sequence[Mapping[str, str]]) -> tuple[F, ...]:
    """Return the facts of all runs with the names that systems have in the merged run."""
    keys = ("system", "first", "second", "better")
    return tuple(
        replace(fact, **{key: known.get(getattr(fact, key), getattr(fact, key)) for key in keys if hasattr(fact, key)})
        for facts, known in zip(tables, names, strict=True)
        for fact in facts
    )


def _facts(runs: Sequence[Run], labels: Sequence[str]) -> RunFacts:
    return replace(
        runs[-1].facts,
        created=", ".join(f"{label} {run.facts.created}" for label, run in zip(labels, runs, strict=True)),
        command=None,
        seconds={},
        first_line=runs[0].facts.first_line if _same_lines(runs) else None,
        findings=_labelled([run.facts.findings for run in runs], labels),
        problems=_labelled([run.facts.problems for run in runs], labels),
    )


def _same_lines(runs: Sequence[Run]) -> bool:
    """Return whether all runs have the same segments on the same lines."""
    return len({(run.facts.first_line, run.dataset.ids) for run in runs}) == 1


def _labelled(tables: Sequence[Sequence[Finding]], labels: Sequence[str]) -> tuple[Finding, ...]:
    """Return the findings of all runs; each message begins with the label of its run."""
    each = zip(labels, tables, strict=True)
    return tuple(replace(one, message=f"{label}: {one.message}") for label, findings in each for one in findings)
