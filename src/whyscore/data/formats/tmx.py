"""TMX 1.4 (translation memories): the variants of a language pair as segments.

1. The file is parsed by expat, which resolves nothing from outside. A file that declares entities is refused, as is
   nesting deeper than 256; a bare DOCTYPE, which TMX has, is allowed and never fetched.
2. A unit is a `tu`, its variants are the `seg` of each `tuv`. The source is the first variant in the source language;
   the first in the target language is the hypothesis, further ones are its references.
3. The pair is the one asked for; else the header's `srclang` and the only other language there is. `de` asks for any
   German, `de-AT` for that alone.
4. Inline codes (`bpt ept it ph ut sub`) carry no text and are left out with all that is inside, or stand for one
   private-use character (`inline="placeholder"`); `hi` is left out, what is inside is text.
5. Units without both languages are left out and counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from whyscore.data.files import STDIN, Limits, read_bytes
from whyscore.data.formats.xliff import PLACEHOLDER, Events, Inline
from whyscore.data.naming import number_repeats, system_names
from whyscore.errors import DataError
from whyscore.types import Dataset, Entry, Finding, Origin, Segment

_CODES = frozenset({"bpt", "ept", "it", "ph", "ut", "sub"})
_ANY = "*all*"


class Variant(NamedTuple):
    """One text of a unit and its language."""

    language: str
    text: str


@dataclass(slots=True)
class Unit:
    """A unit of the memory."""

    id: str
    line: int
    variants: list[Variant] = field(default_factory=list)

    def texts(self, language: str) -> list[str]:
        """Return the texts in a language that hold more than blanks."""
        return [variant.text for variant in self.variants if _fits(variant.language, language) and variant.text.strip()]


@dataclass(frozen=True, eq=False)
class Tmx:
    """A file: its source language and its units."""

    file: str
    source: str | None
    units: tuple[Unit, ...]

    def dataset(self, system: str, requested: tuple[str, str] | None = None) -> Dataset:
        """Return the units that have both languages; the others are counted."""
        source, target = requested or self._pair()
        units = [unit for unit in self.units if unit.texts(source) and unit.texts(target)]
        if not units:
            there = ", ".join(self._languages()) or "none"
            raise DataError(f"no unit has both {source} and {target}; languages there: {there}", file=self.file)
        entries = []
        for unit in units:
            hypothesis, *references = unit.texts(target)
            entries.append(Entry(unit.id, system, Segment(hypothesis, unit.texts(source)[0], tuple(references))))
        left = len(self.units) - len(units)
        notes = (
            [Finding("units-left-out", f"units without {source} and {target} were left out: {left}", self.file)]
            if left
            else []
        )
        origin = Origin.table(self.file, [system], [unit.line for unit in units])
        return Dataset(Path(self.file).name, tuple(entries), (source, target), tuple(notes), origin)

    def _languages(self) -> list[str]:
        return list(dict.fromkeys(variant.language for unit in self.units for variant in unit.variants))

    def _pair(self) -> tuple[str, str]:
        languages = self._languages()
        source = self.source if self.source not in (None, _ANY) else None
        others = [language for language in languages if source is None or not _fits(language, source)]
        if source is None or len(others) != 1:
            there = ", ".join(languages) or "none"
            raise DataError(f"name the language pair with -l: the file contains {there}", file=self.file)
        return source, others[0]


def read_tmx(
    path: str | Path, *, inline: Inline = "drop", encoding: str = "utf-8", limits: Limits | None = None
) -> Tmx:
    """Return the units of a TMX file."""
    data = read_bytes(path, limits)
    try:
        text = data.decode("utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding)
    except UnicodeDecodeError as error:
        message = f"byte {error.start} is not {encoding.upper()}: save it as UTF-8, or pass e.g. --encoding utf-16"
        raise DataError(message, file=str(path)) from error
    return _Reader(str(path), text.removeprefix("\ufeff").encode(), placeholder=inline == "placeholder").read()


def tmx_of(
    path: str | Path,
    languages: tuple[str, str] | None,
    *,
    inline: Inline = "drop",
    encoding: str = "utf-8",
    limits: Limits | None = None,
) -> Dataset:
    """Return the segments of a language pair in a file; the system is named after the file."""
    if str(path) == STDIN:
        raise DataError("TMX is read from a file, not from the standard input: save it first")
    tmx = read_tmx(path, inline=inline, encoding=encoding, limits=limits)
    return tmx.dataset(system_names([path])[0], languages)


class _Reader(Events):
    """Turns the events of the parser into units."""

    def __init__(self, file: str, data: bytes, *, placeholder: bool) -> None:
        super().__init__(file, data)
        self._placeholder = placeholder
        self._source: str | None = None
        self._units: list[Unit] = []
        self._language = ""
        self._pieces: list[str] | None = None
        self._skipped = 0

    def read(self) -> Tmx:
        self._parse()
        return Tmx(self._file, self._source, _renamed(self._units))

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        if not self._path and name != "tmx":
            self._refuse(f"not TMX: expected a root element tmx, found {name}")
        self._enter(name)
        if self._pieces is not None:
            self._inline(name)
        elif name == "header":
            self._source = attributes.get("srclang")
        elif name == "tu":
            self._units.append(Unit(attributes.get("tuid", str(len(self._units))), self._parser.CurrentLineNumber))
        elif name == "tuv":
            self._language = attributes.get("xml:lang") or attributes.get("lang") or ""
            if not self._language:
                self._refuse("a variant (tuv) does not name its language: expected xml:lang")
        elif name == "seg" and self._units:
            self._pieces = []

    def _inline(self, name: str) -> None:
        if self._skipped or name in _CODES:
            if not self._skipped and self._placeholder and self._pieces is not None:
                self._pieces.append(PLACEHOLDER)
            self._skipped += 1

    def _end(self, tag: str) -> None:
        del tag
        name = self._path.pop()
        if self._skipped:
            self._skipped -= 1
        elif name == "seg" and self._pieces is not None:
            self._units[-1].variants.append(Variant(self._language, "".join(self._pieces)))
            self._pieces = None

    def _characters(self, data: str) -> None:
        if self._pieces is not None and not self._skipped:
            self._pieces.append(data)


def _renamed(units: Sequence[Unit]) -> tuple[Unit, ...]:
    for unit, name in zip(units, number_repeats([unit.id for unit in units]), strict=True):
        unit.id = name
    return tuple(units)


def _fits(language: str, requested: str) -> bool:
    """Return whether a text in a language is what was asked for.

    >>> _fits("de-AT", "de"), _fits("de_AT", "de-at"), _fits("de", "de-AT")
    (True, True, False)
    """
    code_, expected = (code.lower().replace("_", "-") for code in (language, requested))
    return code_ == expected or code_.startswith(f"{expected}-")
