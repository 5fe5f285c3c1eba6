"""JSON that every reader understands: one line an object, no NaN, floats in the shortest form that reads back equal."""

import json
import math
import re
from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np

from whyscore.errors import ContractError
from whyscore.text.files import whole

__all__ = ["REASONS", "Reason", "checked_reason", "finite", "line", "number", "whole"]

Reason = Literal[
    "constant", "empty", "truncated", "flat", "not submitted", "no_error", "all_error", "undefined",
    "unparsed", "refused", "wrong language", "failed",
]  # fmt: skip
"""Why a number is null; the last four are those of answers that a judge gave."""

REASONS: tuple[Reason, ...] = get_args(Reason)

_SURROGATE = re.compile("[\ud800-\udfff]")


def number(value: float | None) -> float | None:
    """Return a number for JSON: None where it is not finite."""
    return None if value is None or not math.isfinite(value) else float(value)


def line(record: Mapping[str, object]) -> str:
    r"""Return a record as one line of JSON with its newline; keys keep their order, characters are not escaped.

    >>> line({"id": "é", "score": 0.1})
    '{"id": "é", "score": 0.1}\n'
    """
    try:
        text = json.dumps(record, ensure_ascii=False, allow_nan=False, default=_plain)
    except (TypeError, ValueError) as error:
        raise ContractError(f"a record cannot be written as JSON: {error}; it is {record!r}") from error
    if not text.isascii() and _SURROGATE.search(text):
        # Half a surrogate pair has no UTF-8 form; escaped, it reads back as it was.
        text = json.dumps(record, allow_nan=False, default=_plain)
    return f"{text}\n"


def checked_reason(reason: str) -> str:
    """Return a reason if it is on the closed list."""
    if reason not in REASONS:
        raise ContractError(f"no reason named {reason!r} for a null; known: {', '.join(REASONS)}")
    return reason


def finite(value: object) -> object:
    """Return a value with None for every number that is not finite, inside lists and objects too."""
    if isinstance(value, float | np.floating):
        return number(float(value))
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return finite(value.tolist()) if isinstance(value, np.ndarray | np.generic) else value


def defined(record: Mapping[str, object]) -> dict[str, object]:
    """Return a record with null for every number that is not finite, and with the reason for it."""
    made = {key: finite(value) for key, value in record.items()}
    if any(made[key] is None and value is not None for key, value in record.items()):
        made["reason"] = checked_reason(str(record.get("reason") or "undefined"))
    return made


def _plain(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} {value!r} has no JSON form")
