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
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import ContractError, SpecError, UserError
from whyscore.metrics.needs import probe
from whyscore.protocols import (
    CorpusMetric,
    MatrixMetric,
    Metric,
    RowMetric,
    SupportsDecomposition,
    SupportsMasking,
    SupportsNeeds,
    SupportsScale,
    TokenMetric,
    WordScorer,
)
from whyscore.registry import build
from whyscore.text.splitters import white_space
from whyscore.types import FloatVector, Inputs, Segment, Side, Signature

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
    asked = list(SEGMENTS if segments is None else segments)
    name = type(metric).__name__
    _check_members(metric, name)
    scores = _scored(metric, asked, name)
    _scored(metric, [], name)
    _check_independence(metric, asked, scores, tolerance, name)
    _check_inputs(metric, asked, scores, tolerance, name)
    _check_signature(metric, asked, scores, tolerance, name, rebuild=rebuild)
    if isinstance(metric, RowMetric):
        _check_rows(metric, asked, scores, tolerance, name)
    if isinstance(metric, CorpusMetric):
        _check_corpus(metric, asked, name)
    if isinstance(metric, WordScorer):
        _check_words(metric, asked, metric.inputs, name)
    _check_declared(metric, name)
    if isinstance(metric, TokenMetric):
        _check_tokens(metric, asked, name)
    if isinstance(metric, MatrixMetric):
        _check_matrices(metric, asked, tolerance, name)


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
        missing = [one for one in ("inputs", "higher_is_better", "signature", "score") if not hasattr(metric, one)]
        raise ContractError(f"{name} is no metric: it has no {', '.join(missing)}")
    if not isinstance(metric.inputs, Inputs) or not metric.inputs:
        raise ContractError(
            f"{name}.inputs is {metric.inputs!r}, expected some of Inputs.HYPOTHESIS, SOURCE, REFERENCES"
        )
    if not isinstance(metric.higher_is_better, bool):
        raise ContractError(f"{name}.higher_is_better is {metric.higher_is_better!r}, expected True or False")


def _scored(metric: Metric, segments: Sequence[Segment], name: str) -> FloatVector:
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


def _check_independence(
    metric: Metric, segments: Sequence[Segment], scores: FloatVector, tolerance: float, name: str
) -> None:
    _check_same(_scored(metric, segments, name), scores, segments, tolerance, f"{name} asked twice")
    turned = _scored(metric, segments[::-1], name)[::-1]
    _check_same(turned, scores, segments, tolerance, f"{name} asked in another order")
    single = np.array([_scored(metric, [segment], name)[0] for segment in segments], dtype=np.float64)
    _check_same(single, scores, segments, tolerance, f"{name} asked one by one")
    first = {segment: k for k, segment in reversed(list(enumerate(segments)))}
    equal = scores[[first[segment] for segment in segments]]
    _check_same(equal, scores, segments, tolerance, f"{name} on equal segments")


def _check_same(
    values: FloatVector, scores: FloatVector, segments: Sequence[Segment], tolerance: float, what: str
) -> None:
    different = np.flatnonzero(~np.isclose(values, scores, rtol=tolerance, atol=tolerance))
    if different.size:
        k = int(different[0])
        raise ContractError(f"{what} gives {values[k]!r} instead of {scores[k]!r} for {segments[k]!r}")


def _check_inputs(
    metric: Metric, segments: Sequence[Segment], scores: FloatVector, tolerance: float, name: str
) -> None:
    needed = [segment.only(metric.inputs) for segment in segments]
    _check_same(
        _scored(metric, needed, name), scores, segments, tolerance, f"{name} without the texts it does not read"
    )
    for text, other in ((Inputs.SOURCE, {"source": _OTHER}), (Inputs.REFERENCES, {"references": (_OTHER,)})):
        if text not in metric.inputs:
            changed = [replace(segment, **other) for segment in segments]
            what = f"{name}, whose inputs do not name {str(text.name).lower()}, with another one"
            _check_same(_scored(metric, changed, name), scores, segments, tolerance, what)


def _check_signature(
    metric: Metric, segments: Sequence[Segment], scores: FloatVector, tolerance: float, name: str, *, rebuild: bool
) -> None:
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
    _check_same(_scored(again, segments, name), scores, segments, tolerance, f"{name} built from its spec")


def _check_rows(
    metric: RowMetric, segments: Sequence[Segment], scores: FloatVector, tolerance: float, name: str
) -> None:
    width = len(metric.columns)
    for asked in (segments, []):
        rows = metric.statistics(asked)
        _check_array(rows, (len(asked), width), f"{name}.statistics of {len(asked)} segments in {width} columns")
        before = rows.copy()
        followed = metric.scores(rows)
        _check_array(followed, (len(asked),), f"{name}.scores of {len(asked)} rows")
        _check_kept(rows, before, f"{name}.scores")
        _check_same(followed, scores[: len(asked)], asked, tolerance, f"{name}.scores of its rows")


def _check_corpus(metric: CorpusMetric, segments: Sequence[Segment], name: str) -> None:
    rows = metric.statistics(segments)
    for row in (*rows, rows.sum(axis=0), np.zeros(len(metric.columns))):
        before = row.copy()
        total = metric.total(row)
        if not isinstance(total, float) or not np.isfinite(total):
            raise ContractError(f"{name}.total must be a finite float, got {total!r} for the row {before.tolist()}")
        _check_kept(row, before, f"{name}.total")
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
