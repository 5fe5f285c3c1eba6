"""What is each source of labels worth to the embedded model? `python training/compare_labels.py build/labels`.

1. Data: MLQE-PE train of one language pair, shuffled once (seed 0); the first 500, 2,000 and 7,000 segments, so that
   the smaller sets are parts of the larger ones. Segments whose source or translation is in
   the test data are left out.
2. Labels: `human` (word tags of both sides and direct assessment), `alignment` (made here from translation and
   post-edit), `perturbation` (made here from post-edits; the translations are not read), and all three together. With
   all three, words and sentences are judged by the column of the human labels.
3. Training with the settings of `whyscore train`. A tenth of the sources decides when to stop and calibrates, by labels
   of the same kind; the rest is trained on.
4. Judged on Eval4NLP 2021 dev of the pair, which is used for nothing else: AUC of the words of both sides, mean over
   the sentences with right and wrong words; Pearson's correlation with direct assessment; 95 % bootstrap intervals over
   sentences. Beside them: word length, surprisal, `evidence` and the `qe` that ships, which was trained on 48,195
   segments of seven pairs, those of this pair among them.

Each model is a folder of the output; those that are there are not trained again. The table is written as Markdown.
"""

import argparse
import gzip
import json
import os
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from data import QUALITY, SHARED
from whyscore.analysis.train.labels import read_rated
from whyscore.analysis.train.settings import LabelSource
from whyscore.analysis.train.train import judge_baseline, train

SIZES = (500, 2000, 7000)
SOURCES: dict[str, tuple[LabelSource, ...]] = {
    "human": ("human",),
    "alignment": ("alignment",),
    "perturbation": ("perturbation",),
    "all": ("human", "alignment", "perturbation"),
}
MEASURES = ("words", "source words", "sentences")
BASELINES = ("length", "surprisal", "evidence", "qe")


def write_part(pair: str, size: int, folder: Path) -> Path:
    """Return a file with the first segments of the pair, in an order that no size changes."""
    path = folder / f"{pair}-{size}.jsonl"
    if not path.exists():
        with gzip.open(QUALITY / "mlqe_pe_train.jsonl.gz", "rt", encoding="utf-8") as file:
            lines = [line for line in file if json.loads(line)["lp"] == pair]
        order = np.random.default_rng(0).permutation(len(lines))[:size].tolist()
        path.write_text("".join(lines[k] for k in order), encoding="utf-8")
    return path


def train_model(pair: str, size: int, source: str, folder: Path) -> dict[str, Any]:
    """Return what `settings.json` of the model says, trained if it is not there."""
    model = folder / f"{pair}-{size}-{source}"
    if not (model / "settings.json").exists():
        start, used = time.monotonic(), time.process_time()
        result = train(
            write_part(pair, size, folder), output=model, lang_pair=pair, labels=SOURCES[source],
            test=[SHARED / "eval4nlp2021" / "dev" / pair], report=lambda line: print(f"  {line}", flush=True),
        )  # fmt: skip
        seconds = {"seconds": time.monotonic() - start, "cpu": time.process_time() - used, "trained": result.segments}
        (model / "time.json").write_text(json.dumps(seconds) + "\n", encoding="utf-8")
    found: dict[str, Any] = json.loads((model / "settings.json").read_text("utf-8"))
    return found | json.loads((model / "time.json").read_text("utf-8"))


def cells(results: Sequence[dict[str, Any]], name: str) -> list[str]:
    """Return the measures of one model or baseline with their intervals."""
    known = {row["measure"]: row for row in results if row["name"] == name}
    shown = (" ".join(f"{known[one][key]:.3f}" for key in ("value", "low", "high")).split() for one in MEASURES)
    return [f"{value} [{low}, {high}]".replace("0.", ".") for value, low, high in shown]


def table(pair: str, models: dict[tuple[str, int], dict[str, Any]]) -> Iterator[str]:
    """Yield the table of one language pair."""
    yield f"| {pair}: labels | segments | AUC of target words | AUC of source words | Pearson of sentences | CPU |"
    yield "|---|---:|---|---|---|---:|"
    for (source, size), facts in models.items():
        minutes = f"{facts['cpu'] / 60:.1f} min"
        yield f"| {source} | {size:,} | {' | '.join(cells(facts['results'], 'this model'))} | {minutes} |"
    for name in BASELINES if models else ():
        yield f"| `{name}` | | {' | '.join(cells(next(iter(models.values()))['results'], name))} | |"


def main() -> None:
    """Train what is missing, smallest first, and print a table for each language pair."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pairs", nargs="+", default=["ro-en", "et-en"])
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--labels", nargs="+", choices=SOURCES, default=list(SOURCES))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for pair in options.pairs:
        judged = tuple(read_rated(SHARED / "eval4nlp2021" / "dev" / pair, pair))
        for name in BASELINES:  # kept by the function, so that no model's time has theirs in it
            judge_baseline(judged, name)
        models = {}
        for size in options.sizes:
            for source in options.labels:
                print(f"{pair} {size} {source}", flush=True)
                models[source, size] = train_model(pair, size, source, options.folder)
        print("\n".join(table(pair, models)), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
