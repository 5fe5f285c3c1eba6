"""Rows that go through a network one behind the other, without padding.

Only attention looks from one piece to another; all other layers of a network compute each piece for itself. So rows of
any lengths make one long row, and:

1. Each piece is given its position in its own row.
2. Attention is computed row by row, rows of equal length at once.

transformers lets attention be registered by name. Ours is that of PyTorch (`sdpa`), whole where nothing is packed.

This holds for networks whose positions are embeddings at the entrance, added to those of the pieces (BERT, RoBERTa),
and pays on the processor, where large batches leave the caches; a GPU wants few large products instead.
"""

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from transformers import PreTrainedModel

NAME = "whyscore_packed"

_ROBERTA = ("roberta", "xlm-roberta")


class _Run(NamedTuple):
    """Rows of equal length that follow one another."""

    rows: int
    length: int


_runs: ContextVar[tuple[_Run, ...] | None] = ContextVar("runs", default=None)


def prepare(network: "PreTrainedModel") -> int | None:
    """Let a network read packed rows and return the position of a first piece; None where it cannot read them."""
    kind, padding = network.config.model_type, network.config.pad_token_id
    if kind not in ("bert", *_ROBERTA) or padding is None:
        return None
    transformers = importlib.import_module("transformers")
    masks = importlib.import_module("transformers.masking_utils")
    transformers.AttentionInterface.register(NAME, _attend)
    transformers.AttentionMaskInterface.register(NAME, masks.ALL_MASK_ATTENTION_FUNCTIONS["sdpa"])
    network.set_attn_implementation(NAME)
    return int(padding) + 1 if kind in _ROBERTA else 0  # RoBERTa's positions begin behind that of the padding


@contextmanager
def packed(lengths: Sequence[int]) -> Iterator[None]:
    """Let networks read one row as several rows of these lengths."""
    token = _runs.set(tuple(_Run(len(list(group)), length) for length, group in groupby(lengths)))
    try:
        yield
    finally:
        _runs.reset(token)


def _attend(
    module: "Module",
    query: "Tensor",
    key: "Tensor",
    value: "Tensor",
    attention_mask: "Tensor | None",
    **options: object,
) -> "tuple[Tensor, None]":
    """Return what each piece takes from those of its row, 1 x pieces x heads x width."""
    whole = importlib.import_module("transformers.integrations.sdpa_attention").sdpa_attention_forward
    runs = _runs.get()
    if runs is None:
        attended: tuple[Tensor, None] = whole(module, query, key, value, attention_mask, **options)
        return attended
    parts, start = [], 0
    for number, length in runs:
        stop = start + number * length
        rows = (
            states[0, :, start:stop].unflatten(1, (number, length)).transpose(0, 1) for states in (query, key, value)
        )
        parts.append(whole(module, *rows, None, **options)[0].flatten(0, 1))
        start = stop
    return importlib.import_module("torch").cat(parts)[None], None
