"""How much work a decomposition saves against rescoring everything once per feature and side.

    python benchmarks/bench_decompose.py [DIR] [--sentences 2000] [--tagger spacy]

DIR holds one file `*ref*` and two or more files of systems, one sentence a line; by default it is that of
`bench_score.py`, and where there is none, texts are made up as there. Every part of speech and kind of
entity is a feature. Compared are, with the same sentence metric (BLEU, order 4, unsmoothed) and the same tags:

1. ours: one deduplicated score call for originals and all variants, only of sentences that have the feature;
2. one by one: for each feature and side (best case, worst case) all sentences of all systems are masked and rescored.

Both are timed from tags to shares, masking included; both score a list of segments in one call. Their seconds are
those of the processor, so that what else the machine does is not measured.

Tagging is timed apart; on the second run it asks the tagger about no text. Judged are ratios and counts, printed are
seconds too. Exit code 1 if a limit is missed.
"""

import argparse
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench_score import FOLDER, texts
from whyscore import from_texts
from whyscore.analysis.decompose.scoring import FLOOR, Study, decomposed_metric, measure
from whyscore.analysis.decompose.settings import FeatureSettings
from whyscore.analysis.decompose.tagging import Marked, Marking, mark, members_of
from whyscore.scoring.stack import Resources
from whyscore.scoring.store import Store
from whyscore.text.placeholders import by_words, hide_in_text, unused_characters
from whyscore.types import Dataset, FloatVector, Segment

SPEEDUP = 5.0


def main() -> int:
    """Run both ways in one process and judge them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--tagger", default="spacy")
    arguments = parser.parse_args()
    data = read(arguments.folder, arguments.sentences)
    with tempfile.TemporaryDirectory() as folder:
        marking = tagged(data, arguments.tagger, Path(folder) / "store.sqlite")
    ours, answers, asked = decomposed(data, marking)
    naive, shares, rescored = one_by_one(data, marking)
    print(f"features                 {len(marking.features)}, systems {len(data.systems)}, segments {len(data.ids)}")
    print(f"segments asked           ours {asked}, one by one {rescored}: {rescored / asked:.1f}x fewer")
    print(f"seconds of the processor ours {ours:.1f}, one by one {naive:.1f}")
    print(f"speed                    {naive / ours:.1f}x (limit {SPEEDUP:.0f}x)")
    apart = np.nanmedian(np.abs(np.array(answers) - np.array(shares)))
    print(f"shares                   median difference {apart:.3f}: masked strings are cut otherwise than tokens")
    good = naive / ours >= SPEEDUP
    print("passed" if good else "MISSED")
    return 0 if good else 1


def read(folder: Path, sentences: int) -> Dataset:
    """Return the first sentences of all systems."""
    reference, systems = texts(folder)
    kept = {name: lines[:sentences] for name, lines in systems.items()}
    return replace(from_texts(kept, references=reference[:sentences]), languages=("und", "en"))


def tagged(data: Dataset, tagger: str, store: Path) -> Marking:
    """Return the marked data, tagged twice: the second time everything is in the store."""
    for run in ("first", "second"):
        begin = time.perf_counter()
        marking = mark(data, FeatureSettings(tagger=tagger), Resources(Store(store)))
        seconds = time.perf_counter() - begin
        print(f"tagging, {run:<15} {marking.tagged} of {marking.distinct} distinct texts, {seconds:.1f} s")
    if marking.tagged:
        sys.exit("MISSED: the second run tagged texts again")
    return marking


def decomposed(data: Dataset, marking: Marking) -> tuple[float, list[float], int]:
    """Return seconds, shares and segments asked of the whole work: masking, scoring, shares."""
    begin = time.process_time()
    metric = decomposed_metric("bleu", "paper")
    measured = measure(Study(data, marking, FeatureSettings(), Resources()), "bleu", metric)
    shares = []
    for feature in range(len(marking.features)):
        sigma, oracle, anti = measured.values.of(feature, range(len(measured.values.members[feature])))
        shares.append(ratio(sigma, oracle, anti))
    return time.process_time() - begin, shares, measured.asked


def one_by_one(data: Dataset, marking: Marking) -> tuple[float, list[float], int]:
    """Return the same from masking and rescoring all sentences of all systems for each feature and side.

    Texts are masked as strings, the plain way; the metric cuts them itself, all of one side in one call.
    """
    begin = time.process_time()
    metric = decomposed_metric("bleu", "paper")
    masks = unused_characters(text.text for text in marking.texts)
    plain = metric.score(data.segments)
    shares, rescored = [], len(plain)
    for feature in range(len(marking.features)):
        sides = []
        for mask in (masks.agreeing, masks.differing):
            segments = [
                Segment(
                    hidden(entry.hypothesis, feature, mask),
                    references=tuple(hidden(text, feature, masks.agreeing) for text in entry.references),
                )
                for entry in marking.entries
            ]
            sides.append(metric.score(segments))
            rescored += len(segments)
        kept = members_of(marking)[feature]
        shares.append(ratio(plain[kept], sides[0][kept], sides[1][kept]))
    return time.process_time() - begin, shares, rescored


def hidden(text: Marked, feature: int, mask: str) -> str:
    """Return a text with each word of a feature replaced."""
    spans = by_words(text.text, text.spans[feature])
    return hide_in_text(text.text, spans, [mask] * len(spans))


def ratio(sigma: FloatVector, oracle: FloatVector, anti: FloatVector) -> float:
    """Return the share, NaN where the range is too small."""
    span = float((oracle - anti).sum())
    return float((oracle - sigma).sum()) / span if span > FLOOR else float("nan")


if __name__ == "__main__":
    sys.exit(main())
