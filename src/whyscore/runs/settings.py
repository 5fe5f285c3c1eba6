"""The settings of an evaluation, and its defaults: metrics by what the data have, an explainer per metric, segments.

1. Metrics: with references chrF and BLEU, cut into tokens as the target language needs it, and TER; where there is a
   source, XBERTScore instead of TER.
2. Explainers: a metric that has scores of its own for words is asked for them; every other one is asked by erasure.
3. Segments: with a budget, the worst, the best and a random one in turn, until the budget is used up.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np

from whyscore.analysis.common import MetricLike, as_metric, requested_name, with_languages
from whyscore.errors import MissingInput, SpecError
from whyscore.protocols import Metric, WordScorer
from whyscore.registry import build, files_of
from whyscore.scoring.answers import AsksModel
from whyscore.scoring.stack import require
from whyscore.settings import Bootstrapped, Seeded, check, check_files, option
from whyscore.taggers.spacy import installed_pipeline
from whyscore.text.randomness import generator
from whyscore.types import Dataset, FloatMatrix, FloatVector

PROBED_BUDGET = 100
"""Segments that are explained by probes where no budget is given: each costs one scored text per word."""

QUICK_BUDGET = 200
"""Segments that are explained per metric by a quick run."""

_TOKENIZERS = {"zh": "zh", "ja": "char", "th": "char", "lo": "char", "km": "char", "my": "char"}


class RequestedMetric(NamedTuple):
    """A metric of a run that is made: how it is scored and explained."""

    name: str
    """In records."""
    metric: Metric
    explainer: str | None
    """Who explains it; None: nobody."""
    budget: int | None
    """How many segments are explained; None: all."""
    spec: bool = True
    """Whether the name is a spec that builds the metric again."""


@dataclass(frozen=True, kw_only=True)
class EvaluateSettings(Bootstrapped, Seeded):
    """What decides the numbers of a run, besides texts and metrics."""

    TITLE: ClassVar[str] = "metrics"

    explainers: tuple[str, ...] | None = option(
        None,
        "one for all metrics, or one per metric (default: intrinsic if the metric has word scores, else erasure)",
        flags=("-e", "--explainers", "--explainer"),
        metavar="SPEC",
        basic=True,
    )
    budget: int | None = option(
        None,
        "explain N segments per metric, taking worst, best and random ones in turn; 0: none "
        "(default: all if the metric explains itself, else 100)",
        least=0,
        metavar="N",
        basic=True,
    )
    tagger: str | None = option(
        "rules",
        "tagger that finds linguistic features, or none; auto: an installed spaCy pipeline of the target language, "
        "else rules",
        metavar="SPEC",
    )
    unit: str = option("auto", "unit that is highlighted: auto, word, char, 'chunk(3)'", metavar="SPEC")
    quick: bool = option(
        False, "quick run: scores, tests and 200 explained segments (or --budget), no linguistic features", basic=True
    )

    def __post_init__(self) -> None:
        if self.quick:
            object.__setattr__(self, "tagger", None)
            object.__setattr__(self, "budget", QUICK_BUDGET if self.budget is None else self.budget)
        if self.tagger == "none":
            object.__setattr__(self, "tagger", None)
        check(self)


Settings = TypeVar("Settings", bound=EvaluateSettings)


def with_tagger(settings: Settings, dataset: Dataset) -> Settings:
    """Return the settings with the tagger that `auto` stands for."""
    if settings.tagger != "auto":
        return settings
    pipeline = installed_pipeline(dataset.languages[1]) if dataset.languages else None
    return replace(settings, tagger=f"spacy(model={pipeline!r})" if pipeline else "rules")


def request_metrics(
    dataset: Dataset, metrics: Sequence[MetricLike] | None, settings: EvaluateSettings
) -> list[RequestedMetric]:
    """Return each metric with its explainer and budget: as asked for, or by default."""
    given = list(metrics or default_metrics(dataset))
    for metric in given:
        require(as_metric(metric), dataset.segments)  # before any model is loaded
    names = [requested_name(metric) for metric in given]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"the metric {name!r} is given twice: name it once")
    chosen = explainers_for(given, settings.explainers)
    budget = settings.budget
    return [
        RequestedMetric(
            name,
            with_languages(as_metric(metric), dataset.languages),
            None if budget == 0 else who,
            default_budget(who, budget),
            isinstance(metric, str),
        )
        for name, metric, who in zip(names, given, chosen, strict=True)
    ]


def plan_of(requested: Sequence[RequestedMetric], settings: EvaluateSettings) -> dict[str, object]:
    """Return what names the work: with the same plan and data, a folder is gone on with.

    Files that any component names are part of it by what they hold.
    """
    others = [build(one.explainer, "explainer") for one in requested if one.explainer]
    others += [build(settings.tagger, "tagger")] if settings.tagger else []
    parts = [build(settings.unit, "splitter"), *(one.metric for one in requested), *others]
    check_files(parts)
    files = files_of(parts)
    return {
        "metrics": [[one.name, str(one.metric.signature()), one.explainer, one.budget] for one in requested],
        "unit": settings.unit,
        "tagger": settings.tagger,
        "seed": settings.seed,
        "draws": settings.draws,
        **({"files": files} if files else {}),
    }


def default_metrics(dataset: Dataset) -> list[str]:
    """Return the metrics that fit what the segments have."""
    references = all(segment.references for segment in dataset.segments)
    source = all(segment.source is not None for segment in dataset.segments)
    if not references and not source:
        raise MissingInput(
            "there are segments without references and without source: name a metric that reads neither with -m, "
            "or give references with -r or a source with -s"
        )
    target = dataset.languages[1].split("_")[0].lower() if dataset.languages else ""
    tokenizer = _TOKENIZERS.get(target)
    counting = ["chrf", f'bleu(tokenize="{tokenizer}")' if tokenizer else "bleu"] if references else []
    return [*counting, *(["qe"] if source else ["ter"])]


def default_explainer(metric: MetricLike) -> str | None:
    """Return the explainer for a metric: its own word scores where it has them, else erasure.

    A language model that marks no words is not explained unless that is asked for: each probe would be a call.
    """
    made = as_metric(metric)
    if isinstance(made, AsksModel):
        return "intrinsic" if made.marks_words else None
    return "intrinsic" if isinstance(made, WordScorer) else "erasure"


def explainers_for(metrics: Sequence[MetricLike], given: Sequence[str] | None) -> list[str | None]:
    """Return one explainer per metric: as given (one for all, or one each), or else the default of each."""
    if not given:
        return [default_explainer(metric) for metric in metrics]
    if len(given) not in (1, len(metrics)):
        raise SpecError(f"{len(given)} explainers for {len(metrics)} metrics: give one for all, or one for each")
    for explainer in given:
        build(explainer, "explainer")
    return [*given] if len(given) == len(metrics) else [*given] * len(metrics)


def default_budget(explainer: str | None, budget: int | None) -> int | None:
    """Return how many segments are explained; None is all of them."""
    if budget is not None:
        return budget
    return None if explainer == "intrinsic" else PROBED_BUDGET


def chosen_segments(
    matrix: FloatMatrix, budget: int | None, *, higher_is_better: bool, seed: int, ids: Sequence[str] | None = None
) -> list[int]:
    """Return columns of a matrix (systems x segments), the ones to look at first first.

    The worst, the best (by the mean over systems) and a random one take turns. Random numbers come from the ids of the
    segments, and decide between equal means too, so that the order of the segments changes nothing.

    >>> chosen_segments(np.array([[3.0, 1.0, 2.0]]), 2, higher_is_better=True, seed=0)
    [1, 0]
    """
    names = ids or [str(column) for column in range(matrix.shape[1])]
    luck = np.array([generator(seed, "segment to explain", name).random() for name in names])
    worst = np.lexsort((luck, _means(matrix) * (1 if higher_is_better else -1))).tolist()
    turns = [column for three in zip(worst, worst[::-1], np.argsort(luck).tolist(), strict=True) for column in three]
    first = list(dict.fromkeys(turns))
    return first if budget is None else first[:budget]


def _means(matrix: FloatMatrix) -> FloatVector:
    """Return the mean of each column, leaving out what is missing; a column without any number counts as 0."""
    there = np.isfinite(matrix)
    sums = np.sort(np.where(there, matrix, 0.0), axis=0).sum(axis=0)  # sorted: systems in any order, the same digits
    means: FloatVector = sums / np.maximum(there.sum(axis=0), 1)
    return means
