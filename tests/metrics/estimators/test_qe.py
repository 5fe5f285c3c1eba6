"""The estimator that ships: what it says, that it is whole, and what it makes of bad input."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logit

from whyscore.errors import DataError, MissingInput, SpecError
from whyscore.metrics.estimators.qe import FORMAT, QE, SHIPPED, UnseenNotice, digest_of, load
from whyscore.registry import build
from whyscore.stats.words import Ragged, agree
from whyscore.testing import check_metric
from whyscore.text.splitters import white_space
from whyscore.types import HYPOTHESIS, SOURCE, FloatVector, Place, Segment, Side

TRAINING = Path(__file__).parents[3] / "training"

GOOD = Segment("The cat sits on the table .", "Die Katze sitzt auf dem Tisch .")
BAD = Segment("The cat sits on the banana .", "Die Katze sitzt auf dem Tisch .")


def errors(segment: Segment, place: Place = HYPOTHESIS) -> FloatVector:
    """Return the error probability of each white-space word."""
    (found,) = QE().word_scores([segment], place, [white_space(segment.text(place))])
    return -found.importance


def test_the_shipped_file_is_small_and_whole() -> None:
    assert SHIPPED.stat().st_size <= 12e6
    with np.load(SHIPPED, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    assert int(arrays.pop("format")) == FORMAT
    digest = str(arrays.pop("digest"))
    assert digest_of(arrays) == digest
    assert f"weights:{digest}" in str(QE().signature())
    assert {"et-en", "ro-en", "zh-en", "en-de"} <= set(load(SHIPPED).pairs)


def test_it_keeps_the_contract_of_metrics() -> None:
    check_metric(QE())


def test_a_wrong_word_lowers_the_score_and_stands_out() -> None:
    good, bad = QE().score([GOOD, BAD])
    assert 0 <= bad < good <= 1
    assert errors(BAD).argmax() == 5
    assert errors(BAD)[5] > 1.5 * errors(GOOD)[5]
    assert errors(BAD, SOURCE)[5] > errors(GOOD, SOURCE)[5]


def test_plain_and_tokenised_text_agree() -> None:
    plain = Segment("The cat sits on the banana.", "Die Katze sitzt auf dem Tisch.")
    assert errors(plain).argmax() == 5
    np.testing.assert_allclose(errors(plain)[:5], errors(BAD)[:5], atol=0.1)


def test_scores_do_not_depend_on_what_stands_beside() -> None:
    others = [Segment(f"{GOOD.hypothesis} {BAD.hypothesis}" * k, GOOD.source) for k in range(1, 9)]
    load.cache_clear()
    together = QE().score([*others, BAD, GOOD])
    load.cache_clear()
    np.testing.assert_allclose(QE().score([GOOD, BAD]), together[[-1, -2]], atol=1e-6)


@pytest.mark.parametrize(
    "segment",
    [
        Segment("", "Die Katze sitzt ."),
        Segment("The cat sits .", ""),
        Segment("", ""),
        Segment("   ", "\u200b"),
        Segment("Die Katze sitzt .", "Die Katze sitzt ."),
        Segment("Die Katze sitzt auf dem Tisch .", "The cat sits on the table ."),
        Segment("word " * 2000, "Wort " * 2000),
        Segment("สวัสดีชาวโลก", "ሰላም ልዑል"),
        Segment("😀 \x00 \ud800", "?"),
    ],
    ids=["no hypothesis", "no source", "nothing", "blank", "copy", "swapped", "long", "other scripts", "nasty"],
)
def test_bad_input_gives_numbers(segment: Segment) -> None:
    (score,) = QE().score([segment])
    assert 0 <= score <= 1
    for place in (HYPOTHESIS, SOURCE):
        found = errors(segment, place)
        assert np.all((found >= 0) & (found <= 1))


def test_an_empty_side_scores_worst() -> None:
    assert QE().score([Segment("", "Die Katze"), Segment("The cat", "")]).tolist() == [0.0, 0.0]
    assert errors(Segment("The cat", "")).tolist() == [1.0, 1.0]


def test_an_untranslated_copy_scores_below_a_translation() -> None:
    copy = Segment(GOOD.source or "", GOOD.source)
    assert QE().score([copy])[0] < QE().score([GOOD])[0]


def test_what_is_missing_or_unknown_is_said() -> None:
    with pytest.raises(MissingInput, match="source"):
        QE().score([Segment("The cat .")])
    with pytest.raises(SpecError, match="no reference"):
        QE().word_scores([GOOD], Place(Side.REFERENCE, 0), [white_space("x")])
    with pytest.raises(SpecError, match="et-en"):
        QE(languages="en")
    with pytest.warns(UnseenNotice, match="fi-sv"):
        QE(languages="fi-sv").score([GOOD])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        QE(languages="et-en").score([GOOD])


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "qe.npz"
    with pytest.raises(DataError, match="no such file"):
        QE(model=str(path)).score([GOOD])
    path.write_bytes(SHIPPED.read_bytes()[:-5000])
    with pytest.raises(DataError, match="cannot be read"):
        QE(model=str(path)).score([GOOD])
    content = bytearray(SHIPPED.read_bytes())
    content[2_000_000:2_000_400] = bytes(byte ^ 0x5A for byte in content[2_000_000:2_000_400])
    path.write_bytes(content)
    with pytest.raises(DataError, match="cannot be read"):
        QE(model=str(path)).score([GOOD])
    with np.load(SHIPPED, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    np.savez(path, **(arrays | {"mean": arrays["mean"] + 1}))
    with pytest.raises(DataError, match="damaged"):
        QE(model=str(path)).score([GOOD])
    np.savez(path, **(arrays | {"format": np.array(FORMAT + 1)}))
    with pytest.raises(DataError, match=f"format {FORMAT + 1}"):
        QE(model=str(path)).score([GOOD])


def test_another_file_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / SHIPPED.name
    path.write_bytes(SHIPPED.read_bytes())
    own = build(f"qe(model='{tmp_path}')")
    np.testing.assert_allclose(own.score([GOOD]), QE().score([GOOD]), atol=1e-6)


LEAST = {"et-en": (0.76, 0.75, 0.5), "ro-en": (0.83, 0.82, 0.65)}
"""AUC of hypothesis and source words, and Pearson's r on the first 400 rows; `training/README.md` has those of all."""


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("pair", LEAST)
def test_highlights_agree_with_human_raters(pair: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TRAINING))
    sys.modules.pop("data", None)
    from data import eval4nlp  # type: ignore[import-not-found]

    rows = eval4nlp(pair)[:400]
    segments = [Segment(row.hypothesis, row.source) for row in rows]
    aucs = []
    for place, tags in (
        (HYPOTHESIS, [row.hypothesis_tags for row in rows]),
        (SOURCE, [row.source_tags for row in rows]),
    ):
        words = [white_space(segment.text(place)) for segment in segments]
        found = [-own.importance for own in QE(languages=pair).word_scores(segments, place, words)]
        agreement = agree(Ragged.of([np.array(own) for own in tags]), Ragged.of(found))
        aucs.append(float(np.nanmean(agreement.auc)))
    correlation = np.corrcoef(QE(languages=pair).score(segments), [row.score for row in rows])[0, 1]
    assert aucs[0] > LEAST[pair][0]
    assert aucs[1] > LEAST[pair][1]
    assert correlation > LEAST[pair][2]


@pytest.mark.filterwarnings("ignore::whyscore.metrics.estimators.qe.UnseenNotice")
@pytest.mark.parametrize("place", [HYPOTHESIS, SOURCE])
def test_words_of_an_unseen_pair_are_judged_by_what_was_learned_and_by_evidence(place: Place) -> None:
    words = [white_space(BAD.text(place))]
    (unseen,) = QE(languages="de-en").word_scores([BAD], place, words)
    (evidence,) = build("evidence(languages='de-en')", "explainer").word_scores([BAD], place, words)
    both = (logit(errors(BAD, place)) - evidence.importance + logit(0.3)) / 2
    np.testing.assert_allclose(logit(-unseen.importance), both, atol=0.01)


@pytest.mark.filterwarnings("ignore::whyscore.metrics.estimators.qe.UnseenNotice")
def test_a_model_without_trees_leaves_words_of_an_unseen_pair_to_evidence(tmp_path: Path) -> None:
    with np.load(SHIPPED, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files if not name.startswith(("trees.", "digest", "format"))}
    path = tmp_path / "own.npz"
    np.savez(path, format=np.array(FORMAT), digest=np.array(digest_of(arrays)), **arrays)
    words = [white_space(BAD.hypothesis)]
    (unseen,) = QE(model=str(path), languages="de-en").word_scores([BAD], HYPOTHESIS, words)
    (evidence,) = build("evidence(languages='de-en')", "explainer").word_scores([BAD], HYPOTHESIS, words)
    assert np.array_equal(np.argsort(unseen.importance), np.argsort(evidence.importance))


def test_a_named_pair_has_a_sentence_head_of_its_own() -> None:
    unnamed, estonian, romanian = (QE(languages=pair).score([GOOD, BAD]) for pair in (None, "et-en", "ro-en"))
    assert len({tuple(scores) for scores in (unnamed, estonian, romanian)}) == 3
    (known,) = load(SHIPPED).compute([(GOOD.hypothesis, GOOD.source or "")], seen=True)
    assert known.logits is not None
    heads = {f"{pair}.{kind}" for pair, kinds in load(SHIPPED).pairs.items() for kind in kinds}
    assert known.logits.heads.keys() == heads


def test_a_translation_of_something_else_is_bad_in_a_pair_of_the_training() -> None:
    invented = Segment(
        "Hungry dolphins rarely sing about quarterly tax returns",
        "Curtea prin decizia de casare cu rejudecare trimite cauza tribunalului",
    )
    # Hardly a word has a translation in the tables: for this pair, that speaks against the text.
    (score,) = QE(languages="ro-en").score([invented])
    assert score < 0.3
    seen, unseen = (
        load(SHIPPED).compute([(invented.hypothesis, invented.source or "")], seen=seen)[0].logits
        for seen in (True, False)
    )
    assert seen is not None
    assert unseen is not None
    assert seen.words["edits"].mean() > unseen.words["edits"].mean()


def test_a_pair_with_marked_spans_reads_both_kinds_of_labels() -> None:
    chinese = Segment("The cat sits on the banana .", "猫坐在桌子上。")
    (known,) = load(SHIPPED).compute([(chinese.hypothesis, chinese.source or "")], seen=True)
    assert known.logits is not None
    (estimate,) = load(SHIPPED).estimates([(chinese.hypothesis, chinese.source or "")], "zh-en")
    calibration = load(SHIPPED)._calibration
    by_kind = [
        1 / (1 + np.exp(-(calibration[kind][0] * known.logits.words[kind] + calibration[kind][1])))
        for kind in ("edits", "spans")
    ]
    np.testing.assert_allclose(estimate.errors[0], np.mean(by_kind, axis=0), atol=1e-6)


def test_a_wrong_language_pair_gives_scores_in_range() -> None:
    russian = Segment("The cat sits on the table .", "Кошка сидит на столе .")
    for pair in load(SHIPPED).pairs:
        scores = QE(languages=pair).score([GOOD, russian, Segment("", "Katze")])
        assert np.all((scores >= 0) & (scores <= 1))


def test_languages_come_from_the_data() -> None:
    assert QE().for_languages("zh-TW", "EN_us") == QE(languages="zh-en")
    assert QE(languages="et-en").for_languages("ro", "en") == QE(languages="et-en")
