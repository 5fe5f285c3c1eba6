"""What an experiment of `whyscore experiment NAME` is made of: a module of this package offers a table of them.

    EXPERIMENTS = {"bmx-grid": Experiment("what it shows", add_arguments, run)}

and is named in `whyscore.cli.experiment.MODULES`.
"""

import argparse
from collections.abc import Callable
from typing import NamedTuple


class Experiment(NamedTuple):
    """One experiment: a line of help, its options, and the work, which returns the exit code."""

    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    examples: str = ""
    """Commands to paste, shown by `-h`."""
