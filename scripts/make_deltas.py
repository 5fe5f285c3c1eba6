"""Makes the table of what a difference means in human terms, out of public MQM ratings.

    python scripts/make_deltas.py PATH_TO_SHARED_DATA

Only the numbers below enter the package: no text, no rating, no score of a system.

1. Test sets: WMT21 news en-de, zh-en and en-ru, TED talks zh-en and en-ru, every system but the references, on the
   segments that all systems have. The reference is the one that the WMT21 metrics task compared with.
2. Humans: the MQM score of a segment is minus the sum of its errors (major 5, minor 1; TED zh-en: as published), the
   mean over raters; a system has the mean over its segments. Humans prefer the system with the higher mean.
3. Metrics: the corpus scores of all systems on the whole set and, because a difference on fewer segments says less, on
   random halves and the like: 40 draws of 100 and of 200 segments. `qe` was trained on the news of en-de and zh-en:
   these are left out for it.
4. Every two systems of a set are a pair. It falls into a bin by the size of its difference; the share of a bin is how
   often the system that is ahead is the one that humans prefer. Pooled domains weigh by pairs.
5. Intervals: 2,000 bootstrap draws of systems within each set, because pairs share systems; where Wilson's interval for
   so many pairs is wider (all pairs agree), its ends count. Bins with fewer than ten pairs are left out.

The result is the same each time.
"""

import csv
import gzip
import json
import math
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from whyscore.analysis.common import as_metric, with_languages
from whyscore.analysis.score import facts_of_data
from whyscore.protocols import CorpusMetric, Metric
from whyscore.scoring.stack import LOCAL
from whyscore.types import FloatMatrix, FloatVector, Segment

OUTPUT = Path(__file__).resolve().parents[1] / "src" / "whyscore" / "analysis" / "compare" / "deltas.json"
METRICS = ("bleu", "chrf", "xbertscore", "qe")
EDGES = {
    "bleu": (0.0, 0.5, 1.0, 2.0, 4.0),
    "chrf": (0.0, 0.25, 0.5, 1.0, 2.0),
    "xbertscore": (0.0, 0.001, 0.0025, 0.005, 0.01),
    "qe": (0.0, 0.0025, 0.005, 0.01, 0.02),
}
SIZES, DRAWS, RESAMPLES, FEWEST, Z = (100, 200, 450), 40, 2000, 10, 1.959964
TRAINED = {("qe", "WMT21 news en-de"), ("qe", "WMT21 news zh-en")}


class TestSet(NamedTuple):
    """Rated outputs of several systems for the same segments."""

    name: str
    languages: tuple[str, str]
    domain: str
    reference: str
    systems: tuple[str, ...]
    segments: tuple[tuple[Segment, ...], ...]
    """By system."""
    human: FloatVector
    """The mean score of each system."""


Rated = Mapping[str, Mapping[object, tuple[str, str, float]]]
"""By system and segment: source, hypothesis, score."""


def read_spans(path: Path) -> dict[str, dict[str, dict[object, tuple[str, str, float]]]]:
    """Return the ratings of each set; several raters of an output are averaged."""
    ratings: dict[tuple[str, str, object], list[tuple[str, str, float]]] = defaultdict(list)
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            score = -float(sum(5 if span[2] == "major" else 1 for span in row["spans"]))
            key = row["set"], row["system"].removeprefix("hyp."), (row["doc"], row["seg"])
            ratings[key].append((row["src"], row["mt"], score))
    found: dict[str, dict[str, dict[object, tuple[str, str, float]]]] = defaultdict(lambda: defaultdict(dict))
    for (name, system, segment), own in ratings.items():
        found[name][system][segment] = (*own[0][:2], float(np.mean([score for *_, score in own])))
    return found


def read_ted(folder: Path) -> dict[str, dict[object, tuple[str, str, float]]]:
    """Return the rated TED talks zh-en with their published segment scores."""
    with (folder / "ted_zhen_mqm_expected.csv").open(encoding="utf-8") as file:
        human = {(row["system"], int(row["seg_id"])): float(row["mqm"]) for row in csv.DictReader(file)}
    found: dict[str, dict[object, tuple[str, str, float]]] = defaultdict(dict)
    with (folder / "ted_zhen_ratings.jsonl").open(encoding="utf-8") as file:
        for row in map(json.loads, file):
            texts = [re.sub(r"</?v>", "", row[side]) for side in ("source", "target")]
            key = row["system"].replace("-", "."), row["seg_id"]
            if (row["system"], row["seg_id"]) in human:
                found[key[0]][key[1]] = (texts[0], texts[1], human[row["system"], row["seg_id"]])
    return found


def make_set(name: str, languages: tuple[str, str], domain: str, reference: str, rated: Rated) -> TestSet:
    """Return the outputs of all systems for the segments that all of them, and the reference, have."""
    systems = tuple(sorted(system for system in rated if not system.startswith("ref.")))
    shared = set.intersection(*(set(rated[system]) for system in (*systems, reference)))
    order = sorted(shared, key=str)
    segments = tuple(
        tuple(Segment(rated[s][k][1], rated[s][k][0], (rated[reference][k][1],)) for k in order) for s in systems
    )
    human = np.array([np.mean([rated[system][k][2] for k in order]) for system in systems])
    return TestSet(name, languages, domain, reference, systems, segments, human)


def read_sets(shared: Path) -> list[TestSet]:
    """Return the test sets, with the references of the WMT21 metrics task."""
    spans = read_spans(shared / "quality_estimation" / "mqm_spans.jsonl.gz")
    return [
        make_set("WMT21 news en-de", ("en", "de"), "news", "ref.C", spans["2021_en-de"]),
        make_set("WMT21 news zh-en", ("zh", "en"), "news", "ref.B", spans["2021_zh-en"]),
        make_set("WMT21 news en-ru", ("en", "ru"), "news", "ref.A", spans["2021_en-ru"]),
        make_set("WMT21 TED talks en-ru", ("en", "ru"), "ted", "ref.A", spans["2021_TED_en-ru"]),
        make_set("WMT21 TED talks zh-en", ("zh", "en"), "ted", "ref.B", read_ted(shared / "mqm")),
    ]


class Observed(NamedTuple):
    """The pairs of systems of a set under a metric: sizes of differences, draws x pairs, and whether humans agree."""

    sizes: FloatMatrix
    agree: FloatMatrix
    first: "np.ndarray[tuple[int], np.dtype[np.intp]]"
    second: "np.ndarray[tuple[int], np.dtype[np.intp]]"
    systems: int


def scores_of(metric: Metric, rows: Sequence[FloatMatrix], chosen: Sequence[int]) -> FloatVector:
    """Return the corpus score of each system on some of the segments."""
    sums = [own[chosen].sum(axis=0) for own in rows]
    if isinstance(metric, CorpusMetric):
        return np.array([metric.total(row) for row in sums])
    return np.array([row[0] / len(chosen) for row in sums])


def observe(metric: Metric, rows: Sequence[FloatMatrix], human: FloatVector, size: int) -> Observed | None:
    """Return the pairs on so many segments, or on all where the set has not many more."""
    count = len(rows[0])
    if count < size:
        return None
    rng = np.random.default_rng(size)
    whole = size == SIZES[-1]
    draws = [np.arange(count)] if whole else [rng.choice(count, size, replace=False) for _ in range(DRAWS)]
    totals = np.array([scores_of(metric, rows, sorted(own.tolist())) for own in draws])
    first, second = np.triu_indices(len(rows), 1)
    apart = human[first] != human[second]
    first, second = first[apart], second[apart]
    differences = totals[:, first] - totals[:, second]
    agree = np.where(differences == 0, 0.5, (np.sign(differences) == np.sign(human[first] - human[second])) * 1.0)
    return Observed(np.abs(differences), agree, first, second, len(rows))


def weigh(observed: Sequence[Observed], low: float, high: float) -> Iterator[tuple[Observed, FloatVector, FloatVector]]:
    """Yield the sum of agreements and the number of draws of each pair in a bin."""
    for own in observed:
        inside = (own.sizes >= low) & (own.sizes < high)
        yield own, (own.agree * inside).sum(axis=0) / len(inside), inside.sum(axis=0) / len(inside)


def make_bin(observed: Sequence[Observed], low: float, high: float) -> dict[str, object] | None:
    """Return how often humans agree in a bin, with its interval; None where there are too few pairs."""
    parts = list(weigh(observed, low, high))
    pairs = sum(int((counts > 0).sum()) for *_, counts in parts)
    weight = sum(float(counts.sum()) for *_, counts in parts)
    if weight < FEWEST:
        return None
    share = sum(float(agreed.sum()) for _, agreed, _ in parts) / weight
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(RESAMPLES):
        above = below = 0.0
        for own, agreed, counts in parts:
            times = np.bincount(rng.integers(own.systems, size=own.systems), minlength=own.systems)
            weights = times[own.first] * times[own.second]
            above, below = above + float(agreed @ weights), below + float(counts @ weights)
        if below:
            drawn.append(above / below)
    ends = np.quantile(drawn, [0.025, 0.975])
    spread = Z * math.sqrt(share * (1 - share) / weight + Z**2 / (4 * weight**2))
    middle, scale = share + Z**2 / (2 * weight), 1 + Z**2 / weight
    return {
        "from": low, "to": None if math.isinf(high) else high, "pairs": pairs, "share": round(share, 4),
        "low": round(min(float(ends[0]), (middle - spread) / scale), 4),
        "high": round(max(float(ends[1]), (middle + spread) / scale), 4),
    }  # fmt: skip


def main(shared: Path) -> None:
    """Score all sets and write the table."""
    sets = read_sets(shared)
    tables: list[dict[str, object]] = []
    for name in METRICS:
        known: list[tuple[TestSet, str, Metric, list[FloatMatrix]]] = []
        for one in sets:
            if (name, one.name) in TRAINED:
                continue
            prepared = LOCAL.prepare(with_languages(as_metric(name), one.languages))
            every = [segment for own in one.segments for segment in own]
            rows = prepared.statistics(every) if isinstance(prepared, CorpusMetric) else prepared.score(every)[:, None]
            signature = prepared.signature().with_facts(**facts_of_data(prepared, every))
            known.append((one, str(signature), prepared, np.split(rows, len(one.systems))))
            print(name, one.name, len(one.systems), len(one.segments[0]), signature, flush=True)
        for languages in dict.fromkeys(one.languages for one, *_ in known):
            own = [item for item in known if item[0].languages == languages]
            domains = list(dict.fromkeys(item[0].domain for item in own))
            for domain in (None, *domains):
                chosen = [item for item in own if domain in (None, item[0].domain)]
                for size in SIZES:
                    found = [observe(metric, rows, one.human, size) for one, _, metric, rows in chosen]
                    used = [item[0].name for item, seen in zip(chosen, found, strict=True) if seen is not None]
                    seen = [item for item in found if item is not None]
                    edges = (*EDGES[name], math.inf)
                    bins = [make_bin(seen, *ends) for ends in pairwise(edges)] if seen else []
                    kept = [one for one in bins if one is not None]
                    if kept:
                        tables.append(
                            {"metric": name, "signature": own[0][1], "languages": "-".join(languages),
                             "domain": domain, "segments": size, "sets": used, "bins": kept}
                        )  # fmt: skip
    origin = [
        {"name": one.name, "languages": "-".join(one.languages), "domain": one.domain, "reference": one.reference,
         "systems": len(one.systems), "segments": len(one.segments[0])}
        for one in sets
    ]  # fmt: skip
    head = "MQM ratings of the WMT21 metrics task; made by scripts/make_deltas.py, which says how"
    OUTPUT.write_text(json.dumps({"origin": head, "sets": origin, "tables": tables}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
