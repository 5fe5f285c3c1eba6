"""The verdict in plain words: who is ahead, by how much, whether chance explains it, and what people say.

Only what was tested is called a difference; what was not tested is told as numbers.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from whyscore.report.model import PairTest, Report, SystemRow
from whyscore.types import Estimate

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
