"""Tags from files: one line per text, one tag per white-space token.

    By  the end of this year
    IN  DT  NN  IN DT   NN

The tokens are then also what the metric counts: who tags tokenised text wants it read as it stands.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from whyscore.errors import DataError
from whyscore.protocols import Tagged
from whyscore.registry import spec_of
from whyscore.settings import check_fields
from whyscore.taggers.aligned import (
    AlignedTags,
    Files,
    Lines,
    Tags,
    files_for,
    lines_of,
    references_wanted,
    same_length,
)
from whyscore.taggers.lexicon import digest_of
from whyscore.text.splitters import white_space
from whyscore.types import Signature


@dataclass(frozen=True, slots=True)
class Pretagged:
    """Reads tags from files that go line by line and token by token with the texts.

    Args:
        reference: the tag file of the references, or one per set of references.
        hypothesis: the tag file of the hypotheses, or one per system.
    """

    reference: Files
    hypothesis: Files

    gives_tokens: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self)

    def signature(self) -> Signature:
        files = [file for given in (self.reference, self.hypothesis) for file in _several(given)]
        return Signature(spec_of(self), tuple((Path(file).name, digest_of(file)) for file in files))

    def tag_lines(self, lines: Lines) -> AlignedTags:
        """Return the tags of every line of every file."""
        references = files_for("pretagged", "reference", self.reference, references_wanted(lines))
        hypotheses = files_for("pretagged", "hypothesis", self.hypothesis, list(lines.hypotheses))
        return AlignedTags(
            [_tags(file, texts) for file, texts in zip(references, lines.references, strict=True)],
            {
                system: _tags(file, texts)
                for file, (system, texts) in zip(hypotheses, lines.hypotheses.items(), strict=True)
            },
        )


def _several(given: Files) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else given


def _tags(file: str, texts: Sequence[str]) -> list[Tags]:
    lines = lines_of(file)
    same_length(file, len(lines), len(texts))
    return [
        _line(text, line.split(), file, number)
        for number, (text, line) in enumerate(zip(texts, lines, strict=True), start=1)
    ]


def _line(text: str, tags: list[str], file: str, number: int) -> Tags:
    spans = white_space(text).spans
    if len(spans) != len(tags):
        raise DataError(
            f"{len(tags)} tag(s) for {len(spans)} white-space token(s): expected one tag per token of {text[:60]!r}",
            file=file,
            line=number,
        )
    return tuple(Tagged(start, end, (tag,)) for (start, end), tag in zip(spans, tags, strict=True))
