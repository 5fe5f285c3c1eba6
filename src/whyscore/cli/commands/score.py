"""`whyscore score`: any metrics for any systems in one pass."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from whyscore.analysis.common import as_metric, with_languages
from whyscore.analysis.mee import has_parts, mee_view
from whyscore.analysis.score import ScoreSettings, SystemScores, fail_if_truncated, score_systems, truncation_messages
from whyscore.cli.options import InputSettings, MetricSettings, OutputSettings, RunningSettings, TruncationSettings
from whyscore.cli.output import emit, emit_result, format_of, tell, tell_signatures
from whyscore.cli.setup import (
    fail_if_unparsed,
    load_dataset,
    make_resources,
    some_metrics,
    tell_time,
    working,
)
from whyscore.errors import UserError
from whyscore.scoring.stack import Resources, cost
from whyscore.settings import option
from whyscore.types import Dataset
from whyscore.types.result import Joined

EXAMPLES = """\
examples:
  whyscore score -r ref.txt -t sysA.txt sysB.txt -m bleu chrf ter
  whyscore score -r ref.txt -t sysA.txt -m chrf --segments -f jsonl -o scores.jsonl
  whyscore score data.tsv -m 'chrf(word_order=2)' my_metric.py:score
  whyscore score --sample -m bleu chrf -f latex
  whyscore score --sample -m mee4 --parts
"""


@dataclass(frozen=True, kw_only=True)
class ScoreCommand(
    RunningSettings, OutputSettings, TruncationSettings, InputSettings, ScoreSettings, MetricSettings
):  # fmt: skip
    """What `whyscore score` takes."""

    segments: bool = option(False, "output segment scores instead of corpus scores", basic=True)
    by_document: bool = option(False, "output document scores instead of corpus scores")
    parts: bool = option(False, "show the components of mee, mee2, mee4 and which words were matched")
    score_only: bool = option(False, "print only the numbers", flags=("-b", "--score-only"), basic=True)


SETTINGS = ScoreCommand
_PAPER_DECIMALS = 3


def run(settings: ScoreCommand) -> int:
    """Score everything that was asked for and write it out."""
    metrics = some_metrics(settings)
    if settings.by_document and (settings.segments or settings.score_only):
        raise UserError("--by-document cannot be combined with --segments or --score-only: leave one of them out")
    data = load_dataset(settings, metrics)
    if settings.dry_run:
        return _say_costs(data, metrics, settings)
    cut = truncation_messages({name: name for name in metrics}, data) if settings.fail_if_truncated else []
    with working(settings) as resources:
        if settings.parts:
            emit_result(_parts(data, metrics, resources), settings)
        else:
            scores = score_systems(data, metrics, settings=settings, resources=resources)
            _emit_scores(scores, settings)
            for result in scores:
                for note in result.notes:
                    tell(settings, f"note: {result.metric}: {note}")
    fail_if_truncated(cut)
    fail_if_unparsed(settings, resources)
    return 0


def _emit_scores(scores: SystemScores, settings: ScoreCommand) -> None:
    form = format_of(settings)
    if settings.score_only:
        emit(settings, _numbers(scores, settings.width, segments=settings.segments))
        return
    if settings.segments:
        emit_result(scores.segments(), settings)
    elif settings.by_document:
        emit_result(scores.documents(), settings)
    else:
        # On a terminal the signatures go to stderr, where they do not disturb what is copied or piped.
        digits = scores.decimals if form == "text" else _PAPER_DECIMALS
        digits = digits if settings.width is None else settings.width
        emit_result(SystemScores(scores.dataset, scores, decimals=digits, notes=form != "text"), settings)
    if form == "text":
        tell_signatures(
            settings, [result.entries.signature if settings.segments else result.signature for result in scores]
        )


def _say_costs(data: Dataset, metrics: Sequence[str], settings: ScoreCommand) -> int:
    """Say how many texts would be scored, and how long that would take."""
    store = make_resources(settings).store
    for metric in metrics:
        used = with_languages(as_metric(metric), data.languages)
        planned = cost(used, data.segments, store)
        print(f"{metric}: {planned}")
        tell_time(settings, metric, used, data.segments, planned.left)
    return 0


def _numbers(scores: SystemScores, decimals: int | None, *, segments: bool) -> Iterator[str]:
    digits = scores.decimals if decimals is None else decimals
    for result in scores:
        values = result.entries.values.tolist() if segments else [total.value for total in result.totals.values()]
        yield from (f"{value:.{digits}f}\n" for value in values)


def _parts(data: Dataset, metrics: Sequence[str], resources: Resources) -> Joined:
    """Return the parts of every metric that has some; none at all is an error."""
    with_parts = [metric for metric in metrics if has_parts(metric)]
    if not with_parts:
        raise UserError(f"--parts shows the parts of mee, mee2 and mee4; requested: {', '.join(metrics)}")
    return Joined([mee_view(data, metric, resources=resources) for metric in with_parts])
