"""Which segments need no review: a threshold on a metric, learnt on rated data for a chosen precision.

1. A rated segment is error-free where its human score reaches a limit and nobody marked an error in it. The limit of an
   ESA score is 85 (WMT26, detection of error-free segments); of MQM it is 0, no penalty at all.
2. For thresholds at up to 200 quantiles of the metric, precision = the share of error-free segments among those at or
   above the threshold. Its lower bound is a quantile of the bootstrap over documents, because segments of a document,
   and the outputs of several systems for a segment, are not independent; where few segments reach the threshold, all
   of them error-free, the bootstrap has no spread, so that Wilson's (1927) bound, where it is lower, counts instead.
3. The threshold is the lowest one whose lower bound reaches the requested precision: it saves the most reviews.
4. What that is worth is measured on other documents: each fifth of the documents is judged by the threshold of the
   rest. Precision and coverage of all fifths together have intervals over documents.
5. The risk-coverage curve (El-Yaniv and Wiener 2010) shows the precision of the best 5 %, 10 % ... of the segments.
6. Segments of the run below the threshold, or without a score, are to be reviewed, the lowest scores first.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import DataError, SpecError
from whyscore.settings import Bootstrapped, Seeded, option, takes
from whyscore.stats.resampling import block_folds, block_sums, bootstrap_ratio, content_order, draw_sums
from whyscore.types import Dataset, Entry, Estimate, FloatVector
from whyscore.types.result import Record, Result, Table

LIMITS = {"esa": 85.0, "mqm": 0.0}
"""From which human score on a segment without marked errors is error-free."""
REVIEW, FREE = "review", "error-free"
_THRESHOLDS, _FOLDS, _STEPS, _LISTED, _FEWEST = 200, 5, 20, 20, 30


@dataclass(frozen=True, kw_only=True)
class ErrorFreeSettings:
    """When a rated segment counts as error-free."""

    human: str | None = option(
        None, "human score that defines error-free (default: esa, mqm, or the only one)", metavar="NAME", basic=True
    )
    at_least: float | None = option(
        None, "minimum human score of an error-free segment (default: 85 for esa, 0 for mqm)", metavar="X", basic=True
    )
    ignore_spans: bool = option(False, "use the human score alone and ignore marked errors")


@dataclass(frozen=True, kw_only=True)
class TriageSettings(ErrorFreeSettings, Bootstrapped, Seeded):
    """How the threshold is learnt."""

    precision: float = option(
        0.95, "share of error-free segments among those that skip review", least=0, most=1, metavar="P", basic=True
    )
    confidence: float = option(
        0.95, "confidence that the precision is reached; 0.5 trusts the point estimate", least=0.5, most=0.999,
        metavar="C",
    )  # fmt: skip


class Point(NamedTuple):
    """A point of the risk-coverage curve: the share of segments at or above a threshold, and their precision."""

    coverage: float
    threshold: float
    precision: float
    low: float | None
    high: float | None


class Decided(NamedTuple):
    """A segment of the run, and whether it is to be reviewed."""

    entry: Entry
    score: float
    review: bool
    rank: int
    """From 1 for the segment to review first; error-free segments follow, the least certain first."""


@dataclass(frozen=True, eq=False, repr=False)
class Triage(Result):
    """Which segments are to be reviewed, and how good the threshold was on other documents."""

    name: str
    metric: str
    threshold: float
    """NaN where no threshold reaches the precision; then everything is to be reviewed."""
    human: str
    limit: float
    rated: int
    share_free: float
    """Of the rated segments."""
    precision: Estimate
    """On other documents; NaN where nothing was accepted there."""
    saved: Estimate
    """The share of rated segments on other documents that skip review."""
    coverage: Estimate
    """The share of the run's segments that skip review."""
    curve: tuple[Point, ...]
    decisions: tuple[Decided, ...]
    settings: TriageSettings
    notes: tuple[str, ...] = ()
    kind: ClassVar[str] = "triage"

    @property
    def area(self) -> float:
        """The area under the risk-coverage curve: the mean share of segments with errors; lower is better."""
        return float(np.mean([1 - point.precision for point in self.curve]))

    def header(self) -> Record:
        facts: dict[str, object] = {
            "data": self.name, "metric": self.metric, "threshold": self.threshold, "human": self.human,
            "limit": self.limit, "rated": self.rated, "error_free": self.share_free,
            "target": self.settings.precision, "confidence": self.settings.confidence, "seed": self.settings.seed,
            "area": self.area, "notes": list(self.notes),
        }  # fmt: skip
        for name in ("precision", "saved", "coverage"):
            estimate: Estimate = getattr(self, name)
            facts |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        return {key: None if isinstance(fact, float) and math.isnan(fact) else fact for key, fact in facts.items()}

    def records(self) -> Iterator[Record]:
        for decision in self.decisions:
            score = None if math.isnan(decision.score) else decision.score
            yield {
                "rank": decision.rank, "id": decision.entry.id, "system": decision.entry.system,
                "document": decision.entry.document,
                "decision": REVIEW if decision.review else FREE, "score": score,
                "source": decision.entry.segment.source, "hypothesis": decision.entry.segment.hypothesis,
            }  # fmt: skip

    def document(self) -> object:
        return {**self.header(), "curve": [point._asdict() for point in self.curve], "segments": list(self.records())}

    def lead(self) -> Sequence[str]:
        total, skipped = len(self.decisions), sum(not decision.review for decision in self.decisions)
        return (f"{skipped:,} of {total:,} segments need no review at a precision of {self.settings.precision:g}",)

    def display_tables(self) -> list[Table]:
        facts = (
            ("threshold", None if math.isnan(self.threshold) else self.threshold, None, None),
            ("coverage of this run", *_ends(self.coverage)),
            ("coverage on other documents", *_ends(self.saved)),
            ("precision on other documents", *_ends(self.precision)),
            ("precision without a threshold", self.share_free, None, None),
        )
        how = (
            f"error-free: {self.human} >= {self.limit:g}" + ("" if self.settings.ignore_spans else " and no error span")
            + f"; threshold on {self.metric} learnt on {self.rated:,} rated segments; 95 % intervals over documents"
        )  # fmt: skip
        columns = ("coverage", f"{self.metric} >=", "precision", "low", "high")
        first = [decision for decision in self.decisions if decision.review][:_LISTED]
        return [
            Table(("", "value", "low", "high"), facts, best=frozenset(), notes=(how, *self.notes)),
            Table(
                columns, tuple(self.curve), best=frozenset(), title="risk-coverage curve, rated segments",
                notes=(f"area under the risk-coverage curve {self.area:.3f} (0 is best)",),
            ),
            Table(
                ("rank", "id", "system", "score", "hypothesis"),
                tuple(
                    (decision.rank, decision.entry.id, decision.entry.system, decision.score, _short(decision.entry))
                    for decision in first
                ),
                best=frozenset(), title="review first",
            ),
        ]  # fmt: skip


def _ends(estimate: Estimate) -> tuple[float | None, float | None, float | None]:
    return None if math.isnan(estimate.value) else estimate.value, estimate.low, estimate.high


def _short(entry: Entry) -> str:
    text = " ".join(entry.segment.hypothesis.split())
    return text if len(text) <= 60 else f"{text[:59]}…"  # noqa: PLR2004 - one line of a terminal


def error_free(dataset: Dataset, settings: ErrorFreeSettings) -> tuple[FloatVector, str, float, list[str]]:
    """Return 1 for error-free segments, 0 for others, NaN for unrated ones; the human score, its limit, and notes."""
    names = list(dict.fromkeys(name for entry in dataset.entries for name in entry.human))
    human = settings.human or next((name for name in (*LIMITS, *names[:1]) if name in names), None)
    if human is None or (settings.human is None and human not in LIMITS and len(names) > 1):
        raise DataError(
            f"{dataset.name} has {'several human scores' if names else 'no human score'}: name one with --human; "
            f"there are: {', '.join(names) or 'none'}"
        )
    limit = settings.at_least if settings.at_least is not None else LIMITS.get(human.lower())
    if limit is None:
        raise DataError(f"which {human} makes a segment error-free is not known: give the lowest one with --at-least")
    scores = dataset.human(human)
    labels = np.where(np.isnan(scores), np.nan, (scores >= limit).astype(np.float64))
    if settings.ignore_spans:
        return labels, human, limit, []
    marked = [
        entry.spans is not None and any(span.severity != "neutral" for span in entry.spans) for entry in dataset.entries
    ]
    labels[np.array(marked, dtype=bool) & ~np.isnan(labels)] = 0.0
    if all(entry.spans is None for entry in dataset.entries):
        return labels, human, limit, ["the rated data have no error spans: the human score alone decides"]
    return labels, human, limit, []


def document_names(dataset: Dataset) -> list[str]:
    """Return what belongs together in folds and intervals: the document, or the segment of all systems without one."""
    return [entry.id if entry.document is None else f"document {entry.document}" for entry in dataset.entries]


@takes(TriageSettings)
def triage(
    dataset: Dataset,
    scores: FloatVector,
    rated: Dataset,
    rated_scores: FloatVector,
    *,
    metric: str = "score",
    settings: TriageSettings,
) -> Triage:
    """Return which segments need review, by a threshold learnt on rated data.

    Args:
        dataset: the segments to sort out.
        scores: one number per entry, higher is better; NaN where there is none, which means review.
        rated: other segments with a human score, and error spans where people marked them.
        rated_scores: the same metric on the rated segments.
        metric: the name of the metric, for the result.
        settings: precision, and what error-free means.
    """
    if settings.precision in (0, 1):
        raise SpecError(f"precision is {settings.precision:g}, expected a share above 0 and below 1")
    material, human, limit, notes = _rate(rated, rated_scores, settings)
    threshold, accepted = material.learn(settings), material.accept_elsewhere(settings)
    decided, curve = scores >= threshold, material.curve(settings)
    if math.isnan(threshold):
        notes.append(_no_threshold(metric, curve, settings))
    theirs, ours = ({(entry.system, entry.segment) for entry in data.entries} for data in (rated, dataset))
    if shared := len(theirs & ours):
        notes.append(f"{shared} segments are rated data too: their decisions are not independent of the ratings")
    draws = {"draws": settings.draws, "seed": settings.seed}
    good, blocks, count = material.good, material.blocks, len(material.good)
    return Triage(
        *(dataset.name, metric, threshold, human, limit, count, float(good.mean())),
        precision=bootstrap_ratio(good * accepted, accepted.astype(float), blocks, **draws),
        saved=bootstrap_ratio(accepted.astype(float), np.ones(count), blocks, **draws),
        coverage=bootstrap_ratio(decided.astype(float), np.ones(len(scores)), document_names(dataset), **draws),
        curve=curve,
        decisions=_decisions(dataset, scores, decided),
        settings=settings,
        notes=tuple(notes),
    )


def _no_threshold(metric: str, curve: Sequence[Point], settings: TriageSettings) -> str:
    best = max(curve, key=lambda point: point.precision)
    return (
        f"no threshold on {metric} reaches a precision of {settings.precision:g} with a confidence of "
        f"{settings.confidence:g}: at best {best.precision:.3f}, on {best.coverage:.0%} of the rated segments. "
        "Ask for less, rate more segments, or use a better metric"
    )


def _rate(rated: Dataset, scores: FloatVector, settings: TriageSettings) -> tuple["_Rated", str, float, list[str]]:
    """Return the segments with a score and a label, the human score behind the labels, its limit, and notes."""
    labels, human, limit, notes = error_free(rated, settings)
    kept = ~np.isnan(labels) & ~np.isnan(scores)
    good = labels[kept]
    blocks = [name for name, keep in zip(document_names(rated), kept, strict=True) if keep]
    if not len(good):
        raise DataError(f"{rated.name} has no segment with both a score and a human score {human}")
    if good.min() == good.max():
        which = "error-free" if good[0] else "with errors"
        raise DataError(
            f"all {len(good)} rated segments of {rated.name} are {which} ({human} >= {limit:g}): a threshold needs "
            "both kinds. Change --at-least, or rate other segments"
        )
    if len(set(blocks)) < 2:  # noqa: PLR2004 - other documents are needed
        raise DataError(
            f"{rated.name} has only one document, but a threshold is evaluated on other documents: rate more documents"
        )
    return _Rated(scores[kept], good, blocks), human, limit, notes


class _Rated(NamedTuple):
    """Rated segments: the metric's score, 1 where error-free and else 0, and the document of each."""

    scores: FloatVector
    good: FloatVector
    blocks: list[str]

    def candidates(self) -> FloatVector:
        """Return the thresholds that are tried: up to 200 of the scores, at even shares, that at least 30 reach."""
        ordered = np.sort(self.scores)[::-1]
        least = min(_FEWEST, len(ordered)) - 1
        at = np.unique(np.linspace(least, len(ordered) - 1, _THRESHOLDS).round().astype(int))
        return np.unique(ordered[at])

    def learn(self, settings: TriageSettings) -> float:
        """Return the lowest threshold whose lower bound reaches the precision; NaN where there is none."""
        candidates = self.candidates()
        above = self.scores[:, None] >= candidates[None, :]
        sums = block_sums(np.hstack([above * self.good[:, None], above]).astype(np.float64), self.blocks)
        count = len(candidates)
        bound = sums[:, :count].sum(axis=0) / sums[:, count:].sum(axis=0)
        if settings.draws and settings.confidence > 0.5:  # noqa: PLR2004 - half trusts the estimate
            sums = sums[content_order(sums)]
            drawn = np.vstack(list(draw_sums(sums, settings.draws, settings.seed)))
            with np.errstate(invalid="ignore"):
                shares = drawn[:, :count] / drawn[:, count:]
            bound = np.minimum(
                np.nanquantile(shares, 1 - settings.confidence, axis=0),
                _wilson(bound, above.sum(axis=0), settings.confidence),
            )
        reached: NDArray[np.intp] = np.flatnonzero(bound >= settings.precision)
        return float(candidates[reached[0]]) if len(reached) else float("nan")

    def accept_elsewhere(self, settings: TriageSettings) -> NDArray[np.bool_]:
        """Return which segments skip review by the threshold of the other documents."""
        folds = min(_FOLDS, len(set(self.blocks)))
        fold = block_folds(self.blocks, folds, settings.seed)
        accepted = np.zeros(len(self.scores), dtype=bool)
        for k in range(folds):
            rest = fold != k
            others = _Rated(self.scores[rest], self.good[rest], [self.blocks[i] for i in np.flatnonzero(rest)])
            accepted[~rest] = self.scores[~rest] >= others.learn(settings)  # nothing is above NaN
        return accepted

    def curve(self, settings: TriageSettings) -> tuple[Point, ...]:
        """Return the precision of the best 5 %, 10 % ... of the segments."""
        points: list[Point] = []
        ordered = np.sort(self.scores)[::-1]
        for step in range(1, _STEPS + 1):
            threshold = float(ordered[math.ceil(len(ordered) * step / _STEPS) - 1])
            above = (self.scores >= threshold).astype(np.float64)
            if points and points[-1].threshold == threshold:
                continue
            precision = bootstrap_ratio(self.good * above, above, self.blocks, draws=settings.draws, seed=settings.seed)
            points.append(Point(float(above.mean()), threshold, precision.value, precision.low, precision.high))
        return tuple(points)


def _wilson(shares: FloatVector, counts: NDArray[np.int64], confidence: float) -> FloatVector:
    """Return the one-sided lower bound of shares of so many independent cases."""
    z = NormalDist().inv_cdf(confidence)
    spread = z * np.sqrt(shares * (1 - shares) / counts + z**2 / (4 * counts**2))
    bound: FloatVector = (shares + z**2 / (2 * counts) - spread) / (1 + z**2 / counts)
    return bound


def _decisions(dataset: Dataset, scores: FloatVector, decided: NDArray[np.bool_]) -> tuple[Decided, ...]:
    # What has no score comes first; equal scores stay in the order of the data.
    order = np.lexsort([np.nan_to_num(scores, nan=-np.inf), decided]).tolist()
    return tuple(
        Decided(dataset.entries[k], float(scores[k]), not decided[k], rank) for rank, k in enumerate(order, start=1)
    )
