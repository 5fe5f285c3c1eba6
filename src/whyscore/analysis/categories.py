"""Names for error spans without labelled examples: which error, put in on purpose, does a span resemble most?

1. Errors of each kind (`whyscore.analysis.train.perturbations`) are put into texts of the data itself, one a copy.
   Where they stand is known, so that each is an example of its kind. Half of the examples are widened by up to three
   neighbouring words on each side, since marked spans rarely end with the wrong word; else length would tell kinds
   apart. Kinds that leave no word behind (`deletion`) give no examples.
2. A span is read as the mean and the largest value, over its words, of what the estimator reads of words (cosines with
   the other side, surprisal, surface; nothing that was learned from labels), and as the share of its characters that
   has each feature of a tagger. The other side is the source, or the first reference where there is none.
3. Multinomial logistic regression with all kinds weighted alike and a quadratic penalty, by L-BFGS.
4. A span is named after the most probable kind, or after the MQM category with the largest sum over its kinds
   (`CATEGORIES`). Spans of the source and empty spans are omissions.

No perturbation stands for style, terminology or register, so these are never named. How often the names are those of
human raters: `whyscore experiment error-categories`, docs/how-to/train.md.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from whyscore.analysis.train.perturbations import PERTURBATIONS, Perturbed, Perturber
from whyscore.errors import DataError
from whyscore.metrics.estimators.features import LEARNED, NAMES, ReadText, match, read_texts
from whyscore.metrics.estimators.tables import Table, Tables
from whyscore.protocols import SupportsLabels, Tagged, Tagger
from whyscore.registry import build
from whyscore.scoring.store import digest
from whyscore.text.randomness import generator
from whyscore.text.splitters import white_space
from whyscore.types import Dataset, ErrorSpan, FloatMatrix, FloatVector, Segment, Side

Naming = Literal["perturbation", "mqm"]

OMISSION = "Accuracy/Omission"
CATEGORIES: Mapping[str, str] = {
    "deletion": OMISSION,
    "insertion": "Accuracy/Addition",
    "substitution": "Accuracy/Mistranslation",
    "untranslated": "Accuracy/Untranslated text",
    "swap": "Fluency/Grammar",
    "number": "Accuracy/Mistranslation",
    "name": "Accuracy/Mistranslation",
    "negation": "Accuracy/Mistranslation",
    "inflection": "Fluency/Grammar",
    "spelling": "Fluency/Spelling",
    "punctuation": "Fluency/Punctuation",
}
"""The MQM category that each kind of perturbation stands for."""
KINDS = tuple(kind for kind in PERTURBATIONS if kind != "deletion")
TEXTS = 500
"""How many texts errors are put into."""
_PENALTY = 1e-3
_STEPS = 500
_LEAST_EXAMPLES = 20
_CHUNK = 256
_WIDENED, _MOST_NEIGHBOURS = 0.5, 3
_COLUMNS = [place for place, name in enumerate(NAMES) if name not in LEARNED]


def _no_table(columns: int) -> Table:
    return Table(np.zeros(0, dtype=np.uint32), np.zeros((columns, 0), dtype=np.uint8), 0.0, 1.0)


_NO_TABLES = Tables(_no_table(2), _no_table(2), _no_table(1), _no_table(1), _no_table(1), _no_table(2))


class Example(NamedTuple):
    """A stretch of the hypothesis of a segment."""

    segment: Segment
    start: int
    end: int


def other_side(segment: Segment) -> str:
    """Return what a hypothesis is compared with."""
    return segment.source or next(iter(segment.references), "")


@dataclass(frozen=True)
class SpanReader:
    """Reads spans as numbers, with the features of a tagger."""

    tagger: Tagger
    labels: tuple[str, ...]

    @classmethod
    def of(cls, tagger: str | Tagger, texts: Sequence[str]) -> "SpanReader":
        """Return a reader with a tagger; the features of one that does not name them are those it finds in texts."""
        labeller = cast("Tagger", build(tagger, "tagger") if isinstance(tagger, str) else tagger)
        if isinstance(labeller, SupportsLabels):
            return cls(labeller, tuple(labeller.labels()))
        features = {feature for tagged in labeller.tag(texts) for span in tagged for feature in span.features}
        return cls(labeller, tuple(sorted(features)))

    @property
    def tagger_columns(self) -> slice:
        """Where the features of the tagger stand."""
        return slice(2 * len(_COLUMNS) + 1, None)

    def read(self, examples: Sequence[Example]) -> FloatMatrix:
        """Return examples x columns."""
        rows: list[FloatVector] = []
        for start in range(0, len(examples), _CHUNK):
            chunk = examples[start : start + _CHUNK]
            segments = list(dict.fromkeys(example.segment for example in chunk))
            texts = list(
                dict.fromkeys(text for segment in segments for text in (segment.hypothesis, other_side(segment)))
            )
            read = dict(zip(texts, read_texts(texts), strict=True))
            tags = self.tagger.tag([segment.hypothesis for segment in segments])
            readings = {
                segment: (
                    read[segment.hypothesis],
                    match(read[segment.hypothesis], read[other_side(segment)], _NO_TABLES).features[0],
                )
                for segment in segments
            }
            tagged = dict(zip(segments, tags, strict=True))
            rows += [self._row(example, *readings[example.segment], tagged[example.segment]) for example in chunk]
        return np.array(rows, dtype=np.float64)

    def _row(
        self, example: Example, text: ReadText, features: NDArray[np.float32], tagged: Sequence[Tagged]
    ) -> FloatVector:
        _, start, end = example
        spans = text.units.spans
        touched = np.flatnonzero((spans[:, 0] < end) & (spans[:, 1] > start))
        if not len(touched):  # white space alone: the nearest word
            touched = np.array([np.abs(spans.mean(axis=1) - (start + end) / 2).argmin()])
        columns = features[touched][:, _COLUMNS]
        shares = dict.fromkeys(self.labels, 0.0)
        for span in tagged:
            common = min(span.end, end) - max(span.start, start)
            for feature in span.features if common > 0 else ():
                if feature in shares:
                    shares[feature] += common / (end - start)
        parts = (columns.mean(axis=0), columns.max(axis=0), [np.log1p(len(touched))], list(shares.values()))
        return np.concatenate([np.asarray(part, dtype=np.float64) for part in parts])


@dataclass(frozen=True, eq=False)
class SpanNamer:
    """Which kind of perturbation a span resembles."""

    kinds: tuple[str, ...]
    mean: FloatVector
    deviation: FloatVector
    weights: FloatMatrix
    """Columns and one constant x kinds."""

    @classmethod
    def fit(cls, rows: FloatMatrix, kinds: Sequence[str]) -> "SpanNamer":
        """Return the classifier of examples with their kinds."""
        counts = Counter(kinds)
        names = tuple(kind for kind in KINDS if counts[kind] >= _LEAST_EXAMPLES)
        kept = np.array([kind in names for kind in kinds])
        if len(names) < 2:  # noqa: PLR2004 - nothing to choose from
            raise DataError(
                f"too few texts to learn kinds of errors from: {dict(counts)}, {_LEAST_EXAMPLES} of two kinds are "
                "needed. Give more segments"
            )
        mean, deviation = rows[kept].mean(axis=0), rows[kept].std(axis=0) + 1e-6
        design = np.column_stack([(rows[kept] - mean) / deviation, np.ones(int(kept.sum()))])
        places = np.array([names.index(kind) for kind, keep in zip(kinds, kept.tolist(), strict=True) if keep])
        alike = (1 / len(names) / np.array([counts[kind] for kind in names]))[places]
        targets = np.eye(len(names))[places] * alike[:, None]

        from scipy.optimize import minimize  # noqa: PLC0415 - slow to import
        from scipy.special import log_softmax, softmax  # noqa: PLC0415 - slow to import

        def loss(flat: FloatVector) -> tuple[float, FloatVector]:
            weights = flat.reshape(design.shape[1], len(names))
            scores = design @ weights
            slope = design.T @ (softmax(scores, axis=1) * alike[:, None] - targets) + 2 * _PENALTY * weights
            value = -(targets * log_softmax(scores, axis=1)).sum() + _PENALTY * (weights**2).sum()
            return float(value), slope.ravel()

        start = np.zeros(design.shape[1] * len(names))
        optimum = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
        return cls(names, mean, deviation, optimum.x.reshape(design.shape[1], len(names)))

    def probabilities(self, rows: FloatMatrix) -> FloatMatrix:
        """Return rows x kinds."""
        from scipy.special import softmax  # noqa: PLC0415 - slow to import

        inputs = np.clip((rows - self.mean) / self.deviation, -6, 6)
        result: FloatMatrix = softmax(np.column_stack([inputs, np.ones(len(rows))]) @ self.weights, axis=1)
        return result

    def categories(self, rows: FloatMatrix) -> tuple[tuple[str, ...], FloatMatrix]:
        """Return MQM categories, and rows x categories: the sums over their kinds."""
        names = tuple(dict.fromkeys(CATEGORIES[kind] for kind in self.kinds))
        member = np.array([[CATEGORIES[kind] == name for name in names] for kind in self.kinds], dtype=np.float64)
        return names, self.probabilities(rows) @ member


def make_examples(segments: Sequence[Segment], seed: int = 0, texts: int = TEXTS) -> tuple[list[Example], list[str]]:
    """Return stretches of perturbed hypotheses and their kinds; a sample of the segments is perturbed."""
    usable = {segment for segment in segments if segment.hypothesis.split() and other_side(segment).split()}
    whole = sorted(usable, key=digest)
    if not whole:
        raise DataError("naming spans needs hypotheses with sources or references: there are none")
    perturber = Perturber([other_side(segment) for segment in whole], [segment.hypothesis for segment in whole])
    sample = generator(seed, "categories").permutation(len(whole))[:texts].tolist()
    examples, kinds = [], []
    for k in sample:
        segment = whole[k]
        for kind in KINDS:
            draw = generator(seed, kind, segment.hypothesis)
            perturbed = perturber.perturb(other_side(segment), segment.hypothesis, (kind,), draw)
            stretch = None if perturbed is None else _stretch(perturbed, kind, draw)
            if perturbed is not None and stretch is not None:
                changed = Segment(perturbed.text, segment.source, segment.references)
                examples.append(Example(changed, *stretch))
                kinds.append(kind)
    return examples, kinds


def _stretch(perturbed: Perturbed, kind: str, draw: np.random.Generator) -> tuple[int, int] | None:
    """Return a stretch as raters might mark it: of punctuation the marks alone, or with neighbouring words."""
    if not perturbed.words:
        return None
    start, end = perturbed.words[0][0], max(stop for _, stop, _ in perturbed.words)
    bare = perturbed.text[start:end].rstrip(",.;:!?")
    if kind == "punctuation" and 0 < len(bare) < end - start:
        return start + len(bare), end
    if draw.random() < _WIDENED:
        spans = white_space(perturbed.text).spans
        first = next(k for k, (_, stop) in enumerate(spans) if stop > start)
        last = next(k for k, (_, stop) in enumerate(spans) if stop >= end)
        before, after = (int(number) for number in draw.integers(0, _MOST_NEIGHBOURS + 1, 2))
        start, end = spans[max(first - before, 0)][0], spans[min(last + after, len(spans) - 1)][1]
    return start, end


def name_spans(dataset: Dataset, to: Naming = "mqm", *, tagger: str | Tagger = "rules", seed: int = 0) -> Dataset:
    """Return the data set with a category for every span that has none.

    Args:
        dataset: Entries with spans and texts.
        to: `mqm` for MQM categories, `perturbation` for kinds of perturbation.
        tagger: Whose features are read.
        seed: Fixes which errors are put in.
    """
    examples, kinds = make_examples(dataset.segments, seed)
    reader = SpanReader.of(tagger, [example.segment.hypothesis for example in examples])
    namer = SpanNamer.fit(reader.read(examples), kinds)
    places = [
        (k, n)
        for k, entry in enumerate(dataset.entries)
        for n, span in enumerate(entry.spans or ())
        if span.category is None and span.side is Side.HYPOTHESIS and span.start < span.end
        and other_side(entry.segment).split()
    ]  # fmt: skip
    spans = [(dataset.entries[k].segment, (dataset.entries[k].spans or ())[n]) for k, n in places]
    names: dict[tuple[int, int], str] = {}
    if spans:
        rows = reader.read([Example(segment, span.start, span.end) for segment, span in spans])
        columns, values = namer.categories(rows) if to == "mqm" else (namer.kinds, namer.probabilities(rows))
        names = {place: columns[best] for place, best in zip(places, values.argmax(axis=1).tolist(), strict=True)}
    omission = OMISSION if to == "mqm" else "deletion"
    entries = []
    for k, entry in enumerate(dataset.entries):
        named = tuple(_name_span(span, names.get((k, n)), omission) for n, span in enumerate(entry.spans or ()))
        entries.append(entry if entry.spans is None else replace(entry, spans=named))
    return replace(dataset, entries=tuple(entries))


def _name_span(span: ErrorSpan, name: str | None, omission: str) -> ErrorSpan:
    if span.category is not None:
        return span
    lost = span.side is Side.SOURCE or span.start == span.end
    return replace(span, category=omission if lost else name)
