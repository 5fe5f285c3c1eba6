"""What a COMET folder says of itself: `hparams.yaml`, read by YAML's safe loader.

The layer mix needs care: trainers before 2.2.4 wrote `layer_transformation: sparsemax` for unified and xCOMET models,
yet mixed by softmax. Published folders were corrected to `sparsemax_patch`, which therefore means softmax. A plain
`sparsemax` there is taken at its word, with a notice.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple, cast

from whyscore.errors import DataError, SpecError
from whyscore.models.checkpoints import ModelLocation, find, need, package, weights_of
from whyscore.models.heads import LayerMix, Pooling, activation
from whyscore.text.files import text_of
from whyscore.types import Inputs

Kind = Literal["regression_metric", "referenceless_regression_metric", "unified_metric", "xcomet_metric"]

KINDS: tuple[Kind, ...] = ("regression_metric", "referenceless_regression_metric", "unified_metric", "xcomet_metric")

HPARAMS = "hparams.yaml"
WEIGHTS = (("checkpoints/model.safetensors", "model.safetensors"), ("checkpoints/model.ckpt", "model.ckpt"))

_APART: tuple[Kind, ...] = KINDS[:2]
_SEGMENTS = {"mt": Inputs.HYPOTHESIS, "src": Inputs.SOURCE, "ref": Inputs.REFERENCES}


class Settings(NamedTuple):
    """The choices of a checkpoint that its scores depend on."""

    kind: Kind
    encoder: str
    """The base model, whose configuration and tokenizer are needed."""
    layer: int | None
    """The state that is read, counted from the embeddings; None for a mix of all."""
    mix: LayerMix
    norm: bool
    pool: Pooling
    sizes: tuple[int, ...]
    activation: str
    final: str | None
    inputs: Inputs
    words: int | None
    """The state that the word head reads; None without a word head."""

    @property
    def joined(self) -> bool:
        """Whether texts are read together, rather than each by itself."""
        return self.kind not in _APART


def settings_of(model: str) -> Settings:
    """Return the settings of a checkpoint; nothing but the small file is fetched for it."""
    path = need(find(model, [HPARAMS, "README.md"], "comet"), [HPARAMS], "comet")
    return _settings(str(path), path.stat().st_mtime_ns)


def checkpoint_of(model: str) -> tuple[ModelLocation, Path]:
    """Return where a checkpoint is, and its weights."""
    need(find(model, [HPARAMS, "README.md"], "comet"), [HPARAMS], "comet")
    return weights_of(model, WEIGHTS, "comet")


@lru_cache(maxsize=16)
def _settings(file: str, _: int) -> Settings:
    path = Path(file)
    yaml = package("yaml", "comet")
    try:
        given = yaml.safe_load(text_of(path))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"is not YAML of plain values: {str(error).splitlines()[0]}", file=file) from error
    if not isinstance(given, dict):
        raise DataError(f"expected options by name, found {type(given).__name__}", file=file)
    kind = given.get("class_identifier")
    if kind not in KINDS:
        raise SpecError(f"{file}: class_identifier is {kind!r}, expected one of {', '.join(KINDS)}")
    return _read(cast("Kind", kind), given, path)


def _read(kind: Kind, given: Mapping[str, object], path: Path) -> Settings:
    joined = kind not in _APART
    layer = given.get("sent_layer" if joined else "layer", given.get("layer", "mix"))
    final = given.get("final_activation")
    words = given.get("word_layer", -1) if kind == "xcomet_metric" or given.get("word_level_training") else None
    return Settings(
        kind=kind,
        encoder=str(_asked(given, "pretrained_model", str, path)),
        layer=None if layer == "mix" else _whole(layer, "layer", path),
        mix=_mix(given.get("layer_transformation", "softmax"), path),
        norm=bool(given.get("layer_norm", not joined)),
        pool="cls" if joined else _pool(given.get("pool", "avg"), path),
        sizes=_sizes(_asked(given, "hidden_sizes", list, path), path),
        activation=activation(given.get("activations", "Tanh"), path),
        final=None if final in (None, False) else activation(final, path),
        inputs=_inputs(kind, given, path),
        words=None if words is None else _whole(words, "word_layer", path),
    )


def _asked(given: Mapping[str, object], name: str, wanted: type, path: Path) -> object:
    if not isinstance(given.get(name), wanted):
        raise DataError(f"{name} is {given.get(name)!r}, expected a {wanted.__name__}", file=str(path))
    return given[name]


def _whole(value: object, name: str, path: Path) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise DataError(f"{name} is {value!r}, expected 'mix' or a whole number", file=str(path))
    return value


def _sizes(value: object, path: Path) -> tuple[int, ...]:
    return tuple(_whole(size, "hidden_sizes", path) for size in cast("list[object]", value))


def _pool(value: object, path: Path) -> Pooling:
    if value not in ("avg", "max", "cls"):
        raise DataError(f"pool is {value!r}, expected 'avg', 'max' or 'cls'", file=str(path))
    return value


def _mix(value: object, path: Path) -> LayerMix:
    if value not in ("softmax", "sparsemax", "sparsemax_patch"):
        raise DataError(f"layer_transformation is {value!r}, expected softmax or sparsemax", file=str(path))
    return "sparsemax" if value == "sparsemax" else "softmax"


def _inputs(kind: Kind, given: Mapping[str, object], path: Path) -> Inputs:
    if kind == "referenceless_regression_metric":
        return Inputs.HYPOTHESIS | Inputs.SOURCE
    if kind != "unified_metric":
        return Inputs.HYPOTHESIS | Inputs.SOURCE | Inputs.REFERENCES
    named = cast("list[str]", _asked(given, "input_segments", list, path))
    unknown = [name for name in named if name not in _SEGMENTS]
    if unknown or "mt" not in named or len(named) == 1:
        raise DataError(f"input_segments is {named!r}, expected mt with src, ref or both", file=str(path))
    inputs = Inputs.HYPOTHESIS
    for name in named:
        inputs |= _SEGMENTS[name]
    return inputs
