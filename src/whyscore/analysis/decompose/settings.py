"""How a decomposition is made, of what, and one metric's answers before anything is fitted."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from whyscore.analysis.decompose.fit import Values
from whyscore.analysis.decompose.masking import Grain
from whyscore.analysis.decompose.tagging import Initial, Marking
from whyscore.errors import SpecError
from whyscore.options import check_seed
from whyscore.protocols import Explainer, Metric
from whyscore.scoring.stack import Resources
from whyscore.text.placeholders import Unit
from whyscore.types import Dataset, Signature

Mode = Literal["paper", "compat"]
Level = Literal["segment", "corpus"]
Held = Literal["any", "all"]
Tokens = Literal["metric", "tagger", "nltk"]


@dataclass(frozen=True)
class Settings:
    """How a decomposition is made.

    Args:
        mode: `paper`, or `compat` for the masks, tokens and zeros of the published tables.
        unit: whether each word of a span is hidden, or the span as one.
        level: means of segment scores, or corpus scores of the summed rows.
        references: whether a segment counts where any of its references has the feature, or only where all have it.
        tokens: what a metric that counts tokens counts: its own, the tagger's or NLTK's; None takes the tagger's
            where it gives tokens.
        initial: `lower` looks only at words from a to z; None means so in `compat` alone.
        draws: bootstrap samples and random swaps; 0 leaves out intervals and tests.
        correction: of the tests over features and pairs of systems.
        examples: how many segments are shown for each row.
        explainer: for the additive view, which sums the importance of words; None leaves it out.
        seed: fixes all random numbers.
    """

    mode: Mode = "paper"
    unit: Unit = "word"
    level: Level = "segment"
    references: Held = "any"
    tokens: Tokens | None = None
    initial: Initial | None = None
    draws: int = 2000
    correction: str = "benjamini_hochberg"
    examples: int = 3
    explainer: str | Explainer | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what is not a choice."""
        choices = {"mode": Mode, "unit": Unit, "level": Level, "references": Held, "tokens": Tokens, "initial": Initial}
        for name, kind in choices.items():
            value = getattr(self, name)
            optional = name in ("tokens", "initial") and value is None
            if value not in get_args(kind) and not optional:
                raise SpecError(f"decompose: {name} is {value!r}, expected {' or '.join(map(repr, get_args(kind)))}")
        check_seed(self.seed)
        for name in ("draws", "examples"):
            if getattr(self, name) < 0:
                raise SpecError(f"decompose: {name} is {getattr(self, name)}, expected 0 or more")


class Measured(NamedTuple):
    """One metric over a marked data set: everything that was asked, before anything is fitted."""

    name: str
    metric: Metric
    values: Values
    grain: Grain | None
    """None where a matrix was changed instead of texts."""
    kind: str
    signature: Signature
    asked: int
    distinct: int


class Study(NamedTuple):
    """What is decomposed and how: a data set, its features marked."""

    dataset: Dataset
    marking: Marking
    settings: Settings
    resources: Resources
