"""Evidence that a word is wrong, gathered without labels from source and hypothesis alone.

1. Terms of a word, each larger where an error is more likely:
   `match`: minus the similarity of its phrases with those of the other text, as in `xbertscore` (`models.matching`);
   `link`: minus the log-probability of the word given the other text by a translation lexicon (`models.lexicon`), the
   mean of the best word and of all words, at most 7; a word that the lexicon does not know has 7;
   `rarity`: how rare the word is (`models.surprisal`): log(1 + surprisal) by subwords where the encoder was made for
   its language, else surprisal by word frequencies where there are any, else log(1 + letters), each standardised;
   `punctuation`: 1 where it is a mark that the other text holds less often, -1 where the other text holds it too;
   `copy`: -1 where a word with letters stands in the other text as well: a name. Where more than half of the words do,
   the text is not translated, and the term is 1;
   `number`: 1 where it holds digits that the other text does not hold;
   `script`: 1 where it has letters of a script other than Latin and than that of most letters of its text.
2. Each term is standardised by a mean and a deviation that were fixed on the training data, so that words of different
   sentences can be compared, and multiplied by a weight that was fixed there as well, with and without a lexicon.
3. The evidence is the sum. `match` is left out where the encoder was not made for one of the languages, `rarity` and
   `punctuation` where the text is written without blanks and there is `match` or `link`: how long the words of such a
   text are depends on how it was segmented, and the shorter ones are wrong as often as the longer.

`docs/decisions/0012-evidence.md` tells how the weights were chosen and what they reach.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
import regex

from whyscore.models.encoders.embedded import LANGUAGES, Embedded
from whyscore.models.lexicon import Lexicon
from whyscore.models.matching import Sided, by_phrases, match
from whyscore.models.surprisal import frequency_problem, frequency_surprisal, piece_surprisal
from whyscore.text.alignment import Pieces, pool_words
from whyscore.text.stemming import language_code
from whyscore.types import FloatVector, Segment, Side, Words

Term = Literal["match", "link", "rarity", "punctuation", "copy", "number", "script"]
TERMS: tuple[Term, ...] = get_args(Term)
Terms = Mapping[Term, FloatVector]
"""One number per word and term, NaN where there is none."""

_PHRASES = 3
_SHOWN = 2
_WINDOW = 64  # pairs of texts whose vectors are held at a time
_SPEAKS = regex.compile(r"[\p{L}\p{N}]")
_MARK = regex.compile(r"[\p{P}\p{S}]")
# Marks of different scripts that mean the same.
_SAME = {mark: same for same, marks in {
    ",": "，、،", ".": "。।។", ";": "；", ":": "：៖", "?": "？؟", "!": "！", "(": "（", ")": "）", "-": "—–",
    '"': "“”„«»「」『』《》", "'": "‘’",
}.items() for mark in marks}  # fmt: skip
_LETTER = regex.compile(r"\p{L}")
_DIGITS = regex.compile(r"\p{Nd}+")
_SCRIPTS = {
    name: regex.compile(rf"\p{{{name}}}")
    for name in (
        "Latin", "Cyrillic", "Greek", "Arabic", "Hebrew", "Devanagari", "Bengali", "Sinhala", "Tamil", "Telugu", "Thai",
        "Lao", "Khmer", "Myanmar", "Georgian", "Armenian", "Ethiopic", "Hangul", "Hiragana", "Katakana", "Han",
    )
}  # fmt: skip
# Scripts of the languages that the encoder was made for; a text in any other is not covered, whatever its language.
_COVERED = frozenset(["Latin", "Cyrillic", "Arabic", "Thai", "Hangul", "Hiragana", "Katakana", "Han"])
_MIXED = frozenset(["Hiragana", "Katakana", "Han"])  # one script to a Japanese reader
_UNSPACED = frozenset(["Han", "Thai", "Lao", "Khmer", "Myanmar"])


class Scale(NamedTuple):
    """How a term is standardised and weighed."""

    mean: float
    deviation: float
    weight: float
    alone: float
    """The weight without a lexicon."""


# From 200 sentences of each training pair (benchmarks/study_evidence.py): fitted, then rarity raised and punctuation
# lowered until no pair was more than .002 below the better of length and surprisal. Numbers and scripts that do not fit
# are too rare there for an estimate: each adds 0.5.
SCALES: Mapping[Term, Scale] = {
    "match": Scale(-0.766, 0.103, 0.14, 0.20),
    "link": Scale(4.16, 2.36, 0.42, 0.0),
    "rarity": Scale(0.0, 1.0, 0.26, 0.50),
    "punctuation": Scale(-0.056, 0.317, 0.10, 0.10),
    "copy": Scale(-0.040, 0.211, 0.08, 0.08),
    "number": Scale(0.003, 0.055, 0.0275, 0.0275),
    "script": Scale(0.003, 0.057, 0.0285, 0.0285),
}

# Mean and deviation of log(1 + surprisal) by subwords, of surprisal by word frequencies, of log(1 + letters).
_SUBWORDS, _FREQUENCIES, _LETTERS = (2.39, 0.530), (7.44, 4.46), (1.59, 0.551)
_LEAST = 7.0  # a link of e^-7, about 0.001, below which probabilities are dropped from lexicons


class Setting(NamedTuple):
    """What is known besides the texts."""

    lexicon: Lexicon | None = None
    """Translation probabilities between the languages."""
    languages: tuple[str, str] | None = None
    """Of source and hypothesis."""

    def language(self, side: Side) -> str | None:
        """Return the language of a side."""
        return None if self.languages is None else self.languages[1 if side is Side.HYPOTHESIS else 0]


_NOTHING = Setting()


class _Pair(NamedTuple):
    """The words of the text that is judged, the text that it is compared with, and which side is judged."""

    words: Words
    other: str
    side: Side

    @property
    def other_side(self) -> Side:
        return Side.SOURCE if self.side is Side.HYPOTHESIS else Side.HYPOTHESIS


def gather_terms(
    segments: Sequence[Segment], side: Side, words: Sequence[Words], setting: Setting = _NOTHING
) -> list[Terms]:
    """Return the terms of each word of the text on one side of each segment.

    Args:
        segments: With sources.
        side: Which text is judged, the hypothesis or the source.
        words: The words of that text.
        setting: Lexicon and languages, where they are known.
    """
    pairs = [
        _Pair(text, (segment.source or "") if side is Side.HYPOTHESIS else segment.hypothesis, side)
        for segment, text in zip(segments, words, strict=True)
    ]
    return [_terms(pair, matched, setting) for pair, matched in zip(pairs, _matches(pairs, setting), strict=True)]


def error_evidence(
    segments: Sequence[Segment], side: Side, words: Sequence[Words], setting: Setting = _NOTHING
) -> list[FloatVector]:
    """Return how much speaks against each word on one side of each segment: higher where an error is more likely.

    The numbers are weighted sums of standardised terms: about 0 for an average word, comparable between sentences, no
    probabilities.
    """
    return [sum_terms(terms) for terms in gather_terms(segments, side, words, setting)]


def sum_terms(terms: Terms) -> FloatVector:
    """Return the weighted sum of the standardised terms of each word; a missing one counts as average."""
    total: FloatVector = np.sum(list(_weigh_terms(terms).values()), axis=0)
    return total


def strongest_terms(terms: Terms) -> tuple[str, ...]:
    """Return for each word the terms that speak loudest, with their share of the sum."""
    names, rows = list(terms), np.array(list(_weigh_terms(terms).values()))
    loudest = np.argsort(-np.abs(rows), axis=0, kind="stable")[:_SHOWN].T
    return tuple(
        ", ".join(f"{names[k]} {rows[k, word]:+.2f}" for k in order if rows[k, word])
        for word, order in enumerate(loudest.tolist())
    )


def _weigh_terms(terms: Terms) -> dict[Term, FloatVector]:
    """Return what each term adds to the sum."""
    alone = bool(np.isnan(terms["link"]).all())
    result: dict[Term, FloatVector] = {}
    for name, values in terms.items():
        scale = SCALES[name]
        weight = scale.alone if alone else scale.weight
        result[name] = weight * np.nan_to_num((values - scale.mean) / scale.deviation)
    return result


def _terms(pair: _Pair, matched: FloatVector, setting: Setting) -> Terms:
    nothing = np.full(len(pair.words), np.nan)
    terms: dict[Term, FloatVector] = {
        "match": matched,
        "link": _links(pair, setting.lexicon),
        "rarity": _rarity(pair.words, setting.language(pair.side)),
        **_mismatches(pair),
    }
    compared = not (np.isnan(matched).all() and np.isnan(terms["link"]).all())
    if compared and _script(pair.words.text) in _UNSPACED:
        terms |= {"rarity": nothing, "punctuation": nothing}
    return terms


def covers(text: str, language: str | None) -> bool:
    """Return whether the built-in encoder was made for a text, by its language or, where nobody says, its script."""
    if language is not None:
        return language_code(language) in LANGUAGES
    return _script(text) in (None, *_COVERED)


def _matches(pairs: Sequence[_Pair], setting: Setting) -> Iterator[FloatVector]:
    """Yield minus the similarity of each word with the other text, NaN where the encoder says nothing of it."""
    for start in range(0, len(pairs), _WINDOW):
        window = pairs[start : start + _WINDOW]
        covered = [pair for pair in window if _is_known(pair, setting)]
        texts = list(dict.fromkeys(text for pair in covered for text in (pair.words.text, pair.other)))
        sided = dict(zip(texts, by_phrases(texts, Embedded(), _PHRASES), strict=True))
        for pair in window:
            yield _match_pair(pair, sided) if pair.other in sided else np.full(len(pair.words), np.nan)


def _is_known(pair: _Pair, setting: Setting) -> bool:
    texts = {pair.side: pair.words.text, pair.other_side: pair.other}
    return all(covers(text, setting.language(side)) for side, text in texts.items())


def _match_pair(pair: _Pair, sided: Mapping[str, Sided]) -> FloatVector:
    text, other = sided[pair.words.text], sided[pair.other]
    matched = match(other, text)
    if matched is None:
        return np.full(len(pair.words), np.nan)
    spans = [(start, end) for start, end in text.spans.tolist()]
    return -pool_words(pair.words, Pieces(spans, text.pieces), matched.hypothesis.similarity, fill="null").values


def _links(pair: _Pair, lexicon: Lexicon | None) -> FloatVector:
    """Return minus the mean of both logarithms, the best word and all words together; NaN without a lexicon."""
    if lexicon is None:
        return np.full(len(pair.words), np.nan)
    links = lexicon.links(list(pair.words), pair.other.split(), pair.side)
    return np.minimum(np.nan_to_num(-(links.best + links.total) / 2, nan=_LEAST), _LEAST)


def _rarity(words: Words, language: str | None) -> FloatVector:
    """Return how rare each word is, standardised."""
    if covers(words.text, language):
        values, (mean, deviation) = np.log1p(piece_surprisal(words)), _SUBWORDS
    elif frequency_problem(language) is None:
        values, (mean, deviation) = frequency_surprisal(words, str(language)), _FREQUENCIES
    else:
        values, (mean, deviation) = np.log1p([float(len(word)) for word in words]), _LETTERS
    return (values - mean) / deviation


def _mismatches(pair: _Pair) -> dict[Term, FloatVector]:
    """Return what stands on one side alone: numbers, punctuation, and words of the other language or script."""
    digits = set(_DIGITS.findall(pair.other))
    others = {word.lower() for word in pair.other.split()}
    script = _script(pair.words.text)
    here, there = Counter(_marks(pair.words.text)), Counter(_marks(pair.other))
    words = list(pair.words)
    copied = _vector(bool(_LETTER.search(word)) and word.lower() in others for word in words)
    return {
        "punctuation": np.array([_punctuation(word, here, there) for word in words], dtype=np.float64),
        "copy": copied if copied.sum() > len(words) / 2 else -copied,
        "number": _vector(not digits.issuperset(_DIGITS.findall(word)) for word in words),
        "script": _vector(_script(word) not in (None, "Latin", script) for word in words),
    }


def _vector(flags: Iterable[bool]) -> FloatVector:
    return np.fromiter(flags, dtype=np.float64)


def _punctuation(word: str, here: Mapping[str, int], there: Mapping[str, int]) -> float:
    """Return 1 for a mark that the other text holds less often, -1 for one that it holds, 0 for all other words."""
    marks = _marks(word)
    if not marks or _SPEAKS.search(word):
        return 0.0
    return 1.0 if any(here[mark] > there[mark] for mark in marks) else -1.0


def _marks(text: str) -> list[str]:
    """Return the punctuation marks of a text, those of different scripts that mean the same as one."""
    return [_SAME.get(letter, letter) for letter in _MARK.findall(text)]


def _script(text: str) -> str | None:
    """Return the script of most letters of a text; None without a letter of a known one."""
    counts = {name: len(pattern.findall(text)) for name, pattern in _SCRIPTS.items()}
    best = max(counts, key=counts.__getitem__)
    if not counts[best]:
        return None
    return "Han" if best in _MIXED else best
