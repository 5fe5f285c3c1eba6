"""Texts as rows of pieces that a network can read: whole, cut, or in overlapping windows, and put together again.

1. Pieces come from a fast tokenizer, outer white space removed, spans in the text as it was given.
2. A text that is too long is cut at its end, refused, or read in windows of the full size, each half a window further
   on, the last one at the end of the text.
3. Of several windows, each piece takes the vector of the one in which it stands farthest from an edge; begin and end of
   the text are no edges.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import DataError
from whyscore.marking import Span
from whyscore.models.pairs import Coder, Row, Tokenizer
from whyscore.protocols import Encoded

Long = Literal["truncate", "window", "error"]
"""What becomes of texts that are longer than a model reads."""

Vectors = NDArray[np.float32]

_SHOWN = 40


class Reader(Tokenizer, Protocol):
    """What is used of a tokenizer."""

    model_max_length: int

    unk_token_id: int | None
    unk_token: str | None

    def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
        """Return how pieces are written."""


class Text(NamedTuple):
    """A text as pieces, special ones left out."""

    text: str
    ids: tuple[int, ...]
    spans: NDArray[np.int64]
    pieces: tuple[str, ...]


class RowCoder:
    """Turns texts into rows, and the vectors of rows into those of texts."""

    def __init__(self, tokenizer: Reader, who: str, *, first_blank: bool = False, lower: bool = False) -> None:
        """Take a tokenizer.

        Args:
            tokenizer: A fast one.
            who: In whose name errors are told.
            first_blank: Put a blank before the first word, so that it is read like the others.
            lower: Read all letters as small ones.
        """
        coder = Coder(tokenizer, who)
        self._tokenizer, self._who, self._blank, self._lower = tokenizer, who, first_blank, lower
        self._before, self._after = coder.frame.before, coder.frame.after
        self._written = [tokenizer.convert_ids_to_tokens(list(ids)) for ids in (self._before, self._after)]
        self.padding = coder.padding

    def room(self, limit: int | None) -> int | None:
        """Return how many pieces of a text fit between the special ones."""
        return None if limit is None else max(1, limit - len(self._before) - len(self._after))

    def code(self, texts: Iterable[str]) -> dict[str, Text]:
        """Return each distinct text as pieces."""
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return {}
        read = [self._read(text.strip()) for text in distinct]
        found = self._tokenizer(read, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        return {
            text: Text(
                text, tuple(tokens.ids), self._spans(text, tokens.offsets), self._named(tokens.ids, tokens.tokens)
            )
            for text, tokens in zip(distinct, found.encodings, strict=True)
        }

    def _named(self, ids: Sequence[int], tokens: Sequence[str]) -> tuple[str, ...]:
        """Return the pieces; unknown ones, which some tokenizers write as they stand in the text, by their one name."""
        unknown, name = self._tokenizer.unk_token_id, self._tokenizer.unk_token
        if unknown is None or unknown not in ids:
            return tuple(tokens)
        return tuple(str(name) if number == unknown else token for number, token in zip(ids, tokens, strict=True))

    def rows(self, text: Text, limit: int | None, long: Long) -> list[Row]:
        number, room = len(text.ids), self.room(limit)
        if room is not None and number > room and long == "error":
            shown = text.text.strip()[:_SHOWN]
            raise DataError(
                f"{self._who}: the text {shown!r}... has {number} pieces, the model reads {room}. Shorten it, or "
                "choose long='truncate' or long='window'"
            )
        begins = windows(number, room) if long == "window" else [0]
        rows = [(*self._before, *text.ids[begin:][:room], *self._after) for begin in begins]
        return [Row(ids, len(ids)) for ids in rows if ids]

    def encoded(self, text: Text, vectors: Sequence[Vectors], width: int, room: int | None) -> Encoded:
        """Return a text with the vectors of its rows."""
        first, number = len(self._before), len(text.ids)
        inner = [rows[first : len(rows) - len(self._after)] for rows in vectors]
        ends = [vectors[0][:first], vectors[-1][len(vectors[-1]) - len(self._after) :]] if vectors else []
        joined = _joined(inner, number, room) if vectors else np.empty((0, width), dtype=np.float32)
        kept = len(joined)
        begin, end = np.zeros((first, 2), np.int64), np.full((len(self._after), 2), len(text.text), np.int64)
        special = np.ones(first + kept + len(self._after), dtype=np.bool_)
        special[first : first + kept] = False
        return Encoded(
            np.concatenate([ends[0], joined, ends[1]]) if ends else joined,
            np.concatenate([begin, text.spans[:kept], end]),
            (*self._written[0], *text.pieces[:kept], *self._written[1]),
            special,
            first + number + len(self._after),
        )

    def _read(self, text: str) -> str:
        if self._lower:
            # Letters whose small form is longer stay, so that offsets hold.
            text = "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)
        return f" {text}" if self._blank and text else text

    def _spans(self, text: str, offsets: Sequence[Span]) -> NDArray[np.int64]:
        lead = len(text) - len(text.lstrip())
        spans = np.array(offsets, dtype=np.int64).reshape(-1, 2) + lead - int(self._blank)
        # The first piece may begin with the blank that is not in the text.
        return np.maximum(spans, lead)


def windows(number: int, room: int | None) -> list[int]:
    """Return where the windows over that many pieces begin.

    >>> windows(10, 4)
    [0, 2, 4, 6]
    >>> windows(3, 4)
    [0]
    """
    if room is None or number <= room:
        return [0]
    return [*range(0, number - room, max(1, room // 2)), number - room]


def owners(number: int, begins: Sequence[int], room: int) -> NDArray[np.intp]:
    """Return the window each piece takes its vector from.

    >>> owners(10, [0, 2, 4, 6], 4).tolist()
    [0, 0, 0, 1, 1, 2, 2, 3, 3, 3]
    """
    begin = np.array(begins, dtype=np.float64)[:, None]
    place = np.arange(number, dtype=np.float64)
    left = np.where(begin == 0, np.inf, place - begin)
    right = np.where(begin + room >= number, np.inf, begin + room - 1 - place)
    inside = (place >= begin) & (place < begin + room)
    farthest: NDArray[np.intp] = np.argmax(np.where(inside, np.minimum(left, right), -1), axis=0)
    return farthest


def _joined(parts: Sequence[Vectors], number: int, room: int | None) -> Vectors:
    """Return one vector per piece from one part, or from overlapping windows."""
    if len(parts) == 1 or room is None:
        return parts[0]
    begins = windows(number, room)
    owner = owners(number, begins, room)
    joined: Vectors = np.concatenate(parts)[owner * room + np.arange(number) - np.array(begins)[owner]]
    return joined
