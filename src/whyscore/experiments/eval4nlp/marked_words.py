"""Categories of errors without labels: what kind of word is marked, and which kinds the systems find.

The shared task marks words as wrong and does not say why. This is what the texts alone can tell. Each
word has the first category that fits:

| category | a word that |
|---|---|
| `punctuation` | has no letter and no digit |
| `number` | has a digit |
| `repeated` | equals the word before it, in any case |
| `copied` | stands in the other text, in any case: a name, or untranslated |
| `unlinked` | has no link to the other text (`X.src-mt.alignments`): added, or in the source left out |
| `capitalised` | begins with a capital letter inside the sentence: a name |
| `rare`, `frequent` | is above the median surprisal of the words left, or not (`models.surprisal`) |

For every category: its words, the share of them that is marked, and for every system the share of the marked ones that
are among the K highest scores of their sentence, K being the number of marked words (recall at K by category); words
that are tied at the border count with the share of the places left.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal, get_args

import numpy as np

from whyscore.cli.options import Command, OutputSettings
from whyscore.cli.output import emit_result
from whyscore.data.formats.eval4nlp import SIDES, Gold, Judged, Submission
from whyscore.errors import DataError
from whyscore.experiments.eval4nlp.data import gold_links
from whyscore.experiments.eval4nlp.ranking import HandedInSettings, read_pairs
from whyscore.models.surprisal import piece_surprisal
from whyscore.stats.words import Ragged
from whyscore.types import FloatVector, Words
from whyscore.types.result import Record, Result, Table

Category = Literal["punctuation", "number", "repeated", "copied", "unlinked", "capitalised", "rare", "frequent"]
CATEGORIES: tuple[Category, ...] = get_args(Category)


@dataclass(frozen=True, repr=False)
class CategoryResult(Result):
    """Marked words by category."""

    rows: tuple[Record, ...]
    kind: ClassVar[str] = "eval4nlp-categories"

    def records(self) -> Iterator[Record]:
        return iter(self.rows)

    def tables(self, *, long: bool = False) -> list[Table]:
        del long
        table = Table.of(self.rows)
        notes = ("marked: share of these words that is marked; systems: share of the marked ones among the top K",)
        return [Table(table.columns, table.rows, best=frozenset(), notes=notes)]


def categories(pairs: Sequence[tuple[Gold, Sequence[Submission]]]) -> CategoryResult:
    """Return which kinds of words are marked, and how many of each kind the systems find.

    Args:
        pairs: Gold sets with their texts, and what was handed in for each.
    """
    return CategoryResult(tuple(row for gold, handed_in in pairs for row in _rows(gold, handed_in)))


def _rows(gold: Gold, submissions: Sequence[Submission]) -> Iterator[Record]:
    for side in SIDES:
        marks = gold.side(side)
        if marks is None:
            continue
        labels, tags = word_categories(gold, side), marks.tags
        recalls = {
            submission.name: top_shares(tags, submission.sides[side].scores)
            for submission in submissions
            if side in submission.sides
        }
        for category in CATEGORIES:
            here = labels == category
            marked = here & (tags.values > 0)
            row: dict[str, object] = {"gold": gold.name, "side": side, "category": category, "words": int(here.sum())}
            row |= {"marked": float(marked.sum() / here.sum()) if here.any() else None}
            row |= {"of_all_marked": float(marked.sum() / max(tags.values.sum(), 1))}
            yield row | {
                name: float(np.sort(recall[marked]).mean()) if marked.any() else None
                for name, recall in recalls.items()
            }


def word_categories(gold: Gold, side: Judged) -> "np.ndarray[tuple[int], np.dtype[np.str_]]":
    """Return the category of every word of a side, in the order of its tags."""
    words, other = gold.words(side), gold.words("source" if side == "target" else "target")
    tags = gold.side(side)
    if words is None or tags is None:
        raise DataError(f"{gold.name} has no words: categories are found by them")
    short = [k for k, tokens in enumerate(words) if len(tokens) != tags.tags.lengths[k]]
    if short:
        raise DataError(f"{len(words[short[0]])} words for {tags.tags.lengths[short[0]]} tags", line=short[0] + 1)
    linked = gold_links(gold)
    labels, surprisal = [], []
    for k, sentence in enumerate(words):
        other_words = {word.casefold() for word in other[k]} if other is not None else set()
        places = None if linked is None else {link[side == "target"] for link in linked[k]}
        labels += _categories(sentence, other_words, places)
        surprisal.append(piece_surprisal(sentence))
    values = np.concatenate(surprisal)
    left = np.array([label == "" for label in labels])
    middle = float(np.median(values[left])) if left.any() else 0.0
    return np.where(left, np.where(values > middle, "rare", "frequent"), labels)


def _categories(words: Words, other: set[str], linked: set[int] | None) -> list[str]:
    """Return the categories that the texts decide; an empty text for words that surprisal divides."""
    texts = [*words]
    folded = [word.casefold() for word in texts]
    repeated = [False, *(word == following for word, following in pairwise(folded))]
    return [
        "punctuation" if not any(map(str.isalnum, word))
        else "number" if any(map(str.isdigit, word))
        else "repeated" if repeated[k]
        else "copied" if folded[k] in other
        else "unlinked" if linked is not None and k not in linked
        else "capitalised" if k and word[0].isupper()
        else ""
        for k, word in enumerate(texts)
    ]  # fmt: skip


def top_shares(tags: Ragged, scores: Ragged) -> FloatVector:
    """Return for each word how much of it is among the K highest scores of its sentence, K marked words being there."""
    if not np.array_equal(tags.lengths, scores.lengths):
        raise DataError(
            "tags and scores differ in their number of sentences or words: whyscore validate names the lines"
        )
    shares = []
    for gold, row in zip(tags.rows(), scores.rows(), strict=True):
        above = (row[None, :] > row[:, None]).sum(axis=1)
        ties = (row[None, :] == row[:, None]).sum(axis=1)
        shares.append(np.clip((gold.sum() - above) / ties, 0.0, 1.0))
    return np.concatenate(shares) if shares else np.zeros(0)


_CATEGORIES = """\
examples:
  whyscore experiment eval4nlp-categories dev/et-en dev/ro-en --submission TEAM_A/ TEAM_B/
"""


@dataclass(frozen=True, kw_only=True)
class CategoriesCommand(OutputSettings, HandedInSettings):
    """What `eval4nlp-categories` takes."""


def run_categories(settings: CategoriesCommand) -> int:
    """Write which kinds of words are marked, and which of them the systems find."""
    emit_result(categories(read_pairs(settings.golds, settings.submissions, optional=True)), settings)
    return 0


EXPERIMENTS = {
    "eval4nlp-categories": Command(
        "which kinds of words are marked, and which of them systems find", _CATEGORIES, CategoriesCommand,
        run_categories, categories,
    ),
}  # fmt: skip
