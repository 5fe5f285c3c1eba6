"""Random numbers that depend on content alone, so that order, shards and batch size cannot change a result."""

import hashlib

import numpy as np
from numpy.random import Generator

from whyscore.settings import check_seed


def generator(seed: int, *content: str) -> Generator:
    """Return random numbers fixed by the seed and the text, whatever was drawn before.

    >>> bool(generator(0, "a cat").random() == generator(0, "a cat").random())
    True
    """
    check_seed(seed)
    marked = "".join(f"{len(part)}:{part}" for part in content)
    # surrogatepass: text decoded from broken JSON may hold lone surrogates, and they too must draw the same numbers.
    digest = hashlib.blake2b(marked.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return np.random.default_rng([seed, int.from_bytes(digest, "big")])
