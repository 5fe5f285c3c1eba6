"""A Python file with the modules beside it that it imports: what decides the numbers of a function in it.

1. Every `import` in the file, wherever it stands, names modules. Those that are files of the same folder, or of the
   same package, are read in turn.
2. What is installed is known by its version, which stands for all files of its package but the one asked for. A
   package that no distribution put there has none: its own files are read.
"""

import ast
import hashlib
import platform
import re
import sys
import sysconfig
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import distributions
from pathlib import Path
from typing import NamedTuple

_STDLIB = Path(sysconfig.get_paths()["stdlib"]).name
_INSTALLED = {"site-packages", "dist-packages", _STDLIB}
"""What folders of installed packages are called."""


class Sources(NamedTuple):
    """The contents of files, by their names in a folder; the first is the file that was asked for."""

    root: Path
    contents: dict[str, bytes]
    release: str = ""
    """The distributions that the file was installed with, where they stand for what it imports."""

    @property
    def beside(self) -> dict[Path, bytes]:
        """The files that the first one imports."""
        return {self.root / name: content for name, content in list(self.contents.items())[1:]}

    @property
    def modules(self) -> dict[str, Path]:
        """The files that the first one imports, by the full names of their modules."""
        files = [self.root / name for name in list(self.contents)[1:]]
        places = [file.parent if file.name == "__init__.py" else file.with_suffix("") for file in files]
        return {".".join(place.relative_to(self.root).parts): file for place, file in zip(places, files, strict=True)}

    @property
    def digest(self) -> str:
        """What the files hold; how the first one is called does not matter."""
        (_, content), *others = self.contents.items()
        whole = hashlib.blake2b(content + self.release.encode(), digest_size=6)
        for name, other in sorted(others):
            whole.update(f"\0{name}\0".encode("utf-8", "surrogatepass") + other)
        return whole.hexdigest()


def is_installed(path: str) -> bool:
    """Return whether a file is part of an installed package, or of Python."""
    return not _INSTALLED.isdisjoint(Path(path).parts)


def read_sources(path: Path) -> Sources:
    """Return a file and the modules beside it that it imports."""
    root = path.parent
    while (root / "__init__.py").is_file():
        root = root.parent
    top = Path(path.relative_to(root).parts[0]).stem if root.name in _INSTALLED else None
    release = _release_of(top, root) if top else ""
    if release:
        return Sources(root, {path.relative_to(root).as_posix(): path.read_bytes()}, release)
    sources: dict[str, bytes] = {}
    located: set[tuple[str, ...]] = set()
    waiting = [path]
    while waiting:
        file = waiting.pop()
        name = file.relative_to(root).as_posix()
        if name not in sources:
            sources[name] = file.read_bytes()
            imports = _imports(sources[name], file.parent.relative_to(root).parts)
            modules = {parts for parts in imports if top in (None, parts[0])} - located
            waiting += [beside for parts in sorted(modules) for beside in _files(root, parts)]
            located |= modules
    return Sources(root, sources)


@lru_cache(maxsize=64)
def _release_of(top: str, root: Path) -> str:
    """Return the names and versions of the distributions that put a module into a folder; none where nothing says so.

    It is read once: what was imported stays what it was, whatever is installed over it.
    """
    if root.name == _STDLIB and top in sys.stdlib_module_names:
        return f"python {platform.python_version()}"
    owned = re.compile(rf"^{re.escape(top)}[/.]", re.MULTILINE)
    owners = [owner for owner in distributions(path=[str(root)]) if owned.search(owner.read_text("RECORD") or "")]
    return ", ".join(sorted(f"{owner.name} {owner.version}" for owner in owners))


@lru_cache(maxsize=2048)
def _imports(content: bytes, package: tuple[str, ...]) -> frozenset[tuple[str, ...]]:
    """Return the modules that a file may import, with their packages, by the parts of their names."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return frozenset()  # no Python
    names = _named_modules(tree, package)
    return frozenset(parts[:length] for parts in names for length in range(1, len(parts) + 1))


def _named_modules(tree: ast.Module, package: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = (*package[: len(package) + 1 - node.level],) if node.level else ()
            base += tuple(node.module.split(".")) if node.module else ()
            yield from ((*base, alias.name) for alias in node.names)


def _files(root: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    """Yield the files that a module may be read from, as far as they are there."""
    place = root.joinpath(*parts)
    for file in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
        if file.is_file():
            yield file
