"""Outsiders join by entry points."""

import re
import sys
from pathlib import Path

import pytest

from whyscore.errors import ContractError
from whyscore.registry import build, list_names


def install(folder: Path, module: str, target: str) -> None:
    """Put a package with one entry point on the path."""
    folder.joinpath("outsider.py").write_text(module)
    info = folder / "outsider-1.0.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: outsider\nVersion: 1.0\n")
    info.joinpath("entry_points.txt").write_text(f"[whyscore.metrics]\nshouting = {target}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "outsider", raising=False)
    return tmp_path


def test_an_installed_plugin_is_known_by_its_name(site: Path) -> None:
    module = "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Shouting:\n    mark: str = '!'\n"
    install(site, module, "outsider:Shouting")
    assert "shouting" in list_names("metric")
    assert build("shouting(mark='?')").mark == "?"


def test_a_plugin_that_cannot_be_loaded_is_named(site: Path) -> None:
    install(site, "import no_such_package", "outsider:Shouting")
    message = (
        "the plugin 'shouting' of outsider (outsider:Shouting) cannot be loaded: No module named 'no_such_package'"
    )
    with pytest.raises(ContractError, match=re.escape(message)):
        build("shouting")
