"""Owen values on a tree of spans, after Owen (1977) and shap's PartitionExplainer: fewer probes for long texts.

1. Halve the text again and again into spans of neighbouring words: a balanced binary tree, fixed by the length.
2. A node stands for a span in a context, the words kept outside it. What the span adds there is known:
   score(context + span) - score(context). The root is the whole text in the empty context.
3. Expanding a node asks two probes, context + left half and context + right half. Then each half is known in two
   contexts, without and with the other half, and counts one half in each.
4. Round by round expand the nodes that contribute most, |addition| times weight, until `budget` probes are used. Where
   the budget covers the whole tree, everything is asked in the first round.
5. Fit: words of a span that was not expanded share its addition equally. Importances add up to
   score(whole) - score(empty), and are the exact Owen values of the tree when it was expanded to the words.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from whyscore.explainers.engine import check_least, check_masker
from whyscore.protocols import Masker
from whyscore.registry import component
from whyscore.settings import check_fields
from whyscore.text.maskers import Replace
from whyscore.types import Evidence, Fit, KeepMasks

_SINGLE = 1


@dataclass(frozen=True, slots=True)
class Partition:
    """Explains a text by halving it repeatedly, going deeper where more of the score depends on it.

    `budget` counts the probes beside the empty text; `rounds` is how often it may look at scores and choose anew.
    """

    budget: int = 500
    masker: Masker = component("masker", default=Replace())
    rounds: int = 10

    def __post_init__(self) -> None:
        check_fields(self)
        check_masker("partition", self.masker)
        check_least("partition", "budget", self.budget, 2)
        check_least("partition", "rounds", self.rounds, 1)

    def raise_budget(self) -> "Partition":
        return replace(self, budget=2 * self.budget)

    def cost(self, words: int) -> int:
        if not words:
            return 0
        whole = _whole_tree(words)
        return 1 + (whole if whole <= self.budget else min(self.budget // 2 * 2, _reachable(self.rounds)))

    def plan(self, evidence: Evidence, rng: Generator) -> KeepMasks:  # noqa: ARG002 - nothing is drawn
        words = len(evidence.words)
        left = self.cost(words) - (len(evidence.masks) - 1)
        if left <= 0:
            return np.zeros((0, words), dtype=np.bool_)
        if len(evidence.masks) > 1:
            return self._expansion(evidence, left)
        empty = np.zeros(words, dtype=np.bool_)
        if self.budget >= _whole_tree(words):
            return np.array([empty, *_all_masks(0, words, empty)])
        return np.array([empty, *_halves(0, words, empty)])

    def fit(self, evidence: Evidence) -> Fit:
        importance = np.zeros(len(evidence.words))
        nodes = list(_leaves(evidence)) if len(evidence.words) else []
        for node in nodes:
            importance[node.start : node.end] += node.addition * node.weight / (node.end - node.start)
        shared = any(node.end - node.start > _SINGLE for node in nodes)
        return Fit(importance, method="owen", flags=("shared spans",) if shared else ())

    def _expansion(self, evidence: Evidence, left: int) -> KeepMasks:
        """Return the masks of the nodes with the largest contribution, as many as one round may ask."""
        nodes = [node for node in _leaves(evidence) if node.end - node.start > _SINGLE]
        size = [-abs(node.addition) * node.weight for node in nodes]
        number = min(left, _per_round(self.budget, self.rounds)) // 2
        largest = [nodes[k] for k in np.argsort(size, kind="stable")[:number]]
        masks = [mask for node in largest for mask in _halves(node.start, node.end, node.context)]
        return np.array(masks, dtype=np.bool_).reshape(-1, len(evidence.words))


class Node(NamedTuple):
    """The span from word `start` to before word `end`, in the context of some other words."""

    start: int
    end: int
    context: KeepMasks
    weight: float
    addition: float


def _leaves(evidence: Evidence) -> Iterator[Node]:
    """Yield the nodes that were not expanded, reading off the asked masks which ones were."""
    scores = {mask.tobytes(): score for mask, score in zip(evidence.masks, evidence.scores.tolist(), strict=True)}
    words = len(evidence.words)
    empty = np.zeros(words, dtype=np.bool_)
    waiting = [(0, words, empty, 1.0, scores[empty.tobytes()], evidence.scores.tolist()[0])]
    while waiting:
        start, end, context, weight, below, above = waiting.pop()
        with_left, with_right = _halves(start, end, context)
        left, right = scores.get(with_left.tobytes()), scores.get(with_right.tobytes())
        if end - start == _SINGLE or left is None or right is None:
            yield Node(start, end, context, weight, above - below)
            continue
        middle, half = (start + end) // 2, weight / 2
        waiting += [
            (middle, end, with_left, half, left, above),
            (start, middle, with_right, half, right, above),
            (middle, end, context, half, below, right),
            (start, middle, context, half, below, left),
        ]


def _halves(start: int, end: int, context: KeepMasks) -> tuple[KeepMasks, KeepMasks]:
    """Return the context with the left half of a span, and with its right half."""
    middle = (start + end) // 2
    left, right = context.copy(), context.copy()
    left[start:middle] = True
    right[middle:end] = True
    return left, right


def _all_masks(start: int, end: int, context: KeepMasks) -> Iterator[KeepMasks]:
    """Yield the masks of a node and of everything below it."""
    if end - start == _SINGLE:
        return
    middle = (start + end) // 2
    left, right = _halves(start, end, context)
    yield left
    yield right
    for other in (context, right):
        yield from _all_masks(start, middle, other)
    for other in (context, left):
        yield from _all_masks(middle, end, other)


@lru_cache(maxsize=4096)
def _whole_tree(words: int) -> int:
    """Return how many probes it takes to expand every node of a text.

    >>> [_whole_tree(words) for words in (1, 2, 3, 4)]
    [0, 2, 6, 10]
    """
    if words <= _SINGLE:
        return 0
    return 2 + 2 * _whole_tree(words // 2) + 2 * _whole_tree(words - words // 2)


def _reachable(rounds: int) -> int:
    """Return how many probes that many rounds can ask, if each expands every node it can."""
    return sum(2 * 4**number for number in range(rounds))


def _per_round(budget: int, rounds: int) -> int:
    """Return the least number of probes per round that uses up the budget.

    Early rounds can ask no more than 2, 8, 32 ... probes; the later ones share the rest, so that they, which know
    most, have a say.

    >>> _per_round(budget=42, rounds=3), _per_round(budget=24, rounds=4)
    (32, 8)
    """
    target = min(budget // 2 * 2, _reachable(rounds))
    for full in range(rounds):
        each = -(-(target - _reachable(full)) // (2 * (rounds - full))) * 2
        if each <= 2 * 4**full:
            return each
    return target
