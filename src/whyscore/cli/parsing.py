"""A parser that speaks like the rest of whyscore.

1. Help opens with one line of usage and the examples; what every option means stands below.
2. Wrong usage is one line: what is wrong, what came, what to do. No wall of options before it.
3. `WHYSCORE_STORE` stands for `--store`, and so on for every long option; what the command line says goes before.
"""

import argparse
import difflib
import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn, cast

from whyscore.errors import UserError

_KINDS = {"int": "a whole number", "float": "a number"}
_INVALID = re.compile(r"invalid (int|float) value: (.*)", re.DOTALL)
_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
_MANY = (argparse.ONE_OR_MORE, argparse.ZERO_OR_MORE)


class Parser(argparse.ArgumentParser):
    """Reads a command line; what cannot be read is a `UserError`."""

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Return the arguments; what nothing takes is answered with the nearest option."""
        found, rest = self.parse_known_args(args, namespace)
        if rest:
            unknown = next((item for item in rest if item.startswith("-")), rest[0])
            self.error(_unknown(unknown, sorted(_options(self))))
        return found

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Return the arguments and what nothing takes; variables fill in what the command line leaves open."""
        lists = self._defaults_from_environment()
        found, rest = super().parse_known_args(args, namespace)
        for dest, default in lists.items():
            value = getattr(found, dest)
            if value is not default:  # argparse adds to a default list: the command line goes before instead
                setattr(found, dest, value[len(default) :])
        return found, rest

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print below the whole usage."""
        told = _INVALID.sub(lambda match: f"expected {_KINDS[match[1]]}, got {match[2]}", message)
        raise UserError(f"{told}{'' if told.endswith('?') else '.'} All options: {self.prog} -h")

    def format_help(self) -> str:
        """Return the help, with one line of usage."""
        self.usage = self.usage or self._short()
        return super().format_help()

    def _short(self) -> str:
        needed = [action for action in self._actions if action.option_strings and action.required]
        places = [action for action in self._actions if not action.option_strings]
        named = [f"{action.option_strings[0]} {_named(action)}" for action in needed]
        return " ".join([self.prog, *map(_place, places), *named, "[options]"]).replace("%", "%%")

    def _defaults_from_environment(self) -> dict[str, list[object]]:
        """Let variables be defaults; return those that are lists, by where they go."""
        lists = {}
        for action in self._actions:
            names = [name for name in action.option_strings if name.startswith("--")]
            variable = f"WHYSCORE_{names[0][2:].replace('-', '_').upper()}" if names else ""
            value = os.environ.get(variable)
            if not value or not (action.nargs != 0 or isinstance(action, argparse._StoreTrueAction)):  # noqa: SLF001
                continue
            action.default, action.required = _from_environment(action, variable, value), False
            if isinstance(action.default, list):
                lists[action.dest] = action.default
        return lists


def natural(text: str) -> int:
    """Return a whole number that is 0 or more."""
    return _at_least(0, text)


def positive(text: str) -> int:
    """Return a whole number that is 1 or more."""
    return _at_least(1, text)


def _at_least(least: int, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"expected a whole number, {least} or more, got {text!r}")
    return number


def _from_environment(action: argparse.Action, variable: str, value: str) -> object:
    """Return what a variable gives an option, read as strictly as on the command line."""
    if action.nargs == 0:
        if value.lower() not in _YES + _NO:
            raise UserError(f"the variable {variable} is {value!r}: set it to 1 or 0")
        return value.lower() in _YES
    if action.nargs not in _MANY:
        return _read(action, variable, value)
    try:
        parts = shlex.split(value)
    except ValueError as error:
        raise UserError(f"the variable {variable} is {value!r}: {error}. Close the quotes") from None
    return [_read(action, variable, part) for part in parts]


def _read(action: argparse.Action, variable: str, text: str) -> object:
    convert = cast("Callable[[str], object]", action.type or str)
    try:
        found = convert(text)
    except argparse.ArgumentTypeError as error:
        raise UserError(f"the variable {variable}: {error}") from None
    except (TypeError, ValueError):
        kind = _KINDS.get(getattr(convert, "__name__", ""), "another value")
        raise UserError(f"the variable {variable} is {text!r}, expected {kind}") from None
    if action.choices is not None and found not in action.choices:
        raise UserError(f"the variable {variable} is {text!r}: choose from {', '.join(map(str, action.choices))}")
    return found


def _unknown(given: str, known: Sequence[str]) -> str:
    if not given.startswith("-"):
        return f"nothing takes {given!r}: put it after the option it belongs to, or in quotes with its neighbours"
    name = given.partition("=")[0]
    near = difflib.get_close_matches(name, known, n=1)
    return f"no option named {name!r}" + (f". Did you mean {near[0]!r}?" if near else "")


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield all options of a parser and of those below it."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no public list of its actions
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - nor a public name for this
            for inner in action.choices.values():
                yield from _options(inner)


def _named(action: argparse.Action) -> str:
    if action.metavar is not None:
        return action.metavar if isinstance(action.metavar, str) else " ".join(action.metavar)
    return action.dest.upper()


def _place(action: argparse.Action) -> str:
    name = _named(action) if action.metavar or not action.choices else "|".join(map(str, action.choices))
    shapes = {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} [{name} ...]", argparse.PARSER: f"{name} ..."}
    return shapes.get(str(action.nargs), name)
