"""Word scores that no explainer may lose to: chance in closed form, and scores from the bare texts.

| name | score of a word |
|---|---|
| `random` | uniform in [0, 1), from the seed and the text |
| `length` | its characters |
| `position` | its number in the sentence |
| `constant` | 0 |
| `copy` | 0 where the word occurs in the other text, else 1 |
| `logprob` | minus its log-probability under the system that wrote it, where a file holds these |

`chance` is no draw but the mean over all orders, so that it has no error: the exact zero line.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from whyscore.data.files import read_lines
from whyscore.data.formats.eval4nlp import SIDES, Gold, Judged, Scored, Submission
from whyscore.data.formats.word_lines import score_lines
from whyscore.errors import DataError
from whyscore.explainers.logprob import LogProb
from whyscore.jobs.judging import Judging, SystemResult, judged_tags, side_result
from whyscore.stats.words import Ragged, chance
from whyscore.text.randomness import generator
from whyscore.types import HYPOTHESIS, FloatVector, Segment, Words

Pool = Literal["min", "sum", "mean", "first"]
POOLS: tuple[Pool, ...] = get_args(Pool)
NAMES = ("random", "length", "position", "constant", "copy")


def chance_result(gold: Gold, how: Judging) -> SystemResult:
    """Return what random scores reach on average."""
    sides = {
        side: side_result(chance(judged_tags(own, how)), how) for side in SIDES if (own := gold.side(side)) is not None
    }
    return SystemResult("chance", sides, baseline=True)


def baseline(name: str, gold: Gold, seed: int = 0) -> Submission:
    """Return a baseline's scores for every side whose words are known."""
    sides: dict[Judged, Scored] = {}
    for side in SIDES:
        own = gold.side(side)
        if own is None or own.words is None:
            continue
        there = gold.words("source" if side == "target" else "target")
        if name == "copy" and there is None:
            continue
        rows = _rows(name, own.words, there, seed)
        sides[side] = Scored(Ragged.of(rows), f"{name} of {own.file}")
    if not sides:
        raise DataError(f"{gold.name} comes without its words: the baseline {name!r} needs them")
    return Submission(name, sides)


def logprob(path: str | Path, gold: Gold, pool: Pool = "min") -> Submission:
    """Return minus the log-probability of each word of the target, and the mean log-probability per sentence."""
    if gold.target.words is None:
        raise DataError(f"{gold.name} comes without its words: log-probabilities are found by them")
    words = list(gold.target.words)
    segments = [Segment(own.text) for own in words]
    found = LogProb(str(path), pool).word_scores(segments, HYPOTHESIS, words)
    scores = Scored(Ragged.of([-one.importance for one in found]), str(path))
    return Submission(f"logprob({pool})", {"target": scores}, _mean_logprob(Path(path), len(gold)), str(path))


def _rows(name: str, own: Sequence[Words], there: Sequence[Words] | None, seed: int) -> list[FloatVector]:
    if name == "copy":
        known = [set(words) for words in there or ()]
        return [np.array([float(word not in known[k]) for word in words]) for k, words in enumerate(own)]
    scorers: dict[str, Callable[[Words], FloatVector]] = {
        "random": lambda words: generator(seed, "random", words.text).random(len(words)),
        "length": lambda words: np.array([float(len(word)) for word in words]),
        "position": lambda words: np.arange(len(words), dtype=np.float64),
        "constant": lambda words: np.zeros(len(words)),
    }
    return [scorers[name](words) for words in own]


def _mean_logprob(path: Path, count: int) -> FloatVector | None:
    """Return the mean log-probability of each line, the end of the text included; None where lines do not say it."""
    file = path / "word_probas"
    if not file.is_file():
        return None
    values = score_lines(read_lines(file), str(file)).values
    return values.sums() / values.lengths if len(values) == count else None
