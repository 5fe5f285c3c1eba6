"""From a run to a report: every part is worked out here, once, and every form of the report shows the same.

1. Features: the shares that the run recorded, and which segments have too few or too many of each.
2. Agreement: do the words that cost points lie where professionals marked errors? Every explained text with error
   spans is a sentence of the word-level task: a word is marked if a span touches it, and its error score is minus its
   importance. AUC is the probability that a marked word ranks above an unmarked one.
3. Costly words: of every explained text, words below the neutral value cost, by the distance from it. They are counted
   without case and surrounding punctuation, and ranked by what all occurrences cost beyond what as many words cost on
   average: otherwise the list would only show the most frequent words. A word must have cost at least twice. Function
   words are left out: those whose unigram surprisal by the subwords of the built-in encoder is low.
4. Pictures that other analyses left in the run folder. SVG can carry scripts, styles and links: every element and
   attribute that is not a known shape or text is left out, so that nothing in a picture can run or fetch.
5. `without_texts` makes a report for sharing externally. Left out are the segment browser, lists of words and of
   matched pairs, pictures, the command line (it may hold texts), and the messages of findings and problems (they may
   quote), except of kinds that speak of systems and numbers alone. What stays: names of systems, metrics, features and
   segments, every score, interval and test, and how many words cost how much.
"""

import math
import re
import shlex
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

import numpy as np
import regex
from numpy.typing import NDArray

from whyscore.analysis.common import UNSUPPORTED
from whyscore.analysis.metaeval.words import CONTROLS, below_control, control_scores
from whyscore.data.checks import UNEVEN
from whyscore.data.style import SYSTEMATIC
from whyscore.errors import DataError, SpecError
from whyscore.models.surprisal import piece_surprisal
from whyscore.report.explorer import centres, explorer, match_summaries
from whyscore.report.model import (
    Agreement,
    CostlyWord,
    CostlyWords,
    Figure,
    Provenance,
    Report,
    Step,
    SystemRow,
    WordCounts,
    about,
    feature_name,
)
from whyscore.report.verdict import with_advice, with_verdict
from whyscore.runs.folder import Run
from whyscore.stats.resampling import bootstrap_mean
from whyscore.stats.words import Ragged, agree, chance
from whyscore.text.files import text_of
from whyscore.types import (
    Entry,
    ErrorSpan,
    Estimate,
    ExplanationRecord,
    FeatureShare,
    Finding,
    FloatVector,
    Place,
    RunMetric,
    Side,
    Signature,
    Words,
)


def feature_shares(run: Run) -> tuple[FeatureShare, ...]:
    """Return one row per metric, feature and system; features that no text has are left out.

    So are metrics that the run does not have: merged runs keep those alone that all of them have.
    """
    metrics = [metric.name for metric in run.metrics]
    shares = [share for share in run.shares if share.metric in metrics]
    seen = {
        share.feature
        for share in shares
        if share.n or any(map(share.discrepancy.get("all", {}).get, ("under", "over")))
    }
    occurring = [share for share in shares if share.feature in seen]
    worst = {feature: _largest_loss(occurring, feature) for feature in seen}
    return tuple(
        sorted(occurring, key=lambda share: (metrics.index(share.metric), worst[share.feature], share.feature))
    )


def _largest_loss(shares: Sequence[FeatureShare], feature: str) -> float:
    """Return what orders the features: minus the mean share that is lost, where enough segments are behind it."""
    losses = [
        share.share
        for share in shares
        if share.feature == feature and share.share is not None and "few" not in share.flags
    ]
    return -sum(losses) / len(losses) if losses else 1.0


def features_by_segment(run: Run) -> dict[str, object]:
    """Return which features each segment has too few or too many of, as systems x segments of numbers."""
    if not run.segment_features:
        return {}
    names: dict[str, int] = {}
    place = {system: i for i, system in enumerate(run.dataset.systems)}
    column = {name: j for j, name in enumerate(run.dataset.ids)}
    numbers: dict[str, list[list[list[int]]]] = {
        key: [[[] for _ in column] for _ in place] for key in ("under", "over")
    }
    for segment_feature in run.segment_features:
        for key, features in (("under", segment_feature.under), ("over", segment_feature.over)):
            numbers[key][place[segment_feature.system]][column[segment_feature.id]] = [
                names.setdefault(name, len(names)) for name in features
            ]
    return {"names": [feature_name(name) for name in names], **numbers}


def agreement(run: Run) -> tuple[Agreement, ...]:
    """Return one row per metric and side; sides without a text that has both kinds of words are left out."""
    rows = []
    for metric in run.metrics:
        for side in (Side.HYPOTHESIS, Side.SOURCE):
            records = [
                explanation
                for explanation in run.explanations
                if explanation.metric == metric.name and explanation.place.side is side
            ]
            row = _agreement(run, records, metric.name, metric.explainer or "", side)
            if row is not None:
                rows.append(row)
    return tuple(rows)


def _agreement(run: Run, records: list[ExplanationRecord], metric: str, explainer: str, side: Side) -> Agreement | None:
    rated = [
        record for record in records if run.dataset.entries[record.entry].spans is not None and len(record.importance)
    ]
    # A word without a number cannot be ranked; its whole text is left out.
    rated = [record for record in rated if np.isfinite(record.importance).all()]
    if not rated:
        return None
    gold = Ragged.of([_mark_words(record, run.dataset.entries[record.entry].spans or ()) for record in rated])
    scores = agree(gold, Ragged.of([-record.importance for record in rated]))
    count = int(scores.evaluated.sum())
    if count == 0:
        return None
    luck = float(chance(gold).of("ap").mean())
    auc, controls = bootstrap_mean(scores.of("auc")), _controls(run, rated, gold, side)
    finding = below_control(f"{metric}, {side}", auc.value, controls)
    return Agreement(metric, explainer, str(side), auc, bootstrap_mean(scores.of("ap")), luck, count, controls, finding)


def _controls(run: Run, records: Sequence[ExplanationRecord], gold: Ragged, side: Side) -> dict[str, float]:
    """Return the AUC of what is known of the words alone, on the same texts."""
    texts = [run.dataset.entries[record.entry].segment.text(record.place) for record in records]
    words = [
        Words(text, tuple((start, end) for start, end in record.spans.tolist()))
        for text, record in zip(texts, records, strict=True)
    ]
    language = None if run.dataset.languages is None else run.dataset.languages[0 if side is Side.SOURCE else 1]
    scores = {name: [control_scores(name, text, language) for text in words] for name in CONTROLS}
    defined = {name: [row for row in rows if row is not None] for name, rows in scores.items()}
    return {
        name: float(np.nanmean(agree(gold, Ragged.of(rows)).auc))
        for name, rows in defined.items()
        if len(rows) == len(records)
    }


def _mark_words(record: ExplanationRecord, spans: tuple[ErrorSpan, ...]) -> FloatVector:
    """Return 1 for every word that a span touches."""
    marks = np.zeros(len(record.spans))
    for span in spans:
        if Place(span.side, span.reference) == record.place:
            marks[(record.spans[:, 0] < span.end) & (record.spans[:, 1] > span.start)] = 1.0
    return marks


SHOWN = 12
_LEAST = 2
_NAMED = 3
"""Systems that a title names."""
# Surprisals in nats below which the words of a language are function words: of 46 English ones "been" has 8.3 and the
# others less, "time" has 8.0; of German and French ones none has more than 9.8, nouns have more.
_FREQUENT = {"en": 8.0}
_FREQUENT_ELSEWHERE = 9.5
_EDGES = regex.compile(r"^[^\w]+|[^\w]+$")
_SIDES = (Side.HYPOTHESIS, Side.REFERENCE)


def costly_words(run: Run) -> tuple[CostlyWords, ...]:
    """Return the costliest words of each metric, of hypotheses and of references; metrics without any are left out."""
    middles = centres(run.explanations)
    lists = []
    for metric in run.metrics:
        for side in _SIDES:
            records = [
                explanation
                for explanation in run.explanations
                if explanation.metric == metric.name and explanation.place.side is side
            ]
            words = _costly(run, records, middles.get(metric.name, {}).get(str(side), 0.0))
            if words:
                lists.append(CostlyWords(metric.name, str(side), len(records), words, _in_points(records)))
    return tuple(lists)


def word_counts(run: Run) -> tuple[WordCounts, ...]:
    """Return how many words cost, for each metric and side; where no word does by itself there is nothing to count.

    Where the median stands for neither good nor bad, half of the words lie below it by definition.
    """
    middles = centres(run.explanations)
    counts = []
    for metric in run.metrics:
        for side in Side:
            records = [
                explanation
                for explanation in run.explanations
                if explanation.metric == metric.name and explanation.place.side is side
            ]
            cost = _costs(records, 0.0)
            if str(side) not in middles.get(metric.name, {}) and cost.any():
                counted = len(records), len(cost), int((cost < 0).sum()), float(cost.sum())
                counts.append(WordCounts(metric.name, str(side), *counted, _in_points(records)))
    return tuple(counts)


def _in_points(records: Sequence[ExplanationRecord]) -> bool:
    """Return whether importances are differences of scores: they are where masked texts were scored."""
    return any(record.probes for record in records)


def _costs(records: Sequence[ExplanationRecord], middle: float) -> FloatVector:
    """Return what every word costs: 0, or its distance below the middle."""
    values = np.concatenate([np.zeros(0), *(record.importance for record in records)])
    return np.where(np.isfinite(values), np.minimum(0.0, values - middle), 0.0)


class _Occurrences(NamedTuple):
    """Every word of every text: which word it is, what it costs (below 0), and where it stands."""

    words: list[str]
    """The distinct words."""
    number: NDArray[np.int64]
    cost: FloatVector
    record: NDArray[np.int64]


def _costly(run: Run, records: Sequence[ExplanationRecord], middle: float) -> tuple[CostlyWord, ...]:
    occurrences = _occurrences(records, middle)
    size = len(occurrences.words)
    counts = np.bincount(occurrences.number, minlength=size)
    costing = np.bincount(occurrences.number, weights=occurrences.cost < 0, minlength=size).astype(np.int64)
    totals = np.bincount(occurrences.number, weights=occurrences.cost, minlength=size)
    excess = totals - totals.sum() / max(1, counts.sum()) * counts
    likely = [k for k in np.flatnonzero((excess < 0) & (costing >= _LEAST)).tolist() if occurrences.words[k]]
    language = run.dataset.languages[1] if run.dataset.languages else "en"
    ranked = sorted(likely, key=lambda k: (excess[k], occurrences.words[k]))
    often = islice((k for k in ranked if not _is_frequent(occurrences.words[k], language)), SHOWN)
    return tuple(
        CostlyWord(
            occurrences.words[k],
            int(counts[k]),
            int(costing[k]),
            float(totals[k]),
            _costliest_segment(run, records, occurrences, k),
        )
        for k in often
    )


def _is_frequent(word: str, language: str) -> bool:
    """Return whether a word is so frequent that it is most likely a function word."""
    least = _FREQUENT.get(language.lower().partition("-")[0].partition("_")[0], _FREQUENT_ELSEWHERE)
    return bool(piece_surprisal(Words(word, ((0, len(word)),)))[0] < least)


def _costliest_segment(run: Run, records: Sequence[ExplanationRecord], occurrences: _Occurrences, word: int) -> str:
    """Return the id of the segment in which a word costs most, the first of several."""
    there = np.flatnonzero(occurrences.number == word)
    worst = int(there[occurrences.cost[there].argmin()])
    return run.dataset.entries[records[int(occurrences.record[worst])].entry].id


def _occurrences(records: Sequence[ExplanationRecord], middle: float) -> _Occurrences:
    numbering: dict[str, int] = {}
    forms: dict[str, int] = {}
    numbers: list[int] = []
    for record in records:
        for word in record.words:
            number = forms.get(word)
            if number is None:
                form = _EDGES.sub("", word).casefold()
                number = forms[word] = numbering.setdefault(form, len(numbering))
            numbers.append(number)
    cost = _costs(records, middle)
    texts = np.repeat(np.arange(len(records)), [len(record.importance) for record in records])
    return _Occurrences(list(numbering), np.array(numbers, dtype=np.int64), cost, texts)


FOLDER = "figures"
_SPACE = "{http://www.w3.org/2000/svg}"
_ELEMENTS = {
    "svg", "g", "path", "rect", "line", "circle", "ellipse", "polyline", "polygon", "text", "tspan", "title", "desc",
    "defs", "clipPath", "linearGradient", "stop",
}  # fmt: skip
_ATTRIBUTES = {
    "viewBox", "width", "height", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "rx", "ry", "d", "points", "dx",
    "dy", "transform", "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray",
    "opacity",
    "stroke-linecap", "stroke-linejoin", "stroke-miterlimit", "text-anchor", "font-family", "font-size", "font-weight",
    "font-style", "clip-path", "id", "role", "aria-label", "aria-roledescription", "aria-hidden", "offset",
    "stop-color", "dominant-baseline", "preserveAspectRatio",
}  # fmt: skip
_LOCAL = re.compile(r"url\(\s*(?!#)", re.IGNORECASE)


def figures_in(folder: Path) -> tuple[Figure, ...]:
    """Return the SVG pictures in the folder `figures` of a run; a text file of the same name is the caption."""
    figures = []
    for file in sorted((folder / FOLDER).glob("*.svg")):
        caption = file.with_suffix(".txt")
        words = text_of(caption).strip() if caption.exists() else ""
        figures.append(Figure(file.stem.replace("_", " "), safe_svg(text_of(file), str(file)), words))
    return tuple(figures)


def safe_svg(text: str, name: str = "picture") -> str:
    """Return a picture with nothing in it but shapes and texts.

    >>> safe_svg('<svg xmlns="http://www.w3.org/2000/svg"><script>x</script><rect width="1" onclick="x"/></svg>')
    '<svg xmlns="http://www.w3.org/2000/svg"><rect width="1" /></svg>'
    """
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise DataError("a picture with a document type is refused: it may declare entities", file=name)
    try:
        root = ET.fromstring(text)  # noqa: S314 - entities were refused above
    except ET.ParseError as error:
        raise DataError(f"not an SVG picture: {error}", file=name) from error
    if root.tag != f"{_SPACE}svg":
        raise DataError(f"not an SVG picture: its root is {root.tag!r}", file=name)
    ET.register_namespace("", _SPACE[1:-1])
    try:
        return ET.tostring(_clean(root), encoding="unicode")
    except RecursionError as error:
        raise DataError("not a picture that can be shown: nested too deep", file=name) from error


def _clean(element: ET.Element) -> ET.Element:
    attributes = {
        key: value for key, value in element.attrib.items() if key in _ATTRIBUTES and not _LOCAL.search(value)
    }
    copy = ET.Element(element.tag, attributes)
    copy.text, copy.tail = element.text, element.tail
    for child in element:
        if child.tag in {f"{_SPACE}{name}" for name in _ELEMENTS}:
            copy.append(_clean(child))
    return copy


def _title(run: Run) -> str:
    """Return the systems, where they are few, and the name of the data: it tells reports apart."""
    systems, name = run.dataset.systems, run.dataset.name
    return f"{' vs '.join(systems)} on {name}" if len(systems) <= _NAMED and list(systems) != [name] else name


def report_of(run: Run, *, title: str | None = None, baseline: str | None = None, words: bool = True) -> Report:
    """Return the report of a run; without `words` it has no segments and no explanations, and is ready at once."""
    if baseline is not None and baseline not in run.dataset.systems:
        raise SpecError(f"--baseline: no system {baseline!r}. Systems: {', '.join(run.dataset.systems)}")
    baselines = (gate.baseline for gate in run.facts.gates if gate.baseline in run.dataset.systems)
    human = tuple(sorted({name for entry in run.dataset.entries for name in entry.human}))
    rows = [_system(run, system, human) for system in run.dataset.systems]
    report = Report(
        title=title or _title(run),
        about=about(run.dataset),
        verdict=(),
        metrics=run.metrics,
        systems=tuple(sorted(rows, key=_rank(run.metrics))),
        made=_provenance(run),
        human=human,
        comparisons=run.pairs,
        features=feature_shares(run),
        costly=costly_words(run) if words else (),
        agreement=agreement(run) if words else (),
        figures=figures_in(run.folder) if words else (),
        explorer=explorer(run, features_by_segment(run)) if words else {},
        words=word_counts(run) if words else (),
        matches=match_summaries(run) if words else (),
        digits=tuple(digits_of(run.totals[metric.name]) for metric in run.metrics),
        segments=Counter(entry.system for entry in run.dataset.entries),
        gates=run.facts.gates,
        warnings=tuple(finding for finding in run.facts.findings if finding.code in DOUBTS),
        baseline=baseline or next(baselines, None),
        tagger=str(run.facts.plan["tagger"]) if run.facts.plan.get("tagger") else None,
    )
    return with_advice(with_verdict(report))


def digits_of(totals: Mapping[str, Estimate]) -> int:
    """Return how many decimals tell the systems apart: two for percentages, four for shares of one."""
    largest = max((abs(total.value) for total in totals.values() if np.isfinite(total.value)), default=0.0)
    return 2 if largest > 2 else 4  # noqa: PLR2004 - scores in percent, or between 0 and 1


def _system(run: Run, system: str, human: Sequence[str]) -> SystemRow:
    data = run.dataset.of(system)
    means = _human_means(data.entries, human)
    totals = tuple(run.totals[metric.name][system] for metric in run.metrics)
    common = tuple(run.common[metric.name][system] for metric in run.metrics) if run.common else ()
    shared = _human_means(data.entries, human, run.shared_ids) if run.common else ()
    clusters = run.clusters
    names = [metric.name for metric in run.metrics]
    ranks, human_ranks = (tuple(clusters.get((name, system)) for name in every) for every in (names, human))
    return SystemRow(system, totals, ranks, means, human_ranks, common, shared)


def _human_means(
    entries: Sequence[Entry], human: Sequence[str], ids: Container[str] | None = None
) -> tuple[float, ...]:
    """Return the mean of each human score, over all entries or those of some segments; NaN where there is none."""
    human_scores = [entry.human for entry in entries if ids is None or entry.id in ids]
    values = [
        [scores[name] for scores in human_scores if name in scores and math.isfinite(scores[name])] for name in human
    ]
    return tuple(float(np.mean(value)) if value else math.nan for value in values)


def _rank(metrics: Sequence[RunMetric]) -> Callable[[SystemRow], float]:
    """Return what orders the systems: the first metric that supports the languages, the best first."""
    first = next((k for k, metric in enumerate(metrics) if not metric.unsupported), 0)
    sign = -1.0 if metrics and metrics[first].higher_is_better else 1.0
    return lambda row: sign * row.score(first) if row.totals else 0.0


def _provenance(run: Run) -> Provenance:
    facts = run.facts
    signatures = [(metric.name, metric.signature) for metric in run.metrics]
    signatures += [(f"{metric.name}, words", metric.explained) for metric in run.metrics if metric.explained]
    signatures += list(run.signatures.items())
    return Provenance(
        created=facts.created,
        version=facts.whyscore,
        command=None if facts.command is None else shlex.join(facts.command),
        signatures=tuple(signatures),
        versions=_pairs(facts.versions),
        counts=_pairs(facts.counts),
        seconds=_pairs(facts.seconds),
        licences=tuple(licences(run)),
        findings=facts.findings,
        problems=facts.problems,
    )


def licences(run: Run) -> list[tuple[str, str]]:
    """Return the licence of each metric's model, as its signature names it."""
    facts = [(metric.name, dict(Signature.parse(metric.signature).facts)) for metric in run.metrics]
    return [(name, details["licence"]) for name, details in facts if "licence" in details]


def _pairs(facts: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    return tuple((key, str(item)) for key, item in facts.items())


DOUBTS = frozenset({SYSTEMATIC, UNSUPPORTED, UNEVEN})
"""Kinds of findings that put the numbers in doubt; they stand at the top."""

SHAREABLE = frozenset({"tests"})
"""Kinds of problems whose messages speak of systems and numbers alone."""


def without_texts(report: Report) -> Report:
    """Return the report without any text of the data."""
    provenance = report.made
    shareable = tuple(problem for problem in provenance.problems if problem.code in SHAREABLE)
    others = _count_only(len(provenance.problems) - len(shareable), "problem")
    return replace(
        report,
        explorer={},
        costly=(),
        figures=(),
        matches=tuple(replace(match, pairs=()) for match in report.matches),
        steps=tuple(Step(step.text) for step in report.steps if not step.controls),
        made=replace(
            provenance,
            command=None,
            findings=_count_only(len(provenance.findings), "finding"),
            problems=shareable + others,
        ),
        texts=False,
    )


def _count_only(count: int, what: str) -> tuple[Finding, ...]:
    """Return how many there are, instead of what they say."""
    message = f"{count} {what}{'' if count == 1 else 's'}: see the report with texts"
    return (Finding("left-out", message),) if count else ()
