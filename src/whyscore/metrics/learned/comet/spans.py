"""Error spans from class probabilities of pieces, and the score they stand for (xCOMET, arXiv 2310.10482).

1. The probabilities of the inputs (h,s), (h,r), (h,s,r) are mixed 1/6, 1/3, 1/2.
2. A piece is an error if an error class is the most probable one or, with a threshold t, if p(error) > t; its severity
   is the most probable error class.
3. Neighbouring error pieces are one span. `mode="compat"`, the published way: always, and the first severity counts;
   `mode="paper"`: only while the severity stays the same. A span that is open at the end of the text ends there.
4. A span is cut to its characters: blanks at its edges are left out. Confidence = mean probability of the classes
   that were chosen.
5. MQM part `m = (25 - min(25, sum of 1, 5, 10 for minor, major, critical)) / 25`.

Deviation: special pieces can be no errors; the published code lets them open a span.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, cast

import numpy as np

from whyscore.marking import Span
from whyscore.types import ErrorSpan, FloatMatrix, Severity

Mode = Literal["compat", "paper"]

SEVERITIES: tuple[Severity, ...] = ("minor", "major", "critical")
PENALTIES = (1, 5, 10)
WORST = 25
MIXED = (1 / 6, 1 / 3, 1 / 2)


class Run(NamedTuple):
    """Neighbouring error pieces: the class, counted from 1, the first and the last piece, and the confidence."""

    label: int
    first: int
    last: int
    confidence: float


def mixed(parts: Sequence[FloatMatrix]) -> FloatMatrix:
    """Return the class probabilities that several inputs give together; a single input speaks for itself."""
    if len(parts) == 1:
        return parts[0]
    weighted = [weight * part for weight, part in zip(MIXED, parts, strict=True)]
    return cast("FloatMatrix", np.sum(weighted, axis=0))


def runs(probabilities: FloatMatrix, threshold: float | None, mode: Mode) -> list[Run]:
    """Return the runs of error pieces, in order."""
    labels = _labels(probabilities, threshold).tolist()
    found: list[list[int]] = []
    for piece, label in enumerate(labels):
        if not label:
            continue
        goes_on = found and found[-1][-1] == piece - 1 and (mode == "compat" or labels[piece - 1] == label)
        if goes_on:
            found[-1].append(piece)
        else:
            found.append([piece])
    chosen = probabilities[np.arange(len(labels)), labels] if labels else np.zeros(0)
    return [Run(labels[run[0]], run[0], run[-1], float(chosen[run].mean())) for run in found]


def error_spans(text: str, pieces: Sequence[Span], found: Sequence[Run]) -> tuple[ErrorSpan, ...]:
    """Return the runs as spans of the text; what has no character besides blanks is left out."""
    spans = []
    for run in found:
        start, end = pieces[run.first][0], pieces[run.last][1]
        inside = text[start:end]
        start += len(inside) - len(inside.lstrip())
        end -= len(inside) - len(inside.rstrip())
        if start < end:
            severity = SEVERITIES[run.label - 1]
            spans.append(ErrorSpan(start, end, severity, confidence=run.confidence))
    return tuple(spans)


def quality(found: Sequence[Run]) -> float:
    """Return the MQM part of the score, 1 without errors.

    >>> quality([Run(2, 0, 1, 0.9), Run(1, 3, 3, 0.6)])
    0.76
    """
    return (WORST - min(WORST, sum(PENALTIES[run.label - 1] for run in found))) / WORST


def _labels(probabilities: FloatMatrix, threshold: float | None) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    if threshold is None:
        return np.asarray(probabilities.argmax(axis=1))
    errors = probabilities[:, 1:]
    return np.where(errors.sum(axis=1) > threshold, errors.argmax(axis=1) + 1, 0)
