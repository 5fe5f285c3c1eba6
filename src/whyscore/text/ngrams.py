"""Which words fit between two others: an n-gram model of both sides, learned by counting.

1. Count, over a corpus, every word after its one and two left neighbours and before its one and two right ones; texts
   are bounded by a mark.
2. The left model is Witten and Bell's (1991) interpolation: a context seen N times before T different words trusts its
   own counts by N / (N + T) and the next shorter context by the rest; the shortest is the word's frequency. The right
   model is the same, mirrored.
3. If the sides are independent given the word, P(word | left, right) is P(word | left) P(word | right) / P(word), up to
   a constant that makes the probabilities of all words sum to one.

Deterministic, no download, and small: a few seconds for a hundred thousand words.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.types import FloatVector

_BORDER = -1
_UNKNOWN = -2
_REACH = 2

Context = tuple[int, ...]


class Seen(NamedTuple):
    """The words that were seen in a context, and how often."""

    words: NDArray[np.intp]
    counts: FloatVector


@dataclass(frozen=True, eq=False)
class ContextModel:
    """The words of a corpus, most frequent first, and the contexts on their left and right."""

    words: tuple[str, ...]
    numbers: Mapping[str, int]
    frequency: FloatVector
    left: Mapping[Context, Seen]
    right: Mapping[Context, Seen]

    def probabilities(self, sentence: Sequence[str], word: int) -> FloatVector:
        """Return the probability of each known word in the place of one word, which itself is not looked at."""
        before = [self._number(sentence, word - away) for away in range(1, _REACH + 1)]
        after = [self._number(sentence, word + away) for away in range(1, _REACH + 1)]
        left = self._side(self.left, [tuple(before[:reach]) for reach in (1, _REACH)])
        right = self._side(self.right, [tuple(after[:reach]) for reach in (1, _REACH)])
        raw = left * right / self.frequency
        result: FloatVector = raw / raw.sum()
        return result

    def _number(self, sentence: Sequence[str], place: int) -> int:
        return self.numbers.get(sentence[place], _UNKNOWN) if 0 <= place < len(sentence) else _BORDER

    def _side(self, contexts: Mapping[Context, Seen], longer_and_longer: Sequence[Context]) -> FloatVector:
        result = self.frequency
        for context in longer_and_longer:
            seen = contexts.get(context)
            if seen is not None:
                total, kinds = seen.counts.sum(), len(seen.words)
                result = result * (kinds / (total + kinds))
                result[seen.words] += seen.counts / (total + kinds)
        return result


def learn(sentences: Iterable[Sequence[str]]) -> ContextModel:
    """Return the model of a corpus; ties in frequency are ordered by the words themselves.

    >>> model = learn([["a", "cat"], ["a", "dog"], ["the", "cat"]])
    >>> model.words[int(model.probabilities(["a", "?"], 1).argmax())]
    'cat'
    """
    corpus = list(sentences)
    count = Counter(word for sentence in corpus for word in sentence)
    words = tuple(sorted(count, key=lambda word: (-count[word], word)))
    numbers = {word: number for number, word in enumerate(words)}
    frequency = np.array([count[word] for word in words], dtype=np.float64)
    left: dict[Context, Counter[int]] = {}
    right: dict[Context, Counter[int]] = {}
    for sentence in corpus:
        ids = [_BORDER] * _REACH + [numbers[word] for word in sentence] + [_BORDER] * _REACH
        for here in range(_REACH, len(ids) - _REACH):
            for reach in (1, _REACH):
                left.setdefault(tuple(ids[here - reach : here][::-1]), Counter())[ids[here]] += 1
                right.setdefault(tuple(ids[here + 1 : here + 1 + reach]), Counter())[ids[here]] += 1
    return ContextModel(words, numbers, frequency / frequency.sum(), _arrays(left), _arrays(right))


def _arrays(contexts: Mapping[Context, Counter[int]]) -> dict[Context, Seen]:
    return {
        context: Seen(np.array(list(count), dtype=np.intp), np.array(list(count.values()), dtype=np.float64))
        for context, count in contexts.items()
    }
