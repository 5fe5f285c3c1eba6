"""Put networks, trees and tables into the file that ships.

    python training/assemble.py build/ network-0.npz network-1.npz --trees trees.npz --heads sentences.npz -o qe.npz

Calibration on the 3 % of the training sources that were held out: the logits of words by Platt's method (1999), mean
and deviation of the sentence scores, and the deviation after mixing with the heads, each for both kinds of labels.
"""

import argparse
import json
import pickle
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from prepare import Cut
from sentences import summarise_rows
from train import Norm, load
from whyscore.metrics.estimators.qe import FORMAT, KINDS, TREES, Kind, Logits, digest_of, mix
from whyscore.metrics.estimators.trees import make_trees

Arrays = dict[str, NDArray[np.generic]]


def gather(folder: Path, networks: Sequence[Path], trees: Path, heads: Path) -> Arrays:
    """Return all numbers in the precision in which they ship."""
    with np.load(folder / "tables.npz") as stored:
        arrays: Arrays = {name: stored[name] for name in stored.files}
    arrays["components"] = arrays["components"].astype(np.float16)
    for number, path in enumerate(networks):
        with np.load(path) as stored:
            for name in stored.files:
                if name in ("mean", "deviation", "scale"):
                    arrays[name] = np.asarray(stored[name], dtype=np.float32)
                else:
                    arrays[f"network{number}.{name}"] = stored[name].astype(np.float16)
    with np.load(trees) as stored:
        arrays |= {f"trees.{name}": stored[name] for name in stored.files}
    with np.load(heads) as stored:
        arrays |= {f"head.{name}": stored[name].astype(np.float16) for name in stored.files}
    return arrays


def card(networks: int, cuts: Sequence[Cut], calibration: dict[str, list[float]]) -> NDArray[np.uint8]:
    """Return what is to be known of the file, as JSON in bytes: the labels of each language pair, the calibration."""
    labels = sorted({(cut.row.pair, kind_of(cut)) for cut in cuts})
    pairs = {pair: [kind for other, kind in labels if other == pair] for pair, _ in labels}
    content = {"pairs": pairs, "networks": networks, "calibration": calibration}
    return np.frombuffer(json.dumps(content).encode(), dtype=np.uint8)


def kind_of(cut: Cut) -> Kind:
    """Return how the words of a row were labelled."""
    return "spans" if cut.row.marked else "edits"


def predictions(folder: Path, networks: Sequence[Path], arrays: Arrays) -> list[tuple[Cut, Logits]]:
    """Return what networks and trees say of the rows that were held out, read with tables that have not seen them."""
    examples, cuts = load(folder, "train")
    starts = np.concatenate([[0], np.cumsum(examples.lengths.sum(axis=1))])
    trees = {name: make_trees(_under(arrays, f"trees.{name}.")) for name in TREES}
    found = [pickle.loads(network.with_suffix(".pickle").read_bytes())["calibration"] for network in networks]
    heads = judge(summarise_rows(examples, norm_of(arrays), np.array(list(found[0]))), arrays)
    result = []
    for number, row in enumerate(found[0]):
        here, there, sentences = (np.mean([own[row][k] for own in found], axis=0) for k in range(3))
        words, others = examples.lengths[row].tolist()
        features = examples.features[starts[row] : starts[row] + words + others]
        sides = (features[:words], features[words:])
        asked = {name: trees[name].logits(sides[side]) for name, side in TREES.items()}
        logits = Logits(
            {kind: (here[:, k] + asked[kind]) / 2 for k, kind in enumerate(KINDS)},
            (there[:, 0] + asked["source_edits"]) / 2,
            {kind: float(sentences[k]) for k, kind in enumerate(KINDS)},
            heads={name: float(scores[number]) for name, scores in heads.items()},
        )
        result.append((cuts[row], logits))
    return result


def judge(summaries: NDArray[np.float32], arrays: Arrays) -> dict[str, NDArray[np.float32]]:
    """Return what each sentence head says of each row."""
    heads = {name: numbers.astype(np.float32) for name, numbers in _under(arrays, "head.").items()}
    return {name: summaries @ numbers[:-1] + numbers[-1] for name, numbers in heads.items()}


def norm_of(arrays: Arrays) -> Norm:
    """Return how features and vectors are normed."""
    return tuple(arrays[name].astype(np.float32) for name in ("mean", "deviation", "scale"))


def _under(arrays: Arrays, prefix: str) -> Arrays:
    return {name.removeprefix(prefix): values for name, values in arrays.items() if name.startswith(prefix)}


def calibrate(rows: Sequence[tuple[Cut, Logits]]) -> dict[str, list[float]]:
    """Return slope and offset of the logits, mean and deviation of the scores, deviation of mixed ones, by kind."""
    result = {}
    for kind in KINDS:
        own = [(cut, logits) for cut, logits in rows if kind_of(cut) == kind]
        labels = np.concatenate([cut.hypothesis_labels for cut, _ in own])
        result[kind] = platt(np.concatenate([logits.words[kind] for _, logits in own]), labels)
        if kind == "edits":
            labels = np.concatenate([cut.source_labels for cut, _ in own])
            result["source_edits"] = platt(np.concatenate([logits.source for _, logits in own]), labels)
        scores = [logits.sentence[kind] for _, logits in own]
        centre, spread = float(np.mean(scores)), float(np.std(scores))
        result[f"{kind}_scores"] = [centre, spread]
        mixed = [
            mix((logits.sentence[kind] - centre) / spread, logits.heads[f"{cut.row.pair}.{kind}"])
            for cut, logits in own
        ]
        result[f"{kind}_mixed"] = [float(np.std(mixed))]
    return result


def reliability(
    rows: Sequence[tuple[Cut, Logits]], calibration: dict[str, list[float]]
) -> dict[str, list[dict[str, float]]]:
    """Return, for tenths of the probability that a word is wrong: its mean, the share of wrong words, the count."""
    edited, marked = ([(cut, logits) for cut, logits in rows if kind_of(cut) == kind] for kind in KINDS)
    kinds = {
        "edits": [(cut.hypothesis_labels, logits.words["edits"]) for cut, logits in edited],
        "source_edits": [(cut.source_labels, logits.source) for cut, logits in edited],
        "spans": [(cut.hypothesis_labels, logits.words["spans"]) for cut, logits in marked],
    }
    result = {}
    for name, own in kinds.items():
        slope, offset = calibration[name]
        labels, logits = (np.concatenate(part) for part in zip(*own, strict=True))
        probability = expit(slope * logits + offset)
        tenths = np.minimum((10 * probability).astype(int), 9)
        result[name] = [
            {
                "probability": round(float(probability[tenths == k].mean()), 4),
                "wrong": round(float(labels[tenths == k].mean()), 4),
                "words": int((tenths == k).sum()),
            }
            for k in range(10)
            if (tenths == k).any()
        ]
    return result


def platt(logits: NDArray[np.float32], labels: NDArray[np.float32]) -> list[float]:
    """Return slope and offset that make logits fit the labels best."""

    def loss(point: NDArray[np.float64]) -> float:
        values = point[0] * logits.astype(np.float64) + point[1]
        return float(np.mean(np.logaddexp(0, values) - labels * values))

    return [float(number) for number in minimize(loss, np.array([1.0, 0.0]), method="Nelder-Mead").x]


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("networks", type=Path, nargs="+")
    parser.add_argument("--trees", type=Path, required=True)
    parser.add_argument("--heads", type=Path, required=True)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--reliability", type=Path, help="where to write how far the probabilities can be trusted")
    options = parser.parse_args()
    arrays = gather(options.folder, options.networks, options.trees, options.heads)
    _, cuts = load(options.folder, "train")
    rows = predictions(options.folder, options.networks, arrays)
    calibration = calibrate(rows)
    arrays["card"] = card(len(options.networks), cuts, calibration)
    digest = digest_of(arrays)
    np.savez_compressed(options.output, format=np.array(FORMAT), digest=np.array(digest), **arrays)
    print(f"{options.output}: {options.output.stat().st_size / 1e6:.1f} MB, digest {digest}, {calibration}")
    if options.reliability:
        options.reliability.write_text(json.dumps(reliability(rows, calibration), indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
