"""The pages of the server in a real browser: words are coloured, files uploaded, nothing is fetched from elsewhere."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn
from fastapi import FastAPI

from whyscore.runs.evaluate import evaluate
from whyscore.types import Dataset, Entry, Segment
from whyscore.web.app import create

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

pytestmark = pytest.mark.xdist_group("browser")


@contextmanager
def serving(app: FastAPI) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(create()) as found:
        yield found


@pytest.fixture
def page(browser: "playwright.Browser", address: str) -> Iterator["playwright.Page"]:
    context = browser.new_context(viewport={"width": 1100, "height": 900})
    found = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    found.on("console", lambda message: said.append(message.text))
    found.on("pageerror", lambda error: said.append(str(error)))
    found.on("request", lambda request: asked.append(request.url))
    found.goto(f"{address}/try")
    found.wait_for_selector("#metric option", state="attached")
    yield found
    assert [url for url in asked if not url.startswith(address)] == []
    # A refused question is told by the browser too; everything else would be a fault of the page.
    assert [text for text in said if "422" not in text] == []
    context.close()


def test_a_sentence_is_explained_word_by_word(page: "playwright.Page") -> None:
    page.click("#go")
    page.wait_for_selector("#answer .word")
    words = page.eval_on_selector_all("#answer .word", "found => found.map(word => word.firstChild.textContent)")
    assert words == ["I", "have", "a", "cat", "I", "have", "a", "dog"]
    assert page.inner_text("#status").startswith("chrf ")
    assert page.get_attribute("#answer .word >> nth=3", "aria-label").startswith("cat: −")
    kinds = page.eval_on_selector_all("#answer .word", "found => found.map(word => word.classList[1] ?? '')")
    assert kinds[3] == "costs"
    assert kinds[:3] == ["earns", "earns", "earns"]
    strengths = "found => found.map(word => Number(word.style.getPropertyValue('--strength')))"
    assert len(set(page.eval_on_selector_all("#answer .word", strengths))) > 2
    assert page.is_visible("#legend")


def test_the_answer_says_which_way_is_better_and_what_made_it(page: "playwright.Page") -> None:
    page.select_option("#metric", "ter")
    assert page.inner_text("#about").startswith("ter: Edits per hundred reference words")
    page.click("#go")
    page.wait_for_selector("#status:has-text('lower is better')")
    assert page.inner_text("#signature").startswith("erasure")


def test_options_come_from_the_settings(page: "playwright.Page") -> None:
    page.click("summary")
    page.fill("[data-name=word_order]", "2")
    page.select_option("[data-name=unit]", "char")
    page.click("#go")
    page.wait_for_selector("#answer .word")
    assert "|metric:chrf(word_order=2)|unit:char|" in page.inner_text("#signature")
    words = page.eval_on_selector_all("#answer .word", "found => found.map(word => word.firstChild.textContent)")
    assert words[:4] == ["I", "h", "a", "v"]


def test_nothing_can_be_asked_before_the_metrics_are_known(browser: "playwright.Browser", address: str) -> None:
    page = browser.new_page()
    waiting = []
    page.route("**/api/components", lambda route: waiting.append(route))  # noqa: PLW0108 - playwright marks functions
    page.goto(f"{address}/try")
    page.wait_for_timeout(100)
    assert page.is_disabled("#go")
    assert page.inner_text("#status") == "Loading metrics …"
    waiting[0].continue_()
    page.wait_for_selector("#go:enabled")
    assert page.inner_text("#status") == ""
    page.close()


def test_a_server_that_is_gone_is_told(browser: "playwright.Browser", address: str) -> None:
    page = browser.new_page()
    page.route("**/api/components", lambda route: route.abort())
    page.goto(f"{address}/try")
    page.wait_for_selector("#status:has-text('cannot be reached')")
    assert page.is_disabled("#go")
    page.close()


def test_hostile_texts_stay_texts(page: "playwright.Page") -> None:
    hostile = '<img src=x onerror="alert(1)"> </script><script>alert(1)</script> \u202eabc 👩‍👩‍👧‍👦'
    page.fill("#hypothesis", hostile)
    page.click("#go")
    page.wait_for_selector("#answer .word")
    assert page.locator("#answer img, #answer script").count() == 0
    shown = page.eval_on_selector_all("#answer .text >> nth=0", "found => found[0].innerText")
    assert "<img" in shown


def test_a_refusal_is_told_in_words(page: "playwright.Page") -> None:
    page.fill("#reference", "")
    page.click("#go")
    page.wait_for_selector("#status:has-text('needs a reference')")
    assert page.locator("#answer .word").count() == 0


def test_another_metric_and_explainer_can_be_chosen(page: "playwright.Page") -> None:
    page.select_option("#metric", "token_f1")
    page.select_option("#explainer", "shap")
    page.click("#go")
    page.wait_for_selector("#status:has-text('token_f1 0.75')")
    page.set_viewport_size({"width": 360, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("home")
    for name in ("old", "new"):
        entries = [
            Entry(str(k), system, Segment(f"the cat {k} {system}", None, (f"the cat {k} sat",)))
            for k in range(4)
            for system in ("base", "mine")
        ]
        evaluate(Dataset(name, tuple(entries)), ["chrf"], output=folder / name, draws=20)
    with serving(create(None, {name: folder / name for name in ("old", "new")})) as found:
        yield found


@pytest.mark.parametrize("width", [390, 800, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_home_page_fits_and_leads_to_comparisons_and_back(
    browser: "playwright.Browser", home: str, width: int, scheme: str
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.goto(home)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    colours = (page.evaluate(f"getComputedStyle(document.body).{one}") for one in ("color", "backgroundColor"))
    ink, paper = (int(colour.removeprefix("rgb(").split(",")[0]) for colour in colours)
    assert (ink > paper) == (scheme == "dark")
    assert page.is_disabled("#compare button")
    for name in ("old", "new"):
        page.check(f"[value={name}]")
    page.click("#compare button")
    page.wait_for_selector("#verdict")
    assert "run=" in page.url
    page.click("a.brand")
    page.wait_for_selector("#runs-title")
    page.close()


def test_a_file_is_uploaded_and_its_report_opens(browser: "playwright.Browser", home: str) -> None:
    page = browser.new_page()
    page.goto(home)
    rows = "".join(f"the cat {k} sat\tthe bat {k} sat\n" for k in range(5))
    file = {"name": "cats.tsv", "mimeType": "text/plain"}
    page.set_input_files("#file", file | {"buffer": f"reference\tmt\n{rows}".encode()})
    page.check("[name=metric][value=chrf]")
    page.click("#go")
    page.wait_for_selector("#verdict", timeout=60_000)
    assert page.url.endswith("/runs/cats")
    page.goto(home)
    page.set_input_files("#file", file | {"buffer": b"nothing\n"})
    page.click("#go")
    page.wait_for_selector("#status:has-text('cats.tsv')")
    page.wait_for_selector("#progress", state="hidden", timeout=60_000)
    page.close()
