"""Encoders that remember: what was prepared of a text for one metric serves all later calls, within a bound of bytes.

1. A metric that is asked about thousands of probes meets the texts that do not change again and again, in one call or
   in many. They are encoded once.
2. The least recently used texts are forgotten first. A model in a folder whose files change is read anew.
"""

from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from whyscore.metrics.matching_phrases import by_phrases
from whyscore.metrics.matching_texts import Reader, Specials, by_pieces
from whyscore.metrics.matching_weights import read_idf
from whyscore.models.encoders.loading import warn_uncovered
from whyscore.models.pairs import Pinned
from whyscore.protocols import Encoder
from whyscore.types import Signature

# So many metrics at a time (say the members of an ensemble) may remember texts, within these bytes each.
_METRICS, _MEMORY = 4, 512 * 1024**2


class Kept(NamedTuple):
    """An encoder, and when the files of its folder were changed."""

    encoder: Encoder
    changed: tuple[int, ...]


class Asked(NamedTuple):
    """Everything that decides how a text is prepared."""

    kept: Kept
    phrases: int
    specials: Specials
    idf: tuple[str, str] | None
    """The file and the digest of its weights."""
    languages: tuple[str, ...]


def changed_of(model: str) -> tuple[int, ...]:
    """Return when the files of a local folder were changed; nothing for other models, which do not change."""
    folder = Path(model).expanduser()
    return tuple(sorted(file.stat().st_mtime_ns for file in folder.iterdir())) if folder.is_dir() else ()


@lru_cache(maxsize=16)
def signature_of(kept: Kept) -> Signature:
    """Return the signature of an encoder, read once."""
    return kept.encoder.signature()


@lru_cache(maxsize=_METRICS)
def reader_of(asked: Asked) -> Reader:
    """Return what prepares texts; where nothing was prepared before, languages the model does not know are told."""
    encoder = asked.kept.encoder
    warn_uncovered(encoder, asked.languages)
    if asked.phrases:
        return Reader(partial(by_phrases, encoder=encoder, orders=asked.phrases), Pinned(_MEMORY))
    weigh = None if asked.idf is None else read_idf(asked.idf[0], encoder).of
    prepare = partial(by_pieces, encoder=encoder, specials=asked.specials, weigh=weigh)
    return Reader(prepare, Pinned(_MEMORY))
