"""Tiny random models in the layouts of the large ones, for tests that must not download anything.

Weights depend on the seed alone; the vocabulary is made from the texts of the test, so that words fall into one, two
or more pieces. Needs torch, transformers and tokenizers.
"""

import importlib
import json
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Literal

import numpy as np

from whyscore.models.checkpoints import quiet

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch.nn import Module
    from transformers import PreTrainedTokenizerFast

TEXTS = (
    "The cat sat on the mat.",
    "A dog slept under the old table, didn't it?",
    "Die Katze saß auf der Matte.",
    "Ein Hund schlief unter dem alten Tisch.",
    "Kass istus matil ja vaatas välja.",
)

Family = Literal["xlm-roberta", "bert", "bart", "mt5"]

_ROBERTA = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
_SPECIALS: dict[Family, tuple[str, ...]] = {
    "xlm-roberta": _ROBERTA,
    "bart": _ROBERTA,
    "bert": ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    "mt5": ("<pad>", "</s>", "<unk>"),
}
_NAMES: dict[Family, dict[str, str]] = {
    "xlm-roberta": {"bos": "<s>", "cls": "<s>", "eos": "</s>", "sep": "</s>", "pad": "<pad>", "unk": "<unk>"},
    "bart": {"bos": "<s>", "cls": "<s>", "eos": "</s>", "sep": "</s>", "pad": "<pad>", "unk": "<unk>"},
    "bert": {"cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "unk": "[UNK]", "mask": "[MASK]"},
    "mt5": {"eos": "</s>", "pad": "<pad>", "unk": "<unk>"},
}
_FRAMES: dict[Family, tuple[str, str]] = {
    "xlm-roberta": ("<s> $A </s>", "<s> $A </s> </s> $B </s>"),
    "bart": ("<s> $A </s>", "<s> $A </s> </s> $B </s>"),
    "bert": ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"),
    "mt5": ("$A </s>", "$A </s> $B </s>"),
}


def tokenizer(family: Family, texts: Sequence[str] = TEXTS, limit: int = 64) -> "PreTrainedTokenizerFast":
    """Return a fast tokenizer of a family whose vocabulary covers the texts."""
    tokenizers, transformers = _package("tokenizers"), _package("transformers")
    made = {"xlm-roberta": _unigram, "mt5": _unigram, "bart": _bytes, "bert": _word_pieces}[family](family, texts)
    single, pair = _FRAMES[family]
    specials = [(text, made.token_to_id(text)) for text in _SPECIALS[family]]
    made.post_processor = tokenizers.processors.TemplateProcessing(single=single, pair=pair, special_tokens=specials)
    names = {f"{name}_token": text for name, text in _NAMES[family].items()}
    ready: PreTrainedTokenizerFast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, model_max_length=limit, **names
    )
    return ready


def network(
    name: str,
    vocabulary: int,
    *,
    blocks: int = 3,
    width: int = 32,
    positions: int = 64,
    seed: int = 0,
    std: float | None = None,
    **options: object,
) -> "Module":
    """Return a random network of a class of transformers, in evaluation mode; `options` go to its configuration.

    With `std`, matrices have that deviation and norms a gain near one, so that pieces take notice of their context.
    Without it every weight has the deviation 0.3, norms included, which keeps the context nearly without effect.
    """
    torch, transformers = _package("torch"), _package("transformers")
    made = getattr(transformers, name)
    sizes = _sizes(made.config_class.model_type, blocks, width, positions)
    config = made.config_class(vocab_size=vocabulary, **(sizes | options))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        ready: Module = made(config)
        for part, parameter in ready.named_parameters():
            # The usual start with tiny numbers would make all texts alike.
            gain = std is not None and "norm" in part.lower() and part.endswith("weight")
            torch.nn.init.normal_(parameter, mean=float(gain), std=_deviation(parameter.dim(), std))
    return ready.eval()


def save(
    folder: Path, family: Family, name: str, *, texts: Sequence[str] = TEXTS, limit: int = 64, **options: object
) -> "Module":
    """Return a random network that was written to a folder together with its tokenizer."""
    coder = tokenizer(family, texts, limit)
    made = network(name, len(coder), positions=limit, **options)  # type: ignore[arg-type]
    with quiet():
        made.save_pretrained(folder)
        coder.save_pretrained(folder)
    return made


def save_gguf(folder: Path, path: Path) -> None:
    """Write the tiny Qwen2 of a folder as a GGUF file in float32, the way llama.cpp lays such models out."""
    gguf, transformers = _package("gguf"), _package("transformers")
    with quiet():
        model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    coder = json.loads((folder / "tokenizer.json").read_text("utf-8"))["model"]
    config = model.config
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_license("apache-2.0")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(sorted(coder["vocab"], key=coder["vocab"].__getitem__))
    writer.add_token_merges([" ".join(pair) for pair in coder["merges"]])
    writer.add_bos_token_id(config.bos_token_id)
    writer.add_eos_token_id(config.eos_token_id)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2, config.num_hidden_layers)
    for name, tensor in model.state_dict().items():
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight", ".bias")), tensor.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _deviation(dimensions: int, std: float | None) -> float:
    if std is None:
        return 0.3
    return 0.1 if dimensions == 1 else std


def _package(name: str) -> ModuleType:
    return importlib.import_module(name)


def _sizes(kind: str, blocks: int, width: int, positions: int) -> dict[str, object]:
    if kind == "mt5":
        return {
            "num_layers": blocks,
            "d_model": width,
            "d_kv": 8,
            "d_ff": 2 * width,
            "num_heads": 4,
            "dropout_rate": 0.0,
        }
    if kind == "bart":
        sides = ("encoder", "decoder")
        heads = {f"{side}_attention_heads": 4 for side in sides} | {f"{side}_ffn_dim": 2 * width for side in sides}
        layers = {f"{side}_layers": blocks for side in sides}
        return {"d_model": width, "max_position_embeddings": positions, **heads, **layers}
    # RoBERTa counts positions from after the padding piece, number 1.
    table = positions + 2 if "roberta" in kind else positions
    types = {"type_vocab_size": 1} if "roberta" in kind else {}
    return {
        "hidden_size": width,
        "num_hidden_layers": blocks,
        "num_attention_heads": 4,
        "intermediate_size": 2 * width,
        "max_position_embeddings": table,
        **types,
    }


def _words(texts: Sequence[str]) -> list[str]:
    return sorted({word for text in texts for word in text.split()})


def _unigram(family: Family, texts: Sequence[str]) -> "Tokenizer":
    """Return a SentencePiece-like model: characters, whole words for every other word, three letters for the rest."""
    tokenizers = _package("tokenizers")
    letters = sorted({letter for text in texts for letter in text if not letter.isspace()})
    wholes = [f"▁{word}" if number % 2 else f"▁{word[:3]}" for number, word in enumerate(_words(texts))]
    pieces = [(text, 0.0) for text in _SPECIALS[family]]
    pieces += [(piece, -3.0) for piece in dict.fromkeys(wholes)] + [("▁", -5.0)]
    pieces += [(letter, -8.0) for letter in letters]
    unknown = [text for text, _ in pieces].index("<unk>")
    made: Tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, unk_id=unknown))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    made.decoder = tokenizers.decoders.Metaspace()
    return made


def _bytes(family: Family, texts: Sequence[str]) -> "Tokenizer":
    tokenizers = _package("tokenizers")
    made: Tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=list(_SPECIALS[family]),
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(texts, trainer)
    return made


def _word_pieces(family: Family, texts: Sequence[str]) -> "Tokenizer":
    tokenizers = _package("tokenizers")
    letters = sorted({letter for text in texts for letter in text if not letter.isspace()})
    wholes = [word for number, word in enumerate(_words(texts)) if number % 2]
    pieces = [*_SPECIALS[family], *letters, *(f"##{letter}" for letter in letters), *wholes]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    unknown = _NAMES[family]["unk"]
    made: Tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token=unknown))
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    return made


def near(values: object, expected: object, tolerance: float = 1e-5) -> None:
    """Check that numbers are equal but for what another order of computing changes."""
    np.testing.assert_allclose(np.asarray(values), np.asarray(expected), atol=tolerance, rtol=0)
