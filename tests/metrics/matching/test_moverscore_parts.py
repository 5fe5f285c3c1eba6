"""Transport against brute force and the published formulation; how texts become units with masses."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from whyscore.errors import DataError, MissingExtra, SpecError
from whyscore.metrics.matching import moverscore as moverscore_transport
from whyscore.metrics.matching.moverscore import (
    NOTHING,
    Cost,
    Cut,
    costs,
    drop_flows,
    moving,
    over_windows,
    solver,
    stop_words,
    transport,
    transport_whole,
)
from whyscore.metrics.matching.weights import table_of
from whyscore.models.encoders.embedded import Embedded
from whyscore.models.word_vectors import unit as unit_rows
from whyscore.protocols import Encoded

ot = pytest.importorskip("ot", reason="the extra 'mover' is not installed")

Matrix = NDArray[np.float64]


def points(seed: int, number: int, width: int = 6) -> Matrix:
    return unit_rows(np.random.default_rng(seed).standard_normal((number, width)))


def masses(seed: int, number: int) -> Matrix:
    return np.random.default_rng(seed).random(number) + 0.01


@given(
    st.lists(st.floats(-10, 10), min_size=1, max_size=8).flatmap(
        lambda xs: st.tuples(st.just(xs), st.lists(st.floats(-10, 10), min_size=len(xs), max_size=len(xs)))
    )
)
def test_points_on_a_line_move_in_their_order(lists: tuple[list[float], list[float]]) -> None:
    left, right = (np.array(values) for values in lists)
    cost = np.abs(left[:, None] - right[None, :])
    uniform = np.ones(len(left))
    expected = np.abs(np.sort(left) - np.sort(right)).mean()
    assert transport(cost, uniform, uniform).distance == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("number", range(1, 7))
@pytest.mark.parametrize("kind", ["squared", "euclid"])
def test_equal_masses_are_the_best_assignment(number: int, kind: Cost) -> None:
    cost = costs(points(number, number), points(number + 50, number), kind)
    best = min(cost[range(number), order].mean() for order in map(list, itertools.permutations(range(number))))
    assert transport(cost, np.ones(number), np.ones(number)).distance == pytest.approx(best, abs=1e-12)


@settings(max_examples=40)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 10_000), st.sampled_from(["squared", "euclid"]))
def test_the_published_square_form_has_the_same_optimum(rows: int, columns: int, seed: int, kind: Cost) -> None:
    left, right = points(seed, rows), points(seed + 1, columns)
    a, b = masses(seed + 2, rows), masses(seed + 3, columns)
    both = np.concatenate([left, right])
    square = costs(both, both, kind)
    first = np.concatenate([a, np.zeros(columns)]) / a.sum()
    second = np.concatenate([np.zeros(rows), b]) / b.sum()
    expected = float((ot.emd(first, second, square) * square).sum())
    moved = transport(costs(left, right, kind), a, b)
    assert moved.distance == pytest.approx(expected, abs=1e-9)
    assert moved.flow.sum(axis=1) == pytest.approx(a / a.sum(), abs=1e-9)
    assert moved.flow.sum(axis=0) == pytest.approx(b / b.sum(), abs=1e-9)


@given(st.integers(1, 12), st.integers(0, 10_000), st.sampled_from(["squared", "euclid"]))
def test_a_text_is_at_no_distance_from_itself(number: int, seed: int, kind: Cost) -> None:
    rows, weights = points(seed, number), masses(seed, number)
    assert transport(costs(rows, rows, kind), weights, weights).distance == 0


@given(st.integers(1, 7), st.integers(1, 7), st.integers(0, 10_000))
def test_the_way_back_is_as_long(rows: int, columns: int, seed: int) -> None:
    cost = costs(points(seed, rows), points(seed + 1, columns), "euclid")
    a, b = masses(seed, rows), masses(seed + 1, columns)
    assert transport(cost, a, b).distance == pytest.approx(transport(cost.T, b, a).distance, abs=1e-9)


def test_distances_are_those_of_vectors_of_unit_length() -> None:
    left, right = points(1, 3), points(2, 4)
    plain = np.linalg.norm(left[:, None] - right[None, :], axis=2)
    assert costs(left, right, "euclid") == pytest.approx(plain, abs=1e-12)
    assert costs(left, right, "squared") == pytest.approx(plain**2, abs=1e-12)
    assert costs(np.zeros((1, 6)), right, "squared") == pytest.approx(np.full((1, 4), 2.0))
    assert {"squared": 2.0, "euclid": pytest.approx(2**0.5)} == NOTHING


def test_small_flows_are_left_out_on_request() -> None:
    assert drop_flows(np.diag([0.9, 0.1]), 0.5) == pytest.approx(np.diag([0.9, 0.1]))
    many = np.array([0.4, 0.3, 0.2, 0.1])
    # k = 2: what is below the second smallest
    assert drop_flows(np.diag(many), 0.5) == pytest.approx(np.diag([0.4, 0.3, 0.2, 0.0]))
    rows = points(3, 4)
    units = np.concatenate([rows, rows])
    found = transport_whole(costs(units, units, "euclid"), many, many, 0.5)
    assert found.flow == pytest.approx(np.diag([0.4, 0.3, 0.2, 0.0]))
    assert found.distance == 0


@given(st.integers(0, 99), st.integers(1, 6), st.integers(1, 6))
def test_units_of_both_texts_together_are_moved_at_the_same_cost(seed: int, rows: int, columns: int) -> None:
    left, right = points(seed, rows), points(seed + 1, columns)
    a, b = masses(seed, rows), masses(seed + 1, columns)
    units = np.concatenate([left, right])
    whole = transport_whole(costs(units, units, "euclid"), a, b, 1e-9)
    plain = transport(costs(left, right, "euclid"), a, b)
    assert whole.distance == pytest.approx(plain.distance, abs=1e-9)


def test_a_missing_solver_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    moverscore_transport.solver.cache_clear()

    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(moverscore_transport.importlib, "import_module", absent)
    with pytest.raises(MissingExtra, match=re.escape("moverscore needs extra packages: pip install 'whyscore[mover]'")):
        solver()


# Units


def encoded(text: str, parts: list[str], width: int = 4) -> Encoded:
    """Pieces that stand one after the other in the text, between two special ones."""
    spans, begin = [(0, 0)], 0
    for part in parts:
        start = text.index(part, begin)
        begin = start + len(part)
        spans.append((start, begin))
    spans.append((len(text), len(text)))
    rows = np.random.default_rng(len(text)).standard_normal((len(spans), width)).astype(np.float32)
    special = np.zeros(len(spans), dtype=np.bool_)
    special[[0, -1]] = True
    return Encoded(rows, np.array(spans), ("[CLS]", *parts, "[SEP]"), special, len(spans))


TEXT = "The walking cat, didn't it?"
PIECES = ["The", "walk", "ing", "cat", ",", "didn", "'", "t", "it", "?"]


def kept(**options: object) -> list[str]:
    cut = Cut(**{"tokens": "words", "specials": "exclude", "ngram": 1, "mean": "weighted"} | options)  # type: ignore[arg-type]
    own = encoded(TEXT, PIECES)
    return [own.pieces[piece] for piece in moving(TEXT, own, cut).kept.tolist()]


def test_punctuation_and_the_rest_of_words_are_dropped() -> None:
    assert kept() == ["The", "walk", "cat", "didn", "it"]
    assert kept(specials="include") == ["[CLS]", "The", "walk", "cat", "didn", "it", "[SEP]"]
    assert kept(tokens="keep") == PIECES
    assert kept(stop_words=frozenset({"the", "it"})) == ["walk", "cat", "didn"]


def test_blanks_in_the_span_of_a_piece_do_not_hide_the_start_of_a_word() -> None:
    text = "a cat"
    own = Encoded(np.ones((2, 3), np.float32), np.array([[0, 1], [1, 5]]), ("▁a", "▁cat"), np.zeros(2, np.bool_), 2)
    assert moving(text, own, Cut("words", "exclude", 1, "weighted")).kept.tolist() == [0, 1]


def test_the_published_rule_drops_marked_pieces_and_ascii_punctuation_alone() -> None:
    pieces = ("Die", "Kat", "##ze", ",", "…", "„", "...", "[UNK]", "und")
    spans = np.array([[k, k + 1] for k in range(len(pieces))])
    own = Encoded(np.ones((len(pieces), 3), np.float32), spans, pieces, np.zeros(len(pieces), np.bool_), len(pieces))
    cut = Cut("drop", "include", 1, "weighted")
    assert [pieces[k] for k in moving("abcdefghi", own, cut).kept] == ["Die", "Kat", "…", "„", "...", "[UNK]", "und"]
    without = Cut("drop", "include", 1, "weighted", frozenset({"und"}))
    assert "und" not in [pieces[k] for k in moving("abcdefghi", own, without).kept]


def test_special_pieces_weigh_as_asked() -> None:
    own = encoded("a b", ["a", "b"])
    assert moving("a b", own, Cut("keep", "include", 1, "weighted")).masses.tolist() == [1, 1, 1, 1]
    assert moving("a b", own, Cut("keep", "weightless", 1, "weighted")).masses.tolist() == [0, 1, 1, 0]
    assert moving("a b", own, Cut("keep", "exclude", 1, "weighted")).masses.tolist() == [1, 1]
    assert moving("", encoded("", []), Cut("keep", "exclude", 1, "weighted")).empty


class Weights:
    """Weighs pieces by a dictionary."""

    def __init__(self, **known: float) -> None:
        self.known = known

    def of(self, pieces: list[str]) -> Matrix:
        return np.array([self.known[piece] for piece in pieces])


def test_units_are_windows_with_the_sum_of_the_weights() -> None:
    own = encoded("a b c", ["a", "b", "c"])
    weights = Weights(a=1.0, b=3.0, c=0.0)
    found = moving("a b c", own, Cut("keep", "exclude", 2, "weighted", weights=weights))  # type: ignore[arg-type]
    rows = own.vectors[1:4].astype(np.float64)
    assert found.masses.tolist() == [4.0, 3.0]
    assert found.vectors == pytest.approx(unit_rows(np.stack([rows[0] / 4 + rows[1] * 3 / 4, rows[1]])))
    plain = moving("a b c", own, Cut("keep", "exclude", 2, "plain", weights=weights))  # type: ignore[arg-type]
    assert plain.vectors == pytest.approx(unit_rows(np.stack([rows[0] + rows[1], rows[1] + rows[2]])))
    assert [found.describe(0), found.describe(1)] == ["a b", "b c"]


def test_a_text_shorter_than_a_window_is_one() -> None:
    own = encoded("a b", ["a", "b"])
    found = moving("a b", own, Cut("keep", "exclude", 5, "weighted"))
    assert (found.size, found.masses.tolist()) == (2, [2.0])
    assert moving("", encoded("", []), Cut("keep", "exclude", 3, "weighted")).masses.tolist() == []


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=9), st.integers(1, 4))
def test_windows_are_spread_over_their_pieces(values: list[float], size: int) -> None:
    table = over_windows(np.array(values), size)
    assert np.nansum(table) == pytest.approx(size * sum(values), abs=1e-9)
    assert table.shape == (len(values) + size - 1, size)


def test_rare_pieces_weigh_more(tmp_path: Path) -> None:
    (tmp_path / "ref.txt").write_text("the cat\nthe dog\n", "utf-8")
    table = table_of(str(tmp_path / "ref.txt"), Embedded())
    assert table is not None
    pieces = Embedded().encode(["the cat"])[0]
    weights = dict(zip(pieces.pieces, table.of(pieces.pieces), strict=True))
    assert weights["▁the"] == 0
    assert weights["▁cat"] == pytest.approx(np.log(3 / 2))
    assert table.of(["never seen"]) == pytest.approx([np.log(3)])
    assert [weights[piece] for piece, flag in zip(pieces.pieces, pieces.special, strict=True) if flag] == [0, 0]
    assert table_of("uniform", Embedded()) is None
    assert table_of(None, Embedded()) is None


def test_files_that_cannot_be_counted_are_refused(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("the cat\n", "utf-8")
    with pytest.raises(SpecError, match=re.escape("idf needs at least two texts to count in, got 1")):
        table_of(str(tmp_path / "one.txt"), Embedded())
    with pytest.raises(DataError, match=re.escape("no such file: idf takes a file with one text per line, or")):
        table_of(str(tmp_path / "none.txt"), Embedded())
    with pytest.raises(DataError, match=re.escape("no such file: stop_words takes a file with one word per line")):
        stop_words(str(tmp_path / "none.txt"))
    (tmp_path / "stop.txt").write_text("The\n\n of \n", "utf-8")
    assert stop_words(str(tmp_path / "stop.txt")) == {"the", "of"}
