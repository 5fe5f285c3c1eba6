"""Texts, names and categories that try to break out of the page: they are shown, and nothing else happens."""

from collections.abc import Callable
from pathlib import Path

import pytest

Visit = Callable[..., object]


def names(seen: object) -> list[str]:
    return [str(name) for name in seen.page.evaluate("whyscore.load().ids")]


def test_markup_in_texts_is_text(visit: Visit, hostile: Path) -> None:
    seen = visit(hostile)
    seen.page.fill("#query", "onerror")
    seen.settle()
    shown = seen.page.inner_text("#segment .card.hypothesis .text >> nth=0")
    assert shown == "<script>alert('text')</script> and <img src=x onerror=alert(1)>"
    assert seen.page.locator("img").count() == 0
    assert seen.page.locator("script").count() == 2
    assert seen.page.inner_text("h1").endswith("<script>alert(5)</script>")
    assert seen.page.title() == f"{seen.page.inner_text('h1')} · whyscore"


def test_every_segment_can_be_shown_and_every_word_hovered(visit: Visit, hostile: Path) -> None:
    seen = visit(hostile)
    seen.page.select_option("#sort", "given")
    seen.settle()
    seen.page.focus("#list")
    expected = names(seen)
    assert len(expected) == 13
    seen.page.keyboard.press("Home")
    for name in expected:
        assert seen.page.inner_text("#segment h3") == f"Segment {name} in <doc>"
        for word in seen.page.locator("#segment .word").all()[:3]:
            word.hover()
        seen.page.keyboard.press("ArrowDown")


@pytest.mark.parametrize("name", ["script", "closing", "quotes", "bidi", "lines", "arabic", "chinese", "emoji", "nul"])
def test_texts_come_out_as_they_went_in(visit: Visit, hostile: Path, name: str) -> None:
    seen = visit(hostile)
    number = names(seen).index(f"{name}</script>")
    text = seen.page.evaluate(f"whyscore.load().texts[whyscore.load().hypotheses[0][{number}]]")
    seen.page.select_option("#sort", "given")
    seen.settle()
    seen.page.focus("#list")
    seen.page.keyboard.press("Home")
    for _ in range(number):
        seen.page.keyboard.press("ArrowDown")
    shown = seen.page.locator("#segment .card.hypothesis .text").first.evaluate("text => text.textContent")
    assert shown == text


def test_arabic_runs_from_the_right(visit: Visit, hostile: Path) -> None:
    seen = visit(hostile)
    seen.page.fill("#query", "السجادة")
    seen.settle()
    block = seen.page.locator("#segment .card.hypothesis .text").first
    assert block.evaluate("text => getComputedStyle(text).direction") == "rtl"


def test_chinese_is_coloured_by_the_character(visit: Visit, hostile: Path) -> None:
    seen = visit(hostile)
    seen.page.fill("#query", "晚餐")
    seen.settle()
    words = seen.page.locator("#segment .card.hypothesis >> nth=0").locator(".word").all_inner_texts()
    assert words[:3] == ["猫", "坐", "在"]


def test_words_with_emoji_are_cut_where_they_end(visit: Visit, hostile: Path) -> None:
    seen = visit(hostile)
    seen.page.fill("#query", "family")
    seen.settle()
    words = seen.page.locator("#segment .card.hypothesis >> nth=0").locator(".word").all_inner_texts()
    assert words == ["👩‍👩‍👧", "family", "😀", "ok", "🇩🇪", "flag", "é", "é"]


def test_a_direction_override_stays_inside_its_text(visit: Visit, hostile: Path) -> None:
    seen = visit(hostile)
    seen.page.fill("#query", "gnirts")
    seen.settle()
    block = seen.page.locator("#segment .card.hypothesis .text").first
    assert block.evaluate("text => getComputedStyle(text).unicodeBidi") == "isolate"


@pytest.mark.parametrize("width", [390, 1280])
def test_a_line_of_twenty_thousand_letters_does_not_widen_the_page(visit: Visit, hostile: Path, width: int) -> None:
    seen = visit(hostile, viewport={"width": width, "height": 800})
    seen.page.fill("#query", "unbroken")
    # The search waits for the end of typing; on a busy machine that may be after the page has settled.
    seen.page.locator("#segment h3", has_text="unbroken").wait_for(state="attached")
    seen.settle()
    assert len(seen.page.locator("#segment .text").nth(2).inner_text()) == 20_000
    assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_policy_stops_what_would_slip_through(hostile: Path, browser: object) -> None:
    page = browser.new_page()
    page.goto(hostile.as_uri())
    page.evaluate(
        """() => { const late = document.createElement('script'); late.textContent = 'window.slipped = true';
                   document.body.append(late); }"""
    )
    assert page.evaluate("window.slipped") is None
    page.close()
