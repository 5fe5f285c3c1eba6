"""TransQuest checkpoints as networks: one score for a pair, one vector for a text, or a tag for each word.

The folder of a mono or micro model is one of transformers, with `model_args.json` for the limit, the labels and the
mark between words. A siamese one is of sentence-transformers: `modules.json` names the folders of the network and of
its pooling; without it the folder is the network's own and the pieces are averaged.
"""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

import numpy as np

from whyscore.errors import DataError
from whyscore.models.checkpoints import (
    NETWORKS,
    Home,
    Precision,
    coder_of,
    config_of,
    fill,
    package,
    read,
    read_json,
    ready,
    weights_of,
)
from whyscore.models.heads import Pooling, pooled, widened
from whyscore.models.licences import licence_of, warn_of
from whyscore.models.pairs import Coder, Cuts, Pinned, Result, Row, as_tensors, budget_of, in_batches, shorter
from whyscore.types import FloatMatrix, FloatVector

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

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
_POOLINGS: dict[str, Pooling] = {
    "pooling_mode_mean_tokens": "avg",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_cls_token": "cls",
}


class Asked(NamedTuple):
    """Which model is wanted, and how."""

    model: str
    kind: Kind
    device: str
    precision: Precision
    allow_pickle: bool


class Layout(NamedTuple):
    """Where the parts of a checkpoint are."""

    home: Home
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
class QuestModel:
    """A loaded model of any kind."""

    layout: Layout
    coder: Coder
    network: "Module"
    types: bool
    device: str
    cuts: Cuts
    known: Pinned[FloatVector] = field(default_factory=Pinned, repr=False)
    """Vectors of texts that were read by themselves."""

    def pairs(self, asked: Sequence[tuple[str, str]]) -> dict[tuple[str, str], float]:
        """Return the score of each distinct pair of source and hypothesis, read together."""
        distinct = list(dict.fromkeys(asked))
        coded = self.coder.code(text for pair in distinct for text in pair)
        room = self.layout.limit - self.coder.frame.size(2)
        texts = [(coded[source].ids, coded[hypothesis].ids) for source, hypothesis in distinct]
        self.cuts.add(sum(len(source) + len(hypothesis) > room for source, hypothesis in texts), len(texts))
        rows = [self.coder.frame.join(shorter(source, hypothesis, room)) for source, hypothesis in texts]

        def compute(batch: list[int]) -> list[float]:
            logits, _ = self._ask([rows[number] for number in batch])
            return cast("list[float]", logits[:, 0].tolist())

        return dict(zip(distinct, self._batched(rows, compute), strict=True))

    def vectors(self, texts: Sequence[str]) -> dict[str, FloatVector]:
        """Return the vector of each distinct text, read by itself, from the pinned ones where it is among them."""

        def encoded(missing: list[str]) -> list[FloatVector]:
            coded = self.coder.code(missing)
            room = self.layout.limit - self.coder.frame.size(1)
            self.cuts.add(sum(len(text.ids) > room for text in coded.values()), len(coded))
            rows = [self.coder.frame.join([coded[text].ids[:room]]) for text in missing]

            def compute(batch: list[int]) -> list[FloatVector]:
                states, mask = self._ask([rows[number] for number in batch])
                return [row.copy() for row in pooled(states.float(), mask, self.layout.pool).cpu().double().numpy()]

            return self._batched(rows, compute)

        return self.known.take(texts, encoded)

    def tags(self, asked: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], FloatVector]:
        """Return p(BAD) of each word of distinct lists of words; NaN for words that were not read or have no piece."""
        distinct = list(dict.fromkeys(asked))
        coded = self.coder.code(word for words in distinct for word in words)
        frame, bad = self.coder.frame, self.layout.labels.index("BAD")
        room = self.layout.limit - frame.size(1)
        pieces = [[coded[word].ids for word in words] for words in distinct]
        self.cuts.add(sum(sum(map(len, words)) > room for words in pieces), len(pieces))
        rows = [frame.join([[piece for word in words for piece in word][:room]]) for words in pieces]

        def compute(batch: list[int]) -> list[FloatMatrix]:
            logits, _ = self._ask([rows[number] for number in batch])
            return list(widened(logits).softmax(-1).cpu().double().numpy())

        tables = self._batched(rows, compute)
        return {
            words: _first(table[:, bad], [len(word) for word in sizes], len(frame.before), room)
            for words, table, sizes in zip(distinct, tables, pieces, strict=True)
        }

    def _batched(self, rows: Sequence[Row], compute: Callable[[list[int]], Sequence[Result]]) -> list[Result]:
        return in_batches([len(row.ids) for row in rows], budget_of(self.device), compute, WHO)

    def _ask(self, rows: Sequence[Row]) -> tuple["Tensor", "Tensor"]:
        """Return the first output of the network (logits, or states), and which pieces are real."""
        torch = importlib.import_module("torch")
        inputs = as_tensors(rows, self.coder.padding, self.device)
        types = {"token_type_ids": inputs.types} if self.types else {}
        with torch.inference_mode():
            return self.network(input_ids=inputs.ids, attention_mask=inputs.mask, **types)[0], inputs.mask


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


def load(asked: Asked) -> QuestModel:
    """Return a loaded model; the same one again for the same files and options."""
    layout = layout_of(asked.model, asked.kind)
    return _load(asked, layout, layout.weights.stat().st_mtime_ns)


@lru_cache(maxsize=2)
def _load(asked: Asked, layout: Layout, _: int) -> QuestModel:
    transformers = package("transformers", WHO)
    home = layout.home._replace(folder=layout.network)
    config, coder = config_of(home, WHO), coder_of(home, WHO)
    weights = read(layout.weights, WHO, allow_pickle=asked.allow_pickle)
    _check_labels(asked, config.num_labels, layout)
    made = getattr(transformers, _MAPPINGS[asked.kind])[type(config)]
    if asked.kind == "siamese":
        network = fill(made, config, weights, layout.weights, add_pooling_layer=False)
    else:
        network = fill(made, config, weights, layout.weights)
    warn_of(asked.model, licence_of(asked.model, layout.home.folder))
    return QuestModel(
        layout=layout,
        coder=coder,
        network=ready(network, asked.device, asked.precision),
        types=(getattr(config, "type_vocab_size", 0) or 0) > 1,
        device=asked.device,
        cuts=Cuts(WHO, layout.limit),
    )


def _optional(path: Path) -> dict[str, object]:
    return read_json(path) if path.is_file() else {}


def _labels(arguments: dict[str, object], folder: Path) -> tuple[str, ...]:
    """Return the labels in the order of the network's outputs, from the trainer's file or the configuration."""
    stated = arguments.get("labels_list")
    named = _optional(folder / "config.json").get("id2label")
    found = tuple(map(str, stated)) if isinstance(stated, list) else ()
    if not found and isinstance(named, dict):
        found = tuple(str(named[key]) for key in sorted(named, key=lambda key: (len(key), key)))
    if not {"OK", "BAD"} <= set(found):
        shown = ", ".join(found) or "no labels"
        raise DataError(f"the labels are {shown}, expected OK and BAD among them", file=str(folder))
    return found


def _check_labels(asked: Asked, number: int | None, layout: Layout) -> None:
    wanted = {"mono": 1, "micro": len(layout.labels)}.get(asked.kind)
    if wanted is not None and number != wanted:
        told = f"has {number} outputs, expected {wanted} for kind={asked.kind!r}"
        raise DataError(told, file=str(layout.network / "config.json"))


def _pool(folder: Path) -> Pooling:
    """Return how a siamese model makes one vector of many."""
    config = _optional(folder / "1_Pooling" / "config.json")
    chosen = [pool for key, pool in _POOLINGS.items() if config.get(key)]
    if len(chosen) > 1:
        raise DataError(f"pooling modes {', '.join(chosen)}: one was expected", file=str(folder / "1_Pooling"))
    return chosen[0] if chosen else "avg"
