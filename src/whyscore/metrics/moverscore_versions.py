"""What the published versions of MoverScore and XMoverScore are made of, and the encoder behind each.

| axis | moverscore v1 | moverscore v2 | xmoverscore v1 | xmoverscore v2 |
|---|---|---|---|---|
| vectors | last 5 layers: min, mean, max | last layer | last layer | layer 8 |
| pieces | drop | drop | drop | keep |
| units | 1 piece | 1 piece | 1 piece | 2 pieces, plain mean |
| distance | squared | Euclid | squared | Euclid |
| flows | all | all | all | without the lowest 30 % |
| score | 1 - d | 1/(1 + d) | 1 - d | 1 - d |

`v1-keep`, the default of xmoverscore, is v1 with all pieces, which Leiter (2021) found better. Special pieces carry
mass in all of them.
"""

from pathlib import Path
from typing import Literal, NamedTuple

from whyscore.errors import MissingExtra
from whyscore.metrics.moverscore_transport import Cost
from whyscore.metrics.moverscore_units import Mean, Specials, Tokens
from whyscore.models.checkpoints import Precision
from whyscore.models.encoders.loading import encoder as load_encoder
from whyscore.models.encoders.power_means import PowerMeans
from whyscore.models.encoders.sentence import MODULES
from whyscore.models.encoders.stacks import source
from whyscore.models.rows import Long
from whyscore.protocols import Encoder

Form = Literal["1-d", "1/(1+d)"]
Mode = Literal["compat", "paper"]


class Axes(NamedTuple):
    """All that a version decides."""

    model: str | None
    """What is loaded where nobody names a model."""
    layer: int | None
    """None for the last."""
    layers: int | None
    """How many of the last layers are joined; None for one layer."""
    tokens: Tokens
    ngram: int
    ngram_mean: Mean
    cost: Cost
    flow_drop: float
    form: Form
    specials: Specials = "include"
    idf: bool = False


MOVERSCORE = {
    "v1": Axes(None, None, 5, "drop", 1, "weighted", "squared", 0.0, "1-d", idf=True),
    "v2": Axes("distilbert-base-uncased", None, None, "drop", 1, "weighted", "euclid", 0.0, "1/(1+d)", idf=True),
}
XMOVERSCORE = {
    "v1": Axes("embedded", None, None, "drop", 1, "weighted", "squared", 0.0, "1-d"),
    "v1-keep": Axes("embedded", None, None, "keep", 1, "weighted", "squared", 0.0, "1-d"),
    "v2": Axes("embedded", 8, None, "keep", 2, "plain", "euclid", 0.3, "1-d"),
}


class Asked(NamedTuple):
    """Which encoder is wanted."""

    model: str | None
    layer: int | None
    layers: int | None
    device: str
    precision: Precision
    long: Long


def overridden(axes: Axes, mode: Mode, given: dict[str, object]) -> Axes:
    """Return the axes of a version as the papers print them, where asked for, and with what the caller chose."""
    printed = axes._replace(specials="exclude", cost="euclid") if mode == "paper" else axes
    return printed._replace(**{key: value for key, value in given.items() if value is not None})  # type: ignore[arg-type]


def encoder_of(name: str, asked: Asked, axes: Axes) -> Encoder:
    """Return the encoder that a metric works with; `name` is the metric's, for messages."""
    if asked.model is not None:
        return _encoder(asked.model, asked, axes)
    if axes.model is None:
        raise MissingExtra(
            f"{name}(version='v1') was published with a BERT-base that was trained on MNLI and is on no hub: name its "
            f"folder, {name}(version='v1', model='./MNLI_BERT'), or work offline with {name}(model='embedded')"
        )
    try:
        return _encoder(axes.model, asked, axes)
    except MissingExtra as error:
        if axes.model == "embedded":
            raise
        raise MissingExtra(f"{error}. To work offline: {name}(model='embedded')") from error


def _encoder(model: str, asked: Asked, axes: Axes) -> Encoder:
    if model in ("embedded", "static"):
        # Small encoders have layers of their own, to which the versions have nothing to say.
        device = asked.device
        return load_encoder(model, asked.layer, device=device, precision=asked.precision, long=asked.long)
    layers = asked.layers if asked.layers is not None else axes.layers if asked.layer is None else None
    if layers is not None:
        return PowerMeans(model, layers, asked.device, asked.precision, asked.long)
    layer = axes.layer if asked.layer is None else asked.layer
    if layer is None and not (Path(model).expanduser() / MODULES).is_file():
        layer = _blocks(model)
    return load_encoder(model, layer, device=asked.device, precision=asked.precision, long=asked.long)


def _blocks(model: str) -> int:
    return source(model, "moverscore").shape.blocks
