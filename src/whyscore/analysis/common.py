"""What every analysis takes: metrics by spec, object or function; segments, languages, the score store.

Which language texts are in, identified offline by py3langid, after langid.py (Lui and Baldwin 2012, P12-3005).

1. Take a sample of the texts that have words, spread evenly over all of them.
2. Identify each text by itself and let the texts vote, each with as many votes as it has characters.
3. The language with the most votes is the answer. It is sure where it has two thirds of the votes and enough text was
   read; otherwise it says so.

The package is loaded at the first question (it unpacks 4.6 MB), so a run that never asks does not wait for it.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, cast, runtime_checkable

import regex
from platformdirs import user_cache_path

from whyscore.errors import DataError, SpecError, UnknownName
from whyscore.metrics.callable import Callable as CallableMetric
from whyscore.models.encoders.loading import find_uncovered, warn_uncovered
from whyscore.protocols import Encoder, Explainer, LanguageBound, Metric, SupportsLanguages
from whyscore.registry import Spec, build, parse, spec_of
from whyscore.scoring.store import Store
from whyscore.types import Dataset, Entry, Finding, Inputs, Segment

_SAMPLE = 200
_CHARACTERS = 60
"""Fewer characters in all are too few for an answer that one can rely on."""
_MAJORITY = 2 / 3
_LETTERS = regex.compile(r"\p{L}")


class Identified(NamedTuple):
    """A language, and how much of the sampled text was taken for it."""

    code: str
    share: float
    sure: bool


def identify(texts: Sequence[str]) -> Identified | None:
    """Return the language of most of the texts; None where there are no letters.

    >>> identify(["Tämä on suomenkielinen lause.", "Kissa istui matolla ja katseli ikkunasta ulos."])
    Identified(code='fi', share=1.0, sure=True)
    """
    import py3langid  # noqa: PLC0415 - loads its tables

    with_letters = [text for text in texts if _LETTERS.search(text)]
    step = max(1, len(with_letters) // _SAMPLE)
    votes: Counter[str] = Counter()
    for text in with_letters[::step][:_SAMPLE]:
        votes[str(py3langid.classify(text)[0])] += len(text)
    if not votes:
        return None
    total = sum(votes.values())
    code, count = min(votes.items(), key=lambda vote: (-vote[1], vote[0]))
    return Identified(code, count / total, total >= _CHARACTERS and count / total >= _MAJORITY)


MetricLike = str | Metric | Callable[..., object]
Segments = Sequence[Segment] | Dataset
UNSUPPORTED = "language-unsupported"
"""The code of the finding about a metric whose model was not made for the language of the data."""


def as_metric(metric: MetricLike) -> Metric:
    """Return the metric that a spec, an object or a plain function stands for."""
    if isinstance(metric, str):
        return cast("Metric", build(metric))
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, Sequence):
        raise SpecError(f"one metric at a time, got {metric!r}: call once per metric, or use score_systems for several")
    return CallableMetric(target=metric)


def requested_name(component: MetricLike | object) -> str:
    """Return what results call a component: the spec as it was asked for, tidied, or else its signature's.

    >>> requested_name("chrf( word_order = 2 )"), requested_name("my_metric.py:score")
    ('chrf(word_order=2)', 'my_metric.py:score')
    """
    if isinstance(component, str):
        spec = parse(component)
        return component.strip() if spec == Spec("callable", (component.strip(),)) else str(spec)
    return (
        as_metric(component).signature().spec
        if callable(component) or isinstance(component, Metric)
        else spec_of(component)
    )


def as_segments(segments: Segments) -> Sequence[Segment]:
    """Return the segments of a data set or of a list, refusing anything else with a hint."""
    if isinstance(segments, Dataset):
        return segments.segments
    if isinstance(segments, Segment | str):
        raise DataError(
            f"expected a list of segments, got {segments!r}: pass [Segment(hypothesis, source, references)]"
        )
    for i, segment in enumerate(segments):
        if not isinstance(segment, Segment):
            raise DataError(f"item {i} is {segment!r}: pass Segment(hypothesis, source, references) objects")
    return segments


def as_dataset(data: Segments) -> Dataset:
    """Return a data set, also for plain segments, which are taken as those of one system."""
    if isinstance(data, Dataset):
        return data
    entries = tuple(Entry(str(k), "system", segment) for k, segment in enumerate(as_segments(data)))
    return Dataset("segments", entries)


@runtime_checkable
class Encoding(Protocol):
    """A metric that reads texts through an encoder."""

    def encoder(self) -> Encoder:
        """Return what turns texts into vectors."""


def with_languages(metric: Metric, languages: tuple[str, str] | None) -> Metric:
    """Return the metric, told the languages where its numbers depend on them and nobody told it before.

    For a metric with an encoder whose numbers stay the same, languages that its model was not made for are told.

    >>> from whyscore.registry import build
    >>> [with_languages(build(spec), ("en", "ru")).language for spec in ("mee", "mee(language='de')")]
    ['ru', 'de']
    """
    if languages is None:
        return metric
    if isinstance(metric, SupportsLanguages) and (localised := metric.for_languages(*languages)) is not metric:
        return localised
    if isinstance(metric, Encoding):
        warn_uncovered(metric.encoder(), languages if Inputs.SOURCE in metric.inputs else languages[1:])
    return metric


def unsupported_languages(metric: Metric, languages: tuple[str | None, str | None]) -> tuple[str, ...]:
    """Return which of the languages, those of the texts that it reads, the model behind a metric was not made for.

    >>> from whyscore.registry import build
    >>> unsupported_languages(build("xbertscore"), ("fi", "en")), unsupported_languages(build("chrf"), ("fi", "fi"))
    (('fi',), ())
    """
    if isinstance(metric, LanguageBound):
        return metric.unsupported(*languages)
    if not isinstance(metric, Encoding):
        return ()
    read = languages if Inputs.SOURCE in metric.inputs else languages[1:]
    return find_uncovered(metric.encoder(), [code for code in read if code is not None])


def identify_languages(dataset: Dataset) -> tuple[tuple[str | None, str | None], tuple[Finding, ...]]:
    """Return the languages of source and hypotheses: as given, else as identified; and what is to be said of that."""
    if dataset.languages is not None:
        return dataset.languages, ()
    sources = [segment.source for segment in dataset.segments if segment.source is not None]
    codes, notes = [], []
    for what, texts in (("source", sources), ("hypotheses", [segment.hypothesis for segment in dataset.segments])):
        guess = identify(texts)
        codes.append(guess.code if guess is not None and guess.sure else None)
        if guess is not None and not guess.sure:
            unsure = f"the language of the {what} could not be identified with confidence (perhaps {guess.code!r})"
            notes.append(Finding("language-unsure", f"{unsure}: name the languages, for example -l en-{guess.code}"))
    return (codes[0], codes[1]), tuple(notes)


def language_support(
    dataset: Dataset, metrics: Mapping[str, Metric]
) -> tuple[dict[str, tuple[str, ...]], tuple[Finding, ...]]:
    """Return, by metric, the languages of the data that it does not support; and the findings about that.

    Languages that nobody gave are identified, where a metric depends on them.
    """
    bound = {name: metric for name, metric in metrics.items() if isinstance(metric, LanguageBound | Encoding)}
    if not bound:
        return {}, ()
    languages, notes = identify_languages(dataset)
    unsupported = {name: unsupported_languages(metric, languages) for name, metric in bound.items()}
    missing = {name: codes for name, codes in unsupported.items() if codes}
    given = dataset.languages is not None
    return missing, (*notes, *(unsupported_finding(name, codes, given=given) for name, codes in missing.items()))


def unsupported_finding(metric: str, languages: Sequence[str], *, given: bool) -> Finding:
    """Return the warning about a metric whose model was not made for languages of the data."""
    named = " and ".join(repr(code) for code in languages)
    how = "" if given else " (identified from the texts; name the languages with -l if that is wrong)"
    return Finding(UNSUPPORTED, f"{metric} does not support {named}{how}: do not base a decision on its scores")


def explainer_with_languages(explainer: str | Explainer, languages: tuple[str, str] | None) -> Explainer:
    """Return the explainer, told the languages where it depends on them and nobody told it before."""
    built = cast("Explainer", build(explainer, "explainer") if isinstance(explainer, str) else explainer)
    return built.for_languages(*languages) if languages and isinstance(built, SupportsLanguages) else built


def languages_of(segments: object) -> tuple[str, str] | None:
    """Return the languages of a data set; bare segments have none."""
    return segments.languages if isinstance(segments, Dataset) else None


def of_systems(dataset: Dataset, systems: Sequence[str]) -> Dataset:
    """Return the entries of these systems alone, system by system in this order; an unknown name is an error."""
    for name in systems:
        if name not in dataset.systems:
            raise UnknownName.among(f"system of {dataset.name}", name, dataset.systems)
    rows: dict[str, list[int]] = {name: [] for name in systems}
    for k, entry in enumerate(dataset.entries):
        if entry.system in rows:
            rows[entry.system].append(k)
    indices = [k for row in rows.values() for k in row]
    return dataset.take(indices)


def store(path: str | Path | None = None) -> Store:
    """Return the score store at a path, or the one in the user's cache folder, which the command line uses too.

    It knows its size (`size()`, `held()`), forgets (`prune(days=30)`) and goes into `Resources(store=...)`;
    `whyscore.scoring.store` checks and repairs it. Nothing is made on disk before something is stored.
    """
    return Store(user_cache_path("whyscore") / "scores.sqlite" if path is None else Path(path))
