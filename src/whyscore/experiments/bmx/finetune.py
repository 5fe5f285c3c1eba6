"""Fine-tuning beside boosting (Figure 3 of BMX): a regression head on the metric's own network.

1. The encoder of the metric's network reads the hypothesis and the text it is compared with (the source where the
   metric reads it, else the first reference). The means of their vectors, u and v, give [u, v, |u - v|, u * v].
2. A linear head predicts the human score, standardised in each setting. Head and network are trained together on the
   calibration data: squared error, AdamW, batches in random order.
3. The predictions are judged on the other data sets as boosted scores are.

The paper leaves open the head, the pooling and all hyper-parameters; texts are cut at the network's limit.
"""

import copy
import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whyscore.errors import DataError, UserError
from whyscore.models.encoders.stacks import Source, Stack, source, stack
from whyscore.models.pairs import Row, RowCoder, as_tensors
from whyscore.protocols import Metric
from whyscore.registry import spec_of
from whyscore.scoring.rows import needs
from whyscore.text.randomness import generator
from whyscore.types import FloatVector, Inputs, Segment

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Linear

FINE_TUNED = "fine-tuned"
_WHO = "fine-tuning"
_WITHOUT_NETWORK = (None, "embedded", "static")


class Training(NamedTuple):
    """How the network is trained."""

    epochs: int
    rate: float
    batch: int
    seed: int


def fine_tune(
    metric: Metric, examples: Sequence[tuple[Segment, float]], segments: Sequence[Segment], training: Training
) -> FloatVector:
    """Return predictions for segments by the metric's network after training on segments with human scores.

    Args:
        metric: BERTScore, BARTScore or another metric with the network of a folder or hub name as its `model`.
        examples: segments with standardised human scores; their order does not matter.
        segments: what to predict.
        training: epochs, learning rate, batch size, seed.
    """
    torch = importlib.import_module("torch")
    work = _Regression(metric)
    ordered = sorted(examples, key=lambda one: (_key(one[0]), one[1]))
    random = generator(training.seed, FINE_TUNED, *(_key(segment) for segment, _ in ordered))
    with torch.random.fork_rng():
        torch.manual_seed(training.seed)
        parameters = [*work.stack.network.parameters(), *work.head.parameters()]
        optimizer = torch.optim.AdamW(parameters, lr=training.rate)
        for _ in range(training.epochs):
            order = random.permutation(len(ordered))
            for start in range(0, len(order), training.batch):
                batch = [ordered[k] for k in order[start : start + training.batch]]
                predicted = work.predict([segment for segment, _ in batch])
                loss = (predicted - torch.tensor([value for _, value in batch])).square().mean()
                if not torch.isfinite(loss):
                    raise DataError(f"{_WHO}: the loss is {loss.item()}; train with a smaller --fine-tune-rate")
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    with torch.inference_mode():
        parts = [work.predict(segments[k : k + training.batch]) for k in range(0, len(segments), training.batch)]
    return np.concatenate([part.double().numpy() for part in parts])


def check_network(metric: Metric) -> str:
    """Return the network of a metric by name; a metric without one is refused."""
    name = getattr(metric, "model", None)
    if name in _WITHOUT_NETWORK or not isinstance(name, str):
        raise UserError(
            f"{spec_of(metric)} has no network to fine-tune: use --fine-tune with a metric such as "
            "\"bertscore(model='FOLDER')\" or \"bartscore(model='FOLDER')\""
        )
    return name


def _key(segment: Segment) -> str:
    return "\n".join((segment.hypothesis, segment.source or "", *segment.references))


class _Regression:
    """An encoder with a linear head on the means of its vectors."""

    def __init__(self, metric: Metric) -> None:
        model: Source = source(check_network(metric), _WHO)
        # A copy: the one that was loaded serves the metric. On the processor, where training can be repeated.
        self.stack: Stack = copy.deepcopy(stack(model, model.shape.blocks, "cpu", "fp32", _WHO))
        self.coder, self.limit = RowCoder(model.tokenizer, _WHO), model.limit
        self.with_source = Inputs.SOURCE in needs(metric)
        nn = importlib.import_module("torch.nn")
        self.head: Linear = nn.Linear(4 * model.shape.width, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def predict(self, segments: Sequence[Segment]) -> "Tensor":
        """Return one number per segment."""
        torch = importlib.import_module("torch")
        others = [(one.source or "") if self.with_source else next(iter(one.references), "") for one in segments]
        left, right = self._means([one.hypothesis for one in segments]), self._means(others)
        answer: Tensor = self.head(torch.cat([left, right, (left - right).abs(), left * right], dim=1))
        return answer.squeeze(1)

    def _means(self, texts: Sequence[str]) -> "Tensor":
        coded = self.coder.code(texts)
        rows: list[Row] = [self.coder.rows(text, coded[text], self.limit, "truncate")[0] for text in texts]
        inputs = as_tensors(rows, self.coder.padding, "cpu")
        real = inputs.mask.unsqueeze(-1).float()
        means: Tensor = (self.stack.table(inputs) * real).sum(1) / real.sum(1)
        return means
