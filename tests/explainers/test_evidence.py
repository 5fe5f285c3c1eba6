"""The explainer `evidence`: high where nothing speaks against a word; what it needs and what it tells."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import whyscore as ws
from whyscore.errors import DataError, SpecError
from whyscore.explainers import evidence as module
from whyscore.explainers.evidence import WordEvidence
from whyscore.models.encoders.loading import CoverageNotice
from whyscore.models.evidence import Setting, error_evidence
from whyscore.models.lexicon import learn_lexicon, write_lexicon
from whyscore.models.surprisal import FrequencyNotice
from whyscore.registry import build
from whyscore.text.splitters import white_space
from whyscore.types import HYPOTHESIS, SOURCE, Place, Segment, Side

SEGMENT = Segment("The dog sleeps in the parliament", "Der Hund schläft im Haus", ("The dog sleeps in the house",))


@pytest.fixture(autouse=True)
def untold() -> None:
    module._warn.cache_clear()


def test_importance_is_minus_the_evidence_on_both_sides() -> None:
    explainer = WordEvidence(languages="de-en")
    for place in (HYPOTHESIS, SOURCE):
        words = white_space(SEGMENT.text(place))
        (found,) = explainer.word_scores([SEGMENT], place, [words])
        (expected,) = error_evidence([SEGMENT], place.side, [words], Setting(None, ("de", "en")))
        assert found.importance.tolist() == (-expected).tolist()
        assert found.notes is not None
        assert len(found.notes) == len(words)


def test_the_source_is_seen_even_where_the_metric_does_not_read_it() -> None:
    data = ws.from_texts(
        {"A": [SEGMENT.hypothesis]}, references=[SEGMENT.references[0]], sources=[SEGMENT.source or ""]
    )
    (found,) = ws.explain(data, "chrf", "evidence", sides=["hypothesis"])
    assert int(np.argmin(found.importance)) == 5


def test_a_lexicon_changes_the_numbers_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    write_lexicon(learn_lexicon(["der hund", "das haus"], ["the dog", "the house"]), tmp_path / "l.npz")
    words = [white_space(SEGMENT.hypothesis)]
    (plain,) = WordEvidence(languages="de-en").word_scores([SEGMENT], HYPOTHESIS, words)
    (linked,) = WordEvidence(str(tmp_path / "l.npz"), "de-en").word_scores([SEGMENT], HYPOTHESIS, words)
    assert plain.importance[1] != linked.importance[1]
    (tmp_path / "l.npz").write_bytes(b"PK\x03\x04 damaged")
    with pytest.raises(DataError, match="cannot be read as a lexicon"):
        WordEvidence(str(tmp_path / "l.npz"), "de-en").word_scores([SEGMENT], HYPOTHESIS, words)


def test_what_is_left_out_is_told_once() -> None:
    explainer, words = WordEvidence(languages="et-en"), [white_space(SEGMENT.hypothesis)]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        explainer.word_scores([SEGMENT], HYPOTHESIS, words)
        explainer.word_scores([SEGMENT], HYPOTHESIS, words)
    kinds = [(one.category, str(one.message)) for one in told]
    assert [kind for kind, _ in kinds] == [CoverageNotice, FrequencyNotice]
    assert "'et'" in kinds[0][1]


def test_references_missing_sources_and_wrong_languages_are_refused() -> None:
    words = [white_space("a")]
    with pytest.raises(SpecError, match="asked for the reference 1"):
        WordEvidence().word_scores([SEGMENT], Place(Side.REFERENCE, 0), words)
    with pytest.raises(SpecError, match="source, which is missing"):
        WordEvidence().word_scores([Segment("a")], HYPOTHESIS, words)
    with pytest.raises(SpecError, match="two codes like 'de-en'"):
        build("evidence(languages='german')", "explainer")


def test_the_languages_of_the_data_reach_the_explainer() -> None:
    data = ws.from_texts({"A": [SEGMENT.hypothesis]}, sources=[SEGMENT.source or ""], languages=("de", "en"))
    (found,) = ws.explain(data, "xbertscore", "evidence", sides=["hypothesis"])
    assert found.signature.spec == 'evidence(languages="de-en")'
