"""How long the main job takes beside sacreBLEU, in one run on the same texts.

    python benchmarks/bench_evaluate.py [--segments 2000] [--repetitions 3]

Texts are those of `bench_score.py`: two systems with one reference. Compared are

1. counting the edits of TER with sacreBLEU's counting;
2. the same with the edits of every word, which sacreBLEU does not tell;
3. `whyscore evaluate` with its defaults (scores, intervals, explanations of all segments, features, tests, report) with
   sacreBLEU's scores and paired bootstrap by BLEU, chrF and TER, which explain nothing;
4. the same with like work: these and the words of every hypothesis by the package lime around sacreBLEU's sentence
   scores, 100 probes, in time per text of a few texts;
5. `whyscore evaluate --quick` with sacreBLEU's scores and paired bootstrap.

Ratios of 3 to 5 depend on the number of segments: a run has two to three seconds that do not, for its start and its
report. 2,000 segments are the size for which the limits in seconds are stated.

Judged are the seconds of 3 and 5 and the ratios of all but 3. Both are processor time, children included: medians of
alternating repetitions, so that what else the machine does counts for both. Numbers of edits must be equal. Exit code 1
if a limit is missed.
"""

import argparse
import contextlib
import io
import os
import resource
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from lime.lime_text import LimeTextExplainer
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.metrics.lib_ter import translation_edit_rate
from sacrebleu.significance import PairedTest

from bench_score import FOLDER, texts
from whyscore.cli.main import main as whyscore
from whyscore.metrics.lexical import edits as counting
from whyscore.metrics.lexical.edits import edits, trace

LIMITS = {"TER, edits": 5.0, "TER, edits of every word": 5.0, "evaluate --quick": 2.0}
"""How many times as fast as the peer each work has to be; scores and tests of sacreBLEU are a part of `evaluate`."""

SECONDS = {"evaluate": 25.0, "evaluate --quick": 5.0}
"""Of the processor that runs over 2,000 segments may take."""

LIKE_WORK = 5.0
"""How many times as fast as scores, bootstrap and lime `evaluate` has to be."""

EXPLAINED = 4
"""Texts of each system that lime explains; the time of the others is that of these."""

Pairs = list[tuple[list[str], list[str]]]


def main() -> int:
    """Print the ratios and return 1 if one is below its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--segments", type=int, default=2000)
    parser.add_argument("--repetitions", type=int, default=3)
    asked = parser.parse_args()
    reference, systems = texts(FOLDER)
    reference = reference[: asked.segments]
    systems = {name: lines[: asked.segments] for name, lines in systems.items()}
    pairs = [
        (one.lower().split(), r.lower().split())
        for lines in systems.values()
        for one, r in zip(lines, reference, strict=True)
    ]
    for name, limit in LIMITS.items():
        print(f"stated before  {name}: at least {limit} x the speed of sacreBLEU")
    for name, limit in SECONDS.items():
        print(f"stated before  {name}: at most {limit} s of the processor for 2,000 segments")
    print(f"stated before  evaluate: at least {LIKE_WORK} x the speed of sacreBLEU with the explanations of lime")
    with tempfile.TemporaryDirectory() as folder:
        works = {
            "TER, edits": (lambda: [edits(*pair) for pair in pairs], lambda: counted(pairs)),
            "TER, edits of every word": (lambda: [trace(*pair).edits for pair in pairs], lambda: counted(pairs)),
            "evaluate": (lambda: evaluated(Path(folder), reference, systems), lambda: tested(reference, systems)),
            "evaluate --quick": (
                lambda: evaluated(Path(folder), reference, systems, "--quick"),
                lambda: tested(reference, systems),
            ),
        }
        times = {name: measure(name, *both, asked.repetitions) for name, both in works.items()}
    good = [times[name][1] / times[name][0] >= limit for name, limit in LIMITS.items()]
    good += [times[name][0] <= limit * max(1.0, asked.segments / 2000) for name, limit in SECONDS.items()]
    own, other = times["evaluate"]
    other += seconds(lambda: explained(reference, systems))[0] * len(reference) / EXPLAINED
    print(f"evaluate                   {own:7.2f} s, sacreBLEU and lime {other:7.0f} s: {other / own:.0f} x")
    good.append(other / own >= LIKE_WORK)
    print("passed" if all(good) else "MISSED")
    return 0 if all(good) else 1


def measure(
    name: str, ours: Callable[[], object], theirs: Callable[[], object], repetitions: int
) -> tuple[float, float]:
    """Return the seconds of both, after printing them."""
    taken: list[tuple[float, float]] = []
    for _ in range(repetitions):
        counting._find_shifts.cache_clear()  # noqa: SLF001 - what an earlier work has searched
        (own, found), (other, expected) = seconds(ours), seconds(theirs)
        if expected is not None and found != expected:
            sys.exit(f"MISSED: {name}: results differ")
        taken.append((own, other))
    own, other = (median(times) for times in zip(*taken, strict=True))
    print(f"{name:<26} {own:7.2f} s, sacreBLEU {other:7.2f} s: {other / own:.1f} x", flush=True)
    return own, other


def seconds(work: Callable[[], object]) -> tuple[float, object]:
    """Return the processor time of a call, children that ended in it included, and what it returns."""
    start = _used()
    found = work()
    return _used() - start, found


def _used() -> float:
    both = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(one.ru_utime + one.ru_stime for one in both)


def counted(pairs: Pairs) -> list[int]:
    """Return sacreBLEU's numbers of edits."""
    return [translation_edit_rate(*pair)[0] for pair in pairs]


def tested(reference: list[str], systems: dict[str, list[str]]) -> None:
    """Score both systems by sacreBLEU, and test their difference."""
    metrics = {kind.__name__: kind(references=[reference]) for kind in (BLEU, CHRF, TER)}
    PairedTest(list(systems.items()), metrics, None, test_type="bs", n_samples=1000)()


def explained(reference: list[str], systems: dict[str, list[str]]) -> None:
    """Explain a few hypotheses of each system by lime, for each metric."""
    explainer = LimeTextExplainer(split_expression=" ", bow=False, random_state=0)
    for metric in (BLEU(effective_order=True), CHRF(), TER()):
        for lines in systems.values():
            for text, own in zip(lines[:EXPLAINED], reference, strict=False):

                def classify(probes: list[str], metric: BLEU | CHRF | TER = metric, own: str = own) -> np.ndarray:
                    return np.array([[metric.sentence_score(probe, [own]).score] for probe in probes])

                explainer.explain_instance(text, classify, labels=(0,), num_features=1000, num_samples=100)


def evaluated(folder: Path, reference: list[str], systems: dict[str, list[str]], *options: str) -> None:
    """Make a run with its report; nothing is known from before."""
    for name, lines in {"reference": reference, **systems}.items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    shutil.rmtree(folder / "run", ignore_errors=True)  # a finished run would be left as it is
    files = ["-r", str(folder / "reference"), "-t", *(str(folder / name) for name in systems)]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = whyscore(["evaluate", *files, "-l", "de-en", "--store", "none", "-o", str(folder / "run"), *options])
    if code:
        sys.exit(f"MISSED: whyscore evaluate ended with {code}")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    warnings.simplefilter("ignore")
    sys.exit(main())
