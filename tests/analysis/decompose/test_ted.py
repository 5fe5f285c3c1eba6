"""TED talks with given tokens and tags: the published fixture, and the experiments on it."""

import json
from pathlib import Path

import pytest

from whyscore.analysis.decompose.decompose import decompose
from whyscore.analysis.decompose.result import Decomposition, Decompositions
from whyscore.data.formats.text import read_texts
from whyscore.experiments.muler.random import specificity, tagnoise
from whyscore.experiments.muler.shares import frequency, hybrid
from whyscore.types import Dataset

FEATURES = ["NOUN=NN,NNS", "PROPN=NNP,NNPS", "VERB_ANY=VB*", "PRP", "DT", "JJ=JJ*", "RB=RB*", "IN"]
# feature: n, share, guarded, gain, share at corpus level, share under chrF, word F
PUBLISHED = {
    "NOUN": (2172, 0.264339, 0.172189, 0.030646, 0.273293, 0.127643, 0.5513),
    "PROPN": (618, 0.154746, 0.143544, 0.016338, 0.137618, 0.034686, 0.6293),
    "VERB_ANY": (2275, 0.341849, 0.228751, 0.039893, 0.353944, 0.258211, 0.4202),
    "PRP": (1631, 0.088301, 0.093717, 0.006071, 0.119213, 0.019343, 0.6274),
    "DT": (1600, 0.175236, 0.137929, 0.014033, 0.193623, 0.073269, 0.5252),
    "JJ": (1256, 0.215915, 0.185296, 0.016754, 0.181029, 0.133602, 0.5039),
    "RB": (1091, 0.142277, 0.166973, 0.007616, 0.144718, 0.116865, 0.4938),
    "IN": (1589, 0.170203, 0.145217, 0.014498, 0.179614, 0.107073, 0.5360),
}


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    return shared / "muler" / "ted_slk_eng_tagged"


@pytest.fixture(scope="module")
def data(folder: Path) -> Dataset:
    return read_texts([folder / "ted.sys1.eng"], [folder / "ted.ref.eng"], systems=["sys1"])


@pytest.fixture(scope="module")
def tagger(folder: Path) -> str:
    return f"pretagged(reference='{folder / 'ted.ref.eng.tag'}', hypothesis='{folder / 'ted.sys1.eng.tag'}')"


@pytest.fixture(scope="module")
def found(data: Dataset, tagger: str) -> Decompositions:
    return decompose(data, "bleu", tagger=tagger, features=FEATURES)


@pytest.fixture(scope="module")
def noun(found: Decompositions) -> Decomposition:
    return found.of("sys1", "NOUN")


def test_every_feature_agrees_with_the_fixture(found: Decompositions, shared: Path) -> None:
    expected = json.loads((shared / "muler" / "ted_sys1_expected.json").read_text())["sys1"]
    for feature in PUBLISHED:
        wanted, row = expected[feature], found.of("sys1", feature)
        assert row.sigma_all == pytest.approx(expected["mean_sentence_bleu_all"], abs=1e-9)
        assert (row.n, row.outside) == (wanted["n"], wanted["sentences_outside_min_max"]), feature
        numbers = [wanted[name] for name in ("sigma", "max", "min", "muler")]
        assert [row.sigma, row.oracle, row.anti, row.share] == pytest.approx(numbers, abs=1e-9), feature
        counts = [row.discrepancy["all"][name] for name in ("under", "over", "equal")]
        assert counts == [wanted[name] for name in ("all_ref_gt_hyp", "all_ref_lt_hyp", "all_equal")], feature


def test_every_feature_has_the_published_values(found: Decompositions) -> None:
    for feature, (n, share, guarded, gain, _, _, word_f) in PUBLISHED.items():
        row = found.of("sys1", feature)
        assert row.n == n, feature
        assert (row.share, row.guarded, row.gain) == pytest.approx((share, guarded, gain), abs=1e-6), feature
        assert row.word_f["f"] == pytest.approx(word_f, abs=5e-5), feature


def test_what_stands_beside_the_share_of_nouns(noun: Decomposition) -> None:
    assert noun.informative == 1202
    assert noun.low == pytest.approx(0.238, abs=0.004)
    assert noun.high == pytest.approx(0.291, abs=0.004)
    assert noun.discrepancy["all"] == {
        "under": 660, "over": 699, "equal": 1086, "missing": 54, "invented": 67, "absent": 152,
    }  # fmt: skip
    assert {k: noun.discrepancy["both"][k] for k in ("under", "over", "equal")} == {
        "under": 606, "over": 632, "equal": 934,
    }  # fmt: skip
    assert noun.frequency == {
        "reference": pytest.approx(0.1667, abs=5e-5),
        "hypothesis": pytest.approx(0.1770, abs=5e-5),
    }
    assert noun.uniqueness == {
        "reference": pytest.approx(0.3039, abs=5e-5), "hypothesis": pytest.approx(0.3208, abs=5e-5),
    }  # fmt: skip


def test_references_too_short_for_four_words_are_counted(found: Decompositions) -> None:
    assert found.notes[1].startswith("38 reference(s) have fewer than 4 tokens")


def test_the_work_is_counted(found: Decompositions) -> None:
    assert found.cost is not None
    assert (found.cost.texts, found.cost.distinct_texts) == (4890, 4795)
    assert (found.cost.asked, found.cost.distinct) == (26_909, 26_798)


def test_corpus_level(data: Dataset, tagger: str) -> None:
    for row in decompose(data, "bleu", tagger=tagger, features=FEATURES, level="corpus", draws=0):
        assert row.share == pytest.approx(PUBLISHED[row.feature][4], abs=1e-6)
        assert row.sigma_all == pytest.approx(0.224364, abs=1e-6)


def test_characters_hide_behind_the_mean_length(data: Dataset, tagger: str) -> None:
    for row in decompose(data, "chrf", tagger=tagger, features=FEATURES, draws=0):
        assert row.share == pytest.approx(PUBLISHED[row.feature][5], abs=1e-6)


def test_hybrids_rise_with_the_part_that_is_right(data: Dataset, tagger: str) -> None:
    rows = hybrid(data, "bleu", tagger=tagger, features=FEATURES[:3:2], alpha=(0.3, 0.4, 0.5, 0.7))
    letters = {"NOUN": "fkmr", "VERB_ANY": "ghks"}
    scores = {
        "NOUN": (0.098707, 0.108691, 0.118834, 0.143847),
        "VERB_ANY": (0.098071, 0.104385, 0.118400, 0.146426),
    }
    for feature, wanted in letters.items():
        held = [row for row in rows if row.feature == feature]
        assert "".join(row.letter for row in held) == wanted
        assert [row.hybrid for row in held] == pytest.approx(scores[feature], abs=1e-6)
        assert all(row.anti < row.hybrid < row.oracle for row in held)  # type: ignore[operator]
    assert rows[2].way == pytest.approx(0.43, abs=0.005)


def test_a_rarer_feature_moves_the_gain_more_than_the_share(data: Dataset, tagger: str) -> None:
    rows = frequency(data, "bleu", tagger=tagger, features=FEATURES[:3:2], alpha=(0.5, 1.0))
    found = [(row.share, row.guarded, row.gain) for row in rows]
    expected = [(0.2158, 0.1578, 0.0161), (0.2643, 0.1722, 0.0306), (0.2132, 0.1986, 0.0149), (0.3418, 0.2288, 0.0399)]
    for row, wanted in zip(found, expected, strict=True):
        assert row == pytest.approx(wanted, abs=5e-5)


def test_random_groups_of_words_have_shares_that_follow_their_size(data: Dataset) -> None:
    small = Dataset(data.name, data.entries[:600])
    tokens = "bleu(tokenize='none')"
    rows = specificity(small, tokens, features=["number"], groups=(2, 4, 6), draws=4, seed=0)
    means = [row.mean for row in rows if row.groups]
    assert all(row.smallest is not None and row.smallest >= 0 for row in rows)
    assert means == sorted(means, reverse=True)  # type: ignore[type-var]
    assert means == pytest.approx([0.45, 0.19, 0.13], abs=0.1)


def test_random_positions_make_the_share_absurd(data: Dataset, tagger: str) -> None:
    rows = tagnoise(data, "bleu", tagger=tagger, features=FEATURES[:1], noise="random", rates=(0.0, 1.0))
    assert rows[0].share == pytest.approx(0.264339, abs=1e-6)
    assert rows[1].share == pytest.approx(-6.5, abs=1.0)


@pytest.fixture(scope="module")
def edited(shipped: Path) -> Dataset:
    """Translations as systems of their corrections, with given tokens too."""
    folder = shipped / "eval4nlp2021" / "dev" / "et-en"
    return read_texts([folder / "dev.mt"], [folder / "dev.pe"], systems=["mt"])


def test_dropped_and_moved_tags_take_the_share_away_from_the_truth(edited: Dataset) -> None:
    small = Dataset(edited.name, edited.entries[:300])
    for noise in ("drop", "move"):
        rows = tagnoise(small, "bleu", features=["capitalised"], noise=noise, rates=(0.0, 0.5))  # type: ignore[arg-type]
        clean, noisy = (row.share for row in rows)
        assert clean is not None
        assert noisy is not None
        assert noisy < clean
