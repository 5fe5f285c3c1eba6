"""Takes the pictures of the report for README and docs, from a real run on the sample.

    python scripts/make_report_pictures.py [RUN]

Needs Chromium and playwright. Without a run folder the sample is evaluated first, which takes about a minute.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

import whyscore as ws
from whyscore.report.page import html

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "images"
SEGMENT = "437"
SIZE = {"width": 1280, "height": 860}


@contextmanager
def browsing() -> Iterator[Browser]:
    """Give a browser."""
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        yield browser
        browser.close()


def opened(browser: Browser, page: Path, **options: object) -> Page:
    """Return the report in a new window, with nothing moving."""
    context = browser.new_context(**({"viewport": SIZE, "reduced_motion": "reduce"} | options))  # type: ignore[arg-type]
    view = context.new_page()
    view.goto(f"{page.as_uri()}#segment={SEGMENT}")
    return view


def shown(view: Page, where: str, name: str) -> None:
    """Save what is seen below a place."""
    view.locator(where).evaluate("place => place.scrollIntoView()")
    view.wait_for_timeout(300)
    view.screenshot(path=FOLDER / name)


def compared(view: Page) -> None:
    """Set two systems against each other, and point at a word."""
    view.locator("#segments").evaluate("place => place.scrollIntoView()")
    view.select_option("#system", label="DIDI-NLP")
    view.select_option("#other", label="Online-W")
    view.wait_for_timeout(400)
    view.locator("#segment .card.hypothesis .word.costs").first.hover()


def main() -> None:
    """Take all pictures."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, browsing() as browser:
        run = ws.read_run(sys.argv[1]) if sys.argv[1:] else ws.evaluate(ws.sample(), output=Path(place) / "run")
        page = Path(place) / "report.html"
        page.write_text(html(ws.build_report(run)), "utf-8")
        view = opened(browser, page)
        shown(view, "#verdict", "report.png")
        shown(view, "#pictures", "report-pictures.png")
        view = opened(browser, page, viewport=SIZE | {"height": 1240})
        compared(view)
        shown(view, "#segments", "report-segment.png")
        shown(opened(browser, page, color_scheme="dark"), "#segments", "report-dark.png")
        phone = {"width": 390, "height": 844}
        shown(opened(browser, page, viewport=phone, device_scale_factor=2), ".panes", "report-phone.png")


if __name__ == "__main__":
    main()
