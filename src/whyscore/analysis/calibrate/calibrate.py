"""Learn how to boost a metric from human judgements, and say honestly when that does not help.

1. Explain every segment once (or take explanations that are there). From here on the metric is never asked again.
2. Settings: each group, human score and coefficient is one. Settings where the metric does not agree with people at all
   (correlation 0 or below) are left out and named: "improving" a reversed metric is noise.
3. A rule chooses p and w from the whole grid of gains (`rules`).
4. The choice is judged on the same data (`oracle`), on left-out documents (`in-domain`), on left-out groups
   (`cross-domain`), each beside controls that know nothing: the length of the hypothesis, and random importances.
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b

import numpy as np

from whyscore.analysis.calibrate.file import Calibration, Outcome, SettingReport, input_digest
from whyscore.analysis.calibrate.judgement import (
    Question,
    Source,
    cross_domain,
    in_domain,
    oracle,
    outcome,
    sources_of,
    verdict,
    with_corrections,
    with_test,
)
from whyscore.analysis.calibrate.material import (
    Explained,
    Setting,
    check_judged,
    explained_of,
    groups_of,
    human_of,
    join_datasets,
    possible_settings,
    sort_entries,
)
from whyscore.analysis.calibrate.rules import Choice
from whyscore.analysis.calibrate.settings import AgreementSettings, CalibrateSettings, JudgingSettings, at
from whyscore.analysis.common import MetricLike, as_metric, with_languages
from whyscore.analysis.explain import explain
from whyscore.errors import DataError
from whyscore.metrics.boosted import check_sides
from whyscore.protocols import Explainer
from whyscore.registry import spec_of
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.settings import takes
from whyscore.types import Dataset, Explanation, FloatVector
from whyscore.version import __version__

_WARN_DEGENERATE = 0.5


@takes(CalibrateSettings)
def calibrate(
    dataset: Dataset | Sequence[Dataset],
    metric: MetricLike,
    explainer: str | Explainer = "erasure",
    *,
    settings: CalibrateSettings,
    explanations: Sequence[Explanation] | None = None,
    resources: Resources = LOCAL,
) -> Calibration:
    """Return how a metric is best boosted, with everything a reader must know before believing it.

    Args:
        dataset: judged segments; several data sets are groups of their own.
        metric: a spec, a metric or a function.
        explainer: what gives words their importance.
        settings: the human scores, and how p and w are chosen and judged.
        explanations: what `explain` gave for these segments; nothing is scored then.
        resources: store, executor and progress.
    """
    data = sort_entries(join_datasets(dataset))
    base = with_languages(as_metric(metric), data.languages)
    check_judged(data, human_of(data, settings.human))
    check_sides(settings.search.family, settings.parts)
    if explanations is None:
        explanations = explain(
            *(data, base, explainer),
            unit=settings.unit, masker=settings.masker, seed=settings.seed, resources=resources,
        )  # fmt: skip
    explained = explained_of(data, base, explainer, explanations, parts=settings.parts, seed=settings.seed)
    return calibrate_explained(explained, settings)


def calibrate_explained(explained: Explained, settings: JudgingSettings) -> Calibration:
    """Return the calibration of what was explained already; no metric is asked."""
    check_judged(explained.data, human_of(explained.data, settings.human))
    usable, notes = judged_settings(explained, settings)
    return calibration_of(explained, Question.of(usable, settings.search), settings, notes)


def judged_settings(explained: Explained, settings: AgreementSettings) -> tuple[tuple[Setting, ...], list[str]]:
    """Return the settings of explained entries that can be judged, a note for each that cannot; none is an error."""
    human, groups = human_of(explained.data, settings.human), groups_of(explained.data, settings.group)
    usable, notes = possible_settings(explained.material, human, groups, settings.level, settings.coefficient)
    if not usable:
        raise DataError(f"nothing to calibrate on: {'; '.join(notes)}")
    missing = int(np.isnan(explained.material.scores).sum())
    if missing:
        notes.append(f"{missing:,} of {len(explained.data):,} segments have no score and were left out")
    return usable, notes


def calibration_of(
    about: Explained, question: Question, how: JudgingSettings, notes: Sequence[str] = (), choice: Choice | None = None
) -> Calibration:
    """Return the calibration: the choice (that of the rule where none is given), settings, outcomes and verdict."""
    search, sources = how.search, sources_of(about, how.search)
    main = sources[0]
    choice = choice or oracle(main, question)[0]
    rows = np.unique(np.concatenate([setting.rows for setting in question.settings]))
    at_choice, shift, stretch = main.at(choice.p if choice.boosted else 1.0, rows)
    reports = [_report(main, question, setting, choice, about.data) for setting in question.settings]
    every = [outcome for source in sources for outcome in _outcomes(source, question, how, about.seed)]
    outcomes = with_corrections(every, how.testing.correction)
    degenerate = float(at_choice.degenerate_share(rows)[0]) if choice.boosted else 0.0
    family = search.family
    fixed = family if family.parameter is None or not choice.boosted else at(family, choice.p)
    metric_signature = about.metric.signature()
    return Calibration(
        metric=metric_signature.spec,
        metric_signature=str(metric_signature),
        explainer=about.explainer,
        masker=about.masker,
        unit=about.unit,
        parts=about.parts,
        aggregator=spec_of(fixed),
        rule=question.rule,
        epsilon=question.epsilon,
        parameters=tuple(search.parameters.tolist()),
        weights=tuple(search.weights.tolist()),
        scale=search.scale,
        shift=shift,
        stretch=stretch,
        p=choice.p,
        w=choice.w,
        shrinkage=choice.shrinkage,
        nearest=_nearest(search.parameters, choice.p),
        degenerate=degenerate,
        settings=tuple(reports),
        outcomes=tuple(outcomes),
        verdict=verdict(choice, outcomes, about.explainer),
        notes=(*notes, *_notes(main, question, how, choice, degenerate)),
        correction=how.testing.correction,
        inputs=tuple(dict.fromkeys(input_digest(about.data.entries[row].segment) for row in rows.tolist())),
        seed=about.seed,
        versions={"whyscore": __version__, "numpy": np.__version__},
        gains=_gain_grids(main, question) if how.keep_gains else None,
    )


def _notes(
    source: Source, question: Question, how: JudgingSettings, choice: Choice, degenerate: float
) -> Iterator[str]:
    """Yield which settings have no vote, what was chosen, and where the floor decides."""
    for setting in question.settings:
        if not question.counts(source.material, setting):
            before = setting.at(source.material).before
            yield f"{setting.name} has no vote: the original score has a correlation of {before:.4f} there"
    yield from how.choices("the settings of a source and protocol")
    if degenerate > _WARN_DEGENERATE:
        yield f"at p = {choice.p:g} the floor value alone determines the aggregate of {degenerate:.0%} of the segments"


def _outcomes(source: Source, question: Question, how: JudgingSettings, seed: int) -> list[Outcome]:
    """Return the outcomes of one source under every protocol, tested where the data were not fitted on."""

    def test(untested: Outcome, setting: Setting, values: FloatVector) -> Outcome:
        arguments = (untested, source.material, setting, values)
        return with_test(*arguments, n=how.resamples, seed=seed, testing=how.testing)

    choice, values = oracle(source, question)
    outcomes = [outcome(source, setting, "oracle", values, choice) for setting in question.settings]
    held_out = in_domain(source, question, how.folds)
    outcomes += [
        test(outcome(source, setting, "in-domain", held_out), setting, held_out) for setting in question.settings
    ]
    for group, other, scores in cross_domain(source, question):
        outcomes += [
            test(outcome(source, setting, "cross-domain", scores, other), setting, scores)
            for setting in question.settings
            if setting.group == group
        ]
    return outcomes


def _report(source: Source, question: Question, setting: Setting, choice: Choice, data: Dataset) -> SettingReport:
    judgement = setting.at(source.material)
    columns = source.columns(setting.rows)
    gains = np.nan_to_num(judgement.gains(columns, question.weights), nan=-np.inf)
    best = np.unravel_index(int(gains.argmax()), gains.shape)
    alone = question.choose(source, [setting])
    after = judgement.correlation(source.mix(choice, setting.rows))
    degenerate = source.at(choice.p, setting.rows)[0].degenerate_share(setting.rows)[0] if choice.boosted else 0.0
    rows = setting.rows
    read = (source.material.scores[rows], setting.human[rows], source.material.bags.take(rows).values)
    content = b"".join(np.ascontiguousarray(array).tobytes() for array in read)
    texts = "".join(input_digest(data.entries[row].segment) for row in rows.tolist())
    return SettingReport(
        name=setting.name,
        group=setting.group,
        human=setting.human_name,
        coefficient=setting.coefficient,
        level=setting.level,
        n=judgement.n,
        data=blake2b(content, digest_size=8).hexdigest(),
        documents=blake2b(texts.encode(), digest_size=8).hexdigest(),
        before=judgement.before,
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


def _gain_grids(source: Source, question: Question) -> dict[str, list[list[float]]]:
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
