"""The union of common subsequences, by which ROUGE-Lsum compares texts of several sentences.

1. For each reference sentence, find a longest common subsequence with every hypothesis sentence; the places of the
   sentence that occur in any of them are its union.
2. Go through the unions in order. A place is a hit as long as its token has not been hit as often as the hypothesis
   contains it: the guard against double counting of ROUGE 1.5.5 and of the rouge-score package.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from whyscore.metrics import lcs
from whyscore.types import FloatVector

Sentences = Sequence[Sequence[str]]
Place = tuple[int, int]
"""A sentence and a token in it."""


def union_hits(reference: Sentences, hypothesis: Sentences) -> Counter[str]:
    """Return how many hits each token has.

    >>> sorted(union_hits([["a", "cat"]], [["a"], ["cat", "sat"]]).items())
    [('a', 1), ('cat', 1)]
    """
    hits: Counter[str] = Counter()
    allowed = Counter(token for sentence in hypothesis for token in sentence)
    for sentence in reference:
        union = {i for other in hypothesis for i, _ in lcs.pairs(sentence, other)}
        for i in sorted(union):
            if hits[sentence[i]] < allowed[sentence[i]]:
                hits[sentence[i]] += 1
    return hits


def union_credit(reference: Sentences, hypothesis: Sentences) -> tuple[FloatVector, FloatVector]:
    """Return how far each token of the reference and of the hypothesis is a hit, all sentences in one row.

    The hits of a token are shared by its places in common subsequences.
    """
    hits = union_hits(reference, hypothesis)
    here: set[Place] = set()
    there: set[Place] = set()
    for r, sentence in enumerate(reference):
        for h, other in enumerate(hypothesis):
            for i, j in lcs.pairs(sentence, other):
                here.add((r, i))
                there.add((h, j))
    return _shared(reference, here, hits), _shared(hypothesis, there, hits)


def _shared(sentences: Sentences, places: set[Place], hits: Counter[str]) -> FloatVector:
    sharing = Counter(sentences[s][i] for s, i in places)
    values = [
        min(1.0, hits[token] / sharing[token]) if place in places else 0.0 for place, token in _numbered(sentences)
    ]
    return np.array(values, dtype=np.float64)


def _numbered(sentences: Sentences) -> Iterator[tuple[Place, str]]:
    return (((s, i), token) for s, sentence in enumerate(sentences) for i, token in enumerate(sentence))
