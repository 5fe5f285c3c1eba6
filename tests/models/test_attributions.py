"""Metrics that open themselves: the rows they read, scores as functions of states, and pieces back to words."""

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import tiny_models
from whyscore.errors import DataError, SpecError
from whyscore.metrics.learned.comet.metric import Comet
from whyscore.metrics.learned.transquest import TransQuest
from whyscore.metrics.lexical.token_f1 import TokenF1
from whyscore.models.attribution import (
    Inside,
    Inspectable,
    Line,
    Part,
    PieceScorer,
    Shown,
    at_place,
    beside,
    line,
    measure_attention,
    modules_of,
    real,
    require_inspectable,
    rows_of,
    score_from,
    states,
    where,
)
from whyscore.models.pairs import Coded, Frame, Row, TruncatedTextWarning
from whyscore.text.splitters import white_space
from whyscore.types import HYPOTHESIS, SOURCE, Place, Segment, Side, Words

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("one_thread")
pytest.importorskip("transformers")
from torch import nn  # noqa: E402

SEGMENTS = [
    Segment("The cat sat on the mat.", "Die Katze saß auf der Matte.", ("A cat sat on the mat.",)),
    Segment("  The old table, didn't it?  ", "Kass istus matil", ("The table", "", "it sat on the mat. The cat")),
    Segment("", "Die Katze", ("The cat",)),
]
REFERENCE = Place(Side.REFERENCE, 0)
FRAME = Frame((0,), (2, 2), (2,))


def checkpoint(folder: Path, parts: int, classes: int = 0, **hparams: object) -> Comet:
    """A random COMET checkpoint, as its trainer writes it."""
    tokenizer = tiny_models.tokenizer("xlm-roberta")
    network = tiny_models.network("XLMRobertaModel", len(tokenizer))
    made = torch.Generator().manual_seed(3)
    weights = {
        f"encoder.model.{key}": value for key, value in network.state_dict().items() if not key.startswith("pooler")
    }
    if "layer" not in hparams:
        weights["layerwise_attention.gamma"] = torch.tensor([1.3])
        weights |= {f"layerwise_attention.scalar_parameters.{k}": torch.randn(1, generator=made) for k in range(4)}
    for number, (inner, outer) in enumerate(pairwise([32 * parts, 12, 1])):
        weights[f"estimator.ff.{3 * number}.weight"] = torch.randn(outer, inner, generator=made) / inner**0.5
        weights[f"estimator.ff.{3 * number}.bias"] = torch.randn(outer, generator=made)
    if classes:
        weights["hidden2tag.weight"] = torch.randn(classes, 32, generator=made)
        weights["hidden2tag.bias"] = torch.randn(classes, generator=made)
    settings = {
        "class_identifier": "regression_metric",
        "pretrained_model": "nobody/base",
        "hidden_sizes": [12],
        "pool": "avg",
        "layer_norm": False,
        "layer_transformation": "softmax",
    } | hparams
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "hparams.yaml").write_text(json.dumps(settings), "utf-8")  # JSON is YAML
    torch.save({"state_dict": weights}, folder / "checkpoints" / "model.ckpt")
    network.config.save_pretrained(folder / "encoder")
    tokenizer.save_pretrained(folder / "encoder")
    return Comet(str(folder), device="cpu")


KIWI = {"class_identifier": "unified_metric", "input_segments": ["mt", "src"], "word_level_training": False}
UNITE = KIWI | {"input_segments": ["mt", "src", "ref"]}
PLAIN = KIWI | {"input_segments": ["mt", "ref"]}


@pytest.fixture(scope="module")
def quest(tmp_path_factory: pytest.TempPathFactory) -> TransQuest:
    folder = tmp_path_factory.mktemp("quest")
    tiny_models.save(folder, "xlm-roberta", "XLMRobertaForSequenceClassification", num_labels=1)
    return TransQuest(str(folder), device="cpu")


# Rows


def coded(number: int, first: int = 10) -> Coded:
    spans = tuple((k, k + 1) for k in range(number))
    return Coded(tuple(range(first, first + number)), spans, tuple(f"p{k}" for k in range(number)))


def test_a_joined_row_knows_where_its_texts_are() -> None:
    found = line(FRAME, [Shown(HYPOTHESIS, coded(2), 2), Shown(SOURCE, coded(1, 20), 1)])
    assert found.row.ids == (0, 10, 11, 2, 2, 20, 2)
    assert [found.row.ids[part.inside] for part in found.parts] == [(10, 11), (20,)]


def test_a_row_that_is_cut_at_its_end_takes_pieces_from_the_last_text_first() -> None:
    texts = [Shown(HYPOTHESIS, coded(2), 2), Shown(SOURCE, coded(3, 20), 3)]
    assert [len(part.spans) for part in line(FRAME, texts, 7).parts] == [2, 2]
    assert [len(part.spans) for part in line(FRAME, texts, 4).parts] == [2, 0]
    assert [part.total for part in line(FRAME, texts, 4).parts] == [2, 3]


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=3),
    st.integers(1, 20),
)
def test_every_part_holds_the_first_pieces_of_its_text(sizes: list[tuple[int, int]], limit: int) -> None:
    texts = [Shown(HYPOTHESIS, coded(size, 10 * k + 10), kept) for k, (size, kept) in enumerate(sizes)]
    found = line(FRAME, texts, limit)
    assert len(found.row.ids) <= limit
    for text, part in zip(texts, found.parts, strict=True):
        assert found.row.ids[part.inside] == text.coded.ids[: len(part.spans)]
        assert part.spans == text.coded.spans[: len(part.spans)]
        assert len(part.spans) <= text.kept
    read = [piece for text in texts for piece in text.coded.ids if piece in found.row.ids]
    assert len(read) == sum(len(part.spans) for part in found.parts)


def row(*parts: Part, length: int = 4) -> Line:
    return Line(Row(tuple(range(length)), length), parts)


def part(place: Place, start: int, number: int, total: int | None = None) -> Part:
    spans, pieces = coded(number)[1:]
    return Part(place, start, spans, pieces, number if total is None else total)


def test_numbers_of_a_text_that_stands_in_two_rows_are_added_or_averaged() -> None:
    reading = (row(part(HYPOTHESIS, 1, 2)), row(part(SOURCE, 0, 1), part(HYPOTHESIS, 2, 1, 2)))
    values = [np.array([9.0, 1.0, 2.0, 9.0]), np.array([9.0, 9.0, 5.0, 9.0])]
    assert at_place(reading, HYPOTHESIS, values, "sum").values.tolist() == [6.0, 2.0]
    assert at_place(reading, HYPOTHESIS, values, "mean").values.tolist() == [3.0, 2.0]
    assert at_place(reading, REFERENCE, values, "sum").values.tolist() == []


def test_marks_name_the_pieces_of_a_text_those_of_the_others_and_padding() -> None:
    lines = [row(part(HYPOTHESIS, 1, 1), part(SOURCE, 3, 1), length=5), row(part(SOURCE, 1, 1), length=3)]
    assert where(lines, HYPOTHESIS, "cpu").int().tolist() == [[0, 1, 0, 0, 0], [0, 0, 0, 0, 0]]
    assert beside(lines, HYPOTHESIS, "cpu").int().tolist() == [[0, 0, 0, 1, 0], [0, 1, 0, 0, 0]]
    assert real(lines, "cpu").int().tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]


# Pieces to words


class Said:
    """A metric whose only reading is given."""

    def __init__(self, own: Part) -> None:
        self.own = own

    def inspect(self, segments: Sequence[Segment]) -> Inside:
        readings = tuple((row(self.own, length=9),) for _ in segments)
        return Inside("said", nn.Module(), readings, lambda asked: torch.zeros(len(asked)), "cpu", 0)


def words_of(own: Part, text: str | Words, **options: object) -> tuple[np.ndarray, tuple[str, ...] | None]:
    words = white_space(text) if isinstance(text, str) else text
    asked = {"combine": "sum", "pool": "sum", "fill": "error", "what": "number"} | options
    scorer = PieceScorer(Said(own), lambda inside, _: [[np.arange(9.0)] for _ in inside.readings], **asked)  # type: ignore[arg-type]
    (found,) = scorer.word_scores([Segment(words.text)], HYPOTHESIS, [words])
    return found


def test_pieces_are_added_up_to_words_with_their_numbers_as_notes() -> None:
    own = Part(HYPOTHESIS, 1, ((0, 1), (1, 2), (3, 4)), ("a", "b", "c"), 3)
    values, notes, _ = words_of(own, "ab c")
    assert values.tolist() == [3.0, 3.0]
    assert notes == ("number: a 1, b 2", "number: c 3")
    assert words_of(own, "ab c", pool="mean")[0].tolist() == [1.5, 3.0]


def test_a_piece_over_a_word_border_is_split_by_characters_so_that_sums_stay_exact() -> None:
    own = Part(HYPOTHESIS, 6, ((0, 3),), ("abc",), 1)
    assert words_of(own, Words("abc", ((0, 1), (1, 3))))[0].tolist() == [2.0, 4.0]
    assert words_of(own, Words("abc", ((0, 1), (1, 3))), pool="mean")[0].tolist() == [6.0, 6.0]


def test_words_that_were_not_read_have_no_number_and_say_so() -> None:
    own = Part(HYPOTHESIS, 1, ((0, 2),), ("ab",), 2)
    values, notes, _ = words_of(own, "ab c")
    assert values[0] == 1.0
    assert np.isnan(values[1])
    assert notes == ("number: ab 1", "truncated")


def test_a_word_without_a_piece_is_refused_or_filled_as_asked() -> None:
    own = Part(HYPOTHESIS, 1, ((0, 2),), ("ab",), 1)
    told = "1 word(s) of 'ab c' have no piece, first 'c'; choose fill='previous', 'next', 'median' or 'null'"
    with pytest.raises(DataError, match=re.escape(told)):
        words_of(own, "ab c")
    values, notes, _ = words_of(own, "ab c", fill="previous")
    assert values.tolist() == [1.0, 1.0]
    assert notes == ("number: ab 1", "no_piece, filled")
    assert np.isnan(words_of(own, "ab c", fill="null")[0][1])


# Metrics


def agrees(metric: Comet | TransQuest, expected: np.ndarray | None = None) -> Inside:
    assert isinstance(metric, Inspectable)
    inside = metric.inspect(SEGMENTS)
    found = inside.score(inside.readings)
    assert found.requires_grad
    wanted = metric.score(SEGMENTS) if expected is None else expected
    np.testing.assert_allclose(found.detach().numpy(), wanted, atol=1e-5, rtol=0)
    return inside


def test_comet_opens_to_its_own_score_with_one_row_per_text(tmp_path: Path) -> None:
    metric = checkpoint(tmp_path / "c", 6)
    inside = agrees(metric)
    assert [len(reading) for reading in inside.readings] == [3, 4, 3]
    # The empty second reference is not read, so that places go on with the third.
    places = [part.place for line in inside.readings[1] for part in line.parts]
    assert places == [HYPOTHESIS, SOURCE, Place(Side.REFERENCE, 0), Place(Side.REFERENCE, 2)]


def test_comet_opens_to_the_score_of_the_best_reference_where_that_counts(tmp_path: Path) -> None:
    metric = checkpoint(tmp_path / "c", 6)
    agrees(Comet(metric.model, device="cpu", references="max"))


@pytest.mark.parametrize(
    ("parts", "hparams", "rows"),
    [
        (4, {"class_identifier": "referenceless_regression_metric", "layer_norm": True}, [2, 2, 2]),
        (4, {"class_identifier": "referenceless_regression_metric", "layer": 2, "pool": "max"}, [2, 2, 2]),
        (1, KIWI, [1, 1, 1]),
        (1, PLAIN, [1, 2, 1]),
        (1, UNITE, [3, 6, 3]),
    ],
)
def test_the_other_kinds_of_comet_open_to_their_own_score(
    tmp_path: Path, parts: int, hparams: dict[str, object], rows: list[int]
) -> None:
    inside = agrees(checkpoint(tmp_path / "c", parts, **hparams))
    assert [len(reading) for reading in inside.readings] == rows


def test_xcomet_opens_to_the_part_of_its_score_that_comes_from_regression(tmp_path: Path) -> None:
    metric = checkpoint(tmp_path / "x", 1, 4, class_identifier="xcomet_metric", word_layer=3)
    inside = metric.inspect(SEGMENTS[:1])
    (h, s, r) = (SEGMENTS[0].hypothesis, SEGMENTS[0].source, SEGMENTS[0].references[0])
    one = checkpoint(tmp_path / "k", 1, **KIWI)
    two = checkpoint(tmp_path / "p", 1, **PLAIN)
    apart = [one.score([Segment(h, s)])[0], two.score([Segment(h, None, (r,))])[0]]
    unite = checkpoint(tmp_path / "u", 1, **UNITE).statistics(SEGMENTS[:1])[0]
    np.testing.assert_allclose(unite[:2], apart, atol=1e-5)
    found = float(inside.score(inside.readings).detach()[0])
    assert found == pytest.approx(np.dot([0.12, 0.33, 0.33], unite), abs=1e-5)


def test_transquest_opens_to_its_own_score(quest: TransQuest, tmp_path: Path) -> None:
    inside = agrees(quest)
    assert [part.place for part in inside.readings[0][0].parts] == [SOURCE, HYPOTHESIS]
    tiny_models.save(tmp_path, "xlm-roberta", "XLMRobertaModel")
    agrees(TransQuest(str(tmp_path), "siamese", device="cpu"))


def test_parts_point_at_the_pieces_of_their_text(quest: TransQuest) -> None:
    inside = quest.inspect(SEGMENTS)
    for segment, reading in zip(SEGMENTS, inside.readings, strict=True):
        for own in reading[0].parts:
            text = segment.text(own.place)
            letters = "".join(text[start:end] for start, end in own.spans)
            assert "".join(letters.split()) == "".join(text.split())
            assert not {0, 1, 2} & set(reading[0].row.ids[own.inside])


def test_a_micro_model_is_sent_to_its_own_tags() -> None:
    told = "transquest(kind='micro') tags words itself; explain it with intrinsic"
    with pytest.raises(SpecError, match=re.escape(told)):
        TransQuest("nowhere", "micro").inspect(SEGMENTS)


def test_cut_texts_are_told_and_counted_in_their_parts(quest: TransQuest) -> None:
    long = Segment("The cat sat on the mat. " * 40, "Die Katze")
    with pytest.warns(TruncatedTextWarning, match="1 of 2 inputs are longer than the 128 pieces"):
        inside = TransQuest(quest.model, device="cpu", fill="null").inspect([long])
    hypothesis = inside.readings[0][0].parts[1]
    assert len(hypothesis.spans) < hypothesis.total
    assert len(inside.readings[0][0].row.ids) == 128


def test_a_metric_without_a_network_is_refused_with_what_works_instead() -> None:
    told = (
        "token_f1 cannot be looked into: gradient needs a metric with a network of its own, such as comet or "
        "transquest. Explain it with erasure, lime or shap"
    )
    with pytest.raises(SpecError, match=re.escape(told)):
        require_inspectable(TokenF1(), "gradient")


# Networks


def test_states_are_those_that_transformers_reports(quest: TransQuest) -> None:
    inside = quest.inspect(SEGMENTS[:1])
    ids = torch.tensor([inside.readings[0][0].row.ids])
    expected = inside.network(ids, output_hidden_states=True).hidden_states
    for layer, state in enumerate(expected):
        torch.testing.assert_close(states(inside, inside.readings, layer), state.detach())


@pytest.mark.parametrize("layer", [0, 1, 3])
def test_the_own_state_put_back_gives_the_own_score_also_several_times(tmp_path: Path, layer: int) -> None:
    metric = checkpoint(tmp_path / "c", 6)
    inside = metric.inspect(SEGMENTS[:2])
    own = states(inside, inside.readings, layer)
    whole = inside.score(inside.readings)
    torch.testing.assert_close(score_from(inside, inside.readings, layer, own), whole)
    twice = score_from(inside, inside.readings, layer, torch.cat([own, own * 0.5]))
    torch.testing.assert_close(twice[:2], whole)
    assert (twice[2:] - whole).abs().min() > 1e-5


def test_no_hook_stays_behind(quest: TransQuest) -> None:
    inside = quest.inspect(SEGMENTS[:1])
    before = [len(module._forward_hooks) for module in inside.network.modules()]
    own = states(inside, inside.readings, 1)
    score_from(inside, inside.readings, 1, own)
    measure_attention(inside, inside.readings, [1], real(rows_of(inside.readings), "cpu"), norm=True, across=False)
    with pytest.raises(RuntimeError):
        score_from(inside, inside.readings, 1, own[:, :, :5])
    assert [len(module._forward_hooks) for module in inside.network.modules()] == before


def test_a_layer_the_network_does_not_have_is_refused(quest: TransQuest) -> None:
    told = "transquest: layer is 4, expected 0 (the embeddings) to 3 (the last block)"
    with pytest.raises(SpecError, match=re.escape(told)):
        modules_of(quest.inspect(SEGMENTS[:1]), 4)


def strange(network: object) -> Inside:
    return Inside("strange", network, (), lambda _: torch.zeros(0), "cpu", 0)  # type: ignore[arg-type]


def test_networks_of_another_build_are_refused() -> None:
    gpt2 = tiny_models.network("GPT2Model", 30)
    told = "strange: GPT2Model cannot be looked into, its encoder is not built of embeddings and blocks as BERT's is"
    with pytest.raises(SpecError, match=re.escape(told)):
        modules_of(strange(gpt2), 1)


@pytest.mark.parametrize(
    ("attention", "config", "told"),
    [
        (SimpleNamespace(self=None), {}, "its blocks have no attention with query, key and value"),
        (None, {"position_embedding_type": "relative_key"}, "its attention depends on more than queries and keys"),
        (None, {"is_decoder": True}, "its attention depends on more than queries and keys"),
    ],
)
def test_attention_of_another_build_is_refused(attention: object, config: dict[str, object], told: str) -> None:
    linear = nn.Linear(2, 2)
    own = SimpleNamespace(query=linear, key=linear, value=linear, num_attention_heads=1)
    usual = SimpleNamespace(self=own, output=SimpleNamespace(dense=linear))
    block = SimpleNamespace(attention=attention or usual)
    network = SimpleNamespace(
        config=SimpleNamespace(**config), embeddings=linear, encoder=SimpleNamespace(layer=[block])
    )
    reading = (row(part(HYPOTHESIS, 1, 1)),)
    with pytest.raises(SpecError, match=re.escape(told)):
        measure_attention(strange(network), [reading], [1], torch.ones(1, 4, dtype=torch.bool), norm=True, across=False)
