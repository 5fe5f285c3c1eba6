"""The eight splits of SummEval, as BMX was evaluated on summaries (Leiter, Nguyen and Eger 2022, section 4).

1. 100 documents x 16 systems with 11 references. Documents in file order are cut into blocks of 13; the last has 9.
2. For each block, p and w are chosen on its 208 (the last: 144) summaries at the system level, and judged on all the
   others, 1392 (1456). A document never crosses.
3. Settings are the four aspects times Kendall (the paper), or times Kendall and Spearman (the public code).
4. Reported: the mean over the eight splits, for every rule and explainer, beside the length and random controls; for
   every aspect and coefficient the splits with a significant gain, before and after a correction over the splits.

Human scores are means of the raw ratings, so that exact ties stay ties.
"""

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, cast

import numpy as np

from whyscore.analysis.calibrate import (
    CONTROLS,
    RULES,
    Choice,
    Explained,
    Question,
    Rule,
    Setting,
    Source,
    TestedSettings,
    gain_p,
    sort_entries,
    sources_of,
)
from whyscore.analysis.common import MetricLike
from whyscore.data.codec import Where, decode
from whyscore.data.formats.summaries import ASPECTS
from whyscore.errors import DataError
from whyscore.experiments.bmx.study import Figure, Row, Run, RunFolder, explain_by_each, lines_of
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.settings import Seeded, option, takes
from whyscore.stats.correction import correct_p
from whyscore.types import Dataset, Entry, FloatVector, IntVector, Segment
from whyscore.types.result import Cell, Table

SPLIT = "bmx_split"
_BLOCKS = 8
_DIGITS = 9
COEFFICIENTS = ("kendall_b", "spearman")
_ALPHA = 0.05
_HEAD = (
    "source", "rule", "kendall", "spearman", "kendall gain", "spearman gain", "mean p", "mean w", "splits boosted",
    "p <= .05", "corrected", "spearman p <= .05", "spearman corrected",
)  # fmt: skip

Criterion = Literal["kendall", "both"]


class Split(NamedTuple):
    """What one source and rule chose on one split, and what that did on the other documents."""

    source: str
    rule: str
    split: int
    aspect: str
    coefficient: str
    n_fitted: int
    n_judged: int
    settings: int
    """Settings that had a vote: those where the original score agrees with people on the split."""
    p: float
    w: float
    shrinkage: float | None
    before: float
    after: float
    p_value: float | None = None


def read_summeval(scores: str | Path, texts: str | Path) -> Dataset:
    """Return SummEval from its two files: ratings with splits (CSV), and texts with references (JSON lines)."""
    instances = [
        decode(_Instance, text, Where(str(texts), number)) for number, text in enumerate(lines_of(texts), start=1)
    ]
    by_id = {instance.instance_id: instance for instance in instances}
    entries = list(_entries(scores, by_id, str(texts)))
    if not entries:
        raise DataError("has no rows", file=str(scores))
    return Dataset("summeval", tuple(entries))


def with_splits(data: Dataset, count: int = _BLOCKS) -> Dataset:
    """Return annotated summaries with their split: documents in file order, cut into that many blocks.

    Entries without the four expert ratings are refused.
    """
    names = {name for entry in data.entries for name in entry.human}
    missing = [aspect for aspect in ASPECTS if aspect not in names]
    if missing:
        problem = f"has no human score {', '.join(missing)}; it has: {', '.join(sorted(names)) or 'none'}"
        raise DataError(f"{data.name} {problem}. Give SummEval's model_annotations.aligned.jsonl")
    places = {name: k for k, name in enumerate(dict.fromkeys(entry.document or entry.id for entry in data.entries))}
    size = -(-len(places) // count)
    split = [places[entry.document or entry.id] // size for entry in data.entries]
    entries = [
        replace(entry, extra={**entry.extra, SPLIT: number}) for entry, number in zip(data.entries, split, strict=True)
    ]
    return replace(data, entries=tuple(entries))


@dataclass(frozen=True, slots=True)
class _Instance:
    """A document: its reference summaries, and the summary of each system."""

    instance_id: str
    references: tuple[str, ...]
    systems: dict[str, str]


def _entries(scores: str | Path, instances: Mapping[str, _Instance], texts: str) -> Iterator[Entry]:
    reader = csv.DictReader(lines_of(scores), restval="")
    columns = ["instance_id", "system", SPLIT, *(f"expert_{aspect}_raw" for aspect in ASPECTS)]
    missing = [name for name in columns if name not in (reader.fieldnames or ())]
    if missing:
        raise DataError(f"has no column {', '.join(missing)}", file=str(scores), line=1)
    try:
        rows = list(reader)
    except csv.Error as error:
        raise DataError(f"cannot be read as a table: {error}", file=str(scores)) from error
    for number, row in enumerate(rows, start=2):
        name, system = row["instance_id"], row["system"]
        if name not in instances or system not in instances[name].systems:
            raise DataError(f"{texts} has no text of {system} for {name}", file=str(scores), line=number)
        human = {aspect: _mean(row[f"expert_{aspect}_raw"], str(scores), number) for aspect in ASPECTS}
        segment = Segment(instances[name].systems[system], references=instances[name].references)
        yield Entry(name, system, segment, human, document=name, extra={SPLIT: _split(row[SPLIT], str(scores), number)})


def _split(value: str, file: str, number: int) -> int:
    if not (value.isdecimal() and len(value) < _DIGITS):
        raise DataError(f"{SPLIT} is {value[:60]!r}, expected a whole number", file=file, line=number)
    return int(value)


def _mean(ratings: str, file: str, number: int) -> float:
    try:
        values = [float(rating) for rating in ratings.split("|")]
    except ValueError:
        values = [math.nan]
    if not all(map(math.isfinite, values)):
        raise DataError(f"cannot read the ratings {ratings!r}: expected numbers with | between", file=file, line=number)
    return math.fsum(values) / len(values)


@dataclass(frozen=True, kw_only=True)
class SummevalSettings(TestedSettings, Seeded):
    """What `bmx_summeval` takes."""

    TITLE: ClassVar[str] = "splits"

    rules: tuple[Rule, ...] | None = option(None, "rules to compare (default: all; that of --rule or --mode)")
    criterion: Criterion | None = option(
        None, "coefficients that p and w are chosen by, at the system level (default: both; kendall with --mode paper)"
    )
    resamples: int = option(999, "permutations behind each p-value; 0: none", metavar="N", least=0)

    @property
    def compared(self) -> tuple[Rule, ...]:
        """The rules that are compared."""
        if self.rule or (self.rules is None and self.mode != "default"):
            return (self.search.rule,)
        return self.rules or RULES

    @property
    def fitted(self) -> tuple[str, ...]:
        """The coefficients that p and w are chosen by."""
        named = self.criterion or ("kendall" if self.mode == "paper" else "both")
        return COEFFICIENTS if named == "both" else COEFFICIENTS[:1]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was chosen, for the output."""
        criterion = f"p and w are chosen by system-level {' and '.join(self.fitted)} of the four aspects"
        over = f"corrected: {self.testing.correction} over the splits, for each aspect and coefficient"
        return criterion, f"{over}; {self.testing.name}", *self.choices("the splits of an aspect and coefficient")


@dataclass(frozen=True, repr=False)
class SummevalRun(Run):
    """The tables of a run folder, and the means over splits and aspects."""

    folder: RunFolder
    means: list["Summary"]
    aspects: list["Aspect"]
    notes: tuple[str, ...] = ()

    def tables(self, *, long: bool = False) -> list[Table]:
        means = Table(_HEAD, tuple(tuple(row) for row in self.means), notes=self.notes, decimals=4)
        return [means] if long else [means, self.by_aspect()]

    def by_aspect(self) -> Table:
        """Return the paper's Table 3: aspects and coefficients, each with the splits that gain significantly."""
        cells = {(aspect.source, aspect.rule, aspect.aspect, aspect.coefficient): aspect for aspect in self.aspects}
        measures = [(aspect, coefficient) for aspect in ASPECTS for coefficient in COEFFICIENTS]
        first = self.aspects[0]
        before = [cells[first.source, first.rule, *measure].before for measure in measures]
        rows: list[tuple[Cell, ...]] = [("original", "-", *(f"{value:.3f}" for value in (*before, np.mean(before))))]
        for source, rule in dict.fromkeys((aspect.source, aspect.rule) for aspect in self.aspects):
            row_cells = [cells[source, rule, *measure] for measure in measures]
            mean = f"{np.mean([cell.after for cell in row_cells]):.3f}"
            shown = (f"{cell.after:.3f} ({cell.significant}/{cell.surviving})" for cell in row_cells)
            rows.append((source, rule, *shown, mean))
        short = {"kendall_b": "tau", "spearman": "rho"}
        columns = ("source", "rule", *(f"{aspect} {short[name]}" for aspect, name in measures), "average")
        notes = ("in brackets: splits with p <= .05, and of these those that survive the correction",)
        return Table(columns, tuple(rows), notes=notes)

    def summary(self) -> Iterator[str]:
        """Yield a sentence for every explainer and rule that is no better than the original or the controls."""
        yield "means over four aspects and over the splits, each judged on the documents it was not fitted on"
        for row in self.means[1:]:
            if row.source in CONTROLS:
                continue
            controls = [mean.kendall_gain for mean in self.means if mean.rule == row.rule and mean.source in CONTROLS]
            if not row.kendall_gain > 0:
                yield f"{row.source}, {row.rule}: boosting does not help here (Kendall {row.kendall_gain:+.4f})"
            elif row.kendall_gain <= max(controls):
                yield f"{row.source}, {row.rule}: {row.kendall_gain:+.4f} is not distinguishable from length/noise"

    def figures(self) -> Iterator[Figure]:
        """Yield choices, counts and costs."""
        from whyscore.report.figures import boost as figure  # noqa: PLC0415 - an extra

        rows = self.folder.read("splits")
        names = ("source", "rule", "split", "p", "w")
        keys = dict.fromkeys(tuple(row[name] for name in names) for row in rows)
        outcomes = [
            {
                **row,
                "protocol": row["rule"],
                "setting": row["aspect"],
                "gain": _number(row, "after") - _number(row, "before"),
            }
            for row in rows
            if row["coefficient"] == COEFFICIENTS[0]
        ]
        choices = figure.choices([dict(zip(names, values, strict=True)) for values in keys])
        yield "choices", choices, "p and w as chosen on every split"
        yield "counts", figure.counts(outcomes), "Splits and aspects that got better or worse (Kendall), by rule"
        yield "costs", figure.costs(self.folder.read("costs")), "Texts scored and seconds by explainer"


def _number(row: Mapping[str, object], name: str) -> float:
    return float(cast("float", row[name]))


@takes(SummevalSettings)
def bmx_summeval(
    data: Dataset,
    metric: MetricLike,
    explainers: Sequence[str] = ("erasure",),
    *,
    output: str | Path,
    settings: SummevalSettings,
    resources: Resources = LOCAL,
) -> SummevalRun:
    """Return what every explainer and rule did on every split of `read_summeval`, written to a folder."""
    data, folder = sort_entries(data), RunFolder.make(output, "bmx-summeval")
    rows: list[Split] = []
    costs: list[Row] = []
    for explained, cost_row in explain_by_each(
        folder, data, metric, explainers, seed=settings.seed, resources=resources
    ):
        costs.append(cost_row)
        rows += splits(explained, settings)
    unique = list(dict.fromkeys(rows))  # the length control is the same for every explainer
    method = settings.testing.correction
    means, aspects = summaries(unique, method), aspect_rows(unique, method)
    about = {"criterion": list(settings.fitted), "mode": settings.mode, **settings.testing._asdict()}
    folder.write("splits", [row._asdict() for row in unique], **about)
    folder.write("summary", [row._asdict() for row in means], **about)
    folder.write("aspects", [row._asdict() for row in aspects], **about)
    folder.write("costs", costs)
    return SummevalRun(folder, means, aspects, settings.notes)


def splits(explained: Explained, how: SummevalSettings, controls: Sequence[str] = CONTROLS) -> Iterator[Split]:
    """Yield what every source and rule did on every split, then what the controls did."""
    search = how.search
    main, *others = sources_of(explained, search)
    number = np.array([entry.extra[SPLIT] for entry in explained.data.entries])
    human = {aspect: explained.data.human(aspect) for aspect in ASPECTS}
    for source in (main, *(other for other in others if other.name in controls)):
        for rule in how.compared:
            for split in np.unique(number).tolist():
                fitted, rest = np.flatnonzero(number == split), np.flatnonzero(number != split)
                question = Question.of(_settings(human, fitted, how.fitted), search, rule)
                choice = question.choose(source, question.settings)
                votes = sum(question.counts(source.material, setting) for setting in question.settings)
                values = source.mix(choice, fitted)
                for setting in _settings(human, rest, COEFFICIENTS):
                    p_value = None
                    if choice.boosted and how.resamples:
                        comparison = source.material, setting, values
                        p_value = gain_p(*comparison, n=how.resamples, seed=how.seed, testing=how.testing)
                    yield _row(source, setting, rule, split, len(fitted), votes, choice, values, p_value)


def _settings(human: Mapping[str, FloatVector], rows: IntVector, coefficients: Sequence[str]) -> Iterator[Setting]:
    for coefficient in coefficients:
        for aspect, scores in human.items():
            yield Setting(f"{aspect} {coefficient}", "", aspect, coefficient, "system", rows, scores)


def _row(  # noqa: PLR0917 - the columns of one row
    source: Source, setting: Setting, rule: str, split: int, fitted: int, votes: int, choice: Choice,
    values: FloatVector, p_value: float | None,
) -> Split:  # fmt: skip
    agreement = setting.at(source.material)
    after = agreement.correlation(values) if choice.boosted else agreement.before
    return Split(
        source.name, rule, split, setting.human_name, setting.coefficient, fitted, agreement.n, votes,
        choice.p, choice.w, choice.shrinkage, agreement.before, after, p_value,
    )  # fmt: skip


class Summary(NamedTuple):
    """The means over splits and aspects for one source and rule."""

    source: str
    rule: str
    kendall: float
    spearman: float
    kendall_gain: float
    spearman_gain: float
    p: float
    """Mean over the splits that were boosted; with the mean w this is the choice for other data sets."""
    w: float
    boosted: int
    """Splits on which anything but the original metric was chosen."""
    significant: int
    """Tests (split x aspect, Kendall) with p <= .05."""
    surviving: int
    """Of these, those that survive the correction over the splits of each aspect."""
    spearman_significant: int
    spearman_surviving: int


class Aspect(NamedTuple):
    """The means over the splits for one source, rule, aspect and coefficient."""

    source: str
    rule: str
    aspect: str
    coefficient: str
    before: float
    after: float
    gain: float
    significant: int
    """Splits with p <= .05."""
    surviving: int
    """Splits that survive the correction over the splits."""


def aspect_rows(rows: Sequence[Split], correction: str = "holm") -> list[Aspect]:
    """Return one row per source, rule, aspect and coefficient: the cells of the paper's Table 3."""
    cells: dict[tuple[str, str, str, str], list[Split]] = {}
    for row in rows:
        cells.setdefault((row.source, row.rule, row.aspect, row.coefficient), []).append(row)
    aspects = []
    for names, cell in cells.items():
        before, after = (float(np.mean([getattr(row, name) for row in cell])) for name in ("before", "after"))
        aspects.append(Aspect(*names, before, after, after - before, *_counts(cell, correction)))
    return aspects


def _counts(rows: Sequence[Split], correction: str) -> tuple[int, int]:
    """Return on how many splits the gain is significant, before and after the correction over the splits.

    A split that was not boosted has no gain; it counts as a test all the same.
    """
    values = [1.0 if row.p_value is None else row.p_value for row in rows]
    return sum(value <= _ALPHA for value in values), correct_p(correction, values, _ALPHA).rejections


def summaries(rows: Sequence[Split], correction: str = "holm") -> list[Summary]:
    """Return one row per source and rule, the original metric first."""
    first = [row for row in rows if (row.source, row.rule) == (rows[0].source, rows[0].rule)]
    before = [_mean_of(first, name, "before") for name in COEFFICIENTS]
    result = [Summary("original", "-", before[0], before[1], 0.0, 0.0, float("nan"), 1.0, 0, 0, 0, 0, 0)]
    aspects = aspect_rows(rows, correction)
    for source, rule in dict.fromkeys((row.source, row.rule) for row in rows):
        members = [row for row in rows if (row.source, row.rule) == (source, rule)]
        after = [_mean_of(members, name, "after") for name in COEFFICIENTS]
        boosted = len({row.split for row in members if row.w < 1})
        powers = [row.p for row in members if row.w < 1]
        choice = (float(np.mean(powers)) if powers else float("nan"), float(np.mean([row.w for row in members])))
        counts = [
            sum(
                getattr(aspect, name)
                for aspect in aspects
                if (aspect.source, aspect.rule, aspect.coefficient) == (source, rule, c)
            )
            for c in COEFFICIENTS
            for name in ("significant", "surviving")
        ]
        gains = (after[0] - before[0], after[1] - before[1])
        result.append(Summary(source, rule, after[0], after[1], *gains, *choice, boosted, *counts))
    return result


def _mean_of(rows: Sequence[Split], coefficient: str, name: Literal["before", "after"]) -> float:
    return float(np.mean([getattr(row, name) for row in rows if row.coefficient == coefficient]))
