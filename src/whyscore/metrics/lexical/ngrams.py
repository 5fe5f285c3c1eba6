"""N-grams of characters and tokens, and how many of them two texts share.

1. A text becomes its n-grams, one sequence per order: strings of characters, or tuples of tokens.
2. The text that many others are compared with becomes a table per order: every n-gram with its count.
3. A match is clipped: an n-gram counts as often as it stands in both texts.

The number of matches is the same whichever text is the table, so callers turn the text that stays into tables.

What the matches of an n-gram metric say of each word.

A word stands in several n-grams, and each of them matched or failed.

1. A matched n-gram speaks for every word it touches.
2. A failed n-gram speaks against the words at fault: those touched by the shortest failed n-grams inside it. "have a
   cat" fails because of "cat" if "have a" matched and "cat" did not; if all its parts matched, it fails as a whole.
3. Per order, a word's balance = (n-grams that speak for it - those that speak against it) / n-grams that touch it.
4. Its importance is the mean over the orders, all with the same weight, as BLEU and chrF average them.

So it runs from -1 (every n-gram that touches the word failed) to +1 (every one matched), whatever the length of the
word or of the text, and it is below 0 only for words that are at fault somewhere. An n-gram that occurs more often than
the other text allows is clipped: each occurrence has matched in part. Orders longer than the text have no n-grams and
are left out; a word the metric does not read at all (punctuation under ROUGE) has importance 0.

Why the blame: on post-edited translations (Eval4NLP 2021, et-en and ro-en, 300 sentences each) the sign of BLEU's word
scores finds the edited words with F1 .88 and .92; where failed n-grams speak against all their words, with .79 and .81.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.marking import Span
from whyscore.metrics.spans import touching
from whyscore.types import FloatMatrix, FloatVector, HiddenWords, IntVector, Words, WordScores

Gram = str | tuple[str, ...]
"""Characters in a row, or tokens in a row."""


class Table(NamedTuple):
    """The n-grams of one order with their counts."""

    counts: Mapping[Gram, int]
    repeated: Mapping[Gram, int]
    """Those that occur more than once: only they can need clipping."""
    total: int


def character_grams(text: str, order: int) -> list[Sequence[Gram]]:
    """Return the runs of 1, 2, ... `order` characters.

    >>> character_grams("abc", 2)
    [['a', 'b', 'c'], ['ab', 'bc']]
    """
    return [[text[start : start + n] for start in range(len(text) - n + 1)] for n in range(1, order + 1)]


def token_grams(tokens: Sequence[str], order: int) -> list[Sequence[Gram]]:
    """Return the runs of 1, 2, ... `order` tokens.

    >>> token_grams(["a", "cat"], 2)
    [[('a',), ('cat',)], [('a', 'cat')]]
    """
    shifted = [tokens[start:] for start in range(order)]
    return [list(zip(*shifted[:n], strict=False)) for n in range(1, order + 1)]


def table(grams: Sequence[Gram]) -> Table:
    """Return the n-grams of one order as a table."""
    counts = Counter(grams)
    return Table(counts, {gram: count for gram, count in counts.items() if count > 1}, len(grams))


_DRAWS = 1024  # whose comparisons fit into the fast memory of a processor


def hidden_matches(
    own: IntVector, others: Sequence[IntVector], hidden: HiddenWords, order: int
) -> tuple[FloatMatrix, FloatMatrix]:
    """Return the matches of each order, one row per draw: hidden words all agree (best), or none does (worst).

    Texts are numbers of words. An n-gram of the text matches if fewer equal ones stand before it than another text has;
    in the worst case those with a hidden word never do.

    >>> drawn = np.array([[False, True, True]])
    >>> best, worst = hidden_matches(np.array([0, 1]), [np.array([0, 2])], drawn, 2)
    >>> best.tolist(), worst.tolist()
    ([[2.0, 1.0]], [[1.0, 0.0]])
    """
    words, numbers = np.unique(np.concatenate([own, *others]), return_inverse=True)
    own, *others = np.split(numbers, np.cumsum([len(own), *map(len, others)])[:-1])
    base = len(words) + 1 | 1
    best, worst = (np.zeros((len(hidden), order)) for _ in range(2))
    for start in range(0, len(hidden), _DRAWS):
        rows = slice(start, start + _DRAWS)
        drawn = np.ascontiguousarray(hidden[rows, words].T)
        masks = [drawn[text] for text in (own, *others)]
        codes = [np.where(m, 0, text[:, None] + 1) for m, text in zip(masks, (own, *others), strict=True)]
        grams, touched = list(codes), masks[0]
        for n in range(1, min(order, len(own)) + 1):
            if n > 1:
                grams = [gram[:-1] * base + code[n - 1 :] for gram, code in zip(grams, codes, strict=True)]
                touched = touched[:-1] | masks[0][n - 1 :]
            matched = _matched([gram.astype(_smallest(base**n)) for gram in grams])
            best[rows, n - 1] = matched.sum(axis=0)
            worst[rows, n - 1] = (matched & ~touched).sum(axis=0)
    return best, worst


def _smallest(codes: int) -> type[np.unsignedinteger]:
    """Return the smallest type for so many codes: comparisons of small numbers are fast."""
    return next((kind for kind in (np.uint8, np.uint16, np.uint32) if codes <= np.iinfo(kind).max), np.uint64)


def _matched(grams: Sequence[NDArray[np.unsignedinteger]]) -> NDArray[np.bool_]:
    """Return which n-grams (n-grams x draws) of the first text stand in another one often enough."""
    own, *others = grams
    kind = _smallest(max(map(len, grams)))
    before = np.zeros(own.shape, dtype=kind)
    for place in range(len(own) - 1):
        before[place + 1 :] += (own[place + 1 :] == own[place]).view(np.uint8)
    most = np.zeros(own.shape, dtype=kind)
    for other in others:
        counts = np.zeros(own.shape, dtype=kind)
        for gram in other:
            counts += (own == gram).view(np.uint8)
        np.maximum(most, counts, out=most)
    found: NDArray[np.bool_] = before < most
    return found


def widest(tables: Sequence[Table]) -> Table:
    """Return for each n-gram the largest count any table has, BLEU's rule for several references."""
    if len(tables) == 1:
        return tables[0]
    counts: Counter[Gram] = Counter()
    for one in tables:
        counts |= Counter(one.counts)
    return Table(counts, {gram: count for gram, count in counts.items() if count > 1}, counts.total())


def matched(grams: Sequence[Gram], other: Table) -> int:
    """Return how many n-grams also stand in the table, each at most as often as there.

    >>> matched("banana", table("ananas"))
    5
    """
    found = len(other.counts.keys() & grams)
    if not other.repeated:
        return found
    again = Counter(filter(other.repeated.__contains__, grams))
    return found + sum(map(min, again.values(), map(other.repeated.__getitem__, again))) - len(again)


def credit(grams: Sequence[Gram], other: Table) -> FloatVector:
    """Return for each n-gram the share of it that matched: 1, 0, or between when it occurs more often than there.

    >>> credit("aab", table("ab")).tolist()
    [0.5, 0.5, 1.0]
    """
    own = Counter(grams)
    there = other.counts.get
    shares = {gram: 1.0 if (known := there(gram, 0)) >= count else known / count for gram, count in own.items()}
    return np.array([shares[gram] for gram in grams], dtype=np.float64)


NOT_READ = "not read by the metric"


class Order(NamedTuple):
    """The n-grams of one order: how far each of them matched, 0 to 1, in the order they stand in the text."""

    n: int
    credit: FloatVector


class Chain(NamedTuple):
    """The n-grams of one kind of units, shorter orders first: where the units stand, and what matched."""

    units: Sequence[Span]
    orders: Sequence[Order]
    name: str = "{n}-grams"


def balances(words: Words, chains: Sequence[Chain]) -> WordScores:
    """Return the importance of each word, with the matched n-grams of each order as a note.

    >>> chain = Chain([(0, 1), (2, 5)], [Order(1, np.array([1.0, 0.0])), Order(2, np.array([0.0]))])
    >>> scores = balances(Words("a cat", ((0, 1), (2, 5))), [chain])
    >>> scores.importance.tolist(), scores.notes
    ([0.5, -1.0], ('1-grams 1/1, 2-grams 0/1', '1-grams 0/1, 2-grams 0/1'))
    """
    found: list[list[float]] = [[] for _ in words.spans]
    notes: list[list[str]] = [[] for _ in words.spans]
    for chain in chains:
        touched = [
            (number, units.start, units.stop, (1 << len(units)) - 1 << units.start)
            for number, units in enumerate(touching(chain.units, words))
            if units
        ]
        for order, faults in zip(chain.orders, _faults(chain.orders), strict=True):
            credit, name = order.credit.tolist(), chain.name.format(n=order.n)
            lost = [1 - share for share in credit]
            for number, begin, stop, own in touched:
                grams = slice(max(0, begin - order.n + 1), min(len(credit), stop))
                size = grams.stop - grams.start
                if size > 0:
                    matched = sum(credit[grams])
                    # The n-grams that failed through one of the word's units.
                    against = sum([loss for loss, fault in zip(lost[grams], faults[grams], strict=True) if fault & own])
                    found[number].append((matched - against) / size)
                    notes[number].append(f"{name} {matched:.3g}/{size}")
    importance = [sum(values) / len(values) if values else 0.0 for values in found]
    return WordScores(np.array(importance, dtype=np.float64), tuple(", ".join(note) or NOT_READ for note in notes))


def _faults(orders: Sequence[Order]) -> list[list[int]]:
    """Return for each n-gram of each order the units at fault, as bits; none where it matched."""
    result: list[list[int]] = []
    for order in orders:
        # The first order has nothing inside that could have failed.
        inner = result[-1] if result else [0] * (len(order.credit) + 1)
        whole = (1 << order.n) - 1
        result.append(
            [
                0 if share == 1 else (inner[start] | inner[start + 1]) or whole << start
                for start, share in enumerate(order.credit.tolist())
            ]
        )
    return result
