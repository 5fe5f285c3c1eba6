"""The weights of the explainer evidence, and what it reaches: the tables behind docs/decisions/0011 and 0012.

    python benchmarks/study_evidence.py fit 200      # weights from 200 training sentences of each pair, and how they
                                                     # do on pairs that they were not fitted on
    python benchmarks/study_evidence.py judge 300    # the shipped weights on 300 sentences of every development set

Word level: AUC of the error scores, mean over the sentences with both marked and unmarked words. Data, all beside the
project in `shared/data`:

- training: MLQE-PE (seven pairs) and the MQM spans of 2021 (en-de, zh-en), where a word is marked if it touches a span
  of any rater;
- development: Eval4NLP 2021 (et-en, ro-en), WMT22 QE task 2 (en-de, en-cs, en-yo, km-en), TED zh-en, and dev and test20
  of MLQE-PE.

Lexicons are learned from sources and post-edits of the MLQE-PE training data, without every pair of texts of which the
source, the translation or the post-edit occurs among the judged ones. Weights: logistic regression of the tags on the
standardised terms of each word minus their mean over the sentence, all pairs with equal weight. Nothing is judged here:
it is a study, not a benchmark with limits.
"""

import gzip
import json
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import study_xbertscore
from peers import DATA
from whyscore.analysis.metaeval.words import CONTROLS, control_scores
from whyscore.models.evidence import TERMS, Setting, Terms, gather_terms, sum_terms
from whyscore.models.lexicon import Lexicon, learn_lexicon
from whyscore.stats.words import Ragged, agree
from whyscore.text.splitters import white_space
from whyscore.types import FloatMatrix, FloatVector, Segment, Side, Words

Row = dict[str, object]


class Marked(NamedTuple):
    """Segments of one language pair with marked words."""

    name: str
    pair: str
    segments: list[Segment]
    gold: dict[Side, list[FloatVector]]


class Gathered(NamedTuple):
    """The terms of the words of one side."""

    name: str
    pair: str
    side: Side
    gold: list[FloatVector]
    terms: list[Terms]
    controls: dict[str, float]
    """The AUC of length, surprisal and frequency; NaN without word frequencies."""


def _lines(path: str) -> list[str]:
    return (DATA / path).read_text("utf-8").split("\n")[:-1]


def _packed(name: str) -> list[dict]:
    with gzip.open(DATA / "quality_estimation" / name, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def mlqe(part: str, rows: Sequence[dict], limit: int) -> Iterator[Marked]:
    """Yield MLQE-PE by pair; sentences without both kinds of words on the target side are left out."""
    for pair in dict.fromkeys(row["lp"] for row in rows):
        own = [row for row in rows if row["lp"] == pair and len(row["mt"].split()) == len(row["mt_tags"])]
        own = [row for row in own if len(row["src"].split()) == len(row["src_tags"])]
        own = spread([row for row in own if 0 < sum(row["mt_tags"]) < len(row["mt_tags"])], limit)
        tags = {side: [np.array(row[key], float) for row in own] for side, key in TAGS.items()}
        yield Marked(part, pair, [Segment(row["mt"], row["src"]) for row in own], tags)


TAGS = {Side.HYPOTHESIS: "mt_tags", Side.SOURCE: "src_tags"}


def spread(rows: list, limit: int) -> list:
    """Return up to `limit` rows, evenly from all of them."""
    return rows[:: max(1, len(rows) // limit)][:limit]


def mqm(limit: int) -> Iterator[Marked]:
    """Yield the news of 2021; several raters of one translation are taken together."""
    spans: dict[tuple[str, str, str], list] = {}
    for row in _packed("mqm_spans.jsonl.gz"):
        if row["set"].startswith("2021") and row["lp"] != "en-ru":  # en-ru comes without a licence
            spans.setdefault((row["lp"], row["src"], row["mt"]), []).extend(row["spans"])
    for pair in dict.fromkeys(pair for pair, *_ in spans):
        own = spread([key for key, found in spans.items() if key[0] == pair and found], limit)
        gold = [study_xbertscore._touched(key[2], [(s, max(e, s + 1)) for s, e, *_ in spans[key]]) for key in own]  # noqa: SLF001
        yield Marked("mqm", pair, [Segment(mt, src) for _, src, mt in own], {Side.HYPOTHESIS: gold})


def shared_tasks(limit: int) -> Iterator[Marked]:
    """Yield Eval4NLP 2021, WMT22 and TED."""
    for pair in ("et-en", "ro-en"):
        files = [_lines(f"eval4nlp2021/dev/{pair}/dev.{name}") for name in ("src", "mt", "src-tags", "tgt-tags")]
        rows = spread(list(zip(*files, strict=True)), limit)
        gold = {Side.HYPOTHESIS: [_tags(row[3]) for row in rows], Side.SOURCE: [_tags(row[2]) for row in rows]}
        yield Marked("Eval4NLP", pair, [Segment(mt, src) for src, mt, *_ in rows], gold)
    for pair in ("en-de", "en-cs", "en-yo", "km-en"):
        files = [_lines(f"wmt22_task2/{pair}/{name}") for name in ("src_tok", "mt_tok", "target.gold")]
        rows = spread(list(zip(*files, strict=True)), limit)
        segments = [Segment(mt.removesuffix(" <EOS>"), src) for src, mt, _ in rows]
        gold = [_tags(tags)[: len(own.hypothesis.split())] for (*_, tags), own in zip(rows, segments, strict=True)]
        yield Marked("WMT22", pair, segments, {Side.HYPOTHESIS: gold})
    talks = study_xbertscore.talks(max(3, 7935 // limit))
    yield Marked("TED", "zh-en", talks.segments, {Side.HYPOTHESIS: talks.gold})


def _tags(line: str) -> FloatVector:
    return np.array(line.split(), dtype=np.float64)


def _letters(text: str) -> str:
    return re.sub(r"\W", "", text.lower())


def lexicons(rows: Sequence[dict], judged: Sequence[Marked]) -> dict[str, Lexicon]:
    """Return one lexicon per pair, from texts that are not judged."""
    held = {_letters(text) for own in judged for s in own.segments for text in (s.source or "", s.hypothesis)}
    kept = [row for row in rows if held.isdisjoint(_letters(row[key]) for key in ("src", "mt", "pe"))]
    found = {}
    for pair in {own.pair for own in judged} & {row["lp"] for row in rows}:
        own = [row for row in kept if row["lp"] == pair]
        found[pair] = learn_lexicon([row["src"] for row in own], [row["pe"] for row in own])
    return found


def gather(judged: Sequence[Marked], known: dict[str, Lexicon]) -> Iterator[Gathered]:
    """Yield the terms of every set and side."""
    for own in judged:
        source, target = own.pair.split("-")
        setting = Setting(known.get(own.pair), (source, target))
        for side, gold in own.gold.items():
            texts = [s.hypothesis if side is Side.HYPOTHESIS else s.source or "" for s in own.segments]
            words = [white_space(text) for text in texts]
            terms = gather_terms(own.segments, side, words, setting)
            controls = {name: _control(name, gold, words, setting.language(side)) for name in CONTROLS}
            yield Gathered(own.name, own.pair, side, gold, terms, controls)
            print("gathered", own.name, own.pair, side, len(words), file=sys.stderr, flush=True)


def _control(name: str, gold: Sequence[FloatVector], words: Sequence[Words], language: str | None) -> float:
    found = [control_scores(name, own, language) for own in words]
    return float("nan") if any(own is None for own in found) else auc(gold, [own for own in found if own is not None])


def auc(gold: Sequence[FloatVector], scores: Sequence[FloatVector]) -> float:
    """Return the mean AUC of error scores."""
    return float(np.nanmean(agree(Ragged.of(gold), Ragged.of(list(scores))).auc))


def standardised(own: Gathered, scales: FloatMatrix) -> list[FloatMatrix]:
    """Return words x terms of each sentence; a missing term is 0."""
    rows = [(np.array([terms[name] for name in TERMS]).T - scales[0]) / scales[1] for terms in own.terms]
    return [np.nan_to_num(part) for part in rows]


def scales_of(sets: Sequence[Gathered]) -> FloatMatrix:
    """Return mean and deviation of each term over all words."""
    rows = np.concatenate([np.array([terms[name] for name in TERMS]).T for own in sets for terms in own.terms])
    return np.array([np.nanmean(rows, axis=0), np.maximum(np.nanstd(rows, axis=0), 1e-6)])


def fit(sets: Sequence[Gathered], scales: FloatMatrix, ridge: float = 1.0) -> FloatVector:
    """Return weights by logistic regression, all pairs with equal weight, by Newton's method."""
    rows, tags, shares = [], [], []
    for own in sets:
        centred = [part - part.mean(axis=0) for part in standardised(own, scales) if len(part)]
        rows.append(np.concatenate(centred))
        tags.append(np.concatenate([gold for gold in own.gold if len(gold)]))
        shares.append(np.full(len(tags[-1]), 1000.0 / len(tags[-1])))
    x, y, share = np.concatenate(rows), np.concatenate(tags), np.concatenate(shares)
    x = np.column_stack([x, np.ones(len(x))])
    weights = np.zeros(x.shape[1])
    for _ in range(8):
        p = 1 / (1 + np.exp(-x @ weights))
        gradient = x.T @ (share * (p - y)) + ridge * weights
        curvature = (x * (share * p * (1 - p))[:, None]).T @ x + ridge * np.eye(len(weights))
        weights -= np.linalg.solve(curvature, gradient)
    return weights[:-1]


def summed(own: Gathered, scales: FloatMatrix, weights: FloatVector) -> float:
    """Return the AUC of the weighted sum."""
    return auc(own.gold, [rows @ weights for rows in standardised(own, scales)])


def print_fit(sets: Sequence[Gathered]) -> None:
    """Print the weights, and what they reach on each pair, fitted with and without it."""
    scales = scales_of(sets)
    every = fit(sets, scales)
    sides = {side: fit([own for own in sets if own.side is side], scales) for side in TAGS}
    for k, name in enumerate(TERMS):
        shown = f"{scales[0][k]:.3f} {scales[1][k]:.3f} both {every[k]:+.3f}"
        print(f"{name:<12}{shown} " + " ".join(f"{side} {found[k]:+.3f}" for side, found in sides.items()))
    print(f"set pair side, AUC of {', '.join((*CONTROLS, *TERMS[:3]))}; sum, fitted on other pairs, on its side")
    for own in sets:
        others = fit([one for one in sets if one.pair != own.pair], scales)
        single = [auc(own.gold, [np.nan_to_num(t[name]) for t in own.terms]) for name in TERMS[:3]]
        numbers = [*single, *(summed(own, scales, weights) for weights in (every, others, sides[own.side]))]
        print(f"{own.name:<9}{own.pair:<6} {own.side:<11}", *_shown([*own.controls.values(), *numbers]), flush=True)


def _shown(numbers: Sequence[float]) -> list[str]:
    return ["    -" if np.isnan(number) else f"{number:.3f}" for number in numbers]


def print_judged(sets: Iterator[Gathered]) -> None:
    """Print what the shipped weights reach beside the controls, with and without a lexicon."""
    print(f"set pair side, AUC of {', '.join(CONTROLS)}, evidence without a lexicon, with one; sentences")
    for own in sets:
        without = [{**t, "link": np.full(len(t["link"]), np.nan)} for t in own.terms]
        both = [auc(own.gold, [sum_terms(t) for t in terms]) for terms in (without, own.terms)]
        shown = _shown([*own.controls.values(), *both])
        print(f"{own.name:<9}{own.pair:<6} {own.side:<11}", *shown, len(own.gold), flush=True)


def main() -> int:
    """Fit or judge."""
    warnings.simplefilter("ignore")
    what, limit = sys.argv[1], int(sys.argv[2])
    train = _packed("mlqe_pe_train.jsonl.gz")
    if what == "fit":
        judged = [*mlqe("train", train, limit), *mqm(limit)]
    else:
        packed = [(part, _packed(f"mlqe_pe_{part}.jsonl.gz")) for part in ("dev", "test20")]
        judged = [*shared_tasks(limit), *(own for part, rows in packed for own in mlqe(part, rows, limit))]
    with threadpool_limits(1):
        sets = gather(judged, lexicons(train, judged))
        print_fit(list(sets)) if what == "fit" else print_judged(sets)
    return 0


if __name__ == "__main__":
    sys.exit(main())
