"""Gold folders of the word-level shared tasks: texts, word tags and sentence scores.

| task | files |
|---|---|
| `eval4nlp2021` | `X.src X.mt X.src-tags X.tgt-tags X.da` for one prefix X |
| `wmt22` | `src_tok mt_tok target.gold sentence.gold` |

1. The task is told by the files that are there; texts, source tags and sentence scores may be missing.
2. Words are what stands between blanks (U+0020 alone) of a line that somebody else cut; they are never cut again.
3. A line with another number of words than of tags is a finding: tags are judged all the same, texts are not used.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from whyscore.errors import DataError
from whyscore.io.archives import Bundle, open_bundle
from whyscore.io.unpacking import Limits
from whyscore.io.word_lines import numbers, tag_lines
from whyscore.stats.words import Ragged
from whyscore.text.splitters import WhiteSpace
from whyscore.types import Finding, FloatVector, Words

Task = Literal["eval4nlp2021", "wmt22"]
Judged = Literal["target", "source"]
EOS = "<EOS>"
_TARGET = ".tgt-tags"
_SPLITTER = WhiteSpace("space")


@dataclass(frozen=True, slots=True, eq=False)
class GoldSide:
    """The tags of one text of every segment, and its words where the texts are there."""

    tags: Ragged
    file: str
    words: tuple[Words, ...] | None = None

    def fits(self) -> list[bool]:
        """Return for each segment whether it has as many words as tags."""
        return [len(own) == count for own, count in zip(self.words or (), self.tags.lengths.tolist(), strict=True)]


@dataclass(frozen=True, eq=False)
class Gold:
    """What people marked: word tags of the target (the hypothesis) and the source, and a score per sentence."""

    name: str
    task: Task
    target: GoldSide
    source: GoldSide | None = None
    sentence: FloatVector | None = None
    ids: tuple[str, ...] | None = None
    findings: tuple[Finding, ...] = ()
    sources: tuple[Words, ...] | None = None
    """The words of the sources, whether people marked them or not."""

    def __len__(self) -> int:
        """Return the number of segments."""
        return len(self.target.tags)

    def side(self, name: Judged) -> GoldSide | None:
        """Return the gold of a side, if there is any."""
        return self.target if name == "target" else self.source

    def words(self, name: Judged) -> tuple[Words, ...] | None:
        """Return the words of a side, if its texts are there."""
        return self.target.words if name == "target" else self.sources

    def names(self) -> tuple[str, ...]:
        """Return the id of each segment: given, or its line from zero."""
        return self.ids or tuple(map(str, range(len(self))))


def read_gold(path: str | Path, *, limits: Limits | None = None) -> Gold:
    """Return the gold in a folder or a zip archive; wrong values in it are an error."""
    gold = look_at_gold(path, limits=limits)
    # Texts that do not fit their tags are only needed by some baselines.
    refuse([finding for finding in gold.findings if finding.error])
    return gold


def look_at_gold(path: str | Path, *, limits: Limits | None = None) -> Gold:
    """Return the gold with all its faults as findings."""
    bundle = open_bundle(path, "a gold folder with *.tgt-tags or target.gold", limits)
    prefixes = [name.removesuffix(_TARGET) for name in bundle.members if name.endswith(_TARGET)]
    if len(prefixes) > 1:
        raise DataError(f"holds several gold sets ({', '.join(sorted(prefixes))}): keep one a folder", file=str(path))
    if prefixes:
        names = {"target": ".tgt-tags", "source": ".src-tags", "mt": ".mt", "src": ".src", "sentence": ".da"}
        return _gold(bundle, "eval4nlp2021", {role: prefixes[0] + suffix for role, suffix in names.items()})
    if "target.gold" in bundle.members:
        names = {"target": "target.gold", "source": "source.gold", "mt": "mt_tok", "src": "src_tok"}
        return _gold(bundle, "wmt22", names | {"sentence": "sentence.gold"})
    there = ", ".join(sorted(bundle.members)) or "nothing"
    raise DataError(
        f"no gold: expected *.tgt-tags (Eval4NLP 2021) or target.gold (WMT22); there is {there}", file=str(path)
    )


def refuse(findings: Iterable[Finding]) -> None:
    """Raise the error for the first of some findings, and say how many more there are."""
    first, *more = [*findings, None]
    if first is not None:
        extra = f" (and {len(more) - 1} more)" if len(more) > 1 else ""
        raise DataError(f"{first.message}{extra}", file=first.file, line=first.line)


def _gold(bundle: Bundle, task: Task, names: dict[str, str]) -> Gold:
    found: list[Finding] = []
    target = _side(bundle, names["target"], names["mt"], found)
    source = _side(bundle, names["source"], names["src"], found) if names["source"] in bundle.members else None
    sources = source.words if source is not None else _texts(bundle, names["src"], target, found)
    sentence = None
    if names["sentence"] in bundle.members:
        file = bundle.file(names["sentence"])
        sentence, faults = numbers(bundle.lines(names["sentence"]), file)
        found.extend(faults)
        _check_count(len(sentence), len(target.tags), file, target.file, found)
    if source is not None:
        _check_count(len(source.tags), len(target.tags), source.file, target.file, found)
    return Gold(bundle.name, task, target, source, sentence, findings=tuple(found), sources=sources)


def _side(bundle: Bundle, tags: str, texts: str, found: list[Finding]) -> GoldSide:
    file = bundle.file(tags)
    parsed = tag_lines(bundle.lines(tags), file)
    found.extend(parsed.findings)
    bare = GoldSide(parsed.values, file)
    words = _texts(bundle, texts, bare, found)
    if words is None:
        return bare
    counts = np.array([len(own) for own in words])
    for k in np.flatnonzero(counts != parsed.values.lengths).tolist():
        tagged = int(parsed.values.lengths[k])
        if tagged:  # an unreadable line of tags was told already
            message = f"{counts[k]} words for {tagged} tags in {Path(file).name}"
            found.append(Finding(message, bundle.file(texts), k + 1))
    return GoldSide(parsed.values, file, words)


def _texts(bundle: Bundle, name: str, side: GoldSide, found: list[Finding]) -> tuple[Words, ...] | None:
    """Return the words of a file of texts, None where there is none that fits."""
    if name not in bundle.members:
        return None
    lines = bundle.lines(name)
    found.extend(lines.findings)
    fits = _check_count(len(lines.texts), len(side.tags), bundle.file(name), side.file, found)
    return tuple(map(_SPLITTER.split, lines.texts)) if fits else None


def _check_count(lines: int, wanted: int, file: str, other: str, found: list[Finding]) -> bool:
    if lines != wanted:
        message = f"{file} has {lines} lines, {other} has {wanted}: line counts must match"
        found.append(Finding(message, error=True))
    return lines == wanted
