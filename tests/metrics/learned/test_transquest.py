"""TransQuest in its three architectures: parity with transformers' own networks, one segment at a time."""

import json
import re
import shutil
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from support import tiny_models
from support.tiny_models import near
from whyscore.errors import DataError, MissingExtra, MissingInput, SpecError
from whyscore.metrics.learned.transquest import TransQuest
from whyscore.models.pairs import TruncatedTextWarning
from whyscore.protocols import Metric, WordScorer
from whyscore.registry import list_names, spec_of
from whyscore.testing.checks import check_metric
from whyscore.text.splitters import Characters, white_space
from whyscore.types import HYPOTHESIS, SOURCE, Place, Segment, Side

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.usefixtures("one_thread")

SEGMENTS = [
    Segment("The cat sat on the mat.", "Die Katze saß auf der Matte."),
    Segment("A dog slept", "Ein Hund schlief unter dem alten Tisch."),
    Segment("  The old  table ", "Kass istus matil"),
    Segment("", "Die Katze"),
]

TEXTS = (*tiny_models.TEXTS, "[SEP] <gap>")


class Plain:
    """A network of transformers with its tokenizer, without batches or padding."""

    def __init__(self, folder: Path, name: str) -> None:
        self.network = getattr(transformers, name).from_pretrained(folder).eval()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

    def ids(self, text: str) -> list[int]:
        found: list[int] = self.tokenizer(text.strip(), add_special_tokens=False).input_ids
        return found

    def __call__(self, ids: Sequence[int]) -> torch.Tensor:
        with torch.no_grad():
            return self.network(torch.tensor([list(ids)]))[0][0]


@pytest.fixture(scope="module")
def mono(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mono") / "m"
    tiny_models.save(folder, "xlm-roberta", "XLMRobertaForSequenceClassification", blocks=2, std=0.15, num_labels=1)
    (folder / "model_args.json").write_text(json.dumps({"max_seq_length": 40}))
    return folder


@pytest.fixture(scope="module")
def siamese(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("siamese") / "s"
    tiny_models.save(folder / "0_Transformer", "xlm-roberta", "XLMRobertaModel", blocks=2, std=0.15)
    (folder / "0_Transformer/sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 30}))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    (folder / "modules.json").write_text("[]")
    return folder


@pytest.fixture(scope="module")
def micro(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("micro") / "m"
    tiny_models.save(
        folder, "xlm-roberta", "XLMRobertaForTokenClassification", blocks=2, std=0.15, texts=TEXTS, num_labels=2
    )
    (folder / "model_args.json").write_text(json.dumps({"max_seq_length": 60, "labels_list": ["BAD", "OK"]}))
    return folder


def metric(folder: Path, kind: str, **options: object) -> TransQuest:
    return TransQuest(str(folder), kind, device="cpu", **options)  # type: ignore[arg-type]


# Mono


def test_mono_reads_the_source_first_and_returns_the_only_output(mono: Path) -> None:
    plain = Plain(mono, "XLMRobertaForSequenceClassification")
    expected = [
        float(plain([0, *plain.ids(one.source or ""), 2, 2, *plain.ids(one.hypothesis), 2])[0]) for one in SEGMENTS[:3]
    ]
    near(metric(mono, "mono").score(SEGMENTS[:3]), expected)


def test_mono_reads_the_source_alone_beside_an_empty_hypothesis(mono: Path) -> None:
    plain = Plain(mono, "XLMRobertaForSequenceClassification")
    near(metric(mono, "mono").score(SEGMENTS[3:]), [float(plain([0, *plain.ids("Die Katze"), 2])[0])])


def test_a_bert_is_told_which_text_a_piece_belongs_to(tmp_path: Path) -> None:
    tiny_models.save(tmp_path / "b", "bert", "BertForSequenceClassification", blocks=2, std=0.15, num_labels=1)
    plain = Plain(tmp_path / "b", "BertForSequenceClassification")
    expected = []
    for one in SEGMENTS[:2]:
        given = plain.tokenizer(one.source, one.hypothesis, return_tensors="pt", return_token_type_ids=True)
        assert given.token_type_ids.max() == 1
        with torch.no_grad():
            expected.append(float(plain.network(**given).logits[0, 0]))
    near(metric(tmp_path / "b", "mono").score(SEGMENTS[:2]), expected)


def test_the_longer_text_of_a_pair_loses_its_end_first(mono: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(mono, tmp_path / "m"))
    plain = Plain(copy, "XLMRobertaForSequenceClassification")
    source, hypothesis = plain.ids(" ".join(["cat"] * 30)), plain.ids(" ".join(["Die"] * 10))
    with pytest.warns(TruncatedTextWarning, match="transquest: 1 of 1 inputs are longer than the 40 pieces"):
        found = metric(copy, "mono").score([Segment(" ".join(["Die"] * 10), " ".join(["cat"] * 30))])
    near(found, [float(plain([0, *source[:26], 2, 2, *hypothesis, 2])[0])])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        both = metric(copy, "mono").score([Segment(" ".join(["Die"] * 31), " ".join(["cat"] * 30))])
    near(both, [float(plain([0, *source[:18], 2, 2, *plain.ids(" ".join(["Die"] * 18)), 2])[0])])


@pytest.mark.parametrize(
    ("name", "options", "higher"),
    [
        ("TransQuest/monotransquest-da-multilingual", {}, True),
        ("TransQuest/monotransquest-hter-en_any", {}, False),
        ("TransQuest/monotransquest-hter-en_any", {"predicts": "quality"}, True),
        ("./model", {"predicts": "hter"}, False),
        ("./micro-hter", {"kind": "micro"}, True),
    ],
)
def test_a_model_of_edit_rates_is_better_when_lower(name: str, options: dict[str, object], higher: bool) -> None:  # noqa: FBT001
    assert TransQuest(name, **options).higher_is_better is higher  # type: ignore[arg-type]


# Siamese


def test_siamese_is_the_cosine_of_mean_vectors(siamese: Path) -> None:
    plain = Plain(siamese / "0_Transformer", "XLMRobertaModel")
    expected = []
    for one in SEGMENTS:
        left, right = (plain([0, *plain.ids(text), 2]).mean(0).double() for text in (one.source or "", one.hypothesis))
        expected.append(float(left @ right / left.norm() / right.norm()))
    near(metric(siamese, "siamese").score(SEGMENTS), expected)


def test_the_pooling_of_a_siamese_model_is_read_from_its_folder(siamese: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(siamese, tmp_path / "s"))
    (copy / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    plain = Plain(copy / "0_Transformer", "XLMRobertaModel")
    left, right = (plain([0, *plain.ids(text), 2])[0].double() for text in ("Die Katze", "A dog"))
    expected = float(left @ right / left.norm() / right.norm())
    near(metric(copy, "siamese").score([Segment("A dog", "Die Katze")]), [expected])
    (copy / "1_Pooling/config.json").write_text(
        json.dumps({"pooling_mode_cls_token": True, "pooling_mode_max_tokens": True})
    )
    with pytest.raises(DataError, match="pooling modes max, cls: one was expected"):
        metric(copy, "siamese").score(SEGMENTS)


def test_a_siamese_folder_may_be_the_network_itself(siamese: Path) -> None:
    inner = metric(siamese / "0_Transformer", "siamese").score(SEGMENTS)
    near(inner, metric(siamese, "siamese").score(SEGMENTS), 1e-9)


def test_long_texts_of_a_siamese_model_are_cut_one_by_one(siamese: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(siamese, tmp_path / "s"))
    with pytest.warns(TruncatedTextWarning, match="1 of 2 inputs are longer than the 30 pieces"):
        cut = metric(copy, "siamese").score([Segment(" ".join(["cat"] * 40), "Katze")])
    near(cut, metric(copy, "siamese").score([Segment(" ".join(["cat"] * 28), "Katze")]), 1e-6)


# Micro


def bad(plain: Plain, words: Sequence[str], room: int = 58) -> list[float]:
    """p(BAD) at the first piece of each word, NaN beyond the limit."""
    pieces, starts = [0], []
    for word in words:
        starts.append(len(pieces))
        pieces += plain.ids(word)
    logits = plain([*pieces[: room + 1], 2])
    table = (logits.exp() / logits.exp().sum(-1, keepdim=True))[:, 0].tolist()
    return [table[start] if start <= room else float("nan") for start in starts]


def row(segment: Segment) -> list[str]:
    hypothesis = segment.hypothesis.split()
    return [
        *(segment.source or "").split(),
        "[SEP]",
        "<gap>",
        *(part for word in hypothesis for part in (word, "<gap>")),
    ]


def test_micro_tags_words_and_gaps_at_their_first_piece(micro: Path) -> None:
    plain = Plain(micro, "XLMRobertaForTokenClassification")
    one = metric(micro, "micro")
    scores = one.score(SEGMENTS)
    for segment, tags, score in zip(SEGMENTS, one.tags(SEGMENTS), scores, strict=True):
        values = np.array(bad(plain, row(segment)))
        source = len((segment.source or "").split())
        near(tags.source, values[:source])
        near(tags.gaps, values[source + 1 :: 2])
        near(tags.hypothesis, values[source + 2 :: 2])
        assert score == pytest.approx(1 - values[source + 1 :].mean(), abs=1e-5)


def test_micro_word_scores_are_minus_the_probability_of_bad(micro: Path) -> None:
    one = metric(micro, "micro")
    tags = one.tags(SEGMENTS)
    for place, part in ((HYPOTHESIS, "hypothesis"), (SOURCE, "source")):
        words = [white_space(segment.text(place)) for segment in SEGMENTS]
        for found, own in zip(one.word_scores(SEGMENTS, place, words), tags, strict=True):
            near(found.importance, -getattr(own, part), 1e-12)
    (characters,) = one.word_scores(SEGMENTS[1:2], HYPOTHESIS, [Characters().split(SEGMENTS[1].hypothesis)])
    near(characters.importance[-5:], [-tags[1].hypothesis[2]] * 5, 1e-12)


def test_words_beyond_the_limit_are_not_taken_for_good_ones(micro: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(micro, tmp_path / "m"))
    one = metric(copy, "micro")
    text = " ".join(["cat"] * 40)
    segment = Segment(text, "Katze")
    with pytest.warns(TruncatedTextWarning, match="1 of 1 inputs are longer than the 60 pieces"):
        (found,) = one.word_scores([segment], HYPOTHESIS, [white_space(text)])
    expected = -np.array(bad(Plain(copy, "XLMRobertaForTokenClassification"), row(segment))[3::2])
    near(found.importance, expected)
    assert np.isnan(found.importance[-1])
    assert found.notes is not None
    assert found.notes[-1] == "truncated"
    (tags,) = one.tags([segment])
    read = np.concatenate([tags.hypothesis, tags.gaps])
    assert one.score([segment])[0] == pytest.approx(1 - np.nanmean(read), abs=1e-12)


def test_a_hypothesis_of_which_nothing_was_read_has_no_score(micro: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(micro, tmp_path / "m"))
    with pytest.warns(TruncatedTextWarning):
        assert np.isnan(metric(copy, "micro").score([Segment("cat", " ".join(["Die"] * 70))])).all()


def test_labels_come_from_the_arguments_or_the_configuration(micro: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(micro, tmp_path / "m"))
    near(metric(micro, "micro").score(SEGMENTS), 1 - metric(_relabelled(copy, ["OK", "BAD"]), "micro").score(SEGMENTS))
    (copy / "model_args.json").write_text("{}")
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"id2label": {"0": "BAD", "1": "OK"}}))
    near(metric(copy, "micro").score(SEGMENTS), metric(micro, "micro").score(SEGMENTS), 1e-6)
    with pytest.raises(DataError, match=re.escape("the labels are good, bad, expected OK and BAD among them")):
        metric(_relabelled(copy, ["good", "bad"]), "micro").score(SEGMENTS)
    with pytest.raises(DataError, match=re.escape("has 2 outputs, expected 3 for kind='micro'")):
        metric(_relabelled(copy, ["OK", "BAD", "SEP"]), "micro").score(SEGMENTS)


def _relabelled(folder: Path, labels: list[str]) -> Path:
    (folder / "model_args.json").write_text(json.dumps({"max_seq_length": 60, "labels_list": labels}))
    return folder


# All


@pytest.mark.parametrize("kind", ["mono", "siamese", "micro"])
def test_batches_and_order_change_nothing(kind: str, request: pytest.FixtureRequest) -> None:
    one = metric(request.getfixturevalue(kind), kind)
    texts = tiny_models.TEXTS
    segments = [
        Segment(" ".join(texts[i % 5].split()[: 1 + i % 5]), texts[(i * 3) % 5][: 5 + i % 11]) for i in range(64)
    ]
    whole = one.score(segments)
    for size in (1, 7, 64):
        parts = [one.score(segments[start : start + size]) for start in range(0, 64, size)]
        near(np.concatenate(parts), whole, 1e-6)
    order = np.random.default_rng(0).permutation(64)
    near(one.score([segments[i] for i in order]), whole[order], 1e-6)


def test_only_micro_models_have_word_scores(mono: Path, micro: Path) -> None:
    with pytest.raises(SpecError, match=re.escape("transquest(kind='mono') has no word scores; explain it with")):
        metric(mono, "mono").word_scores(SEGMENTS[:1], HYPOTHESIS, [white_space("The")])
    with pytest.raises(SpecError, match="transquest does not read references"):
        metric(micro, "micro").word_scores(SEGMENTS[:1], Place(Side.REFERENCE, 0), [white_space("The")])


def test_a_model_of_another_kind_is_refused(mono: Path, micro: Path) -> None:
    with pytest.raises(DataError, match=re.escape("has 2 outputs, expected 1 for kind='mono'")):
        metric(micro, "mono").score(SEGMENTS)
    with pytest.raises(DataError, match="the labels are LABEL_0, expected OK and BAD among them"):
        metric(mono, "micro").score(SEGMENTS)


def test_missing_weights_are_named(mono: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    copy = Path(shutil.copytree(mono, tmp_path / "m"))
    state = load_file(copy / "model.safetensors")
    del state["classifier.out_proj.weight"]
    save_file(state | {"surprise": torch.zeros(1)}, copy / "model.safetensors")
    with pytest.raises(DataError, match=re.escape("missing classifier.out_proj.weight; unexpected surprise")):
        metric(copy, "mono").score(SEGMENTS)


def test_leftovers_of_pre_training_are_passed_over(mono: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    copy = Path(shutil.copytree(mono, tmp_path / "m"))
    left = {
        "roberta.pooler.dense.weight": torch.zeros(32, 32),
        "roberta.pooler.dense.bias": torch.zeros(32),
        "roberta.embeddings.position_ids": torch.arange(66)[None],
    }
    torch.save(load_file(copy / "model.safetensors") | left, copy / "pytorch_model.bin")
    (copy / "model.safetensors").unlink()
    near(metric(copy, "mono").score(SEGMENTS), metric(mono, "mono").score(SEGMENTS), 1e-9)


def test_errors_say_what_to_do(tmp_path: Path, mono: Path) -> None:
    with pytest.raises(MissingExtra, match=re.escape(f"transquest: no folder {tmp_path}/none")):
        metric(tmp_path / "none", "mono").score(SEGMENTS)
    with pytest.raises(MissingInput, match="transquest needs the source"):
        metric(mono, "mono").score([Segment("a")])
    with pytest.raises(SpecError, match="a micro model tags words and predicts no hter"):
        TransQuest("m", "micro", predicts="hter")


class WithoutWords:
    """A metric whose word scores are left aside: the contract asks for them at every place a metric reads."""

    def __init__(self, metric: TransQuest) -> None:
        self.inputs, self.higher_is_better = metric.inputs, metric.higher_is_better
        self.signature, self.score = metric.signature, metric.score


@pytest.mark.filterwarnings("ignore:.*longer than the")  # this vocabulary spells many words out
@pytest.mark.parametrize("kind", ["mono", "siamese"])
def test_transquest_keeps_the_contract_of_metrics(kind: str, request: pytest.FixtureRequest) -> None:
    one = metric(request.getfixturevalue(kind), kind)
    check_metric(WithoutWords(one), tolerance=1e-5, rebuild="transquest" in list_names("metric"))


def test_micro_keeps_the_contract_of_metrics_and_word_scorers(micro: Path) -> None:
    check_metric(metric(micro, "micro"), SEGMENTS, tolerance=1e-5, rebuild="transquest" in list_names("metric"))


def test_the_signature_names_what_is_predicted(mono: Path) -> None:
    one = metric(mono, "mono")
    facts = dict(one.signature().facts)
    assert list(facts) == ["rev", "prec", "trunc", "predicts", "licence", "version"]
    assert (facts["trunc"], facts["predicts"]) == ("40", "quality")
    assert one.signature().spec == spec_of(one)
    assert isinstance(one, Metric)
    assert isinstance(one, WordScorer)
    assert one.score([]).shape == (0,)
