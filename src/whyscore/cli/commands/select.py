"""`whyscore select`: which segments people should rate."""

from dataclasses import dataclass

from whyscore.analysis.select import SCORING, SelectSettings, select, simulate_selection, without_references
from whyscore.cli.options import InputSettings, MetricSettings, OutputSettings, RunningSettings
from whyscore.cli.output import emit_result
from whyscore.cli.setup import load_dataset, print_lines, requested_metrics, score_costs, working
from whyscore.data.naming import with_noun
from whyscore.errors import UserError
from whyscore.settings import option

EXAMPLES = """\
examples:
  whyscore select -s src.txt -t sysA.txt sysB.txt sysC.txt -n 100 -o chosen.csv
  whyscore select data.jsonl -n 100 --method variance -m qe
  whyscore select --sample -n 40 -m chrf token_f1 --simulate --human mqm
"""


@dataclass(frozen=True, kw_only=True)
class SelectCommand(RunningSettings, OutputSettings, InputSettings, SelectSettings, MetricSettings):
    """What `whyscore select` takes."""

    simulate: bool = option(
        False, "on data with ratings (--human): estimate how well each method would have worked", basic=True
    )


SETTINGS = SelectCommand


def run(settings: SelectCommand) -> int:
    """Choose segments, or simulate the choice, and write the table out."""
    metrics = requested_metrics(settings)
    if settings.simulate and len(settings.human or ()) != 1:
        raise UserError("a simulation needs one human score: name its column with --human")
    data = load_dataset(settings, metrics)
    if settings.dry_run:
        used = metrics if settings.simulate or settings.method in SCORING else []
        scored = ", ".join(used) or "none"
        print(f"{len(data.ids)} segments of {with_noun(len(data.systems), 'system')}; metrics to score: {scored}")
        return print_lines(score_costs(settings, used, without_references(data).segments, data.languages))
    with working(settings) as resources:
        if settings.simulate:
            human = (settings.human or ("",))[0]
            emit_result(
                simulate_selection(data, metrics, human=human, settings=settings, resources=resources), settings
            )
        else:
            emit_result(select(data, metrics, settings=settings, resources=resources), settings)
    return 0
