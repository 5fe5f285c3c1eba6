"""The participants of Eval4NLP 2021 as recipes (Fomicheva et al. 2021, section 6), run on gold folders.

| system | recipe here |
|---|---|
| `gringham` | token matching: XBERTScore and XMoverScore, summed |
| `heytuda` | a sentence-level estimator explained by occlusion, LIME, SHAP and gradients; ensemble of all |
| `ist-unbabel-constrained` | a model trained on sentence scores alone, explained by attention x norm of one head |
| `ist-unbabel` | unconstrained: the same with the loss of words added, the words' own probabilities |
| `clip-umd` | mean of LIME on an estimator and of a divergence model trained on perturbed references |
| `nict` | tags from aligning MT and references, metric embeddings whose attention scores words; mean of both |
| `cuni` | a word-level model, first subword per word with an encoder of transformers, no sentence loss |

1. Train what the recipe trains, on `data` (`whyscore.analysis.train`), with the chosen encoder; segments whose source
   or hypothesis occurs in the gold set are left out. Recipes that look into a network (attention, gradients) do so
   where `encoder` is one of transformers. On the embedded encoder, HeyTUDa's estimator is the `qe` that ships, without
   gradients, and IST-Unbabel's constrained model is explained by occlusion.
2. Each part is a metric with an explainer; parts are joined by the mean of the ranks of the words of a sentence, and by
   the mean of the standardised sentence scores.
3. Submissions are written in the format of the task and judged by its rule (`ranking`).

The recipes follow what the paper says about the systems. What it leaves open is in `Participant.open`, printed with the
result. Encoders and training data differ from theirs, so figures are not expected to be those of the paper.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from whyscore import train
from whyscore.analysis.common import as_metric
from whyscore.analysis.explain import cost
from whyscore.analysis.metaeval import explained_submission, segments_of
from whyscore.analysis.train import WRONG, LabelSource, Rated, TrainSettings, digest_rows, label_spans, read_rated
from whyscore.cli.options import Command, FolderSettings, RunningSettings
from whyscore.cli.output import emit, emit_result, tell
from whyscore.cli.setup import make_resources, working
from whyscore.data.formats.eval4nlp import (
    METADATA,
    SIDES,
    SPLITTER,
    Gold,
    Judged,
    Scored,
    Submission,
    Track,
    misfits,
    read_gold,
    read_submission,
    write_submission,
)
from whyscore.data.records import digest
from whyscore.data.writing import write_or_compare
from whyscore.errors import DataError, UnknownName, UserError
from whyscore.experiments.eval4nlp.ranking import RankingResult, ranking
from whyscore.explainers.inside import Attention, BestHead, best_head
from whyscore.metrics.estimators.qe import WEIGHTS, load
from whyscore.registry import spec_of
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.settings import REQUIRED, again, option, settings_of, takes
from whyscore.stats.coefficients import ranks
from whyscore.stats.words import Ragged
from whyscore.text.alignment import Pieces, pool_words
from whyscore.text.splitters import white_space
from whyscore.types import HYPOTHESIS, Dataset, Entry, FloatVector, Segment

TRAINED = "{model}"
PROBES = "{probes}"
METRIC_ATTENTION = "metric-attention"
"""Stands for the attention of metric embeddings, which only models trained by alignment have."""
BEST_HEAD = "best-head"
"""Stands for attention x norm of the head that finds the labelled errors of the training data best."""
_HEADS_CHOSEN_ON = 200  # segments


class Part(NamedTuple):
    """A metric and what explains it."""

    metric: str
    explainer: str


class Participant(NamedTuple):
    """A system as a recipe."""

    team: str
    track: Track
    parts: tuple[Part, ...]
    open: tuple[str, ...]
    """What the paper does not say."""
    labels: tuple[LabelSource, ...] = ()
    """How `{model}` is trained; nothing is trained where empty."""
    options: Mapping[str, float] = {}
    """Of the training, where the user does not set them."""
    network_parts: tuple[Part, ...] = ()
    """The parts where a network of transformers is trained on sentence scores and can be looked into."""

    def on(self, encoder: str) -> "Participant":
        """Return the recipe for an encoder."""
        if encoder == "embedded" or not self.network_parts:
            return self
        return self._replace(parts=self.network_parts, labels=("human",), options=_SENTENCES_ONLY)


_MODEL = f"qe(model='{TRAINED}')"
_LIME = f"lime(samples={PROBES})"
_OUTSIDE = ("erasure", _LIME, f"shap(method='kernel', budget={PROBES})")
_SENTENCES_ONLY = {"word_loss": 0.0, "gap_loss": 0.0}

PARTICIPANTS: Mapping[str, Participant] = {
    "gringham": Participant(
        "Gringham", "constrained",
        (Part("xbertscore(fill='median')", "intrinsic"), Part("xmoverscore", "intrinsic")),
        ("which encoders and layers the ensemble joins for each language pair", "how scores of members are weighted"),
    ),
    "heytuda": Participant(
        "HeyTUDa", "constrained",
        tuple(Part("qe", explainer) for explainer in _OUTSIDE),
        (
            "TransQuest's weights are not public in a safe format: an estimator trained here stands in for it",
            "samples per sentence of LIME and SHAP, and the layer of the gradients",
        ),
        network_parts=(
            *(Part(_MODEL, explainer) for explainer in _OUTSIDE),
            Part(_MODEL, "gradient(method='deeplift', gap=1.0)"), Part(_MODEL, "gradient(layer=1)"),
            Part(_MODEL, "gradient(method='integrated', gap=1.0)"),
        ),
    ),
    "ist-unbabel-constrained": Participant(
        "IST-Unbabel", "constrained", (Part(_MODEL, "erasure"),),
        (
            f"layer and head, chosen here on {_HEADS_CHOSEN_ON} labelled segments of the training data",
            "how many heads are averaged: one is taken here",
        ),
        ("human",), _SENTENCES_ONLY, (Part(_MODEL, BEST_HEAD),),
    ),
    "ist-unbabel": Participant(
        "IST-Unbabel", "unconstrained", (Part(_MODEL, "intrinsic"),),
        ("the weight of the word loss beside that of the sentence loss",), ("human",),
    ),
    "clip-umd": Participant(
        "CLIP-UMD", "unconstrained", (Part("qe", _LIME), Part(_MODEL, "intrinsic")),
        (
            "the rates of the perturbations",
            "the masked language model that substitutes words: --infill NAME, otherwise a lexicon of the data",
            "on which estimator LIME runs",
            "how many references are perturbed: 2,000 here, because more took long and helped little",
        ),
        ("perturbation",), {"perturbed_references": 2000},
    ),
    "nict": Participant(
        "NICT-Kyoto", "unconstrained", (Part(_MODEL, "intrinsic"), Part(_MODEL, METRIC_ATTENTION)),
        ("how many synthetic translations were made, and by which systems", "how attention and tags are weighted"),
        ("alignment",),
    ),
    "cuni": Participant(
        "CUNI-Prague", "unconstrained", (Part(_MODEL, "intrinsic"),),
        ("which additional labelled data were used", "how subword scores were compared before the first was chosen"),
        ("human",), {"sentence_loss": 0.0, "rank_loss": 0.0},
    ),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ParticipantsSettings(TrainSettings):
    """Which systems are rebuilt, and how their models are trained."""

    systems: tuple[str, ...] = option(
        (), "participants (default: all): gringham heytuda ist-unbabel clip-umd nict cuni ...",
        flags=("--system", "--systems"), metavar="NAME", basic=True,
    )  # fmt: skip
    probes: int = option(100, "masked texts per side and segment of LIME and SHAP", least=2, metavar="N", basic=True)
    limit: int | None = option(None, "judge on the first N segments of each gold set", least=2, metavar="N", basic=True)


@takes(ParticipantsSettings)
def participants(
    golds: Sequence[Gold],
    *,
    data: Sequence[str | Path] = (),
    output: str | Path,
    report: Callable[[str], None] | None = None,
    settings: ParticipantsSettings,
    resources: Resources = LOCAL,
) -> RankingResult:
    """Return the ranking of rebuilt participants; their submissions and models are in the folder `output`.

    Models and submissions that an earlier run left in the folder are used as they are, if it had the same gold, data
    and settings; otherwise the folder is refused. A store among the resources keeps the scores of probes, which
    several recipes share.

    Args:
        golds: Gold sets, named after their language pairs.
        data: Labelled segments with post-edits that recipes train on.
        output: Where models and submissions go.
        report: Hears what is being done.
        settings: Systems, and how models are trained.
        resources: Store, executor and progress.
    """
    names = check_systems(settings)
    if not golds:
        raise DataError("no gold set: give one or more gold folders, each named after its language pair")
    needing = [name for name in names if PARTICIPANTS[name].on(settings.encoder).labels]
    if needing and not data:
        raise UserError(f"{', '.join(needing)}: these recipes train a model. Give labelled segments with --data")
    pairs = []
    for gold in golds:
        job = _Job(gold, data, Path(output), settings, report or (lambda _: None), resources)
        job.open()
        pairs.append((job.judged, [job.rebuild(name) for name in names]))
    return ranking(pairs, baselines=True, draws=0)


def check_systems(settings: ParticipantsSettings) -> tuple[str, ...]:
    """Return the names of the systems, all where none is named."""
    for name in settings.systems:
        if name not in PARTICIPANTS:
            raise UnknownName.among("participant", name, PARTICIPANTS)
    return settings.systems or tuple(PARTICIPANTS)


@dataclass(frozen=True, eq=False)
class _Job:
    """All recipes on one gold set."""

    gold: Gold
    data: Sequence[str | Path]
    output: Path
    settings: ParticipantsSettings
    report: Callable[[str], None]
    resources: Resources

    @cached_property
    def judged(self) -> Gold:
        return first_segments(self.gold, self.settings.limit)

    @property
    def lang_pair(self) -> str | None:
        return self.gold.name if len(self.gold.name.split("-")) == 2 else None  # noqa: PLR2004 - et-en

    def open(self) -> None:
        """Write down what the results of this gold set are made from, or check that it is still the same."""
        trained = [setting.name for setting in settings_of(TrainSettings) if setting.name not in ("labels", "device")]
        rows = [row for path in self.data for row in read_rated(path, self.lang_pair)]
        plan = {
            "qe": str(as_metric("qe").signature()),  # with the version of whyscore
            "gold": digest(self._dataset(self.gold)), "training data": digest_rows(rows) if rows else None,
            **{name: getattr(self.settings, name) for name in ("probes", *trained)},
        }  # fmt: skip
        self.output.mkdir(parents=True, exist_ok=True)
        different = write_or_compare(self.output / f"{self.gold.name}.json", plan)
        if different:
            raise UserError(
                f"{self.output} holds results of {self.gold.name} with other {', '.join(different)}: choose another "
                "-o, or give the same input and options to go on"
            )

    def read_finished(self, name: str) -> Submission | None:
        """Return what an earlier run handed in for these segments."""
        place = self.output / name / self.gold.name
        if not (place / METADATA).exists():  # written last
            return None
        submission = read_submission(place, name=name)
        return None if misfits(submission, self.judged) else submission

    def rebuild(self, name: str) -> Submission:
        """Return the submission of a recipe, which is also written."""
        before = self.read_finished(name)
        if before is not None:
            self.report(f"{name}: finished before, read from {self.output / name / self.gold.name}")
            return before
        participant = PARTICIPANTS[name].on(self.settings.encoder)
        model = self._train(name, participant)
        self.report(f"{name}: explaining {len(self.judged)} segments of {self.gold.name}")
        joined = join_submissions(name, [self._explain(part, name, model) for part in participant.parts])
        write_submission(
            self.output / name / self.gold.name,
            {side: scored.scores.rows() for side, scored in joined.sides.items()}, joined.sentence,
            team=participant.team, track=participant.track, description=f"{name} as a recipe of whyscore",
        )  # fmt: skip
        return joined

    def model_of(self, name: str) -> Path:
        """Return the folder of a recipe's model."""
        return self.output / "models" / self.gold.name / name

    def _train(self, name: str, participant: Participant) -> Path:
        model = self.model_of(name)
        if participant.labels and not (model / WEIGHTS).exists():
            self.report(f"{name}: training on {self.gold.name}")
            options: dict[str, Any] = {}
            for setting in settings_of(TrainSettings):
                value = getattr(self.settings, setting.name)
                options[setting.name] = (
                    participant.options.get(setting.name, value) if value == setting.default else value
                )
            options["labels"] = participant.labels
            train(
                *self.data, output=model, lang_pair=self.lang_pair, exclude=segments_of(self.gold), report=self.report,
                **options,
            )  # fmt: skip
        return model

    def _explain(self, part: Part, name: str, model: Path) -> Submission:
        metric, explainer = part.metric.replace(TRAINED, str(model)), self._with_probes(part.explainer)
        if explainer == METRIC_ATTENTION:
            return _metric_attention(self.judged, model)
        if explainer == BEST_HEAD:
            head = choose_head(metric, [row for path in self.data for row in read_rated(path, self.lang_pair)])
            self.report(f"{name}: layer {head.layer}, head {head.head}, chosen on {head.texts} segments")
            explainer = spec_of(head.apply_to(Attention()))
        if self.resources.progress is not None:
            self.resources.progress.begin(f"{name}, {explainer}")
        texts = self._dataset(self.judged)
        return explained_submission(texts, metric, explainer, seed=self.settings.seed, resources=self.resources)

    def _with_probes(self, explainer: str) -> str:
        return explainer.replace(PROBES, str(self.settings.probes))

    def _dataset(self, gold: Gold) -> Dataset:
        languages = tuple(self.lang_pair.split("-")) if self.lang_pair else None
        entries = tuple(Entry(str(k), gold.name, segment) for k, segment in enumerate(segments_of(gold)))
        return Dataset(gold.name, entries, languages)  # type: ignore[arg-type]

    def cost_lines(self, name: str) -> Iterator[str]:
        """Yield what a recipe has yet to do."""
        participant = PARTICIPANTS[name].on(self.settings.encoder)
        if self.read_finished(name) is not None:
            yield f"{name}: finished"
            return
        if participant.labels:
            there = (self.model_of(name) / WEIGHTS).exists()
            yield f"{name}: model {'trained' if there else 'to be trained on labels from ' + participant.labels[0]}"
        for metric, template in participant.parts:
            explainer = self._with_probes(template)
            if TRAINED not in metric:
                texts = self._dataset(self.judged)
                estimate = cost(texts, metric, explainer, sides=["hypothesis", "source"], unit=SPLITTER,
                                seed=self.settings.seed, resources=self.resources)  # fmt: skip
                counts = f"{estimate.distinct:,} texts to score, {estimate.stored:,} in the store"
                yield f"{name}: {metric}, {explainer}: {counts}"
            else:
                yield f"{name}: the model, {explainer}: {len(self.judged):,} segments"


def first_segments(gold: Gold, limit: int | None) -> Gold:
    """Return the first segments of a gold set."""
    if limit is None or limit >= len(gold):
        return gold
    kept = np.arange(len(gold)) < limit
    sides = {
        name: replace(side, tags=side.tags.select(kept), words=None if side.words is None else side.words[:limit])
        for name, side in (("target", gold.target), ("source", gold.source))
        if side is not None
    }
    return replace(
        gold, target=sides["target"], source=sides.get("source"), ids=gold.ids and gold.ids[:limit],
        sources=gold.sources and gold.sources[:limit],
        sentence=None if gold.sentence is None else gold.sentence[:limit],
    )  # fmt: skip


def choose_head(metric: str, rows: Sequence[Rated]) -> BestHead:
    """Return the layer and head whose attention x norm finds labelled words best."""
    labelled = [row for row in rows if row.words is not None and row.hypothesis.split()][:_HEADS_CHOSEN_ON]
    segments = [Segment(row.hypothesis, row.source) for row in labelled]
    words = [white_space(segment.hypothesis) for segment in segments]
    labels = [
        (label_spans(np.array(tokens.spans), row.words) >= WRONG).astype(int).tolist()
        for tokens, row in zip(words, labelled, strict=True)
    ]
    return best_head(Attention().heads(as_metric(metric), segments, HYPOTHESIS, words), labels)


def _metric_attention(gold: Gold, model: Path) -> Submission:
    """Return how much the embeddings of metrics attend to each word, mean over metrics."""
    segments = segments_of(gold)
    texts = [(segment.hypothesis, segment.source or "") for segment in segments]
    predictions = load(model / WEIGHTS).compute(texts, seen=True)  # the recipe trains on the language pair of the gold
    scored: dict[Judged, Scored] = {}
    for number, side in enumerate(SIDES):
        words = gold.words(side)
        rows: list[FloatVector] = []
        for tokens, prediction in zip(words or (), predictions, strict=True):
            if prediction.logits is None or prediction.logits.attention is None:
                rows.append(np.zeros(len(tokens)))
                continue
            spans = [(start, end) for start, end in prediction.spans[number].tolist()]
            pieces = Pieces(spans, [tokens.text[start:end] for start, end in spans])
            weights = prediction.logits.attention[number].mean(axis=0).astype(np.float64)
            rows.append(pool_words(tokens, pieces, weights, pool="max", fill="value", value=0.0).values)
        scored[side] = Scored(Ragged.of(rows), METRIC_ATTENTION)
    return Submission(METRIC_ATTENTION, scored)


def join_submissions(name: str, parts: Sequence[Submission]) -> Submission:
    """Return the mean of word ranks within sentences, and of standardised sentence scores."""
    sides: dict[Judged, Scored] = {}
    for side in SIDES:
        rows = [part.sides[side].scores.rows() for part in parts if side in part.sides]
        if rows:
            joined = [np.mean([ranks(scores) for scores in ranked], axis=0) for ranked in zip(*rows, strict=True)]
            sides[side] = Scored(Ragged.of(joined), name)
    scores = [part.sentence for part in parts if part.sentence is not None]
    standardised = [(values - np.sort(values).mean()) / (np.sort(values).std() or 1.0) for values in scores]
    return Submission(name, sides, np.mean(standardised, axis=0) if standardised else None, name)


@dataclass(frozen=True, kw_only=True)
class ParticipantsCommand(RunningSettings, FolderSettings, ParticipantsSettings):
    """What `eval4nlp` takes."""

    TITLE: ClassVar[str] = "input"

    gold: tuple[str, ...] = option(
        (), "gold folders, each named after its language pair (default with -l: dev/RO-EN and the like in this folder)",
        metavar="GOLD", basic=True,
    )  # fmt: skip
    data: tuple[str, ...] = option(
        (), "labelled segments that recipes train on (default: mlqe_pe_train.jsonl.gz in this folder)", metavar="PATH",
        basic=True,
    )  # fmt: skip
    lang_pair: str | None = option(
        None, "of the gold folders, take the one of this pair", flags=("-l", "--lang-pair"), metavar="RO-EN", basic=True
    )
    folder: str = again(FolderSettings, "folder", REQUIRED, help="the folder of models and submissions")


GOLD_PLACES = ("{pair}", "dev/{pair}", "data/dev/{pair}", "eval4nlp2021/dev/{pair}")
"""Where gold folders are looked for: the layout of the repository of the shared task, and parts of it."""
DATA_PLACES = ("mlqe_pe_train.jsonl.gz", "quality_estimation/mlqe_pe_train.jsonl.gz")


def find_gold(pair: str | None) -> Path:
    """Return the gold folder of a language pair below the working directory."""
    places = [Path(place.format(pair=pair or "ro-en")) for place in GOLD_PLACES]
    folder = next((place for place in places if pair and place.is_dir()), None)
    if folder is None:
        looked = f"; looked for {', '.join(map(str, places))}" if pair else ""
        raise UserError(
            f"no gold folder: give one with --gold dev/{pair or 'ro-en'}{looked}. The gold data are in data/ of the "
            "repository eval4nlp/SharedTask2021"
        )
    return folder


def run_participants(settings: ParticipantsCommand) -> int:
    """Rebuild participants, judge them, and say what the paper leaves open."""
    names = check_systems(settings)
    places = [Path(path) for path in settings.gold] or [find_gold(settings.lang_pair)]
    data = [Path(path) for path in settings.data] or [path for path in map(Path, DATA_PLACES) if path.exists()][:1]
    if not settings.gold or not settings.data:
        tell(settings, f"gold: {' '.join(map(str, places))}; training data: {' '.join(map(str, data)) or 'none'}")
    golds = [read_gold(path) for path in places]
    selection = [gold for gold in golds if settings.lang_pair in (None, gold.name)]
    if not selection:
        there = ", ".join(gold.name for gold in golds)
        raise UserError(f"-l {settings.lang_pair}: no gold folder of that name. There is {there}")
    if settings.dry_run:
        resources, folder = make_resources(settings), Path(settings.folder)
        jobs = [_Job(gold, data, folder, settings, lambda _: None, resources) for gold in selection]
        lines = (f"{job.gold.name} {line}\n" for job in jobs for name in names for line in job.cost_lines(name))
        emit(settings, lines)
        return 0
    with working(settings) as resources:
        result = participants(
            selection, data=data, output=settings.folder, report=lambda line: tell(settings, line), settings=settings,
            resources=resources,
        )  # fmt: skip
    emit_result(result, settings)
    for name in names:
        for line in PARTICIPANTS[name].open:
            tell(settings, f"{name}, left open by the paper: {line}")
    return 0


_EXAMPLES = """\
examples:
  whyscore experiment eval4nlp --system ist-unbabel heytuda gringham clip-umd nict cuni -l ro-en -o run/
  whyscore experiment eval4nlp --system gringham heytuda --gold dev/ro-en -o run/
  whyscore experiment eval4nlp --system ist-unbabel clip-umd nict cuni --gold dev/ro-en --data train.jsonl.gz -o run/
"""
EXPERIMENTS = {
    "eval4nlp": Command(
        "the participants of Eval4NLP 2021 as recipes, judged on gold data",
        _EXAMPLES,
        ParticipantsCommand,
        run_participants,
        participants,
    )
}
