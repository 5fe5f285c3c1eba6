"""Figures of boosting: drawn from rows alone, in every format, readable offline."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from whyscore.errors import MissingExtra, SpecError
from whyscore.report.figures import boost as figures_boost
from whyscore.report.figures import render_chart, save_chart

GRID = [
    {
        "explainer": "erasure",
        "setting": pair,
        "group": pair,
        "p": p / 2,
        "w": w,
        "original": 0.5,
        "correlation": 0.5 + p * w / 100,
        "gain": p * w / 100,
        "degenerate": float(p < 0),
    }
    for pair in ("a-b", "c-d")
    for p in range(-4, 5)
    for w in (0.0, 0.5)
]
OUTCOMES = [
    {"source": source, "protocol": "in-domain", "setting": "a-b", "before": 0.5, "after": 0.5 + gain, "gain": gain,
     "p_value": None, "adjusted": None}
    for source, gain in (("erasure", 0.1), ("length", 0.0), ("random", -0.1))
]  # fmt: skip
SCORES = [
    {"explainer": "erasure", "group": "a-b", "place": k, "score": score, "z": float(k)}
    for k in range(5)
    for score in ("human", "original", "aggregate")
]
STABILITY = [{"group": "all", "samples": 100, "w": w, "correlation": 0.9, "importances": 0.9} for w in (0.0, 0.5, None)]
CHOICES = [{"source": "erasure", "rule": "median", "split": k, "p": 1.0 * k, "w": 0.5} for k in range(3)]
COSTS = [{"explainer": "erasure", "texts": 100, "seconds": 1.5}]


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda: figures_boost.curves(GRID), "erasure · a-b"),
        (lambda: figures_boost.heat(GRID), "erasure · c-d"),
        (lambda: figures_boost.improving(GRID, 0.001), "p with a gain above 0.001"),
        (lambda: figures_boost.settings(OUTCOMES), "in-domain · a-b"),
        (lambda: figures_boost.counts(OUTCOMES), "improved"),
        (lambda: figures_boost.sorted_scores(SCORES), "segments, worst to best by human score"),
        (lambda: figures_boost.stability(STABILITY), "correlation between runs"),
        (lambda: figures_boost.choices(CHOICES), "median"),
        (lambda: figures_boost.costs(COSTS), "seconds"),
    ],
)
def test_every_figure_says_what_it_shows(draw: Callable[[], object], words: str) -> None:
    assert words in render_chart(draw(), "svg").decode()  # type: ignore[arg-type]


def test_a_chart_is_saved_in_all_formats_with_its_caption(tmp_path: Path) -> None:
    files = save_chart(figures_boost.costs(COSTS), tmp_path / "figures", "costs", caption="What it took")
    assert [file.name for file in files] == ["costs.html", "costs.svg", "costs.png", "costs.pdf", "costs.txt"]
    assert files[-1].read_text() == "What it took\n"
    assert "<script src=" not in files[0].read_text()


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(SpecError, match=re.escape("no chart format named 'gif': use html, svg, png, pdf")):
        render_chart(figures_boost.costs(COSTS), "gif")


def test_without_the_packages_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    chart = figures_boost.costs(COSTS)
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingExtra, match=re.escape("pip install 'whyscore[report]'")):
        render_chart(chart, "svg")
    with pytest.raises(MissingExtra, match=re.escape("pip install 'whyscore[report]'")):
        figures_boost.costs(COSTS)


@pytest.mark.parametrize("weights", [(0.0, 0.5), (0.2, 0.4)])
def test_the_degenerate_range_is_shaded_once_for_each_power_whatever_the_weights(weights: tuple[float, ...]) -> None:
    rows = [
        {"explainer": "e", "setting": "s", "p": p, "w": w, "correlation": 0.5, "original": 0.4, "gain": 0.1}
        | {"degenerate": float(p < 0)}
        for p in (-1.0, 1.0)
        for w in weights
    ]
    told = json.dumps(figures_boost.curves(rows).to_dict())
    assert f"datum.degenerate > 0.5 && datum.w == {weights[0]!r}" in told
