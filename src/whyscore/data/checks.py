"""What looks wrong in a data set, before any scoring: findings that need no model.

1. Single texts: invisible characters, text that is not normalised, stray markup, empty texts. Texts are joined by
   newlines in blocks, and each block is searched as a whole: for single characters with `in`, for blanks and control
   characters in its UTF-8 bytes with numpy. Most blocks are clean; in the others texts are searched one by one.
2. Hypotheses against the texts beside them: copies of the source, copies of a reference.
3. Systems against each other, and the size of the test set. Habits of typography are in `style`.

There is one finding per check and group of texts (the hypotheses of a system, the sources, the references), with the
count and the first lines. Where the data set knows its files, findings point into them; otherwise they name segments.
Nothing is changed: these are findings, not repairs.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import ClassVar, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from whyscore.data.naming import few, with_noun
from whyscore.data.style import systematic_differences
from whyscore.errors import DataError
from whyscore.garbage import gc_paused
from whyscore.text.splitters import Auto
from whyscore.types import HYPOTHESIS, SOURCE, Dataset, Entry, Finding, Place, Segment, Side
from whyscore.types.result import Record, Result, Table

FEW = "few-segments"
UNEVEN = "uneven-systems"
_NOT_NFC = "not-nfc"
_BLOCK = 2_048
_NEWLINE, _BLANK, _DELETE = 0x0A, 0x20, 0x7F
_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
_HIGH_CONTROLS = re.compile(rb"\xc2[\x80-\x9f]")  # U+0080 to U+009F in UTF-8
_FIRST_COMBINING = 0xCC  # the first byte of U+0300 in UTF-8; texts without it and those above are in NFC
_TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]*)(?:\s[^<>]*?)?(/?)>")
_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,31}|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});")
_MUCH_MARKUP = 0.1
_VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "wbr"})


class _Block:
    """Some texts, and all of them in one."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self.joined = "\n".join(texts)
        self.is_ascii = self.joined.isascii()

    @cached_property
    def data(self) -> bytes:
        """UTF-8, with a newline before and after every text."""
        return f"\n{self.joined}\n".encode("utf-8", "surrogatepass")

    @cached_property
    def codes(self) -> NDArray[np.uint8]:
        """The bytes as numbers."""
        return np.frombuffer(self.data, dtype=np.uint8)

    @cached_property
    def newline(self) -> NDArray[np.bool_]:
        """Where the newlines are."""
        return np.equal(self.codes, _NEWLINE, dtype=np.bool_)

    @cached_property
    def blank(self) -> NDArray[np.bool_]:
        """Where the blanks are."""
        return np.equal(self.codes, _BLANK, dtype=np.bool_)

    @cached_property
    def has_outer_blank(self) -> bool:
        """Whether a text starts or ends with a blank."""
        newline, blank = self.newline, self.blank
        return bool((newline[:-1] & blank[1:]).any() or (blank[:-1] & newline[1:]).any())


@dataclass(frozen=True, slots=True)
class Check:
    """One thing to look for: `likely` in a block of texts, `inside` a single one."""

    code: str
    name: str
    likely: Callable[[_Block], bool]
    inside: Callable[[str], bool]
    characters: str = ""
    """Characters that are counted."""
    least_share: float = 0.0
    """The share of texts from which on it is worth telling."""


@dataclass(frozen=True, slots=True)
class Hits:
    """Where a check found something, and how many characters it counted."""

    check: Check
    rows: list[int]
    count: int


def search(texts: Sequence[str]) -> Iterator[Hits]:
    """Yield what each check finds among the texts, where that is enough to tell."""
    rows: dict[str, list[int]] = {check.code: [] for check in CHECKS}
    counts = dict.fromkeys(rows, 0)
    for start in range(0, len(texts), _BLOCK):
        part = texts[start : start + _BLOCK]
        block = _Block(part)
        for check in CHECKS:
            if check.likely(block):
                rows[check.code].extend([k for k, text in enumerate(part, start=start) if check.inside(text)])
                counts[check.code] += sum(map(block.joined.count, check.characters))
    for check in CHECKS:
        matches = rows[check.code]
        if matches and len(matches) >= check.least_share * len(texts):
            yield Hits(check, matches, counts[check.code])


def count_composed(texts: Sequence[str], but: Sequence[int]) -> int:
    """Return how many texts, but for some, hold composed characters (they are not in NFD)."""
    others = bytearray(b"\x01") * len(texts)
    for row in but:
        others[row] = 0
    return sum(not unicodedata.is_normalized("NFD", text) for text in compress(texts, others))


def _any_empty(block: _Block) -> bool:
    return block.has_outer_blank or bool((block.newline[:-1] & block.newline[1:]).any())


def _any_control(block: _Block) -> bool:
    low = (block.codes < _BLANK) & ~block.newline
    return bool(low.any() or (block.codes == _DELETE).any()) or (
        not block.is_ascii and _HIGH_CONTROLS.search(block.data) is not None
    )


def _any_decomposed(block: _Block) -> bool:
    if block.is_ascii or int(block.codes.max()) < _FIRST_COMBINING:
        return False
    return _not_nfc("\n".join([text for text in block.texts if not text.isascii()]))


def _any_loose_blank(block: _Block) -> bool:
    return block.has_outer_blank or bool((block.blank[:-1] & block.blank[1:]).any())


def _loose_blank(text: str) -> bool:
    return "  " in text or text[:1] == " " or text[-1:] == " "


def _not_nfc(text: str) -> bool:
    return not unicodedata.is_normalized("NFC", text)


def _has_entity(text: str) -> bool:
    return "&" in text and _ENTITY.search(text) is not None


def _has_unbalanced_tags(text: str) -> bool:
    """Return whether a text has tags that do not match.

    >>> _has_unbalanced_tags("<b>a</b>"), _has_unbalanced_tags("<b>a"), _has_unbalanced_tags("a < b > c")
    (False, True, False)
    """
    if "<" not in text:
        return False
    open_tags = []
    for closing, name, alone in _TAG.findall(text):
        if alone or name.lower() in _VOID:
            continue
        if not closing:
            open_tags.append(name)
        elif not open_tags or open_tags.pop() != name:
            return True
    return bool(open_tags)


def _invisible(code: str, name: str, characters: str) -> Check:
    def inside(text: str) -> bool:
        return any(character in text for character in characters)

    return Check(code, name, lambda block: not block.is_ascii and inside(block.joined), inside, characters)


CHECKS = (
    Check("empty-text", "empty text", _any_empty, lambda text: not text.strip(" ")),
    _invisible("no-break-space", "no-break space (U+00A0)", "\u00a0"),
    _invisible("soft-hyphen", "soft hyphen (U+00AD)", "\u00ad"),
    _invisible("zero-width", "zero-width character (U+200B-U+200D, U+2060, U+FEFF)", "\u200b\u200c\u200d\u2060\ufeff"),
    Check("control-character", "control character", _any_control, lambda text: _CONTROLS.search(text) is not None),
    Check(_NOT_NFC, "text that is not in NFC", _any_decomposed, _not_nfc),
    Check("extra-spaces", "leading, trailing or double space", _any_loose_blank, _loose_blank),
    Check(
        "html-entities",
        "HTML entities such as &quot;",
        lambda block: "&" in block.joined,
        _has_entity,
        least_share=_MUCH_MARKUP,
    ),
    Check(
        "unbalanced-tags",
        "unbalanced tags such as <b>",
        lambda block: "<" in block.joined,
        _has_unbalanced_tags,
        least_share=_MUCH_MARKUP,
    ),
)


T = TypeVar("T")
MUCH_COPIED = 0.05
MUCH_EQUAL = 0.2
FEW_SEGMENTS = 100
_FEWEST_WORDS = 3


@dataclass(frozen=True, slots=True)
class _Ids(Sequence[str]):
    """The ids of some entries, looked up only when asked for."""

    entries: Sequence[Entry]
    rows: Sequence[int]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> str:  # type: ignore[override]
        return self.entries[self.rows[row]].id


@dataclass(frozen=True, slots=True)
class _Group:
    """Texts of one kind: the hypotheses of a system, the sources, or one reference set."""

    name: str
    file: str | None
    where: str
    """Whether `places` are lines or segments."""
    places: Sequence[object]
    texts: Sequence[str]

    def finding(self, code: str, message: str, rows: Sequence[int]) -> Finding:
        """Return a message with the places it is about."""
        places = [self.places[row] for row in rows]
        line = places[0] if isinstance(places[0], int) else None
        return Finding(code, f"{message}: {self.where} {few(places)}", self.file, line)


class Findings(Result, list[Finding]):
    """Findings, with what they are about."""

    kind: ClassVar[str] = "findings"

    def __init__(self, findings: Iterable[Finding] = (), **about: object) -> None:
        super().__init__(findings)
        self.about = about

    def header(self) -> Record:
        return self.about

    def records(self) -> Iterator[Record]:
        return (finding.record() for finding in self)

    def tables(self, *, long: bool = False) -> list[Table]:
        del long
        table = Table.of(self.records())
        return [table if table.rows else Table(("kind", "code", "file", "line", "message"), ())]

    def document(self) -> object:
        return {**self.about, "findings": list(self.records())}


def findings(dataset: Dataset) -> Findings:
    """Return what was noticed while reading a data set, and what looks wrong in it."""
    result = [*dataset.findings]
    with gc_paused():
        systems = _by_system(dataset)
        for system, rows in systems.items():
            segments = _take(dataset.segments, rows)
            group = _group(dataset, rows, HYPOTHESIS, [segment.hypothesis for segment in segments], system)
            result.extend(_in_texts(group))
            result.extend(_find_copies(group, segments))
            result.extend(_find_leaks(group, segments))
        for group in _group_inputs(dataset, systems):
            result.extend(_in_texts(group))
        result.extend(_twins(dataset, systems))
        uneven = _uneven(dataset, systems)
        if uneven:
            counts = few([f"{system} {number}" for system, number in uneven["by_system"].items()])
            message = f"the systems have different segments ({counts})"
            if uneven["common"]:
                message += f": scores are comparable on the {uneven['common']} that all have"
            else:
                message += ", none of which all have: scores are not comparable"
            result.append(Finding(UNEVEN, message))
    result.extend(systematic_differences(dataset))
    # Within a system all ids differ, so one long system is enough.
    if max(map(len, systems.values()), default=0) < FEW_SEGMENTS and len(dataset.ids) < FEW_SEGMENTS:
        number = with_noun(len(dataset.ids), "segment")
        advice = f"{dataset.name} has {number}: significance tests need about {FEW_SEGMENTS} or more"
        result.append(Finding(FEW, advice))
    about = {"name": dataset.name, "segments": len(dataset.ids), "systems": list(dataset.systems)}
    return Findings(result, **about, **uneven)


def _by_system(dataset: Dataset) -> Mapping[str, Sequence[int]]:
    """Return the rows of each system's entries."""
    if len(dataset.systems) == 1:
        return {dataset.systems[0]: range(len(dataset.entries))}
    rows: dict[str, list[int]] = {system: [] for system in dataset.systems}
    for row, entry in enumerate(dataset.entries):
        rows[entry.system].append(row)
    return rows


def _group_inputs(dataset: Dataset, systems: Mapping[str, Sequence[int]]) -> Iterator[_Group]:
    """Yield the sources and the reference sets; where they are not written down for every system, once."""
    origin = dataset.origin
    rows: Sequence[int] = range(len(dataset.entries))
    if len(systems) > 1 and not (origin is not None and origin.repeats):
        first: dict[str, int] = {}
        for row, entry in enumerate(dataset.entries):
            first.setdefault(entry.id, row)
        rows = list(first.values())
    segments = _take(dataset.segments, rows)
    sources = [segment.source for segment in segments]
    texts = [source for source in sources if source is not None]
    if texts:
        yield _group(dataset, _where(rows, [source is not None for source in sources]), SOURCE, texts)
    sets = [segment.references for segment in segments]
    for number in range(max(map(len, sets), default=0)):
        # Where an empty reference was left out of a segment, those after it have moved to other files' numbers.
        least = number + 1 if origin is None or origin.repeats else len(origin.references)
        texts = [references[number] for references in sets if len(references) >= least]
        if texts:
            present = _where(rows, [len(references) >= least for references in sets])
            yield _group(dataset, present, Place(Side.REFERENCE, number), texts)


def _where(rows: Sequence[int], mask: Sequence[bool]) -> Sequence[int]:
    return rows if all(mask) else list(compress(rows, mask))


def _take(items: Sequence[T], rows: Sequence[int]) -> Sequence[T]:
    """Return some of the items, in order; most often it is all of them."""
    return items if len(rows) == len(items) else [items[row] for row in rows]


def _group(dataset: Dataset, rows: Sequence[int], place: Place, texts: Sequence[str], system: str = "") -> _Group:
    name = f"hypotheses of {system}" if place is HYPOTHESIS else "sources" if place is SOURCE else f"texts of {place}"
    origin = dataset.origin
    if origin is None:
        return _Group(name, None, "segments", _Ids(dataset.entries, rows), texts)
    return _Group(name, origin.file(place, system), "lines", _take(origin.lines, rows), texts)


def _in_texts(group: _Group) -> Iterator[Finding]:
    """Yield the findings that need one text at a time."""
    for hits in search(group.texts):
        yield group.finding(hits.check.code, _describe(hits, group), hits.rows)


def _describe(hits: Hits, group: _Group) -> str:
    message = f"{hits.check.name} in {_share(hits.rows, group)}"
    if hits.count > len(hits.rows):
        message += f", {hits.count} in all"
    if hits.check.code == _NOT_NFC:
        others = count_composed(group.texts, hits.rows)
        message += f", while {others} others are composed (mixed NFC and NFD)" if others else ""
        message += "; metrics take them for different characters"
    return message


def _share(rows: Sequence[int], group: _Group) -> str:
    return f"{len(rows)} of {len(group.texts)} {group.name}"


def _find_copies(group: _Group, segments: Sequence[Segment]) -> Iterator[Finding]:
    """Yield the finding about hypotheses that are their sources."""
    sources = [segment.source or "" for segment in segments]
    copied = [
        row
        for row, (hypothesis, source) in enumerate(zip(group.texts, sources, strict=True))
        # The first letter tells most hypotheses from their sources, at a fraction of the price.
        if ((letter := hypothesis[:1].casefold()) == (start := source[:1].casefold()) or letter == " " or start == " ")
        and _copies(hypothesis, source)
    ]
    if copied:
        share = len(copied) / len(segments)
        much = f", more than {MUCH_COPIED:.0%}: was this translated at all?" if share > MUCH_COPIED else ""
        yield group.finding(
            "source-copied", f"the source is copied in {_share(copied, group)} ({share:.1%}{much})", copied
        )


def _find_leaks(group: _Group, segments: Sequence[Segment]) -> Iterator[Finding]:
    """Yield the findings about hypotheses that are, too often, a reference."""
    equal = Counter(
        segment.references.index(segment.hypothesis) for segment in segments if segment.hypothesis in segment.references
    )
    for number, count in sorted(equal.items()):
        share = count / len(segments)
        if share > MUCH_EQUAL:
            equals = f"{count} of {len(segments)} {group.name} equal reference {number + 1} ({share:.1%})"
            yield Finding("reference-copied", f"{equals}: a leak, or the wrong file?", group.file)


def _copies(hypothesis: str, source: str) -> bool:
    """Return whether a hypothesis is its source, but for case and blanks, and long enough to be no name."""
    first, start = hypothesis.split(None, 1)[:1], source.split(None, 1)[:1]
    if not first or not start or first[0].casefold() != start[0].casefold():
        return False
    folded = source.casefold().split()
    return hypothesis.casefold().split() == folded and len(Auto().split(source)) >= _FEWEST_WORDS


class _Uneven(TypedDict, total=False):
    by_system: dict[str, int]
    common: int


def _uneven(dataset: Dataset, systems: Mapping[str, Sequence[int]]) -> _Uneven:
    """Return how many segments each system has, and how many all of them; nothing where they have the same ones."""
    ids = [{dataset.entries[row].id for row in rows} for rows in systems.values()]
    if all(segment_ids == ids[0] for segment_ids in ids[1:]):
        return {}
    sizes = {system: len(segment_ids) for system, segment_ids in zip(systems, ids, strict=True)}
    return {"by_system": sizes, "common": len(set.intersection(*ids))}


def _twins(dataset: Dataset, systems: Mapping[str, Sequence[int]]) -> Iterator[Finding]:
    """Yield the pairs of systems whose hypotheses are all the same."""
    if len(systems) == 1:
        return
    systems_by_content: dict[int, str] = {}
    for system, rows in systems.items():
        content = hash(frozenset((dataset.entries[row].id, dataset.entries[row].segment.hypothesis) for row in rows))
        if content in systems_by_content:
            number = with_noun(len(rows), "segment")
            pair = f"systems {systems_by_content[content]} and {system}"
            yield Finding("same-hypotheses", f"{pair} have the same hypotheses in all {number}: the same file twice?")
        systems_by_content.setdefault(content, system)


def validate(dataset: Dataset, *, strict: bool = False) -> Findings:
    """Return what looks wrong in a data set; raise `DataError` where it cannot be used.

    Args:
        dataset: what `read` or `from_texts` returned.
        strict: refuse it for any finding.
    """
    result = findings(dataset)
    refuse_findings(result, strict=strict)
    return result


def refuse_findings(findings: Sequence[Finding], *, strict: bool) -> None:
    """Raise for errors, or with `strict` for any finding."""
    errors = [finding for finding in findings if finding.error or strict]
    if errors:
        raise DataError(f"{errors[0]}" + (f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""))
