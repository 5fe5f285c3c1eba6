"""The weights of MEE2 and MEE4, fitted to human scores and judged where they were not fitted.

1. Compute LMS, Syn and Cxt of every entry once (`mee_parts`); the metric is never asked again.
2. Up to a factor the four weights are three shares that add up to one. All shares in steps of 1/20 are tried, and the
   published ones, which win ties.
3. Cut the data into folds: whole documents, shuffled by the seed, where every entry has one; else segments in turn (of
   five folds, the first has the first segment, the sixth ...), because data are often sorted. All systems of a segment
   stay together.
4. For each fold, take the shares with the highest correlation on the other folds, and correlate on the fold itself:
   with these shares, and with the published ones.
5. The weights that come back are those of all data; what they are worth is what step 4 says.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from whyscore.analysis.calibrate.material import positions
from whyscore.analysis.calibrate.settings import WeightSettings
from whyscore.analysis.common import MetricLike
from whyscore.analysis.mee import MeeParts, mee_parts
from whyscore.errors import DataError, SpecError, UserError
from whyscore.metrics.mee.metric import Mee2, Weights
from whyscore.registry import spec_of
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.settings import takes
from whyscore.stats.coefficients import coefficient_of
from whyscore.stats.grid import grid_correlations
from whyscore.stats.matrices import level_of
from whyscore.text.files import finite
from whyscore.text.randomness import generator
from whyscore.types import Dataset, FloatMatrix, FloatVector, IntVector, Signature
from whyscore.types.result import Result

_STEPS = 20
_LEAST_FOLDS = 2


@dataclass(frozen=True, slots=True)
class Fold:
    """One fold that was left out: the weights of the others, and the correlations here."""

    n: int
    weights: Weights
    fitted: float
    published: float


@dataclass(frozen=True, eq=False, repr=False)
class FittedWeights(Result):
    """Weights fitted to human scores, with what they reach on data they were not fitted to."""

    kind: ClassVar[str] = "weights"

    weights: Weights
    published: Weights
    folds: tuple[Fold, ...]
    metric: Mee2
    human: str
    coefficient: str
    level: str
    group: str | None
    split: str
    """What folds are made of: `documents` or `segments`."""
    n: int
    seed: int
    signature: Signature

    @property
    def name(self) -> str:
        """The name the correlations are printed with."""
        return f"{self.coefficient}@{self.level}"

    @property
    def held_out(self) -> float:
        """The mean over the folds of what the fitted weights reach."""
        return _mean([fold.fitted for fold in self.folds])

    @property
    def held_out_published(self) -> float:
        """The mean over the folds of what the published weights reach."""
        return _mean([fold.published for fold in self.folds])

    @property
    def spec(self) -> str:
        """The metric with the fitted weights; what the signature says where the metric holds objects without a name."""
        try:
            return spec_of(replace(self.metric, **self.weights._asdict()))
        except SpecError:
            return self.signature.spec

    @property
    def helps(self) -> bool:
        """Whether the mean gain on left-out folds is above its standard error."""
        gains = np.array([fold.fitted - fold.published for fold in self.folds], dtype=np.float64)
        gains = gains[~np.isnan(gains)]
        if len(gains) < _LEAST_FOLDS:
            return False
        return bool(gains.mean() > 0 and gains.mean() > gains.std(ddof=1) / np.sqrt(len(gains)))

    @property
    def sentence(self) -> str:
        """What came of it, in one sentence."""
        better = sum(fold.fitted > fold.published for fold in self.folds)
        comparison = (
            f"{self.name} on left-out {self.split} is {self.held_out:.4f} with fitted weights and "
            f"{self.held_out_published:.4f} with the published ones (better in {better} of {len(self.folds)} folds)"
        )
        if np.isnan(self.held_out) or np.isnan(self.held_out_published):
            return f"{comparison}: it is undefined, so there is no conclusion; keep the published weights"
        if self.helps:
            return f"{comparison}: fitting helps on data like these"
        gained = self.held_out > self.held_out_published
        why = "the gain is within the variation between folds" if gained else "fitting does not help"
        return f"{comparison}: {why}; keep the published weights"

    def records(self) -> Iterator[dict[str, str | int | float]]:
        everything = Fold(self.n, self.weights, self.held_out, self.held_out_published)
        for name, fold in zip(
            [*map(str, range(1, len(self.folds) + 1)), "all"], [*self.folds, everything], strict=True
        ):
            yield {
                "fold": name,
                "n": fold.n,
                **fold.weights._asdict(),
                "fitted": fold.fitted,
                "published": fold.published,
            }

    def document(self) -> object:
        return list(self.records())

    def __repr__(self) -> str:
        return f"<FittedWeights {self.spec}: {self.sentence}>"

    def to_json(self) -> dict[str, object]:
        """Return everything as plain values; NaN as None."""
        names = ("human", "group", "held_out", "held_out_published", "helps", "sentence", "split", "n", "seed")
        whole: dict[str, object] = {
            "metric": self.spec,
            "weights": self.weights._asdict(),
            "published": self.published._asdict(),
            "correlation": self.name,
            **{name: getattr(self, name) for name in names},
            "folds": [{**asdict(fold), "weights": fold.weights._asdict()} for fold in self.folds],
            "signature": str(self.signature),
        }
        return cast("dict[str, object]", finite(whole))


@takes(WeightSettings)
def fit_weights(
    dataset: Dataset, metric: MetricLike = "mee4", *, settings: WeightSettings, resources: Resources = LOCAL
) -> FittedWeights:
    """Return the weights of MEE2 or MEE4 that agree best with human scores, judged by cross-validation.

    Args:
        dataset: Entries with human scores, higher where better.
        metric: `mee2` or `mee4` with their options; its weights are the published ones that fitting is compared with.
        settings: The human score, coefficient, level and folds. With a group (a column such as the language pair),
            correlations are computed in each group and averaged.
        resources: Store, executor and progress, for the parts.
    """
    if len(settings.human or ()) != 1 or len(settings.coefficient) != 1:
        raise UserError("weights are fitted to one human score by one coefficient: name one of each")
    human, folds = (settings.human or ("",))[0], settings.folds
    named, at = coefficient_of(settings.coefficient[0]), level_of(settings.level)
    ratings = dataset.human(human)
    entries = tuple(entry for entry, value in zip(dataset.entries, ratings, strict=True) if not np.isnan(value))
    data = replace(dataset, entries=entries)
    fold_of, split = _folds(data, folds, settings.seed)
    parts = mee_parts(data, metric, resources=resources)
    material = _Material(parts, ratings[~np.isnan(ratings)], data, group=settings.group, coefficient=named, level=at)
    everything = material.correlations(np.ones(len(data), dtype=np.bool_))
    return FittedWeights(
        weights=material.weights(_best(everything)),
        published=parts.metric.weights,
        folds=tuple(material.left_out(fold_of == number) for number in range(folds)),
        metric=parts.metric,
        human=human,
        coefficient=named,
        level=at,
        group=settings.group,
        split=split,
        n=len(data),
        seed=settings.seed,
        signature=parts.signature,
    )


class _Material:
    """Parts, human scores and where entries belong; candidate 0 is the published weights."""

    def __init__(
        self, parts: MeeParts, human: FloatVector, data: Dataset, *, group: str | None, coefficient: str, level: str
    ) -> None:
        self._published = parts.metric.weights
        self._shares = np.array([self._published.shares, *_simplex()], dtype=np.float64)
        self._scores: FloatMatrix = self._shares @ np.stack([parts.lms, parts.syn, parts.cxt])
        self._human, self._coefficient, self._level = human, coefficient, level
        groups = ["" if group is None else _group(entry.extra, group) for entry in data.entries]
        self._groups = positions(groups)
        self._systems = positions([entry.system for entry in data.entries])
        self._segments = positions([entry.id for entry in data.entries])

    def weights(self, candidate: int) -> Weights:
        """Return the four weights of a candidate."""
        if candidate == 0:
            return self._published
        return Weights.of_shares(*self._shares[candidate].tolist())

    def left_out(self, fold: NDArray[np.bool_]) -> Fold:
        """Return what the weights of all other entries reach on a fold."""
        best, correlations = _best(self.correlations(~fold)), self.correlations(fold)
        return Fold(int(fold.sum()), self.weights(best), float(correlations[best]), float(correlations[0]))

    def correlations(self, subset: NDArray[np.bool_]) -> FloatVector:
        """Return the correlation of each candidate over the chosen entries, the mean over groups."""
        values = []
        for number in np.unique(self._groups):
            here = subset & (self._groups == number)
            correlations = grid_correlations(
                self._scores[:, here],
                self._human[here],
                coefficients=(self._coefficient,),
                level=self._level,
                systems=self._systems[here],
                segments=self._segments[here],
            )[0]
            values.append(correlations)
        stacked = np.stack(values)
        defined = ~np.isnan(stacked)
        sums, counts = np.where(defined, stacked, 0.0).sum(axis=0), defined.sum(axis=0)
        result: FloatVector = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
        return result


def _simplex() -> list[tuple[float, float, float]]:
    """Return all shares in steps of 1/20 that add up to one."""
    steps = product(range(_STEPS + 1), repeat=2)
    return [(a / _STEPS, b / _STEPS, (_STEPS - a - b) / _STEPS) for a, b in steps if a + b <= _STEPS]


def _best(correlations: FloatVector) -> int:
    """Return the candidate with the highest correlation; the published weights where none is defined or all tie."""
    if np.isnan(correlations).all():
        return 0
    # Rounding: candidates that differ by rounding errors alone are ties.
    return int(np.nanargmax(np.round(correlations, 12)))


def _folds(data: Dataset, folds: int, seed: int) -> tuple[IntVector, str]:
    """Return the fold of each entry, and what folds are made of."""
    if folds < _LEAST_FOLDS:
        raise SpecError(f"fit_weights: folds is {folds}, expected 2 or more")
    documents = [entry.document for entry in data.entries]
    by_document = all(document is not None for document in documents) and len(set(documents)) >= folds
    units = documents if by_document else [entry.id for entry in data.entries]
    distinct = list(dict.fromkeys(units))
    if len(distinct) < folds:
        raise DataError(
            f"{data.name} has {len(distinct)} segments with a human score, too few for {folds} folds: choose fewer"
        )
    if by_document:
        order = generator(seed, "fit_weights", *map(str, distinct)).permutation(len(distinct))
        distinct = [distinct[place] for place in order]
    number = {unit: place % folds for place, unit in enumerate(distinct)}
    return np.array([number[unit] for unit in units], dtype=np.int64), "documents" if by_document else "segments"


def _group(extra: Mapping[str, object], name: str) -> str:
    value = extra.get(name)
    if value is None:
        raise DataError(f"an entry has no column {name!r} to group by")
    return str(value)


def _mean(values: Sequence[float]) -> float:
    defined = [value for value in values if not np.isnan(value)]
    return float(np.mean(defined)) if defined else float("nan")
