"""Stored explanations read back: by system, metric and explainer, then by side, then by id.

Only explanations of the hypothesis and of the source are kept: the shared tasks and spans are about these.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from whyscore.data.formats.eval4nlp import Judged
from whyscore.data.records import read_records
from whyscore.errors import DataError
from whyscore.types import ExplanationRecord, Side

_SIDES: dict[Side, Judged] = {Side.HYPOTHESIS: "target", Side.SOURCE: "source"}


@dataclass(frozen=True, eq=False)
class StoredExplanations:
    """Explanations of a file; a group's name says what differs within the file."""

    file: str
    groups: Mapping[str, Mapping[Judged, Mapping[str, ExplanationRecord]]]


def read_explanations(path: str | Path) -> StoredExplanations:
    """Return the explanations in a file of records."""
    rows: dict[tuple[str, str, str], dict[Judged, dict[str, ExplanationRecord]]] = {}
    for one in read_records(path, kind="explanations").explanations():
        side = _SIDES.get(one.place.side)
        if side is None:
            continue
        undefined = np.isnan(one.importance)
        if undefined.any():
            word = one.words[int(np.argmax(undefined))]
            raise DataError(f"the importance of {word!r} is null, expected a number", file=str(path), line=one.line)
        texts = rows.setdefault((one.system, one.metric, one.explainer), {}).setdefault(side, {})
        if one.id in texts:
            message = f"the id {one.id!r} is explained twice, first on line {texts[one.id].line}"
            raise DataError(message, file=str(path), line=one.line)
        texts[one.id] = one
    return StoredExplanations(str(path), dict(zip(_names(list(rows)), rows.values(), strict=True)))


def _names(keys: list[tuple[str, str, str]]) -> list[str]:
    """Return short names: metric and explainer always, the system where there are several."""
    several = len({system for system, _, _ in keys}) > 1
    return [f"{system} {metric} {how}" if several else f"{metric} {how}" for system, metric, how in keys]
