"""Makes the real data that ship with whyscore, out of public MQM ratings.

    python scripts/make_sample.py PATH_TO_RATINGS [OUTPUT]

The ratings are those of google/wmt-mqm-human-evaluation for the WMT 2021 TED talks, Chinese to English, as JSON lines
(`system seg_id rater category severity source target`, one error a line, the error between `<v>` and `</v>`).

1. Systems: five of the thirteen, spread from the best to the worst by their MQM score over all 529 segments. `ref-A`
   and `ref-B` are the two references.
2. Segments: those that were rated for all five systems and both references, in the order of their numbers; of these,
   the hundred at equal distances from the first to the last, so that all talks are in it.
3. Spans: the marks are taken out of the text and become code-point offsets; a mark without an end runs to the end of
   the text; blanks at the edges are cut off. A mark in the source (an omission, or an error of the source) is a span
   there.
4. MQM score: minus the sum of the weights (major 5, minor 1, minor punctuation 0.1, non-translation 25), as in
   Freitag et al. (2021), https://doi.org/10.1162/tacl_a_00437.

The result is always the same, byte for byte.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from whyscore.data.dataset import dataset_lines
from whyscore.data.writing import write_lines
from whyscore.types import Dataset, Entry, ErrorSpan, Segment, Side

OUTPUT = Path(__file__).resolve().parents[1] / "src" / "whyscore" / "data" / "ted_zhen_sample.jsonl"
CREATED = "2026-11-15T00:00:00Z"
SYSTEMS = ("DIDI-NLP", "MiSS", "Borderline", "Facebook-AI", "Online-W")
REFERENCES = ("ref-A", "ref-B")
SEGMENTS = 100
OPEN, CLOSE = "<v>", "</v>"

Severity = Literal["minor", "major"]
Rating = Mapping[str, str]
Key = tuple[str, int]
"""A system and the number of a segment."""


class Marked(NamedTuple):
    """A text without its marks, and the stretch that was between them, if any."""

    text: str
    span: tuple[int, int] | None


def read_ratings(path: Path) -> dict[Key, list[Rating]]:
    """Return the ratings of each system and segment, in the order of the file."""
    ratings: dict[Key, list[Rating]] = defaultdict(list)
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            row = json.loads(line)
            ratings[row["system"], row["seg_id"]].append(row)
    return ratings


def unmarked(text: str) -> Marked:
    """Return a text without its marks, and the marked stretch without outer blanks.

    >>> unmarked("a <v> big </v>cat"), unmarked("a <v>cat"), unmarked("a cat").span
    (Marked(text='a  big cat', span=(3, 6)), Marked(text='a cat', span=(2, 5)), None)
    """
    before, mark, rest = text.partition(OPEN)
    if not mark:
        return Marked(text, None)
    inside, _, after = rest.partition(CLOSE)
    start = len(before) + len(inside) - len(inside.lstrip())
    return Marked(before + inside + after, (start, start + len(inside.strip())))


def weight(row: Rating) -> float:
    """Return what an error costs."""
    if row["category"] == "Non-translation!":
        return 25.0
    if row["severity"] == "Major":
        return 5.0
    if row["severity"] != "Minor":
        return 0.0
    return 0.1 if row["category"] == "Fluency/Punctuation" else 1.0


def mqm(rows: Iterable[Rating]) -> float:
    """Return the MQM score of one rater's errors in a segment; 0 is perfect."""
    return 0.0 - sum(map(weight, rows))


def spans(rows: Iterable[Rating]) -> tuple[ErrorSpan, ...]:
    """Return the marked errors, as often as they were marked."""
    found = []
    for row in rows:
        severity: Severity = "major" if row["severity"] == "Major" else "minor"
        for side, text in ((Side.HYPOTHESIS, row["target"]), (Side.SOURCE, row["source"])):
            span = unmarked(text).span
            if span is not None:
                found.append(ErrorSpan(*span, severity, row["category"], side))
    return tuple(found)


def text_of(rows: Iterable[Rating], key: str) -> str:
    """Return the text that all ratings of a segment are about."""
    (text,) = {unmarked(row[key]).text for row in rows}
    return text


def chosen(ratings: Mapping[Key, list[Rating]]) -> list[int]:
    """Return the segments of the sample."""
    wanted = (*SYSTEMS, *REFERENCES)
    numbers = sorted({number for _, number in ratings if all((system, number) in ratings for system in wanted)})
    last = len(numbers) - 1
    return [numbers[k * last // (SEGMENTS - 1)] for k in range(SEGMENTS)]


def entry(ratings: Mapping[Key, list[Rating]], system: str, number: int) -> Entry:
    """Return one system's segment with its references and what the rater said."""
    rows = ratings[system, number]
    references = tuple(text_of(ratings[reference, number], "target") for reference in REFERENCES)
    segment = Segment(text_of(rows, "target"), text_of(rows, "source"), references)
    (rater,) = {row["rater"] for row in rows}
    return Entry(str(number), system, segment, {"mqm": mqm(rows)}, spans(rows), extra={"rater": rater})


def sample(path: Path) -> Dataset:
    """Return the sample of a file of ratings."""
    ratings = read_ratings(path)
    entries = tuple(entry(ratings, system, number) for system in SYSTEMS for number in chosen(ratings))
    return Dataset("ted-zh-en sample", entries, ("zh", "en"))


def main(arguments: list[str]) -> None:
    """Write the sample."""
    if len(arguments) not in {1, 2}:
        raise SystemExit("usage: make_sample.py PATH_TO_RATINGS [OUTPUT]")
    output = Path(arguments[1]) if arguments[1:] else OUTPUT
    write_lines(output, dataset_lines(sample(Path(arguments[0])), created=CREATED))


if __name__ == "__main__":
    main(sys.argv[1:])
