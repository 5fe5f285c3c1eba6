"""`whyscore compare`: is A better than B?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from whyscore.analysis.common import as_metric, requested_name
from whyscore.analysis.compare.compare import compare, compared_segments
from whyscore.analysis.compare.result import CompareSettings, Comparison
from whyscore.cli.options import GateSettings, InputSettings, MetricSettings, OutputSettings, RunningSettings
from whyscore.cli.output import emit, emit_result, format_of, tell_each, tell_signatures, terminal_width
from whyscore.cli.setup import (
    baseline_of,
    fail_if_unparsed,
    load_dataset,
    refuse_idle_reports,
    report_gates,
    requested_metrics,
    score_costs,
    some_metrics,
    working,
)
from whyscore.marking import ON_ONE_LINE
from whyscore.present import Look, Tables, present
from whyscore.runs.gates import check_baseline, check_gates, judge_gates, read_limits
from whyscore.settings import option
from whyscore.types import Dataset

EXAMPLES = """\
examples:
  whyscore compare -r ref.txt -t base.txt sysA.txt sysB.txt -m bleu chrf --test permutation
  whyscore compare data.tsv -m chrf --documents --correction bonferroni
  whyscore compare --sample -m chrf ter --human mqm
  whyscore compare --sample -m bleu -f latex
  whyscore compare -r ref.txt -t prod.txt new.txt -m chrf --fail-if-worse
"""


@dataclass(frozen=True, kw_only=True)
class CompareCommand(
    RunningSettings, OutputSettings, GateSettings, InputSettings, CompareSettings, MetricSettings
):  # fmt: skip
    """What `whyscore compare` takes."""

    strengths: bool = option(False, "also show Bradley-Terry strengths by segments won, with confidence intervals")


SETTINGS = CompareCommand
STRENGTH_DRAWS = 1000
_PAPER = ("markdown", "latex")


def run(settings: CompareCommand) -> int:
    """Compare the systems and write out what can be said."""
    refuse_idle_reports(settings)
    metrics = requested_metrics(settings) if settings.human else some_metrics(settings)
    data = load_dataset(settings, metrics)
    under = read_limits(settings.fail_under or (), [*map(requested_name, metrics), *(settings.human or ())])
    worse = baseline_of(settings, data)
    check_baseline(data.systems, worse)
    if settings.dry_run:
        emit(settings, _plan_lines(settings, data, metrics))
        return 0
    with_draws = replace(settings, strength_draws=STRENGTH_DRAWS if settings.strengths else 0)
    with working(settings) as resources:
        comparison = compare(data, metrics, settings=with_draws, resources=resources)
    _emit(comparison if settings.width is None else replace(comparison, decimals=settings.width), settings)
    gates = judge_gates(comparison, under, worse, comparison.unsupported, settings)
    report_gates(gates, settings, data.name)
    check_gates(gates, worse, under)
    fail_if_unparsed(settings, resources)
    return 0


def _emit(comparison: Comparison, settings: CompareCommand) -> None:
    form = format_of(settings)
    if form == "text":
        emit(settings, _text(comparison, settings))
        tell_signatures(settings, [result.signature for result in comparison if result.signature])
    else:
        emit_result(comparison, settings)
    tell_each(settings, "note", comparison.notes if form not in _PAPER else ())


def _text(comparison: Comparison, settings: CompareCommand) -> Iterator[str]:
    """Yield the systems, the matrices of many pairs, and pairs as sentences: one pair per metric, or all with -v."""
    systems, *matrices = comparison.tables()
    shown = replace(systems, notes=(comparison.how,))
    yield from present(Tables(shown, *matrices), "text", Look(width=terminal_width(settings.output)))
    if not matrices or settings.verbose:
        yield "\n"
        for pair in comparison.pairs:
            yield f"{str(pair).translate(ON_ONE_LINE)}\n"
            if pair.humans is not None and pair.humans.share is not None:
                yield f"  {str(pair.humans).translate(ON_ONE_LINE)}\n"
    yield from (f"{result.won.translate(ON_ONE_LINE)}\n" for result in comparison if result.strength_intervals)
    yield from (f"{str(curve).translate(ON_ONE_LINE)}\n" for result in comparison for curve in result.powers)


def _plan_lines(settings: CompareCommand, data: Dataset, metrics: Sequence[str]) -> Iterator[str]:
    for metric in metrics:
        segments = compared_segments(data, as_metric(metric))
        yield from (f"{line}\n" for line in score_costs(settings, [metric], segments, data.languages))
