"""A real browser, and pages that must stay silent: no console message, no error, no request but the file itself."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from whyscore.report import build_report
from whyscore.report.page import html
from whyscore.runs.evaluate import EvaluateSettings, evaluate
from whyscore.types import Dataset, Entry, ErrorSpan, Segment

playwright = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser: pip install playwright")

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator["playwright.Browser"]:
    """Debian's Chromium, without a window."""
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("no Chromium is installed: apt-get install chromium")
    # As root, which containers are, Chromium refuses its sandbox.
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=path, args=flags)
        yield opened
        opened.close()


@dataclass
class Watched:
    """A page and everything it should not do."""

    page: "playwright.Page"
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def settle(self) -> None:
        """Wait until a changed control has had its effect: timers of a page end in the order of their times."""
        self.page.evaluate("() => new Promise(done => setTimeout(() => requestAnimationFrame(() => done()), 200))")

    @property
    def rows(self) -> list[str]:
        """The names of the segments in view, from top to bottom."""
        script = """rows => rows.map(row => [new DOMMatrix(getComputedStyle(row).transform).m42,
                    row.querySelector('.name').textContent]).sort((a, b) => a[0] - b[0]).map(pair => pair[1])"""
        return list(self.page.eval_on_selector_all("#list .row", script))


@pytest.fixture
def visit(browser: "playwright.Browser") -> Iterator[Callable[..., Watched]]:
    """Open files; afterwards nothing may have been said or asked for."""
    opened: list[Watched] = []

    def visiting(path: Path, **options: object) -> Watched:
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | options))
        watched = Watched(context.new_page())
        page = watched.page
        page.on("console", lambda message: watched.messages.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: watched.messages.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (watched.messages.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: watched.requests.append(request.url))
        page.goto(path.as_uri())
        opened.append(watched)
        return watched

    yield visiting
    for watched in opened:
        assert watched.messages == []
        assert [url for url in watched.requests if not url.startswith("file:")] == []
        assert len(watched.requests) == 1
        watched.page.context.close()


def written(path: Path, dataset: Dataset, metrics: list[str], **options: object) -> Path:
    """Return the page of an evaluation."""
    run = evaluate(dataset, metrics, output=path / "run", settings=EvaluateSettings(draws=50), **options)
    page = path / "report.html"
    page.write_text(html(build_report(run)), "utf-8")
    return page


@pytest.fixture(scope="session")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of three systems and twelve segments, with marked errors."""
    words = ["the", "cat", "sat", "on", "a", "mat", "while", "7", "old", "dogs", "slept", "near", "warm", "doors"]
    entries = []
    for k in range(12):
        reference = " ".join([*words[k:], *words[:k]])
        for system, hypothesis in (
            ("base", reference.replace("cat", "bat")),
            ("mine", reference if k % 3 else reference.replace("dogs", "frogs")),
            ("third", " ".join(word for word in reversed(reference.split()) if word != "7")),
        ):
            place = hypothesis.find("bat")
            spans = (ErrorSpan(place, place + 3, "major", "Accuracy/Mistranslation"),) if place >= 0 else ()
            segment = Segment(hypothesis, f"Quelle {k}", (reference,))
            entries.append(Entry(f"s{k}", system, segment, {"mqm": -5.0 * len(spans)}, spans))
    data = Dataset("ordinary", tuple(entries), ("de", "en"))
    return written(tmp_path_factory.mktemp("ordinary"), data, ["chrf", "bleu"])


HOSTILE = {
    "script": "<script>alert('text')</script> and <img src=x onerror=alert(1)>",
    "closing": "</script><script>alert(2)</script> ]]> --> <!-- </style>",
    "quotes": "\"double\" 'single' `tick` ${alert(3)} {{ 7*7 }} \\u003c \\",
    "bidi": "abc \u202egnirts desrever\u202c \u2066isolated\u2069 def",
    "lines": "one\u2028two\u2029three\u0085four\x0cfive",
    "arabic": "القط جلس على السجادة abc 123",
    "hebrew": "החתול ישב על המחצלת",
    "chinese": "猫坐在垫子上，等待晚餐。",
    "emoji": "👩‍👩‍👧 family 😀 ok 🇩🇪 flag é é",
    "long": "word " * 4000,
    "unbroken": "x" * 20_000,
    "nul": "a\x00b\x1bc",
    "empty": "",
}


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of texts, names and categories that try to break out."""
    entries = []
    for name, text in HOSTILE.items():
        for system in ("<b>base</b>", '"><script>alert(4)</script>'):
            hypothesis = text if system == "<b>base</b>" else f"{text[:100]} {name}"
            spans = (ErrorSpan(0, min(5, len(hypothesis)), "major", "<i>Style</i>'\""),)
            segment = Segment(hypothesis, text[:200], (text[:200] or "x",))
            entries.append(Entry(f"{name}</script>", system, segment, {"<u>mqm": 1.0}, spans, "<doc>"))
    data = Dataset("<script>alert(5)</script>", tuple(entries), ("x<y", "e&n"))
    return written(tmp_path_factory.mktemp("hostile"), data, ["chrf"])


@pytest.fixture(scope="session")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of two runs of one system, of which the second lost a word in two of six segments."""
    folder = tmp_path_factory.mktemp("changed")
    runs = []
    for name, lost in (("old", ()), ("new", (1, 4))):
        texts = [f"the cat number {k} sat here" for k in range(6)]
        entries = [
            Entry(str(k), "base", Segment(text.replace("sat ", "") if k in lost else text, None, (text,)))
            for k, text in enumerate(texts)
        ]
        runs.append(
            evaluate(Dataset(name, tuple(entries)), ["chrf"], output=folder / name, settings=EvaluateSettings(draws=20))
        )
    page = folder / "diff.html"
    page.write_text(html(build_report(runs)), "utf-8")
    return page
