"""`whyscore metaeval scores`: metrics against human scores."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from whyscore.analysis.common import requested_name
from whyscore.analysis.metaeval.scores import metaevaluate_table, with_metrics
from whyscore.analysis.metaeval.settings import MetaevalScoresSettings
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
from whyscore.cli.options import InputSettings, OutputSettings, RunningSettings
from whyscore.cli.output import emit_result, format_of, tell
from whyscore.cli.setup import column_names, working
from whyscore.data.dataset import sample
from whyscore.errors import SpecError, UnknownName, UserError
from whyscore.registry import known, load, parse
from whyscore.settings import again, option
from whyscore.types.table import DECIMALS

EXAMPLES = """\
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
        None, "the column of the system; '' makes every row a system of its own", metavar="COLUMN", basic=True
    )
    segment: str | None = option(None, "the column of the segment or document", metavar="COLUMN", basic=True)
    human: str | None = option(None, "the column of the human score; higher is better", metavar="COLUMN", basic=True)
    metrics: tuple[str, ...] = option(
        (),
        "columns, or metrics to score where the table has texts",
        flags=("-m", "--metric", "--metrics"),
        metavar="NAME",
        basic=True,
    )
    lower: tuple[str, ...] = option((), "columns where lower is better", metavar="COLUMN", basic=True)
    group: str | None = option(None, "judge each value of this column apart, e.g. language pairs", metavar="COLUMN")
    rater: str | None = option(None, "several rows per segment are raters, to be averaged", metavar="COLUMN")
    scores: str | None = option(
        None,
        "further metrics: whyscore score --segments -f jsonl, or X.scores",
        metavar="FILE",
    )
    ratings: str | None = option(None, "raw MQM ratings; the human score is then mqm", metavar="FILE")
    lang_pair: str | None = option(None, "language pair of a WMT folder", flags=("-l", "--lang-pair"), metavar="EN-DE")
    columns: tuple[str, ...] | None = again(
        InputSettings, "columns", help="columns of texts: references=pe", basic=False
    )
    encoding: str = option("utf-8", "encoding of the table", metavar="NAME")


SETTINGS = ScoresCommand


def run(settings: ScoresCommand) -> int:
    """Judge the metrics and write the table out."""
    table, human, columns, specs = _input(settings)
    if settings.dry_run:
        print(f"{len(table)} rows; metrics to score: {', '.join(specs) or 'none'}")
        return 0
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
    for note in result.notes if form not in ("markdown", "latex") else ():
        tell(settings, f"note: {note}")
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
    wanted = settings.metrics or there
    if not wanted:
        raise UserError("no metric: name columns of the table with --metric")
    return table, human, [name for name in wanted if name in there], [name for name in wanted if name not in there]


def _read_table(settings: ScoresCommand, path: str, human: str) -> tuple[ScoreTable, list[str]]:
    columns = read_columns(path, encoding=settings.encoding)
    roles = Roles(settings.system, settings.segment, settings.group, settings.rater)
    names = [name for name in settings.metrics if name in columns.values]
    for name in settings.metrics if not settings.scores else ():
        _check_metric(name, columns.values)
    wanted = names if settings.ratings and human not in columns.values else [human, *names]
    table = score_table(columns, wanted, roles)
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
        raise UnknownName.among("column and no metric", name, [*columns, *known("metric")]) from None
