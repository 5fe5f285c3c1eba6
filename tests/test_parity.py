"""Parity with the original code: every setting of docs/parity.md, on tiny random models."""

import importlib.metadata
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from support import parity
from whyscore.analysis.catalogue import list_components
from whyscore.errors import DataError, SpecError
from whyscore.metrics.learned.comet.checkpoint import KINDS
from whyscore.metrics.learned.comet.metric import Comet
from whyscore.metrics.matching.bertscore import BertScore
from whyscore.metrics.matching.moverscore import XMoverScore
from whyscore.models.checkpoints import hyper_parameters
from whyscore.models.maps import read_map
from whyscore.models.pairs import Coder

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

CASES = list(parity.cases())


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[parity.Workshop]:
    """Tiny networks lose more by sharing work between threads than they gain."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield parity.Workshop(tmp_path_factory.mktemp("parity"))
    torch.set_num_threads(threads)


@pytest.mark.parametrize("case", CASES, ids=[f"{case.metric}: {case.setting}" for case in CASES])
def test_the_original_gives_the_same_numbers(case: parity.Case, workshop: parity.Workshop) -> None:
    assert case.difference(workshop) <= case.limit


# What is refused


def test_a_checkpoint_of_an_unknown_class_is_refused_with_those_that_are_known(
    workshop: parity.Workshop, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(workshop.comet("rank_mix"), tmp_path / "c"))
    (folder / "hparams.yaml").write_text('{"class_identifier": "guessing_metric"}')
    told = f"class_identifier is 'guessing_metric', expected one of {', '.join(KINDS)}"
    with pytest.raises(SpecError, match=re.escape(told)):
        Comet(str(folder)).score(parity.segments("main"))


def test_a_truncated_checkpoint_is_damaged(workshop: parity.Workshop, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(workshop.comet("rank_mix"), tmp_path / "c"))
    file = folder / "checkpoints" / "model.ckpt"
    file.write_bytes(file.read_bytes()[:50_000])
    with pytest.raises(DataError, match=r"model\.ckpt: is damaged: "):
        Comet(str(folder), device="cpu").score(parity.segments("main"))


def test_hyper_parameters_are_read_without_running_code(tmp_path: Path) -> None:
    path = tmp_path / "model.ckpt"
    stored = {"layer": "mix", "callback": Touch(tmp_path / "ran")}
    torch.save({"hyper_parameters": stored, "state_dict": {"a": torch.ones(2)}}, path)
    assert hyper_parameters(path)["layer"] == "mix"
    assert not (tmp_path / "ran").exists()
    assert hyper_parameters(tmp_path / "none.safetensors") == {}


class Touch:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


def test_published_maps_are_numpy_binaries_without_a_suffix(tmp_path: Path) -> None:
    projection = read_map(parity.DATA / "maps" / "m.BAM").projection
    written = read_map(parity.DATA / "maps" / "m.BAM.map").projection
    np.testing.assert_allclose(projection, written, atol=1e-6)
    np.save(tmp_path / "x.npy", np.ones((2, 3, 4)))
    (tmp_path / "x.npy").rename(tmp_path / "cube")
    with pytest.raises(DataError, match=re.escape("expected a matrix of numbers, found the shape (2, 3, 4)")):
        read_map(tmp_path / "cube")
    (tmp_path / "half").write_bytes((parity.DATA / "maps" / "m.BAM").read_bytes()[:500])
    with pytest.raises(DataError, match="cannot be read as a map"):
        read_map(tmp_path / "half")


def test_a_map_of_another_width_is_refused(workshop: parity.Workshop, tmp_path: Path) -> None:
    np.savetxt(tmp_path / "small.map", np.eye(5))
    metric = XMoverScore(str(workshop.model("mbert9")), "v1", map=str(tmp_path / "small.map"), device="cpu")
    with pytest.raises(SpecError, match=r"5.*24|24.*5"):
        metric.score(parity.segments("plain"))


class Slow:
    """A tokenizer without offsets."""

    is_fast = False
    pad_token_id = 0


def test_a_tokenizer_without_offsets_is_refused() -> None:
    with pytest.raises(SpecError, match="the model has no fast tokenizer, which is needed to find pieces in texts"):
        Coder(Slow(), "comet")  # type: ignore[arg-type]


def test_bert_score_names_the_same_configuration(workshop: parity.Workshop) -> None:
    folder = str(workshop.model("roberta"))
    version = importlib.metadata.version("transformers")
    name = f"{folder}_L2_no-idf_version=0.3.13(hug_trans={version})_fast-tokenizer"
    metric = BertScore(folder, 2, device="cpu")
    assert metric.bert_score_hash() == name
    assert dict(metric.signature().facts)["hash"] == name
    rescaled = BertScore(folder, 2, idf=str(parity.DATA / "bs.ref"), baseline=str(parity.DATA / "bs_base.tsv"))
    ending = f"_L2_idf_version=0.3.13(hug_trans={version})-custom-rescaled_fast-tokenizer"
    assert str(rescaled.bert_score_hash()).endswith(ending)
    assert BertScore(folder, 2, mode="paper").bert_score_hash() is None
    assert BertScore("embedded").bert_score_hash() is None


def test_every_learned_metric_says_how_far_it_was_compared() -> None:
    cards = {card["name"]: card for card in list_components("metrics").records()}
    compared = {case.metric: case.original for case in CASES if case.metric in cards and case.metric != "rouge"}
    assert len(compared) == 8
    for metric, original in compared.items():
        status = str(cards[metric]["status"])
        assert status.startswith("parity shown on random weights, ")
        assert status.endswith("; published weights not run here")
        assert original.rpartition("/")[2].partition(",")[0] in status, metric
