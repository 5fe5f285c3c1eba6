"""Tags kept in the score store."""

import tracemalloc
import zlib
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest

from whyscore.protocols import Tagged
from whyscore.scoring.store import Store, StoreWarning, TagStore

TAGS = {"a cat": (Tagged(2, 5, ("upos:NOUN", "dep:ROOT")),), "": (), "Äü 😀": (Tagged(0, 2, ("x",)),)}


def test_tags_are_read_back_as_they_were(tmp_path: Path) -> None:
    kept = TagStore(Store(tmp_path / "s.sqlite"))
    kept.put("spacy", TAGS)
    assert TagStore(Store(tmp_path / "s.sqlite")).get("spacy", [*TAGS, "unknown"]) == TAGS


def test_another_tagger_knows_nothing_of_them(tmp_path: Path) -> None:
    kept = TagStore(Store(tmp_path / "s.sqlite"))
    kept.put("spacy", TAGS)
    assert kept.get("stanza", list(TAGS)) == {}


def test_reading_makes_no_file(tmp_path: Path) -> None:
    assert TagStore(Store(tmp_path / "s.sqlite")).get("spacy", ["a"]) == {}
    assert not (tmp_path / "s.sqlite").exists()


def test_tags_and_scores_live_in_one_store_and_are_pruned_alike(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.sqlite")
    store.put("chrf", [b"x" * 16], np.ones((1, 1)))
    TagStore(store).put("spacy", TAGS)
    assert {(held.signature, held.segments) for held in store.held()} == {("chrf", 1), ("spacy", 3)}
    assert store.prune(containing="spacy") == 3
    assert TagStore(store).get("spacy", list(TAGS)) == {}


def test_more_texts_than_one_query_takes_are_found(tmp_path: Path) -> None:
    kept = TagStore(Store(tmp_path / "s.sqlite"))
    many = {f"text {k}": (Tagged(0, 4, (str(k),)),) for k in range(2000)}
    kept.put("t", many)
    assert kept.get("t", list(many)) == many


def test_a_store_that_cannot_be_written_only_warns(tmp_path: Path) -> None:
    (tmp_path / "s.sqlite").write_text("no store at all, but long enough to be looked at as one")
    with pytest.warns(StoreWarning, match="the results come out all the same"):
        TagStore(Store(tmp_path / "s.sqlite")).put("spacy", TAGS)


def test_a_row_that_stands_for_many_megabytes_is_not_unpacked(tmp_path: Path) -> None:
    kept = TagStore(Store(tmp_path / "s.sqlite"))
    kept.put("spacy", TAGS)
    bomb = zlib.compress(b"[" + b" " * 200_000_000 + b"]", 1)
    kept.store.put_bytes("spacy", [blake2b(b"text", digest_size=16).digest()], [bomb], 0)
    tracemalloc.start()
    try:
        assert kept.get("spacy", [*TAGS, "text"]) == TAGS
        assert tracemalloc.get_traced_memory()[1] < 150_000_000
    finally:
        tracemalloc.stop()
