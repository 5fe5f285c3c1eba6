"""The same data in another order give the same digits."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from support.cli import Run
from whyscore.data.dataset import dataset_lines, sample
from whyscore.types import Dataset

METRICS = ("-m", "chrf", "bleu", "length_ratio")
COMMANDS = {
    "score": ("score", *METRICS, "--draws", "50"),
    "compare": ("compare", *METRICS, "--draws", "99", "--strengths"),
    "compare bootstrap": ("compare", "-m", "chrf", "length_ratio", "--test", "bootstrap", "--draws", "99"),
    "compare documents": ("compare", "-m", "chrf", "--documents", "--draws", "99"),
    "decompose": ("decompose", "-m", "chrf", "--draws", "50"),
    "metaeval scores": (
        *("metaeval", "scores", "-m", "chrf", "length_ratio", "--human", "mqm", "--level", "global"),
        *("--coefficient", "pearson", "--test", "permute-both", "--draws", "50", "--resamples", "99"),
    ),
    "metaeval scores of systems": (
        *("metaeval", "scores", "-m", "chrf", "length_ratio", "--human", "mqm", "--coefficient", "spa"),
        *("--draws", "50", "--resamples", "99"),
    ),
    "metaeval words": ("metaeval", "words", "-m", "chrf", "-e", "intrinsic", "--draws", "50"),
    "metaeval faithfulness": ("metaeval", "faithfulness", "-m", "chrf", "-e", "erasure", "--draws", "20"),
    "explain": ("explain", "-m", "chrf", "-e", "lime(samples=20)"),
    "boost": ("boost", "-m", "chrf", "-e", "erasure", "--segments"),
    "calibrate scores": ("calibrate", "--human", "mqm", "-m", "length_ratio", "-e", "erasure", "--folds", "4"),
    "select": ("select", "-n", "10", "--method", "variance", "-m", "chrf"),
    "select random": ("select", "-n", "10", "--method", "random"),
}


@pytest.fixture(scope="module")
def orders() -> tuple[Dataset, ...]:
    """The sample as it comes, and with its segments shuffled."""
    whole = sample()
    ids = list(whole.ids[:60])
    by_id = {name: [entry for entry in whole.entries if entry.id == name] for name in ids}
    document = {name: f"talk {number % 7}" for number, name in enumerate(ids)}
    shuffled = random.Random(1).sample(ids, len(ids))
    kept, shuffled = (
        [replace(entry, document=document[name]) for name in order for entry in by_id[name]]
        for order in (ids, shuffled)
    )
    return tuple(Dataset(whole.name, tuple(own), whole.languages) for own in (kept, shuffled))


def table(data: Dataset) -> str:
    """The data as plain objects, for commands that read tables."""
    rows = [
        {
            "id": entry.id,
            "system": entry.system,
            "hypothesis": entry.segment.hypothesis,
            "reference": entry.segment.references[0],
            "mqm": entry.human["mqm"],
        }
        for entry in data.entries
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def records(text: str) -> list[str]:
    """The records of a result, in an order of their own."""
    lines = [json.loads(line) for line in text.splitlines()][1:]
    return sorted(json.dumps(_unordered(line), sort_keys=True) for line in lines)


def _unordered(value: object) -> object:
    if isinstance(value, dict):
        return {key: _unordered(item) for key, item in value.items() if key not in ("index", "line")}
    return value


@pytest.mark.parametrize("name", COMMANDS)
def test_another_order_gives_the_same_digits(name: str, run: Run, orders: tuple[Dataset, ...]) -> None:
    for file, data in zip(("first.jsonl", "second.jsonl"), orders, strict=True):
        text = table(data) if "scores" in name else "".join(dataset_lines(data, created="-"))
        Path(file).write_text(text, "utf-8")
    verb, *rest = COMMANDS[name]
    asked = [verb, rest.pop(0)] if verb == "metaeval" else [verb]
    found = [run(*asked, file, *rest, "-f", "jsonl", "--store", "none") for file in ("first.jsonl", "second.jsonl")]
    assert [done.code for done in found] == [0, 0], found[0].err
    assert records(found[0].out) == records(found[1].out)
