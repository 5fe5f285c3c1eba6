"""What looks wrong in single texts, found fast: many texts are searched at once, and one by one only where it pays.

1. Texts are joined by newlines in blocks, and each block is searched as a whole: for single characters with `in`, for
   blanks and control characters in its UTF-8 bytes with numpy. Most blocks are clean.
2. In the other blocks the texts that are meant are looked for one by one.

Nothing is changed: these are findings, not repairs.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress

import numpy as np
from numpy.typing import NDArray

NOT_NFC = "text that is not in NFC"
_BLOCK = 2_048
_NEWLINE, _BLANK, _DELETE = 0x0A, 0x20, 0x7F
_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
_HIGH_CONTROLS = re.compile(rb"\xc2[\x80-\x9f]")  # U+0080 to U+009F in UTF-8
_FIRST_COMBINING = 0xCC  # the first byte of U+0300 in UTF-8; texts without it and those above are in NFC
_TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]*)(?:\s[^<>]*?)?(/?)>")
_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,31}|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});")
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
    rows: dict[str, list[int]] = {check.name: [] for check in CHECKS}
    counts = dict.fromkeys(rows, 0)
    for start in range(0, len(texts), _BLOCK):
        part = texts[start : start + _BLOCK]
        block = _Block(part)
        for check in CHECKS:
            if check.likely(block):
                rows[check.name].extend([k for k, text in enumerate(part, start=start) if check.inside(text)])
                counts[check.name] += sum(map(block.joined.count, check.characters))
    for check in CHECKS:
        found = rows[check.name]
        if found and len(found) >= check.least_share * len(texts):
            yield Hits(check, found, counts[check.name])


def composed(texts: Sequence[str], but: Sequence[int]) -> int:
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


def _any_markup(block: _Block) -> bool:
    return "<" in block.joined or "&" in block.joined


def _markup(text: str) -> bool:
    """Return whether a text has entities, or tags that do not match.

    >>> _markup("<b>a</b>"), _markup("<b>a"), _markup("a &amp; b"), _markup("a < b > c")
    (False, True, True, False)
    """
    if "&" in text and _ENTITY.search(text):
        return True
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


def _unseen(name: str, characters: str) -> Check:
    def inside(text: str) -> bool:
        return any(character in text for character in characters)

    return Check(name, lambda block: not block.is_ascii and inside(block.joined), inside, characters)


CHECKS = (
    Check("empty text", _any_empty, lambda text: not text.strip(" ")),
    _unseen("no-break space (U+00A0)", "\u00a0"),
    _unseen("soft hyphen (U+00AD)", "\u00ad"),
    _unseen("zero-width character (U+200B-U+200D, U+2060, U+FEFF)", "\u200b\u200c\u200d\u2060\ufeff"),
    Check("control character", _any_control, lambda text: _CONTROLS.search(text) is not None),
    Check(NOT_NFC, _any_decomposed, _not_nfc),
    Check("outer or double blank", _any_loose_blank, _loose_blank),
    Check("unbalanced markup or entity", _any_markup, _markup, least_share=0.1),
)
