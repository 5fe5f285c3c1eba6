"""`whyscore calibrate`: learn from human judgements how to boost a metric, and say when it does not help."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from whyscore.analysis.calibrate.calibrate import calibrate
from whyscore.analysis.calibrate.settings import CalibrateSettings
from whyscore.analysis.common import as_metric, with_languages
from whyscore.analysis.explain import ExplainersSettings, cost
from whyscore.cli.options import InputSettings, MetricSettings, OutputSettings, RunningSettings
from whyscore.cli.output import emit_result, format_of, tell
from whyscore.cli.setup import call_costs, load_judged, make_resources, only_metric, print_lines, working
from whyscore.errors import UserError
from whyscore.scoring.stack import Cost
from whyscore.settings import again, option
from whyscore.types import Dataset

EXAMPLES = """\
examples:
  whyscore calibrate data.jsonl --human HUMAN_score --group LP -m chrf -e erasure --level global \\
      --coefficient pearson --rule median -o chrf.calibration.json
  whyscore boost -r ref.txt -t sys.txt --calibration chrf.calibration.json
  whyscore calibrate wmt16.jsonl wmt17.jsonl --human da -m token_f1 -e "lime(samples=100)"
  whyscore calibrate data.jsonl --human da -m mee4 --weights
"""


@dataclass(frozen=True, kw_only=True)
class CalibrateCommand(RunningSettings, OutputSettings, CalibrateSettings, InputSettings, MetricSettings):
    """What `whyscore calibrate` takes."""

    TITLE: ClassVar[str] = "options"

    explainer: str = again(ExplainersSettings, "explainer", "erasure", help="'lime(samples=100)', intrinsic ...")
    fit_weights: bool = option(False, "fit the weights of mee2 or mee4 instead of boosting", flags=("--weights",))
    output: str | None = option(None, line=False)
    file: str | None = again(OutputSettings, "output", help="write the calibration to this file; tables go to stdout")


SETTINGS = CalibrateCommand


def run(settings: CalibrateCommand) -> int:
    """Calibrate, save the calibration, and report."""
    metric = only_metric(settings)
    data = load_judged(settings, metric, [settings.explainer])
    if settings.fit_weights:
        return _fit_weights(settings, data, metric)
    if settings.dry_run:
        resources = make_resources(settings)
        costs = [cost(dataset, metric, settings.explainer, resources=resources) for dataset in data]
        planned = Cost(*map(sum, zip(*costs, strict=True)))
        segments, used = [segment for dataset in data for segment in dataset.segments], as_metric(metric)
        calls = call_costs(metric, with_languages(used, data[0].languages), segments, planned.left)
        return print_lines([f"{metric}: {planned}", *calls])
    with working(settings) as resources:
        calibration = calibrate(data, metric, settings.explainer, settings=settings, resources=resources)
    if settings.file and settings.file != "-":
        calibration.save(settings.file)
        tell(settings, f"calibration {calibration.digest} saved to {settings.file}")
    emit_result(calibration, settings)
    if format_of(settings) not in ("text", "markdown"):
        for line in calibration.summary():
            tell(settings, line)
    tell(settings, f"signature: {calibration.metric_signature}")
    return 0


def _fit_weights(settings: CalibrateCommand, data: Sequence[Dataset], metric: str) -> int:
    """Fit the weights of a metric that is a weighted sum of parts."""
    from whyscore.analysis.calibrate.weights import fit_weights  # noqa: PLC0415 - its metrics load vectors

    if len(data) > 1:
        raise UserError("--weights takes one data set")
    with working(settings) as resources:
        weights = fit_weights(data[0], metric, settings=settings, resources=resources)
    emit_result(weights, replace(settings, output=settings.file))
    tell(settings, f"signature: {weights.signature}")
    return 0
