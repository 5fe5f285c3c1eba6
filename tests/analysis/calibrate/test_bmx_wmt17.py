"""BMX on WMT17 with token F1: the numbers of the specification, from the public procedure and from ours."""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest
from numpy.random import RandomState

from whyscore.aggregate import Bags, PowerMean
from whyscore.analysis.calibrate.judgement import Question, Source
from whyscore.analysis.calibrate.material import Columns, Explained, Setting, columns_of
from whyscore.analysis.calibrate.rules import WEIGHTS, Choice, Problem, Rule, choose
from whyscore.analysis.calibrate.settings import parameters_of
from whyscore.analysis.explain import explain
from whyscore.explainers.masks.lime import compat_masks
from whyscore.types import Dataset, Segment

GRID = parameters_of("compat", PowerMean())
W = np.array(WEIGHTS)
PAIRS = ("cs-en", "de-en", "tr-en")


class Held:
    """WMT17 explained in one way: all three pairs in one material, and a setting for each pair."""

    def __init__(self, found: Explained) -> None:
        self.material = found.material
        groups = np.array([entry.extra["LP"] for entry in found.data.entries])
        human = found.data.human("HUMAN_score")
        self.settings = {
            pair: Setting(pair, pair, "human", "pearson", "global", np.flatnonzero(groups == pair), human)
            for pair in PAIRS
        }
        self.source = Source(found.explainer, self.material, PowerMean(), GRID)

    def chosen(self, pairs: Sequence[str], rule: Rule) -> Choice:
        settings = [self.settings[pair] for pair in pairs]
        return choose(Problem(self.material, settings, self.source.columns, W, 0.0), rule)

    def gain(self, pair: str, choice: Choice) -> float:
        if not choice.boosted:
            return 0.0
        one = columns_of(self.material, PowerMean(), np.array([choice.p]))
        return float(self.settings[pair].at(self.material).gains(one, np.array([choice.w]))[0, 0])


@pytest.fixture(scope="session")
def held(
    wmt17: Dataset,
    pairs: dict[str, Dataset],
    erasure: Callable[[Sequence[Segment]], tuple[np.ndarray, Bags]],
    sequential_lime: Callable[[Sequence[Segment], int], tuple[np.ndarray, Bags]],
    as_explained: Callable[..., Explained],
) -> Callable[[str], Held]:
    @cache
    def made(name: str) -> Held:
        entries = [entry for pair in PAIRS for entry in pairs[pair].entries]
        data = Dataset(wmt17.name, tuple(entries))
        if name == "erasure":
            found = [erasure(pairs[pair].segments) for pair in PAIRS]
        elif name == "lime":
            found = [sequential_lime(pairs[pair].segments, 0) for pair in PAIRS]
        else:
            found = [(np.zeros(0), uniform(pairs[pair])) for pair in PAIRS]
        scores = np.concatenate([one for one, _ in (found if name != "random" else [held_scores()])])
        bags = Bags.of([bags.of_segment(k) for _, bags in found for k in range(len(bags))])
        return Held(as_explained(data, _Counted(scores, bags), name))

    def held_scores() -> tuple[np.ndarray, None]:
        return made("erasure").material.scores, None

    return made


class _Counted:
    def __init__(self, scores: np.ndarray, bags: Bags) -> None:
        self.scores, self.bags = scores, bags


def uniform(data: Dataset) -> Bags:
    """Random importances as the specification draws them: one state per pair, references first."""
    state = RandomState(0)
    found = []
    for segment in data.segments:
        sizes = [len(text.split()) for text in (*segment.references, segment.hypothesis)]
        found.append(np.concatenate([state.uniform(size=size) for size in sizes]))
    return Bags.of(found)


def test_counting_words_explains_as_the_engine_does(
    pairs: dict[str, Dataset],
    erasure: Callable[..., tuple[np.ndarray, Bags]],
    content_lime: Callable[..., tuple[np.ndarray, Bags]],
) -> None:
    segments = pairs["cs-en"].segments[:40]
    for name, (scores, bags) in (
        ("erasure", erasure(segments)),
        ("lime(samples=30)", content_lime(segments, 30, 0)),
    ):
        found = explain(segments, "token_f1", name)
        hypotheses = [one for one in found if one.place.side == "hypothesis"]
        references = [one for one in found if one.place.side == "reference"]
        np.testing.assert_allclose([one.score for one in hypotheses], scores, rtol=1e-12)
        for k, (reference, hypothesis) in enumerate(zip(references, hypotheses, strict=True)):
            both = np.concatenate([reference.importance, hypothesis.importance])
            np.testing.assert_allclose(bags.of_segment(k), both, atol=1e-10)


def test_the_masks_of_the_tests_are_those_of_lime(sequential_lime: Callable[..., object]) -> None:
    masks = sequential_lime.__globals__["lime_masks"](7, 20, RandomState(3))
    np.testing.assert_array_equal(masks[1:], compat_masks(7, 20, RandomState(3)))


# Original correlation, share of segments with an importance of 0 or below, configurations that gain anything and more
# than .001, median p and w with what they reach, best p and w with what they reach.
TABLE = [
    ("cs-en", "erasure", 0.500974, 0.9946, 1523, 379, -11.0, 0.6, 0.501802, 0.5, 0.6, 0.502529),
    ("de-en", "erasure", 0.506388, 0.9982, 1286, 4, -14.0, 0.6, 0.506625, 0.0, 0.2, 0.508052),
    ("tr-en", "erasure", 0.551159, 0.9946, 2111, 1811, -3.7, 0.6, 0.553294, 0.3, 0.2, 0.571720),
    ("cs-en", "lime", 0.500974, 0.7446, 1262, 915, -9.0, 0.6, 0.502489, -1.5, 0.4, 0.503886),
    ("de-en", "lime", 0.506388, 0.7571, 1362, 625, -13.0, 0.6, 0.506997, -0.3, 0.4, 0.510465),
    ("tr-en", "lime", 0.551159, 0.8286, 2112, 2112, -3.65, 0.6, 0.554672, -0.4, 0.2, 0.565585),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]} {row[1]}")
def test_the_table_of_the_specification_comes_out(held: Callable[[str], Held], row: tuple[object, ...]) -> None:
    pair, name, before, share, improving, more, p, w, at_median, best_p, best_w, at_best = row
    here = held(str(name))
    setting = here.settings[str(pair)]
    judged = setting.at(here.material)
    gains = judged.gains(here.source.raw, W)
    lowest = np.array([here.material.bags.of_segment(k).min() for k in setting.rows])
    assert judged.before == pytest.approx(before, abs=1e-6)
    assert np.mean(lowest <= 0) == pytest.approx(share, abs=1e-4)
    assert abs(int((gains > 0).sum()) - improving) <= 3
    assert abs(int((gains > 0.001).sum()) - more) <= 3
    median, best = here.chosen([str(pair)], "median"), here.chosen([str(pair)], "argmax")
    assert (median.p, median.w) == (pytest.approx(p, abs=1e-9), pytest.approx(w))
    assert judged.before + here.gain(str(pair), median) == pytest.approx(at_median, abs=1e-5)
    assert (best.p, best.w) == (pytest.approx(best_p, abs=1e-9), pytest.approx(best_w))
    assert judged.before + here.gain(str(pair), best) == pytest.approx(at_best, abs=1e-5)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("median", (0.00152, 0.00066, 0.00318)),
        ("argmax", (-0.0042, 0.0040, 0.0113)),
        ("plateau", (0.0024, 0.0039, 0.0110)),
    ],
)
def test_what_two_pairs_choose_does_this_on_the_third(
    held: Callable[[str], Held], rule: Rule, expected: tuple[float, ...]
) -> None:
    here = held("lime")
    found = [here.gain(pair, here.chosen([other for other in PAIRS if other != pair], rule)) for pair in PAIRS]
    assert found == pytest.approx(expected, abs=0.0003)


@pytest.mark.parametrize(
    ("name", "expected"), [("lime", (0, 1, 0)), ("erasure", (0, 0, 0.56)), ("random", (0, 0, 0.08))]
)
def test_this_share_of_the_gain_survives_on_left_out_folds(
    held: Callable[[str], Held], name: str, expected: tuple[float, ...]
) -> None:
    here = held(name)
    found = [here.chosen([pair], "cv_shrinkage").shrinkage for pair in PAIRS]
    assert found == pytest.approx(expected, abs=0.05)


def test_random_importances_gain_this_much_at_the_best_of_the_grid(held: Callable[[str], Held]) -> None:
    here = held("random")
    best = [here.settings[pair].at(here.material).gains(here.source.raw, W).max() for pair in PAIRS]
    assert best == pytest.approx((0.0035, 0.0025, 0.0026), abs=1e-4)


def test_perfect_translations_alone_escape_the_floor_under_erasure(held: Callable[[str], Held]) -> None:
    here = held("erasure")
    one = columns_of(here.material, PowerMean(), np.array([-2.0]))
    for pair, perfect in zip(PAIRS, (3, 1, 3), strict=True):
        rows = here.settings[pair].rows
        assert isinstance(one, Columns)
        assert one.degenerate is not None
        assert int((~one.degenerate[0, rows]).sum()) == perfect


def test_a_reversed_metric_has_no_vote(held: Callable[[str], Held]) -> None:
    here = held("erasure")
    setting = here.settings["cs-en"]
    turned = Setting("turned", "", "human", "pearson", "global", setting.rows, -setting.human)
    question = Question((turned,), W, 0.0, "median")
    assert not question.counts(here.material, turned)
    assert not question.choose(here.source, [turned]).boosted
    assert question._replace(keep_reversed=True).choose(here.source, [turned]).boosted
