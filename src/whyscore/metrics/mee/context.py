"""The contextual part of MEE2 and MEE4: the cosine of the sentence vectors of hypothesis and reference.

The encoder is named by the user or is the default of the mode; no other one steps in where it is missing. Vectors are
taken as they come (float32), cosines are computed in float64, and a vector of zeros has the cosine 0.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import cast

import numpy as np

from whyscore.errors import ContractError, SpecError
from whyscore.metrics.mee.words import Pair
from whyscore.models.encoders.embedded import Embedded
from whyscore.models.encoders.loading import encoder
from whyscore.models.encoders.sentence import MODULES, Sentence
from whyscore.models.encoders.static import Static
from whyscore.types import FloatMatrix, FloatVector, Signature

_SHORT_NAMES = {"LaBSE": "sentence-transformers/LaBSE"}


def sentence_encoder(given: object) -> object:
    """Return the encoder that a name or an object stands for.

    >>> sentence_encoder("LaBSE").model
    'sentence-transformers/LaBSE'
    """
    if not isinstance(given, str):
        if callable(given) or hasattr(given, "pooled") or hasattr(given, "encode"):
            return given
        raise SpecError(
            f"sentences is {given!r}, expected 'embedded', 'LaBSE', a model of sentence-transformers, a function of "
            "texts, or an object with pooled() or encode()"
        )
    if given in ("embedded", "static"):
        return encoder(given)
    folder = Path(given).expanduser()
    if folder.is_dir() and not (folder / MODULES).is_file():
        return encoder(given)
    return Sentence(_SHORT_NAMES.get(given, given))


def encoder_signature(given: object) -> Signature:
    """Return the encoder's own signature; one that names nothing where it has none."""
    if isinstance(given, Embedded | Static):
        return _small_signature(given)
    if hasattr(given, "signature"):
        return cast("Signature", given.signature())
    return Signature(f"{getattr(given, '__name__', type(given).__name__)}-of-the-caller", stable=False)


@lru_cache(maxsize=8)
def _small_signature(given: Embedded | Static) -> Signature:
    """Return the signature of an encoder that cannot change, asked for once: it is looked at in every call."""
    return given.signature()


def contextual(given: object, pairs: Sequence[Pair]) -> FloatVector:
    """Return the cosine of each pair of texts; each distinct text is encoded once, all in one call."""
    distinct = list(dict.fromkeys(text for pair in pairs for text in pair))
    if not distinct:
        return np.empty(0, dtype=np.float64)
    vectors = _vectors(given, distinct)
    lengths = np.linalg.norm(vectors, axis=1)
    rows = {text: row for row, text in enumerate(distinct)}
    own, other = (np.array([rows[pair[k]] for pair in pairs], dtype=np.intp) for k in (0, 1))
    whole = lengths[own] * lengths[other]
    products = np.einsum("ij,ij->i", vectors[own], vectors[other])
    cosines: FloatVector = np.where(whole > 0, products / np.where(whole > 0, whole, 1.0), 0.0)
    return cosines


def _vectors(given: object, texts: Sequence[str]) -> FloatMatrix:
    ask = getattr(given, "pooled", None) or getattr(given, "encode", None) or given
    vectors = np.asarray(cast("Callable[[Sequence[str]], object]", ask)(texts), dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(texts):  # noqa: PLR2004 - a matrix
        raise ContractError(
            f"{encoder_signature(given).spec} was asked for the vectors of {len(texts)} texts and gave the shape "
            f"{vectors.shape}, expected ({len(texts)}, width)"
        )
    if not np.isfinite(vectors).all():
        number = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise ContractError(
            f"{encoder_signature(given).spec} gave a vector that is not finite for {texts[number][:60]!r}"
        )
    return vectors
