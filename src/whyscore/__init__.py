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
    from whyscore.data.checks import validate
    from whyscore.data.formats.eval4nlp import read_gold, read_submission
    from whyscore.data.formats.text import from_texts
    from whyscore.data.reading import read
    from whyscore.data.sample import sample
    from whyscore.jobs.boost import BoostResult, boost, boosted
    from whyscore.jobs.calibrate import calibrate
    from whyscore.jobs.calibration import Calibration
    from whyscore.jobs.common import Resources
    from whyscore.jobs.compare import compare
    from whyscore.jobs.components import list_components
    from whyscore.jobs.convert import convert
    from whyscore.jobs.decompose import decompose
    from whyscore.jobs.decompose_result import Decomposition
    from whyscore.jobs.doctor import doctor
    from whyscore.jobs.evaluate import evaluate
    from whyscore.jobs.experiment import experiment
    from whyscore.jobs.explain import explain
    from whyscore.jobs.faithfulness import faithfulness
    from whyscore.jobs.fit_weights import FittedWeights, fit_weights
    from whyscore.jobs.learn_map import learn_map
    from whyscore.jobs.mee_parts import MeeParts, mee_parts
    from whyscore.jobs.mee_views import MeeView, mee_view
    from whyscore.jobs.metaevaluate import metaevaluate
    from whyscore.jobs.metaevaluate import metaevaluate as metaeval
    from whyscore.jobs.metaevaluate_words import metaevaluate_words
    from whyscore.jobs.runs_reading import Run, read_run
    from whyscore.jobs.score import score, score_systems
    from whyscore.jobs.shards import merge
    from whyscore.jobs.stability import stability
    from whyscore.jobs.stores import store
    from whyscore.jobs.submit import submit
    from whyscore.models.maps import write_map
    from whyscore.registry import build, register, register_metric, spec_of
    from whyscore.report import build_report
    from whyscore.report import build_report as report
    from whyscore.scoring.store import Store
    from whyscore.types import Dataset, Entry, ErrorSpan, Explanation, Scores, Segment, Signature, Words
    from whyscore.web.serving import serve

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
    "BoostResult": "whyscore.jobs.boost",
    "Calibration": "whyscore.jobs.calibration",
    "Dataset": "whyscore.types",
    "Decomposition": "whyscore.jobs.decompose_result",
    "Entry": "whyscore.types",
    "ErrorSpan": "whyscore.types",
    "Explanation": "whyscore.types",
    "FittedWeights": "whyscore.jobs.fit_weights",
    "MeeParts": "whyscore.jobs.mee_parts",
    "MeeView": "whyscore.jobs.mee_views",
    "Resources": "whyscore.jobs.common",
    "Run": "whyscore.jobs.runs_reading",
    "Scores": "whyscore.types",
    "Segment": "whyscore.types",
    "Signature": "whyscore.types",
    "Store": "whyscore.scoring.store",
    "Words": "whyscore.types",
    "boost": "whyscore.jobs.boost",
    "boosted": "whyscore.jobs.boost",
    "build": "whyscore.registry",
    "build_report": "whyscore.report",
    "calibrate": "whyscore.jobs.calibrate",
    "compare": "whyscore.jobs.compare",
    "convert": "whyscore.jobs.convert",
    "decompose": "whyscore.jobs.decompose",
    "doctor": "whyscore.jobs.doctor",
    "evaluate": "whyscore.jobs.evaluate",
    "experiment": "whyscore.jobs.experiment",
    "explain": "whyscore.jobs.explain",
    "faithfulness": "whyscore.jobs.faithfulness",
    "fit_weights": "whyscore.jobs.fit_weights",
    "from_texts": "whyscore.data.formats.text",
    "learn_map": "whyscore.jobs.learn_map",
    "mee_parts": "whyscore.jobs.mee_parts",
    "mee_view": "whyscore.jobs.mee_views",
    "merge": "whyscore.jobs.shards",
    "metaevaluate": "whyscore.jobs.metaevaluate",
    "metaevaluate_words": "whyscore.jobs.metaevaluate_words",
    "read": "whyscore.data.reading",
    "read_gold": "whyscore.data.formats.eval4nlp",
    "read_run": "whyscore.jobs.runs_reading",
    "read_submission": "whyscore.data.formats.eval4nlp",
    "register": "whyscore.registry",
    "register_metric": "whyscore.registry",
    "sample": "whyscore.data.sample",
    "score": "whyscore.jobs.score",
    "score_systems": "whyscore.jobs.score",
    "serve": "whyscore.web.serving",
    "spec_of": "whyscore.registry",
    "stability": "whyscore.jobs.stability",
    "store": "whyscore.jobs.stores",
    "submit": "whyscore.jobs.submit",
    "validate": "whyscore.data.checks",
    "write_map": "whyscore.models.maps",
}
"""The module of each public name."""
_RENAMED = {
    "list": ("whyscore.jobs.components", "list_components"),
    "metaeval": ("whyscore.jobs.metaevaluate", "metaevaluate"),
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
