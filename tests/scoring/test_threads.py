"""Workers on one machine do not take each other's cores."""

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from whyscore.registry import build
from whyscore.scoring import executors
from whyscore.scoring.executors import VARIABLES, Processes, limit_threads, starting
from whyscore.types import Segment

COUNTING = """
import torch

def score(segments):
    return [float(torch.get_num_threads()) for _ in segments]
"""


@pytest.fixture
def fresh_pool() -> Iterator[None]:
    executors._pool.cache_clear()
    yield
    executors._pool.cache_clear()


@pytest.mark.usefixtures("fresh_pool")
def test_workers_end_in_the_middle_of_a_batch_that_nobody_waits_for_any_more() -> None:
    earlier = set(multiprocessing.active_children())
    results = Processes(1).map(time.sleep, [(0,), (3600,)], "sleep")
    assert next(results) is None
    (worker,) = set(multiprocessing.active_children()) - earlier
    results.close()
    assert worker.exitcode == -signal.SIGTERM


@pytest.mark.usefixtures("fresh_pool")
def test_processes_share_the_cores_among_their_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="the extra 'neural' is not installed")
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "metric.py").write_text(COUNTING, "utf-8")
    parts = Processes(2).run(build(f"{tmp_path}/metric.py:score"), [Segment("a"), Segment("b")], [[0], [1]])
    assert [part.rows.tolist() for part in parts] == [[[1.0]], [[1.0]]]
    assert not set(VARIABLES) & set(os.environ)


def test_limits_that_are_lower_already_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setenv("MKL_NUM_THREADS", "64")
    with starting(4):
        assert (os.environ["OMP_NUM_THREADS"], os.environ["MKL_NUM_THREADS"]) == ("2", "4")
    assert (os.environ["OMP_NUM_THREADS"], os.environ["MKL_NUM_THREADS"]) == ("2", "64")


def test_a_part_of_a_core_has_one_thread() -> None:
    assert set(limit_threads(0).values()) == {"1"}
