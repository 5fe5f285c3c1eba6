"""Participants of Eval4NLP 2021 as recipes, and the check-list of perturbations."""

import json
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from support import tiny_models
from support.cli import Run
from whyscore.analysis.train.labels import Rated
from whyscore.analysis.train.perturbations import PERTURBATIONS, Perturber, perturb_rows
from whyscore.analysis.train.settings import TrainSettings
from whyscore.data.formats.eval4nlp import Scored, Submission, read_gold
from whyscore.errors import UnknownName, UserError
from whyscore.experiments.eval4nlp.participants import PARTICIPANTS, join_submissions, participants
from whyscore.experiments.perturbations import perturbations
from whyscore.stats.words import Ragged
from whyscore.text.randomness import generator
from whyscore.types import Dataset, Entry, Segment

SOURCES = ["Die Katze sah 12 Hunde in Berlin .", "Der Hund war nicht in Paris .", "Die Katze war in Rom ."] * 4
TEXTS = ["The cat saw 12 dogs in Berlin .", "The dog was not in Paris .", "The cat was in Rome ."] * 4
PAIRS = list(zip(SOURCES, TEXTS, strict=True))
VOCABULARY = [word for text in (*SOURCES, *TEXTS) for word in (*text.split(), *text.capitalize().split())]


def test_every_perturbation_changes_a_text_and_marks_where() -> None:
    perturber = Perturber(SOURCES, TEXTS)
    seen = set()
    for source, text in zip(SOURCES[:3], TEXTS[:3], strict=True):
        for kind in PERTURBATIONS:
            found = perturber.perturb(source, text, [kind], generator(0, kind, text))
            if found is None:
                continue
            seen.add(kind)
            assert found.text != text
            assert found.words or found.gaps
            marked = [found.text[start:end] for start, end, _ in found.words]
            if kind in ("deletion", "negation"):
                assert found.gaps or marked == ["not"]
            if kind == "number":
                assert marked[0] != "12"
                assert marked[0].isdigit()
            again = perturber.perturb(source, text, [kind], generator(0, kind, text))
            assert again == found
    assert seen == set(PERTURBATIONS)


def test_a_metric_that_counts_words_notices_deletions_and_not_swaps() -> None:
    entries = tuple(
        Entry(str(k), "a", Segment(text, source)) for k, (source, text) in enumerate(zip(SOURCES, TEXTS, strict=True))
    )

    def count(segments: list[Segment]) -> list[float]:
        return [float(len(one.hypothesis.split())) for one in segments]

    found = perturbations(Dataset("d", entries), [count], kinds=["deletion", "swap"], draws=0)
    assert {row.kind: row.noticed for row in found.rows} == {"deletion": 1.0, "swap": 0.0}
    with pytest.raises(UnknownName, match="no perturbation named 'swp'"):
        perturbations(Dataset("d", entries), [count], kinds=["swp"])


def test_the_check_list_is_a_command(run: Run) -> None:
    done = run(
        "experiment", "perturbations", "--sample", "--limit", 5, "-m", "chrf", "--kinds", "deletion", "-f", "json"
    )
    assert done.code == 0, done.err
    (row,) = json.loads(done.out)["records"]
    assert row["metric"] == "chrf"
    assert 0.5 < row["noticed"] <= 1


def test_parts_are_joined_by_ranks() -> None:
    one, other = (
        Submission(name, {"target": Scored(Ragged.of(rows), name)}, np.array(scores))
        for name, rows, scores in (("a", [[1, 9, 5], [0, 0]], [0.0, 2.0]), ("b", [[0.3, 0.2, 0.1], [1, 2]], [5.0, 7.0]))
    )
    joined = join_submissions("both", [one, other])
    assert joined.sides["target"].scores.values.tolist() == [2.0, 2.5, 1.5, 1.25, 1.75]
    assert joined.sentence is not None
    assert joined.sentence.tolist() == [-1.0, 1.0]


def write_gold(folder: Path) -> Path:
    """Return a gold folder of twelve segments, some words of which are wrong."""
    folder.mkdir(parents=True)
    tags = ["0 1 0 0 0 0 0 0", "1 0 0 1 0 0 0", "0 0 1 0 0 0"] * 4
    source_tags = ["0 1 0 0 0 0 0 0", "1 0 0 1 0 0 0", "0 0 1 0 0 0"] * 4
    columns = {
        "src": SOURCES,
        "mt": TEXTS,
        "tgt-tags": tags,
        "src-tags": source_tags,
        "da": [str(k) for k in range(12)],
    }
    for name, lines in columns.items():
        (folder / f"dev.{name}").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return folder


def write_training_data(path: Path) -> Path:
    """Return 36 labelled segments with post-edits."""
    rows = [
        {"lp": "de-en", "src": f"{source} {k}", "mt": f"{text} {k}", "da_z": float(k),
         "pe": f"{text.replace('was', 'is')} {k}", "mt_tags": [k % 2] + [0] * len(text.split()),
         "src_tags": [k % 2] + [0] * len(source.split())}
        for k, (source, text) in enumerate(zip(SOURCES * 3, TEXTS * 3, strict=True))
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def rebuild(tmp_path: Path, systems: Sequence[str], **options: object) -> list[str]:
    """Rebuild systems on toy data; return what was reported."""
    pytest.importorskip("torch")
    gold = read_gold(write_gold(tmp_path / "de-en"))
    data = write_training_data(tmp_path / "train.jsonl")
    lines: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        result = participants(
            [gold], data=[data], output=tmp_path / "run", systems=systems, epochs=1, held_out=0.4, least_segments=10,
            limit=6, report=lines.append, **options,
        )  # fmt: skip
    judged = {one.system: one for one in result.pairs[0].systems}
    assert set(systems) <= set(judged)
    for name in systems:
        assert set(judged[name].sides) == {"target", "source"}
        assert (tmp_path / "run" / name / "de-en" / "target.submission").exists()
    return lines


@pytest.mark.slow
def test_recipes_train_explain_and_are_ranked(tmp_path: Path) -> None:
    rebuild(tmp_path, tuple(PARTICIPANTS))


@pytest.mark.slow
def test_recipes_look_into_a_network_of_transformers(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    texts = [*SOURCES, *TEXTS]
    encoder, infill = tmp_path / "encoder", tmp_path / "infill"
    tiny_models.save(encoder, "xlm-roberta", "XLMRobertaModel", texts=texts)
    tiny_models.save(infill, "bert", "BertForMaskedLM", texts=texts)
    systems = ("heytuda", "ist-unbabel-constrained", "clip-umd")
    lines = rebuild(tmp_path, systems, encoder=str(encoder), infill=str(infill))
    assert any(line.startswith("ist-unbabel-constrained: layer") for line in lines)
    settings = json.loads((tmp_path / "run/models/de-en/heytuda/settings.json").read_text("utf-8"))["settings"]
    assert (settings["word_loss"], settings["labels"]) == (0.0, ["human"])


def test_gold_and_training_data_are_found_in_the_working_directory(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    missing = run("experiment", "eval4nlp", "--system", "gringham", "-l", "de-en", "-o", "run")
    assert missing.code == 2
    assert "no gold folder: give one with --gold dev/de-en; looked for de-en, dev/de-en" in missing.err
    write_gold(tmp_path / "data" / "dev" / "de-en")
    done = run("experiment", "eval4nlp", "--system", "gringham", "-l", "de-en", "-o", "run", "--limit", 3)
    assert done.code == 0, done.err
    assert "gold: data/dev/de-en; training data: none" in done.err
    assert (tmp_path / "run" / "gringham" / "de-en" / "target.submission").exists()
    assert (
        "nict: these recipes train a model"
        in run("experiment", "eval4nlp", "--system", "nict", "-l", "de-en", "-o", "run").err
    )


def test_finished_systems_and_stored_probes_are_not_done_again(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_gold(tmp_path / "de-en")
    command = ["experiment", "eval4nlp", "-l", "de-en", "-o", "run", "--store", "scores.sqlite", "-f", "json"]
    first = run(*command, "--system", "gringham", "--limit", 3)
    assert first.code == 0, first.err
    again = run(*command, "--system", "gringham", "--limit", 3)
    assert "gringham: finished before, read from run/gringham/de-en" in again.err
    assert json.loads(again.out) == json.loads(first.out)
    longer = run(*command, "--system", "gringham", "--limit", 4)
    assert "gringham: explaining 4 segments" in longer.err
    other = run(*command, "--system", "gringham", "--limit", 4, "--seed", 1)
    assert other.code == 2
    assert "run holds results of de-en with other seed: choose another -o" in other.err
    dry = run(*command, "--system", "gringham", "heytuda", "--limit", 4, "--probes", 7, "--dry-run")
    # Segment 3 equals segment 0: 3 whole texts, and 21 words of each side masked.
    assert dry.out.splitlines()[:2] == [
        "de-en gringham: finished", "de-en heytuda: qe, erasure: 45 texts to score, 0 in the store"
    ]  # fmt: skip
    assert "de-en heytuda: qe, lime(samples=7): " in dry.out
    assert not (tmp_path / "run" / "heytuda").exists()


def test_models_never_see_the_gold_set_however_few_segments_are_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Segment] = []

    class Stopped(Exception):
        pass

    def remember(*_: object, exclude: Sequence[Segment], **__: object) -> None:
        seen.extend(exclude)
        raise Stopped

    monkeypatch.setattr("whyscore.experiments.eval4nlp.participants.train", remember)
    gold = read_gold(write_gold(tmp_path / "de-en"))
    data = write_training_data(tmp_path / "train.jsonl")
    with pytest.raises(Stopped):
        participants([gold], data=[data], output=tmp_path / "run", systems=["nict"], limit=2)
    assert len(seen) == len(gold) == 12


def test_only_kinds_with_a_rate_are_trained_on_unless_named() -> None:
    rows = [Rated(f"{source} {k}", "", reference=f"{text} {k}") for k, (source, text) in enumerate(PAIRS)]
    copies = [row for row in perturb_rows(rows, TrainSettings()) if row.words or row.gaps]
    assert not any(word not in {*VOCABULARY} and word.isalpha() for row in copies for word in row.hypothesis.split())
    named = perturb_rows(rows, TrainSettings(perturbations=("spelling",)))
    few = perturb_rows(rows, TrainSettings(perturbed_references=4))
    assert len({row.reference for row in few}) == 4
    assert few == perturb_rows(rows, TrainSettings(perturbed_references=4))
    words = {word for row in named for word in row.hypothesis.split()}
    assert any(word not in {*VOCABULARY} and word.isalpha() for word in words)


def test_every_participant_says_what_the_paper_leaves_open(tmp_path: Path) -> None:
    assert all(one.open for one in PARTICIPANTS.values())
    gold = read_gold(write_gold(tmp_path / "de-en"))
    with pytest.raises(UserError, match=r"nict: these recipes train a model\. Give labelled segments with --data"):
        participants([gold], output=tmp_path / "run", systems=["nict"])
    with pytest.raises(UnknownName, match="no participant named 'nit'"):
        participants([gold], output=tmp_path / "run", systems=["nit"])
