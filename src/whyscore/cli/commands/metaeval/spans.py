"""`whyscore metaeval spans`: predicted error spans against those that people marked."""

from dataclasses import dataclass

from whyscore.analysis.metaeval.settings import MetaevalSpansSettings
from whyscore.analysis.metaeval.spans import metaevaluate_spans
from whyscore.cli.options import OutputSettings
from whyscore.cli.output import emit_result, format_of, tell, tell_signatures
from whyscore.data.reading import read_foreign
from whyscore.errors import UserError
from whyscore.settings import option
from whyscore.types import Dataset

EXAMPLES = """\
examples:
  whyscore metaeval spans predicted.jsonl --gold mqm.tsv
  whyscore metaeval spans predicted.jsonl --gold GOLD_FOLDER --severity -f json
"""


@dataclass(frozen=True, kw_only=True)
class SpansCommand(OutputSettings, MetaevalSpansSettings):
    """What `whyscore metaeval spans` takes."""

    data: str = option(
        "", "predicted spans in any dialect, with their texts", positional=True, metavar="FILE", basic=True
    )
    gold: str | None = option(None, "marked spans in any dialect, or a gold folder", metavar="PATH", basic=True)
    weights: tuple[str, ...] | None = option(
        None, "weights of spans by severity, e.g. minor=1 major=5", metavar="NAME=X", basic=True
    )


SETTINGS = SpansCommand


def run(settings: SpansCommand) -> int:
    """Judge the spans and write the result out."""
    if settings.gold is None:
        raise UserError("no gold: give marked spans with --gold PATH")
    predicted, gold = _read(settings, settings.data), _read(settings, settings.gold)
    result = metaevaluate_spans(predicted, gold, weights=_weights(settings.weights), settings=settings)
    emit_result(result, settings)
    if format_of(settings) == "text":
        tell_signatures(settings, [result.signature])
    return 0


def _read(settings: SpansCommand, path: str) -> Dataset:
    data = read_foreign(path)
    for finding in data.findings:
        tell(settings, f"note: {finding}")
    return data


def _weights(given: tuple[str, ...] | None) -> dict[str, float] | None:
    if given is None:
        return None
    try:
        return {name: float(weight) for name, weight in (item.split("=") for item in given)}
    except ValueError:
        raise UserError(f"cannot read the weights {' '.join(given)}: write them like minor=1 major=5") from None
