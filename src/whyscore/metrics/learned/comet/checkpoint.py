"""The settings of a COMET checkpoint, as the original code finds them.

1. `hparams.yaml` (YAML's safe loader) names the class of the model, and where its encoder is.
2. All other settings are those that the trainer stored in the checkpoint. A setting that the checkpoint lacks, or all
   of them if it is a safetensors file, come from `hparams.yaml`, then from the defaults of the class.
3. `layer_transformation: sparsemax_patch` in `hparams.yaml` means softmax, whatever the checkpoint says: trainers
   before 2.2.4 wrote `sparsemax` for unified and xCOMET models, yet mixed by softmax, and published folders were
   corrected in this way. A plain `sparsemax` is taken at its word, with a notice.
"""

from collections.abc import Mapping
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Literal, NamedTuple, cast, get_args

from whyscore.errors import DataError, SpecError
from whyscore.models.checkpoints import (
    ModelLocation,
    find,
    hyper_parameters,
    need,
    read_yaml,
    weights_of,
)
from whyscore.models.heads import LayerMix, activation
from whyscore.text.files import State, read_once, state_of, text_of
from whyscore.types import Inputs

Kind = Literal[
    "regression_metric", "referenceless_regression_metric", "ranking_metric", "unified_metric", "xcomet_metric"
]

KINDS: tuple[Kind, ...] = get_args(Kind)

HPARAMS = "hparams.yaml"
WEIGHTS = (("checkpoints/model.safetensors", "model.safetensors"), ("checkpoints/model.ckpt", "model.ckpt"))

_APART: tuple[Kind, ...] = KINDS[:3]
_SEGMENTS = {"mt": Inputs.HYPOTHESIS, "src": Inputs.SOURCE, "ref": Inputs.REFERENCES}
_TYPED = ("BERT", "RemBERT")  # the encoders that are told which text a piece belongs to
_WRITTEN_IN_YAML = ("class_identifier", "pretrained_model")
_COMMON: dict[str, object] = {
    "encoder_model": "XLM-RoBERTa",
    "pool": "avg",
    "layer": "mix",
    "layer_transformation": "softmax",
    "layer_norm": True,
    "hidden_sizes": [3072, 1024],
    "activations": "Tanh",
    "final_activation": None,
}
_JOINED: dict[str, object] = _COMMON | {
    "sent_layer": "mix",
    "layer_transformation": "sparsemax",
    "word_layer": 24,
    "word_level_training": False,
    "input_segments": ["mt", "src", "ref"],
    "error_labels": ["minor", "major"],
}
DEFAULTS: Mapping[Kind, Mapping[str, object]] = {
    "regression_metric": _COMMON,
    "referenceless_regression_metric": _COMMON | {"hidden_sizes": [2048, 1024]},
    "ranking_metric": _COMMON,
    "unified_metric": _JOINED,
    "xcomet_metric": _JOINED
    | {
        "encoder_model": "XLM-RoBERTa-XL",
        "layer_norm": False,
        "hidden_sizes": [2560, 1280],
        "word_layer": 36,
        "word_level_training": True,
        "error_labels": ["minor", "major", "critical"],
    },
}
"""What the classes of unbabel-comet 2.2.7 take where a setting is missing."""


Pooling = Literal["avg", "max", "cls", "default"]
"""How a text's pieces become one vector; `default` is the first piece of the last state, whatever the layer."""


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
    labels: tuple[str, ...]
    """The error classes of the word head, after the class of pieces without an error."""
    typed: bool
    """Whether the encoder tells the first text from the others by type numbers, as BERT does."""

    @property
    def joined(self) -> bool:
        """Whether texts are read together, rather than each by itself."""
        return self.kind not in _APART


def settings_of(model: str) -> Settings:
    """Return the settings of a checkpoint; no weights are fetched for it, those that are there are looked into."""
    home = find(model, [HPARAMS, "README.md"], "comet")
    path = need(home, [HPARAMS], "comet")
    weights = next((file for group in WEIGHTS for name in group if (file := home.folder / name).is_file()), None)
    return _settings(path, weights, None if weights is None else state_of(weights))


def checkpoint_of(model: str) -> tuple[ModelLocation, Path]:
    """Return where a checkpoint is, and its weights."""
    need(find(model, [HPARAMS, "README.md"], "comet"), [HPARAMS], "comet")
    return weights_of(model, WEIGHTS, "comet")


@read_once(16)
def _settings(path: Path, weights: Path | None, _: State | None) -> Settings:
    written = _read_options(path)
    kind = written.get("class_identifier")
    if kind not in KINDS:
        raise SpecError(f"{path}: class_identifier is {kind!r}, expected one of {', '.join(KINDS)}")
    stored = hyper_parameters(weights) if weights else {}
    options = {**DEFAULTS[kind], **written, **stored}
    options |= {key: written[key] for key in _WRITTEN_IN_YAML if key in written}
    if written.get("layer_transformation") == "sparsemax_patch":
        options["layer_transformation"] = "softmax"
    return _read(kind, options, path)


def _read_options(path: Path) -> Mapping[str, object]:
    text = text_of(path)
    try:
        written = read_yaml(text, "comet")
    except ValueError as error:
        raise DataError(f"is not YAML of plain values: {error}", file=str(path)) from error
    if not isinstance(written, dict):
        raise DataError(f"expected options by name, found {type(written).__name__}", file=str(path))
    return written


def _read(kind: Kind, options: Mapping[str, object], path: Path) -> Settings:
    joined = kind not in _APART
    if not joined and options["pool"] == "default" and options["encoder_model"] == "BERT":
        raise DataError("pool is 'default', which unbabel-comet does not offer for BERT encoders", file=str(path))
    layer = options["sent_layer" if joined else "layer"]
    final = options["final_activation"]
    words = options["word_layer"] if kind == "xcomet_metric" or options.get("word_level_training") else None
    return Settings(
        kind=kind,
        encoder=str(_get_option(options, "pretrained_model", str, path)),
        layer=None if layer == "mix" else _whole(layer, "layer", path),
        mix=_mix(options["layer_transformation"], path),
        norm=bool(options["layer_norm"]),
        pool="cls" if joined else _pool(options["pool"], path),
        sizes=() if kind == "ranking_metric" else _sizes(_get_option(options, "hidden_sizes", list, path), path),
        activation=activation(options["activations"], path),
        final=None if final in (None, False) else activation(final, path),
        inputs=_inputs(kind, options, path),
        words=None if words is None else _whole(words, "word_layer", path),
        labels=tuple(map(str, cast("list[object]", _get_option(options, "error_labels", list, path))))
        if joined
        else (),
        typed=options["encoder_model"] in _TYPED,
    )


def _get_option(options: Mapping[str, object], name: str, kind: type, path: Path) -> object:
    if not isinstance(options.get(name), kind):
        raise DataError(f"{name} is {options.get(name)!r}, expected a {kind.__name__}", file=str(path))
    return options[name]


def _whole(value: object, name: str, path: Path) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise DataError(f"{name} is {value!r}, expected 'mix' or a whole number", file=str(path))
    return value


def _sizes(value: object, path: Path) -> tuple[int, ...]:
    return tuple(_whole(size, "hidden_sizes", path) for size in cast("list[object]", value))


def _pool(value: object, path: Path) -> Pooling:
    if value not in ("avg", "max", "cls", "default"):
        raise DataError(f"pool is {value!r}, expected 'avg', 'max', 'cls' or 'default'", file=str(path))
    return value


def _mix(value: object, path: Path) -> LayerMix:
    if value not in ("softmax", "sparsemax", "sparsemax_patch"):
        raise DataError(f"layer_transformation is {value!r}, expected softmax or sparsemax", file=str(path))
    return "sparsemax" if value == "sparsemax" else "softmax"


def _inputs(kind: Kind, options: Mapping[str, object], path: Path) -> Inputs:
    if kind == "referenceless_regression_metric":
        return Inputs.HYPOTHESIS | Inputs.SOURCE
    if kind != "unified_metric":
        return Inputs.HYPOTHESIS | Inputs.SOURCE | Inputs.REFERENCES
    named = cast("list[object]", _get_option(options, "input_segments", list, path))
    segments = [segment for name, segment in _SEGMENTS.items() if name in named]
    if len(segments) != len(named) or len(segments) == 1 or Inputs.HYPOTHESIS not in segments:
        raise DataError(f"input_segments is {named!r}, expected mt with src, ref or both", file=str(path))
    return reduce(or_, segments)
