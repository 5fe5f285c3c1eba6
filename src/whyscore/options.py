"""The options of a component: checks of their types, with messages that say what is expected.

Components are frozen dataclasses, so that the annotations of their fields are the whole description.
"""

import dataclasses
import sys
import types
from typing import Literal, Union, get_args, get_origin, get_type_hints

from whyscore.errors import SpecError


def check_fields(thing: object) -> None:
    """Refuse field values of the wrong type, for components that are made in Python rather than from a spec.

    Whole numbers in number fields become floats, so that equal components have equal specs.
    """
    hints = get_type_hints(type(thing))
    for field in dataclasses.fields(thing):  # type: ignore[arg-type]
        if field.metadata or not field.init:
            continue
        value, hint = getattr(thing, field.name), hints[field.name]
        wanted = converted(value, hint)
        if not fits(wanted, hint):
            raise SpecError(f"{type(thing).__name__}: {field.name} is {value!r}, expected {described(hint)}")
        if wanted is not value:
            object.__setattr__(thing, field.name, wanted)


def check_seed(seed: int) -> None:
    """Refuse a seed that no random numbers can be made from."""
    if seed < 0:
        raise SpecError(f"seed is {seed}, expected 0 or more")


def converted(value: object, hint: object) -> object:
    """Return a whole number as a float where only a float fits, also inside tuples.

    >>> converted(3, float), converted(3, int | float), converted((1, 2), tuple[float, ...])
    (3.0, 3, (1.0, 2.0))
    """
    if fits(value, hint):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value) if abs(value) <= sys.float_info.max else value
    return tuple(converted(item, float) for item in value) if isinstance(value, tuple) else value


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


def described(hint: object) -> str:
    """Return what an annotated type asks for, in words.

    >>> described(int | None)
    'a whole number or None'
    """
    origin = get_origin(hint)
    if origin is Literal:
        return " or ".join(repr(option) for option in get_args(hint))
    if origin in (Union, types.UnionType):
        return " or ".join(described(option) for option in get_args(hint))
    if origin is tuple:
        return f"a list of {described(get_args(hint)[0])}"
    plain = {int: "a whole number", float: "a number", str: "a text", bool: "True or False", type(None): "None"}
    return plain.get(hint, f"a {hint.__name__}") if isinstance(hint, type) else "a function"
