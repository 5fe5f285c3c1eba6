"""`whyscore train`: a quality estimator of your own, from labels or from parallel text alone."""

from dataclasses import dataclass
from typing import ClassVar

from whyscore.analysis.train.settings import TrainSettings
from whyscore.analysis.train.train import train
from whyscore.cli.options import FolderSettings, OutputSettings
from whyscore.cli.output import emit_result, tell
from whyscore.cli.setup import language_pair
from whyscore.settings import REQUIRED, again, option

EXAMPLES = """\
examples:
  whyscore train --data train.jsonl.gz -l et-en -o my-qe/
  whyscore train --parallel src.txt ref.txt --hypotheses mt.txt -o my-qe/
  whyscore train --parallel src.txt ref.txt --labels perturbation -o my-qe/
  whyscore train --data spans.jsonl --encoder xlm-roberta-base -o my-qe/
  whyscore score -s src.txt -t mt.txt -m "qe(model='my-qe/')"
"""


@dataclass(frozen=True, kw_only=True)
class TrainCommand(OutputSettings, TrainSettings):
    """What `whyscore train` takes."""

    TITLE: ClassVar[str] = "input"

    data: tuple[str, ...] = option(
        (), "labelled segments: MLQE-PE or MQM spans as JSON lines, WMT QE and Eval4NLP folders, whyscore's records",
        metavar="PATH", basic=True,
    )  # fmt: skip
    parallel: tuple[str, ...] = option(
        (), "sources and their references, one text per line in two files", metavar="FILE", basic=True
    )
    hypotheses: str | None = option(
        None, "translations of the same sources by a system", flags=("-t", "--hypotheses", "--mt"), metavar="FILE",
        basic=True,
    )  # fmt: skip
    lang_pair: str | None = option(
        None, "language pair, e.g. et-en", flags=("-l", "--lang-pair"), metavar="ET-EN", basic=True
    )
    test: tuple[str, ...] = option(
        (), "labelled segments for the card, instead of held-out ones", metavar="PATH", basic=True
    )
    output: str | None = option(None, line=False)
    folder: str = again(FolderSettings, "folder", REQUIRED, help="output folder for the model")


SETTINGS = TrainCommand


def run(settings: TrainCommand) -> int:
    """Train, and show what was reached on held-out documents."""
    languages = language_pair(settings.lang_pair)
    result = train(
        *settings.data,
        output=settings.folder,
        parallel=settings.parallel,
        hypotheses=settings.hypotheses,
        lang_pair="-".join(languages) if languages else None,
        test=settings.test,
        report=lambda line: tell(settings, line),
        settings=settings,
    )
    emit_result(result, settings)
    tell(settings, f"{result.folder}: {result.segments} segments, {result.seconds:.0f} s, digest {result.digest}")
    tell(settings, f"use it: whyscore score -s src.txt -t mt.txt -m \"qe(model='{result.folder}')\"")
    return 0
