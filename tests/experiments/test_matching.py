"""What unrelated texts score, and which layer of a model agrees with people."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from support import tiny_models
from support.cli import Run
from whyscore.data.formats.eval4nlp import read_gold
from whyscore.errors import DataError, SpecError
from whyscore.experiments import matching as experiment_layers
from whyscore.experiments.matching import baseline, layers
from whyscore.metrics.matching import bertscore as matching_reader
from whyscore.metrics.matching.bertscore import BertScore, XBertScore
from whyscore.metrics.matching.weights import read_baseline
from whyscore.models.encoders.transformer import EveryLayer, Inseparable, Transformer
from whyscore.text.splitters import WhiteSpace
from whyscore.types import HYPOTHESIS, Dataset, Entry, ErrorSpan, Segment

pytestmark = pytest.mark.usefixtures("one_thread")

SOURCES = ["Die Katze saß auf der Matte.", "Ein Hund schlief.", "Die Katze saß auf der Matte.", "Der Tisch alt.", ""]
HYPOTHESES = ["The cat sat on the mat.", "A dog slept on it.", "The dog sat on a table.", "old the table", "A cat"]
HUMAN = [0.9, 0.7, 0.2, 0.4, 0.1]
SPANS = [(), ((8, 13),), ((4, 7), (15, 16)), ((0, 3),), ()]
SEGMENTS = [
    Segment(one, other, (HYPOTHESES[0], one[:9])) for one, other in zip(HYPOTHESES, SOURCES, strict=True)
]  # fmt: skip
DATA = Dataset(
    "five",
    tuple(
        Entry(str(k), "s", segment, {"da": HUMAN[k]}, tuple(ErrorSpan(*span, "major") for span in SPANS[k]))
        for k, segment in enumerate(SEGMENTS)
    ),
)
# Words of the hypotheses that the spans touch; sentences without any, or without others, have no AUC.
TAGS = {1: [0, 0, 1, 1, 0], 2: [0, 1, 0, 0, 1, 0], 3: [1, 0, 0]}


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    yield
    for cache in (matching_reader.reader_of, matching_reader.signature_of):
        cache.cache_clear()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("transformers", reason="the extra 'neural' is not installed")
    folder = tmp_path_factory.mktemp("layers") / "model"
    tiny_models.save(folder, "bert", "BertModel", texts=[*SOURCES, *HYPOTHESES], blocks=3, std=0.2)
    return str(folder)


def auc(tags: list[int], errors: np.ndarray) -> float:
    """Return the share of pairs in the right order, ties half, by counting."""
    pairs = [(a, b) for a, s in zip(errors, tags, strict=True) if s for b, t in zip(errors, tags, strict=True) if not t]
    return float(np.mean([1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs]))


@pytest.mark.parametrize("made", [XBertScore, BertScore])
def test_every_layer_has_the_numbers_of_a_metric_of_that_layer(made: type[BertScore], tiny: str) -> None:
    found = layers(DATA, made(model=tiny, device="cpu"), human="da")
    assert [row.layer for row in found.rows] == [0, 1, 2, 3]
    for row in found.rows:
        metric = made(model=tiny, layer=row.layer, device="cpu")
        scores = metric.score(SEGMENTS)
        assert row.pearson == pytest.approx(stats.pearsonr(scores, HUMAN).statistic, abs=1e-5)
        assert row.spearman == pytest.approx(stats.spearmanr(scores, HUMAN).statistic, abs=1e-9)
        assert row.kendall == pytest.approx(stats.kendalltau(scores, HUMAN).statistic, abs=1e-9)
        words = [WhiteSpace("space").split(text) for text in HYPOTHESES]
        importance = metric.word_scores(SEGMENTS, HYPOTHESIS, words)
        expected = [auc(tags, -importance[k].importance) for k, tags in TAGS.items()]
        assert row.auc == pytest.approx(float(np.mean(expected)), abs=1e-9)
        assert (row.n, row.sentences) == (5, 3)
    assert len({row.pearson for row in found.rows}) > 1


@pytest.mark.parametrize("memory", [1, 10**9])
def test_each_distinct_text_goes_through_the_network_once_whatever_the_windows(
    memory: int, tiny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[object] = []
    states = EveryLayer.states

    def counted(self: EveryLayer, batch: list[object]) -> list[object]:
        rows.extend(batch)
        return states(self, batch)  # type: ignore[arg-type, return-value]

    monkeypatch.setattr(EveryLayer, "states", counted)
    monkeypatch.setattr(experiment_layers, "_MEMORY", memory)
    found = layers(DATA, XBertScore(model=tiny, device="cpu"), human="da")
    distinct = len({*SOURCES, *HYPOTHESES})
    assert len(rows) == distinct
    assert found.notes == (f"{distinct} distinct texts went through the network once, for all 4 layers",)
    monkeypatch.undo()
    again = layers(DATA, XBertScore(model=tiny, device="cpu"), human="da")
    for one, other in zip(found.rows, again.rows, strict=True):
        assert one.pearson == pytest.approx(other.pearson, abs=1e-5)
        assert one.auc == other.auc


def test_a_network_that_cannot_be_opened_is_asked_once_per_layer(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = layers(DATA, XBertScore(model=tiny, device="cpu"), human="da")

    def refuse(_: Transformer, __: list[str]) -> None:
        raise Inseparable("no chain of parts")

    monkeypatch.setattr(Transformer, "every_layer", refuse)
    found = layers(DATA, XBertScore(model=tiny, device="cpu"), human="da")
    assert found.notes == ("one pass per layer, not one for all: no chain of parts",)
    assert [row.pearson for row in found.rows] == pytest.approx([row.pearson for row in whole.rows], abs=1e-5)


def test_the_embedded_encoder_is_asked_once_per_layer_and_that_is_told() -> None:
    found = layers(DATA, "xbertscore", human="da")
    assert found.notes == ("one pass per layer, not one for all: embedded gives one layer at a time",)
    expected = [XBertScore(layer=layer, phrases=0).score(SEGMENTS) for layer in range(3)]
    for row, scores in zip(found.rows, expected, strict=True):
        assert row.pearson == pytest.approx(stats.pearsonr(scores, HUMAN).statistic, abs=1e-9)
    assert str(found.signature).startswith('xbertscore(phrases=0, fill="null")|')
    assert "|layer:0-2|" in str(found.signature)


def test_a_text_that_was_cut_has_no_auc_and_is_counted(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    tiny_models.save(tmp_path / "m", "bert", "BertModel", texts=HYPOTHESES, limit=8, blocks=1, std=0.2)
    with pytest.warns(UserWarning, match="longer than the 8 pieces"):
        found = layers(DATA, BertScore(model=str(tmp_path / "m"), device="cpu"), human="da")
    assert any(
        re.fullmatch(r"\d sentences of the target have words that the model did not read; .*", note)
        for note in found.notes
    )
    assert all(row.sentences < 3 for row in found.rows)


def test_a_gold_folder_has_texts_tags_and_scores(run: Run, shipped: Path, tmp_path: Path) -> None:
    folder = shipped / "eval4nlp2021" / "dev" / "ro-en"
    for name in ("src", "mt", "src-tags", "tgt-tags", "da"):
        lines = (folder / f"dev.{name}").read_text("utf-8").split("\n")[:30]
        (tmp_path / f"dev.{name}").write_text("\n".join(lines) + "\n", "utf-8")
    code, out, err = run("experiment", "layers", "--gold", str(tmp_path), "-f", "jsonl")
    assert code == 0, err
    header, *records = map(json.loads, out.splitlines())
    assert header["kind"] == "metaeval"
    assert [record["layer"] for record in records] == [0, 1, 2]
    gold = read_gold(tmp_path)
    pairs = zip(gold.target.words or (), gold.sources or (), strict=True)
    segments = [Segment(own.text, other.text) for own, other in pairs]
    scores = XBertScore(layer=1, phrases=0).score(segments)
    assert records[1]["pearson"] == pytest.approx(stats.pearsonr(scores, gold.sentence).statistic, abs=1e-9)
    assert list(records[0]) == ["layer", "pearson", "spearman", "kendall", "n", "auc", "sentences", "source_auc"]
    assert all(0.4 < record["auc"] < 1 and 0.4 < record["source_auc"] < 1 for record in records)


def test_layers_from_the_command_line(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    lines = [
        json.dumps({"src": one.source or "-", "mt": one.hypothesis, "da": HUMAN[k]}) for k, one in enumerate(SEGMENTS)
    ]
    data.write_text("\n".join(lines) + "\n", "utf-8")
    code, out, err = run("experiment", "layers", str(data), "--human", "da", "-m", "xbertscore", "-f", "tsv")
    assert code == 0, err
    assert out.splitlines()[0] == "layer\tpearson\tspearman\tkendall\tn"
    assert "note: one pass per layer, not one for all" in err
    assert "signature: xbertscore(" in err
    code, out, err = run("experiment", "layers", str(data), "--human", "da", "-m", "chrf")
    assert (code, out) == (2, "")
    assert "chrf matches no vectors of one layer: name bertscore or xbertscore" in err


def test_layers_need_something_to_be_compared_with() -> None:
    bare = Dataset("bare", tuple(Entry(str(k), "s", segment) for k, segment in enumerate(SEGMENTS)))
    with pytest.raises(DataError, match=re.escape("bare says nothing to compare layers with: name a human score")):
        layers(bare, "xbertscore")


def test_a_baseline_is_the_mean_of_random_pairs_and_is_read_again(run: Run, tmp_path: Path) -> None:
    texts = tmp_path / "mono.txt"
    texts.write_text("\n".join([*HYPOTHESES, "", HYPOTHESES[0]]) + "\n", "utf-8")
    table = tmp_path / "b.tsv"
    code, out, err = run(
        "experiment", "baseline", str(texts), "-m", "bertscore(model='embedded')", "--pairs", "40", "-o", str(table)
    )
    assert (code, out) == (0, ""), err
    assert "note: 2 blank or repeated lines were left out" in err
    assert "40 random pairs of 5 texts, layer 2" in err
    found = read_baseline(str(table), 2)
    assert found == baseline(HYPOTHESES, "bertscore(model='embedded')", pairs=40).baseline
    assert found != baseline(HYPOTHESES, "bertscore(model='embedded')", pairs=40, seed=1).baseline
    pair = [Segment("The cat", None, ("A cat",))]
    plain = BertScore(model="embedded").statistics(pair)[0]
    rescaled = BertScore(model="embedded", baseline=str(table)).statistics(pair)[0]
    np.testing.assert_allclose(rescaled, (plain - np.array(found)) / (1 - np.array(found)), rtol=0, atol=1e-12)


def test_the_baseline_of_two_texts_is_what_they_score() -> None:
    one, other = HYPOTHESES[:2]
    found = baseline([one, other, "  "], XBertScore(), pairs=64)
    rows = XBertScore().statistics([Segment(one, other), Segment(other, one)])
    low, high = rows.min(axis=0), rows.max(axis=0)
    assert ((low - 1e-12 <= found.baseline) & (found.baseline <= high + 1e-12)).all()
    assert (found.texts, found.pairs, found.layer) == (2, 64, 2)


def test_a_baseline_on_a_tiny_network_is_that_of_its_layer(tiny: str) -> None:
    assert baseline(HYPOTHESES, BertScore(model=tiny, layer=1, device="cpu"), pairs=8).layer == 1


@pytest.mark.parametrize(
    ("texts", "metric", "pairs", "message"),
    [
        (["a", "a", ""], "bertscore(model='embedded')", 5, "a baseline needs at least two texts, got 1"),
        (["a", "b"], "bertscore(model='embedded')", 0, "pairs is 0, expected 1 or more"),
        (["a", "b"], "chrf", 5, "chrf matches no vectors of one layer: name bertscore or xbertscore"),
    ],
)
def test_what_has_no_baseline_is_refused(texts: list[str], metric: str, pairs: int, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        baseline(texts, metric, pairs=pairs)
