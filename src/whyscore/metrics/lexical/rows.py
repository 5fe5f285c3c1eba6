"""BLEU, chrF and TER of sacreBLEU as rows of counts: with `ter_edits` all that is known here of its internals.

sacreBLEU keeps per-segment counts behind underscores, so this file is bound to one minor version of it. Texts are
prepared and scores computed by sacreBLEU's own code. Only the counting of matches is ours (`run_counts`),
because explaining one segment asks for thousands of rows.

How many runs of characters or words two texts share, for many pairs of texts at once.

Explaining asks for thousands of pairs in which one text stays and the other changes, so the texts that stay are looked
at once, and all pairs are counted together:

1. Write all texts one after the other as numbers: code points, or one number per word.
2. Name the runs of n in the texts that stay: a run of n is a known run of n - 1 and one more unit, so equal pairs of
   (name of the run of n - 1, unit) get the same name. Names of different texts differ.
3. Look the runs of the changing texts up. What was unknown at n - 1 cannot be known at n and is dropped.
4. Count for each pair how often each named run occurs on both sides, and add up the smaller counts.

Several texts may stay together, as the references of BLEU do: a run then counts as often as in the text that has it
most often.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, count, islice
from typing import ClassVar, NamedTuple

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from whyscore.metrics.lexical.edits import edits
from whyscore.metrics.needs import need_references, present
from whyscore.registry import spec_of
from whyscore.types import FloatMatrix, FloatVector, IntVector, Segment, Signature, split_by_size

Units = Sequence[str]
"""A text as the sequence of its characters, or a list of words."""

# Units of a batch: large enough that numpy's calls cost little, small enough for the processor's cache.
_BATCH = 1 << 16


class Pairs(NamedTuple):
    """What is compared: pair p is `moving[p]` with the texts `fixed[group[p]]`."""

    fixed: Sequence[Sequence[Units]]
    moving: Sequence[Units]
    group: Sequence[int]


class _Flat(NamedTuple):
    """Several texts in one row of numbers."""

    units: IntVector
    lengths: IntVector

    def spread(self, values: IntVector) -> IntVector:
        """Return the value of each text for each of its units."""
        return np.repeat(values, self.lengths)

    @property
    def left(self) -> IntVector:
        """How many units the text has from here on."""
        return self.spread(np.cumsum(self.lengths)) - np.arange(len(self.units))


class _Batch(NamedTuple):
    """A portion of the pairs as numbers; `owner` says which group each fixed text belongs to."""

    fixed: _Flat
    owner: IntVector
    moving: _Flat
    group: IntVector


def shared_runs(pairs: Pairs, longest: int) -> IntVector:
    """Return for each pair (rows) and each length 1 .. `longest` (columns) the number of runs both sides have.

    >>> shared_runs(Pairs([["banana"]], ["ananas", "ban"], [0, 0]), 2).tolist()
    [[5, 4], [3, 2]]
    """
    result = np.zeros((len(pairs.moving), longest), dtype=np.int64)
    for portion in _portions(pairs):
        result[portion] = _count_runs(_number_units(pairs, portion), longest)
    return result


def _portions(pairs: Pairs) -> Iterator[list[int]]:
    """Return the pairs in portions of bounded size, those with the same fixed texts together."""
    sizes = [sum(map(len, texts)) for texts in pairs.fixed]
    ordered = sorted(range(len(pairs.moving)), key=pairs.group.__getitem__)
    return split_by_size(ordered, lambda p: len(pairs.moving[p]) + sizes[pairs.group[p]], _BATCH)


def _number_units(pairs: Pairs, portion: Sequence[int]) -> _Batch:
    """Return the portion with units and groups as numbers 0, 1, ...; equal units are equal numbers."""
    groups = {number: place for place, number in enumerate(dict.fromkeys(pairs.group[p] for p in portion))}
    fixed = [text for number in groups for text in pairs.fixed[number]]
    owner = [place for number, place in groups.items() for _ in pairs.fixed[number]]
    everything = [*fixed, *(pairs.moving[p] for p in portion)]
    lengths = np.array([len(text) for text in everything], dtype=np.int64)
    units = _units(everything)
    border = int(lengths[: len(fixed)].sum())
    return _Batch(
        _Flat(units[:border], lengths[: len(fixed)]),
        np.array(owner, dtype=np.int64),
        _Flat(units[border:], lengths[len(fixed) :]),
        np.array([groups[pairs.group[p]] for p in portion], dtype=np.int64),
    )


def _units(texts: Sequence[Units]) -> IntVector:
    """Return the units of all texts as numbers."""
    if isinstance(texts[0], str):
        points = np.frombuffer("".join(chain(*texts)).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        return np.unique(points, return_inverse=True)[1].astype(np.int64)
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    return np.fromiter(map(numbers.__getitem__, chain.from_iterable(texts)), np.int64, sum(map(len, texts)))


def _count_runs(batch: _Batch, longest: int) -> IntVector:
    """Return the shared runs of one batch, by step 2 to 4."""
    fixed, owner, moving, group = batch
    result = np.zeros((len(group), longest), dtype=np.int64)
    radix = int(max(fixed.units.max(initial=0), moving.units.max(initial=0))) + 1
    left = (fixed.left, moving.left)
    text, owners, pair = (
        fixed.spread(np.arange(len(owner))),
        fixed.spread(owner),
        moving.spread(np.arange(len(group))),
    )
    # Before the first unit every run is empty, and its name is the number of the group.
    places, names = [np.arange(len(fixed.units)), np.arange(len(moving.units))], [owners, group[pair]]
    for n in range(1, longest + 1):
        for side, flat in enumerate((fixed, moving)):
            fits = left[side][places[side]] >= n
            places[side] = places[side][fits]
            names[side] = names[side][fits] * radix + flat.units[places[side] + n - 1]
        codes, first, names[0] = np.unique(names[0], return_index=True, return_inverse=True)
        if not len(codes):
            break
        nearest = np.minimum(np.searchsorted(codes, names[1]), len(codes) - 1)
        shared = codes[nearest] == names[1]
        places[1], names[1] = places[1][shared], nearest[shared]
        counts = _most(names[0], text[places[0]], len(owner))
        result[:, n - 1] = _smaller(pair[places[1]], names[1], counts, owners[places[0][first]], group)
    return result


def _most(names: IntVector, text: IntVector, texts: int) -> IntVector:
    """Return how often each named run occurs in the text that has it most often."""
    result = np.zeros(int(names.max()) + 1, dtype=np.int64)
    cells, counts = np.unique(names * texts + text, return_counts=True)
    np.maximum.at(result, cells // texts, counts)
    return result


def _smaller(pair: IntVector, name: IntVector, counts: IntVector, owner: IntVector, group: IntVector) -> IntVector:
    """Return for each pair the sum over runs of the smaller of the two counts.

    Args:
        pair: the pair of each run found in a changing text.
        name: the name of each such run.
        counts: how often each named run may count.
        owner: the group that each name belongs to; names of one group follow each other.
        group: the group of each pair.
    """
    sizes = np.bincount(owner, minlength=int(group.max()) + 1)
    # One cell for each pair and each named run of its group: pair p has `width[p]` of them.
    width = sizes[group]
    shift = (np.cumsum(width) - width) - (np.cumsum(sizes) - sizes)[group]
    seen = np.bincount(name + shift[pair], minlength=int(width.sum()))
    cells = np.repeat(np.arange(len(group)), width)
    allowed = counts[np.arange(len(seen)) - shift[cells]]
    return np.bincount(cells, np.minimum(seen, allowed), minlength=len(group)).astype(np.int64)


def run_credits(own: Sequence[Units], others: Sequence[Sequence[Units]], longest: int) -> list[list[FloatVector]]:
    """Return for each text and each length 1 .. `longest` how far each of its runs matched its other texts.

    That is 1, 0, or between where a run occurs more often here than in the text there that has it most often. Runs are
    named as in `shared_runs`; what only one side has is dropped.

    >>> [row.tolist() for row in run_credits(["aab"], [["ab"]], 2)[0]]
    [[0.5, 0.5, 1.0], [0.0, 1.0]]
    """
    texts = [*own, *chain.from_iterable(others)]
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    flat = _Flat(_units(texts) if texts else np.zeros(0, dtype=np.int64), lengths)
    owner = np.repeat(np.arange(len(own)), [len(group) for group in others])
    names = flat.spread(np.concatenate([np.arange(len(own)), owner]))
    text, left, places = flat.spread(np.arange(len(texts))), flat.left, np.arange(len(flat.units))
    radix, border, starts = int(flat.units.max(initial=0)) + 1, int(lengths[: len(own)].sum()), np.cumsum(lengths)
    starts = (starts - lengths)[: len(own)]
    result: list[list[FloatVector]] = [[] for _ in own]
    for n in range(1, longest + 1):
        fits = left[places] >= n
        places = places[fits]
        _, names = np.unique(names[fits] * radix + flat.units[places + n - 1], return_inverse=True)
        runs = np.maximum(0, lengths[: len(own)] - n + 1)
        ends = np.cumsum(runs)
        credit = np.zeros(int(runs.sum()))
        if len(places):
            here, there = names[places < border], names[places >= border]
            count = np.bincount(here, minlength=int(names.max()) + 1)
            most = np.zeros_like(count)
            if len(there):
                most[: int(there.max()) + 1] = _most(there, text[places[places >= border]], len(texts))
            share = np.where(most >= count, 1.0, most / np.maximum(count, 1))
            at = places[: len(here)]
            credit[at - (starts - (ends - runs))[text[at]]] = share[here]
            shared = ((count > 0) & (most > 0))[names]
            places, names = places[shared], names[shared]
        for row, end, size in zip(result, ends.tolist(), runs.tolist(), strict=True):
            row.append(credit[end - size : end])
    return result


TOKENIZERS = tuple(BLEU.TOKENIZERS)
_EPSILON = 1e-16  # sacreBLEU's, in chrF
Row = list[float]
Facts = tuple[tuple[str, str], ...]


class CountedMetric:
    """A metric whose rows are counts of sacreBLEU, with one formula for segments and corpus."""

    __slots__ = ()
    name: ClassVar[str]

    @property
    def counts(self) -> "ChrfRows | TerRows":
        """What is counted, by sacreBLEU's own code."""
        raise NotImplementedError

    @lru_cache(maxsize=32)  # noqa: B019 - metrics are small values
    def signature(self) -> Signature:
        return Signature(spec_of(self), self.counts.facts())

    def segment_signature(self) -> Signature:
        return self.signature()

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return self.scores(self.statistics(segments))

    def statistics(self, segments: Sequence[Segment]) -> FloatMatrix:
        need_references(self.name, segments)
        return self.counts.rows(segments)

    def scores(self, rows: FloatMatrix) -> FloatVector:
        return self.counts.formulas(rows)

    def total(self, row: FloatVector) -> float:
        return float(self.counts.formula(row.tolist()))

    def totals(self, rows: FloatMatrix) -> FloatVector:
        return self.counts.formulas(rows)


class BleuRows(BLEU):
    """sacreBLEU's BLEU: hypothesis length, reference length, matches per order, n-grams per order."""

    def __init__(
        self, *, tokenize: str, lowercase: bool, smoothing: str, smoothing_value: float | None, max_order: int
    ) -> None:
        super().__init__(
            tokenize="flores101" if tokenize == "spm" else tokenize,
            lowercase=lowercase,
            force=True,
            smooth_method=smoothing,
            smooth_value=smoothing_value,
            max_ngram_order=max_order,
        )

    def tokens(self, text: str) -> list[str]:
        return self._preprocess_segment(text).split()

    def rows(self, segments: Sequence[Segment]) -> FloatMatrix:
        hypotheses = [self.tokens(segment.hypothesis) for segment in segments]
        numbers = {references: k for k, references in enumerate(dict.fromkeys(s.references for s in segments))}
        group = [numbers[segment.references] for segment in segments]
        references = [[self.tokens(text) for text in present(texts)] for texts in numbers]
        lengths = [[len(tokens) for tokens in texts] for texts in references]
        sizes = np.array([len(tokens) for tokens in hypotheses], dtype=np.int64)
        closest = [self._get_closest_ref_len(len(t), lengths[k]) for t, k in zip(hypotheses, group, strict=True)]
        matches = shared_runs(Pairs(references, hypotheses, group), self.max_ngram_order)
        totals = np.maximum(0, sizes[:, np.newaxis] - np.arange(self.max_ngram_order))
        return np.column_stack([sizes, closest, matches, totals]).astype(np.float64)

    def formula(self, row: Row, *, effective_order: bool) -> float:
        """Return the BLEU that a row of counts stands for."""
        n = self.max_ngram_order
        answer = self.compute_bleu(
            row[2 : 2 + n],  # type: ignore[arg-type]  # counts are whole numbers, as floats
            row[2 + n :],  # type: ignore[arg-type]
            int(row[0]),
            int(row[1]),
            smooth_method=self.smooth_method,
            smooth_value=self.smooth_value,
            effective_order=effective_order,
            max_ngram_order=n,
        )
        return float(answer.score)

    def facts(self, *, effective_order: bool) -> Facts:
        """Return the fields of sacreBLEU's signature."""
        return _facts(self._SIGNATURE_TYPE, self.__dict__ | {"effective_order": effective_order})


class ChrfRows(CHRF):
    """sacreBLEU's chrF: n-grams of the hypothesis, of the reference, and matches, for each order in turn."""

    def characters(self, text: str) -> str:
        """Return the characters chrF counts."""
        prepared = self._preprocess_segment(text)
        return prepared if self.whitespace else "".join(prepared.split())

    def tokens(self, text: str) -> list[str]:
        return self._remove_punctuation(self._preprocess_segment(text))

    def rows(self, segments: Sequence[Segment]) -> FloatMatrix:
        references = [present(segment.references) for segment in segments]
        alternatives = self._pair_rows(
            [segment.hypothesis for segment, texts in zip(segments, references, strict=True) for _ in texts],
            [text for texts in references for text in texts],
        )
        if len(alternatives) == len(segments):
            return alternatives
        scores = iter(self.formulas(alternatives).tolist())
        best, first = [], 0
        for texts in references:
            scores_of_segment = list(islice(scores, len(texts)))
            best.append(first + scores_of_segment.index(max(scores_of_segment)))
            first += len(texts)
        return alternatives[best]

    def best(self, segment: Segment) -> str:
        """Return the reference with the best score, the first of equals."""
        references = present(segment.references)
        if len(references) == 1:
            return references[0]
        rows = self._pair_rows([segment.hypothesis] * len(references), references)
        scores = [self.formula(row) for row in rows.tolist()]
        return references[scores.index(max(scores))]

    def formula(self, row: Row) -> float:
        """Return the chrF that a row of counts stands for."""
        return self._compute_f_score(row)  # type: ignore[arg-type]  # counts are whole numbers, as floats

    def formulas(self, rows: FloatMatrix) -> FloatVector:
        """Return the chrF of each row: what `formula` computes, step by step, so that no digit differs."""
        factor = self.beta**2
        scores, precisions, recalls, orders = (np.zeros(len(rows)) for _ in range(4))
        with np.errstate(divide="ignore", invalid="ignore"):
            for hypothesis, reference, both in rows.reshape(len(rows), self.order, 3).transpose(1, 2, 0):
                precision = np.where(hypothesis > 0, both / hypothesis, _EPSILON)
                recall = np.where(reference > 0, both / reference, _EPSILON)
                below = factor * precision + recall
                scores += np.where(below > 0, (1 + factor) * precision * recall / below, _EPSILON)
                counted = (hypothesis > 0) & (reference > 0)
                precisions += np.where(counted, precision, 0.0)
                recalls += np.where(counted, recall, 0.0)
                orders += counted
            if self.eps_smoothing:
                return 100 * scores / self.order
            precisions /= np.maximum(orders, 1)
            recalls /= np.maximum(orders, 1)
            whole = 100 * ((1 + factor) * precisions * recalls / (factor * precisions + recalls))
        return np.where(precisions + recalls != 0, whole, 0.0)

    def facts(self) -> Facts:
        """Return the fields of sacreBLEU's signature."""
        return _facts(self._SIGNATURE_TYPE, self.__dict__)

    def _pair_rows(self, hypotheses: Sequence[str], references: Sequence[str]) -> FloatMatrix:
        """Return the row of each hypothesis with its one reference."""
        counts = [_run_counts(hypotheses, references, self.characters, self.char_order)]
        if self.word_order:
            counts.append(_run_counts(hypotheses, references, self.tokens, self.word_order))
        return np.concatenate(counts, axis=1).reshape(len(hypotheses), 3 * self.order)


class TerRows(TER):
    """sacreBLEU's TER: fewest edits over the references, mean length of the references."""

    def tokens(self, text: str) -> list[str]:
        return self._preprocess_segment(text).split()

    def reference_tokens(self, text: str) -> list[str]:
        """Return the words of a reference, which sacreBLEU prepares twice."""
        words: list[str] = self._extract_reference_info([self._preprocess_segment(text)])["ref_words"][0]
        return words

    def rows(self, segments: Sequence[Segment]) -> FloatMatrix:
        result = np.empty((len(segments), 2), dtype=np.float64)
        for places in _group_equal(segment.references for segment in segments):
            references = self.references(segments[places[0]])
            length = mean_length(references)
            for place in places:
                hypothesis = self.tokens(segments[place].hypothesis)
                result[place] = [min(edits(hypothesis, words) for words in references), length]
        return result

    def references(self, segment: Segment) -> list[list[str]]:
        """Return the words of the references that are not missing."""
        return [self.reference_tokens(text) for text in present(segment.references)]

    def best(self, segment: Segment) -> list[str]:
        """Return the words of the reference that needs the fewest edits, the first of equals."""
        references = self.references(segment)
        if len(references) == 1:
            return references[0]
        hypothesis = self.tokens(segment.hypothesis)
        return min(references, key=lambda words: edits(hypothesis, words))

    def formula(self, row: Row) -> float:
        """Return the TER that a row of counts stands for."""
        return float(self._compute_score_from_stats(row).score)

    def formulas(self, rows: FloatMatrix) -> FloatVector:
        """Return the TER of each row."""
        return np.array([self.formula(row.tolist()) for row in rows], dtype=np.float64)

    def facts(self) -> Facts:
        """Return the fields of sacreBLEU's signature."""
        return _facts(self._SIGNATURE_TYPE, self.__dict__)


def mean_length(references: Sequence[Sequence[str]]) -> float:
    """Return what TER divides by: the mean number of words."""
    return sum(map(len, references)) / len(references)


def _group_equal(keys: Iterable[Hashable]) -> Iterable[list[int]]:
    """Return the positions of equal keys together, so that each text is prepared once."""
    groups: dict[Hashable, list[int]] = {}
    for position, key in enumerate(keys):
        groups.setdefault(key, []).append(position)
    return groups.values()


def _run_counts(
    hypotheses: Sequence[str], references: Sequence[str], cut: Callable[[str], Sequence[str]], longest: int
) -> FloatMatrix:
    """Return pairs x orders x (n-grams of the hypothesis, of the reference, of both)."""
    few_hypotheses = len(set(hypotheses)) < len(set(references))
    stay, change = (hypotheses, references) if few_hypotheses else (references, hypotheses)
    numbers = {text: number for number, text in enumerate(dict.fromkeys(stay))}
    group = [numbers[text] for text in stay]
    pairs = Pairs([[cut(text)] for text in numbers], [cut(text) for text in change], group)
    both = shared_runs(pairs, longest)
    orders = np.arange(longest)
    fixed = np.maximum(0, np.array([len(units) for [units] in pairs.fixed])[group, np.newaxis] - orders)
    moving = np.maximum(0, np.array([len(units) for units in pairs.moving])[:, np.newaxis] - orders)
    hypothesis, reference = (fixed, moving) if few_hypotheses else (moving, fixed)
    # As in sacreBLEU, an order that the reference is too short for does not count against the hypothesis.
    return np.stack([np.where(reference > 0, hypothesis, 0), reference, both], axis=2).astype(np.float64)


def _facts(kind: type, settings: dict[str, object]) -> Facts:
    """Return `nrefs:any|...|version:...` as pairs; the number of references is filled in by who knows it."""
    info = kind(settings | {"num_refs": "any"}).info
    names = {True: "yes", False: "no"}
    filled = {key: value for key, value in info.items() if value is not None}
    facts = [(key, names[value] if isinstance(value, bool) else str(value)) for key, value in filled.items()]
    return tuple(sorted(facts, key=lambda fact: fact[0] == "version"))
