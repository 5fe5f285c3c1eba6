"""Names and spec strings: `lime(samples=200)` -> object -> the same string.

1. Spec strings are read with `ast` and never executed:

       chrf
       lime(samples=200)
       replace("UNKWORDZ")
       boosted(metric=chrf, explainer=lime(samples=200), p=-3.0, w=0.8)

   Values are literals, tuples of values, other specs, or bare words, which stand for themselves (`rouge(kind=L)`).
   `metric.py:function` and `package.module:function` are short for `callable("...")`.
2. Names stand for classes. Built-in names are import paths, so nothing is imported before it is used. Outsiders join
   by an entry point in the group `whyscore.metrics`, `whyscore.explainers` ..., or by `register`. A name can be taken
   once; a second claim is refused with both claimants named.
3. Components are dataclasses, so their fields are their options: names, order, defaults and types are read from them,
   and every wrong option is answered with the ones there are.
4. Specs that stand in data files (shards, calibrations) come from others. `build_from_file` refuses those that would
   run code or ask a service: fields made by `runs_code`, anywhere inside, unless the user has named that.
"""

import ast
import dataclasses
import importlib
import inspect
import json
import math
import re
import sys
import typing
from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import get_origin, get_type_hints

from whyscore.errors import ContractError, DataError, MissingExtra, SpecError, UnknownName
from whyscore.settings import CODE, describe_type, fits, widen_number, with_article

_FUNCTION = re.compile(r"[^\s(),='\"]+:[A-Za-z_][\w.]*")
_IMPOSSIBLE = re.compile("[\0\ud800-\udc7f\udd00-\udfff]")
"""Characters that no text and no path has; the other halves of surrogate pairs stand for bytes of paths."""
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
"""What other tools call things, and the spec it stands for."""

_CONSTANTS = {"inf": math.inf, "nan": math.nan, "true": True, "false": False, "none": None}


@dataclass(frozen=True, slots=True)
class Spec:
    """A name with its arguments, before anything is looked up."""

    name: str
    positional: tuple["Value", ...] = ()
    named: tuple[tuple[str, "Value"], ...] = ()

    def __str__(self) -> str:
        arguments = [format_value(value) for value in self.positional]
        arguments += [f"{name}={format_value(value)}" for name, value in self.named]
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
    _refuse_characters(stripped, text)
    if stripped.casefold() in USUAL and not stripped.isidentifier():
        return parse(USUAL[stripped.casefold()])
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
        raise SpecError(f"cannot read the spec {text!r}: separate several specs with spaces, not commas: {apart}")
    raise SpecError(f"cannot read the spec {text!r}: expected a name such as chrf or lime(samples=200)")


def _refuse_characters(value: object, text: str) -> None:
    if isinstance(value, str) and (character := _IMPOSSIBLE.search(value)):
        raise SpecError(f"cannot read the spec {text!r}: no text or path has the character {character[0]!r}")


def format_value(value: Value) -> str:
    """Return a value as it stands in a spec."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, tuple):
        return f"({', '.join(map(format_value, value))}{',' if len(value) == 1 else ''})"
    return str(value) if isinstance(value, Spec) else repr(value)


def _value(node: ast.expr, text: str) -> Value:
    """Return what one node of the syntax tree stands for; everything but literals, names and calls is refused."""
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None as value):
            _refuse_characters(value, text)
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


Factory = Callable[..., object]

BUILT_IN: dict[str, dict[str, str]] = {
    "metric": {
        "bartscore": "whyscore.metrics.learned.bartscore:BartScore",
        "bertscore": "whyscore.metrics.matching.bertscore:BertScore",
        "bleu": "whyscore.metrics.lexical.bleu:Bleu",
        "boosted": "whyscore.metrics.boosted:Boosted",
        "callable": "whyscore.metrics.callable:Callable",
        "chrf": "whyscore.metrics.lexical.chrf:Chrf",
        "comet": "whyscore.metrics.learned.comet.metric:Comet",
        "copy": "whyscore.metrics.controls:Copy",
        "ensemble": "whyscore.metrics.ensemble:Ensemble",
        "length": "whyscore.metrics.controls:Length",
        "length_ratio": "whyscore.metrics.controls:LengthRatio",
        "judge": "whyscore.metrics.judge.metric:Judge",
        "lmscore": "whyscore.metrics.learned.lmscore:LmScore",
        "lookup": "whyscore.metrics.lookup:Lookup",
        "mee": "whyscore.metrics.mee.metric:Mee",
        "mee2": "whyscore.metrics.mee.metric:Mee2",
        "mee4": "whyscore.metrics.mee.metric:Mee4",
        "metricx": "whyscore.metrics.learned.metricx:MetricX",
        "moverscore": "whyscore.metrics.matching.moverscore:MoverScore",
        "qe": "whyscore.metrics.estimators.qe:QE",
        "random": "whyscore.metrics.controls:Random",
        "rouge": "whyscore.metrics.lexical.rouge:Rouge",
        "sbert": "whyscore.metrics.learned.sbert:SBert",
        "ter": "whyscore.metrics.lexical.ter:Ter",
        "token_f1": "whyscore.metrics.lexical.token_f1:TokenF1",
        "transquest": "whyscore.metrics.learned.transquest:TransQuest",
        "xmoverscore": "whyscore.metrics.matching.moverscore:XMoverScore",
        "xbertscore": "whyscore.metrics.matching.bertscore:XBertScore",
    },
    "explainer": {
        "attention": "whyscore.explainers.inside:Attention",
        "ensemble": "whyscore.explainers.ensemble:Ensemble",
        "erasure": "whyscore.explainers.masks.erasure:Erasure",
        "evidence": "whyscore.explainers.evidence:WordEvidence",
        "gradient": "whyscore.explainers.inside:Gradient",
        "greedy": "whyscore.explainers.masks.erasure:Greedy",
        "input_marginalization": "whyscore.explainers.masks.erasure:InputMarginalization",
        "intrinsic": "whyscore.explainers.engine:Intrinsic",
        "lime": "whyscore.explainers.masks.lime:Lime",
        "logprob": "whyscore.explainers.logprob:LogProb",
        "matching": "whyscore.explainers.engine:Matching",
        "partition": "whyscore.explainers.masks.partition:Partition",
        "random": "whyscore.explainers.masks.erasure:Random",
        "shap": "whyscore.explainers.masks.shap:Shap",
        "tagging": "whyscore.explainers.engine:Tagging",
        "token_matching": "whyscore.explainers.engine:TokenMatching",
    },
    "masker": {
        "delete": "whyscore.text.maskers:Delete",
        "infill": "whyscore.text.infill:Infill",
        "infill_file": "whyscore.text.infill:InfillFile",
        "infill_model": "whyscore.models.language_models:InfillModel",
        "replace": "whyscore.text.maskers:Replace",
    },
    "splitter": {
        "auto": "whyscore.text.splitters:Auto",
        "char": "whyscore.text.splitters:Characters",
        "chunk": "whyscore.text.splitters:Chunks",
        "sentence": "whyscore.text.splitters:Sentences",
        "unicode": "whyscore.text.splitters:UnicodeWords",
        "word": "whyscore.text.splitters:WhiteSpace",
    },
    "tagger": {
        "conllu": "whyscore.taggers.conllu:Conllu",
        "hanta": "whyscore.taggers.hanta:Hanta",
        "lexicon": "whyscore.taggers.lexicon:Lexicon",
        "nltk": "whyscore.taggers.nltk:Nltk",
        "pretagged": "whyscore.taggers.aligned:Pretagged",
        "rules": "whyscore.taggers.rules:Rules",
        "spacy": "whyscore.taggers.spacy:Spacy",
        "stanza": "whyscore.taggers.stanza:Stanza",
    },
    "scorer": {
        "lexicon": "whyscore.analysis.decompose.sentences:LexiconScorer",
        "sentiment": "whyscore.analysis.decompose.sentences:Sentiment",
    },
    "aggregator": {
        "exp_mean": "whyscore.aggregate:ExpMean",
        "geometric": "whyscore.aggregate:Geometric",
        "lehmer": "whyscore.aggregate:Lehmer",
        "max": "whyscore.aggregate:Max",
        "mean": "whyscore.aggregate:Mean",
        "min": "whyscore.aggregate:Min",
        "per_side": "whyscore.aggregate:PerSide",
        "power_mean": "whyscore.aggregate:PowerMean",
        "quantile": "whyscore.aggregate:Quantile",
        "trimmed": "whyscore.aggregate:Trimmed",
    },
    "encoder": {
        "embedded": "whyscore.models.encoders.embedded:Embedded",
        "power_means": "whyscore.models.encoders.transformer:PowerMeans",
        "sentence": "whyscore.models.encoders.sentence:Sentence",
        "static": "whyscore.models.encoders.static:Static",
        "transformer": "whyscore.models.encoders.transformer:Transformer",
    },
    "executor": {
        "processes": "whyscore.scoring.executors:Processes",
        "ray": "whyscore.scoring.ray:Ray",
        "serial": "whyscore.scoring.executors:Serial",
    },
}

KINDS = tuple(BUILT_IN)

_registered: dict[str, dict[str, Factory]] = {kind: {} for kind in KINDS}


def register(kind: str, name: str, factory: Factory) -> None:
    """Give a component class a name for this process; `kind` is metric, explainer, masker, ..."""
    if kind not in BUILT_IN:
        raise UnknownName.among("kind of component", kind, KINDS)
    if not name.isidentifier():
        raise SpecError(f"{name!r} cannot name {with_article(kind)}: use letters, digits and _")
    holder = _registered[kind].get(name)
    if holder is factory:
        return
    if holder is not None or name in list_names(kind):
        taken = _where(holder) if holder is not None else BUILT_IN[kind].get(name) or _plugins(kind)[name].value
        raise SpecError(f"the {kind} name {name!r} is taken by {taken}; {_where(factory)} needs another one")
    _registered[kind][name] = factory


def register_metric(name: str, factory: Factory) -> None:
    """Give a metric class a name, so that it can be asked for like any other."""
    register("metric", name, factory)


def list_names(kind: str) -> list[str]:
    """Return every name of a kind, sorted: built in, registered and from installed plugins."""
    return sorted({*BUILT_IN[kind], *_registered[kind], *_plugins(kind)})


def load(kind: str, name: str) -> Factory:
    """Return the class that a name stands for, importing it now."""
    if name in _registered[kind]:
        return _registered[kind][name]
    if name in BUILT_IN[kind]:
        return _import(name, BUILT_IN[kind][name])
    plugins = _plugins(kind)
    if name in plugins:
        return _plugin(name, plugins[name])
    same = [candidate for candidate in list_names(kind) if candidate.casefold() == name.casefold()]
    if len(same) == 1:
        return load(kind, same[0])
    raise UnknownName.among(kind, name, list_names(kind))


def name_of(kind: str, factory: type) -> str | None:
    """Return the name that stands for a class, or None."""
    path = f"{factory.__module__}:{factory.__qualname__}"
    for name, target in BUILT_IN[kind].items():
        if target == path:
            return name
    for name, registered in _registered[kind].items():
        if registered is factory:
            return name
    return next((name for name, plugin in _plugins(kind).items() if plugin.value == path), None)


def _plugins(kind: str) -> dict[str, EntryPoint]:
    return _find_installed(kind, tuple(sys.path))


@lru_cache(maxsize=64)
def _find_installed(kind: str, _: tuple[str, ...]) -> dict[str, EntryPoint]:
    """Return the plugins along a path; looking through all installed packages takes tens of milliseconds."""
    return {point.name: point for point in entry_points(group=f"whyscore.{kind}s") if point.name not in BUILT_IN[kind]}


def _import(name: str, target: str) -> Factory:
    module, _, attribute = target.partition(":")
    try:
        factory: Factory = getattr(importlib.import_module(module), attribute)
    except MissingExtra:
        raise
    except ImportError as error:
        raise MissingExtra(f"{name} needs the package {error.name!r}: pip install {error.name}") from error
    return factory


def _plugin(name: str, point: EntryPoint) -> Factory:
    try:
        factory: Factory = point.load()
    except Exception as error:
        origin = point.dist.name if point.dist else "an unknown package"
        raise ContractError(f"the plugin {name!r} of {origin} ({point.value}) cannot be loaded: {error}") from error
    return factory


def _where(factory: Factory) -> str:
    try:
        return f"{inspect.getsourcefile(factory)}:{inspect.getsourcelines(factory)[1]}"
    except (TypeError, OSError):
        return repr(factory)


_KIND = "kind"


_REFUSE: ContextVar[Callable[[str], None] | None] = ContextVar("refuse", default=None)
"""What is asked about the code of every component while a spec of a data file is built."""


def component(kind: str, **options: object) -> typing.Any:  # noqa: ANN401 - dataclasses.field is typed this way too
    """Return a dataclass field that holds another component, so that specs can be nested.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Twice:
    ...     metric: object = component("metric", default=None)
    """
    return dataclasses.field(metadata={_KIND: kind}, **options)  # type: ignore[call-overload]


def runs_code(**options: object) -> typing.Any:  # noqa: ANN401 - as above
    """Return a dataclass field whose value, unless it is empty, makes the component run code of others."""
    return dataclasses.field(metadata={CODE: True}, **options)  # type: ignore[call-overload]


def build_from_file(
    spec: str,
    kind: str,
    file: object,
    allow_code: Collection[str] | None = None,
) -> typing.Any:  # noqa: ANN401 - the kind decides the protocol
    """Return the component that a spec in a data file describes, unless it runs code that the user has not named.

    `allow_code` holds the files and modules that the user trusts; None where the user cannot name any.
    """
    allowed = {*(allow_code or ()), *(str(Path(path).resolve()) for path in allow_code or ())}

    def refuse(code: str) -> None:
        if not allowed & {code, str(Path(code).resolve())}:
            raise DataError(
                f"{file}: {spec} would {'ask' if '://' in code else 'run code from'} {code}; code named in a data "
                "file is not run"
                + (f". If you trust {code}, add: --allow-code {code}" if allow_code is not None else "")
            )

    # Each component is looked at before it is made: a metric may call the metrics inside of it when it is made.
    token = _REFUSE.set(refuse)
    try:
        return build(spec, kind)
    except (SpecError, UnknownName) as error:
        raise DataError(str(error), file=str(file)) from error
    finally:
        _REFUSE.reset(token)


def _code(value: object, model: object) -> str:
    """Return the code of a field: a function by its name, an address, or a flag beside the model that may hold code."""
    if isinstance(value, str) and "://" not in value:
        return value.rpartition(":")[0]
    return str(model if value is True else value)


def build(spec: str | Spec, kind: str = "metric") -> typing.Any:  # noqa: ANN401 - the kind decides the protocol
    """Return the component that a spec describes; `kind` says where to look its name up.

    >>> build("chrf(word_order=2)").word_order
    2
    """
    parsed = parse(spec) if isinstance(spec, str) else spec
    if kind == "metric" and parsed == Spec(parsed.name) and parsed.name not in list_names(kind):
        parsed = parse(USUAL.get(parsed.name.casefold(), parsed.name))
    factory = load(kind, parsed.name)
    if not dataclasses.is_dataclass(factory):
        return _plain(factory, parsed)
    arguments = _arguments(factory, parsed)
    refuse = _REFUSE.get()
    if refuse is not None:
        for field in dataclasses.fields(factory):
            value = arguments.get(field.name, field.default)
            if field.metadata.get(CODE) and value and value is not dataclasses.MISSING:
                refuse(_code(value, arguments.get("model", value)))
    return factory(**arguments)


def spec_of(thing: object) -> str:
    """Return the canonical spec that rebuilds a component; options at their default are left out."""
    return str(_spec(thing))


def _plain(factory: Factory, spec: Spec) -> object:
    try:
        return factory(*spec.positional, **dict(spec.named))
    except TypeError as error:
        raise SpecError(f"{spec.name}: {error}") from error


def _arguments(factory: typing.Any, spec: Spec) -> dict[str, object]:  # noqa: ANN401 - any dataclass
    fields = {field.name: field for field in dataclasses.fields(factory) if field.init}
    hints = get_type_hints(factory)
    values = _name_arguments(spec, list(fields), hints)
    arguments: dict[str, object] = {}
    for name, value in values.items():
        kind = fields[name].metadata.get(_KIND)
        arguments[name] = _convert(spec.name, name, value, hints[name]) if kind is None else _build_nested(value, kind)
    missing = [name for name, field in fields.items() if name not in values and _is_required(field)]
    if missing:
        raise SpecError(f"{spec.name} needs {', '.join(missing)}: write {spec.name}({missing[0]}=...)")
    return arguments


def _name_arguments(spec: Spec, order: list[str], hints: Mapping[str, object]) -> dict[str, Value]:
    """Return all arguments by name: positional ones fill the fields in order, a leading tuple field takes them all."""
    positional = spec.positional
    takes_all = bool(order) and get_origin(hints[order[0]]) is tuple
    if takes_all and positional and not (len(positional) == 1 and isinstance(positional[0], tuple)):
        positional = (positional,)
    if len(positional) > len(order):
        raise SpecError(f"{spec.name} takes at most {len(order)} options, got {len(positional)}: {spec}")
    arguments = dict(zip(order, positional, strict=False))
    for name, value in spec.named:
        if name not in order:
            error = UnknownName.among(f"option of {spec.name}", name, order)
            raise SpecError(str(error) if order else f"{spec.name} takes no options, got {name!r}")
        if name in arguments:
            raise SpecError(f"{spec.name}: {name} is given twice in {spec}")
        arguments[name] = value
    return arguments


def _build_nested(value: Value, kind: str) -> object:
    """Return the component (or the tuple of them) that a value names; None stays None."""
    if isinstance(value, tuple):
        return tuple(_build_nested(item, kind) for item in value)
    if isinstance(value, str | Spec):
        return build(value, kind)
    if value is None:
        return None
    raise SpecError(f"expected {with_article(kind)}, got {value!r}: write its name or name(option=value)")


def _convert(owner: str, name: str, value: Value, hint: object) -> object:
    widened = widen_number(value, hint)
    if not fits(widened, hint):
        raise SpecError(f"{owner}: {name} is {_display(value)}, expected {describe_type(hint)}")
    return widened


def _is_required(field: "dataclasses.Field[object]") -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _spec_name(thing: object) -> str:
    for kind in KINDS:
        name = name_of(kind, type(thing))
        if name is not None:
            return name
    return type(thing).__name__


def _spec(thing: object) -> Spec:
    name = _spec_name(thing)
    if not dataclasses.is_dataclass(thing):
        if all(name not in list_names(kind) for kind in KINDS):
            raise SpecError(f"{thing!r} has no spec: register its class under a name first")
        return Spec(name)
    named = []
    for field in dataclasses.fields(thing):
        value = getattr(thing, field.name)
        if field.init and (_is_required(field) or value != _default(field)):
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


def _display(value: Value) -> str:
    return str(value) if isinstance(value, Spec) else repr(value)
