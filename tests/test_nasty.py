"""A thousand texts that break programs go through every metric, explainer, splitter, masker and tagger."""

import json
from pathlib import Path

import numpy as np
import pytest

from support.cli import Run
from support.nasty import NASTY, WRITABLE
from whyscore import marking
from whyscore.analysis.explain import explain
from whyscore.registry import build, list_names
from whyscore.scoring.stack import prepare
from whyscore.text.splitters import WhiteSpace
from whyscore.types import Segment, Words

# Each text stands beside another one, so that no pair is equal and blank ones meet long ones. An empty
# reference is a missing one, which is refused.
SEGMENTS = [
    Segment(text, NASTY[(i * 7 + 3) % len(NASTY)], (NASTY[(i * 11 + 5) % len(NASTY)] or "a",))
    for i, text in enumerate(NASTY)
]
EXPLAINED = [segment for segment in SEGMENTS if len(segment.hypothesis.split()) < 20]

# What needs an argument, a checkpoint or other texts is run by its own tests.
NEEDING = {
    "metric": {
        "bartscore", "bertscore", "boosted", "callable", "comet", "ensemble", "judge", "lmscore", "lookup", "metricx",
        "moverscore", "transquest",
    },
    "explainer": {
        "attention", "ensemble", "evidence", "gradient", "input_marginalization", "intrinsic", "logprob",
        "matching", "tagging", "token_matching",
    },
    "masker": {"infill", "infill_file", "infill_model"},
    "tagger": {"conllu", "lexicon", "nltk", "pretagged", "stanza"},
}  # fmt: skip


OPTIONS = {"lime": "lime(samples=20)", "shap": "shap(exact_up_to=4, passes=1)"}


def names(kind: str) -> list[str]:
    return [name for name in list_names(kind) if name not in NEEDING.get(kind, set())]


@pytest.mark.parametrize("name", names("metric"))
def test_every_metric_gives_every_text_a_finite_number(name: str) -> None:
    values = prepare(build(name)).score(SEGMENTS)
    assert values.shape == (len(SEGMENTS),)
    assert np.isfinite(values).all()


@pytest.mark.parametrize("name", names("explainer"))
def test_every_explainer_gives_every_word_a_finite_number(name: str) -> None:
    for found in explain(EXPLAINED, "token_f1", OPTIONS.get(name, name)):
        assert found.importance.shape == (len(found.words.spans),)
        assert np.isfinite(found.importance).all()
        assert len(str(found)) >= len(found.words.text)


@pytest.mark.parametrize("name", list_names("splitter"))
def test_every_splitter_gives_exact_pieces_of_the_text(name: str) -> None:
    for text in NASTY:
        words = build(name, kind="splitter").split(text)
        assert words.text == text
        ends = [0, *(end for _, end in words.spans)]
        assert all(before <= start < end for before, (start, end) in zip(ends, words.spans, strict=False))


@pytest.mark.parametrize("name", names("masker"))
def test_every_masker_gives_the_text_back_when_nothing_is_hidden(name: str) -> None:
    words = [WhiteSpace().split(text) for text in NASTY]
    asked = [(one, np.ones((1, len(one.spans)), dtype=bool)) for one in words]
    rendered = build(name, kind="masker").render(asked)
    assert [probes.texts[0] for probes in rendered] == list(NASTY)


@pytest.mark.parametrize("name", names("tagger"))
def test_every_tagger_gives_spans_inside_the_text(name: str) -> None:
    for text, tags in zip(NASTY, build(name, kind="tagger").tag(NASTY), strict=True):
        assert all(0 <= tag.start < tag.end <= len(text) for tag in tags)


def test_marked_words_hold_no_markup_of_their_own() -> None:
    for text in NASTY:
        words: Words = WhiteSpace().split(text)
        shown = str(marking.html(text, words.spans, [1.0] * len(words.spans)))
        assert "<script" not in shown
        assert "<img" not in shown
        assert "<v>" not in shown


@pytest.mark.parametrize("form", ["json", "jsonl", "tsv", "csv", "markdown", "latex", "text"])
def test_every_format_takes_every_text(form: str, tmp_path: Path, run: Run) -> None:
    data = tmp_path / "data.jsonl"
    lines = [
        {"hypothesis": text, "reference": f"{text} x", "system": "a", "id": str(i)} for i, text in enumerate(WRITABLE)
    ]
    data.write_text("".join(json.dumps(line) + "\n" for line in lines[:300]), "utf-8")
    out = tmp_path / "out"
    done = run("score", data, "-m", "chrf", "--segments", "-f", form, "-o", out, "--store", "none")
    assert (done.code, "Traceback" in done.err) == (0, False)
    written = out.read_text("utf-8")
    assert written
    if form == "jsonl":
        assert len([json.loads(line) for line in written.split("\n") if line]) > 300
