"""A small sound document of every format of data sets and error spans, and all readers that could be asked for one."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from whyscore.data.checks import findings
from whyscore.data.codec import read_records
from whyscore.data.formats.text import read_texts
from whyscore.data.reading import DIALECTS, dialect_of, read, read_foreign
from whyscore.data.records import read_explanations
from whyscore.errors import WhyscoreError
from whyscore.garbage import gc_paused
from whyscore.types import Dataset, Entry, Segment

TEXTS = Dataset("texts", (Entry("0", "a", Segment("a bad cat", "x y", ("a",))), Entry("1", "a", Segment("b c", "x"))))
"""What files of spans alone are about."""


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
TMX = (
    b'<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx version="1.4"><header srclang="de"/>'
    b'<body><tu tuid="1"><tuv xml:lang="de"><seg>ein <bpt i="1">x</bpt>Haus</seg></tuv><tuv xml:lang="en">'
    b"<seg>a <hi>bad</hi> cat</seg></tuv></tu></body></tmx>"
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
    "data.tmx": TMX,
    "mqm.tsv": MQM + b"a\td\t1\t0\tr1\tx y\ta <v>bad</v> cat\tAccuracy\tMajor\n",
    "marot.tsv": MQM.strip()
    + b"\tmetadata\na\td\t1\t0\tr\tx y\ta b\tAccuracy\tMajor\t"
    + _json({"segment": {"target_tokens": ["a", "b"]}, "target_spans": [[0, 1]], "source_spans": [[1, 1]]})
    + b"a\td\t1\t0\tq\tx y\ta b\tNo-error\tNo-error\t{}\n",
    "a.rating": b"a\t" + _json({"errors": [_SPAN | {"is_source_error": False}]}).strip() + b"\trater\na\tNone\n",
    "xcomet.jsonl": _json({"src": "x", "mt": "a bad cat", "error_spans": [_SPAN | {"confidence": 0.5}]}),
    "pearmut.jsonl": _json(
        {"src": "x", "tgt": "a bad cat", "error_spans": [{"start_i": 2, "end_i": 4, "severity": "minor"}]}
    ),
    "qe.txt": b"1\n2\n3\nen-de\tm\t0\ta bad cat\t2\t5\tmajor\n",
    "dev.tgt-tags": b"0 1 0\n0 1\n",
}


READERS: tuple[Callable[[Path], object], ...] = (
    lambda path: findings(read(path)),
    lambda path: read_foreign(path, texts=TEXTS),
    dialect_of,
    read_explanations,
    lambda path: list(read_records(path).numbered()),
    lambda path: findings(read_texts([path], references=[path], source=path)),
    *(lambda path, name=name: read_foreign(path, name, texts=TEXTS, offsets="utf16") for name in DIALECTS),  # type: ignore[misc]
)
"""Every reader of data sets, explanations and error spans."""


def is_read(path: Path, reader: Callable[[Path], object]) -> bool:
    """Return whether a reader takes a file; if not, it must refuse it with an error of whyscore's own.

    The collector is paused: at the bottom of JSON nested thousands deep, callbacks such as that of hypothesis have no
    room on the stack.
    """
    with suppress(WhyscoreError), gc_paused():
        reader(path)
        return True
    return False


def read_everything(path: Path) -> int:
    """Return how many readers take a file."""
    return sum(is_read(path, reader) for reader in READERS)
