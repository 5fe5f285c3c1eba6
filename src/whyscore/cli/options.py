"""Options that several verbs share, with the spellings of sacreBLEU, COMET and BERTScore as aliases.

A parser that speaks like the rest of whyscore.

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


FORMATS = ("text", "json", "jsonl", "tsv", "csv", "markdown", "latex")


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add where segments come from."""
    group = parser.add_argument_group("input")
    group.add_argument(
        "data",
        nargs="*",
        default=[],
        metavar="FILE",
        help="a data file: .jsonl, .tsv, .csv, .xlf, .tmx, or a folder (instead of -t)",
    )
    group.add_argument("-s", "--source", "--src", "--sources", metavar="FILE", help="source, one segment a line")
    group.add_argument(
        "-t",
        "--hypotheses",
        "--translations",
        "--mt",
        "--hyp",
        "--cand",
        "-i",
        "--input",
        dest="hypotheses",
        nargs="+",
        action="extend",
        metavar="FILE",
        help="hypotheses of one or more systems",
    )
    group.add_argument(
        "-r", "--references", "--ref", "--refs", dest="references", nargs="+", action="extend", metavar="FILE",
        help="one or more sets of references",
    )  # fmt: skip
    group.add_argument("--text", action="store_true", help="-s, -t and -r are the texts themselves, not files")
    group.add_argument("--sample", action="store_true", help="the real data that ships with whyscore")
    group.add_argument(
        "--systems", nargs="+", action="extend", metavar="NAME",
        help="names of the systems in -t; of a data file or --sample, only these systems",
    )  # fmt: skip
    group.add_argument("-l", "--lang-pair", "--language-pair", "--lp", metavar="DE-EN", help="languages of the texts")
    group.add_argument(
        "--columns", nargs="+", action="extend", metavar="ROLE=NAME", help="columns of a table: hypothesis=mt"
    )
    group.add_argument("--no-header", action="store_true", help="the table has no header; --columns gives numbers")
    group.add_argument("--encoding", default="utf-8", metavar="NAME", help="of the input files (default: utf-8)")
    group.add_argument("--human", nargs="+", action="extend", metavar="COLUMN", help="columns with human scores")
    group.add_argument(
        "--input-format",
        choices=("tsv", "csv", "jsonl", "txt", "xliff", "tmx"),
        help="where the suffix does not say it",
    )
    group.add_argument(
        "--inline", choices=("drop", "placeholder"), default="drop", help="what inline codes of XLIFF and TMX become"
    )
    group.add_argument("--alt-trans", action="store_true", help="alternative translations of XLIFF 1.2 are references")
    group.add_argument("--quoting", choices=("auto", "csv", "raw"), default="auto", help="of a TSV (default: auto)")
    group.add_argument("--max-line", type=positive, metavar="N", help="characters a line may have (default: 1,000,000)")
    group.add_argument("--max-file", type=positive, metavar="N", help="bytes a file may have (default: 2,000,000,000)")
    group.add_argument("--max-ratio", type=positive, metavar="N", help="bytes a packed byte may become (default: 200)")
    group.add_argument("--strict", action="store_true", help="treat findings about the input as errors")


def add_metrics(parser: argparse.ArgumentParser) -> None:
    """Add which metrics are asked."""
    parser.add_argument(
        "-m", "--metrics", "--metric", dest="metrics", nargs="+", action="extend", metavar="SPEC",
        help="chrf, 'bleu(tokenize=\"char\")', my_metric.py:score; see: whyscore list metrics",
    )  # fmt: skip
    parser.add_argument("--device", metavar="NAME", help="where networks run: auto (default), cpu, cuda, cuda:1, mps")
    parser.add_argument("--precision", choices=("fp32", "bf16", "fp16"), help="of networks (default: fp32)")


def add_cut_gate(parser: argparse.ArgumentParser) -> None:
    """Add that texts must be read whole."""
    _gates(parser).add_argument(
        "--fail-if-truncated", action="store_true", help="a model must not cut any text (some models are asked twice)"
    )


def _gates(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    title = "quality gates (exit code 5 where one is not passed)"
    there = [group for group in parser._action_groups if group.title == title]  # noqa: SLF001 - argparse cannot be asked
    return there[0] if there else parser.add_argument_group(title)


def add_gates(parser: argparse.ArgumentParser) -> None:
    """Add what a pipeline refuses to ship."""
    gates = _gates(parser)
    gates.add_argument(
        "--fail-under", nargs="+", action="extend", metavar="METRIC=N", help="every system must reach this"
    )
    gates.add_argument(
        "--fail-if-worse", nargs="?", const="", metavar="SYSTEM",
        help="no other system may be worse than this, beyond chance (default: the first system)",
    )  # fmt: skip


def add_output(parser: argparse.ArgumentParser, formats: tuple[str, ...] = FORMATS) -> None:
    """Add how results come out."""
    group = parser.add_argument_group("output")
    group.add_argument("-f", "--format", choices=formats, help="default: text, or what the suffix of -o says")
    group.add_argument("-o", "--output", metavar="FILE", help="write to this file instead of stdout")
    group.add_argument("-w", "--width", type=natural, metavar="N", help="decimals in tables")
    group.add_argument("-q", "--quiet", action="store_true", help="no findings, signatures or progress on stderr")
    group.add_argument("-v", "--verbose", action="store_true", help="all findings on stderr")
    group.add_argument("--safe-csv", action="store_true", help="guard cells that a spreadsheet would run as formulas")
    parser.set_defaults(formats=formats)


def add_running(parser: argparse.ArgumentParser) -> None:
    """Add how the work is done; none of it changes a number but the seed."""
    group = parser.add_argument_group("running")
    group.add_argument("--seed", type=natural, default=0, help="fixes all random numbers (default: 0)")
    group.add_argument("--store", metavar="PATH", help="where scores are kept, or none (default: your cache folder)")
    group.add_argument(
        "--executor", metavar="SPEC", help="where metrics run: serial (default), processes, ray, 'ray(gpus=1, cores=4)'"
    )
    group.add_argument(
        "--jobs", type=natural, default=0, metavar="N", help="processes or workers (default: one per core)"
    )
    group.add_argument(
        "--ray-address", metavar="HOST:PORT", help="a running Ray cluster, or auto (default: start one here)"
    )
    group.add_argument("--dry-run", action="store_true", help="say how many texts would be scored, and stop")
