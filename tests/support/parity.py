"""Numbers of the original code on tiny random models, and the same numbers by whyscore.

`tests/data/parity` holds texts, networks and what the originals said; its README tells where each number comes from. A
`Case` is one setting of one metric: `Case.difference` assembles the model as the original reads it in a temporary
folder, scores with whyscore and returns the worst absolute difference. `tests/test_parity.py` holds every case to its
limit, and `scripts/make_parity.py` prints all of them as docs/parity.md.
"""

import json
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from whyscore.metrics.learned.comet.metric import Comet
from whyscore.metrics.learned.transquest import TransQuest
from whyscore.types import FloatVector, Segment

DATA = Path(__file__).parents[1] / "data" / "parity"

Rows = Sequence[Mapping[str, str]]
STRICT = 2e-6
"""float32 sums in another order: the originals differ by as much from themselves between batch sizes 1 and 16."""


@dataclass(frozen=True)
class Case:
    """One setting of one metric, with the version of the original."""

    metric: str
    setting: str
    original: str
    limit: float
    compute: Callable[["Workshop"], float] = field(repr=False)

    def difference(self, workshop: "Workshop") -> float:
        """Return the worst difference between whyscore and the original."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.compute(workshop)


@cache
def stored(name: str) -> dict[str, object]:
    """Return what is stored about an original."""
    content: dict[str, object] = json.loads((DATA / f"{name}.json").read_text("utf-8"))
    return content


def segments(rows: str, *, references: bool = True) -> list[Segment]:
    """Return a set of texts."""
    found: Rows = stored("texts")[rows]  # type: ignore[assignment]
    return [Segment(row["mt"], row["src"], (row["ref"],) if references else ()) for row in found]


def worst(ours: Sequence[float] | FloatVector, theirs: Sequence[float]) -> float:
    """Return the worst difference of two lists of the same length."""
    first, second = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    assert first.shape == second.shape, (first.shape, second.shape)
    assert np.isfinite(first).all()
    return float(np.abs(first - second).max())


class Workshop:
    """Assembles the models in a folder, each once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def model(self, name: str) -> Path:
        """Return the folder of a network with its tokenizer."""
        folder = self.folder / "models" / name
        if not folder.exists():
            shutil.copytree(DATA / "models" / name, folder)
            if not (folder / "tokenizer.json").exists():  # XLM-R XL reads texts like XLM-R
                for file in (DATA / "models" / "xlmr").glob("*token*.json"):
                    shutil.copy(file, folder)
        return folder

    def comet(self, name: str, without: Sequence[str] = ()) -> Path:
        """Return a COMET checkpoint as the trainer writes it; `without` are keys that hparams.yaml lacks."""
        import torch

        folder = self.folder / "comet" / "-".join([name, *without])
        if folder.exists():
            return folder
        case: dict[str, dict[str, object]] = stored("comet")["cases"][name]  # type: ignore[index]
        hparams = dict(case["hparams"])
        base = self.model(str(hparams["pretrained_model"]))
        hparams["pretrained_model"] = str(base)
        encoder = {f"encoder.model.{key}": value for key, value in _tensors(base / "model.safetensors").items()}
        heads = {key.removeprefix(f"{name}/"): value for key, value in _heads().items() if key.startswith(f"{name}/")}
        (folder / "checkpoints").mkdir(parents=True)
        content = {"state_dict": encoder | heads, "hyper_parameters": hparams, "pytorch-lightning_version": "2.6.6"}
        torch.save(content, folder / "checkpoints" / "model.ckpt")
        written = {key: value for key, value in hparams.items() if key not in without}
        (folder / "hparams.yaml").write_text(json.dumps(written), "utf-8")  # JSON is YAML
        return folder

    def transquest(self, name: str) -> Path:
        """Return a TransQuest model."""
        folder = self.folder / "transquest" / name
        if folder.exists():
            return folder
        base = self.model("roberta" if name.endswith("roberta") else "xlmr")
        shutil.copytree(base, folder)
        for file in (DATA / "transquest" / name).iterdir():
            shutil.copy(file, folder)
        if (folder / "pytorch_model.bin").exists():
            (folder / "model.safetensors").unlink()
        return folder


@cache
def _tensors(path: Path) -> dict[str, object]:
    from safetensors.torch import load_file

    return dict(load_file(path))


def _heads() -> dict[str, object]:
    return _tensors(DATA / "comet.safetensors")


def cases() -> Iterator[Case]:
    """Yield every setting, those of one model one after the other."""
    yield from _comet()
    yield from _transquest()


_MISSING = {
    "uni_ms_softmax_norm": [["layer_norm"], ["layer_transformation", "layer_norm", "sent_layer"]],
    "uni_ms_sparse_nonorm": [["layer_transformation"], ["hidden_sizes", "activations", "pool"]],
    "xc_softmax_norm": [["layer_transformation", "layer_norm", "word_layer", "sent_layer"]],
    "rank_mix": [["pool", "layer"]],
}


def _comet() -> Iterator[Case]:
    content = stored("comet")
    original = str(content["original"])
    for name, case in content["cases"].items():  # type: ignore[attr-defined]
        for run in case["runs"]:
            yield Case("comet", f"{name}, {run}", original, STRICT, _comet_run(name, run))
        for without in _MISSING.get(name, ()):
            setting = f"{name}, main|16, hparams.yaml without {' and '.join(without)}"
            yield Case("comet", setting, original, STRICT, _comet_run(name, "main|16", without))
        for run, found in case["runs"].items():
            if "error_spans" in found.get("meta", {}) and "nospecial" not in run:
                yield Case("comet", f"{name}, error spans, {run}", original, STRICT, _comet_spans(name, run))


def _comet_metric(workshop: Workshop, name: str, run: str, without: Sequence[str] = ()) -> tuple[Comet, list[Segment]]:
    what, _, _ = run.partition("|")
    rows = "empty" if what.startswith("empty") else "main"
    options: dict[str, object] = {"against": "source"} if what.startswith("noref") else {}
    if what.startswith("thr"):
        options["threshold"] = float(what[3:])
    if not what.endswith("nospecial"):
        options["mode"] = "compat"
    metric = Comet(str(workshop.comet(name, without)), device="cpu", **options)  # type: ignore[arg-type]
    return metric, segments(rows)


def _comet_run(name: str, run: str, without: Sequence[str] = ()) -> Callable[[Workshop], float]:
    def compute(workshop: Workshop) -> float:
        metric, texts = _comet_metric(workshop, name, run, without)
        theirs = stored("comet")["cases"][name]["runs"][run]["scores"]  # type: ignore[index]
        return worst(metric.score(texts), theirs)

    return compute


def _comet_spans(name: str, run: str) -> Callable[[Workshop], float]:
    def compute(workshop: Workshop) -> float:
        metric, texts = _comet_metric(workshop, name, run)
        theirs = stored("comet")["cases"][name]["runs"][run]["meta"]["error_spans"]  # type: ignore[index]
        ours = metric.error_spans(texts)
        differences = [0.0]
        for segment, found, expected in zip(texts, ours, theirs, strict=True):
            # Spans of special pieces and boundary marks have no text; those of others may begin or end with blanks.
            written = [span for span in expected if span["text"].replace("<s>", "").strip()]
            wanted = [_trimmed(segment.hypothesis, span) for span in written]
            assert [(s.start, s.end, s.severity) for s in found] == [
                (s["start"], s["end"], s["severity"]) for s in wanted
            ]
            differences += [abs((s.confidence or 0) - w["confidence"]) for s, w in zip(found, wanted, strict=True)]
        return max(differences)

    return compute


def _trimmed(text: str, span: Mapping[str, Any]) -> dict[str, Any]:
    inside = text[span["start"] : span["end"]]
    lead, tail = len(inside) - len(inside.lstrip()), len(inside) - len(inside.rstrip())
    return {**span, "start": span["start"] + lead, "end": span["end"] - (tail if inside.strip() else 0)}


def _transquest() -> Iterator[Case]:
    content = stored("transquest")
    original = str(content["original"])
    for name, case in content["cases"].items():  # type: ignore[attr-defined]
        for run in case["runs"]:
            yield Case("transquest", f"{name}, {run}", original, STRICT, _transquest_run(name, run))


def _transquest_run(name: str, run: str) -> Callable[[Workshop], float]:
    def compute(workshop: Workshop) -> float:
        case = stored("transquest")["cases"][name]  # type: ignore[index]
        theirs = case["runs"][run]
        metric = TransQuest(str(workshop.transquest(name)), case["kind"], device="cpu")
        texts = segments(run)
        if case["kind"] != "micro":
            return worst(metric.score(texts[: len(theirs["scores"])]), theirs["scores"])
        return _tag_difference(metric, texts, theirs)

    return compute


def _tag_difference(metric: TransQuest, texts: Sequence[Segment], theirs: Mapping[str, Sequence[object]]) -> float:
    differences = [0.0]
    for segment, tags, expected in zip(texts, metric.tags(texts), theirs["p"], strict=True):
        target = np.empty(len(tags.hypothesis) + len(tags.gaps))
        target[::2], target[1::2] = tags.gaps, tags.hypothesis
        separator = len((segment.source or "").split())
        ours = np.concatenate([tags.source, target])
        wanted = [value for number, value in enumerate(expected) if number != separator]  # type: ignore[arg-type]
        differences.append(worst(ours[~np.isnan(ours)], wanted))
    return max(differences)
