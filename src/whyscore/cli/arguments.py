"""Options that several verbs share, with the spellings of sacreBLEU, COMET and BERTScore as aliases."""

import argparse

from whyscore.cli.parsing import natural, positive

FORMATS = ("text", "json", "jsonl", "tsv", "csv", "markdown", "latex")


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add where segments come from."""
    group = parser.add_argument_group("input")
    group.add_argument(
        "data",
        nargs="*",
        default=[],
        metavar="FILE",
        help="a data file: .jsonl, .tsv, .csv, .xlf, .tmx, or a folder (instead of -t)",
    )
    group.add_argument("-s", "--source", "--src", "--sources", metavar="FILE", help="source, one segment a line")
    group.add_argument(
        "-t",
        "--hypotheses",
        "--translations",
        "--mt",
        "--hyp",
        "--cand",
        "-i",
        "--input",
        dest="hypotheses",
        nargs="+",
        action="extend",
        metavar="FILE",
        help="hypotheses of one or more systems",
    )
    group.add_argument(
        "-r", "--references", "--ref", "--refs", dest="references", nargs="+", action="extend", metavar="FILE",
        help="one or more sets of references",
    )  # fmt: skip
    group.add_argument("--text", action="store_true", help="-s, -t and -r are the texts themselves, not files")
    group.add_argument("--sample", action="store_true", help="the real data that ships with whyscore")
    group.add_argument(
        "--systems", nargs="+", action="extend", metavar="NAME",
        help="names of the systems in -t; of a data file or --sample, only these systems",
    )  # fmt: skip
    group.add_argument("-l", "--lang-pair", "--language-pair", "--lp", metavar="DE-EN", help="languages of the texts")
    group.add_argument(
        "--columns", nargs="+", action="extend", metavar="ROLE=NAME", help="columns of a table: hypothesis=mt"
    )
    group.add_argument("--no-header", action="store_true", help="the table has no header; --columns gives numbers")
    group.add_argument("--encoding", default="utf-8", metavar="NAME", help="of the input files (default: utf-8)")
    group.add_argument("--human", nargs="+", action="extend", metavar="COLUMN", help="columns with human scores")
    group.add_argument(
        "--input-format",
        choices=("tsv", "csv", "jsonl", "txt", "xliff", "tmx"),
        help="where the suffix does not say it",
    )
    group.add_argument(
        "--inline", choices=("drop", "placeholder"), default="drop", help="what inline codes of XLIFF and TMX become"
    )
    group.add_argument("--alt-trans", action="store_true", help="alternative translations of XLIFF 1.2 are references")
    group.add_argument("--quoting", choices=("auto", "csv", "raw"), default="auto", help="of a TSV (default: auto)")
    group.add_argument("--max-line", type=positive, metavar="N", help="characters a line may have (default: 1,000,000)")
    group.add_argument("--max-file", type=positive, metavar="N", help="bytes a file may have (default: 2,000,000,000)")
    group.add_argument("--max-ratio", type=positive, metavar="N", help="bytes a packed byte may become (default: 200)")
    group.add_argument("--strict", action="store_true", help="treat findings about the input as errors")


def add_metrics(parser: argparse.ArgumentParser) -> None:
    """Add which metrics are asked."""
    parser.add_argument(
        "-m", "--metrics", "--metric", dest="metrics", nargs="+", action="extend", metavar="SPEC",
        help="chrf, 'bleu(tokenize=\"char\")', my_metric.py:score; see: whyscore list metrics",
    )  # fmt: skip
    parser.add_argument("--device", metavar="NAME", help="where networks run: auto (default), cpu, cuda, cuda:1, mps")
    parser.add_argument("--precision", choices=("fp32", "bf16", "fp16"), help="of networks (default: fp32)")


def add_cut_gate(parser: argparse.ArgumentParser) -> None:
    """Add that texts must be read whole."""
    _gates(parser).add_argument(
        "--fail-if-truncated", action="store_true", help="a model must not cut any text (some models are asked twice)"
    )


def _gates(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    title = "quality gates (exit code 5 where one is not passed)"
    there = [group for group in parser._action_groups if group.title == title]  # noqa: SLF001 - argparse cannot be asked
    return there[0] if there else parser.add_argument_group(title)


def add_gates(parser: argparse.ArgumentParser) -> None:
    """Add what a pipeline refuses to ship."""
    gates = _gates(parser)
    gates.add_argument(
        "--fail-under", nargs="+", action="extend", metavar="METRIC=N", help="every system must reach this"
    )
    gates.add_argument(
        "--fail-if-worse", nargs="?", const="", metavar="SYSTEM",
        help="no other system may be worse than this, beyond chance (default: the first system)",
    )  # fmt: skip


def add_output(parser: argparse.ArgumentParser, formats: tuple[str, ...] = FORMATS) -> None:
    """Add how results come out."""
    group = parser.add_argument_group("output")
    group.add_argument("-f", "--format", choices=formats, help="default: text, or what the suffix of -o says")
    group.add_argument("-o", "--output", metavar="FILE", help="write to this file instead of stdout")
    group.add_argument("-w", "--width", type=natural, metavar="N", help="decimals in tables")
    group.add_argument("-q", "--quiet", action="store_true", help="no findings, signatures or progress on stderr")
    group.add_argument("-v", "--verbose", action="store_true", help="all findings on stderr")
    group.add_argument("--safe-csv", action="store_true", help="guard cells that a spreadsheet would run as formulas")
    parser.set_defaults(formats=formats)


def add_running(parser: argparse.ArgumentParser) -> None:
    """Add how the work is done; none of it changes a number but the seed."""
    group = parser.add_argument_group("running")
    group.add_argument("--seed", type=natural, default=0, help="fixes all random numbers (default: 0)")
    group.add_argument("--store", metavar="PATH", help="where scores are kept, or none (default: your cache folder)")
    group.add_argument(
        "--executor", metavar="SPEC", help="where metrics run: serial (default), processes, ray, 'ray(gpus=1, cores=4)'"
    )
    group.add_argument(
        "--jobs", type=natural, default=0, metavar="N", help="processes or workers (default: one per core)"
    )
    group.add_argument(
        "--ray-address", metavar="HOST:PORT", help="a running Ray cluster, or auto (default: start one here)"
    )
    group.add_argument("--dry-run", action="store_true", help="say how many texts would be scored, and stop")
