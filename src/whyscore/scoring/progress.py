"""How far the work has come, told to whoever wants to show it."""

from typing import Protocol


class Progress(Protocol):
    """Hears of segments that are asked and answered."""

    def asked(self, count: int) -> None:
        """Hear that so many more segments will be scored."""

    def answered(self, count: int, *, stored: bool) -> None:
        """Hear that so many are done; `stored` ones were not scored now but known before."""


class Silent:
    """Shows nothing."""

    def asked(self, count: int) -> None:
        """Do nothing."""

    def answered(self, count: int, *, stored: bool) -> None:
        """Do nothing."""
