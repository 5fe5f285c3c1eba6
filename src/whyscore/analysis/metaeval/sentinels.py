"""Sentinels: columns that any metric must beat, made from the texts of a table and from nothing.

Learned sentinels (Perrella et al. 2024, arXiv 2408.13831) see one text alone, the source, the hypothesis or the
reference, and predict the human score of a translation without comparing it with anything:

1. Texts become counts of character n-grams (1 to 4 characters, lower case), hashed to 512 columns, as log(1 + count),
   scaled to length 1.
2. Ridge regression (penalty 1) on the human score, for each group of the table on its own.
3. Five folds: a row is predicted by the other folds. Rows of one document are in one fold, or rows with the same source
   where the table names no documents.

The paper fine-tunes XLM-R on DA and MQM ratings of earlier years; ours learn from the ratings at hand, and so are
controls for that data alone.
"""

import numpy as np
from numpy.typing import NDArray

from whyscore.analysis.metaeval.tables import ScoreTable
from whyscore.errors import MissingInput
from whyscore.metrics.controls import Copy, Length, LengthRatio
from whyscore.models.surprisal import piece_surprisal
from whyscore.stats.resampling import block_folds
from whyscore.text.randomness import generator
from whyscore.text.splitters import white_space
from whyscore.types import FloatMatrix, FloatVector, Segment

LENGTH = "length"


_SIZE, _ORDERS, _PENALTY, _FOLDS, _FEWEST = 512, 4, 1.0, 5, 20


def sentinels(table: ScoreTable, human: str, seed: int = 0) -> dict[str, FloatVector]:
    """Return the sentinels of a table: higher is better.

    | name | value |
    |---|---|
    | random | a random number for each row, fixed by seed, system and segment |
    | constant | 1: has no correlation, and every pair is a tie |
    | length, -length | words of the hypothesis |
    | -surprisal | minus the mean surprisal of the hypothesis words, by subwords |
    | source length | words of the source |
    | length ratio | words of the hypothesis for each word of the references |
    | copy rate | share of the hypothesis words that stand in the source |
    | learned source, learned hypothesis, learned reference | a regression on the n-grams of that text alone |
    """
    systems = table.systems or ("",) * len(table)
    drawn = [generator(seed, *row).random() for row in zip(systems, table.segments, strict=True)]
    columns: dict[str, FloatVector] = {"random": np.array(drawn), "constant": np.ones(len(table))}
    if table.texts is None:
        return columns
    segments = table.texts.segments
    length = Length().score(segments)
    columns |= {LENGTH: length, f"-{LENGTH}": -length, "-surprisal": _familiarity(segments)}
    if all(segment.source is not None for segment in segments):
        columns["source length"] = np.array([float(len((segment.source or "").split())) for segment in segments])
        columns["copy rate"] = Copy().score(segments)
    ratio = _ratio(segments)
    columns |= {} if ratio is None else {"length ratio": ratio}
    return columns | _learn(table, segments, table.scores[human], seed)


def _learn(table: ScoreTable, segments: tuple[Segment, ...], human: FloatVector, seed: int) -> dict[str, FloatVector]:
    """Return the learned sentinels of the texts that all rows have; none where a group is too small to learn from."""
    texts: dict[str, list[str]] = {"hypothesis": [segment.hypothesis for segment in segments]}
    if all(segment.source is not None for segment in segments):
        texts["source"] = [segment.source or "" for segment in segments]
    if all(segment.references for segment in segments):
        texts["reference"] = [segment.references[0] for segment in segments]
    blocks = _blocks(table, segments)
    ranks = np.unique(blocks, return_inverse=True)[1]
    groups = np.array(table.groups or ("",) * len(table))
    found = {}
    for name in sorted(texts, reverse=True):
        distinct = {text: k for k, text in enumerate(sorted(set(texts[name])))}
        features, places = _features(list(distinct)), np.array([distinct[text] for text in texts[name]])
        column = np.full(len(table), np.nan)
        for group in dict.fromkeys(groups.tolist()):
            rows = np.flatnonzero(groups == group)
            # By content, so that sums have the same digits whatever the order of the table.
            rows = rows[np.lexsort((human[rows], ranks[rows], places[rows]))]
            own = [blocks[k] for k in rows]
            if min((~np.isnan(human[rows])).sum() / _FEWEST, len(set(own)) / _FOLDS) >= 1:
                column[rows] = _predict(features, places[rows], human[rows], block_folds(own, _FOLDS, seed))
        if not np.isnan(column).all():
            found[f"learned {name}"] = column
    return found


def _blocks(table: ScoreTable, segments: tuple[Segment, ...]) -> list[str]:
    """Return what is never parted by folds: a document, the rows of a source, or those of a segment."""
    documents = [entry.document for entry in table.texts.entries] if table.texts is not None else []
    if documents and None not in documents:
        return [str(name) for name in documents]
    return [segment.source or name for segment, name in zip(segments, table.segments, strict=True)]


def _features(texts: list[str]) -> FloatMatrix:
    """Return hashed counts of character n-grams, one row per text."""
    rows = np.zeros((len(texts), _SIZE))
    for k, text in enumerate(texts):
        codes = np.frombuffer(text.lower().encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
        rolled = np.zeros(len(codes), dtype=np.uint64)
        for order in range(1, min(_ORDERS, len(codes)) + 1):
            last = len(codes) - order + 1
            # The next character joins the n-gram; odd multipliers mix it (Knuth's multiplicative hashing).
            rolled = rolled[:last] * np.uint64(0x9E3779B97F4A7C15) + codes[order - 1 :] + np.uint64(order)
            mixed = (rolled * np.uint64(0xBF58476D1CE4E5B9)) >> np.uint64(55)  # the upper 9 bits: 512 columns
            rows[k] += np.bincount(mixed.astype(np.int64), minlength=_SIZE)
    rows = np.log1p(rows)
    scaled: FloatMatrix = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return scaled


def _predict(
    features: FloatMatrix, places: NDArray[np.intp], human: FloatVector, fold: NDArray[np.intp]
) -> FloatVector:
    """Return what the other folds predict for each row, by the features at its place.

    Each distinct text is a row with a weight: equal texts get equal predictions, to the last bit, and are read once.
    Sums of a fold are made once, and added up for the others.
    """
    grams, sums, targets, counts, totals = [], [], [], [], []
    for k in range(_FOLDS):
        rows = np.flatnonzero(~np.isnan(human) & (fold == k))
        used, inverse = np.unique(places[rows], return_inverse=True)
        weights, scores = (np.bincount(inverse.ravel(), own, len(used)) for own in (None, human[rows]))
        own = features[used]
        grams.append((own * weights[:, None]).T @ own)
        sums.append(weights @ own)
        targets.append(scores @ own)
        counts.append(float(weights.sum()))
        totals.append(float(scores.sum()))
    found = np.full(len(human), np.nan)
    for k in range(_FOLDS):
        n = sum(counts) - counts[k]
        if n:
            centre, mean = (sum(sums) - sums[k]) / n, (sum(totals) - totals[k]) / n
            gram = sum(grams) - grams[k] - n * np.outer(centre, centre) + _PENALTY * np.eye(_SIZE)
            slopes = np.linalg.solve(gram, sum(targets) - targets[k] - n * centre * mean)
            used, inverse = np.unique(places[fold == k], return_inverse=True)
            found[fold == k] = (mean + (features[used] - centre) @ slopes)[inverse.ravel()]
    return found


def _familiarity(segments: tuple[Segment, ...]) -> FloatVector:
    """Return minus the mean surprisal of the words of each hypothesis; 0 for one without words."""
    surprisal = [piece_surprisal(white_space(segment.hypothesis)) for segment in segments]
    return np.array([-float(values.mean()) if len(values) else 0.0 for values in surprisal])


def _ratio(segments: tuple[Segment, ...]) -> FloatVector | None:
    if not all(segment.references for segment in segments):
        return None
    try:
        return LengthRatio().score(segments)
    except MissingInput:  # empty references
        return None
