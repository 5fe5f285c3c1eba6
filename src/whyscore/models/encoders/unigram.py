"""SentencePiece unigram segmentation with exact offsets into the text as it was given (Kudo 2018, arXiv 1804.10959).

1. Cut the text at blanks. No rule of normalisation reaches over a blank and no piece contains one inside, so each
   stretch can be segmented by itself, once for all texts.
2. Normalise a stretch: at each place the longest known beginning is replaced (NFKC and a few rules for translation).
   Every letter that comes out remembers which letters went in. White space becomes one boundary mark `▁`.
3. Segment: the sequence of pieces with the largest sum of log-probabilities. Letters without a piece are unknown.
4. A piece covers the letters that went into it, without the blank its boundary mark stands for.

Where two segmentations of a stretch are equally probable ("!!" "!" or "!" "!!"), rounding decides, and with it all
that stands before. Such texts are segmented as a whole, so that they are cut exactly as by the original.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from whyscore.marking import Span

MARK = "▁"

# Sums of log-probabilities of any order of addition agree far better than this.
_TIE = 1e-6
_REMEMBERED = 1 << 17


Replace = Callable[[bytes, int], tuple[bytes, int]]
"""UTF-8 and a place in it -> what the longest known beginning there becomes, and how many bytes it has."""


class Vocabulary(NamedTuple):
    """A SentencePiece model as plain values."""

    pieces: Sequence[str]
    scores: Sequence[float]
    """The log-probability of each piece."""
    prefixes: Mapping[str, int]
    """Every beginning of a piece: 0, or the number of the piece plus one where it is one."""
    longest: int
    unknown_score: float
    unknown: int
    begin: int
    end: int
    replace: Replace


class Cut(NamedTuple):
    """Pieces of a text with the half-open spans they cover."""

    pieces: tuple[int, ...]
    spans: tuple[Span, ...]


class _Stretch(NamedTuple):
    """The cut of a stretch, and whether another one is equally probable."""

    cut: Cut
    tied: bool


class Normal(NamedTuple):
    """A normalised text: its letters, and for each the half-open span of the text it comes from."""

    letters: str
    sources: list[Span]


class Path(NamedTuple):
    """A segmentation of normalised letters: where its pieces end, which they are, and whether rounding chose it."""

    ends: list[int]
    pieces: list[int]
    tied: bool


class Segmenter:
    """Cuts texts into pieces of one vocabulary and remembers how stretches were cut."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Start with an empty memory."""
        self._vocabulary = vocabulary
        self._remembered = lru_cache(maxsize=_REMEMBERED)(self._stretch)

    def cut(self, text: str) -> Cut:
        """Return the pieces of a text; none for a blank one."""
        pieces: list[int] = []
        spans: list[Span] = []
        place = 0
        for part in text.split(" "):
            if part:
                cut, tied = self._remembered(part)
                if tied:
                    return self._stretch(text).cut
                pieces += cut.pieces
                spans += [(place + start, place + end) for start, end in cut.spans]
            place += len(part) + 1
        return Cut(tuple(pieces), tuple(spans))

    def _stretch(self, text: str) -> _Stretch:
        normal = normalised(text, self._vocabulary.replace)
        ends, pieces, tied = best(normal.letters, self._vocabulary)
        starts = [0, *ends][:-1]
        spans = [_covered(text, normal, start, end) for start, end in zip(starts, ends, strict=True)]
        return _Stretch(Cut(tuple(pieces), tuple(spans)), tied)


def normalised(text: str, replace: Replace) -> Normal:
    """Return the text as the model reads it: a mark before each word, no white space at the end."""
    if text.isascii() and text.isprintable() and " " not in text:
        # Nothing among these is ever replaced.
        sources = [(i, i + 1) for i in range(len(text))]
        return Normal(MARK + text, [(0, 0), *sources]) if text else Normal("", [])
    letters: list[str] = []
    origins: list[Span] = []
    for new, start, end in _replaced(text, replace):
        for letter in new.replace(" ", MARK):
            if letter == MARK and (not letters or letters[-1] == MARK):
                continue
            if not letters:
                # Every text begins with a mark that stands for nothing in it.
                letters.append(MARK)
                origins.append((start, start))
            letters.append(letter)
            origins.append((start, end))
    if letters and letters[-1] == MARK:
        del letters[-1], origins[-1]
    return Normal("".join(letters), origins)


def best(letters: str, vocabulary: Vocabulary) -> Path:
    """Return the most probable segmentation, by dynamic programming over the places where pieces end.

    Of equally probable ones the piece that begins first wins, as in the original.
    """
    scores, prefixes = vocabulary.scores, vocabulary.prefixes
    value = [0.0] + [-math.inf] * len(letters)
    # How each place is reached best: where its last piece begins, and which piece that is.
    reached = [(0, vocabulary.unknown)] * (len(letters) + 1)
    tied = False
    for start in range(len(letters)):
        single = False
        for end in range(start + 1, min(start + vocabulary.longest, len(letters)) + 1):
            found = prefixes.get(letters[start:end])
            if found is None:
                break
            if not found:
                continue
            single = single or end == start + 1
            score = value[start] + scores[found - 1]
            tied = tied or abs(score - value[end]) < _TIE
            if score > value[end]:
                value[end], reached[end] = score, (start, found - 1)
        score = value[start] + vocabulary.unknown_score
        if not single and score > value[start + 1]:
            value[start + 1], reached[start + 1] = score, (start, vocabulary.unknown)
    ends, pieces = [], []
    place = len(letters)
    while place:
        ends.append(place)
        place, piece = reached[place]
        pieces.append(piece)
    return Path(ends[::-1], pieces[::-1], tied)


def _replaced(text: str, replace: Replace) -> Iterator[tuple[str, int, int]]:
    """Yield what each stretch of the text becomes, with its span."""
    data = text.encode("utf-8", "surrogatepass")
    start = byte = 0
    while byte < len(data):
        new, size = replace(data, byte)
        end = start + len(data[byte : byte + size].decode("utf-8", "surrogatepass"))
        yield new.decode("utf-8", "surrogatepass"), start, end
        byte += size
        start = end


def _covered(text: str, normal: Normal, start: int, end: int) -> Span:
    """Return the span of the text behind normalised letters; a mark for white space is left out where it can be."""
    begin, stop = normal.sources[start]
    if normal.letters[start] == MARK and end > start + 1 and not text[begin:stop].strip():
        begin = normal.sources[start + 1][0]
    return begin, normal.sources[end - 1][1]
