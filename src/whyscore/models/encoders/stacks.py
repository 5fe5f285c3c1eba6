"""The lower blocks of an encoder of transformers, and the facts of the model they come from.

1. Find the files, read configuration and tokenizer: enough to know layer, limit and signature.
2. At the first text, load the network, take its encoder where it has one, take out the blocks above the layer, and
   keep the norm that follows the last block where the architecture has one.

Missing weights are an error, as a network filled up with random numbers would score all the same. Heads on top of the
encoder are of no interest and may be there or not, as may the pooler of BERT.

The layer, where nobody says which:

1. The layer that was tuned for a model of this name: by the authors of bert_score 0.3.13, and by Leiter (2021) for the
   two models of natural language inference.
2. Else by the name that the model's own configuration stores, as copies in local folders do.
3. Else the layer of the first model in the table of the same kind, depth and width.
4. Else 0.72 of the depth, about where the tuned layers lie.

All but the first are told: numbers of another layer cannot be compared. The languages of a model are those of its card.
"""

import importlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from whyscore.errors import MissingExtra, SpecError
from whyscore.models.checkpoints import (
    LEFTOVERS,
    NETWORKS,
    SMALL,
    ModelLocation,
    config_of,
    device_of,
    find,
    front_matter,
    licence_of,
    load_pretrained,
    need,
    package,
    parts_of,
    quiet,
    read_json,
    read_yaml,
    ready,
    refuse,
    revision,
    state_of_model,
    warn_of,
    weights_of,
)
from whyscore.models.encoders.packing import packed, prepare
from whyscore.models.pairs import (
    Cuts,
    Inputs,
    Long,
    Reader,
    Row,
    RowCoder,
    Vectors,
    as_tensors,
    budget_of,
    in_batches,
    positions,
)
from whyscore.models.tensors import check_tensors
from whyscore.protocols import Encoded
from whyscore.registry import spec_of
from whyscore.settings import Precision
from whyscore.text.files import State
from whyscore.types import Signature

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module, ModuleList
    from transformers import PretrainedConfig


class LayerNotice(UserWarning):
    """A layer was chosen by a rule, not by a table or the caller."""


class Shape(NamedTuple):
    """The kind of a network, how many blocks it has, and the width of its vectors."""

    kind: str
    blocks: int
    width: int


_BASE, _LARGE = (12, 768), (24, 1024)

TUNED: dict[str, tuple[int, Shape]] = {
    "roberta-large": (17, Shape("roberta", *_LARGE)),
    "roberta-large-mnli": (19, Shape("roberta", *_LARGE)),
    "roberta-base": (10, Shape("roberta", *_BASE)),
    "bert-base-uncased": (9, Shape("bert", *_BASE)),
    "bert-large-uncased": (18, Shape("bert", *_LARGE)),
    "bert-base-multilingual-cased": (9, Shape("bert", *_BASE)),
    "bert-base-chinese": (8, Shape("bert", *_BASE)),
    "dbmdz/bert-base-turkish-cased": (10, Shape("bert", *_BASE)),
    "allenai/scibert_scivocab_uncased": (8, Shape("bert", *_BASE)),
    "distilbert-base-multilingual-cased": (5, Shape("distilbert", 6, 768)),
    "xlm-roberta-base": (9, Shape("xlm-roberta", *_BASE)),
    "xlm-roberta-large": (17, Shape("xlm-roberta", *_LARGE)),
    "joeddav/xlm-roberta-large-xnli": (16, Shape("xlm-roberta", *_LARGE)),
    "vicgalle/xlm-roberta-large-xnli-anli": (17, Shape("xlm-roberta", *_LARGE)),
    "microsoft/deberta-large-mnli": (18, Shape("deberta", *_LARGE)),
    "microsoft/deberta-xlarge-mnli": (40, Shape("deberta", 48, 1024)),
    "microsoft/mdeberta-v3-base": (10, Shape("deberta-v2", *_BASE)),
    "facebook/mbart-large-50-many-to-many-mmt": (12, Shape("mbart", 12, 1024)),
    "facebook/bart-large-cnn": (10, Shape("bart", 12, 1024)),
    "facebook/bart-large-mnli": (11, Shape("bart", 12, 1024)),
    "google/mt5-base": (11, Shape("mt5", *_BASE)),
    "google/mt5-large": (19, Shape("mt5", *_LARGE)),
    "t5-base": (11, Shape("t5", *_BASE)),
}

# Where the hub keeps models that once had no owner.
_OWNERS = ("FacebookAI/", "google-bert/", "google-t5/", "distilbert/")
_SHARE = 0.72


def check_layer(layer: int, blocks: int, name: str) -> int:
    """Return the layer a caller asks for; one that does not exist is an error."""
    if not 0 <= layer <= blocks:
        raise SpecError(f"{name} has layers 0 (before the first block) to {blocks}, got layer={layer}")
    return layer


def recommend_layer(name: str, stored: str | None, shape: Shape) -> int:
    """Return the layer to take where none was asked for; see the rules above.

    >>> recommend_layer("xlm-roberta-large", None, Shape("xlm-roberta", 24, 1024))
    17
    """
    tuned = _find_tuned(name)
    if tuned is not None:
        return tuned
    layer, why = _by_rule(stored, shape)
    warnings.warn(f"{name}: layer {layer} of {shape.blocks} ({why})", LayerNotice, stacklevel=2)
    return layer


def _find_tuned(name: str) -> int | None:
    short = name.partition("@")[0]
    for owner in _OWNERS:
        short = short.removeprefix(owner)
    return TUNED[short][0] if short in TUNED else None


def _by_rule(stored: str | None, shape: Shape) -> tuple[int, str]:
    by_name = None if stored is None else _find_tuned(stored)
    if by_name is not None:
        return min(by_name, shape.blocks), f"it calls itself {stored}"
    for name, (layer, tuned_shape) in TUNED.items():
        if tuned_shape == shape:
            return layer, f"as for {name}, which is built alike"
    return round(_SHARE * shape.blocks), "rule of thumb"


_TOKENIZERS = ("tokenizer.json", "vocab*", "*.model", "*.spm")
# Tokenizers without a limit of their own report 1e30.
_NO_LIMIT = 1_000_000


@dataclass(frozen=True, eq=False)
class Source:
    """A model before its weights are loaded."""

    home: ModelLocation
    weights: Path
    config: "PretrainedConfig"
    tokenizer: Reader
    shape: Shape

    @property
    def stored(self) -> str | None:
        """The name that the configuration gives its model."""
        name = read_json(self.home.folder / "config.json").get("_name_or_path")
        return name if isinstance(name, str) else None

    @property
    def limit(self) -> int | None:
        """How many pieces the model reads, special ones included; None where there is no bound."""
        # Under this name also where a configuration has another for it, as GPT-2 has.
        table = getattr(self.config, "max_position_embeddings", None)
        settings = self.config.to_dict() | {"max_position_embeddings": table}
        bound = min(self.tokenizer.model_max_length, positions(settings, _NO_LIMIT))
        return None if bound >= _NO_LIMIT else bound

    @property
    def revision(self) -> str:
        """The commit on the hub, or a digest of the weights."""
        return revision(self.home, [self.weights])

    @property
    def licence(self) -> str:
        """The licence of the weights."""
        return licence_of(self.home.name, self.home.folder)


Arguments = Mapping[str, "Tensor | None"]
"""What a network is called with."""


class Stack:
    """An encoder up to one layer, ready to compute."""

    def __init__(
        self, network: "Module", device: str, padding: int, hidden: int | None, first: int | None = None
    ) -> None:
        """Take a network.

        Args:
            network: Up to a layer.
            device: It is there.
            padding: The piece that fills rows up.
            hidden: Which of its states are read; None for the last.
            first: The position of a first piece, where the network reads packed rows.
        """
        self.network, self.device, self.padding, self._hidden, self.first = network, device, padding, hidden, first

    @property
    def pads(self) -> bool:
        """Whether rows of different lengths are filled up."""
        return self.first is None

    def states(self, rows: Sequence[Row]) -> list[Vectors]:
        """Return the vectors of the pieces of each row."""
        with importlib.import_module("torch").inference_mode(), self._arguments(rows) as arguments:
            table = self.read(arguments).cpu().numpy()
        # Copies, as slices would keep the whole table alive.
        if self.first is None:
            return [table[number, : len(row.ids)].copy() for number, row in enumerate(rows)]
        ends = np.cumsum([len(row.ids) for row in rows])
        return [vectors.copy() for vectors in np.split(table[0], ends[:-1])]

    @contextmanager
    def _arguments(self, rows: Sequence[Row]) -> Iterator[Arguments]:
        """Give the arguments with which the network reads rows."""
        if self.first is None:
            yield _padded(as_tensors(rows, self.padding, self.device))
            return
        torch = importlib.import_module("torch")
        lengths = [len(row.ids) for row in rows]
        ids = torch.tensor([[piece for row in rows for piece in row.ids]], device=self.device)
        positions = torch.cat([torch.arange(self.first, self.first + length) for length in lengths])
        with packed(lengths):
            yield {"input_ids": ids, "position_ids": positions[None].to(self.device)}

    def table(self, inputs: Inputs) -> "Tensor":
        """Return the vectors of the pieces, rows x pieces x width, with gradients where they are wanted."""
        return self.read(_padded(inputs))

    def read(self, arguments: Arguments) -> "Tensor":
        """Return the vectors of the pieces from the network's arguments: rows x pieces x width."""
        options = {} if self._hidden is None else {"output_hidden_states": True}
        answer = self.network(**arguments, **options)
        states: Tensor = answer.last_hidden_state if self._hidden is None else answer.hidden_states[self._hidden]
        return states.float()


def _padded(inputs: Inputs) -> Arguments:
    # Without padding, attention needs no mask: the states are the same, and computed faster.
    return {"input_ids": inputs.ids, "attention_mask": None if bool(inputs.mask.all()) else inputs.mask}


def source(name: str, who: str, *, allow_pickle: bool = False) -> Source:
    """Return a model's files, configuration and tokenizer; the same ones again as long as the files are the same."""
    home = find(name, SMALL, who)
    need(home, ["config.json"], who)
    if not any(True for pattern in _TOKENIZERS for _ in home.folder.glob(pattern)):
        # transformers would make an empty tokenizer, to which every word is unknown.
        need(home, ["tokenizer.json"], who)
    try:
        home, weights = weights_of(name, NETWORKS if allow_pickle else NETWORKS[:1], who)
    except MissingExtra as error:
        if allow_pickle:
            raise
        hint = "Pickled weights (pytorch_model.bin) are read, as tensors alone, with allow_pickle=True"
        raise MissingExtra(f"{error}. {hint}") from error
    return _source(home, weights, state_of_model(home.folder), who)


@lru_cache(maxsize=8)
def _source(home: ModelLocation, weights: Path, _: State | None, who: str) -> Source:
    config = config_of(home, who)
    try:
        with quiet():
            tokenizer = load_pretrained("AutoTokenizer", home.folder, who)
    except Exception as error:
        # The tokenizers package raises bare exceptions for files it cannot read.
        reason = str(error).strip().split("\n", maxsplit=1)[0]
        raise MissingExtra(f"{who}: the tokenizer of {home.name} cannot be read: {reason}") from error
    shape = Shape(config.model_type, _blocks(config, home.name, who), getattr(config, "hidden_size", 0))
    return Source(home, weights, config, tokenizer, shape)


@lru_cache(maxsize=2)
def stack(source: Source, layer: int, device: str, precision: Precision, who: str) -> Stack:
    """Return the encoder up to a layer, loaded."""
    torch = package("torch", who)
    pickled = ".bin" in source.weights.name
    check_tensors(parts_of(source.weights))
    with quiet():
        network, report = load_pretrained(
            "AutoModel",
            source.home.folder,
            who,
            config=source.config,
            dtype=torch.float32,
            use_safetensors=not pickled,
            weights_only=True,
            output_loading_info=True,
        )
    missing = [key for key in report["missing_keys"] if not any(part in key for part in LEFTOVERS)]
    refuse(source.weights, missing, [], {})
    warn_of(source.home.name, source.licence)
    encoder = network.get_encoder() if source.config.is_encoder_decoder else network
    blocks = block_list(encoder, source.shape.blocks)
    if blocks is not None:
        del blocks[layer:]
    moved = ready(encoder, device, precision).eval()
    padding = source.tokenizer.pad_token_id or 0
    packs = device == "cpu" and blocks is not None
    return Stack(moved, device, padding, layer if blocks is None else None, prepare(moved) if packs else None)


def _blocks(config: object, name: str, who: str) -> int:
    for field in ("encoder_layers", "num_hidden_layers", "num_layers"):
        number = getattr(config, field, None)
        if isinstance(number, int):
            return number
    raise SpecError(f"{who}: the configuration of {name} does not say how many blocks it has")


def block_list(encoder: "Module", number: int) -> "ModuleList | None":
    """Return the list of blocks; None where the network is built otherwise (shared or split blocks)."""
    torch = importlib.import_module("torch")
    lists = {
        name: part
        for name, part in encoder.named_modules()
        if isinstance(part, torch.nn.ModuleList) and len(part) == number
    }
    outer = [name for name in lists if not any(name.startswith(f"{other}.") for other in lists)]
    return lists[outer[0]] if len(outer) == 1 else None


# Texts whose vectors are held at a time where only one vector of each is wanted.
_HELD = 512


@dataclass(frozen=True, eq=False)
class Encoding:
    """A network with all that decides how texts go through it."""

    coder: RowCoder
    stack: Stack
    width: int
    limit: int | None
    long: Long
    batch: int
    cuts: Cuts
    who: str

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        coded = self.coder.code(texts)
        room = self.coder.room(self.limit)
        if self.long == "truncate" and room is not None:
            self.cuts.add(sum(len(text.ids) > room for text in coded.values()), len(coded))
        rows_by_text = {text: self.coder.rows(text, coding, self.limit, self.long) for text, coding in coded.items()}
        rows = list(dict.fromkeys(row for text_rows in rows_by_text.values() for row in text_rows))

        def compute(batch: list[int]) -> list[Vectors]:
            return self.stack.states([rows[number] for number in batch])

        lengths = [len(row.ids) for row in rows]
        vectors = in_batches(lengths, self.batch, compute, self.who, pads=self.stack.pads)
        vector_of = dict(zip(rows, vectors, strict=True))
        answers = {
            text: self.coder.join(text, coding, [vector_of[row] for row in rows_by_text[text]], self.width, room)
            for text, coding in coded.items()
        }
        return [answers[text] for text in texts]

    def each(self, texts: Sequence[str]) -> Iterator[tuple[str, Encoded]]:
        """Yield each distinct text with its vectors, holding few of them at a time."""
        # Short texts first, so that texts of like length meet in a batch here too.
        distinct = sorted(dict.fromkeys(texts), key=len)
        for first in range(0, len(distinct), _HELD):
            part = distinct[first : first + _HELD]
            yield from zip(part, self.encode(part), strict=True)


def mean(encoded: Encoded) -> Vectors:
    """Return the mean of all vectors of a text, special pieces included; zeros where there are none."""
    if not len(encoded.vectors):
        return np.zeros(encoded.vectors.shape[1], dtype=np.float32)
    result: Vectors = encoded.vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    return result


def limit_facts(limit: int | None, long: Long) -> dict[str, str]:
    """Return the part of a signature that says after how many pieces texts are cut, windowed or refused."""
    names = {"truncate": "trunc", "window": "window", "error": "limit"}
    return {} if limit is None else {names[long]: str(limit)}


def lengths(plan: "Plan", texts: Sequence[str], long: Long) -> list[tuple[int, int]]:
    """Return how many pieces of each text are read, and how many it has, special ones left out."""
    room = None if long == "window" else plan.coder.room(plan.limit)
    totals = {text: len(coding.ids) for text, coding in plan.coder.code(texts).items()}
    return [(totals[text] if room is None else min(totals[text], room), totals[text]) for text in texts]


def languages_of(folder: Path) -> frozenset[str] | None:
    """Return the codes in the front matter of the card; None where it names none, or only `multilingual`."""
    card = folder / "README.md"
    front = front_matter(card) if card.is_file() else None
    if front is None:
        return None
    try:
        content = read_yaml(front, "the card of a model")
    except ValueError:
        return None
    stated = content.get("language") if isinstance(content, dict) else None
    # YAML reads the code of Norwegian, `no`, as False.
    codes = ["no" if code is False else code for code in (stated if isinstance(stated, list) else [stated])]
    languages = {code.lower().split("-")[0] for code in codes if isinstance(code, str)} - {"multilingual"}
    return frozenset(languages) or None


class Plan(NamedTuple):
    """What is decided of an encoder before its weights are loaded."""

    source: Source
    layer: int
    coder: RowCoder
    limit: int | None
    cuts: Cuts


class NetworkEncoder:
    """What encoders with a network do with texts, once it is decided which model and layer they read."""

    __slots__ = ()
    who: ClassVar[str]
    model: str
    device: str
    precision: Precision
    long: Long
    batch: int | None = None
    """How many pieces, padding counted, are computed at once; None for what the device does well."""

    def plan(self) -> Plan:
        """Return what is decided before the weights are loaded."""
        raise NotImplementedError

    def languages(self) -> frozenset[str] | None:
        return languages_of(self.plan().source.home.folder)

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        return self.encoding().encode(texts)

    def pooled(self, texts: Sequence[str]) -> Vectors:
        encoding = self.encoding()
        means = {text: mean(encoded) for text, encoded in encoding.each(texts)}
        return np.array([means[text] for text in texts], dtype=np.float32).reshape(-1, encoding.width)

    def encoding(self) -> "Encoding":
        """Return the network, loaded, with all that decides how texts go through it."""
        source, layer, coder, limit, cuts = self.plan()
        device = device_of(self.device, self.who)
        lower = stack(source, layer, device, self.precision, self.who)
        budget = self.batch or budget_of(device, pads=lower.pads)
        return Encoding(coder, lower, source.shape.width, limit, self.long, budget, cuts, self.who)

    def sign(self, **facts: str) -> Signature:
        """Return the signature, with facts of the encoder's own after the revision."""
        plan = self.plan()
        beginning = {"rev": plan.source.revision, **facts, "prec": self.precision, **limit_facts(plan.limit, self.long)}
        return Signature(spec_of(self), (*beginning.items(), ("licence", plan.source.licence)))
