"""A chat-completions endpoint on loopback that answers as a script says: well, badly, late, or not at all.

A script is a function of the request (its JSON) and of how often this request has come, from 0; it returns a `Turn`.
"""

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Turn(NamedTuple):
    """What the endpoint does."""

    text: str = ""
    status: int = 200
    finish: str = "stop"
    delay: float = 0.0
    headers: Mapping[str, str] = {}
    body: bytes | None = None
    """Sent as it is, in place of a completion."""
    cut: bool = False
    """Whether the connection breaks in the middle."""


Script = Callable[[dict[str, Any], int], Turn]


class _Server(ThreadingHTTPServer):
    request_queue_size = 64

    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that were killed."""


class Endpoint:
    """The endpoint while it runs, and what it saw."""

    def __init__(self, script: Script) -> None:
        self.script, self.requests, self.headers = script, [], []
        self.seen: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.server = _Server(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["content-length"]))
                request = json.loads(raw)
                with endpoint.lock:
                    times = endpoint.seen[raw.decode()]
                    endpoint.seen[raw.decode()] += 1
                    endpoint.requests.append(request)
                    endpoint.headers.append(dict(self.headers))
                turn = endpoint.script(request, times)
                time.sleep(turn.delay)
                body = completion(turn, request) if turn.body is None else turn.body
                try:
                    self.send_response(turn.status)
                    for name, value in {"Content-Type": "application/json", **turn.headers}.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body[: len(body) // 2] if turn.cut else body)
                    if turn.cut:
                        self.close_connection = True
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler


def completion(turn: Turn, request: Mapping[str, Any]) -> bytes:
    """Return the body of a chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", "content": turn.text}, "finish_reason": turn.finish}
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    return json.dumps({"model": request["model"], "choices": [choice], "usage": usage}).encode()


def hypothesis_of(request: Mapping[str, Any]) -> str:
    """Return the hypothesis that a request is about."""
    text = request["messages"][-1]["content"]
    return re.search(r"<(?:translation|summary) (\w+)>\n(.*?)\n</\w+ \1>", text, re.DOTALL)[2]


def by_length(request: Mapping[str, Any], _times: int) -> Turn:
    """Answer every protocol with one number: the length of the hypothesis."""
    text = hypothesis_of(request)
    words = text.split()
    error = {"in": "translation", "category": "accuracy/mistranslation", "severity": "major", "reason": "wrong word"}
    errors = [{"quote": words[-1], **error}] if words else []
    return Turn(json.dumps({"errors": errors, "score": len(text) % 101}))


@contextmanager
def serving(script: Script = by_length) -> Iterator[Endpoint]:
    """Serve while the context lasts."""
    endpoint = Endpoint(script)
    thread = threading.Thread(target=endpoint.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.server.shutdown()
        thread.join()
        endpoint.server.server_close()
