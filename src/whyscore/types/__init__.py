"""The values users meet. All are frozen: equal texts are equal segments, and results do not change."""

from whyscore.types.arrays import FloatMatrix, FloatVector, KeepMasks, read_only
from whyscore.types.data import Dataset, Entry, ErrorSpan, Finding, Severity
from whyscore.types.results import SHOWN, Estimate, Explanation, Explanations, Scores, Signature
from whyscore.types.segments import HYPOTHESIS, SOURCE, Inputs, Place, Segment, Side
from whyscore.types.words import Evidence, Fit, Words, WordScores

__all__ = [
    "HYPOTHESIS",
    "SHOWN",
    "SOURCE",
    "Dataset",
    "Entry",
    "ErrorSpan",
    "Estimate",
    "Evidence",
    "Explanation",
    "Explanations",
    "Finding",
    "Fit",
    "FloatMatrix",
    "FloatVector",
    "Inputs",
    "KeepMasks",
    "Place",
    "Scores",
    "Segment",
    "Severity",
    "Side",
    "Signature",
    "WordScores",
    "Words",
    "read_only",
]
