"""Previous segments of a document: which ones a segment gets, what is refused, and that they survive a file."""

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
    with pytest.raises(DataError, match="segment '2' stands after '10'"):
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
