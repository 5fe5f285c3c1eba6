"""A result as one JSON document, indented; undefined numbers are null."""

import json
from collections.abc import Iterator

from whyscore.present import Look
from whyscore.text.strict import finite
from whyscore.types.result import Result

SUFFIX = ".json"


def lines(result: Result, look: Look) -> Iterator[str]:
    """Yield the document."""
    del look
    yield json.dumps(finite(result.document()), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
