"""How near sampled explanations come to the truth by the number of probes, beside the packages shap and shapiq.

    python benchmarks/bench_probes.py [--texts 6] [--repetitions 10] [--long 2]

Texts are hypotheses of `bench_score.py` with 8 to 10 words. All sets of words of each are scored once, by chrF and by
BERTScore on the embedded encoder; every method then reads its probes from that table, so only their choice differs.

1. Shapley values: the distance from the exact values as a share of their length (root of summed squares), mean over
   texts and seeds, for 40, 80 and 160 probes: permutation, kernel, leverage, shap's own PermutationExplainer, and the
   approximators of shapiq where it is installed.
2. LIME: the mean correlation between repetitions with other seeds, for 35, 50, 65 and 100 probes, and the mean
   correlation with the solution on all sets of words: stability must not be bought by bias.
3. The same for texts of 18 to 24 words with 65 and 100 probes; the solution is that of 5,000 probes.

Limits: leverage is no further from the truth than shap's explainer at each number of probes. Paired LIME with 65 probes
is as stable as LIME with 100. Balanced LIME is as stable as LIME with 100 and as near to the solution, with 35 probes
for texts of 8 to 10 words and with 65 for those of 18 to 24. Exit code 1 if a limit is missed.
"""

import argparse
import importlib.util
import math
import sys
import warnings
from collections.abc import Callable
from statistics import mean

import numpy as np
import shap

from bench_score import FOLDER, texts
from whyscore.explainers.masks.lime import Lime, closeness, weighted_ridge
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
LONG = range(18, 25)
SHAPIQ = ("KernelSHAP", "PermutationSamplingSV", "SVARM", "kADDSHAP")

Game = Callable[[KeepMasks], FloatVector]


def main() -> int:
    """Print errors and stabilities and return 1 if a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=6)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--long", type=int, default=2, help="texts of 18 to 24 words")
    asked = parser.parse_args()
    reference, systems = texts(FOLDER)
    pairs = [(one, other) for one, other in zip(next(iter(systems.values())), reference, strict=True)]
    chosen = [pair for pair in pairs if SHORTEST <= len(pair[0].split()) <= LONGEST][: asked.texts]
    long = [pair for pair in pairs if len(pair[0].split()) in LONG][: asked.long]
    if importlib.util.find_spec("shapiq") is None:
        print("shapiq: not installed, left out")
    good = []
    for name in METRICS:
        games = [game_of(build(name), *pair) for pair in chosen]
        good += [*shapley(name, games, asked.repetitions), *stability(name, games, asked.repetitions)]
        good += long_stability(name, [long_game(build(name), *pair) for pair in long], asked.repetitions // 2)
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
                found |= by_shapiq(game, len(words), probes, seed)
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


def by_shapiq(game: Game, words: int, probes: int, seed: int) -> dict[str, FloatVector]:
    """Return the values of approximators of shapiq; nothing where it is not installed."""
    if importlib.util.find_spec("shapiq") is None:
        return {}
    import shapiq

    empty = float(game(np.zeros((1, words), dtype=np.bool_))[0])
    found = {}
    for name in SHAPIQ:
        values = getattr(shapiq, name)(n=words, random_state=seed).approximate(
            probes, lambda masks: game(np.atleast_2d(masks).astype(np.bool_)) - empty
        )
        found[f"shapiq {name}"] = np.asarray(values.get_n_order_values(1), dtype=np.float64)
    return found


def stability(name: str, games: list[tuple[Words, Game, FloatVector]], repetitions: int) -> list[bool]:
    """Print how well repetitions of LIME agree, with each other and with the solution; return whether limits hold."""
    found: dict[tuple[str, int], tuple[float, float]] = {}
    solutions = [solve(len(words), game) for words, game, _ in games]
    for sampling in ("uniform", "paired", "balanced"):
        for samples in SAMPLES:
            explainer = Lime(samples, sampling=sampling)  # type: ignore[arg-type]
            found[sampling, samples] = agreement(explainer, [own[:2] for own in games], solutions, repetitions)
        told = ", ".join(f"{samples} probes {found[sampling, samples][0]:.4f}" for samples in SAMPLES)
        near = ", ".join(f"{found[sampling, samples][1]:.4f}" for samples in SAMPLES)
        print(f"{name}, LIME, {sampling}, agreement: {told}; with the solution: {near}", flush=True)
    wanted = found["uniform", 100]
    balanced = found["balanced", 35]
    print(
        f"{name}: 35 balanced probes as stable as 100: {balanced[0] >= wanted[0]}, as near: {balanced[1] >= wanted[1]}"
    )
    return [found["paired", 65][0] >= wanted[0], balanced[0] >= wanted[0], balanced[1] >= wanted[1]]


def long_stability(name: str, games: list[tuple[Words, Game]], repetitions: int) -> list[bool]:
    """Print the same of longer texts, and return whether balanced probes are within their limits."""
    if not games:
        return []
    solutions = [explain_masks(Lime(5000), *own).importance for own in games]
    asked = {"100 uniform": Lime(), "65 paired": Lime(65, sampling="paired"), "65": Lime(65, sampling="balanced")}
    found = {key: agreement(own, games, solutions, repetitions) for key, own in asked.items()}
    told = "; ".join(f"{key} {agreed:.4f}, with the solution {near:.4f}" for key, (agreed, near) in found.items())
    print(f"{name}, LIME, texts of 18 to 24 words, agreement: {told} (balanced)", flush=True)
    return [mine >= limit for mine, limit in zip(found["65"], found["100 uniform"], strict=True)]


def agreement(
    explainer: Explainer, games: list[tuple[Words, Game]], solutions: list[FloatVector], repetitions: int
) -> tuple[float, float]:
    """Return the mean correlations of explanations with different seeds, with each other and with the solution."""
    agreed, near = [], []
    for (words, game), solution in zip(games, solutions, strict=True):
        rows = [explain_masks(explainer, words, game, seed).importance for seed in range(repetitions)]
        table = np.corrcoef([*rows, solution])
        agreed.append(float(table[:-1, :-1][np.triu_indices(repetitions, 1)].mean()))
        near.append(float(table[-1, :-1].mean()))
    return mean(agreed), mean(near)


def solve(words: int, game: Game) -> FloatVector:
    """Return LIME's coefficients on all sets of words, with the weights that 99 probes have on average."""
    masks = np.append(np.ones((1, words), dtype=np.bool_), exact_masks(words), axis=0)
    hidden = (~masks).sum(axis=1).tolist()
    average = [1.0] + [99 / words / math.comb(words, size) for size in hidden[1:]]
    return weighted_ridge(masks, game(masks), closeness(masks, 25.0) * average).coefficients


def long_game(metric: Metric, hypothesis: str, reference: str) -> tuple[Words, Game]:
    """Return the words, and the score of any set of them, computed when it is asked for."""
    words = white_space(hypothesis)

    def game(masks: KeepMasks) -> FloatVector:
        (probes,) = Replace().render([(words, masks)])
        return metric.score([Segment(text, None, (reference,)) for text in probes.texts])

    return words, game


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main())
