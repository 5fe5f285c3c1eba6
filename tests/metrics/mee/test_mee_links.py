"""The arithmetic of MEE: counts, credits, losses, and which word takes which."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyscore.metrics.mee.metric import Weights
from whyscore.metrics.mee.words import (
    CREDITS,
    Counts,
    Link,
    best_links,
    cosine_matrix,
    count_matches,
    credit_of,
    exact_links,
    first_links,
    losses,
    stem_links,
)


def f_measure(matches: int, hypothesis: int, reference: int) -> float:
    """F with beta = 3 from precision and recall."""
    if not matches or not hypothesis or not reference:
        return 0.0
    precision, recall = matches / hypothesis, matches / reference
    return precision * recall / (0.9 * precision + 0.1 * recall)


@st.composite
def alignments(draw: st.DrawFn, *, compat: bool) -> tuple[list[Link], int, int]:
    """Links that obey the rules of a mode, and the lengths of both texts."""
    own, other = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    places = draw(st.permutations(range(other)))
    exact = draw(st.integers(0, min(own, other)))
    most = min(own, other - exact) if compat else min(own, other) - exact
    others = draw(st.integers(0, most))
    kinds = draw(st.lists(st.sampled_from(["root", "synonym"]), min_size=others, max_size=others))
    links = [Link(k, places[k], "exact") for k in range(exact)]
    first = 0 if compat else exact
    links += [Link(first + k, places[exact + k], kind, 0.5) for k, kind in enumerate(kinds)]  # type: ignore[arg-type]
    return links, own, other


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5), st.integers(0, 9), st.integers(0, 9))
def test_the_closed_form_is_the_mean_of_three_f(exact: int, root: int, synonym: int, own: int, other: int) -> None:
    if not own or not other:
        exact = root = synonym = 0
    counts = Counts(exact, root, synonym, own, other)
    modules = [f_measure(matches, own, other) for matches in (exact, exact + root, exact + root + synonym)]
    assert counts.modules == pytest.approx(modules, abs=1e-14)
    assert counts.lms == pytest.approx(sum(modules) / 3, abs=1e-14)


@pytest.mark.parametrize("compat", [False, True])
def test_mee_never_exceeds_one(*, compat: bool) -> None:
    @given(alignments(compat=compat))
    def never(alignment: tuple[list[Link], int, int]) -> None:
        counts = count_matches(*alignment)
        assert counts.lms <= 1 + 1e-15
        assert max(counts.modules) <= (20 / 19 if compat else 1) + 1e-15

    never()


@pytest.mark.parametrize("compat", [False, True])
def test_credits_add_up_to_mee_and_losses_to_the_rest(*, compat: bool) -> None:
    @given(alignments(compat=compat))
    def add_up(alignment: tuple[list[Link], int, int]) -> None:
        links, own, other = alignment
        counts = count_matches(links, own, other)
        here, there = credit_of(links, own, on_hypothesis=True), credit_of(links, other, on_hypothesis=False)
        assert here.sum() / counts.denominator == pytest.approx(counts.lms, abs=1e-14)
        assert there.sum() / counts.denominator == pytest.approx(counts.lms, abs=1e-14)
        lost = losses(here, counts.denominator, on_hypothesis=True).sum()
        lost += losses(there, counts.denominator, on_hypothesis=False).sum()
        assert lost == pytest.approx(1 - counts.lms, abs=1e-13)

    add_up()


def test_equal_words_are_paired_in_order_and_once() -> None:
    links = exact_links(["the", "the", "cat"], ["a", "the", "cat", "cat"])
    assert [(link.hypothesis, link.reference) for link in links] == [(0, 1), (2, 2)]


def test_words_of_one_stem_take_the_nearest_place() -> None:
    links = stem_links({0: "cat", 4: "cat"}, {3: "cat"}, (5, 4))
    assert links == [Link(4, 3, "root")]


def test_the_best_pair_comes_first_whatever_stands_before() -> None:
    cosines = np.array([[0.42, 0.9]])
    assert best_links(cosines, ([0], [0, 1]), (1, 2), root=0.5, synonym=0.4) == [Link(0, 1, "root", 0.9)]
    assert first_links(cosines, ([0], [0, 1]), root=0.5, synonym=0.4) == [Link(0, 0, "synonym", 0.42)]


def test_equal_cosines_go_to_the_nearest_place_then_to_the_first() -> None:
    cosines = np.full((1, 3), 0.6)
    assert best_links(cosines, ([1], [0, 1, 2]), (3, 3), root=0.5, synonym=0.4)[0].reference == 1
    assert best_links(cosines[:, :2], ([1], [0, 2]), (3, 3), root=0.5, synonym=0.4)[0].reference == 0


def test_with_stems_every_cosine_is_a_synonym() -> None:
    assert best_links(np.array([[0.9]]), ([0], [0]), (1, 1), root=None, synonym=0.4)[0].kind == "synonym"


def test_unknown_words_match_nothing_even_below_zero() -> None:
    rows, known = np.array([[1.0], [0.0]]), np.array([True, False])
    cosines = cosine_matrix(rows, known, [0, 1], [0, 1])
    assert cosines.tolist() == [[1.0, -2.0], [-2.0, -2.0]]


@st.composite
def similarities(draw: st.DrawFn) -> np.ndarray:
    rows, columns = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    values = [draw(st.integers(0, 20)) / 20 for _ in range(rows * columns)]
    return np.array(values).reshape(rows, columns)


@given(similarities(), st.integers(0, 20), st.integers(0, 20), st.integers(0, 4), st.integers(0, 4))
def test_a_higher_threshold_never_raises_mee(cosines: np.ndarray, low: int, high: int, more: int, up: int) -> None:
    low, high = sorted((low, high))
    places = list(range(cosines.shape[0])), list(range(cosines.shape[1]))

    def mee(root: float, synonym: float) -> float:
        links = best_links(cosines, places, cosines.shape, root=root, synonym=synonym)
        return count_matches(links, *cosines.shape).lms

    before = mee(high / 20, low / 20)
    assert mee((high + up) / 20, low / 20) <= before
    assert mee((high + up + more) / 20, (low + min(up, more)) / 20) <= before


def test_credits_are_those_of_the_article() -> None:
    assert CREDITS == {"exact": 1.0, "root": 2 / 3, "synonym": 1 / 3}


@pytest.mark.parametrize(
    ("weights", "shares"),
    [(Weights(epsilon=1.0), (1 / 3, 1 / 6, 1 / 2)), (Weights(), (1 / 6, 1 / 12, 3 / 4))],
)
def test_the_published_weights_give_the_published_shares(weights: Weights, shares: tuple[float, ...]) -> None:
    assert weights.shares == pytest.approx(shares, abs=1e-15)


@pytest.mark.parametrize(("lms", "syn"), [(a / 10, b / 10) for a, b in product(range(11), repeat=2) if a + b <= 10])
def test_weights_come_back_from_their_shares(lms: float, syn: float) -> None:
    shares = (lms, syn, 1 - lms - syn)
    if lms + syn > 0:
        assert Weights.of_shares(*shares).shares == pytest.approx(shares, abs=1e-9)
    else:
        assert Weights.of_shares(*shares).shares == pytest.approx((0, 0, 1))


@given(
    st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(-1, 1)),
    st.tuples(st.floats(0.1, 5), st.floats(0, 5), st.floats(0, 5)),
)
def test_the_combined_score_is_the_sum_of_the_shares(
    parts: tuple[float, float, float], given_weights: tuple[float, float, float]
) -> None:
    (lms, syn, cxt), (alpha, gamma, epsilon) = parts, given_weights
    weights = Weights(alpha, gamma, 1.0, epsilon)
    combined = weights.combine(np.array([lms]), np.array([syn]), np.array([cxt]))
    assert combined[0] == pytest.approx(np.dot(weights.shares, (lms, syn, cxt)), abs=1e-12)
