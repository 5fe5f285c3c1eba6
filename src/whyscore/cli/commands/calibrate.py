"""`whyscore calibrate`: learn from human judgements how to boost a metric, and say when it does not help.

A calibration as tables: its settings, and what it did under every protocol beside the controls.
"""

import argparse
from collections.abc import Iterator
from math import isfinite

from whyscore.analysis.calibrate.calibrate import RESAMPLES, calibrate
from whyscore.analysis.calibrate.file import Calibration, Outcome
from whyscore.analysis.calibrate.rules import RULES
from whyscore.analysis.explain import cost
from whyscore.cli.commands.boost import add_explaining, one_metric
from whyscore.cli.legacy import dataset, progress, resources
from whyscore.cli.options import Parser, add_inputs, add_metrics, add_output, add_running
from whyscore.cli.output import emit, tell, to_json
from whyscore.errors import UserError
from whyscore.present import render
from whyscore.stats.matrices import PERMUTES
from whyscore.types import Dataset
from whyscore.types.table import Cell, Table

_ORDER = ("oracle", "in-domain", "cross-domain")


def setting_table(found: Calibration) -> Table:
    """Return one row per setting: how much of the grid gains there, and what it would choose alone."""
    rows: list[tuple[Cell, ...]] = [
        (
            one.name,
            one.n,
            one.before,
            one.after,
            f"{one.improving}/{one.configurations}",
            one.improving_more,
            f"{one.best_gain:+.4f} (p {one.best_p:g}, w {one.best_w:g})",
            _choice(one.own_p, one.own_w),
            one.degenerate,
        )
        for one in found.settings
    ]
    head = (
        "setting",
        "n",
        "original",
        "fitted",
        "gain > 0",
        f"> {found.epsilon:g}",
        "best",
        "own choice",
        "degenerate",
    )
    return Table(head, tuple(rows))


def outcome_table(found: Calibration) -> Table:
    """Return one row per protocol, source and setting: correlation before and after, the gain and how sure it is."""
    ordered = sorted(found.outcomes, key=lambda one: (_ORDER.index(one.protocol), one.setting))
    rows: list[tuple[Cell, ...]] = [_row(one) for one in ordered]
    head = ("protocol", "setting", "source", "original", "boosted", "gain", "low", "high", "p", found.correction)
    notes = (
        "oracle: fitted and judged on the same data, always too good",
        "length, brevity, random: controls that know nothing",
    )
    return Table(head, tuple(rows), notes=notes)


def _row(one: Outcome) -> tuple[Cell, ...]:
    return (
        one.protocol, one.setting, one.source, one.before, one.after, one.gain,
        one.low, one.high, one.p_value, one.adjusted,
    )  # fmt: skip


def _choice(p: float, w: float) -> str:
    return f"p {p:g}, w {w:.3g}" if isfinite(p) and w < 1 else "not boosted"


EXAMPLES = """\
examples:
  whyscore calibrate data.jsonl --human HUMAN_score --group LP -m chrf -e erasure --level global \\
      --coefficient pearson --rule median -o chrf.calibration.json
  whyscore boost -r ref.txt -t sys.txt --calibration chrf.calibration.json
  whyscore calibrate wmt16.jsonl wmt17.jsonl --human da -m token_f1 -e "lime(samples=100)"
  whyscore calibrate data.jsonl --human da -m mee4 --weights
"""

_SAME = 1e-9
_FORMATS = ("text", "json", "tsv", "csv", "markdown", "latex")


def add_arguments(parser: Parser) -> None:
    """Add data, metric, explainer, what is asked of people, and how p and w are chosen."""
    add_metrics(parser)
    add_explaining(parser)
    add_judging(parser)
    group = parser.add_argument_group("choosing")
    group.add_argument("--rule", choices=RULES, help="how p and w are chosen (default: cautious)")
    group.add_argument(
        "--mode", choices=("default", "paper", "compat"), default="default", help="all choices of the paper or its code"
    )
    group.add_argument("--epsilon", type=float, metavar="G", help="gains up to this count as none (default: 0.001)")
    group.add_argument("--folds", type=int, default=10, metavar="N", help="for held-out gains (default: 10)")
    group.add_argument("--correction", choices=("holm", "bonferroni", "none"), default="holm", help="over settings")
    group.add_argument(
        "--permute", choices=PERMUTES, help="what a permutation swaps (default: cell; in compat row_xor_column)"
    )
    group.add_argument("--weights", action="store_true", help="fit the weights of mee2 or mee4 instead of boosting")
    add_inputs(parser)
    add_output(parser, _FORMATS)
    parser.set_defaults(formats=None)  # -o is the calibration, not the tables
    add_running(parser)


def add_judging(parser: Parser) -> None:
    """Add which human scores count, how agreement is measured, and what is tried."""
    group = parser.add_argument_group("judging")
    group.add_argument("--group", metavar="COLUMN", help="parts the data, e.g. the language pair")
    group.add_argument("--level", default="global", metavar="NAME", help="global (default), segment, system")
    group.add_argument(
        "--coefficient", "--coefficients", dest="coefficients", nargs="+", action="extend", metavar="NAME",
        help="pearson (default), spearman, kendall",
    )  # fmt: skip
    group.add_argument("-a", "--aggregator", default="power_mean", metavar="SPEC", help="the mean whose p is varied")
    group.add_argument("--grid", default=None, metavar="NAME", help="default, compat, coarse, or =START:STOP:STEP")
    group.add_argument(
        "--scale", choices=("raw", "z"), default="raw", help="z: bring the aggregate to the scores' scale"
    )
    group.add_argument(
        "--resamples",
        type=int,
        default=RESAMPLES,
        metavar="N",
        help=f"behind p-values; 0: none (default: {RESAMPLES:,})",
    )
    group.add_argument("--keep-gains", action="store_true", help="keep the whole grid in the calibration file")


def run(arguments: argparse.Namespace) -> int:
    """Calibrate, save the calibration, and report."""
    metric = one_metric(arguments)
    if metric is None:
        raise UserError("no metric: name one with -m, for example -m chrf")
    if not arguments.human:
        raise UserError("no human score: name its column with --human, for example --human da")
    data = datasets(arguments)
    if arguments.weights:
        return _fit_weights(arguments, data, metric)
    if arguments.dry_run:
        asked = [cost(one, metric, arguments.explainer or "erasure", resources=resources(arguments)) for one in data]
        total, distinct, stored = (sum(column) for column in zip(*asked, strict=True))
        emit(arguments, [f"{metric}: {total} texts, {distinct} distinct, {stored} already stored\n"])
        return 0
    with progress(arguments) as bar:
        found = calibrate(
            data,
            metric,
            arguments.explainer or "erasure",
            human=arguments.human,
            group=arguments.group,
            level=arguments.level,
            coefficient=arguments.coefficients or "pearson",
            rule=arguments.rule,
            mode=arguments.mode,
            epsilon=arguments.epsilon,
            grid=grid_of(arguments.grid),
            scale=arguments.scale,
            aggregator=arguments.aggregator,
            parts=arguments.parts,
            unit=arguments.unit,
            masker=arguments.masker,
            seed=arguments.seed,
            folds=arguments.folds,
            resamples=arguments.resamples,
            correction=arguments.correction,
            permute=arguments.permute,
            keep_gains=arguments.keep_gains,
            resources=resources(arguments, bar),
        )
    _finish(arguments, found)
    return 0


def datasets(arguments: argparse.Namespace) -> list[Dataset]:
    """Return the data sets that the arguments name; each file is one."""
    files = arguments.data or [None]
    if len(files) == 1:
        return [dataset(arguments)]
    return [dataset(argparse.Namespace(**{**vars(arguments), "data": [file]})) for file in files]


def grid_of(given: str | None) -> str | list[float] | None:
    """Return the name of a grid, or its values from START:STOP:STEP, both ends included.

    >>> grid_of("-1:1:0.5")
    [-1.0, -0.5, 0.0, 0.5, 1.0]
    """
    if given is None or ":" not in given:
        return given
    try:
        start, stop, step = map(float, given.split(":"))
    except ValueError:
        raise UserError(f"cannot read the grid {given!r}: write START:STOP:STEP, for example -30:30:0.5") from None
    if not step > 0 or stop < start:
        raise UserError(f"the grid {given!r} is empty: STEP must be above 0 and STOP not below START")
    count = int((stop - start) / step + 1e-9) + 1
    return [round(start + k * step, 10) for k in range(count)]


def _finish(arguments: argparse.Namespace, found: Calibration) -> None:
    """Save the calibration where that was asked for, and print what it is worth."""
    if arguments.output and arguments.output != "-":
        found.save(arguments.output)
        tell(arguments, f"calibration {found.digest} saved to {arguments.output}")
    chosen = arguments.format or "text"
    emit(argparse.Namespace(output=None), _report(arguments, found, chosen))
    if chosen != "text":
        for line in _words(found):
            tell(arguments, line)
    tell(arguments, f"signature: {found.metric_signature}")


def _report(arguments: argparse.Namespace, found: Calibration, chosen: str) -> Iterator[str]:
    if chosen == "json":
        yield to_json(found.record())
        return
    decimals = (
        arguments.width if arguments.width is not None else (4 if chosen in ("text", "markdown", "latex") else None)
    )
    if chosen == "text":
        yield render(setting_table(found), chosen, decimals=decimals) + "\n"
    yield render(outcome_table(found), chosen, decimals=decimals, safe=arguments.safe_csv)
    if chosen == "text":
        yield "\n" + "".join(f"{line}\n" for line in _words(found))


def _words(found: Calibration) -> Iterator[str]:
    """Yield the result in plain sentences."""
    shrunk = "" if found.shrinkage is None else f", {found.shrinkage:.2f} of the way kept"
    if found.boosted:
        near = f" (nearest on the grid: {found.nearest:g})" if abs(found.nearest - found.p) > _SAME else ""
        mixture = f"{found.aggregator}{near}, w = {found.w:.4g}{shrunk}"
        yield f"{found.rule}: {mixture}; degenerate share {found.degenerate:.2f}"
    else:
        yield f"{found.rule}: not boosted, w = 1{shrunk}"
    for note in found.notes:
        yield f"note: {note}"
    yield found.verdict


def _fit_weights(arguments: argparse.Namespace, data: list[Dataset], metric: str) -> int:
    """Fit the weights of a metric that is a weighted sum of parts."""
    from whyscore.analysis.calibrate.weights import fit_weights  # noqa: PLC0415 - its metrics load vectors

    if len(data) > 1 or len(arguments.human) > 1:
        raise UserError("--weights takes one data set and one human score")
    with progress(arguments) as bar:
        found = fit_weights(
            data[0],
            metric,
            human=arguments.human[0],
            coefficient=(arguments.coefficients or ["pearson"])[0],
            level=arguments.level,
            group=arguments.group,
            folds=arguments.folds,
            seed=arguments.seed,
            resources=resources(arguments, bar),
        )
    rows = list(found.rows())
    table = Table(tuple(rows[0]), tuple(tuple(row.values()) for row in rows))
    emit(arguments, [render(table, arguments.format or "text", decimals=arguments.width)])
    tell(arguments, f"signature: {found.signature}")
    return 0
