"""Scores of single texts: sentiment, word lists, functions."""

import re
from pathlib import Path

import pytest

from whyscore.analysis.decompose.decompose import decompose
from whyscore.analysis.decompose.sentences import LexiconScorer, Sentiment, as_scorer, score_sentences
from whyscore.data.formats.text import from_texts
from whyscore.errors import DataError, SpecError, UnknownName
from whyscore.types import Segment


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_the_signed_difference_is_reference_minus_hypothesis() -> None:
    data = from_texts({"s": ["aa", "a"]}, ["a", "aaa"])
    (row,) = score_sentences(data, len, draws=0)
    assert (row.n, row.signed, row.absolute) == (2, 0.5, 1.5)
    assert row.scorer == "function('len')"


def test_of_several_references_the_mean_counts() -> None:
    data = from_texts({"s": ["aa"]}, [["a", "aaaa"]])
    assert score_sentences(data, len, draws=0)[0].signed == 0.5


def test_vader_knows_good_from_bad() -> None:
    pytest.importorskip("vaderSentiment")
    good, bad = Sentiment().scores(["a wonderful day", "a horrible day"])
    assert good is not None
    assert bad is not None
    assert good > 0 > bad
    assert str(Sentiment().signature()).startswith("sentiment|vader:3.")


@pytest.mark.parametrize(
    ("name", "text", "column"),
    [
        ("c.tsv", "Word\tBigram\tConc.M\nroof\t0\t5.0\nroof top\t1\t1.0\nidea\t0\t1.0\n", None),
        ("v.tsv", "Word\tValence\tArousal\tDominance\nroof\t5.0\t0\t0\nidea\t1.0\t0\t0\n", None),
        ("w.csv", 'Word,V.Mean.Sum,A.Mean.Sum\n"roof",5.0,1\n"idea",1.0,2\n', "valence"),
        ("d.tsv", "Word\tValence\tDominance\nroof\t0\t5.0\nidea\t0\t1.0\n", "dominance"),
        ("p.tsv", "roof\t5.0\nidea\t1.0\n", None),
    ],
)
def test_known_tables_are_read_by_their_columns(name: str, text: str, column: str | None, tmp_path: Path) -> None:
    scorer = LexiconScorer(write(tmp_path, name, text), column)
    assert scorer.scores(["the roof idea", "Roof!", "nothing"]) == [3.0, 5.0, None]


def test_a_word_is_looked_up_as_it_is_then_in_lower_case_then_by_its_lemma(tmp_path: Path) -> None:
    values = write(tmp_path, "v.tsv", "May\t1.0\nmay\t2.0\nrun\t3.0\n")
    lemmas = write(tmp_path, "l.tsv", "form\tlemma\nran\trun\n")
    assert LexiconScorer(values, lemmas=lemmas).scores(["May", "MAY", "Ran"]) == [1.0, 2.0, 3.0]


def test_lemmas_of_a_language_need_no_table(tmp_path: Path) -> None:
    pytest.importorskip("simplemma")
    values = write(tmp_path, "v.tsv", "word\tvalue\ncat\t5\nrun\t3\n")
    scorer = LexiconScorer(values, lemmas="en")
    assert scorer.scores(["Cats ran", "the ghosts"]) == [4.0, None]
    assert "simplemma-en" in str(scorer.signature())
    assert LexiconScorer(values).scores(["Cats ran"]) == [None]
    with pytest.raises(SpecError, match="simplemma does not know the language 'xx'"):
        LexiconScorer(values, lemmas="xx").scores(["a"])


def test_a_negation_near_before_turns_the_sign(tmp_path: Path) -> None:
    path = write(tmp_path, "s.tsv", "Term\tSentiment\ngood\tpositive\nbad\t-2\n")
    scorer = LexiconScorer(path, kind="sentiment")
    texts = ["good", "not a good day", "don't be bad", "not one two three good"]
    assert scorer.scores(texts) == [1.0, -0.25, pytest.approx(1 / 3), 0.2]


def test_pairs_without_a_known_word_are_left_out_and_counted(tmp_path: Path) -> None:
    path = write(tmp_path, "v.tsv", "roof\t4.0\n")
    data = from_texts({"s": ["roof", "x"]}, ["roof", "roof"])
    (row,) = score_sentences(data, LexiconScorer(path), draws=0)
    assert (row.n, row.left_out, row.signed) == (1, 1, 0.0)
    (compat,) = score_sentences(data, LexiconScorer(path), mode="compat", draws=0)
    assert (compat.n, compat.left_out, compat.signed) == (2, 0, 2.0)


def test_without_any_score_there_is_no_number_but_a_reason(tmp_path: Path) -> None:
    path = write(tmp_path, "v.tsv", "roof\t4.0\n")
    (row,) = score_sentences(from_texts({"s": ["x"]}, ["y"]), LexiconScorer(path))
    assert row.signed is None
    assert row.reason == "no pair of texts has a score on both sides (1 left out)"


def test_scorers_stand_beside_the_features(tmp_path: Path) -> None:
    path = write(tmp_path, "v.tsv", "roof\t4.0\nidea\t1.0\n")
    data = [Segment("an idea", references=("a roof",))] * 3
    found = decompose(data, "bleu", features=["number"], scorers=[f"lexicon(path={path!r})", len], draws=50)
    assert [(row.scorer.partition("(")[0], row.signed, row.absolute_high) for row in found.scorers] == [
        ("lexicon", 3.0, 3.0),
        ("function", -1.0, 1.0),
    ]
    assert any(name.startswith("lexicon(") for name in found.signatures)


def test_what_is_wrong_in_a_word_list_is_told_with_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no\.tsv: cannot be read: No such file"):
        LexiconScorer(str(tmp_path / "no.tsv")).scores(["a"])
    with pytest.raises(DataError, match=r"a\.tsv:2: expected a number, found 'x'"):
        LexiconScorer(write(tmp_path, "a.tsv", "b\t1\na\tx\n")).scores(["a"])
    with pytest.raises(DataError, match=r"b\.tsv:2: expected 2 columns, found 1"):
        LexiconScorer(write(tmp_path, "b.tsv", "b\t1\na\n")).scores(["a"])
    with pytest.raises(DataError, match=r"e\.tsv: is empty: expected a table of words and values"):
        LexiconScorer(write(tmp_path, "e.tsv", "")).scores(["a"])
    message = "has no column 'arousal'; it has: word, valence"
    with pytest.raises(SpecError, match=re.escape(message)):
        LexiconScorer(write(tmp_path, "c.tsv", "Word\tValence\na\t1\n"), "arousal").scores(["a"])


def test_an_unknown_scorer_is_answered_with_the_near_one() -> None:
    with pytest.raises(UnknownName, match=re.escape("no scorer named 'sentimnet'. Did you mean 'sentiment'?")):
        as_scorer("sentimnet")
    with pytest.raises(SpecError, match="3 is no sentence scorer"):
        as_scorer(3)  # type: ignore[arg-type]
