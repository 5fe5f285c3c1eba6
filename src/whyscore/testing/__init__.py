"""For plugin authors: the contract of each protocol as checks, and fast deterministic fakes."""

from whyscore.testing.explainers import check_explainer
from whyscore.testing.metrics import check_metric
from whyscore.testing.taggers import check_tagger

__all__ = ["check_explainer", "check_metric", "check_tagger"]
