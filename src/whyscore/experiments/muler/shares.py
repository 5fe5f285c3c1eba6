"""Experiments that ask whether a share means what it says: after Karidi, Choshen, Patel and Abend (MuLER).

`hybrid` (Tables 4 and 11 to 13): make a system whose losses on a feature are known. Its occurrences are split by their
first letter: of those from a to eta every one agrees, of the rest none does. eta is the smallest letter whose words in
the references are at least floor(alpha N) of the N there are. The score must rise with alpha, between the worst and the
best case.

`frequency` (Tables 3 and 15): does a rarer feature get another share? Only the words from a to eta are masked, I is
found anew. What the tables print is `guarded`, the mean of the segments' own shares, with the masks and pseudo-zeros of
the published code (mode "compat").

All variants of all features and systems are one score call.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from string import ascii_lowercase
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np

from whyscore.analysis.common import MetricLike, Segments
from whyscore.analysis.decompose import (
    FeatureSettings,
    Marked,
    Marking,
    Mask,
    Reading,
    Study,
    TextMasking,
    cells_by_system,
    masking_for,
    measure,
    members_of,
    pooled,
    prepare_study,
    questions,
    share_of,
)
from whyscore.data.codec import Kind
from whyscore.data.records import header_of
from whyscore.errors import SpecError
from whyscore.marking import Span
from whyscore.metrics.needs import traits_of
from whyscore.protocols import MatrixMetric
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.settings import again, option, takes
from whyscore.types import Dataset, FloatVector, Segment
from whyscore.types.result import Cell as TableCell
from whyscore.types.result import Record, Result, Table

Row = TypeVar("Row")


@dataclass(frozen=True, kw_only=True)
class HybridSettings(FeatureSettings):
    """How systems are made in which a known part of each feature is right."""

    alpha: tuple[float, ...] = option(
        (0.5, 0.4, 0.3),
        "parts of the feature's words, by first letter, from 0 to 1",
        least=0,
        most=1,
        metavar="A",
        basic=True,
    )


@dataclass(frozen=True, kw_only=True)
class FrequencySettings(FeatureSettings):
    """How features are cut down to a part of their words."""

    alpha: tuple[float, ...] = again(HybridSettings, "alpha", (0.25, 0.5, 0.75, 1.0))


class Rows(Result, list[Row]):
    """The rows of an experiment: frozen dataclasses."""

    kind: ClassVar[Kind] = "decomposition"
    __repr__ = Result.__repr__

    def __init__(self, dataset: Dataset, rows: Iterable[Row]) -> None:
        super().__init__(rows)
        self.dataset = dataset

    def header(self) -> Record:
        return header_of(self.kind, self.dataset).object()

    def records(self) -> Iterator[Record]:
        return (asdict(row) for row in self)  # type: ignore[call-overload]


@dataclass(frozen=True, slots=True)
class PartRow:
    """A part of a feature's words: those from a to some letter."""

    system: str
    metric: str
    feature: str
    alpha: float
    letter: str
    n: int


@dataclass(frozen=True, slots=True)
class HybridRow(PartRow):
    """A system with a known part of a feature right: its score beside the worst and the best case."""

    sigma: float | None
    hybrid: float | None
    oracle: float | None
    anti: float | None
    way: float | None
    """How far the hybrid is on the way from the worst to the best case."""
    share: float | None = None
    """MuLER: how far the system itself is on the way from the best to the worst case."""


class Hybrids(Rows[HybridRow]):
    """Hybrids, as a table with one row per system and feature: MuLER, best case (O), worst case (AO), each hybrid."""

    def display_tables(self) -> Sequence[Table]:
        several = len({row.metric for row in self}) > 1
        parts = list(dict.fromkeys(row.alpha for row in self))
        by_names: dict[tuple[str, ...], dict[float, HybridRow]] = {}
        for row in self:
            names = (row.system, *((row.metric,) if several else ()), row.feature)
            by_names.setdefault(names, {})[row.alpha] = row
        rows = [(*names, *_hybrid_cells(by_part, parts)) for names, by_part in by_names.items()]
        columns = ("system", *(("metric",) if several else ()), "feature", "n", "sigma", "MuLER", "O", "AO")
        note = "50-50: the score if half of the feature's words, by first letter, agree everywhere and half nowhere"
        return [Table((*columns, *map(_split, parts)), tuple(rows), notes=(note,))]


def _hybrid_cells(by_part: Mapping[float, HybridRow], parts: Sequence[float]) -> tuple[TableCell, ...]:
    first = next(iter(by_part.values()))
    return first.n, first.sigma, first.share, first.oracle, first.anti, *(by_part[part].hybrid for part in parts)


def _split(alpha: float) -> str:
    """Return the parts that agree and that do not, in hundredths.

    >>> _split(0.3)
    '30-70'
    """
    return f"{100 * alpha:g}-{100 * (1 - alpha):g}"


@dataclass(frozen=True, slots=True)
class FrequencyRow(PartRow):
    """A feature cut down to a part of its words."""

    share: float | None
    guarded: float | None
    gain: float | None


@takes(HybridSettings)
def hybrid(data: Segments, metric: MetricLike, *, settings: HybridSettings, resources: Resources = LOCAL) -> Hybrids:
    """Return the scores of hybrids in which a share `alpha` of each feature is right and the rest wrong."""
    study, subject, name = prepare_study(data, metric, settings, resources)
    if isinstance(subject, MatrixMetric):
        raise SpecError(f"{name} is decomposed by its matrix: hybrids are made of texts; use another metric")
    traits, alpha = traits_of(subject), settings.alpha
    texts = masking_for(subject, study.marking, settings, traits.masking)
    members = members_of(study.marking, settings.need)
    letters = [[letter_of(study.marking, k, part) for part in alpha] for k in range(len(members))]
    base = questions(study.dataset.segments, study.marking, texts, members)
    mixed = [
        [_mix(study, texts, place, feature, letter) for place in places]
        for feature, places in enumerate(members)
        for letter in letters[feature]
    ]
    rows = pooled(resources.prepare(texts.metric), [*base, *mixed])
    reading = Reading(texts.metric, traits.scale)
    values = [reading.values(part) if len(part) else np.empty(0) for part in rows]
    result: list[HybridRow] = []
    for feature in range(len(members)):
        cases = values[0][members[feature]], values[1 + 2 * feature], values[2 + 2 * feature]
        for k, (part, letter) in enumerate(zip(alpha, letters[feature], strict=True)):
            hybrids = values[len(base) + feature * len(letters[feature]) + k]
            group = _Group(members[feature], (*cases, hybrids))
            result += _hybrid_rows(study, (name, study.marking.features[feature]), (part, letter), group)
    return Hybrids(study.dataset, result)


@takes(FrequencySettings)
def frequency(
    data: Segments, metric: MetricLike, *, settings: FrequencySettings, resources: Resources = LOCAL
) -> Rows[FrequencyRow]:
    """Return each feature's share when only a part of its words, from a to some letter, is looked at."""
    study, subject, name = prepare_study(data, metric, settings, resources, compat=True)
    marking = study.marking
    plans = [(k, part, letter_of(marking, k, part)) for k in range(len(marking.features)) for part in settings.alpha]

    def spans(text: Marked, _: bool) -> list[tuple[Span, ...]]:  # noqa: FBT001 - either side
        return [tuple(span for span in text.spans[k] if _early(text, span, letter)) for k, _, letter in plans]

    names = tuple(f"{marking.features[k]} {part:g}" for k, part, _ in plans)
    measured = measure(study._replace(marking=marking.with_features(names, spans)), name, subject)
    rows = [
        FrequencyRow(system, name, marking.features[k], part, letter, cell.n, cell.share, cell.guarded, cell.gain)
        for number, (k, part, letter) in enumerate(plans)
        for system, cell in cells_by_system(study, measured, number)
    ]
    return Rows(study.dataset, rows)


def letter_of(marking: Marking, feature: int, alpha: float) -> str:
    """Return the smallest letter whose words, from a on, are at least floor(alpha N) of those in the references."""
    initials = [
        text.text[start].lower()
        for entry in marking.entries
        for text in entry.references
        for start, _ in text.spans[feature]
    ]
    least = int(np.floor(alpha * len(initials)))
    for letter in ascii_lowercase:
        if sum("a" <= initial <= letter for initial in initials) >= least:
            return letter
    return "any"


def _early(text: Marked, span: Span, letter: str) -> bool:
    return letter == "any" or "a" <= text.text[span[0]].lower() <= letter


def _mix(study: Study[FeatureSettings], texts: TextMasking, place: int, feature: int, letter: str) -> Segment:
    """Return a segment whose early words agree and whose late ones do not, not even with early ones."""
    entry, segment = study.marking.entries[place], study.dataset.segments[place]

    def mask(text: Marked, late: Mask) -> str:
        masks: list[Mask] = ["agreeing" if _early(text, span, letter) else late for span in text.spans[feature]]
        return texts.mask_spans(text, text.spans[feature], masks, feature)

    references = tuple(mask(text, "apart") for text in entry.references)
    return Segment(mask(entry.hypothesis, "differing"), segment.source, references)


class _Group(NamedTuple):
    """The segments of one feature with their scores as they are, in the best and worst case, and as a hybrid."""

    members: Sequence[int]
    values: Sequence[FloatVector]


def _hybrid_rows(
    study: Study[FeatureSettings], names: tuple[str, str], split: tuple[float, str], group: _Group
) -> list[HybridRow]:
    rows = []
    for system in study.dataset.systems:
        members = [k for k, place in enumerate(group.members) if study.dataset.entries[place].system == system]
        if not members:
            rows.append(HybridRow(system, *names, *split, 0, None, None, None, None, None))
            continue
        sigma, oracle, anti, hybrids = (math.fsum(part[members].tolist()) / len(members) for part in group.values)
        way = (hybrids - anti) / (oracle - anti) if oracle > anti else None
        share = share_of(sigma, oracle, anti)
        rows.append(HybridRow(system, *names, *split, len(members), sigma, hybrids, oracle, anti, way, share))
    return rows
