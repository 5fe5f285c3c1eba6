"""What two promises cost: checksums of stored rows, and draws that do not depend on the order of the data.

1. Reading 20,000 stored rows with their checksums verified, against the same without the check.
2. A bootstrap of 1,000 draws over 5,000 segments, with the sort by content that comes before it, against draws alone.

MOST holds the limits: the time with the promise, divided by the time without it; the best of several runs in turn.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np

from whyscore.scoring import store as stores
from whyscore.scoring.store import Store, digest
from whyscore.stats.resampling import content_order
from whyscore.types import Segment

MOST = {"checksums": 1.05, "draws by content": 1.1}
RUNS = 7


def best(*works: Callable[[], object]) -> list[float]:
    """Return the shortest processor time of each piece of work, run in turn."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(RUNS):
        for own, work in zip(times, works, strict=True):
            start = time.process_time()
            work()
            own.append(time.process_time() - start)
    return [min(own) for own in times]


def _trust(rows: dict[bytes, bytes], width: int, mark: int) -> dict[bytes, bytes]:
    del width, mark
    return rows


def checksums() -> float:
    """Return the ratio of reading with and without checks."""
    keys = [digest(Segment(f"text {number}")) for number in range(20_000)]
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store.sqlite")
        store.put("m", keys, np.random.default_rng(0).random((len(keys), 18)))

        def unchecked() -> None:
            with mock.patch.object(stores, "_whole_rows", new=_trust):
                store.get("m", keys, 18)

        checked, plain = best(lambda: store.get("m", keys, 18), unchecked)
        store.close()
    return checked / plain


def draws() -> float:
    """Return the ratio of a bootstrap with and without the sort by content."""
    scores = np.random.default_rng(0).random((5_000, 4))

    def draw(rows: np.ndarray) -> None:
        rng = np.random.default_rng(0)
        for _ in range(1_000):
            rows[rng.integers(len(rows), size=len(rows))].mean(axis=0)

    sorted_first, plain = best(lambda: draw(scores[content_order(scores)]), lambda: draw(scores))
    return sorted_first / plain


def main() -> int:
    """Print the ratios beside their limits; return 1 if one is beyond."""
    found = {"checksums": checksums(), "draws by content": draws()}
    for name, ratio in found.items():
        print(f"{name:<20}{ratio:6.3f}   at most {MOST[name]}   {'ok' if ratio <= MOST[name] else 'MISSED'}")
    return int(any(ratio > MOST[name] for name, ratio in found.items()))


if __name__ == "__main__":
    sys.exit(main())
