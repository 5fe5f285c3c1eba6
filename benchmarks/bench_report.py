"""How long a large report takes to build, how large it is, and how long a browser needs to show it.

    python benchmarks/bench_report.py [--segments 3000] [--systems 5] [--metrics 2]

The run folder is made up: sentences of a fixed vocabulary, one explanation per text of every entry and metric. Limits:
the page of 3,000 segments x 5 systems is below 12 MB and ready within 2 s, and its pictures are drawn within 1 s.
Seconds of building are printed, not judged.
Without a browser the page is built all the same.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from whyscore.data.dataset import dataset_lines
from whyscore.data.records import explanation_lines, row_lines, score_lines
from whyscore.data.writing import write_lines
from whyscore.report import build_report
from whyscore.report.page import html
from whyscore.runs import folder as runs
from whyscore.runs.folder import read_run
from whyscore.text.splitters import white_space
from whyscore.types import (
    HYPOTHESIS,
    Dataset,
    Entry,
    Explanation,
    ExplanationRecord,
    Place,
    RunFacts,
    RunMetric,
    Scores,
    Segment,
    Side,
    Signature,
)

LARGEST = 12_000_000
LONGEST = 2.0
DRAWN = 1.0
WORDS = 24
REFERENCES = 2


def dataset(segments: int, systems: int, rng: np.random.Generator) -> Dataset:
    """Return sentences of about 130 letters, references shared by all systems."""
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    vocabulary = ["".join(rng.choice(letters, size)) for size in rng.integers(2, 9, 20_000)]

    def sentence() -> str:
        return " ".join(vocabulary[k] for k in rng.integers(0, len(vocabulary), WORDS))

    sources = [(sentence(), tuple(sentence() for _ in range(REFERENCES))) for _ in range(segments)]
    entries = [
        Entry(str(j), f"system{i}", Segment(sentence(), *sources[j])) for i in range(systems) for j in range(segments)
    ]
    return Dataset("made up", tuple(entries), ("de", "en"))


def explained(data: Dataset, metric: str, rng: np.random.Generator) -> Iterator[ExplanationRecord]:
    """Yield an explanation of every text that a metric with references reads."""
    places = (HYPOTHESIS, *(Place(Side.REFERENCE, k) for k in range(REFERENCES)))
    signature = Signature("intrinsic")
    for entry in data.entries:
        for place in places:
            words = white_space(entry.segment.text(place))
            importance = rng.normal(size=len(words))
            yield ExplanationRecord.of(
                entry, metric, "intrinsic", Explanation(entry.segment, place, words, importance, 50.0, 1, signature)
            )


def folder(path: Path, data: Dataset, metrics: list[str]) -> None:
    """Write a finished run."""
    rng = np.random.default_rng(1)
    made = runs.open_or_create(path, runs.fingerprint(data, {}))
    scores = {name: Scores(rng.uniform(0, 100, len(data)), Signature(name)) for name in metrics}
    write_lines(made.path / runs.SEGMENTS, dataset_lines(data))
    write_lines(made.path / runs.SCORES, score_lines(data, scores))
    totals = [
        {"system": system, "metric": name, "score": 50.0 + k, "low": 48.0, "high": 56.0, "level": 0.95, "n": len(data)}
        for name in metrics
        for k, system in enumerate(data.systems)
    ]
    write_lines(made.path / runs.TOTALS, row_lines("totals", data, totals))
    every = (one for name in metrics for one in explained(data, name, rng))
    head, *lines = explanation_lines(data, every, {})
    with runs.growing_blocks(made, runs.EXPLANATIONS, head) as file:
        file.add(lines, len(lines), [])
    runs.forget(made, runs.EXPLANATIONS)
    described = tuple(RunMetric(name, name, explainer="intrinsic") for name in metrics)
    made.describe(RunFacts(status="done", metrics=described, counts={"entries": len(data)}))


def loaded(page: Path) -> dict[str, float] | None:
    """Return seconds until the browser shows the list, and frames a second while it scrolls; None without browser."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        return None
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=flags)
        view = browser.new_page(viewport={"width": 1280, "height": 900})
        view.goto("about:blank")
        start = time.perf_counter()
        view.goto(page.as_uri())
        view.wait_for_selector("#list .row")
        ready = time.perf_counter() - start
        frames = view.evaluate(SCROLL)
        start = time.perf_counter()
        view.locator("#pictures").evaluate("place => place.scrollIntoView()")
        view.wait_for_selector("#picture-length")
        drawn = time.perf_counter() - start
        start = time.perf_counter()
        view.evaluate("() => { document.getElementById('picture-ngrams').open = true; }")
        view.wait_for_selector("#picture-ngrams .columns")
        phrases = time.perf_counter() - start
        start = time.perf_counter()
        view.fill("#query", "abc")
        view.locator("#count:not(:has-text('3,000 of'))").wait_for()
        searched = time.perf_counter() - start
        browser.close()
    return {"ready": ready, "frames": frames, "searched": searched, "drawn": drawn, "phrases": phrases}


SCROLL = """() => new Promise((done) => {
  const list = document.getElementById('list');
  const start = performance.now();
  let frames = 0;
  const step = () => {
    frames += 1;
    list.scrollTop += 400;
    if (performance.now() - start < 1000) requestAnimationFrame(step);
    else done(frames * 1000 / (performance.now() - start));
  };
  requestAnimationFrame(step);
})"""


def main() -> int:
    """Build, measure, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--segments", type=int, default=3000)
    parser.add_argument("--systems", type=int, default=5)
    parser.add_argument("--metrics", type=int, default=2)
    asked = parser.parse_args()
    names = [f"metric{k}" for k in range(asked.metrics)]
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "run"
        folder(path, dataset(asked.segments, asked.systems, np.random.default_rng(0)), names)
        start = time.perf_counter()
        run = read_run(path)
        texts = len(run.explanations)
        read = time.perf_counter()
        text = html(build_report(run))
        built = time.perf_counter()
        page = Path(place) / "report.html"
        page.write_text(text, "utf-8")
        size = page.stat().st_size
        print(f"{asked.segments} segments x {asked.systems} systems x {asked.metrics} metrics, {texts} explained texts")
        print(f"reading the run {read - start:.1f} s, building the page {built - read:.1f} s")
        print(f"page: {size / 1e6:.2f} MB (limit {LARGEST / 1e6:.0f})")
        shown = loaded(page)
    if shown is None:
        print("no browser: loading was not measured")
        return 0 if size < LARGEST else 1
    print(f"ready in the browser after {shown['ready']:.2f} s (limit {LONGEST:.0f})")
    print(f"scrolling {shown['frames']:.0f} frames a second, a search takes {shown['searched']:.2f} s")
    print(f"pictures drawn after {shown['drawn']:.2f} s (limit {DRAWN:.0f}), phrases after {shown['phrases']:.2f} s")
    return 0 if size < LARGEST and shown["ready"] < LONGEST and shown["drawn"] < DRAWN else 1


if __name__ == "__main__":
    sys.exit(main())
