"""Reports: what a run found, as data first, then as a page, as tables for papers, or on a terminal.

The package can be called like the command of its name: `whyscore.report("run/")` is `build_report("run/")`.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from whyscore.report.build import report_of, without_texts
from whyscore.report.merging import merged, pairs
from whyscore.report.model import Report
from whyscore.report.verdict import advised, changes
from whyscore.runs.reading import Run, read_run


def build_report(
    runs: str | Path | Run | Sequence[str | Path | Run], *, title: str | None = None, texts: bool = True
) -> Report:
    """Return the report of a run, or of several set against each other; each is a folder or a run.

    Without `texts` it holds scores, tests, features and counts of words, but no text of the data.

    `whyscore.report.page.html` makes a page of it, `whyscore.report.tables` tables and JSON.
    """
    given = [runs] if isinstance(runs, str | Path | Run) else list(runs)
    whole = merged([one if isinstance(one, Run) else read_run(one) for one in given])
    found = report_of(whole, title=title)
    if len(given) > 1:
        found = advised(changes(found, pairs(whole)))
    return found if texts else without_texts(found)


class _Report(ModuleType):
    """A package that can be called."""

    __call__ = staticmethod(build_report)


sys.modules[__name__].__class__ = _Report
