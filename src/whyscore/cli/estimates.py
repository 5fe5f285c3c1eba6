"""What a dry run says of time: how long the texts that are left would take, by a trial on some of them."""

import argparse
from collections.abc import Sequence

from whyscore.cli.output import tell
from whyscore.protocols import Metric
from whyscore.scoring.stack import rate
from whyscore.types import Segment

_UNITS = ((86_400, "days", 1), (3_600, "hours", 1), (60, "minutes", 0), (1, "seconds", 0))


def tell_time(arguments: argparse.Namespace, name: str, metric: Metric, segments: Sequence[Segment], left: int) -> None:
    """Say how long `left` texts would take one worker, if they are like these segments."""
    if not segments or not left or arguments.quiet:
        return
    speed = rate(metric, segments)
    tell(arguments, f"{name}: about {duration(left / speed)} for one worker, by a trial here ({speed:,.0f} texts/s)")


def duration(seconds: float) -> str:
    """Return a length of time as people say it.

    >>> duration(0.2), duration(95), duration(7300), duration(260_000)
    ('a second', '95 seconds', '2.0 hours', '3.0 days')
    """
    size, unit, digits = next(one for one in _UNITS if seconds >= 2 * one[0] or one[0] == 1)
    return f"{seconds / size:.{digits}f} {unit}" if round(seconds) > 1 else "a second"
