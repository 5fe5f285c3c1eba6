"""The real data that ship with whyscore."""

import csv
import importlib.util
import json
import re
import sys
from collections import Counter
from importlib import resources
from pathlib import Path
from types import ModuleType

import jsonschema
import pytest

from whyscore.data.checks import findings
from whyscore.data.dataset import FILE, sample
from whyscore.data.records import schema
from whyscore.types import Dataset, Place, Side

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "make_sample.py"


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return sample()


@pytest.fixture(scope="module")
def script() -> ModuleType:
    if not SCRIPT.exists():
        pytest.skip("the script is not part of this copy")
    spec = importlib.util.spec_from_file_location("make_sample", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_sample"] = module
    spec.loader.exec_module(module)
    return module


def test_the_sample_is_a_hundred_segments_of_five_systems(dataset: Dataset) -> None:
    assert (dataset.name, dataset.languages) == ("ted-zh-en sample", ("zh", "en"))
    assert dataset.systems == ("DIDI-NLP", "MiSS", "Borderline", "Facebook-AI", "Online-W")
    assert (len(dataset), len(dataset.ids)) == (500, 100)
    assert all(dataset.of(system).ids == dataset.ids for system in dataset.systems)


def test_every_segment_has_its_source_and_two_references(dataset: Dataset) -> None:
    for segment in dataset.segments:
        assert segment.source
        assert len(segment.references) == 2
        assert all(text.strip() for text in (segment.hypothesis, *segment.references))
        assert not any("<v>" in text or "</v>" in text for text in (segment.hypothesis, segment.source))


def test_every_span_marks_a_stretch_of_words(dataset: Dataset) -> None:
    count = 0
    for entry in dataset.entries:
        assert entry.spans is not None
        for span in entry.spans:
            text = entry.segment.text(Place(span.side, span.reference))
            marked = text[span.start : span.end]
            assert marked
            assert marked == marked.strip()
            assert span.severity in {"minor", "major"}
            assert span.category
            assert span.side in {Side.HYPOTHESIS, Side.SOURCE}
            count += 1
    assert count > 300


def test_scores_are_the_weights_of_the_spans(dataset: Dataset) -> None:
    for entry in dataset.entries:
        cost = 0.0
        for span in entry.spans or ():
            minor = 0.1 if span.category == "Fluency/Punctuation" else 1.0
            cost += 5.0 if span.severity == "major" else minor
        assert entry.human["mqm"] == pytest.approx(-cost, abs=1e-12)


def test_the_systems_differ_in_quality(dataset: Dataset) -> None:
    means = [dataset.of(system).human("mqm").mean() for system in dataset.systems]
    assert means[0] > means[1] > means[2] > max(means[3:])


def test_nothing_looks_wrong_in_it(dataset: Dataset) -> None:
    assert findings(dataset) == []


def test_its_lines_fit_their_schema() -> None:
    text = (resources.files("whyscore") / "data" / FILE).read_text(encoding="utf-8")
    header, *records = map(json.loads, text.split("\n")[:-1])
    jsonschema.validate(header, schema("header"))
    check = jsonschema.Draft202012Validator(schema("dataset"))
    assert all(check.is_valid(record) for record in records)
    assert len(records) == header["counts"]["entries"] == 500


def test_scores_equal_the_published_ones(dataset: Dataset, shipped: Path) -> None:
    with (shipped / "mqm" / "ted_zhen_mqm_expected.csv").open(encoding="utf-8") as file:
        expected = {(row["system"], row["seg_id"]): float(row["mqm"]) for row in csv.DictReader(file)}
    for entry in dataset.entries:
        # Sums of 0.1 depend on their order in the last digit.
        assert entry.human["mqm"] == pytest.approx(expected[entry.system, entry.id], abs=1e-9)


def test_it_is_made_again_byte_for_byte(script: ModuleType, shipped: Path, tmp_path: Path) -> None:
    script.main([str(shipped / "mqm" / "ted_zhen_ratings.jsonl"), str(tmp_path / FILE)])
    assert (tmp_path / FILE).read_bytes() == (resources.files("whyscore") / "data" / FILE).read_bytes()


def test_its_way_of_reading_marks_holds_for_all_ratings(script: ModuleType, shipped: Path) -> None:
    ratings = script.read_ratings(shipped / "mqm" / "ted_zhen_ratings.jsonl")
    assert len(ratings) == 7935
    sides = Counter(span.side for rows in ratings.values() for span in script.spans(rows))
    assert sides == {Side.HYPOTHESIS: 5269, Side.SOURCE: 349}
    for rows in ratings.values():
        script.text_of(rows, "target")


@pytest.mark.parametrize(
    ("marked", "text", "span"),
    [
        ("a <v>cat</v>.", "a cat.", (2, 5)),
        ("a <v> cat </v>.", "a  cat .", (3, 6)),
        ("𝄞 <v>猫", "𝄞 猫", (2, 3)),
        ("a cat", "a cat", None),
    ],
)
def test_marks_become_offsets(script: ModuleType, marked: str, text: str, span: tuple[int, int] | None) -> None:
    assert script.unmarked(marked) == (text, span)


def test_the_script_says_how_it_is_used(script: ModuleType) -> None:
    with pytest.raises(SystemExit, match=re.escape("usage: make_sample.py PATH_TO_RATINGS")):
        script.main([])
