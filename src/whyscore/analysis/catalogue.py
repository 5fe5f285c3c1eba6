"""The components there are (`whyscore list`), and the state of the installation (`whyscore doctor`)."""

import dataclasses
import inspect
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from typing import ClassVar, cast, get_type_hints

from whyscore.data.dataset import sample
from whyscore.errors import StoreError, UnknownName, WhyscoreError
from whyscore.protocols import Metric, Reproduces
from whyscore.registry import KINDS, format_value, list_names, load
from whyscore.scoring.store import Store
from whyscore.settings import describe_type, with_article
from whyscore.types import Inputs
from whyscore.types.result import Cell, Record, Result, Table
from whyscore.version import __version__

Card = dict[str, object]
"""What is known of a component."""

DATASETS = "datasets"
_PLURALS = {f"{kind}s": kind for kind in KINDS}
LISTED = (*_PLURALS, DATASETS)
"""What can be listed."""


class Catalogue(Result, list[Card]):
    """Cards of components, in the order of their kinds."""

    kind: ClassVar[str] = "components"
    __repr__ = Result.__repr__

    def __init__(self, cards: Mapping[str, Sequence[Card]], *, verbose: bool = False) -> None:
        super().__init__(card for group in cards.values() for card in group)
        self.cards, self.verbose = cards, verbose

    def records(self) -> Iterator[Record]:
        return ({"kind": kind, **card} for kind, group in self.cards.items() for card in group)

    def display_tables(self) -> list[Table]:
        return [
            Table((kind, "about"), tuple(row for card in group for row in self._rows(card)))
            for kind, group in self.cards.items()
        ]

    def document(self) -> object:
        return self.cards

    def _rows(self, card: Card) -> Iterator[tuple[str, str]]:
        name = str(card["name"])
        if "missing" in card:
            yield name, f"(missing) {card['missing']}"
            return
        reads = cast("Sequence[str] | None", card.get("reads"))
        arrow = "" if reads is None else f" [{', '.join(reads)} {'↑' if card['higher_is_better'] else '↓'}]"
        yield name, f"{card['about']}{arrow}"
        if "status" in card:
            yield "", str(card["status"])
        if self.verbose:
            yield from (("", line) for line in str(card["description"]).splitlines()[1:])
            yield from (("", f"{option}: {about}") for option, about in cast("Card", card["options"]).items())


def list_components(*kinds: str, verbose: bool = False) -> Catalogue:
    """Return one card per component, sorted by name: of `metrics`, `explainers`, ..., `datasets`, or of all kinds.

    A card has its name, what it is about, its description and its options; metrics also say what they read and which
    direction is better, where that is known without a model. A component that cannot be loaded here says what is
    `missing`.

    >>> [card["name"] for card in list_components("executors")]
    ['processes', 'ray', 'serial']
    """
    for kind in kinds:
        if kind not in LISTED:
            raise UnknownName.among("kind of component", kind, LISTED)
    cards = {
        kind: [_sample_card()]
        if kind == DATASETS
        else [_card(_PLURALS[kind], name) for name in list_names(_PLURALS[kind])]
        for kind in dict.fromkeys(kinds or LISTED)
    }
    return Catalogue(cards, verbose=verbose)


def _sample_card() -> Card:
    """Return what is known of the data that ship with whyscore, counted in them."""
    data = sample()
    pair = " to ".join(data.languages or ())
    humans = ", ".join(sorted({name for entry in data.entries for name in entry.human}))
    counts = f"{len(data.ids)} segments, {pair}, {len(data.systems)} systems, human scores: {humans}"
    about = inspect.getdoc(sample) or ""
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
    """Return inputs and direction of a metric that can be made without options, and how far it was compared.

    A metric with a model may have to open it, or even fetch it, to know: nothing is asked of those.
    """
    status: Card = {}
    if isinstance(factory, Reproduces):
        status = {"status": f"parity shown on random weights, {factory.original}; published weights not run here"}
    if not (isinstance(factory, type) and dataclasses.is_dataclass(factory)) or "model" in _options(factory):
        return status
    try:
        metric = cast("Metric", factory())
    except (TypeError, WhyscoreError):
        return status
    reads = [str(flag.name).lower() for flag in Inputs if flag in metric.inputs]
    return {"reads": reads, "higher_is_better": metric.higher_is_better} | status


def _options(factory: object) -> dict[str, str]:
    if not (isinstance(factory, type) and dataclasses.is_dataclass(factory)):
        return {}
    hints, about = get_type_hints(factory), {}
    for field in dataclasses.fields(factory):
        if field.init:
            kind = (
                with_article(field.metadata["kind"]) if "kind" in field.metadata else describe_type(hints[field.name])
            )
            value: object = field.default
            if value is None or isinstance(value, bool | int | float | str):
                kind += f", default {format_value(value)}"
            about[field.name] = kind
    return about


_REQUIREMENT = re.compile(r"^([\w.-]+)[^;]*(?:;.*extra == ['\"]([\w-]+)['\"])?")
_HIDDEN = ("dev",)


class Installation(Result, dict[str, object]):
    """The state of an installation: versions, packages by extra, the store, and what cannot be loaded."""

    kind: ClassVar[str] = "installation"
    __repr__ = Result.__repr__

    def tables(self, *, long: bool = False) -> list[Table]:
        if long:
            return [Table(("fact", "value"), tuple(_facts(self)))]
        extras = cast("dict[str, dict[str, str | None]]", self["packages"])
        rows = [_extra(extra, versions) for extra, versions in extras.items()]
        store = cast("dict[str, object]", self["store"])
        problem = store.get("problem")
        about = problem or f"{store.get('segments', 0)} scores, {store.get('bytes', 0)} bytes"
        rows.append(("-" if problem else "✓", "store", f"{store['path']} ({about})", ""))
        broken = cast("dict[str, str]", self["broken"])
        rows += [("-", name, reason, "") for name, reason in broken.items()]
        title = f"whyscore {self['whyscore']}, Python {self['python']}, {self['platform']}"
        return [Table(("", "part", title, "to do"), tuple(rows))]

    def document(self) -> object:
        return dict(self)


def _extra(extra: str, versions: Mapping[str, str | None]) -> tuple[str, str, str, str]:
    missing = [name for name, version in versions.items() if version is None]
    cure = f"missing: {', '.join(missing)}. pip install 'whyscore[{extra}]'" if missing else ""
    there = ", ".join(f"{name} {installed}" for name, installed in versions.items() if installed)
    return "-" if missing else "✓", extra, there, cure


def _facts(value: object, name: str = "") -> Iterator[tuple[str, Cell]]:
    """Yield what a nested document holds, the names joined by dots."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _facts(inner, f"{name}.{key}" if name else str(key))
    else:
        yield name, cast("Cell", value)


def doctor(store: Store | None = None) -> Installation:
    """Return the state of this installation: versions, packages by extra, the store, and what cannot be loaded.

    Args:
        store: The score store to look at, for example `whyscore.store()`; none if None.
    """
    return Installation(
        {
            "whyscore": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "packages": packages(),
            "store": _state(store),
            "broken": find_broken(),
        }
    )


def packages() -> dict[str, dict[str, str | None]]:
    """Return the version of every package whyscore can use, by extra ("core" for what it always needs)."""
    versions: dict[str, dict[str, str | None]] = {}
    for line in requires("whyscore") or ():
        match = _REQUIREMENT.match(line)
        if match and match[2] not in _HIDDEN:
            versions.setdefault(match[2] or "core", {})[match[1]] = _version(match[1])
    return versions


def find_broken() -> dict[str, str]:
    """Return the components that cannot be loaded here, each with the reason."""
    reasons = {}
    for kind in KINDS:
        for name in list_names(kind):
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
        segments = sum(metric.segments for metric in store.held())
    except StoreError as error:
        return {"path": str(store.path), "problem": str(error)}
    return {"path": str(store.path), "bytes": store.size(), "segments": segments}
