"""The published tables that were made with NLTK's tagger, checked where its data are installed."""

import contextlib
import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from whyscore.analysis.decompose.decompose import decompose
from whyscore.analysis.decompose.result import label_fractions
from whyscore.data.formats.text import from_texts, read_texts
from whyscore.errors import MissingExtra
from whyscore.experiments.muler.shares import hybrid
from whyscore.scoring.stack import Resources
from whyscore.scoring.store import Store
from whyscore.taggers.nltk import Nltk
from whyscore.types import Dataset

FILES = {
    "Alibaba": ("wmt18_ruen", "newstest2018.Alibaba.5720.ru-en", "newstest2018-ruen-ref.en"),
    "afrl": ("wmt18_ruen", "newstest2018.afrl-ruen-syscomb.5440.ru-en", "newstest2018-ruen-ref.en"),
    "FAIR": ("wmt19_deen", "newstest2019.Facebook_FAIR.6750.de-en", "newstest2019-deen-ref.en"),
    "online-A": ("wmt19_deen", "newstest2019.online-A.0.de-en", "newstest2019-deen-ref.en"),
}


@pytest.fixture(scope="module")
def tagged_once(tmp_path_factory: pytest.TempPathFactory) -> Resources:
    """A store of tags: several tables are about the same texts."""
    return Resources(Store(tmp_path_factory.mktemp("tags") / "store.sqlite"))


@pytest.fixture(scope="module", autouse=True)
def _no_time_limit() -> Iterator[None]:
    """Let NLTK cut these texts, which nobody forged, without the time limit of its patterns: it takes half as long."""
    with pytest.MonkeyPatch.context() as patch:
        with contextlib.suppress(ImportError):  # older versions have no limit
            patch.setattr("nltk.redos.DEFAULT_TIMEOUT", None)
        yield


@pytest.fixture(scope="module", autouse=True)
def _data() -> None:
    """Skip everything here where the tagger cannot run."""
    try:
        Nltk().tag(["a"])
    except MissingExtra as error:
        pytest.skip(f"the published tables cannot be checked: {error}")


def read(shared: Path, *systems: str) -> Dataset:
    folder = shared / "muler" / FILES[systems[0]][0]
    files = [folder / FILES[system][1] for system in systems]
    return read_texts(files, [folder / FILES[systems[0]][2]], systems=list(systems))


def test_token_space(shared: Path, tagged_once: Resources) -> None:
    # system: sigma, oracle, anti and share of nouns, then of verbs
    table = {
        "Alibaba": ((0.299, 0.351, 0.135, 0.239), (0.297, 0.338, 0.209, 0.321)),
        "FAIR": ((0.345, 0.396, 0.147, 0.202), (0.344, 0.377, 0.252, 0.261)),
        "online-A": ((0.300, 0.352, 0.124, 0.228), (0.297, 0.331, 0.217, 0.293)),
    }
    for system, expected in table.items():
        options = {"tagger": "nltk", "tokens": "nltk", "features": ["NOUN", "VERB"], "draws": 0}
        rows = decompose(read(shared, system), "bleu", resources=tagged_once, **options)  # type: ignore[arg-type]
        for row, wanted in zip(rows, expected, strict=True):
            assert (row.sigma, row.oracle, row.anti, row.share) == pytest.approx(wanted, abs=0.01), (
                system,
                row.feature,
            )


def test_hybrids_of_table_four(shared: Path, tagged_once: Resources) -> None:
    options = {"tagger": "nltk", "features": ["NOUN", "VERB"], "alpha": (0.5,), "tokens": "nltk"}
    rows = hybrid(read(shared, "Alibaba"), "bleu", resources=tagged_once, **options)  # type: ignore[arg-type]
    assert [row.hybrid for row in rows] == pytest.approx([0.238, 0.268], abs=0.01)


def test_two_systems_over_ten_parts_of_speech(shared: Path, tagged_once: Resources) -> None:
    features = ["NOUN", "PROPN", "VERB", "AUX", "ADJ", "ADV", "PRON", "DET", "ADP", "NUM"]
    data = read(shared, "FAIR", "online-A")
    found = decompose(data, "bleu", tagger="nltk", tokens="nltk", features=features, resources=tagged_once)
    tests = {test.feature: test for test in found.tests}
    assert tests["NOUN"].difference == pytest.approx(-0.026, abs=0.01)
    assert tests["PROPN"].difference == pytest.approx(-0.046, abs=0.01)
    # published with NLTK's own weights: q .01 (nouns), .001 (names), p .5 (determiners); other weights move q
    assert max(tests["NOUN"].q, tests["PROPN"].q) < 0.05
    assert tests["DET"].p == pytest.approx(0.5, abs=0.2)


def test_compat(shared: Path, tagged_once: Resources) -> None:
    table = {"FAIR": [0.261, 0.388], "online-A": [0.295, 0.427], "Alibaba": [0.237, 0.320]}
    for system, expected in table.items():
        options = {"mode": "compat", "tagger": "nltk", "features": ["NOUN", "VERB"], "draws": 0}
        rows = decompose(read(shared, system), "bleu", resources=tagged_once, **options)  # type: ignore[arg-type]
        found = [row.share if system == "Alibaba" else row.guarded for row in rows]
        assert found == pytest.approx(expected, abs=0.015), system


def test_paraphrases(shared: Path) -> None:
    table = {
        "active_passive": {"AUX": (0.0, 0.941, 0.059), "VERB": (0.010, 0.058, 0.932), "NOUN": (0.044, 0.103, 0.854)},
        "clause_noun": {"VERB": (0.702, 0.009, 0.289), "NOUN": (0.018, 0.675, 0.307)},
    }
    for name, features in table.items():
        with (shared / "muler" / "minimal_paraphrases" / f"{name}.tsv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        data = from_texts({"paraphrase": [row["paraphrase"] for row in rows]}, [row["sentence"] for row in rows])
        for row in decompose(data, "token_f1", tagger="nltk", features=list(features), draws=0):
            fractions = list(label_fractions(row.discrepancy["all"], "field").values())
            assert fractions == pytest.approx(features[row.feature], abs=0.02), (name, row.feature)
