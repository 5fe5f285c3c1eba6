"""The pictures of segment scores: what they show is what the tables say, and every point can be opened by keyboard."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

Visit = Callable[..., object]

pytestmark = pytest.mark.xdist_group("browser")


def packed(page: Path) -> dict[str, object]:
    """The data block of a page."""
    text = page.read_text("utf-8").split('id="data">')[1].split("</script>")[0]
    return dict(json.loads(text))


def drawn(seen: object) -> None:
    """Go to the pictures and wait for them."""
    seen.page.locator("#pictures").evaluate("place => place.scrollIntoView()")
    seen.page.wait_for_selector("#charts figure")


def rows(seen: object, picture: str) -> list[list[str]]:
    """The rows of a picture's table."""
    seen.page.click(f"{picture} summary")
    seen.page.wait_for_selector(f"{picture} tbody tr")  # made when the fold opens
    read = "rows => rows.map(row => [...row.children].map(cell => cell.textContent))"
    return list(seen.page.eval_on_selector_all(f"{picture} tbody tr", read))


def test_wins_ties_and_losses_are_counted(visit: Visit, ordinary: Path) -> None:
    seen, data = visit(ordinary), packed(ordinary)
    drawn(seen)
    base, mine, _ = data["scores"][0]
    better = sum(a > b for a, b in zip(mine, base, strict=True))
    worse = sum(a < b for a, b in zip(mine, base, strict=True))
    told = seen.page.inner_text("#picture-wins figcaption")
    assert f"mine scores better than base on {better} segments, worse on {worse}, the same on " in told
    sizes = [int(row[1]) for row in rows(seen, "#picture-wins")]
    assert sum(sizes) == len(mine)
    assert sizes[0] == len(mine) - better - worse
    # What is drawn above zero is what is counted.
    assert seen.page.locator("#picture-wins svg >> nth=1 >> rect.first").count() == (len(sizes) - 1) / 2


@pytest.mark.parametrize("how", ["click", "keyboard"])
def test_a_point_opens_its_segment(visit: Visit, ordinary: Path, how: str) -> None:
    seen, data = visit(ordinary), packed(ordinary)
    drawn(seen)
    points = seen.page.locator("#picture-scatter .points > *")
    assert points.count() == len(data["ids"])
    if how == "click":
        points.first.dispatch_event("click")
    else:
        seen.page.focus("#picture-scatter svg")
        seen.page.keyboard.press("End")
        seen.page.keyboard.press("Home")
        assert "Segment s" in seen.page.inner_text("#picture-scatter .picked")
        seen.page.keyboard.press("Enter")
    base, mine, _ = data["scores"][0]
    lowest = min(range(len(base)), key=lambda k: (base[k], mine[k]))
    opened = seen.page.inner_text("#segment h3").removeprefix("Segment ")
    assert base[data["ids"].index(opened)] == base[lowest]
    chosen = [
        seen.page.eval_on_selector(f"#{name}", "one => one.selectedOptions[0].text") for name in ("system", "other")
    ]
    assert chosen == ["mine", "base"]


def test_groups_by_length_and_frequency_hold_every_segment_once(visit: Visit, ordinary: Path) -> None:
    seen, data = visit(ordinary), packed(ordinary)
    drawn(seen)
    for name in ("length", "rarity"):
        assert sum(int(row[3]) for row in rows(seen, f"#picture-{name}")) == len(data["ids"])
    assert rows(seen, "#picture-spread")[1][0:2] == ["mine", "12"]


def test_human_scores_are_drawn_where_they_exist(visit: Visit, ordinary: Path, changed: Path) -> None:
    seen = visit(ordinary)
    drawn(seen)
    assert seen.page.locator("#picture-human-0 .points > *").count() == 24
    other = visit(changed)
    drawn(other)
    assert other.page.locator("[id^=picture-human]").count() == 0
    assert "new: base scores better than old: base on 0 segments, worse on 2" in other.page.inner_text("#picture-wins")


def test_another_metric_or_system_is_drawn_anew(visit: Visit, ordinary: Path) -> None:
    seen = visit(ordinary)
    drawn(seen)
    seen.page.select_option("#picture-metric", label="bleu")
    seen.page.select_option("#picture-other", label="third")
    assert "third" in seen.page.inner_text("#picture-wins figcaption")
    assert "bleu" in seen.page.get_attribute("#picture-scatter svg", "aria-label")
    seen.page.select_option("#picture-other", label="mine")
    assert seen.page.locator("#picture-wins").count() == 0
    assert seen.page.locator("#picture-spread").count() == 1


def test_phrases_are_those_that_only_one_system_has(visit: Visit, ordinary: Path) -> None:
    seen, data = visit(ordinary), packed(ordinary)
    drawn(seen)
    only: Counter[str] = Counter()
    texts = data["texts"]
    for k in range(len(data["ids"])):
        reference = texts[data["references"][k][0]].split()
        base, mine = (texts[data["hypotheses"][i][k]].split() for i in (0, 1))
        for gram in {" ".join(reference[i : i + n]) for n in range(1, 5) for i in range(len(reference) - n + 1)}:
            here, there = (f" {gram} " in f" {' '.join(words)} " for words in (mine, base))
            only[gram] += here and not there
    seen.page.click("#picture-ngrams summary")
    seen.page.wait_for_selector("#phrases tbody tr")  # made when the fold opens
    found = dict(seen.page.eval_on_selector_all(
        "#phrases table >> nth=0 >> tbody tr",
        "rows => rows.map(row => [row.children[0].textContent, Number(row.children[1].textContent)])",
    ))  # fmt: skip
    assert found["cat"] == only["cat"] == 12
    assert all(only[gram] == size for gram, size in found.items())
    assert "dogs" not in found
    seen.page.locator("#phrases table >> nth=0 >> button.id").first.click()
    assert seen.page.input_value("#query") in found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 800, 1280])
def test_pictures_fit_the_screen_and_can_be_seen(visit: Visit, ordinary: Path, width: int, scheme: str) -> None:
    seen = visit(ordinary, viewport={"width": width, "height": 900}, color_scheme=scheme)
    drawn(seen)
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    for box in (one.bounding_box() for one in seen.page.locator(".chart svg").all()):
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["width"] > 250
    read = "one => [getComputedStyle(one).fill, getComputedStyle(document.body).backgroundColor]"
    for kind in ("rect.first", "rect.second", "text"):
        ink, paper = seen.page.eval_on_selector(f"#picture-wins svg >> nth=1 >> {kind}", read)
        assert ink != paper
    size = seen.page.eval_on_selector(
        "#picture-wins svg >> nth=1", "svg => svg.getBoundingClientRect().width / 400 * 11.5"
    )
    assert size >= 9


def test_hostile_names_are_texts_in_pictures_too(visit: Visit, hostile: Path) -> None:
    seen = visit(hostile)
    drawn(seen)
    assert seen.page.locator("#charts script, #charts b, #charts img").count() == 0
    assert "<b>base</b>" in seen.page.inner_text("#picture-wins figcaption")


def test_the_matrix_of_tests_is_antisymmetric(visit: Visit, ordinary: Path) -> None:
    seen = visit(ordinary)
    read = "cells => cells.map(cell => cell.textContent.trim())"
    cells = seen.page.eval_on_selector_all("#systems .matrix >> nth=0 >> tbody td", read)
    size = round(len(cells) ** 0.5)
    marks = {"▲": "▼", "▼": "▲", "=": "="}
    for i in range(size):
        assert cells[i * size + i] == ""
        for j in range(i):
            assert marks[cells[i * size + j][0]] == cells[j * size + i][0]
