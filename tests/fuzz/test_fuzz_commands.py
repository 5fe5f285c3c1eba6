"""Whatever a file holds and whatever options say, a command ends with a result or one line, never with a traceback."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whyscore.cli.main import main

Spoil = Callable[[bytes, list[tuple[float, int, int]]], bytes]
Command = Callable[[str], list[str]]

FEW = settings(
    max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
COMMANDS: dict[str, Command] = {
    "score": lambda file: ["score", file, "-m", "token_f1", "--store", "none"],
    "score-texts": lambda file: ["score", "-t", file, "-r", file, "-m", "chrf", "--store", "none"],
    "explain": lambda file: ["explain", file, "-m", "token_f1", "-e", "erasure", "--store", "none"],
    "validate": lambda file: ["validate", file],
    "convert": lambda file: ["convert", file, "--to", "whyscore"],
    "convert-tags": lambda file: ["convert", file, "--to", "tags", "--texts", file],
}
NAMES = ["data.jsonl", "own.jsonl", "explanations.jsonl", "data.tsv", "data.csv", "data.txt", "data.xlf", "mqm.tsv",
         "a.rating", "xcomet.jsonl", "dev.tgt-tags", "noname"]  # fmt: skip
edits = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 200), st.integers(0, 12)), min_size=0, max_size=3)


def ends_well(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code = main(command)
    said = capsys.readouterr().err
    assert code in range(6)
    assert "Traceback" not in said
    assert code == 0 or "whyscore: error:" in said or "usage:" in said or command[0] == "validate"


@FEW
@given(edits=edits, name=st.sampled_from(NAMES[:-1]))
@pytest.mark.parametrize("verb", COMMANDS)
def test_spoilt_files_never_give_a_traceback(
    verb: str, edits: list[tuple[float, int, int]], name: str, documents: dict[str, bytes], spoil: Spoil,
    tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    path = tmp_path / name
    path.write_bytes(spoil(documents[name], edits))
    ends_well(COMMANDS[verb](str(path)), capsys)


@FEW
@given(content=st.binary(max_size=200), name=st.sampled_from(NAMES))
@pytest.mark.parametrize("verb", COMMANDS)
def test_any_bytes_never_give_a_traceback(
    verb: str, content: bytes, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    ends_well(COMMANDS[verb](str(path)), capsys)


@FEW
@given(edits=edits)
def test_spoilt_weights_never_give_a_traceback(
    edits: list[tuple[float, int, int]], documents: dict[str, bytes], spoil: Spoil, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "mqm.tsv").write_bytes(documents["mqm.tsv"])
    path = tmp_path / "weights.json"
    path.write_bytes(spoil(b'{"major": 5, "minor Fluency": 0.1}', edits))
    ends_well(["convert", str(tmp_path / "mqm.tsv"), "--to", "whyscore", "--weights", str(path)], capsys)


@FEW
@given(spec=st.text(max_size=30), text=st.text(max_size=30), reference=st.text(max_size=30))
def test_any_options_never_give_a_traceback(
    spec: str, text: str, reference: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given_texts = ["--text", f"-t={text}", f"-r={reference}", "--store", "none"]
    ends_well(["score", *given_texts, f"-m={spec}"], capsys)
    ends_well(["explain", *given_texts, "-m", "token_f1", f"-e={spec}"], capsys)
    ends_well(["explain", *given_texts, "-m", "token_f1", f"--unit={spec}"], capsys)
    ends_well(["score", *given_texts, "-m", "token_f1"], capsys)


@FEW
@given(
    words=st.lists(
        st.sampled_from(["score", "-m", "chrf", "--sample", "-f", "--seed", "x", "-1", "", "--", "-q", "é"]), max_size=5
    )
)
def test_any_command_line_never_gives_a_traceback(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    ends_well(["validate", *words], capsys)
