"""Cosines of sentence-transformers on the network and texts of tests/data/parity, by way of pooling."""

import json
import shutil
import tempfile
import warnings
from importlib.metadata import version
from pathlib import Path

from sentence_transformers import SentenceTransformer
from sentence_transformers.util import pairwise_cos_sim

DATA = Path(__file__).parents[2] / "tests" / "data" / "parity"


def main() -> None:
    """Store the cosine of hypothesis and reference by model and set of texts."""
    warnings.simplefilter("ignore")
    texts = json.loads((DATA / "texts.json").read_text("utf-8"))
    expected = {}
    for own in sorted((DATA / "sbert").iterdir()):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(DATA / "models" / "xlmr", folder, dirs_exist_ok=True)
            shutil.copytree(own, folder, dirs_exist_ok=True)
            model = SentenceTransformer(folder, device="cpu")
            for rows in ("main", "empty"):
                sides = [[row[side] for row in texts[rows]] for side in ("mt", "ref")]
                vectors = [model.encode(side, convert_to_tensor=True, show_progress_bar=False) for side in sides]
                expected[f"{own.name}|{rows}"] = [float(value) for value in pairwise_cos_sim(*vectors)]
    content = {"original": f"sentence-transformers {version('sentence-transformers')}", "expected": expected}
    (DATA / "sbert.json").write_text(json.dumps(content, separators=(",", ":")) + "\n", "utf-8")


if __name__ == "__main__":
    main()
