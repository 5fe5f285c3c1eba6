"""The verdict in plain words: who is ahead, by how much, whether chance explains it, and what people say.

Only what was tested is called a difference; what was not tested is told as numbers.

The verdict in one sentence, and what to do next: for readers who have ten seconds.

1. A system is at the top by a metric if no other beats it beyond chance (its first cluster).
2. One system alone at the top by every metric is the best one; several there are no clear winner; none means that the
   metrics disagree.
3. The steps name what to read first, each with the choices of the segment browser that show it.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from whyscore.report.model import Report, Step, SystemRow
from whyscore.types import Estimate, PairTest

_CLEAR = 0.8
_PAIR = 2


def verdict(report: Report) -> Report:
    """Return the report with its verdict, and with the two systems one wants to compare first."""
    sentences: list[str] = []
    if len(report.systems) > 1:
        sentences += [_leader(report, k) for k in range(len(report.metrics))]
        sentences += [_people(report, k) for k in range(len(report.human))]
    else:
        sentences.append(_alone(report))
    sentences += [*_lost(report), *_trust(report)]
    return replace(report, verdict=tuple(text for text in sentences if text), pair=report.pair or _pair(report))


def changes(report: Report, pairs: Sequence[tuple[str, str]]) -> Report:
    """Return the report of several runs with what changed as its verdict: each system from the first to the last."""
    told = [_change(report, old, new) for old, new in pairs]
    tested = [one for one in report.comparisons if (one.second, one.first) in pairs and one.p is not None]
    clearest = min(tested, key=lambda one: (one.p or 0.0, -abs(one.difference)), default=None)
    pair = report.pair if clearest is None else (clearest.second, clearest.first)
    return replace(report, verdict=tuple(told) or report.verdict, pair=pair, changed=bool(told))


def _change(report: Report, old: str, new: str) -> str:
    """Return how one system changed, by each metric, and whether chance explains it."""
    rows = {row.system: row for row in report.systems}
    told = []
    for k, metric in enumerate(report.metrics):
        before, after = (f"{rows[system].totals[k].value:.{metric.digits}f}" for system in (old, new))
        test = pair_tested(report, metric.name, old, new)
        said = f"{before} to {after} by {metric.name}" if before != after else f"{after} by {metric.name} as before"
        if test is not None and test.p is not None and before != after:
            how = "chance explains that" if test.better is None else "better" if test.better == new else "worse"
            said += f" ({how}, {p_text(test.p)})"
        told.append(said)
    return f"{old.partition(': ')[2]}: {'; '.join(told)}."


def ordered(report: Report, number: int) -> list[SystemRow]:
    """Return the systems by one metric, the best first."""
    sign = -1 if report.metrics[number].higher_is_better else 1
    return sorted(report.systems, key=lambda row: (sign * row.totals[number].value, row.system))


def shown(total: Estimate, digits: int) -> str:
    """Return a number with its interval.

    >>> shown(Estimate(51.26, 50.1, 52.2), 1)
    '51.3 [50.1, 52.2]'
    """
    interval = "" if total.low is None or total.high is None else f" [{total.low:.{digits}f}, {total.high:.{digits}f}]"
    return f"{total.value:.{digits}f}{interval}"


def _leader(report: Report, number: int) -> str:
    """Return who is ahead by one metric, and whether the next one can be told apart."""
    metric = report.metrics[number]
    first, second, *_ = ordered(report, number)
    best, following = (f"{row.totals[number].value:.{metric.digits}f}" for row in (first, second))
    level = [row.system for row in ordered(report, number) if row.totals[number].value == first.totals[number].value]
    if len(level) > 1:
        return f"By {metric.name}, {named(level)} are level with {best}."
    top = [row.system for row in ordered(report, number) if row.clusters[number] == 1]
    test = pair_tested(report, metric.name, first.system, second.system)
    if test is None or test.p is None:
        return f"By {metric.name}, {first.system} is ahead with {best}; {second.system} follows with {following}."
    if len(top) > 1:
        others = named(top[1:])
        return (
            f"By {metric.name}, {first.system} is ahead with {best}, but chance explains its lead over {others} "
            f"({second.system}: {following}, {p_text(test.p)})."
        )
    return (
        f"By {metric.name}, {first.system} is best with {best}, beyond what chance explains "
        f"({second.system} follows with {following}, {p_text(test.p)})."
    )


def pair_tested(report: Report, metric: str, first: str, second: str) -> PairTest | None:
    """Return the test of two systems under a metric, in whichever order it stands."""
    wanted = {first, second}
    return next((one for one in report.comparisons if one.metric == metric and {one.first, one.second} == wanted), None)


def p_value(p: float) -> str:
    """Return a p-value as papers print it.

    >>> p_value(0.0004), p_value(0.0312), p_value(0.4)
    ('< 0.001', '0.031', '0.40')
    """
    if p < 0.001:  # noqa: PLR2004 - below that nobody reads digits
        return "< 0.001"
    return f"{p:.3f}" if p < 0.1 else f"{p:.2f}"  # noqa: PLR2004 - the digits that matter


def p_text(p: float) -> str:
    """Return a p-value in a sentence.

    >>> p_text(0.0004), p_text(0.4)
    ('p < 0.001', 'p = 0.40')
    """
    shown_ = p_value(p)
    return f"p {shown_}" if shown_.startswith("<") else f"p = {shown_}"


def _people(report: Report, number: int) -> str:
    """Return whom people prefer, and which metrics put the same system first."""
    rows = [row for row in report.systems if math.isfinite(row.human[number])]
    if len(rows) < _PAIR:
        return ""
    best = max(rows, key=lambda row: row.human[number])
    agreeing = [metric.name for k, metric in enumerate(report.metrics) if ordered(report, k)[0] is best]
    name = report.human[number]
    said = f"People ({name}) put {best.system} first ({best.human[number]:.2f} on average)"
    equal = [row.system for row in rows if row.human_clusters and row.human_clusters[number] == 1 and row is not best]
    if equal:
        said += f", though not beyond chance over {named(equal)}"
    if not agreeing:
        return f"{said}; no metric here does."
    return f"{said}; so {'does' if len(agreeing) == 1 else 'do'} {named(agreeing)}."


def _alone(report: Report) -> str:
    row = report.systems[0]
    numbers = [
        f"{metric.name} {shown(total, metric.digits)}" for metric, total in zip(report.metrics, row.totals, strict=True)
    ]
    return f"{row.system}: {', '.join(numbers)}. There is no other system to compare it with."


def _lost(report: Report) -> list[str]:
    """Return one sentence on the features that lose most, for the first metric that was taken apart."""
    known = [row for row in report.features if row.share is not None and "few" not in row.flags]
    if not known:
        return []
    metric = known[0].metric
    means: dict[str, list[float]] = {}
    for row in known:
        if row.metric == metric and row.share is not None:
            means.setdefault(row.feature, []).append(row.share)
    worst = sorted(means, key=lambda name: -sum(means[name]) / len(means[name]))[:2]
    told = [f"{name.replace('_', ' ')} ({100 * sum(means[name]) / len(means[name]):.0f} %)" for name in worst]
    return [f"Of what each kind of word could earn under {metric}, most is lost on {named(told)}."]


def _trust(report: Report) -> list[str]:
    """Return how far the highlights agree with the errors that people marked."""
    rows = [row for row in report.agreement if row.side == "hypothesis"]
    if not rows:
        return []
    best = max(rows, key=lambda row: row.auc.value)
    how = "reliably" if best.auc.value >= _CLEAR else "only partly"
    found = f"The highlights of {best.metric} find the words that people marked as errors {how}"
    return [f"{found}: AUC {best.auc.value:.2f} over {best.n} texts, where chance has 0.50."]


def _pair(report: Report) -> tuple[str, str] | None:
    if len(report.systems) < _PAIR:
        return None
    first, second, *_ = ordered(report, 0)
    return first.system, second.system


def named(names: list[str]) -> str:
    """Return names as one writes them in a sentence.

    >>> named(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


_SHOWN = 4
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
    found = [*_pair_step(report), *_more(report)]
    if report.explorer and report.systems:
        best = _best_system(report)
        whose = f" of {best}" if len(report.systems) > 1 else ""
        found.append(Step(f"Read the worst segments{whose}", (("system", best), ("sort", "worst"))))
    return [*found, *_marked(report)]


def _best_system(report: Report) -> str:
    """Return the system to read first: the last run's, one that is at the top by every metric, or the best by one."""
    if report.changed and report.pair is not None:
        return report.pair[1]
    return (_common(_tops(report)[1]) or [row.system for row in ordered(report, 0)])[0]


def _pair_step(report: Report) -> list[Step]:
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
