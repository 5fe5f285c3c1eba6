"""Makes the data sets under tests/data out of the public originals.

    python scripts/make_test_data.py PATH_TO_ORIGINALS [OUTPUT]

The originals lie as tests/data/README.md names them. Only what its licence allows is taken:

1. Copied whole: the Eval4NLP 2021 development sets (MLQE-PE, CC0), the log-probabilities of their translation systems
   (CC0), Winogender (MIT), two score files of Eval4NLP 2023 (MIT), and numbers that were computed for these tests.
2. Packed with gzip: the MQM ratings of the WMT 2021 TED talks (Apache-2.0).
3. Without words: WMT17 and SummEval are used with token F1 alone, which only asks whether two words are equal. So every
   word becomes a number, the same word the same number; the texts themselves are not part of the result. Of the scores
   of SummEval, the columns that the tests read are kept.

The result is always the same, byte for byte.
"""

import csv
import gzip
import io
import json
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

OUTPUT = Path(__file__).resolve().parents[1] / "tests" / "data"
COPIED = (
    *(
        f"eval4nlp2021/dev/{pair}/dev.{name}"
        for pair in ("et-en", "ro-en")
        for name in ("da", "mt", "pe", "src", "src-mt.alignments", "src-tags", "tgt-tags")
    ),
    *(f"mlqe_pe_wordprobas/dev/{pair}/{name}" for pair in ("et-en", "ro-en") for name in ("mt.bpe", "word_probas")),
    "muler/winogender/all_sentences.tsv",
    "muler/winogender/LICENSE",
    "eval4nlp2023_summarization/dev_gold.seg.scores",
    "eval4nlp2023_summarization/example_submission_guanaco.seg.scores",
    "eval4nlp2023_summarization/LICENSE",
    "boosting/explanations_tokenF1_wmt17_csen.jsonl",
    "boosting/shapley_exact_tokenF1_wmt17_csen.jsonl",
    "statistics/expected.json",
)
PACKED = ("mqm/ted_zhen_ratings.jsonl", "mqm/ted_zhen_mqm_expected.csv")
ASPECTS = ("coherence", "consistency", "fluency", "relevance")
METRICS = (
    *(f"bertscore_{measure}" for measure in ("precision", "recall", "f1")),
    *("rouge-1_f1", "rouge-2_f1", "MoverScore", "qa-eval_em", "qa-eval_f1"),
)
SCORES = (
    *("bmx_split", "instance_id", "system"),
    *(f"expert_{aspect}{form}" for aspect in ASPECTS for form in ("", "_raw")),
    *METRICS,
)


def write_packed(path: Path, text: str) -> None:
    """Write a gzip file that depends on nothing but the text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def numbering() -> Callable[[str], str]:
    """Return a function that turns the words of a text into numbers, equal words into equal ones."""
    numbers: dict[str, int] = {}
    return lambda text: " ".join(str(numbers.setdefault(word, len(numbers))) for word in text.split())


def wordless_wmt17(lines: Iterable[str]) -> str:
    """Return WMT17 without its sources, and with numbers for words."""
    number = numbering()
    rows = []
    for row in map(json.loads, lines):
        del row["source"]
        rows.append(row | {name: number(row[name]) for name in ("translation", "reference")})
    return "".join(json.dumps(row) + "\n" for row in rows)


def wordless_summeval(lines: Iterable[str]) -> str:
    """Return the summaries and references of SummEval with numbers for words."""
    number = numbering()
    rows = []
    for row in map(json.loads, lines):
        systems = {name: number(text) for name, text in row["systems"].items()}
        rows.append(row | {"references": [number(text) for text in row["references"]], "systems": systems})
    return "".join(json.dumps(row) + "\n" for row in rows)


def chosen_scores(lines: Iterable[str]) -> str:
    """Return the columns of SummEval's scores that the tests read."""
    written = io.StringIO()
    table = csv.DictWriter(written, SCORES, extrasaction="ignore", lineterminator="\n")
    table.writeheader()
    table.writerows(csv.DictReader(lines))
    return written.getvalue()


def main(arguments: list[str]) -> None:
    """Write all data sets."""
    originals, output = Path(arguments[0]), Path(arguments[1]) if arguments[1:] else OUTPUT
    for name in COPIED:
        (output / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(originals / name, output / name)
    for name in PACKED:
        write_packed(output / f"{name}.gz", (originals / name).read_text("utf-8"))
    for name, change in {
        "wmt17/wmt17_to_en.jsonl": wordless_wmt17,
        "summeval/texts.jsonl": wordless_summeval,
        "summeval/scores.csv": chosen_scores,
    }.items():
        write_packed(output / f"{name}.gz", change((originals / name).read_text("utf-8").split("\n")[:-1]))


if __name__ == "__main__":
    main(sys.argv[1:])
