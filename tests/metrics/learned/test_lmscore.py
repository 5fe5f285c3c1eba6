"""Forced decoding under a causal language model: parity with the model's own logits, prompts, GGUF files, bad input."""

import json
import re
import shutil
import struct
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support import tiny_models
from support.corruption import PIECES, corrupted
from support.tiny_models import near
from whyscore.analysis.common import with_languages
from whyscore.analysis.explain import explain
from whyscore.analysis.score import score
from whyscore.data.formats.text import from_texts
from whyscore.errors import DataError, MissingExtra, MissingInput, SpecError, WhyscoreError
from whyscore.metrics.learned.lmscore import LmScore
from whyscore.metrics.learned.prompts import read_built_in, read_template, template_of
from whyscore.models import gguf, language_models
from whyscore.models.pairs import TruncatedTextWarning
from whyscore.protocols import WordScorer
from whyscore.registry import build
from whyscore.testing.checks import check_metric
from whyscore.text.splitters import white_space
from whyscore.types import HYPOTHESIS, SOURCE, Inputs, Segment

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.usefixtures("one_thread")

SEGMENTS = [
    Segment("The cat sat on the mat.", "Die Katze saß auf der Matte."),
    Segment("A dog slept", "Ein Hund schlief unter dem alten Tisch."),
    Segment("  The old  table", "Der alte {hypothesis} Tisch"),
    Segment("Kass istus 🐈 välja", "Die Katze saß auf der Matte."),
    Segment("", "Die Katze"),
]
PLAIN = "German: {source}\nEnglish:\n{hypothesis}\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("causal") / "qwen"
    tiny_models.save(
        place,
        "bart",
        "Qwen2ForCausalLM",
        blocks=2,
        std=0.15,
        limit=512,
        num_key_value_heads=2,
        tie_word_embeddings=False,
        bos_token_id=0,
        eos_token_id=2,
        pad_token_id=1,
    )
    return place


@pytest.fixture(scope="module")
def packed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model as a GGUF file."""
    pytest.importorskip("gguf")
    path = tmp_path_factory.mktemp("packed") / "tiny.gguf"
    tiny_models.save_gguf(folder, path)
    return path


@pytest.fixture
def fresh(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "fresh"))


def metric(model: Path, prompt: str | None = PLAIN, **options: object) -> LmScore:
    return LmScore(str(model), prompt, device="cpu", **options)  # type: ignore[arg-type]


class Plain:
    """The log-probabilities by the model's own logits, one text at a time."""

    def __init__(self, folder: Path) -> None:
        self.network = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

    def ids(self, text: str) -> list[int]:
        found: list[int] = self.tokenizer(text, add_special_tokens=False).input_ids
        return found

    def following(self, context: Sequence[int], pieces: Sequence[int]) -> np.ndarray:
        ids = [0, *context, *pieces]
        with torch.no_grad():
            logits = self.network(torch.tensor([ids])).logits[0].double()
        values = logits.log_softmax(-1)[range(len(ids) - 1), ids[1:]].numpy()
        return np.asarray(values[len(context) :])


@pytest.fixture(scope="module")
def plain(folder: Path) -> Plain:
    return Plain(folder)


# Parity


def test_the_score_is_the_mean_log_probability_after_the_prompt(folder: Path, plain: Plain) -> None:
    expected = []
    for segment in SEGMENTS:
        context = plain.ids(f"German: {segment.source}\nEnglish:\n")
        expected.append(plain.following(context, plain.ids(f"{segment.hypothesis.strip()}\n")).mean())
    near(metric(folder).score(SEGMENTS), expected)


def test_without_a_line_break_the_end_token_of_the_model_ends_the_text(folder: Path, plain: Plain) -> None:
    own = metric(folder, "{source}\n{hypothesis}")
    context, pieces = plain.ids("Die Katze\n"), plain.ids("The cat")
    values = plain.following(context, [*pieces, 2])
    segment = Segment("The cat", "Die Katze")
    near(own.score([segment]), [values.mean()])
    near(metric(folder, "{source}\n{hypothesis}", count="words").score([segment]), [values[:-1].mean()])


def test_word_scores_pool_the_log_probabilities_of_their_pieces(folder: Path, plain: Plain) -> None:
    segment = Segment("The cat slept", "Die Katze")
    context = plain.ids("German: Die Katze\nEnglish:\n")
    values = plain.following(context, plain.ids("The cat slept"))
    pieces = [plain.ids(word) for word in ("The", " cat", " slept")]
    parts = np.split(values, np.cumsum([len(own) for own in pieces])[:-1])
    words = white_space(segment.hypothesis)
    for pool in ("sum", "mean", "min"):
        (answer,) = metric(folder, pool=pool).word_scores([segment], HYPOTHESIS, [words])
        near(answer.importance, [getattr(part, pool)() for part in parts])
        assert answer.notes is not None
        assert answer.notes[0].startswith("log p: ")


def test_the_pieces_of_the_words_and_of_the_end_add_up_to_the_score(folder: Path) -> None:
    segment = SEGMENTS[0]
    own = metric(folder)
    (target,) = own._targets([segment])
    (answer,) = own.word_scores([segment], HYPOTHESIS, [white_space(segment.hypothesis)])
    total = answer.importance.sum() + target.end.sum()
    near(own.score([segment]), [total / (len(target.pieces.values) + len(target.end))])


def test_a_gguf_file_gives_the_numbers_of_its_folder(folder: Path, packed: Path, capsys: pytest.CaptureFixture) -> None:
    near(metric(packed).score(SEGMENTS), metric(folder).score(SEGMENTS))
    assert capsys.readouterr().err == ""
    facts = dict(metric(packed).signature().facts)
    assert (facts["licence"], facts["trunc"]) == ("apache-2.0", "512")
    assert facts["rev"] != dict(metric(folder).signature().facts)["rev"]


@pytest.mark.parametrize("budget", [1, 100, 8192])
def test_batches_change_nothing(folder: Path, budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = metric(folder).score(SEGMENTS)
    monkeypatch.setattr(language_models, "budget_of", lambda _: budget)
    near(metric(folder).score(SEGMENTS), whole)
    near(metric(folder).score(SEGMENTS[::-1])[::-1], whole)


def test_networks_that_return_all_logits_give_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = metric(folder).score(SEGMENTS)
    model = language_models.load_text_model(str(folder), "cpu", "fp32")
    forward = model.network.forward

    def without_choice(
        *, input_ids: object, attention_mask: object, use_cache: bool, past_key_values: object = None
    ) -> object:
        given = {"input_ids": input_ids, "attention_mask": attention_mask, "past_key_values": past_key_values}
        return forward(use_cache=use_cache, **given)

    monkeypatch.setattr(model.network, "forward", without_choice)
    near(metric(folder).score(SEGMENTS), expected)


def test_examples_are_read_once_for_all_segments(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = metric(folder, None, languages="de-en")
    model = language_models.load_text_model(str(folder), "cpu", "fp32")
    forward, sizes = model.network.forward, []

    def counted(input_ids: "torch.Tensor", **options: object) -> object:
        sizes.append(tuple(input_ids.shape))
        return forward(input_ids=input_ids, **options)

    alone = np.array([own.score([segment])[0] for segment in SEGMENTS])
    monkeypatch.setattr(model.network, "forward", counted)
    near(own.score(SEGMENTS), alone)
    (first, _), *rest = sizes
    assert first == 1
    assert sizes[0][1] > 100
    assert all(length < 80 for _, length in rest)


def test_lmscore_keeps_the_contract_of_metrics(folder: Path) -> None:
    check_metric(metric(folder, None), tolerance=1e-5)
    check_metric(metric(folder, "{hypothesis}"), tolerance=1e-5)


# Prompts


def test_prompts_name_the_languages_and_show_examples() -> None:
    prompt = read_built_in("translation", "et-en", 2)
    lines = prompt.template.splitlines()
    assert prompt.shots == 2
    assert [line.partition(":")[0] for line in lines if line] == ["Estonian", "English"] * 3
    assert lines[-2:] == ["Estonian: {source}", "English: {hypothesis}"]
    assert read_built_in("translation", "et-en", 1).template.count("Estonian:") == 2
    assert read_built_in("translation", "sw-en", 2).template == "Swahili: {source}\nEnglish: {hypothesis}\n"
    assert read_built_in("translation", None, 2).template == "Source: {source}\nTranslation: {hypothesis}\n"
    assert read_built_in("summarization", None, 2).template.count("Document: ") == 2


def test_the_languages_of_the_data_choose_the_prompt(folder: Path) -> None:
    data = from_texts({"A": ["A dog slept"]}, sources=["Ein Hund schlief"], languages=("de", "en"))
    own = metric(folder, None)
    with_names = metric(folder, None, languages="de-en")
    assert with_languages(own, ("de", "en")) == with_names
    assert score(data, own).values.tolist() == with_names.score(data.segments).tolist()
    assert own.score(data.segments).tolist() != with_names.score(data.segments).tolist()
    assert with_languages(metric(folder), ("de", "en")) == metric(folder)
    summary = metric(folder, None, task="summarization")
    assert with_languages(summary, ("de", "en")) == summary


def test_a_prompt_can_stand_in_a_file(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "prompt.txt"
    file.write_text(PLAIN, encoding="utf-8")
    assert read_template(str(file)) == template_of(PLAIN)
    own = metric(folder, str(file))
    assert own.score(SEGMENTS).tolist() == metric(folder).score(SEGMENTS).tolist()
    digest = dict(own.signature().facts)["prompt"]
    assert digest == dict(metric(folder).signature().facts)["prompt"]
    file.write_text(f"Translate. {PLAIN}", encoding="utf-8")
    assert dict(own.signature().facts)["prompt"] != digest
    file.write_text("no places", encoding="utf-8")
    with pytest.raises(DataError, match=re.escape(f"{file}: lmscore: a prompt has {{hypothesis}} once")):
        own.score(SEGMENTS)


def test_places_in_texts_are_not_filled_in() -> None:
    prompt = template_of(PLAIN)
    composed = prompt.compose("a {hypothesis} b", "c {source}")
    assert composed.text == "German: a {hypothesis} b\nEnglish:\nc {source}\n"
    assert composed.text[slice(*composed.source)] == "a {hypothesis} b"
    assert composed.text[slice(*composed.hypothesis)] == "c {source}"


def test_a_prompt_without_source_scores_fluency_and_needs_none(folder: Path) -> None:
    own = metric(folder, "{hypothesis}")
    assert own.inputs == Inputs.HYPOTHESIS
    first, second = own.score([Segment("A dog"), Segment("A dog", "Ein Hund")]).tolist()
    assert first == second


@pytest.mark.parametrize(
    ("prompt", "found"),
    [
        ("Translate this", "neither"),
        ("{source}", "{source}"),
        ("{hypothesis} {source}", "{hypothesis}, {source}"),
        ("{source} {source} {hypothesis}", "{source}, {source}, {hypothesis}"),
        ("{hypothesis}{hypothesis}", "{hypothesis}, {hypothesis}"),
    ],
)
def test_prompts_whose_places_cannot_be_used_are_refused(prompt: str, found: str) -> None:
    with pytest.raises(SpecError, match=re.escape(f"found {found} in {prompt!r}")):
        LmScore("model", prompt)


def test_wrong_options_are_refused() -> None:
    with pytest.raises(SpecError, match=re.escape("languages is 'german', expected two codes such as 'de-en'")):
        LmScore("model", languages="german")
    with pytest.raises(SpecError, match=re.escape("shots is -1, expected 0 or more")):
        LmScore("model", shots=-1)


# Words


def test_the_metrics_own_word_scores_explain_it(folder: Path) -> None:
    (found,) = explain(SEGMENTS[:1], metric(folder), "intrinsic")
    assert isinstance(metric(folder), WordScorer)
    assert (np.asarray(found.importance) < 0).all()


def test_the_source_has_no_word_scores(folder: Path) -> None:
    told = "lmscore has word scores for the hypothesis, whose words it predicts; asked for the source"
    with pytest.raises(SpecError, match=re.escape(told)):
        metric(folder).word_scores(SEGMENTS[:1], SOURCE, [white_space(SEGMENTS[0].source or "")])


def test_segments_must_have_a_source(folder: Path) -> None:
    with pytest.raises(MissingInput, match="lmscore needs the source: segment 1"):
        metric(folder).score([Segment("A dog")])


# Long texts


def test_a_long_source_loses_its_end_before_the_hypothesis_does(fresh: Path, plain: Plain) -> None:
    own = metric(fresh)
    words = white_space("A dog")
    with pytest.warns(TruncatedTextWarning, match="language model: 1 of 1 inputs are longer than the 512 pieces"):
        (target,) = own._targets([Segment("A dog", "x" * 1000)])
    assert len(target.pieces.values) == target.pieces.total
    before, between, text = plain.ids("German: "), plain.ids("\nEnglish:\n"), plain.ids("A dog\n")
    room = 512 - 1 - len(before) - len(between) - len(text)
    context = [*before, *plain.ids("x" * 1000)[:room], *between]
    near(own.score([Segment("A dog", "x" * 1000)]), [plain.following(context, text).mean()])
    assert np.isfinite(own.word_scores([Segment("A dog", "x" * 1000)], HYPOTHESIS, [words])[0].importance).all()


def test_words_beyond_the_limit_have_no_score(fresh: Path) -> None:
    text = " ".join(["dog"] * 900)
    with pytest.warns(TruncatedTextWarning):
        (answer,) = metric(fresh).word_scores([Segment(text, "Hund")], HYPOTHESIS, [white_space(text)])
    assert np.isfinite(answer.importance[:100]).all()
    assert np.isnan(answer.importance[-1])
    assert answer.notes is not None
    assert answer.notes[-1] == "truncated"
    assert np.isfinite(metric(fresh).score([Segment(text, "Hund")])).all()


def test_a_prompt_that_leaves_no_room_is_refused(folder: Path) -> None:
    with pytest.raises(SpecError, match=re.escape("the model reads 512: nothing is left for the hypothesis")):
        metric(folder, "x" * 2000 + "{source}{hypothesis}").score(SEGMENTS[:1])


# Models that cannot be used


@pytest.mark.parametrize("name", ["BertForMaskedLM", "BartForConditionalGeneration", "MT5EncoderModel"])
def test_models_that_are_not_causal_are_refused(name: str, tmp_path: Path) -> None:
    family = name.partition("For")[0].lower().removesuffix("encodermodel")
    ends = {"bos_token_id": 2, "eos_token_id": 3}
    tiny_models.save(tmp_path / "m", family, name, blocks=1, std=0.3, **ends)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match=re.escape(f"is a {family} model, expected a causal one, as gpt2")):
        metric(tmp_path / "m").score(SEGMENTS[:1])


def test_missing_models_are_named_with_the_command_that_fetches_them(tmp_path: Path) -> None:
    with pytest.raises(MissingExtra, match=re.escape("no file nowhere/a.gguf. Fetch it with: hf download")):
        LmScore("nowhere/a.gguf").score(SEGMENTS)
    (tmp_path / "empty").mkdir()
    with pytest.raises(MissingExtra, match=re.escape("has no model.safetensors")):
        metric(tmp_path / "empty").score(SEGMENTS)


def test_without_the_package_the_extra_is_named(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    language_models._load.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "gguf", None)
    with pytest.raises(MissingExtra, match=re.escape("pip install 'whyscore[gguf,neural]'")):
        metric(packed).score(SEGMENTS[:1])


def test_pickled_weights_and_code_of_a_model_are_not_run(fresh: Path) -> None:
    (fresh / "model.safetensors").rename(fresh / "weights.safetensors")
    torch.save({}, fresh / "pytorch_model.bin")
    with pytest.raises(MissingExtra, match=re.escape("has no model.safetensors")):
        metric(fresh).score(SEGMENTS[:1])
    (fresh / "weights.safetensors").rename(fresh / "model.safetensors")
    (fresh / "mine.py").write_text("raise SystemExit('run')\n", encoding="utf-8")
    config = json.loads((fresh / "config.json").read_text("utf-8"))
    config |= {"model_type": "mine", "auto_map": {"AutoConfig": "mine.Config", "AutoModelForCausalLM": "mine.Model"}}
    (fresh / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(WhyscoreError, match="models that bring their own code are not run"):
        metric(fresh).score(SEGMENTS[:1])


def test_damaged_safetensors_are_told(fresh: Path) -> None:
    weights = fresh / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(DataError, match=re.escape("model.safetensors: is damaged")):
        metric(fresh).score(SEGMENTS[:1])


# Damaged GGUF files


def test_a_header_is_read_without_its_vocabulary(packed: Path) -> None:
    header = gguf.header_of(packed)
    assert header["general.architecture"] == "qwen2"
    assert header["qwen2.context_length"] == 512
    assert "tokenizer.ggml.tokens" not in header


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "it does not begin with GGUF"),
        (b"{}", "it does not begin with GGUF"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "it has version 1, expected 2 or 3"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**60), "it names a text of 1152921504606846976 bytes"),
        (b"GGUF" + struct.pack("<IQQQ1sI", 3, 0, 1, 1, b"a", 99), "it has a value of the unknown type 99"),
        (b"GGUF" + struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"a", 9, 0, 2**50), "it names a list of 1125899906842624"),
        (b"GGUF\x03", "unpack requires a buffer"),
    ],
)
def test_files_that_are_not_gguf_are_told(content: bytes, told: str, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    with pytest.raises(DataError, match=re.escape(told)):
        metric(path).signature()


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.99])
def test_a_gguf_file_that_ends_early_is_told(kept: float, packed: Path, tmp_path: Path) -> None:
    content = packed.read_bytes()
    path = tmp_path / "m.gguf"
    path.write_bytes(content[: int(kept * len(content))])
    with pytest.raises(DataError, match=re.escape("m.gguf: is damaged, or no GGUF file that transformers reads")):
        metric(path).score(SEGMENTS[:1])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    edits=st.lists(
        st.tuples(st.floats(0, 0.3), st.integers(0, len(PIECES) - 1), st.integers(0, 8)), min_size=1, max_size=3
    )
)
def test_damaged_gguf_files_raise_errors_of_ours(edits: list[tuple[float, int, int]], packed: Path) -> None:
    path = packed.parent / "damaged.gguf"
    path.write_bytes(corrupted(packed.read_bytes(), edits))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            values = metric(path).score(SEGMENTS[:2])
        except WhyscoreError:
            return
    assert values.shape == (2,)


def test_the_signature_names_model_and_prompt(folder: Path) -> None:
    signature = metric(folder, None, languages="de-en").signature()
    assert list(dict(signature.facts)) == ["rev", "prompt", "shots", "prec", "trunc", "licence", "version"]
    assert dict(signature.facts)["shots"] == "2"
    assert dict(metric(folder).signature().facts)["shots"] == "own"
    assert build(signature.spec).signature() == signature
