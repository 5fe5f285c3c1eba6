"""Which segments people should rate."""

import re

import numpy as np
import pytest
from tests.support.cli import Run

import whyscore as ws
from whyscore.analysis.select import select, selection_values, simulate_selection
from whyscore.errors import DataError, SpecError
from whyscore.types import Dataset, Entry, Segment


def data() -> Dataset:
    outputs = {"A": ["a b c d", "a b c d", "a b c d"], "B": ["a b c d", "a b c x", "q r s t"]}
    return ws.from_texts(outputs, references=["a b c d"] * 3)


def test_diverse_outputs_come_first_and_the_spread_of_a_metric_too() -> None:
    assert [entry.id for entry, _ in select(data(), count=2).segments] == ["2", "1"]
    assert [entry.id for entry, _ in select(data(), ["token_f1"], count=3, method="variance").segments] == [
        "2",
        "1",
        "0",
    ]
    scores = {"one": np.array([0.0, 1, 0, 0, 1, 0]), "other": np.array([0.0, 0, 1, 0, 1, 0])}
    values = selection_values(data(), "disagreement", scores, similarity="bleu")
    assert values[0] == pytest.approx(0, abs=0.02)
    assert values[1] == values[2] > values[0]


def test_chance_depends_on_the_seed_and_the_segment_alone() -> None:
    whole = data()
    chosen = [entry.id for entry, _ in select(whole, count=3, method="random").segments]
    turned = Dataset("x", whole.entries[::-1])
    assert [entry.id for entry, _ in select(turned, count=3, method="random").segments] == chosen


def test_a_simulation_finds_the_segments_that_tell_systems_apart() -> None:
    """Systems differ in a third of the segments, where their outputs differ too."""
    rng = np.random.default_rng(0)
    entries = []
    for k in range(90):
        for rank, system in enumerate("ABC"):
            apart = k % 3 == 0
            text = f"t{k} " + (f"{system} {system}{k} more words" if apart else "same words here now")
            entries.append(Entry(str(k), system, Segment(text), {"esa": -10.0 * rank * apart + rng.normal()}))
    result = simulate_selection(Dataset("x", tuple(entries)), human="esa", count=30, repeats=5)
    rows = {(row.method, row.segments): row for row in result.rows}
    assert result.all_clusters == 3
    assert rows["diversity", 15].clusters == 3
    assert rows["diversity", 7].correlation == pytest.approx(1)
    assert rows["random", 7].clusters < 3
    assert rows["random", 7].low is not None
    assert {row.method for row in result.rows} == {"random", "diversity"}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"count": 9}, DataError, "9 segments were requested"),
        ({"count": 1, "method": "variance"}, SpecError, "variance needs a metric"),
        ({"count": 1, "method": "disagreement"}, SpecError, "disagreement needs two metrics or more"),
    ],
)
def test_what_cannot_be_chosen_is_refused(options: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        select(data(), **options)
    with pytest.raises(DataError, match="has one system: only the method random"):
        select(data().of("A"), count=1)


def test_the_command_simulates_on_the_sample(run: Run) -> None:
    done = run("select", "--sample", "-n", "20", "--simulate", "--human", "mqm", "-m", "token_f1", "-f", "tsv", "-q")
    assert done.code == 0, done.err
    assert done.out.splitlines()[0].startswith("method\tsegments\tcorrelation")
    assert {line.split("\t")[0] for line in done.out.splitlines()[1:]} == {"random", "diversity", "variance"}
    assert "name its column with --human" in run("select", "--sample", "--simulate").err
