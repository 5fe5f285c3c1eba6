"""Calibrate on some data sets, evaluate on others: the main protocol of BMX (Leiter, Nguyen and Eger 2022).

1. A setting is a data set, a language pair, a human score and a measure (a coefficient at a level). Every data set is
   explained once per metric and explainer.
2. p and w are chosen by the rule from all settings of the calibration data sets. With `splits`, they are chosen on each
   of that many blocks of documents, and their means are taken (the paper's choice for RealSumm).
3. The choice is judged in every setting of the other data sets, original beside boosted, and tested by permute-both.
4. p-values are corrected over all tests of a base metric; translation and summarisation are families of their own.
5. `iterations`: the boosted metric takes the place of the original, is explained, calibrated and judged again.
6. `fine_tune` (Figure 3): a regression head on the metric's own network. Its encoder reads the hypothesis and the text
   it is compared with (the source where the metric reads it, else the first reference). The means of their vectors, u
   and v, give [u, v, |u - v|, u * v]; a linear head predicts the human score, standardised in each setting. Head and
   network are trained together on the calibration data (squared error, AdamW, batches in random order), and judged the
   same way. The paper leaves open the head, the pooling and all hyper-parameters; texts are cut at the network's limit.

The controls `length` and `random` go the same way as an explainer. Where the paper names the measures of a data set
(`MEASURES`), these are taken; the name of the data set tells.
"""

import copy
import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, cast

import numpy as np

from whyscore.aggregate import Bags
from whyscore.analysis.boost import boosted
from whyscore.analysis.calibrate import (
    LENGTH,
    RANDOM,
    AgreementSettings,
    Calibration,
    Choice,
    Explained,
    JudgingSettings,
    Question,
    Setting,
    Source,
    calibration_of,
    input_digest,
    join_datasets,
    material_from,
    outcome,
    possible_settings,
    sort_entries,
    sources_of,
    with_test,
)
from whyscore.analysis.common import MetricLike, as_metric, requested_name, with_languages
from whyscore.data.formats.summaries import ASPECTS
from whyscore.errors import DataError, SpecError, UserError
from whyscore.experiments.bmx.study import Figure, Run, RunFolder, explain_in, grid_rows, plain_name
from whyscore.models.encoders.stacks import Source as NetworkSource
from whyscore.models.encoders.stacks import Stack, source, stack
from whyscore.models.pairs import Row, RowCoder, as_tensors
from whyscore.protocols import Metric, SupportsModel
from whyscore.registry import spec_of
from whyscore.scoring.stack import LOCAL, Resources, describe_needs, needs
from whyscore.settings import again, option, takes
from whyscore.stats.coefficients import coefficient_of
from whyscore.stats.correction import correct_p
from whyscore.stats.matrices import is_human, level_of
from whyscore.text.randomness import generator
from whyscore.types import Dataset, FloatVector, Inputs, IntVector, Segment
from whyscore.types.data import natural_order
from whyscore.types.result import Cell, Mark, Record, Table

Task = Literal["translation", "summarisation"]

MEASURES: Mapping[str, tuple[str, ...]] = {
    "summeval": ("kendall@system", "spearman@system"),
    "realsumm": ("kendall@system", "pearson@global"),
    "wmt17": ("pearson@global",),
    "mlqe": ("pearson@global",),
    "eval4nlp": ("pearson@global",),
    "wmt22": ("spearman@global",),
    "mqm": ("kendall@system", "kendall@global"),
}
"""How the paper measures agreement on each data set; others get `pearson@global`."""

_CHOOSING = {"summeval": ("kendall@system",)}
_USUAL = ("pearson@global",)
_SUMMARIES = ("summeval", "realsumm")
_PAIRS = ("lp", "lang_pair")
_BLOCKS = 8
_ALPHA = 0.05
_BATCH = 16
_HEAD = ("data", "pair", "human", "measure", "metric")


@dataclass(frozen=True, kw_only=True)
class TransferSettings(JudgingSettings):
    """What `bmx` takes."""

    TITLE: ClassVar[str] = "agreement with human scores"

    human: tuple[str, ...] | None = option(
        None,
        "human scores, as COLUMN or DATA:COLUMN (default: the only one, or the four aspects of SummEval)",
        metavar="COLUMN",
        basic=True,
    )
    group: str | None = again(
        AgreementSettings, "group", help="column whose values divide the data (default: the language pair)"
    )
    measure: tuple[str, ...] = option(
        (),
        "COEFFICIENT@LEVEL or DATA:COEFFICIENT@LEVEL (default: the paper's for its data sets, else pearson@global)",
        metavar="NAME",
        basic=True,
    )
    drop: tuple[str, ...] = option(
        (), "leave data sets with these names out of the calibration", metavar="NAME", basic=True
    )
    splits: int | None = option(
        None,
        "choose p and w on each of N blocks of documents and take their means (default: 8 for summaries with --mode "
        "paper, else 1)",
        metavar="N",
        least=1,
    )
    iterations: int = option(1, "how often the boosted metric takes the place of the original", metavar="N", least=1)
    controls: bool = option(True, "no length and random controls", flags=("--no-controls",))
    fine_tune: bool = option(False, "also fine-tune the metric's network with a regression head (Figure 3)", basic=True)
    fine_tune_epochs: int = option(3, "passes over the calibration data", metavar="N", least=1)
    fine_tune_rate: float = option(2e-5, "learning rate of fine-tuning", metavar="RATE", least=1e-9)
    allow_overlap: bool = option(False, "evaluate also on inputs that were calibrated on; the gains are too optimistic")
    level: str = again(AgreementSettings, "level", line=False)
    coefficient: tuple[str, ...] = again(AgreementSettings, "coefficient", line=False)


class Measure(NamedTuple):
    """A coefficient at a level."""

    coefficient: str
    level: str

    @classmethod
    def parse(cls, text: str) -> "Measure":
        """Return the measure that a text such as `kendall@system` names."""
        coefficient, sign, level = text.partition("@")
        if not sign:
            raise UserError(f"cannot read the measure {text!r}: write COEFFICIENT@LEVEL, for example kendall@system")
        return cls(coefficient_of(coefficient), level_of(level))

    def __str__(self) -> str:
        return f"{self.coefficient}@{self.level}"


class Subject(NamedTuple):
    """A data set, with what is asked about it."""

    data: Dataset
    kind: str
    """The data set of the paper that it is, or its own name."""
    task: Task
    human: tuple[str, ...]
    measures: tuple[Measure, ...]
    pairs: tuple[str, ...]
    """The language pair of each entry, or its value in the column that was named."""

    def lacks(self, metric: Metric) -> str:
        """Return what a metric needs and some entry does not have, in words, or nothing."""
        inputs, segments = needs(metric), self.data.segments
        source = Inputs.SOURCE in inputs and any(segment.source is None for segment in segments)
        references = Inputs.REFERENCES in inputs and any(not segment.references for segment in segments)
        return describe_needs(metric) if source or references else ""


class Placed(NamedTuple):
    """A setting, and where it comes from."""

    setting: Setting
    subject: Subject
    pair: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """What boosting did in one setting: correlation before and after, and the test of the difference."""

    data: str
    pair: str
    human: str
    coefficient: str
    level: str
    task: Task
    metric: str
    source: str
    """The explainer, or a control: `length`, `random`."""
    iteration: int
    n: int
    p: float
    w: float
    before: float
    after: float
    gain: float
    p_value: float | None = None
    adjusted: float | None = None

    @property
    def measure(self) -> str:
        """The measure, in one word."""
        return f"{self.coefficient}@{self.level}"

    @property
    def row(self) -> tuple[str, ...]:
        """The row of the table that this belongs to."""
        return self.data, self.pair, self.human, self.measure, self.metric

    @property
    def column(self) -> str:
        """The column of the table that this belongs to."""
        return self.source if self.iteration == 1 else f"{self.source} {self.iteration}"

    @property
    def marks(self) -> frozenset[Mark]:
        """Whether it is above the original, significantly so, and after correction."""
        conditions: dict[Mark, bool] = {
            "higher": self.gain > 0,
            "significant": self.p_value is not None and self.p_value <= _ALPHA,
            "corrected": self.adjusted is not None and self.adjusted <= _ALPHA,
        }
        return frozenset(mark for mark, holds in conditions.items() if holds)


class Chosen(NamedTuple):
    """What was chosen for a metric and an explainer."""

    metric: str
    source: str
    iteration: int
    p: float
    w: float
    improving: int
    """Configurations above epsilon, over all settings."""
    settings: int
    degenerate: float
    file: str


@dataclass(frozen=True, repr=False)
class TransferRun(Run):
    """The tables of a run folder: every judgement, the averages, what was chosen."""

    folder: RunFolder
    judgements: tuple[Judgement, ...]
    chosen: tuple[Chosen, ...]
    notes: tuple[str, ...]
    left_out: tuple[str, ...]
    """Settings that could not be judged, and why."""

    def records(self) -> Iterator[Record]:
        for judgement in self.judgements:
            yield asdict(judgement)

    def display_tables(self) -> list[Table]:
        choices = Table(Chosen._fields, tuple(tuple(choice) for choice in self.chosen), title="Calibrations")
        return [self.results(), choices]

    def results(self) -> Table:
        """Return original beside boosted: one row per setting and metric, and the mean of each data set below."""
        cells: dict[tuple[str, ...], dict[str, Judgement]] = {}
        for judgement in self.judgements:
            cells.setdefault(judgement.row, {})[judgement.column] = judgement
        sources = tuple(dict.fromkeys(judgement.column for judgement in self.judgements))
        columns = (*_HEAD, "n", "original", *sources)
        rows: list[tuple[Cell, ...]] = []
        marks: dict[tuple[int, str], frozenset[Mark]] = {}
        for names, cell in cells.items():
            marks |= {(len(rows), source): cell[source].marks for source in cell}
            first = next(iter(cell.values()))
            rows.append(
                (*names, first.n, first.before, *(cell[source].after if source in cell else None for source in sources))
            )
        for names, means in self._averages(cells, sources):
            marks |= {
                (len(rows), source): frozenset[Mark]({"higher"}) for source in sources if means[source] > means[""]
            }
            rows.append((*names, None, means[""], *(means[source] for source in sources)))
        return Table(columns, tuple(rows), marks=marks, notes=self.notes)

    @staticmethod
    def _averages(
        cells: Mapping[tuple[str, ...], Mapping[str, Judgement]], sources: Sequence[str]
    ) -> Iterator[tuple[tuple[str, ...], dict[str, float]]]:
        """Yield the mean over the pairs and human scores of each kind of data set, measure and metric."""
        groups: dict[tuple[str, str, str], list[Mapping[str, Judgement]]] = {}
        for (data, _, _, measure, metric), cell in cells.items():
            groups.setdefault((kind_of(data), measure, metric), []).append(cell)
        for (kind, measure, metric), members in groups.items():
            if len(members) > 1:
                means = {"": float(np.mean([next(iter(cell.values())).before for cell in members]))}
                for source in sources:
                    means[source] = float(
                        np.mean([cell[source].after if source in cell else np.nan for cell in members])
                    )
                yield (kind, "average", "", measure, metric), means

    def summary(self) -> Iterator[str]:
        """Yield the mean gain of every metric and explainer, beside the controls."""
        yield from (f"note: {note}" for note in self.left_out)
        for metric in dict.fromkeys(judgement.metric for judgement in self.judgements):
            judgements = [judgement for judgement in self.judgements if judgement.metric == metric]
            columns = dict.fromkeys(judgement.column for judgement in judgements)
            gains = {
                name: float(np.mean([judgement.gain for judgement in judgements if judgement.column == name]))
                for name in columns
            }
            controls = {name: gains[name] for name in (LENGTH, RANDOM) if name in gains}
            shown = ", ".join(f"{name} {gain:+.4f}" for name, gain in controls.items())
            for name in (gain for gain in gains if gain not in controls):
                tested = [judgement for judgement in judgements if judgement.column == name]
                sure = sum("corrected" in judgement.marks and judgement.gain > 0 for judgement in tested)
                beside = f" (controls: {shown})" if shown else ""
                sentence = f"{metric}, {name}: mean gain {gains[name]:+.4f}{beside}"
                if gains[name] > 0 and any(gains[name] <= gain for gain in controls.values()):
                    sentence += "; not distinguishable from length/noise"
                yield f"{sentence}; significant after correction in {sure} of {len(tested)} settings"

    def figures(self) -> Iterator[Figure]:
        """Yield box plots of the p and w that gain, curves, and original against boosted."""
        from whyscore.report.figures import boost as figure  # noqa: PLC0415 - an extra

        grids = {choice.file: self.folder.read(f"grid_{number}") for number, choice in enumerate(self.chosen)}
        for number, choice in enumerate(self.chosen):
            about = f"{choice.metric}, {choice.source}"
            yield f"curves_{number}", figure.curves(grids[choice.file]), f"Correlation over p for each w: {about}"
        for number, metric in enumerate(dict.fromkeys(choice.metric for choice in self.chosen)):
            rows = [row for choice in self.chosen if choice.metric == metric for row in grids[choice.file]]
            epsilon = float(cast("float", self.folder.head("grid_0").get("epsilon", 0.0)))
            yield f"improving_{number}", figure.improving(rows, epsilon), f"The p and w that gain: {metric}"
        stored = zip(self.judgements, self.folder.read("judgements"), strict=True)
        rows = [
            {**row, "source": judgement.column, "protocol": judgement.metric, "setting": " ".join(judgement.row[:4])}
            for judgement, row in stored
        ]
        yield "settings", figure.settings(rows), "Original (black) and boosted correlation in every setting"
        yield "counts", figure.counts(rows), "Settings that got better or worse"
        if any(judgement.source == FINE_TUNED for judgement in self.judgements):
            compared = [row for row in rows if row["source"] not in (LENGTH, RANDOM)]
            yield "fine_tuning", figure.bars(compared), "Original, boosted and fine-tuned: mean correlation by data set"


@takes(TransferSettings)
def bmx(
    calibrate: Sequence[Dataset],
    evaluate: Sequence[Dataset],
    metrics: Sequence[MetricLike],
    explainers: Sequence[str] = ("erasure",),
    *,
    output: str | Path,
    settings: TransferSettings,
    resources: Resources = LOCAL,
) -> TransferRun:
    """Return what boosting does on some data sets with p and w from others, written to a folder.

    Args:
        calibrate: judged data sets that p and w are chosen on.
        evaluate: judged data sets that the choice is judged on.
        metrics: specs, metrics or functions.
        explainers: what gives words their importance.
        output: the folder of the run; explanations in it are not made again.
        settings: human scores, measures, rule, tests.
        resources: store, executor and progress.
    """
    calibrate, evaluate = [[_sort_groups(data, settings.group) for data in sets] for sets in (calibrate, evaluate)]
    fitting = [data for data in calibrate if not any(name.lower() in data.name.lower() for name in settings.drop)]
    if not (fitting and evaluate and metrics):
        raise UserError("nothing to do: name data sets to --calibrate and to --evaluate, and metrics with -m")
    fitted = subjects_of(fitting, settings, choosing=True)
    evaluated = subjects_of(evaluate, settings)
    _refuse_overlap(fitting, evaluate, settings)
    for metric in metrics:
        _refuse_unusable(as_metric(metric), {"calibrate": fitted, "evaluate": evaluated})
        if settings.fine_tune:
            check_network(as_metric(metric))
    study = _Study(fitted, evaluated, RunFolder.make(output, "bmx"), settings, resources)
    controls = [name for name in (LENGTH, RANDOM) if settings.controls and name not in explainers]
    controls += [FINE_TUNED] * settings.fine_tune
    for metric in metrics:
        for number, explainer in enumerate(explainers):
            study.run(metric, explainer, () if number else controls)
    return study.finish()


def subjects_of(
    datasets: Sequence[Dataset], settings: TransferSettings, *, choosing: bool = False
) -> tuple[Subject, ...]:
    """Return what is asked about each data set; those without the human scores that were named are refused."""
    lacking = [data for data in datasets if not _human_of(data, settings)]
    if lacking:
        available = "; ".join(f"{data.name} has {', '.join(_scores_of(data)) or 'none'}" for data in datasets)
        first = lacking[0].name
        raise DataError(f"{first}: no human score was named. {available}. Say --human '{first}:COLUMN'")
    subjects = []
    for given_data in datasets:
        data = replace(given_data, entries=tuple(entry for entry in given_data.entries if not is_human(entry.system)))
        kind = kind_of(data.name)
        task: Task = "summarisation" if kind in _SUMMARIES else "translation"
        measures = _measures_of(data.name, settings, choosing=choosing)
        subjects.append(Subject(data, kind, task, _human_of(data, settings), measures, _pairs_of(data, settings.group)))
    return tuple(subjects)


def kind_of(name: str) -> str:
    """Return the data set of the paper that a name or path stands for, or the name itself.

    >>> kind_of("eval4nlp2021/dev/et-en"), kind_of("my_test")
    ('eval4nlp', 'my_test')
    """
    for part in reversed(PurePath(name).parts):
        for kind in MEASURES:
            if kind in part.lower():
                return kind
    return name


def _scores_of(data: Dataset) -> list[str]:
    return sorted({name for entry in data.entries for name in entry.human})


def _split_named(texts: Sequence[str], data: str) -> tuple[list[str], list[str]]:
    """Return what was given for one data set (DATA:VALUE), and what was given for all."""
    specific, shared = [], []
    for text in texts:
        name, sign, value = text.rpartition(":")
        if not sign:
            shared.append(text)
        elif data in (name, PurePath(name).name, PurePath(name).stem) or name.lower() == kind_of(data):
            specific.append(value)
    return specific, shared


def _human_of(data: Dataset, settings: TransferSettings) -> tuple[str, ...]:
    """Return the human scores of a data set that are judged: its own, the shared ones it has, or its only one."""
    available = _scores_of(data)
    specific, shared = _split_named(settings.human or (), data.name)
    wrong = [name for name in specific if name not in available]
    if wrong:
        raise DataError(f"{data.name} has no human score {wrong[0]!r}; it has: {', '.join(available) or 'none'}")
    if specific:
        return tuple(specific)
    if not shared:
        aspects = tuple(name for name in ASPECTS if name in available)
        return aspects or (tuple(available) if len(available) == 1 else ())
    return tuple(name for name in shared if name in available)


def _measures_of(name: str, settings: TransferSettings, *, choosing: bool) -> tuple[Measure, ...]:
    specific, shared = _split_named(settings.measure, name)
    kind = kind_of(name)
    usual = (_CHOOSING.get(kind) if choosing else None) or MEASURES.get(kind, _USUAL)
    return tuple(Measure.parse(text) for text in specific or shared or usual)


def _pairs_of(data: Dataset, group: str | None) -> tuple[str, ...]:
    if group is not None and not any(group in entry.extra for entry in data.entries):
        available = sorted({name for entry in data.entries for name in entry.extra})
        raise DataError(f"{data.name} has no column {group!r} to group by; it has: {', '.join(available) or 'none'}")
    whole = "-".join(data.languages) if data.languages else ""
    pairs = []
    for entry in data.entries:
        columns = [group] if group is not None else [name for name in entry.extra if name.lower() in _PAIRS][:1]
        pairs.append(str(entry.extra[columns[0]]) if columns and columns[0] in entry.extra else whole)
    return tuple(pairs)


def _sort_groups(data: Dataset, group: str | None) -> Dataset:
    """Return the entries sorted, because sums go by their order; language pairs stay in the order of the data."""
    rank = {name: number for number, name in enumerate(dict.fromkeys(_pairs_of(data, group)))}
    whole = sort_entries(data)
    pairs = _pairs_of(whole, group)
    return whole.take(sorted(range(len(whole)), key=lambda k: rank[pairs[k]]))


def _refuse_overlap(calibrate: Sequence[Dataset], evaluate: Sequence[Dataset], settings: TransferSettings) -> None:
    if settings.allow_overlap:
        return
    digests = {input_digest(segment) for data in calibrate for segment in data.segments}
    for data in evaluate:
        shared = sum(input_digest(segment) in digests for segment in data.segments)
        if shared:
            raise DataError(
                f"{shared} of {len(data)} segments of {data.name} are also in the calibration data: their gains would "
                "look larger than they are. Use other data, or --allow-overlap"
            )


def _refuse_unusable(metric: Metric, groups: Mapping[str, Sequence[Subject]]) -> None:
    """Refuse a metric that none of the data sets has the texts for."""
    for role, subjects in groups.items():
        if all(subject.lacks(metric) for subject in subjects):
            named = ", ".join(subject.data.name for subject in subjects)
            raise UserError(
                f"{metric.signature().spec} needs {subjects[0].lacks(metric)}, which no data set to {role} has: {named}"
            )


class _Study:
    """The work on all metrics and explainers, and what came of it."""

    def __init__(
        self,
        fitted: tuple[Subject, ...],
        judged: tuple[Subject, ...],
        folder: RunFolder,
        settings: TransferSettings,
        resources: Resources,
    ) -> None:
        self.fitted, self.judged, self.folder, self.settings = fitted, judged, folder, settings
        self.resources = resources
        self.judgements: list[Judgement] = []
        self.chosen: list[Chosen] = []
        self.left_out: list[str] = []

    def run(self, metric: MetricLike, explainer: str, controls: Sequence[str]) -> None:
        """Calibrate and judge a metric with an explainer, iteration by iteration."""
        name, current = requested_name(metric), as_metric(metric)
        for iteration in range(1, self.settings.iterations + 1):
            calibration = self._round(name, current, explainer, iteration, () if iteration > 1 else controls)
            if not calibration.boosted:
                more = self.settings.iterations > iteration
                self.left_out += [f"{name}, {explainer}: w = 1, so that another iteration adds nothing"] * more
                return
            current = boosted(current, calibration=calibration, on_empty="score")

    def _round(self, name: str, metric: Metric, explainer: str, iteration: int, controls: Sequence[str]) -> Calibration:
        """Explain, calibrate and judge once, the controls too."""
        usable = [
            [subject for subject in group if not self._must_skip(subject, metric, name)]
            for group in (self.fitted, self.judged)
        ]
        parts = {
            id(subject): self._explain(subject, metric, explainer, iteration) for group in usable for subject in group
        }
        fitted, placed = self._pool(usable[0], parts)
        every, all_placed = self._pool([*usable[0], *usable[1]], parts)
        evaluation = [
            placement for placement in all_placed if any(placement.subject is subject for subject in usable[1])
        ]
        for role, there in (("calibrate", placed), ("evaluate", evaluation)):
            if not there:
                raise DataError(f"nothing to {role} {name} on: {'; '.join(self.left_out[-5:])}")
        question = Question.of((placement.setting for placement in placed), self.settings.search)
        main, *others = sources_of(every._replace(explainer=fitted.explainer), self.settings.search)
        choice = self._choose(main, question)
        self._judge(main, choice, question, evaluation, (name, iteration))
        for control in others:
            if control.name in controls:
                self._judge(control, self._choose(control, question), question, evaluation, (name, iteration))
        if FINE_TUNED in controls:
            self._fine_tune(replace(main, name=FINE_TUNED), metric, every.data, question, evaluation)
        return self._calibrate(fitted._replace(metric=metric), question, choice, (name, iteration))

    def _fine_tune(
        self, source: Source, metric: Metric, data: Dataset, question: Question, placements: Sequence[Placed]
    ) -> None:
        """Add what the fine-tuned network does; human scores are standardised in each setting."""
        segments, examples = data.segments, []
        for setting in {
            (setting.rows.tobytes(), setting.human_name): setting for setting in question.settings
        }.values():
            human = setting.human[setting.rows]
            values = (human - human.mean()) / (human.std() or 1.0)
            examples += [(segments[k], float(value)) for k, value in zip(setting.rows, values, strict=True)]
        how = self.settings
        training = Training(how.fine_tune_epochs, how.fine_tune_rate, _BATCH, how.seed)
        values = fine_tune(metric, examples, segments, training)
        self._judge_values(source, Choice(float("nan"), float("nan")), values, placements, (requested_name(metric), 1))

    def _calibrate(self, fitted: Explained, question: Question, choice: Choice, work: tuple[str, int]) -> Calibration:
        """Return the calibration that a choice makes; it and its grid are written to the folder."""
        number, search = len(self.chosen), self.settings.search
        calibration = calibration_of(fitted, question, replace(self.settings, resamples=0), choice=choice)
        file = f"calibration_{number}.json"
        calibration.save(self.folder.path / file)
        grid = grid_rows(fitted, question.settings, search)
        self.folder.write(f"grid_{number}", grid, epsilon=search.epsilon, metric=work[0])
        improving = sum(setting.improving_more for setting in calibration.settings)
        about = (choice.p, choice.w, improving, len(question.settings), calibration.degenerate, file)
        self.chosen.append(Chosen(work[0], fitted.explainer, work[1], *about))
        return calibration

    def _must_skip(self, subject: Subject, metric: Metric, name: str) -> bool:
        lacking = subject.lacks(metric)
        if lacking:
            self.left_out.append(f"{subject.data.name} was left out for {name}, which needs {lacking}")
        return bool(lacking)

    def _explain(self, subject: Subject, metric: Metric, explainer: str, iteration: int) -> Explained:
        scorer = with_languages(metric, subject.data.languages)
        place = self.folder.path / "explanations" / plain_name(subject.data.name)
        part = RunFolder.make(place / f"{plain_name(metric.signature().spec)[:80]}_{iteration}", "bmx")
        return explain_in(part, subject.data, scorer, explainer, seed=self.settings.seed, resources=self.resources)

    def _pool(self, subjects: Sequence[Subject], parts: Mapping[int, Explained]) -> tuple[Explained, list[Placed]]:
        """Return all entries as one material, and the settings that can be judged in it."""
        explained = [parts[id(subject)] for subject in subjects]
        joined = _join_explained(explained)
        placed, start = [], 0
        for subject, part in zip(subjects, explained, strict=True):
            human = {name: subject.data.human(name) for name in subject.human}
            groups = [f"{subject.data.name} {pair}".strip() for pair in subject.pairs]
            pairs = dict(zip(groups, subject.pairs, strict=True))
            for measure in subject.measures:
                settings, notes = possible_settings(part.material, human, groups, measure.level, [measure.coefficient])
                self.left_out += [note for note in notes if note not in self.left_out]
                placed += [
                    Placed(_lift(setting, start, len(joined.material)), subject, pairs[setting.group])
                    for setting in settings
                ]
            start += len(part.material)
        return joined, placed

    def _choose(self, source: Source, question: Question) -> Choice:
        """Return what the rule chooses from all settings, or the mean of what it chooses on every block."""
        count = self.splits
        if count == 1:
            return question.choose(source, question.settings)
        blocks = {setting.name: _blocks(source, setting, count) for setting in question.settings}
        choices = [
            question.choose(
                source, [setting.on(setting.rows[blocks[setting.name] == k]) for setting in question.settings]
            )
            for k in range(count)
        ]
        powers = [choice.p for choice in choices if choice.boosted]
        weight = float(np.mean([choice.w for choice in choices]))
        return Choice(float(np.mean(powers)) if powers else float("nan"), weight)

    @property
    def splits(self) -> int:
        """The blocks of documents that p and w are chosen on."""
        summaries = all(subject.task == "summarisation" for subject in self.fitted)
        return self.settings.splits or (_BLOCKS if summaries and self.settings.mode == "paper" else 1)

    def _judge(
        self, source: Source, choice: Choice, question: Question, placements: Sequence[Placed], work: tuple[str, int]
    ) -> None:
        """Add what a choice does in every setting of the other data sets."""
        values = source.mix(choice, np.unique(np.concatenate([setting.rows for setting in question.settings])))
        self._judge_values(source, choice, values, placements, work)

    def _judge_values(
        self, source: Source, choice: Choice, values: FloatVector, placements: Sequence[Placed], work: tuple[str, int]
    ) -> None:
        """Add what scores in place of the original ones do in every setting of the other data sets."""
        how = self.settings
        for setting, subject, pair in placements:
            plain = outcome(source, setting, "cross-domain", values, choice)
            tested = with_test(
                plain, source.material, setting, values, n=how.resamples, seed=how.seed, testing=how.testing
            )
            where = (subject.data.name, pair, setting.human_name, setting.coefficient, setting.level, subject.task)
            numbers = (plain.before, plain.after, plain.gain)
            about = (work[0], source.name, work[1], plain.n, choice.p, choice.w)
            self.judgements.append(Judgement(*where, *about, *numbers, tested.p_value))

    def finish(self) -> TransferRun:
        """Return everything, with p-values corrected, written to the folder."""
        judgements = correct_judgements(self.judgements, self.settings.testing.correction)
        self.folder.write("judgements", [asdict(judgement) for judgement in judgements], mode=self.settings.mode)
        self.folder.write("chosen", [choice._asdict() for choice in self.chosen], splits=self.splits)
        left_out = tuple(dict.fromkeys(self.left_out))
        return TransferRun(self.folder, judgements, tuple(self.chosen), tuple(self._notes()), left_out)

    def _notes(self) -> Iterator[str]:
        testing = self.settings.testing
        yield "+ or blue: above the original; * or bold: p <= .05; ! or underlined: p <= .05 after correction"
        family = "all explainers and settings of a metric, translation and summarisation apart"
        if self.settings.mode == "default":
            yield (
                f"test: permute-both, {testing.name}, one-sided, {self.settings.resamples} resamples; correction "
                f"{testing.correction} over {family}"
            )
        datasets = [f"{subject.data.name} ({', '.join(map(str, subject.measures))})" for subject in self.fitted]
        yield f"calibrated on {'; '.join(datasets)}"
        if self.settings.fine_tune:
            yield (
                "fine-tuned: linear head on the means of the encoder's vectors, "
                f"{self.settings.fine_tune_epochs} epochs, learning rate {self.settings.fine_tune_rate:g}, "
                f"batches of {_BATCH}; the paper does not give its own"
            )
        if self.splits > 1:
            yield f"p and w: means of the choices on {self.splits} blocks of documents"
        if self.settings.drop:
            yield f"left out of the calibration: {', '.join(self.settings.drop)}"
        yield from self.settings.choices(family)


def _join_explained(parts: Sequence[Explained]) -> Explained:
    """Return explained data sets as one."""
    if not parts:
        raise DataError("no data set can be used with this metric: see the notes for what each lacks")
    data = join_datasets([part.data for part in parts])
    scores = np.concatenate([part.material.scores for part in parts])
    material = material_from(data, scores, _bags([part.material.bags for part in parts]))
    noise = material.with_bags(_bags([part.noise.bags for part in parts]))
    return parts[0]._replace(data=data, material=material, noise=noise)


def _bags(parts: Sequence[Bags]) -> Bags:
    return Bags(np.concatenate([part.values for part in parts]), np.concatenate([part.lengths for part in parts]))


def _lift(setting: Setting, start: int, total: int) -> Setting:
    """Return a setting of one data set as one of all data sets together."""
    human = np.full(total, np.nan)
    human[start : start + len(setting.human)] = setting.human
    return replace(setting, rows=setting.rows + start, human=human)


def _blocks(source: Source, setting: Setting, count: int) -> IntVector:
    """Return the block of each row of a setting: its documents in order, cut into that many blocks."""
    documents = np.unique(source.material.documents[setting.rows], return_inverse=True)[1]
    size = -(-(int(documents.max()) + 1) // count)
    return np.asarray(documents // size, dtype=np.int64)


def correct_judgements(judgements: Sequence[Judgement], method: str) -> tuple[Judgement, ...]:
    """Return the judgements with p-values corrected over a base metric and task; controls are families of their own."""
    result = list(judgements)
    families: dict[tuple[str, ...], list[int]] = {}
    for place, judgement in enumerate(judgements):
        if judgement.p_value is not None:
            control = judgement.source if judgement.source in (LENGTH, RANDOM) else ""
            families.setdefault((judgement.metric, judgement.task, control), []).append(place)
    for places in families.values():
        values = correct_p(method, [judgements[k].p_value or 0.0 for k in places]).adjusted
        for k, value in zip(places, values, strict=True):
            result[k] = replace(judgements[k], adjusted=value)
    return tuple(result)


def spread(data: Dataset, limit: int | None, group: str | None = None) -> Dataset:
    """Return at most that many segments of each language pair, spread evenly over their ids."""
    if limit is None:
        return data
    if limit < 1:
        raise SpecError(f"limit is {limit}, expected 1 or more")
    ids: dict[str, dict[str, None]] = {}
    for entry, pair in zip(data.entries, _pairs_of(data, group), strict=True):
        ids.setdefault(pair, {})[entry.id] = None
    sample = {
        (pair, names[int(k)])
        for pair, members in ids.items()
        for names in [sorted(members, key=natural_order)]
        for k in np.linspace(0, len(names) - 1, min(limit, len(names)))
    }
    pairs = _pairs_of(data, group)
    entries = tuple(entry for entry, pair in zip(data.entries, pairs, strict=True) if (pair, entry.id) in sample)
    return replace(data, entries=entries)


if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Linear

FINE_TUNED = "fine-tuned"
_WHO = "fine-tuning"
_WITHOUT_NETWORK = ("embedded", "static")


class Training(NamedTuple):
    """How the network is trained."""

    epochs: int
    rate: float
    batch: int
    seed: int


def fine_tune(
    metric: Metric, examples: Sequence[tuple[Segment, float]], segments: Sequence[Segment], training: Training
) -> FloatVector:
    """Return predictions for segments by the metric's network after training on segments with human scores.

    Args:
        metric: BERTScore, BARTScore or another metric with the network of a folder or hub name as its `model`.
        examples: segments with standardised human scores; their order does not matter.
        segments: what to predict.
        training: epochs, learning rate, batch size, seed.
    """
    torch = importlib.import_module("torch")
    work = _Regression(metric)
    ordered = sorted(examples, key=lambda example: (_key(example[0]), example[1]))
    random = generator(training.seed, FINE_TUNED, *(_key(segment) for segment, _ in ordered))
    with torch.random.fork_rng():
        torch.manual_seed(training.seed)
        parameters = [*work.stack.network.parameters(), *work.head.parameters()]
        optimizer = torch.optim.AdamW(parameters, lr=training.rate)
        for _ in range(training.epochs):
            order = random.permutation(len(ordered))
            for start in range(0, len(order), training.batch):
                batch = [ordered[k] for k in order[start : start + training.batch]]
                predicted = work.predict([segment for segment, _ in batch])
                loss = (predicted - torch.tensor([value for _, value in batch])).square().mean()
                if not torch.isfinite(loss):
                    raise DataError(f"{_WHO}: the loss is {loss.item()}; train with a smaller --fine-tune-rate")
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    with torch.inference_mode():
        parts = [work.predict(segments[k : k + training.batch]) for k in range(0, len(segments), training.batch)]
    return np.concatenate([part.double().numpy() for part in parts])


def check_network(metric: Metric) -> str:
    """Return the network of a metric by name; a metric without one is refused."""
    name = metric.model if isinstance(metric, SupportsModel) else None
    if name is None or name in _WITHOUT_NETWORK:
        raise UserError(
            f"{spec_of(metric)} has no network to fine-tune: use --fine-tune with a metric such as "
            "\"bertscore(model='FOLDER')\" or \"bartscore(model='FOLDER')\""
        )
    return name


def _key(segment: Segment) -> str:
    return "\n".join((segment.hypothesis, segment.source or "", *segment.references))


class _Regression:
    """An encoder with a linear head on the means of its vectors."""

    def __init__(self, metric: Metric) -> None:
        model: NetworkSource = source(check_network(metric), _WHO)
        # A copy: the one that was loaded serves the metric. On the processor, where training can be repeated.
        self.stack: Stack = copy.deepcopy(stack(model, model.shape.blocks, "cpu", "fp32", _WHO))
        self.coder, self.limit = RowCoder(model.tokenizer, _WHO), model.limit
        self.with_source = Inputs.SOURCE in needs(metric)
        nn = importlib.import_module("torch.nn")
        self.head: Linear = nn.Linear(4 * model.shape.width, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def predict(self, segments: Sequence[Segment]) -> "Tensor":
        """Return one number per segment."""
        torch = importlib.import_module("torch")
        others = [
            (segment.source or "") if self.with_source else next(iter(segment.references), "") for segment in segments
        ]
        left, right = self._means([segment.hypothesis for segment in segments]), self._means(others)
        answer: Tensor = self.head(torch.cat([left, right, (left - right).abs(), left * right], dim=1))
        return answer.squeeze(1)

    def _means(self, texts: Sequence[str]) -> "Tensor":
        coded = self.coder.code(texts)
        rows: list[Row] = [self.coder.rows(text, coded[text], self.limit, "truncate")[0] for text in texts]
        inputs = as_tensors(rows, self.coder.padding, "cpu")
        real = inputs.mask.unsqueeze(-1).float()
        means: Tensor = (self.stack.table(inputs) * real).sum(1) / real.sum(1)
        return means
