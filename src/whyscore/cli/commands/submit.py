"""`whyscore submit`: files that can be handed in to a shared task."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from whyscore.analysis.explain import ExplainersSettings
from whyscore.analysis.submit import SubmitSettings, submit, submit_scores, submit_wmt26
from whyscore.cli.options import InputSettings, MetricSettings, OutputSettings, RunningSettings
from whyscore.cli.output import tell
from whyscore.cli.setup import explaining_costs, load_dataset, print_lines, requested_metrics, score_costs, working
from whyscore.data.naming import with_noun
from whyscore.errors import UserError
from whyscore.settings import again
from whyscore.types import Dataset

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

    explainer: str | None = again(ExplainersSettings, "explainer", help="one explainer")
    output: str | None = again(OutputSettings, "output", help="output folder (wmt26: output file)", metavar="PATH")


SETTINGS = SubmitCommand
_WORD_TASKS = ("eval4nlp", "eval4nlp2021", "wmt22")


def run(settings: SubmitCommand) -> int:
    """Score or explain, write the files, and print their names."""
    metrics = requested_metrics(settings)
    _check_given(settings, metrics)
    explainers = [settings.explainer] if settings.explainer else []
    data = load_dataset(settings, metrics, explainers)
    if settings.task in _WORD_TASKS and len(data.systems) > 1:
        raise UserError(f"one system per submission, got {', '.join(data.systems)}")
    if settings.dry_run:
        return print_lines(_cost_lines(settings, data, metrics, explainers))
    with working(settings) as resources:
        how = {"settings": settings, "resources": resources}
        if settings.task == "wmt-metrics":
            written = submit_scores(data, metrics, str(settings.output), **how)
            summary = f"{with_noun(len(data.systems), 'system')}, {len(data.ids)} segments"
        elif settings.task == "wmt26":
            written = submit_wmt26(data, metrics[0], settings.explainer, str(settings.output), **how)
            summary = f"{len(data.ids)} items, {with_noun(len(data.systems), 'system')}"
        else:
            written = submit(data, metrics[0], explainers[0], str(settings.output), **how)
            sides = ", ".join(written.submission.sides if written.submission else ())
            summary = f"{len(data)} segments; sides: {sides}. Check with whyscore validate"
    print(*written.files, sep="\n")
    tell(settings, summary)
    if written.missing:
        count, first = len(written.missing), next(iter(sorted(written.missing.items())))[1]
        tell(settings, f"warning: {count:,} of {len(data):,} segments lack a prediction; the first: {first}")
    return 0


def _check_given(settings: SubmitCommand, metrics: Sequence[str]) -> None:
    """Refuse options that the task does not take, or needs and did not get."""
    if settings.task == "wmt26":
        if len(metrics) != 1 or not settings.output:
            raise UserError("a WMT26 submission needs one metric and a file: -m qe -o predictions.jsonl")
        return
    words = {"-e EXPLAINER": settings.explainer, "--team": settings.team} if settings.task in _WORD_TASKS else {}
    for name, value in {"-m METRIC": metrics, **words, "-o": settings.output}.items():
        if not value:
            raise UserError(f"a submission needs {name}")
    if settings.task == "wmt-metrics" and settings.explainer is not None:
        raise UserError("the metrics task takes no word scores: leave out -e")
    if settings.task in _WORD_TASKS and len(metrics) > 1:
        raise UserError(f"one metric per submission, got {' '.join(metrics)}")


def _cost_lines(
    settings: SubmitCommand, data: Dataset, metrics: Sequence[str], explainers: Sequence[str]
) -> Iterator[str]:
    """Yield what a dry run says."""
    if settings.task in _WORD_TASKS:
        yield from explaining_costs(settings, data.segments, metrics, explainers, data.languages)
        return
    what = "metric" if settings.task == "wmt26" else "metrics"
    size = f"{len(data)} segments of {with_noun(len(data.systems), 'system')}"
    yield f"{size}; {what} to score: {', '.join(metrics)}"
    if explainers:
        arguments = (settings, data.segments, metrics, explainers, data.languages)
        yield from explaining_costs(*arguments, unit="word", sides=("hypothesis",))
    else:
        yield from score_costs(settings, metrics, data.segments, data.languages)
