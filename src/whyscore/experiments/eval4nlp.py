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

Categories of errors without labels: what kind of word is marked, and which kinds the systems find.

The shared task marks words as wrong and does not say why. This is what the texts alone can tell. Each
word has the first category that fits:

| category | a word that |
|---|---|
| `punctuation` | has no letter and no digit |
| `number` | has a digit |
| `repeated` | equals the word before it, in any case |
| `copied` | stands in the other text, in any case: a name, or untranslated |
| `unlinked` | has no link to the other text (`X.src-mt.alignments`): added, or in the source left out |
| `capitalised` | begins with a capital letter inside the sentence: a name |
| `rare`, `frequent` | is above the median surprisal of the words left, or not (`models.surprisal`) |

For every category: its words, the share of them that is marked, and for every system the share of the marked ones that
are among the K highest scores of their sentence, K being the number of marked words (recall at K by category); words
that are tied at the border count with the share of the places left.

One ranking over several language pairs, by the rule of Eval4NLP 2021 (Fomicheva et al. 2021, Table 6).

1. Each pair has its gold and its submissions. Per side, systems are ranked by AUC, by AP and by recall at K (1 = best,
   equal means share the mean rank); the rank of a pair and side is the mean of the three.
2. A system that gave no scores for a side, or took no part in a pair, is last there: its rank is the number of systems.
3. Bold are the systems that no other beats with a higher mean and p below alpha in a paired t-test over sentences.
4. The overall rank is the mean over pairs, for each side and for both. The paper ranks each pair by itself.

The organisers' side of Eval4NLP 2021 as commands: data, annotators, ranking, categories of errors.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, get_args

import numpy as np

from whyscore import metaevaluate_words
from whyscore.analysis.metaeval import (
    AnnotatorAgreement,
    Annotators,
    MetaevalWordsSettings,
    WordsResult,
    annotator_agreement,
    annotators_of,
    gold_by_majority,
    gold_of,
    read_annotators,
)
from whyscore.cli.options import Command, FolderSettings, OutputSettings
from whyscore.cli.output import emit_result, tell
from whyscore.data.formats.eval4nlp import (
    SIDES,
    SPLITTER,
    Gold,
    GoldSide,
    Judged,
    Submission,
    lines_beside,
    read_gold,
    read_submission,
    write_gold,
)
from whyscore.data.reading import read
from whyscore.errors import DataError, UserError
from whyscore.metrics.lexical.edits import alignment
from whyscore.models.maps import Link, read_links
from whyscore.models.surprisal import piece_surprisal
from whyscore.report.figures import load_package, save_chart
from whyscore.settings import REQUIRED, option, takes
from whyscore.stats.annotators import PairAgreement, agreement, shares
from whyscore.stats.coefficients import pearson
from whyscore.stats.words import MEASURES, Measure, Ragged, confusion
from whyscore.types import FloatVector, Words
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
            own, words = gold.side(side), gold.words(side)
            known = own.tags.lengths if own is not None else None if words is None else np.array([*map(len, words)])
            counts[f"{side}_words"] = None if known is None else int(known.sum())
            counts[f"{side}_marked"] = None if own is None else float(own.tags.values.mean())
            counts[f"{side}_without_error"] = None if own is None else int((own.tags.sums() == 0).sum())
        counts["target_spans"] = _runs(gold.target.tags)
        scores = gold.sentence
        known = None if scores is None else scores[~np.isnan(scores)]
        counts["score_mean"] = None if known is None else float(known.mean())
        counts["score_sd"] = None if known is None else float(known.std(ddof=1))
        counts["score_errors_pearson"] = None if scores is None else float(pearson(scores, _shares(gold.target)))
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
        for one in self.sets:
            pe = one.post_edits
            labels = None if pe is None else {
                side: {**own._asdict(), "f1": pe.f1[side]} for side, own in pe.agreements.items()
            }  # fmt: skip
            yield {**one.record(), "score_histogram": one.histogram(), "post_edits": labels}

    def tables(self, *, long: bool = False) -> list[Table]:
        first = Table.of(one.record() for one in self.sets)
        if long:
            return [first]
        statistics = [one.record() for one in self.sets]
        rows = [(name, *(one[name] for one in statistics)) for name in first.columns[1:]]
        names = tuple(one.gold.name for one in self.sets)
        tables = [Table(("", *names), tuple(rows), best=frozenset(), title="Data")]  # type: ignore[arg-type]
        tables += [self._scores()] if any(one.histogram() for one in self.sets) else []
        return tables + ([self._labels()] if any(one.post_edits for one in self.sets) else [])

    def _scores(self) -> Table:
        unknown: list[int | None] = [None] * (len(_EDGES) - 1)
        columns = [one.histogram() or unknown for one in self.sets]
        rows: list[tuple[Cell, ...]] = []
        for k, counts in enumerate(zip(*columns, strict=True)):
            rows.append((f"{_EDGES[k]}-{_EDGES[k + 1]}", *counts))
        names = (one.gold.name for one in self.sets)
        return Table(("score", *names), tuple(rows), best=frozenset(), title="Sentence scores")

    def _labels(self) -> Table:
        rows: tuple[tuple[Cell, ...], ...] = tuple(
            (one.gold.name, side, own.sentence, own.pooled, one.post_edits.f1[side])
            for one in self.sets
            if one.post_edits is not None
            for side, own in one.post_edits.agreements.items()
        )
        columns = ("gold", "side", "kappa per sentence", "kappa pooled", "F1")
        return Table(columns, rows, best=frozenset(), title="Labels from post-edits against the gold")

    def write(self, folder: str | Path, *, figures: bool = True) -> list[Path]:
        """Return the files written: labels from post-edits as gold folders, and the figure of the sentence scores."""
        written = []
        for one in self.sets:
            if one.post_edits is not None:
                sides = {
                    side: GoldSide(labels, "post-edits", one.gold.words(side))
                    for side, labels in one.post_edits.labels.items()
                }
                gold = replace(one.gold, target=sides["target"], source=sides.get("source"))
                written += write_gold(Path(folder) / one.gold.name, gold)
        rows = [
            {"set": one.gold.name, "from": int(_EDGES[k]), "sentences": count}
            for one in self.sets
            for k, count in enumerate(one.histogram() or ())
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
        target.append([float(one != " ") for one in operations if one != "i"])
        inserted.append("i" in operations)
    labels: dict[Judged, Ragged] = {"target": Ragged.of(target)}
    links, sources = gold_links(gold), gold.words("source")
    if links is not None and sources is not None:
        rows = zip(map(len, sources), links, target, inserted, strict=True)
        labels["source"] = Ragged.of([_source(*row) for row in rows])
    held = {side: one for side in labels if (one := gold.side(side)) is not None}
    agreements = {side: agreement(own.tags, labels[side]) for side, own in held.items()}
    f1 = {side: confusion(own.tags.values, labels[side].values > 0).f1_bad for side, own in held.items()}
    return PostEdits(labels, agreements, f1)


def gold_links(gold: Gold) -> list[tuple[Link, ...]] | None:
    """Return the links between source and MT beside the tags; one that points nowhere is an error."""
    lines, sources, targets = lines_beside(gold, _ALIGNMENTS), gold.words("source"), gold.target.words
    if lines is None or sources is None or targets is None:
        return None
    file = str(Path(gold.target.file).with_suffix(f".{_ALIGNMENTS}"))
    links = read_links(lines, file=file)
    for line, (here, there, own) in enumerate(zip(sources, targets, links, strict=True), start=1):
        for source, target in own:
            if source >= len(here) or target >= len(there):
                lengths = f"{len(here)} and {len(there)} words"
                raise DataError(f"the link {source}-{target} points outside texts of {lengths}", file=file, line=line)
    return links


def _source(words: int, links: Sequence[Link], target: Sequence[float], inserted: bool) -> list[float]:  # noqa: FBT001 - a row
    """Return the labels of the source words by those of the words they are linked to."""
    linked: list[list[float]] = [[] for _ in range(words)]
    for source, place in links:
        linked[source].append(target[place])
    return [max(own) if own else float(inserted) for own in linked]


def _shares(side: GoldSide) -> FloatVector:
    shares: FloatVector = side.tags.sums() / np.maximum(side.tags.lengths, 1)
    return shares


def _runs(tags: Ragged) -> int:
    return sum(int((np.diff(row, prepend=0) == 1).sum()) for row in tags.rows())


def _chart(rows: Sequence[Mapping[str, object]]) -> "Chart":
    alt = load_package("altair")
    base = alt.Chart({"values": list(rows)}).transform_calculate(to="datum.from + 10").properties(width=220, height=140)
    bars = base.mark_bar(color="#0072b2").encode(
        x=alt.X("from:Q", bin="binned", title="score"), x2="to:Q", y=alt.Y("sentences:Q", title="sentences")
    )
    chart: Chart = bars.facet(facet=alt.Facet("set:N", title=None), columns=2)
    return chart


Category = Literal["punctuation", "number", "repeated", "copied", "unlinked", "capitalised", "rare", "frequent"]
CATEGORIES: tuple[Category, ...] = get_args(Category)


@dataclass(frozen=True, repr=False)
class CategoryResult(Result):
    """Marked words by category."""

    rows: tuple[Record, ...]
    kind: ClassVar[str] = "eval4nlp-categories"

    def records(self) -> Iterator[Record]:
        return iter(self.rows)

    def tables(self, *, long: bool = False) -> list[Table]:
        del long
        table = Table.of(self.rows)
        notes = ("marked: share of these words that is marked; systems: share of the marked ones among the top K",)
        return [Table(table.columns, table.rows, best=frozenset(), notes=notes)]


def categories(pairs: Sequence[tuple[Gold, Sequence[Submission]]]) -> CategoryResult:
    """Return which kinds of words are marked, and how many of each kind the systems find.

    Args:
        pairs: Gold sets with their texts, and what was handed in for each.
    """
    return CategoryResult(tuple(row for gold, handed_in in pairs for row in _rows(gold, handed_in)))


def _rows(gold: Gold, submissions: Sequence[Submission]) -> Iterator[Record]:
    for side in SIDES:
        own = gold.side(side)
        if own is None:
            continue
        labels, tags = word_categories(gold, side), own.tags
        found = {one.name: top_shares(tags, one.sides[side].scores) for one in submissions if side in one.sides}
        for category in CATEGORIES:
            here = labels == category
            marked = here & (tags.values > 0)
            row: dict[str, object] = {"gold": gold.name, "side": side, "category": category, "words": int(here.sum())}
            row |= {"marked": float(marked.sum() / here.sum()) if here.any() else None}
            row |= {"of_all_marked": float(marked.sum() / max(tags.values.sum(), 1))}
            yield row | {name: float(one[marked].mean()) if marked.any() else None for name, one in found.items()}


def word_categories(gold: Gold, side: Judged) -> "np.ndarray[tuple[int], np.dtype[np.str_]]":
    """Return the category of every word of a side, in the order of its tags."""
    words, other = gold.words(side), gold.words("source" if side == "target" else "target")
    tags = gold.side(side)
    if words is None or tags is None:
        raise DataError(f"{gold.name} comes without its words: categories are found by them")
    short = [k for k, one in enumerate(words) if len(one) != tags.tags.lengths[k]]
    if short:
        raise DataError(f"{len(words[short[0]])} words for {tags.tags.lengths[short[0]]} tags", line=short[0] + 1)
    linked = gold_links(gold)
    labels, surprisal = [], []
    for k, own in enumerate(words):
        known = {word.casefold() for word in other[k]} if other is not None else set()
        places = None if linked is None else {link[side == "target"] for link in linked[k]}
        labels += _categories(own, known, places)
        surprisal.append(piece_surprisal(own))
    values = np.concatenate(surprisal)
    left = np.array([one == "" for one in labels])
    middle = float(np.median(values[left])) if left.any() else 0.0
    return np.where(left, np.where(values > middle, "rare", "frequent"), labels)


def _categories(words: Words, other: set[str], linked: set[int] | None) -> list[str]:
    """Return the categories that the texts decide; an empty text for words that surprisal divides."""
    texts = [*words]
    folded = [word.casefold() for word in texts]
    repeated = [False, *(one == following for one, following in pairwise(folded))]
    return [
        "punctuation" if not any(map(str.isalnum, word))
        else "number" if any(map(str.isdigit, word))
        else "repeated" if repeated[k]
        else "copied" if folded[k] in other
        else "unlinked" if linked is not None and k not in linked
        else "capitalised" if k and word[0].isupper()
        else ""
        for k, word in enumerate(texts)
    ]  # fmt: skip


def top_shares(tags: Ragged, scores: Ragged) -> FloatVector:
    """Return for each word how much of it is among the K highest scores of its sentence, K marked words being there."""
    if not np.array_equal(tags.lengths, scores.lengths):
        raise DataError(
            "tags and scores differ in their number of sentences or words: whyscore validate names the lines"
        )
    shares = []
    for gold, own in zip(tags.rows(), scores.rows(), strict=True):
        above = (own[None, :] > own[:, None]).sum(axis=1)
        ties = (own[None, :] == own[:, None]).sum(axis=1)
        shares.append(np.clip((gold.sum() - above) / ties, 0.0, 1.0))
    return np.concatenate(shares) if shares else np.zeros(0)


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
        names = [one.system for one in self.pairs[0].systems]
        return tuple(sorted(names, key=self.overall))

    def overall(self, system: str, side: Judged | None = None) -> float:
        """Return the mean rank of a system over pairs, on one side or on both."""
        ranks = [
            own.mean_rank[system]
            for pair in self.pairs
            for name, own in pair.ranking.items()
            if side is None or name == side
        ]
        return sum(ranks) / len(ranks)

    def records(self) -> Iterator[Record]:
        for pair in self.pairs:
            judged = {one.system: one for one in pair.systems}
            for side, ranking in pair.ranking.items():
                for system in sorted(judged, key=lambda name: ranking.mean_rank[name]):
                    own, sentence = judged[system].sides.get(side), judged[system].sentence
                    yield {
                        "gold": pair.gold.name, "side": side, "system": system, "n": ranking.n,
                        **{name: None if own is None else own.mean(name) for name in MEASURES},
                        **{f"rank_{name}": ranking.ranks[system][name] for name in MEASURES},
                        "mean_rank": ranking.mean_rank[system],
                        "best": [name for name in MEASURES if system in ranking.best[name]],
                        "pearson": None if sentence is None else sentence.pearson,
                        "reason": "not submitted" if own is None else None,
                    }  # fmt: skip

    def document(self) -> object:
        sides = self._sides
        overall = [
            {"system": one, "mean_rank": self.overall(one), **{side: self.overall(one, side) for side in sides}}
            for one in self.systems
        ]
        return {"kind": self.kind, "overall": overall, "records": list(self.records())}

    @property
    def _sides(self) -> list[Judged]:
        return [side for side in SIDES if any(side in pair.ranking for pair in self.pairs)]

    def tables(self, *, long: bool = False) -> list[Table]:
        if long:
            return [Table.of(self.records())]
        return [self._table(), self._overall()]

    def _table(self) -> Table:
        columns = ("gold", "side", "system", *_SHOWN.values(), "rank", "best group", "Pearson")
        rows: list[tuple[Cell, ...]] = []
        best = set()
        for one in self.records():
            groups = [_SHOWN[name] for name in MEASURES if name in one["best"]]  # type: ignore[operator]
            best |= {(len(rows), name) for name in groups}
            cells = {**one, "best": " ".join(groups)}
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
        parts = [(pair.gold.name, side, own) for pair in self.pairs for side, own in pair.ranking.items()]
        columns += [f"{name} {side}" for name, side, _ in parts]
        columns += [f"all {side}" for side in self._sides if len(self.pairs) > 1] + ["mean rank"]
        rows: list[tuple[Cell, ...]] = []
        for system in self.systems:
            ranks = [own.mean_rank[system] for _, _, own in parts]
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
    names = tuple(dict.fromkeys(one.name for _, handed_in in pairs for one in handed_in))
    if len(names) + (1 if settings.baselines else 0) < 2:  # noqa: PLR2004 - nobody to compare with
        raise DataError(f"{len(names)} system cannot be ranked: give two or more, or --baselines")
    chosen = replace(settings, rank=settings.rank or "mean")
    results = []
    for gold, handed_in in pairs:
        own = {one.name: one for one in handed_in}
        everybody = [own.get(name, Submission(name, {})) for name in names]
        results.append(metaevaluate_words(gold, everybody, settings=chosen))
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
    found = []
    for path in map(Path, paths):
        places = (path / pair, path / f"{pair}.zip", *([] if path.exists() else [root / path]))
        place = next((one for one in places if one.exists()), None)
        if place is not None:
            found.append(read_submission(place, name=path.name))
        elif not path.exists() and not any(root.parent.glob(f"*/{path}/{_SCORED}")):
            raise DataError(f"no submission of {path}: expected {path / pair} or {root / path}")
    return found


def read_pairs(
    golds: Sequence[str | Path], paths: Sequence[str | Path], *, optional: bool = False
) -> list[tuple[Gold, list[Submission]]]:
    """Return the gold of each folder with the submissions to it; `optional` takes gold without any."""
    return [(read_gold(gold), find_submissions(gold, paths, optional=optional)) for gold in golds]


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
    "eval4nlp-data": Command(
        "statistics of word-level gold data, and labels from post-edits", _DATA, DataCommand, run_data, statistics
    ),
    "eval4nlp-annotators": Command(
        "agreement of annotators, and the gold their labels make", _ANNOTATORS, AnnotatorsCommand, run_annotators,
        annotators,
    ),
    "eval4nlp-ranking": Command(
        "one ranking of submissions over several language pairs", _RANKING, RankingCommand, run_ranking, ranking
    ),
    "eval4nlp-categories": Command(
        "which kinds of words are marked, and which of them systems find", _CATEGORIES, CategoriesCommand,
        run_categories, categories,
    ),
}  # fmt: skip
