"""A cluster computes what one process computes, whoever dies on the way."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from whyscore.cli.main import main
from whyscore.errors import ExecutionError, MissingExtra, SpecError
from whyscore.registry import build, register_metric, spec_of
from whyscore.scoring.batches import batches
from whyscore.scoring.prepare import prepare
from whyscore.scoring.ray_workers import Ray, ship
from whyscore.testing.fakes import Constant
from whyscore.types import Segment

ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")
cluster_utils = pytest.importorskip("ray.cluster_utils", reason="the extra 'ray' is not installed")

pytestmark = [
    pytest.mark.xdist_group("ray"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"),
]

SEGMENTS = [Segment(f"a cat number {i} sat", references=(f"the cat number {i * 7} sat on a mat",)) for i in range(300)]

SLOW = """
import time

def score(segments):
    time.sleep(0.05 * len(segments))
    return [float(len(segment.hypothesis)) for segment in segments]
"""

DEADLY = """
import os
def score(segments):
    if any("poison" in segment.hypothesis for segment in segments):
        os._exit(1)
    return [1.0 for _ in segments]
"""


@pytest.fixture
def cluster() -> Iterator["cluster_utils.Cluster"]:
    ray.shutdown()
    found = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    yield found
    ray.shutdown()
    found.shutdown()


def written(folder: Path, code: str) -> str:
    path = folder / "metric.py"
    path.write_text(code, "utf-8")
    return f"{path}:score"


def test_two_nodes_give_the_digits_of_one_process(cluster: "cluster_utils.Cluster") -> None:
    cluster.add_node(num_cpus=1)
    executor = Ray(address=cluster.address)
    found = prepare(build("ter"), executor=executor).score(SEGMENTS)
    assert np.array_equal(found, prepare(build("ter")).score(SEGMENTS))
    assert sum(rate.texts for rate in executor.rates.values()) == len(SEGMENTS)


def test_a_node_killed_in_the_middle_costs_no_answer(cluster: "cluster_utils.Cluster", tmp_path: Path) -> None:
    second = cluster.add_node(num_cpus=1)
    metric = build(written(tmp_path, SLOW))
    rows = np.full(len(SEGMENTS), np.nan)
    executor = Ray(address=cluster.address)
    parts = executor.run(metric, SEGMENTS, batches(SEGMENTS, 8))
    for number, part in enumerate(parts):
        assert np.isnan(rows[list(part.indices)]).all()
        rows[list(part.indices)] = part.rows[:, 0]
        if number == 6:
            cluster.remove_node(second, allow_graceful=False)
    assert {"worker-0", "worker-1"} <= set(executor.rates)
    assert rows.tolist() == [float(len(segment.hypothesis)) for segment in SEGMENTS]


def test_texts_that_kill_their_worker_are_named_after_three_tries(
    cluster: "cluster_utils.Cluster", tmp_path: Path
) -> None:
    metric = build(written(tmp_path, DEADLY))
    segments = [Segment("fine"), Segment("poison")]
    with pytest.raises(ExecutionError, match=re.escape("died on the same 2 texts")):
        list(Ray(address=cluster.address).run(metric, segments, [[0, 1]]))


def test_errors_of_the_metric_come_back_as_its_own(cluster: "cluster_utils.Cluster") -> None:
    register_metric("known_here_only", Constant)
    metric = build("known_here_only(value=2.0)")
    with pytest.raises(ExecutionError, match=r"unknown to the workers"):
        list(Ray(address=cluster.address).run(metric, SEGMENTS[:2], [[0, 1]]))


def test_no_cluster_at_the_address_says_how_to_start_one() -> None:
    ray.shutdown()
    with pytest.raises(ExecutionError, match=re.escape("Start one with: ray start --head")):
        list(Ray(address="127.0.0.1:1").run(build("chrf"), SEGMENTS[:1], [[0]]))


def test_nothing_to_do_starts_nothing() -> None:
    ray.shutdown()
    assert list(Ray().run(build("chrf"), [], [])) == []
    assert not ray.is_initialized()


def test_the_package_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MissingExtra, match=re.escape("pip install 'whyscore[ray]'")):
        list(Ray().run(build("chrf"), SEGMENTS[:1], [[0]]))


def test_files_named_in_a_spec_travel_under_another_name(tmp_path: Path) -> None:
    spec = f'boosted(metric=callable("{written(tmp_path, SLOW)}"), p=1.0)'
    found = ship(spec)
    assert found.spec == 'boosted(metric=callable("shipped_0.py:score"), p=1.0)'
    assert found.folder is not None
    assert (found.folder / "shipped_0.py").read_text("utf-8") == SLOW
    assert ship("chrf") == ("chrf", None)


@pytest.mark.parametrize("option", ["workers", "cores", "gpus"])
def test_less_than_nothing_is_refused(option: str) -> None:
    with pytest.raises(SpecError, match=re.escape(f"ray: {option} is -1")):
        build(f"ray({option}=-1)", kind="executor")


def test_the_spec_rebuilds_the_executor() -> None:
    assert spec_of(build("ray(workers=2)", kind="executor")) == "ray(workers=2)"


def test_the_command_tells_what_each_worker_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ray.shutdown()
    for name in ("h.txt", "r.txt"):
        (tmp_path / name).write_text("a cat\nthe dog sat\n", "utf-8")
    texts = ["-t", str(tmp_path / "h.txt"), "-r", str(tmp_path / "r.txt")]
    assert main(["score", *texts, "-m", "ter", "--store", "none", "--executor", "ray", "--jobs", "1"]) == 0
    assert re.search(r"worker-0: 2 texts, [\d,]+/s", capsys.readouterr().err)
    ray.shutdown()
