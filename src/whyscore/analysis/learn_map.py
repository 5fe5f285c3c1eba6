"""Maps between languages, learned from translated texts.

1. Draw `limit` pairs with 1 to 99 words and at most 175 pieces a side: 2,000 as in the published maps (`compat`), or
   30,000 as in Leiter 2021 (`paper`). The draw depends on the seed and the texts, not on their order.
2. Encode both sides; a word's vector is the mean of its pieces, special pieces never, not scaled to unit length.
3. Link words: as given; by mutual nearest neighbours in two rounds, the second after a first projection (`argmax`); or
   by IBM model 1 (`ibm1`).
4. Sum what the maps need over all links, block by block, and solve (`whyscore.models.maps`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import DataError
from whyscore.models.encoders.loading import encoder as load_encoder
from whyscore.models.maps import Gram, LanguageMap, Link, encoder_facts, ibm1, mutual_nearest
from whyscore.protocols import Encoded, Encoder, Splitter
from whyscore.registry import build
from whyscore.settings import Seeded, option, takes
from whyscore.text.alignment import Pieces, align
from whyscore.types import Words

Aligner = Literal["argmax", "ibm1"]

_MOST_WORDS = 99
_MOST_PIECES = 175
_BLOCK = 256
_ROUNDS = 2
_PAIRS = {"compat": 2_000, "paper": 30_000}


class WordVectors(NamedTuple):
    """The words of one text that have pieces, and the mean vector of each."""

    numbers: NDArray[np.intp]
    vectors: NDArray[np.float64]


class _Pair(NamedTuple):
    source: Words
    target: Words
    links: tuple[Link, ...] | None


@dataclass(frozen=True, kw_only=True)
class LearnMapSettings(Seeded):
    """How a map between two languages is learnt."""

    model: str | Encoder = option("embedded", "embedded, static, a folder or a hub name", metavar="NAME", basic=True)
    layer: int | None = option(
        None, "layer of the model; must be the layer that the metric uses", metavar="N", basic=True
    )
    aligner: Aligner = option("argmax", "how words are linked: mutual nearest neighbours or IBM model 1", basic=True)
    mode: Literal["compat", "paper"] = option(
        "compat", "number of pairs: 2000, as for the published maps (compat), or 30000, as in Leiter (2021) (paper)"
    )
    limit: int | None = option(
        None,
        "learn from N suitable pairs, sampled by content (default: set by --mode)",
        flags=("--pairs",),
        least=1,
        metavar="N",
        basic=True,
    )
    languages: tuple[str, ...] = option((), "source and target language, stored in the map", line=False)
    unit: str | Splitter = option("word", "how texts are split into words; links are word positions", line=False)


@takes(LearnMapSettings)
def learn_map(
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    alignments: Sequence[Sequence[Link]] | None = None,
    settings: LearnMapSettings,
) -> LanguageMap:
    """Return the projection and the mismatch direction from the sources' language to that of the targets.

    Args:
        sources: One text per line of a corpus.
        targets: Their translations.
        alignments: The links of each pair, where they are known; `aligner` is not used then.
        settings: The encoder, and how words are linked.
    """
    model, unit = settings.model, settings.unit
    encoder = load_encoder(model, settings.layer) if isinstance(model, str) else model
    splitter = cast("Splitter", build(unit, "splitter")) if isinstance(unit, str) else unit
    drawn = _pairs(sources, targets, alignments, splitter, settings.seed)
    pairs = _short_pairs(encoder, drawn, settings.limit or _PAIRS[settings.mode])
    pairs.sort(key=lambda pair: (pair.source.text, pair.target.text, pair.links))  # sums in another order would differ
    aligner = "given" if alignments is not None else settings.aligner
    if aligner == "ibm1":
        linked = ibm1([list(pair.source) for pair in pairs], [list(pair.target) for pair in pairs])
        pairs = [pair._replace(links=links) for pair, links in zip(pairs, linked, strict=True)]
    facts = encoder_facts(encoder.signature()) | {"aligner": aligner, "pairs": str(len(pairs))}
    if settings.languages:
        facts["languages"] = "-".join(settings.languages)
    return _learn(encoder, pairs, facts)


def _learn(encoder: Encoder, pairs: Sequence[_Pair], facts: dict[str, str]) -> LanguageMap:
    """Return the maps; where no links are known, a first map finds the links of the second."""
    learnt: LanguageMap | None = None
    for _ in range(_ROUNDS if facts["aligner"] == "argmax" else 1):
        gram: Gram | None = None
        for pair, source, target in _encode_blocks(encoder, pairs):
            gram = gram or Gram(source.vectors.shape[1])
            links = pair.links if pair.links is not None else _nearest(source, target, learnt)
            here, there = _rows(source, target, links)
            gram.add(source.vectors[here], target.vectors[there])
        if gram is None:
            raise DataError("no pair of texts to learn from: every text is empty or too long")
        learnt = gram.solve(facts)
    return cast("LanguageMap", learnt)


def word_vectors(words: Words, encoded: Encoded) -> WordVectors:
    """Return the mean vector of the pieces of each word; words without pieces are left out."""
    real = np.flatnonzero(~encoded.special)
    spans = [(int(start), int(end)) for start, end in encoded.spans[real]]
    pairs = align(words, Pieces(spans, [encoded.pieces[piece] for piece in real.tolist()]))
    numbers, begin, count = np.unique(pairs.word, return_index=True, return_counts=True)
    rows = encoded.vectors[real[pairs.piece]].astype(np.float64)
    sums = np.add.reduceat(rows, begin) if len(begin) else rows
    return WordVectors(numbers.astype(np.intp), sums / count[:, None])


def _pairs(
    sources: Sequence[str],
    targets: Sequence[str],
    alignments: Sequence[Sequence[Link]] | None,
    splitter: Splitter,
    seed: int,
) -> Iterator[_Pair]:
    """Yield the pairs with a fit number of words, in an order of chance that depends on the seed and the texts alone.

    Links that point nowhere are an error.
    """
    counts = {len(sources), len(targets), len(sources if alignments is None else alignments)}
    if len(counts) > 1:
        lines = "" if alignments is None else f", {len(alignments)} lines of links"
        raise DataError(f"{len(sources)} sources, {len(targets)} targets{lines}: every line needs its counterpart")
    links = [None] * len(sources) if alignments is None else [tuple(line) for line in alignments]

    def draw(row: int) -> bytes:
        content = f"{seed}:{len(sources[row])}:{sources[row]}{targets[row]}{links[row]}"
        return blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).digest()

    for row in sorted(range(len(sources)), key=draw):
        pair = _Pair(splitter.split(sources[row]), splitter.split(targets[row]), links[row])
        if any(s >= len(pair.source) or t >= len(pair.target) for s, t in links[row] or ()):
            shape = f"{len(pair.source)} and {len(pair.target)} words"
            raise DataError(f"a link points outside the texts of {shape}", line=row + 1)
        if 0 < len(pair.source) <= _MOST_WORDS and 0 < len(pair.target) <= _MOST_WORDS:
            yield pair


def _short_pairs(encoder: Encoder, pairs: Iterator[_Pair], limit: int) -> list[_Pair]:
    """Return as many pairs as the limit says that are not cut into too many pieces."""
    short: list[_Pair] = []
    block: list[_Pair] = []
    for pair in pairs:
        block.append(pair)
        if len(block) == min(_BLOCK, limit - len(short)):
            short += _short(encoder, block)
            block = []
        if len(short) == limit:
            return short
    return short + _short(encoder, block)


def _short(encoder: Encoder, block: Sequence[_Pair]) -> list[_Pair]:
    sides = [encoder.encode([words.text for words in side]) for side in _sides(block)]
    sizes = [[encoded.total - int(encoded.special.sum()) for encoded in side] for side in sides]
    return [pair for pair, *here in zip(block, *sizes, strict=True) if max(here) <= _MOST_PIECES]


def _sides(pairs: Sequence[_Pair]) -> tuple[list[Words], list[Words]]:
    return [pair.source for pair in pairs], [pair.target for pair in pairs]


def _encode_blocks(encoder: Encoder, pairs: Sequence[_Pair]) -> Iterator[tuple[_Pair, WordVectors, WordVectors]]:
    for start in range(0, len(pairs), _BLOCK):
        block = pairs[start : start + _BLOCK]
        here, there = (encoder.encode([words.text for words in side]) for side in _sides(block))
        for pair, source, target in zip(block, here, there, strict=True):
            yield pair, word_vectors(pair.source, source), word_vectors(pair.target, target)


def _nearest(source: WordVectors, target: WordVectors, language_map: LanguageMap | None) -> tuple[Link, ...]:
    """Return links between words by their numbers in the texts."""
    here = source.vectors if language_map is None else language_map.apply(source.vectors, "clp")
    similarity = _unit(here) @ _unit(target.vectors).T
    return tuple((int(source.numbers[i]), int(target.numbers[j])) for i, j in mutual_nearest(similarity))


def _rows(source: WordVectors, target: WordVectors, links: Sequence[Link]) -> tuple[list[int], list[int]]:
    """Return the rows of linked words; a link to a word without pieces is left out."""
    here = {number: row for row, number in enumerate(source.numbers.tolist())}
    there = {number: row for row, number in enumerate(target.numbers.tolist())}
    pairs = [(here[s], there[t]) for s, t in links if s in here and t in there]
    return [row for row, _ in pairs], [row for _, row in pairs]


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)
