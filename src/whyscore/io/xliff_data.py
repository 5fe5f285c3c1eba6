"""An XLIFF file as data of every verb: targets are the hypotheses; references are alternatives that were asked for.

1. The units come from `xliff`; those that are not to be translated, or have no target yet, are left out and counted.
2. A unit without a source, and a file without any target, are errors that name the unit.
3. Languages are those that were asked for, else the file's; where they contradict each other, that is told.
"""

from dataclasses import replace
from pathlib import Path

from whyscore.errors import DataError
from whyscore.io.files import STDIN
from whyscore.io.naming import system_names
from whyscore.io.unpacking import Limits
from whyscore.io.xliff import Inline, Xliff, read_xliff
from whyscore.types import Dataset, Finding

_UTF8 = ("utf-8", "utf8", "utf-8-sig")


def xliff_of(
    path: str | Path,
    languages: tuple[str, str] | None,
    encoding: str,
    limits: Limits | None,
    *,
    inline: Inline = "drop",
    alt_trans: bool = False,
) -> Dataset:
    """Return the translated units of a file; the system is named after the file."""
    if str(path) == STDIN:
        raise DataError("XLIFF is read from a file, not from the standard input: save it first")
    if encoding.lower() not in _UTF8:
        raise DataError(
            f"XLIFF is read as UTF-8, not as {encoding}: convert the file, or drop --encoding", file=str(path)
        )
    xliff = read_xliff(path, inline=inline, limits=limits)
    data = xliff.dataset(system_names([path])[0], alt_trans=alt_trans)
    if not data.entries:
        raise DataError(_nothing(xliff), file=xliff.file)
    contradicted = _contradiction(xliff, languages)
    return replace(data, languages=languages or data.languages, findings=(*data.findings, *contradicted))


def _nothing(xliff: Xliff) -> str:
    if not xliff.units:
        return "has no units: expected trans-unit (XLIFF 1.2) or unit/segment (2.x) elements"
    first = xliff.units[0].id
    return (
        f"none of its {len(xliff.units)} units has a target to be scored; the first is {first!r}: translate them first"
    )


def _contradiction(xliff: Xliff, asked: tuple[str, str] | None) -> tuple[Finding, ...]:
    """Return the finding about languages that are not the file's; de and de-AT are the same."""
    own = xliff.languages
    if own is None or asked is None or all(_main(one) == _main(other) for one, other in zip(own, asked, strict=True)):
        return ()
    return (Finding(f"the file says {' to '.join(own)}, and {' to '.join(asked)} was asked for", xliff.file),)


def _main(code: str) -> str:
    return code.lower().replace("_", "-").partition("-")[0]
