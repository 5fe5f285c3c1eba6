"""BARTScore: parity with the published formula, one pair at a time, and what its words say."""

import re
import shutil
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from support import tiny_models
from support.tiny_models import near
from whyscore.analysis.explain import explain
from whyscore.errors import DataError, MissingExtra, MissingInput, SpecError
from whyscore.metrics.learned import bartscore as bartscore_model
from whyscore.metrics.learned.bartscore import BartScore
from whyscore.models import pairs
from whyscore.models.pairs import TruncatedTextWarning
from whyscore.protocols import Metric, RowMetric, WordScorer
from whyscore.registry import list_names, spec_of
from whyscore.testing.checks import check_metric
from whyscore.text.splitters import white_space
from whyscore.types import HYPOTHESIS, SOURCE, Inputs, Place, Segment, Side

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.usefixtures("one_thread")

SEGMENTS = [
    Segment("The cat sat on the mat.", "A dog slept under the old table, didn't it?", ("The cat slept.", "A mat")),
    Segment("A dog slept", "The cat sat on the mat.", ("A dog slept under the old table",)),
    Segment("  The old  table", "The cat sat on the mat.", ("The table",)),
    Segment("Kass istus 🐈 välja", "Die Katze saß auf der Matte.", ("Kass istus matil ja vaatas välja.",)),
    Segment("", "The cat", ("A cat",)),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("bart") / "b"
    tiny_models.save(place, "bart", "BartForConditionalGeneration", blocks=2, std=0.15, limit=64)
    return place


def metric(folder: Path, **options: object) -> BartScore:
    return BartScore(str(folder), device="cpu", **options)  # type: ignore[arg-type]


class Published:
    """The mean log-probability by the model's own loss, one pair at a time."""

    def __init__(self, folder: Path) -> None:
        self.network = transformers.BartForConditionalGeneration.from_pretrained(folder).eval()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

    def pieces(self, given: str, target: str) -> np.ndarray:
        condition = self.tokenizer([given.strip()], return_tensors="pt").input_ids
        labels = self.tokenizer([target.strip()], return_tensors="pt").input_ids
        with torch.no_grad():
            logits = self.network(input_ids=condition, labels=labels).logits[0]
        chosen = torch.log(torch.softmax(logits.double(), -1))[range(labels.shape[1]), labels[0]]
        return np.asarray(chosen.numpy())

    def score(self, given: str, target: str) -> float:
        return float(self.pieces(given, target).mean())


@pytest.fixture(scope="module")
def published(folder: Path) -> Published:
    return Published(folder)


# Parity


def test_the_hypothesis_is_scored_given_the_source(folder: Path, published: Published) -> None:
    expected = [published.score(segment.source or "", segment.hypothesis) for segment in SEGMENTS]
    near(metric(folder).score(SEGMENTS), expected)
    assert metric(folder).inputs == Inputs.HYPOTHESIS | Inputs.SOURCE


def test_several_references_count_by_their_mean_or_by_the_best(folder: Path, published: Published) -> None:
    forward = [[published.score(text, one.hypothesis) for text in one.references] for one in SEGMENTS]
    backward = [[published.score(one.hypothesis, text) for text in one.references] for one in SEGMENTS]
    for direction, values in (("reference->hypothesis", forward), ("hypothesis->reference", backward)):
        near(metric(folder, direction=direction).score(SEGMENTS), [np.mean(row) for row in values])
        near(metric(folder, direction=direction, references="max").score(SEGMENTS), [max(row) for row in values])


def test_f_is_the_mean_of_both_directions(folder: Path) -> None:
    both = metric(folder, direction="f")
    rows = both.statistics(SEGMENTS)
    assert both.columns == ("reference->hypothesis", "hypothesis->reference")
    near(rows[:, 0], metric(folder, direction="reference->hypothesis").score(SEGMENTS))
    near(rows[:, 1], metric(folder, direction="hypothesis->reference").score(SEGMENTS))
    near(both.score(SEGMENTS), rows.mean(axis=1), 1e-12)


def test_the_special_pieces_can_be_left_out(folder: Path, published: Published) -> None:
    inner = [published.pieces(one.source or "", one.hypothesis)[1:-1].mean() for one in SEGMENTS[:4]]
    near(metric(folder, count="words").score(SEGMENTS[:4]), inner)


def test_a_text_without_words_is_scored_by_its_special_pieces_alone(folder: Path) -> None:
    empty = SEGMENTS[4:]
    near(metric(folder, count="words").score(empty), metric(folder).score(empty), 1e-12)


def test_a_state_dict_of_the_same_model_replaces_its_weights(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    network = tiny_models.save(other, "bart", "BartForConditionalGeneration", blocks=2, std=0.15, limit=64, seed=9)
    torch.save(network.state_dict(), tmp_path / "bart.pth")
    tuned = metric(folder, weights=str(tmp_path / "bart.pth"))
    near(tuned.score(SEGMENTS), metric(other).score(SEGMENTS))
    assert dict(tuned.signature().facts)["rev"] != dict(metric(folder).signature().facts)["rev"]


# Words


def test_the_sums_of_words_special_pieces_and_blanks_add_up_to_the_score(folder: Path, published: Published) -> None:
    summed = metric(folder, pool="sum")
    words = [white_space(segment.hypothesis) for segment in SEGMENTS]
    found = summed.word_scores(SEGMENTS, HYPOTHESIS, words)
    others = []
    for segment, score, own in zip(SEGMENTS, summed.score(SEGMENTS), found, strict=True):
        text = segment.hypothesis.strip()
        offsets = published.tokenizer(text, return_offsets_mapping=True).offset_mapping
        values = published.pieces(segment.source or "", text)
        other = sum(value for value, (start, end) in zip(values, offsets, strict=True) if not text[start:end].strip())
        assert own.importance.sum() + other == pytest.approx(score * len(values), abs=1e-5)
        others.append(other - values[0] - values[-1])
    # A second blank and the blank before an emoji are pieces of their own that belong to no word.
    assert [abs(other) > 1 for other in others] == [False, False, True, True, False]


def test_pieces_and_special_ones_add_up_exactly(folder: Path) -> None:
    model = metric(folder)._model()
    pairs_asked = [(one.source or "", one.hypothesis) for one in SEGMENTS]
    targets = model.targets(pairs_asked)
    pieces = metric(folder).piece_scores(SEGMENTS, HYPOTHESIS)
    for pair, found, score in zip(pairs_asked, pieces, metric(folder).score(SEGMENTS), strict=True):
        special = targets[pair].special
        total = found.values.sum() + special.sum()
        assert total / (len(found.values) + len(special)) == pytest.approx(score, abs=1e-6)
        assert found.total == len(found.values)


@pytest.mark.parametrize(("pool", "over"), [("min", np.min), ("mean", np.mean), ("sum", np.sum)])
def test_words_pool_the_pieces_they_overlap(
    pool: str, over: Callable[[np.ndarray], float], folder: Path, published: Published
) -> None:
    segment = SEGMENTS[3]
    offsets = published.tokenizer(segment.hypothesis, return_offsets_mapping=True).offset_mapping[1:-1]
    values = published.pieces(segment.source or "", segment.hypothesis)[1:-1]
    words = white_space(segment.hypothesis)
    # Byte-level pieces begin with the blank before a word.
    places = [(start + (segment.hypothesis[start] == " "), end) for start, end in offsets]
    expected = [
        over(np.array([v for v, (start, end) in zip(values, places, strict=True) if start < stop and end > begin]))
        for begin, stop in words.spans
    ]
    (found,) = metric(folder, pool=pool).word_scores([segment], HYPOTHESIS, [words])
    near(found.importance, expected)
    assert found.notes is not None
    assert found.notes[0].startswith("log p: ")


def test_each_direction_explains_its_target(folder: Path, published: Published) -> None:
    segment = SEGMENTS[0]
    second = Place(Side.REFERENCE, 1)
    words = white_space(segment.references[1])
    (found,) = metric(folder, direction="hypothesis->reference", pool="sum").word_scores([segment], second, [words])
    values = published.pieces(segment.hypothesis, segment.references[1])
    assert found.importance.sum() == pytest.approx(values[1:-1].sum(), abs=1e-5)
    (other,) = metric(folder, direction="f", pool="sum").word_scores([segment], second, [words])
    near(other.importance, found.importance, 1e-12)


def test_hypothesis_words_take_the_mean_over_references_or_the_best_one(folder: Path, published: Published) -> None:
    segment = SEGMENTS[0]
    tables = [published.pieces(text, segment.hypothesis) for text in segment.references]
    mean = metric(folder, direction="f").piece_scores([segment], HYPOTHESIS)[0].values
    near(mean, np.mean(tables, axis=0)[1:-1])
    best = max(tables, key=lambda table: table.mean())
    near(metric(folder, direction="f", references="max").piece_scores([segment], HYPOTHESIS)[0].values, best[1:-1])


@pytest.mark.parametrize(
    ("direction", "place", "named"),
    [
        ("source->hypothesis", SOURCE, "the hypothesis, the text it scores; asked for the source"),
        (
            "reference->hypothesis",
            Place(Side.REFERENCE, 0),
            "the hypothesis, the text it scores; asked for the reference",
        ),
        ("hypothesis->reference", HYPOTHESIS, "the reference, the text it scores; asked for the hypothesis"),
    ],
)
def test_the_conditioning_text_has_no_word_scores(direction: str, place: Place, named: str, folder: Path) -> None:
    with pytest.raises(SpecError, match=re.escape(f"has word scores for {named}")):
        metric(folder, direction=direction).word_scores(SEGMENTS[:1], place, [white_space("x")])


# Invariance, counts, limits


def test_batches_and_order_change_nothing(folder: Path) -> None:
    texts = tiny_models.TEXTS
    segments = [
        Segment(" ".join(texts[i % 5].split()[: 1 + i % 7]), texts[(i * 3) % 5][: 5 + i % 11]) for i in range(64)
    ]
    one = metric(folder)
    whole = one.score(segments)
    for size in (1, 7, 64):
        parts = [one.score(segments[start : start + size]) for start in range(0, 64, size)]
        near(np.concatenate(parts), whole, 1e-6)
    order = np.random.default_rng(0).permutation(64)
    near(one.score([segments[i] for i in order]), whole[order], 1e-6)


@pytest.fixture
def fresh(folder: Path, tmp_path: Path) -> Path:
    """A model that no other test has loaded."""
    return Path(shutil.copytree(folder, tmp_path / "fresh"))


def test_each_conditioning_text_is_encoded_once_whatever_the_number_of_targets(fresh: Path) -> None:
    one = metric(fresh)
    probes = [Segment(text, source) for source in ("The cat", "A dog") for text in ("The", "cat", "sat", "")]
    one.score(probes)
    assert one._model().states.computed == 2
    one.score([Segment("mat", "The cat")])
    assert one._model().states.computed == 2


def test_explaining_the_hypothesis_encodes_each_source_once(fresh: Path) -> None:
    one = metric(fresh)
    segments = [Segment("The cat sat", "A dog"), Segment("The old table", "A dog"), Segment("A mat", "The cat")]
    found = explain(segments, one, "erasure", sides=["hypothesis"])
    assert one._model().states.computed == 2
    whole = one.score([Segment("The cat sat", "A dog"), Segment("The cat", "A dog")])
    assert found[0].importance[2] == pytest.approx(whole[0] - whole[1], abs=1e-5)


def test_the_metrics_own_word_scores_explain_it(folder: Path) -> None:
    one = metric(folder, pool="sum")
    (found,) = explain(SEGMENTS[:1], one, "intrinsic", sides=["hypothesis"])
    (own,) = one.word_scores(SEGMENTS[:1], HYPOTHESIS, [white_space(SEGMENTS[0].hypothesis)])
    near(found.importance, own.importance, 1e-12)


def test_equal_pairs_are_decoded_once(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    original = bartscore_model.BartModel._decode

    def counted(self: bartscore_model.BartModel, states: Sequence[object], targets: Sequence[pairs.Row]) -> object:
        seen.append(len(targets))
        return original(self, states, targets)  # type: ignore[arg-type]

    monkeypatch.setattr(bartscore_model.BartModel, "_decode", counted)
    metric(fresh).score([*SEGMENTS, *SEGMENTS])
    assert sum(seen) == len(SEGMENTS)


def test_pinned_states_keep_within_their_memory(fresh: Path) -> None:
    one = metric(fresh)
    whole = one.score(SEGMENTS)
    model = one._model()
    model.states = pairs.Pinned(20 * 32 * 4)  # twenty pieces
    near(one.score(SEGMENTS), whole, 1e-6)
    assert 0 < model.states.size <= model.states.memory
    assert model.states.computed == len({segment.source for segment in SEGMENTS})


def test_a_text_beyond_the_limit_is_cut_and_told_once(fresh: Path, published: Published) -> None:
    one = metric(fresh)
    fits, longer = "t" + "x" * 61, "t" + "x" * 62
    assert len(published.tokenizer(fits).input_ids) == 64
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = one.piece_scores([Segment(fits, "cat")], HYPOTHESIS)[0].values
    with pytest.warns(TruncatedTextWarning, match="bartscore: 1 of 2 inputs are longer than the 64 pieces"):
        (cut,) = one.piece_scores([Segment(longer, "cat")], HYPOTHESIS)
    near(cut.values, kept, 1e-6)
    assert (len(cut.values), cut.total) == (62, 63)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (words,) = one.word_scores([Segment(f"{longer} y", "cat")], HYPOTHESIS, [white_space(f"{longer} y")])
    assert np.isnan(words.importance).tolist() == [False, True]
    assert words.notes is not None
    assert words.notes[1] == "truncated"


# Errors and signature


def test_missing_files_are_named(tmp_path: Path) -> None:
    place = tmp_path / "bart-large-cnn"
    place.mkdir()
    told = f"bartscore: {place} has no model.safetensors or model.safetensors.index.json or pytorch_model.bin"
    with pytest.raises(MissingExtra, match=re.escape(told)) as caught:
        metric(place).score(SEGMENTS)
    assert "hf download facebook/bart-large-cnn model.safetensors" in str(caught.value)


def test_missing_and_unexpected_weights_are_named(fresh: Path, tmp_path: Path) -> None:
    network = transformers.BartForConditionalGeneration.from_pretrained(fresh)
    state = network.state_dict()
    del state["model.decoder.layers.1.fc1.weight"]
    torch.save(state | {"surprise": torch.zeros(1)}, tmp_path / "bart.pth")
    told = "missing model.decoder.layers.1.fc1.weight; unexpected surprise"
    with pytest.raises(DataError, match=re.escape(told)):
        metric(fresh, weights=str(tmp_path / "bart.pth")).score(SEGMENTS)
    with pytest.raises(SpecError, match=re.escape("no weights at nowhere.pth")):
        metric(fresh, weights="nowhere.pth").score(SEGMENTS)


def test_other_architectures_are_refused(tmp_path: Path) -> None:
    tiny_models.save(tmp_path / "x", "xlm-roberta", "XLMRobertaModel", blocks=2, std=0.15)
    with pytest.raises(SpecError, match="is a xlm-roberta model, expected bart"):
        metric(tmp_path / "x").score(SEGMENTS)


def test_segments_must_have_the_texts_of_the_direction(folder: Path) -> None:
    with pytest.raises(MissingInput, match="bartscore needs the source"):
        metric(folder).score([Segment("a")])
    with pytest.raises(MissingInput, match="bartscore needs a reference"):
        metric(folder, direction="f").score([Segment("a", "b")])


def test_an_unknown_direction_is_refused() -> None:
    with pytest.raises(SpecError, match="BartScore: direction is 'sideways', expected 'source->hypothesis' or"):
        BartScore(direction="sideways")  # type: ignore[arg-type]


def test_the_signature_names_revision_precision_limit_and_licence(folder: Path, fresh: Path) -> None:
    facts = dict(metric(folder).signature().facts)
    assert list(facts) == ["rev", "prec", "trunc", "mode", "licence", "version"]
    assert (facts["prec"], facts["trunc"], facts["licence"]) == ("fp32", "64", "unknown")
    (fresh / "README.md").write_text("---\nlanguage: en\nlicense: mit\n---\n# BART\n")
    assert dict(metric(fresh).signature().facts)["licence"] == "mit"
    assert metric(folder).signature().spec == spec_of(metric(folder))


def test_bartscore_keeps_the_contract_of_metrics(folder: Path) -> None:
    check_metric(metric(folder, direction="f"), tolerance=1e-5, rebuild="bartscore" in list_names("metric"))


def test_bartscore_is_a_metric_with_rows_and_word_scores(folder: Path) -> None:
    one = metric(folder)
    assert isinstance(one, Metric)
    assert isinstance(one, RowMetric)
    assert isinstance(one, WordScorer)
    assert one.score([]).shape == (0,)
    assert one.score(SEGMENTS).dtype == np.float64
    assert (one.score(SEGMENTS) < 0).all()
