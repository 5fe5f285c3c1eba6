"""Every file besides the data sets that a user can give is read, or refused on one line, whatever its bytes are.

The files and what parses them are in `support.parsers` and `support.run_folders`; a check at the end of this file makes
sure that no module reads files of its own without being listed here.
"""

import ast
import os
import re
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.corruption import corrupted, swapped
from support.parsers import ParserFixture, parsers, refusal
from support.run_folders import run_folders

SOURCES = Path(__file__).resolve().parents[2] / "src" / "whyscore"
SMALL = parsers()
SLOW = ("run", "runs", "run again", "shards", "store", "experiment")
JSON = {
    name: files
    for name, fixture in SMALL.items()
    if (files := [file for file in fixture.names if fixture.files[file].startswith((b"{", b"["))])
}
"""Files of JSON by fixture; YAML reads JSON, too."""
CHECKS = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
TIMES = int(os.environ.get("FUZZ", "1"))
"""FUZZ=10 looks at ten times as many examples, others each time."""
OWN = settings(max_examples=settings.default.max_examples // 4 * TIMES, suppress_health_check=CHECKS)
FEW = settings(max_examples=settings.default.max_examples // 12, suppress_health_check=CHECKS)

edits = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 200), st.sampled_from([0, 1, 2, 5, 12, 10_000])), min_size=1, max_size=4
)
swaps = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 100)), min_size=1, max_size=3)
fresh = count()


def parse_with(fixture: ParserFixture, folder: Path, name: str, content: bytes) -> str | None:
    """Parse a fixture with one changed file, in a folder of its own: files are remembered by path and time."""
    place = folder / str(next(fresh))
    place.mkdir()
    return refusal(fixture, fixture.write(place, {name: content}))


@pytest.mark.parametrize("name", [*SMALL, *SLOW])
def test_every_parser_takes_its_valid_files(name: str, tmp_path: Path) -> None:
    fixture = SMALL[name] if name in SMALL else run_folders()[name]
    assert refusal(fixture, fixture.write(tmp_path)) is None


@OWN
@given(edits=edits, which=st.integers(0, 20))
@pytest.mark.parametrize("name", SMALL)
def test_a_corrupted_file_is_read_or_refused_on_one_line(
    name: str, edits: list[tuple[float, int, int]], which: int, tmp_path: Path
) -> None:
    fixture = SMALL[name]
    file = fixture.names[which % len(fixture.names)]
    parse_with(fixture, tmp_path, file, corrupted(fixture.files[file], edits))


@OWN
@given(edits=swaps, which=st.integers(0, 20))
@pytest.mark.parametrize("name", JSON)
def test_json_with_other_values_is_read_or_refused_on_one_line(
    name: str, edits: list[tuple[int, int]], which: int, tmp_path: Path
) -> None:
    fixture = SMALL[name]
    file = JSON[name][which % len(JSON[name])]
    parse_with(fixture, tmp_path, file, swapped(fixture.files[file], edits))


@OWN
@given(content=st.binary(max_size=200), name=st.sampled_from(list(SMALL)), which=st.integers(0, 20))
def test_any_bytes_are_read_or_refused_on_one_line(content: bytes, name: str, which: int, tmp_path: Path) -> None:
    fixture = SMALL[name]
    parse_with(fixture, tmp_path, fixture.names[which % len(fixture.names)], content)


@FEW
@given(edits=edits, others=swaps, which=st.integers(0, 40))
@pytest.mark.parametrize("name", SLOW)
def test_corrupted_folders_of_our_own_are_read_or_refused_on_one_line(
    name: str, edits: list[tuple[float, int, int]], others: list[tuple[int, int]], which: int, tmp_path: Path
) -> None:
    fixture = run_folders()[name]
    file = fixture.names[which % len(fixture.names)]
    parse_with(fixture, tmp_path, file, corrupted(fixture.files[file], edits))
    if file.endswith((".json", ".jsonl")):
        parse_with(fixture, tmp_path, file, swapped(fixture.files[file], others))


def test_what_a_damaged_run_says_names_file_line_and_cure(tmp_path: Path) -> None:
    fixture = run_folders()["run"]
    content = fixture.files["run/scores.jsonl"].replace(b'"metric"', b'"metrics"', 1)
    cure = "the file was changed or damaged; make the run again with whyscore evaluate --overwrite"
    told = parse_with(fixture, tmp_path, "run/scores.jsonl", content)
    assert told is not None
    assert re.search(r"run/scores\.jsonl:\d+: 'metric' is None, expected a text: " + re.escape(cure), told)


# Modules that turn bytes of files into values, by what corrupts those files. Whoever adds one says here which.
READING = {
    "the parsers above": {
        "analysis/calibrate/file.py", "analysis/decompose/sentences.py", "data/formats/summaries.py",
        "experiments/bmx/study.py",
        "experiments/bmx/summeval.py", "metrics/estimators/qe.py", "metrics/lookup.py",
        "metrics/matching/weights.py", "models/checkpoints.py", "models/encoders/sentence.py",
        "models/lexicon.py", "models/maps.py", "models/word_vectors.py",
        "report/build.py", "runs/evaluate.py", "runs/folder.py", "scoring/store.py",
        "taggers/aligned.py", "text/files.py",
    },
    "test_fuzz_readers": {
        "data/codec.py", "data/columns.py", "data/formats/dialects.py", "data/formats/jsonl.py",
        "data/formats/spans.py", "data/formats/tables.py", "data/formats/xliff.py", "data/records.py",
    },
    "test_fuzz_commands": {"cli/commands/convert.py"},
    "files that come with whyscore, or with a package of a fixed version": {
        "analysis/compare/compare.py",
        "models/encoders/embedded.py", "models/encoders/static.py", "report/page.py", "taggers/hanta.py",
        "taggers/nltk.py", "taggers/spacy.py", "web/app.py", "metrics/judge/protocols.py", "experiments/injection.py",
    },
    "what the operating system says of a process": {
        "web/workers.py",
    },
    "source code of the user, which is run": {"scoring/ray.py", "text/sources.py"},
    "tests/analysis/train": {"analysis/train/examples.py", "data/writing.py", "metrics/estimators/joint.py"},
    "tests/metrics/judge": {
        "metrics/judge/client.py", "metrics/judge/metric.py", "metrics/judge/parsing.py", "scoring/answers.py",
    },
}  # fmt: skip
CALLS = {
    "loads", "loadtxt", "memmap", "safe_load", "fromstring", "ParserCreate", "read_text", "read_bytes", "reader",
    "DictReader", "load_file",
}  # fmt: skip


def reads(file: Path) -> bool:
    """Whether a module makes values of the bytes of files."""
    called = [node.func for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Call)]
    named = [function for function in called if isinstance(function, ast.Attribute)]
    return any(one.attr in CALLS or ast.unparse(one) == "np.load" for one in named)


def test_every_module_that_reads_files_is_listed_with_what_corrupts_them() -> None:
    found = {file.relative_to(SOURCES).as_posix() for file in SOURCES.rglob("*.py") if reads(file)}
    ours = {name for name in found if not name.startswith("testing/")}
    assert ours == set().union(*READING.values())
