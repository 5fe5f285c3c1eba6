"""Objects from specs and specs from objects.

Components are dataclasses, so their fields are their options: names, order, defaults and types are read from them,
and every wrong option is answered with the ones there are.
"""

import dataclasses
import typing
from collections.abc import Mapping
from typing import get_origin, get_type_hints

from whyscore.errors import SpecError, UnknownName
from whyscore.registry import names
from whyscore.registry.specs import Spec, Value, parse
from whyscore.settings import converted, described, fits

_KIND = "kind"


def component(kind: str, **options: object) -> typing.Any:  # noqa: ANN401 - dataclasses.field is typed this way too
    """Return a dataclass field that holds another component, so that specs can be nested.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Twice:
    ...     metric: object = component("metric", default=None)
    """
    return dataclasses.field(metadata={_KIND: kind}, **options)  # type: ignore[call-overload]


def build(spec: str | Spec, kind: str = "metric") -> typing.Any:  # noqa: ANN401 - the kind decides the protocol
    """Return the component that a spec describes; `kind` says where to look its name up.

    >>> build("chrf(word_order=2)").word_order
    2
    """
    wanted = parse(spec) if isinstance(spec, str) else spec
    factory = names.load(kind, wanted.name)
    if not dataclasses.is_dataclass(factory):
        return _plain(factory, wanted)
    return factory(**_arguments(factory, wanted))


def spec_of(thing: object) -> str:
    """Return the canonical spec that rebuilds a component; options at their default are left out."""
    return str(_spec(thing))


def _plain(factory: names.Factory, spec: Spec) -> object:
    try:
        return factory(*spec.positional, **dict(spec.named))
    except TypeError as error:
        raise SpecError(f"{spec.name}: {error}") from error


def _arguments(factory: typing.Any, spec: Spec) -> dict[str, object]:  # noqa: ANN401 - any dataclass
    fields = {field.name: field for field in dataclasses.fields(factory) if field.init}
    hints = get_type_hints(factory)
    given = _named(spec, list(fields), hints)
    arguments: dict[str, object] = {}
    for name, value in given.items():
        kind = fields[name].metadata.get(_KIND)
        arguments[name] = _converted(spec.name, name, value, hints[name]) if kind is None else _nested(value, kind)
    missing = [name for name, field in fields.items() if name not in given and _required(field)]
    if missing:
        raise SpecError(f"{spec.name} needs {', '.join(missing)}: write {spec.name}({missing[0]}=...)")
    return arguments


def _named(spec: Spec, order: list[str], hints: Mapping[str, object]) -> dict[str, Value]:
    """Return all arguments by name: positional ones fill the fields in order, a leading tuple field takes them all."""
    positional = spec.positional
    takes_all = bool(order) and get_origin(hints[order[0]]) is tuple
    if takes_all and positional and not (len(positional) == 1 and isinstance(positional[0], tuple)):
        positional = (positional,)
    if len(positional) > len(order):
        raise SpecError(f"{spec.name} takes at most {len(order)} options, got {len(positional)}: {spec}")
    given = dict(zip(order, positional, strict=False))
    for name, value in spec.named:
        if name not in order:
            error = UnknownName.among(f"option of {spec.name}", name, order)
            raise SpecError(str(error) if order else f"{spec.name} takes no options, got {name!r}")
        if name in given:
            raise SpecError(f"{spec.name}: {name} is given twice in {spec}")
        given[name] = value
    return given


def _nested(value: Value, kind: str) -> object:
    """Return the component (or the tuple of them) that a value names; None stays None."""
    if isinstance(value, tuple):
        return tuple(_nested(item, kind) for item in value)
    if isinstance(value, str | Spec):
        return build(value, kind)
    if value is None:
        return None
    raise SpecError(f"expected a {kind}, got {value!r}: write its name or name(option=value)")


def _converted(owner: str, name: str, value: Value, hint: object) -> object:
    wanted = converted(value, hint)
    if not fits(wanted, hint):
        raise SpecError(f"{owner}: {name} is {_shown(value)}, expected {described(hint)}")
    return wanted


def _required(field: "dataclasses.Field[object]") -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _spec_name(thing: object) -> str:
    for kind in names.KINDS:
        name = names.name_of(kind, type(thing))
        if name is not None:
            return name
    return type(thing).__name__


def _spec(thing: object) -> Spec:
    name = _spec_name(thing)
    if not dataclasses.is_dataclass(thing):
        if all(name not in names.known(kind) for kind in names.KINDS):
            raise SpecError(f"{thing!r} has no spec: register its class under a name first")
        return Spec(name)
    named = []
    for field in dataclasses.fields(thing):
        value = getattr(thing, field.name)
        if field.init and (_required(field) or value != _default(field)):
            named.append((field.name, _as_value(value)))
    return Spec(name, (), tuple(named))


def _default(field: "dataclasses.Field[object]") -> object:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _as_value(value: object) -> Value:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return tuple(_as_value(item) for item in value)
    if callable(value) and not dataclasses.is_dataclass(value):
        raise SpecError(f"{value!r} has no spec; write it to a file and name it file.py:function")
    return _spec(value)


def _shown(value: Value) -> str:
    return str(value) if isinstance(value, Spec) else repr(value)
