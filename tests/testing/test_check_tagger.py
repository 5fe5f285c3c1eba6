"""The contract of taggers holds for those that need no model, and catches those that break it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from whyscore.errors import ContractError
from whyscore.protocols import Tagged
from whyscore.registry import build
from whyscore.testing import check_tagger
from whyscore.types import Signature


@pytest.mark.parametrize("spec", ["rules", "rules(language='ru')", "lexicon('list:{}')"])
def test_taggers_without_a_model_keep_the_contract(spec: str, tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("Ada\nLondon\n", "utf-8")
    check_tagger(build(spec.format(tmp_path / "names.txt"), "tagger"))  # type: ignore[arg-type]


class Whole:
    """Tags the whole text."""

    def signature(self) -> Signature:
        return Signature("whole", stable=False)

    def tag(self, texts: Sequence[str]) -> list[tuple[Tagged, ...]]:
        return [(Tagged(0, len(text), ("X",)),) if text else () for text in texts]


class TooFar(Whole):
    def tag(self, texts: Sequence[str]) -> list[tuple[Tagged, ...]]:
        return [(Tagged(0, len(text) + 1, ("X",)),) for text in texts]


class Few(Whole):
    def tag(self, texts: Sequence[str]) -> list[tuple[Tagged, ...]]:
        return super().tag(texts)[:1]


class Unnamed(Whole):
    def labels(self) -> tuple[str, ...]:
        return ("Y",)


class Together(Whole):
    def tag(self, texts: Sequence[str]) -> list[tuple[Tagged, ...]]:
        return super().tag(texts) if len(texts) > 1 else [() for _ in texts]


def test_a_tagger_needs_no_more_than_two_methods() -> None:
    check_tagger(Whole())


@pytest.mark.parametrize(
    ("tagger", "message"),
    [
        (object(), "object is no tagger"),
        (TooFar(), "outside of it or empty"),
        (Few(), "one answer per text, got 1 for 6"),
        (Unnamed(), r"labels\(\) does not name \['X'\]"),
        (Together(), "gives other tags"),
    ],
)
def test_taggers_that_break_it_are_told_how(tagger: Whole, message: str) -> None:
    with pytest.raises(ContractError, match=message):
        check_tagger(tagger)
