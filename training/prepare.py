"""From rated translations to arrays: tables of words, features of words, labels.

1. Cut all texts into the estimator's units.
2. Learn the tables of `whyscore.metrics.estimators.tables` three times, each without one third of the source
   sentences, and once from all rows. A training row is read with the tables that have not seen its source sentence.
3. Read the features of every word; project the vectors of words on the main components of a sample.
4. Label units: the tag of their token, or the share of raters whose spans they touch.
"""

import collections
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from data import Row, tokens
from whyscore.metrics.estimators.features import NAMES, ReadText, match, read_texts
from whyscore.metrics.estimators.tables import (
    Table,
    Tables,
    cut_stems,
    make_table,
    neighbour_keys,
    pair_keys,
    word_keys,
)
from whyscore.metrics.estimators.units import find_units
from whyscore.models.encoders.embedded import segmenter
from whyscore.models.lexicon import cooccurrences, estimate

Array = NDArray[np.float32]

FOLDS = 3
LONGEST = 150
"""Units of a text that is trained on."""
COMPONENTS = (160, 96)
"""Of the vectors of words, and of their projections."""
_SAMPLE = 3000
_CHUNK = 256
_LEAST_TRANSLATION = 0.1
_SHRINKAGE = 8.0
_LARGEST_COUNT = 12.0


class Cut(NamedTuple):
    """A row as units."""

    row: Row
    source: tuple[str, ...]
    hypothesis: tuple[str, ...]
    edited: tuple[str, ...]
    hypothesis_labels: Array
    source_labels: Array | None
    hypothesis_tokens: NDArray[np.intp]
    """Which white-space token each unit belongs to."""
    source_tokens: NDArray[np.intp]

    @property
    def fold(self) -> int:
        """The third of the data that it belongs to, by its source."""
        return zlib.crc32(self.row.source.encode()) % FOLDS


def cut_rows(rows: Iterable[Row]) -> list[Cut]:
    """Return the rows whose texts have words and are not too long."""
    cuts = (cut_row(row) for row in rows)
    return [cut for cut in cuts if 0 < len(cut.source) <= LONGEST and 0 < len(cut.hypothesis) <= LONGEST]


def cut_row(row: Row) -> Cut:
    """Return a row as units with labels."""
    source, hypothesis = _units(row.source), _units(row.hypothesis)
    here, there = _owners(row.hypothesis, hypothesis.spans), _owners(row.source, source.spans)
    if row.hypothesis_tags is not None:
        labels = np.array(row.hypothesis_tags, dtype=np.float32)[here]
    else:
        labels = np.mean([_touching(hypothesis.spans, spans) for spans in row.spans], axis=0).astype(np.float32)
    others = None if row.source_tags is None else np.array(row.source_tags, dtype=np.float32)[there]
    edited = _units(row.edited).words if row.edited else ()
    return Cut(row, source.words, hypothesis.words, edited, labels, others, here, there)


def _units(text: str):  # noqa: ANN202
    spans = np.array(segmenter().cut(text).spans, dtype=np.int64).reshape(-1, 2)
    return find_units(text, spans)


def _owners(text: str, spans: NDArray[np.int64]) -> NDArray[np.intp]:
    return np.searchsorted(tokens(text)[:, 0], spans[:, 0], side="right") - 1


def _touching(units: NDArray[np.int64], spans: Sequence[tuple[int, int]]) -> Array:
    marks = np.array(spans, dtype=np.int64).reshape(-1, 2)
    return ((units[:, :1] < marks[:, 1]) & (units[:, 1:] > marks[:, 0])).any(axis=1).astype(np.float32)


def learn_tables(cuts: Sequence[Cut]) -> Tables:
    """Return what the rows say about single words and pairs of words."""
    edited, translated = collections.Counter[int](), collections.Counter[int]()
    sources = collections.Counter[int]()
    for cut in cuts:
        sources.update(word_keys(cut.source).tolist())
        if cut.edited:
            edited.update(_with_neighbours(cut.edited))
            translated.update(_with_neighbours(cut.hypothesis))
    repeated = [key for key in edited | translated if edited[key] + translated[key] > 1]
    return Tables(
        _translations(cuts, _lower),
        _counts(repeated, edited, translated),
        _errors([(cut.row.pair, cut.row.marked, cut.hypothesis, cut.hypothesis_labels) for cut in cuts]),
        _errors(
            [
                (cut.row.pair, cut.row.marked, cut.source, cut.source_labels)
                for cut in cuts
                if cut.source_labels is not None
            ]
        ),
        _counts(list(sources), sources),
        _translations(cuts, cut_stems),
    )


def _with_neighbours(words: Sequence[str]) -> list[int]:
    keys = word_keys(words)
    return [*keys.tolist(), *neighbour_keys(keys).tolist()]


def _counts(keys: Sequence[int], *counters: collections.Counter[int]) -> Table:
    columns = [np.log1p(np.array([counter[key] for key in keys], dtype=np.float32)) for counter in counters]
    return make_table(np.array(keys, dtype=np.uint64), columns, 0.0, _LARGEST_COUNT)


def _errors(rows: Sequence[tuple[str, bool, Sequence[str], Array]]) -> Table:
    """Return by how much more often than the rest of its pair a word is wrong; words seen three times or more."""
    totals: dict[tuple[str, bool], list[float]] = {}
    for pair, marked, _, labels in rows:
        total = totals.setdefault((pair, marked), [0.0, 0.0])
        total[0] += float(labels.sum())
        total[1] += len(labels)
    surplus, count = collections.defaultdict[int, float](float), collections.Counter[int]()
    for pair, marked, words, labels in rows:
        wrong, seen = totals[pair, marked]
        keys = word_keys(words)
        numbers = np.concatenate([labels, labels[1:]]) - wrong / seen
        for key, number in zip([*keys.tolist(), *neighbour_keys(keys).tolist()], numbers.tolist(), strict=True):
            surplus[key] += number
            count[key] += 1
    kept = [key for key, times in count.items() if times > 2]
    values = np.array([surplus[key] / (count[key] + _SHRINKAGE) for key in kept], dtype=np.float32)
    return make_table(np.array(kept, dtype=np.uint64), [values], -1.0, 1.0)


def _translations(cuts: Sequence[Cut], forms: Callable[[Sequence[str]], Sequence[str]]) -> Table:
    """Return IBM model 1 in both directions, pair by pair: on post-edits, and on translations where nobody edited.

    Args:
        cuts: The rows.
        forms: In which form words are counted.
    """
    groups: dict[str, list[tuple[Sequence[str], Sequence[str]]]] = collections.defaultdict(list)
    edited = {cut.row.pair for cut in cuts if cut.edited}
    for cut in cuts:
        if cut.edited or cut.row.pair not in edited:
            groups[cut.row.pair].append((forms(cut.source), forms(cut.edited or cut.hypothesis)))
    keys, forward, backward = [], [], []
    for pairs in groups.values():
        there = _directed([source for source, _ in pairs], [target for _, target in pairs])
        back = _directed([target for _, target in pairs], [source for source, _ in pairs])
        both = {**there, **{(source, target): 0.0 for target, source in back}}
        kept = [(s, t) for s, t in both if max(there.get((s, t), 0.0), back.get((t, s), 0.0)) >= _LEAST_TRANSLATION]
        keys.append(pair_keys(word_keys([s for s, _ in kept]), word_keys([t for _, t in kept])))
        forward += [there.get((s, t), 0.0) for s, t in kept]
        backward += [back.get((t, s), 0.0) for s, t in kept]
    columns = [np.array(values, dtype=np.float32) for values in (forward, backward)]
    return make_table(np.concatenate(keys), columns, 0.0, 1.0)


def _directed(given: Sequence[Sequence[str]], translated: Sequence[Sequence[str]]) -> dict[tuple[str, str], float]:
    words = ["", *dict.fromkeys(word for side in (given, translated) for text in side for word in text)]
    together = cooccurrences(given, translated, {word: number for number, word in enumerate(words)})
    probability = estimate(together, sum(map(len, translated)))
    kept = (probability >= _LEAST_TRANSLATION / 10) & (together.source > 0)
    rows = zip(together.source[kept].tolist(), together.target[kept].tolist(), probability[kept].tolist(), strict=True)
    return {(words[source], words[target]): number for source, target, number in rows}


def _lower(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(word.lower() for word in words)


class Examples(NamedTuple):
    """Rows as the network reads them: words of all hypotheses and sources follow one another, row by row."""

    features: Array
    vectors: NDArray[np.float16]
    labels: Array
    """-1 where nobody looked."""
    lengths: NDArray[np.int32]
    """Rows x 2: words of hypothesis and source."""
    cosines: NDArray[np.float16]
    """Of each row, one after another."""
    texts: NDArray[np.float16]
    """Rows x 2 x width: the vectors of hypothesis and source as a whole."""


def word_vectors(text: ReadText) -> Array:
    """Return the vector of each word that is projected on main components."""
    return np.concatenate([text.words, text.projections], axis=1)


def main_components(rows: Sequence[Row]) -> Array:
    """Return the main components of both halves of the word vectors, on a sample."""
    chosen = np.random.default_rng(0).permutation(len(rows))[:_SAMPLE].tolist()
    texts = dict.fromkeys(text for k in chosen for text in (rows[k].source, rows[k].hypothesis))
    vectors = np.concatenate([word_vectors(text) for text in read_texts(list(texts))])
    half = vectors.shape[1] // 2
    result = np.zeros((vectors.shape[1], sum(COMPONENTS)), dtype=np.float32)
    for number, count in enumerate(COMPONENTS):
        part = slice(number * half, (number + 1) * half)
        centred = vectors[:, part] - vectors[:, part].mean(axis=0)
        _, directions = np.linalg.eigh(centred.T @ centred)
        start = sum(COMPONENTS[:number])
        result[part, start : start + count] = directions[:, ::-1][:, :count]
    return result.astype(np.float16).astype(np.float32)


def read_rows(cuts: Sequence[Cut], tables: Sequence[Tables], components: Array, *, jobs: int) -> Examples:
    """Return the examples; `tables` holds one for each fold, or one for all."""
    chunks = [list(cuts[start : start + _CHUNK]) for start in range(0, len(cuts), _CHUNK)]
    with ProcessPoolExecutor(jobs, initializer=_start, initargs=(tables, components)) as pool:
        parts = list(pool.map(_read_chunk, chunks))
    return Examples(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


_SETTINGS: dict[str, object] = {}


def _start(tables: Sequence[Tables], components: Array) -> None:
    _SETTINGS.update(tables=tables, components=components)


def _read_chunk(cuts: Sequence[Cut]) -> Examples:
    tables: Sequence[Tables] = _SETTINGS["tables"]  # type: ignore[assignment]
    components: Array = _SETTINGS["components"]  # type: ignore[assignment]
    texts = list(dict.fromkeys(text for cut in cuts for text in (cut.row.source, cut.row.hypothesis)))
    read = dict(zip(texts, read_texts(texts), strict=True))
    features, vectors, labels, lengths, cosines, wholes = [], [], [], [], [], []
    for cut in cuts:
        here, there = read[cut.row.hypothesis], read[cut.row.source]
        matched = match(here, there, tables[cut.fold % len(tables)])
        features += matched.features
        vectors += [(word_vectors(text) @ components).astype(np.float16) for text in (here, there)]
        unknown = np.full(len(cut.source), -1, dtype=np.float32)
        labels += [cut.hypothesis_labels, unknown if cut.source_labels is None else cut.source_labels]
        lengths.append((len(cut.hypothesis), len(cut.source)))
        cosines.append(matched.cosines.ravel().astype(np.float16))
        wholes.append(np.stack([here.whole, there.whole]).astype(np.float16))
    return Examples(
        np.concatenate(features).reshape(-1, len(NAMES)),
        np.concatenate(vectors),
        np.concatenate(labels),
        np.array(lengths, dtype=np.int32),
        np.concatenate(cosines),
        np.stack(wholes),
    )
