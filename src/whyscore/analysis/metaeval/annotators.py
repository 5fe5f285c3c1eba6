"""Words that people marked in a data set, by one or several annotators: gold tags, agreement, ceiling.

| column (in any case) | content |
|---|---|
| `tags`, `tgt_tags` | tags of the hypothesis' words: a list, or a text with blanks |
| `src_tags` | the same for the source |
| `annotations` | a list of `{annotator, side, tags, score}`; tags of a side, a score of the sentence, or both |
| spans, errors | error spans; a word is marked where any of its characters is |

1. Tags come first, spans where there are none. A segment without either was not rated and is an error.
2. Words stand between blanks (U+0020), because tags are given for them.
3. Of several annotators the majority is the gold. Their agreement is kappa per sentence and pair, and pooled
   (`stats.annotators`); the human ceiling is each annotator's tags judged against the majority of the others. Sentence
   scores: Pearson of each pair on the sentences both scored; their mean over annotators is the gold score.
4. Continuous gold: each system's scores against the share of annotators who marked a word.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from whyscore.analysis.metaeval.result import (
    AnnotatorAgreement,
    ContinuousResult,
    SideResult,
    SystemResult,
    WordsResult,
)
from whyscore.analysis.metaeval.settings import MetaevalWordsSettings
from whyscore.analysis.metaeval.words import judge_side
from whyscore.data.files import read_lines
from whyscore.data.formats.eval4nlp import SIDES, SPLITTER, Gold, GoldSide, Judged, Scored, join_id, read_gold, refuse
from whyscore.data.formats.word_lines import TAGS, tag_lines
from whyscore.data.naming import system_names
from whyscore.errors import DataError
from whyscore.stats.annotators import PairAgreement, continuous, majority, pair_agreements, score_agreements, shares
from whyscore.stats.words import Ragged
from whyscore.types import Dataset, Entry, FloatMatrix, FloatVector, Side, Words

_COLUMNS: dict[Judged, tuple[str, ...]] = {"target": ("tags", "tgt_tags"), "source": ("src_tags",)}
_PLACES: dict[Judged, Side] = {"target": Side.HYPOTHESIS, "source": Side.SOURCE}
_ALIASES: dict[object, Judged] = {"target": "target", "hypothesis": "target", "mt": "target", "source": "source"}
_VALUES = TAGS | {"FALSE": 0.0, "TRUE": 1.0}


class Annotators(NamedTuple):
    """The tags of several annotators, per side; an empty row where one did not see a sentence."""

    names: tuple[str, ...]
    tags: Mapping[Judged, tuple[Ragged, ...]]
    scores: FloatMatrix | None = None
    """Annotators x sentences, NaN where one gave no score."""


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
    several = len(dataset.systems) > 1
    ids = tuple(join_id(entry.system, entry.id) if several else entry.id for entry in dataset.entries)
    return Gold(
        dataset.name,
        "eval4nlp2021",
        sides["target"],
        sides.get("source"),
        _human(dataset, human) if human is not None or annotators is None else _mean_score(annotators),
        ids,
        sources=_words(dataset, "source"),
        languages=dataset.languages,
        several=several,
    )


def annotators_of(dataset: Dataset) -> Annotators | None:
    """Return the annotations in a data set, if it has any."""
    columns = [_column(entry, ("annotations",)) for entry in dataset.entries]
    if all(value is None for value in columns):
        return None
    tags_by_row: dict[tuple[str, str], dict[int, list[float]]] = {}
    scores: dict[str, dict[int, float]] = {}
    for row, value in enumerate(columns):
        for annotation in value if isinstance(value, list) else []:
            if (
                not isinstance(annotation, Mapping)
                or "annotator" not in annotation
                or not {"tags", "score"} & set(annotation)
            ):
                raise _error(
                    dataset, row, f"an annotation is {annotation!r}, expected annotator, side and tags, or score"
                )
            annotator_scores = scores.setdefault(str(annotation["annotator"]), {})
            if "score" in annotation:
                annotator_scores[row] = _score(dataset, row, annotation["score"])
            if "tags" in annotation:
                side = _side(dataset, row, annotation.get("side", "target"))
                words = SPLITTER.split(_text(dataset.entries[row], side) or "")
                tags_by_row.setdefault((side, str(annotation["annotator"])), {})[row] = _row(
                    dataset, row, annotation["tags"], words
                )
    tags: dict[Judged, tuple[Ragged, ...]] = {}
    for side in SIDES:
        rows = [tags_by_row.get((side, name), {}) for name in scores]
        if any(rows):
            tags[side] = tuple(Ragged.of([row.get(k, []) for k in range(len(dataset))]) for row in rows)
    matrix = np.array([[row.get(k, np.nan) for k in range(len(dataset))] for row in scores.values()])
    return Annotators(tuple(scores), tags, None if np.isnan(matrix).all() else matrix)


def _score(dataset: Dataset, row: int, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise _error(dataset, row, f"the score of an annotation is {value!r}, expected a number")
    return float(value)


def _mean_score(annotators: Annotators) -> FloatVector | None:
    """Return the mean over the annotators who scored a sentence; NaN where nobody did."""
    if annotators.scores is None:
        return None
    count = (~np.isnan(annotators.scores)).sum(axis=0)
    mean: FloatVector = np.nansum(annotators.scores, axis=0) / np.where(count, count, np.nan)
    return mean


def _side(dataset: Dataset, row: int, name: object) -> Judged:
    if name not in _ALIASES:
        raise _error(dataset, row, f"side is {name!r}, expected target or source")
    return _ALIASES[name]


def _tags(dataset: Dataset, side: Judged, words: Sequence[Words] | None) -> Ragged | None:
    if words is None:
        return None
    columns = [_column(entry, _COLUMNS[side]) for entry in dataset.entries]
    rows: list[list[float]] = []
    for row, (entry, value) in enumerate(zip(dataset.entries, columns, strict=True)):
        if value is not None:
            rows.append(_row(dataset, row, value, words[row]))
        elif entry.spans is not None:
            rows.append(_tags_from_spans(entry, side, words[row]))
        elif all(column is None for column in columns) and all(entry.spans is None for entry in dataset.entries):
            return None
        else:
            raise _error(dataset, row, "has neither tags nor spans, but other segments have: leave it out")
    # Spans that never touch the source say nothing of it.
    if all(value is None for value in columns) and side == "source" and not any(map(any, rows)):
        return None
    return Ragged.of(rows)


def _row(dataset: Dataset, row: int, value: object, words: Words) -> list[float]:
    cells = value.split() if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else [value]
    tags = [_VALUES.get(str(cell).upper().removesuffix(".0")) for cell in cells]
    for cell, tag in zip(cells, tags, strict=True):
        if tag is None:
            raise _error(dataset, row, f"{cell!r} is not a tag: expected 0 or 1, OK or BAD")
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
    names = dict.fromkeys(key for entry in dataset.entries for key in entry.human)
    if name is None:
        if not names:
            return None
        name = next(iter(names))
    values = dataset.human(name)
    return None if np.isnan(values).all() else values


def _error(dataset: Dataset, row: int, message: str) -> DataError:
    if dataset.origin is not None:
        origin = dataset.origin
        file = origin.hypotheses.get(dataset.entries[row].system)
        return DataError(message, file=file, line=origin.lines[row])
    return DataError(f"segment {dataset.entries[row].id}: {message}")


def read_annotators(paths: Sequence[str | Path]) -> Annotators:
    """Return what annotators said: of each a file of target tags, or a gold folder with both sides and scores."""
    names = tuple(system_names(paths))
    golds = [_annotator_gold(path) for path in paths]
    for name, gold in zip(names[1:], golds[1:], strict=True):
        if len(gold) != len(golds[0]):
            raise DataError(f"annotator {name} has {len(gold)} sentences, {names[0]} has {len(golds[0])}: align them")
    sides: dict[Judged, tuple[Ragged, ...]] = {}
    for side in SIDES:
        gold_sides = [gold.side(side) for gold in golds]
        if any(gold_sides):
            nothing = Ragged.of([[]] * len(golds[0]))
            sides[side] = tuple(nothing if gold_side is None else gold_side.tags for gold_side in gold_sides)
    missing = np.full(len(golds[0]), np.nan)
    scores = np.stack([missing if gold.sentence is None else gold.sentence for gold in golds])
    return Annotators(names, sides, None if np.isnan(scores).all() else scores)


def _annotator_gold(path: str | Path) -> Gold:
    if Path(path).is_dir() or Path(path).suffix == ".zip":
        return read_gold(path)
    parsed = tag_lines(read_lines(path), str(path))
    refuse([finding for finding in parsed.findings if finding.error])
    return Gold(str(path), "eval4nlp2021", GoldSide(parsed.values, str(path)))


def gold_by_majority(annotators: Annotators, gold: Gold | None = None, name: str = "annotators") -> Gold:
    """Return gold whose tags are the majority and whose scores the mean; texts come from `gold`, if given."""
    if "target" not in annotators.tags:
        raise DataError("the annotators tagged no target words: nothing to judge")
    sides: dict[Judged, GoldSide] = {}
    for side, tags in annotators.tags.items():
        gold_side = None if gold is None else gold.side(side)
        sides[side] = GoldSide(majority(tags), name, None if gold_side is None else gold_side.words)
        if gold_side is not None and not np.array_equal(sides[side].tags.lengths, gold_side.tags.lengths):
            raise DataError(
                f"the annotators tagged other sentences or words than {gold_side.file} has: align them first"
            )
    if gold is not None and len(gold) != len(sides["target"].tags):
        raise DataError(f"the annotators tagged {len(sides['target'].tags)} sentences, {gold.name} has {len(gold)}")
    scores = _mean_score(annotators)
    if gold is None:
        return Gold(name, "eval4nlp2021", sides["target"], sides.get("source"), scores)
    sentence = gold.sentence if scores is None else scores
    return replace(gold, target=sides["target"], source=sides.get("source", gold.source), sentence=sentence)


def annotator_agreement(annotators: Annotators, gold: Gold, settings: MetaevalWordsSettings) -> AnnotatorAgreement:
    """Return how far annotators agree, and each judged as a system against the majority of the others."""
    names = annotators.names
    pairs: dict[Judged, dict[tuple[str, str], PairAgreement]] = {}
    for side, tags in annotators.tags.items():
        pairs[side] = {(names[i], names[j]): pair for (i, j), pair in pair_agreements(tags).items()}
    scores = {} if annotators.scores is None else score_agreements(annotators.scores)
    by_name = {(names[i], names[j]): value for (i, j), value in scores.items()}
    return AnnotatorAgreement(names, pairs, _ceiling(annotators, gold, settings), by_name)


def with_annotators(result: WordsResult, annotators: Annotators) -> WordsResult:
    """Return a result with the agreement of the annotators, and of each system with their shares."""
    systems = tuple(replace(system, continuous=against_shares(annotators, system)) for system in result.systems)
    agreement = annotator_agreement(annotators, result.gold, result.settings)
    return replace(result, systems=systems, annotators=agreement)


def against_shares(annotators: Annotators, result: SystemResult) -> dict[Judged, ContinuousResult]:
    """Return how well a system's scores follow the share of annotators who marked a word."""
    results: dict[Judged, ContinuousResult] = {}
    for side, tags in annotators.tags.items():
        side_result = result.sides.get(side)
        if side_result is None or side_result.scores is None:
            continue
        gold = shares(tags)
        if np.array_equal(gold.lengths, side_result.scores.lengths):
            results[side] = _means(gold, side_result.scores)
    return results


def _means(gold: Ragged, scores: Ragged) -> ContinuousResult:
    values = continuous(gold, scores)
    defined = [column[~np.isnan(column)] for column in values]
    pearson, spearman, weighted = (float(column.mean()) if len(column) else float("nan") for column in defined)
    return ContinuousResult(pearson, spearman, weighted, len(defined[-1]))


def _ceiling(annotators: Annotators, gold: Gold, settings: MetaevalWordsSettings) -> tuple[SystemResult, ...]:
    """Return each annotator against the others; with two there is one other, whose word is taken."""
    plain = replace(settings, drop_eos=False)
    ceiling = []
    for k, name in enumerate(annotators.names):
        sides: dict[Judged, SideResult | None] = {}
        for side, tags in annotators.tags.items():
            others = [*tags[:k], *tags[k + 1 :]]
            against = majority(others) if len(others) > 1 else others[0]
            seen = (tags[k].lengths > 0) & (against.lengths > 0)
            gold_side = gold.side(side)
            file = gold.name if gold_side is None else gold_side.file
            sides[side] = judge_side(GoldSide(against.select(seen), file), Scored(tags[k].select(seen), name), plain)
        ceiling.append(SystemResult(f"annotator {name}", sides, baseline=True))
    return tuple(ceiling)
