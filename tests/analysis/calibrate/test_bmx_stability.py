"""How well repeated runs of LIME agree: the numbers of the specification, on every fifth segment of WMT17."""

from collections.abc import Callable

import numpy as np
import pytest

from whyscore.aggregate import Bags, PowerMean
from whyscore.analysis.calibrate.material import Material, material_from
from whyscore.experiments.bmx.study import importance_stability, stability
from whyscore.types import Dataset, Entry, Segment

W = np.array([0.0, 0.2, 0.4, 0.6, 0.8])


Runs = Callable[[Dataset, int], tuple[np.ndarray, Bags]]


def agreement(data: Dataset, runs: Runs) -> tuple[dict[float | None, float], float]:
    """The correlation of three runs by weight, and that of their raw importances."""
    groups = [str(entry.extra["LP"]) for entry in data.entries]
    made = [material_from(data, *runs(data, seed)) for seed in range(3)]
    rows = stability(made, groups, PowerMean(), PowerMean().grid(), W)
    return {row.w: row.correlation for row in rows if row.group == "all"}, importance_stability(
        [run.bags for run in made]
    )


@pytest.fixture(scope="module")
def fifth(pairs: dict[str, Dataset]) -> Dataset:
    """Every fifth segment of each language pair."""
    return Dataset("every fifth", tuple(entry for data in pairs.values() for entry in data.entries[::5]))


def test_runs_with_100_samples_agree_this_well(
    fifth: Dataset, sequential_lime: Callable[..., tuple[np.ndarray, Bags]]
) -> None:
    def runs(data: Dataset, seed: int) -> tuple[np.ndarray, Bags]:
        parts = [sequential_lime(data.segments[start : start + 112], seed) for start in (0, 112, 224)]
        bags = Bags.of([bags.of_segment(k) for _, bags in parts for k in range(len(bags))])
        return np.concatenate([scores for scores, _ in parts]), bags

    found, raw = agreement(fifth, runs)
    assert found[0.0] == pytest.approx(0.89, abs=0.01)
    assert [found[w] for w in (0.2, 0.4)] == pytest.approx((0.9988, 0.9998), abs=0.0005)
    assert found[None] == pytest.approx(0.978, abs=0.005)
    assert raw == pytest.approx(0.961, abs=0.001)


def test_runs_with_1000_samples_agree_better(
    fifth: Dataset, content_lime: Callable[..., tuple[np.ndarray, Bags]]
) -> None:
    found, raw = agreement(fifth, lambda data, seed: content_lime(data.segments, 1000, seed))
    assert found[0.0] == pytest.approx(0.98, abs=0.01)
    assert [found[w] for w in (0.2, 0.4)] == pytest.approx((0.9999, 1.0), abs=0.0001)
    assert found[None] == pytest.approx(0.996, abs=0.005)
    assert raw == pytest.approx(0.993, abs=0.002)  # drawn from other random numbers than the printed value


def test_equal_runs_agree_fully() -> None:
    entries = tuple(Entry(str(k), "s", Segment("a b c")) for k in range(12))
    rng = np.random.default_rng(0)
    run: Material = material_from(Dataset("d", entries), rng.random(12), Bags.of(list(rng.random((12, 3)))))
    found = stability([run, run], ["g"] * 12, PowerMean(), np.array([-1.0, 1.0]), W)
    assert [row.correlation for row in found] == pytest.approx([1.0] * 11)
    assert importance_stability([run.bags, run.bags]) == pytest.approx(1.0)
