"""Sentence encoders in the folders of sentence-transformers (Reimers and Gurevych 2019, arXiv 1908.10084).

`modules.json` lists what a text goes through. These modules are known, all others are refused by name:

1. Transformer: the last layer of an encoder; texts are too long after `max_seq_length` pieces.
2. Pooling over all pieces, special ones included: the first piece, the last one, the maximum, the mean, the mean with
   weights 1, 2, 3 ... from left to right, or the sum divided by the square root of the number; several are joined.
3. Dense: a linear layer with an activation.
4. Normalize: unit length.

Vectors of pieces are those of step 1; the vector of a text is what comes out at the end.

Opened for attribution, the cosine is a differentiable function of what the network reads:

1. A reading is the row of the hypothesis, then one row for each text it is compared with.
2. Rows go through the network together, are pooled, and go through what follows the pooling.
3. The score is the cosine of the hypothesis with the other text; of several, the mean or the largest.
"""

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import DataError, MissingExtra, SpecError
from whyscore.models.attribution import Inside, Line, Reading, Shown, line, rows_of, warn_of_cuts
from whyscore.models.checkpoints import (
    SMALL,
    ModelLocation,
    find,
    need,
    package,
    read,
    read_json,
    revision,
    state_of_model,
)
from whyscore.models.encoders.stacks import Encoding, NetworkEncoder, Plan, lengths, source
from whyscore.models.heads import ACTIVATIONS, pool_states
from whyscore.models.pairs import Cuts, Long, RowCoder, Vectors, as_tensors
from whyscore.protocols import Encoded, Encoder
from whyscore.registry import runs_code
from whyscore.settings import Precision, check_fields
from whyscore.text.files import State
from whyscore.types import HYPOTHESIS, Place, Segment, Signature

if TYPE_CHECKING:
    from torch import Tensor


WHO = "sentence"
MODULES = "modules.json"

Step = Callable[["Tensor"], "Tensor"]
"""Texts x numbers -> texts x numbers."""

_POOLS: dict[str, Callable[[Vectors], Vectors]] = {
    "cls": lambda rows: rows[0],
    "max": lambda rows: rows.max(axis=0),
    "mean": lambda rows: rows.mean(axis=0),
    "mean_sqrt_len_tokens": lambda rows: rows.sum(axis=0) / np.sqrt(len(rows)),
    "weightedmean": lambda rows: np.average(rows, axis=0, weights=np.arange(1, len(rows) + 1)).astype(rows.dtype),
    "lasttoken": lambda rows: rows[-1],
}

# How configurations say it: one name or a list of them, or, before, a flag for each in this order.
_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


@dataclass(frozen=True, slots=True)
class Sentence(NetworkEncoder):
    """One vector per text, from a model of sentence-transformers.

    Args:
        model: a folder with `modules.json`, or a hub name; `name@revision` for one version of it.
        device: `auto` (a GPU where there is one), `cpu`, `cuda`, `cuda:1`, `mps`.
        precision: of the network's numbers; vectors come back in fp32.
        long: what becomes of texts the model cannot read whole: `truncate`, `window` or `error`.
        allow_pickle: whether weights may come from `.bin` files.
        batch: how many pieces are computed at once; None for 512, with padding 2,048, and on a GPU 32,768.
    """

    model: str
    device: str = "auto"
    precision: Precision = "fp32"
    long: Long = "truncate"
    allow_pickle: bool = runs_code(default=False)
    batch: int | None = None

    who: ClassVar[str] = WHO

    def __post_init__(self) -> None:
        check_fields(self)
        if self.batch is not None and self.batch < 1:
            raise SpecError(f"sentence: batch is {self.batch}, expected 1 or more")

    def averaged(self, text: str, encoded: Encoded) -> NDArray[np.bool_] | None:  # noqa: ARG002 - all pieces of any text
        head = self._pipeline().head
        mean = head.pools == ("mean",) and not head.dense
        return np.ones(len(encoded.pieces), dtype=np.bool_) if mean else None

    def signature(self) -> Signature:
        pipeline = self._pipeline()
        pool = "+".join([*pipeline.head.pools, *(["dense"] if pipeline.head.dense else [])])
        return self.sign(rev=pipeline.revision, pool=pool)

    def pooled(self, texts: Sequence[str]) -> NDArray[np.float32]:
        torch = package("torch", WHO)
        head = self._pipeline().head
        encoding = self.encoding()
        pooled = {text: head.pool(encoded.vectors) for text, encoded in encoding.each(texts)}
        width = encoding.width * len(head.pools)
        values = torch.from_numpy(np.array([pooled[text] for text in texts], dtype=np.float32).reshape(-1, width))
        with torch.inference_mode():
            for step in head.steps:
                values = step(values)
        result: NDArray[np.float32] = values.numpy()
        return result

    def lengths(self, texts: Sequence[str]) -> list[tuple[int, int]]:
        return lengths(self.plan(), texts, self.long)

    def plan(self) -> Plan:
        return self._pipeline().plan

    def _pipeline(self) -> "_Pipeline":
        home = find(self.model, [*SMALL, "*_Dense/model.safetensors"], WHO)
        need(home, [MODULES], WHO)
        return _pipeline(home, state_of_model(home.folder), self.allow_pickle)


class _Head(NamedTuple):
    """What follows the encoder."""

    pools: tuple[str, ...]
    steps: tuple[Step, ...]
    dense: bool

    def pool(self, rows: Vectors) -> Vectors:
        """Return one vector from those of the pieces; zeros where there are none."""
        if not len(rows):
            return np.zeros(rows.shape[1] * len(self.pools), dtype=np.float32)
        return np.concatenate([_POOLS[pool](rows) for pool in self.pools])


class _Pipeline(NamedTuple):
    """A model as its folder describes it, before the weights of the encoder are loaded."""

    plan: Plan
    head: _Head
    revision: str
    """Of the encoder and of what follows it."""


@lru_cache(maxsize=4)
def _pipeline(home: ModelLocation, _: State | None, allow_pickle: bool) -> _Pipeline:  # noqa: FBT001 - lru_cache needs positions
    modules = _modules(home)
    kinds = [kind for kind, _ in modules]
    if kinds[:2] != ["Transformer", "Pooling"] or set(kinds[2:]) - {"Dense", "Normalize"}:
        raise SpecError(
            f"sentence: {home.name} is made of {', '.join(kinds)}; known are Transformer, Pooling, then any Dense and "
            "Normalize"
        )
    first = modules[0][1]
    model = source(str(first) if first != home.folder else home.name, WHO, allow_pickle=allow_pickle)
    settings = _settings(home, first)
    bounds = [bound for bound in (settings.get("max_seq_length"), model.limit) if isinstance(bound, int)]
    limit = min(bounds, default=None)
    coder = RowCoder(model.tokenizer, WHO, lower=settings.get("do_lower_case") is True)
    steps = tuple(
        _dense(folder, allow_pickle=allow_pickle) if kind == "Dense" else _unit for kind, folder in modules[2:]
    )
    head = _Head(_pools(modules[1][1] / "config.json"), steps, "Dense" in kinds)
    files = [*sorted(first.glob("*.json")), *(file for _, part in modules[1:] for file in sorted(part.glob("*.*")))]
    plan = Plan(model, model.shape.blocks, coder, limit, Cuts(WHO, limit or 0))
    return _Pipeline(plan, head, revision(home, [model.weights, *files]))


def _modules(home: ModelLocation) -> list[tuple[str, Path]]:
    """Return the kind and the folder of each module."""
    listed = home.folder / MODULES
    try:
        content = json.loads(listed.read_text("utf-8"))
        return [(entry["type"].rpartition(".")[2], home.folder / entry["path"]) for entry in content]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DataError("expected a list of modules with type and path", file=str(listed)) from error


def _settings(home: ModelLocation, folder: Path) -> Mapping[str, object]:
    """Return how the encoder is used; a default prompt is refused, as its pieces would count for the text."""
    prompts = home.folder / "config_sentence_transformers.json"
    named = read_json(prompts).get("default_prompt_name") if prompts.is_file() else None
    if named is not None:
        raise SpecError(f"sentence: {home.name} puts the prompt {named!r} before every text, which is not supported")
    file = folder / "sentence_bert_config.json"
    return read_json(file) if file.is_file() else {}


def _pools(file: Path) -> tuple[str, ...]:
    config = read_json(file)
    named = config.get("pooling_mode", [mode for flag, mode in _FLAGS.items() if config.get(flag)] or "mean")
    pools = [named] if isinstance(named, str) else [str(pool) for pool in named] if isinstance(named, list) else []
    unknown = [pool for pool in pools if pool not in _POOLS]
    if unknown or not pools:
        raise DataError(f"pools by {', '.join(unknown) or named}; known are {', '.join(_POOLS)}", file=str(file))
    return tuple(pools)


def _dense(folder: Path, *, allow_pickle: bool) -> Step:
    torch = package("torch", WHO)
    config = read_json(folder / "config.json")
    activation = str(config.get("activation_function", "torch.nn.Tanh")).rpartition(".")[2]
    if activation not in ACTIVATIONS or config.get("use_residual"):
        what = "a residual connection" if config.get("use_residual") else f"the activation {activation}"
        raise DataError(f"a dense layer with {what} is not supported", file=str(folder / "config.json"))
    path = _dense_weights(folder, allow_pickle=allow_pickle)
    weights = read(path, WHO)
    bent = getattr(torch.nn, activation)()
    return lambda values: bent(torch.nn.functional.linear(values, weights["linear.weight"].float(), _bias(weights)))


def _bias(weights: Mapping[str, "Tensor"]) -> "Tensor | None":
    bias = weights.get("linear.bias")
    return None if bias is None else bias.float()


def _dense_weights(folder: Path, *, allow_pickle: bool) -> Path:
    safe, pickled = folder / "model.safetensors", folder / "pytorch_model.bin"
    if safe.is_file():
        return safe
    if not pickled.is_file():
        raise MissingExtra(f"sentence: {folder} has no {safe.name}; fetch the whole folder of the model")
    if not allow_pickle:
        raise MissingExtra(f"sentence: {pickled} is pickled; it is read, as tensors alone, with allow_pickle=True")
    return pickled


def _unit(values: "Tensor") -> "Tensor":
    unit: Tensor = package("torch", WHO).nn.functional.normalize(values, dim=1)
    return unit


Compared = Callable[[Segment], Sequence[Place]]
"""A segment -> the texts that its hypothesis is compared with."""


class _Opened(NamedTuple):
    """What texts go through."""

    encoding: Encoding
    pools: tuple[str, ...]
    steps: tuple[Step, ...]


Compare = Callable[["Tensor", "Tensor", Sequence[Reading]], "Tensor"]
"""States (rows x pieces x width) and their mask, of the rows of readings -> one score per reading."""


def open_sentence(
    encoder: Encoder, segments: Sequence[Segment], compared: Compared, over: Literal["mean", "max"], who: str
) -> Inside:
    """Return a sentence encoder, opened for some segments: the score is the cosine of whole texts."""
    parts = _parts(encoder, who)

    def compare(states: "Tensor", mask: "Tensor", readings: Sequence[Reading]) -> "Tensor":
        torch = importlib.import_module("torch")
        vectors = torch.cat([_pool(states, mask, pool) for pool in parts.pools], dim=1)
        for step in parts.steps:
            vectors = step(vectors)
        groups = torch.split(vectors, [len(reading) for reading in readings])
        cosines = [torch.cosine_similarity(group[:1], group[1:]) for group in groups]
        values: Tensor = torch.stack([cosine.mean() if over == "mean" else cosine.max() for cosine in cosines])
        return values

    return open_states(encoder, segments, compared, compare, who)


def open_states(
    encoder: Encoder, segments: Sequence[Segment], compared: Compared, compare: Compare, who: str
) -> Inside:
    """Return an encoder, opened for some segments: the score is what `compare` makes of the states of the pieces.

    The first row of a reading is the hypothesis. An encoder without a network is refused.
    """
    encoding = _parts(encoder, who).encoding
    coder, network = encoding.coder, encoding.stack.network
    readings = tuple(_reading(encoding, segment, compared(segment)) for segment in segments)

    def score(readings: Sequence[Reading]) -> "Tensor":
        states, mask = _states(encoding, rows_of(readings))
        return compare(states, mask, readings)

    warn_of_cuts(encoding.cuts, readings)
    return Inside(who, network, readings, score, encoding.stack.device, coder.padding, coder.masking)


def _parts(encoder: Encoder, who: str) -> _Opened:
    if not isinstance(encoder, NetworkEncoder):
        raise SpecError(
            f"{who}: {encoder.signature().spec} has no attention to look into and no gradients; name the folder of a "
            f"network, {who}(model='./folder'), or explain it with erasure, lime or shap"
        )
    if encoder.long == "window":
        raise SpecError(
            f"{who}: a network is looked into one row at a time; choose long='truncate' instead of 'window'"
        )
    encoding = encoder.encoding()
    if not isinstance(encoder, Sentence):
        return _Opened(encoding, ("mean",), ())
    head = encoder._pipeline().head  # noqa: SLF001
    return _Opened(encoding, head.pools, head.steps)


def _reading(encoding: Encoding, segment: Segment, compared: Sequence[Place]) -> Reading:
    return tuple(_line(encoding, place, segment.text(place)) for place in (HYPOTHESIS, *compared))


def _line(encoding: Encoding, place: Place, text: str) -> Line:
    coder = encoding.coder
    coded = coder.code([text])[text]
    room = coder.room(encoding.limit)
    return line(coder.frame, [Shown(place, coded, len(coded.ids) if room is None else room)])


def _states(encoding: Encoding, lines: Sequence[Line]) -> tuple["Tensor", "Tensor"]:
    """Return the states of the pieces of every row at the encoder's layer, and which of them are no padding."""
    stack = encoding.stack
    inputs = as_tensors([each.row for each in lines], encoding.coder.padding, stack.device)
    return stack.table(inputs), inputs.mask


def _pool(states: "Tensor", mask: "Tensor", pool: str) -> "Tensor":
    if pool == "mean_sqrt_len_tokens":
        return pool_states(states, mask, "avg") * mask.sum(1, keepdim=True).sqrt()
    if pool == "lasttoken":
        return states[range(len(states)), mask.sum(1) - 1]
    if pool == "weightedmean":
        weights = mask.cumsum(1) * mask
        return (states * weights.unsqueeze(-1)).sum(1) / weights.sum(1, keepdim=True)
    names: dict[str, Literal["avg", "max", "cls"]] = {"mean": "avg", "max": "max", "cls": "cls"}
    return pool_states(states, mask, names[pool])
