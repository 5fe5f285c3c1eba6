"""Several annotators of the same words: how far they agree, how good one of them would be as a system, shares as gold.

1. Agreement: kappa per sentence and pair, and pooled (`stats.annotators`).
2. The human ceiling: each annotator's tags judged against the majority of the others.
3. Continuous gold: each system's scores against the share of annotators who marked a word.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from whyscore.analysis.metaeval.gold import Annotators
from whyscore.analysis.metaeval.words import Judging, SystemResult, judge
from whyscore.data.files import read_lines
from whyscore.data.formats.eval4nlp import Gold, GoldSide, Judged, Scored, Submission, refuse
from whyscore.data.formats.word_lines import tag_lines
from whyscore.data.naming import system_names
from whyscore.errors import DataError
from whyscore.stats.annotators import PairAgreement, continuous, majority, pair_agreements, shares
from whyscore.stats.words import Ragged


@dataclass(frozen=True, slots=True)
class ContinuousResult:
    """Means over the sentences where they are defined."""

    pearson: float
    spearman: float
    weighted_auc: float
    n: int


@dataclass(frozen=True, eq=False)
class AnnotationResult:
    """What several annotators say of each other."""

    names: tuple[str, ...]
    pairs: Mapping[Judged, Mapping[tuple[str, str], PairAgreement]]
    ceiling: tuple[SystemResult, ...]

    def kappa(self, side: Judged, kind: str = "sentence") -> float:
        """Return the mean kappa over pairs, per sentence or pooled."""
        values = [getattr(pair, kind) for pair in self.pairs[side].values()]
        known = [value for value in values if not np.isnan(value)]
        return sum(known) / len(known) if known else float("nan")


def read_annotators(paths: Sequence[str | Path]) -> Annotators:
    """Return the tags of the target in one file per annotator."""
    tags = []
    for path in paths:
        parsed = tag_lines(read_lines(path), str(path))
        refuse([finding for finding in parsed.findings if finding.error])
        tags.append(parsed.values)
    return Annotators(tuple(system_names(paths)), {"target": tuple(tags)})


def gold_by_majority(annotators: Annotators, gold: Gold | None = None, name: str = "annotators") -> Gold:
    """Return gold whose target tags are the majority; texts and sentence scores come from `gold`, if given."""
    if "target" not in annotators.tags:
        raise DataError("the annotators tagged no target words: nothing to judge")
    tags = majority(annotators.tags["target"])
    if gold is None:
        return Gold(name, "eval4nlp2021", GoldSide(tags, name))
    if not np.array_equal(tags.lengths, gold.target.tags.lengths):
        raise DataError(f"the annotators tagged other sentences or words than {gold.name} has: align them first")
    return replace(gold, target=GoldSide(tags, name, gold.target.words))


def annotation(annotators: Annotators, gold: Gold, how: Judging | None = None) -> AnnotationResult:
    """Return how far annotators agree, and each judged as a system against the majority of the others."""
    pairs: dict[Judged, dict[tuple[str, str], PairAgreement]] = {}
    for side, tags in annotators.tags.items():
        found = pair_agreements(tags)
        pairs[side] = {(annotators.names[i], annotators.names[j]): pair for (i, j), pair in found.items()}
    return AnnotationResult(annotators.names, pairs, _ceiling(annotators, gold, how or Judging()))


def against_shares(annotators: Annotators, result: SystemResult) -> dict[Judged, ContinuousResult]:
    """Return how well a system's scores follow the share of annotators who marked a word."""
    found: dict[Judged, ContinuousResult] = {}
    for side, tags in annotators.tags.items():
        own = result.sides.get(side)
        if own is None or own.scores is None:
            continue
        gold = shares(tags)
        if np.array_equal(gold.lengths, own.scores.lengths):
            found[side] = _means(gold, own.scores)
    return found


def _means(gold: Ragged, scores: Ragged) -> ContinuousResult:
    values = continuous(gold, scores)
    known = [column[~np.isnan(column)] for column in values]
    pearson, spearman, weighted = (float(column.mean()) if len(column) else float("nan") for column in known)
    return ContinuousResult(pearson, spearman, weighted, len(known[-1]))


def _ceiling(annotators: Annotators, gold: Gold, how: Judging) -> tuple[SystemResult, ...]:
    """Return each annotator against the others; with two there is one other, whose word is taken."""
    tags = annotators.tags["target"]
    found = []
    for k, name in enumerate(annotators.names):
        others = [*tags[:k], *tags[k + 1 :]]
        against = majority(others) if len(others) > 1 else others[0]
        seen = (tags[k].lengths > 0) & (against.lengths > 0)
        side = GoldSide(against.chosen(seen), gold.target.file)
        scored = Scored(tags[k].chosen(seen), name)
        one = Submission(f"annotator {name}", {"target": scored})
        found.append(judge(Gold(gold.name, gold.task, side), one, replace(how, drop_eos=False), baseline=True))
    return tuple(found)
