"""Experiments that ask whether a share means what it says: after Karidi, Choshen, Patel and Abend (MuLER).

`hybrid`: make a system whose losses on a feature are known. Its occurrences are split by their first letter: of those
from a to eta every one agrees, of the rest none does. eta is the smallest letter whose words in the references are at
least floor(alpha N) of the N there are. The score must rise with alpha, between the worst and the best case.

`frequency`: does a rarer feature get another share? Only the words from a to eta are hidden, I is found anew.

All variants of all features and systems are one score call.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from string import ascii_lowercase
from typing import NamedTuple

import numpy as np

from whyscore.analysis.common import MetricLike, Segments, as_dataset, requested_name
from whyscore.analysis.decompose.decompose import check_metric, marked, measure, members_of
from whyscore.analysis.decompose.fit import Cell, cell_of
from whyscore.analysis.decompose.masking import Grain, Mask, grain_of
from whyscore.analysis.decompose.scoring import Reading, decomposed_metric, pooled, questions
from whyscore.analysis.decompose.settings import Measured, Settings, Study
from whyscore.analysis.decompose.tagging import Marked, MarkedEntry, Marking, TaggerLike
from whyscore.errors import SpecError
from whyscore.marking import Span
from whyscore.protocols import MatrixMetric, Metric
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.types import FloatVector, Segment

ALPHAS = (0.3, 0.5, 0.7)
QUARTERS = (0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class HybridRow:
    """A system with a known part of a feature right: its score beside the worst and the best case."""

    system: str
    metric: str
    feature: str
    alpha: float
    letter: str
    n: int
    sigma: float | None
    hybrid: float | None
    oracle: float | None
    anti: float | None
    way: float | None
    """How far the hybrid is on the way from the worst to the best case."""

    def record(self) -> dict[str, object]:
        """Return the row under the names it has in files."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class FrequencyRow:
    """A feature cut down to its words from a to some letter."""

    system: str
    metric: str
    feature: str
    alpha: float
    letter: str
    n: int
    share: float | None
    guarded: float | None
    gain: float | None

    def record(self) -> dict[str, object]:
        """Return the row under the names it has in files."""
        return asdict(self)


def hybrid(
    data: Segments,
    metric: MetricLike,
    *,
    tagger: TaggerLike = "rules",
    features: Sequence[str] | None = None,
    alpha: Sequence[float] = ALPHAS,
    settings: Settings | None = None,
    resources: Resources = LOCAL,
) -> list[HybridRow]:
    """Return the scores of hybrids in which a share `alpha` of each feature is right and the rest wrong."""
    study, chosen, name = start(data, metric, (tagger, features), settings, resources)
    if isinstance(chosen, MatrixMetric):
        raise SpecError(f"{name} is decomposed by its matrix: hybrids are made of texts; use another metric")
    grain = grain_of(chosen, study.marking, unit=study.settings.unit, tokens=study.settings.tokens)
    members = members_of(study.marking, study.settings.references)
    letters = [[letter_of(study.marking, k, part) for part in _checked(alpha)] for k in range(len(members))]
    base = questions(study.dataset.segments, study.marking, grain, members)
    mixed = [
        [_mixed(study, grain, place, feature, letter) for place in places]
        for feature, places in enumerate(members)
        for letter in letters[feature]
    ]
    rows = pooled(resources.prepare(grain.metric), [*base, *mixed])
    reading = Reading(grain.metric)
    values = [reading.values(part) if len(part) else np.empty(0) for part in rows]
    found = []
    for feature in range(len(members)):
        cases = values[0][members[feature]], values[1 + 2 * feature], values[2 + 2 * feature]
        for k, (part, letter) in enumerate(zip(alpha, letters[feature], strict=True)):
            hybrids = values[len(base) + feature * len(letters[feature]) + k]
            group = _Group(members[feature], (*cases, hybrids))
            found += _hybrid_rows(study, (name, study.marking.features[feature]), (part, letter), group)
    return found


def frequency(
    data: Segments,
    metric: MetricLike,
    *,
    tagger: TaggerLike = "rules",
    features: Sequence[str] | None = None,
    alpha: Sequence[float] = QUARTERS,
    settings: Settings | None = None,
    resources: Resources = LOCAL,
) -> list[FrequencyRow]:
    """Return each feature's share when only a part of its words, from a to some letter, is looked at."""
    study, chosen, name = start(data, metric, (tagger, features), settings, resources)
    marking = study.marking
    plans = [(k, part, letter_of(marking, k, part)) for k in range(len(marking.features)) for part in _checked(alpha)]

    def spans(text: Marked, _: bool) -> list[tuple[Span, ...]]:  # noqa: FBT001 - either side
        return [_up_to(text, k, letter) for k, _, letter in plans]

    names = tuple(f"{marking.features[k]} {part:g}" for k, part, _ in plans)
    measured = measure(study._replace(marking=derived(marking, names, spans)), name, chosen)
    return [
        FrequencyRow(system, name, marking.features[k], part, letter, cell.n, cell.share, cell.guarded, cell.gain)
        for number, (k, part, letter) in enumerate(plans)
        for system, cell in cells(study, measured, number)
    ]


def start(
    data: Segments,
    metric: MetricLike,
    found_by: tuple[TaggerLike, Sequence[str] | None],
    settings: Settings | None,
    resources: Resources,
) -> tuple[Study, Metric, str]:
    """Return what an experiment works on: the data marked by a tagger for some features, the metric and its name."""
    dataset, wanted = as_dataset(data), settings or Settings()
    if wanted.mode == "compat":
        raise SpecError("mode='compat' is for decompose: experiments hide tokens, use mode='paper'")
    chosen = decomposed_metric(metric, wanted.mode)
    check_metric(chosen, dataset, wanted)
    marking = marked(dataset, *found_by, wanted, resources)
    return Study(dataset, marking, wanted, resources), chosen, requested_name(metric)


def derived(
    marking: Marking, names: tuple[str, ...], spans: Callable[[Marked, bool], Sequence[tuple[Span, ...]]]
) -> Marking:
    """Return a marking with other features, made from each text's spans and whether it is a hypothesis."""
    known: dict[tuple[int, bool], Marked] = {}

    def one(text: Marked, *, hypothesis: bool) -> Marked:
        key = (text.number, hypothesis)
        if key not in known:
            known[key] = Marked(text.number, text.text, spans(text, hypothesis))
        return known[key]

    entries = tuple(
        MarkedEntry(
            one(entry.hypothesis, hypothesis=True), tuple(one(text, hypothesis=False) for text in entry.references)
        )
        for entry in marking.entries
    )
    return replace(marking, entries=entries, features=names)


def cells(study: Study, measured: Measured, feature: int) -> list[tuple[str, Cell]]:
    """Return the numbers of one feature for each system."""
    entries = study.dataset.entries
    members = measured.values.members[feature]
    return [
        (system, cell_of(measured.values, feature, [k for k, e in enumerate(members) if entries[e].system == system]))
        for system in study.dataset.systems
    ]


def letter_of(marking: Marking, feature: int, alpha: float) -> str:
    """Return the smallest letter whose words, from a on, are at least floor(alpha N) of those in the references."""
    initials = [
        text.text[start].lower()
        for entry in marking.entries
        for text in entry.references
        for start, _ in text.spans[feature]
    ]
    wanted = int(np.floor(alpha * len(initials)))
    for letter in ascii_lowercase:
        if sum("a" <= initial <= letter for initial in initials) >= wanted:
            return letter
    return "any"


def _checked(alpha: Sequence[float]) -> Sequence[float]:
    for part in alpha:
        if not 0 <= part <= 1:
            raise SpecError(f"alpha is {part}, expected 0 to 1: the part of a feature's words")
    return alpha


def _early(text: Marked, span: Span, letter: str) -> bool:
    return letter == "any" or "a" <= text.text[span[0]].lower() <= letter


def _up_to(text: Marked, feature: int, letter: str) -> tuple[Span, ...]:
    return tuple(span for span in text.spans[feature] if _early(text, span, letter))


def _mixed(study: Study, grain: Grain, place: int, feature: int, letter: str) -> Segment:
    """Return a segment whose early words agree and whose late ones do not, not even with early ones."""
    entry, segment = study.marking.entries[place], study.dataset.segments[place]

    def hidden(text: Marked, late: Mask) -> str:
        masks: list[Mask] = ["agreeing" if _early(text, span, letter) else late for span in text.spans[feature]]
        return grain.hidden(text, text.spans[feature], masks, feature)

    references = tuple(hidden(text, "apart") for text in entry.references)
    return Segment(hidden(entry.hypothesis, "differing"), segment.source, references)


class _Group(NamedTuple):
    """The segments of one feature with their scores as they are, in the best and worst case, and as a hybrid."""

    members: Sequence[int]
    values: Sequence[FloatVector]


def _hybrid_rows(study: Study, names: tuple[str, str], split: tuple[float, str], group: _Group) -> list[HybridRow]:
    found = []
    for system in study.dataset.systems:
        chosen = [k for k, place in enumerate(group.members) if study.dataset.entries[place].system == system]
        if not chosen:
            found.append(HybridRow(system, *names, *split, 0, None, None, None, None, None))
            continue
        sigma, oracle, anti, hybrids = (float(part[chosen].mean()) for part in group.values)
        way = (hybrids - anti) / (oracle - anti) if oracle > anti else None
        found.append(HybridRow(system, *names, *split, len(chosen), sigma, hybrids, oracle, anti, way))
    return found
