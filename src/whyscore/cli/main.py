"""The entry point: finds the command, runs it, and turns what goes wrong into one line and an exit code.

An internal error is one line for the user too, with a file to report that holds the traceback.
"""

import argparse
import contextlib
import importlib
import io
import os
import platform
import signal
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast

from whyscore.errors import UnknownName, WhyscoreError
from whyscore.marking import ON_ONE_LINE, visible
from whyscore.version import __version__

if TYPE_CHECKING:
    from whyscore.cli.options import Command, Parser

VARIABLE = "WHYSCORE_DEBUG"
"""Set, it lets a fault through as Python shows it."""


KERNELS = "OPENBLAS_CORETYPE"
"""By which OpenBLAS is told the processor whose instructions it uses."""

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "GOTO_NUM_THREADS")
"""By which OpenBLAS is told how many threads it uses; the first of them counts."""

_PROCESSOR = Path("/proc/cpuinfo")
_AVX512 = frozenset(["AuthenticAMD", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"])


def choose_kernels() -> None:
    """Set how OpenBLAS multiplies, where nobody chose otherwise and numpy has not loaded it.

    1. One thread: its threads wait for each other by spinning, which costs several times what they save where anything
       else runs on the machine. Work is divided among processes (`--jobs`).
    2. AVX-512 on processors of AMD that have it. The one in numpy's wheels takes newer ones for Haswell, whose products
       in float64 take 1.6 times as long.
    """
    if "numpy" in sys.modules:
        return
    if not any(name in os.environ for name in THREADS):
        os.environ[THREADS[0]] = "1"
    if KERNELS in os.environ:
        return
    with contextlib.suppress(OSError), _PROCESSOR.open(encoding="utf-8", errors="replace") as file:
        # The first of the processors tells.
        if set(file.read(8192).split()) >= _AVX512:
            os.environ[KERNELS] = "SkylakeX"


def shows_faults() -> bool:
    """Return whether faults are to be shown as they are."""
    return bool(os.environ.get(VARIABLE))


def describe_fault(error: Exception, command: Sequence[str]) -> str:
    """Return the line for the user; the traceback is in a file that the line names."""
    if isinstance(error, MemoryError):
        return "not enough memory: give fewer texts at a time"
    kind = f"{type(error).__name__}: {error}".splitlines()[0]
    return f"internal error, please report it ({kind}). {_where(_report(error, command))}"


def _report(error: Exception, command: Sequence[str]) -> str:
    head = f"whyscore {__version__}, Python {sys.version.split()[0]}, {platform.platform()}\n{list(command)}\n"
    return head + "".join(traceback.format_exception(error))


def _where(report: str) -> str:
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="whyscore-fault-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
        ) as file:
            file.write(report)
    except OSError:
        return f"Run it again with {VARIABLE}=1 and report what you see"
    return f"Please report it with the file {file.name}, which holds the command line"


VERBS = {
    "evaluate": "score, explain, break down by feature and test systems: one run folder, one report",
    "score": "score systems and segments with any metrics, with confidence intervals",
    "explain": "show which words raise or lower the score",
    "boost": "improve a metric's scores with its own explanations",
    "calibrate": "learn from human judgements how to boost a metric, and whether it helps",
    "experiment": "rerun experiments of the papers, one command each",
    "compare": "test whether systems differ significantly: p-values, intervals, clusters",
    "select": "choose the segments that human raters should see to separate systems",
    "triage": "find the segments that need no review, at a chosen precision",
    "metaeval": "measure how well metrics and explainers agree with human judgements",
    "decompose": "break the score down by linguistic feature",
    "learn-lexicon": "learn word translation probabilities from parallel text, for evidence",
    "train": "train a quality estimator with word scores, from labels or parallel text",
    "learn-map": "learn a mapping between the vectors of two languages, for xmoverscore",
    "merge": "join the shards of a run",
    "report": "write a report on a run, or on what changed between runs",
    "serve": "explore runs in the browser, try a sentence, use the JSON API",
    "validate": "check input files without scoring",
    "convert": "convert word scores and error spans between formats",
    "submit": "write the files of a shared-task submission",
    "list": "list metrics, explainers, taggers and other components",
    "doctor": "show what is installed, what is missing, and how to install it",
    "store": "show and prune the store of scores",
}

_HOMES = {
    "doctor": "installation",
    "learn-lexicon": "learn",
    "learn-map": "learn",
    "list": "installation",
    "merge": "evaluate",
    "store": "installation",
}
"""The modules of verbs that do not have one of their own."""

EXAMPLES = """\
examples:
  whyscore score -r ref.txt -t sysA.txt sysB.txt -m bleu chrf ter
  whyscore explain --text -t "I have a cat" -r "I have a dog" -m chrf -e erasure
  whyscore score --sample -m chrf
"""

INTERRUPTED = 130
_SECONDS_TO_END = 1


_FURTHER = "For the options of a command: whyscore COMMAND -h. whyscore collects no data about its use."


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    choose_kernels()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # PYTHONIOENCODING may ask for an encoding without arrows or umlauts; they are escaped then, as on stderr.
        sys.stdout.reconfigure(errors="backslashreplace")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = _show_once()
        if argv is not None:
            return _report_faults(lambda: _dispatch(arguments), arguments)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored, as in the background
            signal.signal(signal.SIGINT, _interrupt)
        return _leave(_report_faults(lambda: _dispatch(arguments), arguments))


def _interrupt(_: int, __: object) -> NoReturn:
    """Interrupt the work; should a user's function catch that, the next signal ends the program."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    raise KeyboardInterrupt


def _leave(code: int) -> int:
    """Return the exit code; where threads that a user's function started do not end, end the program.

    Functions that others registered to run at the end (`atexit`) cannot turn a failure into a success.
    """
    if code:
        end = os._exit
        os._exit = lambda given: end(given or code)  # type: ignore[assignment]
    for thread in threading.enumerate():
        ours = thread is threading.main_thread() or type(thread).__module__ == "concurrent.futures.process"
        if ours or thread.daemon:
            continue
        thread.join(_SECONDS_TO_END)
        if thread.is_alive():
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return code


def parser_of(verb: str) -> "Parser":
    """Return the parser of one verb."""
    # Imported here, as below: `whyscore --help` needs none of it.
    from whyscore.cli.options import Parser, add_command  # noqa: PLC0415

    command, examples = _command(verb)
    parser = Parser(
        prog=f"whyscore {verb}",
        description=f"{VERBS[verb][0].upper()}{VERBS[verb][1:]}.\n\n{examples}",
        formatter_class=_formatter,
        allow_abbrev=False,
    )
    add_command(parser, command)
    return parser


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        _top().print_help()
        return 0 if arguments else 2
    if arguments[0] in ("-V", "--version"):
        print(f"whyscore {__version__}")
        return 0
    if arguments[0] not in VERBS:
        raise UnknownName.among("command", arguments[0], VERBS)
    parsed = parser_of(arguments[0]).parse_args(arguments[1:])
    from whyscore.cli.options import run_command  # noqa: PLC0415
    from whyscore.cli.output import check_output  # noqa: PLC0415

    check_output(parsed)
    try:
        return run_command(_command(arguments[0])[0], parsed)
    except KeyboardInterrupt:
        _say(f"interrupted; {_describe_kept(parsed)}")
        return INTERRUPTED


def _top() -> argparse.ArgumentParser:
    width = max(map(len, VERBS)) + 2
    verbs = "\n".join(f"  {verb:<{width}}{about}" for verb, about in VERBS.items())
    top = argparse.ArgumentParser(
        prog="whyscore",
        usage="whyscore COMMAND [options]",
        description="Scores generated text and shows which words raise or lower the score.",
        epilog=f"commands:\n{verbs}\n\n{EXAMPLES}\n{_FURTHER}",
        formatter_class=_formatter,
    )
    top.add_argument("-V", "--version", action="store_true", help="show the version and exit")
    return top


def _command(verb: str) -> "tuple[Command | Mapping[str, Command], str]":
    """Return what a verb does, one command or several by name, and its examples.

    A module of `commands` is one command (`EXAMPLES`, `SETTINGS`, `run`), a group of them (`commands`), or the home of
    several verbs (`VERBS`).
    """
    from whyscore.cli.options import Command  # noqa: PLC0415

    module = importlib.import_module(f"whyscore.cli.commands.{_HOMES.get(verb, verb)}")
    if hasattr(module, "commands"):
        return module.commands(), module.EXAMPLES
    if verb in _HOMES:
        examples, settings, run = module.VERBS[verb]
        return Command(VERBS[verb], examples, settings, run), examples
    formats = getattr(module, "FORMATS", ())
    return Command(VERBS[verb], module.EXAMPLES, module.SETTINGS, module.run, formats=formats), module.EXAMPLES


def _formatter(prog: str) -> argparse.HelpFormatter:
    # Imported when help is shown: it costs more than all the rest of a short command.
    from rich_argparse import RawDescriptionRichHelpFormatter  # noqa: PLC0415

    class Formatter(RawDescriptionRichHelpFormatter):
        """Titles of groups keep their case after the first letter."""

        @staticmethod
        def group_name_formatter(title: str) -> str:  # type: ignore[override]
            return title[:1].upper() + title[1:]

    return cast("argparse.HelpFormatter", Formatter(prog))


def _report_faults(work: Callable[[], int], arguments: Sequence[str]) -> int:
    """Return the exit code of the work; what nobody thought of becomes one line on stderr too."""
    try:
        return _report_errors(work)
    except Exception as error:
        if shows_faults():
            raise
        _say(f"error: {describe_fault(error, arguments)}")
        return 1


def _report_errors(work: Callable[[], int]) -> int:
    """Return the exit code of the work; what may go wrong becomes one line on stderr."""
    try:
        code = work()
        sys.stdout.flush()
    except WhyscoreError as error:
        _say(f"error: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # nobody reads any more
        _close()
        return 0
    except OSError as error:
        _close()
        _say(
            f"error: {error.filename or 'the output'}: {error.strerror or error}. "
            "Free some space, or choose another location"
        )
        return 1
    except SystemExit as stop:  # argparse: 0 after help
        return stop.code if isinstance(stop.code, int) else 1
    return code


def _close() -> None:
    """Let what is left of the output go nowhere: Python would complain once more while closing stdout."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _describe_kept(arguments: argparse.Namespace) -> str:
    """Return what an interruption leaves behind."""
    if not hasattr(arguments, "store"):
        return "nothing was kept"
    if arguments.store == "none":
        return "nothing was kept, as --store none was given"
    return "finished scores are in the store. Run the same command again to resume"


def _show_once() -> Callable[..., None]:
    """Return what shows warnings, each message once, whatever asked for it how often."""
    shown: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        if issubclass(category, UserWarning) and str(message) not in shown:
            shown.add(str(message))
            _say(f"warning: {message}".translate(ON_ONE_LINE))

    return show


def _say(line: str) -> None:
    print(f"whyscore: {visible(line)}", file=sys.stderr)
