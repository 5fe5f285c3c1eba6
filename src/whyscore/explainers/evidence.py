"""Word scores without labels and without a metric call: how little speaks against each word.

1. Gather what speaks against each word, from the source and the hypothesis alone: phrases without a match in the other
   text, improbable translations, rare words, numbers and punctuation that the other text does not hold
   (`whyscore.models.evidence`).
2. Importance = minus the sum: high where nothing speaks against a word. Both sides can be asked about; low words of the
   source are those that the translation hardly carries.

The metric beside it is not asked: the numbers are about the texts. Without a lexicon the translation probabilities are
left out; languages that the built-in encoder was not made for do without phrase matches; a warning says so.
"""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

from whyscore.errors import SpecError
from whyscore.models.encoders.loading import CoverageNotice
from whyscore.models.evidence import Setting, covers, gather_terms, strongest_terms, sum_terms
from whyscore.models.lexicon import read_lexicon
from whyscore.models.surprisal import FrequencyNotice, frequency_problem
from whyscore.settings import check_fields, names_file
from whyscore.types import Place, Segment, Side, Words, WordScores

_PAIR = re.compile(r"[A-Za-z]{2,3}(?:_[A-Za-z]+)?-[A-Za-z]{2,3}(?:_[A-Za-z]+)?")


@dataclass(frozen=True, slots=True)
class WordEvidence:
    """Explains source and hypothesis by matches, translation probabilities and surprisal; needs no labels.

    Args:
        lexicon: file with translation probabilities, from `whyscore learn-lexicon`.
        languages: of source and hypothesis, like `de-en`; by default those of the data.
    """

    lexicon: str | None = names_file(None)
    languages: str | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.languages is not None and not _PAIR.fullmatch(self.languages):
            raise SpecError(f"evidence: languages is {self.languages!r}, expected two codes like 'de-en'")

    def for_languages(self, source: str, target: str) -> Self:
        return replace(self, languages=f"{source}-{target}") if self.languages is None else self

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        if place.side is Side.REFERENCE:
            raise SpecError(f"evidence explains the hypothesis and the source; asked for the {place}")
        if any(segment.source is None for segment in segments):
            raise SpecError("evidence compares the hypothesis with the source, which is missing: add it with -s FILE")
        setting = self._setting()
        _warn_omissions(segments, setting)
        all_terms = gather_terms(segments, place.side, words, setting)
        return [WordScores(-sum_terms(terms), strongest_terms(terms)) for terms in all_terms]

    def _setting(self) -> Setting:
        source, _, target = (self.languages or "").partition("-")
        languages = (source, target) if self.languages else None
        return Setting(None if self.lexicon is None else read_lexicon(self.lexicon), languages)


def _warn_omissions(segments: Sequence[Segment], setting: Setting) -> None:
    """Warn about what is left out."""
    texts = {
        Side.SOURCE: [segment.source or "" for segment in segments],
        Side.HYPOTHESIS: [segment.hypothesis for segment in segments],
    }
    for side, side_texts in texts.items():
        language = setting.language(side)
        if not all(covers(text, language) for text in side_texts):
            which = f"the {side}" if language is None else repr(language)
            _warn(f"the built-in encoder does not support {which}: phrase matches are left out", CoverageNotice)
            problem = frequency_problem(language)
            if problem is not None:
                _warn(f"rare words are recognised by their length: {problem}", FrequencyNotice)


@lru_cache(maxsize=256)
def _warn(message: str, category: type[UserWarning]) -> None:
    """Warn once, however many blocks of a run are explained."""
    warnings.warn(f"evidence: {message}", category, stacklevel=4)
