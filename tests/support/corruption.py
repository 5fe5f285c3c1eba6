"""Corruption of valid documents, for tests that give damaged files to parsers.

1. `corrupted` cuts, drops and inserts bytes: what breaks encodings, quotes, brackets, numbers and lines.
2. `swapped` keeps a JSON document well-formed and exchanges values inside: other types, huge numbers, half characters.
3. `edits_of` turns any bytes into such edits, so that a fuzzer that knows bytes alone can drive both.
"""

import json
from collections.abc import Sequence
from copy import deepcopy

Edit = tuple[float, int, int]
"""Where (0 to 1), what (an index), and how many bytes of the old go."""
Swap = tuple[int, int]
"""Which value, and which other takes its place."""

PIECES = (
    b"", b"\x00", b"\xff", b"\xed\xa0\x80", b"\n", b"\r\n", b"\t", b'"', b"'", b"{", b"}", b"[", b"]" * 3, b",", b":",
    b"null", b"NaN", b"1e999", b"-1", b"99999999999999999999", b"1" * 5000, b"9" * 400, b"true",
    b'"\\ud800"', b"\\u0000",
    b"<", b"</v>", b"<v>", b"&amp;", b"&#0;", b"[" * 3000, b'{"a":' * 3000, b"\xef\xbb\xbf", b"\xe2\x80\xa8", b" ",
    b"\x1f\x8b", b"\xf0\x9f\x91\xa9", b"0.5", b"{}", b"[]", b'""', b"[[1]]", b'{"start": 1}', b"-Infinity",
    b'"id": 1, "id": 2, ', b"\xff\xfea\x00", b"\xe9", b"0", b"1", b"\x80\x02.", b"!!python/object:a.b", b"*a", b"&a ",
)  # fmt: skip

VALUES: tuple[object, ...] = (
    None, True, -1, 0, 10**400, 1e308, 0.5, "", "x", "7", "\ud800", [], [[]], [1], ["x", None], {}, {"a": 1}, [None],
    [{}], float("nan"), float("inf"), 10**25, "\x00", "a\nb", "../x",
)  # fmt: skip

_BYTES_PER_EDIT = 4


def corrupted(document: bytes, edits: Sequence[Edit]) -> bytes:
    """Return a document with pieces put in and bytes left out.

    >>> corrupted(b"abcd", [(0.5, PIECES.index(b"null"), 1)])
    b'abnulld'
    """
    for where, what, gone in edits:
        place = int(where * len(document))
        document = document[:place] + PIECES[what % len(PIECES)] + document[place + gone :]
    return document


def swapped(document: bytes, edits: Sequence[Swap]) -> bytes:
    r"""Return JSON with other values inside; a document of several lines is taken for JSON lines.

    >>> swapped(b'{"a": [1, 2]}', [(1, 7)])
    b'{"a": ["", 2]}\n'
    """
    whole = _whole(document)
    held = [json.loads(line) for line in document.splitlines() if line.strip()] if whole is None else [whole]
    for where, what in edits:
        places = _places(held)
        *way, last = places[where % len(places)]
        inner: list[object] | dict[str, object] = held
        for key in way:
            inner = inner[key]  # type: ignore[assignment,index]
        inner[last] = deepcopy(VALUES[what % len(VALUES)])  # type: ignore[index]
    return "".join(json.dumps(one) + "\n" for one in held).encode()


def edits_of(data: bytes) -> list[Edit]:
    """Return the edits that bytes stand for: two say where, one what, one how much goes.

    >>> edits_of(bytes([128, 0, 4, 2]))
    [(0.5, 4, 2)]
    """
    rows = [data[start : start + _BYTES_PER_EDIT] for start in range(0, len(data), _BYTES_PER_EDIT)]
    full = [row for row in rows if len(row) == _BYTES_PER_EDIT]
    return [(int.from_bytes(row[:2], "big") / 65536, row[2], row[3]) for row in full]


def _whole(document: bytes) -> object | None:
    try:
        found: object = json.loads(document)
    except ValueError:
        return None
    return found


def _places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the way to every value inside of one."""
    items: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    return [place for key, inner in items for place in ((*path, key), *_places(inner, (*path, key)))]
