"""A folder that can be handed in to a shared task: texts -> metric -> explainer -> files.

1. Explain every segment, word by word as the task's files cut them.
2. Write the error scores of both sides, the sentence scores and the metadata.
3. Read the folder back and check it by the task's own rules, before anybody hands it in.
"""

from dataclasses import dataclass
from pathlib import Path

from whyscore.analysis.common import MetricLike, Segments, as_segments
from whyscore.analysis.metaeval.gold import explained_submission
from whyscore.data.formats.eval4nlp import (
    Submission,
    Task,
    Track,
    metadata_faults,
    read_submission,
    refuse,
    write_submission,
)
from whyscore.errors import DataError
from whyscore.protocols import Explainer
from whyscore.scoring.stack import LOCAL, Resources

TASKS: dict[str, Task] = {"eval4nlp": "eval4nlp2021", "eval4nlp2021": "eval4nlp2021", "wmt22": "wmt22"}


@dataclass(frozen=True, eq=False)
class Submitted:
    """What was written."""

    folder: Path
    files: tuple[Path, ...]
    submission: Submission


def submit(
    segments: Segments,
    metric: MetricLike,
    explainer: str | Explainer,
    folder: str | Path,
    *,
    team: str,
    track: Track = "constrained",
    description: str | None = None,
    task: str = "eval4nlp",
    seed: int = 0,
    resources: Resources = LOCAL,
) -> Submitted:
    """Return the files of a submission, written and read back.

    Args:
        segments: texts in the order of the task's files.
        metric: a spec, a metric, or any function of segments.
        explainer: a spec or an explainer.
        folder: where the files go.
        team: who hands in.
        track: constrained or unconstrained (trained on word labels).
        description: one line for the metadata; what was run, if None.
        task: eval4nlp or wmt22.
        seed: fixes every random number.
        resources: store, executor and progress.
    """
    if task not in TASKS:
        raise DataError(f"no task named {task!r}: use {', '.join(TASKS)}")
    if not team.strip():
        raise DataError("a submission needs the name of a team")
    made = explained_submission(as_segments(segments), metric, explainer, seed=seed, resources=resources)
    files = write_submission(
        folder,
        {side: scored.scores.rows() for side, scored in made.sides.items()},
        made.sentence,
        team=team,
        track=track,
        description=description or made.name,
        task=TASKS[task],
    )
    back = read_submission(folder)
    refuse(metadata_faults(back, TASKS[task], folder, required=True))
    return Submitted(Path(folder), tuple(files), back)
