"""Texts as rows of pieces, alone or joined, and the batches they are computed in.

1. Outer white space is removed; spans point into the text as it was given. Fast tokenizers only.
2. The special pieces before, between and after texts are read off the tokenizer, so that two, three or more texts are
   joined the way it joins two.
3. Rows go through the network longest first, as many at a time as fit a budget of pieces with padding. A batch that
   fills a fifth of it takes no more shorter rows, which would be padded. When memory runs out the batch is halved.
   Answers come back in the order that was asked.
4. What was computed of a text that is read by itself is pinned, the most recently used within a bound of bytes, so
   that probes meet what is known of the texts that do not change.
5. Texts that are cut are counted, and told once per model; `watch_cuts` hears of all of them.

Texts as rows of pieces that a network can read: whole, cut, or in overlapping windows, and put together again.

1. Pieces come from a fast tokenizer, outer white space removed, spans in the text as it was given.
2. A text that is too long is cut at its end, refused, or read in windows of the full size, each half a window further
   on, the last one at the end of the text.
3. Of several windows, each piece takes the vector of the one in which it stands farthest from an edge; begin and end of
   the text are no edges.
"""

import gc
import importlib
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import DataError, ExecutionError, SpecError
from whyscore.marking import Span
from whyscore.protocols import Encoded

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module


_watching: ContextVar[list[str] | None] = ContextVar("watching", default=None)


@contextmanager
def watch_cuts() -> Iterator[list[str]]:
    """Give a list that gets a sentence whenever texts are cut meanwhile, whether that was told before or not."""
    seen: list[str] = []
    token = _watching.set(seen)
    try:
        yield seen
    finally:
        _watching.reset(token)


def note_cut(message: str) -> None:
    """Tell whoever watches that texts were cut."""
    seen = _watching.get()
    if seen is not None:
        seen.append(message)


BUDGET = {"packed": 512, "cpu": 2_048, "gpu": 32_768}
"""Pieces computed at a time, padding included: of packed rows, and of padded ones by the kind of device.

Larger batches leave the caches of a processor: with MiniLM 8,192 pieces take half as long again.
"""

_MIXED = 5
"""A batch with this fraction of the budget is large enough to use a device well: from there on padding only costs."""

MEMORY = 2 * 1024**3
"""Bytes of vectors or states that a loaded model keeps."""

Result = TypeVar("Result")

_AFTER_PADDING = ("roberta", "xlm-roberta", "xlm-roberta-xl", "camembert")


class TruncatedTextWarning(UserWarning):
    """Texts were longer than a model reads."""


class MemoryWarning(UserWarning):
    """A batch did not fit and was halved."""


class Tokens(Protocol):
    """What is used of the pieces of one text."""

    ids: list[int]
    offsets: list[Span]
    tokens: list[str]
    special_tokens_mask: list[int]
    sequence_ids: list[int | None]


class Batch(Protocol):
    """What is used of a tokenizer's answer."""

    @property
    def encodings(self) -> list[Tokens]:
        """The pieces of each text."""


class Tokenizer(Protocol):
    """What is used of a fast tokenizer of transformers."""

    is_fast: bool
    pad_token_id: int | None

    def __call__(self, texts: list[str], pairs: list[str] | None = None, **options: object) -> Batch:
        """Return the pieces of each text, or of each pair."""


@runtime_checkable
class Masks(Protocol):
    """A tokenizer that knows a piece for hidden ones, or says that it has none."""

    mask_token_id: int | None


class Coded(NamedTuple):
    """A text as pieces, special ones left out: their numbers, their spans in the text, and how they are written."""

    ids: tuple[int, ...]
    spans: tuple[Span, ...]
    pieces: tuple[str, ...]


class Frame(NamedTuple):
    """The special pieces before the first text, between two texts, and after the last."""

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]

    def size(self, texts: int) -> int:
        """Return how many special pieces stand around that many texts."""
        return len(self.before) + (texts - 1) * len(self.between) + len(self.after)

    def join(self, texts: Sequence[Sequence[int]]) -> "Row":
        """Return the texts as one row."""
        ids = [*self.before, *texts[0]]
        for text in texts[1:]:
            ids += [*self.between, *text]
        # BERT counts the first separator to the first text.
        first = len(self.before) + len(texts[0]) + min(1, len(self.between))
        return Row((*ids, *self.after), first if len(texts) > 1 else len(ids) + len(self.after))


class Row(NamedTuple):
    """What a network reads at once: the pieces, and how many of them belong to the first text."""

    ids: tuple[int, ...]
    first: int


class Inputs(NamedTuple):
    """Rows as tensors, batch x pieces: numbers, which of them are real, and which text they belong to."""

    ids: "Tensor"
    mask: "Tensor"
    types: "Tensor"


@dataclass
class Cuts:
    """Counts the texts that were cut, and tells of it once."""

    who: str
    limit: int
    count: int = 0
    told: bool = field(default=False, repr=False)

    def add(self, cut: int, total: int) -> None:
        """Count cut texts among those that were asked."""
        self.count += cut
        if not cut:
            return
        limit = f"the {self.limit} pieces the model reads"
        message = f"{self.who}: {cut} of {total} inputs are longer than {limit}"
        note_cut(message)
        if not self.told:
            self.told = True
            warnings.warn(f"{message}; their ends do not count in the score", TruncatedTextWarning, stacklevel=2)


class Sized(Protocol):
    """Anything that knows its size in bytes: arrays and tensors."""

    @property
    def nbytes(self) -> int:
        """How many bytes the numbers take."""


Held = TypeVar("Held", bound=Sized)


class Pinned(Generic[Held]):
    """What is known of texts, each computed once for as long as it fits the memory."""

    def __init__(self, memory: int = MEMORY) -> None:
        self.memory = memory
        self.computed = 0
        self.size = 0
        """How many bytes are held."""
        self._held: OrderedDict[str, Held] = OrderedDict()

    def take(self, texts: Iterable[str], compute: Callable[[list[str]], Sequence[Held]]) -> dict[str, Held]:
        """Return what is known of each text; `compute` is asked for all that is missing at once."""
        distinct = list(dict.fromkeys(texts))
        missing = [text for text in distinct if text not in self._held]
        for text, value in zip(missing, compute(missing) if missing else (), strict=True):
            self._held[text] = value
            self.size += value.nbytes
        self.computed += len(missing)
        for text in distinct:
            self._held.move_to_end(text)
        values = {text: self._held[text] for text in distinct}
        while self.size > self.memory:
            self.size -= self._held.popitem(last=False)[1].nbytes
        return values


class Coder:
    """A tokenizer, and the special pieces it puts around texts."""

    def __init__(self, tokenizer: Tokenizer, who: str) -> None:
        if not tokenizer.is_fast:
            raise SpecError(f"{who}: the model has no fast tokenizer, which is needed to find pieces in texts")
        self._tokenizer = tokenizer
        self.padding = tokenizer.pad_token_id or 0
        self.frame = _frame(tokenizer)

    def code(self, texts: Iterable[str], *, strip: bool = True) -> dict[str, Coded]:
        """Return the pieces of each distinct text; `strip=False` is for strings a metric composed, blanks and all."""
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return {}
        read = [self._prepare(text.strip() if strip else text) for text in distinct]
        batch = self._tokenizer(read, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        leads = [len(text) - len(text.lstrip()) if strip else 0 for text in distinct]
        return {
            text: self._place(tokens, lead) for text, tokens, lead in zip(distinct, batch.encodings, leads, strict=True)
        }

    @property
    def masking(self) -> int | None:
        """The piece that stands for a hidden one, where the tokenizer has it."""
        return self._tokenizer.mask_token_id if isinstance(self._tokenizer, Masks) else None

    def _prepare(self, text: str) -> str:
        """Return what the tokenizer reads instead of a text."""
        return text

    def _place(self, tokens: Tokens, lead: int) -> Coded:
        """Return pieces with their spans in a text that begins with as many blanks."""
        spans = tuple((start + lead, end + lead) for start, end in tokens.offsets)
        return Coded(tuple(tokens.ids), spans, tuple(tokens.tokens))


def _frame(tokenizer: Tokenizer) -> Frame:
    (alone,) = tokenizer(["a"], verbose=False).encodings
    (pair,) = tokenizer(["a"], ["a"], verbose=False).encodings
    real = [number for number, special in enumerate(alone.special_tokens_mask) if not special]
    owners = pair.sequence_ids
    last = max(number for number, owner in enumerate(owners) if owner == 0)
    following = min(number for number, owner in enumerate(owners) if owner == 1)
    return Frame(tuple(alone.ids[: real[0]]), tuple(pair.ids[last + 1 : following]), tuple(alone.ids[real[-1] + 1 :]))


def positions(config: Mapping[str, object], otherwise: int = 512) -> int:
    """Return how many pieces a position table serves; RoBERTa's kind counts from after the padding piece on.

    >>> positions({"model_type": "xlm-roberta", "max_position_embeddings": 514, "pad_token_id": 1})
    512
    """
    table = config.get("max_position_embeddings")
    if not isinstance(table, int):
        return otherwise
    padding = config.get("pad_token_id", 1)
    lost = padding + 1 if config.get("model_type") in _AFTER_PADDING and isinstance(padding, int) else 0
    return table - lost


def shorter(first: Sequence[int], second: Sequence[int], room: int) -> tuple[Sequence[int], Sequence[int]]:
    """Return two texts that fit together: the longer one loses its end first, then both in turn.

    >>> shorter([1, 2, 3, 4], [5, 6], 4)
    ([1, 2], [5, 6])
    """
    room = max(room, 0)
    if len(first) + len(second) <= room:
        return first, second
    left = room - len(second) if len(second) <= room // 2 else min(len(first), (room + 1) // 2)
    return first[:left], second[: room - left]


def as_tensors(rows: Sequence[Row], padding: int, device: str) -> Inputs:
    """Return rows as tensors, short ones filled up at the end."""
    torch = importlib.import_module("torch")
    longest = max(len(row.ids) for row in rows)
    ids = torch.tensor([[*row.ids, *[padding] * (longest - len(row.ids))] for row in rows], device=device)
    places = torch.arange(longest, device=device)
    lengths = torch.tensor([len(row.ids) for row in rows], device=device)
    firsts = torch.tensor([row.first for row in rows], device=device)
    return Inputs(ids, (places < lengths[:, None]).long(), (places >= firsts[:, None]).long())


def budget_of(device: str, *, pads: bool = True) -> int:
    """Return how many pieces a device computes at a time, of rows that are padded or packed."""
    return BUDGET["cpu" if device == "cpu" and pads else "gpu" if pads else "packed"]


def in_batches(
    lengths: Sequence[int],
    budget: int,
    compute: Callable[[list[int]], Sequence[Result]],
    who: str,
    *,
    pads: bool = True,
) -> list[Result]:
    """Return one answer per row, in order; `compute` gets the numbers of the rows of one batch, longest first."""
    order = sorted(range(len(lengths)), key=lambda number: -lengths[number])
    answers: dict[int, Result] = {}
    while len(answers) < len(order):
        rest = order[len(answers) :]
        batch = _next_batch(rest, lengths, budget) if pads else _next_pack(rest, lengths, budget)
        try:
            answers.update(zip(batch, compute(batch), strict=True))
        except (RuntimeError, MemoryError) as error:
            if not isinstance(error, MemoryError) and "memory" not in str(error).lower():
                raise
        else:
            continue
        # Here the error is gone, and with it what it kept in memory.
        _warn_of_memory(len(batch), lengths[batch[0]], who)
        half = batch[: len(batch) // 2]
        budget = len(half) * lengths[half[0]] if pads else sum(lengths[number] for number in half)
    return [answers[number] for number in range(len(lengths))]


def _next_batch(rest: list[int], lengths: Sequence[int], budget: int) -> list[int]:
    """Return the rows of the next batch from those that are left, longest first."""
    longest = max(1, lengths[rest[0]])
    most, enough = max(1, budget // longest), max(1, budget // (_MIXED * longest))
    while enough < min(most, len(rest)) and lengths[rest[enough]] == lengths[rest[0]]:
        enough += 1
    return rest[: min(most, enough)]


def _next_pack(rest: list[int], lengths: Sequence[int], budget: int) -> list[int]:
    """Return as many of the rows that are left as fit one behind the other."""
    sums = accumulate(lengths[number] for number in rest)
    return rest[: max(1, sum(1 for _ in takewhile(lambda size: size <= budget, sums)))]


def _warn_of_memory(count: int, longest: int, who: str) -> None:
    """Tell that memory ran out and free what can be freed; a single row is an error."""
    if count == 1:
        raise ExecutionError(
            f"{who}: one input of {longest} pieces does not fit into memory. Use a smaller model, precision='bf16', or "
            "a device with more memory; what was scored before is kept"
        )
    message = f"{who}: {count} inputs of {longest} pieces do not fit into memory; going on with {count // 2} at a time"
    warnings.warn(message, MemoryWarning, stacklevel=3)
    gc.collect()
    torch = importlib.import_module("torch")
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


@dataclass
class TextNetwork:
    """A loaded network with its tokenizer, which reads texts of a limited length as rows."""

    coder: Coder
    network: "Module"
    limit: int
    device: str
    cuts: Cuts

    def frame_texts(self, texts: Iterable[str]) -> tuple[dict[str, Coded], dict[str, Row]]:
        """Return the pieces of each distinct text, and the row in which it is read by itself, cut where it is long."""
        coded = self.coder.code(texts)
        room = self.limit - self.coder.frame.size(1)
        self.cuts.add(sum(len(text.ids) > room for text in coded.values()), len(coded))
        return coded, {text: self.coder.frame.join([coding.ids[:room]]) for text, coding in coded.items()}

    def compute_rows(self, rows: Sequence[Row], compute: Callable[[list[Row]], Sequence[Result]]) -> list[Result]:
        """Return one answer per row, computed in batches that fit the device."""
        lengths = [len(row.ids) for row in rows]
        return in_batches(
            lengths, budget_of(self.device), lambda batch: compute([rows[k] for k in batch]), self.cuts.who
        )


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


class RowCoder(Coder):
    """Turns texts into rows, and the vectors of rows into those of texts."""

    _tokenizer: Reader

    def __init__(self, tokenizer: Reader, who: str, *, first_blank: bool = False, lower: bool = False) -> None:
        """Take a tokenizer.

        Args:
            tokenizer: A fast one.
            who: In whose name errors are told.
            first_blank: Put a blank before the first word, so that it is read like the others.
            lower: Read all letters as small ones.
        """
        super().__init__(tokenizer, who)
        self._who, self._blank, self._lower = who, first_blank, lower
        self._before, self._after = self.frame.before, self.frame.after
        self._written = [tokenizer.convert_ids_to_tokens(list(ids)) for ids in (self._before, self._after)]

    def room(self, limit: int | None) -> int | None:
        """Return how many pieces of a text fit between the special ones."""
        return None if limit is None else max(1, limit - len(self._before) - len(self._after))

    def rows(self, text: str, coded: Coded, limit: int | None, long: Long) -> list[Row]:
        """Return the rows that a text is read in."""
        number, room = len(coded.ids), self.room(limit)
        if room is not None and number > room and long == "error":
            shown = text.strip()[:_SHOWN]
            raise DataError(
                f"{self._who}: the text {shown!r}... has {number} pieces, the model reads {room}. Shorten it, or "
                "choose long='truncate' or long='window'"
            )
        begins = windows(number, room) if long == "window" else [0]
        rows = [(*self._before, *coded.ids[begin:][:room], *self._after) for begin in begins]
        return [Row(ids, len(ids)) for ids in rows if ids]

    def join(self, text: str, coded: Coded, vectors: Sequence[Vectors], width: int, room: int | None) -> Encoded:
        """Return a text with the vectors of its rows."""
        first, number = len(self._before), len(coded.ids)
        inner = [rows[first : len(rows) - len(self._after)] for rows in vectors]
        ends = [vectors[0][:first], vectors[-1][len(vectors[-1]) - len(self._after) :]] if vectors else []
        joined = _join_parts(inner, number, room) if vectors else np.empty((0, width), dtype=np.float32)
        count = len(joined)
        begin, end = np.zeros((first, 2), np.int64), np.full((len(self._after), 2), len(text), np.int64)
        special = np.ones(first + count + len(self._after), dtype=np.bool_)
        special[first : first + count] = False
        return Encoded(
            np.concatenate([ends[0], joined, ends[1]]) if ends else joined,
            np.concatenate([begin, np.array(coded.spans[:count], dtype=np.int64).reshape(-1, 2), end]),
            (*self._written[0], *coded.pieces[:count], *self._written[1]),
            special,
            first + number + len(self._after),
        )

    def _prepare(self, text: str) -> str:
        if self._lower:
            # Letters whose small form is longer stay, so that offsets hold.
            text = "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)
        return f" {text}" if self._blank and text else text

    def _place(self, tokens: Tokens, lead: int) -> Coded:
        # The first piece may begin with the blank that is not in the text.
        first = lead - int(self._blank)
        spans = tuple((max(start + first, lead), max(end + first, lead)) for start, end in tokens.offsets)
        unknown, name = self._tokenizer.unk_token_id, self._tokenizer.unk_token
        # Some tokenizers write unknown pieces as they stand in the text.
        named = (name if number == unknown else token for number, token in zip(tokens.ids, tokens.tokens, strict=True))
        return Coded(tuple(tokens.ids), spans, tuple(tokens.tokens if unknown is None else map(str, named)))


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


def _join_parts(parts: Sequence[Vectors], number: int, room: int | None) -> Vectors:
    """Return one vector per piece from one part, or from overlapping windows."""
    if len(parts) == 1 or room is None:
        return parts[0]
    begins = windows(number, room)
    owner = owners(number, begins, room)
    joined: Vectors = np.concatenate(parts)[owner * room + np.arange(number) - np.array(begins)[owner]]
    return joined
