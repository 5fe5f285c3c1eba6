"""XLIFF files as data of every verb."""

import gzip
import io
import json
import re
from pathlib import Path

import pytest

from support.cli import Run
from whyscore.cli.main import main
from whyscore.data.formats.xliff import read_xliff, with_spans
from whyscore.data.reading import read
from whyscore.errors import DataError
from whyscore.types import ErrorSpan, Segment

V12 = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file source-language="en-US" target-language="de" original="a" datatype="x"><body>
<trans-unit id="one"><source>I have a <g id="1">dog</g>.</source><target>Ich habe einen Hund.</target></trans-unit>
<trans-unit id="two"><source>The cat sleeps.</source><target>Die Katze <x id="1"/>schläft.</target></trans-unit>
<trans-unit id="three"><source>Not yet.</source></trans-unit>
</body></file></xliff>
"""
V20 = """<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="de">
<file id="f"><unit id="u"><segment><source>I have a dog.</source><target>Ich habe einen Hund.</target></segment>
<segment><source>The cat sleeps.</source><target>Die <pc id="1">Katze</pc> schläft.</target></segment></unit>
</file></xliff>
"""
SEGMENTS = (Segment("Ich habe einen Hund.", "I have a dog."), Segment("Die Katze schläft.", "The cat sleeps."))


def written(folder: Path, text: str, name: str = "job.xlf") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "name", "ids", "languages"),
    [
        (V12, "job.xlf", ["one", "two"], ("en-US", "de")),
        (V20, "job.xliff", ["u", "u#2"], ("en", "de")),
    ],
)
def test_source_and_target_of_each_unit_are_a_segment(
    tmp_path: Path, text: str, name: str, ids: list[str], languages: tuple[str, str]
) -> None:
    data = read(written(tmp_path, text, name))
    assert data.segments == SEGMENTS
    assert [entry.id for entry in data.entries] == ids
    assert (data.systems, data.languages) == (("job",), languages)


def test_units_without_a_target_are_counted(tmp_path: Path) -> None:
    [finding] = read(written(tmp_path, V12)).findings
    assert finding.message == "units without a target, or not to be translated, were left out: 1"


def test_languages_that_contradict_the_file_are_told(tmp_path: Path) -> None:
    path = written(tmp_path, V20)
    assert read(path, languages=("en", "de-AT")).findings == ()
    data = read(path, languages=("en", "fr"))
    assert data.languages == ("en", "fr")
    assert [str(one) for one in data.findings] == [f"{path}: the file says en to de, and en to fr was requested"]


def test_a_packed_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "job.xlf.gz"
    path.write_bytes(gzip.compress(V12.encode()))
    data = read(path)
    assert (data.segments, data.systems) == (SEGMENTS, ("job",))


def test_a_file_with_another_name_can_be_said_to_be_xliff(tmp_path: Path) -> None:
    assert read(written(tmp_path, V12, "job.xml"), format="xliff").segments == SEGMENTS


def test_ids_that_come_again_are_numbered_past_those_that_are_taken(tmp_path: Path) -> None:
    units = "".join(
        f'<trans-unit id="{unit}"><source>{unit}</source><target>t{k}</target></trans-unit>'
        for k, unit in enumerate(["7", "7", "7#2", "7"])
    )
    xliff = read_xliff(written(tmp_path, f'<xliff version="1.2"><file><body>{units}</body></file></xliff>'))
    assert [unit.id for unit in xliff.units] == ["7", "7#3", "7#2", "7#4"]
    marked = with_spans(xliff, {"7#3": [ErrorSpan(0, 2, "major")]}).decode()
    assert [text for text in re.findall("<target>(.*?)</target>", marked) if "<mrk" not in text] == ["t0", "t2", "t3"]


def test_findings_point_at_the_lines_of_units(run: Run, tmp_path: Path) -> None:
    path = written(tmp_path, V12.replace("Die Katze", "Die  Katze"))
    code, _, err = run("validate", str(path))
    assert code == 0
    assert re.search(rf"note: {re.escape(str(path))}:5: leading, trailing or double space .*: lines 5\n", err)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><xliff>&b;</xliff>',
            "job.xlf:1:25: declares entities, which are refused: they can blow a small file up to any size",
        ),
        (
            '<xliff version="1.2"><file>\n<trans-unit id="n"><target>x</target></trans-unit></file></xliff>',
            "job.xlf:2: unit 'n' has a target but no source",
        ),
        (
            '<xliff version="1.2"><file><trans-unit id="n"><source>x</target></trans-unit></file></xliff>',
            "job.xlf:1:58: not well-formed XML: mismatched tag, in unit 'n'",
        ),
        (
            '<xliff version="1.2"><file><trans-unit id="n"><source>x</source></trans-unit></file></xliff>',
            "job.xlf: none of its 1 units has a target to be scored; the first is 'n': translate them first",
        ),
        (
            '<xliff version="2.0"><file/></xliff>',
            "job.xlf: has no units: expected trans-unit (XLIFF 1.2) or unit/segment (2.x) elements",
        ),
    ],
)
def test_what_cannot_be_scored_is_refused(run: Run, tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(DataError, match=re.escape(message)):
        read(path)
    code, out, err = run("score", str(path), "-m", "token_f1", "--store", "none")
    assert (code, out) == (3, "")
    assert message in err
    assert "Traceback" not in err


def test_other_encodings_and_the_standard_input_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=re.escape("XLIFF is read as UTF-8, not as latin-1")):
        read(written(tmp_path, V12), encoding="latin-1")
    with pytest.raises(DataError, match=re.escape("XLIFF is read from a file, not from the standard input")):
        read("-", format="xliff")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(V12.encode())))
    with pytest.raises(DataError, match=re.escape("stdin:1: is XML: XLIFF is read from a file that ends in .xlf")):
        read("-")


@pytest.mark.parametrize("text", [V12, V20])
def test_a_file_is_scored_and_explained_without_references(run: Run, tmp_path: Path, text: str) -> None:
    path = str(written(tmp_path, text))
    code, out, err = run(
        "score", path, "-l", "en-de", "-m", "xbertscore", "--segments", "-f", "jsonl", "--store", "none"
    )
    assert code == 0, err
    records = [json.loads(line) for line in out.splitlines()[1:]]
    assert [(one["system"], one["score"] > 0.6) for one in records] == [("job", True)] * 2
    code, out, err = run(
        "explain", path, "-m", "xbertscore", "-e", "matching", "--side", "hypothesis", "-f", "jsonl", "--store", "none"
    )
    assert code == 0, err
    words = [[word["text"] for word in json.loads(line)["words"]] for line in out.splitlines()[1:]]
    assert words == [["Ich", "habe", "einen", "Hund."], ["Die", "Katze", "schläft."]]
    code, out, err = run("score", path, "-m", "chrf", "--store", "none")
    assert code == 2
    assert "chrf" in err
    assert "reference" in err


def test_alternatives_are_references_where_they_are_asked_for(run: Run, tmp_path: Path) -> None:
    offered = (
        '<alt-trans match-quality="80"><source>I had a dog.</source><target>Ich hatte einen <g id="1">Hund</g>.'
        "</target></alt-trans><alt-trans><target> </target></alt-trans></trans-unit>"
    )
    path = written(tmp_path, V12.replace("</trans-unit>", offered, 1))
    assert read(path).segments == SEGMENTS
    first, second = read(path, alt_trans=True).segments
    assert first == Segment("Ich habe einen Hund.", "I have a dog.", ("Ich hatte einen Hund.",))
    assert second == SEGMENTS[1]
    code, out, err = run("explain", str(path), "--alt-trans", "-m", "token_f1", "--limit", "1", "--store", "none")
    assert code == 0, err
    assert "hatte" in out


def test_codes_leave_a_character_where_it_is_asked_for(run: Run, tmp_path: Path) -> None:
    path = written(tmp_path, V12)
    assert read(path, inline="placeholder").segments[1].hypothesis == "Die Katze \ue000schläft."
    code, out, err = run("score", str(path), "--inline", "placeholder", "-m", "length", "--segments", "-f", "tsv")
    assert code == 0, err
    assert read(path).segments[1].hypothesis == "Die Katze schläft."
    assert out.count("\n") == 3


def test_two_files_of_a_job_are_two_systems_and_take_references(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = written(tmp_path, V20, "old.xlf")
    second = written(tmp_path, V20.replace("Katze", "Kuh"), "new.xlf")
    references = tmp_path / "ref.txt"
    references.write_text("Ich habe einen Hund.\nDie Katze schläft.\n", "utf-8")
    asked = ["score", str(first), str(second), "-r", str(references), "-m", "chrf"]
    asked += ["-f", "jsonl", "--store", "none", "-q"]
    assert main(asked) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()[1:]]
    scores = {row["system"]: row["score"] for row in rows}
    assert scores["old"] == 100.0
    assert scores["new"] < 100.0
    references.write_text("Ich habe einen Hund.\n", "utf-8")
    assert main(asked) == 3
    assert "has 1 lines" in capsys.readouterr().err
    second.write_text(V20.replace('id="u"', 'id="v"'), "utf-8")
    assert main([*asked[:3], *asked[5:]]) == 3
    assert "compare files of the same job" in capsys.readouterr().err
