"""How the work is done is said on the command line: where metrics run, what it would take, how far it goes."""

import os
import re
import sys
from pathlib import Path

import pytest

from support.cli import Run
from whyscore.cli import main as entry
from whyscore.cli.options import Parser, RunningSettings, add_settings, read_settings
from whyscore.cli.setup import make_executor
from whyscore.errors import SpecError, UnknownName, UserError
from whyscore.protocols import Executor
from whyscore.scoring.executors import Processes, Serial
from whyscore.scoring.ray import Ray, worker_options


def executor(*options: str) -> Executor | None:
    parser = Parser()
    add_settings(parser, RunningSettings)
    return make_executor(read_settings(RunningSettings, parser.parse_args(options)))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), None),
        (("--executor", "serial"), Serial()),
        (("--jobs", "3"), Processes(3)),
        (("--executor", "processes"), Processes()),
        (("--executor", "processes(jobs=3)"), Processes(3)),
        (("--executor", "ray", "--jobs", "2"), Ray(workers=2)),
        (("--ray-address", "auto"), Ray(address="auto")),
        (("--executor", "ray(gpus=1, workers=4)"), Ray(gpus=1.0, workers=4)),
        (
            ("--executor", "ray(gpus=0.5, cores=2)", "--jobs", "4", "--ray-address", "head:6379"),
            Ray(gpus=0.5, cores=2.0, workers=4, address="head:6379"),
        ),
        (("--executor", "ray(workers=4)", "--jobs", "4"), Ray(workers=4)),
    ],
)
def test_options_name_an_executor(options: tuple[str, ...], expected: Executor | None) -> None:
    assert executor(*options) == expected


def test_a_worker_takes_what_the_spec_says() -> None:
    found = executor("--executor", "ray(gpus=0.5, cores=2)")
    assert isinstance(found, Ray)
    options = worker_options(found.cores, found.gpus)
    assert (options["num_cpus"], options["num_gpus"]) == (2.0, 0.5)
    variables = options["runtime_env"]["env_vars"]  # type: ignore[index]
    assert variables["OMP_NUM_THREADS"] == variables["RAYON_NUM_THREADS"] == "2"


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        (("--executor", "rays"), UnknownName, "no executor named 'rays'. Did you mean 'ray'?"),
        (("--executor", "ray(gpus=-1)"), SpecError, "ray: gpus is -1"),
        (("--executor", "ray(workers=4)", "--jobs", "2"), UserError, "--jobs is 2, and workers in --executor is 4"),
        (("--executor", "processes", "--ray-address", "auto"), UserError, "--ray-address is for --executor ray, not"),
    ],
)
def test_what_does_not_go_together_is_told(options: tuple[str, ...], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        executor(*options)


@pytest.mark.parametrize("verb", [("score",), ("explain", "-e", "erasure"), ("decompose",)])
def test_a_dry_run_leaves_the_file_of_an_earlier_run_alone(verb: tuple[str, ...], tmp_path: Path, run: Run) -> None:
    for name in ("h.txt", "r.txt"):
        (tmp_path / name).write_text("a cat\nthe dog sat\n", "utf-8")
    results = tmp_path / "results.json"
    results.write_text("hours of work", "utf-8")
    texts = ["-t", str(tmp_path / "h.txt"), "-r", str(tmp_path / "r.txt"), "-m", "token_f1", "--store", "none"]
    done = run(*verb, *texts, "--dry-run", "-o", results)
    assert (done.code, "0 already stored" in done.out) == (0, True)
    assert results.read_text("utf-8") == "hours of work"


COUNTING = """
def score(segments):
    with open({log!r}, "a") as file:
        file.writelines(f"{{segment!r}}\\n" for segment in segments)
    return [float(len(segment.hypothesis)) for segment in segments]
"""


def scored_once(log: Path) -> set[str]:
    """Return what a function scored; once in 32 segments one may come again, to see that it gives the same number."""
    lines = log.read_text("utf-8").splitlines()
    distinct = set(lines)
    assert len(lines) - len(distinct) <= 1 + len(distinct) // 32
    return distinct


@pytest.mark.parametrize("explainer", [None, "erasure", "lime(samples=20)", "shap"])
def test_a_dry_run_counts_what_is_then_scored(explainer: str | None, tmp_path: Path, run: Run) -> None:
    log, metric = tmp_path / "log", tmp_path / "metric.py"
    metric.write_text(COUNTING.format(log=str(log)), "utf-8")
    for name in ("h.txt", "r.txt"):
        (tmp_path / name).write_text("a cat sat\nthe dog sat\na cat sat\nno no no\n", "utf-8")
    asked = ["explain", "-e", explainer] if explainer else ["score"]
    asked += ["-t", str(tmp_path / "h.txt"), "-r", str(tmp_path / "r.txt"), "-m", f"{metric}:score", "-q"]
    asked += ["--store", str(tmp_path / "store.sqlite")]
    distinct, stored = map(int, re.findall(r"(\d+) distinct, (\d+) already", run(*asked, "--dry-run").out)[0])
    assert run(*asked).code == 0
    assert (len(scored_once(log)), stored) == (distinct, 0)
    assert f"{distinct} distinct, {distinct} already stored" in run(*asked, "--dry-run").out


def test_a_larger_budget_goes_on_from_a_smaller_one(run: Run, tmp_path: Path) -> None:
    log, metric = tmp_path / "log", tmp_path / "metric.py"
    metric.write_text(COUNTING.format(log=str(log)), "utf-8")
    (tmp_path / "h.txt").write_text("".join(f"line number {k} {'x' * k}\n" for k in range(8)), "utf-8")
    asked = ["evaluate", "-t", str(tmp_path / "h.txt"), "-m", f"{metric}:score", "-e", "erasure", "--draws", "0", "-q"]
    asked += ["--tagger", "none", "--overwrite", "--budget"]
    scored = []
    for store in ("one", "two"):
        for budget in ("3", "8") if store == "one" else ("8",):
            place = ["--store", str(tmp_path / f"{store}.sqlite"), "-o", str(tmp_path / store)]
            assert run(*asked, budget, *place).code == 0
        scored.append(scored_once(log))
        log.unlink()
    assert scored[0] == scored[1]


@pytest.mark.parametrize(
    ("vendor", "flags", "own", "expected"),
    [
        ("AuthenticAMD", "avx2 avx512f avx512bw avx512cd avx512dq avx512vl", None, "SkylakeX"),
        ("AuthenticAMD", "avx2 avx512f avx512bw avx512cd avx512dq avx512vl", "Zen", "Zen"),
        ("AuthenticAMD", "avx2", None, None),
        ("GenuineIntel", "avx2 avx512f avx512bw avx512cd avx512dq avx512vl", None, None),
    ],
)
def test_wide_kernels_are_chosen_where_nobody_chose(
    vendor: str, flags: str, own: str | None, expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text(f"vendor_id\t: {vendor}\nflags\t\t: {flags}\n", "utf-8")
    monkeypatch.setattr(entry, "_PROCESSOR", tmp_path / "cpuinfo")
    monkeypatch.setattr(os, "environ", {} if own is None else {entry.KERNELS: own})
    entry.choose_kernels()  # numpy is loaded: too late
    assert os.environ.get(entry.KERNELS) == own
    monkeypatch.setattr(sys, "modules", {})
    entry.choose_kernels()
    assert os.environ.get(entry.KERNELS) == expected
    monkeypatch.setattr(entry, "_PROCESSOR", tmp_path / "none")
    os.environ.pop(entry.KERNELS, None)
    entry.choose_kernels()
    assert entry.KERNELS not in os.environ


@pytest.mark.parametrize(
    ("own", "expected"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "4"}, "4"), ({"OMP_NUM_THREADS": "4"}, None)]
)
def test_openblas_has_one_thread_where_nobody_chose(
    own: dict[str, str], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", dict(own))
    entry.choose_kernels()  # numpy is loaded: too late
    assert os.environ == own
    monkeypatch.setattr(sys, "modules", {})
    entry.choose_kernels()
    assert os.environ.get("OPENBLAS_NUM_THREADS") == expected
