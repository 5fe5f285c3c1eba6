"""How long reading and validating a TSV file takes, relative to the bare `csv` reader in the same run.

    python benchmarks/bench_read.py [ROWS]

Three times what the csv reader takes is the limit. Rounds are interleaved and the best of each is compared, because
other work on the machine slows single rounds down.
"""

import csv
import gc
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from whyscore.data.checks import findings
from whyscore.data.reading import read

LIMIT = 3.0
ROUNDS = 7
WORDS = "the house über a straße of and in to for rivière is on that by this with été i you it not or be are from at"


def write(path: Path, rows: int) -> None:
    """Write sentences of real length: source, hypothesis and reference of some 20 words each."""
    draw = random.Random(0)
    words = [word + ending for word in WORDS.split() for ending in ("", "s", "ing", "er", "ation")]
    sentences = [" ".join(draw.choices(words, k=draw.randint(8, 32))) + "." for _ in range(10_000)]
    with path.open("w", encoding="utf-8") as file:
        file.write("id\tsystem\tsource\thypothesis\treference\tscore\n")
        for row in range(rows):
            texts = "\t".join(draw.choices(sentences, k=3))
            file.write(f"{row}\tsysA\t{texts}\t{draw.gauss(0, 1):.6f}\n")


def bare(path: Path) -> int:
    """Return the number of rows, counted by the standard reader, which keeps none of them."""
    with path.open(encoding="utf-8", newline="") as file:
        return sum(1 for _ in csv.reader(file, delimiter="\t"))


def kept(path: Path) -> int:
    """Return the number of rows, all kept in a list."""
    with path.open(encoding="utf-8", newline="") as file:
        return len(list(csv.reader(file, delimiter="\t")))


def ours(path: Path) -> int:
    """Return the number of findings after reading and validating."""
    return len(findings(read(path)))


def seconds(work: Callable[[Path], int], path: Path) -> float:
    """Return how long a piece of work takes."""
    gc.collect()
    start = time.process_time()
    work(path)
    return time.process_time() - start


def main() -> int:
    """Print the times and the ratios; return 1 if the reader is beyond its limit."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.tsv"
        write(path, rows)
        size = path.stat().st_size
        rounds = [[seconds(work, path) for work in (bare, kept, ours)] for _ in range(ROUNDS)]
    best = [min(times) for times in zip(*rounds, strict=True)]
    print(f"{rows:,} rows, {size / 1e6:.0f} MB, best of {ROUNDS} rounds")
    print(f"csv reader, rows counted    {best[0]:.2f} s")
    print(f"csv reader, rows kept       {best[1]:.2f} s")
    print(f"whyscore, read + validated  {best[2]:.2f} s")
    print(f"ratio {best[2] / best[0]:.2f} (limit {LIMIT}); against kept rows {best[2] / best[1]:.2f}")
    return int(best[2] / best[0] > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
