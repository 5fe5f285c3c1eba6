"""Words that many messages share."""

from collections.abc import Sequence

FEW = 5


def few(values: Sequence[object], limit: int = FEW) -> str:
    """Return the first few values and how many more there are.

    >>> few([3, 4, 9], limit=2)
    '3, 4 and 1 more'
    """
    listed = ", ".join(str(value) for value in values[:limit])
    return f"{listed} and {len(values) - limit} more" if len(values) > limit else listed


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "line"), counted(3, "line")
    ('1 line', '3 lines')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
