"""The values users meet. All are frozen: equal texts are equal segments, and results do not change."""

from whyscore.types.arrays import FloatMatrix, FloatVector, HiddenWords, IntVector, KeepMasks, read_only
from whyscore.types.data import Dataset, Entry, ErrorSpan, Finding, Severity
from whyscore.types.records import (
    ClusterRank,
    ExplanationRecord,
    FeatureShare,
    Gate,
    HumanPreference,
    PairTest,
    RunFacts,
    RunMetric,
    SegmentFeatures,
    ShareTest,
    SimilarityMatrix,
    Total,
)
from whyscore.types.scores import SHOWN, Estimate, Explanation, Scores, Signature
from whyscore.types.segments import HYPOTHESIS, SOURCE, Inputs, Place, Segment, Side
from whyscore.types.words import Evidence, Fit, MatchKind, WordMatch, Words, WordScores

__all__ = [
    "HYPOTHESIS",
    "SHOWN",
    "SOURCE",
    "ClusterRank",
    "Dataset",
    "Entry",
    "ErrorSpan",
    "Estimate",
    "Evidence",
    "Explanation",
    "ExplanationRecord",
    "FeatureShare",
    "Finding",
    "Fit",
    "FloatMatrix",
    "FloatVector",
    "Gate",
    "HiddenWords",
    "HumanPreference",
    "Inputs",
    "IntVector",
    "KeepMasks",
    "MatchKind",
    "PairTest",
    "Place",
    "RunFacts",
    "RunMetric",
    "Scores",
    "Segment",
    "SegmentFeatures",
    "Severity",
    "ShareTest",
    "Side",
    "Signature",
    "SimilarityMatrix",
    "Total",
    "WordMatch",
    "WordScores",
    "Words",
    "read_only",
]
