"""The command line as its users meet it: whole outputs, exit codes, one-line errors."""

import gzip
import io
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sacrebleu.metrics import BLEU, CHRF, TER

from support.cli import Run
from whyscore.cli.main import VERBS


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    """Small files in the working folder."""
    (tmp_path / "ref.txt").write_text("the cat sat on the mat\nI have a dog\n", "utf-8")
    (tmp_path / "sysA.txt").write_text("the cat sat on a mat\nI have a cat\n", "utf-8")
    (tmp_path / "sysB.txt").write_text("a cat is sitting there\nI have a dog\n", "utf-8")
    (tmp_path / "src.txt").write_text("die Katze saß auf der Matte\nIch habe einen Hund\n", "utf-8")


FILES = ("-r", "ref.txt", "-t", "sysA.txt", "sysB.txt")


def test_scores_come_as_a_table_with_intervals_and_signatures(run: Run) -> None:
    done = run("score", *FILES, "-m", "bleu", "chrf", "ter")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0].split() == ["system", "bleu", "↑", "chrf", "↑", "ter", "↓"]
    assert lines[-2].startswith("sysA")
    assert "signature: chrf|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0" in done.err
    assert "signature: bleu|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0" in done.err


def test_numbers_are_those_of_sacrebleu(run: Run) -> None:
    done = run("score", *FILES, "-m", "bleu", "chrf", "ter", "-f", "json")
    document = json.loads(done.out)
    reference = [Path("ref.txt").read_text().splitlines()]
    expected = {
        (metric, system): kind().corpus_score(Path(f"{system}.txt").read_text().splitlines(), reference).score
        for metric, kind in (("bleu", BLEU), ("chrf", CHRF), ("ter", TER))
        for system in ("sysA", "sysB")
    }
    found = {(row["metric"], row["system"]): row["score"] for row in document["records"]}
    assert found == pytest.approx(expected, abs=1e-9)
    assert all(row["low"] <= row["score"] <= row["high"] for row in document["records"])


def test_segment_scores_are_json_lines(run: Run) -> None:
    done = run("score", *FILES, "-m", "chrf", "--segments", "-f", "jsonl", "-o", "scores.jsonl")
    assert (done.code, done.out) == (0, "")
    header, *records = map(json.loads, Path("scores.jsonl").read_text("utf-8").splitlines())
    assert (header["schema"], header["kind"]) == ("whyscore/1", "scores")
    assert [(one["id"], one["system"], one["metric"]) for one in records] == [
        ("0", "sysA", "chrf"),
        ("1", "sysA", "chrf"),
        ("0", "sysB", "chrf"),
        ("1", "sysB", "chrf"),
    ]
    assert records[3]["score"] == pytest.approx(100)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("-f", "tsv"), "system\tmetric\tscore\tlow\thigh\tn\n"),
        (("-f", "csv"), "system,metric,score,low,high,n\n"),
        (("-f", "markdown"), "| system |"),
        (("-f", "latex"), "\\begin{tabular}"),
        (("--segments", "-f", "tsv"), "id\tsystem\ttoken_f1\n"),
        (("--segments", "-f", "text"), "id"),
    ],
)
def test_every_format_can_be_had(run: Run, options: tuple[str, ...], expected: str) -> None:
    done = run("score", *FILES, "-m", "token_f1", *options)
    assert done.code == 0
    assert expected in done.out


def test_the_numbers_alone(run: Run) -> None:
    assert run("score", *FILES, "-m", "token_f1", "-b", "-w", "3").out == "0.792\n0.591\n"


def test_the_suffix_of_the_file_decides_the_format(run: Run) -> None:
    run("score", *FILES, "-m", "token_f1", "-o", "table.md")
    assert Path("table.md").read_text("utf-8").startswith("| system |")


def test_a_dry_run_counts_and_scores_nothing(run: Run) -> None:
    assert run("score", *FILES, "-m", "chrf", "--dry-run").out == "chrf: 4 texts, 4 distinct, 0 already stored\n"
    run("score", *FILES, "-m", "chrf")
    assert run("score", *FILES, "-m", "chrf", "--dry-run").out == "chrf: 4 texts, 4 distinct, 4 already stored\n"
    done = run("explain", *FILES, "-m", "chrf", "-e", "erasure", "--dry-run", "--side", "hypothesis")
    assert done.out == "chrf erasure: 23 texts, 22 distinct, 4 already stored\n"


def test_results_do_not_depend_on_store_or_processes(run: Run) -> None:
    outputs = {
        run("score", *FILES, "-m", "ter", "-f", "tsv", *options).out
        for options in (("--store", "none"), ("--store", "mine.sqlite"), ("--store", "mine.sqlite"), ("--jobs", "2"))
    }
    assert len(outputs) == 1


def test_a_typed_sentence_is_explained_word_by_word(run: Run) -> None:
    done = run(
        "explain", "--text", "-s", "Ich habe einen Hund", "-t", "I have a cat", "-r", "I have a dog",
        "-m", "token_f1", "-e", "erasure",
    )  # fmt: skip
    assert done.code == 0
    assert "hypothesis" in done.out
    assert "[I +0.18] [have +0.18] [a +0.18] [cat -0.11]" in done.out
    assert "source       Ich habe einen Hund" in done.out  # not read by the metric, but shown
    assert "signature: erasure|metric:token_f1|unit:word|masker:delete|seed:0" in done.err


def test_explanations_are_json_lines_that_slice_their_text(run: Run) -> None:
    done = run(
        "explain", "-r", "ref.txt", "-t", "sysA.txt", "-m", "chrf", "-e", "lime(samples=100)",
        "--side", "hypothesis", "reference", "-f", "jsonl", "-o", "explanations.jsonl",
    )  # fmt: skip
    assert done.code == 0
    header, *records = map(json.loads, Path("explanations.jsonl").read_text("utf-8").splitlines())
    assert header["kind"] == "explanations"
    assert [(one["id"], one["side"], one["reference"]) for one in records] == [
        ("0", "hypothesis", None),
        ("0", "reference", 0),
        ("1", "hypothesis", None),
        ("1", "reference", 0),
    ]
    text = "the cat sat on a mat"
    assert [text[word["start"] : word["end"]] for word in records[0]["words"]] == text.split()
    assert (records[0]["explainer"], records[0]["probes"]) == ("lime(samples=100)", 100)
    assert 0 < records[0]["fit"] <= 1


def test_a_metric_of_the_users_own_is_explained(run: Run) -> None:
    Path("my_metric.py").write_text("def score(segments):\n    return [float(len(s.hypothesis)) for s in segments]\n")
    done = run("explain", "-t", "sysA.txt", "-m", "my_metric.py:score", "-e", "shap", "-f", "json")
    assert done.code == 0
    assert [word["text"] for word in json.loads(done.out)["records"][1]["words"]] == ["I", "have", "a", "cat"]


def test_what_could_be_explained_is_written_when_something_failed(run: Run) -> None:
    Path("bad.py").write_text(
        "def score(segments):\n    return [1 / (s.hypothesis.count('a') - 1) for s in segments]\n", "utf-8"
    )
    Path("two.txt").write_text("banana split\nat a\n", "utf-8")
    done = run("explain", "-t", "two.txt", "-m", "bad.py:score", "-e", "erasure", "-f", "jsonl")
    assert done.code == 1
    assert [json.loads(line)["id"] for line in done.out.splitlines()[1:]] == ["0"]
    assert "1 of 2 segments could not be explained; the first is segment 1: " in done.err
    assert "ZeroDivisionError" in done.err


def test_colours_are_for_terminals_and_brackets_for_all_others(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)
    arguments = ("explain", "--text", "-t", "我 have a cat", "-r", "I have a dog", "-m", "token_f1", "-q")
    coloured = run(*arguments).out
    assert "\x1b[" in coloured
    assert "costs points" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    plain = run(*arguments).out
    assert "\x1b[" not in plain
    assert "[have +0.21]" in plain


def test_repeats_print_how_stable_an_explanation_is(run: Run) -> None:
    done = run("explain", *FILES, "-m", "chrf", "-e", "lime(samples=20)", "--repeat", "3", "--limit", "1")
    assert "stability 0." in done.out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("score", *FILES, "-m", "chfr"), 2, "no metric named 'chfr'. Did you mean 'chrf'? Known: "),
        (("scroe",), 2, "no command named 'scroe'. Did you mean 'score'?"),
        (("metaeval", "words", "--zzz", "5"), 2, "no option named '--zzz'. All options: whyscore metaeval words"),
        (("metaeval", "words", "--baseline"), 2, "no option named '--baseline'. Did you mean '--baselines'?"),
        (("score", *FILES), 2, "no metric: name one with -m, for example -m chrf"),
        (("score", "-m", "chrf"), 2, "no input: give hypotheses with -t (and -r, -s), a data file, or --sample"),
        (("score", "-t", "sysA.txt", "-m", "chrf"), 2, "chrf needs a reference: segment 0 has no reference."),
        (("score", *FILES, "-m", "chrf", "--draws", "-1"), 2, "argument --draws: expected a whole number, 0 or more"),
        (("score", *FILES, "-m", "chrf", "-l", "deen"), 2, "cannot read the language pair 'deen': write it like de-en"),
        (("score", "-r", "ref.txt", "-t", "none.txt", "-m", "chrf"), 3, "none.txt"),
        (("score", "-r", "short.txt", "-t", "sysA.txt", "-m", "chrf"), 3, "sysA.txt has 2 lines, short.txt has 1"),
        (("score", "-r", "empty.txt", "-t", "sysA.txt", "-m", "chrf"), 3, "empty"),
        (("score", "-r", "latin.txt", "-t", "sysA.txt", "-m", "chrf"), 3, "--encoding"),
        (("score", *FILES, "-m", "no_such.py:score"), 2, "no_such.py"),
        (("score", *FILES, "-m", "nan.py:score"), 1, "nan"),
        (("score", *FILES, "-m", "short.py:score"), 1, "short.py:score"),
        (("explain", *FILES, "-m", "chrf", "-e", "lime(sample=3)"), 2, "named 'sample'. Did you mean 'samples'?"),
        (("list", "metricks"), 2, "no kind of component named 'metricks'. Did you mean 'metrics'?"),
        (("score", *FILES, "-m", "chrf", "--store", "ref.txt"), 1, "not a whyscore store"),
        (("score", *FILES, "-m", "chrf", "-o", "no/such/folder/x.txt"), 2, "no/such/folder"),
        (("score", *FILES, "-m", "chrf", "--systems", "one"), 3, "system names"),
        (("score", "-r", "ref.txt", "-t", "sysA.txt", "sysA.txt", "-m", "chrf"), 3, "sysA"),
        (("store", "size", "--store", "none"), 2, "there is no store: --store none was given"),
    ],
)  # fmt: skip
def test_mistakes_get_one_line_and_an_exit_code(run: Run, arguments: tuple[str, ...], code: int, message: str) -> None:
    Path("short.txt").write_text("one line\n", "utf-8")
    Path("empty.txt").write_text("", "utf-8")
    Path("latin.txt").write_bytes("Gr\xfc\xdfe\nzwei\n".encode("latin-1"))
    Path("nan.py").write_text("def score(segments):\n    return [float('nan')] * len(segments)\n", "utf-8")
    Path("short.py").write_text("def score(segments):\n    return [1.0]\n", "utf-8")
    done = run(*arguments)
    assert done.code == code, done.err
    assert message in done.err
    assert "Traceback" not in done.err
    assert len([line for line in done.err.splitlines() if line.startswith("whyscore: error")]) == 1


def test_findings_are_told_and_can_be_made_errors(run: Run) -> None:
    Path("copy.txt").write_text("die Katze saß auf der Matte\nI\u00a0have a dog\n", "utf-8")
    arguments = ("-s", "src.txt", "-r", "ref.txt", "-t", "copy.txt")
    told = run("score", *arguments, "-m", "chrf")
    assert told.code == 0
    assert "note: " in told.err
    assert run("score", *arguments, "-m", "chrf", "-q").err == ""
    strict = run("validate", *arguments, "--strict")
    assert strict.code == 3


def test_validate_says_what_was_read(run: Run) -> None:
    done = run("validate", *FILES)
    assert done.code == 0
    assert "2 segments, 2 systems: sysA, sysB" in done.out


def test_compressed_files_and_stdin_are_read(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with gzip.open("ref.txt.gz", "wt", encoding="utf-8") as file:
        file.write(Path("ref.txt").read_text("utf-8"))
    packed = run("score", "-r", "ref.txt.gz", "-t", "sysA.txt", "-m", "chrf", "-b")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path("sysA.txt").read_bytes())))
    piped = run("score", "-r", "ref.txt", "-t", "-", "-m", "chrf", "-b")
    assert packed.out == piped.out == run("score", "-r", "ref.txt", "-t", "sysA.txt", "-m", "chrf", "-b").out


def test_a_table_is_read_by_its_columns(run: Run) -> None:
    Path("data.tsv").write_text(
        "system\tmt\tref\nA\tI have a cat\tI have a dog\nB\tI have a dog\tI have a dog\n", "utf-8"
    )
    assert run("score", "data.tsv", "-m", "token_f1", "-b").out == "0.75\n1.00\n"
    renamed = run("score", "data.tsv", "-m", "token_f1", "-b", "--columns", "hypothesis=ref", "references=mt")
    assert renamed.out == "0.75\n1.00\n"


def test_variables_stand_for_options(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHYSCORE_STORE", "from_variable.sqlite")
    run("score", *FILES, "-m", "chrf")
    assert Path("from_variable.sqlite").exists()


def test_the_sample_can_be_scored_at_once(run: Run) -> None:
    done = run("score", "--sample", "-m", "chrf", "-f", "tsv", "--draws", "0")
    assert done.code == 0
    assert len(done.out.splitlines()) >= 5


def test_lists_name_everything_and_say_what_is_missing(run: Run) -> None:
    done = run("list", "metrics")
    assert {"bleu", "chrf", "ter", "rouge", "callable"} <= {line.split()[0] for line in done.out.splitlines()[1:]}
    cards = json.loads(run("list", "-f", "json").out)
    chrf = next(card for card in cards["metrics"] if card["name"] == "chrf")
    assert (chrf["reads"], chrf["higher_is_better"]) == (["hypothesis", "references"], True)
    assert "char_order" in chrf["options"]
    assert "samples" in run("list", "explainers", "-v").out


def test_lists_and_doctor_open_no_connection(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr("socket.socket.connect", refused)
    monkeypatch.setattr("socket.getaddrinfo", refused)
    assert run("list", "-v").code == 0
    assert run("doctor").code == 0


def test_doctor_knows_the_installation(run: Run) -> None:
    state = json.loads(run("doctor", "-f", "json").out)
    assert state["packages"]["core"]["sacrebleu"].startswith("2.6")
    assert state["broken"] == {}
    assert "✓  core" in run("doctor").out


def test_the_store_tells_its_size_and_forgets(run: Run) -> None:
    run("score", *FILES, "-m", "chrf", "token_f1")
    assert run("store", "size").out.count("version:") == 2
    assert json.loads(run("store", "prune", "--signature", "chrf", "-f", "json").out) == {"pruned": 4}
    assert [one["segments"] for one in json.loads(run("store", "size", "-f", "json").out)["signatures"]] == [4]


@pytest.mark.parametrize("verb", VERBS)
def test_every_help_opens_with_examples(run: Run, verb: str) -> None:
    done = run(verb, "-h")
    assert done.code == 0
    assert done.out.index("examples:") < done.out.index("Options:")


def program(*arguments: str, cwd: Path, **options: object) -> "subprocess.Popen[str]":
    environment = {**os.environ, "XDG_CACHE_HOME": str(cwd / "cache")}
    return subprocess.Popen(
        [sys.executable, "-m", "whyscore", *arguments],
        cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,  # type: ignore[call-overload]
    )  # fmt: skip


def test_help_is_there_at_once(tmp_path: Path) -> None:
    def spent(*arguments: str) -> float:
        """Seconds of the processor, which a busy machine stretches least."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    bare = min(spent("-c", "pass") for _ in range(5))
    assert min(spent("-m", "whyscore", "--help") for _ in range(5)) - bare <= 0.25


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import time\ndef score(segments):\n"
        "    open('calls.txt', 'a').write(f'{len(segments)}\\n')\n    time.sleep(0.3)\n"
        "    return [float(len(s.hypothesis)) for s in segments]\n"
    )
    (tmp_path / "many.txt").write_text("".join(f"line {i}\n" for i in range(3000)))
    arguments = ("score", "-t", "many.txt", "-m", "slow.py:score", "-f", "tsv")
    # A shell that runs this suite in the background has told its children to ignore interruptions.
    running = program(*arguments, cwd=tmp_path, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    calls = tmp_path / "calls.txt"
    while not calls.exists() or len(calls.read_text().split()) < 3:
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    _, told = running.communicate()
    assert running.returncode == 130
    assert "interrupted; finished scores are in the store. Run the same command again to resume" in told
    assert "Traceback" not in told
    out, _ = program(*arguments, cwd=tmp_path).communicate()
    assert "many" in out
    # Each call scores one text a second time, to see that the function gives the same number.
    scored = [int(count) - 1 for count in calls.read_text().split()]
    assert sum(scored) <= 3000 + 512


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "many.txt").write_text("a b c\n" * 50_000)
    running = program(
        "score", "-t", "many.txt", "-m", "length", "--segments", "-f", "tsv", "--store", "none", cwd=tmp_path
    )
    assert running.stdout is not None
    running.stdout.readline()
    running.stdout.close()
    assert running.stderr is not None
    assert "Traceback" not in running.stderr.read()
    running.stderr.close()
    assert running.wait() == 0
