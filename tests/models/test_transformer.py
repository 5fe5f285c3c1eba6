import re
import shutil
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from whyscore.errors import ExecutionError
from whyscore.models.encoders import stacks
from whyscore.models.encoders.stacks import Stack
from whyscore.models.encoders.transformer import Transformer
from whyscore.models.pairs import MemoryWarning, Row, Vectors
from whyscore.protocols import Encoder
from whyscore.text import alignment

Tiny = Callable[[str], Path]

KINDS = ["bert", "roberta", "xlm-roberta", "xlm-roberta-xl", "mbart", "bart", "t5", "gpt2"]

# Where the norm after the last block is, for the kinds that have one.
NORMS = {"xlm-roberta-xl": "encoder.LayerNorm", "mbart": "layer_norm", "t5": "final_layer_norm", "gpt2": "ln_f"}

TEXTS = [
    "The cat sat on the mat.",
    "  A dog barked at the cat, loudly and for a long time! ",
    "Die Katze saß auf der Matte.",
    "Кошка сидела\u00a0на коврике.",
    "猫はマットの上に座っていました。",
    "cafe\u0301 \ufb01ne 👩‍🚀",
    "one",
    "The cat sat on the mat.",
    "The  cat\tsat",
]


def hidden_states(transformers: ModuleType, folder: Path, text: str) -> tuple[object, tuple[Vectors, ...]]:
    """The network and all states of one text, as transformers itself computes them."""
    import torch

    with stacks.quiet():
        network = transformers.AutoModel.from_pretrained(folder).eval()
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    encoder = network.get_encoder() if network.config.is_encoder_decoder else network
    read = tokenizer(text, return_tensors="pt")
    with torch.inference_mode():
        found = encoder(input_ids=read.input_ids, attention_mask=read.attention_mask, output_hidden_states=True)
    return encoder, tuple(state[0] for state in found.hidden_states)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layer", [0, 1, 3, 4])
def test_a_layer_is_the_state_after_that_many_blocks_and_the_final_norm(
    kind: str, layer: int, tiny: Tiny, transformers: ModuleType
) -> None:
    import torch

    text = "The cat sat on the mat."
    encoder, states = hidden_states(transformers, tiny(kind), text)
    wanted = states[layer]
    if kind in NORMS and layer < 4:
        with torch.inference_mode():
            normed = encoder.get_submodule(NORMS[kind])(wanted)
        assert float((normed - wanted).abs().max()) > 0.1
        wanted = normed
    (encoded,) = Transformer(str(tiny(kind)), layer, first_blank=False).encode([text])
    np.testing.assert_allclose(encoded.vectors, wanted.numpy(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_above_the_layer_are_not_computed(kind: str, tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    create = stacks.Stack.__init__

    def seen(self: Stack, network: object, *rest: object) -> None:
        made.append(network)
        create(self, network, *rest)

    monkeypatch.setattr(stacks.Stack, "__init__", seen)
    Transformer(str(tiny(kind)), 2).encode(["one"])
    names = {name for name, _ in made[0].named_parameters()}
    assert any(re.search(r"\.1\.", name) for name in names)
    assert not any(re.search(r"(layers?|block|h)\.[23]\.", name) for name in names)


@pytest.mark.parametrize("kind", KINDS)
def test_batches_and_order_change_nothing(kind: str, tiny: Tiny) -> None:
    whole = Transformer(str(tiny(kind)), 3).encode(TEXTS)
    for size in (1, 7, 64):
        order = np.random.default_rng(size).permutation(len(TEXTS))
        found = Transformer(str(tiny(kind)), 3, batch=size).encode([TEXTS[i] for i in order])
        for place, encoded in zip(order, found, strict=True):
            scale = np.abs(whole[place].vectors).max()
            np.testing.assert_allclose(encoded.vectors / scale, whole[place].vectors / scale, rtol=0, atol=1e-6)
            assert encoded.pieces == whole[place].pieces
            assert encoded.spans.tolist() == whole[place].spans.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_every_letter_belongs_to_a_piece_of_the_text_as_it_was_given(kind: str, tiny: Tiny) -> None:
    for text, encoded in zip(TEXTS, Transformer(str(tiny(kind)), 0).encode(TEXTS), strict=True):
        spans = encoded.spans[~encoded.special]
        # Tokenizers that compose letters leave the mark that was joined to one outside its span.
        left = alignment.find_uncovered(text, spans.tolist())
        assert all(unicodedata.combining(text[offset]) for offset in left)
        assert spans.min() >= len(text) - len(text.lstrip())
        assert spans.max() <= len(text.rstrip())
        assert len(encoded.vectors) == len(encoded.pieces) == len(encoded.special) == encoded.total


def test_outer_white_space_shifts_spans_and_nothing_else(tiny: Tiny) -> None:
    plain, framed = Transformer(str(tiny("bert")), 3).encode(["The cat sat", " \n The cat sat  "])
    assert np.array_equal(plain.vectors, framed.vectors)
    assert framed.spans[1:-1].tolist() == (plain.spans[1:-1] + 3).tolist()


def test_special_pieces_are_those_the_tokenizer_adds(tiny: Tiny) -> None:
    (encoded,) = Transformer(str(tiny("mbart")), 1).encode(["one </s> one"])
    assert [piece for piece, special in zip(encoded.pieces, encoded.special, strict=True) if special] == [
        "en_XX",
        "</s>",
    ]
    assert encoded.pieces.count("</s>") == 2
    assert encoded.spans[[0, -1]].tolist() == [[0, 0], [12, 12]]


@pytest.mark.parametrize(("kind", "first"), [("roberta", "Ġcat"), ("gpt2", "Ġcat")])
def test_a_blank_before_the_first_word_makes_it_the_same_piece_as_elsewhere(kind: str, first: str, tiny: Tiny) -> None:
    with_blank = Transformer(str(tiny(kind)), 1).encode(["cat"])[0]
    without = Transformer(str(tiny(kind)), 1, first_blank=False).encode(["cat"])[0]
    assert first in with_blank.pieces
    assert first not in without.pieces
    assert with_blank.spans[with_blank.pieces.index(first)].tolist() == [0, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_text_has_special_pieces_alone(kind: str, tiny: Tiny) -> None:
    blank, empty = Transformer(str(tiny(kind)), 2).encode(["  ", ""])
    assert blank.special.all()
    assert blank.total == empty.total == len(blank.vectors) == {"gpt2": 0, "t5": 1}.get(kind, 2)
    assert empty.vectors.shape[1] == 32


def test_no_text_has_no_vectors(tiny: Tiny) -> None:
    assert Transformer(str(tiny("bert")), 2).encode([]) == []
    assert Transformer(str(tiny("bert")), 2).pooled([]).shape == (0, 32)


def test_each_distinct_text_is_encoded_once(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Row] = []
    inner = Stack.states
    monkeypatch.setattr(Stack, "states", lambda self, rows: read.extend(rows) or inner(self, rows))
    found = Transformer(str(tiny("bert")), 2).encode(["one", "the cat", "one", " one ", "the cat"])
    assert len(read) == len(set(read)) == 2
    assert np.array_equal(found[0].vectors, found[3].vectors)


def test_the_pooled_vector_is_the_mean_of_all_pieces(tiny: Tiny) -> None:
    model = Transformer(str(tiny("bert")), 2)
    for vector, encoded in zip(model.pooled(TEXTS), model.encode(TEXTS), strict=True):
        np.testing.assert_allclose(vector, encoded.vectors.mean(axis=0), rtol=0, atol=1e-5)
    assert not Transformer(str(tiny("gpt2")), 2).pooled([""]).any()


def test_texts_of_like_length_are_computed_together_within_the_budget(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[list[int]] = []
    inner = Stack.states

    def seen(self: Stack, rows: Sequence[Row]) -> list[Vectors]:
        batches.append([len(row.ids) for row in rows])
        return inner(self, rows)

    monkeypatch.setattr(Stack, "states", seen)
    texts = [" ".join(["cat"] * (1 + number % 9)) + f" {number}" for number in range(60)]
    Transformer(str(tiny("bert")), 1, batch=48).encode(texts)
    assert all(max(batch) * len(batch) <= 48 for batch in batches)
    assert [size for batch in batches for size in batch] == sorted((s for b in batches for s in b), reverse=True)


def test_out_of_memory_halves_the_batch_and_goes_on(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Transformer(str(tiny("bert")), 2)
    wanted = model.encode(TEXTS)
    sizes: list[int] = []
    inner = Stack.states

    def scarce(self: Stack, rows: Sequence[Row]) -> list[Vectors]:
        sizes.append(len(rows))
        if len(rows) > 2:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return inner(self, rows)

    monkeypatch.setattr(Stack, "states", scarce)
    with pytest.warns(MemoryWarning, match="do not fit into memory; going on with"):
        found = model.encode(TEXTS)
    assert sizes[0] == len(set(TEXTS))
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.vectors, b.vectors, rtol=0, atol=1e-4)


def test_one_text_that_does_not_fit_into_memory_is_an_error(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> list[Vectors]:
        raise MemoryError

    monkeypatch.setattr(Stack, "states", none)
    with pytest.raises(ExecutionError, match="does not fit into memory"):
        Transformer(str(tiny("bert")), 2).encode(["one"])


def test_another_error_of_the_network_is_not_taken_for_lack_of_memory(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> list[Vectors]:
        raise RuntimeError("index out of range")

    monkeypatch.setattr(Stack, "states", broken)
    with pytest.raises(RuntimeError, match="index out of range"):
        Transformer(str(tiny("bert")), 2).encode(["one"])


def test_half_precision_is_named_and_comes_back_as_fp32(tiny: Tiny) -> None:
    model = Transformer(str(tiny("bert")), 2, precision="bf16")
    (encoded,) = model.encode(["The cat sat"])
    (exact,) = Transformer(str(tiny("bert")), 2).encode(["The cat sat"])
    assert encoded.vectors.dtype == np.float32
    assert ("prec", "bf16") in model.signature().facts
    assert 0 < np.abs(encoded.vectors - exact.vectors).max() < 0.2


def test_it_is_an_encoder(tiny: Tiny) -> None:
    assert isinstance(Transformer(str(tiny("bert"))), Encoder)


def test_blocks_that_are_shared_are_computed_to_the_end_and_read_at_the_layer(
    tiny: Tiny, transformers: ModuleType, tmp_path: Path
) -> None:
    import torch

    # ALBERT has one block that it passes four times, so that none can be taken out.
    folder = Path(shutil.copytree(tiny("bert"), tmp_path / "albert"))
    sizes = {"embedding_size": 8, "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4}
    config = transformers.AlbertConfig(vocab_size=200, intermediate_size=64, max_position_embeddings=64, **sizes)
    torch.manual_seed(0)
    transformers.AlbertModel(config).save_pretrained(folder)
    _, states = hidden_states(transformers, folder, "The cat sat")
    for layer in range(5):
        (encoded,) = Transformer(str(folder), layer).encode(["The cat sat"])
        np.testing.assert_allclose(encoded.vectors, states[layer].numpy(), rtol=0, atol=1e-5)
