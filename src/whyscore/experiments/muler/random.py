"""Experiments with features at random: what a share is when a feature means nothing.

`specificity` (Tables 2 and 14):

1. The vocabulary of both sides is cut into p groups of equal size at random; one is drawn and masked as if it were a
   feature; repeated 1,000 times. Such a feature depends on the word alone, so its share is never below zero.
2. Besides, random groups as frequent as each real feature, whose own share and frequency stand beside them.
3. A metric that reads a text once for all draws (`SupportsHiddenWords`: BLEU) is asked once; for others the draws
   become segments, some tens of thousands in a score call.

`tagnoise`: what a bad tagger does. A part of a feature's spans on one side is dropped, or moved to random words; with
`random`, both sides have independent random words at the feature's frequency.

The draws depend on the seed, the text and the draw's number alone.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.random import Generator

from whyscore.analysis.common import MetricLike, Segments
from whyscore.analysis.decompose import (
    FLOOR,
    FeatureSettings,
    Marked,
    Reading,
    Study,
    carriers_of,
    cells_by_system,
    measure,
    prepare_study,
    tokenizer_of,
)
from whyscore.experiments.muler.shares import Rows
from whyscore.marking import Span
from whyscore.metrics.needs import traits_of
from whyscore.protocols import Metric, SupportsHiddenWords, TokenMetric
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.scoring.store import digest
from whyscore.settings import option, takes
from whyscore.text.placeholders import TokenRow, merge_spans
from whyscore.text.randomness import generator
from whyscore.types import FloatVector, HiddenWords

Noise = Literal["drop", "move", "random"]
_SEGMENTS = 50_000  # of one score call, for metrics that are asked draw by draw


@dataclass(frozen=True, kw_only=True)
class SpecificitySettings(FeatureSettings):
    """How random features are drawn."""

    groups: tuple[int, ...] = option(
        (2, 3, 4, 5, 6), "random groups that the vocabulary is cut into", least=1, metavar="P", basic=True
    )
    draws: int = option(
        1000, "random features of each kind", flags=("--repeat",), least=1, metavar="N", basic=True
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
    """The part of all words that a random feature hides on average; `reference` and `hypothesis`: of each side."""
    reference: float
    hypothesis: float
    mean: float | None
    variance: float | None
    sd: float | None
    smallest: float | None
    real: float | None = None
    """The share of the real feature, and the part of each side's words that carry it."""
    real_reference: float | None = None
    real_hypothesis: float | None = None


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
    study, subject, name = prepare_study(data, metric, settings, resources)
    tokens = _token_rows(study, subject)
    drawn = _draw(study, tokens, settings)
    real = measure(study, name, subject)
    shares = _shares(study, subject, name, tokens, drawn)
    result = []
    for system in study.dataset.systems:
        sides = _sides(study, system, tokens, drawn.words)
        for groups, feature in dict.fromkeys(drawn.plans):
            rows = [k for k, plan in enumerate(drawn.plans) if plan == (groups, feature)]
            row = _specificity_row((system, name, groups, feature), shares[system][rows], drawn.hidden[rows], sides)
            if feature is not None:
                number = study.marking.features.index(feature)
                row = replace(
                    row,
                    real=dict(cells_by_system(study, real, number))[system].share,
                    real_reference=_frequency(study, tokens, number, system),
                    real_hypothesis=_frequency(study, tokens, number, system, "hypothesis"),
                )
            result.append(row)
    return Rows(study.dataset, result)


@takes(TagnoiseSettings)
def tagnoise(
    data: Segments, metric: MetricLike, *, settings: TagnoiseSettings, resources: Resources = LOCAL
) -> Rows[NoiseRow]:
    """Return each feature's share with more and more of its tags wrong on one side, or random on both."""
    study, subject, name = prepare_study(data, metric, settings, resources)
    noise, side = settings.noise, settings.side
    marking, names = study.marking, study.marking.features
    tokens = _token_rows(study, subject)
    plans = [(k, rate) for k in range(len(names)) for rate in settings.rates]
    often = [_frequency(study, tokens, k) for k in range(len(names))]
    seeded = study.settings.seed, "tagnoise"

    def spans(text: Marked, hypothesis: bool) -> list[tuple[Span, ...]]:  # noqa: FBT001 - which side
        here = "hypothesis" if hypothesis else "reference"
        if noise != "random" and here != side:
            return [text.spans[k] for k, _ in plans]
        row = tokens[text.number]
        return [
            _add_noise(text.spans[k], row, _Noise(noise, rate, often[k]), generator(*seeded, here, text.text, names[k]))
            for k, rate in plans
        ]

    titles = tuple(f"{names[k]} {rate:g}" for k, rate in plans)
    measured = measure(study._replace(marking=marking.with_features(titles, spans)), name, subject)
    rows = [
        NoiseRow(system, name, names[k], noise, side, rate, cell.n, cell.share)
        for number, (k, rate) in enumerate(plans)
        for system, cell in cells_by_system(study, measured, number)
    ]
    return Rows(study.dataset, rows)


class _Drawn(NamedTuple):
    """Random features: what each is compared with (p groups, or a real feature), and the words that it hides."""

    plans: list[tuple[int | None, str | None]]
    words: dict[str, int]
    hidden: HiddenWords


def _token_rows(study: Study[FeatureSettings], metric: Metric) -> dict[int, TokenRow]:
    cut = tokenizer_of(metric, study.marking, study.settings.tokens)
    return {text.number: cut(text) for text in study.marking.texts}


def _draw(study: Study[FeatureSettings], tokens: Mapping[int, TokenRow], settings: SpecificitySettings) -> _Drawn:
    counted = sorted(Counter(word for row in tokens.values() for word in row.texts).items())
    counts = np.array([count for _, count in counted])
    kinds: list[tuple[int | None, str | None]] = [(p, None) for p in settings.groups]
    kinds += [(None, name) for name in study.marking.features]
    plans = [kind for kind in kinds for _ in range(settings.draws)]
    often = {name: _frequency(study, tokens, k) for k, name in enumerate(study.marking.features)}
    hidden = np.zeros((len(plans), len(counts)), dtype=np.bool_)
    for number, (p, name) in enumerate(plans):
        draw = number % settings.draws
        order = generator(settings.seed, "specificity", str(p or name), str(draw)).permutation(len(counts))
        if p is not None:
            hidden[number, np.array_split(order, p)[0]] = True
        else:
            shares = np.cumsum(counts[order]) / counts.sum()
            hidden[number, order[: int(np.searchsorted(shares, often[str(name)])) + 1]] = True
    return _Drawn(plans, {word: k for k, (word, _) in enumerate(counted)}, hidden)


def _shares(
    study: Study[FeatureSettings], metric: Metric, name: str, tokens: Mapping[int, TokenRow], drawn: _Drawn
) -> dict[str, FloatVector]:
    """Return each system's share of every random feature, NaN where it has none."""
    cut = isinstance(metric, TokenMetric) and all(len(row.numbers) == len(row.texts) for row in tokens.values())
    reader = metric.on_tokens() if isinstance(metric, TokenMetric) else metric
    if cut and isinstance(reader, SupportsHiddenWords) and study.settings.unit == "word":
        return _shares_at_once(study, reader, tokens, drawn)
    return _shares_by_segments(study, metric, name, tokens, drawn)


def _shares_at_once(
    study: Study[FeatureSettings], metric: SupportsHiddenWords, tokens: Mapping[int, TokenRow], drawn: _Drawn
) -> dict[str, FloatVector]:
    """Return the shares of a metric that reads each text once for all draws."""
    reading = Reading(metric, traits_of(metric).scale)
    enough = np.logical_or if study.settings.need == "any" else np.logical_and
    numbers = {
        number: np.array([drawn.words[word] for word in row.texts], dtype=np.int64) for number, row in tokens.items()
    }
    segments = study.dataset.segments
    entries = [place for place, entry in enumerate(study.marking.entries) if entry.references]
    entries.sort(key=lambda place: digest(segments[place]))  # sums in another order differ in the last digit
    marked = [study.marking.entries[place] for place in entries]
    texts = [
        (numbers[entry.hypothesis.number], [numbers[text.number] for text in entry.references]) for entry in marked
    ]
    nothing = np.zeros((1, len(drawn.words)), dtype=np.bool_)
    hidden = np.vstack([nothing, drawn.hidden])
    sums = {system: np.zeros((3, len(drawn.plans))) for system in study.dataset.systems}
    for place, text, (best, worst) in zip(entries, texts, metric.hidden_statistics(texts, hidden), strict=True):
        in_hypothesis, *in_references = (drawn.hidden[:, words].any(axis=1) for words in (text[0], *text[1]))
        inside = in_hypothesis & enough.reduce(in_references)
        sigma, *oracle = reading.values(best).tolist()
        anti = reading.values(worst)[1:]
        gains = np.array([np.array(oracle) - sigma, np.array(oracle) - anti, np.ones(len(anti))])
        sums[study.dataset.entries[place].system] += np.where(inside, gains, 0.0)
    return {system: _ratio(*three) for system, three in sums.items()}


def _ratio(gains: FloatVector, ranges: FloatVector, counts: FloatVector) -> FloatVector:
    wide = ranges > FLOOR * np.maximum(counts, 1)
    ratios: FloatVector = np.divide(gains, ranges, out=np.full(len(gains), np.nan), where=wide)
    return ratios


def _shares_by_segments(
    study: Study[FeatureSettings], metric: Metric, name: str, tokens: Mapping[int, TokenRow], drawn: _Drawn
) -> dict[str, FloatVector]:
    """Return the shares of any metric: every draw is a feature."""
    by_system: dict[str, list[float]] = {system: [] for system in study.dataset.systems}
    size = max(1, _SEGMENTS // max(1, len(study.dataset)))
    for first in range(0, len(drawn.plans), size):
        block = range(first, min(first + size, len(drawn.plans)))
        spans = {number: _spans_of(row, drawn, block) for number, row in tokens.items()}
        names = tuple(str(k) for k in block)
        changed = study._replace(marking=study.marking.with_features(names, lambda text, _: spans[text.number]))  # noqa: B023
        measured = measure(changed, name, metric)
        for number in range(len(block)):
            for system, cell in cells_by_system(changed, measured, number):
                by_system[system].append(np.nan if cell.share is None else cell.share)
    return {system: np.array(shares) for system, shares in by_system.items()}


def _spans_of(row: TokenRow, drawn: _Drawn, block: range) -> list[tuple[Span, ...]]:
    """Return the spans of each random feature in one text."""
    places = [(drawn.words[word], start, end) for word, start, end in zip(*row[:3], strict=True) if start < end]
    return [merge_spans((start, end) for word, start, end in places if drawn.hidden[k, word]) for k in block]


def _sides(
    study: Study[FeatureSettings], system: str, tokens: Mapping[int, TokenRow], words: Mapping[str, int]
) -> tuple[FloatVector, FloatVector]:
    """Return how often each word stands in the references of a system's segments, and in its hypotheses."""
    counts = np.zeros(len(words)), np.zeros(len(words))
    for text, side in _texts_of(study, system):
        np.add.at(counts[side == "hypothesis"], [words[word] for word in tokens[text.number].texts], 1)
    return counts


def _texts_of(study: Study[FeatureSettings], system: str | None = None) -> Iterator[tuple[Marked, str]]:
    """Yield every text of a system's segments with its side; of all systems where none is named."""
    for entry, marked in zip(study.dataset.entries, study.marking.entries, strict=True):
        if system in (None, entry.system):
            yield from ((text, "reference") for text in marked.references)
            yield marked.hypothesis, "hypothesis"


def _specificity_row(
    names: tuple[str, str, int | None, str | None],
    shares: FloatVector,
    hidden: HiddenWords,
    sides: tuple[FloatVector, FloatVector],
) -> SpecificityRow:
    defined = shares[np.isfinite(shares)]
    reference, hypothesis = (float((hidden @ side).mean() / max(side.sum(), 1)) for side in sides)
    both = sides[0] + sides[1]
    often = float((hidden @ both).mean() / max(both.sum(), 1)), reference, hypothesis
    if not len(defined):
        return SpecificityRow(*names, 0, *often, None, None, None, None)
    variance = float(defined.var(ddof=1)) if len(defined) > 1 else None
    sd = None if variance is None else variance**0.5
    return SpecificityRow(*names, len(defined), *often, float(defined.mean()), variance, sd, float(defined.min()))


def _frequency(
    study: Study[FeatureSettings],
    tokens: Mapping[int, TokenRow],
    feature: int,
    system: str | None = None,
    of: str = "reference",
) -> float:
    """Return the part of the words of one side that carry a feature."""
    carried = total = 0
    for text, side in _texts_of(study, system):
        if side == of:
            row = tokens[text.number]
            carried += len(carriers_of(row.starts, row.ends, text.spans[feature]))
            total += len(row.texts)
    return carried / max(total, 1)


class _Noise(NamedTuple):
    """How tags go wrong: which way, how many of them, and how frequent the feature is."""

    kind: Noise
    rate: float
    often: float


def _add_noise(spans: Sequence[Span], row: TokenRow, noise: _Noise, rng: Generator) -> tuple[Span, ...]:
    """Return spans with a part of them dropped, moved to random words, or all of them random."""
    chances = rng.random(len(spans)).tolist()
    intact = [span for span, chance in zip(spans, chances, strict=True) if chance >= noise.rate]
    places = [(start, end) for start, end in zip(row.starts, row.ends, strict=True) if start < end]
    if noise.kind == "drop" or not places:
        return tuple(intact)
    if noise.kind == "move":
        gone = len(spans) - len(intact)
        return merge_spans([*intact, *(places[k] for k in rng.integers(0, len(places), gone).tolist())])
    drawn = rng.random(len(places)) < noise.often * noise.rate
    return merge_spans([*intact, *(places[k] for k in np.flatnonzero(drawn).tolist())])
