"""From a metric's scores to the rows of a decomposition.

1. For each segment of I: gain a = oracle - sigma, range b = oracle - anti.
2. share = sum a / sum b. At corpus level the three means are replaced by the corpus score of the summed rows.
3. A range at or below the floor (a millionth of the metric's scale) gives no share: a system whose scores are all but
   zero everywhere must not get share 1.
4. Intervals: bootstrap over segments. Tests between two systems swap their (a, b) segment by segment at random.
5. Beside each share: discrepancy, frequency, uniqueness, word F (`counts`) and summed importance. They come from the
   spans of the features, never from looking for masks in texts. Behind each row stand its segments, and the ones that
   moved the share most, with masked texts.

A share is a ratio of means over segments, not a mean of ratios (Karidi, Choshen, Patel and Abend, MuLER). One matrix of
weights serves every feature and system in the bootstrap, so that the resampled sums are one matrix product. The p of a
test counts the swaps whose difference is at least as large as the observed one, both signs, (count + 1) / (draws + 1).

What is summed is a row of numbers per segment, and `fit` turns sums into values: so the same resampling serves shares
of segment scores and of corpus scores. Values that are undefined in a draw are NaN; they are dropped and counted.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from whyscore.analysis.decompose.counts import Cutter, carriers_of, count_words, discrepancy
from whyscore.analysis.decompose.masking import TokenMasking, tokenizer_of
from whyscore.analysis.decompose.result import (
    Cost,
    Decomposition,
    Decompositions,
    Example,
    ScorerDifference,
    SegmentRows,
)
from whyscore.analysis.decompose.scoring import FLOOR, Measured, Study, Values
from whyscore.analysis.decompose.settings import DecomposeSettings, FeatureSettings
from whyscore.analysis.decompose.tagging import Marked, MarkedEntry, SpanCounts, groups_of
from whyscore.analysis.explain import explain
from whyscore.explainers.engine import failure_message
from whyscore.protocols import SupportsMinimumLength
from whyscore.scoring.store import digest
from whyscore.stats.correction import correct_p
from whyscore.stats.resampling import draw_sums, percentiles, random_rows
from whyscore.text.placeholders import TokenRow
from whyscore.types import Entry, Explanation, FloatMatrix, FloatVector, ShareTest, Signature

Fit = Callable[[FloatMatrix], FloatMatrix]
"""From summed rows (draws x columns) to values (draws x features)."""

_CELLS = 4_000_000
_SWAPS = 1  # keeps the draws of the test apart from those of the interval
# Two ways to sum the same numbers differ in the last digits; an equal difference must count as equal.
_EQUAL = 1e-12


class Interval(NamedTuple):
    """A percentile interval, and how many draws had no value; None where too few had one."""

    low: float | None
    high: float | None
    dropped: int = 0


def ratios(floor: float) -> Fit:
    """Return the fit of segment scores: columns are first all gains, then all ranges; undefined at or below the floor.

    >>> ratios(0.0)(np.array([[1.0, 2.0, 4.0, 0.0]]))
    array([[0.25,  nan]])
    """

    def fit(sums: FloatMatrix) -> FloatMatrix:
        gains, ranges = np.hsplit(sums, 2)
        shares: FloatMatrix = np.divide(gains, ranges, out=np.full(gains.shape, np.nan), where=ranges > floor)
        return shares

    return fit


def resample(rows: FloatMatrix, fit: Fit, *, draws: int, seed: int) -> FloatMatrix:
    """Return the values of each draw of segments, draws x features."""
    if not draws or not len(rows):
        return np.empty((0, fit(rows[:0].sum(axis=0, keepdims=True)).shape[1]))
    return np.vstack([fit(sums) for sums in draw_sums(rows, draws, seed)])


def interval(values: FloatVector, level: float = 0.95) -> Interval:
    """Return the percentile interval of resampled values; without a second value there is none."""
    defined = values[~np.isnan(values)]
    dropped = len(values) - len(defined)
    if len(defined) < 2:  # noqa: PLR2004 - one value has no spread
        return Interval(None, None, dropped)
    low, high = percentiles(defined, level).tolist()
    return Interval(low, high, dropped)


def swap_test(first: FloatMatrix, second: FloatMatrix, fit: Fit, *, draws: int, seed: int) -> FloatVector:
    """Return the two-sided p of each feature's difference between two systems; NaN where the difference is undefined.

    `first` and `second` are rows of the same segments.
    """
    total = (first + second).sum(axis=0)
    observed = np.abs(_difference(fit, first.sum(axis=0, keepdims=True), total))[0]
    counts = np.zeros(len(observed))
    valid = np.zeros(len(observed))
    for coins in random_rows(draws, len(first), [seed, _SWAPS], capacity=_CELLS, dtype=np.float64):
        stay = (coins < 0.5).astype(np.float64)  # noqa: PLR2004 - a fair coin
        drawn = np.abs(_difference(fit, stay @ first + (1 - stay) @ second, total))
        counts += np.nansum(drawn >= observed - _EQUAL, axis=0)
        valid += (~np.isnan(drawn)).sum(axis=0)
    return np.where(np.isnan(observed), np.nan, (counts + 1) / (valid + 1))


def _difference(fit: Fit, rows: FloatMatrix, total: FloatVector) -> FloatMatrix:
    return fit(rows) - fit(total - rows)


class Additive(NamedTuple):
    """Summed importance of the words of each feature, and of the words without any, averaged over segments."""

    features: FloatVector
    other: float


def additive(explained: Sequence[tuple[MarkedEntry, Explanation]], features: int, factor: float) -> Additive:
    """Return the additive view of one system: what the words of each feature added to the score, on average."""
    sums = np.zeros(features)
    other = 0.0
    for entry, explanation in explained:
        starts, ends = [start for start, _ in explanation.words.spans], [end for _, end in explanation.words.spans]
        carriers = [carriers_of(starts, ends, spans) for spans in entry.hypothesis.spans]
        for feature, carried in enumerate(carriers):
            sums[feature] += explanation.importance[sorted(carried)].sum()
        rest = sorted(set(range(len(explanation.words))) - frozenset().union(*carriers))
        other += float(explanation.importance[rest].sum())
    # Importances are turned already; the factor only brings them to the scale of sigma.
    scale = abs(factor) / max(len(explained), 1)
    return Additive(sums * scale, other * scale)


_Study = Study[DecomposeSettings]
Triple = tuple[FloatVector, FloatVector, FloatVector]
"""The scores of some segments as they are, in the best and in the worst case."""

_NEGATIVE_EXAMPLES = 3


def segment_rows(study: Study[FeatureSettings], feature: int, places: Sequence[int], numbers: Triple) -> SegmentRows:
    """Return the numbers of some entries that have a feature, with the spans that were masked."""
    marked = [study.marking.entries[place] for place in places]
    return SegmentRows(
        tuple(study.dataset.entries[place].id for place in places),
        *numbers,
        tuple(entry.hypothesis.spans[feature] for entry in marked),
        tuple(tuple(text.spans[feature] for text in entry.references) for entry in marked),
    )


def examples_of(
    study: _Study, measured: Measured, feature: int, places: Sequence[int], numbers: Triple
) -> tuple[Example, ...]:
    """Return some segments with the largest gain, and those that fall most below zero."""
    sigma, oracle, anti = numbers
    count = study.settings.examples
    gains = oracle - sigma
    ids = np.array([study.dataset.entries[place].id for place in places])
    order = np.lexsort((ids, -gains)).tolist()
    largest = [k for k in order[:count] if gains[k] > 0]
    negative = [k for k in order[::-1][: min(_NEGATIVE_EXAMPLES, count)] if gains[k] < 0]
    return tuple(
        _example(study, measured, feature, places[k], (sigma[k], oracle[k], anti[k])) for k in (*largest, *negative)
    )


def _example(
    study: _Study, measured: Measured, feature: int, place: int, numbers: tuple[float, float, float]
) -> Example:
    entry, marked = study.dataset.entries[place], study.marking.entries[place]
    hypothesis, references = _mask(measured, marked, feature)
    sigma, oracle, anti = map(float, numbers)
    return Example(
        id=entry.id,
        sigma=sigma,
        oracle=oracle,
        anti=anti,
        hypothesis=entry.segment.hypothesis,
        hypothesis_spans=marked.hypothesis.spans[feature],
        references=entry.segment.references,
        reference_spans=tuple(text.spans[feature] for text in marked.references),
        masked_hypothesis=hypothesis,
        masked_references=references,
    )


def _mask(measured: Measured, entry: MarkedEntry, feature: int) -> tuple[str | None, tuple[str, ...]]:
    if measured.texts is None:
        return None, ()
    hypothesis = measured.texts.variant(entry.hypothesis, feature, hypothesis=True).anti
    return hypothesis, tuple(measured.texts.variant(text, feature, hypothesis=False).anti for text in entry.references)


_CORRECTIONS = {"bh": "benjamini_hochberg"}
FEW_SEGMENTS = 30
FEW_INFORMATIVE = 20
# Scores of the same text may differ in the last digits between batches.


class Cell(NamedTuple):
    """The numbers of one system and feature."""

    n: int
    informative: int
    sigma: float | None
    oracle: float | None
    anti: float | None
    share: float | None
    guarded: float | None
    gain: float | None
    range: float | None
    outside: int
    flags: tuple[str, ...]
    reason: str | None


def cell_of(values: Values, feature: int, selected: Sequence[int], numbers: Triple | None = None) -> Cell:
    """Return the numbers of one feature over chosen members; without any there is no number."""
    if not len(selected):
        return Cell(0, 0, None, None, None, None, None, None, None, 0, (), None)
    sigma, oracle, anti = numbers or values.of(feature, selected)
    gains, ranges = oracle - sigma, oracle - anti
    # Exact sums: the mean of the same numbers in another order is the same.
    means = tuple(math.fsum(scores.tolist()) / len(selected) for scores in (sigma, oracle, anti))
    sigma_mean, best, worst = values.triple(feature, selected) if values.corpus else means
    span = best - worst
    share = share_of(sigma_mean, best, worst, values.floor)
    reason = None if share is not None else f"range {span:.0e} is too small"
    informative = int((ranges > values.floor).sum())
    outside = int(((sigma > oracle + _EQUAL) | (sigma < anti - _EQUAL)).sum())
    return Cell(
        len(selected),
        informative,
        sigma_mean,
        best,
        worst,
        share,
        guarded_share(gains, ranges, values.guard),
        best - sigma_mean,
        span,
        outside,
        _flags(share, len(selected), informative),
        reason,
    )


def cells_by_system(study: Study[FeatureSettings], measured: Measured, feature: int) -> list[tuple[str, Cell]]:
    """Return the numbers of one feature for each system."""
    entries, members = study.dataset.entries, measured.values.members[feature]
    return [
        (system, cell_of(measured.values, feature, [k for k, e in enumerate(members) if entries[e].system == system]))
        for system in study.dataset.systems
    ]


def share_of(sigma: float, oracle: float, anti: float, floor: float = FLOOR) -> float | None:
    """Return (oracle - sigma) / (oracle - anti), Eq. 2 of the paper; None where the range is not above the floor.

    >>> share_of(0.25, 0.5, 0.0), share_of(0.0, 8e-232, 0.0)
    (0.5, None)
    """
    return (oracle - sigma) / (oracle - anti) if oracle - anti > floor else None


def guarded_share(gains: FloatVector, ranges: FloatVector, floor: float) -> float:
    """Return the mean of a / b over the segments where it lies in (0, 1] and b is above the floor; others count 0.

    >>> guarded_share(np.array([1.0, -1.0, 2.0]), np.array([2.0, 2.0, 0.0]), 0.0)
    0.16666666666666666
    """
    sound = (ranges > floor) & (gains > 0) & (gains <= ranges)
    return math.fsum((gains[sound] / ranges[sound]).tolist()) / len(gains)


def resampling_table(values: Values, lines: Sequence[int], segments: int) -> FloatMatrix:
    """Return what is resampled: segments x columns, zero outside I.

    `lines` gives the segment of each member entry, or -1 for entries of other systems. The columns are all gains, then
    all ranges; at corpus level the rows of sigma, oracle and anti of each feature in turn.
    """
    features = len(values.members)
    width = values.answers.plain.shape[1]
    table = np.zeros((segments, 3 * width * features if values.corpus else 2 * features))
    for feature, entries in enumerate(values.members):
        selected = [k for k, entry in enumerate(entries) if lines[entry] >= 0]
        if not selected:
            continue
        places = [lines[entries[k]] for k in selected]
        if values.corpus:
            plain = values.answers.plain[[entries[k] for k in selected]]
            parts = (plain, values.answers.oracle[feature][selected], values.answers.anti[feature][selected])
            table[places, 3 * width * feature : 3 * width * (feature + 1)] = np.hstack(parts)
        else:
            sigma, oracle, anti = values.of(feature, selected)
            table[places, feature] = oracle - sigma
            table[places, features + feature] = oracle - anti
    return table


def fit_of(values: Values) -> Fit:
    """Return how summed rows become shares."""
    return _corpus_shares(values) if values.corpus else ratios(values.floor)


def _corpus_shares(values: Values) -> Fit:
    total, floor = values.reading.total, values.floor

    def fit(sums: FloatMatrix) -> FloatMatrix:
        width = values.answers.plain.shape[1]
        parts = sums.reshape(-1, width)
        totals = np.array([total(row) if row.any() else 0.0 for row in parts]).reshape(len(sums), -1, 3)
        gains, ranges = totals[:, :, 1] - totals[:, :, 0], totals[:, :, 1] - totals[:, :, 2]
        shares: FloatMatrix = np.divide(gains, ranges, out=np.full(gains.shape, np.nan), where=ranges > floor)
        return shares

    return fit


def _flags(share: float | None, n: int, informative: int) -> tuple[str, ...]:
    flags = []
    if share is not None and share < 0:
        flags.append("negative")
    if share is not None and share > 1:
        flags.append("above-one")
    if n < FEW_SEGMENTS or informative < FEW_INFORMATIVE:
        flags.append("few")
    return tuple(flags)


class System(NamedTuple):
    """One system of a group: its entries, its segment for every entry of the data set (-1: not its own), its draws."""

    group: str | None
    name: str
    entries: list[int]
    lines: list[int]
    table: FloatMatrix
    draws: FloatMatrix


def systems_of(study: _Study, measured: Measured) -> list[System]:
    """Return the systems group by group; one seed gives all systems of a group, and all features, the same weights."""
    settings, every = study.settings, study.dataset.entries
    systems = []
    for group, places in groups_of(study.dataset, settings.group).items():
        line = {name: k for k, name in enumerate(_in_text_order([every[place] for place in places]))}
        for name in dict.fromkeys(every[place].system for place in places):
            entries = sorted(
                (place for place in places if every[place].system == name), key=lambda place: line[every[place].id]
            )
            lines = [-1] * len(every)
            for place in entries:
                lines[place] = line[every[place].id]
            table = resampling_table(measured.values, lines, len(line))
            draws = resample(table, fit_of(measured.values), draws=settings.draws, seed=settings.seed)
            systems.append(System(group, name, entries, lines, table, draws))
    return systems


def _in_text_order(entries: Sequence[Entry]) -> list[str]:
    """Return the ids in an order that depends on the texts alone: draws go by place."""
    texts: dict[str, list[tuple[str, bytes]]] = {}
    for entry in entries:
        texts.setdefault(entry.id, []).append((entry.system, digest(entry.segment)))
    return sorted(texts, key=lambda name: sorted(texts[name]))


class _Compared(NamedTuple):
    """A difference before it is corrected."""

    group: str | None
    feature: str
    first: str
    second: str
    difference: float
    limits: Interval
    p: float


def tests_between(study: _Study, measured: Measured, systems: Sequence[System]) -> list[ShareTest]:
    """Return the difference of every two systems of a group on every feature, corrected over all of them.

    Two systems are compared on the segments that both have.
    """
    if not study.settings.draws:
        return []
    pairs = [(first, second) for first, second in combinations(systems, 2) if first.group == second.group]
    rows = [row for first, second in pairs for row in _pair(study, measured, first, second)]
    correction = _CORRECTIONS.get(study.settings.correction, study.settings.correction)
    adjusted = correct_p(correction, [row.p for row in rows], family="features x pairs of systems").adjusted
    return [_share_test(measured.name, correction, row, q) for row, q in zip(rows, adjusted, strict=True)]


def _pair(study: _Study, measured: Measured, first: System, second: System) -> list[_Compared]:
    settings, fit = study.settings, fit_of(measured.values)
    both = sorted({*first.lines} & {*second.lines} - {-1})
    tables = first.table[both], second.table[both]
    p = swap_test(*tables, fit, draws=settings.draws, seed=settings.seed)
    one, other = (fit(table.sum(axis=0, keepdims=True))[0] for table in tables)
    drawn = [
        system.draws
        if len(both) == len(table)
        else resample(table[both], fit, draws=settings.draws, seed=settings.seed)
        for system, table in ((first, first.table), (second, second.table))
    ]
    differences, draws = one - other, drawn[0] - drawn[1]
    return [
        _Compared(first.group, name, first.name, second.name, float(differences[k]), interval(draws[:, k]), float(p[k]))
        for k, name in enumerate(study.marking.features)
    ]


def _share_test(metric: str, correction: str, row: _Compared, q: float) -> ShareTest:
    names = metric, row.feature, row.first, row.second
    if np.isnan(row.difference):
        reason = f"the share of {row.feature} is undefined for {row.first} or {row.second}"
        return ShareTest(*names, None, None, None, None, None, correction, reason, row.group)
    return ShareTest(*names, row.difference, row.limits.low, row.limits.high, row.p, q, correction, group=row.group)


def fit_rows(
    study: _Study,
    measured: Sequence[Measured],
    scorers: Sequence[ScorerDifference] = (),
    signatures: Mapping[str, Signature] | None = None,
    notes: Sequence[str] = (),
) -> Decompositions:
    """Return the rows of all metrics with everything that belongs beside them."""
    rows: list[Decomposition] = []
    tests: list[ShareTest] = []
    others: dict[tuple[str, str], float] = {}
    for metric in measured:
        systems = systems_of(study, metric)
        views, unexplained = _additive(study, metric, systems)
        notes = [*notes, *unexplained]
        cutter = Cutter(_tokens(study, metric))
        for system, view in zip(systems, views, strict=True):
            rows += _system_rows(study, metric, system, cutter, view)
            if view is not None:
                others[(" ".join(filter(None, (system.group, system.name))), metric.name)] = view.other
        tests += tests_between(study, metric, systems)
    questions, distinct = sum(metric.asked for metric in measured), sum(metric.distinct for metric in measured)
    marking = study.marking
    return Decompositions(
        rows,
        dataset=study.dataset,
        settings=study.settings,
        tests=tests,
        scorers=scorers,
        others=others,
        signatures=signatures,
        cost=Cost(marking.asked, marking.distinct, marking.tagged, questions, distinct, 0),
        notes=[*notes, *_alone(study), *(note for metric in measured for note in _notes(study, metric))],
        marking=marking,
    )


def _tokens(study: _Study, measured: Measured) -> Callable[[Marked], TokenRow]:
    if isinstance(measured.texts, TokenMasking):
        return measured.texts.tokens
    tokens = "nltk" if study.settings.mode == "compat" else study.settings.tokens
    return tokenizer_of(measured.metric, study.marking, tokens)


def _system_rows(
    study: _Study, measured: Measured, system: System, cutter: Cutter, view: Additive | None
) -> list[Decomposition]:
    features = study.marking.features
    counted = count_words([study.marking.entries[k] for k in system.entries], len(features), cutter)
    sigma_all = _sigma_all(measured, system)
    members = measured.values.members
    selections = [[k for k, entry in enumerate(places) if system.lines[entry] >= 0] for places in members]
    scored = [measured.values.of(feature, selected) for feature, selected in enumerate(selections)]
    rows = []
    for feature, (name, selected, numbers) in enumerate(zip(features, selections, scored, strict=True)):
        places, words = [members[feature][k] for k in selected], counted[feature]
        every = study.marking.counts.of(system.entries, feature)
        cell = cell_of(measured.values, feature, selected, numbers)
        flags = (*cell.flags, *(("unnatural-text",) if measured.masking == "opaque" else ()))
        cell = cell._replace(flags=flags, reason=cell.reason if cell.n else _absent(every, name))
        both = study.marking.counts.of(places, feature)
        details = examples_of(study, measured, feature, places, numbers)
        limits = interval(system.draws[:, feature]) if cell.share is not None else Interval(None, None)
        rows.append(
            Decomposition(
                system=system.name,
                metric=measured.name,
                feature=name,
                sigma_all=sigma_all,
                low=limits.low,
                high=limits.high,
                discrepancy={"all": discrepancy(every), "both": discrepancy(both)},
                frequency=words.frequency,
                uniqueness=words.uniqueness,
                dropped=limits.dropped,
                word_f=words.met.scores,
                additive=None if view is None else float(view.features[feature]),
                segments=segment_rows(study, feature, places, numbers),
                examples=tuple(example.id for example in details),
                details=details,
                group=system.group,
                **cell._asdict(),
            )
        )
    return rows


def _sigma_all(measured: Measured, system: System) -> float:
    rows = measured.values.answers.plain[system.entries]
    if measured.values.corpus:
        return measured.values.reading.total(rows.sum(axis=0))
    return float(np.sort(measured.values.reading.values(rows)).mean())


def _absent(counts: SpanCounts, name: str) -> str:
    references, hypotheses = (counts.most > 0).sum(), (counts.hypothesis > 0).sum()
    return f"no segment has {name} on both sides (reference {references}, hypothesis {hypotheses})"


def _additive(study: _Study, measured: Measured, systems: Sequence[System]) -> tuple[list[Additive | None], list[str]]:
    """Return each system's summed importance of words by feature, where an explainer was asked for, and notes."""
    settings, dataset = study.settings, study.dataset
    if settings.explainer is None:
        return [None] * len(systems), []
    explained = explain(
        dataset,
        measured.metric,
        settings.explainer,
        sides=["hypothesis"],
        seed=settings.seed,
        resources=study.resources,
    )
    by_index = {explanation.index: (study.marking.entries[explanation.index], explanation) for explanation in explained}
    count, factor = len(study.marking.features), measured.values.reading.factor
    by_system = [[by_index[k] for k in system.entries if k in by_index] for system in systems]
    notes = [f"{measured.name}: {failure_message(explained.failures, len(dataset))}"] if explained.failures else []
    return [additive(pairs, count, factor) if pairs else None for pairs in by_system], notes


def _alone(study: _Study) -> list[str]:
    """Return which groups hold one system."""
    groups = groups_of(study.dataset, study.settings.group).items()
    alone = [str(name) for name, places in groups if len({study.dataset.entries[k].system for k in places}) == 1]
    return [f"one system, nothing to compare it with: {', '.join(alone)}"] if study.settings.group and alone else []


def _notes(study: _Study, measured: Measured) -> list[str]:
    """Return how many references are too short for the metric."""
    if not (isinstance(measured.metric, SupportsMinimumLength) and isinstance(measured.texts, TokenMasking)):
        return []
    least = measured.metric.minimum_tokens
    entries = study.dataset.entries
    groups = groups_of(study.dataset, study.settings.group).values()
    first = [k for places in groups for k in places if entries[k].system == entries[places[0]].system]
    references = [text for k in first for text in study.marking.entries[k].references]
    short = sum(len(measured.texts.tokens(text).texts) < least for text in references) if least > 1 else 0
    problem = f"{short} reference(s) have fewer than {least} tokens: {measured.name} without smoothing is 0 there"
    return [f"{problem} even for the reference itself; bleu(smoothing='exp') is not"] if short else []
