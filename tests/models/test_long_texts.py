"""Texts that are longer than a transformer reads: cut, windowed or refused."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from whyscore.errors import DataError
from whyscore.models.encoders.transformer import Transformer
from whyscore.models.pairs import TruncatedTextWarning

Tiny = Callable[[str], Path]

TEXTS = ["The cat sat on the mat.", "Die Katze saß auf der Matte.", "猫はマットの上に座っていました。", "one"]

LONG = "the cat sat on the mat and " * 12 + "slept"


@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm-roberta", "xlm-roberta-xl", "mbart", "bart", "gpt2"])
def test_a_text_that_is_too_long_is_cut_and_told(kind: str, tiny: Tiny) -> None:
    model = Transformer(str(tiny(kind)), 2)
    with pytest.warns(TruncatedTextWarning, match="1 of 2 inputs are longer than the 64 pieces"):
        encoded, _ = model.encode([LONG, "one"])
    assert len(encoded.vectors) == 64
    assert encoded.total > 64
    assert encoded.special[-1] == (kind != "gpt2")
    assert ("trunc", "64") in model.signature().facts


def test_the_limit_keeps_to_the_position_table_where_the_tokenizer_has_none(tiny: Tiny) -> None:
    # RoBERTa: a table of 66 positions, two of which are lost to padding; the tokenizer says 1e30.
    with pytest.warns(TruncatedTextWarning):
        assert len(Transformer(str(tiny("roberta")), 2).encode([LONG])[0].vectors) == 64


def test_a_model_without_a_limit_reads_everything(tiny: Tiny) -> None:
    model = Transformer(str(tiny("t5")), 2)
    (encoded,) = model.encode([LONG * 3])
    assert len(encoded.vectors) == encoded.total > 150
    assert "trunc" not in dict(model.signature().facts)


def test_one_piece_more_than_the_limit_is_reported_and_the_limit_itself_is_not(tiny: Tiny) -> None:
    model = Transformer(str(tiny("bert")), 2)
    fitting, over = " ".join(["the"] * 62), " ".join(["the"] * 63)
    assert model.encode([fitting])[0].total == 64
    with pytest.warns(TruncatedTextWarning):
        (encoded,) = model.encode([over])
    assert (len(encoded.vectors), encoded.total) == (64, 65)


def test_long_texts_can_be_refused(tiny: Tiny) -> None:
    model = Transformer(str(tiny("bert")), 2, long="error")
    message = "transformer: the text 'the cat sat on the mat and the cat sat o'... has"
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        model.encode([LONG])
    assert caught.value.exit_code == 3
    assert ("limit", "64") in model.signature().facts


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_windows_read_all_of_a_long_text(kind: str, tiny: Tiny) -> None:
    model = Transformer(str(tiny(kind)), 2, long="window")
    (encoded,) = model.encode([LONG])
    assert len(encoded.vectors) == encoded.total > 100
    assert ("window", "64") in model.signature().facts
    with pytest.warns(TruncatedTextWarning):
        (cut,) = Transformer(str(tiny(kind)), 2).encode([LONG])
    # Three quarters of the first window lie nearer to its middle than to that of the next.
    np.testing.assert_allclose(encoded.vectors[:46], cut.vectors[:46], rtol=0, atol=1e-5)
    assert np.abs(encoded.vectors[52:60] - cut.vectors[52:60]).max(axis=1).min() > 1e-3


def test_windows_leave_texts_that_fit_as_they_are(tiny: Tiny) -> None:
    cut, windowed = (Transformer(str(tiny("bert")), 2, long=long).encode(TEXTS) for long in ("truncate", "window"))
    assert all(np.array_equal(a.vectors, b.vectors) for a, b in zip(cut, windowed, strict=True))
