"""What language models answered, kept so that no call is made twice.

1. A `Question` is one call: which judge asks, about which segment, in which order and repeat, and what is sent.
2. A `Reply` is what came back: the text of the answer, or why there is none.
3. `Answers` keeps replies in memory, in the score store (one transaction per answer: a process that is killed loses the
   calls in flight and nothing else) and, with a record, as JSON lines that `judge(recorded=FILE)` reads. A call that
   failed is kept for this run alone, so that the next one tries again.
4. Budgets are checked before calls are made and counted with every attempt.

A record is a file of JSON lines; the first is its header. Each other line ends in a checksum of itself, where whyscore
wrote it: one that was changed since is refused. Keys and passwords are never part of a question.
"""

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple, Protocol, Self, runtime_checkable

from whyscore.errors import DataError, ExecutionError
from whyscore.protocols import Metric
from whyscore.scoring.store import Store, inflate
from whyscore.text.files import json_of, line
from whyscore.types import Segment

KIND = "answers"
_WIDTH = 0  # of rows that are no numbers
_CHECKSUM = "checksum"


@dataclass(frozen=True, eq=False)
class Question:
    """One call to a language model."""

    judge: str
    """The spec of what asks, without the place it asks at."""
    service: str
    """The place: an address."""
    segment: Segment
    request: Mapping[str, object]
    repeat: int = 0
    order: int = 0

    @cached_property
    def key(self) -> bytes:
        """128 bits that name the call: what is sent, and which repeat it is."""
        sent = json.dumps(self.request, sort_keys=True, ensure_ascii=True)
        return blake2b(f"{self.repeat}:{sent}".encode(), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back from a call: the text of the answer, or why there is none."""

    answer: str | None
    finish: str | None = None
    """Why the model stopped: stop, length, content_filter."""
    failure: str | None = None
    model: str | None = None
    prompt_tokens: int = 0
    answer_tokens: int = 0


class Missing(NamedTuple):
    """Why a segment has no score: a reason on the list of records, and what happened."""

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"gave no score ({self.reason}: {self.detail})"


class Calls(NamedTuple):
    """What scoring would take."""

    calls: int
    kept: int
    """Calls whose answers are there already."""
    prompt_tokens: int
    """About how many tokens the other calls send."""
    answer_tokens: int
    """How many tokens they may get at the most."""
    whole: int
    """Segments all of whose answers are there."""


class Hears(Protocol):
    """Is notified of calls that are made and answered, as `whyscore.scoring.stack.Progress` is of segments."""

    def asked(self, count: int) -> None:
        """Note that so many more calls will be made."""

    def answered(self, count: int, *, stored: bool) -> None:
        """Note that so many calls are done."""


@runtime_checkable
class AsksModel(Metric, Protocol):
    """A metric that asks a language model, which may answer nothing that can be used."""

    @property
    def marks_words(self) -> bool:
        """Whether the answers mark errors, so that there are word scores."""

    @property
    def compares_texts(self) -> bool:
        """Whether a score says how often the hypothesis is preferred to the reference, 0 to 100, 50 for a tie."""

    def with_answers(self, answers: "Answers") -> Self:
        """Return the metric with a place to keep answers."""

    def missing(self, segments: Sequence[Segment]) -> list[Missing | None]:
        """Return why segments have no score; None for those that have one."""

    def calls(self, segments: Sequence[Segment]) -> Calls:
        """Return what scoring would take; nothing is asked."""

    def remarks(self, segments: Sequence[Segment], systems: Sequence[str] = ()) -> list[str]:
        """Return what is to be known beside the scores of segments that were scored: repeats, failures, bias."""


@dataclass
class Answers:
    """The answers of a run, and what they may cost."""

    store: Store | None = None
    record: Path | None = None
    most_calls: int | None = None
    most_tokens: int | None = None
    progress: Hears | None = None
    spent_calls: int = 0
    spent_tokens: int = 0
    judged: dict[str, dict[bytes, str | None]] = field(default_factory=dict, repr=False)
    """By judge and call, why an answer cannot be used; None for one that can."""
    _replies: dict[tuple[str, bytes], Reply] = field(default_factory=dict, repr=False)
    _recorded: set[tuple[str, bytes]] | None = field(default=None, repr=False)

    def look_up(self, questions: Sequence[Question]) -> dict[Question, Reply]:
        """Return the replies that are kept already, and record those that are used now."""
        self._open_record()
        self._load([question for question in questions if (question.service, question.key) not in self._replies])
        replies = {}
        for question in questions:
            reply = self._replies.get((question.service, question.key))
            if reply is not None:
                replies[question] = reply
                self._write(question, reply)
        return replies

    def keep(self, question: Question, reply: Reply) -> None:
        """Keep a reply that has just come."""
        self.spent_tokens += reply.prompt_tokens + reply.answer_tokens
        self._replies[question.service, question.key] = reply
        if self.store is not None and reply.failure is None:
            self.store.put_bytes(_table(question.service), [question.key], [_pack(reply)], _WIDTH)
        self._write(question, reply)

    def unusable(self) -> dict[str, tuple[int, int]]:
        """Return how many answers of each judge cannot be used, and how many there are."""
        return {
            judge: (len(reasons) - list(reasons.values()).count(None), len(reasons))
            for judge, reasons in self.judged.items()
        }

    def check_budget(self, calls: int) -> None:
        """Refuse calls that the budget does not allow, before any of them is made."""
        if self.most_calls is not None and self.spent_calls + calls > self.most_calls:
            raise ExecutionError(
                f"{calls:,} calls are needed and --budget-calls leaves {self.most_calls - self.spent_calls:,}: "
                "raise it, or take fewer segments. Nothing was asked; answers that are kept cost no calls"
            )

    def spend(self) -> None:
        """Count one attempt; where the budget is spent, stop."""
        for name, spent, most in (
            ("calls", self.spent_calls, self.most_calls),
            ("tokens", self.spent_tokens, self.most_tokens),
        ):
            if most is not None and spent >= most:
                raise ExecutionError(
                    f"the budget of {most:,} {name} is spent (--budget-{name}); every answer is kept. "
                    "Run the same command again to go on"
                )
        self.spent_calls += 1

    def _load(self, questions: Sequence[Question]) -> None:
        if self.store is None or not self.store.path.exists():
            return
        for service in dict.fromkeys(question.service for question in questions):
            keys = [question.key for question in questions if question.service == service]
            for key, row in self.store.get_bytes(_table(service), keys, _WIDTH).items():
                reply = _unpack(row)
                if reply is not None:
                    self._replies[service, key] = reply

    def _open_record(self) -> None:
        """Begin a record, or go on with one: what it holds needs no call."""
        if self.record is None or self._recorded is not None:
            return
        self._recorded = set()
        if not self.record.exists() or not self.record.stat().st_size:
            created = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            head = {"schema": "whyscore/1", "schema_version": 1, "kind": KIND, "created": created}
            self.record.write_text(line(head), encoding="utf-8")
            return
        _drop_torn(self.record)
        for number, value in read_lines(self.record):
            try:
                name = str(value["service"]), bytes.fromhex(str(value["key"]))
            except (KeyError, ValueError):
                raise DataError(
                    "is no record of this command's answers: name another file with --record",
                    file=str(self.record),
                    line=number,
                ) from None
            reply = reply_of(value, str(self.record), number)
            if reply.failure is None:
                self._recorded.add(name)
                self._replies.setdefault(name, reply)

    def _write(self, question: Question, reply: Reply) -> None:
        if self.record is None or self._recorded is None or (question.service, question.key) in self._recorded:
            return
        self._recorded.add((question.service, question.key))
        with self.record.open("a", encoding="utf-8") as file:
            file.write(line(record_of(question, reply)))


def _context_of(segment: Segment) -> dict[str, object]:
    before = [
        {"hypothesis": previous.hypothesis, "source": previous.source, "references": list(previous.references)}
        for previous in segment.context
    ]
    return {"context": before} if before else {}


def record_of(question: Question, reply: Reply) -> dict[str, object]:
    """Return a call and its reply as a record, with its checksum."""
    segment = question.segment
    record = {
        "judge": question.judge,
        "repeat": question.repeat,
        "order": question.order,
        "hypothesis": segment.hypothesis,
        "source": segment.source,
        "references": list(segment.references),
        **_context_of(segment),
        **asdict(reply),
        "request": question.request,
        "service": question.service,
        "key": question.key.hex(),
    }
    return record | {_CHECKSUM: _checksum_of(record)}


def _checksum_of(record: Mapping[str, object]) -> str:
    return f"{zlib.crc32(json.dumps(record, sort_keys=True).encode()):08x}"


def reply_of(value: Mapping[str, object], file: str, number: int) -> Reply:
    """Return the reply in a record; only `answer` must be there, as a text or as the object that it would be."""
    answer = value.get("answer")
    if isinstance(answer, dict):
        answer = json.dumps(answer, ensure_ascii=False)
    elif isinstance(answer, int | float) and not isinstance(answer, bool):
        answer = str(answer)
    texts = {name: value.get(name) for name in ("finish", "failure", "model")}
    for name, text in {"answer": answer, **texts}.items():
        if text is not None and not isinstance(text, str):
            raise DataError(f"{name!r} is {text!r}, expected a text or null", file=file, line=number)
    if answer is None and texts["failure"] is None:
        raise DataError("has neither an 'answer' nor a 'failure'", file=file, line=number)
    return Reply(answer, **texts)  # type: ignore[arg-type]


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield the records of a file with their lines, without the header."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=str(path)) from error
    except UnicodeDecodeError as error:
        raise DataError(f"is not UTF-8 (byte {error.start})", file=str(path)) from error
    for number, content in enumerate(text.split("\n"), start=1):
        if not content.strip():
            continue
        value = json_of(content, path, number)
        if not isinstance(value, dict):
            raise DataError("not an object", file=str(path), line=number)
        if "schema" not in value:
            if value.pop(_CHECKSUM, None) not in (None, _checksum_of(value)):
                raise DataError(
                    f"was changed since it was written. To use it as it is, take {_CHECKSUM!r} out of the line; to ask "
                    "again, delete the line",
                    file=str(path),
                    line=number,
                )
            yield number, value
        elif value.get("kind") != KIND:
            raise DataError(
                f"holds records of the kind {value.get('kind')!r}, expected {KIND!r}", file=str(path), line=number
            )


def _drop_torn(path: Path) -> None:
    """Cut a last line without its end, as a process that was killed leaves it."""
    content = path.read_bytes()
    if not content.endswith(b"\n"):
        path.write_bytes(content[: content.rfind(b"\n") + 1])


def _table(service: str) -> str:
    return f"answers|service:{service}"


def _pack(reply: Reply) -> bytes:
    return zlib.compress(json.dumps(asdict(reply), ensure_ascii=True).encode(), 1)


def _unpack(row: bytes) -> Reply | None:
    try:
        return Reply(**json.loads(inflate(row)))
    except (zlib.error, ValueError, TypeError, RecursionError):
        return None
