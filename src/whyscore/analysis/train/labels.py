"""Labels to train on: human ones, and those from aligning a hypothesis with its reference.

Labels of words are stretches of a text with a number from 0 (right) to 1 (wrong), so that any encoder can cut the text
its own way; a word has the largest number among the stretches it touches, and 0 where there is none.

1. Human labels (`read_rated`). Several annotators give soft labels: the share of them who marked a word.
   | input | recognised by |
   |---|---|
   | MLQE-PE as JSON lines | `mt_tags`; also `src_tags`, `gap_tags`, `pe`, `da_z`, `da`, `hter`, `lp` |
   | MQM or ESA spans as JSON lines, one line per rater | `src`, `mt` and `spans`; grouped by texts |
   | folders of Eval4NLP and of the WMT QE tasks | `X.src`, `X.mt` and files of tags, with gaps (2n + 1) or without |
   | WMT22 QE task 2, and all that `whyscore score` reads | marked spans, `annotations`, human scores |
2. Alignment (`align`), after NICT-Kyoto at Eval4NLP 2021 and as the tags of MLQE-PE were made.
   a. Tokens by the word boundaries of Unicode; hypothesis and reference are aligned by their edit distance, without
      shifts. A hypothesis token that is substituted or taken out is wrong; where one is put in, a gap is.
   b. IBM model 1 links source and reference. A source token is wrong if one of its links goes to a reference token
      that the hypothesis does not have.
   c. Sentence labels: chrF, TER and BLEU against the reference.
"""

import hashlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import cast

import numpy as np

from whyscore.analysis.common import as_metric
from whyscore.analysis.metaeval.annotators import annotators_of
from whyscore.data.files import Bundle, TextFile, open_bundle
from whyscore.data.formats.eval4nlp import refuse
from whyscore.data.formats.jsonl import Object, objects
from whyscore.data.formats.word_lines import numbers, tag_lines
from whyscore.data.reading import read
from whyscore.errors import DataError
from whyscore.metrics.lexical.edits import alignment
from whyscore.models.maps import Link, ibm1
from whyscore.text.splitters import UnicodeWords, white_space
from whyscore.types import Dataset, Entry, FloatVector, Segment, Side, Words

Stretch = tuple[int, int, float]
Stretches = tuple[Stretch, ...]

METRICS = ("chrf", "ter", "bleu")
"""The metrics whose values alignment gives."""
WRONG = 0.5
"""Labels from here on count as errors: those of half the annotators or more."""
_PENALTY = {"neutral": 0.0, "minor": 1.0, "major": 5.0, "critical": 25.0}
_SCORES = ("da_z", "z_mean", "da", "mean", "hter")
_TAGS = {"target": ("tgt-tags", "mt_tags", "tags"), "source": ("src-tags", "src_tags", "source_tags")}


class TrainNotice(UserWarning):
    """Something about the data or the result of a training that its user should know."""


@dataclass(frozen=True)
class Rated:
    """A source and its translation with labels; what is not labelled is None."""

    source: str
    hypothesis: str
    pair: str = ""
    document: str = ""
    """What is held out together: a document, else all translations of one source."""
    kind: str = "edits"
    """How the words were labelled: edits, spans, alignment or perturbation."""
    score: float | None = None
    """Higher is better."""
    words: Stretches | None = None
    source_words: Stretches | None = None
    gaps: tuple[tuple[int, float], ...] | None = None
    """Places in the hypothesis where something may be missing."""
    reference: str | None = None
    metrics: tuple[float, ...] | None = None
    contrast: str | None = None
    """What a text and its perturbed copies share; the copies have labels above 0."""

    @property
    def group(self) -> str:
        """What must not be split between training and held-out data."""
        return self.document or self.source


def read_rated(path: str | Path, pair: str | None = None) -> list[Rated]:
    """Return the labelled segments in a file or folder, of one language pair where one is named."""
    place = Path(path)
    if place.is_dir():
        bundle = open_bundle(place, "texts and tags")
        prefix = _prefix(bundle)
        rows = _folder(bundle, prefix, pair or "") if prefix is not None else _dataset(read(place), pair)
    else:
        rows = _lines(place, pair)
    if not rows:
        scope = f" of {pair}" if pair else ""
        raise DataError(f"holds no segments{scope} with labels", file=str(path))
    return rows


def _lines(path: Path, pair: str | None) -> list[Rated]:
    file = TextFile(path)
    first = file.first()
    if '"mt_tags"' in first:
        rows = (_parse_post_edit(line, file.name) for line in objects(file, []))
        return [row for row in rows if pair is None or row.pair in ("", pair)]
    if '"src"' in first and '"mt"' in first and '"spans"' in first:
        return _spans(objects(file, []), file.name, pair)
    languages = tuple(pair.split("-", 1)) if pair else None
    return _dataset(read(path, languages=cast("tuple[str, str] | None", languages)), pair)


def _text(line: Object, name: str, file: str) -> str:
    value = line.value.get(name)
    if not isinstance(value, str):
        raise DataError(f"{name!r} is {value!r}, expected text", file=file, line=line.line)
    return value


def _parse_post_edit(line: Object, file: str) -> Rated:
    """Return a line of MLQE-PE; tags of another number than the words are an error."""
    source, hypothesis = _text(line, "src", file), _text(line, "mt", file)
    here, there = white_space(hypothesis), white_space(source)
    tags = {
        name: _numbers(line, name, expected, file)
        for name, expected in (("mt_tags", len(here)), ("src_tags", len(there)), ("gap_tags", len(here) + 1))
    }
    name = next((name for name in _SCORES if isinstance(line.value.get(name), int | float)), None)
    score = None if name is None else float(cast("float", line.value[name]))
    return Rated(
        source,
        hypothesis,
        str(line.value.get("lp", "")),
        str(line.value.get("doc", "")),
        score=-score if score is not None and name == "hter" else score,
        words=stretches(here, tags["mt_tags"]),
        source_words=stretches(there, tags["src_tags"]),
        gaps=gap_places(here, tags["gap_tags"]),
        reference=_text(line, "pe", file) if "pe" in line.value else None,
    )


def _numbers(line: Object, name: str, expected: int, file: str) -> list[float] | None:
    value = line.value.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(tag, int | float) and 0 <= tag <= 1 for tag in value):
        raise DataError(f"{name!r} must be a list of numbers from 0 to 1", file=file, line=line.line)
    if len(value) != expected:
        raise DataError(
            f"{len(value)} {name} for {expected} {'gaps' if name == 'gap_tags' else 'words'}: tags and white-space "
            "words must match",
            file=file,
            line=line.line,
        )
    return [float(tag) for tag in value]


def stretches(words: Words, tags: Sequence[float] | FloatVector | None) -> Stretches | None:
    """Return the words with their tags, right ones left out."""
    if tags is None:
        return None
    return tuple((*span, float(tag)) for span, tag in zip(words.spans, tags, strict=True) if tag)


def gap_places(words: Words, tags: Sequence[float] | None) -> tuple[tuple[int, float], ...] | None:
    """Return where the gaps before, between and after words stand, with their tags."""
    if tags is None:
        return None
    starts = [*(start for start, _ in words.spans), len(words.text)]
    return tuple((start, float(tag)) for start, tag in zip(starts, tags, strict=True) if tag)


def _spans(lines: Iterator[Object], file: str, pair: str | None) -> list[Rated]:
    """Return marked spans, the ratings of one translation together."""
    ratings: dict[tuple[str, str, str], list[list[tuple[int, int, str]]]] = {}
    documents: dict[tuple[str, str, str], str] = {}
    misplaced: list[int] = []
    for line in lines:
        key = (str(line.value.get("lp", pair or "")), _text(line, "src", file), _text(line, "mt", file))
        if pair is not None and key[0] != pair:
            continue
        spans = []
        for span in cast("list[object]", line.value["spans"]):
            if not isinstance(span, list) or not [type(place) for place in span[:2]] == [int, int] or min(span[:2]) < 0:
                raise DataError(f"a span is {span!r}, expected [start, end, severity]", file=file, line=line.line)
            start, end = span[0], min(max(span[1], span[0] + 1), len(key[2]))
            if span[1] > len(key[2]) or span[0] > span[1]:
                misplaced.append(line.line)
            if start < end and span[0] <= span[1]:
                spans.append((start, end, str(span[2]).lower() if span[2:] else "major"))
        ratings.setdefault(key, []).append(spans)
        document = "/".join(str(line.value.get(name, "")) for name in ("set", "doc")).strip("/")
        documents[key] = min(documents.get(key, document), document)
    if misplaced:
        warnings.warn(
            f"{file}: {len(misplaced)} spans end beyond their text or before they begin, first in line {misplaced[0]}: "
            "they were cut to the text, those that begin outside or are reversed left out",
            TrainNotice, stacklevel=2,
        )  # fmt: skip
    return [
        Rated(source, hypothesis, lp, documents[key], "spans", _penalty(rating), _soft(rating, len(hypothesis)))
        for key, rating in ratings.items()
        for lp, source, hypothesis in [key]
        if source.split() and hypothesis.split()
    ]


def _penalty(ratings: Sequence[Sequence[tuple[int, int, str]]]) -> float:
    return -float(np.mean([sum(_PENALTY.get(severity, 1.0) for *_, severity in rating) for rating in ratings]))


def _soft(ratings: Sequence[Sequence[tuple[int, int, str]]], length: int) -> Stretches:
    """Return the share of raters who marked each stretch between two borders."""
    marked = np.zeros((len(ratings), length + 1))
    for row, rating in enumerate(ratings):
        for start, end, _ in rating:
            marked[row, start:end] = 1
    shares = marked.mean(axis=0)
    borders = [0, *(np.flatnonzero(np.diff(shares)) + 1).tolist(), length]
    return tuple((start, end, float(shares[start])) for start, end in pairwise(borders) if shares[start])


def _prefix(bundle: Bundle) -> str | None:
    """Return the common beginning of the files of a word-level task; None for any other folder."""
    names = [name.removesuffix(".mt") for name in bundle.members if name.endswith(".mt")]
    prefixes = [name for name in names if f"{name}.src" in bundle.members and _tag_file(bundle, name, "target")]
    if len(prefixes) > 1:
        raise DataError(f"holds several sets ({', '.join(prefixes)}): keep one per folder", file=str(bundle.path))
    return prefixes[0] if prefixes else None


def _tag_file(bundle: Bundle, prefix: str, side: str) -> str | None:
    return next((name for end in _TAGS[side] if (name := f"{prefix}.{end}") in bundle.members), None)


def _folder(bundle: Bundle, prefix: str, pair: str) -> list[Rated]:
    sources, hypotheses = (bundle.lines(f"{prefix}.{end}").texts for end in ("src", "mt"))
    count = len(hypotheses)
    tags = {side: _read_tags(bundle, name) if (name := _tag_file(bundle, prefix, side)) else None for side in _TAGS}
    scores = next((name for end in ("da", "hter") if (name := f"{prefix}.{end}") in bundle.members), None)
    values = _read_scores(bundle, scores) if scores else None
    edited = bundle.lines(f"{prefix}.pe").texts if f"{prefix}.pe" in bundle.members else None
    for name, column in (("src", sources), *tags.items(), (scores or "", values), ("pe", edited)):
        if column is not None and len(column) != count:
            raise DataError(f"{name}: {len(column)} lines for {count} in {prefix}.mt", file=str(bundle.path))
    rows = []
    for k, (source, hypothesis) in enumerate(zip(sources, hypotheses, strict=True)):
        here, there = white_space(hypothesis), white_space(source)
        target, gaps = _with_gaps(tags["target"][k], len(here), bundle, prefix, k) if tags["target"] else (None, None)
        other = tags["source"][k] if tags["source"] else None
        if other is not None and len(other) != len(there):
            file = bundle.file(str(_tag_file(bundle, prefix, "source")))
            raise DataError(f"{len(other)} tags for {len(there)} words", file=file, line=k + 1)
        score = None if values is None else values[k] * (-1 if str(scores).endswith("hter") else 1)
        rows.append(
            Rated(source, hypothesis, pair or _pair_of(bundle), "", "edits", score, stretches(here, target),
                  stretches(there, other), gap_places(here, gaps), edited[k] if edited else None)
        )  # fmt: skip
    return rows


def _pair_of(bundle: Bundle) -> str:
    return bundle.name if len(bundle.name.split("-")) == 2 else ""  # noqa: PLR2004 - et-en


def _read_tags(bundle: Bundle, name: str) -> list[FloatVector]:
    parsed = tag_lines(bundle.lines(name), bundle.file(name))
    refuse(finding for finding in parsed.findings if finding.error)
    return parsed.values.rows()


def _read_scores(bundle: Bundle, name: str) -> list[float]:
    values, findings = numbers(bundle.lines(name), bundle.file(name))
    refuse(finding for finding in findings if finding.error)
    return [float(value) for value in values]


def _with_gaps(
    tags: FloatVector, words: int, bundle: Bundle, prefix: str, row: int
) -> tuple[list[float], list[float] | None]:
    """Return the tags of words and of gaps; gaps stand before, between and after the words."""
    if len(tags) == words:
        return tags.tolist(), None
    if len(tags) == 2 * words + 1:
        return tags[1::2].tolist(), tags[::2].tolist()
    file = bundle.file(str(_tag_file(bundle, prefix, "target")))
    raise DataError(
        f"{len(tags)} tags for {words} words: expected {words}, or {2 * words + 1} with gaps", file=file, line=row + 1
    )


def _dataset(data: Dataset, pair: str | None) -> list[Rated]:
    """Return the entries with human marks or scores."""
    lp = pair or ("-".join(data.languages) if data.languages else "")
    annotators = annotators_of(data)
    human = next(iter(dict.fromkeys(name for entry in data.entries for name in entry.human)), None)
    rows = []
    for k, entry in enumerate(data.entries):
        segment = entry.segment
        if segment.source is None or not segment.hypothesis.split() or not segment.source.split():
            continue
        reference = segment.references[0] if segment.references else None
        score = entry.human.get(human) if human is not None else None
        row = Rated(segment.source, segment.hypothesis, lp, entry.document or "", "spans", score, reference=reference)
        if annotators is not None:
            soft = {side: _mean_tags([tag.rows()[k] for tag in tags]) for side, tags in annotators.tags.items()}
            row = replace(
                row,
                kind="edits",
                words=stretches(white_space(row.hypothesis), soft.get("target")),
                source_words=stretches(white_space(row.source), soft.get("source")),
                score=score if annotators.scores is None else _mean_score(annotators.scores[:, k]),
            )
        elif entry.spans is not None:
            row = replace(
                row, words=_span_marks(entry, Side.HYPOTHESIS), source_words=_span_marks(entry, Side.SOURCE) or None
            )
        rows.append(row)
    return rows


def _mean_tags(rows: Sequence[FloatVector]) -> FloatVector | None:
    tagged = [row for row in rows if len(row)]
    return np.mean(tagged, axis=0) if tagged else None


def _mean_score(values: FloatVector) -> float | None:
    return float(np.nanmean(values)) if not np.isnan(values).all() else None


def _span_marks(entry: Entry, side: Side) -> Stretches:
    spans = [span for span in entry.spans or () if span.side is side]
    return tuple((span.start, max(span.end, span.start + 1), 1.0) for span in spans)


def align(rows: Sequence[Rated]) -> list[Rated]:
    """Return rows with labels from aligning hypotheses with references; rows without a reference are left out."""
    usable = [row for row in rows if row.reference and row.hypothesis.split() and row.source.split()]
    if not usable:
        raise DataError(
            "labels from alignment need hypotheses and references: --parallel with --hypotheses, or post-edits"
        )
    links = link_words([row.source for row in usable], [row.reference or "" for row in usable])
    segments = [Segment(row.hypothesis, row.source, (row.reference or "",)) for row in usable]
    metrics = [as_metric(name) for name in METRICS]
    values = np.stack([
        np.asarray(metric.score(segments)) * (1 if metric.higher_is_better else -1) for metric in metrics
    ], axis=1)  # fmt: skip
    return [
        _label_by_alignment(row, link, tuple(map(float, numbers)))
        for row, link, numbers in zip(usable, links, values, strict=True)
    ]


def link_words(sources: Sequence[str], references: Sequence[str]) -> list[tuple[Link, ...]]:
    """Return links between the tokens of parallel texts by IBM model 1."""
    return ibm1(
        *([[word.lower() for word in UnicodeWords().split(text)] for text in side] for side in (sources, references))
    )


def _label_by_alignment(row: Rated, links: Sequence[Link], metrics: tuple[float, ...]) -> Rated:
    splitter = UnicodeWords()
    here, there = splitter.split(row.hypothesis), splitter.split(row.source)
    path = alignment(list(here), list(splitter.split(row.reference or "")))
    wrong, missing, gaps = [], [], []
    for operation in path:
        if operation != "i":
            wrong.append(float(operation != " "))
        if operation != "d":
            missing.append(operation != " ")
        if operation == "i":
            gaps.append(here.spans[len(wrong)][0] if len(wrong) < len(here) else len(row.hypothesis))
    lost = {source for source, target in links if missing[target]}
    return replace(
        row,
        kind="alignment",
        words=stretches(here, wrong),
        source_words=stretches(there, [float(k in lost) for k in range(len(there))]),
        gaps=tuple((place, 1.0) for place in dict.fromkeys(gaps)),
        score=None,
        metrics=metrics,
    )


def parallel_rows(
    sources: Sequence[str], references: Sequence[str], hypotheses: Sequence[str] | None, pair: str
) -> list[Rated]:
    """Return rows without labels from parallel text, and hypotheses where there are any."""
    for name, side in (("references", references), ("hypotheses", hypotheses)):
        if side is not None and len(side) != len(sources):
            raise DataError(f"{len(sources)} sources, {len(side)} {name}: every line needs its counterpart")
    texts = references if hypotheses is None else hypotheses
    rows = zip(sources, texts, references, strict=True)
    return [Rated(source, text, pair, reference=reference) for source, text, reference in rows]


def refuse_unusable(rows: Sequence[Rated]) -> None:
    """Refuse labels from which nothing can be learned."""
    labelled = [row for row in rows if row.words is not None]
    wrong = sum(bool(row.words) for row in labelled)
    if labelled and not wrong:
        raise DataError(
            f"none of the {len(labelled)} labelled segments has a wrong word: with one class only there is nothing to "
            "learn. Check that 1 marks errors"
        )
    full = sum(
        all(
            any(s < b and e > a and value >= WRONG for s, e, value in row.words or ())
            for a, b in white_space(row.hypothesis).spans
        )
        for row in labelled
    )
    if labelled and full == len(labelled):
        raise DataError(
            f"every word of all {len(labelled)} labelled segments is marked as wrong: with one class only there is "
            "nothing to learn. Check that 1 marks errors"
        )
    scores = {row.score for row in rows if row.score is not None}
    if len(scores) == 1 and not labelled:
        raise DataError(f"all sentence scores are {scores.pop()}, and there are no labels of words: nothing to learn")
    if not labelled and not scores:
        raise DataError(
            "there are neither labels of words nor sentence scores: give --labels, or data with tags or spans"
        )


def digest_rows(rows: Sequence[Rated]) -> str:
    """Return a short name for labelled segments."""
    whole = hashlib.blake2b(digest_size=6)
    for row in rows:
        whole.update(repr(row).encode("utf-8", "backslashreplace"))
    return whole.hexdigest()
