"""No reader answers to any bytes with anything but a data set or an error of its own."""

import gzip
import io
import os
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.corruption import corrupted, swapped
from support.documents import DOCUMENTS, TEXTS, read_everything
from whyscore.data.checks import findings
from whyscore.data.formats.eval4nlp import look_at_gold, misfits, read_gold, read_submission
from whyscore.data.reading import dialect_of, read, read_foreign
from whyscore.errors import WhyscoreError

TIMES = int(os.environ.get("FUZZ", "1"))
"""FUZZ=10 looks at ten times as many examples, others each time."""
OWN = settings(
    max_examples=settings.default.max_examples * 2 // 5 * TIMES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

edits = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 200), st.integers(0, 12)), min_size=1, max_size=4)
NAMES = [
    "data.jsonl", "own.jsonl", "spans.jsonl", "explanations.jsonl", "data.tsv", "data.csv", "data.txt", "data.xlf",
    "data2.xliff", "data.tmx", "mqm.tsv", "marot.tsv", "a.rating", "xcomet.jsonl", "pearmut.jsonl", "qe.txt",
    "dev.tgt-tags",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_sound_documents_are_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(DOCUMENTS[name])
    if name == "explanations.jsonl":
        assert dialect_of(path) == "explanations"
    else:
        assert len(read(path) if name in ("data.txt", "data.tmx") else read_foreign(path, texts=TEXTS)) > 0


@OWN
@given(edits=edits)
@pytest.mark.parametrize("name", NAMES)
def test_corrupted_documents_give_data_or_an_error_of_ours(
    name: str, edits: list[tuple[float, int, int]], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(corrupted(DOCUMENTS[name], edits))
    read_everything(path)


@OWN
@given(edits=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=3))
@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(".jsonl")])
def test_other_values_give_data_or_an_error_of_ours(name: str, edits: list[tuple[int, int]], tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(swapped(DOCUMENTS[name], edits))
    read_everything(path)


@OWN
@given(content=st.binary(max_size=300), name=st.sampled_from([*NAMES, "x", "a.gz", "a.tsv.gz", "a.jsonl.zst", "a.zip"]))
def test_any_bytes_give_data_or_an_error_of_ours(content: bytes, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    read_everything(path)


@OWN
@given(edits=edits, name=st.sampled_from(["data.tsv", "data.jsonl", "data.xlf"]))
def test_corrupted_archives_give_data_or_an_error_of_ours(
    edits: list[tuple[float, int, int]], name: str, tmp_path: Path
) -> None:
    path = tmp_path / f"{name}.gz"
    path.write_bytes(corrupted(gzip.compress(DOCUMENTS[name]), edits))
    read_everything(path)


GOLD = {
    "dev.tgt-tags": b"0 1 0\n0 1\n", "dev.src-tags": b"0 1\n1\n", "dev.mt": b"a bad cat\nb c\n",
    "dev.src": b"x y\nz\n", "dev.da": b"0.5\n1\n",
}  # fmt: skip
SUBMISSION = {"target.submission": b"0.1 0.5 1\n0 1\n", "sentence.submission": b"1\n2\n", "metadata.txt": b"a\nb\nc\n"}


@OWN
@given(edits=edits, which=st.integers(0, 10))
@pytest.mark.parametrize("files", [GOLD, SUBMISSION], ids=["gold", "submission"])
def test_corrupted_folders_give_data_or_an_error_of_ours(
    files: dict[str, bytes], edits: list[tuple[float, int, int]], which: int, tmp_path: Path
) -> None:
    chosen = sorted(files)[which % len(files)]
    for name, content in files.items():
        (tmp_path / name).write_bytes(corrupted(content, edits) if name == chosen else content)
    with suppress(WhyscoreError):
        findings(read_foreign(tmp_path))
    with suppress(WhyscoreError):
        look_at_gold(tmp_path)
    with suppress(WhyscoreError):
        submission = read_submission(tmp_path)
        misfits(submission, read_gold(tmp_path))


@OWN
@given(edits=edits)
def test_corrupted_zips_give_data_or_an_error_of_ours(edits: list[tuple[float, int, int]], tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (GOLD | SUBMISSION).items():
            archive.writestr(name, content)
    path = tmp_path / "a.zip"
    path.write_bytes(corrupted(packed.getvalue(), edits))
    with suppress(WhyscoreError):
        look_at_gold(path)
    with suppress(WhyscoreError):
        read_submission(path)
