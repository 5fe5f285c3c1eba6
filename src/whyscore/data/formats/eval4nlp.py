"""Gold and submissions of the word-level shared tasks Eval4NLP 2021 and WMT22: folders or zip archives of plain lines.

| task | gold |
|---|---|
| `eval4nlp2021` | `X.src X.mt X.src-tags X.tgt-tags X.da` for one prefix X |
| `wmt22` | `src_tok mt_tok target.gold sentence.gold` |

| submission | content |
|---|---|
| `target.submission` | error scores of the hypothesis' words, blanks between, one sentence a line |
| `source.submission` | the same for the source, optional |
| `sentence.submission` | one number a sentence, optional |
| `metadata.txt` | Eval4NLP 2021: team; `constrained` or `unconstrained`; description. WMT22: team; description |

1. The task is recognised by the files that are there; texts, source tags and sentence scores may be missing.
2. Words are what stands between blanks (U+0020 alone) of a line that somebody else split; they are never split again.
3. A line with another number of words than of tags is a finding: tags are judged all the same, texts are not used.
4. `look_at_gold` and `look_at_submission` collect every fault with file and line; `read_gold` and `read_submission`
   raise the first.
5. Writing gives full precision, so that reading gives the same floats back.
6. As data for other commands, runs of marked words are error spans (`gold_dataset`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np

from whyscore.data.files import Bundle, Limits, open_bundle, read_lines
from whyscore.data.formats.word_lines import numbers, score_lines, tag_lines
from whyscore.data.writing import make_folder, write_lines
from whyscore.errors import DataError, SpecError
from whyscore.stats.spans import Thresholds, to_spans
from whyscore.stats.words import Ragged
from whyscore.text.splitters import WhiteSpace
from whyscore.types import Dataset, Entry, ErrorSpan, Finding, FloatVector, Segment, Words

Task = Literal["eval4nlp2021", "wmt22"]
Judged = Literal["target", "source"]
Track = Literal["constrained", "unconstrained"]
TRACKS: tuple[Track, ...] = get_args(Track)
SIDES: tuple[Judged, ...] = get_args(Judged)
EOS = "<EOS>"
METADATA = "metadata.txt"
SENTENCE = "sentence.submission"
SPLITTER = WhiteSpace("space")
_TARGET = ".tgt-tags"
_RUNS = Thresholds(major=0.5)
_LINES: dict[Task, tuple[str, ...]] = {
    "eval4nlp2021": ("team", "track", "description"),
    "wmt22": ("team", "description"),
}


@dataclass(frozen=True, slots=True, eq=False)
class GoldSide:
    """The tags of one text of every segment, and its words where the texts are there."""

    tags: Ragged
    file: str
    words: tuple[Words, ...] | None = None


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
    languages: tuple[str, str] | None = None
    """Of source and target, where they are known."""
    several: bool = False
    """Whether these are texts of several systems, which the ids name (`join_id`)."""

    def __len__(self) -> int:
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


def join_id(system: str, segment: str) -> str:
    """Return what a segment is called in gold of several systems.

    >>> join_id("online-A", "17")
    'online-A/17'
    """
    return f"{system}/{segment}"


class Scored(NamedTuple):
    """The error scores of one side."""

    scores: Ragged
    file: str
    missing: tuple[int, ...] = ()
    """Sentences without scores, because a language model gave no answer that can be used."""


@dataclass(frozen=True, eq=False)
class Submission:
    """The scores somebody hands in."""

    name: str
    sides: Mapping[Judged, Scored]
    sentence: FloatVector | None = None
    sentence_file: str | None = None
    metadata: tuple[str, ...] | None = None
    findings: tuple[Finding, ...] = ()


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
        raise DataError(f"holds several gold sets ({', '.join(sorted(prefixes))}): keep one per folder", file=str(path))
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
    findings: list[Finding] = []
    target = _side(bundle, names["target"], names["mt"], findings)
    source = _side(bundle, names["source"], names["src"], findings) if names["source"] in bundle.members else None
    sources = source.words if source is not None else _texts(bundle, names["src"], target, findings)
    sentence = None
    if names["sentence"] in bundle.members:
        file = bundle.file(names["sentence"])
        sentence, faults = numbers(bundle.lines(names["sentence"]), file)
        findings.extend(faults)
        _check_count(len(sentence), len(target.tags), file, target.file, findings)
    if source is not None:
        _check_count(len(source.tags), len(target.tags), source.file, target.file, findings)
    return Gold(bundle.name, task, target, source, sentence, findings=tuple(findings), sources=sources)


def _side(bundle: Bundle, tags: str, texts: str, findings: list[Finding]) -> GoldSide:
    file = bundle.file(tags)
    parsed = tag_lines(bundle.lines(tags), file)
    findings.extend(parsed.findings)
    bare = GoldSide(parsed.values, file)
    words = _texts(bundle, texts, bare, findings)
    if words is None:
        return bare
    counts = np.array([len(text) for text in words])
    for k in np.flatnonzero(counts != parsed.values.lengths).tolist():
        tagged = int(parsed.values.lengths[k])
        if tagged:  # an unreadable line of tags is reported already
            message = f"{counts[k]} words for {tagged} tags in {Path(file).name}"
            findings.append(Finding("word-count", message, bundle.file(texts), k + 1))
    return GoldSide(parsed.values, file, words)


def _texts(bundle: Bundle, name: str, side: GoldSide, findings: list[Finding]) -> tuple[Words, ...] | None:
    """Return the words of a file of texts, None where there is none that fits."""
    if name not in bundle.members:
        return None
    lines = bundle.lines(name)
    findings.extend(lines.findings)
    fits = _check_count(len(lines.texts), len(side.tags), bundle.file(name), side.file, findings)
    return tuple(map(SPLITTER.split, lines.texts)) if fits else None


def _check_count(lines: int, expected: int, file: str, other: str, findings: list[Finding]) -> bool:
    if lines != expected:
        message = f"{file} has {lines} lines, {other} has {expected}: line counts must match"
        findings.append(Finding("line-count", message, error=True))
    return lines == expected


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
        raise DataError("has no texts: spans need them", file=str(path))
    texts = _references(gold, references, limits) if references else None
    entries = []
    for k, (words, tags) in enumerate(zip(gold.target.words, gold.target.tags.rows(), strict=True)):
        if len(words) != len(tags):
            raise DataError(f"{len(words)} words for {len(tags)} tags", file=gold.target.file, line=k + 1)
        spans = tuple(ErrorSpan(span.start, span.end, "major") for span in to_spans(words, tags, _RUNS))
        human = {} if gold.sentence is None else {"da": float(gold.sentence[k])}
        source = None if gold.sources is None else gold.sources[k].text
        segment = Segment(words.text, source, (texts[k],) if texts else ())
        entries.append(Entry(str(k), "target", segment, human, spans))
    return Dataset(gold.name, tuple(entries), languages, gold.findings)


def _references(gold: Gold, ending: str, limits: Limits | None) -> list[str]:
    """Return the lines of the file that lies beside the tags and ends like that."""
    lines = lines_beside(gold, ending, limits=limits)
    if lines is None:
        tags = Path(gold.target.file)
        raise DataError(f"no file {tags.stem}.{ending} for --columns references={ending}", file=str(tags.parent))
    return lines


def lines_beside(gold: Gold, ending: str, *, limits: Limits | None = None) -> list[str] | None:
    """Return the lines of the file beside the tags that ends in `pe`, `hter` or `src-mt.alignments`; None without."""
    tags = Path(gold.target.file)
    file = tags.with_suffix(f".{ending}")
    if not file.is_file():
        return None
    lines = read_lines(file, limits=limits).texts
    if len(lines) != len(gold):
        raise DataError(f"{file} has {len(lines)} lines, {tags} has {len(gold)}: line counts must match")
    return lines


def write_gold(folder: str | Path, gold: Gold, shares: Mapping[Judged, Ragged] | None = None) -> list[Path]:
    """Return the files of a gold folder: tags, texts and scores as far as they are known, and shares of annotators."""
    place, written = make_folder(folder), []
    names: dict[Judged, tuple[str, str]] = {"target": ("tgt", "mt"), "source": ("src", "src")}
    contents: dict[str, Iterable[str]] = {}
    for side, (short, text) in names.items():
        labels, words = gold.side(side), gold.words(side)
        if labels is not None:
            contents[f"{short}-tags"] = (" ".join(str(int(tag)) for tag in row) for row in labels.tags.rows())
        if words is not None:
            contents[text] = (text_words.text for text_words in words)
        if shares and side in shares:
            contents[f"{short}-shares"] = (" ".join(map(_show_values, row)) for row in shares[side].rows())
    if gold.sentence is not None and not np.isnan(gold.sentence).any():
        contents["da"] = map(_show_values, gold.sentence)
    for ending, lines in contents.items():
        written.append(place / f"gold.{ending}")
        write_lines(written[-1], (f"{line}\n" for line in lines))
    return written


def read_submission(path: str | Path, *, name: str | None = None, limits: Limits | None = None) -> Submission:
    """Return a submission; a value that is no finite number is an error with file and line."""
    submission = look_at_submission(path, name=name, limits=limits)
    refuse([finding for finding in submission.findings if finding.error])
    return submission


def look_at_submission(path: str | Path, *, name: str | None = None, limits: Limits | None = None) -> Submission:
    """Return a submission with all its faults as findings."""
    bundle = open_bundle(path, "a submission with target.submission", limits)
    findings: list[Finding] = []
    sides: dict[Judged, Scored] = {}
    for side in SIDES:
        if f"{side}.submission" in bundle.members:
            file = bundle.file(f"{side}.submission")
            parsed = score_lines(bundle.lines(f"{side}.submission"), file)
            findings.extend(parsed.findings)
            sides[side] = Scored(parsed.values, file)
    if not sides:
        there = ", ".join(sorted(bundle.members)) or "nothing"
        raise DataError(f"no submission: expected target.submission; there is {there}", file=str(path))
    sentence = None
    if SENTENCE in bundle.members:
        sentence, faults = numbers(bundle.lines(SENTENCE), bundle.file(SENTENCE))
        findings.extend(faults)
    metadata = tuple(bundle.lines(METADATA).texts) if METADATA in bundle.members else None
    return Submission(name or bundle.name, sides, sentence, bundle.file(SENTENCE), metadata, tuple(findings))


def misfits(submission: Submission, gold: Gold) -> list[Finding]:
    """Return every line whose number of scores is not the gold's, and every file with another number of lines."""
    findings: list[Finding] = []
    for side, (scores, file, _) in submission.sides.items():
        labels = gold.side(side)
        if labels is None or not _check_count(len(scores), len(labels.tags), file, labels.file, findings):
            continue
        for k in np.flatnonzero((scores.lengths != labels.tags.lengths) & (scores.lengths > 0)).tolist():
            message = f"{scores.lengths[k]} scores for {labels.tags.lengths[k]} tags in {Path(labels.file).name}"
            findings.append(Finding("word-count", message, file, k + 1, error=True))
    if submission.sentence is not None:
        _check_count(len(submission.sentence), len(gold), str(submission.sentence_file), gold.name, findings)
    return findings


def metadata_faults(submission: Submission, task: Task, path: str | Path, *, required: bool) -> list[Finding]:
    """Return what is wrong with the metadata of a task."""
    expected, file = _LINES[task], str(Path(path) / METADATA)
    rule = f"{task} wants {len(expected)} non-empty lines: {', '.join(expected)}"
    if submission.metadata is None:
        return [Finding("metadata", f"is missing; {rule}", file, error=True)] if required else []
    lines = [line for line in submission.metadata if line.strip()]
    if len(lines) != len(expected):
        return [Finding("metadata", f"{len(lines)} non-empty lines; {rule}", file, error=True)]
    if "track" in expected and lines[1].strip().lower() not in TRACKS:
        return [Finding("metadata", f"the track is {lines[1]!r}, expected {' or '.join(TRACKS)}", file, 2, error=True)]
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
    place, written = make_folder(folder), []
    for side, rows in sides.items():
        written.append(place / f"{side}.submission")
        write_lines(written[-1], (" ".join(map(_show_values, row)) + "\n" for row in rows))
    if sentence is not None:
        written.append(place / SENTENCE)
        write_lines(written[-1], (f"{_show_values(value)}\n" for value in sentence))
    if team is not None:
        about = {"team": team, "track": track, "description": description or "made with whyscore"}
        written.append(place / METADATA)
        write_lines(written[-1], [f"{' '.join(about[role].split())}\n" for role in _LINES[task]])
    return written


def _show_values(value: float) -> str:
    if not np.isfinite(value):
        raise DataError(f"a word score is {value}: submissions hold finite numbers only")
    return repr(float(value))
