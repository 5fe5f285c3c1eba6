"""The papers' experiments by name, as `whyscore experiment NAME` runs them."""

import importlib
import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType

from whyscore.errors import SpecError, UnknownName

_MULER = {
    "hybrid": "whyscore.experiments.muler.shares:hybrid",
    "specificity": "whyscore.experiments.muler.random:specificity",
    "frequency": "whyscore.experiments.muler.shares:frequency",
    "tagnoise": "whyscore.experiments.muler.random:tagnoise",
}
EXPERIMENTS: Mapping[str, str] = MappingProxyType(
    {
        "bmx-grid": "whyscore.experiments.bmx.tables:bmx_grid",
        "bmx-summeval": "whyscore.experiments.bmx.tables:bmx_summeval",
        "bmx-stability": "whyscore.experiments.bmx.tables:bmx_stability",
        **{title: home for name, home in _MULER.items() for title in (f"muler-{name}", name)},
        "baseline": "whyscore.experiments.matching.studies:baseline",
        "layers": "whyscore.experiments.matching.studies:layers",
    }
)
"""The function behind each name; it documents what it takes and what comes back."""


def experiment(name: str, *given: object, **options: object) -> object:
    """Return what an experiment of the papers found; the names are those of `whyscore experiment`.

        experiment("hybrid", dataset, "bleu", features=["number"])
        experiment("bmx-grid", dataset, "token_f1", ["erasure"], human="da", output="run")

    Args:
        name: One of `EXPERIMENTS`, which names the function that does it.
        given: What the function takes: data, a metric, explainers.
        options: Its options.
    """
    if name not in EXPERIMENTS:
        raise UnknownName.among("experiment", name, EXPERIMENTS)
    module, _, attribute = EXPERIMENTS[name].partition(":")
    work: Callable[..., object] = getattr(importlib.import_module(module), attribute)
    _check(name, work, given, options)
    return work(*given, **options)


def _check(name: str, work: Callable[..., object], given: tuple[object, ...], options: Mapping[str, object]) -> None:
    """Refuse what the function does not take, before it begins."""
    known = inspect.signature(work)
    try:
        known.bind(*given, **options)
    except TypeError as error:
        raise SpecError(f"{name}: {error}. Its options: {', '.join(known.parameters)}") from None
