"""`--device` and `--precision` reach the networks of the metrics that were asked for."""

import json
from pathlib import Path
from typing import Any

import pytest

from support import tiny_models
from support.cli import Run
from whyscore.cli.options import MetricSettings
from whyscore.cli.setup import requested_metrics

ONE = ("--text", "-t", "the cat sat", "-r", "the cat sat on", "--store", "none")


def placed(*metrics: str, **options: Any) -> list[str]:
    return requested_metrics(MetricSettings(metrics=metrics, **options))


def test_options_go_to_metrics_with_a_network_that_do_not_say_otherwise() -> None:
    asked = ("chrf", "bertscore(model='a', device='cpu')", "comet(model='b')")
    assert placed(*asked, device="cuda:1", precision="bf16") == [
        "chrf",
        'bertscore(model="a", device="cpu", precision="bf16")',
        'comet(model="b", device="cuda:1", precision="bf16")',
    ]
    assert placed("chrf") == ["chrf"]


def test_options_that_would_do_nothing_are_refused(run: Run) -> None:
    code, _, err = run("score", *ONE, "-m", "chrf", "--device", "cpu")
    assert code == 2
    assert "--device cpu is for metrics with a network; none of these has one: chrf" in err
    code, _, err = run("score", *ONE, "-m", "bertscore(model='embedded')", "--precision", "bf16")
    assert code == 2
    assert "embedded computes in fp32 alone, got precision='bf16'" in err


@pytest.mark.parametrize("verb", [("score", "--segments"), ("explain", "-e", "matching", "--side", "hypothesis")])
def test_the_signature_says_in_which_numbers_the_network_ran(run: Run, verb: tuple[str, ...], tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra 'neural' is not installed")
    tiny_models.save(tmp_path / "model", "bert", "BertModel", texts=["the cat sat on"])
    spec = f"bertscore(model={str(tmp_path / 'model')!r}, layer=2)"
    scores = []
    for precision in ("fp32", "bf16"):
        options = ("--device", "cpu", "--precision", precision, "-f", "jsonl")
        code, out, err = run(verb[0], *ONE, "-m", spec, *verb[1:], *options)
        assert code == 0, err
        header, record = map(json.loads, out.splitlines())
        assert f'precision="{precision}"' in str(header["signatures"]) or precision == "fp32"
        scores.append(record["score"])
    assert scores[0] != scores[1]
    assert scores[0] == pytest.approx(scores[1], abs=0.05)
