"""A damaged store says so, and gives up only what cannot be read."""

import contextlib
import json
import os
import re
import sqlite3
import zlib
from pathlib import Path

import numpy as np
import pytest

from support.cli import Run
from whyscore.errors import StoreError
from whyscore.scoring import store as store_repair
from whyscore.scoring.store import Store, StoreWarning, check, digest, repair, take
from whyscore.types import FloatMatrix, Segment

KEYS = [digest(Segment(f"text {i}")) for i in range(5000)]
ROWS = np.arange(10_000, dtype=np.float64).reshape(5000, 2)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    found = Store(tmp_path / "scores.sqlite")
    found.put("chrf|version:1", KEYS, ROWS)
    found.put_bytes("tagger", KEYS[:3], [b"a", b"bc", b""], 0)
    found.close()
    with contextlib.closing(sqlite3.connect(found.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return found


def damage(store: Store, *, pages: tuple[int, ...]) -> None:
    content = bytearray(store.path.read_bytes())
    size = int.from_bytes(content[16:18], "big")
    for page in pages:
        content[page * size : (page + 1) * size] = b"\xff" * size
    store.path.write_bytes(bytes(content))


def all_rows(store: Store) -> FloatMatrix:
    found = store.get("chrf|version:1", KEYS, 2)
    return np.stack([found[key] for key in KEYS])


def test_a_sound_store_has_no_fault_and_loses_nothing_by_repair(store: Store) -> None:
    assert check(store) == []
    done = repair(store)
    assert (done.rows, done.damaged) == (5003, None)
    assert [file.name for file in store.path.parent.iterdir() if "sqlite." in file.name] == []
    assert np.array_equal(all_rows(store), ROWS)
    assert store.get_bytes("tagger", KEYS[:4], 0) == dict(zip(KEYS, [b"a", b"bc", b""], strict=False))


def test_a_damaged_page_costs_its_own_rows_alone(store: Store) -> None:
    damage(store, pages=(20,))
    assert check(store)
    done = repair(store)
    assert 4700 < done.rows < 5003
    assert check(store) == []
    for key, row in store.get("chrf|version:1", KEYS, 2).items():
        assert np.array_equal(row, ROWS[KEYS.index(key)])


@pytest.mark.filterwarnings("ignore::whyscore.scoring.store.StoreWarning")
@pytest.mark.parametrize(
    ("page", "message"), [(0, "no row can be read. Move it away"), (20, "only 0 of 4... rows could be written")]
)
def test_a_repair_that_saves_nothing_leaves_the_file_as_it_was(
    store: Store, monkeypatch: pytest.MonkeyPatch, page: int, message: str
) -> None:
    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    damage(store, pages=(page,))
    before = store.path.read_bytes()
    monkeypatch.setattr(Store, "_ensure_table", full)
    with pytest.raises(StoreError, match=message):
        repair(store)
    assert store.path.read_bytes() == before
    assert [file.name for file in store.path.parent.iterdir() if "sqlite." in file.name] == []


def test_rows_that_are_no_finite_numbers_are_faults_and_go(store: Store) -> None:
    store.put_bytes("chrf|version:1", KEYS[:2], [b"short", np.array([np.nan, 1.0]).tobytes()], 2)
    assert check(store) == ["2 rows of chrf|version:1 are damaged"]
    assert repair(store).rows == 5001


def test_a_store_that_is_not_there_cannot_be_repaired(tmp_path: Path) -> None:
    absent = Store(tmp_path / "no.sqlite")
    assert check(absent) == []
    with pytest.raises(StoreError, match=re.escape("there is no store to repair")):
        repair(absent)


def test_what_was_scored_elsewhere_can_be_taken_over(store: Store, tmp_path: Path) -> None:
    other = Store(tmp_path / "other.sqlite")
    other.put("ter", KEYS[:7], ROWS[:7])
    assert take(store, other) == 7
    assert len(store.get("ter", KEYS, 2)) == 7


def test_a_large_store_is_copied_in_parts(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_repair, "_PART", 4096)
    fresh = Store(tmp_path / "fresh.sqlite")
    sizes: list[int] = []

    def put(_: Store, signature: str, digests: list[bytes], rows: list[bytes], width: int) -> None:
        sizes.append(len(digests))
        keep(fresh, signature, digests, rows, width)

    keep = Store.put_bytes
    monkeypatch.setattr(Store, "put_bytes", put)
    assert take(fresh, store) == 5003
    assert max(sizes) < 200
    assert np.array_equal(all_rows(fresh), ROWS)


def test_the_command_says_what_is_wrong_and_what_was_saved(store: Store, run: Run) -> None:
    where = ["--store", str(store.path)]
    done = run("store", "check", *where)
    assert (done.code, f"{store.path} is sound\n" in done.out) == (0, True)
    damage(store, pages=(20,))
    done = run("store", "check", *where, "-f", "json")
    assert done.code == 1
    assert json.loads(done.out)["faults"]
    done = run("store", "check", *where)
    assert done.code == 1
    assert f"whyscore store repair --store {store.path}" in "".join(done.out.split("\n"))
    done = run("store", "repair", *where)
    assert done.code == 0
    assert "rows saved" in done.out
    assert "the damaged file is now" in done.out


def flip(store: Store, key: bytes) -> None:
    """Turn one bit of a row, as a failing disk does."""
    with contextlib.closing(sqlite3.connect(store.path)) as connection:
        row = bytearray(connection.execute("SELECT row FROM scores_1 WHERE digest = ?", (key,)).fetchone()[0])
        row[5] ^= 1
        connection.execute("UPDATE scores_1 SET row = ? WHERE digest = ?", (bytes(row), key))
        connection.commit()


def test_a_flipped_bit_is_found_and_its_row_is_scored_anew(store: Store) -> None:
    flip(store, KEYS[7])
    assert check(store) == ["1 rows of chrf|version:1 are damaged"]
    with pytest.warns(StoreWarning, match="1 rows of chrf.version:1 are damaged and not used"):
        found = store.get("chrf|version:1", KEYS, 2)
    assert set(KEYS) - set(found) == {KEYS[7]}
    store.put("chrf|version:1", [KEYS[7]], ROWS[7:8])
    assert check(store) == []
    assert np.array_equal(all_rows(store), ROWS)


@pytest.mark.parametrize("bit", [0, 31, 63, 64, 127, 128, 159])
@pytest.mark.parametrize("bad", [(0,), (99,), (3, 4), (0, 50, 99), tuple(range(100))])
def test_the_same_bit_in_several_rows_of_a_read_is_found(bit: int, bad: tuple[int, ...]) -> None:
    rows = {key: row.tobytes() for key, row in zip(KEYS[:100], ROWS, strict=False)}
    rows = {key: row + store_repair._checksum(key, row, 7) for key, row in rows.items()}
    assert store_repair._whole_rows(rows, 2, 7) is rows
    damaged = dict(rows)
    for key in [KEYS[number] for number in bad]:
        row = bytearray(damaged[key])
        row[bit // 8] ^= 1 << bit % 8
        damaged[key] = bytes(row)
    kept = store_repair._whole_rows(damaged, 2, 7)
    assert kept == {key: row for number, (key, row) in enumerate(rows.items()) if number not in bad}


def test_rows_that_were_exchanged_or_have_another_length_are_found() -> None:
    one, other, third = KEYS[:3]
    rows = {key: row.tobytes() for key, row in zip(KEYS[:3], ROWS, strict=False)}
    rows = {key: row + store_repair._checksum(key, row, 7) for key, row in rows.items()}
    exchanged = {one: rows[other], other: rows[one], third: rows[third]}
    assert store_repair._whole_rows(exchanged, 2, 7) == {third: rows[third]}
    shifted = {one: rows[one][:-1], other: rows[one][-1:] + rows[other], third: rows[third]}
    assert store_repair._whole_rows(shifted, 2, 7) == {third: rows[third]}
    assert store_repair._whole_rows({}, 2, 7) == {}


def as_schema(store: Store, schema: int) -> None:
    """Make the store what an older schema was: rows without checksums, or with ones that know little of the digest."""

    def older(key: bytes, row: bytes) -> bytes:
        row = row[:-4]
        return row if schema == 1 else row + zlib.crc32(row, int.from_bytes(key[:4], "little")).to_bytes(4, "little")

    with contextlib.closing(sqlite3.connect(store.path)) as connection:
        connection.create_function("older", 2, older)
        for number in (1, 2):
            connection.execute(f"UPDATE scores_{number} SET row = older(digest, row)")
        connection.execute(f"PRAGMA user_version={schema}")
        connection.commit()


@pytest.mark.parametrize("schema", [1, 2])
def test_a_store_of_an_older_schema_gets_its_checksums(store: Store, tmp_path: Path, schema: int) -> None:
    as_schema(store, schema)
    assert check(store) == []
    assert take(Store(tmp_path / "other.sqlite"), store) == 5003
    assert np.array_equal(all_rows(store), ROWS)
    assert store.get_bytes("tagger", KEYS[:4], 0) == dict(zip(KEYS, [b"a", b"bc", b""], strict=False))
    store.close()
    flip(store, KEYS[0])
    assert check(store) == ["1 rows of chrf|version:1 are damaged"]


@pytest.mark.filterwarnings("ignore::whyscore.scoring.store.StoreWarning")
def test_a_damaged_row_of_an_older_schema_gets_no_new_checksum(store: Store) -> None:
    as_schema(store, 2)
    flip(store, KEYS[0])
    assert set(KEYS) - set(store.get("chrf|version:1", KEYS, 2)) == {KEYS[0]}
    assert check(store) == ["1 rows of chrf|version:1 are damaged"]


@pytest.mark.filterwarnings("ignore::whyscore.scoring.store.StoreWarning")
@pytest.mark.parametrize(
    "statements",
    [
        ("UPDATE signatures SET signature = 'ter|version:1' WHERE number = 1",),
        ("UPDATE signatures SET number = 13 - number", "UPDATE signatures SET number = number - 10"),
        ("UPDATE signatures SET width = 1 WHERE number = 1",),
        tuple(f"ALTER TABLE scores_{old} RENAME TO scores_{new}" for old, new in ((1, 3), (2, 1), (3, 2))),
    ],
    ids=["signature", "number", "width", "table"],
)
def test_rows_under_another_signature_are_not_used_and_reported(store: Store, statements: tuple[str, ...]) -> None:
    for statement in statements:
        change(store, statement)
    signature = "ter|version:1" if "ter|" in statements[0] else "chrf|version:1"
    assert store.get(signature, KEYS, 1 if "width" in statements[0] else 2) == {}
    assert check(store)


@pytest.mark.parametrize("row", ["7", "'text'", "NULL"])
def test_a_row_of_another_type_is_not_used_and_reported(store: Store, row: str) -> None:
    change(store, "CREATE TABLE loose (digest BLOB PRIMARY KEY, row BLOB) WITHOUT ROWID")
    change(store, f"INSERT INTO loose SELECT digest, iif(digest = x'{KEYS[3].hex()}', {row}, row) FROM scores_1")
    change(store, "DROP TABLE scores_1")
    change(store, "ALTER TABLE loose RENAME TO scores_1")
    with pytest.warns(StoreWarning, match=r"1 rows of chrf.version:1 are damaged and not used"):
        assert set(KEYS) - set(store.get("chrf|version:1", KEYS, 2)) == {KEYS[3]}
    assert check(store) == ["1 rows of chrf|version:1 are damaged"]


def test_a_table_that_is_gone_is_reported_and_made_again(store: Store) -> None:
    change(store, "UPDATE signatures SET number = 9 WHERE number = 1")
    assert check(store)
    with pytest.warns(StoreWarning, match=r"is damaged: the rows of chrf.version:1 are missing"):
        assert store.get("chrf|version:1", KEYS, 2) == {}
    store.put("chrf|version:1", KEYS, ROWS)
    assert np.array_equal(all_rows(store), ROWS)
    assert check(store) == []


@pytest.mark.parametrize("byte", [0, 4, 11, 15])
def test_a_row_whose_digest_was_changed_is_reported(store: Store, byte: int) -> None:
    key = bytearray(KEYS[3])
    key[byte] ^= 1
    with contextlib.closing(sqlite3.connect(store.path)) as connection:
        connection.execute("UPDATE scores_1 SET digest = ? WHERE digest = ?", (bytes(key), KEYS[3]))
        connection.commit()
    assert check(store) == ["1 rows of chrf|version:1 are damaged"]
    assert set(KEYS) - set(store.get("chrf|version:1", KEYS, 2)) == {KEYS[3]}


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_rows_that_are_no_finite_numbers_are_not_used(store: Store, bad: float) -> None:
    """Nobody writes such a row, but one with a right checksum would go into totals."""
    store.put("chrf|version:1", KEYS[:1], np.array([[1.0, bad]]))
    with pytest.warns(StoreWarning, match="1 rows of chrf.version:1 are damaged and not used"):
        assert len(store.get("chrf|version:1", KEYS, 2)) == len(KEYS) - 1


def test_names_that_mean_something_in_addresses_are_only_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = "a#b", "a?b", "a%20b", "a b", "new\nline", "ü日本", os.fsdecode(b"a\xffb"), "?mode=memory", ":memory:"
    monkeypatch.chdir(tmp_path)
    for name in (*names, "file:x?mode=ro"):
        store = Store(Path(name))
        store.put("chrf", KEYS[:3], ROWS[:3])
        store.close()
        assert check(store) == []
        assert repair(store).rows == 3
        assert len(store.get("chrf", KEYS, 2)) == 3
        store.close()


def change(store: Store, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(store.path)) as connection:
        connection.execute(statement)
        connection.commit()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("PRAGMA user_version=99", "was made by a newer whyscore"),
        ("PRAGMA application_id=7", "is not a whyscore store"),
        ("CREATE VIEW more AS SELECT 1", "holds a view (more), which whyscore never makes"),
        (
            "CREATE TRIGGER more AFTER INSERT ON scores_1 BEGIN DELETE FROM scores_2; END",
            "holds a trigger (more), which whyscore never makes",
        ),
    ],
)
def test_what_is_not_a_store_of_this_version_is_never_rewritten(store: Store, statement: str, message: str) -> None:
    change(store, statement)
    content = store.path.read_bytes()
    for use in (repair, check, lambda own: take(Store(own.path.with_name("other.sqlite")), own), Store.held):
        with pytest.raises(StoreError, match=re.escape(message)):
            use(store)
    store.close()
    assert store.path.read_bytes() == content
    assert not list(store.path.parent.glob("*damaged*"))


def test_a_store_whose_end_is_missing_is_read_as_far_as_it_goes(store: Store) -> None:
    content = store.path.read_bytes()
    store.path.write_bytes(content[: len(content) // 2])
    assert check(store)
    done = repair(store)
    assert 1000 < done.rows < 5003
    assert check(store) == []
    rows = store.get("chrf|version:1", KEYS, 2)
    assert len(rows) > 1000
    assert all(np.array_equal(row, ROWS[KEYS.index(key)]) for key, row in rows.items())
    assert done.damaged is not None
    assert done.damaged.read_bytes() == content[: len(content) // 2]


def test_a_store_in_a_read_only_folder_is_sound_and_can_be_taken_over(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = sorted(tmp_path.iterdir())
    monkeypatch.setattr(os, "access", lambda path, mode: (path, mode) != (tmp_path, os.W_OK))
    assert check(store) == []
    other = Store(tmp_path / "elsewhere" / "other.sqlite")
    assert take(other, store) == 5003
    assert np.array_equal(all_rows(other), ROWS)
    assert [file for file in sorted(tmp_path.iterdir()) if file.is_file()] == files  # nothing was written beside it


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    for use in (check, repair):
        with pytest.raises(StoreError, match="is a folder: choose a file with --store"):
            use(Store(tmp_path))


def test_an_empty_file_is_a_store_that_nothing_was_written_to(tmp_path: Path) -> None:
    empty = Store(tmp_path / "empty.sqlite")
    empty.path.touch()
    assert check(empty) == []
    assert repair(empty).rows == 0
    empty.put("chrf|version:1", KEYS[:1], ROWS[:1])
    assert check(empty) == []
