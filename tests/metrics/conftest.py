"""Real translations for the tests of lexical metrics."""

from collections.abc import Callable
from pathlib import Path

import pytest

from whyscore.types import Segment

Translated = Callable[..., list[Segment]]


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


@pytest.fixture(scope="session")
def deen(shared: Path) -> Translated:
    """A function of the number of references and of lines: a system's German-English newstest2019, 2,000 lines.

    The first reference is human; the second is another system, and the third that system's next line.
    """
    folder = shared / "muler" / "wmt19_deen"
    hypotheses = _lines(folder / "newstest2019.online-A.0.de-en")
    other = _lines(folder / "newstest2019.Facebook_FAIR.6750.de-en")
    texts = (_lines(folder / "newstest2019-deen-ref.en"), other, other[1:] + other[:1])

    def segments(references: int = 1, number: int | None = None) -> list[Segment]:
        pairs = zip(hypotheses[:number], *(lines[:number] for lines in texts[:references]), strict=True)
        return [Segment(hypothesis, None, tuple(rest)) for hypothesis, *rest in pairs]

    return segments
