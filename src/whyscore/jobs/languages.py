"""The languages of a data set, told to metrics that want to know them."""

import dataclasses
from typing import Protocol, cast, runtime_checkable

from whyscore.models.encoders.loading import warn_uncovered
from whyscore.protocols import Encoder, Metric
from whyscore.types import Dataset, Inputs


@runtime_checkable
class Encoding(Protocol):
    """A metric that reads texts through an encoder."""

    def encoder(self) -> Encoder:
        """Return what turns texts into vectors."""


def spoken(metric: Metric, languages: tuple[str, str] | None) -> Metric:
    """Return the metric, told the languages where its numbers depend on them and nobody told it before.

    1. A field `language` is the target language.
    2. A field `languages` is asked for where it chooses the model, that is where none is named.
    3. For every other metric with an encoder the numbers are the same; languages its model was not made for are told.

    >>> from whyscore.registry import build
    >>> spoken(build("mee"), ("en", "ru")).language, spoken(build("mee(language='de')"), ("en", "ru")).language
    ('ru', 'de')
    """
    if languages is None:
        return metric
    if _asks(metric, "language"):
        return _replaced(metric, language=languages[1])
    if _asks(metric, "languages") and getattr(metric, "model", None) is None:
        return _replaced(metric, languages="-".join(languages))
    if isinstance(metric, Encoding):
        warn_uncovered(metric.encoder(), languages if Inputs.SOURCE in metric.inputs else languages[1:])
    return metric


def languages_of(segments: object) -> tuple[str, str] | None:
    """Return the languages of a data set; bare segments have none."""
    return segments.languages if isinstance(segments, Dataset) else None


def _asks(metric: Metric, name: str) -> bool:
    """Return whether a metric has such a field, and nobody has set it."""
    if not dataclasses.is_dataclass(metric) or isinstance(metric, type):
        return False
    return name in {field.name for field in dataclasses.fields(metric)} and getattr(metric, name, None) is None


def _replaced(metric: Metric, **fields: str) -> Metric:
    changed: object = dataclasses.replace(metric, **fields)  # type: ignore[type-var, unused-ignore]
    return cast("Metric", changed)
