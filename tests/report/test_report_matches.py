"""What MEE matched: the parts add up to the score, and the pairs are those of the texts."""

import gzip
import shutil
from pathlib import Path

import numpy as np
import pytest

from whyscore.errors import DataError
from whyscore.report import build_report
from whyscore.report.explorer import explorer, match_summaries
from whyscore.report.page import Scale, html, stacked
from whyscore.runs.evaluate import EvaluateSettings, evaluate
from whyscore.runs.folder import Run, read_run
from whyscore.types import Dataset, Entry, Segment

pytest.importorskip("snowballstemmer", reason="roots need a stemmer: pip install 'whyscore[mee]'")
TEXTS = (
    ("The cats slept.", "The cat sleeps."),
    ("She walked home.", "She walks home."),
    ("It's 'fine' today.", "It's 'good' today."),
    ("Two dogs walked by.", "Two dogs walk by."),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two systems: one with other forms of the reference's words, one that is right."""
    entries = [
        Entry(str(k), system, Segment(text, None, (reference,)))
        for k, (hypothesis, reference) in enumerate(TEXTS)
        for system, text in (("loose", hypothesis), ("right", reference))
    ]
    data = Dataset("forms", tuple(entries), ("xx", "en"))
    metrics = ["mee(words=None, language='en')", "mee4(words=None, language='en')", "token_f1"]
    return evaluate(
        data, metrics, output=tmp_path_factory.mktemp("mee") / "run", settings=EvaluateSettings(draws=0, tagger=None)
    )


def test_the_parts_add_up_to_the_score(run: Run) -> None:
    plain, combined = match_summaries(run)
    for one, name in ((plain, run.metrics[0].name), (combined, run.metrics[1].name)):
        assert one.metric == name
        for row in one.systems:
            own = [k for k, entry in enumerate(run.dataset.entries) if entry.system == row.system]
            assert row.exact + row.root + row.synonym + row.rest == pytest.approx(row.score, abs=1e-12)
            assert row.score == pytest.approx(float(np.mean(run.scores[name][own])), abs=1e-12)
            assert row.n == len(TEXTS)
    assert all(row.rest == 0 for row in plain.systems)
    assert all(row.rest > 0.3 for row in combined.systems)


def test_a_perfect_text_is_all_exact(run: Run) -> None:
    best, other = match_summaries(run)[0].systems
    assert (best.system, best.exact, best.root, best.unmatched) == ("right", pytest.approx(1.0), 0.0, 0.0)
    assert other.root > 0
    # slept and fine, of 19 words with their full stops and quotes.
    assert other.unmatched == pytest.approx(2 / 19)


def test_pairs_of_one_root_are_counted(run: Run) -> None:
    found = {(pair.hypothesis, pair.reference): pair for pair in match_summaries(run)[0].pairs}
    assert {("cats", "cat"), ("walked", "walks"), ("walked", "walk")} == set(found)
    assert {pair.kind for pair in found.values()} == {"root"}
    assert found["walked", "walks"].count == 1
    assert found["walked", "walks"].example == "1"
    assert found["walked", "walks"].cosine is None


def test_wrong_matches_in_a_run_are_refused_with_their_line(run: Run, tmp_path: Path) -> None:
    folder = shutil.copytree(run.folder, tmp_path / "run")
    packed = folder / "explanations.jsonl.gz"
    text = gzip.decompress(packed.read_bytes()).decode()
    packed.unlink()
    path = folder / "explanations.jsonl"  # as earlier versions wrote it
    path.write_text(text, "utf-8")
    assert match_summaries(read_run(folder)) == match_summaries(run)
    path.write_text(text.replace('"label"', '"lable"', 1), "utf-8")
    with pytest.raises(DataError, match=r"explanations.jsonl:2: "):
        match_summaries(read_run(folder))


def test_the_page_gets_matches_as_places_in_the_other_text(run: Run) -> None:
    (packed,) = [one for one in explorer(run)["why"][0]["0,0"] if one[0] == 0]
    # The cats slept. / The cat sleeps.
    assert packed[5] == [["=", 2, 0, 3], ["~", 2, 4, 7], ["·", 2, 14, 15]]


def test_the_page_gets_the_nearest_by_vectors_in_the_text_it_stands_in(tmp_path: Path) -> None:
    segment = Segment("😀 a cat", "😀 eine Katze", ("no", "😀 the cat"))
    data = Dataset("x", (Entry("0", "a", segment),), ("de", "en"))
    metrics = ["xbertscore", "bertscore(model=embedded)", "xmoverscore"]
    found = evaluate(data, metrics, output=tmp_path / "run", settings=EvaluateSettings(draws=0, tagger=None))
    source, reference, moved = (next(one for one in why["0,0"] if one[0] == 0)[5] for why in explorer(found)["why"])
    # No mark, then source or second reference, and the offsets of Katze or cat in UTF-16 units.
    assert source[-1] == ["", 1, 8, 13]
    assert reference[-1] == ["", 3, 7, 10]
    assert moved[-1] == ["", 1, 8, 13]
    assert match_summaries(found) == ()


def test_other_metrics_have_no_matches(tmp_path: Path) -> None:
    data = Dataset("x", (Entry("0", "a", Segment("a b", None, ("a c",))),))
    metrics = ["chrf", "mee(words=None, view='loss')"]
    found = evaluate(data, metrics, output=tmp_path / "run", settings=EvaluateSettings(draws=0, tagger=None))
    assert build_report(found).matches == ()


def test_the_page_shows_bars_and_pairs(run: Run) -> None:
    page = html(build_report(run))
    assert '<section id="matches"' in page
    assert "matched as forms of one root" in page
    assert "<bdi>walks</bdi>" in page


def test_stacked_bars_lie_side_by_side() -> None:
    drawn = stacked((0.5, 0.0, 0.25), Scale(0.0, 1.0))
    assert 'class="part part-0" x="2.0" y="1" width="47.4"' in drawn
    assert "part-1" not in drawn
    assert 'class="part part-2" x="50.0" y="1" width="23.4"' in drawn
