"""From settings to what analyses take: metrics, a data set, and resources with a progress bar; what a dry run says.

Progress is a bar per stage on a terminal, and lines for logs where there is none. Work that takes less than ten seconds
leaves no line in a log; `-v` writes one for every stage.
"""

import dataclasses
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Display
from rich.text import Text

from whyscore.analysis import common as stores
from whyscore.analysis.common import as_metric, language_support, of_systems, with_languages
from whyscore.analysis.explain import cost
from whyscore.cli.options import (
    GateSettings,
    InputSettings,
    MetricSettings,
    QuietSettings,
    RunningSettings,
    UnparsedSettings,
)
from whyscore.cli.output import tell, tell_each
from whyscore.data.checks import FEW, Findings, findings, refuse_findings
from whyscore.data.dataset import sample
from whyscore.data.files import Limits, read_lines
from whyscore.data.formats.eval4nlp import SPLITTER
from whyscore.data.formats.text import from_literals, read_texts
from whyscore.data.naming import plain_name, system_names
from whyscore.data.reading import add_references, join_systems, read
from whyscore.data.style import normalize
from whyscore.data.writing import write_lines
from whyscore.errors import DataError, GateNotPassed, UserError
from whyscore.models.encoders.loading import CoverageNotice
from whyscore.present import render
from whyscore.protocols import ConfigurableExecutor, Executor, Metric, Splitter, SupportsRates
from whyscore.registry import build, parse, spec_of
from whyscore.runs.gates import gate_table, junit_lines
from whyscore.scoring.answers import Answers, AsksModel
from whyscore.scoring.rows import parts_of
from whyscore.scoring.stack import Progress, Resources, Stages, rate
from whyscore.scoring.stack import cost as score_cost
from whyscore.scoring.store import Store
from whyscore.settings import check_files
from whyscore.types import Dataset, Finding, Gate, Inputs, Segment
from whyscore.types.data import natural_order

Input = TypeVar("Input", bound=InputSettings)
_SHOWN = 20
_MANY_UNUSABLE = 0.05


def requested_metrics(metrics: MetricSettings) -> list[str]:
    """Return the specs of the metrics that were asked for, each once, with `--device` and `--precision` applied.

    A metric without a network stays as it is; where no metric has one, the options would do nothing, which is an error.
    """
    specs = list(dict.fromkeys(metrics.metrics or ()))
    values = {"device": metrics.device, "precision": metrics.precision}
    options = {name: value for name, value in values.items() if value is not None}
    if not options or not specs:
        return specs
    placed = [_with_options(spec, options) for spec in specs]
    if not any(placed):
        flags = " ".join(f"--{name} {value}" for name, value in options.items())
        raise UserError(f"{flags} is for metrics with a network; none of these has one: {', '.join(specs)}")
    return [changed or spec for changed, spec in zip(placed, specs, strict=True)]


def some_metrics(metrics: MetricSettings, example: str = "chrf") -> list[str]:
    """Return the specs of the metrics that were asked for; none is an error."""
    specs = requested_metrics(metrics)
    if not specs:
        raise UserError(f"no metric: name one with -m, for example -m {example}")
    return specs


def only_metric(metrics: MetricSettings, usual: str | None = None) -> str:
    """Return the one metric that was asked for, or the usual one where there is one."""
    first, *others = some_metrics(metrics) if usual is None else requested_metrics(metrics) or [usual]
    if others:
        raise UserError(f"one metric at a time, got {' '.join((first, *others))}")
    return first


def _with_options(metric: str, options: Mapping[str, str]) -> str | None:
    """Return the spec with the options that it does not set itself; None where the metric has none of them."""
    instance: object = as_metric(metric)
    if not dataclasses.is_dataclass(instance) or isinstance(instance, type):
        return None
    fields = {field.name for field in dataclasses.fields(instance)} & options.keys()
    named = dict(parse(metric).named)
    if not fields:
        return None
    return spec_of(dataclasses.replace(instance, **{name: options[name] for name in fields if name not in named}))


def load_dataset(settings: InputSettings, metrics: Sequence[str] = (), explainers: Sequence[str] = ()) -> Dataset:
    """Return the segments that were named, checked; findings go to stderr.

    Unknown metrics and explainers are refused before any file is read.
    """
    return load_with_findings(settings, metrics, explainers)[0]


def load_with_findings(
    settings: InputSettings, metrics: Sequence[str] = (), explainers: Sequence[str] = ()
) -> tuple[Dataset, Findings]:
    """Return the same with all findings."""
    loaded = check_names(metrics, explainers)
    data, noticed = load_and_validate(settings, metrics)
    expected = expected_findings(noticed, settings)
    show_columns(data, settings)
    show_findings(expected, settings)
    refuse_data(data, expected, strict=settings.strict)
    _check_context(settings, loaded)
    warn_unsupported(settings, data, loaded)
    return data, noticed


def _check_context(settings: InputSettings, metrics: Mapping[str, Metric]) -> None:
    """Say which metrics do not read context; where none does, the option would do nothing, which is an error."""
    without = [name for name, metric in metrics.items() if Inputs.CONTEXT not in metric.inputs]
    if not settings.context or not without:
        return
    message = f"--context {settings.context} is for metrics that read context (bertscore, xbertscore, judge)"
    if len(without) == len(metrics):
        raise UserError(f"{message}; none of these does: {', '.join(without)}")
    tell(settings, f"{message}; not read by {', '.join(without)}")


def load_judged(settings: InputSettings, metric: str, explainers: Sequence[str]) -> list[Dataset]:
    """Return the data sets with human scores that were named; each file is one."""
    if not settings.human:
        raise UserError("no human score: name its column with --human, for example --human da")
    files: list[tuple[str, ...]] = [(file,) for file in settings.data] or [()]
    return [load_dataset(replace(settings, data=file), [metric], explainers) for file in files]


def with_target_language(settings: Input) -> Input:
    """Return the settings; a language alone (`-l en`) is that of hypotheses and references."""
    if settings.lang_pair and "-" not in settings.lang_pair:
        return replace(settings, lang_pair=f"und-{settings.lang_pair}")
    return settings


def show_columns(data: Dataset, output: QuietSettings) -> None:
    """Say which columns of a table are used, and which are not."""
    if columns := data.describe_columns():
        tell(output, f"columns: {columns}")


def warn_unsupported(settings: QuietSettings, data: Dataset, metrics: Mapping[str, Metric]) -> None:
    """Warn once of metrics that do not support the languages of the data, given or identified."""
    unsupported = language_support(data, metrics)[1] if data.entries else ()
    tell_each(settings, "warning", unsupported)
    if unsupported:  # what the models have to say of their languages is said
        warnings.simplefilter("ignore", CoverageNotice)


def refuse_idle_reports(settings: GateSettings) -> None:
    """Refuse to report on gates where there are none: an empty report reads like a passed one."""
    named = settings.fail_under or settings.fail_if_worse is not None
    for flag, file in (("--junit", settings.junit), ("--gate-summary", settings.gate_summary)):
        if file and not named:
            raise UserError(f"{flag} has no gate to report on: add --fail-under METRIC=N or --fail-if-worse SYSTEM")


def report_gates(gates: Sequence[Gate], settings: GateSettings, name: str) -> None:
    """Write the judged gates to the files that were named."""
    if settings.junit:
        write_lines(Path(settings.junit), junit_lines(gates, name))
    if settings.gate_summary:
        verdict = "passed" if all(gate.passed for gate in gates) else "not passed"
        with Path(settings.gate_summary).open("a", encoding="utf-8") as file:
            file.write(f"### Quality gate {verdict}: {name}\n\n{render(gate_table(gates), 'markdown')}\n")


def take_first(data: Dataset, limit: int | None) -> Dataset:
    """Return the segments of each system that come first by their ids; all of them without a limit."""
    ids = set(sorted(data.ids, key=natural_order)[:limit])
    return data if limit is None else replace(data, entries=tuple(entry for entry in data.entries if entry.id in ids))


def load_and_validate(inputs: InputSettings, metrics: Sequence[str] = ()) -> tuple[Dataset, Findings]:
    """Return the segments that were named, and what is to be known about them."""
    data = _load(inputs, metrics)
    data = normalize(data, inputs.normalize) if inputs.normalize else data
    data = data.with_context(inputs.context)
    return data, findings(data)


def expected_findings(noticed: Findings, inputs: InputSettings) -> Findings:
    """Return the findings that are told: nobody expects significance of texts on the command line."""
    return (
        Findings([finding for finding in noticed if finding.code != FEW], **noticed.about) if inputs.text else noticed
    )


def refuse_data(data: Dataset, noticed: Sequence[Finding], *, strict: bool) -> None:
    """Raise where data cannot be used."""
    refuse_findings(noticed, strict=strict)
    if not data.entries:
        raise DataError(f"{data.name} contains no segments: there is nothing to do")


def check_names(metrics: Sequence[str], explainers: Sequence[str] = ()) -> dict[str, Metric]:
    """Return the metrics by name; what is not there, files included, is refused before data is read."""
    by_name = {name: as_metric(name) for name in metrics}
    check_files([*by_name.values(), *(build(explainer, "explainer") for explainer in explainers)])
    return by_name


def make_resources(running: RunningSettings, progress: Progress | None = None) -> Resources:
    """Return store, executor and progress as asked for."""
    return Resources(open_store(running.store), make_executor(running), progress)


@contextmanager
def working(settings: RunningSettings) -> Iterator[Resources]:
    """Give the resources and show progress while the work lasts; afterwards say what each worker did."""
    executor, store = make_executor(settings), open_store(settings.store)
    with show_progress(settings) as progress:
        record = None if settings.record is None else Path(settings.record)
        answers = Answers(store, record, settings.budget_calls, settings.budget_tokens, progress)
        yield Resources(store, executor, progress, answers=answers)
    for judge, (bad, count) in answers.unusable().items():
        if bad > _MANY_UNUSABLE * count:
            tell(settings, f"warning: {bad:,} of {count:,} answers cannot be used ({bad / count:.1%}): {judge}")
    if answers.spent_calls:
        spent = f"{answers.spent_calls:,} calls, {answers.spent_tokens:,} tokens"
        tell(settings, f"judge: {spent}{f'; recorded in {record}' if record else ''}")
    for name, used in executor.rates.items() if isinstance(executor, SupportsRates) else ():
        speed = f", {used.texts / used.seconds:,.0f}/s" if used.seconds else ""
        tell(settings, f"{name}: {used.texts:,} texts{speed}")


def fail_if_unparsed(settings: UnparsedSettings, resources: Resources) -> None:
    """Raise where more answers of a judge cannot be used than the gate allows."""
    most = settings.fail_if_unparsed
    for judge, (bad, count) in resources.answers.unusable().items() if resources.answers else ():
        if most is not None and bad > most * count:
            share = f"{bad:,} of {count:,} answers cannot be used ({bad / count:.1%}, at most {most:.1%} may)"
            raise GateNotPassed(f"quality gate not passed: {share}: {judge}")


def open_store(path: str | None) -> Store | None:
    """Return the score store, the user's own where no path is given, or None for `none`."""
    return None if path == "none" else stores.store(path or None)


def baseline_of(gates: GateSettings, data: Dataset) -> str | None:
    """Return the system that no other may be worse than, if there is such a gate: the first where none was named."""
    return data.systems[0] if gates.fail_if_worse == "" else gates.fail_if_worse


def _load(inputs: InputSettings, metrics: Sequence[str]) -> Dataset:
    languages = language_pair(inputs.lang_pair)
    _check_single(inputs)
    if not (inputs.sample or inputs.data or inputs.hypotheses):
        raise UserError(
            f"no input: give hypotheses with -t (and -r, -s), a data file, or --sample{_taken_hint(inputs, metrics)}"
        )
    if inputs.sample or inputs.data:
        whole = sample() if inputs.sample else _read_files(inputs, languages)
        return of_systems(whole, inputs.systems) if inputs.systems else whole
    if inputs.text:
        return from_literals(
            inputs.hypotheses or (),
            inputs.references or (),
            inputs.source,
            systems=inputs.systems,
            languages=languages,
        )
    return read_texts(
        inputs.hypotheses or (),
        references=inputs.references or (),
        source=inputs.source,
        systems=inputs.systems,
        languages=languages,
        encoding=inputs.encoding,
        limits=_limits(inputs),
        realign=inputs.realign,
    )


def _read_files(inputs: InputSettings, languages: tuple[str, str] | None) -> Dataset:
    """Return what the data file holds; several XLIFF files or logs are several systems."""
    parts = [_read(inputs, path, languages) for path in inputs.data]
    names = [part.systems[0] for part in parts if len(part.systems) == 1]
    models = not _is_xliff(inputs.data[0]) and len(set(names)) == len(parts)
    whole = parts[0] if len(parts) == 1 else join_systems(parts, names if models else system_names(inputs.data))
    if not inputs.references:
        return whole
    sets = [read_lines(path, encoding=inputs.encoding, limits=_limits(inputs)).texts for path in inputs.references]
    return add_references(whole, dict(zip(inputs.references, sets, strict=True)))


def _read(inputs: InputSettings, path: str, languages: tuple[str, str] | None) -> Dataset:
    return read(
        path,
        columns=column_names(inputs.columns),
        human=inputs.human or (),
        header=not inputs.no_header,
        quoting=inputs.quoting,
        languages=languages,
        encoding=inputs.encoding,
        limits=_limits(inputs),
        format=inputs.input_format,
        inline=inputs.inline,
        alt_trans=inputs.alt_trans,
    )


def _taken_hint(inputs: InputSettings, metrics: Sequence[str]) -> str:
    """Return which option took a file that was perhaps meant as data: a list of values ends at the next option only."""
    lists = {"-m": metrics, "-r": (inputs.references or ())[1:]}
    for option, values in lists.items():
        for value in values:
            if Path(value).is_file():
                return f". {value} was read as a value of {option}: put data files first"
    return ""


def _is_xliff(path: str) -> bool:
    return plain_name(path).suffix.lower() in (".xlf", ".xliff")


def _is_one_system(path: str) -> bool:
    """Return whether a file holds one system by its nature: XLIFF, or the log of a model."""
    name = plain_name(path)
    return _is_xliff(path) or name.suffix.lower() in (".eval", ".json") or name.name.startswith("samples_")


def _check_single(inputs: InputSettings) -> None:
    """Refuse several kinds of input at once: all but one would be left out, and nobody would see it."""
    for path in inputs.hypotheses or ():
        if not inputs.text and _is_xliff(path):
            command = shlex.join([path, *(("-r", *inputs.references) if inputs.references else ())])
            raise UserError(f"{path} is an XLIFF file: give it without -t, first: {command}")
    units = bool(inputs.data) and all(map(_is_one_system, inputs.data))
    if (len(inputs.data) > 1 and not units) or (inputs.data and inputs.hypotheses):
        raise UserError(_too_many_files(inputs))
    if inputs.realign and (inputs.data or inputs.sample or inputs.text):
        raise UserError(f"--realign {inputs.realign} is for files with one text per line: give them with -t and -r")
    texts = {"-t": inputs.hypotheses, "-r": inputs.references, "-s": inputs.source, "--text": inputs.text}
    beside = [option for option, value in texts.items() if value and not (units and option == "-r")]
    if inputs.sample:
        beside = [*inputs.data, *beside]
    elif not inputs.data:
        return
    if beside:
        source = "--sample" if inputs.sample else inputs.data[0]
        message = f"{source} contains its own texts and cannot be combined with {' and '.join(beside)}"
        raise UserError(f"{message}: leave out one or the other; files with one text per line go with -t, -r and -s")


def _too_many_files(inputs: InputSettings) -> str:
    """Return what is wrong with several data files, or one beside hypotheses, and the options for texts in lines."""
    if inputs.hypotheses:
        problem, (first, *rest) = "got a data file and -t", (*inputs.data, *inputs.hypotheses)
    else:
        problem, (first, *rest) = f"got {len(inputs.data)} data files", inputs.data
    lines = shlex.join(["-r", *(inputs.references or [first]), "-t", *([first] if inputs.references else []), *rest])
    return f"{problem}: give one, with all texts. For files with one text per line use {lines}"


def _limits(inputs: InputSettings) -> Limits:
    limits = {"line": inputs.max_line, "file": inputs.max_file, "ratio": inputs.max_ratio}
    return Limits(**{name: value for name, value in limits.items() if value is not None})


def language_pair(pair: str | None) -> tuple[str, str] | None:
    """Return the two languages of a pair such as de-en, or None where none is given."""
    if pair is None:
        return None
    source, _, target = pair.partition("-")
    if not source or not target:
        raise UserError(f"cannot read the language pair {pair!r}: write it like de-en")
    return source, target


_OPTIONAL = ("source", "references", "system", "id", "document", "human", "languages", "spans")
"""Roles that no column has to play: an empty name says so."""


def column_names(options: Sequence[str] | None) -> dict[str, list[str]]:
    """Return the columns that were named, by their role."""
    pairs = [item.partition("=") for item in options or ()]
    for role, sign, name in pairs:
        if not sign or (not name and role not in _OPTIONAL):
            raise UserError(f"cannot read the column {role!r}: write ROLE=NAME, for example hypothesis=mt")
    columns: dict[str, list[str]] = {}
    for role, _, name in pairs:
        columns.setdefault(role, []).append(name)
    return columns


def make_executor(running: RunningSettings) -> Executor | None:
    """Return where metrics run: a spec, whose number of workers and address may stand in options of their own.

    None where nothing is asked for: the analysis chooses.
    """
    if not (running.executor or running.ray_address or running.jobs):
        return None
    default = "ray" if running.ray_address else "processes" if running.jobs > 1 else "serial"
    executor: Executor = build(running.executor or default, "executor")
    fields = executor.fields if isinstance(executor, ConfigurableExecutor) else {}
    if running.ray_address and "address" not in fields:
        raise UserError(f"--ray-address is for --executor ray, not for {running.executor}")
    if "workers" in fields:
        executor = _fill_option(executor, fields["workers"], running.jobs, "--jobs")
    return (
        _fill_option(executor, fields["address"], running.ray_address, "--ray-address")
        if "address" in fields
        else executor
    )


def _fill_option(executor: Executor, name: str, value: object, option: str) -> Executor:
    """Return an executor with what an option says, which must not be something else than its spec says."""
    current = getattr(executor, name)
    if current and value and current != value:
        raise UserError(f"{option} is {value}, and {name} in --executor is {current}: give one of them")
    return replace(executor, **{name: value}) if value else executor  # type: ignore[type-var]


def show_findings(noticed: Sequence[Finding], output: QuietSettings) -> None:
    """Tell what was found, the first of them where there are many."""
    shown = noticed if output.verbose else noticed[:_SHOWN]
    for finding in shown:
        tell_each(output, "error" if finding.error else "note", [finding])
    if len(noticed) > len(shown):
        tell(output, f"note: {len(noticed) - len(shown)} more; -v shows all")


def explaining_costs(
    running: RunningSettings,
    segments: Sequence[Segment],
    metrics: Sequence[str],
    explainers: Sequence[str],
    languages: tuple[str, str] | None = None,
    *,
    unit: str | Splitter = SPLITTER,
    sides: tuple[str, ...] | None = None,
) -> Iterator[str]:
    """Yield how many texts each metric would score for each explainer; by default, white space separates words."""
    resources = make_resources(running)
    for metric in metrics:
        used = with_languages(as_metric(metric), languages)
        for explainer in explainers:
            planned = cost(segments, used, explainer, resources=resources, unit=unit, sides=sides)
            yield f"{metric} {explainer}: {planned}"
            yield from call_costs(metric, used, segments, planned.left)


_TRIED = 2_000  # segments whose calls are counted


def call_costs(name: str, metric: Metric, segments: Sequence[Segment], left: int) -> Iterator[str]:
    """Yield how many calls and tokens `left` texts like these segments would take the language models of a metric."""
    for part in parts_of(metric):
        if isinstance(part, AsksModel):
            each = part.with_answers(Answers()).calls(segments[:_TRIED])
            texts = len({segment.only(part.inputs) for segment in segments[:_TRIED]})
            share = left / texts if texts else 0.0
            counts = [round(share * count) for count in (each.calls, each.prompt_tokens, each.answer_tokens)]
            yield f"{name}: {counts[0]:,} calls, about {counts[1]:,} tokens sent, at most {counts[2]:,} tokens back"


def score_costs(
    running: RunningSettings, metrics: Sequence[str], segments: Sequence[Segment], languages: tuple[str, str] | None
) -> Iterator[str]:
    """Yield how many texts each metric would score, and how many calls that takes where it asks a language model."""
    store = make_resources(running).store
    for metric in metrics:
        used = with_languages(as_metric(metric), languages)
        planned = score_cost(used, segments, store)
        yield f"{metric}: {planned}"
        yield from call_costs(metric, used, segments, planned.left)


def tell_time(output: QuietSettings, name: str, metric: Metric, segments: Sequence[Segment], left: int) -> None:
    """Say how long `left` texts like these segments would take one worker; of a judge, how many calls and tokens."""
    if calls := list(call_costs(name, metric, segments, left)):
        print_lines(calls)
        return
    if not segments or not left or output.quiet:
        return
    speed = rate(metric, segments)
    tell(
        output,
        f"{name}: about {duration(left / speed)} for one worker, from a trial run here ({speed:,.0f} texts/s)",
    )


def print_lines(lines: Iterable[str]) -> int:
    """Print what a dry run says, and return the exit code."""
    for line in lines:
        print(line)
    return 0


INTERVAL = 10.0
"""Seconds between two lines of a stage."""
_UNITS = ((86_400, "days", 1), (3_600, "hours", 1), (60, "minutes", 0), (1, "seconds", 0))


def duration(seconds: float) -> str:
    """Return a length of time as people say it.

    >>> duration(0.2), duration(95), duration(7300), duration(260_000)
    ('a second', '95 seconds', '2.0 hours', '3.0 days')
    """
    size, unit, digits = next(entry for entry in _UNITS if seconds >= 2 * entry[0] or entry[0] == 1)
    return f"{seconds / size:.{digits}f} {unit}" if round(seconds) > 1 else "a second"


class Rate(ProgressColumn):
    """Work per second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "")


class Bars(Stages):
    """One bar per stage, those that are done above."""

    def __init__(self, display: Display) -> None:
        super().__init__()
        self._display = display
        self._task = display.add_task(self.stage, total=None)

    def end(self, following: str) -> None:
        """Finish the bar of the stage, and draw a new one."""
        if following != self.stage or self.total:
            if self.total:
                self._display.update(self._task, total=self.done, completed=self.done)
            else:
                self._display.remove_task(self._task)
            self._task = self._display.add_task(following, total=None)

    def changed(self) -> None:
        """Move the bar."""
        about = f"{self.stage} ({self.stored:,} from the store)" if self.stored else self.stage
        self._display.update(self._task, total=self.total or None, completed=self.done, description=about)


class Lines(Stages):
    """A line every ten seconds, and one at the end of each stage that took that long."""

    def __init__(
        self, say: Callable[[str], None], *, every_stage: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._say, self._every_stage, self._clock = say, every_stage, clock
        self._start = self._said = clock()

    def end(self, following: str) -> None:
        """Say how the stage ended."""
        if following != self.stage:
            self.finish()
            self._start = self._said = self._clock()

    def finish(self) -> None:
        """Say what was done in which time."""
        took = self._clock() - self._start
        if (self._every_stage and self.total) or took >= INTERVAL:
            self._say(f"{self.stage}: done{self._counts(' ')} in {duration(took)}")

    def changed(self) -> None:
        """Say how far it is, where the last line is long ago."""
        now = self._clock()
        if now - self._said < INTERVAL:
            return
        self._said = now
        left = (
            f", about {duration((now - self._start) / self.done * (self.total - self.done))} left" if self.done else ""
        )
        self._say(f"{self.stage}:{self._counts(' ') or ' started'}{left if self.total else ''}")

    def _counts(self, before: str) -> str:
        if not self.total:
            return ""
        stored = f" ({self.stored:,} from the store)" if self.stored else ""
        return f"{before}{self.done:,} of {self.total:,}{stored}"


@contextmanager
def show_progress(output: QuietSettings) -> Iterator[Stages | None]:
    """Give what shows progress on stderr while the work lasts; None where nothing may be said."""
    if output.quiet:
        yield None
    elif sys.stderr.isatty():
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
        with Display(*columns, console=Console(stderr=True), transient=True) as display:
            yield Bars(display)
    else:
        lines = Lines(lambda line: tell(output, line), every_stage=output.verbose)
        yield lines
        lines.finish()
