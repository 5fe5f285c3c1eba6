"""Word scores, error spans and their dialects, one into the other.

1. Explanations become spans by thresholds that are given, learnt on labelled words, or found in the scores themselves
   (`auto`: the split of all error scores into two groups that differ most, then again within the upper one, for minor
   and major; where some words lower the score and others raise it, a word that raises it is never an error). They also
   become submissions of the word-level shared tasks.
2. Spans of any dialect become any other; what a dialect cannot say is counted by kind.
3. Spans without a category can take it from a tagger: the feature that most of their characters have.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Literal, cast, get_args

import numpy as np

from whyscore.data.dataset import dataset_lines
from whyscore.data.formats.dialects import (
    Offsets,
    Tally,
    json_span_lines,
    marot_lines,
    mtme_lines,
    tags_lines,
    wmtqe_lines,
)
from whyscore.data.formats.eval4nlp import Gold, Judged, Track, join_id, write_submission
from whyscore.data.formats.mqm import mqm_rows
from whyscore.data.formats.wmt26 import wmt26_lines
from whyscore.data.formats.xliff import read_xliff, with_spans
from whyscore.data.records import StoredExplanations, span_lines
from whyscore.data.writing import tab_separated, write_lines
from whyscore.errors import DataError, SpecError, UserError
from whyscore.protocols import Tagger
from whyscore.registry import build
from whyscore.settings import again, option, takes
from whyscore.stats.spans import Join, Thresholds, learn_threshold, otsu, to_levels, to_spans
from whyscore.stats.words import best_threshold
from whyscore.text.splitters import WhiteSpace
from whyscore.types import Dataset, Entry, ErrorSpan, ExplanationRecord, FloatVector, Segment, Side, Words
from whyscore.types.result import Record, Result

Target = Literal[
    "whyscore", "spans", "eval4nlp", "mqm", "marot", "mtme", "pearmut", "wmt26", "wmtqe", "xcomet", "xliff", "tags"
]
TARGETS: tuple[Target, ...] = get_args(Target)
_SIDES: dict[Judged, Side] = {"target": Side.HYPOTHESIS, "source": Side.SOURCE}
_WORDS = WhiteSpace("space")


def _threshold(text: str) -> float | str:
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise UserError(f"threshold is {text!r}, expected auto or numbers") from None


@dataclass(frozen=True, kw_only=True)
class SpanSettings:
    """How word scores become spans."""

    TITLE: ClassVar[str] = "from word scores to spans"

    threshold: tuple[float | str, ...] | None = option(
        None,
        "auto, or the error scores from which a word is minor, major and critical",
        parse=_threshold,
        metavar="X",
        basic=True,
    )
    top: float | None = option(None, "flag this share of the words instead of using a threshold", metavar="SHARE")
    precision: float | None = option(
        None, "with --tune-on: choose the threshold that reaches this precision", metavar="P"
    )
    rate: float | None = option(
        None, "with --tune-on: choose the threshold that flags this share of the words", metavar="R"
    )
    join: Join = option("worst", "severity of a span of several words")
    gap: int = option(0, "bridge up to N unflagged words", metavar="N")
    pick: str | None = option(None, "which explanations to take if the file has several kinds", metavar="NAME")


@dataclass(frozen=True, kw_only=True)
class SubmissionSettings:
    """What a submission says about itself."""

    TITLE: ClassVar[str] = "eval4nlp submissions"

    pick: str | None = again(SpanSettings, "pick")
    team: str | None = option(None, "the name of the team: writes metadata.txt", metavar="NAME")
    track: Track = option("constrained", "constrained: no word labels were used")
    description: str | None = option(None, "one line for metadata.txt", metavar="TEXT")


@dataclass(frozen=True, kw_only=True)
class ConvertSettings:
    """How spans are written in another dialect."""

    output: str | Path | None = option(
        None, "file or folder to write (default: stdout)", flags=("-o", "--output"), metavar="PATH", basic=True
    )
    origin: str = option("converted", "origin of the spans, stored in whyscore's records", line=False)
    offsets: Offsets = option("codepoints", "unit of the offsets if the format does not define it")
    into: str | Path | None = option(None, "XLIFF file to add the marks to", metavar="FILE")
    words: tuple[str, str] = option(("0", "1"), "names of the tags, OK first", line=False)


@dataclass(frozen=True, eq=False)
class Converted(Result):
    """What came out: lines of a file, or the files that were written; and what could not be said."""

    lines: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    lost: Mapping[str, int] = field(default_factory=dict)
    kind: ClassVar[str] = "conversion"
    __repr__ = Result.__repr__

    def records(self) -> Iterator[Record]:
        yield from ({"file": str(file)} for file in self.files)
        yield from ({"lost": what, "count": count} for what, count in self.lost.items())


def spans_by(
    stored: StoredExplanations, thresholds: Thresholds, group: str | None = None, texts: Dataset | None = None
) -> Dataset:
    """Return stored explanations as error spans; texts that are not given are put together from the words."""
    name, sides = pick_group(stored, group)
    by_key = {} if texts is None else {(entry.system, entry.id): entry for entry in texts.entries}
    rows: dict[tuple[str, str], dict[Judged, ExplanationRecord]] = {}
    for side, explanations in sides.items():
        for explanation in explanations.values():
            rows.setdefault((explanation.system, explanation.id), {})[side] = explanation
    entries = []
    for key, row in rows.items():
        if texts is not None and key not in by_key:
            raise DataError(
                f"line {next(iter(row.values())).line}: no text for system {key[0]!r}, id {key[1]!r}",
                file=stored.file,
            )
        segment = by_key[key].segment if key in by_key else _segment(row)
        spans = tuple(
            span
            for side, explanation in row.items()
            for span in to_spans(_words(explanation, segment, side), -explanation.importance, thresholds, _SIDES[side])
        )
        score = next(iter(row.values())).score
        extra: dict[str, object] = {} if np.isnan(score) else {"score": score, "scored_by": name}
        entries.append(Entry(key[1], key[0], segment, spans=spans, extra=extra))
    return Dataset(f"{Path(stored.file).name} {name}", tuple(entries))


@takes(SpanSettings)
def thresholds_of(stored: StoredExplanations, gold: Gold | None = None, *, settings: SpanSettings) -> Thresholds:
    """Return thresholds that are given (minor, major, critical), learnt on gold, or found in the scores."""
    joined = {"join": settings.join, "gap": settings.gap}
    if settings.top is not None:
        return Thresholds(top=settings.top, **joined)  # type: ignore[arg-type]
    if gold is not None:
        return Thresholds(_learn(stored, gold, settings), **joined)  # type: ignore[arg-type]
    thresholds = settings.threshold
    if thresholds is None:
        raise SpecError("spans need thresholds: give numbers, auto, a share of words, or gold to learn on")
    if thresholds == ("auto",):
        groups = pick_group(stored, settings.pick)[1].values()
        scores = np.concatenate([-explanation.importance for group in groups for explanation in group.values()])
        return Thresholds(*split_scores(scores, stored.file), **joined)  # type: ignore[arg-type]
    names = ("minor", "major", "critical")
    if not 1 <= len(thresholds) <= len(names):
        raise SpecError(f"{len(thresholds)} thresholds, expected one to three: minor, major, critical")
    numbers = [_threshold(value) if isinstance(value, str) else value for value in thresholds]
    return Thresholds(**dict(zip(names, numbers, strict=False)), **joined)  # type: ignore[arg-type]


def split_scores(scores: FloatVector, file: str | None = None) -> tuple[float, float | None]:
    """Return the thresholds for minor and major that split the error scores of words best."""
    minor = otsu(scores)
    if scores.max(initial=0.0) > 0 > scores.min(initial=0.0):
        minor = max(minor, 0.0)
    if np.isnan(minor):
        raise DataError("all words have the same score: no threshold splits them", file=file)
    upper = otsu(scores[scores > minor])
    return minor, None if np.isnan(upper) else upper


def pick_group(
    stored: StoredExplanations, group: str | None
) -> tuple[str, Mapping[Judged, Mapping[str, ExplanationRecord]]]:
    """Return the explanations of one metric and explainer."""
    if group is None and len(stored.groups) == 1:
        return next(iter(stored.groups.items()))
    if group is None or group not in stored.groups:
        available = ", ".join(map(repr, stored.groups)) or "nothing"
        raise UserError(f"{stored.file} holds {available}: choose one with --pick")
    return group, stored.groups[group]


@takes(SubmissionSettings)
def to_submission(stored: StoredExplanations, folder: str | Path, *, settings: SubmissionSettings) -> Converted:
    """Return the files of a submission made of stored explanations, in the order of the file."""
    name, sides = pick_group(stored, settings.pick)
    rows = {
        side: [-explanation.importance for explanation in explanations.values()] for side, explanations in sides.items()
    }
    first = next(iter(sides.values()))
    scores = [explanation.score for explanation in first.values()]
    sentence = None if any(np.isnan(scores)) else scores
    files = write_submission(
        folder,
        rows,
        sentence,
        team=settings.team,
        track=settings.track,
        description=settings.description or name,
    )
    return Converted(files=tuple(files))


@takes(ConvertSettings)
def convert(dataset: Dataset, to: str, *, settings: ConvertSettings) -> Converted:
    """Return a data set with error spans in another dialect; eval4nlp and xliff are written to `output`.

    Args:
        dataset: Entries with spans.
        to: The dialect, one of `TARGETS`.
        settings: Where and how it is written.
    """
    lost: Tally = Counter()
    if to == "eval4nlp":
        return _levels(dataset, settings.output)
    if to == "xliff":
        return _into_xliff(dataset, settings.into, settings.output)
    writers: dict[str, Iterator[str]] = {
        "whyscore": dataset_lines(dataset),
        "spans": span_lines(dataset, settings.origin),
        "xcomet": json_span_lines(dataset, "xcomet", lost),
        "pearmut": json_span_lines(dataset, "pearmut", lost, settings.offsets),
        "mtme": mtme_lines(dataset, lost),
        "mqm": map(tab_separated, mqm_rows(dataset, lost)),
        "marot": marot_lines(dataset, lost),
        "wmt26": wmt26_lines(dataset, lost, texts=True),
        "wmtqe": wmtqe_lines(dataset, lost),
        "tags": tags_lines(dataset, lost, names=settings.words),
    }
    if to not in writers:
        raise SpecError(f"no dialect named {to!r} can be written: use {', '.join(TARGETS)}")
    lines = tuple(writers[to])
    return Converted(lines, lost={kind: count for kind, count in lost.items() if count})


def categorise(dataset: Dataset, tagger: str | Tagger) -> Dataset:
    """Return the data set with a category for every span that has none: the feature of most of its characters."""
    labeller = cast("Tagger", build(tagger, "tagger") if isinstance(tagger, str) else tagger)
    texts = [entry.segment.hypothesis for entry in dataset.entries]
    entries = []
    for entry, tagged in zip(dataset.entries, labeller.tag(texts), strict=True):
        spans = []
        for span in entry.spans or ():
            weights: Counter[str] = Counter()
            for feature_span in tagged if span.side is Side.HYPOTHESIS and span.category is None else ():
                common = min(feature_span.end, span.end) - max(feature_span.start, span.start)
                for feature in feature_span.features if common > 0 else ():
                    weights[feature] += common
            # Of equal ones the first by name, so that the order of taggers cannot matter.
            best = min(weights, key=lambda feature: (-weights[feature], feature), default=None)
            spans.append(replace(span, category=span.category or best))
        entries.append(replace(entry, spans=None if entry.spans is None else tuple(spans)))
    return replace(dataset, entries=tuple(entries))


def _learn(stored: StoredExplanations, gold: Gold, settings: SpanSettings) -> float:
    rows, names = pick_group(stored, settings.pick)[1].get("target", {}), gold.names()
    if gold.several:  # of which those of one system are explained
        rows = {join_id(row.system, name): row for name, row in rows.items()}
    if not rows or not set(rows) <= set(names) or not (gold.several or len(rows) == len(names)):
        first, other = (next(iter(ids), "none") for ids in (rows, names))
        raise DataError(
            f"the explanations ({first!r} ...) and {gold.name} ({other!r} ...) cover different segments: give gold "
            "data for these segments with --tune-on",
            file=stored.file,
        )
    scores = np.concatenate([-rows[name].importance for name in names if name in rows])
    tags = gold.target.tags.select(np.array([name in rows for name in names])).values
    if len(scores) != len(tags):
        raise DataError(f"{len(scores)} words are explained, {gold.name} has {len(tags)}", file=stored.file)
    if settings.precision is None and settings.rate is None:
        threshold = best_threshold(tags, scores)
    else:
        threshold = learn_threshold(scores, tags, precision=settings.precision, rate=settings.rate)
    if np.isnan(threshold):
        raise DataError("no threshold reaches the requested precision or share on the labelled words", file=stored.file)
    return threshold


def _segment(sides: Mapping[Judged, ExplanationRecord]) -> Segment:
    target = sides.get("target")
    source = sides.get("source")
    return Segment("" if target is None else _text(target), None if source is None else _text(source))


def _text(explanation: ExplanationRecord) -> str:
    """Return the words at their places, with blanks between."""
    parts, at = [], 0
    for word, (start, end) in zip(explanation.words, explanation.spans.tolist(), strict=True):
        parts += [" " * (start - at), word]
        at = end
    return "".join(parts)


def _words(explanation: ExplanationRecord, segment: Segment, side: Judged) -> Words:
    text = segment.hypothesis if side == "target" else segment.source or ""
    return Words(text, tuple(map(tuple, explanation.spans.tolist())))


def _levels(dataset: Dataset, output: str | Path | None) -> Converted:
    """Return spans as a submission: the severity of each word is its error score."""
    if output is None:
        raise UserError("a submission is a folder: name it with -o")
    rows: dict[Judged, list[list[float]]] = {}
    for side, place in _SIDES.items():
        texts = [entry.segment.hypothesis if side == "target" else entry.segment.source for entry in dataset.entries]
        if any(text is None for text in texts):
            continue
        spans = [[span for span in entry.spans or () if span.side is place] for entry in dataset.entries]
        if side == "target" or any(spans):
            pairs = zip(texts, spans, strict=True)
            rows[side] = [
                to_levels(_WORDS.split(text or ""), text_spans).astype(float).tolist() for text, text_spans in pairs
            ]
    return Converted(files=tuple(write_submission(output, rows)))


def _into_xliff(dataset: Dataset, into: str | Path | None, output: str | Path | None) -> Converted:
    if into is None or output is None:
        raise UserError("spans are written into an XLIFF file: name it with --into, and the new file with -o")
    notes = {
        entry.id: f"{entry.extra['scored_by']} {entry.extra['score']:.4g}"
        for entry in dataset.entries
        if "scored_by" in entry.extra
    }
    data = with_spans(read_xliff(into), {entry.id: entry.spans or () for entry in dataset.entries}, notes)
    write_lines(output, [data.decode("utf-8")])
    return Converted(files=(Path(output),), lost=_unsaid(dataset))


def _unsaid(dataset: Dataset) -> dict[str, int]:
    spans: list[ErrorSpan] = [span for entry in dataset.entries for span in entry.spans or ()]
    lost = {
        "omission": sum(span.start == span.end for span in spans),
        "span of a reference": sum(span.side is Side.REFERENCE for span in spans),
    }
    return {kind: count for kind, count in lost.items() if count}
