import re
from pathlib import Path

import pytest

from whyscore.errors import SpecError
from whyscore.models.encoders.embedded import Embedded
from whyscore.models.encoders.loading import CoverageNotice, encoder, find_uncovered
from whyscore.models.encoders.sentence import Sentence
from whyscore.models.encoders.stacks import TUNED, LayerNotice, Shape, recommend_layer
from whyscore.models.encoders.static import Static
from whyscore.models.encoders.transformer import Transformer
from whyscore.models.pairs import owners, windows


def test_names_stand_for_encoders(tmp_path: Path) -> None:
    assert encoder("embedded") == Embedded()
    assert encoder("embedded", 1) == Embedded(1)
    assert encoder("static") == Static()
    assert encoder("org/model@main", 3, precision="bf16", long="window") == Transformer(
        "org/model@main", 3, precision="bf16", long="window"
    )
    assert encoder(str(tmp_path), device="cpu") == Transformer(str(tmp_path), device="cpu")
    (tmp_path / "modules.json").write_text("[]", "utf-8")
    assert encoder(str(tmp_path), device="cpu") == Sentence(str(tmp_path), device="cpu")
    assert encoder(str(tmp_path), 2) == Transformer(str(tmp_path), 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "cuda"}, "embedded computes on the processor alone, got device='cuda'; leave it out"),
        ({"precision": "bf16"}, "embedded computes in fp32 alone, got precision='bf16'; leave it out"),
        ({"revision": "main"}, "embedded has one revision, that of its package, got revision='main'; leave it out"),
    ],
)
def test_the_embedded_encoder_refuses_what_it_cannot_do(options: dict[str, str], message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        encoder("embedded", **options)


def test_the_static_encoder_has_one_layer() -> None:
    assert encoder("static", 0) == Static()
    with pytest.raises(SpecError, match=re.escape("static has layer 0 alone, got layer=1")):
        encoder("static", 1)


def test_languages_a_model_was_not_made_for_are_told() -> None:
    assert find_uncovered(Embedded(), ["en", "et", "zh-TW", "pt_BR", "EN", "et", "km"]) == ("et", "km")
    assert find_uncovered(Static(), ["et"]) == ()
    with pytest.warns(CoverageNotice, match="does not support 'et': scores are not meaningful; it supports: ar de en"):
        encoder("embedded", languages=("et", "en"))


def test_tuned_layers_are_taken_without_a_word() -> None:
    for name, (layer, shape) in TUNED.items():
        assert recommend_layer(name, None, shape) == layer
        assert 0 < layer <= shape.blocks
    assert recommend_layer("FacebookAI/xlm-roberta-large", None, Shape("xlm-roberta", 24, 1024)) == 17
    assert recommend_layer("google-bert/bert-base-uncased@main", None, Shape("bert", 12, 768)) == 9


@pytest.mark.parametrize(
    ("stored", "shape", "layer", "why"),
    [
        ("vicgalle/xlm-roberta-large-xnli-anli", Shape("xlm-roberta", 24, 1024), 17, "it calls itself vicgalle/"),
        ("joeddav/xlm-roberta-large-xnli", Shape("xlm-roberta", 24, 1024), 16, "it calls itself joeddav/"),
        ("./x", Shape("xlm-roberta", 24, 1024), 17, "as for xlm-roberta-large, which is built alike"),
        (None, Shape("roberta", 24, 1024), 17, "as for roberta-large, which is built alike"),
        (None, Shape("mt5", 12, 768), 11, "as for google/mt5-base, which is built alike"),
        (None, Shape("modernbert", 24, 1024), 17, "rule of thumb"),
        (None, Shape("bert", 6, 384), 4, "rule of thumb"),
    ],
)
def test_layers_chosen_by_a_rule_are_told(stored: str | None, shape: Shape, layer: int, why: str) -> None:
    told = f"./copy: layer {layer} of {shape.blocks} ({why}"
    with pytest.warns(LayerNotice, match=re.escape(told)):
        assert recommend_layer("./copy", stored, shape) == layer


def test_windows_overlap_by_half_and_the_last_ends_with_the_text() -> None:
    assert windows(8, 4) == [0, 2, 4]
    assert windows(9, 4) == [0, 2, 4, 5]
    assert windows(4, 4) == windows(4, None) == [0]
    assert windows(3, 1) == [0, 1, 2]


def test_a_piece_belongs_to_the_window_it_is_deepest_in() -> None:
    assert owners(8, [0, 2, 4], 4).tolist() == [0, 0, 0, 1, 1, 2, 2, 2]
    assert owners(9, [0, 2, 4, 5], 4).tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 3]
