"""What differences mean in human terms: what is found, what is refused, and that the shipped table is sound."""

import json
from pathlib import Path

import pytest

import whyscore as ws
from support.cli import Run
from whyscore.analysis.compare.compare import find_preferences, preference, read_preferences
from whyscore.types import Signature

CHRF = Signature.parse("chrf|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:9.9.9")


def test_the_shipped_table_is_sound() -> None:
    tables = read_preferences()
    assert {one.metric for one in tables} == {"bleu", "chrf", "xbertscore", "qe"}
    assert {one.languages for one in tables} == {"en-de", "en-ru", "zh-en"}
    for one in tables:
        assert one.sets
        for own, after in zip(one.bins, (*one.bins[1:], None), strict=True):
            assert 0 <= own.low <= own.share <= own.high <= 1
            assert own.pairs >= 10
            assert after is None or (own.most is not None and own.most <= after.least)
    trained = [one for one in tables if one.metric == "qe" and any("news" in name for name in one.sets)]
    assert {one.languages for one in trained} == {"en-ru"}  # qe learnt from the news of the others


def test_a_difference_has_the_share_of_its_bin() -> None:
    found = find_preferences(CHRF, ("zh", "en"), None, 500)
    assert not isinstance(found, str)
    own = found.bins[0]
    told = preference(found, -(own.least + (own.most or 1)) / 2)
    assert (told.share, told.low, told.high, told.pairs) == (own.share, own.low, own.high, own.pairs)
    assert "WMT21 news zh-en, WMT21 TED talks zh-en" in str(told)
    assert preference(found, 0.0).share is None
    assert find_preferences(CHRF, ("zh-CN", "en_US"), None, 500) == found
    alone = find_preferences(CHRF, ("zh", "en"), "ted", 500)
    assert not isinstance(alone, str)
    assert alone.sets == ("WMT21 TED talks zh-en",)
    fewer = find_preferences(CHRF, ("zh", "en"), None, 120)
    assert not isinstance(fewer, str)
    assert fewer.segments == 100


@pytest.mark.parametrize(
    ("signature", "languages", "domain", "segments", "reason"),
    [
        ("ter|nrefs:1", ("zh", "en"), None, 500, "no human preferences were measured for ter"),
        (str(CHRF), None, None, 500, "the language pair is not known: name it with -l"),
        (str(CHRF), ("cs", "en"), None, 500, "for cs-en (there are: en-de, en-ru, zh-en)"),
        (str(CHRF).replace("nrefs:1", "nrefs:2"), ("zh", "en"), None, 500, "were measured with chrf|nrefs:1|"),
        (str(CHRF), ("zh", "en"), "medicine", 500, "in the domain 'medicine' (there are: news, ted)"),
        (str(CHRF), ("zh", "en"), None, 30, "30 segments are too few: human preferences were measured on 100 or more"),
    ],
)  # fmt: skip
def test_what_the_data_do_not_cover_is_refused(
    signature: str, languages: tuple[str, str] | None, domain: str | None, segments: int, reason: str
) -> None:
    found = find_preferences(Signature.parse(signature), languages, domain, segments)
    assert isinstance(found, str)
    assert reason in found
    told = preference(found, 1.0)
    assert (told.share, told.reason) == (None, found)


def rows(count: int) -> str:
    texts = ["id\tsystem\tsource\thypothesis\treference"]
    for k in range(count):
        texts += [f"{k}\tA\t我有狗{k}\tI have the dog {k}\tI have a dog {k}"]
        texts += [f"{k}\tB\t我有狗{k}\tI have a {'dog' if k % 9 else 'cat'} {k}\tI have a dog {k}"]
    return "\n".join(texts) + "\n"


def test_compare_and_evaluate_show_it_beside_differences(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "data.tsv"
    file.write_text(rows(120), encoding="utf-8")
    done = run("compare", file, "-l", "zh-en", "-m", "chrf", "--draws", 99)
    assert "in human terms: raters preferred the system ahead by 2 or more in" in done.out
    assert "pairs (WMT21 news zh-en, WMT21 TED talks zh-en)" in done.out
    found = json.loads(run("compare", file, "-l", "zh-en", "-m", "chrf", "--draws", 99, "-f", "json").out)
    (pair,) = found["records"]
    assert pair["human_low"] <= pair["human_share"] <= pair["human_high"]
    assert (pair["human_origin"], pair["human_reason"]) == ("WMT21 news zh-en, WMT21 TED talks zh-en", None)
    refused = run("compare", file, "-l", "zh-en", "-m", "chrf", "--draws", 99, "--domain", "law")
    assert "in human terms: raters" not in refused.out
    assert (
        "note: chrf: differences in human terms: no human preferences were measured for zh-en in the domain 'law'"
        in (refused.err)
    )
    folder, page = tmp_path / "run", tmp_path / "page.html"
    assert run("evaluate", file, "-l", "zh-en", "-m", "chrf", "--quick", "--budget", 0, "-o", folder).code == 0
    (test,) = ws.read_run(folder).pairs
    assert test.humans is not None
    assert test.humans.share == pair["human_share"]
    assert run("report", folder, "-o", page).code == 0
    text = page.read_text(encoding="utf-8")
    assert "human raters agree" in text
    assert test.humans.summary in text
