"""BARTScore, after Yuan, Neubig and Liu (2021), arXiv 2106.11520.

1. A direction `a->b` asks how probable text b is to a summarisation model that has read text a.
2. The score is the mean log p(b_t | b_<t, a) over the pieces of b, the special ones at both ends included, as the
   published code has it; `count="words"` leaves them out, except where a text has no other pieces.
3. `f` is the mean of `reference->hypothesis` (precision) and `hypothesis->reference` (recall). Several references count
   by their mean or by the best one.

The score has no zero that means anything: 0 would be a text that cannot be other than it is, and good texts lie near
-2 or -3. Compare only within one model and direction.

Word scores: the log-probabilities of the pieces of a word of the target text, pooled: the weakest (`min`), the sum (the
log-probability of the word), the mean, the first.

The network:

1. The states of each distinct conditioning text are computed once and pinned.
2. Pairs go through the decoder in batches. The logits of a batch are taken in slices: for all positions at once they
   would be the largest tensor of all.
3. log p of each target piece, special ones included, from a log-softmax in float64.

Looked into (`inspect`): per pair, the encoder reads the conditioning text and the decoder the target, moved on by one
piece. What a piece of the target contributes there is what it does for the pieces after it; how probable it is itself
is its word score.
"""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np

from whyscore.errors import SpecError
from whyscore.metrics.needs import compared_texts, need_inputs
from whyscore.models.attribution import Inside, Line, Reading, Shown, line, look_inside, rows_of
from whyscore.models.checkpoints import (
    NETWORKS,
    ModelLocation,
    ModelRequest,
    Weights,
    build_network,
    coder_of,
    config_of,
    device_of,
    model_signature,
    need,
    package,
    read,
    read_json,
    weights_of,
)
from whyscore.models.heads import widen
from whyscore.models.pairs import Coded, Cuts, Pinned, Row, TextNetwork, as_tensors, budget_of, in_batches, positions
from whyscore.registry import runs_code
from whyscore.settings import Precision, check_fields
from whyscore.text.alignment import Fill, PieceScores, score_words
from whyscore.text.files import read_once
from whyscore.types import (
    HYPOTHESIS,
    SOURCE,
    FloatMatrix,
    FloatVector,
    Inputs,
    Place,
    Segment,
    Side,
    Signature,
    Words,
    WordScores,
    split_by_size,
)

if TYPE_CHECKING:
    from torch import Tensor


WHO = "bartscore"
LIMIT = 1024
_SLICE = 512  # positions whose logits over the vocabulary are held at a time

Pair = tuple[str, str]
"""The conditioning text and the target."""


class Target(NamedTuple):
    """The log-probabilities of a target: of the pieces of the text, and of the special ones around it."""

    text: FloatVector
    special: FloatVector
    coded: Coded
    """All pieces of the text; more than there are log-probabilities where it was cut."""


@dataclass
class BartModel(TextNetwork):
    """A loaded model."""

    start: int
    states: "Pinned[Tensor]" = field(default_factory=Pinned, repr=False)
    """What the encoder made of conditioning texts."""

    def targets(self, pairs: Sequence[Pair]) -> dict[Pair, Target]:
        """Return the log-probabilities of each distinct pair's target."""
        distinct = list(dict.fromkeys(pairs))
        coded, rows = self.frame_texts(text for pair in distinct for text in pair)
        targets: dict[Pair, Target] = {}
        for window in self._windows(distinct, rows):
            for pair, values in zip(window, self._compute(window, rows), strict=True):
                targets[pair] = self._split(values, coded[pair[1]])
        return targets

    def _split(self, values: FloatVector, coded: Coded) -> Target:
        first, last = len(self.coder.frame.before), len(values) - len(self.coder.frame.after)
        special = np.concatenate([values[:first], values[last:]])
        return Target(values[first:last], special, coded)

    def _windows(self, pairs: Sequence[Pair], rows: dict[str, Row]) -> Iterator[list[Pair]]:
        """Yield pairs whose conditioning texts have states that fit the memory; each such text is in one window."""
        by_text: dict[str, list[Pair]] = {}
        for pair in pairs:
            by_text.setdefault(pair[0], []).append(pair)
        weight = self.network.get_parameter("lm_head.weight")
        bytes_per_piece = int(weight.shape[1] * weight.element_size())
        for texts in split_by_size(by_text, lambda text: len(rows[text].ids) * bytes_per_piece, self.states.memory):
            yield [pair for text in texts for pair in by_text[text]]

    def _compute(self, pairs: Sequence[Pair], rows: dict[str, Row]) -> list[FloatVector]:
        states = self._states(list(dict.fromkeys(text for text, _ in pairs)), rows)
        # A decoder position costs its own work and that of looking at every conditioning piece.
        lengths = [len(rows[text].ids) + len(rows[target].ids) for text, target in pairs]

        def compute(batch: list[int]) -> list[FloatVector]:
            batch_pairs = [pairs[number] for number in batch]
            return self._decode([states[text] for text, _ in batch_pairs], [rows[target] for _, target in batch_pairs])

        return in_batches(lengths, budget_of(self.device), compute, WHO)

    def _states(self, texts: Sequence[str], rows: dict[str, Row]) -> dict[str, "Tensor"]:
        """Return the encoder's states of each text, from the pinned ones where they are among them."""
        torch = importlib.import_module("torch")
        encoder = self.network.get_submodule("model.encoder")

        def encode(missing: list[str]) -> list["Tensor"]:
            return self.compute_rows([rows[text] for text in missing], compute)

        def compute(batch: list[Row]) -> list["Tensor"]:
            inputs = as_tensors(batch, self.coder.padding, self.device)
            with torch.inference_mode():
                states = encoder(input_ids=inputs.ids, attention_mask=inputs.mask)[0]
            # Copies, as slices would keep the padded states of the whole batch alive.
            return [state[: len(row.ids)].clone() for row, state in zip(batch, states, strict=True)]

        return self.states.take(texts, encode)

    def _decode(self, states: Sequence["Tensor"], targets: Sequence[Row]) -> list[FloatVector]:
        torch = importlib.import_module("torch")
        expected = as_tensors(targets, self.coder.padding, self.device)
        shifted = as_tensors([Row((self.start, *row.ids[:-1]), 0) for row in targets], self.coder.padding, self.device)
        conditions = torch.nn.utils.rnn.pad_sequence(list(states), batch_first=True)
        lengths = torch.tensor([len(state) for state in states], device=self.device)
        mask = (torch.arange(conditions.shape[1], device=self.device) < lengths[:, None]).long()
        with torch.inference_mode():
            hidden = self.network.get_submodule("model.decoder")(
                input_ids=shifted.ids, encoder_hidden_states=conditions, encoder_attention_mask=mask, use_cache=False
            )[0]
            real = expected.mask.bool()
            values = self._log_probabilities(hidden[real], expected.ids[real]).cpu().double()
        return [part.numpy() for part in torch.split(values, [len(row.ids) for row in targets])]

    def lines(self, pair: tuple[Place, Place], segment: Segment) -> tuple[Line, Line]:
        """Return what the encoder and the decoder read of a pair of texts."""
        room = self.limit - self.coder.frame.size(1)
        texts = [
            Shown(place, self.coder.code([text])[text], room)
            for place, text in ((place, segment.text(place)) for place in pair)
        ]
        read, target = (line(self.coder.frame, [text]) for text in texts)
        (part,) = target.parts
        shifted = Row((self.start, *target.row.ids[:-1]), 0)
        return read, Line(shifted, (part._replace(start=part.start + 1),))

    def means(self, pairs: Sequence[tuple[Line, Line]], count: str) -> "Tensor":
        """Return the mean log-probability of each pair's target, as a differentiable function of the states."""
        torch = importlib.import_module("torch")
        padding, device = self.coder.padding, self.device
        # Padded alike, so that the states of both sides make one table.
        rows = as_tensors([each.row for pair in pairs for each in pair], padding, device)
        states = self.network.get_submodule("model.encoder")(input_ids=rows.ids[::2], attention_mask=rows.mask[::2])[0]
        hidden = self.network.get_submodule("model.decoder")(
            input_ids=rows.ids[1::2],
            encoder_hidden_states=states,
            encoder_attention_mask=rows.mask[::2],
            use_cache=False,
        )[0]
        values = []
        for (_, target), states_of_pair in zip(pairs, hidden, strict=True):
            expected = torch.tensor((*target.row.ids[1:], self.coder.frame.after[-1]), device=device)
            logs = self._log_probabilities(states_of_pair[: len(expected)], expected)
            (part,) = target.parts
            # The state at a piece says how probable the next one is.
            inside = slice(part.start - 1, part.inside.stop - 1)
            values.append((logs[inside] if count == "words" and part.spans else logs).mean().float())
        stacked: Tensor = torch.stack(values)
        return stacked

    def _log_probabilities(self, hidden: "Tensor", expected: "Tensor") -> "Tensor":
        torch = importlib.import_module("torch")
        output, bias = self.network.get_submodule("lm_head"), self.network.get_buffer("final_logits_bias")
        parts = []
        for states, pieces in zip(torch.split(hidden, _SLICE), torch.split(expected, _SLICE), strict=True):
            logits = widen(output(states) + bias)
            parts.append(logits.log_softmax(-1).gather(1, pieces[:, None])[:, 0])
        values: Tensor = torch.cat(parts)
        return values


def checkpoint_of(model: str, weights: str | None) -> tuple[ModelLocation, Path]:
    """Return where the model is, and the weights that count: its own, or those that were trained further."""
    home, model_weights = weights_of(model, NETWORKS, WHO)
    if weights is None:
        return home, model_weights
    path = Path(weights).expanduser()
    if not path.is_file():
        raise SpecError(f"{WHO}: no weights at {weights}; name the file of a state dict, such as bart.pth")
    return home, path


def limit_of(home: ModelLocation) -> int:
    """Return how many pieces of a text are read."""
    return min(LIMIT, positions(read_json(need(home, ["config.json"], WHO)), LIMIT))


@read_once(2)
def _load(path: Path, home: ModelLocation, request: ModelRequest) -> BartModel:
    """Return a loaded model; the same one again for the same files and options."""
    transformers = package("transformers", WHO)
    config = config_of(home, WHO)
    if config.model_type != "bart":
        raise SpecError(f"{WHO}: {request.model} is a {config.model_type} model, expected bart")
    weights = Weights(read(path, WHO, allow_pickle=request.allow_pickle), path)
    network = build_network(transformers.BartForConditionalGeneration, config, weights, home, request)
    limit, start = limit_of(home), config.decoder_start_token_id
    return BartModel(coder_of(home, WHO), network, limit, request.device, Cuts(WHO, limit), start)


Direction = Literal["source->hypothesis", "reference->hypothesis", "hypothesis->reference", "f"]

_BOTH = ("reference->hypothesis", "hypothesis->reference")
_TARGETS = {
    "source->hypothesis": (Side.HYPOTHESIS,),
    "reference->hypothesis": (Side.HYPOTHESIS,),
    "hypothesis->reference": (Side.REFERENCE,),
    "f": (Side.HYPOTHESIS, Side.REFERENCE),
}


@dataclass(frozen=True, slots=True)
class BartScore:
    """Mean log-probability of one text given another, below 0; higher is better.

    Args:
        model: local folder, hub name or name@revision of a BART.
        direction: which text is scored given which.
        count: whether the special pieces at both ends count.
        references: whether several references count by their mean or by the best.
        pool: how the values of a word's subwords are combined.
        fill: the value of a word without subwords.
        weights: file with the weights of the same model trained further (a `.pth` state dict).
        device: auto, cpu, cuda, cuda:1, mps.
        precision: of the network; probabilities are always computed in float64.
        allow_pickle: read files that could run code while loading; only for files you trust.
    """

    model: str = "facebook/bart-large-cnn"
    direction: Direction = "source->hypothesis"
    count: Literal["all", "words"] = "all"
    references: Literal["mean", "max"] = "mean"
    pool: Literal["min", "sum", "mean", "first"] = "min"
    fill: Fill = "error"
    weights: str | None = None
    device: str = "auto"
    precision: Precision = "fp32"
    allow_pickle: bool = runs_code(default=False)

    higher_is_better: ClassVar[bool] = True
    original: ClassVar[str] = "neulab/BARTScore 248f511"

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def inputs(self) -> Inputs:
        other = Inputs.SOURCE if self.direction == "source->hypothesis" else Inputs.REFERENCES
        return Inputs.HYPOTHESIS | other

    @property
    def columns(self) -> tuple[str, ...]:
        return _BOTH if self.direction == "f" else (self.direction,)

    def signature(self) -> Signature:
        home, weights = checkpoint_of(self.model, self.weights)
        return model_signature(self, home, [weights], precision=self.precision, limit=limit_of(home), mode="compat")

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return self.scores(self.statistics(segments))

    def statistics(self, segments: Sequence[Segment]) -> FloatMatrix:
        need_inputs(WHO, segments, self.inputs)
        requests = [[_pairs(segment, direction) for direction in self.columns] for segment in segments]
        targets = self._model().targets([pair for row in requests for pairs in row for pair in pairs])
        rows = [[self._over([self._mean(targets[pair]) for pair in pairs]) for pairs in row] for row in requests]
        return np.array(rows, dtype=np.float64).reshape(len(segments), len(self.columns))

    def scores(self, rows: FloatMatrix) -> FloatVector:
        return np.asarray(rows.mean(axis=1), dtype=np.float64)

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        pieces = self.piece_scores(segments, place)
        return [
            score_words(text, scores, self.pool, self.fill, "log p") for text, scores in zip(words, pieces, strict=True)
        ]

    def piece_scores(self, segments: Sequence[Segment], place: Place) -> list[PieceScores]:
        """Return the log-probability of each piece of the target text, special pieces left out.

        Hypotheses with several references get the mean over them, or the numbers of the best one.
        """
        self._check_place(place)
        need_inputs(WHO, segments, self.inputs)
        requests = [self._pairs_of(segment, place) for segment in segments]
        targets = self._model().targets([pair for pairs in requests for pair in pairs])
        return [self._pieces(pairs, targets) for pairs in requests]

    def _pieces(self, pairs: Sequence[Pair], targets_by_pair: Mapping[Pair, Target]) -> PieceScores:
        targets = [targets_by_pair[pair] for pair in pairs]
        best = int(np.argmax([self._mean(target) for target in targets]))
        mean = np.stack([target.text for target in targets]).mean(axis=0)
        values: FloatVector = mean if self.references == "mean" else targets[best].text
        coded, count = targets[0].coded, len(values)
        return PieceScores(coded.spans[:count], coded.pieces[:count], values, len(coded.ids))

    def inspect(self, segments: Sequence[Segment]) -> Inside:
        need_inputs(WHO, segments, self.inputs)
        model = self._model()
        readings = tuple(
            tuple(
                each
                for column in self.columns
                for pair in _places(segment, column)
                for each in model.lines(pair, segment)
            )
            for segment in segments
        )

        def score(readings_asked: Sequence[Reading]) -> "Tensor":
            torch = importlib.import_module("torch")
            lines = rows_of(readings_asked)
            means = model.means(list(zip(lines[::2], lines[1::2], strict=True)), self.count)
            groups = torch.split(means, [len(reading) // 2 for reading in readings_asked])
            tables = [group.reshape(len(self.columns), -1) for group in groups]
            columns = [table.mean(1) if self.references == "mean" else table.max(1).values for table in tables]
            values: Tensor = torch.stack([column.mean() for column in columns])
            return values

        return look_inside(model, readings, score)

    def _pairs_of(self, segment: Segment, place: Place) -> list[Pair]:
        if place.side is Side.REFERENCE:
            return [(segment.hypothesis, segment.text(place))]
        return _pairs(segment, "reference->hypothesis" if self.direction == "f" else self.direction)

    def _mean(self, target: Target) -> float:
        if self.count == "words" and len(target.text):
            return float(target.text.mean())
        return float(np.concatenate([target.text, target.special]).mean())

    def _over(self, values: Sequence[float]) -> float:
        return float(np.mean(values)) if self.references == "mean" else max(values)

    def _check_place(self, place: Place) -> None:
        targets = _TARGETS[self.direction]
        if place.side not in targets:
            raise SpecError(
                f"bartscore(direction={self.direction!r}) has word scores for the {' and the '.join(targets)}, the "
                f"text it scores; asked for the {place}. Explain that with erasure, lime or shap"
            )

    def _model(self) -> BartModel:
        home, weights = checkpoint_of(self.model, self.weights)
        device = device_of(self.device, WHO)
        return _load(weights, home, ModelRequest(self.model, device, self.precision, self.allow_pickle))


def _places(segment: Segment, direction: str) -> list[tuple[Place, Place]]:
    """Return where the conditioning text and the target stand, once per reference."""
    if direction == "source->hypothesis":
        return [(SOURCE, HYPOTHESIS)]
    pairs = [(place, HYPOTHESIS) for place in compared_texts(segment, "reference")]
    return pairs if direction == "reference->hypothesis" else [(there, here) for here, there in pairs]


def _pairs(segment: Segment, direction: str) -> list[Pair]:
    """Return the conditioning text and the target, once per reference."""
    return [(segment.text(read), segment.text(target)) for read, target in _places(segment, direction)]
