"""A COMET checkpoint as a network: what its state dict holds, the two ways it reads texts, and how it is looked into.

State dict: `encoder.model.*` is the whole encoder, so that only configuration and tokenizer are taken from the base
model; `layerwise_attention.*` the mix of its states; `estimator.ff.*` the feed-forward head, which ranking models lack;
`hidden2tag.*` the word head. Everything the settings ask for must be there in the right size, and nothing else but
leftovers of training.

Length: inputs end after `max_position_embeddings - 2` pieces whatever the encoder, and a text that is read by itself,
or before it is joined, two pieces earlier. The trainer cuts BERT and MiniLM that way, too, whose tables reach further.

Opened for attribution, the score is a differentiable function of what the encoder reads:

1. Separate readers: one row per text; the vectors of hypothesis and source meet that of each reference in the head.
2. Joined readers: per reference the rows (h,s), (h,r) and (h,s,r), weighted as in the score.
3. Several references: their mean, or the best one, as in the score.

Of xCOMET this is the part that comes from regression, before it is cut at 1: the tags behind the MQM part are decided
by a largest probability, which has no gradient, and the cut would hide all words of a good translation.
"""

import importlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from whyscore.errors import DataError, MissingExtra
from whyscore.metrics.learned.comet.checkpoint import HPARAMS, Settings, checkpoint_of, settings_of
from whyscore.metrics.needs import present
from whyscore.models.attribution import Inside, Reading, Shown, line, look_inside, rows_of
from whyscore.models.checkpoints import (
    SMALL,
    ModelLocation,
    ModelRequest,
    Weights,
    build_network,
    coder_of,
    config_of,
    find,
    need,
    package,
    read,
    read_json,
)
from whyscore.models.heads import (
    FeedForward,
    LayerMix,
    Mix,
    feed_forward_keys,
    mix_of,
    mix_states,
    pool_states,
    take,
    widen,
)
from whyscore.models.pairs import Coded, Cuts, Pinned, Row, TextNetwork, as_tensors, budget_of, in_batches
from whyscore.text.files import read_once
from whyscore.types import FloatMatrix, Inputs, Place, Segment, Side

if TYPE_CHECKING:
    from torch import Tensor


WHO = "comet"
_USUAL_TABLE = 514
ENCODER, MIX, HEAD, TAGS = "encoder.model.", "layerwise_attention.", "estimator.ff.", "hidden2tag."
LEFTOVERS = (f"{MIX}dropout_", "loss.", "sentloss.", "wordloss.", "train_", "val_")
_BESIDE = ("", "encoder", "tokenizer")
_RESERVED = 2  # pieces the trainer keeps free: of the position table, and again when it cuts a single text

Texts = tuple[str, ...]
"""What is read at once: the hypothesis first."""


class Judged(NamedTuple):
    """What a network says of texts read together."""

    score: float
    classes: FloatMatrix | None
    """Pieces of the hypothesis x classes, as probabilities, from models with a word head.

    The special pieces before it come first, and those after it last, as if it stood alone.
    """


@dataclass
class CometModel(TextNetwork):
    """A loaded checkpoint."""

    settings: Settings
    mix: Mix | None
    head: FeedForward | None
    """None in a ranking model, which measures distances."""
    tags: tuple["Tensor", "Tensor"] | None
    vectors: "Pinned[Tensor]" = field(default_factory=Pinned, repr=False)
    """Of texts that were read by themselves."""

    def apart(self, segments: Sequence[Texts]) -> list[float]:
        """Return the scores of (h, s) or (h, s, r), each text read by itself and each distinct text once."""
        torch = importlib.import_module("torch")
        vectors = self._vectors([text for texts in segments for text in texts])

        def compute(batch: list[int]) -> list[float]:
            with torch.inference_mode():
                sides = zip(*([vectors[text] for text in segments[number]] for number in batch), strict=True)
                scores = self.compare(*(torch.stack(side) for side in sides))
            return cast("list[float]", scores.tolist())

        return in_batches([1] * len(segments), budget_of(self.device), compute, WHO)

    def together(self, inputs: Sequence[Texts]) -> list[Judged]:
        """Return what the network says of each group of texts, joined with the hypothesis first."""
        coded = self.code([text for texts in inputs for text in texts])
        rows = [self._join([coded[text].ids for text in texts]) for texts in inputs]
        sizes = [len(coded[texts[0]].ids) for texts in inputs]
        self.cuts.add(sum(row.cut for row in rows), len(rows))

        def compute(batch: list[int]) -> list[Judged]:
            return self._judge([rows[number].row for number in batch], [sizes[number] for number in batch])

        return in_batches([len(row.row.ids) for row in rows], budget_of(self.device), compute, WHO)

    def code(self, texts: Sequence[str]) -> dict[str, Coded]:
        """Return the pieces of each distinct text, all of them."""
        return self.coder.code(texts)

    def compare(self, hypothesis: "Tensor", *others: "Tensor") -> "Tensor":
        """Return the scores of vectors of hypotheses against those of sources and, where it reads them, references."""
        if self.head is None:
            return closeness(hypothesis, *others)
        return self.head(features(hypothesis, *others))[:, 0]

    def judge(self, vectors: "Tensor") -> "Tensor":
        """Return the scores of texts that were read together, from the vectors of their first pieces."""
        return cast("FeedForward", self.head)(vectors)[:, 0]

    def pool(self, read: "Read") -> "Tensor":
        """Return one vector per row."""
        if self.settings.pool == "default":
            return read.first.float()
        return pool_states(self.mix_states(read.states, read.mask), read.mask, self.settings.pool)

    def read(self, rows: Sequence[Row]) -> "Read":
        """Return what the encoder makes of rows."""
        inputs = as_tensors(rows, self.coder.padding, self.device)
        types = {"token_type_ids": inputs.types} if self.settings.typed else {}
        output = self.network(
            input_ids=inputs.ids, attention_mask=inputs.mask, output_hidden_states=True, return_dict=True, **types
        )
        return Read(output.hidden_states, output.last_hidden_state[:, 0], inputs.mask)

    def mix_states(self, states: Sequence["Tensor"], mask: "Tensor") -> "Tensor":
        """Return the one state that is read: a mix of all, or a single one."""
        if self.mix is None:
            return states[cast("int", self.settings.layer)].float()
        return mix_states(states, mask, self.mix)

    def count_read(self, pieces: int) -> int:
        """Return how many pieces of one text are read, at the most."""
        return min(pieces, self.limit - _RESERVED - self.coder.frame.size(1))

    def _join(self, texts: Sequence[Sequence[int]]) -> "_Cut":
        """Return the texts as one row, cut from the end: the last text loses its tail first."""
        short = [text[: self.count_read(len(text))] for text in texts]
        whole = self.coder.frame.join(short)
        row = Row(whole.ids[: self.limit], whole.first)
        cut = len(row.ids) < len(whole.ids) or sum(map(len, short)) < sum(map(len, texts))
        return _Cut(row, cut)

    def _vectors(self, texts: Sequence[str]) -> dict[str, "Tensor"]:
        """Return the vector of each text, from the pinned ones where it is among them."""
        torch = importlib.import_module("torch")

        def encode(missing: list[str]) -> list["Tensor"]:
            coded = self.code(missing)
            rows = [
                self.coder.frame.join([coded[text].ids[: self.count_read(len(coded[text].ids))]]) for text in missing
            ]
            self.cuts.add(sum(self.count_read(len(text.ids)) < len(text.ids) for text in coded.values()), len(coded))
            return self.compute_rows(rows, compute)

        def compute(batch: list[Row]) -> list["Tensor"]:
            with torch.inference_mode():
                return [row.clone() for row in self.pool(self.read(batch))]

        return self.vectors.take(texts, encode)

    def _judge(self, rows: Sequence[Row], sizes: Sequence[int]) -> list[Judged]:
        torch = importlib.import_module("torch")
        with torch.inference_mode():
            states, _, mask = self.read(rows)
            # Only the first piece is read; without normalisation it does not depend on the others.
            norm = self.mix is not None and self.mix.norm
            narrow = states if norm else [state[:, :1] for state in states]
            scores = self.judge(self.mix_states(narrow, mask if norm else mask[:, :1])[:, 0]).tolist()
            if self.tags is None or self.settings.words is None:
                return [Judged(score, None) for score in scores]
            weight, bias = self.tags
            logits = torch.nn.functional.linear(states[self.settings.words].float(), weight, bias)
            classes = widen(logits).softmax(-1).cpu().double().numpy()
        ends = [self.count_read(size) + self.coder.frame.size(1) for size in sizes]
        return [Judged(score, part[:end]) for score, part, end in zip(scores, classes, ends, strict=True)]


class Read(NamedTuple):
    """What an encoder makes of rows."""

    states: Sequence["Tensor"]
    first: "Tensor"
    """The first piece in the last state."""
    mask: "Tensor"
    """Which pieces are real."""


class _Cut(NamedTuple):
    row: Row
    cut: bool


def features(hypothesis: "Tensor", source: "Tensor", reference: "Tensor | None" = None) -> "Tensor":
    """Return what the head of the separate readers sees, side by side.

    With a reference [h; r; h*r; |h-r|; h*s; |h-s|], without one [h; s; h*s; |h-s|].
    """
    torch = importlib.import_module("torch")
    against = [hypothesis * source, (hypothesis - source).abs()]
    if reference is None:
        parts = [hypothesis, source, *against]
    else:
        parts = [hypothesis, reference, hypothesis * reference, (hypothesis - reference).abs(), *against]
    return cast("Tensor", torch.cat(parts, dim=1))


def closeness(hypothesis: "Tensor", source: "Tensor", reference: "Tensor") -> "Tensor":
    """Return 1 / (1 + d), with d the harmonic mean of the distances of the hypothesis to source and reference."""
    distance = importlib.import_module("torch.nn.functional").pairwise_distance
    there, here = distance(hypothesis, source), distance(hypothesis, reference)
    return cast("Tensor", 1 / (1 + 2 * there * here / (there + here)))


def load(request: ModelRequest, layer_mix: LayerMix | None) -> CometModel:
    """Return a loaded checkpoint; the same one again for the same files and options."""
    home, weights = checkpoint_of(request.model)
    return _load(weights, home, request, layer_mix)


@read_once(2)
def _load(path: Path, home: ModelLocation, request: ModelRequest, layer_mix: LayerMix | None) -> CometModel:
    transformers = package("transformers", WHO)
    settings, device = settings_of(request.model), request.device
    base = base_of(home, settings)
    weights = read(path, WHO, allow_pickle=request.allow_pickle)
    config, coder = config_of(base, WHO), coder_of(base, WHO)
    encoder = {key.removeprefix(ENCODER): weights[key] for key in weights if key.startswith(ENCODER)}
    architecture = transformers.MODEL_MAPPING[type(config)]
    encoder_weights = Weights(encoder, path, ENCODER)
    network = build_network(architecture, config, encoder_weights, home, request, **_without_pooler(config))
    _check_layers(settings, config.num_hidden_layers + 1, home)
    tops = _tops(weights, settings, config.num_hidden_layers + 1, config.hidden_size, path)
    tops = {key: value.to(device) for key, value in tops.items()}
    if layer_mix is None:
        _warn(home, settings)
    limit = _limit(config.to_dict())
    return CometModel(
        settings=settings,
        coder=coder,
        network=network,
        mix=_mix(tops, layer_mix or settings.mix, settings),
        head=FeedForward(layers, settings.activation, settings.final) if (layers := _layers(tops)) else None,
        tags=(tops[f"{TAGS}weight"], tops[f"{TAGS}bias"]) if settings.words is not None else None,
        limit=limit,
        device=device,
        cuts=Cuts(WHO, limit if settings.joined else limit - _RESERVED),
    )


def base_of(home: ModelLocation, settings: Settings) -> ModelLocation:
    """Return where the encoder's configuration and tokenizer are: beside the checkpoint, else in the base model."""
    places = [home.folder / beside for beside in _BESIDE] + [home.folder / settings.encoder]
    for folder in places:
        if (folder / "config.json").is_file():
            return ModelLocation(settings.encoder, folder, hub=False)
    try:
        base = find(settings.encoder, SMALL, WHO)
        need(base, ["config.json"], WHO)
    except MissingExtra as error:
        raise MissingExtra(f"{WHO}: {home.folder} has no config.json of its encoder, and {error}") from error
    return base


def limit_of(home: ModelLocation, settings: Settings) -> int:
    """Return how many pieces are read: of each text, or of all texts together; no network is loaded for it."""
    limit = _limit(read_json(base_of(home, settings).folder / "config.json"))
    return limit if settings.joined else limit - _RESERVED


def _limit(config: Mapping[str, object]) -> int:
    table = config.get("max_position_embeddings")
    return (table if isinstance(table, int) else _USUAL_TABLE) - _RESERVED


def _warn(home: ModelLocation, settings: Settings) -> None:
    """Tell, once per loaded model, what a user should know before trusting its scores."""
    if settings.joined and settings.layer is None and settings.mix == "sparsemax":
        message = (
            f"{home.folder / HPARAMS}: layer_transformation is sparsemax and is applied. Trainers before 2.2.4 wrote "
            "that and used softmax; if this model was trained with one, set layer_mix='softmax'"
        )
        warnings.warn(message, UserWarning, stacklevel=2)


def _check_layers(settings: Settings, states: int, home: ModelLocation) -> None:
    for name, number in (("layer", settings.layer), ("word_layer", settings.words)):
        if number is not None and not -states <= number < states:
            message = f"{name} is {number}, but the encoder has {states} states"
            raise DataError(message, file=str(home.folder / HPARAMS))


def _without_pooler(config: object) -> dict[str, bool]:
    # Encoders of the BERT family have a pooler that no metric reads.
    kinds = ("bert", "roberta", "xlm-roberta", "xlm-roberta-xl", "rembert")
    return {"add_pooling_layer": False} if getattr(config, "model_type", None) in kinds else {}


def _tops(weights: dict[str, "Tensor"], settings: Settings, states: int, width: int, path: Path) -> dict[str, "Tensor"]:
    """Return what stands on top of the encoder, complete and in the right sizes."""
    expected: dict[str, tuple[int, ...]] = {}
    if settings.layer is None:
        expected[f"{MIX}gamma"] = (1,)
        expected |= {f"{MIX}scalar_parameters.{number}": (1,) for number in range(states)}
    parts = 1 if settings.joined else 6 if settings.kind == "regression_metric" else 4
    if settings.kind != "ranking_metric":
        expected |= {f"{HEAD}{key}": size for key, size in feed_forward_keys(parts * width, settings.sizes).items()}
    if settings.words is not None:
        classes = len(settings.labels) + 1
        expected |= {f"{TAGS}weight": (classes, width), f"{TAGS}bias": (classes,)}
    others = [key for key in weights if not key.startswith((ENCODER, *LEFTOVERS)) and key not in expected]
    return take(weights, expected, sorted(others), path)


def _mix(tops: dict[str, "Tensor"], how: LayerMix, settings: Settings) -> Mix | None:
    if settings.layer is not None:
        return None
    torch = importlib.import_module("torch")
    count = sum(key.startswith(f"{MIX}scalar_parameters.") for key in tops)
    parameters = torch.cat([tops[f"{MIX}scalar_parameters.{number}"] for number in range(count)])
    return mix_of(parameters, tops[f"{MIX}gamma"], how, norm=settings.norm)


def _layers(tops: dict[str, "Tensor"]) -> tuple[tuple["Tensor", "Tensor"], ...]:
    numbers = sorted(int(key.split(".")[2]) for key in tops if key.startswith(HEAD) and key.endswith("weight"))
    return tuple((tops[f"{HEAD}{number}.weight"], tops[f"{HEAD}{number}.bias"]) for number in numbers)


References = Literal["mean", "max"]


def open_model(
    model: CometModel, segments: Sequence[Segment], inputs: Inputs, weights: Sequence[float], references: References
) -> Inside:
    """Return the checkpoint, opened for some segments; `weights` are those of the parts of the score, rows first."""
    torch = importlib.import_module("torch")
    rows = 3 if Inputs.SOURCE | Inputs.REFERENCES in inputs else 1
    factors = torch.tensor(weights[:rows], device=model.device)
    places = [_places(segment, inputs) for segment in segments]
    coded = model.code(
        [
            segment.text(place)
            for segment, places_of_segment in zip(segments, places, strict=True)
            for place in places_of_segment
        ]
    )

    def show(segment: Segment, place: Place) -> Shown:
        text = coded[segment.text(place)]
        return Shown(place, text, model.count_read(len(text.ids)))

    readings = tuple(
        _reading(model, [show(segment, place) for place in places_of_segment])
        for segment, places_of_segment in zip(segments, places, strict=True)
    )

    def score(batch: Sequence[Reading]) -> "Tensor":
        rows_of_reading = torch.split(
            model.pool(model.read([each.row for each in rows_of(batch)])), [len(reading) for reading in batch]
        )
        scores: Tensor = torch.stack([_score(model, vectors, factors, references) for vectors in rows_of_reading])
        return scores

    return look_inside(model, readings, score)


def _places(segment: Segment, inputs: Inputs) -> list[Place]:
    """Return the texts that are read: empty references beside others are not."""
    read = set(present(segment.references))
    return [
        place for place in segment.places(inputs) if place.side is not Side.REFERENCE or segment.text(place) in read
    ]


def _reading(model: CometModel, texts: Sequence[Shown]) -> Reading:
    frame = model.coder.frame
    if not model.settings.joined:
        return tuple(line(frame, [text]) for text in texts)
    first = [text for text in texts if text.place.side is not Side.REFERENCE]
    others = texts[len(first) :]
    groups = [first] if not others else []
    for reference in others:
        hypothesis = first[0]
        groups += [first, [hypothesis, reference]] if len(first) > 1 else []
        groups.append([*first, reference])
    return tuple(line(frame, group, model.limit) for group in groups)


def _score(model: CometModel, vectors: "Tensor", weights: "Tensor", references: References) -> "Tensor":
    """Return the score of one segment from the vectors of its rows."""
    if model.settings.joined:
        scores = model.judge(vectors).reshape(-1, len(weights)) @ weights
    else:
        hypothesis, source, others = vectors[:1], vectors[1:2], vectors[2:]
        number = max(1, len(others))
        against = (others,) if len(others) else ()
        scores = model.compare(hypothesis.expand(number, -1), source.expand(number, -1), *against)
    return scores.mean() if references == "mean" else scores.amax()
