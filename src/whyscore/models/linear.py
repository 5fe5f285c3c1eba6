"""Linear layers of networks, multiplied by oneDNN on the processor.

PyTorch hands products in float32 to MKL, which leaves AVX-512 unused on processors that are not Intel's: there oneDNN,
which PyTorch carries too, is more than twice as fast. The operators are those that PyTorch's own compiler takes.

1. They are not public (seen in PyTorch 2.13): they are taken only on processors with AVX-512, and where they give the
   product that they should. Elsewhere layers stay as they are.
2. A layer takes them where nothing is to be learned (`torch.inference_mode`), for float32 on the processor. Training,
   attribution and other devices have the product of PyTorch.
3. Weights are kept a second time in the order that oneDNN reads them in, and ordered anew when they have changed; those
   of large networks are ordered for each product, which is 5 to 10 % slower.

From two rows on, a row has the same digits whatever the other rows and the threads.
"""

import importlib
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Linear, Module

_MEMORY = 512 * 1024**2
"""Bytes of weights of a network that are kept a second time at most."""


class _Ordered(NamedTuple):
    """Weights in the order of oneDNN, and which state of which numbers they are."""

    state: tuple[int, int]
    weights: "Tensor"


_ordered: "WeakKeyDictionary[Linear, _Ordered]" = WeakKeyDictionary()


def speed_up(network: "Module") -> None:
    """Make the linear layers of a network multiply by oneDNN, where it can be had."""
    if not available():
        return
    nn = importlib.import_module("torch.nn")
    layers = [part for part in network.modules() if type(part) is nn.Linear]
    keep = sum(layer.weight.nbytes for layer in layers) <= _MEMORY
    for layer in layers:
        layer.forward = partial(_forward, layer, keep=keep)


@lru_cache(maxsize=1)
def available() -> bool:
    """Return whether oneDNN multiplies here as it should."""
    torch = importlib.import_module("torch")
    if not (torch.backends.mkldnn.is_available() and torch.backends.cpu.get_cpu_capability() == "AVX512"):
        return False
    rows = torch.eye(2, 3)
    layer = torch.nn.utils.skip_init(torch.nn.Linear, 3, 4)  # draws no random numbers: a seed was set by the caller
    try:
        with torch.inference_mode():
            for numbers in layer.parameters():
                numbers.copy_(torch.arange(numbers.numel()).reshape(numbers.shape) / 8)
            products = [_multiply(layer, rows, keep=keep) for keep in (False, True)]
    except (AttributeError, RuntimeError, TypeError):
        return False
    return all(torch.allclose(product, layer(rows)) for product in products)


def _forward(layer: "Linear", states: "Tensor", *, keep: bool) -> "Tensor":
    torch = importlib.import_module("torch")
    if torch.is_inference_mode_enabled() and states.is_cpu and states.dtype == layer.weight.dtype == torch.float32:
        return _multiply(layer, states, keep=keep)
    result: Tensor = torch.nn.functional.linear(states, layer.weight, layer.bias)
    return result


def _multiply(layer: "Linear", states: "Tensor", *, keep: bool) -> "Tensor":
    product = importlib.import_module("torch").ops.mkldnn._linear_pointwise  # noqa: SLF001
    result: Tensor = product(states, _order(layer) if keep else layer.weight, layer.bias, "none", [], "")
    return result


def _order(layer: "Linear") -> "Tensor":
    """Return the weights of a layer in the order of oneDNN."""
    weight = layer.weight
    state = (weight.data_ptr(), weight._version)  # noqa: SLF001
    ordered = _ordered.get(layer)
    if ordered is None or ordered.state != state:
        operators = importlib.import_module("torch").ops.mkldnn
        ordered = _ordered[layer] = _Ordered(state, operators._reorder_linear_weight(weight, None))  # noqa: SLF001
    return ordered.weights
