"""What the tests of boosting share: token F1 explained fast, by counting words instead of asking about texts."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.random import RandomState
from threadpoolctl import threadpool_limits

from whyscore.aggregate import Bags
from whyscore.analysis.calibrate.material import Explained, material_from
from whyscore.data.reading import read
from whyscore.explainers.masks.lime import closeness, draw_masks, weighted_ridge
from whyscore.metrics.lexical.token_f1 import TokenF1
from whyscore.text.randomness import generator
from whyscore.types import Dataset, Segment

Masks = Callable[[str, int], np.ndarray]


class Counted(NamedTuple):
    """Scores and importances of some segments, references first, as BMX puts them together."""

    scores: np.ndarray
    bags: Bags


def masked_f1(masks: np.ndarray, words: Sequence[str], others: Sequence[Counter[str]], *, delete: bool) -> np.ndarray:
    """The best token F1 of every masked text against some fixed texts."""
    types = {word: k for k, word in enumerate(dict.fromkeys(words))}
    ones = np.zeros((len(words), len(types)), dtype=np.float32)
    ones[np.arange(len(words)), [types[word] for word in words]] = 1
    counts = masks.astype(np.float32) @ ones
    lengths = masks.sum(axis=1) if delete else np.full(len(masks), len(words))
    best = np.zeros(len(masks))
    for other in others:
        limits = np.array([other.get(word, 0) for word in types], dtype=np.float32)
        shared = np.minimum(counts, limits).sum(axis=1, dtype=np.float64)
        best = np.maximum(best, np.where(shared > 0, 2 * shared / (lengths + other.total()), 0.0))
    return best


def lime_masks(words: int, samples: int, state: RandomState) -> np.ndarray:
    """The masks of lime 0.2.0.1 with the whole text first, drawn from a state that goes on from text to text."""
    masks = np.ones((samples, words), dtype=np.bool_)
    places = np.arange(words)
    hidden = state.randint(1, words + 1, samples - 1)
    shuffled = np.tile(places, (samples - 1, 1))
    for row in shuffled:
        state.shuffle(row)
    np.put_along_axis(masks[1:], shuffled, places >= hidden[:, np.newaxis], axis=1)
    return masks


def explained_segment(segment: Segment, masks: Masks, *, delete: bool) -> tuple[float, np.ndarray]:
    """The score of a segment and the importances of all its words: LIME, or erasure where words are deleted."""
    hypothesis = Counter(segment.hypothesis.split())
    references = [Counter(text.split()) for text in segment.references]
    whole = np.array([masked_f1(np.ones((1, one.total()), dtype=np.bool_), list(one.elements()), [hypothesis],
                                delete=False)[0] for one in references])  # fmt: skip
    parts = []
    for k, text in enumerate([*segment.references, segment.hypothesis]):
        words = text.split()
        rows = masks(text, len(words))
        if k < len(references):
            others = np.delete(whole, k)
            values = np.maximum(masked_f1(rows, words, [hypothesis], delete=delete), others.max(initial=0.0))
        else:
            values = masked_f1(rows, words, references, delete=delete)
        if delete:
            parts.append(whole.max() - values)
        else:
            parts.append(weighted_ridge(rows, values, closeness(rows, 25.0)).coefficients)
    return float(whole.max()), np.concatenate(parts)


def counted(segments: Sequence[Segment], masks: Masks, *, delete: bool = False) -> Counted:
    """All segments explained."""
    with threadpool_limits(1):  # small matrices: threads cost more than they help
        found = [explained_segment(segment, masks, delete=delete) for segment in segments]
    return Counted(np.array([score for score, _ in found]), Bags.of([values for _, values in found]))


@pytest.fixture(scope="session")
def erasure() -> Callable[[Sequence[Segment]], Counted]:
    return lambda segments: counted(segments, lambda _, words: ~np.eye(words, dtype=np.bool_), delete=True)


@pytest.fixture(scope="session")
def sequential_lime() -> Callable[[Sequence[Segment], int], Counted]:
    """LIME with 100 samples whose random state goes on from text to text, as in the public code."""

    def explain(segments: Sequence[Segment], seed: int) -> Counted:
        state = RandomState(seed)
        return counted(segments, lambda _, words: lime_masks(words, 100, state))

    return explain


@pytest.fixture(scope="session")
def content_lime() -> Callable[[Sequence[Segment], int, int], Counted]:
    """LIME as whyscore draws it: from the seed and the text."""

    def explain(segments: Sequence[Segment], samples: int, seed: int) -> Counted:
        def masks(text: str, words: int) -> np.ndarray:
            drawn = draw_masks(words, samples - 1, generator(seed, text, "0"))
            return np.vstack([np.ones((1, words), dtype=np.bool_), drawn])

        return counted(segments, masks)

    return explain


@pytest.fixture(scope="session")
def as_explained() -> Callable[[Dataset, Counted, str], Explained]:
    def explained(data: Dataset, found: Counted, name: str) -> Explained:
        material = material_from(data, found.scores, found.bags)
        return Explained(data, TokenF1(), name, material, material)

    return explained


@pytest.fixture(scope="session")
def wmt17(shipped: Path) -> Dataset:
    """560 judged translations into English from each of Czech, German and Turkish."""
    return read(shipped / "wmt17" / "wmt17_to_en.jsonl", human="HUMAN_score")


@pytest.fixture(scope="session")
def pairs(wmt17: Dataset) -> dict[str, Dataset]:
    """WMT17 by language pair."""

    def parted() -> Iterator[tuple[str, Dataset]]:
        for pair in ("cs-en", "de-en", "tr-en"):
            yield pair, Dataset(pair, tuple(entry for entry in wmt17.entries if entry.extra["LP"] == pair))

    return dict(parted())
