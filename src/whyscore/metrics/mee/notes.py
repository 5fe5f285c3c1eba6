"""What the alignment of MEE says of each word: importance, and which word matched it how."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from whyscore.metrics.lexical.ngrams import NOT_READ
from whyscore.metrics.mee.words import CREDITS, MARKS, Alignment, Link, Side, credit_of, losses
from whyscore.metrics.spans import touching
from whyscore.types import FloatVector, WordMatch, Words, WordScores

_CREDITS = {"exact": "1", "root": "2/3", "synonym": "1/3"}


def word_matches(
    words: Words, alignments: Sequence[Alignment], *, on_hypothesis: bool
) -> tuple[tuple[WordMatch, ...], ...]:
    """Return for each of some words how the words of MEE in it were matched.

    A word of `compat` may have two partners, and a word such as `day.` holds two words of MEE.
    """
    found: list[list[WordMatch]] = [[] for _ in words.spans]
    for number, alignment in enumerate(alignments):
        own, other = (alignment.hypothesis, alignment.reference)[:: 1 if on_hypothesis else -1]
        links = _by_word(alignment, on_hypothesis=on_hypothesis)
        for k, touched in enumerate(touching(own.words.spans, words)):
            for place in touched:
                text = own.forms[place]
                if not links[place]:
                    unknown = text in alignment.no_vector
                    found[k].append(WordMatch(text, "none", MARKS["none"], 0.0, alignment=number, unknown=unknown))
                found[k] += [_with_partner(text, link, other, number, on_hypothesis) for link in links[place]]
    return tuple(map(tuple, found))


def _with_partner(text: str, link: Link, other: Side, alignment: int, on_hypothesis: bool) -> WordMatch:  # noqa: FBT001
    partner = link.reference if on_hypothesis else link.hypothesis
    start, end = other.words.spans[partner]
    return WordMatch(
        text=text,
        label=link.kind,
        mark=MARKS[link.kind],
        credit=CREDITS[link.kind],
        partner=partner,
        partner_text=other.forms[partner],
        start=start,
        end=end,
        similarity=link.similarity,
        alignment=alignment,
    )


def explained(
    words: Words,
    alignments: Sequence[Alignment],
    weight: float,
    *,
    on_hypothesis: bool,
    view: Literal["credit", "loss"],
) -> WordScores:
    """Return importance and note of each word, the mean over several alignments.

    A word of MEE that lies in several of the words asked about counts for them in equal parts.

    Args:
        words: The words asked about.
        alignments: What matched, one per reference.
        weight: How much LMS counts in the score.
        on_hypothesis: Which side is asked about.
        view: What a word earns, or minus what it costs.
    """
    importance = np.zeros(len(words), dtype=np.float64)
    notes: list[list[str]] = [[] for _ in words.spans]
    for alignment in alignments:
        side = alignment.hypothesis if on_hypothesis else alignment.reference
        values = weight * _values(alignment, on_hypothesis=on_hypothesis, view=view)
        told = _told(alignment, on_hypothesis=on_hypothesis)
        touched = touching(side.words.spans, words)
        owners = np.zeros(len(values), dtype=np.float64)
        for numbers in touched:
            owners[numbers.start : numbers.stop] += 1
        for number, numbers in enumerate(touched):
            importance[number] += sum(values[k] / owners[k] for k in numbers) / len(alignments)
            notes[number].append(_joined([side.forms[k] for k in numbers], [told[k] for k in numbers]))
    matches = word_matches(words, alignments, on_hypothesis=on_hypothesis)
    return WordScores(importance, tuple(" | ".join(note) for note in notes), matches)


def _values(alignment: Alignment, *, on_hypothesis: bool, view: str) -> FloatVector:
    counts = alignment.counts
    words = counts.hypothesis if on_hypothesis else counts.reference
    credit = credit_of(alignment.links, words, on_hypothesis=on_hypothesis)
    if view == "credit":
        return credit / counts.denominator
    # Adding zero turns -0.0, the cost of a word that matched exactly, into 0.0.
    return 0.0 - losses(credit, counts.denominator, on_hypothesis=on_hypothesis) + 0.0


def _told(alignment: Alignment, *, on_hypothesis: bool) -> list[str]:
    """Return for each word what matched it."""
    own, other = (alignment.hypothesis, alignment.reference)[:: 1 if on_hypothesis else -1]
    links = _by_word(alignment, on_hypothesis=on_hypothesis)
    return [
        ", ".join(_match(link, other.forms, on_hypothesis=on_hypothesis) for link in found)
        or f"{MARKS['none']} none" + (", no vector" if word in alignment.no_vector else "")
        for word, found in zip(own.forms, links, strict=True)
    ]


def _by_word(alignment: Alignment, *, on_hypothesis: bool) -> list[list[Link]]:
    """Return the matches of each word of one side."""
    side = alignment.hypothesis if on_hypothesis else alignment.reference
    links: list[list[Link]] = [[] for _ in side.forms]
    for link in alignment.links:
        links[link.hypothesis if on_hypothesis else link.reference].append(link)
    return links


def _match(link: Link, other: Sequence[str], *, on_hypothesis: bool) -> str:
    """Return a match in words, such as `≈ synonym 'dog' (word 4, cosine 0.45, credit 1/3)`."""
    partner = link.reference if on_hypothesis else link.hypothesis
    cosine = "" if link.similarity is None else f"cosine {link.similarity:.2f}, "
    place = f"word {partner + 1}, {cosine}credit {_CREDITS[link.kind]}"
    return f"{MARKS[link.kind]} {link.kind} {other[partner]!r} ({place})"


def _joined(forms: Sequence[str], notes: Sequence[str]) -> str:
    if len(notes) == 1:
        return notes[0]
    return "; ".join(f"{form} {note}" for form, note in zip(forms, notes, strict=True)) or NOT_READ
