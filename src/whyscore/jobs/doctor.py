"""What is installed and what is missing: what `whyscore doctor` shows."""

import platform
import re
from importlib.metadata import PackageNotFoundError, requires, version

from whyscore.errors import StoreError, WhyscoreError
from whyscore.registry import known, load
from whyscore.registry.names import KINDS
from whyscore.scoring.store import Store
from whyscore.version import __version__

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
