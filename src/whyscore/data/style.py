"""Typographic habits in which references and hypotheses differ throughout, and how to even them out.

A metric that compares characters counts every straight quotation mark as an error where the references have curly ones.
That says nothing about the translation, so it is found before any claim about features.

1. A habit is a choice between variants of one mark: quotation marks, apostrophes, dashes, spaces, decimal separators.
   The variants are counted in the references and in the hypotheses of each system.
2. References and hypotheses differ where both use the mark often enough, and a variant that has at least four fifths of
   its uses on one side has at most one fifth on the other.
3. Case differs where most references have capitals and hardly any hypothesis; scripts differ where most letters are of
   another script.
4. `normalize` replaces every variant by the plain one. One character becomes one character, so offsets stay valid.
   Number formats and scripts are not changed: that would be guessing.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar, get_args

import regex

from whyscore.errors import UserError
from whyscore.types import Dataset, Finding, Segment

Habit = Literal["quotes", "apostrophes", "dashes", "spaces", "case"]
HABITS: tuple[Habit, ...] = get_args(Habit)
SYSTEMATIC = "systematic-difference"
"""The code of the finding about habits in which references and hypotheses differ throughout."""

_LEAST = 5
_MOST_SHARE, _FEW_SHARE = 0.8, 0.2
_HARDLY = 0.05
_SAMPLE = 5_000
D = TypeVar("D", bound=Dataset)


@dataclass(frozen=True, slots=True)
class _Mark:
    """A mark with its variants: what each looks like, in words and as a pattern."""

    name: str
    variants: Mapping[str, regex.Pattern[str]]
    habit: Habit | None = None
    """What `--normalize` calls it; None where it cannot be evened out."""


def _patterns(**variants: str) -> dict[str, "regex.Pattern[str]"]:
    return {name.replace("_", " "): regex.compile(pattern) for name, pattern in variants.items()}


_MARKS = (
    _Mark("quotation marks", _patterns(straight='"', curly="[“”„‟]", angular="[«»]", corner="[「」『』]"), "quotes"),
    _Mark("apostrophes", _patterns(straight=r"(?<=\p{L})'", curly=r"(?<=\p{L})[’ʼ]"), "apostrophes"),
    _Mark("dashes", _patterns(hyphen=r"(?<=\s)-+(?=\s)", en_dash=r"(?<=\s)–(?=\s)", em_dash=r"—"), "dashes"),
    _Mark("spaces between words", _patterns(plain=r"(?<=\S) (?=\S)", no_break="[\u00a0\u202f]"), "spaces"),
    _Mark(
        "decimal separators",
        _patterns(point=r"(?<![\d.,])\d{1,3}\.\d{1,2}(?![\d.,]\d)", comma=r"(?<![\d.,])\d{1,3},\d{1,2}(?![\d.,]\d)"),
    ),
)
_CAPITAL = regex.compile(r"\p{Lu}")
_SCRIPTS = _patterns(
    Latin=r"\p{Latin}",
    Cyrillic=r"\p{Cyrillic}",
    Greek=r"\p{Greek}",
    Arabic=r"\p{Arabic}",
    Hebrew=r"\p{Hebrew}",
    Devanagari=r"\p{Devanagari}",
    Han=r"[\p{Han}\p{Hiragana}\p{Katakana}]",
    Hangul=r"\p{Hangul}",
)


def systematic_differences(dataset: Dataset) -> Iterator[Finding]:
    """Yield the habits in which references and the hypotheses of systems differ throughout, one finding per habit."""
    references = [text for segment in dataset.segments[:_SAMPLE] for text in segment.references]
    if not references:
        return
    systems: dict[str, list[str]] = {}
    for entry in dataset.entries:
        systems.setdefault(entry.system, []).append(entry.segment.hypothesis)
    samples = {name: texts[:_SAMPLE] for name, texts in systems.items()}
    for mark in _MARKS:
        yield from _marks_differ(mark, references, samples)
    yield from _case_differs(references, samples)
    yield from _scripts_differ(references, samples)


def _marks_differ(mark: _Mark, references: Sequence[str], systems: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    there = _counts(mark.variants, references)
    differing: dict[tuple[str, str], list[str]] = {}
    for system, texts in systems.items():
        here = _counts(mark.variants, texts)
        pair = _find_opposites(there, here)
        if pair is not None:
            differing.setdefault(pair, []).append(system)
    for (usual, different), names in differing.items():
        cure = f"; --normalize {mark.habit} evens them out" if mark.habit else ""
        message = (
            f"references have {usual} {mark.name}, the hypotheses of {_name_systems(names, systems)} {different} ones"
        )
        yield Finding(SYSTEMATIC, f"{message}: scores and features count that as errors{cure}")


def _counts(variants: Mapping[str, "regex.Pattern[str]"], texts: Sequence[str]) -> Counter[str]:
    joined = "\n".join(texts)
    return Counter({name: len(pattern.findall(joined)) for name, pattern in variants.items()})


def _find_opposites(references: Counter[str], hypotheses: Counter[str]) -> tuple[str, str] | None:
    """Return the usual variant of each side where the sides differ throughout."""
    if min(references.total(), hypotheses.total()) < _LEAST:
        return None
    (first, count), (second, number) = references.most_common(1)[0], hypotheses.most_common(1)[0]
    clear = count >= _MOST_SHARE * references.total() and number >= _MOST_SHARE * hypotheses.total()
    apart = (
        hypotheses[first] <= _FEW_SHARE * hypotheses.total() and references[second] <= _FEW_SHARE * references.total()
    )
    return (first, second) if first != second and clear and apart else None


def _case_differs(references: Sequence[str], systems: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    there = _share_of_capitals(references)
    names = [name for name, texts in systems.items() if len(texts) >= _LEAST and _share_of_capitals(texts) < _HARDLY]
    if len(references) >= _LEAST and there > 0.5 and names:  # noqa: PLR2004 - most texts
        message = f"the hypotheses of {_name_systems(names, systems)} are in lower case, the references are not"
        yield Finding(SYSTEMATIC, f"{message}: scores and features count that as errors; --normalize case evens it out")


def _share_of_capitals(texts: Sequence[str]) -> float:
    return sum(_CAPITAL.search(text) is not None for text in texts) / max(1, len(texts))


def _scripts_differ(references: Sequence[str], systems: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    there = _count_scripts(references)
    for system, texts in systems.items():
        pair = _find_opposites(there, _count_scripts(texts))
        if pair is not None:
            message = f"the hypotheses of {system} are in {pair[1]} script, the references in {pair[0]}"
            yield Finding(SYSTEMATIC, f"{message}: is this the right file?")


def _count_scripts(texts: Sequence[str]) -> Counter[str]:
    """Return how many letters each script has; every distinct character is looked at once."""
    counts: Counter[str] = Counter()
    for character, count in Counter("".join(texts)).items():
        for name, pattern in _SCRIPTS.items():
            if pattern.match(character):
                counts[name] += count
    return Counter({name: counts[name] for name in _SCRIPTS})


def _name_systems(names: Sequence[str], systems: Mapping[str, object]) -> str:
    return "all systems" if len(names) == len(systems) > 1 else ", ".join(names)


_PLAIN: Mapping[Habit, Mapping[str, str]] = {
    "quotes": dict.fromkeys("“”„‟«»「」『』", '"'),
    "apostrophes": dict.fromkeys("’‘ʼ‚", "'"),
    "dashes": dict.fromkeys("‐‑‒–—―−", "-"),
    "spaces": dict.fromkeys("\u00a0\u202f\u2009\u2007\u3000", " "),
    "case": {},
}


def normalize(dataset: D, habits: Sequence[str]) -> D:
    """Return the data set with these habits evened out in all its texts; its name says so."""
    for habit in habits:
        if habit not in HABITS:
            raise UserError(f"--normalize: no habit {habit!r}. Known: {', '.join(HABITS)}")
    table = str.maketrans({key: value for habit in HABITS if habit in habits for key, value in _PLAIN[habit].items()})

    def plain(text: str) -> str:
        replaced = text.translate(table)
        lower = replaced.lower()
        # A few capitals have lower forms of two characters, which would move the marked errors behind them.
        return lower if "case" in habits and len(lower) == len(replaced) else replaced

    entries = tuple(replace(entry, segment=_rewrite(entry.segment, plain)) for entry in dataset.entries)
    return replace(dataset, entries=entries, name=f"{dataset.name} (normalized: {', '.join(habits)})")


def _rewrite(segment: Segment, plain: Callable[[str], str]) -> Segment:
    source = None if segment.source is None else plain(segment.source)
    context = tuple(_rewrite(previous, plain) for previous in segment.context)
    return Segment(plain(segment.hypothesis), source, tuple(map(plain, segment.references)), context)
