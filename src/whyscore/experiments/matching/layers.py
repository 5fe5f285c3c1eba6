"""What a metric says in every layer of its model, from one pass through the network where the encoder allows it.

1. Segments are taken together by the text they are compared with, in windows that bound the memory.
2. The texts of a window go through the network once; vectors of all layers are held until no later window needs them.
3. In each layer the metric itself is asked. It reads vectors that are there already.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.data.formats.eval4nlp import Judged
from whyscore.metrics.matching.bertscore import BertScore
from whyscore.models.encoders.embedded import LAYERS, Embedded
from whyscore.models.encoders.transformer import Inseparable, Transformer
from whyscore.protocols import Encoded, Encoder
from whyscore.types import HYPOTHESIS, SOURCE, FloatVector, Inputs, Place, Segment, Signature, Words

# Bytes of vectors in a window, if a piece has three letters and a vector 1,024 numbers.
_MEMORY = 256 * 1024**2
_LETTER = 1024 * 4 / 3
_PLACES: dict[Judged, Place] = {"target": HYPOTHESIS, "source": SOURCE}

WordsOf = Mapping[Judged, Sequence[Words]]


class Answers(NamedTuple):
    """What one layer says: a score per segment, and a number per word of the sides that were asked for."""

    scores: FloatVector
    words: dict[Judged, list[FloatVector]]


class Found(NamedTuple):
    """The answers of all layers, from 0 on, and how they came about."""

    layers: list[Answers]
    notes: tuple[str, ...]


def answers_of(metric: BertScore, segments: Sequence[Segment], words: WordsOf) -> Found:
    """Return what a metric says in every layer of its model."""
    encoder = replace(metric, layer=0).encoder()
    if isinstance(encoder, Transformer):
        try:
            return _by_one_pass(metric, encoder, segments, words)
        except Inseparable as error:
            note, layers = f"one pass per layer, not one for all: {error}", encoder.layers
    else:
        layers = len(LAYERS) if isinstance(encoder, Embedded) else 1
        note = f"one pass per layer, not one for all: {metric.model} gives one layer at a time"
    each = [replace(metric, layer=layer) for layer in range(layers)]
    return Found([_asked(one, segments, words) for one in each], (note,) if layers > 1 else ())


def _asked(metric: BertScore, segments: Sequence[Segment], words: WordsOf) -> Answers:
    """Return what a metric says of segments and of their words."""
    scores = metric.score(segments)
    numbers = {
        side: [one.importance for one in metric.word_scores(segments, _PLACES[side], own)]
        for side, own in words.items()
    }
    return Answers(scores, numbers)


@dataclass(frozen=True, eq=False)
class _Held:
    """An encoder that only knows texts whose vectors are there already."""

    encoder: Transformer
    vectors: dict[str, Encoded] = field(default_factory=dict)

    def signature(self) -> Signature:
        """Return that of the layer."""
        return self.encoder.signature()

    def languages(self) -> frozenset[str] | None:
        """Return nothing: languages were told when the metric was made."""
        return None

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        """Return the vectors."""
        return [self.vectors[text] for text in texts]

    def pooled(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return what the encoder itself would; matching never asks for it."""
        return self.encoder.pooled(texts)


@dataclass(frozen=True)
class _Layer(BertScore):
    """A metric that reads vectors that are there already."""

    held: Encoder | None = field(default=None, metadata={"inside": True})

    def encoder(self) -> Encoder:
        """Return what holds the vectors."""
        return self.held or super().encoder()


def _by_one_pass(metric: BertScore, encoder: Transformer, segments: Sequence[Segment], words: WordsOf) -> Found:
    held = [_Held(replace(encoder, layer=layer)) for layer in range(encoder.layers)]
    options = {one.name: getattr(metric, one.name) for one in fields(metric)}
    metrics = [_Layer(**(options | {"layer": layer, "held": own})) for layer, own in enumerate(held)]
    texts = [_texts(segment, metric) for segment in segments]
    later = Counter(text for own in texts for text in own)
    parts: list[list[Answers]] = [[] for _ in held]
    order: list[int] = []
    passes = 0
    for window in _windows(texts, int(_MEMORY / _LETTER / len(held))):
        used = [text for row in window for text in texts[row]]
        new = [text for text in dict.fromkeys(used) if text not in held[0].vectors]
        for own, found in zip(held, encoder.every_layer(new), strict=True):
            own.vectors.update(zip(new, found, strict=True))
        chosen = {side: [own[row] for row in window] for side, own in words.items()}
        for part, one in zip(parts, metrics, strict=True):
            part.append(_asked(one, [segments[row] for row in window], chosen))
        later.subtract(used)
        for own in held:
            for text in [text for text in own.vectors if not later[text]]:
                del own.vectors[text]
        order += window
        passes += len(new)
    note = f"{passes} distinct texts went through the network once, for all {len(held)} layers"
    return Found([_joined(part, order) for part in parts], (note,))


def _texts(segment: Segment, metric: BertScore) -> tuple[str, ...]:
    """Return the texts that are compared, the hypothesis last."""
    others = (segment.source or "",) if Inputs.SOURCE in metric.inputs else segment.references
    return (*others, segment.hypothesis)


def _windows(texts: Sequence[tuple[str, ...]], letters: int) -> Iterator[list[int]]:
    """Yield rows, those that are compared with the same text near each other, in groups of bounded size."""
    window: list[int] = []
    size = 0
    for row in sorted(range(len(texts)), key=lambda row: texts[row]):
        size += sum(map(len, texts[row]))
        if window and size > letters:
            yield window
            window, size = [], sum(map(len, texts[row]))
        window.append(row)
    if window:
        yield window


def _joined(parts: Sequence[Answers], order: Sequence[int]) -> Answers:
    """Return the answers of all windows in the order of the segments."""
    back = np.argsort(order)
    scores = np.concatenate([part.scores for part in parts])[back] if parts else np.zeros(0)
    sides = parts[0].words if parts else {}
    words = {side: [row for part in parts for row in part.words[side]] for side in sides}
    return Answers(scores, {side: [rows[k] for k in back.tolist()] for side, rows in words.items()})
