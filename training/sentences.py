"""Train the sentence heads: `python training/sentences.py build/ sentences.npz`.

One for each language pair and kind of label: ridge regression of the standardised human score on the vectors of both
texts as a whole (`whyscore.metrics.estimators.features.compare`). The penalty was chosen on the rows held out.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prepare import Cut
from train import held_out, load, standardise
from whyscore.metrics.estimators.features import compare

Array = NDArray[np.float32]

PENALTY = 10_000.0
_LEAST_DEVIATION = 1e-5


class Head(NamedTuple):
    """A linear function of the compared texts, standardised on the rows that it was fitted to."""

    weights: Array
    offset: float

    def judge(self, compared: Array) -> Array:
        """Return the score of each row."""
        result: Array = compared @ self.weights + np.float32(self.offset)
        return result


def fit(compared: Array, targets: Array, penalty: float = PENALTY) -> Head:
    """Return the head of some rows."""
    mean, deviation = compared.mean(axis=0), compared.std(axis=0) + _LEAST_DEVIATION
    normed = (compared - mean) / deviation
    curvature = normed.T @ normed + penalty * np.eye(normed.shape[1], dtype=np.float32)
    weights = np.linalg.solve(curvature, normed.T @ (targets - targets.mean())) / deviation
    scores = compared @ weights
    return Head((weights / scores.std()).astype(np.float32), float(-scores.mean() / scores.std()))


def groups(cuts: Sequence[Cut]) -> NDArray[np.str_]:
    """Return language pair and kind of label of each row."""
    return np.array([f"{cut.row.pair}.{'spans' if cut.row.marked else 'edits'}" for cut in cuts])


def main() -> None:
    """Train the heads and write them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    options = parser.parse_args()
    examples, cuts = load(options.folder, "train")
    targets, names, kept = standardise(cuts), groups(cuts), np.array([held_out(cut) for cut in cuts])
    arrays: dict[str, NDArray[np.float32]] = {}
    for name in np.unique(names).tolist():
        own, others = (names == name) & ~kept, (names == name) & kept
        head = fit(compare(*examples.texts[own].transpose(1, 0, 2)), targets[own])
        arrays[name] = np.append(head.weights, np.float32(head.offset))
        if others.sum() > 1:
            scores = head.judge(compare(*examples.texts[others].transpose(1, 0, 2)))
            found = np.corrcoef(scores, targets[others])[0, 1]
            print(f"{name}: {own.sum()} rows, Pearson {found:.3f} on {others.sum()} held out", flush=True)
    np.savez(options.output, **arrays)


if __name__ == "__main__":
    main()
