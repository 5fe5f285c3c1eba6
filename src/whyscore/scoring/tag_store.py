"""Tags in the score store: a text is tagged once, by whichever process.

They stand in tables like those of scores, one per signature of a tagger, so that the store's size, list and pruning
hold for them too. Such a table has rows of no numbers (width 0); each is the compressed JSON of a text's tags.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import cast

from whyscore.protocols import Tagged
from whyscore.scoring.store import Store

Tags = tuple[Tagged, ...]

_WIDTH = 0


@dataclass(frozen=True)
class TagStore:
    """The tags kept in a score store."""

    store: Store

    def get(self, signature: str, texts: Sequence[str]) -> dict[str, Tags]:
        """Return the tags that are known, by text."""
        if not self.store.path.exists():
            return {}
        keys = {_digest(text): text for text in texts}
        known = self.store.get_bytes(signature, list(keys), _WIDTH)
        return {keys[key]: _unpacked(row) for key, row in known.items() if _sound(row)}

    def put(self, signature: str, tags: Mapping[str, Tags]) -> None:
        """Keep tags by text; where that is impossible (full disk, read-only), warn and go on."""
        rows = [_packed(found) for found in tags.values()]
        self.store.put_bytes(signature, [_digest(text) for text in tags], rows, _WIDTH)


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _packed(tags: Tags) -> bytes:
    return zlib.compress(json.dumps(tags, separators=(",", ":")).encode(), 1)


def _unpacked(row: bytes) -> Tags:
    return tuple(Tagged(start, end, tuple(labels)) for start, end, labels in json.loads(zlib.decompress(row)))


def _sound(row: object) -> bool:
    """Return whether a row is what the store writes; a damaged one is as if it were not there."""
    try:
        return all(isinstance(tag.start, int) and isinstance(tag.end, int) for tag in _unpacked(cast("bytes", row)))
    except (zlib.error, ValueError, TypeError, RecursionError):
        return False
