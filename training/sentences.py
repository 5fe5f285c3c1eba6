"""Train the sentence heads: `python training/sentences.py build/ sentences.npz`.

One for each language pair and kind of label: ridge regression of the standardised human score on the vectors of both
texts and on means and deviations of the features of their words (`whyscore.metrics.estimators.features.summarise`). The
penalty was chosen on the rows held out.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prepare import Cut, Examples
from train import Norm, held_out, load, normed_features, norms, standardise
from whyscore.metrics.estimators.features import summarise

Array = NDArray[np.float32]

PENALTY = 10_000.0
_LEAST_DEVIATION = 1e-5


class Head(NamedTuple):
    """A linear function of summaries, standardised on the rows that it was fitted to."""

    weights: Array
    offset: float

    def judge(self, summaries: Array) -> Array:
        """Return the score of each row."""
        result: Array = summaries @ self.weights + np.float32(self.offset)
        return result


def fit(summaries: Array, targets: Array, penalty: float = PENALTY) -> Head:
    """Return the head of some rows."""
    mean, deviation = summaries.mean(axis=0), summaries.std(axis=0) + _LEAST_DEVIATION
    normed = (summaries - mean) / deviation
    curvature = normed.T @ normed + penalty * np.eye(normed.shape[1], dtype=np.float32)
    weights = np.linalg.solve(curvature, normed.T @ (targets - targets.mean())) / deviation
    scores = summaries @ weights
    return Head((weights / scores.std()).astype(np.float32), float(-scores.mean() / scores.std()))


def groups(cuts: Sequence[Cut]) -> NDArray[np.str_]:
    """Return language pair and kind of label of each row."""
    return np.array([f"{cut.row.pair}.{'spans' if cut.row.marked else 'edits'}" for cut in cuts])


def summarise_rows(examples: Examples, norm: Norm, rows: NDArray[np.intp]) -> Array:
    """Return what the heads read of some rows."""
    borders = np.concatenate([[0], np.cumsum(examples.lengths.ravel())])
    features = normed_features(examples.features, norm)
    sides = [
        [features[borders[2 * row + side] : borders[2 * row + side + 1]] for side in (0, 1)] for row in rows.tolist()
    ]
    return np.stack([summarise(examples.texts[row], own) for row, own in zip(rows.tolist(), sides, strict=True)])


def main() -> None:
    """Train the heads and write them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    options = parser.parse_args()
    examples, cuts = load(options.folder, "train")
    targets, names, kept = standardise(cuts), groups(cuts), np.array([held_out(cut) for cut in cuts])
    summaries = summarise_rows(examples, norms(examples), np.arange(len(cuts)))
    arrays: dict[str, NDArray[np.float32]] = {}
    for name in np.unique(names).tolist():
        own, others = (names == name) & ~kept, (names == name) & kept
        head = fit(summaries[own], targets[own])
        arrays[name] = np.append(head.weights, np.float32(head.offset))
        if others.sum() > 1:
            scores = head.judge(summaries[others])
            found = np.corrcoef(scores, targets[others])[0, 1]
            print(f"{name}: {own.sum()} rows, Pearson {found:.3f} on {others.sum()} held out", flush=True)
    np.savez(options.output, **arrays)


if __name__ == "__main__":
    main()
