import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyscore.data.files import Limits, open_bundle
from whyscore.data.formats.eval4nlp import (
    look_at_gold,
    look_at_submission,
    metadata_faults,
    misfits,
    read_gold,
    read_submission,
    write_submission,
)
from whyscore.errors import DataError, SpecError


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    folder = tmp_path / "gold"
    folder.mkdir()
    (folder / "x.mt").write_text("a b c\nd e\n", "utf-8")
    (folder / "x.src").write_text("A B\nD E\n", "utf-8")
    (folder / "x.tgt-tags").write_text("0 1 0\n1 0\n", "utf-8")
    (folder / "x.src-tags").write_text("0 1\nOK BAD\n", "utf-8")
    (folder / "x.da").write_text("50.5\n70\n", "utf-8")
    return folder


def submission(folder: Path, target: str = "1 2 3\n4 5\n", **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "target.submission").write_bytes(target.encode())
    for name, text in files.items():
        (folder / f"{name}.{'txt' if name == 'metadata' else 'submission'}").write_text(text, "utf-8")
    return folder


def test_a_gold_folder_is_read_by_its_own_prefix(gold: Path) -> None:
    found = read_gold(gold)
    assert (found.name, found.task, len(found)) == ("gold", "eval4nlp2021", 2)
    assert [row.tolist() for row in found.target.tags.rows()] == [[0, 1, 0], [1, 0]]
    assert found.source is not None
    assert found.source.tags.values.tolist() == [0, 1, 0, 1]
    assert found.sentence is not None
    assert found.sentence.tolist() == [50.5, 70]
    assert found.target.words is not None
    assert [list(words) for words in found.target.words] == [["a", "b", "c"], ["d", "e"]]


def test_only_the_plain_blank_cuts_words(gold: Path) -> None:
    (gold / "x.mt").write_text("a b\u00a0c\u3000d e\nd e\n", "utf-8")
    found = read_gold(gold)
    assert found.target.words is not None
    assert list(found.target.words[0]) == ["a", "b\u00a0c\u3000d", "e"]
    assert found.findings == ()


def test_data_facts_of_the_shared_task_of_2021(shipped: Path) -> None:
    counts = {}
    for pair in ("et-en", "ro-en"):
        found = read_gold(shipped / "eval4nlp2021" / "dev" / pair)
        assert found.source is not None
        sides = (found.source.tags, found.target.tags)
        counts[pair] = [(len(side.values), int(side.values.sum())) for side in sides]
        assert found.findings == ()
    assert counts == {"et-en": [(14425, 3134), (20072, 5188)], "ro-en": [(17279, 2996), (17721, 3201)]}


def test_data_facts_of_the_shared_task_of_2022(shared: Path) -> None:
    sizes = {}
    for pair in ("en-cs", "en-de", "km-en", "en-yo"):
        found = look_at_gold(shared / "wmt22_task2" / pair)
        sizes[pair] = (len(found), len(found.target.tags.values))
    assert sizes == {"en-cs": (1000, 18301), "en-de": (511, 13857), "km-en": (992, 17890), "en-yo": (1010, 25403)}


def test_short_lines_of_words_are_named(shipped: Path, tmp_path: Path) -> None:
    for file in (shipped / "eval4nlp2021" / "dev" / "ro-en").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    lines = (tmp_path / "dev.mt").read_text("utf-8").split("\n")
    for number in (106, 550):
        lines[number - 1] = " ".join(lines[number - 1].split(" ")[:-2])
    (tmp_path / "dev.mt").write_text("\n".join(lines), "utf-8")
    tags = [len(line.split()) for line in (tmp_path / "dev.tgt-tags").read_text("utf-8").splitlines()]
    found = [one for one in look_at_gold(tmp_path).findings if str(one.file).endswith("dev.mt")]
    assert [finding.line for finding in found] == [106, 550]
    assert found[0].message == f"{tags[105] - 2} words for {tags[105]} tags in dev.tgt-tags"


def test_line_ends_of_the_stored_submissions_are_noted(shared: Path) -> None:
    random = look_at_submission(shared / "eval4nlp2021" / "baselines" / "random-dev" / "et-en")
    assert [str(f.message) for f in random.findings] == ["1000 of 1000 lines end in CR LF; the CR was removed"] * 3
    open_end = look_at_submission(shared / "wmt22_task2" / "en-de" / "hw-tsc")
    assert len(open_end.sides["target"].scores) == 511
    assert any("does not end in a newline" in finding.message for finding in open_end.findings)


def test_a_zip_is_read_in_memory_whatever_folder_its_files_lie_in(gold: Path, tmp_path: Path) -> None:
    folder = submission(tmp_path / "team", source="1 2\n3 4\n", sentence="0.5\n-1\n")
    packed = tmp_path / "handed_in.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for file in folder.iterdir():
            archive.write(file, f"inner/{file.name}")
        archive.writestr("__MACOSX/target.submission", "junk")
    before = sorted(tmp_path.rglob("*"))
    found = read_submission(packed)
    assert found.name == "handed_in"
    assert found.sides["target"].scores.values.tolist() == [1, 2, 3, 4, 5]
    assert found.sentence is not None
    assert found.sentence.tolist() == [0.5, -1.0]
    assert misfits(found, read_gold(gold)) == []
    assert sorted(tmp_path.rglob("*")) == before


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    packed = tmp_path / "bomb.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("target.submission", "0 " * 3_000_000)
    message = f"{packed}/target.submission: unpacks to more than 200 times its packed size, the guard against bombs"
    with pytest.raises(DataError, match=re.escape(message)):
        read_submission(packed)
    with pytest.raises(DataError, match=re.escape("holds more than 1,000 bytes, the limit for a file")):
        read_submission(packed, limits=Limits(file=1000))


def test_a_zip_with_a_damaged_name_inside_is_refused(tmp_path: Path) -> None:
    packed = tmp_path / "damaged.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("target.submission", "1 2\n")
    content = bytearray(packed.read_bytes())
    content[7] |= 0x08  # the name of the file's own header is UTF-8, it says
    content[content.index(b"target")] = 0xD0
    packed.write_bytes(content)
    with pytest.raises(DataError, match="the zip archive is damaged"):
        read_submission(packed)


def test_the_same_file_twice_in_a_zip_is_refused(tmp_path: Path) -> None:
    packed = tmp_path / "two.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a/target.submission", "1")
        archive.writestr("b/target.submission", "1")
    with pytest.raises(DataError, match=re.escape("holds 'target.submission' twice, as a/target.submission and b/")):
        open_bundle(packed, "a submission")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("1 nan 3\n4 5\n", "target.submission:1: 'nan' is no finite number: expected a number such as 0.25"),
        ("1 2 3\n4 inf\n", "target.submission:2: 'inf' is no finite number"),
        ("1 2 3\n\n", "target.submission:2: the line is empty: expected one score per word"),
        ("1 2 3\nx 5\n", "target.submission:2: 'x' is no finite number"),
        ("1 2 3\n1_0 5\n", "target.submission:2: '1_0' is no finite number"),
        ("nan\nnan\n", "target.submission:1: 'nan' is no finite number: expected a number such as 0.25 (and 1 more)"),
    ],
)
def test_values_that_are_no_numbers_are_errors_with_file_and_line(tmp_path: Path, target: str, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        read_submission(submission(tmp_path / "team", target))


def test_every_line_that_does_not_fit_is_named_with_both_counts(gold: Path, tmp_path: Path) -> None:
    found = look_at_submission(submission(tmp_path / "team", "1 2\n3\n", sentence="1\n"))
    told = [str(finding) for finding in misfits(found, read_gold(gold))]
    assert told == [
        f"{tmp_path}/team/target.submission:1: 2 scores for 3 tags in x.tgt-tags",
        f"{tmp_path}/team/target.submission:2: 1 scores for 2 tags in x.tgt-tags",
        f"{tmp_path}/team/sentence.submission has 1 lines, gold has 2: line counts must match",
    ]


def test_a_wrong_number_of_lines_is_named_with_both_counts(gold: Path, tmp_path: Path) -> None:
    found = look_at_submission(submission(tmp_path / "team", "1 2 3\n"))
    [finding] = misfits(found, read_gold(gold))
    assert str(finding) == (
        f"{tmp_path}/team/target.submission has 1 lines, {gold}/x.tgt-tags has 2: line counts must match"
    )


@pytest.mark.parametrize(
    ("metadata", "task", "message"),
    [
        ("team\nconstrained\nwords\n", "eval4nlp2021", None),
        ("team\nConstrained\n\nwords\n", "eval4nlp2021", None),
        ("team\nopen\nwords\n", "eval4nlp2021", "the track is 'open', expected constrained or unconstrained"),
        ("team\nwords\n", "eval4nlp2021", "2 non-empty lines; eval4nlp2021 wants 3 non-empty lines: team, track, desc"),
        ("team\nwords\n", "wmt22", None),
        (None, "wmt22", "is missing; wmt22 wants 2 non-empty lines: team, description"),
    ],
)
def test_metadata_follows_the_task(tmp_path: Path, metadata: str | None, task: str, message: str | None) -> None:
    files = {} if metadata is None else {"metadata": metadata}
    folder = submission(tmp_path / "team", **files)
    found = metadata_faults(look_at_submission(folder), task, folder, required=True)  # type: ignore[arg-type]
    assert [finding.message[: len(message or "")] for finding in found] == ([] if message is None else [message])


def test_missing_metadata_is_fine_where_nobody_asks(tmp_path: Path) -> None:
    folder = submission(tmp_path / "team")
    assert metadata_faults(look_at_submission(folder), "wmt22", folder, required=False) == []


def test_a_folder_without_gold_or_submission_says_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x", "utf-8")
    with pytest.raises(
        DataError, match=re.escape("no gold: expected *.tgt-tags (Eval4NLP 2021) or target.gold (WMT22)")
    ):
        read_gold(tmp_path)
    with pytest.raises(DataError, match=re.escape("no submission: expected target.submission; there is notes.txt")):
        read_submission(tmp_path)
    with pytest.raises(DataError, match=re.escape("there is no such folder or archive")):
        read_submission(tmp_path / "nowhere")
    with pytest.raises(DataError, match=re.escape("is neither a folder nor a zip archive")):
        read_submission(tmp_path / "notes.txt")


def test_two_gold_sets_in_a_folder_are_refused(gold: Path) -> None:
    (gold / "y.tgt-tags").write_text("0\n", "utf-8")
    with pytest.raises(DataError, match=re.escape("holds several gold sets (x, y): keep one per folder")):
        read_gold(gold)


def test_a_tag_that_is_none_is_an_error_with_file_and_line(gold: Path) -> None:
    (gold / "x.tgt-tags").write_text("0 1 0\n1 2\n", "utf-8")
    with pytest.raises(DataError, match=re.escape("x.tgt-tags:2: '2' is not a tag: expected 0 or 1, OK or BAD")):
        read_gold(gold)


def test_files_of_gold_must_have_the_same_number_of_lines(gold: Path) -> None:
    (gold / "x.da").write_text("1\n", "utf-8")
    with pytest.raises(DataError, match=re.escape("x.da has 1 lines")):
        read_gold(gold)


finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=15)
@given(st.lists(st.lists(finite, min_size=1, max_size=4), min_size=1, max_size=4))
def test_what_is_written_is_read_back_float_for_float(rows: list[list[float]]) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        write_submission(folder, {"target": rows}, [row[0] for row in rows], team="me", description="two\nlines")
        found = read_submission(folder)
    assert [row.tolist() for row in found.sides["target"].scores.rows()] == rows
    assert found.sentence is not None
    assert found.sentence.tolist() == [row[0] for row in rows]
    assert found.metadata == ("me", "constrained", "two lines")


def test_scores_that_are_not_finite_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=re.escape("a word score is nan: submissions hold finite numbers only")):
        write_submission(tmp_path / "out", {"target": [np.array([np.nan])]})
    assert list((tmp_path / "out").iterdir()) == []


def test_an_unknown_track_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=re.escape("track is 'open', expected constrained or unconstrained")):
        write_submission(tmp_path, {}, track="open")  # type: ignore[arg-type]
