"""Train an explainable quality estimator: labels, examples, network, card.

`whyscore.train` is the analysis; the names here are its parts, for studies of labels and perturbations.
"""

from whyscore.analysis.train.examples import label_spans
from whyscore.analysis.train.labels import WRONG, Rated, digest_rows, read_rated
from whyscore.analysis.train.perturbations import Perturber, check_kinds
from whyscore.analysis.train.settings import LabelSource, TrainSettings

__all__ = [
    "WRONG", "LabelSource", "Perturber", "Rated", "TrainSettings", "check_kinds", "digest_rows", "label_spans",
    "read_rated",
]  # fmt: skip
