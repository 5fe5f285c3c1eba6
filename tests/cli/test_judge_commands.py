"""Judges on the command line: scores, gates, records, reports, meta-evaluation; hostile answers do no harm."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import whyscore as ws
from support.cli import Run
from support.judge_server import Turn, by_length, hypothesis_of, serving
from whyscore.analysis.explain import Unexplained
from whyscore.analysis.metaeval.faithfulness import stability

HOSTILE = "<script>alert(1)</script>\x1b[31m</textarea>"


def write(folder: Path, count: int = 8) -> None:
    for name, words in (("src", "Satz Nummer"), ("a", "sentence number"), ("b", "phrase numeral")):
        lines = (f"{words} {k} {'x' * k}\n" for k in range(count))
        (folder / f"{name}.txt").write_text("".join(lines), encoding="utf-8")


def script(request: dict[str, Any], times: int) -> Turn:
    text = hypothesis_of(request)
    if text.startswith("sentence number 3"):
        return Turn(f"I cannot do that {HOSTILE}")
    error = {"quote": text.split()[0], "in": "translation", "category": HOSTILE, "severity": "major", "reason": HOSTILE}
    return Turn(json.dumps({"errors": [error], "score": len(text)})) if times >= 0 else Turn()


def test_a_judge_goes_through_every_command(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUDGE_KEY", "sk-very-secret")
    write(tmp_path)
    texts = ["-s", "src.txt", "-t", "a.txt", "b.txt", "-l", "de-en"]
    with serving(script) as endpoint:
        judge = f"judge(model='m', url='{endpoint.url}', key='JUDGE_KEY')"
        planned = run("score", *texts, "-m", judge, "--dry-run")
        assert "16 texts, 16 distinct, 0 already stored" in planned.out
        assert "16 calls, about" in planned.out
        assert not endpoint.requests
        scored = run("score", *texts, "-m", judge, "--record", "answers.jsonl", "--segments", "-f", "jsonl")
        assert scored.code == 0
        assert "note: " in scored.err
        assert "1 of 16 answers cannot be used (6.2%): 1 refused" in scored.err
        assert "warning: 1 of 16 answers cannot be used" in scored.err
        rows = [json.loads(line) for line in scored.out.splitlines()[1:]]
        assert [row["reason"] for row in rows if row["score"] is None] == ["refused"]
        failed = run("score", *texts, "-m", judge, "--fail-if-unparsed", "0.05")
        assert failed.code == 5
        assert "1 of 16 answers cannot be used (6.2%, at most 5.0% may)" in failed.err
        assert run("score", *texts, "-m", judge, "--fail-if-unparsed", "0.1").code == 0
        refused = run("score", *texts, "-m", judge.replace("'m'", "'n'"), "--budget-calls", "3")
        assert (refused.code, "16 calls are needed and --budget-calls leaves 3" in refused.err) == (1, True)
        explained = run("explain", *texts[:4], "-m", judge, "-e", "intrinsic", "-l", "de-en")
        assert explained.code == 0
        assert "\x1b[31m" not in explained.out
        assert "1 of 8 segments could not be explained" in explained.err
        compared = run("compare", *texts, "-m", judge)
        assert compared.code == 0
        assert "7 segments" in compared.out
        evaluated = run("evaluate", *texts, "-m", judge, "-o", "run")
        assert evaluated.code == 0, evaluated.err
        assert len(endpoint.requests) == 16
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "<script>alert(1)" not in page
    replayed = run("score", *texts, "-m", "judge(recorded='answers.jsonl')", "--segments", "-f", "jsonl")
    again = [json.loads(line) for line in replayed.out.splitlines()[1:]]
    assert [row["score"] for row in again] == [row["score"] for row in rows]
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(b"sk-very-secret" in path.read_bytes() for path in written)
    told = "".join(one.out + one.err for one in (planned, scored, failed, refused, explained, compared, evaluated))
    assert "sk-very-secret" not in told


def test_human_scores_are_compared_with_a_judge(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"Satz {k}\tsentence number {k} {'x' * k}\tone\t{k}\t{k}" for k in range(12)]
    head = "source\thypothesis\tsystem\tid\tda\n"
    (tmp_path / "data.tsv").write_text(head + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    with serving(by_length) as endpoint:
        judge = f"judge(model='m', url='{endpoint.url}', protocol='score')"
        found = run("metaeval", "scores", "data.tsv", "--human", "da", "-m", judge, "--level", "global", "-f", "json")
    assert found.code == 0, found.err
    assert '"value": 1.0' in found.out or "0.99" in found.out


# --- every analysis takes a judge, and a missing answer is a missing value

REFUSED = 7  # the segment whose answer cannot be used
COUNT = 30


@pytest.fixture
def answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Rated texts with marked errors in data.jsonl, and answers about them that were made elsewhere."""
    monkeypatch.chdir(tmp_path)
    rows, answers = [], []
    for k in range(COUNT):
        words = ["good", "morning", "number", f"w{k}", "bad" if k % 3 == 0 else "fine"]
        text = " ".join(words)
        start = text.index(words[4])
        marked = [{"start": start, "end": len(text), "severity": "major"}] if k % 3 == 0 else []
        texts = {"hypothesis": text, "source": f"guten Morgen Nummer {k}"}
        rows.append(
            {"id": str(k), "system": "a", **texts, "references": [f"hello no {k}"], "da": k % 7, "errors": marked}
        )
        quote = words[4] if k % 3 == 0 else words[k % 2]
        errors = [{"quote": quote, "severity": "major", "category": "style", "reason": "odd"}] if k % 4 else []
        answer = "I cannot rate this." if k == REFUSED else {"errors": errors, "score": 10 * (k % 7) + k % 5}
        answers.append({**texts, "answer": answer})
    for name, lines in (("data.jsonl", rows), ("answers.jsonl", answers)):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in lines), encoding="utf-8")
    return "judge(recorded='answers.jsonl')"


def test_boost_takes_a_judge(run: Run, answered: str) -> None:
    found = run("boost", "data.jsonl", "-m", answered, "-e", "intrinsic", "-p", "1", "--segments", "-f", "jsonl")
    assert found.code == 0, found.err
    rows = [json.loads(line) for line in found.out.splitlines()[1:]]
    assert {row["id"]: row["reason"] for row in rows if row["score"] is None} == {str(REFUSED): "refused"}
    assert rows[1]["parts"]["original"] == 11
    systems = run("boost", "data.jsonl", "-m", answered, "-e", "intrinsic", "-f", "json")
    assert json.loads(systems.out)["records"][0]["segments"] == COUNT - 1
    assert f"1 of {COUNT} segments have no score: 1 refused" in systems.err


def test_calibrate_takes_a_judge(run: Run, answered: str) -> None:
    found = run(
        "calibrate",
        "data.jsonl",
        "--human",
        "da",
        "-m",
        answered,
        "-e",
        "intrinsic",
        "--grid",
        "coarse",
        "-o",
        "c.json",
    )
    assert found.code == 0, found.err
    saved = json.loads(Path("c.json").read_text("utf-8"))
    assert [one["n"] for one in saved["settings"]] == [COUNT - 1]
    assert f"1 of {COUNT} segments have no score and were left out" in saved["notes"]
    assert all(one["after"] is not None and one["n"] == COUNT - 1 for one in saved["outcomes"])
    boosted = run("boost", "data.jsonl", "--calibration", "c.json", "--allow-overlap")
    assert boosted.code == 0, boosted.err


def test_metaeval_words_takes_a_judge(run: Run, answered: str) -> None:
    found = run("metaeval", "words", "data.jsonl", "-m", answered, "-e", "intrinsic", "--human", "da", "-f", "json")
    assert found.code == 0, found.err
    target = json.loads(found.out)["sides"]["target"]
    assert (target["n"], target["missing"]) == (COUNT, 1)
    assert target["n_eval"] == sum(k % 3 == 0 for k in range(COUNT))
    assert target["auc"] > 0.8
    assert f"1 of {COUNT} sentences have no word scores: left out" in found.err


def test_metaeval_spans_takes_a_judge(run: Run, answered: str) -> None:
    found = run("metaeval", "spans", "data.jsonl", "-m", answered, "-f", "json")
    assert found.code == 0, found.err
    document = json.loads(found.out)
    side = document["sides"]["hypothesis"]
    assert (document["missing"], side["n"], side["gold"]) == (1, COUNT - 1, 10)
    quoted = [k for k in range(COUNT) if k % 4 and k != REFUSED]
    hits = sum(k % 3 == 0 for k in quoted)
    assert side["predicted"] == len(quoted)
    assert side["exact"] == pytest.approx(
        {"precision": hits / len(quoted), "recall": hits / 10, "f1": 2 * hits / (len(quoted) + 10)}
    )
    wrong = run("metaeval", "spans", "data.jsonl", "-m", "chrf")
    assert "chrf marks no error spans" in wrong.err


def test_metaeval_scores_takes_a_judge(run: Run, answered: str) -> None:
    found = run("metaeval", "scores", "data.jsonl", "--human", "da", "-m", answered, "--level", "global", "-f", "json")
    assert found.code == 0, found.err
    judged = json.loads(found.out)["metrics"][0]
    assert (judged["n"], judged["n_used"], judged["dropped"]) == (COUNT, COUNT - 1, 1)


def test_decompose_takes_a_judge(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, words in (("src", "Satz"), ("a", "Text"), ("ref", "Phrase")):
        (tmp_path / f"{name}.txt").write_text("".join(f"{words} {k} und\n" for k in range(12)), encoding="utf-8")
    texts = ["-s", "src.txt", "-t", "a.txt", "-r", "ref.txt", "--features", "number", "--segments", "-f", "jsonl"]

    def script(request: dict[str, Any], times: int) -> Turn:
        text = request["messages"][-1]["content"]
        return Turn("no") if "Satz 5 " in text else by_length(request, times)

    with serving(script) as endpoint:
        judge = f"judge(model='m', url='{endpoint.url}', against='both', protocol='score')"
        live = run("decompose", *texts, "-m", judge, "--record", "answers.jsonl")
        assert live.code == 0, live.err
    replayed = run("decompose", *texts, "-m", "judge(recorded='answers.jsonl')")
    assert replayed.code == 0, replayed.err
    rows, again = ([json.loads(line) for line in one.out.splitlines()[1:]] for one in (live, replayed))
    numbers = ("sigma", "oracle", "anti")
    assert [[row.get(name) for name in numbers] for row in rows] == [
        [row.get(name) for name in numbers] for row in again
    ]


def test_submissions_need_a_score_for_every_segment(run: Run, answered: str) -> None:
    found = run("submit", "wmt-metrics", "data.jsonl", "-m", answered, "-l", "de-en", "-o", "out")
    assert found.code == 3
    assert f"gave none for 1 of {COUNT}" in found.err


def test_compare_asks_a_pairwise_judge_about_every_two_systems(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src.txt").write_text("".join(f"Satz {k}\n" for k in range(10)), encoding="utf-8")
    for name in ("good", "poor"):
        (tmp_path / f"{name}.txt").write_text(
            "".join("same\n" if k == 0 else f"{name} {k}\n" for k in range(10)), encoding="utf-8"
        )

    def script(request: dict[str, Any], _times: int) -> Turn:
        text = request["messages"][-1]["content"]
        if "Satz 1\n" in text and text.index("good") < text.index("poor"):
            return Turn("no idea")  # one of two orders: this comparison has no verdict
        first = "A" if text.index("good") < text.index("poor") or "Satz 2\n" in text else "B"
        return Turn(json.dumps({"better": "tie" if "Satz 3\n" in text else first, "reason": ""}))

    texts = ["-s", "src.txt", "-t", "good.txt", "poor.txt"]
    with serving(script) as endpoint:
        judge = f"judge(model='m', url='{endpoint.url}', protocol='pairwise')"
        planned = run("compare", *texts, "-m", judge, "--dry-run")
        assert "9 texts, 9 distinct, 0 already stored" in planned.out
        assert "18 calls" in planned.out
        assert not endpoint.requests
        found = run("compare", *texts, "-m", judge, "-f", "json")
        assert found.code == 0, found.err
        assert len(endpoint.requests) == 18
    document = json.loads(found.out)
    # 6 won, 3 even (equal texts, one that the order decided, one tie), 1 without a verdict.
    scores = {row["system"]: (row["score"], row["n"]) for row in document["systems"]}
    assert scores == {"good": (pytest.approx(750 / 9), 9), "poor": (pytest.approx(150 / 9), 9)}
    assert (document["records"][0]["first"], document["records"][0]["better"]) == ("good", "good")
    assert "rivals:systems" in next(iter(document["signatures"].values()))
    assert any("position bias: 12.5% of 8 preferences change with the order" in note for note in document["notes"])


def test_metaeval_words_reads_the_explanations_of_a_judge(run: Run, answered: str) -> None:
    explained = run("explain", "data.jsonl", "-m", answered, "-e", "intrinsic", "-o", "e.jsonl")
    assert explained.code == 0, explained.err
    given = ["metaeval", "words", "data.jsonl", "--submission", "e.jsonl", "--human", "da", "-f", "json"]
    refused = run(*given)
    assert refused.code == 3
    assert "without an explanation: 7 (--on-mismatch skip leaves them out)" in refused.err
    found = run(*given, "--on-mismatch", "skip")
    assert found.code == 0, found.err
    asked = run("metaeval", "words", "data.jsonl", "-m", answered, "-e", "intrinsic", "--human", "da", "-f", "json")
    one, other = (json.loads(each.out) for each in (found, asked))
    assert one["sides"]["target"] == other["sides"]["target"]
    assert one["sentence"] == other["sentence"]
    assert run("evaluate", "data.jsonl", "-m", answered, "--quick", "-o", "run").code == 0
    given[4] = "run/explanations.jsonl.gz"
    kept = json.loads(run(*given, "--on-mismatch", "skip").out)
    assert kept["sides"]["target"] == other["sides"]["target"]


def test_evaluate_keeps_to_the_budget_of_calls(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path)
    texts = ["-s", "src.txt", "-t", "a.txt", "-r", "b.txt", "-l", "de-en", "-o", "run", "--quick", "--overwrite"]
    with serving(script) as endpoint:
        judge = f"judge(model='m', url='{endpoint.url}', repeats=5)"
        command = ["evaluate", *texts, "-m", "chrf", judge]
        refused = run(*command, "--budget-calls", "39")
        assert refused.code == 1
        assert "40 calls are needed and --budget-calls leaves 39" in refused.err
        assert not endpoint.requests
        done = run(*command, "--budget-calls", "40")
        assert done.code == 0, done.err
        assert len(endpoint.requests) == 40
        again = run(*command, "--budget-calls", "1")
        assert (again.code, len(endpoint.requests)) == (0, 40)
    problems = json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))["problems"]
    told = " ".join(one["message"] for one in problems)
    assert "5 of 40 answers cannot be used (12.5%): 5 refused" in told
    assert "repeats of 7 segments: standard deviation 0.00" in told
    assert "12.5%" in (tmp_path / "run" / "report.html").read_text("utf-8")


def refuses_probes(request: dict[str, Any], _times: int) -> Turn:
    """Answer about whole texts and most probes: a score by length, and none for sentence 3 without its first word."""
    text = hypothesis_of(request)
    refused = "number 3" in text and not text.startswith("sentence")
    return Turn("I cannot rate this.") if refused else Turn(json.dumps({"errors": [], "score": min(100, len(text))}))


@pytest.fixture
def probed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Six short texts in a.txt, and a judge that scores all of them, but not every probe of the fourth."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, 6)
    with serving(refuses_probes) as endpoint:
        yield f"judge(model='m', url='{endpoint.url}', protocol='score')"


TEXTS = ("-s", "src.txt", "-t", "a.txt", "-l", "de-en")


def test_python_explains_all_segments_but_those_without_an_answer(answered: str) -> None:
    data = ws.read("data.jsonl")
    found = ws.explain(data, answered, "intrinsic", sides=["hypothesis"])
    assert [one.index for one in found] == [k for k in range(COUNT) if k != REFUSED]
    assert list(found.failures) == [REFUSED]
    assert "refused" in found.failures[REFUSED]
    assert f"1 of {COUNT} segments could not be explained" in repr(found)
    with pytest.raises(Unexplained, match="1 of 1 segments"):
        ws.explain(data.segments[REFUSED : REFUSED + 1], answered, "intrinsic")


def test_explain_leaves_out_segments_with_a_failing_probe(run: Run, probed: str) -> None:
    found = run("explain", *TEXTS, "-m", probed, "-e", "erasure", "--side", "hypothesis", "-f", "jsonl")
    assert found.code == 0, found.err
    assert [json.loads(line)["id"] for line in found.out.splitlines()[1:]] == ["0", "1", "2", "4", "5"]
    assert "1 of 6 segments could not be explained; the first is segment 3: " in found.err
    assert "gave no score (refused" in found.err


def test_faithfulness_and_stability_leave_out_segments_without_an_answer(run: Run, probed: str) -> None:
    options = ["--side", "hypothesis", "--orders", "2", "--seeds", "2", "-f", "json"]
    found = run("metaeval", "faithfulness", *TEXTS, "-m", probed, "-e", "erasure", "random", *options)
    assert found.code == 0, found.err
    erasure, random = json.loads(found.out)["records"]
    assert [(one["n"], one["failed"]) for one in (erasure, random)] == [(5, 1), (5, 1)]
    assert [one["stability"]["n"] for one in (erasure, random)] == [5, 6]  # random asks about whole texts only
    assert "erasure: 1 of 6 segments could not be explained; the first is segment 3" in found.err
    assert erasure["measures"]["deletion"]["gain"]["value"] is not None


def test_faithfulness_takes_recorded_answers(answered: str) -> None:
    data = ws.read("data.jsonl")
    stable = stability(data, answered, "intrinsic", seeds=2)
    assert (stable.n, list(stable.failures)) == (COUNT - 1, [REFUSED])
    assert stable.importances[REFUSED].shape == (2, 0)
    assert stable.importances[REFUSED + 1].shape == (2, 5)


def test_the_additive_view_leaves_out_segments_without_an_answer(run: Run, probed: str) -> None:
    judge = f"{probed[:-1]}, against='both')"
    command = ["decompose", *TEXTS, "--features", "number", "-r", "b.txt", "-m", judge, "-e", "erasure"]
    shown = run(*command)
    assert shown.code == 0, shown.err
    assert "1 of 6 segments could not be explained; the first is segment 3" in shown.err
    document = run(*command, "-f", "json")
    assert "1 of 6 segments could not be explained; the first is segment 3" in document.err
    found = json.loads(document.out)
    assert found["records"][0]["additive"] == pytest.approx(0.02)  # " 0" has two characters of 100


def test_wmt26_leaves_out_predictions_without_an_answer(run: Run, probed: str, tmp_path: Path) -> None:
    texts = [(tmp_path / f"{name}.txt").read_text("utf-8").splitlines() for name in ("src", "a")]
    items = [
        {"item_id": f"de_###_en_###_news_###_d_###_{k}", "src": own, "ref": None, "hyps": {"a": text}}
        for k, (own, text) in enumerate(zip(*texts, strict=True))
    ]
    (tmp_path / "de-en.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
    command = ["submit", "wmt26", "de-en.jsonl", "--error-free", "20", "-o", "out.jsonl", "-m"]
    found = run(*command, probed, "-e", "erasure")
    assert found.code == 0, found.err
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    assert [k for k, one in enumerate(written) if "a" not in one.get("task1_pred", {})] == [3]
    assert [k for k, one in enumerate(written) if "a" not in one.get("task3_pred", {})] == [3]
    assert all("a" in one["task2_pred"] for one in written)
    assert "1 of 6 segments lack a prediction; the first: " in found.err


def test_metaeval_words_reads_a_run_of_several_systems(run: Run, answered: str, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (tmp_path / "data.jsonl").read_text("utf-8").splitlines()]
    for k, row in enumerate(rows):  # two systems with the same ids, in another order than the systems
        row |= {"system": "ab"[k % 2], "id": str(100 + k // 2)}
    (tmp_path / "two.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    evaluated = run("evaluate", "two.jsonl", "-m", answered, "--quick", "-o", "run")
    assert evaluated.code == 0, evaluated.err
    given = ["metaeval", "words", "two.jsonl", "--human", "da", "-f", "json"]
    stored = [*given, "--submission", "run/explanations.jsonl.gz"]
    refused = run(*stored)
    assert refused.code == 3
    assert "not in the gold" not in refused.err
    assert "without an explanation: b/103 (--on-mismatch skip leaves them out)" in refused.err
    found = run(*stored, "--on-mismatch", "skip")
    assert found.code == 0, found.err
    asked = run(*given, "-m", answered, "-e", "intrinsic")
    assert asked.code == 0, asked.err
    one, other = (json.loads(each.out) for each in (found, asked))
    assert one["sides"]["target"] == other["sides"]["target"]
    assert (one["sides"]["target"]["n"], one["sides"]["target"]["missing"]) == (COUNT, 1)
    assert one["sentence"] == other["sentence"]


def test_select_and_submit_say_how_many_calls_they_would_make(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, 6)
    item = {"item_id": "de_###_en_###_news_###_d_###_0", "src": "Satz", "hyps": {"a": "one two three", "b": "four"}}
    (tmp_path / "de-en.jsonl").write_text(json.dumps(item) + "\n", encoding="utf-8")
    texts = ["-s", "src.txt", "-t", "a.txt", "b.txt", "-l", "de-en", "--dry-run"]
    with serving(by_length) as endpoint:
        judge = f"judge(model='m', url='{endpoint.url}', protocol='score')"
        selected = run("select", *texts, "-n", "2", "--method", "variance", "-m", judge)
        unused = run("select", *texts, "-n", "2", "--method", "diversity", "-m", judge)
        assert unused.out.endswith("metrics to score: none\n")
        scored = run("submit", "wmt-metrics", *texts, "-m", judge, "-o", "out")
        wmt26 = ["submit", "wmt26", "de-en.jsonl", "-m", judge, "-o", "out.jsonl"]
        predicted = run(*wmt26, "--dry-run")
        explained = run(*wmt26, "-e", "erasure", "--dry-run")
        assert not endpoint.requests
        assert not list(tmp_path.glob("out*"))
        assert run(*wmt26, "-e", "erasure").code == 0
        assert len(endpoint.requests) == 6  # two texts, three and one without a word
    for found, calls in ((selected, 12), (scored, 12), (predicted, 2), (explained, 6)):
        assert found.code == 0, found.err
        assert f"{calls} texts, {calls} distinct, 0 already stored" in found.out
        assert f"{calls} calls, about" in found.out
        assert "tokens sent" in found.out
