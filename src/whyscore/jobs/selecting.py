"""Parts of a data set."""

from collections.abc import Sequence
from dataclasses import replace

from whyscore.data.located import Located
from whyscore.errors import UnknownName
from whyscore.types import Dataset


def of_systems(dataset: Dataset, systems: Sequence[str]) -> Dataset:
    """Return the entries of these systems alone, system by system in this order; an unknown name is an error."""
    for name in systems:
        if name not in dataset.systems:
            raise UnknownName.among(f"system of {dataset.name}", name, dataset.systems)
    rows: dict[str, list[int]] = {name: [] for name in systems}
    for k, entry in enumerate(dataset.entries):
        if entry.system in rows:
            rows[entry.system].append(k)
    chosen = [k for own in rows.values() for k in own]
    entries = tuple(dataset.entries[k] for k in chosen)
    if not isinstance(dataset, Located) or dataset.origin is None:
        return replace(dataset, entries=entries)
    # Lines are aligned with the entries, also where only the order is another.
    origin = replace(dataset.origin, lines=[dataset.origin.lines[k] for k in chosen])
    return replace(dataset, entries=entries, origin=origin)
