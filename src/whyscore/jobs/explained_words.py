"""Explanations as a submission of error scores: importance turned round, sentence scores with larger meaning better.

1. Words stand between blanks (U+0020): the shared tasks' texts are cut already, and their tags count these words.
2. The hypothesis gives `target`, the source gives `source` where the metric reads it and the explainer can say
   something of it.
3. Stored explanations are matched with the gold by id; an id that one side lacks is an error.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from whyscore.data.explanations import StoredExplanations
from whyscore.data.formats.eval4nlp import Gold, GoldSide, Judged, Scored, Submission
from whyscore.data.naming import few
from whyscore.errors import DataError, MissingInput
from whyscore.jobs.common import LOCAL, MetricLike, Resources, as_metric, asked_name
from whyscore.jobs.explain import explain
from whyscore.jobs.judging import Judging, judge_side
from whyscore.jobs.words_gold import SPLITTER
from whyscore.protocols import Explainer
from whyscore.stats.words import MEASURES, Measure, Ragged
from whyscore.types import FloatMatrix, Inputs, Segment, Side

_SIDES: dict[Side, Judged] = {Side.HYPOTHESIS: "target", Side.SOURCE: "source"}


def explained_submission(
    segments: Sequence[Segment],
    metric: MetricLike,
    explainer: str | Explainer,
    *,
    masker: str | None = None,
    seed: int = 0,
    resources: Resources = LOCAL,
) -> Submission:
    """Return an explainer's error scores for both sides, and the metric's scores of the sentences."""
    asked = as_metric(metric)
    sides = ["hypothesis", "source"] if Inputs.SOURCE in asked.inputs else ["hypothesis"]
    found = explain(
        segments, asked, explainer, sides=sides, unit=SPLITTER, masker=masker, seed=seed, resources=resources
    )
    name = f"{asked_name(metric)} {asked_name(explainer)}"
    rows = {_SIDES[side]: [one for one in found if one.place.side is side] for side in _SIDES}
    scored = {
        side: Scored(Ragged.of([one.error_scores for one in own]), name)
        for side, own in rows.items()
        if len(own) == len(segments)
    }
    sign = 1.0 if asked.higher_is_better else -1.0
    return Submission(name, scored, sign * np.array([one.score for one in rows["target"]]), name)


def segments_of(gold: Gold) -> list[Segment]:
    """Return the texts of the gold as segments, for metrics that need no reference."""
    if gold.target.words is None:
        raise DataError(f"{gold.name} comes without its texts: metrics and explainers need them")
    if gold.sources is None:
        return [Segment(own.text) for own in gold.target.words]
    pairs = zip(gold.target.words, gold.sources, strict=True)
    return [Segment(own.text, other.text) for own, other in pairs]


def spread_of(repeats: Sequence[FloatMatrix], gold: GoldSide, how: Judging) -> dict[Measure, float]:
    """Return the standard deviation of the measures between seeds; `repeats` holds seeds x words for each text."""
    seeds = len(repeats[0]) if repeats else 0
    plain = replace(how, draws=0)
    judged = [
        judge_side(gold, Scored(Ragged.of([-own[seed] for own in repeats]), f"seed {seed}"), plain)
        for seed in range(seeds)
    ]
    return {measure: float(np.std([side.mean(measure) for side in judged])) for measure in MEASURES}


def stored_submissions(stored: StoredExplanations, ids: Sequence[str]) -> list[Submission]:
    """Return the stored explanations as submissions, one per system, metric and explainer, in the order of the ids."""
    submissions = []
    for name, sides in stored.groups.items():
        scored: dict[Judged, Scored] = {}
        for side, rows in sides.items():
            _check_ids(stored.file, name, list(rows), ids)
            scored[side] = Scored(Ragged.of([-rows[one].importance for one in ids]), stored.file)
        target = next(iter(sides.values()))
        sentence = np.array([target[one].score for one in ids])
        submissions.append(Submission(name, scored, None if np.isnan(sentence).any() else sentence, stored.file))
    if not submissions:
        raise MissingInput(f"{stored.file} holds no explanations of hypotheses or sources")
    return submissions


def _check_ids(file: str, name: str, given: Sequence[str], ids: Sequence[str]) -> None:
    strange = sorted(set(given) - set(ids))
    missing = sorted(set(ids) - set(given))
    if strange or missing:
        told = [f"not in the gold: {few(strange)}"] if strange else []
        told += [f"without an explanation: {few(missing)}"] if missing else []
        raise DataError(f"the ids of {name} and of the gold do not match; {'; '.join(told)}", file=file)
