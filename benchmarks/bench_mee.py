"""How fast the syntactic part of MEE2 and MEE4 is beside NLTK, and what the three metrics share, in one run.

    python benchmarks/bench_mee.py [FOLDER]

FOLDER holds a reference and one output of a system, line by line (WMT22 en-ru); without it, texts are made up. Judged
are ratios and counts: NLTK's time over ours on the same texts, the largest difference, one long text, and how often
`mee mee2 mee4` align and encode a pair. Seconds are printed only.
"""

import random
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

from whyscore.metrics.mee import parts as mee_parts
from whyscore.metrics.mee.metric import Mee, Mee2, Mee4
from whyscore.metrics.mee.parts import characters, order, syntactic
from whyscore.types import FloatMatrix, FloatVector, Segment, Signature

LIMITS = {"faster": 15.0, "difference": 1e-12, "shared": 1.5}
SEGMENTS = 400
REPEATS = 20
FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "mee" / "wmt22"

Pairs = list[tuple[str, str]]


def texts(folder: Path) -> Pairs:
    """Return hypotheses with their references, spread over the files, or made up."""
    if folder.is_dir():
        read = {path.name: path.read_text("utf-8").split("\n")[:-1] for path in sorted(folder.iterdir())}
        reference = read.pop(next(name for name in read if ".ref." in name))
        pairs = list(zip(next(iter(read.values())), reference, strict=True))
        return pairs[:: max(1, len(pairs) // SEGMENTS)]
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghij", k=draw.randint(2, 9))) for _ in range(3000)]
    lines = [draw.choices(words, k=draw.randint(5, 30)) for _ in range(SEGMENTS)]
    changed = [[draw.choice(words) if draw.random() < 0.4 else word for word in line] for line in lines]
    return [(" ".join(own), " ".join(other)) for own, other in zip(changed, lines, strict=True)]


def theirs(pairs: Pairs) -> list[float]:
    """Return NLTK's numbers: n-grams of characters, smoothing method 4."""
    smooth = SmoothingFunction().method4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            float(sentence_bleu([other], own, weights=[1 / n] * n, smoothing_function=smooth))
            for own, other in pairs
            for n in [order(len(other))]
        ]


def ours(pairs: Pairs) -> FloatVector:
    """Return the same by rank refinement, from the strings on."""
    return syntactic([(characters(own), characters(other)) for own, other in pairs])


def seconds(work: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


class Lengths:
    """A sentence encoder that counts how many texts it was given."""

    encoded = 0

    def signature(self) -> Signature:
        """Return a name that is always the same."""
        return Signature("lengths")

    def encode(self, given: Sequence[str]) -> FloatMatrix:
        """Return lengths as vectors."""
        self.encoded += len(given)
        return np.array([[1.0, len(text)] for text in given])


def shared(pairs: Pairs) -> tuple[float, int]:
    """Return the time of all three metrics over that of MEE4 alone, and how many texts were encoded for all three."""
    data = [Segment(own, references=(other,)) for own, other in pairs]
    encoder = Lengths()
    Mee4(sentences=Lengths()).score(data)  # tables loaded, as in a long run
    mee_parts.forget()
    alone = seconds(lambda: Mee4(sentences=Lengths()).score(data))
    mee_parts.forget()
    metrics = (Mee(), Mee2(sentences=encoder), Mee4(sentences=encoder))
    together = seconds(lambda: [metric.score(data) for metric in metrics])
    return together / alone, encoder.encoded


def main() -> int:
    """Print the ratios and return 1 if one is beyond its limit."""
    pairs = texts(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
    ours(pairs[:2])
    slow = seconds(lambda: theirs(pairs))
    # The mean of several calls: a busy machine slows both sides alike.
    fast = seconds(lambda: [ours(pairs) for _ in range(REPEATS)]) / REPEATS
    worst = float(np.abs(ours(pairs) - theirs(pairs)).max())
    long = "".join(random.Random(1).choices("abcdefgh ", k=10_000))
    whole = ours([(long + "a", long)])[0]
    spent = seconds(lambda: ours([(long[:5000] + long[:4999:-1], long)]))
    ratio, encoded = shared(pairs)
    distinct = len({text for pair in pairs for text in pair})
    print(f"{len(pairs)} pairs: NLTK {slow / len(pairs) * 1e3:.2f} ms, whyscore {fast / len(pairs) * 1e3:.3f} ms each")
    print(f"syntax      {slow / fast:.0f} x as fast as NLTK (limit {LIMITS['faster']}), largest difference {worst:.1e}")
    print(f"10,000 characters: {spent:.2f} s; one letter more than the reference {whole:.6f}")
    print(f"mee mee2 mee4 together {ratio:.2f} x mee4 alone (limit {LIMITS['shared']}); {encoded} texts encoded")
    failed = [
        slow / fast < LIMITS["faster"],
        worst > LIMITS["difference"],
        abs(whole - 1) > 1e-3,
        ratio > LIMITS["shared"],
        encoded != distinct,
    ]
    return int(any(failed))


if __name__ == "__main__":
    sys.exit(main())
