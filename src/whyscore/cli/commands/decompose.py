"""`whyscore decompose`: how much of the score is lost on nouns, names, numbers ..."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from whyscore.analysis.common import as_metric, with_languages
from whyscore.analysis.decompose.decompose import decompose, plan
from whyscore.analysis.decompose.result import Decompositions
from whyscore.analysis.decompose.settings import DecomposeSettings
from whyscore.cli.options import InputSettings, MetricSettings, OutputSettings, RunningSettings
from whyscore.cli.output import emit, emit_result, format_of, tell_each, tell_signatures
from whyscore.cli.setup import (
    call_costs,
    load_dataset,
    make_resources,
    some_metrics,
    with_target_language,
    working,
)
from whyscore.settings import again, option
from whyscore.text.placeholders import hide_in_text
from whyscore.types import Dataset
from whyscore.types.result import DECIMALS

EXAMPLES = """\
examples:
  whyscore decompose -r ref.txt -t sysA.txt sysB.txt -m bleu --tagger rules -f json
  whyscore decompose -r ref.txt -t sysA.txt sysB.txt -m bleu --tagger spacy -l en
  whyscore decompose -r ref.txt -t sys.txt -m bleu --tagger "pretagged(reference='ref.tag', hypothesis='sys.tag')"
  whyscore decompose -r ref.txt -t sys.txt -m rouge --tagger rules --scorers sentiment
  whyscore decompose --sample -m bleu --features number capitalised
"""

# Runs of characters that no writer uses: masks.
_PRIVATE = re.compile("[\ue000-\uf8ff\U000f0000-\U0010fffd]+")


@dataclass(frozen=True, kw_only=True)
class DecomposeCommand(
    RunningSettings, OutputSettings, InputSettings, DecomposeSettings, MetricSettings
):  # fmt: skip
    """What `whyscore decompose` takes."""

    segments: bool = option(False, "output per-segment values instead of features", basic=True)
    examples: int = again(DecomposeSettings, "examples", 0)
    figures: str | None = option(None, "also save the charts in this folder", metavar="DIR")


SETTINGS = DecomposeCommand


def run(settings: DecomposeCommand) -> int:
    """Decompose everything that was asked for and write it out."""
    metrics = some_metrics(settings, "bleu")
    explainers = [settings.explainer] if isinstance(settings.explainer, str) else []
    data = load_dataset(with_target_language(settings), metrics, explainers)
    if settings.dry_run:
        emit(replace(settings, output=None), _plan_lines(data, metrics, settings))
        return 0
    with working(settings) as resources:
        decompositions = decompose(data, metrics, settings=settings, resources=resources)
    text = format_of(settings) == "text"
    # On a terminal the signatures go to stderr, where they do not disturb what is copied or piped.
    shown = decompositions.presented(DECIMALS if settings.width is None else settings.width, signatures=not text)
    below = example_lines(decompositions) if text and not settings.segments else ()
    emit_result(shown.by_segment() if settings.segments else shown, settings, below=below)
    if format_of(settings) not in ("markdown", "latex"):  # their tables have the notes
        tell_each(settings, "note", decompositions.notes)
    if text:
        tell_signatures(settings, decompositions.signatures.values())
    if settings.figures:
        _draw(decompositions, settings)
    return 0


def _plan_lines(data: Dataset, metrics: list[str], settings: DecomposeCommand) -> Iterator[str]:
    resources = make_resources(settings)
    for metric in metrics:
        cost = plan(data, metric, settings=settings, resources=resources)
        yield (
            f"{metric}: {cost.texts} texts, {cost.distinct_texts} distinct, {cost.tagged} tagged now; "
            f"{cost.asked} segments asked, {cost.distinct} distinct, {cost.stored} already stored\n"
        )
        used = with_languages(as_metric(metric), data.languages)
        yield from (f"{line}\n" for line in call_costs(metric, used, data.segments, cost.distinct - cost.stored))


def example_lines(decompositions: Decompositions) -> Iterator[str]:
    """Yield the examples of each row: what was masked in brackets, and the texts as they were scored."""
    for row in decompositions:
        for detail in row.details:
            yield f"\n{row.system} {detail.id} · {row.feature} · {row.metric} {detail.sigma:.3f}, "
            yield f"best case {detail.oracle:.3f}, worst case {detail.anti:.3f}\n"
            texts = [("hypothesis", detail.hypothesis, detail.hypothesis_spans, detail.masked_hypothesis)]
            masked = detail.masked_references or (None,) * len(detail.references)
            references = zip(detail.references, detail.reference_spans, masked, strict=True)
            texts += [("reference", *each) for each in references]
            for side, text, spans, hidden in texts:
                yield f"  {side:<11}{hide_in_text(text, spans, [f'[{text[a:b]}]' for a, b in spans])}\n"
                if hidden is not None:
                    yield f"  {'scored':<11}{_PRIVATE.sub('□' if side == 'hypothesis' else '■', hidden)}\n"


def _draw(decompositions: Decompositions, settings: DecomposeCommand) -> None:
    # Imported when charts are drawn: altair costs more than all the rest.
    from whyscore.report.figures.decompose import draw  # noqa: PLC0415

    tell_each(settings, "figure", draw(decompositions, Path(str(settings.figures))))
