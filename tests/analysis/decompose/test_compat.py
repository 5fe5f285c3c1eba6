"""The masks, tokens and zeros of the published tables."""

import math
import sys

import pytest

from whyscore.analysis.decompose.decompose import decompose
from whyscore.analysis.decompose.masking import compat_masking
from whyscore.analysis.decompose.scoring import decomposed_metric
from whyscore.analysis.decompose.tagging import Marked, Marking
from whyscore.data.formats.text import from_texts
from whyscore.metrics.lexical.bleu import Bleu
from whyscore.metrics.lexical.chrf import Chrf
from whyscore.metrics.lexical.rouge import Rouge
from whyscore.types import Segment, Signature

pytest.importorskip("nltk")


def marking(text: str, *spans: tuple[int, int]) -> tuple[Marked, Marking]:
    return Marked(0, text, [spans]), Marking((), ("upos:NOUN",), Signature("t"))


def test_words_become_the_name_of_the_feature_and_lose_their_clitic() -> None:
    text, held = marking("The dog's house's roof", (4, 7), (10, 15))
    masking = compat_masking(Bleu(), held)
    assert masking.variant(text, 0, hypothesis=True) == ("The NOUN NOUN roof", "The Y0 Y1 roof")
    assert masking.variant(text, 0, hypothesis=False).anti == "The X0 X1 roof"


def test_every_such_letter_of_the_text_is_numbered_too() -> None:
    text, held = marking("X marks Y here", (8, 9))
    masking = compat_masking(Bleu(), held)
    assert masking.variant(text, 0, hypothesis=False).anti == "X0 marks X1 here"


def test_a_span_is_hidden_piece_by_piece_and_its_article_stays() -> None:
    text, held = marking("in the United States now", (3, 20))
    assert compat_masking(Bleu(), held).variant(text, 0, hypothesis=True).oracle == "in the NOUN NOUN now"


def test_metrics_without_tokens_read_the_masked_text() -> None:
    text, held = marking("a dog.", (2, 5))
    assert compat_masking(Chrf(), held).variant(text, 0, hypothesis=True).oracle == "a NOUN."


def test_zeros_are_tiny_numbers_and_only_words_in_lower_case_count() -> None:
    data = [Segment("the dog saw a Cat", references=("the cow met a Cow",))]
    (row,) = decompose(data, "bleu", mode="compat", features=["words:dog,cow,cat"], draws=0)
    assert row.n == 1
    assert row.segments is not None
    assert row.segments.hypothesis_spans == (((4, 7),),)
    assert row.sigma is not None
    # Two of five words match and no longer run: (2/5 x tiny^3)^(1/4).
    assert row.sigma == pytest.approx(math.exp((math.log(2 / 5) + 3 * math.log(sys.float_info.min)) / 4), rel=1e-9)
    (paper,) = decompose(data, "bleu", features=["words:dog,cow,cat"], draws=0)
    assert paper.sigma == 0.0


def test_tiny_zeros_count_in_the_guarded_value_and_give_no_share() -> None:
    data = from_texts({"s": ["a dog b x y"]}, ["a cow b v w"])
    (row,) = decompose(data, "bleu", mode="compat", features=["words:dog,cow"], draws=0)
    assert row.share is None
    assert row.reason is not None
    assert row.reason.endswith("is too small")
    assert row.guarded is not None
    assert row.guarded > 0


def test_plain_names_mean_what_the_tables_used() -> None:
    assert decomposed_metric("rouge", "compat") == Rouge(measure="p", stem=True, mode="compat")
    assert decomposed_metric("rouge", "paper") == Rouge()
    assert decomposed_metric("rouge(kind=1)", "compat") == Rouge(kind="1")
    assert decomposed_metric("bleu", "paper") == Bleu(smoothing="none", effective_order=False, score_scale=1)
    assert decomposed_metric("bleu(effective_order=True)", "paper") == Bleu(
        smoothing="none", effective_order=True, score_scale=1
    )
    assert decomposed_metric('bleu(smoothing="exp")', "paper") == Bleu(smoothing="exp")
    assert decomposed_metric("bleu", "compat") == Bleu(smoothing="nltk", effective_order=False, score_scale=1)
