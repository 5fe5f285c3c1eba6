from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from whyscore.errors import SpecError
from whyscore.models import linear
from whyscore.models.checkpoints import ready
from whyscore.models.encoders import stacks
from whyscore.models.encoders.stacks import Encoding
from whyscore.models.encoders.transformer import Transformer

Tiny = Callable[[str], Path]

TEXTS = ["The cat sat on the mat.", "A dog barked at the cat, loudly and for a long time!", "one", "Die Katze saß."]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Networks that were loaded before have layers that were chosen before."""
    stacks.stack.cache_clear()
    linear.available.cache_clear()
    yield
    stacks.stack.cache_clear()
    linear.available.cache_clear()


@pytest.fixture
def one_dnn(transformers: ModuleType) -> None:
    del transformers  # with it comes torch
    if not linear.available():
        pytest.skip("oneDNN is not taken on this processor")


def encoding(folder: Path) -> Encoding:
    return Transformer(str(folder), 4, device="cpu").encoding()


def refuse(*_: object, **__: object) -> None:
    raise AttributeError("no such operator")


@pytest.mark.usefixtures("one_dnn")
@pytest.mark.parametrize("memory", [0, linear._MEMORY])
@pytest.mark.parametrize("kind", ["bert", "xlm-roberta", "mbart", "t5"])
def test_one_dnn_gives_the_vectors_of_plain_layers(
    memory: int, kind: str, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny(kind)
    monkeypatch.setattr(linear, "_MEMORY", memory)
    monkeypatch.setattr(linear, "_ordered", {})
    found = encoding(folder).encode(TEXTS)
    assert bool(linear._ordered) == bool(memory)
    stacks.stack.cache_clear()
    monkeypatch.setattr(linear, "available", lambda: False)
    for fast, plain in zip(found, encoding(folder).encode(TEXTS), strict=True):
        np.testing.assert_allclose(fast.vectors, plain.vectors, rtol=0, atol=1e-5)


@pytest.mark.usefixtures("one_dnn")
def test_all_linear_layers_multiply_by_one_dnn_only_where_nothing_is_learned(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    layer = torch.nn.Linear(5, 3)
    linear.speed_up(torch.nn.Sequential(torch.nn.ReLU(), layer))
    multiplied: list[object] = []
    multiply = linear._multiply
    monkeypatch.setattr(linear, "_multiply", lambda *args, keep: multiplied.append(args) or multiply(*args, keep=keep))
    rows = torch.rand(4, 5)
    with torch.inference_mode():
        inferred = layer(rows)
    assert len(multiplied) == 1
    learned = layer(rows)
    learned.sum().backward()
    assert len(multiplied) == 1
    assert layer.weight.grad is not None
    torch.testing.assert_close(inferred.clone(), learned.detach(), rtol=0, atol=1e-6)
    encoding(tiny("bert")).encode(TEXTS)
    assert len(multiplied) > 4 * 6


@pytest.mark.usefixtures("one_dnn")
def test_weights_that_have_changed_are_ordered_anew() -> None:
    import torch

    layer, rows = torch.nn.Linear(5, 3), torch.rand(4, 5)
    linear.speed_up(layer)
    with torch.inference_mode():
        layer(rows)
    with torch.no_grad():
        layer.weight.zero_()
    with torch.inference_mode():
        assert torch.equal(layer(rows), layer.bias.expand(4, 3))
    layer.weight = torch.nn.Parameter(torch.ones(3, 5))
    with torch.inference_mode():
        torch.testing.assert_close(layer(rows), rows.sum(1, keepdim=True) + layer.bias)


def test_layers_stay_as_they_are_where_one_dnn_cannot_be_had(
    transformers: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    del transformers
    import torch

    monkeypatch.setattr(linear, "_multiply", refuse)
    assert not linear.available()
    layer = torch.nn.Linear(5, 3)
    linear.speed_up(layer)
    assert "forward" not in vars(layer)


def test_a_wrong_product_is_not_taken(transformers: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    del transformers
    import torch

    monkeypatch.setattr(linear, "_multiply", lambda _, rows, **__: torch.zeros(len(rows), 4))
    assert not linear.available()


def test_looking_for_one_dnn_draws_no_random_numbers(transformers: ModuleType) -> None:
    del transformers
    torch = pytest.importorskip("torch")
    torch.manual_seed(3)
    before = torch.get_rng_state()
    linear.available()
    assert torch.equal(before, torch.get_rng_state())


def test_integers_give_nearly_the_product_and_leave_narrow_layers_alone(transformers: ModuleType) -> None:
    del transformers
    import torch

    torch.manual_seed(0)
    wide, narrow, rows = torch.nn.Linear(96, 64), torch.nn.Linear(64, 1), torch.randn(600, 96)
    with torch.inference_mode():
        plain = wide(rows)
        linear.quantise(torch.nn.Sequential(wide, narrow))
        product = wide(rows)
    assert "forward" not in vars(narrow)
    error = (product - plain).abs()
    # Each of the 96 products is off by 1/254 of the largest weight and value at most; most of these errors cancel out.
    assert 0 < error.mean() < 0.01
    assert error.max() < 0.05


def test_integers_multiply_each_row_by_itself(transformers: ModuleType) -> None:
    del transformers
    import torch

    torch.manual_seed(0)
    layer, rows = torch.nn.Linear(32, 64, bias=False), torch.randn(3, 300, 32)
    rows[1, 7] = 0.0
    linear.quantise(layer)
    with torch.inference_mode():
        together = layer(rows)
        assert not together[1, 7].any()
        for text, place in ((0, 0), (1, 255), (2, 299)):
            assert torch.equal(layer(rows[text, place]), together[text, place])
        torch.testing.assert_close(layer(rows * 1024), together * 1024)


def test_a_text_has_the_same_vectors_in_int8_alone_and_in_a_batch(tiny: Tiny) -> None:
    model = Transformer(str(tiny("bert")), 4, device="cpu", precision="int8")
    assert ("prec", "int8") in model.signature().facts
    plain = Transformer(str(tiny("bert")), 4, device="cpu").encode(TEXTS)
    for text, encoded, exact in zip(TEXTS, model.encode(TEXTS), plain, strict=True):
        np.testing.assert_allclose(model.encode([text])[0].vectors, encoded.vectors, rtol=0, atol=1e-5)
        assert 0 < np.abs(encoded.vectors - exact.vectors).max() < 0.2


def test_int8_is_refused_where_gradients_are_wanted(transformers: ModuleType) -> None:
    del transformers
    import torch

    layer = torch.nn.Linear(32, 64)
    linear.quantise(layer)
    with pytest.raises(SpecError, match="precision='int8' has no gradients; use precision='fp32'"):
        layer(torch.randn(2, 32, requires_grad=True))


def test_int8_is_refused_on_other_devices(transformers: ModuleType) -> None:
    del transformers
    import torch

    with pytest.raises(SpecError, match="precision='int8' runs on the processor alone, got device='cuda'; use bf16"):
        ready(torch.nn.Linear(2, 2), "cuda", "int8")
