"""How features are found and masked, and how a decomposition is made of them."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from whyscore.protocols import Explainer, Tagger
from whyscore.settings import Seeded, option
from whyscore.taggers.aligned import AlignedTagger
from whyscore.text.placeholders import Unit

Mode = Literal["paper", "compat"]
Level = Literal["segment", "corpus"]
Need = Literal["any", "all"]
Tokens = Literal["metric", "tagger", "nltk"]
Initial = Literal["any", "lower"]
Labels = Literal["field", "paper", "code"]
Correction = Literal["bh", "holm", "bonferroni", "none", "benjamini_hochberg"]
TaggerLike = str | Tagger | AlignedTagger


@dataclass(frozen=True, kw_only=True)
class FeatureSettings(Seeded):
    """Which features are found by whom, and how they are masked."""

    TITLE: ClassVar[str] = "features"

    tagger: TaggerLike = option(
        "rules", "finds the features: rules, spacy, pretagged(...); see: whyscore list taggers", metavar="SPEC",
        basic=True,
    )  # fmt: skip
    features: tuple[str, ...] | None = option(
        None, "NOUN, ent:PERSON, NOUN=NN,NNS, number, words:he,she ... (default: all that the tagger gives)",
        metavar="EXPR", basic=True,
    )  # fmt: skip
    mode: Mode = option("paper", "compat: masks, tokens and zero handling of the published tables", basic=True)
    unit: Unit = option("word", "mask words separately or the span as a unit")
    need: Need = option("any", "count a segment if any, or all, of its references have the feature")
    tokens: Tokens | None = option(
        None, "what counts as a token (default: the tagger's tokens where it gives some, else the metric's own)"
    )
    initial: Initial | None = option(
        None, "lower: only words that begin with a to z (default: any; lower with --mode compat)"
    )


@dataclass(frozen=True, kw_only=True)
class DecomposeSettings(FeatureSettings):
    """How a decomposition is made."""

    TITLE: ClassVar[str] = "decomposition"

    scorers: tuple[object, ...] = option(
        (), "sentence scorers: sentiment, \"lexicon(path='concreteness.tsv')\"", metavar="SPEC"
    )
    group: tuple[str, ...] = option(
        (), "columns that group systems: only systems of the same group are compared", metavar="COLUMN",
        basic=True,
    )  # fmt: skip
    level: Level = option("segment", "use mean segment scores or corpus scores", basic=True)
    explainer: str | Explainer | None = option(
        None, "add the summed importance of each feature's words: shap, 'lime(samples=100)'",
        flags=("-e", "--explainer"), metavar="SPEC",
    )  # fmt: skip
    draws: int = option(2000, "bootstrap samples and random swaps; 0: no intervals, no tests", least=0, metavar="N")
    correction: Correction = option("bh", "correction of the tests between systems")
    examples: int = option(
        3, "show the N segments with the largest effect on each share", least=0, metavar="N", basic=True
    )
    labels: Labels | None = option(
        None, "naming of the discrepancy columns: by sign, as in the paper, or as in its code (default: field)"
    )
