"""`--fail-if-truncated`: texts that a model cannot read whole close the gate, whatever the store knows."""

from pathlib import Path

import pytest

from support import tiny_models
from support.cli import Run
from whyscore.analysis.score import fail_if_truncated, truncation_messages
from whyscore.errors import GateNotPassed
from whyscore.metrics.matching.bertscore import BertScore
from whyscore.models.pairs import Cuts, TruncatedTextWarning, watch_cuts
from whyscore.types import Dataset, Entry, Segment

SHORT = "the cat sat"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("torch", reason="the extra 'neural' is not installed")
    place = tmp_path_factory.mktemp("tiny") / "model"
    tiny_models.save(place, "bert", "BertModel", texts=[SHORT], limit=8)
    return str(place)


@pytest.fixture(scope="module")
def bart(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("torch", reason="the extra 'neural' is not installed")
    place = tmp_path_factory.mktemp("tiny") / "bart"
    tiny_models.save(place, "bart", "BartForConditionalGeneration", limit=16)
    return str(place)


def pieces(number: int) -> str:
    """Return a text of that many pieces: every character is one."""
    return " ".join(["t"] * number)


def data(*hypotheses: str) -> Dataset:
    entries = (Entry(str(k), "A", Segment(text, "t", ("t",))) for k, text in enumerate(hypotheses))
    return Dataset("some", tuple(entries))


def test_the_first_text_that_is_cut_is_named(folder: str) -> None:
    metrics = {"ours": BertScore(folder, 2, device="cpu"), "chrf": "chrf"}
    assert truncation_messages(metrics, data(pieces(6))) == []
    told = truncation_messages(metrics, data(pieces(6), pieces(7), pieces(9)))
    assert told == ["ours truncates texts in 2 of 3 segments (first: the hypothesis of A 1, 6 of 7 subwords read)"]
    with pytest.raises(GateNotPassed, match=r"^quality gate not passed: ours truncates texts in 2 of 3"):
        fail_if_truncated(told)
    fail_if_truncated([])


def test_a_metric_that_reads_in_windows_cuts_nothing(folder: str) -> None:
    assert truncation_messages({"ours": BertScore(folder, 2, device="cpu", long="window")}, data(pieces(9))) == []


def test_whoever_watches_hears_of_every_cut_and_others_once() -> None:
    cuts = Cuts("x", 8)
    with pytest.warns(TruncatedTextWarning, match="x: 1 of 2 inputs are longer than the 8 pieces the model reads; the"):
        cuts.add(1, 2)
    cuts.add(1, 3)
    with watch_cuts() as seen:
        cuts.add(0, 3)
        cuts.add(2, 3)
    cuts.add(3, 3)
    assert seen == ["x: 2 of 3 inputs are longer than the 8 pieces the model reads"]


@pytest.mark.filterwarnings("ignore::whyscore.models.pairs.TruncatedTextWarning")  # told once per model
@pytest.mark.parametrize("spec", ["bartscore(model={!r}, device='cpu')", "ensemble((bartscore(model={!r}), chrf))"])
def test_a_metric_that_cannot_be_asked_is_watched(bart: str, spec: str) -> None:
    name = spec.format(bart)
    assert truncation_messages({"it": name}, data("t")) == []
    first = truncation_messages({"it": name}, data("t", "the cat sat on the mat " * 9))
    assert [one.partition(" inputs")[2] for one in first] == [" are longer than the 16 pieces the model reads"]
    again = truncation_messages({"it": name}, data("t", "the cat sat on the mat " * 9))
    assert again == first


@pytest.mark.parametrize("verb", ["score", "explain", "evaluate"])
def test_the_gate_is_judged_after_the_results_are_out(run: Run, verb: str, folder: str, tmp_path: Path) -> None:
    texts, whole = tmp_path / "t.txt", tmp_path / "w.txt"
    texts.write_text(f"t\n{pieces(7)}\n", "utf-8")
    whole.write_text(f"t\n{pieces(6)}\n", "utf-8")
    spec = f"bertscore(model={folder!r}, layer=2, device='cpu')"
    options = ["-m", spec, "--store", str(tmp_path / "scores.sqlite"), "--fail-if-truncated"]
    options += ["--budget", "0", "-o", str(tmp_path / "run")] if verb == "evaluate" else []
    for _ in range(2):  # the second time all scores are stored
        code, out, err = run(verb, "-t", str(texts), "-r", str(texts), *options)
        assert code == 5, err
        assert out
        told = "truncates texts in 1 of 2 segments (first: the hypothesis of t 1, 6 of 7 subwords read)"
        assert told in err.splitlines()[-1]
    options[-1] = str(tmp_path / "other") if verb == "evaluate" else options[-1]
    code, _, err = run(verb, "-t", str(whole), "-r", str(whole), *options)
    assert code == 0, err


@pytest.mark.parametrize("verb", ["score", "explain"])
def test_metrics_without_a_network_always_pass(run: Run, verb: str) -> None:
    text = pieces(5000)
    given = ["--text", "-t", text, "-r", text, "-m", "token_f1", "--store", "none", "--fail-if-truncated"]
    given += ["-e", "random"] if verb == "explain" else []
    assert run(verb, *given)[0] == 0
