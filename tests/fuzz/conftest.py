"""Small sound documents of every format, and how they are spoiled."""

import json
from collections.abc import Callable, Sequence
from copy import deepcopy

import pytest

Edit = tuple[float, int, int]
"""Where (0 to 1), what (an index), and how many bytes of the old go."""
Spoil = Callable[[bytes, Sequence[Edit]], bytes]

PIECES = [
    b"", b"\x00", b"\xff", b"\xed\xa0\x80", b"\n", b"\r\n", b"\t", b'"', b"'", b"{", b"}", b"[", b"]" * 3, b",", b":",
    b"null", b"NaN", b"1e999", b"-1", b"99999999999999999999", b"1" * 5000, b"9" * 400, b"true",
    b'"\\ud800"', b"\\u0000",
    b"<", b"</v>", b"<v>", b"&amp;", b"&#0;", b"[" * 3000, b'{"a":' * 3000, b"\xef\xbb\xbf", b"\xe2\x80\xa8", b" ",
    b"\x1f\x8b", b"\xf0\x9f\x91\xa9", b"0.5", b"{}", b"[]", b'""', b"[[1]]", b'{"start": 1}',
]  # fmt: skip


def _header(kind: str) -> dict[str, object]:
    return {"schema": "whyscore/1", "schema_version": 1, "kind": kind, "created": "2026-01-01T00:00:00Z", "data": "d"}


_ENTRY: dict[str, object] = {"id": "0", "system": "a", "hypothesis": "a bad cat", "source": "x y", "references": ["a"]}
_SPAN: dict[str, object] = {"start": 2, "end": 5, "severity": "major", "category": "x", "text": "bad"}
_WORDS = [{"start": 0, "end": 1, "text": "a", "importance": 0.5}, {"start": 2, "end": 5, "importance": -1}]


def _json(*rows: object) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


MQM = b"system\tdoc\tdoc_id\tseg_id\trater\tsource\ttarget\tcategory\tseverity\n"
XLIFF = (
    b'<?xml version="1.0"?><xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="f" '
    b'source-language="de" target-language="en"><body><trans-unit id="1"><source>ein <g id="1">x</g></source>'
    b'<target>a <mrk mtype="x">bad</mrk> cat</target></trans-unit></body></file></xliff>'
)
XLIFF2 = (
    b'<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="de"><file id="f">'
    b'<unit id="u"><segment><source>a</source><target>b <mrk id="m" type="x">c</mrk></target></segment></unit>'
    b"</file></xliff>"
)
DOCUMENTS: dict[str, bytes] = {
    "data.jsonl": _json(_ENTRY | {"score": 1.0, "spans": [_SPAN]}, _ENTRY | {"id": "1", "spans": None}),
    "own.jsonl": _json(_header("dataset"), _ENTRY | {"human": {"da": 1.0}, "spans": [_SPAN | {"side": "hypothesis"}]}),
    "spans.jsonl": _json(_header("spans"), {"id": "0", "system": "a", "side": "hypothesis", "spans": [_SPAN]}),
    "explanations.jsonl": _json(
        _header("explanations"), _ENTRY | {"metric": "m", "explainer": "e", "side": "hypothesis", "words": _WORDS}
    ),
    "data.tsv": b'source\thypothesis\treference\tscore\nx y\ta bad cat\ta cat\t0.5\nx\t"b"\tc\t1\n',
    "data.csv": b'id,system,hypothesis,reference\n0,a,"a ""bad"" cat",b\n1,a,c,d\n',
    "data.txt": "a bad cat\nder Hund\n日本\n".encode(),
    "data.xlf": XLIFF,
    "data2.xliff": XLIFF2,
    "mqm.tsv": MQM + b"a\td\t1\t0\tr1\tx y\ta <v>bad</v> cat\tAccuracy\tMajor\n",
    "marot.tsv": MQM.strip() + b'\tmetadata\na\td\t1\t0\tr\tx\ta <v>b</v>\tAccuracy\tMajor\t{"x": 1}\n',
    "a.rating": b"a\t" + _json({"errors": [_SPAN | {"is_source_error": False}]}).strip() + b"\trater\na\tNone\n",
    "xcomet.jsonl": _json({"src": "x", "mt": "a bad cat", "error_spans": [_SPAN | {"confidence": 0.5}]}),
    "pearmut.jsonl": _json(
        {"src": "x", "tgt": "a bad cat", "error_spans": [{"start_i": 2, "end_i": 4, "severity": "minor"}]}
    ),
    "qe.txt": b"1\n2\n3\nen-de\tm\t0\ta bad cat\t2\t5\tmajor\n",
    "dev.tgt-tags": b"0 1 0\n0 1\n",
}


@pytest.fixture(scope="session")
def documents() -> dict[str, bytes]:
    return DOCUMENTS


@pytest.fixture(scope="session")
def spoil() -> Spoil:
    def spoiled(document: bytes, edits: Sequence[Edit]) -> bytes:
        for where, what, gone in edits:
            place = int(where * len(document))
            document = document[:place] + PIECES[what % len(PIECES)] + document[place + gone :]
        return document

    return spoiled


VALUES: list[object] = [
    None, True, -1, 0, 10**400, 1e308, 0.5, "", "x", "7", "\ud800", [], [[]], [1], ["x", None], {}, {"a": 1}, [None],
    [{}],
]  # fmt: skip
Swap = Callable[[bytes, Sequence[tuple[int, int]]], bytes]


def _places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the way to every value inside of one."""
    items: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    return [place for key, inner in items for place in ((*path, key), *_places(inner, (*path, key)))]


@pytest.fixture(scope="session")
def swap() -> Swap:
    """How values of JSON lines are exchanged for others: which place, which value."""

    def swapped(document: bytes, edits: Sequence[tuple[int, int]]) -> bytes:
        rows = [json.loads(line) for line in document.splitlines()]
        for where, what in edits:
            places = _places(rows)
            *way, last = places[where % len(places)]
            inner = rows
            for key in way:
                inner = inner[key]  # type: ignore[call-overload]
            inner[last] = deepcopy(VALUES[what % len(VALUES)])  # type: ignore[call-overload]
        return _json(*rows)

    return swapped
