"""Which layer of a network gives the vectors, where nobody says.

1. The layer that was tuned for a model of this name: by the authors of bert_score 0.3.13, and by Leiter (2021) for the
   two models of natural language inference.
2. Else by the name that the model's own configuration stores, as copies in local folders do.
3. Else the layer of the first model in the table of the same kind, depth and width.
4. Else 0.72 of the depth, about where the tuned layers lie.

All but the first are told: numbers of another layer cannot be compared.
"""

import warnings
from typing import NamedTuple

from whyscore.errors import SpecError


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


def checked(layer: int, blocks: int, name: str) -> int:
    """Return the layer a caller asks for; one that does not exist is an error."""
    if not 0 <= layer <= blocks:
        raise SpecError(f"{name} has layers 0 (before the first block) to {blocks}, got layer={layer}")
    return layer


def recommended(name: str, stored: str | None, shape: Shape) -> int:
    """Return the layer to take where none was asked for; see the rules above.

    >>> recommended("xlm-roberta-large", None, Shape("xlm-roberta", 24, 1024))
    17
    """
    own = _tuned(name)
    if own is not None:
        return own
    layer, why = _by_rule(stored, shape)
    warnings.warn(f"{name}: layer {layer} of {shape.blocks} ({why})", LayerNotice, stacklevel=2)
    return layer


def _tuned(name: str) -> int | None:
    short = name.partition("@")[0]
    for owner in _OWNERS:
        short = short.removeprefix(owner)
    return TUNED[short][0] if short in TUNED else None


def _by_rule(stored: str | None, shape: Shape) -> tuple[int, str]:
    by_name = None if stored is None else _tuned(stored)
    if by_name is not None:
        return min(by_name, shape.blocks), f"it calls itself {stored}"
    for name, (layer, known) in TUNED.items():
        if known == shape:
            return layer, f"as for {name}, which is built alike"
    return round(_SHARE * shape.blocks), "rule of thumb"
