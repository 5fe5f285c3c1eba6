"""From arguments to what jobs take: a data set and the resources."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from platformdirs import user_cache_path

from whyscore.cli.output import tell
from whyscore.errors import DataError, UserError
from whyscore.io.reading import read
from whyscore.io.sample import sample
from whyscore.io.text import from_literals, read_texts
from whyscore.io.unpacking import Limits
from whyscore.io.validation import findings
from whyscore.jobs.common import Resources
from whyscore.protocols import Executor
from whyscore.scoring.executors import Processes, Serial
from whyscore.scoring.progress import Progress
from whyscore.scoring.ray_workers import Ray
from whyscore.scoring.store import Store
from whyscore.types import Dataset, Finding

_SHOWN = 20


def dataset(arguments: argparse.Namespace) -> Dataset:
    """Return the segments that the arguments name, checked; findings go to stderr."""
    given = _given(arguments)
    found = findings(given)
    if arguments.text:
        found = tuple(finding for finding in found if "for significance" not in finding.message)
    _show(found, arguments)
    errors = [finding for finding in found if finding.error or arguments.strict]
    if errors:
        raise DataError(f"{errors[0]}" + (f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""))
    if not given.entries:
        raise DataError(f"{given.name} holds no segment: there is nothing to work on")
    return given


def resources(arguments: argparse.Namespace, progress: Progress | None = None) -> Resources:
    """Return store, executor and progress as asked for."""
    return Resources(store(arguments), _executor(arguments), progress)


def store(arguments: argparse.Namespace) -> Store | None:
    """Return the score store, or None for `--store none`."""
    if arguments.store == "none":
        return None
    return Store(Path(arguments.store) if arguments.store else user_cache_path("whyscore") / "scores.sqlite")


def _given(arguments: argparse.Namespace) -> Dataset:
    languages = _languages(arguments.lang_pair)
    if arguments.sample:
        return sample()
    if arguments.data:
        if len(arguments.data) > 1 or arguments.hypotheses:
            raise UserError(f"one data file or -t, not both: got {' '.join(arguments.data)}. Systems are given with -t")
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
        )
    if not arguments.hypotheses:
        raise UserError("no input: give hypotheses with -t (and -r, -s), a data file, or --sample")
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
    if arguments.executor == "ray" or (arguments.executor is None and arguments.ray_address):
        found = Ray(workers=arguments.jobs, address=arguments.ray_address)
        arguments.workers_used = found.rates
        return found
    if arguments.executor == "processes" or (arguments.executor is None and arguments.jobs > 1):
        return Processes(arguments.jobs)
    return Serial()


def _show(found: Sequence[Finding], arguments: argparse.Namespace) -> None:
    shown = found if arguments.verbose else found[:_SHOWN]
    for finding in shown:
        tell(arguments, f"{'error' if finding.error else 'note'}: {finding}")
    if len(found) > len(shown):
        tell(arguments, f"note: {len(found) - len(shown)} more; -v shows all")
