"""From a run to a report: every part is worked out here, once, and every form of the report shows the same."""

import shlex
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from whyscore.report.comparing import pair_tests
from whyscore.report.costly import costly_words, word_counts
from whyscore.report.explorer import explorer
from whyscore.report.features import feature_rows, features_by_segment
from whyscore.report.headline import advised
from whyscore.report.highlights import agreement
from whyscore.report.matches import matches
from whyscore.report.model import Made, MetricView, Report, SystemRow
from whyscore.report.pictures import figures_in
from whyscore.report.verdict import verdict
from whyscore.runs.reading import Run
from whyscore.runs.tests import clusters_of
from whyscore.types import Dataset, Estimate


def report_of(run: Run, *, title: str | None = None) -> Report:
    """Return the report of a run."""
    metrics = tuple(_view(run, name) for name in _names(run))
    tests = pair_tests(run)
    human = tuple(sorted({name for entry in run.dataset.entries for name in entry.human}))
    systems = tuple(sorted((_system(run, system, human) for system in run.dataset.systems), key=_rank(metrics)))
    features = feature_rows(run)
    report = Report(
        title=title or run.dataset.name,
        about=about(run.dataset),
        verdict=(),
        metrics=metrics,
        systems=systems,
        made=_made(run),
        human=human,
        comparisons=tests,
        features=features,
        costly=costly_words(run),
        agreement=agreement(run),
        figures=figures_in(run.folder),
        explorer=explorer(run, features_by_segment(run)),
        words=word_counts(run),
        matches=matches(run),
    )
    return advised(verdict(report))


def about(data: Dataset) -> str:
    """Return how much of what was compared, in one line.

    >>> about(Dataset("x", (), ("de", "en")))
    '0 systems, 0 segments, de → en'
    """
    references = {len(segment.references) for segment in data.segments}
    parts = [_counted(len(data.systems), "system"), _counted(len(data.ids), "segment")]
    if references and references != {0}:
        parts.append(_counted(max(references), "reference") if len(references) == 1 else "references vary")
    if data.languages:
        parts.append(" → ".join(data.languages))
    return ", ".join(parts)


def digits_of(totals: Mapping[str, Estimate]) -> int:
    """Return how many decimals tell the systems apart: two for percentages, four for shares of one."""
    largest = max((abs(total.value) for total in totals.values() if np.isfinite(total.value)), default=0.0)
    return 2 if largest > 2 else 4  # noqa: PLR2004 - scores in percent, or between 0 and 1


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _view(run: Run, name: str) -> MetricView:
    one = run.metric(name)
    return MetricView(one.name, one.higher_is_better, one.explainer, digits_of(run.totals[name]))


def _system(run: Run, system: str, human: Sequence[str]) -> SystemRow:
    data = run.dataset.of(system)
    means = tuple(float(np.nanmean(values)) if np.isfinite(values).any() else float("nan") for values in (
        np.array([entry.human.get(name, np.nan) for entry in data.entries]) for name in human
    ))  # fmt: skip
    totals = tuple(run.totals[one.name][system] for one in run.metrics)
    clusters = clusters_of(run)
    ranks, judged = (tuple(clusters.get((name, system)) for name in names) for names in (_names(run), human))
    return SystemRow(system, totals, ranks, means, judged)


def _names(run: Run) -> list[str]:
    return [one.name for one in run.metrics]


def _rank(metrics: Sequence[MetricView]) -> Callable[[SystemRow], float]:
    """Return what orders the systems: the first metric, the best first."""
    sign = -1.0 if metrics and metrics[0].higher_is_better else 1.0
    return lambda row: sign * row.totals[0].value if row.totals else 0.0


def _made(run: Run) -> Made:
    facts = run.facts
    signatures = [(one.name, one.signature) for one in run.metrics]
    signatures += [(f"{one.name}, words", one.explained) for one in run.metrics if one.explained]
    signatures += list(run.signatures.items())
    command = facts.get("command")
    return Made(
        created=str(facts.get("created", "")),
        version=str(facts.get("whyscore", "")),
        command=shlex.join(map(str, command)) if isinstance(command, list) else None,
        signatures=tuple(signatures),
        versions=_pairs(facts.get("versions")),
        counts=_pairs(facts.get("counts")),
        seconds=_pairs(facts.get("seconds")),
        licences=tuple(licences(run)),
        findings=_texts(facts.get("findings")),
        problems=_texts(facts.get("problems")),
    )


def licences(run: Run) -> list[tuple[str, str]]:
    """Return the licence of each metric's model, as its signature names it."""
    found = []
    for one in run.metrics:
        facts = dict(part.split(":", 1) for part in one.signature.split("|")[1:] if ":" in part)
        if "licence" in facts:
            found.append((one.name, facts["licence"]))
    return found


def _pairs(value: object) -> tuple[tuple[str, str], ...]:
    return tuple((str(key), str(item)) for key, item in value.items()) if isinstance(value, Mapping) else ()


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()
