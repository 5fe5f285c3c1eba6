"""BERTScore and XBERTScore, looked into: the same score as a function of states, gradients that add up, attention."""

import re
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from support import tiny_models
from whyscore.analysis.boost import boost
from whyscore.analysis.explain import explain
from whyscore.errors import SpecError
from whyscore.metrics.matching.bertscore import BertScore, XBertScore
from whyscore.models.attribution import Inspectable
from whyscore.types import Segment

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("captum")

SEGMENTS = [
    Segment("The cat sat on the mat.", "Die Katze", ("A cat sat on a mat.", "The old table stood there.")),
    Segment("A dog", "Ein Hund schlief", ("The dog slept under the old table.",)),
]
Made = Callable[..., BertScore]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("encoder")
    tiny_models.save(place, "xlm-roberta", "XLMRobertaModel")
    return place


@pytest.mark.parametrize(
    "options",
    [{}, {"mode": "paper"}, {"measure": "p"}, {"measure": "r", "specials": "include"}, {"layer": 1}],
)
@pytest.mark.parametrize("kind", [BertScore, XBertScore])
def test_the_score_of_the_states_is_the_score(folder: Path, kind: Made, options: dict[str, object]) -> None:
    metric = kind(**{"model": str(folder), "layer": 2, "device": "cpu"} | options)
    assert isinstance(metric, Inspectable)
    inside = metric.inspect(SEGMENTS)
    with torch.no_grad():
        found = inside.score(inside.readings).numpy()
    assert found == pytest.approx(metric.score(SEGMENTS), abs=1e-5)


def test_a_baseline_and_a_blank_text_are_scored_the_same_way(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "base.tsv").write_text("LAYER\tP\tR\tF\n" + "".join(f"{k}\t0.1\t0.2\t0.3\n" for k in range(4)))
    blank = [Segment("", "a", ("a cat",)), *SEGMENTS]
    metric = BertScore(model=str(folder), layer=2, baseline=str(tmp_path / "base.tsv"), device="cpu")
    inside = metric.inspect(blank)
    with torch.no_grad():
        assert inside.score(inside.readings).numpy() == pytest.approx(metric.score(blank), abs=1e-5)


def test_integrated_gradients_add_up_to_the_score_without_the_text(folder: Path) -> None:
    metric = XBertScore(model=str(folder), layer=2, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = explain(
            SEGMENTS, metric, "gradient(method='integrated', steps=200, baseline='pad')", sides=["hypothesis"]
        )
    for one in found:
        assert np.isfinite(one.importance).all()
        assert np.abs(one.importance).max() > 0


@pytest.mark.parametrize("explainer", ["attention", "gradient", "gradient(method='values')"])
def test_attention_and_gradients_explain_and_boost(folder: Path, explainer: str) -> None:
    metric = BertScore(model=str(folder), layer=2, device="cpu")
    found = explain(SEGMENTS, metric, explainer, sides=["hypothesis"])
    assert [len(one.importance) for one in found] == [6, 2]
    assert all(np.isfinite(one.importance).all() for one in found)
    assert np.isfinite(boost(SEGMENTS, metric, explainer, p=1.0, w=0.5).scores.values).all()


def test_the_gradient_is_that_of_finite_differences(folder: Path) -> None:
    from whyscore.models.attribution import score_from, states

    metric = BertScore(model=str(folder), layer=2, device="cpu")
    inside = metric.inspect(SEGMENTS[1:])
    state = states(inside, inside.readings, 0).double().float().requires_grad_()
    score_from(inside, inside.readings, 0, state).sum().backward()
    gradient = state.grad
    assert gradient is not None
    direction = gradient / gradient.norm()
    with torch.no_grad():
        step = 1e-2
        ends = [score_from(inside, inside.readings, 0, state + sign * step * direction).item() for sign in (1, -1)]
    assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(float(gradient.norm()), rel=0.05)


def test_what_has_no_network_or_matches_phrases_is_refused(tmp_path: Path, folder: Path) -> None:
    told = "xbertscore cannot be looked into with phrases: name the folder of a network"
    with pytest.raises(SpecError, match=re.escape(told)):
        explain(SEGMENTS, XBertScore(), "gradient")
    with pytest.raises(SpecError, match="has no attention to look into and no gradients"):
        explain(SEGMENTS, XBertScore(phrases=0), "gradient")
    (tmp_path / "idf.txt").write_text("a cat\nthe dog\n")
    with pytest.raises(SpecError, match="cannot be looked into with weights by idf"):
        explain(
            SEGMENTS, BertScore(model=str(folder), layer=2, idf=str(tmp_path / "idf.txt"), device="cpu"), "attention"
        )
