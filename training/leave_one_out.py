"""How good is the estimator on language pairs without training data? `python training/leave_one_out.py build/ -o FILE`.

Each language pair in turn is left out of the training of one network and of the trees (every fourth row, the network
for two epochs, to keep it short). They and `evidence`, which needs no training, judge rows of that pair without the
columns of the tables, which would have nothing to say:

- 400 rows of its training data, on which a way to put the three together was chosen;
- its development sets, which were looked at once afterwards.

Ways to judge words: each alone, the mean of network and trees ("learned"), and sums with `evidence`, of logits as they
are or standardised within the text. Ways to judge sentences: the network's score, minus the mean of the words by each
of the ways, and the sum of both. The folder keeps what each part says (`left-out-PAIR.pickle`).
"""

import argparse
import copy
import json
import pickle
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boost import fit
from evaluate import correlation, interval
from network import Network
from prepare import Cut, Examples
from train import Rows, held_out, load, norms, predict, standardise, train
from whyscore.metrics.estimators.features import LEARNED, NAMES
from whyscore.metrics.estimators.trees import Trees, make_trees
from whyscore.models.evidence import Setting, error_evidence
from whyscore.stats.words import Ragged, agree
from whyscore.text.splitters import white_space
from whyscore.types import Segment, Side

Vector = NDArray[np.float64]

_HIDDEN = [NAMES.index(name) for name in LEARNED]
_TREES = ("edits", "source_edits")
_EPOCHS = 2
_TRAINING = ("train", "mqm")
_CHOICE = 400
_PRIOR = -0.85


class Judged(NamedTuple):
    """What is said of the words of one row, by tokens of one side, larger where an error is more likely."""

    network: Vector
    trees: Vector
    evidence: Vector

    @property
    def learned(self) -> Vector:
        """What ships for pairs of the training: the mean of network and trees."""
        return (self.network + self.trees) / 2


def _standard(values: Vector) -> Vector:
    return (values - values.mean()) / (values.std() + 1e-9)


WORDS: dict[str, Callable[[Judged], Vector]] = {
    "network": lambda own: own.network,
    "trees": lambda own: own.trees,
    "learned": lambda own: own.learned,
    "evidence": lambda own: own.evidence + _PRIOR,
    "network + evidence": lambda own: (own.network + own.evidence + _PRIOR) / 2,
    "learned + evidence": lambda own: (own.learned + own.evidence + _PRIOR) / 2,
    "learned + 2 evidence": lambda own: (own.learned + 2 * (own.evidence + _PRIOR)) / 3,
    "network + evidence, standardised": lambda own: _standard(own.network) + _standard(own.evidence),
    "trees + evidence, standardised": lambda own: _standard(own.trees) + _standard(own.evidence),
    "learned + evidence, standardised": lambda own: _standard(own.learned) + _standard(own.evidence),
    "learned + 2 evidence, standardised": lambda own: _standard(own.learned) + 2 * _standard(own.evidence),
}


class Told(NamedTuple):
    """What is said of one row."""

    sides: tuple[Judged, ...]
    score: float
    """By the network, of post-edited rows."""


class Data(NamedTuple):
    """Rows to be judged, without the columns of the tables."""

    examples: Examples
    cuts: Sequence[Cut]
    rows: Rows


class Models(NamedTuple):
    """What was trained without a language pair."""

    network: Network
    trees: Mapping[str, Trees]


def ask(models: Models, data: Data, chosen: NDArray[np.intp]) -> list[Told]:
    """Return what network, trees and evidence say of some rows of one language pair."""
    examples, cuts, rows = data
    found = predict(models.network, rows, chosen)
    segments = [Segment(cuts[k].row.hypothesis, cuts[k].row.source) for k in chosen.tolist()]
    source, target = cuts[chosen[0]].row.pair.split("-")
    setting = Setting(None, (source, target))
    evidence = [
        error_evidence(segments, side, [white_space(text) for text in texts], setting)
        for side, texts in (
            (Side.HYPOTHESIS, [segment.hypothesis for segment in segments]),
            (Side.SOURCE, [segment.source or "" for segment in segments]),
        )
    ]
    result = []
    for number, k in enumerate(chosen.tolist()):
        features = examples.features[rows.starts[k] : rows.starts[k + 1]].copy()
        features[:, _HIDDEN] = np.nan
        here, there = cuts[k].hypothesis_tokens, cuts[k].source_tokens
        parts = np.split(features, [len(here)])
        asked = [models.trees[name].logits(own) for name, own in zip(_TREES, parts, strict=True)]
        sides = tuple(
            Judged(_pool(found[k][side][:, 0], owners), _pool(asked[side], owners), evidence[side][number])
            for side, owners in enumerate((here, there))
        )
        result.append(Told(sides, float(found[k][2][0])))
    return result


def _pool(logits: NDArray[np.float32], owners: NDArray[np.intp]) -> Vector:
    """Return the logit of each token, that of its worst unit."""
    result = np.full(int(owners.max()) + 1, -np.inf)
    np.maximum.at(result, owners, logits)
    return result


def judge(cuts: Sequence[Cut], told: Sequence[Told]) -> dict[str, tuple[float, float, float]]:
    """Return all measures with their intervals."""
    result = {}
    labels = [(_tags(cut, 0), _tags(cut, 1)) for cut in cuts]
    human = np.array([cut.row.score for cut in cuts])
    scores = np.array([own.score for own in told])
    result["network's score pearson"] = correlation(human, scores)
    for name, way in WORDS.items():
        for side, word in enumerate(("target", "source")):
            tags = [own[side] for own in labels]
            if tags[0] is not None:
                found = Ragged.of([way(own.sides[side]) for own in told])
                result[f"{name} {word} auc"] = interval(np.asarray(agree(Ragged.of(tags), found).auc))
        if "standardised" not in name:
            shares = np.array([-(1 / (1 + np.exp(-way(own.sides[0])))).mean() for own in told])
            result[f"{name} pearson"] = correlation(human, shares)
            result[f"{name} with score pearson"] = correlation(human, 2 * _standard(scores) + _standard(shares))
    return result


def _tags(cut: Cut, side: int) -> Vector | None:
    """Return the tags of the tokens of a side; a token of a marked row is wrong where half of the raters mark it."""
    tags = (cut.row.hypothesis_tags, cut.row.source_tags)[side]
    if tags is not None:
        return np.array(tags, dtype=np.float64)
    return None if side else (_pool(cut.hypothesis_labels, cut.hypothesis_tokens) >= 0.5).astype(np.float64)


def learn(data: Data, pair: str, step: int) -> Models:
    """Return network and trees that have not seen a language pair, trained on every so many rows."""
    kept = np.array([cut.row.pair != pair and not held_out(cut) for cut in data.cuts]).nonzero()[0][::step]
    network = train(data.rows, kept, seed=0, epochs=_EPOCHS, words=3000, rate=2e-3)
    arrays = fit(data.examples, data.cuts, np.isin(np.arange(len(data.cuts)), kept), _TREES)
    parts = {
        name: {key.removeprefix(f"{name}."): own for key, own in arrays.items() if key.startswith(f"{name}.")}
        for name in _TREES
    }
    return Models(network, {name: make_trees(own) for name, own in parts.items()})


def choose(cuts: Sequence[Cut], pair: str) -> dict[str, NDArray[np.intp]]:
    """Return the rows of a pair to be judged, by the name of their set; of the training data some of each kind."""
    names = np.array([f"training, {'spans' if cut.row.marked else 'edits'}" if cut.row.name in _TRAINING
                      else cut.row.name for cut in cuts])  # fmt: skip
    own = np.array([cut.row.pair == pair for cut in cuts])
    result = {name: ((names == name) & own).nonzero()[0] for name in sorted(set(names[own].tolist()))}
    return {
        name: rows[:: max(1, len(rows) // _CHOICE)] if name.startswith("training") else rows
        for name, rows in result.items()
    }


def hide(data: Data) -> Data:
    """Return the rows without the columns of the tables."""
    rows = copy.copy(data.rows)
    rows.features = rows.features.copy()
    rows.features[:, _HIDDEN] = 0
    return data._replace(rows=rows)


def main() -> None:
    """Train without each pair, judge on it, write the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--pairs", nargs="*", help="which to leave out, one at a time; all of them")
    parser.add_argument("--step", type=int, default=4, help="train on every so many rows")
    parser.add_argument("--choice", action="store_true", help="show rows of the training data alone")
    options = parser.parse_args()
    examples, cuts = load(options.folder, "train")
    norm = norms(examples)
    training = Data(examples, cuts, Rows(examples, cuts, norm))
    training.rows.targets = standardise(cuts)
    judged, others = load(options.folder, "dev")
    sets = [hide(training), hide(Data(judged, others, Rows(judged, others, norm)))]
    results = []
    for pair in options.pairs or sorted({cut.row.pair for cut in cuts}):
        stored = options.folder / f"left-out-{pair}.pickle"
        if not stored.exists():
            models = learn(training, pair, options.step)
            told = {
                name: ([data.cuts[k] for k in rows.tolist()], ask(models, data, rows))
                for data in sets
                for name, rows in choose(data.cuts, pair).items()
            }
            stored.write_bytes(pickle.dumps(told))
        for name, (own_cuts, own) in pickle.loads(stored.read_bytes()).items():
            if options.choice and not name.startswith("training"):
                continue
            measures = {key: [round(number, 4) for number in numbers] for key, numbers in judge(own_cuts, own).items()}
            results.append({"pair": pair, "set": name, "n": len(own), "measures": measures})
            shown = " ".join(f"{key} {value:.3f}" for key, (value, *_) in measures.items())
            print(f"{pair} {name}: {shown}", flush=True)
    options.output.write_text("[\n" + ",\n".join(map(json.dumps, results)) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
