"""Whatever a file holds and whatever options say, a command ends with a result or one line, never with a traceback."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.cli import run_command
from support.corruption import corrupted
from support.documents import DOCUMENTS
from whyscore.garbage import gc_paused

Command = Callable[[str], list[str]]

FEW = settings(
    max_examples=settings.default.max_examples // 8,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
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


def ends_well(command: list[str]) -> None:
    with gc_paused():  # as in read_everything
        done = run_command(*command)
    assert done.code in range(6)
    assert "Traceback" not in done.err
    assert done.code == 0 or "whyscore: error:" in done.err or "usage:" in done.err or command[0] == "validate"


@FEW
@given(edits=edits, name=st.sampled_from(NAMES[:-1]))
@pytest.mark.parametrize("verb", COMMANDS)
def test_corrupted_files_never_give_a_traceback(
    verb: str, edits: list[tuple[float, int, int]], name: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(corrupted(DOCUMENTS[name], edits))
    ends_well(COMMANDS[verb](str(path)))


@FEW
@given(content=st.binary(max_size=200), name=st.sampled_from(NAMES))
@pytest.mark.parametrize("verb", COMMANDS)
def test_any_bytes_never_give_a_traceback(verb: str, content: bytes, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    ends_well(COMMANDS[verb](str(path)))


@FEW
@given(edits=edits)
def test_corrupted_weights_never_give_a_traceback(edits: list[tuple[float, int, int]], tmp_path: Path) -> None:
    (tmp_path / "mqm.tsv").write_bytes(DOCUMENTS["mqm.tsv"])
    path = tmp_path / "weights.json"
    path.write_bytes(corrupted(b'{"major": 5, "minor Fluency": 0.1}', edits))
    ends_well(["convert", str(tmp_path / "mqm.tsv"), "--to", "whyscore", "--weights", str(path)])


@FEW
@given(spec=st.text(max_size=30), text=st.text(max_size=30), reference=st.text(max_size=30))
def test_any_options_never_give_a_traceback(spec: str, text: str, reference: str) -> None:
    given_texts = ["--text", f"-t={text}", f"-r={reference}", "--store", "none"]
    ends_well(["score", *given_texts, f"-m={spec}"])
    ends_well(["explain", *given_texts, "-m", "token_f1", f"-e={spec}"])
    ends_well(["explain", *given_texts, "-m", "token_f1", f"--unit={spec}"])
    ends_well(["score", *given_texts, "-m", "token_f1"])


@FEW
@given(
    words=st.lists(
        st.sampled_from(["score", "-m", "chrf", "--sample", "-f", "--seed", "x", "-1", "", "--", "-q", "é"]), max_size=5
    )
)
def test_any_command_line_never_gives_a_traceback(words: list[str]) -> None:
    ends_well(["validate", *words])
