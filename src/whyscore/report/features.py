"""Features lost, as the run recorded them, and which segments have too few or too many of each."""

from collections.abc import Mapping, Sequence

from whyscore.report.model import FeatureRow
from whyscore.runs.features import BECAUSE, ROW, SEGMENT
from whyscore.runs.reading import Row, Run


def feature_rows(run: Run) -> tuple[FeatureRow, ...]:
    """Return one row per metric, feature and system; features that no text has are left out.

    So are metrics that the run does not have: joined runs keep those alone that all of them asked.
    """
    metrics = [one.name for one in run.metrics]
    told = [row for row in run.decomposition if ROW not in row and row["metric"] in metrics]
    rows = [_feature(row, len(run.dataset.of(str(row["system"])))) for row in told]
    seen = {row.feature for row in rows if row.n or row.under or row.over}
    kept = [row for row in rows if row.feature in seen]
    worst = {feature: _worst(kept, feature) for feature in seen}
    return tuple(sorted(kept, key=lambda row: (metrics.index(row.metric), worst[row.feature], row.feature)))


def _worst(rows: Sequence[FeatureRow], feature: str) -> float:
    """Return what orders the features: minus the mean share that is lost, where enough segments stand behind it."""
    known = [row.share for row in rows if row.feature == feature and row.share is not None and "few" not in row.flags]
    return -sum(known) / len(known) if known else 1.0


def features_by_segment(run: Run) -> dict[str, object]:
    """Return which features each segment has too few or too many of, as systems x segments of numbers."""
    rows = [row for row in run.decomposition if row.get(ROW) == SEGMENT]
    if not rows:
        return {}
    names: dict[str, int] = {}
    place = {system: i for i, system in enumerate(run.dataset.systems)}
    column = {name: j for j, name in enumerate(run.dataset.ids)}
    found: dict[str, list[list[list[int]]]] = {key: [[[] for _ in column] for _ in place] for key in ("under", "over")}
    for row in rows:
        for key, table in found.items():
            told = row.get(key)
            numbers = [names.setdefault(str(name), len(names)) for name in told] if isinstance(told, list) else []
            table[place[str(row["system"])]][column[str(row["id"])]] = numbers
    return {"names": [name.replace("_", " ") for name in names], **found}


def _feature(row: Row, segments: int) -> FeatureRow:
    told = row.get("discrepancy")
    counts = told.get("all", {}) if isinstance(told, Mapping) else {}
    flags = row.get("flags")
    reason, examples = row.get(BECAUSE, row.get("reason")), row.get("examples")
    return FeatureRow(
        metric=str(row["metric"]),
        feature=str(row["feature"]),
        system=str(row["system"]),
        share=_number(row.get("share")),
        low=_number(row.get("low")),
        high=_number(row.get("high")),
        n=int(_number(row.get("n")) or 0),
        under=counts["under"] / segments if "under" in counts and segments else None,
        over=counts["over"] / segments if "over" in counts and segments else None,
        flags=tuple(map(str, flags)) if isinstance(flags, list) else (),
        reason=None if reason is None else str(reason),
        examples=tuple(map(str, examples)) if isinstance(examples, list) else (),
    )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
