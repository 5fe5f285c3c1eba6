"""The arithmetic of matching, and what it says of words: cases by hand, and properties."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyscore.analysis.explain import explain
from whyscore.errors import DataError, SpecError
from whyscore.metrics.controls import Length
from whyscore.metrics.matching import bertscore
from whyscore.metrics.matching.bertscore import BertScore, XBertScore
from whyscore.metrics.matching.words import WordOptions, text_pair, word_scores
from whyscore.models import matching
from whyscore.models.encoders.embedded import Embedded
from whyscore.models.matching import (
    Sided,
    by_phrases,
    by_pieces,
    cosines,
    harmonic,
    lengths_of,
    match,
    match_table,
    numbers,
    spread,
)
from whyscore.protocols import Encoded
from whyscore.registry import build, spec_of
from whyscore.text.splitters import white_space
from whyscore.types import HYPOTHESIS, SOURCE, Place, Segment, Side, Signature, Words


class Given:
    """An encoder with prescribed vectors; each piece is a letter, with a special piece at both ends where asked."""

    def __init__(self, vectors: dict[str, list[float]], ends: tuple[str, ...] = ()) -> None:
        self.vectors, self.ends = vectors, ends

    def signature(self) -> Signature:
        return Signature("given")

    def languages(self) -> None: ...

    def encode(self, texts: list[str]) -> list[Encoded]:
        return [self._encoded(text) for text in texts]

    def pooled(self, texts: list[str]) -> np.ndarray:
        raise NotImplementedError

    def _encoded(self, text: str) -> Encoded:
        letters = [(letter, (k, k + 1)) for k, letter in enumerate(text) if letter != " "]
        begin = [(piece, (0, 0)) for piece in self.ends[:1]]
        end = [(piece, (len(text), len(text))) for piece in self.ends[1:]]
        rows = [*begin, *letters, *end]
        special = [*(True for _ in begin), *(False for _ in letters), *(True for _ in end)]
        vectors = np.array([self.vectors[piece] for piece, _ in rows], dtype=np.float32).reshape(-1, 2)
        spans = np.array([span for _, span in rows], dtype=np.int64).reshape(-1, 2)
        pieces = tuple(piece for piece, _ in rows)
        return Encoded(vectors, spans, pieces, np.array(special, dtype=np.bool_), len(rows))


class Fixed:
    """An encoder that says the same of every text."""

    def __init__(self, encoded: Encoded) -> None:
        self.encoded = encoded

    def encode(self, texts: list[str]) -> list[Encoded]:
        return [self.encoded for _ in texts]


BOTH = (HYPOTHESIS, SOURCE)
EAST, NORTH, WEST, NOWHERE = [2.0, 0.0], [0.0, 3.0], [-1.0, 0.0], [0.0, 0.0]


def sided(text: str, specials: str = "weightless", ends: tuple[str, ...] = (), **vectors: list[float]) -> Sided:
    encoder = Given(vectors, ends)
    return by_pieces([text], encoder, specials)[0]  # type: ignore[arg-type]


def test_each_unit_counts_with_its_best_counterpart() -> None:
    other = sided("ab", a=EAST, b=NORTH)
    hypothesis = sided("aac", a=EAST, c=[1.0, 1.0])
    pair = match(other, hypothesis)
    assert pair is not None
    np.testing.assert_allclose(pair.hypothesis.similarity, [1, 1, np.sqrt(0.5)])
    np.testing.assert_allclose(pair.other.similarity, [1, np.sqrt(0.5)])
    found = numbers(pair, other.weights, hypothesis.weights)
    precision, recall = (2 + np.sqrt(0.5)) / 3, (1 + np.sqrt(0.5)) / 2
    np.testing.assert_allclose(found, [precision, recall, 2 * precision * recall / (precision + recall)])


def test_a_unit_whose_similarities_are_all_negative_keeps_its_maximum() -> None:
    pair = match(sided("ab", a=EAST, b=NORTH), sided("w", w=[-3.0, -4.0]))
    assert pair is not None
    np.testing.assert_allclose(pair.hypothesis.similarity, [-0.6])


def test_a_zero_vector_is_like_nothing_and_f_of_nothing_is_zero() -> None:
    pair = match(sided("z", z=NOWHERE), sided("a", a=EAST))
    assert pair is not None
    assert pair.hypothesis.similarity.tolist() == pair.other.similarity.tolist() == [0.0]
    assert harmonic(0.0, 0.0) == harmonic(0.5, -0.5) == 0.0


@pytest.mark.parametrize(
    ("specials", "units", "best"), [("weightless", 3, 1.0), ("include", 3, 1.0), ("exclude", 1, 0.0)]
)
def test_special_pieces_match_without_weight_or_are_gone_or_count(specials: str, units: int, best: float) -> None:
    other = sided("b", specials, ("<s>", "</s>"), b=NORTH, **{"<s>": EAST, "</s>": WEST})
    hypothesis = sided("a", specials, ("<s>", "</s>"), a=EAST, **{"<s>": NORTH, "</s>": NORTH})
    pair = match(other, hypothesis)
    assert pair is not None
    assert len(pair.hypothesis.similarity) == units
    own = pair.hypothesis.similarity[~hypothesis.special]
    np.testing.assert_allclose(own, [best])
    assert hypothesis.weights.sum() == (3 if specials == "include" else 1)


def test_a_language_code_counts_though_it_is_special() -> None:
    text = sided("a", "weightless", ("en_XX", "</s>"), a=EAST, en_XX=NORTH, **{"</s>": WEST})
    assert text.weights.tolist() == [1.0, 1.0, 0.0]
    alone = sided("", "include", ("en_XX", "</s>"), en_XX=NORTH, **{"</s>": WEST})
    assert alone.empty


def test_an_end_without_a_beginning_counts_as_for_t5() -> None:
    encoded = Given({"a": EAST, "</s>": WEST}, ("</s>", "</s>")).encode(["a"])[0]
    without = Encoded(*(part[1:] for part in encoded[:4]), 2)  # type: ignore[arg-type]
    (text,) = by_pieces(["a"], Fixed(without), "weightless")  # type: ignore[arg-type]
    assert text.weights.tolist() == [1.0, 1.0]


def test_runs_are_spread_over_their_units() -> None:
    np.testing.assert_allclose(spread(np.array([1.0, 2.0, 6.0]), 4), [1.0, 1.5, 4.0, 6.0])
    np.testing.assert_allclose(spread(np.array([5.0]), 3), [5.0, 5.0, 5.0])


vectors = st.lists(st.lists(st.floats(-2, 2, width=32), min_size=3, max_size=3), min_size=1, max_size=6)


def plain(rows: list[list[float]], weights: list[float] | None = None) -> Sided:
    array = np.array(rows, dtype=np.float32)
    number = len(array)
    return Sided(
        "x" * number,
        np.array([(k, k + 1) for k in range(number)], dtype=np.int64),
        ("x",) * number,
        np.ones(number) if weights is None else np.array(weights),
        np.zeros(number, dtype=np.bool_),
        (number,),
        array,
        lengths_of(array),
    )


@given(vectors, vectors)
def test_numbers_lie_between_minus_one_and_one_and_turn_round(
    left: list[list[float]], right: list[list[float]]
) -> None:
    here, there = plain(left), plain(right)
    found = numbers(match(here, there), here.weights, there.weights)
    turned = numbers(match(there, here), there.weights, here.weights)
    assert max(map(abs, found[:2])) <= 1 + 1e-6
    np.testing.assert_allclose([found.precision, found.recall, found.f], [turned.recall, turned.precision, turned.f])


@given(vectors.filter(lambda rows: all(any(abs(x) > 1e-3 for x in row) for row in rows)), st.randoms())
def test_a_text_is_fully_similar_to_any_order_of_itself(rows: list[list[float]], random: object) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    here, there = plain(rows), plain(shuffled)
    np.testing.assert_allclose(numbers(match(here, there), here.weights, there.weights), 1, atol=1e-6)


@given(vectors, vectors)
def test_more_of_the_other_text_never_lowers_precision(left: list[list[float]], right: list[list[float]]) -> None:
    short, long, text = plain(left[:1]), plain(left), plain(right)
    few, many = match(short, text), match(long, text)
    assert few is not None
    assert many is not None
    assert (many.hypothesis.similarity >= few.hypothesis.similarity - 1e-12).all()


TEXTS = [
    "The cat sat on the mat.",
    "  two  blanks and a\u00a0hard one ",
    "an ﬁligree ligature",
    "emoji 🐈‍⬛ and e\u0301 marks",
    "我喜欢狗。 and dogs",
    "one",
]


@pytest.mark.parametrize(
    "spec", ["bertscore(model=embedded, phrases=0", "bertscore(model=static", "xbertscore(phrases=2"]
)
@pytest.mark.parametrize("text", TEXTS)
def test_contributions_add_up_to_precision_and_recall(spec: str, text: str) -> None:
    metric = build(f"{spec}, scale=contribution, fill=null)")
    segment = Segment(text, "Die Katze saß auf der alten Matte.", ("A cat was sitting on an old mat 🐈‍⬛",))
    precision, recall, _ = metric.statistics([segment])[0]
    for one in explain([segment], metric, "matching"):
        expected = precision if one.place == HYPOTHESIS else recall
        outside = re.search(r"; (\S+) belongs to no word", (one.notes or ("",))[0])
        other = float(outside[1]) if outside else 0.0
        assert np.nansum(one.importance) + other == pytest.approx(expected, abs=1e-6)


def test_two_texts_are_matched_once_for_the_score_and_the_words_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    matched = []
    monkeypatch.setattr(matching, "cosines", lambda *both: matched.append(both) or cosines(*both))
    bertscore.reader_of.cache_clear()
    metric = XBertScore()
    segments = [Segment("a small cat", "eine kleine Katze"), Segment("a small cat", "eine Katze"), Segment("", "ein")]
    asked = [*segments, *segments[::-1]]
    scores = metric.score(asked)
    words = {place: metric.word_scores(asked, place, [white_space(one.text(place)) for one in asked]) for place in BOTH}
    assert len(matched) == 2
    # Nothing is remembered of these.
    for number, segment in enumerate(asked):
        bertscore.reader_of.cache_clear()
        assert metric.score([segment]).tolist() == [scores[number]]
        for place in BOTH:
            bertscore.reader_of.cache_clear()
            (alone,) = metric.word_scores([segment], place, [white_space(segment.text(place))])
            together = words[place][number]
            assert alone.importance.tolist() == together.importance.tolist()
            assert (alone.notes, alone.matches) == (together.notes, together.matches)


@pytest.mark.parametrize("runs", [(4,), (4, 3, 2)])
def test_each_unit_finds_the_run_with_the_largest_cosine(runs: tuple[int, ...]) -> None:
    table = np.random.default_rng(0).integers(-3, 4, size=(sum(runs), 5)) / 4  # with ties, of which the first counts
    found, turned = match_table(table, runs, (5,))
    for unit in range(runs[0]):
        row = table[unit].tolist()
        assert (found.best[unit], found.cosine[unit]) == (row.index(max(row)), max(row))
    for unit in range(5):
        column = table[:, unit].tolist()
        assert (turned.best[unit], turned.cosine[unit]) == (column.index(max(column)), max(column))
        assert turned.similarity[unit] == max(column)


def test_what_belongs_to_no_word_is_told() -> None:
    own = sided("ab", "weightless", ("en_XX", "</s>"), a=EAST, b=NORTH, en_XX=NORTH, **{"</s>": WEST})
    other = sided("a", a=EAST)
    found = text_pair(match(other, own), other, own, SOURCE, turned=False)
    importance, notes, _ = word_scores(white_space("ab"), found, WordOptions("mean", "error", "contribution", None))
    assert importance.tolist() == [pytest.approx(1 / 3)]
    assert notes == ("source: a [0:1] 1.0000",)
    other = sided("b", b=NORTH)
    found = text_pair(match(other, own), other, own, SOURCE, turned=False)
    _, notes, _ = word_scores(white_space("ab"), found, WordOptions("mean", "error", "contribution", None))
    assert notes == ("source: b [0:1] 1.0000; 0.333333 belongs to no word",)


def test_words_are_the_mean_of_their_pieces_and_know_their_counterpart() -> None:
    own, other = sided("ab c", a=EAST, b=NORTH, c=NORTH), sided("x  y", x=EAST, y=[0.6, 0.8])
    found = text_pair(match(other, own), other, own, SOURCE, turned=False)
    answer = word_scores(white_space("ab c"), found, WordOptions("mean", "error", "similarity", None))
    np.testing.assert_allclose(answer.importance, [0.9, 0.8], atol=1e-6)
    assert answer.notes == ("source: x [0:1] 1.0000", "source: y [3:4] 0.8000")
    (first,), (second,) = answer.matches or ()
    assert (first.text, first.partner_text, first.start, first.end) == ("ab", "x", 0, 1)
    assert (second.text, second.partner_text, second.start, second.end) == ("c", "y", 3, 4)
    assert (second.similarity, second.partner_place(HYPOTHESIS)) == (pytest.approx(0.8), SOURCE)
    for pool, expected in (("max", 1.0), ("min", 0.8), ("first", 1.0), ("sum", 1.8)):
        pooled = word_scores(white_space("ab c"), found, WordOptions(pool, "error", "similarity", None))  # type: ignore[arg-type]
        assert pooled.importance[0] == pytest.approx(expected, abs=1e-6)
    turned = text_pair(match(other, own), other, own, HYPOTHESIS, turned=True)
    back = word_scores(white_space("x  y"), turned, WordOptions("mean", "error", "similarity", 0.5))
    np.testing.assert_allclose(back.importance, [1.0, 0.6], atol=1e-6)
    assert back.notes == ("hypothesis: ab [0:2] 1.0000", "hypothesis: ab [0:2] 0.8000")


def test_a_special_piece_as_counterpart_has_no_offsets() -> None:
    own = sided("a", a=EAST)
    other = sided("b", "weightless", ("[CLS]", "[SEP]"), b=NORTH, **{"[CLS]": EAST, "[SEP]": WEST})
    found = text_pair(match(other, own), other, own, Place(Side.REFERENCE, 0), turned=False)
    answer = word_scores(white_space("a"), found, WordOptions("mean", "error", "similarity", None))
    assert answer.notes == ("reference 1: [CLS] 1.0000",)
    ((one,),) = answer.matches or ()
    assert (one.label, one.partner_text, one.start, one.end) == ("similar", "[CLS]", None, None)


def test_a_word_without_a_piece_is_refused_or_filled() -> None:
    own, other = sided("a", a=EAST), sided("b", b=EAST)
    found = text_pair(match(other, own), other, own, SOURCE, turned=False)
    words = Words("a \u200b", ((0, 1), (2, 3)))
    with pytest.raises(
        DataError, match=re.escape("1 word(s) of 'a \\u200b' have no piece, first '\\u200b'; choose fill=")
    ):
        word_scores(words, found, WordOptions("mean", "error", "similarity", None))
    filled = word_scores(words, found, WordOptions("mean", "previous", "similarity", None))
    assert filled.importance.tolist() == [1.0, 1.0]
    assert filled.notes == ("source: b [0:1] 1.0000", "no_piece, filled")
    assert [len(own) for own in filled.matches or ()] == [1, 0]


def test_word_scores_come_from_the_reference_with_the_best_f_and_say_which() -> None:
    segment = Segment("a small dog", None, ("it rains today", "a little dog"))
    found = explain([segment], "bertscore(model=embedded)", "matching")
    assert [str(one.place) for one in found] == ["hypothesis", "reference 1", "reference 2"]
    assert all(note.startswith("reference 2: ") for note in found[0].notes or ())
    assert [(own[0].alignment, own[0].partner_text) for own in found[0].matches or ()] == [
        (1, "a"),
        (1, "little"),
        (1, "dog"),
    ]
    assert (found[0].matches or ())[0][0].partner_place(HYPOTHESIS) == Place(Side.REFERENCE, 1)
    assert all(note.startswith("hypothesis: ") for one in found[1:] for note in one.notes or ())


def test_matches_slice_the_other_text() -> None:
    segment = Segment("The cat sat on the mat.", "Die Katze saß auf der Matte.")
    for spec in ("xbertscore", "xbertscore(phrases=0, specials=exclude)"):
        for one in explain([segment], spec, "token_matching"):
            for (found,) in one.matches or ():
                assert segment.text(found.partner_place(one.place))[found.start : found.end] == found.partner_text
    (cat,) = [note for note in explain([segment], "xbertscore", "matching")[0].notes or () if "Katze" in note]
    assert cat.startswith("source: Katze [4:9] 0.")


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("hospital for treatment .", ["hospital", "for", "treatment", "."]),
        ('He said , " yes " .', ["He", "said", ",", '"', "yes", '"', "."]),
        ("它 ， 很 好 。", ["它", "，", "很", "好", "。"]),
        ("hallo !! ! welt .", ["hallo", "!!", "!", "welt", "."]),
    ],
)
def test_punctuation_of_tokenised_text_is_a_unit_of_its_own(text: str, units: list[str]) -> None:
    (sided,) = by_phrases([text], Embedded(), 3)
    assert list(sided.pieces) == units


TOKENS = st.lists(
    st.text(st.sampled_from("aZ9é.,!?\"'-(它这カのไ한бß\u0301´¨½ﬁ"), min_size=1, max_size=4), min_size=1, max_size=6
)


@settings(max_examples=200, deadline=None)
@given(TOKENS, st.sampled_from([" ", "  ", "\t", "\u3000", "\n", " \u00a0"]))
def test_every_white_space_token_has_units_of_its_own(words: list[str], blank: str) -> None:
    text = blank.join(words)
    (encoded,) = Embedded().encode([text])
    (sided,) = by_phrases([text], Embedded(), 3)
    pieces = [(start, end) for start, end in encoded.spans[~encoded.special].tolist() if text[start:end].strip()]
    for start, end in white_space(text).spans:
        touching = [(a, b) for a, b in sided.spans.tolist() if a < end and b > start and text[a:b].strip()]
        assert all(not text[a:start].strip() and not text[end:b].strip() for a, b in touching)
        # A token that the model reads as nothing at all has no unit.
        assert touching or not any(a < end and b > start for a, b in pieces)


def test_phrases_of_one_script_without_blanks_are_made_of_pieces() -> None:
    (one,) = explain([Segment("I like dogs", "我喜欢狗。")], "xbertscore", "matching", sides=["hypothesis"])
    assert [own[0].partner_text for own in one.matches or ()] == ["我", "喜欢", "狗"]


def test_any_words_can_be_asked_about() -> None:
    metric, segment = XBertScore(), Segment("我喜欢狗。", "I like dogs.")
    letters = explain([segment], metric, "matching", sides=["hypothesis"], unit="char")[0]
    assert len(letters.importance) == 5
    assert np.isfinite(letters.importance).all()


def test_a_text_that_is_not_read_cannot_be_explained() -> None:
    with pytest.raises(SpecError, match="bertscore does not read the source: explain the hypothesis or a reference"):
        BertScore("embedded").word_scores([Segment("a", "b", ("c",))], SOURCE, [white_space("b")])
    with pytest.raises(SpecError, match="xbertscore does not read the reference: explain the hypothesis or the source"):
        XBertScore().word_scores([Segment("a", "b", ("c",))], Place(Side.REFERENCE, 0), [white_space("c")])


def test_the_explainer_is_called_as_it_was_asked_for() -> None:
    segment = Segment("a dog", "ein Hund")
    for name in ("matching", "tagging", "token_matching"):
        (one,) = explain([segment], "xbertscore", name, sides=["hypothesis"])
        assert one.signature.spec == name == spec_of(build(name, "explainer"))
    with pytest.raises(SpecError, match="has no word scores of its own"):
        explain([Segment("a")], Length(), "matching")
