"""What the faults of `make_reliability.py` are tried on: folders with data, a peaceful run, and how to judge others."""

import gzip
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from whyscore.scoring.store import Store, check

COMMAND = (sys.executable, "-m", "whyscore", "evaluate", "data.jsonl", "-m", "chrf", "slow.py:score", "-e", "erasure")
OPTIONS = ("-o", "run", "--draws", "100", "-q")
PATIENCE = 1800.0

SLOW = """
import json, os, time

def score(segments):
    if len(segments) > 1:  # one text is asked about twice, to see whether the numbers stay the same
        line = json.dumps([os.getpid(), [[one.hypothesis, *one.references] for one in segments]]) + "\\n"
        place = os.open(os.environ["ASKED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(place, line.encode())
        os.close(place)
    if len(segments) > int(os.environ.get("ROOM", "1000000")):
        raise MemoryError
    time.sleep(float(os.environ.get("PAUSE", "0.002")) * len(segments))
    return [len(set(one.hypothesis.split()) & set(one.references[0].split())) / 9 for one in segments]
"""


class Told(NamedTuple):
    """How a command ended."""

    code: int
    said: str

    @property
    def clear(self) -> bool:
        """Whether it ended well, or with one line that a user can read."""
        lines = [line for line in self.said.splitlines() if line.startswith("whyscore: error:")]
        return "Traceback" not in self.said and (self.code == 0 or len(lines) == 1)


@dataclass(frozen=True)
class Place:
    """A folder for one try, with the data and the metric in it."""

    path: Path
    store: Path
    name: str = "run"

    @property
    def run(self) -> Path:
        """The run folder."""
        return self.path / self.name

    @property
    def asked(self) -> Path:
        """Where the slow metric writes down what it is asked."""
        return self.path / "asked.jsonl"

    def begin(self, *before: str, **settings: str) -> "subprocess.Popen[str]":
        """Return the running command; `before` is what starts it, `settings` go into its environment."""
        environment = os.environ | {"ASKED": str(self.asked), "WHYSCORE_STORE": str(self.store)} | settings
        environment |= {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        return subprocess.Popen(  # noqa: S603 - our own command
            [*before, *COMMAND, *OPTIONS],
            cwd=self.path,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def complete(self, *before: str, **settings: str) -> Told:
        """Return how the command ended."""
        return ended(self.begin(*before, **settings))

    def calls(self) -> list[tuple[int, list[str]]]:
        """Return who asked the slow metric, and for which texts, in order."""
        if not self.asked.exists():
            return []
        lines = [json.loads(line) for line in self.asked.read_text("utf-8").splitlines()]
        return [(who, ["\n".join(texts) for texts in asked]) for who, asked in lines]

    def records(self) -> dict[str, str]:
        """Return the records of the run, file by file, without their headers, which hold a date."""
        return {file.name: _text(file).partition("\n")[2] for file in self.run.glob("*.jsonl*")}

    def outputs(self) -> dict[str, str]:
        """Return every file of the run, without dates and seconds."""
        found = {file.name: _text(file) for file in self.run.iterdir() if file.name != ".lock"}
        facts = json.loads(found["run.json"])
        found = {name: text.replace(facts["created"], "-") for name, text in found.items()}
        found["run.json"] = json.dumps({key: facts[key] for key in facts if key not in {"created", "seconds"}})
        found["report.html"] = re.sub(r"<dt>Seconds</dt><dd>.*?</dd>", "", found["report.html"], flags=re.DOTALL)
        return found


def _text(file: Path) -> str:
    return gzip.decompress(file.read_bytes()).decode() if file.suffix == ".gz" else file.read_text("utf-8")


def ended(process: "subprocess.Popen[str]") -> Told:
    """Return how a process ended."""
    _, said = process.communicate(timeout=PATIENCE)
    return Told(process.returncode, said)


@dataclass(frozen=True)
class Bench:
    """The peaceful run and the folder in which all tries are made."""

    folder: Path
    expected: Mapping[str, str]
    seconds: float
    seed: int

    def place(self, fault: str, number: int) -> Place:
        """Return the folder of a try."""
        path = self.folder / f"{fault.replace(' ', '-')}-{number}"
        return made(path, self.folder / "peace" / "data.jsonl")

    def draw(self, fault: str, number: int) -> random.Random:
        """Return the random numbers of a try."""
        return random.Random(f"{self.seed} {fault} {number}")  # noqa: S311 - no secret

    def good(self, place: Place) -> bool:
        """Return whether a run came to what the peaceful one came to, and its store is sound."""
        return place.outputs() == self.expected and not check(Store(place.store))


def made(path: Path, data: Path, store: Path | None = None) -> Place:
    """Return a new folder with the data and the metric."""
    path.mkdir(parents=True)
    shutil.copy(data, path / "data.jsonl")
    (path / "slow.py").write_text(SLOW, "utf-8")
    return Place(path, store or path / "store.sqlite")


def prepared(folder: Path, segments: int, seed: int) -> Bench:
    """Make the data and the peaceful run."""
    draw = random.Random(seed)  # noqa: S311 - no secret
    words = ["".join(draw.choices("abcdefghijklm", k=draw.randint(2, 8))) for _ in range(400)]
    lines = []
    for number in range(segments):
        reference = draw.choices(words, k=9)
        for system, share in (("one", 0.2), ("two", 0.3)):
            hypothesis = [draw.choice(words) if draw.random() < share else word for word in reference]
            entry = {"id": str(number), "system": system, "hypothesis": " ".join(hypothesis)}
            lines.append(json.dumps(entry | {"reference": " ".join(reference)}) + "\n")
    data = folder / "data.jsonl"
    data.write_text("".join(lines), "utf-8")
    place = made(folder / "peace", data)
    start = time.perf_counter()
    told = place.complete()
    if told.code:
        raise SystemExit(f"the run without faults failed: {told.said}")
    return Bench(folder, place.outputs(), time.perf_counter() - start, seed)


def repeated(*places: Place) -> Counter[str]:
    """Return the texts that the slow metric was asked about by more than one process.

    A process asks for its first text again now and then, to see that the metric gives the same number.
    """
    asked = {(who, text) for place in places for who, texts in place.calls() for text in texts}
    counts = Counter(text for _, text in asked)
    return Counter({text: count - 1 for text, count in counts.items() if count > 1})
