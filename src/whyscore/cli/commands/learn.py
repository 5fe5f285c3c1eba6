"""`whyscore learn-lexicon` and `learn-map`: what `evidence` and `xmoverscore` use, learnt from parallel text."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from whyscore.analysis.learn_map import LearnMapSettings, learn_map
from whyscore.cli.options import OutputSettings, ParallelSettings
from whyscore.cli.output import tell
from whyscore.cli.setup import language_pair
from whyscore.data.files import read_lines
from whyscore.errors import DataError, UserError
from whyscore.models.lexicon import learn_lexicon, write_lexicon
from whyscore.models.maps import Link, read_links, write_map
from whyscore.settings import REQUIRED, again, option

LEXICON_EXAMPLES = """\
examples:
  whyscore learn-lexicon -s train.de -t train.en -o de-en.npz
  whyscore learn-lexicon -s train.de -t train.en -o de-en.tsv
  whyscore explain -s src.txt -t sys.txt -m xbertscore -e "evidence(lexicon='de-en.npz')"
"""


@dataclass(frozen=True, kw_only=True)
class LearnLexiconCommand(ParallelSettings):
    """What `whyscore learn-lexicon` takes."""

    output: str = again(
        OutputSettings, "output", REQUIRED, help="the lexicon: arrays in .npz, tab-separated text in every other name"
    )


def run_lexicon(settings: LearnLexiconCommand) -> int:
    """Learn the lexicon and write it."""
    sources, targets = _texts(settings)
    lexicon = learn_lexicon(sources, targets)
    write_lexicon(lexicon, settings.output)
    tell(settings, f"{settings.output}: {len(lexicon.pairs)} pairs of words, digest {lexicon.digest}")
    return 0


MAP_EXAMPLES = """\
examples:
  whyscore learn-map -s src.txt -t tgt.txt -o map.npz
  whyscore learn-map -s src.txt -t tgt.txt --model ./my-mbert --layer 12 --alignments links.txt -o et-en.safetensors
  whyscore score -s src.txt -t sys.txt -m "xmoverscore(map='map.npz', remap='umd')"
"""

_ENDINGS = (".npz", ".safetensors")


@dataclass(frozen=True, kw_only=True)
class LearnMapCommand(ParallelSettings, LearnMapSettings):
    """What `whyscore learn-map` takes."""

    output: str = again(OutputSettings, "output", REQUIRED, help="the map: a name in .npz or .safetensors")
    alignments: str | None = option(
        None, "known links between words, a line of 0-0 1-2 per pair", metavar="FILE", basic=True
    )
    lang_pair: str | None = option(
        None, "languages of the texts, kept in the map", flags=("-l", "--lang-pair"), metavar="ET-EN", basic=True
    )


def run_map(settings: LearnMapCommand) -> int:
    """Learn the map and write it."""
    if Path(settings.output).suffix not in _ENDINGS:
        raise UserError(f"cannot write a map to {settings.output!r}: end the name in {' or '.join(_ENDINGS)}")
    sources, targets = _texts(settings)
    languages = language_pair(settings.lang_pair) or ()
    try:
        learned = learn_map(sources, targets, alignments=_links(settings), languages=languages, settings=settings)
    except DataError as error:
        if error.line is None or error.file is not None:
            raise
        raise DataError(error.message, file=settings.alignments, line=error.line) from error
    write_map(learned, settings.output)
    facts = " ".join(f"{name}:{value}" for name, value in {**learned.facts, "digest": learned.digest}.items())
    tell(settings, f"{settings.output}: {learned.width} x {learned.width}, {facts}")
    links = int(learned.facts["links"])
    if links < learned.width:
        tell(
            settings,
            f"warning: {links} linked words do not determine a projection of {learned.width} dimensions: learn from "
            "more text, or use the map with remap='umd'",
        )
    return 0


def _links(settings: LearnMapCommand) -> list[tuple[Link, ...]] | None:
    if settings.alignments is None:
        return None
    lines = read_lines(settings.alignments, expected="links such as 0-0 1-2, a line per pair").texts
    return read_links(lines, file=settings.alignments)


def _texts(settings: ParallelSettings) -> list[Sequence[str]]:
    """Return the source texts and the target texts."""
    files = (settings.source, settings.target)
    return [read_lines(name, expected="one text per line", encoding=settings.encoding).texts for name in files]


VERBS = {
    "learn-lexicon": (LEXICON_EXAMPLES, LearnLexiconCommand, run_lexicon),
    "learn-map": (MAP_EXAMPLES, LearnMapCommand, run_map),
}
