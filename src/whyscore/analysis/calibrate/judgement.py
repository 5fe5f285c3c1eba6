"""What a calibration is worth: on the data it was fitted on, on other documents, on other groups, beside controls.

1. A `Source` gives aggregated importances: of an explainer, of random numbers, or the mere length of the hypothesis, as
   it is (`length`) or turned round (`brevity`: importances of longer texts are smaller on average).
2. `oracle` fits and judges on the same data, always too well. `in_domain` fits on all folds but one and scores that
   one; documents are never parted. `cross_domain` fits on all groups but one and scores that one.
3. Scores of different folds are brought to mean and deviation of the original on the fitted data, then judged together.
4. Every gain is tested by permuting original and boosted scores, and gets an interval by the bootstrap.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.aggregate import Family
from whyscore.analysis.calibrate.file import Outcome, Protocol
from whyscore.analysis.calibrate.material import (
    Columns,
    Explained,
    Material,
    Setting,
    columns_of,
    length_columns,
    rescale,
)
from whyscore.analysis.calibrate.rules import FOLDS, Choice, Problem, Rule, choose
from whyscore.analysis.calibrate.settings import Search, Testing
from whyscore.stats.coefficients import chance_of
from whyscore.stats.correction import correct_p
from whyscore.stats.intervals import DRAWS, Resample, bootstrap
from whyscore.stats.significance import permutation_test
from whyscore.types import FloatMatrix, FloatVector, IntVector

LENGTH, BREVITY, RANDOM = "length", "brevity", "random"
CONTROLS = (LENGTH, BREVITY, RANDOM)
_SIGNS = {LENGTH: 1.0, BREVITY: -1.0}


@dataclass(frozen=True)
class Source:
    """Where aggregated importances come from."""

    name: str
    material: Material
    family: Family
    parameters: FloatVector
    scale: str = "raw"

    @cached_property
    def raw(self) -> Columns:
        """The whole table, computed once."""
        return columns_of(self.material, self.family, self.parameters)

    def columns(self, rows: IntVector) -> Columns:
        if self.name in _SIGNS:
            return length_columns(self.material, rows, _SIGNS[self.name])
        return rescale(self.raw, self.material, rows)[0] if self.scale == "z" else self.raw

    def at(self, p: float, rows: IntVector) -> tuple[Columns, float, float]:
        """Return the table at exactly one parameter, on the grid or not, with the shift and stretch it got."""
        if self.name in _SIGNS:
            return length_columns(self.material, rows, _SIGNS[self.name]), 0.0, 1.0
        columns = columns_of(self.material, self.family, np.array([p]))
        if self.scale == "raw":
            return columns, 0.0, 1.0
        scaled, shift, stretch = rescale(columns, self.material, rows)
        return scaled, float(shift[0]), float(stretch[0])

    def mix(self, choice: Choice, rows: IntVector) -> FloatVector:
        """Return the boosted score of every entry, the choice having been made from some rows."""
        if not choice.boosted:
            return self.material.scores
        values = self.at(choice.p, rows)[0].values[0]
        mixture: FloatVector = choice.w * self.material.scores + (1 - choice.w) * values
        return mixture


def sources_of(explained: Explained, search: Search) -> tuple[Source, ...]:
    """Return the sources that are compared: the explainer first, then the controls."""
    main = Source(explained.explainer, explained.material, search.family, search.parameters, search.scale)
    lengths = (replace(main, name=name, scale="raw") for name in (LENGTH, BREVITY))
    return (main, *lengths, replace(main, name=RANDOM, material=explained.noise))


class Question(NamedTuple):
    """What is to be chosen: the settings, the weights and the rule."""

    settings: tuple[Setting, ...]
    weights: FloatVector
    epsilon: float
    rule: Rule
    keep_reversed: bool = False

    @classmethod
    def of(cls, settings: Iterable[Setting], search: Search, rule: Rule | None = None) -> "Question":
        """Return the question that a search asks about settings."""
        return cls(tuple(settings), search.weights, search.epsilon, rule or search.rule, search.keep_reversed)

    def choose(self, source: Source, settings: Sequence[Setting]) -> Choice:
        """Return what the rule chooses from some settings, those that count."""
        voters = [setting for setting in settings if self.counts(source.material, setting)]
        return choose(Problem(source.material, voters, source.columns, self.weights, self.epsilon), self.rule)

    def counts(self, material: Material, setting: Setting) -> bool:
        """Return whether a setting can be gained in: the original score agrees with people better than chance."""
        before = setting.at(material).before
        return not np.isnan(before) and (before > chance_of(setting.coefficient) or self.keep_reversed)


def oracle(source: Source, question: Question) -> tuple[Choice, FloatVector]:
    """Return what is chosen from all data, and the boosted scores there."""
    choice = question.choose(source, question.settings)
    return choice, source.mix(choice, _rows(question.settings))


def in_domain(source: Source, question: Question, count: int = FOLDS) -> FloatVector:
    """Return boosted scores of which each was made without its fold."""
    turn = assign_folds(source.material, question.settings, count)
    result = np.full(len(source.material), np.nan)
    for fold in range(int(turn.max()) + 1):
        fitted = [setting.on(setting.rows[turn[setting.rows] != fold]) for setting in question.settings]
        rows = _rows(fitted)
        values = _on_scale_of(source.mix(question.choose(source, fitted), rows), source.material.scores, rows)
        result[turn == fold] = values[turn == fold]
    return result


def cross_domain(source: Source, question: Question) -> Iterator[tuple[str, Choice, FloatVector]]:
    """Yield each group with what the other groups choose, and the boosted scores by that choice."""
    groups = list(dict.fromkeys(setting.group for setting in question.settings))
    for group in groups if len(groups) > 1 else ():
        others = [setting for setting in question.settings if setting.group != group]
        choice = question.choose(source, others)
        yield group, choice, source.mix(choice, _rows(others))


def assign_folds(material: Material, settings: Sequence[Setting], count: int) -> NDArray[np.int64]:
    """Return the fold of each entry: documents in turn, or the rows of each group in turn."""
    if material.has_documents:
        return material.documents % min(count, int(material.documents.max()) + 1)
    turn = np.zeros(len(material), dtype=np.int64)
    for setting in settings:
        turn[setting.rows] = np.arange(len(setting.rows)) % count
    return turn


def _on_scale_of(values: FloatVector, scores: FloatVector, rows: IntVector) -> FloatVector:
    """Return scores on the scale the original has on some rows, so that folds can stand together."""
    spread = float(np.nanstd(values[rows]))
    if values is scores or not spread > 0:
        return values
    levelled: FloatVector = (values - np.nanmean(values[rows])) * (np.nanstd(scores[rows]) / spread)
    return levelled + np.nanmean(scores[rows])


def outcome(
    source: Source, setting: Setting, protocol: Protocol, values: FloatVector, choice: Choice | None = None
) -> Outcome:
    """Return the correlation before and after in one setting."""
    judgement = setting.at(source.material)
    before, after = judgement.before, judgement.correlation(values)
    used = choice or Choice(float("nan"), float("nan"))
    return Outcome(source.name, protocol, setting.name, judgement.n, before, after, after - before, used.p, used.w)


def with_test(
    outcome: Outcome,
    material: Material,
    setting: Setting,
    values: FloatVector,
    *,
    n: int,
    seed: int,
    testing: Testing,
) -> Outcome:
    """Return an outcome with its p-value and interval; without them where nothing was changed."""
    if n < 1 or not np.isfinite(outcome.gain) or np.array_equal(values, material.scores, equal_nan=True):
        return outcome
    x, y, z = (_as_matrix(scores, material, setting) for scores in (values, material.scores, setting.human))
    resample: Resample = "systems" if x.shape[1] == 1 else "both"
    interval = bootstrap(
        x, z, setting.level, setting.coefficient, against=y, resample=resample, n=min(n, DRAWS), seed=seed
    )
    p = gain_p(material, setting, values, n=n, seed=seed, testing=testing)
    return replace(outcome, p_value=p, low=interval.estimate.low, high=interval.estimate.high)


def gain_p(material: Material, setting: Setting, values: FloatVector, *, n: int, seed: int, testing: Testing) -> float:
    """Return the p-value of scores in place of the original ones: that they agree with people better."""
    x, y, z = (_as_matrix(scores, material, setting) for scores in (values, material.scores, setting.human))
    arguments = (x, y, z, setting.level, setting.coefficient)
    return permutation_test(
        *arguments, permute=testing.permute, alternative="greater", n=n, seed=seed, compat=testing.compat
    ).p


def _as_matrix(values: FloatVector, material: Material, setting: Setting) -> FloatMatrix:
    """Return one value per entry as systems x segments; pooled segments are one column."""
    rows = setting.rows
    if setting.level == "global":
        return values[rows][:, None]
    systems, segments = (
        np.unique(labels[rows], return_inverse=True)[1] for labels in (material.systems, material.segments)
    )
    matrix = np.full((systems.max() + 1, segments.max() + 1), np.nan)
    matrix[systems, segments] = values[rows]
    return matrix


def with_corrections(outcomes: Sequence[Outcome], method: str) -> list[Outcome]:
    """Return the outcomes with p-values corrected within each family: one source under one protocol."""
    result = list(outcomes)
    for family in dict.fromkeys((outcome.source, outcome.protocol) for outcome in outcomes):
        places = [k for k, outcome in enumerate(outcomes) if (outcome.source, outcome.protocol) == family]
        tested = [k for k in places if outcomes[k].p_value is not None]
        if tested:
            fixed = correct_p(method, [outcomes[k].p_value or 0.0 for k in tested]).adjusted
            for k, value in zip(tested, fixed, strict=True):
                result[k] = replace(outcomes[k], adjusted=value)
    return result


def mean_gain(outcomes: Sequence[Outcome], source: str, protocol: str) -> float:
    """Return the mean gain of a source under a protocol; NaN where there is none."""
    gains = [outcome.gain for outcome in outcomes if (outcome.source, outcome.protocol) == (source, protocol)]
    finite = [gain for gain in gains if np.isfinite(gain)]
    return float(np.mean(finite)) if finite else float("nan")


def verdict(choice: Choice, outcomes: Sequence[Outcome], source: str) -> str:
    """Return one plain sentence: whether boosting helps here, judged on data it was not fitted on."""
    protocol = "in-domain"
    gain = mean_gain(outcomes, source, protocol)
    if not choice.boosted:
        return "boosting does not help here: not boosted, w = 1 keeps the original metric"
    if not gain > 0:
        return f"boosting does not help here: on held-out data the mean gain is {gain:+.4f}"
    controls = {name: mean_gain(outcomes, name, protocol) for name in CONTROLS}
    better = [name for name, value in controls.items() if value >= gain]
    shown = ", ".join(f"{name} {value:+.4f}" for name, value in controls.items())
    if better:
        noise = "/".join(dict.fromkeys("noise" if name == RANDOM else "length" for name in better))
        return f"not distinguishable from {noise}: held-out gain {gain:+.4f}, controls {shown}"
    family = [outcome for outcome in outcomes if (outcome.source, outcome.protocol) == (source, protocol)]
    tested = [outcome for outcome in family if outcome.adjusted is not None]
    sure = sum((outcome.adjusted or 0.0) <= 0.05 for outcome in tested)  # noqa: PLR2004 - the usual level
    evidence = f"held-out gain {gain:+.4f}, controls {shown}"
    if tested and not sure:
        return f"boosting may help a little: {evidence}; significant in none of {len(tested)} settings"
    tests = f"; significant in {sure} of {len(tested)} settings after correction" if tested else ""
    return f"boosting helps: {evidence}{tests}"


def _rows(settings: Sequence[Setting]) -> IntVector:
    return np.unique(np.concatenate([setting.rows for setting in settings]))
