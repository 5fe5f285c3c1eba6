"""The server answers what is allowed, says why it refuses the rest, and never shows an error of its own."""

import asyncio
import contextlib
import itertools
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import schemathesis
import uvicorn
from fastapi.testclient import TestClient
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from pydantic import ValidationError
from starlette.types import Message, Receive, Send

import whyscore as ws
from support.answers import end, fail, process, sleep, take
from support.nasty import WRITABLE
from whyscore.cli.main import main
from whyscore.errors import SpecError, UnknownName, UserError, WhyscoreError
from whyscore.web import ServeSettings, connections
from whyscore.web import limits as allowed
from whyscore.web.app import create
from whyscore.web.connections import BODY
from whyscore.web.live import PROBES, SEGMENTS, TEXT, ScoreQuestion, is_large
from whyscore.web.workers import Busy, Gone, Queue

PAIR = {"hypothesis": "a cat", "references": ["a dog"]}
MANY: dict[str, object] = {f"x{k}": [] for k in range(2000)}


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(create(), base_url="http://localhost") as found:
        yield found


def test_scores_are_those_of_python(client: TestClient) -> None:
    answer = client.post(
        "/api/score", json={"segments": [PAIR], "metric": {"name": "chrf", "options": {"word_order": 2}}}
    )
    expected = ws.score([ws.Segment("a cat", None, ("a dog",))], "chrf(word_order=2)")
    assert answer.json() == {
        "scores": expected.values.tolist(),
        "signature": str(expected.signature),
        "higher_is_better": True,
    }


def test_words_are_those_of_python(client: TestClient) -> None:
    answer = client.post(
        "/api/explain", json={"segment": PAIR, "explainer": {"name": "lime", "options": {"samples": 20}}}
    )
    expected = ws.explain([ws.Segment("a cat", None, ("a dog",))], "chrf", "lime(samples=20)")
    found = answer.json()
    assert found["higher_is_better"] is True
    assert [text["side"] for text in found["texts"]] == ["hypothesis", "reference"]
    for text, one in zip(found["texts"], expected, strict=True):
        assert [word["importance"] for word in text["words"]] == one.importance.tolist()
        assert [text["text"][word["start"] : word["end"]] for word in text["words"]] == list(one.words)


def test_settings_are_those_of_python_too(client: TestClient) -> None:
    listed = {one["name"]: one for one in client.get("/api/components").json()["settings"]}
    assert listed["repeat"] | {"about": ""} == {"name": "repeat", "about": "", "values": "a whole number", "default": 1}
    assert set(listed) == {"seed", "unit", "repeat"}
    answer = client.post("/api/explain", json={"segment": PAIR, "settings": {"unit": "char"}})
    expected = ws.explain([ws.Segment("a cat", None, ("a dog",))], "chrf", "erasure", unit="char")
    assert [word["importance"] for word in answer.json()["texts"][0]["words"]] == expected[0].importance.tolist()
    for wrong, told in (
        ({"masker": "x"}, "'masker' cannot be set"),
        ({"unit": "a.py:f"}, "one of 'word'"),
        ({"seed": 10**400}, "seed is too large here"),
    ):
        answer = client.post("/api/explain", json={"segment": PAIR, "settings": wrong})
        assert (answer.status_code, told in answer.json()["error"]) == (422, True)
    answer = client.post("/api/explain", json={"segment": PAIR, "settings": {"repeat": 0}})
    assert "repeat is 0, expected 1 or more" in answer.json()["error"]


def test_what_can_be_asked_is_listed_with_its_options(client: TestClient) -> None:
    found = client.get("/api/components").json()
    metrics = {one["name"]: one for one in found["metrics"]}
    assert metrics["chrf"]["options"]["word_order"] == "a whole number"
    assert "path" not in str(found)
    assert {one["name"] for one in found["explainers"]} >= {"erasure", "lime", "shap"}


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ({"segments": [PAIR], "metric": {"name": "callable"}}, "no metric named 'callable'"),
        ({"segments": [PAIR], "metric": {"name": "os:system"}}, "no metric named 'os:system'"),
        ({"segments": [PAIR], "metric": {"name": "chrf(word_order=2)"}}, "no metric named"),
        (
            {"segments": [PAIR], "metric": {"name": "xbertscore", "options": {"model": "/etc"}}},
            "'model' cannot be set here",
        ),
        ({"segments": [PAIR], "metric": {"name": "chrf", "options": {"word_order": "two"}}}, "expected a whole number"),
        ({"segments": [PAIR], "metric": {"name": "rouge", "options": {"kind": "x"}}}, "expected one of"),
        (
            {"segments": [{"hypothesis": "a"}]},
            "chrf needs a reference: fill in the reference",
        ),
        ({"segments": []}, "segments: "),
        ({"segments": [PAIR] * (SEGMENTS + 1)}, "segments: "),
        ({"segments": [{"hypothesis": "a" * (TEXT + 1)}]}, "hypothesis: "),
        ({"segments": [PAIR], "more": 1}, "no field is named 'more': segments, metric"),
        ({"segments": [PAIR | {"more": 1}]}, "segments.0: no field is named 'more': hypothesis, source, references"),
    ],
)
def test_what_is_not_allowed_is_refused_with_the_reason(client: TestClient, question: object, told: str) -> None:
    answer = client.post("/api/score", json=question)
    assert answer.status_code == 422
    assert told in answer.json()["error"]


def test_an_explanation_that_takes_too_much_is_refused_before_it_starts(client: TestClient) -> None:
    question = {"segment": {"hypothesis": "a b " * 900, "references": ["a"]}, "explainer": {"name": "shap"}}
    answer = client.post("/api/explain", json=question)
    assert answer.status_code == 422
    assert f"at most {PROBES} are scored here" in answer.json()["error"]


@pytest.mark.parametrize("options", [{"char_order": 100_000_000}, {"beta": 10**400}, {"beta": -1e300}])
def test_options_that_take_too_much_are_refused_before_any_work(client: TestClient, options: dict[str, object]) -> None:
    answer = client.post("/api/score", json={"segments": [PAIR], "metric": {"name": "chrf", "options": options}})
    assert answer.status_code == 422
    assert "too large here: give a number from -100 to 100" in answer.text or "beta" in answer.text


@pytest.mark.parametrize(
    "part", [{"segments": [PAIR | MANY]}, {"segments": [PAIR], "metric": {"name": "chrf", "options": MANY}}]
)
def test_a_question_of_many_mistakes_costs_no_more_than_its_first(part: dict[str, object]) -> None:
    with pytest.raises(ValidationError) as refused:
        ScoreQuestion.model_validate(part)
    assert refused.value.error_count() == 1


def test_large_questions_and_strange_hosts_are_turned_away(client: TestClient) -> None:
    assert client.post("/api/score", content=b"x" * (BODY + 1)).status_code == 413
    assert client.get("/", headers={"host": "evil.example"}).status_code == 400
    assert client.post("/api/score", content=b"{", headers={"content-type": "application/json"}).status_code == 422


def test_pages_carry_a_policy_and_no_script_of_their_own(client: TestClient) -> None:
    for path in ("/", "/try", "/runs/nothing"):
        page = client.get(path)
        assert "default-src 'self'" in page.headers["content-security-policy"]
        assert not re.search(r"<script>|\son\w+=|style=", page.text)
    for name in ("page.css", "live.css", "live.js", "home.js"):
        assert client.get(f"/static/{name}").status_code == 200
    assert client.get("/static/..%2fapp.py").status_code == 404
    assert client.get("/runs/nothing").status_code == 404
    for name in ("live.js", "home.js"):
        assert "innerHTML" not in client.get(f"/static/{name}").text


def test_nasty_texts_are_scored_and_explained(client: TestClient) -> None:
    short = [text for text in WRITABLE if 0 < len(text) < 60][:150]
    segments = [{"hypothesis": text, "references": [text + " x"]} for text in short]
    assert client.post("/api/score", json={"segments": segments}).status_code == 200
    for text in short[::10]:
        answer = client.post("/api/explain", json={"segment": {"hypothesis": text, "references": ["x y"]}})
        assert answer.status_code in (200, 422)


schema = schemathesis.openapi.from_asgi("/openapi.json", create(ServeSettings(allow_hosts=("*",))))


@schema.parametrize()
@hypothesis_settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.filterwarnings("ignore")
def test_no_question_at_all_makes_the_server_fail(case: schemathesis.Case) -> None:
    assert case.call().status_code < 500


def test_options_are_checked_without_the_network_too() -> None:
    assert allowed.spec("explainer", "lime", {"samples": 50}) == "lime(samples=50)"
    with pytest.raises(UnknownName, match="no explainer named 'logprob'"):
        allowed.spec("explainer", "logprob", {})
    with pytest.raises(SpecError, match="samples"):
        allowed.spec("explainer", "lime", {"samples": -1})


@pytest.fixture
def queue() -> Iterator[Queue]:
    made = Queue(ServeSettings(workers=1, queue=1, seconds=1.0, memory=100), None)
    yield made
    made.close()


def in_a_loop_of_its_own(scenario: Callable[[], Coroutine[None, None, None]]) -> None:
    """Run in another thread: in this one a browser's loop may be running."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(scenario())).result()


async def there() -> bool:
    return False


def test_a_full_queue_turns_the_next_one_away_and_room_comes_back(queue: Queue) -> None:
    async def scenario() -> None:
        waiting = [asyncio.create_task(queue.answer(sleep, 0.3, there, large=False)) for _ in range(2)]
        await asyncio.sleep(0.05)
        with pytest.raises(Busy):
            await queue.answer(sleep, 0.0, there, large=False)
        assert await asyncio.gather(*waiting) == ["done", "done"]
        assert await queue.answer(sleep, 0.0, there, large=True) == "done"

    in_a_loop_of_its_own(scenario)


def test_the_server_starts_its_workers_before_it_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    with TestClient(create(ServeSettings(workers=1)), base_url="http://localhost") as client:
        monkeypatch.setattr(Queue, "_start", None)
        assert client.post("/api/score", json={"segments": [PAIR]}).status_code == 200


def test_work_that_takes_too_long_or_that_nobody_waits_for_is_ended(queue: Queue) -> None:
    async def scenario() -> None:
        first = await queue.answer(process, None, there, large=False)
        looks = iter([False, True])

        async def gone() -> bool:
            return next(looks)

        start = time.perf_counter()
        with pytest.raises(Gone):
            await queue.answer(sleep, 60.0, gone, large=False)
        assert time.perf_counter() - start < 1.0
        with pytest.raises(ProcessLookupError):
            os.kill(first, 0)
        with pytest.raises(UserError, match="this takes more than 1 seconds"):
            await queue.answer(sleep, 60.0, there, large=False)
        assert await queue.answer(sleep, 0.0, there, large=False) == "done"

    in_a_loop_of_its_own(scenario)


def test_memory_is_limited_and_failures_tell_nothing_of_the_machine(queue: Queue) -> None:
    async def scenario() -> None:
        assert await queue.answer(take, 20, there, large=False) == 20 * 2**20
        with pytest.raises(UserError, match="this takes more than 100 MB of memory"):
            await queue.answer(take, 4000, there, large=False)
        with pytest.raises(UserError, match=r"^this request failed$"):
            await queue.answer(fail, None, there, large=False)
        with pytest.raises(WhyscoreError, match="the worker process ended"):
            await queue.answer(end, None, there, large=False)
        assert await queue.answer(sleep, 0.0, there, large=False) == "done"

    in_a_loop_of_its_own(scenario)


def test_large_questions_leave_a_worker_to_the_others() -> None:
    queue = Queue(ServeSettings(workers=2), None)

    async def scenario() -> None:
        await asyncio.gather(*(queue.answer(sleep, 0.1, there, large=False) for _ in range(2)))
        waiting = [asyncio.create_task(queue.answer(sleep, 1.0, there, large=True)) for _ in range(3)]
        await asyncio.sleep(0.05)
        start = time.perf_counter()
        await queue.answer(sleep, 0.0, there, large=False)
        assert time.perf_counter() - start < 0.9
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    try:
        in_a_loop_of_its_own(scenario)
    finally:
        queue.close()


def test_questions_are_weighed_before_any_work(client: TestClient) -> None:
    long = {"hypothesis": "a b " * 1250, "references": ["b a " * 1250]}
    answer = client.post("/api/score", json={"segments": [long], "metric": {"name": "ter"}})
    assert (answer.status_code, "times the work allowed per request" in answer.json()["error"]) == (422, True)
    small = ScoreQuestion.model_validate({"segments": [PAIR]})
    large = ScoreQuestion.model_validate({"segments": [long] * 100})
    assert (is_large(small), is_large(large)) == (False, True)


@pytest.mark.parametrize("kind", ["metric", "explainer"])
def test_the_largest_options_are_refused_or_answered_within_the_limits(client: TestClient, kind: str) -> None:
    largest = {"metric": 100, "explainer": 20_000}[kind]
    segment = PAIR | {"source": "ein Hund"}
    for component in client.get("/api/components").json()[f"{kind}s"]:
        numbers = [name for name, values in component["options"].items() if "number" in values]
        for option, value in itertools.product(numbers, (largest, -largest, 0)):
            asked = {"name": component["name"], "options": {option: value}}
            answer = client.post("/api/explain", json={"segment": segment, kind: asked})
            assert answer.status_code in (200, 422), (asked, answer.text)
            assert "could not be scored" not in answer.text, asked


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A server on a port of its own, with little patience."""
    monkeypatch.setattr(connections, "PATIENCE", 0.5)
    monkeypatch.setattr(connections, "CONNECTIONS", 5)
    config = uvicorn.Config(create(ServeSettings(token="a secret")), http=connections.Connection, log_level="error")
    server = uvicorn.Server(config)
    with socket.socket() as listening, ThreadPoolExecutor(1) as thread:
        listening.bind(("127.0.0.1", 0))
        running = thread.submit(lambda: asyncio.run(server.serve(sockets=[listening])))
        while not server.started:
            time.sleep(0.02)
        yield listening.getsockname()[1]
        server.should_exit = True
        running.result()


def closed_after(connection: socket.socket) -> float:
    """Return after how many seconds the server closes a connection."""
    connection.settimeout(5)
    start = time.perf_counter()
    with contextlib.suppress(ConnectionResetError):
        while connection.recv(1000):
            pass
    return time.perf_counter() - start


HEAD = b"POST /api/score HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a secret\r\n"


@pytest.mark.parametrize(
    "begun", [b"", b"GET / HT", HEAD, HEAD + b"Content-Length: 100\r\n\r\n{", b"X" * 100_000], ids=range(5)
)
def test_clients_that_stall_are_disconnected(port: int, begun: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(begun)
        assert closed_after(connection) < 2.0


def test_more_connections_than_allowed_are_closed_at_once(port: int) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        time.sleep(0.1)
        assert closed_after(stack.enter_context(socket.create_connection(("127.0.0.1", port)))) < 0.3


def test_bodies_are_counted_until_their_requests_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "BODIES", 100_000)
    monkeypatch.setattr(connections, "SMALL", 1000)
    answered = asyncio.Event()
    statuses: list[object] = []

    async def app(_: object, receive: Receive, send: Send) -> None:
        await receive()
        await answered.wait()
        await send({"type": "http.response.start", "status": 200})

    limited = connections.LimitedBodies(app)

    async def ask(size: int) -> None:
        async def receive() -> Message:
            return {"type": "http.request", "body": b"x" * size, "more_body": False}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        await limited({"type": "http", "headers": []}, receive, send)

    async def scenario() -> None:
        first = [asyncio.create_task(ask(60_000)) for _ in range(2)]
        await asyncio.sleep(0.05)
        assert statuses == [503]
        small = asyncio.create_task(ask(1000))
        answered.set()
        await asyncio.gather(*first, small)
        await ask(60_000)
        assert statuses == [503, 200, 200, 200]

    in_a_loop_of_its_own(scenario)


def test_other_machines_need_a_token(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--host", "0.0.0.0", "--port", "0"]) == 2
    assert "--host 0.0.0.0 lets other machines in: add --token TEXT" in capsys.readouterr().err
    for token in ("schlüssel", "a\nb", "\udcff"):
        assert main(["serve", "--token", token, "--port", "0"]) == 2
        assert "--token has characters that a request cannot carry" in capsys.readouterr().err
    with TestClient(create(ServeSettings(host="0.0.0.0", token="abc")), base_url="http://localhost") as client:
        assert client.get("/").status_code == 401
        assert client.get("/", headers={"Authorization": "Bearer abd"}).status_code == 401
        assert client.get("/?token=", follow_redirects=False).status_code == 401
        assert client.get("/api/components", headers={"Authorization": "Bearer abc"}).status_code == 200
        assert client.get("/%2fevil.example?token=abc", follow_redirects=False).headers["location"] == "/evil.example"
        client.cookies.clear()
        page = client.get("/?token=abc")
        assert (page.status_code, "token" in str(page.url)) == (200, False)


def test_logs_hold_no_token_and_nothing_that_a_client_writes_there() -> None:
    command = [sys.executable, "-m", "whyscore", "serve", "--token", "s-same", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8") as server:
        assert server.stdout is not None
        port = next(
            found[1] for line in server.stdout if (found := re.search(r"running on http://127.0.0.1:(\d+)", line))
        )
        for path in ("/?token=s-same", "/?token=s-sam", "/api/components?a=1&token=s%2dsame&b="):
            with socket.create_connection(("127.0.0.1", int(port))) as connection:
                connection.sendall(
                    f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n".encode()
                    + b"X-Forwarded-For: \x9b31mred\r\n\r\n"
                )
                assert connection.recv(20).startswith((b"HTTP/1.1 303", b"HTTP/1.1 401"))
        server.terminate()
        lines = [line for line in server.stdout if "GET" in line]
    assert [line.split('"')[1] for line in lines] == ["GET / HTTP/1.1"] * 2 + ["GET /api/components?a=1&b= HTTP/1.1"]
    assert all("127.0.0.1" in line and "red" not in line for line in lines)


def test_problems_look_alike_and_addresses_have_a_length(client: TestClient) -> None:
    head = {"Content-Type": "application/json"}
    answers = {
        400: client.post("/api/score", content=b"\xff", headers=head),
        404: client.get("/no"),
        405: client.put("/api/score"),
        431: client.get("/", params={"a": "a" * 16_000}),
    }
    assert {status: answer.status_code for status, answer in answers.items()} == {status: status for status in answers}
    assert all(list(answer.json()) == ["error"] for answer in answers.values())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_the_command_does_not_start_for_other_machines_without_a_token(host: str) -> None:
    command = [sys.executable, "-m", "whyscore", "serve", "--host", host, "--port", "0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.count("\n") == 1
    assert f"--host {host} lets other machines in: add --token TEXT" in ended.stderr


def test_the_command_refuses_folders_that_are_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", str(tmp_path / "no")]) == 2
    assert "make one with whyscore evaluate" in capsys.readouterr().err
    assert main(["serve", "--workers", "0"]) == 2
    assert "argument --workers: expected a whole number, 1 or more" in capsys.readouterr().err
