"""Control characters never reach a terminal."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from support.cli import Run
from whyscore.marking import ON_ONE_LINE, visible

DIRECTIONS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
HOSTILE = f"a \x1b[2Jb \x1b]0;title\x07 \x9b31m c\x7f\r {DIRECTIONS}"


@given(st.text())
def test_no_control_character_is_left(text: str) -> None:
    for made, kept in ((visible(text), "\n\t"), (text.translate(ON_ONE_LINE), "")):
        assert not [c for c in made if (c < " " or "\x7f" <= c < "\xa0") and c not in kept]


@given(st.text(st.characters(exclude_categories=["Cc", "Zl", "Zp"], exclude_characters=DIRECTIONS)))
def test_other_characters_stay(text: str) -> None:
    assert visible(text) == text.translate(ON_ONE_LINE) == text


def test_hostile_texts_names_and_messages_are_shown_harmless(run: Run) -> None:
    rows = [{"system": HOSTILE, "hypothesis": HOSTILE, "reference": f"{HOSTILE} d"}]
    Path("data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    for asked in (
        ("score", "data.jsonl", "-m", "chrf"),
        ("explain", "data.jsonl", "-m", "chrf"),
        ("validate", "data.jsonl"),
        ("evaluate", "data.jsonl", "-m", "chrf", "-o", "run"),
        ("score", HOSTILE, "-m", "chrf"),
    ):
        for output in ("text", "markdown", "latex", "json", "jsonl") if asked[0] in ("score", "explain") else (None,):
            done = run(*asked, *(("-f", output) if output else ()))
            assert not set("\x1b\x07\x9b\x7f" + DIRECTIONS) & set(done.out + done.err), (asked, output)


def test_a_newline_in_a_name_forges_no_message(run: Run) -> None:
    for name in ("x\nwhyscore: error: forged.txt", "reference.txt"):
        Path(name).write_text("a b\n", "utf-8")
    done = run("score", "-r", "reference.txt", "-t", "x\nwhyscore: error: forged.txt", "-m", "chrf")
    assert "note: x whyscore: error: forged.txt: 1 of 1 hypotheses" in done.err
    assert not [line for line in done.err.splitlines() if line.startswith("whyscore: error")]


def test_a_newline_in_a_name_forges_no_result(run: Run) -> None:
    forged = "x\nQuality gate passed"
    rows = [
        {"id": str(number), "system": system, "hypothesis": f"{word} cat", "reference": "the cat"}
        for number in range(3)
        for system, word in ((forged, "the"), ("other", "a"))
    ]
    Path("data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    for asked in (
        ("validate", "data.jsonl"),
        ("compare", "data.jsonl", "-m", "chrf", "-v"),
        ("evaluate", "data.jsonl", "-m", "chrf", "--dry-run", "-o", f"{forged}/run"),
        ("evaluate", "data.jsonl", "-m", "chrf", "-o", f"{forged}/run"),
        ("report", f"{forged}/run"),
        ("store", "check", "--store", f"{forged}.sqlite"),
    ):
        done = run(*asked)
        lines = (done.out + done.err).splitlines()
        assert any("x Quality gate passed" in line for line in lines), asked
        assert not [line for line in lines if line.startswith("Quality gate")], asked
