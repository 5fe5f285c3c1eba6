"""Submissions to the word-level shared tasks: a folder or zip archive with one file per judged text.

| file | content |
|---|---|
| `target.submission` | error scores of the hypothesis' words, blanks between, one sentence a line |
| `source.submission` | the same for the source, optional |
| `sentence.submission` | one number a sentence, optional |
| `metadata.txt` | Eval4NLP 2021: team; `constrained` or `unconstrained`; description. WMT22: team; description |

1. Reading collects every fault with file and line; `read_submission` raises the first, `look_at_submission` lists all.
2. Writing gives full precision, so that reading gives the same floats back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np

from whyscore.errors import DataError, SpecError, UserError
from whyscore.io.archives import Bundle, open_bundle
from whyscore.io.atomic import write_lines
from whyscore.io.eval4nlp import Gold, Judged, Task, refuse
from whyscore.io.unpacking import Limits
from whyscore.io.word_lines import numbers, score_lines
from whyscore.stats.words import Ragged
from whyscore.types import Finding, FloatVector

Track = Literal["constrained", "unconstrained"]
TRACKS: tuple[Track, ...] = get_args(Track)
SIDES: tuple[Judged, ...] = get_args(Judged)
METADATA = "metadata.txt"
SENTENCE = "sentence.submission"
_LINES: dict[Task, tuple[str, ...]] = {
    "eval4nlp2021": ("team", "track", "description"),
    "wmt22": ("team", "description"),
}


class Scored(NamedTuple):
    """The error scores of one side."""

    scores: Ragged
    file: str


@dataclass(frozen=True, eq=False)
class Submission:
    """The scores somebody hands in."""

    name: str
    sides: Mapping[Judged, Scored]
    sentence: FloatVector | None = None
    sentence_file: str | None = None
    metadata: tuple[str, ...] | None = None
    findings: tuple[Finding, ...] = ()


def read_submission(path: str | Path, *, name: str | None = None, limits: Limits | None = None) -> Submission:
    """Return a submission; a value that is no finite number is an error with file and line."""
    submission = look_at_submission(path, name=name, limits=limits)
    refuse([finding for finding in submission.findings if finding.error])
    return submission


def look_at_submission(path: str | Path, *, name: str | None = None, limits: Limits | None = None) -> Submission:
    """Return a submission with all its faults as findings."""
    bundle = open_bundle(path, "a submission with target.submission", limits)
    found: list[Finding] = []
    sides: dict[Judged, Scored] = {}
    for side in SIDES:
        if f"{side}.submission" in bundle.members:
            file = bundle.file(f"{side}.submission")
            parsed = score_lines(bundle.lines(f"{side}.submission"), file)
            found.extend(parsed.findings)
            sides[side] = Scored(parsed.values, file)
    if not sides:
        there = ", ".join(sorted(bundle.members)) or "nothing"
        raise DataError(f"no submission: expected target.submission; there is {there}", file=str(path))
    sentence = None
    if SENTENCE in bundle.members:
        sentence, faults = numbers(bundle.lines(SENTENCE), bundle.file(SENTENCE))
        found.extend(faults)
    return Submission(name or bundle.name, sides, sentence, bundle.file(SENTENCE), _metadata(bundle), tuple(found))


def misfits(submission: Submission, gold: Gold) -> list[Finding]:
    """Return every line whose number of scores is not the gold's, and every file with another number of lines."""
    found = []
    for side, (scores, file) in submission.sides.items():
        gold_side = gold.side(side)
        if gold_side is None:
            continue
        if len(scores) != len(gold_side.tags):
            found.append(_line_count(file, len(scores), gold_side.file, len(gold_side.tags)))
            continue
        wrong = (scores.lengths != gold_side.tags.lengths) & (scores.lengths > 0)
        rows = np.flatnonzero(wrong).tolist()
        found.extend(_value_count(file, k, scores, gold_side.tags, gold_side.file) for k in rows)
    if submission.sentence is not None and len(submission.sentence) != len(gold):
        found.append(_line_count(str(submission.sentence_file), len(submission.sentence), gold.name, len(gold)))
    return found


def metadata_faults(submission: Submission, task: Task, path: str | Path, *, required: bool) -> list[Finding]:
    """Return what is wrong with the metadata of a task."""
    wanted, file = _LINES[task], str(Path(path) / METADATA)
    told = f"{task} wants {len(wanted)} non-empty lines: {', '.join(wanted)}"
    if submission.metadata is None:
        return [Finding(f"is missing; {told}", file, error=True)] if required else []
    given = [line for line in submission.metadata if line.strip()]
    if len(given) != len(wanted):
        return [Finding(f"{len(given)} non-empty lines; {told}", file, error=True)]
    if "track" in wanted and given[1].strip().lower() not in TRACKS:
        return [Finding(f"the track is {given[1]!r}, expected {' or '.join(TRACKS)}", file, 2, error=True)]
    return []


def write_submission(
    folder: str | Path,
    sides: Mapping[Judged, Sequence[Sequence[float]] | Sequence[FloatVector]],
    sentence: Sequence[float] | FloatVector | None = None,
    *,
    team: str | None = None,
    track: Track = "constrained",
    description: str | None = None,
    task: Task = "eval4nlp2021",
) -> list[Path]:
    """Return the files written into a folder: error scores in full precision, and metadata where a team is named."""
    if track not in TRACKS:
        raise SpecError(f"track is {track!r}, expected {' or '.join(TRACKS)}")
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be made: {error.strerror}. Choose another place") from error
    written = []
    for side, rows in sides.items():
        written.append(place / f"{side}.submission")
        write_lines(written[-1], (" ".join(map(_shown, row)) + "\n" for row in rows))
    if sentence is not None:
        written.append(place / SENTENCE)
        write_lines(written[-1], (f"{_shown(value)}\n" for value in sentence))
    if team is not None:
        about = {"team": team, "track": track, "description": description or "made with whyscore"}
        written.append(place / METADATA)
        write_lines(written[-1], [f"{' '.join(about[role].split())}\n" for role in _LINES[task]])
    return written


def _shown(value: float) -> str:
    if not np.isfinite(value):
        raise DataError(f"a word score is {value}: submissions hold finite numbers only")
    return repr(float(value))


def _metadata(bundle: Bundle) -> tuple[str, ...] | None:
    return tuple(bundle.lines(METADATA).texts) if METADATA in bundle.members else None


def _line_count(file: str, lines: int, other: str, wanted: int) -> Finding:
    return Finding(f"{file} has {lines} lines, {other} has {wanted}: line counts must match", error=True)


def _value_count(file: str, row: int, scores: Ragged, tags: Ragged, other: str) -> Finding:
    message = f"{scores.lengths[row]} scores for {tags.lengths[row]} tags in {Path(other).name}"
    return Finding(message, file, row + 1, error=True)
