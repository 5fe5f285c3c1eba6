"""A TransQuest model, opened: what its network reads of a segment, and the score as a differentiable function of it.

1. `mono`: one row of source and hypothesis; the score is the network's output.
2. `siamese`: a row each; the score is the cosine of their vectors.
"""

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from whyscore.metrics.transquest_models import WHO, QuestModel
from whyscore.models.attribution.interface import Inside, Reading, Shown, line, masking_of, rows_of, warn_of_cuts
from whyscore.models.heads import pooled
from whyscore.models.pairs import Coded, as_tensors, shorter
from whyscore.types import HYPOTHESIS, SOURCE, Segment

if TYPE_CHECKING:
    from torch import Tensor


def opened(model: QuestModel, segments: Sequence[Segment], *, joined: bool) -> Inside:
    """Return the model, opened for some segments; `joined` says whether it reads the two texts together."""
    pairs = [(segment.source or "", segment.hypothesis) for segment in segments]
    coded = model.coder.code(text for pair in pairs for text in pair)
    read = _together if joined else _apart
    readings = tuple(read(model, coded[source], coded[hypothesis]) for source, hypothesis in pairs)

    def score(asked: Sequence[Reading]) -> "Tensor":
        inputs = as_tensors([each.row for each in rows_of(asked)], model.coder.padding, model.device)
        types = {"token_type_ids": inputs.types} if model.types else {}
        found: Tensor = model.network(input_ids=inputs.ids, attention_mask=inputs.mask, **types)[0].float()
        if joined:
            return found[:, 0]
        vectors = pooled(found, inputs.mask, model.layout.pool)
        cosine: Tensor = importlib.import_module("torch").cosine_similarity(vectors[::2], vectors[1::2])
        return cosine

    warn_of_cuts(model.cuts, readings)
    return Inside(WHO, model.network, readings, score, model.device, model.coder.padding, masking_of(model.coder))


def _together(model: QuestModel, source: Coded, hypothesis: Coded) -> Reading:
    frame = model.coder.frame
    kept = shorter(source.ids, hypothesis.ids, model.layout.limit - frame.size(2))
    texts = zip((SOURCE, HYPOTHESIS), (source, hypothesis), map(len, kept), strict=True)
    return (line(frame, [Shown(*text) for text in texts]),)


def _apart(model: QuestModel, source: Coded, hypothesis: Coded) -> Reading:
    frame = model.coder.frame
    room = model.layout.limit - frame.size(1)
    texts = [Shown(SOURCE, source, room), Shown(HYPOTHESIS, hypothesis, room)]
    return tuple(line(frame, [text]) for text in texts)
