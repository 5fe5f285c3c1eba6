"""The signature of a metric that asks a neural model: its spec, then the model's facts."""

from collections.abc import Sequence
from pathlib import Path

from whyscore.models.checkpoints import Home, Precision, revision
from whyscore.models.licences import licence_of
from whyscore.registry import spec_of
from whyscore.types import Signature
from whyscore.version import __version__


def signed(
    metric: object, home: Home, files: Sequence[Path], *, precision: Precision, limit: int, **facts: str
) -> Signature:
    """Return the spec of a metric with the model's revision, precision, limit and licence.

    `trunc` is the number of pieces after which inputs are cut; `facts` stand between it and the licence.
    """
    known = {"rev": revision(home, files), "prec": precision, "trunc": str(limit), **facts}
    ending = {"licence": licence_of(home.name, home.folder), "version": __version__}
    return Signature(spec_of(metric), tuple((known | ending).items()))
