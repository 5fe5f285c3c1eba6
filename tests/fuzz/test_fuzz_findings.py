"""What fuzzing found once, with the message that stands there now."""

import gc
import json
import re
import sys
import time
from pathlib import Path

import pytest

from support.cli import Run
from support.documents import read_everything
from support.parsers import parsers
from whyscore.analysis.calibrate.file import Calibration
from whyscore.data.formats.dialects import OFFSETS, from_codepoints, to_codepoints
from whyscore.data.formats.mqm import read_mqm
from whyscore.data.reading import read, read_foreign
from whyscore.data.records import read_explanations
from whyscore.errors import DataError, SpecError
from whyscore.metrics.learned.comet.checkpoint import settings_of
from whyscore.models.checkpoints import front_matter, parts_of
from whyscore.models.encoders.stacks import languages_of
from whyscore.models.word_vectors import TextVectors
from whyscore.registry import build, parse
from whyscore.taggers.aligned import Lines
from whyscore.taggers.conllu import Conllu
from whyscore.types import Dataset, Entry, Segment

TEXTS = Dataset("texts", (Entry("0", "a", Segment("a bad cat")),))
HEAD = {"schema": "whyscore/1", "schema_version": 1, "created": "2026-01-01T00:00:00Z", "data": "d"}
MQM = "system\tdoc\tdoc_id\tseg_id\trater\tsource\ttarget\tcategory\tseverity\n"
DEEP = "[" * 100_000


def written(folder: Path, name: str, *lines: object) -> Path:
    path = folder / name
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("".join(f"{text}\n" for text in texts), "utf-8", newline="\n")
    return path


@pytest.mark.parametrize(
    ("rating", "message"),
    [
        ("a", "a.rating:1: expected a system, a tab and a rating"),
        (f"a\t{DEEP}", "a.rating:1: not a rating: maximum recursion depth exceeded"),
        (f'a\t{{"errors": {"1" * 400}}}', "a.rating:1: not a rating: a number of 400 digits"),
    ],
)
def test_a_line_that_is_no_rating_is_named(tmp_path: Path, rating: str, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        read_foreign(written(tmp_path, "a.rating", rating), texts=TEXTS)


def test_a_carriage_return_inside_a_cell_of_mqm_is_a_character(tmp_path: Path) -> None:
    path = written(tmp_path, "mqm.tsv", MQM.strip(), "a\td\t1\t0\tr\tx\ty\rz <v>b</v>\tAccuracy\tMajor")
    assert read_mqm(path).entries[0].segment.hypothesis == "y\rz b"


def test_nan_before_other_mistakes_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=re.escape("NaN is not JSON: write null where there is no number")):
        read(written(tmp_path, "a.jsonl", '{"hypothesis": NaN,,}'))


def test_numbers_beyond_all_floats_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=re.escape("a.jsonl:1: JSON that cannot be read: a number of 400 digits")):
        read(written(tmp_path, "a.jsonl", f'{{"hypothesis": "a", "score": {"9" * 400}}}'))


def test_a_first_line_that_is_nested_too_deep_is_no_header(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=re.escape("a.jsonl:1: JSON that cannot be read")):
        read(written(tmp_path, "a.jsonl", f'{{"schema": {DEEP}'))


def _take_stack(frames: int) -> int:
    return frames and _take_stack(frames - 1)


def test_no_garbage_is_collected_at_the_bottom_of_deep_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)  # it writes to stderr
    path = written(tmp_path, "explanations.jsonl", '{"schema": ' + '{"a":' * 3000)
    thresholds = gc.get_threshold()
    gc.callbacks.append(lambda *_: _take_stack(20))
    gc.set_threshold(1)
    try:
        read_everything(path)
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.pop()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ({"text": "bad", "start": 2, "importance": 1}, "'words[0].end' is None, expected a whole number"),
        (
            {"text": "bad", "start": 5, "end": 2, "importance": 1},
            "the word 'bad' is from 5 to 2, expected offsets",
        ),
    ],
)
def test_words_without_a_place_are_named(tmp_path: Path, word: dict[str, object], message: str) -> None:
    record = {"id": "0", "system": "a", "metric": "m", "explainer": "e", "side": "hypothesis", "words": [word]}
    with pytest.raises(DataError, match=re.escape(message)):
        read_explanations(written(tmp_path, "e.jsonl", HEAD | {"kind": "explanations"}, record))


def test_explanations_of_an_unknown_side_are_refused(tmp_path: Path) -> None:
    record = {"id": "0", "system": "a", "metric": "m", "explainer": "e", "side": "margin", "words": []}
    path = written(tmp_path, "e.jsonl", HEAD | {"kind": "explanations"}, record)
    with pytest.raises(DataError, match="'side' is 'margin', expected one of hypothesis, source, reference"):
        read_explanations(path)


def test_spans_that_are_no_objects_are_named(tmp_path: Path) -> None:
    record = {"id": "0", "system": "a", "side": "hypothesis", "spans": [0.5]}
    with pytest.raises(DataError, match=re.escape("expected a span with start and end, got 0.5")):
        read_foreign(written(tmp_path, "s.jsonl", HEAD | {"kind": "spans"}, record), texts=TEXTS)


@pytest.mark.parametrize("unit", OFFSETS)
def test_offsets_go_there_and_back_around_half_characters(unit: str) -> None:
    text = "a\ud800b😀c"
    for offset in range(len(text) + 1):
        assert to_codepoints(text, from_codepoints(text, offset, unit), unit) == offset


def test_a_spec_of_thousands_of_signs_is_refused() -> None:
    with pytest.raises(SpecError, match=re.escape("too deeply nested. Write name or name(option=value)")):
        parse(f"lime(samples={'-' * 5000}1)")


def test_a_data_file_of_blank_lines_holds_no_segment(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "data.jsonl"
    path.write_bytes(b"\n\n")
    done = run("score", str(path), "-m", "token_f1", "--store", "none")
    assert done.code == 3
    assert "data.jsonl contains no segments: there is nothing to do" in done.err


def test_a_word_of_a_billion_words_is_no_word(tmp_path: Path) -> None:
    path = written(tmp_path, "a.conllu", "1-99999999999\ta\t_\t_\t_\t_\t_\t_\t_\t_")
    with pytest.raises(DataError, match=re.escape("a.conllu:1: cannot read the id '1-99999999999': expected 3, 3-4")):
        Conllu(str(path), str(path)).tag_lines(Lines([["a"]], {"a": ["a"]}))


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (
            {"weight_map": {"a": "../secret.safetensors"}},
            "expected names of files beside it in weight_map, found '../sec",
        ),
        ({"weight_map": {"a": 7}}, "expected names of files beside it in weight_map, found 7"),
        (
            {"weight_map": {"a": "gone.safetensors"}},
            "names 'gone.safetensors', which is not beside it: fetch the whole",
        ),
    ],
)
def test_an_index_names_files_beside_it(tmp_path: Path, index: dict[str, object], message: str) -> None:
    path = written(tmp_path, "model.safetensors.index.json", index)
    with pytest.raises(DataError, match=re.escape(f"{path}: {message}")):
        parts_of(path)


def test_vectors_wider_than_any_are_refused_before_memory_is_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path, "v.vec", "2 99999999999", "a 1")
    with pytest.raises(DataError, match=re.escape(f"{path}:1: expected at most 99,999 numbers a word")):
        TextVectors(str(path)).vectors(["a"])


def test_a_number_beyond_all_floats_is_no_option() -> None:
    with pytest.raises(SpecError, match="p is 999"):
        build(f"boosted(metric=chrf, p={'9' * 400})")


def test_a_calibration_holds_texts_of_one_line(tmp_path: Path) -> None:
    content = json.loads(parsers()["calibration.json"].files["c.json"]) | {"metric_signature": "a\nb"}
    with pytest.raises(DataError, match=re.escape(r"'metric_signature' is 'a\nb', expected one line")):
        Calibration.load(written(tmp_path, "c.json", content))


@pytest.mark.parametrize("segments", ["[[mt], src]", "[mt, {src: 1}]", "[mt, mt]", "[mt]", "[src, ref]", "[]"])
def test_segments_of_comet_that_are_none_are_refused(tmp_path: Path, segments: str) -> None:
    written(tmp_path, "hparams.yaml", "class_identifier: unified_metric", "pretrained_model: xlm-roberta-large",
            f"input_segments: {segments}")  # fmt: skip
    with pytest.raises(DataError, match=r"input_segments is .*, expected mt with src, ref or both"):
        settings_of(str(tmp_path))


LEVELS = [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]" for k in range(1, 6)]
MERGES = [f"a{k}: &a{k} {{<<: [{', '.join([f'*a{k - 1}'] * 10)}]}}" for k in range(1, 6)]


@pytest.mark.parametrize("lines", [["a0: &a0 [x]", *LEVELS], ["a0: &a0 {k: 1}", *MERGES]], ids=["lists", "merges"])
def test_aliases_that_multiply_are_refused(tmp_path: Path, lines: list[str]) -> None:
    written(tmp_path, "hparams.yaml", *lines, "hidden_sizes: *a5")
    with pytest.raises(DataError, match=r"hparams.yaml: is not YAML of plain values: more than 10 aliases"):
        settings_of(str(tmp_path))
    written(tmp_path, "README.md", "---", *lines, "language: [de]", "---")
    assert languages_of(tmp_path) is None


@pytest.mark.parametrize("value", ["!!timestamp foo", "!!int ''", "!!int '_'", "!!float ''", "!!bool foo"])
def test_values_that_are_not_what_their_tags_say_are_refused(tmp_path: Path, value: str) -> None:
    written(tmp_path, "hparams.yaml", "class_identifier: regression_metric", f"dropout: {value}")
    with pytest.raises(DataError, match=r"hparams.yaml: is not YAML of plain values: "):
        settings_of(str(tmp_path))
    written(tmp_path, "README.md", "---", f"version: {value}", "language: [de]", "---")
    assert languages_of(tmp_path) is None


def test_a_card_of_blank_lines_is_read_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, "README.md", "---", *[""] * 30_000)
    start = time.process_time()
    assert front_matter(path) is None
    assert time.process_time() - start < 2.0


def test_a_message_that_quotes_megabytes_keeps_its_start_and_its_end() -> None:
    message = str(DataError(f"is {'x' * 10_000_000}\x1b, expected a number", file="a.json"))
    assert message.startswith("a.json: is xxx")
    assert message.endswith(r"xxx\x1b, expected a number")
    assert len(message) < 5_000
