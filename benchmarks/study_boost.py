"""Which rule chooses p and w best? Held-out gains over all data there are, as one table.

    python benchmarks/study_boost.py DATA FOLDER

DATA is a folder with `wmt17/wmt17_to_en.jsonl`, `summeval/scores.csv` and `summeval/texts.jsonl`. Explanations are kept
in FOLDER, so that a second run only draws the table.

1. WMT17: p and w are chosen on two language pairs and judged on the third (segments pooled, Pearson).
   Also `in-domain`: nine tenths of each pair choose for the last tenth, in turn; the mean of the three pairs.
2. SummEval: chosen on each of the eight splits, judged on the other documents (systems, Kendall, mean of four aspects).
3. Rules choose with epsilon 0.001 from 601 powers; `median` is the paper's, with epsilon 0. `best` knows the answer:
   the largest gain of any p and w on the judged data, which no rule can beat. `learned` is no rule but a ridge
   regression with weights that are not negative, on the score and eleven aggregates; `per input` one in which the
   weights of score and aggregates also depend on the number of words, the share of importances that are not positive,
   and their spread.
4. The default is the rule with the best mean gain among those that lose more than 0.001 nowhere.
"""

import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from whyscore.aggregate import PowerMean, Quantile
from whyscore.analysis.calibrate.judgement import Question, Source, in_domain
from whyscore.analysis.calibrate.material import Columns, Material, Setting, columns_of
from whyscore.analysis.calibrate.rules import RULES, Rule
from whyscore.analysis.calibrate.settings import ChoosingSettings, Search
from whyscore.data.reading import read
from whyscore.experiments.bmx.study import RunFolder, explain_in
from whyscore.experiments.bmx.summeval import ASPECTS, SPLIT, read_summeval
from whyscore.present import render
from whyscore.types import Dataset, FloatMatrix, FloatVector, IntVector
from whyscore.types.result import Cell, Table

LOSS = 0.001
PAIRS = ("cs-en", "de-en", "tr-en")
AGGREGATORS = ("power_mean", 'power_mean(floor="relative")', "exp_mean")
_RIDGE = 10.0


class Case(NamedTuple):
    """One choice and what it is judged on: settings to fit on, settings to judge on."""

    data: str
    fitted: tuple[Setting, ...]
    judged: tuple[Setting, ...]


def main() -> int:
    """Print the table and the choice."""
    data, folder = Path(sys.argv[1]), Path(sys.argv[2])
    gains: dict[tuple[str, str], dict[str, list[float]]] = {}
    for name, material, cases in studied(data, folder):
        for rule, gain in in_domain_gains(material, cases):
            gains.setdefault((rule, AGGREGATORS[0]), {})[f"{name} in-domain"] = [gain]
        for aggregator in AGGREGATORS if "intrinsic" not in name else AGGREGATORS[:1]:
            for case in cases:
                for rule, gain in judged(material, case, aggregator):
                    gains.setdefault((rule, aggregator), {}).setdefault(f"{name} {case.data}", []).append(gain)
    tell(gains)
    return 0


def studied(data: Path, folder: Path) -> Iterator[tuple[str, Material, list[Case]]]:
    """Yield every metric and explainer with its material and cases."""
    wmt17 = read(data / "wmt17" / "wmt17_to_en.jsonl", human="HUMAN_score")
    summeval = read_summeval(data / "summeval" / "scores.csv", data / "summeval" / "texts.jsonl")
    plans = [
        ("wmt17", wmt17, "token_f1", "erasure"),
        ("wmt17", wmt17, "token_f1", "lime(samples=100)"),
        ("wmt17", wmt17, "chrf", "erasure"),
        ("wmt17", wmt17, "chrf", "lime(samples=100)"),
        ("wmt17", wmt17, "chrf", "intrinsic"),
        ("summeval", summeval, "token_f1", "erasure"),
        ("summeval", summeval, "token_f1", "lime(samples=100)"),
        ("summeval", summeval, "chrf", "intrinsic"),
    ]
    for name, dataset, metric, explainer in plans:
        held = RunFolder.make(folder / f"{name}_{metric}", "study")
        material = explain_in(held, dataset, metric, explainer).material
        cases = pairs(dataset) if name == "wmt17" else splits(dataset)
        print(f"{name} {metric} {explainer}: {len(material)} entries", file=sys.stderr, flush=True)
        yield f"{metric} {explainer.partition('(')[0]}", material, cases


def pairs(data: Dataset) -> list[Case]:
    """Return each language pair against the other two."""
    groups, human = np.array([entry.extra["LP"] for entry in data.entries]), data.human("HUMAN_score")
    one = {
        pair: Setting(pair, pair, "da", "pearson", "global", np.flatnonzero(groups == pair), human) for pair in PAIRS
    }
    return [Case(pair, tuple(one[other] for other in PAIRS if other != pair), (one[pair],)) for pair in PAIRS]


def splits(data: Dataset) -> list[Case]:
    """Return each split against the other documents."""
    number = np.array([entry.extra[SPLIT] for entry in data.entries])

    def settings(rows: IntVector) -> tuple[Setting, ...]:
        return tuple(Setting(one, "", one, "kendall_b", "system", rows, data.human(one)) for one in ASPECTS)

    return [
        Case("summeval", settings(np.flatnonzero(number == split)), settings(np.flatnonzero(number != split)))
        for split in np.unique(number)
    ]


def in_domain_gains(material: Material, cases: list[Case]) -> Iterator[tuple[str, float]]:
    """Yield the mean gain of every rule when nine tenths of each language pair choose for the last tenth."""
    if material.has_documents:
        return
    settings = tuple(case.judged[0] for case in cases)
    for rule in RULES:
        options = _options(rule, AGGREGATORS[0])
        source = Source("source", material, options.family, options.parameters)
        source.__dict__["raw"] = _raw(material, AGGREGATORS[0])
        values = in_domain(source, Question(settings, options.weights, options.epsilon, rule))
        found = [setting.at(material) for setting in settings]
        yield rule, float(np.mean([one.correlation(values) - one.before for one in found]))


def judged(material: Material, case: Case, aggregator: str) -> Iterator[tuple[str, float]]:
    """Yield the mean gain of every rule on the judged settings."""
    for rule in RULES:
        options = _options(rule, aggregator)
        source = Source("source", material, options.family, options.parameters)
        source.__dict__["raw"] = _raw(material, aggregator)  # what the source would compute once for every rule
        question = Question(case.fitted, options.weights, options.epsilon, rule)
        choice = question.choose(source, case.fitted)
        yield rule, _gain(material, case, source.mix(choice, _rows(case.fitted)))
    options = _options("argmax", aggregator)
    table = _raw(material, aggregator)
    gains = [setting.at(material).gains(table, options.weights) for setting in case.judged]
    yield "best", max(0.0, float(np.nanmax(np.mean(gains, axis=0))))
    if aggregator == AGGREGATORS[0]:
        yield "learned", _gain(material, case, learned(material, case))
        yield "per input", _gain(material, case, per_input(material, case))


@lru_cache(maxsize=4)
def _raw(material: Material, aggregator: str) -> Columns:
    """Return the table of one aggregator, computed once."""
    options = _options("argmax", aggregator)
    return columns_of(material, options.family, options.parameters)


def learned(material: Material, case: Case) -> FloatVector:
    """Return a score fitted by ridge regression with weights that are not negative."""
    powers = np.array([-1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 30.0])
    features = np.vstack(
        [
            material.scores,
            columns_of(material, PowerMean(), powers).values,
            columns_of(material, Quantile(), np.array([0.25, 0.75])).values,
        ]
    )
    scaled, design, wanted = _regression(features, case)
    weights: FloatVector = nnls(design, wanted)[0] @ scaled
    return weights


def per_input(material: Material, case: Case) -> FloatVector:
    """Return a score fitted by ridge regression whose weights depend on the segment."""
    bags = material.bags
    count = np.maximum(bags.lengths, 1)
    mean = bags.reduce(np.add, bags.values) / count
    about = np.vstack(
        [
            np.log(count),
            bags.reduce(np.add, (bags.values <= 0).astype(np.float64)) / count,
            np.sqrt(np.maximum(bags.reduce(np.add, bags.values**2) / count - mean**2, 0.0)),
        ]
    )
    parts = np.vstack([material.scores, columns_of(material, PowerMean(), np.array([0.0, 1.0, 4.0])).values])
    rows = np.concatenate([setting.rows for setting in case.fitted])
    parts, about = _scaled(parts, rows), _scaled(about, rows)
    features = np.vstack([parts, *(parts * one for one in about)])
    scaled, design, wanted = _regression(features, case)
    weights: FloatVector = np.linalg.lstsq(design, wanted)[0] @ scaled
    return weights


def _regression(features: FloatMatrix, case: Case) -> tuple[FloatMatrix, FloatMatrix, FloatVector]:
    """Return the features on one scale, and the rows and targets of a ridge regression on the fitted settings."""
    rows = np.concatenate([setting.rows for setting in case.fitted])
    target = np.concatenate([_standard(setting.human[setting.rows]) for setting in case.fitted])
    scaled = _scaled(features, rows)
    penalty = np.sqrt(_RIDGE) * np.eye(len(features))
    return scaled, np.vstack([scaled[:, rows].T, penalty]), np.concatenate([target, np.zeros(len(features))])


def _scaled(features: FloatMatrix, rows: IntVector) -> FloatMatrix:
    centre, spread = features[:, rows].mean(axis=1, keepdims=True), features[:, rows].std(axis=1, keepdims=True)
    scaled: FloatMatrix = (features - centre) / np.where(spread > 0, spread, 1.0)
    return scaled


def _standard(values: FloatVector) -> FloatVector:
    centred: FloatVector = values - values.mean()
    return centred / (values.std() or 1.0)


def _options(rule: Rule, aggregator: str) -> Search:
    return ChoosingSettings(rule=rule, epsilon=0.0 if rule == "median" else None, aggregator=aggregator).search


def _rows(settings: tuple[Setting, ...]) -> IntVector:
    return np.unique(np.concatenate([setting.rows for setting in settings]))


def _gain(material: Material, case: Case, values: FloatVector) -> float:
    found = [setting.at(material) for setting in case.judged]
    return float(np.mean([one.correlation(values) - one.before for one in found]))


def tell(gains: dict[tuple[str, str], dict[str, list[float]]]) -> None:
    """Print the table, one row per rule and aggregator, and which rule is the default."""
    columns = list(gains["median", AGGREGATORS[0]])
    rows: list[tuple[Cell, ...]] = []
    safe: list[tuple[float, str]] = []
    for (rule, aggregator), held in gains.items():
        values = {name: float(np.mean(held[name])) for name in columns if name in held}
        mean, worst = float(np.mean(list(values.values()))), min(values.values())
        rows.append((rule, aggregator, *(values.get(name) for name in columns), mean, worst))
        if worst >= -LOSS and rule in RULES and aggregator == AGGREGATORS[0]:
            safe.append((mean, rule))
    print(render(Table(("rule", "aggregator", *columns, "mean", "worst"), tuple(rows)), "markdown", decimals=4), end="")
    best = max(safe, default=(0.0, "none"))
    print(f"\ndefault: {best[1]}, mean gain {best[0]:+.4f}, of those that lose more than {LOSS} nowhere")


if __name__ == "__main__":
    sys.exit(main())
