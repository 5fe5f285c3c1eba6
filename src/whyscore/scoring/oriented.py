"""The one place where direction matters: a metric turned so that larger is better."""

from collections.abc import Sequence
from dataclasses import dataclass

from whyscore.protocols import Metric
from whyscore.types import FloatVector, Inputs, Segment, Signature


@dataclass(frozen=True, slots=True)
class Oriented:
    """A metric whose larger scores are always the better ones: lower-is-better metrics are multiplied by -1."""

    metric: Metric

    @property
    def inputs(self) -> Inputs:
        """What the metric reads."""
        return self.metric.inputs

    @property
    def higher_is_better(self) -> bool:
        """Always true."""
        return True

    def signature(self) -> Signature:
        """Return the metric's signature; it says when the sign was turned."""
        signature = self.metric.signature()
        return signature if self.metric.higher_is_better else signature.having(sign="turned")

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        """Return the scores, turned where lower is better."""
        return self.sign * self.metric.score(segments)

    @property
    def sign(self) -> float:
        """What the metric's own numbers are multiplied by."""
        return 1.0 if self.metric.higher_is_better else -1.0


def oriented(metric: Metric) -> Oriented:
    """Return the metric with larger meaning better."""
    return metric if isinstance(metric, Oriented) else Oriented(metric)
