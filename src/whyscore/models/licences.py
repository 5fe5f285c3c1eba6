"""Under which licence a model's weights may be used.

1. The front matter of the model's card (`README.md`) says so.
2. Else a table of known weights, looked up by the model's own name.
3. Else the licence is `unknown`.
"""

import re
import warnings
from functools import lru_cache
from pathlib import Path

_FREE, _RESEARCH = "apache-2.0", "cc-by-nc-sa-4.0"

_KNOWN: dict[str, tuple[str, str]] = {
    "wmt22-comet-da": ("Unbabel", _FREE),
    "wmt20-comet-qe-da": ("Unbabel", _FREE),
    "wmt22-cometkiwi-da": ("Unbabel", _RESEARCH),
    "wmt23-cometkiwi-da-xl": ("Unbabel", _RESEARCH),
    "wmt23-cometkiwi-da-xxl": ("Unbabel", _RESEARCH),
    "unite-mup": ("Unbabel", _FREE),
    "wmt22-unite-da": ("Unbabel", _RESEARCH),
    "unite-xl": ("Unbabel", _RESEARCH),
    "unite-xxl": ("Unbabel", _RESEARCH),
    "xcomet-xl": ("Unbabel", _RESEARCH),
    "xcomet-xxl": ("Unbabel", _RESEARCH),
    "bart-large-cnn": ("facebook", "mit"),
}

_FRONT = re.compile(r"\A---\s*\n(.*?)\n---\s*(?:\n|\Z)", re.DOTALL)
_NON_COMMERCIAL = re.compile(r"(?:^|[-_ ])nc(?:[-_ ]|$)|non-?commercial", re.IGNORECASE)


class LicenceWarning(UserWarning):
    """The weights of a model may not be used for everything."""


def licence_of(name: str, folder: Path) -> str:
    """Return the licence of a model's weights, as its card or the table names it, or `unknown`."""
    card = folder / "README.md"
    state = (str(card), card.stat().st_mtime_ns) if card.is_file() else None
    return (_stated(*state) if state else None) or _entry(_short(name))[1] or "unknown"


def owner_of(short: str) -> str | None:
    """Return who publishes a model of this short name on the hub, as far as known."""
    return _entry(short)[0]


def warn_of(name: str, licence: str) -> None:
    """Warn where a licence forbids commercial use."""
    if _NON_COMMERCIAL.search(licence):
        told = f"the weights of {name} are licensed {licence}: they are for non-commercial use only"
        warnings.warn(told, LicenceWarning, stacklevel=2)


def _short(name: str) -> str:
    return Path(name.partition("@")[0]).name


def _entry(short: str) -> tuple[str | None, str | None]:
    return _KNOWN.get(short.casefold(), (None, None))


@lru_cache(maxsize=64)
def _stated(card: str, _: int) -> str | None:
    """Return what the front matter of a card says; a card without one says nothing."""
    found = _FRONT.match(Path(card).read_text("utf-8", errors="replace"))
    stated = _value(found[1], "license") if found else None
    # Cards of the hub write `other` and put the name of the licence beside it.
    named = _value(found[1], "license_name") if found and stated == "other" else None
    return named or stated


def _value(front: str, key: str) -> str | None:
    r"""Return the text, or the texts of the list, that a key of the front matter has.

    >>> _value("license:\n- mit\n- gpl\ntags: []", "license")
    'mit, gpl'
    """
    found = re.search(rf"^{key}:[ \t]*(\S.*)?((?:\n[ \t]*-.*)*)", front, re.MULTILINE)
    if not found:
        return None
    parts = [found[1] or "", *(line.strip().removeprefix("-") for line in found[2].splitlines())]
    return ", ".join(part.strip().strip("'\"").lower() for part in parts if part.strip()) or None
