"""What an estimator learns before its network: tables of words (`tables`) and main components of word vectors.

Training the estimator that ships and `whyscore train` both use it, each with the rows and labels that it has.
"""

import collections
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from whyscore.metrics.estimators.features import ReadText, read_texts
from whyscore.metrics.estimators.tables import Table, cut_stems, make_table, neighbour_keys, pair_keys, word_keys
from whyscore.metrics.estimators.units import Units, find_units
from whyscore.models.encoders.embedded import segmenter
from whyscore.models.lexicon import cooccurrences, estimate

Array = NDArray[np.float32]
Text = Sequence[str]
"""The words of a text."""
Translation = tuple[str, Text, Text]
"""A language pair, the words of a source and those of its translation."""

FOLDS = 3
"""A training row is read with tables that have not seen the third of the sources that it belongs to."""
LONGEST = 150
"""Words of a text that is trained on."""
COMPONENTS = (160, 96)
"""Main components of the vectors of words, and of their projections."""
SAMPLE = 3000
"""Rows whose words give the main components."""
_LEAST_TRANSLATION, _SHRINKAGE, _LARGEST_COUNT, _LEAST_COUNT = 0.1, 8.0, 12.0, 3


def cut_units(text: str) -> Units:
    """Return a text as the estimator's units."""
    return find_units(text, np.array(segmenter().cut(text).spans, dtype=np.int64).reshape(-1, 2))


def count_sources(sources: Iterable[Text]) -> Table:
    """Return how often each source word was seen."""
    counter = collections.Counter[int]()
    for words in sources:
        counter.update(word_keys(words).tolist())
    return _count(list(counter), counter)


def count_edits(texts: Iterable[tuple[Text, Text]]) -> Table:
    """Return how often words and neighbours stand in post-edits, and in what was edited; those seen twice or more."""
    edited, translated = collections.Counter[int](), collections.Counter[int]()
    for after, before in texts:
        edited.update(_with_neighbours(after))
        translated.update(_with_neighbours(before))
    return _count([key for key in edited | translated if edited[key] + translated[key] > 1], edited, translated)


def _with_neighbours(words: Text) -> list[int]:
    keys = word_keys(words)
    return [*keys.tolist(), *neighbour_keys(keys).tolist()]


def _count(keys: Sequence[int], *counters: collections.Counter[int]) -> Table:
    columns = [np.log1p(np.array([counter[key] for key in keys], dtype=np.float32)) for counter in counters]
    return make_table(np.array(keys, dtype=np.uint64), columns, 0.0, _LARGEST_COUNT)


def count_errors(rows: Sequence[tuple[object, Text, Array]]) -> Table:
    """Return by how much more often than the rest of its group a word is wrong; words seen three times or more.

    Args:
        rows: Group, words and labels of each text.
    """
    totals: dict[object, list[float]] = {}
    for group, _, labels in rows:
        total = totals.setdefault(group, [0.0, 0.0])
        total[0] += float(labels.sum())
        total[1] += len(labels)
    surplus, count = collections.defaultdict[int, float](float), collections.Counter[int]()
    for group, words, labels in rows:
        wrong, seen = totals[group]
        numbers = np.concatenate([labels, labels[1:]]) - wrong / seen
        for key, number in zip(_with_neighbours(words), numbers.tolist(), strict=True):
            surplus[key] += number
            count[key] += 1
    keys = [key for key, times in count.items() if times >= _LEAST_COUNT]
    values = np.array([surplus[key] / (count[key] + _SHRINKAGE) for key in keys], dtype=np.float32)
    return make_table(np.array(keys, dtype=np.uint64), [values], -1.0, 1.0)


def learn_translations(texts: Sequence[Translation]) -> tuple[Table, Table]:
    """Return IBM model 1 in both directions, one language pair at a time: of words, and of their first letters."""
    return _translations(texts, _lower), _translations(texts, cut_stems)


def _lower(words: Text) -> list[str]:
    return [word.lower() for word in words]


def _translations(texts: Sequence[Translation], forms: Callable[[Text], Text]) -> Table:
    groups: dict[str, list[tuple[Text, Text]]] = collections.defaultdict(list)
    for pair, source, target in texts:
        groups[pair].append((forms(source), forms(target)))
    keys, columns = [np.zeros(0, dtype=np.uint64)], [[np.zeros(0, dtype=np.float32)] for _ in range(2)]
    for group in groups.values():
        sources, targets = [source for source, _ in group], [target for _, target in group]
        there, back = _estimate_direction(sources, targets), _estimate_direction(targets, sources)
        both = {**there, **{(source, target): 0.0 for target, source in back}}
        pairs = [(s, t) for s, t in both if max(there.get((s, t), 0.0), back.get((t, s), 0.0)) >= _LEAST_TRANSLATION]
        keys.append(pair_keys(word_keys([s for s, _ in pairs]), word_keys([t for _, t in pairs])))
        columns[0].append(np.array([there.get(pair, 0.0) for pair in pairs], dtype=np.float32))
        columns[1].append(np.array([back.get((t, s), 0.0) for s, t in pairs], dtype=np.float32))
    return make_table(np.concatenate(keys), [np.concatenate(column) for column in columns], 0.0, 1.0)


def _estimate_direction(sources: Sequence[Text], translated: Sequence[Text]) -> dict[tuple[str, str], float]:
    words = ["", *dict.fromkeys(word for side in (sources, translated) for text in side for word in text)]
    together = cooccurrences(sources, translated, {word: number for number, word in enumerate(words)})
    probability = estimate(together, sum(map(len, translated)))
    kept = (probability >= _LEAST_TRANSLATION / 10) & (together.source > 0)
    rows = zip(together.source[kept].tolist(), together.target[kept].tolist(), probability[kept].tolist(), strict=True)
    return {(words[source], words[target]): number for source, target, number in rows}


def word_vectors(text: ReadText) -> Array:
    """Return the vector of each word that is projected on main components."""
    return np.concatenate([text.words, text.projections], axis=1)


def main_components(texts: Sequence[str]) -> Array:
    """Return the main components of both halves of the word vectors of some texts."""
    vectors = np.concatenate([word_vectors(text) for text in read_texts(texts)])
    half = vectors.shape[1] // 2
    result = np.zeros((vectors.shape[1], sum(COMPONENTS)), dtype=np.float32)
    for number, count in enumerate(COMPONENTS):
        part = slice(number * half, (number + 1) * half)
        centred = vectors[:, part] - vectors[:, part].mean(axis=0)
        _, directions = np.linalg.eigh(centred.T @ centred)
        start = sum(COMPONENTS[:number])
        result[part, start : start + count] = directions[:, ::-1][:, :count]
    return result.astype(np.float16).astype(np.float32)
