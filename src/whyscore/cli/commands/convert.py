"""`whyscore convert`: word scores to spans, spans to words, and any dialect to any other."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from whyscore.analysis.categories import Naming, name_spans
from whyscore.analysis.convert import (
    Converted,
    ConvertSettings,
    SpanSettings,
    SubmissionSettings,
    Target,
    categorise,
    convert,
    pick_group,
    spans_by,
    thresholds_of,
    to_submission,
)
from whyscore.cli.options import InputSettings, QuietSettings
from whyscore.cli.output import emit, tell, tell_each
from whyscore.data.formats.eval4nlp import read_gold
from whyscore.data.formats.mqm import WEIGHTS
from whyscore.data.formats.text import read_texts
from whyscore.data.reading import DIALECTS, dialect_of, read, read_foreign
from whyscore.data.records import read_explanations
from whyscore.errors import DataError, UserError
from whyscore.settings import REQUIRED, again, option
from whyscore.stats.annotators import Weights
from whyscore.text.files import STRICT
from whyscore.types import Dataset

EXAMPLES = """\
examples:
  whyscore convert mqm.tsv --to whyscore -o rated.jsonl
  whyscore convert explanations.jsonl --to spans --threshold auto -o spans.jsonl
  whyscore convert explanations.jsonl -s src.txt -t mt.txt --to spans --threshold auto --categories mqm
  whyscore convert explanations.jsonl --to eval4nlp --team me --track constrained -o submission/
  whyscore convert mqm.tsv --to tags -o dev.tgt-tags
"""


@dataclass(frozen=True, kw_only=True)
class TextSettings:
    """Where texts come from that a file of spans does not hold."""

    TITLE: ClassVar[str] = "texts, where the file does not hold them"

    texts: str | None = option(None, "a data file with the texts", metavar="FILE")
    source: str | None = again(InputSettings, "source", basic=False)
    hypotheses: tuple[str, ...] | None = again(InputSettings, "hypotheses", basic=False)
    systems: tuple[str, ...] | None = again(InputSettings, "systems", help="names of the systems")


@dataclass(frozen=True, kw_only=True)
class ConvertCommand(QuietSettings, SubmissionSettings, SpanSettings, TextSettings, ConvertSettings):
    """What `whyscore convert` takes."""

    data: str = option(
        REQUIRED, "explanations, spans or ratings; a gold folder", positional=True, metavar="FILE", basic=True
    )
    to: Target = option(REQUIRED, "what to write", basic=True)
    dialect: str | None = option(
        None, "format of the file if it cannot be recognised", flags=("--from",), choices=DIALECTS, basic=True
    )
    tune_on: str | None = option(
        None, "gold folder of the same segments to learn the threshold on (best MCC)", metavar="GOLD"
    )
    weights: str = option("google", "MQM weights: google, xcomet, a JSON file", metavar="NAME|FILE")
    bad: bool = option(False, "write tags as OK and BAD")
    tagger: str | None = option(
        None, "label spans without a category with the feature that this tagger finds", metavar="SPEC", basic=True
    )
    categories: Naming | None = option(
        None, "label spans without a category with the kind of synthetic error that they resemble most; needs sources",
        basic=True,
    )  # fmt: skip


SETTINGS = ConvertCommand


def run(settings: ConvertCommand) -> int:
    """Convert, write, and say what could not be said."""
    done = _convert(settings, settings.dialect or dialect_of(settings.data))
    for what, count in done.lost.items():
        tell(settings, f"note: {settings.to} cannot represent: {what} ({count})")
    for file in done.files:
        tell(settings, f"wrote {file}")
    if done.lines:
        emit(settings, done.lines)
    return 0


def _convert(settings: ConvertCommand, dialect: str) -> Converted:
    if dialect == "explanations" and settings.to == "eval4nlp":
        if not settings.output:
            raise UserError("a submission is a folder: name it with -o")
        return to_submission(read_explanations(settings.data), settings.output, settings=settings)
    origin, data = _read(settings, dialect)
    if settings.categories:
        data = name_spans(data, settings.categories, tagger=settings.tagger or "rules")
    elif settings.tagger:
        data = categorise(data, settings.tagger)
    tell_each(settings, "note", data.findings)
    words = ("OK", "BAD") if settings.bad else settings.words
    return convert(data, settings.to, settings=settings, origin=origin, words=words)


def _read(settings: ConvertCommand, dialect: str) -> tuple[str, Dataset]:
    """Return who found the spans, and the spans."""
    texts = _texts(settings)
    if dialect != "explanations":
        weights = _weights(settings.weights)
        return dialect, read_foreign(settings.data, dialect, texts=texts, weights=weights, offsets=settings.offsets)
    stored = read_explanations(settings.data)
    gold = read_gold(settings.tune_on) if settings.tune_on else None
    thresholds = thresholds_of(stored, gold, settings=settings)
    limits = {
        "minor": thresholds.minor,
        "major": thresholds.major,
        "critical": thresholds.critical,
        "top": thresholds.top,
    }
    shown = ", ".join(f"{name} {value:g}" for name, value in limits.items() if value is not None)
    tell(settings, f"note: error scores above: {shown}")
    return pick_group(stored, settings.pick)[0], spans_by(stored, thresholds, settings.pick, texts)


def _texts(settings: TextSettings) -> Dataset | None:
    if settings.texts:
        return read(settings.texts)
    if settings.hypotheses:
        return read_texts(settings.hypotheses, source=settings.source, systems=settings.systems)
    return None


def _weights(name: str) -> Weights:
    if name in WEIGHTS:
        return WEIGHTS[name]
    if not Path(name).is_file():
        raise UserError(f"no MQM weights named {name!r}: use {', '.join(WEIGHTS)}, or a JSON file of weights")
    try:
        rules = STRICT.decode(Path(name).read_text("utf-8"))
        return Weights({str(rule): float(weight) for rule, weight in rules.items()})
    except (OSError, ValueError, AttributeError, TypeError, RecursionError) as error:
        raise DataError(f"not a table of weights: {error}; expected an object of numbers", file=name) from error
