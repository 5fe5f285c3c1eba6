"""`whyscore explain --matrix`: the similarities of words behind a match."""

import json
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import cast

import jsonschema
import numpy as np
import pytest

from support import tiny_models
from support.cli import Done, Run
from whyscore.metrics.matching import bertscore as matching_reader
from whyscore.metrics.matching.bertscore import BertScore
from whyscore.types import Segment

Matrix = dict[str, object]

HYPOTHESIS, SOURCE = "The dog sat on the mat.", "Die Katze saß auf der Matte."


@pytest.fixture
def explain(run: Run) -> Iterator[Run]:
    """Explain texts by matching."""
    yield lambda *arguments: run("explain", "--text", *arguments, "-e", "matching", "--store", "none")
    matching_reader.reader_of.cache_clear()


def records(done: Done) -> list[dict[str, object]]:
    """Return the records, each checked against the schema."""
    assert done.code == 0, done.err
    schema = json.loads((resources.files("whyscore.data") / "schemas" / "explanations.json").read_text("utf-8"))
    found = [json.loads(line, parse_constant=pytest.fail) for line in done.out.splitlines()[1:]]
    for record in found:
        jsonschema.validate(record, schema)
    return found


def matrices(done: Done) -> list[Matrix]:
    return [cast("Matrix", record["matrix"]) for record in records(done)]


def texts(words: object) -> list[str]:
    return [word["text"] for word in cast("list[dict[str, str]]", words)]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers", reason="the extra 'neural' is not installed")
    folder = tmp_path_factory.mktemp("tiny") / "model"
    tiny_models.save(folder, "bert", "BertModel", limit=32, blocks=2, std=0.2)
    return folder


def test_words_in_phrases_have_cosines_of_their_own(explain: Run) -> None:
    done = explain("-s", SOURCE, "-t", HYPOTHESIS, "-m", "xbertscore", "--matrix", "-f", "jsonl")
    first, second = matrices(done)
    assert (first["side"], second["side"]) == ("source", "hypothesis")
    assert (texts(first["words"]), texts(second["words"])) == (SOURCE.split(), HYPOTHESIS.split())
    here, there = np.array(first["cosines"]), np.array(second["cosines"])
    np.testing.assert_array_equal(here, there.T)
    notes = [str(word["note"]) for word in cast("list[dict[str, object]]", records(done)[0]["words"])]
    # The counterparts that are words, not phrases, are the largest cells.
    assert notes[2] == f"source: saß [10:13] {here[2].max():.4f}"
    assert here[2].argmax() == SOURCE.split().index("saß")


def test_a_cell_is_the_mean_over_pairs_of_pieces(explain: Run, tiny: Path) -> None:
    metric = f"bertscore(model={str(tiny)!r}, layer=1)"
    [matrix] = matrices(
        explain("-r", "A dog", HYPOTHESIS, "-t", "The cat slept", "-m", metric, "--matrix", "-f", "jsonl", "--side",
            "hypothesis")
    )  # fmt: skip
    references = ("A dog", HYPOTHESIS)
    found = BertScore(model=str(tiny), layer=1)
    both = found.similarities([Segment("The cat slept", None, references)])[0]
    best = int(np.argmax([found.matched([[one]])[0] for one in both]))
    assert (matrix["side"], matrix["reference"]) == ("reference", best)
    words = [(0, 3), (4, 7), (8, 13)]
    others = [(word["start"], word["end"]) for word in cast("list[dict[str, int]]", matrix["words"])]
    assert [references[best][start:end] for start, end in others] == references[best].split()
    pieces = both[best]
    expected = [
        [
            np.mean(
                [
                    pieces.cosines[i, j]
                    for i, (a, b) in enumerate(pieces.spans.tolist())
                    for j, (c, d) in enumerate(pieces.hypothesis_spans.tolist())
                    if start <= a < b <= end and first <= c < d <= last
                ]
            )
            for start, end in others
        ]
        for first, last in words
    ]
    np.testing.assert_allclose(np.array(matrix["cosines"]), expected, rtol=0, atol=1e-12)
    assert len(pieces.spans) > len(others) + 2


def test_words_behind_the_end_of_what_was_read_have_no_numbers(explain: Run, tiny: Path) -> None:
    metric = f"xbertscore(model={str(tiny)!r}, layer=1, fill='null')"
    long = " ".join(["Matte"] * 40)
    matrix = matrices(explain("-s", long, "-t", HYPOTHESIS, "-m", metric, "--matrix", "-f", "jsonl"))[0]
    assert matrix["reason"] == "truncated"
    rows = cast("list[list[float | None]]", matrix["cosines"])
    assert all(row[0] is not None and row[-1] is None for row in rows)


def test_a_blank_text_has_no_matrix_and_says_why(explain: Run) -> None:
    matrix = matrices(explain("-s", " ", "-t", "The cat", "-m", "xbertscore", "--matrix", "-f", "jsonl"))[0]
    assert matrix == {"side": None, "reference": None, "words": [], "cosines": [[], []], "reason": "empty"}


def test_without_the_option_records_stay_as_they_were(explain: Run) -> None:
    done = explain("-s", SOURCE, "-t", HYPOTHESIS, "-m", "xbertscore", "-f", "jsonl")
    assert all("matrix" not in record for record in records(done))


def test_a_metric_without_a_matrix_is_refused_before_any_work(explain: Run) -> None:
    done = explain("-r", "a cat", "-t", "a dog", "-m", "ter", "--matrix", "-f", "jsonl")
    assert (done.code, done.out) == (2, "")
    assert "ter has no similarity matrix: use bertscore or xbertscore" in done.err


def test_a_table_of_words_has_no_room_for_a_matrix(explain: Run) -> None:
    done = explain("-s", SOURCE, "-t", HYPOTHESIS, "-m", "xbertscore", "--matrix")
    assert (done.code, done.out) == (2, "")
    assert "--matrix goes into records: add -f jsonl, or -o FILE.jsonl" in done.err
