"""Train one network: `python training/train.py build/ network.npz`.

Loss: cross-entropy of words of both sides, plus half the ranking loss (a wrong word above a right one of the same
text), plus half the squared error of the standardised sentence score. Post-edited rows train the first output,
span-marked rows the second. The columns of the tables are hidden in 30 % of the rows, so that the network does without
them for other language pairs. The weights are averaged over the last steps. One thread and a fixed seed: the same
numbers on the same kind of machine.
"""

import argparse
import pickle
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from network import Network
from prepare import Cut, Examples
from whyscore.metrics.estimators.features import CLIP, LEARNED, NAMES

SIZE = {"width": 96, "heads": 4, "inner": 192, "layers": 2}
_HIDDEN = [NAMES.index(name) for name in LEARNED]
_AVERAGING = 0.98
_EVERY = 4

Norm = tuple[NDArray[np.float32], ...]
"""Mean and deviation of the features, and the scale of the vectors."""


class Rows:
    """Examples by row, normed."""

    def __init__(self, examples: Examples, cuts: Sequence[Cut], norm: Norm) -> None:
        self.features = normed_features(examples.features, norm).astype(np.float16)
        self.vectors, self.labels, self.lengths = examples.vectors, examples.labels, examples.lengths
        self.scale = float(norm[2])
        self.cosines = examples.cosines
        totals = self.lengths.sum(axis=1)
        self.starts = np.concatenate([[0], np.cumsum(totals)]).astype(np.int64)
        self.cells = np.concatenate([[0], np.cumsum(self.lengths.prod(axis=1, dtype=np.int64))])
        self.marked = np.array([cut.row.marked for cut in cuts])
        self.targets = np.zeros(len(cuts), dtype=np.float32)
        self.cuts = cuts

    def batches(
        self, rows: NDArray[np.intp], words: int, generator: np.random.Generator | None
    ) -> Iterator[NDArray[np.intp]]:
        """Yield rows of similar length with about so many words together, shuffled where there is a generator."""
        sizes = self.lengths[rows].sum(axis=1).astype(np.float64)
        if generator is not None:
            sizes += generator.normal(0, 4, len(sizes))
        order = rows[np.argsort(sizes, kind="stable")]
        groups, start = [], 0
        while start < len(order):
            count = max(4, int(words / max(int(self.lengths[order[start]].sum()), 8)))
            groups.append(order[start : start + count])
            start += count
        if generator is not None:
            generator.shuffle(groups)  # type: ignore[arg-type]
        yield from groups

    def collate(self, rows: NDArray[np.intp]) -> tuple[tuple, tuple[Tensor, Tensor]]:
        """Return padded inputs and labels."""
        longest = self.lengths[rows].max(axis=0)
        features, vectors, present, labels = [], [], [], []
        for side in (0, 1):
            shape = (len(rows), int(longest[side]))
            features.append(np.zeros((*shape, self.features.shape[1]), dtype=np.float32))
            vectors.append(np.zeros((*shape, self.vectors.shape[1]), dtype=np.float32))
            present.append(np.zeros(shape, dtype=np.bool_))
            labels.append(np.full(shape, -1, dtype=np.float32))
        cosines = np.zeros((len(rows), *longest.tolist()), dtype=np.float32)
        for place, row in enumerate(rows.tolist()):
            here, there = self.lengths[row].tolist()
            start = int(self.starts[row])
            for side, part in enumerate((slice(start, start + here), slice(start + here, start + here + there))):
                count = part.stop - part.start
                features[side][place, :count] = self.features[part]
                vectors[side][place, :count] = self.vectors[part]
                present[side][place, :count] = True
                labels[side][place, :count] = self.labels[part]
            cosines[place, :here, :there] = self.cosines[self.cells[row] : self.cells[row + 1]].reshape(here, there)
        vectors = [own / self.scale for own in vectors]
        tensor = torch.from_numpy
        inputs = (
            tuple(map(tensor, features)),
            tuple(map(tensor, vectors)),
            tensor(cosines),
            tuple(map(tensor, present)),
        )
        return inputs, (tensor(labels[0]), tensor(labels[1]))


def load(folder: Path, name: str) -> tuple[Examples, list[Cut]]:
    """Return examples and their rows."""
    with np.load(folder / f"{name}.npz") as stored:
        examples = Examples(*(stored[field] for field in Examples._fields))
    return examples, pickle.loads((folder / f"{name}.pickle").read_bytes())


def norms(examples: Examples) -> Norm:
    """Return mean and deviation of the features, and the scale of the vectors."""
    sample = examples.features[::7]
    return (
        sample.mean(axis=0),
        sample.std(axis=0) + np.float32(1e-3),
        examples.vectors[::7].astype(np.float32).std(axis=0).mean(),
    )


def normed_features(features: NDArray[np.float32], norm: Norm) -> NDArray[np.float32]:
    """Return features in deviations from their means, at most six."""
    return np.clip((features - norm[0]) / norm[1], -CLIP, CLIP)


def standardise(cuts: Sequence[Cut]) -> NDArray[np.float32]:
    """Return the scores of the rows, standardised by language pair and kind, at most three deviations away."""
    kinds = np.array([f"{cut.row.pair} {cut.row.marked}" for cut in cuts])
    scores = np.array([cut.row.score for cut in cuts])
    result = np.zeros(len(cuts), dtype=np.float32)
    for kind in np.unique(kinds).tolist():
        own = scores[kinds == kind]
        result[kinds == kind] = np.clip((own - own.mean()) / (own.std() + 1e-6), -3, 3)
    return result


def held_out(cut: Cut) -> bool:
    """Return whether a row is kept for calibration: 3 %, by the source."""
    return zlib.crc32(b"calibration" + cut.row.source.encode()) % 100 < 3


def ranking(logits: Tensor, labels: Tensor, present: Tensor) -> Tensor:
    """Return how far right words stand above wrong ones, mean over pairs, then over texts that have both."""
    wrong, right = (labels > 0.5) & present, (labels >= 0) & (labels <= 0.5) & present
    pairs = (wrong[:, :, None] & right[:, None, :]).float()
    count = pairs.sum((1, 2))
    losses = (functional.softplus(logits[:, None, :] - logits[:, :, None]) * pairs).sum((1, 2)) / count.clamp(min=1)
    return losses.sum() / (count > 0).float().sum().clamp(min=1)


def predict(network: Network, rows: Rows, chosen: NDArray[np.intp]) -> dict[int, tuple[NDArray[np.float32], ...]]:
    """Return for each row the logits of both sides and the sentence scores."""
    network.eval()
    result = {}
    with torch.no_grad():
        for batch in rows.batches(chosen, 6000, None):
            inputs, _ = rows.collate(batch)
            here, there, sentences = network(*inputs)
            for place, row in enumerate(batch.tolist()):
                words, others = rows.lengths[row].tolist()
                result[row] = (here[place, :words].numpy(), there[place, :others].numpy(), sentences[place].numpy())
    network.train()
    return result


def losses(network: Network, rows: Rows, batch: NDArray[np.intp], generator: np.random.Generator) -> list[Tensor]:
    """Return the four parts of the loss."""
    inputs, labels = rows.collate(batch)
    hidden = torch.from_numpy(generator.random(len(batch)) < 0.3)
    for own in inputs[0]:
        own[hidden[:, None].expand(own.shape[:2])] = own[hidden[:, None].expand(own.shape[:2])].index_fill(
            1, torch.tensor(_HIDDEN), 0.0
        )
    here, there, sentences = network(*inputs)
    kind = torch.from_numpy(rows.marked[batch].astype(np.int64))
    logits = here.gather(2, kind[:, None, None].expand(-1, here.shape[1], 1))[..., 0]
    present, looked = inputs[3][0], labels[1] >= 0
    entropy = functional.binary_cross_entropy_with_logits
    sides = [entropy(logits[present], labels[0][present]), logits.sum() * 0]
    ranks = ranking(logits, labels[0], present)
    if looked.any():
        sides[1] = entropy(there[..., 0][looked], labels[1][looked])
        ranks = ranks + ranking(there[..., 0], labels[1], looked)
    target = torch.from_numpy(rows.targets[batch])
    return [*sides, 0.5 * ranks, 0.5 * functional.mse_loss(sentences.gather(1, kind[:, None])[:, 0], target)]


def train(rows: Rows, chosen: NDArray[np.intp], *, seed: int, epochs: int, words: int, rate: float) -> Network:
    """Return the trained network."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(mode=True)
    generator = np.random.default_rng(seed)
    network = Network(rows.features.shape[1], rows.vectors.shape[1], dropout=0.1, **SIZE)
    steps = epochs * (len(list(rows.batches(chosen, words, np.random.default_rng(seed)))) + 20)
    optimiser = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps, pct_start=0.1)
    average = {name: values.detach().clone() for name, values in network.state_dict().items()}
    start, step = time.monotonic(), 0
    for epoch in range(epochs):
        sums = np.zeros(4)
        for batch in rows.batches(chosen, words, generator):
            parts = losses(network, rows, batch, generator)
            optimiser.zero_grad()
            sum(parts).backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            sums += [float(part.detach()) for part in parts]
            step += 1
            if step % _EVERY == 0:
                for name, values in network.state_dict().items():
                    average[name].lerp_(values.detach(), 1 - _AVERAGING)
        print(f"epoch {epoch}: {sums.round(1)} {time.monotonic() - start:.0f} s", flush=True)
    network.load_state_dict(average)
    return network


def main() -> None:
    """Train, and write the weights and what the network says of the development sets."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--words", type=int, default=3000, help="words in a batch")
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--without", default="", help="language pairs to leave out, with commas")
    parser.add_argument("--step", type=int, default=1, help="train on every so many rows")
    options = parser.parse_args()
    examples, cuts = load(options.folder, "train")
    norm = norms(examples)
    rows = Rows(examples, cuts, norm)
    rows.targets = standardise(cuts)
    left_out = options.without.split(",")
    chosen = [k for k, cut in enumerate(cuts) if cut.row.pair not in left_out and not held_out(cut)]
    network = train(
        rows,
        np.array(chosen[:: options.step]),
        seed=options.seed,
        epochs=options.epochs,
        words=options.words,
        rate=options.rate,
    )
    weights = {name: values.numpy() for name, values in network.state_dict().items()}
    np.savez(options.output, mean=norm[0], deviation=norm[1], scale=norm[2], **weights)
    judged, others = load(options.folder, "dev")
    outputs = predict(network, Rows(judged, others, norm), np.arange(len(others)))
    kept = np.array([k for k, cut in enumerate(cuts) if held_out(cut)])
    calibration = predict(network, rows, kept)
    options.output.with_suffix(".pickle").write_bytes(pickle.dumps({"dev": outputs, "calibration": calibration}))


if __name__ == "__main__":
    main()
