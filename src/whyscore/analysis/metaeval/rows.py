"""Results of `metaeval words` as plain objects for JSON: one per system, one per sentence, one per ranking.

Numbers are whole; undefined ones are null, and `reason` says why.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from whyscore.analysis.metaeval.annotators import AnnotationResult, ContinuousResult
from whyscore.analysis.metaeval.faithfulness import FaithfulnessResult
from whyscore.analysis.metaeval.stability import StabilityResult
from whyscore.analysis.metaeval.words import Decision, SideRanking, SideResult, SystemResult, WordsResult
from whyscore.data.formats.eval4nlp import Judged
from whyscore.stats.words import MEASURES, Measure
from whyscore.text.strict import finite, number
from whyscore.types import Estimate

Row = dict[str, object]


def system_row(result: WordsResult, one: SystemResult, *, tie_interval: bool = False) -> Row:
    """Return one system, with the keys of the published result."""
    missing = {side: "not submitted" for side, own in one.sides.items() if own is None}
    row: Row = {
        "schema_version": 1,
        "kind": "words",
        "signature": str(result.signature),
        "gold": result.gold.name,
        "system": one.system,
        "baseline": one.baseline,
        "sides": {side: None if own is None else _side(own, tie_interval) for side, own in one.sides.items()},
        "sentence": _sentence(one),
        "warnings": list(one.warnings),
    }
    return row | ({"reasons": missing} if missing else {})


def segment_rows(result: WordsResult) -> Iterator[Row]:
    """Yield one object per system, side and sentence."""
    names = result.gold.names()
    for one in result.systems:
        for side, own in one.sides.items():
            if own is not None:
                yield from (_segment(one.system, side, own, k, name) for k, name in enumerate(names))


def ranking_row(ranking: Mapping[Judged, SideRanking]) -> Row:
    """Return the comparison of systems, side by side."""
    return {side: _ranking(own) for side, own in ranking.items()}


def decision_row(decisions: Mapping[Judged, Decision]) -> Row:
    """Return yes-or-no decisions; an oracle threshold is marked."""
    return {side: _decision(one) for side, one in decisions.items()}


def annotation_row(found: AnnotationResult) -> Row:
    """Return the agreement of annotators."""
    pairs = {
        side: [{"annotators": list(names)} | _finite(pair._asdict()) for names, pair in own.items()]
        for side, own in found.pairs.items()
    }
    means = {
        side: {"kappa_sentence": number(found.kappa(side)), "kappa_pooled": number(found.kappa(side, "pooled"))}
        for side in found.pairs
    }
    ceiling = {one.system: _side(own, False) for one in found.ceiling if (own := one.sides.get("target"))}  # noqa: FBT003
    return {"annotators": list(found.names), "agreement": means, "pairs": pairs, "ceiling": ceiling}


def continuous_row(found: Mapping[Judged, ContinuousResult]) -> Row:
    """Return the agreement with shares of annotators."""
    return {
        side: _finite({"n": one.n, "pearson": one.pearson, "spearman": one.spearman, "weighted_auc": one.weighted_auc})
        for side, one in found.items()
    }


def faithfulness_row(one: FaithfulnessResult) -> Row:
    """Return how faithful one explainer is."""
    measures = {
        name: {
            "raw": number(own.raw),
            "normalised": number(own.normalised),
            "gain": _estimate(own.gain),
            "raw_gain": _estimate(own.raw_gain),
        }
        for name, own in one.measures.items()
    }
    row: Row = {"explainer": one.explainer, "signature": str(one.signature), "n": one.n, "flat": one.flat}
    row |= {"failed": one.failed, "measures": measures}
    return row | ({"reason": "flat"} if one.n == one.flat else {})


def stability_row(one: StabilityResult, spread: Mapping[Measure, float] | None = None) -> Row:
    """Return how well one explainer repeats itself; `spread` is how far its measures differ between seeds."""
    row: Row = {"explainer": one.explainer, "seeds": one.seeds, "n": one.n, "constant": one.constant}
    row |= _finite({"spearman": one.spearman, "top_word": one.top_word, "jaccard": one.jaccard})
    row |= {} if spread is None else {"sd": _finite({str(name): value for name, value in spread.items()})}
    return row | ({"reason": "constant"} if np.isnan(one.spearman) else {})


def _side(own: SideResult, tie_interval: bool) -> Row:  # noqa: FBT001 - for this module alone
    row: Row = {"n": own.n, "n_eval": own.n_eval, "dropped": own.dropped, "ties": own.ties}
    if own.cut and own.mismatch:
        row["truncated"] = own.mismatch
    row |= {measure: number(own.mean(measure)) for measure in MEASURES}
    row["recall_at_k_legacy"] = number(own.mean("recall_at_k_legacy"))
    if tie_interval:
        row["tie_interval"] = [number(own.mean("recall_at_k_low")), number(own.mean("recall_at_k_high"))]
    known = {measure: one for measure, one in own.estimates.items() if one.low is not None}
    row["interval"] = {measure: [one.low, one.high] for measure, one in known.items()}
    return row if own.n_eval else row | {"reason": _why(own)}


def _why(own: SideResult) -> str:
    return "no_error" if own.dropped["no_error"] else "all_error" if own.dropped["all_error"] else "empty"


def _sentence(one: SystemResult) -> Row | None:
    own = one.sentence
    if own is None:
        return None
    row = {"n": own.n} | _finite({"pearson": own.pearson, "spearman": own.spearman})
    return row | ({"reason": "constant"} if np.isnan(own.pearson) else {})


def _segment(system: str, side: Judged, own: SideResult, k: int, name: str) -> Row:
    words, marked = int(own.values.words[k]), int(own.values.marked[k])
    row: Row = {"id": name, "system": system, "side": side, "n_tokens": words, "n_errors": marked}
    row |= {measure: number(float(getattr(own.values, measure)[k])) for measure in MEASURES}
    if np.isnan(own.values.auc[k]):
        row["reason"] = "empty" if not words else "no_error" if not marked else "all_error"
    return row


def _ranking(own: SideRanking) -> Row:
    row: Row = {
        "n": own.n,
        "mean_rank": dict(own.mean_rank),
        "ranks": {name: dict(ranks) for name, ranks in own.ranks.items()},
        "best": {measure: list(names) for measure, names in own.best.items()},
        "tests": [
            {"systems": list(pair), "measure": measure}
            | _finite({"difference": test.difference, "t": test.statistic, "p": test.p})
            | _finite({"p_adjusted": own.adjusted[pair][measure]})
            | {"interval": _bounds(own.differences[pair][measure])}
            for pair, tests in own.tests.items()
            for measure, test in tests.items()
        ],
    }
    if own.strengths:
        row["bradley_terry"] = {
            measure: {name: _estimate(one) for name, one in found.items()} for measure, found in own.strengths.items()
        }
    return row | {"warnings": list(own.warnings)}


def _decision(one: Decision) -> Row:
    counts = one.counts
    row: Row = {"threshold": one.threshold, "oracle": one.oracle}
    row |= counts._asdict()
    names = ("precision", "recall", "f1_bad", "f1_ok", "f1_product", "mcc")
    return row | {name: number(getattr(counts, name)) for name in names}


def _bounds(one: Estimate) -> list[float] | None:
    return None if one.low is None or one.high is None else [one.low, one.high]


def _estimate(one: Estimate) -> Row:
    row: Row = {"value": number(one.value), "low": number(one.low), "high": number(one.high), "n": one.n}
    return row


def _finite(row: Mapping[str, object]) -> Row:
    return {key: finite(value) for key, value in row.items()}
