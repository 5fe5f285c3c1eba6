"""The training loop: losses, schedule, early stopping, and a state from which it goes on after a kill.

1. Loss: cross-entropy of the words of both sides and of gaps, each in the column of its kind of label; ranking of wrong
   words above right ones of the same text; squared error of standardised sentence scores and metric values; and, for
   perturbed texts, a margin between the score of the text and that of its perturbed copy (after CLIP-UMD's divergence
   ranking). The weights are settings.
2. AdamW; the rate rises for a tenth of the epochs and falls to 0 as a cosine. Weights are averaged over the last steps.
3. After each epoch the averaged weights are judged on held-out documents; the best ones are kept, and `patience` epochs
   without a better value end the training. Then the state is written, whole or not at all.
4. Random numbers come from the seed and the epoch, so that a training that goes on from a state ends in the same
   numbers as one that was never interrupted.
"""

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from whyscore.analysis.train.examples import Cut, Material, Rows, Targets, batches, pad
from whyscore.analysis.train.labels import WRONG
from whyscore.analysis.train.settings import TrainSettings
from whyscore.errors import ExecutionError
from whyscore.metrics.estimators.modules import Heads, Predictions
from whyscore.models.tensors import read_tensors, write_tensors
from whyscore.stats.words import Ragged, agree
from whyscore.text.randomness import generator

Weights = dict[str, Tensor]

_AVERAGING, _EVERY = 0.98, 4
_WARM = 0.1
_DECAY = 0.01
_LARGEST_GRADIENT = 1.0
_REPORT_SECONDS = 60


class Predicted(NamedTuple):
    """What the network says of one row, in the column of the row's kind."""

    words: tuple[NDArray[np.float32], NDArray[np.float32]]
    gaps: NDArray[np.float32]
    sentence: float


@dataclass
class Trainer:
    """A network, the rows it reads, and their labels."""

    network: Heads
    material: Material
    cuts: Sequence[Cut]
    targets: Targets
    settings: TrainSettings
    device: str
    rate: float
    report: Callable[[str], None]

    def train(self, rows: Rows, tuning: Rows, state: Path) -> dict[str, NDArray[Any]]:
        """Return the best weights, by what they reach on the tuning rows; goes on from a state where there is one."""
        torch.manual_seed(self.settings.seed)
        progress = _Progress.start(self.network, self.rate)
        if state.exists():
            progress.restore(self.network, state)
            self.report(f"resuming after epoch {progress.epoch}")
        while progress.epoch < self.settings.epochs and progress.waited < self.settings.patience:
            start = time.monotonic()
            loss = self._train_epoch(rows, progress)
            progress.epoch += 1
            live = {name: values.clone() for name, values in self.network.state_dict().items()}
            self.network.load_state_dict(progress.average)
            value, shown = self.judge(tuning)
            progress.waited += 1
            if value > progress.best_value:
                progress.best_value, progress.waited = value, 0
                progress.best = {name: values.clone() for name, values in progress.average.items()}
            self.network.load_state_dict(live)
            progress.write(self.network, state)
            self.report(
                f"epoch {progress.epoch}/{self.settings.epochs}: loss {loss:.3f}; held out: {shown}; "
                f"{time.monotonic() - start:.0f} s"
            )
        self.network.load_state_dict(progress.best)
        return {name: values.cpu().numpy() for name, values in progress.best.items()}

    def _train_epoch(self, rows: Rows, progress: "_Progress") -> float:
        epoch = progress.epoch
        torch.manual_seed(int(generator(self.settings.seed, "dropout", str(epoch)).integers(1 << 31)))
        draw = generator(self.settings.seed, "batches", str(epoch))
        groups = list(batches(self.material, rows, self.targets, self.settings.batch_words, draw))
        self.network.train()
        total, reported = 0.0, time.monotonic()
        for number, batch in enumerate(groups):
            if time.monotonic() - reported > _REPORT_SECONDS:
                self.report(
                    f"epoch {epoch + 1}: {number:,} of {len(groups):,} batches, loss {total / max(number, 1):.3f}"
                )
                reported = time.monotonic()
            for group in progress.optimiser.param_groups:
                group["lr"] = self.rate * schedule((epoch + number / len(groups)) / self.settings.epochs)
            inputs = self.material.inputs(batch, self.device, draw)
            with torch.autocast(self.device.split(":")[0], torch.bfloat16, enabled=self.settings.precision == "bf16"):
                predictions = self.network(*inputs)
            loss = self._loss(predictions, batch)
            if not math.isfinite(float(loss.detach())):
                texts = self.cuts[int(batch[0])].row.hypothesis
                raise ExecutionError(
                    f"the loss is {float(loss.detach())} at epoch {epoch + 1}, batch {number + 1} of {len(groups)} "
                    f"(first segment: {texts[:60]!r}). The state after epoch {epoch} is kept. Check the data, or "
                    f"train with a lower --rate (now {self.rate:g}) and another -o"
                )
            progress.optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), _LARGEST_GRADIENT)
            progress.optimiser.step()
            progress.follow(self.network)
            total += float(loss.detach())
        return total / max(len(groups), 1)

    def _loss(self, predictions: Predictions, batch: Rows) -> Tensor:
        weights, kind = self.settings, torch.from_numpy(self.targets.kind[batch]).to(self.device)
        sides = [_column(logits.float(), kind) for logits in predictions.words]
        cuts = [self.cuts[row] for row in batch.tolist()]
        labels = [self._tensor(pad([cut.labels[side] for cut in cuts], -1)) for side in (0, 1)]
        gaps = self._tensor(pad([cut.gaps for cut in cuts], -1))
        loss = weights.gap_loss * _entropy(_column(predictions.gaps.float(), kind), gaps)
        for logits, side_labels in zip(sides, labels, strict=True):
            loss = loss + weights.word_loss * (
                _entropy(logits, side_labels) + weights.rank_loss * rank(logits, side_labels)
            )
        sentences = predictions.sentences.float().gather(1, kind[:, None])[:, 0]
        loss = loss + weights.sentence_loss * _squared_error(sentences, self._tensor(self.targets.scores[batch]))
        if predictions.metrics.shape[1]:
            loss = loss + weights.metric_loss * _squared_error(
                predictions.metrics.float(), self._tensor(self.targets.metrics[batch])
            )
        return loss + weights.contrast_loss * self._contrast(sentences, batch)

    def _contrast(self, sentences: Tensor, batch: Rows) -> Tensor:
        """Return how far texts fail to score above their perturbed copies by the margin."""
        group, perturbed = self.targets.contrast[batch], self.targets.perturbed[batch]
        same = (group[:, None] == group) & (group >= 0)[:, None] & ~perturbed[:, None] & perturbed
        pairs = self._tensor(same.astype(np.float32))
        short = functional.relu(self.settings.margin - sentences[:, None] + sentences)
        return (short * pairs).sum() / pairs.sum().clamp(min=1)

    def _tensor(self, values: NDArray[np.float32]) -> Tensor:
        return torch.from_numpy(values).to(self.device)

    def predict(self, rows: Rows) -> dict[int, Predicted]:
        """Return what the network says of rows."""
        self.network.eval()
        predicted = {}
        with torch.inference_mode():
            for batch in batches(self.material, rows, self.targets, 4 * self.settings.batch_words, None):
                predictions = self.network(*self.material.inputs(batch, self.device, None))
                kind = torch.from_numpy(self.targets.kind[batch]).to(self.device)
                here, there, gaps = (
                    _column(logits.float(), kind).cpu().numpy() for logits in (*predictions.words, predictions.gaps)
                )
                sentences = predictions.sentences.float().gather(1, kind[:, None])[:, 0].tolist()
                for place, row in enumerate(batch.tolist()):
                    words, others = self.material.lengths[row].tolist()
                    sides = (here[place, :words], there[place, :others])
                    predicted[row] = Predicted(sides, gaps[place, : words + 1], sentences[place])
        return predicted

    def judge(self, rows: Rows) -> tuple[float, str]:
        """Return one number to be raised, from what is reached on rows of the most trusted kind, and its parts."""
        rows = rows[self.targets.kind[rows] == self.targets.kind[rows].min()]
        predicted = self.predict(rows)
        measures = {}
        for side, name in ((0, "word AUC"), (1, "source AUC")):
            labelled = [row for row in rows.tolist() if self.cuts[row].labels[side][0] >= 0]
            gold = Ragged.of([(self.cuts[row].labels[side] >= WRONG).astype(np.float64) for row in labelled])
            scores = Ragged.of([predicted[row].words[side].astype(np.float64) for row in labelled])
            values = agree(gold, scores).of("auc") if labelled else np.zeros(0)
            if len(values):
                measures[name] = float(values.mean())
        sentences = np.array([predicted[row].sentence for row in rows.tolist()])
        scored = ~np.isnan(self.targets.scores[rows])
        if scored.sum() > 2 and np.std(sentences[scored]) > 0:  # noqa: PLR2004 - a correlation needs three
            measures["Pearson"] = float(np.corrcoef(sentences[scored], self.targets.scores[rows][scored])[0, 1])
        elif (self.targets.contrast[rows] >= 0).any():
            measures["contrast"] = self._contrast_accuracy(rows, sentences)
        shown = ", ".join(f"{name} {value:.3f}" for name, value in measures.items())
        return float(
            np.mean([(1 + value) / 2 if name == "Pearson" else value for name, value in measures.items()])
        ), shown

    def _contrast_accuracy(self, rows: Rows, sentences: NDArray[np.float64]) -> float:
        group, perturbed = self.targets.contrast[rows], self.targets.perturbed[rows]
        whole = dict(zip(group[~perturbed].tolist(), sentences[~perturbed].tolist(), strict=True))
        right = [
            whole[k] > value
            for k, value in zip(group[perturbed].tolist(), sentences[perturbed].tolist(), strict=True)
            if k in whole
        ]
        return float(np.mean(right)) if right else 0.5


def schedule(share: float) -> float:
    """Return the part of the peak rate after a share of the training.

    >>> [round(schedule(share), 2) for share in (0.0, 0.05, 0.1, 0.55, 1.0)]
    [0.02, 0.51, 1.0, 0.5, 0.0]
    """
    if share < _WARM:
        return 0.02 + 0.98 * share / _WARM
    return 0.5 + 0.5 * math.cos(math.pi * (share - _WARM) / (1 - _WARM))


def rank(logits: Tensor, labels: Tensor) -> Tensor:
    """Return how far right words stand above wrong ones, mean over pairs, then over texts that have both."""
    wrong, right = labels > WRONG, (labels >= 0) & (labels <= WRONG)
    pairs = (wrong[:, :, None] & right[:, None, :]).float()
    count = pairs.sum((1, 2))
    losses = (functional.softplus(logits[:, None, :] - logits[:, :, None]) * pairs).sum((1, 2)) / count.clamp(min=1)
    return losses.sum() / (count > 0).float().sum().clamp(min=1)


def _column(values: Tensor, kind: Tensor) -> Tensor:
    return values.gather(2, kind[:, None, None].expand(-1, values.shape[1], 1))[..., 0]


def _entropy(logits: Tensor, labels: Tensor) -> Tensor:
    known = labels >= 0
    if not known.any():
        return logits.sum() * 0
    return functional.binary_cross_entropy_with_logits(logits[known], labels[known])


def _squared_error(values: Tensor, targets: Tensor) -> Tensor:
    known = ~torch.isnan(targets)
    return functional.mse_loss(values[known], targets[known]) if known.any() else values.sum() * 0


@dataclass
class _Progress:
    """Where a training stands."""

    optimiser: Any
    average: Weights
    best: Weights
    epoch: int = 0
    step: int = 0
    waited: int = 0
    best_value: float = -math.inf

    @classmethod
    def start(cls, network: Heads, rate: float) -> "_Progress":
        optimiser = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=_DECAY)
        first = {name: values.detach().clone() for name, values in network.state_dict().items()}
        return cls(optimiser, first, {name: values.clone() for name, values in first.items()})

    def follow(self, network: Heads) -> None:
        """Let the averaged weights follow those of the network; faster in the beginning."""
        self.step += 1
        if self.step % _EVERY:
            return
        times = self.step // _EVERY
        decay = min(_AVERAGING, (1 + times) / (10 + times))
        for name, values in network.state_dict().items():
            if values.is_floating_point():
                self.average[name].lerp_(values.detach(), 1 - decay)

    def write(self, network: Heads, path: Path) -> None:
        moments = {
            f"moment.{number}.{name}": values
            for number, state in self.optimiser.state_dict()["state"].items()
            for name, values in state.items()
        }
        parts = {"live": network.state_dict(), "average": self.average, "best": self.best}
        tensors = {
            f"{part}.{name}": values for part, weights in parts.items() for name, values in weights.items()
        } | moments
        facts = {name: repr(getattr(self, name)) for name in ("epoch", "step", "waited", "best_value")}
        write_tensors(path, {name: values.detach().cpu().numpy() for name, values in tensors.items()}, facts)

    def restore(self, network: Heads, path: Path) -> None:
        arrays, facts = read_tensors(path)
        tensors = {name: torch.from_numpy(values.copy()) for name, values in arrays.items()}
        device = next(network.parameters()).device
        parts: dict[str, Weights] = {"live": {}, "average": {}, "best": {}}
        moments: dict[int, Weights] = {}
        for name, values in tensors.items():
            part, _, rest = name.partition(".")
            if part == "moment":
                number, _, rest = rest.partition(".")
                moments.setdefault(int(number), {})[rest] = values
            else:
                parts[part][rest] = values.to(device)
        network.load_state_dict(parts["live"])
        self.average, self.best = parts["average"], parts["best"]
        state = self.optimiser.state_dict()
        self.optimiser.load_state_dict({"state": moments, "param_groups": state["param_groups"]})
        self.epoch, self.step, self.waited = (int(facts[name]) for name in ("epoch", "step", "waited"))
        self.best_value = float(facts["best_value"])


@contextlib.contextmanager
def deterministic(threads: int | None) -> Iterator[None]:
    """Let torch compute the same numbers each time, for as long as this lasts."""
    before, count = torch.are_deterministic_algorithms_enabled(), torch.get_num_threads()
    torch.use_deterministic_algorithms(mode=True, warn_only=True)
    torch.set_num_threads(threads or count)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(mode=before)
        torch.set_num_threads(count)
