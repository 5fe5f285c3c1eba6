"""Metrics hear of languages where their numbers depend on them, and warn where a model is at a loss."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

import whyscore as ws
from whyscore.analysis.common import languages_of, with_languages
from whyscore.models.encoders.loading import CoverageNotice
from whyscore.registry import build
from whyscore.runs.gates import judge_gates
from whyscore.types import Dataset, FloatVector, Inputs, Signature

DATA = Dataset("dogs", (ws.Entry("0", "a", ws.Segment("ein Hund", "koer", ("ein Hund",))),), ("et", "de"))


def test_a_metric_with_a_language_gets_the_target_unless_it_has_one() -> None:
    assert getattr(with_languages(build("mee"), ("en", "ru")), "language") == "ru"  # noqa: B009 - not every metric has one
    assert getattr(with_languages(build("mee(language='de')"), ("en", "ru")), "language") == "de"  # noqa: B009
    assert with_languages(build("chrf"), ("en", "ru")) == build("chrf")


def test_languages_choose_the_model_only_where_none_is_named() -> None:
    assert getattr(with_languages(build("bertscore"), ("en", "tr")), "languages") == "en-tr"  # noqa: B009
    named = build("bertscore(model='embedded')")
    assert with_languages(named, ("en", "tr")) is named


@pytest.mark.parametrize("name", ["xbertscore", "xmoverscore", "sbert"])
def test_a_language_the_model_was_not_made_for_is_told_and_changes_no_name(name: str) -> None:
    with pytest.warns(CoverageNotice, match="does not support 'et'"):
        told = ws.score(DATA, name)
    assert "et" not in told.signature.spec.replace("xbertscore", "").replace("sbert", "")


def test_what_is_not_read_is_not_warned_about() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ws.score(DATA, "bertscore(model='embedded')")


def test_bare_segments_have_no_languages() -> None:
    assert languages_of(DATA.segments) is None
    assert languages_of(DATA) == ("et", "de")
    assert isinstance(DATA, Dataset)


def test_every_analysis_tells_metrics_the_languages_of_the_data() -> None:
    data = ws.sample()
    told = 'qe(languages="zh-en")'
    assert told in str(ws.compare(data, "qe", draws=200).document()["signatures"])
    assert ws.calibrate(data, "qe", "intrinsic", human="mqm").metric == told


@dataclass(frozen=True)
class NeedsLanguages:
    """A metric that scores nothing before it knows the languages."""

    languages: tuple[str, str] | None = None
    inputs = Inputs.HYPOTHESIS
    higher_is_better = True

    def signature(self) -> Signature:
        return Signature(f"needs_languages(languages={self.languages})", ())

    def for_languages(self, source: str, target: str) -> "NeedsLanguages":
        return replace(self, languages=(source, target))

    def score(self, segments: Sequence[ws.Segment]) -> FloatVector:
        assert self.languages == DATA.languages
        return np.array([float(len(segment.hypothesis)) for segment in segments])


@pytest.mark.parametrize("explainer", ["erasure", "shap"])
def test_faithfulness_and_stability_tell_metrics_the_languages_of_the_data(explainer: str) -> None:
    metric = NeedsLanguages()
    (found,) = ws.faithfulness(DATA, metric, [explainer], draws=0, seeds=2)
    assert dict(found.signature.facts)["metric"] == NeedsLanguages(DATA.languages).signature().spec
    assert found.n == 1
    assert ws.stability(DATA, metric, explainer, seeds=2).n == 1


@pytest.mark.filterwarnings("ignore::whyscore.models.encoders.loading.CoverageNotice")
def test_scores_and_comparisons_name_the_languages_that_a_metric_does_not_support() -> None:
    texts = [f"Kissa istui ikkunalla ja katseli lumisadetta {k}." for k in range(6)]
    data = ws.from_texts({"a": texts, "b": texts[::-1]}, sources=["The cat sat there."] * 6, languages=("en", "fi"))
    records = ws.score_systems(data, ["qe", "length"], draws=0).records()
    assert {record["metric"]: record.get("unsupported") for record in records} == {"qe": ["fi"], "length": None}
    compared = ws.compare(data, ["qe"], draws=20)
    assert compared.unsupported == {"qe": ("fi",)}
    assert compared.document()["unsupported"] == {"qe": ("fi",)}
    (gate,) = judge_gates(compared, {}, "a", compared.unsupported)
    assert gate.warning == "does not support fi"
