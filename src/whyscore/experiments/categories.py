"""Can errors be named without labelled examples? Names by perturbation, measured on the categories of MQM raters.

1. Learn what kinds of perturbation look like on the hypotheses of the data, without their spans
   (`whyscore.analysis.categories`), and name spans by MQM category.
2. Named are the spans that raters marked, so that naming alone is judged; with a metric, the spans that the metric
   predicts (its own word scores, automatic threshold), each against the marked span with which it shares most.
3. Accuracy with its interval over sources, and F1, mean over the categories that raters used. Beside it:
   - `majority`: always the category that raters used most, which nobody knows without labels;
   - `tagger`: punctuation where most characters are punctuation, else mistranslation;
   - `perturbation`: the classifier without the tagger's features.
   `sections` compares only what stands before the slash: accuracy, fluency, style, terminology.
4. Categories no perturbation stands for (style, terminology ...) count as errors; `nameable` says how many are others.

Omissions that are marked in the source are named by definition and not counted.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from whyscore.analysis.calibrate import sort_entries
from whyscore.analysis.categories import CATEGORIES, Example, SpanNamer, SpanReader, make_examples, other_side
from whyscore.analysis.common import as_metric
from whyscore.analysis.convert import split_scores
from whyscore.cli.options import Command, InputSettings, LimitSettings, OutputSettings
from whyscore.cli.output import emit_result
from whyscore.cli.setup import load_dataset, take_first
from whyscore.errors import DataError
from whyscore.protocols import WordScorer
from whyscore.settings import Bootstrapped, Seeded, option, takes
from whyscore.stats.coefficients import ranks
from whyscore.stats.resampling import bootstrap_ratio
from whyscore.stats.spans import Thresholds, to_spans
from whyscore.text.splitters import white_space
from whyscore.types import HYPOTHESIS, Dataset, Entry, ErrorSpan, Estimate, FloatVector, Side
from whyscore.types.result import Cell, Record, Result, Table

_PUNCTUATION, _USUAL = CATEGORIES["punctuation"], CATEGORIES["substitution"]
_HALF = 0.5
_LEARNED = "perturbation and tagger"


@dataclass(frozen=True, kw_only=True)
class CategorySettings(Seeded, Bootstrapped):
    """Which spans are named, and by what."""

    tagger: str = option("rules", "whose features are read beside the words", metavar="SPEC", basic=True)
    metric: str | None = option(
        None, "name the spans that a metric's own word scores predict, instead of the marked ones",
        flags=("-m", "--metric"), metavar="SPEC", basic=True,
    )  # fmt: skip
    texts: int = option(500, "how many texts errors are put into", least=20, metavar="N", basic=True)


class Naming(NamedTuple):
    """How often one way of naming agrees with raters."""

    name: str
    accuracy: Estimate
    sections: Estimate
    f1: float
    """Mean over the categories that raters used."""


class CategoryRow(NamedTuple):
    """One category of the raters."""

    category: str
    marked: int
    named: int
    precision: float
    recall: float
    auc: float
    """Of the probability of the category against all other spans; NaN where no perturbation stands for it."""


@dataclass(frozen=True, repr=False)
class CategoryResult(Result):
    """Names of spans against those of raters."""

    namings: tuple[Naming, ...]
    categories: tuple[CategoryRow, ...]
    spans: int
    nameable: float
    overlapping: float | None
    """Of predicted spans, the share that touches a marked one."""
    kind: ClassVar[str] = "categories"

    def header(self) -> Record:
        return {"spans": self.spans, "nameable": self.nameable, "overlapping": self.overlapping}

    def records(self) -> Iterator[Record]:
        for naming in self.namings:
            for measure, estimate in (("accuracy", naming.accuracy), ("sections", naming.sections)):
                yield {
                    "naming": naming.name, "measure": measure,
                    "value": estimate.value, "low": estimate.low, "high": estimate.high, "n": self.spans,
                }  # fmt: skip
            yield {"naming": naming.name, "measure": "f1", "value": naming.f1, "n": self.spans}
        for row in self.categories:
            yield {"naming": _LEARNED, **row._asdict()}

    def display_tables(self) -> list[Table]:
        rows: list[tuple[Cell, ...]] = [
            (
                naming.name,
                naming.accuracy.value,
                _interval(naming.accuracy),
                naming.sections.value,
                _interval(naming.sections),
                naming.f1,
            )
            for naming in self.namings
        ]
        columns = ("named by", "accuracy", "accuracy 95 %", "sections", "sections 95 %", "mean F1")
        what = "marked" if self.overlapping is None else "predicted"
        note = (
            f"{self.spans} {what} spans; {self.nameable:.1%} of them have a category that a perturbation stands for. "
            "Majority is the category that raters used most"
        )
        if self.overlapping is not None:
            note += f". {self.overlapping:.1%} of the predicted spans touch a marked one; only these are counted"
        return [
            Table(columns, tuple(rows), {"accuracy": True, "sections": True, "mean F1": True}, notes=(note,)),
            Table(CategoryRow._fields, tuple(self.categories), title="perturbation and tagger, by category"),
        ]


def _interval(estimate: Estimate) -> str:
    return "" if estimate.low is None or estimate.high is None else f"[{estimate.low:.3f}, {estimate.high:.3f}]"


@takes(CategorySettings)
def categories(dataset: Dataset, *, settings: CategorySettings) -> CategoryResult:
    """Return how often spans get the category that raters gave them.

    Args:
        dataset: Entries with sources or references, and spans with MQM categories.
        settings: Tagger, metric, seed, bootstrap samples.
    """
    dataset = sort_entries(dataset)
    marked = [(entry, span) for entry in dataset.entries for span in entry.spans or () if _usable(entry, span)]
    if not marked:
        raise DataError(
            "no span of a hypothesis has a category: give MQM ratings (whyscore convert mqm.tsv --to whyscore)"
        )
    overlapping = None
    if settings.metric is not None:
        marked, overlapping = _match_marked(predict_spans(dataset, settings.metric))
    gold = [span.category or "" for _, span in marked]
    answers, probabilities = _name_spans(dataset, marked, gold, settings)
    blocks = [other_side(entry.segment) for entry, _ in marked]
    namings = tuple(_judge(name, names, gold, blocks, settings) for name, names in answers.items())
    nameable = [category in CATEGORIES.values() for category in gold]
    table = tuple(
        _category_row(category, gold, answers[_LEARNED], probabilities.get(category))
        for category, _ in Counter(gold).most_common()
    )
    return CategoryResult(namings, table, len(gold), float(np.mean(nameable)), overlapping)


def _match_marked(predicted: Sequence[tuple[Entry, ErrorSpan]]) -> tuple[list[tuple[Entry, ErrorSpan]], float]:
    """Return the predicted spans that touch a marked one, with its category, and their share."""
    named = [(entry, replace_category(span, entry)) for entry, span in predicted]
    overlapping = [(entry, span) for entry, span in named if span.category is not None]
    if not overlapping:
        raise DataError(f"none of {len(named)} predicted spans touches a marked one: there is nothing to compare")
    return overlapping, len(overlapping) / len(named)


def _name_spans(
    dataset: Dataset, marked: Sequence[tuple[Entry, ErrorSpan]], gold: Sequence[str], settings: CategorySettings
) -> tuple[dict[str, list[str]], dict[str, FloatVector]]:
    """Return the category of each span by each way of naming, and the probabilities of the last one by category."""
    examples, kinds = make_examples(dataset.segments, settings.seed, settings.texts)
    reader = SpanReader.of(settings.tagger, [example.segment.hypothesis for example in examples])
    learned = reader.read(examples)
    rows = reader.read([Example(entry.segment, span.start, span.end) for entry, span in marked])
    names, values = SpanNamer.fit(learned, kinds).categories(rows)
    bare = slice(0, reader.tagger_columns.start)
    plain_names, plain = SpanNamer.fit(learned[:, bare], kinds).categories(rows[:, bare])
    punctuation = np.zeros(len(rows))
    if "punctuation" in reader.labels:
        punctuation = rows[:, reader.tagger_columns][:, reader.labels.index("punctuation")]
    (most, _), *_ = Counter(gold).most_common()
    answers = {
        "majority": [most] * len(gold),
        "tagger": [_PUNCTUATION if share > _HALF else _USUAL for share in punctuation.tolist()],
        "perturbation": [plain_names[k] for k in plain.argmax(axis=1).tolist()],
        _LEARNED: [names[k] for k in values.argmax(axis=1).tolist()],
    }
    return answers, dict(zip(names, values.T, strict=True))


def _usable(entry: Entry, span: ErrorSpan) -> bool:
    return (
        bool(span.category) and span.side is Side.HYPOTHESIS and span.start < span.end
        and bool(other_side(entry.segment).split())
    )  # fmt: skip


def predict_spans(dataset: Dataset, metric: str) -> list[tuple[Entry, ErrorSpan]]:
    """Return the spans that a metric's own word scores give by an automatic threshold."""
    entries = [
        entry for entry in dataset.entries if entry.segment.hypothesis.split() and other_side(entry.segment).split()
    ]
    segments = [entry.segment for entry in entries]
    words = [white_space(segment.hypothesis) for segment in segments]
    scorer = as_metric(metric)
    if not isinstance(scorer, WordScorer):
        raise DataError(f"{metric} has no word scores of its own: name another metric, such as qe")
    errors = [-word_score.importance for word_score in scorer.word_scores(segments, HYPOTHESIS, words)]
    minor, major = split_scores(np.concatenate(errors))
    thresholds = Thresholds(minor, major)
    return [
        (entry, span)
        for entry, tokens, scores in zip(entries, words, errors, strict=True)
        for span in to_spans(tokens, scores, thresholds, Side.HYPOTHESIS)
    ]


def replace_category(span: ErrorSpan, entry: Entry) -> ErrorSpan:
    """Return a predicted span with the category of the marked one that shares most characters with it."""
    best, category = 0, None
    for other in entry.spans or ():
        common = min(span.end, other.end) - max(span.start, other.start)
        if _usable(entry, other) and common > best:
            best, category = common, other.category
    return ErrorSpan(span.start, span.end, span.severity, category)


def _judge(
    name: str, answers: Sequence[str], gold: Sequence[str], blocks: Sequence[str], settings: CategorySettings
) -> Naming:
    estimates = []
    pairs = list(zip(answers, gold, strict=True))
    for same in (
        [answer == category for answer, category in pairs],
        [answer.split("/")[0] == category.split("/")[0] for answer, category in pairs],
    ):
        right = np.array(same, dtype=np.float64)
        estimates.append(bootstrap_ratio(right, np.ones(len(right)), blocks, draws=settings.draws, seed=settings.seed))
    rows = [_category_row(category, gold, answers, None) for category in dict.fromkeys(gold)]
    f1 = [2 * row.precision * row.recall / (row.precision + row.recall) if row.recall else 0.0 for row in rows]
    return Naming(name, estimates[0], estimates[1], float(np.mean(f1)))


def _category_row(
    category: str, gold: Sequence[str], answers: Sequence[str], scores: FloatVector | None
) -> CategoryRow:
    true, named = (np.array([label == category for label in column]) for column in (gold, answers))
    both = int((true & named).sum())
    precision = both / named.sum() if named.any() else float("nan")
    auc = float("nan")
    if scores is not None and 0 < true.sum() < len(true):
        above = ranks(scores)[true].sum() - true.sum() * (true.sum() + 1) / 2
        auc = float(above / (true.sum() * (~true).sum()))
    return CategoryRow(category, int(true.sum()), int(named.sum()), float(precision), both / int(true.sum()), auc)


@dataclass(frozen=True, kw_only=True)
class CategoriesCommand(OutputSettings, InputSettings, LimitSettings, CategorySettings):
    """What `error-categories` takes."""


def run_categories(settings: CategoriesCommand) -> int:
    """Write how often spans get the category that raters gave them."""
    data = take_first(load_dataset(settings), settings.limit)
    emit_result(categories(data, settings=settings), settings)
    return 0


_EXAMPLES = """\
examples:
  whyscore experiment error-categories --sample
  whyscore experiment error-categories rated.jsonl -m qe -l zh-en
"""
EXPERIMENTS = {
    "error-categories": Command(
        "names of errors without labelled examples, against MQM categories",
        _EXAMPLES,
        CategoriesCommand,
        run_categories,
        categories,
    )
}
