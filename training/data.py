"""The rated translations that the estimator is trained and judged on, all from `shared/data` beside the project.

Training: MLQE-PE (CC0-1.0; word tags of both sides, post-edits, direct assessment) and MQM error spans en-de and zh-en
(Google, Apache-2.0). MQM spans en-ru state no licence and are left out. A sentence whose source or translation occurs
in a development set, letters and digits compared in lower case, is removed.

Development: Eval4NLP 2021 dev (et-en, ro-en), WMT22 QE task 2 en-de, every third segment of the rated TED talks zh-en,
MLQE-PE dev and test20. Of language pairs without training data: WMT22 QE task 2 en-cs, en-yo and km-en. Nothing is
trained on them; every choice that was made on them is named in `README.md`.
"""

import csv
import gzip
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
QUALITY = SHARED / "quality_estimation"

Span = tuple[int, int]
_PENALTY = {"minor": 1.0, "major": 5.0}


@dataclass(frozen=True)
class Row:
    """A rated translation."""

    pair: str
    name: str
    """The data set."""
    source: str
    hypothesis: str
    score: float
    """By human raters; higher is better."""
    edited: str | None = None
    """The post-edited translation; None where raters marked spans."""
    source_tags: tuple[float, ...] | None = None
    """1 for each white-space token that is wrong."""
    hypothesis_tags: tuple[float, ...] | None = None
    spans: tuple[tuple[Span, ...], ...] = field(default=())
    """The error spans of each rater."""

    @property
    def marked(self) -> bool:
        """Whether raters marked spans, rather than post-edited."""
        return self.edited is None


def _lines(path: Path) -> list[str]:
    return path.read_text("utf-8").split("\n")[:-1]


def _records(path: Path) -> Iterator[dict[str, object]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def post_edited(name: str) -> list[Row]:
    """Return MLQE-PE: train, dev or test20; rows whose tags do not fit their tokens are left out."""
    rows = []
    for record in _records(QUALITY / f"mlqe_pe_{name}.jsonl.gz"):
        source, hypothesis = str(record["src"]), str(record["mt"])
        tags, marks = tuple(map(float, record["src_tags"])), tuple(map(float, record["mt_tags"]))  # type: ignore[call-overload]
        if len(source.split()) == len(tags) and len(hypothesis.split()) == len(marks):
            score = float(record["da_z"])  # type: ignore[arg-type]
            rows.append(Row(str(record["lp"]), name, source, hypothesis, score, str(record["pe"]), tags, marks))
    return rows


def span_marked(pairs: Sequence[str] = ("en-de", "zh-en")) -> list[Row]:
    """Return the MQM spans, the ratings of one translation together."""
    found: dict[tuple[str, str, str], list[list[tuple[int, int, str]]]] = {}
    for record in _records(QUALITY / "mqm_spans.jsonl.gz"):
        key = (str(record["lp"]), str(record["src"]), str(record["mt"]))
        if key[0] in pairs and key[1].split() and key[2].split():
            found.setdefault(key, []).append(record["spans"])  # type: ignore[arg-type]
    return [
        Row(pair, "mqm", source, hypothesis, _penalty(ratings), spans=_spans(ratings))
        for (pair, source, hypothesis), ratings in found.items()
    ]


def _penalty(ratings: Sequence[Sequence[tuple[int, int, str]]]) -> float:
    return -float(np.mean([sum(_PENALTY[severity] for *_, severity in rating) for rating in ratings]))


def _spans(ratings: Sequence[Sequence[tuple[int, int, str]]]) -> tuple[tuple[Span, ...], ...]:
    return tuple(tuple((start, max(end, start + 1)) for start, end, _ in rating) for rating in ratings)


def eval4nlp(pair: str) -> list[Row]:
    """Return the development set of Eval4NLP 2021."""
    folder = SHARED / "eval4nlp2021" / "dev" / pair
    names = ("src", "mt", "da", "pe", "src-tags", "tgt-tags")
    columns = [_lines(folder / f"dev.{name}") for name in names]
    return [
        Row(pair, "eval4nlp", source, hypothesis, float(score), edited, _tags(tags), _tags(marks))
        for source, hypothesis, score, edited, tags, marks in zip(*columns, strict=True)
    ]


def _tags(line: str) -> tuple[float, ...]:
    return tuple(map(float, line.split()))


def news(pair: str = "en-de") -> list[Row]:
    """Return WMT22 QE task 2 without the mark for the end of the text; rows whose tags do not fit are left out."""
    folder = SHARED / "wmt22_task2" / pair
    columns = [_lines(folder / name) for name in ("src_tok", "mt_tok", "sentence.gold", "target.gold")]
    rows = [
        Row(pair, "wmt22", source, hypothesis.removesuffix(" <EOS>"), float(score), None, None, _tags(marks)[:-1])
        for source, hypothesis, score, marks in zip(*columns, strict=True)
    ]
    return [row for row in rows if len(tokens(row.hypothesis)) == len(row.hypothesis_tags or ())]


def talks(step: int = 3) -> list[Row]:
    """Return the rated TED talks zh-en; a token is wrong if it touches an error span of any rater."""
    with (SHARED / "mqm" / "ted_zhen_mqm_expected.csv").open(encoding="utf-8") as file:
        human = {(row["system"], int(row["seg_id"])): float(row["mqm"]) for row in csv.DictReader(file)}
    texts: dict[tuple[str, int], tuple[str, str]] = {}
    spans: dict[tuple[str, int], list[Span]] = {}
    for rating in map(json.loads, _lines(SHARED / "mqm" / "ted_zhen_ratings.jsonl")):
        key, target = (rating["system"], rating["seg_id"]), rating["target"]
        texts.setdefault(key, (re.sub("</?v>", "", rating["source"]), re.sub("</?v>", "", target)))
        begin, end = target.find("<v>"), target.find("</v>")
        if begin >= 0 and rating["severity"] != "No-error":
            spans.setdefault(key, []).append((begin, (end if end >= 0 else len(target)) - 3))
    kept = [key for key, (_, hypothesis) in texts.items() if hypothesis.split()][::step]
    return [
        Row("zh-en", "ted", *texts[key], human[key], None, None, touched(texts[key][1], spans.get(key, ())))
        for key in kept
    ]


def tokens(text: str) -> NDArray[np.int64]:
    """Return the spans of the white-space tokens."""
    return np.array([found.span() for found in re.finditer(r"\S+", text)], dtype=np.int64).reshape(-1, 2)


def touched(text: str, spans: Sequence[Span]) -> tuple[float, ...]:
    """Return 1 for each token that touches a span."""
    return tuple(float(any(start < b and end > a for a, b in spans)) for start, end in tokens(text).tolist())


def development() -> list[Row]:
    """Return all development sets."""
    return [*eval4nlp("et-en"), *eval4nlp("ro-en"), *news(), *talks(), *post_edited("dev"), *post_edited("test20")]


def unseen() -> list[Row]:
    """Return sets of language pairs that are not trained on."""
    return [row for pair in ("en-cs", "en-yo", "km-en") for row in news(pair)]


def training(development: Sequence[Row]) -> list[Row]:
    """Return what is trained on: nothing whose source or translation occurs in a development set."""
    seen = {_letters(text) for row in development for text in (row.source, row.hypothesis)}
    rows = [*post_edited("train"), *span_marked()]
    return [row for row in rows if _letters(row.source) not in seen and _letters(row.hypothesis) not in seen]


def _letters(text: str) -> str:
    return re.sub(r"\W+", "", text.lower())
