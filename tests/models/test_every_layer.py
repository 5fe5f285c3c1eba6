"""All layers of a network from one pass."""

import re
from pathlib import Path

import numpy as np
import pytest

from support import tiny_models
from whyscore.models.encoders import transformer as every_layer
from whyscore.models.encoders.transformer import EveryLayer, Inseparable, Transformer
from whyscore.models.pairs import Row, Vectors

torch = pytest.importorskip("torch", reason="the extra 'neural' is not installed")
pytest.importorskip("transformers")

pytestmark = pytest.mark.usefixtures("one_thread")

BLOCKS = 3
SIDES = {
    f"{side}_{what}": number
    for side in ("encoder", "decoder")
    for what, number in (("layers", BLOCKS), ("attention_heads", 4), ("ffn_dim", 64))
}
HEADS = {"num_hidden_layers": BLOCKS, "num_attention_heads": 4, "hidden_size": 32, "intermediate_size": 64}
NETWORKS = {
    "bert": ("bert", "BertModel", {}),
    "xlm-roberta": ("xlm-roberta", "XLMRobertaModel", {}),
    "xlm-roberta-xl": ("xlm-roberta", "XLMRobertaXLModel", {}),
    "mbart": ("xlm-roberta", "MBartModel", {"d_model": 32, "max_position_embeddings": 64, **SIDES}),
    "bart": ("bart", "BartModel", {}),
    "mt5": ("mt5", "MT5Model", {}),
    "gpt2": ("bart", "GPT2Model", {"n_layer": BLOCKS, "n_embd": 32, "n_head": 4, "n_positions": 64}),
    "distilbert": ("bert", "DistilBertModel", {"n_layers": BLOCKS, "dim": 32, "hidden_dim": 64, "n_heads": 4}),
    "deberta-v2": ("bert", "DebertaV2Model", {"conv_kernel_size": 3, **HEADS}),
    "albert": ("bert", "AlbertModel", {"embedding_size": 16, **HEADS}),
}


def saved(folder: Path, name: str) -> str:
    family, made, options = NETWORKS[name]
    tiny_models.save(folder, family, made, blocks=BLOCKS, std=0.2, **options)  # type: ignore[arg-type]
    return str(folder)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # DeBERTa, where it is loaded
@pytest.mark.parametrize("name", NETWORKS)
def test_every_layer_is_that_of_the_stack_cut_there(tmp_path: Path, name: str) -> None:
    model = saved(tmp_path / name, name)
    texts = [*tiny_models.TEXTS, " ", "Kass"]
    found = Transformer(model, 0, device="cpu").every_layer(texts)
    assert len(found) == Transformer(model, 0).layers == BLOCKS + 1
    # transformers cannot run a DeBERTa without blocks.
    for layer, own in list(enumerate(found))[1 if name == "deberta-v2" else 0 :]:
        expected = Transformer(model, layer, device="cpu").encode(texts)
        for one, other in zip(own, expected, strict=True):
            assert (one.pieces, one.total) == (other.pieces, other.total)
            np.testing.assert_allclose(one.vectors, other.vectors, rtol=0, atol=2e-6)
    first, last = found[0][0].vectors, found[-1][0].vectors
    assert np.abs(first - last).max() > 1e-2


def test_long_texts_are_read_in_windows_in_every_layer(tmp_path: Path) -> None:
    model = saved(tmp_path / "bert", "bert")
    text = " ".join(tiny_models.TEXTS)
    found = Transformer(model, 0, device="cpu", long="window").every_layer([text])
    [expected] = Transformer(model, 2, device="cpu", long="window").encode([text])
    assert len(expected.pieces) > 64
    np.testing.assert_allclose(found[2][0].vectors, expected.vectors, rtol=0, atol=2e-6)


def test_each_distinct_text_goes_through_the_network_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = []
    states = EveryLayer.states

    def counted(self: EveryLayer, batch: list[Row]) -> list[Vectors]:
        rows.extend(batch)
        return states(self, batch)

    monkeypatch.setattr(EveryLayer, "states", counted)
    Transformer(saved(tmp_path / "bert", "bert"), 0, device="cpu").every_layer(["Die Katze", "The cat", "Die Katze"])
    assert len(rows) == 2


def test_a_network_that_goes_on_after_its_blocks_is_refused() -> None:
    watcher = every_layer._Watcher()
    watcher._last(torch.nn.Identity(), (), torch.zeros(1, 2))
    with pytest.raises(Inseparable, match=re.escape("after its last block is not a chain of parts")):
        watcher.tail(torch.ones(1, 2))
