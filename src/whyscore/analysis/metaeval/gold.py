"""Gold word tags out of a data set: from error spans, from columns of tags, or from several annotators.

| column (in any case) | content |
|---|---|
| `tags`, `tgt_tags` | tags of the hypothesis' words: a list, or a text with blanks |
| `src_tags` | the same for the source |
| `annotations` | a list of `{annotator, side, tags}` |
| spans, errors | error spans; a word is marked where any of its characters is |

1. Tags come first, spans where there are none. A segment without either was not rated and is an error.
2. Words stand between blanks (U+0020), because tags are given for them.

Explanations as a submission of error scores: importance turned round, sentence scores with larger meaning better.

1. Words stand between blanks (U+0020): the shared tasks' texts are cut already, and their tags count these words.
2. The hypothesis gives `target`, the source gives `source` where the metric reads it and the explainer can say
   something of it.
3. Stored explanations are matched with the gold by id; an id that one side lacks is an error.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from whyscore.analysis.common import MetricLike, as_metric, requested_name
from whyscore.analysis.explain import explain
from whyscore.analysis.metaeval.words import Judging, judge_side
from whyscore.data.explanations import StoredExplanations
from whyscore.data.formats.eval4nlp import SIDES, Gold, GoldSide, Judged, Scored, Submission
from whyscore.data.located import Located
from whyscore.data.naming import few
from whyscore.errors import DataError, MissingInput
from whyscore.protocols import Explainer
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.stats.annotators import majority
from whyscore.stats.words import MEASURES, Measure, Ragged
from whyscore.text.splitters import WhiteSpace
from whyscore.types import Dataset, Entry, FloatMatrix, FloatVector, Inputs, Segment, Side, Words

_COLUMNS: dict[Judged, tuple[str, ...]] = {"target": ("tags", "tgt_tags"), "source": ("src_tags",)}
_PLACES: dict[Judged, Side] = {"target": Side.HYPOTHESIS, "source": Side.SOURCE}
_VALUES = {"0": 0.0, "1": 1.0, "OK": 0.0, "BAD": 1.0, "FALSE": 0.0, "TRUE": 1.0}
SPLITTER = WhiteSpace("space")


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
    )


def annotators_of(dataset: Dataset) -> Annotators | None:
    """Return the annotations in a data set, if it has any."""
    given = [_column(entry, ("annotations",)) for entry in dataset.entries]
    if all(value is None for value in given):
        return None
    found: dict[tuple[str, str], dict[int, list[float]]] = {}
    for row, value in enumerate(given):
        for one in value if isinstance(value, list) else []:
            if not isinstance(one, Mapping) or "annotator" not in one or "tags" not in one:
                raise _bad(dataset, row, f"an annotation is {one!r}, expected annotator, side and tags")
            side = _side(dataset, row, one.get("side", "target"))
            words = SPLITTER.split(_text(dataset.entries[row], side) or "")
            found.setdefault((side, str(one["annotator"])), {})[row] = _row(dataset, row, one["tags"], words)
    names = tuple(dict.fromkeys(name for _, name in found))
    tags: dict[Judged, tuple[Ragged, ...]] = {}
    for side in SIDES:
        rows = [found.get((side, name), {}) for name in names]
        if any(rows):
            tags[side] = tuple(Ragged.of([one.get(k, []) for k in range(len(dataset))]) for one in rows)
    return Annotators(names, tags)


def _side(dataset: Dataset, row: int, given: object) -> Judged:
    known: dict[object, Judged] = {"target": "target", "hypothesis": "target", "mt": "target", "source": "source"}
    if given not in known:
        raise _bad(dataset, row, f"side is {given!r}, expected target or source")
    return known[given]


def _tags(dataset: Dataset, side: Judged, words: Sequence[Words] | None) -> Ragged | None:
    if words is None:
        return None
    given = [_column(entry, _COLUMNS[side]) for entry in dataset.entries]
    rows: list[list[float]] = []
    for row, (entry, value) in enumerate(zip(dataset.entries, given, strict=True)):
        if value is not None:
            rows.append(_row(dataset, row, value, words[row]))
        elif entry.spans is not None:
            rows.append(_touched(entry, side, words[row]))
        elif all(one is None for one in given) and all(one.spans is None for one in dataset.entries):
            return None
        else:
            raise _bad(dataset, row, "has neither tags nor spans, but other segments have: leave it out")
    # Spans that never touch the source say nothing of it.
    if all(value is None for value in given) and side == "source" and not any(map(any, rows)):
        return None
    return Ragged.of(rows)


def _row(dataset: Dataset, row: int, value: object, words: Words) -> list[float]:
    cells = value.split() if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else [value]
    tags = [_VALUES.get(str(cell).upper().removesuffix(".0")) for cell in cells]
    for cell, tag in zip(cells, tags, strict=True):
        if tag is None:
            raise _bad(dataset, row, f"{cell!r} is no tag: expected 0 or 1, OK or BAD")
    if len(tags) != len(words):
        raise _bad(dataset, row, f"{len(tags)} tags for {len(words)} words")
    return [tag for tag in tags if tag is not None]


def _touched(entry: Entry, side: Judged, words: Words) -> list[float]:
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


def _bad(dataset: Dataset, row: int, message: str) -> DataError:
    if isinstance(dataset, Located) and dataset.origin is not None:
        origin = dataset.origin
        file = origin.hypotheses.get(dataset.entries[row].system)
        return DataError(message, file=file, line=origin.lines[row])
    return DataError(f"segment {dataset.entries[row].id}: {message}")


_SIDES: dict[Side, Judged] = {Side.HYPOTHESIS: "target", Side.SOURCE: "source"}


def explained_submission(
    segments: Sequence[Segment],
    metric: MetricLike,
    explainer: str | Explainer,
    *,
    masker: str | None = None,
    seed: int = 0,
    resources: Resources = LOCAL,
) -> Submission:
    """Return an explainer's error scores for both sides, and the metric's scores of the sentences."""
    asked = as_metric(metric)
    sides = ["hypothesis", "source"] if Inputs.SOURCE in asked.inputs else ["hypothesis"]
    found = explain(
        segments, asked, explainer, sides=sides, unit=SPLITTER, masker=masker, seed=seed, resources=resources
    )
    name = f"{requested_name(metric)} {requested_name(explainer)}"
    rows = {_SIDES[side]: [one for one in found if one.place.side is side] for side in _SIDES}
    scored = {
        side: Scored(Ragged.of([one.error_scores for one in own]), name)
        for side, own in rows.items()
        if len(own) == len(segments)
    }
    sign = 1.0 if asked.higher_is_better else -1.0
    return Submission(name, scored, sign * np.array([one.score for one in rows["target"]]), name)


def segments_of(gold: Gold) -> list[Segment]:
    """Return the texts of the gold as segments, for metrics that need no reference."""
    if gold.target.words is None:
        raise DataError(f"{gold.name} comes without its texts: metrics and explainers need them")
    if gold.sources is None:
        return [Segment(own.text) for own in gold.target.words]
    pairs = zip(gold.target.words, gold.sources, strict=True)
    return [Segment(own.text, other.text) for own, other in pairs]


def spread_of(repeats: Sequence[FloatMatrix], gold: GoldSide, how: Judging) -> dict[Measure, float]:
    """Return the standard deviation of the measures between seeds; `repeats` holds seeds x words for each text."""
    seeds = len(repeats[0]) if repeats else 0
    plain = replace(how, draws=0)
    judged = [
        judge_side(gold, Scored(Ragged.of([-own[seed] for own in repeats]), f"seed {seed}"), plain)
        for seed in range(seeds)
    ]
    return {measure: float(np.std([side.mean(measure) for side in judged])) for measure in MEASURES}


def stored_submissions(stored: StoredExplanations, ids: Sequence[str]) -> list[Submission]:
    """Return the stored explanations as submissions, one per system, metric and explainer, in the order of the ids."""
    submissions = []
    for name, sides in stored.groups.items():
        scored: dict[Judged, Scored] = {}
        for side, rows in sides.items():
            _check_ids(stored.file, name, list(rows), ids)
            scored[side] = Scored(Ragged.of([-rows[one].importance for one in ids]), stored.file)
        target = next(iter(sides.values()))
        sentence = np.array([target[one].score for one in ids])
        submissions.append(Submission(name, scored, None if np.isnan(sentence).any() else sentence, stored.file))
    if not submissions:
        raise MissingInput(f"{stored.file} holds no explanations of hypotheses or sources")
    return submissions


def _check_ids(file: str, name: str, given: Sequence[str], ids: Sequence[str]) -> None:
    strange = sorted(set(given) - set(ids))
    missing = sorted(set(ids) - set(given))
    if strange or missing:
        told = [f"not in the gold: {few(strange)}"] if strange else []
        told += [f"without an explanation: {few(missing)}"] if missing else []
        raise DataError(f"the ids of {name} and of the gold do not match; {'; '.join(told)}", file=file)
