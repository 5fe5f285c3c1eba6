"""Sentinels: columns that any metric must beat, made from the texts of a table and from nothing."""

import numpy as np

from whyscore.analysis.metaeval.tables import ScoreTable
from whyscore.errors import MissingInput
from whyscore.metrics.controls import Copy, Length, LengthRatio
from whyscore.models.surprisal import piece_surprisal
from whyscore.text.randomness import generator
from whyscore.text.splitters import white_space
from whyscore.types import FloatVector, Segment

LENGTH = "length"


def sentinels(table: ScoreTable, seed: int = 0) -> dict[str, FloatVector]:
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
    return columns if ratio is None else columns | {"length ratio": ratio}


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
