"""Judge the estimator on the development sets: `python training/evaluate.py [SPEC ...] -o results.json`.

For each set and each spec: AUC, AP and recall at K of the words of both sides, mean over the sentences with right and
wrong words; Pearson's and Spearman's correlation of the sentence scores with human raters; 95 % intervals by the
bootstrap over sentences (1,000 samples, percentiles). `length` and `surprisal` are controls: longer or rarer words are
called wrong, and sentences with more of them. `learned` is `qe` without the names of the languages, so that it has no
part of `evidence`. With `--against SPEC`, the differences of AUC from that spec on the same sentences, too.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from data import Row, development, unseen
from whyscore.models.surprisal import piece_surprisal
from whyscore.registry import build
from whyscore.stats.words import Ragged, agree
from whyscore.text.splitters import white_space
from whyscore.types import HYPOTHESIS, SOURCE, Place, Segment, Words

Vector = NDArray[np.float64]

_SAMPLES = 1000


def _lengths(words: Sequence[Words]) -> list[Vector]:
    return [np.array([len(word) for word in own], dtype=np.float64) for own in words]


def _surprisals(words: Sequence[Words]) -> list[Vector]:
    return [piece_surprisal(own) for own in words]


CONTROLS: dict[str, Callable[[Sequence[Words]], list[Vector]]] = {"length": _lengths, "surprisal": _surprisals}


def scorer_of(spec: str, pair: str) -> Any:  # noqa: ANN401 - a metric or an explainer
    """Return what a spec names, told the languages where it asks for them."""
    if spec == "learned":
        return build("qe")
    scorer: Any = build(spec, "explainer" if spec.startswith("evidence") else "metric")
    return replace(scorer, languages=pair) if "languages" in getattr(scorer, "__dataclass_fields__", {}) else scorer


def word_errors(spec: str, segments: Sequence[Segment], place: Place, pair: str) -> list[Vector]:
    """Return how wrong each word is by a control, a metric's own word scores, or an explainer."""
    words = [white_space(segment.text(place)) for segment in segments]
    if spec in CONTROLS:
        return CONTROLS[spec](words)
    return [-own.importance for own in scorer_of(spec, pair).word_scores(segments, place, words)]


def sentence_scores(spec: str, segments: Sequence[Segment], errors: Sequence[Vector], pair: str) -> Vector:
    """Return the score of each sentence; controls and explainers have minus the mean of their words."""
    if spec in CONTROLS or spec.startswith("evidence"):
        return np.array([-own.mean() if len(own) else 0.0 for own in errors])
    return np.asarray(scorer_of(spec, pair).score(segments))


def interval(values: Vector) -> tuple[float, float, float]:
    """Return the mean and its 95 % interval."""
    values = values[~np.isnan(values)]
    draws = np.random.default_rng(0).integers(0, len(values), (_SAMPLES, len(values)))
    low, high = np.percentile(values[draws].mean(axis=1), [2.5, 97.5])
    return float(values.mean()), float(low), float(high)


def correlation(left: Vector, right: Vector) -> tuple[float, float, float]:
    """Return Pearson's r and its 95 % interval."""
    draws = np.random.default_rng(0).integers(0, len(left), (_SAMPLES, len(left)))
    found = [np.corrcoef(left[own], right[own])[0, 1] for own in draws]
    low, high = np.nanpercentile(found, [2.5, 97.5])
    return float(np.corrcoef(left, right)[0, 1]), float(low), float(high)


def agreements(errors: Mapping[str, Sequence[Vector]], rows: Sequence[Row]) -> dict[str, Vector]:
    """Return the measures of words, side by side and sentence by sentence."""
    tags = {"target": [row.hypothesis_tags for row in rows], "source": [row.source_tags for row in rows]}
    measures = {}
    for side, words in errors.items():
        agreement = agree(Ragged.of([np.array(own, dtype=np.float64) for own in tags[side]]), Ragged.of(words))
        measures |= {f"{side} {name}": np.asarray(getattr(agreement, name)) for name in ("auc", "ap", "recall_at_k")}
    return measures


def judge(spec: str, rows: Sequence[Row], against: str | None = None) -> dict[str, tuple[float, float, float]]:
    """Return all measures of one spec on one set, and the differences from another spec."""
    segments, pair = [Segment(row.hypothesis, row.source) for row in rows], rows[0].pair
    places = {"target": HYPOTHESIS} | ({} if rows[0].source_tags is None else {"source": SOURCE})

    def find_errors(spec: str) -> dict[str, list[Vector]]:
        return {side: word_errors(spec, segments, place, pair) for side, place in places.items()}

    errors = find_errors(spec)
    measures = agreements(errors, rows)
    result = {name: interval(values) for name, values in measures.items()}
    human, scores = np.array([row.score for row in rows]), sentence_scores(spec, segments, errors["target"], pair)
    result["pearson"] = correlation(human, scores)
    result["spearman"] = correlation(rankdata(human), rankdata(scores))
    if against is not None and against != spec:
        other = agreements(find_errors(against), rows)
        for side in places:
            result[f"{side} auc - {against}"] = interval(measures[f"{side} auc"] - other[f"{side} auc"])
    return result


def main() -> None:
    """Judge, print and write."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "specs", nargs="*", default=["length", "surprisal", "xbertscore(fill='median')", "evidence", "qe"]
    )
    parser.add_argument("--unseen", action="store_true", help="judge sets of language pairs that are not trained on")
    parser.add_argument("--against", metavar="SPEC", help="show the differences of AUC from this spec, too")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sets: dict[tuple[str, str], list[Row]] = {}
    for row in unseen() if options.unseen else development():
        sets.setdefault((row.pair, row.name), []).append(row)
    results = []
    for (pair, name), rows in sets.items():
        for spec in options.specs:
            measures = judge(spec, rows, options.against)
            results.append({"pair": pair, "set": name, "spec": spec, "n": len(rows), "measures": measures})
            shown = ", ".join(
                f"{key} {value:.3f} [{low:.3f}, {high:.3f}]" for key, (value, low, high) in measures.items()
            )
            print(f"{pair} {name} {spec}: {shown}", flush=True)
    if options.output:
        options.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
