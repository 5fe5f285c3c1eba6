"""Hearing of every text that a model cuts: a warning tells of it once per model only."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_watching: ContextVar[list[str] | None] = ContextVar("watching", default=None)


@contextmanager
def watched_cuts() -> Iterator[list[str]]:
    """Give a list that gets a sentence whenever texts are cut meanwhile, whether that was told before or not."""
    seen: list[str] = []
    token = _watching.set(seen)
    try:
        yield seen
    finally:
        _watching.reset(token)


def note_cut(told: str) -> None:
    """Tell whoever watches that texts were cut."""
    seen = _watching.get()
    if seen is not None:
        seen.append(told)
