"""Limits on connections: how many, how long they may stay silent, how much is kept of them, and who may use them.

1. At most `CONNECTIONS` are open; one more is closed at once.
2. The first line and the headers are there within `PATIENCE` seconds of the connection or of the first byte of the next
   request, in at most `HEADERS` bytes. The body follows within `PATIENCE` seconds. A client that does not read its
   answer for as long is disconnected.
3. A body has at most `BODY` bytes, whatever its headers say; what is announced as longer is refused before it is read.
   Bodies are kept until their requests are answered. When all of them together have `BODIES` bytes, one of more than
   `SMALL` bytes is refused.
4. With a token, a request carries it: `Authorization: Bearer TOKEN`, or the cookie that a browser gets by opening
   `/?token=TOKEN`.
"""

import asyncio
import hmac
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from whyscore.errors import MissingExtra

try:
    from starlette.datastructures import Headers
    from starlette.responses import JSONResponse, RedirectResponse
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError as error:
    raise MissingExtra.of("whyscore serve", "web") from error

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONNECTIONS = 512
HEADERS = 16_000
BODY = 4_000_000
BODIES = 64_000_000
SMALL = 32_000
PATIENCE = 10.0
COOKIE = "whyscore_token"


class Connection(H11Protocol):
    """A connection that is closed when its client stalls."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start waiting for a request, unless there are too many connections."""
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            transport.abort()
            return
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take bytes; headers that are not complete have a limited time."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._timer is None:
            self._wait()

    def pause_writing(self) -> None:
        """Give a client that does not read its answer a limited time."""
        self.flow.pause_writing()
        self._wait()

    def resume_writing(self) -> None:
        """Go on writing."""
        self._stop_waiting()
        self.flow.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._stop_waiting()
        self._timer = self.loop.call_later(PATIENCE, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class LimitedBodies:
    """Reads the body of a request within limits, then passes the request on."""

    def __init__(self, app: "ASGIApp") -> None:
        self.app = app
        self._kept = 0
        """Bytes of all bodies whose requests are not answered."""

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass on what is small enough and comes in time."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = bytearray()
        try:
            refusal = await self._read(scope, receive, body)
            if refusal is None:
                await self.app(scope, _replay(body, receive), send)
            else:
                await refusal(scope, receive, send)
        finally:
            self._kept -= len(body)

    async def _read(self, scope: "Scope", receive: "Receive", body: bytearray) -> JSONResponse | None:
        """Read a body; return why it is refused."""
        address = len(scope.get("raw_path", b"")) + len(scope.get("query_string", b""))
        if address + sum(len(name) + len(value) for name, value in scope["headers"]) > HEADERS:
            return _refuse(431, f"the address and the headers may have at most {HEADERS} bytes")
        announced = Headers(scope=scope).get("content-length", "0")
        if announced.isdecimal() and int(announced[:20]) > BODY:
            return _refuse(413, f"a request may have at most {BODY} bytes")
        try:
            async with asyncio.timeout(PATIENCE):
                more = True
                while more:
                    message = await receive()
                    part = message.get("body", b"")
                    if len(body) + len(part) > BODY:
                        return _refuse(413, f"a request may have at most {BODY} bytes")
                    if len(body) + len(part) > SMALL and self._kept + len(part) > BODIES:
                        return _refuse(503, "too busy: try again")
                    body += part
                    self._kept += len(part)
                    more = message.get("more_body", False)
        except TimeoutError:
            return _refuse(408, f"the request was not complete after {PATIENCE:g} seconds")
        return None


def _refuse(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error": message}, status, headers={"connection": "close"})


def _replay(body: bytearray, receive: "Receive") -> "Receive":
    """Return what hands out a body that was already read, and then goes on listening."""
    replayed = False

    async def once() -> "Message":
        nonlocal replayed
        if replayed:
            return await receive()
        replayed = True
        return {"type": "http.request", "body": bytes(body), "more_body": False}

    return once


class WithToken:
    """Answers only requests that carry the token."""

    def __init__(self, app: "ASGIApp", token: str) -> None:
        self.app = app
        self.token = token.encode()

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass on requests with the token; a browser that opens an address with it gets a cookie."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        # Logs show the address of a request as it is here: without the token.
        scope["query_string"] = urlencode([pair for pair in query if pair[0] != "token"]).encode()
        headers = Headers(scope=scope)
        kind, _, shown = headers.get("authorization", "").partition(" ")
        if (kind.lower() == "bearer" and self._is_right(shown)) or self._is_right(_cookie(headers.get("cookie", ""))):
            await self.app(scope, receive, send)
            return
        token = next((value for name, value in query if name == "token"), "")
        if scope["method"] == "GET" and self._is_right(token):
            # Without the token in its address the page can be shared, and no history keeps it.
            page = RedirectResponse("/" + scope["path"].lstrip("/\\"), 303)
            page.set_cookie(COOKIE, token, httponly=True, samesite="strict")
            await page(scope, receive, send)
            return
        message = "this server needs a token: open the address with ?token=TOKEN, or send Authorization: Bearer TOKEN"
        refusal = JSONResponse({"error": message}, 401, headers={"WWW-Authenticate": "Bearer"})
        await refusal(scope, receive, send)

    def _is_right(self, shown: str) -> bool:
        return hmac.compare_digest(shown.encode("utf-8", "surrogatepass"), self.token)


def _cookie(header: str) -> str:
    try:
        cookie = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return "" if cookie is None else cookie.value
