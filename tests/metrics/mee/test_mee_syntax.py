"""The n-gram part of MEE2 and MEE4: equal to NLTK, fast, and without overflow."""

import math
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyscore.metrics.mee.parts import Codes, characters, order, syntactic

FOLDER = Path("mee") / "wmt22"
REFERENCE, SYSTEM = "generaltest2022.en-ru.ref.A.ru", "generaltest2022.en-ru.hyp.Online-G.ru"


def lines(shared: Path, name: str) -> list[str]:
    return (shared / FOLDER / name).read_text("utf-8").split("\n")[:-1]


def syn(hypothesis: str, reference: str) -> float:
    return float(syntactic([(characters(hypothesis), characters(reference))])[0])


def slow(hypothesis: str, reference: str) -> float:
    """The formula as it stands, every n-gram a string, in log space."""
    h, r = len(hypothesis), len(reference)
    if not h or not r:
        return 0.0
    n, missing, total = max(1, math.ceil(r / 3)), 0, 0.0
    for k in range(1, n + 1):
        own = Counter(hypothesis[i : i + k] for i in range(h - k + 1))
        other = Counter(reference[i : i + k] for i in range(r - k + 1))
        matched = (own & other).total()
        grams = max(1, h - k + 1)
        if matched:
            total += math.log(matched / grams)
        elif k == 1:
            return 0.0
        elif h > 1:
            missing += 1
            total += math.log(math.log(h)) - math.log(5) - missing * math.log(2) - math.log(grams)
    return (1.0 if h > r else math.exp(1 - r / h)) * math.exp(total / n)


def nltk_bleu(hypothesis: str, reference: str) -> float:
    bleu = pytest.importorskip("nltk.translate.bleu_score")
    n = order(len(reference))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(
            bleu.sentence_bleu(
                [reference],
                hypothesis,
                weights=[1 / n] * n,
                smoothing_function=bleu.SmoothingFunction().method4,
            )
        )


@pytest.mark.parametrize(
    ("reference", "hypothesis", "n", "value"),
    [
        ("abc", "abc", 1, 1.0),
        ("ab", "ba", 1, 1.0),
        ("abcd", "a", 2, 0.049787068367863944),
        ("abcdef", "abcxyz", 2, 0.447213595499958),
        ("кот спит", "кот ест", 3, 0.4815621371540807),
        ("a", "b", 1, 0.0),
    ],
)
def test_the_table_of_hand_cases(reference: str, hypothesis: str, n: int, value: float) -> None:
    assert order(len(reference)) == n
    assert syn(hypothesis, reference) == pytest.approx(value, abs=1e-15)


@pytest.mark.parametrize(("hypothesis", "reference"), [("", "abc"), ("abc", ""), ("", "")])
def test_an_empty_side_has_no_syntax(hypothesis: str, reference: str) -> None:
    assert syn(hypothesis, reference) == 0.0


@given(st.lists(st.tuples(st.text("ab ", max_size=30), st.text("ab ", max_size=30)), max_size=6))
def test_fast_and_slow_counting_agree(pairs: list[tuple[str, str]]) -> None:
    fast = syntactic([(characters(hypothesis), characters(reference)) for hypothesis, reference in pairs])
    np.testing.assert_allclose(fast, [slow(*pair) for pair in pairs], rtol=1e-12, atol=1e-300)


@given(st.text("abc", min_size=1, max_size=40), st.text("abc", min_size=1, max_size=40))
def test_nltk_says_the_same(hypothesis: str, reference: str) -> None:
    assert syn(hypothesis, reference) == pytest.approx(nltk_bleu(hypothesis, reference), abs=1e-13)


@given(st.text(min_size=1, max_size=60))
def test_identical_texts_have_one(text: str) -> None:
    assert syn(text, text) == 1.0


@given(st.lists(st.tuples(st.text("ab", max_size=12), st.text("ab", max_size=12)), min_size=1, max_size=5))
def test_company_changes_nothing(pairs: list[tuple[str, str]]) -> None:
    coded = [(characters(hypothesis), characters(reference)) for hypothesis, reference in pairs]
    alone = [float(syntactic([pair])[0]) for pair in coded]
    assert syntactic(coded).tolist() == alone
    assert syntactic(coded[::-1]).tolist() == alone[::-1]


def test_blocks_of_many_pairs_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [(characters("abcab" * k), characters("abcba" * k)) for k in range(1, 9)]
    whole = syntactic(pairs)
    assert whole[0] > 0
    monkeypatch.setattr("whyscore.metrics.mee.parts._BLOCK", 7)
    assert syntactic(pairs).tolist() == whole.tolist()


@pytest.mark.parametrize("length", [2_000, 10_000])
def test_long_texts_do_not_overflow(length: int) -> None:
    rng = np.random.default_rng(0)
    text = "".join(map(chr, rng.integers(97, 123, length)))
    other = "".join(map(chr, rng.integers(97, 123, length)))
    assert syn(text, text) == 1.0
    assert syn(text + "a", text) == pytest.approx(1.0, abs=1e-3)
    assert 0 <= syn(other, text) < 1e-100
    assert syn(text[: length // 2] + other[length // 2 :], text) > 0


def test_the_published_syntax_of_wmt22_comes_out(shared: Path) -> None:
    pairs = list(zip(lines(shared, SYSTEM), lines(shared, REFERENCE), strict=True))
    values = syntactic([(characters(own.strip()), characters(other.strip())) for own, other in pairs])
    assert values.mean() == pytest.approx(0.2234162079415596, abs=1e-12)


def test_syntax_over_white_space_words_does_not_fit_the_published_files(shared: Path) -> None:
    numbers: dict[str, int] = {}

    def words(text: str) -> Codes:
        return np.array([numbers.setdefault(word, len(numbers)) for word in text.split()], dtype=np.int64)

    pairs = zip(lines(shared, SYSTEM), lines(shared, REFERENCE), strict=True)
    values = syntactic([(words(own), words(other)) for own, other in pairs])
    assert values.mean() == pytest.approx(0.22556656175927173, abs=1e-12)


def test_it_is_at_least_fifteen_times_as_fast_as_nltk(shipped: Path) -> None:
    folder = shipped / "eval4nlp2021" / "dev" / "et-en"
    texts = ((folder / f"dev.{name}").read_text("utf-8").splitlines()[::20] for name in ("mt", "pe"))
    pairs = list(zip(*texts, strict=True))
    nltk_bleu("a", "a")
    start = time.perf_counter()
    theirs = [nltk_bleu(own, other) for own, other in pairs]
    middle = time.perf_counter()
    ours = syntactic([(characters(own), characters(other)) for own, other in pairs])
    end = time.perf_counter()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-13)
    assert (middle - start) / (end - middle) > 15
