"""The published scores of WMT22, English-Russian: identities over all rows, and what can be recomputed."""

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from whyscore.metrics.mee.metric import Mee, Mee4
from whyscore.registry import build
from whyscore.types import Segment

Key = tuple[str, ...]

WEIGHTS = {"conversation": 484, "ecommerce": 530, "news": 511, "social": 512}
ONLINE_G = ("en-ru", "generaltest2022", "all", "refA", "Online-G")


@pytest.fixture(scope="module")
def stored(shared: Path) -> dict[str, dict[Key, float]]:
    """The scores of each metric by language pair, test set, domain, reference, system."""
    found: dict[str, dict[Key, float]] = {}
    for name in ("MEE", "MEE2", "MEE4"):
        rows = (shared / "mee" / f"{name}.en-ru.sys.score").read_text("utf-8").splitlines()
        cells = [row.split("\t") for row in rows]
        found[name] = {tuple(row[1:6]): float(row[6]) for row in cells}
    return found


@pytest.fixture(scope="module")
def online_g(shared: Path) -> list[Segment]:
    folder = shared / "mee" / "wmt22"
    texts = [
        (folder / f"generaltest2022.en-ru.{name}.ru").read_text("utf-8").split("\n")[:-1]
        for name in ("hyp.Online-G", "ref.A")
    ]
    return [Segment(own, references=(other,)) for own, other in zip(*texts, strict=True)]


def implied(stored: dict[str, dict[Key, float]], key: Key) -> tuple[float, float]:
    """Syn and Cxt that the three stored scores leave."""
    mee, mee2, mee4 = (stored[name][key] for name in ("MEE", "MEE2", "MEE4"))
    return 3 * (3 * mee2 - 2 * mee4) - 2 * mee, 2 * mee4 - mee2


def test_the_stored_scores_imply_parts_that_can_be(stored: dict[str, dict[Key, float]]) -> None:
    assert len(stored["MEE"]) == 82
    assert stored["MEE"].keys() == stored["MEE2"].keys() == stored["MEE4"].keys()
    syn, cxt = np.array([implied(stored, key) for key in stored["MEE"]]).T
    assert (syn.min(), syn.max()) == pytest.approx((0.078310, 0.545563), abs=1e-6)
    assert (cxt.min(), cxt.max()) == pytest.approx((0.865472, 0.943737), abs=1e-6)


def test_our_weights_rebuild_every_stored_score(stored: dict[str, dict[Key, float]]) -> None:
    for key, mee in stored["MEE"].items():
        syn, cxt = implied(stored, key)
        row = np.array([[0, 0, 0, mee, syn, cxt, 0]], dtype=np.float64)
        for name in ("mee2", "mee4"):
            metric = build(f"{name}(mode='compat', words=None)")
            assert metric.scores(row)[0] == pytest.approx(stored[name.upper()][key], abs=1e-12)


def test_every_score_over_all_domains_is_the_weighted_mean_of_the_domains(
    stored: dict[str, dict[Key, float]],
) -> None:
    for scores in stored.values():
        systems: dict[str, dict[str, float]] = defaultdict(dict)
        for (_, test_set, domain, _, system), value in scores.items():
            if test_set == "generaltest2022":
                systems[system][domain] = value
        assert len(systems) == 16
        for domains in systems.values():
            mean = sum(WEIGHTS[name] * domains[name] for name in WEIGHTS) / sum(WEIGHTS.values())
            assert mean == pytest.approx(domains["all"], abs=1e-14)


def test_the_recomputed_syntax_is_the_implied_one(stored: dict[str, dict[Key, float]], online_g: list[Segment]) -> None:
    syn, cxt = implied(stored, ONLINE_G)
    assert cxt == pytest.approx(0.9301469668665523, abs=1e-15)
    metric = Mee4("compat", None, sentences=lambda texts: np.ones((len(texts), 1)))
    rows = metric.statistics(online_g)
    assert rows[:, metric.columns.index("syn")].mean() == pytest.approx(syn, abs=1e-12)


def test_exact_matches_of_compat(stored: dict[str, dict[Key, float]], online_g: list[Segment]) -> None:
    knows_nothing: dict[str, list[float]] = {}
    metric = Mee("compat", knows_nothing)
    counts = np.array([one[0].counts for one in metric.alignments(online_g)])
    assert counts.sum(axis=0).tolist() == [16594, 0, 0, 31357, 30832]
    value = metric.score(online_g).mean()
    assert value == pytest.approx(0.5357747620017832, abs=1e-12)
    assert value < stored["MEE"][ONLINE_G] == 0.6525958894374138


def test_exact_and_root_matches_of_paper(online_g: list[Segment]) -> None:
    metric = Mee4(words=None, language="ru", sentences=lambda texts: np.ones((len(texts), 1)))
    exact, root, synonym, own, other = np.array([one[0].counts for one in metric.alignments(online_g)]).sum(axis=0)
    assert (other, own, exact, synonym) == (37018, 37692, 23108, 0)
    assert root == pytest.approx(2646, abs=5)
    means = dict(zip(metric.columns, metric.statistics(online_g).mean(axis=0).tolist(), strict=True))
    assert (means["exact"], means["syn"]) == pytest.approx((0.627718, 0.233777), abs=1e-6)
    assert (means["root"], means["lms"]) == pytest.approx((0.699150, 0.675339), abs=1e-4)
