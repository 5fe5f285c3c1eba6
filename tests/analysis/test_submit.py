"""Files of scores for the WMT metrics task."""

from pathlib import Path

import pytest

from support.cli import Run
from whyscore.analysis.submit import submit_scores
from whyscore.data.formats.text import from_texts
from whyscore.errors import DataError
from whyscore.types import Dataset, Entry, Segment


def small() -> Dataset:
    texts = {"A": ("a dog", "the end"), "B": ("a cat", "the end")}
    references, domains = ("a dog", "the very end"), ("news", "social")
    entries = [
        Entry(str(k), name, Segment(text, references=(references[k],)), document="d1", extra={"domain": domains[k]})
        for name, own in texts.items()
        for k, text in enumerate(own)
    ]
    return Dataset("small", tuple(entries), ("en", "ru"))


def rows(file: Path) -> list[list[str]]:
    return [line.split("\t") for line in file.read_text("utf-8").splitlines()]


def test_systems_have_a_row_for_all_segments_and_one_per_domain(tmp_path: Path) -> None:
    files = submit_scores(small(), ["token_f1"], tmp_path, test_set="generaltest2022").files
    assert [file.name for file in files] == ["token_f1.sys.score", "token_f1.seg.score"]
    head = ["token_f1", "en-ru", "generaltest2022"]
    found = {(domain, system): float(score) for *_, domain, _, system, score in rows(files[0])}
    assert all(row[:3] == head and row[4] == "refA" for row in rows(files[0]))
    both = {"all": (0.9, 0.65), "news": (1.0, 0.5), "social": (0.8, 0.8)}
    expected = {(domain, name): score for domain, own in both.items() for name, score in zip("AB", own, strict=True)}
    assert found == pytest.approx(expected)
    first = rows(files[1])[0]
    assert first[:-1] == [*head, "news", "d1", "refA", "A", "1"]
    assert float(first[-1]) == 1.0


def test_corpus_metrics_keep_their_own_formula_and_lower_is_better_is_turned(tmp_path: Path) -> None:
    files = {file.name: file for file in submit_scores(small(), ["bleu", "ter", "length"], tmp_path).files}
    total = {row[5]: float(row[6]) for row in rows(files["ter.sys.score"]) if row[3] == "all"}
    assert total == pytest.approx({"A": -20.0, "B": -40.0})  # 1 and 2 edits of 5 words
    assert {row[4] for row in rows(files["length.sys.score"])} == {"src"}  # reads no reference
    assert float(rows(files["bleu.sys.score"])[0][6]) != pytest.approx(
        sum(float(row[-1]) for row in rows(files["bleu.seg.score"])[:2]) / 2
    )


def test_the_exact_part_of_the_published_scores(shared: Path, tmp_path: Path, run: Run) -> None:
    folder = shared / "mee" / "wmt22"
    code, out, _ = run(
        "submit", "wmt-metrics", "-r", folder / "generaltest2022.en-ru.ref.A.ru",
        "-t", folder / "generaltest2022.en-ru.hyp.Online-G.ru", "--systems", "Online-G", "-l", "en-ru",
        "-m", "mee(mode='compat', words=None)", "--test-set", "generaltest2022", "-o", tmp_path / "out",
    )  # fmt: skip
    assert code == 0
    assert out.split() == [str(tmp_path / "out" / f"mee.{level}.score") for level in ("sys", "seg")]
    (system,) = rows(tmp_path / "out" / "mee.sys.score")
    published = next(
        row for row in rows(shared / "mee" / "MEE.en-ru.sys.score") if row[3:6] == ["all", "refA", "Online-G"]
    )
    assert system[1:6] == published[1:6]
    assert float(system[6]) == pytest.approx(0.5357747620017832, abs=1e-12)
    assert len(rows(tmp_path / "out" / "mee.seg.score")) == 2037


@pytest.mark.parametrize(
    ("metrics", "options", "message"),
    [
        (["chrf", "chrf(word_order=2)"], {}, "chrf"),
        (["chrf"], {"test_set": "a\tb"}, "'a\\\\tb' cannot be used in a tab-separated file: rename it"),
        (["chrf"], {"reference": " "}, "' ' cannot be used in a tab-separated file"),
    ],
)
def test_what_the_files_cannot_hold_is_refused(
    tmp_path: Path, metrics: list[str], options: dict[str, str], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        submit_scores(small(), metrics, tmp_path, **options)


def test_scores_need_the_languages(tmp_path: Path) -> None:
    data = from_texts({"A": ["a dog"]}, references=["a dog"])
    with pytest.raises(DataError, match="does not name its languages: give the pair, for example -l en-ru"):
        submit_scores(data, ["chrf"], tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-m", "chrf"], "a submission needs -o"),
        (["-o", "out"], "a submission needs -m METRIC"),
        (["-m", "chrf", "-o", "out", "-e", "lime"], "the metrics task takes no word scores: leave out -e"),
    ],
)
def test_wrong_usage_is_told(run: Run, options: list[str], message: str) -> None:
    code, _, err = run("submit", "wmt-metrics", "--text", "-t", "a", "-r", "b", "-l", "en-ru", *options)
    assert code == 2
    assert message in err
