"""Token F1: the words two texts share, whatever their order.

1. Words are what stands between blanks, as it stands.
2. o = number of words in common, a repeated word as often as both have it.
3. F1 = 2 o / (words of the reference + words of the hypothesis), and 0 where o is 0.

Of several references, the best counts. It is the measure SQuAD (Rajpurkar et al. 2016) made known, without its removal
of case, articles and punctuation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from whyscore.metrics.lexical.ngrams import Table, count_matches, table
from whyscore.metrics.needs import need_references
from whyscore.registry import spec_of
from whyscore.types import FloatVector, Inputs, Segment, Signature
from whyscore.version import __version__


@dataclass(frozen=True, slots=True)
class TokenF1:
    """Harmonic mean of the shares of words found on the other side, 0 to 1."""

    inputs: ClassVar[Inputs] = Inputs.HYPOTHESIS | Inputs.REFERENCES
    higher_is_better: ClassVar[bool] = True

    def signature(self) -> Signature:
        return Signature(spec_of(self), (("nrefs", "any"), ("version", __version__)))

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        need_references("token_f1", segments)
        return np.array([_best(segment) for segment in segments], dtype=np.float64)


def _best(segment: Segment) -> float:
    words = segment.hypothesis.split()
    return max([_f1(words, _prepare(reference)) for reference in segment.references])


def _f1(words: Sequence[str], reference: Table) -> float:
    shared = count_matches(words, reference)
    return 2 * shared / (reference.total + len(words)) if shared else 0.0


@lru_cache(maxsize=4096)
def _prepare(text: str) -> Table:
    return table(text.split())
