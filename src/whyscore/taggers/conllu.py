"""Tags from CoNLL-U files: part of speech, morphology, relations, and entities from the last column.

1. Sentences are blocks between blank lines. A line of text takes as many of them as it is long.
2. The words are put back together by `SpaceAfter=No`; where a block has a `# text`, it must say the same.
3. A word written as several (ids like 3-4) is one span with the labels of all of them; empty nodes (8.1) are left out.
4. `NER=B-PER` (or `ner=`, as stanza writes it) in the last column makes entities.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from whyscore.errors import DataError
from whyscore.protocols import Tagged
from whyscore.taggers.aligned import FileTagger, Tags, Word, check_length, entities, lines_of, tag_words

_COLUMNS = 10
_DIGITS = 9  # no sentence has a billion words


@dataclass(frozen=True, slots=True)
class Conllu(FileTagger):
    """Reads tags from CoNLL-U files whose sentences follow the texts.

    Args:
        reference: the file of the references, or one per set of references.
        hypothesis: the file of the hypotheses, or one per system.
    """

    gives_tokens: ClassVar[bool] = False
    name: ClassVar[str] = "conllu"

    def read_tags(self, file: str, texts: Sequence[str]) -> list[Tags]:
        blocks = list(_blocks(file))
        place = 0
        result: list[Tags] = []
        for number, text in enumerate(texts, start=1):
            tags, place = _line(text, blocks, place, file, number)
            result.append(tags)
        check_length(file, len(blocks), place, "sentences")
        return result


class _Row(NamedTuple):
    """One line of a block."""

    id: str
    cells: list[str]
    number: int

    @property
    def misc(self) -> dict[str, str]:
        pairs = [item.partition("=") for item in self.cells[9].split("|")]
        return {key.upper(): value for key, _, value in pairs}


class _Block(NamedTuple):
    """One sentence: its text as rebuilt, the spans of its written words, and its rows."""

    text: str
    spans: dict[int, tuple[int, int]]
    rows: list[_Row]
    number: int


def _line(text: str, blocks: Sequence[_Block], place: int, file: str, number: int) -> tuple[Tags, int]:
    """Return the tags of one text and how many blocks are used up."""
    tags: list[Tagged] = []
    position = 0
    while text[position:].strip():
        position += len(text[position:]) - len(text[position:].lstrip())
        if place == len(blocks):
            raise DataError(f"ends before text {number}: {text[position : position + 60]!r} has no sentence", file=file)
        block = blocks[place]
        if not text.startswith(block.text, position):
            raise DataError(
                f"the sentence {block.text[:60]!r} does not match the continuation of text {number}: "
                f"{text[position : position + 60]!r}",
                file=file,
                line=block.number,
            )
        tags += [Tagged(start + position, end + position, labels) for start, end, labels in _block_tags(block)]
        position += len(block.text)
        place += 1
    return tuple(tags), place


def _block_tags(block: _Block) -> Tags:
    words = [row for row in block.rows if row.id.isdecimal()]
    numbers = {row.id: k for k, row in enumerate(words)}
    parsed = [_word(row, block, numbers) for row in words]
    named = [(word.start, word.end, row.misc.get("NER", "O")) for word, row in zip(parsed, words, strict=True)]
    return (*tag_words(parsed), *entities(named))


def _word(row: _Row, block: _Block, numbers: dict[str, int]) -> Word:
    start, end = block.spans[int(row.id)]
    _, _, _, upos, xpos, feats, head, relation, *_ = row.cells
    pairs = () if feats == "_" else tuple(feats.split("|"))
    return Word(start, end, upos, xpos, pairs, relation, numbers.get(head))


def _blocks(file: str) -> Iterator[_Block]:
    rows: list[_Row] = []
    stated: str | None = None
    first = 1
    for number, line in enumerate([*lines_of(file), ""], start=1):
        if not line.strip():
            if rows:
                yield _rebuild(rows, stated, file, first)
            rows, stated, first = [], None, number + 1
        elif line.startswith("#"):
            key, _, value = line[1:].partition("=")
            stated = value.strip() if key.strip() == "text" else stated
        else:
            rows.append(_row(line, file, number))


def _row(line: str, file: str, number: int) -> _Row:
    cells = line.split("\t")
    if len(cells) != _COLUMNS:
        raise DataError(f"expected {_COLUMNS} columns of CoNLL-U, found {len(cells)}", file=file, line=number)
    return _Row(cells[0], cells, number)


def _is_number(digits: str) -> bool:
    return digits.isdecimal() and len(digits) <= _DIGITS


def _rebuild(rows: list[_Row], stated: str | None, file: str, first: int) -> _Block:
    """Return the block with its text put together from the written words."""
    text = ""
    spans: dict[int, tuple[int, int]] = {}
    inside = 0
    for row in rows:
        if "." in row.id:
            continue
        low, _, high = row.id.partition("-")
        if not _is_number(low) or (high and not _is_number(high)) or int(high or low) - int(low) >= len(rows):
            raise DataError(f"cannot read the id {row.id[:60]!r}: expected 3, 3-4 or 3.1", file=file, line=row.number)
        if not high and int(low) <= inside:
            continue
        inside = int(high or low)
        spans |= dict.fromkeys(range(int(low), inside + 1), (len(text), len(text) + len(row.cells[1])))
        text += row.cells[1] + ("" if row.misc.get("SPACEAFTER") == "No" else " ")
    astray = next((row for row in rows if row.id.isdecimal() and int(row.id) not in spans), None)
    if astray is not None:
        raise DataError(f"the id {astray.id} follows a larger one: ids must increase", file=file, line=astray.number)
    text = text.rstrip(" ")
    if stated is not None and stated != text:
        raise DataError(f"# text is {stated[:60]!r}, its words make {text[:60]!r}", file=file, line=first)
    return _Block(text, spans, rows, first)
