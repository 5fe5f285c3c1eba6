"""Attention as word scores: parity with transformers' own attention, the norm by its definition, and the best head."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from support import tiny_models
from whyscore.errors import DataError, SpecError
from whyscore.explainers.inside import Attention, BestHead, best_head
from whyscore.metrics.learned.transquest import TransQuest
from whyscore.metrics.lexical.token_f1 import TokenF1
from whyscore.models import pairs
from whyscore.models.attribution import LooksInside
from whyscore.protocols import Explainer, WordScorer
from whyscore.registry import build, spec_of
from whyscore.text.splitters import white_space
from whyscore.types import HYPOTHESIS, SOURCE, Place, Segment

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.usefixtures("one_thread")

SEGMENTS = [
    Segment("The cat sat on the mat.", "Die Katze saß auf der Matte."),
    Segment("A dog", "Ein Hund schlief unter dem alten Tisch."),
    Segment("  The old table, didn't it?  ", "Kass istus matil"),
]
KINDS = {
    "XLMRobertaForSequenceClassification": "xlm-roberta",
    "BertForSequenceClassification": "bert",
    "XLMRobertaXLForSequenceClassification": "xlm-roberta",
}


@pytest.fixture(scope="module", params=list(KINDS))
def quest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TransQuest:
    folder = tmp_path_factory.mktemp("quest")
    tiny_models.save(folder, KINDS[request.param], request.param, num_labels=1)  # type: ignore[arg-type]
    return TransQuest(str(folder), device="cpu")


def importance(explainer: Attention, metric: TransQuest, place: Place = HYPOTHESIS) -> list[np.ndarray]:
    words = [white_space(segment.text(place)) for segment in SEGMENTS]
    return [found.importance for found in explainer.inside(metric).word_scores(SEGMENTS, place, words)]


def by_definition(metric: TransQuest, layer: int, head: int, *, norm: bool, cross: bool = False) -> np.ndarray:
    """Relevance of the pieces of the first hypothesis, from transformers' own attention, pair by pair."""
    inside = metric.inspect(SEGMENTS[:1])
    ((own,),) = inside.readings
    source, hypothesis = own.parts
    ids = torch.tensor([own.row.ids])
    network = type(inside.network).from_pretrained(metric.model, attn_implementation="eager").eval()
    types = {"token_type_ids": (torch.arange(ids.shape[1]) >= own.row.first).long()[None]}
    told = {} if network.config.model_type != "bert" else types
    with torch.no_grad():
        weights = network(ids, output_attentions=True, **told).attentions[layer - 1][0, head - 1]
        block = network.base_model.encoder.layer[layer - 1]
        given: list[torch.Tensor] = []
        hook = block.attention.self.value.register_forward_hook(lambda _m, _i, output: given.append(output[0]))
        network(ids, **told)
        hook.remove()
        width = given[0].shape[1] // network.config.num_attention_heads
        heads = slice((head - 1) * width, head * width)
        sent = given[0][:, heads] @ block.attention.output.dense.weight[:, heads].T
    asking = range(ids.shape[1]) if not cross else range(source.start, source.start + len(source.spans))
    relevance = []
    for j in range(hypothesis.start, hypothesis.start + len(hypothesis.spans)):
        effects = [float(weights[i, j]) * (float(sent[j].norm()) if norm else 1.0) for i in asking]
        relevance.append(sum(effects) / len(effects))
    return np.array(relevance)


def pooled_by_hand(metric: TransQuest, relevance: np.ndarray) -> list[float]:
    (own,) = metric.inspect(SEGMENTS[:1]).readings[0]
    text = SEGMENTS[0].hypothesis
    words = white_space(text)
    totals = []
    for start, end in words.spans:
        inner = [k for k, (a, b) in enumerate(own.parts[1].spans) if a < end and b > start and text[a:b].strip()]
        totals.append(float(sum(relevance[k] for k in inner)))
    return totals


@pytest.mark.parametrize("norm", [True, False])
@pytest.mark.parametrize("cross", [True, False])
def test_importance_is_minus_attention_times_norm_by_its_definition(
    quest: TransQuest, *, norm: bool, cross: bool
) -> None:
    found = importance(Attention(norm, 2, 3, cross), quest)[0]
    expected = pooled_by_hand(quest, by_definition(quest, 2, 3, norm=norm, cross=cross))
    np.testing.assert_allclose(found, -np.array(expected), rtol=1e-4)


def test_means_over_layers_and_heads_are_means_of_the_single_ones(quest: TransQuest) -> None:
    words = [white_space(segment.hypothesis) for segment in SEGMENTS]
    every = Attention().heads(quest, SEGMENTS, HYPOTHESIS, words)
    assert [table.shape for table in every] == [(3, 4, len(own)) for own in words]
    singles = importance(Attention(layer=3, head=1), quest)
    layers = importance(Attention(head=4), quest)
    heads = importance(Attention(layer=1), quest)
    whole = importance(Attention(), quest)
    for number, table in enumerate(every):
        np.testing.assert_allclose(singles[number], -table[2, 0], rtol=1e-5)
        np.testing.assert_allclose(layers[number], -table[:, 3].mean(axis=0), rtol=1e-5)
        np.testing.assert_allclose(heads[number], -table[0].mean(axis=0), rtol=1e-5)
        np.testing.assert_allclose(whole[number], -table.mean(axis=(0, 1)), rtol=1e-5)


def test_weights_make_the_weighted_sum_over_layers(quest: TransQuest) -> None:
    words = [white_space(segment.hypothesis) for segment in SEGMENTS]
    every = Attention().heads(quest, SEGMENTS, HYPOTHESIS, words)
    weighed = importance(Attention(weights=(0.5, 0.0, -2.0)), quest)
    one_head = importance(Attention(head=2, weights=(1.0, 3.0, 0.25)), quest)
    for number, table in enumerate(every):
        np.testing.assert_allclose(weighed[number], -(0.5 * table[0] - 2 * table[2]).mean(axis=0), rtol=1e-5, atol=1e-7)
        by_hand = table[0, 1] + 3 * table[1, 1] + 0.25 * table[2, 1]
        np.testing.assert_allclose(one_head[number], -by_hand, rtol=1e-5)


def test_equal_weights_are_the_mean_and_one_weight_is_the_block(quest: TransQuest) -> None:
    pairs_of = [
        (Attention(weights=(1 / 3, 1 / 3, 1 / 3)), Attention()),
        (Attention(weights=(0.0, 1.0, 0.0)), Attention(layer=2)),
    ]
    for weighed, plain in pairs_of:
        for one, other in zip(importance(weighed, quest), importance(plain, quest), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)


def test_weights_stand_in_the_signature() -> None:
    assert spec_of(Attention(weights=(0.25, 0.75))) == "attention(weights=(0.25, 0.75))"
    assert build("attention(weights=(1, 2))", "explainer") == Attention(weights=(1.0, 2.0))


def test_all_places_of_a_joined_reader_share_at_most_one_unit_of_attention(quest: TransQuest) -> None:
    for own, other in zip(
        importance(Attention(norm=False), quest), importance(Attention(norm=False), quest, SOURCE), strict=True
    ):
        total = -own.sum() - other.sum()
        assert 0 < total < 1


def test_the_batch_does_not_matter(quest: TransQuest, monkeypatch: pytest.MonkeyPatch) -> None:
    together = importance(Attention(), quest)
    monkeypatch.setitem(pairs.BUDGET, "cpu", 1)
    for one, other in zip(together, importance(Attention(), quest), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_looking_at_attention_changes_no_score(quest: TransQuest) -> None:
    before = quest.score(SEGMENTS)
    importance(Attention(), quest)
    assert quest.score(SEGMENTS).tolist() == before.tolist()


def test_a_reader_of_single_texts_has_attention_but_none_across(siamese: TransQuest) -> None:
    assert all(np.all(values < 0) for values in importance(Attention(), siamese))
    told = "attention: transquest reads each text by itself, so that no text attends to another; leave out cross=True"
    with pytest.raises(SpecError, match=re.escape(told)):
        importance(Attention(cross=True), siamese)


def test_attention_from_an_empty_text_is_undefined(quest: TransQuest) -> None:
    segment = Segment("The cat", "")
    (found,) = Attention(cross=True).inside(quest).word_scores([segment], HYPOTHESIS, [white_space("The cat")])
    assert np.isnan(found.importance).all()


def test_an_empty_text_has_no_words_to_explain(quest: TransQuest) -> None:
    (found,) = Attention().inside(quest).word_scores([Segment("", "Die Katze")], HYPOTHESIS, [white_space("")])
    assert found.importance.shape == (0,)


def test_notes_name_the_pieces(quest: TransQuest) -> None:
    segment = Segment("The cat", "Die Katze")
    (found,) = Attention(norm=False).inside(quest).word_scores([segment], HYPOTHESIS, [white_space("The cat")])
    shown = [f"-attention: {word} {value:.4g}" for word, value in zip(("The", "cat"), found.importance, strict=True)]
    assert found.notes == tuple(shown)


def test_it_is_an_explainer_that_looks_inside_and_plans_no_probe(quest: TransQuest) -> None:
    assert isinstance(Attention(), LooksInside)
    assert not isinstance(Attention(), Explainer | WordScorer)
    assert isinstance(Attention().inside(quest), WordScorer)


@pytest.mark.parametrize(
    ("explainer", "told"),
    [
        (Attention(layer=4), "attention: layer is 4, but the network has 3 blocks; use 1 to 3 or 'mean'"),
        (
            Attention(weights=(1.0, 2.0)),
            "attention: 2 weights were given, but the network has 3 blocks; give one per block",
        ),
        (Attention(head=5), "attention: head is 5, but a block has 4; use 1 to 4 or 'mean'"),
    ],
)
def test_blocks_and_heads_that_are_not_there_are_refused(quest: TransQuest, explainer: Attention, told: str) -> None:
    with pytest.raises(SpecError, match=re.escape(told)):
        importance(explainer, quest)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"layer": 0}, "attention: layer is 0, expected 1 or more"),
        ({"head": -1}, "attention: head is -1, expected 1 or more"),
        (
            {"layer": 2, "weights": (1.0,)},
            "attention: layer is 2 and weights are given; give one block, or the weight of",
        ),
        ({"weights": (0.0, 0.0)}, "attention: weights are (0.0, 0.0), expected finite numbers that are not all 0"),
        ({"weights": (1.0, float("nan"))}, "attention: weights are (1.0, nan), expected finite numbers that"),
        ({"layer": "last"}, "Attention: layer is 'last', expected a whole number or 'mean'"),
        ({"pool": "median"}, "Attention: pool is 'median', expected 'mean' or 'sum' or 'max' or 'min' or 'first'"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, object], told: str) -> None:
    with pytest.raises(SpecError, match=re.escape(told)):
        Attention(**options)  # type: ignore[arg-type]


def test_a_metric_without_a_network_is_refused() -> None:
    with pytest.raises(SpecError, match=re.escape("token_f1 cannot be looked into: attention needs a metric with")):
        Attention().inside(TokenF1())


# The best head


def test_the_head_that_ranks_errors_first_is_best() -> None:
    first = np.array([[[0.9, 0.1, 0.5], [0.1, 0.9, 0.5]], [[0.2, 0.3, 0.1], [0.5, 0.5, 0.5]]])
    second = np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.3, 0.3], [0.5, 0.4]]])
    found = best_head([first, second, first], [[0, 1, 0], [0, 1], [0, 0, 0]])
    np.testing.assert_allclose(found.auc, [[0, 1], [0.75, 0.25]])
    assert (found.layer, found.head, found.texts) == (1, 2, 2)


def test_the_lowest_of_equal_heads_is_taken() -> None:
    assert best_head([np.zeros((2, 3, 4))], [[0, 1, 1, 0]])[:2] == (1, 1)


def test_words_without_a_number_do_not_count() -> None:
    table = np.array([[[0.2, np.nan, 0.1, np.nan]]])
    assert best_head([table], [[1, 0, 0, 1]]).auc.tolist() == [[1.0]]


def test_the_choice_stands_in_the_options() -> None:
    found = BestHead(2, 3, np.zeros((1, 1)), 1).apply_to(Attention(norm=False))
    assert found == Attention(norm=False, layer=2, head=3, tuned=True)
    assert "layer=2, head=3, tuned=True" in spec_of(found)


@given(
    arrays(np.float64, (1, 1, 8), elements=st.integers(0, 4).map(float)),
    st.lists(st.integers(0, 1), min_size=8, max_size=8).filter(lambda labels: 0 < sum(labels) < 8),
)
def test_the_area_is_the_share_of_pairs_in_the_right_order(table: np.ndarray, labels: list[int]) -> None:
    values = table[0, 0].tolist()
    wrong = [value for value, label in zip(values, labels, strict=True) if label]
    right = [value for value, label in zip(values, labels, strict=True) if not label]
    wins = sum((a > b) + 0.5 * (a == b) for a in wrong for b in right)
    assert best_head([table], [labels]).auc[0, 0] == pytest.approx(wins / (len(wrong) * len(right)))


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ([[1, 0]], "text 1 has 3 words, but 2 labels were given"),
        ([[1, 1, 1]], "none of the 1 texts has words of both labels: a head cannot be chosen by them"),
    ],
)
def test_labels_that_choose_nothing_are_refused(labels: list[list[int]], told: str) -> None:
    with pytest.raises(DataError, match=re.escape(told)):
        best_head([np.zeros((1, 1, 3))], labels)
