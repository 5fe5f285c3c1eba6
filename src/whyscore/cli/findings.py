"""What was found in input files, as data: one row per finding."""

import argparse
from collections.abc import Iterator, Mapping, Sequence

from whyscore.cli.output import format_of, to_json
from whyscore.data.tabular import Table, render
from whyscore.types import Finding

FORMATS = ("text", "json", "tsv", "csv", "markdown", "latex")
_COLUMNS = ("kind", "file", "line", "message")


def finding_lines(
    arguments: argparse.Namespace, about: Mapping[str, object], found: Sequence[Finding]
) -> Iterator[str]:
    """Yield the findings in a format other than text; JSON also says what they are about."""
    rows = [("error" if one.error else "note", one.file, one.line, one.message) for one in found]
    chosen = format_of(arguments)
    if chosen == "json":
        findings = [dict(zip(_COLUMNS, row, strict=True)) for row in rows]
        yield to_json({**about, "findings": findings})
    else:
        yield render(Table(_COLUMNS, tuple(rows)), chosen, safe=arguments.safe_csv)
