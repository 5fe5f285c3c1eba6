"""Is A better than B? Systems x metrics with tests, intervals and clusters.

1. Every metric is asked once for everything. A corpus metric (BLEU, chrF, TER) gives rows of counts, which are
   resampled instead of texts; any other metric, and a human score, counts by the mean of its segments. A judge that
   says which of two texts is better (`protocol='pairwise'`) is asked about every two systems: the score of a hypothesis
   is how often it is preferred to those of the other systems, a tie counts half. Equal hypotheses are a tie unasked.
2. Systems are compared on the segments that all of them have.
3. Every two systems are tested (`stats.systems`); whole documents are resampled where that is asked for.
4. Systems that do not differ significantly share a rank (`stats.clusters`).
5. Beside a difference stands how often human raters preferred the system that was ahead by as much.
   The numbers come with the package (`deltas.json`, made by scripts/make_deltas.py, which says how): of all pairs of
   systems in the WMT21 metrics task that a metric puts apart by about as much, on about as many segments, the share
   where MQM ratings prefer the same system. They hold for the metric's settings, the language pair and the domain they
   were measured on: anything else is refused, with the reason.
6. Notes say what a reader should know before believing it: too few segments, dependent ones, another order.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from itertools import combinations
from typing import NamedTuple

import msgspec
import numpy as np

from whyscore.analysis.common import MetricLike, as_metric, language_support, requested_name, with_languages
from whyscore.analysis.compare.result import (
    CompareSettings,
    Comparison,
    MetricComparison,
    PairPower,
    pair_draws,
    pair_power,
)
from whyscore.analysis.score import facts_of_data, judge_remarks
from whyscore.data.naming import few
from whyscore.errors import DataError, SpecError
from whyscore.protocols import Metric
from whyscore.scoring.answers import AsksModel
from whyscore.scoring.stack import LOCAL, Prepared, PreparedCorpus, Progress, Resources, Stages, require
from whyscore.settings import takes
from whyscore.stats.correction import Clusters, clusters, correct_p
from whyscore.stats.resampling import content_order, percentiles
from whyscore.stats.significance import reach_of
from whyscore.stats.systems import (
    PValues,
    Totals,
    Units,
    bootstrap_p,
    bradley_terry,
    classical_test,
    compare_rows,
    flip_test,
    in_blocks,
    mean_rows,
    mean_totals,
    resample,
)
from whyscore.types import Dataset, Estimate, FloatMatrix, FloatVector, HumanPreference, PairTest, Segment, Signature


def smallness(n: int, blocks: int | None, settings: CompareSettings) -> str | None:
    """Return a note where no result could be significant, however large the difference."""
    units = blocks or n
    least = 2 / 2**units  # every sign flipped one way or the other
    if settings.test != "permutation" or least <= settings.alpha:
        return None
    return f"{units} {'documents' if blocks else 'segments'} are too few: the smallest possible p is {least:g}"


def remarks(comparison: MetricComparison) -> list[str]:
    """Return what the segments are too few for, and where winning segments and scores disagree."""
    open_pairs = [pair for pair in comparison.pairs if pair.better is None and pair.detectable]
    notes = []
    if open_pairs:
        sizes = [pair.detectable for pair in open_pairs if pair.detectable]
        reach = f"{min(sizes):.3g}" if len(sizes) == 1 else f"{min(sizes):.3g} to {max(sizes):.3g}"
        notes.append(
            f"{comparison.metric}: {open_pairs[0].n} segments are too few to separate {len(open_pairs)} of "
            f"{len(comparison.pairs)} pairs of systems; the smallest detectable differences are {reach}"
        )
    order = comparison.clusters.names
    turned = [(a, b) for a, b in combinations(order, 2) if comparison.strengths[a] < comparison.strengths[b]]
    if turned:
        shown = few([f"{b} before {a}" for a, b in turned])
        notes.append(f"{comparison.metric}: ranking by segments won (Bradley-Terry) gives a different order: {shown}")
    return notes


_INTERVAL_DRAWS = 1000
_LEVEL = 0.95


class _Measure(NamedTuple):
    """A metric's answers, ready to be resampled."""

    name: str
    rows: FloatMatrix
    """One row per entry."""
    values: FloatVector
    """The score of each entry."""
    totals: Totals
    higher_is_better: bool
    corpus: bool
    signature: Signature | None
    notes: tuple[str, ...] = ()


class _Common(NamedTuple):
    """The segments that all systems have."""

    places: dict[str, list[int]]
    """For each system, the entries in the same order of segments."""
    documents: list[str] | None
    n: int


@takes(CompareSettings)
def compare(
    dataset: Dataset,
    metrics: Sequence[MetricLike] | MetricLike = (),
    *,
    settings: CompareSettings,
    resources: Resources = LOCAL,
) -> Comparison:
    """Return systems x metrics with a test between every two systems, by metrics, human scores or both."""
    requested = [metrics] if isinstance(metrics, str) or not isinstance(metrics, Sequence) else list(metrics)
    if not requested and not settings.human:
        raise SpecError("no metric to compare by: name one, for example ['chrf']")
    common, notes = _common(dataset, documents=settings.documents)
    measures = [_measure(dataset, metric, common, resources) for metric in requested]
    human = [(name, dataset.human(name)) for name in settings.human or ()]
    measures += [
        _Measure(name, mean_rows(values), values, mean_totals, higher_is_better=True, corpus=False, signature=None)
        for name, values in human
    ]
    progress = resources.progress or Stages()
    progress.begin("test", len(measures) * math.comb(len(common.places), 2))
    unsupported, doubts = language_support(dataset, {requested_name(metric): as_metric(metric) for metric in requested})
    tested = [
        replace(_compare_systems(measure, common, settings, progress), unsupported=unsupported.get(measure.name, ()))
        for measure in measures
    ]
    comparisons, unknown = _in_human_terms(tested, dataset.languages, common.n, settings.domain)
    blocks = len(set(common.documents)) if common.documents else None
    small = smallness(common.n, blocks, settings)
    notes += [f"{measure.name}: {note}" for measure in measures for note in measure.notes]
    if common.n < len(dataset.ids):
        notes += [_own_totals(measure, dataset) for measure in measures]
    notes += [small] if small else []
    all_notes = dict.fromkeys((*notes, *(note for tested in comparisons for note in remarks(tested)), *unknown))
    return Comparison(dataset, comparisons, settings, common.n, blocks, tuple(all_notes), tuple(map(str, doubts)))


def _in_human_terms(
    tested: Sequence[MetricComparison], languages: tuple[str, str] | None, n: int, domain: str | None
) -> tuple[tuple[MetricComparison, ...], list[str]]:
    """Return the comparisons with what each difference meant to human raters, and why that is not known of some."""
    result, reasons = [], dict[str, list[str]]()
    for comparison in tested:
        if comparison.signature is None:
            result.append(comparison)
            continue
        preferences = find_preferences(comparison.signature, languages, domain, n)
        if isinstance(preferences, str) and is_measured(comparison.signature):  # of other metrics nobody expects it
            reasons.setdefault(preferences, []).append(comparison.metric)
        pairs = tuple(replace(pair, humans=preference(preferences, pair.difference)) for pair in comparison.pairs)
        result.append(replace(comparison, pairs=pairs))
    notes = [f"{', '.join(names)}: differences in human terms: {reason}" for reason, names in reasons.items()]
    return tuple(result), notes


def _own_totals(measure: _Measure, dataset: Dataset) -> str:
    """Return what each system scores on all its segments, where they have different ones."""
    shown = []
    for system in dataset.systems:
        mine = np.array([entry.system == system for entry in dataset.entries]) & np.isfinite(measure.values)
        rows = np.flatnonzero(mine)
        if rows.size:
            total = measure.totals(measure.rows[rows].sum(axis=0, keepdims=True))[0]
            shown.append(f"{system} {total:.2f} ({len(rows)})")
    return f"{measure.name} of each system on all its own segments: {', '.join(shown)}"


def _common(dataset: Dataset, *, documents: bool) -> tuple[_Common, list[str]]:
    if len(dataset.systems) < 2:  # noqa: PLR2004 - a comparison takes two
        raise DataError(f"compare takes at least two systems, {dataset.name} has {len(dataset.systems)}: give more -t")
    by_system: dict[str, dict[str, int]] = {}
    for k, entry in enumerate(dataset.entries):
        by_id = by_system.setdefault(entry.system, {})
        if entry.id in by_id:
            raise DataError(f"system {entry.system!r} has the segment {entry.id!r} twice: keep one")
        by_id[entry.id] = k
    shared = [name for name in dataset.ids if all(name in segments for segments in by_system.values())]
    if not shared:
        counts = ", ".join(f"{system} {len(segments)}" for system, segments in by_system.items())
        raise DataError(f"the systems of {dataset.name} share no segment id ({counts} segments): ids must match")
    notes = []
    if len(shared) < len(dataset.ids):
        notes.append(f"compared on the {len(shared)} of {len(dataset.ids)} segments that all systems have")
    places = {system: [segments[name] for name in shared] for system, segments in by_system.items()}
    named = [dataset.entries[k].document for k in next(iter(places.values()))]
    if documents and None in named:
        raise DataError(
            f"{dataset.name} names no document for segment {shared[named.index(None)]!r}: leave documents out"
        )
    if not documents and None not in named and len(set(named)) < len(named):
        notes.append(f"the segments come from {len(set(named))} documents and are not independent: resample documents")
    return _Common(places, [str(document) for document in named] if documents else None, len(shared)), notes


def _measure(dataset: Dataset, metric: MetricLike, common: _Common, resources: Resources) -> _Measure:
    base = with_languages(as_metric(metric), dataset.languages)
    prepared = resources.prepare(base)
    name, direction = requested_name(metric), prepared.higher_is_better
    if compares_texts(prepared.metric):
        return _measure_preference(dataset, name, prepared, common)
    require(base, dataset.segments)
    signature = prepared.signature().with_facts(**facts_of_data(prepared, dataset.segments))
    if isinstance(prepared, PreparedCorpus):
        rows = prepared.statistics(dataset.segments)
        scores = prepared.scores(rows)
        return _Measure(name, rows, scores, prepared.totals, direction, corpus=True, signature=signature)
    values = prepared.score(dataset.segments)
    notes = tuple(judge_remarks(prepared, dataset.segments, [entry.system for entry in dataset.entries]))
    return _Measure(
        name, mean_rows(values), values, mean_totals, direction, corpus=False, signature=signature, notes=notes
    )


def compares_texts(metric: Metric) -> bool:
    """Return whether a metric says which of two texts is better, so that systems can be compared with one another."""
    return isinstance(metric, AsksModel) and metric.compares_texts


def compared_segments(dataset: Dataset, metric: Metric) -> list[Segment]:
    """Return what a metric is asked about in a comparison."""
    if not compares_texts(metric):
        return list(dataset.segments)
    return [match.segment for match in _matches(dataset, _common(dataset, documents=False)[0]) if not match.equal]


class _Match(NamedTuple):
    """Two hypotheses of one segment: their entries, and the first with the second in place of a reference."""

    first: int
    second: int
    segment: Segment

    @property
    def equal(self) -> bool:
        """Whether both are the same text."""
        return self.segment.references == (self.segment.hypothesis,)


def _matches(dataset: Dataset, common: _Common) -> list[_Match]:
    matches = []
    for ours, theirs in combinations(common.places.values(), 2):
        for first, second in zip(ours, theirs, strict=True):
            segment, rival = (dataset.entries[k].segment for k in (first, second))
            matches.append(_Match(first, second, replace(segment, references=(rival.hypothesis,))))
    return matches


_TIE = 50.0


def _measure_preference(dataset: Dataset, name: str, prepared: Prepared, common: _Common) -> _Measure:
    """Return how often each hypothesis is preferred to those of the other systems; NaN where one verdict is missing."""
    matches = _matches(dataset, common)
    open_matches = [match for match in matches if not match.equal]
    segments = [match.segment for match in open_matches]
    verdicts = dict(zip(open_matches, prepared.score(segments).tolist() if segments else [], strict=True))
    rivals = len(common.places) - 1
    values = np.full(len(dataset), np.nan)
    values[[place for places in common.places.values() for place in places]] = 0.0
    for match in matches:
        verdict = verdicts.get(match, _TIE)
        values[match.first] += verdict / rivals
        values[match.second] += (2 * _TIE - verdict) / rivals
    signature = prepared.signature().with_facts(rivals="systems")
    meaning = "scores show how often a system is preferred to the others, in %; ties count half"
    notes = (meaning, *judge_remarks(prepared, segments))
    return _Measure(
        *(name, mean_rows(values), values, mean_totals),
        higher_is_better=True,
        corpus=False,
        signature=signature,
        notes=notes,
    )


def _compare_systems(
    measure: _Measure, common: _Common, settings: CompareSettings, progress: Progress
) -> MetricComparison:
    """Return all systems under one metric."""
    shared = _in_content_order(_scored_segments(measure, common), measure, common)
    documents = None if common.documents is None else [common.documents[k] for k in shared]
    rows = {system: measure.rows[[places[k] for k in shared]] for system, places in common.places.items()}
    blocks = {system: in_blocks(row, documents) for system, row in rows.items()}
    draws = settings.draws if settings.test == "bootstrap" else min(settings.draws, _INTERVAL_DRAWS)
    samples = {system: resample(block, measure.totals, draws, settings.seed) for system, block in blocks.items()}
    totals = {system: _total(measure, block, samples[system], len(shared)) for system, block in blocks.items()}
    tested = []
    for first, second in combinations(common.places, 2):
        deltas = samples[first] - samples[second]
        p_values = _test_pairs(measure, Units(blocks[first], blocks[second], measure.totals), deltas, settings)
        size = totals[first].value - totals[second].value
        extent = (len(shared), len(set(documents)) if documents else None)
        tested.append(_difference((measure.name, first, second), size, deltas, p_values, extent))
        progress.advance(1)
    adjusted = correct_p(
        settings.correction, [math.nan if test.p is None else test.p for test in tested], settings.alpha
    ).adjusted
    pairs = tuple(_decide(test, value, measure, settings.alpha) for test, value in zip(tested, adjusted, strict=True))
    ordered = _clusters(measure, totals, pairs, settings.alpha)
    matrix = np.array([measure.values[[places[k] for k in shared]] for places in common.places.values()])
    turned = matrix if measure.higher_is_better else -matrix
    strong = bradley_terry(turned, draws=settings.strength_draws, seed=settings.seed)
    strengths = dict(zip(common.places, strong.strengths.tolist(), strict=True))
    return MetricComparison(
        *(measure.name, totals, pairs, ordered, strengths, measure.higher_is_better, measure.signature),
        strength_intervals=dict(zip(common.places, strong.intervals, strict=bool(strong.intervals))),
        powers=_powers(measure, blocks, settings) if settings.power else (),
    )


def _in_content_order(segments: list[int], measure: _Measure, common: _Common) -> list[int]:
    """Return segments in an order that depends on the scores of all systems alone: draws go by place."""
    rows = np.hstack([measure.rows[[common.places[system][k] for k in segments]] for system in sorted(common.places)])
    return [segments[k] for k in content_order(rows).tolist()]


def _powers(measure: _Measure, blocks: Mapping[str, FloatMatrix], settings: CompareSettings) -> tuple[PairPower, ...]:
    """Return how often the test finds each pair's difference on fewer or more units, by simulation."""
    quick = replace(settings, draws=min(settings.draws, pair_draws(settings.alpha)))

    def p_of(a: FloatMatrix, b: FloatMatrix) -> float:
        if settings.test == "permutation" and not measure.corpus:
            return flip_test(a[:, 0] - b[:, 0], n=quick.draws, seed=quick.seed, exact=False).two_sided
        drawn = settings.test == "bootstrap"
        samples = (
            [resample(rows, measure.totals, quick.draws, quick.seed) for rows in (a, b)] if drawn else [np.zeros(0)]
        )
        return _test_pairs(measure, Units(a, b, measure.totals), samples[0] - samples[-1], quick).two_sided

    pairs = combinations(blocks, 2)
    how = {"sizes": tuple(sorted(set(settings.power))), "alpha": settings.alpha, "seed": settings.seed}
    return tuple(pair_power((measure.name, a, b), (blocks[a], blocks[b]), p_of, **how) for a, b in pairs)  # type: ignore[arg-type]


def _scored_segments(measure: _Measure, common: _Common) -> list[int]:
    """Return the segments on which every system has a score."""
    missing = np.isnan(measure.rows.sum(axis=1))
    scored = [k for k in range(common.n) if not any(missing[places[k]] for places in common.places.values())]
    if not scored:
        raise DataError(f"{measure.name}: no segment has a score for every system")
    return scored


def _total(measure: _Measure, rows: FloatMatrix, samples: FloatVector, n: int) -> Estimate:
    value = float(measure.totals(rows.sum(axis=0)[None, :])[0])
    if len(rows) < 2:  # noqa: PLR2004 - one unit has no spread
        return Estimate(value, level=_LEVEL, n=n, reason="undefined")
    low, high = percentiles(samples, _LEVEL).tolist()
    return Estimate(value, low, high, _LEVEL, n)


def _test_pairs(measure: _Measure, units: Units, deltas: FloatVector, settings: CompareSettings) -> PValues:
    if measure.corpus:
        resampled = deltas if settings.test == "bootstrap" else None
        return compare_rows(units, test=settings.test, n=settings.draws, seed=settings.seed, deltas=resampled)
    differences = units.a[:, 0] - units.b[:, 0]
    if settings.test == "permutation":
        return flip_test(differences, n=settings.draws, seed=settings.seed)
    if settings.test == "bootstrap":
        return bootstrap_p(deltas, float(differences.sum()), "sign")
    if not np.array_equal(units.a[:, 1], np.ones(len(units.a))):
        raise SpecError(f"the {settings.test} test does not support documents: use permutation or bootstrap")
    return classical_test(differences, settings.test)


def _difference(
    names: tuple[str, str, str], size: float, deltas: FloatVector, p_values: PValues, extent: tuple[int, int | None]
) -> PairTest:
    """Return what is known of two systems; `extent` is the number of segments and, if they count, of documents."""
    n, blocks = extent
    error = float(deltas.std(ddof=1)) if len(deltas) > 1 else math.nan
    # Below two units the spread of a difference is not known.
    estimable = (blocks or n) > 1 and math.isfinite(error)
    detectable = reach_of() * error if estimable else None
    needed = math.ceil(n * (detectable / size) ** 2) if detectable and size else None
    low, high = percentiles(deltas, _LEVEL).tolist() if estimable else (None, None)
    p = None if math.isnan(p_values.two_sided) else p_values.two_sided
    return PairTest(
        *(*names, size, low, high, p),
        method=p_values.method,
        exact=p_values.exact,
        n=n,
        blocks=blocks,
        detectable=detectable,
        needed=needed,
        reason="constant" if p is None else None,
    )


def _decide(test: PairTest, adjusted: float, measure: _Measure, alpha: float) -> PairTest:
    better = None
    if adjusted <= alpha and test.difference:
        better = test.first if (test.difference > 0) == measure.higher_is_better else test.second
    return replace(test, adjusted=None if math.isnan(adjusted) else adjusted, better=better)


def _clusters(measure: _Measure, totals: dict[str, Estimate], pairs: Sequence[PairTest], alpha: float) -> Clusters:
    names = list(totals)
    better = {frozenset((pair.first, pair.second)): pair for pair in pairs}

    def p(i: int, j: int) -> float:
        pair = better[frozenset((names[i], names[j]))]
        # A two-sided test speaks for the system that is ahead.
        ahead = totals[names[i]].value - totals[names[j]].value
        p = math.nan if pair.decisive is None else pair.decisive
        return p if (ahead > 0) == measure.higher_is_better else 1.0

    return clusters(
        names, [totals[name].value for name in names], p, alpha=alpha, higher_is_better=measure.higher_is_better
    )


_UNIMPORTANT = ("version",)
"""Facts of a signature that may differ: versions of a package change no score that is compared with tests."""


class Bin(msgspec.Struct, frozen=True, rename={"least": "from", "most": "to"}):
    """Differences of about one size: the share of pairs in which humans agree, and its interval."""

    least: float
    most: float | None
    pairs: int
    share: float
    low: float
    high: float


class Preferences(msgspec.Struct, frozen=True):
    """The bins of a metric on a language pair, in one domain or in all (None), on so many segments or more."""

    metric: str
    signature: str
    languages: str
    domain: str | None
    segments: int
    sets: tuple[str, ...]
    bins: tuple[Bin, ...]


class _File(msgspec.Struct, frozen=True):
    tables: tuple[Preferences, ...]


@cache
def read_preferences() -> tuple[Preferences, ...]:
    """Return the table that comes with the package."""
    text = (resources.files("whyscore") / "analysis" / "compare" / "deltas.json").read_bytes()
    return msgspec.json.decode(text, type=_File).tables


def is_measured(signature: Signature) -> bool:
    """Return whether anything was measured for a metric, with whatever settings."""
    return any(preference.metric == signature.spec.partition("(")[0] for preference in read_preferences())


def find_preferences(
    signature: Signature, languages: tuple[str, str] | None, domain: str | None, segments: int
) -> Preferences | str:
    """Return what is known for a metric on such data, or the reason why nothing is."""
    name = signature.spec.partition("(")[0]
    tables = [preference for preference in read_preferences() if preference.metric == name]
    if not tables:
        return f"no human preferences were measured for {name}"
    if languages is None:
        return "the language pair is not known: name it with -l"
    pair = "-".join(code.partition("-")[0].partition("_")[0].lower() for code in languages)
    matching = [table for table in tables if table.languages == pair]
    if not matching:
        there = _list_names(table.languages for table in tables)
        return f"no human preferences were measured for {pair} (there are: {there})"
    if not any(_same(Signature.parse(table.signature), signature) for table in matching):
        return f"human preferences were measured with {matching[0].signature}"
    if domain is not None and not any(table.domain == domain for table in matching):
        there = _list_names(table.domain for table in matching if table.domain)
        return f"no human preferences were measured for {pair} in the domain {domain!r} (there are: {there})"
    fitting = [table for table in matching if table.domain == domain and table.segments <= segments]
    least = min(table.segments for table in matching if table.domain == domain)
    too_few = f"{segments} segments are too few: human preferences were measured on {least} or more"
    return max(fitting, key=lambda table: table.segments) if fitting else too_few


def preference(table: Preferences | str, difference: float) -> HumanPreference:
    """Return how often humans preferred the system that is ahead by this much, or why that is not known."""
    if isinstance(table, str):
        return HumanPreference(reason=table)
    size = abs(difference)
    size_bin = next(
        (
            candidate
            for candidate in table.bins
            if candidate.least <= size and (candidate.most is None or size < candidate.most)
        ),
        None,
    )
    if size_bin is None or not size:
        return HumanPreference(reason="too few rated pairs of systems differ by that much")
    return HumanPreference(
        *(size_bin.share, size_bin.low, size_bin.high, size_bin.pairs, size_bin.least, size_bin.most, table.segments),
        origin=", ".join(table.sets),
    )


def _same(first: Signature, second: Signature) -> bool:
    facts = [
        {name: fact for name, fact in signature.facts if name not in _UNIMPORTANT} for signature in (first, second)
    ]
    return first.spec == second.spec and facts[0] == facts[1]


def _list_names(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names)))
