"""`whyscore learn-lexicon`: translation probabilities of words from parallel text, for `evidence`."""

from dataclasses import dataclass

from whyscore.cli.options import ParallelSettings
from whyscore.cli.output import tell
from whyscore.data.files import read_lines
from whyscore.models.lexicon import learn_lexicon, write_lexicon
from whyscore.settings import REQUIRED, option

EXAMPLES = """\
examples:
  whyscore learn-lexicon -s train.de -t train.en -o de-en.npz
  whyscore learn-lexicon -s train.de -t train.en -o de-en.tsv
  whyscore explain -s src.txt -t sys.txt -m xbertscore -e "evidence(lexicon='de-en.npz')"
"""


@dataclass(frozen=True, kw_only=True)
class LearnLexiconCommand(ParallelSettings):
    """What `whyscore learn-lexicon` takes."""

    output: str = option(
        REQUIRED,
        "the lexicon: arrays in .npz, tab-separated text in every other name",
        flags=("-o", "--output"),
        metavar="FILE",
        basic=True,
    )


SETTINGS = LearnLexiconCommand


def run(settings: LearnLexiconCommand) -> int:
    """Learn the lexicon and write it."""
    sources, targets = (
        read_lines(name, expected="one text a line", encoding=settings.encoding).texts
        for name in (settings.source, settings.target)
    )
    lexicon = learn_lexicon(sources, targets)
    write_lexicon(lexicon, settings.output)
    tell(settings, f"{settings.output}: {len(lexicon.pairs)} pairs of words, digest {lexicon.digest}")
    return 0
