"""Experiments about shares on small texts."""

import json
import re
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest

from whyscore.analysis.decompose.decompose import decompose
from whyscore.data.formats.text import from_texts
from whyscore.errors import DataError, SpecError, UserError
from whyscore.experiments.muler.random import specificity, tagnoise
from whyscore.experiments.muler.shares import frequency, hybrid
from whyscore.experiments.muler.submissions import Item, figures, pairs, sheet_page, tally
from whyscore.metrics.lexical.bleu import Bleu
from whyscore.metrics.lexical.token_f1 import TokenF1
from whyscore.testing.fakes import Counting
from whyscore.types import Segment

WORDS = ["FRUIT=words:apple,banana,cherry,date"]
DATA = [
    Segment("an apple and a cherry were here", references=("an apple and a date were here",)),
    Segment("one banana and one date were there", references=("one cherry and one banana were there",)),
]


def test_a_hybrid_has_early_words_right_and_late_ones_wrong() -> None:
    rows = hybrid(DATA, "token_f1", features=WORDS, alpha=(0.0, 0.5, 1.0))
    assert [row.letter for row in rows] == ["a", "b", "d"]
    scores = [row.hybrid for row in rows]
    assert scores == sorted(scores)  # type: ignore[type-var]
    assert rows[-1].hybrid == rows[-1].oracle
    assert rows[-1].way == 1.0
    assert all(row.anti <= row.hybrid <= row.oracle for row in rows)  # type: ignore[operator]


def test_late_words_do_not_even_agree_with_early_ones() -> None:
    # The reference has only a late word, the hypothesis only an early one: nothing may match.
    data = [Segment("x apple y", references=("x date y",)), *DATA]
    (row,) = hybrid(data[:1], "token_f1", features=WORDS, alpha=(0.0,))
    assert row.hybrid == row.anti


def test_a_feature_found_nowhere_has_no_hybrid() -> None:
    (row,) = hybrid(DATA, "bleu", features=["number"], alpha=(0.5,))
    assert (row.n, row.hybrid, row.way) == (0, None, None)


def test_hybrids_stand_in_one_table_beside_the_share() -> None:
    rows = hybrid(DATA, "token_f1", features=WORDS)
    (table,) = rows.tables()
    assert table.columns == ("system", "feature", "n", "sigma", "MuLER", "O", "AO", "50-50", "40-60", "30-70")
    (cells,) = table.rows
    first = rows[0]
    assert cells[4:7] == (first.share, first.oracle, first.anti)
    assert first.share == (first.oracle - first.sigma) / (first.oracle - first.anti)  # type: ignore[operator]
    assert cells[7:] == tuple(row.hybrid for row in rows)


def test_all_hybrids_are_one_question() -> None:
    metric = Counting(TokenF1())
    hybrid(DATA, metric, features=[*WORDS, "number"], alpha=(0.2, 0.4, 0.6))
    assert metric.calls == 1


def test_a_part_of_a_feature_is_its_words_up_to_a_letter() -> None:
    half, whole = frequency(DATA, "token_f1", features=WORDS, alpha=(0.5, 1.0))
    assert (half.letter, half.n) == ("b", 2)
    assert (whole.letter, whole.n) == ("d", 2)


def test_the_published_tables_average_over_sentences_under_the_published_masks() -> None:
    pytest.importorskip("nltk")
    (whole,) = frequency(DATA, "bleu", features=WORDS, alpha=(1.0,), mode="compat")
    (row,) = decompose(DATA, "bleu", features=WORDS, mode="compat", draws=0)
    assert (whole.guarded, whole.share, whole.gain) == (row.guarded, row.share, row.gain)


def test_words_without_a_letter_at_their_beginning_only_count_as_a_whole() -> None:
    data = [Segment("7 apples", references=("7 apples",))]
    first, whole = frequency(data, "token_f1", features=["number"], alpha=(0.0, 1.0))
    assert (first.n, whole.n, whole.letter) == (0, 1, "any")


def test_random_groups_are_the_same_for_the_same_seed() -> None:
    options = {"features": WORDS, "groups": (2,), "draws": 3}
    once = specificity(DATA, "chrf", **options)  # type: ignore[arg-type]
    assert once == specificity(DATA, "chrf", **options)  # type: ignore[arg-type]
    other = specificity(DATA, "chrf", seed=1, **options)  # type: ignore[arg-type]
    assert once != other
    assert [(row.groups, row.feature) for row in once] == [(2, None), (None, "FRUIT")]


def test_draws_at_once_are_the_draws_scored_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    data = [*DATA, Segment("a a b a", references=("a b a a c", "b a")), Segment("", references=("x",))]
    options = {"features": WORDS, "groups": (1, 2, 3), "draws": 5, "tokens": "metric"}
    for spec in ("bleu", "bleu(max_order=2)", "bleu(smoothing='exp')"):
        at_once = specificity(data, spec, **options)  # type: ignore[arg-type]
        with monkeypatch.context() as patch:
            patch.setattr(Bleu, "hidden_statistics", None)
            patch.setattr("whyscore.experiments.muler.random._SEGMENTS", 7)
            singly = specificity(data, spec, **options)  # type: ignore[arg-type]
        for one, other in zip(at_once, singly, strict=True):
            assert astuple(one)[4:] == pytest.approx(astuple(other)[4:], abs=1e-12)


def test_the_real_feature_stands_beside_random_words_of_its_frequency() -> None:
    *_, row = specificity(DATA, "token_f1", features=WORDS, groups=(), draws=4)
    (real,) = decompose(DATA, "token_f1", features=WORDS)
    assert row.real == real.share
    assert row.variance == pytest.approx(row.sd**2)  # type: ignore[operator]
    assert (row.real_reference, row.real_hypothesis) == (4 / 14, 4 / 14)


def test_one_group_of_all_words_is_lost_and_won_whole() -> None:
    (row, *_) = specificity(DATA, "token_f1", features=WORDS, groups=(1,), draws=1)
    assert row.frequency == 1.0
    assert row.sd is None


def test_noise_on_one_side_leaves_the_other_alone() -> None:
    rows = tagnoise(DATA, "token_f1", features=WORDS, noise="drop", side="reference", rates=(0.0, 1.0))
    assert [(row.rate, row.n) for row in rows] == [(0.0, 2), (1.0, 0)]


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda: hybrid(DATA, "bleu", alpha=(1.5,)), "alpha is 1.5, expected 0 to 1"),
        (lambda: hybrid(DATA, "bleu", mode="compat"), "mode='compat' is for decompose and frequency"),
        (
            lambda: specificity(DATA, "bleu", draws=0),
            "draws is 0, expected 1 or more",
        ),
        (lambda: tagnoise(DATA, "bleu", rates=(2.0,)), "rates is 2.0, expected 0 to 1"),
    ],
)
def test_wrong_options_are_refused(work: object, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        work()  # type: ignore[operator]


SYSTEMS = {
    "a": ["I saw 3 cats in 1 garden today", "we had 4 dogs and 5 birds there", "it took 6 days for him"],
    "b": ["I saw 2 cats in 1 garden today", "we had 9 dogs and 5 birds there", "it took 6 days for her"],
    "c": ["I saw 3 cats in 1 garden now", "we had 4 dogs and 5 birds", "it took us 6 days"],
}
TEXTS = from_texts(SYSTEMS, SYSTEMS["a"])
NASTY = Item(1, "<script>alert(1)", "", "<script>alert(1)", ("<script>alert(1)", ""), None, "0", ("a", "b"), 1)
CLOSE = {"features": ["number"], "close": 1.0, "far": 0.0, "seed": 1}


class TestPairs:
    """Pairs of systems for people to judge."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """A sheet nobody has filled in."""
        pairs(TEXTS, "token_f1", items=2, **CLOSE).write(tmp_path / "judge")  # type: ignore[arg-type]
        return tmp_path / "judge"

    def test_pairs_are_close_in_the_metric_and_far_apart_on_the_feature(self) -> None:
        found = pairs(TEXTS, "token_f1", pairs=9, **CLOSE)  # type: ignore[arg-type]
        shares = {row.system: row.share for row in decompose(TEXTS, "token_f1", features=["number"])}
        assert [(row.better, row.worse) for row in found.pairs] == [("a", "b"), ("c", "b"), ("a", "c")]
        assert all(row.shares == (shares[row.better], shares[row.worse]) for row in found.pairs)
        assert found.pairs[0].segments == 3

    def test_the_sheet_is_blind_and_the_key_says_who_is_who(self, folder: Path) -> None:
        lines = (folder / "sheet.tsv").read_text("utf-8").splitlines()
        key = [json.loads(line) for line in (folder / "key.jsonl").read_text("utf-8").splitlines()]
        assert [line.split("\t")[0] for line in lines] == ["item", "1", "2"]
        for line, held in zip(lines[1:], key, strict=True):
            texts = [cell.replace("[", "").replace("]", "") for cell in line.split("\t")[4:6]]
            assert texts[held["better"] - 1] == SYSTEMS["a"][int(held["id"])]
            assert texts[2 - held["better"]] == SYSTEMS["b"][int(held["id"])]
        page = (folder / "sheet.html").read_text("utf-8")
        assert page.count("<fieldset") == len(key)
        assert "<script>alert" not in sheet_page([NASTY])

    def test_a_sheet_is_not_written_over(self, folder: Path) -> None:
        with pytest.raises(UserError, match=r"sheet.tsv is there already, perhaps filled in"):
            pairs(TEXTS, "token_f1", **CLOSE).write(folder)  # type: ignore[arg-type]

    def test_judgements_are_tallied_with_a_sign_test(self, tmp_path: Path) -> None:
        better = [1 + k % 2 for k in range(12)]
        shared = {"group": None, "feature": "NOUN", "systems": ["x", "y"]}
        key = [shared | {"item": k, "better": one} for k, one in enumerate(better)]
        (tmp_path / "key.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in key), "utf-8")
        said = [*better[:8], *(3 - one for one in better[8:10]), "0", "="]
        sheet = tmp_path / "filled.tsv"
        sheet.write_text("item\tjudgement\n" + "".join(f"{k}\t{one}\n" for k, one in enumerate(said)), "utf-8")
        (row,) = tally([sheet])
        assert (row.n, row.equal, row.a, row.b, row.p) == (12, 2, 8, 2, 0.109375)

    @pytest.mark.parametrize(
        ("lines", "message"),
        [
            (["1\t1", "2\t"], "1 of 2 items have no judgement, the first is item 2: fill them in, or count the others"),
            (["1\t", "2\t"], "2 of 2 items have no judgement, the first is item 1: fill them in"),
            (["1\t1", "2\t0", "1\t2"], "item 1 stands in line 2 already: keep one judgement of each item"),
            (["1\t1"], "lacks 1 of 2 items: 2. Put their lines back"),
            (["1\t1", "2\t1 2"], "the judgement of item 2 is '1 2', expected 1 or 2 for the better text, 0 for equal"),
            (["1\t1", "7\t2"], "no item '7' in the key: keep the numbers of the sheet"),
        ],
    )
    def test_a_sheet_that_is_not_filled_in_once_is_refused(self, folder: Path, lines: list[str], message: str) -> None:
        sheet = folder / "filled.tsv"
        sheet.write_text("\n".join(["item\tjudgement", *lines]) + "\n", "utf-8")
        with pytest.raises(DataError, match=re.escape(message)):
            tally([sheet])

    def test_a_part_of_a_sheet_counts_where_asked(self, folder: Path) -> None:
        sheet = folder / "filled.tsv"
        sheet.write_text("item\tjudgement\n1\t0\n2\t\n", "utf-8")
        (row,) = tally([sheet], partial=True)
        assert (row.n, row.equal, row.p) == (1, 1, None)

    def test_a_key_that_is_not_there_or_damaged_is_told(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match=r"key.jsonl is not there: .* --key"):
            tally([tmp_path / "sheet.tsv"])
        (tmp_path / "key.jsonl").write_text('{"item": 1}\n', "utf-8")
        with pytest.raises(DataError, match=r"key.jsonl:1: .*write the sheet again"):
            tally([tmp_path / "sheet.tsv"])

    def test_without_such_a_pair_the_nearest_is_told(self) -> None:
        with pytest.raises(UserError, match=r"farthest apart are a and b on number: 0.* lower --far"):
            pairs(TEXTS, "token_f1", features=["number"], close=1.0, far=5.0)
        with pytest.raises(UserError, match="no two systems have scores that close"):
            pairs(TEXTS, "token_f1", features=["number"], close=0.0)
        alone = from_texts({"a": SYSTEMS["b"]}, SYSTEMS["a"])
        with pytest.raises(UserError, match="no two systems of a group to compare"):
            pairs(alone, "token_f1", features=["number"])


class TestFigures:
    """Correlations over systems from what was written."""

    def test_records_and_tables_give_the_same_correlations(self, tmp_path: Path) -> None:
        found = decompose(TEXTS, "token_f1", features=["number"], draws=0, scorers=[len])
        file, table = tmp_path / "shares.jsonl", tmp_path / "shares.tsv"
        lines = [json.dumps(one) for one in (found.header(), *found.records())]
        file.write_text("\n".join(lines) + "\n", "utf-8")
        columns = ("system", "feature", "sigma_all", "sigma", "oracle", "anti")
        rows = [[str(getattr(row, name)) for name in columns] for row in found]
        table.write_text("\n".join("\t".join(row) for row in (columns, *rows)) + "\n", "utf-8")
        (one,), (other,) = figures([file]), figures([table])
        x, y = np.array([-float(row.share or 0) for row in found]), np.array([row.sigma_all for row in found])
        assert (one.n, one.score) == (3, pytest.approx(np.corrcoef(x, y)[0, 1]))
        assert (other.score, other.range) == (pytest.approx(one.score), pytest.approx(one.range))

    def test_two_systems_have_no_correlation(self, tmp_path: Path) -> None:
        table = tmp_path / "two.csv"
        table.write_text("system,feature,bleu_all,sigma,oracle,anti\na,N,.1,.1,.2,0\nb,N,.2,.2,.3,0\n", "utf-8")
        with pytest.raises(UserError, match="it takes three in a group, and the largest has 2"):
            figures([table])
        table.write_text("system,feature\na,N\n", "utf-8")
        with pytest.raises(DataError, match="no column 'bleu_all' in this table of shares; there are: system, feature"):
            figures([table])
