"""Agreement of annotators, and the gold that the majority of their labels makes."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from whyscore.analysis.metaeval import (
    AnnotatorAgreement,
    Annotators,
    MetaevalWordsSettings,
    annotator_agreement,
    annotators_of,
    gold_by_majority,
    gold_of,
    read_annotators,
)
from whyscore.cli.options import Command, FolderSettings
from whyscore.cli.output import emit_result, tell
from whyscore.data.formats.eval4nlp import Gold, read_gold, write_gold
from whyscore.data.reading import read
from whyscore.errors import DataError, UserError
from whyscore.settings import REQUIRED, option
from whyscore.stats.annotators import shares
from whyscore.types.result import Cell, Record, Result, Table

_ANNOTATORS = """\
examples:
  whyscore experiment eval4nlp-annotators annotator1/ annotator2/ annotator3/ --texts dev/et-en -o gold/
  whyscore experiment eval4nlp-annotators annotations.jsonl -o gold/
  whyscore experiment eval4nlp-annotators a.tags b.tags c.tags
"""
_RECORDS = (".jsonl", ".ndjson")


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

    def display_tables(self) -> list[Table]:
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
        for system in self.agreement.ceiling:
            for side in system.sides:
                cells = system.cells(side)
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
        labels = annotators_of(data)
        if labels is None:
            raise DataError("no column 'annotations': expected {annotator, side, tags} or {annotator, score} in it",
                            file=str(paths[0]))  # fmt: skip
        gold = gold_of(data)
    else:
        if len(paths) < 2:  # noqa: PLR2004 - nobody to agree with
            raise UserError(f"{len(paths)} annotator: agreement needs two or more, or one .jsonl with annotations")
        labels = read_annotators(paths)
        gold = gold_by_majority(labels, None if texts is None else read_gold(texts))
    settings = MetaevalWordsSettings(draws=draws)
    return AnnotatorsResult(gold, labels, annotator_agreement(labels, gold, settings))


def run_annotators(settings: AnnotatorsCommand) -> int:
    """Write the agreement; with a folder, also the majority and the shares of annotators as gold files."""
    result = annotators(*settings.annotators, texts=settings.texts)
    emit_result(result, settings)
    if settings.folder is not None:
        by_side = {side: shares(tags) for side, tags in result.annotators.tags.items()}
        written = write_gold(settings.folder, result.gold, by_side)
        tell(settings, f"{settings.folder}: {', '.join(file.name for file in written)}")
    return 0


EXPERIMENTS = {
    "eval4nlp-annotators": Command(
        "agreement of annotators, and the gold their labels make", _ANNOTATORS, AnnotatorsCommand, run_annotators,
        annotators,
    ),
}  # fmt: skip
