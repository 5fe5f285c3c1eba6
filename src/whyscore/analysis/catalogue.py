"""The components there are, what they read and which options they take: what `whyscore list` shows.

What is installed and what is missing: what `whyscore doctor` shows.
"""

import dataclasses
import inspect
import platform
import re
from importlib.metadata import PackageNotFoundError, requires, version
from typing import cast, get_type_hints

from whyscore.data import sample as sample_module
from whyscore.data.sample import sample
from whyscore.errors import StoreError, UnknownName, WhyscoreError
from whyscore.options import described
from whyscore.protocols import Metric
from whyscore.registry import known, load
from whyscore.registry.names import KINDS
from whyscore.registry.specs import written
from whyscore.scoring.store import Store
from whyscore.types import Inputs
from whyscore.version import __version__

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


_REQUIREMENT = re.compile(r"^([\w.-]+)[^;]*(?:;.*extra == ['\"]([\w-]+)['\"])?")
_HIDDEN = ("dev",)


def doctor(store: Store | None = None) -> dict[str, object]:
    """Return the state of this installation: versions, packages by extra, the store, and what cannot be loaded.

    Args:
        store: The score store to look at, for example `whyscore.store()`; none if None.
    """
    return {
        "whyscore": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": packages(),
        "store": _state(store),
        "broken": broken(),
    }


def packages() -> dict[str, dict[str, str | None]]:
    """Return the version of every package whyscore can use, by extra ("core" for what it always needs)."""
    found: dict[str, dict[str, str | None]] = {}
    for line in requires("whyscore") or ():
        match = _REQUIREMENT.match(line)
        if match and match[2] not in _HIDDEN:
            found.setdefault(match[2] or "core", {})[match[1]] = _version(match[1])
    return found


def broken() -> dict[str, str]:
    """Return the components that cannot be loaded here, each with the reason."""
    reasons = {}
    for kind in KINDS:
        for name in known(kind):
            try:
                load(kind, name)
            except WhyscoreError as error:
                reasons[f"{kind} {name}"] = str(error)
    return reasons


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _state(store: Store | None) -> dict[str, object]:
    if store is None:
        return {"path": None}
    try:
        segments = sum(held.segments for held in store.held())
    except StoreError as error:
        return {"path": str(store.path), "problem": str(error)}
    return {"path": str(store.path), "bytes": store.size(), "segments": segments}
