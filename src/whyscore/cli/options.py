"""The options of a command, derived from the settings it takes, and the parser that reads them.

1. `add_settings` makes one option per field of a settings class: spelling, type, choices, default and help come from
   the field. `read_settings` makes the settings of what was given.
2. `-h` opens with one line of usage and the examples and shows the options that a newcomer needs; `--help-all` shows
   all of them.
3. Wrong usage is one line: what is wrong, what was found, what to do.
4. `WHYSCORE_STORE` stands for `--store`, and so on for every long option; the command line takes precedence.
5. Groups that several commands share are settings classes too: input, output, running, metrics, gates.
"""

import argparse
import difflib
import inspect
import os
import shlex
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, NoReturn, TypeVar, Union, cast, get_args, get_origin

from whyscore.errors import UserError
from whyscore.garbage import collect_rarely
from whyscore.settings import REQUIRED, Judged, Precision, Setting, again, check, option, settings_of

_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
_FEW = 4
_MANY = (argparse.ONE_OR_MORE, argparse.ZERO_OR_MORE)


class Parser(argparse.ArgumentParser):
    """Reads a command line; what cannot be read is a `UserError`."""

    def __init__(self, **facts: Any) -> None:  # noqa: ANN401 - those of argparse
        super().__init__(**facts)
        self.advanced: set[argparse.Action] = set()
        """The options that `-h` leaves out."""
        self.formats: tuple[str, ...] = ()
        """The output formats of the command."""
        self.add_argument("--help-all", action=_FullHelp, nargs=0, help="show all options and exit")

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Return the arguments; what nothing takes is answered with the nearest option."""
        arguments, rest = self.parse_known_args(args, namespace)
        if rest:
            unknown = next((item for item in rest if item.startswith("-")), rest[0])
            command = self._parser_of(arguments)
            options = sorted(name for action in command._actions for name in action.option_strings)  # noqa: SLF001
            command.error(_describe_unknown(unknown, options))
        return arguments

    def _parser_of(self, arguments: argparse.Namespace) -> argparse.ArgumentParser:
        """Return the parser of the command of a group that was named, or this one."""
        groups = [action for action in self._actions if isinstance(action, argparse._SubParsersAction)]  # noqa: SLF001
        parsers: dict[str, argparse.ArgumentParser] = {
            name: choice for group in groups for name, choice in group.choices.items()
        }
        return parsers.get(getattr(arguments, "command", ""), self)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Return the arguments and what nothing takes; variables fill in what the command line leaves open."""
        lists = self._defaults_from_environment()
        arguments, rest = super().parse_known_args(args, namespace)
        for dest, default in lists.items():
            value = getattr(arguments, dest)
            if value is not default:  # argparse adds to a default list: the command line goes before instead
                setattr(arguments, dest, value[len(default) :])
        return arguments, rest

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print below the whole usage."""
        raise UserError(f"{message}{'' if message.endswith('?') else '.'} All options: {self.prog} -h")

    def format_help(self) -> str:
        """Return the help for newcomers, with one line of usage."""
        self.usage = self.usage or self._short()
        hidden = {action: action.help for action in self._actions if action in self.advanced}
        for action in hidden:
            action.help = argparse.SUPPRESS
        more = f"{self.prog} --help-all shows {len(hidden)} more options." if hidden else None
        epilog, self.epilog = self.epilog, self.epilog or (more and more.replace("%", "%%"))
        try:
            return super().format_help()
        finally:
            self.epilog = epilog
            for action, text in hidden.items():
                action.help = text

    def format_full_help(self) -> str:
        """Return the help with every option."""
        self.usage = self.usage or self._short()
        return super().format_help()

    def _short(self) -> str:
        needed = [action for action in self._actions if action.option_strings and action.required]
        places = [action for action in self._actions if not action.option_strings]
        named = [f"{action.option_strings[0]} {_metavar_of(action)}" for action in needed]
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


class _FullHelp(argparse.Action):
    """Shows every option."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        sys.stdout.write(cast("Parser", parser).format_full_help())
        parser.exit()


def read_number(kind: type[int] | type[float], least: int | None, text: str) -> float:
    """Return a number in its range, or say what was expected."""
    try:
        number = kind(text)
    except ValueError:
        number = None
    if number is None or (least is not None and number < least):
        name = "a whole number" if kind is int else "a number"
        limit = "" if least is None else f", {least} or more"
        raise argparse.ArgumentTypeError(f"expected {name}{limit}, got {text!r}")
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
        value = convert(text)
    except argparse.ArgumentTypeError as error:
        raise UserError(f"the variable {variable}: {error}") from None
    except (TypeError, ValueError):
        raise UserError(f"the variable {variable} is {text!r}, expected another value") from None
    if action.choices is not None and value not in action.choices:
        raise UserError(f"the variable {variable} is {text!r}: choose from {', '.join(map(str, action.choices))}")
    return value


def _describe_unknown(argument: str, options: Sequence[str]) -> str:
    if not argument.startswith("-"):
        return f"unexpected argument {argument!r}: put it after its option, or quote it together with its neighbours"
    name = argument.partition("=")[0]
    near = difflib.get_close_matches(name, options, n=1)
    return f"no option named {name!r}" + (f". Did you mean {near[0]!r}?" if near else "")


def _metavar_of(action: argparse.Action) -> str:
    if action.metavar is not None:
        return action.metavar if isinstance(action.metavar, str) else " ".join(action.metavar)
    return action.dest.upper()


def _place(action: argparse.Action) -> str:
    name = _metavar_of(action) if action.metavar or not action.choices else "|".join(map(str, action.choices))
    shapes = {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} [{name} ...]", argparse.PARSER: f"{name} ..."}
    return shapes.get(str(action.nargs), name)


S = TypeVar("S")


class Command(NamedTuple):
    """A command: what `-h` says of it, the settings it takes, and what it does with them."""

    help: str
    """One line about it."""
    examples: str
    """Commands to paste, shown by `-h`."""
    settings: type
    """A settings class: that of the analysis and the groups below, by inheritance."""
    run: Callable[[Any], int]
    """Takes the settings and returns the exit code."""
    function: Callable[..., object] | None = None
    """What Python calls for the same work, where `whyscore` itself does not offer it."""
    formats: tuple[str, ...] = ()
    """The output formats that make sense; all where empty."""


def add_command(parser: Parser, command: Command | Mapping[str, Command]) -> None:
    """Add the options of everything that a command takes; one parser for each command of a group."""
    if isinstance(command, Command):
        # Imported when a command is set up: `whyscore --help` needs none of it.
        from whyscore.present import formats  # noqa: PLC0415

        add_settings(parser, command.settings, command.formats or formats())
        return
    shown = "|".join(command) if len(command) <= _FEW else "NAME"
    choices = parser.add_subparsers(dest="command", metavar=shown, required=True)
    for name, subcommand in command.items():
        inner = choices.add_parser(
            name,
            help=subcommand.help,
            description=f"{subcommand.help[0].upper()}{subcommand.help[1:]}.\n\n{subcommand.examples}",
            formatter_class=parser.formatter_class,
            allow_abbrev=False,
        )
        add_command(inner, subcommand)


def run_command(command: Command | Mapping[str, Command], arguments: argparse.Namespace) -> int:
    """Run a command on what was given."""
    selected = command if isinstance(command, Command) else command[arguments.command]
    with collect_rarely():
        return selected.run(read_settings(selected.settings, arguments))


def add_settings(parser: Parser, kind: type, formats: Sequence[str] = ()) -> None:
    """Add one option per setting, in groups by the class that declares it; those that are there already are shared."""
    if issubclass(kind, OutputSettings):
        parser.formats = tuple(formats)
        parser.set_defaults(formats=tuple(formats))
    there = {action.dest for action in parser._actions}  # noqa: SLF001 - argparse has no public list of its actions
    for setting in settings_of(kind):
        if setting.option.line and setting.name not in there:
            title = _title(kind, setting.name)
            groups = [group for group in parser._action_groups if group.title == title]  # noqa: SLF001
            action = _add(groups[0] if groups else parser.add_argument_group(title), setting, formats)
            if not setting.option.basic:
                parser.advanced.add(action)
    parser._action_groups.sort(key=lambda group: _ORDER.index(group.title if group.title in _ORDER else "options"))  # noqa: SLF001


def read_settings(kind: type[S], arguments: argparse.Namespace) -> S:
    """Return the settings that were given on the command line."""
    values = vars(arguments)
    settings = kind(
        **{setting.name: values[setting.name] for setting in settings_of(kind) if values.get(setting.name) is not None}
    )
    check(settings)
    return settings


def _title(kind: type, name: str) -> str:
    """Return the group of an option: the title of the class that declares it."""
    home = next(base for base in kind.__mro__ if name in inspect.get_annotations(base))
    return str(home.__dict__.get("TITLE", "options"))


def _add(group: argparse._ArgumentGroup, setting: Setting, formats: Sequence[str]) -> argparse.Action:
    facts, inner = setting.option, _inner(setting.type)
    named: dict[str, Any]
    if facts.positional:
        nargs = "*" if _is_many(setting.type) else "?" if setting.default is None else None
        named = {"nargs": nargs, "default": setting.default, **_texts(setting)}
        values = _choices(setting)
        if values and not _is_many(setting.type) and facts.metavar is None:
            named |= {"metavar": "|".join(values)}
        return group.add_argument(setting.name, choices=values, **named)
    flags = facts.flags or (f"--{setting.name.replace('_', '-')}",)
    if inner is bool and facts.const is None:
        action = "store_false" if setting.default is True else "store_true"
        return group.add_argument(*flags, dest=setting.name, action=action, default=setting.default, help=facts.help)
    named = {"dest": setting.name, **_texts(setting)}
    named |= {"required": True} if setting.default is REQUIRED else {"default": setting.default}
    if _is_many(setting.type):
        # argparse would add to a default list: `read_settings` puts the default in its place.
        named |= {"nargs": "+" if facts.const is None else "*", "action": "extend", "default": None}
    elif facts.const is not None:
        named |= {"nargs": "?", "const": facts.const}
    choices = formats if setting.name == "format" and formats else _choices(setting)
    if choices:
        named |= {"choices": tuple(choices)}
        named.pop("metavar", None) if facts.metavar is None else None
    else:
        least = int(facts.least) if inner is int and facts.least in (0, 1) else None
        reader = partial(read_number, inner, least) if inner is int or inner is float else str
        named |= {"type": facts.parse or reader}
    return group.add_argument(*flags, **named)


def _texts(setting: Setting) -> dict[str, Any]:
    default, text = setting.default, setting.option.help
    plain = isinstance(default, int | float | str) and not isinstance(default, bool)
    if plain and default != "" and "default" not in text:
        text = f"{text} (default: {default:,})" if isinstance(default, int) else f"{text} (default: {default})"
    facts = {"help": text.replace("%", "%%")}
    return facts if setting.option.metavar is None else facts | {"metavar": setting.option.metavar}


def _inner(hint: object) -> object:
    """Return the type of one value: that of an optional one, or of the items of a list."""
    if get_origin(hint) in (Union, types.UnionType):
        plain = [member for member in get_args(hint) if member is not type(None)]
        return _inner(plain[0])
    return _inner(get_args(hint)[0]) if get_origin(hint) is tuple else hint


def _is_many(hint: object) -> bool:
    if get_origin(hint) in (Union, types.UnionType):
        return any(_is_many(member) for member in get_args(hint))
    return get_origin(hint) is tuple


def _choices(setting: Setting) -> tuple[str, ...] | None:
    inner = _inner(setting.type)
    return get_args(inner) if get_origin(inner) is Literal else setting.option.choices


@dataclass(frozen=True, kw_only=True)
class QuietSettings:
    """How much is said on stderr."""

    TITLE: ClassVar[str] = "output"

    quiet: bool = option(False, "no findings, signatures or progress on stderr", flags=("-q", "--quiet"))
    verbose: bool = option(False, "all findings on stderr", flags=("-v", "--verbose"))


@dataclass(frozen=True, kw_only=True)
class MetricSettings:
    """Which metrics are asked, and where their networks run."""

    TITLE: ClassVar[str] = "metrics"

    metrics: tuple[str, ...] | None = option(
        None,
        "chrf, 'bleu(tokenize=\"char\")', my_metric.py:score; see: whyscore list metrics",
        flags=("-m", "--metrics", "--metric"),
        metavar="SPEC",
        basic=True,
    )
    device: str | None = option(
        None, "device for neural models: auto (default), cpu, cuda, cuda:1, mps", metavar="NAME"
    )
    precision: Precision | None = option(None, "numeric precision of neural models (default: fp32)")


@dataclass(frozen=True, kw_only=True)
class InputSettings(QuietSettings):
    """Where segments come from; the spellings of sacreBLEU, COMET and BERTScore are accepted too."""

    TITLE: ClassVar[str] = "input"

    data: tuple[str, ...] = option(
        (),
        "a data file: .jsonl, .tsv, .csv, .xlsx, .xlf, .tmx, or a folder (instead of -t)",
        positional=True,
        metavar="FILE",
        basic=True,
    )
    source: str | None = option(
        None,
        "source texts, one segment per line",
        flags=("-s", "--source", "--src", "--sources"),
        metavar="FILE",
        basic=True,
    )
    hypotheses: tuple[str, ...] | None = option(
        None,
        "system outputs, one file per system",
        flags=("-t", "--hypotheses", "--translations", "--mt", "--hyp", "--cand", "-i", "--input"),
        metavar="FILE",
        basic=True,
    )
    references: tuple[str, ...] | None = option(
        None,
        "references, one file per set",
        flags=("-r", "--references", "--ref", "--refs"),
        metavar="FILE",
        basic=True,
    )
    text: bool = option(False, "-s, -t and -r are the texts themselves, not files", basic=True)
    sample: bool = option(False, "use the sample data that ships with whyscore", basic=True)
    systems: tuple[str, ...] | None = option(
        None, "names for the systems of -t; with a data file or --sample: use only these systems", metavar="NAME"
    )
    lang_pair: str | None = option(
        None,
        "source and target language",
        flags=("-l", "--lang-pair", "--language-pair", "--lp"),
        metavar="DE-EN",
        basic=True,
    )
    columns: tuple[str, ...] | None = option(
        None, "which columns to use, e.g. hypothesis=mt source=src", metavar="ROLE=NAME", basic=True
    )
    no_header: bool = option(False, "the table has no header row; --columns takes column numbers")
    encoding: str = option("utf-8", "encoding of the input files", metavar="NAME")
    human: tuple[str, ...] | None = again(Judged, "human")
    input_format: Literal["tsv", "csv", "xlsx", "jsonl", "txt", "xliff", "tmx"] | None = option(
        None, "format of the data file (default: by suffix)"
    )
    inline: Literal["drop", "placeholder"] = option("drop", "how to treat inline codes in XLIFF and TMX")
    alt_trans: bool = option(False, "use alternative translations in XLIFF 1.2 as references")
    quoting: Literal["auto", "csv", "raw"] = option("auto", "how quotation marks in TSV files are read")
    max_line: int | None = option(None, "maximum characters per line (default: 1,000,000)", least=1, metavar="N")
    max_file: int | None = option(None, "maximum file size in bytes (default: 2,000,000,000)", least=1, metavar="N")
    max_ratio: int | None = option(None, "maximum decompression ratio (default: 200)", least=1, metavar="N")
    normalize: tuple[Literal["quotes", "apostrophes", "dashes", "spaces", "case"], ...] | None = option(
        None,
        "normalise typography in all texts: quotes, apostrophes, dashes, spaces, case",
        metavar="WHAT",
    )
    context: int = option(
        0,
        "previous segments of the same document that encoders and judges also read; only the segment itself is scored",
        least=0,
        metavar="N",
    )
    realign: Literal["file", "documents"] | None = option(
        None,
        "cut the texts of -t that have other line breaks into the segments of -r, by minimal word edit distance: each "
        "file at once, or each document (separated by empty lines in all files)",
    )
    strict: bool = option(False, "treat findings about the input as errors")


@dataclass(frozen=True, kw_only=True)
class ParallelSettings(QuietSettings):
    """Where texts and their translations come from, for commands that learn from them."""

    TITLE: ClassVar[str] = "input"

    source: str = option(REQUIRED, "source texts, one per line", flags=("-s", "--source"), metavar="FILE", basic=True)
    target: str = option(
        REQUIRED, "their translations, one per line", flags=("-t", "--target"), metavar="FILE", basic=True
    )
    encoding: str = again(InputSettings, "encoding", basic=True)


@dataclass(frozen=True, kw_only=True)
class LimitSettings:
    """How many segments a costly command takes."""

    limit: int | None = option(None, "only the first N segments of each system by id", least=1, metavar="N", basic=True)


@dataclass(frozen=True, kw_only=True)
class OutputSettings(QuietSettings):
    """How results come out."""

    TITLE: ClassVar[str] = "output"

    format: str | None = option(
        None, "output format (default: by the suffix of -o, else text)", flags=("-f", "--format"), basic=True
    )
    output: str | None = option(
        None, "write to this file instead of stdout", flags=("-o", "--output"), metavar="FILE", basic=True
    )
    width: int | None = option(None, "number of decimals in tables", flags=("-w", "--width"), least=0, metavar="N")
    safe_csv: bool = option(False, "escape cells that a spreadsheet would run as formulas")
    formats: tuple[str, ...] = option((), "the formats of the command", line=False)


@dataclass(frozen=True, kw_only=True)
class FolderSettings(OutputSettings):
    """How results come out of a command that also fills a folder: tables go to stdout, all else to the folder."""

    TITLE: ClassVar[str] = "output"

    output: str | None = option(None, line=False)
    folder: str | None = option(None, "output folder", flags=("-o", "--output"), metavar="FOLDER", basic=True)


@dataclass(frozen=True, kw_only=True)
class RunningSettings(QuietSettings):
    """How the work is done; none of it changes a number."""

    TITLE: ClassVar[str] = "running"

    store: str | None = option(None, "path of the score store, or none (default: in your cache folder)", metavar="PATH")
    executor: str | None = option(
        None,
        "where metrics run: serial, processes, ray, 'ray(gpus=1, cores=4)' (default: serial; evaluate with 1000 texts "
        "or more and count-based metrics: processes)",
        metavar="SPEC",
    )
    jobs: int = option(
        0, "number of worker processes; 1: no extra processes (default: one per core)", least=0, metavar="N"
    )
    ray_address: str | None = option(
        None, "address of a running Ray cluster, or auto (default: start a local one)", metavar="HOST:PORT"
    )
    record: str | None = option(
        None, "also write all requests and answers of judge to this file, for judge(recorded=FILE)", metavar="FILE"
    )
    budget_calls: int | None = option(None, "maximum number of calls by judge", least=1, metavar="N")
    budget_tokens: int | None = option(
        None, "maximum number of tokens sent and received by judge", least=1, metavar="N"
    )
    dry_run: bool = option(
        False, "show how much work each stage would do (for judge: calls and tokens) and exit", basic=True
    )


GATES = "quality gates (exit code 5 on failure)"
_ORDER = ("positional arguments", "options", "metrics", "input", GATES, "output", "running")


@dataclass(frozen=True, kw_only=True)
class UnparsedSettings:
    """A gate on answers of language models."""

    TITLE: ClassVar[str] = GATES

    fail_if_unparsed: float | None = option(
        None, "fail if more than this share of judge's answers is unusable, e.g. 0.05", least=0, most=1, metavar="SHARE"
    )


@dataclass(frozen=True, kw_only=True)
class TruncationSettings(UnparsedSettings):
    """A gate on texts that a model cuts."""

    TITLE: ClassVar[str] = GATES

    fail_if_truncated: bool = option(False, "fail if a model truncates a text (some models are run twice)")


@dataclass(frozen=True, kw_only=True)
class GateSettings(UnparsedSettings):
    """What a pipeline refuses to ship."""

    TITLE: ClassVar[str] = GATES

    fail_under: tuple[str, ...] | None = option(
        None, "fail if a system other than the baseline scores worse than N", metavar="METRIC=N", basic=True
    )
    fail_if_worse: str | None = option(
        None,
        "fail if another system is significantly worse than this baseline (default: the first system)",
        const="",
        metavar="SYSTEM",
        basic=True,
    )
    junit: str | None = option(None, "write the gate results as JUnit XML", metavar="FILE")
    gate_summary: str | None = option(
        None, "append the gate results as a Markdown table, for example to $GITHUB_STEP_SUMMARY", metavar="FILE"
    )
