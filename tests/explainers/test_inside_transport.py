"""BARTScore, MoverScore and XMoverScore, looked into: the same score as a function of states, slopes, attention."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from support import tiny_models
from whyscore.analysis.boost import boost
from whyscore.analysis.explain import explain
from whyscore.errors import SpecError
from whyscore.metrics.learned.bartscore import BartScore
from whyscore.metrics.matching.moverscore import MoverScore, XMoverScore
from whyscore.models.attribution import Inspectable, beside, measure_attention, rows_of, score_from, states
from whyscore.protocols import Metric
from whyscore.types import SOURCE, Segment

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("captum")

SEGMENTS = [
    Segment("The cat sat on the mat.", "Die Katze", ("A cat sat on a mat.", "The old table stood there.")),
    Segment("A dog", "Ein Hund schlief", ("The dog slept under the old table.",)),
]
ARROWS = ["source->hypothesis", "reference->hypothesis", "hypothesis->reference", "f"]
Make = Callable[[Path], Metric]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("networks")
    tiny_models.save(place / "bart", "bart", "BartForConditionalGeneration")
    tiny_models.save(place / "xlmr", "xlm-roberta", "XLMRobertaModel")
    tiny_models.save(place / "distilbert", "bert", "DistilBertModel")
    return place


def bart(**options: object) -> Make:
    return lambda folder: BartScore(str(folder / "bart"), device="cpu", **options)  # type: ignore[arg-type]


def mover(name: str = "distilbert", **options: object) -> Make:
    return lambda folder: MoverScore(str(folder / name), device="cpu", **options)  # type: ignore[arg-type]


def xmover(**options: object) -> Make:
    return lambda folder: XMoverScore(str(folder / "xlmr"), device="cpu", **options)  # type: ignore[arg-type]


METRICS = [
    *(bart(direction=arrow) for arrow in ARROWS),
    bart(direction="f", references="max", count="words"),
    mover(idf="uniform"),
    mover(idf="uniform", version="v1", layers=2, references="max"),
    mover("xlmr", idf="uniform", ngram=2, tokens="words", mode="paper"),
    xmover(),
    xmover(version="v2", layer=2),
    xmover(layer=1, specials="weightless"),
]


def opened(make: Make, folder: Path) -> tuple[Metric, Inspectable]:
    metric = make(folder)
    assert isinstance(metric, Inspectable)
    return metric, metric


@pytest.mark.parametrize("make", METRICS)
def test_the_score_of_the_states_is_the_score(folder: Path, make: Make) -> None:
    texts = [*SEGMENTS, Segment("", "Die Katze", ("a cat",)), Segment("A cat sat.", "A cat sat.", ("A cat sat.",))]
    metric, own = opened(make, folder)
    inside = own.inspect(texts)
    with torch.no_grad():
        found = inside.score(inside.readings).numpy()
    assert found == pytest.approx(metric.score(texts), abs=2e-5)


@pytest.mark.parametrize("make", METRICS)
@pytest.mark.parametrize("layer", [0, 1])
def test_the_gradient_is_that_of_finite_differences(folder: Path, make: Make, layer: int) -> None:
    inside = opened(make, folder)[1].inspect(SEGMENTS[1:])
    state = states(inside, inside.readings, layer).requires_grad_()
    score_from(inside, inside.readings, layer, state).sum().backward()
    gradient = state.grad
    assert gradient is not None
    assert gradient.norm() > 0
    direction = gradient / gradient.norm()
    with torch.no_grad():
        step = 1e-2
        ends = [score_from(inside, inside.readings, layer, state + sign * step * direction).item() for sign in (1, -1)]
    assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(float(gradient.norm()), rel=0.05)


@pytest.mark.parametrize("make", [METRICS[0], METRICS[3], METRICS[5], METRICS[8]])
@pytest.mark.parametrize(
    "explainer", ["attention", "gradient", "gradient(method='integrated')", "gradient(method='values')"]
)
def test_attention_and_gradients_explain_and_boost(folder: Path, make: Make, explainer: str) -> None:
    metric, _ = opened(make, folder)
    found = explain(SEGMENTS, metric, explainer, sides=["hypothesis"])
    assert [len(one.importance) for one in found] == [6, 2]
    for one in found:
        assert np.isfinite(one.importance).all()
        assert np.abs(one.importance).max() > 0
    assert np.isfinite(boost(SEGMENTS, metric, explainer, p=1.0, w=0.5).scores.values).all()


def test_attention_is_what_bart_itself_computes(folder: Path) -> None:
    metric = BartScore(str(folder / "bart"), device="cpu")
    inside = metric.inspect(SEGMENTS[:1])
    read, target = inside.readings[0]
    network = inside.network
    network.set_attn_implementation("eager")
    answer = network(
        input_ids=torch.tensor([read.row.ids]), decoder_input_ids=torch.tensor([target.row.ids]), output_attentions=True
    )
    lines = rows_of(inside.readings)
    length = max(len(line.row.ids) for line in lines)
    everybody = torch.tensor([[k < len(line.row.ids) for k in range(length)] for line in lines])
    table = measure_attention(inside, inside.readings, [1, 2], everybody, norm=False, across=False)
    for block in range(2):
        for row, wanted in ((0, answer.encoder_attentions), (1, answer.decoder_attentions)):
            size = len(lines[row].row.ids)
            torch.testing.assert_close(table[row, block, :, :size], wanted[block][0].mean(1).detach())
    across = measure_attention(inside, inside.readings, [2], beside(lines, SOURCE, "cpu"), norm=False, across=True)
    (part,) = target.parts
    wanted = answer.cross_attentions[1][0][:, part.inside].mean(1).detach()
    torch.testing.assert_close(across[0, 0, :, : len(read.row.ids)], wanted)
    assert torch.isnan(across[1]).all()


def test_attention_across_texts_goes_to_what_the_encoder_read(folder: Path) -> None:
    metric = BartScore(str(folder / "bart"), device="cpu")
    (found,) = explain(SEGMENTS[:1], metric, "attention(cross=True)", sides=["source"])
    assert np.isfinite(found.importance).all()
    told = "no text attends to the hypothesis, which bartscore predicts; leave out cross=True"
    with pytest.raises(SpecError, match=re.escape(told)):
        explain(SEGMENTS, metric, "attention(cross=True)", sides=["hypothesis"])


def test_a_map_is_part_of_the_function(folder: Path) -> None:
    path = folder / "map.BAM"
    with path.open("wb") as file:
        np.save(file, np.random.default_rng(0).normal(size=(32, 32)))
    metric = XMoverScore(str(folder / "xlmr"), device="cpu", map=str(path), remap="clp")
    inside = metric.inspect(SEGMENTS)
    with torch.no_grad():
        assert inside.score(inside.readings).numpy() == pytest.approx(metric.score(SEGMENTS), abs=2e-5)


def test_what_has_no_network_is_refused() -> None:
    with pytest.raises(SpecError, match="has no attention to look into and no gradients"):
        explain(SEGMENTS, MoverScore("embedded", idf="uniform"), "gradient")
