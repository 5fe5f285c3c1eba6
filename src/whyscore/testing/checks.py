"""The contract of a metric as checks, for authors of plugins: call `check_metric(MyMetric())` in a test.

What is checked, in this order:

1. The members: `inputs` and `higher_is_better` have the right types.
2. The answers: one finite float64 per segment, none for no segments.
3. Each score depends on its segment alone: asked again, turned round, one by one, and for equal segments.
4. `inputs` is truthful: a text that is not read may change or be missing.
5. The signature says the same when asked twice, and, if it is stable, its spec builds a metric with the same scores.
6. Where the metric has rows: their shape, and that the scores follow from them; where it has a corpus score, that sums
   of rows have one; and that neither changes the rows.
7. Where it scores words: one finite number and one note per word; sides other than the hypothesis may be refused.
8. Where it declares more, that it is true: what it needs is a part of what it reads; its scale is a number above 0; a
   metric of characters gives the same score when all letters are exchanged for others; tokens stay as they are when
   they are joined and cut again; unchanged similarities give the score; the variant for decompositions is a metric.

The contract of explainers, as checks that name what was broken.

    from whyscore.testing.checks import check_explainer

    def test_my_explainer_keeps_its_promises():
        check_explainer(MyExplainer())

`explain_masks` and `explain_text` run an explainer on one text as the engine does, without a metric object.

The contract of a tagger as checks, for authors of plugins: call `check_tagger(MyTagger())` in a test.

1. One answer per text, in order; none for no texts; each depends on its text alone.
2. Every stretch lies in its text, is not empty and carries features: those that `labels` names, where there is one.
3. The signature says the same when asked twice.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import ContractError, SpecError, UserError
from whyscore.metrics.needs import probe
from whyscore.protocols import (
    CorpusMetric,
    Explainer,
    HidesWords,
    Masker,
    MatrixMetric,
    Metric,
    RowMetric,
    SupportsBudget,
    SupportsDecomposition,
    SupportsLabels,
    SupportsMasking,
    SupportsNeeds,
    SupportsScale,
    SupportsTotals,
    Tagger,
    TokenMetric,
    WordScorer,
)
from whyscore.registry import build
from whyscore.text.maskers import Replace
from whyscore.text.randomness import generator
from whyscore.text.splitters import white_space
from whyscore.types import Evidence, Fit, FloatVector, Inputs, KeepMasks, Segment, Side, Signature, Words

SEGMENTS = (
    Segment("I have a cat .", "Ich habe einen Hund .", ("I have a dog .",)),
    Segment("The quick brown fox", "Der schnelle braune Fuchs", ("The quick brown fox", "A fast brown fox")),
    Segment("", "Nichts", ("nothing at all",)),
    Segment("fox brown the the the", "Der Fuchs", ("the brown fox jumps", "", "the fox")),
    Segment("यह एक बिल्ली है", "Das ist eine Katze", ("यह एक कुत्ता है",)),
    Segment("我有一只猫。", "Ich habe eine Katze.", ("我有一条狗。",)),
    Segment("I have a cat .", "Ich habe einen Hund .", ("I have a dog .",)),
)
"""Segments of several scripts, with one to three references, an empty hypothesis and a repetition."""

_OTHER = "Something else entirely 7"
_MATCHED = 1e-9


def check_metric(
    metric: Metric, segments: Sequence[Segment] | None = None, *, tolerance: float = 0.0, rebuild: bool = True
) -> None:
    """Raise a ContractError if a metric breaks its protocol; say nothing if it does not.

    Args:
        metric: what is checked.
        segments: what it is asked; the default has source and references and needs no model or language.
        tolerance: how far scores of the same segment may differ between batches; models in float32 need some 1e-5.
        rebuild: whether the spec in a stable signature must build the metric again; False for a class that is not
            registered under a name.
    """
    cases = list(SEGMENTS if segments is None else segments)
    name = type(metric).__name__
    _check_members(metric, name)
    first = _Answers(metric, name, cases, _score(metric, cases, name), tolerance)
    first.ask([])
    _check_independence(first)
    _check_inputs(first)
    _check_signature(first, rebuild=rebuild)
    if isinstance(metric, RowMetric):
        _check_rows(metric, first)
    if isinstance(metric, CorpusMetric):
        _check_corpus(metric, cases, name)
    if isinstance(metric, WordScorer):
        _check_words(metric, cases, metric.inputs, name)
    _check_declared(metric, name)
    if isinstance(metric, TokenMetric):
        _check_tokens(metric, cases, name)
    if isinstance(metric, MatrixMetric):
        _check_matrices(metric, cases, tolerance, name)


class _Answers(NamedTuple):
    """What a metric answered first; later answers about the same segments may differ by the tolerance."""

    metric: Metric
    name: str
    segments: Sequence[Segment]
    scores: FloatVector
    tolerance: float

    def ask(self, segments: Sequence[Segment]) -> FloatVector:
        """Return the scores of other segments."""
        return _score(self.metric, segments, self.name)

    def check_same(self, values: FloatVector, what: str) -> None:
        """Refuse other scores of the same segments."""
        _check_same(values, self.scores, self.segments, self.tolerance, f"{self.name}{what}")


def _check_matrices(metric: MatrixMetric, segments: Sequence[Segment], tolerance: float, name: str) -> None:
    """Refuse similarities that do not give the score; options under which there are none are refused by the metric."""
    used = metric.for_decomposition(published=False) if isinstance(metric, SupportsDecomposition) else metric
    if not isinstance(used, MatrixMetric):
        return
    try:
        matched = np.asarray(used.matched(used.similarities(segments)), dtype=np.float64)
    except SpecError:
        return
    _check_same(
        matched, used.score(segments), segments, max(tolerance, _MATCHED), f"{name}.matched of its similarities"
    )


def _check_declared(metric: Metric, name: str) -> None:
    """Refuse declarations that cannot be true."""
    if isinstance(metric, SupportsNeeds) and metric.needs & ~metric.inputs:
        raise ContractError(f"{name}.needs is {metric.needs!r}, expected a part of its inputs, {metric.inputs!r}")
    if isinstance(metric, SupportsScale) and metric.score_scale is not None and not metric.score_scale > 0:
        raise ContractError(f"{name}.score_scale is {metric.score_scale!r}, expected a number above 0")
    if isinstance(metric, SupportsMasking) and metric.masking not in ("character", "opaque", None):
        raise ContractError(f"{name}.masking is {metric.masking!r}, expected 'character', 'opaque' or None")
    if isinstance(metric, SupportsMasking) and metric.masking == "character" and probe(metric).masking != "character":
        raise ContractError(f"{name}.masking is 'character', but it does not compare characters by their form alone")
    if isinstance(metric, SupportsDecomposition):
        for published in (False, True):
            variant = metric.for_decomposition(published=published)
            if not isinstance(variant, Metric):
                raise ContractError(f"{name}.for_decomposition must give a metric, got {variant!r}")


def _check_tokens(metric: TokenMetric, segments: Sequence[Segment], name: str) -> None:
    """Refuse tokens that stand outside of their text, or that `on_tokens` cuts again."""
    again = metric.on_tokens()
    for text in (text for segment in segments for text in (segment.hypothesis, *segment.references)):
        tokens = metric.tokens(text)
        if any(not 0 <= token.start <= token.end <= len(text) for token in tokens):
            raise ContractError(f"{name}.tokens of {text!r} stand outside of it: {tokens!r}")
        forms = [token.text for token in tokens]
        if isinstance(again, TokenMetric) and [token.text for token in again.tokens(" ".join(forms))] != forms:
            raise ContractError(f"{name}.on_tokens() cuts the tokens {forms!r} again")


def _check_members(metric: Metric, name: str) -> None:
    if not isinstance(metric, Metric):
        missing = [
            member for member in ("inputs", "higher_is_better", "signature", "score") if not hasattr(metric, member)
        ]
        raise ContractError(f"{name} is no metric: it has no {', '.join(missing)}")
    if not isinstance(metric.inputs, Inputs) or not metric.inputs:
        raise ContractError(
            f"{name}.inputs is {metric.inputs!r}, expected some of Inputs.HYPOTHESIS, SOURCE, REFERENCES, CONTEXT"
        )
    if not isinstance(metric.higher_is_better, bool):
        raise ContractError(f"{name}.higher_is_better is {metric.higher_is_better!r}, expected True or False")


def _score(metric: Metric, segments: Sequence[Segment], name: str) -> FloatVector:
    """Return the scores after a look at their form."""
    scores = metric.score(segments)
    _check_array(scores, (len(segments),), f"{name}.score of {len(segments)} segments")
    return scores


def _check_array(values: NDArray[np.float64], shape: tuple[int, ...], what: str) -> None:
    if not isinstance(values, np.ndarray) or values.dtype != np.float64:
        came = f"an array of {values.dtype}" if isinstance(values, np.ndarray) else type(values).__name__
        raise ContractError(f"{what} must be a float64 array, got {came}")
    if values.shape != shape:
        raise ContractError(f"{what} must have the shape {shape}, got {values.shape}")
    bad = np.argwhere(~np.isfinite(values))
    if bad.size:
        raise ContractError(f"{what} must be finite, got {values[tuple(bad[0])]} at {bad[0].tolist()}")


def _check_independence(first: _Answers) -> None:
    segments = first.segments
    first.check_same(first.ask(segments), " asked twice")
    first.check_same(first.ask(segments[::-1])[::-1], " asked in another order")
    single = np.array([first.ask([segment])[0] for segment in segments], dtype=np.float64)
    first.check_same(single, " asked one by one")
    places = {segment: k for k, segment in reversed(list(enumerate(segments)))}
    first.check_same(first.scores[[places[segment] for segment in segments]], " on equal segments")


def _check_same(
    values: FloatVector, scores: FloatVector, segments: Sequence[Segment], tolerance: float, what: str
) -> None:
    different = np.flatnonzero(~np.isclose(values, scores, rtol=tolerance, atol=tolerance))
    if different.size:
        k = int(different[0])
        raise ContractError(f"{what} gives {values[k]!r} instead of {scores[k]!r} for {segments[k]!r}")


def _check_inputs(first: _Answers) -> None:
    inputs = first.metric.inputs
    needed = [segment.only(inputs) for segment in first.segments]
    first.check_same(first.ask(needed), " without the texts it does not read")
    others: dict[Inputs, dict[str, object]] = {
        Inputs.SOURCE: {"source": _OTHER},
        Inputs.REFERENCES: {"references": (_OTHER,)},
        Inputs.CONTEXT: {"context": (Segment(_OTHER, _OTHER, (_OTHER,)),)},
    }
    for text, other in others.items():
        if text not in inputs:
            changed = [replace(segment, **other) for segment in first.segments]  # type: ignore[arg-type]
            what = f", whose inputs do not name {str(text.name).lower()}, with another one"
            first.check_same(first.ask(changed), what)


def _check_signature(first: _Answers, *, rebuild: bool) -> None:
    metric, name = first.metric, first.name
    signature = metric.signature()
    if not isinstance(signature, Signature):
        raise ContractError(f"{name}.signature() must be a Signature, got {signature!r}")
    second = str(metric.signature())
    if second != str(signature):
        raise ContractError(f"{name}.signature() says {str(signature)!r}, then {second!r}")
    if not (rebuild and signature.stable):
        return
    try:
        again = build(signature.spec)
    except UserError as error:
        raise ContractError(
            f"{name}: the spec {signature.spec!r} of its signature builds nothing ({error}). "
            "Register the class under a name, or make the signature stable=False"
        ) from error
    if str(again.signature()) != str(signature):
        raise ContractError(
            f"{name}: the spec {signature.spec!r} builds a metric that signs {str(again.signature())!r}"
        )
    first.check_same(_score(again, first.segments, name), " built from its spec")


def _check_rows(metric: RowMetric, first: _Answers) -> None:
    width, name = len(metric.columns), first.name
    for segments in (first.segments, []):
        rows = metric.statistics(segments)
        _check_array(rows, (len(segments), width), f"{name}.statistics of {len(segments)} segments in {width} columns")
        before = rows.copy()
        followed = metric.scores(rows)
        _check_array(followed, (len(segments),), f"{name}.scores of {len(segments)} rows")
        _check_kept(rows, before, f"{name}.scores")
        _check_same(followed, first.scores[: len(segments)], segments, first.tolerance, f"{name}.scores of its rows")


def _check_corpus(metric: CorpusMetric, segments: Sequence[Segment], name: str) -> None:
    rows = metric.statistics(segments)
    for row in (*rows, rows.sum(axis=0), np.zeros(len(metric.columns))):
        before = row.copy()
        total = metric.total(row)
        if not isinstance(total, float) or not np.isfinite(total):
            raise ContractError(f"{name}.total must be a finite float, got {total!r} for the row {before.tolist()}")
        _check_kept(row, before, f"{name}.total")
    if isinstance(metric, SupportsTotals):
        together, one_by_one = metric.totals(rows).tolist(), [metric.total(row) for row in rows]
        if together != one_by_one:
            raise ContractError(f"{name}.totals gives {together}, {name}.total gives {one_by_one}")
    if not isinstance(metric.segment_signature(), Signature):
        raise ContractError(f"{name}.segment_signature() must be a Signature, got {metric.segment_signature()!r}")


def _check_kept(rows: NDArray[np.float64], before: NDArray[np.float64], what: str) -> None:
    if not np.array_equal(rows, before):
        raise ContractError(f"{what} changes the rows it is given; work on a copy")


def _check_words(scorer: WordScorer, segments: Sequence[Segment], inputs: Inputs, name: str) -> None:
    for segment in segments:
        for place in segment.places(inputs):
            words = white_space(segment.text(place))
            what = f"{name}.word_scores of {len(words)} words ({place})"
            try:
                answers = scorer.word_scores([segment], place, [words])
            except SpecError:
                if place.side is Side.HYPOTHESIS:
                    raise
                continue
            if len(answers) != 1:
                raise ContractError(f"{what} must be one answer for one segment, got {len(answers)}")
            _check_array(answers[0].importance, (len(words),), what)
            notes = answers[0].notes
            if notes is not None and len(notes) != len(words):
                raise ContractError(f"{what} must have {len(words)} notes, got {len(notes)}")


Value = Callable[[KeepMasks], FloatVector]
"""A made-up metric in mask space: one score per mask."""

TextScore = Callable[[str], float]

SIZES = (0, 1, 2, 3, 8, 30, 300)


def check_explainer(explainer: Explainer, sizes: Sequence[int] = SIZES) -> None:
    """Raise `ContractError` at the first promise of the protocol that an explainer breaks, for texts of these sizes."""
    for member in ("rounds", "cost", "plan", "fit"):
        if not hasattr(explainer, member):
            raise ContractError(f"{_name(explainer)} lacks {member!r}, which every explainer has")
    for size in sizes:
        words = numbered_words(size)
        evidence = gather(explainer, words, wavy)
        _check_plans(explainer, evidence)
        _check_fit(explainer, evidence)
    _check_repeatable(explainer, max(sizes))
    _check_masker(explainer)
    raised = explainer.raise_budget() if isinstance(explainer, SupportsBudget) else None
    if raised is not None and any(raised.cost(size) < explainer.cost(size) for size in sizes):
        raise ContractError(f"{_name(explainer)} asks fewer probes with twice its budget")


def explain_masks(explainer: Explainer, words: Words, value: Value, seed: int = 0) -> Fit:
    """Return what an explainer says of a text whose masks have these values."""
    return explainer.fit(gather(explainer, words, value, seed))


def explain_text(explainer: Explainer, words: Words, score: TextScore, seed: int = 0) -> Fit:
    """Return what an explainer says of a text under a function of texts, rendered by the explainer's masker."""
    masker: Masker = (explainer.masker if isinstance(explainer, HidesWords) else None) or Replace()

    def value(masks: KeepMasks) -> FloatVector:
        (probes,) = masker.render([(words, masks)])
        scores = np.array([score(text) for text in probes.texts], dtype=np.float64)
        if probes.rows is None:
            return scores
        weights = np.ones(len(scores)) if probes.weights is None else probes.weights
        sums = np.zeros(len(masks))
        np.add.at(sums, np.asarray(probes.rows, dtype=np.intp), weights * scores)
        return sums

    evidence = Evidence.whole(words, score(words.text), seed)
    return explainer.fit(_gather_rounds(explainer, evidence, value))


def gather(explainer: Explainer, words: Words, value: Value, seed: int = 0) -> Evidence:
    """Return all evidence that an explainer asks for, round by round."""
    whole = float(value(np.ones((1, len(words)), dtype=np.bool_))[0])
    return _gather_rounds(explainer, Evidence.whole(words, whole, seed), value)


def numbered_words(number: int) -> Words:
    """Return a text of that many different words.

    >>> numbered_words(3).text
    'w0 w1 w2'
    """
    return white_space(" ".join(f"w{k}" for k in range(number)))


def wavy(masks: KeepMasks) -> FloatVector:
    """Return values in which every word matters differently and neighbours interact."""
    effect = np.sin(1.0 + np.arange(masks.shape[1]))
    pairs = np.sum(masks[:, 1:] & masks[:, :-1], axis=1)
    result: FloatVector = masks @ effect + 0.1 * pairs
    return result


def _gather_rounds(explainer: Explainer, evidence: Evidence, value: Value) -> Evidence:
    for number in range(explainer.rounds):
        masks = explainer.plan(evidence, generator(evidence.seed, evidence.words.text, str(number)))
        _check_masks(explainer, masks, len(evidence.words))
        scores = value(masks) if len(masks) else np.zeros(0)
        evidence = _freeze(evidence.extend(masks, scores))
    return evidence


def _freeze(evidence: Evidence) -> Evidence:
    """Return the evidence with arrays that refuse to be written to."""
    evidence.masks.setflags(write=False)
    evidence.scores.setflags(write=False)
    return evidence


def _name(explainer: object) -> str:
    return type(explainer).__name__


def _check_masks(explainer: Explainer, masks: KeepMasks, words: int) -> None:
    shape = getattr(masks, "shape", None)
    if not isinstance(masks, np.ndarray) or masks.dtype != np.bool_ or masks.ndim != 2 or masks.shape[1] != words:  # noqa: PLR2004
        raise ContractError(
            f"{_name(explainer)}.plan: expected a boolean array, probes x {words} words, "
            f"got {type(masks).__name__} of shape {shape}"
        )


def _check_plans(explainer: Explainer, evidence: Evidence) -> None:
    words, probes = len(evidence.words), len(evidence.masks) - 1
    cost = explainer.cost(words)
    if probes > cost or (explainer.rounds <= 1 and probes != cost):
        raise ContractError(f"{_name(explainer)}: cost({words}) is {cost}, but {probes} probes were planned")
    if words == 0 and probes:
        raise ContractError(f"{_name(explainer)}: {probes} probes were planned for a text without words, expected none")
    if evidence.masks[1:].all(axis=1).any() and words:
        raise ContractError(f"{_name(explainer)}: the whole text was planned again; its score is row 0 of the evidence")


def _check_fit(explainer: Explainer, evidence: Evidence) -> None:
    words = len(evidence.words)
    fit = explainer.fit(evidence)
    importance = fit.importance
    if not isinstance(importance, np.ndarray) or importance.dtype != np.float64 or importance.shape != (words,):
        raise ContractError(f"{_name(explainer)}.fit: expected {words} float64 numbers, got {importance!r}")
    if not np.isfinite(importance).all():
        word = int(np.flatnonzero(~np.isfinite(importance))[0])
        raise ContractError(f"{_name(explainer)}.fit: importance of word {word} of {words} is {importance[word]}")
    if fit.spread is not None and fit.spread.shape != (words,):
        raise ContractError(f"{_name(explainer)}.fit: expected a spread of {words} numbers, got {fit.spread!r}")
    if not np.array_equal(explainer.fit(evidence).importance, importance):
        raise ContractError(f"{_name(explainer)}.fit: the same evidence gave two different answers")


def _check_repeatable(explainer: Explainer, size: int) -> None:
    """Check that what else was explained in between, and the global random numbers, make no difference."""
    words = numbered_words(size)
    first = gather(explainer, words, wavy)
    gather(explainer, numbered_words(size // 2), wavy)
    before = _global_state()
    second = gather(explainer, words, wavy)
    if not np.array_equal(first.masks, second.masks):
        raise ContractError(f"{_name(explainer)}.plan: the same text and seed gave different masks")
    if before != _global_state():
        raise ContractError(f"{_name(explainer)}.plan: draws from the global random numbers; use the generator given")


def _global_state() -> str:
    """Return the state of NumPy's global generator, which explainers leave alone."""
    with np.printoptions(threshold=sys.maxsize):
        return repr(np.random.get_state())  # noqa: NPY002 - looked at, not used


def _check_masker(explainer: Explainer) -> None:
    masker = explainer.masker if isinstance(explainer, HidesWords) else None
    if masker is None:
        return
    words = white_space(" a  cat\t")
    if not isinstance(masker, Masker):
        raise ContractError(f"{_name(explainer)}.masker: expected a masker, got {masker!r}")
    probes = masker.render([(words, np.ones((1, 2), dtype=np.bool_))])
    if len(probes) != 1 or not len(probes[0].texts):
        raise ContractError(f"{_name(explainer)}.masker: expected one answer per text, got {probes!r}")


TEXTS = (
    "Ada Lovelace wrote 3 programs, not 12, in London.",
    "",
    "she can't see him: \u201cnever\u201d!",
    "  \u092f\u0939 \u090f\u0915 \u092c\u093f\u0932\u094d\u0932\u0940 \u0939\u0948  ",
    "\u6211\u6709\u4e00\u53ea\u732b\u3002",
    "Ada Lovelace wrote 3 programs, not 12, in London.",
)
"""Texts of several scripts, an empty one and a repetition."""


def check_tagger(tagger: Tagger, texts: Sequence[str] = TEXTS) -> None:
    """Raise a ContractError if a tagger breaks its protocol; say nothing if it does not."""
    name = type(tagger).__name__
    if not isinstance(tagger, Tagger):
        raise ContractError(f"{name} is no tagger: it needs signature() and tag(texts)")
    if not isinstance(tagger.signature(), Signature) or str(tagger.signature()) != str(tagger.signature()):
        raise ContractError(f"{name}.signature() must be the same Signature each time, got {tagger.signature()!r}")
    answers = tagger.tag(list(texts))
    if len(answers) != len(texts) or len(tagger.tag([])):
        raise ContractError(f"{name}.tag must give one answer per text, got {len(answers)} for {len(texts)}")
    labels = set(tagger.labels()) if isinstance(tagger, SupportsLabels) else None
    for text, tags in zip(texts, answers, strict=True):
        if tuple(tagger.tag([text])[0]) != tuple(tags):
            raise ContractError(f"{name}.tag gives other tags for {text!r} alone than among others")
        for start, end, features in tags:
            if not 0 <= start < end <= len(text) or not features:
                raise ContractError(
                    f"{name}.tag gives ({start}, {end}, {features!r}) for {text!r}, outside of it or empty"
                )
            if labels is not None and not labels >= set(features):
                raise ContractError(f"{name}.labels() does not name {sorted(set(features) - labels)}")
