"""Word scores from the log-probabilities of the system that generated the text, supplied in a file.

1. Read, for each hypothesis, its pieces and one natural log-probability per piece.
2. Find a hypothesis by its text: the joined pieces must equal its characters, white space left out. Anything else is
   an error, never a near match.
3. A piece belongs to each word it overlaps (`whyscore.text.alignment`). Importance = pooled log-probability of the
   word's pieces: `min` (the weakest piece), `sum` (log-probability of the word), `mean` or `first`.

Formats:
- `jsonl`: one object per line with `tokens` (texts) and `logprobs` (numbers). White space in tokens and the boundary
  marks of SentencePiece and byte-level tokenizers at their start are left out.
- `bpe`: a folder with `mt.bpe` (pieces, `@@` = goes on; `@-@` is a hyphen; XML entities) and `word_probas`, as
  published with MLQE-PE.
Both may hold one number more than pieces, that of the end of the text; it belongs to no word.
"""

import html
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from whyscore.errors import DataError, SpecError
from whyscore.settings import check_fields, names_file
from whyscore.text.alignment import BOUNDARY_MARKS, Pairs, Pieces, pool_words
from whyscore.text.files import State, json_of, state_of, text_of
from whyscore.types import FloatVector, Place, Segment, Side, Words, WordScores

Format = Literal["auto", "jsonl", "bpe"]
_PIECES, _NUMBERS = "mt.bpe", "word_probas"


@dataclass(frozen=True, slots=True)
class LogProb:
    """Explains a hypothesis by how probable its words were to the system that wrote it.

    `format="auto"` takes a folder for `bpe` and a file for `jsonl`.
    """

    path: str = names_file()
    pool: Literal["min", "sum", "mean", "first"] = "min"
    format: Format = "auto"

    def __post_init__(self) -> None:
        check_fields(self)

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        if place.side is not Side.HYPOTHESIS:
            raise SpecError(f"logprob explains the hypothesis, which the system generated; asked for the {place}")
        form, states = _form(self.path, self.format)
        table = _table(self.path, form, states)
        return [self._score_words(table, text_words) for _, text_words in zip(segments, words, strict=True)]

    def _score_words(self, table: dict[str, "_Line"], words: Words) -> WordScores:
        if not len(words):
            return WordScores(np.zeros(0), ())
        entry = table.get(_letters(words.text))
        if entry is None:
            raise DataError(f"no log-probabilities for the hypothesis {words.text!r}; add its line", file=self.path)
        pieces = Pieces(_spans(words.text, entry.pieces))
        pooled = pool_words(words, pieces, entry.numbers, pool=self.pool)
        return WordScores(pooled.values, _notes(pooled.pairs, entry, len(words)))


class _Line(NamedTuple):
    pieces: tuple[str, ...]
    numbers: FloatVector
    line: int


def _letters(text: str) -> str:
    return "".join(text.split())


def _spans(text: str, pieces: Sequence[str]) -> list[tuple[int, int]]:
    """Return where each piece stands in the text, which has white space besides."""
    offsets = [offset for offset, letter in enumerate(text) if not letter.isspace()]
    ends = np.cumsum([len(piece) for piece in pieces]).tolist()
    spans = []
    for piece, end in zip(pieces, ends, strict=True):
        last = offsets[end - 1] + 1 if end else 0
        spans.append((offsets[end - len(piece)], last) if piece else (last, last))
    return spans


def _notes(pairs: Pairs, entry: _Line, words: int) -> tuple[str, ...]:
    """Return each word's pieces with their log-probabilities."""
    shown: list[list[str]] = [[] for _ in range(words)]
    for piece, word in zip(pairs.piece.tolist(), pairs.word.tolist(), strict=True):
        shown[word].append(f"{entry.pieces[piece]} {entry.numbers[piece]:.4g}")
    return tuple(", ".join(parts) for parts in shown)


def _form(path: str, requested: Format) -> tuple[Literal["jsonl", "bpe"], State]:
    """Return the format, and what changes when a file does, so that a changed one is read again."""
    form: Literal["jsonl", "bpe"] = requested if requested != "auto" else "bpe" if Path(path).is_dir() else "jsonl"
    files = [Path(path)] if form == "jsonl" else [Path(path, _PIECES), Path(path, _NUMBERS)]
    for file in files:
        try:
            file.stat()
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}", file=str(file)) from error
    return form, tuple(map(state_of, files))


@lru_cache(maxsize=8)
def _table(path: str, form: Literal["jsonl", "bpe"], _: State) -> dict[str, _Line]:
    """Return the lines by their joined pieces; equal texts with different numbers cannot be told apart."""
    table: dict[str, _Line] = {}
    for entry in _jsonl(path) if form == "jsonl" else _bpe(path):
        key = "".join(entry.pieces)
        other = table.setdefault(key, entry)
        if other.pieces != entry.pieces or not np.array_equal(other.numbers, entry.numbers):
            raise DataError(
                f"the same text as line {other.line} with other log-probabilities: texts are matched by characters, "
                "so keep one of the two lines",
                file=path if form == "jsonl" else str(Path(path, _PIECES)),
                line=entry.line,
            )
    return table


def _jsonl(path: str) -> Iterator[_Line]:
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        match json_of(line, path, number):
            case {"tokens": [*tokens], "logprobs": [*numbers]} if all(isinstance(token, str) for token in tokens):
                yield _line(tokens, numbers, _plain_piece, path, number)
            case _:
                raise DataError(f"expected tokens and logprobs, two lists, found {line[:80]}", file=path, line=number)


def _bpe(folder: str) -> Iterator[_Line]:
    first, second = str(Path(folder, _PIECES)), str(Path(folder, _NUMBERS))
    pieces, numbers = _lines(first), _lines(second)
    if len(pieces) != len(numbers):
        raise DataError(f"{first} has {len(pieces)} lines, {second} has {len(numbers)}: they must go in pairs")
    for number, (piece, values) in enumerate(zip(pieces, numbers, strict=True), start=1):
        yield _line(piece.split(), values.split(), _bpe_piece, second, number)


def _line(pieces: Sequence[str], numbers: Sequence[object], clean: Callable[[str], str], file: str, line: int) -> _Line:
    """Return one text's pieces and numbers; the number of the end of the text is dropped."""
    if len(numbers) - len(pieces) not in (0, 1):
        raise DataError(
            f"{len(numbers)} log-probabilities for {len(pieces)} pieces, expected as many or one more, for the end",
            file=file,
            line=line,
        )
    values = [_number(number, file, line) for number in numbers[: len(pieces)]]
    return _Line(tuple(clean(piece) for piece in pieces), np.array(values, dtype=np.float64), line)


def _number(raw: object, file: str, line: int) -> float:
    try:
        value = float(raw) if isinstance(raw, str | int | float) else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"{raw!r} is not a log-probability, expected a finite number", file=file, line=line)
    return value


def _plain_piece(piece: str) -> str:
    return _letters(piece.lstrip(BOUNDARY_MARKS))


def _bpe_piece(piece: str) -> str:
    return "-" if piece == "@-@" else html.unescape(piece.removesuffix("@@"))


def _lines(path: str) -> list[str]:
    lines = text_of(path).split("\n")
    return lines[:-1] if lines[-1] == "" else lines
