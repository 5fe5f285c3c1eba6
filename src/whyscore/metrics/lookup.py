"""Scores that were computed elsewhere, read from a file and found again by the texts they belong to.

1. The file is JSONL (`.jsonl`), CSV (`.csv`) or TSV (any other ending; quoted like CSV where every quotation mark fits
   that, else raw), in UTF-8. It has a column `hypothesis`, optionally `source` and `reference` (in JSONL also
   `references`, a list), and a column of scores.
2. The columns it has are the texts the metric reads: a segment is found by all of them together.
3. A segment that is not in the file is an error, and so are two rows with the same texts and different scores.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from whyscore.errors import DataError
from whyscore.metrics.lookup_file import Content, Texts, read
from whyscore.metrics.needs import shown
from whyscore.options import check_fields
from whyscore.registry import spec_of
from whyscore.types import FloatVector, Inputs, Segment, Signature


@dataclass(frozen=True, slots=True)
class Lookup:
    """A metric whose scores stand in a file.

    Args:
        path: the file.
        column: the column with the scores.
        higher_is_better: whether a larger score means a better hypothesis.
    """

    path: str
    column: str = "score"
    higher_is_better: bool = True

    def __post_init__(self) -> None:
        """Refuse options of the wrong type."""
        check_fields(self)

    @property
    def inputs(self) -> Inputs:
        """The texts that the file has columns for."""
        return self._content.inputs

    def signature(self) -> Signature:
        """Return the spec and a digest of the file."""
        return Signature(spec_of(self), (("digest", self._content.digest),))

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        """Return the score that the file has for each segment."""
        content = self._content
        return np.array([self._found(content, segment) for segment in segments], dtype=np.float64)

    @property
    def _content(self) -> Content:
        return read(self.path, self.column)

    def _found(self, content: Content, segment: Segment) -> float:
        known = segment.only(content.inputs)
        texts = Texts(known.hypothesis, known.source, known.references)
        row = content.rows.get(texts)
        if row is None:
            told = f"hypothesis {shown(texts.hypothesis)}"
            told += f", source {shown(texts.source)}" if texts.source is not None else ""
            told += f", references {texts.references!r}" if Inputs.REFERENCES in content.inputs else ""
            raise DataError(f"no score for {told}; every segment needs a row with exactly its texts", file=self.path)
        return row.score
