"""One submission of word scores judged against gold: the numbers of each side, and what was left out.

1. Gold and scores of a side must have as many values a sentence. Where they do not, `on_mismatch` decides: an error
   that names the lines, `skip` (left out, counted) or `truncate` (cut to the shorter, counted).
2. Per sentence AUC, AP and recall at K (`stats.words`); sentences without, or with nothing but, marked words are left
   out of the means and counted, separately for each side.
3. Sentence scores: Pearson and Spearman over all sentences.
4. Mean AUC clearly below chance is answered with a warning; nothing is turned round by itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from whyscore.data.formats.eval4nlp import EOS, SIDES, Gold, GoldSide, Judged, Scored, Submission
from whyscore.data.naming import few
from whyscore.errors import DataError, SpecError
from whyscore.options import check_fields, check_seed
from whyscore.stats.coefficients import pearson, spearman
from whyscore.stats.words import MEASURES, Agreement, Measure, Ragged, Ties, agree, mean_estimates, orientation
from whyscore.types import Estimate, FloatVector

Mismatch = Literal["error", "skip", "truncate"]
MISMATCHES: tuple[Mismatch, ...] = get_args(Mismatch)


@dataclass(frozen=True, slots=True)
class Judging:
    """How submissions are judged; all of it stands in the signature."""

    ties: Ties = "expected"
    on_mismatch: Mismatch = "error"
    drop_eos: bool = False
    draws: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse choices there are not."""
        check_fields(self)
        check_seed(self.seed)
        if self.draws < 0:
            raise SpecError(f"draws is {self.draws}, expected 0 or more")

    def facts(self) -> dict[str, str]:
        """Return the choices by name, for a signature."""
        eos = "dropped" if self.drop_eos else "kept"
        facts = {"ties": self.ties, "mismatch": self.on_mismatch, "eos": eos}
        return facts | {"draws": str(self.draws), "seed": str(self.seed)}


@dataclass(frozen=True, eq=False)
class SideResult:
    """A side of a submission: one number per sentence (NaN where left out), their means, and what was left out."""

    values: Agreement
    estimates: Mapping[Measure, Estimate]
    mismatch: int = 0
    """Sentences whose number of scores was not the gold's."""
    cut: bool = False
    """Whether these were cut and judged, rather than left out."""
    tags: Ragged | None = None
    scores: Ragged | None = None
    """Gold and scores as they were judged, word by word; None for chance, which has no scores."""

    @property
    def n(self) -> int:
        """Sentences in all."""
        return len(self.values.auc)

    @property
    def judged(self) -> FloatVector:
        """1 for each sentence that counts in the means."""
        return (~np.isnan(self.values.auc)).astype(np.float64)

    @property
    def n_eval(self) -> int:
        """Sentences behind the means."""
        return int(self.judged.sum())

    @property
    def dropped(self) -> dict[str, int]:
        """How many sentences count nowhere, by reason."""
        there = self.values.words > 0
        return {
            "no_error": int((self.values.marked == 0)[there].sum()),
            "all_error": int((self.values.marked == self.values.words)[there].sum()),
            "mismatch": 0 if self.cut else self.mismatch,
        }

    @property
    def ties(self) -> int:
        """Sentences where equal scores cross the border K."""
        return int(self.values.ties.sum())

    def mean(self, name: str) -> float:
        """Return the mean of a column of the values over the judged sentences; NaN where there is none."""
        values: FloatVector = getattr(self.values, name)
        return float(np.nanmean(values)) if self.n_eval else float("nan")


@dataclass(frozen=True, slots=True)
class SentenceResult:
    """How sentence scores go with the gold ones."""

    n: int
    pearson: float
    spearman: float


@dataclass(frozen=True, eq=False)
class SystemResult:
    """One submission, judged."""

    system: str
    sides: Mapping[Judged, SideResult | None]
    """None where there is gold but no scores, or the other way round: `not submitted`."""
    sentence: SentenceResult | None = None
    warnings: tuple[str, ...] = ()
    baseline: bool = False


def judge(gold: Gold, submission: Submission, how: Judging, *, baseline: bool = False) -> SystemResult:
    """Return the numbers of one submission on both sides."""
    sides: dict[Judged, SideResult | None] = {}
    warnings: list[str] = []
    for side in SIDES:
        gold_side, scored = gold.side(side), submission.sides.get(side)
        if gold_side is None:
            continue
        if scored is None:
            sides[side] = None
            continue
        sides[side] = found = judge_side(gold_side, scored, how)
        warnings.extend(_warned(found, side, baseline=baseline))
    return SystemResult(submission.name, sides, _sentence(gold, submission), tuple(warnings), baseline=baseline)


def judge_side(gold: GoldSide, scored: Scored, how: Judging) -> SideResult:
    """Return the numbers of one side of a submission."""
    tags, scores = judged_tags(gold, how), scored.scores
    if len(tags) != len(scores):
        raise DataError(f"{scored.file} has {len(scores)} lines, {gold.file} has {len(tags)}: line counts must match")
    if how.drop_eos:
        scores = _without_eos(gold, scores)
    wrong = tags.lengths != scores.lengths
    if wrong.any() and how.on_mismatch == "error":
        raise _mismatch(gold, scored, np.flatnonzero(wrong).tolist())
    if how.on_mismatch == "skip" and wrong.any():
        nothing = np.where(wrong, 0, tags.lengths)
        tags, scores = tags.cut(nothing), scores.cut(nothing)
    else:
        tags, scores = tags.cut(scores.lengths), scores.cut(tags.lengths)
    values = agree(tags, scores, how.ties)
    found = side_result(values, how)
    cut = how.on_mismatch == "truncate"
    return replace(found, mismatch=int(wrong.sum()), cut=cut, tags=tags, scores=scores)


def judged_tags(gold: GoldSide, how: Judging) -> Ragged:
    """Return the tags that count, without those of `<EOS>` where that is wanted."""
    return _without_eos(gold, gold.tags) if how.drop_eos else gold.tags


def side_result(values: Agreement, how: Judging) -> SideResult:
    """Return per-sentence values with their means and intervals."""
    rows = np.stack([values.of(measure) for measure in MEASURES])
    estimates = mean_estimates(rows, draws=how.draws, seed=how.seed)
    return SideResult(values, dict(zip(MEASURES, estimates, strict=True)))


def _without_eos(gold: GoldSide, values: Ragged) -> Ragged:
    """Return the values without those of a last word `<EOS>`."""
    if gold.words is None:
        raise DataError(f"{gold.file} comes without its words: --drop-eos cannot tell which lines end in {EOS}")
    last = [own.text[slice(*own.spans[-1])] if len(own) else "" for own in gold.words]
    ends = np.array([word == EOS for word in last])
    return values.cut(np.maximum(values.lengths - ends, 0))


def _mismatch(gold: GoldSide, scored: Scored, rows: Sequence[int]) -> DataError:
    told = [f"line {k + 1} has {scored.scores.lengths[k]} scores for {gold.tags.lengths[k]} tags" for k in rows]
    return DataError(
        f"{len(rows)} of {len(gold.tags)} lines do not fit {gold.file}: {few(told, limit=20)}. Put them right, or say "
        "--on-mismatch skip or truncate",
        file=scored.file,
        line=rows[0] + 1,
    )


def _warned(found: SideResult, side: Judged, *, baseline: bool) -> list[str]:
    if not found.n_eval:
        return [f"{side}: no sentence has both marked and unmarked words, so there is nothing to judge"]
    guard = orientation(found.values.auc[~np.isnan(found.values.auc)])
    warnings = []
    if guard.fires and not baseline:
        p = f"p = {guard.p:.4f}".replace("0.", ".") if guard.p >= 0.0001 else "p < .0001"  # noqa: PLR2004 - as shown
        shown = f"{guard.mean:.4f}".replace("0.", ".", 1)
        message = f"AUC {shown} is below chance ({p}): are the scores error scores? --flip turns them round"
        warnings.append(f"{side}: {message}")
    if found.mismatch:
        done = "cut to the shorter" if found.cut else "left out"
        warnings.append(f"{side}: {found.mismatch} sentences with a wrong number of scores were {done}")
    return warnings


def _sentence(gold: Gold, submission: Submission) -> SentenceResult | None:
    if gold.sentence is None or submission.sentence is None:
        return None
    if len(gold.sentence) != len(submission.sentence):
        raise DataError(
            f"{submission.sentence_file} has {len(submission.sentence)} lines, {gold.name} has {len(gold)}: "
            "line counts must match"
        )
    one, other = submission.sentence, gold.sentence
    return SentenceResult(int((~np.isnan(one + other)).sum()), float(pearson(one, other)), float(spearman(one, other)))
