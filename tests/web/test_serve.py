"""The server answers what is allowed, says why it refuses the rest, and never shows an error of its own."""

import asyncio
import re
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

import whyscore as ws
from support.nasty import WRITABLE
from whyscore.cli.main import main
from whyscore.errors import SpecError, UnknownName
from whyscore.scoring.stack import Progress
from whyscore.web import ServeSettings
from whyscore.web import limits as allowed
from whyscore.web.app import create
from whyscore.web.limits import Busy, Gone, Queue, Stoppable
from whyscore.web.live import BODY, PROBES, SEGMENTS, TEXT

PAIR = {"hypothesis": "a cat", "references": ["a dog"]}


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
    for wrong, told in (({"masker": "x"}, "'masker' cannot be set"), ({"unit": "a.py:f"}, "one of 'word'")):
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
        ({"segments": [PAIR], "more": 1}, "more: "),
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


def in_a_loop_of_its_own(scenario: Callable[[], Coroutine[None, None, None]]) -> None:
    """Run in another thread: in this one a browser's loop may be running."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(scenario())).result()


def test_a_full_queue_turns_the_next_one_away_and_room_comes_back() -> None:
    async def there() -> bool:
        return False

    async def scenario() -> None:
        queue, open_ = Queue(1, 1), threading.Event()
        waiting = [asyncio.create_task(queue.answer(lambda _: open_.wait(5), there)) for _ in range(2)]
        await asyncio.sleep(0.05)
        with pytest.raises(Busy):
            await queue.answer(lambda _: True, there)
        open_.set()
        assert await asyncio.gather(*waiting) == [True, True]
        assert await queue.answer(lambda _: "free again", there) == "free again"

    in_a_loop_of_its_own(scenario)


def test_work_ends_at_its_next_batch_when_the_asker_has_gone() -> None:
    batches = 0

    def work(progress: Progress) -> None:
        nonlocal batches
        for _ in range(1000):
            time.sleep(0.02)
            batches += 1
            progress.answered(1, stored=False)

    async def scenario() -> None:
        looks = iter([False, True])

        async def gone() -> bool:
            return next(looks)

        with pytest.raises(Gone):
            await Queue(1, 1).answer(work, gone)

    in_a_loop_of_its_own(scenario)
    assert batches < 100
    stopped = Stoppable()
    stopped.asked(1)
    stopped.stop()
    with pytest.raises(Gone):
        stopped.asked(1)


def test_the_command_refuses_folders_that_are_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", str(tmp_path / "no")]) == 2
    assert "make one with whyscore evaluate" in capsys.readouterr().err
    assert main(["serve", "--workers", "0"]) == 2
    assert "argument --workers: expected a whole number, 1 or more" in capsys.readouterr().err
