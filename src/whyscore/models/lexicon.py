"""Translation probabilities of words, learned from parallel text by IBM model 1 (Brown et al. 1993, J93-2003).

1. Cut both texts of a pair into lower-case tokens by the word boundaries of Unicode (characters in Chinese), so that
   tokenised and plain text meet; each text that is translated also has the empty word.
2. Count all pairs of tokens that stand in the same pair of texts.
3. EM, five rounds: the share of a source token in a target token is its probability among all source tokens of the
   text; the new probability is the sum of its shares, divided by those of all pairs of the source token. The same with
   the sides exchanged.
4. Prune: probabilities below 0.001 are dropped, the others stay as they are.

Nothing is drawn and texts are sorted, so equal texts in any order give equal numbers. `Lexicon.links` says how probable
each word of a text is given the other text. A word of several tokens has the mean of their logarithms, and punctuation
counts only where it is alone.

Files: `.npz` holds arrays and no pickle, with a digest; every other ending is tab-separated text, one pair of words per
line: source, target, p(target | source) and, where it is known, p(source | target). The empty word is an empty field.
"""

import hashlib
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from whyscore.errors import DataError
from whyscore.stats.matrices import divide
from whyscore.text.files import UNREADABLE_ARRAYS, read_once, text_of, write_whole
from whyscore.text.splitters import UnicodeWords
from whyscore.types import FloatMatrix, FloatVector, Side

Sentence = Sequence[str]
Indices = NDArray[np.integer]

EMPTY = ""
FLOOR = 1e-6
"""The probability of a known word that no word of the other text is linked with."""

_ROUNDS = 5
_LEAST = 1e-3
_MOST_TOKENS = 100  # of a text: longer ones are hardly sentences, and cost the product of their lengths
_COLUMNS = (3, 4)
_SPEAKS = regex.compile(r"[\p{L}\p{N}]")


class Links(NamedTuple):
    """How probable each word is given the other text, as logarithms; NaN for words that the lexicon does not know."""

    best: FloatVector
    """Given the best single word."""
    total: FloatVector
    """Given all words and the empty one: the mean, which is IBM model 1's own probability."""


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Pairs of words with their translation probabilities in both directions."""

    words: tuple[str, ...]
    """All words of both languages, the empty word first."""
    pairs: NDArray[np.int32]
    """Pairs x 2: numbers of a source and a target word, in rising order."""
    probabilities: NDArray[np.float32]
    """Pairs x 2: p(target | source) and p(source | target)."""

    @property
    def digest(self) -> str:
        """A short name for words and numbers."""
        whole = hashlib.blake2b("\n".join(self.words).encode("utf-8", "surrogatepass"), digest_size=6)
        for numbers, kind in ((self.pairs, "<i4"), (self.probabilities, "<f4")):
            whole.update(np.ascontiguousarray(numbers, dtype=kind).tobytes())
        return whole.hexdigest()

    def links(self, words: Sequence[str], others: Sequence[str], side: Side = Side.HYPOTHESIS) -> Links:
        """Return how probable each word of one side is given the words of the other one.

        >>> lexicon = learn_lexicon(["das haus", "das buch", "ein buch"], ["the house", "the book", "a book"])
        >>> lexicon.links(["house", "books"], ["das", "Haus"]).best.round(1)
        array([-0.2,  nan])
        """
        other_tokens = [token for word in others for token in tokens(word)]
        owner = np.array([k for k, word in enumerate(words) for _ in tokens(word)], dtype=np.intp)
        word_tokens = [token for word in words for token in tokens(word)]
        table = self.table(word_tokens, other_tokens, side)
        known = np.array([token in self._known[side] for token in word_tokens], dtype=np.bool_)
        best = np.where(known, np.log(table[:, 1:].max(axis=1, initial=FLOOR)), np.nan)
        total = np.where(known, np.log(np.maximum(table.mean(axis=1), FLOOR)), np.nan)
        return Links(_means(best, owner, len(words)), _means(total, owner, len(words)))

    def table(self, own: Sequence[str], given: Sequence[str], side: Side = Side.HYPOTHESIS) -> FloatMatrix:
        """Return p(token | given token), own tokens x the empty word and the given tokens; 0 where nothing is known."""
        here, there = self._numbers(own)[:, None], self._numbers([EMPTY, *given])[None, :]
        source, target = (there, here) if side is Side.HYPOTHESIS else (here, there)
        keys = source * len(self.words) + target
        place = np.minimum(np.searchsorted(self._keys, keys), max(len(self._keys) - 1, 0))
        column = 0 if side is Side.HYPOTHESIS else 1
        if not len(self._keys):
            return np.zeros(keys.shape)
        present = (self._keys[place] == keys) & (here >= 0) & (there >= 0)
        return np.where(present, self.probabilities[place, column], 0.0)

    def _numbers(self, words: Iterable[str]) -> NDArray[np.int64]:
        return np.array([self._number.get(word, -1) for word in words], dtype=np.int64)

    @cached_property
    def _number(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}

    @cached_property
    def _keys(self) -> NDArray[np.int64]:
        return self.pairs[:, 0].astype(np.int64) * len(self.words) + self.pairs[:, 1]

    @cached_property
    def _known(self) -> dict[Side, frozenset[str]]:
        sides = {Side.SOURCE: 0, Side.HYPOTHESIS: 1}
        return {
            side: frozenset(self.words[number] for number in np.unique(self.pairs[:, column]).tolist())
            for side, column in sides.items()
        }


def learn_lexicon(sources: Sequence[str], targets: Sequence[str], *, least: float = _LEAST) -> Lexicon:
    """Return the translation probabilities of the words of parallel texts.

    Args:
        sources: One text per line of a corpus.
        targets: Their translations.
        least: Smaller probabilities are dropped.
    """
    if len(sources) != len(targets):
        raise DataError(f"{len(sources)} sources, {len(targets)} targets: every line needs its counterpart")
    corpus = [(_all_tokens(source), _all_tokens(target)) for source, target in zip(sources, targets, strict=True)]
    # Sums in another order would differ in the last digits.
    corpus = sorted(pair for pair in corpus if all(0 < len(side) <= _MOST_TOKENS for side in pair))
    if not corpus:
        raise DataError("no pair of texts to learn from: every text is empty or too long")
    here, there = [source for source, _ in corpus], [target for _, target in corpus]
    words = (EMPTY, *dict.fromkeys(token for pair in corpus for side in pair for token in side))
    number = {word: k for k, word in enumerate(words)}
    forward, backward = (
        _estimate_direction(original, translated, number, least)
        for original, translated in ((here, there), (there, here))
    )
    keys = np.concatenate([forward.given * len(words) + forward.word, backward.word * len(words) + backward.given])
    distinct, place = np.unique(keys, return_inverse=True)
    probabilities = np.zeros((len(distinct), 2), dtype=np.float32)
    probabilities[place[: len(forward.given)], 0] = forward.probability
    probabilities[place[len(forward.given) :], 1] = backward.probability
    pairs = np.column_stack([distinct // len(words), distinct % len(words)]).astype(np.int32)
    return Lexicon(words, pairs, probabilities)


@lru_cache(maxsize=1 << 16)
def tokens(text: str) -> tuple[str, ...]:
    """Return the lower-case tokens of a text; those without letters and digits only where there is no other.

    >>> tokens("Treatment."), tokens("...")
    (('treatment',), ('.', '.', '.'))
    """
    parts = tuple(UnicodeWords().split(text.lower()))
    return tuple(token for token in parts if _SPEAKS.search(token)) or parts


def _all_tokens(text: str) -> tuple[str, ...]:
    return tuple(token for word in text.split() for token in tokens(word))


class Cooccurrences(NamedTuple):
    """All pairs of words that stand in the same pair of texts, one after another."""

    cell: Indices
    """Which distinct pair of words it is."""
    slot: Indices
    """Which word of a target text, counted over all texts."""
    place: Indices
    """Which word of the source text; -1 is the empty word."""
    source: Indices
    """The source word of each distinct pair, 0 for the empty word."""
    target: Indices
    """The target word of each distinct pair."""


def cooccurrences(sources: Sequence[Sentence], targets: Sequence[Sentence], number: Mapping[str, int]) -> Cooccurrences:
    """Return which words of parallel texts stand together, by the numbers of words."""
    keys, slot, place = [], [], []
    start = 0
    for source, target in zip(sources, targets, strict=True):
        here = np.array([0, *(number[word] for word in source)], dtype=np.int64)
        there = np.array([number[word] for word in target], dtype=np.int64)
        keys.append((here * len(number) + there[:, None]).ravel())
        slot.append(np.repeat(np.arange(start, start + len(there), dtype=np.int32), len(here)))
        place.append(np.tile(np.arange(-1, len(source), dtype=np.int32), len(there)))
        start += len(there)
    distinct, cell = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *keys]), return_inverse=True)
    slots, places = (np.concatenate([np.empty(0, dtype=np.int32), *parts]) for parts in (slot, place))
    return Cooccurrences(cell, slots.astype(np.intp), places, distinct // len(number), distinct % len(number))


def estimate(together: Cooccurrences, slots: int) -> FloatVector:
    """Return p(target | source) of each distinct pair, by EM from equal probabilities."""
    probability = np.ones(len(together.source))
    for _ in range(_ROUNDS):
        here = probability[together.cell]
        share = here / np.bincount(together.slot, here, minlength=slots)[together.slot]
        counts = np.bincount(together.cell, share, minlength=len(probability))
        probability = counts / np.bincount(together.source, counts)[together.source]
    return probability


class _Directed(NamedTuple):
    """Pairs of words with p(word | given)."""

    given: Indices
    word: Indices
    probability: FloatVector


def _estimate_direction(
    sources: Sequence[Sentence], translated: Sequence[Sentence], number: Mapping[str, int], least: float
) -> _Directed:
    together = cooccurrences(sources, translated, number)
    probability = estimate(together, sum(map(len, translated)))
    kept = probability >= least
    return _Directed(together.source[kept], together.target[kept], probability[kept])


def _means(values: FloatVector, owner: Indices, words: int) -> FloatVector:
    """Return the mean of the known tokens of each word, NaN where there is none."""
    known = ~np.isnan(values)
    sums = np.bincount(owner[known], values[known], minlength=words)
    return divide(sums, np.bincount(owner[known], minlength=words))


def write_lexicon(lexicon: Lexicon, path: str | Path) -> None:
    """Write a lexicon: arrays to a name in .npz, else tab-separated text."""
    target = Path(path)
    if target.suffix == ".npz":
        words = np.frombuffer("\n".join(lexicon.words).encode("utf-8", "surrogatepass"), dtype=np.uint8)
        numbers = {"pairs": lexicon.pairs, "probabilities": lexicon.probabilities}
        content = io.BytesIO()
        np.savez_compressed(content, allow_pickle=False, words=words, digest=np.array(lexicon.digest), **numbers)
        write_whole(target, content.getvalue())
        return
    names = lexicon.words
    rows = zip(lexicon.pairs.tolist(), lexicon.probabilities.tolist(), strict=True)
    lines = (f"{names[source]}\t{names[target]}\t{there:.6g}\t{back:.6g}\n" for (source, target), (there, back) in rows)
    write_whole(path, "".join(lines).encode())


@read_once(4)
def read_lexicon(path: str | Path) -> Lexicon:
    """Return the lexicon in a file; one that did not change is read once."""
    file = Path(path).expanduser()
    if not file.exists():
        raise DataError("no such lexicon: learn one with whyscore learn-lexicon", file=str(path))
    return _read_arrays(file) if file.suffix == ".npz" else _read_table(file)


def _read_arrays(path: Path) -> Lexicon:
    try:
        # Opened here, as numpy leaves a file open that it cannot read.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            words = tuple(stored["words"].tobytes().decode("utf-8", "surrogatepass").split("\n"))
            lexicon = Lexicon(words, stored["pairs"], stored["probabilities"])
            digest = str(stored["digest"])
    except UNREADABLE_ARRAYS as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(
            f"cannot be read as a lexicon: {reason}. Make it anew with learn-lexicon", file=str(path)
        ) from error
    _check(lexicon, path)
    if lexicon.digest != digest:
        raise DataError(f"its numbers do not match its digest {digest}; learn it again", file=str(path))
    return lexicon


def _check(lexicon: Lexicon, path: Path) -> None:
    """Refuse arrays that are no lexicon."""
    pairs, probabilities = lexicon.pairs, lexicon.probabilities
    shaped = pairs.dtype.kind == "i" and probabilities.dtype.kind == "f" and pairs.shape == probabilities.shape
    if not shaped or pairs.shape[1:] != (2,) or lexicon.words[0] != EMPTY:
        raise DataError("holds no table of word pairs; learn it again", file=str(path))
    if np.any((pairs < 0) | (pairs >= len(lexicon.words))) or not np.all((probabilities >= 0) & (probabilities <= 1)):
        raise DataError("holds numbers that are no words or no probabilities; learn it again", file=str(path))


def _read_table(path: Path) -> Lexicon:
    """Return the pairs of a table; a missing second probability is the first one's share among those of the target."""
    rows: dict[tuple[str, str], tuple[float, float]] = {}
    for line, row in enumerate(text_of(path).split("\n"), start=1):
        if row:
            source, target, *numbers = _fields(row, path, line)
            rows[source, target] = _probabilities(numbers, path, line)
    if not rows:
        raise DataError("is empty: expected lines of source, target and probability", file=str(path))
    words = (EMPTY, *dict.fromkeys(word for pair in rows for word in pair if word))
    number = {word: k for k, word in enumerate(words)}
    pairs = np.array([(number[source], number[target]) for source, target in rows], dtype=np.int32)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    return Lexicon(
        words, pairs[order], _complete_probabilities(pairs, np.array(list(rows.values())))[order].astype(np.float32)
    )


def _fields(row: str, path: Path, line: int) -> list[str]:
    fields = row.split("\t")
    if len(fields) not in _COLUMNS:
        message = f"expected source, target and probability between tabs, found {len(fields)} columns"
        raise DataError(message, file=str(path), line=line)
    return [fields[0].lower(), fields[1].lower(), *fields[2:]]


def _probabilities(numbers: Sequence[str], path: Path, line: int) -> tuple[float, float]:
    try:
        there, back = float(numbers[0]), float(numbers[1]) if len(numbers) > 1 else np.nan
    except ValueError as error:
        raise DataError(f"expected a probability, found {' '.join(numbers)!r}", file=str(path), line=line) from error
    if not 0 <= there <= 1 or not (np.isnan(back) or 0 <= back <= 1):
        raise DataError(f"expected a probability from 0 to 1, found {' '.join(numbers)}", file=str(path), line=line)
    return there, back


def _complete_probabilities(pairs: NDArray[np.int32], probabilities: FloatMatrix) -> FloatMatrix:
    """Return both directions, the second from the first where it is missing."""
    sums = np.bincount(pairs[:, 1], probabilities[:, 0])[pairs[:, 1]]
    derived = np.divide(probabilities[:, 0], sums, out=np.zeros(len(sums)), where=sums > 0)
    missing = np.isnan(probabilities[:, 1])
    return np.column_stack([probabilities[:, 0], np.where(missing, derived, probabilities[:, 1])])
