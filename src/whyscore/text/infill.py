"""Maskers that put plausible words in the place of hidden ones, each with its probability.

1. A source gives, for each hidden word, candidates v with probabilities p_v: an n-gram model of a corpus (`infill`), a
   file (`infill_file`), or a language model (`infill_model`, in `whyscore.models.language_models`).
2. Keep candidates with p_v above `threshold`, the `top` most probable of them, and at least the best one.
3. Weights are w_v = p_v / sum p. In `compat` they are the softmax of the kept p_v: a softmax of what already came out
   of one, which leaves hardly any preference; kept to reproduce published numbers.
4. A mask that hides one word becomes one text per candidate. One that hides several becomes `draws` texts of equal
   weight, each hidden word drawn by its weights, independently of the others and as if only it were hidden: all
   combinations would be too many. The draws depend on the text and the mask alone.

The original word may be among its own candidates. Keeping every word gives the text back unchanged.

The n-gram model of `infill` is learned by counting which words fit between two others:

1. Count, over a corpus, every word after its one and two left neighbours and before its one and two right ones; texts
   are bounded by a mark.
2. The left model is Witten and Bell's (1991) interpolation: a context seen N times before T different words trusts its
   own counts by N / (N + T) and the next shorter context by the rest; the shortest is the word's frequency. The right
   model is the same, mirrored.
3. If the sides are independent given the word, P(word | left, right) is P(word | left) P(word | right) / P(word), up to
   a constant that makes the probabilities of all words sum to one.

It is deterministic, without download, and small: a few seconds for a hundred thousand words.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import DataError, SpecError
from whyscore.protocols import Probes, Splitter
from whyscore.settings import check_fields, names_file
from whyscore.text.files import json_of, read_once, text_of
from whyscore.text.maskers import MaskedTexts
from whyscore.text.randomness import generator
from whyscore.text.splitters import WhiteSpace
from whyscore.types import FloatVector, KeepMasks, Words

_BORDER = -1
_UNKNOWN = -2
_REACH = 2

Context = tuple[int, ...]


class Seen(NamedTuple):
    """The words that were seen in a context, and how often."""

    words: NDArray[np.intp]
    counts: FloatVector


@dataclass(frozen=True, eq=False)
class ContextModel:
    """The words of a corpus, most frequent first, and the contexts on their left and right."""

    words: tuple[str, ...]
    numbers: Mapping[str, int]
    frequency: FloatVector
    left: Mapping[Context, Seen]
    right: Mapping[Context, Seen]

    def probabilities(self, sentence: Sequence[str], word: int) -> FloatVector:
        """Return the probability of each known word in the place of one word, whatever word stands there."""
        before = [self._number(sentence, word - away) for away in range(1, _REACH + 1)]
        after = [self._number(sentence, word + away) for away in range(1, _REACH + 1)]
        left = self._side(self.left, [tuple(before[:reach]) for reach in (1, _REACH)])
        right = self._side(self.right, [tuple(after[:reach]) for reach in (1, _REACH)])
        raw = left * right / self.frequency
        result: FloatVector = raw / raw.sum()
        return result

    def _number(self, sentence: Sequence[str], place: int) -> int:
        return self.numbers.get(sentence[place], _UNKNOWN) if 0 <= place < len(sentence) else _BORDER

    def _side(self, contexts: Mapping[Context, Seen], longer_and_longer: Sequence[Context]) -> FloatVector:
        result = self.frequency
        for context in longer_and_longer:
            seen = contexts.get(context)
            if seen is not None:
                total, kinds = seen.counts.sum(), len(seen.words)
                result = result * (kinds / (total + kinds))
                result[seen.words] += seen.counts / (total + kinds)
        return result


def learn(sentences: Iterable[Sequence[str]]) -> ContextModel:
    """Return the model of a corpus; ties in frequency are ordered by the words themselves.

    >>> model = learn([["a", "cat"], ["a", "dog"], ["the", "cat"]])
    >>> model.words[int(model.probabilities(["a", "?"], 1).argmax())]
    'cat'
    """
    corpus = list(sentences)
    count = Counter(word for sentence in corpus for word in sentence)
    words = tuple(sorted(count, key=lambda word: (-count[word], word)))
    numbers = {word: number for number, word in enumerate(words)}
    frequency = np.array([count[word] for word in words], dtype=np.float64)
    left: dict[Context, Counter[int]] = {}
    right: dict[Context, Counter[int]] = {}
    for sentence in corpus:
        ids = [_BORDER] * _REACH + [numbers[word] for word in sentence] + [_BORDER] * _REACH
        for here in range(_REACH, len(ids) - _REACH):
            for reach in (1, _REACH):
                left.setdefault(tuple(ids[here - reach : here][::-1]), Counter())[ids[here]] += 1
                right.setdefault(tuple(ids[here + 1 : here + 1 + reach]), Counter())[ids[here]] += 1
    return ContextModel(words, numbers, frequency / frequency.sum(), _arrays(left), _arrays(right))


def _arrays(contexts: Mapping[Context, Counter[int]]) -> dict[Context, Seen]:
    return {
        context: Seen(np.array(list(count), dtype=np.intp), np.array(list(count.values()), dtype=np.float64))
        for context, count in contexts.items()
    }


Mode = Literal["default", "compat"]


class Candidates(NamedTuple):
    """What may stand in the place of a word: texts with weights that sum to one, best first."""

    texts: tuple[str, ...]
    weights: FloatVector


Hidden = list[tuple[Words, int]]
"""Places to fill: texts with the number of the hidden word."""

Source = Callable[[Hidden], Sequence[Candidates]]


class Choice(NamedTuple):
    """Which candidates are kept and how they are weighted."""

    threshold: float
    top: int | None
    mode: Mode

    def of(self, texts: Sequence[str], probabilities: FloatVector) -> Candidates:
        """Return the candidates worth a probe; equally probable ones in the order given."""
        above = np.flatnonzero(probabilities > self.threshold)
        above = above if len(above) else np.array([probabilities.argmax()])
        kept = above[np.argsort(-probabilities[above], kind="stable")][: self.top]
        p = probabilities[kept]
        raw = np.exp(p - p.max()) if self.mode == "compat" or p.sum() == 0 else p
        return Candidates(tuple(texts[k] for k in kept.tolist()), raw / raw.sum())


def check_choice(owner: str, threshold: float, top: int | None, draws: int) -> None:
    """Refuse options out of range, for all infill maskers alike."""
    if not 0 <= threshold < 1:
        raise SpecError(f"{owner}: threshold is {threshold!r}, expected a probability of 0 or more and below 1")
    if top is not None and top < 1:
        raise SpecError(f"{owner}: top is {top!r}, expected 1 or more, or None for all")
    if draws < 1:
        raise SpecError(f"{owner}: draws is {draws!r}, expected 1 or more")


def render(texts: MaskedTexts, source: Source, draws: int) -> list[Probes]:
    """Return the texts for all masks, after asking the source once for every hidden word of every text."""
    hidden = [np.flatnonzero(~masks.all(axis=0)).tolist() for _, masks in texts]
    places = {
        (words.text, words.spans, word): (words, word)
        for (words, _), numbers in zip(texts, hidden, strict=True)
        for word in numbers
    }
    candidates = dict(zip(places, source(list(places.values())), strict=True))
    return [
        _probes(words, masks, {word: candidates[words.text, words.spans, word] for word in numbers}, draws)
        for (words, masks), numbers in zip(texts, hidden, strict=True)
    ]


def _probes(words: Words, masks: KeepMasks, candidates: Mapping[int, Candidates], draws: int) -> Probes:
    texts: list[str] = []
    rows: list[int] = []
    weights: list[FloatVector] = []
    for row, mask in enumerate(masks):
        filled, share = _fillings(words, mask, candidates, draws)
        texts += filled
        rows += [row] * len(filled)
        weights.append(share)
    return Probes(texts, rows, np.concatenate([np.zeros(0), *weights]))


def _fillings(
    words: Words, mask: KeepMasks, candidates: Mapping[int, Candidates], draws: int
) -> tuple[list[str], FloatVector]:
    """Return the texts that stand for one mask, and their weights."""
    hidden = np.flatnonzero(~mask).tolist()
    if not hidden:
        return [words.text], np.ones(1)
    if len(hidden) == 1:
        only = candidates[hidden[0]]
        return [_with(words, hidden, [text]) for text in only.texts], only.weights
    rng = generator(0, words.text, np.packbits(mask).tobytes().hex())
    drawn = [rng.choice(len(candidates[w].texts), size=draws, p=candidates[w].weights).tolist() for w in hidden]
    fillings = [
        [candidates[w].texts[k] for w, k in zip(hidden, choice, strict=True)] for choice in zip(*drawn, strict=True)
    ]
    return [_with(words, hidden, filling) for filling in fillings], np.full(draws, 1 / draws)


def _with(words: Words, hidden: Sequence[int], filling: Sequence[str]) -> str:
    """Return the text with other words in some places."""
    parts = []
    position = 0
    for word, text in zip(hidden, filling, strict=True):
        start, end = words.spans[word]
        parts += [words.text[position:start], text]
        position = end
    return "".join([*parts, words.text[position:]])


@dataclass(frozen=True, slots=True)
class Infill:
    """Hides a word behind words that a corpus has in such a place, by an n-gram model of both sides.

    `corpus` is the path of a text file, one text per line, or a tuple of texts. It must be named, as what the engine
    happens to render together must not change a result. `splitter` cuts it as the explained texts are cut. Without
    `top` there may be thousands of candidates per word, each of them a text to score.
    """

    corpus: str | tuple[str, ...]
    threshold: float = 1e-4
    top: int | None = None
    mode: Mode = "default"
    draws: int = 10
    splitter: Splitter = field(default=WhiteSpace(), metadata={"kind": "splitter"})

    def __post_init__(self) -> None:
        check_fields(self)
        check_choice("infill", self.threshold, self.top, self.draws)

    def render(self, texts: MaskedTexts) -> list[Probes]:
        model = self._model()
        choice = Choice(self.threshold, self.top, self.mode)

        def source(hidden: Hidden) -> list[Candidates]:
            return [choice.of(model.words, model.probabilities(list(words), word)) for words, word in hidden]

        return render(texts, source, self.draws)

    def _model(self) -> ContextModel:
        if isinstance(self.corpus, tuple):
            return _learn_texts(self.corpus, self.splitter)  # type: ignore[arg-type] # components are frozen, hence hashable
        return _learn_file(self.corpus, self.splitter)


@dataclass(frozen=True, slots=True)
class InfillFile:
    """Hides a word behind candidates from a file, so that any model can supply them.

    Each line is a JSON object: {"text": the whole text, "word": number of the word, from 0, "candidate": another
    word, "probability": 0 to 1}.
    """

    path: str = names_file()
    threshold: float = 1e-4
    top: int | None = None
    mode: Mode = "default"
    draws: int = 10

    def __post_init__(self) -> None:
        check_fields(self)
        check_choice("infill_file", self.threshold, self.top, self.draws)

    def render(self, texts: MaskedTexts) -> list[Probes]:
        table = _read_table(self.path)
        choice = Choice(self.threshold, self.top, self.mode)

        def source(hidden: Hidden) -> list[Candidates]:
            return [choice.of(*self._look_up(table, words, word)) for words, word in hidden]

        return render(texts, source, self.draws)

    def _look_up(self, table: "_Table", words: Words, word: int) -> tuple[list[str], FloatVector]:
        candidates = table.get((words.text, word))
        if candidates is None:
            name = words.text[slice(*words.spans[word])]
            raise DataError(f"no candidates for word {word} {name!r} of {words.text!r}; add its lines", file=self.path)
        return list(candidates), np.array(list(candidates.values()), dtype=np.float64)


_Table = dict[tuple[str, int], dict[str, float]]


def _lines(path: str) -> list[str]:
    return text_of(path).split("\n")


@lru_cache(maxsize=8)
def _learn_texts(texts: tuple[str, ...], splitter: Splitter) -> ContextModel:
    model = learn(list(splitter.split(text)) for text in texts)
    if not model.words:
        raise SpecError("infill: the corpus has no word; give texts, or the path of a text file, one text per line")
    return model


@read_once(8)
def _learn_file(path: str, splitter: Splitter) -> ContextModel:
    model = learn(list(splitter.split(line)) for line in _lines(path))
    if not model.words:
        raise DataError("has no word to learn from; give a text file, one text per line", file=path)
    return model


@read_once(8)
def _read_table(path: str) -> _Table:
    table: _Table = {}
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        text, word, candidate, probability = _record(line, path, number)
        options = table.setdefault((text, word), {})
        if candidate in options:
            raise DataError(f"candidate {candidate!r} of word {word} is given twice", file=path, line=number)
        options[candidate] = probability
    return table


def _record(line: str, path: str, number: int) -> tuple[str, int, str, float]:
    """Return the four fields of a line, checked."""
    match json_of(line, path, number):
        case {"text": str(text), "word": int(word), "candidate": str(candidate), "probability": int() | float() as p}:
            if 0 <= p <= 1 and math.isfinite(p) and word >= 0:
                return text, word, candidate, float(p)
    raise DataError(
        f"expected text, word (from 0), candidate and probability (0 to 1), found {line[:80]}", file=path, line=number
    )
