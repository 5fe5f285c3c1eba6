"""Tables of `metaeval words` and `metaeval faithfulness`, for people and for programs."""

from collections.abc import Mapping, Sequence

from whyscore.analysis.metaeval.annotators import AnnotationResult
from whyscore.analysis.metaeval.faithfulness import LOW_IS_GOOD, MEASURES, FaithfulnessResult
from whyscore.analysis.metaeval.rows import segment_rows
from whyscore.analysis.metaeval.stability import StabilityResult
from whyscore.analysis.metaeval.words import Decision, SideRanking, SystemResult, WordsResult
from whyscore.data.formats.eval4nlp import Judged
from whyscore.data.tabular import Cell, Table
from whyscore.stats.words import MEASURES as WORD_MEASURES

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
