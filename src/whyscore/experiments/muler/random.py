"""Experiments with features at random: what a share is when a feature means nothing.

`specificity`: the vocabulary of both sides is cut into p groups of equal size at random; one is drawn and masked as if
it were a feature; repeated. Such a feature depends on the word alone, so its share is never below zero. Besides, random
groups that are as frequent as a real feature, to compare its share with.

`tagnoise`: what a bad tagger does. A part of a feature's spans on one side is dropped, or moved to random words; with
`random`, both sides have independent random words at the feature's frequency.

The draws depend on the seed, the text and the draw's number alone.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.random import Generator

from whyscore.analysis.common import MetricLike, Segments
from whyscore.analysis.decompose.masking import cutter, token_row
from whyscore.analysis.decompose.scoring import Study, measure
from whyscore.analysis.decompose.settings import FeatureSettings
from whyscore.analysis.decompose.shares import carriers_of
from whyscore.analysis.decompose.tagging import Marked
from whyscore.experiments.muler.shares import Rows, cells, derived, start
from whyscore.marking import Span
from whyscore.protocols import Metric
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.settings import option, takes
from whyscore.text.placeholders import TokenRow, merged
from whyscore.text.randomness import generator

Noise = Literal["drop", "move", "random"]


@dataclass(frozen=True, kw_only=True)
class SpecificitySettings(FeatureSettings):
    """How random features are drawn."""

    groups: tuple[int, ...] = option(
        (2, 3, 4, 5, 6), "random groups that the vocabulary is cut into", least=1, metavar="P", basic=True
    )
    draws: int = option(
        12, "random features of each kind", flags=("--repeat",), least=1, metavar="N", basic=True
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TagnoiseSettings(FeatureSettings):
    """How tags are made wrong."""

    noise: Noise = option("drop", "tags are dropped, moved to random words, or random on both sides", basic=True)
    side: Literal["hypothesis", "reference"] = option("hypothesis", "whose tags are wrong", basic=True)
    rates: tuple[float, ...] = option(
        (0.0, 0.1, 0.25, 0.5, 1.0), "parts of the tags that are wrong", least=0, most=1, metavar="R", basic=True
    )


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


@takes(SpecificitySettings)
def specificity(
    data: Segments, metric: MetricLike, *, settings: SpecificitySettings, resources: Resources = LOCAL
) -> Rows[SpecificityRow]:
    """Return the shares of random words: p groups of the vocabulary, and groups as frequent as each feature."""
    study, chosen, name = start(data, metric, settings, resources)
    tokens = _token_rows(study, chosen)
    plans = _plans(study, tokens, settings.groups, settings.draws)
    spans = {number: _spans_of(row, plans) for number, row in tokens.items()}
    names = tuple(str(k) for k in range(len(plans)))
    changed = study._replace(marking=derived(study.marking, names, lambda text, _: spans[text.number]))
    measured = measure(changed, name, chosen)
    found: dict[tuple[str, int | None, str | None], list[tuple[float | None, float]]] = {}
    for number, plan in enumerate(plans):
        for system, cell in cells(changed, measured, number):
            found.setdefault((system, plan.groups, plan.feature), []).append((cell.share, plan.frequency))
    return Rows(study.dataset, [_specificity_row(key, name, values) for key, values in found.items()])


@takes(TagnoiseSettings)
def tagnoise(
    data: Segments, metric: MetricLike, *, settings: TagnoiseSettings, resources: Resources = LOCAL
) -> Rows[NoiseRow]:
    """Return each feature's share with more and more of its tags wrong on one side, or random on both."""
    study, chosen, name = start(data, metric, settings, resources)
    noise, side = settings.noise, settings.side
    marking, names = study.marking, study.marking.features
    tokens = _token_rows(study, chosen)
    plans = [(k, rate) for k in range(len(names)) for rate in settings.rates]
    often = [_frequency(study, tokens, k) for k in range(len(names))]

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
    found = [
        NoiseRow(system, name, names[k], noise, side, rate, cell.n, cell.share)
        for number, (k, rate) in enumerate(plans)
        for system, cell in cells(study, measured, number)
    ]
    return Rows(study.dataset, found)


class _Plan(NamedTuple):
    """One random feature: the words that carry it, and how frequent they are."""

    groups: int | None
    feature: str | None
    words: frozenset[str]
    frequency: float


def _token_rows(study: Study[FeatureSettings], metric: Metric) -> dict[int, TokenRow]:
    cut = cutter(metric, study.marking, study.settings.tokens)
    return {text.number: token_row(cut(text.text), text.text) for text in study.marking.texts}


def _vocabulary(tokens: Mapping[int, TokenRow]) -> dict[str, int]:
    """Return how often each word occurs, in an order that depends on the words alone."""
    counts = Counter(word for row in tokens.values() for word in row.texts)
    return dict(sorted(counts.items()))


def _plans(
    study: Study[FeatureSettings], tokens: Mapping[int, TokenRow], groups: Sequence[int], draws: int
) -> list[_Plan]:
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


def _frequency(study: Study[FeatureSettings], tokens: Mapping[int, TokenRow], feature: int) -> float:
    """Return the part of the words of all references that carry a feature."""
    carried = total = 0
    for entry in study.marking.entries:
        for text in entry.references:
            row = tokens[text.number]
            carried += len(carriers_of(row.starts, row.ends, text.spans[feature]))
            total += len(row.texts)
    return carried / max(total, 1)


def _rng(study: Study[FeatureSettings], *content: str) -> Generator:
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
