"""What the tests of explainers share."""

from collections import Counter
from collections.abc import Callable

import pytest

from support import tiny_models
from whyscore.metrics.learned.transquest import TransQuest

TokenF1 = Callable[[str, str], float]


@pytest.fixture(scope="session")
def token_f1() -> TokenF1:
    """F1 of the bags of white-space tokens, symmetric in its two texts."""

    def score(one: str, other: str) -> float:
        first, second = Counter(one.split()), Counter(other.split())
        common = sum((first & second).values())
        return 2 * common / (first.total() + second.total()) if common else 0.0

    return score


@pytest.fixture(scope="module")
def siamese(tmp_path_factory: pytest.TempPathFactory) -> TransQuest:
    """A model that reads source and hypothesis each by itself."""
    folder = tmp_path_factory.mktemp("siamese")
    tiny_models.save(folder, "xlm-roberta", "XLMRobertaModel")
    return TransQuest(str(folder), "siamese", device="cpu")
