"""`whyscore submit`: files that can be handed in to a shared task."""

from dataclasses import dataclass

from whyscore.analysis.submit import SubmitSettings, submit, submit_scores, submit_wmt26
from whyscore.cli.options import InputSettings, MetricSettings, RunningSettings
from whyscore.cli.output import tell
from whyscore.cli.setup import explaining_costs, load_dataset, requested_metrics, score_costs, working
from whyscore.data.naming import with_noun
from whyscore.errors import UserError
from whyscore.settings import option

EXAMPLES = """\
examples:
  whyscore submit eval4nlp -s dev.src -t dev.mt -m transquest -e erasure --team me --track constrained -o submission/
  whyscore submit wmt-metrics -r ref.ru -t A.ru B.ru -l en-ru -m mee mee2 mee4 --test-set generaltest2022 -o scores/
  whyscore submit wmt26 en-de.jsonl -m qe -e intrinsic --error-free 85 -o predictions.jsonl
  whyscore submit wmt22 -s src_tok -t mt_tok -r ref_tok -m chrf -e lime --team me -o submission/
"""


@dataclass(frozen=True, kw_only=True)
class SubmitCommand(RunningSettings, InputSettings, SubmitSettings, MetricSettings):
    """What `whyscore submit` takes."""

    explainer: str | None = option(
        None, "one explainer", flags=("-e", "--explainer", "--explainers"), metavar="SPEC", basic=True
    )
    output: str | None = option(
        None, "output folder (wmt26: output file)", flags=("-o", "--output"), metavar="PATH", basic=True
    )


SETTINGS = SubmitCommand


def run(settings: SubmitCommand) -> int:
    """Explain, write the folder, and print its files."""
    metrics = requested_metrics(settings)
    if settings.task == "wmt-metrics":
        return _run_scores(settings, metrics)
    if settings.task == "wmt26":
        return _run_wmt26(settings, metrics)
    needs = {"-m METRIC": metrics, "-e EXPLAINER": settings.explainer, "--team": settings.team, "-o": settings.output}
    for name, value in needs.items():
        if not value:
            raise UserError(f"a submission needs {name}")
    if len(metrics) > 1:
        raise UserError(f"one metric a submission, got {' '.join(metrics)}")
    explainer, folder = str(settings.explainer), str(settings.output)
    data = load_dataset(settings, metrics, [explainer])
    if len(data.systems) > 1:
        raise UserError(f"one system a submission, got {', '.join(data.systems)}")
    if settings.dry_run:
        print(*explaining_costs(settings, data.segments, metrics, [explainer], data.languages), sep="\n")
        return 0
    with working(settings) as resources:
        written = submit(data, metrics[0], explainer, folder, settings=settings, resources=resources)
    print(*written.files, sep="\n")
    sides = ", ".join(written.submission.sides if written.submission else ())
    tell(settings, f"{len(data)} segments; sides: {sides}. Check with whyscore validate")
    return 0


def _run_scores(settings: SubmitCommand, metrics: list[str]) -> int:
    """Score all systems, write the files, and print their names."""
    for name, value in {"-m METRIC": metrics, "-o": settings.output}.items():
        if not value:
            raise UserError(f"a submission needs {name}")
    if settings.explainer is not None:
        raise UserError("the metrics task takes no word scores: leave out -e")
    data = load_dataset(settings, metrics)
    if settings.dry_run:
        print(
            f"{len(data)} segments of {with_noun(len(data.systems), 'system')}; metrics to score: {', '.join(metrics)}"
        )
        for metric in metrics:
            print(*score_costs(settings, metric, data.segments, data.languages), sep="\n")
        return 0
    with working(settings) as resources:
        written = submit_scores(data, metrics, str(settings.output), settings=settings, resources=resources)
    print(*written.files, sep="\n")
    tell(settings, f"{with_noun(len(data.systems), 'system')}, {len(data.ids)} segments")
    return 0


def _run_wmt26(settings: SubmitCommand, metrics: list[str]) -> int:
    """Predict scores, spans and decisions, and write them as one file."""
    if len(metrics) != 1 or not settings.output:
        raise UserError("a WMT26 submission needs one metric and a file: -m qe -o predictions.jsonl")
    data = load_dataset(settings, metrics, [settings.explainer] if settings.explainer else [])
    if settings.dry_run:
        print(f"{len(data)} segments of {with_noun(len(data.systems), 'system')}; metric to score: {metrics[0]}")
        if settings.explainer is None:
            costs = score_costs(settings, metrics[0], data.segments, data.languages)
        else:
            chosen, sides = [settings.explainer], ("hypothesis",)
            costs = explaining_costs(settings, data.segments, metrics, chosen, data.languages, unit="word", sides=sides)
        print(*costs, sep="\n")
        return 0
    with working(settings) as resources:
        written = submit_wmt26(
            data, metrics[0], settings.explainer, settings.output, settings=settings, resources=resources
        )
    print(*written.files, sep="\n")
    tell(settings, f"{len(data.ids)} items, {with_noun(len(data.systems), 'system')}")
    if written.missing:
        count, first = len(written.missing), next(iter(sorted(written.missing.items())))[1]
        tell(settings, f"warning: {count:,} of {len(data):,} segments lack a prediction; the first: {first}")
    return 0
