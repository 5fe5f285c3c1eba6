"""Small runs that the tests of reports share."""

from collections.abc import Callable
from pathlib import Path

import pytest

from whyscore.data.files import TextFile
from whyscore.runs.evaluate import EvaluateSettings, evaluate
from whyscore.runs.folder import Run
from whyscore.types import Dataset, Entry, ErrorSpan, Segment

REFERENCES = ("a cat sat here", "two dogs ran home", "it was not late", "we saw seven birds")


@pytest.fixture(scope="session")
def small() -> Dataset:
    """Two systems, four segments: `good` is right but for one word, `bad` is wrong in one word everywhere."""
    entries = []
    for system, wrong in (("good", {1}), ("bad", {0, 1, 2, 3})):
        for k, reference in enumerate(REFERENCES):
            words = reference.split()
            hypothesis = " ".join(["zzz", *words[1:]]) if k in wrong else reference
            spans = (ErrorSpan(0, 3, "major", "Accuracy"),) if k in wrong else ()
            segment = Segment(hypothesis, f"Quelle {k}", (reference,))
            entries.append(Entry(str(k), system, segment, {"mqm": -5.0 * len(spans)}, spans))
    return Dataset("small", tuple(entries), ("de", "en"))


@pytest.fixture(scope="session")
def run(small: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The small data set under two metrics, one of which explains itself."""
    folder = tmp_path_factory.mktemp("small") / "run"
    return evaluate(small, ["chrf", "token_f1"], output=folder, settings=EvaluateSettings(draws=50))


@pytest.fixture
def files() -> Callable[[Path], dict[str, str]]:
    """The data files of a run folder, without the date in their first lines."""

    def reading(folder: Path) -> dict[str, str]:
        found = {}
        for file in sorted(folder.glob("*.jsonl*")):
            head, *rest = TextFile(file).lines()
            found[file.name] = "\n".join([head.split('"created"')[0], *rest])
        return found

    return reading
