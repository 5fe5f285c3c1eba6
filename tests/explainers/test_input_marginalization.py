"""Input marginalisation: erasure against plausible words."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from whyscore.errors import SpecError
from whyscore.explainers.masks.erasure import Erasure, InputMarginalization
from whyscore.testing.checks import explain_masks, explain_text, numbered_words, wavy
from whyscore.text.infill import Infill, InfillFile
from whyscore.text.maskers import Delete, Replace
from whyscore.text.splitters import white_space

CANDIDATES = [
    {"text": "a cat sat", "word": 0, "candidate": "the", "probability": 0.6},
    {"text": "a cat sat", "word": 0, "candidate": "a", "probability": 0.2},
    {"text": "a cat sat", "word": 1, "candidate": "dog", "probability": 0.5},
    {"text": "a cat sat", "word": 1, "candidate": "mat", "probability": 0.00005},
    {"text": "a cat sat", "word": 2, "candidate": "ran", "probability": 0.9},
    {"text": "a cat sat", "word": 2, "candidate": "sat", "probability": 0.3},
]

VALUES = {
    "a cat sat": 1.0, "the cat sat": 0.8, "a dog sat": 0.4, "a mat sat": 0.0, "a cat ran": 0.5
}  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "candidates.jsonl"
    path.write_text("\n".join(map(json.dumps, CANDIDATES)) + "\n")
    return str(path)


def test_importance_is_the_score_less_the_mean_over_the_candidates(table: str) -> None:
    fit = explain_text(InputMarginalization(InfillFile(table)), white_space("a cat sat"), VALUES.__getitem__)
    expected = [1 - (0.6 * 0.8 + 0.2 * 1.0) / 0.8, 1 - 0.4, 1 - (0.9 * 0.5 + 0.3 * 1.0) / 1.2]
    assert fit.importance == pytest.approx(expected, abs=1e-15)


def test_compat_weighs_candidates_by_a_second_softmax(table: str) -> None:
    explainer = InputMarginalization(InfillFile(table), mode="compat")
    fit = explain_text(explainer, white_space("a cat sat"), VALUES.__getitem__)
    first, third = np.exp([0.6, 0.2]), np.exp([0.9, 0.3])
    expected = [1 - first @ [0.8, 1.0] / first.sum(), 1 - 0.4, 1 - third @ [0.5, 1.0] / third.sum()]
    assert fit.importance == pytest.approx(expected, abs=1e-15)


def test_options_of_the_explainer_reach_the_masker(table: str) -> None:
    explainer = InputMarginalization(InfillFile(table), threshold=1e-5, top=1, mode="compat")
    assert explainer.masker == InfillFile(table, threshold=1e-5, top=1, mode="compat")
    assert InputMarginalization(InfillFile(table, top=3)).masker == InfillFile(table, top=3)
    low = explain_text(InputMarginalization(InfillFile(table), threshold=1e-5), white_space("a cat sat"), VALUES.get)
    assert low.importance[1] == pytest.approx(1 - (0.5 * 0.4 + 0.00005 * 0.0) / 0.50005, abs=1e-15)


def test_with_a_plain_masker_it_is_erasure() -> None:
    words = white_space("a cat sat on it")
    lengths = [explain_text(explainer, words, lambda text: len(text) / 7).importance for explainer in (
        InputMarginalization(Delete()), Erasure()
    )]  # fmt: skip
    assert np.array_equal(*lengths)


def test_compat_explains_eighty_words_and_says_so() -> None:
    infill = Infill(corpus=("w0 w1 w2",), top=1)
    fit = explain_masks(InputMarginalization(infill, mode="compat"), numbered_words(82), wavy)
    assert np.isfinite(fit.importance[:80]).all()
    assert np.isnan(fit.importance[80:]).all()
    assert fit.flags == ("cut at 80 words",)
    assert InputMarginalization(infill, mode="compat").cost(82) == 80
    assert explain_masks(InputMarginalization(infill, mode="compat"), numbered_words(80), wavy).flags == ()


def test_options_that_the_masker_lacks_are_refused() -> None:
    message = "input_marginalization: Replace has no option top; take an infill masker, for instance masker=infill("
    with pytest.raises(SpecError, match=re.escape(message)):
        InputMarginalization(Replace(), top=3)
    with pytest.raises(SpecError, match=re.escape("infill: top is 0, expected 1 or more, or None for all")):
        InputMarginalization(Infill(corpus=("a",)), top=0)
