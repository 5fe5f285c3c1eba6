"""The grammar of spec strings, read with `ast` and never executed.

    chrf
    lime(samples=200)
    replace("UNKWORDZ")
    boosted(metric=chrf, explainer=lime(samples=200), p=-3.0, w=0.8)

Values are literals, tuples of values, other specs, or bare words, which stand for themselves (`rouge(kind=L)`).
`metric.py:function` and `package.module:function` are short for `callable("...")`.
"""

import ast
import json
import math
import re
from dataclasses import dataclass

from whyscore.errors import SpecError

_FUNCTION = re.compile(r"[^\s(),='\"]+:[A-Za-z_][\w.]*")
_LIMIT = 10_000
USUAL = {
    "chrf++": "chrf(word_order=2)",
    "chrfpp": "chrf(word_order=2)",
    "rouge1": "rouge(kind=1)",
    "rouge2": "rouge(kind=2)",
    "rougel": "rouge(kind=L)",
    "rougelsum": "rouge(kind=Lsum)",
    "rouge-1": "rouge(kind=1)",
    "rouge-2": "rouge(kind=2)",
    "rouge-l": "rouge(kind=L)",
    "sacrebleu": "bleu",
}
"""What other tools call things, and how it is asked for here."""

_CONSTANTS = {"inf": math.inf, "nan": math.nan, "true": True, "false": False, "none": None}


@dataclass(frozen=True, slots=True)
class Spec:
    """A name with its arguments, before anything is looked up."""

    name: str
    positional: tuple["Value", ...] = ()
    named: tuple[tuple[str, "Value"], ...] = ()

    def __str__(self) -> str:
        arguments = [written(value) for value in self.positional]
        arguments += [f"{name}={written(value)}" for name, value in self.named]
        return f"{self.name}({', '.join(arguments)})" if arguments else self.name


Value = None | bool | int | float | str | tuple["Value", ...] | Spec


def parse(text: str) -> Spec:
    """Return the spec that a string stands for.

    >>> parse("lime(samples=200)")
    Spec(name='lime', positional=(), named=(('samples', 200),))
    """
    stripped = text.strip()
    if len(stripped) > _LIMIT:
        raise SpecError(f"a spec of {len(stripped)} characters is too long; at most {_LIMIT} are read")
    if stripped.casefold() in USUAL and not stripped.isidentifier():
        raise SpecError(f"{text!r} is not how it is asked for here: write {USUAL[stripped.casefold()]}")
    if stripped.endswith(".py"):
        raise SpecError(f"cannot read the spec {text!r}: name a function of the file, for example {stripped}:score")
    if _FUNCTION.fullmatch(stripped):
        return Spec("callable", (stripped,))
    try:
        tree = ast.parse(stripped, mode="eval").body
        value = _value(tree, text)
    except SpecError:
        raise
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        reason = getattr(error, "msg", None) or "too deeply nested"
        raise SpecError(f"cannot read the spec {text!r}: {reason}. Write name or name(option=value)") from None
    if isinstance(value, Spec):
        return value
    if isinstance(tree, ast.Name) and isinstance(value, str):
        return Spec(value)
    if isinstance(tree, ast.Tuple):
        apart = " ".join(ast.unparse(part) for part in tree.elts)
        raise SpecError(f"cannot read the spec {text!r}: put blanks, not commas, between several: {apart}")
    raise SpecError(f"cannot read the spec {text!r}: expected a name such as chrf or lime(samples=200)")


def written(value: Value) -> str:
    """Return a value as it stands in a spec."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, tuple):
        return f"({', '.join(map(written, value))}{',' if len(value) == 1 else ''})"
    return str(value) if isinstance(value, Spec) else repr(value)


def _value(node: ast.expr, text: str) -> Value:
    """Return what one node of the syntax tree stands for; everything but literals, names and calls is refused."""
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number = _value(operand, text)
            if isinstance(number, int | float) and not isinstance(number, bool):
                return -number
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return tuple(_value(element, text) for element in elements)
        case ast.Name(id=name):
            return _CONSTANTS.get(name, name)
        case ast.Call(func=ast.Name(id=name), args=positional, keywords=keywords):
            return _call(name, positional, keywords, text)
    shown = ast.unparse(node)
    raise SpecError(f"cannot read {shown!r} in the spec {text!r}: only literals and names. Put texts in quotes")


def _call(name: str, positional: list[ast.expr], keywords: list[ast.keyword], text: str) -> Spec:
    named: dict[str, Value] = {}
    for keyword in keywords:
        if keyword.arg is None:
            raise SpecError(f"cannot read '**' in the spec {text!r}: write each option as name=value")
        named[keyword.arg] = _value(keyword.value, text)
    return Spec(name, tuple(_value(argument, text) for argument in positional), tuple(named.items()))
