"""Scores of unbabel-comet on tiny random models: makes what stands on top of the encoders, and stores the numbers.

Cases that are stored keep their weights; new ones are drawn from a seed. Run it by `python parity/run.py comet`, for
some cases alone with their names behind it.
"""

import inspect
import json
import sys
import tempfile
import warnings
from importlib.metadata import version
from pathlib import Path

import comet.encoders.minilm
import torch
import transformers
from comet.models import load_from_checkpoint, str2model
from safetensors.torch import load_file, save_file

DATA = Path(__file__).parents[2] / "tests" / "data" / "parity"
ROWS = json.loads((DATA / "texts.json").read_text("utf-8"))
BATCHES = (1, 16)
SMALL = {"hidden_sizes": [16, 8], "train_data": [], "validation_data": []}
NEW = {
    "reg_max": ("regression_metric", "xlmr", "XLM-RoBERTa", {"pool": "max", "layer": 3}),
    "reg_cls_sparse": (
        "regression_metric",
        "xlmr",
        "XLM-RoBERTa",
        {"pool": "cls", "layer_transformation": "sparsemax", "layer_norm": False, "final_activation": "Sigmoid"},
    ),
    "qe_tanh": ("referenceless_regression_metric", "xlmr", "XLM-RoBERTa", {"activations": "tanh", "pool": "max"}),
    "rank_cls": ("ranking_metric", "xlmr", "XLM-RoBERTa", {"pool": "cls", "layer": 2}),
    "uni_bert": ("unified_metric", "bert_cased", "BERT", {"input_segments": ["mt", "src", "ref"], "word_layer": 4}),
}


class LocalTokenizer:
    """Stands for the tokenizer that the MiniLM encoder would fetch."""

    @staticmethod
    def from_pretrained(_: str, **__: object) -> transformers.XLMRobertaTokenizerFast:
        return transformers.XLMRobertaTokenizerFast.from_pretrained(DATA / "models" / "minilm")


def encoder_folder(name: str, folder: Path) -> Path:
    """Return a network with its tokenizer: XLM-R XL reads texts like XLM-R."""
    target = folder / name
    if not target.exists():
        target.mkdir()
        own = DATA / "models" / name
        files = {file.name: file for base in ("xlmr", name) for file in (DATA / "models" / base).glob("*token*.json")}
        for file in [*files.values(), own / "config.json", own / "model.safetensors"]:
            (target / file.name).write_bytes(file.read_bytes())
    return target


def hyper_parameters(name: str) -> dict[str, object]:
    """Return the settings of a new case."""
    kind, encoder, family, options = NEW[name]
    given = {"class_identifier": kind, "encoder_model": family, "pretrained_model": encoder, **SMALL, **options}
    return {key: value for key, value in given.items() if kind != "ranking_metric" or key != "hidden_sizes"}


def draw_head(model: torch.nn.Module, seed: int) -> dict[str, torch.Tensor]:
    """Return random numbers for all that stands on top of the encoder."""
    generator = torch.Generator().manual_seed(seed)
    state = {key: value for key, value in model.state_dict().items() if not key.startswith("encoder.model.")}
    return {
        key: value if "dropout_" in key else torch.randn(value.shape, generator=generator) * 0.3
        for key, value in state.items()
    }


def checkpoint(name: str, hparams: dict[str, object], heads: dict[str, torch.Tensor], folder: Path) -> Path:
    """Write a checkpoint as the trainer does; draws its head if none is stored."""
    kind = str2model[str(hparams["class_identifier"])]
    options = {key: value for key, value in hparams.items() if key in inspect.signature(kind).parameters}
    base = encoder_folder(str(hparams["pretrained_model"]), folder)
    model = kind(**options | {"pretrained_model": str(base)})
    own = {key.removeprefix(f"{name}/"): value for key, value in heads.items() if key.startswith(f"{name}/")}
    if not own:
        own = draw_head(model, sorted(NEW).index(name))
        heads.update({f"{name}/{key}": value.contiguous() for key, value in own.items()})
    stored = dict(model.hparams) | {"pretrained_model": str(base)}
    path = folder / "checkpoints" / name / "checkpoints" / "model.ckpt"
    path.parent.mkdir(parents=True)
    state = model.state_dict() | own
    torch.save({"state_dict": state, "hyper_parameters": stored, "pytorch-lightning_version": "2.0"}, path)
    (path.parents[1] / "hparams.yaml").write_text(json.dumps(stored, default=str), "utf-8")
    hparams |= {key: value for key, value in stored.items() if key not in ("pretrained_model", "class_identifier")}
    return path


def run(path: Path, known: dict[str, object], *, words: bool) -> dict[str, object]:
    """Return the scores of one checkpoint; runs of other origin are kept."""
    model = load_from_checkpoint(str(path))
    found: dict[str, object] = {key: value for key, value in known.items() if key.endswith("nospecial|16")}
    for batch in BATCHES:
        for rows in ("main", "empty"):
            output = model.predict(ROWS[rows], batch_size=batch, gpus=0, progress_bar=False)
            entry: dict[str, object] = {"scores": [float(score) for score in output.scores]}
            if words and batch == max(BATCHES):
                entry["meta"] = {"error_spans": output.metadata.error_spans}
            found[f"{rows}|{batch}"] = entry
    return known | found


def main() -> None:
    """Run all cases and store their numbers."""
    warnings.simplefilter("ignore")
    comet.encoders.minilm.XLMRobertaTokenizerFast = LocalTokenizer
    content = json.loads((DATA / "comet.json").read_text("utf-8"))
    heads = load_file(DATA / "comet.safetensors")
    for name in NEW:
        content["cases"].setdefault(name, {"hparams": hyper_parameters(name), "runs": {}})
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or content["cases"]:
            case = content["cases"][name]
            path = checkpoint(name, case["hparams"], heads, Path(folder))
            case["runs"] = run(path, case["runs"], words=bool(case["hparams"].get("word_level_training")))
    content["original"] = f"unbabel-comet {version('unbabel-comet')}"
    save_file(heads, DATA / "comet.safetensors")
    (DATA / "comet.json").write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")


if __name__ == "__main__":
    main()
