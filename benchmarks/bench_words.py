"""How long AUC, AP and recall at K of word scores take beside a loop over sentences with scikit-learn.

    python benchmarks/bench_words.py

Both sides judge the same 6,000 sentences in one run; their numbers must be equal to 1e-12. Judged is the ratio.
"""

import time
from collections.abc import Callable

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from whyscore.stats.words import Ragged, agree

SENTENCES = 6000
LIMIT = 20
TOLERANCE = 1e-12


def made(seed: int = 0) -> tuple[Ragged, Ragged]:
    """Return gold marks and scores of sentences of 2 to 60 words, a tenth of them with tied scores."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 61, size=SENTENCES)
    gold = [(rng.random(n) < rng.choice([0.05, 0.3, 0.6])).astype(float) for n in lengths]
    scores = [rng.random(n) if rng.random() < 0.9 else rng.integers(0, 4, size=n) / 4 for n in lengths]
    return Ragged.of(gold), Ragged.of(scores)


def peer(gold: Ragged, scores: Ragged) -> np.ndarray:
    """Return AUC, AP and recall at K (stable sort, reversed) by a loop, as the shared task's script has it."""
    rows = []
    for marks, values in zip(gold.rows(), scores.rows(), strict=True):
        k = int(marks.sum())
        if k in (0, len(marks)):
            continue
        top = np.argsort(values, kind="stable")[::-1][:k]
        rows.append((roc_auc_score(marks, values), average_precision_score(marks, values), marks[top].sum() / k))
    return np.array(rows)


def ours(gold: Ragged, scores: Ragged) -> np.ndarray:
    """Return the same three columns without a loop."""
    found = agree(gold, scores, ties="legacy")
    return np.column_stack([found.of("auc"), found.of("ap"), found.of("recall_at_k")])


def timed(
    work: Callable[[Ragged, Ragged], np.ndarray], gold: Ragged, scores: Ragged, repeats: int = 1
) -> tuple[float, np.ndarray]:
    """Return how long a call takes at best, and what it returns."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        found = work(gold, scores)
        times.append(time.perf_counter() - start)
    return min(times), found


def main() -> int:
    """Print the ratio and return 1 if it is below the limit or the numbers differ."""
    gold, scores = made()
    slow, wanted = timed(peer, gold, scores)
    fast, found = timed(ours, gold, scores, repeats=5)
    ratio, difference = slow / fast, float(np.abs(wanted - found).max())
    print(f"{SENTENCES} sentences, {len(gold.values)} words: scikit-learn {slow:.3f} s, whyscore {fast:.4f} s")
    print(f"words: {ratio:.0f} times faster (at least {LIMIT}), largest difference {difference:.1e}")
    return int(ratio < LIMIT or difference > TOLERANCE)


if __name__ == "__main__":
    raise SystemExit(main())
