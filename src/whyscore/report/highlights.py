"""Highlights against people: do the words that cost points lie where professionals marked errors?

Every explained text with error spans is a sentence of the word-level task: a word is marked if a span touches it, and
its error score is minus its importance. AUC is the chance that a marked word ranks above an unmarked one.
"""

import numpy as np

from whyscore.report.model import Agreement
from whyscore.runs.reading import Run, Told
from whyscore.stats.resampling import bootstrap_mean
from whyscore.stats.words import Ragged, agree, chance
from whyscore.types import ErrorSpan, Estimate, FloatVector, Place, Side


def agreement(run: Run) -> tuple[Agreement, ...]:
    """Return one row per metric and side; sides without a text that has both kinds of words are left out."""
    found = []
    for metric in run.metrics:
        for side in (Side.HYPOTHESIS, Side.SOURCE):
            told = [one for one in run.explanations if one.metric == metric.name and one.place.side is side]
            row = _agreement(run, told, metric.name, metric.explainer or "", side)
            if row is not None:
                found.append(row)
    return tuple(found)


def _agreement(run: Run, told: list[Told], metric: str, explainer: str, side: Side) -> Agreement | None:
    rated = [one for one in told if run.dataset.entries[one.entry].spans is not None and len(one.importance)]
    # A word without a number cannot be ranked; its whole text is left out.
    rated = [one for one in rated if np.isfinite(one.importance).all()]
    if not rated:
        return None
    gold = Ragged.of([_marked(one, run.dataset.entries[one.entry].spans or ()) for one in rated])
    judged = agree(gold, Ragged.of([-one.importance for one in rated]))
    count = int(judged.evaluated.sum())
    if count == 0:
        return None
    luck = float(chance(gold).of("ap").mean())
    return Agreement(metric, explainer, str(side), _mean(judged.of("auc")), _mean(judged.of("ap")), luck, count)


def _mean(values: FloatVector) -> Estimate:
    return bootstrap_mean(values)


def _marked(told: Told, spans: tuple[ErrorSpan, ...]) -> FloatVector:
    """Return 1 for every word that a span touches."""
    found = np.zeros(len(told.spans))
    for span in spans:
        if Place(span.side, span.reference) == told.place:
            found[(told.spans[:, 0] < span.end) & (told.spans[:, 1] > span.start)] = 1.0
    return found
