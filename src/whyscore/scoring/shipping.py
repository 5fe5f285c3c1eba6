"""Files that a spec names, on their way to workers on other machines."""

import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from whyscore.registry.specs import Spec, Value, parse


class Shipment(NamedTuple):
    """A spec as the workers read it, and the folder that goes with it; None where no file is named."""

    spec: str
    folder: Path | None


def ship(spec: str) -> Shipment:
    """Return the spec with every `path/file.py:function` replaced by where the file stands on the workers.

    >>> ship("chrf").folder is None
    True
    """
    files: dict[str, str] = {}
    moved = _moved(parse(spec), files)
    if not files:
        return Shipment(spec, None)
    folder = Path(tempfile.mkdtemp(prefix="whyscore-"))
    for path, name in files.items():
        shutil.copyfile(path, folder / name)
    return Shipment(str(moved), folder)


def _moved(value: Value, files: dict[str, str]) -> Value:
    if isinstance(value, Spec):
        positional = tuple(_moved(item, files) for item in value.positional)
        return Spec(value.name, positional, tuple((name, _moved(item, files)) for name, item in value.named))
    if isinstance(value, tuple):
        return tuple(_moved(item, files) for item in value)
    if not isinstance(value, str):
        return value
    place, _, name = value.rpartition(":")
    if not place.endswith(".py") or not Path(place).is_file():
        return value
    moved = files.setdefault(str(Path(place).resolve()), f"shipped_{len(files)}.py")
    return f"{moved}:{name}"
