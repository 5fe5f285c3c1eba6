"""The verdict in one sentence, and what to do next: for readers who have ten seconds.

1. A system is at the top by a metric if no other beats it beyond chance (its first cluster).
2. One system alone at the top by every metric is the best one; several there are no clear winner; none means that the
   metrics disagree.
3. The steps name what to read first, each with the choices of the segment browser that show it.
"""

from collections.abc import Sequence
from dataclasses import replace

from whyscore.report.model import PairTest, Report, Step
from whyscore.report.verdict import named, ordered, pair_tested

_SHOWN = 4
_PAIR = 2
_BOTH = 2
_SEVERE = ("critical", "major")


def advised(report: Report) -> Report:
    """Return the report with its headline and its steps."""
    return replace(report, headline=headline(report), steps=tuple(steps(report)))


def headline(report: Report) -> str:
    """Return who is best, or that nobody is; nothing where nothing was tested."""
    if report.changed:
        return _changed(report)
    metrics, tops = _tops(report)
    if len(report.systems) < _PAIR or not metrics:
        return ""
    return _best(tops, metrics, len(report.systems))


def _tops(report: Report) -> tuple[list[str], list[list[str]]]:
    """Return the metrics by which systems were tested, and for each the systems at the top, the best first."""
    tested = [k for k in range(len(report.metrics)) if any(row.clusters[k] is not None for row in report.systems)]
    tops = [[row.system for row in ordered(report, k) if row.clusters[k] == 1] for k in tested]
    return [report.metrics[k].name for k in tested], tops


def _common(tops: Sequence[Sequence[str]]) -> list[str]:
    """Return the systems that are at the top by every metric."""
    return [system for system in tops[0] if all(system in top for top in tops)] if tops else []


def _best(tops: Sequence[Sequence[str]], names: Sequence[str], systems: int) -> str:
    """Return who is at the top by every metric."""
    common = _common(tops)
    if not common:
        return f"The metrics disagree: {_each(tops, names)}."
    if len(common) == systems:
        return f"No clear winner: chance explains the differences between {_few(common)} {_by(names)}."
    if len(common) > 1:
        return f"No clear winner: {_few(common)} are at the top {_by(names)}, and chance explains what parts them."
    if all(len(top) == 1 for top in tops):
        return f"{common[0]} is the best of {systems} systems {_by(names)}, beyond chance."
    return f"{common[0]} is the only system that nobody beats {_by(names)}; its lead is not beyond chance everywhere."


def _changed(report: Report) -> str:
    """Return whether the last run is better than the first, over all systems and metrics."""
    tests = [one for one in report.comparisons if _itself(one)]
    better, worse = (sum(one.better == getattr(one, side) for one in tests) for side in ("first", "second"))
    if not tests:
        return ""
    if not better and not worse:
        return "Nothing changed beyond chance."
    if better and worse:
        return f"Mixed: beyond chance {better} better and {worse} worse, of {len(tests)} comparisons."
    word, count = ("better", better) if better else ("worse", worse)
    return f"It got {word}: beyond chance in {count} of {len(tests)} comparisons."


def _itself(test: PairTest) -> bool:
    """Return whether a test sets a system against its older self."""
    first, second = test.first.partition(": "), test.second.partition(": ")
    return bool(first[1] and second[1]) and first[2] == second[2] and first[0] != second[0]


def steps(report: Report) -> list[Step]:
    """Return what to do next, the most useful first."""
    found = [*_pair(report), *_more(report)]
    if report.explorer and report.systems:
        best = _leader(report)
        whose = f" of {best}" if len(report.systems) > 1 else ""
        found.append(Step(f"Read the worst segments{whose}", (("system", best), ("sort", "worst"))))
    return [*found, *_marked(report)]


def _leader(report: Report) -> str:
    """Return the system to read first: the last run's, one that is at the top by every metric, or the best by one."""
    if report.changed and report.pair is not None:
        return report.pair[1]
    return (_common(_tops(report)[1]) or [row.system for row in ordered(report, 0)])[0]


def _pair(report: Report) -> list[Step]:
    """Return the segments that part the two systems one wants to compare first."""
    if report.pair is None or not report.explorer:
        return []
    if report.changed:
        old, new = report.pair
        return [Step("Read what got worse", (("system", new), ("other", old), ("sort", "loss")))]
    first, second = report.pair
    controls = ("system", first), ("other", second)
    return [Step(f"Read where {first} and {second} differ most", (*controls, ("sort", "spread")))]


def _more(report: Report) -> list[Step]:
    """Return how large a difference must be to show, where the first two cannot be told apart."""
    if report.pair is None or not report.metrics:
        return []
    metric = report.metrics[0]
    test = pair_tested(report, metric.name, *report.pair)
    if test is None or test.better is not None or test.detectable is None or not test.detectable > abs(test.difference):
        return []
    gap, needed = (f"{abs(value):.{metric.digits}f}" for value in (test.difference, test.detectable))
    first, second = report.pair
    told = f"Test more segments to tell {first} and {second} apart: they differ by {gap} {metric.name}"
    return [Step(f"{told}; this many segments can only show {needed} or more")]


def _marked(report: Report) -> list[Step]:
    """Return the segments with the most severe errors that people marked."""
    errors, severities = report.explorer.get("errors"), report.explorer.get("severities")
    if not isinstance(errors, list) or not isinstance(severities, list):
        return []
    for name in _SEVERE:
        code = severities.index(name)
        there = {j for row in errors for j, found in enumerate(row) if any(error[3] == code for error in found or ())}
        if there:
            counted = f"{len(there):,} segment{'' if len(there) == 1 else 's'}"
            return [Step(f"Read the {counted} with {name} errors that people marked", (("error", f"s{code}"),))]
    return []


def _each(tops: Sequence[Sequence[str]], names: Sequence[str]) -> str:
    told = [
        f"{_few(top)} {'is' if len(top) == 1 else 'are'} at the top by {name}"
        for top, name in zip(tops, names, strict=True)
    ]
    return ", ".join(told)


def _by(names: Sequence[str]) -> str:
    """Return by which metrics, as one says it.

    >>> _by(["chrf"]), _by(["chrf", "bleu"]), _by(["chrf", "bleu", "ter"])
    ('by chrf', 'by both metrics', 'by all 3 metrics')
    """
    if len(names) == 1:
        return f"by {names[0]}"
    return "by both metrics" if len(names) == _BOTH else f"by all {len(names)} metrics"


def _few(names: Sequence[str]) -> str:
    """Return names in a sentence; many are counted.

    >>> _few(["a", "b", "c", "d", "e", "f"])
    'a, b, c and 3 others'
    """
    if len(names) <= _SHOWN:
        return named(list(names))
    return f"{', '.join(names[: _SHOWN - 1])} and {len(names) - _SHOWN + 1} others"
