"""Tags from files: one tag per token, and CoNLL-U."""

import re
from pathlib import Path

import pytest

from whyscore.errors import DataError, SpecError
from whyscore.taggers.aligned import Lines, Pretagged
from whyscore.taggers.conllu import Conllu


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def row(*cells: str) -> str:
    return "\t".join([*cells, *["_"] * (10 - len(cells))])


GERMAN = "\n".join(
    [
        "# text = Im Haus, ja.",
        row("1-2", "Im"),
        row("1", "In", "in", "ADP", "APPR", "_", "3", "case"),
        row("2", "dem", "der", "DET", "ART", "Case=Dat|Gender=Neut", "3", "det"),
        row("3", "Haus", "Haus", "NOUN", "NN", "Case=Dat", "0", "root", "_", "SpaceAfter=No|NER=S-LOC"),
        row("4", ",", ",", "PUNCT", "$,", "_", "3", "punct"),
        row("4.1", "empty"),
        row("5", "ja", "ja", "PART", "PTK", "_", "3", "discourse", "_", "SpaceAfter=No"),
        row("6", ".", ".", "PUNCT", "$.", "_", "3", "punct"),
        "",
    ]
)


def test_tags_stand_on_white_space_tokens(tmp_path: Path) -> None:
    tagger = Pretagged(write(tmp_path, "r.tag", "DT NN\n\n"), write(tmp_path, "h.tag", "NN\nVB\n"))
    found = tagger.tag_lines(Lines([["a  cat", ""]], {"s": ["dog", " go "]}))
    assert found.references == [[((0, 1, ("DT",)), (3, 6, ("NN",))), ()]]
    assert found.hypotheses == {"s": [((0, 3, ("NN",)),), ((1, 3, ("VB",)),)]}


def test_a_tag_file_of_another_length_is_told_with_file_and_line(tmp_path: Path) -> None:
    tagger = Pretagged(write(tmp_path, "r.tag", "NN\n"), write(tmp_path, "h.tag", "NN\nNN\n"))
    message = f"{tmp_path / 'r.tag'}:2: has 1 lines, its texts have 2: every text needs its own. Nothing was scored"
    with pytest.raises(DataError, match=re.escape(message)):
        tagger.tag_lines(Lines([["a", "b"]], {"s": ["a", "b"]}))


def test_a_line_with_another_number_of_tags_is_told_with_file_and_line(tmp_path: Path) -> None:
    tagger = Pretagged(write(tmp_path, "r.tag", "NN\nNN NN\n"), write(tmp_path, "h.tag", "NN\nNN\n"))
    message = f"{tmp_path / 'r.tag'}:2: 2 tag(s) for 1 white-space token(s): expected one tag per token of 'b'"
    with pytest.raises(DataError, match=re.escape(message)):
        tagger.tag_lines(Lines([["a", "b"]], {"s": ["a", "b"]}))


def test_every_system_needs_its_own_tag_file(tmp_path: Path) -> None:
    tagger = Pretagged(write(tmp_path, "r.tag", "NN\n"), write(tmp_path, "h.tag", "NN\n"))
    message = "pretagged: hypothesis names 1 file(s), the data have 2 (a, b): give one tag file for each, in this order"
    with pytest.raises(SpecError, match=re.escape(message)):
        tagger.tag_lines(Lines([["x"]], {"a": ["x"], "b": ["x"]}))


def test_conllu_words_get_all_their_labels_and_the_offsets_of_the_text(tmp_path: Path) -> None:
    file = write(tmp_path, "a.conllu", GERMAN)
    text = "Im Haus, ja."
    found = Conllu(file, file).tag_lines(Lines([[text]], {"s": [text]})).references[0][0]
    labels = {text[start:end]: set(labels) for start, end, labels in found if not labels[0].startswith("ent:")}
    assert list(labels) == ["Im", "Haus", ",", "ja", "."]
    assert labels["Im"] >= {"upos:ADP", "upos:DET", "feats:Case=Dat", "feats:Gender=Neut", "dep:case", "dep:det"}
    assert labels["Im"] >= {"distance:2", "distance:1"}
    assert labels["Haus"] >= {"upos:NOUN", "head:1", "head:2"}
    assert labels[","] == {"upos:PUNCT", "xpos:$,", "dep:punct"}
    assert [(start, end, given) for start, end, given in found if given == ("ent:LOC",)] == [(3, 7, ("ent:LOC",))]


def test_a_line_takes_as_many_sentences_as_it_is_long(tmp_path: Path) -> None:
    one = f"{row('1', 'Go', '_', 'VERB')}\n\n{row('1', 'Stay', '_', 'VERB')}\n\n{row('1', 'Go', '_', 'VERB')}\n"
    file = write(tmp_path, "a.conllu", one)
    texts = ["Go  Stay", "", "Go"]
    found = Conllu(file, file).tag_lines(Lines([texts], {"s": texts})).references[0]
    assert [[(start, end) for start, end, _ in tags] for tags in found] == [[(0, 2), (4, 8)], [], [(0, 2)]]


@pytest.mark.parametrize(
    ("conllu", "texts", "message"),
    [
        (row("1", "Go"), ["Stay"], ":1: the sentence 'Go' does not match the continuation of text 1: 'Stay'"),
        (row("1", "Go"), ["Go now"], ": ends before text 1: 'now' has no sentence"),
        (f"{row('1', 'Go')}\n\n{row('1', 'Stay')}", ["Go"], ":2: has 2 sentences, its texts have 1"),
        (f"# text = Go!\n{row('1', 'Go')}", ["Go"], ":1: # text is 'Go!', its words make 'Go'"),
        ("1\tGo", ["Go"], ":1: expected 10 columns of CoNLL-U, found 2"),
        (row("one", "Go"), ["Go"], ":1: cannot read the id 'one': expected 3, 3-4 or 3.1"),
    ],
)
def test_what_is_wrong_in_a_conllu_file_is_told_with_file_and_line(
    conllu: str, texts: list[str], message: str, tmp_path: Path
) -> None:
    file = write(tmp_path, "a.conllu", conllu + "\n")
    with pytest.raises(DataError, match=re.escape(f"{file}{message}")):
        Conllu(file, file).tag_lines(Lines([texts], {"s": texts}))
