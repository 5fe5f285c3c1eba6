"""`--until-stable`: raise the budget of sampled explainers until they repeat themselves."""

import argparse

from whyscore.analysis.metaeval.stability import until_stable
from whyscore.cli.output import tell
from whyscore.registry import spec_of
from whyscore.types import Dataset


def add_until_stable(parser: argparse.ArgumentParser) -> None:
    """Add the agreement that is wanted of two halves of the probes."""
    parser.add_argument("--until-stable", type=float, metavar="R", help="raise budgets until halves agree by R")


def raised(
    arguments: argparse.Namespace, data: Dataset, metric: str, explainer: str, options: dict[str, object]
) -> str:
    """Return the explainer with a budget at which it is stable, and say which; itself where nobody asked."""
    if arguments.until_stable is None:
        return explainer
    found = until_stable(data, metric, explainer, mark=arguments.until_stable, **options)  # type: ignore[arg-type]
    spec = spec_of(found.explainer)
    state = "stable" if found.reached else "not stable"
    tell(arguments, f"note: {spec} is {state}: two halves agree by {found.spearman:.3f} after {found.rounds} round(s)")
    return spec
