"""The page in a real browser: it clicks, filters, hovers, resizes, prints, and says nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest

Visit = Callable[..., object]


def test_the_page_opens_with_the_worst_segment_chosen(visit: Visit, ordinary: Path) -> None:
    seen = visit(ordinary)
    assert seen.page.title().endswith(" on ordinary · whyscore")
    assert seen.page.inner_text("#count") == "12 of 12 segments"
    assert seen.page.locator("#list .row[aria-selected=true]").count() == 1
    assert seen.page.inner_text("#segment h3") == f"Segment {seen.rows[0]}"
    assert seen.page.locator("#segment .card.hypothesis").count() == 3


def test_a_click_opens_a_segment_and_the_address_remembers_it(visit: Visit, ordinary: Path) -> None:
    seen = visit(ordinary)
    seen.page.select_option("#sort", "given")
    seen.settle()
    seen.page.click("#list .row >> nth=3")
    assert seen.page.inner_text("#segment h3") == "Segment s3"
    assert seen.page.url.endswith("#segment=s3&sort=given")
    assert seen.page.inner_text("#where") == "4 of 12"


def test_an_address_with_a_segment_opens_it(ordinary: Path, browser: object) -> None:
    page = browser.new_page()
    page.goto(f"{ordinary.as_uri()}#segment=s7")
    assert page.inner_text("#segment h3") == "Segment s7"
    page.close()


def test_the_search_keeps_what_holds_the_word(visit: Visit, ordinary: Path) -> None:
    seen = visit(ordinary)
    seen.page.fill("#query", "frogs")
    seen.settle()
    assert seen.page.inner_text("#count") == "4 of 12 segments"
    assert sorted(seen.rows) == ["s0", "s3", "s6", "s9"]
    seen.page.fill("#query", "no such word")
    seen.settle()
    assert seen.page.is_visible("#nothing")
    seen.page.click("#controls button[type=reset]")
    seen.settle()
    assert seen.page.inner_text("#count") == "12 of 12 segments"


def test_scores_filter_and_sort(visit: Visit, ordinary: Path) -> None:
    seen = visit(ordinary)
    seen.page.select_option("#system", label="mine")
    seen.page.fill("#low", "99.9")
    seen.settle()
    assert seen.page.inner_text("#count") == "8 of 12 segments"
    seen.page.fill("#low", "")
    seen.page.fill("#high", "99.9")
    seen.settle()
    assert sorted(seen.rows) == ["s0", "s3", "s6", "s9"]
    seen.page.fill("#high", "")
    seen.page.select_option("#sort", "worst")
    seen.settle()
    values = [float(text) for text in seen.page.locator("#list .row .score").all_inner_texts()]
    worst = min(values)
    assert seen.page.locator("#list .row[aria-selected=true] .score").count() == 1
    assert worst < 99.9


def test_errors_filter_by_presence_severity_and_category(visit: Visit, ordinary: Path) -> None:
    seen = visit(ordinary)
    seen.page.select_option("#system", label="mine")
    seen.page.select_option("#error", "none")
    seen.settle()
    assert seen.page.inner_text("#count") == "12 of 12 segments"
    seen.page.select_option("#error", "some")
    seen.settle()
    assert seen.page.inner_text("#count") == "0 of 12 segments"
    seen.page.select_option("#system", label="base")
    seen.page.select_option("#error", label="Accuracy/Mistranslation")
    seen.settle()
    assert seen.page.inner_text("#count") == "12 of 12 segments"
    assert seen.page.inner_text("#segment .error.major >> nth=0") == "bat"


def test_features_filter_by_what_is_missing(visit: Visit, ordinary: Path) -> None:
    seen = visit(ordinary)
    seen.page.select_option("#feature", label="too few: number")
    seen.page.select_option("#system", label="third")
    seen.settle()
    assert seen.page.inner_text("#count") == "12 of 12 segments"
    seen.page.select_option("#system", label="mine")
    seen.settle()
    assert seen.page.inner_text("#count") == "0 of 12 segments"


def test_comparing_two_systems_shows_both_alone_and_marks_where_they_differ(visit: Visit, ordinary: Path) -> None:
    seen = visit(ordinary)
    seen.page.select_option("#system", label="mine")
    seen.page.select_option("#other", label="base")
    seen.page.fill("#query", "s1")
    seen.settle()
    assert seen.page.locator("#segment .card.hypothesis .who").all_inner_texts() == ["mine", "base"]
    assert seen.page.locator("#segment .differs").all_inner_texts() == ["cat", "bat"]


def test_hovering_a_word_tells_its_value_and_shows_its_counterpart(visit: Visit, ordinary: Path) -> None:
    seen = visit(ordinary)
    seen.page.select_option("#system", label="base")
    seen.settle()
    card = seen.page.locator("#segment .card.hypothesis", has=seen.page.locator(".who", has_text="base"))
    card.locator(".word", has_text="mat").first.hover()
    assert seen.page.inner_text("#word").startswith("mat · ")
    assert seen.page.locator("#segment .card.reference .partner").all_inner_texts() == ["mat"]
    card.locator(".word", has_text="bat").first.hover()
    told = seen.page.inner_text("#word")
    assert "costs" in told
    assert "human: major, Accuracy/Mistranslation" in told
    assert seen.page.locator("#segment .partner").count() == 0


def test_colour_follows_the_sign(visit: Visit, ordinary: Path) -> None:
    seen = visit(ordinary)
    seen.page.select_option("#system", label="base")
    seen.settle()
    word = seen.page.locator("#segment .card.hypothesis >> nth=0").locator(".word", has_text="bat").first
    assert "costs" in word.get_attribute("class")
    background = word.evaluate("word => getComputedStyle(word).backgroundColor")
    assert background not in ("rgba(0, 0, 0, 0)", "transparent")


def test_the_keyboard_is_enough(visit: Visit, ordinary: Path) -> None:
    seen = visit(ordinary)
    seen.page.select_option("#sort", "given")
    seen.settle()
    seen.page.focus("#list")
    for key, expected in (("End", "s11"), ("Home", "s0"), ("ArrowDown", "s1"), ("ArrowUp", "s0")):
        seen.page.keyboard.press(key)
        assert seen.page.inner_text("#segment h3") == f"Segment {expected}"
    chosen = seen.page.get_attribute("#list", "aria-activedescendant")
    assert seen.page.get_attribute(f"#{chosen}", "aria-selected") == "true"
    for _ in range(3):  # previous, next, then the first word of the source
        seen.page.keyboard.press("Tab")
    assert seen.page.evaluate("document.activeElement.textContent") == "Quelle"
    before = seen.page.inner_text("#word")
    seen.page.keyboard.press("ArrowRight")
    assert seen.page.inner_text("#word") not in ("", before)


def test_every_control_has_a_name_for_screen_readers(visit: Visit, ordinary: Path) -> None:
    seen = visit(ordinary)
    nameless = seen.page.evaluate(
        """() => [...document.querySelectorAll('button, select, input, a, [role=listbox], [role=group], [tabindex]')]
            .filter(one => one.offsetParent !== null && !one.closest('.text .word'))
            .filter(one => !one.textContent.trim() && !one.getAttribute('aria-label')
                && !(one.labels && one.labels.length) && !one.getAttribute('aria-labelledby'))
            .map(one => one.outerHTML.slice(0, 100))"""
    )
    assert nameless == []
    assert seen.page.get_attribute("html", "lang") == "en"
    assert seen.page.locator("h1").count() == 1


@pytest.mark.parametrize("width", [320, 390, 768, 1280, 2000])
def test_nothing_is_wider_than_the_screen(visit: Visit, ordinary: Path, width: int) -> None:
    seen = visit(ordinary, viewport={"width": width, "height": 800})
    assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    seen.page.set_viewport_size({"width": 400, "height": 800})
    assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_theme_follows_the_system_and_the_button(visit: Visit, ordinary: Path) -> None:
    seen = visit(ordinary, color_scheme="dark")

    def background() -> str:
        return str(seen.page.evaluate("getComputedStyle(document.body).backgroundColor"))

    dark = background()
    seen.page.click("#theme")
    light = background()
    assert seen.page.inner_text("#theme") == "Theme: light"
    assert light != dark
    seen.page.click("#theme")
    assert seen.page.inner_text("#theme") == "Theme: dark"
    assert background() == dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read_on_their_colours(visit: Visit, ordinary: Path, scheme: str) -> None:
    seen = visit(ordinary, color_scheme=scheme)
    worst = seen.page.evaluate(CONTRAST)
    assert worst >= 4.5  # WCAG 2 AA for text


CONTRAST = """() => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const over = (colour, base) => {
    canvas.fillStyle = `rgb(${base.join()})`; canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b; };
  const page = over(getComputedStyle(document.body).backgroundColor, [255, 255, 255]);
  let worst = 99;
  for (const word of document.querySelectorAll('#segment .word, .legend .word')) {
    const card = word.closest('.card');
    const base = card ? over(getComputedStyle(card).backgroundColor, page) : page;
    const back = light(over(getComputedStyle(word).backgroundColor, base));
    const ink = light(over(getComputedStyle(word).color, base));
    worst = Math.min(worst, (Math.max(back, ink) + .05) / (Math.min(back, ink) + .05));
  }
  return worst;
}"""


def test_on_paper_the_controls_are_gone_and_the_segment_is_whole(visit: Visit, ordinary: Path, tmp_path: Path) -> None:
    seen = visit(ordinary)
    seen.page.emulate_media(media="print")
    for hidden in ("#controls", "#list", ".top", "#theme"):
        assert not seen.page.is_visible(hidden)
    assert seen.page.is_visible("#segment .card >> nth=0")
    seen.page.emulate_media(media="screen")
    printed = seen.page.pdf()
    assert printed.startswith(b"%PDF")
    (tmp_path / "report.pdf").write_bytes(printed)
    assert len(printed) > 10_000


def test_a_word_of_the_list_leads_to_its_segment(visit: Visit, ordinary: Path) -> None:
    seen = visit(ordinary)
    link = seen.page.locator("#words [data-segment]").first
    target, word = link.get_attribute("data-segment"), link.get_attribute("data-query")
    link.click()
    seen.settle()
    assert seen.page.input_value("#query") == word
    assert seen.page.inner_text("#segment h3") == f"Segment {target}"


def test_without_scripts_the_tables_are_still_there(ordinary: Path, browser: object) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(ordinary.as_uri())
    assert "base" in page.inner_text("#systems")
    assert "needs JavaScript" in page.inner_text("#segments")
    context.close()


def test_two_runs_open_with_old_against_new_and_what_got_worse_on_top(visit: Visit, changed: Path) -> None:
    seen = visit(changed)
    assert sorted(seen.rows[:2]) == ["1", "4"]
    assert seen.page.locator("#segment .card.hypothesis .who").all_inner_texts() == ["new: base", "old: base"]
    assert seen.page.locator("#segment .differs").all_inner_texts() == ["sat"]
    seen.page.click("#controls button[type=reset]")
    seen.settle()
    assert seen.page.inner_text("#count") == "6 of 6 segments"
