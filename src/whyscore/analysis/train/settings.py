"""How an estimator is trained: the options of `whyscore train`, declared once."""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from whyscore.settings import Seeded, option

LabelSource = Literal["human", "alignment", "perturbation"]
LABEL_SOURCES: tuple[LabelSource, ...] = get_args(LabelSource)


@dataclass(frozen=True, kw_only=True)
class TrainSettings(Seeded):
    """Labels, encoder, losses and schedule."""

    TITLE: ClassVar[str] = "options"

    labels: tuple[LabelSource, ...] = option(
        (),
        "human: tags, spans and scores in the data; alignment: edits between hypothesis and reference; perturbation: "
        "errors put into references (default: what the input allows, in this order)",
        basic=True,
    )
    encoder: str = option(
        "embedded",
        "embedded (CPU, small), or an encoder of transformers: a folder or a hub name",
        metavar="NAME",
        basic=True,
    )
    held_out: float = option(
        0.2,
        "share of documents kept: half for early stopping and calibration, half for the card (trained on with --test)",
        least=0.02, most=0.8, metavar="X", basic=True,
    )  # fmt: skip
    epochs: int = option(15, "maximum number of epochs", least=1, metavar="N", basic=True)
    patience: int = option(
        4, "stop after this many epochs without improvement on held-out documents", least=1, metavar="N"
    )
    rate: float | None = option(
        None, "peak learning rate (default: 2e-3, or 2e-5 for encoders of transformers)", least=0.0, metavar="X"
    )
    batch_words: int = option(1500, "words of both sides in a batch", least=10, metavar="N")
    least_segments: int = option(200, "refuse to train on fewer labelled segments", least=2, metavar="N")
    perturbed: int = option(1, "perturbed copies of each reference", least=1, metavar="N")
    perturbed_references: int | None = option(
        None,
        "perturb at most this many references, drawn at random (default: all). In our measurements 7,000 instead of "
        "2,000 took four times as long and raised the AUC of words from .729 to .739",
        least=2, metavar="N",
    )  # fmt: skip
    perturbations: tuple[str, ...] = option(
        (), "kinds of perturbation (default: those with a rate above 0)", metavar="KIND"
    )
    infill: str | None = option(
        None, "masked language model that substitutes words (default: a lexicon of the data)", metavar="NAME"
    )
    word_loss: float = option(1.0, "weight of the cross-entropy of words", least=0.0)
    rank_loss: float = option(0.5, "weight of ranking wrong words above right ones", least=0.0)
    gap_loss: float = option(0.3, "weight of the cross-entropy of gaps", least=0.0)
    sentence_loss: float = option(0.5, "weight of the squared error of sentence scores", least=0.0)
    metric_loss: float = option(0.2, "weight of the squared error of metric values (alignment)", least=0.0)
    contrast_loss: float = option(0.5, "weight of scoring a text above its perturbed copy", least=0.0)
    margin: float = option(1.0, "margin of the contrast loss, in standard deviations", least=0.0)
    device: str = option("auto", "for encoders of transformers: auto, cpu, cuda, cuda:1, mps", metavar="NAME")
    precision: Literal["fp32", "bf16"] = option("fp32", "of forward passes of encoders of transformers")
