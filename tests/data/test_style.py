"""Differences of typography between references and hypotheses are found, and can be evened out."""

import pytest

from whyscore.data.checks import findings
from whyscore.data.style import SYSTEMATIC, normalize, systematic_differences
from whyscore.errors import UserError
from whyscore.report import build_report
from whyscore.runs.evaluate import evaluate
from whyscore.types import Dataset, Entry, ErrorSpan, Segment


def pairs(reference: str, hypothesis: str, count: int = 12) -> Dataset:
    entries = [Entry(str(k), "a", Segment(hypothesis, None, (reference,))) for k in range(count)]
    return Dataset("pairs", tuple(entries))


@pytest.mark.parametrize(
    ("reference", "hypothesis", "told"),
    [
        ("He said “no”.", 'He said "no".', "references have curly quotation marks, the hypotheses of a straight ones"),
        ("It’s late", "It's late", "references have curly apostrophes, the hypotheses of a straight ones"),
        ("a – b", "a - b", "references have en dash dashes, the hypotheses of a hyphen ones"),
        ("5\u00a0km", "5 km away", "references have no break spaces between words"),
        ("it was 3,5 or 4,5", "it was 3.5 or 4.5", "references have comma decimal separators"),
        ("The Cat", "the cat", "the hypotheses of a are in lower case, the references are not"),
        ("Добрый день", "Dobryj den", "the hypotheses of a are in Latin script, the references in Cyrillic"),
    ],
)
def test_a_habit_in_which_the_sides_differ_is_named(reference: str, hypothesis: str, told: str) -> None:
    messages = [one.message for one in systematic_differences(pairs(reference, hypothesis))]
    assert any(message.startswith(told) for message in messages), messages


def test_a_few_differences_are_no_habit() -> None:
    assert list(systematic_differences(pairs("He said “no”.", 'He said "no".', count=1))) == []
    assert list(systematic_differences(pairs('“a” "b"', '“a” "b"'))) == []


def test_habits_are_evened_out_and_offsets_stay() -> None:
    segment = Segment("It’s “ИÌ” – ok", "«x»", ("It’s “no”\u00a0– OK",))
    data = Dataset("d", (Entry("0", "a", segment, spans=(ErrorSpan(5, 6),)),))
    plain = normalize(data, ["quotes", "apostrophes", "dashes", "spaces", "case"])
    (entry,) = plain.entries
    assert entry.segment.references == ('it\'s "no" - ok',)
    assert entry.segment.source == '"x"'
    assert len(entry.segment.hypothesis) == len(segment.hypothesis)
    assert plain.name == "d (normalized: quotes, apostrophes, dashes, spaces, case)"
    with pytest.raises(UserError, match="--normalize: no habit 'x'"):
        normalize(data, ["x"])


def test_an_artefact_is_named_before_any_feature(tmp_path: object) -> None:
    data = pairs("He said “no” to me.", 'He said "no" to me.', count=20)
    found = findings(data)
    assert SYSTEMATIC in {one.code for one in found}
    run = evaluate(data, ["chrf"], output=tmp_path / "run", budget=0, findings=found, draws=20)
    report = build_report(run)
    assert [one.code for one in report.warnings] == [SYSTEMATIC]
    assert not any("weakest area" in sentence for sentence in report.verdict)
