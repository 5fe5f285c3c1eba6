"""Words made visible."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyscore import marking


def contrast(strength: float) -> float:
    letters = 0.0 if marking.ink(strength) == "#000000" else 1.0
    lighter, darker = sorted((letters, marking._luminance(marking.colour(strength))), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@given(st.floats(-1, 1))
def test_letters_can_be_read_on_every_colour(strength: float) -> None:
    assert contrast(strength) >= 4.5


def test_zero_is_white_and_the_ends_are_told_apart_without_red_and_green() -> None:
    assert marking.colour(0) == marking.WHITE
    assert marking.colour(-1) == marking.COSTS
    assert marking.colour(1) == marking.EARNS


def test_strengths_are_relative_to_the_largest() -> None:
    assert marking.strengths([2, -4]) == [0.5, -1.0]
    assert marking.strengths([2, -4], largest=8) == [0.25, -0.5]
    assert marking.strengths([0, 0]) == [0, 0]
    assert marking.strengths([]) == []
    assert marking.strengths([math.nan, 1]) == [0, 1]


@given(st.text(max_size=30), st.data())
def test_pieces_give_the_text_back(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    spans = [(a, b) for a, b in zip(cuts[::2], cuts[1::2], strict=False)]
    assert "".join(piece for piece, _ in marking.pieces(text, spans)) == text
    assert [piece for piece, number in marking.pieces(text, spans) if number is not None] == [
        text[a:b] for a, b in spans
    ]


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", '"><img src=x onerror=1>', "'&amp;"])
def test_hostile_text_is_escaped(text: str) -> None:
    html = str(marking.html(text, [(0, len(text))], [1.0]))
    assert "<script" not in html
    assert "<img" not in html
    assert html.count("<span") == 1
