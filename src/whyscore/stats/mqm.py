"""MQM scores from raw error ratings (Freitag et al. 2021, arXiv 2104.14478).

1. Every error has a weight: major 5, minor 1, neutral and no error 0; major non-translation 25; minor punctuation 0.1.
2. The weights of one rater for one segment of one system are added; raters are averaged; the sign is turned, so that
   higher is better.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from whyscore.errors import DataError

_SEVERITIES = {"critical": 5.0, "major": 5.0, "minor": 1.0, "neutral": 0.0, "no-error": 0.0, "no error": 0.0}


@dataclass(frozen=True, slots=True)
class Weights:
    """What an error costs, by severity; exceptions by severity and the beginning of the category come first."""

    severities: Mapping[str, float] = field(default_factory=lambda: dict(_SEVERITIES))
    exceptions: Mapping[tuple[str, str], float] = field(
        default_factory=lambda: {("major", "non-translation"): 25.0, ("minor", "fluency/punctuation"): 0.1}
    )

    def of(self, severity: str, category: str) -> float:
        """Return what one error costs.

        >>> Weights().of("Major", "Non-translation!"), Weights().of("Minor", "Style/Awkward")
        (25.0, 1.0)
        """
        level, kind = severity.lower(), category.lower()
        for (wanted, prefix), weight in self.exceptions.items():
            if level == wanted and kind.startswith(prefix):
                return weight
        if level not in self.severities:
            raise DataError(f"no weight for the severity {severity!r}: known are {', '.join(self.severities)}")
        return self.severities[level]


GOOGLE = Weights()
"""The weights of WMT's MQM evaluations."""


def mqm_scores(
    cells: Sequence[Hashable],
    raters: Sequence[str],
    severities: Sequence[str],
    categories: Sequence[str],
    weights: Weights = GOOGLE,
) -> dict[Hashable, float]:
    """Return the score of every cell (system and segment) from one row per error; a row without error counts too."""
    costs: dict[Hashable, dict[str, list[float]]] = {}
    for cell, rater, severity, category in zip(cells, raters, severities, categories, strict=True):
        costs.setdefault(cell, {}).setdefault(rater, []).append(weights.of(severity, category))
    return {
        cell: -math.fsum(math.fsum(one) for one in by_rater.values()) / len(by_rater) + 0.0
        for cell, by_rater in costs.items()
    }
