"""The segments behind a row: their numbers and spans, and the ones that moved the share most, with masked texts."""

import numpy as np

from whyscore.jobs.decompose_result import Example, SegmentRows
from whyscore.jobs.decompose_settings import Measured, Study
from whyscore.jobs.decompose_tags import MarkedEntry

_NEGATIVE_EXAMPLES = 3


def segment_rows(study: Study, one: Measured, feature: int, chosen: list[int]) -> SegmentRows:
    """Return the numbers of chosen members of a feature, with the spans that were hidden."""
    sigma, oracle, anti = one.values.of(feature, chosen)
    places = [one.values.members[feature][k] for k in chosen]
    marked = [study.marking.entries[place] for place in places]
    return SegmentRows(
        tuple(study.dataset.entries[place].id for place in places),
        sigma,
        oracle,
        anti,
        tuple(entry.hypothesis.spans[feature] for entry in marked),
        tuple(tuple(text.spans[feature] for text in entry.references) for entry in marked),
    )


def examples_of(study: Study, one: Measured, feature: int, chosen: list[int]) -> tuple[Example, ...]:
    """Return the segments with the largest gain, and those that fall most below zero."""
    sigma, oracle, anti = one.values.of(feature, chosen)
    gains = oracle - sigma
    order = np.argsort(-gains, kind="stable").tolist()
    largest = [k for k in order[: study.settings.examples] if gains[k] > 0]
    negative = [k for k in order[::-1][: min(_NEGATIVE_EXAMPLES, study.settings.examples)] if gains[k] < 0]
    return tuple(
        _example(study, one, feature, chosen[k], (sigma[k], oracle[k], anti[k])) for k in (*largest, *negative)
    )


def _example(study: Study, one: Measured, feature: int, member: int, numbers: tuple[float, float, float]) -> Example:
    place = one.values.members[feature][member]
    entry, marked = study.dataset.entries[place], study.marking.entries[place]
    hypothesis, references = _masked(one, marked, feature)
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


def _masked(one: Measured, entry: MarkedEntry, feature: int) -> tuple[str | None, tuple[str, ...]]:
    if one.grain is None:
        return None, ()
    hypothesis = one.grain.variant(entry.hypothesis, feature, hypothesis=True).anti
    return hypothesis, tuple(one.grain.variant(text, feature, hypothesis=False).anti for text in entry.references)
