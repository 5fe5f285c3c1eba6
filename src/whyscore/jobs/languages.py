"""The languages of a data set, told to metrics that want to know them."""

import dataclasses
from typing import cast

from whyscore.protocols import Metric
from whyscore.types import Dataset


def spoken(metric: Metric, languages: tuple[str, str] | None) -> Metric:
    """Return the metric with the target language as its `language`, where it has that option and nobody set it.

    >>> from whyscore.registry import build
    >>> spoken(build("mee"), ("en", "ru")).language, spoken(build("mee(language='de')"), ("en", "ru")).language
    ('ru', 'de')
    """
    if languages is None or not dataclasses.is_dataclass(metric) or isinstance(metric, type):
        return metric
    names = {field.name for field in dataclasses.fields(metric)}
    if "language" not in names or getattr(metric, "language", None) is not None:
        return metric
    changed: object = dataclasses.replace(metric, language=languages[1])  # type: ignore[call-arg, unused-ignore]
    return cast("Metric", changed)


def languages_of(segments: object) -> tuple[str, str] | None:
    """Return the languages of a data set; bare segments have none."""
    return segments.languages if isinstance(segments, Dataset) else None
