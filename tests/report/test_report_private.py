"""A report without texts holds every number and no word of the data, in every form."""

import json
import shutil
from pathlib import Path

import pytest

from whyscore.cli.main import main
from whyscore.report import build_report
from whyscore.runs.evaluate import EvaluateSettings, evaluate
from whyscore.runs.folder import Run, read_run
from whyscore.types import Dataset, Entry, ErrorSpan, Segment

# Words that stand nowhere in a page of ours.
WORDS = ("Quaxolith", "Verbrumpf", "zwinkelte", "Möhrenfjord", "Aktenzahl4711", "Pelzvektor", "trallernd", "Ünnkwort")


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two systems whose texts, documents, pictures, remarks and command hold secret words."""
    entries = []
    for system, shift in (("base", 1), ("mine", 0)):
        for k in range(8):
            words = [*WORDS[k:], *WORDS[:k]]
            hypothesis = " ".join([words[-1], *words[1:]] if shift else words)
            spans = (ErrorSpan(0, 5, "major", "Accuracy"),) if shift else ()
            segment = Segment(hypothesis, f"Trallernd {hypothesis}", (" ".join(words),))
            entries.append(Entry(str(k), system, segment, {"mqm": -1.0 * shift}, spans, "Pelzvektor"))
    folder = tmp_path_factory.mktemp("secret") / "run"
    run = evaluate(
        Dataset("letters", tuple(entries), ("xx", "de")),
        ["chrf", "mee(words=None)"],
        output=folder,
        settings=EvaluateSettings(draws=20),
        command=["whyscore", "evaluate", "--text", "-t", "Quaxolith"],
    )
    (folder / "figures").mkdir()
    (folder / "figures" / "words.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg"><text>Verbrumpf</text></svg>', "utf-8"
    )
    return run


@pytest.mark.parametrize("suffix", [".html", ".md", ".tex", ".json", ".txt"])
def test_no_word_of_the_data_is_in_the_file(secret: Run, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"outside{suffix}"
    assert main(["report", str(secret.folder), "--no-texts", "-q", "-o", str(path)]) == 0
    text = path.read_text("utf-8").casefold()
    assert [word for word in WORDS if word.casefold() in text] == []
    assert "mine" in text


def test_the_ordinary_page_does_hold_them(secret: Run, tmp_path: Path) -> None:
    path = tmp_path / "inside.html"
    assert main(["report", str(secret.folder), "-q", "-o", str(path)]) == 0
    text = path.read_text("utf-8")
    assert [word for word in WORDS if word not in text] == []


def test_numbers_stay(secret: Run) -> None:
    inside, outside = build_report(secret), build_report(secret, texts=False)
    assert inside.words
    for name in ("systems", "comparisons", "features", "agreement", "verdict", "headline", "words"):
        assert getattr(outside, name) == getattr(inside, name)
    assert [one.systems for one in outside.matches] == [one.systems for one in inside.matches]
    assert inside.matches
    assert outside.made.command is None
    assert outside.made.signatures == inside.made.signatures


def test_remarks_are_counted_but_not_quoted(secret: Run, tmp_path: Path) -> None:
    folder = shutil.copytree(secret.folder, tmp_path / "run")
    facts = json.loads((folder / "run.json").read_text("utf-8")) | {
        "findings": ["Quaxolith is odd"],
        "problems": [
            {"code": "tests", "message": "4 are few"},
            "tests: old",
            {"code": "words", "message": "Quaxolith"},
        ],
    }
    (folder / "run.json").write_text(json.dumps(facts), "utf-8")
    made = build_report(read_run(folder), texts=False).made
    assert [str(one) for one in made.findings] == ["1 finding: see the report with texts"]
    assert [str(one) for one in made.problems] == ["4 are few", "2 problems: see the report with texts"]


def test_what_tests_say_of_systems_is_kept(secret: Run) -> None:
    tests = [one for one in build_report(secret).made.problems if one.code == "tests"]
    assert tests
    assert [one for one in build_report(secret, texts=False).made.problems if one.code == "tests"] == tests


def test_words_that_cost_are_counted_where_zero_is_the_middle(secret: Run) -> None:
    counted = {(one.metric, one.side): one for one in build_report(secret).words}
    hypothesis = counted["chrf", "hypothesis"]
    assert (hypothesis.texts, hypothesis.words) == (16, 128)
    assert hypothesis.costing >= 8
    assert hypothesis.total < 0
