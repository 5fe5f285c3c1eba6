"""`whyscore metaeval`: how good is a metric or an explainer? Scores, words, spans and faithfulness."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from whyscore.analysis.common import requested_name
from whyscore.analysis.explain import ExplainersSettings
from whyscore.analysis.metaeval.annotators import (
    Annotators,
    annotators_of,
    gold_by_majority,
    gold_of,
    read_annotators,
    with_annotators,
)
from whyscore.analysis.metaeval.faithfulness import faithfulness
from whyscore.analysis.metaeval.scores import metaevaluate_table, with_metrics
from whyscore.analysis.metaeval.settings import (
    FaithfulnessSettings,
    MetaevalScoresSettings,
    MetaevalSpansSettings,
    MetaevalWordsSettings,
)
from whyscore.analysis.metaeval.spans import metaevaluate_metric_spans, metaevaluate_spans
from whyscore.analysis.metaeval.tables import (
    LISTED_SCORES,
    MQM,
    SCORE,
    Roles,
    ScoreTable,
    dataset_table,
    read_columns,
    read_wmt,
    score_table,
    texts_of,
    with_ratings,
    with_records,
)
from whyscore.analysis.metaeval.words import metaevaluate_words, segments_of, stored_submissions
from whyscore.cli.options import Command, InputSettings, LimitSettings, MetricSettings, OutputSettings, RunningSettings
from whyscore.cli.output import emit_result, format_of, tell, tell_each, tell_signatures
from whyscore.cli.setup import (
    check_names,
    column_names,
    explaining_costs,
    language_pair,
    load_dataset,
    print_lines,
    requested_metrics,
    score_costs,
    take_first,
    working,
)
from whyscore.data.dataset import sample
from whyscore.data.files import read_lines
from whyscore.data.formats.eval4nlp import Gold, Submission, read_gold, read_submission
from whyscore.data.naming import system_names
from whyscore.data.reading import read_foreign
from whyscore.data.records import read_explanations
from whyscore.errors import DataError, SpecError, UnknownName, UserError
from whyscore.explainers.engine import failure_message
from whyscore.registry import list_names, load, parse, spec_of
from whyscore.settings import again, option
from whyscore.types import Dataset, Segment
from whyscore.types.result import DECIMALS

EXAMPLES = """\
examples:
  whyscore metaeval scores summeval.csv --human expert_relevance --metric rouge-1_f1 bertscore_f1 --level system
  whyscore metaeval scores --sample --human mqm -m chrf bleu --level segment
  whyscore metaeval scores -h
"""

SCORES_EXAMPLES = """\
examples:
  whyscore metaeval scores summeval.csv --system system --segment doc --human expert_relevance \\
      --metric rouge-1_f1 bertscore_f1 --level system --coefficient kendall --test permute-both
  whyscore metaeval scores data.csv --human da --metric teamA teamB --group lp --level global --coefficient spearman
  whyscore metaeval scores data.tsv --human mqm -m chrf bleu          # the table has texts: metrics are scored
  whyscore metaeval scores metrics.csv --ratings mqm.tsv --metric comet --coefficient acc_eq
  whyscore metaeval scores dev_gold.seg.scores --scores submission.seg.scores      # Eval4NLP 2023
  whyscore metaeval scores --sample --human mqm -m chrf token_f1 --level segment
"""


@dataclass(frozen=True, kw_only=True)
class ScoresCommand(RunningSettings, OutputSettings, MetaevalScoresSettings):
    """What `whyscore metaeval scores` takes."""

    TITLE: ClassVar[str] = "input"

    data: str | None = option(
        None, "a .csv, .tsv, .jsonl or .scores file, or a WMT folder", positional=True, metavar="TABLE", basic=True
    )
    sample: bool = again(InputSettings, "sample")
    system: str | None = option(
        None, "column with the system; '' treats every row as a system of its own", metavar="COLUMN", basic=True
    )
    segment: str | None = option(None, "column with the segment or document", metavar="COLUMN", basic=True)
    human: str | None = option(None, "column with the human score; higher is better", metavar="COLUMN", basic=True)
    metrics: tuple[str, ...] = option(
        (),
        "columns with metric scores, or metrics to compute if the table has texts",
        flags=("-m", "--metric", "--metrics"),
        metavar="NAME",
        basic=True,
    )
    lower: tuple[str, ...] = option((), "columns where lower is better", metavar="COLUMN", basic=True)
    group: str | None = option(
        None, "evaluate each value of this column separately, e.g. language pairs", metavar="COLUMN"
    )
    rater: str | None = option(None, "average several rows per segment: they are different raters", metavar="COLUMN")
    scores: str | None = option(
        None,
        "files with further metric scores: from whyscore score --segments -f jsonl, or X.scores",
        metavar="FILE",
    )
    ratings: str | None = option(None, "file of raw MQM ratings; the human score is then mqm", metavar="FILE")
    lang_pair: str | None = option(None, "language pair of a WMT folder", flags=("-l", "--lang-pair"), metavar="EN-DE")
    columns: tuple[str, ...] | None = again(
        InputSettings, "columns", help="columns of texts: references=pe", basic=False
    )
    encoding: str = option("utf-8", "encoding of the table", metavar="NAME")


def run_scores(settings: ScoresCommand) -> int:
    """Judge the metrics and write the table out."""
    table, human, columns, specs = _input(settings)
    if settings.dry_run:
        print(f"{len(table)} rows; metrics to score: {', '.join(specs) or 'none'}")
        texts = table.texts or Dataset(table.name, ())
        return print_lines(score_costs(settings, specs, texts.segments, texts.languages))
    with working(settings) as resources:
        table = with_metrics(table, specs, resources)
    for name in settings.lower:
        if name not in table.scores:
            raise UserError(f"--lower {name}: no such column among {', '.join(table.scores)}")
        table = table.with_scores(**{name: -table.scores[name]})
    result = metaevaluate_table(table, human, [*columns, *map(requested_name, specs)], settings=settings)
    form = format_of(settings)
    shown = replace(result, decimals=DECIMALS if settings.width is None else settings.width)
    # On a terminal the notes go to stderr, where they do not disturb what is copied or piped.
    emit_result(replace(shown, notes=()) if form == "text" else shown, settings)
    tell_each(settings, "note", result.notes if form not in ("markdown", "latex") else ())
    return 0


def _input(settings: ScoresCommand) -> tuple[ScoreTable, str, list[str], list[str]]:
    """Return the table, its human column, the columns that are metrics, and metrics still to be scored."""
    listed = (settings.data or "").lower().endswith(LISTED_SCORES)
    human = settings.human or (MQM if settings.ratings else SCORE if listed else None)
    if human is None:
        raise UserError("no human score: name its column with --human")
    there: list[str] = []
    if settings.sample:
        table = dataset_table(sample(), human)
    elif settings.data is None:
        raise UserError("no input: give a table of scores, or --sample")
    elif Path(settings.data).is_dir():
        if not settings.lang_pair:
            raise UserError("a WMT folder needs the language pair: -l en-de")
        table, there = read_wmt(settings.data, settings.lang_pair, human)
    else:
        table, there = _read_table(settings, settings.data, human)
    if settings.scores:
        table, more = with_records(table, settings.scores)
        there = [*there, *more]
    if settings.ratings:
        table = with_ratings(table, settings.ratings)
    names = settings.metrics or there
    if not names:
        raise UserError("no metric: name columns of the table with --metric")
    return table, human, [name for name in names if name in there], [name for name in names if name not in there]


def _read_table(settings: ScoresCommand, path: str, human: str) -> tuple[ScoreTable, list[str]]:
    columns = read_columns(path, encoding=settings.encoding)
    roles = Roles(settings.system, settings.segment, settings.group, settings.rater)
    names = [name for name in settings.metrics if name in columns.values]
    for name in settings.metrics if not settings.scores else ():
        _check_metric(name, columns.values)
    needed = names if settings.ratings and human not in columns.values else [human, *names]
    table = score_table(columns, needed, roles)
    return replace(
        table, texts=None if settings.rater else texts_of(columns, roles, column_names(settings.columns))
    ), names


def _check_metric(name: str, columns: Iterable[str]) -> None:
    """Refuse what is neither a column nor a metric that could be asked."""
    if name in columns:
        return
    try:
        load("metric", parse(name).name)
    except (SpecError, UnknownName):
        raise UnknownName.among("column and no metric", name, [*columns, *list_names("metric")]) from None


WORDS_EXAMPLES = """\
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
    explainers: tuple[str, ...] = again(
        ExplainersSettings, "explainers", (), help="explainers to evaluate on the gold texts (default with -m: erasure)"
    )
    annotators: tuple[str, ...] = option(
        (), "files with the tags of several annotators, one per annotator", metavar="FILE"
    )
    tune_on: tuple[str, ...] = option(
        (), "gold folder and one submission per system to learn thresholds on", metavar="PATH"
    )
    segments: bool = option(False, "output per-sentence values instead of means", basic=True)


def run_words(settings: WordsCommand) -> int:
    """Judge everything that was asked for and write it out."""
    metrics, explainers = requested_metrics(settings), settings.explainers or ("erasure",)
    check_names(metrics, settings.explainers)
    if settings.explainers and not metrics:
        raise UserError("explainers need a metric: name one with -m, for example -m chrf")
    gold, segments, annotators = _word_gold(settings)
    if settings.dry_run:
        return print_lines(explaining_costs(settings, segments, metrics, explainers, gold.languages))
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
    tell_each(settings, "warning", result.warnings)
    if format_of(settings) == "text":
        tell_signatures(settings, [result.signature])
    return 0


def _tuning(settings: WordsCommand, systems: int) -> tuple[Gold, list[Submission]]:
    """Return other gold and the submissions to it."""
    gold, *paths = settings.tune_on
    if len(paths) != systems:
        raise UserError(f"--tune-on takes GOLD and one submission per system: {len(paths)} for {systems} systems")
    return read_gold(gold), [read_submission(path) for path in paths]


def _word_gold(settings: WordsCommand) -> tuple[Gold, Sequence[Segment], Annotators | None]:
    """Return the gold, the segments behind it, and the annotators where there are several."""
    annotators = read_annotators(settings.annotators) if settings.annotators else None
    if settings.gold:
        gold = replace(read_gold(settings.gold), languages=language_pair(settings.lang_pair))
        tell_each(settings, "note", gold.findings)
        segments: Sequence[Segment] = segments_of(gold) if gold.target.words is not None else []
        if settings.hypotheses or settings.data:
            segments = _word_texts(settings).segments
        elif settings.references:
            segments = _with_references(segments, settings.references)
        return (gold if annotators is None else gold_by_majority(annotators, gold)), segments, annotators
    if annotators is not None and not (settings.data or settings.hypotheses):
        return gold_by_majority(annotators), [], annotators
    if not (settings.data or settings.hypotheses or settings.sample):
        raise UserError("no gold: give --gold GOLD, a data file with spans or tags, or --annotators")
    data = _word_texts(settings)
    if annotators is not None:
        raise UserError("--annotators goes with --gold or alone: a data file brings its own annotations")
    return gold_of(data, human=settings.human[0] if settings.human else None), data.segments, annotators_of(data)


def _word_texts(settings: WordsCommand) -> Dataset:
    """Return the texts that were given; beside submissions --systems names those, and no part of the texts."""
    return load_dataset(replace(settings, systems=None) if settings.submissions else settings, settings.metrics or ())


def _with_references(segments: Sequence[Segment], files: Sequence[str]) -> list[Segment]:
    """Return the texts of the gold with references beside them, one file per set."""
    sets = [read_lines(file).texts for file in files]
    for file, lines in zip(files, sets, strict=True):
        if len(lines) != len(segments):
            raise DataError(f"{file} has {len(lines)} lines, the gold has {len(segments)}: line counts must match")
    rows = zip(*sets, strict=True)
    return [replace(segment, references=tuple(row)) for segment, row in zip(segments, rows, strict=True)]


def _submissions(settings: WordsCommand, gold: Gold) -> list[Submission]:
    """Return what was handed in: folders, then stored explanations."""
    folders = [path for path in settings.submissions if not {".jsonl", ".ndjson"} & set(Path(path).suffixes[-2:])]
    names = system_names(folders, settings.systems)
    submissions = [read_submission(path, name=name) for path, name in zip(folders, names, strict=True)]
    tell_each(settings, "note", (finding for submission in submissions for finding in submission.findings))
    stored = [path for path in settings.submissions if path not in folders]
    skip = settings.on_mismatch == "skip"
    files = [read_explanations(path) for path in stored]
    groups = (stored_submissions(file, gold.names(), skip=skip, several=gold.several) for file in files)
    return [*submissions, *(submission for group in groups for submission in group)]


SPANS_EXAMPLES = """\
examples:
  whyscore metaeval spans predicted.jsonl --gold mqm.tsv
  whyscore metaeval spans predicted.jsonl --gold GOLD_FOLDER --severity -f json
  whyscore metaeval spans mqm.tsv -m "judge(recorded='answers.jsonl')"           # a metric that marks errors
"""


@dataclass(frozen=True, kw_only=True)
class SpansCommand(RunningSettings, OutputSettings, MetaevalSpansSettings, MetricSettings):
    """What `whyscore metaeval spans` takes."""

    data: str = option(
        "",
        "predicted spans in any supported format, with their texts; with -m: texts with human-marked spans",
        positional=True,
        metavar="FILE",
        basic=True,
    )
    lang_pair: str | None = again(InputSettings, "lang_pair")
    gold: str | None = option(None, "gold spans in any supported format, or a gold folder", metavar="PATH", basic=True)
    weights: tuple[str, ...] | None = option(
        None, "weights of spans by severity, e.g. minor=1 major=5", metavar="NAME=X", basic=True
    )


def run_spans(settings: SpansCommand) -> int:
    """Judge the spans and write the result out."""
    metrics, weights = requested_metrics(settings), _span_weights(settings.weights)
    if not metrics and settings.gold is None:
        raise UserError("no gold: give marked spans with --gold PATH, or a metric that marks errors with -m")
    if len(metrics) > 1 or (metrics and settings.gold is not None):
        raise UserError("give one metric and a file with texts and marked spans, or predicted spans and --gold PATH")
    data = _read_spans(settings, settings.data)
    if metrics:
        gold = replace(data, languages=language_pair(settings.lang_pair) or data.languages)
        if settings.dry_run:
            return print_lines(score_costs(settings, metrics, gold.segments, gold.languages))
        with working(settings) as resources:
            result = metaevaluate_metric_spans(
                gold, metrics[0], weights=weights, settings=settings, resources=resources
            )
        if result.missing:
            tell(settings, f"note: {result.missing:,} segments have no usable answer and were left out")
    else:
        gold = _read_spans(settings, str(settings.gold))
        result = metaevaluate_spans(data, gold, weights=weights, settings=settings)
    emit_result(result, settings)
    if format_of(settings) == "text":
        tell_signatures(settings, [result.signature])
    return 0


def _read_spans(settings: SpansCommand, path: str) -> Dataset:
    data = read_foreign(path)
    tell_each(settings, "note", data.findings)
    return data


def _span_weights(texts: tuple[str, ...] | None) -> dict[str, float] | None:
    if texts is None:
        return None
    try:
        return {name: float(weight) for name, weight in (item.split("=") for item in texts)}
    except ValueError:
        raise UserError(f"cannot read the weights {' '.join(texts)}: write them like minor=1 major=5") from None


FAITHFULNESS_EXAMPLES = """\
examples:
  whyscore metaeval faithfulness -r ref.txt -t sys.txt -m chrf -e erasure lime shap random
  whyscore metaeval faithfulness --sample --limit 20 -m chrf -e erasure 'lime(samples=200)' random --seeds 5
  whyscore metaeval faithfulness --sample --limit 20 -m chrf -e 'lime(samples=50)' --until-stable 0.95
"""


@dataclass(frozen=True, kw_only=True)
class FaithfulnessCommand(
    LimitSettings, RunningSettings, OutputSettings, InputSettings, FaithfulnessSettings, MetricSettings
):  # fmt: skip
    """What `whyscore metaeval faithfulness` takes."""

    explainers: tuple[str, ...] | None = again(
        ExplainersSettings, "explainers", None, help="explainers to evaluate; random is the control"
    )


def run_faithfulness(settings: FaithfulnessCommand) -> int:
    """Judge the explainers and write the result out."""
    metrics, explainers = requested_metrics(settings), settings.explainers
    if len(metrics) != 1:
        raise UserError(f"one metric: name it with -m, for example -m chrf; got {len(metrics)}")
    if not explainers:
        raise UserError("no explainer: name some with -e, for example -e erasure lime random")
    data = take_first(load_dataset(settings, metrics, explainers), settings.limit)
    if settings.dry_run:
        print_lines(explaining_costs(settings, data.segments, metrics, explainers, data.languages))
        tell(settings, f"and for each explained text of n words {settings.orders + 1} orders of 2 (n + 1) texts")
        return 0
    with working(settings) as resources:
        results = faithfulness(data, metrics[0], explainers, settings=settings, resources=resources)
    for budget in results.budgets:
        agreement = f"two halves agree by {budget.spearman:.3f} after {budget.rounds} round(s)"
        tell(
            settings,
            f"note: {spec_of(budget.explainer)} is {'stable' if budget.reached else 'not stable'}: {agreement}",
        )
    for result in results:
        if result.failures:
            tell(settings, f"note: {result.explainer}: {failure_message(result.failures, len(data))}")
    emit_result(results, settings)
    if format_of(settings) == "text":
        tell_signatures(settings, [result.signature for result in results])
    return 0


def commands() -> dict[str, Command]:
    """Return what can be judged, by name."""
    return {
        "scores": Command(
            "agreement of metrics with human scores: levels, tests, clusters, sentinels",
            SCORES_EXAMPLES,
            ScoresCommand,
            run_scores,
        ),
        "words": Command("agreement of word scores with human error marks", WORDS_EXAMPLES, WordsCommand, run_words),
        "spans": Command("agreement of predicted error spans with human ones", SPANS_EXAMPLES, SpansCommand, run_spans),
        "faithfulness": Command(
            "whether explanations find the words that determine the score",
            FAITHFULNESS_EXAMPLES,
            FaithfulnessCommand,
            run_faithfulness,
        ),
    }
