"""For plugin authors: the contract of each protocol as checks, and fast deterministic fakes."""

from whyscore.testing.checks import check_explainer, check_metric, check_tagger

__all__ = ["check_explainer", "check_metric", "check_tagger"]
