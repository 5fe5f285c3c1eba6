"""A Python file with the modules beside it that it imports: what decides the numbers of a function in it.

1. Every `import` in the file, wherever it stands, names modules. Those that are files of the same folder, or of the
   same package, are read in turn.
2. What is installed is known by its version: of a module there, its own package counts alone.
"""

import ast
import hashlib
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_INSTALLED = {"site-packages", "dist-packages", Path(sysconfig.get_paths()["stdlib"]).name}
"""What folders of installed packages are called."""


class Sources(NamedTuple):
    """The contents of files, by their names in a folder; the first is the file that was asked for."""

    root: Path
    contents: dict[str, bytes]

    @property
    def beside(self) -> dict[Path, bytes]:
        """The files that the first one imports."""
        return {self.root / name: content for name, content in list(self.contents.items())[1:]}

    @property
    def digest(self) -> str:
        """What the files hold; how the first one is called does not matter."""
        (_, content), *others = self.contents.items()
        whole = hashlib.blake2b(content, digest_size=6)
        for name, other in sorted(others):
            whole.update(f"\0{name}\0".encode("utf-8", "surrogatepass") + other)
        return whole.hexdigest()


def read_sources(path: Path) -> Sources:
    """Return a file and the modules beside it that it imports."""
    root = path.parent
    while (root / "__init__.py").is_file():
        root = root.parent
    top = Path(path.relative_to(root).parts[0]).stem if root.name in _INSTALLED else None
    sources: dict[str, bytes] = {}
    waiting = [path]
    while waiting:
        file = waiting.pop()
        name = file.relative_to(root).as_posix()
        if name not in sources:
            sources[name] = file.read_bytes()
            modules = _imports(sources[name], file.parent.relative_to(root).parts)
            waiting += [beside for parts in modules if top in (None, parts[0]) for beside in _files(root, parts)]
    return Sources(root, sources)


def _imports(content: bytes, package: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the modules that a file may import, as the parts of their names; none of one that is no Python."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = (*package[: len(package) + 1 - node.level],) if node.level else ()
            base += tuple(node.module.split(".")) if node.module else ()
            yield from ((*base, alias.name) for alias in node.names)


def _files(root: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    """Yield the files of a module and of the packages that it is in, as far as they are there."""
    place = root
    for part in parts:
        place /= part
        for file in (place.with_name(f"{part}.py"), place / "__init__.py"):
            if file.is_file():
                yield file
