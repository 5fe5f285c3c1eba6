"""Units of the estimator: no unit covers parts of two tokens, none is lost, all have pieces."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyscore.metrics.estimators.units import Units, find_units
from whyscore.models.encoders.embedded import segmenter


def units_of(text: str) -> Units:
    """Return the units of a text as the estimator cuts it."""
    return find_units(text, np.array(segmenter().cut(text).spans, dtype=np.int64).reshape(-1, 2))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hospital for treatment .", ("hospital", "for", "treatment", ".")),
        ("hospital for treatment.", ("hospital", "for", "treatment", ".")),
        ('He said , " yes " .', ("He", "said", ",", '"', "yes", '"', ".")),
        ("don't (stop)", ("don't", "(", "stop", ")")),
        ("我 喜欢 猫 。", ("我", "喜欢", "猫", "。")),
        ("...", ("...",)),
        ("", ()),
        ("  ", ()),
    ],
)
def test_words_and_punctuation(text: str, words: tuple[str, ...]) -> None:
    assert units_of(text).words == words


def test_text_without_blanks_is_cut_into_pieces() -> None:
    found = units_of("我希望大家能花点时间考虑一个非常简单的事实")
    assert len(found.words) > 5
    assert "".join(found.words) == "我希望大家能花点时间考虑一个非常简单的事实"


@given(st.text(alphabet=st.sampled_from("abÄ.,\"'-我是 \t　0१ไ\u200b€"), max_size=40))
def test_units_cover_each_token_and_nothing_else(text: str) -> None:
    found = units_of(text)
    covered = {place for start, end in found.spans.tolist() for place in range(start, end)}
    assert covered == {place for place, letter in enumerate(text) if not letter.isspace()}
    assert all(found.spans[k, 1] <= found.spans[k + 1, 0] for k in range(len(found.spans) - 1))
    assert not any(letter.isspace() for word in found.words for letter in word)
