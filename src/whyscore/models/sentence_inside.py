"""A sentence encoder, opened: what its network reads of texts, and their cosine as a differentiable function of it.

1. A reading is the row of the hypothesis, then one row for each text it is compared with.
2. Rows go through the network together, are pooled, and go through what follows the pooling.
3. The score is the cosine of the hypothesis with the other text; of several, the mean or the largest.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from whyscore.errors import SpecError
from whyscore.models.attributions import Inside, Line, Reading, Shown, line, rows_of, warn_of_cuts
from whyscore.models.encoding import Encoding
from whyscore.models.heads import pooled
from whyscore.models.pairs import Coded, Frame, as_tensors
from whyscore.models.sentence import Sentence, Step
from whyscore.models.transformer import Transformer
from whyscore.protocols import Encoder
from whyscore.types import HYPOTHESIS, Place, Segment

if TYPE_CHECKING:
    from torch import Tensor

Compared = Callable[[Segment], Sequence[Place]]
"""A segment -> the texts that its hypothesis is compared with."""


class _Opened(NamedTuple):
    """What texts go through."""

    encoding: Encoding
    pools: tuple[str, ...]
    steps: tuple[Step, ...]


def opened(
    encoder: Encoder, segments: Sequence[Segment], compared: Compared, over: Literal["mean", "max"], who: str
) -> Inside:
    """Return an encoder, opened for some segments; one without a network is refused."""
    parts = _parts(encoder, who)
    encoding = parts.encoding
    coder, network = encoding.coder, encoding.stack._network  # noqa: SLF001 - what is opened here
    readings = tuple(_reading(encoding, segment, compared(segment)) for segment in segments)

    def score(asked: Sequence[Reading]) -> "Tensor":
        torch = importlib.import_module("torch")
        vectors = _vectors(parts, rows_of(asked))
        groups = torch.split(vectors, [len(reading) for reading in asked])
        cosines = [torch.cosine_similarity(group[:1], group[1:]) for group in groups]
        values: Tensor = torch.stack([own.mean() if over == "mean" else own.max() for own in cosines])
        return values

    warn_of_cuts(encoding.cuts, readings)
    masking = getattr(coder._tokenizer, "mask_token_id", None)  # noqa: SLF001 - the coder shows only what all models have
    device = encoding.stack._device  # noqa: SLF001
    return Inside(who, network, readings, score, device, coder.padding, masking if isinstance(masking, int) else None)


def _parts(encoder: Encoder, who: str) -> _Opened:
    if not isinstance(encoder, Sentence | Transformer):
        raise SpecError(
            f"{who}: {encoder.signature().spec} has no attention to look into and no gradients; name the folder of a "
            f"network, {who}(model='./folder'), or explain it with erasure, lime or shap"
        )
    if encoder.long == "window":
        raise SpecError(
            f"{who}: a network is looked into one row at a time; choose long='truncate' instead of 'window'"
        )
    encoding = encoder._encoding()  # noqa: SLF001 - the same room
    if isinstance(encoder, Transformer):
        return _Opened(encoding, ("mean",), ())
    head = encoder._pipeline().head  # noqa: SLF001
    return _Opened(encoding, head.pools, head.steps)


def _reading(encoding: Encoding, segment: Segment, compared: Sequence[Place]) -> Reading:
    return tuple(_line(encoding, place, segment.text(place)) for place in (HYPOTHESIS, *compared))


def _line(encoding: Encoding, place: Place, text: str) -> Line:
    coder = encoding.coder
    frame = Frame(coder._before, (), coder._after)  # noqa: SLF001 - what stands around a text
    found = coder.code([text])[text]
    spans = tuple((int(start), int(end)) for start, end in found.spans)
    room = coder.room(encoding.limit)
    return line(frame, [Shown(place, Coded(found.ids, spans, found.pieces), len(found.ids) if room is None else room)])


def _vectors(parts: _Opened, lines: Sequence[Line]) -> "Tensor":
    torch = importlib.import_module("torch")
    stack = parts.encoding.stack
    inputs = as_tensors([each.row for each in lines], parts.encoding.coder.padding, stack._device)  # noqa: SLF001
    layer = stack._hidden  # noqa: SLF001 - None where the blocks above were taken out
    told = {} if layer is None else {"output_hidden_states": True}
    answer = stack._network(input_ids=inputs.ids, attention_mask=inputs.mask, **told)  # noqa: SLF001
    states = (answer.last_hidden_state if layer is None else answer.hidden_states[layer]).float()
    values: Tensor = torch.cat([_pooled(states, inputs.mask, pool) for pool in parts.pools], dim=1)
    for step in parts.steps:
        values = step(values)
    return values


def _pooled(states: "Tensor", mask: "Tensor", pool: str) -> "Tensor":
    if pool == "mean_sqrt_len_tokens":
        return pooled(states, mask, "avg") * mask.sum(1, keepdim=True).sqrt()
    names: dict[str, Literal["avg", "max", "cls"]] = {"mean": "avg", "max": "max", "cls": "cls"}
    return pooled(states, mask, names[pool])
