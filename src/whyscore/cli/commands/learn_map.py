"""`whyscore learn-map`: a map that brings the vectors of one language nearer to those of another."""

import argparse
from pathlib import Path

from whyscore.analysis.learn_map import learn_map
from whyscore.cli.options import Parser
from whyscore.cli.output import tell
from whyscore.data.files import read_lines
from whyscore.errors import DataError, UserError
from whyscore.models.maps import Link, read_links, write_map

EXAMPLES = """\
examples:
  whyscore learn-map -s src.txt -t tgt.txt -o map.npz
  whyscore learn-map -s src.txt -t tgt.txt --model ./my-mbert --layer 12 --alignments links.txt -o et-en.safetensors
  whyscore score -s src.txt -t sys.txt -m "xmoverscore(map='map.npz', remap='umd')"
"""

_ENDINGS = (".npz", ".safetensors")


def add_arguments(parser: Parser) -> None:
    """Add texts, encoder, links and where the map goes."""
    parser.add_argument("-s", "--source", metavar="FILE", required=True, help="texts, one a line")
    parser.add_argument("-t", "--target", metavar="FILE", required=True, help="their translations, one a line")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the map: a name in .npz or .safetensors")
    parser.add_argument(
        "--model", default="embedded", metavar="NAME", help="embedded (default), static, a folder or a hub name"
    )
    parser.add_argument("--layer", type=int, metavar="N", help="of the model; must be that of the metric")
    parser.add_argument("--alignments", metavar="FILE", help="known links between words, a line of 0-0 1-2 per pair")
    parser.add_argument(
        "--aligner", choices=("argmax", "ibm1"), default="argmax",
        help="how words are linked else: nearest neighbours (default), or IBM model 1",
    )  # fmt: skip
    parser.add_argument(
        "--pairs", type=int, default=2000, metavar="N", help="learn from the first N fit pairs (default: 2000)"
    )
    parser.add_argument("-l", "--lang-pair", metavar="ET-EN", help="languages of the texts, kept in the map")
    parser.add_argument("--encoding", default="utf-8", metavar="NAME", help="of the input files (default: utf-8)")
    parser.add_argument("-q", "--quiet", action="store_true", help="nothing on stderr but errors")


def run(arguments: argparse.Namespace) -> int:
    """Learn the map and write it."""
    if Path(arguments.output).suffix not in _ENDINGS:
        raise UserError(f"cannot write a map to {arguments.output!r}: end the name in {' or '.join(_ENDINGS)}")
    if arguments.pairs < 1:
        raise UserError(f"--pairs is {arguments.pairs}, expected 1 or more")
    sources, targets = (_texts(arguments, name) for name in (arguments.source, arguments.target))
    links = _links(arguments)
    try:
        learned = learn_map(
            sources,
            targets,
            model=arguments.model,
            layer=arguments.layer,
            alignments=links,
            aligner=arguments.aligner,
            limit=arguments.pairs,
            languages=_languages(arguments.lang_pair),
        )
    except DataError as error:
        if error.line is None or error.file is not None:
            raise
        raise DataError(error.message, file=arguments.alignments, line=error.line) from error
    write_map(learned, arguments.output)
    facts = " ".join(f"{name}:{value}" for name, value in {**learned.facts, "digest": learned.digest}.items())
    tell(arguments, f"{arguments.output}: {learned.width} x {learned.width}, {facts}")
    return 0


def _texts(arguments: argparse.Namespace, name: str) -> list[str]:
    return read_lines(name, expected="one text a line", encoding=arguments.encoding).texts


def _links(arguments: argparse.Namespace) -> list[tuple[Link, ...]] | None:
    if arguments.alignments is None:
        return None
    lines = read_lines(arguments.alignments, expected="links such as 0-0 1-2, a line per pair").texts
    return read_links(lines, file=arguments.alignments)


def _languages(pair: str | None) -> tuple[str, ...]:
    if pair is None:
        return ()
    source, _, target = pair.partition("-")
    if not source or not target:
        raise UserError(f"cannot read the language pair {pair!r}: write it like et-en")
    return source, target
