"""Encoders by name: `embedded`, `static`, a local folder, or a hub name with or without `@revision`.

What an encoder made of texts, kept from call to call as long as its files stay the same.
"""

import warnings
from collections.abc import Hashable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import cast

from whyscore.errors import SpecError
from whyscore.models.checkpoints import state_of_model
from whyscore.models.encoders.embedded import Embedded
from whyscore.models.encoders.sentence import MODULES, Sentence
from whyscore.models.encoders.static import Static
from whyscore.models.encoders.transformer import Transformer
from whyscore.models.pairs import Held, Long, Pinned
from whyscore.protocols import Encoder
from whyscore.settings import Precision
from whyscore.text.files import State
from whyscore.text.stemming import language_code


class CoverageNotice(UserWarning):
    """A model was not made for a language of the texts."""


def encoder(
    model: str,
    layer: int | None = None,
    *,
    device: str = "auto",
    precision: Precision = "fp32",
    long: Long = "truncate",
    revision: str | None = None,
    languages: Iterable[str] = (),
) -> Encoder:
    """Return the encoder that a name stands for, with a notice for each of `languages` it was not made for.

    A local folder of sentence-transformers is a sentence encoder, unless a layer is asked for.

    Args:
        model: `embedded`, `static`, a folder, or a hub name, `name@revision` for one version of it.
        layer: which layer's vectors; None for the recommended one.
        device: `auto`, `cpu`, `cuda`, `cuda:1`, `mps`.
        precision: of the network's numbers.
        long: what becomes of texts that are longer than the model can read; `embedded` and `static` read all.
        revision: a version of a hub model, instead of `name@revision`.
        languages: the language codes of the texts, where they are known.

    >>> encoder("embedded").layer
    2
    """
    loaded: Encoder
    if model in ("embedded", "static"):
        loaded = _small(model, layer, device, precision, revision)
    elif layer is None and revision is None and (Path(model).expanduser() / MODULES).is_file():
        loaded = Sentence(model, device=device, precision=precision, long=long)
    else:
        loaded = Transformer(model, layer, device=device, precision=precision, long=long, revision=revision)
    warn_uncovered(loaded, languages)
    return loaded


def find_uncovered(encoder: Encoder, languages: Iterable[str]) -> tuple[str, ...]:
    """Return the languages, as they were given, that the model was not made for; none where nobody knows.

    >>> find_uncovered(encoder("embedded"), ["en", "zh-TW", "et"])
    ('et',)
    """
    requested = dict.fromkeys(languages)
    supported = encoder.languages() if requested else None
    if supported is None:
        return ()
    return tuple(code for code in requested if language_code(code) not in supported)


def warn_uncovered(encoder: Encoder, languages: Iterable[str]) -> None:
    """Say which languages the model was not made for, if any."""
    for code in find_uncovered(encoder, languages):
        codes = " ".join(sorted(encoder.languages() or ()))
        warnings.warn(
            f"{encoder.signature().spec} does not support {code!r}: scores are not meaningful; it supports: {codes}",
            CoverageNotice,
            stacklevel=2,
        )


def _small(model: str, layer: int | None, device: str, precision: str, revision: str | None) -> Encoder:
    """Return an encoder that runs on numpy; what it cannot do is refused."""
    if device not in ("auto", "cpu"):
        raise SpecError(f"{model} computes on the processor alone, got device={device!r}; leave it out")
    if precision != "fp32":
        raise SpecError(f"{model} computes in fp32 alone, got precision={precision!r}; leave it out")
    if revision is not None:
        raise SpecError(f"{model} has one revision, that of its package, got revision={revision!r}; leave it out")
    if model == "embedded":
        return Embedded() if layer is None else Embedded(layer)
    if layer not in (None, 0):
        raise SpecError(f"static has layer 0 alone, got layer={layer}")
    return Static()


_MEMORY = 512 * 1024**2


def get_pinned(encoder: Encoder, kind: type[Held]) -> Pinned[Held]:
    """Return what is held of an encoder's answers of one kind, within a bound of bytes."""
    return cast("Pinned[Held]", _make_pinned(cast("Hashable", encoder), _state(encoder), kind))


@lru_cache(maxsize=4)
def _make_pinned(_: Encoder, __: State | None, ___: type[Held]) -> Pinned[Held]:
    return Pinned(_MEMORY)


def _state(encoder: Encoder) -> State | None:
    """Return what changes when a local model does: other weights give other vectors."""
    folder = Path(str(getattr(encoder, "model", ""))).expanduser()
    return state_of_model(folder) if folder.is_dir() and folder != Path() else None
