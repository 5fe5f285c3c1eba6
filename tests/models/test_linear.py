from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from whyscore.models import linear
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
