"""What the estimator learned about single words and pairs of words: tables from hashed words to small numbers.

1. A word is lower-cased and hashed to 64 bits; a pair of words is the mix of both hashes. Tables keep the upper 32
   bits, sorted, so that a look-up of many words is one binary search. An unknown word meets an entry of a table with a
   million entries about once in 4,000 look-ups.
2. `translations`: p(target | source) and p(source | target) by IBM model 1 on sources and post-edits
   (`whyscore.models.lexicon`). `stem_translations`: the same of words cut to their first five letters, which finds
   forms of a word that were not seen.
3. `target_counts`: how often a word or a pair of neighbours occurs in post-edits, and in what was edited.
4. `target_errors`, `source_errors`: by how much more often than others of its language pair a word, or the second of a
   pair of neighbours, was marked as wrong; shrunk towards 0 for rare ones.
5. `source_counts`: how often a source word was seen.

Languages need not be named: words of different languages rarely coincide.
"""

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
Values = NDArray[np.float32]

_LEFT, _RIGHT, _NEIGHBOUR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(7)
_SHIFT = np.uint64(32)
_STEPS = 255.0
_STEM = 5


@lru_cache(maxsize=1 << 18)
def _hash(word: str) -> int:
    digest = hashlib.blake2b(word.lower().encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def word_keys(words: Sequence[str]) -> Keys:
    """Return the hash of each word."""
    return np.array([_hash(word) for word in words], dtype=np.uint64)


def cut_stems(words: Sequence[str]) -> list[str]:
    """Return the first letters of each word, in lower case.

    >>> cut_stems(["Houses", "of"])
    ['house', 'of']
    """
    return [word.lower()[:_STEM] for word in words]


def pair_keys(left: Keys, right: Keys) -> Keys:
    """Return the hash of each pair, wherever the two broadcast to."""
    result: Keys = (left * _LEFT) ^ (right * _RIGHT)
    return result


def neighbour_keys(keys: Keys) -> Keys:
    """Return the hash of each word with the one after it, one fewer than there are words."""
    return pair_keys(keys[:-1], keys[1:] + _NEIGHBOUR)


class Table(NamedTuple):
    """Sorted keys with one or more small numbers each."""

    keys: NDArray[np.uint32]
    values: NDArray[np.uint8]
    """Columns x keys, in steps of 1/255 of `high - low`."""
    low: float
    high: float

    def look_up(self, keys: Keys) -> Values:
        """Return columns x keys; 0 for keys that are not there."""
        short = (keys >> _SHIFT).astype(np.uint32)
        if not len(self.keys):
            return np.zeros((len(self.values), *keys.shape), dtype=np.float32)
        place = np.minimum(np.searchsorted(self.keys, short), len(self.keys) - 1)
        values = self.values[:, place] * np.float32((self.high - self.low) / _STEPS) + np.float32(self.low)
        return np.where(self.keys[place] == short, values, np.float32(0))


def make_table(keys: Keys, columns: Sequence[Values], low: float, high: float) -> Table:
    """Return a table; of keys that fall together the first one stays."""
    short, place = np.unique((keys >> _SHIFT).astype(np.uint32), return_index=True)
    scaled = [np.clip((column[place] - low) / (high - low), 0, 1) * _STEPS for column in columns]
    return Table(short, np.round(np.stack(scaled)).astype(np.uint8), low, high)


class Tables(NamedTuple):
    """All tables of an estimator."""

    translations: Table
    target_counts: Table
    target_errors: Table
    source_errors: Table
    source_counts: Table
    stem_translations: Table

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the tables as arrays to be written."""
        result: dict[str, NDArray[np.generic]] = {}
        for name, table in self._asdict().items():
            result |= {f"{name}.keys": table.keys, f"{name}.values": table.values}
            result[f"{name}.range"] = np.array([table.low, table.high])
        return result


def read_tables(arrays: Mapping[str, NDArray[np.generic]]) -> Tables:
    """Return the tables that `arrays` gave."""
    return Tables(
        *(
            Table(
                arrays[f"{name}.keys"].astype(np.uint32),
                arrays[f"{name}.values"].astype(np.uint8),
                *(float(border) for border in arrays[f"{name}.range"].tolist()),
            )
            for name in Tables._fields
        )
    )
