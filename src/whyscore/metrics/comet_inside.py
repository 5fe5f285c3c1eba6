"""A COMET checkpoint, opened: what its encoder reads of a segment, and the score as a differentiable function of it.

1. Separate readers: one row per text; the vectors of hypothesis and source meet that of each reference in the head.
2. Joined readers: per reference the rows (h,s), (h,r) and (h,s,r), weighted as in the score.
3. Several references: their mean, or the best one, as in the score.

Of xCOMET this is the part that comes from regression, before it is cut at 1: the tags behind the MQM part are decided
by a largest probability, which has no gradient, and the cut would hide all words of a good translation.
"""

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from whyscore.metrics.comet_model import WHO, CometModel, features
from whyscore.metrics.needs import present
from whyscore.models.attribution.interface import Inside, Line, Reading, Shown, line, masking_of, rows_of, warn_of_cuts
from whyscore.models.heads import mixed, pooled
from whyscore.models.pairs import as_tensors
from whyscore.types import Inputs, Place, Segment, Side

if TYPE_CHECKING:
    from torch import Tensor

References = Literal["mean", "max"]


def opened(
    model: CometModel, segments: Sequence[Segment], inputs: Inputs, weights: Sequence[float], references: References
) -> Inside:
    """Return the checkpoint, opened for some segments; `weights` are those of the parts of the score, rows first."""
    torch = importlib.import_module("torch")
    rows = 3 if Inputs.SOURCE | Inputs.REFERENCES in inputs else 1
    factors = torch.tensor(weights[:rows], device=model.device)
    places = [_places(segment, inputs) for segment in segments]
    coded = model.code([segment.text(place) for segment, own in zip(segments, places, strict=True) for place in own])

    def shown(segment: Segment, place: Place) -> Shown:
        text = coded[segment.text(place)]
        return Shown(place, text, model.kept(len(text.ids)))

    readings = tuple(
        _reading(model, [shown(segment, place) for place in own]) for segment, own in zip(segments, places, strict=True)
    )

    def score(asked: Sequence[Reading]) -> "Tensor":
        own = torch.split(_vectors(model, rows_of(asked)), [len(reading) for reading in asked])
        found: Tensor = torch.stack([_score(model, vectors, factors, references) for vectors in own])
        return found

    warn_of_cuts(model.cuts, readings)
    return Inside(WHO, model.network, readings, score, model.device, model.coder.padding, masking_of(model.coder))


def _places(segment: Segment, inputs: Inputs) -> list[Place]:
    """Return the texts that are read: empty references beside others are not."""
    read = set(present(segment.references))
    return [
        place for place in segment.places(inputs) if place.side is not Side.REFERENCE or segment.text(place) in read
    ]


def _reading(model: CometModel, texts: Sequence[Shown]) -> Reading:
    frame = model.coder.frame
    if not model.settings.joined:
        return tuple(line(frame, [text]) for text in texts)
    first = [text for text in texts if text.place.side is not Side.REFERENCE]
    others = texts[len(first) :]
    groups = [first] if not others else []
    for reference in others:
        hypothesis = first[0]
        groups += [first, [hypothesis, reference]] if len(first) > 1 else []
        groups.append([*first, reference])
    return tuple(line(frame, group, model.limit) for group in groups)


def _vectors(model: CometModel, lines: Sequence[Line]) -> "Tensor":
    """Return one vector per row: the pooled mix of its states."""
    inputs = as_tensors([each.row for each in lines], model.coder.padding, model.device)
    types = {"token_type_ids": inputs.types} if model.types else {}
    states = model.network(
        input_ids=inputs.ids, attention_mask=inputs.mask, output_hidden_states=True, return_dict=True, **types
    ).hidden_states
    layer = model.settings.layer or 0
    read = states[layer].float() if model.mix is None else mixed(states, inputs.mask, model.mix)
    return pooled(read, inputs.mask, model.settings.pool)


def _score(model: CometModel, vectors: "Tensor", weights: "Tensor", references: References) -> "Tensor":
    """Return the score of one segment from the vectors of its rows."""
    if model.settings.joined:
        scores = model.head(vectors)[:, 0].reshape(-1, len(weights)) @ weights
    else:
        hypothesis, source, others = vectors[:1], vectors[1:2], vectors[2:]
        number = max(1, len(others))
        against = (others,) if len(others) else ()
        sides = features(hypothesis.expand(number, -1), source.expand(number, -1), *against)
        scores = model.head(sides)[:, 0]
    return scores.mean() if references == "mean" else scores.amax()
