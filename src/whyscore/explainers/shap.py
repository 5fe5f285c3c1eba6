"""Shapley values of words, after Lundberg and Lee (2017), arXiv 1705.07874: three ways to the same number.

1. The value of a mask is the score of its text; the base value is that of the text with every word hidden.
2. Plan the empty text and, by method,
   - `exact`: all other masks, 2^n - 1 in all (see `shapley`);
   - `permutation`: the masks along `passes` random orders, up and down, 1 + 2 passes (n - 1) in all (see `shapley`);
   - `kernel`: `budget` masks for a weighted regression, 1 + budget at the most (see `kernel`).
   `auto` is exact up to `exact_up_to` words and permutation above; the result names the method that ran.
3. Fit: importances add up to score(whole) - score(empty).

`mode="compat"` is shap 0.51's PermutationExplainer: 500 // (2n + 1) passes (`budget` instead of 500, and never less
than one pass, where the package gives up), orders from a fresh `RandomState(seed)` for each text.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.random import Generator, RandomState

from whyscore.errors import SpecError
from whyscore.explainers import kernel, shapley
from whyscore.explainers.checks import check_least, check_masker, check_seed
from whyscore.options import check_fields
from whyscore.protocols import Masker
from whyscore.registry import component
from whyscore.text.maskers import Replace
from whyscore.types import Evidence, Fit, FloatVector, KeepMasks

Method = Literal["exact", "permutation", "kernel"]

# 2^20 is a million probes for one text.
_EXACT_AT_MOST = 20
_COMPAT_BUDGET = 500
# What shap's KernelExplainer spends: 2n + 2048.
_KERNEL_BUDGET = 2048
# Far above the rounding of some thousand additions, far below any difference that matters.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Shap:
    """Explains a text by what each word adds, on average, to any set of the other words.

    `passes` is read by the permutation method, `budget` by the kernel method (None: 2n + 2048) and by `compat`
    (None: 500), `seed` by `compat` alone (None: the seed of the run).
    """

    method: Literal["auto", "exact", "permutation", "kernel"] = "auto"
    exact_up_to: int = 7
    passes: int = 10
    budget: int | None = None
    masker: Masker = component("masker", default=Replace())
    mode: Literal["default", "compat"] = "default"
    seed: int | None = None

    rounds: ClassVar[int] = 1

    def __post_init__(self) -> None:
        """Refuse options out of range, and options that would not be read."""
        check_fields(self)
        check_masker("shap", self.masker)
        check_seed("shap", self.seed, self.mode)
        check_least("shap", "passes", self.passes, 1)
        if not 0 <= self.exact_up_to <= _EXACT_AT_MOST:
            raise SpecError(f"shap: exact_up_to is {self.exact_up_to!r}, expected 0 to {_EXACT_AT_MOST}")
        if self.mode == "compat" and self.method == "kernel":
            raise SpecError(
                "shap: mode='compat' follows shap's PermutationExplainer; with method='kernel' leave it out"
            )
        if self.budget is not None:
            check_least("shap", "budget", self.budget, 2)
            if self.mode != "compat" and self.method != "kernel":
                raise SpecError(
                    f"shap: budget is {self.budget!r}, but only method='kernel' and mode='compat' read it; "
                    "set passes instead"
                )

    def cost(self, words: int) -> int:
        """Return the number of probes; more words than the exact method can take are refused."""
        if not words:
            return 0
        match self._method(words):
            case "exact":
                return (1 << _countable(words)) - 1
            case "permutation":
                return 1 + 2 * self._passes(words) * (words - 1)
            case "kernel":
                return 1 + kernel.subset_count(words, self._budget(words))

    def plan(self, evidence: Evidence, rng: Generator) -> KeepMasks:
        """Return the empty mask and those the method needs beside it."""
        words = len(evidence.words)
        if not words:
            return np.zeros((0, 0), dtype=np.bool_)
        match self._method(words):
            case "exact":
                return shapley.exact_masks(_countable(words))
            case "permutation":
                return shapley.order_masks(self._orders(evidence, rng))
            case "kernel":
                between = kernel.subset_masks(words, self._budget(words), rng)
                return np.concatenate([np.zeros((1, words), dtype=np.bool_), between])

    def fit(self, evidence: Evidence) -> Fit:
        """Return the Shapley values and the name of the method that ran."""
        words = len(evidence.words)
        method = self._method(words)
        if not words:
            return Fit(np.zeros(0), method=method)
        importance = self._values(evidence, method)
        flags = []
        if method == "kernel" and self._budget(words) < min(2 * words, 2**words - 2):
            flags.append("few samples")
        if not _adds_up(importance, evidence.scores):
            flags.append("does not add up")
        return Fit(importance, method=method, flags=tuple(flags))

    def _method(self, words: int) -> Method:
        if self.method == "auto":
            return "exact" if words <= self.exact_up_to else "permutation"
        return self.method

    def _budget(self, words: int) -> int:
        return 2 * words + _KERNEL_BUDGET if self.budget is None else self.budget

    def _passes(self, words: int) -> int:
        if self.mode == "default":
            return self.passes
        budget = _COMPAT_BUDGET if self.budget is None else self.budget
        return max(1, budget // (2 * words + 1))

    def _orders(self, evidence: Evidence, rng: Generator) -> shapley.Orders:
        words = len(evidence.words)
        if self.mode == "default":
            return shapley.draw_orders(words, self._passes(words), rng)
        seed = evidence.seed if self.seed is None else self.seed
        return shapley.compat_orders(words, self._passes(words), RandomState(seed))

    def _values(self, evidence: Evidence, method: Method) -> FloatVector:
        match method:
            case "exact":
                return shapley.exact_values(evidence.scores, len(evidence.words))
            case "permutation":
                return shapley.order_values(evidence.masks, evidence.scores)
            case "kernel":
                budget = self._budget(len(evidence.words))
                return kernel.subset_values(evidence.masks, evidence.scores, budget)


def _countable(words: int) -> int:
    if words > _EXACT_AT_MOST:
        raise SpecError(
            f"shap: method='exact' would take 2^{words} - 1 probes for a text of {words} words; it goes up to "
            f"{_EXACT_AT_MOST} words, use method='permutation' or method='kernel'"
        )
    return words


def _adds_up(importance: FloatVector, scores: FloatVector) -> bool:
    """Return whether the importances sum to the whole score less that of the empty text, row 1."""
    gap = abs(float(importance.sum()) - float(scores[0] - scores[1]))
    return gap <= _ROUNDING * max(1.0, float(np.abs(scores).max()))
