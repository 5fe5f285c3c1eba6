"""Scores of the bert-score package on the networks and texts of tests/data/parity."""

import json
import shutil
import tempfile
import warnings
from importlib.metadata import version
from itertools import product
from pathlib import Path

import transformers
from bert_score import BERTScorer

DATA = Path(__file__).parents[2] / "tests" / "data" / "parity"
MODELS = {"bert_cased": (4, 2), "roberta": (4, 2), "xlmr": (4, 2), "minilm": (4,), "bert9u": (4,), "mbert9": (4,)}
Rows = list[dict[str, str]]


def scores(scorer: BERTScorer, rows: Rows, *, several: bool) -> list[list[float]]:
    """Return precision, recall and F of each text; with several references, the source is the second one."""
    references = [[row["ref"], row["src"]] if several else row["ref"] for row in rows]
    found = scorer.score([row["mt"] for row in rows], references)
    return [[float(value) for value in own] for own in found]


def prepare(name: str, folder: Path) -> bool:
    """Write a model with the files that slow tokenizers read, and return whether it has one.

    The package takes slow tokenizers unless told otherwise; those of XLM-R would need a model of SentencePiece. Texts
    are cut at the length that the tokenizer names, as those of published models do.
    """
    shutil.copytree(DATA / "models" / name, folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    told = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    told["model_max_length"] = config["max_position_embeddings"] - 2 * ("roberta" in config["model_type"])
    (folder / "tokenizer_config.json").write_text(json.dumps(told), "utf-8")
    coder = json.loads((folder / "tokenizer.json").read_text("utf-8"))["model"]
    if isinstance(coder["vocab"], list):
        return False
    pieces = sorted(coder["vocab"], key=coder["vocab"].__getitem__)
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), "utf-8")
    (folder / "vocab.json").write_text(json.dumps(coder["vocab"]), "utf-8")
    merges = [own if isinstance(own, str) else " ".join(own) for own in coder.get("merges", [])]
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{own}\n" for own in merges), "utf-8")
    return True


def main() -> None:
    """Store P, R and F by model, layer, idf, rescaling and set of texts."""
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    texts = json.loads((DATA / "texts.json").read_text("utf-8"))
    weighing = (DATA / "bs.ref").read_text("utf-8").split("\n")[:-1]
    expected = {}
    made = Path(tempfile.mkdtemp())
    for name, layers in MODELS.items():
        folder = made / name
        slow = prepare(name, folder)
        for layer, idf, rescaled in product(layers, (False, True), (False, True)):
            scorer = BERTScorer(
                model_type=str(folder),
                num_layers=layer,
                idf=idf,
                idf_sents=weighing if idf else None,
                lang="en",
                rescale_with_baseline=rescaled,
                baseline_path=str(DATA / "bs_base.tsv") if rescaled else None,
                use_fast_tokenizer=not slow,
                device="cpu",
            )
            for rows in ("main",) if idf else ("main", "empty"):
                expected[f"{name}|{layer}|{idf}|{rescaled}|{rows}"] = scores(scorer, texts[rows], several=False)
            if not (idf or rescaled) and layer == layers[0]:
                expected[f"{name}|{layer}|{idf}|{rescaled}|multi"] = scores(scorer, texts["main"], several=True)
    content = {"original": f"bert-score {version('bert-score')}", "expected": expected}
    (DATA / "bertscore.json").write_text(json.dumps(content, separators=(",", ":")) + "\n", "utf-8")


if __name__ == "__main__":
    main()
