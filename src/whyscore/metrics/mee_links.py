"""Which word matched which, and how: the alignment behind MEE (Mukherjee et al. 2020), as arithmetic over words.

With h words in the hypothesis, r in the reference and D = 0.9 r + 0.1 h, F (beta = 3) of m matches is m / D. Matches
are counted cumulatively (exact; exact and root; all three), and MEE is the mean of the three F:

    MEE = (3 exact + 2 root + synonym) / (3 D)

so that every matched word carries a credit: exact 1, root 2/3, synonym 1/3.

`paper`: each word is used once. Exact matches pair equal words in order; root matches pair words of one stem, the
nearest relative positions first; all other matches are pairs by descending cosine, then by distance of their relative
positions, then by order.

`compat`, what the published score files contain: only reference words are used up. Exact matches as above; then each
hypothesis word, also one that matched already, takes the first reference word left whose cosine reaches the lower
threshold, and the higher threshold decides whether that was a root match or a synonym.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.types import FloatMatrix, FloatVector

Kind = Literal["exact", "root", "synonym"]

CREDITS: Mapping[Kind, float] = {"exact": 1.0, "root": 2 / 3, "synonym": 1 / 3}
MARKS: Mapping[str, str] = {"exact": "=", "root": "~", "synonym": "≈", "none": "·"}
"""How a match is marked where there are no colours."""

_REFERENCE_SHARE, _HYPOTHESIS_SHARE = 0.9, 0.1  # beta = 3: recall counts nine times as much as precision


class Link(NamedTuple):
    """Two matched words, by their numbers; `similarity` is their cosine where that made the match."""

    hypothesis: int
    reference: int
    kind: Kind
    similarity: float | None = None


class Counts(NamedTuple):
    """The matches of one pair of texts, and the words of both."""

    exact: int
    root: int
    synonym: int
    hypothesis: int
    reference: int

    @property
    def denominator(self) -> float:
        """D = 0.9 r + 0.1 h; one where a side is empty, as nothing matches then."""
        if not self.hypothesis or not self.reference:
            return 1.0
        # Whole numbers first, so that identical texts have exactly D = r.
        return (9 * self.reference + self.hypothesis) / 10

    @property
    def lms(self) -> float:
        """MEE itself.

        >>> round(Counts(exact=1, root=1, synonym=0, hypothesis=1, reference=2).lms, 6)
        0.877193
        """
        return (3 * self.exact + 2 * self.root + self.synonym) / (3 * self.denominator)

    @property
    def modules(self) -> tuple[float, float, float]:
        """F of the exact matches, of these and the root matches, and of all."""
        exact, root = self.exact, self.exact + self.root
        whole = self.denominator
        return exact / whole, root / whole, (root + self.synonym) / whole


def counted(links: Iterable[Link], hypothesis: int, reference: int) -> Counts:
    """Return how many matches of each kind there are."""
    kinds = [link.kind for link in links]
    return Counts(kinds.count("exact"), kinds.count("root"), kinds.count("synonym"), hypothesis, reference)


def exact_links(hypothesis: Sequence[str], reference: Sequence[str]) -> list[Link]:
    """Return the pairs of equal words, the first with the first, the second with the second.

    >>> exact_links(["the", "the"], ["the"])
    [Link(hypothesis=0, reference=0, kind='exact', similarity=None)]
    """
    places: dict[str, list[int]] = {}
    for place, word in enumerate(reference):
        places.setdefault(word, []).append(place)
    waiting = {word: iter(found) for word, found in places.items()}
    links = []
    for number, word in enumerate(hypothesis):
        partner = next(waiting[word], None) if word in waiting else None
        if partner is not None:
            links.append(Link(number, partner, "exact"))
    return links


def stem_links(hypothesis: Mapping[int, str], reference: Mapping[int, str], lengths: tuple[int, int]) -> list[Link]:
    """Return the pairs of words with one stem, those at the nearest relative positions first.

    Args:
        hypothesis: The stems of the words left, by the words' numbers.
        reference: The same of the other side.
        lengths: How many words the two texts have.
    """
    groups: dict[str, list[int]] = {}
    for place, stem in reference.items():
        groups.setdefault(stem, []).append(place)
    pairs = [
        (_distance(number, place, lengths), number, place)
        for number, stem in hypothesis.items()
        for place in groups.get(stem, ())
    ]
    return [Link(number, place, "root") for number, place in _free((n, p) for _, n, p in sorted(pairs))]


def best_links(
    cosines: FloatMatrix,
    places: tuple[Sequence[int], Sequence[int]],
    lengths: tuple[int, int],
    *,
    root: float | None,
    synonym: float,
) -> list[Link]:
    """Return the pairs of words by descending cosine.

    Args:
        cosines: Hypothesis words left x reference words left; below any threshold where a word is unknown.
        places: The numbers of these words in their texts.
        lengths: How many words the two texts have.
        root: From which cosine on a match is one of the root; None where stems were compared.
        synonym: From which cosine on there is a match.
    """
    here, there = np.nonzero(cosines >= synonym)
    rows, columns = np.asarray(places[0], dtype=np.intp)[here], np.asarray(places[1], dtype=np.intp)[there]
    found = cosines[here, there]
    apart = np.abs((rows + 0.5) / max(1, lengths[0]) - (columns + 0.5) / max(1, lengths[1]))
    order = np.lexsort((columns, rows, apart, -found))
    pairs = list(zip(rows[order].tolist(), columns[order].tolist(), strict=True))
    cosine = dict(zip(pairs, found[order].tolist(), strict=True))
    return [
        Link(*pair, "root" if root is not None and cosine[pair] >= root else "synonym", cosine[pair])
        for pair in _free(pairs)
    ]


def first_links(
    cosines: FloatMatrix, places: tuple[Sequence[int], Sequence[int]], *, root: float, synonym: float
) -> list[Link]:
    """Return for each hypothesis word in order the first reference word left that is similar enough."""
    left = np.ones(len(places[1]), dtype=np.bool_)
    hits = cosines >= synonym
    links = []
    for row in np.flatnonzero(hits.any(axis=1)).tolist():
        open_hits = hits[row] & left
        if open_hits.any():
            column = int(open_hits.argmax())
            left[column] = False
            cosine = float(cosines[row, column])
            links.append(Link(places[0][row], places[1][column], "root" if cosine >= root else "synonym", cosine))
    return links


def credit_of(links: Iterable[Link], words: int, *, on_hypothesis: bool) -> FloatVector:
    """Return the credit of each word of one side; a hypothesis word of `compat` may have two."""
    result = np.zeros(words, dtype=np.float64)
    for link in links:
        result[link.hypothesis if on_hypothesis else link.reference] += CREDITS[link.kind]
    return result


def losses(given: FloatVector, whole: float, *, on_hypothesis: bool) -> FloatVector:
    """Return what each word of one side costs; over both sides the costs add up to 1 - MEE."""
    share = _HYPOTHESIS_SHARE if on_hypothesis else _REFERENCE_SHARE
    return share * (1.0 - given) / whole


def cosine_matrix(
    rows: FloatMatrix, known: NDArray[np.bool_], here: Sequence[int], there: Sequence[int]
) -> FloatMatrix:
    """Return the cosines of words, by their numbers in a table of unit rows; -2 where one of them is unknown.

    Rounded to twelve decimals: equal words have equal cosines, wherever they stand.
    """
    own, other = np.asarray(here, dtype=np.intp), np.asarray(there, dtype=np.intp)
    both = known[own][:, None] & known[other][None, :]
    return np.where(both, np.round(rows[own] @ rows[other].T, 12), -2.0)


def _distance(number: int, place: int, lengths: tuple[int, int]) -> float:
    return abs((number + 0.5) / lengths[0] - (place + 0.5) / lengths[1])


def _free(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the pairs in order, each word in one of them, sorted by the hypothesis."""
    used: set[int] = set()
    taken: dict[int, int] = {}
    for number, place in pairs:
        if number not in taken and place not in used:
            taken[number] = place
            used.add(place)
    return sorted(taken.items())
