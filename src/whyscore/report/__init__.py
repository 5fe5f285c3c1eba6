"""Reports: what a run found, as data first, then as a page, as tables for papers, or on a terminal."""

from collections.abc import Sequence
from pathlib import Path

from whyscore.jobs.runs_reading import Run, read_run
from whyscore.report.building import report_of
from whyscore.report.merging import merged, pairs
from whyscore.report.model import Report
from whyscore.report.verdict import changes


def build_report(runs: str | Path | Run | Sequence[str | Path | Run], *, title: str | None = None) -> Report:
    """Return the report of a run, or of several set against each other; each is a folder or a run.

    `whyscore.report.page.html` makes a page of it, `whyscore.report.papers` tables and JSON.
    """
    given = [runs] if isinstance(runs, str | Path | Run) else list(runs)
    whole = merged([one if isinstance(one, Run) else read_run(one) for one in given])
    found = report_of(whole, title=title)
    return found if len(given) == 1 else changes(found, pairs(whole))
