"""The same data in another order give the same digits."""

import contextlib
import gzip
import hashlib
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.cli import Run
from whyscore.cli.main import VERBS
from whyscore.data.dataset import dataset_lines, sample
from whyscore.experiments import experiments
from whyscore.types import Dataset

METRICS = ("-m", "chrf", "bleu", "length_ratio")
MULER = ("-m", "bleu", "--features", "capitalised", "number")
BMX = ("--human", "mqm", "-m", "token_f1", "--grid", "coarse", "--no-figures")
COMMANDS = {
    "score": ("score", *METRICS, "--draws", "50"),
    "score segments": ("score", *METRICS, "--segments"),
    "score documents": ("score", *METRICS, "--by-document"),
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
    "metaeval scores of pairs": (
        *("metaeval", "scores", "-m", "chrf", "length_ratio", "--human", "mqm", "--coefficient", "acc_eq"),
        *("--held-out-epsilon", "--draws", "20"),
    ),
    "metaeval scores given length": (
        *("metaeval", "scores", "-m", "chrf", "--human", "mqm", "--coefficient", "pearson", "--level", "global"),
        *("--given-length", "--draws", "20"),
    ),
    "metaeval words": ("metaeval", "words", "-m", "chrf", "-e", "intrinsic", "--draws", "50"),
    "metaeval faithfulness": (
        *("metaeval", "faithfulness", "-m", "chrf", "-e", "erasure", "--orders", "3", "--draws", "20"),
    ),
    "explain": ("explain", "-m", "chrf", "-e", "lime(samples=20)"),
    "boost": ("boost", "-m", "chrf", "-e", "erasure", "--segments"),
    "boost systems": ("boost", "-m", "token_f1", "-e", "erasure", "-p", "2", "--weight", "0.5"),
    "calibrate scores": ("calibrate", "--human", "mqm", "-m", "length_ratio", "-e", "erasure", "--folds", "4"),
    "select": ("select", "-n", "10", "--method", "variance", "-m", "chrf"),
    "select disagreement": ("select", "-n", "10", "--method", "disagreement", "-m", "chrf", "length_ratio"),
    "select diversity": ("select", "-n", "10", "--method", "diversity"),
    "select random": ("select", "-n", "10", "--method", "random"),
    "muler-hybrid": ("experiment", "muler-hybrid", *MULER),
    "muler-specificity": ("experiment", "muler-specificity", *MULER, "--repeat", "3", "--groups", "2"),
    "muler-frequency": ("experiment", "muler-frequency", *MULER),
    "muler-tagnoise": ("experiment", "muler-tagnoise", *MULER, "--noise", "move"),
    "injection": ("experiment", "injection", "-m", "chrf", "--limit", "8"),
    "perturbations": ("experiment", "perturbations", "-m", "chrf", "--limit", "20", "--draws", "50"),
    "error-categories": ("experiment", "error-categories", "--texts", "20", "--limit", "20", "--draws", "50"),
    "layers": ("experiment", "layers", "--human", "mqm", "--systems", "MiSS", "Online-W"),
}
EXPLAIN = ("explain", "{data}", "-m", "chrf", "-e", "erasure", "-f", "jsonl", "-o", "words.jsonl")
EVALUATE = ("evaluate", "{data}", "-m", "chrf", "qe", "--budget", "5", "--draws", "50", "-o", "run")
PARALLEL = ("-s", "source.txt", "-t", "target.txt")
FILES: dict[str, tuple[tuple[tuple[str, ...], ...], str]] = {
    "evaluate": ((EVALUATE,), "run/*.jsonl*"),
    "merge": (
        (
            *((*EVALUATE[:-1], f"part-{k}", "--shard", f"{k}/2") for k in (1, 2)),
            ("merge", "part-1", "part-2", "-o", "run"),
        ),
        "run/*.jsonl*",
    ),
    "triage": (
        (
            (*EVALUATE[:2], "-m", "qe", *EVALUATE[5:]),
            (
                "triage",
                "run",
                "--tune-on",
                "run",
                "--human",
                "mqm",
                "--precision",
                "0.5",
                "-f",
                "jsonl",
                "-o",
                "out.jsonl",
            ),
        ),
        "out.jsonl",
    ),
    "convert": (
        (
            EXPLAIN,
            (
                "convert",
                "words.jsonl",
                "--to",
                "spans",
                "--threshold",
                "auto",
                "--pick",
                "MiSS chrf erasure",
                "-o",
                "out.jsonl",
            ),
        ),
        "out.jsonl",
    ),
    "metaeval spans": (
        (("metaeval", "spans", "predicted.jsonl", "--gold", "{data}", "-f", "jsonl", "-o", "out.jsonl"),),
        "out.jsonl",
    ),
    "learn-lexicon": ((("learn-lexicon", *PARALLEL, "-o", "out.tsv"),), "out.tsv"),
    "learn-map": (
        (("learn-map", *PARALLEL, "--aligner", "ibm1", "--pairs", "20", "-o", "out.npz"),),
        "out.npz",
    ),
    "baseline": (
        (("experiment", "baseline", "target.txt", "-m", "xbertscore", "--pairs", "20", "-o", "out.tsv"),),
        "out.tsv",
    ),
    "bmx-grid": (
        (("experiment", "bmx-grid", "table.jsonl", *BMX, "--resamples", "19", "-o", "run"),),
        "run/[!c]*.jsonl",  # not the costs, which tell seconds
    ),
    "bmx-stability": (
        (
            (
                "experiment",
                "bmx-stability",
                "table.jsonl",
                *BMX,
                "--samples",
                "10",
                "--runs",
                "2",
                "--every",
                "9",
                "-o",
                "run",
            ),
        ),
        "run/*.jsonl",
    ),
    "bmx": (
        (
            (
                *(
                    "experiment",
                    "bmx",
                    "--calibrate",
                    "table.jsonl",
                    "--evaluate",
                    "table.jsonl",
                    "--allow-overlap",
                    *BMX,
                ),
                *("--limit", "12", "--resamples", "19", "-o", "run"),
            ),
        ),
        "run/[!c]*.jsonl",
    ),
    "muler-pairs": (
        (("experiment", "muler-pairs", "{data}", *MULER, "--close", "1", "--far", "0", "-o", "run"),),
        "run/*.tsv",
    ),
    "muler-figures": (
        (
            ("decompose", "{data}", *MULER, "--draws", "0", "-f", "jsonl", "-o", "shares.jsonl"),
            ("experiment", "muler-figures", "shares.jsonl", "-o", "figures", "-f", "jsonl"),
        ),
        "printed.jsonl",
    ),
    "train": (
        (
            (
                *("train", "--parallel", "source.txt", "target.txt", "--labels", "perturbation", "--perturbed", "1"),
                *("--epochs", "1", "--least-segments", "10", "--held-out", "0.5", "-o", "out"),
            ),
        ),
        "out/model.safetensors",
    ),
    "submit": (
        (
            (
                "submit",
                "wmt-metrics",
                "{data}",
                "-m",
                "chrf",
                "--test-set",
                "generaltest2022",
                "-l",
                "zh-en",
                "-o",
                "out",
            ),
        ),
        "out/*.sys.score",  # segments are named by their lines
    ),
}
"""Commands one after the other, and the files that hold what they computed; `printed.jsonl` is what one prints."""


@pytest.fixture(scope="module")
def orders() -> tuple[Dataset, ...]:
    """The sample as it comes, with its segments shuffled, and with its systems turned round as well."""
    whole = sample()
    ids = list(whole.ids[:60])
    by_id = {name: [entry for entry in whole.entries if entry.id == name] for name in ids}
    document = {name: f"talk {number % 7}" for number, name in enumerate(ids)}
    shuffled = random.Random(1).sample(ids, len(ids))
    found = [
        [replace(entry, document=document[name]) for name in order for entry in by_id[name][::step]]
        for order, step in ((ids, 1), (shuffled, 1), (shuffled, -1))
    ]
    return tuple(Dataset(whole.name, tuple(own), whole.languages) for own in found)


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
    """The records of a result, in an order of their own; a difference is of the system that comes first by its name."""
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    found = [_unordered(_oriented(line)) for line in lines if "schema" not in line]
    rest = [line for line in text.splitlines() if not line.startswith("{")]
    return sorted([json.dumps(line, sort_keys=True) for line in found] + rest)


def _oriented(line: dict[str, Any]) -> dict[str, Any]:
    if not {"first", "second", "difference"} <= set(line):
        return line
    line = {key: value for key, value in line.items() if key not in ("reason", "because")}  # they name both systems
    if line["first"] < line["second"]:
        return line
    turned = {"first": line["second"], "second": line["first"]}
    numbers = {"difference": line["difference"], "low": line.get("high"), "high": line.get("low")}
    return line | turned | {name: None if value is None else -value or 0.0 for name, value in numbers.items()}


def _unordered(value: object) -> object:
    if isinstance(value, dict):
        return {key: _unordered(item) for key, item in value.items() if key not in ("index", "line", "rank", "entry")}
    return value


@pytest.mark.parametrize("name", COMMANDS)
def test_another_order_gives_the_same_digits(
    name: str, run: Run, orders: tuple[Dataset, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHYSCORE_STORE", "none")
    verb, *rest = COMMANDS[name]
    asked = [verb, rest.pop(0)] if verb in ("metaeval", "experiment") else [verb]
    found = []
    for number, data in enumerate(orders[::2]):
        text = table(data) if "scores" in name else "".join(dataset_lines(data, created="-"))
        Path(f"{number}.jsonl").write_text(text, "utf-8")
        found.append(run(*asked, f"{number}.jsonl", *rest, "-f", "jsonl"))
    assert [done.code for done in found] == [0, 0], found[0].err
    assert records(found[0].out) == records(found[1].out)


@pytest.mark.parametrize("name", FILES)
def test_another_order_gives_the_same_files(name: str, run: Run, orders: tuple[Dataset, ...]) -> None:
    found = []
    for number, data in enumerate(orders[::2]):
        place = Path(str(number))
        place.mkdir()
        (place / "data.jsonl").write_text("".join(dataset_lines(data, created="-")), "utf-8")
        fewer = [replace(entry, spans=(entry.spans or ())[:1]) for entry in data.entries]
        predicted = replace(data, entries=tuple(fewer))
        (place / "predicted.jsonl").write_text("".join(dataset_lines(predicted, created="-")), "utf-8")
        texts = [entry.segment for entry in data.entries if entry.system == "MiSS"]
        (place / "table.jsonl").write_text(table(data), "utf-8")
        (place / "source.txt").write_text("".join(f"{one.source}\n" for one in texts), "utf-8")
        (place / "target.txt").write_text("".join(f"{one.references[0]}\n" for one in texts), "utf-8")
        with contextlib.chdir(place):
            for command in FILES[name][0]:
                done = run(*(part.format(data="data.jsonl") for part in command), "-q")
                Path("printed.jsonl").write_text(done.out, "utf-8")
                assert done.code == 0, done.err
            files = {str(file): open_text(file) for file in sorted(Path().glob(FILES[name][1])) if file.is_file()}
        found.append({file: records(text) for file, text in files.items()})
    assert found[0]
    assert found[0] == found[1]


def open_text(file: Path) -> str:
    content = file.read_bytes()
    if file.suffix in (".npz", ".safetensors"):
        return hashlib.sha256(content).hexdigest()
    return (gzip.decompress(content) if file.suffix == ".gz" else content).decode()


def test_every_command_that_computes_numbers_is_here() -> None:
    commands = [*COMMANDS.values(), *(command for steps, _ in FILES.values() for command in steps)]
    computing = set(VERBS) - {"report", "serve", "validate", "list", "doctor", "store"}
    assert computing == {command[0] for command in commands}


def test_every_experiment_is_here() -> None:
    commands = [*COMMANDS.values(), *(command for steps, _ in FILES.values() for command in steps)]
    tried = {command[1] for command in commands if command[0] == "experiment"}
    aliases = {"hybrid", "specificity", "frequency", "tagnoise"}
    # Gold folders and SummEval are in files of the publishers, and the order of SummEval is what its splits go by.
    others = {"bmx-summeval", *(name for name in experiments() if name.startswith("eval4nlp"))}
    assert set(experiments()) - aliases - others == tried
