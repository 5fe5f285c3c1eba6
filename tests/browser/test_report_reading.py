"""What a reader does in the first minute: read the verdict, take a step, look at words, numbers and matches."""

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from whyscore.data.formats.text import read_texts
from whyscore.report import build_report
from whyscore.report.page import html
from whyscore.runs.evaluate import EvaluateSettings, evaluate
from whyscore.types import Dataset, Entry, Segment

Visit = Callable[..., object]

pytestmark = pytest.mark.xdist_group("browser")
REFERENCES = tuple(f"the {word} cat sat on the mat" for word in ("old", "big", "red", "fat", "new"))


@pytest.fixture(scope="module")
def matched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of a metric of word matches, with five references and long names."""
    folder = tmp_path_factory.mktemp("matched")
    entries = [
        Entry(f"document-{k}-of-a-very-long-name-indeed", system, Segment(text, None, REFERENCES))
        for k in range(3)
        for system, text in (("one", "the old cats sat on a mat"), ("two", "the big cat sat on the mats"))
    ]
    data = Dataset("matched", tuple(entries), ("xx", "en"))
    run = evaluate(data, ["mee(words=None, language='en')"], output=folder / "run", settings=EvaluateSettings(draws=20))
    page = folder / "report.html"
    page.write_text(html(build_report(run)), "utf-8")
    (folder / "outside.html").write_text(html(build_report(run, texts=False)), "utf-8")
    return page


def test_the_headline_stands_first(visit: Visit, ordinary: Path) -> None:
    seen = visit(ordinary)
    assert (
        seen.page.inner_text("#verdict .lead")
        == "mine is significantly better than both other systems on both metrics."
    )
    assert seen.page.locator("#verdict .said").first.inner_text().startswith("chrf: mine scores highest (")


def test_a_step_sets_the_controls_and_goes_to_the_segments(visit: Visit, ordinary: Path) -> None:
    seen = visit(ordinary)
    seen.page.fill("#query", "no such word")
    seen.settle()
    seen.page.click(".next button >> text=differ most")
    assert seen.page.eval_on_selector("#system", "one => one.selectedOptions[0].text") == "mine"
    assert seen.page.eval_on_selector("#other", "one => one.selectedOptions[0].text") == "base"
    assert seen.page.input_value("#sort") == "spread"
    assert seen.page.input_value("#query") == ""
    assert seen.page.locator("#list .row >> nth=0").get_attribute("aria-selected") == "true"
    seen.page.click(".next button >> text=major errors")
    assert seen.page.input_value("#error") == "s2"
    assert seen.page.inner_text("#count") == "12 of 12 segments"


def test_rows_say_what_their_number_is(visit: Visit, ordinary: Path) -> None:
    seen = visit(ordinary)
    assert seen.page.inner_text("#shows") == "chrf, mean of 3 systems; one system"
    assert seen.page.is_hidden("#differs-legend")
    seen.page.select_option("#system", label="mine")
    seen.page.select_option("#other", label="base")
    seen.settle()
    assert seen.page.inner_text("#shows") == "chrf: mine, and its distance to base"
    assert seen.page.is_visible("#differs-legend")
    score, gap = (seen.page.inner_text(f"#list .row[aria-selected=true] {name}") for name in (".score", ".gap"))
    facts = [float(text.split()[1]) for text in seen.page.locator("#segment .fact.main").all_inner_texts()]
    assert score.startswith(f"{facts[0]:.1f}")
    assert float(gap.replace("−", "-")) == pytest.approx(facts[0] - facts[1], abs=0.11)


def test_numbers_stand_beside_words_on_demand(visit: Visit, ordinary: Path) -> None:
    seen = visit(ordinary)
    after = "word => getComputedStyle(word, '::after').content"
    assert seen.page.eval_on_selector("#segment .word.costs", after) == "none"
    seen.page.check("#numbers")
    shown = seen.page.eval_on_selector("#segment .word.costs", after)
    assert seen.page.locator("#segment .word.costs >> nth=0").get_attribute("data-value") in shown
    assert "−" in shown
    seen.page.click("#next")
    assert seen.page.eval_on_selector("#segment .word.costs", after) != "none"


def test_costs_can_be_told_without_colour(visit: Visit, ordinary: Path) -> None:
    seen = visit(ordinary)
    read = "word => [getComputedStyle(word).borderRadius, getComputedStyle(word).boxShadow !== 'none']"
    assert seen.page.eval_on_selector("#segment .word.costs", read) == ["0px", True]
    assert seen.page.eval_on_selector("#segment .word.earns", read) == ["4px", False]


def test_many_references_do_not_hide_the_hypotheses(visit: Visit, matched: Path) -> None:
    seen = visit(matched)
    kinds = seen.page.eval_on_selector_all("#segment .card", "cards => cards.map(card => card.classList[1])")
    assert kinds == ["reference", "reference", "hypothesis", "hypothesis", "reference", "reference", "reference"]
    assert seen.page.inner_text("#segment .later") == "More references"
    assert seen.page.locator("#segment .card.reference .who").all_inner_texts()[2:] == [
        "Reference 3",
        "Reference 4",
        "Reference 5",
    ]


def test_matches_carry_marks_and_lead_to_their_partners(visit: Visit, matched: Path) -> None:
    seen = visit(matched)
    seen.page.select_option("#system", label="one")
    seen.settle()
    assert seen.page.is_visible("#marks-legend")
    words = seen.page.locator("#segment .card.hypothesis >> nth=0 >> .word")
    assert words.all_inner_texts()[:4] == ["the", "old", "cats", "sat"]
    assert [words.nth(k).get_attribute("data-mark") for k in range(4)] == ["=", "=", "~", "="]
    words.nth(2).hover()
    assert "root 'cat'" in seen.page.inner_text("#word")
    assert set(seen.page.locator("#segment .card.reference .partner").all_inner_texts()) == {"cat"}


@pytest.mark.parametrize("width", [390, 1280])
def test_long_names_of_segments_are_cut_and_lead_there(visit: Visit, matched: Path, width: int) -> None:
    seen = visit(matched, viewport={"width": width, "height": 900})
    link = seen.page.locator("#matches button.id >> nth=0")
    assert link.bounding_box()["width"] <= 161
    assert link.get_attribute("title") == "document-0-of-a-very-long-name-indeed"
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    link.click()
    assert seen.page.inner_text("#segment h3") == "Segment document-0-of-a-very-long-name-indeed"


def test_a_page_without_texts_has_no_browser_and_no_dead_button(visit: Visit, matched: Path) -> None:
    seen = visit(matched.with_name("outside.html"))
    assert seen.page.locator("#segments, button.go, #words table").count() == 0
    assert seen.page.is_visible("#systems")
    assert seen.page.is_visible("#matches")
    assert "no segments or words of the data" in seen.page.inner_text("#verdict")
    assert all(seen.page.locator(link).count() == 1 for link in seen.page.eval_on_selector_all(
        "nav a", "links => links.map(link => link.getAttribute('href'))"
    ))  # fmt: skip


def test_rows_of_few_segments_are_told_from_the_others(visit: Visit, ordinary: Path) -> None:
    seen = visit(ordinary)
    weak = seen.page.locator("#features tr.weak")
    assert weak.count() > 0
    assert "(few segments" in weak.first.inner_text()


def test_a_difference_can_be_seen_beside_a_marked_error(visit: Visit, ordinary: Path) -> None:
    seen = visit(ordinary)
    seen.page.select_option("#system", label="base")
    seen.page.select_option("#other", label="mine")
    seen.settle()
    word = seen.page.locator("#segment .word.differs:has(.error.major) >> nth=0")
    assert word.inner_text() == "bat"
    read = (
        "word => [getComputedStyle(word).borderTopStyle, getComputedStyle(word.firstElementChild).textDecorationLine]"
    )
    assert word.evaluate(read) == ["dotted", "underline"]
    assert seen.page.locator("#segment .fact.people >> nth=0").inner_text() == "human: mqm −5.0"


@pytest.fixture(scope="module")
def similar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of files of lines: two systems that differ on the last line alone, and a third that is bad elsewhere."""
    folder = tmp_path_factory.mktemp("similar")
    texts = {
        "ref": ["the black cat sat here", "my old dog slept there", "your big horses ran away"],
        "a": ["the black cat sat here", "my old dog slept there", "your big horses ran away"],
        "b": ["the black cat sat here", "my old dog slept there", "your big houses ran away"],
        "c": ["xyz", "qrs", "your big horses ran away"],
    }
    for name, lines in texts.items():
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines * 10), "utf-8")
    data = read_texts([folder / f"{name}.txt" for name in "abc"], references=[folder / "ref.txt"])
    run = evaluate(data, ["chrf", "bleu"], output=folder / "run", settings=EvaluateSettings(draws=50))
    page = folder / "report.html"
    page.write_text(html(build_report(run)), "utf-8")
    return page


def test_where_two_systems_differ_most_knows_nothing_of_the_third(visit: Visit, similar: Path) -> None:
    seen = visit(similar)
    seen.page.click(".next button >> text=differ most")
    texts = seen.page.locator("#segment .card.hypothesis .text").all_inner_texts()
    assert texts == ["your big horses ran away", "your big houses ran away"]


def test_another_order_or_metric_begins_at_the_top(visit: Visit, similar: Path) -> None:
    seen = visit(similar)
    for field, value in (("#sort", "best"), ("#metric", "1")):
        for _ in range(5):
            seen.page.click("#next")
        assert seen.page.inner_text("#where") == "6 of 30"
        seen.page.select_option(field, value)
        seen.settle()
        assert seen.page.inner_text("#where") == "1 of 30"


def test_back_undoes_a_choice_and_the_address_opens_the_same_view(visit: Visit, similar: Path) -> None:
    seen = visit(similar)
    seen.page.fill("#query", "horses ran")
    seen.settle()
    seen.page.select_option("#sort", "given")
    seen.settle()
    seen.page.click("#next")
    address, title = seen.page.url, seen.page.inner_text("#segment h3")
    assert "query=horses%20ran" in address
    seen.page.go_back()
    assert (seen.page.input_value("#query"), seen.page.input_value("#sort")) == ("horses ran", "worst")
    seen.page.go_back()
    assert seen.page.input_value("#query") == ""
    seen.page.go_forward()
    seen.page.go_forward()
    assert (seen.page.url, seen.page.inner_text("#segment h3")) == (address, title)


def test_hits_of_a_search_are_marked_over_the_borders_of_words(visit: Visit, similar: Path) -> None:
    seen = visit(similar)
    read = "() => [...(CSS.highlights.get('hits') ?? [])].map(range => range.toString())"
    assert seen.page.evaluate(read) == []
    seen.page.fill("#query", "Horses ran")
    seen.settle()
    assert set(seen.page.evaluate(read)) == {"horses ran"}


def test_better_than_the_other_needs_another(visit: Visit, similar: Path) -> None:
    seen = visit(similar)
    read = "options => options.filter(option => !option.disabled).map(option => option.value)"
    assert seen.page.eval_on_selector_all("#sort option", read) == ["worst", "best", "given", "spread"]
    seen.page.select_option("#other", label="b")
    seen.settle()
    assert {"gain", "loss"} <= set(seen.page.eval_on_selector_all("#sort option", read))
    seen.page.select_option("#sort", "loss")
    seen.page.select_option("#other", label="nothing")
    seen.settle()
    assert seen.page.input_value("#sort") == "worst"


def test_a_segment_named_by_its_number_shows_its_line(visit: Visit, similar: Path) -> None:
    seen = visit(similar)
    seen.page.select_option("#sort", "given")
    seen.settle()
    assert seen.page.inner_text("#segment h3") == "Segment 0 (line 1)"


@pytest.mark.parametrize("block", ["start", "end"])
@pytest.mark.parametrize("width", [390, 800, 1280])
def test_the_value_of_a_word_is_shown_where_the_word_is(visit: Visit, similar: Path, width: int, block: str) -> None:
    """The note is below the word, above it at the foot of the window; small windows show it at their lower edge."""
    seen = visit(similar, viewport={"width": width, "height": 720})
    word = seen.page.locator("#segment .card.hypothesis .word").first
    word.evaluate("(word, block) => word.scrollIntoView({ block, behavior: 'instant' })", block)
    word.hover()
    note, there = seen.page.locator("#word").bounding_box(), word.bounding_box()
    assert seen.page.inner_text("#word").startswith(word.inner_text())
    assert 0 <= note["y"] <= note["y"] + note["height"] <= 720
    assert 0 <= note["x"] <= note["x"] + note["width"] <= width
    if width > 900:
        gap = max(note["y"] - there["y"] - there["height"], there["y"] - note["y"] - note["height"])
        assert 0 <= gap < 12, "the note is beside the word and does not cover it"
        assert note["x"] <= there["x"] + there["width"]
        assert there["x"] <= note["x"] + note["width"]


def test_a_bar_that_goes_on_beyond_the_axis_says_so(visit: Visit, ordinary: Path) -> None:
    seen = visit(ordinary)
    assert "0 %" in seen.page.locator("#features thead .mini").first.inner_html()
    tables = seen.page.locator("#features tbody tr:has(.bar)")
    for k in range(tables.count()):
        row = tables.nth(k)
        drawn = float(row.locator(".bar").get_attribute("width"))
        clipped = row.locator(".drawn >> nth=0").locator(".cut").count()
        assert clipped or drawn < 97


def saved(seen: object) -> list[list[str]]:
    """The rows of the list saved as CSV."""
    with seen.page.expect_download() as waiting:
        seen.page.click("#save")
    text = Path(waiting.value.path()).read_text("utf-8-sig")
    return list(csv.reader(io.StringIO(text)))


def test_the_filtered_list_is_saved_as_csv_with_notes(visit: Visit, ordinary: Path) -> None:
    seen = visit(ordinary)
    seen.page.fill("#query", "frogs")
    seen.settle()
    seen.page.select_option("#rating", "bad")
    seen.page.fill("#comment", '=1+1, "quoted"')
    chosen = seen.page.inner_text("#segment h3").removeprefix("Segment ")
    head, *rows = saved(seen)
    assert [row[0] for row in rows] == seen.rows
    assert head[:4] == ["segment", "source", "reference", "base"]
    assert head[-2:] == ["rating", "comment"]
    by_name = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    assert (by_name[chosen]["rating"], by_name[chosen]["comment"]) == ("bad", '\'=1+1, "quoted"')
    assert float(by_name[chosen]["mine: human mqm"]) == 0
    assert "frogs" in by_name[chosen]["mine"]
    seen.requests[:] = [url for url in seen.requests if not url.startswith("blob:")]


def test_notes_stay_in_the_browser_and_filter_the_list(visit: Visit, ordinary: Path) -> None:
    seen = visit(ordinary)
    seen.page.click("#next")
    seen.page.fill("#comment", "look again")
    name = seen.page.inner_text("#segment h3")
    seen.page.click("#next")
    assert seen.page.input_value("#comment") == ""
    seen.page.reload()
    seen.requests.pop()
    seen.page.select_option("#noted", "some")
    seen.settle()
    assert seen.page.inner_text("#count") == "1 of 12 segments"
    assert (seen.page.inner_text("#segment h3"), seen.page.input_value("#comment")) == (name, "look again")
    seen.page.fill("#comment", "")
    seen.page.select_option("#noted", "none")
    seen.settle()
    assert seen.page.inner_text("#count") == "12 of 12 segments"


@pytest.mark.parametrize("width", [390, 800, 1280])
def test_keys_work_and_the_help_lists_them(visit: Visit, ordinary: Path, width: int) -> None:
    seen = visit(ordinary, viewport={"width": width, "height": 900})
    for key, place in (("j", "2 of 12"), ("j", "3 of 12"), ("k", "2 of 12")):
        seen.page.keyboard.press(key)
        assert seen.page.inner_text("#where") == place
    seen.page.keyboard.press("b")
    assert seen.page.input_value("#rating") == "bad"
    seen.page.keyboard.press("/")
    seen.page.keyboard.type("jk")
    assert (seen.page.input_value("#query"), seen.page.inner_text("#where")) == ("jk", "2 of 12")
    seen.page.locator("#query").blur()
    seen.page.keyboard.press("?")
    assert seen.page.is_visible("#keys")
    assert "next segment" in seen.page.inner_text("#keys")
    assert seen.page.locator("#keys").bounding_box()["width"] <= width
    seen.page.keyboard.press("Escape")
    assert not seen.page.is_visible("#keys")


def test_paper_has_the_pictures_and_no_table_of_every_segment(visit: Visit, ordinary: Path) -> None:
    seen = visit(ordinary)
    seen.page.emulate_media(media="print")
    seen.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert seen.page.is_visible("#picture-scatter svg")
    for hidden in ("#notes", "#help", "#picture-scatter details", "#picture-controls"):
        assert not seen.page.is_visible(hidden)
    assert seen.page.locator(".chart details[open]").count() == 0
    assert seen.page.eval_on_selector(".chart", "one => getComputedStyle(one).breakInside") == "avoid"
    assert seen.page.eval_on_selector("#segments", "one => getComputedStyle(one).breakBefore") == "page"
