"""What the card of a model says of the languages it was made for."""

import importlib
import re
from pathlib import Path

_FRONT = re.compile(r"\A---\s*\n(.*?)\n---\s*(?:\n|\Z)", re.DOTALL)


def languages_of(folder: Path) -> frozenset[str] | None:
    """Return the codes in the front matter of the card; None where it names none, or only `multilingual`."""
    card = folder / "README.md"
    front = _FRONT.match(card.read_text("utf-8", errors="replace")) if card.is_file() else None
    if front is None:
        return None
    yaml = importlib.import_module("yaml")
    try:
        content = yaml.safe_load(front[1])
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    stated = content.get("language") if isinstance(content, dict) else None
    # YAML reads the code of Norwegian, `no`, as False.
    codes = ["no" if code is False else code for code in (stated if isinstance(stated, list) else [stated])]
    found = {code.lower().split("-")[0] for code in codes if isinstance(code, str)} - {"multilingual"}
    return frozenset(found) or None
