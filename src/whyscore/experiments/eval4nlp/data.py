"""The data of a word-level shared task in numbers, and labels from post-edits (Fomicheva et al. 2021, Eval4NLP 2021).

Statistics, one row per gold set:

1. Sentences, words of both sides, and the share of the words that are marked.
2. Sentences without any marked word, and runs of marked words (error spans) in the target.
3. Mean and standard deviation of the sentence scores, and their Pearson correlation with the share of marked target
   words: a score that annotators explain by errors falls where there are more of them.
4. How many sentence scores lie in each tenth of the scale from 0 to 100.

Labels from post-edits ("Ann-PE"), as in MLQE-PE (Fomicheva et al. 2022, arXiv 2010.04480), where `X.pe` is there:

1. Align MT and post-edit by their edit distance over words, without shifts. A word of the MT that is substituted or
   taken out is 1, all others 0; words that the post-editor put in have no place in tags without gaps.
2. With links between source and MT (`X.src-mt.alignments`), a source word is 1 if one of its links goes to a word with
   1. One without links is 1 where the post-editor put words in: it may be what was missing. MLQE-PE links source and
   post-edit instead, which these files do not hold, so labels of the source agree less.
3. Both are compared with the tags of the gold: kappa per sentence and pooled, and F1 of the marked words.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from whyscore.cli.options import Command, FolderSettings
from whyscore.cli.output import emit_result, tell
from whyscore.data.formats.eval4nlp import SIDES, SPLITTER, Gold, GoldSide, Judged, lines_beside, read_gold, write_gold
from whyscore.errors import DataError
from whyscore.metrics.lexical.edits import alignment
from whyscore.models.maps import Link, read_links
from whyscore.report.figures import load_package, save_chart
from whyscore.settings import REQUIRED, option
from whyscore.stats.annotators import PairAgreement, agreement
from whyscore.stats.coefficients import pearson
from whyscore.stats.words import Ragged, confusion
from whyscore.types.result import Cell, Record, Result, Table

if TYPE_CHECKING:
    from whyscore.report.figures import Chart


_ALIGNMENTS = "src-mt.alignments"
_EDGES = np.arange(0, 101, 10)


class PostEdits(NamedTuple):
    """Labels from post-edits, by side, and how far they agree with the tags of the gold."""

    labels: Mapping[Judged, Ragged]
    agreements: Mapping[Judged, PairAgreement]
    f1: Mapping[Judged, float]


@dataclass(frozen=True, eq=False)
class GoldStatistics:
    """The numbers of one gold set."""

    gold: Gold
    post_edits: PostEdits | None

    def record(self) -> Record:
        """Return the numbers, None where the set does not hold what they need."""
        gold = self.gold
        counts: dict[str, object] = {"gold": gold.name, "sentences": len(gold)}
        for side in SIDES:
            marked, words = gold.side(side), gold.words(side)
            lengths = None if words is None else np.array([*map(len, words)])
            lengths = lengths if marked is None else marked.tags.lengths
            counts[f"{side}_words"] = None if lengths is None else int(lengths.sum())
            counts[f"{side}_marked"] = None if marked is None else float(np.sort(marked.tags.values).mean())
            counts[f"{side}_without_error"] = None if marked is None else int((marked.tags.sums() == 0).sum())
        counts["target_spans"] = sum(int((np.diff(row, prepend=0) == 1).sum()) for row in gold.target.tags.rows())
        scores = gold.sentence
        ratings = None if scores is None else np.sort(scores[~np.isnan(scores)])
        counts["score_mean"] = None if ratings is None else float(ratings.mean())
        counts["score_sd"] = None if ratings is None else float(ratings.std(ddof=1))
        shares = gold.target.tags.sums() / np.maximum(gold.target.tags.lengths, 1)
        counts["score_errors_pearson"] = None
        if scores is not None:
            order = np.lexsort([shares, scores])  # sums in another order differ in the last digit
            counts["score_errors_pearson"] = float(pearson(scores[order], shares[order]))
        return counts

    def histogram(self) -> list[int] | None:
        """Return how many sentence scores lie in each tenth from 0 to 100; None where they are on another scale."""
        scores = self.gold.sentence
        if scores is None or np.isnan(scores).any() or scores.min() < _EDGES[0] or scores.max() > _EDGES[-1]:
            return None
        counts, _ = np.histogram(scores, _EDGES)
        return [int(count) for count in counts]


@dataclass(frozen=True, eq=False, repr=False)
class DataResult(Result):
    """Statistics of gold sets."""

    sets: tuple[GoldStatistics, ...]
    kind: ClassVar[str] = "eval4nlp-data"

    def records(self) -> Iterator[Record]:
        for gold_set in self.sets:
            edits = gold_set.post_edits
            labels = None if edits is None else {
                side: {**kappas._asdict(), "f1": edits.f1[side]} for side, kappas in edits.agreements.items()
            }  # fmt: skip
            yield {**gold_set.record(), "score_histogram": gold_set.histogram(), "post_edits": labels}

    def tables(self, *, long: bool = False) -> list[Table]:
        first = Table.of(gold_set.record() for gold_set in self.sets)
        if long:
            return [first]
        statistics = [gold_set.record() for gold_set in self.sets]
        rows = [(name, *(statistic[name] for statistic in statistics)) for name in first.columns[1:]]
        names = tuple(gold_set.gold.name for gold_set in self.sets)
        tables = [Table(("", *names), tuple(rows), best=frozenset(), title="Data")]  # type: ignore[arg-type]
        tables += [self._scores()] if any(gold_set.histogram() for gold_set in self.sets) else []
        return tables + ([self._labels()] if any(gold_set.post_edits for gold_set in self.sets) else [])

    def _scores(self) -> Table:
        unknown: list[int | None] = [None] * (len(_EDGES) - 1)
        columns = [gold_set.histogram() or unknown for gold_set in self.sets]
        rows: list[tuple[Cell, ...]] = []
        for k, counts in enumerate(zip(*columns, strict=True)):
            rows.append((f"{_EDGES[k]}-{_EDGES[k + 1]}", *counts))
        names = (gold_set.gold.name for gold_set in self.sets)
        return Table(("score", *names), tuple(rows), best=frozenset(), title="Sentence scores")

    def _labels(self) -> Table:
        rows: tuple[tuple[Cell, ...], ...] = tuple(
            (gold_set.gold.name, side, kappas.sentence, kappas.pooled, gold_set.post_edits.f1[side])
            for gold_set in self.sets
            if gold_set.post_edits is not None
            for side, kappas in gold_set.post_edits.agreements.items()
        )
        columns = ("gold", "side", "kappa per sentence", "kappa pooled", "F1")
        return Table(columns, rows, best=frozenset(), title="Labels from post-edits against the gold")

    def write(self, folder: str | Path, *, figures: bool = True) -> list[Path]:
        """Return the files written: labels from post-edits as gold folders, and the figure of the sentence scores."""
        written = []
        for gold_set in self.sets:
            if gold_set.post_edits is not None:
                sides = {
                    side: GoldSide(labels, "post-edits", gold_set.gold.words(side))
                    for side, labels in gold_set.post_edits.labels.items()
                }
                gold = replace(gold_set.gold, target=sides["target"], source=sides.get("source"))
                written += write_gold(Path(folder) / gold_set.gold.name, gold)
        rows = [
            {"set": gold_set.gold.name, "from": int(_EDGES[k]), "sentences": count}
            for gold_set in self.sets
            for k, count in enumerate(gold_set.histogram() or ())
        ]
        return written + (save_chart(_chart(rows), folder, "scores", caption=_CAPTION) if figures and rows else [])


_CAPTION = "Sentence scores of each gold set, counted in tenths of the scale."


def statistics(golds: Sequence[Gold]) -> DataResult:
    """Return the numbers of gold sets, with labels from post-edits where these are there."""
    if not golds:
        raise DataError("no gold set: give one or more gold folders")
    return DataResult(tuple(GoldStatistics(gold, post_edit_labels(gold)) for gold in golds))


def post_edit_labels(gold: Gold) -> PostEdits | None:
    """Return labels from the post-edits beside the tags of a gold folder; None where there are none."""
    edited, words = lines_beside(gold, "pe"), gold.target.words
    if edited is None or words is None:
        return None
    target, inserted = [], []
    for translated, text in zip(words, edited, strict=True):
        operations = alignment(list(translated), list(SPLITTER.split(text)))
        target.append([float(operation != " ") for operation in operations if operation != "i"])
        inserted.append("i" in operations)
    labels: dict[Judged, Ragged] = {"target": Ragged.of(target)}
    links, sources = gold_links(gold), gold.words("source")
    if links is not None and sources is not None:
        rows = zip(map(len, sources), links, target, inserted, strict=True)
        labels["source"] = Ragged.of([_source(*row) for row in rows])
    tags = {side: marked.tags for side in labels if (marked := gold.side(side)) is not None}
    agreements = {side: agreement(tag, labels[side]) for side, tag in tags.items()}
    f1 = {side: confusion(tag.values, labels[side].values > 0).f1_bad for side, tag in tags.items()}
    return PostEdits(labels, agreements, f1)


def gold_links(gold: Gold) -> list[tuple[Link, ...]] | None:
    """Return the links between source and MT beside the tags; one that points nowhere is an error."""
    lines, sources, targets = lines_beside(gold, _ALIGNMENTS), gold.words("source"), gold.target.words
    if lines is None or sources is None or targets is None:
        return None
    file = str(Path(gold.target.file).with_suffix(f".{_ALIGNMENTS}"))
    links = read_links(lines, file=file)
    for line, (here, there, pairs) in enumerate(zip(sources, targets, links, strict=True), start=1):
        for source, target in pairs:
            if source >= len(here) or target >= len(there):
                lengths = f"{len(here)} and {len(there)} words"
                raise DataError(f"the link {source}-{target} points outside texts of {lengths}", file=file, line=line)
    return links


def _source(words: int, links: Sequence[Link], target: Sequence[float], inserted: bool) -> list[float]:  # noqa: FBT001 - a row
    """Return the labels of the source words by those of the words they are linked to."""
    linked: list[list[float]] = [[] for _ in range(words)]
    for source, place in links:
        linked[source].append(target[place])
    return [max(labels) if labels else float(inserted) for labels in linked]


def _chart(rows: Sequence[Mapping[str, object]]) -> "Chart":
    alt = load_package("altair")
    base = alt.Chart({"values": list(rows)}).transform_calculate(to="datum.from + 10").properties(width=220, height=140)
    bars = base.mark_bar(color="#0072b2").encode(
        x=alt.X("from:Q", bin="binned", title="score"), x2="to:Q", y=alt.Y("sentences:Q", title="sentences")
    )
    chart: Chart = bars.facet(facet=alt.Facet("set:N", title=None), columns=2)
    return chart


_DATA = """\
examples:
  whyscore experiment eval4nlp-data dev/et-en dev/ro-en
  whyscore experiment eval4nlp-data dev/et-en -o post-edits/
"""


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


EXPERIMENTS = {
    "eval4nlp-data": Command(
        "statistics of word-level gold data, and labels from post-edits", _DATA, DataCommand, run_data, statistics
    ),
}  # fmt: skip
