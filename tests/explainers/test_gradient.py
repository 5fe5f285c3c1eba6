"""Gradients as word scores: parity with autograd by hand, and contributions that add up to the score."""

import re
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from support import tiny_models
from whyscore.errors import MissingExtra, SpecError
from whyscore.explainers.inside import Gradient, IncompleteWarning
from whyscore.metrics.learned.transquest import TransQuest
from whyscore.metrics.lexical.token_f1 import TokenF1
from whyscore.models import pairs
from whyscore.models.attribution import Inside, LooksInside, Reading, Shown, line, rows_of
from whyscore.models.pairs import Coded, Frame
from whyscore.protocols import Explainer, WordScorer
from whyscore.text.splitters import white_space
from whyscore.types import HYPOTHESIS, SOURCE, Inputs, Place, Segment, Signature

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("captum")
from torch import nn  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")

SEGMENTS = [
    Segment("The cat sat on the mat.", "Die Katze saß auf der Matte."),
    Segment("A dog", "Ein Hund schlief unter dem alten Tisch."),
    Segment("  The old table, didn't it?  ", "Kass istus matil"),
]
KINDS = {"XLMRobertaForSequenceClassification": "xlm-roberta", "BertForSequenceClassification": "bert"}


@pytest.fixture(scope="module", params=list(KINDS))
def quest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TransQuest:
    folder = tmp_path_factory.mktemp("quest")
    tiny_models.save(folder, KINDS[request.param], request.param, num_labels=1)  # type: ignore[arg-type]
    return TransQuest(str(folder), device="cpu")


def importance(explainer: Gradient, metric: object, place: Place = HYPOTHESIS) -> list[np.ndarray]:
    words = [white_space(segment.text(place)) for segment in SEGMENTS]
    scorer = explainer.inside(metric)  # type: ignore[arg-type]
    return [found.importance for found in scorer.word_scores(SEGMENTS, place, words)]


def pieces(explainer: Gradient, metric: TransQuest, place: Place = HYPOTHESIS) -> list[float]:
    """The sum of the contributions of all pieces at a place, segment by segment."""
    inside = metric.inspect(SEGMENTS)
    table = explainer.contributions(inside, inside.readings, place)
    totals = [0.0] * len(SEGMENTS)
    owners = [number for number, reading in enumerate(inside.readings) for _ in reading]
    for owner, own, values in zip(owners, rows_of(inside.readings), table.tolist(), strict=True):
        totals[owner] += sum(sum(values[part.inside]) for part in own.parts if part.place == place)
    return totals


# Gradient x input


def by_hand(metric: TransQuest, number: int, layer: int) -> np.ndarray:
    """x * df/dx of the pieces of a hypothesis, through the modules of the network called one by one, unpadded."""
    inside = metric.inspect(SEGMENTS)
    (own,) = inside.readings[number]
    network, encoder = inside.network, inside.network.base_model
    ids = torch.tensor([own.row.ids])
    types = (torch.arange(ids.shape[1]) >= own.row.first).long()[None]
    state = encoder.embeddings(ids, token_type_ids=types if network.config.model_type == "bert" else None)
    for block in encoder.encoder.layer[:layer]:
        state = first(block(state))
    given = state = state.detach().requires_grad_()
    for block in encoder.encoder.layer[layer:]:
        state = first(block(state))
    score = network.classifier(encoder.pooler(state) if encoder.pooler is not None else state)[0, 0]
    (gradient,) = torch.autograd.grad(score, given)
    return (given * gradient).sum(-1)[0].detach().numpy()


def first(output: object) -> torch.Tensor:
    return output[0] if isinstance(output, tuple) else output  # type: ignore[return-value]


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_gradient_times_input_is_that_of_autograd_by_hand(quest: TransQuest, layer: int) -> None:
    inside = quest.inspect(SEGMENTS)
    table = Gradient(layer=layer).contributions(inside, inside.readings, HYPOTHESIS).numpy()
    for number, own in enumerate(rows_of(inside.readings)):
        expected = by_hand(quest, number, layer)
        np.testing.assert_allclose(table[number, : len(own.row.ids)], expected, rtol=1e-3, atol=1e-7)


def test_words_get_the_sum_of_their_pieces(quest: TransQuest) -> None:
    for place in (HYPOTHESIS, SOURCE):
        words = [values.sum() for values in importance(Gradient(), quest, place)]
        np.testing.assert_allclose(words, pieces(Gradient(), quest, place), atol=1e-6)


def test_importance_is_turned_round_where_lower_is_better(quest: TransQuest) -> None:
    edits = replace(quest, predicts="hter")
    for one, other in zip(importance(Gradient(), quest), importance(Gradient(), edits), strict=True):
        np.testing.assert_array_equal(one, -other)


@pytest.mark.parametrize("explainer", [Gradient(), Gradient("integrated", layer=1)])
def test_the_batch_does_not_matter(quest: TransQuest, explainer: Gradient, monkeypatch: pytest.MonkeyPatch) -> None:
    together = importance(explainer, quest)
    monkeypatch.setitem(pairs.BUDGET, "cpu", 1)
    for one, other in zip(together, importance(explainer, quest), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-7)


def test_looking_at_gradients_changes_no_score_and_leaves_none(quest: TransQuest) -> None:
    before = quest.score(SEGMENTS)
    for method in ("input", "integrated", "deeplift"):
        importance(Gradient(method, gap=1.0), quest)  # type: ignore[arg-type]
    assert quest.score(SEGMENTS).tolist() == before.tolist()
    assert all(parameter.grad is None for parameter in quest.inspect(SEGMENTS).network.parameters())


# Integrated gradients


def hidden_score(metric: TransQuest, piece: int) -> list[float]:
    """The score when every piece of the hypothesis is another one, read off the network itself."""
    inside = metric.inspect(SEGMENTS)
    changed: list[Reading] = []
    for (own,) in inside.readings:
        ids = list(own.row.ids)
        (hypothesis,) = (part for part in own.parts if part.place == HYPOTHESIS)
        ids[hypothesis.inside] = [piece] * len(hypothesis.spans)
        changed.append((own._replace(row=own.row._replace(ids=tuple(ids))),))
    return inside.score(changed).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("place", [HYPOTHESIS, SOURCE])
def test_integrated_gradients_add_up_to_the_score_minus_that_of_zeros(
    quest: TransQuest, layer: int, place: Place
) -> None:
    inside = quest.inspect(SEGMENTS)
    taken: list[torch.Tensor] = []

    def emptied(_module: object, _inputs: object, output: object) -> object:
        state = first(output).clone()
        for number, own in enumerate(rows_of(inside.readings)):
            for part in own.parts:
                if part.place == place:
                    state[number, part.inside] = 0.0
        taken.append(state)
        return (state, *output[1:]) if isinstance(output, tuple) else state

    encoder = inside.network.base_model
    hook = (encoder.encoder.layer[layer - 1] if layer else encoder.embeddings).register_forward_hook(emptied)
    base = inside.score(inside.readings).tolist()
    hook.remove()
    expected = quest.score(SEGMENTS) - np.array(base)
    found = pieces(Gradient("integrated", layer, steps=100), quest, place)
    assert abs(expected).max() > 1e-3
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=1e-3)


def test_integrated_gradients_add_up_to_the_score_minus_that_of_mask_pieces(quest: TransQuest) -> None:
    inside = quest.inspect(SEGMENTS)
    if inside.masking is None:
        told = "transquest: the tokenizer has no mask token; choose baseline='zero' or 'pad'"
        with pytest.raises(SpecError, match=re.escape(told)):
            importance(Gradient("integrated", baseline="mask"), quest)
        return
    found = pieces(Gradient("integrated", steps=100, baseline="mask"), quest)
    expected = quest.score(SEGMENTS) - np.array(hidden_score(quest, inside.masking))
    np.testing.assert_allclose(found, expected, atol=1e-6, rtol=1e-3)


def test_baselines_differ(quest: TransQuest) -> None:
    zero, pad = (importance(Gradient("integrated", baseline=baseline), quest)[0] for baseline in ("zero", "pad"))
    assert abs(zero - pad).max() > 1e-5


def test_texts_that_are_read_apart_are_explained_one_at_a_time(siamese: TransQuest) -> None:
    for place in (HYPOTHESIS, SOURCE):
        found = pieces(Gradient("integrated", 3, steps=200), siamese, place)
        inside = siamese.inspect(SEGMENTS)
        own = [reading[0 if place == SOURCE else 1] for reading in inside.readings]
        expected = []
        for reading, explained in zip(inside.readings, own, strict=True):
            vectors = [inside.network(torch.tensor([each.row.ids]))[0][0].detach() for each in reading]
            means = [vector.mean(0) for vector in vectors]
            k = reading.index(explained)
            whole = torch.cosine_similarity(means[0], means[1], dim=0)
            vectors[k][explained.parts[0].inside] = 0.0
            empty = torch.cosine_similarity(vectors[k].mean(0), means[1 - k], dim=0)
            expected.append(float(whole - empty))
        np.testing.assert_allclose(found, expected, atol=1e-3)


def test_too_few_steps_are_told(quest: TransQuest) -> None:
    told = r"gradient: contributions miss the score by [\d.]+%, more than gap=0\.0; take more than 1 steps, and"
    with pytest.warns(IncompleteWarning, match=told):
        importance(Gradient("integrated", steps=1, gap=0.0), quest)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        importance(Gradient("integrated", steps=1, gap=1.0), quest)


# DeepLIFT


def test_deeplift_through_an_encoder_is_refused_unless_a_gap_is_accepted(quest: TransQuest) -> None:
    told = r"gradient: contributions miss the score by [\d.]+%, more than gap=0\.01: captum's DeepLIFT has no rule for"
    with pytest.raises(SpecError, match=told):
        importance(Gradient("deeplift", gap=0.01), quest)
    assert all(values.any() for values in importance(Gradient("deeplift", gap=1.0), quest))


class Bag(nn.Module):
    """A network of modules for which captum has rules: embeddings, blocks of linear and tanh, a mean."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        made = torch.Generator().manual_seed(5)
        self.embeddings = nn.Embedding(30, width)
        blocks = [nn.Sequential(nn.Linear(width, width), nn.Tanh()) for _ in range(2)]
        self.encoder = nn.Module()
        self.encoder.layer = nn.ModuleList(blocks)
        self.head = nn.Linear(width, 1)
        for parameter in self.parameters():
            nn.init.normal_(parameter, generator=made)
        self.config = SimpleNamespace()

    def forward(self, ids: torch.Tensor, upto: int, blocks: int) -> torch.Tensor:
        states = [self.embeddings(ids)]
        for block in self.encoder.layer[:blocks]:
            states.append(block(states[-1]))
        return self.head(states[upto]).sum((1, 2))


@dataclass(frozen=True)
class Bags:
    """A metric over that network; every word is one piece."""

    upto: int = 2
    blocks: int = 2
    network: Bag = field(default_factory=Bag)
    inputs: ClassVar[Inputs] = Inputs.HYPOTHESIS
    higher_is_better: ClassVar[bool] = True

    def signature(self) -> Signature:
        return Signature("bags")

    def score(self, segments: Sequence[Segment]) -> np.ndarray:
        inside = self.inspect(segments)
        return inside.score(inside.readings).detach().double().numpy()

    def inspect(self, segments: Sequence[Segment]) -> Inside:
        readings = tuple((self._line(segment.hypothesis),) for segment in segments)

        def score(asked: Sequence[Reading]) -> torch.Tensor:
            ids = [list(each.row.ids) for each in rows_of(asked)]
            longest = max(map(len, ids))
            # The score of padding is that of its vectors, as the network does not mask.
            return self.network(
                torch.tensor([row + [29] * (longest - len(row)) for row in ids]), self.upto, self.blocks
            )

        return Inside("bags", self.network, readings, score, "cpu", 29)

    @staticmethod
    def _line(text: str) -> object:
        words = white_space(text)
        coded = Coded(tuple(len(word) for word in words), words.spans, tuple(words))
        return line(Frame((0,), (), (0,)), [Shown(HYPOTHESIS, coded, len(words))])


def test_deeplift_adds_up_where_captum_has_rules_for_all_modules() -> None:
    metric = Bags()
    for layer in (0, 1, 2):
        found = importance(Gradient("deeplift", layer, gap=1e-4), metric)
        integrated = importance(Gradient("integrated", layer, steps=200, gap=1e-4), metric)
        for one, other in zip(found, integrated, strict=True):
            assert one.sum() == pytest.approx(other.sum(), rel=1e-3, abs=1e-4)


def test_deeplift_follows_the_rescale_rule() -> None:
    metric = Bags(upto=1)
    network = metric.network
    (linear, _), head = network.encoder.layer[0], network.head
    network.requires_grad_(requires_grad=False)
    found = importance(Gradient("deeplift"), metric)[1]
    for word, value in zip(("A", "dog"), found, strict=True):
        state = network.embeddings.weight[len(word)]
        inner, base = linear(state), linear(torch.zeros(4))
        multipliers = (inner.tanh() - base.tanh()) / (inner - base)
        expected = (head.weight[0] * multipliers) @ linear.weight @ state
        assert value == pytest.approx(float(expected), rel=1e-4)


# Attention times the gradient at the values


def steered_by_hand(metric: TransQuest, number: int, layer: int) -> np.ndarray:
    """Mean over heads of attention x |df/dv| of all pieces of a row, from transformers' own attention, unpadded."""
    inside = metric.inspect(SEGMENTS)
    (own,) = inside.readings[number]
    network = type(inside.network).from_pretrained(metric.model, attn_implementation="eager").eval()
    ids = torch.tensor([own.row.ids])
    types = {"token_type_ids": (torch.arange(ids.shape[1]) >= own.row.first).long()[None]}
    held: list[torch.Tensor] = []

    def keep(_module: object, _inputs: object, output: torch.Tensor) -> None:
        output.retain_grad()
        held.append(output)

    network.base_model.encoder.layer[layer - 1].attention.self.value.register_forward_hook(keep)
    found = network(ids, output_attentions=True, **(types if network.config.model_type == "bert" else {}))
    found.logits[0, 0].backward()
    assert held[0].grad is not None
    slope = held[0].grad[0].numpy()
    attention = found.attentions[layer - 1][0].detach().numpy()
    heads, width = len(attention), slope.shape[1] // len(attention)
    relevance = np.zeros(len(slope))
    for head in range(heads):
        for j in range(len(slope)):
            length = np.sqrt((slope[j, head * width : (head + 1) * width] ** 2).sum())
            relevance[j] += attention[head, :, j].mean() * length / heads
    return relevance


def told_words(metric: TransQuest, number: int, pieces: np.ndarray) -> list[float]:
    (own,) = metric.inspect(SEGMENTS).readings[number]
    (part,) = (part for part in own.parts if part.place == HYPOTHESIS)
    text, totals = SEGMENTS[number].hypothesis, []
    for start, end in white_space(text).spans:
        inner = [k for k, (a, b) in enumerate(part.spans) if a < end and b > start and text[a:b].strip()]
        totals.append(sum(float(pieces[part.inside][k]) for k in inner))
    return totals


def test_values_are_minus_attention_times_the_length_of_the_gradient_by_hand(quest: TransQuest) -> None:
    tables = [[steered_by_hand(quest, number, layer) for layer in (1, 2, 3)] for number in range(len(SEGMENTS))]
    single, mean = importance(Gradient("values", layer=2), quest), importance(Gradient("values"), quest)
    for number, own in enumerate(tables):
        assert own[1].max() > 0
        np.testing.assert_allclose(single[number], -np.array(told_words(quest, number, own[1])), rtol=1e-3)
        whole = np.array(told_words(quest, number, np.mean(own, axis=0)))
        np.testing.assert_allclose(mean[number], -whole, rtol=1e-3)


def test_values_have_no_direction(quest: TransQuest) -> None:
    edits = replace(quest, predicts="hter")
    found = importance(Gradient("values"), quest), importance(Gradient("values"), edits)
    for one, other in zip(*found, strict=True):
        assert (one < 0).all()
        np.testing.assert_array_equal(one, other)


def test_values_leave_the_network_as_it_was_and_need_no_captum(
    quest: TransQuest, siamese: TransQuest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "captum.attr", None)
    before = quest.score(SEGMENTS)
    together = importance(Gradient("values"), quest)
    assert quest.score(SEGMENTS).tolist() == before.tolist()
    assert all(parameter.grad is None for parameter in quest.inspect(SEGMENTS).network.parameters())
    assert all((values < 0).all() for values in importance(Gradient("values"), siamese, SOURCE))
    monkeypatch.setitem(pairs.BUDGET, "cpu", 1)
    for one, other in zip(together, importance(Gradient("values"), quest), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3)


def test_values_of_blocks_that_are_not_there_are_refused(quest: TransQuest) -> None:
    told = "gradient: layer is 4, but the network has 3 blocks; use 1 to 3 or 0"
    with pytest.raises(SpecError, match=re.escape(told)):
        importance(Gradient("values", layer=4), quest)
    with pytest.raises(SpecError, match=re.escape("bags: Bag cannot be looked into, its blocks have no attention")):
        importance(Gradient("values"), Bags())


# Errors


@pytest.mark.parametrize("metric", [Bags(upto=1), Bags(upto=1, blocks=1)])
def test_a_layer_the_score_does_not_read_is_refused(metric: Bags) -> None:
    with pytest.raises(SpecError, match=re.escape("bags: the score does not depend on layer 2; choose a lower one")):
        importance(Gradient(layer=2), metric)


def test_a_layer_at_which_all_is_in_the_first_piece_is_refused(quest: TransQuest) -> None:
    told = "gradient: the score does not depend on the pieces of the hypothesis at layer 3"
    with pytest.raises(SpecError, match=re.escape(told)):
        importance(Gradient("integrated", layer=3), quest)


def test_an_empty_text_has_no_words_to_explain(quest: TransQuest) -> None:
    scorer = Gradient("integrated").inside(quest)
    (found,) = scorer.word_scores([Segment("", "Die Katze")], HYPOTHESIS, [white_space("")])
    assert found.importance.shape == (0,)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            {"method": "smooth"},
            "Gradient: method is 'smooth', expected 'input' or 'integrated' or 'deeplift' or 'values'",
        ),
        ({"layer": -1}, "gradient: layer is -1, expected 0 or more"),
        ({"steps": 0}, "gradient: steps is 0, expected 1 or more"),
        ({"gap": -0.1}, "gradient: gap is -0.1, expected 0.0 or more"),
        ({"baseline": "mean"}, "Gradient: baseline is 'mean', expected 'zero' or 'mask' or 'pad'"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, object], told: str) -> None:
    with pytest.raises(SpecError, match=re.escape(told)):
        Gradient(**options)  # type: ignore[arg-type]


def test_a_metric_without_a_network_is_refused() -> None:
    with pytest.raises(SpecError, match=re.escape("token_f1 cannot be looked into: gradient needs a metric with")):
        Gradient().inside(TokenF1())


def test_captum_is_asked_for_by_its_extra(quest: TransQuest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "captum.attr", None)
    told = "gradient needs extra packages: pip install 'whyscore[neural]'"
    with pytest.raises(MissingExtra, match=re.escape(told)):
        importance(Gradient(), quest)


def test_it_is_an_explainer_that_looks_inside_and_plans_no_probe(quest: TransQuest) -> None:
    assert isinstance(Gradient(), LooksInside)
    assert not isinstance(Gradient(), Explainer | WordScorer)
    assert isinstance(Gradient().inside(quest), WordScorer)
