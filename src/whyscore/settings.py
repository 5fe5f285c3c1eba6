"""Settings, declared once: the name, type, default, help text and spellings of every option of an analysis.

A settings class is a frozen dataclass whose fields are made by `option`:

    @dataclass(frozen=True, kw_only=True)
    class CompareSettings:
        test: Test = option("permutation", "how differences are tested", basic=True)
        draws: int = option(1000, "bootstrap samples; 0: no intervals", least=0, metavar="N")

1. A Python function takes them as keyword arguments (`takes`), or one settings object.
2. The command line derives its options from the fields (`whyscore.cli.options`), the reference page its tables.
3. `check` refuses values of the wrong type or out of range, wherever they come from.

Components (metrics, explainers, ...) are frozen dataclasses too: `check_fields` checks their fields against their
annotations.
"""

import dataclasses
import difflib
import functools
import inspect
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from whyscore.errors import DataError, SpecError

S = TypeVar("S")
R = TypeVar("R")
REQUIRED: object = dataclasses.MISSING
"""The default of a setting that has none."""
Precision = Literal["fp32", "bf16", "fp16", "int8"]
"""How neural models compute; in int8 their linear layers multiply integers."""
_KEY = "whyscore.option"
_FILE = "whyscore.file"


class Option(NamedTuple):
    """What is to be known of a setting besides its name, type and default."""

    help: str
    flags: tuple[str, ...] = ()
    """Spellings on the command line; `--the-name` where none is given."""
    basic: bool = False
    """Whether `-h` shows it; `--help-all` shows all."""
    metavar: str | None = None
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] | None = None
    """Known values of a text; those of a `Literal` need not be given."""
    parse: Callable[[str], object] | None = None
    """Reads a text of the command line; by the type of the field where it is None."""
    const: str | None = None
    """The value of an option that is named without one; a list may then be empty."""
    positional: bool = False
    line: bool = True
    """Whether the command line has it; False for what only Python can give."""


class Setting(NamedTuple):
    """A field of a settings class, with its resolved type."""

    name: str
    type: Any
    default: object
    option: Option


_DECLARED: dict[type, tuple[Setting, ...]] = {}


def option(
    default: object = REQUIRED,
    help: str = "",  # noqa: A002 - what argparse calls it
    /,
    *,
    factory: Callable[[], object] | None = None,
    **facts: Any,  # noqa: ANN401 - the fields of `Option`
) -> Any:  # noqa: ANN401 - a field stands for a value of any type
    """Return a field of a settings class.

    Args:
        default: Its value where none is given.
        help: One line that says what it does; units, and what a value means.
        factory: Makes the default, where it is not a plain value.
        facts: The other fields of `Option`.
    """
    metadata = {_KEY: Option(help, **facts)}
    if factory is not None:
        return dataclasses.field(default_factory=factory, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def again(kind: type, name: str, default: object = ..., **facts: Any) -> Any:  # noqa: ANN401 - as `option`
    """Return a field that another settings class declares, with another default or other facts of `Option`.

    >>> again(Seeded, "seed", 7, basic=True).metadata[_KEY].help
    'random seed'
    """
    declared = kind.__dataclass_fields__[name]  # type: ignore[attr-defined]
    metadata = {_KEY: declared.metadata[_KEY]._replace(**facts)}
    return dataclasses.field(default=declared.default if default is ... else default, metadata=metadata)


def settings_of(kind: type) -> tuple[Setting, ...]:
    """Return the settings that a class declares, in order."""
    if kind not in _DECLARED:
        _DECLARED[kind] = _read_fields(kind)
    return _DECLARED[kind]


def _read_fields(kind: type) -> tuple[Setting, ...]:
    hints = get_type_hints(kind)
    settings = []
    for field in dataclasses.fields(kind):
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        settings.append(Setting(field.name, hints[field.name], default, field.metadata.get(_KEY, Option(""))))
    return tuple(settings)


def check(settings: object) -> None:
    """Refuse settings of the wrong type or out of range; lists become tuples and whole numbers floats where needed."""
    for name, hint, _, facts in settings_of(type(settings)):
        value = getattr(settings, name)
        adapted = _adapt(value, hint)
        if not _fits(adapted, hint):
            raise SpecError(f"{name} is {value!r}, expected {describe_type(hint)}")
        _check_range(name, adapted, facts)
        if facts.choices is not None and isinstance(adapted, str) and adapted not in facts.choices:
            raise _unknown_choice(name, adapted, facts.choices)
        if adapted is not value:
            object.__setattr__(settings, name, adapted)


def make(kind: type[S], values: Mapping[str, object], base: S | None = None) -> S:
    """Return settings from keyword arguments, on top of others where they are given; a misspelt name is refused."""
    names = [setting.name for setting in settings_of(kind)]
    for name in values:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"
            raise SpecError(f"no setting named {name!r}; {hint}")
    if base is not None and not values:
        return base
    settings = kind(**values) if base is None else dataclasses.replace(base, **values)  # type: ignore[type-var]
    check(settings)
    return settings


def takes(kind: type) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Let a function that wants `settings` take them as keyword arguments too.

    >>> @dataclasses.dataclass(frozen=True, kw_only=True)
    ... class GreetSettings:
    ...     times: int = option(1, "how often", least=1)
    >>> @takes(GreetSettings)
    ... def greet(name: str, *, settings: GreetSettings) -> str:
    ...     return " ".join([name] * settings.times)
    >>> greet("Ada", times=2)
    'Ada Ada'
    """

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        signature = inspect.signature(function)
        names = {setting.name for setting in settings_of(kind)}

        @functools.wraps(function)
        def call(*args: object, settings: object = None, **keywords: object) -> R:
            direct = {name: value for name, value in keywords.items() if name in signature.parameters}
            options = {name: value for name, value in keywords.items() if name not in signature.parameters}
            return function(*args, settings=make(kind, options, settings), **direct)

        call.__signature__ = _signature(signature, kind, names)  # type: ignore[attr-defined]
        call.settings = kind  # type: ignore[attr-defined]
        return call

    return decorate


def _signature(signature: inspect.Signature, kind: type, names: set[str]) -> inspect.Signature:
    """Return what `help` shows: the function's own parameters, its settings, and `settings` itself."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        parameter for parameter in signature.parameters.values() if parameter.name not in names | {"settings"}
    ]
    fields = [
        inspect.Parameter(
            setting.name,
            keyword,
            default=inspect.Parameter.empty if setting.default is REQUIRED else setting.default,
            annotation=setting.type,
        )
        for setting in settings_of(kind)
    ]
    whole = inspect.Parameter("settings", keyword, default=None, annotation=f"{kind.__name__} | None")
    first = [parameter for parameter in parameters if parameter.kind is not keyword]
    return signature.replace(
        parameters=[*first, *fields, *(parameter for parameter in parameters if parameter.kind is keyword), whole]
    )


def _adapt(value: object, hint: object) -> object:
    if _is_tuple(hint) and not isinstance(value, tuple):
        if isinstance(value, str):
            value = (value,)
        elif isinstance(value, Sequence | set | frozenset):
            value = tuple(value)
    return widen_number(value, hint) if _simple(hint) else value


def _is_tuple(hint: object) -> bool:
    return get_origin(hint) is tuple or any(get_origin(get_arg) is tuple for get_arg in get_args(hint))


def _simple(hint: object) -> bool:
    """Return whether a type is one that `fits` can judge: numbers, texts, choices, and tuples of them."""
    if get_origin(hint) is Literal or hint in (int, float, str, bool, type(None), None):
        return True
    if get_origin(hint) not in (tuple, Union, types.UnionType):
        return False
    return all(get_arg is Ellipsis or _simple(get_arg) for get_arg in get_args(hint))


def _fits(value: object, hint: object) -> bool:
    return not _simple(hint) or fits(value, hint)


def _check_range(name: str, value: object, facts: Option) -> None:
    for number in value if isinstance(value, tuple) else (value,):
        if isinstance(number, bool) or not isinstance(number, int | float):
            continue
        if (facts.least is not None and not number >= facts.least) or (facts.most is not None and number > facts.most):
            raise SpecError(f"{name} is {number!r}, expected {_range(facts)}")


def _range(facts: Option) -> str:
    if facts.least is not None and facts.most is not None:
        return f"{facts.least:g} to {facts.most:g}"
    return f"{facts.least:g} or more" if facts.least is not None else f"{facts.most:g} or less"


def _unknown_choice(name: str, value: str, choices: Sequence[str]) -> SpecError:
    near = difflib.get_close_matches(value, choices, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(choices)}"
    return SpecError(f"{name} is {value!r}; {hint}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bootstrapped:
    """Settings of an analysis that gives bootstrap intervals."""

    draws: int = option(1000, "bootstrap samples; 0: no intervals", least=0, metavar="N")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Judged:
    """Settings of what reads human scores."""

    human: tuple[str, ...] | None = option(None, "columns with human scores", metavar="COLUMN")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Seeded:
    """Settings of an analysis that draws random numbers."""

    TITLE: ClassVar[str] = "running"

    seed: int = option(0, "random seed", least=0)


CODE = "code"
"""Marks a field whose value makes a component run code of others (`whyscore.registry.runs_code`)."""


def names_file(default: Any = dataclasses.MISSING) -> Any:  # noqa: ANN401 - a field of any dataclass
    """Return a field of a component that names a file, or a folder, which it reads."""
    return dataclasses.field(default=default, metadata={_FILE: True})


def check_files(thing: object) -> None:
    """Refuse a component that names a file which is not there: now, and not after minutes of scoring."""
    if isinstance(thing, tuple | list):
        for item in thing:
            check_files(item)
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        for field in dataclasses.fields(thing):
            value = getattr(thing, field.name)
            if field.metadata.get(_FILE) and isinstance(value, str) and not Path(value).expanduser().exists():
                raise DataError("cannot be read: No such file or directory", file=value)
            check_files(value)


def check_fields(thing: object) -> None:
    """Refuse field values of the wrong type, for components that are made in Python rather than from a spec.

    Whole numbers in number fields become floats, so that equal components have equal specs.
    """
    hints = get_type_hints(type(thing))
    for field in dataclasses.fields(thing):  # type: ignore[arg-type]
        if field.metadata.keys() - {CODE, _FILE} or not field.init:
            continue
        value, hint = getattr(thing, field.name), hints[field.name]
        widened = widen_number(value, hint)
        if not fits(widened, hint):
            raise SpecError(f"{type(thing).__name__}: {field.name} is {value!r}, expected {describe_type(hint)}")
        if widened is not value:
            object.__setattr__(thing, field.name, widened)


def check_seed(seed: int) -> None:
    """Refuse a seed that no random numbers can be made from."""
    if seed < 0:
        raise SpecError(f"seed is {seed}, expected 0 or more")


def widen_number(value: object, hint: object) -> object:
    """Return a whole number as a float where only a float fits, also inside tuples.

    >>> widen_number(3, float), widen_number(3, int | float), widen_number((1, 2), tuple[float, ...])
    (3.0, 3, (1.0, 2.0))
    """
    if fits(value, hint):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value) if abs(value) <= sys.float_info.max else value
    return tuple(widen_number(item, float) for item in value) if isinstance(value, tuple) else value


def fits(value: object, hint: object) -> bool:
    """Return whether a value is of an annotated type, for the types that options have.

    >>> fits(3, int), fits("3", int), fits(True, int)
    (True, False, False)
    """
    origin = get_origin(hint)
    if origin is Literal:
        return value in get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, option) for option in get_args(hint))
    if origin is tuple:
        inner = get_args(hint)[0]
        return isinstance(value, tuple) and all(fits(item, inner) for item in value)
    if hint is None or hint is type(None):
        return value is None
    if hint in (int, float):
        return isinstance(value, hint) and not isinstance(value, bool)
    return isinstance(value, hint) if isinstance(hint, type) else callable(value)


def describe_type(hint: object) -> str:
    """Return what an annotated type asks for, in words.

    >>> describe_type(int | None)
    'a whole number or None'
    """
    origin = get_origin(hint)
    if origin is Literal:
        return " or ".join(repr(option) for option in get_args(hint))
    if origin in (Union, types.UnionType):
        return " or ".join(describe_type(option) for option in get_args(hint))
    if origin is tuple:
        item = get_args(hint)[0]
        described = describe_type(item)
        plural = isinstance(item, type) and item is not bool
        return f"a list of {described.partition(' ')[2]}s" if plural else f"a list of {described}"
    plain = {int: "a whole number", float: "a number", str: "a text", bool: "True or False", type(None): "None"}
    return plain.get(hint, with_article(hint.__name__)) if isinstance(hint, type) else "a function"


def with_article(noun: str) -> str:
    """Return a noun after `a` or `an`, by its first letter."""
    return f"{'an' if noun[0] in 'AEIOUaeiou' else 'a'} {noun}"
