"""One ranking over several language pairs, by the rule of Eval4NLP 2021 (Fomicheva et al. 2021, Table 6).

1. Each pair has its gold and its submissions. Per side, systems are ranked by AUC, by AP and by recall at K (1 = best,
   equal means share the mean rank); the rank of a pair and side is the mean of the three.
2. A system that gave no scores for a side, or took no part in a pair, is last there: its rank is the number of systems.
3. Bold are the systems that no other beats with a higher mean and p below alpha in a paired t-test over sentences.
4. The overall rank is the mean over pairs, for each side and for both. The paper ranks each pair by itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from whyscore import metaevaluate_words
from whyscore.analysis.metaeval import MetaevalWordsSettings, WordsResult
from whyscore.cli.options import Command, OutputSettings
from whyscore.cli.output import emit_result, tell
from whyscore.data.formats.eval4nlp import SIDES, Gold, Judged, Submission, read_gold, read_submission
from whyscore.errors import DataError
from whyscore.experiments.eval4nlp.data import GoldsSettings
from whyscore.settings import option, takes
from whyscore.stats.words import MEASURES, Measure
from whyscore.types.result import Cell, Record, Result, Table

_SHOWN: dict[Measure, str] = {"auc": "AUC", "ap": "AP", "recall_at_k": "R@K"}
_SCORED = "target.submission"


@dataclass(frozen=True, eq=False, repr=False)
class RankingResult(Result):
    """Systems on several gold sets, and their ranks."""

    pairs: tuple[WordsResult, ...]
    kind: ClassVar[str] = "eval4nlp-ranking"

    @property
    def systems(self) -> tuple[str, ...]:
        """All systems, by their overall rank."""
        names = [system.system for system in self.pairs[0].systems]
        return tuple(sorted(names, key=self.overall))

    def overall(self, system: str, side: Judged | None = None) -> float:
        """Return the mean rank of a system over pairs, on one side or on both."""
        ranks = [
            ranking.mean_rank[system]
            for pair in self.pairs
            for name, ranking in pair.ranking.items()
            if side is None or name == side
        ]
        return sum(ranks) / len(ranks)

    def records(self) -> Iterator[Record]:
        for pair in self.pairs:
            results = {result.system: result for result in pair.systems}
            for side, ranking in pair.ranking.items():
                for system in sorted(results, key=lambda name: ranking.mean_rank[name]):
                    words, sentence = results[system].sides.get(side), results[system].sentence
                    yield {
                        "gold": pair.gold.name, "side": side, "system": system, "n": ranking.n,
                        **{name: None if words is None else words.mean(name) for name in MEASURES},
                        **{f"rank_{name}": ranking.ranks[system][name] for name in MEASURES},
                        "mean_rank": ranking.mean_rank[system],
                        "best": [name for name in MEASURES if system in ranking.best[name]],
                        "pearson": None if sentence is None else sentence.pearson,
                        "reason": "not submitted" if words is None else None,
                    }  # fmt: skip

    def document(self) -> object:
        sides = self._sides
        overall = [
            {
                "system": system,
                "mean_rank": self.overall(system),
                **{side: self.overall(system, side) for side in sides},
            }
            for system in self.systems
        ]
        return {"kind": self.kind, "overall": overall, "records": list(self.records())}

    @property
    def _sides(self) -> list[Judged]:
        return [side for side in SIDES if any(side in pair.ranking for pair in self.pairs)]

    def display_tables(self) -> list[Table]:
        return [self._table(), self._overall()]

    def _table(self) -> Table:
        columns = ("gold", "side", "system", *_SHOWN.values(), "rank", "best group", "Pearson")
        rows: list[tuple[Cell, ...]] = []
        best = set()
        for record in self.records():
            groups = [_SHOWN[name] for name in MEASURES if name in record["best"]]  # type: ignore[operator]
            best |= {(len(rows), name) for name in groups}
            cells = {**record, "best": " ".join(groups)}
            names = ("gold", "side", "system", *MEASURES, "mean_rank", "best", "pearson")
            rows.append(tuple(cells[name] for name in names))  # type: ignore[misc]
        alpha = self.pairs[0].settings.alpha
        notes = (f"best group: no other system is better with p < {alpha:g} ({self._test}, two-sided, over sentences)",)
        return Table(columns, tuple(rows), dict.fromkeys(_SHOWN.values(), True), frozenset(best), notes)

    @property
    def _test(self) -> str:
        return "sign flips" if self.pairs[0].settings.test == "permutation" else "paired t-test"

    def _overall(self) -> Table:
        columns = ["system"]
        parts = [(pair.gold.name, side, ranking) for pair in self.pairs for side, ranking in pair.ranking.items()]
        columns += [f"{name} {side}" for name, side, _ in parts]
        columns += [f"all {side}" for side in self._sides if len(self.pairs) > 1] + ["mean rank"]
        rows: list[tuple[Cell, ...]] = []
        for system in self.systems:
            ranks = [ranking.mean_rank[system] for _, _, ranking in parts]
            ranks += [self.overall(system, side) for side in self._sides if len(self.pairs) > 1]
            rows.append((system, *ranks, self.overall(system)))
        return Table(tuple(columns), tuple(rows), best=frozenset(), title="Mean ranks", decimals=1)


@takes(MetaevalWordsSettings)
def ranking(pairs: Sequence[tuple[Gold, Sequence[Submission]]], *, settings: MetaevalWordsSettings) -> RankingResult:
    """Return the systems of several language pairs by their ranks.

    Args:
        pairs: The gold of each pair and what was handed in for it; one system has one name in all pairs.
        settings: How words are judged and compared.
    """
    names = tuple(dict.fromkeys(submission.name for _, handed_in in pairs for submission in handed_in))
    if len(names) + (1 if settings.baselines else 0) < 2:  # noqa: PLR2004 - nobody to compare with
        raise DataError(f"{len(names)} system cannot be ranked: give two or more, or --baselines")
    ranked = replace(settings, rank=settings.rank or "mean")
    results = []
    for gold, handed_in in pairs:
        by_name = {submission.name: submission for submission in handed_in}
        everybody = [by_name.get(name, Submission(name, {})) for name in names]
        results.append(metaevaluate_words(gold, everybody, settings=ranked))
    return RankingResult(tuple(results))


def find_submissions(gold: str | Path, paths: Sequence[str | Path], *, optional: bool = False) -> list[Submission]:
    """Return what was handed in for a gold folder, by TEAM/PAIR, PAIR.zip in TEAM, or PAIR/TEAM.

    Args:
        gold: A folder whose name is that of the pair.
        paths: Folders of teams; without any, the folders inside the gold folder.
        optional: Whether there may be none.
    """
    root = Path(gold)
    pair = root.resolve().name
    if not paths:
        inside = sorted(place.parent for place in root.glob(f"*/{_SCORED}"))
        if not inside and not optional:
            raise DataError("holds no folder with target.submission: name the teams with --submission", file=str(gold))
        return [read_submission(place) for place in inside]
    submissions = []
    for path in map(Path, paths):
        places = (path / pair, path / f"{pair}.zip", *([] if path.exists() else [root / path]))
        place = next((candidate for candidate in places if candidate.exists()), None)
        if place is not None:
            submissions.append(read_submission(place, name=path.name))
        elif not path.exists() and not any(root.parent.glob(f"*/{path}/{_SCORED}")):
            raise DataError(f"no submission of {path}: expected {path / pair} or {root / path}")
    return submissions


def read_pairs(
    golds: Sequence[str | Path], paths: Sequence[str | Path], *, optional: bool = False
) -> list[tuple[Gold, list[Submission]]]:
    """Return the gold of each folder with the submissions to it; `optional` takes gold without any."""
    return [(read_gold(gold), find_submissions(gold, paths, optional=optional)) for gold in golds]


_RANKING = """\
examples:
  whyscore experiment eval4nlp-ranking en-cs/ km-en/
  whyscore experiment eval4nlp-ranking dev/et-en dev/ro-en --submission TEAM_A/ TEAM_B/ --baselines
"""


@dataclass(frozen=True, kw_only=True)
class HandedInSettings(GoldsSettings):
    """Gold sets and what was handed in for them."""

    TITLE: ClassVar[str] = "input"

    submissions: tuple[str, ...] = option(
        (),
        "folders of teams, each with a folder per language pair (default: the folders inside each gold folder)",
        flags=("--submission", "--submissions"),
        metavar="TEAM",
        basic=True,
    )


@dataclass(frozen=True, kw_only=True)
class RankingCommand(OutputSettings, HandedInSettings, MetaevalWordsSettings):
    """What `eval4nlp-ranking` takes."""


def run_ranking(settings: RankingCommand) -> int:
    """Write one table over all pairs, and the mean ranks."""
    result = ranking(read_pairs(settings.golds, settings.submissions), settings=settings)
    emit_result(result, settings)
    for pair in result.pairs:
        for warning in pair.warnings:
            tell(settings, f"warning: {pair.gold.name}: {warning}")
    return 0


EXPERIMENTS = {
    "eval4nlp-ranking": Command(
        "one ranking of submissions over several language pairs", _RANKING, RankingCommand, run_ranking, ranking
    ),
}  # fmt: skip
