"""A gold folder of a word-level shared task as data of every verb: runs of marked words are error spans."""

from pathlib import Path

from whyscore.errors import DataError
from whyscore.io.eval4nlp import Gold, read_gold
from whyscore.io.files import read_lines
from whyscore.io.unpacking import Limits
from whyscore.stats.spans import Thresholds, to_spans
from whyscore.types import Dataset, Entry, ErrorSpan, Segment

_RUNS = Thresholds(major=0.5)


def is_gold(path: str | Path) -> bool:
    """Return whether a folder holds gold of a word-level task."""
    return (Path(path) / "target.gold").is_file() or any(Path(path).glob("*.tgt-tags"))


def gold_dataset(
    path: str | Path,
    *,
    languages: tuple[str, str] | None = None,
    references: str | None = None,
    limits: Limits | None = None,
) -> Dataset:
    """Return the segments of a gold folder, runs of marked words as spans.

    Args:
        path: the folder, or a zip archive.
        languages: source and target language.
        references: the ending of a file with references, such as `pe` for post-edits; by default there are none, as
            post-edits are made from the very texts they would judge.
        limits: guards against huge files.
    """
    gold = read_gold(path, limits=limits)
    if gold.target.words is None:
        raise DataError("comes without its texts: spans need them", file=str(path))
    texts = _references(gold, references, limits) if references else None
    entries = []
    for k, (words, tags) in enumerate(zip(gold.target.words, gold.target.tags.rows(), strict=True)):
        if len(words) != len(tags):
            raise DataError(f"{len(words)} words for {len(tags)} tags", file=gold.target.file, line=k + 1)
        spans = tuple(ErrorSpan(one.start, one.end, "major") for one in to_spans(words, tags, _RUNS))
        human = {} if gold.sentence is None else {"da": float(gold.sentence[k])}
        source = None if gold.sources is None else gold.sources[k].text
        segment = Segment(words.text, source, (texts[k],) if texts else ())
        entries.append(Entry(str(k), "target", segment, human, spans))
    return Dataset(gold.name, tuple(entries), languages, gold.findings)


def _references(gold: Gold, ending: str, limits: Limits | None) -> list[str]:
    """Return the lines of the file that lies beside the tags and ends like that."""
    tags = Path(gold.target.file)
    file = tags.with_suffix(f".{ending}")
    if not file.is_file():
        raise DataError(f"no file {file.name} for --columns references={ending}", file=str(tags.parent))
    lines = read_lines(file, limits=limits).texts
    if len(lines) != len(gold):
        raise DataError(f"{file} has {len(lines)} lines, {tags} has {len(gold)}: line counts must match")
    return lines
