"""Learn how to boost a metric from human judgements, and say honestly when that does not help.

1. Explain every segment once (or take explanations that are there). From here on the metric is never asked again.
2. Settings: each group, human score and coefficient is one. Settings where the metric does not agree with people at all
   (correlation 0 or below) are left out and named: "improving" a reversed metric is noise.
3. A rule chooses p and w from the whole grid of gains (`calibration_rules`).
4. The choice is judged on the same data (`oracle`), on left-out documents (`in-domain`), on left-out groups
   (`cross-domain`), each beside controls that know nothing: the length of the hypothesis, and random importances.
"""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Literal, NamedTuple

import numpy as np

from whyscore.aggregate.bags import Family
from whyscore.analysis.calibrate.file import Calibration, Outcome, SettingReport, input_digest
from whyscore.analysis.calibrate.judgement import (
    BREVITY,
    LENGTH,
    RANDOM,
    Question,
    Source,
    adjusted,
    cross_domain,
    in_domain,
    oracle,
    outcome,
    tested,
    verdict,
)
from whyscore.analysis.calibrate.material import (
    Explained,
    Setting,
    check_judged,
    explained_of,
    groups_of,
    human_of,
    joined,
    settings_of,
)
from whyscore.analysis.calibrate.rules import FOLDS, WEIGHTS, Choice, Rule
from whyscore.analysis.calibrate.settings import Mode, Options, at, options_of
from whyscore.analysis.common import MetricLike, as_metric
from whyscore.analysis.explain import explain
from whyscore.metrics.boosted import Parts, check_sides
from whyscore.protocols import Explainer, Masker, Splitter
from whyscore.registry import spec_of
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.stats.matrices import Permute
from whyscore.types import Dataset, Explanation, FloatVector
from whyscore.version import __version__

RESAMPLES = 9999
_WARN_DEGENERATE = 0.5


def calibrate(
    dataset: Dataset | Sequence[Dataset],
    metric: MetricLike,
    explainer: str | Explainer = "erasure",
    *,
    human: str | Sequence[str],
    group: str | None = None,
    level: str = "global",
    coefficient: str | Sequence[str] = "pearson",
    rule: Rule | None = None,
    mode: Mode = "default",
    epsilon: float | None = None,
    grid: str | Sequence[float] | None = None,
    weights: Sequence[float] = WEIGHTS,
    scale: Literal["raw", "z"] = "raw",
    aggregator: str | Family = "power_mean",
    parts: Parts = "all",
    unit: str | Splitter = "word",
    masker: str | Masker | None = None,
    seed: int = 0,
    folds: int = FOLDS,
    resamples: int = RESAMPLES,
    correction: str = "holm",
    permute: Permute | None = None,
    keep_gains: bool = False,
    explanations: Sequence[Explanation] | None = None,
    resources: Resources = LOCAL,
) -> Calibration:
    """Return how a metric is best boosted, with everything a reader must know before believing it.

    Args:
        dataset: judged segments; several data sets are groups of their own.
        metric: a spec, a metric or a function.
        explainer: what gives words their importance.
        human: the human score, or several.
        group: a column whose values part the data, such as the language pair.
        level: global, segment, system or within_system.
        coefficient: pearson, spearman or kendall, or several of them.
        rule: how p and w are chosen; see `calibration_rules`.
        mode: `paper` or `compat` for the choices of the BMX paper or of its public code.
        epsilon: gains up to this size count as none.
        grid: `default` (601 powers), `compat` (600), `coarse` (121), or the values themselves.
        weights: the weights of the original score to try.
        scale: `z` brings the aggregate to mean and deviation of the scores first.
        aggregator: the mean whose parameter is varied.
        parts: which texts' words are aggregated.
        unit: what is hidden at a time.
        masker: what a hidden word becomes.
        seed: fixes every random number.
        folds: parts of the in-domain judgement.
        resamples: permutations behind each p-value; 0 leaves tests and intervals out.
        correction: of p-values over the settings: holm, bonferroni or none.
        permute: what a permutation swaps: cell, row_xor_column, systems or inputs; row_xor_column in the mode compat
            (what the paper ran, with p = c / n), else cell.
        keep_gains: keep the whole grid of gains in the result.
        explanations: what `explain` gave for these segments; nothing is scored then.
        resources: store, executor and progress.
    """
    data = joined(dataset)
    chosen = as_metric(metric)
    check_judged(data, human_of(data, human))
    options = options_of(
        mode, rule=rule, epsilon=epsilon, grid=grid, weights=weights, scale=scale, aggregator=aggregator
    )
    check_sides(options.family, parts)
    if explanations is None:
        explanations = explain(data, chosen, explainer, unit=unit, masker=masker, seed=seed, resources=resources)
    found = explained_of(data, chosen, explainer, explanations, parts=parts, seed=seed)
    return calibrate_explained(
        found,
        options,
        human=human,
        group=group,
        level=level,
        coefficient=coefficient,
        judging=Judging(
            *(folds, resamples, correction, keep_gains, permute or ("row_xor_column" if mode == "compat" else "cell")),
            compat=mode == "compat",
        ),
    )


class Judging(NamedTuple):
    """How a choice is judged."""

    folds: int = FOLDS
    resamples: int = RESAMPLES
    correction: str = "holm"
    keep_gains: bool = False
    permute: Permute = "cell"
    compat: bool = False
    """Whether p = c / n, from the random numbers of nlpstats."""


def calibrate_explained(
    found: Explained,
    options: Options,
    *,
    human: str | Sequence[str],
    group: str | None = None,
    level: str = "global",
    coefficient: str | Sequence[str] = "pearson",
    judging: Judging = Judging(),  # noqa: B008 - a value
) -> Calibration:
    """Return the calibration of what was explained already; no metric is asked."""
    coefficients = (coefficient,) if isinstance(coefficient, str) else tuple(coefficient)
    values = human_of(found.data, human)
    check_judged(found.data, values)
    settings, notes = settings_of(found.material, values, groups_of(found.data, group), level, coefficients)
    question = Question(settings, options.weights, options.epsilon, options.rule, options.keep_reversed)
    return _calibrated(found, question, options, judging, notes)


def _calibrated(
    about: Explained, question: Question, options: Options, judging: Judging, notes: list[str]
) -> Calibration:
    """Return the calibration: the choice, its settings, its outcomes and the verdict."""
    own, material = about.explainer, about.material
    main = Source(own, material, options.family, options.parameters, options.scale)
    lengths = (replace(main, name=name, scale="raw") for name in (LENGTH, BREVITY))
    sources = (main, *lengths, replace(main, name=RANDOM, material=about.noise))
    for setting in question.settings:
        if not question.counts(material, setting):
            before = setting.at(material).before
            notes.append(f"{setting.name} has no vote: the original score has a correlation of {before:.4f} there")
    choice, _ = oracle(main, question)
    rows = np.unique(np.concatenate([setting.rows for setting in question.settings]))
    at_choice, shift, stretch = main.at(choice.p if choice.boosted else 1.0, rows)
    reports = [_report(main, question, setting, choice, about.data) for setting in question.settings]
    every = [one for source in sources for one in _outcomes(source, question, judging, about.seed)]
    outcomes = adjusted(every, judging.correction)
    degenerate = float(at_choice.degenerate_share(rows)[0]) if choice.boosted else 0.0
    if degenerate > _WARN_DEGENERATE:
        notes.append(f"at p = {choice.p:g} the aggregate hangs on the floor alone in {degenerate:.0%} of the segments")
    family = options.family
    fixed = family if family.parameter is None or not choice.boosted else at(family, choice.p)
    metric_signature = about.metric.signature()
    return Calibration(
        metric=metric_signature.spec,
        metric_signature=str(metric_signature),
        explainer=own,
        masker=about.masker,
        unit=about.unit,
        parts=about.parts,
        aggregator=spec_of(fixed),
        rule=question.rule,
        epsilon=question.epsilon,
        parameters=tuple(options.parameters.tolist()),
        weights=tuple(options.weights.tolist()),
        scale=options.scale,
        shift=shift,
        stretch=stretch,
        p=choice.p,
        w=choice.w,
        shrinkage=choice.shrinkage,
        nearest=_nearest(options.parameters, choice.p),
        degenerate=degenerate,
        settings=tuple(reports),
        outcomes=tuple(outcomes),
        verdict=verdict(choice, outcomes, own),
        notes=tuple(notes),
        correction=judging.correction,
        inputs=tuple(dict.fromkeys(input_digest(about.data.entries[row].segment) for row in rows.tolist())),
        seed=about.seed,
        versions={"whyscore": __version__, "numpy": np.__version__},
        gains=_kept_gains(main, question) if judging.keep_gains else None,
    )


def _outcomes(source: Source, question: Question, judging: Judging, seed: int) -> list[Outcome]:
    """Return the outcomes of one source under every protocol, tested where the data were not fitted on."""

    def test(one: Outcome, setting: Setting, values: FloatVector) -> Outcome:
        return tested(
            *(one, source.material, setting, values),
            n=judging.resamples, seed=seed, permute=judging.permute, compat=judging.compat,
        )  # fmt: skip

    choice, values = oracle(source, question)
    found = [outcome(source, setting, "oracle", values, choice) for setting in question.settings]
    held = in_domain(source, question, judging.folds)
    found += [test(outcome(source, setting, "in-domain", held), setting, held) for setting in question.settings]
    for group, other, scores in cross_domain(source, question):
        found += [
            test(outcome(source, setting, "cross-domain", scores, other), setting, scores)
            for setting in question.settings
            if setting.group == group
        ]
    return found


def _report(source: Source, question: Question, setting: Setting, choice: Choice, data: Dataset) -> SettingReport:
    judged = setting.at(source.material)
    columns = source.columns(setting.rows)
    gains = np.nan_to_num(judged.gains(columns, question.weights), nan=-np.inf)
    best = np.unravel_index(int(gains.argmax()), gains.shape)
    alone = question.choose(source, [setting])
    after = judged.correlation(source.mixed(choice, setting.rows))
    degenerate = source.at(choice.p, setting.rows)[0].degenerate_share(setting.rows)[0] if choice.boosted else 0.0
    rows = setting.rows
    read = (source.material.scores[rows], setting.human[rows], source.material.bags.take(rows).values)
    held = b"".join(np.ascontiguousarray(one).tobytes() for one in read)
    texts = "".join(input_digest(data.entries[row].segment) for row in rows.tolist())
    return SettingReport(
        name=setting.name,
        group=setting.group,
        human=setting.human_name,
        coefficient=setting.coefficient,
        level=setting.level,
        n=judged.n,
        data=blake2b(held, digest_size=8).hexdigest(),
        documents=blake2b(texts.encode(), digest_size=8).hexdigest(),
        before=judged.before,
        after=after,
        improving=int((gains > 0).sum()),
        improving_more=int((gains > question.epsilon).sum()),
        configurations=int(gains.size),
        degenerate=float(degenerate),
        own_p=alone.p,
        own_w=alone.w,
        best_p=float(columns.parameters[best[0]]),
        best_w=float(question.weights[best[1]]),
        best_gain=float(gains[best]),
    )


def _kept_gains(source: Source, question: Question) -> dict[str, list[list[float]]]:
    digits = 6  # a gain is read to four
    return {
        setting.name: setting.at(source.material)
        .gains(source.columns(setting.rows), question.weights)
        .round(digits)
        .tolist()
        for setting in question.settings
    }


def _nearest(parameters: FloatVector, p: float) -> float:
    return float(parameters[np.argmin(np.abs(parameters - p))]) if np.isfinite(p) else float("nan")
