"""Names of systems, from the files that hold their hypotheses; and phrases that many messages share.

1. The file's stem: `out/sysA.txt.gz` is `sysA`.
2. Where stems are equal, the shortest tail of the path that no other file shares: `a/out` and `b/out`.
3. Where only the suffix tells files apart, the tail keeps it.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePath

from whyscore.data.files import STDIN
from whyscore.errors import DataError

PACKED = (".gz", ".zst")


def plain_name(path: str | Path) -> PurePath:
    """Return the path without the suffix of its packing.

    >>> plain_name("data.tsv.gz").name
    'data.tsv'
    """
    pure = PurePath(path)
    return pure.with_suffix("") if pure.suffix.lower() in PACKED else pure


def system_names(paths: Sequence[str | Path], chosen: Sequence[str] | None = None) -> list[str]:
    """Return one name per file: the given ones, or the shortest that tell the files apart.

    >>> system_names(["a/out.txt", "b/out.txt", "c.txt"])
    ['a/out', 'b/out', 'c']
    """
    if chosen is not None and len(chosen) != len(paths):
        raise DataError(f"{len(chosen)} system names for {len(paths)} hypothesis files: give one name per file")
    names = _from_paths([str(path) for path in paths]) if chosen is None else list(chosen)
    refuse_twice(names)
    return names


def refuse_twice(names: Sequence[str]) -> None:
    """Raise the error for the first name that two systems have."""
    name, count = Counter(names).most_common(1)[0] if names else ("", 0)
    if count > 1:
        raise DataError(f"{count} systems are named {name!r}: give each its own name with --systems")


def number_repeats(names: Sequence[str]) -> list[str]:
    """Return ids of which each is there once: those that come again get a number behind.

    >>> number_repeats(["7", "7", "7#2"])
    ['7', '7#3', '7#2']
    """
    taken, seen = set(names), set[str]()
    ids = []
    for base in names:
        name, count = base, 1
        while name in seen or (count > 1 and name in taken):
            count += 1
            name = f"{base}#{count}"
        seen.add(name)
        ids.append(name)
    return ids


def _from_paths(paths: list[str]) -> list[str]:
    plain = [plain_name(path) for path in paths]
    stems = [
        ("stdin",) if path == STDIN else (*pure.parts[:-1], pure.stem) for path, pure in zip(paths, plain, strict=True)
    ]
    if len(set(stems)) < len(stems):
        stems = [
            (*stem[:-1], pure.name) if stems.count(stem) > 1 else stem for stem, pure in zip(stems, plain, strict=True)
        ]
    return ["/".join(_tail(stem, stems)) for stem in stems]


def _tail(parts: tuple[str, ...], among: list[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the shortest tail that no other of the paths has; the whole path where there is none."""
    for size in range(1, len(parts)):
        tail = parts[-size:]
        if sum(other[-size:] == tail for other in among) == 1:
            return tail
    return parts


FEW = 5


def few(values: Sequence[object], limit: int = FEW) -> str:
    """Return the first few values and how many more there are.

    >>> few([3, 4, 9], limit=2)
    '3, 4 and 1 more'
    """
    listed = ", ".join(str(value) for value in values[:limit])
    return f"{listed} and {len(values) - limit} more" if len(values) > limit else listed


def with_noun(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> with_noun(1, "line"), with_noun(3, "line")
    ('1 line', '3 lines')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
