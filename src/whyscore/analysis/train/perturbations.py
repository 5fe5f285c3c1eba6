"""Errors put into texts on purpose: labels without annotators, and a check-list of what a metric notices.

After the divergences of CLIP-UMD at Eval4NLP 2021 (Briakou and Carpuat 2020, "Detecting Fine-Grained Cross-Lingual
Semantic Divergences without Supervision by Learning to Rank"), extended by the kinds of errors that users ask about.

| kind | what happens to a text | labels |
|---|---|---|
| `deletion` | one to three words are taken out | the gap, and the source words linked to them |
| `insertion` | a word of other texts is put in | the word |
| `substitution` | a word becomes what a masked language model puts there (`infill`), or another translation of its
source word, or any word of like length | the word |
| `untranslated` | a word becomes the source word it is linked to | the word |
| `swap` | two neighbouring phrases of one to three words change places | both phrases |
| `number` | a digit of a number is changed | the number |
| `name` | a capitalised word inside a sentence becomes another one | the name |
| `negation` | a negation is taken out, or put in after an English auxiliary | the gap or the word |
| `inflection` | a word becomes another word of the data with the same beginning | the word |
| `spelling` | two neighbouring letters change places, or one is left out | the word |
| `punctuation` | a mark is changed or left out, or a comma is put in | the word it stands at |

The last three have the rate 0: they are for check-lists and for naming spans, and are trained on where they are named.

1. A text of parallel data has white-space words; source words are linked by IBM model 1.
2. Each text gets `perturbed` copies, each with one to three perturbations of different words. Kinds are drawn by their
   rates among those that apply. All random numbers come from the seed and the text.
3. The text itself is an example without errors; a text and its copies share `contrast`, which the loss ranks.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from whyscore.analysis.train.labels import Rated, Stretches, link_words
from whyscore.analysis.train.settings import TrainSettings
from whyscore.errors import DataError, UnknownName
from whyscore.models.language_models import load
from whyscore.text.infill import Choice
from whyscore.text.randomness import generator
from whyscore.text.splitters import UnicodeWords, white_space

_NEGATIONS = frozenset([
    "not", "no", "never", "n't", "nicht", "kein", "keine", "keinen", "nie", "nu", "niciodată", "ei", "mitte", "pas",
    "jamais", "ne", "non", "не", "нет", "никогда", "nunca", "não", "不", "没", "没有",
])  # fmt: skip
_AUXILIARIES = frozenset([
    "is", "are", "was", "were", "has", "have", "had", "can", "could", "will", "would", "should", "may", "might", "must",
    "does", "do", "did", "be",
])  # fmt: skip
_LONGEST_PHRASE = 3
_MOST = 3
_DIGIT = re.compile(r"\d")
_ENDING = re.compile(r"[^\w\s]+$")
_MARKS = (",", ".", ";", ":", "!", "?", "")
_LEAST_STEM, _LONGEST_ENDING, _LEAST_LETTERS = 3, 3, 4
_LIKE_LENGTH = 3
_CANDIDATES = 5
_INFILL_BATCH = 8192  # pieces


@dataclass
class Draft:
    """A text while it is perturbed: words with labels, and which source words lost their counterpart."""

    words: list[str]
    owners: list[int]
    """The place of each word in the whole text; -1 for one that was put in."""
    labels: list[float]
    gaps: set[int] = field(default_factory=set)
    """The owners after which something is missing; -1 is the beginning."""
    lost: set[int] = field(default_factory=set)

    def free(self, length: int = 1) -> list[int]:
        """Return where that many untouched words begin."""
        return [k for k in range(len(self.words) - length + 1) if not any(self.labels[k : k + length])]


class Resources(NamedTuple):
    """What perturbations draw from."""

    vocabulary: tuple[str, ...]
    names: tuple[str, ...]
    alternatives: Mapping[str, tuple[str, ...]]
    """Words that translate the same source words, by lower-case word."""
    links: Mapping[int, tuple[int, ...]]
    """Source words by the place of a word."""
    source: tuple[str, ...]
    infills: Mapping[int, str] = MappingProxyType({})
    """What a language model puts in some places."""


Perturbation = Callable[[Draft, Resources, np.random.Generator], bool]
"""Changes a draft; False where it does not apply."""


class Kind(NamedTuple):
    """A perturbation, and how often it is drawn in training; 0: where it is named."""

    apply: Perturbation
    rate: float


def _pick(places: Sequence[int], draw: np.random.Generator) -> int:
    return int(places[int(draw.integers(len(places)))])


def _replace(draft: Draft, place: int, word: str, resources: Resources) -> bool:
    old = draft.words[place]
    word = word.capitalize() if old[:1].isupper() and place == 0 else word
    if word.lower() == old.lower():
        return False
    draft.words[place], draft.labels[place] = word, 1.0
    draft.lost |= set(resources.links.get(draft.owners[place], ()))
    return True


def _delete(draft: Draft, resources: Resources, draw: np.random.Generator) -> bool:
    length = int(draw.integers(1, _LONGEST_PHRASE + 1))
    places = [k for k in draft.free(length) if any(map(str.isalnum, "".join(draft.words[k : k + length])))]
    if not places or len(draft.words) <= length:
        return False
    _take_out(draft, _pick(places, draw), length, resources)
    return True


def _take_out(draft: Draft, place: int, length: int, resources: Resources) -> None:
    draft.gaps.add(max((owner for owner in draft.owners[:place]), default=-1))
    for owner in draft.owners[place : place + length]:
        draft.lost |= set(resources.links.get(owner, ()))
    for column in (draft.words, draft.owners, draft.labels):
        del column[place : place + length]


def _put_in(draft: Draft, place: int, word: str) -> None:
    draft.words.insert(place, word)
    draft.owners.insert(place, -1)
    draft.labels.insert(place, 1.0)


def _insert(draft: Draft, resources: Resources, draw: np.random.Generator) -> bool:
    if not resources.vocabulary:
        return False
    word = resources.vocabulary[int(draw.integers(len(resources.vocabulary)))]
    _put_in(draft, int(draw.integers(1, len(draft.words) + 1)), word)
    return True


def _substitute(draft: Draft, resources: Resources, draw: np.random.Generator) -> bool:
    infilled = [k for k in draft.free() if draft.owners[k] in resources.infills]
    if infilled:
        place = _pick(infilled, draw)
        return _replace(draft, place, resources.infills[draft.owners[place]], resources)
    places = [k for k in draft.free() if draft.words[k].isalpha()]
    if not places:
        return False
    place = _pick(places, draw)
    word = draft.words[place]
    candidates = resources.alternatives.get(word.lower(), ())
    if not candidates or draw.random() < 1 / 2:
        candidates = tuple(w for w in resources.vocabulary if abs(len(w) - len(word)) <= _LIKE_LENGTH)
    return bool(candidates) and _replace(draft, place, candidates[int(draw.integers(len(candidates)))], resources)


def _leave_untranslated(draft: Draft, resources: Resources, draw: np.random.Generator) -> bool:
    places = [k for k in draft.free() if resources.links.get(draft.owners[k]) and draft.words[k].isalpha()]
    if not places:
        return False
    place = _pick(places, draw)
    return _replace(draft, place, resources.source[resources.links[draft.owners[place]][0]], resources)


def _swap(draft: Draft, resources: Resources, draw: np.random.Generator) -> bool:
    del resources
    first, second = (int(number) for number in draw.integers(1, _LONGEST_PHRASE + 1, 2))
    places = draft.free(first + second)
    if not places:
        return False
    place = _pick(places, draw)
    border, end = place + first, place + first + second
    if draft.words[place:border] == draft.words[border:end]:
        return False
    draft.words[place:end] = draft.words[border:end] + draft.words[place:border]
    draft.owners[place:end] = draft.owners[border:end] + draft.owners[place:border]
    draft.labels[place:end] = [1.0] * (end - place)
    return True


def _change_number(draft: Draft, resources: Resources, draw: np.random.Generator) -> bool:
    places = [k for k in draft.free() if _DIGIT.search(draft.words[k])]
    if not places:
        return False
    place = _pick(places, draw)
    digits = [match.start() for match in _DIGIT.finditer(draft.words[place])]
    index = _pick(digits, draw)
    old = draft.words[place]
    digit = str((int(old[index]) + int(draw.integers(1, 9))) % 10 or 9)
    return _replace(draft, place, f"{old[:index]}{digit}{old[index + 1 :]}", resources)


def _change_name(draft: Draft, resources: Resources, draw: np.random.Generator) -> bool:
    places = [k for k in draft.free() if k and draft.words[k][:1].isupper() and draft.words[k].isalpha()]
    if not places or not resources.names:
        return False
    return _replace(draft, _pick(places, draw), resources.names[int(draw.integers(len(resources.names)))], resources)


def _negate(draft: Draft, resources: Resources, draw: np.random.Generator) -> bool:
    negations = [k for k in draft.free() if draft.words[k].lower() in _NEGATIONS]
    if negations:
        _take_out(draft, _pick(negations, draw), 1, resources)
        return True
    places = [k for k in draft.free() if draft.words[k].lower() in _AUXILIARIES]
    if not places:
        return False
    _put_in(draft, _pick(places, draw) + 1, "not")
    return True


def _inflect(draft: Draft, resources: Resources, draw: np.random.Generator) -> bool:
    places = [k for k in draft.free() if draft.words[k].isalpha() and len(draft.words[k]) >= _LEAST_LETTERS]
    if not places:
        return False
    place = _pick(places, draw)
    form = draft.words[place].lower()
    stem = form[: max(_LEAST_STEM, len(form) - _LONGEST_ENDING)]
    candidates = [
        word
        for word in resources.vocabulary
        if word != form and word.startswith(stem) and len(word) - len(stem) <= 2 * _LONGEST_ENDING
    ]
    return bool(candidates) and _replace(draft, place, candidates[int(draw.integers(len(candidates)))], resources)


def _misspell(draft: Draft, resources: Resources, draw: np.random.Generator) -> bool:
    places = [k for k in draft.free() if draft.words[k].isalpha() and len(draft.words[k]) >= _LEAST_LETTERS]
    if not places:
        return False
    place = _pick(places, draw)
    word = draft.words[place]
    letter = int(draw.integers(1, len(word) - 1))
    swapped = word[:letter] + word[letter + 1] + word[letter] + word[letter + 2 :]
    shorter = word[:letter] + word[letter + 1 :]
    return _replace(draft, place, swapped if draw.random() < 1 / 2 and swapped != word else shorter, resources)


def _punctuate(draft: Draft, resources: Resources, draw: np.random.Generator) -> bool:
    del resources  # the meaning stays, and with it the source words
    places = draft.free()
    if not places:
        return False
    marked = [k for k in places if _ENDING.search(draft.words[k])]
    place = _pick(marked if marked and draw.random() < 1 / 2 else places, draw)
    word = draft.words[place]
    bare = _ENDING.sub("", word)
    marks = [mark for mark in _MARKS if bare + mark not in ("", word)] if bare != word else [","]
    draft.words[place], draft.labels[place] = bare + marks[int(draw.integers(len(marks)))], 1.0
    return True


PERTURBATIONS: Mapping[str, Kind] = {
    "deletion": Kind(_delete, 0.2),
    "insertion": Kind(_insert, 0.15),
    "substitution": Kind(_substitute, 0.35),
    "untranslated": Kind(_leave_untranslated, 0.05),
    "swap": Kind(_swap, 0.1),
    "number": Kind(_change_number, 0.05),
    "name": Kind(_change_name, 0.05),
    "negation": Kind(_negate, 0.05),
    "inflection": Kind(_inflect, 0.0),
    "spelling": Kind(_misspell, 0.0),
    "punctuation": Kind(_punctuate, 0.0),
}


class Perturbed(NamedTuple):
    """A perturbed text and where it differs."""

    text: str
    words: Stretches
    gaps: tuple[tuple[int, float], ...]
    source_words: Stretches
    kinds: tuple[str, ...]


class Perturber:
    """Perturbs the texts of parallel data; what it puts in comes from the same data."""

    def __init__(self, sources: Sequence[str], texts: Sequence[str], infill: str | None = None, seed: int = 0) -> None:
        self._infills = infill_words(infill, texts, seed) if infill else {}
        self._texts = {pair: k for k, pair in enumerate(zip(sources, texts, strict=True))}
        splitter = UnicodeWords()
        self._links: list[dict[int, tuple[int, ...]]] = []
        translations: dict[str, Counter[str]] = {}
        for source, text, links in zip(sources, texts, link_words(sources, texts), strict=True):
            tokens, words, source_words = splitter.split(text), white_space(text), white_space(source)
            source_tokens = splitter.split(source)
            linked: dict[int, set[int]] = {}
            for here, there in links:
                word, other = (
                    _owner(words.spans, tokens.spans[there]),
                    _owner(source_words.spans, source_tokens.spans[here]),
                )
                linked.setdefault(word, set()).add(other)
                key = source[slice(*source_tokens.spans[here])].lower()
                translations.setdefault(key, Counter())[text[slice(*tokens.spans[there])].lower()] += 1
            self._links.append({word: tuple(sorted(partners)) for word, partners in linked.items()})
        counts = Counter(word for text in texts for word in text.split() if word.isalpha())
        self._vocabulary = tuple(
            sorted(word for word, count in counts.items() if count > 1 and word.islower()) or sorted(counts)
        )
        self._names = tuple(
            sorted({w for text in texts for w in text.split()[1:] if w[:1].isupper() and w[1:].islower()})
        )
        self._alternatives: dict[str, tuple[str, ...]] = {}
        for translated in translations.values():
            variants = tuple(word for word, count in translated.most_common(6) if word.isalpha())
            for variant in variants:
                self._alternatives.setdefault(variant, tuple(other for other in variants if other != variant))

    def perturb(
        self, source: str, text: str, kinds: Sequence[str], draw: np.random.Generator, most: int = 1
    ) -> Perturbed | None:
        """Return a text with one to `most` perturbations of the given kinds; None where none applies."""
        words = white_space(text)
        resources = Resources(
            self._vocabulary,
            self._names,
            self._alternatives,
            self._links[self._texts[source, text]],
            tuple(source.split()),
            self._infills.get(text, {}),
        )
        draft = Draft(list(words), list(range(len(words))), [0.0] * len(words))
        target = int(draw.integers(1, most + 1))
        applied: list[str] = []
        rates = np.array([PERTURBATIONS[kind].rate for kind in kinds])
        rates = rates if rates.all() else np.ones(len(kinds))  # named although it has the rate 0: all alike
        for k in draw.choice(len(kinds), size=4 * target, p=rates / rates.sum()).tolist() if len(words) else ():
            if len(applied) < target and PERTURBATIONS[kinds[k]].apply(draft, resources, draw):
                applied.append(kinds[k])
        return _finish(draft, white_space(source).spans, tuple(applied)) if applied and draft.words else None


def infill_words(model: str, texts: Sequence[str], seed: int) -> dict[str, dict[int, str]]:
    """Return for up to three words of each text what a language model finds most probable there but the word itself."""
    hidden, places = [], []
    for text in dict.fromkeys(texts):
        words = white_space(text)
        able = [k for k, word in enumerate(words) if word.isalpha()]
        for k in generator(seed, "infill", text).permutation(len(able))[:_MOST].tolist():
            hidden.append((words, able[k]))
            places.append((text, able[k]))
    predictions = load(model, "auto", "cpu").candidates(hidden, Choice(0.0, _CANDIDATES, "default"), _INFILL_BATCH)
    result: dict[str, dict[int, str]] = {}
    for (text, place), (words, _), candidates in zip(places, hidden, predictions, strict=True):
        original = words.text[slice(*words.spans[place])].lower()
        others = [word for word in candidates.texts if word.isalpha() and word.lower() != original]
        if others:
            result.setdefault(text, {})[place] = others[0]
    return result


def _owner(spans: Sequence[tuple[int, int]], token: tuple[int, int]) -> int:
    return next(k for k, (start, end) in enumerate(spans) if start <= token[0] < end)


def _finish(draft: Draft, source: Sequence[tuple[int, int]], kinds: tuple[str, ...]) -> Perturbed:
    text = " ".join(draft.words)
    spans = white_space(text).spans
    marks = tuple((*span, 1.0) for span, label in zip(spans, draft.labels, strict=True) if label)
    gaps = []
    for owner in draft.gaps:
        after = [k for k, word_owner in enumerate(draft.owners) if 0 <= word_owner <= owner]
        place = max(after) + 1 if after else 0
        gaps.append((spans[place][0] if place < len(spans) else len(text), 1.0))
    return Perturbed(text, marks, tuple(gaps), tuple((*source[k], 1.0) for k in sorted(draft.lost)), kinds)


def check_kinds(kinds: Sequence[str]) -> tuple[str, ...]:
    """Return kinds of perturbation, all where none is named."""
    for kind in kinds:
        if kind not in PERTURBATIONS:
            raise UnknownName.among("perturbation", kind, PERTURBATIONS)
    return tuple(kinds) or tuple(PERTURBATIONS)


def _draw_references(count: int, settings: TrainSettings) -> list[int]:
    """Return which references are perturbed, in their order."""
    order = generator(settings.seed, "perturbed references").permutation(count)
    return sorted(order[: settings.perturbed_references].tolist())


def perturb_rows(rows: Sequence[Rated], settings: TrainSettings) -> list[Rated]:
    """Return the references of rows and their perturbed copies, labelled."""
    kinds = check_kinds(
        settings.perturbations or [kind for kind, perturbation in PERTURBATIONS.items() if perturbation.rate]
    )
    pairs = list(dict.fromkeys((row.source, row.reference) for row in rows if row.reference and row.source.split()))
    if not pairs:
        raise DataError(
            "labels from perturbation need references: --parallel SOURCES REFERENCES, or data with post-edits"
        )
    owners = {(row.source, row.reference): row for row in rows}
    pairs = [pairs[k] for k in _draw_references(len(pairs), settings)]
    sources, references = [source for source, _ in pairs], [reference or "" for _, reference in pairs]
    perturber = Perturber(sources, references, settings.infill, settings.seed)
    result: list[Rated] = []
    for source, reference in pairs:
        text = reference or ""
        clean = replace(
            owners[source, reference], hypothesis=text, kind="perturbation", score=None, metrics=None,
            words=(), source_words=(), gaps=(), contrast=f"{source}\n{text}",
        )  # fmt: skip
        copies = []
        for number in range(settings.perturbed):
            perturbed = perturber.perturb(
                source, text, kinds, generator(settings.seed, str(number), source, text), _MOST
            )
            if perturbed is not None:
                marks = {"words": perturbed.words, "source_words": perturbed.source_words, "gaps": perturbed.gaps}
                copies.append(replace(clean, hypothesis=perturbed.text, **marks))  # type: ignore[arg-type]
        result += [clean, *copies] if copies else []
    return result
