"""The components there are, what they read and which options they take: what `whyscore list` shows."""

import dataclasses
import inspect
from typing import cast, get_type_hints

from whyscore.data import sample as sample_module
from whyscore.data.sample import sample
from whyscore.errors import UnknownName, WhyscoreError
from whyscore.options import described
from whyscore.protocols import Metric
from whyscore.registry import known, load
from whyscore.registry.names import KINDS
from whyscore.registry.specs import written
from whyscore.types import Inputs

Card = dict[str, object]
"""What is known of a component."""

DATASETS = "datasets"
_PLURALS = {f"{kind}s": kind for kind in KINDS}
LISTED = (*_PLURALS, DATASETS)
"""What can be listed."""


def list_components(what: str) -> list[Card]:
    """Return one card per component of a kind, sorted by name: `metrics`, `explainers`, ..., or `datasets`.

    A card has its name, what it is about, its description and its options; metrics also say what they read and which
    direction is better, where that is known without a model. A component that cannot be loaded here says what is
    `missing`.

    >>> [card["name"] for card in list_components("executors")]
    ['processes', 'ray', 'serial']
    """
    if what not in LISTED:
        raise UnknownName.among("kind of component", what, LISTED)
    if what == DATASETS:
        return [_sample_card()]
    return [_card(_PLURALS[what], name) for name in known(_PLURALS[what])]


def _sample_card() -> Card:
    """Return what is known of the data that ship with whyscore, counted in them."""
    data = sample()
    pair = " to ".join(data.languages or ())
    humans = ", ".join(sorted({name for entry in data.entries for name in entry.human}))
    counts = f"{len(data.ids)} segments, {pair}, {len(data.systems)} systems, human scores: {humans}"
    about = inspect.getdoc(sample_module) or ""
    return {"name": "sample", "about": f"{counts} (--sample)", "description": about, "options": {}}


def _card(kind: str, name: str) -> Card:
    """Return what is known of a component without making one: what it is, what it reads, its options."""
    try:
        factory = load(kind, name)
    except WhyscoreError as error:
        return {"name": name, "missing": str(error)}
    documented = inspect.getdoc(factory) or ""
    return {
        "name": name,
        "about": documented.partition("\n")[0],
        "description": documented,
        **(_reads(factory) if kind == "metric" else {}),
        "options": _options(factory),
    }


def _reads(factory: object) -> Card:
    """Return inputs and direction of a metric that can be made without options.

    A metric with a model may have to open it, or even fetch it, to know: nothing is asked of those.
    """
    if not (isinstance(factory, type) and dataclasses.is_dataclass(factory)) or "model" in _options(factory):
        return {}
    try:
        metric = cast("Metric", factory())
    except (TypeError, WhyscoreError):
        return {}
    return {
        "reads": [str(flag.name).lower() for flag in Inputs if flag in metric.inputs],
        "higher_is_better": metric.higher_is_better,
    }


def _options(factory: object) -> dict[str, str]:
    if not (isinstance(factory, type) and dataclasses.is_dataclass(factory)):
        return {}
    hints = get_type_hints(factory)
    return {
        field.name: f"{_kind(field, hints[field.name])}{_default(field)}"
        for field in dataclasses.fields(factory)
        if field.init
    }


def _kind(field: "dataclasses.Field[object]", hint: object) -> str:
    return f"a {field.metadata['kind']}" if "kind" in field.metadata else described(hint)


def _default(field: "dataclasses.Field[object]") -> str:
    value = field.default
    if value is None or isinstance(value, bool | int | float | str):
        return f", default {written(value)}"
    return ""
