"""What the estimator reads of each word: how it matches the other side, how rare it is, how it looks, what was learned.

1. Read each text once (`read_texts`): units (`units`), the vector of each unit and of each pair of neighbours as
   the embedded encoder pools them, the mean of the encoder's projections of its pieces, the vector of the whole text,
   surprisals, surface, hashes.
2. Match the two texts of a segment (`match`): cosines of all words, and for each word of both sides the columns in
   `NAMES`:
   - match: best cosine with words and pairs of words, margin over the second best, whether the choice is mutual, how
     often the word is chosen, how popular its counterpart is, entropy and position of the match, cosines with both
     whole texts, the same with projections;
   - surprisal in the encoder's unigram model, of the word, of its rarest piece, of its counterpart;
   - surface: length, case, digits, punctuation, position, repetition, copies, surplus of numbers and punctuation,
     a foreign script, shared character trigrams;
   - the same of neighbours, and standardised within the text;
   - tables (`tables`): translation probabilities of words and of their first letters, frequencies in translations and
     post-edits, earlier errors.
"""

import unicodedata
import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.metrics.estimators.tables import Keys, Tables, cut_stems, neighbour_keys, pair_keys, word_keys
from whyscore.metrics.estimators.units import Units, find_units
from whyscore.models.encoders.embedded import Embedded, Phrases, code, pool_phrases
from whyscore.models.exact import multiply_rows

Array = NDArray[np.float32]

MATCH = (
    *("best", "best_word", "best_in_pairs", "margin", "mutual", "chosen", "hub", "mean", "entropy", "shift", "jump"),
    *("with_other", "with_own", "texts", "projected", "projected_mutual", "same", "counterpart_best"),
)
RARITY = (*("surprisal", "hardest", "pieces", "unknown", "counterpart_surprisal", "text_surprisal", "other_surprisal"),)
SURFACE = (
    *("length", "capital", "capitals", "digit", "punctuation", "letters", "counterpart_capital"),
    *("counterpart_punctuation", "counterpart_length", "position", "first", "last", "words", "ratio", "repeated"),
    *("copied", "again", "surplus", "script", "trigrams"),
)
STANDARDISED = ("best", "best_word", "surprisal", "projected")
NEIGHBOURS = ("best", "surprisal", "punctuation", "mutual", "projected", "length")
LEARNED = (
    *("translation", "translation_mean", "back_translation", "translation_shift", "count"),
    *("errors", "errors_ending", "errors_beginning", "edited_ending", "edited_beginning"),
    *("edited_ratio", "edited_ratio_ending", "edited_ratio_beginning"),
    *("stem_translation", "stem_translation_mean", "stem_back_translation", "stem_translation_shift"),
)
NAMES = (
    *MATCH,
    *RARITY,
    *SURFACE,
    *(f"{name}_standardised" for name in STANDARDISED),
    *(f"{name}_{where}" for name in NEIGHBOURS for where in ("before", "after")),
    *LEARNED,
)
"""The columns, in order."""
CLIP = 6.0
"""Standard deviations that a column is at most away from its mean where it is read."""

_PLACE = {name: column for column, name in enumerate((*MATCH, *RARITY, *SURFACE))}
_ENCODER = Embedded()
_SHARPNESS = np.float32(10)
_BUCKETS = 256
_LONGEST = 20
_FARTHEST_JUMP = 5
_OUTSIDE = np.float32(-1)


class ReadText(NamedTuple):
    """One text as the estimator reads it."""

    units: Units
    runs: Array
    """Unit vectors of words, then of pairs of neighbours."""
    projections: Array
    """Unit vectors of the words' mean projections."""
    whole: Array
    rarity: Array
    """Words x 4: surprisal, that of the rarest piece, number of pieces, unknown pieces."""
    surface: Array
    """Words x 6: length, capital, capitals, digit, punctuation, share of letters."""
    scripts: NDArray[np.uint32]
    trigrams: Array
    """Words x buckets, 0 or 1."""
    keys: Keys
    stems: Keys
    """Hashes of the first letters of the words."""

    @property
    def words(self) -> Array:
        """The vectors of the words alone."""
        return self.runs[: len(self.units.words)]

    @property
    def nbytes(self) -> int:
        """How much memory the arrays take, roughly."""
        return self.runs.nbytes + self.projections.nbytes + self.trigrams.nbytes


class Matched(NamedTuple):
    """One segment: what the network reads."""

    features: tuple[Array, Array]
    """Of the hypothesis and of the source: words x `NAMES`."""
    cosines: Array
    """Hypothesis words x source words."""


def read_texts(texts: Sequence[str]) -> list[ReadText]:
    """Return each text as the estimator reads it; all of them go through the encoder together."""
    coded = [code(text) for text in texts]
    places = [coding.places for coding in coded]
    units = [find_units(text, spans) for text, spans in zip(texts, places, strict=True)]
    ranges = [_runs(unit, len(spans)) for unit, spans in zip(units, places, strict=True)]
    pooled = pool_phrases(coded, ranges, [len(unit.words) for unit in units])
    return [_read(unit, coding.names, phrases) for unit, coding, phrases in zip(units, coded, pooled, strict=True)]


def _runs(units: Units, pieces: int) -> NDArray[np.intp]:
    """Return the pieces of each word, of each pair of neighbours and of the whole text."""
    words = units.ranges
    pairs = np.stack([words[:-1, 0], words[1:, 1]], axis=1) if len(words) else words
    return np.concatenate([words, pairs, np.array([[0, pieces]], dtype=np.intp)])


def _read(units: Units, pieces: Sequence[str], phrases: Phrases) -> ReadText:
    looks = [_look(word) for word in units.words]
    rows = _unit_rows(phrases.vectors)
    return ReadText(
        units,
        rows[:-1],
        _unit_rows(phrases.means),
        rows[-1],
        _rarity(_ENCODER.surprisal(pieces), np.array([piece == "<unk>" for piece in pieces]), units.ranges),
        np.array([look.numbers for look in looks], dtype=np.float32).reshape(-1, 6),
        np.array([look.script for look in looks], dtype=np.uint32),
        np.stack([look.trigrams for look in looks]) if looks else np.zeros((0, _BUCKETS), dtype=np.float32),
        word_keys(units.words),
        word_keys(cut_stems(units.words)),
    )


def _rarity(surprisal: NDArray[np.float64], unknown: NDArray[np.bool_], ranges: NDArray[np.intp]) -> Array:
    if not len(ranges) or not len(surprisal):
        return np.zeros((len(ranges), 4), dtype=np.float32)
    # Sums and maxima of the ranges; every second stretch lies between two of them.
    borders = np.minimum(ranges.ravel(), len(surprisal) - 1)
    counts = ranges[:, 1] - ranges[:, 0]
    running = np.concatenate([[0.0], np.cumsum(surprisal)])
    strange = np.concatenate([[0], np.cumsum(unknown)])
    hardest = np.maximum.reduceat(surprisal, borders)[::2]
    last = ranges[:, 1] == len(surprisal)
    hardest[last] = [surprisal[start:].max() for start in ranges[last, 0].tolist()]
    columns = [
        running[ranges[:, 1]] - running[ranges[:, 0]],
        hardest,
        counts,
        strange[ranges[:, 1]] - strange[ranges[:, 0]],
    ]
    return np.stack(columns, axis=1).astype(np.float32)


def _unit_rows(rows: Array) -> Array:
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return (rows / np.where(lengths > 0, lengths, np.float32(1))[:, None]).astype(np.float32, copy=False)


class _Look(NamedTuple):
    numbers: tuple[float, ...]
    script: int
    trigrams: Array


@lru_cache(maxsize=1 << 17)
def _look(word: str) -> _Look:
    """Return how a word looks; its script is that of its first letter, 0 without one."""
    letters = [letter for letter in word if letter.isalpha()]
    written = not any(letter.isalnum() for letter in word)
    numbers = (
        float(min(len(word), _LONGEST)),
        float(word[:1].isupper()),
        float(len(word) > 1 and word.isupper()),
        float(any(letter.isdigit() for letter in word)),
        float(written),
        len(letters) / len(word),
    )
    script = zlib.crc32(unicodedata.name(letters[0], "?").split()[0].encode()) if letters else 0
    framed = f"^{word.lower()}$".encode("utf-32-le", "surrogatepass")
    trigrams = np.zeros(_BUCKETS, dtype=np.float32)
    trigrams[[zlib.crc32(framed[i : i + 12]) % _BUCKETS for i in range(0, len(framed) - 8, 4)]] = 1
    return _Look(numbers, script, trigrams)


def match(hypothesis: ReadText, source: ReadText, tables: Tables) -> Matched:
    """Return the features of all words of a segment; both texts must have words."""
    runs = multiply_rows(hypothesis.runs, source.runs).astype(np.float32)
    projected = multiply_rows(hypothesis.projections, source.projections).astype(np.float32)
    words = tables.translations.look_up(pair_keys(source.keys[:, None], hypothesis.keys[None, :]))
    stems = tables.stem_translations.look_up(pair_keys(source.stems[:, None], hypothesis.stems[None, :]))
    here = _side(hypothesis, source, runs, projected)
    there = _side(source, hypothesis, runs.T, projected.T)
    features = (
        _join(here, _links(*words), _history(hypothesis.keys, tables), _links(*stems)),
        _join(there, _links(*_turn(words)), _source_history(source.keys, tables), _links(*_turn(stems))),
    )
    return Matched(features, runs[: len(hypothesis.keys), : len(source.keys)])


def summarise(wholes: Sequence[NDArray[np.floating]], words: Sequence[Array]) -> Array:
    """Return what sentence heads read of a segment.

    Args:
        wholes: The vectors of hypothesis and source as a whole: both, their distances and their products are read.
        words: Words x columns of both sides: mean and standard deviation of each column are read.
    """
    here, there = (whole.astype(np.float32) for whole in wholes)
    columns = [(side.mean(axis=0), side.std(axis=0)) for side in words]
    return np.concatenate([here, there, np.abs(here - there), here * there, *columns[0], *columns[1]])


def _join(columns: Array, *learned: Array) -> Array:
    return np.concatenate([columns, _standardise(columns), _neighbours(columns), *learned], axis=1)


def _turn(directions: Array) -> Array:
    """Return translation probabilities as the other side sees them."""
    return directions[::-1].transpose(0, 2, 1)


def _side(text: ReadText, other: ReadText, runs: Array, projected: Array) -> Array:
    words, others = len(text.units.words), len(other.units.words)
    cosines = runs[:words, :others]
    best, counterpart = runs.max(axis=1), cosines.argmax(axis=1)
    matched = _matching(text, other, cosines, best, counterpart)
    nearest = projected.argmax(axis=1)
    places = np.arange(words)
    columns = [
        *matched,
        projected.max(axis=1),
        projected.argmax(axis=0)[nearest] == places,
        nearest == counterpart,
        cosines.max(axis=0)[counterpart],
        *text.rarity.T,
        other.rarity[counterpart, 0],
        np.full(words, text.rarity[:, 0].mean()),
        np.full(words, other.rarity[:, 0].mean()),
        *_surface(text, other, counterpart),
    ]
    result = np.empty((len(columns), words), dtype=np.float32)
    for row, column in zip(result, columns, strict=True):
        row[:] = column
    return np.ascontiguousarray(result.T)


def _matching(
    text: ReadText, other: ReadText, cosines: Array, best: Array, counterpart: NDArray[np.intp]
) -> list[NDArray[np.generic]]:
    words, others = cosines.shape
    places = np.arange(words)
    top = cosines[places, counterpart]
    second = np.partition(cosines, -2, axis=1)[:, -2] if others > 1 else np.zeros(words, dtype=np.float32)
    chosen_by = cosines.argmax(axis=0)
    weights = np.exp(_SHARPNESS * (cosines - top[:, None]))
    weights /= weights.sum(axis=1, keepdims=True)
    return [
        best[:words],
        top,
        _over_pairs(best[words:]) if words > 1 else best[:words],
        top - second,
        chosen_by[counterpart] == places,
        np.bincount(chosen_by, minlength=words),
        top - cosines.mean(axis=0)[counterpart],
        cosines.mean(axis=1),
        -(weights * np.log(weights + np.float32(1e-9))).sum(axis=1),
        np.abs(places / max(words - 1, 1) - counterpart / max(others - 1, 1)),
        np.minimum(np.abs(np.diff(counterpart, prepend=counterpart[0] - 1) - 1), _FARTHEST_JUMP),
        *multiply_rows(np.stack([other.whole, text.whole]), text.words),
        np.full(words, multiply_rows(text.whole[None], other.whole[None])),
    ]


def _over_pairs(values: Array) -> Array:
    """Return, for each word, the mean over the pairs it stands in."""
    both: Array = np.concatenate([values, values[-1:]]) + np.concatenate([values[:1], values])
    return (both / 2).astype(np.float32, copy=False)


def _surface(text: ReadText, other: ReadText, counterpart: NDArray[np.intp]) -> list[NDArray[np.generic]]:
    words, others = len(text.keys), len(other.keys)
    places = np.arange(words)
    repeated = (text.keys[:, None] == text.keys).sum(axis=1)
    copies = (text.keys[:, None] == other.keys).sum(axis=1)
    countable = (text.surface[:, 3] > 0) | (text.surface[:, 4] > 0)
    shared = text.trigrams @ other.trigrams.T
    sizes = text.trigrams.sum(axis=1)[:, None] + other.trigrams.sum(axis=1)
    return [
        *text.surface.T,
        other.surface[counterpart, 1],
        other.surface[counterpart, 4],
        other.surface[counterpart, 0],
        places / max(words - 1, 1),
        places == 0,
        places == words - 1,
        np.full(words, words),
        np.full(words, words / others),
        repeated,
        copies > 0,
        np.concatenate([[False], text.keys[1:] == text.keys[:-1]]),
        np.where(countable, repeated - copies, 0),
        _foreign(text.scripts),
        (2 * shared / sizes).max(axis=1),
    ]


def _foreign(scripts: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return which words have letters of another script than most words."""
    written = scripts[scripts > 0]
    if not len(written):
        return np.zeros(len(scripts), dtype=np.bool_)
    kinds, counts = np.unique(written, return_counts=True)
    result: NDArray[np.bool_] = (scripts > 0) & (scripts != kinds[counts.argmax()])
    return result


def _standardise(columns: Array) -> Array:
    values = columns[:, [_PLACE[name] for name in STANDARDISED]]
    result: Array = (values - values.mean(axis=0)) / (values.std(axis=0) + np.float32(1e-3))
    return result


def _neighbours(columns: Array) -> Array:
    values = columns[:, [_PLACE[name] for name in NEIGHBOURS]]
    outside = np.full((1, values.shape[1]), _OUTSIDE, dtype=np.float32)
    before, after = np.concatenate([outside, values[:-1]]), np.concatenate([values[1:], outside])
    return np.stack([before, after], axis=2).reshape(len(columns), -1)


def _links(forward: Array, backward: Array) -> Array:
    """Return translation probabilities of the words in the columns: best, mean, best backwards, and how far off."""
    others, words = forward.shape
    best, place = forward.max(axis=0), forward.argmax(axis=0)
    distance = np.abs(place / max(others - 1, 1) - np.arange(words) / max(words - 1, 1))
    shift = np.where(best > 0, distance, -1.0)
    columns = [best, forward.sum(axis=0) / others, backward.max(axis=0), shift]
    return np.stack([column.astype(np.float32) for column in columns], axis=1)


def _history(keys: Keys, tables: Tables) -> Array:
    """Return what was learned about the words of a hypothesis and their neighbours."""
    pairs = neighbour_keys(keys)
    (edited, translated), (edited_pairs, translated_pairs) = (
        tables.target_counts.look_up(keys),
        tables.target_counts.look_up(pairs),
    )
    return np.stack(
        [
            edited,
            *_errors(tables.target_errors.look_up(keys)[0], tables.target_errors.look_up(pairs)[0]),
            *_sides(edited_pairs, -1.0),
            _ratio(edited, translated),
            *_sides(_ratio(edited_pairs, translated_pairs), 0.0),
        ],
        axis=1,
    )


def _source_history(keys: Keys, tables: Tables) -> Array:
    """Return what was learned about the words of a source; it is never edited."""
    pairs = neighbour_keys(keys)
    counts = tables.source_counts.look_up(keys)[0]
    errors = _errors(tables.source_errors.look_up(keys)[0], tables.source_errors.look_up(pairs)[0])
    return np.stack([counts, *errors, *np.zeros((5, len(keys)), dtype=np.float32)], axis=1)


def _errors(words: Array, pairs: Array) -> list[Array]:
    return [words, *_sides(pairs, 0.0)]


def _sides(pairs: Array, outside: float) -> list[Array]:
    """Return the number of the pair that a word ends, and of the pair that it begins."""
    edge = np.array([outside], dtype=np.float32)
    return [np.concatenate([edge, pairs]), np.concatenate([pairs, edge])]


def _ratio(edited: Array, translated: Array) -> Array:
    """Return how much more often a word occurs after editing than before, from logarithms of counts."""
    result: Array = np.log((np.expm1(edited) + np.float32(0.5)) / (np.expm1(translated) + np.float32(0.5)))
    return result
