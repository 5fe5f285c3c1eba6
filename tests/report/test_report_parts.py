"""The parts of a report, each worked out by hand on small data."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyscore.errors import DataError
from whyscore.models.surprisal import piece_surprisal
from whyscore.report import build as costly_module
from whyscore.report import build_report
from whyscore.report.build import agreement, costly_words, figures_in, safe_svg
from whyscore.report.explorer import ALPHABET, STEPS, centres, explorer, pack_borders, pack_values, units
from whyscore.report.page import Scale, axis, bars, dots, escape_json, html, interval, policy, scale
from whyscore.runs.evaluate import evaluate
from whyscore.runs.folder import Run
from whyscore.text.splitters import white_space
from whyscore.types import HYPOTHESIS, Dataset, Entry, Estimate, ExplanationRecord, Segment

CODE = {character: number for number, character in enumerate(ALPHABET)}
SPACE = 'xmlns="http://www.w3.org/2000/svg"'


def unpack_borders(packed: str) -> list[tuple[int, int]]:
    """What the page does."""
    numbers, value, shift = [], 0, 0
    for character in packed:
        value += (CODE[character] & 31) << shift
        shift += 5
        if not CODE[character] & 32:
            numbers.append(value)
            value, shift = 0, 0
    found, position = [], 0
    for gap, length in zip(numbers[::2], numbers[1::2], strict=True):
        found.append((position + gap, position + gap + length))
        position += gap + length
    return found


@given(st.text(max_size=80))
def test_borders_come_out_in_utf_16_units(text: str) -> None:
    words = white_space(text)
    whole = text.encode("utf-16-le", "surrogatepass")
    found = unpack_borders(pack_borders(text, words.spans))
    cut = [whole[2 * start : 2 * end].decode("utf-16-le", "surrogatepass") for start, end in found]
    assert cut == list(words)
    assert units(text) == len(whole) // 2


def test_a_long_word_needs_more_characters() -> None:
    text = "x" * 20_000
    assert unpack_borders(pack_borders(text, [(0, 20_000)])) == [(0, 20_000)]


@given(st.lists(st.floats(-1e6, 1e6), max_size=20))
def test_importances_are_kept_to_a_thousandth_of_the_largest(values: list[float]) -> None:
    largest, packed = pack_values(np.array(values))
    pairs = [packed[k : k + 2] for k in range(0, len(packed), 2)]
    found = [(CODE[first] * 64 + CODE[second] - STEPS - 1) / STEPS * largest for first, second in pairs]
    assert np.allclose(found, values, atol=1e-3 * max(map(abs, values), default=0.0) + 1e-12)


def test_every_text_stands_once_in_the_page(run: Run) -> None:
    found = explorer(run)
    texts = found["texts"]
    assert len(texts) == len(set(texts))
    assert [texts[k] for k in found["hypotheses"][1]] == [entry.segment.hypothesis for entry in run.dataset.entries[4:]]
    assert found["systems"] == ["good", "bad"]
    assert found["scores"][1] == [[1.0, 0.75, 1.0, 1.0], [0.75, 0.75, 0.75, 0.75]]
    assert found["errors"][0] == [[], [[0, 0, 3, 2, 0]], [], []]
    assert found["categories"] == ["Accuracy"]
    assert set(found["why"][0]) == {f"{i},{j}" for i in range(2) for j in range(4)}


def test_texts_that_differ_between_systems_are_kept_apart(run: Run) -> None:
    entries = list(run.dataset.entries)
    entries[4] = replace(entries[4], segment=replace(entries[4].segment, source="anders"))
    found = explorer(replace(run, dataset=replace(run.dataset, entries=tuple(entries))))
    source, references = found["own"]["1,0"]
    assert found["texts"][source] == "anders"
    assert [found["texts"][k] for k in references] == ["a cat sat here"]


def test_what_finds_no_room_is_counted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whyscore.report.explorer.EXPLAINED", 100)
    found = explorer(run)
    kept = sum(len(texts) for metric in found["why"] for texts in metric.values())
    assert kept > 0
    assert kept + found["left_out"] == len(run.explanations)
    assert "were left out to keep this page small" in html(build_report(run))


def told(run: Run, values: list[list[float]], metric: str = "chrf") -> Run:
    """The run with other explanations of its hypotheses."""
    made = []
    for entry, numbers in enumerate(values):
        explained = run.dataset.entries[entry]
        words = white_space(explained.segment.hypothesis)
        names = explained.id, explained.system, metric, "erasure", HYPOTHESIS, tuple(words)
        importance = np.array(numbers, dtype=np.float64)
        made.append(ExplanationRecord(*names, np.array(words.spans), importance, entry=entry))
    copy = replace(run)
    copy.__dict__["explanations"] = tuple(made)
    return copy


def test_words_that_cost_more_than_usual_come_first(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costly_module, "SHOWN", 3)
    # zzz ran home / zzz dogs: the fifth to eighth entry all begin with zzz.
    values = [[1, 1, 1, 1]] * 4 + [[-2, 1, 1, 1], [-1, 1, 1, 1], [-3, 1, 1, 1], [-1, 1, -1, 1]]
    (found,) = costly_words(told(run, values))
    (word,) = found.words
    assert (word.word, word.count, word.costing, word.total, word.example) == ("zzz", 5, 4, -7.0, "2")
    assert found.texts == 8


def test_words_are_counted_without_case_and_punctuation(run: Run) -> None:
    entries = [replace(entry, segment=replace(entry.segment, hypothesis=text)) for entry, text in zip(
        run.dataset.entries[:2], ("Cat, dog", "»cat« dog"), strict=True)]  # fmt: skip
    few = replace(run, dataset=replace(run.dataset, entries=tuple(entries)))
    (found,) = costly_words(told(few, [[-1, 1], [-1, 1]]))
    assert [word.word for word in found.words] == ["cat"]


def test_function_words_do_not_cost(run: Run) -> None:
    entries = [
        replace(entry, segment=replace(entry.segment, hypothesis="the dog")) for entry in run.dataset.entries[:2]
    ]
    few = replace(run, dataset=replace(run.dataset, entries=tuple(entries)))
    assert costly_words(told(few, [[-1, 1], [-1, 1]])) == ()


def test_values_that_no_score_was_asked_for_are_not_points(run: Run) -> None:
    values = [[1, 1, 1, 1]] * 4 + [[-2, 1, 1, 1]] * 4
    (found,) = costly_words(told(run, values))
    assert not found.points
    asked = told(run, values)
    asked.__dict__["explanations"] = tuple(replace(one, probes=4) for one in asked.explanations)
    (found,) = costly_words(asked)
    assert found.points


def test_a_bar_beyond_the_axis_has_a_mark() -> None:
    on = Scale(0.0, 0.16)
    assert "cut" not in bars(0.16, 0.1, 0.16, on)
    assert "cut" in bars(1.0, None, None, on)
    assert "cut" in bars(0.1, 0.0, 0.5, on)
    assert "16 %" in axis(on)


def test_nothing_costs_where_every_word_earns(run: Run) -> None:
    assert costly_words(told(run, [[0, 0, 0, 0]] * 8)) == ()


def test_similarities_are_coloured_around_their_median(run: Run) -> None:
    similar = told(run, [[0.9, 0.8, 0.7, 0.8]] * 8)
    assert centres(similar.explanations) == {"chrf": {"hypothesis": 0.8}}
    assert centres(told(run, [[0.9, -0.8, 0.7, 0.8]] * 8).explanations) == {}


def test_highlights_are_judged_by_the_marked_words(run: Run) -> None:
    right = told(run, [[1, 1, 1, 1], [-1, 1, 1, 1], [1] * 4, [1] * 4, *[[-1, 1, 1, 1]] * 4])
    (row,) = agreement(right)
    assert (row.metric, row.side, row.n) == ("chrf", "hypothesis", 5)
    assert (row.auc.value, row.ap.value) == (1.0, 1.0)
    (row,) = agreement(told(run, [[0, 0, 0, 0]] * 8))
    assert row.auc.value == 0.5
    assert row.ap.value == 0.25


def test_without_marked_errors_there_is_nothing_to_judge(run: Run) -> None:
    entries = tuple(replace(entry, spans=None) for entry in run.dataset.entries)
    bare = replace(run, dataset=replace(run.dataset, entries=entries))
    assert agreement(bare) == ()
    page = html(build_report(bare))
    assert 'id="people"' not in page
    assert "human:" in page  # the mean of human scores is still there


def test_an_embedded_text_cannot_end_its_block() -> None:
    hostile = "</script><!--\u2028\u2029&\ud800"
    text = escape_json({"text": hostile})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text)["text"] == hostile


def test_the_policy_names_the_style_and_the_script_of_the_page(run: Run) -> None:
    page = html(build_report(run))
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    for text in (script, style):
        assert f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}" in page
    assert "default-src &#39;none&#39;" in page
    assert "unsafe" not in policy(style, script)
    assert re.findall(r'(?:src|href)="(?!#)[^"]*"', page) == []
    assert "style=" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


def test_pictures_lose_everything_that_could_run_or_fetch() -> None:
    bad = (
        f'<svg {SPACE} xmlns:xlink="http://www.w3.org/1999/xlink" onload="x()"><style>*{{}}</style>'
        '<a href="http://a"><text>lost</text></a><image xlink:href="http://a"/><foreignObject/>'
        '<rect fill="url(http://a)" width="3" style="x"/><g clip-path="url(#c)"><text>&lt;b&gt;</text></g></svg>'
    )
    assert safe_svg(bad) == (f'<svg {SPACE}><rect width="3" /><g clip-path="url(#c)"><text>&lt;b&gt;</text></g></svg>')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<svg", "not an SVG picture"),
        ("<html/>", "not an SVG picture: its root is 'html'"),
        (f'<!DOCTYPE svg [<!ENTITY a "b">]><svg {SPACE}>&a;</svg>', "may declare entities"),
    ],
)
def test_what_is_no_picture_is_refused(text: str, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        safe_svg(text, "bad.svg")


def test_pictures_of_a_run_are_shown_with_their_captions(run: Run, tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "p_grid.svg").write_text(f'<svg {SPACE}><rect width="3"/></svg>', "utf-8")
    (tmp_path / "figures" / "p_grid.txt").write_text("What <p> gains\n", "utf-8")
    (figure,) = figures_in(tmp_path)
    assert (figure.title, figure.caption) == ("p grid", "What <p> gains")
    page = html(replace(build_report(run), figures=(figure,)))
    assert '<rect width="3" />' in page
    assert "What &lt;p&gt; gains" in page


def test_small_pictures_keep_to_their_scale() -> None:
    on = scale([Estimate(5.0, 0.0, 10.0), Estimate(float("nan"))])
    assert on == Scale(0.0, 10.0)
    assert 'cx="50.0"' in interval(Estimate(5.0, 0.0, 10.0), on)
    assert 'x1="2.0" x2="98.0"' in interval(Estimate(5.0, 0.0, 10.0), on)
    assert interval(Estimate(float("nan")), on) == ""
    assert 'class="bar turned"' in bars(-1.0, None, None, Scale(-1.0, 1.0))
    assert 'class="under" x="2.0" y="2" width="48.0"' in dots(0.2, 0.1, Scale(0.0, 0.2))


def test_rarity_is_the_mean_surprisal_of_the_words_in_the_reference(run: Run) -> None:
    means = explorer(run)["rarity"]
    for entry, found in zip(run.dataset.of("good").entries, means, strict=True):
        words = entry.segment.references[0].split()
        expected = np.mean([piece_surprisal(white_space(word))[0] for word in words])
        assert found == pytest.approx(expected, abs=0.0051)


def test_the_features_say_which_tagger_found_them(run: Run) -> None:
    report = build_report(run)
    assert report.tagger == "rules"
    assert "Features were found by <code>rules</code>" in html(report)
    tagged = replace(report, features=tuple(replace(row, feature="upos:NOUN") for row in report.features[:1]))
    assert "<bdi>nouns</bdi>" in html(tagged)


def test_three_runs_are_a_trend_and_two_are_a_change(tmp_path: Path) -> None:
    runs = []
    for number in range(3):
        texts = [(f"the cat {k} sat", "the cat" if k < 3 - number else f"the cat {k} sat") for k in range(4)]
        entries = [Entry(str(k), "<b>mt", Segment(text, None, (whole,))) for k, (whole, text) in enumerate(texts)]
        run = evaluate(Dataset("x", tuple(entries)), ["chrf"], output=tmp_path / f"week{number}", draws=20, tagger=None)
        runs.append(run)
    trend = build_report(runs).trend
    assert [(one.run, one.system, one.metric) for one in trend] == [(f"week{k}", "<b>mt", "chrf") for k in range(3)]
    assert [one.score for one in trend] == [run.totals["chrf"]["<b>mt"] for run in runs]
    page = html(build_report(runs))
    assert page.count("<polyline") == 1
    assert "&lt;b&gt;mt</text>" in page
    assert build_report(runs[:2]).trend == ()
    assert "<polyline" not in html(build_report(runs[:2]))


def test_features_in_few_segments_are_folded_unless_there_are_no_others(run: Run) -> None:
    report = build_report(run)
    one = report.features[0]
    common = replace(one, feature="upos:NOUN", share=0.5, flags=())
    rare = replace(one, feature="ent:FAC", share=0.5, flags=("few",))
    page = html(replace(report, features=(common, rare)))
    assert page.index(">nouns<") < page.index("1 feature in few segments") < page.index(">names of buildings<")
    assert "in few segments</summary>" not in html(replace(report, features=(rare,)))


def test_the_names_of_an_axis_do_not_overlap() -> None:
    assert axis(Scale(-0.07, 0.43)).count("<text") == 2
    assert axis(Scale(-0.5, 0.5)).count("<text") == 3
