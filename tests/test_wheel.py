"""Templates, static files, schemas and the sample are part of what is installed."""

import shutil
import subprocess
import tomllib
from importlib import resources
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DATA = sorted(
    path.relative_to(ROOT / "src" / "whyscore").as_posix()
    for path in (ROOT / "src" / "whyscore").rglob("*")
    if path.is_file() and path.suffix not in (".py", ".pyc")
)


def test_every_kind_of_package_data_is_there() -> None:
    kinds = {name.rpartition("/")[0] for name in DATA}
    assert kinds >= {"", "data", "data/schemas", "report/static", "report/templates", "web/static", "web/templates"}


@pytest.mark.parametrize("name", DATA)
def test_package_data_is_installed(name: str) -> None:
    assert (resources.files("whyscore") / name).read_bytes() == (ROOT / "src" / "whyscore" / name).read_bytes()


def test_the_wheel_holds_the_whole_package() -> None:
    """Hatch takes all of a package, but what is left out here or ignored by git."""
    target = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert target == {"packages": ["src/whyscore"]}
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this is no checkout")
    paths = [f"src/whyscore/{name}" for name in DATA]
    done = subprocess.run(["git", "check-ignore", *paths], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == ""
