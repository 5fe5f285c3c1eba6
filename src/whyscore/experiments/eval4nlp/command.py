"""The organisers' side of Eval4NLP 2021 as commands: data, annotators, ranking, categories of errors."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from whyscore.analysis.metaeval.annotators import (
    Annotators,
    annotator_agreement,
    annotators_of,
    gold_by_majority,
    gold_of,
    read_annotators,
)
from whyscore.analysis.metaeval.result import AnnotatorAgreement
from whyscore.analysis.metaeval.settings import MetaevalWordsSettings
from whyscore.cli.options import FolderSettings, OutputSettings
from whyscore.cli.output import emit_result, tell
from whyscore.data.formats.eval4nlp import Gold, read_gold, write_gold
from whyscore.data.reading import read
from whyscore.errors import DataError, UserError
from whyscore.experiments.catalogue import Experiment
from whyscore.experiments.eval4nlp.categories import categories
from whyscore.experiments.eval4nlp.data import statistics
from whyscore.experiments.eval4nlp.ranking import ranking, read_pairs
from whyscore.settings import REQUIRED, option
from whyscore.stats.annotators import shares
from whyscore.types.result import Record, Result
from whyscore.types.table import Cell, Table

_DATA = """\
examples:
  whyscore experiment eval4nlp-data dev/et-en dev/ro-en
  whyscore experiment eval4nlp-data dev/et-en -o post-edits/
"""
_ANNOTATORS = """\
examples:
  whyscore experiment eval4nlp-annotators annotator1/ annotator2/ annotator3/ --texts dev/et-en -o gold/
  whyscore experiment eval4nlp-annotators annotations.jsonl -o gold/
  whyscore experiment eval4nlp-annotators a.tags b.tags c.tags
"""
_RANKING = """\
examples:
  whyscore experiment eval4nlp-ranking en-cs/ km-en/
  whyscore experiment eval4nlp-ranking dev/et-en dev/ro-en --submission TEAM_A/ TEAM_B/ --baselines
"""
_CATEGORIES = """\
examples:
  whyscore experiment eval4nlp-categories dev/et-en dev/ro-en --submission TEAM_A/ TEAM_B/
"""
_RECORDS = (".jsonl", ".ndjson")


@dataclass(frozen=True, kw_only=True)
class GoldsSettings:
    """Gold sets, one per language pair."""

    TITLE: ClassVar[str] = "input"

    golds: tuple[str, ...] = option(
        REQUIRED, "gold folders, each named after its language pair", positional=True, metavar="GOLD", basic=True
    )


@dataclass(frozen=True, kw_only=True)
class DataCommand(FolderSettings, GoldsSettings):
    """What `eval4nlp-data` takes."""

    no_figures: bool = option(False, "write the labels alone", basic=True)


def run_data(settings: DataCommand) -> int:
    """Write the statistics; with a folder, also labels from post-edits and the figure."""
    result = statistics([read_gold(path) for path in settings.golds])
    emit_result(result, settings)
    if settings.folder is not None:
        written = result.write(settings.folder, figures=not settings.no_figures)
        tell(settings, f"{len(written)} files in {settings.folder}")
    return 0


@dataclass(frozen=True, kw_only=True)
class AnnotatorsCommand(FolderSettings, MetaevalWordsSettings):
    """What `eval4nlp-annotators` takes."""

    TITLE: ClassVar[str] = "input"

    annotators: tuple[str, ...] = option(
        REQUIRED,
        "a gold folder or a file of tags per annotator, or one .jsonl with annotations",
        positional=True,
        metavar="PATH",
        basic=True,
    )
    texts: str | None = option(None, "a gold folder whose texts go with the labels", metavar="GOLD", basic=True)


@dataclass(frozen=True, eq=False, repr=False)
class AnnotatorsResult(Result):
    """Agreement of annotators, and the gold that their labels make."""

    gold: Gold
    annotators: Annotators
    agreement: AnnotatorAgreement
    kind: ClassVar[str] = "eval4nlp-annotators"

    def records(self) -> Iterator[Record]:
        for side, pairs in self.agreement.pairs.items():
            for names, pair in pairs.items():
                yield {"side": side, "first": names[0], "second": names[1], **pair._asdict(), "pearson": None}
        for names, value in self.agreement.scores.items():
            yield {"side": "sentence", "first": names[0], "second": names[1], "pearson": value}

    def document(self) -> object:
        return {"kind": self.kind, "sentences": len(self.gold), **self.agreement.record()}

    def tables(self, *, long: bool = False) -> list[Table]:
        if long:
            return [Table.of(self.records())]
        columns = ("side", "annotators", "kappa per sentence", "kappa pooled", "n", "left out", "Pearson")
        rows: list[tuple[Cell, ...]] = []
        for side, pairs in self.agreement.pairs.items():
            rows += [(side, " ".join(names), *pair, None) for names, pair in pairs.items()]
            rows.append((side, "mean", self.agreement.kappa(side), self.agreement.kappa(side, "pooled"), *[None] * 3))
        for names, value in self.agreement.scores.items():
            rows.append(("sentence", " ".join(names), None, None, None, None, value))
        if self.agreement.scores:
            rows.append(("sentence", "mean", None, None, None, None, self.agreement.pearson))
        agreed = Table(columns, tuple(rows), best=frozenset(), title="Agreement of annotators")
        ceiling: list[tuple[Cell, ...]] = []
        for one in self.agreement.ceiling:
            for side in one.sides:
                cells = one.cells(side)
                ceiling.append(tuple(cells.get(name) for name in ("system", "side", "n_eval", "AUC", "AP", "R@K")))
        title = "Each annotator against the majority of the others"
        shown = ("annotator", "side", "n_eval", "AUC", "AP", "R@K")
        return [agreed, Table(shown, tuple(ceiling), best=frozenset(), title=title)]


def annotators(*paths: str | Path, texts: str | Path | None = None, draws: int = 0) -> AnnotatorsResult:
    """Return how far annotators agree, and their majority.

    Args:
        paths: A gold folder or a file of tags per annotator, or one file of records with `annotations`.
        texts: A gold folder whose texts go with the labels.
        draws: Bootstrap samples of the intervals of the ceiling.
    """
    if len(paths) == 1 and Path(paths[0]).suffix in _RECORDS:
        data = read(paths[0])
        found = annotators_of(data)
        if found is None:
            raise DataError("no column 'annotations': expected {annotator, side, tags} or {annotator, score} in it",
                            file=str(paths[0]))  # fmt: skip
        gold = gold_of(data)
    else:
        if len(paths) < 2:  # noqa: PLR2004 - nobody to agree with
            raise UserError(f"{len(paths)} annotator: agreement needs two or more, or one .jsonl with annotations")
        found = read_annotators(paths)
        gold = gold_by_majority(found, None if texts is None else read_gold(texts))
    settings = MetaevalWordsSettings(draws=draws)
    return AnnotatorsResult(gold, found, annotator_agreement(found, gold, settings))


def run_annotators(settings: AnnotatorsCommand) -> int:
    """Write the agreement; with a folder, also the majority and the shares of annotators as gold files."""
    result = annotators(*settings.annotators, texts=settings.texts)
    emit_result(result, settings)
    if settings.folder is not None:
        by_side = {side: shares(tags) for side, tags in result.annotators.tags.items()}
        written = write_gold(settings.folder, result.gold, by_side)
        tell(settings, f"{settings.folder}: {', '.join(file.name for file in written)}")
    return 0


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


@dataclass(frozen=True, kw_only=True)
class CategoriesCommand(OutputSettings, HandedInSettings):
    """What `eval4nlp-categories` takes."""


def run_categories(settings: CategoriesCommand) -> int:
    """Write which kinds of words are marked, and which of them the systems find."""
    emit_result(categories(read_pairs(settings.golds, settings.submissions, optional=True)), settings)
    return 0


EXPERIMENTS = {
    "eval4nlp-data": Experiment(
        "statistics of word-level gold data, and labels from post-edits", _DATA, DataCommand, run_data, statistics
    ),
    "eval4nlp-annotators": Experiment(
        "agreement of annotators, and the gold their labels make", _ANNOTATORS, AnnotatorsCommand, run_annotators,
        annotators,
    ),
    "eval4nlp-ranking": Experiment(
        "one ranking of submissions over several language pairs", _RANKING, RankingCommand, run_ranking, ranking
    ),
    "eval4nlp-categories": Experiment(
        "which kinds of words are marked, and which of them systems find", _CATEGORIES, CategoriesCommand,
        run_categories, categories,
    ),
}  # fmt: skip
