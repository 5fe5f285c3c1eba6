"""How long tests of metrics take beside nlpstats doing the same, in one run on the same matrices.

    python benchmarks/bench_stats.py [RESAMPLES [THEIRS]]

Judged are ratios: permute-both at the level of segments (Kendall, 16 x 100) and of systems against nlpstats, whose
deltas must be ours; soft pairwise accuracy of 20 systems x 1,000 segments with 1,000 rows of signs against one
system-level test of nlpstats; permuted cells of Kendall over all 7 x 1,418 cells against the loop over
`scipy.stats.kendalltau` on the same swaps, whose deltas must be ours. We make RESAMPLES (default 1,000). At the level
of segments nlpstats makes THEIRS (default 100), over all cells scipy makes 25, and their time is scaled up, as they
are loops over resamples; `1000 1000` measures all of those of nlpstats. Of our rounds the longest counts, as the
others get one round. Seconds are printed only.
"""

import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau

from whyscore.stats.agreement import acc_eq, soft_pairwise_accuracy
from whyscore.stats.matrices import coins, spread, standardise
from whyscore.stats.resampling import sort_by_content
from whyscore.stats.significance import permutation_test

LIMITS = {"segment kendall": 100.0, "segment pearson": 100.0, "system kendall": 20.0, "spa": 1.0, "global kendall": 2.0}
THEIRS_SEGMENT = 100
THEIRS_GLOBAL = 25
LONG = (7, 1418)
ROUNDS = 3


def matrices(systems: int, segments: int, seed: int = 0) -> list[NDArray[np.float64]]:
    """Return two metrics and the human scores behind them."""
    rng = np.random.default_rng(seed)
    human = rng.normal(size=(systems, 1)) / 2 + rng.normal(size=(systems, segments))
    return [human + spread * rng.normal(size=human.shape) for spread in (1.0, 1.5)] + [human.round(1)]


def seconds(work: Callable[[], object], rounds: int = 1) -> float:
    """Return the longest time of a call."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return max(times)


def against_nlpstats(level: str, coefficient: str, ours: int, theirs: int) -> float:
    """Return how many times faster we are per resample, after checking that the deltas are the same."""
    from nlpstats.correlations import permutation_test as peer

    data = matrices(16, 100)
    found: dict[str, NDArray[np.float64]] = {}

    def run_theirs() -> None:
        np.random.seed(0)
        found["theirs"] = np.array(peer(*data, level, coefficient, "both", n_resamples=theirs).samples)

    def run_ours(n: int) -> None:
        result = permutation_test(
            *(*data, level, coefficient), permute="row_xor_column", n=n, compat="nlpstats", seed=0, keep=True
        )
        assert result.samples is not None
        found["ours"] = result.samples

    slow = seconds(run_theirs) / theirs
    run_ours(theirs)
    worst = float(np.abs(found["ours"] - found["theirs"]).max())
    assert worst < 1e-12, f"{level} {coefficient}: deltas differ by {worst}"
    fast = seconds(lambda: run_ours(ours), ROUNDS) / ours
    print(
        f"{level:>7} {coefficient:<8} nlpstats {slow * ours:7.2f} s for {ours} resamples (of {theirs} made), "
        f"ours {fast * ours:.3f} s: {slow / fast:6.0f} x   largest difference of a delta {worst:.0e}"
    )
    return slow / fast


def soft_accuracy(resamples: int) -> float:
    """Return the time of one system-level test of nlpstats in times of our soft pairwise accuracy."""
    from nlpstats.correlations import permutation_test as peer

    data = matrices(16, 100)
    test = seconds(lambda: peer(*data, "system", "kendall", "both", n_resamples=resamples))
    metric, _, human = matrices(20, 1000)
    own = seconds(lambda: soft_pairwise_accuracy(metric, human, n=1000), ROUNDS)
    print(f"spa of 20 x 1,000, 1,000 rows of signs: {own:.3f} s; one system-level test of nlpstats {test:.2f} s")
    return test / own


def long_kendall(ours: int, theirs: int) -> float:
    """Return how many times faster we are than a loop over scipy on all cells, after checking that deltas are equal."""
    x, y, z = sort_by_content(*matrices(*LONG))  # swaps go by place, in the order of what the segments hold
    own, other, human = standardise(x), standardise(y), z.ravel()
    (tossed,) = coins(np.random.default_rng(0), "cell", *LONG, n=theirs, block=theirs)
    found: dict[str, NDArray[np.float64]] = {}

    def run_theirs() -> None:
        deltas = []
        for swapped in spread(tossed, "cell", *LONG):
            sides = np.where(swapped, other, own), np.where(swapped, own, other)
            first, second = (kendalltau(side.ravel(), human).statistic for side in sides)
            deltas.append(first - second)
        found["theirs"] = np.array(deltas)

    def run_ours(n: int) -> None:
        result = permutation_test(x, y, z, "global", "kendall", permute="cell", n=n, seed=0, keep=True)
        assert result.samples is not None
        found["ours"] = result.samples

    slow = seconds(run_theirs) / theirs
    run_ours(theirs)
    worst = float(np.abs(found["ours"] - found["theirs"]).max())
    assert worst < 1e-12, f"global kendall: deltas differ by {worst}"
    fast = seconds(lambda: run_ours(ours)) / ours
    print(
        f" global kendall  scipy's loop {slow * ours:7.2f} s for {ours} resamples (of {theirs} made) of 7 x 1,418, "
        f"ours {fast * ours:.3f} s: {slow / fast:6.1f} x   largest difference of a delta {worst:.0e}"
    )
    return slow / fast


def main() -> int:
    """Print the ratios and return 1 if one is below its limit."""
    resamples = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    theirs = int(sys.argv[2]) if len(sys.argv) > 2 else THEIRS_SEGMENT
    warnings.simplefilter("ignore")  # scipy's, about constant columns
    ratios = {
        f"{name} {coefficient}": against_nlpstats(level, coefficient, resamples, made)
        for name, level, coefficient, made in (
            ("segment", "input", "kendall", min(theirs, resamples)),
            ("segment", "input", "pearson", min(theirs, resamples)),
            ("system", "system", "kendall", resamples),
        )
    }
    ratios["spa"] = soft_accuracy(resamples)
    ratios["global kendall"] = long_kendall(resamples, min(resamples, THEIRS_GLOBAL))
    metric, _, human = matrices(16, 100)
    print(f"acc_eq of 16 x 100 (12,000 pairs): {seconds(lambda: acc_eq(metric, human), ROUNDS):.3f} s")
    failed = [name for name, ratio in ratios.items() if ratio < LIMITS[name]]
    for name, ratio in ratios.items():
        print(f"{name:<16} {ratio:7.1f} x   (limit {LIMITS[name]:.0f})")
    if failed:
        print(f"below the limit: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
