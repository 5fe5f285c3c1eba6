"""`whyscore metaeval faithfulness`: does the metric agree with its explanations, and do they repeat?"""

from dataclasses import dataclass

from whyscore.analysis.metaeval.faithfulness import faithfulness
from whyscore.analysis.metaeval.settings import FaithfulnessSettings
from whyscore.cli.options import InputSettings, LimitSettings, MetricSettings, OutputSettings, RunningSettings
from whyscore.cli.output import emit_result, format_of, tell, tell_signatures
from whyscore.cli.setup import explaining_costs, load_dataset, requested_metrics, take_first, working
from whyscore.errors import UserError
from whyscore.registry import spec_of
from whyscore.settings import option

EXAMPLES = """\
examples:
  whyscore metaeval faithfulness -r ref.txt -t sys.txt -m chrf -e erasure lime shap random
  whyscore metaeval faithfulness --sample --limit 20 -m chrf -e erasure 'lime(samples=200)' random --seeds 5
  whyscore metaeval faithfulness --sample --limit 20 -m chrf -e 'lime(samples=50)' --until-stable 0.95
"""


@dataclass(frozen=True, kw_only=True)
class FaithfulnessCommand(
    LimitSettings, RunningSettings, OutputSettings, InputSettings, FaithfulnessSettings, MetricSettings
):  # fmt: skip
    """What `whyscore metaeval faithfulness` takes."""

    explainers: tuple[str, ...] | None = option(
        None,
        "the explainers to judge; random is the control",
        flags=("-e", "--explainers", "--explainer"),
        metavar="SPEC",
        basic=True,
    )


SETTINGS = FaithfulnessCommand


def run(settings: FaithfulnessCommand) -> int:
    """Judge the explainers and write the result out."""
    metrics, explainers = requested_metrics(settings), settings.explainers
    if len(metrics) != 1:
        raise UserError(f"one metric: name it with -m, for example -m chrf; got {len(metrics)}")
    if not explainers:
        raise UserError("no explainer: name some with -e, for example -e erasure lime random")
    data = take_first(load_dataset(settings, metrics, explainers), settings.limit)
    if settings.dry_run:
        print(*explaining_costs(settings, data.segments, metrics, explainers), sep="\n")
        tell(settings, f"and for each explained text of n words {settings.orders + 1} orders of 2 (n + 1) texts")
        return 0
    with working(settings) as resources:
        results = faithfulness(data, metrics[0], explainers, settings=settings, resources=resources)
    for one in results.budgets:
        agreement = f"two halves agree by {one.spearman:.3f} after {one.rounds} round(s)"
        tell(settings, f"note: {spec_of(one.explainer)} is {'stable' if one.reached else 'not stable'}: {agreement}")
    emit_result(results, settings)
    if format_of(settings) == "text":
        tell_signatures(settings, [one.signature for one in results])
    return 0
