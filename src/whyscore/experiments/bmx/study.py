"""What the BMX experiments share: a run folder whose explanations survive a stop, and results that draw figures.

1. Entries are explained in pieces. Each piece is appended to a file of JSON lines when it is done, so that a run that
   was stopped goes on where it was; the last line, if torn, is cut off.
2. Tables are written before figures: figures can be drawn again from the tables alone.
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np

from whyscore.aggregate.bags import Bags
from whyscore.analysis.calibrate.material import Explained, material_from
from whyscore.analysis.common import MetricLike, as_metric
from whyscore.analysis.explain import cost, explain
from whyscore.data.codec import Where, decode
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
from whyscore.types import Dataset, Evidence
from whyscore.types.result import Result

if TYPE_CHECKING:
    from whyscore.report.figures.charts import Chart

SCHEMA = "whyscore/1"
PIECE = 64
"""Entries that are explained at a time: what a stop can lose."""

Row = dict[str, object]
Figure = tuple[str, "Chart", str]
"""Name, chart and caption."""


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
        found = [json_of(text, path, number) for number, text in enumerate(lines_of(path), start=1)]
        if not found or not all(isinstance(row, dict) for row in found):
            raise DataError("expected a header and one object a line: make the table again", file=str(path))
        return cast("list[Row]", found)


class Run(Result):
    """What an experiment found, with the folder that holds its tables; figures are drawn from these."""

    kind: ClassVar[str] = "experiment"
    folder: RunFolder

    def figures(self) -> Iterator[Figure]:
        """Yield every figure with its name and caption."""
        raise NotImplementedError

    def summary(self) -> Iterator[str]:
        """Yield what is to be said beside the tables."""
        yield from ()

    def document(self) -> object:
        return list(self.records())


@dataclass(frozen=True, slots=True)
class _Importances:
    """The score of an entry and the importances of all its words."""

    index: int
    score: float
    importance: list[float]


def explain_in(
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
    path = folder.path / f"importances_{plain_name(spec_of(explaining))}_{seed}.jsonl"
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
                known.append(_Importances(start + k, float(scores[k]), bags.of_segment(k).tolist()))
                file.write(line(asdict(known[-1])))
            file.flush()
    scores = oriented(chosen).sign * np.array([entry.score for entry in known])
    bags = Bags.of([np.array(entry.importance, dtype=np.float64) for entry in known])
    material = material_from(data, scores, bags)
    noise = material.with_bags(random_bags(data, chosen, parts, seed))
    return Explained(data, chosen, spec_of(explaining), material, noise, parts=parts, seed=seed)


def explain_by_each(
    folder: RunFolder,
    data: Dataset,
    metric: MetricLike,
    explainers: Sequence[str],
    *,
    seed: int,
    resources: Resources,
) -> Iterator[tuple[Explained, Row]]:
    """Yield the data explained by each explainer, with what that cost."""
    for explainer in explainers:
        planned, start = cost(data, metric, explainer), time.perf_counter()
        found = explain_in(folder, data, metric, explainer, seed=seed, resources=resources)
        seconds = round(time.perf_counter() - start, 3)
        yield found, {"explainer": found.explainer, "texts": planned.distinct, "seconds": seconds}


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


def _digest(data: Dataset) -> str:
    """Return sixteen characters that name all texts."""
    held = b"".join(digest(segment) for segment in data.segments)
    return blake2b(held, digest_size=8).hexdigest()


def plain_name(spec: str) -> str:
    """Return a spec as part of a file's name."""
    return "".join(letter if letter.isalnum() else "_" for letter in spec).strip("_")


def _known(path: Path, head: Mapping[str, object]) -> list[_Importances]:
    """Return what a stopped run left; a file of other work is refused."""
    if not path.exists():
        return []
    cut_torn_line(path)
    first, *lines = lines_of(path) or [""]
    if not first:
        return []
    if json_of(first, path, 1) != json.loads(line(head)):
        message = "holds other work (another metric, explainer or data): choose another folder with -o"
        raise DataError(message, file=str(path))
    found: list[_Importances] = []
    for number, text in enumerate(lines, start=2):
        where = Where(str(path), number, cure="delete the file, and run the same command again")
        entry = decode(_Importances, text, where)
        # Two runs that filled the same folder at a time have written entries twice: the first counts.
        if entry.index == len(found):
            found.append(entry)
    return found


def lines_of(path: str | Path) -> list[str]:
    """Return the lines of a file; only a newline ends one, as texts may hold other separators."""
    lines = text_of(path).split("\n")
    return lines[:-1] if lines[-1] == "" else lines
