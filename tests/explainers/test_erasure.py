"""Leave-one-out importance."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import rankdata

from whyscore.errors import SpecError
from whyscore.explainers.masks.erasure import Erasure, Random
from whyscore.explainers.masks.lime import Lime
from whyscore.protocols import Explainer
from whyscore.testing.checks import explain_masks, explain_text
from whyscore.text.maskers import Delete, Replace
from whyscore.text.splitters import white_space
from whyscore.types import FloatVector, KeepMasks

TokenF1 = Callable[[str, str], float]


def test_erasing_the_only_matching_word_takes_the_whole_score(token_f1: TokenF1) -> None:
    fit = explain_text(Erasure(), white_space("a cat"), lambda text: token_f1(text, "the cat"))
    assert fit.importance.tolist() == [0.5 - 2 / 3, 0.5]


def test_compat_leaves_the_blanks_of_a_hidden_word() -> None:
    seen: list[str] = []
    explain_text(Erasure(mode="compat"), white_space("a b c"), lambda text: float(bool(seen.append(text))))
    assert seen == ["a b c", " b c", "a  c", "a b "]


def test_compat_keeps_another_masker_as_it_is() -> None:
    assert Erasure(masker=Replace("_"), mode="compat").masker == Replace("_")
    assert Erasure().masker == Delete()


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(SpecError, match=re.escape("Erasure: mode is 'paper', expected 'default' or 'compat'")):
        Erasure(mode="paper")  # type: ignore[arg-type]


def test_stored_explanations_of_wmt17_are_reproduced(shipped: Path, token_f1: TokenF1) -> None:
    lines = (shipped / "boosting" / "explanations_tokenF1_wmt17_csen.jsonl").read_text().splitlines()
    assert len(lines) == 10
    for row in map(json.loads, lines):
        for side, other in (("reference", "hypothesis"), ("hypothesis", "reference")):
            for explainer in (Erasure(), Erasure(mode="compat")):
                fit = explain_text(explainer, white_space(row[side]), lambda text, r=row, o=other: token_f1(text, r[o]))
                assert np.abs(fit.importance - row[f"erasure_{side[:3]}"]).max() <= 1e-12


@pytest.mark.parametrize(("pair", "sentences", "erasure", "lime"), [
    ("et-en", 887, (0.9124, 0.8555), 0.925),
    ("ro-en", 654, (0.9421, 0.9089), 0.956),
])  # fmt: skip
def test_words_that_cost_points_are_the_words_that_people_mark(
    shipped: Path, pair: str, sentences: int, erasure: tuple[float, float], lime: float
) -> None:
    folder = shipped / "eval4nlp2021" / "dev" / pair
    found = [_measured(folder, explainer) for explainer in (Erasure(), Lime(), Random())]
    assert [number for number, _, _ in found] == [sentences] * 3
    assert found[0][1:] == pytest.approx(erasure, abs=5e-5)
    assert found[1][1] == pytest.approx(lime, abs=0.005)
    assert found[2][1] == pytest.approx(0.5, abs=0.02)


def _measured(folder: Path, explainer: Explainer) -> tuple[int, float, float]:
    """Return the sentences with both tags, and the mean AUC and average precision of the negated importances."""
    texts, edited, tags = ((folder / f"dev.{name}").read_text().splitlines() for name in ("mt", "pe", "tgt-tags"))
    areas, precisions = [], []
    for text, reference, tag in zip(texts, edited, tags, strict=True):
        wrong = np.array(tag.split()) == "1"
        if wrong.all() or not wrong.any():
            continue
        removed = isinstance(getattr(explainer, "masker", None), Delete)
        fit = explain_masks(explainer, white_space(text), _masked_f1(text, reference, removed=removed))
        areas.append(_area(-fit.importance, wrong))
        precisions.append(_precision(-fit.importance, wrong))
    return len(areas), float(np.mean(areas)), float(np.mean(precisions))


def _masked_f1(text: str, reference: str, *, removed: bool) -> Callable[[KeepMasks], FloatVector]:
    """Return token F1 in mask space, where hidden words are taken out or become tokens that match nothing."""
    words, target = text.split(), reference.split()
    kinds = sorted(set(words))
    one_hot = np.array([[word == kind for kind in kinds] for word in words], dtype=np.float64)
    limit = np.array([target.count(kind) for kind in kinds], dtype=np.float64)

    def value(masks: KeepMasks) -> FloatVector:
        common = np.minimum(masks @ one_hot, limit).sum(axis=1)
        length = masks.sum(axis=1) if removed else len(words)
        return 2 * common / (length + len(target))

    return value


def _area(score: FloatVector, wrong: KeepMasks) -> float:
    number = wrong.sum()
    return float((rankdata(score)[wrong].sum() - number * (number + 1) / 2) / (number * (len(wrong) - number)))


def _precision(score: FloatVector, wrong: KeepMasks) -> float:
    """Average precision with tied scores taken as one step, as scikit-learn does."""
    steps = np.unique(-score)
    at_least = score[np.newaxis, :] >= -steps[:, np.newaxis]
    hits = (at_least & wrong).sum(axis=1)
    gained = np.diff(hits, prepend=0) / wrong.sum()
    return float(np.sum(gained * hits / at_least.sum(axis=1)))
