"""Tags from files: one line per text, one tag per white-space token.

    By  the end of this year
    IN  DT  NN  IN DT   NN

The tokens are then also what the metric counts: who tags tokenised text wants it read as it stands.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from whyscore.errors import DataError
from whyscore.protocols import Tagged
from whyscore.taggers.aligned import (
    FileTagger,
    Tags,
    lines_of,
    same_length,
)
from whyscore.text.splitters import white_space


@dataclass(frozen=True, slots=True)
class Pretagged(FileTagger):
    """Reads tags from files that go line by line and token by token with the texts.

    Args:
        reference: the tag file of the references, or one per set of references.
        hypothesis: the tag file of the hypotheses, or one per system.
    """

    gives_tokens: ClassVar[bool] = True
    name: ClassVar[str] = "pretagged"

    def read_tags(self, file: str, texts: Sequence[str]) -> list[Tags]:
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
