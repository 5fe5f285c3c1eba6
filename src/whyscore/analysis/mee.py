"""MEE taken apart: what each part gives to every system, which words were paired, and what stands behind each word.

1. Parts: the score of a system is the weighted sum of its parts (`PartsMetric.parts`). Those of MEE are exact, root and
   synonym matches; MEE2 and MEE4 also have Syn and Cxt.
2. Pairs: the root and synonym matches that come most often. They are the quickest way to see wrong thresholds.
3. Matches: for each word of an explanation its partners, their cosine and its credit.

Where a segment has several references, all of it is about the best one, or about all where their mean counts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple, cast

import numpy as np

from whyscore.analysis.common import (
    MetricLike,
    Segments,
    as_dataset,
    as_metric,
    as_segments,
    languages_of,
    requested_name,
    with_languages,
)
from whyscore.data.codec import Kind
from whyscore.data.records import header_of
from whyscore.errors import SpecError
from whyscore.metrics.mee.words import MARKS
from whyscore.protocols import PartsMetric, RowMetric
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.types import (
    HYPOTHESIS,
    Dataset,
    Explanation,
    FloatMatrix,
    FloatVector,
    MatchKind,
    Signature,
    WordMatch,
    Words,
    read_only,
)
from whyscore.types.result import Record, Result, Table

if TYPE_CHECKING:
    from whyscore.metrics.mee.metric import Mee2

_SHOWN = 20


class Bar(NamedTuple):
    """What each part gives to the score of a system; the parts add up to `score`."""

    system: str
    n: int
    exact: float
    root: float
    synonym: float
    syn: float | None
    """None for `mee`, which has no such part."""
    cxt: float | None
    score: float
    unknown: float
    """The mean share of words without a vector among those that were looked up."""
    no_vectors: int
    """Segments in which no word that was looked up has a vector."""


class WordPair(NamedTuple):
    """Two words that were matched as of one root or as synonyms, and how often."""

    kind: MatchKind
    hypothesis: str
    reference: str
    times: int
    similarity: float | None
    """Their cosine; None where stems made the match."""


@dataclass(frozen=True, repr=False)
class MeeView(Result):
    """The parts of a metric of the MEE family over a data set."""

    metric: str
    dataset: Dataset
    bars: tuple[Bar, ...]
    pairs: tuple[WordPair, ...]
    signature: Signature
    kind: ClassVar[Kind] = "totals"

    def header(self) -> Record:
        return header_of(self.kind, self.dataset, {self.metric: str(self.signature)}).object()

    def records(self) -> Iterator[Record]:
        yield from ({"metric": self.metric, "row": "bar", **bar._asdict()} for bar in self.bars)
        yield from ({"metric": self.metric, "row": "pair", **pair._asdict()} for pair in self.pairs)

    def tables(self, *, long: bool = False) -> list[Table]:
        columns = ("metric", *Bar._fields[:-1], "no vectors")
        bars = Table(columns, tuple((self.metric, *bar) for bar in self.bars))
        rows = tuple((self.metric, f"{MARKS[pair.kind]} {pair.kind}", *pair[1:]) for pair in self.pairs)
        return (
            [bars] if long else [bars, Table(("metric", "match", "hypothesis", "reference", "times", "cosine"), rows)]
        )


class WordMatches(NamedTuple):
    """What stands behind one explanation: the parts of the score, and the partners of each word."""

    parts: Mapping[str, float]
    matches: tuple[tuple[WordMatch, ...], ...]


def mee_view(
    data: Segments, metric: MetricLike = "mee4", *, pairs: int = _SHOWN, resources: Resources = LOCAL
) -> MeeView:
    """Return the parts of each system and the most frequent pairs of words.

    Args:
        data: what is scored.
        metric: `mee`, `mee2` or `mee4` with their options.
        pairs: how many pairs of words at most.
        resources: store, executor and progress.

    >>> from whyscore import Segment
    >>> mee_view([Segment("a cat", references=("a dog",))], "mee(words=None)").bars[0].exact
    0.5
    """
    dataset = as_dataset(data)
    scorer = with_languages(as_metric(metric), dataset.languages)
    if not isinstance(scorer, PartsMetric):
        raise SpecError(f"expected mee, mee2 or mee4 with their options, got {scorer.signature().spec}")
    rows = cast("RowMetric", resources.prepare(scorer)).statistics(dataset.segments)
    bars = []
    for system in dataset.systems:
        system_rows = rows[[k for k, entry in enumerate(dataset.entries) if entry.system == system]]
        bars.append(_bar(system, scorer, system_rows))
    word_pairs = _pairs(scorer, dataset)[:pairs]
    return MeeView(requested_name(metric), dataset, tuple(bars), word_pairs, scorer.signature())


def has_parts(metric: MetricLike) -> bool:
    """Return whether the score of a metric is a sum of parts, and its words have partners."""
    return isinstance(as_metric(metric), PartsMetric)


def word_matches(data: Segments, metric: MetricLike, explanations: Sequence[Explanation]) -> list[WordMatches]:
    """Return for each explanation of a metric with parts those of its score, and the matches of its words."""
    scorer = cast("PartsMetric", with_languages(as_metric(metric), languages_of(data)))
    segments = [explanation.segment.only(scorer.inputs) for explanation in explanations]
    matches: dict[int, tuple[tuple[WordMatch, ...], ...]] = {}
    for place in dict.fromkeys(explanation.place for explanation in explanations):
        indices = [k for k, explanation in enumerate(explanations) if explanation.place == place]
        word_scores = scorer.word_scores(
            [segments[k] for k in indices], place, [explanations[k].words for k in indices]
        )
        matches |= {k: word_score.matches or () for k, word_score in zip(indices, word_scores, strict=True)}
    rows = scorer.statistics(segments).tolist()
    return [WordMatches(dict(zip(scorer.columns, row, strict=True)), matches[k]) for k, row in enumerate(rows)]


def _bar(system: str, metric: PartsMetric, rows: FloatMatrix) -> Bar:
    weighted = {name: float(weight * np.sort(values).mean()) for name, (weight, values) in metric.parts(rows).items()}
    unknown = rows[:, metric.columns.index("unknown")]
    parts = weighted["exact"], weighted["root"], weighted["synonym"], weighted.get("syn"), weighted.get("cxt")
    score, no_vectors = float(np.sort(metric.scores(rows)).mean()), int((unknown == 1.0).sum())
    return Bar(system, len(rows), *parts, score=score, unknown=float(np.sort(unknown).mean()), no_vectors=no_vectors)


def _pairs(metric: PartsMetric, dataset: Dataset) -> tuple[WordPair, ...]:
    """Return the pairs of words that were matched by root or meaning, the most frequent first."""
    # One word that is the whole text holds the matches of all its words.
    texts = [Words(segment.hypothesis, ((0, len(segment.hypothesis)),)) for segment in dataset.segments]
    scores = metric.word_scores(dataset.segments, HYPOTHESIS, texts)
    matches = (("", match) for word_score in scores for word in word_score.matches or () for match in word)
    return tuple(pair for pair, _ in count_pairs(matches))


def count_pairs(matches: Iterable[tuple[str, WordMatch]]) -> Iterator[tuple[WordPair, str]]:
    """Yield the pairs of words that were matched by root or meaning, the most frequent first, and where each is first.

    Args:
        matches: Each with the name of its place.
    """
    cosines: dict[tuple[MatchKind, str, str], list[float | None]] = {}
    first: dict[tuple[MatchKind, str, str], str] = {}
    for place, match in matches:
        if match.label not in ("exact", "none"):
            key = match.label, match.text, match.partner_text or ""
            cosines.setdefault(key, []).append(match.similarity)
            first.setdefault(key, place)
    for key in sorted(cosines, key=lambda key: (-len(cosines[key]), key)):
        measured = [cosine for cosine in cosines[key] if cosine is not None]
        yield WordPair(*key, len(cosines[key]), float(np.mean(measured)) if measured else None), first[key]


@dataclass(frozen=True, eq=False, repr=False)
class MeeParts(Result):
    """One number per segment and part; `exact`, `root` and `synonym` are cumulative F values whose mean is `lms`."""

    exact: FloatVector
    root: FloatVector
    synonym: FloatVector
    lms: FloatVector
    syn: FloatVector
    cxt: FloatVector
    unknown: FloatVector
    """The share of words without a vector among those that were looked up."""
    score: FloatVector
    metric: "Mee2"
    signature: Signature

    def __len__(self) -> int:
        return len(self.score)

    @property
    def flags(self) -> tuple[tuple[str, ...], ...]:
        """Words of warning for each segment: `no-vectors` where no word that was looked up has one."""
        return tuple(("no-vectors",) if share == 1.0 else () for share in self.unknown.tolist())

    def records(self) -> Iterator[dict[str, float]]:
        names = (*self.metric.columns, "score")
        columns = [getattr(self, name).tolist() for name in names]
        for values in zip(*columns, strict=True):
            yield dict(zip(names, values, strict=True))


def mee_parts(segments: Segments, metric: MetricLike = "mee4", *, resources: Resources = LOCAL) -> MeeParts:
    """Return the parts of each segment, computed once: mee, mee2, mee4 and any other weights follow from them.

    Where a segment has several references, the parts are those of the reference that is best by the metric's weights
    (or the means, with `references="mean"`).

    Args:
        segments: What is scored; a data set also says the language.
        metric: `mee2` or `mee4` with their options.
        resources: Store, executor and progress.

    >>> from whyscore import Segment
    >>> mee_parts([Segment("a cat", references=("a dog",))], "mee4(words=None)").exact
    array([0.5])
    """
    scorer = with_languages(as_metric(metric), languages_of(segments))
    if not isinstance(scorer, PartsMetric) or "syn" not in scorer.columns:
        raise SpecError(f"mee_parts takes mee2 or mee4 with their options, got {scorer.signature().spec}")
    rows = cast("RowMetric", resources.prepare(scorer)).statistics(as_segments(segments))
    columns = {name: read_only(np.ascontiguousarray(rows[:, k])) for k, name in enumerate(scorer.columns)}
    return MeeParts(
        **columns, score=read_only(scorer.scores(rows)), metric=cast("Mee2", scorer), signature=scorer.signature()
    )
