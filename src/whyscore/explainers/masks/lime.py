"""LIME for words, after Ribeiro, Singh and Guestrin (2016), arXiv 1602.04938, as the package lime 0.2.0.1 does it.

1. Plan `samples - 1` probes beside the whole text. For each draw how many words to hide, uniformly from 1 to all of
   them (so that the empty text occurs), then which, without replacement.
2. Weigh each probe by its closeness to the whole text: with d = 100 (1 - sqrt(share of words kept)), the cosine
   distance between the mask and the full one, the weight is sqrt(exp(-d^2 / kernel_width^2)).
3. Fit a weighted ridge regression of the scores on the masks, penalty 1 on the coefficients and none on the
   intercept. Importance = coefficients, quality = weighted R squared.

`mode="compat"` draws the masks that lime 0.2.0.1 draws from a fresh `RandomState(seed)` for each text. Words must then
be cut at U+0020 alone, as with lime's `split_expression=" "`.

`sampling="paired"` needs about two thirds of the probes for the same stability (`benchmarks/bench_probes.py`):

1. How many words to hide is drawn in proportion to the weight of such probes, one from each of as many equal parts of
   their total, instead of uniformly: every probe then weighs the same, and none is spent where the fit hardly looks.
2. Probes come in pairs. The words stand in a random order; one probe hides the first of them, the other the last.
3. Together the probes weigh as much as 99 uniform ones do on average: the penalty shrinks as with 100 samples.

`sampling="balanced"` needs about a third of them for texts of ten words, and two thirds for texts of twenty:

1. Sizes and weights are those of pairs. Words are chosen one by one, each time one that was hidden least often, alone
   and together with those already chosen; ties are broken at random. The second probe of a pair hides other words.
2. A model with a term for each word and for each pair of words up to 32 apart is fitted to the scores, by ridge
   regression with penalties of 0.03 for words and 0.3 times the distance for pairs.
3. What LIME with 100 samples says of this model on average follows from how often words are hidden together, without
   any probe. To it is added what LIME says of the rest that the model leaves (a regression estimator: Cassel et
   al. 1976): a wrong model costs precision, not truth.

Deviation: lime selects features first; with all words asked for it keeps them all, so that step is left out.
The ridge penalty shrinks short texts: for an additive metric and 100 samples, coefficients are 0.03, 0.33, 0.71 and
0.94 of the true effect for 1, 2, 3 and 10 words. Texts of at most two words carry the flag `shrunk`.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.random import Generator, RandomState
from numpy.typing import NDArray

from whyscore.errors import SpecError
from whyscore.explainers.engine import check_least, check_masker, check_seed
from whyscore.protocols import Masker
from whyscore.registry import component
from whyscore.settings import check_fields
from whyscore.text.maskers import Replace
from whyscore.types import Evidence, Fit, FloatMatrix, FloatVector, KeepMasks

_LEAST_AUTO = 100
_AUTO_PER_WORD = 4
_SHRUNK_UP_TO = 2
_TIES = 1e-3
_WORD_PENALTY, _PAIR_PENALTY, _REACH = 0.03, 0.3, 32


@dataclass(frozen=True, slots=True)
class Lime:
    """Explains a text by a linear model of the scores of masked versions of it.

    `samples` counts the whole text; "auto" takes four per word, at least 100. `seed` is only read in `compat`:
    None takes the seed of the run. `sampling` says how masks are drawn: uniformly, as in the paper, in pairs, or
    `balanced`, so that all words are masked equally often.
    """

    samples: int | Literal["auto"] = 100
    masker: Masker = component("masker", default=Replace())
    mode: Literal["default", "compat"] = "default"
    kernel_width: float = 25.0
    seed: int | None = None
    sampling: Literal["uniform", "paired", "balanced"] = "uniform"

    rounds: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_fields(self)
        check_masker("lime", self.masker)
        check_seed("lime", self.seed, self.mode)
        if self.samples != "auto":
            check_least("lime", "samples", self.samples, 2)
        if self.sampling != "uniform" and self.mode == "compat":
            raise SpecError(
                f"lime: mode='compat' draws the masks of the package; with sampling={self.sampling!r} leave it out"
            )
        if not 0 < self.kernel_width < np.inf:
            raise SpecError(f"lime: kernel_width is {self.kernel_width!r}, expected a number above 0")

    def raise_budget(self) -> "Lime | None":
        return None if self.samples == "auto" else replace(self, samples=2 * self.samples)

    def cost(self, words: int) -> int:
        return self._samples(words) - 1 if words else 0

    def plan(self, evidence: Evidence, rng: Generator) -> KeepMasks:
        words = len(evidence.words)
        if self.sampling != "uniform":
            draw = paired_masks if self.sampling == "paired" else balanced_masks
            return draw(words, self.cost(words), self.kernel_width, rng)
        if self.mode == "default" or not words:
            return draw_masks(words, self.cost(words), rng)
        seed = evidence.seed if self.seed is None else self.seed
        return compat_masks(words, self._samples(words), RandomState(seed))

    def fit(self, evidence: Evidence) -> Fit:
        if not len(evidence.words):
            return Fit(np.zeros(0))
        weigh = closeness if self.sampling == "uniform" else paired_weights
        weights = weigh(evidence.masks, self.kernel_width)
        if self.sampling == "balanced":
            ridge = ridge_by_pairs(evidence.masks, evidence.scores, weights, self.kernel_width)
        else:
            ridge = weighted_ridge(evidence.masks, evidence.scores, weights)
        quality = None if np.isnan(ridge.r2) else ridge.r2
        return Fit(ridge.coefficients, quality=quality, flags=self._flags(len(evidence.words), quality))

    def _samples(self, words: int) -> int:
        return max(_LEAST_AUTO, _AUTO_PER_WORD * words) if self.samples == "auto" else self.samples

    def _flags(self, words: int, quality: float | None) -> tuple[str, ...]:
        conditions = {
            "shrunk": words <= _SHRUNK_UP_TO,
            "few samples": self._samples(words) < words,
            "constant": quality is None,
        }
        return tuple(flag for flag, holds in conditions.items() if holds)


class Ridge(NamedTuple):
    """A weighted ridge regression; `r2` is NaN where all scores are equal."""

    coefficients: FloatVector
    intercept: float
    r2: float


def draw_masks(words: int, rows: int, rng: Generator) -> KeepMasks:
    """Return random masks: the number hidden is uniform from 1 to all words, their positions are any."""
    if not words:
        return np.zeros((0, 0), dtype=np.bool_)
    hidden = rng.integers(1, words + 1, size=rows)
    places = np.argsort(rng.random((rows, words)), axis=1)
    masks: KeepMasks = places >= hidden[:, np.newaxis]
    return masks


def paired_masks(words: int, rows: int, kernel_width: float, rng: Generator) -> KeepMasks:
    """Return random masks in pairs that hide equally many words, from the two ends of a random order."""
    if not words:
        return np.zeros((0, 0), dtype=np.bool_)
    pairs = (rows + 1) // 2
    hidden = _draw_sizes(words, pairs, kernel_width, rng)[:, np.newaxis]
    places = np.argsort(rng.random((pairs, words)), axis=1)
    masks = np.stack([places >= hidden, places < words - hidden], axis=1)
    return masks.reshape(2 * pairs, words)[:rows]


def balanced_masks(words: int, rows: int, kernel_width: float, rng: Generator) -> KeepMasks:
    """Return masks in pairs that hide equally many words: all words, and all pairs of words, about equally often."""
    if not words:
        return np.zeros((0, 0), dtype=np.bool_)
    pairs = (rows + 1) // 2
    masks = np.ones((2 * pairs, words), dtype=np.bool_)
    times, together = np.zeros(words), np.zeros((words, words))
    sizes = rng.permutation(_draw_sizes(words, pairs, kernel_width, rng))
    for row, size in enumerate(np.repeat(sizes, 2).tolist()):
        # The second probe of a pair hides what the first one keeps, as far as that goes.
        avoided = ~masks[row - 1] if row % 2 else np.zeros(words)
        cost = times + _TIES * rng.random(words) + 2 * pairs * words * avoided
        hidden: list[int] = []
        while len(hidden) < size:
            hidden.append(int(cost.argmin()))
            cost += together[hidden[-1]] / 2
            cost[hidden[-1]] = np.inf
        masks[row, hidden] = False
        times[hidden] += 1
        together[np.ix_(hidden, hidden)] += 1
    return masks[:rows]


def _draw_sizes(words: int, number: int, kernel_width: float, rng: Generator) -> NDArray[np.intp]:
    """Return how many words to hide: by the weight of such probes, one from each of equal parts of their total."""
    reached = np.cumsum(_weights_by_size(words, kernel_width))
    drawn = (np.arange(number) + rng.random(number)) / number * reached[-1]
    sizes: NDArray[np.intp] = np.minimum(np.searchsorted(reached, drawn), words - 1) + 1
    return sizes


def paired_weights(masks: KeepMasks, kernel_width: float) -> FloatVector:
    """Return 1 for the whole text, and for all probes the same: together what 99 of `draw_masks` weigh on average."""
    probes = len(masks) - 1
    mean = float(_weights_by_size(masks.shape[1], kernel_width).mean())
    return np.append(1.0, np.full(probes, (_LEAST_AUTO - 1) * mean / max(probes, 1)))


def _weights_by_size(words: int, kernel_width: float) -> FloatVector:
    """Return the weights of probes that hide 1, 2 ... all words."""
    return closeness(np.tri(words, dtype=np.bool_)[::-1] & ~np.eye(words, dtype=np.bool_)[::-1], kernel_width)


def compat_masks(words: int, samples: int, state: RandomState) -> KeepMasks:
    """Return the masks of lime 0.2.0.1 without its first row, the whole text; the state advances as lime's does."""
    masks = np.ones((samples - 1, words), dtype=np.bool_)
    for row, hidden in zip(masks, state.randint(1, words + 1, samples - 1), strict=True):
        row[state.choice(words, hidden, replace=False)] = False
    return masks


def closeness(masks: KeepMasks, kernel_width: float) -> FloatVector:
    """Return each mask's weight: 1 for the whole text, less the more words are hidden."""
    distance = 100 * (1 - np.sqrt(masks.mean(axis=1)))
    weights: FloatVector = np.sqrt(np.exp(-((distance / kernel_width) ** 2)))
    return weights


def ridge_by_pairs(masks: KeepMasks, scores: FloatVector, weights: FloatVector, kernel_width: float) -> Ridge:
    """Return LIME's model on average, by way of one with terms for pairs of words, plus that of what it leaves."""
    hidden, words = ~masks, masks.shape[1]
    first, second = np.triu_indices(words, 1)
    near = second - first <= _REACH
    first, second = first[near], second[near]
    penalties = np.sqrt(np.append(np.full(words, _WORD_PENALTY), _PAIR_PENALTY * (second - first)))
    terms = np.hstack([hidden, hidden[:, first] & hidden[:, second]]) / penalties
    model = weighted_ridge(terms, scores, weights)
    rest = scores - (terms @ model.coefficients + model.intercept)
    effects = model.coefficients / penalties
    average = average_lime(effects[:words], effects[words:], (first, second), kernel_width)
    coefficients = average + weighted_ridge(masks, rest, weights).coefficients
    share, raised = weights / weights.sum(), scores - scores[0]
    left = raised - masks @ coefficients
    intercept = float(share @ left)
    total = float(share @ (raised - share @ raised) ** 2)
    r2 = 1 - float(share @ (left - intercept) ** 2) / total if total > 0 else np.nan
    return Ridge(coefficients, float(scores[0]) + intercept, r2)


def average_lime(
    singles: FloatVector, pairs: FloatVector, places: tuple[NDArray[np.intp], NDArray[np.intp]], kernel_width: float
) -> FloatVector:
    """Return LIME's coefficients with 99 average probes, given the effects of hiding words and pairs of words.

    Any one, two or three words are hidden together with probabilities that depend on their number alone. Moments of
    masks, and the ridge regression on them, have a closed form.
    """
    words = len(singles)
    size = np.arange(1, words + 1)
    weights = (_LEAST_AUTO - 1) / words * _weights_by_size(words, kernel_width)
    total = 1 + float(weights.sum())
    falling = np.cumprod([(size - k) / max(words - k, 1) for k in range(3)], axis=0)
    once, twice, thrice = (falling @ weights / total).tolist()
    spread, shared = once - twice, twice - once**2
    around = np.bincount(places[0], pairs, words) + np.bincount(places[1], pairs, words)
    moments = spread * singles + shared * singles.sum()
    moments += twice * (1 - once) * around + (thrice - once * twice) * (pairs.sum() - around)
    moments *= total
    diagonal = total * spread + 1
    lessened = moments - total * shared * moments.sum() / (diagonal + words * total * shared)
    result: FloatVector = -lessened / diagonal
    return result


def weighted_ridge(masks: KeepMasks | FloatMatrix, scores: FloatVector, weights: FloatVector) -> Ridge:
    """Return the linear model of the scores that minimises the weighted squares plus the squared coefficients.

    Of the two equivalent linear systems, words x words and probes x probes, the smaller one is solved.
    """
    share = weights / weights.sum()
    # Measured from the first score, equal scores give coefficients of exactly 0.
    raised = scores - scores[0]
    centre, middle = share @ masks, float(share @ raised)
    root = np.sqrt(weights)
    left = (masks - centre) * root[:, np.newaxis]
    right = (raised - middle) * root
    probes, words = left.shape
    if words <= probes:
        coefficients = np.linalg.solve(left.T @ left + np.eye(words), left.T @ right)
    else:
        coefficients = left.T @ np.linalg.solve(left @ left.T + np.eye(probes), right)
    total = float(right @ right)
    rest = float(np.sum((right - left @ coefficients) ** 2))
    intercept = float(scores[0] + middle - centre @ coefficients)
    return Ridge(coefficients, intercept, 1 - rest / total if total > 0 else np.nan)
