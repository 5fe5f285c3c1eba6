"""The decompose job: how much of what a system loses under a metric is lost on nouns, names, numbers ...

After Karidi, Choshen, Patel and Abend, "MuLER: Detailed and Scalable Reference-based Evaluation".

1. Tag every distinct text once (`decompose_tags`).
2. For each feature: I, the segments that have it in hypothesis and reference; discrepancy and frequency.
3. Hide the feature in the texts of I, so that it agrees everywhere (oracle) and nowhere (anti) (`decompose_masks`).
4. One deduplicated score call for the originals and all variants of all features and systems (`decompose_scores`).
5. Fit: share = (oracle - sigma) / (oracle - anti) over I (`decompose_fit`), its interval, tests between systems.

Nothing after step 4 asks the metric again.
"""

from collections.abc import Sequence

from whyscore.analysis.common import MetricLike, Segments, as_dataset, requested_name
from whyscore.analysis.decompose.fit import FLOOR, Values
from whyscore.analysis.decompose.masking import Grain, compat_grain, grain_of, kind_of
from whyscore.analysis.decompose.result import Cost, Decompositions
from whyscore.analysis.decompose.scorers import ScorerLike, as_scorer, score_sentences
from whyscore.analysis.decompose.scoring import Reading, ask, ask_matrices, decomposed_metric, questions
from whyscore.analysis.decompose.settings import Held, Level, Measured, Mode, Settings, Study, Tokens
from whyscore.analysis.decompose.shares import described, rows_of
from whyscore.analysis.decompose.tagging import Initial, Marking, TaggerLike, mark
from whyscore.errors import SpecError
from whyscore.protocols import CorpusMetric, Explainer, MatrixMetric, Metric
from whyscore.scoring.stack import LOCAL, Resources, require
from whyscore.scoring.stack import cost as score_cost
from whyscore.text.placeholders import Unit
from whyscore.types import Dataset, Inputs, Segment, Signature


def decompose(
    data: Segments,
    metric: MetricLike | Sequence[MetricLike],
    *,
    tagger: TaggerLike = "rules",
    features: Sequence[str] | None = None,
    scorers: Sequence[ScorerLike] = (),
    mode: Mode = "paper",
    unit: Unit = "word",
    level: Level = "segment",
    references: Held = "any",
    tokens: Tokens | None = None,
    initial: Initial | None = None,
    explainer: str | Explainer | None = None,
    draws: int = 2000,
    correction: str = "benjamini_hochberg",
    examples: int = 3,
    seed: int = 0,
    resources: Resources = LOCAL,
) -> Decompositions:
    """Return one row per system, metric and feature, with tests between systems beside them.

    `features` are expressions of `whyscore.taggers.features`; None takes all that the tagger gives. The other options
    are those of `Settings`. Plain `bleu` means the mean of unsmoothed sentence BLEU of order 4, from 0 to 1.
    """
    settings = Settings(mode, unit, level, references, tokens, initial, draws, correction, examples, explainer, seed)
    dataset = as_dataset(data)
    metrics = [metric] if isinstance(metric, str) or not isinstance(metric, Sequence) else list(metric)
    chosen = [(requested_name(one), decomposed_metric(one, mode)) for one in metrics]
    for _, one in chosen:
        check_metric(one, dataset, settings)
    graders = [as_scorer(one) for one in scorers]
    marking = marked(dataset, tagger, features, settings, resources)
    study = Study(dataset, marking, settings, resources)
    measured = [measure(study, name, one) for name, one in chosen]
    rows = rows_of(study, measured)
    found = [row for grader in scorers for row in score_sentences(dataset, grader, mode=mode, draws=draws, seed=seed)]
    signatures = {one.name: one.signature for one in measured} | {"tagger": marking.signature}
    signatures |= {one.signature().spec: one.signature() for one in graders}
    return described(study, measured, rows, found, signatures)


def plan(
    data: Segments,
    metric: MetricLike,
    *,
    tagger: TaggerLike = "rules",
    features: Sequence[str] | None = None,
    settings: Settings | None = None,
    resources: Resources = LOCAL,
) -> Cost:
    """Return what a decomposition would take; texts are tagged for it, but none is scored."""
    chosen = settings or Settings()
    dataset = as_dataset(data)
    asked = decomposed_metric(metric, chosen.mode)
    check_metric(asked, dataset, chosen)
    marking = marked(dataset, tagger, features, chosen, resources)
    members = members_of(marking, chosen.references)
    if isinstance(asked, MatrixMetric):
        groups: list[Sequence[Segment]] = [dataset.segments]
        grain_metric: Metric = asked
    else:
        grain = _grain(asked, marking, chosen)
        groups, grain_metric = list(questions(dataset.segments, marking, grain, members)), grain.metric
    every = [segment for group in groups for segment in group]
    return Cost(*_tagging(marking), *score_cost(grain_metric, every, resources.store))


def check_metric(metric: Metric, dataset: Dataset, settings: Settings) -> None:
    """Refuse metrics and segments that cannot be decomposed, before anything is tagged."""
    name = metric.signature().spec
    if Inputs.REFERENCES not in metric.inputs:
        raise SpecError(f"{name} reads no reference: a decomposition hides features in hypothesis and reference")
    if settings.level == "corpus" and (not isinstance(metric, CorpusMetric) or isinstance(metric, MatrixMetric)):
        raise SpecError(f"{name} has no corpus score of its own: use level='segment'")
    require(metric, dataset.segments)


def marked(
    dataset: Dataset,
    tagger: TaggerLike,
    features: Sequence[str] | None,
    settings: Settings,
    resources: Resources,
) -> Marking:
    """Return the data set with its features marked as the settings say."""
    compat = settings.mode == "compat"
    initial: Initial = settings.initial or ("lower" if compat else "any")
    return mark(dataset, tagger, features, first_key=compat, initial=initial, resources=resources)


def members_of(marking: Marking, references: Held = "any") -> list[list[int]]:
    """Return for each feature the entries that have it in the hypothesis and in any (or all) of the references."""
    enough = any if references == "any" else all
    return [
        [
            place
            for place, entry in enumerate(marking.entries)
            if entry.hypothesis.spans[feature]
            and entry.references
            and enough(bool(text.spans[feature]) for text in entry.references)
        ]
        for feature in range(len(marking.features))
    ]


def measure(study: Study, name: str, metric: Metric) -> Measured:
    """Return the scores of originals and variants after one score call."""
    dataset, marking, settings, resources = study
    members = members_of(marking, settings.references)
    compat = settings.mode == "compat"
    signature = _signature(metric, marking, settings)
    guard = 0.0 if compat else FLOOR
    if isinstance(metric, MatrixMetric):
        answers = ask_matrices(metric, dataset.segments, marking, members)
        values = Values(Reading(metric, direct=True), answers, members, guard=guard)
        distinct = len({segment.only(metric.inputs) for segment in dataset.segments})
        return Measured(name, metric, values, None, "matrix", signature, len(dataset), distinct)
    grain = _grain(metric, marking, settings)
    groups = questions(dataset.segments, marking, grain, members)
    answers = ask(resources.prepare(grain.metric), groups)
    corpus = settings.level == "corpus"
    reading = Reading(grain.metric, pseudo_zero=compat)
    values = Values(reading, answers, members, corpus, guard=guard)
    every = [segment for group in groups for segment in group]
    return Measured(name, metric, values, grain, kind_of(metric), signature, len(every), len(set(every)))


def _grain(metric: Metric, marking: Marking, settings: Settings) -> Grain:
    if settings.mode == "compat":
        return compat_grain(metric, marking)
    return grain_of(metric, marking, unit=settings.unit, tokens=settings.tokens)


def _tagging(marking: Marking) -> tuple[int, int, int]:
    return marking.asked, marking.distinct, marking.tagged


def _signature(metric: Metric, marking: Marking, settings: Settings) -> Signature:
    """Return the metric's signature with how features were hidden."""
    segments = settings.level == "segment"
    base = metric.segment_signature() if segments and isinstance(metric, CorpusMetric) else metric.signature()
    facts: dict[str, object] = {"decomposed": settings.mode, "unit": settings.unit, "level": settings.level}
    if settings.mode == "compat":
        facts["tokens"] = "nltk"
    elif kind_of(metric) == "token":
        facts["tokens"] = settings.tokens or ("tagger" if marking.gives_tokens else "metric")
    counts = {len(entry.references) for entry in marking.entries}
    if "nrefs" in dict(base.facts):
        facts["nrefs"] = counts.pop() if len(counts) == 1 else "var"
    return base.with_facts(**facts, grain=kind_of(metric), seed=settings.seed)
