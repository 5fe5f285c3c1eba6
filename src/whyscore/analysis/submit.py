"""A folder that can be handed in to a shared task: texts -> metric -> explainer -> files.

1. Explain every segment, word by word as the task's files split them.
2. Write the error scores of both sides, the sentence scores and the metadata.
3. Read the folder back and check it by the task's own rules, before anybody hands it in.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from whyscore.analysis.common import MetricLike, Segments
from whyscore.analysis.convert import SubmissionSettings
from whyscore.analysis.metaeval.words import explained_submission
from whyscore.data.formats.eval4nlp import (
    Submission,
    Track,
    metadata_faults,
    read_submission,
    refuse,
    write_submission,
)
from whyscore.errors import DataError
from whyscore.protocols import Explainer
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.settings import Seeded, again, option, takes
from whyscore.types.result import Record, Result


@dataclass(frozen=True, kw_only=True)
class SubmitSettings(Seeded):
    """What a shared task wants to know of a submission."""

    task: Literal["eval4nlp", "eval4nlp2021", "wmt22"] = option(
        "eval4nlp", "whose files to write", positional=True, basic=True
    )
    team: str = again(SubmissionSettings, "team", "", help="the name of the team", basic=True)
    track: Track = again(SubmissionSettings, "track", basic=True)
    description: str | None = again(
        SubmissionSettings, "description", help="one line for metadata.txt (default: metric and explainer)"
    )


@dataclass(frozen=True, eq=False, repr=False)
class Submitted(Result):
    """What was written."""

    folder: Path
    files: tuple[Path, ...]
    submission: Submission

    def records(self) -> Iterator[Record]:
        return ({"file": str(file)} for file in self.files)


@takes(SubmitSettings)
def submit(
    segments: Segments,
    metric: MetricLike,
    explainer: str | Explainer,
    folder: str | Path,
    *,
    settings: SubmitSettings,
    resources: Resources = LOCAL,
) -> Submitted:
    """Return the files of a submission, written and read back.

    Args:
        segments: texts in the order of the task's files.
        metric: a spec, a metric, or any function of segments.
        explainer: a spec or an explainer.
        folder: where the files go.
        settings: the task, the team, the track.
        resources: store, executor and progress.
    """
    if not settings.team.strip():
        raise DataError("a submission needs the name of a team")
    made = explained_submission(segments, metric, explainer, seed=settings.seed, resources=resources)
    task: Literal["eval4nlp2021", "wmt22"] = "wmt22" if settings.task == "wmt22" else "eval4nlp2021"
    files = write_submission(
        folder,
        {side: scored.scores.rows() for side, scored in made.sides.items()},
        made.sentence,
        team=settings.team,
        track=settings.track,
        description=settings.description or made.name,
        task=task,
    )
    submission = read_submission(folder)
    refuse(metadata_faults(submission, task, folder, required=True))
    return Submitted(Path(folder), tuple(files), submission)
