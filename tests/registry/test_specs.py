"""Specs: text -> object -> the same text."""

import contextlib
import dataclasses
import re
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyscore.errors import SpecError, UnknownName
from whyscore.registry import KINDS, Spec, build, component, format_value, list_names, load, parse, register, spec_of
from whyscore.settings import describe_type
from whyscore.text.maskers import Delete, Replace
from whyscore.text.splitters import Chunks

names = st.from_regex(r"[a-z][a-z_0-9]{0,8}", fullmatch=True).filter(
    lambda name: name not in {"inf", "nan", "true", "false", "none"} and not __import__("keyword").iskeyword(name)
)
literals = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
)


def specs(inner: st.SearchStrategy[object]) -> st.SearchStrategy[Spec]:
    values = st.one_of(literals, st.lists(inner, max_size=3).map(tuple), inner)
    named = st.dictionaries(names, values, max_size=3).map(lambda held: tuple(held.items()))
    return st.builds(Spec, names, st.lists(values, max_size=2).map(tuple), named)


nested = st.recursive(specs(literals), specs, max_leaves=5)


@given(nested)
def test_a_written_spec_is_read_back_equal(spec: Spec) -> None:
    once = parse(str(spec))  # a bare name inside a spec is read as a word; only its field knows that it is a component
    assert parse(str(once)) == once
    assert once.name == spec.name
    assert [name for name, _ in once.named] == [name for name, _ in spec.named]


@given(st.lists(literals, max_size=3), st.dictionaries(names, literals, max_size=3))
def test_literal_options_are_written_and_read_exactly(positional: list[object], named: dict[str, object]) -> None:
    spec = Spec("name", tuple(positional), tuple(named.items()))  # type: ignore[arg-type]
    assert parse(str(spec)) == spec


def test_bare_names_stand_for_themselves() -> None:
    assert parse("rouge(kind=L)") == Spec("rouge", (), (("kind", "L"),))


def test_a_function_is_short_for_the_callable_metric() -> None:
    assert str(parse("my_metric.py:score")) == 'callable("my_metric.py:score")'
    assert str(parse("package.module:function")) == 'callable("package.module:function")'


def test_infinite_numbers_can_be_written() -> None:
    assert format_value(parse("power(p=-inf)").named[0][1]) == "-inf"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("chrf(", "cannot read the spec 'chrf(': '(' was never closed. Write name or name(option=value)"),
        ("", "cannot read the spec '': invalid syntax. Write name or name(option=value)"),
        ("3", "cannot read the spec '3': expected a name such as chrf or lime(samples=200)"),
        ("f(a-b)", "cannot read 'a - b' in the spec 'f(a-b)': only literals and names. Put texts in quotes"),
        ("f(**x)", "cannot read '**' in the spec 'f(**x)': write each option as name=value"),
        ("__import__('os').system('ls')", "only literals and names"),
        ("f(lambda: 1)", "only literals and names"),
        ("f([x for x in y])", "only literals and names"),
        ("f" * 10_001, "a spec of 10001 characters is too long; at most 10000 are read"),
        ("(" * 500 + ")" * 500, "cannot read the spec"),
        ("lookup('a\\x00b')", "no text or path has the character '\\x00'"),
        ("a\0.py:score", "no text or path has the character '\\x00'"),
        ("replace('\\ud800')", "no text or path has the character '\\ud800'"),
    ],
)
def test_what_is_no_spec_is_refused(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        parse(text)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(SpecError):
        parse(text)


def test_an_unknown_metric_is_answered_with_the_near_one() -> None:
    with pytest.raises(UnknownName, match=re.escape("no metric named 'chfr'. Did you mean 'chrf'? Known: ")):
        build("chfr")


@pytest.mark.parametrize(
    ("spec", "kind", "message"),
    [
        ("chunk(size='a')", "splitter", "chunk: size is 'a', expected a whole number"),
        ("chunk(size=True)", "splitter", "chunk: size is True, expected a whole number"),
        ("chunk(siz=2)", "splitter", "no option of chunk named 'siz'. Did you mean 'size'? Known: size"),
        ("chunk(1, 2)", "splitter", "chunk takes at most 1 options, got 2: chunk(1, 2)"),
        ("chunk(2, size=2)", "splitter", "chunk: size is given twice in chunk(2, size=2)"),
        ("chunk(0)", "splitter", "chunk: size is 0, expected 1 or more"),
        ("char(3)", "splitter", "char takes at most 0 options, got 1: char(3)"),
        ("char(x=3)", "splitter", "char takes no options, got 'x'"),
        ("delete(mode=other)", "masker", "delete: mode is 'other', expected 'default' or 'compat'"),
    ],
)
def test_wrong_options_are_answered_with_the_right_ones(spec: str, kind: str, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        build(spec, kind)


def test_options_of_the_wrong_type_are_refused_in_python_too() -> None:
    with pytest.raises(SpecError, match=re.escape("Chunks: size is '3', expected a whole number")):
        Chunks("3")  # type: ignore[arg-type]


# Components that cannot be made from nothing.
NEEDING = {
    "boosted": "boosted(metric=chrf, explainer=lime(samples=7), p=1.5, w=0.6)",
    "callable": 'callable(target="json:dumps", version="2")',
    "comet": 'comet(model="some/folder")',
    "ensemble": 'ensemble(members=(lime(samples=7), shap), how="sum", weights=(1.0, 2.0))',
    "metric ensemble": 'ensemble(members=(chrf, xbertscore(phrases=2)), how="mean")',
    "infill": 'infill(corpus=("a text", "another"), top=3)',
    "infill_file": 'infill_file(path="candidates.jsonl", threshold=0.5)',
    "infill_model": 'infill_model(model="some/folder")',
    "input_marginalization": 'input_marginalization(masker=infill(corpus="ref.txt"), top=5)',
    "lmscore": 'lmscore(model="some/folder")',
    "metricx": 'metricx(model="some/folder")',
    "power_means": 'power_means(model="some/folder", layers=3)',
    "encoder sentence": 'sentence(model="some/folder")',
    "transformer": 'transformer(model="some/folder", layer=3)',
    "transquest": 'transquest(model="some/folder")',
    "logprob": 'logprob(path="probabilities.jsonl", pool="sum")',
    "lookup": 'lookup(path="scores.tsv", higher_is_better=False)',
    "conllu": 'conllu(reference="ref.conllu", hypothesis=("a.conllu", "b.conllu"))',
    "pretagged": 'pretagged(reference="ref.tag", hypothesis=("a.tag", "b.tag"))',
    "tagger lexicon": 'lexicon(entries=("words:he,she", "regex:[0-9]+%"))',
    "scorer lexicon": 'lexicon(path="concreteness.tsv", kind="sentiment")',
}
REGISTERED = [(kind, name) for kind in KINDS for name in list_names(kind)]


@pytest.mark.parametrize(("kind", "name"), REGISTERED)
def test_every_component_comes_back_from_its_spec(kind: str, name: str) -> None:
    given = NEEDING.get(f"{kind} {name}", NEEDING.get(name, name))
    made = build(given, kind)
    assert build(spec_of(made), kind) == made
    assert spec_of(build(spec_of(made), kind)) == spec_of(made)
    if given == name:
        assert spec_of(made) == name


def changed(value: object) -> object:
    """Another value of the same type, for fields whose type says enough."""
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else value


@pytest.mark.parametrize(
    ("kind", "name"), [pair for pair in REGISTERED if not NEEDING.keys() & {pair[1], " ".join(pair)}]
)
def test_changed_options_are_written_and_read_back(kind: str, name: str) -> None:
    plain = build(name, kind)
    for field in (own for own in dataclasses.fields(load(kind, name)) if own.init):  # type: ignore[arg-type]
        other = changed(getattr(plain, field.name))
        try:
            made = dataclasses.replace(plain, **{field.name: other})
        except SpecError:
            continue  # an option that is only read together with another
        assert build(spec_of(made), kind) == made


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20), st.integers(1, 1000))
def test_components_come_back_from_their_specs(token: str, size: int) -> None:
    for made, kind in ((Replace(token), "masker"), (Chunks(size), "splitter"), (Delete("compat"), "masker")):
        assert build(spec_of(made), kind) == made


@dataclasses.dataclass(frozen=True)
class Twin:
    """Holds two maskers, one optional, and a list."""

    first: object = component("masker", default=Delete())
    others: object = component("masker", default=())
    how: Literal["sum", "mean"] = "sum"
    weight: float = 1.0
    names: tuple[str, ...] = ()


def test_components_inside_components_are_built_and_written() -> None:
    register("explainer", "twin_for_this_test", Twin)
    text = 'twin_for_this_test(first=replace(token="x"), others=(delete, replace), weight=2.0, names=("a",))'
    made = build(text, "explainer")
    assert made == Twin(Replace("x"), (Delete(), Replace()), weight=2.0, names=("a",))
    assert spec_of(made) == text
    assert build("twin_for_this_test(weight=2)", "explainer").weight == 2.0
    with pytest.raises(SpecError, match=re.escape("expected a masker, got 3: write its name or name(option=value)")):
        build("twin_for_this_test(first=3)", "explainer")
    with pytest.raises(SpecError, match="expected an explainer, got 3: "):
        build("ensemble(3)", "explainer")


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (tuple[int, ...], "a list of whole numbers"),
        (tuple[str, ...] | None, "a list of texts or None"),
        (tuple[bool, ...], "a list of True or False"),
        (tuple[int | Literal["auto"], ...], "a list of a whole number or 'auto'"),
        (object, "an object"),
        (Replace, "a Replace"),
    ],
)
def test_types_are_described_in_words(hint: object, words: str) -> None:
    assert describe_type(hint) == words


def test_a_name_can_be_taken_once() -> None:
    with pytest.raises(
        SpecError, match=re.escape("the metric name 'chrf' is taken by whyscore.metrics.lexical.chrf:Chrf;")
    ):
        register("metric", "chrf", Twin)
    with pytest.raises(SpecError, match=re.escape("'a b' cannot name a metric: use letters, digits and _")):
        register("metric", "a b", Twin)
    with pytest.raises(UnknownName, match=re.escape("no kind of component named 'metrik'. Did you mean 'metric'?")):
        register("metrik", "x", Twin)


def test_an_object_without_a_name_has_no_spec() -> None:
    with pytest.raises(SpecError, match="has no spec: register its class under a name first"):
        spec_of(object())
