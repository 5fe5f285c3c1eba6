"""`whyscore metaeval words`: word scores judged against the words that people marked."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from whyscore.analysis.metaeval.annotators import (
    Annotators,
    annotators_of,
    gold_by_majority,
    gold_of,
    read_annotators,
    with_annotators,
)
from whyscore.analysis.metaeval.settings import MetaevalWordsSettings
from whyscore.analysis.metaeval.words import metaevaluate_words, segments_of, stored_submissions
from whyscore.cli.options import InputSettings, MetricSettings, OutputSettings, RunningSettings
from whyscore.cli.output import emit_result, format_of, tell, tell_signatures
from whyscore.cli.setup import check_names, explaining_costs, language_pair, load_dataset, requested_metrics, working
from whyscore.data.files import read_lines
from whyscore.data.formats.eval4nlp import Gold, Submission, read_gold, read_submission
from whyscore.data.naming import system_names
from whyscore.data.records import read_explanations
from whyscore.errors import DataError, UserError
from whyscore.settings import option
from whyscore.types import Dataset, Segment

EXAMPLES = """\
examples:
  whyscore metaeval words --gold GOLD --submission TEAM_A TEAM_B.zip --ranking
  whyscore metaeval words --gold GOLD --submission TEAM_A --baselines -f json
  whyscore metaeval words --gold GOLD -m transquest -e erasure 'lime(samples=200)' --baselines
  whyscore metaeval words data.jsonl -m chrf -e erasure lime --baselines --faithfulness --seeds 5
"""


@dataclass(frozen=True, kw_only=True)
class WordsCommand(RunningSettings, OutputSettings, InputSettings, MetaevalWordsSettings, MetricSettings):
    """What `whyscore metaeval words` takes."""

    gold: str | None = option(None, "gold folder or zip of Eval4NLP 2021 or WMT22 task 2", metavar="PATH", basic=True)
    submissions: tuple[str, ...] = option(
        (),
        "submission folders or zips, or explanations.jsonl",
        flags=("--submission", "--submissions"),
        metavar="PATH",
        basic=True,
    )
    explainers: tuple[str, ...] = option(
        (),
        "explainers to judge on the texts of the gold (default with -m: erasure)",
        flags=("-e", "--explainers", "--explainer"),
        metavar="SPEC",
        basic=True,
    )
    annotators: tuple[str, ...] = option((), "tags of several annotators, one file each", metavar="FILE")
    tune_on: tuple[str, ...] = option((), "GOLD and one submission per system: learn thresholds there", metavar="PATH")
    segments: bool = option(False, "the numbers of every sentence instead of the means", basic=True)


SETTINGS = WordsCommand


def run(settings: WordsCommand) -> int:
    """Judge everything that was asked for and write it out."""
    metrics, explainers = requested_metrics(settings), settings.explainers or ("erasure",)
    check_names(metrics, settings.explainers)
    if settings.explainers and not metrics:
        raise UserError("explainers need a metric: name one with -m, for example -m chrf")
    gold, segments, annotators = _gold(settings)
    if settings.dry_run:
        print(*explaining_costs(settings, segments, metrics, explainers), sep="\n")
        return 0
    submissions = _submissions(settings, gold)
    tuning = _tuning(settings, len(submissions) + len(metrics) * len(explainers)) if settings.tune_on else None
    with working(settings) as resources:
        result = metaevaluate_words(
            gold,
            submissions,
            segments=segments,
            metrics=metrics,
            explainers=explainers,
            tuning=tuning,
            settings=settings,
            resources=resources,
        )
    if annotators is not None:
        result = with_annotators(result, annotators)
    emit_result(result.segments() if settings.segments else result, settings)
    for warning in result.warnings:
        tell(settings, f"warning: {warning}")
    if format_of(settings) == "text":
        tell_signatures(settings, [result.signature])
    return 0


def _tuning(settings: WordsCommand, systems: int) -> tuple[Gold, list[Submission]]:
    """Return other gold and the submissions to it."""
    gold, *paths = settings.tune_on
    if len(paths) != systems:
        raise UserError(f"--tune-on takes GOLD and one submission per system: {len(paths)} for {systems} systems")
    return read_gold(gold), [read_submission(path) for path in paths]


def _gold(settings: WordsCommand) -> tuple[Gold, Sequence[Segment], Annotators | None]:
    """Return the gold, the segments behind it, and the annotators where there are several."""
    annotators = read_annotators(settings.annotators) if settings.annotators else None
    if settings.gold:
        gold = replace(read_gold(settings.gold), languages=language_pair(settings.lang_pair))
        for finding in gold.findings:
            tell(settings, f"note: {finding}")
        segments: Sequence[Segment] = segments_of(gold) if gold.target.words is not None else []
        if settings.hypotheses or settings.data:
            segments = _texts(settings).segments
        elif settings.references:
            segments = _with_references(segments, settings.references)
        return (gold if annotators is None else gold_by_majority(annotators, gold)), segments, annotators
    if annotators is not None and not (settings.data or settings.hypotheses):
        return gold_by_majority(annotators), [], annotators
    if not (settings.data or settings.hypotheses or settings.sample):
        raise UserError("no gold: give --gold GOLD, a data file with spans or tags, or --annotators")
    data = _texts(settings)
    if annotators is not None:
        raise UserError("--annotators goes with --gold or alone: a data file brings its own annotations")
    return gold_of(data, human=settings.human[0] if settings.human else None), data.segments, annotators_of(data)


def _texts(settings: WordsCommand) -> Dataset:
    """Return the texts that were given; beside submissions --systems names those, and no part of the texts."""
    return load_dataset(replace(settings, systems=None) if settings.submissions else settings, settings.metrics or ())


def _with_references(segments: Sequence[Segment], files: Sequence[str]) -> list[Segment]:
    """Return the texts of the gold with references beside them, one file per set."""
    sets = [read_lines(file).texts for file in files]
    for file, lines in zip(files, sets, strict=True):
        if len(lines) != len(segments):
            raise DataError(f"{file} has {len(lines)} lines, the gold has {len(segments)}: line counts must match")
    rows = zip(*sets, strict=True)
    return [replace(segment, references=tuple(own)) for segment, own in zip(segments, rows, strict=True)]


def _submissions(settings: WordsCommand, gold: Gold) -> list[Submission]:
    """Return what was handed in: folders, then stored explanations."""
    folders = [path for path in settings.submissions if Path(path).suffix not in (".jsonl", ".ndjson")]
    names = system_names(folders, settings.systems)
    submissions = [read_submission(path, name=name) for path, name in zip(folders, names, strict=True)]
    for finding in (finding for one in submissions for finding in one.findings):
        tell(settings, f"note: {finding}")
    stored = [path for path in settings.submissions if path not in folders]
    return submissions + [one for path in stored for one in stored_submissions(read_explanations(path), gold.names())]
