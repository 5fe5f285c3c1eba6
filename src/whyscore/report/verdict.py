"""The verdict in words: which system leads, by how much, whether that is significant, and what human raters say.

1. The headline is one sentence, for readers who have ten seconds. It counts top clusters: the best score of a metric,
   and the following ones down to the first that is significantly worse than one of them. One system alone at the top of
   every metric, and significantly better than each other one, is the best; several there are no clear winner; none
   means that the metrics disagree.
2. One sentence per metric and human score. Only what was tested is called a difference; what was not tested is
   reported as numbers.
3. With a baseline, the first sentences compare each other system with it.
4. The steps name what to read first, each with the choices of the segment browser that show it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from whyscore.data.style import SYSTEMATIC
from whyscore.report.model import SMALLEST_P, Report, Step, SystemRow, feature_name, p_value
from whyscore.types import PairTest

_CLEAR = 0.8
_CHANCE = 0.5
_PAIR = 2
_UNDECIDED = "No metric of this run supports the language, so there is no verdict"


def with_verdict(report: Report) -> Report:
    """Return the report with its verdict, and with the two systems one wants to compare first."""
    sentences: list[str] = []
    if len(report.systems) > 1:
        candidates = [row.system for row in report.systems if report.baseline not in (None, row.system)]
        sentences += [_baseline_verdict(report, system) for system in candidates]
        # Of two systems everything is said then.
        sentences += [_metric_verdict(report, k) for k in report.supported] if len(candidates) != 1 else []
        sentences += [_human_verdict(report, k) for k in range(len(report.human))]
        sentences += [] if report.supported else [f"{_UNDECIDED}."]
    else:
        sentences.append(_single_verdict(report))
    sentences += [*_weakest_areas(report), *_highlight_verdict(report)]
    return replace(report, verdict=tuple(text for text in sentences if text), pair=report.pair or _pair(report))


def with_changes(report: Report, changes: Mapping[str, tuple[str, str]]) -> Report:
    """Return the report of several runs with what changed as its verdict: each system from the first to the last.

    Args:
        report: Of the merged run.
        changes: By system, its names in the merged run: old and new.
    """
    sentences = [_change(report, name, old, new) for name, (old, new) in changes.items()]
    pairs = tuple(changes.values())
    tested = [
        comparison
        for comparison in report.comparisons
        if (comparison.second, comparison.first) in pairs and comparison.decisive is not None
    ]
    clearest = min(tested, key=lambda test: (test.decisive or 0.0, -abs(test.difference)), default=None)
    pair = report.pair if clearest is None else (clearest.second, clearest.first)
    return replace(report, verdict=tuple(sentences) or report.verdict, pair=pair, changes=pairs)


def _baseline_verdict(report: Report, system: str) -> str:
    """Return how a system differs from the baseline on each metric, and whether significantly where that was tested."""
    rows = {row.system: row for row in report.systems}
    parts = []
    for k in report.supported:
        metric = report.metrics[k]
        gap = rows[system].score(k) - rows[str(report.baseline)].score(k)
        if not math.isfinite(gap):
            continue
        how = _significance(find_test(report, metric.name, system, str(report.baseline)), system)
        parts.append(f"{gap:+.{report.digits[k]}f} {metric.name} ({how or 'not tested'})")
    return f"{system} vs {report.baseline}: {'; '.join(parts)}." if parts else ""


def _change(report: Report, name: str, old: str, new: str) -> str:
    """Return how one system changed on each metric, and whether significantly."""
    rows = {row.system: row for row in report.systems}
    parts = []
    for k, metric in enumerate(report.metrics):
        totals = [rows[system].totals[k] for system in (old, new)]
        before, after = (f"{total.value:.{report.digits[k]}f}" for total in totals)
        test = find_test(report, metric.name, old, new)
        how = _significance(test, new)
        change = f"{before} → {after}"
        if test is not None and any(total.n != test.n for total in totals):
            common = f"{test.difference:+.{report.digits[k]}f} per segment on the {test.n} that both have"
            counts = " and ".join(str(total.n) for total in totals)
            change += f" on {counts} segments, {common if test.n else 'none of them in both runs'}"
        elif before == after:
            change, how = f"{after}, unchanged", ""
        parts.append(f"{metric.name} {change}{f' ({how})' if how else ''}")
    return f"{name}: {'; '.join(parts)}."


def _significance(test: PairTest | None, system: str) -> str:
    """Return whether a system is significantly better or worse than the other one, with p; nothing without a test."""
    if test is None or test.decisive is None:
        return ""
    how = (
        "not significant" if test.better is None else f"significantly {'better' if test.better == system else 'worse'}"
    )
    return f"{how}, {p_text(test.decisive)}"


def rank_systems(report: Report, number: int) -> list[SystemRow]:
    """Return the systems ordered by one metric, the best first."""
    sign = -1 if report.metrics[number].higher_is_better else 1
    return sorted(report.systems, key=lambda row: (sign * row.score(number), row.system))


def _metric_verdict(report: Report, number: int) -> str:
    """Return which system leads on one metric, and whether significantly."""
    metric = report.metrics[number]
    first, second, *_ = rank_systems(report, number)
    best, following = (f"{row.score(number):.{report.digits[number]}f}" for row in (first, second))
    level = [row.system for row in rank_systems(report, number) if row.score(number) == first.score(number)]
    if len(level) > 1:
        return f"{metric.name}: {join_names(level)} tie at {best}."
    leads = f"{metric.name}: {first.system} scores {'highest' if metric.higher_is_better else 'lowest (best)'} ({best})"
    test = find_test(report, metric.name, first.system, second.system)
    if test is None or test.decisive is None:
        return f"{leads}, followed by {second.system} ({following}); not tested."
    beyond = f"significantly {'above' if metric.higher_is_better else 'below'}"
    others = _level_with(report, number, first.system)
    end = _cluster_end(report, number, others)
    if others in ([], [second.system]):
        how = f"but not {beyond}" if others else beyond
        return f"{leads}, {how} {second.system} ({following}, {p_text(test.decisive)}){end}."
    numbers = f"{second.system}: {following}, {p_text(test.decisive)}"
    return f"{leads}, but not {beyond} {join_names(others, 'or')} ({numbers}){end}."


def _level_with(report: Report, number: int, best: str) -> list[str]:
    """Return the systems that were tested against the best one and are not significantly worse."""
    metric = report.metrics[number].name
    tests = [(row.system, find_test(report, metric, best, row.system)) for row in rank_systems(report, number)]
    return [name for name, test in tests if test is not None and test.decisive is not None and test.better != best]


def _cluster_end(report: Report, number: int, level: Sequence[str]) -> str:
    """Return why systems that are level with the best one are not in the top cluster, where there are such.

    The cluster ends at the first system that any member, not only the best one, is significantly better than.
    """
    rows = rank_systems(report, number)
    if all(row.clusters[number] in (None, 1) for row in rows if row.system in level):
        return ""
    end = next(row.system for row in rows if row.clusters[number] not in (None, 1))
    tests = [find_test(report, report.metrics[number].name, row.system, end) for row in rows if row.system != end]
    better = next((test.better for test in tests if test is not None and test.better not in (None, end)), None)
    return f"; the top cluster ends above {end}, which is significantly worse than {better or 'another system'}"


def find_test(report: Report, metric: str, first: str, second: str) -> PairTest | None:
    """Return the test of two systems under a metric, in whichever order it stands."""
    systems = {first, second}
    return next(
        (
            comparison
            for comparison in report.comparisons
            if comparison.metric == metric and {comparison.first, comparison.second} == systems
        ),
        None,
    )


def p_text(p: float) -> str:
    """Return a p-value in a sentence.

    >>> p_text(0.0004), p_text(0.4)
    ('p < 0.001', 'p = 0.40')
    """
    return f"p {p_value(p)}" if p < SMALLEST_P else f"p = {p_value(p)}"


def _human_verdict(report: Report, number: int) -> str:
    """Return which system human raters rank first, and which metrics agree."""
    rows = [row for row in report.systems if math.isfinite(row.human_score(number))]
    if len(rows) < _PAIR:
        return ""
    best = max(rows, key=lambda row: row.human_score(number))
    agreeing = [report.metrics[k].name for k in report.supported if rank_systems(report, k)[0] is best]
    name = report.human[number]
    sentence = f"Human raters ({name}) rank {best.system} first (mean {best.human_score(number):.2f})"
    equal = [row.system for row in rows if row.human_clusters and row.human_clusters[number] == 1 and row is not best]
    if equal:
        sentence += f", not significantly above {join_names(equal, 'or')}"
    if not agreeing:
        return f"{sentence}; no metric agrees."
    return f"{sentence}; {join_names(agreeing)} {'agrees' if len(agreeing) == 1 else 'agree'}."


def _single_verdict(report: Report) -> str:
    row = report.systems[0]
    numbers = [f"{report.metrics[k].name} {row.totals[k].interval(report.digits[k])}" for k in report.supported]
    if not numbers:
        return f"{row.system}: {_UNDECIDED[0].lower()}{_UNDECIDED[1:]}."
    return f"{row.system}: {', '.join(numbers)}. There is no other system to compare with."


def _weakest_areas(report: Report) -> list[str]:
    """Return one sentence on the features that lose most, for the first metric that was decomposed."""
    rows = [row for row in report.features if row.share is not None and "few" not in row.flags]
    # What typography does to the features is no weakness of a system.
    if not rows or any(warning.code == SYSTEMATIC for warning in report.warnings):
        return []
    metric = rows[0].metric
    means: dict[str, list[float]] = {}
    for row in rows:
        if row.metric == metric and row.share is not None:
            means.setdefault(row.feature, []).append(row.share)
    worst = sorted(means, key=lambda name: -sum(means[name]) / len(means[name]))[:2]
    lost = [f"{100 * sum(means[name]) / len(means[name]):.0f} %" for name in worst]
    lost[0] += " of the achievable score lost"
    areas = [f"{feature_name(name)} ({share})" for name, share in zip(worst, lost, strict=True)]
    return [f"By {metric}, the weakest area{'s are' if len(areas) > 1 else ' is'} {join_names(areas)}."]


def _highlight_verdict(report: Report) -> list[str]:
    """Return how well the highlights match the errors that human raters marked."""
    rows = [row for row in report.agreement if row.side == "hypothesis"]
    if not rows:
        return []
    best = max(rows, key=lambda row: row.auc.value)
    how = "well" if best.auc.value >= _CLEAR else "only weakly" if best.auc.value > _CHANCE else "no better than chance"
    match = f"The highlights of {best.metric} match human error marks {how}"
    return [f"{match}: AUC {best.auc.value:.2f} on {best.n:,} text{'' if best.n == 1 else 's'} (0.50 = chance)."]


def _pair(report: Report) -> tuple[str, str] | None:
    if len(report.systems) < _PAIR:
        return None
    first, second, *_ = rank_systems(report, report.main)
    if report.baseline is not None:
        return (second if first.system == report.baseline else first).system, report.baseline
    return first.system, second.system


def join_names(names: Sequence[str], last: str = "and") -> str:
    """Return names as one writes them in a sentence.

    >>> join_names(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"


_SHOWN = 4
_SEVERE = ("critical", "major")


def with_advice(report: Report) -> Report:
    """Return the report with its headline and its steps."""
    return replace(report, headline=headline(report), steps=tuple(steps(report)))


def headline(report: Report) -> str:
    """Return which system is best, or that none is; nothing where nothing was tested."""
    if report.changes:
        return _change_headline(report)
    metrics, tops = _tops(report)
    if len(report.systems) < _PAIR or not metrics:
        return ""
    return _best(report, tops, metrics)


def _tops(report: Report) -> tuple[list[str], list[list[str]]]:
    """Return the metrics by which systems were tested, and for each the systems at the top, the best first."""
    tested = [k for k in report.supported if any(row.clusters[k] is not None for row in report.systems)]
    tops = [[row.system for row in rank_systems(report, k) if row.clusters[k] == 1] for k in tested]
    return [report.metrics[k].name for k in tested], tops


def _common(tops: Sequence[Sequence[str]]) -> list[str]:
    """Return the systems that are at the top by every metric."""
    return [system for system in tops[0] if all(system in top for top in tops)] if tops else []


def _best(report: Report, tops: Sequence[Sequence[str]], names: Sequence[str]) -> str:
    """Return which system is at the top of every metric."""
    common, systems = _common(tops), [row.system for row in report.systems]
    if not common:
        return f"The metrics disagree: {_each(tops, names)}."
    if len(common) == len(systems):
        return f"No clear winner: {_few(common)} do not differ significantly {_on(names, 'any')}."
    if len(common) > 1:
        gap = "difference between them is" if len(common) == _PAIR else "differences between them are"
        who = f"{_few(common)} are in the top cluster {_on(names)}"
        return f"No clear winner: {who}; the {gap} not statistically significant."
    best = common[0]
    if not all(len(top) == 1 for top in tops):
        return f"Only {best} is in the top cluster {_on(names)}; its lead is not significant on every metric."
    numbers = [k for k, metric in enumerate(report.metrics) if metric.name in names]
    level = list(dict.fromkeys(name for k in numbers for name in _level_with(report, k, best)))
    if level:
        where = _on(names) if len(names) == 1 else "on every metric"
        return (
            f"Only {best} is in the top cluster {_on(names)}, but not significantly better than {_few(level)} {where}."
        )
    return f"{best} is significantly better than {_others(best, systems)} {_on(names)}."


def _others(best: str, systems: Sequence[str]) -> str:
    others = [name for name in systems if name != best]
    if len(others) == 1:
        return others[0]
    return "both other systems" if len(others) == _PAIR else f"all {len(others)} other systems"


def _change_headline(report: Report) -> str:
    """Return whether the last run is better than the first, over all systems and metrics."""
    tests = [comparison for comparison in report.comparisons if (comparison.second, comparison.first) in report.changes]
    better, worse = (sum(test.better == getattr(test, side) for test in tests) for side in ("first", "second"))
    if not tests:
        return ""
    total = f"{len(tests)} comparison{'' if len(tests) == 1 else 's'}"
    if better and worse:
        return f"Mixed: {better} of {total} improved significantly, {worse} got significantly worse."
    if better or worse:
        return (
            f"{better} of {total} improved significantly." if better else f"{worse} of {total} got significantly worse."
        )
    return f"No significant change in {total}."


def steps(report: Report) -> list[Step]:
    """Return what to do next, the most useful first."""
    advice = [*_pair_step(report), *_more(report)]
    if report.explorer and report.systems:
        best = _best_system(report)
        whose = f" of {best}" if len(report.systems) > 1 else ""
        advice.append(Step(f"Read the worst segments{whose}", (("system", best), ("sort", "worst"))))
    return [*advice, *_severe_steps(report)]


def _best_system(report: Report) -> str:
    """Return the system to read first: the last run's, one that is at the top by every metric, or the best by one."""
    if report.changes and report.pair is not None:
        return report.pair[1]
    return (_common(_tops(report)[1]) or [row.system for row in rank_systems(report, report.main)])[0]


def _pair_step(report: Report) -> list[Step]:
    """Return the segments on which the two systems to compare first differ."""
    if report.pair is None or not report.explorer:
        return []
    if report.changes:
        old, new = report.pair
        return [Step("Read the segments that got worse", (("system", new), ("other", old), ("sort", "loss")))]
    first, second = report.pair
    controls = ("system", first), ("other", second)
    return [Step(f"Read where {first} and {second} differ most", (*controls, ("sort", "spread")))]


def _more(report: Report) -> list[Step]:
    """Return how large a difference must be to be detected, where the first two do not differ significantly."""
    if report.pair is None or not report.metrics:
        return []
    metric = report.metrics[report.main]
    test = find_test(report, metric.name, *report.pair)
    if test is None or test.better is not None or test.detectable is None or not test.detectable > abs(test.difference):
        return []
    gap, needed = (f"{abs(value):.{report.digits[report.main]}f}" for value in (test.difference, test.detectable))
    first, second = report.pair
    size = f"{test.n:,} segments" if test.n else "this many segments"
    goal = f"Test more segments to separate {first} and {second}: they differ by {gap} {metric.name}"
    return [Step(f"{goal}, but {size} can only detect differences of about {needed}")]


def _severe_steps(report: Report) -> list[Step]:
    """Return the segments with the most severe errors that human raters marked."""
    errors, severities = report.explorer.get("errors"), report.explorer.get("severities")
    if not isinstance(errors, list) or not isinstance(severities, list):
        return []
    for name in _SEVERE:
        code = severities.index(name)
        there = {j for row in errors for j, marks in enumerate(row) if any(error[3] == code for error in marks or ())}
        if there:
            counted = f"{len(there):,} segment{'' if len(there) == 1 else 's'}"
            return [Step(f"Read the {counted} with {name} errors marked by human raters", (("error", f"s{code}"),))]
    return []


def _each(tops: Sequence[Sequence[str]], names: Sequence[str]) -> str:
    """Return which systems are in the top cluster of which metrics.

    >>> _each([["a"], ["b", "c"], ["a"]], ["chrf", "bleu", "ter"])
    'a leads on chrf and ter, b and c are in the top cluster on bleu'
    """
    metrics: dict[tuple[str, ...], list[str]] = {}
    for top, name in zip(tops, names, strict=True):
        metrics.setdefault(tuple(top), []).append(name)
    leads = {top: "leads" if len(top) == 1 else "are in the top cluster" for top in metrics}
    return ", ".join(f"{_few(top)} {leads[top]} on {join_names(on)}" for top, on in metrics.items())


def _on(names: Sequence[str], how: Literal["all", "any"] = "all") -> str:
    """Return on which metrics, as one says it.

    >>> _on(["chrf"]), _on(["chrf", "bleu"]), _on(["chrf", "bleu", "ter"]), _on(["chrf", "bleu", "ter"], "any")
    ('on chrf', 'on both metrics', 'on all 3 metrics', 'on any of 3 metrics')
    """
    if len(names) == 1:
        return f"on {names[0]}"
    if how == "any":
        return "on either metric" if len(names) == _PAIR else f"on any of {len(names)} metrics"
    return "on both metrics" if len(names) == _PAIR else f"on all {len(names)} metrics"


def _few(names: Sequence[str]) -> str:
    """Return names in a sentence; many are counted.

    >>> _few(["a", "b", "c", "d", "e", "f"])
    'a, b, c and 3 others'
    """
    if len(names) <= _SHOWN:
        return join_names(list(names))
    return f"{', '.join(names[: _SHOWN - 1])} and {len(names) - _SHOWN + 1} others"
