"""MuLER: how much of what a system loses is lost on nouns, names, numbers and other features.

`whyscore.decompose` is the analysis; the names here are its parts, for studies with texts or features of their own.
"""

from whyscore.analysis.decompose.counts import carriers_of
from whyscore.analysis.decompose.decompose import prepare_study
from whyscore.analysis.decompose.masking import Mask, TextMasking, masking_for, tokenizer_of
from whyscore.analysis.decompose.result import Decomposition, Decompositions, ScorerDifference
from whyscore.analysis.decompose.scoring import FLOOR, Reading, Study, measure, pooled, questions
from whyscore.analysis.decompose.settings import DecomposeSettings, FeatureSettings
from whyscore.analysis.decompose.shares import cells_by_system, share_of
from whyscore.analysis.decompose.tagging import Marked, Marking, members_of

__all__ = [
    "FLOOR",
    "DecomposeSettings",
    "Decomposition",
    "Decompositions",
    "FeatureSettings",
    "Marked",
    "Marking",
    "Mask",
    "Reading",
    "ScorerDifference",
    "Study",
    "TextMasking",
    "carriers_of",
    "cells_by_system",
    "masking_for",
    "measure",
    "members_of",
    "pooled",
    "prepare_study",
    "questions",
    "share_of",
    "tokenizer_of",
]
