"""A result as one JSON document, indented; undefined numbers are null."""

import json
from collections.abc import Iterator

from whyscore.present import Look
from whyscore.text.files import escape_controls, finite, with_nulls
from whyscore.types.result import Result

SUFFIX = ".json"


def lines(result: Result, look: Look) -> Iterator[str]:
    """Yield the document."""
    del look
    whole = result.document()
    if isinstance(whole, dict) and isinstance(whole.get("records"), list):
        whole = {**whole, "records": [with_nulls(record) for record in whole["records"]]}
    yield escape_controls(json.dumps(finite(whole), ensure_ascii=False, indent=2, allow_nan=False)) + "\n"
