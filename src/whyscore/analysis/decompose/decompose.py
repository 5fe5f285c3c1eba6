"""How much of what a system loses under a metric is lost on nouns, names, numbers ...

After Karidi, Choshen, Patel and Abend, "MuLER: Detailed and Scalable Reference-based Evaluation".

1. Tag every distinct text once (`tagging`).
2. For each feature: I, the segments that have it in hypothesis and reference; discrepancy and frequency.
3. Mask the feature in the texts of I, so that it agrees everywhere (oracle) and nowhere (anti) (`masking`).
4. One deduplicated score call for the originals and all variants of all features and systems (`scoring`).
5. Fit: share = (oracle - sigma) / (oracle - anti) over I, its interval, tests between systems (`shares`).

Nothing after step 4 asks the metric again.
"""

import dataclasses
from collections.abc import Sequence

from whyscore.analysis.common import MetricLike, Segments, as_dataset, as_metric, requested_name
from whyscore.analysis.decompose.masking import masking_for
from whyscore.analysis.decompose.result import Cost, Decompositions
from whyscore.analysis.decompose.scoring import Study, decomposed_metric, measure, questions
from whyscore.analysis.decompose.sentences import as_scorer, score_sentences
from whyscore.analysis.decompose.settings import DecomposeSettings, FeatureSettings, Level, Need
from whyscore.analysis.decompose.shares import fit_rows
from whyscore.analysis.decompose.tagging import mark, members_of
from whyscore.errors import SpecError
from whyscore.garbage import collect_rarely
from whyscore.metrics.needs import traits_of
from whyscore.protocols import CorpusMetric, MatrixMetric, Metric
from whyscore.scoring.stack import LOCAL, Resources, require
from whyscore.scoring.stack import cost as score_cost
from whyscore.settings import takes
from whyscore.types import Dataset, Inputs, Segment


@collect_rarely()
@takes(DecomposeSettings)
def decompose(
    data: Segments,
    metric: MetricLike | Sequence[MetricLike],
    *,
    references: Need | None = None,
    settings: DecomposeSettings,
    resources: Resources = LOCAL,
) -> Decompositions:
    """Return one row per system, metric and feature, with tests between systems beside them.

    Of some metrics another variant is scored unless its options were chosen (`SupportsDecomposition`): of `bleu`, the
    mean of unsmoothed sentence BLEU, from 0 to 1. Signatures and notes of the result say which.

    Args:
        data: Segments with references, or a data set.
        metric: One or more metrics: specs, objects or functions.
        references: Another name of `need`.
        settings: How it is done; its fields are keyword arguments too. `features` are expressions of
            `whyscore.taggers.features`; None takes all that the tagger gives.
        resources: Store, executor and progress.
    """
    settings = settings if references is None else dataclasses.replace(settings, need=references)
    dataset = as_dataset(data)
    metrics = [metric] if isinstance(metric, str) or not isinstance(metric, Sequence) else list(metric)
    names, requested = [requested_name(metric) for metric in metrics], [as_metric(metric) for metric in metrics]
    scored = [decomposed_metric(metric, settings.mode) for metric in requested]
    for variant in scored:
        check_metric(variant, dataset, settings.level)
    scorers = [as_scorer(scorer) for scorer in settings.scorers]
    study = Study(dataset, mark(dataset, settings, resources), settings, resources)
    measured = [measure(study, *pair, settings.level) for pair in zip(names, scored, strict=True)]
    differences = [row for scorer in settings.scorers for row in score_sentences(dataset, scorer, settings=settings)]
    signatures = {result.name: result.signature for result in measured} | {"tagger": study.marking.signature}
    signatures |= {scorer.signature().spec: scorer.signature() for scorer in scorers}
    named = zip(names, requested, scored, strict=True)
    variants = [f"{name}: scored as {variant.signature().spec}" for name, plain, variant in named if plain != variant]
    return fit_rows(study, measured, differences, signatures, variants)


@takes(DecomposeSettings)
def plan(data: Segments, metric: MetricLike, *, settings: DecomposeSettings, resources: Resources = LOCAL) -> Cost:
    """Return what a decomposition would take; texts are tagged for it, but none is scored."""
    dataset = as_dataset(data)
    base = decomposed_metric(metric, settings.mode)
    check_metric(base, dataset, settings.level)
    marking = mark(dataset, settings, resources)
    segments: Sequence[Segment] = dataset.segments
    if not isinstance(base, MatrixMetric):
        texts = masking_for(base, marking, settings, traits_of(base).masking)
        groups = questions(dataset.segments, marking, texts, members_of(marking, settings.need))
        segments, base = [segment for group in groups for segment in group], texts.metric
    tagging = marking.asked, marking.distinct, marking.tagged
    return Cost(*tagging, *score_cost(base, segments, resources.store))


def prepare_study(
    data: Segments, metric: MetricLike, settings: FeatureSettings, resources: Resources, *, compat: bool = False
) -> tuple[Study[FeatureSettings], Metric, str]:
    """Return what a study of features works on: the data with its features marked, the metric and its name.

    Studies that make texts of their own mask tokens, which mode="compat" does not: `compat` says which can do it.
    """
    if settings.mode == "compat" and not compat:
        raise SpecError("mode='compat' is for decompose and frequency: this experiment masks tokens, use mode='paper'")
    dataset, base = as_dataset(data), decomposed_metric(metric, settings.mode)
    check_metric(base, dataset)
    return Study(dataset, mark(dataset, settings, resources), settings, resources), base, requested_name(metric)


def check_metric(metric: Metric, dataset: Dataset, level: Level = "segment") -> None:
    """Refuse metrics and segments that cannot be decomposed, before anything is tagged."""
    fault = None
    if Inputs.REFERENCES not in metric.inputs:
        fault = "reads no reference: a decomposition masks features in hypothesis and reference"
    elif level == "corpus" and (not isinstance(metric, CorpusMetric) or isinstance(metric, MatrixMetric)):
        fault = "has no corpus score of its own: use level='segment'"
    if fault:
        raise SpecError(f"{metric.signature().spec} {fault}")
    require(metric, dataset.segments)
