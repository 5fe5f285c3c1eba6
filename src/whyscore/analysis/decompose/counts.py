"""What is counted beside a share: how often and how varied the words of a feature are, and how many of them were met.

1. `SpanCounts`: the spans of each feature in each segment; `discrepancy` compares hypotheses with references.
2. `count_words`: frequency, uniqueness and word F, after compare-mt (Neubig et al. 2019), by matching word forms.

All features of a text are counted while the text is at hand: a pass over the texts for every feature would take twice
as long where there are more texts than the processor's cache holds.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from whyscore.analysis.decompose.tagging import Marked, MarkedEntry, SpanCounts
from whyscore.marking import Span
from whyscore.text.placeholders import TokenRow


def discrepancy(counts: SpanCounts) -> dict[str, int]:
    """Return how often a feature is used less, more, or as often as in the references.

    `under` is below the smallest count of the references, `over` above the largest.

    >>> import numpy as np
    >>> discrepancy(SpanCounts(np.array([0, 3, 1]), np.array([2, 1, 1]), np.array([2, 1, 1])))
    {'under': 1, 'over': 1, 'equal': 1, 'missing': 1, 'invented': 0, 'absent': 0}
    """
    under, over = counts.hypothesis < counts.fewest, counts.hypothesis > counts.most
    none, expected = counts.hypothesis == 0, counts.most > 0
    kinds = {
        "under": under,
        "over": over,
        "equal": ~under & ~over,
        "missing": under & none,
        "invented": over & ~expected,
        "absent": none & ~expected,
    }
    return {kind: int(segments.sum()) for kind, segments in kinds.items()}


class Pairing(NamedTuple):
    """The numbers of the words of reference and hypothesis that have a partner of the same form."""

    reference: frozenset[int]
    hypothesis: frozenset[int]


def pair_rows(reference: Sequence[str], hypothesis: Sequence[str]) -> Pairing:
    """Return which words are met on the other side: of equal forms the first with the first, and so on.

    >>> pair_rows(["the", "cat"], ["the", "the", "dog"])
    Pairing(reference=frozenset({0}), hypothesis=frozenset({0}))
    """
    waiting: dict[str, list[int]] = defaultdict(list)
    for number in range(len(reference) - 1, -1, -1):
        waiting[reference[number]].append(number)
    pairs = [(waiting[form].pop(), number) for number, form in enumerate(hypothesis) if waiting.get(form)]
    return Pairing(frozenset(first for first, _ in pairs), frozenset(second for _, second in pairs))


@dataclass
class Met:
    """How many words of a feature were met, of those that the references have and of those that the hypotheses have."""

    both: int = 0
    expected: int = 0
    predicted: int = 0

    def add(self, pairing: Pairing, reference: frozenset[int], hypothesis: frozenset[int]) -> None:
        """Count the words of a segment that carry the feature.

        A paired hypothesis word takes its partner's label, the others keep their own.
        """
        here = len(reference & pairing.reference)
        self.both += here
        self.expected += len(reference)
        self.predicted += here + len(hypothesis - pairing.hypothesis)

    @property
    def scores(self) -> dict[str, float | None]:
        """Precision, recall and F; None where there are no words.

        >>> Met(both=1, expected=2, predicted=1).scores
        {'precision': 1.0, 'recall': 0.5, 'f': 0.6666666666666666}
        """
        precision = self.both / self.predicted if self.predicted else None
        recall = self.both / self.expected if self.expected else None
        f = None if precision is None or recall is None else 2 * self.both / (self.predicted + self.expected)
        return {"precision": precision, "recall": recall, "f": f}


@dataclass
class Usage:
    """The words that carry a feature on one side."""

    count: int = 0
    forms: set[str] = field(default_factory=set)

    @property
    def uniqueness(self) -> float | None:
        """Distinct forms / occurrences; None where there are none."""
        return len(self.forms) / self.count if self.count else None


class Cutting(NamedTuple):
    """The words of a text, and which of them carry each feature that the text has, by the feature's place."""

    forms: Sequence[str]
    carriers: Mapping[int, frozenset[int]]


class FeatureWords(NamedTuple):
    """What was counted of the words of one feature."""

    met: Met
    frequency: dict[str, float | None]
    """Words with the feature / words, by side; None without words."""
    uniqueness: dict[str, float | None]


@dataclass(frozen=True)
class Cutter:
    """Cuts each text into words once."""

    tokens: Callable[[Marked], TokenRow]
    _known: dict[int, Cutting] = field(default_factory=dict, repr=False, compare=False)

    def cut(self, text: Marked) -> Cutting:
        """Return the words of a text with the features they carry."""
        cutting = self._known.get(text.number)
        if cutting is None:
            tokens = self.tokens(text)
            carriers = {
                place: carriers_of(tokens.starts, tokens.ends, spans) for place, spans in enumerate(text.spans) if spans
            }
            cutting = self._known[text.number] = Cutting(tokens.texts, carriers)
        return cutting


def count_words(entries: Iterable[MarkedEntry], features: int, cutter: Cutter) -> list[FeatureWords]:
    """Return what is counted of the words of each feature.

    Words are met in the reference that meets most; segments without reference meet none.
    """
    met = [Met() for _ in range(features)]
    sides = {side: [Usage() for _ in range(features)] for side in ("reference", "hypothesis")}
    words = dict.fromkeys(sides, 0)
    nothing: frozenset[int] = frozenset()
    for entry in entries:
        hypothesis, references = cutter.cut(entry.hypothesis), [cutter.cut(text) for text in entry.references]
        for side, cutting in (("hypothesis", hypothesis), *(("reference", cutting) for cutting in references)):
            words[side] += len(cutting.forms)
            for feature, carriers in cutting.carriers.items():
                usage = sides[side][feature]
                usage.count += len(carriers)
                usage.forms.update([cutting.forms[k] for k in carriers])
        if references:
            pairs = [(pair_rows(reference.forms, hypothesis.forms), reference) for reference in references]
            pairing, reference = max(pairs, key=lambda pair: len(pair[0].reference))
            for feature in reference.carriers.keys() | hypothesis.carriers.keys():
                carried = reference.carriers.get(feature, nothing), hypothesis.carriers.get(feature, nothing)
                met[feature].add(pairing, *carried)
    return [
        FeatureWords(
            met[feature],
            {side: usages[feature].count / words[side] if words[side] else None for side, usages in sides.items()},
            {side: usages[feature].uniqueness for side, usages in sides.items()},
        )
        for feature in range(features)
    ]


def carriers_of(starts: Sequence[int], ends: Sequence[int], spans: Sequence[Span]) -> frozenset[int]:
    """Return the numbers of the words that a feature's spans overlap.

    >>> sorted(carriers_of([0, 3, 7], [2, 6, 9], [(4, 8)]))
    [1, 2]
    """
    numbers: set[int] = set()
    for start, end in spans:
        numbers.update(range(bisect_right(ends, start), bisect_left(starts, end)))
    return frozenset(k for k in numbers if starts[k] < ends[k])
