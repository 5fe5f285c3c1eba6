"""Experiments about matching: what unrelated texts score, and which layer of a model agrees with people.

Baseline (rescaling of BERTScore, Zhang et al. 2020):

1. Take the distinct lines of a text in one language, blank ones left out.
2. Score random pairs of them; b is the mean of precision, recall and F.

Layers (as in Leiter 2021):

1. Every text goes through the network once, and the vectors of all its layers are kept for as long as they are needed
   (`models.every_layer`). Encoders that give one layer at a time are asked once per layer, and that is told.
2. Every layer is matched and scored; scores are correlated with those of people, over all segments.
3. Where words are marked as errors, the error score of a word is minus its similarity: AUC per sentence, then the mean.

Units are pieces in every layer unless phrases are asked for, so that layers differ in nothing else.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np

from whyscore.analysis.common import MetricLike, as_metric, requested_name, with_languages
from whyscore.analysis.metaeval.gold import SPLITTER, gold_of
from whyscore.data.formats.eval4nlp import Gold, Judged
from whyscore.errors import DataError, SpecError
from whyscore.experiments.matching.layers import Answers, answers_of
from whyscore.metrics.matching.baseline import Baseline, estimate_baseline
from whyscore.metrics.matching.bertscore import BertScore
from whyscore.registry import spec_of
from whyscore.stats.coefficients import Coefficient, kernel
from whyscore.stats.words import Ragged, agree
from whyscore.types import Dataset, FloatVector, Inputs, Signature, Words

PAIRS = 20_000
COEFFICIENTS: dict[str, Coefficient] = {"pearson": "pearson", "spearman": "spearman", "kendall": "kendall_b"}
_MARKS = ("tags", "tgt_tags", "src_tags", "annotations")


class Estimated(NamedTuple):
    """A baseline, the layer it is for, and what it was made from."""

    baseline: Baseline
    layer: int
    texts: int
    pairs: int
    signature: Signature


def baseline(texts: Sequence[str], metric: MetricLike = "bertscore", *, pairs: int = PAIRS, seed: int = 0) -> Estimated:
    """Return what random pairs of texts score, for `bertscore(baseline=FILE)`.

    Args:
        texts: in one language; equal ones count once, blank ones not at all.
        metric: bertscore or xbertscore with its model and layer.
        pairs: how many are drawn.
        seed: fixes which.
    """
    if pairs < 1:
        raise SpecError(f"pairs is {pairs}, expected 1 or more")
    asked = replace(_matching(metric), baseline=None)
    distinct = list(dict.fromkeys(text for text in texts if text.strip()))
    found = estimate_baseline(distinct, asked, pairs=pairs, seed=seed)
    signature = asked.signature()
    layer = int(dict(signature.facts).get("layer", "0").partition("/")[0].partition("-")[0])
    return Estimated(found, layer, len(distinct), pairs, signature.with_facts(pairs=pairs, seed=seed))


@dataclass(frozen=True, slots=True)
class LayerRow:
    """What one layer agrees with; NaN where a number is not defined, None where it was not asked for."""

    layer: int
    pearson: float | None
    spearman: float | None
    kendall: float | None
    n: int
    """Segments with a human score."""
    auc: float | None
    source_auc: float | None
    sentences: int
    """Sentences with an AUC of the hypothesis."""

    def record(self) -> dict[str, object]:
        """Return the numbers that were asked for."""
        parts: dict[str, object] = {"layer": self.layer}
        if self.pearson is not None:
            parts |= {name: getattr(self, name) for name in COEFFICIENTS} | {"n": self.n}
        if self.auc is not None:
            parts |= {"auc": self.auc, "sentences": self.sentences}
        return parts if self.source_auc is None else parts | {"source_auc": self.source_auc}


class LayerSweep(NamedTuple):
    """All layers of a model against people."""

    rows: tuple[LayerRow, ...]
    signature: Signature
    notes: tuple[str, ...]


def layers(
    dataset: Dataset, metric: MetricLike = "xbertscore", *, human: str | None = None, gold: Gold | None = None
) -> LayerSweep:
    """Return how well each layer of a model agrees with people.

    Args:
        dataset: texts, with human scores, error spans or tags.
        metric: bertscore or xbertscore with its model; its layer is not looked at.
        human: the name of the human score; None for the gold's sentence scores, if any.
        gold: word tags of the same segments in the same order; None for those of the data set, if any.
    """
    asked = _prepared(metric, dataset)
    marked = _marks(dataset, gold)
    people = dataset.human(human) if human is not None else None if marked is None else marked.sentence
    if people is None and marked is None:
        raise DataError(f"{dataset.name} says nothing to compare layers with: name a human score, or give word tags")
    sides = {} if marked is None else _sides(marked, dataset, asked)
    found = answers_of(asked, dataset.segments, {side: one.words for side, one in sides.items()})
    rows = tuple(_row(layer, own, people, sides) for layer, own in enumerate(found.layers))
    signature = asked.signature().with_facts(layer=f"0-{len(rows) - 1}")
    notes = (*found.notes, *_left_out(found.layers, sides))
    return LayerSweep(rows, replace(signature, spec=spec_of(replace(asked, layer=None))), notes)


class _Side(NamedTuple):
    tags: Ragged
    words: tuple[Words, ...]
    fits: tuple[bool, ...]


def _matching(metric: MetricLike) -> BertScore:
    found = as_metric(metric)
    if not isinstance(found, BertScore):
        raise SpecError(f"{requested_name(metric)} matches no vectors of one layer: name bertscore or xbertscore")
    return found


def _prepared(metric: MetricLike, dataset: Dataset) -> BertScore:
    """Return the metric as it is asked in every layer: by pieces, words that were not read without a number."""
    given = _matching(metric)
    fill = "null" if given.fill == "error" else given.fill
    own = replace(given, layer=0, phrases=given.phrases or 0, fill=fill)
    return cast("BertScore", with_languages(own, dataset.languages))


def _marks(dataset: Dataset, gold: Gold | None) -> Gold | None:
    """Return the word tags: those that were given, or those of the data set."""
    if gold is not None:
        if len(gold) != len(dataset):
            raise DataError(f"{gold.name} has {len(gold)} segments, {dataset.name} has {len(dataset)}: one for each")
        return gold
    named = any(name.lower() in _MARKS for entry in dataset.entries for name in entry.extra)
    return gold_of(dataset) if named or any(entry.spans is not None for entry in dataset.entries) else None


def _sides(gold: Gold, dataset: Dataset, metric: BertScore) -> dict[Judged, _Side]:
    """Return the marked sides that the metric reads, with the words that tags are given for."""
    found: dict[Judged, _Side] = {}
    sides: tuple[Judged, ...] = ("target", "source") if Inputs.SOURCE in metric.inputs else ("target",)
    for side in sides:
        own = gold.side(side)
        if own is None:
            continue
        texts = [one.hypothesis if side == "target" else one.source or "" for one in dataset.segments]
        words = tuple(map(SPLITTER.split, texts))
        fits = tuple(len(one) == count for one, count in zip(words, own.tags.lengths.tolist(), strict=True))
        found[side] = _Side(own.tags, words, fits)
    return found


def _row(layer: int, own: Answers, people: FloatVector | None, sides: dict[Judged, _Side]) -> LayerRow:
    numbers = {} if people is None else _correlations(own.scores, people)
    aucs = {side: _auc(own, side, one) for side, one in sides.items()}
    auc = aucs.get("target")
    return LayerRow(
        layer=layer,
        pearson=numbers.get("pearson"),
        spearman=numbers.get("spearman"),
        kendall=numbers.get("kendall"),
        n=0 if people is None else int((~np.isnan(people)).sum()),
        auc=None if auc is None else _mean(auc),
        source_auc=_mean(aucs["source"]) if "source" in aucs else None,
        sentences=0 if auc is None else len(auc),
    )


def _correlations(scores: FloatVector, people: FloatVector) -> dict[str, float]:
    known = ~np.isnan(people)
    return {
        name: float(kernel(coefficient)(scores[known], people[known])) for name, coefficient in COEFFICIENTS.items()
    }


def _auc(own: Answers, side: Judged, marked: _Side) -> FloatVector:
    """Return the AUC of each sentence with marked and unmarked words, where all of its words have a number."""
    kept = _usable(own, side, marked)
    rows = [row for row, good in zip(own.words[side], kept, strict=True) if good]
    tags = marked.tags.chosen(np.array(kept, dtype=np.bool_))
    return agree(tags, Ragged.of(rows).turned()).of("auc")


def _usable(own: Answers, side: Judged, marked: _Side) -> list[bool]:
    return [fit and bool(np.isfinite(row).all()) for fit, row in zip(marked.fits, own.words[side], strict=True)]


def _mean(values: FloatVector) -> float:
    return float(values.mean()) if len(values) else math.nan


def _left_out(found: Sequence[Answers], sides: dict[Judged, _Side]) -> list[str]:
    """Return how many sentences have no AUC because of their words."""
    told = []
    for side, marked in sides.items():
        unfit = marked.fits.count(False)
        unread = len(marked.fits) - unfit - sum(_usable(found[0], side, marked))
        if unfit:
            told.append(f"{unfit} sentences of the {side} have another number of words than of tags; they have no AUC")
        if unread:
            told.append(f"{unread} sentences of the {side} have words that the model did not read; they have no AUC")
    return told
