"""A masker that asks language models of transformers: tiny ones with random weights."""

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from whyscore.errors import MissingExtra, SpecError
from whyscore.models import language_models
from whyscore.models.language_models import InfillModel
from whyscore.protocols import Masker, Probes
from whyscore.text.infill import Choice
from whyscore.text.splitters import white_space
from whyscore.types import KeepMasks, Words

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "dog", "sat", "mat", "on", "##s", "a", "."]


def _hiding(number: int, *hidden: int) -> KeepMasks:
    mask = np.ones((1, number), dtype=np.bool_)
    mask[0, list(hidden)] = False
    return mask


def _one(masker: Masker, words: Words, masks: KeepMasks) -> Probes:
    (probes,) = masker.render([(words, masks)])
    return probes


@pytest.fixture(scope="module")
def transformers() -> Iterator[ModuleType]:
    pytest.importorskip("torch")
    yield pytest.importorskip("transformers")
    language_models.load.cache_clear()


@pytest.fixture(scope="module")
def bert(transformers: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A masked model of one layer that reads 16 pieces."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    coder = Tokenizer(models.WordPiece({word: k for k, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    coder.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    coder.decoder = decoders.WordPiece()
    coder.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=coder,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=16,
    )
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=16,
        initializer_range=1.0,
    )
    return _saved(tmp_path_factory.mktemp("bert"), tokenizer, transformers.BertForMaskedLM(config))


@pytest.fixture(scope="module")
def gpt(transformers: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A causal model of one layer that reads 8 pieces, byte-level as GPT-2."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("Ġ", "c"), ("Ġc", "a"), ("Ġca", "t"), ("c", "a"), ("ca", "t"), ("Ġ", "d"), ("Ġd", "o"), ("Ġdo", "g")]
    pieces = ["<|endoftext|>", *letters, *(a + b for a, b in merges)]
    coder = Tokenizer(models.BPE({piece: k for k, piece in enumerate(pieces)}, merges))
    coder.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    coder.decoder = decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=coder, bos_token="<|endoftext|>", eos_token="<|endoftext|>"
    )
    torch.manual_seed(1)
    config = transformers.GPT2Config(
        vocab_size=len(pieces),
        n_positions=8,
        n_embd=16,
        n_layer=1,
        n_head=2,
        initializer_range=1.0,
        bos_token_id=0,
        eos_token_id=0,
    )
    return _saved(tmp_path_factory.mktemp("gpt"), tokenizer, transformers.GPT2LMHeadModel(config))


def _saved(folder: Path, tokenizer: object, network: object) -> str:
    from transformers.utils import logging

    logging.disable_progress_bar()
    tokenizer.save_pretrained(folder)  # type: ignore[attr-defined]
    network.save_pretrained(folder)  # type: ignore[attr-defined]
    logging.enable_progress_bar()
    return str(folder)


def test_a_masked_model_gives_its_own_probabilities(bert: str, transformers: ModuleType) -> None:
    import torch

    probes = _one(InfillModel(bert, threshold=0.0), white_space("the cats sat ."), _hiding(4, 1))
    network = transformers.AutoModelForMaskedLM.from_pretrained(bert).eval()
    asked = torch.tensor([[2, 5, 4, 8, 13, 3]])
    with torch.inference_mode():
        expected = network(asked).logits[0, 2].double().softmax(-1).numpy()
    words = {word: expected[VOCABULARY.index(word)] for word in ("the", "cat", "dog", "sat", "mat", "on", "a", ".")}
    total = sum(words.values())
    assert probes.weights is not None
    found = dict(zip(probes.texts, probes.weights.tolist(), strict=True))
    assert found == pytest.approx({f"the {word} sat .": p / total for word, p in words.items()}, abs=1e-6)
    assert list(found) == sorted(found, key=found.__getitem__, reverse=True)


def test_a_causal_model_gives_its_own_probabilities(gpt: str, transformers: ModuleType) -> None:
    import torch

    tokenizer = transformers.AutoTokenizer.from_pretrained(gpt)
    probes = _one(InfillModel(gpt, threshold=0.0), white_space("a cat ran"), _hiding(3, 2))
    network = transformers.AutoModelForCausalLM.from_pretrained(gpt).eval()
    with torch.inference_mode():
        asked = torch.tensor([[0, *tokenizer("a cat")["input_ids"]]])
        expected = network(asked).logits[0, -1].double().softmax(-1).numpy()
    names = ("c", "ca", "cat", "d", "do", "dog")  # the pieces that follow a blank; "ca" and "cat" without one do not
    words = {name: expected[tokenizer.convert_tokens_to_ids(f"Ġ{name}")] for name in names}
    total = sum(words.values())
    assert probes.weights is not None
    found = dict(zip(probes.texts, probes.weights.tolist(), strict=True))
    assert found == pytest.approx({f"a cat {name}": p / total for name, p in words.items()}, abs=1e-6)


def test_batches_do_not_change_what_a_model_says(bert: str, gpt: str) -> None:
    texts = ["the cat sat", "a dog", "the mat . the cats sat on a mat", "the cat sat"]
    asked = [(white_space(text), ~np.eye(len(text.split()), dtype=np.bool_)) for text in texts]
    for path in (bert, gpt):
        large = InfillModel(path, threshold=0.0).render(asked)
        small = InfillModel(path, threshold=0.0, batch=1).render(asked)
        for one, other in zip(large, small, strict=True):
            assert dict(zip(one.texts, one.weights, strict=True)) == pytest.approx(
                dict(zip(other.texts, other.weights, strict=True)), abs=1e-6
            )


def test_long_texts_are_read_in_a_window_around_the_place(bert: str, gpt: str) -> None:
    text = " ".join(["the cat sat on a mat ."] * 30)
    words = white_space(text)
    masks = ~np.eye(len(words), dtype=np.bool_)
    for path in (bert, gpt):
        probes = _one(InfillModel(path, top=1), words, masks)
        assert len(probes.texts) == len(words)


@pytest.mark.parametrize(("word", "first"), [(0, 0), (6, 0), (7, 0), (8, 1), (20, 13), (29, 16)])
def test_the_window_of_a_masked_model_has_the_place_in_its_middle(bert: str, word: int, first: int) -> None:
    words = white_space(" ".join(["the", "cat", "sat", "on", "a"] * 6))
    pieces = [VOCABULARY.index(name) for name in words]
    pieces[word] = 4
    (question,) = language_models.load(bert, "auto", "cpu")._mask([(words, word)])
    assert question == ((2, *pieces[first : first + 14], 3), 1 + word - first)


def test_the_window_of_a_causal_model_ends_before_the_place(gpt: str) -> None:
    (question,) = language_models.load(gpt, "auto", "cpu")._causal([(white_space(" ".join(["cat"] * 30)), 29)])
    assert len(question.pieces) == 8
    assert len(set(question.pieces[1:])) == 1
    assert question.pieces[0] == 0
    assert question.at == 7


def test_a_text_that_holds_a_mask_token_is_asked_in_the_right_place(bert: str) -> None:
    model = language_models.load(bert, "auto", "cpu")
    words = white_space("[MASK] the cat [MASK]")
    (question,) = model._mask([(words, 2)])
    assert question == ((2, 4, 5, 4, 4, 3), 3)


def test_models_that_cannot_do_it_are_refused(bert: str, gpt: str, tmp_path: Path, transformers: ModuleType) -> None:
    words, mask = white_space("a cat"), _hiding(2, 1)
    loaded = language_models.load(gpt, "auto", "cpu")
    model = language_models.LanguageModel("gpt", loaded._tokenizer, loaded._predict, "masked", 8)
    with pytest.raises(SpecError, match=re.escape("infill_model: 'gpt' has no mask token; use kind='causal'")):
        model.candidates([(words, 1)], Choice(0.0, None, "default"), 100)
    config = json.loads(Path(bert, "config.json").read_text())
    for name in ("tokenizer.json", "tokenizer_config.json", "model.safetensors"):
        (tmp_path / name).write_bytes(Path(bert, name).read_bytes())
    (tmp_path / "config.json").write_text(json.dumps({**config, "architectures": ["BertModel"]}))
    with pytest.raises(SpecError, match=re.escape("is BertModel, not a language model; name another, or say kind=")):
        _one(InfillModel(str(tmp_path)), words, mask)
    assert _one(InfillModel(str(tmp_path), kind="masked", top=1), words, mask).texts
    assert transformers.utils.logging.is_progress_bar_enabled()


def test_weights_other_than_safetensors_are_refused(bert: str, tmp_path: Path) -> None:
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes(Path(bert, name).read_bytes())
    (tmp_path / "pytorch_model.bin").write_bytes(b"anything")
    with pytest.raises(MissingExtra, match=re.escape(f"the language model {str(tmp_path)!r} cannot be loaded: ")):
        _one(InfillModel(str(tmp_path)), white_space("a cat"), _hiding(2, 1))


def test_without_the_packages_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(
        MissingExtra, match=re.escape("infill_model needs extra packages: pip install 'whyscore[neural]'")
    ):
        _one(InfillModel("some/model"), white_space("a cat"), _hiding(2, 1))


def test_importing_the_masker_imports_no_torch() -> None:
    module = importlib.import_module("whyscore.models.language_models")
    assert not hasattr(module, "torch")
    assert not hasattr(module, "transformers")


@pytest.mark.parametrize(("options", "message"), [
    ({"batch": 0}, "infill_model: batch is 0, expected 1 or more"),
    ({"kind": "seq2seq"}, "InfillModel: kind is 'seq2seq', expected 'auto' or 'masked' or 'causal'"),
    ({"top": -1}, "infill_model: top is -1, expected 1 or more, or None for all"),
])  # fmt: skip
def test_options_of_models_out_of_range_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        InfillModel("some/model", **options)  # type: ignore[arg-type]
