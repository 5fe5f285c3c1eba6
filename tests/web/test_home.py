"""The home page lists runs, compares them and evaluates uploads within limits."""

import time
from collections.abc import Iterator, MutableMapping
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import whyscore as ws
from support.answers import make_no_report
from whyscore.runs.evaluate import evaluate
from whyscore.types import Dataset, Entry, Segment
from whyscore.web import ServeSettings, app, uploads
from whyscore.web.app import create

UPLOAD = {"X-Whyscore": "upload"}
TABLE = "source\treference\tEngine A\tEngine B\n" + "".join(
    f"Satz {k}\tthe cat number {k} sat on the mat\tthe cat number {k} sat on a mat\tthe bat {k} sat\n" for k in range(6)
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("runs")
    for name, lost in (("old", "sat "), ("new", "")):
        texts = [f"the cat number {k} sat here" for k in range(6)]
        entries = [
            Entry(str(k), "<b>mt</b>", Segment(text.replace(lost, ""), None, (text,))) for k, text in enumerate(texts)
        ]
        evaluate(Dataset("pets", tuple(entries)), ["chrf"], output=folder / name, draws=20)
    (folder / "half").mkdir()
    runs = {name: folder / name for name in ("old", "new", "half")}
    with TestClient(create(None, runs), base_url="http://localhost") as found:
        yield found


def finished(client: TestClient, answer: dict[str, object]) -> dict[str, object]:
    for _ in range(600):
        if answer["state"] not in ("waiting", "running"):
            break
        time.sleep(0.1)
        answer = client.get(f"/api/uploads/{answer['id']}").json()
    return answer


def test_home_lists_runs_with_what_came_of_them(client: TestClient) -> None:
    page = client.get("/").text
    assert 'href="/runs/new"' in page
    assert 'href="/runs/old"' in page
    assert "&lt;b&gt;mt&lt;/b&gt;" in page
    assert 'href="/runs/half"' not in page
    assert "half is no run folder" in page


def test_runs_are_compared_and_every_page_leads_back(client: TestClient) -> None:
    page = client.get("/compare", params={"run": ["old", "new"]})
    assert page.status_code == 200
    assert "old → new" in page.text
    for text in (page.text, client.get("/runs/new").text, client.get("/try").text):
        assert '<a class="brand" href="/"' in text
    assert client.get("/compare", params={"run": ["old", "gone"]}).status_code == 404
    broken = client.get("/compare", params={"run": ["old", "half"]})
    assert (broken.status_code, "half is no run folder" in broken.text) == (422, True)
    assert str(Path.home().root + "tmp") not in broken.text


def test_reports_are_made_within_the_limits_of_a_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app.live, "answer_report", make_no_report)
    data = Dataset("pets", (Entry("0", "mt", Segment("a cat", None, ("a dog",))),))
    evaluate(data, ["chrf"], output=tmp_path / "run", draws=20)
    server = create(ServeSettings(seconds=0.1), {"run": tmp_path / "run"})
    with TestClient(server, base_url="http://localhost") as client:
        page = client.get("/runs/run")
        assert (page.status_code, "this takes more than 0.1 seconds" in page.text) == (422, True)
        assert client.get("/static/page.css").status_code == 200


def test_an_upload_becomes_a_run_with_the_scores_of_the_command(client: TestClient, tmp_path: Path) -> None:
    asked = {"name": "my data.tsv", "metric": ["chrf"], "pair": "de-en"}
    answer = client.post("/api/uploads", params=asked, content=TABLE.encode(), headers=UPLOAD)
    found = finished(client, answer.json())
    assert (found["state"], found["error"], found["run"]) == ("done", None, "my-data")
    report = client.get("/runs/my-data").text
    (tmp_path / "data.tsv").write_text(TABLE, "utf-8")
    expected = ws.score_systems(ws.read(tmp_path / "data.tsv"), ["chrf"])[0].totals["Engine A"].value
    assert f"{expected:.2f}" in report
    assert "my-data" in client.get("/").text


@pytest.mark.parametrize(
    ("name", "body", "metrics", "message"),
    [
        ("x.exe", b"a", [], "cannot read this kind of file"),
        ("x.tsv", b"", [], "is empty"),
        ("x.tsv", b"a", ["lookup"], "no metric named 'lookup'"),
        ("x.tsv", b"a", ["my.py:f"], "no metric named"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(
    client: TestClient, name: str, body: bytes, metrics: list[str], message: str
) -> None:
    answer = client.post("/api/uploads", params={"name": name, "metric": metrics}, content=body, headers=UPLOAD)
    assert (answer.status_code, message in answer.json()["error"]) == (422, True)


@pytest.mark.parametrize("name", ["..tsv", "...tsv"])
def test_names_of_folders_above_are_no_names_of_uploads(client: TestClient, name: str) -> None:
    answer = client.post("/api/uploads", params={"name": name}, content=TABLE.encode(), headers=UPLOAD)
    found = finished(client, answer.json())
    assert (found["state"], str(found["run"])[:6]) == ("done", "upload")


def test_an_upload_may_end_while_home_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    shared: list[MutableMapping[str, Path]] = []

    def share(runs: MutableMapping[str, Path], memory: int) -> uploads.Uploads:
        shared.append(runs)
        return uploads.Uploads(runs, memory)

    def end_upload(name: str, folder: Path) -> app._Row:
        shared[0][f"{name} again"] = folder
        return app._Row(name)

    monkeypatch.setattr(app, "Uploads", share)
    monkeypatch.setattr(app, "_row", end_upload)
    with TestClient(create(None, {"a": Path("a"), "b": Path("b")}), base_url="http://localhost") as client:
        assert client.get("/").status_code == 200
    assert len(shared[0]) == 4


def test_pages_elsewhere_cannot_upload_and_damaged_files_are_explained(client: TestClient) -> None:
    assert client.post("/api/uploads", params={"name": "x.tsv"}, content=b"a").status_code == 422
    answer = client.post("/api/uploads", params={"name": "x.xlsx"}, content=b"no workbook", headers=UPLOAD)
    found = finished(client, answer.json())
    assert found["state"] == "failed"
    assert str(found["error"]).startswith("x.xlsx")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is limited on Linux alone")
def test_an_upload_that_takes_too_much_memory_or_time_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    large = "system\tid\treference\thypothesis\n" + "".join(
        f"a\t{k}\t{'x ' * 400}\t{'y ' * 400}\n" for k in range(2000)
    )
    with TestClient(create(ServeSettings(memory=10)), base_url="http://localhost") as client:
        asked = client.post("/api/uploads", params={"name": "x.tsv"}, content=large.encode(), headers=UPLOAD).json()
        answer = finished(client, asked)
        assert (answer["state"], "memory" in answer["error"].lower()) == ("failed", True)
        monkeypatch.setattr(uploads, "SECONDS", 0)
        asked = client.post("/api/uploads", params={"name": "x.tsv"}, content=TABLE.encode(), headers=UPLOAD).json()
        answer = finished(client, asked)
        assert (answer["state"], answer["error"]) == ("failed", "this takes more than 0 seconds: upload fewer texts")


def test_uploads_can_be_cancelled(client: TestClient) -> None:
    large = TABLE + TABLE.split("\n", 1)[1] * 300
    first = client.post("/api/uploads", params={"name": "large.tsv"}, content=large.encode(), headers=UPLOAD).json()
    second = client.post("/api/uploads", params={"name": "second.tsv"}, content=TABLE.encode(), headers=UPLOAD).json()
    assert second["state"] == "waiting"
    for one in (second, first):
        client.delete(f"/api/uploads/{one['id']}", headers=UPLOAD)
        assert finished(client, one)["state"] == "cancelled"


def test_sizes_are_checked_before_anything_is_scored() -> None:
    long = Dataset("x", (Entry("1", "a", Segment("b" * (uploads.TEXT + 1), None, ("c",))),))
    many = Dataset("x", tuple(Entry(str(k), "a", Segment("b", None, ("c",))) for k in range(uploads.ENTRIES + 1)))
    for data, message in ((long, "characters"), (many, "at most 5,000 are allowed"), (Dataset("x", ()), "no segments")):
        with pytest.raises(ws.errors.WhyscoreError, match=message):
            uploads._check_size(data)
