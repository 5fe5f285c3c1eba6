"""Faults of `make_reliability.py` that are not of one killed or starved `evaluate`: other commands, files and numbers.

Each function makes one fault once and returns what was not as it should be; nothing means that it was survived.
"""

import contextlib
import gzip
import hashlib
import json
import os
import platform
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from reliability_bench import COMMAND, OPTIONS, PATIENCE, Bench, Place, Told, ended

from whyscore.errors import StoreError
from whyscore.scoring.store import Store, check, repair

WHYSCORE = (sys.executable, "-m", "whyscore")
ALONE = ("--store", "none", "-q")
QUICK = ("--draws", "50", *ALONE)
WRITERS: dict[str, tuple[str, ...]] = {
    "score": ("score", "data.jsonl", "-m", "chrf", "bleu", "ter", *QUICK, "-o", "out.json"),
    "compare": ("compare", "data.jsonl", "-m", "chrf", "ter", *QUICK, "-o", "out.csv"),
    "explain": ("explain", "data.jsonl", "-m", "chrf", "-e", "erasure", "--store", "none", "-q", "-o", "out.jsonl"),
    "decompose": ("decompose", "data.jsonl", "-m", "chrf", *QUICK, "-o", "out.json"),
    "calibrate": ("calibrate", "rated.jsonl", "--human", "mqm", "-m", "chrf", "-e", "erasure", *ALONE, "-o", "out.csv"),
    "boost": ("boost", "data.jsonl", "-m", "chrf", "-e", "erasure", "--segments", *ALONE, "-o", "out.jsonl"),
    "metaeval": ("metaeval", "scores", "rated.jsonl", "-m", "chrf", "--human", "mqm", *QUICK, "-o", "out.tex"),
    "select": ("select", "data.jsonl", "-n", "5", "--store", "none", "-q", "-o", "out.csv"),
    "convert": (
        *("convert", "words.jsonl", "--to", "spans", "--threshold", "auto", "--pick", "one chrf erasure", "-q"),
        *("-o", "out.jsonl"),
    ),
    "submit": (
        *("submit", "eval4nlp", "-s", "ref.txt", "-t", "mt.txt", "-r", "ref.txt", "-m", "chrf", "-e", "erasure"),
        *("--team", "me", "--track", "constrained", "--store", "none", "-q", "-o", "out"),
    ),
    "learn-lexicon": ("learn-lexicon", "-s", "ref.txt", "-t", "mt.txt", "-q", "-o", "out.npz"),
    "report": ("report", "peace", "-q", "-o", "out.html"),
    "merge": ("merge", "shard-1", "shard-2", "-q", "-o", "out"),
}
"""A command of each kind that writes; every one writes what `-o` names."""

_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[+-]\d\d:\d\d)?")
_SECONDS = re.compile(r"<dt>Seconds</dt><dd>.*?</dd>", re.DOTALL)


def start(path: Path, *arguments: str, **settings: str) -> "subprocess.Popen[str]":
    """Return a running command of whyscore in a folder."""
    return subprocess.Popen(  # noqa: S603 - our own command
        [*WHYSCORE, *arguments],
        cwd=path,
        env=os.environ | settings,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def complete(path: Path, *arguments: str, **settings: str) -> Told:
    """Return how a command ended."""
    return ended(start(path, *arguments, **settings))


def outputs(path: Path) -> dict[str, str]:
    """Return the files that a command made, by their digests; dates and seconds are left out."""
    found = {}
    for file in sorted(path.rglob("*")):
        parts = file.relative_to(path).parts
        if file.is_file() and parts[0].startswith(("out", ".")) and file.name != ".lock":
            content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
            if file.name == "run.json":
                content = json.dumps(json.loads(content) | {"seconds": None}).encode()
            if file.suffix != ".npz":
                content = _SECONDS.sub("", _MOMENT.sub("-", content.decode())).encode()
            found["/".join(parts)] = hashlib.sha256(content).hexdigest()
    return found


@lru_cache(maxsize=1)
def inputs(folder: Path) -> Path:
    """Return a folder with what the commands read: texts, ratings, words, a run, its shards."""
    path = folder / "inputs"
    path.mkdir()
    shutil.copy(folder / "peace" / "data.jsonl", path)
    lines = [json.loads(line) for line in (path / "data.jsonl").read_text("utf-8").splitlines()]
    draw = random.Random(0)  # noqa: S311 - no secret
    rated = [line | {"mqm": -draw.randrange(12)} for line in lines]
    (path / "rated.jsonl").write_text("".join(json.dumps(line) + "\n" for line in rated), "utf-8")
    one = [line for line in lines if line["system"] == "one"]
    (path / "mt.txt").write_text("".join(line["hypothesis"] + "\n" for line in one), "utf-8")
    (path / "ref.txt").write_text("".join(line["reference"] + "\n" for line in one), "utf-8")
    shutil.copytree(folder / "peace" / "run", path / "peace")
    made = [complete(path, *WRITERS["explain"][:-1], "words.jsonl")]
    for shard in (1, 2):
        options = ("--shard", f"{shard}/2", "--store", "none", "-o", f"shard-{shard}", "-q")
        made.append(complete(path, "evaluate", "data.jsonl", "-m", "chrf", "xbertscore(against='reference')", *options))
    wrong = [told.said for told in made if told.code]
    if wrong:
        raise SystemExit(f"the inputs could not be made: {wrong[0]}")
    return path


@lru_cache(maxsize=len(WRITERS))
def peaceful(folder: Path, name: str) -> tuple[Mapping[str, str], float]:
    """Return what a command makes undisturbed, and how many seconds it takes."""
    path = folder / f"{name}-peace"
    shutil.copytree(inputs(folder), path)
    begin = time.perf_counter()
    told = complete(path, *WRITERS[name])
    if told.code:
        raise ValueError(f"{name} without a fault failed: {told.said}")
    return outputs(path), time.perf_counter() - begin


def killed_writer(bench: Bench, number: int) -> list[str]:
    """Kill a command that writes at a random moment, look at its files, and run it again."""
    name = list(WRITERS)[number % len(WRITERS)]
    expected, seconds = peaceful(bench.folder, name)
    path = bench.folder / f"{name}-killed-{number}"
    shutil.copytree(inputs(bench.folder), path)
    process = start(path, *WRITERS[name])
    try:
        process.wait(bench.draw(name, number).uniform(0.3, 1.0) * seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
    ended(process)
    # A folder is made file by file, so that some may be missing; what is there is whole.
    half = [file for file, content in _finished(path, name).items() if expected.get(file) != content]
    told = complete(path, *WRITERS[name])
    wrong = [f"{name}: {file} was half written" for file in half]
    wrong += [f"{name}: {told}"] * bool(told.code)
    return wrong + [f"{name}: the files differ from those of an undisturbed run"] * (outputs(path) != expected)


def _finished(path: Path, name: str) -> dict[str, str]:
    """Return the visible files; those of a run folder that is not finished are read by nobody."""
    record = path / "out" / "run.json"
    if name == "merge" and not (record.exists() and json.loads(record.read_text("utf-8")).get("finished")):
        return {}
    return {file: content for file, content in outputs(path).items() if not Path(file).name.startswith(".")}


def two_writers(bench: Bench, number: int) -> list[str]:
    """Start the same evaluation twice in one run folder: the second is told who is there, the first ends well."""
    place = bench.place("writers", number)
    first = place.begin(PAUSE="0.02")
    while first.poll() is None and not any(file.stat().st_size for file in place.run.glob(".lock")):
        time.sleep(0.02)
    os.killpg(first.pid, signal.SIGSTOP)  # so that it does not end before the second has begun
    second = place.complete()
    os.killpg(first.pid, signal.SIGCONT)
    told = ended(first)
    wrong = [f"the first: {told}"] * bool(told.code)
    wrong += [f"the second: {second}"] * (second.code != 1 or f"process {first.pid}" not in second.said)
    return wrong + ["the files differ"] * (not bench.good(place))


def deleted_store(bench: Bench, number: int) -> list[str]:
    """Delete the store while a run uses it."""
    place = bench.place("deleted", number)
    process = place.begin()
    time.sleep(bench.seconds * bench.draw("deleted", number).uniform(0.4, 0.9))
    for file in place.path.glob(f"{place.store.name}*"):
        file.unlink(missing_ok=True)
    told = ended(process)
    again = place.complete()
    return [f"{one}" for one in (told, again) if one.code or "Traceback" in one.said] + ["the files differ"] * (
        place.outputs() != bench.expected
    )


COLUMNS = ("row", "digest", "signature", "width", "number")
"""What a bit is flipped in: the columns of rows, and those of the list of signatures."""


def flipped_bit(bench: Bench, number: int) -> list[str]:
    """Flip one bit of the store: what it stands for is not used, `store check` tells, and no number changes."""
    place = bench.place("flipped", number)
    place.complete()
    column, draw = COLUMNS[number % len(COLUMNS)], bench.draw("flipped", number)
    with contextlib.closing(sqlite3.connect(place.store)) as store:
        if column in {"row", "digest"}:
            tables = store.execute("SELECT name FROM sqlite_master WHERE name LIKE 'scores_%' ORDER BY name").fetchall()
            (table,) = draw.choice(tables)
            keys = [key for (key,) in store.execute(f"SELECT digest FROM {table}")]  # noqa: S608 - our own table
            where, key = f"{table} WHERE digest = ?", draw.choice(keys)
        else:
            (key,) = store.execute("SELECT number FROM signatures WHERE signature LIKE '%slow%'").fetchone()
            where = "signatures WHERE number = ?"
        name, _, condition = where.partition(" ")
        value = store.execute(f"SELECT {column} FROM {where}", (key,)).fetchone()[0]  # noqa: S608 - as above
        store.execute(f"UPDATE {name} SET {column} = ? {condition}", (_flip(value, draw), key))  # noqa: S608 - as above
        store.commit()
    shutil.rmtree(place.run)
    noticed = bool(check(Store(place.store)))
    told = place.complete()
    wrong = [f"{told}"] * bool(told.code) + [f"store check saw nothing of a {column}"] * (not noticed)
    if column in {"row", "width"}:
        wrong += ["nothing was said of it"] * ("not used" not in told.said)
    if column == "row":
        return wrong + ["the files differ"] * (not bench.good(place))
    return wrong + ["the files differ"] * (place.outputs() != bench.expected)


def _flip(value: bytes | str | int, draw: random.Random) -> bytes | str | int:
    """Return a value with one of its bits turned: one that leaves text a text, and a number above zero."""
    if isinstance(value, int):
        return value ^ 2
    changed = bytearray(value if isinstance(value, bytes) else value.encode())
    changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8 if isinstance(value, bytes) else 1)
    return bytes(changed) if isinstance(value, bytes) else changed.decode()


def undefined_count(bench: Bench, number: int) -> list[str]:
    """Put a row with NaN and a right checksum into the store: it goes into no total."""
    place = bench.place("undefined", number)
    place.complete()
    store = Store(place.store)
    signature = next(held.signature for held in store.held() if held.signature.startswith("chrf"))
    with contextlib.closing(sqlite3.connect(place.store)) as connection:
        query = "SELECT number, width FROM signatures WHERE signature = ?"
        table, width = connection.execute(query, (signature,)).fetchone()
        keys = [key for (key,) in connection.execute(f"SELECT digest FROM scores_{table}")]  # noqa: S608 - a number
    rows = np.ones((1, width))
    rows[0, bench.draw("undefined", number).randrange(width)] = np.nan
    store.put(signature, [bench.draw("undefined", number).choice(keys)], rows)
    store.close()
    shutil.rmtree(place.run)
    told = place.complete()
    wrong = [f"{told}"] * bool(told.code) + ["nothing was said of it"] * ("damaged" not in told.said)
    return wrong + ["the files differ"] * (not bench.good(place))


NAMES = ("a#b", "a?b", "a%20b", "ü\n\udcff", ":memory:", "file:x?mode=ro")


def odd_path(bench: Bench, number: int) -> list[str]:
    """Keep the store under a name that means something elsewhere; a check and a repair leave it as it is."""
    place = bench.place("path", number)
    store = place.path / NAMES[number % len(NAMES)]
    command = ("score", "data.jsonl", "-m", "chrf", "--draws", "0", "-q", "-o", "out.json", f"--store={store.name}")
    told = complete(place.path, *command)
    content = store.read_bytes()
    faults, repaired = check(Store(store)), repair(Store(store))
    wrong = [f"{told}"] * bool(told.code) + [f"a sound store: {faults}"] * bool(faults)
    wrong += ["a sound store was repaired"] * (repaired.damaged is not None or store.read_bytes() != content)
    newer = bytearray(content)
    newer[60:64] = (99).to_bytes(4, "big")  # where sqlite keeps user_version
    store.write_bytes(newer)
    refused = complete(place.path, *command)
    try:
        repair(Store(store))
        wrong.append("a newer store was repaired")
    except StoreError:
        pass
    wrong += [f"a newer store: {refused}"] * (refused.code != 1 or "newer whyscore" not in refused.said)
    return wrong + ["a newer store was changed"] * (store.read_bytes() != newer)


HOLDERS = (
    "process 999999999 on {machine}, since 2020-01-01T00:00:00Z",
    "process {this} on {machine}, since 2020-01-01T00:00:00Z",
    "process 7 on another-machine, since 2020-01-01T00:00:00Z",
    "",
    "\0 no lock at all",
    "\udcff\udcfe\0",  # bytes that are no UTF-8
)


def stale_lock(bench: Bench, number: int) -> list[str]:
    """Leave the lock of a process that has ended, whose number another one has now, or one that says nothing."""
    place = bench.place("stale", number)
    place.run.mkdir()
    text = HOLDERS[number % len(HOLDERS)].format(machine=platform.node(), this=os.getpid())
    (place.run / ".lock").write_text(text, "utf-8", errors="surrogateescape")
    told = place.complete()
    wrong = [f"{told}"] * bool(told.code) + ["the files differ"] * (not bench.good(place))
    return wrong + ["the lock stayed"] * (place.run / ".lock").exists()


def many_writers(bench: Bench, number: int) -> list[str]:
    """Start an evaluation several times at once in one run folder: one is done, the others are refused."""
    place = bench.place("race", number)
    told = [ended(process) for process in [place.begin(PAUSE="0.02") for _ in range(4)]]
    refused = [one for one in told if one.code == 1 and "is in use by process" in one.said]
    wrong = [f"{[one.code for one in told]}"] * (len(refused) != len(told) - 1)
    return wrong + ["the files differ"] * (not bench.good(place))


def edited_file(bench: Bench, number: int) -> list[str]:
    """Change a file of a run that was killed: what was made from it is made again."""
    place = bench.place("edited", number)
    process = place.begin()
    draw = bench.draw("edited", number)
    while process.poll() is None and not list(place.run.glob("scores.jsonl*")):
        time.sleep(0.02)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    ended(process)
    file = draw.choice(sorted(place.run.glob("*.jsonl*")))
    content = bytearray(file.read_bytes())
    content[draw.randrange(len(content))] ^= 1
    file.write_bytes(bytes(content))
    told = place.complete()
    return [f"{told}"] * bool(told.code) + [f"the files differ after a change of {file.name}"] * (not bench.good(place))


SCORE = ("score", "data.jsonl", "--draws", "50", "-q", "-m")
CHANGED: dict[str, tuple[str, str, Sequence[str], tuple[str, ...]]] = {
    "a metric": ("m.py", "def score(h, r):\n    return [{} for _ in h]\n", "19", (*SCORE, "m.py:score")),
    "a module that a metric imports": ("part.py", "VALUE = {}\n", "19", (*SCORE, "outer.py:score")),
    "a file of scores": ("table.jsonl", "", "19", (*SCORE, "lookup('table.jsonl')")),
    "the word list of a tagger": (
        "words.txt",
        "{}\n",
        "word",
        ("decompose", "data.jsonl", "-m", "chrf", "--tagger", "lexicon('A=list:words.txt')", "--draws", "50", "-q"),
    ),
}
OUTER = "import sys\nsys.path.insert(0, '.')\nimport part\n\ndef score(h, r):\n    return [part.VALUE for _ in h]\n"


def changed_file(bench: Bench, number: int) -> list[str]:
    """Change what a spec names between two runs with one store, not its size and not its time: new numbers come."""
    kind = list(CHANGED)[number % len(CHANGED)]
    name, text, values, command = CHANGED[kind]
    path = bench.place("changed", number).path
    (path / "outer.py").write_text(OUTER, "utf-8")
    entries = [json.loads(line) for line in (path / "data.jsonl").read_text("utf-8").splitlines()]
    if values == "word":  # two words of one length
        words = sorted(
            {word for entry in entries for word in entry["reference"].split()}, key=lambda word: (len(word), word)
        )
        values = words[:2]
    contents = [text.format(value) for value in values]
    if not text:
        keys = ("hypothesis", "reference")
        tables = [[{key: entry[key] for key in keys} | {"score": int(value)} for entry in entries] for value in values]
        contents = ["".join(f"{json.dumps(line)}\n" for line in table) for table in tables]
    found = []
    for content in contents:
        (path / name).write_text(content, "utf-8")
        os.utime(path / name, (1_700_000_000, 1_700_000_000))
        told = complete(path, *command, "-o", "out.json", WHYSCORE_STORE=str(path / "store.sqlite"))
        if told.code:
            return [f"{kind}: {told}"]
        found.append(_MOMENT.sub("-", (path / "out.json").read_text("utf-8")))
    scores = [json.loads(one) for one in found]
    return [f"{kind}: the numbers of the old file came back"] * (_only_numbers(scores[0]) == _only_numbers(scores[1]))


def _only_numbers(value: object) -> list[float]:
    """Return the numbers in a value, in their order."""
    if isinstance(value, dict):
        return [number for part in value.values() for number in _only_numbers(part)]
    if isinstance(value, list):
        return [number for part in value for number in _only_numbers(part)]
    return [float(value)] if isinstance(value, int | float) else []


def _numbers(path: Path, file: str, **settings: str) -> list[str]:
    """Return the records of comparisons, in an order of their own."""
    command = ("compare", file, "-m", "chrf", "sbert(against='reference')", "--draws", "99", "--store", "none", "-q")
    told = complete(path, *command, "-o", "numbers.jsonl", **settings)
    if told.code:
        return [f"{told}"]
    lines = [json.loads(line) for line in (path / "numbers.jsonl").read_text("utf-8").splitlines()]
    return sorted(json.dumps(line | {"created": None, "data": None}, sort_keys=True) for line in lines[1:])


def shuffled(bench: Bench, number: int) -> list[str]:
    """Shuffle the segments of the input: scores, intervals and p-values stay the same, digit by digit."""
    path = bench.place("shuffled", number).path
    lines = (path / "data.jsonl").read_text("utf-8").splitlines(keepends=True)
    pairs = [lines[i : i + 2] for i in range(0, len(lines), 2)]
    bench.draw("shuffled", number).shuffle(pairs)
    (path / "other.jsonl").write_text("".join(line for pair in pairs for line in pair), "utf-8")
    return ["the numbers differ"] * (_numbers(path, "data.jsonl") != _numbers(path, "other.jsonl"))


def threads(bench: Bench, number: int) -> list[str]:
    """Compute with one thread and with several."""
    path = bench.place("threads", number).path
    counts = ("1", str(2 + number))
    found = [_numbers(path, "data.jsonl", OPENBLAS_NUM_THREADS=n, OMP_NUM_THREADS=n) for n in counts]
    return ["the numbers differ"] * (found[0] != found[1])


def sharded(bench: Bench, number: int) -> list[str]:
    """Evaluate in shards, merge them, and compare the files with those of the whole."""
    path = bench.folder / f"sharded-{number}"
    shutil.copytree(inputs(bench.folder), path)
    asked = ("evaluate", "data.jsonl", "-m", "chrf", "xbertscore(against='reference')", "--store", "none", "-q")
    count = 2 + number
    told = [complete(path, *asked, "-o", "whole")]
    told += [complete(path, *asked, "--shard", f"{k}/{count}", "-o", f"part-{k}") for k in range(1, count + 1)]
    told += [complete(path, "merge", *(f"part-{k}" for k in range(1, count + 1)), "-o", "joined", "-q")]
    wrong = [f"{one}" for one in told if one.code]
    if wrong:
        return wrong
    whole, joined = (Place(path, path / "none", name).records() for name in ("whole", "joined"))
    return [f"{name} differs" for name in sorted(whole | joined) if whole.get(name) != joined.get(name)]


def read_only_later(bench: Bench, number: int) -> list[str]:
    """Make the run folder read-only in the middle of a run; the next command goes on where it stopped."""
    place = bench.place("later", number)
    moment = bench.seconds * bench.draw("later", number).uniform(0.4, 0.8)
    place.run.mkdir()
    steps = (
        f'mount --bind run run && {{ "$@" & pid=$!; sleep {moment:.2f}; n=0; '
        "until mount -o remount,ro,bind run || [ $n -gt 100 ]; do sleep 0.02; n=$((n + 1)); done; wait $pid; }"
    )
    told = place.complete("unshare", "-rm", "sh", "-c", steps, "sh")
    again = place.complete()
    wrong = [f"{told}"] * (not told.clear) + [f"{again}"] * bool(again.code)
    return wrong + ["the files differ"] * (not bench.good(place))


CLOCK = """
import time
_begin, _real = time.time(), time.time
time.time = lambda: _begin - 86400 * (_real() - _begin)
"""


def clock_backwards(bench: Bench, number: int) -> list[str]:
    """Run with a clock that goes back a day each second."""
    place = bench.place("clock", number)
    (place.path / "clock").mkdir()
    (place.path / "clock" / "sitecustomize.py").write_text(CLOCK, "utf-8")
    search = os.pathsep.join([str(place.path / "clock"), os.environ.get("PYTHONPATH", "")])
    told = [place.complete(PYTHONPATH=search), place.complete(PYTHONPATH=search)]
    return [f"{one}" for one in told if one.code] + ["the files differ"] * (not bench.good(place))


ENVIRONMENTS: tuple[dict[str, str], ...] = (
    {"LC_ALL": "C", "LANG": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    {"COLUMNS": "1", "LINES": "1", "TERM": "dumb", "FORCE_COLOR": "1"},
    {"PYTHONHASHSEED": "12345", "TZ": "Pacific/Kiritimati", "PYTHONOPTIMIZE": "1"},
    {"HOME": "/nonexistent", "XDG_CACHE_HOME": "/nonexistent", "TMPDIR": "/nonexistent"},
    {"OMP_NUM_THREADS": "nonsense", "PYTHONWARNINGS": "always", "COLUMNS": "0", "NO_COLOR": "1"},
)


def odd_environment(bench: Bench, number: int) -> list[str]:
    """Run with environment variables that other programs may have set."""
    place = bench.place("environment", number)
    told = place.complete(**ENVIRONMENTS[number % len(ENVIRONMENTS)])
    return [f"{told}"] * bool(told.code) + ["the files differ"] * (not bench.good(place))


VERSIONS = """
import importlib.metadata as _metadata
_real = _metadata.version
_metadata.version = lambda name: "0.0.1" if name.lower() in {"sacrebleu", "numpy"} else _real(name)
try:
    import sacrebleu
    sacrebleu.__version__ = "0.0.1"
except ImportError:
    pass
"""


def other_versions(bench: Bench, number: int) -> list[str]:
    """Kill a run and go on with another version of a package: no old row is taken for one of the new version."""
    place = bench.place("versions", number)
    process = place.begin()
    while process.poll() is None and not place.calls():
        time.sleep(0.02)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    ended(process)
    (place.path / "versions").mkdir()
    (place.path / "versions" / "sitecustomize.py").write_text(VERSIONS, "utf-8")
    search = os.pathsep.join([str(place.path / "versions"), os.environ.get("PYTHONPATH", "")])
    told = place.complete(PYTHONPATH=search)
    again = place.complete("sh", "-c", 'rm -rf run; exec "$@"', "sh")
    wrong = [f"{told}"] * (not told.clear) + [f"{again}"] * bool(again.code)
    return wrong + ["the files differ"] * (not bench.good(place))


def killed_parent(bench: Bench, number: int) -> list[str]:
    """Kill a command with worker processes, but not the workers: they end by themselves."""
    place = bench.place("parent", number)
    process = place.begin(WHYSCORE_EXECUTOR="processes", WHYSCORE_JOBS="2")
    while process.poll() is None and not place.calls():
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline and _group(process.pid):
        time.sleep(0.1)
    left = _group(process.pid)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    if process.stderr:
        process.stderr.close()
    told = place.complete()
    wrong = [f"{len(left)} workers were left"] * bool(left) + [f"{told}"] * bool(told.code)
    return wrong + ["the files differ"] * (not bench.good(place))


def _group(leader: int) -> list[int]:
    """Return the processes of a session that are not dead."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            state = file.read_text("utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        if int(state[3]) == leader and state[0] not in "ZX":
            found.append(int(file.parent.name))
    return found


def many_lines(bench: Bench, number: int) -> list[str]:
    """Score 200,000 lines in 2 GB of memory."""
    path = bench.place("lines", number).path
    lines = [f"line {k} of many {k % 7}\n" for k in range(200_000)]
    (path / "mt.txt").write_text("".join(lines), "utf-8")
    (path / "ref.txt").write_text("".join(lines[1:] + lines[:1]), "utf-8")
    command = [*WHYSCORE, "score", "-r", "ref.txt", "-t", "mt.txt", "-m", "length_ratio", "token_f1", "--store", "none"]
    limited = ["sh", "-c", 'ulimit -v 2097152; exec "$@"', "sh", *command, "--draws", "0", "-q"]
    settings = {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(  # noqa: S603 - our own command
        limited, cwd=path, env=os.environ | settings, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    return [f"{done.returncode}: {done.stderr[-300:]}"] * bool(done.returncode)


def evaluation() -> str:
    """Return the command that most faults are tried on, as a person would type it."""
    return " ".join(["whyscore", *COMMAND[3:], *OPTIONS])
