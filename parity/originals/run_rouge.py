"""Scores of the rouge-score package on the texts of tests/data/parity."""

import json
from importlib.metadata import version
from pathlib import Path

from rouge_score import rouge_scorer

DATA = Path(__file__).parents[2] / "tests" / "data" / "parity"
KINDS = ["rouge1", "rouge2", "rougeL", "rougeLsum"]


def main() -> None:
    """Store F scores by kind, stemming and set of texts."""
    texts = json.loads((DATA / "texts.json").read_text("utf-8"))
    expected = {}
    for stemmed in (False, True):
        scorer = rouge_scorer.RougeScorer(KINDS, use_stemmer=stemmed)
        for rows in ("main", "empty", "plain"):
            scores = [scorer.score(row["ref"], row["mt"]) for row in texts[rows]]
            for kind in KINDS:
                expected[f"{kind}|{stemmed}|{rows}"] = [float(own[kind].fmeasure) for own in scores]
    content = {"original": f"rouge-score {version('rouge-score')}", "expected": expected}
    (DATA / "rouge.json").write_text(json.dumps(content, separators=(",", ":")) + "\n", "utf-8")


if __name__ == "__main__":
    main()
