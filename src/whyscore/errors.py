"""Everything whyscore raises on purpose.

A message says what is wrong, what came and what to do, on one line. Each class knows the exit code the command line
ends with, so that only `cli/` has to know about exits.
"""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import ClassVar

_LONGEST = 4_000
"""Characters of a message; of a longer one the middle is left out."""


class WhyscoreError(Exception):
    """Base of all errors raised on purpose."""

    exit_code: ClassVar[int] = 1

    def __str__(self) -> str:
        r"""Return the message on one line: what it quotes may hold line breaks, commands for a terminal, or megabytes.

        >>> str(WhyscoreError("no system named two\nlines"))
        'no system named two\\nlines'
        """
        text = super().__str__()
        if len(text) > _LONGEST:
            text = f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class UserError(WhyscoreError):
    """Something the caller can put right: an option, a name, a file."""

    exit_code: ClassVar[int] = 2


class SpecError(UserError, ValueError):
    """A spec string that cannot be read, or a parameter outside its range."""


class UnknownName(UserError, LookupError):
    """A name that no component has."""

    @classmethod
    def among(cls, kind: str, name: str, known: Iterable[str]) -> "UnknownName":
        """Return the error for `name`, with the nearest known name first.

        >>> str(UnknownName.among("metric", "chfr", ["bleu", "chrf"]))
        "no metric named 'chfr'. Did you mean 'chrf'? Known: bleu, chrf"
        """
        names = sorted(known)
        folded = {candidate.casefold(): candidate for candidate in reversed(names)}
        near = difflib.get_close_matches(name.casefold(), folded, n=1)
        hint = f" Did you mean {folded[near[0]]!r}?" if near else ""
        return cls(f"no {kind} named {name!r}.{hint} Known: {', '.join(names)}")


class MissingInput(UserError, ValueError):
    """A metric was asked about segments that lack what it reads."""


class DataError(UserError, ValueError):
    """Data that cannot be used, with the place where it was found.

    Lines and columns count from one, as editors do.
    """

    exit_code: ClassVar[int] = 3

    def __init__(
        self, message: str, *, file: str | None = None, line: int | None = None, column: int | None = None
    ) -> None:
        self.message, self.file, self.line, self.column = message, file, line, column
        place = ":".join(str(part) for part in (file, line, column) if part is not None)
        super().__init__(f"{place}: {message}" if place else message)


class MissingExtra(UserError, ImportError):
    """An extra package, a model, its licence or the network is missing; the message ends with the cure."""

    exit_code: ClassVar[int] = 4

    @classmethod
    def of(cls, what: str, extra: str) -> "MissingExtra":
        """Return the error that names the extra to install.

        >>> str(MissingExtra.of("comet", "neural"))
        "comet needs extra packages: pip install 'whyscore[neural]'"
        """
        return cls(f"{what} needs extra packages: pip install 'whyscore[{extra}]'")


@contextmanager
def need_package(missing: MissingExtra) -> Iterator[None]:
    """Raise `missing` where a package that is imported, or asked for its version, is not installed."""
    try:
        yield
    except ImportError as error:
        raise missing from error


class GateNotPassed(WhyscoreError):
    """The quality gate the caller set was not passed."""

    exit_code: ClassVar[int] = 5


class ContractError(WhyscoreError):
    """A plugin broke its protocol: who, what was expected, what came."""


class TextFailure(ContractError):
    """A metric failed on some text, though not necessarily on the others it was asked about with it."""

    def __init__(self, who: str, reason: str) -> None:
        self.who, self.reason = who, reason
        super().__init__(f"{who} {reason}")


class ExecutionError(WhyscoreError):
    """A worker failed; what was scored before is in the store and the run can be resumed."""


class StoreError(WhyscoreError):
    """The score store cannot be read or written."""
