"""What a newcomer types wrong: every answer is one line with the cure, and nothing is left out in silence."""

import argparse
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.cli import Done, Run
from whyscore.cli.main import VERBS, parser_of

FILES = ("-r", "ref.txt", "-t", "sysA.txt", "sysB.txt")
TASKS = ("eval4nlp", "eval4nlp2021", "wmt22", "wmt-metrics", "wmt26")
SCORE = ("score", *FILES, "-m", "token_f1", "--store", "none")


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    """Small files in the working folder."""
    (tmp_path / "ref.txt").write_text("the cat sat on the mat\nI have a dog\n", "utf-8")
    (tmp_path / "sysA.txt").write_text("the cat sat on a mat\nI have a cat\n", "utf-8")
    (tmp_path / "sysB.txt").write_text("a cat is sitting there\nI have a dog\n", "utf-8")
    rows = "system\tmt\tref\tda\nA\tI have a cat\tI have a dog\t1\nB\tI have a dog\tI have a dog\t2\n"
    (tmp_path / "data.tsv").write_text(rows, "utf-8")


def complaint(done: Done) -> str:
    """Return the one line that says what is wrong."""
    lines = [line for line in done.err.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1, done.err
    return lines[0].removeprefix("whyscore: error: ")


@pytest.mark.parametrize("verb", VERBS)
def test_help_opens_with_one_line_of_usage_and_then_examples(run: Run, verb: str) -> None:
    lines = run(verb, "-h").out.splitlines()
    assert lines[0].startswith(f"Usage: whyscore {verb}")
    assert lines[1] == ""
    assert "examples:" in lines[2:5]


def test_every_command_stands_apart_from_what_it_does(run: Run) -> None:
    lines = run("--help").out.splitlines()
    for verb, about in VERBS.items():
        assert any(line.split(maxsplit=1) == [verb, about] for line in lines), verb


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (("--segment",), "no option named '--segment'. Did you mean '--segments'? All options: whyscore score -h"),
        (("--zzz=1",), "no option named '--zzz'. All options: whyscore score -h"),
        (("--seed", "x"), "argument --seed: expected a whole number, 0 or more, got 'x'. All"),
        (("--seed", "-1"), "argument --seed: expected a whole number, 0 or more, got '-1'. All"),
        (("--jobs", "-2"), "argument --jobs: expected a whole number, 0 or more, got '-2'. All"),
        (("-w", "-4"), "argument -w/--width: expected a whole number, 0 or more, got '-4'. All"),
        (("--max-line", "0"), "argument --max-line: expected a whole number, 1 or more, got '0'. All"),
        (("--draws", "x"), "argument --draws: expected a whole number, 0 or more, got 'x'. All"),
        (("-f", "xml"), "argument -f/--format: invalid choice: 'xml' (choose from "),
        (("-o",), "argument -o/--output: expected one argument. All"),
        (
            ("-o", "out.xlsx"),
            "out.xlsx: '.xlsx' is not a format of this command: use .txt, .json, .jsonl, .tsv, .csv, .md, ",
        ),
        (("-o", "no/out.json"), "no/out.json: there is no folder no: create it first, or choose another location"),
        (("-o", "."), ".: is a folder: name a file in it with -o"),
    ],
)
def test_wrong_usage_is_one_line_without_the_wall_of_options(run: Run, more: tuple[str, ...], expected: str) -> None:
    done = run(*SCORE, *more)
    assert done.code == 2
    assert complaint(done).startswith(expected)
    assert done.out == ""


def test_wrong_usage_of_inner_commands_is_one_line_too(run: Run) -> None:
    done = run("metaeval", "scores", "data.tsv", "--humann", "da")
    assert (done.code, complaint(done).partition("?")[0]) == (2, "no option named '--humann'. Did you mean '--human'")
    assert complaint(run("explain", *FILES, "-m", "token_f1", "--limit", "0")).startswith(
        "argument --limit: expected a whole number, 1 or more, got '0'"
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("store",), "the following arguments are required: size|prune|check|repair. All options: whyscore store -h"),
        (
            ("submit",),
            f"the following arguments are required: {'|'.join(TASKS)}. All options: whyscore submit -h",
        ),
        (("report",), "no run folder: name one written by whyscore evaluate"),
    ],
)
def test_what_is_missing_is_named_and_nothing_else(run: Run, arguments: tuple[str, ...], expected: str) -> None:
    done = run(*arguments)
    assert (done.code, complaint(done)) == (2, expected)


@pytest.mark.parametrize("port", ["-1", "65536"])
def test_a_port_that_cannot_be_is_refused(run: Run, port: str) -> None:
    pytest.importorskip("uvicorn")
    done = run("serve", "--port", port)
    assert done.code == 2
    assert port in complaint(done)


def test_runs_with_different_metrics_can_be_set_against_each_other(run: Run) -> None:
    for folder, metrics in (("old", ["token_f1"]), ("new", ["token_f1", "chrf"])):
        asked = ("evaluate", *FILES, "-m", *metrics, "--budget", "0", "--store", "none", "-q", "-o", folder)
        assert run(*asked).code == 0
    for pair in (("old", "new"), ("new", "old")):
        done = run("report", *pair, "-o", "diff.md")
        assert done.code == 0, done.err
        assert "token\\_f1" in Path("diff.md").read_text("utf-8")


def test_a_format_that_the_command_does_not_write_is_refused_by_its_suffix(run: Run) -> None:
    done = run("list", "metrics", "-o", "why.doc")
    assert (done.code, complaint(done)) == (
        2,
        (
            "why.doc: '.doc' is not a format of this command: "
            "use .txt, .json, .jsonl, .tsv, .csv, .md, .tex, or add -f text"
        ),
    )
    assert not Path("why.doc").exists()


def test_any_name_will_do_where_the_format_is_said(run: Run) -> None:
    assert run(*SCORE, "-f", "json", "-o", "scores.out").code == 0
    assert json.loads(Path("scores.out").read_text("utf-8"))["kind"] == "totals"


@pytest.mark.parametrize("verb", [("list", "metrics"), ("doctor",), ("store", "size")])
def test_the_suffix_says_the_format_of_lists_too(run: Run, verb: tuple[str, ...]) -> None:
    assert run(*verb, "-o", "found.json").code == 0
    assert isinstance(json.loads(Path("found.json").read_text("utf-8")), dict)


def test_a_folder_that_may_not_be_written_in_is_named_before_any_work(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("locked").mkdir()
    monkeypatch.setattr("whyscore.cli.output.os.access", lambda *_: False)  # root, who may run this, may write anywhere
    done = run(*SCORE, "-o", "locked/out.json")
    place = Path("locked").absolute()
    expected = f"locked/out.json: no permission to write in {place}: choose another location with -o"
    assert (done.code, complaint(done)) == (2, expected)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ("data.tsv", "-r", "ref.txt"),
            "data.tsv contains its own texts and cannot be combined with -r: leave out one or the other",
        ),
        (("data.tsv", "-s", "ref.txt"), "data.tsv contains its own texts and cannot be combined with -s"),
        (("data.tsv", "--text"), "data.tsv contains its own texts and cannot be combined with --text"),
        (("--sample", "data.tsv"), "--sample contains its own texts and cannot be combined with data.tsv"),
        (
            ("--sample", "-t", "sysA.txt", "-r", "ref.txt"),
            "--sample contains its own texts and cannot be combined with -t and -r",
        ),
        (("data.tsv", "-t", "sysA.txt"), "got a data file and -t: give one, with all texts."),
        (
            ("ref.txt", "sysA.txt"),
            "got 2 data files: give one, with all texts. For files with one text per line use -r ref.txt -t sysA.txt",
        ),
        (
            ("-r", "ref.txt", "sysA.txt"),
            (
                "no input: give hypotheses with -t (and -r, -s), a data file, or --sample. "
                "sysA.txt was read as a value of -r"
            ),
        ),
    ],
)
def test_input_that_would_be_left_out_is_refused(run: Run, arguments: tuple[str, ...], expected: str) -> None:
    done = run("score", *arguments, "-m", "token_f1")
    assert done.code == 2
    assert complaint(done).startswith(expected)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("-t", "sysa.txt"), "sysa.txt: cannot be read: No such file or directory. Did you mean 'sysA.txt'?"),
        (("-t", "."), ".: cannot be read: Is a directory: give a file in it"),
        (
            ("-t", "I have a cat"),
            (
                "I have a cat: cannot be read: No such file or directory. "
                "To give the text itself instead of a file, add --text"
            ),
        ),
        (("-t", "qqqq"), "qqqq: cannot be read: No such file or directory: check the path"),
        (("-t", "no/x"), "no/x: cannot be read: No such file or directory: there is no folder no either"),
    ],
)
def test_a_file_that_is_not_there_comes_with_a_cure(run: Run, arguments: tuple[str, ...], expected: str) -> None:
    done = run("score", "-r", "ref.txt", "-m", "token_f1", *arguments)
    assert (done.code, complaint(done)) == (3, expected)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("BLEUE", "no metric named 'BLEUE'. Did you mean 'bleu'? Known: "),
        ("bleu,chrf", "cannot read the spec 'bleu,chrf': separate several specs with spaces, not commas: bleu chrf"),
        ("mine.py", "cannot read the spec 'mine.py': name a function of the file, for example mine.py:score"),
    ],
)
def test_a_spec_that_cannot_be_read_is_answered_with_one_that_can(run: Run, spec: str, expected: str) -> None:
    done = run("score", *FILES, "-m", spec)
    assert done.code == 2
    assert complaint(done).startswith(expected)


def test_what_other_tools_call_things_is_what_it_stands_for(run: Run) -> None:
    done = run("score", *FILES, "-m", "rouge(kind=L)", "rouge(kind=1)", "bleu", "chrf(word_order=2)", "-b")
    assert (done.code, len(done.out.splitlines())) == (0, 8)
    assert run("score", *FILES, "-m", "rougeL", "rouge-1", "BLEU", "chrF++", "-b").out == done.out


def test_a_column_that_is_neither_there_nor_a_metric_is_answered_with_the_columns(run: Run) -> None:
    done = run("metaeval", "scores", "data.tsv", "--human", "da", "--metric", "d-a")
    assert done.code == 2
    assert complaint(done).startswith("no column and no metric named 'd-a'. Did you mean 'da'? Known: ")


def test_a_metric_named_twice_is_scored_and_shown_once(run: Run) -> None:
    assert run(*SCORE, "-m", "token_f1").out == run(*SCORE).out
    twice = run("explain", *FILES, "-m", "token_f1", "token_f1", "-e", "erasure", "erasure", "-f", "jsonl")
    assert len(twice.out.splitlines()) == 1 + 2 * 2 * 2


def test_a_plan_names_every_metric(run: Run) -> None:
    done = run("compare", *FILES, "-m", "token_f1", "chrf", "--dry-run")
    assert [line.partition(":")[0] for line in done.out.splitlines()] == ["token_f1", "chrf"]
    assert all(line.endswith(" already stored") for line in done.out.splitlines())
    assert len(run("explain", *FILES, "-m", "token_f1", "chrf", "--dry-run").out.splitlines()) == 2


def test_boosted_systems_come_as_records_with_a_header(run: Run) -> None:
    done = run("boost", *FILES, "-m", "token_f1", "-f", "jsonl", "--store", "none")
    header, *records = map(json.loads, done.out.splitlines())
    assert (header["schema"], header["kind"]) == ("whyscore/1", "totals")
    assert [record["system"] for record in records] == ["sysA", "sysB"]
    document = json.loads(run("boost", *FILES, "-m", "token_f1", "-f", "json", "--store", "none").out)
    assert document["records"] == records


def test_the_data_that_ship_are_listed_with_their_card(run: Run) -> None:
    done = run("list", "datasets")
    assert done.out.split()[0] == "datasets"
    assert "sample" in done.out
    assert "100 segments, zh to en, 5 systems, human scores: mqm (--sample)" in done.out
    assert "datasets" in json.loads(run("list", "-f", "json").out)


class TestVariables:
    def test_the_command_line_goes_before_a_variable(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WHYSCORE_METRICS", "chrf bleu")
        assert run("score", *FILES, "-f", "tsv", "--draws", "0").out.count("chrf") == 2
        assert "chrf" not in run(*SCORE, "-f", "tsv").out
        assert run(*SCORE, "-f", "tsv").out.count("token_f1") == 2

    def test_blanks_part_the_values_and_quotes_keep_them(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WHYSCORE_METRICS", "'chrf(word_order = 2)' token_f1")
        assert run("score", *FILES, "-f", "tsv", "--draws", "0").code == 0

    def test_switches_have_variables_too(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WHYSCORE_QUIET", "1")
        assert run(*SCORE).err == ""
        monkeypatch.setenv("WHYSCORE_QUIET", "0")
        assert "signature:" in run(*SCORE).err

    @pytest.mark.parametrize(
        ("name", "value", "expected"),
        [
            ("SEED", "x", "the variable WHYSCORE_SEED: expected a whole number, 0 or more, got 'x'"),
            ("DRAWS", "x", "the variable WHYSCORE_DRAWS: expected a whole number, 0 or more, got 'x'"),
            ("FORMAT", "xml", "the variable WHYSCORE_FORMAT is 'xml': choose from text, json, jsonl, tsv, csv, "),
            ("QUIET", "maybe", "the variable WHYSCORE_QUIET is 'maybe': set it to 1 or 0"),
            ("SYSTEMS", "'a", 'the variable WHYSCORE_SYSTEMS is "\'a": No closing quotation. Close the quotes'),
        ],
    )
    def test_a_wrong_value_names_its_variable(
        self, run: Run, monkeypatch: pytest.MonkeyPatch, name: str, value: str, expected: str
    ) -> None:
        monkeypatch.setenv(f"WHYSCORE_{name}", value)
        done = run(*SCORE)
        assert done.code == 2
        assert complaint(done).startswith(expected)

    def test_they_hold_for_experiments_too(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WHYSCORE_SEED", "x")
        assert "WHYSCORE_SEED" in complaint(run("experiment", "hybrid", *FILES, "-m", "bleu"))


class TestGates:
    def test_the_first_system_is_the_one_to_reach(self, run: Run) -> None:
        lines = [f"the cat number {k} sat on the mat" for k in range(20)]
        Path("ref.txt").write_text("\n".join(lines) + "\n", "utf-8")
        Path("prod.txt").write_text("\n".join(lines) + "\n", "utf-8")
        Path("new.txt").write_text("\n".join(line.replace("cat", "dog") for line in lines) + "\n", "utf-8")
        asked = ("compare", "-r", "ref.txt", "-m", "token_f1", "ter", "-q", "--store", "none", "--fail-if-worse")
        done = run(*asked, "-t", "prod.txt", "new.txt")
        assert done.code == 5
        told = complaint(done)
        assert told.startswith("quality gate not passed: new is significantly worse than prod on token_f1 (")
        assert "new is significantly worse than prod on ter (" in told
        assert "new" in done.out  # the table is there all the same
        assert run(*asked, "-t", "new.txt", "prod.txt").code == 0
        assert run(*asked, "prod", "-t", "new.txt", "prod.txt").code == 5

    def test_a_gate_on_too_few_segments_says_so(self, run: Run) -> None:
        for name, line in {"ref.txt": "a b c", "prod.txt": "a b c", "new.txt": "x y z"}.items():
            Path(name).write_text(f"{line}\n" * 5, "utf-8")
        asked = (
            "compare",
            "-r",
            "ref.txt",
            "-t",
            "prod.txt",
            "new.txt",
            "-m",
            "token_f1",
            "--gate-summary",
            "gates.md",
        )
        assert run(*asked, "--fail-if-worse").code == 0
        assert "| 5 segments are too few: the smallest possible p is 0.0625 |" in Path("gates.md").read_text("utf-8")
        done = run(*asked, "--fail-if-worse", "--test", "bootstrap")
        assert done.code == 5
        assert "too few" not in done.err
        assert run(*asked, "--fail-if-worse", "--alpha", "0.1").code == 5

    def test_every_system_must_reach_the_number(self, run: Run) -> None:
        asked = ("compare", *FILES, "-m", "token_f1", "-q", "--store", "none", "--fail-under")
        assert run(*asked, "token_f1=0.1").code == 0
        done = run(*asked, "token_f1=0.99")
        assert done.code == 5
        assert complaint(done).startswith("quality gate not passed: token_f1 of sysA is 0.")
        assert "; token_f1 of sysB is 0." in complaint(done)

    @pytest.mark.parametrize(
        ("gate", "expected"),
        [
            (("--fail-under", "bleu=3"), "--fail-under: no metric 'bleu'. Metrics: token_f1"),
            (("--fail-if-worse", "x"), "--fail-if-worse: no system 'x'. Systems: sysA, sysB"),
        ],
    )
    def test_gates_on_what_is_not_there_are_refused(self, run: Run, gate: tuple[str, ...], expected: str) -> None:
        done = run("compare", *FILES, "-m", "token_f1", *gate)
        assert (done.code, complaint(done)) == (2, expected)


def program(folder: Path, *arguments: str) -> list[str]:
    for name, text in (("ref.txt", "a b\n" * 200), ("sysA.txt", "a c\n" * 200)):
        (folder / name).write_text(text, "utf-8")
    return [sys.executable, "-m", "whyscore", *arguments]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            program(tmp_path, "list", "metrics"),
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    told = "whyscore: error: the output: No space left on device. Free some space, or choose another location\n"
    assert (done.returncode, done.stderr) == (1, told)


def test_explanations_into_a_closed_pipe_end_quietly(tmp_path: Path) -> None:
    command = program(tmp_path, "explain", "-r", "ref.txt", "-t", "sysA.txt", "-m", "token_f1", "--store", "none", "-q")
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        assert (running.wait(), running.stderr.read()) == (0, "")


def test_an_interruption_says_what_was_kept(tmp_path: Path) -> None:
    slow = (
        "def score(segments):\n    open('asked', 'w').close()\n    time.sleep(60)\n    return [0.0] * len(segments)\n"
    )
    (tmp_path / "slow.py").write_text(f"import time\n{slow}", "utf-8")
    command = program(
        tmp_path, "score", "-r", "ref.txt", "-t", "sysA.txt", "-m", "slow.py:score", "--store", "none", "-q"
    )
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Under a shell's background job interruptions would be ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    ) as running:
        until = time.monotonic() + 60
        while not (tmp_path / "asked").exists() and time.monotonic() < until:
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate()
    assert (running.returncode, err) == (130, "whyscore: interrupted; nothing was kept, as --store none was given\n")


def test_a_short_option_means_the_same_in_every_command() -> None:
    meanings: dict[str, set[str]] = {}

    def collect(parser: argparse.ArgumentParser) -> None:
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for inner in action.choices.values():
                    collect(inner)
            long = next((name for name in action.option_strings if name.startswith("--")), "")
            for name in action.option_strings:
                if not name.startswith("--"):
                    meanings.setdefault(name, set()).add(long.rstrip("s"))

    for verb in VERBS:
        collect(parser_of(verb))
    # Translations of a source, of systems or of a lexicon's texts.
    assert meanings.pop("-t") == {"--hypothese", "--target"}
    assert {name: sorted(long) for name, long in meanings.items() if len(long) > 1} == {}


def test_advice_leads_to_a_command_that_works(run: Run, tmp_path: Path) -> None:
    (tmp_path / "semi.csv").write_text("source;reference;note\nHund;a dog;a dog\nKatze;a cat;the cat\n", "utf-8")
    told = run("score", "semi.csv", "-m", "chrf")
    assert "--columns hypothesis=note" in told.err
    assert run("score", "semi.csv", "-m", "chrf", "--columns", "hypothesis=note").code == 0

    unit = "<segment><source>a</source><target>{}</target></segment>"
    units = "".join(unit.format(text) for text in ("the cat sat on a mat", "I have a cat"))
    head = '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="de" trgLang="en">'
    (tmp_path / "job.xlf").write_text(f'{head}<file id="f"><unit id="u">{units}</unit></file></xliff>', "utf-8")
    told = run("score", "-t", "job.xlf", "-r", "ref.txt", "-m", "chrf")
    assert (told.code, "give it without -t, first: job.xlf -r ref.txt" in told.err) == (2, True)
    assert run("score", "job.xlf", "-r", "ref.txt", "-m", "chrf").code == 0


def test_a_page_is_not_served_but_its_run_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{}", "utf-8")
    (tmp_path / "run" / "report.html").write_text("<p>", "utf-8")
    assert "whyscore serve run\n" in run("serve", "run/report.html").err
    (tmp_path / "mailed.html").write_text("<p>", "utf-8")
    assert "open it in a browser instead" in run("serve", "mailed.html").err


def test_a_quick_evaluation_scores_tests_and_explains_without_features(run: Run, tmp_path: Path) -> None:
    done = run("evaluate", *FILES, "-m", "token_f1", "--quick", "-o", "run", "-q")
    assert done.code == 0
    facts = json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))
    assert (facts["metrics"][0]["budget"], facts["plan"]["tagger"]) == (200, None)
    made = {file.name for file in (tmp_path / "run").iterdir()}
    assert {"totals.jsonl", "comparisons.jsonl", "explanations.jsonl.gz", "report.html"} <= made
    assert "decomposition.jsonl" not in made


@pytest.mark.parametrize("verb", ["compare", "evaluate"])
@pytest.mark.parametrize("flag", ["--junit", "--gate-summary"])
def test_a_report_on_gates_needs_a_gate(run: Run, verb: str, flag: str) -> None:
    done = run(verb, "--sample", "-m", "token_f1", "-q", flag, "gates", *(("-o", "run") if verb == "evaluate" else ()))
    assert done.code == 2
    assert f"{flag} has no gate to report on: add --fail-under METRIC=N or --fail-if-worse SYSTEM" in done.err
    assert not Path("gates").exists()
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("metrics", "explainers"),
    [
        (["xmoverscore(map='nowhere.npz', remap='umd')"], []),
        (["ensemble('chrf', \"bertscore(model='embedded', baseline='nowhere.tsv')\")"], []),
        ([], ["erasure", "evidence(lexicon='nowhere.npz')"]),
    ],
)
def test_a_file_that_a_spec_names_is_looked_for_before_anything_is_scored(
    run: Run, metrics: list[str], explainers: list[str], tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text("def score(segments):\n    raise ValueError('was asked')\n")
    command = ["explain", "-e", *explainers] if explainers else ["score"]
    done = run(*command, "--sample", "-m", f"{tmp_path}/mine.py:score", *metrics)
    assert done.code == 3
    assert "nowhere" in done.err
    assert "was asked" not in done.err
