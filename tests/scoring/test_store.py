"""The store: exact, shared, hard to break."""

import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from whyscore.errors import StoreError
from whyscore.scoring.store import SCHEMA, Store, StoreWarning, check, digest
from whyscore.types import Segment

texts = st.text(max_size=20)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "sub" / "scores.sqlite")


def keys(count: int) -> list[bytes]:
    return [digest(Segment(str(i))) for i in range(count)]


def test_rows_come_back_bit_for_bit(store: Store) -> None:
    rows = np.random.default_rng(0).standard_normal((2500, 3))
    store.put("m|v:1", keys(2500), rows)
    found = store.get("m|v:1", keys(3000), 3)
    assert len(found) == 2500
    assert all((found[key] == row).all() for key, row in zip(keys(2500), rows, strict=True))


@given(rows=arrays(np.float64, (3, 2), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_every_finite_float_survives(tmp_path_factory: pytest.TempPathFactory, rows: np.ndarray) -> None:
    store = Store(tmp_path_factory.mktemp("store") / "s")
    store.put("m", keys(3), rows)
    found = store.get("m", keys(3), 2)
    assert np.array_equal(np.stack([found[key] for key in keys(3)]), rows)
    store.close()


@given(st.lists(st.tuples(texts, st.none() | texts, st.lists(texts, max_size=2).map(tuple)), max_size=6))
def test_different_segments_have_different_digests(parts: list[tuple[str, str | None, tuple[str, ...]]]) -> None:
    segments = {Segment(*part) for part in parts}
    assert len({digest(segment) for segment in segments}) == len(segments)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Segment("a", None, ("b",)), Segment("a", "b")),
        (Segment("a", "b"), Segment("a", None, ("s", "b"))),
        (Segment("a"), Segment("a", "")),
        (Segment("a", None, ("b", "c")), Segment("a", None, ("bc",))),
        (Segment("1:a"), Segment("a")),
    ],
)
def test_texts_cannot_pass_for_each_other(one: Segment, other: Segment) -> None:
    assert digest(one) != digest(other)


def test_signatures_do_not_share_scores(store: Store) -> None:
    store.put("a", keys(1), np.ones((1, 1)))
    assert store.get("b", keys(1), 1) == {}


def test_rows_of_another_width_are_not_used_and_make_room(store: Store) -> None:
    store.put("a", keys(3), np.ones((3, 1)))
    with pytest.warns(StoreWarning, match="rows of a have 1 numbers, not 2, and are not used"):
        assert store.get("a", keys(1), 2) == {}
    store.put("a", keys(1), np.ones((1, 2)))
    assert [row.tolist() for row in store.get("a", keys(3), 2).values()] == [[1.0, 1.0]]
    assert check(store) == []


def test_the_size_is_reported_and_pruning_frees_it(store: Store) -> None:
    assert store.held() == []
    assert store.size() == 0
    store.put("old|x", keys(5000), np.ones((5000, 1)))
    store.put("new|x", keys(10), np.ones((10, 1)))
    assert [(held.signature, held.segments) for held in store.held()] == [("new|x", 10), ("old|x", 5000)]
    before = store.size()
    assert store.prune(days=1) == 0
    assert store.prune(containing="old") == 5000
    assert [held.signature for held in store.held()] == ["new|x"]
    assert store.size() < before
    assert len(store.get("new|x", keys(10), 1)) == 10


def test_a_full_disk_costs_the_store_and_not_the_scores(store: Store) -> None:
    store.put("m", keys(1), np.ones((1, 1)))
    store._connection().execute("PRAGMA max_page_count=8")
    with pytest.warns(StoreWarning, match=re.escape("the disk is full. Free some space")):
        store.put("m", keys(5000), np.ones((5000, 1)))
    store.put("m", keys(5000), np.ones((5000, 1)))  # told once, not again
    assert len(store.get("m", keys(5000), 1)) == 1


def test_a_read_only_store_can_still_be_read(store: Store) -> None:
    store.put("m", keys(1), np.ones((1, 1)))
    store._connection().execute("PRAGMA query_only=ON")
    with pytest.warns(StoreWarning, match=re.escape("the store is read-only. Choose another file with --store")):
        store.put("m", keys(2), np.ones((2, 1)))
    assert len(store.get("m", keys(2), 1)) == 1


def test_a_store_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=re.escape("Choose another file with --store, or --store none")):
        Store(tmp_path / "file" / "scores.sqlite").get("m", keys(1), 1)


def test_a_store_of_a_newer_version_is_left_alone(store: Store) -> None:
    store.put("m", keys(1), np.ones((1, 1)))
    store._connection().execute(f"PRAGMA user_version={SCHEMA + 1}")
    store.close()
    message = (
        f"was made by a newer whyscore (store version {SCHEMA + 1}, this one reads up to {SCHEMA}): upgrade whyscore"
    )
    with pytest.raises(StoreError, match=re.escape(message)):
        store.get("m", keys(1), 1)


@pytest.mark.parametrize("content", [b"just a text file that is long enough to be looked at" * 50, b"SQLite"])
def test_another_file_is_not_taken_for_a_store(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(StoreError, match="not a whyscore store"):
        Store(path).get("m", keys(1), 1)
    assert path.read_bytes() == content


def test_another_programs_database_is_not_taken_for_a_store(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE t (x)")
    other.commit()
    other.close()
    with pytest.raises(StoreError, match="is not a whyscore store: choose another file with --store, or --store none"):
        Store(path).get("m", keys(1), 1)


def test_a_damaged_store_says_what_to_do(store: Store) -> None:
    store.put("m", keys(5000), np.ones((5000, 1)))
    store._connection().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    content = bytearray(store.path.read_bytes())
    content[4096:] = random.Random(0).randbytes(len(content) - 4096)
    store.path.write_bytes(bytes(content))
    with pytest.raises(StoreError, match="the store is damaged"):
        store.get("m", keys(5000), 1)


WRITER = textwrap.dedent("""
    import sys, numpy as np
    from pathlib import Path
    from whyscore.scoring.store import Store, digest
    from whyscore.types import Segment
    store, start = Store(Path(sys.argv[1])), int(sys.argv[2])
    for batch in range(start, start + 100):
        keys = [digest(Segment(f"{batch}-{i}")) for i in range(20)]
        store.put("m", keys, np.full((20, 1), float(batch)))
        print(batch, flush=True)
""")


def started(path: Path, start: int) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(start)], stdout=subprocess.PIPE, text=True)


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "scores.sqlite"
    writers = [started(path, 1000 * number) for number in range(4)]
    assert [writer.wait(120) for writer in writers] == [0] * 4
    assert [held.segments for held in Store(path).held()] == [4 * 100 * 20]
    for writer in writers:
        writer.stdout.close()  # type: ignore[union-attr]


def test_a_killed_writer_loses_at_most_the_batch_in_flight(tmp_path: Path) -> None:
    path = tmp_path / "scores.sqlite"
    draw = random.Random(1)
    for number in range(5):
        writer = started(path, 1000 * number)
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(draw.random() * 0.02)
        os.kill(writer.pid, signal.SIGKILL)
        said = [int(line) for line in [first, *writer.stdout] if line.strip()]
        writer.wait(60)
        writer.stdout.close()
        store = Store(path)
        for batch in said:
            known = store.get("m", [digest(Segment(f"{batch}-{i}")) for i in range(20)], 1)
            assert len(known) == 20
            assert {float(row[0]) for row in known.values()} == {float(batch)}
        assert store._connection().execute("PRAGMA integrity_check").fetchone() == ("ok",)
        store.close()
