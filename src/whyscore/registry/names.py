"""Which class a name stands for. Built-in names are import paths, so nothing is imported before it is used.

Outsiders join by an entry point in the group `whyscore.metrics`, `whyscore.explainers` ..., or by `register`.
A name can be taken once; a second claim is refused with both claimants named.
"""

import importlib
import inspect
import sys
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

from whyscore.errors import ContractError, MissingExtra, SpecError, UnknownName
from whyscore.registry.specs import USUAL

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
        "lookup": "whyscore.metrics.lookup:Lookup",
        "mee": "whyscore.metrics.mee.metric:Mee",
        "mee2": "whyscore.metrics.mee.metric:Mee2",
        "mee4": "whyscore.metrics.mee.metric:Mee4",
        "metricx": "whyscore.metrics.learned.metricx:MetricX",
        "moverscore": "whyscore.metrics.matching.moverscore:MoverScore",
        "rouge": "whyscore.metrics.lexical.rouge:Rouge",
        "sbert": "whyscore.metrics.learned.sbert:SBert",
        "ter": "whyscore.metrics.lexical.ter:Ter",
        "token_f1": "whyscore.metrics.lexical.token_f1:TokenF1",
        "transquest": "whyscore.metrics.learned.transquest:TransQuest",
        "xmoverscore": "whyscore.metrics.matching.moverscore:XMoverScore",
        "xbertscore": "whyscore.metrics.matching.bertscore:XBertScore",
    },
    "explainer": {
        "attention": "whyscore.explainers.inside.attention:Attention",
        "ensemble": "whyscore.explainers.ensemble:Ensemble",
        "erasure": "whyscore.explainers.masks.erasure:Erasure",
        "gradient": "whyscore.explainers.inside.gradient:Gradient",
        "greedy": "whyscore.explainers.masks.greedy:Greedy",
        "input_marginalization": "whyscore.explainers.masks.input_marginalization:InputMarginalization",
        "intrinsic": "whyscore.explainers.intrinsic:Intrinsic",
        "lime": "whyscore.explainers.masks.lime:Lime",
        "logprob": "whyscore.explainers.logprob:LogProb",
        "matching": "whyscore.explainers.intrinsic:Matching",
        "partition": "whyscore.explainers.masks.partition:Partition",
        "random": "whyscore.explainers.masks.random:Random",
        "shap": "whyscore.explainers.masks.shap:Shap",
        "tagging": "whyscore.explainers.intrinsic:Tagging",
        "token_matching": "whyscore.explainers.intrinsic:TokenMatching",
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
        "pretagged": "whyscore.taggers.pretagged:Pretagged",
        "rules": "whyscore.taggers.rules:Rules",
        "spacy": "whyscore.taggers.spacy:Spacy",
        "stanza": "whyscore.taggers.stanza:Stanza",
    },
    "scorer": {
        "lexicon": "whyscore.analysis.decompose.sentences:LexiconScorer",
        "sentiment": "whyscore.analysis.decompose.sentences:Sentiment",
    },
    "aggregator": {
        "exp_mean": "whyscore.aggregate.means:ExpMean",
        "geometric": "whyscore.aggregate.means:Geometric",
        "lehmer": "whyscore.aggregate.means:Lehmer",
        "max": "whyscore.aggregate.means:Max",
        "mean": "whyscore.aggregate.means:Mean",
        "min": "whyscore.aggregate.means:Min",
        "per_side": "whyscore.aggregate.power:PerSide",
        "power_mean": "whyscore.aggregate.power:PowerMean",
        "quantile": "whyscore.aggregate.means:Quantile",
        "trimmed": "whyscore.aggregate.means:Trimmed",
    },
    "encoder": {
        "embedded": "whyscore.models.encoders.embedded:Embedded",
        "power_means": "whyscore.models.encoders.power_means:PowerMeans",
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
        raise SpecError(f"{name!r} cannot name a {kind}: use letters, digits and _")
    holder = _registered[kind].get(name)
    if holder is factory:
        return
    if holder is not None or name in known(kind):
        taken = _where(holder) if holder is not None else BUILT_IN[kind].get(name) or _plugins(kind)[name].value
        raise SpecError(f"the {kind} name {name!r} is taken by {taken}; {_where(factory)} needs another one")
    _registered[kind][name] = factory


def register_metric(name: str, factory: Factory) -> None:
    """Give a metric class a name, so that it can be asked for like any other."""
    register("metric", name, factory)


def known(kind: str) -> list[str]:
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
    if kind == "metric" and name.casefold() in USUAL:
        raise UnknownName(f"no metric named {name!r}: write {USUAL[name.casefold()]}")
    raise UnknownName.among(kind, name, known(kind))


def name_of(kind: str, factory: type) -> str | None:
    """Return the name that stands for a class, or None."""
    path = f"{factory.__module__}:{factory.__qualname__}"
    for name, target in BUILT_IN[kind].items():
        if target == path:
            return name
    for name, held in _registered[kind].items():
        if held is factory:
            return name
    return next((name for name, plugin in _plugins(kind).items() if plugin.value == path), None)


def _plugins(kind: str) -> dict[str, EntryPoint]:
    return _installed(kind, tuple(sys.path))


@lru_cache(maxsize=64)
def _installed(kind: str, _: tuple[str, ...]) -> dict[str, EntryPoint]:
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
