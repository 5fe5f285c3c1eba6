"""How good is a metric, an explainer or a span predictor? Agreement with human judgements.

`whyscore.metaevaluate` and `whyscore.metaevaluate_words` are the analyses; the names here are their parts.
"""

from whyscore.analysis.metaeval.annotators import (
    Annotators,
    annotator_agreement,
    annotators_of,
    gold_by_majority,
    gold_of,
    read_annotators,
)
from whyscore.analysis.metaeval.result import AnnotatorAgreement, WordsResult
from whyscore.analysis.metaeval.settings import MetaevalWordsSettings
from whyscore.analysis.metaeval.tables import Columns, read_columns
from whyscore.analysis.metaeval.words import explained_submission, segments_of

__all__ = [
    "AnnotatorAgreement",
    "Annotators",
    "Columns",
    "MetaevalWordsSettings",
    "WordsResult",
    "annotator_agreement",
    "annotators_of",
    "explained_submission",
    "gold_by_majority",
    "gold_of",
    "read_annotators",
    "read_columns",
    "segments_of",
]
