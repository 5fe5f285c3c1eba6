"""`whyscore boost`: a metric's scores, made better by its own explanations."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from whyscore.analysis.boost import BoostResult, BoostSettings, boost_segments, boosted, cost
from whyscore.analysis.common import with_languages
from whyscore.analysis.explain import ExplainersSettings
from whyscore.cli.options import InputSettings, MetricSettings, OutputSettings, RunningSettings, read_number
from whyscore.cli.output import emit_result, format_of, tell, tell_signatures
from whyscore.cli.setup import call_costs, load_dataset, make_resources, print_lines, requested_metrics, working
from whyscore.errors import UserError
from whyscore.metrics.boosted import Boosted
from whyscore.settings import again, option
from whyscore.types import Dataset

EXAMPLES = """\
examples:
  whyscore boost -r ref.txt -t sys.txt -m chrf -e "lime(samples=100)" -p 1.5 --weight 0.6 --segments -f jsonl
  whyscore boost -r ref.txt -t sys.txt --calibration chrf.calibration.json
  whyscore boost --text -t "I have a cat" -r "I have a dog" -m token_f1 -p 1 --weight 0.5
  whyscore boost --sample -m "boosted(metric=token_f1, p=1)" -e erasure -p 2 --weight 0.8 --dry-run
"""

_WARN = 0.5
_FRACTION = re.compile(r"0?\.[0-9]+")


def _read_width(text: str) -> float:
    """Return the number of decimals, or a fraction: nobody can mean anything by it but the weight."""
    return float(text) if _FRACTION.fullmatch(text) else read_number(int, 0, text)


@dataclass(frozen=True, kw_only=True)
class BoostCommand(RunningSettings, OutputSettings, InputSettings, BoostSettings, MetricSettings):
    """What `whyscore boost` takes."""

    explainer: str | None = again(ExplainersSettings, "explainer")
    width: float | None = again(  # type: ignore[assignment] # a whole number or a weight
        OutputSettings, "width", help="number of decimals in tables; a fraction is read as --weight", parse=_read_width
    )
    segments: bool = option(False, "output segment scores instead of system scores", basic=True)


SETTINGS = BoostCommand


def run(settings: BoostCommand) -> int:
    """Boost what was asked for and write it out."""
    settings = _with_weight(settings)
    metrics = requested_metrics(settings)
    if len(metrics) > 1:
        raise UserError(f"one metric at a time, got {' '.join(metrics)}")
    if not metrics and not settings.calibration:
        raise UserError("no metric: name one with -m, for example -m chrf, or give a --calibration")
    metric = boosted(metrics[0] if metrics else None, settings.explainer, settings=settings)
    data = load_dataset(settings, metrics)
    if settings.dry_run:
        return print_lines(_cost_lines(data, metric, settings))
    with working(settings) as resources:
        result = boost_segments(data, metric, settings, resources)
    emit_result(result if settings.segments else result.systems(), settings)
    _say(result, settings)
    return 0


def _with_weight(settings: BoostCommand) -> BoostCommand:
    """Return settings in which a fraction after -w is the weight."""
    if settings.width is None:
        return settings
    if settings.width % 1:
        if settings.w is not None:
            raise UserError(f"got two weights, --weight {settings.w} and -w {settings.width}: leave one out")
        return replace(settings, w=settings.width, width=None)
    decimals = int(settings.width)
    if decimals <= 1 and settings.w is None:
        tell(settings, f"note: -w {decimals} sets the number of decimals; for the weight: --weight {decimals}")
    return replace(settings, width=decimals)


def _cost_lines(data: Dataset, metric: Boosted, settings: BoostCommand) -> Iterator[str]:
    metric = replace(metric, metric=with_languages(metric.metric, data.languages))
    planned, spec = cost(data, metric, resources=make_resources(settings)), metric.signature().spec
    yield f"{spec}: {planned}{' at most: the costs of nested explainers multiply' if metric.inner else ''}"
    yield from call_costs(spec, metric, data.segments, planned.left)


def _say(result: BoostResult, settings: BoostCommand) -> None:
    """Say beside the numbers what a reader must know."""
    if result.degenerate > _WARN:
        tell(
            settings,
            f"warning: in {result.degenerate:.0%} of the segments the power mean is determined by its floor alone: it "
            "only counts words. Use a larger p, or -a 'power_mean(p=..., floor=relative)'",
        )
    if result.missing:
        counts = ", ".join(f"{count:,} {reason}" for reason, count in Counter(result.missing.values()).most_common())
        tell(settings, f"note: {len(result.missing):,} of {len(result.scores):,} segments have no score: {counts}")
    if result.empty:
        outcome = "keep the original score" if result.metric.on_empty == "score" else "get no boosted score"
        tell(settings, f"note: {result.empty} segments have no word to explain and {outcome}")
    if not result.metric.metric.higher_is_better:
        spec = result.metric.metric.signature().spec
        tell(settings, f"note: lower is better for {spec}; its scores are negated here, so that higher is better")
    if result.metric.w == 1:
        tell(settings, "note: w = 1, not boosted: these are the original scores")
    if format_of(settings) == "text":
        tell_signatures(settings, [result.scores.signature])
