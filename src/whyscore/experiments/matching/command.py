"""The experiments about matching as commands: what unrelated texts score, and which layer agrees with people.

Baseline, for rescaling BERTScore (Zhang et al. 2020):

1. Take the distinct lines of a text in one language, blank ones left out.
2. Score random pairs of them; b is the mean of precision, recall and F.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from whyscore.analysis.common import MetricLike
from whyscore.analysis.metaeval.words import segments_of
from whyscore.cli.options import InputSettings, MetricSettings, OutputSettings, QuietSettings
from whyscore.cli.output import emit, emit_result, format_of, tell, tell_signatures
from whyscore.cli.setup import load_dataset, requested_metrics
from whyscore.data.files import read_lines
from whyscore.data.formats.eval4nlp import Gold, read_gold
from whyscore.errors import UserError
from whyscore.experiments.catalogue import Experiment
from whyscore.experiments.matching.layers import layers, matching_metric
from whyscore.metrics.matching.baseline import Baseline, baseline_lines, estimate_baseline, layer_of
from whyscore.settings import REQUIRED, Seeded, option, takes
from whyscore.types import Dataset, Entry, Signature
from whyscore.types.result import Record, Result

_BASELINE = """\
examples:
  whyscore experiment baseline english.txt -m "bertscore(model='roberta-large')" -o roberta.tsv
  whyscore score -t sys.txt -r ref.txt -m "bertscore(model='roberta-large', baseline='roberta.tsv')"
"""
_LAYERS = """\
examples:
  whyscore experiment layers data.tsv --human da -m "xbertscore(model='./folder')"
  whyscore experiment layers --gold GOLD -m "xbertscore(model='xlm-roberta-large')" -o layers.tsv
"""
_DIGITS = 4


@dataclass(frozen=True, kw_only=True)
class BaselineSettings(Seeded):
    """How the score of unrelated texts is estimated."""

    pairs: int = option(20_000, "random pairs", least=1, metavar="N", basic=True)


@dataclass(frozen=True, repr=False)
class BaselineEstimate(Result):
    """A baseline, the layer it is for, and what it was made from."""

    baseline: Baseline
    layer: int
    texts: int
    pairs: int
    signature: Signature
    kind: ClassVar[str] = "baseline"

    def records(self) -> Iterator[Record]:
        yield {"layer": self.layer, **self.baseline._asdict(), "texts": self.texts, "pairs": self.pairs}


@takes(BaselineSettings)
def baseline(texts: Sequence[str], metric: MetricLike = "bertscore", *, settings: BaselineSettings) -> BaselineEstimate:
    """Return what random pairs of texts score, for `bertscore(baseline=FILE)`.

    Args:
        texts: In one language; equal ones count once, blank ones not at all.
        metric: `bertscore` or `xbertscore` with its model and layer.
        settings: How many pairs are drawn.
    """
    raw = replace(matching_metric(metric), baseline=None)
    distinct = list(dict.fromkeys(text for text in texts if text.strip()))
    estimated = estimate_baseline(distinct, raw, pairs=settings.pairs, seed=settings.seed)
    signature = raw.signature()
    drawn = signature.with_facts(pairs=settings.pairs, seed=settings.seed)
    return BaselineEstimate(estimated, layer_of(raw.encoder()), len(distinct), settings.pairs, drawn)


@dataclass(frozen=True, kw_only=True)
class BaselineCommand(QuietSettings, BaselineSettings, MetricSettings):
    """What `whyscore experiment baseline` takes."""

    texts: str = option(REQUIRED, "texts in one language, one a line", positional=True, metavar="FILE", basic=True)
    encoding: str = option("utf-8", "of the file", metavar="NAME")
    output: str | None = option(
        None, "write the table to this file instead of stdout", flags=("-o", "--output"), metavar="FILE", basic=True
    )


def run_baseline(settings: BaselineCommand) -> int:
    """Write the table that `bertscore(baseline=FILE)` reads."""
    lines = read_lines(settings.texts, encoding=settings.encoding)
    found = baseline(lines.texts, _one_metric(settings, "bertscore"), settings=settings)
    emit(settings, baseline_lines(found.baseline, found.layer))
    left = len(lines.texts) - found.texts
    if left:
        tell(settings, f"note: {left} blank or repeated lines were left out")
    tell(settings, f"{found.pairs:,} random pairs of {found.texts:,} texts, layer {found.layer}")
    tell_signatures(settings, [found.signature])
    return 0


@dataclass(frozen=True, kw_only=True)
class LayersCommand(OutputSettings, InputSettings, MetricSettings):
    """What `whyscore experiment layers` takes."""

    gold: str | None = option(
        None, "word tags: a gold folder or zip of Eval4NLP 2021 or WMT22", metavar="PATH", basic=True
    )


def run_layers(settings: LayersCommand) -> int:
    """Write how well each layer of the model agrees with human judgements."""
    if settings.human and len(settings.human) > 1:
        raise UserError(f"--human {' '.join(settings.human)}: layers are compared with one human score at a time")
    metric = _one_metric(settings, "xbertscore")
    data, gold = _data(settings)
    found = layers(data, metric, human=settings.human[0] if settings.human else None, gold=gold)
    emit_result(found, settings, _DIGITS)
    for note in found.notes:
        tell(settings, f"note: {note}")
    if format_of(settings) not in ("json", "jsonl"):
        tell_signatures(settings, [found.signature])
    return 0


def _one_metric(settings: MetricSettings, usual: str) -> str:
    wanted = requested_metrics(settings) or [usual]
    if len(wanted) > 1:
        raise UserError(f"-m {' '.join(wanted)}: this experiment takes one metric at a time")
    return wanted[0]


def _data(settings: LayersCommand) -> tuple[Dataset, Gold | None]:
    """Return the texts and the word tags; a gold folder has both."""
    gold = read_gold(settings.gold) if settings.gold else None
    if gold is None or settings.data or settings.hypotheses:
        return load_dataset(settings), gold
    for finding in gold.findings:
        tell(settings, f"note: {finding}")
    pairs = zip(gold.names(), segments_of(gold), strict=True)
    return Dataset(gold.name, tuple(Entry(name, gold.name, segment) for name, segment in pairs)), gold


EXPERIMENTS = {
    "baseline": Experiment(
        "what unrelated texts score, for rescaling BERTScore", _BASELINE, BaselineCommand, run_baseline, baseline
    ),
    "layers": Experiment(
        "which layer of a model agrees best with human judgements", _LAYERS, LayersCommand, run_layers, layers
    ),
}
