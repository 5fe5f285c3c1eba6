"""Folders of `whyscore train`, and estimators that read both texts with an encoder of transformers.

| file | holds |
|---|---|
| `model.safetensors` | weights, tables, norms, main components, and a card as JSON bytes |
| `encoder/` | the trained encoder and its tokenizer, where that is one of transformers |
| `settings.json`, `card.md` | how it was trained, on what, and how good it is, for readers |

The weights are read and written with numpy, so that a model on the embedded encoder needs no other package.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import DataError
from whyscore.metrics.estimators.qe import DEVIATIONS, WEIGHTS, Estimator, Known, Logits, digest_of
from whyscore.models.attribution import Inside, Part, Reading, Shown, line, masking_of, rows_of
from whyscore.models.checkpoints import coder_of, config_of, device_of, find, load_pretrained, package, quiet
from whyscore.models.pairs import Coder, Row, as_tensors, budget_of, in_batches, positions, shorter
from whyscore.models.tensors import SUFFIX, Arrays, check_tensors, read_tensors
from whyscore.text.splitters import white_space
from whyscore.types import HYPOTHESIS, SOURCE

if TYPE_CHECKING:
    from torch import Tensor

    from whyscore.metrics.estimators.modules import JointNetwork

FORMAT = 1
"""Of the folder: changes when older versions could not read a new one."""
ENCODER = "encoder"
WHO = "qe"
_LONGEST = 256  # subwords of a pair of texts


def load_folder(folder: Path) -> Estimator:
    """Return the estimator that `whyscore train` left in a folder."""
    path = folder / WEIGHTS
    arrays, facts = read_tensors(path)
    if facts.get("format") != str(FORMAT):
        raise DataError(
            f"has format {facts.get('format')}, this version of whyscore reads {FORMAT}: train it again", file=str(path)
        )
    if digest_of(arrays) != facts.get("digest"):
        raise DataError(f"its numbers do not match its digest {facts.get('digest')}: it is damaged", file=str(path))
    try:
        card = json.loads(arrays["card"].tobytes())
        if card["encoder"] != "embedded":
            return Joint(arrays, card, facts["digest"], folder)
        return Estimator(arrays, facts["digest"])
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__} {error}"
        raise DataError(f"holds no estimator of this version: {reason}. Train it again", file=str(path)) from error


class JointLine(NamedTuple):
    """A pair of texts as an encoder reads it, hypothesis, then source: a `Line` that knows where words begin."""

    row: Row
    parts: tuple[Part, ...]
    firsts: tuple[list[int], list[int]]
    """The place of the first subword of each word of both sides; 0 for words that were cut off."""


def join_texts(coder: Coder, pairs: Sequence[tuple[str, str]], limit: int) -> list[JointLine]:
    """Return each pair of hypothesis and source as one row of subwords; the longer text loses its end first."""
    coded = coder.code([text for pair in pairs for text in pair])
    lines = []
    for pair in pairs:
        here, there = (coded[text] for text in pair)
        parts = shorter(here.ids, there.ids, limit - coder.frame.size(2))
        joined = line(coder.frame, [Shown(HYPOTHESIS, here, len(parts[0])), Shown(SOURCE, there, len(parts[1]))])
        firsts: tuple[list[int], list[int]] = ([], [])
        for side, (text, part) in enumerate(zip(pair, joined.parts, strict=True)):
            ends = np.array([end for _, end in part.spans])
            for begin, _ in white_space(text).spans:
                place = int(np.searchsorted(ends, begin, side="right"))
                firsts[side].append(part.start + place if place < len(ends) else 0)
        lines.append(JointLine(*joined, firsts))
    return lines


def joint_inputs(lines: Sequence[JointLine], padding: int, device: str) -> tuple[Any, ...]:
    """Return what a joint network takes for some rows; a side without words has its first special piece as one."""
    torch = package("torch", WHO)
    ids, mask, types = as_tensors([pair.row for pair in lines], padding, device)
    firsts, present = [], []
    for side in (0, 1):
        places = [pair.firsts[side] or [0] for pair in lines]
        longest = max(map(len, places))
        firsts.append(torch.tensor([starts + [0] * (longest - len(starts)) for starts in places], device=device))
        lengths = torch.tensor(list(map(len, places)), device=device)
        present.append(torch.arange(longest, device=device) < lengths[:, None])
    return ids, mask, types, tuple(firsts), tuple(present)


def load_encoder(name: str) -> tuple[Any, Coder, int, bool]:
    """Return an encoder of transformers, its tokenizer, how many subwords it reads, and if it tells texts apart."""
    torch = package("torch", WHO)
    home = find(name, ("*.json", "*.txt", "*.model", "*.safetensors"), WHO)
    config, coder = config_of(home, WHO), coder_of(home, WHO)
    check_tensors(home.folder.glob(f"*{SUFFIX}"))
    try:
        with quiet():
            network = load_pretrained(
                "AutoModel", home.folder, WHO, config=config, dtype=torch.float32, use_safetensors=True
            )
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise DataError(f"cannot be loaded as an encoder of transformers: {reason}", file=name) from error
    encoder = network.get_encoder() if config.is_encoder_decoder else network
    limit = min(positions(config.to_dict()), _LONGEST)
    return encoder, coder, limit, getattr(config, "type_vocab_size", 0) > 1


class Joint(Estimator):
    """An encoder of transformers with heads; torch runs it."""

    def __init__(self, arrays: Arrays, card: Mapping[str, Any], digest: str, folder: Path) -> None:
        self._read_card(card, digest)
        self._network, self._coder, self._limit = load_network(arrays, card, str(folder / ENCODER))
        self._device = device_of("auto", WHO)
        self._network.eval().requires_grad_(requires_grad=False).to(self._device)

    def _compute(self, pairs: Sequence[tuple[str, str]], *, seen: bool) -> list[Known]:
        del seen  # There are no tables.
        spans = [
            tuple(np.array(white_space(text).spans, dtype=np.int64).reshape(-1, 2) for text in pair) for pair in pairs
        ]
        result = [Known((here, there), None) for here, there in spans]
        full = [k for k, output in enumerate(result) if all(len(side) for side in output.spans)]
        lines = join_texts(self._coder, [pairs[k] for k in full], self._limit)
        logits = in_batches(
            [len(pair.row.ids) for pair in lines],
            budget_of(self._device),
            lambda batch: self._run_lines([lines[k] for k in batch]),
            WHO,
        )
        for k, answer in zip(full, logits, strict=True):
            result[k] = result[k]._replace(logits=answer)
        return result

    def open(self, pairs: Sequence[tuple[str, str]], languages: str | None) -> Inside:
        """Return the network, opened for pairs of hypothesis and source; the score is not cut at 0 and 1."""
        kinds = [self.kinds.index(kind) for kind in self.pairs.get(languages or "", self.kinds[:1])]

        def score(readings: Sequence[Reading]) -> "Tensor":
            lines: list[Any] = rows_of(readings)
            inputs = joint_inputs(lines, self._coder.padding, self._device)
            predictions, present = self._network(*inputs), inputs[-1][0]
            scores = []
            for k in kinds:
                (centre, spread), (slope, offset) = (
                    self._calibration[f"{self.kinds[k]}_scores"],
                    self._calibration[self.kinds[k]],
                )
                judgement = 0.5 + (predictions.sentences[:, k] - centre) / spread / DEVIATIONS
                wrong = (slope * predictions.words[0][..., k] + offset).sigmoid() * present
                scores.append((2 * judgement + 1 - wrong.sum(1) / present.sum(1)) / 3)
            return sum(scores) / len(scores)

        lines = join_texts(self._coder, pairs, self._limit)
        readings: Any = tuple((pair,) for pair in lines)
        masking = masking_of(self._coder)
        return Inside(WHO, self._network.encoder, readings, score, self._device, self._coder.padding, masking)

    def _run_lines(self, lines: Sequence[JointLine]) -> list[Logits]:
        torch = package("torch", WHO)
        with torch.inference_mode():
            predictions = self._network(*joint_inputs(lines, self._coder.padding, self._device))
        (here, there), gaps, sentences = (
            (_array(predictions.words[0]), _array(predictions.words[1])),
            _array(predictions.gaps),
            predictions.sentences,
        )
        attention = (
            (_array(predictions.attention[0]), _array(predictions.attention[1])) if self._network.metrics else None
        )
        logits = []
        for place, pair in enumerate(lines):
            words, others = (len(side) for side in pair.firsts)
            logits.append(
                Logits(
                    {kind: here[place, :words, k] for k, kind in enumerate(self.kinds)},
                    there[place, :others, 0],
                    {kind: float(sentences[place, k]) for k, kind in enumerate(self.kinds)},
                    gaps[place, : words + 1, 0],
                    attention and (attention[0][place, :, :words], attention[1][place, :, :others]),
                )
            )
        return logits


def _array(tensor: "Tensor") -> NDArray[np.float32]:
    array: NDArray[np.float32] = tensor.float().cpu().numpy()
    return array


def load_network(arrays: Arrays, card: Mapping[str, Any], encoder: str) -> "tuple[JointNetwork, Coder, int]":
    """Return a joint network with the weights of its heads, its tokenizer and its limit."""
    torch = package("torch", WHO)
    from whyscore.metrics.estimators.modules import JointNetwork  # noqa: PLC0415 - needs torch

    body, coder, limit, types = load_encoder(encoder)
    network = JointNetwork(
        body, body.config.hidden_size, kinds=len(card["kinds"]), metrics=len(card["metrics"]), types=types
    )
    prefix = "network0."
    heads = {
        name.removeprefix(prefix): torch.from_numpy(values.copy())
        for name, values in arrays.items()
        if name.startswith(prefix)
    }
    network.load_state_dict(heads, strict=False)
    return network, coder, limit
