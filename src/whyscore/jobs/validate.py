"""The checks that run before any work, alone: what `whyscore validate` says, in Python."""

from whyscore.errors import DataError
from whyscore.io.validation import findings
from whyscore.types import Dataset, Finding


def validate(dataset: Dataset, *, strict: bool = False) -> tuple[Finding, ...]:
    """Return what looks wrong in a data set; raise `DataError` where it cannot be used.

    Args:
        dataset: what `read` or `from_texts` returned.
        strict: refuse it for any finding.
    """
    found = findings(dataset)
    errors = [finding for finding in found if finding.error or strict]
    if errors:
        raise DataError(f"{errors[0]}" + (f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""))
    return found
