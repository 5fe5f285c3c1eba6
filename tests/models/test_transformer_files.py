"""Where a transformer comes from: folders, the hub's cache, cards, and what is refused."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from whyscore.errors import DataError, MissingExtra, SpecError
from whyscore.models.checkpoints import LicenceWarning
from whyscore.models.encoders.stacks import LayerNotice
from whyscore.models.encoders.transformer import Transformer

Tiny = Callable[[str], Path]


@pytest.fixture
def folder(tiny: Tiny, tmp_path: Path) -> Path:
    """A copy of the tiny BERT that may be spoilt."""
    return Path(shutil.copytree(tiny("bert"), tmp_path / "model"))


def test_the_signature_names_a_digest_of_the_weights_layer_and_licence(folder: Path) -> None:
    (folder / "README.md").write_text("---\nlicense: mit\nlanguage:\n- en\n- no\n- multilingual\n---\n", "utf-8")
    model = Transformer(str(folder), 3)
    facts = dict(model.signature().facts)
    assert facts | {"rev": ""} == {"rev": "", "layer": "3/4", "prec": "fp32", "trunc": "64", "licence": "mit"}
    assert re.fullmatch("[0-9a-f]{12}", facts["rev"])
    weights = bytearray((folder / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (folder / "model.safetensors").write_bytes(weights)
    assert dict(model.signature().facts)["rev"] != facts["rev"]


def test_a_model_is_loaded_again_for_changed_files_that_it_reads_and_for_no_others(folder: Path) -> None:
    model = Transformer(str(folder), 3)
    network = model.encoding().stack
    (folder / "runs").mkdir()
    for log in ("train.log", "events.out.tfevents", "runs/0.csv"):
        (folder / log).write_text("step 1", "utf-8")
    assert model.encoding().stack is network
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        network = model.encoding().stack
        os.utime(folder / name, (0, 0))
        assert model.encoding().stack is not network


def test_languages_come_from_the_card(folder: Path) -> None:
    model = Transformer(str(folder), 3)
    assert model.languages() is None
    (folder / "README.md").write_text("---\nlanguage:\n- en\n- no\n- zh-TW\n- multilingual\n---\n", "utf-8")
    assert model.languages() == {"en", "no", "zh"}
    (folder / "README.md").write_text("---\nlanguage: de\n---\n", "utf-8")
    assert model.languages() == {"de"}
    (folder / "README.md").write_text("---\nlanguage: multilingual\n---\n", "utf-8")
    assert model.languages() is None
    (folder / "README.md").write_text("---\nlanguage: [\n---\n", "utf-8")
    assert model.languages() is None


def test_a_non_commercial_licence_is_told(folder: Path) -> None:
    (folder / "README.md").write_text("---\nlicense: cc-by-nc-4.0\n---\n", "utf-8")
    with pytest.warns(LicenceWarning, match=re.escape("licensed cc-by-nc-4.0: they are for non-commercial use only")):
        Transformer(str(folder), 3).encode(["one"])


def test_a_folder_without_layer_gets_one_with_a_notice(folder: Path) -> None:
    with pytest.warns(LayerNotice, match=re.escape("layer 3 of 4 (rule of thumb)")):
        assert dict(Transformer(str(folder)).signature().facts)["layer"] == "3/4"


def test_a_copy_of_a_known_model_gets_its_layer_by_the_name_it_stores(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"_name_or_path": "distilbert-base-multilingual-cased"}))
    with pytest.warns(LayerNotice, match=re.escape("layer 4 of 4 (it calls itself distilbert")):
        assert dict(Transformer(str(folder)).signature().facts)["layer"] == "4/4"


def test_missing_weights_of_the_encoder_are_an_error_with_their_names(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    del weights["bert.encoder.layer.1.output.dense.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    message = "the weights do not fit the model: missing encoder.layer.1.output.dense.weight"
    with pytest.raises(DataError, match=re.escape(message)):
        Transformer(str(folder), 2).encode(["one"])


def test_pickled_weights_are_refused_unless_allowed(folder: Path) -> None:
    import torch
    from safetensors.torch import load_file

    wanted = Transformer(str(folder), 2).encode(["one"])[0].vectors
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    message = "Pickled weights (pytorch_model.bin) are read, as tensors alone, with allow_pickle=True"
    with pytest.raises(MissingExtra, match=re.escape(message)) as caught:
        Transformer(str(folder), 2).encode(["one"])
    assert caught.value.exit_code == 4
    found = Transformer(str(folder), 2, allow_pickle=True).encode(["one"])[0].vectors
    assert np.array_equal(found, wanted)


def test_pickled_weights_that_would_run_code_are_refused_even_if_allowed(folder: Path) -> None:
    import torch

    torch.save({"bert.x": Path("a")}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(Exception, match=r"(?i)weights.only"):
        Transformer(str(folder), 2, allow_pickle=True).encode(["one"])


@pytest.mark.parametrize("file", ["config.json", "model.safetensors"])
def test_a_missing_file_is_named_with_the_command_that_fetches_it(file: str, folder: Path) -> None:
    (folder / file).unlink()
    with pytest.raises(MissingExtra, match=rf"has no {re.escape(file)}.*Fetch it with: hf download OWNER/model {file}"):
        Transformer(str(folder), 2).encode(["one"])


def test_a_missing_tokenizer_is_an_error(folder: Path) -> None:
    for file in folder.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(MissingExtra, match=re.escape("has no tokenizer.json")):
        Transformer(str(folder), 2).encode(["one"])


def test_a_folder_that_is_not_there_is_an_error() -> None:
    with pytest.raises(MissingExtra, match=re.escape("transformer: no folder ./no/such/model")):
        Transformer("./no/such/model", 2).encode(["one"])


# The hub


@pytest.fixture
def hub(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hub's own cache with one revision of one model, and no network."""
    constants = pytest.importorskip("huggingface_hub.constants", reason="the extra 'neural' is not installed")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    home = tmp_path / "models--org--tiny"
    shutil.copytree(tiny("bert"), home / "snapshots" / ("ab" * 20))
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text("ab" * 20)
    return home


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize("model", ["org/tiny", "org/tiny@main", f"org/tiny@{'ab' * 20}"])
def test_a_cached_model_of_the_hub_works_without_network(model: str) -> None:
    assert dict(Transformer(model, 2).signature().facts)["rev"] == "ab" * 6
    assert len(Transformer(model, 2).encode(["one"])[0].vectors) > 2


@pytest.mark.usefixtures("hub")
def test_the_revision_can_be_an_option() -> None:
    assert dict(Transformer("org/tiny", 2, revision="main").signature().facts)["rev"] == "ab" * 6
    with pytest.raises(MissingExtra, match="Fetch it with: hf download org/tiny"):
        Transformer("org/tiny", 2, revision="other").signature()


@pytest.mark.usefixtures("hub")
def test_a_model_that_is_not_cached_is_answered_with_the_command_that_fetches_it() -> None:
    with pytest.raises(MissingExtra, match="Fetch it with: hf download org/absent") as caught:
        Transformer("org/absent", 2).encode(["one"])
    assert caught.value.exit_code == 4


def test_a_file_missing_in_the_cache_is_named(hub: Path) -> None:
    (hub / "snapshots" / ("ab" * 20) / "model.safetensors").unlink()
    with pytest.raises(MissingExtra, match=r"model\.safetensors.*Fetch it with: hf download org/tiny"):
        Transformer("org/tiny", 2).encode(["one"])


@pytest.mark.usefixtures("hub")
def test_a_gated_model_is_answered_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    class GatedRepoError(OSError):
        pass

    def gated(*_: object, **__: object) -> str:
        raise GatedRepoError("403")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", gated)
    message = "org/tiny is gated. Accept the licence at https://huggingface.co/org/tiny and log in with: hf auth login"
    with pytest.raises(MissingExtra, match=re.escape(message)):
        Transformer("org/tiny", 2).encode(["one"])


# Options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layer": -1}, "transformer: layer is -1, expected 0 or more"),
        ({"batch": 0}, "transformer: batch is 0, expected 1 or more"),
        ({"long": "cut"}, "Transformer: long is 'cut', expected 'truncate' or 'window' or 'error'"),
        ({"precision": "fp8"}, "Transformer: precision is 'fp8', expected 'fp32' or 'bf16' or 'fp16' or 'int8'"),
        ({"revision": "main"}, "transformer: m@x names a revision, and so does revision='main'; drop one"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        Transformer("m@x", **options)


def test_a_layer_the_model_does_not_have_is_refused(tiny: Tiny) -> None:
    with pytest.raises(SpecError, match=re.escape("has layers 0 (before the first block) to 4, got layer=5")):
        Transformer(str(tiny("bert")), 5).encode(["one"])


def test_a_device_that_is_not_there_is_refused(tiny: Tiny) -> None:
    with pytest.raises(SpecError, match="transformer: cannot use the device 'cuda:7'"):
        Transformer(str(tiny("bert")), 2, device="cuda:7").encode(["one"])
