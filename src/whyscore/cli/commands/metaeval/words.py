"""`whyscore metaeval words`: word scores judged against the words that people marked.

What `metaeval words` offers beside the measures: decisions, faithfulness, stability, and what a run would cost.

Tables of `metaeval words` and `metaeval faithfulness`, for people and for programs.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from whyscore.analysis.explain import cost
from whyscore.analysis.metaeval import rows
from whyscore.analysis.metaeval.annotators import (
    AnnotationResult,
    against_shares,
    annotation,
    gold_by_majority,
    read_annotators,
)
from whyscore.analysis.metaeval.faithfulness import LOW_IS_GOOD, MEASURES, FaithfulnessResult, faithfulness
from whyscore.analysis.metaeval.gold import (
    SPLITTER,
    Annotators,
    annotators_of,
    explained_submission,
    gold_of,
    segments_of,
    spread_of,
    stored_submissions,
)
from whyscore.analysis.metaeval.rows import segment_rows
from whyscore.analysis.metaeval.stability import StabilityResult, stability
from whyscore.analysis.metaeval.words import (
    MISMATCHES,
    POOLS,
    RANKINGS,
    Comparing,
    Decision,
    Judging,
    SideRanking,
    SystemResult,
    WordsResult,
    decide,
    judge,
    learnt,
    metaevaluate_words,
    ungapped,
)
from whyscore.cli.legacy import check_names, dataset, progress, resources
from whyscore.cli.legacy import resources as resources_of
from whyscore.cli.options import Parser, add_inputs, add_metrics, add_output, add_running
from whyscore.cli.output import emit, format_of, tell, tell_signatures, to_json
from whyscore.data.explanations import read_explanations
from whyscore.data.files import read_lines
from whyscore.data.formats.eval4nlp import Gold, Judged, Submission, read_gold, read_submission
from whyscore.data.naming import system_names
from whyscore.data.records import Header
from whyscore.errors import DataError, UserError
from whyscore.present import render
from whyscore.scoring.stack import Resources
from whyscore.stats.words import GAPS, TESTS, TIES
from whyscore.stats.words import MEASURES as WORD_MEASURES
from whyscore.text.strict import line
from whyscore.types import Dataset, Segment
from whyscore.types.table import Cell, Table

Asked = list[tuple[str, str, str]]
"""Metric, explainer, and what their submission is called."""


def add_decisions(parser: Parser) -> None:
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


_SHOWN = {"auc": "AUC", "ap": "AP", "recall_at_k": "R@K"}
_NAMES = {
    "comprehensiveness_plus": "compreh. +",
    "comprehensiveness_minus": "compreh. -",
    "sufficiency": "sufficiency",
    "deletion": "deletion",
    "insertion": "insertion",
}
_LOW = " and ".join(_NAMES[measure] for measure in LOW_IS_GOOD)
_GAINS = f"gains over random order, share of the whole effect; above 0 is good, for {_LOW} too"

Decisions = Mapping[str, Mapping[Judged, Decision]]
Extra = Mapping[str, Mapping[str, object]]


def words_table(
    result: WordsResult, decisions: Decisions, extra: Extra, annotated: AnnotationResult | None, *, people: bool
) -> Table:
    """Return systems x sides with their numbers; annotators, as the ceiling, stand above the systems."""
    systems = [*(annotated.ceiling if annotated is not None else ()), *result.systems]
    names = [*_SHOWN.values()] if people else [*WORD_MEASURES]
    columns = ["system", "side", "n", "n_eval", *names]
    if not people:
        columns += ["recall_at_k_legacy", "ties"] + [f"{measure}_{end}" for measure in names for end in ("low", "high")]
    columns += ["pearson", "spearman"]
    columns += ["threshold", "f1_bad", "f1_ok", "mcc"] if decisions else []
    columns += ["stability"] if any("stability" in own for own in extra.values()) else []
    rows: list[tuple[Cell, ...]] = []
    best: set[tuple[int, str]] = set()
    for one in systems:
        for side in one.sides:
            rows.append(_row(one, side, columns, decisions, extra))
            for measure, shown in _SHOWN.items() if people and side in result.ranking else ():
                if one.system in result.ranking[side].best.get(measure, ()):  # type: ignore[call-overload]
                    best.add((len(rows) - 1, shown))
    return Table(
        tuple(columns),
        tuple(rows),
        dict.fromkeys((*names, *(("mcc",) if decisions else ())), True),
        frozenset(best),
        _notes(result, annotated) if people else (),
    )


def _row(
    one: SystemResult, side: Judged, columns: Sequence[str], decisions: Decisions, extra: Extra
) -> tuple[Cell, ...]:
    cells: dict[str, Cell] = {"system": one.system, "side": side}
    own = one.sides[side]
    if own is not None:
        cells |= {"n": own.n, "n_eval": own.n_eval, "ties": own.ties}
        cells |= {name: own.mean(measure) for measure, shown in _SHOWN.items() for name in (measure, shown)}
        cells["recall_at_k_legacy"] = own.mean("recall_at_k_legacy")
        for measure, estimate in own.estimates.items():
            cells |= {f"{measure}_low": estimate.low, f"{measure}_high": estimate.high}
    if one.sentence is not None and side == "target":
        cells |= {"pearson": one.sentence.pearson, "spearman": one.sentence.spearman}
    decision = decisions.get(one.system, {}).get(side)
    if decision is not None:
        counts = decision.counts
        cells |= {"threshold": decision.threshold, "f1_bad": counts.f1_bad, "f1_ok": counts.f1_ok, "mcc": counts.mcc}
    stable = extra.get(one.system, {}).get("stability")
    if isinstance(stable, dict):
        cells["stability"] = stable.get("spearman")
    return tuple(cells.get(column) for column in columns)


def _notes(result: WordsResult, annotated: AnnotationResult | None) -> tuple[str, ...]:
    notes = []
    baselines = [one.system for one in result.systems if one.baseline]
    if baselines:
        notes.append(f"baselines: {', '.join(baselines)}")
    if annotated is not None:
        for side in annotated.pairs:
            told = f"kappa {annotated.kappa(side):.3f} per sentence, {annotated.kappa(side, 'pooled'):.3f} pooled"
            notes.append(f"{len(annotated.names)} annotators, {side}: {told}")
    for side in dict.fromkeys(side for one in result.systems for side in one.sides):
        own = next((found for one in result.systems if (found := one.sides.get(side)) is not None), None)
        if own is not None:
            left = ", ".join(f"{count} {reason}" for reason, count in own.dropped.items() if count)
            notes.append(f"{side}: {own.n_eval} of {own.n} sentences judged; left out: {left or 'none'}")
    return tuple(notes)


def gains_table(extra: Extra) -> Table | None:
    """Return how faithful explainers are, where that was asked beside the words: gains over random order."""
    rows: list[tuple[Cell, ...]] = []
    for name, own in extra.items():
        found = own.get("faithfulness")
        if isinstance(found, dict):
            gains = [found["measures"][measure]["gain"]["value"] for measure in MEASURES]
            rows.append((name, found["n"], *gains))
    return Table(("system", "n", *(_NAMES[m] for m in MEASURES)), tuple(rows), notes=(_GAINS,)) if rows else None


def ranking_table(side: str, ranking: SideRanking) -> Table:
    """Return the systems of one side by their mean rank."""
    order = sorted(ranking.mean_rank, key=lambda name: ranking.mean_rank[name])
    columns = ("system", *(f"rank {shown}" for shown in _SHOWN.values()), "mean rank")
    if ranking.strengths:
        columns += tuple(f"BT {_SHOWN[measure]}" for measure in ranking.strengths)
    rows: list[tuple[Cell, ...]] = []
    for name in order:
        cells: tuple[Cell, ...] = (name, *ranking.ranks[name].values(), ranking.mean_rank[name])
        strengths = [own.get(name) for own in ranking.strengths.values()]
        rows.append((*cells, *(None if one is None else one.value for one in strengths)))
    told = [f"{_SHOWN[measure]} {', '.join(names)}" for measure, names in ranking.best.items()]
    notes = (f"{side}, {ranking.n} sentences in common; best group: {'; '.join(told)}",)
    return Table(columns, tuple(rows), notes=notes, best=frozenset())


def segment_table(result: WordsResult) -> Table:
    """Return one row per system, side and sentence."""
    columns = ("id", "system", "side", "n_tokens", "n_errors", *WORD_MEASURES, "reason")
    rows = [tuple(row.get(column) for column in columns) for row in segment_rows(result)]
    return Table(columns, tuple(rows))  # type: ignore[arg-type]


def faithfulness_table(
    results: Sequence[FaithfulnessResult], stable: Sequence[StabilityResult], *, people: bool
) -> Table:
    """Return explainers x measures: gains over random order for people, everything for programs."""
    columns = ["explainer", "n"] + [_NAMES[measure] for measure in MEASURES]
    if not people:
        columns = ["explainer", "n", "flat", "failed"]
        columns += [
            f"{measure}_{what}" for measure in MEASURES for what in ("raw", "normalised", "gain", "low", "high")
        ]
    columns += ["spearman", "top_word", "jaccard"] if stable else []
    rows: list[tuple[Cell, ...]] = []
    for number, one in enumerate(results):
        cells: list[Cell] = [one.explainer, one.n]
        cells += [] if people else [one.flat, one.failed]
        for own in one.measures.values():
            whole: list[Cell] = [own.raw, own.normalised, own.gain.value, own.gain.low, own.gain.high]
            cells += [own.gain.value] if people else whole
        if stable:
            cells += [stable[number].spearman, stable[number].top_word, stable[number].jaccard]
        rows.append(tuple(cells))
    directed = [_NAMES[measure] for measure in MEASURES] if people else []
    return Table(tuple(columns), tuple(rows), dict.fromkeys(directed, True), notes=(_GAINS,) if people else ())


EXAMPLES = """\
examples:
  whyscore metaeval words --gold GOLD --submission TEAM_A TEAM_B.zip --ranking
  whyscore metaeval words --gold GOLD --submission TEAM_A --baselines -f json
  whyscore metaeval words --gold GOLD -m transquest -e erasure 'lime(samples=200)' --baselines
  whyscore metaeval words data.jsonl -m chrf -e erasure lime --baselines --faithfulness --seeds 5
"""


def add_arguments(parser: Parser) -> None:
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


def _add_judging(parser: Parser) -> None:
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


def _add_comparing(parser: Parser) -> None:
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
