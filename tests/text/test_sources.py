"""What decides the numbers of a function in a file."""

import ast
import json
import platform
from pathlib import Path

import pytest

from whyscore.text.sources import Sources, read_sources


def install(folder: Path, version: str | None, helper: str) -> Sources:
    """Return the sources of a module of a package in a folder of installed packages."""
    package = folder / "site-packages" / "metrics_of_mine"
    package.mkdir(parents=True)
    for name, text in (("__init__", ""), ("score", "from metrics_of_mine import helper\n"), ("helper", helper)):
        (package / f"{name}.py").write_text(text, "utf-8")
    if version is not None:
        facts = folder / "site-packages" / f"my_metrics-{version}.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: my-metrics\nVersion: {version}\n", "utf-8")
        (facts / "RECORD").write_text("metrics_of_mine/__init__.py,,\nmetrics_of_mine/score.py,,\n", "utf-8")
    return read_sources(package / "score.py")


def test_what_a_distribution_installed_is_known_by_its_version(tmp_path: Path) -> None:
    first = install(tmp_path / "a", "1.0", "V = 1\n")
    assert list(first.contents) == ["metrics_of_mine/score.py"]
    assert first.release == "my-metrics 1.0"
    assert install(tmp_path / "b", "1.0", "V = 1\n").digest == first.digest
    assert install(tmp_path / "c", "1.1", "V = 1\n").digest != first.digest


def test_a_package_that_no_distribution_installed_is_known_by_its_files(tmp_path: Path) -> None:
    first = install(tmp_path / "a", None, "V = 1\n")
    assert {Path(name).name for name in first.contents} == {"score.py", "__init__.py", "helper.py"}
    assert first.release == ""
    assert install(tmp_path / "b", None, "V = 2\n").digest != first.digest


def test_modules_of_python_are_known_by_its_version() -> None:
    sources = read_sources(Path(json.__file__))
    assert sources.release == f"python {platform.python_version()}"
    assert list(sources.contents) == ["json/__init__.py"]


def test_files_are_parsed_again_only_when_they_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[object] = []
    parse = ast.parse

    def count(source: object, *options: object, **named: object) -> object:
        parsed.append(source)
        return parse(source, *options, **named)  # type: ignore[call-overload]

    monkeypatch.setattr(ast, "parse", count)
    file, helper, other = (tmp_path / f"{name}.py" for name in ("file", "helper", "other"))
    file.write_text("import helper\n", "utf-8")
    helper.write_text("V = 'never parsed before'\n", "utf-8")
    other.write_text("", "utf-8")
    digest = read_sources(file).digest
    assert read_sources(file).digest == digest
    assert parsed.count(helper.read_bytes()) == 1
    helper.write_text("import other  # never parsed before\n", "utf-8")
    assert list(read_sources(file).contents) == ["file.py", "helper.py", "other.py"]
