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
    from whyscore.io.eval4nlp import read_gold
    from whyscore.io.reading import read
    from whyscore.io.sample import sample
    from whyscore.io.submissions import read_submission
    from whyscore.io.text import from_texts
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
    from whyscore.jobs.validate import validate
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
    "whyscore.io.eval4nlp": ("read_gold",),
    "whyscore.io.reading": ("read",),
    "whyscore.io.sample": ("sample",),
    "whyscore.io.submissions": ("read_submission",),
    "whyscore.io.text": ("from_texts",),
    "whyscore.jobs.boost": ("BoostResult", "boost", "boosted"),
    "whyscore.jobs.calibrate": ("calibrate",),
    "whyscore.jobs.calibration": ("Calibration",),
    "whyscore.jobs.common": ("Resources",),
    "whyscore.jobs.compare": ("compare",),
    "whyscore.jobs.convert": ("convert",),
    "whyscore.jobs.decompose": ("decompose",),
    "whyscore.jobs.decompose_result": ("Decomposition",),
    "whyscore.jobs.doctor": ("doctor",),
    "whyscore.jobs.evaluate": ("evaluate",),
    "whyscore.jobs.experiment": ("experiment",),
    "whyscore.jobs.explain": ("explain",),
    "whyscore.jobs.faithfulness": ("faithfulness",),
    "whyscore.jobs.fit_weights": ("FittedWeights", "fit_weights"),
    "whyscore.jobs.mee_parts": ("MeeParts", "mee_parts"),
    "whyscore.jobs.mee_views": ("MeeView", "mee_view"),
    "whyscore.jobs.learn_map": ("learn_map",),
    "whyscore.jobs.runs_reading": ("Run", "read_run"),
    "whyscore.jobs.metaevaluate": ("metaevaluate",),
    "whyscore.jobs.metaevaluate_words": ("metaevaluate_words",),
    "whyscore.jobs.score": ("score", "score_systems"),
    "whyscore.jobs.shards": ("merge",),
    "whyscore.jobs.stability": ("stability",),
    "whyscore.jobs.stores": ("store",),
    "whyscore.jobs.submit": ("submit",),
    "whyscore.jobs.validate": ("validate",),
    "whyscore.models.maps": ("write_map",),
    "whyscore.registry": ("build", "register", "register_metric", "spec_of"),
    "whyscore.report": ("build_report",),
    "whyscore.scoring.store": ("Store",),
    "whyscore.types": ("Dataset", "Entry", "ErrorSpan", "Explanation", "Scores", "Segment", "Signature", "Words"),
    "whyscore.web.serving": ("serve",),
}
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
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(home), name)
    raise AttributeError(f"module 'whyscore' has no attribute {name!r}")


def __dir__() -> Iterable[str]:
    return __all__
