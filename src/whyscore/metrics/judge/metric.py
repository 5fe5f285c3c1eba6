"""A large language model as a metric: it marks errors and scores, by a protocol, at an endpoint that the user names.

1. Each segment becomes one or more calls (`protocols`): `repeats` times, for `pairwise` in both orders.
2. Answers come from a record, from the score store, or from the endpoint (`client`), and are kept.
3. Each answer becomes a judgement (`parsing`). `verify="mask"` keeps an error only where masking it raises another
   metric: the idea of MQM-APE (Lu et al. 2024, arXiv 2409.14335) with a mask in place of a post-edit.
4. The scores of all answers about a segment are combined: their mean, their median, or the mean of those within two
   standard deviations (which at least six answers can leave). A segment none of whose answers can be used has no score.

Word scores: minus the MQM weight of the worst error that touches a word, mean over the answers; notes say category,
severity and reason. They exist for hypothesis and source.

The signature names model, prompt (by its digest), temperature and seed. It does not name what changes no answer:
connections, rate, time-outs and retries.
"""

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, Self, cast

import msgspec
import numpy as np

from whyscore.data.codec import Where, convert, convert_segment
from whyscore.errors import DataError, SpecError
from whyscore.metrics.judge.client import Endpoint, ask, check_url
from whyscore.metrics.judge.parsing import Judgement, MarkedError, judgement_of
from whyscore.metrics.judge.protocols import Against, Name, Prompt, Protocol, make_prompt
from whyscore.metrics.needs import need_inputs
from whyscore.protocols import Metric
from whyscore.registry import build, build_from_file, component, parse, runs_code, spec_of
from whyscore.scoring.answers import Answers, Calls, Missing, Question, Reply, read_lines, reply_of
from whyscore.settings import check_fields, check_seed
from whyscore.text.files import read_once
from whyscore.text.maskers import Delete
from whyscore.types import (
    ErrorSpan,
    FloatMatrix,
    FloatVector,
    Inputs,
    Place,
    Segment,
    Side,
    Signature,
    Words,
    WordScores,
)
from whyscore.version import __version__

Combine = Literal["mean", "median", "trimmed"]
_BYTES = 4  # of UTF-8 that a token stands for, about
_OUTLIER = 2.0  # standard deviations
_PLACE = ("url", "key", "recorded", "connections", "rate", "timeout", "retries")
"""What says where answers come from, not what is asked."""
URL = "WHYSCORE_JUDGE_URL"
"""The environment variable with the endpoint of judges that name none."""
_RUNNING = ("connections", "rate", "timeout", "retries")


class Verdict(NamedTuple):
    """The judgements of one segment, as many as there are answers, and their combined numbers."""

    judgements: tuple[Judgement, ...]
    row: FloatVector
    missing: Missing | None


@dataclass(frozen=True, slots=True)
class Judge:
    """A large language model that marks errors and scores, called through an OpenAI-compatible endpoint.

    Args:
        model: its name at the endpoint.
        url: the endpoint, like `http://localhost:11434/v1`; by default the one that the environment variable
            WHYSCORE_JUDGE_URL names. Nothing is contacted without either.
        protocol: score, esa (error spans, then a score), mqm (error spans), pairwise (against the reference), summary.
        recorded: answers in a file instead of an endpoint (`--record` writes one); no network at all.
        key: the name of the environment variable that holds the key.
        against: what the hypothesis is judged by.
        languages: of source and hypothesis, like `de-en`; those of the data by default.
        prompt: a file with a prompt of your own, for the answers of the protocol.
        examples: a file of JSON lines with texts and expected answers, shown before the question.
        repeats: how many answers are drawn.
        combine: what their scores become; trimmed drops those beyond two standard deviations.
        temperature: of the model; 0 draws the most probable answer.
        seed: sent with each call; a repeat adds its number.
        max_tokens: of an answer.
        structured: whether a JSON schema is sent, which endpoints that know none may refuse.
        verify: "mask" keeps an error only where masking it raises `verifier`.
        verifier: a metric; qe by default, chrf where only the reference is read.
        connections: calls at a time.
        rate: calls a minute.
        timeout: seconds that a call may take.
        retries: further attempts at a call that failed.
    """

    model: str | None = None
    url: str | None = runs_code(default=None)
    protocol: Name = "esa"
    recorded: str | None = None
    key: str | None = None
    against: Against = "source"
    languages: str | None = None
    prompt: str | None = None
    examples: str | None = None
    repeats: int = 1
    combine: Combine = "mean"
    temperature: float = 0.0
    seed: int = 0
    max_tokens: int = 1024
    structured: bool = True
    verify: Literal["mask"] | None = None
    verifier: Metric | None = component("metric", default=None)
    connections: int = 8
    rate: float | None = None
    timeout: float = 120.0
    retries: int = 5
    answers: Answers = field(default_factory=Answers, init=False, repr=False, compare=False)

    higher_is_better: ClassVar[bool] = True
    masking: ClassVar[Literal["opaque"]] = "opaque"

    def __post_init__(self) -> None:
        check_fields(self)
        check_seed(self.seed)
        if self.url is not None:
            check_url(self.url)
        for name, least in (("repeats", 1), ("connections", 1), ("max_tokens", 1), ("retries", 0), ("temperature", 0)):
            if not getattr(self, name) >= least:
                raise SpecError(f"judge: {name} is {getattr(self, name)}, expected {least} or more")
        if not self.timeout > 0 or (self.rate is not None and not self.rate > 0):
            raise SpecError("judge: timeout and rate must be above 0")
        if self.verify is not None and not self.build_prompt().protocol.spans:
            raise SpecError(f"judge: verify filters error spans, which the protocol {self.protocol!r} does not ask for")
        if self.verifier is not None and self.verify is None:
            raise SpecError("judge: verifier is for verify='mask'")

    def for_languages(self, source: str, target: str) -> Self:
        if self.languages is not None or self.protocol == "summary" or self.recorded is not None:
            return self
        return self._with(languages=f"{source}-{target}")

    def with_answers(self, answers: Answers) -> Self:
        judge = replace(self)
        object.__setattr__(judge, "answers", answers)
        return judge

    def _with(self, **changes: object) -> Self:
        return replace(self, **changes).with_answers(self.answers)  # type: ignore[arg-type]

    @property
    def inputs(self) -> Inputs:
        return self.build_prompt().inputs

    @property
    def columns(self) -> tuple[str, ...]:
        return _columns(self.build_prompt().protocol)

    @property
    def marks_words(self) -> bool:
        return self.build_prompt().protocol.spans

    @property
    def compares_texts(self) -> bool:
        return self.build_prompt().protocol.orders > 1

    @property
    def score_scale(self) -> float:
        return self.build_prompt().protocol.scale

    def signature(self) -> Signature:
        used = self._load_recorded()
        facts = {
            "model": used.model or "unknown",
            "protocol": used.protocol,
            "prompt": used.build_prompt().digest,
            "temperature": f"{used.temperature:g}",
            "seed": str(used.seed),
            "repeats": str(used.repeats),
        }
        if self.recorded is not None:
            facts["record"] = _read_record(self.recorded).digest
        if used.verify:
            facts["verifier"] = used.build_verifier().signature().spec
        plain = {field.name: field.default for field in fields(self) if field.name in _RUNNING}
        return Signature(spec_of(replace(self, **plain)), (*facts.items(), ("version", __version__)))  # type: ignore[arg-type]

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return self.scores(self.statistics(segments))

    def statistics(self, segments: Sequence[Segment]) -> FloatMatrix:
        rows = [verdict.row for verdict in self.verdicts(segments)]
        return np.array(rows, dtype=np.float64).reshape(len(segments), len(self.columns))

    def scores(self, rows: FloatMatrix) -> FloatVector:
        return rows[:, 0].copy()

    def missing(self, segments: Sequence[Segment]) -> list[Missing | None]:
        return [verdict.missing for verdict in self.verdicts(segments)]

    def error_spans(self, segments: Sequence[Segment]) -> list[tuple[ErrorSpan, ...]]:
        """Return the errors of each segment that could be located, of all answers together."""
        self._need_spans("error spans")
        return [
            tuple(
                dict.fromkeys(
                    error.span
                    for judgement in verdict.judgements
                    for error in judgement.errors
                    if error.span is not None
                )
            )
            for verdict in self.verdicts(segments)
        ]

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        self._need_spans("word scores")
        if place.side is Side.REFERENCE:
            raise SpecError("judge marks errors in the hypothesis and in the source, not in references")
        verdicts = self.verdicts(segments)
        return [_word_scores(text, place.side, verdict) for text, verdict in zip(words, verdicts, strict=True)]

    def verdicts(self, segments: Sequence[Segment]) -> list[Verdict]:
        """Return all that the answers say of each segment."""
        used = self._load_recorded()
        prompt = used.build_prompt()
        read = [segment.only(prompt.inputs) for segment in segments]
        need_inputs("judge", read, prompt.inputs)
        distinct = list(dict.fromkeys(read))
        questions = used.plan_calls(distinct, prompt)
        replies = self._replies(questions)
        judgements: dict[Segment, list[Judgement]] = {segment: [] for segment in distinct}
        for question in questions:
            judgement = judgement_of(replies[question], prompt.protocol, question.segment, question.order)
            judgements[question.segment].append(judgement)
            why = None if judgement.missing is None else judgement.missing.reason
            self.answers.judged.setdefault(question.judge, {})[question.key] = why
        if used.verify:
            judgements = used.verify_errors(judgements, prompt)
        verdicts = {
            segment: used.combine_answers(tuple(answers), prompt.protocol) for segment, answers in judgements.items()
        }
        return [verdicts[segment] for segment in read]

    def calls(self, segments: Sequence[Segment]) -> Calls:
        used = self._load_recorded()
        prompt = used.build_prompt()
        distinct = list(dict.fromkeys(segment.only(prompt.inputs) for segment in segments))
        questions = used.plan_calls(distinct, prompt)
        answered: Mapping[Question, object] = dict.fromkeys(questions)
        if self.recorded is None:
            answered = replace(self.answers, record=None).look_up(questions)
        left = [question for question in questions if question not in answered]
        tokens = sum(_tokens(question) for question in left)
        whole = len(distinct) - len({question.segment for question in left})
        return Calls(len(questions), len(questions) - len(left), tokens, len(left) * used.max_tokens, whole)

    def remarks(self, segments: Sequence[Segment], systems: Sequence[str] = ()) -> list[str]:
        verdicts = self.verdicts(segments)
        judgements = [judgement for verdict in verdicts for judgement in verdict.judgements]
        reasons = Counter(judgement.missing.reason for judgement in judgements if judgement.missing is not None)
        remarks = []
        if reasons:
            each = ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common())
            share = sum(reasons.values()) / len(judgements)
            remarks.append(
                f"{sum(reasons.values()):,} of {len(judgements):,} answers cannot be used ({share:.1%}): {each}"
            )
        errors = [error for judgement in judgements for error in judgement.errors]
        lost = sum(error.span is None for error in errors)
        if lost:
            remarks.append(
                f"{lost:,} of {len(errors):,} error spans are not in the text ({lost / len(errors):.1%}): "
                "they count in scores, not in word scores"
            )
        remarks += _bias(verdicts) if self.build_prompt().protocol.orders > 1 else []
        return remarks + (_repeats(verdicts, systems) if self._load_recorded().repeats > 1 else [])

    def plan_calls(self, segments: Sequence[Segment], prompt: Prompt) -> list[Question]:
        """Return the calls about each segment: all repeats of the first order, then those of the second."""
        judge = spec_of(replace(self, **_NOWHERE))  # type: ignore[arg-type]
        fixed: dict[str, object] = {"model": self.model, "temperature": self.temperature, "max_tokens": self.max_tokens}
        if self.structured:
            schema = {"name": prompt.protocol.name, "strict": True, "schema": prompt.protocol.schema}
            fixed["response_format"] = {"type": "json_schema", "json_schema": schema}
        questions, service = [], self._service() or ""
        for segment in segments:
            for order in range(prompt.protocol.orders):
                messages = prompt.messages(segment, order)
                for repeat in range(self.repeats):
                    request = {**fixed, "messages": messages, "seed": self.seed + repeat}
                    questions.append(Question(judge, service, segment, request, repeat, order))
        return questions

    def _replies(self, questions: Sequence[Question]) -> dict[Question, Reply]:
        if self.recorded is not None:
            return _read_record(self.recorded).replies(questions, self.model)
        replies = self.answers.look_up(questions)
        left = [question for question in questions if question not in replies]
        progress = self.answers.progress
        if progress is not None:
            progress.asked(len(questions))
            progress.answered(len(replies), stored=True)
        if left:
            endpoint = self._endpoint()
            self.answers.check_budget(len(left))

            def keep(question: Question, reply: Reply) -> None:
                self.answers.keep(question, reply)
                replies[question] = reply
                if progress is not None:
                    progress.answered(1, stored=False)

            ask(endpoint, left, keep, self.answers.spend)
        return replies

    def _service(self) -> str | None:
        """Return the endpoint: the one that was given, or the user's default; None where there is neither."""
        if self.url is None and (default := os.environ.get(URL)):
            check_url(default)
            return default
        return self.url

    def _endpoint(self) -> Endpoint:
        service = self._service()
        if service is None or self.model is None:
            raise SpecError(
                "judge needs a model and an endpoint: judge(model='qwen3:8b', url='http://localhost:11434/v1'), "
                f"with the url in the environment variable {URL} if you like, or answers in a file: "
                "judge(recorded='answers.jsonl')"
            )
        return Endpoint(
            service, self.key, self.connections, self.rate, self.timeout, self.retries, structured=self.structured
        )

    def _load_recorded(self) -> Self:
        """Return the judge whose answers are recorded: what the file says, with what was given beside it."""
        if self.recorded is None:
            return self
        spec = _read_record(self.recorded).judge(self.model)
        if spec is None:
            return self
        other = build_from_file(spec, "metric", self.recorded)
        if not isinstance(other, Judge):
            raise DataError(f"answers of {spec}, which is not a judge", file=self.recorded)
        changed = {
            field.name: getattr(self, field.name) for field in fields(self) if field.init and self._differs(field.name)
        }
        # A judge that verifies reads its prompt when it is made, from the record if it has one: that comes afterwards.
        judge = replace(other, **{**changed, "recorded": None})
        object.__setattr__(judge, "recorded", self.recorded)
        return cast("Self", judge)

    def _differs(self, name: str) -> bool:
        default = next(field.default for field in fields(self) if field.name == name)
        return bool(getattr(self, name) != default)

    def build_prompt(self) -> Prompt:
        """Return the prompt that answers were asked for with."""
        used = self._load_recorded() if self.recorded is not None else self
        return make_prompt(used.protocol, used.prompt, used.against, used.languages, used.examples)

    def _need_spans(self, what: str) -> None:
        protocol = self.build_prompt().protocol
        if not protocol.spans:
            raise SpecError(
                f"judge: the protocol {protocol.name!r} marks no errors, so it has no {what}: use protocol='esa' or "
                "protocol='mqm', or explain it with erasure"
            )

    def build_verifier(self) -> Metric:
        """Return the metric that errors are verified by."""
        if self.verifier is not None:
            return self.verifier
        name = "qe" if Inputs.SOURCE in self.inputs else "chrf"
        return cast("Metric", build(name))

    def verify_errors(
        self, judgements: Mapping[Segment, list[Judgement]], prompt: Prompt
    ) -> dict[Segment, list[Judgement]]:
        """Return the judgements with those errors whose mask raises the verifier; one score call for all of them."""
        verifier = self.build_verifier()
        texts: dict[Segment, None] = {}
        masked: dict[tuple[Segment, tuple[int, int]], Segment] = {}
        for segment, answers in judgements.items():
            for span in _locate_errors(answers):
                words = Words(segment.hypothesis, _around(segment.hypothesis, span))
                keep = np.array([[place != span for place in words.spans]])
                text = Delete().render([(words, keep)])[0].texts[0]
                masked[segment, span] = replace(segment, hypothesis=text)
                texts |= {segment: None, masked[segment, span]: None}
        if not texts:
            return dict(judgements)
        sign = 1.0 if verifier.higher_is_better else -1.0
        scores = dict(zip(texts, (sign * verifier.score(list(texts))).tolist(), strict=True))

        def holds(segment: Segment, error: MarkedError) -> bool:
            if error.span is None or error.span.side is not Side.HYPOTHESIS:
                return True  # what is not in the hypothesis cannot be masked there
            return bool(scores[masked[segment, (error.span.start, error.span.end)]] > scores[segment])

        return {
            segment: [
                judgement.keeping([holds(segment, error) for error in judgement.errors], prompt.protocol)
                for judgement in answers
            ]
            for segment, answers in judgements.items()
        }

    def combine_answers(self, judgements: tuple[Judgement, ...], protocol: Protocol) -> Verdict:
        """Return the combined numbers of a segment; each order of a comparison needs an answer that can be used."""
        good = [judgement for judgement in judgements if judgement.score is not None]
        per_order = len(judgements) // protocol.orders
        for start in range(0, len(judgements), per_order):
            answers = judgements[start : start + per_order]
            if all(judgement.score is None for judgement in answers):
                return Verdict(judgements, np.full(len(_columns(protocol)), np.nan), answers[0].missing)
        values = np.array([judgement.score for judgement in good], dtype=np.float64)
        kept = _within(values) if self.combine == "trimmed" else np.ones(len(values), dtype=np.bool_)
        middle = float(np.median(values)) if self.combine == "median" else math.fsum(values[kept]) / int(kept.sum())
        parts = np.array(
            [judgement.parts for judgement, keep in zip(good, kept, strict=True) if keep], dtype=np.float64
        )
        row = [middle, *parts.reshape(int(kept.sum()), -1).mean(axis=0).tolist()]
        if protocol.spans:
            row += [
                math.fsum(len(judgement.errors) for judgement in good) / len(good),
                float(sum(judgement.lost for judgement in good)),
            ]
        row += [float(values.std(ddof=1)) if len(values) > 1 else 0.0, float(len(values))]
        return Verdict(judgements, np.array(row, dtype=np.float64), None)


_NOWHERE = {field.name: field.default for field in fields(Judge) if field.name in _PLACE}


def _columns(protocol: Protocol) -> tuple[str, ...]:
    counts = ("errors", "lost") if protocol.spans else ()
    return ("score", *protocol.columns, *counts, "spread", "answers")


def _within(values: FloatVector) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Return which values lie within two standard deviations of their mean; all where that leaves none."""
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    kept = np.abs(values - values.mean()) <= _OUTLIER * spread
    return kept if kept.any() else np.ones(len(values), dtype=np.bool_)


def _locate_errors(judgements: Sequence[Judgement]) -> list[tuple[int, int]]:
    """Return the spans of errors in the hypothesis, each once."""
    spans = [error.span for judgement in judgements for error in judgement.errors]
    places = [(span.start, span.end) for span in spans if span is not None and span.side is Side.HYPOTHESIS]
    return list(dict.fromkeys(places))


def _around(text: str, span: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """Return a text as a span and what stands before and after it, blanks between them left out."""
    before, after = text[: span[0]].rstrip(), text[span[1] :]
    start = len(text) - len(after.lstrip())
    return tuple(part for part in ((0, len(before)), span, (start, len(text))) if part[0] < part[1])


def _word_scores(words: Words, side: Side, verdict: Verdict) -> WordScores:
    importance = np.zeros(len(words))
    notes: list[dict[str, None]] = [{} for _ in words.spans]
    good = [judgement for judgement in verdict.judgements if judgement.score is not None]
    for judgement in good:
        worst = np.zeros(len(words))
        for error in judgement.errors:
            if error.span is None or error.span.side is not side:
                continue
            for k, (start, end) in enumerate(words.spans):
                if start < error.span.end and error.span.start < end:
                    worst[k] = max(worst[k], error.weight)
                    kind = f"{error.severity} {error.category}".strip()
                    notes[k][f"{kind}: {error.reason}" if error.reason else kind] = None
        importance -= worst / len(good)
    return WordScores(importance + 0.0, tuple("; ".join(lines) for lines in notes))


def _tokens(question: Question) -> int:
    """Return about how many tokens a call sends."""
    messages = cast("Sequence[Mapping[str, str]]", question.request["messages"])
    return sum(-(-len(message["content"].encode("utf-8", "surrogatepass")) // _BYTES) for message in messages)


def _bias(verdicts: Sequence[Verdict]) -> list[str]:
    """Return how often the order of two texts decided, and how often the first won."""
    both = [pair for pair in (_by_order(verdict) for verdict in verdicts) if pair is not None]
    first = [
        judgement.parts[0] for verdict in verdicts for judgement in verdict.judgements if judgement.score is not None
    ]
    if not both:
        return []
    same = sum(before == after for before, after in both) / len(both)
    moved = f"position bias: {1 - same:.1%} of {len(both):,} preferences change with the order"
    return [f"{moved}; the first text wins {sum(first) / len(first):.1f} % (50 %: no bias)"]


def _by_order(verdict: Verdict) -> tuple[float, float] | None:
    half = len(verdict.judgements) // 2
    halves = verdict.judgements[:half], verdict.judgements[half:]
    means = [[judgement.score for judgement in half_of if judgement.score is not None] for half_of in halves]
    return None if not all(means) else (float(np.mean(means[0])), float(np.mean(means[1])))


def _repeats(verdicts: Sequence[Verdict], systems: Sequence[str]) -> list[str]:
    """Return how far repeats agree, and the mean rank of each system over them."""
    table = np.array(
        [
            [math.nan if judgement.score is None else judgement.score for judgement in verdict.judgements]
            for verdict in verdicts
        ],
        dtype=np.float64,
    )
    whole = table[np.isfinite(table).all(axis=1)]
    remarks = []
    if len(whole) > 1:
        spread = float(np.mean(whole.std(axis=1, ddof=1)))
        pairs = (
            np.asarray(np.corrcoef(whole.T))[np.triu_indices(whole.shape[1], 1)]
            if (whole.std(axis=0) > 0).all()
            else None
        )
        agreed = "" if pairs is None else f", mean correlation between repeats {float(pairs.mean()):.3f}"
        remarks.append(f"repeats of {len(whole):,} segments: standard deviation {spread:.2f}{agreed}")
    names = list(dict.fromkeys(systems))
    if len(names) > 1 and len(systems) == len(table):
        labels = np.array(systems)
        means = np.array([np.nanmean(table[labels == name], axis=0) for name in names])
        ranks = 1 + (means[None] > means[:, None]).sum(axis=1) + 0.5 * ((means[None] == means[:, None]).sum(axis=1) - 1)
        shown = ", ".join(f"{name} {rank:.2f}" for name, rank in zip(names, ranks.mean(axis=1).tolist(), strict=True))
        remarks.append(f"mean rank over repeats: {shown}")
    return remarks


class _Line(NamedTuple):
    """A recorded reply, and whose it is."""

    judge: str | None
    reply: Reply


class _About(msgspec.Struct):
    judge: str | None = None
    order: int = 0
    repeat: int = 0


@dataclass(frozen=True, eq=False)
class _Record:
    """The answers in a file, by the texts they are about, order and repeat."""

    file: str
    lines: Mapping[tuple[object, ...], list[_Line]]
    judges: tuple[str, ...]
    digest: str

    def judge(self, model: str | None) -> str | None:
        """Return the spec of whoever answered; None where the file does not say it."""
        fitting = [judge for judge in self.judges if model is None or self._model(judge) == model]
        if len(fitting) > 1:
            raise DataError(
                f"holds answers of {len(fitting)} judges: {', '.join(fitting)}. Name the model", file=self.file
            )
        if self.judges and not fitting:
            raise DataError(f"holds no answers of {model!r}, but of {', '.join(self.judges)}", file=self.file)
        return fitting[0] if fitting else None

    def _model(self, judge: str) -> object:
        try:
            return dict(parse(judge).named).get("model")
        except SpecError as error:
            raise DataError(str(error), file=self.file) from error

    def replies(self, questions: Sequence[Question], model: str | None) -> dict[Question, Reply]:
        """Return the reply to each question, found by its texts; of several, the last."""
        judge = self.judge(model)
        lost = Reply(None, failure=f"not in {self.file}")
        replies = {}
        for question in questions:
            lines = self.lines.get((question.segment, question.order, question.repeat), [])
            replies[question] = next((line.reply for line in reversed(lines) if line.judge in (None, judge)), lost)
        return replies


@read_once(8)
def _read_record(file: str) -> _Record:
    """Return the answers in a file; it is read again when it has changed."""
    path = str(Path(file).expanduser())
    if not Path(path).exists():
        raise DataError("no such file: judge(recorded=...) needs a file of answers", file=file)
    lines: dict[tuple[object, ...], list[_Line]] = {}
    judges: dict[str, None] = {}
    for number, value in read_lines(Path(path)):
        where = Where(path, number)
        about = convert(_About, value, where)
        judges |= {} if about.judge is None else {about.judge: None}
        key = convert_segment(value, where), about.order, about.repeat
        lines.setdefault(key, []).append(_Line(about.judge, reply_of(value, path, number)))
    if not lines:
        raise DataError("holds no answers: expected one object per line with the texts and 'answer'", file=path)
    digest = blake2b(Path(path).read_bytes(), digest_size=6).hexdigest()
    return _Record(path, lines, tuple(judges), digest)
