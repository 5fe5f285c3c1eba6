"""What a fuzzer that knows bytes alone is given: four targets that take bytes, and bytes to begin with.

| target | what the bytes are |
|---|---|
| `spec` | a spec, read and built |
| `spans` | a text, and a JSON list of spans in it, for every converter; cuts of the text, for the aligner |
| `readers` | a document and a reader of data by their numbers, and how it is corrupted or what stands in its place |
| `parsers` | likewise for every other file of a user, with its parser |

A target returns nothing; whatever is not an error of whyscore's own is raised. Any fuzzer can drive them: atheris by
which lines were reached, or `mutated` by chance alone. The parser fixtures need most of whyscore, so that their target
alone imports them.
"""

import atexit
import json
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import count
from os import utime
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import numpy as np

from support.corruption import PIECES, corrupted, edits_of
from support.documents import DOCUMENTS, READERS, is_read
from whyscore.data.formats import dialects
from whyscore.data.formats.spans import BadSpan, spans_of
from whyscore.errors import UserError, WhyscoreError
from whyscore.registry import build, parse, spec_of
from whyscore.text.alignment import Pieces, align, pool_words
from whyscore.text.splitters import white_space
from whyscore.types import ErrorSpan, Segment

if TYPE_CHECKING:
    from support.parsers import ParserFixture

_KINDS = ("metric", "explainer", "masker", "splitter", "tagger", "executor")
_RAW = 128
_fresh = count()


@lru_cache(maxsize=256)
def _folder(name: str) -> Path:
    """Return a folder, in memory where there is such a place: a file on disk takes longer than its parser."""
    memory = Path("/dev/shm")
    folder = Path(mkdtemp(prefix=f"whyscore-{name}-", dir=memory if memory.is_dir() else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def spec(data: bytes) -> None:
    """Read and build a spec; the first byte says of which kind."""
    text = data[1:].decode("utf-8", "surrogateescape")
    with suppress(UserError):
        parse(text)
        spec_of(build(text, kind=_KINDS[data[0] % len(_KINDS)] if data else "metric"))


def spans(data: bytes) -> None:
    """Convert JSON to spans of a text in every dialect, and align the pieces that the first bytes cut it into."""
    text = data[:24].decode("utf-8", "replace")
    segment, notes = Segment(text, text, (text,)), Counter[str]()
    with suppress(BadSpan):
        spans_of(data[24:].decode("utf-8", "replace"), segment)
    given: object = None
    with suppress(ValueError, RecursionError):
        given = json.loads(data[24:])
    items = given if isinstance(given, list) else [given]
    converters: tuple[Callable[[], tuple[ErrorSpan, ...] | None], ...] = (
        lambda: dialects.xcomet_spans(items, text, notes),
        lambda: dialects.pearmut_spans(items, text, notes, "utf16"),
        lambda: dialects.mtme_spans({"errors": items}, segment, notes),
    )
    for convert in converters:
        with suppress(BadSpan):
            for span in convert() or ():
                assert 0 <= span.start <= span.end <= len(text)
    cuts = [(one % 32 - 2, other % 32 - 2) for one, other in zip(data[:12:2], data[1:12:2], strict=False)]
    words, pieces = white_space(text), Pieces(cuts, ["▁"] * len(cuts), [False] * len(cuts), None)
    with suppress(WhyscoreError):
        align(words, pieces)
        pool_words(words, pieces, np.arange(len(cuts), dtype=np.float64), pool="mean", fill="null")


def _content(data: bytes, sound: bytes) -> bytes:
    """Return the document that bytes ask for: their own, or a valid one that they corrupt."""
    return data[1:] if data[:1] >= bytes([_RAW]) else corrupted(sound, edits_of(data[1:33]))


def readers(data: bytes) -> None:
    """Give a file to a reader of data; the first byte says what it pretends to be, the second which reader."""
    document, reader = (*data[:2], 0, 0)[:2]
    name = sorted(DOCUMENTS)[document % len(DOCUMENTS)]
    path = _folder("readers") / name
    path.write_bytes(_content(data[2:], DOCUMENTS[name]))
    is_read(path, READERS[reader % len(READERS)])


def parser_files(data: bytes) -> None:
    """Parse a fixture; the first byte says which, the second which of its files is corrupted."""
    from support.parsers import refusal

    number, which = (*data[:2], 0, 0)[:2]
    name, fixture = _fixtures()[number % len(_fixtures())]
    file = fixture.names[which % len(fixture.names)]
    folder = fixture.write(_folder(name), {file: _content(data[2:], fixture.files[file])})
    # What was read is remembered by path and time, and the clock is coarse.
    moment = next(_fresh)
    utime(folder / file, ns=(moment, moment))
    refusal(fixture, folder)


@lru_cache(maxsize=1)
def _fixtures() -> "Sequence[tuple[str, ParserFixture]]":
    from support.parsers import parsers

    return sorted(parsers().items())


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    "spec": spec,
    "spans": spans,
    "readers": readers,
    "parsers": parser_files,
}


def seeds(target: str) -> Iterator[bytes]:
    """Yield sound inputs to begin with."""
    if target == "readers":
        for k, name in enumerate(sorted(DOCUMENTS)):
            yield from (bytes([k, reader, _RAW]) + DOCUMENTS[name] for reader in range(len(READERS)))
    elif target == "parsers":
        for k, (_, fixture) in enumerate(_fixtures()):
            yield from (bytes([k, j, _RAW]) + fixture.files[file] for j, file in enumerate(fixture.names))
    elif target == "spans":
        item = {"start": 2, "end": 5, "start_i": 2, "end_i": 4, "severity": "major", "category": "x", "text": "bad"}
        yield b"a bad cat sat on the mat" + json.dumps([item]).encode()
    else:
        written = ("chrf(beta=2)", "boosted(metric=chrf, explainer=lime(samples=200), p=-3.0, w=0.8)", "rouge")
        yield from (bytes([kind]) + text.encode() for kind, text in enumerate((*written, "delete", "word", "rules")))


def mutated(target: str, number: int, seed: int = 0) -> Iterator[bytes]:
    """Yield inputs for a target: its seeds, then as many changed by chance."""
    known = list(seeds(target))
    yield from known
    rng = random.Random(seed)
    for _ in range(number):
        data = bytearray(rng.choice(known))
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data) + 1)
            data[at : at + rng.choice((0, 1, 2, 8))] = rng.choice(
                (rng.randbytes(rng.randint(0, 8)), rng.choice(PIECES))
            )
        # Half of them ask for edits of a sound document instead of being one.
        if rng.random() < 0.5 and len(data) > 2:
            data[2] = rng.randrange(_RAW)
        yield bytes(data)
