"""Reports: what a run found, as data first, then as a page, as tables for papers, or on a terminal.

The package can be called like the command of its name: `whyscore.report("run/")` is `build_report("run/")`.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from whyscore.report.build import report_of, without_texts
from whyscore.report.model import Report, ReportSettings, TrendPoint
from whyscore.report.verdict import with_advice, with_changes
from whyscore.runs.folder import Run, merge_runs, read_run
from whyscore.settings import takes

_TWO = 2
"""Runs that are a change; more are a trend."""


@takes(ReportSettings)
def build_report(runs: str | Path | Run | Sequence[str | Path | Run], *, settings: ReportSettings) -> Report:
    """Return the report of a run, or of several compared with each other; each is a folder or a run.

    Without `texts` it holds scores, tests, features and counts of words, but no text of the data.

    `whyscore.report.page.html` makes a page of it; like every result it has tables and records.
    """
    sources = [runs] if isinstance(runs, str | Path | Run) else list(runs)
    opened = [run if isinstance(run, Run) else read_run(run) for run in sources]
    if len(opened) > 1:
        merged = merge_runs(opened)
        report = report_of(merged, title=settings.title, baseline=settings.baseline)
        trend = tuple(
            TrendPoint(identity.run, identity.system, metric, totals[name])
            for metric, totals in merged.totals.items()
            for name, identity in merged.identities.items()
        )
        report = replace(report, trend=trend if len(opened) > _TWO else ())
        report = with_advice(with_changes(report, merged.changes))
    else:
        report = report_of(opened[0], title=settings.title, baseline=settings.baseline)
    return report if settings.texts else without_texts(report)


class _Report(ModuleType):
    """A package that can be called."""

    __call__ = staticmethod(build_report)


sys.modules[__name__].__class__ = _Report
