"""Words that people marked in a data set, by one or several annotators: gold tags, agreement, ceiling.

| column (in any case) | content |
|---|---|
| `tags`, `tgt_tags` | tags of the hypothesis' words: a list, or a text with blanks |
| `src_tags` | the same for the source |
| `annotations` | a list of `{annotator, side, tags}` |
| spans, errors | error spans; a word is marked where any of its characters is |

1. Tags come first, spans where there are none. A segment without either was not rated and is an error.
2. Words stand between blanks (U+0020), because tags are given for them.
3. Of several annotators the majority is the gold. Their agreement is kappa per sentence and pair, and pooled
   (`stats.annotators`); the human ceiling is each annotator's tags judged against the majority of the others.
4. Continuous gold: each system's scores against the share of annotators who marked a word.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from whyscore.analysis.metaeval.result import AnnotatorAgreement, ContinuousResult, SystemResult, WordsResult
from whyscore.analysis.metaeval.settings import MetaevalWordsSettings
from whyscore.analysis.metaeval.words import judge
from whyscore.data.files import read_lines
from whyscore.data.formats.eval4nlp import SIDES, SPLITTER, Gold, GoldSide, Judged, Scored, Submission, refuse
from whyscore.data.formats.word_lines import TAGS, tag_lines
from whyscore.data.located import Located
from whyscore.data.naming import system_names
from whyscore.errors import DataError
from whyscore.stats.annotators import PairAgreement, continuous, majority, pair_agreements, shares
from whyscore.stats.words import Ragged
from whyscore.types import Dataset, Entry, FloatVector, Side, Words

_COLUMNS: dict[Judged, tuple[str, ...]] = {"target": ("tags", "tgt_tags"), "source": ("src_tags",)}
_PLACES: dict[Judged, Side] = {"target": Side.HYPOTHESIS, "source": Side.SOURCE}
_ALIASES: dict[object, Judged] = {"target": "target", "hypothesis": "target", "mt": "target", "source": "source"}
_VALUES = TAGS | {"FALSE": 0.0, "TRUE": 1.0}


class Annotators(NamedTuple):
    """The tags of several annotators, per side; an empty row where one did not see a sentence."""

    names: tuple[str, ...]
    tags: Mapping[Judged, tuple[Ragged, ...]]


def gold_of(dataset: Dataset, *, human: str | None = None) -> Gold:
    """Return the gold in a data set; `human` names the sentence score (default: the first there is)."""
    annotators = annotators_of(dataset)
    sides = {}
    for side in SIDES:
        words = _words(dataset, side)
        if annotators is not None and side in annotators.tags:
            tags: Ragged | None = majority(annotators.tags[side])
        else:
            tags = _tags(dataset, side, words)
        if tags is not None:
            sides[side] = GoldSide(tags, dataset.name, words)
    if "target" not in sides:
        raise DataError(
            f"{dataset.name} marks no words: give error spans, a column 'tags' with one 0 or 1 per word, or --gold"
        )
    ids = tuple(entry.id if len(dataset.systems) == 1 else f"{entry.system}/{entry.id}" for entry in dataset.entries)
    return Gold(
        dataset.name,
        "eval4nlp2021",
        sides["target"],
        sides.get("source"),
        _human(dataset, human),
        ids,
        sources=_words(dataset, "source"),
        languages=dataset.languages,
    )


def annotators_of(dataset: Dataset) -> Annotators | None:
    """Return the annotations in a data set, if it has any."""
    given = [_column(entry, ("annotations",)) for entry in dataset.entries]
    if all(value is None for value in given):
        return None
    tags_by_row: dict[tuple[str, str], dict[int, list[float]]] = {}
    for row, value in enumerate(given):
        for one in value if isinstance(value, list) else []:
            if not isinstance(one, Mapping) or "annotator" not in one or "tags" not in one:
                raise _error(dataset, row, f"an annotation is {one!r}, expected annotator, side and tags")
            side = _side(dataset, row, one.get("side", "target"))
            words = SPLITTER.split(_text(dataset.entries[row], side) or "")
            tags_by_row.setdefault((side, str(one["annotator"])), {})[row] = _row(dataset, row, one["tags"], words)
    names = tuple(dict.fromkeys(name for _, name in tags_by_row))
    tags: dict[Judged, tuple[Ragged, ...]] = {}
    for side in SIDES:
        rows = [tags_by_row.get((side, name), {}) for name in names]
        if any(rows):
            tags[side] = tuple(Ragged.of([one.get(k, []) for k in range(len(dataset))]) for one in rows)
    return Annotators(names, tags)


def _side(dataset: Dataset, row: int, name: object) -> Judged:
    if name not in _ALIASES:
        raise _error(dataset, row, f"side is {name!r}, expected target or source")
    return _ALIASES[name]


def _tags(dataset: Dataset, side: Judged, words: Sequence[Words] | None) -> Ragged | None:
    if words is None:
        return None
    given = [_column(entry, _COLUMNS[side]) for entry in dataset.entries]
    rows: list[list[float]] = []
    for row, (entry, value) in enumerate(zip(dataset.entries, given, strict=True)):
        if value is not None:
            rows.append(_row(dataset, row, value, words[row]))
        elif entry.spans is not None:
            rows.append(_tags_from_spans(entry, side, words[row]))
        elif all(one is None for one in given) and all(one.spans is None for one in dataset.entries):
            return None
        else:
            raise _error(dataset, row, "has neither tags nor spans, but other segments have: leave it out")
    # Spans that never touch the source say nothing of it.
    if all(value is None for value in given) and side == "source" and not any(map(any, rows)):
        return None
    return Ragged.of(rows)


def _row(dataset: Dataset, row: int, value: object, words: Words) -> list[float]:
    cells = value.split() if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else [value]
    tags = [_VALUES.get(str(cell).upper().removesuffix(".0")) for cell in cells]
    for cell, tag in zip(cells, tags, strict=True):
        if tag is None:
            raise _error(dataset, row, f"{cell!r} is no tag: expected 0 or 1, OK or BAD")
    if len(tags) != len(words):
        raise _error(dataset, row, f"{len(tags)} tags for {len(words)} words")
    return [tag for tag in tags if tag is not None]


def _tags_from_spans(entry: Entry, side: Judged, words: Words) -> list[float]:
    spans = [span for span in entry.spans or () if span.side is _PLACES[side] and span.severity != "neutral"]
    return [float(any(span.start < end and start < span.end for span in spans)) for start, end in words.spans]


def _words(dataset: Dataset, side: Judged) -> tuple[Words, ...] | None:
    texts = [_text(entry, side) for entry in dataset.entries]
    if any(text is None for text in texts):
        return None
    return tuple(SPLITTER.split(text or "") for text in texts)


def _text(entry: Entry, side: Judged) -> str | None:
    return entry.segment.hypothesis if side == "target" else entry.segment.source


def _column(entry: Entry, names: Sequence[str]) -> object:
    return next(
        (value for name, value in entry.extra.items() if name.lower() in names and value not in ("", None)), None
    )


def _human(dataset: Dataset, name: str | None) -> FloatVector | None:
    known = dict.fromkeys(key for entry in dataset.entries for key in entry.human)
    if name is None:
        if not known:
            return None
        name = next(iter(known))
    values = dataset.human(name)
    return None if np.isnan(values).all() else values


def _error(dataset: Dataset, row: int, message: str) -> DataError:
    if isinstance(dataset, Located) and dataset.origin is not None:
        origin = dataset.origin
        file = origin.hypotheses.get(dataset.entries[row].system)
        return DataError(message, file=file, line=origin.lines[row])
    return DataError(f"segment {dataset.entries[row].id}: {message}")


def read_annotators(paths: Sequence[str | Path]) -> Annotators:
    """Return the tags of the target in one file per annotator."""
    tags = []
    for path in paths:
        parsed = tag_lines(read_lines(path), str(path))
        refuse([finding for finding in parsed.findings if finding.error])
        tags.append(parsed.values)
    return Annotators(tuple(system_names(paths)), {"target": tuple(tags)})


def gold_by_majority(annotators: Annotators, gold: Gold | None = None, name: str = "annotators") -> Gold:
    """Return gold whose target tags are the majority; texts and sentence scores come from `gold`, if given."""
    if "target" not in annotators.tags:
        raise DataError("the annotators tagged no target words: nothing to judge")
    tags = majority(annotators.tags["target"])
    if gold is None:
        return Gold(name, "eval4nlp2021", GoldSide(tags, name))
    if not np.array_equal(tags.lengths, gold.target.tags.lengths):
        raise DataError(f"the annotators tagged other sentences or words than {gold.name} has: align them first")
    return replace(gold, target=GoldSide(tags, name, gold.target.words))


def annotator_agreement(annotators: Annotators, gold: Gold, settings: MetaevalWordsSettings) -> AnnotatorAgreement:
    """Return how far annotators agree, and each judged as a system against the majority of the others."""
    pairs: dict[Judged, dict[tuple[str, str], PairAgreement]] = {}
    for side, tags in annotators.tags.items():
        agreements = pair_agreements(tags)
        pairs[side] = {(annotators.names[i], annotators.names[j]): pair for (i, j), pair in agreements.items()}
    return AnnotatorAgreement(annotators.names, pairs, _ceiling(annotators, gold, settings))


def with_annotators(result: WordsResult, annotators: Annotators) -> WordsResult:
    """Return a result with the agreement of the annotators, and of each system with their shares."""
    systems = tuple(replace(one, continuous=against_shares(annotators, one)) for one in result.systems)
    agreement = annotator_agreement(annotators, result.gold, result.settings)
    return replace(result, systems=systems, annotators=agreement)


def against_shares(annotators: Annotators, result: SystemResult) -> dict[Judged, ContinuousResult]:
    """Return how well a system's scores follow the share of annotators who marked a word."""
    results: dict[Judged, ContinuousResult] = {}
    for side, tags in annotators.tags.items():
        own = result.sides.get(side)
        if own is None or own.scores is None:
            continue
        gold = shares(tags)
        if np.array_equal(gold.lengths, own.scores.lengths):
            results[side] = _means(gold, own.scores)
    return results


def _means(gold: Ragged, scores: Ragged) -> ContinuousResult:
    values = continuous(gold, scores)
    known = [column[~np.isnan(column)] for column in values]
    pearson, spearman, weighted = (float(column.mean()) if len(column) else float("nan") for column in known)
    return ContinuousResult(pearson, spearman, weighted, len(known[-1]))


def _ceiling(annotators: Annotators, gold: Gold, settings: MetaevalWordsSettings) -> tuple[SystemResult, ...]:
    """Return each annotator against the others; with two there is one other, whose word is taken."""
    tags = annotators.tags["target"]
    ceiling = []
    for k, name in enumerate(annotators.names):
        others = [*tags[:k], *tags[k + 1 :]]
        against = majority(others) if len(others) > 1 else others[0]
        seen = (tags[k].lengths > 0) & (against.lengths > 0)
        side = GoldSide(against.chosen(seen), gold.target.file)
        scored = Scored(tags[k].chosen(seen), name)
        one = Submission(f"annotator {name}", {"target": scored})
        ceiling.append(judge(Gold(gold.name, gold.task, side), one, replace(settings, drop_eos=False), baseline=True))
    return tuple(ceiling)
