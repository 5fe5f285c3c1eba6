"""How probable a text is to a causal language model: the mean log-probability of its pieces.

1. The text is read after the model's start token, so that a text of one piece has a value too.
2. The value is the mean over the pieces of log p(piece | start, pieces before it), in float64; one mean, once.
3. A text without pieces has the log-probability of ending at once, log p(end | start).

Texts are read without outer white space, each distinct one once; those too long are cut, counted and told.
"""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from whyscore.errors import SpecError
from whyscore.models.checkpoints import NETWORKS, Home, Precision, package, quiet, ready, refuse, revision, weights_of
from whyscore.models.heads import widened
from whyscore.models.licences import licence_of, warn_of
from whyscore.models.opening import coder_of, config_of
from whyscore.models.pairs import Coder, Cuts, Row, as_tensors, in_batches, positions

if TYPE_CHECKING:
    from torch.nn import Module

WHO = "language model"

# Logits take the size of the vocabulary for every piece.
_BUDGET = 1024


@dataclass(frozen=True, eq=False)
class Causal:
    """A loaded causal language model."""

    coder: Coder
    network: "Module"
    start: int
    end: int
    limit: int
    device: str
    cuts: Cuts

    def means(self, texts: Sequence[str]) -> dict[str, float]:
        """Return the mean log-probability of each distinct text."""
        coded = self.coder.code(texts)
        room = self.limit - 1
        self.cuts.add(sum(len(found.ids) > room for found in coded.values()), len(coded))
        rows = [Row((self.start, *(found.ids[:room] or (self.end,))), 0) for found in coded.values()]

        def compute(batch: list[int]) -> list[float]:
            return self._computed([rows[number] for number in batch])

        values = in_batches([len(row.ids) for row in rows], _BUDGET, compute, WHO)
        return dict(zip(coded, values, strict=True))

    def _computed(self, rows: Sequence[Row]) -> list[float]:
        torch = importlib.import_module("torch")
        inputs = as_tensors(rows, self.coder.padding, self.device)
        with torch.inference_mode():
            logits = self.network(input_ids=inputs.ids, attention_mask=inputs.mask).logits[:, :-1]
            following = inputs.ids[:, 1:, None]
            values = widened(logits).log_softmax(-1).gather(2, following)[:, :, 0]
            real = inputs.mask[:, 1:]
            means: list[float] = ((values * real).sum(1) / real.sum(1)).cpu().tolist()
        return means


def revision_of(name: str) -> str:
    """Return what tells the weights of a language model from others."""
    home, weights = weights_of(name, NETWORKS[:1], WHO)
    return revision(home, [weights])


def load(name: str, device: str, precision: Precision) -> Causal:
    """Return a loaded model; the same one again for the same files and options."""
    home, weights = weights_of(name, NETWORKS[:1], WHO)
    return _load(home, weights, weights.stat().st_mtime_ns, device, precision)


@lru_cache(maxsize=1)
def _load(home: Home, weights: Path, _: int, device: str, precision: Precision) -> Causal:
    transformers, torch = package("transformers", WHO), package("torch", WHO)
    config = config_of(home, WHO)
    start = config.eos_token_id if config.bos_token_id is None else config.bos_token_id
    end = start if config.eos_token_id is None else config.eos_token_id
    if not isinstance(start, int) or not isinstance(end, int):
        raise SpecError(f"{WHO}: {home.name} names no token that begins a text; choose a causal model such as gpt2")
    try:
        with quiet():
            network, report = transformers.AutoModelForCausalLM.from_pretrained(
                home.folder, config=config, dtype=torch.float32, use_safetensors=True, output_loading_info=True
            )
    except ValueError as error:
        raise SpecError(f"{WHO}: {home.name} is a {config.model_type} model, expected a causal one, as gpt2") from error
    refuse(weights, sorted(report["missing_keys"]), [], {})
    warn_of(home.name, licence_of(home.name, home.folder))
    table = getattr(config, "max_position_embeddings", None)
    limit = positions(config.to_dict() | {"max_position_embeddings": table})
    network = ready(network, device, precision).eval()
    return Causal(coder_of(home, WHO), network, start, end, limit, device, Cuts(WHO, limit))
