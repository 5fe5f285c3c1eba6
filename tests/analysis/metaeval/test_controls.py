"""Controls: what is known of a word alone, and the finding about word scores that are below it."""

import json

import numpy as np
import pytest

import whyscore as ws
from whyscore.analysis.metaeval.scores import sentinels
from whyscore.analysis.metaeval.tables import ScoreTable
from whyscore.analysis.metaeval.words import BELOW, CONTROLS, below_control, control_scores
from whyscore.data.formats.eval4nlp import Gold, GoldSide, Scored, Submission
from whyscore.models.surprisal import frequency_surprisal, piece_surprisal
from whyscore.stats.words import Ragged
from whyscore.text.splitters import white_space

TEXTS = ["the ornithologist saw a", "an extraordinarily small dog"]
WORDS = tuple(white_space(text) for text in TEXTS)
TAGS = Ragged.of([np.array([0.0, 1, 0, 0]), np.array([0.0, 1, 0, 0])])
GOLD = Gold("gold", "eval4nlp2021", GoldSide(TAGS, "gold", WORDS), languages=("de", "en"))


def submission(name: str, *rows: list[float]) -> Submission:
    return Submission(name, {"target": Scored(Ragged.of([np.array(row) for row in rows]), name)})


def test_controls_are_length_surprisal_and_frequency() -> None:
    words = WORDS[0]
    lengths, surprisal, frequency = (control_scores(name, words, "en") for name in CONTROLS)
    assert lengths is not None
    assert lengths.tolist() == [3, 13, 3, 1]
    assert surprisal is not None
    assert surprisal.tolist() == piece_surprisal(words).tolist()
    assert frequency is not None
    assert frequency.tolist() == frequency_surprisal(words, "en").tolist()
    assert control_scores("frequency", words, None) is None


def test_the_best_control_decides() -> None:
    finding = below_control("me, target", 0.6, {"length": 0.5, "surprisal": 0.7})
    assert finding is not None
    assert (finding.code, finding.error) == (BELOW, False)
    assert "0.600" in finding.message
    assert "surprisal of the word alone (0.700)" in finding.message
    assert below_control("me", 0.7, {"length": 0.5, "surprisal": 0.7}) is None
    assert below_control("me", 0.1, {}) is None


def test_word_scores_below_the_controls_are_told_in_output_and_json() -> None:
    good = submission("good", [0, 1, 0, 0], [0, 1, 0, 0])
    bad = submission("bad", [1, 0, 0.5, 0.2], [1, 0, 0.5, 0.2])
    result = ws.metaevaluate_words(GOLD, [good, bad], baselines=True, draws=0)
    systems = {one.system: one for one in result.systems}
    assert set(CONTROLS) < set(systems)
    assert systems["good"].findings == ()
    assert [one.code for one in systems["bad"].findings] == [BELOW]
    assert any("bad, target" in warning for warning in result.warnings)
    records = {row["system"]: row for row in map(json.loads, map(json.dumps, result.records())) if "system" in row}
    assert [one["code"] for one in records["bad"]["findings"]] == [BELOW]
    assert "findings" not in records["good"]


def test_frequencies_need_a_language() -> None:
    unknown = Gold("gold", "eval4nlp2021", GoldSide(TAGS, "gold", WORDS))
    result = ws.metaevaluate_words(unknown, [submission("good", [0, 1, 0, 0], [0, 1, 0, 0])], baselines=True, draws=0)
    names = [one.system for one in result.systems]
    assert "surprisal" in names
    assert "frequency" not in names


def test_familiar_words_are_a_sentinel() -> None:
    data = ws.from_texts({"A": ["the dog", ""]}, references=["the dog", "x"])
    table = ScoreTable("t", ("A", "A"), ("0", "1"), {"m": np.array([1.0, 2.0])}, (1, 2), texts=data)
    column = sentinels(table, "m")["-surprisal"]
    assert column[0] == pytest.approx(-piece_surprisal(white_space("the dog")).mean())
    assert column[1] == 0


def test_learned_sentinels_see_one_text_alone_and_never_their_own_document() -> None:
    """What people like here is the letter z of the hypothesis; the source says nothing."""
    rng = np.random.default_rng(0)
    good = rng.random(200) < 0.5
    words = [" ".join(rng.choice(["abba", "cede", "dada"], 4)) for _ in good]
    texts = [f"{text} zz" if flag else text for text, flag in zip(words, good, strict=True)]
    data = ws.from_texts({"A": texts}, references=words, sources=[f"s {k % 50}" for k in range(200)])
    names = tuple(map(str, range(200)))
    table = ScoreTable("t", ("A",) * 200, names, {"m": good.astype(float)}, tuple(range(200)), texts=data)
    found = sentinels(table, "m")
    assert np.corrcoef(found["learned hypothesis"], good)[0, 1] > 0.9
    assert abs(np.corrcoef(found["learned source"], good)[0, 1]) < 0.3
    equal = [len(set(found["learned source"][k::50].tolist())) for k in range(50)]
    assert equal == [1] * 50  # equal texts, equal predictions
    again = table.select(list(range(199, -1, -1)))
    assert np.allclose(sentinels(again, "m")["learned hypothesis"][::-1], found["learned hypothesis"], atol=1e-9)
    assert "learned source" not in sentinels(table.select(list(range(10))), "m")  # too few to learn from
