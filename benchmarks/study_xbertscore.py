"""Which matching finds translation errors best with the embedded encoder: the table behind the default of xbertscore.

    python benchmarks/study_xbertscore.py            # all candidates, some minutes
    python benchmarks/study_xbertscore.py xbertscore # some of them, as specs

Word level, in thousandths: AUC, AP and recall at K of the negated word scores, mean over the sentences with both marked
and unmarked words. Sentence level: Pearson correlation with people. Data, all beside the project in `shared/data`:

- en-de: WMT22 QE task 2, 511 segments; the mark for the end of the text (`<EOS>`) is left out;
- zh-en: the TED part of the WMT21 MQM ratings, every third segment; a word is marked if it touches an error span of
  any rater;
- WMT17 de-en, tr-en: 560 segments each with direct assessment.

Nothing is judged here: it is a study, not a benchmark with limits.
"""

import csv
import json
import re
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from peers import DATA
from whyscore.registry import build
from whyscore.stats.words import Ragged, agree
from whyscore.text.splitters import white_space
from whyscore.types import HYPOTHESIS, FloatVector, Segment

SPECS = (
    "xbertscore(layer=0, phrases=0)",
    "xbertscore(layer=1, phrases=0)",
    "xbertscore(phrases=0)",
    "xbertscore(phrases=0, specials=exclude)",
    "xbertscore(phrases=0, specials=include)",
    "xbertscore(phrases=0, pool=max)",
    "xbertscore(phrases=0, pool=min)",
    "xbertscore(idf='TEXTS')",
    "xbertscore(model=static)",
    "xbertscore(phrases=1)",
    "xbertscore(phrases=2)",
    "xbertscore",
    "xbertscore(phrases=4)",
    "xbertscore(measure=p)",
    "xbertscore(measure=r)",
    "xbertscore(model=static, phrases=3)",
    "ensemble(xbertscore, xbertscore(model=static))",
)
"""Candidates; TEXTS is a file with all texts of the study."""


class Marked(NamedTuple):
    """Segments with marked words and scores by people."""

    segments: list[Segment]
    gold: list[FloatVector]
    human: FloatVector


def _lines(path: Path) -> list[str]:
    return path.read_text("utf-8").split("\n")[:-1]


def news() -> Marked:
    """Return WMT22 en-de."""
    names = ("src_tok", "mt_tok", "target.gold", "sentence.gold")
    rows = list(zip(*(_lines(DATA / "wmt22_task2" / "en-de" / name) for name in names), strict=True))
    segments = [Segment(hypothesis.removesuffix(" <EOS>"), source) for source, hypothesis, *_ in rows]
    gold = [np.array(marks.split()[:-1], dtype=np.float64) for _, _, marks, _ in rows]
    return Marked(segments, gold, np.array([float(row[3]) for row in rows]))


def talks(step: int = 3) -> Marked:
    """Return the rated TED talks zh-en."""
    with (DATA / "mqm" / "ted_zhen_mqm_expected.csv").open(encoding="utf-8") as file:
        human = {(row["system"], int(row["seg_id"])): float(row["mqm"]) for row in csv.DictReader(file)}
    texts: dict[tuple[str, int], Segment] = {}
    spans: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for rating in map(json.loads, _lines(DATA / "mqm" / "ted_zhen_ratings.jsonl")):
        key = (rating["system"], rating["seg_id"])
        target, source = rating["target"], re.sub("</?v>", "", rating["source"])
        texts.setdefault(key, Segment(re.sub("</?v>", "", target), source))
        begin, end = target.find("<v>"), target.find("</v>")
        if begin >= 0 and rating["severity"] != "No-error":
            spans.setdefault(key, []).append((begin, (end if end >= 0 else len(target)) - 3))
    kept = [key for key, segment in texts.items() if segment.hypothesis.split()][::step]
    gold = [_touched(texts[key].hypothesis, spans.get(key, [])) for key in kept]
    return Marked([texts[key] for key in kept], gold, np.array([human[key] for key in kept]))


def _touched(text: str, spans: Sequence[tuple[int, int]]) -> FloatVector:
    words = white_space(text).spans
    return np.array([any(start < b and end > a for a, b in spans) for start, end in words], dtype=np.float64)


def assessed(pair: str) -> Marked:
    """Return WMT17 into English."""
    rows = [json.loads(line) for line in _lines(DATA / "wmt17" / "wmt17_to_en.jsonl")]
    rows = [row for row in rows if row["LP"] == pair]
    segments = [Segment(row["translation"], row["source"], (row["reference"],)) for row in rows]
    return Marked(segments, [], np.array([row["HUMAN_score"] for row in rows]))


def word_level(gold: Sequence[FloatVector], importance: Sequence[FloatVector]) -> str:
    """Return AUC, AP and recall at K, in thousandths."""
    found = agree(Ragged.of(gold), Ragged.of([-values for values in importance]))
    return " ".join(f"{1000 * np.nanmean(values):4.0f}" for values in (found.auc, found.ap, found.recall_at_k))


def row(spec: str, marked: Sequence[Marked], unmarked: Sequence[Marked]) -> str:
    """Return what a candidate reaches on each set."""
    metric, parts = build(spec), []
    for own in marked:
        words = [white_space(segment.hypothesis) for segment in own.segments]
        found = metric.word_scores(own.segments, HYPOTHESIS, words)
        told = word_level(own.gold, [answer.importance for answer in found])
        parts.append(f"{told} {_pearson(own, metric.score(own.segments))}")
    parts += [_pearson(own, metric.score(own.segments)) for own in unmarked]
    return " | ".join(parts)


def _pearson(own: Marked, scores: FloatVector) -> str:
    return f"{np.corrcoef(own.human, scores)[0, 1]:+.3f}"


def main() -> int:
    """Print the table."""
    warnings.simplefilter("ignore")
    marked, unmarked = [news(), talks()], [assessed("de-en"), assessed("tr-en")]
    print(f"{'':<48}en-de words, Pearson | zh-en words, Pearson | de-en | tr-en")
    lengths = [
        [-np.array([len(w) for w in white_space(s.hypothesis)], dtype=float) for s in m.segments] for m in marked
    ]
    told = " | ".join(word_level(m.gold, own) + " " * 7 for m, own in zip(marked, lengths, strict=True))
    print(f"{'length of the word':<48}{told}")
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        texts = Path(folder) / "texts.txt"
        segments = [segment for own in (*marked, *unmarked) for segment in own.segments]
        lines = dict.fromkeys(t for s in segments for t in (s.hypothesis, s.source or "") if "\n" not in t)
        texts.write_text("\n".join(lines) + "\n", "utf-8")
        for spec in sys.argv[1:] or SPECS:
            print(f"{spec:<48}{row(spec.replace('TEXTS', str(texts)), marked, unmarked)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
