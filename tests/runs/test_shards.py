"""Shards on any number of machines give the files that one machine gives."""

import json
import re
from pathlib import Path

import pytest

import whyscore as ws
from whyscore.cli.main import main
from whyscore.data.dataset import dataset_lines
from whyscore.data.files import TextFile
from whyscore.errors import DataError, StoreError, UserError
from whyscore.runs import shards
from whyscore.runs.shards import Shard, joinable, merge, read_shard, shard_of
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
    for file in sorted(folder.glob("*.jsonl*")):
        head, *lines = TextFile(file).lines()
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
    with pytest.raises(DataError, match=r"would run code from .*--allow-code"):
        merge(folders, tmp_path / "joined")
    merge(folders, tmp_path / "joined", allow_code=[str(metric)])
    assert len(log.read_text("utf-8")) == scored


def test_shards_are_not_joined_into_one_of_them(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for k, folder in enumerate(folders, start=1):
        evaluated(data, folder, "--shard", f"{k}/2", "--quick")
    before = contents(folders[1])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="two is one of the shards: choose another folder"):
        merge(folders, "two", overwrite=True)
    assert contents(folders[1]) == before


FORGED = {
    "a function by its short name": ("metrics", ["evil.py:score"]),
    "a function of a module": ("metrics", ['callable("evil:score", takes="texts")']),
    "inside another metric": ("metrics", ["boosted(metric='evil.py:score')"]),
    "inside a metric that calls it when it is made": ("metrics", ["ensemble(['evil.py:score', 'chrf'])"]),
    "weights that may hold code": ("metrics", ["comet(model='evil', allow_pickle=true)"]),
}


@pytest.mark.parametrize("name", FORGED)
def test_code_that_a_shard_names_is_not_run(
    name: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, key = tmp_path / "part", FORGED[name]
    evaluated(data, folder, "--shard", "1/1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("evil.py").write_text("open('ran', 'w')\ndef score(a, b=None): return [1.0] * len(a)\n", "utf-8")
    described = json.loads((folder / shards.SHARD).read_text("utf-8"))
    described["asked"][key[0]] = key[1]
    (folder / shards.SHARD).write_text(json.dumps(described), "utf-8")
    assert main(["merge", str(folder), "-o", "joined", "-q"]) == 3
    assert "--allow-code evil" in capsys.readouterr().err
    assert not Path("ran").exists()


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
    for twice in ([one, one, two], [one, one]):
        with pytest.raises(DataError, match=re.escape(f"shard 1/2 is given twice: {one} and {one}")):
            merge(twice, tmp_path / "no")
    with pytest.raises(DataError, match=re.escape(f"{other} is a shard of another run than {one}: seed is 1, not 0")):
        merge([one, other], tmp_path / "no")
    with pytest.raises(DataError, match=re.escape("is not a shard: it has no shard.json")):
        merge([tmp_path], tmp_path / "no")
    with pytest.raises(UserError, match="no shard: give the folders"):
        merge([], tmp_path / "no")
    for journal in one.glob(f"{shards.STORE}-*"):  # from it everything could be read again
        journal.unlink()
    (one / shards.STORE).write_bytes(b"no store" * 1000)
    with pytest.raises(StoreError, match=re.escape(f"whyscore store repair --store {one / shards.STORE}")):
        merge([one, two], tmp_path / "no")
    (two / shards.SHARD).write_text("{}", "utf-8")
    with pytest.raises(DataError, match="not what whyscore evaluate --shard writes"):
        merge([one, two], tmp_path / "no")


def changed(file: Path, *names: str, value: object) -> None:
    facts = json.loads(file.read_text("utf-8"))
    inner = facts
    for name in names[:-1]:
        inner = inner[int(name) if isinstance(inner, list) else name]
    inner[int(names[-1]) if isinstance(inner, list) else names[-1]] = value
    file.write_text(json.dumps(facts), "utf-8")


@pytest.mark.parametrize(
    ("file", "names", "value", "message"),
    [
        ("shard.json", ("whyscore",), "0.0.1", "made by whyscore 0.0.1, not "),
        ("shard.json", ("of",), 3, "one of 3 shards, not of 2"),
        ("shard.json", ("asked", "budget"), 9, "budget is 9, not 0"),
        ("shard.json", ("asked", "settings", "unit"), "char", "unit is char, not auto"),
        ("shard.json", ("whole",), "x", "cut from other data"),
        ("run.json", ("plan", "metrics", "0", "1"), "token_f1|v:9", "the signature of token_f1 is token_f1|v:9, not "),
    ],
)
def test_shards_of_other_runs_say_what_differs(
    tmp_path: Path, file: str, names: tuple[str, ...], value: object, message: str
) -> None:
    texts, folders = tmp_path / "h.txt", [tmp_path / "one", tmp_path / "two"]
    texts.write_text("a b\nc\n", "utf-8")
    for k, folder in enumerate(folders, start=1):
        asked = ["evaluate", "-t", str(texts), "-r", str(texts), "-m", "token_f1", "--budget", "0"]
        assert main([*asked, "--draws", "0", "--tagger", "none", "-q", "--shard", f"{k}/2", "-o", str(folder)]) == 0
    assert joinable(folders) == (2, 2)
    changed(folders[1] / file, *names, value=value)
    with pytest.raises(DataError, match=re.escape(message)):
        merge(folders, tmp_path / "no")
    if file == "run.json":
        changed(folders[0] / file, *names, value=value)
        with pytest.raises(DataError, match=re.escape("the signature of token_f1 is token_f1|v:9 there and ")):
            merge(folders, tmp_path / "no")
    assert not (tmp_path / "no").exists()


PICKY = """
def score(segments):
    if any("x" in segment.hypothesis and "ok" not in segment.hypothesis for segment in segments):
        raise ValueError("no x without ok")
    return [float(len(segment.hypothesis)) for segment in segments]
"""


def test_more_shards_than_segments_and_words_that_cannot_be_explained_change_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of run.json all but times and the command is what an unsharded run has."""
    (tmp_path / "picky.py").write_text(PICKY, "utf-8")
    (tmp_path / "h.txt").write_text("ok x\na b\n" * 2 + "ok y x\n", "utf-8")
    asked = ["evaluate", "-t", str(tmp_path / "h.txt"), "-m", f"{tmp_path / 'picky.py'}:score", "--draws", "0"]
    asked += ["--tagger", "none", "-q"]
    assert main([*asked, "-o", str(tmp_path / "whole"), "--store", "none"]) == 0
    folders = [tmp_path / f"part-{k}" for k in range(1, 6)]
    for k, folder in enumerate(folders, start=1):
        assert main([*asked, "--shard", f"{k}/7", "-o", str(folder)]) == 0
    assert main([*asked, "--shard", "6/7", "-o", str(tmp_path / "empty")]) == 2
    message = "shard 6/7 is empty: the data have 5 segments. There is nothing to do here: whyscore merge needs only"
    assert message in capsys.readouterr().err
    with pytest.raises(DataError, match=re.escape("shards are missing: 5/7")):
        merge(folders[:4], tmp_path / "no")
    assert main(["merge", *map(str, folders), "--dry-run"]) == 0
    assert "5 shards with 5 entries can be merged" in capsys.readouterr().out
    assert (
        main(
            [
                "merge",
                *map(str, folders),
                "-o",
                str(tmp_path / "joined"),
                "-q",
                "--allow-code",
                str(tmp_path / "picky.py"),
            ]
        )
        == 0
    )
    assert contents(tmp_path / "joined") == contents(tmp_path / "whole")
    joined, whole = (json.loads((tmp_path / name / "run.json").read_text("utf-8")) for name in ("joined", "whole"))
    assert len(whole["problems"]) == 1
    # The worst segment comes first, which is 1, then the best one, which is 4.
    assert whole["problems"][0]["message"].endswith("(id 4 of h)")
    for name in ("created", "command", "seconds"):
        del joined[name], whole[name]
    assert joined == whole


def test_a_merge_takes_a_store_that_the_shards_shared(data: Path, tmp_path: Path) -> None:
    log, metric, store = tmp_path / "log", tmp_path / "metric.py", tmp_path / "shared.sqlite"
    metric.write_text(COUNTING.format(log=str(log)), "utf-8")
    folders = [tmp_path / "one", tmp_path / "two"]
    for k, folder in enumerate(folders, start=1):
        asked = ["evaluate", str(data), "-m", f"{metric}:score", "--budget", "0", "--tagger", "none", "-q"]
        assert main([*asked, "--store", str(store), "--shard", f"{k}/2", "-o", str(folder)]) == 0
    scored = len(log.read_text("utf-8"))
    options = ["--store", str(store), "-o", str(tmp_path / "joined"), "--allow-code", str(tmp_path / "metric.py"), "-q"]
    assert main(["merge", *map(str, folders), *options]) == 0
    assert len(log.read_text("utf-8")) == scored


def test_the_seed_of_a_merge_is_that_of_the_shards(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["merge", "one", "--seed", "3"]) == 2
    assert "--seed is 3: the shards have their own seed" in capsys.readouterr().err
