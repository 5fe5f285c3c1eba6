"""`whyscore metaeval`: how good is a metric or an explainer?"""

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

EXAMPLES = """\
examples:
  whyscore metaeval scores summeval.csv --human expert_relevance --metric rouge-1_f1 bertscore_f1 --level system
  whyscore metaeval scores --sample --human mqm -m chrf bleu --level segment
  whyscore metaeval scores -h
"""


class Judgement(NamedTuple):
    """One of the things that can be judged."""

    help: str
    examples: str
    settings: type
    run: Callable[[Any], int]
    formats: tuple[str, ...] = ()


_ABOUT: dict[str, str] = {
    "scores": "agreement of metrics with human scores: levels, tests, clusters, sentinels",
    "words": "agreement of word scores with the words that people marked",
    "spans": "agreement of predicted error spans with those that people marked",
    "faithfulness": "whether explanations name the words that made the score",
}


def commands() -> dict[str, Judgement]:
    """Return what can be judged, by name: the modules of this package."""
    homes = {name: importlib.import_module(f"{__name__}.{name}") for name in _ABOUT}
    return {name: Judgement(_ABOUT[name], one.EXAMPLES, one.SETTINGS, one.run) for name, one in homes.items()}
