"""Which language texts are in, identified offline by py3langid, after langid.py (Lui and Baldwin 2012, P12-3005).

1. Take a sample of the texts that have words, spread evenly over all of them.
2. Identify each text by itself and let the texts vote, each with as many votes as it has characters.
3. The language with the most votes is the answer. It is sure where it has two thirds of the votes and enough text was
   read; otherwise it says so.

The package is loaded at the first question (it unpacks 4.6 MB), so a run that never asks does not wait for it.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import regex

_SAMPLE = 200
_CHARACTERS = 60
"""Fewer characters in all are too few for an answer that one can rely on."""
_MAJORITY = 2 / 3
_LETTERS = regex.compile(r"\p{L}")


class Identified(NamedTuple):
    """A language, and how much of the sampled text was taken for it."""

    code: str
    share: float
    sure: bool


def identify(texts: Sequence[str]) -> Identified | None:
    """Return the language of most of the texts; None where there are no letters.

    >>> identify(["Tämä on suomenkielinen lause.", "Kissa istui matolla ja katseli ikkunasta ulos."])
    Identified(code='fi', share=1.0, sure=True)
    """
    import py3langid  # noqa: PLC0415 - loads its tables

    spoken = [text for text in texts if _LETTERS.search(text)]
    step = max(1, len(spoken) // _SAMPLE)
    votes: Counter[str] = Counter()
    for text in spoken[::step][:_SAMPLE]:
        votes[str(py3langid.classify(text)[0])] += len(text)
    if not votes:
        return None
    total = sum(votes.values())
    code, count = min(votes.items(), key=lambda vote: (-vote[1], vote[0]))
    return Identified(code, count / total, total >= _CHARACTERS and count / total >= _MAJORITY)


def language_code(language: str) -> str:
    """Return the language alone: zh of zh-TW, de of de_AT.

    >>> language_code("zh_TW")
    'zh'
    """
    return language.lower().replace("_", "-").split("-")[0]
