"""Word vectors from text files, fastText models, encoders and objects of the caller."""

import gzip
import re
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import zstandard

from whyscore.errors import ContractError, DataError, SpecError
from whyscore.models import word_vectors as word_vectors_text
from whyscore.models.word_vectors import (
    BinaryVectors,
    EncoderVectors,
    TextVectors,
    fnv,
    letter_grams,
    look_up,
    word_vectors,
)

ROWS = "кот 3 4\nпёс 0 2\nкот 1 1\nwith blank 1 0\n"


def packed(folder: Path, kind: str, text: str = "4 2\n" + ROWS) -> TextVectors:
    path = folder / f"vectors.{kind}"
    data = text.encode()
    if kind.endswith("gz"):
        data = gzip.compress(data)
    elif kind.endswith("zst"):
        data = zstandard.compress(data)
    path.write_bytes(data)
    return TextVectors(str(path))


@pytest.mark.parametrize("kind", ["vec", "vec.gz", "vec.zst"])
def test_rows_have_unit_length_and_the_first_of_a_word_wins(tmp_path: Path, kind: str) -> None:
    rows, known = packed(tmp_path, kind).vectors(["пёс", "кот", "нет", "with blank", "кот"])
    assert rows.round(12).tolist() == [[0, 1], [0.6, 0.8], [0, 0], [1, 0], [0.6, 0.8]]
    assert known.tolist() == [True, True, False, True, True]


@pytest.mark.parametrize("kind", ["vec", "vec.gz"])
def test_later_questions_are_answered_too(tmp_path: Path, kind: str) -> None:
    vectors = packed(tmp_path, kind)
    assert vectors.vectors(["кот"])[1].tolist() == [True]
    assert vectors.vectors(["пёс", "кот", "нет"])[1].tolist() == [True, True, False]


@pytest.mark.parametrize("text", ["кот 3 4\nпёс 0 2\n", "2 2\nкот 3 4 \nпёс 0 2 \n", "2 2\r\nкот 3 4\r\nпёс 0 2\r\n"])
def test_headers_are_optional_and_line_ends_do_not_matter(tmp_path: Path, text: str) -> None:
    rows, known = packed(tmp_path, "vec", text).vectors(["кот", "пёс"])
    assert rows.tolist() == [[0.6, 0.8], [0.0, 1.0]]
    assert known.all()


def test_words_with_equal_hashes_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_vectors_text, "hash", lambda _: 7, raising=False)
    rows, known = packed(tmp_path, "vec").vectors(["пёс", "кот", "нет"])
    assert rows.tolist() == [[0.0, 1.0], [0.6, 0.8], [0.0, 0.0]]
    assert known.tolist() == [True, True, False]


@pytest.mark.parametrize("kind", ["vec", "vec.gz"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2 2\nкот 3 4\nпёс 0\n", ":3: expected a word and 2 numbers, found 1 numbers"),
        ("2 2\nкот 3 4\nпёс 0 zwei\n", ":3: a vector holds something else than numbers"),
        ("2 2\nкот 3 4\nпёс 0 nan\n", ":3: a vector holds a number that is not finite"),
        ("кот\n", ":1: expected a header, or a word and its numbers"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, kind: str, text: str, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(f"vectors.{kind}{message}")):
        packed(tmp_path, kind, text).vectors(["пёс"])


def test_a_file_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=re.escape("ends after 1 vectors, the header says 3: the file is cut off")):
        packed(tmp_path, "vec", "3 2\nкот 3 4\n").vectors(["кот"])
    for kind, message in (
        ("vec.gz", "cannot be read to its end: "),
        ("vec.zst", "ends after |:[0-9]+: expected a word "),
    ):
        cut = packed(tmp_path, kind, "40000 2\n" + "".join(f"w{k} {k} {k * k % 9973}\n" for k in range(40000)))
        path = Path(cut.path)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        with pytest.raises(DataError, match=message):
            cut.vectors(["w39999"])


def test_the_signature_names_the_content(tmp_path: Path) -> None:
    one = packed(tmp_path, "vec").signature()
    other = packed(tmp_path, "vec", "2 2\nкот 3 4\nпёс 0 2\n").signature()
    assert one.spec.startswith("vectors.vec@")
    assert one != other


def model(folder: Path, *, quantised: bool = False, version: int = 12, buckets: int = 7) -> Path:
    """A fastText model of two words and some buckets, written by hand."""
    words = [b"</s>", "кот".encode()]
    arguments = (3, 5, 1, 1, 5, 1, 1, 2, buckets, 2, 3, 100)
    head = struct.pack("<2i12id3i2q", 793712314, version, *arguments, 0.0, 2, 2, 0, 9, -1)
    entries = b"".join(word + b"\0" + struct.pack("<qb", 1, 0) for word in words)
    matrix = np.arange((2 + buckets) * 3, dtype="<f4").reshape(-1, 3) + 1
    path = folder / "model.bin"
    shape = struct.pack("<?2q", quantised, len(matrix), 3)
    path.write_bytes(head + entries + shape + matrix.tobytes() + b"output")
    return path


def test_a_fasttext_model_gives_vectors_to_unknown_words(tmp_path: Path) -> None:
    vectors = BinaryVectors(str(model(tmp_path)))
    rows, known = vectors.vectors(["кот", "пёс", "</s>"])
    matrix = np.arange(27, dtype=np.float64).reshape(-1, 3) + 1
    for row, own, word in ((rows[0], [1], "кот"), (rows[1], [], "пёс")):
        places = [*own, *(2 + fnv(gram) % 7 for gram in letter_grams(word, 2, 3))]
        mean = matrix[places].mean(axis=0)
        assert row == pytest.approx(mean / np.linalg.norm(mean))
    assert rows[2] == pytest.approx(matrix[0] / np.linalg.norm(matrix[0]))
    assert known.all()


def test_letter_grams_leave_the_marks_alone_out() -> None:
    assert [gram.decode() for gram in letter_grams("a", 1, 2)] == ["<a", "a", "a>"]


def test_hashes_count_bytes_as_signed() -> None:
    # FNV-1a with the bytes of "к" (d0 ba) extended by their sign, worked out step by step.
    first = ((2166136261 ^ 0xFFFFFFD0) * 16777619) % 2**32
    assert fnv("к".encode()) == ((first ^ 0xFFFFFFBA) * 16777619) % 2**32


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quantised": True}, "is a quantised model (.ftz), which is not supported"),
        ({"version": 11}, "is no fastText model of version 12"),
    ],
)
def test_other_models_are_refused(tmp_path: Path, options: dict[str, int], message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        BinaryVectors(str(model(tmp_path, **options))).vectors(["кот"])  # type: ignore[arg-type]


@pytest.mark.parametrize("kept", [20, 120, 200])
def test_a_model_that_was_cut_off_is_refused(tmp_path: Path, kept: int) -> None:
    path = model(tmp_path)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(DataError, match=re.escape("ends too early: the file is cut off")):
        BinaryVectors(str(path)).vectors(["кот"])


def test_the_embedded_table_knows_words_without_a_file() -> None:
    rows, known = EncoderVectors().vectors(["cat", "cats", "house", "\U0001f9ff"])
    assert known.tolist()[:3] == [True, True, True]
    assert not known[3]
    assert np.linalg.norm(rows[:3], axis=1) == pytest.approx([1, 1, 1])
    assert rows[0] @ rows[1] > rows[0] @ rows[2]


def test_the_static_table_knows_words_too() -> None:
    rows, known = EncoderVectors("static").vectors(["kass", "kassid"])
    assert known.all()
    assert rows[0] @ rows[1] > 0.4


def test_names_paths_and_objects_find_their_provider(tmp_path: Path) -> None:
    assert word_vectors(None) is None
    assert word_vectors("static") == EncoderVectors("static")
    path = str(model(tmp_path))
    assert word_vectors(path) == BinaryVectors(path)
    text = packed(tmp_path, "vec")
    assert word_vectors(text.path) == text
    assert word_vectors(text) is text
    with pytest.raises(DataError, match=re.escape("no.vec: no such file of word vectors")):
        word_vectors("no.vec")
    with pytest.raises(SpecError, match=re.escape("words is 3, expected 'embedded'")):
        word_vectors(3)


def test_tables_and_functions_of_the_caller() -> None:
    table = word_vectors({"a": [3.0, 4.0], "b": [0.0, 0.0]})
    assert look_up(table, ["a", "b", "c"]).rows.tolist() == [[0.6, 0.8], [0.0, 0.0], [0.0, 0.0]]
    assert look_up(table, ["a", "b", "c"]).known.tolist() == [True, True, False]

    def lengths(words: Sequence[str]) -> list[list[float] | None]:
        return [[float(len(word)), 0.0] if word.isalpha() else None for word in words]

    function = word_vectors(lengths)
    assert look_up(function, ["ab", "?"]).known.tolist() == [True, False]
    assert function is not None
    assert not function.signature().stable


def test_vectors_of_different_widths_are_refused() -> None:
    with pytest.raises(ContractError, match=re.escape("the table of words gave vectors of different widths (1, 2)")):
        look_up(word_vectors({"a": [1.0], "b": [1.0, 2.0]}), ["a", "b"])


class Wrong:
    def __init__(self, rows: object, known: object) -> None:
        self.answer = rows, known

    def signature(self) -> object:
        return word_vectors({}).signature()  # type: ignore[union-attr]

    def vectors(self, _: Sequence[str]) -> object:
        return self.answer


@pytest.mark.parametrize(
    ("provider", "message"),
    [
        (Wrong([[1.0]], [True]), "was asked for the vectors of 2 words and gave the shapes (1, 1) and (1,)"),
        (Wrong([1.0, 2.0], [True, True]), "gave the shapes (2,) and (2,), expected (2, width) and (2,)"),
        (Wrong([[1.0], [np.inf]], [True, True]), "gave a vector that is not finite for 'b'"),
    ],
)
def test_providers_that_break_the_protocol_are_told_off(provider: Wrong, message: str) -> None:
    with pytest.raises(ContractError, match=re.escape(message)):
        look_up(word_vectors(provider), ["a", "b"])


def test_no_words_are_no_question() -> None:
    assert look_up(word_vectors({"a": [1.0]}), []).known.shape == (0,)
    assert not look_up(None, ["a"]).known.any()
