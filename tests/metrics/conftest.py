"""Real translations for the tests of lexical metrics."""

import json
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path

import pytest

from whyscore.types import Segment

Translated = Callable[..., list[Segment]]


@pytest.fixture(scope="session")
def translated(shipped: Path) -> Translated:
    """A function of the number of references and lines: Wikipedia from Romanian and TED talks from Chinese, by turns.

    The first reference is human; the second is another system or sentence, and the third the next line of the second.
    """
    first, second = zip(*_wikipedia(shipped), strict=True), zip(*_talks(shipped), strict=True)
    rows = [row for pair in zip_longest(first, second) for row in pair if row is not None]

    def segments(references: int = 1, number: int | None = None) -> list[Segment]:
        return [Segment(row[0], None, tuple(row[1 : 1 + references])) for row in rows[:number]]

    return segments


def _talks(shipped: Path) -> list[list[str]]:
    texts: dict[str, dict[int, str]] = {}
    for line in (shipped / "mqm" / "ted_zhen_ratings.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        texts.setdefault(row["system"], {})[row["seg_id"]] = row["target"].replace("<v>", "").replace("</v>", "")
    hypotheses, references, other = ([*texts[name].values()] for name in ("Online-W", "ref-B", "MiSS"))
    return [hypotheses, references, other, other[1:] + other[:1]]


def _wikipedia(shipped: Path) -> list[list[str]]:
    folder = shipped / "eval4nlp2021" / "dev" / "ro-en"
    hypotheses, edited = ((folder / f"dev.{name}").read_text("utf-8").split("\n")[:-1] for name in ("mt", "pe"))
    return [hypotheses, edited, edited[1:] + edited[:1], edited[2:] + edited[:2]]
