"""Train the trees: `python training/boost.py build/ trees.npz`.

Three sets of trees on the features alone: changed words of hypotheses, source words whose translation was changed, and
words of hypotheses in error spans. The columns of the tables are missing in 30 % of the texts.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from prepare import Cut, Examples
from train import held_out, load
from whyscore.metrics.estimators.features import LEARNED, NAMES
from whyscore.metrics.estimators.trees import make_trees

KINDS = {"edits": (0, False), "source_edits": (1, False), "spans": (0, True)}
"""Which side, and whether raters marked spans."""
_HIDDEN = [NAMES.index(name) for name in LEARNED]
_SETTINGS = {"max_iter": 150, "max_leaf_nodes": 31, "learning_rate": 0.1, "min_samples_leaf": 100}


def export(model: HistGradientBoostingClassifier) -> dict[str, NDArray[np.generic]]:
    """Return the trees of a model as arrays of trees x places."""
    trees = [stage[0].nodes for stage in model._predictors]  # noqa: SLF001
    shape = (len(trees), max(map(len, trees)))
    features, children = np.zeros(shape, dtype=np.uint8), np.zeros((*shape, 2), dtype=np.uint8)
    thresholds, values = np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=np.float32)
    missing = np.zeros(shape, dtype=np.bool_)
    for number, nodes in enumerate(trees):
        own = np.arange(len(nodes))
        leaf = nodes["is_leaf"].astype(bool)
        features[number, own] = np.where(leaf, 0, nodes["feature_idx"])
        thresholds[number, own] = nodes["num_threshold"]
        missing[number, own] = nodes["missing_go_to_left"]
        children[number, own] = np.where(leaf[:, None], own[:, None], np.stack([nodes["left"], nodes["right"]], 1))
        values[number, own] = np.where(leaf, nodes["value"], 0)
    depth = max(int(nodes["depth"].max()) for nodes in trees)
    start = float(np.ravel(model._baseline_prediction)[0])  # noqa: SLF001
    return {
        "features": features,
        "thresholds": thresholds,
        "missing_left": missing,
        "children": children,
        "values": values,
        "start": np.array([start, depth]),
    }


def fit(
    examples: Examples, cuts: Sequence[Cut], chosen: NDArray[np.bool_], names: Sequence[str] = tuple(KINDS)
) -> dict[str, NDArray[np.generic]]:
    """Return sets of trees, trained on the chosen rows."""
    marked = np.array([cut.row.marked for cut in cuts])
    arrays: dict[str, NDArray[np.generic]] = {}
    start = time.monotonic()
    for name in names:
        side, spans = KINDS[name]
        rows = chosen & (marked == spans)
        words = np.repeat(np.stack([rows & (side == 0), rows & (side == 1)], 1).ravel(), examples.lengths.ravel())
        features, labels = examples.features[words], examples.labels[words]
        generator = np.random.default_rng(0)
        hidden = np.repeat(generator.random(int(rows.sum())) < 0.3, examples.lengths[rows, side])
        features[np.ix_(hidden, _HIDDEN)] = np.nan
        model = HistGradientBoostingClassifier(**_SETTINGS, random_state=0, early_stopping=False)
        model.fit(features, labels >= 0.5)
        trees = export(model)
        checked = features[:2000]
        worst = np.abs(make_trees(trees).logits(checked) - model.decision_function(checked)).max()
        print(
            f"{name}: {len(features)} words, {time.monotonic() - start:.0f} s, worst difference {worst:.1e}", flush=True
        )
        arrays |= {f"{name}.{part}": values for part, values in trees.items()}
    return arrays


def main() -> None:
    """Train the trees and write them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    options = parser.parse_args()
    examples, cuts = load(options.folder, "train")
    arrays = fit(examples, cuts, np.array([not held_out(cut) for cut in cuts]))
    np.savez_compressed(options.output, **arrays)


if __name__ == "__main__":
    main()
