"""Translation memories as data of every verb."""

import json
import re
from pathlib import Path

import pytest

from support.cli import Run
from whyscore.data.formats.tmx import read_tmx
from whyscore.data.reading import read
from whyscore.errors import DataError, SpecError
from whyscore.types import Segment

TMX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "http://nowhere.invalid/tmx14.dtd">
<tmx version="1.4"><header srclang="en-US" datatype="plaintext" segtype="sentence" adminlang="en"/><body>
<tu tuid="one"><note>a note</note>
<tuv xml:lang="en-US"><seg>I have a <bpt i="1">&lt;b&gt;</bpt>dog<ept i="1">&lt;/b&gt;</ept>.</seg></tuv>
<tuv xml:lang="de-DE"><seg>Ich habe einen <hi>Hund</hi>.</seg></tuv>
<tuv xml:lang="de-AT"><seg>Ich hab einen Hund.</seg></tuv></tu>
<tu><tuv xml:lang="en-US"><seg>Cats &amp; <ph>x<sub>hidden</sub>y</ph>mice</seg></tuv>
<tuv xml:lang="de"><seg>Katzen &amp; Mäuse</seg></tuv></tu>
<tu><tuv xml:lang="en-US"><seg>Not yet.</seg></tuv><tuv xml:lang="fr"><seg>Pas encore.</seg></tuv></tu>
<tu tuid="one"><tuv xml:lang="en-US"><seg>Again.</seg></tuv><tuv xml:lang="de"><seg>Nochmal.</seg></tuv></tu>
</body></tmx>
"""


def written(folder: Path, text: str | bytes, name: str = "memory.tmx") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_the_variants_of_a_pair_are_segments_and_further_ones_are_references(tmp_path: Path) -> None:
    data = read(written(tmp_path, TMX), languages=("en", "de"))
    assert data.segments == (
        Segment("Ich habe einen Hund.", "I have a dog.", ("Ich hab einen Hund.",)),
        Segment("Katzen & Mäuse", "Cats & mice"),
        Segment("Nochmal.", "Again."),
    )
    assert [entry.id for entry in data.entries] == ["one", "1", "one#2"]
    assert (data.systems, data.languages) == (("memory",), ("en", "de"))
    assert [str(one) for one in data.findings] == [
        f"{tmp_path / 'memory.tmx'}: units without en and de were left out: 1"
    ]


def test_a_region_asks_for_that_region_alone(tmp_path: Path) -> None:
    data = read(written(tmp_path, TMX), languages=("en", "de-AT"))
    assert data.segments == (Segment("Ich hab einen Hund.", "I have a dog."),)


def test_the_only_other_language_is_the_target(tmp_path: Path) -> None:
    text = TMX.replace('xml:lang="fr"', 'xml:lang="de"').replace("de-DE", "de").replace("de-AT", "de")
    data = read(written(tmp_path, text))
    assert data.languages == ("en-US", "de")
    assert len(data) == 4


def test_inline_codes_can_leave_a_character(tmp_path: Path) -> None:
    data = read(written(tmp_path, TMX), languages=("en", "de"), inline="placeholder")
    assert data.segments[0].source == "I have a \ue000dog\ue000."
    assert data.segments[1].source == "Cats & \ue000mice"


def test_another_encoding_is_read_where_it_is_said(tmp_path: Path) -> None:
    path = written(tmp_path, TMX.encode("utf-16"))
    assert len(read(path, languages=("en", "de"), encoding="utf-16")) == 3
    with pytest.raises(DataError, match=re.escape("byte 0 is not UTF-8: save it as UTF-8, or pass e.g. --enc")):
        read(path, languages=("en", "de"))


def test_findings_point_at_the_lines_of_units(tmp_path: Path) -> None:
    units = read_tmx(written(tmp_path, TMX)).units
    assert [unit.line for unit in units] == [4, 8, 10, 11]


@pytest.mark.parametrize(
    ("text", "languages", "message"),
    [
        (TMX, None, "memory.tmx: name the language pair with -l: the file contains en-US, de-DE, de-AT, de, fr"),
        (TMX, ("en", "ru"), "memory.tmx: no unit has both en and ru; languages there: en-US, de-DE, de-AT, de, fr"),
        (TMX[:200], ("en", "de"), "memory.tmx:3:"),
        ("<xliff/>", ("en", "de"), "memory.tmx:1:1: not TMX: expected a root element tmx, found xliff"),
        (
            '<!DOCTYPE tmx [<!ENTITY a "b">]><tmx version="1.4"/>',
            ("en", "de"),
            "memory.tmx:1:27: declares entities, which are refused",
        ),
        ("<tmx>" + "<a>" * 256 + "</a>" * 256 + "</tmx>", ("en", "de"), "elements are nested deeper than 256"),
        ("<tmx><body><tu><tuv><seg>a</seg></tuv></tu></body></tmx>", ("en", "de"), "does not name its language"),
    ],
)
def test_what_cannot_be_read_is_refused(
    tmp_path: Path, text: str, languages: tuple[str, str] | None, message: str
) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        read(written(tmp_path, text), languages=languages)


def test_the_standard_input_and_unknown_inline_codes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=re.escape("TMX is read from a file, not from the standard input")):
        read("-", format="tmx")
    with pytest.raises(DataError, match=re.escape("cannot be read: No such file or directory")):
        read(tmp_path / "none.tmx")
    with pytest.raises(SpecError, match=re.escape("inline is 'keep', expected 'drop' or 'placeholder'")):
        read(written(tmp_path, TMX), inline="keep")  # type: ignore[arg-type]


def test_a_memory_is_scored_from_the_command_line(run: Run, tmp_path: Path) -> None:
    path = str(written(tmp_path, TMX))
    code, out, err = run(
        "score", path, "-l", "en-de", "-m", "length", "--segments", "-f", "jsonl", "--store", "none", "--inline", "drop"
    )
    assert code == 0, err
    assert [json.loads(line)["id"] for line in out.splitlines()[1:]] == ["one", "1", "one#2"]
    code, _, err = run("score", path, "-m", "length", "--store", "none")
    assert code == 3
    assert "name the language pair with -l" in err
