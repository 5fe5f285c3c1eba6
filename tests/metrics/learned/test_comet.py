"""COMET checkpoints: parity with a plain re-statement of the architecture, one sentence at a time, unpadded."""

import json
import os
import re
import shutil
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from support import tiny_models
from support.tiny_models import near
from whyscore.analysis.explain import explain
from whyscore.analysis.score import score
from whyscore.errors import DataError, ExecutionError, MissingExtra, MissingInput, SpecError
from whyscore.metrics.learned.comet import network as comet_model
from whyscore.metrics.learned.comet.checkpoint import KINDS
from whyscore.metrics.learned.comet.metric import Comet, Run, error_spans, mix_classes, quality, runs
from whyscore.models import pairs
from whyscore.models.checkpoints import LicenceWarning
from whyscore.protocols import Metric, RowMetric, WordScorer
from whyscore.registry import list_names, spec_of
from whyscore.testing.checks import check_metric
from whyscore.text.alignment import PieceScores, score_words
from whyscore.text.splitters import white_space
from whyscore.types import HYPOTHESIS, SOURCE, ErrorSpan, Inputs, Segment

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("one_thread")
pytest.importorskip("transformers")
from torch import nn  # noqa: E402

SEGMENTS = [
    Segment("The cat sat on the mat.", "Die Katze saß auf der Matte.", ("A cat sat on the mat.",)),
    Segment("A dog slept", "Ein Hund schlief unter dem alten Tisch.", ("A dog slept under the old table.",)),
    Segment("  The old table, didn't it?  ", "Kass istus matil", ("The table", "it sat on the mat. The cat slept")),
    Segment("", "Die Katze", ("The cat",)),
    Segment("The cat sat on the mat.", "Kass istus matil ja vaatas välja.", ("The dog",)),
]

SIZES = [24, 12]
LIMIT = 64


class Restated(nn.Module):
    """The state dict of a COMET checkpoint, with nothing but the modules that own its names."""

    def __init__(self, parts: int, classes: int = 0, seed: int = 1, name: str = "XLMRobertaModel") -> None:
        super().__init__()
        self.tokenizer = tiny_models.tokenizer("xlm-roberta", limit=LIMIT)
        self.encoder, self.estimator, self.layerwise_attention = nn.Module(), nn.Module(), nn.Module()
        network = tiny_models.network(name, len(self.tokenizer), positions=LIMIT, std=0.15)
        network.pooler = None
        self.encoder.model = network
        states = network.config.num_hidden_layers + 1
        torch.manual_seed(seed)
        self.layerwise_attention.gamma = nn.Parameter(torch.tensor([1.3]))
        self.layerwise_attention.scalar_parameters = nn.ParameterList(
            [nn.Parameter(torch.randn(1)) for _ in range(states)]
        )
        sizes = [parts * 32, *SIZES]
        layers: list[nn.Module] = []
        for inner, outer in pairwise(sizes):
            layers += [nn.Linear(inner, outer), nn.Tanh(), nn.Dropout(0.1)]
        self.estimator.ff = nn.Sequential(*layers, nn.Linear(sizes[-1], 1))
        if classes:
            self.hidden2tag = nn.Linear(32, classes)
        self.eval()

    def states(self, ids: Sequence[int]) -> list[torch.Tensor]:
        out = self.encoder.model(torch.tensor([list(ids)]), output_hidden_states=True)
        return [state[0].detach() for state in out.hidden_states]

    def mix(self, states: list[torch.Tensor], how: str, *, norm: bool) -> torch.Tensor:
        scores = torch.cat(list(self.layerwise_attention.scalar_parameters)).detach()
        weights = bisected(scores.tolist()) if how == "sparsemax" else (scores.exp() / scores.exp().sum()).tolist()
        total = torch.zeros_like(states[0])
        for weight, state in zip(weights, states, strict=True):
            normed = (state - state.mean()) / (state.var(unbiased=False) + 1e-12).sqrt() if norm else state
            total = total + weight * normed
        return self.layerwise_attention.gamma.detach() * total

    def text(self, text: str, how: str, *, norm: bool = False) -> torch.Tensor:
        ids = [0, *self.tokenizer(text.strip(), add_special_tokens=False).input_ids, 2]
        return self.mix(self.states(ids), how, norm=norm).mean(0)

    def regression(self, segment: Segment, reference: str, how: str) -> float:
        h, s, r = (self.text(text, how) for text in (segment.hypothesis, segment.source, reference))
        return self.head(torch.cat([h, r, h * r, abs(h - r), h * s, abs(h - s)]))

    def referenceless(self, segment: Segment, how: str, *, norm: bool) -> float:
        h, s = (self.text(text, how, norm=norm) for text in (segment.hypothesis, segment.source))
        return self.head(torch.cat([h, s, h * s, abs(h - s)]))

    def head(self, features: torch.Tensor) -> float:
        return float(self.estimator.ff(features[None])[0, 0].detach())

    def joined(self, *texts: str, how: str = "softmax", word_layer: int = 3) -> tuple[float, np.ndarray]:
        parts = [self.tokenizer(text.strip(), add_special_tokens=False).input_ids for text in texts]
        ids = [0, *parts[0]]
        for part in parts[1:]:
            ids += [2, 2, *part]
        states = self.states([*ids, 2])
        score = self.head(self.mix(states, how, norm=False)[0])
        if not hasattr(self, "hidden2tag"):
            return score, np.zeros(0)
        logits = self.hidden2tag(states[word_layer])[1 : 1 + len(parts[0])]
        return score, (logits.exp() / logits.exp().sum(-1, keepdim=True)).detach().numpy()


def centred(model: Restated) -> Restated:
    """Move the word head to the middle of what it sees: a random one would give all pieces the same class."""
    ids = [
        [0, *model.tokenizer(f"{one.hypothesis} {one.source}", add_special_tokens=False).input_ids, 2]
        for one in SEGMENTS
    ]
    states = torch.cat([model.states(row)[3] for row in ids])
    with torch.no_grad():
        model.hidden2tag.weight *= 6
        model.hidden2tag.bias.copy_(-(states @ model.hidden2tag.weight.T).mean(0))
    return model


def bisected(scores: list[float]) -> list[float]:
    """Sparsemax by its definition: the threshold at which what is left sums to one."""
    low, high = min(scores) - 1, max(scores)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(max(s - middle, 0) for s in scores) > 1 else (low, middle)
    return [max(s - low, 0) for s in scores]


def write(folder: Path, model: Restated, **hparams: object) -> Path:
    """Write a checkpoint as the trainer does; configuration and tokenizer of the encoder lie in `encoder/`."""
    given = {
        "class_identifier": "regression_metric",
        "encoder_model": "XLM-RoBERTa",
        "pretrained_model": "nobody/base",
        "hidden_sizes": SIZES,
        "activations": "Tanh",
        "final_activation": None,
        "pool": "avg",
        "layer": "mix",
        "layer_norm": False,
        "layer_transformation": "softmax",
    } | hparams
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "hparams.yaml").write_text(json.dumps(given), "utf-8")  # JSON is YAML
    torch.save({"state_dict": model.state_dict(), "epoch": 3}, folder / "checkpoints" / "model.ckpt")
    model.encoder.model.config.save_pretrained(folder / "encoder")
    model.tokenizer.save_pretrained(folder / "encoder")
    return folder


UNIFIED = {"class_identifier": "unified_metric", "sent_layer": "mix", "layer_transformation": "sparsemax_patch"}
KIWI = UNIFIED | {"input_segments": ["mt", "src"], "word_level_training": False, "word_layer": 3}
UNITE = UNIFIED | {
    "input_segments": ["mt", "src", "ref"],
    "word_level_training": True,
    "word_layer": 2,
    "error_labels": ["BAD"],
}
XCOMET = UNIFIED | {"class_identifier": "xcomet_metric", "word_layer": 3}

Made = tuple[Restated, Path]


@pytest.fixture(scope="module")
def regression(tmp_path_factory: pytest.TempPathFactory) -> Made:
    model = Restated(6)
    return model, write(tmp_path_factory.mktemp("comet") / "c", model, layer_transformation="sparsemax")


@pytest.fixture(scope="module")
def kiwi(tmp_path_factory: pytest.TempPathFactory) -> Made:
    model = Restated(1)
    return model, write(tmp_path_factory.mktemp("kiwi") / "k", model, **KIWI)


@pytest.fixture(scope="module")
def unite(tmp_path_factory: pytest.TempPathFactory) -> Made:
    model = Restated(1, classes=2)
    return model, write(tmp_path_factory.mktemp("unite") / "u", model, **UNITE)


@pytest.fixture(scope="module")
def xcomet(tmp_path_factory: pytest.TempPathFactory) -> Made:
    model = centred(Restated(1, classes=4, seed=4))
    return model, write(tmp_path_factory.mktemp("xcomet") / "x", model, **XCOMET)


def comet(folder: Path, **options: object) -> Comet:
    return Comet(str(folder), device="cpu", **options)  # type: ignore[arg-type]


# Parity


def test_comet_22_mixes_by_sparsemax_and_compares_with_reference_and_source(regression: Made) -> None:
    model, folder = regression
    expected = [
        np.mean([model.regression(segment, reference, "sparsemax") for reference in segment.references])
        for segment in SEGMENTS
    ]
    near(comet(folder).score(SEGMENTS), expected)


def test_the_layer_mix_can_be_overridden(regression: Made) -> None:
    model, folder = regression
    found = comet(folder, layer_mix="softmax").score(SEGMENTS[:2])
    near(found, [model.regression(segment, segment.references[0], "softmax") for segment in SEGMENTS[:2]])
    assert abs(found - comet(folder).score(SEGMENTS[:2])).max() > 1e-3


def test_the_referenceless_model_normalises_each_sentence_by_itself(tmp_path: Path) -> None:
    model = Restated(4)
    hparams = {"class_identifier": "referenceless_regression_metric", "layer_norm": True}
    metric = comet(write(tmp_path / "r", model, **hparams))
    assert metric.inputs == Inputs.HYPOTHESIS | Inputs.SOURCE
    near(metric.score(SEGMENTS), [model.referenceless(segment, "softmax", norm=True) for segment in SEGMENTS])


def test_separate_readers_without_a_word_on_layer_norm_use_it_as_their_trainer_did(tmp_path: Path) -> None:
    model = Restated(4)
    folder = write(tmp_path / "r", model, class_identifier="referenceless_regression_metric")
    given = json.loads((folder / "hparams.yaml").read_text())
    del given["layer_norm"], given["layer_transformation"]
    (folder / "hparams.yaml").write_text(json.dumps(given))
    near(comet(folder).score(SEGMENTS[:2]), [model.referenceless(one, "softmax", norm=True) for one in SEGMENTS[:2]])


def test_kiwi_reads_the_first_piece_of_the_joined_texts_and_takes_the_patched_mix_for_softmax(kiwi: Made) -> None:
    model, folder = kiwi
    expected = [model.joined(segment.hypothesis, segment.source)[0] for segment in SEGMENTS]
    near(comet(folder).score(SEGMENTS), expected)


def test_a_plain_sparsemax_in_a_joined_model_is_obeyed_with_a_notice(tmp_path: Path) -> None:
    model = Restated(1)
    folder = write(tmp_path / "k", model, **(KIWI | {"layer_transformation": "sparsemax"}))
    with pytest.warns(UserWarning, match=re.escape("layer_transformation is sparsemax and is applied")):
        found = comet(folder).score(SEGMENTS[:2])
    near(found, [model.joined(one.hypothesis, one.source, how="sparsemax")[0] for one in SEGMENTS[:2]])
    near(
        comet(folder, layer_mix="softmax").score(SEGMENTS[:2]),
        [model.joined(one.hypothesis, one.source)[0] for one in SEGMENTS[:2]],
    )


def three(model: Restated, segment: Segment, reference: str) -> list[tuple[float, np.ndarray]]:
    h, s = segment.hypothesis, segment.source
    return [model.joined(h, s), model.joined(h, reference), model.joined(h, s, reference)]


def test_unite_takes_the_mean_of_three_readings(unite: Made) -> None:
    model, folder = unite
    metric = comet(folder)
    rows = metric.statistics(SEGMENTS)
    expected = [
        np.mean([[score for score, _ in three(model, segment, text)] for text in segment.references], axis=0)
        for segment in SEGMENTS
    ]
    assert metric.columns == ("source", "reference", "unified")
    near(rows, np.array(expected))
    near(metric.score(SEGMENTS), np.mean(expected, axis=1))


def test_unite_can_be_asked_to_leave_the_reference_out(unite: Made) -> None:
    model, folder = unite
    metric = comet(folder, against="source")
    assert metric.inputs == Inputs.HYPOTHESIS | Inputs.SOURCE
    near(metric.score(SEGMENTS), [model.joined(one.hypothesis, one.source)[0] for one in SEGMENTS])


def restated_quality(probabilities: np.ndarray) -> float:
    """The MQM part with the published joining of neighbours, spelt out piece by piece."""
    cost, inside = 0, False
    for row in probabilities:
        label = int(np.argmax(row))
        if label and not inside:
            cost += {1: 1, 2: 5, 3: 10}[label]
        inside = bool(label)
    return (25 - min(25, cost)) / 25


def test_the_tiny_xcomet_can_tell_right_from_wrong_formulas(xcomet: Made) -> None:
    # Guards the parity tests: were all pieces of one class, or the context without effect, they would prove little.
    model, _ = xcomet
    readings = [three(model, segment, segment.references[0]) for segment in SEGMENTS[:3]]
    labels = [(a / 6 + b / 3 + c / 2).argmax(1).tolist() for (_, a), (_, b), (_, c) in readings]
    assert {label for row in labels for label in row} == {0, 1, 2, 3}
    assert any(0 in row and any(row) for row in labels)
    assert min(abs(a - b).max() for (_, a), (_, b), _ in readings) > 0.01
    assert min(abs(first - second) for (first, _), (second, _), _ in readings) > 1e-3


def test_xcomet_gives_the_mixed_probabilities_of_three_readings(xcomet: Made) -> None:
    model, folder = xcomet
    for segment, found in zip(SEGMENTS[:2], comet(folder).piece_classes(SEGMENTS[:2]), strict=True):
        first, second, third = (table for _, table in three(model, segment, segment.references[0]))
        near(found.probabilities, first / 6 + second / 3 + third / 2)


def test_xcomet_weighs_three_clipped_readings_and_the_mqm_part(xcomet: Made) -> None:
    model, folder = xcomet
    expected = []
    for segment in SEGMENTS:
        rows = []
        for reference in segment.references:
            (first, a), (second, b), (third, c) = three(model, segment, reference)
            m = restated_quality(a / 6 + b / 3 + c / 2)
            rows.append(0.12 * min(first, 1) + 0.33 * min(second, 1) + 0.33 * min(third, 1) + 0.22 * m)
        expected.append(np.mean(rows))
    near(comet(folder).score(SEGMENTS), expected)


def test_xcomet_without_reference_weighs_one_reading_and_the_mqm_part(xcomet: Made) -> None:
    model, folder = xcomet
    metric = comet(folder, against="source")
    expected = []
    for segment in SEGMENTS:
        score, classes = model.joined(segment.hypothesis, segment.source)
        expected.append(0.78 * min(score, 1) + 0.22 * restated_quality(classes))
    near(metric.score(SEGMENTS), expected)
    assert metric.columns == ("source", "mqm")


def test_regression_scores_of_xcomet_are_cut_at_one_but_not_at_zero(tmp_path: Path) -> None:
    high, low = Restated(1, classes=4), Restated(1, classes=4)
    with torch.no_grad():
        high.estimator.ff[6].bias += 9
        low.estimator.ff[6].bias -= 9
    rows = comet(write(tmp_path / "high", high, **XCOMET)).statistics(SEGMENTS[:1])
    assert rows[0, :3].tolist() == [1.0, 1.0, 1.0]
    near(
        comet(write(tmp_path / "low", low, **XCOMET)).statistics(SEGMENTS[:1])[:, :3],
        np.array([[score for score, _ in three(low, SEGMENTS[0], SEGMENTS[0].references[0])]]),
    )


def test_the_xl_encoder_ends_in_its_final_norm(tmp_path: Path) -> None:
    model = Restated(1, classes=4, name="XLMRobertaXLModel")
    metric = comet(write(tmp_path / "x", model, **XCOMET), against="source")
    score, classes = model.joined(SEGMENTS[0].hypothesis, SEGMENTS[0].source)
    near(metric.score(SEGMENTS[:1]), [0.78 * min(score, 1) + 0.22 * restated_quality(classes)])


def test_a_single_layer_can_be_read(tmp_path: Path) -> None:
    model = Restated(1)
    del model.layerwise_attention
    folder = write(tmp_path / "k", model, **(KIWI | {"sent_layer": 2}))
    ids = [0, *model.tokenizer("A dog", add_special_tokens=False).input_ids, 2, 2]
    ids += [*model.tokenizer("Ein Hund", add_special_tokens=False).input_ids, 2]
    expected = model.head(model.states(ids)[2][0])
    near(comet(folder).score([Segment("A dog", "Ein Hund")]), [expected])


def test_safetensors_are_read_before_pickled_tensors(regression: Made, tmp_path: Path) -> None:
    from safetensors.torch import save_file

    model, folder = regression
    copy = Path(shutil.copytree(folder, tmp_path / "c"))
    save_file(
        {key: value.contiguous() for key, value in model.state_dict().items()}, copy / "checkpoints/model.safetensors"
    )
    (copy / "checkpoints/model.ckpt").write_text("not read")
    near(comet(copy).score(SEGMENTS), comet(folder).score(SEGMENTS))


# References


def test_the_best_of_several_references_counts_where_asked(regression: Made) -> None:
    model, folder = regression
    segment = SEGMENTS[2]
    expected = max(model.regression(segment, reference, "sparsemax") for reference in segment.references)
    near(comet(folder, references="max").score([segment]), [expected])


def test_an_empty_reference_counts_as_missing_beside_another(regression: Made) -> None:
    _, folder = regression
    one = Segment("A dog", "Ein Hund", ("The dog",))
    two = Segment("A dog", "Ein Hund", ("The dog", " "))
    assert comet(folder).score([one])[0] == pytest.approx(comet(folder).score([two])[0], abs=1e-6)


# Invariance and counts


@pytest.mark.parametrize("name", ["regression", "unite", "xcomet"])
def test_batches_and_order_change_nothing(name: str, request: pytest.FixtureRequest) -> None:
    metric = comet(request.getfixturevalue(name)[1])
    segments = [
        Segment(" ".join(tiny_models.TEXTS[i % 5].split()[: 1 + i % 7]), tiny_models.TEXTS[(i * 3) % 5], (f"The {i}",))
        for i in range(64)
    ]
    whole = metric.score(segments)
    for size in (1, 7, 64):
        parts = [metric.score(segments[start : start + size]) for start in range(0, 64, size)]
        np.testing.assert_allclose(np.concatenate(parts), whole, atol=1e-6, rtol=0)
    order = np.random.default_rng(0).permutation(64)
    np.testing.assert_allclose(metric.score([segments[i] for i in order]), whole[order], atol=1e-6, rtol=0)


@pytest.fixture
def rows_read(monkeypatch: pytest.MonkeyPatch) -> list[pairs.Row]:
    """Every row that goes through an encoder."""
    seen: list[pairs.Row] = []
    original: Callable[..., object] = comet_model.CometModel.read

    def counted(self: comet_model.CometModel, rows: Sequence[pairs.Row]) -> object:
        seen.extend(rows)
        return original(self, rows)

    monkeypatch.setattr(comet_model.CometModel, "read", counted)
    return seen


def test_each_distinct_text_is_encoded_once(tmp_path: Path, rows_read: list[pairs.Row]) -> None:
    comet(write(tmp_path / "c", Restated(6))).score(
        [*SEGMENTS, *SEGMENTS, Segment("The cat", "Die Katze", ("Die Katze",))]
    )
    texts = {text for one in SEGMENTS for text in (one.hypothesis, one.source, *one.references)} | {"The cat"}
    assert len(rows_read) == len(texts)


def test_explaining_the_hypothesis_encodes_source_and_reference_once(tmp_path: Path) -> None:
    metric = comet(write(tmp_path / "c", Restated(6)))
    segments = [Segment("The cat sat", "Die Katze", ("A cat",)), Segment("The old cat sat", "Die Katze", ("A cat",))]
    explain(segments, metric, "erasure", sides=["hypothesis"])
    # Source, reference, two hypotheses, and seven probes of which "The cat sat" is known and "cat sat" is asked once.
    probes = {"cat sat", "The sat", "The cat", "old cat sat", "The cat sat", "The old sat", "The old cat"}
    assert metric._model().vectors.computed == 2 + len({"The cat sat", "The old cat sat"} | probes)


def test_joined_readings_are_computed_once_each(xcomet: Made, rows_read: list[pairs.Row]) -> None:
    # Two references: (h,s) is shared, (h,r) and (h,s,r) are not.
    comet(xcomet[1]).score([SEGMENTS[2], SEGMENTS[2]])
    assert len(rows_read) == 5


def test_small_budgets_make_small_batches_with_the_same_scores(xcomet: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    metric = comet(xcomet[1])
    whole = metric.score(SEGMENTS)
    monkeypatch.setitem(pairs.BUDGET, "cpu", 40)
    np.testing.assert_allclose(metric.score(SEGMENTS), whole, atol=1e-6, rtol=0)


def test_a_batch_that_does_not_fit_is_halved(kiwi: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    metric = comet(kiwi[1])
    whole = metric.score(SEGMENTS)
    original: Callable[..., object] = comet_model.CometModel.read

    def small(self: comet_model.CometModel, rows: Sequence[pairs.Row]) -> object:
        if len(rows) > 1:
            raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB")
        return original(self, rows)

    monkeypatch.setattr(comet_model.CometModel, "read", small)
    with pytest.warns(
        pairs.MemoryWarning, match=r"inputs of \d+ pieces do not fit into memory; going on with [12] at a time"
    ):
        np.testing.assert_allclose(metric.score(SEGMENTS), whole, atol=1e-6, rtol=0)


def test_a_single_text_that_does_not_fit_is_an_error(kiwi: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(comet_model.CometModel, "read", never)
    with pytest.raises(ExecutionError, match=re.escape("pieces does not fit into memory. Use a smaller model")):
        comet(kiwi[1]).score(SEGMENTS[:1])


def test_other_errors_of_the_network_are_not_taken_for_a_lack_of_memory(
    kiwi: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("sizes differ")

    monkeypatch.setattr(comet_model.CometModel, "read", broken)
    with pytest.raises(RuntimeError, match="sizes differ"):
        comet(kiwi[1]).score(SEGMENTS)


# Long texts


def test_a_text_beyond_the_limit_is_cut_and_told_once(tmp_path: Path) -> None:
    model = Restated(6)
    metric = comet(write(tmp_path / "c", model))
    # 64 positions, two of them reserved, two for the special pieces.
    fits, longer = " ".join(["cat"] * 60), " ".join(["cat"] * 61)
    assert len(model.tokenizer(fits, add_special_tokens=False).input_ids) == 60
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = metric.score([Segment(fits, "Katze", ("cat",))])
    told = "comet: 1 of 1 inputs are longer than the 62 pieces the model reads; their ends do not count in the score"
    with pytest.warns(pairs.TruncatedTextWarning, match=re.escape(told)):
        cut = metric.score([Segment(longer, "Katze", ("cat",))])
    assert cut[0] == pytest.approx(kept[0], abs=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metric.score([Segment(f"{longer} cat", "Katze", ("cat",))])
    assert "|trunc:62|" in str(metric.signature())


def test_joined_texts_lose_the_end_of_the_last_one(tmp_path: Path) -> None:
    model = Restated(1)
    metric = comet(write(tmp_path / "k", model, **KIWI))
    hypothesis, source = " ".join(["cat"] * 20), " ".join(["Hund", "cat"] * 30)
    ids = [0, *model.tokenizer(hypothesis, add_special_tokens=False).input_ids, 2, 2]
    ids = [*ids, *model.tokenizer(source, add_special_tokens=False).input_ids, 2][:64]
    expected = model.head(model.mix(model.states(ids), "softmax", norm=False)[0])
    with pytest.warns(pairs.TruncatedTextWarning, match="1 of 1 inputs are longer than the 64 pieces"):
        near(metric.score([Segment(hypothesis, source)]), [expected])


# Word scores and spans


def test_word_scores_are_minus_the_mean_error_probability_of_the_pieces(xcomet: Made) -> None:
    model, folder = xcomet
    segment = SEGMENTS[0]
    first, second, third = (classes for _, classes in three(model, segment, segment.references[0]))
    fine = (first / 6 + second / 3 + third / 2)[:, 0]
    offsets = model.tokenizer(segment.hypothesis, add_special_tokens=False, return_offsets_mapping=True).offset_mapping
    words = white_space(segment.hypothesis)
    (found,) = comet(folder).word_scores([segment], HYPOTHESIS, [words])
    expected = [
        np.mean([p - 1 for p, (start, end) in zip(fine, offsets, strict=True) if start < stop and end > begin])
        for begin, stop in words.spans
    ]
    near(found.importance, expected)
    assert found.notes is not None
    assert found.notes[0].startswith("-p(error): The -0.")


def test_a_two_class_word_head_speaks_for_unite(unite: Made) -> None:
    model, folder = unite
    segment = SEGMENTS[1]
    _, classes = model.joined(segment.hypothesis, segment.source, word_layer=2)
    (found,) = comet(folder, against="source").piece_classes([segment])
    near(found.probabilities, classes)


def test_only_the_hypothesis_has_word_scores(xcomet: Made) -> None:
    with pytest.raises(SpecError, match=re.escape("comet tags the hypothesis; asked for the source")):
        comet(xcomet[1]).word_scores(SEGMENTS[:1], SOURCE, [white_space("Die")])


def test_models_without_a_word_head_say_so(kiwi: Made) -> None:
    with pytest.raises(SpecError, match="has no word head; explain it with erasure, lime or shap"):
        comet(kiwi[1]).word_scores(SEGMENTS[:1], HYPOTHESIS, [white_space(SEGMENTS[0].hypothesis)])
    with pytest.raises(SpecError, match="knows no severities"):
        comet(kiwi[1]).error_spans(SEGMENTS[:1])


def test_words_that_were_not_read_have_no_number_and_say_why(tmp_path: Path) -> None:
    metric = comet(write(tmp_path / "x", Restated(1, classes=4), **XCOMET), against="source")
    text = " ".join(["cat"] * 62)
    with pytest.warns(pairs.TruncatedTextWarning):
        (found,) = metric.word_scores([Segment(text, "Katze")], HYPOTHESIS, [white_space(text)])
    assert np.isnan(found.importance).tolist() == [False] * 60 + [True] * 2
    assert found.notes is not None
    assert found.notes[60:] == ("truncated", "truncated")


def test_a_word_without_a_piece_is_an_error_or_filled_as_asked() -> None:
    words = white_space("The old cat")
    found = PieceScores(((0, 3), (8, 11)), ("The", "cat"), np.array([-0.25, -0.5]), 2)
    told = "1 word(s) of 'The old cat' have no piece, first 'old'; choose fill='previous', 'next', 'median' or 'null'"
    with pytest.raises(DataError, match=re.escape(told)):
        score_words(words, found, "mean", "error", "p")
    filled = score_words(words, found, "mean", "previous", "p")
    assert filled.importance.tolist() == [-0.25, -0.25, -0.5]
    assert filled.notes == ("p: The -0.25", "no_piece, filled", "p: cat -0.5")
    empty = score_words(words, found, "mean", "null", "p")
    assert np.isnan(empty.importance).tolist() == [False, True, False]
    assert empty.notes == ("p: The -0.25", "no_piece", "p: cat -0.5")


def test_a_cut_text_ends_where_its_last_piece_does() -> None:
    words = white_space("The old cat")
    found = PieceScores(((0, 3),), ("The",), np.array([-0.25]), 3)
    cut = score_words(words, found, "mean", "error", "p")
    assert cut.notes == ("p: The -0.25", "truncated", "truncated")
    nothing = score_words(words, PieceScores((), (), np.zeros(0), 3), "mean", "error", "p")
    assert nothing.notes == ("truncated",) * 3


def test_an_empty_hypothesis_has_no_words_and_no_spans(xcomet: Made) -> None:
    metric = comet(xcomet[1])
    (found,) = metric.word_scores([SEGMENTS[3]], HYPOTHESIS, [white_space("")])
    assert found.importance.shape == (0,)
    assert metric.error_spans([SEGMENTS[3]]) == [()]


def test_spans_slice_to_words_and_make_the_mqm_part(xcomet: Made) -> None:
    metric = comet(xcomet[1])
    found = metric.error_spans(SEGMENTS)
    assert any(found)
    for segment, spans in zip(SEGMENTS, found, strict=True):
        for span in spans:
            text = segment.hypothesis[span.start : span.end]
            assert text == text.strip() != ""
    costs = [sum({"minor": 1, "major": 5, "critical": 10}[str(s.severity)] for s in spans) for spans in found[:2]]
    near(metric.statistics(SEGMENTS[:2])[:, 3], [(25 - min(25, cost)) / 25 for cost in costs])


def test_a_threshold_decides_what_an_error_is(xcomet: Made) -> None:
    _, folder = xcomet
    text = SEGMENTS[0].hypothesis
    (all_of_it,) = comet(folder, threshold=0.0).error_spans(SEGMENTS[:1])
    assert [(span.start, span.end) for span in all_of_it] == [(0, len(text))]
    assert len(comet(folder, threshold=0.999999).error_spans(SEGMENTS[:1])[0]) <= 1


def classes(*labels: int, confidence: float = 0.7) -> np.ndarray:
    table = np.full((len(labels), 4), (1 - confidence) / 3)
    table[np.arange(len(labels)), list(labels)] = confidence
    return table


TEXT = "A  bad day now"
PIECES = [(0, 1), (1, 6), (6, 10), (10, 14)]


def test_blanks_at_the_edges_of_a_span_are_left_out() -> None:
    found = error_spans(TEXT, PIECES, runs(classes(0, 2, 0, 0), None, "compat"))
    assert found == (ErrorSpan(3, 6, "major", confidence=pytest.approx(0.7)),)
    assert TEXT[3:6] == "bad"


def test_a_span_that_is_open_at_the_end_is_closed() -> None:
    found = error_spans(TEXT, PIECES, runs(classes(0, 0, 1, 1), None, "default"))
    assert [(TEXT[one.start : one.end], one.severity) for one in found] == [("day now", "minor")]


def test_the_published_code_drops_a_span_that_is_open_at_the_end() -> None:
    assert runs(classes(1, 0, 1, 1), None, "compat") == [Run(1, 0, 0, pytest.approx(0.7))]
    assert runs(classes(1, 1), None, "compat") == []
    assert runs(classes(0, 2, 1, 0), 0.0, "compat") == runs(classes(0, 2, 1, 0), None, "default")


def test_severities_are_kept_apart_in_the_papers_mode_and_merged_by_default() -> None:
    table = classes(0, 1, 3, 3)
    kept = error_spans(TEXT, PIECES, runs(table, None, "paper"))
    assert [(TEXT[one.start : one.end], one.severity) for one in kept] == [("bad", "minor"), ("day now", "critical")]
    merged = error_spans(TEXT, PIECES, runs(table, None, "default"))
    assert [(TEXT[one.start : one.end], one.severity) for one in merged] == [("bad day now", "minor")]


def test_a_threshold_takes_the_most_probable_error_class() -> None:
    table = np.array([[0.6, 0.1, 0.25, 0.05], [0.9, 0.05, 0.03, 0.02]])
    assert runs(table, 0.3, "compat") == [Run(2, 0, 0, 0.25)]
    assert runs(table, None, "compat") == []
    assert runs(table, 0.4, "compat") == []


def test_confidence_is_the_mean_probability_of_the_chosen_classes() -> None:
    table = np.array([[0.2, 0.8, 0.0, 0.0], [0.4, 0.6, 0.0, 0.0]])
    assert runs(table, None, "paper") == [Run(1, 0, 1, pytest.approx(0.7))]


def test_a_span_of_blanks_alone_is_none_but_costs_what_the_model_says() -> None:
    found = runs(classes(0, 1, 0), None, "compat")
    assert error_spans("a  b", [(0, 1), (1, 3), (3, 4)], found) == ()
    assert quality(found) == 24 / 25


def test_the_mqm_part_ends_at_zero() -> None:
    assert quality([]) == 1.0
    assert quality([Run(1, 0, 0, 1.0), Run(2, 2, 2, 1.0), Run(3, 4, 4, 1.0)]) == pytest.approx(9 / 25)
    assert quality([Run(3, k, k, 1.0) for k in range(0, 6, 2)]) == 0.0


def test_class_probabilities_are_mixed_one_sixth_one_third_one_half() -> None:
    parts = [np.full((2, 4), value) for value in (6.0, 3.0, 2.0)]
    np.testing.assert_allclose(mix_classes(parts), 3.0)
    assert mix_classes(parts[:1]) is parts[0]


# Files and errors


def test_weights_that_do_not_fit_are_named(regression: Made, tmp_path: Path) -> None:
    model, folder = regression
    for number, (change, told) in enumerate(
        [
            ({"estimator.ff.3.weight": None}, "missing estimator.ff.3.weight"),
            ({"layerwise_attention.scalar_parameters.2": None}, "missing layerwise_attention.scalar_parameters.2"),
            (
                {"encoder.model.encoder.layer.1.output.dense.bias": None},
                "missing encoder.model.encoder.layer.1.output.dense.bias",
            ),
            ({"surprise.weight": torch.zeros(2)}, "unexpected surprise.weight"),
            ({"encoder.model.surprise": torch.zeros(2)}, "unexpected encoder.model.surprise"),
            (
                {"estimator.ff.0.weight": torch.zeros(24, 128)},
                "of another size estimator.ff.0.weight (24, 128) instead of (24, 192)",
            ),
            (
                {"encoder.model.embeddings.word_embeddings.weight": torch.zeros(7, 32)},
                "of another size encoder.model.embeddings.word_embeddings.weight (7, 32) instead of",
            ),
        ]
    ):
        copy = Path(shutil.copytree(folder, tmp_path / str(number)))
        state = {key: value for key, value in (model.state_dict() | change).items() if value is not None}
        torch.save({"state_dict": state}, copy / "checkpoints/model.ckpt")
        with pytest.raises(DataError, match=re.escape(told)) as caught:
            comet(copy).score(SEGMENTS[:1])
        assert str(caught.value).startswith(str(copy / "checkpoints/model.ckpt"))


def test_leftovers_of_training_are_passed_over(regression: Made, tmp_path: Path) -> None:
    model, folder = regression
    copy = Path(shutil.copytree(folder, tmp_path / "c"))
    left = {
        "encoder.model.pooler.dense.weight": torch.zeros(32, 32),
        "encoder.model.embeddings.position_ids": torch.arange(66)[None],
        "layerwise_attention.dropout_mask": torch.zeros(4),
        "train_corr.preds": torch.zeros(1),
    }
    torch.save({"state_dict": model.state_dict() | left}, copy / "checkpoints/model.ckpt")
    near(comet(copy).score(SEGMENTS), comet(folder).score(SEGMENTS))


class Trap:
    """An object whose loading runs code."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.path),)


def test_a_checkpoint_that_could_run_code_is_refused_unless_trusted(regression: Made, tmp_path: Path) -> None:
    model, folder = regression
    copy = Path(shutil.copytree(folder, tmp_path / "c"))
    mark = tmp_path / "ran"
    torch.save({"state_dict": model.state_dict(), "callbacks": Trap(mark)}, copy / "checkpoints/model.ckpt")
    told = r"is not read, as it could run code while loading: it needs \w+\.mkdir\. Convert it to safetensors"
    with pytest.raises(DataError, match=told):
        comet(copy).score(SEGMENTS[:1])
    assert not mark.exists()
    near(comet(copy, allow_pickle=True).score(SEGMENTS[:1]), comet(folder).score(SEGMENTS[:1]))
    assert mark.exists()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"class_identifier": "guessing_metric"},
            f"class_identifier is 'guessing_metric', expected one of {', '.join(KINDS)}",
        ),
        ({"activations": "Exp"}, "the activation is 'Exp', expected one of Tanh"),
        ({"hidden_sizes": "big"}, "hidden_sizes is 'big', expected a list"),
        ({"pretrained_model": None}, "pretrained_model is None, expected a str"),
        ({"pool": "best"}, "pool is 'best', expected 'avg', 'max', 'cls' or 'default'"),
        ({"layer_transformation": "none"}, "layer_transformation is 'none', expected softmax or sparsemax"),
        ({"layer": "top"}, "layer is 'top', expected 'mix' or a whole number"),
        ({"layer": 9}, "layer is 9, but the encoder has 4 states"),
        (
            {"class_identifier": "unified_metric", "input_segments": ["src"]},
            "input_segments is ['src'], expected mt with src, ref or both",
        ),
    ],
)
def test_settings_that_mean_nothing_are_refused(
    change: dict[str, object], told: str, regression: Made, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(regression[1], tmp_path / "c"))
    given = json.loads((copy / "hparams.yaml").read_text()) | change
    (copy / "hparams.yaml").write_text(json.dumps(given))
    with pytest.raises((DataError, SpecError), match=re.escape(told)):
        comet(copy).score(SEGMENTS[:1])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("a: !!python/object/apply:os.system [ls]", "is not YAML of plain values"),
        ("- a", "expected options by name, found list"),
    ],
)
def test_settings_are_plain_yaml(content: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "hparams.yaml").write_text(content)
    with pytest.raises(DataError, match=re.escape(told)):
        _ = comet(tmp_path).inputs


def test_a_missing_file_is_named_with_the_command_that_fetches_it(regression: Made, tmp_path: Path) -> None:
    folder = tmp_path / "wmt22-comet-da"
    folder.mkdir()
    told = f"comet: {folder} has no hparams.yaml. Fetch it with: hf download Unbabel/wmt22-comet-da hparams.yaml"
    with pytest.raises(MissingExtra, match=re.escape(f"{told} --local-dir {folder}")):
        comet(folder).score(SEGMENTS)
    shutil.copy(regression[1] / "hparams.yaml", folder)
    with pytest.raises(MissingExtra, match=re.escape("has no checkpoints/model.safetensors or model.safetensors or")):
        comet(folder).score(SEGMENTS)
    assert MissingExtra.exit_code == 4


def test_an_encoder_that_is_nowhere_is_named(regression: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def offline(*_: object, **__: object) -> str:
        raise FileNotFoundError("no network and no copy")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", offline)
    copy = Path(shutil.copytree(regression[1], tmp_path / "c"))
    shutil.rmtree(copy / "encoder")
    told = (
        "has no config.json of its encoder, and comet: cannot download *.json of nobody/base (no network and no copy)"
    )
    with pytest.raises(MissingExtra, match=re.escape(told)) as caught:
        comet(copy).score(SEGMENTS[:1])
    assert str(caught.value).endswith("Fetch it with: hf download nobody/base")


@pytest.mark.parametrize("model", ["Unbabel/wmt22-comet-da", "Unbabel/wmt22-cometkiwi-da"])
def test_a_missing_source_is_said_before_the_missing_checkpoint(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def offline(*_: object, **__: object) -> str:
        raise FileNotFoundError("no network and no copy")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", offline)
    with pytest.raises(MissingInput, match="Give a source with -s"):
        score([Segment("a cat", references=("a dog",))], f"comet(model={model!r})")


def test_configuration_and_tokenizer_may_lie_in_the_folder_itself(regression: Made, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(regression[1], tmp_path / "c"))
    for file in (copy / "encoder").iterdir():
        shutil.move(file, copy / file.name)
    near(comet(copy).score(SEGMENTS), comet(regression[1]).score(SEGMENTS))


def test_segments_must_have_what_the_model_reads(regression: Made, kiwi: Made) -> None:
    with pytest.raises(MissingInput, match="comet needs the source: segment 1"):
        comet(kiwi[1]).score([Segment("a")])
    with pytest.raises(MissingInput, match="comet needs a reference: segment 1"):
        comet(regression[1]).score([Segment("a", "b")])


def test_options_out_of_range_are_refused(regression: Made) -> None:
    with pytest.raises(SpecError, match=re.escape("comet: threshold is 1.5, expected 0 to below 1, or None")):
        Comet("x", threshold=1.5)
    with pytest.raises(SpecError, match="precision is 'fp8', expected 'fp32' or 'bf16' or 'fp16' or 'int8'"):
        Comet("x", precision="fp8")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="cannot score against the source alone"):
        comet(regression[1], against="source").score(SEGMENTS)
    with pytest.raises(SpecError, match="comet: cannot use the device 'abacus'"):
        Comet(str(regression[1]), device="abacus").score(SEGMENTS)


# Signature and licence


def test_the_signature_names_revision_precision_limit_and_licence(regression: Made) -> None:
    metric = comet(regression[1])
    facts = dict(metric.signature().facts)
    assert list(facts) == ["rev", "prec", "trunc", "mode", "mix", "licence", "version"]
    assert re.fullmatch(r"[0-9a-f]{12}", facts["rev"])
    assert (facts["prec"], facts["trunc"], facts["mix"], facts["licence"]) == ("fp32", "62", "sparsemax", "unknown")
    assert metric.signature().spec == spec_of(metric)


def test_other_weights_have_another_revision(regression: Made, tmp_path: Path) -> None:
    model, folder = regression
    copy = Path(shutil.copytree(folder, tmp_path / "c"))
    same = dict(comet(copy).signature().facts)["rev"]
    assert same == dict(comet(folder).signature().facts)["rev"]
    changed = model.state_dict() | {"layerwise_attention.gamma": torch.tensor([1.31])}
    torch.save({"state_dict": changed, "epoch": 3}, copy / "checkpoints/model.ckpt")
    assert dict(comet(copy).signature().facts)["rev"] != same
    assert comet(copy).score(SEGMENTS[:1])[0] != comet(folder).score(SEGMENTS[:1])[0]


def test_weights_for_research_only_say_so_once(kiwi: Made, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(kiwi[1], tmp_path / "wmt22-cometkiwi-da"))
    told = f"the weights of {copy} are licensed cc-by-nc-sa-4.0: they are for non-commercial use only"
    with pytest.warns(LicenceWarning, match=re.escape(told)):
        comet(copy).score(SEGMENTS[:1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        comet(copy).score(SEGMENTS[:1])
    assert "|licence:cc-by-nc-sa-4.0|" in str(comet(copy).signature())


def test_bfloat16_is_named_and_stays_near(regression: Made) -> None:
    metric = comet(regression[1], precision="bf16")
    assert "|prec:bf16|" in str(metric.signature())
    np.testing.assert_allclose(metric.score(SEGMENTS), comet(regression[1]).score(SEGMENTS), atol=0.2)
    assert torch.get_default_dtype() == torch.float32


class WithoutWords:
    """A metric whose word scores are left aside: the contract asks for them at every place a metric reads."""

    def __init__(self, metric: Comet) -> None:
        self.inputs, self.higher_is_better = metric.inputs, metric.higher_is_better
        self.signature, self.score = metric.signature, metric.score
        self.columns, self.statistics, self.scores = metric.columns, metric.statistics, metric.scores


@pytest.mark.filterwarnings("ignore:.*longer than the")  # this vocabulary spells many words out
@pytest.mark.parametrize("name", ["regression", "kiwi", "unite", "xcomet"])
def test_comet_keeps_the_contract_of_metrics(name: str, request: pytest.FixtureRequest) -> None:
    metric = comet(request.getfixturevalue(name)[1])
    check_metric(WithoutWords(metric), tolerance=1e-5, rebuild="comet" in list_names("metric"))


def test_comet_is_a_metric_with_rows_and_word_scores(xcomet: Made) -> None:
    metric = comet(xcomet[1])
    assert isinstance(metric, Metric)
    assert isinstance(metric, RowMetric)
    assert isinstance(metric, WordScorer)
    assert metric.score([]).shape == (0,)
    assert metric.statistics([]).shape == (0, 4)
    assert metric.score(SEGMENTS).dtype == np.float64
