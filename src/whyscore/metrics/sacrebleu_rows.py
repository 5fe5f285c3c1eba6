"""BLEU, chrF and TER of sacreBLEU as rows of counts: with `ter_edits` all that is known here of its internals.

sacreBLEU keeps per-segment counts behind underscores, so this file is bound to one minor version of it. Texts are
prepared and scores computed by sacreBLEU's own code. Only the counting of matches is ours (`run_counts`),
because explaining one segment asks for thousands of rows.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import islice

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from whyscore.metrics.needs import present
from whyscore.metrics.run_counts import Pairs, shared_runs
from whyscore.metrics.ter_edits import edits
from whyscore.types import FloatMatrix, Segment

TOKENIZERS = tuple(BLEU.TOKENIZERS)
Row = list[float]
Facts = tuple[tuple[str, str], ...]


class BleuRows(BLEU):
    """sacreBLEU's BLEU: hypothesis length, reference length, matches per order, n-grams per order."""

    def __init__(
        self, *, tokenize: str, lowercase: bool, smoothing: str, smoothing_value: float | None, max_order: int
    ) -> None:
        """Prepare the tokenizer; `spm` is sacreBLEU's old name of flores101 and only adds a notice."""
        super().__init__(
            tokenize="flores101" if tokenize == "spm" else tokenize,
            lowercase=lowercase,
            force=True,
            smooth_method=smoothing,
            smooth_value=smoothing_value,
            max_ngram_order=max_order,
        )

    def tokens(self, text: str) -> list[str]:
        """Return the tokens BLEU counts."""
        return self._preprocess_segment(text).split()

    def rows(self, segments: Sequence[Segment]) -> FloatMatrix:
        """Return one row per segment."""
        hypotheses = [self.tokens(segment.hypothesis) for segment in segments]
        numbers = {references: k for k, references in enumerate(dict.fromkeys(s.references for s in segments))}
        group = [numbers[segment.references] for segment in segments]
        references = [[self.tokens(text) for text in present(texts)] for texts in numbers]
        lengths = [[len(tokens) for tokens in texts] for texts in references]
        own = np.array([len(tokens) for tokens in hypotheses], dtype=np.int64)
        closest = [self._get_closest_ref_len(len(t), lengths[k]) for t, k in zip(hypotheses, group, strict=True)]
        matches = shared_runs(Pairs(references, hypotheses, group), self.max_ngram_order)
        totals = np.maximum(0, own[:, np.newaxis] - np.arange(self.max_ngram_order))
        return np.column_stack([own, closest, matches, totals]).astype(np.float64)

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

    def __init__(
        self, *, char_order: int, word_order: int, beta: int, lowercase: bool, whitespace: bool, eps_smoothing: bool
    ) -> None:
        """Take the settings under sacreBLEU's names."""
        super().__init__(char_order, word_order, beta, lowercase, whitespace, eps_smoothing)

    def characters(self, text: str) -> str:
        """Return the characters chrF counts."""
        prepared = self._preprocess_segment(text)
        return prepared if self.whitespace else "".join(prepared.split())

    def tokens(self, text: str) -> list[str]:
        """Return the words chrF++ counts."""
        return self._remove_punctuation(self._preprocess_segment(text))

    def rows(self, segments: Sequence[Segment]) -> FloatMatrix:
        """Return one row per segment, that of the reference with the best score, the first of equals."""
        given = [present(segment.references) for segment in segments]
        alternatives = self._pair_rows(
            [segment.hypothesis for segment, texts in zip(segments, given, strict=True) for _ in texts],
            [text for texts in given for text in texts],
        )
        if len(alternatives) == len(segments):
            return alternatives
        scores = iter([self.formula(row) for row in alternatives.tolist()])
        best, first = [], 0
        for texts in given:
            own = list(islice(scores, len(texts)))
            best.append(first + own.index(max(own)))
            first += len(texts)
        return alternatives[best]

    def best(self, segment: Segment) -> str:
        """Return the reference with the best score, the first of equals."""
        given = present(segment.references)
        if len(given) == 1:
            return given[0]
        rows = self._pair_rows([segment.hypothesis] * len(given), given)
        scores = [self.formula(row) for row in rows.tolist()]
        return given[scores.index(max(scores))]

    def formula(self, row: Row) -> float:
        """Return the chrF that a row of counts stands for."""
        return self._compute_f_score(row)  # type: ignore[arg-type]  # counts are whole numbers, as floats

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

    def __init__(self, *, normalized: bool, no_punct: bool, asian_support: bool, case_sensitive: bool) -> None:
        """Prepare the tokenizer."""
        super().__init__(normalized, no_punct, asian_support, case_sensitive)

    def tokens(self, text: str) -> list[str]:
        """Return the words of a hypothesis."""
        return self._preprocess_segment(text).split()

    def reference_tokens(self, text: str) -> list[str]:
        """Return the words of a reference, which sacreBLEU prepares twice."""
        words: list[str] = self._extract_reference_info([self._preprocess_segment(text)])["ref_words"][0]
        return words

    def rows(self, segments: Sequence[Segment]) -> FloatMatrix:
        """Return one row per segment."""
        result = np.empty((len(segments), 2), dtype=np.float64)
        for places in _grouped(segment.references for segment in segments):
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
        given = self.references(segment)
        if len(given) == 1:
            return given[0]
        hypothesis = self.tokens(segment.hypothesis)
        return min(given, key=lambda words: edits(hypothesis, words))

    def formula(self, row: Row) -> float:
        """Return the TER that a row of counts stands for."""
        return float(self._compute_score_from_stats(row).score)

    def facts(self) -> Facts:
        """Return the fields of sacreBLEU's signature."""
        return _facts(self._SIGNATURE_TYPE, self.__dict__)


def mean_length(references: Sequence[Sequence[str]]) -> float:
    """Return what TER divides by: the mean number of words."""
    return sum(map(len, references)) / len(references)


def _grouped(keys: Iterable[Hashable]) -> Iterable[list[int]]:
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
    text: str = kind(settings | {"num_refs": "any"}).format()
    fields = [field.partition(":") for field in text.split("|")]
    return tuple((key, value) for key, _, value in fields)
