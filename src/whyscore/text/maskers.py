"""What a hidden word becomes.

| masker | a hidden word becomes | white space |
|---|---|---|
| `delete` | nothing | the run to its left goes too; before the first kept word, the run to its right |
| `delete(mode="compat")` | nothing | words are re-joined by one space, so a double or border space stays |
| `replace("UNKWORDZ")` | that string | every other character stays as it was |

Keeping every word gives the text back unchanged (`compat` changes it where words were not joined by one space).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Literal

from whyscore.protocols import Probes
from whyscore.settings import check_fields
from whyscore.types import KeepMasks, Words

MaskedTexts = Sequence[tuple[Words, KeepMasks]]


@dataclass(frozen=True, slots=True)
class Delete:
    """Hides a word by taking it out, with one of the blanks around it."""

    mode: Literal["default", "compat"] = "default"

    def __post_init__(self) -> None:
        check_fields(self)

    def render(self, texts: MaskedTexts) -> list[Probes]:
        cut = _without if self.mode == "default" else _rejoin
        return [Probes(list(cut(words, masks))) for words, masks in texts]


@dataclass(frozen=True, slots=True)
class Replace:
    """Hides a word behind a string that stands for nothing, as LIME does."""

    token: str = "UNKWORDZ"  # noqa: S105 - the mask string of the LIME package, not a secret

    def __post_init__(self) -> None:
        check_fields(self)

    def render(self, texts: MaskedTexts) -> list[Probes]:
        return [Probes(list(_replace(words, masks, self.token))) for words, masks in texts]


def _without(words: Words, masks: KeepMasks) -> Iterable[str]:
    parts = list(words)
    gaps = words.gaps
    led = [gap + word for gap, word in zip(gaps, parts, strict=False)]
    for row in masks.tolist():
        if True not in row:
            yield gaps[0]
            continue
        first = row.index(True)
        yield f"{gaps[0]}{parts[first]}{''.join(compress(led[first + 1 :], row[first + 1 :]))}{gaps[-1]}"


def _rejoin(words: Words, masks: KeepMasks) -> Iterable[str]:
    parts = list(words)
    for row in masks.tolist():
        yield " ".join([word if keep else "" for word, keep in zip(parts, row, strict=True)])


def _replace(words: Words, masks: KeepMasks, token: str) -> Iterable[str]:
    gaps = words.gaps
    kept = [word + gap for word, gap in zip(words, gaps[1:], strict=True)]
    hidden = [token + gap for gap in gaps[1:]]
    for row in masks.tolist():
        yield gaps[0] + "".join([k if keep else h for k, h, keep in zip(kept, hidden, row, strict=True)])
