"""From rated translations to arrays: tables of words, features of words, labels.

1. Cut all texts into the estimator's units.
2. Learn the tables of `whyscore.metrics.estimators.tables` three times, each without one third of the source
   sentences, and once from all rows. A training row is read with the tables that have not seen its source sentence.
3. Read the features of every word; project the vectors of words on the main components of a sample.
4. Label units: the tag of their token, or the share of raters whose spans they touch.
"""

import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from data import Row, tokens
from whyscore.metrics.estimators.features import NAMES, match, read_texts
from whyscore.metrics.estimators.learning import (
    FOLDS,
    LONGEST,
    SAMPLE,
    count_edits,
    count_errors,
    count_sources,
    cut_units,
    learn_translations,
    main_components,
    word_vectors,
)
from whyscore.metrics.estimators.tables import Tables

Array = NDArray[np.float32]

_CHUNK = 256


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
    source, hypothesis = cut_units(row.source), cut_units(row.hypothesis)
    here, there = _owners(row.hypothesis, hypothesis.spans), _owners(row.source, source.spans)
    if row.hypothesis_tags is not None:
        labels = np.array(row.hypothesis_tags, dtype=np.float32)[here]
    else:
        labels = np.mean([_touching(hypothesis.spans, spans) for spans in row.spans], axis=0).astype(np.float32)
    others = None if row.source_tags is None else np.array(row.source_tags, dtype=np.float32)[there]
    edited = cut_units(row.edited).words if row.edited else ()
    return Cut(row, source.words, hypothesis.words, edited, labels, others, here, there)


def _owners(text: str, spans: NDArray[np.int64]) -> NDArray[np.intp]:
    return np.searchsorted(tokens(text)[:, 0], spans[:, 0], side="right") - 1


def _touching(units: NDArray[np.int64], spans: Sequence[tuple[int, int]]) -> Array:
    marks = np.array(spans, dtype=np.int64).reshape(-1, 2)
    return ((units[:, :1] < marks[:, 1]) & (units[:, 1:] > marks[:, 0])).any(axis=1).astype(np.float32)


def learn_tables(cuts: Sequence[Cut]) -> Tables:
    """Return what the rows say about single words and pairs of words.

    Translations are those of post-edits, and of hypotheses in language pairs where nobody edited.
    """
    edited = {cut.row.pair for cut in cuts if cut.edited}
    translations, stem_translations = learn_translations(
        [
            (cut.row.pair, cut.source, cut.edited or cut.hypothesis)
            for cut in cuts
            if cut.edited or cut.row.pair not in edited
        ]
    )
    groups = [(cut.row.pair, cut.row.marked) for cut in cuts]
    return Tables(
        translations,
        count_edits((cut.edited, cut.hypothesis) for cut in cuts if cut.edited),
        count_errors([(group, cut.hypothesis, cut.hypothesis_labels) for group, cut in zip(groups, cuts, strict=True)]),
        count_errors(
            [
                (group, cut.source, cut.source_labels)
                for group, cut in zip(groups, cuts, strict=True)
                if cut.source_labels is not None
            ]
        ),
        count_sources(cut.source for cut in cuts),
        stem_translations,
    )


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


def find_components(rows: Sequence[Row]) -> Array:
    """Return the main components of the word vectors of a sample."""
    chosen = np.random.default_rng(0).permutation(len(rows))[:SAMPLE].tolist()
    return main_components(list(dict.fromkeys(text for k in chosen for text in (rows[k].source, rows[k].hypothesis))))


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
