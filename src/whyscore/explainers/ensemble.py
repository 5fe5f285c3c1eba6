"""Several explainers as one, with their disagreement.

1. Plan, in every round, the masks of all members, one after the other. Equal probes are scored once.
2. Each member fits its own rows. Which rows those are follows from replaying the members' plans: they depend on
   nothing but the seed, the text and the scores seen so far.
3. Join the members' importances word by word, with weights if given:
   - `rank`: mean of the ranks within the text (ties share their mean rank), scaled to 0 .. 1;
   - `z`: mean of the importances in standard deviations from their mean; equal importances count 0;
   - `sum`, `mean`: of the importances as they are, as the papers on token matching and attention do.
4. `spread` is the standard deviation across members, on the joined scale, unweighted.

All members must hide words alike, as one score per mask serves them all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.stats import rankdata

from whyscore.errors import ContractError, SpecError
from whyscore.explainers.engine import check_masker
from whyscore.protocols import Explainer, HidesWords, Masker
from whyscore.registry import component
from whyscore.settings import check_fields
from whyscore.text.randomness import generator
from whyscore.types import Evidence, Fit, FloatMatrix, FloatVector, KeepMasks

How = Literal["rank", "z", "sum", "mean"]


@dataclass(frozen=True, slots=True)
class Ensemble:
    """Combines the importances of several explainers.

    `masker` masks the words for all members; None takes the members' own, which must then be equal.
    """

    members: tuple[Explainer, ...] = component("explainer")
    how: How = "rank"
    weights: tuple[float | int, ...] | None = None
    masker: Masker | None = component("masker", default=None)

    def __post_init__(self) -> None:
        if not isinstance(self.members, tuple):
            object.__setattr__(self, "members", (self.members,))
        check_fields(self)
        _check_members(self.members)
        _check_weights(self.weights, len(self.members))
        if self.masker is None:
            object.__setattr__(self, "masker", _common_masker(self.members))
        else:
            check_masker("ensemble", self.masker)

    @property
    def rounds(self) -> int:
        return max(member.rounds for member in self.members)

    def cost(self, words: int) -> int:
        return sum(member.cost(words) for member in self.members)

    def plan(self, evidence: Evidence, rng: Generator) -> KeepMasks:  # noqa: ARG002 - each member draws as if alone
        replay = self._replay(evidence)
        masks = [self._ask(k, replay.evidence[k], replay.rounds) for k in range(len(self.members))]
        return np.concatenate([np.zeros((0, len(evidence.words)), dtype=np.bool_), *masks])

    def fit(self, evidence: Evidence) -> Fit:
        parts = self._replay(evidence).evidence
        fits = [member.fit(part) for member, part in zip(self.members, parts, strict=True)]
        scaled = np.stack([_scale(fit.importance, self.how) for fit in fits])
        flags = tuple(dict.fromkeys(flag for fit in fits for flag in fit.flags))
        names = [fit.method or type(member).__name__.lower() for member, fit in zip(self.members, fits, strict=True)]
        return Fit(
            _join(scaled, self.weights, total=self.how == "sum"),
            method="+".join(names),
            flags=flags,
            spread=scaled.std(axis=0),
        )

    def _ask(self, member: int, evidence: Evidence, number: int) -> KeepMasks:
        """Return what a member asks in a round; it draws the numbers it would draw alone."""
        asker = self.members[member]
        if number >= asker.rounds:
            return np.zeros((0, len(evidence.words)), dtype=np.bool_)
        return asker.plan(evidence, generator(evidence.seed, evidence.words.text, str(number)))

    def _replay(self, evidence: Evidence) -> "_Replay":
        """Return each member's own evidence, and the number of rounds played."""
        words = len(evidence.words)
        parts = [Evidence.whole(evidence.words, float(evidence.scores[0]), evidence.seed) for _ in self.members]
        position, number = 1, 0
        while position < len(evidence.masks):
            before = position
            for k, member in enumerate(self.members):
                once = member.rounds == 1 and number == 0
                rows = member.cost(words) if once else len(self._ask(k, parts[k], number))
                part = slice(position, position + rows)
                parts[k] = parts[k].extend(evidence.masks[part], evidence.scores[part])
                position += rows
            number += 1
            if position == before and number >= self.rounds:
                raise ContractError(f"ensemble: {len(evidence.masks) - position} probes were not planned by any member")
        return _Replay(parts, number)


class _Replay(NamedTuple):
    evidence: list[Evidence]
    rounds: int


def _check_members(members: Sequence[object]) -> None:
    if not members:
        raise SpecError("ensemble needs members: write ensemble(lime, shap)")
    for member in members:
        if not isinstance(member, Explainer):
            raise SpecError(
                f"ensemble: {member!r} does not explain by masks and cannot be a member; "
                "members are explainers such as lime, shap or erasure"
            )


def _check_weights(weights: Sequence[float] | None, members: int) -> None:
    if weights is None:
        return
    if len(weights) != members:
        raise SpecError(f"ensemble: {len(weights)} weights for {members} members, expected one each")
    if min(weights) < 0 or not 0 < sum(weights) < np.inf:
        raise SpecError(f"ensemble: weights are {weights!r}, expected numbers of 0 or more, not all 0")


def _common_masker(members: Sequence[Explainer]) -> Masker | None:
    """Return the masker that all members with one share."""
    maskers: list[Masker] = []
    for member in members:
        masker = member.masker if isinstance(member, HidesWords) else None
        if masker is not None and masker not in maskers:
            maskers.append(masker)
    if len(maskers) > 1:
        raise SpecError(
            f"ensemble: members mask words differently ({', '.join(map(repr, maskers))}), so they cannot share "
            'scores; set one masker for all, for example masker=replace("UNKWORDZ")'
        )
    return maskers[0] if maskers else None


def _scale(importance: FloatVector, how: How) -> FloatVector:
    """Return importances on the scale on which they are joined."""
    words = len(importance)
    if how == "rank":
        ranks = (rankdata(importance, nan_policy="propagate") - 1) / (words - 1) if words > 1 else importance * 0 + 0.5
        return np.asarray(ranks, dtype=np.float64)
    if how == "z" and words:
        apart = importance - importance.mean()
        return np.asarray(apart / importance.std() if np.ptp(importance) else apart * 0, dtype=np.float64)
    return importance


def _join(scaled: FloatMatrix, weights: Sequence[float] | None, *, total: bool) -> FloatVector:
    share = np.ones(len(scaled)) if weights is None else np.asarray(weights, dtype=np.float64)
    result: FloatVector = share @ scaled
    return result if total else result / share.sum()
