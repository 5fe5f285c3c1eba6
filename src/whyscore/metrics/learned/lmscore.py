"""How probable a hypothesis is to a causal language model that has read the source: forced decoding.

The idea of BARTScore (Yuan, Neubig and Liu 2021, arXiv 2106.11520), for language models that follow a prompt, as in
GPTScore (Fu, Ng, Jiang and Liu 2023, arXiv 2302.04166):

1. The source and the hypothesis are put into a prompt (`whyscore.metrics.learned.prompts`) and read as one text after
   the model's start token, so that pieces across the edges are those the model knows.
2. The score is the mean of log p(piece | everything before it) over the pieces of the hypothesis and of its end: what
   the prompt has after {hypothesis}, a line break in the built-in ones, else the model's end token. `count="words"`
   leaves the end out, except where a hypothesis has no other pieces.
3. The log-probabilities of the pieces of a word, pooled, are its word score. The source has none: it is read, not
   predicted.
4. Where prompt, source and hypothesis are longer than the model reads, the longer of source and hypothesis loses its
   end first; what was cut is counted and told.

Scores lie below 0 and are comparable within one model and prompt alone; the signature names both.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np

from whyscore.errors import SpecError
from whyscore.metrics.learned.prompts import Composed, Prompt, Task, read_built_in, read_template
from whyscore.metrics.needs import need_source
from whyscore.models.checkpoints import device_of
from whyscore.models.language_models import Causal, load_text_model, revision_of, text_licence_of, text_limit_of
from whyscore.models.pairs import Coded, Row, shorter
from whyscore.registry import spec_of
from whyscore.settings import Precision, check_fields
from whyscore.text.alignment import Fill, PieceScores, score_words
from whyscore.types import FloatVector, Inputs, Place, Segment, Side, Signature, Words, WordScores
from whyscore.version import __version__

WHO = "lmscore"


class Target(NamedTuple):
    """The log-probabilities of a hypothesis and of its end, and the pieces behind them."""

    pieces: PieceScores
    end: FloatVector


@dataclass(frozen=True, slots=True)
class LmScore:
    """Mean log-probability of the hypothesis under a causal language model, below 0; higher is better.

    Args:
        model: folder or hub name (or name@revision) of a causal model of transformers, or a GGUF file.
        prompt: text with {source} and {hypothesis}, or the file that holds it; a built-in one of the task by default.
        task: which built-in prompt.
        languages: of source and hypothesis, like `de-en`; those of the data by default.
        shots: how many examples a built-in prompt shows at most: two translations, one summary.
        count: whether the end of the hypothesis counts.
        pool: how the values of a word's subwords are combined.
        fill: the value of a word without subwords.
        device: auto, cpu, cuda, cuda:1, mps.
        precision: of the network; probabilities are always computed in float64.
    """

    model: str
    prompt: str | None = None
    task: Task = "translation"
    languages: str | None = None
    shots: int = 2
    count: Literal["all", "words"] = "all"
    pool: Literal["min", "sum", "mean", "first"] = "sum"
    fill: Fill = "error"
    device: str = "auto"
    precision: Precision = "fp32"

    higher_is_better: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self)
        if self.shots < 0:
            raise SpecError(f"{WHO}: shots is {self.shots}, expected 0 or more")
        self._prompt()

    def for_languages(self, source: str, target: str) -> Self:
        named = self.prompt is None and self.task == "translation"
        return replace(self, languages=f"{source}-{target}") if named and self.languages is None else self

    @property
    def inputs(self) -> Inputs:
        return Inputs.HYPOTHESIS | Inputs.SOURCE if self._prompt().reads_source else Inputs.HYPOTHESIS

    def signature(self) -> Signature:
        prompt = self._prompt()
        facts = {
            "rev": revision_of(self.model),
            "prompt": hashlib.blake2b(prompt.template.encode(), digest_size=6).hexdigest(),
            "shots": "own" if self.prompt is not None else str(prompt.shots),
            "prec": self.precision,
            "trunc": str(text_limit_of(self.model)),
            "licence": text_licence_of(self.model),
            "version": __version__,
        }
        return Signature(spec_of(self), tuple(facts.items()))

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return np.array([self._mean(target) for target in self._targets(segments)], dtype=np.float64)

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        if place.side is not Side.HYPOTHESIS:
            raise SpecError(
                f"lmscore has word scores for the hypothesis, whose words it predicts; asked for the {place}. Explain "
                "that with erasure, lime or shap"
            )
        return [
            score_words(text, target.pieces, self.pool, self.fill, "log p")
            for text, target in zip(words, self._targets(segments), strict=True)
        ]

    def _mean(self, target: Target) -> float:
        text = target.pieces.values
        counted = text if self.count == "words" and len(text) else np.concatenate([text, target.end])
        return float(counted.mean())

    def _targets(self, segments: Sequence[Segment]) -> list[Target]:
        """Return the log-probabilities of each hypothesis; equal questions are asked once."""
        prompt = self._prompt()
        if prompt.reads_source:
            need_source(WHO, segments)
        composed = [prompt.compose((segment.source or "").strip(), segment.hypothesis.strip()) for segment in segments]
        model = load_text_model(self.model, device_of(self.device, WHO), self.precision)
        coded = model.coder.code([prompt_text.text for prompt_text in composed], strip=False)
        rows = {question: _row(question, coded[question.text], model) for question in dict.fromkeys(composed)}
        model.cuts.add(sum(row.cut for row in rows.values()), len(rows))
        values = model.log_probabilities([row.ids for row in rows.values()])
        log_probabilities = dict(zip(rows, values, strict=True))
        leads = [len(segment.hypothesis) - len(segment.hypothesis.lstrip()) for segment in segments]
        return [
            _target(rows[question], log_probabilities[question], lead)
            for question, lead in zip(composed, leads, strict=True)
        ]

    def _prompt(self) -> Prompt:
        if self.prompt is not None:
            return read_template(self.prompt)
        return read_built_in(self.task, self.languages, self.shots)


class _Question(NamedTuple):
    """What the model reads, and which of its last pieces are those of the hypothesis."""

    ids: Row
    spans: tuple[tuple[int, int], ...]
    """Of the pieces of the hypothesis that are read, in the hypothesis."""
    pieces: tuple[str, ...]
    total: int
    cut: bool


def _row(composed: Composed, coded: Coded, model: Causal) -> _Question:
    """Return the pieces of a prompt with its texts, cut where they are more than the model reads."""
    start, stop = composed.hypothesis
    places = [_part(span, composed) for span in coded.spans]
    by_part = {part: [number for number, place in enumerate(places) if place == part] for part in _PARTS}
    context = len(by_part["prompt"])
    ending = [coded.ids[number] for number in by_part["end"]] or [model.end]
    room = model.limit - 1 - context - len(ending)
    read, target = shorter(by_part["source"], by_part["hypothesis"], room)
    cut = len(read) + len(target) < len(by_part["source"]) + len(by_part["hypothesis"])
    if cut and not target:
        raise SpecError(
            f"{WHO}: the prompt has {context} pieces and the model reads {model.limit}: nothing is left for the "
            "hypothesis. Use a shorter prompt, fewer shots or another model"
        )
    before = sorted([*by_part["prompt"], *read])
    if len(target) < len(by_part["hypothesis"]):
        ending = []  # a text that was cut does not end there
    ids = (model.start, *(coded.ids[number] for number in (*before, *target)), *ending)
    spans = tuple((max(coded.spans[n][0], start) - start, min(coded.spans[n][1], stop) - start) for n in target)
    pieces = tuple(coded.pieces[number] for number in target)
    return _Question(Row(ids, 1 + len(before)), spans, pieces, len(by_part["hypothesis"]), cut)


_PARTS = ("prompt", "source", "hypothesis", "end")


def _part(span: tuple[int, int], composed: Composed) -> str:
    """Return where a piece stands; one across an edge belongs to the text beside the prompt, the hypothesis first."""
    start, stop = span
    first, last = composed.hypothesis
    if stop > first and start < last:
        return "hypothesis"
    if stop > last:
        return "end"
    begin, end = composed.source
    return "source" if stop > begin and start < end else "prompt"


def _target(question: _Question, values: FloatVector, lead: int) -> Target:
    """Return the values of a question; `lead` is the white space before the hypothesis, which is not read."""
    count = len(question.pieces)
    spans = tuple((start + lead, end + lead) for start, end in question.spans)
    return Target(PieceScores(spans, question.pieces, values[:count], question.total), values[count:])
