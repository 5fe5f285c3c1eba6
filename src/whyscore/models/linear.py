"""Linear layers of networks, multiplied by oneDNN or in eight-bit integers on the processor.

**oneDNN.** PyTorch hands products in float32 to MKL, which leaves AVX-512 unused on processors that are not Intel's:
there oneDNN, which PyTorch carries too, is up to twice as fast. The operators are those that PyTorch's own compiler
takes.

1. They are not public (seen in PyTorch 2.13): they are taken only on processors with AVX-512, and where they give the
   product that they should. Elsewhere layers stay as they are.
2. A layer takes them where nothing is to be learned (`torch.inference_mode`), for float32 on the processor. Training,
   attribution and other devices have the product of PyTorch.
3. Weights are kept a second time in the order that oneDNN reads them in, and ordered anew when they have changed; those
   of large networks are ordered for each product, which is 5 to 10 % slower.

From two rows on, a row has the same digits whatever the other rows and the threads.

**Integers**, for `precision='int8'`, after Dettmers et al. (2022), arXiv 2208.07339, without their part for outliers:

1. Each output of a layer has a scale, its largest weight / 127, and each row of states one, its largest value / 127.
2. Rounded to integers, both are multiplied exactly: other rows and threads change no digit.
3. The product is multiplied by both scales, and the bias is added, in float32.

Layers with few outputs, such as the last one of an estimator, gain nothing and stay in float32.
"""

import importlib
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from whyscore.errors import SpecError

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Linear, Module

_NARROW = 64
"""Layers with fewer outputs are not multiplied in integers."""

_ROWS = 256
"""Rows that are multiplied in integers at once: more leave the cache before they are scaled."""

_MEMORY = 512 * 1024**2
"""Bytes of weights of a network that are kept a second time at most."""


class _Ordered(NamedTuple):
    """Weights in the order of oneDNN, and which state of which numbers they are."""

    state: tuple[int, int]
    weights: "Tensor"


_ordered: "WeakKeyDictionary[Linear, _Ordered]" = WeakKeyDictionary()


def speed_up(network: "Module") -> None:
    """Make the linear layers of a network multiply by oneDNN, where it is available."""
    if not available():
        return
    nn = importlib.import_module("torch.nn")
    layers = [part for part in network.modules() if type(part) is nn.Linear]
    keep = sum(layer.weight.nbytes for layer in layers) <= _MEMORY
    for layer in layers:
        layer.forward = partial(_forward, layer, keep=keep)


class _Quantised(NamedTuple):
    """Weights as integers, inputs x outputs, and the scales of the outputs."""

    weights: "Tensor"
    scales: "Tensor"


def quantise(network: "Module") -> None:
    """Make the wide linear layers of a network multiply in integers."""
    nn = importlib.import_module("torch.nn")
    for layer in network.modules():
        if type(layer) is nn.Linear and layer.out_features >= _NARROW:
            weights, scales = _round(layer.weight.detach())
            layer.forward = partial(_multiply_integers, layer, _Quantised(weights.T.contiguous(), scales.T))


def _round(rows: "Tensor") -> "tuple[Tensor, Tensor]":
    """Return rows as integers from -127 to 127, and the scale of each."""
    torch = importlib.import_module("torch")
    scales = rows.abs().amax(-1, keepdim=True) / 127
    return (rows / scales.clamp_min(torch.finfo(torch.float32).tiny)).round_().to(torch.int8), scales


def _multiply_integers(layer: "Linear", quantised: _Quantised, states: "Tensor") -> "Tensor":
    torch = importlib.import_module("torch")
    if states.requires_grad and torch.is_grad_enabled():
        raise SpecError("precision='int8' has no gradients; use precision='fp32' for this explainer")
    flat = states.reshape(-1, states.shape[-1])
    result: Tensor = flat.new_empty(len(flat), layer.out_features)
    for begin in range(0, len(flat), _ROWS):
        integers, scales = _round(flat[begin : begin + _ROWS])
        product = torch._int_mm(integers, quantised.weights)  # noqa: SLF001
        torch.mul(product, scales, out=result[begin : begin + _ROWS]).mul_(quantised.scales)
    if layer.bias is not None:
        result += layer.bias
    return result.reshape(*states.shape[:-1], -1)


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
