"""A progress bar with rate and remaining time, on a terminal only."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from whyscore.cli.options import QuietSettings


class Rate(ProgressColumn):
    """Segments per second."""

    def render(self, task: Task) -> Text:
        """Return the rate, nothing while it is not known."""
        return Text(f"{task.speed:,.0f}/s" if task.speed else "")


class Bar:
    """Shows how many segments are scored, and how many of them were known before."""

    def __init__(self, display: Progress) -> None:
        """Start with an empty bar."""
        self._display = display
        self._task = display.add_task("scoring", total=0)
        self._total = 0
        self._stored = 0

    def asked(self, count: int) -> None:
        """Hear that so many more segments will be scored."""
        self._total += count
        self._display.update(self._task, total=self._total)

    def answered(self, count: int, *, stored: bool) -> None:
        """Hear that so many are done."""
        self._stored += count if stored else 0
        about = f"scoring ({self._stored} from the store)" if self._stored else "scoring"
        self._display.update(self._task, advance=count, description=about)


@contextmanager
def progress_bar(output: QuietSettings) -> Iterator[Bar | None]:
    """Give a bar while the work lasts; None where stderr is no terminal or nothing may be said."""
    if output.quiet or not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        yield Bar(display)
