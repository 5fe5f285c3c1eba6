"""Calls to an OpenAI-compatible endpoint: many at a time, repeated where that may help, stopped where it does not.

1. `connections` calls are under way at a time, at most `rate` begin in a minute.
2. Time-outs, broken connections, answers that are no chat completion, and the codes 408, 409, 425, 429 and 5xx are
   tried again after a pause that doubles, with a share that depends on the question, so that calls do not come in step.
   `Retry-After` holds all calls. After `retries` more attempts the call has failed, and says why.
3. Other codes fail at once. 401, 403 and 404 end the run, and so does an address where nothing ever answered: no other
   call would fare better.
4. A call that an endpoint refuses for its JSON schema, or for the name of the limit of tokens, is repeated without it.
5. Every answer is handed over as it comes; an interruption loses the calls under way and nothing else.

The key is read from the environment variable that the user names and goes into one header. Redirects are not followed,
so that it goes nowhere else; messages never hold it.
"""

import asyncio
import json
import os
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

from whyscore.errors import MissingExtra, SpecError, need_package
from whyscore.scoring.answers import Question, Reply
from whyscore.text.randomness import generator

if TYPE_CHECKING:
    import httpx

_PAUSE, _LONGEST_PAUSE, _LONGEST_WAIT = 0.5, 30.0, 300.0  # seconds
_LARGEST = 2**20  # bytes of an answer
_AGAIN = {408, 409, 425, 429}
_HOPELESS = {401, 403, 404}
_FEW = 2  # attempts at an address where nothing has answered yet
_SHOWN = 200
_LOCAL = {"localhost", "127.0.0.1", "::1"}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to ask, and how fast."""

    url: str
    key: str | None = None
    """The name of the environment variable that holds the key."""
    connections: int = 8
    rate: float | None = None
    timeout: float = 120.0
    retries: int = 5
    structured: bool = True

    def address(self) -> str:
        """Return where chat completions are."""
        return f"{self.url.rstrip('/')}/chat/completions"


def check_url(url: str) -> None:
    """Refuse an address that is none, or that holds a password, which would stand in signatures and records."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        host, parts = None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host:
        raise SpecError(f"judge: url is {url!r}, expected an address such as 'http://localhost:11434/v1'")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise SpecError(
            "judge: url holds more than an address. Put the key into an environment variable and name that: "
            "key='OPENAI_API_KEY'"
        )


def ask(
    endpoint: Endpoint,
    questions: Sequence[Question],
    keep: Callable[[Question, Reply], None],
    spend: Callable[[], None],
) -> None:
    """Make all calls and hand over each reply as it comes.

    Args:
        endpoint: Where and how fast.
        questions: What is asked, each once.
        keep: Takes a question and its reply.
        spend: Hears of each attempt before it is made, and may refuse it.
    """
    with need_package(MissingExtra.of("judge", "judge")):
        import httpx  # noqa: F401, PLC0415 - an extra
    key = None
    if endpoint.key is not None:
        key = os.environ.get(endpoint.key)
        if not key:
            raise MissingExtra(
                f"judge: the environment variable {endpoint.key} is not set: export {endpoint.key}=... with your key"
            )
    _run(_Asking(endpoint, key, keep, spend).all(questions))


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end, also where a loop is running already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
        return
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()


class _Retry(Exception):
    """An attempt that may go better the next time; `after` is how long the endpoint wants to be left alone."""

    def __init__(self, reason: str, after: float = 0.0, *, unreachable: bool = False) -> None:
        super().__init__(reason)
        self.after, self.unreachable = after, unreachable


class _Unsupported(Exception):
    """An attempt that the endpoint refused, perhaps for something that can be left out."""


class _Failed(Exception):
    """An attempt that would go no better the next time."""


@dataclass
class _Asking:
    """The calls of one run, and what they have learnt of the endpoint."""

    endpoint: Endpoint
    key: str | None
    keep: Callable[[Question, Reply], None]
    spend: Callable[[], None]
    reached: bool = False
    schema: bool = field(init=False)
    limit: str = "max_tokens"
    begin: float = 0.0
    """When the next call may begin."""

    def __post_init__(self) -> None:
        self.schema = self.endpoint.structured

    async def all(self, questions: Sequence[Question]) -> None:
        import httpx  # noqa: PLC0415 - an extra

        headers = {"Accept": "application/json", "User-Agent": "whyscore"}
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        local = urlsplit(self.endpoint.url).hostname in _LOCAL
        # One client for each connection: the time that httpx takes to find a free one grows with their number.
        facts = {"headers": headers, "timeout": self.endpoint.timeout, "trust_env": not local}
        verify = httpx.create_ssl_context(trust_env=not local) if self.endpoint.url.startswith("https") else False
        waiting = iter(questions)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.endpoint.connections, len(questions))):
                    group.create_task(self._work(httpx.AsyncClient(verify=verify, **facts), waiting))  # type: ignore[arg-type]
        except BaseExceptionGroup as error:
            raise error.exceptions[0] from None

    async def _work(self, client: "httpx.AsyncClient", waiting: Iterator[Question]) -> None:
        async with client:
            for question in waiting:
                self.keep(question, await self._reply(client, question))

    async def _reply(self, client: "httpx.AsyncClient", question: Question) -> Reply:
        """Return what comes back in the end: an answer, or why there is none."""
        shares = generator(0, question.key.hex())
        attempt, plain = 0, False
        while True:
            await self._turn()
            self.spend()
            try:
                reply = await self._attempt(client, self._body(question, plain=plain))
            except _Unsupported:
                plain = True
            except _Failed as error:
                return Reply(None, failure=str(error))
            except _Retry as error:
                attempt += 1
                if error.unreachable and not self.reached and attempt > _FEW:
                    raise MissingExtra(f"judge: cannot reach {self.endpoint.url} ({error}). Is it running?") from None
                if attempt > self.endpoint.retries:
                    return Reply(None, failure=f"{error}, {attempt} times")
                pause = min(_LONGEST_PAUSE, _PAUSE * 2 ** (attempt - 1)) * (0.5 + shares.random())
                if error.after:
                    self.begin = max(self.begin, time.monotonic() + error.after)
                await asyncio.sleep(pause)
            else:
                self.schema = self.schema and not plain  # that was it: later calls leave it out from the start
                return reply

    async def _turn(self) -> None:
        """Wait until the next call may begin."""
        now = time.monotonic()
        begin = max(now, self.begin)
        if self.endpoint.rate:
            self.begin = begin + 60.0 / self.endpoint.rate
        if begin > now:
            await asyncio.sleep(begin - now)

    async def _attempt(self, client: "httpx.AsyncClient", sent: Mapping[str, object]) -> Reply:
        import httpx  # noqa: PLC0415 - an extra

        try:
            async with asyncio.timeout(self.endpoint.timeout):
                code, headers, body = await self._post(client, sent)
        except TimeoutError:
            raise _Retry(f"no answer within {self.endpoint.timeout:g} seconds") from None
        except httpx.ConnectError as error:
            raise _Retry(str(error) or "no connection", unreachable=True) from None
        except httpx.HTTPError as error:
            raise _Retry(type(error).__name__) from None
        self.reached = True
        if code != 200:  # noqa: PLR2004 - anything but fine
            self._refuse(code, headers, body, sent)
        return _completion(headers, body)

    def _refuse(self, code: int, headers: Mapping[str, str], body: bytes, sent: Mapping[str, object]) -> NoReturn:
        message = self._error_message(body)
        if code in _AGAIN or code >= 500:  # noqa: PLR2004 - the endpoint's fault
            raise _Retry(f"HTTP {code}", _seconds(headers.get("retry-after")))
        if code == 400 and "max_completion_tokens" in message and "max_tokens" in sent:  # noqa: PLR2004
            self.limit = "max_completion_tokens"
            raise _Retry("HTTP 400")
        if code in (400, 415, 422) and "response_format" in sent:
            raise _Unsupported
        if code in (401, 403):
            cure = (
                f"check {self.endpoint.key}" if self.endpoint.key else "name the variable that holds the key: key=..."
            )
            raise MissingExtra(f"judge: {self.endpoint.url} refuses access (HTTP {code}): {cure}")
        if code in _HOPELESS:
            raise MissingExtra(f"judge: HTTP {code} from {self.endpoint.address()}: check url and model. {message}")
        raise _Failed(f"HTTP {code} {message}".strip())

    def _body(self, question: Question, *, plain: bool) -> dict[str, object]:
        schema = self.schema and not plain
        body = {name: value for name, value in question.request.items() if schema or name != "response_format"}
        if self.limit != "max_tokens":
            body[self.limit] = body.pop("max_tokens")
        return body | {"stream": False}

    async def _post(self, client: "httpx.AsyncClient", body: object) -> tuple[int, Mapping[str, str], bytes]:
        body_read = bytearray()
        async with client.stream("POST", self.endpoint.address(), json=body) as response:
            async for chunk in response.aiter_bytes():
                body_read += chunk
                if len(body_read) > _LARGEST:
                    raise _Failed(f"an answer of more than {_LARGEST:,} bytes")
        return response.status_code, response.headers, bytes(body_read)

    def _error_message(self, body: bytes) -> str:
        """Return what the endpoint says of an error, without the key, should it repeat that."""
        text = body[:10_000].decode("utf-8", "replace")
        try:
            value = json.loads(text)
            text = str(value["error"]["message"])
        except (ValueError, TypeError, KeyError, RecursionError):
            pass
        if self.key:
            text = text.replace(self.key, "***")
        return " ".join(text.split())[:_SHOWN]


def _seconds(text: str | None) -> float:
    try:
        return min(_LONGEST_WAIT, max(0.0, float(text or 0)))
    except ValueError:  # a date
        return _LONGEST_PAUSE


def _completion(headers: Mapping[str, str], body: bytes) -> Reply:
    """Return the answer in a chat completion."""
    if "event-stream" in headers.get("content-type", ""):
        raise _Failed("the endpoint streams its answer, although streaming was not requested")
    try:
        value = json.loads(body)
        choice = value["choices"][0]
        message = choice["message"]
        text, refusal = message.get("content"), message.get("refusal")
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        raise _Retry("an answer that is not a chat completion") from None
    if isinstance(refusal, str) and refusal and not text:
        return Reply(refusal, "refusal", model=_text(value.get("model")))
    if not isinstance(text, str):
        raise _Retry("a chat completion without text")
    usage = value.get("usage") if isinstance(value.get("usage"), dict) else {}
    counts = [_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens")]
    return Reply(text, _text(choice.get("finish_reason")), None, _text(value.get("model")), *counts)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
