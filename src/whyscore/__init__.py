"""Scores generated text, says which words made the score, and uses that to make the score better.

    import whyscore as ws

    segments = [ws.Segment(hypothesis="I have a cat", references=("I have a dog",))]
    ws.score(segments, "chrf").values
    ws.explain(segments, "chrf", "lime(samples=100)")

Names are imported when they are first used, so that `import whyscore` costs nothing.
"""

import importlib
from typing import TYPE_CHECKING

from whyscore.version import __version__

if TYPE_CHECKING:
    from whyscore.io.reading import read
    from whyscore.io.sample import sample
    from whyscore.io.text import from_texts
    from whyscore.jobs.common import Resources
    from whyscore.jobs.compare import compare
    from whyscore.jobs.explain import explain
    from whyscore.jobs.fit_weights import FittedWeights, fit_weights
    from whyscore.jobs.learn_map import learn_map
    from whyscore.jobs.mee_parts import MeeParts, mee_parts
    from whyscore.jobs.metaevaluate import metaevaluate
    from whyscore.jobs.score import score, score_systems
    from whyscore.models.maps import write_map
    from whyscore.registry import build, register, register_metric, spec_of
    from whyscore.scoring.store import Store
    from whyscore.types import Dataset, Entry, ErrorSpan, Explanation, Scores, Segment, Signature, Words

__all__ = [
    "Dataset",
    "Entry",
    "ErrorSpan",
    "Explanation",
    "FittedWeights",
    "MeeParts",
    "Resources",
    "Scores",
    "Segment",
    "Signature",
    "Store",
    "Words",
    "__version__",
    "build",
    "compare",
    "explain",
    "fit_weights",
    "from_texts",
    "learn_map",
    "mee_parts",
    "metaevaluate",
    "read",
    "register",
    "register_metric",
    "sample",
    "score",
    "score_systems",
    "spec_of",
    "write_map",
]

_HOMES = {
    "whyscore.io.reading": ("read",),
    "whyscore.io.sample": ("sample",),
    "whyscore.io.text": ("from_texts",),
    "whyscore.jobs.common": ("Resources",),
    "whyscore.jobs.compare": ("compare",),
    "whyscore.jobs.explain": ("explain",),
    "whyscore.jobs.fit_weights": ("FittedWeights", "fit_weights"),
    "whyscore.jobs.mee_parts": ("MeeParts", "mee_parts"),
    "whyscore.jobs.learn_map": ("learn_map",),
    "whyscore.jobs.metaevaluate": ("metaevaluate",),
    "whyscore.jobs.score": ("score", "score_systems"),
    "whyscore.models.maps": ("write_map",),
    "whyscore.registry": ("build", "register", "register_metric", "spec_of"),
    "whyscore.scoring.store": ("Store",),
    "whyscore.types": ("Dataset", "Entry", "ErrorSpan", "Explanation", "Scores", "Segment", "Signature", "Words"),
}


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(home), name)
    raise AttributeError(f"module 'whyscore' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
