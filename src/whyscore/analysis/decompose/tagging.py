"""Every text of a data set with the spans of every feature.

1. Each distinct text of all systems and references is tagged once, in one call, and kept in the store under the
   tagger's signature. Taggers that read files are given the texts line by line instead.
2. The features that were asked for (or all that were found) select spans from the tags.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.analysis.decompose.settings import FeatureSettings, Initial, Need, TaggerLike
from whyscore.errors import DataError, SpecError
from whyscore.marking import Span
from whyscore.protocols import SupportsLabels, SupportsLanguage, Tagger
from whyscore.registry import build
from whyscore.scoring.stack import Resources
from whyscore.scoring.store import TagStore
from whyscore.taggers.aligned import AlignedTagger, Lines, Tags
from whyscore.taggers.features import Selection, check_known, default_features, parse_features
from whyscore.types import Dataset, Entry, Signature


@dataclass(frozen=True, eq=False)
class Marked:
    """A text with the spans of each feature; `number` tells it from all others of the run."""

    number: int
    text: str
    spans: Sequence[tuple[Span, ...]]


SpansOf = Callable[[Marked, bool], Sequence[tuple[Span, ...]]]
"""The spans of each feature of a text, which is a hypothesis or a reference."""


class MarkedEntry(NamedTuple):
    """The texts of one entry."""

    hypothesis: Marked
    references: tuple[Marked, ...]


class SpanCounts(NamedTuple):
    """How many spans a feature has in hypotheses, and at least and at most in one of their references (0 without any).

    Of a marking: entries x features.
    """

    hypothesis: NDArray[np.int64]
    fewest: NDArray[np.int64]
    most: NDArray[np.int64]

    def of(self, entries: Sequence[int], feature: int) -> "SpanCounts":
        """Return the counts of one feature in some entries."""
        return SpanCounts(*(counts[entries, feature] for counts in self))


@dataclass(frozen=True, eq=False)
class Marking:
    """A data set with its features marked, and what the tagging took."""

    entries: tuple[MarkedEntry, ...]
    features: tuple[str, ...]
    signature: Signature
    gives_tokens: bool = False
    asked: int = 0
    distinct: int = 0
    tagged: int = 0
    """How many texts the tagger itself was asked about; the others were in the store."""

    @cached_property
    def counts(self) -> SpanCounts:
        """How many spans each feature has in each entry."""
        shape = len(self.entries), len(self.features)
        hypothesis, fewest, most = (np.zeros(shape, dtype=np.int64) for _ in range(3))
        for place, entry in enumerate(self.entries):
            hypothesis[place] = [*map(len, entry.hypothesis.spans)]
            if entry.references:
                references = [[*map(len, text.spans)] for text in entry.references]
                fewest[place] = [*map(min, zip(*references, strict=True))]
                most[place] = [*map(max, zip(*references, strict=True))]
        return SpanCounts(hypothesis, fewest, most)

    @property
    def texts(self) -> list[Marked]:
        """Every marked text once, references before hypotheses."""
        by_number = {text.number: text for entry in self.entries for text in entry.references}
        by_number |= {entry.hypothesis.number: entry.hypothesis for entry in self.entries}
        return list(by_number.values())

    def with_features(self, names: tuple[str, ...], spans: SpansOf) -> "Marking":
        """Return a marking with other features, made from each text and whether it is a hypothesis."""
        marked: dict[tuple[int, bool], Marked] = {}

        def change(text: Marked, *, hypothesis: bool) -> Marked:
            key = (text.number, hypothesis)
            if key not in marked:
                marked[key] = Marked(text.number, text.text, spans(text, hypothesis))
            return marked[key]

        entries = tuple(
            MarkedEntry(
                change(entry.hypothesis, hypothesis=True),
                tuple(change(text, hypothesis=False) for text in entry.references),
            )
            for entry in self.entries
        )
        return replace(self, entries=entries, features=names)


class _Tagged(NamedTuple):
    """The tags of one entry."""

    hypothesis: Tags
    references: tuple[Tags, ...]


def as_tagger(requested: TaggerLike, languages: tuple[str, str] | None) -> Tagger | AlignedTagger:
    """Return the tagger that a spec or an object stands for; one that names no language takes that of the data."""
    tagger = build(requested, "tagger") if isinstance(requested, str) else requested
    if not isinstance(tagger, Tagger | AlignedTagger):
        raise SpecError(f"{tagger!r} is no tagger: it needs signature() and tag(texts)")
    if languages is not None and isinstance(tagger, SupportsLanguage) and tagger.language is None:
        return replace(tagger, language=languages[1])  # type: ignore[type-var]
    return tagger


def check_tagger(dataset: Dataset, requested: TaggerLike) -> None:
    """Raise what keeps a tagger from tagging the data: a missing package, model or file, files of another length."""
    tagger = as_tagger(requested, dataset.languages)
    tagger.signature()
    if isinstance(tagger, AlignedTagger):
        _from_files(dataset, tagger)


def mark(dataset: Dataset, settings: FeatureSettings, resources: Resources) -> Marking:
    """Return the data set with the spans of each feature as the settings say."""
    if not dataset.entries:
        raise DataError(f"{dataset.name} has no segment: nothing to decompose")
    compat = settings.mode == "compat"
    tagger = as_tagger(settings.tagger, dataset.languages)
    labels = tagger.labels() if isinstance(tagger, SupportsLabels) else None
    features = None if settings.features is None else parse_features(settings.features)
    if features is not None:
        check_known(features, labels)
    texts = [text for entry in dataset.entries for text in (entry.segment.hypothesis, *entry.segment.references)]
    if isinstance(tagger, AlignedTagger):
        tagged, fresh, signature = _from_files(dataset, tagger), len(texts), tagger.signature()
    else:
        signature = tagger.signature()
        tagged, fresh = _from_texts(dataset, tagger, signature, resources)
    if features is None:
        features = parse_features(default_features(_labels(tagged), labels))
    language = tagger.language if isinstance(tagger, SupportsLanguage) else None
    language = language or (dataset.languages[1] if dataset.languages else "en")
    selection = Selection(features, language, frozenset(labels or ()), first_key=compat)
    return Marking(
        _mark_text(dataset.entries, tagged, selection, settings.initial or ("lower" if compat else "any")),
        tuple(feature.name for feature in features),
        signature,
        isinstance(tagger, AlignedTagger) and tagger.gives_tokens,
        len(texts),
        len(set(texts)),
        fresh,
    )


def groups_of(dataset: Dataset, columns: Sequence[str]) -> dict[str | None, list[int]]:
    """Return the entries of each group: those with the same values in some columns. Without columns all are one."""
    if not columns:
        return {None: list(range(len(dataset.entries)))}
    groups: dict[str | None, list[int]] = {}
    for place, entry in enumerate(dataset.entries):
        missing = [name for name in columns if entry.extra.get(name) in (None, "")]
        if missing:
            there = ", ".join(dict.fromkeys(name for other in dataset.entries for name in other.extra)) or "none"
            problem = f"system {entry.system!r}, segment {entry.id!r} has no {missing[0]!r}: --group takes columns that"
            raise DataError(f"{problem} every segment fills; columns of {dataset.name} beside the texts: {there}")
        groups.setdefault(" ".join(str(entry.extra[name]) for name in columns), []).append(place)
    return groups


def members_of(marking: Marking, need: Need = "any") -> list[list[int]]:
    """Return for each feature the entries that have it in the hypothesis and in any (or all) of the references."""
    counts = marking.counts
    expected = counts.most if need == "any" else counts.fewest
    return [np.flatnonzero(column).tolist() for column in ((counts.hypothesis > 0) & (expected > 0)).T]


def _labels(tagged: Sequence[_Tagged]) -> set[str]:
    every = (tag for entry in tagged for tags in (entry.hypothesis, *entry.references) for tag in tags)
    return {label for tag in every for label in tag.features}


def _from_texts(
    dataset: Dataset, tagger: Tagger, signature: Signature, resources: Resources
) -> tuple[list[_Tagged], int]:
    """Return the tags of every entry, and how many texts had to be tagged now."""
    segments = dataset.segments
    texts = list(dict.fromkeys(text for segment in segments for text in (*segment.references, segment.hypothesis)))
    store = TagStore(resources.store) if resources.store is not None and signature.stable else None
    table = str(signature)
    tags_of = store.get(table, texts) if store is not None else {}
    missing = [text for text in texts if text not in tags_of]
    if missing:
        fresh = dict(zip(missing, tagger.tag(missing), strict=True))
        if store is not None:
            store.put(table, fresh)
        tags_of |= fresh
    tags = [
        _Tagged(tags_of[segment.hypothesis], tuple(tags_of[text] for text in segment.references))
        for segment in segments
    ]
    return tags, len(missing)


def _from_files(dataset: Dataset, tagger: AlignedTagger) -> list[_Tagged]:
    """Return the tags of every entry from files that go line by line with the texts."""
    by_system = {system: dataset.of(system).entries for system in dataset.systems}
    for system, entries in by_system.items():
        if tuple(entry.id for entry in entries) != dataset.ids:
            raise DataError(f"system {system!r} lacks segments that others have: tag files need every line of each")
    shown = by_system[dataset.systems[0]]
    counts = {len(entry.segment.references) for entry in dataset.entries}
    if len(counts) != 1:
        raise DataError("some segments have more references than others: tag files need every line of each")
    references = [[entry.segment.references[k] for entry in shown] for k in range(counts.pop())]
    hypotheses = {system: [entry.segment.hypothesis for entry in entries] for system, entries in by_system.items()}
    lines = tagger.tag_lines(Lines(references, hypotheses))
    line = {name: number for number, name in enumerate(dataset.ids)}
    return [
        _Tagged(
            lines.hypotheses[entry.system][line[entry.id]], tuple(tags[line[entry.id]] for tags in lines.references)
        )
        for entry in dataset.entries
    ]


def _mark_text(
    entries: Sequence[Entry], tagged: Sequence[_Tagged], selection: Selection, initial: Initial
) -> tuple[MarkedEntry, ...]:
    """Return the entries with spans; texts that share their tags are one."""
    marked: dict[tuple[str, int], Marked] = {}
    alive: list[Tags] = []  # keeps the tags alive whose identity is the key

    def mark_once(text: str, tags: Tags) -> Marked:
        key = (text, id(tags))
        if key not in marked:
            alive.append(tags)
            spans = selection.spans(text, tags)
            marked[key] = Marked(len(marked), text, _lower(text, spans) if initial == "lower" else spans)
        return marked[key]

    return tuple(
        MarkedEntry(
            mark_once(entry.segment.hypothesis, tags.hypothesis),
            tuple(mark_once(*pair) for pair in zip(entry.segment.references, tags.references, strict=True)),
        )
        for entry, tags in zip(entries, tagged, strict=True)
    )


def _lower(text: str, spans: Sequence[tuple[Span, ...]]) -> list[tuple[Span, ...]]:
    return [tuple(span for span in feature_spans if "a" <= text[span[0]] <= "z") for feature_spans in spans]
