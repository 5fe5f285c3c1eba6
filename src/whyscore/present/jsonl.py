"""A result as JSON lines: the header where there is one, then one object a line."""

from collections.abc import Iterator

from whyscore.present import Look
from whyscore.text.files import line, with_nulls
from whyscore.types.result import Result

SUFFIX = ".jsonl"


def lines(result: Result, look: Look) -> Iterator[str]:
    """Yield header and records."""
    del look
    header = result.header()
    if header:
        yield line(header)
    for record in result.records():
        yield line(with_nulls(record))
