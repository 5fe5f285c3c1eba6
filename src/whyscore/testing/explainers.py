"""The contract of explainers, as checks that name what was broken.

    from whyscore.testing.explainers import check_explainer

    def test_my_explainer_keeps_its_promises():
        check_explainer(MyExplainer())

`explain_masks` and `explain_text` run an explainer on one text as the engine does, without a metric object.
"""

import sys
from collections.abc import Callable, Sequence

import numpy as np

from whyscore.errors import ContractError
from whyscore.protocols import Explainer, HidesWords, Masker
from whyscore.text.maskers import Replace
from whyscore.text.randomness import generator
from whyscore.text.splitters import white_space
from whyscore.types import Evidence, Fit, FloatVector, KeepMasks, Words

Value = Callable[[KeepMasks], FloatVector]
"""A made-up metric in mask space: one score per mask."""

TextScore = Callable[[str], float]

SIZES = (0, 1, 2, 3, 8, 30, 300)


def check_explainer(explainer: Explainer, sizes: Sequence[int] = SIZES) -> None:
    """Raise `ContractError` at the first promise of the protocol that an explainer breaks, for texts of these sizes."""
    for member in ("rounds", "cost", "plan", "fit"):
        if not hasattr(explainer, member):
            raise ContractError(f"{_name(explainer)} lacks {member!r}, which every explainer has")
    for size in sizes:
        words = numbered_words(size)
        evidence = gather(explainer, words, wavy)
        _check_plans(explainer, evidence)
        _check_fit(explainer, evidence)
    _check_repeatable(explainer, max(sizes))
    _check_masker(explainer)


def explain_masks(explainer: Explainer, words: Words, value: Value, seed: int = 0) -> Fit:
    """Return what an explainer says of a text whose masks have these values."""
    return explainer.fit(gather(explainer, words, value, seed))


def explain_text(explainer: Explainer, words: Words, score: TextScore, seed: int = 0) -> Fit:
    """Return what an explainer says of a text under a function of texts, rendered by the explainer's masker."""
    masker: Masker = (explainer.masker if isinstance(explainer, HidesWords) else None) or Replace()

    def value(masks: KeepMasks) -> FloatVector:
        (probes,) = masker.render([(words, masks)])
        scores = np.array([score(text) for text in probes.texts], dtype=np.float64)
        if probes.rows is None:
            return scores
        weights = np.ones(len(scores)) if probes.weights is None else probes.weights
        sums = np.zeros(len(masks))
        np.add.at(sums, np.asarray(probes.rows, dtype=np.intp), weights * scores)
        return sums

    evidence = Evidence.whole(words, score(words.text), seed)
    return explainer.fit(_asked(explainer, evidence, value))


def gather(explainer: Explainer, words: Words, value: Value, seed: int = 0) -> Evidence:
    """Return all evidence that an explainer asks for, round by round."""
    whole = float(value(np.ones((1, len(words)), dtype=np.bool_))[0])
    return _asked(explainer, Evidence.whole(words, whole, seed), value)


def numbered_words(number: int) -> Words:
    """Return a text of that many different words.

    >>> numbered_words(3).text
    'w0 w1 w2'
    """
    return white_space(" ".join(f"w{k}" for k in range(number)))


def wavy(masks: KeepMasks) -> FloatVector:
    """Return values in which every word matters differently and neighbours interact."""
    effect = np.sin(1.0 + np.arange(masks.shape[1]))
    pairs = np.sum(masks[:, 1:] & masks[:, :-1], axis=1)
    result: FloatVector = masks @ effect + 0.1 * pairs
    return result


def _asked(explainer: Explainer, evidence: Evidence, value: Value) -> Evidence:
    for number in range(explainer.rounds):
        masks = explainer.plan(evidence, generator(evidence.seed, evidence.words.text, str(number)))
        _check_masks(explainer, masks, len(evidence.words))
        scores = value(masks) if len(masks) else np.zeros(0)
        evidence = _frozen(evidence.extend(masks, scores))
    return evidence


def _frozen(evidence: Evidence) -> Evidence:
    """Return the evidence with arrays that refuse to be written to."""
    evidence.masks.setflags(write=False)
    evidence.scores.setflags(write=False)
    return evidence


def _name(explainer: object) -> str:
    return type(explainer).__name__


def _check_masks(explainer: Explainer, masks: KeepMasks, words: int) -> None:
    shape = getattr(masks, "shape", None)
    if not isinstance(masks, np.ndarray) or masks.dtype != np.bool_ or masks.ndim != 2 or masks.shape[1] != words:  # noqa: PLR2004
        raise ContractError(
            f"{_name(explainer)}.plan: expected a boolean array, probes x {words} words, "
            f"got {type(masks).__name__} of shape {shape}"
        )


def _check_plans(explainer: Explainer, evidence: Evidence) -> None:
    words, asked = len(evidence.words), len(evidence.masks) - 1
    cost = explainer.cost(words)
    if asked > cost or (explainer.rounds <= 1 and asked != cost):
        raise ContractError(f"{_name(explainer)}: cost({words}) is {cost}, but {asked} probes were planned")
    if words == 0 and asked:
        raise ContractError(f"{_name(explainer)}: {asked} probes were planned for a text without words, expected none")
    if evidence.masks[1:].all(axis=1).any() and words:
        raise ContractError(f"{_name(explainer)}: the whole text was planned again; its score is row 0 of the evidence")


def _check_fit(explainer: Explainer, evidence: Evidence) -> None:
    words = len(evidence.words)
    fit = explainer.fit(evidence)
    importance = fit.importance
    if not isinstance(importance, np.ndarray) or importance.dtype != np.float64 or importance.shape != (words,):
        raise ContractError(f"{_name(explainer)}.fit: expected {words} float64 numbers, got {importance!r}")
    if not np.isfinite(importance).all():
        word = int(np.flatnonzero(~np.isfinite(importance))[0])
        raise ContractError(f"{_name(explainer)}.fit: importance of word {word} of {words} is {importance[word]}")
    if fit.spread is not None and fit.spread.shape != (words,):
        raise ContractError(f"{_name(explainer)}.fit: expected a spread of {words} numbers, got {fit.spread!r}")
    if not np.array_equal(explainer.fit(evidence).importance, importance):
        raise ContractError(f"{_name(explainer)}.fit: the same evidence gave two different answers")


def _check_repeatable(explainer: Explainer, size: int) -> None:
    """Check that what else was explained in between, and the global random numbers, make no difference."""
    words = numbered_words(size)
    first = gather(explainer, words, wavy)
    gather(explainer, numbered_words(size // 2), wavy)
    before = _global_state()
    second = gather(explainer, words, wavy)
    if not np.array_equal(first.masks, second.masks):
        raise ContractError(f"{_name(explainer)}.plan: the same text and seed gave different masks")
    if before != _global_state():
        raise ContractError(f"{_name(explainer)}.plan: draws from the global random numbers; use the generator given")


def _global_state() -> str:
    """Return the state of NumPy's global generator, which explainers leave alone."""
    with np.printoptions(threshold=sys.maxsize):
        return repr(np.random.get_state())  # noqa: NPY002 - looked at, not used


def _check_masker(explainer: Explainer) -> None:
    masker = explainer.masker if isinstance(explainer, HidesWords) else None
    if masker is None:
        return
    words = white_space(" a  cat\t")
    if not isinstance(masker, Masker):
        raise ContractError(f"{_name(explainer)}.masker: expected a masker, got {masker!r}")
    probes = masker.render([(words, np.ones((1, 2), dtype=np.bool_))])
    if len(probes) != 1 or not len(probes[0].texts):
        raise ContractError(f"{_name(explainer)}.masker: expected one answer per text, got {probes!r}")
