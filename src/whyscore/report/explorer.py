"""The segments of a run as compact data for the page: texts once, numbers aligned with systems x segments.

1. Every distinct text is in one list; source, references and hypotheses are places in it.
2. Explanations are packed per metric, system and segment, as short texts over an alphabet of 64 characters, none of
   which needs escaping in JSON or HTML. Word borders are the gap before each word and its length, in UTF-16 units (what
   JavaScript counts), five bits a character, the sixth says that more follow. Importances are two characters a word,
   -2047 .. 2047 times the largest size in the text; `..` where there is no number.
3. Matches of words are lists: the mark of the match, then place, start and end of each partner.
4. Notes of metrics on single words (which n-grams matched, the counterpart) are long. They are taken in the order in
   which segments were explained, worst, best and random in turn, until they fill their share of the page.

What metrics of word matches found, put together: which kinds of match make the score, and which words were paired.

1. Such a metric says of every word which words of the other text it was matched with, and how: that is in the records
   of its explanations. Metrics without such records, or whose words have the nearest by vectors alone, have nothing to
   show here.
2. The importances of the words of one side add up to what the matches add to the score, so their sums by kind are the
   parts of a bar. What is missing to the score comes from n-grams and sentence vectors.
3. Pairs of roots and synonyms are counted: wrong ones on top mean that the threshold is too low.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest

import numpy as np

from whyscore.analysis.mee import count_pairs
from whyscore.models.surprisal import piece_surprisal
from whyscore.report.model import MatchedPair, MatchedShares, MatchSummary
from whyscore.runs.folder import Run
from whyscore.text.splitters import UnicodeWords
from whyscore.types import (
    Dataset,
    Entry,
    ErrorSpan,
    ExplanationRecord,
    FloatVector,
    Place,
    Side,
    WordMatch,
    Words,
)

SHOWN = 12
_KINDS = ("exact", "root", "synonym")
_ROUNDING = 1e-6


def match_summaries(run: Run) -> tuple[MatchSummary, ...]:
    """Return what each metric of word matches found; other metrics are left out."""
    summaries = []
    for metric in run.metrics:
        matched = [
            explanation
            for explanation in run.explanations
            if explanation.metric == metric.name
            and explanation.place.side is Side.HYPOTHESIS
            and _has_classes(explanation)
        ]
        # Views that show what a word costs do not add up to the score.
        if matched and not any((record.importance < 0).any() for record in matched):
            summaries.append(_summary(run, metric.name, matched))
    return tuple(summaries)


def _has_classes(record: ExplanationRecord) -> bool:
    return record.matches is not None and not any(
        match.label == "similar" for matches in record.matches for match in matches
    )


@dataclass
class _Sums:
    """What the words of one system add, by kind."""

    kinds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(_KINDS, 0.0))
    words: int = 0
    unmatched: int = 0
    unknown: int = 0
    scores: list[float] = field(default_factory=list)

    def add(self, importance: float, matches: Sequence[WordMatch]) -> None:
        """Add a word; its importance belongs to the kinds of its matches in proportion to their credits."""
        whole = sum(match.credit for match in matches)
        for match in matches:
            if match.label != "none":
                self.kinds[match.label] += importance * match.credit / whole
        # A word such as `day.` holds two words of the metric, each with its own matches.
        self.words += len(matches)
        self.unmatched += sum(match.label == "none" for match in matches)
        self.unknown += sum(match.unknown for match in matches)


def _summary(run: Run, metric: str, matched: Sequence[ExplanationRecord]) -> MatchSummary:
    sums: dict[str, _Sums] = {system: _Sums() for system in run.dataset.systems}
    for record in matched:
        entry = run.dataset.entries[record.entry]
        total = sums[entry.system]
        total.scores.append(float(run.scores[metric][record.entry]))
        for value, matches in zip(record.importance.tolist(), record.matches or (), strict=True):
            total.add(value, matches)
    systems = tuple(_shares(system, total) for system, total in sums.items() if total.scores)
    entries = run.dataset.entries
    placed = (
        (entries[record.entry].id, match) for record in matched for matches in record.matches or () for match in matches
    )
    counted = list(count_pairs(placed))
    pairs = [
        MatchedPair(*pair, example)
        for kind in ("root", "synonym")
        for pair, example in islice((item for item in counted if item[0].kind == kind), SHOWN)
    ]
    return MatchSummary(metric, tuple(sorted(systems, key=lambda shares: -shares.score)), tuple(pairs))


def _shares(system: str, sums: _Sums) -> MatchedShares:
    n = len(sums.scores)
    score = float(np.mean(sums.scores))
    parts = {kind: value / n for kind, value in sums.kinds.items()}
    rest = score - sum(parts.values())
    rest = rest if abs(rest) > _ROUNDING else 0.0
    words = max(1, sums.words)
    return MatchedShares(
        system, score, **parts, rest=rest, unmatched=sums.unmatched / words, unknown=sums.unknown / words, n=n
    )


ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
STEPS = 2047
UNKNOWN = ".."
_BITS = 5
_MORE = 1 << _BITS
_TWICE = [*(first + second for first in ALPHABET for second in ALPHABET), UNKNOWN]


def pack_borders(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return the borders of words, given in code points.

    >>> pack_borders("a cat", [(0, 1), (2, 5)])
    'ABBD'
    """
    position = 0
    parts: list[str] = []
    ascii_only = text.isascii()
    for start, end in spans:
        gap, length = (start - position, end - start)
        if not ascii_only:
            gap, length = units(text[position:start]), units(text[start:end])
        parts += (pack_number(gap), pack_number(length))
        position = end
    return "".join(parts)


def pack_number(value: int) -> str:
    """Return a whole number from 0 up.

    >>> pack_number(3), pack_number(40)
    ('D', 'oB')
    """
    digits = []
    while value >= _MORE:
        digits.append(ALPHABET[value % _MORE + _MORE])
        value //= _MORE
    return "".join([*digits, ALPHABET[value]])


def pack_values(values: FloatVector) -> tuple[float, str]:
    """Return the largest size, to four digits, and each value as a share of it.

    >>> pack_values(np.array([2.0, -2.0, np.nan]))
    (2.0, '__AB..')
    """
    finite = np.isfinite(values)
    numbers = np.where(finite, values, 0.0)
    largest = float(np.abs(numbers).max(initial=0.0))
    scale = float(f"{largest:.4g}") if largest > 0 else 1.0
    steps = np.minimum(np.maximum(np.rint(numbers / scale * STEPS), -STEPS), STEPS)
    codes = np.where(finite, steps.astype(np.int64) + STEPS + 1, -1)
    return scale, "".join([_TWICE[code] for code in codes.tolist()])


def units(text: str) -> int:
    """Return how long JavaScript finds a text: characters beyond the first 65,536 count twice.

    >>> units("a😀")
    3
    """
    return len(text) + sum(character > "\uffff" for character in text) if not text.isascii() else len(text)


NOTES = 2_000_000
"""Characters of notes a page holds."""

EXPLAINED = 8_000_000
"""Characters of packed explanations a page holds; the others are in the run folder."""

SEVERITIES = ("neutral", "minor", "major", "critical")
_DIGITS = 6
_ALL = 0.98
_AROUND = 25  # characters of JSON around each explanation


@dataclass
class _Texts:
    """Distinct texts in the order of their first use."""

    places: dict[str, int] = field(default_factory=dict)

    def place(self, text: str | None) -> int:
        """Return where a text stands; -1 for none."""
        return -1 if text is None else self.places.setdefault(text, len(self.places))


def explorer(run: Run, features: Mapping[str, object] | None = None) -> dict[str, object]:
    """Return the data behind the segment browser, ready for JSON."""
    data = run.dataset
    texts, human = _Texts(), sorted({name for entry in data.entries for name in entry.human})
    contents: dict[str, object] = {
        "systems": list(data.systems),
        **_rarity(data),
        "ids": list(data.ids),
        **_place_texts(data, texts),
        "metrics": [_metric(run, k) for k in range(len(run.metrics))],
        "scores": [_matrix(data, run.scores[metric.name]) for metric in run.metrics],
        "human": [{"name": name, "values": _matrix(data, data.human(name))} for name in human],
        **_errors(data),
        **_pack_explanations(run, texts),
    }
    if features:
        contents["features"] = dict(features)
    if review := run.needs_review():
        contents["review"] = [[review.get((system, name)) for name in data.ids] for system in data.systems]
    if run.facts.first_line is not None:
        contents["first_line"] = run.facts.first_line
    contents["texts"] = list(texts.places)
    return contents


def _place_texts(data: Dataset, texts: _Texts) -> dict[str, object]:
    """Return where the texts of each segment stand; what is special to one system stands in `own`."""
    rows = {system: i for i, system in enumerate(data.systems)}
    columns = {name: j for j, name in enumerate(data.ids)}
    source = [-1] * len(columns)
    references: list[list[int]] = [[] for _ in columns]
    hypotheses = [[-1] * len(columns) for _ in rows]
    overrides: dict[str, list[object]] = {}
    documents: list[str | None] = [None] * len(columns)
    seen: set[int] = set()
    for entry in data.entries:
        i, j = rows[entry.system], columns[entry.id]
        about = texts.place(entry.segment.source), [texts.place(text) for text in entry.segment.references]
        hypotheses[i][j] = texts.place(entry.segment.hypothesis)
        if j not in seen:
            seen.add(j)
            source[j], references[j] = about
            documents[j] = entry.document
        elif (source[j], references[j]) != about:
            overrides[f"{i},{j}"] = list(about)
    placed: dict[str, object] = {"source": source, "references": references, "hypotheses": hypotheses}
    if overrides:
        placed["own"] = overrides
    if any(name is not None for name in documents):
        placed["documents"] = documents
    return placed


def _rarity(data: Dataset) -> dict[str, object]:
    """Return the mean surprisal of the words in the first reference of each segment; None where there is no word."""
    texts = {entry.id: entry.segment.references[0] for entry in data.entries if entry.segment.references}
    split = UnicodeWords().split
    words = [[word for word in split(texts.get(name, "")) if word[0].isalnum()] for name in data.ids]
    distinct = sorted({word for text in words for word in text})
    if not distinct:
        return {}
    # All words as one text: one call instead of thousands.
    ends = np.cumsum([len(word) + 1 for word in distinct]).tolist()
    spans = tuple((end - len(word) - 1, end - 1) for word, end in zip(distinct, ends, strict=True))
    surprisals = dict(zip(distinct, piece_surprisal(Words(" ".join(distinct), spans)).tolist(), strict=True))
    means = [round(sum(map(surprisals.__getitem__, text)) / len(text), 2) if text else None for text in words]
    return {"rarity": means}


def _metric(run: Run, number: int) -> dict[str, object]:
    metric = run.metrics[number]
    values = run.scores[metric.name]
    spread = float(np.nanmax(values) - np.nanmin(values)) if np.isfinite(values).any() else 0.0
    digits = 1 if spread > 20 else 2 if spread > 2 else 3  # noqa: PLR2004 - what can be told apart at a glance
    return {"name": metric.name, "up": metric.higher_is_better, "explainer": metric.explainer, "digits": digits}


def _matrix(data: Dataset, values: FloatVector) -> list[list[float | None]]:
    """Return systems x segments; None where a system lacks a segment."""
    rows = data.matrix(values).tolist()
    return [[float(f"{value:.{_DIGITS}g}") if np.isfinite(value) else None for value in row] for row in rows]


def _errors(data: Dataset) -> dict[str, object]:
    """Return the marked errors as systems x segments; None where nobody rated, [] where nothing was found."""
    if all(entry.spans is None for entry in data.entries):
        return {}
    categories: dict[str, int] = {}
    rows = {system: i for i, system in enumerate(data.systems)}
    columns = {name: j for j, name in enumerate(data.ids)}
    errors: list[list[list[list[int]] | None]] = [[None] * len(columns) for _ in rows]
    for entry in data.entries:
        if entry.spans is not None:
            marked = [_error(entry, span, categories) for span in entry.spans]
            errors[rows[entry.system]][columns[entry.id]] = marked
    return {"errors": errors, "categories": list(categories), "severities": list(SEVERITIES)}


def _error(entry: Entry, span: ErrorSpan, categories: dict[str, int]) -> list[int]:
    """Return place, start, end (in UTF-16 units), severity and category as numbers; -1 where not known."""
    place = Place(span.side, span.reference)
    text = entry.segment.text(place)
    start = units(text[: span.start])
    category = -1 if span.category is None else categories.setdefault(span.category, len(categories))
    severity = -1 if span.severity is None else SEVERITIES.index(span.severity)
    return [_code(place), start, start + units(text[span.start : span.end]), severity, category]


def _code(place: Place) -> int:
    """Return 0 for the hypothesis, 1 for the source, and 2, 3 .. for references."""
    if place.side is Side.REFERENCE:
        return 2 + (place.reference or 0)
    return 0 if place.side is Side.HYPOTHESIS else 1


def _pack_explanations(run: Run, texts: _Texts) -> dict[str, object]:
    """Return the packed explanations, by metric, then by system and segment; and the borders of words."""
    data = run.dataset
    rows = {system: i for i, system in enumerate(data.systems)}
    columns = {name: j for j, name in enumerate(data.ids)}
    numbers = {metric.name: k for k, metric in enumerate(run.metrics)}
    cuts: dict[int, str] = {}
    packed_borders: dict[tuple[str, bytes], str] = {}
    notes = _Notes()
    why: list[dict[str, list[object]]] = [{} for _ in run.metrics]
    middles = centres(run.explanations)
    size, left_out = 0, 0
    for record in _in_turn(run):
        if size > EXPLAINED:
            left_out += 1
            continue
        entry = data.entries[record.entry]
        text = entry.segment.text(record.place)
        key = text, record.spans.tobytes()
        borders = packed_borders.get(key) or packed_borders.setdefault(key, pack_borders(text, record.spans.tolist()))
        usual = cuts.setdefault(texts.place(text), borders)
        scale, values = pack_values(record.importance)
        packed: list[object] = [_code(record.place), scale, values, notes.add(record.notes)]
        if borders != usual or record.matches is not None:
            packed.append(borders if borders != usual else 0)
        if record.matches is not None:
            packed.append([_match(entry, record.place, matches) for matches in record.matches])
            size += _AROUND * len(record.matches)
        size += len(values) + _AROUND
        why[numbers[record.metric]].setdefault(f"{rows[entry.system]},{columns[entry.id]}", []).append(packed)
    result: dict[str, object] = {"why": why, "centres": [middles.get(metric.name, {}) for metric in run.metrics]}
    if left_out:
        result["left_out"] = left_out
    result["cuts"] = [cuts.get(k, "") for k in range(len(texts.places))]
    return result | ({"notes": list(notes.known)} if notes.known else {})


def _match(entry: Entry, place: Place, matches: Sequence[WordMatch]) -> list[str | int]:
    """Return the mark of the first match of a word, then place, start and end (in UTF-16 units) of each partner."""
    packed: list[str | int] = [matches[0].mark] if matches else []
    for match in matches:
        if match.start is not None and match.end is not None:
            other = match.partner_place(place)
            text = entry.segment.text(other)
            start = units(text[: match.start])
            packed += [_code(other), start, start + units(text[match.start : match.end])]
    return packed


def _in_turn(run: Run) -> Iterator[ExplanationRecord]:
    """Yield the explanations of all metrics in turn, so that none is left out altogether where there is no room."""
    by_metric = [
        [explanation for explanation in run.explanations if explanation.metric == metric.name] for metric in run.metrics
    ]
    for together in zip_longest(*by_metric):
        yield from (record for record in together if record is not None)


@dataclass
class _Notes:
    """Distinct notes; a text's notes are places in the list, 0 where there is no room for more."""

    known: dict[str, int] = field(default_factory=dict)
    size: int = 0

    def add(self, notes: Sequence[str] | None) -> list[int] | int:
        if notes is None or self.size > NOTES:
            return 0
        numbers = []
        for note in notes:
            if note not in self.known:
                self.known[note] = len(self.known)
                self.size += len(note) + 3
            numbers.append(self.known[note])
        self.size += 4 * len(numbers)
        return numbers


def centres(explanations: Iterable[ExplanationRecord]) -> dict[str, dict[str, float]]:
    """Return, by metric and side, the value that stands for neither good nor bad, where that is not 0.

    Similarities are all above 0; where nearly every value is, the median is the middle.
    """
    values: dict[tuple[str, str], list[FloatVector]] = {}
    for record in explanations:
        values.setdefault((record.metric, str(record.place.side)), []).append(record.importance)
    middles: dict[str, dict[str, float]] = {}
    for (metric, side), parts in values.items():
        every = np.concatenate(parts)
        every = every[np.isfinite(every)]
        if len(every) and (every > 0).mean() > _ALL:
            middles.setdefault(metric, {})[side] = float(f"{np.median(every):.4g}")
    return middles
