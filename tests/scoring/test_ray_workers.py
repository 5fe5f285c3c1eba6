"""A cluster computes what one process computes, whoever dies on the way."""

import json
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from whyscore.cli.main import main
from whyscore.errors import ExecutionError, MissingExtra, SpecError
from whyscore.registry import build, register_metric, spec_of
from whyscore.scoring import ray as ray_cluster
from whyscore.scoring import ray as ray_workers
from whyscore.scoring.ray import Ray, room, ship
from whyscore.scoring.stack import batches, prepare
from whyscore.testing.fakes import Constant
from whyscore.types import Segment, Signature

ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")
cluster_utils = pytest.importorskip("ray.cluster_utils", reason="the extra 'ray' is not installed")

pytestmark = [
    pytest.mark.xdist_group("ray"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"),
]

SEGMENTS = [Segment(f"a cat number {i} sat", references=(f"the cat number {i * 7} sat on a mat",)) for i in range(300)]

LENGTHS = """
def score(segments):
    return [float(len(segment.hypothesis)) for segment in segments]
"""

TOGETHER = """
import os, pathlib, time

here = pathlib.Path({here!r})
deadline = time.monotonic() + 300

def score(segments):
    (here / str(os.getpid())).touch()
    while len(list(here.iterdir())) < 2:
        assert time.monotonic() < deadline, "no second worker came"
        time.sleep(0.02)
    time.sleep(0.2)
    return [float(len(segment.hypothesis)) for segment in segments]
"""

SLOW = """
import time

def score(segments):
    time.sleep(0.5)
    return [float(len(segment.hypothesis)) for segment in segments]
"""

DEADLY = """
import os, signal
def score(segments):
    if any("poison" in segment.hypothesis for segment in segments):
        os.kill(os.getpid(), signal.SIGKILL)
    return [1.0 for _ in segments]
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator["cluster_utils.Cluster"]:
    """A node with one core; tests may add others, and remove them."""
    ray.shutdown()
    head = {"num_cpus": 1, "include_dashboard": False, "_system_config": {"health_check_period_ms": 500}}
    found = cluster_utils.Cluster(initialize_head=True, head_node_args=head)
    yield found
    ray.shutdown()
    found.shutdown()


@pytest.fixture
def node(cluster: "cluster_utils.Cluster") -> Iterator[Callable[..., object]]:
    """Adds nodes, which are gone after the test."""
    added = []

    def add(**resources: object) -> object:
        added.append(cluster.add_node(**resources))
        return added[-1]

    yield add
    for one in added:
        if one in cluster.list_all_nodes():
            cluster.remove_node(one)
    cluster.wait_for_nodes()  # a node that is gone is counted for a while, and workers are sent to it


def written(folder: Path, code: str) -> str:
    path = folder / "metric.py"
    path.write_text(code, "utf-8")
    return f"{path}:score"


def test_two_nodes_give_the_digits_of_one_process(
    cluster: "cluster_utils.Cluster", node: Callable[..., object]
) -> None:
    node(num_cpus=1)
    executor = Ray(address=cluster.address)
    found = prepare(build("ter"), executor=executor).score(SEGMENTS)
    assert np.array_equal(found, prepare(build("ter")).score(SEGMENTS))
    assert sum(rate.texts for rate in executor.rates.values()) == len(SEGMENTS)


def test_workers_stay_between_calls_and_build_the_next_metric(cluster: "cluster_utils.Cluster") -> None:
    executor = Ray(address=cluster.address)
    for name, count in (("chrf", 40), ("chrf", 80), ("ter", 40)):
        scores = prepare(build(name), executor=executor).score(SEGMENTS[:count])
        assert np.array_equal(scores, prepare(build(name)).score(SEGMENTS[:count]))
    (work,) = executor.crew
    assert work.started == 1
    assert executor.rates["worker-0"].texts == 160


def test_a_worker_that_died_between_calls_is_replaced(cluster: "cluster_utils.Cluster") -> None:
    executor = Ray(address=cluster.address)
    prepare(build("chrf"), executor=executor).score(SEGMENTS[:10])
    ray.kill(executor.crew[0].workers["worker-0"])
    scores = prepare(build("chrf"), executor=executor).score(SEGMENTS[:20])
    assert np.array_equal(scores, prepare(build("chrf")).score(SEGMENTS[:20]))
    assert executor.crew[0].started == 2


@pytest.mark.slow
def test_a_node_killed_in_the_middle_costs_no_answer(
    cluster: "cluster_utils.Cluster", node: Callable[..., object], tmp_path: Path
) -> None:
    second = node(num_cpus=1)
    (tmp_path / "here").mkdir()
    metric = build(written(tmp_path, TOGETHER.format(here=str(tmp_path / "here"))))
    segments = SEGMENTS[:80]
    rows = np.full(len(segments), np.nan)
    executor = Ray(address=cluster.address)
    for part in executor.run(metric, segments, batches(segments, 8)):
        assert np.isnan(rows[list(part.indices)]).all()
        rows[list(part.indices)] = part.rows[:, 0]
        if second in cluster.list_all_nodes() and {"worker-0", "worker-1"} <= set(executor.rates):
            cluster.remove_node(second, allow_graceful=False)
            assert np.isnan(rows).any(), "no work was left for the other"
    assert second not in cluster.list_all_nodes()
    assert rows.tolist() == [float(len(segment.hypothesis)) for segment in segments]


@pytest.mark.slow
def test_texts_that_kill_their_worker_are_named_after_three_tries(
    cluster: "cluster_utils.Cluster", tmp_path: Path
) -> None:
    metric = build(written(tmp_path, DEADLY))
    segments = [Segment("fine"), Segment("poison"), Segment("innocent")]
    with pytest.raises(ExecutionError, match=re.escape("died on the same 2 texts")):
        list(Ray(address=cluster.address).run(metric, segments, [[0, 1], [2]]))


def test_errors_of_the_metric_come_back_as_its_own(cluster: "cluster_utils.Cluster") -> None:
    register_metric("known_here_only", Constant)
    metric = build("known_here_only(value=2.0)")
    with pytest.raises(ExecutionError, match=r"unknown to the workers"):
        list(Ray(address=cluster.address).run(metric, SEGMENTS[:2], [[0, 1]]))


@pytest.mark.slow
def test_a_cluster_that_shrinks_to_nothing_is_told(
    cluster: "cluster_utils.Cluster", node: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = node(num_cpus=2)
    # Workers outlive their node for a moment, in which they would do the rest of quick work.
    metric = build(written(tmp_path, SLOW))
    parts = Ray(address=cluster.address, cores=2.0).run(metric, SEGMENTS, batches(SEGMENTS, 8))
    next(parts)
    monkeypatch.setattr(ray_workers, "_PATIENCE", 1.0)
    cluster.remove_node(second, allow_graceful=False)
    with pytest.raises(ExecutionError, match=re.escape("has no node with 2 cores for a worker") + ".*waited for 1 sec"):
        list(parts)


HERE = """
import os

def score(segments):
    gpu, threads = os.environ["CUDA_VISIBLE_DEVICES"], os.environ["OMP_NUM_THREADS"]
    return [100.0 * int(threads) + 10.0 * len(gpu) + float(gpu) for _ in segments]
"""


def test_workers_get_the_gpus_and_threads_that_the_command_asks_for(
    cluster: "cluster_utils.Cluster", node: Callable[..., object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A node may say that it has a GPU; that no network can run there does not matter here."""
    (tmp_path / "h.txt").write_text("a\nb\n", "utf-8")
    asked = ["score", "-t", str(tmp_path / "h.txt"), "-m", written(tmp_path, HERE), "--store", "none", "-b", "-q"]
    asked += ["--draws", "0", "--ray-address", cluster.address, "--executor"]
    assert main([*asked, "ray(gpus=1)"]) == 1
    message = (
        "the Ray cluster has no node with 1 core and 1 GPU for a worker. Leave gpus out, or join a cluster that has"
    )
    assert capsys.readouterr().err == f"whyscore: error: {message} some with --ray-address\n"
    node(num_cpus=2, num_gpus=1)
    assert main([*asked, "ray(gpus=0.5, cores=2.0)"]) == 0
    assert capsys.readouterr().out == "210.00\n"


BROKEN = """
import os, pathlib, time

if os.environ.get("WITHOUT_LIBRARY"):
    raise OSError("no library here")

excluded = pathlib.Path({excluded!r})
deadline = time.monotonic() + 300

def score(segments):
    while not excluded.exists():
        assert time.monotonic() < deadline, "the other worker was not left out"
        time.sleep(0.02)
    return [2.0 for _ in segments]
"""


def test_a_node_where_the_metric_cannot_be_built_is_left_out(
    cluster: "cluster_utils.Cluster", node: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    excluded, exclude = tmp_path / "excluded", ray_workers._Work._exclude

    def note(work: ray_workers._Work, worker: str, error: Exception) -> None:
        exclude(work, worker, error)
        excluded.touch()

    monkeypatch.setattr(ray_workers._Work, "_exclude", note)
    node(num_cpus=1, env_vars={"WITHOUT_LIBRARY": "1"}, resources={"broken": 1})
    metric = build(written(tmp_path, BROKEN.format(excluded=str(excluded))))
    executor = Ray(address=cluster.address)
    parts = executor.run(metric, SEGMENTS, batches(SEGMENTS, 64))
    assert sum(len(part.rows) for part in parts if not part.failures) == len(SEGMENTS)
    (left,) = [name for name in executor.rates if "no library here" in name]
    assert re.search(r"^worker-\d on .* was left out \(", left)
    assert executor.rates[left].texts == 0


def test_workers_with_another_metric_of_the_same_name_are_refused(
    cluster: "cluster_utils.Cluster", monkeypatch: pytest.MonkeyPatch
) -> None:
    metric = build("token_f1")
    monkeypatch.setattr(type(metric), "signature", lambda _: Signature("token_f1", (("version", "0"),)))
    with pytest.raises(ExecutionError, match=re.escape("differs: its metric is token_f1") + ".*Install the same ver"):
        list(Ray(address=cluster.address).run(metric, SEGMENTS[:2], [[0, 1]]))


def test_no_cluster_at_the_address_says_how_to_start_one() -> None:
    ray.shutdown()
    with pytest.raises(ExecutionError, match=re.escape("Start one with: ray start --head")):
        list(Ray(address="127.0.0.1:1").run(build("chrf"), SEGMENTS[:1], [[0]]))


def test_another_program_at_the_address_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ray.shutdown()
    monkeypatch.setattr(ray_cluster, "_KNOCK", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ExecutionError, match=re.escape(f"no Ray cluster at '{address}': what listens there is")):
            list(Ray(address=address).run(build("chrf"), SEGMENTS[:1], [[0]]))


@pytest.mark.parametrize("kind", [RuntimeError, Exception])
def test_a_cluster_that_does_not_start_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    def init(**_: object) -> None:
        raise kind("Version mismatch: The cluster was started with:\n    Ray: 1.0\nThis process was started")

    ray.shutdown()
    monkeypatch.setattr(ray, "init", init)
    message = (
        "cannot work with the Ray cluster at 'auto': Version mismatch: The cluster was started with: Ray: 1.0 This"
    )
    with pytest.raises(ExecutionError, match=re.escape(message)):
        list(Ray(address="auto").run(build("chrf"), SEGMENTS[:1], [[0]]))


def test_a_cluster_is_as_large_as_its_nodes_are() -> None:
    nodes = [
        {"Alive": True, "Resources": {"CPU": 3.0, "GPU": 1.0}},
        {"Alive": True, "Resources": {"CPU": 5.0}},
        {"Alive": False, "Resources": {"CPU": 64.0, "GPU": 8.0}},
    ]
    assert [room(nodes, cores, gpus) for cores, gpus in [(1, 0), (2, 0), (4, 0), (8, 0)]] == [8, 3, 1, 0]
    assert [room(nodes, cores, gpus) for cores, gpus in [(1, 1), (1, 0.5), (1, 0.25), (0, 0)]] == [1, 2, 3, 2]


def test_nothing_to_do_starts_nothing() -> None:
    ray.shutdown()
    assert list(Ray().run(build("chrf"), [], [])) == []
    assert not ray.is_initialized()


def test_the_package_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MissingExtra, match=re.escape("pip install 'whyscore[ray]'")):
        list(Ray().run(build("chrf"), SEGMENTS[:1], [[0]]))


def test_files_named_in_a_spec_travel_under_another_name(tmp_path: Path) -> None:
    spec = f'boosted(metric=callable("{written(tmp_path, LENGTHS)}"), p=1.0)'
    found = ship(spec)
    assert found.spec == 'boosted(metric=callable("shipped_0.py:score"), p=1.0)'
    assert found.folder is not None
    assert (found.folder / "shipped_0.py").read_text("utf-8") == LENGTHS
    assert found.original('callable(target="shipped_0.py:score")|digest:0') == (
        f'callable(target="{tmp_path / "metric.py"}:score")|digest:0'
    )
    assert ship("chrf") == ("chrf", None, {}, None)
    left = found.folder
    found.clear()
    assert not left.exists()


def test_a_folder_of_a_killed_process_is_removed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "whyscore-ray-1").mkdir()
    (tmp_path / "whyscore-ray-1" / "held").touch()
    here = ship(written(tmp_path, LENGTHS))
    other = ship(written(tmp_path, LENGTHS))
    assert {file.parent for file in tmp_path.glob("*/held")} == {here.folder, other.folder}
    here.clear()
    other.clear()


def test_what_a_file_imports_from_its_folder_travels_too(tmp_path: Path) -> None:
    spec = written(
        tmp_path, "import part.inner\n\ndef score(segments):\n    return [part.inner.VALUE for _ in segments]\n"
    )
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "inner.py").write_text("VALUE = 7.0\n", "utf-8")
    shipment = ship(spec)
    assert shipment.folder is not None
    assert (shipment.folder / "part" / "inner.py").read_text("utf-8") == "VALUE = 7.0\n"
    shipment.clear()


def test_files_that_cannot_travel_together_leave_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    targets = []
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        targets.append(written(tmp_path / str(number), "import part\n\ndef score(segments):\n    return [0.0]\n"))
        (tmp_path / str(number) / "part.py").write_text(f"VALUE = {number}\n", "utf-8")
    with pytest.raises(ExecutionError, match=r"two files part\.py differ: give one of them another name"):
        ship(f"ensemble({targets})")
    assert not list(tmp_path.glob("whyscore-ray-*"))


def test_a_file_that_changes_between_calls_gives_its_new_numbers(
    cluster: "cluster_utils.Cluster", tmp_path: Path
) -> None:
    executor = Ray(address=cluster.address)
    table = tmp_path / "table.jsonl"
    for value in (1, 2):
        code = f"def score(segments):\n    return [{value}.0 for _ in segments]\n"
        lines = [
            json.dumps({"hypothesis": segment.hypothesis, "references": segment.references, "score": value})
            for segment in SEGMENTS[:9]
        ]
        table.write_text("\n".join(lines), "utf-8")
        for spec in (written(tmp_path, code), f'lookup("{table}")'):
            scores = prepare(build(spec), executor=executor).score(SEGMENTS[:9])
            assert scores.tolist() == [value] * 9


def test_workers_whose_metric_has_another_signature_build_it_again(cluster: "cluster_utils.Cluster") -> None:
    executor = Ray(address=cluster.address)
    prepare(build("chrf"), executor=executor).score(SEGMENTS[:9])
    (work,) = executor.crew
    work.signature = "chrf, as its files were before"
    assert work.resume(build("chrf"), ship("chrf"))
    assert not work.able
    assert work.signature == str(build("chrf").signature())
    work.close()


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
    code = main(["score", *texts, "-m", "ter", "--store", "none", "--executor", "ray", "--jobs", "1"])
    message = capsys.readouterr().err
    assert code == 0, message
    # On a busy machine Ray may give a first worker up before it has begun; another one takes its place.
    assert [int(count) for count in re.findall(r"worker-\d: (\d+) texts, [\d,]+/s", message)] == [2], message
    ray.shutdown()
