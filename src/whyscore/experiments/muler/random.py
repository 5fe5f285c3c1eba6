"""Experiments with features at random: what a share is when a feature means nothing.

`specificity`: the vocabulary of both sides is cut into p groups of equal size at random; one is drawn and hidden as if
it were a feature; repeated. Such a feature depends on the word alone, so its share is never below zero. Besides, random
groups that are as frequent as a real feature, to compare its share with.

`tagnoise`: what a bad tagger does. A part of a feature's spans on one side is dropped, or moved to random words; with
`random`, both sides have independent random words at the feature's frequency.

The draws depend on the seed, the text and the draw's number alone.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.random import Generator

from whyscore.analysis.common import MetricLike, Segments
from whyscore.analysis.decompose.decompose import measure
from whyscore.analysis.decompose.masking import cutter, token_row
from whyscore.analysis.decompose.settings import Settings, Study
from whyscore.analysis.decompose.tagging import Marked, TaggerLike
from whyscore.analysis.decompose.views import carriers_of
from whyscore.errors import SpecError
from whyscore.experiments.muler.shares import cells, derived, start
from whyscore.marking import Span
from whyscore.protocols import Metric
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.text.placeholders import TokenRow, merged
from whyscore.text.randomness import generator

GROUPS = (2, 3, 4, 5, 6)
RATES = (0.0, 0.1, 0.25, 0.5, 1.0)
Noise = Literal["drop", "move", "random"]


@dataclass(frozen=True, slots=True)
class SpecificityRow:
    """Shares of random features; `feature` names the real one whose frequency they have."""

    system: str
    metric: str
    groups: int | None
    feature: str | None
    draws: int
    frequency: float
    mean: float | None
    sd: float | None
    smallest: float | None

    def record(self) -> dict[str, object]:
        """Return the row under the names it has in files."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class NoiseRow:
    """The share of a feature with a part of its tags wrong."""

    system: str
    metric: str
    feature: str
    noise: str
    side: str
    rate: float
    n: int
    share: float | None

    def record(self) -> dict[str, object]:
        """Return the row under the names it has in files."""
        return asdict(self)


def specificity(
    data: Segments,
    metric: MetricLike,
    *,
    tagger: TaggerLike = "rules",
    features: Sequence[str] | None = None,
    groups: Sequence[int] = GROUPS,
    draws: int = 12,
    settings: Settings | None = None,
    resources: Resources = LOCAL,
) -> list[SpecificityRow]:
    """Return the shares of random words: p groups of the vocabulary, and groups as frequent as each feature."""
    if draws < 1 or any(p < 1 for p in groups):
        raise SpecError(f"specificity: {draws} draws of {', '.join(map(str, groups))} groups, expected 1 or more")
    study, chosen, name = start(data, metric, (tagger, features), settings, resources)
    tokens = _token_rows(study, chosen)
    plans = _plans(study, tokens, groups, draws)
    spans = {number: _spans_of(row, plans) for number, row in tokens.items()}
    names = tuple(str(k) for k in range(len(plans)))
    changed = study._replace(marking=derived(study.marking, names, lambda text, _: spans[text.number]))
    measured = measure(changed, name, chosen)
    found: dict[tuple[str, int | None, str | None], list[tuple[float | None, float]]] = {}
    for number, plan in enumerate(plans):
        for system, cell in cells(changed, measured, number):
            found.setdefault((system, plan.groups, plan.feature), []).append((cell.share, plan.frequency))
    return [_specificity_row(key, name, values) for key, values in found.items()]


def tagnoise(
    data: Segments,
    metric: MetricLike,
    *,
    tagger: TaggerLike = "rules",
    features: Sequence[str] | None = None,
    noise: Noise = "drop",
    side: Literal["hypothesis", "reference"] = "hypothesis",
    rates: Sequence[float] = RATES,
    settings: Settings | None = None,
    resources: Resources = LOCAL,
) -> list[NoiseRow]:
    """Return each feature's share with more and more of its tags wrong on one side, or random on both."""
    if any(not 0 <= rate <= 1 for rate in rates):
        raise SpecError(f"tagnoise: rates are {', '.join(map(str, rates))}, expected 0 to 1")
    study, chosen, name = start(data, metric, (tagger, features), settings, resources)
    marking = study.marking
    tokens = _token_rows(study, chosen)
    plans = [(k, rate) for k in range(len(marking.features)) for rate in rates]
    often = [_frequency(study, tokens, k) for k in range(len(marking.features))]

    names = marking.features

    def spans(text: Marked, hypothesis: bool) -> list[tuple[Span, ...]]:  # noqa: FBT001 - which side
        here = "hypothesis" if hypothesis else "reference"
        if noise != "random" and here != side:
            return [text.spans[k] for k, _ in plans]
        row = tokens[text.number]
        return [
            _noisy(text.spans[k], row, _Noise(noise, rate, often[k]), _rng(study, here, text.text, names[k]))
            for k, rate in plans
        ]

    titles = tuple(f"{names[k]} {rate:g}" for k, rate in plans)
    measured = measure(study._replace(marking=derived(marking, titles, spans)), name, chosen)
    return [
        NoiseRow(system, name, names[k], noise, side, rate, cell.n, cell.share)
        for number, (k, rate) in enumerate(plans)
        for system, cell in cells(study, measured, number)
    ]


class _Plan(NamedTuple):
    """One random feature: the words that carry it, and how frequent they are."""

    groups: int | None
    feature: str | None
    words: frozenset[str]
    frequency: float


def _token_rows(study: Study, metric: Metric) -> dict[int, TokenRow]:
    cut = cutter(metric, study.marking, study.settings.tokens)
    return {text.number: token_row(cut(text.text), text.text) for text in study.marking.texts}


def _vocabulary(tokens: Mapping[int, TokenRow]) -> dict[str, int]:
    """Return how often each word occurs, in an order that depends on the words alone."""
    counts = Counter(word for row in tokens.values() for word in row.texts)
    return dict(sorted(counts.items()))


def _plans(study: Study, tokens: Mapping[int, TokenRow], groups: Sequence[int], draws: int) -> list[_Plan]:
    counts = _vocabulary(tokens)
    words, total = list(counts), sum(counts.values())
    plans = []
    for p in groups:
        for draw in range(draws):
            order = generator(study.settings.seed, "specificity", str(p), str(draw)).permutation(len(words))
            chosen = frozenset(words[k] for k in np.array_split(order, p)[0].tolist())
            plans.append(_Plan(p, None, chosen, sum(counts[word] for word in chosen) / total))
    for feature, name in enumerate(study.marking.features):
        often = _frequency(study, tokens, feature)
        for draw in range(draws):
            order = generator(study.settings.seed, "specificity", name, str(draw)).permutation(len(words))
            shares = np.cumsum([counts[words[k]] for k in order.tolist()]) / total
            count = int(np.searchsorted(shares, often)) + 1
            chosen = frozenset(words[k] for k in order[:count].tolist())
            plans.append(_Plan(None, name, chosen, float(shares[min(count, len(shares)) - 1])))
    return plans


def _spans_of(row: TokenRow, plans: Sequence[_Plan]) -> list[tuple[Span, ...]]:
    """Return the spans of each random feature in one text."""
    places = [(word, start, end) for word, start, end in zip(*row[:3], strict=True) if start < end]
    return [merged((start, end) for word, start, end in places if word in plan.words) for plan in plans]


def _specificity_row(
    key: tuple[str, int | None, str | None], metric: str, values: Sequence[tuple[float | None, float]]
) -> SpecificityRow:
    system, groups, feature = key
    shares = np.array([share for share, _ in values if share is not None])
    often = float(np.mean([frequency for _, frequency in values]))
    if not len(shares):
        return SpecificityRow(system, metric, groups, feature, 0, often, None, None, None)
    sd = float(shares.std(ddof=1)) if len(shares) > 1 else None
    return SpecificityRow(
        system, metric, groups, feature, len(shares), often, float(shares.mean()), sd, float(shares.min())
    )


def _frequency(study: Study, tokens: Mapping[int, TokenRow], feature: int) -> float:
    """Return the part of the words of all references that carry a feature."""
    carried = total = 0
    for entry in study.marking.entries:
        for text in entry.references:
            row = tokens[text.number]
            carried += len(carriers_of(row.starts, row.ends, text.spans[feature]))
            total += len(row.texts)
    return carried / max(total, 1)


def _rng(study: Study, *content: str) -> Generator:
    return generator(study.settings.seed, "tagnoise", *content)


class _Noise(NamedTuple):
    """How tags go wrong: which way, how many of them, and how frequent the feature is."""

    kind: Noise
    rate: float
    often: float


def _noisy(spans: Sequence[Span], row: TokenRow, noise: _Noise, rng: Generator) -> tuple[Span, ...]:
    """Return spans with a part of them dropped, moved to random words, or all of them random."""
    chances = rng.random(len(spans)).tolist()
    kept = [span for span, chance in zip(spans, chances, strict=True) if chance >= noise.rate]
    places = [(start, end) for start, end in zip(row.starts, row.ends, strict=True) if start < end]
    if noise.kind == "drop" or not places:
        return tuple(kept)
    if noise.kind == "move":
        gone = len(spans) - len(kept)
        return merged([*kept, *(places[k] for k in rng.integers(0, len(places), gone).tolist())])
    drawn = rng.random(len(places)) < noise.often * noise.rate
    return merged([*kept, *(places[k] for k in np.flatnonzero(drawn).tolist())])
