"""The spec parser, the aligner and the span converters answer to anything with a value or an error of their own."""

import json
import os
from collections import Counter
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyscore.data.formats import dialects
from whyscore.data.formats.dialects import OFFSETS, Lists
from whyscore.data.formats.mqm import carry_span, strip_marks
from whyscore.data.formats.spans import BadSpan, spans_of
from whyscore.errors import SpecError, UserError, WhyscoreError
from whyscore.registry import build, parse, spec_of
from whyscore.stats.spans import Marked, Thresholds, combine, judge_spans, otsu, to_levels, to_spans
from whyscore.text.alignment import Pieces, align, find_uncovered, pool_words
from whyscore.text.splitters import white_space
from whyscore.types import ErrorSpan, Segment

TIMES = int(os.environ.get("FUZZ", "1"))
"""FUZZ=10 looks at ten times as many examples, others each time."""
MANY = settings(max_examples=settings.default.max_examples * 3 // 2 * TIMES)

# Any characters, halves of pairs included, as JSON can bring them.
texts = st.text(st.characters(exclude_categories=()), max_size=20)
words = st.lists(st.sampled_from(["a", "bb", "né", "日本", "😀", "\u00a0", " ", "\t", "\ud800"]), max_size=8).map(
    "".join
)
atoms = st.sampled_from(["chrf", "lime", "replace", "(", ")", ",", "=", "'", '"', "-", "1", "0.5", "nan", "inf", "\n",
                         "lambda", "**", "*", "a.b", "[", "]", "{", "}", ":", "x.py:f", "é", "\x00", "\\", "#",
                         "samples", "9" * 500, "1e999", "(" * 300, "-" * 3000, "f''", "None", "True"])  # fmt: skip
specs = st.one_of(texts, st.lists(atoms, max_size=10).map("".join))
values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 30) | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["start", "end", "x"]), inner),
    max_leaves=6,
)
keys = st.sampled_from(
    ["start", "end", "start_i", "end_i", "severity", "category", "text", "side", "reference", "score", "confidence"]
)
items = st.lists(st.dictionaries(keys, values, max_size=6) | values, max_size=3)
severities = st.sampled_from(["minor", "major", "critical", None])


@MANY
@given(specs)
def test_every_spec_is_read_or_refused(text: str) -> None:
    with suppress(SpecError):
        found = parse(text)
        assert parse(str(found)) == found or "nan" in str(found)


@MANY
@given(specs, st.sampled_from(["metric", "explainer", "masker", "splitter", "tagger", "executor"]))
def test_every_spec_is_built_or_refused(text: str, kind: str) -> None:
    with suppress(UserError):
        spec_of(build(text, kind=kind))


@MANY
@given(items, words, st.sampled_from(OFFSETS))
def test_every_list_of_spans_is_converted_or_refused(
    given_items: list[object], text: str, unit: dialects.Offsets
) -> None:
    notes = Counter[str]()
    for convert in (
        lambda: dialects.xcomet_spans(given_items, text, notes),
        lambda: dialects.pearmut_spans(given_items, text, notes, unit),
        lambda: dialects.mtme_spans({"errors": given_items}, Segment(text, text), notes),
        lambda: spans_of(given_items, Segment(text, text, (text,))),
        lambda: spans_of(json.dumps(given_items), Segment(text, text, (text,))),
    ):
        with suppress(BadSpan):
            for span in convert() or ():
                assert 0 <= span.start <= span.end <= len(text)


@MANY
@given(
    st.tuples(texts, texts, texts),
    st.lists(st.sampled_from(["1", "2", "-1", "x", "9", "٣", "²", " "]), max_size=4),
    words,
)
def test_every_row_of_numbers_is_converted_or_refused(
    cells: tuple[str, str, str], numbers: list[str], text: str
) -> None:
    joined = " ".join(numbers)
    for lists in (Lists(*cells), Lists(joined, joined, " ".join("minor" for _ in numbers))):
        with suppress(BadSpan):
            dialects.wmtqe_spans(lists, text, Counter())


@st.composite
def marked(draw: st.DrawFn) -> tuple[str, tuple[ErrorSpan, ...]]:
    text = draw(words)
    found = []
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(text)))
        found.append(ErrorSpan(start, draw(st.integers(start, len(text))), draw(severities)))
    return text, tuple(found)


@MANY
@given(marked(), st.sampled_from(OFFSETS))
def test_every_span_can_be_written_and_judged(case: tuple[str, tuple[ErrorSpan, ...]], unit: dialects.Offsets) -> None:
    text, spans = case
    lost = Counter[str]()
    dialects.xcomet_items(spans, text, lost)
    dialects.pearmut_items(spans, text, lost, unit)
    dialects.wmtqe_lists(spans, text, lost)
    dialects.mtme_rating(spans, lost)
    for how in ("union", "intersection"):
        for span in combine([spans, spans[:1]], len(text), how):
            assert 0 <= span.start <= span.end <= len(text)
    found = judge_spans([Marked(len(text), spans, spans[:1])])
    assert all(np.isnan(share) or 0 <= share <= 1 for share in (found.characters.precision, found.credit.recall))
    split = white_space(text)
    for touch in ("any", "half", "all"):
        with suppress(SpecError):
            assert to_levels(split, spans, touch).shape == (len(split),)  # type: ignore[arg-type]


@MANY
@given(words, st.lists(st.floats(allow_nan=False, width=32), max_size=9))
def test_every_row_of_scores_becomes_spans(text: str, scores: list[float]) -> None:
    split = white_space(text)
    given_scores = np.resize(np.array(scores or [0.0]), len(split))
    if np.isfinite(given_scores).all():
        otsu(given_scores)
    for span in to_spans(split, given_scores, Thresholds(minor=0.0, major=1.0)):
        assert 0 <= span.start < span.end <= len(text)


@MANY
@given(texts, texts)
def test_every_marked_text_gives_spans_inside_it(text: str, other: str) -> None:
    found = strip_marks(f"{text}<v>{other}</v>{text}<v>")
    for start, end in found.spans:
        assert 0 <= start <= end <= len(found.text)
        assert 0 <= carry_span(found.text, (start, end), other)[0] <= len(other)


@MANY
@given(
    text=words,
    spans=st.lists(st.tuples(st.integers(-2, 12), st.integers(-2, 12)), max_size=8),
    marks=st.lists(st.sampled_from(["▁", "Ġ", "a", "", "##b", "\ud800"]), min_size=8, max_size=8),
    flags=st.lists(st.booleans(), min_size=8, max_size=8),
    seen=st.none() | st.integers(0, 12),
    pool=st.sampled_from(["mean", "sum", "max", "min", "first"]),
    fill=st.sampled_from(["error", "previous", "next", "median", "value", "null"]),
)
def test_every_piece_is_aligned_or_refused(
    text: str, spans: list[tuple[int, int]], marks: list[str], flags: list[bool], seen: int | None, pool: str, fill: str
) -> None:
    split, count = white_space(text), len(spans)
    pieces = Pieces(spans, marks[:count], flags[:count], seen)
    with suppress(WhyscoreError):
        pairs = align(split, pieces)
        assert ((pairs.word >= 0) & (pairs.word < len(split))).all()
        assert ((pairs.share >= 0) & (pairs.share <= 1)).all()
        find_uncovered(text, spans)
    with suppress(WhyscoreError):
        found = pool_words(split, pieces, np.arange(count, dtype=float), pool=pool, fill=fill)  # type: ignore[arg-type]
        assert found.values.shape == (len(split),)


@pytest.mark.parametrize("spans", [[(0, 9)], [(-1, 1)], [(2, 1)]])
def test_uncovered_refuses_pieces_outside_their_text(spans: list[tuple[int, int]]) -> None:
    with pytest.raises(WhyscoreError, match="pieces reach outside their text of 4 characters"):
        find_uncovered("a bc", spans)
