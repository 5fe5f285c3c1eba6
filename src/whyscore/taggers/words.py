"""What a parsed word becomes: the labels it carries, the same for every parser and file.

| label | from |
|---|---|
| `upos:NOUN`, `xpos:NN` | part of speech, universal and of the language |
| `feats:Number=Sing` | each key of the morphology |
| `dep:nsubj` | relation to the head |
| `distance:4`, `head:4` | how many words away the head is; on the head, how far away a dependent is |
| `ent:PERSON` | named entities, over their whole span |

Roots and punctuation have no distance.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from whyscore.protocols import Tagged

_UNSET = frozenset({"", "_"})


class Word(NamedTuple):
    """One word of a parse; `head` is the number of its head in the list of words, None for a root."""

    start: int
    end: int
    upos: str = ""
    xpos: str = ""
    feats: tuple[str, ...] = ()
    relation: str = ""
    head: int | None = None


def tagged_words(words: Sequence[Word]) -> list[Tagged]:
    """Return the words of one sentence with their labels; words that share a span are one.

    >>> tagged_words([Word(0, 4, "NOUN"), Word(5, 8, "VERB")])[0].features
    ('upos:NOUN',)
    """
    reached: dict[int, list[str]] = {}
    labels = []
    for number, word in enumerate(words):
        own = [f"{kind}:{value}" for kind, value in _plain(word) if value not in _UNSET]
        own += [f"feats:{pair}" for pair in word.feats]
        if word.head is not None and word.upos != "PUNCT":
            away = abs(word.head - number)
            own.append(f"distance:{away}")
            reached.setdefault(word.head, []).append(f"head:{away}")
        labels.append(own)
    by_span: dict[tuple[int, int], dict[str, None]] = {}
    for number, (word, own) in enumerate(zip(words, labels, strict=True)):
        by_span.setdefault((word.start, word.end), {}).update(dict.fromkeys([*own, *reached.get(number, ())]))
    return [Tagged(start, end, tuple(found)) for (start, end), found in by_span.items()]


def entities(labels: Iterable[tuple[int, int, str]]) -> list[Tagged]:
    """Return entities from one BIO or BIOES label per word (start, end, label).

    >>> entities([(0, 3, "B-GPE"), (4, 8, "E-GPE"), (9, 11, "O")])
    [Tagged(start=0, end=8, features=('ent:GPE',))]
    """
    found: list[Tagged] = []
    open_kind: str | None = None
    for start, end, label in labels:
        place, _, kind = label.partition("-")
        if not kind:
            open_kind = None
        elif place in ("I", "E") and open_kind == kind:
            found[-1] = found[-1]._replace(end=end)
        else:
            found.append(Tagged(start, end, (f"ent:{kind}",)))
            open_kind = kind
        if place in ("E", "S", "L", "U"):
            open_kind = None
    return found


def _plain(word: Word) -> tuple[tuple[str, str], ...]:
    return (("upos", word.upos), ("xpos", word.xpos), ("dep", word.relation))
