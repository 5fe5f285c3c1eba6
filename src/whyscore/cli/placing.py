"""`--device` and `--precision`: where the networks of all asked metrics run, and in which numbers."""

import argparse
import dataclasses
from collections.abc import Mapping

from whyscore.analysis.common import as_metric
from whyscore.errors import UserError
from whyscore.registry import spec_of
from whyscore.registry.specs import parse

_OPTIONS = ("device", "precision")


def place_metrics(arguments: argparse.Namespace) -> None:
    """Write the options into the specs of the metrics that have them and do not say otherwise.

    A metric by itself without a network is left as it is; where no metric has one, the options would do nothing, which
    is an error.
    """
    asked = {name: getattr(arguments, name, None) for name in _OPTIONS}
    wanted = {name: value for name, value in asked.items() if isinstance(value, str)}
    metrics: list[str] | None = getattr(arguments, "metrics", None)
    if not wanted or not metrics:
        return
    placed = [_placed(metric, wanted) for metric in metrics]
    if not any(placed):
        given = " ".join(f"--{name} {value}" for name, value in wanted.items())
        raise UserError(f"{given} is for metrics with a network; none of these has one: {', '.join(metrics)}")
    # In place: a verb may hold the list already.
    metrics[:] = [found or metric for found, metric in zip(placed, metrics, strict=True)]


def _placed(metric: str, wanted: Mapping[str, str]) -> str | None:
    """Return the spec with the options; None where the metric has none of them."""
    made: object = as_metric(metric)
    if not dataclasses.is_dataclass(made) or isinstance(made, type):
        return None
    fields = {field.name for field in dataclasses.fields(made)} & wanted.keys()
    said = dict(parse(metric).named)
    if not fields:
        return None
    return spec_of(dataclasses.replace(made, **{name: wanted[name] for name in fields if name not in said}))
