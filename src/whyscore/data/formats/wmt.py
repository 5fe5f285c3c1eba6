"""A WMT folder, as mt-metrics-eval lays it out: the texts of a language pair and what was said of them.

| file | holds |
|---|---|
| `sources/PAIR.txt`, `references/PAIR.NAME.txt`, `system-outputs/PAIR/NAME.txt` | one segment a line |
| `documents/PAIR.docs` | `domain document` for every segment |
| `human-scores/PAIR.NAME.{seg,doc,sys}.score` | `system score`, system by system in the order of lines or documents |
| `human-scores/PAIR.NAME.seg.rating` | `system TAB rating in JSON TAB rater`: error spans |
| `metric-scores/PAIR/NAME-REF.{seg,sys}.score` | stored metrics, as human scores are written |

1. The pair is the one that was asked for, or the only one there.
2. Human scores go by NAME; those of documents and systems by `NAME.doc` and `NAME.sys`, the same for all segments they
   are about. Stored metrics are extra columns. `None` is a missing score.
3. A reference that is also a system is never compared with itself; where it is the only one, that system is left out.

A folder of submissions as WMT published them until 2019, read in one go, with all folders below it:

| file | holds |
|---|---|
| `newstestYYYY.SYSTEM.xx-yy` | one segment a line |
| `newstestYYYY-xxyy-ref.yy`, `newstestYYYY-xxyy-src.xx` | their references and, where it is there, the source |

Each test set is read like line-aligned texts. Entries hold `pair` and `year`, by which results are grouped.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from whyscore.data.files import Limits, read_lines
from whyscore.data.formats import word_lines
from whyscore.data.formats.dialects import read_mtme
from whyscore.data.formats.text import read_texts
from whyscore.errors import DataError
from whyscore.types import Dataset, Entry, Finding

_SOURCES, _OUTPUTS = "sources", "system-outputs"
_SUBMISSION = re.compile(r"(?P<set>news[a-z]*(?P<year>\d{4}))\.(?P<system>.+)\.(?P<pair>[a-z]{2,3}-[a-z]{2,3})")


def is_wmt(path: str | Path) -> bool:
    """Return whether a folder is laid out like this."""
    return all((Path(path) / name).is_dir() for name in (_SOURCES, _OUTPUTS))


def read_wmt(
    path: str | Path,
    languages: tuple[str, str] | None = None,
    *,
    encoding: str = "utf-8",
    limits: Limits | None = None,
) -> Dataset:
    """Return the segments of a language pair with their references, documents, human scores and error spans."""
    root = Path(path)
    pair = _pair(root, languages)
    references = _named(root / "references", f"{pair}.", ".txt")
    outputs = _named(root / _OUTPUTS / pair, "", ".txt")
    if not outputs:
        raise DataError(f"no system of {pair}: expected files NAME.txt", file=str(root / _OUTPUTS / pair))
    # References come last: what is shared by all systems is read off the first one.
    systems = sorted(outputs, key=lambda name: (name in references, name))
    data = read_texts(
        [outputs[name] for name in systems],
        list(references.values()),
        root / _SOURCES / f"{pair}.txt",
        systems=systems,
        languages=_languages(pair),
        encoding=encoding,
        limits=limits,
    )
    data = _with_scores(replace(data, name=f"{root.resolve().name} {pair}"), root, pair)
    return _without_themselves(_with_spans(data, root, pair), references)


def is_submissions(path: str | Path) -> bool:
    """Return whether a folder, or one below it, holds submissions to WMT."""
    return any(_SUBMISSION.fullmatch(file.name) for file in Path(path).rglob("news*"))


def read_submissions(
    path: str | Path,
    languages: tuple[str, str] | None = None,
    *,
    encoding: str = "utf-8",
    limits: Limits | None = None,
) -> Dataset:
    """Return the segments of all submissions below a folder, or of one language pair; `und` stands for any language."""
    root = Path(path)
    sets: dict[tuple[str, str, str], dict[str, Path]] = {}
    for file in sorted(root.rglob("news*")):
        named = _SUBMISSION.fullmatch(file.name)
        if named is not None and file.is_file():
            systems = sets.setdefault((named["set"], named["year"], named["pair"]), {})
            if named["system"] in systems:
                raise DataError(f"is there twice: {systems[named['system']]}. Remove one of them", file=str(file))
            systems[named["system"]] = file
    wanted = [key for key in sets if languages is None or _asked(_languages(key[2]), languages)]
    if not wanted:
        there = ", ".join(dict.fromkeys(pair for _, _, pair in sets))
        raise DataError(f"no submission for {'-'.join(languages or ())}; there are: {there}", file=str(root))
    found = [_submitted(root, key, sets[key], encoding, limits) for key in wanted]
    if len(found) == 1:
        return replace(found[0], name=root.resolve().name)
    pairs = {_languages(pair) for _, _, pair in wanted}
    targets = {target for _, target in pairs}
    names = ", ".join(f"{pair} {year}" for _, year, pair in wanted)
    told = f"{len(found)} test sets: {names}. decompose --group pair year keeps them apart"
    entries = tuple(
        replace(entry, id=f"{name}.{pair}.{entry.id}")
        for (name, _, pair), data in zip(wanted, found, strict=True)
        for entry in data.entries
    )
    one = pairs.pop() if len(pairs) == 1 else ("und", targets.pop()) if len(targets) == 1 else None
    findings = (*(finding for data in found for finding in data.findings), Finding("several-test-sets", told))
    return Dataset(root.resolve().name, entries, one, findings)


def _asked(pair: tuple[str, str], languages: tuple[str, str]) -> bool:
    return all(wanted in ("und", own) for own, wanted in zip(pair, languages, strict=True))


def _submitted(
    root: Path, key: tuple[str, str, str], systems: Mapping[str, Path], encoding: str, limits: Limits | None
) -> Dataset:
    """Return the submissions to one test set, each as long as its reference."""
    name, year, pair = key
    source, target = _languages(pair)
    references = sorted(root.rglob(f"{name}-{source}{target}-ref*.{target}"))
    if not references:
        raise DataError(f"no reference of {name} {pair}: expected {name}-{source}{target}-ref.{target}", file=str(root))
    sources = sorted(root.rglob(f"{name}-{source}{target}-src.{source}"))
    data = read_texts(
        list(systems.values()),
        references,
        sources[0] if sources else None,
        systems=list(systems),
        languages=(source, target),
        encoding=encoding,
        limits=limits,
    )
    return replace(data, entries=tuple(replace(e, extra={"pair": pair, "year": year}) for e in data.entries))


class _Scores(NamedTuple):
    """The scores of one file, by system in its own order."""

    name: str
    level: str
    file: str
    values: Mapping[str, list[float]]


def _pair(root: Path, asked: tuple[str, str] | None) -> str:
    there = sorted(_named(root / _SOURCES, "", ".txt"))
    wanted = None if asked is None else "-".join(asked)
    if wanted in there:
        return str(wanted)
    if wanted is None and len(there) == 1:
        return there[0]
    problem = f"no sources of {wanted}" if wanted else f"{len(there)} language pairs"
    raise DataError(f"{problem}: say which with -l; there are: {', '.join(there) or 'none'}", file=str(root))


def _languages(pair: str) -> tuple[str, str]:
    source, _, target = pair.partition("-")
    return source, target


def _named(folder: Path, prefix: str, suffix: str) -> dict[str, Path]:
    """Return the files of a folder by what stands between prefix and suffix."""
    files = sorted(folder.glob(f"{prefix}*{suffix}")) if folder.is_dir() else []
    return {file.name[len(prefix) : len(file.name) - len(suffix)]: file for file in files}


def _with_scores(data: Dataset, root: Path, pair: str) -> Dataset:
    """Return the data with documents, human scores and stored metrics."""
    size = len(data.ids)
    documents = _documents(root / "documents" / f"{pair}.docs", size)
    order = list(dict.fromkeys(documents.values()))
    human = list(_score_files(root / "human-scores", f"{pair}.", ("seg", "doc", "sys")))
    metrics = list(_score_files(root / "metric-scores" / pair, "", ("seg", "sys")))
    for scores in (*human, *metrics):
        _check_counts(scores, {"seg": size, "doc": len(order), "sys": 1}[scores.level])
    places = {name: k for k, name in enumerate(data.ids)}
    entries = []
    for entry in data.entries:
        place = places[entry.id]
        found = documents.get(place)
        where = {"seg": place, "doc": order.index(found) if found else 0, "sys": 0}
        extra = {"domain": found[0]} if found else {}
        said = dict(_of(human, entry.system, where))
        stored: dict[str, object] = dict(_of(metrics, entry.system, where))
        entries.append(replace(entry, human=said, document=found[1] if found else None, extra={**extra, **stored}))
    notes = list(_unknown([*human, *metrics], data.systems))
    return replace(data, entries=tuple(entries), findings=(*data.findings, *notes))


def _documents(file: Path, size: int) -> dict[int, tuple[str, str]]:
    """Return domain and document of each segment; none where the file is not there."""
    if not file.is_file():
        return {}
    found = {}
    lines = read_lines(file, expected="a domain and a document a line").texts
    if len(lines) != size:
        raise DataError(f"has {len(lines)} lines, the sources have {size}: line counts must match", file=str(file))
    for number, line in enumerate(lines):
        domain, blank, document = line.replace("\t", " ", 1).partition(" ")
        if not domain or not blank or not document.strip():
            raise DataError(f"{line!r} is not a domain and a document", file=str(file), line=number + 1)
        found[number] = domain, document.strip()
    return found


def _score_files(folder: Path, prefix: str, levels: Sequence[str]) -> Iterator[_Scores]:
    for level in levels:
        for name, file in _named(folder, prefix, f".{level}.score").items():
            yield _Scores(name if level == "seg" else f"{name}.{level}", level, str(file), _scores(file))


def _scores(file: Path) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for number, line in enumerate(read_lines(file, expected="a system and a score a line").texts, start=1):
        system, _, cell = line.replace("\t", " ", 1).partition(" ")
        try:
            found.setdefault(system, []).append(math.nan if cell.strip() == "None" else word_lines.number(cell.strip()))
        except word_lines.Fault as error:
            raise DataError(f"{line!r} is not a system and a score", file=str(file), line=number) from error
    return found


def _check_counts(scores: _Scores, wanted: int) -> None:
    what = {"seg": "segments", "doc": "documents", "sys": "score per system"}[scores.level]
    for system, values in scores.values.items():
        if len(values) != wanted:
            raise DataError(f"{system!r} has {len(values)} scores, expected {wanted} {what}", file=scores.file)


def _of(scores: Sequence[_Scores], system: str, where: Mapping[str, int]) -> Iterator[tuple[str, float]]:
    for one in scores:
        if system in one.values:
            value = one.values[system][where[one.level]]
            if not math.isnan(value):
                yield one.name, value


def _unknown(scores: Sequence[_Scores], systems: Sequence[str]) -> Iterator[Finding]:
    for one in scores:
        others = sorted(set(one.values) - set(systems))
        if others:
            yield Finding(
                "unknown-system", f"scores of systems without texts were left out: {', '.join(others)}", one.file
            )


def _with_spans(data: Dataset, root: Path, pair: str) -> Dataset:
    """Return the data with the error spans of the first file of ratings."""
    files = list(_named(root / "human-scores", f"{pair}.", ".seg.rating").values())
    if not files:
        return data
    first, *others = files
    rated = read_mtme(first, data)
    if not others:
        return rated
    left = ", ".join(file.name for file in others)
    note = Finding("spans-not-read", f"error spans are those of this file; not read: {left}", str(first))
    return replace(rated, findings=(*rated.findings, note))


def _without_themselves(data: Dataset, references: Mapping[str, Path]) -> Dataset:
    """Return the data in which no reference is its own reference."""
    both = [name for name in references if name in data.systems]
    alone = set(both) if len(references) == 1 else set()
    kept = [k for k, entry in enumerate(data.entries) if entry.system not in alone]
    findings = list(data.findings)
    if alone:
        findings.append(
            Finding(
                "reference-is-system",
                f"{both[0]} is the only reference and a system too: as a system it was left out",
                str(references[both[0]]),
            )
        )
    entries = tuple(_without_own(data.entries[k], both) for k in kept)
    return replace(data.take(kept), entries=entries, findings=tuple(findings))


def _without_own(entry: Entry, both: Sequence[str]) -> Entry:
    segment = entry.segment
    if entry.system not in both or segment.hypothesis not in segment.references:
        return entry
    references = list(segment.references)
    references.remove(segment.hypothesis)
    return replace(entry, segment=replace(segment, references=tuple(references)))
