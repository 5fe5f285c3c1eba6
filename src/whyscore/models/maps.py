"""Maps that bring the vectors of one language nearer to those of another (Zhao et al. 2020, arXiv 2005.01196).

Rows of X are vectors of source words, rows of Z those of the words they are linked to.

1. Linear projection (CLP): X'Z = U D V', W = UV', the orthogonal matrix with the least |XW - Z|; applied as x W.
2. Mismatch direction (UMD): v, the direction in which X - Z is longest (top eigenvector of (X-Z)'(X-Z), not centred);
   applied as x - (x.v) v.
3. Both need X'Z and (X-Z)'(X-Z) only, which are summed block by block in float64: the memory is O(d^2) whatever the
   corpus.

A file, `.npz` or `.safetensors`, holds both maps and says for which model and layer they were learned. Published maps
are text, one row of numbers a line, and both kinds can be d x d: such a file is taken as a projection or, by its first
row, as a direction, whichever is asked for. A vector is a direction.

Links between words, from which maps are learned:

- Mutual nearest neighbours: i and j are linked if each is the other's nearest by cosine.
- IBM model 1 (Brown et al. 1993), for texts alone:
  1. t(target word | source word) is estimated by expectation maximisation over all pairs that occur together, with an
     empty source word beside the others; once in each direction.
  2. Each word is linked to its most probable partner, or to none.
  3. Links of both directions are kept; links of one direction beside a kept one (also diagonally) join them as long as
     one of their two words has no link yet.
"""

import hashlib
import io
import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import DataError, SpecError
from whyscore.models.lexicon import EMPTY, Indices, Sentence, cooccurrences, estimate
from whyscore.models.tensors import read_tensors, write_tensors
from whyscore.text.files import UNREADABLE_ARRAYS, write_whole
from whyscore.types import FloatMatrix, FloatVector, Signature, read_only

Kind = Literal["clp", "umd"]
"""Which of the two maps is applied."""

Vectors = NDArray[np.float64] | NDArray[np.float32]

_FACTS = "facts"


@dataclass(frozen=True, eq=False)
class LanguageMap:
    """A projection W (d x d) and a mismatch direction v (d), either of which may be absent, and where they come from.

    `facts` are texts: model, revision, layer, languages, pairs, links, aligner.
    """

    projection: FloatMatrix | None
    direction: FloatVector | None
    facts: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.projection is None and self.direction is None:
            raise DataError("a map needs a projection or a direction, got neither")
        for name in ("projection", "direction"):
            numbers = getattr(self, name)
            object.__setattr__(self, name, None if numbers is None else read_only(numbers))

    @property
    def width(self) -> int:
        """The length of the vectors that can be mapped."""
        return len(cast("FloatVector", self.direction if self.projection is None else self.projection))

    @property
    def digest(self) -> str:
        """A short name for the numbers."""
        whole = hashlib.blake2b(digest_size=6)
        for numbers in (self.projection, self.direction):
            whole.update(b"-" if numbers is None else np.ascontiguousarray(numbers, dtype="<f8").tobytes())
        return whole.hexdigest()

    def apply(self, vectors: Vectors, which: Kind) -> NDArray[np.float64]:
        """Return mapped vectors, one per row."""
        rows = np.asarray(vectors, dtype=np.float64)
        if which == "clp":
            return rows @ self._need(self.projection, "projection (clp)")
        direction = self._need(self.direction, "direction (umd)")
        return rows - np.outer(rows @ direction, direction)

    def check(self, name: str, encoder: Signature, width: int) -> None:
        """Refuse vectors the map was not learned for; `name` says which map in the message."""
        if width != self.width:
            raise SpecError(f"{name} maps vectors of {self.width} numbers, the model gives {width}")
        for key, value in encoder_facts(encoder).items():
            learned = self.facts.get(key, value)
            if learned != value:
                raise SpecError(f"{name} was learned for {key} {learned}, the metric uses {key} {value}; learn it anew")

    def _need(self, numbers: FloatMatrix | None, what: str) -> FloatMatrix:
        if numbers is None:
            raise SpecError(f"the map has no {what}; choose the other one")
        return numbers


class Gram:
    """Sums X'Z and (X-Z)'(X-Z) over blocks of linked words."""

    def __init__(self, width: int) -> None:
        self._cross = np.zeros((width, width))
        self._difference = np.zeros((width, width))
        self.links = 0

    def add(self, source: Vectors, target: Vectors) -> None:
        """Add linked words, one per row."""
        here, there = np.asarray(source, dtype=np.float64), np.asarray(target, dtype=np.float64)
        self._cross += here.T @ there
        apart = here - there
        self._difference += apart.T @ apart
        self.links += len(here)

    def solve(self, facts: Mapping[str, str] | None = None) -> LanguageMap:
        """Return both maps; the direction's largest number is positive, so that equal data give equal files."""
        if not self.links:
            raise DataError("no linked words to learn a map from")
        left, _, right = np.linalg.svd(self._cross)
        direction = np.linalg.eigh(self._difference).eigenvectors[:, -1]
        direction *= np.sign(direction[np.argmax(np.abs(direction))])
        return LanguageMap(left @ right, direction, {**(facts or {}), "links": str(self.links)})


def encoder_facts(signature: Signature) -> dict[str, str]:
    """Return the facts of an encoder that its maps depend on."""
    facts = dict(signature.facts)
    return {"model": signature.spec} | {key: facts[key] for key in ("rev", "layer") if key in facts}


def write_map(learned: LanguageMap, path: str | Path) -> None:
    """Write a map; the ending of the path, .npz or .safetensors, says how."""
    target = Path(path)
    numbers = {"projection": learned.projection, "direction": learned.direction}
    present = {name: array for name, array in numbers.items() if array is not None}
    facts = dict(learned.facts) | {"digest": learned.digest}
    if target.suffix == ".npz":
        content = io.BytesIO()
        np.savez(content, allow_pickle=False, **present, **{_FACTS: np.array(json.dumps(facts))})
        write_whole(target, content.getvalue())
    elif target.suffix == ".safetensors":
        write_tensors(target, present, facts)
    else:
        raise SpecError(f"cannot write a map to {str(path)!r}: end the name in .npz or .safetensors")


def read_map(path: str | Path) -> LanguageMap:
    """Return the map in a file: .npz, .safetensors, or numbers as text or as NumPy writes them, whatever the name."""
    target = Path(path)
    if not target.is_file():
        raise DataError(f"no map {str(path)!r}: learn one with learn_map", file=str(path))
    readers = {".npz": _read_npz, ".safetensors": _read_safetensors}
    try:
        language_map = readers.get(target.suffix, _read_numbers)(target)
    except DataError:
        raise
    except UNREADABLE_ARRAYS as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"cannot be read as a map: {reason}", file=str(path)) from error
    _check(language_map, str(path))
    stored = language_map.facts.get("digest", language_map.digest)
    if stored != language_map.digest:
        raise DataError(f"its numbers are not those it was written with (digest {stored})", file=str(path))
    return language_map


def _check(language_map: LanguageMap, path: str) -> None:
    """Refuse numbers that are no map: W is square, v as long as it is wide, all of them are finite."""
    width = language_map.width
    for numbers, shape in ((language_map.projection, (width, width)), (language_map.direction, (width,))):
        if numbers is not None and (numbers.dtype.kind != "f" or numbers.shape != shape):
            raise DataError(f"expected numbers of the shape {shape}, found {numbers.dtype} {numbers.shape}", file=path)
        if numbers is not None and not np.isfinite(numbers).all():
            raise DataError("holds a number that is not finite", file=path)
    if not isinstance(language_map.facts, dict) or not all(
        isinstance(fact, str) for fact in language_map.facts.values()
    ):
        raise DataError("what it says of itself is no list of texts by name", file=path)


def _read_npz(path: Path) -> LanguageMap:
    # Opened here, as numpy leaves a file open that it cannot read.
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        numbers = {name: stored[name] for name in stored.files}
    facts = json.loads(str(numbers.pop(_FACTS, "{}")))
    return LanguageMap(numbers.get("projection"), numbers.get("direction"), facts)


def _read_safetensors(path: Path) -> LanguageMap:
    numbers, facts = read_tensors(path)
    for name, values in numbers.items():
        if values.dtype.kind != "f":
            raise DataError(f"expected floats as {name}, found {values.dtype}", file=str(path))
    floats = {name: values.astype(np.float64) for name, values in numbers.items()}
    return LanguageMap(floats.get("projection"), floats.get("direction"), facts)


def _read_numbers(path: Path) -> LanguageMap:
    """Return the map in a matrix of numbers; the published ones of XMoverScore are NumPy binaries without a suffix."""
    with path.open("rb") as file:
        binary = file.read(len(_NUMPY)) == _NUMPY
        file.seek(0)
        numbers = np.atleast_2d(np.load(file, allow_pickle=False)) if binary else _read_text(path)
    numbers = numbers.astype(np.float64)
    if numbers.ndim != 2:  # noqa: PLR2004 - rows and columns
        raise DataError(f"expected a matrix of numbers, found the shape {numbers.shape}", file=str(path))
    if not numbers.size or not np.isfinite(numbers).all():
        raise DataError("expected rows of finite numbers", file=str(path))
    rows, width = numbers.shape
    direction = numbers[:, 0] if width == 1 else numbers[0]
    length = float(np.linalg.norm(direction))
    if not length > 0:
        raise DataError("the first row, which would be the direction, has no length", file=str(path))
    return LanguageMap(numbers if rows == width else None, direction / length)


def _read_text(path: Path) -> FloatMatrix:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of files without a number, which are refused by the caller
        return np.loadtxt(path, dtype=np.float64, ndmin=2)


_NUMPY = b"\x93NUMPY"

Link = tuple[int, int]
"""Numbers of a source and a target word, from zero."""

_DIGITS = 9  # a text of a billion words is none


def read_links(lines: Iterable[str], *, file: str | None = None) -> list[tuple[Link, ...]]:
    """Return the links of each line in Pharaoh's format.

    >>> read_links(["0-0 1-2"])
    [((0, 0), (1, 2))]
    """
    links_by_line = []
    for number, line in enumerate(lines, start=1):
        links = []
        for part in line.split():
            source, dash, target = part.partition("-")
            if not (dash and _place(source) and _place(target)):
                raise DataError(f"expected links such as 0-0 1-2, found {part!r}", file=file, line=number)
            links.append((int(source), int(target)))
        links_by_line.append(tuple(links))
    return links_by_line


def _place(digits: str) -> bool:
    """Return whether these are the digits of a place in a text."""
    return digits.isdecimal() and len(digits) <= _DIGITS


def mutual_nearest(similarity: FloatMatrix) -> tuple[Link, ...]:
    """Return the links between rows and columns that are each other's nearest; the first wins among equals.

    >>> mutual_nearest(np.array([[0.9, 0.1], [0.8, 0.2]]))
    ((0, 0),)
    """
    if not similarity.size:
        return ()
    forth, back = similarity.argmax(axis=1), similarity.argmax(axis=0)
    rows = np.flatnonzero(back[forth] == np.arange(len(forth)))
    return tuple((int(row), int(forth[row])) for row in rows)


def ibm1(sources: Sequence[Sentence], targets: Sequence[Sentence]) -> list[tuple[Link, ...]]:
    """Return the links of each pair of texts by IBM model 1 in both directions."""
    forth = _best(sources, targets)
    back = _best(targets, sources)
    links = []
    for best_sources, best_targets in zip(forth, back, strict=True):
        here = {(int(s), t) for t, s in enumerate(best_sources.tolist()) if s >= 0}
        there = {(s, int(t)) for s, t in enumerate(best_targets.tolist()) if t >= 0}
        links.append(grow_links(here, there))
    return links


def grow_links(here: set[Link], there: set[Link]) -> tuple[Link, ...]:
    """Return the common links, and those of one side that touch a kept one and have a word without a link.

    >>> grow_links({(0, 0), (1, 1)}, {(0, 0)})
    ((0, 0), (1, 1))
    """
    links, waiting = here & there, sorted(here ^ there)
    added = True
    while added:
        added = False
        for source, target in waiting:
            near = any((source + i, target + j) in links for i in (-1, 0, 1) for j in (-1, 0, 1))
            free = all(s != source for s, _ in links) or all(t != target for _, t in links)
            if (source, target) not in links and near and free:
                links.add((source, target))
                added = True
    return tuple(sorted(links))


def _best(sources: Sequence[Sentence], targets: Sequence[Sentence]) -> list[Indices]:
    """Return for each target word the place of its most probable source word, -1 for the empty one."""
    numbers = dict.fromkeys([EMPTY, *(word for text in (*sources, *targets) for word in text)])
    together = cooccurrences(sources, targets, {word: number for number, word in enumerate(numbers)})
    lengths = [len(target) for target in targets]
    probability = estimate(together, sum(lengths))
    # Sorted by slot and then by rising probability, so that the last of each slot is the best.
    order = np.lexsort((probability[together.cell], together.slot))
    last = np.append(np.flatnonzero(np.diff(together.slot[order])), len(order) - 1) if len(order) else order
    best = np.full(sum(lengths), -1, dtype=np.intp)
    best[together.slot[order][last]] = together.place[order][last]
    return np.split(best, np.cumsum(lengths)[:-1]) if lengths else []
