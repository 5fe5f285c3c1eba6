"""N-grams, shared runs and common subsequences, against their definitions."""

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import _backtrack_norec, _lcs_table

from whyscore.metrics.lexical import rouge as lcs
from whyscore.metrics.lexical import rows as run_counts
from whyscore.metrics.lexical.ngrams import Table, count_matches, credit, table, token_grams
from whyscore.metrics.lexical.rows import Pairs, shared_runs

TEXT = st.text(st.sampled_from("ab狗"), max_size=12)
WORDS = st.lists(st.sampled_from(["a", "cat", "sat", "aa"]), max_size=10)


def overlap(first: Counter[object], second: Counter[object]) -> int:
    return (first & second).total()


def widest(texts: list[str], n: int) -> Table:
    """Return for each n-gram the largest count any text has, BLEU's rule for several references."""
    counts: Counter[tuple[str, ...]] = Counter()
    for text in texts:
        counts |= Counter(token_grams(text, n)[n - 1])
    return table(list(counts.elements()))


@given(TEXT, TEXT)
def test_matches_are_the_overlap_of_the_counts(first: str, second: str) -> None:
    for one, other in zip(token_grams(first, 3), token_grams(second, 3), strict=True):
        assert count_matches(one, table(other)) == overlap(Counter(one), Counter(other))


@given(TEXT, TEXT)
def test_credit_adds_up_to_the_matches(first: str, second: str) -> None:
    for one, other in zip(token_grams(first, 3), token_grams(second, 3), strict=True):
        shares = credit(one, table(other))
        assert np.isclose(shares.sum(), count_matches(one, table(other)))
        assert ((shares >= 0) & (shares <= 1)).all()


def test_word_pairs_never_join_into_other_words() -> None:
    assert count_matches(token_grams(["a b", "c"], 2)[1], table(token_grams(["a", "b c"], 2)[1])) == 0


@settings(max_examples=200)
@given(st.lists(st.tuples(st.lists(TEXT, min_size=1, max_size=3), st.lists(TEXT, min_size=1, max_size=4)), max_size=4))
def test_shared_runs_of_characters_are_the_overlaps_of_every_pair(groups: list[tuple[list[str], list[str]]]) -> None:
    pairs = Pairs(
        [fixed for fixed, _ in groups],
        [text for _, moving in groups for text in moving],
        [number for number, (_, moving) in enumerate(groups) for _ in moving],
    )
    expected = [
        [count_matches(grams, widest(pairs.fixed[group], n)) for n, grams in enumerate(token_grams(moving, 4), start=1)]
        for moving, group in zip(pairs.moving, pairs.group, strict=True)
    ]
    assert shared_runs(pairs, 4).tolist() == expected


@given(WORDS, WORDS)
def test_shared_runs_of_words_are_the_overlaps(fixed: list[str], moving: list[str]) -> None:
    expected = [
        overlap(Counter(one), Counter(other))
        for one, other in zip(token_grams(fixed, 3), token_grams(moving, 3), strict=True)
    ]
    assert shared_runs(Pairs([[fixed]], [moving], [0]), 3).tolist() == [expected]


def test_batches_do_not_change_a_count(monkeypatch) -> None:  # noqa: ANN001 - pytest's
    fixed = [["banana bread", "bread"], [""], ["ananas"]]
    moving = ["banana", "nab", "", "bread and butter", "ananas", "sanana", "x"]
    group = [2, 0, 1, 0, 2, 0, 1]
    whole = shared_runs(Pairs(fixed, moving, group), 5)
    for size in (1, 7, 30):
        monkeypatch.setattr(run_counts, "_BATCH", size)
        assert shared_runs(Pairs(fixed, moving, group), 5).tolist() == whole.tolist()


def test_a_lone_surrogate_is_a_character_like_others() -> None:
    assert shared_runs(Pairs([["a\ud800b"]], ["\ud800b"], [0]), 2).tolist() == [[2, 1]]


@given(WORDS, WORDS)
def test_the_length_of_a_common_subsequence_is_that_of_the_table(reference: list[str], hypothesis: list[str]) -> None:
    found = lcs.length(lcs.masks(reference), len(reference), hypothesis)
    assert found == _lcs_table(reference, hypothesis)[-1][-1]


@given(WORDS, WORDS)
def test_the_places_of_a_common_subsequence_are_those_rouge_finds(reference: list[str], hypothesis: list[str]) -> None:
    found = lcs.pairs(reference, hypothesis)
    assert [i for i, _ in found] == _backtrack_norec(_lcs_table(reference, hypothesis), reference, hypothesis)
    assert all(reference[i] == hypothesis[j] for i, j in found)
    assert [j for _, j in found] == sorted({j for _, j in found})
