"""Weights of MEE2 and MEE4 from human scores, the parts behind them, and languages told to metrics."""

import json
import re
from collections.abc import Sequence

import numpy as np
import pytest

import whyscore as ws
from whyscore.analysis.calibrate import weights as job
from whyscore.analysis.common import with_languages
from whyscore.errors import DataError, SpecError
from whyscore.metrics.mee.metric import Mee4, Weights
from whyscore.registry import build
from whyscore.types import Dataset, Entry, FloatMatrix, Segment

LETTERS = "abcdefgh"


def first_letter(texts: Sequence[str]) -> FloatMatrix:
    """Vectors that say nothing of the words: an angle by the length of the text."""
    angles = np.array([len(text) * 0.37 for text in texts])
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


METRIC = Mee4(words=None, sentences=first_letter)


def dataset(number: int = 60, *, by: str = "lms", noise: float = 0.0, documents: int | None = None) -> Dataset:
    """Made-up translations whose human score follows one part of the metric."""
    rng = np.random.default_rng(3)
    segments = []
    for _ in range(number):
        size = int(rng.integers(3, 9))
        reference = rng.choice(list(LETTERS), size)
        hypothesis = [
            word if rng.random() < 0.5 else "x" * int(rng.integers(1, 5)) for word in rng.permutation(reference)
        ]
        segments.append(Segment(" ".join(hypothesis), references=(" ".join(reference),)))
    values = getattr(ws.mee_parts(segments, METRIC), by) + noise * rng.standard_normal(number)
    entries = [
        Entry(
            str(k // 2),
            f"system{k % 2}",
            segment,
            {"da": float(values[k])},
            document=None if documents is None else f"d{k // 2 % documents}",
            extra={"LP": "de-en" if k < number // 2 else "ru-en"},
        )
        for k, segment in enumerate(segments)
    ]
    return Dataset("made-up", tuple(entries))


@pytest.mark.parametrize(("by", "share"), [("lms", 0), ("syn", 1), ("cxt", 2)])
def test_the_part_that_people_follow_gets_all_the_weight(by: str, share: int) -> None:
    found = ws.fit_weights(dataset(by=by), METRIC, human="da")
    assert found.weights.shares[share] == pytest.approx(1)
    assert found.held_out == pytest.approx(1)
    assert found.held_out > found.held_out_published
    assert found.helps
    assert "fitting helps on data like these" in found.sentence


def test_published_weights_are_kept_where_people_follow_them() -> None:
    found = ws.fit_weights(dataset(by="score"), METRIC, human="da")
    assert found.weights == found.published == Weights()
    assert found.held_out == found.held_out_published
    assert not found.helps
    assert found.sentence.endswith("(better in 0 of 5 folds): fitting does not help; keep the published weights")


def test_noise_is_not_called_a_gain() -> None:
    found = ws.fit_weights(dataset(by="score", noise=3.0), METRIC, human="da")
    assert not found.helps
    assert found.sentence.endswith("keep the published weights")


def test_the_spec_with_fitted_weights_scores_as_they_say() -> None:
    data = dataset(by="syn")
    plain = build("mee4(words=None, sentences=static)")
    found = ws.fit_weights(data, plain, human="da")
    fitted = build(found.spec)
    assert (fitted.alpha, fitted.gamma, fitted.delta, fitted.epsilon) == found.weights


def test_the_metric_is_asked_once_and_never_in_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    original = Mee4.statistics
    monkeypatch.setattr(
        Mee4, "statistics", lambda self, segments: calls.append(len(segments)) or original(self, segments)
    )
    monkeypatch.setattr(Mee4, "score", lambda *_: pytest.fail("the metric was asked for scores"))
    data = dataset()
    calls.clear()
    ws.fit_weights(data, METRIC, human="da", folds=4, coefficient="kendall")
    assert calls == [len(set(data.segments))]


@pytest.mark.parametrize("level", ["global", "segment", "system", "within_system"])
def test_every_level_can_be_fitted(level: str) -> None:
    found = ws.fit_weights(dataset(), METRIC, human="da", level=level, coefficient="spearman")
    assert found.name == f"spearman@{level}"
    assert len(found.folds) == 5


def test_groups_are_correlated_by_themselves() -> None:
    data = dataset()
    apart = Dataset(
        data.name,
        tuple(
            Entry(e.id, e.system, e.segment, {"da": e.human["da"] + 100 * (e.extra["LP"] == "ru-en")}, extra=e.extra)
            for e in data.entries
        ),
    )
    grouped = ws.fit_weights(apart, METRIC, human="da", group="LP")
    assert grouped.held_out == pytest.approx(1)
    assert ws.fit_weights(apart, METRIC, human="da").held_out < 0.9
    with pytest.raises(DataError, match=re.escape("an entry has no column 'domain' to group by")):
        ws.fit_weights(apart, METRIC, human="da", group="domain")


def test_documents_are_never_parted() -> None:
    data = dataset(documents=7)
    fold, split = job._folds(data, 5, 0)
    assert split == "documents"
    folds_of: dict[str | None, set[int]] = {}
    for entry, number in zip(data.entries, fold.tolist(), strict=True):
        folds_of.setdefault(entry.document, set()).add(number)
    assert all(len(numbers) == 1 for numbers in folds_of.values())
    assert job._folds(data, 5, 1)[0].tolist() != fold.tolist()


def test_segments_go_to_the_folds_in_turn_with_all_their_systems() -> None:
    fold, split = job._folds(dataset(12), 3, 0)
    assert split == "segments"
    assert fold.tolist() == [0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2]


def test_entries_without_a_human_score_are_left_out() -> None:
    data = dataset(20)
    more = Dataset(data.name, (*data.entries, Entry("99", "system0", Segment("a", references=("b",)))))
    assert ws.fit_weights(more, METRIC, human="da").n == 20


def test_an_undefined_correlation_is_said_to_be_so() -> None:
    data = dataset(20)
    flat = Dataset(data.name, tuple(Entry(e.id, e.system, e.segment, {"da": 1.0}) for e in data.entries))
    found = ws.fit_weights(flat, METRIC, human="da")
    assert np.isnan(found.held_out)
    assert found.to_json()["held_out"] is None
    assert "it is undefined, so there is no conclusion" in found.sentence


def test_results_can_be_written() -> None:
    found = ws.fit_weights(dataset(), METRIC, human="da")
    rows = list(found.records())
    assert [row["fold"] for row in rows] == ["1", "2", "3", "4", "5", "all"]
    assert sum(int(row["n"]) for row in rows[:-1]) == rows[-1]["n"] == 60


def test_results_of_named_models_are_plain_json() -> None:
    found = ws.fit_weights(dataset(), "mee2(words=None, sentences=static)", human="da", seed=4)
    told = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert told["published"] == {"alpha": 2.0, "gamma": 1.0, "delta": 1.0, "epsilon": 1.0}
    assert told["correlation"] == "pearson@global"
    assert len(told["folds"]) == 5
    assert told["metric"].startswith("mee2(words=None")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"folds": 1}, SpecError, "fit_weights: folds is 1, expected 2 or more"),
        ({"folds": 31}, DataError, "made-up has 30 segments with a human score, too few for 31 folds"),
        ({"human": "mqm"}, DataError, "made-up has no human score 'mqm'; it has: da"),
        ({"metric": "chrf"}, SpecError, "mee_parts takes mee2 or mee4 with their options, got chrf"),
    ],
)
def test_questions_without_an_answer_are_refused(
    options: dict[str, object], error: type[Exception], message: str
) -> None:
    asked: dict[str, object] = {"metric": METRIC, "human": "da"} | options
    with pytest.raises(error, match=re.escape(message)):
        ws.fit_weights(dataset(), **asked)  # type: ignore[arg-type]


def test_parts_have_names_and_rebuild_the_scores() -> None:
    data = [Segment("a b", references=("a c",)), Segment("a", references=("a",))]
    found = ws.mee_parts(data, METRIC)
    assert len(found) == 2
    assert (found.exact + found.root + found.synonym) / 3 == pytest.approx(found.lms)
    rows = list(found.records())
    assert list(rows[0]) == ["exact", "root", "synonym", "lms", "syn", "cxt", "unknown", "score"]
    assert [row["score"] for row in rows] == METRIC.score(data).tolist()
    with pytest.raises(ValueError, match="read-only"):
        found.lms[0] = 1


def test_the_target_language_reaches_metrics_that_ask_for_it() -> None:
    assert with_languages(build("mee(words=None)"), ("en", "ru")) == build("mee(words=None, language=ru)")
    assert with_languages(build("mee(language=de)"), ("en", "ru")) == build("mee(language=de)")
    assert with_languages(build("mee"), None) == build("mee")
    assert with_languages(build("chrf"), ("en", "ru")) == build("chrf")
    entry = Entry("1", "s", Segment("кошки спят", references=("кошка спит",)))
    data = Dataset("ru", (entry,), languages=("en", "ru"))
    assert ws.mee_parts(data, METRIC).root[0] > 0
