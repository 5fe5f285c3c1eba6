"""`train`: from texts and labels to a folder that `qe(model='folder/')` loads, with a card that says how good it is.

1. Read the input, sort it by content and make labels (`labels`, `perturbations`).
2. Hold out documents, or all translations of a source where no documents are named: half of them for early stopping and
   calibration, half for the card.
3. Train (`examples`, `loop`). Everything needed to go on after a kill is in `work/` inside the folder; the same command
   again goes on, and any other is refused.
4. Calibrate the logits of words and gaps on the first half (Platt 1999).
5. Judge on the second half, or on `test`: AUC of the words of both sides, Pearson's correlation with sentence scores,
   beside word length, surprisal, `evidence` and the `qe` that ships. Controls not beaten: a warning.
"""

import json
import shutil
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whyscore.analysis.common import as_metric
from whyscore.analysis.train.examples import (
    KINDS,
    Cut,
    Embedded,
    Joined,
    Material,
    Targets,
    cut_rows,
    label_spans,
    make_targets,
    prepare,
)
from whyscore.analysis.train.labels import (
    METRICS,
    WRONG,
    Rated,
    Stretches,
    TrainNotice,
    align,
    digest_rows,
    parallel_rows,
    read_rated,
    refuse_unusable,
)
from whyscore.analysis.train.perturbations import perturb_rows
from whyscore.analysis.train.settings import LABEL_SOURCES, LabelSource, TrainSettings
from whyscore.data.files import read_lines
from whyscore.data.writing import lock, write_lines, write_or_compare
from whyscore.errors import DataError, SpecError, UserError
from whyscore.metrics.estimators.features import NAMES
from whyscore.metrics.estimators.joint import ENCODER, FORMAT, load_encoder
from whyscore.metrics.estimators.qe import WEIGHTS, UnseenNotice, digest_of
from whyscore.models.checkpoints import device_of, load_pretrained, package, quiet
from whyscore.models.encoders.embedded import LANGUAGES
from whyscore.models.evidence import Setting, error_evidence
from whyscore.models.surprisal import piece_surprisal
from whyscore.models.tensors import write_tensors
from whyscore.present import Look, present
from whyscore.settings import settings_of, takes
from whyscore.stats.words import Ragged, agree, mean_estimates
from whyscore.text.randomness import generator
from whyscore.text.splitters import white_space
from whyscore.types import HYPOTHESIS, SOURCE, FloatVector, Place, Segment, Words
from whyscore.types.result import Cell, Record, Result, Table
from whyscore.version import __version__

WORK = "work"
PLAN, SETTINGS, CARD = "plan.json", "settings.json", "card.md"
CONTROLS = ("length", "surprisal")
_DRAWS = 1000
_ENOUGH = 2000
MEASURED = (
    "On Eval4NLP 2021 dev ro-en, human labels of 500 segments reached a word AUC of .773, of 2,000 .813, of 7,000 "
    ".842; surprisal has .733 and the shipped qe .863 (docs/how-to/train.md)"
)


class Measured(NamedTuple):
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False, repr=False)
class TrainResult(Result):
    """A trained model: where it is, and how good it is on documents that it has not seen."""

    folder: Path
    digest: str
    segments: int
    judged: int
    labels: str
    """Of the segments it was judged on."""
    measures: Mapping[str, Mapping[str, Measured]]
    """By metric or control: `words`, `source words`, `sentences`."""
    seconds: float
    settings: TrainSettings
    kind: ClassVar[str] = "train"

    def header(self) -> Record:
        return {
            "folder": str(self.folder), "digest": self.digest, "segments": self.segments, "judged": self.judged,
            "labels": self.labels, "seconds": self.seconds, "settings": asdict(self.settings),
        }  # fmt: skip

    def records(self) -> Iterator[Record]:
        for name, measures in self.measures.items():
            for measure, estimate in measures.items():
                yield {"name": name, "measure": measure, **estimate._asdict(), "n": self.judged}

    def tables(self, *, long: bool = False) -> list[Table]:
        if long:
            return [Table.of(self.records())]
        shown = list(dict.fromkeys(measure for measures in self.measures.values() for measure in measures))
        columns = ("", *(column for measure in shown for column in (measure, f"{measure} 95 %")))
        rows: list[tuple[Cell, ...]] = []
        for name, measures in self.measures.items():
            cells: list[Cell] = [name]
            for measure in shown:
                estimate = measures.get(measure)
                cells += (
                    [None, None] if estimate is None else [estimate.value, f"[{estimate.low:.3f}, {estimate.high:.3f}]"]
                )
            rows.append(tuple(cells))
        note = (
            f"{self.judged} segments that were not trained on, labels: {self.labels}. AUC of words, mean over segments "
            "with right and wrong words; Pearson's correlation of sentence scores"
        )
        return [Table(columns, tuple(rows), dict.fromkeys(shown, True), notes=(note,), title="Held-out results")]


@takes(TrainSettings)
def train(
    *data: str | Path,
    output: str | Path,
    parallel: Sequence[str | Path] = (),
    hypotheses: str | Path | None = None,
    lang_pair: str | None = None,
    test: Sequence[str | Path] = (),
    exclude: Sequence[Segment] = (),
    report: Callable[[str], None] | None = None,
    settings: TrainSettings,
) -> TrainResult:
    """Return how good a newly trained estimator is; the estimator itself is in the folder `output`.

    Args:
        data: Files or folders with human labels.
        output: The folder of the model.
        parallel: A file of sources and one of their references, for labels from alignment or perturbation.
        hypotheses: Translations of the same sources by a system.
        lang_pair: As in `et-en`; chooses among the language pairs of the data.
        test: Files or folders with human labels to evaluate on, instead of held-out documents.
        exclude: Segments of a later evaluation: rows with their source or hypothesis are not trained on.
        report: Hears what is being done.
        settings: Labels, encoder, losses, schedule.
    """
    package("torch", "whyscore train")
    # A command passes settings of its own too, which neither belong into the folder nor decide if a training goes on.
    settings = TrainSettings(
        **{setting.name: getattr(settings, setting.name) for setting in settings_of(TrainSettings)}
    )
    tell = report or (lambda _: None)
    folder = Path(output)
    _refuse_used(folder)
    rows = make_rows(data, parallel, hypotheses, lang_pair, settings)
    tested = _sort_rows(row for path in test for row in read_rated(path, lang_pair))
    usable = without_overlap(rows, [*(Segment(row.hypothesis, row.source) for row in tested), *exclude])
    if len(usable) < len(rows):
        tell(f"{len(rows) - len(usable)} segments were left out: their source or hypothesis occurs in the test data")
    return _Job(folder, settings, usable, tested, tell).run()


def without_overlap(rows: Sequence[Rated], segments: Sequence[Segment]) -> list[Rated]:
    """Return the rows whose source and hypothesis do not occur in segments, letters and digits compared."""
    seen = {_letters(text) for segment in segments for text in (segment.source or "", segment.hypothesis)}
    return [row for row in rows if _letters(row.source) not in seen and _letters(row.hypothesis) not in seen]


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


def make_rows(
    data: Sequence[str | Path],
    parallel: Sequence[str | Path],
    hypotheses: str | Path | None,
    lang_pair: str | None,
    settings: TrainSettings,
) -> list[Rated]:
    """Return labelled segments from all input, by the label sources that are asked for or that the input allows."""
    rated = _sort_rows(row for path in data for row in read_rated(path, lang_pair))
    texts: list[Rated] = []
    if parallel:
        if len(parallel) != 2:  # noqa: PLR2004 - sources and references
            raise UserError(f"--parallel takes a file of sources and one of references, got {len(parallel)} file(s)")
        lines = [read_lines(path).texts for path in parallel]
        outputs = None if hypotheses is None else read_lines(hypotheses).texts
        texts = _sort_rows(parallel_rows(lines[0], lines[1], outputs, lang_pair or ""))
    if not rated and not texts:
        raise UserError("nothing to train on: give --data with labels, or --parallel SOURCES REFERENCES")
    if hypotheses is not None and not texts:
        raise UserError("--hypotheses needs --parallel SOURCES REFERENCES")
    usual: tuple[LabelSource, ...] = (*(("human",) if rated else ()), *_usual(texts, hypotheses))
    rows: list[Rated] = []
    for source in sorted(set(settings.labels or usual), key=LABEL_SOURCES.index):
        if source == "human":
            if not rated:
                raise UserError("--labels human needs --data with tags, spans or scores")
            rows += rated
        elif source == "alignment":
            rows += align([*rated, *(texts if hypotheses is not None else ())])
        else:
            rows += perturb_rows([*rated, *texts], settings)
    return rows


def _sort_rows(rows: Iterable[Rated]) -> list[Rated]:
    """Return rows in an order that depends on what they hold: the same data in another order give the same weights."""
    return sorted(rows, key=repr)


def _usual(texts: Sequence[Rated], hypotheses: str | Path | None) -> tuple[LabelSource, ...]:
    if not texts:
        return ()
    return ("alignment",) if hypotheses is not None else ("perturbation",)


def _refuse_used(folder: Path) -> None:
    if (folder / WEIGHTS).exists():
        raise UserError(f"{folder} holds a trained model already: choose another -o, or remove it")
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / WORK / PLAN).exists())):
        raise UserError(f"{folder} is not an empty folder: choose another -o")


class Split(NamedTuple):
    """Rows by what they are for."""

    trained: NDArray[np.intp]
    tuning: NDArray[np.intp]
    judged: NDArray[np.intp]


def split_rows(cuts: Sequence[Cut], held_out: float, seed: int, *, tested: bool = False) -> Split:
    """Return rows to train on, to stop and calibrate on, and to judge on, by their documents.

    Where a test set is named, the documents that would be judged on are trained on.
    """
    places = {
        name: float(generator(seed, "held out", name).random()) for name in dict.fromkeys(cut.row.group for cut in cuts)
    }
    share = np.array([places[cut.row.group] for cut in cuts])
    trained = share >= (held_out / 2 if tested else held_out)
    tuning = share < held_out / 2
    parts = Split(*map(np.flatnonzero, (trained, tuning, ~trained & ~tuning)))
    if not all(len(part) for part in (parts[:2] if tested else parts)):
        named = sum(bool(cut.row.document) for cut in cuts)
        unit = ("document" if named else "source") + ("s" if len(places) > 1 else "")
        raise DataError(
            f"no held-out documents: {len(cuts)} segments come from {len(places)} {unit}, too few to keep a share of "
            f"{held_out:g} of them for early stopping and for the card. Give more documents or raise --held-out"
        )
    return parts


class _Job:
    """One training."""

    def __init__(
        self,
        folder: Path,
        settings: TrainSettings,
        rows: Sequence[Rated],
        test: Sequence[Rated],
        report: Callable[[str], None],
    ) -> None:
        refuse_unusable(rows)
        self.folder, self.settings, self.test, self.report = folder, settings, test, report
        self.embedded = settings.encoder == "embedded"
        self.cuts = cut_rows(rows, embedded=self.embedded)
        if len(self.cuts) < settings.least_segments:
            raise DataError(
                f"{len(self.cuts)} labelled segments are too few to train on (--least-segments "
                f"{settings.least_segments}). {MEASURED}"
            )
        self.split = split_rows(self.cuts, settings.held_out, settings.seed, tested=bool(test))
        self.kinds = tuple(kind for kind in KINDS if any(cut.row.kind == kind for cut in self.cuts))
        self.metrics = METRICS if "alignment" in self.kinds else ()
        self.data_digest = digest_rows([*rows, *test])
        self._warn(len(self.cuts) - len(self.split.judged))

    def _warn(self, count: int) -> None:
        if count < _ENOUGH:
            warnings.warn(f"{count} segments are few. {MEASURED}", TrainNotice, stacklevel=4)
        languages = {code for cut in self.cuts for code in cut.row.pair.split("-")} - {""}
        unknown = sorted(languages - set(LANGUAGES)) if self.embedded else []
        if unknown:
            warnings.warn(
                f"the embedded encoder does not cover {', '.join(unknown)}: the model relies on word tables, "
                "frequencies and the other side. An encoder of transformers that covers the language may do better",
                TrainNotice,
                stacklevel=4,
            )

    def run(self) -> TrainResult:
        """Train, calibrate, judge and write; one process at a time in a folder."""
        with lock(self.folder):
            return self._run()

    def _run(self) -> TrainResult:
        start = time.monotonic()
        work = self.folder / WORK
        self._open(work)
        targets = make_targets(self.cuts, self.kinds)
        build = self._build_embedded if self.embedded else self._build_joint
        network, material, fixed, device = build(work)
        from whyscore.analysis.train.loop import Trainer, deterministic  # noqa: PLC0415 - needs torch

        rate = self.settings.rate or (2e-3 if self.embedded else 2e-5)
        trainer = Trainer(network, material, self.cuts, targets, self.settings, device, rate, self.report)
        with deterministic(1 if self.embedded else None):
            weights = trainer.train(self.split.trained, self.split.tuning, work / "state.safetensors")
            predicted = trainer.predict(self.split.tuning)
        card = self._card(targets, predicted)
        model = work / "model"
        digest = self._write_model(model, network, weights, fixed, card)
        self.report(f"evaluating on {len(self._rows_to_judge()):,} segments")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnseenNotice)  # the card says which languages it is about
            measures = judge(self._rows_to_judge(), str(model))
        kind = self._rows_to_judge()[0].kind
        result = TrainResult(
            self.folder, digest, len(self.split.trained), len(self._rows_to_judge()), kind, measures,
            time.monotonic() - start, self.settings,
        )  # fmt: skip
        self._finish(model, result)
        warn_controls(result)
        return result

    def _open(self, work: Path) -> None:
        """Begin, or go on with what an earlier process began on the same data with the same settings."""
        plan = {
            "format": FORMAT, "whyscore": __version__, "data": self.data_digest,
            "settings": {name: value for name, value in asdict(self.settings).items() if name != "device"},
        }  # fmt: skip
        work.mkdir(parents=True, exist_ok=True)
        different = write_or_compare(work / PLAN, plan)
        if different:
            raise UserError(
                f"{self.folder} holds an unfinished training with other {', '.join(different)}: choose another -o, or "
                "give the same input and options to resume"
            )

    def _build_embedded(self, work: Path) -> tuple[Any, Material, dict[str, NDArray[np.generic]], str]:
        import torch  # noqa: PLC0415 - an extra

        from whyscore.metrics.estimators.modules import Network  # noqa: PLC0415 - needs torch

        trained = np.zeros(len(self.cuts), dtype=np.bool_)
        trained[self.split.trained] = True
        self.report(f"reading {len(self.cuts):,} segments")
        arrays, fixed = prepare(self.cuts, trained, self.settings.seed, work / "features.npz", self.report)
        torch.manual_seed(self.settings.seed)
        vectors = arrays["vectors"].shape[1]
        network = Network(len(NAMES), vectors, kinds=len(self.kinds), metrics=len(self.metrics))
        return network, Embedded(self.cuts, arrays), fixed, "cpu"

    def _build_joint(self, work: Path) -> tuple[Any, Material, dict[str, NDArray[np.generic]], str]:
        import torch  # noqa: PLC0415 - an extra

        from whyscore.metrics.estimators.modules import JointNetwork  # noqa: PLC0415 - needs torch

        del work
        device = device_of(self.settings.device, "whyscore train")
        encoder, coder, limit, types = load_encoder(self.settings.encoder)
        torch.manual_seed(self.settings.seed)
        width = encoder.config.hidden_size
        network = JointNetwork(encoder, width, kinds=len(self.kinds), metrics=len(self.metrics), types=types)
        return network.to(device), Joined(self.cuts, coder, limit), {}, device

    def _card(self, targets: Targets, predicted: Mapping[int, Any]) -> dict[str, Any]:
        """Return what the model must know of itself: labels, languages, calibration."""
        calibration: dict[str, list[float]] = {}
        main = [row for row in predicted if targets.kind[row] == 0]
        for number, kind in enumerate(self.kinds):
            rows = [row for row in predicted if targets.kind[row] == number]
            calibration[kind] = fit_platt([(predicted[row].words[0], self.cuts[row].labels[0]) for row in rows])
            sentences = np.array([predicted[row].sentence for row in rows] or [0.0])
            calibration[f"{kind}_scores"] = [float(sentences.mean()), float(sentences.std()) or 1.0]
        calibration["source_edits"] = fit_platt([(predicted[row].words[1], self.cuts[row].labels[1]) for row in main])
        first = [cut for cut in self.cuts if cut.row.kind == self.kinds[0]]
        if any((cut.gaps >= 0).any() for cut in first):
            calibration["gaps"] = fit_platt([(predicted[row].gaps, self.cuts[row].gaps) for row in main])
        pairs: dict[str, list[str]] = {}
        for kind in reversed(self.kinds):
            pairs |= {cut.row.pair: [kind] for cut in self.cuts if cut.row.kind == kind and cut.row.words is not None}
        return {
            "encoder": "embedded" if self.embedded else self.settings.encoder,
            "kinds": list(self.kinds),
            "metrics": list(self.metrics),
            "pairs": {} if "" in pairs else pairs,
            "source": any((cut.labels[1] >= 0).any() for cut in first),
            "columns": len(NAMES),
            "calibration": calibration,
        }

    def _write_model(
        self, model: Path, network: Any, weights: Mapping[str, NDArray[Any]], fixed: Mapping[str, NDArray[Any]],  # noqa: ANN401
        card: Mapping[str, Any],
    ) -> str:  # fmt: skip
        model.mkdir(exist_ok=True)
        arrays: dict[str, NDArray[np.generic]] = {
            f"network0.{name}": values for name, values in weights.items() if not name.startswith("encoder.")
        }
        if self.embedded:
            arrays |= {**fixed}
            card = {**card, "networks": 1}
        else:
            with quiet():
                network.encoder.save_pretrained(model / ENCODER)
                tokenizer = load_pretrained("AutoTokenizer", _home(self.settings.encoder), "whyscore train")
                tokenizer.save_pretrained(model / ENCODER)
            card = {**card, "encoder_digest": digest_of({n: v for n, v in weights.items() if n.startswith("encoder.")})}
        arrays["card"] = np.frombuffer(json.dumps(card, sort_keys=True).encode(), dtype=np.uint8)
        digest = digest_of(arrays)
        write_tensors(model / WEIGHTS, arrays, {"format": str(FORMAT), "digest": digest})
        return digest

    def _rows_to_judge(self) -> list[Rated]:
        """The segments of the card: those named for it, else held-out ones of the most trusted kind."""
        if self.test:
            return list(self.test)
        rows = [self.cuts[k].row for k in self.split.judged.tolist()]
        return [row for row in rows if row.kind == min((rated.kind for rated in rows), key=KINDS.index)]

    def _finish(self, model: Path, result: TrainResult) -> None:
        """Write settings and card, then put the model in its place."""
        facts = {
            "format": FORMAT, "whyscore": __version__, "digest": result.digest, "data": self.data_digest,
            "segments": {kind: sum(cut.row.kind == kind for cut in self.cuts) for kind in self.kinds},
            "languages": sorted({cut.row.pair for cut in self.cuts} - {""}),
            "settings": asdict(self.settings), "results": list(result.records()),
        }  # fmt: skip
        write_lines(self.folder / SETTINGS, [json.dumps(facts, ensure_ascii=False, indent=2) + "\n"])
        write_lines(self.folder / CARD, card_lines(result, facts))
        # The weights come last: a folder that has them is finished.
        for part in sorted(model.iterdir(), key=lambda part: part.name == WEIGHTS):
            place = self.folder / part.name
            if place.is_dir():  # of a process that was killed here
                shutil.rmtree(place)
            part.replace(place)
        shutil.rmtree(self.folder / WORK)


def _home(name: str) -> str:
    from whyscore.models.checkpoints import find  # noqa: PLC0415

    return str(find(name, ("*.json", "*.txt", "*.model"), "whyscore train").folder)


def card_lines(result: TrainResult, facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the card: what the model is, what it was trained on, how good it is."""
    yield f"# A quality estimator trained with whyscore {facts['whyscore']}\n\n"
    yield f"Use it as `qe(model='{result.folder}')`. Digest of the weights: `{result.digest}`, "
    yield f"of the data: `{facts['data']}`.\n\n"
    counts = ", ".join(f"{count} with labels from {kind}" for kind, count in facts["segments"].items())
    yield f"Segments: {counts}; {result.segments} of them to train on. "
    yield f"Languages: {' '.join(facts['languages']) or 'not named'}.\n"
    yield f"Encoder: {result.settings.encoder}. Seed {result.settings.seed}. Trained in {result.seconds:.0f} s.\n\n"
    yield from present(result, "markdown", Look())
    yield "\nThe `qe` that ships may have been trained on the same data: compare with care. Scores are relative to\n"
    yield "the training data and cannot be compared between language pairs. All settings: `settings.json`.\n"


def fit_platt(rows: Sequence[tuple[NDArray[np.float32], NDArray[np.float32]]]) -> list[float]:
    """Return slope and offset that make probabilities of logits (Platt 1999), by Newton's method.

    >>> [round(number, 2) for number in fit_platt([(np.array([-1.0, 1.0, 2.0, -2.0]), np.array([0, 1, 0, 1]))])]
    [-0.42, 0.0]
    """
    logits = np.concatenate([np.zeros(0), *(logits for logits, _ in rows)]).astype(np.float64)
    labels = np.concatenate([np.zeros(0), *(labels for _, labels in rows)]).astype(np.float64)
    logits, labels = logits[labels >= 0], labels[labels >= 0]
    if not len(labels) or labels.min() == labels.max():
        return [1.0, 0.0]
    design = np.stack([logits, np.ones(len(logits))], axis=1)
    coefficients = np.array([1.0, 0.0])
    for _ in range(20):
        probability = 1 / (1 + np.exp(-np.clip(design @ coefficients, -30, 30)))
        slope = design.T @ (probability - labels) + 1e-3 * coefficients
        curvature = (design * (probability * (1 - probability))[:, None]).T @ design + 1e-3 * np.eye(2)
        step = np.linalg.solve(curvature, slope)
        coefficients = coefficients - step
    return [float(number) for number in coefficients]


def judge(rows: Sequence[Rated], model: str) -> dict[str, dict[str, Measured]]:
    """Return what a model, the controls, `evidence` and the shipped `qe` reach on labelled segments."""
    measures = {"this model": _judge(rows, "this model", as_metric(f"qe(model={model!r})"))}
    return measures | {name: judge_baseline(tuple(rows), name) for name in (*CONTROLS, "evidence", "qe")}


@lru_cache(maxsize=16)
def judge_baseline(rows: tuple[Rated, ...], name: str) -> dict[str, Measured]:
    """Return what a control, `evidence` or the shipped `qe` reaches; asked for again for each model of a comparison."""
    pairs = {row.pair for row in rows}
    languages = f"languages={rows[0].pair!r}" if len(pairs) == 1 and rows[0].pair else ""
    return _judge(rows, name, as_metric(f"qe({languages})") if name == "qe" else None)


def _judge(rows: Sequence[Rated], name: str, metric: Any) -> dict[str, Measured]:  # noqa: ANN401 - `qe`, or None
    segments = [Segment(row.hypothesis, row.source) for row in rows]
    measures: dict[str, Measured] = {}
    sides: tuple[tuple[str, Place, Callable[[Rated], Stretches | None]], ...] = (
        ("words", HYPOTHESIS, lambda row: row.words),
        ("source words", SOURCE, lambda row: row.source_words),
    )
    for measure, place, labels_of in sides:
        indices = [k for k, row in enumerate(rows) if labels_of(row) is not None]
        subset = [segments[k] for k in indices]
        words = [white_space(segment.text(place)) for segment in subset]
        labels = [
            label_spans(np.array(tokens.spans).reshape(-1, 2), labels_of(rows[k])) >= WRONG
            for tokens, k in zip(words, indices, strict=True)
        ]
        errors = word_errors(name, metric, subset, place, words) if indices else None
        if errors is not None:
            values = agree(Ragged.of([label.astype(np.float64) for label in labels]), Ragged.of(errors)).auc
            (estimate,) = mean_estimates(values[~np.isnan(values)][None], draws=_DRAWS)
            low, high = (np.nan if bound is None else bound for bound in (estimate.low, estimate.high))
            measures[measure] = Measured(estimate.value, low, high)
    scored = [k for k, row in enumerate(rows) if row.score is not None]
    if len(scored) > 2:  # noqa: PLR2004 - a correlation needs three
        human = np.array([rows[k].score for k in scored], dtype=np.float64)
        subset = [segments[k] for k in scored]
        if metric is None:
            words = [white_space(segment.hypothesis) for segment in subset]
            scores = np.array(
                [-word_error.mean() for word_error in word_errors(name, metric, subset, HYPOTHESIS, words) or ()]
            )
        else:
            scores = np.asarray(metric.score(subset), dtype=np.float64)
        measures["sentences"] = correlate(human, scores)
    return measures


def word_errors(
    name: str,
    metric: Any,  # noqa: ANN401 - `qe`, or None
    segments: Sequence[Segment],
    place: Place,
    words: Sequence[Words],
) -> list[FloatVector] | None:
    """Return how wrong each word is by a control, `evidence` or a metric; None where it does not judge that side."""
    if name == "length":
        return [np.array([len(word) for word in tokens], dtype=np.float64) for tokens in words]
    if name == "surprisal":
        return [piece_surprisal(tokens) for tokens in words]
    if name == "evidence":
        return error_evidence(segments, place.side, words, Setting())
    try:
        return [-word_score.importance for word_score in metric.word_scores(segments, place, words)]
    except SpecError:
        return None


def correlate(human: FloatVector, scores: FloatVector) -> Measured:
    """Return Pearson's correlation and its bootstrap interval over segments."""
    draws = generator(0, "correlate").integers(0, len(human), (_DRAWS, len(human)))

    def pearson(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
        left, right = left - left.mean(-1, keepdims=True), right - right.mean(-1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            coefficients: NDArray[np.float64] = (left * right).sum(-1) / np.sqrt((left**2).sum(-1) * (right**2).sum(-1))
        return coefficients

    low, high = np.nanpercentile(pearson(human[draws], scores[draws]), [2.5, 97.5])
    return Measured(float(pearson(human, scores)), float(low), float(high))


def warn_controls(result: TrainResult) -> None:
    """Say where the model does not beat word length and surprisal."""
    measures = result.measures["this model"]
    for measure, estimate in measures.items():
        best = max(CONTROLS, key=lambda name: result.measures[name][measure].value)
        other = result.measures[best][measure].value
        if not estimate.low > other:
            warnings.warn(
                f"{measure}: the model reaches {estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}] on "
                f"held-out data, not reliably above the control {best} ({other:.3f}). It needs more data to be useful "
                "there",
                TrainNotice,
                stacklevel=3,
            )
