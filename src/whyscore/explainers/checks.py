"""Checks that several explainers make of their options."""

from whyscore.errors import SpecError
from whyscore.protocols import Masker


def check_least(owner: str, name: str, value: float, least: float) -> None:
    """Refuse a number below its least sensible value."""
    if value < least:
        raise SpecError(f"{owner}: {name} is {value!r}, expected {least!r} or more")


def check_masker(owner: str, masker: object) -> None:
    """Refuse what cannot hide words, such as the name of a masker where the masker itself is meant."""
    if not isinstance(masker, Masker):
        raise SpecError(
            f"{owner}: masker is {masker!r}, expected a masker: give whyscore.text.maskers.Delete() or "
            'build("delete", kind="masker")'
        )


def check_seed(owner: str, seed: int | None, mode: str) -> None:
    """Refuse a seed where it would not be read, and one that NumPy's old generator does not take."""
    if seed is None:
        return
    if mode != "compat":
        raise SpecError(
            f"{owner}: seed is {seed!r}, but only mode='compat' reads it; otherwise set the seed of the run"
        )
    if not 0 <= seed < 2**32:
        raise SpecError(f"{owner}: seed is {seed!r}, expected 0 to 4294967295, what numpy.random.RandomState takes")
