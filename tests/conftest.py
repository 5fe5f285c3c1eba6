"""What all tests share."""

import gzip
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# Threads of numpy and torch gain nothing on small matrices, and on a busy machine they wait for one another: products
# took six times the processor time. Commands that tests start inherit the limit.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from support.cli import Run, run_command  # noqa: E402 - loads numpy

# No deadline: the machine may be busy. Repeatable, like everything else here; FUZZ=1 looks at other examples each time.
settings.register_profile("whyscore", deadline=None, derandomize="FUZZ" not in os.environ)
settings.register_profile("quick", settings.get_profile("whyscore"), max_examples=32)
settings.load_profile("whyscore")

# A fault must fail a test, not pass for a message of whyscore.
os.environ["WHYSCORE_DEBUG"] = "1"

SHARED = Path(os.environ.get("WHYSCORE_SHARED") or Path(__file__).resolve().parents[2] / "shared") / "data"
NOT_SHARED = "needs the shared data folder, whose licences do not allow it to ship (WHYSCORE_SHARED)"


def pytest_configure(config: pytest.Config) -> None:
    """Look at fewer examples of each property where slow tests are left out (make test)."""
    if "not slow" in config.getoption("markexpr", ""):
        settings.load_profile("quick")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let one worker run all tests that share an expensive fixture: those of a file, and those with the browser."""
    for item in items:
        known = getattr(item, "_fixtureinfo", None)
        used = [found[-1] for found in known.name2fixturedefs.values()] if known else []
        homes = {one.baseid for one in used if one.scope != "function" and one.baseid.endswith(".py")}
        if item.get_closest_marker("xdist_group") is None and (homes or "browser" in item.path.parts):
            item.add_marker(pytest.mark.xdist_group(min(homes) if homes else "browser"))


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Leave the user's store of scores alone: what is in it must not decide whether a test passes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with whole data sets, beside the project or in WHYSCORE_SHARED ("none": there is none)."""
    if not SHARED.is_dir():
        pytest.skip(NOT_SHARED)
    return SHARED


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data sets that ship with the tests (tests/data/README.md), unpacked and laid out like the shared ones."""
    folder = tmp_path_factory.mktemp("shipped")
    data = Path(__file__).parent / "data"
    for path in data.rglob("*"):
        target = folder / path.relative_to(data)
        if path.suffix == ".gz":
            target.parent.mkdir(parents=True, exist_ok=True)
            target.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        elif path.is_file() and path.suffix not in (".py", ".pyc"):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    return folder


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Tiny networks lose more by sharing work between threads than they gain."""
    torch = pytest.importorskip("torch", reason="the extra 'neural' is not installed")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command line, in a folder and with a cache of its own, 110 columns wide, without the user's variables."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "110")
    for name in list(os.environ):
        if name.startswith("WHYSCORE_") and name != "WHYSCORE_DEBUG":
            monkeypatch.delenv(name)
    return run_command


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests were skipped for want of data, and what to do about it."""
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if NOT_SHARED in str(report.longrepr)]
    if skipped:
        terminalreporter.write_line(
            f"{len(skipped)} tests skipped: they check published values on whole data sets that may not ship. "
            "Set WHYSCORE_SHARED to a folder with data/ to run them."
        )
