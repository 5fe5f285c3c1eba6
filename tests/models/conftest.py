"""Tiny networks of many kinds, with random weights and a vocabulary from a few texts."""

import importlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"

TEXTS = [
    "The cat sat on the mat.",
    "A dog barked at the cat, loudly and for a long time!",
    "Die Katze saß auf der Matte.",
    "Der Hund bellte die Katze an; niemand wusste, warum.",
    "Pisica stătea pe covor, iar câinele lătra.",
    "Кошка сидела на коврике.",
    "猫はマットの上に座っていました。",
    "one",
]

BLOCKS, WIDTH = 4, 32

_COMMON = {"vocab_size": 0, "hidden_size": WIDTH, "num_hidden_layers": BLOCKS, "num_attention_heads": 4}
_BERT = {"intermediate_size": 64, "initializer_range": 0.1}
_BART = {
    "d_model": WIDTH,
    "encoder_layers": BLOCKS,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 64,
    "init_std": 0.1,
}
_T5 = {"d_model": WIDTH, "d_kv": 8, "d_ff": 64, "num_layers": BLOCKS, "num_decoder_layers": 1, "num_heads": 4}
_GPT = {"n_embd": WIDTH, "n_layer": BLOCKS, "n_head": 4, "n_positions": 64, "initializer_range": 0.1}

# Kind -> class of configuration, class of network, scheme of pieces, frame, limit of the tokenizer, settings.
KINDS: dict[str, tuple[str, str, str, str, int, dict[str, object]]] = {
    "bert": (
        "BertConfig",
        "BertForMaskedLM",
        "word",
        "[CLS] $A [SEP]",
        64,
        _COMMON | _BERT | {"max_position_embeddings": 64},
    ),
    "roberta": (
        "RobertaConfig",
        "RobertaForMaskedLM",
        "byte",
        "<s> $A </s>",
        10**30,
        _COMMON | _BERT | {"max_position_embeddings": 66},
    ),
    "xlm-roberta": (
        "XLMRobertaConfig",
        "XLMRobertaModel",
        "unigram",
        "<s> $A </s>",
        64,
        _COMMON | _BERT | {"max_position_embeddings": 66},
    ),
    "xlm-roberta-xl": (
        "XLMRobertaXLConfig",
        "XLMRobertaXLModel",
        "unigram",
        "<s> $A </s>",
        64,
        _COMMON | _BERT | {"max_position_embeddings": 66},
    ),
    "mbart": ("MBartConfig", "MBartModel", "unigram", "en_XX $A </s>", 64, _BART),
    "bart": ("BartConfig", "BartForConditionalGeneration", "byte", "<s> $A </s>", 64, _BART),
    "t5": ("T5Config", "T5ForConditionalGeneration", "unigram", "$A </s>", 10**30, _T5),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", "byte", "$A", 64, _GPT),
}

Tiny = Callable[[str], Path]


@pytest.fixture(scope="session")
def transformers() -> ModuleType:
    pytest.importorskip("torch", reason="the extra 'neural' is not installed")
    return pytest.importorskip("transformers", reason="the extra 'neural' is not installed")


@pytest.fixture(scope="session")
def tiny(transformers: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """Returns the folder of a tiny network of a kind, made at the first call."""
    made: dict[str, Path] = {}

    def folder(kind: str) -> Path:
        if kind not in made:
            made[kind] = build(transformers, kind, tmp_path_factory.mktemp(kind))
        return made[kind]

    return folder


def build(transformers: ModuleType, kind: str, folder: Path) -> Path:
    torch = importlib.import_module("torch")
    config_class, network_class, scheme, frame, limit, settings = KINDS[kind]
    tokenizer = tokenizer_of(transformers, scheme, frame, limit)
    torch.manual_seed(0)
    special = {name: getattr(tokenizer, name) for name in ("pad_token_id", "bos_token_id", "eos_token_id")}
    config = getattr(transformers, config_class)(**settings | special | {"vocab_size": len(tokenizer)})
    network = getattr(transformers, network_class)(config)
    with torch.no_grad():
        for parameter in network.parameters():
            # Norms and biases start as ones and zeros, which would hide that they are left out.
            parameter.add_(0.1 * torch.randn_like(parameter))
    tokenizer.save_pretrained(folder)
    network.save_pretrained(folder)
    return folder


def tokenizer_of(transformers: ModuleType, scheme: str, frame: str, limit: int) -> object:
    tokenizers = importlib.import_module("tokenizers")
    parts = frame.split()
    special = (
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        if scheme == "word"
        else ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    )
    special += [part for part in parts if part != "$A" and part not in special]
    pad, unk, bos, eos, mask = (0, 1, 2, 3, 4) if scheme == "word" else (1, 3, 0, 2, 4)
    coder = scheme_of(tokenizers, scheme, special)
    pair = f"{frame} {' '.join(part for part in parts if part != '$A' and part == special[eos])} $B {special[eos]}"
    if len(parts) > 1:
        coder.post_processor = tokenizers.processors.TemplateProcessing(
            single=frame,
            pair=pair.replace("$A", "$A:0").replace("$B", "$B:1"),
            special_tokens=[(name, coder.token_to_id(name)) for name in special],
        )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=coder,
        pad_token=special[pad],
        unk_token=special[unk],
        bos_token=special[bos],
        eos_token=special[eos],
        mask_token=special[mask],
        model_max_length=limit,
    )


def scheme_of(tokenizers: ModuleType, scheme: str, special: list[str]) -> object:
    if scheme == "word":
        coder = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
        coder.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
        trainer = tokenizers.trainers.WordPieceTrainer(vocab_size=150, special_tokens=special, show_progress=False)
    elif scheme == "byte":
        coder = tokenizers.Tokenizer(tokenizers.models.BPE())
        coder.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        coder.post_processor = tokenizers.processors.ByteLevel(trim_offsets=True)
        alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=330, special_tokens=special, initial_alphabet=alphabet, show_progress=False
        )
    else:
        coder = tokenizers.Tokenizer(tokenizers.models.Unigram())
        coder.normalizer = tokenizers.normalizers.NFKC()
        coder.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
        trainer = tokenizers.trainers.UnigramTrainer(
            vocab_size=150, special_tokens=special, unk_token="<unk>", show_progress=False
        )
    coder.train_from_iterator(TEXTS, trainer)
    return coder


@pytest.fixture(autouse=True)
def fresh_models() -> Iterator[None]:
    """Forget loaded models after each test, as their notices come once."""
    yield
    importlib.import_module("whyscore.models.encoders.stacks")._source.cache_clear()
    importlib.import_module("whyscore.models.checkpoints")._fetch_folder.cache_clear()
