"""What every command prints and what the Python interface returns, recorded so that it can be compared later.

    python tests/support/recorder.py --list
    python tests/support/recorder.py --write             # record all cases
    python tests/support/recorder.py --write CASE ...    # record single cases again, after an intended change

A case is a list of command lines that run one after the other in a folder of their own, or a function that calls the
Python interface there. The folder holds a copy of `tests/recorded/inputs`; all other data is the sample that ships.
A recording says the exit codes, all data in full, and the numbers that stand in text. `tests/test_recorded.py` runs the
cases again and compares.
"""

import argparse
import contextlib
import csv
import enum
import gzip
import io
import json
import math
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from threadpoolctl import threadpool_limits

import whyscore as ws
from whyscore.cli import setup
from whyscore.cli.main import main as whyscore

RECORDED = Path(__file__).resolve().parents[1] / "recorded"
INPUTS = RECORDED / "inputs"

VOLATILE = frozenset({
    "bytes", "command", "created", "date", "machine", "path", "platform", "python", "seconds", "used", "version",
    "versions", "whyscore",
})  # fmt: skip
"""Keys whose values differ from day to day or from machine to machine. They are not recorded."""

PROSE = frozenset({
    "about", "because", "caption", "captions", "caveat", "caveats", "description", "descriptions", "finding",
    "findings", "headline", "help", "hint", "message", "messages", "next", "next_steps", "note", "notes", "problem",
    "problems", "reason", "reasons", "summary", "title", "titles", "verdict", "warning", "warnings",
})  # fmt: skip
"""Keys whose values are sentences. They must be there, and may be worded anew."""

TABLES = {"tsv": "\t", "csv": ","}
PRINTED = ("text", "markdown", "latex", "md", "tex", "txt")
NUMBER = re.compile(r"(?<![\w.])[-+−]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])")
DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?Z?)?")
CHOICES = re.compile(r"^'[^']*'(?: or (?:'[^']*'|\w+))+")
DIGEST = re.compile(r'(?<=calibration="|.calibration:)[0-9a-f]{16}|(?<=map:clp-|map:umd-)[0-9a-f]{12}')
DECIMAL = re.compile(r"[-+]?\d+\.\d+(?:e[-+]?\d+)?")
LONG = re.compile(r"\d+\.\d{12,}(?:e[-+]?\d+)?")
EMBEDDED = re.compile(r'<script type="application/json"[^>]*>(.*?)</script>', re.DOTALL)
DEEP = 5
SHOWN = 10


@dataclass(frozen=True)
class Case:
    """What is run, and which files it leaves that count.

    Args:
        name: of the case and of its file in `tests/recorded`.
        commands: argument lists for the command line, run in order.
        call: a function of the Python interface instead.
        keep: patterns of files to record when all is done.
        missing: packages that cannot be imported meanwhile.
        shape: record the names of fields alone, where all values depend on the machine.
    """

    name: str
    commands: tuple[tuple[str, ...], ...] = ()
    call: Callable[[], object] | None = None
    keep: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    shape: bool = False


CASES: dict[str, Case] = {}


def case(
    name: str,
    *commands: str,
    keep: Sequence[str] = (),
    missing: Sequence[str] = (),
    shape: bool = False,
) -> None:
    """Add a case of commands, written as in a shell."""
    CASES[name] = Case(
        name, tuple(tuple(shlex.split(one)) for one in commands), keep=tuple(keep), missing=tuple(missing), shape=shape
    )


def api(call: Callable[[], object]) -> Callable[[], object]:
    """Add a function as a case."""
    name = f"api-{call.__name__.replace('_', '-')}"
    CASES[name] = Case(name, call=call)
    return call


# The command line -----------------------------------------------------------------------------------------------------

FILES = "-s src.txt -r ref.txt -t sysA.txt sysB.txt"
TWO = "--sample --systems MiSS Borderline"
CAT = "--text -s 'Ich habe einen Hund' -t 'I have a cat' -r 'I have a dog'"
TABLE = "metaeval scores metrics.csv --segment segment --human human --metric one two --draws 50"
RUN = ("run/*.json", "run/*.jsonl")

for form in ("text", "json", "jsonl", "tsv", "csv", "markdown", "latex"):
    case(f"score-sample-{form}", f"score --sample -m bleu chrf ter token_f1 --draws 50 -f {form}")
case("score-segments-jsonl", f"score {FILES} -m bleu chrf ter token_f1 --segments -f jsonl")
case("score-segments-tsv", f"score {TWO} -m chrf token_f1 --segments -f tsv")
case("score-numbers-alone", f"score {FILES} -m bleu chrf -b -w 6")
case("score-options", f"""score {FILES} -m 'chrf(word_order=2)' "bleu(tokenize='char')" -f json""")
case("score-two-references", "score -r ref.txt ref2.txt -t sysA.txt sysB.txt -m bleu chrf ter rouge -f json")
case("score-own-metric", f"score {FILES} -m my_metric.py:score length copy length_ratio -f json")
case("score-rouge", f"score {FILES} -m rouge --segments -f csv")
case("score-mee", f"score {FILES} -m 'mee(words=None)' 'mee2(words=None)' --segments -f json")
case("score-mee-parts", f"score {FILES} -m 'mee(words=None)' --parts")
case("score-xbertscore", f"score {FILES} -m xbertscore --segments -f json")
case("score-data-jsonl", "score data.jsonl -m chrf bleu --human da -f json")
case("score-data-tsv", "score data.tsv -m chrf bleu --human da -f json")
case("score-data-csv", "score data.csv -m chrf bleu --systems sysB -f json")
case("score-xliff", "score job.xlf --alt-trans -m chrf --segments -f jsonl")
case("score-xliff-2", "score job2.xliff -m xbertscore --inline placeholder --segments -f jsonl")
case("score-tmx", "score memory.tmx -l en-de -m chrf ter --segments -f jsonl")
case("score-dry-run", f"score {FILES} -m chrf", f"score {FILES} -m chrf ter --dry-run")
case("score-processes", f"score {FILES} -m ter --executor processes --jobs 2 --store none -f json")

for form in ("text", "json", "jsonl", "tsv", "csv", "markdown", "latex"):
    case(f"explain-{form}", f"explain {CAT} -m chrf -e erasure -f {form}")
case("explain-sides", f"explain {FILES} --limit 3 -m token_f1 -e erasure --side hypothesis reference -f jsonl")
case(
    "explain-lime",
    f"explain {TWO} --limit 2 -m chrf token_f1 -e 'lime(samples=60)' --side hypothesis -f jsonl",
)
case("explain-shap", f"explain {TWO} --limit 2 -m token_f1 -e shap --side hypothesis -f jsonl")
case("explain-partition", f"explain {FILES} --limit 3 -m chrf -e partition greedy random -f jsonl --side hypothesis")
case(
    "explain-ensemble",
    f"""explain {CAT} -m chrf -e "ensemble(members=('erasure', 'greedy'))" -f json""",
)
case("explain-intrinsic", f"explain {TWO} --limit 3 -m bleu chrf ter -e intrinsic -f jsonl")
case("explain-matching", f"explain {FILES} --limit 3 -m xbertscore -e matching --matrix -f jsonl")
case(
    "explain-units-and-maskers",
    f"explain {CAT} -m chrf -e erasure -f jsonl --unit char",
    f"explain {CAT} -m chrf -e erasure -f jsonl --unit 'chunk(2)' --masker replace",
)
case("explain-repeat", f"explain {CAT} -m chrf -e 'lime(samples=40)' --repeat 3 -f jsonl")
case("explain-until-stable", f"explain {CAT} -m chrf -e 'lime(samples=40)' --until-stable 0.9 -f jsonl")
case("explain-own-metric", f"explain {FILES} --limit 2 -m my_metric.py:score -e shap -f tsv")
case("explain-dry-run", f"explain {FILES} -m ter -e lime --dry-run")

case(
    "evaluate-sample",
    f"evaluate {TWO} -m chrf token_f1 --budget 3 --draws 50 -o run -f json",
    "report run -f json",
    "report run -f markdown",
    "report run -f latex",
    "report run -f text --no-texts",
    keep=("run/run.json", "run/scores.jsonl", "run/totals.jsonl", "run/explanations.jsonl", "run/decomposition.jsonl",
          "run/comparisons.jsonl"),
)  # fmt: skip
case(
    "evaluate-files",
    f"evaluate {FILES} -l de-en -m bleu chrf ter xbertscore --draws 50 -o run --title Pets",
    keep=(*RUN, "run/report.html"),
)
case(
    "evaluate-lime",
    "evaluate data.jsonl --human da -m chrf -e 'lime(samples=40)' --budget 2 --seed 3 -o run -f markdown",
    keep=RUN,
)
case("evaluate-latex", f"evaluate {FILES} -m token_f1 --budget 0 --tagger none --draws 0 -o run -f latex", keep=RUN)
case("evaluate-gate-under", f"evaluate {FILES} -m chrf --budget 0 --draws 20 --fail-under chrf=99 -o run")
case("evaluate-gate-worse", f"evaluate {TWO} -m chrf --budget 0 --draws 50 --fail-if-worse MiSS --tagger none -o run")
case("evaluate-dry-run", f"evaluate {FILES} -m chrf token_f1 -o run --dry-run")
case(
    "merge",
    "evaluate data.jsonl -m chrf token_f1 --budget 2 --draws 30 --shard 1/2 -o one -q",
    "evaluate data.jsonl -m chrf token_f1 --budget 2 --draws 30 --shard 2/2 -o two -q",
    "merge one two -o run -f json",
    keep=RUN,
)
case("merge-incomplete", "evaluate data.jsonl -m chrf --shard 1/2 -o one -q", "merge one -o run")
case(
    "report-two-runs",
    f"evaluate {FILES} -m chrf --budget 2 --draws 30 -o old -q",
    "evaluate -s src.txt -r ref.txt -t sysA.txt ref2.txt --systems sysA sysB -m chrf --budget 2 --draws 30 -o new -q",
    "report old new -f json",
    "report old new -f text",
    "report old new -f markdown",
    "report old -o outside.html --no-texts",
    keep=("outside.html",),
)

case("boost-text", f"boost {CAT} -m chrf -e 'lime(samples=50)' -p 1.5 --weight 0.6 --segments -f json")
case(
    "boost-sample",
    f"boost {TWO} -m token_f1 -e erasure -p 1 --weight 0.8 -f json",
    f"boost {TWO} -m token_f1 -p -2 -f tsv",
)
case("boost-aggregator", f"boost {FILES} -m chrf -a 'quantile(q=0.2)' --segments -f jsonl")
case("boost-dry-run", f"boost {FILES} -m token_f1 -e erasure --dry-run")
case(
    "calibrate",
    f"calibrate {TWO} --human mqm -m chrf -e erasure --grid coarse --resamples 99 -o chrf.calibration.json",
    "boost -r ref.txt -t sysA.txt sysB.txt --calibration chrf.calibration.json --segments -f json",
    keep=("chrf.calibration.json",),
)
case("calibrate-groups", "calibrate data.jsonl --human da --group lp -m token_f1 --rule median --coefficient pearson "
     "kendall --grid coarse --resamples 49 -f tsv")  # fmt: skip
case("calibrate-paper", "calibrate data.jsonl --human da -m token_f1 --mode paper --resamples 49 --grid coarse -f text")
case(
    "calibrate-weights",
    "calibrate data.jsonl --human da -m 'mee2(words=None)' --weights --folds 4 -f json",
)

case("experiment-bmx-grid", "experiment bmx-grid data.jsonl --human da -m token_f1 -e erasure --no-figures "
     "--grid coarse --resamples 49 -o run", keep=("run/*",))  # fmt: skip
case("experiment-bmx-summeval", "experiment bmx-summeval --scores summeval.csv --texts summeval.jsonl -m token_f1 "
     "-e erasure --no-figures -f json --grid coarse --resamples 49 -o run", keep=("run/*",))  # fmt: skip
case("experiment-bmx-stability", "experiment bmx-stability data.jsonl --human da -m token_f1 --samples 20 40 "
     "--runs 2 --every 2 --no-figures --grid coarse -o run -f json", keep=("run/*",))  # fmt: skip
case("experiment-muler-hybrid", f"experiment muler-hybrid {TWO} -m bleu --features capitalised -f json")
case("experiment-muler-specificity", f"experiment muler-specificity {TWO} -m bleu --features capitalised number "
     "--groups 2 3 --repeat 2 -f json")  # fmt: skip
case("experiment-muler-frequency", f"experiment muler-frequency {TWO} -m chrf --features capitalised --alpha 0.5 1 "
     "-f tsv")  # fmt: skip
case("experiment-muler-tagnoise", f"experiment tagnoise {TWO} -m bleu --features capitalised --noise move --rates 0.2 "
     "-f markdown")  # fmt: skip
case("experiment-layers", "experiment layers data.tsv --human da -m xbertscore -f tsv")
case("experiment-baseline", """experiment baseline ref.txt -m "bertscore(model='embedded')" --pairs 8""")

for form in ("text", "json", "tsv", "markdown", "latex"):
    case(f"compare-{form}", f"compare {TWO} -m chrf bleu token_f1 --human mqm --draws 200 -f {form}")
case("compare-power", f"compare {TWO} Online-W -m chrf --draws 200 --strengths --power 25 50 -f json")
case("compare-documents", "compare data.tsv -m chrf --documents --correction holm --test bootstrap --draws 99 -f json")
case(
    "compare-t", f"compare {FILES} -m token_f1 --test t -f csv", f"compare {FILES} -m token_f1 --test wilcoxon -f jsonl"
)
case("compare-gate", f"compare {TWO} -m chrf --draws 200 --fail-if-worse")

case("metaeval-scores", "metaeval scores --sample --human mqm -m chrf token_f1 --level segment --test permutation "
     "--resamples 99 --draws 50 -f json")  # fmt: skip
case(
    "metaeval-scores-system",
    f"{TABLE} --level system --coefficient pairwise_accuracy --test permute-both --resamples 99",
)
case("metaeval-scores-global", f"{TABLE} --level global --coefficient pearson --test williams --no-sentinels -f tsv")
case("metaeval-scores-acc-eq", f"{TABLE} --coefficient acc_eq --level segment --no-sentinels -f json")
case("metaeval-words", "metaeval words --gold gold --submission teamA teamB --ranking --baselines --draws 50 -f json")
case("metaeval-words-text", "metaeval words --gold gold --submission teamA teamB --ranking --threshold 0.5 --draws 20")
case("metaeval-words-explainers", "metaeval words --gold gold -r gold-ref.txt -m chrf -e erasure random --faithfulness "
     "--seeds 2 --draws 20 -f json")  # fmt: skip
case("metaeval-words-strengths", "metaeval words --gold gold --submission teamA teamB --rank bt --draws 20 -f json")
case("metaeval-words-segments", "metaeval words --gold gold --submission teamA --segments -f tsv")
case(
    "metaeval-spans",
    "convert mqm.tsv --to whyscore -o rated.jsonl",
    "metaeval spans rated.jsonl --gold mqm.tsv -f json",
    "metaeval spans rated.jsonl --gold mqm.tsv --severity",
    "explain -s src.txt -r ref.txt -t sysA.txt -m token_f1 -e erasure --side hypothesis --limit 5 -o why.jsonl",
    "convert why.jsonl --to whyscore --threshold auto -o predicted.jsonl",
    "metaeval spans predicted.jsonl --gold gold -f json",
)
case("metaeval-faithfulness", f"metaeval faithfulness {TWO} --limit 5 -m chrf -e erasure random --orders 3 --draws 50 "
     "--seeds 2 -f json")  # fmt: skip

for form in ("text", "json", "tsv", "markdown", "latex"):
    case(f"decompose-{form}", f"decompose {TWO} -m bleu --features number capitalised punctuation --draws 50 -f {form}")
case("decompose-segments", f"decompose {FILES} -m chrf --segments -f tsv")
case("decompose-explainer", f"decompose {FILES} -m token_f1 --features number negation -e shap --draws 20 -f json")
case("decompose-compat", f"decompose {TWO} -m bleu --features capitalised --mode compat --draws 0 -f json")
case(
    "decompose-pretagged",
    "decompose -r ref.txt -t sysA.txt -m bleu --draws 30 -f jsonl --features 'NOUN=NN*' VERB=VB --tagger "
    "\"pretagged(reference='ref.tag', hypothesis='sysA.tag')\"",
)
case(
    "decompose-corpus", f"decompose {TWO} -m bleu chrf --level corpus --features number --draws 20 --examples 1 -f json"
)
case("decompose-sentiment", f"decompose {FILES} -m rouge --features number --scorers sentiment --draws 20 -f json")

# The direction, not the projection: a few sentences do not determine a projection of 512 dimensions.
case(
    "learn-map",
    "learn-map -s src.txt -t ref.txt --alignments links.txt -l de-en -o map.npz",
    f"""score {FILES} -m "xmoverscore(map='map.npz', remap='umd')" --segments -f json""",
)
case("validate", f"validate {FILES} -f json", "validate data.tsv -f text", "validate --sample -f tsv")
case("validate-submission", "validate teamA --gold gold -f json", "validate teamB --gold gold --task eval4nlp2021")
case("validate-broken", "validate -t broken.txt -r short.txt -f json")
LINES = ("whyscore", "spans", "pearmut", "xcomet")
for dialect in ("whyscore", "spans", "mqm", "marot", "pearmut", "wmtqe", "xcomet", "tags"):
    case(f"convert-to-{dialect}", f"convert mqm.tsv --to {dialect} -o out.{'jsonl' if dialect in LINES else dialect}",
         keep=("out.*", "out/*"))  # fmt: skip
case(
    "convert-explanations",
    "explain -s src.txt -r ref.txt -t sysA.txt -m token_f1 -e erasure --side hypothesis --limit 4 -o why.jsonl",
    "convert why.jsonl --to spans --threshold auto -o auto.jsonl",
    "convert why.jsonl --to spans --threshold 0 0.05 --gap 1 --tagger rules -o fixed.jsonl",
    "convert why.jsonl --to eval4nlp --team me -o submission",
    keep=("auto.jsonl", "fixed.jsonl", "submission/*"),
)
case(
    "convert-xliff",
    "explain job.xlf -m xbertscore -e matching --side hypothesis -o why.jsonl",
    "convert why.jsonl --to xliff --top 0.3 --into job.xlf -o marked.xlf",
    "convert marked.xlf --to whyscore -o back.jsonl",
    keep=("marked.xlf", "back.jsonl"),
)
case("submit", "submit eval4nlp -s src.txt -r ref.txt -t sysA.txt -m chrf -e erasure --team me -o submission",
     "submit wmt22 -s src.txt -t sysA.txt -m xbertscore -e matching --team me -o wmt",
     keep=("submission/*", "wmt/*"))  # fmt: skip
# The other kinds stand in docs/reference/components.md, which is compared with the program too.
case("list", "list executors aggregators datasets -f json")
case("list-text", "list executors aggregators")
case("doctor", "doctor -f json", shape=True)
case("store", f"score {FILES} -m chrf token_f1 -q", "store size -f json", "store check", "store check -f json",
     "store prune --signature chrf -f json", "store size -f json")  # fmt: skip

case("wrong-nothing", "")
case("wrong-verb", "scroe --sample")
case("wrong-option", "score --sample --no-such-option")
case("wrong-metric", "score --sample -m crf")
case("wrong-metric-option", "score --sample -m 'chrf(wordorder=2)'")
case("wrong-explainer", "explain --sample --limit 1 -m chrf -e lyme")
case("wrong-lengths", "score -r short.txt -t sysA.txt -m chrf")
case("wrong-encoding", "score -r broken.txt -t short.txt -m chrf")
case("wrong-no-reference", "score -s src.txt -t sysA.txt -m chrf")
case("wrong-no-file", "score -r nowhere.txt -t sysA.txt -m chrf")
case("wrong-strict", "score -r ref.txt -t sysA.txt -m chrf --strict")
case("wrong-human", "metaeval scores data.tsv --human nobody -m chrf")
case("wrong-run", "report nowhere")
case("wrong-no-extra", f"decompose {FILES} -m chrf --scorers sentiment", missing=("vaderSentiment",))
case("wrong-no-tagger", f"decompose {FILES} -m chrf --tagger spacy -l de-en", missing=("spacy",))


# The Python interface -------------------------------------------------------------------------------------------------


def some(count: int = 6) -> list[ws.Segment]:
    """The first segments of the sample."""
    return list(ws.sample().segments[:count])


def pets() -> ws.Dataset:
    """The small files as a data set."""
    return ws.read("data.jsonl", human=["da"])


def picked(one: object, *names: str) -> dict[str, object]:
    """The named fields of a result."""
    return {name: plain(getattr(one, name)) for name in names}


ESTIMATE = ("value", "low", "high", "n")


def importances(found: Sequence[ws.Explanation]) -> list[object]:
    """Where each word is, and what it is worth."""
    return [
        {
            "index": one.index,
            "side": str(one.place.side),
            "reference": one.place.reference,
            "spans": plain(one.words.spans),
            "importance": plain(one.importance),
            "score": one.score,
            "probes": one.probes,
            "fit": one.fit,
        }
        for one in found
    ]


@api
def score() -> object:
    return {spec: plain(ws.score(some(12), spec).values) for spec in ("bleu", "chrf", "ter", "token_f1", "rouge")}


@api
def score_of_a_function() -> object:
    return plain(ws.score(some(), lambda batch: [float(len(one.hypothesis)) for one in batch]).values)


@api
def score_systems() -> object:
    [found] = ws.score_systems(ws.sample(), ["chrf"], draws=50)
    return {system: picked(one, *ESTIMATE) for system, one in found.totals.items()}


@api
def explain() -> object:
    specs = (
        "erasure", "lime(samples=50)", "shap", "partition", "greedy", "random", "intrinsic",
        "ensemble(members=('erasure', 'random'))",
    )  # fmt: skip
    return {spec: importances(ws.explain(some(2), "chrf", spec)) for spec in specs}


@api
def explain_by_matching() -> object:
    return importances(ws.explain(some(2), "xbertscore", "matching"))


@api
def boosted() -> object:
    metric = ws.boosted("token_f1", "lime(samples=40)", p=1.5, w=0.6)
    found = ws.boost(some(), "token_f1", "erasure", p=1, w=0.5)
    return {
        "boosted": plain(metric.score(some())),
        "values": plain(found.scores.values),
        **picked(found, "original", "aggregate", "degenerate", "empty"),
    }


@api
def calibrate() -> object:
    found = ws.calibrate(pets(), "token_f1", "erasure", human="da", grid="coarse", resamples=99, folds=4)
    return {
        **picked(found, "p", "w", "shift", "stretch", "shrinkage", "nearest", "degenerate", "parameters", "weights"),
        "settings": [picked(one, "name", "n", "before", "after", "best_p", "best_w", "best_gain", "improving")
                     for one in found.settings],
        "outcomes": [picked(one, "source", "protocol", "setting", "n", "before", "after", "gain", "p_value", "adjusted")
                     for one in found.outcomes],
    }  # fmt: skip


@api
def decompose() -> object:
    found = ws.decompose(pets(), "bleu", tagger="rules", features=("number", "negation", "capitalised"), draws=50)
    names = ("system", "feature", "n", "informative", "sigma", "sigma_all", "oracle", "anti", "share", "low", "high",
             "guarded", "gain", "outside", "dropped")  # fmt: skip
    return [picked(row, *names) for row in found]


@api
def compare() -> object:
    found = ws.compare(pets(), ["chrf", "ter"], human=["da"], draws=200)
    names = ("first", "second", "difference", "low", "high", "p", "adjusted", "better", "n", "detectable", "needed")
    return {
        one.metric: {
            "totals": {system: picked(total, *ESTIMATE) for system, total in one.totals.items()},
            "pairs": [picked(pair, *names) for pair in one.pairs],
            "strengths": plain(one.strengths),
            "ranks": plain(one.ranks),
        }
        for one in found.metrics
    }


@api
def metaevaluate() -> object:
    data = ws.sample()
    one = ws.metaevaluate(data, ws.score(data, "chrf"), human="mqm", level="system", draws=50)
    several = ws.metaevaluate(
        data, ["chrf", "token_f1"], human="mqm", level="segment", test="permutation", test_draws=99, draws=50
    )
    return {
        "one": picked(one, "measure", *ESTIMATE),
        "agreements": [picked(own, "metric", *ESTIMATE, "rank", "sentinel", "beaten")
                       for group in several.groups for own in group.agreements],
        "tests": [picked(own, "first", "second", "delta", "p", "adjusted")
                  for group in several.groups for own in group.tests],
    }  # fmt: skip


@api
def metaevaluate_words() -> object:
    found = ws.metaevaluate_words(
        ws.read_gold("gold"), [ws.read_submission("teamA"), ws.read_submission("teamB")], baselines=False
    )
    return {
        one.system: {
            "sides": {
                str(side): None if own is None else {
                    str(measure): picked(estimate, *ESTIMATE) for measure, estimate in own.estimates.items()
                }
                for side, own in one.sides.items()
            },
            "sentence": None if one.sentence is None else picked(one.sentence, "n", "pearson", "spearman"),
        }
        for one in found.systems
    }  # fmt: skip


@api
def stability() -> object:
    found = ws.stability(some(4), "chrf", "lime(samples=40)", seeds=3)
    return picked(found, "seeds", "n", "constant", "spearman", "top_word", "jaccard")


@api
def faithfulness() -> object:
    return {
        one.explainer: {
            "n": one.n,
            "flat": one.flat,
            "measures": {
                name: {
                    **picked(own, "raw", "normalised"),
                    "gain": picked(own.gain, *ESTIMATE),
                    "raw_gain": picked(own.raw_gain, *ESTIMATE),
                }
                for name, own in one.measures.items()
            },
        }
        for one in ws.faithfulness(some(4), "chrf", ["erasure", "random"], orders=4, draws=50)
    }


@api
def evaluate_and_report() -> object:
    ws.evaluate(pets(), ["chrf", "token_f1"], output="run", budget=2)
    run = ws.read_run("run")
    report = ws.build_report(run)
    return {
        "totals": {
            metric: {system: picked(one, *ESTIMATE) for system, one in own.items()}
            for metric, own in run.totals.items()
        },
        "scores": plain(run.scores),
        "words": [{"entry": one.entry, "metric": one.metric, "spans": plain(one.spans),
                   "importance": plain(one.importance)} for one in run.explanations],
        "shares": [[one.system, one.metric, one.feature, one.share] for one in run.shares],
        "sentences": len(report.verdict),
    }  # fmt: skip


@api
def mee_parts() -> object:
    found = ws.mee_parts(pets(), "mee2(words=None)")
    return picked(found, "exact", "root", "synonym", "lms", "syn", "cxt", "unknown", "score")


@api
def read_and_convert() -> object:
    return [
        {
            "id": entry.id,
            "system": entry.system,
            "human": plain(entry.human),
            "spans": [picked(span, "start", "end", "severity", "category", "side") for span in entry.spans or ()],
        }
        for name in ("data.tsv", "job.xlf", "mqm.tsv")
        for entry in ws.read(name).entries
    ]


# Running --------------------------------------------------------------------------------------------------------------


def plain(value: object) -> Any:
    """Arrays become lists, enumerations their values, records mappings of their public fields."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(one) for key, one in value.items()}
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, Sequence | set | frozenset):
        return [plain(one) for one in value]
    return {name: plain(one) for name, one in vars(value).items() if not name.startswith("_")}


@contextlib.contextmanager
def surroundings(folder: Path) -> Iterator[None]:
    """Work in this folder, with nothing of this machine around."""
    shutil.copytree(INPUTS, folder, dirs_exist_ok=True)
    kept, here = dict(os.environ), Path.cwd()
    for name in [name for name in os.environ if name.startswith("WHYSCORE_")]:
        del os.environ[name]
    os.environ.update(
        COLUMNS="110", NO_COLOR="1", XDG_CACHE_HOME=str(folder / "cache"), HF_HUB_OFFLINE="1", WHYSCORE_DEBUG="1"
    )
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)
        os.environ.clear()
        os.environ.update(kept)


def forget() -> None:
    """Empty every cache of whyscore: single precision rounds by what is encoded together, so cases share none."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "whyscore":
            for one in vars(module).values():
                if callable(clear := getattr(one, "cache_clear", None)):
                    clear()
                elif type(one).__module__.partition(".")[0] == "whyscore" and hasattr(type(one), "forget"):
                    one.forget()


@contextlib.contextmanager
def without(packages: Sequence[str]) -> Iterator[None]:
    """Let these packages be missing."""
    own = [name for name in sys.modules if name.partition(".")[0] in packages]
    kept = {name: sys.modules.pop(name) for name in own}
    sys.modules.update(dict.fromkeys(packages))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in packages:
            del sys.modules[name]
        sys.modules.update(kept)


def run(one: Case, folder: Path) -> dict[str, Any]:
    """Return the recording of a case, as it would be read from its file."""
    forget()
    with surroundings(folder), without(one.missing), threadpool_limits(1):  # sums do not depend on the cores
        found: dict[str, Any] = {}
        if one.call is not None:
            found["value"] = settled(plain(one.call()), folder)
        else:
            found["commands"] = [_told(argv, folder, shape=one.shape) for argv in one.commands]
        for packed in Path().glob("run/*.jsonl.gz"):
            packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        paths = sorted({path for pattern in one.keep for path in Path().glob(pattern) if path.is_file()})
        found["files"] = {path.as_posix(): _file(path, folder) for path in paths}
    return json.loads(json.dumps(found))


def _told(argv: Sequence[str], folder: Path, *, shape: bool) -> dict[str, Any]:
    out, err = io.StringIO(), io.StringIO()
    # Lines about progress depend on how fast the machine is.
    patient = mock.patch.object(setup, "INTERVAL", math.inf)
    with patient, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = whyscore(argv)
    form = argv[argv.index("-f") + 1] if "-f" in argv else "text"
    printed = parsed(out.getvalue(), form, folder)
    if shape:
        printed = {"fields": sorted(printed["data"])}
    return {"argv": list(argv), "code": code, "stdout": printed, "stderr": parsed(err.getvalue(), "text", folder)}


def _file(path: Path, folder: Path) -> dict[str, Any]:
    text = path.read_text("utf-8")
    if path.suffix == ".html":
        return {"data": [settled(json.loads(found), folder) for found in EMBEDDED.findall(text)]}
    return parsed(text, path.suffix[1:] if path.name != "metadata.txt" else "metadata", folder)


def parsed(text: str, form: str, folder: Path) -> dict[str, Any]:
    """Return the data in a text where it is data, else the text and its numbers."""
    if form in ("json", "jsonl"):
        with contextlib.suppress(ValueError):
            return {"data": settled(json.loads(text), folder)}
        with contextlib.suppress(ValueError):
            return {"lines": [settled(json.loads(line), folder) for line in text.splitlines()]}
    if form in TABLES:
        return {"cells": settled(list(csv.reader(io.StringIO(text), delimiter=TABLES[form])), folder)}
    text = settled(text, folder)
    if form not in PRINTED:
        return {"exact": text}
    return {"text": text, "numbers": NUMBER.findall(DATE.sub("", text))}


def settled(value: Any, folder: Path) -> Any:
    """Return data without what differs from day to day and from machine to machine."""
    if isinstance(value, Mapping):
        return {
            LONG.sub(_shorten, settled(name, folder)): settled(one, folder)
            for name, one in value.items()
            if name not in VOLATILE
        }
    if isinstance(value, list):
        return [settled(one, folder) for one in value]
    if isinstance(value, str):
        value = value.replace(f"{folder}/", "").replace(f"version:{ws.__version__}", "version:own")
        value = DIGEST.sub("DIGEST", value)  # of a file that holds the last digits of many numbers
        return CHOICES.sub(lambda found: " or ".join(sorted(found[0].split(" or "))), DATE.sub("DATE", value))
    return value


# Comparing ------------------------------------------------------------------------------------------------------------


def _shorten(number: re.Match[str]) -> str:
    """Return a number without its last digits, which differ between processors."""
    return f"{float(number[0]):.10g}"


def differences(expected: Mapping[str, Any], found: Mapping[str, Any], near: float = 0.0) -> list[str]:
    """Return where a recording and another run of its case differ: a line each, the path first.

    Args:
        expected: as recorded.
        found: as it came now.
        near: relative error that numbers may have; 0 asks for the same digits.
    """
    told = list(_compared("value", expected.get("value"), found.get("value"), near))
    commands = zip(expected.get("commands", ()), found.get("commands", ()), strict=True)
    for number, (old, new) in enumerate(commands):
        where = f"command {number + 1}"
        if old["code"] != new["code"]:
            told.append(f"{where}: exit code {old['code']} became {new['code']}: {new['stderr']['text'][-300:]}")
        if bool(old["stderr"]["text"]) != bool(new["stderr"]["text"]):
            told.append(f"{where}: stderr was {old['stderr']['text']!r} and is {new['stderr']['text']!r}")
        told += _printed(f"{where} stdout", old["stdout"], new["stdout"], near)
    told += _names("files", expected["files"], found["files"])
    for name in expected["files"].keys() & found["files"].keys():
        told += _printed(name, expected["files"][name], found["files"][name], near)
    return told


def _printed(where: str, old: Mapping[str, Any], new: Mapping[str, Any], near: float) -> Iterator[str]:
    if old.keys() != new.keys():
        yield f"{where}: {' and '.join(old)} became {' and '.join(new)}"
    elif "cells" in old:
        yield from _compared(where, *map(_facts, (old["cells"], new["cells"])), near)
    elif "numbers" not in old:
        yield from _compared(where, dict(old), dict(new), near)
    else:
        before, after = (sorted(number for number in one["numbers"] if "." in number) for one in (old, new))
        gone, come = _less(before, after, near), _less(after, before, near)
        if gone or come:
            yield f"{where}: numbers {' '.join(gone[:SHOWN])} are gone, {' '.join(come[:SHOWN])} are new"


def _facts(cells: list[list[str]]) -> list[list[str]]:
    """Return a table without columns of sentences."""
    hidden = {place for place, name in enumerate(cells[0]) if name in PROSE} if cells else set()
    return [[cell for place, cell in enumerate(row) if place not in hidden] for row in cells]


def _less(some_of: Sequence[str], others: Sequence[str], near: float) -> list[str]:
    """Return the numbers that have no counterpart of their own among the others."""
    left, result = list(others), []
    for one in some_of:
        same = next((k for k, other in enumerate(left) if _same(one, other, near)), None)
        if same is None:
            result.append(one)
        else:
            del left[same]
    return result


def _compared(where: str, old: Any, new: Any, near: float) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _names(where, old, new)
        for name in old.keys() & new.keys():
            if name not in PROSE and not (name == "tests" and isinstance(old[name], str)):
                yield from _compared(f"{where}.{name}", old[name], new[name], near)
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{where}: {len(old)} became {len(new)} items"
        for number, (one, other) in enumerate(zip(old, new, strict=False)):
            yield from _compared(f"{where}[{number}]", one, other, near)
    elif not _same(old, new, near):
        yield f"{where}: {old!r} became {new!r}"


def _names(where: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    gone, come = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
    return [*(f"{where}: {name} is gone" for name in gone), *(f"{where}: {name} is new" for name in come)]


def _same(old: object, new: object, near: float) -> bool:
    if isinstance(old, str) and isinstance(new, str):
        decimals = zip(DECIMAL.findall(old), DECIMAL.findall(new), strict=False)
        return old == new or (
            bool(near)
            and DECIMAL.sub("0.0", old) == DECIMAL.sub("0.0", new)
            and all(_close(float(one), float(other), near) for one, other in decimals)
        )
    if isinstance(old, float) and isinstance(new, float):
        return _close(old, new, near)
    return type(old) is type(new) and old == new


def _close(old: float, new: float, near: float) -> bool:
    both = math.isnan(old) and math.isnan(new)
    return both or old == new or math.isclose(old, new, rel_tol=near, abs_tol=near)


# Files ----------------------------------------------------------------------------------------------------------------


def recording(name: str) -> dict[str, Any]:
    """Return what was recorded of a case."""
    return json.loads((RECORDED / f"{name}.json").read_text("utf-8"))


def written(value: object, depth: int = 0) -> str:
    """Return JSON with a line for each record, so that versions can be read side by side."""
    if depth < DEEP and isinstance(value, dict | list) and len(json.dumps(value)) > 100:
        pad = "\n" + " " * (depth + 1)
        if isinstance(value, dict):
            inside = [f"{json.dumps(name)}: {written(one, depth + 1)}" for name, one in value.items()]
            return "{" + pad + f",{pad}".join(inside) + pad[:-1] + "}"
        return "[" + pad + f",{pad}".join(written(one, depth + 1) for one in value) + pad[:-1] + "]"
    return json.dumps(value, ensure_ascii=False)


def record(name: str) -> float:
    """Run a case, write its file and return the seconds it took."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = run(CASES[name], Path(folder).resolve())
    (RECORDED / f"{name}.json").write_text(f"{written(found)}\n", "utf-8")
    return time.perf_counter() - began


def main() -> int:
    """Record, or list the cases."""
    parser = argparse.ArgumentParser(description="Record what every command prints.")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="only these (default: all)")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true", help="run and record")
    action.add_argument("--list", action="store_true", help="say the names")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.cases if name not in CASES]
    if unknown:
        parser.error(f"no case {', '.join(unknown)}")
    for name in arguments.cases or CASES:
        took = f"  {record(name):.1f} s" if arguments.write else ""
        sys.stdout.write(f"{name}{took}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
