"""What the BMX experiments share: a run folder whose explanations survive a stop, and the whole grid of gains.

1. Entries are explained in pieces. Each piece is appended to a file of JSON lines when it is done, so that a run that
   was stopped goes on where it was; the last line, if torn, is cut off.
2. Tables are written before figures: figures can be drawn again from the tables alone.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from whyscore.aggregate.bags import Bags
from whyscore.analysis.calibrate.calibrate import Judging, calibrate_explained
from whyscore.analysis.calibrate.file import Calibration
from whyscore.analysis.calibrate.material import Explained, columns_of, groups_of, human_of, material_from, settings_of
from whyscore.analysis.calibrate.settings import Options
from whyscore.analysis.common import MetricLike, as_metric
from whyscore.analysis.explain import explain
from whyscore.data.writing import cut_torn_line, write_lines
from whyscore.errors import DataError, UserError
from whyscore.explainers.masks.random import Random
from whyscore.metrics.boosted import Parts, gathered
from whyscore.protocols import Explainer, Metric
from whyscore.registry import build, spec_of
from whyscore.scoring.rows import oriented
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.scoring.store import digest
from whyscore.text.files import json_of, text_of
from whyscore.text.splitters import WhiteSpace
from whyscore.text.strict import finite, line
from whyscore.types import Dataset, Evidence, FloatVector

SCHEMA = "whyscore/1"
PIECE = 64
"""Entries that are explained at a time: what a stop can lose."""

Row = dict[str, object]


@dataclass(frozen=True)
class RunFolder:
    """Where an experiment writes its tables."""

    path: Path
    name: str

    @classmethod
    def make(cls, path: str | Path, name: str) -> "RunFolder":
        """Return the folder, made if it is not there."""
        folder = Path(path)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{folder}: cannot be made: {error.strerror}. Choose another place with -o") from error
        return cls(folder, name)

    def write(self, name: str, rows: Iterable[Mapping[str, object]], **about: object) -> Path:
        """Write a table as JSON lines, whole or not at all."""
        path = self.path / f"{name}.jsonl"
        head = {"schema": SCHEMA, "schema_version": 1, "kind": "experiment", "experiment": self.name, "table": name}
        write_lines(path, (line(cast("Row", finite(row))) for row in ({**head, **about}, *rows)))
        return path

    def head(self, name: str) -> Row:
        """Return the header of a table."""
        return self._rows(name)[0]

    def read(self, name: str) -> list[Row]:
        """Return the rows of a table, without its header."""
        return self._rows(name)[1:]

    def _rows(self, name: str) -> list[Row]:
        path = self.path / f"{name}.jsonl"
        found = [json_of(text, path, number) for number, text in enumerate(_lines(path), start=1)]
        if not found or not all(isinstance(row, dict) for row in found):
            raise DataError("expected a header and one object a line: make the table again", file=str(path))
        return cast("list[Row]", found)


class Gathered(NamedTuple):
    """One score and all importances per entry."""

    scores: FloatVector
    bags: Bags


def explained_in(
    folder: RunFolder,
    data: Dataset,
    metric: MetricLike,
    explainer: str | Explainer,
    *,
    parts: Parts = "all",
    seed: int = 0,
    resources: Resources = LOCAL,
) -> Explained:
    """Return the entries explained, going on from what the folder holds."""
    chosen = as_metric(metric)
    explaining = cast("Explainer", build(explainer, "explainer") if isinstance(explainer, str) else explainer)
    path = folder.path / f"importances_{_plain(spec_of(explaining))}_{seed}.jsonl"
    head = {
        "schema": SCHEMA,
        "kind": "importances",
        "metric": str(chosen.signature()),
        "explainer": spec_of(explaining),
        "parts": parts,
        "seed": seed,
        "entries": len(data),
        "data": _digest(data),
    }
    known = _known(path, head)
    with path.open("a", encoding="utf-8") as file:
        if not known and path.stat().st_size == 0:
            file.write(line(head))
        for start in range(len(known), len(data), PIECE):
            segments = data.segments[start : start + PIECE]
            found = explain(segments, chosen, explaining, seed=seed, resources=resources)
            scores, bags = gathered(found, len(segments), parts)
            for k in range(len(segments)):
                record = (float(scores[k]), bags.of_segment(k).tolist())
                file.write(line({"index": start + k, "score": record[0], "importance": record[1]}))
                known.append(record)
            file.flush()
    scores = oriented(chosen).sign * np.array([score for score, _ in known])
    bags = Bags.of([np.array(values, dtype=np.float64) for _, values in known])
    material = material_from(data, scores, bags)
    noise = material.replaced(random_bags(data, chosen, parts, seed))
    return Explained(data, chosen, spec_of(explaining), material, noise, parts=parts, seed=seed)


def random_bags(data: Dataset, metric: Metric, parts: Parts, seed: int) -> Bags:
    """Return random importances for the words that an explainer would explain."""
    splitter, found = WhiteSpace(), []
    for segment in data.segments:
        places = segment.places(metric.inputs)
        kept = [
            place
            for place in places
            if parts == "all" or place == places[0] or (parts == "first_reference" and place.reference == 0)
        ]
        words = [splitter.split(segment.text(place)) for place in kept]
        found.append(np.concatenate([Random().fit(Evidence.whole(one, 0.0, seed)).importance for one in words]))
    return Bags.of(found)


def grid_rows(found: Explained, options: Options, *, human: str | Sequence[str], group: str | None, level: str,
              coefficients: Sequence[str]) -> Iterator[Row]:  # fmt: skip
    """Yield the whole grid: what every p and w gains in every setting, and where the aggregate is degenerate."""
    groups = groups_of(found.data, group)
    settings, _ = settings_of(found.material, human_of(found.data, human), groups, level, coefficients)
    columns = columns_of(found.material, options.family, options.parameters)
    for setting in settings:
        judged = setting.at(found.material)
        gains = judged.gains(columns, options.weights)
        shares = columns.degenerate_share(setting.rows)
        for i, p in enumerate(columns.parameters.tolist()):
            for j, w in enumerate(options.weights.tolist()):
                yield {
                    "explainer": found.explainer,
                    "setting": setting.name,
                    "group": setting.group,
                    "p": p,
                    "w": w,
                    "original": judged.before,
                    "correlation": judged.before + float(gains[i, j]),
                    "gain": float(gains[i, j]),
                    "degenerate": float(shares[i]),
                }


def score_rows(found: Explained, calibration: Calibration, *, human: str, group: str | None) -> Iterator[Row]:
    """Yield human, original and aggregated score of every judged entry, each with mean 0 and deviation 1 in its group.

    Ordered by the human score, they show what the aggregate adds.
    """
    parameter = calibration.p if calibration.boosted else 1.0
    family = build(calibration.aggregator, "aggregator")
    values = columns_of(found.material, family, np.array([parameter])).values[0]
    groups = np.array(groups_of(found.data, group))
    judged = found.data.human(human)
    for name in dict.fromkeys(groups.tolist()):
        rows = np.flatnonzero((groups == name) & ~np.isnan(judged) & ~np.isnan(values))
        order = rows[np.argsort(judged[rows], kind="stable")]
        parts = {"human": judged, "original": found.material.scores, "aggregate": values}
        for score, numbers in parts.items():
            for place, number in enumerate(_standard(numbers[order]).tolist()):
                yield {"explainer": found.explainer, "group": name, "place": place, "score": score, "z": number}


def calibration_of(found: Explained, options: Options, *, human: str | Sequence[str], group: str | None, level: str,
                   coefficients: Sequence[str], judging: Judging) -> Calibration:  # fmt: skip
    """Return the calibration of explained entries."""
    return calibrate_explained(
        found, options, human=human, group=group, level=level, coefficient=coefficients, judging=judging
    )


def _standard(values: FloatVector) -> FloatVector:
    spread = float(values.std()) if len(values) else 0.0
    centred: FloatVector = values - values.mean()
    return centred / spread if spread > 0 else centred


def _digest(data: Dataset) -> str:
    """Return sixteen characters that name all texts."""
    held = b"".join(digest(segment) for segment in data.segments)
    return blake2b(held, digest_size=8).hexdigest()


def _plain(spec: str) -> str:
    """Return a spec as part of a file's name."""
    return "".join(letter if letter.isalnum() else "_" for letter in spec).strip("_")


def _known(path: Path, head: Mapping[str, object]) -> list[tuple[float, list[float]]]:
    """Return what a stopped run left; a file of other work is refused."""
    if not path.exists():
        return []
    cut_torn_line(path)
    first, *lines = _lines(path) or [""]
    if not first:
        return []
    if json_of(first, path, 1) != json.loads(line(head)):
        message = "holds other work (another metric, explainer or data): choose another folder with -o"
        raise DataError(message, file=str(path))
    found: list[tuple[float, list[float]]] = []
    for number, text in enumerate(lines, start=2):
        match json_of(text, path, number):
            # Two runs that filled the same folder at a time have written entries twice: the first counts.
            case {"index": int(index), "score": int() | float() as score, "importance": [*values]} if all(
                isinstance(value, int | float) for value in values
            ):
                if index == len(found):
                    found.append((float(score), values))
            case _:
                told = "expected index, score and importance: delete the file, and run the same command again"
                raise DataError(told, file=str(path), line=number)
    return found


def _lines(path: Path) -> list[str]:
    """Return the lines of a file that whyscore wrote; texts inside may hold other ends of lines than newlines."""
    lines = text_of(path).split("\n")
    return lines[:-1] if lines[-1] == "" else lines
