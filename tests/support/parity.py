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

from whyscore.metrics.learned.bartscore import BartScore
from whyscore.metrics.learned.comet.metric import Comet
from whyscore.metrics.learned.metricx import MetricX
from whyscore.metrics.learned.sbert import SBert
from whyscore.metrics.learned.transquest import TransQuest
from whyscore.metrics.lexical.rouge import Rouge
from whyscore.metrics.matching.bertscore import BertScore
from whyscore.metrics.matching.moverscore import MoverScore, XMoverScore
from whyscore.models.language_models import load_text_model
from whyscore.stats.agreement import acc_eq, soft_pairwise_accuracy
from whyscore.stats.correction import clusters
from whyscore.types import FloatMatrix, FloatVector, Segment

DATA = Path(__file__).parents[1] / "data" / "parity"

Rows = Sequence[Mapping[str, str]]
STRICT = 2e-6
"""float32 sums in another order: the originals differ by as much from themselves between batch sizes 1 and 16."""
LOOSE = 1e-5
EQUAL = 3.5e-4
"""The root of float32's rounding: MoverScore v2 takes roots of squared distances that should be 0."""


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
def stored(name: str) -> dict[str, Any]:
    """Return what is stored about an original."""
    content: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text("utf-8"))
    return content


def segments(rows: str, *, references: bool = True) -> list[Segment]:
    """Return a set of texts."""
    found: Rows = stored("texts")[rows]
    return [Segment(row["mt"], row["src"], (row["ref"],) if references else ()) for row in found]


def worst(ours: Sequence[float] | FloatVector, theirs: Sequence[float] | FloatVector) -> float:
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
        case = stored("comet")["cases"][name]
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

    def lines(self, name: str, texts: Sequence[str]) -> str:
        """Return a file of texts, one a line."""
        path = self.folder / name
        path.write_text("".join(f"{text}\n" for text in texts), "utf-8")
        return str(path)

    def transquest(self, name: str) -> Path:
        """Return a TransQuest model."""
        folder = self.folder / "transquest" / name
        if folder.exists():
            return folder
        base = self.model({"mono_roberta": "roberta", "mono_bert": "bert_cased"}.get(name, "xlmr"))
        shutil.copytree(base, folder)
        for file in (DATA / "transquest" / name).iterdir():
            shutil.copy(file, folder)
        if (folder / "pytorch_model.bin").exists():
            (folder / "model.safetensors").unlink()
        return folder

    def metricx(self) -> Path:
        """Return a MetricX model; of its large tables only the rows that are read are stored."""
        import torch
        from safetensors.torch import save_file

        folder = self.model("mt5")
        weights = dict(_tensors(DATA / "models" / "mt5" / "model.safetensors"))
        size = json.loads((folder / "config.json").read_text())["vocab_size"]
        for name, start in (("shared.weight", 0), ("lm_head.weight", 250089)):
            rows = weights[name]
            weights[name] = torch.zeros(size, rows.shape[1])
            weights[name][start : start + len(rows)] = rows
        if not (folder / "whole").exists():
            save_file(weights, folder / "model.safetensors")
            (folder / "whole").touch()
        return folder

    def sbert(self, name: str) -> Path:
        """Return a model of sentence-transformers: `xlmr` with a way of pooling and what may follow it."""
        folder = self.folder / "sbert" / name
        if folder.exists():
            return folder
        shutil.copytree(self.model("xlmr"), folder)
        shutil.copytree(DATA / "sbert" / name, folder, dirs_exist_ok=True)
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
    yield from _movers()
    yield from _bertscore()
    yield from _sbert()
    yield from _bartscore()
    yield from _metricx()
    yield from _rouge()
    yield from _mt_metrics_eval()


_MISSING = {
    "uni_ms_softmax_norm": [["layer_norm"], ["layer_transformation", "layer_norm", "sent_layer"]],
    "uni_ms_sparse_nonorm": [["layer_transformation"], ["hidden_sizes", "activations", "pool"]],
    "xc_softmax_norm": [["layer_transformation", "layer_norm", "word_layer", "sent_layer"]],
    "rank_mix": [["pool", "layer"]],
}


def _comet() -> Iterator[Case]:
    content = stored("comet")
    original = str(content["original"])
    for name, case in content["cases"].items():
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
    metric = Comet(str(workshop.comet(name, without)), device="cpu", **options)
    return metric, segments(rows)


def _comet_run(name: str, run: str, without: Sequence[str] = ()) -> Callable[[Workshop], float]:
    def compute(workshop: Workshop) -> float:
        metric, texts = _comet_metric(workshop, name, run, without)
        theirs = stored("comet")["cases"][name]["runs"][run]["scores"]
        return worst(metric.score(texts), theirs)

    return compute


def _comet_spans(name: str, run: str) -> Callable[[Workshop], float]:
    def compute(workshop: Workshop) -> float:
        metric, texts = _comet_metric(workshop, name, run)
        theirs = stored("comet")["cases"][name]["runs"][run]["meta"]["error_spans"]
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
    for name, case in content["cases"].items():
        for run in case["runs"]:
            yield Case("transquest", f"{name}, {run}", original, STRICT, _transquest_run(name, run))


def _transquest_run(name: str, run: str) -> Callable[[Workshop], float]:
    def compute(workshop: Workshop) -> float:
        case = stored("transquest")["cases"][name]
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
        wanted = [value for number, value in enumerate(expected) if number != separator]
        differences.append(worst(ours[~np.isnan(ours)], wanted))
    return max(differences)


def _movers() -> Iterator[Case]:
    content = stored("moverscore")
    for key, theirs in content["expected"].items():
        kind, *settings = key.split("|")
        original = content["original"]["mover" if kind.startswith("mover") else "xmover"]
        yield from _MOVERS[kind](key, settings, theirs, original)


def _language_model(_: str, settings: Sequence[str], theirs: Sequence[float], original: str) -> Iterator[Case]:
    name, rows = settings

    def compute(workshop: Workshop) -> float:
        texts = [segment.hypothesis for segment in segments(rows)]
        means = load_text_model(str(workshop.model(name)), "cpu", "fp32").means(texts, begin=False)
        return worst([means[text] for text in texts], theirs)

    yield Case("xmoverscore", f"language model, {rows}", original, LOOSE, compute)


def _moverscore(key: str, settings: Sequence[str], theirs: Sequence[float], original: str) -> Iterator[Case]:
    name, rows, idf, *ngram = settings
    version = "v1" if key.startswith("mover1") else "v2"
    texts = segments(rows)
    equal = np.array([text.hypothesis.split() == text.references[0].split() for text in texts])

    def differences(workshop: Workshop) -> FloatVector:
        options: dict[str, Any] = {"idf": "uniform"}
        if idf == "idf":
            options["idf"] = workshop.lines(f"{rows}.ref", [text.references[0] for text in texts])
            options["idf_hypothesis"] = workshop.lines(f"{rows}.hyp", [text.hypothesis for text in texts])
        if ngram:
            options["ngram"] = int(ngram[0])
        metric = MoverScore(str(workshop.model(name)), version, device="cpu", **options)
        return np.abs(metric.score(texts) - np.array(theirs))

    setting = f"{version}, {', '.join(settings[1:])}"
    if version == "v1":
        yield Case("moverscore", setting, original, LOOSE, lambda workshop: float(differences(workshop).max()))
        return
    differ, same = f"{setting}, texts that differ", f"{setting}, equal texts"
    yield Case("moverscore", differ, original, LOOSE, lambda workshop: float(differences(workshop)[~equal].max()))
    yield Case("moverscore", same, original, EQUAL, lambda workshop: float(differences(workshop)[equal].max()))


def _xmoverscore(key: str, settings: Sequence[str], theirs: Sequence[float], original: str) -> Iterator[Case]:
    name, rows, mapping, *more = settings
    version = "v1" if key.startswith("x1") else "v2"
    dropped = bool(more) and float(more[1]) > 0.01

    def compute(workshop: Workshop) -> float:
        options: dict[str, Any] = {}
        if mapping != "None":
            options["map"] = str(DATA / "maps" / ("m.BAM" if mapping == "CLP" else "m.GBDD.map"))
            options["remap"] = mapping.lower()
        if more:
            options |= {"ngram": int(more[0]), "flow_drop": float(more[1]) if dropped else 0.0}
        metric = XMoverScore(str(workshop.model(name)), version, device="cpu", **options)
        return worst(metric.score(segments(rows)), theirs)

    yield Case("xmoverscore", f"{version}, {', '.join(settings[1:])}", original, 1e-6, compute)


_MOVERS = {
    "lm": _language_model,
    "mover1": _moverscore,
    "mover2": _moverscore,
    "x1": _xmoverscore,
    "x2": _xmoverscore,
}


def _bertscore() -> Iterator[Case]:
    content = stored("bertscore")
    for key, theirs in content["expected"].items():
        yield Case("bertscore", key.replace("|", ", "), content["original"], STRICT, _bertscore_run(key, theirs))


def _bertscore_run(key: str, theirs: Sequence[Sequence[float]]) -> Callable[[Workshop], float]:
    name, layer, idf, rescaled, rows = key.split("|")

    def compute(workshop: Workshop) -> float:
        options: dict[str, Any] = {}
        if idf == "True":
            options["idf"] = str(DATA / "bs.ref")
        if rescaled == "True":
            options["baseline"] = str(DATA / "bs_base.tsv")
        metric = BertScore(str(workshop.model(name)), int(layer), device="cpu", **options)
        texts = multiple(segments("main")) if rows == "multi" else segments(rows)
        return worst(metric.statistics(texts).T.ravel(), np.ravel(theirs))

    return compute


def multiple(texts: Sequence[Segment]) -> list[Segment]:
    """Return texts with two references: their own, and the source."""
    return [Segment(text.hypothesis, text.source, (*text.references, text.source or "")) for text in texts]


def _sbert() -> Iterator[Case]:
    content = stored("sbert")
    for key, theirs in content["expected"].items():
        name, rows = key.split("|")
        yield Case("sbert", key.replace("|", ", "), content["original"], STRICT, _sbert_run(name, rows, theirs))


def _sbert_run(name: str, rows: str, theirs: Sequence[float]) -> Callable[[Workshop], float]:
    def compute(workshop: Workshop) -> float:
        metric = SBert(str(workshop.sbert(name)), "reference", device="cpu")
        return worst(metric.score(segments(rows)), theirs)

    return compute


_ARROWS = {"s->h": "source->hypothesis", "r->h": "reference->hypothesis", "h->r": "hypothesis->reference", "f": "f"}


def _bartscore() -> Iterator[Case]:
    content = stored("bartscore")
    for key, theirs in content["expected"].items():
        yield Case("bartscore", key.replace("|", ", "), content["original"], STRICT, _bartscore_run(key, theirs))
        if "|r->h|" in key:  # f is the mean of both directions
            both = np.mean([theirs, content["expected"][key.replace("r->h", "h->r")]], axis=0)
            changed = key.replace("r->h", "f")
            yield Case(
                "bartscore", changed.replace("|", ", "), content["original"], STRICT, _bartscore_run(changed, both)
            )


def _bartscore_run(key: str, theirs: Sequence[float] | FloatVector) -> Callable[[Workshop], float]:
    name, direction, how = key.split("|")

    def compute(workshop: Workshop) -> float:
        options: dict[str, Any] = {"weights": str(DATA / "bart.pth")} if name == "bartpth" else {}
        texts = segments("long")
        if direction == "multi":
            # An empty reference beside others does not count here.
            texts, options = multiple(texts)[: len(segments("main"))], options | {"references": how}
        metric = BartScore(
            str(workshop.model("bart")), _ARROWS.get(direction, "hypothesis->reference"), device="cpu", **options
        )
        return worst(metric.score(texts), theirs[: len(texts)])

    return compute


def _metricx() -> Iterator[Case]:
    content = stored("metricx")
    for key, theirs in content["expected"].items():
        yield Case("metricx", key.replace("|", ", "), content["original"], STRICT, _metricx_run(key, theirs))


def _metricx_run(key: str, theirs: Sequence[float]) -> Callable[[Workshop], float]:
    kind, rows = key.split("|")

    def compute(workshop: Workshop) -> float:
        against = "source" if kind.endswith("qe") else "reference"
        metric = MetricX(str(workshop.metricx()), int(kind[:2]), against, device="cpu")
        return worst(metric.score(segments(rows)), theirs)

    return compute


def _rouge() -> Iterator[Case]:
    content = stored("rouge")
    for key, theirs in content["expected"].items():
        yield Case("rouge", key.replace("|", ", "), content["original"], 1e-12, _rouge_run(key, theirs))


def _rouge_run(key: str, theirs: Sequence[float]) -> Callable[[Workshop], float]:
    kind, stemmed, rows = key.split("|")

    def compute(_: Workshop) -> float:
        metric = Rouge(kind.removeprefix("rouge"), stem=stemmed == "True", mode="compat")
        return worst(metric.score(segments(rows)), theirs)

    return compute


def _mt_metrics_eval() -> Iterator[Case]:
    content = stored("mtme")
    original = content["original"]
    yield Case("spa", "compat='mtme', 60 random matrices", original, 0.0, _spa)
    yield Case("acc_eq", "12 random matrices", original, 1e-12, _acc_eq)
    yield Case("clusters", "20 random matrices of p-values", original, 0.0, _clusters)


def matrices(seed: int) -> tuple[FloatMatrix, FloatMatrix]:
    """Return scores of a metric and of people, systems x segments, full of ties."""
    rng = np.random.default_rng(seed)
    systems, number = int(rng.integers(4, 13)), int(rng.integers(40, 240))
    shape = (systems, number)
    quality = rng.integers(0, 60, size=(systems, 1))
    errors = rng.integers(0, 40, size=shape) * (rng.integers(0, 100, size=shape) < 60 - quality // 2)
    human = -np.minimum(25, errors) / (1 if seed % 2 else 4)
    noise = rng.integers(1, 9), rng.integers(-300, 300, size=shape) / 10
    return np.round((human * noise[0] + noise[1] + quality) / 7, (3, 6, 1)[seed % 3]), human


def _spa(_: Workshop) -> float:
    theirs = stored("mtme")["spa"]
    ours = [soft_pairwise_accuracy(*matrices(seed), compat="mtme").value for seed in range(len(theirs))]
    return worst(ours, theirs)


def _acc_eq(_: Workshop) -> float:
    theirs = stored("mtme")["acc_eq"]
    # Of thresholds with the same accuracy the originals may take another one.
    return worst([acc_eq(*matrices(seed)).value for seed in range(len(theirs))], [value for value, _ in theirs])


def _clusters(_: Workshop) -> float:
    theirs = stored("mtme")["clusters"]
    ours = []
    for seed in range(len(theirs)):
        rng = np.random.default_rng(1000 + seed)
        number = int(rng.integers(3, 12))
        table = np.triu(rng.integers(0, 200, size=(number, number)) / 1000, 1)
        names = [f"{k:02}" for k in range(number)]
        ours += clusters(names, [-k for k in range(number)], table, alpha=0.05).ranks
    return worst(ours, [rank for own in theirs for rank in own])
