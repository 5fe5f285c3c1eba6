"""What a difference between two systems means in human terms: how often raters preferred the system that is ahead.

The numbers come with the package (`deltas.json`, made by scripts/make_deltas.py, which says how): of all pairs of
systems in the WMT21 metrics task that a metric puts apart by about as much, on about as many segments, the share where
MQM ratings prefer the same system. They hold for the metric's settings, the language pair and the domain they were
measured on: anything else is refused, with the reason.
"""

from collections.abc import Iterable
from functools import cache
from importlib import resources

import msgspec

from whyscore.types import HumanPreference, Signature

_UNIMPORTANT = ("version",)
"""Facts of a signature that may differ: versions of a package change no score that is compared with tests."""


class Bin(msgspec.Struct, frozen=True, rename={"least": "from", "most": "to"}):
    """Differences of about one size: the share of pairs in which humans agree, and its interval."""

    least: float
    most: float | None
    pairs: int
    share: float
    low: float
    high: float


class Preferences(msgspec.Struct, frozen=True):
    """The bins of a metric on a language pair, in one domain or in all (None), on so many segments or more."""

    metric: str
    signature: str
    languages: str
    domain: str | None
    segments: int
    sets: tuple[str, ...]
    bins: tuple[Bin, ...]


class _File(msgspec.Struct, frozen=True):
    tables: tuple[Preferences, ...]


@cache
def read_preferences() -> tuple[Preferences, ...]:
    """Return the table that comes with the package."""
    text = (resources.files("whyscore") / "analysis" / "compare" / "deltas.json").read_bytes()
    return msgspec.json.decode(text, type=_File).tables


def is_measured(signature: Signature) -> bool:
    """Return whether anything was measured for a metric, with whatever settings."""
    return any(one.metric == signature.spec.partition("(")[0] for one in read_preferences())


def find_preferences(
    signature: Signature, languages: tuple[str, str] | None, domain: str | None, segments: int
) -> Preferences | str:
    """Return what is known for a metric on such data, or the reason why nothing is."""
    name = signature.spec.partition("(")[0]
    known = [one for one in read_preferences() if one.metric == name]
    if not known:
        return f"no human preferences were measured for {name}"
    if languages is None:
        return "the language pair is not known: name it with -l"
    pair = "-".join(code.partition("-")[0].partition("_")[0].lower() for code in languages)
    own = [one for one in known if one.languages == pair]
    if not own:
        return f"no human preferences were measured for {pair} (there are: {_listed(one.languages for one in known)})"
    if not any(_same(Signature.parse(one.signature), signature) for one in own):
        return f"human preferences were measured with {own[0].signature}"
    if domain is not None and not any(one.domain == domain for one in own):
        there = _listed(one.domain for one in own if one.domain)
        return f"no human preferences were measured for {pair} in the domain {domain!r} (there are: {there})"
    fitting = [one for one in own if one.domain == domain and one.segments <= segments]
    least = min(one.segments for one in own if one.domain == domain)
    too_few = f"{segments} segments are too few: human preferences were measured on {least} or more"
    return max(fitting, key=lambda one: one.segments) if fitting else too_few


def preference(found: Preferences | str, difference: float) -> HumanPreference:
    """Return how often humans preferred the system that is ahead by this much, or why that is not known."""
    if isinstance(found, str):
        return HumanPreference(reason=found)
    size = abs(difference)
    own = next((one for one in found.bins if one.least <= size and (one.most is None or size < one.most)), None)
    if own is None or not size:
        return HumanPreference(reason="too few rated pairs of systems differ by that much")
    return HumanPreference(
        *(own.share, own.low, own.high, own.pairs, own.least, own.most, found.segments), origin=", ".join(found.sets)
    )


def _same(one: Signature, other: Signature) -> bool:
    facts = [{name: fact for name, fact in own.facts if name not in _UNIMPORTANT} for own in (one, other)]
    return one.spec == other.spec and facts[0] == facts[1]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names)))
