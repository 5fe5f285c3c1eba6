"""From arguments to what jobs take: a data set and the resources.

`--device` and `--precision`: where the networks of all asked metrics run, and in which numbers.

What a dry run says of time: how long the texts that are left would take, by a trial on some of them.
"""

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, cast

from whyscore.analysis import common as stores
from whyscore.analysis.common import as_metric, of_systems
from whyscore.cli.output import tell
from whyscore.data.checks import findings
from whyscore.data.files import Limits
from whyscore.data.formats.text import from_literals, read_texts
from whyscore.data.reading import read
from whyscore.data.sample import sample
from whyscore.errors import DataError, UserError
from whyscore.protocols import Executor, Metric
from whyscore.registry import build, spec_of
from whyscore.registry.specs import parse
from whyscore.scoring.executors import Processes
from whyscore.scoring.ray import Ray
from whyscore.scoring.stack import Progress, Resources, rate
from whyscore.scoring.store import Store
from whyscore.types import Dataset, Finding, Segment

_OPTIONS = ("device", "precision")


def place_metrics(arguments: argparse.Namespace) -> None:
    """Write the options into the specs of the metrics that have them and do not say otherwise.

    A metric by itself without a network is left as it is; where no metric has one, the options would do nothing, which
    is an error.
    """
    asked = {name: getattr(arguments, name, None) for name in _OPTIONS}
    wanted = {name: value for name, value in asked.items() if isinstance(value, str)}
    metrics: list[str] | None = getattr(arguments, "metrics", None)
    if not wanted or not metrics:
        return
    placed = [_placed(metric, wanted) for metric in metrics]
    if not any(placed):
        given = " ".join(f"--{name} {value}" for name, value in wanted.items())
        raise UserError(f"{given} is for metrics with a network; none of these has one: {', '.join(metrics)}")
    # In place: a verb may hold the list already.
    metrics[:] = [found or metric for found, metric in zip(placed, metrics, strict=True)]


def _placed(metric: str, wanted: Mapping[str, str]) -> str | None:
    """Return the spec with the options; None where the metric has none of them."""
    made: object = as_metric(metric)
    if not dataclasses.is_dataclass(made) or isinstance(made, type):
        return None
    fields = {field.name for field in dataclasses.fields(made)} & wanted.keys()
    said = dict(parse(metric).named)
    if not fields:
        return None
    return spec_of(dataclasses.replace(made, **{name: wanted[name] for name in fields if name not in said}))


_SHOWN = 20

Filled = TypeVar("Filled", Processes, Ray)


def dataset(arguments: argparse.Namespace) -> Dataset:
    """Return the segments that the arguments name, checked; findings go to stderr."""
    given, found = looked_at(arguments)
    show_findings(found, arguments)
    refuse_findings(given, found, strict=arguments.strict)
    return given


def looked_at(arguments: argparse.Namespace) -> tuple[Dataset, tuple[Finding, ...]]:
    """Return the segments that the arguments name, and what is to be known about them."""
    if getattr(arguments, "dry_run", False):
        arguments.output = None  # what would be done is for the terminal: results of an earlier run stay
    place_metrics(arguments)
    given = _given(arguments)
    found = findings(given)
    if arguments.text:
        found = tuple(finding for finding in found if "for significance" not in finding.message)
    return given, found


def refuse_findings(given: Dataset, found: Sequence[Finding], *, strict: bool) -> None:
    """Raise where data cannot be used."""
    errors = [finding for finding in found if finding.error or strict]
    if errors:
        raise DataError(f"{errors[0]}" + (f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""))
    if not given.entries:
        raise DataError(f"{given.name} holds no segment: there is nothing to work on")


def resources(arguments: argparse.Namespace, progress: Progress | None = None) -> Resources:
    """Return store, executor and progress as asked for."""
    return Resources(store(arguments), _executor(arguments), progress)


def baseline(arguments: argparse.Namespace, data: Dataset) -> str | None:
    """Return the system that no other may be worse than, if that was asked for: the first where none was named."""
    named: str | None = arguments.fail_if_worse
    return data.systems[0] if named == "" else named


def store(arguments: argparse.Namespace) -> Store | None:
    """Return the score store, or None for `--store none`."""
    if arguments.store == "none":
        return None
    return stores.store(arguments.store or None)


def _given(arguments: argparse.Namespace) -> Dataset:
    languages = _languages(arguments.lang_pair)
    _check_single(arguments)
    if not (arguments.sample or arguments.data or arguments.hypotheses):
        raise UserError(f"no input: give hypotheses with -t (and -r, -s), a data file, or --sample{_taken(arguments)}")
    check_names(arguments)
    if arguments.sample or arguments.data:
        held = sample() if arguments.sample else _read(arguments, languages)
        return of_systems(held, arguments.systems) if arguments.systems else held
    if arguments.text:
        return from_literals(
            arguments.hypotheses,
            arguments.references or (),
            arguments.source,
            systems=arguments.systems,
            languages=languages,
        )
    return read_texts(
        arguments.hypotheses,
        references=arguments.references or (),
        source=arguments.source,
        systems=arguments.systems,
        languages=languages,
        encoding=arguments.encoding,
        limits=_limits(arguments),
    )


def _read(arguments: argparse.Namespace, languages: tuple[str, str] | None) -> Dataset:
    """Return what the data file holds."""
    return read(
        arguments.data[0],
        columns=_columns(arguments.columns),
        human=arguments.human or (),
        header=not arguments.no_header,
        quoting=arguments.quoting,
        languages=languages,
        encoding=arguments.encoding,
        limits=_limits(arguments),
        format=arguments.input_format,
        inline=arguments.inline,
        alt_trans=arguments.alt_trans,
    )


def _taken(arguments: argparse.Namespace) -> str:
    """Return which option took a file that was perhaps meant as data: a list of values ends at the next option only."""
    lists = {"-m": getattr(arguments, "metrics", None) or [], "-r": (arguments.references or [])[1:]}
    for option, values in lists.items():
        for value in values:
            if Path(value).is_file():
                return f". {value} was taken by {option}: data files come first"
    return ""


def _check_single(arguments: argparse.Namespace) -> None:
    """Refuse several kinds of input at once: all but one would be left out, and nobody would see it."""
    if len(arguments.data) > 1 or (arguments.data and arguments.hypotheses):
        raise UserError(f"one data file or -t, not both: got {' '.join(arguments.data)}. Systems are given with -t")
    texts = {"-t": arguments.hypotheses, "-r": arguments.references, "-s": arguments.source, "--text": arguments.text}
    beside = [option for option, given in texts.items() if given]
    if arguments.sample:
        beside = [*arguments.data, *beside]
    elif not arguments.data:
        return
    if beside:
        one = "--sample" if arguments.sample else arguments.data[0]
        told = f"{one} holds its own texts, but {' and '.join(beside)} came with it"
        raise UserError(f"{told}: leave out one or the other; texts in files of lines are given with -t, -r and -s")


def check_names(arguments: argparse.Namespace) -> None:
    """Refuse metrics and explainers there are not, before files are read, which may take long."""
    for metric in getattr(arguments, "metrics", None) or ():
        as_metric(metric)
    for name in ("explainer", "explainers"):
        given = getattr(arguments, name, None) or ()
        for explainer in [given] if isinstance(given, str) else given:
            build(explainer, "explainer")


def _limits(arguments: argparse.Namespace) -> Limits:
    given = {"line": arguments.max_line, "file": arguments.max_file, "ratio": arguments.max_ratio}
    return Limits(**{name: value for name, value in given.items() if value is not None})


def _languages(pair: str | None) -> tuple[str, str] | None:
    if pair is None:
        return None
    source, _, target = pair.partition("-")
    if not source or not target:
        raise UserError(f"cannot read the language pair {pair!r}: write it like de-en")
    return source, target


def _columns(given: Sequence[str] | None) -> dict[str, str]:
    pairs = [item.partition("=") for item in given or ()]
    for role, sign, name in pairs:
        if not sign or not name:
            raise UserError(f"cannot read the column {role!r}: write ROLE=NAME, for example hypothesis=mt")
    return {role: name for role, _, name in pairs}


def _executor(arguments: argparse.Namespace) -> Executor:
    """Return where metrics run: a spec, whose number of workers and address may stand in options of their own."""
    default = "ray" if arguments.ray_address else "processes" if arguments.jobs > 1 else "serial"
    found = build(arguments.executor or default, "executor")
    if arguments.ray_address and not isinstance(found, Ray):
        raise UserError(f"--ray-address is for --executor ray, not for {arguments.executor}")
    if isinstance(found, Processes):
        return _filled(found, "jobs", arguments.jobs, "--jobs")
    if isinstance(found, Ray):
        found = _filled(found, "workers", arguments.jobs, "--jobs")
        found = _filled(found, "address", arguments.ray_address, "--ray-address")
        arguments.workers_used = found.rates
    return cast("Executor", found)


def _filled(executor: Filled, name: str, value: object, option: str) -> Filled:
    """Return an executor with what an option says, which must not be something else than its spec says."""
    said = getattr(executor, name)
    if said and value and said != value:
        raise UserError(f"{option} is {value}, and {name} in --executor is {said}: give one of them")
    return replace(executor, **{name: value}) if value else executor  # type: ignore[arg-type]


def show_findings(found: Sequence[Finding], arguments: argparse.Namespace) -> None:
    """Tell what was found, the first of them where there are many."""
    shown = found if arguments.verbose else found[:_SHOWN]
    for finding in shown:
        tell(arguments, f"{'error' if finding.error else 'note'}: {finding}")
    if len(found) > len(shown):
        tell(arguments, f"note: {len(found) - len(shown)} more; -v shows all")


_UNITS = ((86_400, "days", 1), (3_600, "hours", 1), (60, "minutes", 0), (1, "seconds", 0))


def tell_time(arguments: argparse.Namespace, name: str, metric: Metric, segments: Sequence[Segment], left: int) -> None:
    """Say how long `left` texts would take one worker, if they are like these segments."""
    if not segments or not left or arguments.quiet:
        return
    speed = rate(metric, segments)
    tell(arguments, f"{name}: about {duration(left / speed)} for one worker, by a trial here ({speed:,.0f} texts/s)")


def duration(seconds: float) -> str:
    """Return a length of time as people say it.

    >>> duration(0.2), duration(95), duration(7300), duration(260_000)
    ('a second', '95 seconds', '2.0 hours', '3.0 days')
    """
    size, unit, digits = next(one for one in _UNITS if seconds >= 2 * one[0] or one[0] == 1)
    return f"{seconds / size:.{digits}f} {unit}" if round(seconds) > 1 else "a second"
