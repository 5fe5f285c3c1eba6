"""Previous segments of a document: which ones a segment gets, what is refused, and that they survive a file."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from support.cli import Run
from whyscore.data.dataset import dataset_lines, read_dataset
from whyscore.data.records import digest
from whyscore.data.style import normalize
from whyscore.errors import DataError
from whyscore.scoring import store
from whyscore.types import Dataset, Entry, Inputs, Place, Segment, Side


def entry(name: str, document: str | None = "d", system: str = "A") -> Entry:
    return Entry(name, system, Segment(f"hyp {name}", f"src {name}", (f"ref {name}",)), document=document)


def test_context_is_the_nearest_segments_of_the_same_document_and_system() -> None:
    entries = [entry("1"), entry("1", system="B"), entry("2"), entry("2", system="B"), entry("3"), entry("9", "other")]
    found = Dataset("x", tuple(entries)).with_context(1)
    contexts = [[one.hypothesis for one in own.segment.context] for own in found.entries]
    assert contexts == [[], [], ["hyp 1"], ["hyp 1"], ["hyp 2"], []]
    assert all(not one.context for own in found.entries for one in own.segment.context)
    assert found.with_context(2).entries[4].segment.context == (entries[0].segment, entries[2].segment)
    assert Dataset("x", tuple(entries)).with_context(0).segments == tuple(one.segment for one in entries)
    assert not found.findings


def test_documents_out_of_order_are_refused_or_noted() -> None:
    with pytest.raises(DataError, match="segment '2' comes after '10'"):
        Dataset("x", (entry("1"), entry("10"), entry("2"))).with_context(2)
    named = [entry("intro"), entry("end"), entry("end", system="B"), entry("intro", system="B")]
    with pytest.raises(DataError, match="'A' and 'B' have the segments of document 'd' in different orders"):
        Dataset("x", tuple(named)).with_context(2)
    with pytest.raises(DataError, match=r"segment '2' of system 'A' names no document.*--columns document=NAME"):
        Dataset("x", (entry("1"), entry("2", None))).with_context(1)
    mixed = Dataset("x", (entry("1"), entry("5", "other"), entry("2"))).with_context(1)
    assert [finding.code for finding in mixed.findings] == ["interrupted-document"]
    assert mixed.entries[2].segment.context == (mixed.entries[0].segment,)


def test_context_survives_files_masks_and_normalisation_and_counts_in_digests(tmp_path: Path) -> None:
    plain = Dataset("x", (entry("1"), entry("2")))
    data = plain.with_context(2)
    file = tmp_path / "segments.jsonl"
    file.write_text("".join(dataset_lines(data)), encoding="utf-8")
    assert read_dataset(file).entries == data.entries
    assert digest(data) != digest(plain)
    segment = data.entries[1].segment
    assert store.digest(segment) != store.digest(plain.entries[1].segment)
    for place in (Place(Side.HYPOTHESIS), Place(Side.SOURCE), Place(Side.REFERENCE, 0)):
        assert segment.with_text(place, "other").context == segment.context
    assert segment.only(Inputs.HYPOTHESIS).context == ()
    assert segment.only(Inputs.HYPOTHESIS | Inputs.CONTEXT).context == (Segment("hyp 1"),)
    upper = Dataset("x", (replace(data.entries[1], segment=replace(segment, context=(Segment("HYP"),))),))
    assert normalize(upper, ("case",)).segments[0].context == (Segment("hyp"),)


def test_a_document_has_the_corpus_score_of_its_segments(run: Run, tmp_path: Path) -> None:
    rows = [("a", "the cat sat on the mat", "a cat sat on the mat"), ("a", "dogs bark", "the dogs bark loudly")]
    rows += [("b", "it rains", "it rains")]
    head = "id\tdoc\tsystem\thypothesis\treference"
    lines = [f"{k}\t{document}\tA\t{own}\t{other}" for k, (document, own, other) in enumerate(rows)]
    file, alone = tmp_path / "data.tsv", tmp_path / "a.tsv"
    file.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    alone.write_text("\n".join([head, *lines[:2]]) + "\n", encoding="utf-8")
    done = run("score", file, "-m", "chrf", "token_f1", "--by-document", "-f", "json")
    found = {(one["document"], one["metric"]): one for one in json.loads(done.out)["records"]}
    corpus = run("score", alone, "-m", "chrf", "token_f1", "-b", "-w", 6).out.split()
    assert [f"{found['a', name]['score']:.6f}" for name in ("chrf", "token_f1")] == corpus
    assert (found["a", "chrf"]["aggregation"], found["a", "token_f1"]["aggregation"]) == ("corpus", "mean")
    assert (found["a", "chrf"]["n"], found["b", "chrf"]["score"]) == (2, 100)
    text = run("score", file, "-m", "chrf", "token_f1", "--by-document").out
    assert "chrf: corpus formula over the segments of a document; token_f1: mean over its segments" in text
    refused = run("score", "--sample", "-m", "chrf", "--by-document")
    assert (refused.code, "names no document" in refused.err) == (3, True)


@pytest.mark.parametrize(
    ("start", "end", "told"),
    [
        (5, 2, "the span 5-2 ends before it begins: swap start and end"),
        (8, 12, "outside a text of 11 characters; it has 12 UTF-16 units"),
        (8, 13, "outside a text of 11 characters"),
    ],
)
def test_spans_that_cannot_be_are_explained(run: Run, tmp_path: Path, start: int, end: int, told: str) -> None:
    file = tmp_path / "spans.jsonl"
    row = {"id": "1", "system": "A", "hypothesis": "a dog 😀 ran", "spans": [{"start": start, "end": end}]}
    file.write_text(json.dumps(row) + "\n", encoding="utf-8")
    done = run("validate", file)
    assert done.code == 3
    assert told in done.err
    assert ("UTF-16" in done.err) == (end == 12)


def test_the_command_line_names_metrics_that_read_no_context(run: Run, tmp_path: Path) -> None:
    rows = [f"{k}\td\tA\tIch sehe {k}.\tI see {k}.\tI see {k}." for k in range(3)]
    file = tmp_path / "data.tsv"
    file.write_text("\n".join(["id\tdoc\tsystem\tsource\thypothesis\treference", *rows]) + "\n", encoding="utf-8")
    alone = run("score", file, "-m", "xbertscore", "-l", "de-en", "--segments", "-f", "tsv")
    found = run("score", file, "-m", "xbertscore", "-l", "de-en", "--segments", "-f", "tsv", "--context", 2)
    first, *rest = found.out.splitlines()[1:]
    assert first == alone.out.splitlines()[1]
    assert all(own != other for own, other in zip(rest, alone.out.splitlines()[2:], strict=True))
    both = run("score", file, "-m", "xbertscore", "chrf", "-l", "de-en", "--context", 2)
    assert (both.code, "not read by chrf" in both.err, "|context:2" in both.err) == (0, True, True)
    refused = run("score", file, "-m", "chrf", "--context", 2)
    assert (refused.code, "none of these does: chrf" in refused.err) == (2, True)
