r"""Features that need no model: patterns, and short word lists per language.

| rule | definition |
|---|---|
| `number` | `\d+(?:[.,]\d+)*` |
| `punctuation` | each character that is neither a word character nor white space |
| `capitalised` | runs of word characters whose first is upper case |
| `quotation` | quotation marks |
| `url` | web and mail addresses |
| `negation`, `gendered_pronoun`, `third_person_pronoun` | words of a list, whatever their case |

Lists are complete for English. For a language without one the rule does not exist, which is said, rather than that it
found nothing.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from whyscore.errors import SpecError
from whyscore.marking import Span
from whyscore.protocols import Tagged
from whyscore.registry import spec_of
from whyscore.settings import check_fields
from whyscore.text.stemming import language_code
from whyscore.types import Signature

_GENDERED = "he she him her his hers himself herself"
_WORD_LISTS: dict[str, dict[str, str]] = {
    "negation": {
        "de": r"nicht nichts nie niemals niemand niemandem niemanden nirgends nirgendwo weder kein(?:e[mnrs]?)?",
        "en": r"no not never nothing nobody none neither nor nowhere cannot \w+n['’]t",
        "es": r"no ni nunca jamás nada nadie ning(?:ún|un[oa]s?) tampoco",
        "fr": r"ne pas jamais rien personne aucune? null?e? ni",
    },
    "gendered_pronoun": {"en": _GENDERED},
    "third_person_pronoun": {"en": f"{_GENDERED} they them their theirs themselves themself"},
}
_PATTERNS = {
    "number": re.compile(r"\d+(?:[.,]\d+)*"),
    "punctuation": re.compile(r"[^\w\s]"),
    "quotation": re.compile(r"[\"“”„‟«»‹›「」『』]"),
    "url": re.compile(r"(?:https?://|www\.)[^\s<>\"]*[^\s<>\".,;:!?)\]]|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
}
_RUNS = re.compile(r"\w+")

RULES = (
    "number",
    "punctuation",
    "capitalised",
    "negation",
    "gendered_pronoun",
    "third_person_pronoun",
    "quotation",
    "url",
)

Finder = Callable[[str], Iterator[Span]]


@dataclass(frozen=True, slots=True)
class Rules:
    """Finds numbers, punctuation, capitalised words, negation, pronouns, quotation marks and addresses; no model.

    Args:
        language: whose word lists are used; None takes the language of the data, or English.
    """

    language: str | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    def signature(self) -> Signature:
        return Signature(spec_of(self), (("language", self.language or "en"), ("rules", "1")))

    def labels(self) -> tuple[str, ...]:
        return available(self.language or "en")

    def tag(self, texts: Sequence[str]) -> list[tuple[Tagged, ...]]:
        finders = [(rule, finder(rule, self.language or "en")) for rule in self.labels()]
        return [
            tuple(sorted(Tagged(start, end, (rule,)) for rule, find in finders for start, end in find(text)))
            for text in texts
        ]


def available(language: str) -> tuple[str, ...]:
    """Return the rules that exist for a language.

    >>> "negation" in available("en"), "negation" in available("ru")
    (True, False)
    """
    code = language_code(language)
    return tuple(rule for rule in RULES if rule not in _WORD_LISTS or code in _WORD_LISTS[rule])


@lru_cache(maxsize=64)
def finder(rule: str, language: str) -> Finder:
    """Return the function that finds a rule's spans in a text."""
    if rule == "capitalised":
        return _find_capitalised
    if rule in _PATTERNS:
        return _matches(_PATTERNS[rule])
    lists, code = _WORD_LISTS[rule], language_code(language)
    if code not in lists:
        raise SpecError(
            f"rules has no list of {rule} for {language!r}, only for {', '.join(sorted(lists))}: "
            "give the words yourself with words:... or list:FILE, or use another tagger"
        )
    return _matches(whole_words(lists[code].split()))


def whole_words(patterns: Sequence[str]) -> "re.Pattern[str]":
    """Return the pattern of whole words, whatever their case."""
    return re.compile(rf"(?<!\w)(?:{'|'.join(patterns)})(?!\w)", re.IGNORECASE)


def _matches(pattern: "re.Pattern[str]") -> Finder:
    def find(text: str) -> Iterator[Span]:
        return (match.span() for match in pattern.finditer(text) if match.group())

    return find


def _find_capitalised(text: str) -> Iterator[Span]:
    return (match.span() for match in _RUNS.finditer(text) if match.group()[0].isupper())
