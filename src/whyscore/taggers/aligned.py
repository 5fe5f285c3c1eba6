"""Taggers that read tags from files beside the texts, line by line.

A tag file has one entry per line of the text file it belongs to: one file per set of references, one per system.

Lines of the files that taggers read: UTF-8, ended by newlines alone.

What a parsed word becomes: the labels it carries, the same for every parser and file.

| label | from |
|---|---|
| `upos:NOUN`, `xpos:NN` | part of speech, universal and of the language |
| `feats:Number=Sing` | each key of the morphology |
| `dep:nsubj` | relation to the head |
| `distance:4`, `head:4` | how many words away the head is; on the head, how far away a dependent is |
| `ent:PERSON` | named entities, over their whole span |

Roots and punctuation have no distance.

Tags from files: one line per text, one tag per white-space token.

    By  the end of this year
    IN  DT  NN  IN DT   NN

The tokens are then also what the metric counts, as tagged text is already tokenised.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

from whyscore.errors import DataError, SpecError
from whyscore.protocols import Tagged
from whyscore.registry import spec_of
from whyscore.settings import check_fields
from whyscore.text.splitters import white_space
from whyscore.types import Signature

Tags = tuple[Tagged, ...]
Files = str | tuple[str, ...]


class Lines(NamedTuple):
    """The texts of a data set as they stand in files: per set of references, and per system."""

    references: Sequence[Sequence[str]]
    hypotheses: Mapping[str, Sequence[str]]


class AlignedTags(NamedTuple):
    """The tags in the same order."""

    references: list[list[Tags]]
    hypotheses: dict[str, list[Tags]]


@runtime_checkable
class AlignedTagger(Protocol):
    """Reads tags from files that go line by line with the texts."""

    @property
    def gives_tokens(self) -> bool:
        """Whether the tagged tokens are also the tokens that a metric is to count."""

    def signature(self) -> Signature:
        """Return the text that names every choice behind the tags."""

    def tag_lines(self, lines: Lines) -> AlignedTags:
        """Return the tags of every line of every file."""


@dataclass(frozen=True, slots=True)
class FileTagger:
    """A tagger that reads a file of tags beside each file of texts; how one file is read is up to the kind of file."""

    reference: Files
    hypothesis: Files

    name: ClassVar[str]

    def __post_init__(self) -> None:
        check_fields(self)

    def signature(self) -> Signature:
        files = [file for paths in (self.reference, self.hypothesis) for file in _as_tuple(paths)]
        return Signature(spec_of(self), tuple((Path(file).name, digest_of(file)) for file in files))

    def tag_lines(self, lines: Lines) -> AlignedTags:
        references = _files_for(self.name, "reference", self.reference, _reference_names(lines))
        hypotheses = _files_for(self.name, "hypothesis", self.hypothesis, list(lines.hypotheses))
        return AlignedTags(
            [self.read_tags(file, texts) for file, texts in zip(references, lines.references, strict=True)],
            {
                system: self.read_tags(file, texts)
                for file, (system, texts) in zip(hypotheses, lines.hypotheses.items(), strict=True)
            },
        )

    def read_tags(self, file: str, texts: Sequence[str]) -> list[Tags]:
        """Return the tags of a file, one entry per text."""
        raise NotImplementedError


def _as_tuple(files: Files) -> tuple[str, ...]:
    return (files,) if isinstance(files, str) else files


def _files_for(owner: str, side: str, paths: Files, names: Sequence[str]) -> tuple[str, ...]:
    """Return one tag file per file of texts, or say how many are missing."""
    files = _as_tuple(paths)
    if len(files) != len(names):
        raise SpecError(
            f"{owner}: {side} names {len(files)} file(s), the data have {len(names)} ({', '.join(names)}): "
            f"give one tag file for each, in this order, {side}=('a.tag', 'b.tag')"
        )
    return files


def check_length(file: str, count: int, texts: int, what: str = "lines") -> None:
    """Refuse a tag file of another length than its texts."""
    if count != texts:
        raise DataError(
            f"has {count} {what}, its texts have {texts}: every text needs its own. Nothing was scored",
            file=file,
            line=min(count, texts) + 1,
        )


def _reference_names(lines: Lines) -> list[str]:
    """Return what the sets of references are called in messages."""
    return [f"reference {number}" for number in range(1, len(lines.references) + 1)]


def lines_of(file: str) -> list[str]:
    """Return the lines of a file without their ends."""
    try:
        text = Path(file).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=file) from error
    except UnicodeDecodeError as error:
        raise DataError(f"is not UTF-8 at byte {error.start}; convert it", file=file) from error
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if lines[-1] == "" else lines


def digest_of(file: str) -> str:
    """Return a fingerprint of a file."""
    return hashlib.blake2b("\n".join(lines_of(file)).encode(), digest_size=8).hexdigest()


_UNSET = frozenset({"", "_"})


class Word(NamedTuple):
    """One word of a parse; `head` is the number of its head in the list of words, None for a root."""

    start: int
    end: int
    upos: str = ""
    xpos: str = ""
    feats: tuple[str, ...] = ()
    relation: str = ""
    head: int | None = None


def tag_words(words: Sequence[Word]) -> list[Tagged]:
    """Return the words of one sentence with their labels; words that share a span are one.

    >>> tag_words([Word(0, 4, "NOUN"), Word(5, 8, "VERB")])[0].features
    ('upos:NOUN',)
    """
    reached: dict[int, list[str]] = {}
    labels = []
    for number, word in enumerate(words):
        word_labels = [f"{kind}:{value}" for kind, value in _plain(word) if value not in _UNSET]
        word_labels += [f"feats:{pair}" for pair in word.feats]
        if word.head is not None and word.upos != "PUNCT":
            away = abs(word.head - number)
            word_labels.append(f"distance:{away}")
            reached.setdefault(word.head, []).append(f"head:{away}")
        labels.append(word_labels)
    by_span: dict[tuple[int, int], dict[str, None]] = {}
    for number, (word, word_labels) in enumerate(zip(words, labels, strict=True)):
        by_span.setdefault((word.start, word.end), {}).update(dict.fromkeys([*word_labels, *reached.get(number, ())]))
    return [Tagged(start, end, tuple(features)) for (start, end), features in by_span.items()]


def entities(labels: Iterable[tuple[int, int, str]]) -> list[Tagged]:
    """Return entities from one BIO or BIOES label per word (start, end, label).

    >>> entities([(0, 3, "B-GPE"), (4, 8, "E-GPE"), (9, 11, "O")])
    [Tagged(start=0, end=8, features=('ent:GPE',))]
    """
    tagged: list[Tagged] = []
    open_kind: str | None = None
    for start, end, label in labels:
        place, _, kind = label.partition("-")
        if not kind:
            open_kind = None
        elif place in ("I", "E") and open_kind == kind:
            tagged[-1] = tagged[-1]._replace(end=end)
        else:
            tagged.append(Tagged(start, end, (f"ent:{kind}",)))
            open_kind = kind
        if place in ("E", "S", "L", "U"):
            open_kind = None
    return tagged


def _plain(word: Word) -> tuple[tuple[str, str], ...]:
    return (("upos", word.upos), ("xpos", word.xpos), ("dep", word.relation))


@dataclass(frozen=True, slots=True)
class Pretagged(FileTagger):
    """Reads tags from files that go line by line and token by token with the texts.

    Args:
        reference: the tag file of the references, or one per set of references.
        hypothesis: the tag file of the hypotheses, or one per system.
    """

    gives_tokens: ClassVar[bool] = True
    name: ClassVar[str] = "pretagged"

    def read_tags(self, file: str, texts: Sequence[str]) -> list[Tags]:
        lines = lines_of(file)
        check_length(file, len(lines), len(texts))
        return [
            _line(text, line.split(), file, number)
            for number, (text, line) in enumerate(zip(texts, lines, strict=True), start=1)
        ]


def _line(text: str, tags: list[str], file: str, number: int) -> Tags:
    spans = white_space(text).spans
    if len(spans) != len(tags):
        raise DataError(
            f"{len(tags)} tag(s) for {len(spans)} white-space token(s): expected one tag per token of {text[:60]!r}",
            file=file,
            line=number,
        )
    return tuple(Tagged(start, end, (tag,)) for (start, end), tag in zip(spans, tags, strict=True))
