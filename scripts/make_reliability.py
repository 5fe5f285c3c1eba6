"""Writes the table of docs/reliability.md: what whyscore survives, tried out on this machine.

    make faults
    python scripts/make_reliability.py [--kills 50] [--tries 5] [--jobs 1] [--seed 0] [--only FAULT ...] [-o FILE]

1. A small data set is evaluated once in peace, by chrF and by a slow metric in a file that writes down every text it is
   asked about. Its run folder is what every other run must come to, byte for byte; only dates and seconds may differ.
2. Each try gets a folder and a store of its own, a fault, and then the same command again.
3. A try is survived when the outputs are those of the peaceful run, the store is sound, nothing half-written was to be
   seen at any time, and every complaint was one line without a traceback. What had to be scored again, or could not be
   saved, is lost; a killed run may lose the batch that was being scored, and no other.

A full disk and a read-only one are small file systems in memory, in a name space of their own (`unshare`), for which no
rights are needed; where the system allows none, these faults are left out, and the page says so.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import reliability_commands as more
from reliability_bench import Bench, Place, Told, ended, made, prepared, repeated

from whyscore.data.writing import write_lines
from whyscore.errors import StoreError, WhyscoreError
from whyscore.scoring.store import Store, check, repair

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reliability.md"
BEGIN, END = "<!-- faults: begin -->", "<!-- faults: end -->"
APART = ("unshare", "-rm", "sh", "-c")


class Try(NamedTuple):
    """Whether a try was survived, and how many texts were scored again or rows could not be saved."""

    survived: bool
    lost: int
    failed: tuple[str, ...] = ()
    """What was not as it should be."""


class Row(NamedTuple):
    """A line of the table."""

    fault: str
    tries: int
    survived: int
    lost: str


def stopped(place: Place, moment: float) -> int:
    """Kill the command after some seconds and return its number; one that was faster is killed earlier next time."""
    process, begin = place.begin(), time.perf_counter()
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        ended(process)
        return process.pid
    ended(process)
    shutil.rmtree(place.run)
    for file in (*place.path.glob(f"{place.store.name}*"), place.asked):
        file.unlink(missing_ok=True)
    return stopped(place, 0.8 * min(moment, time.perf_counter() - begin))


def killed(bench: Bench, number: int) -> Try:
    """Kill the command at a random moment and start it again."""
    place = bench.place("killed", number)
    who = stopped(place, bench.draw("killed", number).uniform(0.0, bench.seconds))
    page = place.run / "report.html"
    whole = not page.exists() or page.read_text("utf-8").rstrip().endswith("</html>")
    sound = not check(Store(place.store))
    flight = [texts for caller, texts in place.calls() if caller == who][-1:]
    told = place.complete()
    twice = repeated(place)
    one_batch = set(twice) <= {text for texts in flight for text in texts}
    wanted = {
        f"it ends well: {told}": told.code == 0,
        "the page is whole": whole,
        "the store is sound": sound,
        "only the last batch is scored twice": one_batch,
        "the files are those of an undisturbed run": bench.good(place),
    }
    failed = tuple(what for what, good in wanted.items() if not good)
    return Try(not failed, twice.total(), failed)


def together(bench: Bench, number: int) -> Try:
    """Run the command twice at once on one store."""
    first = bench.place("together", number)
    second = made(first.path / "other", first.path / "data.jsonl", first.store)
    running = [place.begin() for place in (first, second)]
    told = [ended(process) for process in running]
    good = all(one.code == 0 for one in told) and bench.good(first) and bench.good(second)
    return Try(good, repeated(first, second).total())


def interrupted(bench: Bench, place: Place, told: Told) -> Try:
    """Judge a run that may have stopped with a message, and goes on now."""
    again = place.complete()
    return Try(told.clear and again.code == 0 and bench.good(place), repeated(place).total())


def full_disk(bench: Bench, number: int) -> Try:
    """Run in a folder on a disk that is too small, then again on one that is large enough."""
    place = bench.place("full", number)
    size = 16 + 12 * number * number
    place.run.mkdir()
    steps = f'mount -t tmpfs -o size={size}k none run && {{ "$@"; code=$?; cp -a run kept; exit $code; }}'
    told = place.complete(*APART, steps, "sh")
    if (place.path / "kept").exists():
        place.run.rmdir()
        (place.path / "kept").rename(place.run)
    return interrupted(bench, place, told)


def full_store(bench: Bench, number: int) -> Try:
    """Run with a store on a disk that is too small: a warning, or where it cannot even be opened an error."""
    place = bench.place("full store", number)
    (place.path / "small").mkdir()
    size = 16 + 12 * number * number
    steps = f'mount -t tmpfs -o size={size}k none small && exec "$@"'
    told = place.complete(*APART, steps, "sh", WHYSCORE_STORE="small/store.sqlite")
    return interrupted(bench, place, told)


def size_limit(bench: Bench, number: int) -> Try:
    """Run where no file may be longer than some blocks, then without that limit."""
    place = bench.place("limit", number)
    told = place.complete("sh", "-c", f'ulimit -f {16 + 48 * number}; exec "$@"', "sh")
    return interrupted(bench, place, told)


def read_only(bench: Bench, number: int) -> Try:
    """Run with a store that holds half of the answers and cannot be written, then with one that can."""
    place = bench.place("read-only", number)
    stopped(place, bench.seconds * bench.draw("read-only", number).uniform(0.5, 0.9))
    held = Store(place.store).held()
    place.asked.unlink(missing_ok=True)
    told = place.complete(*APART, 'mount --bind . . && mount -o remount,ro,bind . && exec "$@"', "sh")
    readable = Store(place.store).held() == held
    tried = interrupted(bench, place, told)
    return Try(tried.survived and readable, tried.lost)


def damaged(bench: Bench, number: int) -> Try:
    """Overwrite a page of a store; the command or the check must notice, and repair must save the rest."""
    place = bench.place("damaged", number)
    place.complete()
    store = Store(place.store)
    rows = sum(one.segments for one in store.held())
    store.prune(containing="no such signature")  # everything into the file itself
    store.close()
    content = bytearray(place.store.read_bytes())
    size = int.from_bytes(content[16:18], "big")
    page = bench.draw("damaged", number).randrange(1, len(content) // size)
    content[page * size : (page + 1) * size] = bytes([255]) * size
    place.store.write_bytes(bytes(content))
    shutil.rmtree(place.run)
    told = place.complete()
    noticed = bool(check(store)) and told.clear
    try:
        saved = repair(store).rows
    except StoreError:  # no row is left, and the message says to move the file away
        saved = 0
        place.store.unlink()
    shutil.rmtree(place.run, ignore_errors=True)
    again = place.complete()
    return Try(noticed and again.code == 0 and bench.good(place), max(0, rows - saved))


def no_memory(bench: Bench, number: int) -> Try:
    """Run a metric that has room for few texts at a time: batches are halved until they fit."""
    place = bench.place("memory", number)
    told = place.complete(ROOM=str(bench.draw("memory", number).randrange(1, 60)))
    return Try(told.code == 0 and bench.good(place), 0)


def worker_killed(executor: str) -> Callable[[Bench, int], Try]:
    """Return the fault of one of two workers killed; what the command does not survive itself, the next one does."""

    def fault(bench: Bench, number: int) -> Try:
        place = bench.place(f"worker {executor}", number)
        process = place.begin(WHYSCORE_EXECUTOR=executor, WHYSCORE_JOBS="2")
        wanted = bench.draw(executor, number).randint(1, 6)
        while len(place.calls()) < wanted and process.poll() is None:
            time.sleep(0.02)
        if process.poll() is None:
            os.kill(place.calls()[-1][0], signal.SIGKILL)
        told = ended(process)
        return interrupted(bench, place, told)

    return fault


def judged(fault: Callable[[Bench, int], list[str]]) -> Callable[[Bench, int], Try]:
    """Return a fault whose tries are survived when nothing was wrong; none of them may lose anything."""

    def judge(bench: Bench, number: int) -> Try:
        wrong = tuple(fault(bench, number))
        return Try(not wrong, 0, wrong)

    return judge


KILLED = f"another command is killed at a random moment: {', '.join(f'`{name}`' for name in more.WRITERS)}"
CHANGED = f"a file changes, but not its size or date: {', '.join(more.CHANGED)}"
FAULTS: dict[str, tuple[str, Callable[[Bench, int], Try]]] = {
    "killed": ("`evaluate` is killed (`kill -9`) at a random moment", killed),
    "writers": (KILLED, judged(more.killed_writer)),
    "parent": ("the main process of `--executor processes` is killed, its workers are not", judged(more.killed_parent)),
    "two-writers": ("two commands write to one run folder: the second is refused", judged(more.two_writers)),
    "race": ("four commands start in one run folder at the same time: three are refused", judged(more.many_writers)),
    "lock": ("a lock file is left over from a process that has ended, or is invalid", judged(more.stale_lock)),
    "together": ("two commands use one store at the same time", together),
    "full": ("the disk of the run folder is full", full_disk),
    "full-store": ("the disk of the store is full", full_store),
    "limit": ("the size of files is limited (`ulimit -f`)", size_limit),
    "read-only": ("run folder and store are read-only", read_only),
    "read-only-later": ("the run folder becomes read-only during the run", judged(more.read_only_later)),
    "deleted": ("the store is deleted during the run", judged(more.deleted_store)),
    "damaged": ("a page of the store is overwritten", damaged),
    "bit": ("one bit is flipped in a stored row, its digest, its signature or its width", judged(more.flipped_bit)),
    "nan": ("a stored count is NaN", judged(more.undefined_count)),
    "paths": (
        "the path of the store contains `#`, `?`, `%`, a newline ...; the store is from a newer version",
        judged(more.odd_path),
    ),
    "edited": ("a file of an unfinished run is edited", judged(more.edited_file)),
    "changed": (CHANGED, judged(more.changed_file)),
    "versions": ("a run is resumed with another version of a package", judged(more.other_versions)),
    "clock": ("the clock runs backwards", judged(more.clock_backwards)),
    "environment": ("unusual environment variables", judged(more.odd_environment)),
    "shuffled": ("the input is in another order: same numbers", judged(more.shuffled)),
    "threads": ("more threads: same numbers", judged(more.threads)),
    "shards": ("the run is sharded and merged: same files", judged(more.sharded)),
    "lines": ("200,000 lines with 2 GB of memory", judged(more.many_lines)),
    "memory": ("the metric runs out of memory on a whole batch", no_memory),
    "processes": ("a worker of `--executor processes` is killed", worker_killed("processes")),
    "ray": ("a worker of `--executor ray` is killed", worker_killed("ray")),
}
NEEDS_SPACE = {"full", "full-store", "read-only", "read-only-later"}
ROUND = {
    "writers": len(more.WRITERS),
    "environment": len(more.ENVIRONMENTS),
    "bit": len(more.COLUMNS),
    "paths": len(more.NAMES),
    "changed": len(more.CHANGED),
    "lock": len(more.HOLDERS),
}
"""How many tries of a fault make one round, in which each of its kinds comes once."""


def attempt(fault: Callable[[Bench, int], Try], bench: Bench, number: int) -> Try:
    """Return how a try went; one that never ends, or whose files cannot be read, was not survived."""
    try:
        return fault(bench, number)
    except (OSError, ValueError, KeyError, subprocess.SubprocessError, WhyscoreError) as error:
        return Try(survived=False, lost=0, failed=(f"{type(error).__name__}: {error}",))


def row(bench: Bench, name: str, tries: int, jobs: int = 1) -> Row:
    """Return the table's line of one fault, with some tries at a time."""
    told, fault = FAULTS[name]
    done = []
    with ThreadPoolExecutor(jobs) as pool:
        for number, result in enumerate(pool.map(partial(attempt, fault, bench), range(tries)), start=1):
            done.append(result)
            print(f"{name} {number}/{tries}: {result}", file=sys.stderr, flush=True)
    most = max(one.lost for one in done)
    unit = "rows scored again" if name == "damaged" else "texts scored twice"
    return Row(told, tries, sum(one.survived for one in done), f"at most {most} {unit}" if most else "nothing")


def table(rows: list[Row], left_out: list[str], facts: str) -> str:
    """Return the table with its heading line, as it stands between the marks of the page."""
    lines = [
        f"{facts}\n\n",
        "| fault | tries | survived | lost |\n|---|---|---|---|\n",
        *(f"| {one.fault} | {one.tries} | {one.survived} | {one.lost} |\n" for one in rows),
    ]
    if left_out:
        lines.append(f"\nNot tried, because this system gives no name space to try it in: {', '.join(left_out)}.\n")
    return "".join(lines)


def page(text: str, made: str) -> str:
    """Return the page with a new table between its marks."""
    head, _, rest = text.partition(f"{BEGIN}\n")
    return f"{head}{BEGIN}\n{made}{END}{rest.partition(END)[2]}"


def has_space() -> bool:
    """Return whether small file systems can be made here without rights."""
    command = [*APART, "mount -t tmpfs -o size=16k none /tmp"]
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603 - our own command


def main() -> int:
    """Print the table and return 1 if a try was not survived."""
    parser = argparse.ArgumentParser(description="Makes faults and says which of them were survived.")
    parser.add_argument("--kills", type=int, default=50, help="random moments at which the command is killed")
    parser.add_argument("--tries", type=int, default=5, help="of each other fault")
    parser.add_argument("--jobs", type=int, default=1, help="tries at a time")
    parser.add_argument("--segments", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=FAULTS, default=list(FAULTS))
    parser.add_argument("-o", "--output", help="the page whose table is replaced")
    given = parser.parse_args()
    possible = has_space()
    wanted = [name for name in given.only if possible or name not in NEEDS_SPACE]
    with tempfile.TemporaryDirectory() as folder:
        bench = prepared(Path(folder), given.segments, given.seed)
        more.inputs(bench.folder)
        rows = [
            row(bench, name, given.kills if name == "killed" else given.tries * ROUND.get(name, 1), given.jobs)
            for name in wanted
        ]
    texts = f"{2 * given.segments} texts of two systems, explained by erasure for two metrics"
    rounds = f"{given.tries} round{'s' * (given.tries > 1)} of every other fault"
    facts = (
        f"One run of the script with seed {given.seed}: {given.kills} kills at random moments and {rounds}, on {texts} "
        f"({bench.seconds:.1f} seconds without a fault)."
    )
    left_out = [FAULTS[name][0] for name in given.only if name not in wanted]
    made = table(rows, left_out, facts)
    print(made)
    if given.output:
        write_lines(given.output, [page(Path(given.output).read_text("utf-8"), made)])
    return 0 if all(one.survived == one.tries for one in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
