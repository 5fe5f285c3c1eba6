"""`whyscore list`, `doctor` and `store`: components there are, what is installed, and the score store."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from whyscore.analysis.catalogue import LISTED, doctor, list_components
from whyscore.cli.options import OutputSettings
from whyscore.cli.output import emit_result
from whyscore.cli.setup import open_store
from whyscore.errors import UserError
from whyscore.scoring.store import Store, check, repair, repair_command
from whyscore.settings import REQUIRED, option
from whyscore.types.result import Result, Table

LIST_EXAMPLES = """\
examples:
  whyscore list metrics
  whyscore list explainers -v
  whyscore list datasets
  whyscore list -f json
"""


@dataclass(frozen=True, kw_only=True)
class ListCommand(OutputSettings):
    """What `whyscore list` takes."""

    kinds: tuple[str, ...] = option((), ", ".join(LISTED), positional=True, metavar="KIND", basic=True)
    verbose: bool = option(False, "show full descriptions", flags=("-v", "--verbose"), basic=True)


def run_list(settings: ListCommand) -> int:
    """Print what there is."""
    emit_result(list_components(*settings.kinds, verbose=settings.verbose), settings)
    return 0


DOCTOR_EXAMPLES = """\
examples:
  whyscore doctor
  whyscore doctor -f json
"""


@dataclass(frozen=True, kw_only=True)
class DoctorCommand(OutputSettings):
    """What `whyscore doctor` takes."""

    store: str | None = option(None, "path of the score store (default: in your cache folder)", metavar="PATH")


def run_doctor(settings: DoctorCommand) -> int:
    """Print the state of this installation."""
    emit_result(doctor(open_store(settings.store)), settings)
    return 0


STORE_EXAMPLES = """\
examples:
  whyscore store size
  whyscore store prune --days 30
  whyscore store prune --signature my_metric
  whyscore store check
  whyscore store repair
"""


@dataclass(frozen=True, kw_only=True)
class StoreCommand(OutputSettings):
    """What `whyscore store` takes."""

    action: Literal["size", "prune", "check", "repair"] = option(
        REQUIRED, "action on the store", positional=True, basic=True
    )
    store: str | None = option(None, "the score store (default: in your cache folder)", metavar="PATH", basic=True)
    days: float = option(0.0, "prune only entries not written to for N days", metavar="N", basic=True)
    signature: str = option("", "prune only entries whose signature contains this text", metavar="TEXT", basic=True)


@dataclass(frozen=True, repr=False)
class StoreAnswer(Result):
    """What was found in the store, or done to it."""

    facts: Mapping[str, object]
    table: Table
    sentences: tuple[str, ...] = ()
    """What is said to people instead of a table."""
    kind: ClassVar[str] = "store"

    def lead(self) -> tuple[str, ...]:
        return self.sentences

    def tables(self, *, long: bool = False) -> list[Table]:
        return [] if self.sentences and not long else [self.table]

    def document(self) -> object:
        return self.facts


def run_store(settings: StoreCommand) -> int:
    """Look at the store or change it; the exit code is 1 where it is damaged."""
    store = open_store(settings.store)
    if store is None:
        raise UserError("there is no store: --store none was given")
    if settings.action == "prune":
        pruned = store.prune(days=settings.days, containing=settings.signature)
        answer = StoreAnswer({"pruned": pruned}, Table(("scores dropped",), ((pruned,),)))
    elif settings.action == "repair":
        done = repair(store)
        damaged = None if done.damaged is None else str(done.damaged)
        table = Table(("rows saved", "the damaged file is now"), ((done.rows, damaged or "-"),))
        sound = (f"{store.path} is sound: nothing to repair",) if damaged is None else ()
        answer = StoreAnswer({"path": str(store.path), "rows": done.rows, "damaged": damaged}, table, sound)
    else:
        answer = _check_store(store) if settings.action == "check" else _size(store)
    emit_result(answer, settings)
    return 1 if answer.facts.get("faults") else 0


def _check_store(store: Store) -> StoreAnswer:
    faults = check(store)
    state = f"{store.path} is sound" if store.path.exists() else f"there is no store at {store.path}"
    notes = (f"save what can be read with: {repair_command(store.path)}",) if faults else ()
    table = Table(("state",), tuple((fault,) for fault in faults or (state,)), notes=notes)
    return StoreAnswer({"path": str(store.path), "faults": faults}, table, () if faults else (state,))


def _size(store: Store) -> StoreAnswer:
    contents = store.held()
    rows = tuple((entry.segments, entry.used[:10], entry.signature) for entry in contents)
    table = Table(("segments", "last used", "signature"), rows, notes=(f"{store.path}: {store.size():,} bytes",))
    entries = [{"signature": entry.signature, "segments": entry.segments, "used": entry.used} for entry in contents]
    return StoreAnswer({"path": str(store.path), "bytes": store.size(), "signatures": entries}, table)


VERBS = {
    "list": (LIST_EXAMPLES, ListCommand, run_list),
    "doctor": (DOCTOR_EXAMPLES, DoctorCommand, run_doctor),
    "store": (STORE_EXAMPLES, StoreCommand, run_store),
}
