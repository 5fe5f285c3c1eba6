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
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import chain as chain_lists
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.marking import Span
from whyscore.metrics.needs import need_place, need_references
from whyscore.types import FloatMatrix, FloatVector, HiddenWords, IntVector, Place, Segment, Words, WordScores

Gram = str | tuple[str, ...]
"""Characters in a row, or tokens in a row."""


class Table(NamedTuple):
    """The n-grams of one order with their counts."""

    counts: Mapping[Gram, int]
    repeated: Mapping[Gram, int]
    """Those that occur more than once: only they can need clipping."""
    total: int


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
    hypothesis: IntVector, others: Sequence[IntVector], hidden: HiddenWords, order: int
) -> tuple[FloatMatrix, FloatMatrix]:
    """Return the matches of each order, one row per draw: hidden words all agree (best), or none does (worst).

    Texts are numbers of words. An n-gram of the text matches if fewer equal ones stand before it than another text has;
    in the worst case those with a hidden word never do.

    >>> drawn = np.array([[False, True, True]])
    >>> best, worst = hidden_matches(np.array([0, 1]), [np.array([0, 2])], drawn, 2)
    >>> best.tolist(), worst.tolist()
    ([[2.0, 1.0]], [[1.0, 0.0]])
    """
    words, numbers = np.unique(np.concatenate([hypothesis, *others]), return_inverse=True)
    hypothesis, *others = np.split(numbers, np.cumsum([len(hypothesis), *map(len, others)])[:-1])
    base = len(words) + 1 | 1
    best, worst = (np.zeros((len(hidden), order)) for _ in range(2))
    for start in range(0, len(hidden), _DRAWS):
        rows = slice(start, start + _DRAWS)
        drawn = np.ascontiguousarray(hidden[rows, words].T)
        masks = [drawn[text] for text in (hypothesis, *others)]
        codes = [np.where(m, 0, text[:, None] + 1) for m, text in zip(masks, (hypothesis, *others), strict=True)]
        grams, touched = list(codes), masks[0]
        for n in range(1, min(order, len(hypothesis)) + 1):
            if n > 1:
                grams = [gram[:-1] * base + code[n - 1 :] for gram, code in zip(grams, codes, strict=True)]
                touched = touched[:-1] | masks[0][n - 1 :]
            matched = _match_grams([gram.astype(_smallest(base**n)) for gram in grams])
            best[rows, n - 1] = matched.sum(axis=0)
            worst[rows, n - 1] = (matched & ~touched).sum(axis=0)
    return best, worst


def _smallest(codes: int) -> type[np.unsignedinteger]:
    """Return the smallest type for so many codes: comparisons of small numbers are fast."""
    return next((kind for kind in (np.uint8, np.uint16, np.uint32) if codes <= np.iinfo(kind).max), np.uint64)


def _match_grams(grams: Sequence[NDArray[np.unsignedinteger]]) -> NDArray[np.bool_]:
    """Return which n-grams (n-grams x draws) of the first text stand in another one often enough."""
    grams_of_first, *others = grams
    kind = _smallest(max(map(len, grams)))
    before = np.zeros(grams_of_first.shape, dtype=kind)
    for place in range(len(grams_of_first) - 1):
        before[place + 1 :] += (grams_of_first[place + 1 :] == grams_of_first[place]).view(np.uint8)
    most = np.zeros(grams_of_first.shape, dtype=kind)
    for other in others:
        counts = np.zeros(grams_of_first.shape, dtype=kind)
        for gram in other:
            counts += (grams_of_first == gram).view(np.uint8)
        np.maximum(most, counts, out=most)
    result: NDArray[np.bool_] = before < most
    return result


def count_matches(grams: Sequence[Gram], other: Table) -> int:
    """Return how many n-grams also stand in the table, each at most as often as there.

    >>> count_matches("banana", table("ananas"))
    5
    """
    count = len(other.counts.keys() & grams)
    if not other.repeated:
        return count
    again = Counter(filter(other.repeated.__contains__, grams))
    return count + sum(map(min, again.values(), map(other.repeated.__getitem__, again))) - len(again)


def credit(grams: Sequence[Gram], other: Table) -> FloatVector:
    """Return for each n-gram the share of it that matched: 1, 0, or between when it occurs more often than there.

    >>> credit("aab", table("ab")).tolist()
    [0.5, 0.5, 1.0]
    """
    counts = Counter(grams)
    there = other.counts.get
    shares = {
        gram: 1.0 if (available := there(gram, 0)) >= count else available / count for gram, count in counts.items()
    }
    return np.array([shares[gram] for gram in grams], dtype=np.float64)


NOT_READ = "not read by the metric"
_PORTION = 64
_BITS = 62  # units of an n-gram that a whole number of the processor has bits for


class Order(NamedTuple):
    """The n-grams of one order: how far each of them matched, 0 to 1, in the order they stand in the text."""

    n: int
    credit: FloatVector


class Chain(NamedTuple):
    """The n-grams of one kind of units, shorter orders first: where the units stand, and what matched."""

    units: Sequence[Span]
    orders: Sequence[Order]
    name: str = "{n}-grams"


def balance_words(
    name: str,
    segments: Sequence[Segment],
    place: Place,
    words: Sequence[Words],
    chains: Callable[[Sequence[Segment], Place], Sequence[Sequence[Chain]]],
) -> list[WordScores]:
    """Return the word scores of a metric of n-grams, from those of its texts that matched.

    Texts are taken in portions: enough that numpy's calls cost little, few enough for any memory.
    """
    need_place(name, place)
    need_references(name, segments)
    parts = [slice(start, start + _PORTION) for start in range(0, len(segments), _PORTION)]
    return [score for part in parts for score in balances(words[part], chains(segments[part], place))]


def balances(texts: Sequence[Words], chains: Sequence[Sequence[Chain]]) -> list[WordScores]:
    """Return the importance of each word of each text, with the matched n-grams of each order as a note.

    All texts are worked out together. They have chains of the same kinds, with the same orders.

    >>> chain = Chain([(0, 1), (2, 5)], [Order(1, np.array([1.0, 0.0])), Order(2, np.array([0.0]))])
    >>> [scores] = balances([Words("a cat", ((0, 1), (2, 5)))], [[chain]])
    >>> scores.importance.tolist(), scores.notes
    ([0.5, -1.0], ('1-grams 1/1, 2-grams 0/1', '1-grams 0/1, 2-grams 0/1'))
    """
    if not texts:
        return []
    counts = np.array([len(words.spans) for words in texts], dtype=np.int64)
    sums, numbers = np.zeros(counts.sum()), np.zeros(counts.sum(), dtype=np.int64)
    notes: list[list[str]] = []
    for kind in zip(*chains, strict=True):
        units = _units_of_words(texts, kind, counts)
        faults: _Faults | None = None
        for orders in zip(*(chain.orders for chain in kind), strict=True):
            flat = _Flat.of([order.credit for order in orders])
            faults = _faults(flat, orders[0].n, faults)
            matched, against, sizes = _speaking(units, flat, faults, orders[0].n)
            there = sizes > 0
            sums[there] += (matched[there] - against[there]) / sizes[there]
            numbers += there
            name = kind[0].name.format(n=orders[0].n)
            notes.append([_note(name, *pair) for pair in zip(matched.tolist(), sizes.tolist(), strict=True)])
    importance = sums / np.maximum(numbers, 1)
    notes_of_words = [", ".join(filter(None, note)) or NOT_READ for note in zip(*notes, strict=True)] or [
        NOT_READ
    ] * len(sums)
    ends = np.cumsum(counts).tolist()
    return [
        WordScores(importance[end - count : end], tuple(notes_of_words[end - count : end]))
        for end, count in zip(ends, counts.tolist(), strict=True)
    ]


@lru_cache(maxsize=1 << 14)
def _note(name: str, matched: float, size: int) -> str:
    return f"{name} {matched:.3g}/{size}" if size > 0 else ""


class _Flat(NamedTuple):
    """How far the n-grams of one order matched, of all texts in one row: text t begins at `starts[t]`."""

    credit: FloatVector
    starts: IntVector
    lengths: IntVector

    @classmethod
    def of(cls, rows: Sequence[FloatVector]) -> "_Flat":
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        return cls(np.concatenate(rows), np.cumsum(lengths) - lengths, lengths)


class _WordUnits(NamedTuple):
    """For each word its text, and the first unit that touches it and the one after the last."""

    text: IntVector
    first: IntVector
    stop: IntVector


class _Faults(NamedTuple):
    """For each n-gram the units at fault, as bits counted from its first unit; none where it matched."""

    bits: NDArray[np.generic]
    starts: IntVector


def _units_of_words(texts: Sequence[Words], chains: Sequence[Chain], counts: IntVector) -> _WordUnits:
    """Return which units touch each word, as `touching` does for one text."""
    units = [chain.units for chain in chains]
    number = np.array([len(text) for text in units], dtype=np.int64)
    # Texts follow each other on one line, each beginning where none before it can end.
    longest = max((len(words.text) for words in texts), default=0) + 1
    lines = np.arange(len(texts), dtype=np.int64) * longest
    text = np.repeat(np.arange(len(texts)), counts)
    spans, places = (
        np.array(list(chain_lists.from_iterable(several)), dtype=np.int64).reshape(-1, 2)
        + np.repeat(lines, size)[:, None]
        for several, size in (([words.spans for words in texts], counts), (units, number))
    )
    before = (np.cumsum(number) - number)[text]
    first = np.searchsorted(places[:, 1], spans[:, 0], side="right") - before
    stop = np.searchsorted(places[:, 0], spans[:, 1], side="left") - before
    return _WordUnits(text, first, stop)


def _faults(flat: _Flat, n: int, inner: _Faults | None) -> _Faults:
    """Return the units at fault: those of the failed n-grams inside, or else all units of the n-gram."""
    kind = np.int64 if n < _BITS else object
    whole = np.full(len(flat.credit), (1 << n) - 1, dtype=kind)
    if inner is None:  # the first order has nothing inside that could have failed
        bits = whole
    else:
        places = np.arange(len(flat.credit)) + np.repeat(inner.starts - flat.starts, flat.lengths)
        shorter = inner.bits.astype(kind)
        inside = shorter[places] | (shorter[places + 1] << 1)
        bits = np.where(inside == 0, whole, inside)
    return _Faults(np.where(flat.credit == 1, 0, bits), flat.starts)


def _speaking(units: _WordUnits, flat: _Flat, faults: _Faults, n: int) -> tuple[FloatVector, FloatVector, IntVector]:
    """Return for each word the n-grams that speak for it, those that speak against it, and how many touch it."""
    begin = np.maximum(0, units.first - n + 1)
    sizes = np.minimum(flat.lengths[units.text], units.stop) - begin
    sizes = np.where(units.first < units.stop, np.maximum(sizes, 0), 0)
    word = np.repeat(np.arange(len(sizes)), sizes)
    local = np.arange(len(word)) - np.repeat(np.cumsum(sizes) - sizes - begin, sizes)
    grams = local + flat.starts[units.text][word]
    credit = flat.credit[grams]
    # The n-grams that failed through one of the word's units.
    low, high = np.maximum(units.first[word] - local, 0), np.minimum(units.stop[word] - local, n)
    bit = np.ones(1, dtype=faults.bits.dtype)
    failed = (faults.bits[grams] & ((bit << high) - (bit << low))) != 0
    matched, against = (
        np.asarray(np.bincount(word, weights, minlength=len(sizes)), dtype=np.float64)
        for weights in (credit, np.where(failed, 1 - credit, 0.0))
    )
    return matched, against, sizes
