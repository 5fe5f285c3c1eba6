"""XML by expat, event by event, with the guards that every reader of it needs.

Entities are refused (a small file could become any size), nesting has a limit, every fault names its line and column.
"""

from typing import NoReturn
from xml.parsers import expat

from whyscore.errors import DataError

_DEPTH = 256


class Events:
    """Hears what a file consists of; readers say what they make of it."""

    def __init__(self, file: str, data: bytes) -> None:
        self._file, self._data = file, data
        self._path: list[str] = []
        self._parser = expat.ParserCreate("utf-8")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.EntityDeclHandler = self._entity

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        raise NotImplementedError

    def _end(self, tag: str) -> None:
        raise NotImplementedError

    def _characters(self, text: str) -> None:
        raise NotImplementedError

    def _where(self) -> str:
        """Return what a message about broken XML adds: in which unit that is."""
        return ""

    def _parse(self) -> None:
        try:
            self._parser.Parse(self._data, True)  # noqa: FBT003 - its own way of saying that there is no more
        except expat.ExpatError as error:
            message = f"not well-formed XML: {expat.errors.messages.get(error.code, error)}{self._where()}"
            raise DataError(message, file=self._file, line=error.lineno, column=error.offset + 1) from error

    def _enter(self, name: str) -> None:
        """Remember an element that begins."""
        self._path.append(name)
        if len(self._path) > _DEPTH:
            self._refuse(f"elements are nested deeper than {_DEPTH}")

    def _refuse(self, message: str) -> NoReturn:
        parser = self._parser
        raise DataError(message, file=self._file, line=parser.CurrentLineNumber, column=parser.CurrentColumnNumber + 1)

    def _entity(self, *_: object) -> NoReturn:
        self._refuse("declares entities, which are refused: they can blow a small file up to any size")
