"""A data set that remembers the file and line of every text, so that findings can point at them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from whyscore.types import Dataset, Place, Side


@dataclass(frozen=True, slots=True)
class Origin:
    """Which file each text came from, and the line of each entry in it.

    Line-aligned files hold a line per segment; there the source and the references stand in files of their own, once
    for all systems. A table is one file, and every row repeats them.
    """

    hypotheses: Mapping[str, str]
    """The file of each system."""
    lines: Sequence[int]
    """The line of each entry, aligned with the entries."""
    source: str | None = None
    references: tuple[str, ...] = ()

    @classmethod
    def table(cls, file: str, systems: Sequence[str], lines: Sequence[int]) -> "Origin":
        """Return the origin of entries that all stand in one file."""
        return cls(dict.fromkeys(systems, file), lines, file, (file,))

    @property
    def repeats(self) -> bool:
        """Whether source and references are written down again for every system."""
        return self.source in self.hypotheses.values()

    def file(self, place: Place, system: str) -> str | None:
        """Return the file that holds the text at a place."""
        if place.side is Side.HYPOTHESIS:
            return self.hypotheses.get(system)
        if place.side is Side.SOURCE:
            return self.source
        return self.references[min(place.reference or 0, len(self.references) - 1)] if self.references else None


@dataclass(frozen=True, repr=False)
class Located(Dataset):
    """A data set with its origin; the origin is dropped where the entries no longer fit it."""

    origin: Origin | None = field(default=None, compare=False, repr=False)
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False, repr=False)
    """The columns of a table by the role they play; `ignored` are the others."""

    def __post_init__(self) -> None:
        if self.origin is not None and len(self.origin.lines) != len(self.entries):
            object.__setattr__(self, "origin", None)

    def of(self, system: str) -> "Located":
        """Return the entries of one system, with their lines."""
        chosen = [k for k, entry in enumerate(self.entries) if entry.system == system]
        origin = self.origin and replace(self.origin, lines=[self.origin.lines[k] for k in chosen])
        return replace(self, entries=tuple(self.entries[k] for k in chosen), origin=origin)


def first_line_of(dataset: Dataset) -> int | None:
    """Return the line of the first segment, where every next one is on the next line in the files of all systems."""
    if not isinstance(dataset, Located) or dataset.origin is None or not dataset.entries:
        return None
    first, place = dataset.origin.lines[0], {name: k for k, name in enumerate(dataset.ids)}
    rows = zip(dataset.entries, dataset.origin.lines, strict=True)
    return first if all(line == first + place[entry.id] for entry, line in rows) else None


def describe_columns(dataset: Dataset) -> str:
    """Return which columns of a table are used as what and which are ignored; nothing for other data."""
    columns = dataset.columns if isinstance(dataset, Located) else {}
    used = [f"{role} = {', '.join(map(repr, names))}" for role, names in columns.items()]
    return "; ".join(used).replace("ignored = ", "ignored: ")
