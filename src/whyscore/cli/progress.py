"""How far the work has come: a bar per stage on a terminal, lines for logs where there is none.

Work that takes less than ten seconds leaves no line in a log; `-v` writes one for every stage.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Display
from rich.text import Text

from whyscore.cli.options import QuietSettings
from whyscore.cli.output import tell
from whyscore.scoring.stack import Stages

INTERVAL = 10.0
"""Seconds between two lines of a stage."""
_UNITS = ((86_400, "days", 1), (3_600, "hours", 1), (60, "minutes", 0), (1, "seconds", 0))


def duration(seconds: float) -> str:
    """Return a length of time as people say it.

    >>> duration(0.2), duration(95), duration(7300), duration(260_000)
    ('a second', '95 seconds', '2.0 hours', '3.0 days')
    """
    size, unit, digits = next(one for one in _UNITS if seconds >= 2 * one[0] or one[0] == 1)
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

    def begin(self, stage: str, total: int | None = None) -> None:
        """Finish the bar of the stage before, and draw a new one."""
        if stage != self.stage or self.total:
            if self.total:
                self._display.update(self._task, total=self.done, completed=self.done)
            else:
                self._display.remove_task(self._task)
            self._task = self._display.add_task(stage, total=None)
        super().begin(stage, total)

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

    def begin(self, stage: str, total: int | None = None) -> None:
        """Say how the stage before ended."""
        if stage != self.stage:
            self.finish()
            self._start = self._said = self._clock()
        super().begin(stage, total)

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
