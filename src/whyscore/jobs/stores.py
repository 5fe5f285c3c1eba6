"""The score store of this user, where none is named."""

from pathlib import Path

from platformdirs import user_cache_path

from whyscore.scoring.store import Store


def store(path: str | Path | None = None) -> Store:
    """Return the score store at a path, or the one in the user's cache folder, which the command line uses too.

    It knows its size (`size()`, `held()`), forgets (`prune(days=30)`) and goes into `Resources(store=...)`;
    `whyscore.scoring.store` checks and repairs it. Nothing is made on disk before something is stored.
    """
    return Store(user_cache_path("whyscore") / "scores.sqlite" if path is None else Path(path))
