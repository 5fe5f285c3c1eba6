"""The rows of a decomposition from a metric's answers: shares with intervals, tests, and the views beside them.

Resampling of shares: each system's bootstrap draws, and the tests between every two systems.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from whyscore.analysis.decompose.fit import cell_of, fit_of, summed_rows
from whyscore.analysis.decompose.masking import TokenGrain, cutter, token_row
from whyscore.analysis.decompose.result import Cost, Decomposition, Decompositions, Difference, ScorerDifference
from whyscore.analysis.decompose.settings import Measured, Study
from whyscore.analysis.decompose.tagging import Marked, MarkedEntry
from whyscore.analysis.decompose.views import (
    Additive,
    Counting,
    Usage,
    additive,
    discrepancy,
    examples_of,
    segment_rows,
    words_met,
)
from whyscore.analysis.explain import explain
from whyscore.metrics.lexical.bleu import Bleu
from whyscore.stats.correction import corrected
from whyscore.stats.shares import Interval, interval, resampled, swap_test
from whyscore.text.placeholders import TokenRow
from whyscore.types import Explanation, FloatMatrix, Signature


class System(NamedTuple):
    """One system: its entries, for every entry of the data set its segment (-1: another system's), and its draws."""

    name: str
    entries: list[int]
    lines: list[int]
    table: FloatMatrix
    draws: FloatMatrix


def systems_of(study: Study, one: Measured) -> list[System]:
    """Return the systems; the same seed gives all of them, and all features, the same weights."""
    dataset, settings = study.dataset, study.settings
    place = {name: k for k, name in enumerate(dataset.ids)}
    found = []
    for name in dataset.systems:
        entries = [k for k, entry in enumerate(dataset.entries) if entry.system == name]
        lines = [place[entry.id] if entry.system == name else -1 for entry in dataset.entries]
        table = summed_rows(one.values, lines, len(place))
        draws = resampled(table, fit_of(one.values), draws=settings.draws, seed=settings.seed)
        found.append(System(name, entries, lines, table, draws))
    return found


class _Compared(NamedTuple):
    """A difference before it is corrected."""

    feature: str
    first: str
    second: str
    difference: float
    limits: Interval
    p: float


def tests_between(study: Study, one: Measured, systems: Sequence[System]) -> list[Difference]:
    """Return the difference of every two systems on every feature, corrected over all of them."""
    if not study.settings.draws:
        return []
    found = [row for first, second in combinations(systems, 2) for row in _pair(study, one, first, second)]
    correction = study.settings.correction
    adjusted = corrected(correction, [row.p for row in found], family="features x pairs of systems").adjusted
    return [_difference(one.name, correction, row, q) for row, q in zip(found, adjusted, strict=True)]


def _pair(study: Study, one: Measured, first: System, second: System) -> list[_Compared]:
    settings, fit = study.settings, fit_of(one.values)
    both = _shared(study, first, second)
    p = swap_test(first.table[both], second.table[both], fit, draws=settings.draws, seed=settings.seed)
    values = [fit(system.table.sum(axis=0, keepdims=True))[0] for system in (first, second)]
    differences, draws = values[0] - values[1], first.draws - second.draws
    return [
        _Compared(name, first.name, second.name, float(differences[k]), interval(draws[:, k]), float(p[k]))
        for k, name in enumerate(study.marking.features)
    ]


def _difference(metric: str, correction: str, row: _Compared, q: float) -> Difference:
    names = metric, row.feature, row.first, row.second
    if np.isnan(row.difference):
        reason = f"the share of {row.feature} is undefined for {row.first} or {row.second}"
        return Difference(*names, None, None, None, None, None, correction, reason)
    return Difference(*names, row.difference, row.limits.low, row.limits.high, row.p, q, correction)


def _shared(study: Study, first: System, second: System) -> list[int]:
    """Return the segments that two systems share."""
    ids = [{study.dataset.entries[k].id for k in system.entries} for system in (first, second)]
    return [k for k, name in enumerate(study.dataset.ids) if name in ids[0] and name in ids[1]]


class Rows(NamedTuple):
    """The rows of one metric, the tests between systems, and the importance of words without a feature."""

    rows: list[Decomposition]
    tests: list[Difference]
    others: dict[tuple[str, str], float]


def rows_of(study: Study, measured: Sequence[Measured]) -> Rows:
    """Return the rows of all metrics."""
    found = Rows([], [], {})
    for one in measured:
        systems = systems_of(study, one)
        views = _additive(study, one)
        counting = Counting(_tokens(study, one))
        for system in systems:
            found.rows.extend(_system_rows(study, one, system, counting, views.get(system.name)))
        found.tests.extend(tests_between(study, one, systems))
        found.others.update({(name, one.name): view.other for name, view in views.items()})
    return found


def described(
    study: Study,
    measured: Sequence[Measured],
    rows: Rows,
    scorers: Sequence[ScorerDifference],
    signatures: Mapping[str, Signature],
) -> Decompositions:
    """Return the rows with everything that belongs beside them."""
    asked, distinct = (sum(getattr(one, name) for one in measured) for name in ("asked", "distinct"))
    marking = study.marking
    return Decompositions(
        rows.rows,
        tests=rows.tests,
        scorers=scorers,
        others=rows.others,
        signatures=signatures,
        cost=Cost(marking.asked, marking.distinct, marking.tagged, asked, distinct, 0),
        notes=[note for one in measured for note in _notes(study, one)],
    )


def _tokens(study: Study, one: Measured) -> Callable[[Marked], TokenRow]:
    if isinstance(one.grain, TokenGrain):
        return one.grain.tokens
    cut = cutter(one.metric, study.marking, "nltk" if study.settings.mode == "compat" else study.settings.tokens)
    return lambda text: token_row(cut(text.text), text.text)


def _system_rows(
    study: Study, one: Measured, system: System, counting: Counting, view: Additive | None
) -> list[Decomposition]:
    entries = [study.marking.entries[k] for k in system.entries]
    pairings = counting.pairings(entries)
    sigma_all = _sigma_all(one, system)
    rows = []
    for feature, name in enumerate(study.marking.features):
        chosen = [k for k, entry in enumerate(one.values.members[feature]) if system.lines[entry] >= 0]
        cell = cell_of(one.values, feature, chosen)
        members = [study.marking.entries[one.values.members[feature][k]] for k in chosen]
        usage = _usage(counting, entries, feature)
        limits = interval(system.draws[:, feature]) if cell.share is not None else Interval(None, None)
        rows.append(
            Decomposition(
                system=system.name,
                metric=one.name,
                feature=name,
                n=cell.n,
                informative=cell.informative,
                sigma=cell.sigma,
                sigma_all=sigma_all,
                oracle=cell.oracle,
                anti=cell.anti,
                share=cell.share,
                low=limits.low,
                high=limits.high,
                guarded=cell.guarded,
                gain=cell.gain,
                discrepancy={"all": _discrepancy(entries, feature), "both": _discrepancy(members, feature)},
                frequency={side: frequency for side, (frequency, _) in usage.items()},
                uniqueness={side: uniqueness for side, (_, uniqueness) in usage.items()},
                flags=(*cell.flags, *(("unnatural-text",) if one.kind == "opaque" else ())),
                reason=cell.reason if cell.n else _absent(entries, feature, name),
                range=cell.range,
                outside=cell.outside,
                dropped=limits.dropped,
                word_f=words_met(pairings, feature)._asdict(),
                additive=None if view is None else float(view.features[feature]),
                segments=segment_rows(study, one, feature, chosen),
                examples=examples_of(study, one, feature, chosen),
            )
        )
    return rows


def _usage(counting: Counting, entries: Sequence[MarkedEntry], feature: int) -> dict[str, Usage]:
    references = [text for entry in entries for text in entry.references]
    hypotheses = [entry.hypothesis for entry in entries]
    return {"reference": counting.usage(references, feature), "hypothesis": counting.usage(hypotheses, feature)}


def _sigma_all(one: Measured, system: System) -> float:
    rows = one.values.answers.plain[system.entries]
    if one.values.corpus:
        return one.values.reading.total(rows.sum(axis=0))
    return float(one.values.reading.values(rows).mean())


def _discrepancy(entries: Sequence[MarkedEntry], feature: int) -> dict[str, int]:
    return discrepancy(
        (entry.hypothesis.count(feature), [text.count(feature) for text in entry.references]) for entry in entries
    )


def _absent(entries: Sequence[MarkedEntry], feature: int, name: str) -> str:
    references = sum(any(text.spans[feature] for text in entry.references) for entry in entries)
    hypotheses = sum(bool(entry.hypothesis.spans[feature]) for entry in entries)
    return f"no segment has {name} on both sides (reference {references}, hypothesis {hypotheses})"


def _additive(study: Study, one: Measured) -> dict[str, Additive]:
    """Return each system's summed importance of words by feature, where an explainer was asked for."""
    settings, dataset = study.settings, study.dataset
    if settings.explainer is None:
        return {}
    explained = explain(
        dataset, one.metric, settings.explainer, sides=["hypothesis"], seed=settings.seed, resources=study.resources
    )
    by_system: dict[str, list[tuple[MarkedEntry, Explanation]]] = {name: [] for name in dataset.systems}
    for found in explained:
        by_system[dataset.entries[found.index].system].append((study.marking.entries[found.index], found))
    count, factor = len(study.marking.features), one.values.reading.factor
    return {name: additive(pairs, count, factor) for name, pairs in by_system.items()}


def _notes(study: Study, one: Measured) -> list[str]:
    metric = one.metric
    if not (isinstance(metric, Bleu) and metric.smoothing == "none" and isinstance(one.grain, TokenGrain)):
        return []
    shown = [k for k, entry in enumerate(study.dataset.entries) if entry.system == study.dataset.systems[0]]
    references = [text for k in shown for text in study.marking.entries[k].references]
    short = sum(len(one.grain.tokens(text).texts) < metric.max_order for text in references)
    told = f"{short} reference(s) have fewer than {metric.max_order} tokens: {one.name} without smoothing is 0 there"
    return [f"{told} even for the reference itself; bleu(smoothing='exp') is not"] if short else []
