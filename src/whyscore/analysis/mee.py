"""MEE taken apart: what each part gives to every system, which words were paired, and what stands behind each word.

1. Bars: the score of a system is the sum of what exact, root and synonym matches, Syn and Cxt give to it. Exact matches
   give their F; root matches two thirds of what they add to it, synonyms one third; each times the weight of LMS.
2. Pairs: the root and synonym matches that come most often. They are the quickest way to see wrong thresholds.
3. Matches: for each word of an explanation its partners, their cosine and its credit.

Where a segment has several references, all of it is about the best one, or about all where their mean counts.

The parts behind MEE, MEE2 and MEE4: what matched, the n-grams, the sentence vectors.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from whyscore.analysis.common import MetricLike, Segments, as_dataset, as_metric, as_segments, with_languages
from whyscore.errors import SpecError
from whyscore.metrics.mee.metric import Mee, Mee2
from whyscore.metrics.mee.notes import word_matches
from whyscore.metrics.mee.words import Kind
from whyscore.protocols import RowMetric
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.types import (
    HYPOTHESIS,
    Dataset,
    Explanation,
    FloatMatrix,
    FloatVector,
    Side,
    Signature,
    WordMatch,
    read_only,
)

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

    kind: Kind
    hypothesis: str
    reference: str
    times: int
    similarity: float | None
    """Their cosine; None where stems made the match."""


@dataclass(frozen=True)
class MeeView:
    """The parts of MEE over a data set."""

    bars: tuple[Bar, ...]
    pairs: tuple[WordPair, ...]
    signature: Signature

    def records(self) -> Iterator[Mapping[str, object]]:
        """Yield one record per system, then one per pair of words."""
        yield from ({"row": "bar", **bar._asdict()} for bar in self.bars)
        yield from ({"row": "pair", **pair._asdict()} for pair in self.pairs)


class Behind(NamedTuple):
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

    >>> from whyscore.types import Segment
    >>> mee_view([Segment("a cat", references=("a dog",))], "mee(words=None)").bars[0].exact
    0.5
    """
    dataset = as_dataset(data)
    asked = _mee(metric, dataset)
    rows = cast("RowMetric", resources.prepare(asked)).statistics(dataset.segments)
    bars = []
    for system in dataset.systems:
        own = rows[[k for k, entry in enumerate(dataset.entries) if entry.system == system]]
        bars.append(_bar(system, asked, own))
    return MeeView(tuple(bars), _pairs(asked, dataset)[:pairs], asked.signature())


def mee_behind(data: Segments, metric: MetricLike, explanations: Sequence[Explanation]) -> list[Behind]:
    """Return for each explanation of an MEE metric the parts of its score and the matches of its words."""
    asked = _mee(metric, data if isinstance(data, Dataset) else None)
    segments = [one.segment.only(asked.inputs) for one in explanations]
    rows = asked.statistics(segments)
    found = []
    for place in dict.fromkeys(one.place for one in explanations):
        own = [k for k, one in enumerate(explanations) if one.place == place]
        aligned = asked.behind([segments[k] for k in own], place)
        for k, alignments in zip(own, aligned, strict=True):
            hypothesis = place.side is Side.HYPOTHESIS
            matches = word_matches(explanations[k].words, alignments, on_hypothesis=hypothesis)
            found.append((k, Behind(dict(zip(asked.columns, rows[k].tolist(), strict=True)), matches)))
    return [behind for _, behind in sorted(found, key=lambda item: item[0])]


def is_mee(metric: MetricLike) -> bool:
    """Return whether a metric is one of the three."""
    return isinstance(as_metric(metric), Mee)


def _mee(metric: MetricLike, dataset: Dataset | None) -> Mee:
    asked = with_languages(as_metric(metric), None if dataset is None else dataset.languages)
    if not isinstance(asked, Mee):
        raise SpecError(f"expected mee, mee2 or mee4 with their options, got {asked.signature().spec}")
    return asked


def _bar(system: str, metric: Mee, rows: FloatMatrix) -> Bar:
    column = dict(zip(metric.columns, rows.T, strict=True))
    lms, *others = metric.weights.shares if isinstance(metric, Mee2) else (1.0,)
    exact, root, synonym = (column[name] for name in ("exact", "root", "synonym"))
    rest = [float(share * column[name].mean()) for name, share in zip(("syn", "cxt"), others, strict=False)]
    return Bar(
        system=system,
        n=len(rows),
        exact=float(lms * exact.mean()),
        root=float(lms * 2 / 3 * (root - exact).mean()),
        synonym=float(lms / 3 * (synonym - root).mean()),
        syn=rest[0] if rest else None,
        cxt=rest[1] if rest else None,
        score=float(metric.scores(rows).mean()),
        unknown=float(column["unknown"].mean()),
        no_vectors=int((column["unknown"] == 1.0).sum()),
    )


def _pairs(metric: Mee, dataset: Dataset) -> tuple[WordPair, ...]:
    """Return the pairs of words that were matched by root or meaning, the most frequent first."""
    counts: Counter[tuple[Kind, str, str]] = Counter()
    cosines: dict[tuple[Kind, str, str], list[float]] = {}
    for alignments in metric.behind(dataset.segments, HYPOTHESIS):
        for one in alignments:
            for link in one.links:
                key = link.kind, one.hypothesis.forms[link.hypothesis], one.reference.forms[link.reference]
                counts[key] += link.kind != "exact"
                if link.similarity is not None:
                    cosines.setdefault(key, []).append(link.similarity)
    order = sorted((key for key in counts if counts[key]), key=lambda key: (-counts[key], key))
    return tuple(WordPair(*key, counts[key], float(np.mean(cosines[key])) if key in cosines else None) for key in order)


@dataclass(frozen=True, eq=False)
class MeeParts:
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
    metric: Mee2
    signature: Signature

    def __len__(self) -> int:
        """Return the number of segments."""
        return len(self.score)

    @property
    def flags(self) -> tuple[tuple[str, ...], ...]:
        """Words of warning for each segment: `no-vectors` where no word that was looked up has one."""
        return tuple(("no-vectors",) if share == 1.0 else () for share in self.unknown.tolist())

    def rows(self) -> Iterator[dict[str, float]]:
        """Yield the parts of each segment by name, then the score."""
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

    >>> from whyscore.types import Segment
    >>> mee_parts([Segment("a cat", references=("a dog",))], "mee4(words=None)").exact
    array([0.5])
    """
    asked = with_languages(as_metric(metric), segments.languages if isinstance(segments, Dataset) else None)
    if not isinstance(asked, Mee2):
        raise SpecError(f"mee_parts takes mee2 or mee4 with their options, got {asked.signature().spec}")
    rows = cast("RowMetric", resources.prepare(asked)).statistics(as_segments(segments))
    columns = {name: read_only(np.ascontiguousarray(rows[:, k])) for k, name in enumerate(asked.columns)}
    return MeeParts(**columns, score=read_only(asked.scores(rows)), metric=asked, signature=asked.signature())
