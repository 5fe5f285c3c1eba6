"""The lower blocks of an encoder of transformers, and the facts of the model they come from.

1. Find the files, read configuration and tokenizer: enough to know layer, limit and signature.
2. At the first text, load the network, take its encoder where it has one, take out the blocks above the layer, and
   keep the norm that follows the last block where the architecture has one.

Missing weights are an error, as a network filled up with random numbers would score all the same. Heads on top of the
encoder are of no interest and may be there or not, as may the pooler of BERT.
"""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from whyscore.errors import MissingExtra, SpecError
from whyscore.models.checkpoints import (
    LEFTOVERS,
    NETWORKS,
    SMALL,
    Home,
    Precision,
    find,
    need,
    package,
    quiet,
    read_json,
    ready,
    refuse,
    revision,
    weights_of,
)
from whyscore.models.layers import Shape
from whyscore.models.licences import licence_of, warn_of
from whyscore.models.opening import config_of
from whyscore.models.pairs import Row, as_tensors, positions
from whyscore.models.rows import Reader, Vectors

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module, ModuleList
    from transformers import PretrainedConfig

_TOKENIZERS = ("tokenizer.json", "vocab*", "*.model", "*.spm")
# Tokenizers without a limit of their own report 1e30.
_NO_LIMIT = 1_000_000


@dataclass(frozen=True, eq=False)
class Source:
    """A model before its weights are loaded."""

    home: Home
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


class Stack:
    """An encoder up to one layer, ready to compute."""

    def __init__(self, network: "Module", device: str, padding: int, hidden: int | None) -> None:
        """Take the network; `hidden` is the state to read where the blocks above it could not be taken out."""
        self._network, self._device, self._padding, self._hidden = network, device, padding, hidden

    def states(self, rows: Sequence[Row]) -> list[Vectors]:
        """Return the vectors of the pieces of each row."""
        torch = importlib.import_module("torch")
        inputs = as_tensors(rows, self._padding, self._device)
        with torch.inference_mode():
            told = {} if self._hidden is None else {"output_hidden_states": True}
            answer = self._network(input_ids=inputs.ids, attention_mask=inputs.mask, **told)
            states: Tensor = answer.last_hidden_state if self._hidden is None else answer.hidden_states[self._hidden]
            table = states.float().cpu().numpy()
        # Copies, as slices would keep the padded table alive.
        return [table[number, : len(row.ids)].copy() for number, row in enumerate(rows)]


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
    return _source(home, weights, weights.stat().st_mtime_ns, who)


@lru_cache(maxsize=8)
def _source(home: Home, weights: Path, _: int, who: str) -> Source:
    config = config_of(home, who)
    try:
        with quiet():
            tokenizer = package("transformers", who).AutoTokenizer.from_pretrained(home.folder)
    except (OSError, ValueError, ImportError) as error:
        reason = str(error).strip().split("\n", maxsplit=1)[0]
        raise MissingExtra(f"{who}: the tokenizer of {home.name} cannot be read: {reason}") from error
    shape = Shape(config.model_type, _blocks(config, home.name, who), getattr(config, "hidden_size", 0))
    return Source(home, weights, config, tokenizer, shape)


@lru_cache(maxsize=2)
def stack(source: Source, layer: int, device: str, precision: Precision, who: str) -> Stack:
    """Return the encoder up to a layer, loaded."""
    transformers, torch = package("transformers", who), package("torch", who)
    pickled = ".bin" in source.weights.name
    with quiet():
        network, report = transformers.AutoModel.from_pretrained(
            source.home.folder,
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
    return Stack(moved, device, source.tokenizer.pad_token_id or 0, layer if blocks is None else None)


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
