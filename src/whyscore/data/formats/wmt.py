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
    path: str | Path, languages: tuple[str, str] | None = None, *, encoding: str = "utf-8", limits: Limits | None = None
) -> Dataset:
    """Return the segments of a language pair with their references, documents, human scores and error spans."""
    root = Path(path)
    pair = _pair(root, languages)
    references = _find_files(root / "references", f"{pair}.", ".txt")
    outputs = _find_files(root / _OUTPUTS / pair, "", ".txt")
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
    path: str | Path, languages: tuple[str, str] | None = None, *, encoding: str = "utf-8", limits: Limits | None = None
) -> Dataset:
    """Return the segments of all submissions below a folder, or of one language pair; `und` stands for any language."""
    root = Path(path)
    sets: dict[tuple[str, str, str], dict[str, Path]] = {}
    for file in sorted(root.rglob("news*")):
        named = _SUBMISSION.fullmatch(file.name)
        if named is not None and file.is_file():
            systems = sets.setdefault((named["set"], named["year"], named["pair"]), {})
            if named["system"] in systems:
                raise DataError(f"is present twice: {systems[named['system']]}. Remove one of them", file=str(file))
            systems[named["system"]] = file
    keys = [key for key in sets if languages is None or _is_requested(_languages(key[2]), languages)]
    if not keys:
        there = ", ".join(dict.fromkeys(pair for _, _, pair in sets))
        raise DataError(f"no submission for {'-'.join(languages or ())}; there are: {there}", file=str(root))
    test_sets = [_read_test_set(root, key, sets[key], encoding, limits) for key in keys]
    if len(test_sets) == 1:
        return replace(test_sets[0], name=root.resolve().name)
    pairs = {_languages(pair) for _, _, pair in keys}
    targets = {target for _, target in pairs}
    names = ", ".join(f"{pair} {year}" for _, year, pair in keys)
    message = f"{len(test_sets)} test sets: {names}. decompose --group pair year keeps them apart"
    entries = tuple(
        replace(entry, id=f"{name}.{pair}.{entry.id}")
        for (name, _, pair), data in zip(keys, test_sets, strict=True)
        for entry in data.entries
    )
    languages_of_all = pairs.pop() if len(pairs) == 1 else ("und", targets.pop()) if len(targets) == 1 else None
    findings = (*(finding for data in test_sets for finding in data.findings), Finding("several-test-sets", message))
    return Dataset(root.resolve().name, entries, languages_of_all, findings)


def _is_requested(pair: tuple[str, str], languages: tuple[str, str]) -> bool:
    return all(requested in ("und", language) for language, requested in zip(pair, languages, strict=True))


def _read_test_set(
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


def _pair(root: Path, languages: tuple[str, str] | None) -> str:
    there = sorted(_find_files(root / _SOURCES, "", ".txt"))
    requested = None if languages is None else "-".join(languages)
    if requested in there:
        return str(requested)
    if requested is None and len(there) == 1:
        return there[0]
    problem = f"no sources of {requested}" if requested else f"{len(there)} language pairs"
    raise DataError(f"{problem}: choose one with -l; there are: {', '.join(there) or 'none'}", file=str(root))


def _languages(pair: str) -> tuple[str, str]:
    source, _, target = pair.partition("-")
    return source, target


def _find_files(folder: Path, prefix: str, suffix: str) -> dict[str, Path]:
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
        document = documents.get(place)
        where = {"seg": place, "doc": order.index(document) if document else 0, "sys": 0}
        extra = {"domain": document[0]} if document else {}
        scores_of_entry = dict(_of(human, entry.system, where))
        stored: dict[str, object] = dict(_of(metrics, entry.system, where))
        entries.append(
            replace(entry, human=scores_of_entry, document=document[1] if document else None, extra={**extra, **stored})
        )
    notes = list(_unknown([*human, *metrics], data.systems))
    return replace(data, entries=tuple(entries), findings=(*data.findings, *notes))


def _documents(file: Path, size: int) -> dict[int, tuple[str, str]]:
    """Return domain and document of each segment; none where the file is not there."""
    if not file.is_file():
        return {}
    documents = {}
    lines = read_lines(file, expected="a domain and a document per line").texts
    if len(lines) != size:
        raise DataError(f"has {len(lines)} lines, the sources have {size}: line counts must match", file=str(file))
    for number, line in enumerate(lines):
        domain, blank, document = line.replace("\t", " ", 1).partition(" ")
        if not domain or not blank or not document.strip():
            raise DataError(f"{line!r} is not a domain and a document", file=str(file), line=number + 1)
        documents[number] = domain, document.strip()
    return documents


def _score_files(folder: Path, prefix: str, levels: Sequence[str]) -> Iterator[_Scores]:
    for level in levels:
        for name, file in _find_files(folder, prefix, f".{level}.score").items():
            yield _Scores(name if level == "seg" else f"{name}.{level}", level, str(file), _scores(file))


def _scores(file: Path) -> dict[str, list[float]]:
    scores: dict[str, list[float]] = {}
    for number, line in enumerate(read_lines(file, expected="a system and a score per line").texts, start=1):
        system, _, cell = line.replace("\t", " ", 1).partition(" ")
        try:
            scores.setdefault(system, []).append(
                math.nan if cell.strip() == "None" else word_lines.number(cell.strip())
            )
        except word_lines.Fault as error:
            raise DataError(f"{line!r} is not a system and a score", file=str(file), line=number) from error
    return scores


def _check_counts(scores: _Scores, expected: int) -> None:
    what = {"seg": "segments", "doc": "documents", "sys": "score per system"}[scores.level]
    for system, values in scores.values.items():
        if len(values) != expected:
            raise DataError(f"{system!r} has {len(values)} scores, expected {expected} {what}", file=scores.file)


def _of(scores: Sequence[_Scores], system: str, where: Mapping[str, int]) -> Iterator[tuple[str, float]]:
    for score in scores:
        if system in score.values:
            value = score.values[system][where[score.level]]
            if not math.isnan(value):
                yield score.name, value


def _unknown(scores: Sequence[_Scores], systems: Sequence[str]) -> Iterator[Finding]:
    for score in scores:
        others = sorted(set(score.values) - set(systems))
        if others:
            yield Finding(
                "unknown-system", f"scores of systems without texts were left out: {', '.join(others)}", score.file
            )


def _with_spans(data: Dataset, root: Path, pair: str) -> Dataset:
    """Return the data with the error spans of the first file of ratings."""
    files = list(_find_files(root / "human-scores", f"{pair}.", ".seg.rating").values())
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
    rows = [k for k, entry in enumerate(data.entries) if entry.system not in alone]
    findings = list(data.findings)
    if alone:
        findings.append(
            Finding(
                "reference-is-system",
                f"{both[0]} is both the only reference and a system: it was left out as a system",
                str(references[both[0]]),
            )
        )
    entries = tuple(_without_own(data.entries[k], both) for k in rows)
    return replace(data.take(rows), entries=entries, findings=tuple(findings))


def _without_own(entry: Entry, both: Sequence[str]) -> Entry:
    segment = entry.segment
    if entry.system not in both or segment.hypothesis not in segment.references:
        return entry
    references = list(segment.references)
    references.remove(segment.hypothesis)
    return replace(entry, segment=replace(segment, references=tuple(references)))
