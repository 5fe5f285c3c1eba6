"""Training from each source of labels, going on after a kill, what is refused, and what a trained folder gives."""

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import tiny_models
from support.cli import Run
from whyscore.analysis.train.labels import Rated, TrainNotice, align, read_rated
from whyscore.analysis.train.settings import TrainSettings
from whyscore.analysis.train.train import TrainResult, train
from whyscore.errors import DataError, ExecutionError, SpecError, UserError
from whyscore.explainers.inside import Attention, Gradient
from whyscore.metrics.estimators.network import Batch, make_network
from whyscore.metrics.estimators.network import run as run_numpy
from whyscore.metrics.estimators.qe import QE, load
from whyscore.models.tensors import read_tensors, write_tensors
from whyscore.settings import settings_of
from whyscore.text.splitters import white_space
from whyscore.types import HYPOTHESIS, SOURCE, Segment

torch = pytest.importorskip("torch")
from whyscore.analysis.train.loop import Trainer  # noqa: E402 - needs torch

WORDS = {
    "Katze": "cat", "Hund": "dog", "Haus": "house", "Tisch": "table", "Baum": "tree", "Stadt": "city", "Fluss": "river",
    "Berg": "mountain", "Buch": "book", "Brief": "letter", "Wagen": "car", "Garten": "garden",
}  # fmt: skip
FAST = {"epochs": 2, "least_segments": 20, "held_out": 0.4, "encoder": "embedded"}


def records(count: int = 60) -> list[dict[str, object]]:
    """Translations of lists of words; in two of three a word is wrong, in every fifth one is missing."""
    draw = np.random.default_rng(0)
    names, made = list(WORDS), []
    for k in range(count):
        source = [names[i] for i in draw.permutation(len(names))[:6]]
        right = [WORDS[word] for word in source]
        wrong = list(right)
        tags = [0] * 6
        if k % 3:
            place = int(draw.integers(6))
            wrong[place], tags[place] = f"xx{k}", 1
        gaps = [0] * 7
        if k % 5 == 0:
            del wrong[3], tags[3]
            gaps = [0, 0, 0, 1, 0, 0]
        made.append(
            {
                "lp": "de-en", "src": " ".join(source), "mt": " ".join(wrong), "pe": " ".join(right), "mt_tags": tags,
                "gap_tags": gaps, "src_tags": [0] * 5 + [k % 2], "da_z": 1.0 - sum(tags) - 0.01 * k,
            }
        )  # fmt: skip
    return made


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    """Return a file of JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def run_training(*data: Path, output: Path, **options: object) -> TrainResult:
    """Train without the notices about small data, which every test here would give."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainNotice)
        return train(*data, output=output, **{**FAST, **options})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that learned from people, alignment and perturbation."""
    folder = tmp_path_factory.mktemp("train")
    data = write(folder / "data.jsonl", records())
    run_training(data, output=folder / "model", labels=("human", "alignment", "perturbation"))
    return folder / "model"


def test_a_trained_folder_scores_and_explains_both_sides(trained: Path) -> None:
    metric = QE(model=str(trained))
    segments = [Segment("cat dog house", "Katze Hund Haus"), Segment("", "Katze")]
    scores = metric.score(segments)
    assert scores[1] == 0
    assert 0 < scores[0] <= 1
    for place in (HYPOTHESIS, SOURCE):
        words = [white_space(segment.text(place)) for segment in segments]
        found = metric.word_scores(segments, place, words)
        assert [len(one.importance) for one in found] == [len(own) for own in words]
        assert all(((one.importance <= 0) & (one.importance >= -1)).all() for one in found)
    gaps = metric.gap_errors(segments, [white_space(segment.hypothesis) for segment in segments])
    assert [len(own) for own in gaps] == [4, 1]
    assert sorted(path.name for path in trained.iterdir()) == ["card.md", "model.safetensors", "settings.json"]
    about = json.loads((trained / "settings.json").read_text("utf-8"))
    assert about["segments"].keys() == {"edits", "alignment", "perturbation"}
    assert f"weights:{about['digest']}" in str(metric.signature())
    assert {"this model", "length", "surprisal", "evidence", "qe"} == {row["name"] for row in about["results"]}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> TrainResult:
    """A training that nothing interrupts."""
    folder = tmp_path_factory.mktemp("undisturbed")
    return run_training(write(folder / "data.jsonl", records()), output=folder / "model")


def test_a_killed_training_goes_on_to_the_same_digest(undisturbed: TrainResult, tmp_path: Path) -> None:
    data = write(tmp_path / "data.jsonl", records())

    def kill(line: str) -> None:
        if line.startswith("epoch 1/"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_training(data, output=tmp_path / "killed", report=kill)
    with pytest.raises(UserError, match="unfinished training with other settings"):
        run_training(data, output=tmp_path / "killed", seed=1)
    lines: list[str] = []
    assert run_training(data, output=tmp_path / "killed", report=lines.append).digest == undisturbed.digest
    assert "resuming after epoch 1" in lines
    assert run_training(data, output=tmp_path / "other", seed=1).digest != undisturbed.digest
    with pytest.raises(UserError, match="holds a trained model already"):
        run_training(data, output=undisturbed.folder)


def test_a_transformer_is_trained_end_to_end(tmp_path: Path) -> None:
    rows = records(24)
    texts = [str(row[name]) for row in rows for name in ("src", "mt", "pe")]
    tiny_models.save(tmp_path / "encoder", "xlm-roberta", "XLMRobertaModel", texts=texts)
    result = run_training(
        write(tmp_path / "data.jsonl", rows), output=tmp_path / "model", encoder=str(tmp_path / "encoder"), rate=1e-3,
        precision="bf16", labels=("human", "alignment"),
    )  # fmt: skip
    metric = QE(model=str(tmp_path / "model"))
    segment = Segment("cat dog house", "Katze Hund Haus")
    before = metric.score([segment])
    load.cache_clear()
    assert metric.score([segment]) == before
    for place in (HYPOTHESIS, SOURCE):
        (found,) = metric.word_scores([segment], place, [white_space(segment.text(place))])
        assert len(found.importance) == 3
    assert result.digest in str(metric.signature())
    inside = metric.inspect([segment])
    assert inside.score(inside.readings).tolist() == pytest.approx(before.tolist(), abs=1e-6)
    for explainer in (Gradient(method="integrated"), Attention()):
        (found,) = explainer.inside(metric).word_scores([segment], HYPOTHESIS, [white_space(segment.hypothesis)])
        assert np.isfinite(found.importance).all()
        assert np.ptp(found.importance) > 0


def test_the_embedded_network_is_not_looked_into(trained: Path) -> None:
    with pytest.raises(
        SpecError, match="attention and gradient do not work for qe on the embedded encoder: explain it with intrinsic"
    ):
        Attention().inside(QE(model=str(trained))).word_scores(
            [Segment("cat", "Katze")], HYPOTHESIS, [white_space("cat")]
        )


def test_numpy_runs_what_torch_trained(trained: Path) -> None:
    from whyscore.metrics.estimators.modules import Network

    torch.manual_seed(0)
    network = Network(5, 4, width=16, heads=2, inner=8, kinds=3, metrics=2).eval()
    draw = np.random.default_rng(0)
    sizes = ((3, 2), (2, 4))
    present = [
        np.arange(max(own[side] for own in sizes)) < np.array([own[side] for own in sizes])[:, None] for side in (0, 1)
    ]
    features, vectors = (
        [draw.normal(size=(2, one.shape[1], width)).astype(np.float32) for one in present] for width in (5, 4)
    )
    cosines = draw.normal(size=(2, 3, 4)).astype(np.float32)
    tensors = [tuple(map(torch.from_numpy, pair)) for pair in (features, vectors, present)]
    with torch.no_grad():
        wanted = network(tensors[0], tensors[1], torch.from_numpy(cosines), tensors[2])
    numbers = {name: values.numpy() for name, values in network.state_dict().items()}
    found = run_numpy(make_network(numbers), Batch(tuple(features), tuple(vectors), cosines, tuple(present)))  # type: ignore[arg-type]
    np.testing.assert_allclose(found.words[0][present[0]], wanted.words[0].numpy()[present[0]], atol=1e-5)
    np.testing.assert_allclose(found.sentences, wanted.sentences.numpy(), atol=1e-5)
    assert found.gaps is not None
    assert found.attention is not None
    np.testing.assert_allclose(found.gaps[0, :4], wanted.gaps.numpy()[0, :4], atol=1e-5)
    np.testing.assert_allclose(found.attention[1], wanted.attention[1].numpy(), atol=1e-5)
    assert "network0.metric" in read_tensors(trained / "model.safetensors")[0]


def test_alignment_finds_wrong_missing_and_lost_words() -> None:
    rows = [Rated(str(one["src"]), str(one["mt"]), "de-en", reference=str(one["pe"])) for one in records(40)]
    one = Rated("Katze Hund Haus", "cat xx house", "de-en", reference="cat dog house")
    short = Rated("Katze Hund Haus", "cat house", "de-en", reference="cat dog house")
    *_, found, missing = align([*rows, one, short])
    assert found.words == ((4, 6, 1.0),)
    assert found.source_words == ((6, 10, 1.0),)
    assert found.gaps == ()
    assert missing.words == ()
    assert missing.gaps == ((4, 1.0),)
    assert missing.source_words == ((6, 10, 1.0),)
    assert found.metrics is not None
    assert found.metrics[1] == pytest.approx(-100 / 3)


def test_raters_of_spans_become_soft_labels(tmp_path: Path) -> None:
    rows = [
        {"lp": "de-en", "src": "Katze Hund", "mt": "cat dog", "doc": "d", "spans": spans}
        for spans in ([[0, 3, "major"]], [[0, 7, "minor"]], [], [])
    ]
    (row,) = read_rated(write(tmp_path / "spans.jsonl", rows))
    assert row.words == ((0, 3, 0.5), (3, 7, 0.25))
    assert row.score == -1.5
    assert row.document == "d"


def test_spans_beyond_their_text_are_cut_and_counted(tmp_path: Path) -> None:
    spans = [[4, 9, "major"], [7, 9, "major"], [5, 2, "minor"]]
    path = write(tmp_path / "spans.jsonl", [{"src": "Katze Hund", "mt": "cat dog", "doc": "d", "spans": spans}])
    with pytest.warns(TrainNotice, match=r"3 spans end beyond their text or before they begin, first in line 1"):
        (row,) = read_rated(path)
    assert row.words == ((4, 7, 1.0),)
    assert row.score == -5
    for span in ([0], ["a", 3], [-1, 3], 7):
        write(path, [{"src": "Katze Hund", "mt": "cat dog", "spans": [span]}])
        with pytest.raises(DataError, match=r"spans\.jsonl:1: a span is .*expected \[start, end, severity\]"):
            read_rated(path)


def test_gaps_between_the_tags_of_wmt_folders_are_read(tmp_path: Path) -> None:
    for name, text in {"src": "Katze Hund", "mt": "cat dog", "tags": "OK OK OK BAD BAD", "hter": "0.5"}.items():
        (tmp_path / f"train.{name}").write_text(f"{text}\n", "utf-8")
    (row,) = read_rated(tmp_path)
    assert row.words == ((4, 7, 1.0),)
    assert row.gaps == ((7, 1.0),)
    assert row.score == -0.5
    (tmp_path / "train.tags").write_text("OK OK OK\n", "utf-8")
    with pytest.raises(DataError, match=r"train\.tags:1: 3 tags for 2 words: expected 2, or 5 with gaps"):
        read_rated(tmp_path)


def broken(rows: list[dict[str, object]], **values: object) -> list[dict[str, object]]:
    """Return rows with other values in all of them."""
    return [row | values for row in rows]


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([*records(3), records(1)[0] | {"mt_tags": [0]}], {}, "data.jsonl:4: 1 mt_tags for 5 words"),
        (broken(records(), mt="a b", mt_tags=[0, 0], gap_tags=[0, 0, 0]), {}, "one class only"),
        (broken(records(), mt="a b", mt_tags=[1, 1], gap_tags=[0, 0, 0]), {}, "one class only"),
        (broken(records(), doc="one"), {}, "no held-out documents: 60 segments come from 1 document,"),
        (records(30), {"least_segments": 200}, "30 labelled segments are too few to train on"),
        (records(), {"lang_pair": "et-en"}, "holds no segments of et-en"),
    ],
    ids=["length", "all right", "all wrong", "documents", "few", "languages"],
)
def test_bad_data_is_refused(
    tmp_path: Path, rows: list[dict[str, object]], options: dict[str, object], message: str
) -> None:
    with pytest.raises(DataError) as caught:
        run_training(write(tmp_path / "data.jsonl", rows), output=tmp_path / "model", **options)
    assert message in str(caught.value)
    assert not (tmp_path / "model").exists()


def test_a_loss_that_is_no_number_stops_with_its_batch(tmp_path: Path) -> None:
    data = write(tmp_path / "data.jsonl", records())
    with pytest.raises(ExecutionError, match=r"the loss is nan at epoch \d, batch \d+ of \d+ .*a lower --rate"):
        run_training(data, output=tmp_path / "model", rate=1e30)
    assert (tmp_path / "model" / "work" / "plan.json").exists()


def test_a_loss_that_is_no_number_leaves_the_last_good_state(
    undisturbed: TrainResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write(tmp_path / "data.jsonl", records())
    train_epoch = Trainer._train_epoch

    def fail_late(self: Trainer, rows: Any, progress: Any) -> float:
        if progress.epoch == 1:
            monkeypatch.setattr(Trainer, "_loss", lambda *_: torch.tensor(torch.nan))
        return train_epoch(self, rows, progress)

    with monkeypatch.context() as broken_loss:
        broken_loss.setattr(Trainer, "_train_epoch", fail_late)
        with pytest.raises(
            ExecutionError, match=r"the loss is nan at epoch 2, batch 1 of .*state after epoch 1 is kept"
        ):
            run_training(data, output=tmp_path / "model")
    monkeypatch.undo()
    assert run_training(data, output=tmp_path / "model").digest == undisturbed.digest


@pytest.mark.slow
def test_a_training_ended_by_sigkill_goes_on_to_the_same_digest(undisturbed: TrainResult, tmp_path: Path) -> None:
    data = write(tmp_path / "data.jsonl", records())
    code = (
        "import sys; from whyscore.analysis.train.train import train\n"
        "def report(line):\n"
        "    if line.startswith('epoch 1/'):\n"
        "        print(line, flush=True)\n"
        "        sys.stdin.read()\n"  # until it is killed: however fast it is, it does not end before
        f"train(sys.argv[1], output=sys.argv[2], report=report, **{FAST!r})"
    )
    command = [sys.executable, "-W", "ignore", "-c", code, str(data), str(tmp_path / "killed")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("epoch 1/")
        process.kill()
    assert process.returncode == -9
    lines: list[str] = []
    assert run_training(data, output=tmp_path / "killed", report=lines.append).digest == undisturbed.digest
    assert "resuming after epoch 1" in lines


def test_with_test_data_the_documents_of_the_card_are_trained_on(tmp_path: Path) -> None:
    data, test = write(tmp_path / "data.jsonl", records()), write(tmp_path / "test.jsonl", records(3))
    held_out = run_training(data, output=tmp_path / "held_out", epochs=1)
    tested = run_training(data, output=tmp_path / "tested", epochs=1, test=[test])
    assert tested.judged == 3
    assert tested.segments > held_out.segments


def test_segments_to_be_judged_on_later_are_not_trained_on(tmp_path: Path) -> None:
    rows = records()
    data = write(tmp_path / "data.jsonl", rows)
    judged = [Segment(str(row["mt"]).upper(), "something else") for row in rows[:5]]
    lines: list[str] = []
    run_training(data, output=tmp_path / "model", epochs=1, exclude=judged, report=lines.append)
    assert "5 segments were left out: their source or hypothesis occurs in the test data" in lines


def test_small_data_uncovered_languages_and_unbeaten_controls_are_said(tmp_path: Path) -> None:
    data = write(tmp_path / "data.jsonl", broken(records(), lp="et-en"))
    with pytest.warns(TrainNotice) as caught:
        train(data, output=tmp_path / "model", **(FAST | {"epochs": 1}))  # type: ignore[arg-type]
    said = " ".join(str(one.message) for one in caught)
    assert "segments are few" in said
    assert "does not cover et" in said
    assert "not reliably above the control" in said


def test_a_folder_of_another_version_is_refused(trained: Path, tmp_path: Path) -> None:
    arrays, facts = read_tensors(trained / "model.safetensors")
    write_tensors(tmp_path / "model.safetensors", arrays, facts | {"format": "9"})
    with pytest.raises(DataError, match="has format 9, this version of whyscore reads 1: train it again"):
        QE(model=str(tmp_path)).score([Segment("a", "b")])
    write_tensors(tmp_path / "model.safetensors", arrays, facts | {"digest": "0"})
    load.cache_clear()
    with pytest.raises(DataError, match="it is damaged"):
        QE(model=str(tmp_path)).score([Segment("a", "b")])


def test_the_command_trains_from_parallel_text(run: Run, tmp_path: Path) -> None:
    rows = records()
    for name, key in (("src.txt", "src"), ("ref.txt", "pe"), ("mt.txt", "mt")):
        (tmp_path / name).write_text("".join(f"{row[key]}\n" for row in rows), "utf-8")
    texts = [tmp_path / "src.txt", tmp_path / "ref.txt"]
    few = ["--epochs", 1, "--least-segments", 20, "--held-out", 0.4]
    done = run("train", "--parallel", *texts, "-t", tmp_path / "mt.txt", *few, "-o", tmp_path / "model")
    assert done.code == 0, done.err
    assert "this model" in done.out
    assert "alignment" in done.out
    settings = json.loads((tmp_path / "model" / "settings.json").read_text("utf-8"))["settings"]
    assert settings.keys() == {one.name for one in settings_of(TrainSettings)}
    scored = run(
        "score", "-s", texts[0], "-t", tmp_path / "mt.txt", "-m", f"qe(model='{tmp_path / 'model'}')", "--store", "none"
    )
    assert scored.code == 0, scored.err
    assert QE(model=str(tmp_path / "model")).unsupported("ro", "en") == ()  # it was trained on languages without a name
    assert QE().unsupported("fi", "en") == ("fi",)
    assert run("train", "-o", tmp_path / "new").err.startswith("whyscore: error: nothing to train on")
