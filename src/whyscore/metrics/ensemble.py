"""Several metrics as one: the sum, or the mean, of their scores and of their word scores (Leiter 2021).

1. A row holds the score of each member; the score is their sum, without any normalisation.
2. Word scores are summed word by word, after each member has pooled its own pieces, so that tokenizers may differ. With
   one tokenizer and mean pooling this is the paper's sum over pieces.

Members must agree on whether larger is better.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np

from whyscore.errors import SpecError
from whyscore.protocols import Metric, SupportsNeeds, WordScorer, scores_words
from whyscore.registry import component, spec_of
from whyscore.settings import check_fields
from whyscore.types import FloatMatrix, FloatVector, Inputs, Place, Segment, Signature, Words, WordScores
from whyscore.version import __version__


@dataclass(frozen=True)
class Ensemble:
    """Sum of the scores of several metrics, and of their word scores.

    Args:
        members: the metrics, each by its spec.
        how: whether scores are summed or averaged.
    """

    members: tuple[Metric, ...] = component("metric")
    how: Literal["sum", "mean"] = "sum"

    def __post_init__(self) -> None:
        if not isinstance(self.members, tuple):
            object.__setattr__(self, "members", (self.members,))
        check_fields(self)
        if not self.members:
            raise SpecError("ensemble needs members: write ensemble(xbertscore, chrf)")
        for member in self.members:
            if not isinstance(member, Metric):
                raise SpecError(f"ensemble: {member!r} is not a metric and cannot be a member")
        if len({member.higher_is_better for member in self.members}) > 1:
            named = [f"{spec_of(m)} is better when {'higher' if m.higher_is_better else 'lower'}" for m in self.members]
            raise SpecError(
                f"ensemble: the sum would be meaningless, because {', '.join(named)}; "
                "choose members with the same direction"
            )

    @property
    def inputs(self) -> Inputs:
        return _join_matrices([member.inputs for member in self.members])

    @property
    def needs(self) -> Inputs:
        return _join_matrices([m.needs if isinstance(m, SupportsNeeds) else m.inputs for m in self.members])

    @property
    def higher_is_better(self) -> bool:
        return self.members[0].higher_is_better

    @property
    def columns(self) -> tuple[str, ...]:
        names = [spec_of(member) for member in self.members]
        return tuple(name if names.count(name) == 1 else f"{name} {k}" for k, name in enumerate(names, start=1))

    def signature(self) -> Signature:
        signatures = [member.signature() for member in self.members]
        facts = [(f"member{k}", f"[{signature}]") for k, signature in enumerate(signatures, start=1)]
        return Signature(
            spec_of(self), (*facts, ("version", __version__)), all(signature.stable for signature in signatures)
        )

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return self.scores(self.statistics(segments))

    def statistics(self, segments: Sequence[Segment]) -> FloatMatrix:
        return np.stack([member.score(segments) for member in self.members], axis=1)

    def scores(self, rows: FloatMatrix) -> FloatVector:
        total = rows.sum(axis=1)
        return np.asarray(total if self.how == "sum" else total / len(self.members), dtype=np.float64)

    def has_word_scores(self) -> bool:
        return all(scores_words(member) for member in self.members)

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        for member in self.members:
            if not isinstance(member, WordScorer):
                raise SpecError(
                    f"ensemble: {spec_of(member)} has no word scores of its own: explain it with erasure, lime or shap"
                )
        each = [m.word_scores(segments, place, words) for m in self.members if isinstance(m, WordScorer)]
        return [self._add_answers(answers) for answers in zip(*each, strict=True)]

    def _add_answers(self, answers: Sequence[WordScores]) -> WordScores:
        importance = self.scores(np.stack([answer.importance for answer in answers], axis=1))
        all_notes = [answer.notes for answer in answers if answer.notes is not None]
        notes = (
            tuple(" | ".join(notes_of_word) for notes_of_word in zip(*all_notes, strict=True)) if all_notes else None
        )
        # Matches with a class of their own (MEE) add up to the score of their metric alone, so they are left out.
        each = [answer.matches for answer in answers if answer.matches]
        similar = [
            matches_of_member
            for matches_of_member in each
            if all(match.label == "similar" for match in chain(*matches_of_member))
        ]
        matches = (
            tuple(tuple(chain(*matches_of_word)) for matches_of_word in zip(*similar, strict=True)) if similar else None
        )
        return WordScores(importance, notes, matches)


def _join_matrices(flags: Sequence[Inputs]) -> Inputs:
    result = Inputs(0)
    for flag in flags:
        result |= flag
    return result
