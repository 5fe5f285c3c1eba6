"""IBM model 1: probabilities worked out by hand, files that come back, files that are refused."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyscore.errors import DataError
from whyscore.models.lexicon import FLOOR, Lexicon, learn_lexicon, read_lexicon, tokens, write_lexicon
from whyscore.types import Side

SOURCES, TARGETS = ["das haus", "das buch", "ein buch"], ["the house", "the book", "a book"]


def naive(sources: list[str], targets: list[str], rounds: int = 5) -> dict[tuple[str, str], float]:
    """Return p(target | source) by EM in plain loops, the empty word among the sources."""
    pairs = [(["", *s.split()], t.split()) for s, t in zip(sources, targets, strict=True)]
    table = {(s, t): 1.0 for here, there in pairs for s in here for t in there}
    for _ in range(rounds):
        counts = dict.fromkeys(table, 0.0)
        for here, there in pairs:
            for t in there:
                total = sum(table[s, t] for s in here)
                for s in here:
                    counts[s, t] += table[s, t] / total
        sums = {s: sum(count for (other, _), count in counts.items() if other == s) for s, _ in counts}
        table = {pair: count / sums[pair[0]] for pair, count in counts.items()}
    return table


def test_probabilities_are_those_of_em_in_plain_loops_in_both_directions() -> None:
    lexicon = learn_lexicon(SOURCES, TARGETS, least=0.0)
    words = ["the", "house", "book", "a"], ["das", "haus", "buch", "ein"]
    forth = naive(SOURCES, TARGETS)
    expected = [[forth.get((source, target), 0.0) for source in ("", *words[1])] for target in words[0]]
    assert lexicon.table(*words) == pytest.approx(np.array(expected), rel=1e-6)
    back = naive(TARGETS, SOURCES)
    expected = [[back.get((target, source), 0.0) for target in ("", *words[0])] for source in words[1]]
    assert lexicon.table(words[1], words[0], Side.SOURCE) == pytest.approx(np.array(expected), rel=1e-6)


def test_links_are_the_best_word_and_the_mean_over_all_with_the_empty_one() -> None:
    lexicon = learn_lexicon(SOURCES, TARGETS, least=0.0)
    table = lexicon.table(["house"], ["das", "haus"])[0]
    links = lexicon.links(["House.", "zebra", "the"], ["Das", "Haus"])
    assert links.best[0] == pytest.approx(np.log(table[1:].max()))
    assert links.total[0] == pytest.approx(np.log(table.mean()))
    assert np.isnan(links.best[1])
    assert np.isnan(links.total[1])
    assert lexicon.links(["book"], []).best == pytest.approx([np.log(FLOOR)])
    assert not len(lexicon.links([], ["das"]).best)


def test_tokens_meet_in_tokenised_and_plain_text() -> None:
    assert tokens("treatment.") == tokens("treatment") == ("treatment",)
    assert tokens(".") == (".",)
    assert tokens("医院") == ("医", "院")


@pytest.mark.parametrize("name", ["lexicon.npz", "lexicon.tsv"])
def test_a_lexicon_comes_back_from_its_file(tmp_path: Path, name: str) -> None:
    lexicon = learn_lexicon(SOURCES, TARGETS)
    write_lexicon(lexicon, tmp_path / name)
    found = read_lexicon(tmp_path / name)
    assert (found.words[0], set(found.words)) == ("", set(lexicon.words))
    own, other = ["the", "house"], ["das", "haus"]
    for side in (Side.HYPOTHESIS, Side.SOURCE):
        words = (own, other) if side is Side.HYPOTHESIS else (other, own)
        assert found.table(*words, side) == pytest.approx(lexicon.table(*words, side), rel=1e-5)
    if name.endswith("npz"):
        assert found.digest == lexicon.digest


def test_a_table_without_the_second_direction_gets_it_from_the_first(tmp_path: Path) -> None:
    (tmp_path / "lexicon.tsv").write_text("Haus\thouse\t0.6\nheim\thouse\t0.2\n\tthe\t0.5\n", "utf-8")
    found = read_lexicon(tmp_path / "lexicon.tsv")
    assert found.table(["house", "the"], ["haus"]) == pytest.approx(np.array([[0.0, 0.6], [0.5, 0.0]]))
    assert found.table(["haus", "heim"], ["house"], Side.SOURCE)[:, 1] == pytest.approx([0.75, 0.25])


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("l.tsv", b"", "is empty"),
        ("l.tsv", b"haus\thouse\n", "l.tsv:1: expected source, target and probability between tabs, found 2 columns"),
        ("l.tsv", b"haus\thouse\thigh\n", "l.tsv:1: expected a probability, found 'high'"),
        ("l.tsv", b"haus\thouse\t0.1\nein\ta\t7\n", "l.tsv:2: expected a probability from 0 to 1, found 7"),
        ("l.npz", b"PK\x03\x04 damaged", "cannot be read as a lexicon"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=re.escape(told)):
        read_lexicon(tmp_path / name)


def test_arrays_that_do_not_match_their_digest_are_refused(tmp_path: Path) -> None:
    lexicon = learn_lexicon(SOURCES, TARGETS)
    words = np.frombuffer("\n".join(lexicon.words).encode(), dtype=np.uint8)
    changed, digest = np.minimum(lexicon.probabilities * 2, 1), np.array(lexicon.digest)
    np.savez(tmp_path / "l.npz", words=words, pairs=lexicon.pairs, probabilities=changed, digest=digest)
    with pytest.raises(DataError, match="do not match its digest"):
        read_lexicon(tmp_path / "l.npz")


def test_what_cannot_be_learned_from_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="1 sources, 0 targets"):
        learn_lexicon(["a"], [])
    with pytest.raises(DataError, match="no pair of texts"):
        learn_lexicon(["a", ""], ["", "b"])
    with pytest.raises(DataError, match="no such lexicon"):
        read_lexicon(tmp_path / "absent.npz")


WORDS = st.lists(st.sampled_from(["a", "b", "c", ".", "它", "7"]), min_size=1, max_size=5).map(" ".join)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=6))
def test_probabilities_of_every_word_sum_to_one(pairs: list[tuple[str, str]]) -> None:
    lexicon: Lexicon = learn_lexicon([s for s, _ in pairs], [t for _, t in pairs], least=0.0)
    for column in (0, 1):
        sums = np.bincount(lexicon.pairs[:, column], lexicon.probabilities[:, column])
        there = np.unique(lexicon.pairs[lexicon.probabilities[:, column] > 0, column])
        assert sums[there] == pytest.approx(1.0, abs=1e-5)
