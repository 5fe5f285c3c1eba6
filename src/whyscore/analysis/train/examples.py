"""Labelled segments as numbers: words, labels, features, and padded batches of them.

1. Cut the texts into words: the units of `qe` for the embedded encoder, white-space words for encoders of transformers.
2. Give each word, each gap and each sentence its label; -1 (words, gaps) and NaN (sentences) where it is not labelled.
   Sentence scores are standardised by language pair and kind of label, metric values by language pair.
3. Embedded encoder only: learn tables of words (`whyscore.metrics.estimators.tables`) three times, each without a third
   of the source sentences, and once from all rows. A training row is read with tables that have not seen its source.
   Then features of all words, and main components of their vectors (`features.npz` in the output folder keeps them).
4. Batches hold segments of similar length; a text and its perturbed copies stay together.
"""

import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from whyscore.analysis.train.labels import METRICS, Rated, Stretches
from whyscore.metrics.estimators.features import CLIP, LEARNED, NAMES, match, read_texts
from whyscore.metrics.estimators.joint import join_texts, joint_inputs
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
from whyscore.metrics.estimators.tables import Table, Tables
from whyscore.models.pairs import Coder
from whyscore.text.randomness import generator
from whyscore.text.splitters import white_space

Array = NDArray[np.float32]
Rows = NDArray[np.intp]

KINDS = ("edits", "spans", "alignment", "perturbation")
"""How words can be labelled, the most trusted first."""
_CHUNK = 256
_REPORT_SECONDS = 10
_FIXED = "fixed."  # begins the names of what the model keeps, in the stored features
_HIDDEN = [NAMES.index(name) for name in LEARNED]
_HIDDEN_SHARE = 0.3  # of the rows are read without the columns of the tables, so that the network can do without


class Cut(NamedTuple):
    """A labelled segment as words."""

    row: Rated
    words: tuple[tuple[str, ...], tuple[str, ...]]
    """Of the hypothesis and of the source."""
    labels: tuple[Array, Array]
    gaps: Array

    @property
    def fold(self) -> int:
        """Which third of the data it belongs to, by its source."""
        return zlib.crc32(self.row.source.encode("utf-8", "surrogatepass")) % FOLDS


def cut_rows(rows: Sequence[Rated], *, embedded: bool) -> list[Cut]:
    """Return the rows whose texts have words and are not too long, in order."""
    spans_of: Callable[[str], NDArray[np.int64]] = _units if embedded else _white_space
    cuts = []
    for row in rows:
        spans = [spans_of(text) for text in (row.hypothesis, row.source)]
        if not all(0 < len(side_spans) <= LONGEST for side_spans in spans):
            continue
        words = [
            tuple(text[a:b] for a, b in side_spans.tolist())
            for text, side_spans in zip((row.hypothesis, row.source), spans, strict=True)
        ]
        labels = [
            label_spans(side_spans, marks)
            for side_spans, marks in zip(spans, (row.words, row.source_words), strict=True)
        ]
        cuts.append(Cut(row, (words[0], words[1]), (labels[0], labels[1]), _label_gaps(spans[0], row.gaps)))
    return cuts


def _units(text: str) -> NDArray[np.int64]:
    return cut_units(text).spans


def _white_space(text: str) -> NDArray[np.int64]:
    return np.array(white_space(text).spans, dtype=np.int64).reshape(-1, 2)


def label_spans(spans: NDArray[np.int64], marks: Stretches | None) -> Array:
    """Return the largest number among the stretches that each span touches; -1 where there are no labels."""
    result = np.full(len(spans), -1 if marks is None else 0, dtype=np.float32)
    for start, end, value in marks or ():
        touched = (spans[:, 0] < end) & (spans[:, 1] > start)
        result[touched] = np.maximum(result[touched], value)
    return result


def _label_gaps(spans: NDArray[np.int64], places: tuple[tuple[int, float], ...] | None) -> Array:
    result = np.full(len(spans) + 1, -1 if places is None else 0, dtype=np.float32)
    for place, value in places or ():
        gap = int(np.searchsorted(spans[:, 0], place))
        result[gap] = max(result[gap], value)
    return result


class Targets(NamedTuple):
    """What the sentences of rows are labelled with."""

    kind: NDArray[np.int64]
    """The place of the row's kind among those that are trained."""
    scores: Array
    metrics: Array
    """Rows x metrics; NaN where unknown."""
    contrast: NDArray[np.int64]
    """Rows that are compared share a number; -1 for others."""
    perturbed: NDArray[np.bool_]


def make_targets(cuts: Sequence[Cut], kinds: Sequence[str]) -> Targets:
    """Return standardised sentence labels."""
    values = np.array([row.metrics or (np.nan,) * len(METRICS) for row in (cut.row for cut in cuts)], dtype=np.float64)
    pairs = np.array([cut.row.pair for cut in cuts])
    metrics = _standardise(values, pairs)
    scores = np.array([np.nan if cut.row.score is None else cut.row.score for cut in cuts], dtype=np.float64)
    groups = np.array([f"{cut.row.pair} {cut.row.kind}" for cut in cuts])
    scores = _standardise(scores[:, None], groups)[:, 0]
    measured = ~np.isnan(metrics).all(axis=1)
    scores[measured & np.isnan(scores)] = metrics[measured & np.isnan(scores)].mean(axis=1)
    numbers = {
        key: place for place, key in enumerate(dict.fromkeys(cut.row.contrast for cut in cuts if cut.row.contrast))
    }
    return Targets(
        np.array([kinds.index(cut.row.kind) for cut in cuts], dtype=np.int64),
        scores.astype(np.float32),
        metrics.astype(np.float32),
        np.array([numbers.get(cut.row.contrast or "", -1) for cut in cuts], dtype=np.int64),
        np.array([bool(cut.row.contrast and (cut.row.words or cut.row.gaps)) for cut in cuts]),
    )


def _standardise(values: NDArray[np.float64], groups: NDArray[np.str_]) -> NDArray[np.float64]:
    """Return columns standardised within groups, at most three deviations away."""
    result = np.full(values.shape, np.nan)
    for group in np.unique(groups).tolist():
        group_values = values[groups == group]
        if not np.isnan(group_values).all():
            deviation = np.nanstd(group_values, axis=0) + 1e-6
            result[groups == group] = np.clip((group_values - np.nanmean(group_values, axis=0)) / deviation, -3, 3)
    return result


class Material(Protocol):
    """Segments that a network can read."""

    lengths: NDArray[np.int64]
    """Rows x 2: words of hypothesis and source."""

    def inputs(self, rows: Rows, device: str, draw: np.random.Generator | None) -> tuple[Any, ...]:
        """Return padded tensors; with random numbers, some of what is read is hidden."""


def batches(
    material: Material, rows: Rows, targets: Targets, words: int, draw: np.random.Generator | None
) -> Iterator[Rows]:
    """Yield rows of similar length with about so many words, shuffled where there are random numbers."""
    groups: dict[object, list[int]] = {}
    for row in rows.tolist():
        groups.setdefault(int(targets.contrast[row]) if targets.contrast[row] >= 0 else ("", row), []).append(row)
    members = list(groups.values())
    sizes = np.array([max(int(material.lengths[row].sum()) for row in group) for group in members], dtype=np.float64)
    noise = draw.normal(0, 4, len(sizes)) if draw is not None else 0
    blocks: list[list[int]] = []
    for k in np.argsort(sizes + noise, kind="stable").tolist():
        if not blocks or (len(blocks[-1]) + len(members[k])) * sizes[k] > words:
            blocks.append([])
        blocks[-1] += members[k]
    order = draw.permutation(len(blocks)) if draw is not None else np.arange(len(blocks))
    for k in order.tolist():
        yield np.array(blocks[k], dtype=np.intp)


def pad(rows: Sequence[Array], fill: float) -> Array:
    """Return vectors as one matrix."""
    result = np.full((len(rows), max(map(len, rows))), fill, dtype=np.float32)
    for place, row in enumerate(rows):
        result[place, : len(row)] = row
    return result


class Embedded:
    """Features and vectors of words of the embedded encoder, row by row."""

    def __init__(self, cuts: Sequence[Cut], arrays: dict[str, NDArray[Any]]) -> None:
        self.lengths = np.array([[len(side) for side in cut.words] for cut in cuts], dtype=np.int64)
        self._features, self._vectors, self._cosines = (arrays[name] for name in ("features", "vectors", "cosines"))
        self._starts = np.concatenate([[0], np.cumsum(self.lengths.sum(axis=1))])
        self._cells = np.concatenate([[0], np.cumsum(self.lengths.prod(axis=1))])

    def inputs(self, rows: Rows, device: str, draw: np.random.Generator | None) -> tuple[Any, ...]:
        import torch  # noqa: PLC0415 - an extra

        longest = self.lengths[rows].max(axis=0)
        features, vectors, present = (
            [np.zeros((len(rows), count, *more), dtype=kind) for count in longest.tolist()]
            for kind, more in (
                (np.float32, self._features.shape[1:]), (np.float32, self._vectors.shape[1:]), (np.bool_, ())
            )
        )  # fmt: skip
        cosines = np.zeros((len(rows), *longest.tolist()), dtype=np.float32)
        for place, row in enumerate(rows.tolist()):
            here, there = self.lengths[row].tolist()
            start = int(self._starts[row])
            for side, (begin, count) in enumerate(((start, here), (start + here, there))):
                features[side][place, :count] = self._features[begin : begin + count]
                vectors[side][place, :count] = self._vectors[begin : begin + count]
                present[side][place, :count] = True
            cosines[place, :here, :there] = self._cosines[self._cells[row] : self._cells[row + 1]].reshape(here, there)
        if draw is not None:
            hidden = np.flatnonzero(draw.random(len(rows)) < _HIDDEN_SHARE)
            for side_features in features:
                side_features[hidden[:, None, None], np.arange(side_features.shape[1])[:, None], _HIDDEN] = 0.0
        tensors = [tuple(torch.from_numpy(side).to(device) for side in pair) for pair in (features, vectors, present)]
        return tensors[0], tensors[1], torch.from_numpy(cosines).to(device), tensors[2]


class Joined:
    """Pairs of texts for an encoder of transformers."""

    def __init__(self, cuts: Sequence[Cut], coder: Coder, limit: int) -> None:
        self.lengths = np.array([[len(side) for side in cut.words] for cut in cuts], dtype=np.int64)
        self._padding = coder.padding
        self._rows = join_texts(coder, [(cut.row.hypothesis, cut.row.source) for cut in cuts], limit)

    def inputs(self, rows: Rows, device: str, draw: np.random.Generator | None) -> tuple[Any, ...]:
        del draw
        return joint_inputs([self._rows[row] for row in rows.tolist()], self._padding, device)


class Prepared(NamedTuple):
    """What the embedded encoder gives: arrays of all rows, and what a trained model needs beside its network."""

    arrays: dict[str, NDArray[Any]]
    fixed: dict[str, NDArray[np.generic]]


def prepare(
    cuts: Sequence[Cut], trained: NDArray[np.bool_], seed: int, store: Path, report: Callable[[str], None]
) -> Prepared:
    """Return features of all rows, with tables learned from those that are trained on; as stored where they are.

    Args:
        cuts: All rows, held-out ones too.
        trained: Which of them are trained on.
        seed: Fixes the sample for main components.
        store: A file that keeps the result while the training lasts.
        report: Hears how far reading has come, every ten seconds.
    """
    if store.exists():
        with np.load(store, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        fixed = {name.removeprefix(_FIXED): arrays.pop(name) for name in list(arrays) if name.startswith(_FIXED)}
        return Prepared(arrays, fixed)
    training = [cut for cut, use in zip(cuts, trained.tolist(), strict=True) if use]
    folds = [learn_tables([cut for cut in training if cut.fold != fold]) for fold in range(FOLDS)]
    whole, components = learn_tables(training), find_components(training, seed)
    tables = [folds[cut.fold] if use else whole for cut, use in zip(cuts, trained.tolist(), strict=True)]
    arrays = _read_words(cuts, tables, components, report)
    sample = np.repeat(trained, [sum(map(len, cut.words)) for cut in cuts])
    fixed = {**whole.arrays(), **_standardise_words(arrays, sample), "components": components}
    sibling = store.with_name(f".{store.name}.tmp.npz")
    np.savez(sibling, allow_pickle=False, **arrays, **{f"{_FIXED}{name}": values for name, values in fixed.items()})
    sibling.replace(store)
    return Prepared(arrays, fixed)


def _read_words(
    cuts: Sequence[Cut], tables: Sequence[Tables], components: Array, report: Callable[[str], None]
) -> dict[str, NDArray[Any]]:
    """Return features, vectors and cosines of the words of all rows, one after the other."""
    parts: dict[str, list[NDArray[Any]]] = {"features": [], "vectors": [], "cosines": []}
    reported = time.monotonic()
    for start in range(0, len(cuts), _CHUNK):
        chunk = cuts[start : start + _CHUNK]
        texts = list(dict.fromkeys(text for cut in chunk for text in (cut.row.source, cut.row.hypothesis)))
        read = dict(zip(texts, read_texts(texts), strict=True))
        for cut, table in zip(chunk, tables[start : start + _CHUNK], strict=True):
            sides = read[cut.row.hypothesis], read[cut.row.source]
            matched = match(*sides, table)
            parts["features"] += matched.features
            parts["vectors"] += [(word_vectors(side) @ components).astype(np.float16) for side in sides]
            parts["cosines"].append(matched.cosines.ravel().astype(np.float16))
        if time.monotonic() - reported > _REPORT_SECONDS:
            report(f"read {start + len(chunk):,} of {len(cuts):,} segments")
            reported = time.monotonic()
    return {name: np.concatenate(rows) for name, rows in parts.items()}


def _standardise_words(arrays: dict[str, NDArray[Any]], sample: NDArray[np.bool_]) -> dict[str, Array]:
    """Standardise features and scale vectors in place, by the words of a sample; return by what."""
    mean = arrays["features"][sample].mean(axis=0)
    deviation = arrays["features"][sample].std(axis=0) + np.float32(1e-3)
    scale = arrays["vectors"][sample].astype(np.float32).std(axis=0).mean()
    arrays["features"] = np.clip((arrays["features"] - mean) / deviation, -CLIP, CLIP).astype(np.float16)
    arrays["vectors"] = (arrays["vectors"] / scale).astype(np.float16)
    return {"mean": mean.astype(np.float32), "deviation": deviation, "scale": np.float32(scale).reshape(())}


def find_components(cuts: Sequence[Cut], seed: int) -> Array:
    """Return the main components of the word vectors of a sample."""
    sample = generator(seed, "components").permutation(len(cuts))[:SAMPLE].tolist()
    texts = dict.fromkeys(text for k in sample for text in (cuts[k].row.source, cuts[k].row.hypothesis))
    return main_components(list(texts))


def learn_tables(cuts: Sequence[Cut]) -> Tables:
    """Return what labelled segments say about single words and pairs of words.

    Translations are those of references, and of hypotheses in language pairs that have none.
    """
    edits: dict[tuple[str, str], tuple[str, Sequence[str]]] = {}
    texts: dict[tuple[str, str, str], None] = {}
    referenced = {cut.row.pair for cut in cuts if cut.row.reference}
    for cut in cuts:
        if cut.row.reference and cut.row.kind != "perturbation":
            edits.setdefault((cut.row.source, cut.row.hypothesis), (cut.row.reference, cut.words[0]))
        if cut.row.reference or cut.row.pair not in referenced:
            texts[cut.row.pair, cut.row.source, cut.row.reference or cut.row.hypothesis] = None
    translations, stem_translations = learn_translations(
        [(pair, cut_units(source).words, cut_units(target).words) for pair, source, target in texts]
    )
    return Tables(
        translations,
        count_edits((cut_units(reference).words, words) for reference, words in edits.values()),
        _errors(cuts, 0),
        _errors(cuts, 1),
        count_sources(cut.words[1] for cut in cuts),
        stem_translations,
    )


def _errors(cuts: Sequence[Cut], side: int) -> Table:
    """Return how often words are wrong; errors that were put in by perturbation say nothing about them."""
    return count_errors(
        [
            ((cut.row.pair, cut.row.kind), cut.words[side], cut.labels[side])
            for cut in cuts
            if cut.row.kind != "perturbation" and (cut.labels[side] >= 0).all()
        ]
    )
