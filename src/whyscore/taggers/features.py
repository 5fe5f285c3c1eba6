"""Which stretches of a tagged text carry a feature: the expressions users write.

| expression | selects |
|---|---|
| `upos:NOUN`, `ent:PERSON`, `dep:nsubj`, `xpos:NN` | that label |
| `dep:obl*`, `JJ*` | all labels that begin so |
| `feats:Gender`, `feats:Gender=Fem` | morphology by any key, with any value or one |
| `distance:7+`, `distance:3-6`, `distance:1` | words whose head is that far away; `distance:7+:both` the heads too |
| `words:he,she`, `list:FILE`, `regex:...` | word lists and patterns, whatever the tagger |
| `number`, `negation` ... | a rule, whatever the tagger, unless the tagger has a label of that name |
| `NOUN`, `PERSON`, `Number`, `NN` | a label without its kind, or the tag of a file |
| `NOUN=NN,NNS` | several of these under one name |
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache

from whyscore.errors import SpecError, UnknownName
from whyscore.marking import Span
from whyscore.protocols import Tagged
from whyscore.taggers.lexicon import PREFIXES, find_matches, pattern_of, split_name
from whyscore.taggers.rules import RULES, finder
from whyscore.text.placeholders import merge_spans

UPOS = (
    "ADJ",
    "ADP",
    "ADV",
    "AUX",
    "CCONJ",
    "DET",
    "INTJ",
    "NOUN",
    "NUM",
    "PART",
    "PRON",
    "PROPN",
    "PUNCT",
    "SCONJ",
    "SYM",
    "VERB",
    "X",
)
_DISTANCE = re.compile(r"distance:(\d+)(?:-(\d+)|(\+))?(:both)?")
_KINDS = ("upos", "ent", "feats", "dep", "xpos")
_DEFAULT_KINDS = ("upos", "ent")


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature with its name in results and the expressions that select it."""

    name: str
    parts: tuple[str, ...]

    @property
    def text_parts(self) -> tuple[str, ...]:
        """The parts that are searched for in the text itself."""
        return tuple(part for part in self.parts if part.startswith(PREFIXES))


def parse_feature(expression: str) -> Feature:
    """Return the feature that an expression stands for.

    >>> parse_feature("NOUN=NN,NNS")
    Feature(name='NOUN', parts=('NN', 'NNS'))
    """
    text = expression.strip()
    name, body = split_name(text) if "=" in text else (text, text)
    parts = (body,) if body.startswith(PREFIXES) else tuple(part.strip() for part in body.split(","))
    if not all(parts):
        raise SpecError(f"cannot read the feature {expression!r}: write a label such as NOUN, or NAME=LABEL,LABEL")
    for part in parts:
        _check(part)
    return Feature(name, parts)


def parse_features(expressions: Iterable[str]) -> tuple[Feature, ...]:
    """Return the features in order; two of the same name are refused."""
    features: dict[str, Feature] = {}
    for feature in map(parse_feature, expressions):
        if feature.name in features:
            raise SpecError(f"the feature {feature.name!r} is requested twice; give one of them another name, NAME=...")
        features[feature.name] = feature
    return tuple(features.values())


@dataclass(frozen=True)
class Selection:
    """Finds the spans of several features in tagged texts.

    `first_key` reads only the first key of each word's morphology, as the published tables do.
    """

    features: tuple[Feature, ...]
    language: str = "en"
    tagger_labels: frozenset[str] = frozenset()
    first_key: bool = False
    _known: dict[tuple[str, ...], tuple[int, ...]] = field(default_factory=dict, repr=False, compare=False)

    def spans(self, text: str, tagged: Sequence[Tagged]) -> list[tuple[Span, ...]]:
        """Return the spans of each feature, in order, overlapping ones merged."""
        by_feature: list[list[Span]] = [[] for _ in self.features]
        for start, end, labels in tagged:
            for number in self._numbers(labels):
                by_feature[number].append((start, end))
        for number, feature in enumerate(self.features):
            for part in feature.text_parts:
                by_feature[number] += find_matches(pattern_of(part), text)
            for rule in self._rules(feature):
                by_feature[number] += finder(rule, self.language)(text)
        return [merge_spans(spans) for spans in by_feature]

    def _rules(self, feature: Feature) -> list[str]:
        return [part for part in feature.parts if part in RULES and part not in self.tagger_labels]

    def _numbers(self, labels: tuple[str, ...]) -> tuple[int, ...]:
        """Return which features a stretch with these labels carries; cached, as labels recur."""
        numbers = self._known.get(labels)
        if numbers is None:
            read = _first_keys(labels) if self.first_key else labels
            numbers = tuple(
                number
                for number, feature in enumerate(self.features)
                if any(carries(label, part) for part in feature.parts for label in read)
            )
            self._known[labels] = numbers
        return numbers


@lru_cache(maxsize=1 << 16)
def carries(label: str, part: str) -> bool:
    """Return whether a label is what a part of an expression asks for.

    >>> carries("upos:NOUN", "NOUN"), carries("feats:Gender=Fem", "feats:Gender"), carries("distance:9", "distance:7+")
    (True, True, True)
    """
    distance = _DISTANCE.fullmatch(part)
    if distance:
        return _within(label, distance)
    if label == part:
        return True
    kind, colon, value = label.partition(":")
    bare = value if colon and kind in _KINDS else label
    part_kind, part_colon, part_value = part.partition(":")
    if part_colon and part_kind in _KINDS:
        if kind != part_kind or not colon:
            return False
        part = part_value
    if kind == "feats" and "=" not in part:
        bare = bare.partition("=")[0]
    return fnmatchcase(bare, _escape(part))


def default_features(text_labels: Iterable[str], labels: Sequence[str] | None) -> tuple[str, ...]:
    """Return the default features, where the user named none.

    These are a tagger's own labels where it has a closed list, else the parts of speech and entities that were found,
    else every label that was found.
    """
    if labels is not None:
        return tuple(labels)
    seen = set(text_labels)
    usual = {label for label in seen if label.startswith(tuple(f"{kind}:" for kind in _DEFAULT_KINDS))}
    return tuple(sorted(usual or seen, key=lambda label: (_place(label), label)))


def check_known(features: Iterable[Feature], labels: Sequence[str] | None) -> None:
    """Refuse parts that a tagger with a closed list of labels cannot give."""
    if labels is None:
        return
    for feature in features:
        for part in feature.parts:
            if part.startswith(PREFIXES) or part in RULES or any(carries(label, part) for label in labels):
                continue
            raise UnknownName.among("feature", part, labels)


def _check(part: str) -> None:
    kind, _, value = part.partition(":")
    if kind == "upos" and "*" not in value and value not in UPOS:
        raise UnknownName.among("part of speech", value, UPOS)
    if kind == "distance" and not _DISTANCE.fullmatch(part):
        raise SpecError(f"cannot read {part!r}: write distance:1, distance:3-6, distance:7+ or distance:7+:both")
    if part.startswith(("regex:", "words:", "list:")):
        pattern_of(part)


def _within(label: str, match: "re.Match[str]") -> bool:
    kind, _, value = label.partition(":")
    if kind != "distance" and not (kind == "head" and match[4]):
        return False
    low = int(match[1])
    high = float("inf") if match[3] else int(match[2] or low)
    return value.isdecimal() and low <= int(value) <= high


def _escape(part: str) -> str:
    """Return the part as a pattern in which only * means something."""
    return re.sub(r"[\[\]?]", lambda match: f"[{match.group()}]", part)


def _first_keys(labels: tuple[str, ...]) -> tuple[str, ...]:
    keys = [label for label in labels if label.startswith("feats:")]
    return tuple(label for label in labels if label not in keys[1:])


def _place(label: str) -> int:
    kind = label.partition(":")[0]
    return _KINDS.index(kind) if kind in _KINDS else len(_KINDS)
