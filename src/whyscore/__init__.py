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
    from whyscore.analysis.boost import boost as boost
    from whyscore.analysis.boost import boosted as boosted
    from whyscore.analysis.calibrate.calibrate import calibrate as calibrate
    from whyscore.analysis.calibrate.file import Calibration as Calibration
    from whyscore.analysis.calibrate.weights import fit_weights as fit_weights
    from whyscore.analysis.catalogue import doctor as doctor
    from whyscore.analysis.catalogue import list_components
    from whyscore.analysis.common import store as store
    from whyscore.analysis.compare.compare import compare as compare
    from whyscore.analysis.convert import convert as convert
    from whyscore.analysis.decompose.decompose import decompose as decompose
    from whyscore.analysis.decompose.result import Decomposition as Decomposition
    from whyscore.analysis.explain import explain as explain
    from whyscore.analysis.learn_map import learn_map as learn_map
    from whyscore.analysis.mee import mee_parts as mee_parts
    from whyscore.analysis.mee import mee_view as mee_view
    from whyscore.analysis.metaeval.faithfulness import faithfulness as faithfulness
    from whyscore.analysis.metaeval.faithfulness import stability as stability
    from whyscore.analysis.metaeval.scores import metaevaluate as metaevaluate
    from whyscore.analysis.metaeval.words import metaevaluate_words as metaevaluate_words
    from whyscore.analysis.score import score as score
    from whyscore.analysis.score import score_systems as score_systems
    from whyscore.analysis.select import select as select
    from whyscore.analysis.submit import submit as submit
    from whyscore.analysis.train.train import train as train
    from whyscore.analysis.triage import triage as triage
    from whyscore.data.checks import validate as validate
    from whyscore.data.dataset import sample as sample
    from whyscore.data.formats.eval4nlp import read_gold as read_gold
    from whyscore.data.formats.eval4nlp import read_submission as read_submission
    from whyscore.data.formats.text import from_texts as from_texts
    from whyscore.data.reading import read as read
    from whyscore.experiments import experiment as experiment
    from whyscore.models.lexicon import learn_lexicon as learn_lexicon
    from whyscore.models.lexicon import write_lexicon as write_lexicon
    from whyscore.models.maps import write_map as write_map
    from whyscore.registry import build as build
    from whyscore.registry import register as register
    from whyscore.registry import register_metric as register_metric
    from whyscore.registry import spec_of as spec_of
    from whyscore.report import build_report as build_report
    from whyscore.report import build_report as report
    from whyscore.runs.evaluate import evaluate as evaluate
    from whyscore.runs.folder import Run as Run
    from whyscore.runs.folder import read_run as read_run
    from whyscore.runs.shards import merge as merge
    from whyscore.scoring.stack import Resources as Resources
    from whyscore.scoring.store import Store as Store
    from whyscore.types import Dataset as Dataset
    from whyscore.types import Entry as Entry
    from whyscore.types import ErrorSpan as ErrorSpan
    from whyscore.types import Explanation as Explanation
    from whyscore.types import Scores as Scores
    from whyscore.types import Segment as Segment
    from whyscore.types import Signature as Signature
    from whyscore.types import Words as Words
    from whyscore.web.app import serve as serve

    metaeval = metaevaluate
    list = list_components  # noqa: A001 - the name of the command

_HOMES = {
    "whyscore.analysis.boost": (
        "boost",
        "boosted",
    ),
    "whyscore.analysis.calibrate.calibrate": ("calibrate",),
    "whyscore.analysis.calibrate.file": ("Calibration",),
    "whyscore.analysis.catalogue": ("doctor",),
    "whyscore.analysis.common": ("store",),
    "whyscore.analysis.compare.compare": ("compare",),
    "whyscore.analysis.convert": ("convert",),
    "whyscore.analysis.decompose.decompose": ("decompose",),
    "whyscore.analysis.decompose.result": ("Decomposition",),
    "whyscore.analysis.explain": ("explain",),
    "whyscore.analysis.learn_map": ("learn_map",),
    "whyscore.analysis.metaeval.faithfulness": ("faithfulness", "stability"),
    "whyscore.analysis.metaeval.scores": ("metaevaluate",),
    "whyscore.analysis.metaeval.words": ("metaevaluate_words",),
    "whyscore.analysis.score": (
        "score",
        "score_systems",
    ),
    "whyscore.analysis.select": ("select",),
    "whyscore.analysis.submit": ("submit",),
    "whyscore.analysis.triage": ("triage",),
    "whyscore.analysis.train.train": ("train",),
    "whyscore.data.checks": ("validate",),
    "whyscore.data.formats.text": ("from_texts",),
    "whyscore.data.reading": ("read",),
    "whyscore.data.dataset": ("sample",),
    "whyscore.experiments": ("experiment",),
    "whyscore.models.lexicon": ("learn_lexicon",),
    "whyscore.registry": (
        "build",
        "register",
        "register_metric",
        "spec_of",
    ),
    "whyscore.runs.evaluate": ("evaluate",),
    "whyscore.runs.folder": ("Run",),
    "whyscore.runs.shards": ("merge",),
    "whyscore.scoring.stack": ("Resources",),
    "whyscore.types": (
        "Dataset",
        "Entry",
        "ErrorSpan",
        "Explanation",
        "Scores",
        "Segment",
        "Signature",
    ),
    "whyscore.web.app": ("serve",),
}
"""The public names by the module they live in."""

_ALSO = {
    "Store": "whyscore.scoring.store:Store",
    "Words": "whyscore.types:Words",
    "build_report": "whyscore.report:build_report",
    "fit_weights": "whyscore.analysis.calibrate.weights:fit_weights",
    "list": "whyscore.analysis.catalogue:list_components",
    "mee_parts": "whyscore.analysis.mee:mee_parts",
    "mee_view": "whyscore.analysis.mee:mee_view",
    "metaeval": "whyscore.analysis.metaeval.scores:metaevaluate",
    "read_gold": "whyscore.data.formats.eval4nlp:read_gold",
    "read_run": "whyscore.runs.folder:read_run",
    "read_submission": "whyscore.data.formats.eval4nlp:read_submission",
    "write_lexicon": "whyscore.models.lexicon:write_lexicon",
    "write_map": "whyscore.models.maps:write_map",
}
"""What can be imported too: twins of commands whose function has another name at home, and names that few need. `list`
must not be in `__all__`: a star import would hide the one of Python."""

_PLACES = {name: f"{home}:{name}" for home, names in _HOMES.items() for name in names} | _ALSO
__all__ = ["__version__", "report", *(name for names in _HOMES.values() for name in names)]  # noqa: PLE0604
__all__.sort()


def __getattr__(name: str) -> object:
    if name == "report":  # a package that can be called
        return importlib.import_module("whyscore.report")
    if name not in _PLACES:
        raise AttributeError(f"module 'whyscore' has no attribute {name!r}")
    home, _, attribute = _PLACES[name].partition(":")
    return getattr(importlib.import_module(home), attribute)


def __dir__() -> Iterable[str]:
    return __all__
