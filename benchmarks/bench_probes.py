"""How near sampled explanations come to the truth by the number of probes, beside the package shap.

    python benchmarks/bench_probes.py [--texts 6] [--repetitions 10]

Texts are hypotheses of `bench_score.py` with 8 to 10 words. All sets of words of each are scored once, by chrF and by
BERTScore on the embedded encoder; every method then reads its probes from that table, so only their choice differs.

1. Shapley values: the distance from the exact values as a share of their length (root of summed squares), mean over
   texts and seeds, for 40, 80 and 160 probes: permutation, kernel, leverage, and shap's own PermutationExplainer.
2. LIME: the mean correlation between repetitions with other seeds, for 35, 50, 65 and 100 probes.

Limits: leverage is no further from the truth than shap's explainer at each number of probes, and paired LIME with 65
probes is as stable as LIME with 100. The goal of 35 probes is printed, too. Exit code 1 if a limit is missed.
"""

import argparse
import sys
import warnings
from collections.abc import Callable
from statistics import mean

import numpy as np
import shap

from bench_score import FOLDER, texts
from whyscore.explainers.masks.lime import Lime
from whyscore.explainers.masks.shap import Shap, exact_masks, exact_values
from whyscore.protocols import Explainer, Metric
from whyscore.registry import build
from whyscore.testing.checks import explain_masks
from whyscore.text.maskers import Replace
from whyscore.text.splitters import white_space
from whyscore.types import FloatVector, KeepMasks, Segment, Words

METRICS = ("chrf", 'bertscore(model="embedded")')
PROBES = (40, 80, 160)
SAMPLES = (35, 50, 65, 100)
SHORTEST, LONGEST = 8, 10

Game = Callable[[KeepMasks], FloatVector]


def main() -> int:
    """Print errors and stabilities and return 1 if a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=6)
    parser.add_argument("--repetitions", type=int, default=10)
    asked = parser.parse_args()
    reference, systems = texts(FOLDER)
    pairs = [(one, other) for one, other in zip(next(iter(systems.values())), reference, strict=True)]
    chosen = [pair for pair in pairs if SHORTEST <= len(pair[0].split()) <= LONGEST][: asked.texts]
    good = []
    for name in METRICS:
        games = [game_of(build(name), *pair) for pair in chosen]
        good += [*shapley(name, games, asked.repetitions), *stability(name, games, asked.repetitions)]
    print("passed" if all(good) else "MISSED")
    return 0 if all(good) else 1


def game_of(metric: Metric, hypothesis: str, reference: str) -> tuple[Words, Game, FloatVector]:
    """Return the words, the score of any set of them, and the exact Shapley values."""
    words = white_space(hypothesis)
    (probes,) = Replace().render([(words, exact_masks(len(words)))])
    scores = metric.score([Segment(text, None, (reference,)) for text in (*probes.texts, hypothesis)])
    bits = 1 << np.arange(len(words))
    exact = exact_values(np.append(scores[-1], scores[:-1]), len(words))
    return words, lambda masks: scores[np.asarray(masks, dtype=np.int64) @ bits], exact


def shapley(name: str, games: list[tuple[Words, Game, FloatVector]], repetitions: int) -> list[bool]:
    """Print the errors of all methods and return whether leverage is within its limit."""
    good = []
    for probes in PROBES:
        errors: dict[str, list[float]] = {}
        for words, game, exact in games:
            passes = max(1, (probes - 1) // (2 * (len(words) - 1)))
            methods: dict[str, Explainer] = {
                "permutation": Shap(method="permutation", passes=passes),
                "kernel": Shap(method="kernel", budget=probes - 1),
                "leverage": Shap(method="leverage", budget=probes - 1),
            }
            for seed in range(repetitions):
                found = {key: explain_masks(own, words, game, seed).importance for key, own in methods.items()}
                found["shap"] = by_package(game, len(words), probes, seed)
                for key, values in found.items():
                    errors.setdefault(key, []).append(float(np.linalg.norm(values - exact) / np.linalg.norm(exact)))
        told = ", ".join(f"{key} {mean(values):.4f}" for key, values in errors.items())
        print(f"{name}, {probes} probes, error: {told}", flush=True)
        good.append(mean(errors["leverage"]) <= mean(errors["shap"]))
    return good


def by_package(game: Game, words: int, probes: int, seed: int) -> FloatVector:
    """Return the values of shap's PermutationExplainer for as many evaluations."""
    explainer = shap.PermutationExplainer(lambda rows: game(rows.astype(np.bool_)), np.zeros((1, words)), seed=seed)
    evaluations = max(probes, 2 * words + 1)
    return np.asarray(explainer(np.ones((1, words)), max_evals=evaluations, silent=True).values[0], dtype=np.float64)


def stability(name: str, games: list[tuple[Words, Game, FloatVector]], repetitions: int) -> list[bool]:
    """Print how well repetitions of LIME agree and return whether paired probes are within their limit."""
    found: dict[tuple[str, int], float] = {}
    for sampling in ("uniform", "paired"):
        for samples in SAMPLES:
            explainer = Lime(samples, sampling=sampling)  # type: ignore[arg-type]
            found[sampling, samples] = mean(agreement(explainer, *own, repetitions) for own in games)
        told = ", ".join(f"{samples} probes {found[sampling, samples]:.4f}" for samples in SAMPLES)
        print(f"{name}, LIME, {sampling}, agreement: {told}", flush=True)
    print(f"{name}: the goal, 35 paired as stable as 100: {found['paired', 35] >= found['uniform', 100]}")
    return [found["paired", 65] >= found["uniform", 100]]


def agreement(explainer: Explainer, words: Words, game: Game, _: FloatVector, repetitions: int) -> float:
    """Return the mean correlation between explanations with different seeds."""
    rows = [explain_masks(explainer, words, game, seed).importance for seed in range(repetitions)]
    return float(np.corrcoef(rows)[np.triu_indices(repetitions, 1)].mean())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main())
