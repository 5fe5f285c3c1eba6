"""Shards on any number of machines give the files that one machine gives."""

import json
import re
from pathlib import Path

import pytest

import whyscore as ws
from whyscore.cli.main import main
from whyscore.errors import DataError, UserError
from whyscore.io.datasets import dataset_lines
from whyscore.jobs import shards
from whyscore.jobs.shards import Shard, merge, read_shard, shard_of
from whyscore.types import Dataset, Entry, Segment

COUNTING = """
def score(segments):
    with open({log!r}, "a") as file:
        file.write("x" * len(segments))
    return [float(len(segment.hypothesis)) for segment in segments]
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Systems that take turns and lack segments: the order of entries is not that of systems or ids."""
    entries = []
    for i in range(23):
        for system in ("b", "a") if i % 2 else ("a", "b"):
            if (i, system) != (5, "b"):
                text = f"the {'cat' if i % 3 else 'dog'} number {i} sat {system * (i % 4)}"
                entries.append(Entry(f"s{i}", system, Segment(text, None, (f"a cat number {i} sat down",))))
    path = tmp_path_factory.mktemp("shards") / "data.jsonl"
    path.write_text("".join(dataset_lines(Dataset("cats", tuple(entries)), created="-")), "utf-8")
    return path


def evaluated(data: Path, folder: Path, *options: str) -> None:
    asked = ["evaluate", str(data), "-m", "chrf", "token_f1", "-e", "erasure", "--budget", "6", "--draws", "50", "-q"]
    assert main([*asked, *options, "-o", str(folder)]) == 0


def contents(folder: Path) -> dict[str, list[str]]:
    """The files of a run without dates: those of the headers, and run.json and the page, which tell of times."""
    found = {}
    for file in sorted(folder.glob("*.jsonl")):
        head, *lines = file.read_text("utf-8").split("\n")
        found[file.name] = [json.dumps(json.loads(head) | {"created": None}), *lines]
    return found


@pytest.mark.parametrize("count", [2, 3])
def test_merged_shards_are_the_unsharded_run_byte_for_byte(
    count: int, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluated(data, tmp_path / "whole", "--store", "none")
    folders = [tmp_path / f"part-{k}" for k in range(1, count + 1)]
    for k, folder in enumerate(folders, start=1):
        evaluated(data, folder, "--shard", f"{k}/{count}")
    capsys.readouterr()
    assert main(["merge", *map(str, reversed(folders)), "-o", str(tmp_path / "joined"), "-q"]) == 0
    assert "chrf" in capsys.readouterr().out
    assert contents(tmp_path / "joined") == contents(tmp_path / "whole")
    assert (tmp_path / "joined" / "report.html").exists()


def test_what_a_shard_scored_is_not_scored_again(data: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    metric = tmp_path / "metric.py"
    metric.write_text(COUNTING.format(log=str(log)), "utf-8")
    folders = [tmp_path / "one", tmp_path / "two"]
    for k, folder in enumerate(folders, start=1):
        asked = ["evaluate", str(data), "-m", f"{metric}:score", "--budget", "0", "--tagger", "none", "-q"]
        assert main([*asked, "--shard", f"{k}/2", "-o", str(folder)]) == 0
    scored = len(log.read_text("utf-8"))
    merge(folders, tmp_path / "joined")
    assert len(log.read_text("utf-8")) == scored


def test_the_parts_are_every_segment_once_with_all_its_systems(data: Path) -> None:
    whole = ws.read(data)
    parts = [shard_of(whole, Shard(k, 4)) for k in (1, 2, 3, 4)]
    assert sorted(entry.id + entry.system for part in parts for entry in part.entries) == sorted(
        entry.id + entry.system for entry in whole.entries
    )
    for part in parts:
        assert {entry.id for entry in whole.entries if entry.id in set(part.ids)} == set(part.ids)
    assert parts[0].ids[:2] == ("s0", "s4")


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2", ""])
def test_a_shard_is_written_like_a_fraction(text: str) -> None:
    with pytest.raises(UserError, match=re.escape(f"cannot read the shard {text!r}: write it like 1/4")):
        read_shard(text)


def test_what_cannot_be_joined_says_why(data: Path, tmp_path: Path) -> None:
    one, two, other = tmp_path / "one", tmp_path / "two", tmp_path / "other"
    evaluated(data, one, "--shard", "1/2")
    evaluated(data, two, "--shard", "2/2")
    evaluated(data, other, "--shard", "2/2", "--seed", "1")
    with pytest.raises(DataError, match=re.escape("shards are missing: 2/2")):
        merge([one], tmp_path / "no")
    with pytest.raises(DataError, match="shard 1/2 is given twice"):
        merge([one, one, two], tmp_path / "no")
    with pytest.raises(DataError, match="is a shard of another run than"):
        merge([one, other], tmp_path / "no")
    with pytest.raises(DataError, match=re.escape("is no shard: it has no shard.json")):
        merge([tmp_path], tmp_path / "no")
    with pytest.raises(UserError, match="no shard: give the folders"):
        merge([], tmp_path / "no")
    (two / shards.SHARD).write_text("{}", "utf-8")
    with pytest.raises(DataError, match="not what whyscore evaluate --shard writes"):
        merge([one, two], tmp_path / "no")


def test_more_shards_than_segments_leave_some_empty(data: Path) -> None:
    with pytest.raises(UserError, match=re.escape("shard 30/30 is empty: the data have 23 segments")):
        shard_of(ws.read(data), Shard(30, 30))
