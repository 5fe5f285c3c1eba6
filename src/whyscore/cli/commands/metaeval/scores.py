"""`whyscore metaeval scores`: metrics against people."""

import argparse
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from whyscore.analysis.common import requested_name
from whyscore.analysis.metaeval.result import MetaEvaluation
from whyscore.analysis.metaeval.scores import metaevaluate_table, with_metrics
from whyscore.analysis.metaeval.settings import DRAWS, TEST_DRAWS, Judging
from whyscore.analysis.metaeval.tables import (
    MQM,
    Roles,
    ScoreTable,
    read_columns,
    read_wmt,
    score_table,
    texts_of,
    with_ratings,
    with_records,
)
from whyscore.cli.legacy import progress, resources
from whyscore.cli.options import Parser, add_output, add_running
from whyscore.cli.output import emit, format_of, tell, to_json
from whyscore.data.records import Header
from whyscore.data.sample import sample
from whyscore.errors import DataError, SpecError, UnknownName, UserError
from whyscore.present import render
from whyscore.registry import known, load
from whyscore.registry.specs import parse
from whyscore.stats.matrices import PERMUTES, TIE_TOLERANCE
from whyscore.stats.measures import MEASURES
from whyscore.text.strict import finite, line
from whyscore.types.table import Table

EXAMPLES = """\
examples:
  whyscore metaeval scores summeval.csv --system system --segment doc --human expert_relevance \\
      --metric rouge-1_f1 bertscore_f1 --level system --coefficient kendall --test permute-both
  whyscore metaeval scores data.csv --human da --metric teamA teamB --group lp --level global --coefficient spearman
  whyscore metaeval scores data.tsv --human mqm -m chrf bleu          # the table has texts: metrics are scored
  whyscore metaeval scores metrics.csv --ratings mqm.tsv --metric comet --coefficient acc_eq
  whyscore metaeval scores --sample --human mqm -m chrf token_f1 --level segment
"""

_TESTS = ("permute-both", "permutation", "bootstrap", "williams")
_DIGITS = 3


def add_arguments(parser: Parser) -> None:
    """Add the table, its columns, the measure, the test and output."""
    group = parser.add_argument_group("input")
    group.add_argument("data", nargs="?", metavar="TABLE", help="a .csv, .tsv or .jsonl file, or a WMT folder")
    group.add_argument("--sample", action="store_true", help="the real data that ships with whyscore")
    group.add_argument("--system", metavar="COLUMN", help="which system; '' makes every row a system of its own")
    group.add_argument("--segment", metavar="COLUMN", help="which segment or document")
    group.add_argument("--human", metavar="COLUMN", help="the human score; higher is better")
    group.add_argument(
        "-m", "--metric", "--metrics", dest="metrics", nargs="+", action="extend", metavar="NAME",
        help="columns, or metrics to score where the table has texts",
    )  # fmt: skip
    group.add_argument("--lower", nargs="+", action="extend", metavar="COLUMN", help="columns where lower is better")
    group.add_argument("--group", metavar="COLUMN", help="judge each value of this column apart, e.g. language pairs")
    group.add_argument("--rater", metavar="COLUMN", help="several rows per segment are raters, to be averaged")
    group.add_argument("--scores", metavar="FILE", help="further metrics: whyscore score --segments -f jsonl")
    group.add_argument("--ratings", metavar="FILE", help="raw MQM ratings; the human score is then mqm")
    group.add_argument("-l", "--lang-pair", metavar="EN-DE", help="of a WMT folder")
    group.add_argument("--encoding", default="utf-8", metavar="NAME", help="of the table (default: utf-8)")
    _add_judging(parser)
    add_output(parser)
    add_running(parser)


def _add_judging(parser: Parser) -> None:
    group = parser.add_argument_group("judging")
    group.add_argument("--level", metavar="NAME", help="system, segment, global or within_system")
    group.add_argument(
        "--coefficient", default="kendall", metavar="NAME", help=f"kendall (default), {', '.join(MEASURES)}"
    )
    group.add_argument("--test", choices=_TESTS, help="test every two metrics, and rank them in clusters")
    group.add_argument(
        "--permute", choices=PERMUTES, default="cell", help="what changes places together (default: cell)"
    )
    group.add_argument(
        "--correction", choices=("none", "holm", "bonferroni", "benjamini_hochberg"), default="none",
        help="of p-values over all pairs (default: none)",
    )  # fmt: skip
    group.add_argument("--alpha", type=float, default=0.05, help="the p-value that counts (default: 0.05)")
    group.add_argument("--draws", type=int, default=DRAWS, metavar="N", help="bootstrap samples; 0: no intervals")
    group.add_argument(
        "--resamples", type=int, default=TEST_DRAWS, metavar="N", help=f"of a test (default: {TEST_DRAWS:,})"
    )
    group.add_argument("--early-stop", action="store_true", help="end permutations where p is clear, and say so")
    group.add_argument(
        "--missing", choices=("paired", "unpaired", "complete", "error"), default="paired",
        help="cells that one side lacks (default: paired)",
    )  # fmt: skip
    group.add_argument(
        "--resample", choices=("both", "systems", "inputs"), default="both",
        help="what the bootstrap draws (default: both, the widest intervals)",
    )  # fmt: skip
    group.add_argument(
        "--undefined", choices=("leave_out", "zero"), default="leave_out",
        help="segments without a value in a mean: left out (default), or 0 to penalise constants",
    )  # fmt: skip
    group.add_argument(
        "--tie-tolerance", type=float, default=TIE_TOLERANCE, metavar="X",
        help=f"means closer than this share of their spread are ties (default: {TIE_TOLERANCE:g})",
    )  # fmt: skip
    group.add_argument("--epsilon", type=float, metavar="X", help="of acc_eq, where it was fitted elsewhere")
    group.add_argument(
        "--held-out-epsilon",
        action="store_true",
        help="acc_eq also by an epsilon fitted on the other half",
    )
    group.add_argument(
        "--compat", choices=("mtme", "nlpstats"), help="the numbers of mt-metrics-eval or of nlpstats, seed included"
    )
    group.add_argument("--no-sentinels", action="store_true", help="leave length, copying and chance out")
    group.add_argument("--with-humans", action="store_true", help="keep systems named Human-* and ref-*")
    group.add_argument("--given-length", action="store_true", help="also the partial correlation given length")


def run(arguments: argparse.Namespace) -> int:
    """Judge the metrics and write the table out."""
    if arguments.draws < 0:
        raise UserError(f"--draws is {arguments.draws}, expected 0 or more")
    table, human, columns, specs = _input(arguments)
    if arguments.dry_run:
        emit(arguments, [f"{len(table)} rows; metrics to score: {', '.join(specs) or 'none'}\n"])
        return 0
    with progress(arguments) as bar:
        table = with_metrics(table, specs, resources(arguments, bar))
    names = [*columns, *map(requested_name, specs)]
    for name in arguments.lower or ():
        if name not in table.scores:
            raise UserError(f"--lower {name}: no such column among {', '.join(table.scores)}")
        table = table.with_scores(**{name: -table.scores[name]})
    found = metaevaluate_table(table, human, names, _judging(arguments))
    chosen = format_of(arguments)
    emit(arguments, _lines(arguments, found, chosen))
    if chosen not in ("markdown", "latex"):
        for note in found.notes:
            tell(arguments, f"note: {note}")
    return 0


def _judging(arguments: argparse.Namespace) -> Judging:
    test = "permutation" if arguments.test == "permute-both" else arguments.test
    return Judging(
        level=arguments.level,
        coefficient=arguments.coefficient,
        test=test,
        permute=arguments.permute,
        correction=arguments.correction,
        alpha=arguments.alpha,
        draws=arguments.draws,
        test_draws=arguments.resamples,
        seed=arguments.seed,
        missing=arguments.missing,
        with_sentinels=not arguments.no_sentinels,
        with_humans=arguments.with_humans,
        given_length=arguments.given_length,
        resample=arguments.resample,
        undefined=arguments.undefined,
        tie_tolerance=arguments.tie_tolerance,
        epsilon=arguments.epsilon,
        held_out=arguments.held_out_epsilon,
        compat=arguments.compat,
        early_stop=arguments.early_stop,
    )


def _input(arguments: argparse.Namespace) -> tuple[ScoreTable, str, list[str], list[str]]:
    """Return the table, its human column, the columns that are metrics, and metrics still to be scored."""
    asked = arguments.metrics or []
    human = arguments.human or (MQM if arguments.ratings else None)
    if human is None:
        raise UserError("no human score: name its column with --human")
    known: list[str] = []
    if arguments.sample:
        table = _sample_table(human)
    elif arguments.data is None:
        raise UserError("no input: give a table of scores, or --sample")
    elif Path(arguments.data).is_dir():
        if not arguments.lang_pair:
            raise UserError("a WMT folder needs the language pair: -l en-de")
        table, known = read_wmt(arguments.data, arguments.lang_pair, human)
    else:
        table, known = _file_table(arguments, human, asked)
    if arguments.scores:
        table, more = with_records(table, arguments.scores)
        known = [*known, *more]
    if arguments.ratings:
        table = with_ratings(table, arguments.ratings)
    columns = [name for name in asked if name in known] or ([] if asked else known)
    specs = [name for name in asked if name not in known]
    if not columns and not specs:
        raise UserError("no metric: name columns of the table with --metric")
    return table, human, columns, specs


def _file_table(arguments: argparse.Namespace, human: str, asked: list[str]) -> tuple[ScoreTable, list[str]]:
    columns = read_columns(arguments.data, encoding=arguments.encoding)
    roles = Roles(arguments.system, arguments.segment, arguments.group, arguments.rater)
    names = [name for name in asked if name in columns.values]
    for name in asked if not arguments.scores else ():
        _check_metric(name, columns.values)
    wanted = names if arguments.ratings and human not in columns.values else [human, *names]
    table = score_table(columns, wanted, roles)
    texts = None if arguments.rater else texts_of(columns, roles)
    return replace(table, texts=texts), names


def _check_metric(name: str, columns: Iterable[str]) -> None:
    """Refuse what is neither a column nor a metric that could be asked."""
    if name in columns:
        return
    try:
        load("metric", parse(name).name)
    except (SpecError, UnknownName):
        raise UnknownName.among("column and no metric", name, [*columns, *known("metric")]) from None


def _sample_table(human: str) -> ScoreTable:
    data = sample()
    return ScoreTable(
        name=data.name,
        systems=tuple(entry.system for entry in data.entries),
        segments=tuple(entry.id for entry in data.entries),
        scores={human: data.human(human)},
        lines=tuple(range(1, len(data) + 1)),
        texts=data,
    )


def _lines(arguments: argparse.Namespace, found: MetaEvaluation, chosen: str) -> Iterator[str]:
    rows = [one.row() for one in found]
    if chosen == "jsonl":
        name = "sample" if arguments.sample else Path(arguments.data).name
        yield Header("metaeval", name=name, counts={"metrics": len(rows)}).line()
        yield from (line(finite(row)) for row in rows)  # type: ignore[arg-type]
    elif chosen == "json":
        facts: dict[str, object] = {
            "human": found.human,
            "measure": found.measure,
            "test": found.test,
            "seed": found.seed,
        }
        facts |= {"resample": found.resample, "compat": found.compat}
        facts |= {"alpha": found.alpha, "correction": found.correction, "notes": list(found.notes)}
        tests = [one.row() for one in found.tests]
        yield to_json(json.loads(json.dumps(finite(facts | {"metrics": rows, "tests": tests}))))
    elif chosen in ("tsv", "csv"):
        if not rows:
            raise DataError("nothing to write")
        columns = tuple(rows[0])
        table = Table(columns, tuple(tuple(row[name] for name in columns) for row in rows))
        yield render(table, chosen, decimals=arguments.width, safe=arguments.safe_csv)
    else:
        digits = _DIGITS if arguments.width is None else arguments.width
        table = found.table(digits)
        if chosen == "text":
            table = replace(table, notes=(found.how,))
        yield render(table, chosen, decimals=digits)
        pairs = found.test_table()
        if pairs is not None:
            yield "\n"
            yield render(pairs, chosen, decimals=4)
