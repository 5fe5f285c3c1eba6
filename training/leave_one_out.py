"""How good is the estimator on language pairs without training data? `python training/leave_one_out.py build/ -o FILE`.

Each language pair in turn is left out of the training: every fourth row, two epochs, to keep it short. The network is
judged on the development sets of that pair without the columns of the tables, which would have nothing to say. The
trees and the second network are left out, so that these figures are rather too low.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from train import Rows, held_out, load, norms, predict, standardise, train
from whyscore.metrics.estimators.features import LEARNED, NAMES
from whyscore.stats.words import Ragged, agree

_HIDDEN = [NAMES.index(name) for name in LEARNED]
_STEP, _EPOCHS = 4, 2


def main() -> None:
    """Train without each pair, judge on it, write the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    examples, cuts = load(options.folder, "train")
    norm = norms(examples)
    rows = Rows(examples, cuts, norm)
    rows.targets = standardise(cuts)
    judged, others = load(options.folder, "dev")
    development = Rows(judged, others, norm)
    development.features[:, _HIDDEN] = 0
    results = []
    for pair in sorted({cut.row.pair for cut in cuts}):
        kept = [k for k, cut in enumerate(cuts) if cut.row.pair != pair and not held_out(cut)]
        network = train(rows, np.array(kept[::_STEP]), seed=0, epochs=_EPOCHS, words=3000, rate=2e-3)
        for name in sorted({cut.row.name for cut in others if cut.row.pair == pair}):
            chosen = [k for k, cut in enumerate(others) if (cut.row.pair, cut.row.name) == (pair, name)]
            found = predict(network, development, np.array(chosen))
            result = {"pair": pair, "set": name, "n": len(chosen)}
            result["target auc"] = _auc(
                [others[k].row.hypothesis_tags for k in chosen],
                [_pool(found[k][0].mean(axis=1), others[k].hypothesis_tokens) for k in chosen],
            )
            if others[chosen[0]].row.source_tags is not None:
                result["source auc"] = _auc(
                    [others[k].row.source_tags for k in chosen],
                    [_pool(found[k][1][:, 0], others[k].source_tokens) for k in chosen],
                )
            scores = [found[k][2].mean() for k in chosen]
            result["pearson"] = float(np.corrcoef(scores, [others[k].row.score for k in chosen])[0, 1])
            rates = [-(1 / (1 + np.exp(-found[k][0]))).mean() for k in chosen]
            result["pearson of error rates"] = float(np.corrcoef(rates, [others[k].row.score for k in chosen])[0, 1])
            results.append(result)
            print(result, flush=True)
    options.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def _pool(logits: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """Return the logit of each token, that of its worst unit."""
    result = np.full(int(owners.max()) + 1, -np.inf)
    np.maximum.at(result, owners, logits)
    return result


def _auc(tags: list, found: list) -> float:
    agreement = agree(Ragged.of([np.array(own, dtype=np.float64) for own in tags]), Ragged.of(found))
    return float(np.nanmean(agreement.auc))


if __name__ == "__main__":
    main()
