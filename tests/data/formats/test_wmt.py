"""WMT folders, gold folders and raw ratings as data of every verb."""

import json
import re
from pathlib import Path

import pytest

from support.cli import Run
from whyscore.analysis.metaeval import tables as metaevaluate_joined
from whyscore.data.reading import read
from whyscore.errors import DataError
from whyscore.types import ErrorSpan, Segment, Side

FILES = {
    "sources/en-de.txt": "A cat.\nTwo dogs.\nRain.\n",
    "references/en-de.refA.txt": "Eine Katze.\nZwei Hunde.\nRegen.\n",
    "references/en-de.refB.txt": "Ein Kater.\n\nRegen.\n",
    "system-outputs/en-de/online.txt": "Katze.\nZwei Hund.\nRegen.\n",
    "system-outputs/en-de/refA.txt": "Eine Katze.\nZwei Hunde.\nRegen.\n",
    "documents/en-de.docs": "news\tdoc-1\nnews\tdoc-1\nchat talk 2\n",
    "human-scores/en-de.mqm.seg.score": "online\t-1.5\nonline\tNone\nonline\t0\nrefA 0\nrefA 0\nrefA 0\n",
    "human-scores/en-de.mqm.doc.score": "online\t-1\nonline\t0\n",
    "human-scores/en-de.mqm.sys.score": "online\t-0.75\nrefA\t0\nlost\t1\n",
    "metric-scores/en-de/BLEU-refA.seg.score": "online\t.2\nonline\t.4\nonline\t1\n",
    "metric-scores/en-de/BLEU-refA.sys.score": "online\t.5\n",
}
RATING = {"errors": [
    {"start": 0, "end": 5, "category": "style", "severity": "minor", "score": 1, "is_source_error": False},
    {"start": 0, "end": 1, "category": "omission", "severity": "major", "score": 5, "is_source_error": True},
]}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rating = "\n".join(f"online\t{json.dumps(RATING) if k == 0 else 'None'}\trater1" for k in range(3))
    for name, text in {**FILES, "human-scores/en-de.mqm.seg.rating": f"{rating}\n"}.items():
        file = tmp_path / "wmt" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return tmp_path / "wmt"


def test_texts_documents_scores_and_spans_come_together(folder: Path) -> None:
    data = read(folder)
    first, second, third, *others = data.entries
    assert (data.name, data.languages, data.systems) == ("wmt en-de", ("en", "de"), ("online", "refA"))
    assert first.segment == Segment("Katze.", "A cat.", ("Eine Katze.", "Ein Kater."))
    assert second.segment.references == ("Zwei Hunde.",)
    assert [entry.document for entry in data.entries] == ["doc-1", "doc-1", "talk 2"] * 2
    assert first.human == {"mqm": -1.5, "mqm.doc": -1.0, "mqm.sys": -0.75}
    assert second.human == {"mqm.doc": -1.0, "mqm.sys": -0.75}
    assert third.human == {"mqm": 0.0, "mqm.doc": 0.0, "mqm.sys": -0.75}
    assert others[0].human == {"mqm": 0.0, "mqm.sys": 0.0}
    assert first.extra == {"domain": "news", "BLEU-refA": 0.2, "BLEU-refA.sys": 0.5, "raters": ["rater1"]}
    assert first.spans == (
        ErrorSpan(0, 5, "minor", "style", score=1.0),
        ErrorSpan(0, 1, "major", "omission", Side.SOURCE, score=5.0),
    )
    assert second.spans is None


def test_a_reference_is_never_compared_with_itself(folder: Path) -> None:
    rows = [entry.segment.references for entry in read(folder).of("refA").entries]
    assert rows == [("Ein Kater.",), (), ("Regen.",)]


def test_the_only_reference_is_no_system(folder: Path) -> None:
    (folder / "references" / "en-de.refB.txt").unlink()
    data = read(folder)
    assert data.systems == ("online",)
    assert "refA is both the only reference and a system: it was left out as a system" in {
        finding.message for finding in data.findings
    }


def test_scores_without_texts_are_told(folder: Path) -> None:
    told = [str(finding) for finding in read(folder).findings if "without texts" in finding.message]
    file = folder / "human-scores" / "en-de.mqm.sys.score"
    assert told == [f"{file}: scores of systems without texts were left out: lost"]


def test_the_judging_of_metrics_reads_the_same_numbers(folder: Path) -> None:
    table, names = metaevaluate_joined.read_wmt(folder, "en-de", "mqm")
    data = {(entry.system, entry.id): entry for entry in read(folder).entries}
    assert names == ["BLEU-refA"]
    for system, segment, human in zip(table.systems or (), table.segments, table.scores["mqm"], strict=True):
        assert data[system, segment].human.get("mqm", float("nan")) == pytest.approx(human, nan_ok=True)


def test_one_of_several_pairs_must_be_asked_for(folder: Path) -> None:
    for place in ("sources/en-ru.txt", "system-outputs/en-ru/online.txt"):
        (folder / place).parent.mkdir(exist_ok=True)
        (folder / place).write_text("a\n", "utf-8")
    with pytest.raises(DataError, match=re.escape("2 language pairs: choose one with -l; there are: en-de, en-ru")):
        read(folder)
    assert len(read(folder, languages=("en", "ru"))) == 1
    with pytest.raises(DataError, match=re.escape("no sources of en-fr: choose one with -l; there are: en-de, en-ru")):
        read(folder, languages=("en", "fr"))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("human-scores/en-de.mqm.seg.score", "online\t1\n", "'online' has 1 scores, expected 3 segments"),
        ("human-scores/en-de.mqm.doc.score", "online\t1\n", "'online' has 1 scores, expected 2 documents"),
        ("human-scores/en-de.mqm.seg.score", "online\tbad\n", ":1: 'online\\tbad' is not a system and a score"),
        ("human-scores/en-de.mqm.seg.score", "online\tnan\n", ":1: 'online\\tnan' is not a system and a score"),
        ("human-scores/en-de.mqm.seg.score", "\n", ":1: '' is not a system and a score"),
        ("documents/en-de.docs", "news\n" * 3, ":1: 'news' is not a domain and a document"),
        ("documents/en-de.docs", "news d\n", "has 1 lines, the sources have 3: line counts must match"),
        ("system-outputs/en-de/online.txt", "Katze.\n", "online.txt has 1 lines"),
        ("human-scores/en-de.mqm.seg.rating", "online\t{\trater\n", ":1: not a rating"),
    ],
)
def test_what_does_not_fit_is_told_with_its_file(folder: Path, name: str, text: str, message: str) -> None:
    (folder / name).write_text(text, "utf-8")
    with pytest.raises(DataError, match=re.escape(message)):
        read(folder)


def test_a_pair_without_systems_is_refused(folder: Path) -> None:
    for file in (folder / "system-outputs" / "en-de").iterdir():
        file.unlink()
    with pytest.raises(DataError, match=re.escape("no system of en-de: expected files NAME.txt")):
        read(folder)


def test_other_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=re.escape("is a folder: give a file, a WMT folder (with sources and")):
        read(tmp_path)


def test_a_folder_is_scored_from_the_command_line(run: Run, folder: Path) -> None:
    (folder / "references" / "en-de.refB.txt").unlink()
    code, out, err = run("score", str(folder), "-m", "token_f1", "--segments", "-f", "jsonl", "--store", "none")
    assert code == 0, err
    scores = [json.loads(line)["score"] for line in out.splitlines()[1:]]
    assert scores == pytest.approx([2 / 3, 1 / 2, 1.0])
    assert "it was left out as a system" in err


def test_a_gold_folder_brings_texts_scores_and_spans(shipped: Path) -> None:
    folder = shipped / "eval4nlp2021" / "dev" / "et-en"
    data = read(folder, languages=("et", "en"))
    assert (len(data), data.languages) == (1000, ("et", "en"))
    entry = data.entries[0]
    assert entry.segment.hypothesis == (folder / "dev.mt").read_text("utf-8").split("\n")[0]
    assert entry.segment.references == ()
    assert set(entry.human) == {"da"}
    with_edits = read(folder, columns={"references": "pe"})
    assert with_edits.segments[0].references == ((folder / "dev.pe").read_text("utf-8").split("\n")[0],)
    with pytest.raises(DataError, match=re.escape("no file dev.xx for --columns references=xx")):
        read(folder, columns={"references": "xx"})


def test_raw_ratings_are_known_by_their_columns(shipped: Path) -> None:
    data = read(shipped / "mqm" / "ted_zhen_ratings.jsonl", languages=("zh", "en"))
    assert (len(data), len(data.systems), data.languages) == (7935, 15, ("zh", "en"))
    assert sum(len(entry.spans or ()) for entry in data.entries) == 5269 + 349
    assert not any("<v>" in entry.segment.hypothesis for entry in data.entries)


@pytest.fixture
def submissions(tmp_path: Path) -> Path:
    """Two test sets with one system in both, as WMT laid them out."""
    files = {
        "references/newstest2018-ruen-ref.en": "A cat.\nRain.\n",
        "references/newstest2019-deen-ref.en": "A dog.\nSun.\n",
        "sources/newstest2019-deen-src.de": "Ein Hund.\nSonne.\n",
        "newstest2018/ru-en/newstest2018.online-A.0.ru-en": "The cat.\nRain.\n",
        "newstest2018/ru-en/newstest2018.Alibaba.5720.ru-en": "A cat.\nRain!\n",
        "newstest2019/de-en/newstest2019.online-A.0.de-en": "The dog.\nSun.\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def test_submissions_are_read_in_one_go(submissions: Path) -> None:
    data = read(submissions)
    assert data.systems == ("Alibaba.5720", "online-A.0")
    assert data.languages == ("und", "en")
    last = data.entries[-1]
    assert (last.id, last.system, last.extra) == (
        "newstest2019.de-en.1",
        "online-A.0",
        {"pair": "de-en", "year": "2019"},
    )
    assert (last.segment.hypothesis, last.segment.source, last.segment.references) == ("Sun.", "Sonne.", ("Sun.",))
    assert "2 test sets: ru-en 2018, de-en 2019" in data.findings[-1].message


def test_submissions_of_one_pair(submissions: Path) -> None:
    data = read(submissions, languages=("de", "en"))
    assert (data.systems, data.ids, data.languages) == (("online-A.0",), ("0", "1"), ("de", "en"))
    assert len(read(submissions, languages=("und", "en"))) == 6
    with pytest.raises(DataError, match=re.escape("no submission for de-fr; there are: ru-en, de-en")):
        read(submissions, languages=("de", "fr"))


def test_faults_of_submissions_name_the_file(submissions: Path) -> None:
    short = submissions / "newstest2018/ru-en/newstest2018.Alibaba.5720.ru-en"
    short.write_text("A cat.\n", "utf-8")
    with pytest.raises(DataError, match=r"Alibaba.5720.ru-en has 1 lines, .*newstest2018-ruen-ref.en has 2"):
        read(submissions)
    short.rename(submissions / short.name.replace("Alibaba.5720", "online-A.0"))
    with pytest.raises(DataError, match=r"is present twice: .*Remove one of them"):
        read(submissions)
    (submissions / "newstest2018.online-A.0.ru-en").unlink()
    (submissions / "references/newstest2018-ruen-ref.en").unlink()
    expected = "no reference of newstest2018 ru-en: expected newstest2018-ruen-ref.en"
    with pytest.raises(DataError, match=re.escape(expected)):
        read(submissions)
