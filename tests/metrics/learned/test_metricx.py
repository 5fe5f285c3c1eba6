"""MetricX: parity with a plain mT5 that reads one string at a time."""

import json
import re
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from support import tiny_models
from support.tiny_models import near
from whyscore.errors import DataError, MissingExtra, MissingInput, SpecError
from whyscore.metrics.learned import metricx
from whyscore.metrics.learned.metricx import MetricX
from whyscore.models import pairs
from whyscore.models.pairs import TruncatedTextWarning
from whyscore.protocols import Metric
from whyscore.registry import list_names, spec_of
from whyscore.testing.checks import check_metric
from whyscore.types import Inputs, Segment

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.usefixtures("one_thread")
from safetensors.torch import save_file  # noqa: E402

LOGIT = 29

SEGMENTS = [
    Segment("The cat sat on the mat.", "Die Katze saß auf der Matte.", ("A cat sat on the mat.", "The cat")),
    Segment("A dog slept", "Ein Hund schlief unter dem alten Tisch.", ("A dog slept under the old table.",)),
    Segment("", "Kass istus matil", ("The mat",)),
]

TEXTS = (*tiny_models.TEXTS, "source: candidate: reference:")


class Plain:
    """An encoder, one decoder step and one logit, without batches or padding."""

    def __init__(self, seed: int = 0, scale: float = 1.0) -> None:
        self.tokenizer = tiny_models.tokenizer("mt5", TEXTS, limit=4096)
        self.network = tiny_models.network("MT5Model", len(self.tokenizer), blocks=2, seed=seed, std=0.15)
        self.output = torch.randn(len(self.tokenizer), 32, generator=torch.Generator().manual_seed(seed)) / 16
        self.scale = scale

    def save(self, folder: Path, *, tied: bool = False, pickled: bool = False) -> Path:
        folder.mkdir()
        state = {
            key: value.contiguous() for key, value in self.network.state_dict().items() if "embed_tokens" not in key
        }
        state |= {} if tied else {"lm_head.weight": self.output}
        if pickled:
            torch.save(state, folder / "pytorch_model.bin")
        else:
            save_file(state, folder / "model.safetensors")
        config = self.network.config.to_dict() | {"tie_word_embeddings": tied, "architectures": ["MT5ForRegression"]}
        (folder / "config.json").write_text(json.dumps(config))
        self.tokenizer.save_pretrained(folder)
        return folder

    def raw(self, text: str, limit: int = 1536) -> float:
        ids = self.tokenizer(text).input_ids[:-1][: limit - 1]
        with torch.no_grad():
            out = self.network(input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([[0]]))
        return float(out.last_hidden_state[0, 0] @ self.output[LOGIT]) * self.scale

    def score(self, text: str) -> float:
        return min(25.0, max(0.0, self.raw(text)))


@pytest.fixture(scope="module")
def plain() -> Plain:
    return Plain()


@pytest.fixture(scope="module")
def folder(plain: Plain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plain.save(tmp_path_factory.mktemp("metricx") / "m")


def metric(folder: Path, **options: object) -> MetricX:
    return MetricX(str(folder), logit=LOGIT, device="cpu", **options)  # type: ignore[arg-type]


# Strings


@pytest.mark.parametrize(
    ("options", "strings", "inputs"),
    [
        ({}, ["source: s candidate: h reference: r", "source: s candidate: h reference: q"], Inputs(7)),
        ({"against": "source"}, ["source: s candidate: h"], Inputs.HYPOTHESIS | Inputs.SOURCE),
        (
            {"version": 23},
            ["candidate: h reference: r", "candidate: h reference: q"],
            Inputs.HYPOTHESIS | Inputs.REFERENCES,
        ),
        ({"version": 23, "against": "source"}, ["candidate: h source: s"], Inputs.HYPOTHESIS | Inputs.SOURCE),
    ],
)
def test_each_version_writes_its_own_string(options: dict[str, object], strings: list[str], inputs: Inputs) -> None:
    one = MetricX("m", **options)  # type: ignore[arg-type]
    assert one.strings(Segment("h", "s", ("r", "q"))) == strings
    assert one.inputs == inputs


@pytest.mark.parametrize(
    ("model", "reads_reference"),
    [
        ("google/metricx-23-qe-xl-v2p0", False),
        ("google/metricx-23-xl-v2p0", True),
        ("google/metricx-24-hybrid-xl-v2p6@main", True),
        ("./qe-models/metricx-23-xl", True),
    ],
)
def test_the_name_says_whether_references_are_read(model: str, reads_reference: bool) -> None:  # noqa: FBT001
    assert (Inputs.REFERENCES in MetricX(model).inputs) is reads_reference


# Parity


@pytest.mark.parametrize("version", [23, 24])
@pytest.mark.parametrize("against", ["reference", "source"])
def test_the_score_is_one_logit_of_one_decoder_step(version: int, against: str, folder: Path, plain: Plain) -> None:
    one = metric(folder, version=version, against=against)
    expected = [np.mean([plain.score(text) for text in one.strings(segment)]) for segment in SEGMENTS]
    assert max(expected) > 0.01  # clipping must not hide a difference
    near(one.score(SEGMENTS), expected)


def test_the_blank_before_an_empty_text_is_read_as_published(folder: Path, plain: Plain) -> None:
    one = metric(folder)
    segment = Segment("", "Kass istus matil")
    free = metric(folder, against="source")
    assert free.strings(segment) == ["source: Kass istus matil candidate: "]
    assert plain.raw("source: Kass istus matil candidate:") != pytest.approx(
        plain.raw(free.strings(segment)[0]), abs=1e-2
    )
    near(free.score([segment]), [plain.score(free.strings(segment)[0])])
    assert one.strings(Segment(" h ", " s\n", (" r ",))) == ["source: s candidate: h reference: r"]


def test_scores_are_clipped_to_the_range_of_the_annotation(tmp_path: Path) -> None:
    plain = Plain()
    plain.output = plain.output * 400
    one = metric(plain.save(tmp_path / "m"), against="source")
    segments = [Segment(" ".join(text.split()[:k]), "") for text in tiny_models.TEXTS for k in range(1, 7)]
    raw = np.array([plain.raw(one.strings(segment)[0]) for segment in segments])
    assert raw.min() < 0
    assert raw.max() > 25
    scores = one.score(segments)
    assert (scores[raw < 0] == 0).all()
    assert (scores[raw > 25] == 25).all()


def test_the_best_of_several_references_is_the_lowest(folder: Path, plain: Plain) -> None:
    one = metric(folder, references="min")
    near(one.score(SEGMENTS[:1]), [min(plain.score(text) for text in one.strings(SEGMENTS[0]))])
    assert not one.higher_is_better


def test_a_shared_output_layer_is_scaled_down(tmp_path: Path) -> None:
    plain = Plain(seed=3, scale=32**-0.5)
    plain.output = plain.network.shared.weight.detach()
    one = metric(plain.save(tmp_path / "m", tied=True))
    near(one.score(SEGMENTS[1:2]), [plain.score(one.strings(SEGMENTS[1])[0])])


def test_pickled_tensors_are_read(plain: Plain, folder: Path, tmp_path: Path) -> None:
    near(metric(plain.save(tmp_path / "m", pickled=True)).score(SEGMENTS), metric(folder).score(SEGMENTS), 1e-9)


# Invariance, counts, limits


def test_batches_and_order_change_nothing(folder: Path) -> None:
    texts = tiny_models.TEXTS
    segments = [
        Segment(" ".join(texts[i % 5].split()[: 1 + i % 7]), texts[(i * 3) % 5][: 5 + i % 11]) for i in range(64)
    ]
    one = metric(folder, against="source")
    whole = one.score(segments)
    assert len(set(whole.tolist())) > 20
    for size in (1, 7, 64):
        parts = [one.score(segments[start : start + size]) for start in range(0, 64, size)]
        near(np.concatenate(parts), whole, 1e-6)
    order = np.random.default_rng(0).permutation(64)
    near(one.score([segments[i] for i in order]), whole[order], 1e-6)


def test_equal_strings_are_computed_once_and_without_their_end_token(
    folder: Path, plain: Plain, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[pairs.Row] = []
    original = metricx.MetricXModel._score_rows

    def counted(self: metricx.MetricXModel, rows: Sequence[pairs.Row]) -> list[float]:
        seen.extend(rows)
        return original(self, rows)

    monkeypatch.setattr(metricx.MetricXModel, "_score_rows", counted)
    one = metric(folder)
    one.score([*SEGMENTS, *SEGMENTS])
    assert len(seen) == 4
    end = plain.tokenizer.eos_token_id
    assert all(end not in row.ids for row in seen)
    assert {row.ids for row in seen} == {
        tuple(plain.tokenizer(text).input_ids[:-1]) for segment in SEGMENTS for text in one.strings(segment)
    }


def test_a_string_beyond_the_limit_is_cut_and_told_once(plain: Plain, tmp_path: Path) -> None:
    one = metric(plain.save(tmp_path / "m"), version=23, against="source")
    count = len(plain.tokenizer(one.strings(Segment("", ""))[0]).input_ids) - 1
    fits = " ".join(["cat"] * (1023 - count))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one.score([Segment("", fits)])
    longer = Segment("", f"{fits} cat cat")
    with pytest.warns(TruncatedTextWarning, match="metricx: 1 of 1 inputs are longer than the 1024 pieces"):
        cut = one.score([longer])
    expected = plain.raw(one.strings(longer)[0], limit=1024)
    near(cut, [min(25.0, max(0.0, expected))])
    assert "|trunc:1024|" in str(one.signature())
    assert "|trunc:1536|" in str(metric(tmp_path / "m").signature())


# Errors and signature


def test_missing_weights_are_named(plain: Plain, tmp_path: Path) -> None:
    folder = plain.save(tmp_path / "m", pickled=True)
    state = torch.load(folder / "pytorch_model.bin", weights_only=True)
    for number, (change, told) in enumerate(
        [
            ({"decoder.final_layer_norm.weight": None}, "missing decoder.final_layer_norm.weight"),
            ({"lm_head.weight": None, "shared.weight": None}, "missing lm_head.weight"),
            ({"surprise": torch.zeros(1)}, "unexpected surprise"),
        ]
    ):
        other = plain.save(tmp_path / str(number), pickled=True)
        kept = {key: value for key, value in (state | change).items() if value is not None}
        torch.save(kept, other / "pytorch_model.bin")
        with pytest.raises(DataError, match=re.escape(told)):
            metric(other).score(SEGMENTS)


def test_a_logit_beyond_the_vocabulary_is_refused(folder: Path, plain: Plain) -> None:
    told = f"metricx: logit is 250089, but the vocabulary of the model ends at {len(plain.tokenizer) - 1}"
    with pytest.raises(SpecError, match=re.escape(told)):
        MetricX(str(folder), device="cpu").score(SEGMENTS)
    with pytest.raises(SpecError, match="metricx: logit is -1, expected 0 or more"):
        MetricX("m", logit=-1)
    with pytest.raises(SpecError, match="MetricX: version is 25, expected 23 or 24"):
        MetricX("m", version=25)  # type: ignore[arg-type]


def test_a_missing_model_is_named_with_the_command_that_fetches_it(tmp_path: Path) -> None:
    with pytest.raises(MissingExtra, match=re.escape(f"metricx: no folder {tmp_path}/none")) as caught:
        metric(tmp_path / "none").score(SEGMENTS)
    assert str(caught.value).endswith(f"hf download OWNER/none --local-dir {tmp_path}/none")


def test_a_tokenizer_from_elsewhere_is_used_where_the_model_has_none(
    plain: Plain, folder: Path, tmp_path: Path
) -> None:
    bare = plain.save(tmp_path / "m")
    for file in bare.glob("tokenizer*"):
        file.unlink()
    plain.tokenizer.save_pretrained(tmp_path / "t")
    near(metric(bare, tokenizer=str(tmp_path / "t")).score(SEGMENTS), metric(folder).score(SEGMENTS), 1e-9)


def test_segments_must_have_what_the_string_holds(folder: Path) -> None:
    with pytest.raises(MissingInput, match="metricx needs the source"):
        metric(folder).score([Segment("a", None, ("b",))])
    with pytest.raises(MissingInput, match="metricx needs a reference"):
        metric(folder, version=23).score([Segment("a", "b")])


def test_the_signature_names_what_was_read(folder: Path) -> None:
    one = metric(folder)
    facts = dict(one.signature().facts)
    assert list(facts) == ["rev", "prec", "trunc", "against", "licence", "version"]
    assert (facts["against"], facts["trunc"], facts["prec"]) == ("reference", "1536", "fp32")
    assert one.signature().spec == spec_of(one)


@pytest.mark.parametrize("options", [{}, {"against": "source"}, {"version": 23}, {"references": "min"}])
def test_metricx_keeps_the_contract_of_metrics(options: dict[str, object], folder: Path) -> None:
    check_metric(metric(folder, **options), tolerance=1e-5, rebuild="metricx" in list_names("metric"))


def test_metricx_is_a_metric(folder: Path) -> None:
    one = metric(folder)
    assert isinstance(one, Metric)
    assert one.score([]).shape == (0,)
    assert one.score(SEGMENTS).dtype == np.float64
