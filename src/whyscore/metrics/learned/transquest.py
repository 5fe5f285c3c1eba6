"""TransQuest, after Ranasinghe, Orasan and Mitkov (2020, 2021): quality estimation without references.

1. `mono`: source and hypothesis are read together; the network's one output is the score. RoBERTa's tokenizer gets a
   blank before each text, and an empty hypothesis gets no separators: the source is read alone.
2. `siamese`: each is read by itself; the score is the cosine of the two mean vectors, computed in float64.
3. `micro`: the words of the source, a separator, and the words of the hypothesis with a mark for the gap before,
   between and after them; the first piece of each is tagged OK or BAD. The score is 1 - mean p(BAD) over the words and
   gaps of the hypothesis that were read, which the paper leaves open.

Inputs are cut at 128 pieces, or where the model's arguments say; of a pair the longer text loses its end first.

Word scores, from `micro` models for hypothesis and source: minus p(BAD) of each white-space word. Other units get the
mean over the words they touch. Words beyond the limit have no number and the note `truncated`; gaps are in `tags`.

Checkpoints: the folder of a mono or micro model is one of transformers, with `model_args.json` for the limit, the
labels and the mark between words. A siamese one is of sentence-transformers: `modules.json` names the folders of the
network and of its pooling; without it the folder is the network's own and the pieces are averaged.

Opened for attribution, a `mono` model reads one row of source and hypothesis, a `siamese` one a row each.
"""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, cast

import numpy as np

from whyscore.errors import DataError, SpecError
from whyscore.metrics.needs import need_source
from whyscore.models.attribution import Inside, Reading, Shown, line, look_inside, rows_of
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
    package,
    read,
    read_json,
    weights_of,
)
from whyscore.models.heads import Pooling, pool_states, widen
from whyscore.models.pairs import Coded, Cuts, Pinned, Row, TextNetwork, as_tensors, shorter
from whyscore.models.word_vectors import cosine
from whyscore.registry import runs_code
from whyscore.settings import Precision, check_fields
from whyscore.text.alignment import Fill, PieceScores, score_words
from whyscore.text.files import read_once
from whyscore.text.splitters import white_space
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
)

if TYPE_CHECKING:
    from torch import Tensor


Kind = Literal["mono", "siamese", "micro"]

WHO = "transquest"
LIMIT = 128
GAP = "<gap>"
SEPARATOR = "[SEP]"

_MAPPINGS = {
    "mono": "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING",
    "micro": "MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING",
    "siamese": "MODEL_MAPPING",
}
_SPACED = ("roberta", "longformer")
_POOLINGS: dict[str, Pooling] = {
    "pooling_mode_mean_tokens": "avg",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_cls_token": "cls",
}


class Layout(NamedTuple):
    """Where the parts of a checkpoint are."""

    home: ModelLocation
    weights: Path
    limit: int
    pool: Pooling
    gap: str
    labels: tuple[str, ...]

    @property
    def network(self) -> Path:
        """The folder with configuration, tokenizer and weights."""
        return self.weights.parent


@dataclass
class QuestModel(TextNetwork):
    """A loaded model of any kind."""

    layout: Layout
    types: bool
    spaced: bool
    """Whether a blank is put before each text of a pair: RoBERTa's tokenizer tells the first word from others by it."""
    known: Pinned[FloatVector] = field(default_factory=Pinned, repr=False)
    """Vectors of texts that were read by themselves."""

    def pairs(self, requested: Sequence[tuple[str, str]]) -> dict[tuple[str, str], float]:
        """Return the score of each distinct pair of source and hypothesis, read together."""
        distinct = list(dict.fromkeys(requested))
        coded = self.code_pairs(distinct)
        read = []
        for pair in distinct:
            texts = [coded[text] for text in pair]
            read.append([(text.ids, size) for text, size in zip(texts, self.cut(*texts), strict=False)])
        self.cuts.add(sum(any(size < len(ids) for ids, size in texts) for texts in read), len(read))
        rows = [self.coder.frame.join([ids[:size] for ids, size in texts]) for texts in read]

        def compute(batch: list[Row]) -> list[float]:
            return cast("list[float]", self._ask(batch)[0][:, 0].tolist())

        return dict(zip(distinct, self.compute_rows(rows, compute), strict=True))

    def code_pairs(self, pairs: Sequence[tuple[str, str]]) -> dict[str, Coded]:
        """Return the pieces of each text of pairs that are read together."""
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        if not self.spaced:
            return self.coder.code(texts)
        leads = {text: "" if text.startswith(" ") else " " for text in texts}
        coded = self.coder.code([f"{leads[text]}{text}" for text in texts], strip=False)
        return {text: _shift(coded[f"{lead}{text}"], -len(lead)) for text, lead in leads.items()}

    def cut(self, source: Coded, hypothesis: Coded) -> tuple[int, ...]:
        """Return how many pieces are read of the source and of the hypothesis; the source alone beside an empty one."""
        room = self.limit - self.coder.frame.size(2)
        if any(start < end for start, end in hypothesis.spans):  # a blank put before nothing has no span
            return tuple(map(len, shorter(source.ids, hypothesis.ids, room)))
        return (min(len(source.ids), room + 1),)

    def vectors(self, texts: Sequence[str]) -> dict[str, FloatVector]:
        """Return the vector of each distinct text, read by itself, from the pinned ones where it is among them."""

        def encode(missing: list[str]) -> list[FloatVector]:
            _, rows = self.frame_texts(missing)
            return self.compute_rows([rows[text] for text in missing], compute)

        def compute(batch: list[Row]) -> list[FloatVector]:
            states, mask = self._ask(batch)
            return [row.copy() for row in pool_states(states.float(), mask, self.layout.pool).cpu().double().numpy()]

        return self.known.take(texts, encode)

    def tags(self, requested: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], FloatVector]:
        """Return p(BAD) of each word of distinct lists of words; NaN for words that were not read or have no piece."""
        distinct = list(dict.fromkeys(requested))
        coded = self.coder.code(word for words in distinct for word in words)
        frame, bad = self.coder.frame, self.layout.labels.index("BAD")
        room = self.limit - frame.size(1)
        pieces = [[coded[word].ids for word in words] for words in distinct]
        self.cuts.add(sum(sum(map(len, words)) > room for words in pieces), len(pieces))
        rows = [frame.join([[piece for word in words for piece in word][:room]]) for words in pieces]

        def compute(batch: list[Row]) -> list[FloatMatrix]:
            return list(widen(self._ask(batch)[0]).softmax(-1).cpu().double().numpy())

        tables = self.compute_rows(rows, compute)
        return {
            words: _first(table[:, bad], [len(word) for word in sizes], len(frame.before), room)
            for words, table, sizes in zip(distinct, tables, pieces, strict=True)
        }

    def _ask(self, rows: Sequence[Row]) -> tuple["Tensor", "Tensor"]:
        """Return the first output of the network (logits, or states), and which pieces are real."""
        torch = importlib.import_module("torch")
        inputs = as_tensors(rows, self.coder.padding, self.device)
        types = {"token_type_ids": inputs.types} if self.types else {}
        with torch.inference_mode():
            return self.network(input_ids=inputs.ids, attention_mask=inputs.mask, **types)[0], inputs.mask


def _shift(coded: Coded, by: int) -> Coded:
    return coded._replace(spans=tuple((max(0, start + by), max(0, end + by)) for start, end in coded.spans))


def _first(column: FloatVector, sizes: Sequence[int], start: int, room: int) -> FloatVector:
    """Return the number of each word's first piece."""
    begins = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp) if sizes else np.zeros(0, dtype=np.intp)
    read = (begins < room) & (np.array(sizes, dtype=np.intp) > 0)
    values = np.full(len(sizes), np.nan)
    values[read] = column[start + begins[read]]
    return values


def layout_of(model: str, kind: Kind) -> Layout:
    """Return where the parts of a checkpoint are; no network is loaded for it."""
    inner = ("0_Transformer/", "") if kind == "siamese" else ("",)
    home, weights = weights_of(
        model, [[f"{part}{file}" for part in inner for file in group] for group in NETWORKS], WHO
    )
    arguments = _optional(weights.parent / "model_args.json")
    limits = _optional(weights.parent / "sentence_bert_config.json") | arguments
    limit = limits.get("max_seq_length", LIMIT)
    if not isinstance(limit, int):
        raise DataError(f"max_seq_length is {limit!r}, expected a whole number", file=str(weights.parent))
    labels = _labels(arguments, weights.parent) if kind == "micro" else ()
    return Layout(home, weights, limit, _pool(home.folder), str(arguments.get("tag", GAP)), labels)


@read_once(2)
def _load(path: Path, layout: Layout, request: ModelRequest, kind: Kind) -> QuestModel:
    """Return a loaded model; the same one again for the same files and options."""
    transformers = package("transformers", WHO)
    home = layout.home._replace(folder=layout.network)
    config, coder = config_of(home, WHO), coder_of(home, WHO)
    weights = Weights(read(path, WHO, allow_pickle=request.allow_pickle), path)
    _check_labels(kind, config.num_labels, layout)
    architecture = getattr(transformers, _MAPPINGS[kind])[type(config)]
    options = {"add_pooling_layer": False} if kind == "siamese" else {}
    network = build_network(architecture, config, weights, layout.home, request, **options)
    typed = (getattr(config, "type_vocab_size", 0) or 0) > 1
    shared = (coder, network, layout.limit, request.device, Cuts(WHO, layout.limit))
    return QuestModel(*shared, layout, typed, config.model_type in _SPACED)


def _optional(path: Path) -> dict[str, object]:
    return read_json(path) if path.is_file() else {}


def _labels(arguments: dict[str, object], folder: Path) -> tuple[str, ...]:
    """Return the labels in the order of the network's outputs, from the trainer's file or the configuration."""
    stated = arguments.get("labels_list")
    named = _optional(folder / "config.json").get("id2label")
    labels = tuple(map(str, stated)) if isinstance(stated, list) else ()
    if not labels and isinstance(named, dict):
        labels = tuple(str(named[key]) for key in sorted(named, key=lambda key: (len(key), key)))
    if not {"OK", "BAD"} <= set(labels):
        shown = ", ".join(labels) or "no labels"
        raise DataError(f"the labels are {shown}, expected OK and BAD among them", file=str(folder))
    return labels


def _check_labels(kind: Kind, number: int | None, layout: Layout) -> None:
    expected = {"mono": 1, "micro": len(layout.labels)}.get(kind)
    if expected is not None and number != expected:
        message = f"has {number} outputs, expected {expected} for kind={kind!r}"
        raise DataError(message, file=str(layout.network / "config.json"))


def _pool(folder: Path) -> Pooling:
    """Return how a siamese model makes one vector of many."""
    config = _optional(folder / "1_Pooling" / "config.json")
    pools = [pool for key, pool in _POOLINGS.items() if config.get(key)]
    if len(pools) > 1:
        raise DataError(f"pooling modes {', '.join(pools)}: one was expected", file=str(folder / "1_Pooling"))
    return pools[0] if pools else "avg"


def open_model(model: QuestModel, segments: Sequence[Segment], *, joined: bool) -> Inside:
    """Return the model, opened for some segments; `joined` says whether it reads the two texts together."""
    pairs = [(segment.source or "", segment.hypothesis) for segment in segments]
    coded = model.code_pairs(pairs) if joined else model.coder.code(text for pair in pairs for text in pair)
    read = _together if joined else _apart
    readings = tuple(read(model, coded[source], coded[hypothesis]) for source, hypothesis in pairs)

    def score(batch: Sequence[Reading]) -> "Tensor":
        inputs = as_tensors([each.row for each in rows_of(batch)], model.coder.padding, model.device)
        types = {"token_type_ids": inputs.types} if model.types else {}
        output: Tensor = model.network(input_ids=inputs.ids, attention_mask=inputs.mask, **types)[0].float()
        if joined:
            return output[:, 0]
        vectors = pool_states(output, inputs.mask, model.layout.pool)
        cosine: Tensor = importlib.import_module("torch").cosine_similarity(vectors[::2], vectors[1::2])
        return cosine

    return look_inside(model, readings, score)


def _together(model: QuestModel, source: Coded, hypothesis: Coded) -> Reading:
    texts = zip((SOURCE, HYPOTHESIS), (source, hypothesis), model.cut(source, hypothesis), strict=False)
    return (line(model.coder.frame, [Shown(*text) for text in texts]),)


def _apart(model: QuestModel, source: Coded, hypothesis: Coded) -> Reading:
    frame = model.coder.frame
    room = model.limit - frame.size(1)
    texts = [Shown(SOURCE, source, room), Shown(HYPOTHESIS, hypothesis, room)]
    return tuple(line(frame, [text]) for text in texts)


class Tags(NamedTuple):
    """p(BAD) of each white-space word of source and hypothesis, and of the gaps; NaN where nothing was read."""

    source: FloatVector
    hypothesis: FloatVector
    gaps: FloatVector
    """Before the first word of the hypothesis, between words, after the last: one more than there are words."""


@dataclass(frozen=True, slots=True)
class TransQuest:
    """Predicted quality of a translation from source and hypothesis.

    Args:
        model: local folder, hub name or name@revision.
        kind: which of the three architectures the model has.
        predicts: what its numbers mean: `quality` is better when higher, `hter`, the predicted edit rate, when lower.
            `auto` takes hter for models with that word in their name.
        fill: the value of a word without subwords.
        device: auto, cpu, cuda, cuda:1, mps.
        precision: of the network.
        allow_pickle: read files that could run code while loading; only for files you trust.
    """

    model: str
    kind: Kind = "mono"
    predicts: Literal["auto", "quality", "hter"] = "auto"
    fill: Fill = "error"
    device: str = "auto"
    precision: Precision = "fp32"
    allow_pickle: bool = runs_code(default=False)

    inputs: ClassVar[Inputs] = Inputs.HYPOTHESIS | Inputs.SOURCE
    original: ClassVar[str] = "transquest 1.1.1"

    def __post_init__(self) -> None:
        check_fields(self)
        if self.kind == "micro" and self.predicts == "hter":
            raise SpecError("transquest: a micro model tags words and predicts no hter; leave out predicts='hter'")

    @property
    def higher_is_better(self) -> bool:
        return self._meaning() == "quality"

    def signature(self) -> Signature:
        layout = layout_of(self.model, self.kind)
        facts = {"predicts": self._meaning()}
        files = [layout.weights]
        return model_signature(self, layout.home, files, precision=self.precision, limit=layout.limit, **facts)

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        need_source("transquest", segments)
        pairs = [(segment.source or "", segment.hypothesis) for segment in segments]
        if self.kind == "micro":
            return np.array([_share_fine(tags) for tags in self.tags(segments)], dtype=np.float64)
        if self.kind == "mono":
            scores = self._model().pairs(pairs)
            return np.array([scores[pair] for pair in pairs], dtype=np.float64)
        vectors = self._model().vectors([text for pair in pairs for text in pair])
        return np.array([cosine(vectors[source], vectors[text]) for source, text in pairs], dtype=np.float64)

    def tags(self, segments: Sequence[Segment]) -> list[Tags]:
        """Return p(BAD) of words and gaps, from a micro model."""
        if self.kind != "micro":
            raise SpecError(f"transquest(kind={self.kind!r}) has no word scores; explain it with erasure, lime or shap")
        need_source("transquest", segments)
        model = self._model()
        rows = [_row(segment, model.layout.gap) for segment in segments]
        tags = model.tags(rows)
        return [
            _split(tags[row], len(white_space(segment.source or "")))
            for row, segment in zip(rows, segments, strict=True)
        ]

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        if place.side is Side.REFERENCE:
            raise SpecError("transquest does not read references: explain the hypothesis or the source")
        return [
            score_words(
                text,
                _as_pieces(text, tags.source if place.side is Side.SOURCE else tags.hypothesis),
                "mean",
                self.fill,
                "-p(BAD)",
            )
            for text, tags in zip(words, self.tags(segments), strict=True)
        ]

    def inspect(self, segments: Sequence[Segment]) -> Inside:
        if self.kind == "micro":
            raise SpecError("transquest(kind='micro') tags words itself; explain it with intrinsic")
        need_source("transquest", segments)
        return open_model(self._model(), segments, joined=self.kind == "mono")

    def _meaning(self) -> Literal["quality", "hter"]:
        if self.predicts == "auto":
            named = Path(self.model.partition("@")[0]).name.lower()
            return "hter" if "hter" in named and self.kind != "micro" else "quality"
        return self.predicts

    def _model(self) -> QuestModel:
        layout = layout_of(self.model, self.kind)
        request = ModelRequest(self.model, device_of(self.device, WHO), self.precision, self.allow_pickle)
        return _load(layout.weights, layout, request, self.kind)


def _row(segment: Segment, gap: str) -> tuple[str, ...]:
    """Return the words a micro model reads."""
    hypothesis = [part for word in white_space(segment.hypothesis) for part in (word, gap)]
    return (*white_space(segment.source or ""), SEPARATOR, gap, *hypothesis)


def _split(values: FloatVector, source: int) -> Tags:
    target = values[source + 1 :]
    return Tags(values[:source], target[1::2], target[::2])


def _share_fine(tags: Tags) -> float:
    values = np.concatenate([tags.hypothesis, tags.gaps])
    read = values[~np.isnan(values)]
    return 1.0 - float(read.mean()) if len(read) else float("nan")


def _as_pieces(words: Words, bad: FloatVector) -> PieceScores:
    """Return the white-space words of a text as pieces; those without a number were not read or say nothing."""
    text = white_space(words.text)
    rated = np.flatnonzero(~np.isnan(bad))
    return PieceScores(
        tuple(text.spans[k] for k in rated),
        tuple(text.text[slice(*text.spans[k])] for k in rated),
        -bad[rated],
        len(text),
    )
