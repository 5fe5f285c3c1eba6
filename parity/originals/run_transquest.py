"""Scores of MonoTransQuest on tiny models: draws the weights of a new case, and stores the numbers.

Models with XLM-R keep the numbers they have: the package reads them with a model of SentencePiece, which the tiny ones
lack.
"""

import json
import shutil
import tempfile
import warnings
from importlib.metadata import version
from pathlib import Path

import torch
import transformers
from transquest.algo.sentence_level.monotransquest.run_model import MonoTransQuestModel

DATA = Path(__file__).parents[2] / "tests" / "data" / "parity"
KINDS = {"mono_roberta": ("roberta", "roberta"), "mono_bert": ("bert", "bert_cased")}


def draw(folder: Path, base: Path) -> None:
    """Write the weights of a BERT with a regression head that is drawn from a seed."""
    torch.manual_seed(0)
    model = transformers.BertForSequenceClassification.from_pretrained(base, num_labels=1)
    for part in (model.bert.pooler.dense, model.classifier):
        torch.nn.init.normal_(part.weight, std=0.3)
        torch.nn.init.normal_(part.bias, std=0.3)
    folder.mkdir()
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    (folder / "config.json").write_text(
        json.dumps(model.config.to_diff_dict() | {"_name_or_path": base.name}, indent=2) + "\n", "utf-8"
    )
    told = {"max_seq_length": 60, "regression": True, "model_type": "bert", "eval_batch_size": 8}
    (folder / "model_args.json").write_text(json.dumps(told) + "\n", "utf-8")


def main() -> None:
    """Store the scores of every case."""
    warnings.simplefilter("ignore")
    texts = json.loads((DATA / "texts.json").read_text("utf-8"))
    content = json.loads((DATA / "transquest.json").read_text("utf-8"))
    for name, (kind, base) in KINDS.items():
        own = DATA / "transquest" / name
        if not own.exists():
            draw(own, DATA / "models" / base)
        case = content["cases"].setdefault(name, {"kind": "mono", "runs": {"main": {}, "empty": {}}})
        with tempfile.TemporaryDirectory() as folder:
            for part in (DATA / "models" / base, own):
                shutil.copytree(part, folder, dirs_exist_ok=True)
            (Path(folder) / "model.safetensors").unlink()
            prepare(Path(folder))
            told = {"silent": True, "use_multiprocessing": False, "no_cache": True, "cache_dir": f"{folder}/cache"}
            model = MonoTransQuestModel(kind, folder, num_labels=1, use_cuda=False, args=told)
            for rows, found in case["runs"].items():
                pairs = [[row["src"], row["mt"]] for row in texts[rows]]
                known = len(found.get("scores", pairs))
                found["scores"] = [float(score) for score in model.predict(pairs[:known])[0].reshape(-1)]
    content["original"] = f"transquest {version('transquest')}"
    (DATA / "transquest.json").write_text(json.dumps(content, separators=(",", ":")) + "\n", "utf-8")


def prepare(folder: Path) -> None:
    """Write the files that slow tokenizers read, for those that do without SentencePiece."""
    coder = json.loads((folder / "tokenizer.json").read_text("utf-8"))["model"]
    if isinstance(coder["vocab"], dict):
        pieces = sorted(coder["vocab"], key=coder["vocab"].__getitem__)
        (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), "utf-8")
        (folder / "vocab.json").write_text(json.dumps(coder["vocab"]), "utf-8")
        merges = [own if isinstance(own, str) else " ".join(own) for own in coder.get("merges", [])]
        (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{own}\n" for own in merges), "utf-8")


if __name__ == "__main__":
    main()
