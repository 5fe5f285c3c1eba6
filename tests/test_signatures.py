"""Signatures are text, and the text is read back exactly."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from whyscore.errors import WhyscoreError
from whyscore.registry import build
from whyscore.registry import list_names as known_names
from whyscore.types import Signature

_TEXTS = st.text(st.sampled_from("ab|:%7C3A25;\"'\\\n é"))
_FACTS = st.lists(st.tuples(_TEXTS, _TEXTS)).map(tuple)


@given(_TEXTS, _FACTS)
@example("chrf", (("nrefs", "1"), ("pattern", "a:b|c")))
@example('lookup("a|b.tsv")', (("a:b.txt", "12ab"), ("%7C", "%257C"), ("%25", "%253A")))
def test_a_signature_is_read_back_as_it_was_written(spec: str, facts: tuple[tuple[str, str], ...]) -> None:
    signature = Signature(spec, facts)
    assert Signature.parse(str(signature)) == signature


@pytest.mark.parametrize("kind", ["metric", "tagger"])
def test_signatures_of_the_registry_are_read_back(kind: str) -> None:
    read = []
    for name in known_names(kind):
        try:
            signature = build(name, kind).signature()  # type: ignore[attr-defined]
        except WhyscoreError:  # needs an option, a model or an extra
            continue
        assert Signature.parse(str(signature)) == replace(signature, stable=True)
        assert str(signature).count("|") == len(signature.facts)
        read.append(name)
    assert len(read) > 1


@given(_FACTS)
def test_facts_are_replaced_in_place_or_added(facts: tuple[tuple[str, str], ...]) -> None:
    known = dict(facts)
    changed = Signature("chrf", tuple(known.items())).with_facts(nrefs=2)
    assert dict(changed.facts) == known | {"nrefs": "2"}
    assert [key for key, _ in changed.facts] == list(known | {"nrefs": "2"})
