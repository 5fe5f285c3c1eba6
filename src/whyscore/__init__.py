"""Scores generated text, says which words made the score, and uses that to make the score better.

    import whyscore as ws

    segments = [ws.Segment(hypothesis="I have a cat", references=("I have a dog",))]
    ws.score(segments, "chrf").values
    ws.explain(segments, "chrf", "lime(samples=100)")

Names are imported when they are first used, so that `import whyscore` costs nothing.
"""

import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from whyscore.version import __version__

if TYPE_CHECKING:
    from whyscore.analysis.boost import BoostResult, boost, boosted
    from whyscore.analysis.calibrate.calibrate import calibrate
    from whyscore.analysis.calibrate.file import Calibration
    from whyscore.analysis.calibrate.weights import FittedWeights, fit_weights
    from whyscore.analysis.catalogue import doctor, list_components
    from whyscore.analysis.common import store
    from whyscore.analysis.compare.compare import compare
    from whyscore.analysis.convert import convert
    from whyscore.analysis.decompose.decompose import decompose
    from whyscore.analysis.decompose.result import Decomposition
    from whyscore.analysis.explain import explain
    from whyscore.analysis.learn_map import learn_map
    from whyscore.analysis.mee import MeeParts, MeeView, mee_parts, mee_view
    from whyscore.analysis.metaeval.faithfulness import faithfulness
    from whyscore.analysis.metaeval.scores import metaevaluate
    from whyscore.analysis.metaeval.scores import metaevaluate as metaeval
    from whyscore.analysis.metaeval.stability import stability
    from whyscore.analysis.metaeval.words import metaevaluate_words
    from whyscore.analysis.score import score, score_systems
    from whyscore.analysis.submit import submit
    from whyscore.data.checks import validate
    from whyscore.data.formats.eval4nlp import read_gold, read_submission
    from whyscore.data.formats.text import from_texts
    from whyscore.data.reading import read
    from whyscore.data.sample import sample
    from whyscore.experiments.catalogue import experiment
    from whyscore.models.maps import write_map
    from whyscore.registry import build, register, register_metric, spec_of
    from whyscore.report import build_report
    from whyscore.report import build_report as report
    from whyscore.runs.evaluate import evaluate
    from whyscore.runs.reading import Run, read_run
    from whyscore.runs.shards import merge
    from whyscore.scoring.stack import Resources
    from whyscore.scoring.store import Store
    from whyscore.types import Dataset, Entry, ErrorSpan, Explanation, Scores, Segment, Signature, Words
    from whyscore.web.app import serve

    list = list_components  # noqa: A001 - the name of the command

__all__ = [
    "BoostResult",
    "Calibration",
    "Dataset",
    "Decomposition",
    "Entry",
    "ErrorSpan",
    "Explanation",
    "FittedWeights",
    "MeeParts",
    "MeeView",
    "Resources",
    "Run",
    "Scores",
    "Segment",
    "Signature",
    "Store",
    "Words",
    "__version__",
    "boost",
    "boosted",
    "build",
    "build_report",
    "calibrate",
    "compare",
    "convert",
    "decompose",
    "doctor",
    "evaluate",
    "experiment",
    "explain",
    "faithfulness",
    "fit_weights",
    "from_texts",
    "learn_map",
    "mee_parts",
    "mee_view",
    "merge",
    "metaeval",
    "metaevaluate",
    "metaevaluate_words",
    "read",
    "read_gold",
    "read_run",
    "read_submission",
    "register",
    "register_metric",
    "report",
    "sample",
    "score",
    "score_systems",
    "serve",
    "spec_of",
    "stability",
    "store",
    "submit",
    "validate",
    "write_map",
]

_HOMES = {
    "BoostResult": "whyscore.analysis.boost",
    "Calibration": "whyscore.analysis.calibrate.file",
    "Dataset": "whyscore.types",
    "Decomposition": "whyscore.analysis.decompose.result",
    "Entry": "whyscore.types",
    "ErrorSpan": "whyscore.types",
    "Explanation": "whyscore.types",
    "FittedWeights": "whyscore.analysis.calibrate.weights",
    "MeeParts": "whyscore.analysis.mee",
    "MeeView": "whyscore.analysis.mee",
    "Resources": "whyscore.scoring.stack",
    "Run": "whyscore.runs.reading",
    "Scores": "whyscore.types",
    "Segment": "whyscore.types",
    "Signature": "whyscore.types",
    "Store": "whyscore.scoring.store",
    "Words": "whyscore.types",
    "boost": "whyscore.analysis.boost",
    "boosted": "whyscore.analysis.boost",
    "build": "whyscore.registry",
    "build_report": "whyscore.report",
    "calibrate": "whyscore.analysis.calibrate.calibrate",
    "compare": "whyscore.analysis.compare.compare",
    "convert": "whyscore.analysis.convert",
    "decompose": "whyscore.analysis.decompose.decompose",
    "doctor": "whyscore.analysis.catalogue",
    "evaluate": "whyscore.runs.evaluate",
    "experiment": "whyscore.experiments.catalogue",
    "explain": "whyscore.analysis.explain",
    "faithfulness": "whyscore.analysis.metaeval.faithfulness",
    "fit_weights": "whyscore.analysis.calibrate.weights",
    "from_texts": "whyscore.data.formats.text",
    "learn_map": "whyscore.analysis.learn_map",
    "mee_parts": "whyscore.analysis.mee",
    "mee_view": "whyscore.analysis.mee",
    "merge": "whyscore.runs.shards",
    "metaevaluate": "whyscore.analysis.metaeval.scores",
    "metaevaluate_words": "whyscore.analysis.metaeval.words",
    "read": "whyscore.data.reading",
    "read_gold": "whyscore.data.formats.eval4nlp",
    "read_run": "whyscore.runs.reading",
    "read_submission": "whyscore.data.formats.eval4nlp",
    "register": "whyscore.registry",
    "register_metric": "whyscore.registry",
    "sample": "whyscore.data.sample",
    "score": "whyscore.analysis.score",
    "score_systems": "whyscore.analysis.score",
    "serve": "whyscore.web.app",
    "spec_of": "whyscore.registry",
    "stability": "whyscore.analysis.metaeval.stability",
    "store": "whyscore.analysis.common",
    "submit": "whyscore.analysis.submit",
    "validate": "whyscore.data.checks",
    "write_map": "whyscore.models.maps",
}
"""The module of each public name."""

_RENAMED = {
    "list": ("whyscore.analysis.catalogue", "list_components"),
    "metaeval": ("whyscore.analysis.metaeval.scores", "metaevaluate"),
}
"""Twins of commands whose function has another name at home. `list` is not in `__all__`: a star import would hide the
one of Python."""


def __getattr__(name: str) -> object:
    if name == "report":  # a package that can be called
        return importlib.import_module("whyscore.report")
    if name in _RENAMED:
        home, original = _RENAMED[name]
        return getattr(importlib.import_module(home), original)
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'whyscore' has no attribute {name!r}")


def __dir__() -> Iterable[str]:
    return __all__
