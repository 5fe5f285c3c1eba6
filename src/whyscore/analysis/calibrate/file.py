"""What a calibration found: how to boost a metric, with everything that stands behind it, as one small JSON file.

A calibration names the metric and the explainer it was made with and refuses any other. Its digest is part of the
signature of every boosted metric that is made from it.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, cast, get_args

from whyscore.data.codec import Where, convert
from whyscore.data.writing import write_lines
from whyscore.errors import DataError, SpecError
from whyscore.text.files import STRICT, finite
from whyscore.types import Segment, Signature
from whyscore.types.result import Cell, Record, Result, Table

KIND = "calibration"
SCHEMA = "whyscore/1"
VERSION = 1
_SAME = 1e-9
_DECIMALS = 4

Protocol = Literal["oracle", "in-domain", "cross-domain"]
"""Fitted and judged on the same data (optimistic); on other documents; on other groups or data sets."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one source of importances did in one setting: correlation before and after, and how sure that is."""

    source: str
    """The explainer, or a control: `length`, `random`."""
    protocol: Protocol
    setting: str
    n: int
    before: float
    after: float
    gain: float
    p: float
    """The parameter of the aggregator; NaN where the folds differ or nothing was chosen."""
    w: float
    p_value: float | None = None
    adjusted: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class SettingReport:
    """One setting: its data, what the grid holds there, and what it would choose alone."""

    name: str
    group: str
    human: str
    coefficient: str
    level: str
    n: int
    data: str
    """Digest of scores, importances and human scores."""
    documents: str
    """Digest of the inputs."""
    before: float
    after: float
    improving: int
    """Configurations that gain anything."""
    improving_more: int
    """Configurations that gain more than epsilon."""
    configurations: int
    degenerate: float
    """Share of segments whose aggregate the floor value determines entirely, at the chosen parameter."""
    own_p: float
    own_w: float
    best_p: float
    best_w: float
    best_gain: float


@dataclass(frozen=True, repr=False)
class Calibration(Result):
    """How a metric is to be boosted, and how well that went."""

    kind: ClassVar[str] = KIND

    metric: str
    """Spec of the metric."""
    metric_signature: str
    explainer: str
    masker: str | None
    unit: str
    parts: str
    aggregator: str
    """Spec of the aggregator at the chosen parameter."""
    rule: str
    epsilon: float
    parameters: tuple[float, ...]
    weights: tuple[float, ...]
    scale: str
    shift: float
    stretch: float
    p: float
    w: float
    shrinkage: float | None
    nearest: float
    """The grid's parameter next to p."""
    degenerate: float
    settings: tuple[SettingReport, ...]
    outcomes: tuple[Outcome, ...]
    verdict: str
    notes: tuple[str, ...] = ()
    """Settings that were left out and why, and warnings."""
    correction: str = "holm"
    inputs: tuple[str, ...] = field(default=())
    """Digests of the inputs it was fitted on."""
    seed: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)
    gains: Mapping[str, Sequence[Sequence[float]]] | None = None
    """Per setting: parameters x weights, rounded."""

    @property
    def boosted(self) -> bool:
        """Whether anything but the original metric came out."""
        return self.w < 1

    @cached_property
    def digest(self) -> str:
        """Sixteen characters that name this calibration."""
        text = json.dumps(self.document(), sort_keys=True, allow_nan=False)
        return blake2b(text.encode(), digest_size=8).hexdigest()

    def document(self) -> dict[str, object]:
        fields = cast("dict[str, object]", finite(asdict(self)))
        if self.gains is None:
            del fields["gains"]
        return {"schema": SCHEMA, "schema_version": VERSION, "kind": KIND, **fields}

    def records(self) -> Iterator[Record]:
        for outcome in self.outcomes:
            yield asdict(outcome)

    def tables(self, *, long: bool = False) -> list[Table]:
        return [self.outcome_table()] if long else [self._setting_table(), self.outcome_table()]

    def lead(self) -> Sequence[str]:
        """Return the verdict, then the rule that was chosen and the notes."""
        return tuple(self.summary())

    def _setting_table(self) -> Table:
        """Return one row per setting: how much of the grid gains there, and what it would choose alone."""
        rows: list[tuple[Cell, ...]] = [
            (
                setting.name, setting.n, setting.before, setting.after,
                f"{setting.improving}/{setting.configurations}", setting.improving_more,
                f"{setting.best_gain:+.4f} (p {setting.best_p:g}, w {setting.best_w:g})",
                f"p {setting.own_p:g}, w {setting.own_w:.3g}"
                if math.isfinite(setting.own_p) and setting.own_w < 1
                else "not boosted",
                setting.degenerate,
            )
            for setting in self.settings
        ]  # fmt: skip
        more = f"> {self.epsilon:g}"
        head = ("setting", "n", "original", "fitted", "gain > 0", more, "best", "own choice", "degenerate")
        return Table(head, tuple(rows), decimals=_DECIMALS)

    def outcome_table(self) -> Table:
        """Return one row per protocol, source and setting: correlation before and after, the gain, its uncertainty."""
        ordered = sorted(
            self.outcomes, key=lambda outcome: (get_args(Protocol).index(outcome.protocol), outcome.setting)
        )
        columns = {"protocol": "protocol", "setting": "setting", "source": "source", "before": "original",
                   "after": "boosted", "gain": "gain", "low": "low", "high": "high", "p_value": "p",
                   "adjusted": self.correction}  # fmt: skip
        fixed = (
            "oracle: fitted and judged on the same data, always too optimistic",
            "length, brevity, random: uninformative controls",
        )
        return Table.of(map(asdict, ordered), columns, notes=fixed, decimals=_DECIMALS)

    def summary(self) -> Iterator[str]:
        """Yield the result in plain sentences, the verdict first."""
        yield f"Verdict: {self.verdict}"
        if self.boosted:
            near = f" (nearest on the grid: {self.nearest:g})" if abs(self.nearest - self.p) > _SAME else ""
            shrunk = "" if self.shrinkage is None else f" ({self.shrinkage:.2f} of the distance from w = 1 kept)"
            mixture = f"{self.aggregator}{near}, w = {self.w:.4g}{shrunk}"
            yield f'Rule "{self.rule}": {mixture}; degenerate share {self.degenerate:.2f}'
        else:
            yield f'Rule "{self.rule}": no boosting (w = 1)'
        for note in self.notes:
            yield f"note: {note}"

    def __repr__(self) -> str:
        return f"<Calibration of {self.metric} with {self.explainer}: {self.verdict}>"

    def save(self, path: str | Path) -> None:
        """Write the calibration to a file, whole or not at all."""
        write_lines(path, [json.dumps(self.document(), ensure_ascii=False, indent=1, allow_nan=False) + "\n"])

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the calibration in a file."""
        try:
            document = STRICT.decode(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}", file=str(path)) from error
        except (ValueError, RecursionError) as error:
            raise DataError(f"is not a calibration: {error}", file=str(path)) from error
        if not isinstance(document, dict) or document.get("kind") != KIND:
            raise DataError("is not a calibration: create one with whyscore calibrate", file=str(path))
        if not isinstance(document.get("schema_version"), int) or document["schema_version"] > VERSION:
            came = document.get("schema_version")
            raise DataError(f"has schema_version {came!r}, this whyscore reads {VERSION}: update it", file=str(path))
        where = Where(str(path), cure="make it again with whyscore calibrate")
        optional: dict[str, object] = {"parameters": [], "weights": [], "nearest": None}
        calibration = convert(cls, {**optional, **document, "settings": [], "outcomes": []}, where)
        for name, value in vars(calibration).items():
            if isinstance(value, str) and len(value.splitlines()) > 1:
                raise where.error(f"{name!r} is {value!r}, expected one line")
        nested: dict[str, Any] = {}
        for name, kind in {"settings": SettingReport, "outcomes": Outcome}.items():
            rows = document.get(name)
            nested[name] = tuple(convert(kind, row, where) for row in (rows if isinstance(rows, list) else [rows]))
        return replace(calibration, **nested)

    def check(self, metric: Signature | None, explainer: str | None) -> None:
        """Refuse another metric or explainer than the one this was made with."""
        if metric is not None and _plain(str(metric)) != _plain(self.metric_signature):
            raise SpecError(
                f"this calibration was made with the metric {self.metric_signature}, not with {metric}: "
                "leave -m out, or calibrate again"
            )
        if explainer is not None and explainer != self.explainer:
            raise SpecError(
                f"this calibration was made with the explainer {self.explainer}, not with {explainer}: "
                "leave -e out, or calibrate again"
            )

    def overlap(self, segments: Sequence[Segment]) -> int:
        """Return how many of the segments it was fitted on."""
        fitted = set(self.inputs)
        return sum(input_digest(segment) in fitted for segment in segments)


def input_digest(segment: Segment) -> str:
    """Return sixteen characters that name what was translated or summarised: all systems share it."""
    texts = (
        (segment.source or "", *segment.references)
        if segment.source or segment.references
        else ("", segment.hypothesis)
    )
    marked = "".join(f"{len(text)}:{text}" for text in texts)
    return blake2b(marked.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _plain(signature: str) -> str:
    """Return a signature without versions: a new release of whyscore does not make a calibration useless."""
    parsed = Signature.parse(signature)
    return str(replace(parsed, facts=tuple(fact for fact in parsed.facts if fact[0] != "version")))
