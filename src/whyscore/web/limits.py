"""What may be requested over the network.

1. A component is named, never written as a spec: no `module:function`, no path, no nested component.
2. An option of a component, or a setting of an analysis, may be a number, a truth value, or one of the words its
   declaration lists. Free texts are refused, because in a spec they can be paths and model names.
   Numbers have bounds: what a metric counts to decides how much memory and time one request takes.
3. What is not installed is not offered.
"""

import dataclasses
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from whyscore.errors import MissingExtra, SpecError, UnknownName
from whyscore.registry import Spec, build, load
from whyscore.settings import Setting, make, settings_of

METRICS = ("bleu", "chrf", "ter", "rouge", "token_f1", "qe", "xbertscore", "mee", "sbert", "length_ratio")
EXPLAINERS = ("erasure", "lime", "shap", "partition", "intrinsic", "matching", "random")

_LARGEST = {"metric": 100, "explainer": 20_000, "settings": 2**31}
"""The largest number that an option of a component, or a setting, may have."""

UNITS = ("word", "char", "auto", "sentence")

Option = bool | int | float | str | None
Values = tuple[object, ...] | str
"""The words that an option takes, or what kind of value it is."""
S = TypeVar("S")


class Offered(NamedTuple):
    """A component that can be asked for."""

    name: str
    about: str
    options: dict[str, Values]
    """Each option with the words it takes, or with what kind of value it is."""


def list_components(kind: Literal["metric", "explainer"]) -> list[Offered]:
    """Return the components of a kind that are allowed and installed."""
    return [component for name in _names(kind) if (component := _describe(kind, name)) is not None]


def spec(kind: Literal["metric", "explainer"], name: str, options: Mapping[str, Option]) -> str:
    """Return the spec of an allowed component with allowed options; everything else is refused."""
    if name not in _names(kind):
        raise UnknownName.among(kind, name, _names(kind))
    _check_open(name, options, _options(kind, name))
    _check_size(name, options, _LARGEST[kind])
    written = str(Spec(name, (), tuple(options.items())))
    build(written, kind)
    return written


def list_settings(kind: type) -> dict[str, tuple[Setting, Values]]:
    """Return the settings of an analysis that may be set over the network, each with the values it takes."""
    kinds = {
        setting.name: (setting, UNITS if setting.name == "unit" else _kind(setting.type))
        for setting in settings_of(kind)
    }
    return {
        name: (setting, values)
        for name, (setting, values) in kinds.items()
        if values is not None and setting.option.line
    }


def make_settings(kind: type[S], options: Mapping[str, Option]) -> S:
    """Return settings made of values that may be set over the network; everything else is refused."""
    _check_open("settings", options, {name: values for name, (_, values) in list_settings(kind).items()})
    _check_size("settings", options, _LARGEST["settings"])
    return make(kind, options)


def _check_open(name: str, options: Mapping[str, Option], open_options: Mapping[str, Values]) -> None:
    for option, value in options.items():
        if option not in open_options:
            raise SpecError(
                f"{name}: the option {option!r} cannot be set here; these can: {', '.join(open_options) or 'none'}"
            )
        values = open_options[option]
        if isinstance(value, str) and (isinstance(values, str) or value not in values):
            expected = values if isinstance(values, str) else f"one of {', '.join(map(repr, values))}"
            raise SpecError(f"{name}: {option} is {value!r}, expected {expected}")


def _check_size(name: str, options: Mapping[str, Option], largest: int) -> None:
    for option, value in options.items():
        if isinstance(value, int | float) and not -largest <= value <= largest:
            raise SpecError(f"{name}: {option} is too large here: give a number from {-largest} to {largest}")


def _names(kind: str) -> tuple[str, ...]:
    return METRICS if kind == "metric" else EXPLAINERS


def _describe(kind: Literal["metric", "explainer"], name: str) -> Offered | None:
    try:
        component = build(name, kind)
        if kind == "metric":
            component.signature()  # opens the model, where there is one
    except MissingExtra:
        return None
    about = (type(component).__doc__ or "").strip().split("\n")[0]
    return Offered(name, about, _options(kind, name))


def _options(kind: str, name: str) -> dict[str, Values]:
    """Return the options of a component that only take numbers, truth values or listed words."""
    factory = load(kind, name)
    if not (isinstance(factory, type) and dataclasses.is_dataclass(factory)):
        return {}
    hints = get_type_hints(factory)
    kinds = {field.name: _kind(hints[field.name]) for field in dataclasses.fields(factory) if field.init}
    return {option: values for option, values in kinds.items() if values is not None}


def _kind(hint: object) -> Values | None:
    """Return the words a hint lists, "a number" or "true or false"; None for everything that is not open."""
    if get_origin(hint) in (Union, UnionType):
        kinds = [_kind(part) for part in get_args(hint) if part is not NoneType]
        return kinds[0] if kinds and None not in kinds else None
    if get_origin(hint) is Literal:
        return get_args(hint)
    return {bool: "true or false", int: "a whole number", float: "a number"}.get(hint)  # type: ignore[call-overload, no-any-return]
