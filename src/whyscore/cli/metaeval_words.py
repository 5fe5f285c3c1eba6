"""`whyscore metaeval words`: word scores judged against the words that people marked."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from whyscore.analysis.metaeval import rows
from whyscore.analysis.metaeval.annotators import (
    AnnotationResult,
    against_shares,
    annotation,
    gold_by_majority,
    read_annotators,
)
from whyscore.analysis.metaeval.gold import (
    Annotators,
    annotators_of,
    explained_submission,
    gold_of,
    segments_of,
    stored_submissions,
)
from whyscore.analysis.metaeval.words import (
    MISMATCHES,
    POOLS,
    RANKINGS,
    Comparing,
    Decision,
    Judging,
    WordsResult,
    metaevaluate_words,
    ungapped,
)
from whyscore.cli.arguments import add_inputs, add_metrics, add_output, add_running
from whyscore.cli.metaeval_extras import (
    Asked,
    add_decisions,
    asked_more,
    decisions_of,
    planned,
    with_references,
)
from whyscore.cli.metaeval_tables import gains_table, ranking_table, segment_table, words_table
from whyscore.cli.output import emit, format_of, tell, tell_signatures, to_json
from whyscore.cli.progress import progress
from whyscore.cli.setup import check_names, dataset, resources
from whyscore.data.explanations import read_explanations
from whyscore.data.formats.eval4nlp import Gold, Judged, Submission, read_gold, read_submission
from whyscore.data.naming import system_names
from whyscore.data.records import Header
from whyscore.data.strict import line
from whyscore.data.tabular import render
from whyscore.errors import UserError
from whyscore.scoring.stack import Resources
from whyscore.stats.words import TESTS, TIES
from whyscore.types import Dataset, Segment

EXAMPLES = """\
examples:
  whyscore metaeval words --gold GOLD --submission TEAM_A TEAM_B.zip --ranking
  whyscore metaeval words --gold GOLD --submission TEAM_A --baselines -f json
  whyscore metaeval words --gold GOLD -m transquest -e erasure 'lime(samples=200)' --baselines
  whyscore metaeval words data.jsonl -m chrf -e erasure lime --baselines --faithfulness --seeds 5
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add gold, submissions, how they are judged, and output."""
    parser.add_argument("--gold", metavar="PATH", help="gold folder or zip of Eval4NLP 2021 or WMT22 task 2")
    parser.add_argument(
        "--submission", "--submissions", dest="submissions", nargs="+", action="extend", metavar="PATH",
        help="submission folders or zips, or explanations.jsonl",
    )  # fmt: skip
    add_metrics(parser)
    parser.add_argument(
        "-e", "--explainers", "--explainer", dest="explainers", nargs="+", action="extend", metavar="SPEC",
        help="explainers to judge on the texts of the gold (default with -m: erasure)",
    )  # fmt: skip
    _add_judging(parser)
    _add_comparing(parser)
    add_decisions(parser)
    add_inputs(parser)
    add_output(parser)
    add_running(parser)


def _add_judging(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("judging")
    group.add_argument("--ties", choices=TIES, default="expected", help="recall at K: words tied at the border")
    group.add_argument("--tie-interval", action="store_true", help="recall at K of the worst and best order too")
    group.add_argument(
        "--on-mismatch", choices=MISMATCHES, default="error", help="sentences with a wrong number of scores"
    )
    group.add_argument("--drop-eos", action="store_true", help="leave out a last word <EOS>")
    group.add_argument("--flip", nargs="*", metavar="NAME", help="turn the scores of these (or all) submissions round")
    group.add_argument("--baselines", action="store_true", help="judge chance, random, length and others too")
    group.add_argument("--logprobs", metavar="PATH", help="log-probabilities of the MT system, as a baseline")
    group.add_argument("--pool", choices=POOLS, default="min", help="of the pieces of a word, for --logprobs")
    group.add_argument("--annotators", nargs="+", metavar="FILE", help="tags of several annotators, a file each")
    group.add_argument("--draws", type=int, default=1000, metavar="N", help="bootstrap samples; 0: no intervals")
    group.add_argument("--segments", action="store_true", help="the numbers of every sentence instead of the means")
    group.add_argument("--faithfulness", action="store_true", help="also ask whether the metric agrees (with -m, -e)")
    group.add_argument("--seeds", type=int, metavar="N", help="also ask whether N seeds agree (with -m, -e)")


def _add_comparing(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("comparing")
    group.add_argument(
        "--rank", "--ranking", dest="rank", nargs="?", const="mean", choices=RANKINGS,
        help="rank the systems: by the mean of their ranks (default), or bt for Bradley-Terry strengths beside it",
    )  # fmt: skip
    group.add_argument("--test", choices=TESTS, help="of differences between systems (default: ttest)")
    group.add_argument("--correct", choices=("none", "holm", "bonferroni"), default="none", help="for many tests")
    group.add_argument("--alpha", type=float, default=0.05, help="level of the tests (default: 0.05)")


@dataclass(frozen=True, eq=False)
class _Found:
    """Everything that was found out, on its way to the output."""

    result: WordsResult
    decisions: dict[str, dict[Judged, Decision]] = field(default_factory=dict)
    annotated: AnnotationResult | None = None
    extra: dict[str, dict[str, object]] = field(default_factory=dict)
    """Per system: further blocks of its record."""


def run(arguments: argparse.Namespace) -> int:
    """Judge everything that was asked for and write it out."""
    check_names(arguments)
    gold, segments, annotators = _gold(arguments)
    how = Judging(arguments.ties, arguments.on_mismatch, arguments.drop_eos, arguments.draws, arguments.seed)
    if arguments.dry_run:
        explainers = arguments.explainers or ["erasure"]
        emit(arguments, planned(arguments, segments, arguments.metrics or [], explainers))
        return 0
    with progress(arguments) as bar:
        held = resources(arguments, bar)
        submissions, asked = _submissions(arguments, gold, segments, held)
        if arguments.gaps:
            gold, submissions = ungapped(gold, submissions, arguments.gaps)
        result = metaevaluate_words(
            gold,
            submissions,
            judging=how,
            comparing=_comparing(arguments),
            flip=arguments.flip,
            baselines=arguments.baselines,
            logprobs=arguments.logprobs,
            pool=arguments.pool,
        )
        extra = asked_more(arguments, gold, segments, asked, resources=held, how=how)
    decisions = decisions_of(arguments, result, how)
    annotated = None if annotators is None else annotation(annotators, gold, how)
    if annotators is not None:
        for one in result.systems:
            extra.setdefault(one.system, {})["continuous"] = rows.continuous_row(against_shares(annotators, one))
    _write(arguments, _Found(result, decisions, annotated, extra))
    return 0


def _gold(arguments: argparse.Namespace) -> tuple[Gold, list[Segment], Annotators | None]:
    """Return the gold, the segments behind it, and the annotators where there are several."""
    given = read_annotators(arguments.annotators) if arguments.annotators else None
    if arguments.gold:
        gold = read_gold(arguments.gold)
        for finding in gold.findings:
            tell(arguments, f"note: {finding}")
        segments = segments_of(gold) if gold.target.words is not None else []
        if arguments.hypotheses or arguments.data:
            segments = list(_texts(arguments).segments)
        elif arguments.references:
            segments = with_references(segments, arguments.references)
        return (gold if given is None else gold_by_majority(given, gold)), segments, given
    if given is not None and not (arguments.data or arguments.hypotheses):
        return gold_by_majority(given), [], given
    if not (arguments.data or arguments.hypotheses or arguments.sample):
        raise UserError("no gold: give --gold GOLD, a data file with spans or tags, or --annotators")
    data = _texts(arguments)
    if given is not None:
        raise UserError("--annotators goes with --gold or alone: a data file brings its own annotations")
    human = arguments.human[0] if arguments.human else None
    return gold_of(data, human=human), list(data.segments), annotators_of(data)


def _texts(arguments: argparse.Namespace) -> Dataset:
    """Return the texts that were given; beside submissions --systems names those, and no part of the texts."""
    named = None if arguments.submissions else arguments.systems
    asked = argparse.Namespace(**{**vars(arguments), "systems": named})
    found = dataset(asked)
    arguments.output = asked.output
    return found


def _submissions(
    arguments: argparse.Namespace, gold: Gold, segments: Sequence[Segment], held: Resources
) -> tuple[list[Submission], Asked]:
    """Return what was handed in and what explainers say, and the explainers with the names of their submissions."""
    paths = arguments.submissions or []
    folders = [path for path in paths if Path(path).suffix not in (".jsonl", ".ndjson")]
    names = system_names(folders, arguments.systems)
    found = [read_submission(path, name=name) for path, name in zip(folders, names, strict=True)]
    for one in found:
        for finding in one.findings:
            tell(arguments, f"note: {finding}")
    for path in paths:
        if path not in folders:
            found += stored_submissions(read_explanations(path), gold.names())
    asked: Asked = []
    for metric in arguments.metrics or []:
        for explainer in arguments.explainers or ["erasure"]:
            if not segments:
                raise UserError("explainers need the texts: give a gold folder that has them, or -t, -s and -r")
            made = explained_submission(segments, metric, explainer, seed=arguments.seed, resources=held)
            found.append(made)
            asked.append((metric, explainer, made.name))
    if arguments.explainers and not arguments.metrics:
        raise UserError("explainers need a metric: name one with -m, for example -m chrf")
    return found, asked


def _comparing(arguments: argparse.Namespace) -> Comparing | None:
    if arguments.rank is None and arguments.test is None and arguments.correct == "none":
        return None
    return Comparing(arguments.rank or "mean", arguments.test or "ttest", arguments.correct, arguments.alpha)


def _write(arguments: argparse.Namespace, found: _Found) -> None:
    chosen = format_of(arguments)
    emit(arguments, _lines(arguments, found, chosen))
    for one in found.result.systems:
        for warning in one.warnings:
            tell(arguments, f"warning: {one.system}: {warning}")
    for side, ranking in found.result.ranking.items():
        for warning in ranking.warnings:
            tell(arguments, f"warning: {side}: {warning}")
    if chosen == "text":
        tell_signatures(arguments, [found.result.signature])


def _lines(arguments: argparse.Namespace, found: _Found, chosen: str) -> Iterator[str]:
    if chosen in ("json", "jsonl"):
        yield from _records(arguments, found, chosen)
        return
    options = {"decimals": arguments.width, "safe": arguments.safe_csv}
    if arguments.segments:
        yield render(segment_table(found.result), chosen, **options)
        return
    people = chosen not in ("tsv", "csv")
    yield render(
        words_table(found.result, found.decisions, found.extra, found.annotated, people=people), chosen, **options
    )
    gains = gains_table(found.extra) if people else None
    if gains is not None:
        yield "\n" + render(gains, chosen, **options)
    for side, ranking in found.result.ranking.items() if people else ():
        yield "\n" + render(ranking_table(side, ranking), chosen, **options)


def _records(arguments: argparse.Namespace, found: _Found, chosen: str) -> Iterator[str]:
    records = list(rows.segment_rows(found.result)) if arguments.segments else list(_systems(arguments, found))
    more: dict[str, object] = {}
    if not arguments.segments:
        if found.result.ranking:
            more["ranking"] = rows.ranking_row(found.result.ranking)
        if found.annotated is not None:
            more["annotators"] = rows.annotation_row(found.annotated)
    if chosen == "json":
        if len(records) == 1 and not arguments.segments:
            yield to_json(records[0] | more)
        else:
            yield to_json({"schema_version": 1, "kind": "words", "records": records} | more)
        return
    counts = {"segments": len(found.result.gold), "systems": len(found.result.systems)}
    signatures = {"words": str(found.result.signature)}
    yield Header("words", signatures, name=found.result.gold.name, counts=counts).line()
    yield from map(line, records)
    yield from (line({"kind": "words", "block": key, key: value}) for key, value in more.items())


def _systems(arguments: argparse.Namespace, found: _Found) -> Iterator[dict[str, object]]:
    for one in found.result.systems:
        row = rows.system_row(found.result, one, tie_interval=arguments.tie_interval)
        if one.system in found.decisions:
            row["decisions"] = rows.decision_row(found.decisions[one.system])
        yield row | found.extra.get(one.system, {})
