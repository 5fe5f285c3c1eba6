"""MoverScore and XMoverScore: parity with a plain re-statement of each version, words, maps, refusals, counts."""

import re
import string
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from support import tiny_models
from whyscore.analysis.explain import explain
from whyscore.analysis.learn_map import learn_map
from whyscore.errors import DataError, MissingExtra, MissingInput, SpecError
from whyscore.metrics.matching import weights as moverscore_masses
from whyscore.metrics.matching.moverscore import Mover, MoverScore, XMoverScore
from whyscore.models import language_models as text_probability
from whyscore.models.encoders import loading as pinning
from whyscore.models.encoders.embedded import Embedded
from whyscore.models.encoders.transformer import PowerMeans
from whyscore.models.maps import LanguageMap, write_map
from whyscore.models.pairs import TruncatedTextWarning
from whyscore.protocols import Encoded
from whyscore.registry import build, spec_of
from whyscore.testing.checks import check_metric
from whyscore.text.splitters import white_space
from whyscore.types import HYPOTHESIS, SOURCE, Place, Segment, Side

pytest.importorskip("lmm.static", reason="the extra 'static' is not installed")
ot = pytest.importorskip("ot", reason="the extra 'mover' is not installed")
torch = pytest.importorskip("torch", reason="the extra 'neural' is not installed")
transformers = pytest.importorskip("transformers", reason="the extra 'neural' is not installed")

pytestmark = pytest.mark.usefixtures("one_thread")

Matrix = NDArray[np.float64]

SEGMENTS = [
    Segment("The cat sat on the mat.", "Die Katze saß auf der Matte.", ("A dog slept under the old table.",)),
    Segment("A dog slept", "Ein Hund schlief unter dem alten Tisch.", ("A dog slept under the mat", "The cat sat.")),
    Segment("  The old  table , didn't it?", "Kass istus matil", ("The mat",)),
]
PAIRS = [(one.references[0], one.hypothesis) for one in SEGMENTS]


@pytest.fixture(autouse=True)
def forgotten() -> None:
    """What was told or pinned in another test would hide what this one looks for."""
    moverscore_masses.tell_uniform.cache_clear()
    pinning._make_pinned.cache_clear()


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("bert") / "b"
    tiny_models.save(folder, "bert", "BertModel", blocks=8, std=0.15)
    return str(folder)


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("gpt") / "g"
    tiny_models.save(folder, "bart", "GPT2LMHeadModel", blocks=2, std=0.15, bos_token_id=0, eos_token_id=2)
    return str(folder)


# The published versions, restated plainly: one text at a time, the square form of the transport.


class Plain:
    """A tiny BERT with its tokenizer, without batches or padding."""

    def __init__(self, folder: str) -> None:
        self.network = transformers.AutoModel.from_pretrained(folder).eval()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

    def states(self, text: str) -> tuple[list[str], list[Matrix]]:
        coded = self.tokenizer(text.strip(), return_tensors="pt", return_token_type_ids=False)
        with torch.no_grad():
            states = self.network(**coded, output_hidden_states=True).hidden_states
        return self.tokenizer.convert_ids_to_tokens(coded.input_ids[0]), [one[0].double().numpy() for one in states]


def unit(rows: Matrix) -> Matrix:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def five_layers(states: list[Matrix]) -> Matrix:
    table = np.stack([unit(state) for state in states[-5:]])
    return np.concatenate([table.min(0), table.mean(0), table.max(0)], axis=1)


def dropped(pieces: Sequence[str]) -> list[int]:
    return [k for k, piece in enumerate(pieces) if piece not in string.punctuation and "##" not in piece]


def square_form(left: Matrix, right: Matrix, a: Matrix, b: Matrix, power: int) -> tuple[Matrix, Matrix]:
    both = np.concatenate([left, right])
    cost = np.linalg.norm(both[:, None] - both[None], axis=2) ** power
    first = np.concatenate([a, np.zeros(len(b))]) / a.sum()
    second = np.concatenate([np.zeros(len(a)), b]) / b.sum()
    return ot.emd(first, second, cost), cost


def distance(
    plain: Plain,
    pair: tuple[str, str],
    read: Callable[[list[Matrix]], Matrix],
    power: int,
    *,
    drop: bool,
    ngram: int = 1,
) -> float:
    sides = []
    for text in pair:
        pieces, states = plain.states(text)
        rows = read(states)[dropped(pieces) if drop else range(len(pieces))]
        windows = [unit(rows[k : k + ngram].mean(axis=0)[None])[0] for k in range(len(rows) - ngram + 1)]
        sides.append(np.stack(windows))
    flow, cost = square_form(sides[0], sides[1], np.ones(len(sides[0])), np.ones(len(sides[1])), power)
    return float((flow * cost).sum())


# Texts whose words are the same with and without the look of pieces.
EASY = [(one.replace("didn't", "did"), other.replace("didn't", "did")) for one, other in PAIRS]


def test_moverscore_v2_is_the_last_layer_without_punctuation_and_word_ends(bert: str) -> None:
    plain = Plain(bert)
    expected = [1 / (1 + distance(plain, pair, lambda s: s[-1], 1, drop=True)) for pair in EASY]
    segments = [Segment(hypothesis, None, (reference,)) for reference, hypothesis in EASY]
    found = MoverScore(bert, idf="uniform").score(segments)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_moverscore_v1_joins_five_layers(bert: str) -> None:
    plain = Plain(bert)
    expected = [1 - distance(plain, pair, five_layers, 2, drop=True) for pair in EASY]
    segments = [Segment(hypothesis, None, (reference,)) for reference, hypothesis in EASY]
    found = MoverScore(bert, version="v1", idf="uniform").score(segments)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("version", "drop"), [("v1", True), ("v1-keep", False)])
def test_xmoverscore_v1_is_the_last_layer_by_squared_distance(bert: str, version: str, *, drop: bool) -> None:
    plain = Plain(bert)
    pairs = [(one.source or "", one.hypothesis.replace("didn't", "did")) for one in SEGMENTS]
    expected = [1 - distance(plain, pair, lambda s: s[-1], 2, drop=drop) for pair in pairs]
    found = XMoverScore(bert, version=version).score([Segment(y, x) for x, y in pairs])  # type: ignore[arg-type]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_xmoverscore_v2_moves_pairs_of_pieces_of_layer_eight(bert: str) -> None:
    plain = Plain(bert)
    pairs = [(one.source or "", one.hypothesis) for one in SEGMENTS]
    expected = [1 - distance(plain, pair, lambda s: s[8], 1, drop=False, ngram=2) for pair in pairs]
    metric = XMoverScore(bert, version="v2", flow_drop=0.0)
    np.testing.assert_allclose(metric.score(SEGMENTS), expected, rtol=0, atol=1e-6)
    assert (XMoverScore(bert, version="v2").score(SEGMENTS) > metric.score(SEGMENTS)).all()  # flows are left out


def test_idf_weighs_references_and_hypotheses_by_their_own_texts(bert: str, tmp_path: Path) -> None:
    plain = Plain(bert)
    files = {"ref": [one.references[0] for one in SEGMENTS], "hyp": [one.hypothesis for one in SEGMENTS]}
    tables = {}
    for name, texts in files.items():
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts), "utf-8")
        seen = [set(plain.states(text)[0]) for text in texts]
        tables[name] = {p: np.log(4 / (1 + sum(p in own for own in seen))) for own in seen for p in own}
    expected = []
    for reference, hypothesis in PAIRS:
        (left, one), (right, other) = plain.states(reference), plain.states(hypothesis)
        a, b = np.array([tables["ref"][p] for p in left]), np.array([tables["hyp"][p] for p in right])
        flow, cost = square_form(unit(one[-1]), unit(other[-1]), a, b, 1)
        expected.append(1 / (1 + float((flow * cost).sum())))
    metric = MoverScore(bert, tokens="keep", idf=str(tmp_path / "ref"), idf_hypothesis=str(tmp_path / "hyp"))
    segments = [Segment(hypothesis, None, (reference,)) for reference, hypothesis in PAIRS]
    np.testing.assert_allclose(metric.score(segments), expected, rtol=0, atol=1e-6)
    assert re.search(r"\|mass:idf-[0-9a-f]{12}\+idf-[0-9a-f]{12}\|", str(metric.signature()))


def test_power_means_are_an_encoder_of_their_own(bert: str) -> None:
    pieces, states = Plain(bert).states("The cat sat")
    found = PowerMeans(bert, layers=5).encode(["The cat sat"])[0]
    assert found.pieces == tuple(pieces)
    np.testing.assert_allclose(found.vectors, five_layers(states), rtol=0, atol=1e-5)
    mean = PowerMeans(bert).pooled(["The cat sat", "The cat sat"])
    np.testing.assert_allclose(mean[1], found.vectors.mean(axis=0), rtol=0, atol=1e-6)
    assert dict(PowerMeans(bert).signature().facts)["layer"] == "4-8/8"
    with pytest.raises(SpecError, match=re.escape("has 8 blocks, got layers=9")):
        PowerMeans(bert, layers=9).encode(["a"])
    with pytest.raises(SpecError, match=re.escape("power_means: layers is 0, expected 1 or more")):
        PowerMeans(bert, layers=0)


# The contract, order, batches


@pytest.mark.parametrize(
    "metric",
    [
        XMoverScore(),
        XMoverScore(version="v2", flow_drop=0.0),
        XMoverScore("static", word="flow", mode="paper"),
        MoverScore("static", idf="uniform"),
        MoverScore("static", idf="uniform", references="max", tokens="keep", ngram=3),
    ],
    ids=spec_of,
)
def test_the_contract_is_kept(metric: Mover) -> None:
    check_metric(metric, tolerance=1e-9)


def test_networks_keep_the_contract(bert: str) -> None:
    check_metric(XMoverScore(bert), SEGMENTS, tolerance=1e-6)
    check_metric(MoverScore(bert, version="v1", idf="uniform", word="flow"), SEGMENTS, tolerance=1e-6)


def test_batches_and_order_change_nothing(bert: str) -> None:
    texts = [text for one in SEGMENTS for text in (one.hypothesis, one.source or "")]
    segments = [Segment(left, right) for left in texts for right in texts]
    metric = XMoverScore(bert)
    whole = metric.score(segments)
    for size in (1, 7):
        pinning._make_pinned.cache_clear()
        parts = [metric.score(segments[k : k + size]) for k in range(0, len(segments), size)]
        np.testing.assert_allclose(np.concatenate(parts), whole, rtol=0, atol=1e-6)
    order = np.random.default_rng(0).permutation(len(segments))
    np.testing.assert_allclose(metric.score([segments[k] for k in order]), whole[order], rtol=0, atol=1e-6)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that the embedded encoder was asked for."""
    asked: list[str] = []
    encode = Embedded.encode

    def counting(self: Embedded, texts: Sequence[str]) -> list[Encoded]:
        asked.extend(dict.fromkeys(texts))
        return encode(self, texts)

    monkeypatch.setattr(Embedded, "encode", counting)
    return asked


def test_every_distinct_text_is_encoded_once(counted: list[str]) -> None:
    segments = [Segment(f"a cat {k % 3}", f"ein Hund {k % 2}") for k in range(30)]
    XMoverScore().score(segments)
    assert sorted(counted) == sorted({one.hypothesis for one in segments} | {one.source or "" for one in segments})


def test_erasure_encodes_sources_and_probes_once_in_any_order(counted: list[str]) -> None:
    segments = [Segment("I have a cat", "Ich habe einen Hund"), Segment("I have", "Ich habe einen Hund")]
    explain(segments, XMoverScore(), "erasure", sides=["hypothesis"])
    first = sorted(counted)
    assert len(first) == len(set(first))
    assert first.count("Ich habe einen Hund") == 1
    counted.clear()
    pinning._make_pinned.cache_clear()
    explain(segments[::-1], XMoverScore(), "erasure", sides=["hypothesis"])
    assert sorted(counted) == first


@given(st.text(max_size=25), st.text(max_size=25))
def test_any_two_texts_have_a_finite_score_within_its_range(left: str, right: str) -> None:
    segment = Segment(left, right)
    scores = [XMoverScore("static", tokens=tokens).score([segment])[0] for tokens in ("keep", "drop")]  # type: ignore[arg-type]
    scores.append(MoverScore("static", idf="uniform").score([Segment(left, None, (right,))])[0])
    assert all(-3 <= score <= 1 for score in scores)
    assert XMoverScore("static").score([Segment(left, left)])[0] in (pytest.approx(1, abs=1e-12), -1)


# Words


def words_of(metric: Mover, segment: Segment, place: Place) -> tuple[Matrix, tuple[str, ...]]:
    (answer,) = metric.word_scores([segment], place, [white_space(segment.text(place))])
    return answer.importance, answer.notes or ()


CAT = Segment("I have a cat .", "Ich habe einen Hund .")


def test_a_word_costs_its_distance_to_the_nearest(bert: str) -> None:
    plain = Plain(bert)
    segment = SEGMENTS[0]
    (left, one), (right, other) = plain.states(segment.source or ""), plain.states(segment.hypothesis)
    cost = np.linalg.norm(unit(one[-1])[:, None] - unit(other[-1])[None], axis=2) ** 2
    assert len(left) == cost.shape[0]
    found, notes = words_of(XMoverScore(bert), segment, HYPOTHESIS)
    nearest = dict(zip(range(len(right)), cost.min(axis=0), strict=True))
    spans = plain.tokenizer(segment.hypothesis, return_offsets_mapping=True).offset_mapping
    for number, (start, end) in enumerate(white_space(segment.hypothesis).spans):
        own = [nearest[k] for k, (s, e) in enumerate(spans) if s < end and e > start]
        assert found[number] == pytest.approx(-np.mean(own), abs=1e-5)
    assert len(notes) == 6


def test_the_wrong_word_costs_most_on_both_sides_and_names_its_counterpart() -> None:
    for place, wrong, note in ((HYPOTHESIS, 3, "to Hund 1.536"), (SOURCE, 3, "to cat 1.536")):
        found, notes = words_of(XMoverScore(), CAT, place)
        assert int(found.argmin()) == wrong
        assert notes[wrong] == note
        assert (found <= 0).all()
        (answer,) = XMoverScore().word_scores([CAT], place, [white_space(CAT.text(place))])
        (match,) = (answer.matches or ())[wrong]
        assert match.similarity == pytest.approx(1 + found[wrong] / 2)
        assert CAT.text(match.partner_place(place))[match.start : match.end] == match.partner_text


@pytest.mark.parametrize("ngram", [1, 3])
@pytest.mark.parametrize("specials", ["include", "exclude"])
@pytest.mark.parametrize("tokens", ["keep", "words"])
def test_transported_cost_adds_up_to_the_distance(ngram: int, specials: str, tokens: str) -> None:
    metric = XMoverScore(word="flow", ngram=ngram, specials=specials, tokens=tokens)  # type: ignore[arg-type]
    total = 1 - metric.score([CAT])[0]
    for place in (HYPOTHESIS, SOURCE):
        found = float(words_of(metric, CAT, place)[0].sum())
        if specials == "exclude":
            assert -found == pytest.approx(total, abs=1e-9)
        else:
            assert 0 <= -found <= total + 1e-9


def test_words_that_were_dropped_take_the_previous_number_or_cost_nothing() -> None:
    found, notes = words_of(XMoverScore(version="v1"), CAT, HYPOTHESIS)
    assert (found[4], notes[4]) == (found[3], "dropped, filled")
    found, notes = words_of(XMoverScore(version="v1", word="flow"), CAT, HYPOTHESIS)
    assert (found[4], notes[4]) == (0, "dropped")
    found, _ = words_of(XMoverScore(version="v1", fill="null"), CAT, HYPOTHESIS)
    assert np.isnan(found[4])
    with pytest.raises(DataError, match=re.escape("1 word(s) of 'I have a cat .' have no piece, first '.'; choose")):
        words_of(XMoverScore(version="v1", fill="error"), CAT, HYPOTHESIS)


def test_several_references_count_by_their_mean_or_the_best() -> None:
    both = Segment("I have a cat", None, ("You see the dogs there", "I have a cat"))
    alone = [Segment("I have a cat", None, (text,)) for text in both.references]
    mean, best = (MoverScore("embedded", idf="uniform", references=how) for how in ("mean", "max"))  # type: ignore[arg-type]
    single = mean.score(alone)
    assert mean.score([both])[0] == pytest.approx(single.mean())
    assert best.score([both])[0] == pytest.approx(single.max()) == pytest.approx(1)
    parts = [words_of(mean, one, HYPOTHESIS)[0] for one in alone]
    found, notes = words_of(mean, both, HYPOTHESIS)
    assert found == pytest.approx(np.mean(parts, axis=0))
    assert notes[3] == "reference 2: to cat 0"
    blank = Segment("I have a cat", None, ("", *both.references))
    assert words_of(mean, blank, HYPOTHESIS)[1][3] == "reference 3: to cat 0"
    (answer,) = mean.word_scores([blank], HYPOTHESIS, [white_space(blank.hypothesis)])
    assert [own[0].alignment for own in answer.matches or ()] == [2, 2, 2, 2]
    assert words_of(best, both, HYPOTHESIS)[0] == pytest.approx(parts[1])
    assert words_of(best, both, Place(Side.REFERENCE, 0))[0].max() < -0.1


def test_weightless_special_pieces_are_not_moved_but_can_be_the_nearest() -> None:
    segment = Segment("I have", "")
    gone, weightless = (XMoverScore(specials=how) for how in ("exclude", "weightless"))  # type: ignore[arg-type]
    assert gone.score([CAT])[0] == pytest.approx(weightless.score([CAT])[0], abs=1e-12)
    assert gone.score([segment])[0] == weightless.score([segment])[0] == pytest.approx(-1)
    assert words_of(gone, segment, HYPOTHESIS)[0] == pytest.approx([-2, -2])
    assert (words_of(weightless, segment, HYPOTHESIS)[0] > -2).all()


def test_a_reference_that_is_given_twice_counts_twice() -> None:
    metric = MoverScore("static", idf="uniform")
    texts = ("a cat is here", "I have a dog", "a cat is here")
    single = metric.score([Segment("I have a cat", None, (text,)) for text in texts])
    assert metric.score([Segment("I have a cat", None, texts)])[0] == pytest.approx(single.mean())


def test_a_side_without_mass_is_as_far_as_can_be() -> None:
    empty = Segment("", "Ich habe")
    assert XMoverScore(specials="exclude").score([empty])[0] == pytest.approx(1 - 2)
    assert XMoverScore(mode="paper").score([empty])[0] == pytest.approx(1 - 2**0.5)
    assert XMoverScore(mode="paper", form="1/(1+d)").score([empty])[0] == pytest.approx(1 / (1 + 2**0.5))
    for word in ("min", "flow"):
        metric = XMoverScore(specials="exclude", word=word)  # type: ignore[arg-type]
        found, notes = words_of(metric, empty, SOURCE)
        expected = [-2.0, -2.0] if word == "min" else [-1.0, -1.0]
        assert found == pytest.approx(expected)
        assert notes == ("nothing to go to", "nothing to go to")
        assert words_of(metric, empty, HYPOTHESIS)[0].tolist() == []


def test_a_text_that_is_cut_is_told_and_its_end_has_no_number(bert: str) -> None:
    long = Segment(" ".join(["mat"] * 80), "Die Katze")
    metric = XMoverScore(bert)
    assert dict(metric.signature().facts)["trunc"] == "64"
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found, notes = words_of(metric, long, HYPOTHESIS)
    assert [str(one.message) for one in told if one.category is TruncatedTextWarning] == [
        "transformer: 1 of 2 inputs are longer than the 64 pieces the model reads; their ends do not count in the score"
    ]
    assert np.isfinite(found[0])
    assert np.isnan(found[-1])
    assert notes[-1] == "truncated"
    with pytest.raises(DataError, match=re.escape("Shorten it, or choose long='truncate' or long='window'")):
        XMoverScore(bert, long="error").score([long])


# Maps


def turned(folder: Path, seed: int = 0) -> tuple[str, LanguageMap]:
    rng = np.random.default_rng(seed)
    turn = np.eye(512)[rng.permutation(512)] * rng.choice([-1.0, 1.0], 512)
    learned = LanguageMap(turn, unit(rng.standard_normal((1, 512)))[0])
    write_map(learned, folder / "map.npz")
    return str(folder / "map.npz"), learned


def test_only_the_source_is_projected(tmp_path: Path) -> None:
    path, learned = turned(tmp_path)
    source, hypothesis = Embedded().encode([CAT.source or "", CAT.hypothesis])
    left = unit(learned.apply(source.vectors, "clp"))
    right = unit(hypothesis.vectors.astype(np.float64))
    flow, cost = square_form(left, right, np.ones(len(left)), np.ones(len(right)), 2)
    expected = 1 - float((flow * cost).sum())
    assert XMoverScore(map=path).score([CAT])[0] == pytest.approx(expected, abs=1e-9)
    assert XMoverScore(map=path, remap="clp").score([CAT])[0] == pytest.approx(expected, abs=1e-9)
    assert f"|map:clp-{learned.digest}|" in str(XMoverScore(map=path).signature())


@pytest.mark.parametrize("mode", ["compat", "paper"])
def test_a_direction_is_taken_out_of_the_source_or_in_print_of_both(tmp_path: Path, mode: str) -> None:
    path, learned = turned(tmp_path)
    source, hypothesis = Embedded().encode([CAT.source or "", CAT.hypothesis])
    kept = [own.vectors[~own.special].astype(np.float64) for own in (source, hypothesis)]
    left = unit(learned.apply(kept[0], "umd"))
    right = unit(learned.apply(kept[1], "umd") if mode == "paper" else kept[1])
    flow, cost = square_form(left, right, np.ones(len(left)), np.ones(len(right)), 1)
    metric = XMoverScore(map=path, remap="umd", mode=mode, specials="exclude", cost="euclid")  # type: ignore[arg-type]
    assert metric.score([CAT])[0] == pytest.approx(1 - float((flow * cost).sum()), abs=1e-9)


def test_a_learned_map_is_known_by_its_weights_and_layer(bert: str, tmp_path: Path) -> None:
    sources, targets = [one.source or "" for one in SEGMENTS], [one.hypothesis for one in SEGMENTS]
    write_map(learn_map(sources, targets, model=bert, layer=8), tmp_path / "8.npz")
    write_map(learn_map(sources, targets, model=bert, layer=5), tmp_path / "5.npz")
    assert XMoverScore(bert, map=str(tmp_path / "8.npz"), device="cpu").score(SEGMENTS).shape == (3,)
    with pytest.raises(SpecError, match=re.escape("5.npz was learned for layer 5/8, the metric uses layer 8/8; learn")):
        XMoverScore(bert, map=str(tmp_path / "5.npz")).score(SEGMENTS)
    with pytest.raises(SpecError, match=re.escape("8.npz maps vectors of 32 numbers, the model gives 512")):
        XMoverScore(map=str(tmp_path / "8.npz")).score(SEGMENTS)
    with pytest.raises(DataError, match=re.escape("learn one with learn_map")):
        XMoverScore(map=str(tmp_path / "none.npz")).score(SEGMENTS)


def test_a_kind_of_map_without_a_map_is_answered_with_the_command_that_learns_one() -> None:
    message = (
        "xmoverscore: remap='clp' needs a map for the two languages. Learn one: whyscore learn-map -s src.txt "
        "-t tgt.txt --model ./my-mbert -o map.npz, and give it as map='map.npz'"
    )
    with pytest.raises(SpecError, match=re.escape(message)):
        build("xmoverscore(model='./my-mbert', remap='clp')")


# The language model


def test_a_language_model_adds_a_tenth_of_its_mean_log_probability(gpt: str) -> None:
    network = transformers.AutoModelForCausalLM.from_pretrained(gpt).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(gpt)
    expected = []
    printed = []
    for text in ("I have a cat", "I", ""):
        pieces = tokenizer(text, add_special_tokens=False).input_ids or [2]
        with torch.no_grad():
            logits = network(torch.tensor([[0, *pieces]])).logits[0, :-1].double()
            printed.append(float(logits.log_softmax(-1)[range(len(pieces)), pieces].mean()))
            later = network(torch.tensor([pieces])).logits[0, :-1].double().log_softmax(-1)
        expected.append(float(later[range(len(pieces) - 1), pieces[1:]].mean()) if len(pieces) > 1 else 0.0)
    segments = [Segment(text, "Ich habe") for text in ("I have a cat", "I", "")]
    metric = XMoverScore(lm=gpt)
    np.testing.assert_allclose(XMoverScore(lm=gpt, mode="paper").statistics(segments)[:, 1], printed, rtol=0, atol=1e-5)
    rows = metric.statistics(segments)
    assert metric.columns == ("mover", "lm")
    np.testing.assert_allclose(rows[:, 1], expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(metric.score(segments), XMoverScore().score(segments) + 0.1 * rows[:, 1], atol=1e-9)
    assert words_of(metric, CAT, HYPOTHESIS)[0].tolist() == words_of(XMoverScore(), CAT, HYPOTHESIS)[0].tolist()


def test_log_probabilities_are_part_of_the_word_scores_where_asked_for(gpt: str) -> None:
    network = transformers.AutoModelForCausalLM.from_pretrained(gpt).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(gpt)
    coded = tokenizer(CAT.hypothesis, add_special_tokens=False, return_offsets_mapping=True)
    with torch.no_grad():
        logits = network(torch.tensor([[0, *coded.input_ids]])).logits[0, :-1].double()
    pieces = logits.log_softmax(-1)[range(len(coded.input_ids)), coded.input_ids]
    words = white_space(CAT.hypothesis)
    means = [
        float(np.mean([value for value, span in zip(pieces.tolist(), coded.offset_mapping, strict=True)
                       if span[0] < end and start < span[1] and CAT.hypothesis[slice(*span)].strip()]))
        for start, end in words.spans
    ]  # fmt: skip
    plain = words_of(XMoverScore(), CAT, HYPOTHESIS)[0]
    metric = XMoverScore(lm=gpt, lm_words=0.5)
    np.testing.assert_allclose(words_of(metric, CAT, HYPOTHESIS)[0], plain + 0.5 * np.array(means), rtol=0, atol=1e-5)
    # The model says nothing of the source.
    assert words_of(metric, CAT, SOURCE)[0].tolist() == words_of(XMoverScore(), CAT, SOURCE)[0].tolist()
    np.testing.assert_allclose(metric.score([CAT]), XMoverScore(lm=gpt).score([CAT]), rtol=0, atol=0)


def test_probabilities_of_words_need_a_language_model() -> None:
    with pytest.raises(SpecError, match=re.escape("xmoverscore: lm_words=0.5 needs a language model: give lm=")):
        XMoverScore(lm_words=0.5)


def test_paper_mode_has_euclidean_distances_in_scores_and_words() -> None:
    paper, euclidean = XMoverScore(mode="paper"), XMoverScore(specials="exclude", cost="euclid")
    assert words_of(paper, CAT, HYPOTHESIS)[0].tolist() == words_of(euclidean, CAT, HYPOTHESIS)[0].tolist()
    assert paper.score([CAT]).tolist() == euclidean.score([CAT]).tolist()
    squared = XMoverScore(specials="exclude", pool="max")  # of the pieces of a word the nearest
    nearest = words_of(XMoverScore(mode="paper", pool="max"), CAT, HYPOTHESIS)[0]
    np.testing.assert_allclose(-(nearest**2), words_of(squared, CAT, HYPOTHESIS)[0], rtol=0, atol=1e-9)


def test_a_model_that_is_no_language_model_is_refused(tmp_path: Path) -> None:
    tiny_models.save(tmp_path / "t", "mt5", "MT5EncoderModel", blocks=1)
    with pytest.raises(SpecError, match=re.escape("is a mt5 model, expected a causal one, as gpt2")):
        text_probability.load_text_model(str(tmp_path / "t"), "cpu", "fp32")


# Specs and refusals


def test_without_a_model_moverscore_names_the_offline_way(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(MissingExtra, match=re.escape("To work offline: moverscore(model='embedded')")):
        MoverScore().score(SEGMENTS)
    with pytest.raises(MissingExtra, match=re.escape("moverscore(version='v1', model='./MNLI_BERT'), or work offline")):
        MoverScore(version="v1").signature()


def test_equal_weights_are_told_once_where_idf_was_published() -> None:
    segment = Segment("a cat", None, ("a dog",))
    message = "moverscore: every piece weighs the same; the published metric weighs by idf. Give texts to count in, "
    with pytest.warns(moverscore_masses.MassNotice, match=re.escape(message)):
        MoverScore("embedded").score([segment])
    MoverScore("embedded").score([segment])  # a second warning would be an error
    moverscore_masses.tell_uniform.cache_clear()
    MoverScore("embedded", idf="uniform").score([segment])
    XMoverScore().score([CAT])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("xmoverscore(version='v3')", "xmoverscore: version is 'v3', expected 'v1' or 'v1-keep' or 'v2'"),
        ("moverscore(version='v1-keep')", "moverscore: version is 'v1-keep', expected 'v1' or 'v2'"),
        ("moverscore(ngram=0)", "moverscore: ngram is 0, expected 1 or more"),
        ("xmoverscore(layers=0)", "xmoverscore: layers is 0, expected 1 or more"),
        ("xmoverscore(flow_drop=1)", "xmoverscore: flow_drop is 1.0, expected 0 to below 1"),
        ("xmoverscore(layer=3, layers=2)", "xmoverscore: layer=3 reads one layer, layers=2 several; drop one"),
        ("xmoverscore(idf_hypothesis='a')", "xmoverscore: idf_hypothesis weighs the hypothesis alone; give idf"),
        ("moverscore(map='a')", "no option of moverscore named 'map'"),
    ],
)
def test_options_that_mean_nothing_are_refused(spec: str, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        build(spec)


def test_texts_that_are_not_there_or_not_read_are_refused() -> None:
    with pytest.raises(MissingInput, match=re.escape("moverscore needs a reference: segment 1 (hypothesis 'a cat') ")):
        MoverScore("embedded", idf="uniform").score([Segment("a cat", "eine Katze")])
    with pytest.raises(MissingInput, match=re.escape("or choose a metric without them, such as moverscore")):
        XMoverScore().score([Segment("a cat", None, ("a cat",))])
    with pytest.raises(SpecError, match=re.escape("moverscore does not read the source: explain the hypothesis or a")):
        words_of(MoverScore("embedded", idf="uniform"), CAT, SOURCE)
    with pytest.raises(SpecError, match=re.escape("xmoverscore does not read references: explain the hypothesis or")):
        words_of(XMoverScore(), Segment("a", "b", ("c",)), Place(Side.REFERENCE, 0))


def test_the_signature_names_encoder_layer_and_masses(bert: str) -> None:
    facts = dict(XMoverScore(bert).signature().facts)
    assert facts["encoder"] == f'transformer(model="{bert}", layer=8)'
    assert (facts["layer"], facts["mode"], facts["mass"]) == ("8/8", "compat", "uniform")
    assert dict(XMoverScore().signature().facts)["encoder"] == "embedded"
