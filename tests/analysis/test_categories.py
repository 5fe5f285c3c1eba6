"""Names of spans: what is put in on purpose is recognised, what has a name keeps it, what cannot be named is said."""

from pathlib import Path

import numpy as np
import pytest

from support.cli import Run
from whyscore.analysis.categories import CATEGORIES, KINDS, SpanNamer, SpanReader, make_examples, name_spans
from whyscore.analysis.train.perturbations import PERTURBATIONS
from whyscore.data.dataset import dataset_lines
from whyscore.data.reading import read_foreign
from whyscore.errors import DataError
from whyscore.experiments.categories import categories
from whyscore.types import Dataset, Entry, ErrorSpan, Segment, Side

NOUNS = {"Katze": "cat", "Hund": "dog", "Baum": "tree", "Fluss": "river", "Wagen": "wagon", "Garten": "garden"}


def make_dataset(spans: tuple[ErrorSpan, ...] = (), category: str | None = None) -> Dataset:
    """Return 36 short texts; the first has a wrong number and spans, or all have a wrong and marked one."""
    entries = []
    for k, ((one, first), (other, second)) in enumerate((a, b) for a in NOUNS.items() for b in NOUNS.items()):
        text = f"The {first} was near {k + 10} of the {second}s , I think ."
        number = k + 50 if category or not k else k + 10
        segment = Segment(text, f"Der {one} war nahe bei {number} von {other} , denke ich .")
        start = text.index(str(k + 10))
        own = spans if k == 0 else ()
        if category:
            own = (ErrorSpan(start, start + 2, "minor", category),)
        entries.append(Entry(str(k), "a", segment, spans=own))
    return Dataset("toy", tuple(entries), ("de", "en"))


def test_every_perturbation_stands_for_a_category() -> None:
    assert set(CATEGORIES) == set(PERTURBATIONS)


def test_kinds_are_recognised_in_texts_that_were_not_learned_from() -> None:
    examples, kinds = make_examples(make_dataset().segments)
    rows = SpanReader.of("rules", []).read(examples)
    learned = np.arange(len(rows)) % 2 == 0
    namer = SpanNamer.fit(np.repeat(rows[learned], 2, axis=0), np.repeat(np.array(kinds)[learned], 2).tolist())
    assert set(namer.kinds) <= set(KINDS)
    values = namer.probabilities(rows[~learned])
    assert values.sum(axis=1) == pytest.approx(np.ones(len(values)))
    best = np.array(namer.kinds)[values.argmax(axis=1)]
    assert np.mean(best == np.array(kinds)[~learned]) > 2 / len(namer.kinds)


def test_spans_without_a_category_get_one_and_others_keep_theirs() -> None:
    text = make_dataset().entries[0].segment.hypothesis
    place = text.index("10")
    spans = (
        ErrorSpan(place, place + 2), ErrorSpan(0, 3, category="Style/Awkward"), ErrorSpan(0, 3, side=Side.SOURCE),
        ErrorSpan(4, 4),
    )  # fmt: skip
    data = make_dataset(spans)
    names = [span.category for span in name_spans(data).entries[0].spans or ()]
    assert names == ["Accuracy/Mistranslation", "Style/Awkward", "Accuracy/Omission", "Accuracy/Omission"]
    kinds = [span.category for span in name_spans(data, "perturbation").entries[0].spans or ()]
    assert kinds == ["number", "Style/Awkward", "deletion", "deletion"]
    assert name_spans(data) == name_spans(data)


def test_texts_without_another_side_cannot_be_named() -> None:
    alone = Dataset("d", (Entry("0", "a", Segment("a cat"), spans=(ErrorSpan(0, 1),)),))
    with pytest.raises(DataError, match="naming spans needs hypotheses with sources or references"):
        name_spans(alone)
    few = Dataset("d", (Entry("0", "a", Segment("a cat", "eine Katze"), spans=(ErrorSpan(0, 1),)),))
    with pytest.raises(DataError, match="too few texts to learn kinds of errors from"):
        name_spans(few)


def test_names_are_judged_beside_the_majority() -> None:
    result = categories(make_dataset(category="Accuracy/Mistranslation"), draws=20)
    found = {one.name: one for one in result.namings}
    assert result.spans == 36
    assert result.nameable == 1
    assert found["majority"].accuracy.value == found["tagger"].accuracy.value == 1
    assert found["perturbation and tagger"].accuracy.value > 0.5
    (row,) = result.categories
    assert row.recall == found["perturbation and tagger"].accuracy.value
    styled = categories(make_dataset(category="Style/Awkward"), draws=0)
    assert styled.nameable == 0
    assert [one.accuracy.value for one in styled.namings] == [1, 0, 0, 0]
    with pytest.raises(DataError, match="no span of a hypothesis has a category"):
        categories(make_dataset())


def test_predicted_spans_are_compared_with_the_marked_ones_they_touch() -> None:
    result = categories(make_dataset(category="Accuracy/Mistranslation"), metric="qe", draws=0)
    assert result.overlapping is not None
    assert 0 < result.overlapping <= 1
    assert result.spans <= 36 * 12


def test_convert_names_spans(run: Run, tmp_path: Path) -> None:
    data = make_dataset(tuple(ErrorSpan(start, start + 3) for start in (0, 4)))
    path = tmp_path / "data.jsonl"
    path.write_text("".join(dataset_lines(data)), "utf-8")
    done = run("convert", path, "--to", "whyscore", "--categories", "mqm", "-o", tmp_path / "named.jsonl")
    assert done.code == 0, done.err
    spans = read_foreign(tmp_path / "named.jsonl", "whyscore").entries[0].spans or ()
    assert [span.category in CATEGORIES.values() for span in spans] == [True, True]
