"""Small runs that the tests of this folder share."""

from support.small_runs import files, run, small

__all__ = ["files", "run", "small"]
