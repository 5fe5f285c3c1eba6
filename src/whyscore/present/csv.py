"""Tables for programs, separated by commas."""

from collections.abc import Iterator

from whyscore.present import Look
from whyscore.present.tsv import delimited_lines
from whyscore.types.result import Result

SUFFIX = ".csv"


def lines(result: Result, look: Look) -> Iterator[str]:
    """Yield the tables for programs."""
    return delimited_lines(result, look, ",")
