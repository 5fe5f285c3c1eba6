"""Every command has a twin in Python, and both say the same."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import whyscore as ws
from support.cli import Run
from whyscore.cli.commands.experiment import commands as experiments
from whyscore.cli.main import VERBS
from whyscore.errors import SpecError, UnknownName, UserError
from whyscore.experiments.bmx.study import GridRun, bmx_grid, bmx_stability
from whyscore.registry import list_names


def said(run: Run, *arguments: str) -> object:
    """What a command prints as JSON."""
    done = run(*arguments, "-f", "json")
    assert done.code == 0
    return json.loads(done.out)


@pytest.mark.parametrize("verb", VERBS)
def test_every_command_has_a_twin_that_can_be_called(verb: str) -> None:
    twin = getattr(ws, verb.replace("-", "_"))
    assert callable(twin)


def test_twins_are_loaded_when_they_are_asked_for() -> None:
    check = (
        "import sys, whyscore; assert 'whyscore.report' not in sys.modules;"
        "first = whyscore.report; import whyscore.report; assert whyscore.report is first; print(callable(first))"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_type_checkers_see_the_names_that_are_imported_on_demand() -> None:
    """The block for type checkers says the same as the tables."""
    tree = ast.parse(Path(ws.__file__).read_text("utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        (alias.asname or alias.name, f"{node.module}:{alias.name}")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    same = {("report", "whyscore.report:build_report"), ("list_components", ws._PLACES["list"])}
    own = {("list", ws._PLACES["list"]), ("metaeval", ws._PLACES["metaeval"])}
    assert seen - same == set(ws._PLACES.items()) - own
    assert len(ws.__all__) <= 46


def test_metaeval_is_metaevaluate() -> None:
    assert ws.metaeval is ws.metaevaluate


@pytest.mark.parametrize("what", ["metrics", "taggers", "datasets"])
def test_lists_are_those_of_the_command(what: str, run: Run) -> None:
    assert said(run, "list", what) == {what: ws.list(what)}


def test_a_list_names_everything_there_is() -> None:
    assert [card["name"] for card in ws.list("explainers")] == list_names("explainer")


def test_a_list_of_something_else_is_answered_with_what_can_be_listed() -> None:
    with pytest.raises(UnknownName, match=re.escape("no kind of component named 'metric'. Did you mean 'metrics'?")):
        ws.list("metric")


def test_a_star_import_leaves_the_list_of_python_alone() -> None:
    assert "list" not in ws.__all__


def test_the_doctor_says_what_the_command_says(tmp_path: Path, run: Run) -> None:
    place = tmp_path / "scores.sqlite"
    kept = ws.store(place)
    assert ws.score([ws.Segment("a", references=("b",))], "chrf", resources=ws.Resources(kept)).values.tolist() == [0.0]
    found = ws.doctor(kept)
    assert found == said(run, "doctor", "--store", str(place))
    state = found["store"]
    assert isinstance(state, dict)
    assert (state["path"], state["segments"]) == (str(place), 1)
    assert ws.doctor()["store"] == {"path": None}


def test_the_store_without_a_path_is_the_one_of_the_command_line(tmp_path: Path, run: Run) -> None:
    found = said(run, "store", "size")
    assert isinstance(found, dict)
    assert found["path"] == str(ws.store().path)
    assert ws.store(tmp_path / "x.sqlite").path == tmp_path / "x.sqlite"


def test_a_report_is_built_by_calling_its_package(tmp_path: Path, run: Run) -> None:
    data = ws.from_texts({"A": ["a cat", "a dog"]}, references=["a cat", "the dog"])
    ws.evaluate(data, ["token_f1"], output=tmp_path / "run")
    assert ws.report(tmp_path / "run") == ws.build_report(tmp_path / "run")
    assert ws.report(tmp_path / "run", title="Ours").title == "Ours"
    done = run("report", tmp_path / "run", "--title", "Ours", "-f", "json")
    assert (done.code, "Ours" in done.out) == (0, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "workers is 0, expected 1 or more"),
        ({"queue": -1}, "queue is -1, expected 1 or more"),
        ({"port": 65_536}, "port is 65536, expected 0 to 65535"),
    ],
)
def test_a_server_that_cannot_be_is_refused(options: dict[str, int], message: str) -> None:
    pytest.importorskip("uvicorn")
    with pytest.raises(SpecError, match=f"^{message}$"):
        ws.serve(**options)  # type: ignore[arg-type]


def test_a_server_needs_run_folders_that_are_there(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    with pytest.raises(UserError, match="make one with whyscore evaluate"):
        ws.serve(tmp_path / "no")


def test_a_server_gets_its_runs_by_name_and_begins_when_all_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uvicorn = pytest.importorskip("uvicorn")
    began: list[str] = []
    monkeypatch.setattr(uvicorn, "run", lambda _, **options: began.append(f"at {options['host']}:{options['port']}"))
    for folder in ("a/run", "b/run"):
        (tmp_path / folder).mkdir(parents=True)
    ws.serve([tmp_path / "a/run", tmp_path / "b/run"], port=0, on_start=lambda: began.append("right"))
    assert began == ["right", "at 127.0.0.1:0"]


@pytest.mark.parametrize("name", experiments())
def test_every_experiment_tells_its_options(name: str, run: Run) -> None:
    short, long = (run("experiment", name, option) for option in ("-h", "--help-all"))
    assert (short.code, long.code) == (0, 0)
    for shown in (short.out, long.out):
        assert f"whyscore experiment {name}" in shown


def test_an_experiment_is_found_by_its_name() -> None:
    segments = [ws.Segment("I have 3 cats", references=("I have 3 dogs",))] * 4
    from whyscore.experiments.muler.shares import hybrid

    for name in ("hybrid", "muler-hybrid"):
        assert ws.experiment(name, segments, "bleu", features=["number"]) == hybrid(
            segments, "bleu", features=["number"]
        )


def test_an_unknown_experiment_is_answered_with_the_near_one() -> None:
    with pytest.raises(UnknownName, match=re.escape("no experiment named 'bmx-gird'. Did you mean 'bmx-grid'?")):
        ws.experiment("bmx-gird")


def test_an_experiment_says_what_it_takes() -> None:
    with pytest.raises(SpecError, match=re.escape("layers: missing a required argument: 'dataset'. Its options: dat")):
        ws.experiment("layers")


@pytest.fixture
def judged() -> ws.Dataset:
    """Two groups of twelve segments with human scores."""
    entries = [
        ws.Entry(
            str(k),
            "A",
            ws.Segment(" ".join("abcdefgh"[: 2 + k % 6]) + " x" * (k % 3), references=("a b c d e f g h",)),
            human={"da": float(k % 6) + k % 5 / 10},
            extra={"LP": f"g{k % 2}"},
        )
        for k in range(24)
    ]
    return ws.Dataset("judged", tuple(entries))


def test_the_grid_experiment_gives_a_calibration_for_every_explainer(judged: ws.Dataset, tmp_path: Path) -> None:
    found = ws.experiment("bmx-grid", judged, "token_f1", ["erasure", "random"], human="da", output=tmp_path / "run")
    again = bmx_grid(judged, "token_f1", ["erasure", "random"], human="da", output=tmp_path / "again")
    assert [one.explainer for one in again.calibrations] == ["erasure", "random"]
    assert isinstance(found, GridRun)
    assert [one.digest for one in found.calibrations] == [one.digest for one in again.calibrations]
    for table in ("grid", "outcomes", "scores"):
        assert (tmp_path / f"run/{table}.jsonl").read_text() == (tmp_path / f"again/{table}.jsonl").read_text()


def test_the_stability_experiment_needs_two_runs(judged: ws.Dataset, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=re.escape("runs is 1, expected 2 or more")):
        bmx_stability(judged, "token_f1", output=tmp_path, runs=1)
    found = bmx_stability(judged, "token_f1", output=tmp_path / "run", samples=[10], runs=2, every=4, group="LP")
    assert {row["group"] for row in found.rows} == {"g0", "g1", "all"}
    assert found.folder.read("stability") == found.rows
