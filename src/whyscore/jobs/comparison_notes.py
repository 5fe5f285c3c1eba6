"""What a reader of a comparison should know before believing it."""

from itertools import combinations

from whyscore.data.naming import few
from whyscore.jobs.comparison import MetricComparison


def smallness(n: int, blocks: int | None, test: str, alpha: float) -> list[str]:
    """Return a note where no result could be significant, however large the difference."""
    units = blocks or n
    unit = "documents" if blocks else "segments"
    if test == "permutation" and 2 / 2**units > alpha:
        return [f"{units} {unit} are too few: the smallest p they can give is {2 / 2**units:g}"]
    return []


def remarks(one: MetricComparison) -> list[str]:
    """Return what the segments are too few for, and where winning segments and scores disagree."""
    open_pairs = [pair for pair in one.pairs if pair.better is None and pair.detectable]
    notes = []
    if open_pairs:
        sizes = [pair.detectable for pair in open_pairs if pair.detectable]
        reach = f"{min(sizes):.3g}" if len(sizes) == 1 else f"{min(sizes):.3g} to {max(sizes):.3g}"
        notes.append(
            f"{one.metric}: {open_pairs[0].n} segments are too few to tell {len(open_pairs)} of {len(one.pairs)} pairs "
            f"apart; the smallest differences they can show are {reach}"
        )
    order = one.clusters.names
    turned = [(a, b) for a, b in combinations(order, 2) if one.strengths[a] < one.strengths[b]]
    if turned:
        shown = few([f"{b} before {a}" for a, b in turned])
        notes.append(f"{one.metric}: counting won segments (Bradley-Terry), the order is another: {shown}")
    return notes
