"""What `metaeval words` offers beside the measures: decisions, faithfulness, stability, and what a run would cost."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace

from whyscore.analysis.explain import cost
from whyscore.analysis.metaeval import rows
from whyscore.analysis.metaeval.faithfulness import faithfulness
from whyscore.analysis.metaeval.gold import SPLITTER, spread_of
from whyscore.analysis.metaeval.stability import stability
from whyscore.analysis.metaeval.words import Decision, Judging, WordsResult, decide, judge, learnt
from whyscore.cli.setup import resources as resources_of
from whyscore.data.files import read_lines
from whyscore.data.formats.eval4nlp import Gold, Judged, read_gold, read_submission
from whyscore.errors import DataError, UserError
from whyscore.scoring.stack import Resources
from whyscore.stats.words import GAPS
from whyscore.types import Segment

Asked = list[tuple[str, str, str]]
"""Metric, explainer, and what their submission is called."""


def add_decisions(parser: argparse.ArgumentParser) -> None:
    """Add how scores become yes-or-no decisions."""
    group = parser.add_argument_group("decisions")
    group.add_argument("--threshold", type=float, metavar="X", help="call words with a higher score BAD: F1, MCC")
    group.add_argument(
        "--tune-on", nargs="+", metavar="PATH", help="GOLD and one submission per system: learn it there"
    )
    group.add_argument("--oracle-threshold", action="store_true", help="choose it on the judged data; marked as such")
    group.add_argument("--gaps", choices=GAPS, help="gold of 2N+1 tags with gaps: judge words, gaps or both")


def decisions_of(arguments: argparse.Namespace, result: WordsResult, how: Judging) -> dict[str, dict[Judged, Decision]]:
    """Return each system's decisions by the threshold that was given or learnt."""
    given = [arguments.threshold is not None, bool(arguments.tune_on), arguments.oracle_threshold]
    if sum(given) > 1:
        raise UserError("one threshold is enough: give --threshold, --tune-on or --oracle-threshold")
    if not any(given):
        return {}
    if not arguments.tune_on:
        return {one.system: decide(one, arguments.threshold) for one in result.systems}
    gold, *paths = arguments.tune_on
    judged = [one for one in result.systems if not one.baseline]
    if len(paths) != len(judged):
        raise UserError(f"--tune-on takes GOLD and one submission per system: {len(paths)} for {len(judged)} systems")
    dev = read_gold(gold)
    tuned = [learnt(judge(dev, read_submission(path), how)) for path in paths]
    return {one.system: decide(one, own) for one, own in zip(judged, tuned, strict=True)}


def asked_more(
    arguments: argparse.Namespace,
    gold: Gold,
    segments: Sequence[Segment],
    asked: Asked,
    *,
    resources: Resources,
    how: Judging,
) -> dict[str, dict[str, object]]:
    """Return faithfulness and stability of the explainers, by the names of their submissions."""
    if (arguments.faithfulness or arguments.seeds) and not asked:
        raise UserError("--faithfulness and --seeds need explainers: name a metric with -m and explainers with -e")
    extra: dict[str, dict[str, object]] = {name: {} for *_, name in asked}
    for metric in dict.fromkeys(metric for metric, *_ in asked) if arguments.faithfulness else ():
        own = [(explainer, name) for other, explainer, name in asked if other == metric]
        found = faithfulness(
            segments,
            metric,
            [explainer for explainer, _ in own],
            unit=SPLITTER,
            seed=arguments.seed,
            draws=arguments.draws,
            resources=resources,
        )
        for (_, name), one in zip(own, found, strict=True):
            extra[name]["faithfulness"] = rows.faithfulness_row(one)
    for metric, explainer, name in asked if arguments.seeds else ():
        stable = stability(
            segments,
            metric,
            explainer,
            seeds=arguments.seeds,
            unit=SPLITTER,
            seed=arguments.seed,
            resources=resources,
        )
        extra[name]["stability"] = rows.stability_row(stable, spread_of(stable.importances, gold.target, how))
    return extra


def planned(
    arguments: argparse.Namespace, segments: Sequence[Segment], metrics: Sequence[str], explainers: Sequence[str]
) -> Iterator[str]:
    """Yield how many texts each metric would score for each explainer."""
    for metric in metrics:
        for explainer in explainers:
            asked = cost(segments, metric, explainer, resources=resources_of(arguments), unit=SPLITTER)
            told = f"{asked.asked} texts, {asked.distinct} distinct, {asked.stored} already stored"
            yield f"{metric} {explainer}: {told}\n"


def with_references(segments: Sequence[Segment], files: Sequence[str]) -> list[Segment]:
    """Return the texts of the gold with references beside them, one file per set."""
    sets = [read_lines(file).texts for file in files]
    for file, lines in zip(files, sets, strict=True):
        if len(lines) != len(segments):
            raise DataError(f"{file} has {len(lines)} lines, the gold has {len(segments)}: line counts must match")
    rows_of = zip(*sets, strict=True)
    return [replace(segment, references=tuple(own)) for segment, own in zip(segments, rows_of, strict=True)]
