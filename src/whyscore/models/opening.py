"""A model of transformers from its folder: configuration, tokenizer, and a network with exactly the weights given.

Newer versions of transformers make up an empty tokenizer where a folder has none, which would read every text as
unknown pieces; so its files are asked for first.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from whyscore.errors import MissingExtra
from whyscore.models.checkpoints import LEFTOVERS, Home, need, package, quiet, refuse
from whyscore.models.pairs import Coder

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from transformers import PretrainedConfig

VOCABULARIES = ("tokenizer.json", "sentencepiece.bpe.model", "spiece.model", "vocab.json", "vocab.txt")


def config_of(home: Home, who: str, kind: str = "AutoConfig") -> "PretrainedConfig":
    """Return the configuration of a model; `kind` is the class of transformers that reads it."""
    need(home, ["config.json"], who)
    reader = getattr(package("transformers", who), kind)
    try:
        with quiet():
            config: PretrainedConfig = reader.from_pretrained(home.folder)
    except (OSError, ValueError) as error:
        raise _unreadable("config.json", home, error, who) from error
    return config


def coder_of(home: Home, who: str) -> Coder:
    """Return the tokenizer of a model."""
    file = need(home, VOCABULARIES, who)
    reader = package("transformers", who).AutoTokenizer
    try:
        with quiet():
            tokenizer = reader.from_pretrained(home.folder)
    except Exception as error:
        # The tokenizers package raises bare exceptions for files it cannot read.
        raise _unreadable(file.name, home, error, who) from error
    return Coder(tokenizer, who)


def fill(  # noqa: D417 - `options` go to the network's class as they are
    network: Callable[..., object],
    config: object,
    weights: Mapping[str, "Tensor"],
    where: Path,
    *,
    prefix: str = "",
    **options: object,
) -> "Module":
    """Return a network of a class of transformers with exactly these weights, leftovers aside, in evaluation mode.

    Args:
        network: The class.
        config: Its configuration.
        weights: The tensors by the names the class gives them.
        where: The file they come from, for messages.
        prefix: What stood before the names in that file.
    """
    with quiet():
        made, report = network.from_pretrained(  # type: ignore[attr-defined]
            None,
            config=config,
            state_dict=dict(weights),
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **options,
        )
    sizes = {entry[0]: f"{tuple(entry[1])} instead of {tuple(entry[2])}" for entry in report["mismatched_keys"]}
    missing = sorted(f"{prefix}{key}" for key in report["missing_keys"] if key not in sizes)
    others = [key for key in report["unexpected_keys"] if not any(part in key for part in LEFTOVERS)]
    unexpected = sorted(f"{prefix}{key}" for key in others)
    refuse(where, missing, unexpected, {f"{prefix}{key}": told for key, told in sizes.items()})
    ready: Module = made.eval()
    return ready


def _unreadable(file: str, home: Home, error: Exception, who: str) -> MissingExtra:
    reason = str(error).strip().split("\n", maxsplit=1)[0]
    cure = "Fetch it again, or install the package it asks for; models that bring their own code are not run"
    return MissingExtra(f"{who}: {home.folder / file} cannot be read: {reason} {cure}")
