"""`qe`: a small quality estimator that ships with whyscore. Source and hypothesis in, a score and word errors out.

1. Both texts are read by the embedded encoder, cut into words and matched (`features`).
2. One or more small networks (`network`) read the words of both sides; their outputs are averaged.
3. Score, 0 to 1: two parts the expected human judgement (direct assessment, MQM), where 0.5 is the mean of the training
   data and 1/6 one standard deviation, and one part the share of words that are right by step 4. The judgement is that
   of the networks; for a language pair of the training, named by `languages`, two fifths of it are that of a linear
   function of the vectors of both texts and of the means and deviations of the word features, fitted to that pair.
4. Word scores: minus the probability that the word is wrong: that a post-editor changes it (a source word: that its
   translation is changed). For a language pair with marked spans it is the mean of that and of the probability to stand
   in a span: spans alone do not carry over to other domains. Logits are calibrated on segments that were not trained on
   (Platt 1999).
5. For the words of a language pair that it was not trained on, named by `languages`, the logit is the mean of that and
   of unsupervised evidence (`whyscore.models.evidence`): on pairs left out of the training, both together found more
   than each. A model of your own leaves such words to the evidence alone. These numbers rank words; they are not
   calibrated.
6. A language pair without training data has no learned tables. Unless `languages` names a pair of the training, the
   columns of the tables count as missing, as in a part of the training, where the lexicon has a translation for fewer
   than a quarter of the words that are not copied from the source. In a pair of the training, such a text is suspect.

A model of your own (`whyscore train`) is a folder: the same parts without the trees, with the kinds of labels it was
trained on, and a head for gaps; or an encoder of transformers with these heads (`joint`).

How it was trained, on what, and how good it is on which language pairs: `training/README.md`.
"""

import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from whyscore.errors import DataError, SpecError
from whyscore.metrics.estimators.features import CLIP, LEARNED, NAMES, Matched, ReadText, match, read_texts, summarise
from whyscore.metrics.estimators.network import Batch, make_network, run
from whyscore.metrics.estimators.tables import read_tables
from whyscore.metrics.estimators.trees import make_trees
from whyscore.metrics.needs import need_source
from whyscore.models.attribution import Inside
from whyscore.models.encoders.embedded import Embedded
from whyscore.models.encoders.loading import CoverageNotice, find_uncovered
from whyscore.models.evidence import Setting, error_evidence
from whyscore.models.exact import factor, multiply
from whyscore.models.pairs import Pinned
from whyscore.registry import spec_of
from whyscore.settings import check_fields
from whyscore.text.alignment import Pieces, pool_words
from whyscore.text.files import UNREADABLE_ARRAYS, read_once
from whyscore.types import FloatVector, Inputs, Place, Segment, Side, Signature, Words, WordScores
from whyscore.version import __version__

FORMAT = 3
SHIPPED = Path(__file__).with_name("qe.npz")
WEIGHTS = "model.safetensors"
"""The weights in a folder of `whyscore train`."""

_TRANSLATED_SHARE = 0.25
_WORDS_AT_ONCE = 1500
_SEGMENTS_AT_ONCE = 256
_MEMORY = 256 * 1024**2
DEVIATIONS = 6.0
"""Standard deviations from the worst score to the best."""
_LEAST = 1e-4  # probability whose logit is taken
_PRIOR = -0.85  # the logit of 0.3, about the share of wrong words in the training data
_COPIED, _TRANSLATION = NAMES.index("copied"), NAMES.index("translation")
_LEARNED = [NAMES.index(name) for name in LEARNED]

Array = NDArray[np.float32]
Kind = str
KINDS: tuple[Kind, ...] = ("edits", "spans")
"""How words were labelled: by post-editing, or by marking error spans; the columns of the networks that ship. The first
is taken for languages that nobody named, or that were not trained on."""
TREES = {"edits": 0, "spans": 0, "source_edits": 1}
"""The sets of trees, with the side they read."""


class UnseenNotice(CoverageNotice):
    """The estimator was not trained on a language pair."""


@dataclass(frozen=True, slots=True)
class QE:
    """Quality without a reference, 0 to 1; higher is better. Ships with whyscore; numpy only.

    Args:
        model: file of weights, or a folder of `whyscore train`; None for the one that ships with whyscore.
        languages: source and target language, as in `et-en`; None takes those of the data.
    """

    model: str | None = None
    languages: str | None = None

    inputs: ClassVar[Inputs] = Inputs.HYPOTHESIS | Inputs.SOURCE
    higher_is_better: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self)
        if self.languages is not None and "-" not in self.languages:
            raise SpecError(f"qe: languages is {self.languages!r}, expected a pair such as 'et-en'")

    def for_languages(self, source: str, target: str) -> Self:
        return self if self.languages is not None else replace(self, languages=f"{_code(source)}-{_code(target)}")

    def unsupported(self, source: str | None, target: str | None) -> tuple[str, ...]:
        codes = [_code(language) for language in (source, target) if language is not None]
        estimator = self._estimator()
        # A model that was trained without naming languages has no pairs, and other encoders do not say what they cover.
        trained = not estimator.pairs or "-".join(codes) in estimator.pairs
        return () if trained or estimator.encoder != "embedded" else find_uncovered(Embedded(), codes)

    def signature(self) -> Signature:
        estimator = self._estimator()
        facts = (("weights", estimator.digest), ("encoder", estimator.encoder), ("version", __version__))
        return Signature(spec_of(self), facts)

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        return np.array([estimate.score for estimate in self._estimates(segments)], dtype=np.float64)

    def word_scores(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[WordScores]:
        if place.side is Side.REFERENCE:
            raise SpecError("qe reads no reference: explain the hypothesis or the source")
        if self._unseen():
            return [WordScores(-expit(logits)) for logits in self._judge_unseen(segments, place, words)]
        return [WordScores(-errors) for errors in self._errors(segments, place, words)]

    def _errors(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[FloatVector]:
        """Return the probability that each word is wrong by what was learned."""
        side = 0 if place.side is Side.HYPOTHESIS else 1
        if side and not self._estimator().judges_source:
            raise SpecError(f"qe: {self.model} was trained without labels of source words: explain the hypothesis")
        estimates = self._estimates(segments)
        return [_pool(text, estimate, side) for text, estimate in zip(words, estimates, strict=True)]

    def _judge_unseen(self, segments: Sequence[Segment], place: Place, words: Sequence[Words]) -> list[FloatVector]:
        """Return logits of words of a pair that was not trained on, by evidence and, if they carry over, by errors."""
        self._check(segments)
        source, _, target = str(self.languages).partition("-")
        evidence_by_segment = error_evidence(segments, place.side, words, Setting(None, (source, target)))
        if not self._estimator().carries_over:
            return [evidence + _PRIOR for evidence in evidence_by_segment]
        errors = [np.clip(error, _LEAST, 1 - _LEAST) for error in self._errors(segments, place, words)]
        return [
            (logit(error) + evidence + _PRIOR) / 2 for error, evidence in zip(errors, evidence_by_segment, strict=True)
        ]

    def gap_errors(self, segments: Sequence[Segment], words: Sequence[Words]) -> list[FloatVector]:
        """Return the probability that something is missing before each word of a hypothesis, and after the last one."""
        estimates = self._estimates(segments)
        if any(estimate.gaps is None for estimate in estimates):
            raise SpecError("qe: this model was not trained on gaps; train one with whyscore train")
        return [_pool_gaps(text, estimate) for text, estimate in zip(words, estimates, strict=True)]

    def inspect(self, segments: Sequence[Segment]) -> Inside:
        """Return what the network reads of each segment, and the score as a differentiable function of it."""
        self._check(segments)
        pairs = [(segment.hypothesis, segment.source or "") for segment in segments]
        return self._estimator().open(pairs, self.languages)

    def _estimates(self, segments: Sequence[Segment]) -> list["Estimate"]:
        self._check(segments)
        pairs = [(segment.hypothesis, segment.source or "") for segment in segments]
        return self._estimator().estimates(pairs, self.languages)

    def _check(self, segments: Sequence[Segment]) -> None:
        need_source("qe", segments)
        if self._unseen():
            estimator = self._estimator()
            _warn_unseen(
                str(self.languages), " ".join(estimator.pairs), "in part" if estimator.carries_over else "entirely"
            )

    def _unseen(self) -> bool:
        # A model that was trained without naming languages has no pairs: nobody can tell what it saw.
        pairs = self._estimator().pairs
        return self.languages is not None and bool(pairs) and self.languages not in pairs

    def _estimator(self) -> "Estimator":
        path = SHIPPED if self.model is None else Path(self.model).expanduser()
        if path.is_dir():
            path /= WEIGHTS if (path / WEIGHTS).exists() else SHIPPED.name
        if not path.exists():
            raise DataError(
                "no such file of weights: leave out model= for the one that ships with whyscore, or make one with "
                "whyscore train",
                file=str(path),
            )
        return load(path)


def _code(language: str) -> str:
    """Return the language alone: zh of zh-TW, de of de_AT."""
    return language.lower().replace("_", "-").split("-")[0]


@lru_cache(maxsize=64)
def _warn_unseen(pair: str, trained_pairs: str, share: str) -> None:
    warnings.warn(
        f"qe was not trained on {pair}: scores are less reliable, and highlights come {share} from `evidence`, which "
        f"needs no training. Trained on: {trained_pairs}",
        UnseenNotice,
        stacklevel=4,
    )


class Estimate(NamedTuple):
    """What is estimated of one segment."""

    score: float
    errors: tuple[FloatVector, FloatVector]
    """The probability that each unit of the hypothesis and of the source is wrong."""
    spans: tuple[NDArray[np.int64], NDArray[np.int64]]
    """Where these units stand."""
    gaps: FloatVector | None = None
    """The probability that something is missing before each unit of the hypothesis, and after the last one."""


class Logits(NamedTuple):
    """What networks and trees say of one segment, before calibration."""

    words: Mapping[Kind, Array]
    """Of hypothesis words: that a post-editor changes them, that they stand in a marked error span."""
    source: Array
    """Of source words: that a post-editor changes their translation."""
    sentence: Mapping[Kind, float]
    """The human judgement by the networks: direct assessment, MQM."""
    gaps: Array | None = None
    """That something is missing before each hypothesis word, and after the last one."""
    attention: tuple[Array, Array] | None = None
    """Of both sides: metrics x words, for models that learned from metrics."""
    heads: Mapping[str, float] = MappingProxyType({})
    """The human judgement by a linear function, standardised, of each language pair and kind that has a head."""


class Known(NamedTuple):
    """A segment that was computed: the units of both sides, and what is said of them, if both have words."""

    spans: tuple[NDArray[np.int64], NDArray[np.int64]]
    logits: Logits | None

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return 4 * sum(array.nbytes for array in self.spans)


class Estimator:
    """Tables, networks and trees, read from one file."""

    carries_over = False
    """Whether it was measured on language pairs left out of its training: the one that ships, with trees."""

    def __init__(self, arrays: Mapping[str, NDArray[np.generic]], digest: str) -> None:
        card = json.loads(arrays["card"].astype(np.uint8).tobytes().decode())
        self._read_card(card, digest)
        if card.get("columns", len(NAMES)) != len(NAMES):
            raise ValueError(f"was trained on {card['columns']} features per word, this version has {len(NAMES)}")
        self._tables = read_tables(arrays)
        self._components = factor(arrays["components"].astype(np.float32))
        self._norm = {name: arrays[name].astype(np.float32) for name in ("mean", "deviation", "scale")}
        self._networks = [make_network(_under(arrays, f"network{number}.")) for number in range(int(card["networks"]))]
        self._trees = {name: make_trees(part) for name in TREES if (part := _under(arrays, f"trees.{name}."))}
        self.carries_over = bool(self._trees)
        heads = {name: numbers.astype(np.float32) for name, numbers in _under(arrays, "head.").items()}
        self._heads = {name: (factor(numbers[:-1, None]), numbers[-1]) for name, numbers in heads.items()}
        self._texts: Pinned[ReadText] = Pinned(_MEMORY)

    def _read_card(self, card: Mapping[str, Any], digest: str) -> None:
        self.digest = digest
        self.encoder: str = card.get("encoder", "embedded")
        self.kinds: tuple[Kind, ...] = tuple(card.get("kinds", KINDS))
        self.judges_source: bool = card.get("source", True)
        self.pairs: dict[str, tuple[Kind, ...]] = {pair: tuple(kinds) for pair, kinds in card["pairs"].items()}
        self._calibration: dict[str, list[float]] = card["calibration"]
        self._judges_gaps = "gaps" in self._calibration
        self._known: Pinned[Known] = Pinned(_MEMORY // 4)

    def estimates(self, pairs: Sequence[tuple[str, str]], languages: str | None) -> list[Estimate]:
        """Return what is estimated of each hypothesis and source, by the kinds of labels of the language pair."""
        seen = languages in self.pairs
        return [self._estimate(output, languages or "") for output in self.compute(pairs, seen=seen)]

    def open(self, pairs: Sequence[tuple[str, str]], languages: str | None) -> Inside:
        """Refuse to show the network: features and tables take part in the score."""
        del pairs, languages
        raise SpecError(
            "attention and gradient do not work for qe on the embedded encoder: explain it with intrinsic, erasure, "
            "lime or shap, or train a model with whyscore train --encoder NAME"
        )

    def compute(self, pairs: Sequence[tuple[str, str]], *, seen: bool) -> list[Known]:
        """Return what networks and trees say of each pair of texts; equal pairs are computed once.

        Args:
            pairs: Hypothesis and source.
            seen: Whether they are of a language pair of the training, so that a word that no table knows is odd.
        """
        keys = ["\x00".join((*pair, str(seen))) for pair in pairs]
        pair_of = dict(zip(keys, pairs, strict=True))
        outputs = self._known.take(keys, lambda missing: self._compute([pair_of[key] for key in missing], seen=seen))
        return [outputs[key] for key in keys]

    def _compute(self, pairs: Sequence[tuple[str, str]], *, seen: bool) -> list[Known]:
        result: list[Known] = []
        for start in range(0, len(pairs), _SEGMENTS_AT_ONCE):
            window = pairs[start : start + _SEGMENTS_AT_ONCE]
            texts = self._texts.take([text for pair in window for text in pair], read_texts)
            result += self._window([(texts[hypothesis], texts[source]) for hypothesis, source in window], seen=seen)
        return result

    def _window(self, read: Sequence[tuple[ReadText, ReadText]], *, seen: bool) -> list[Known]:
        result = [Known((here.units.spans, there.units.spans), None) for here, there in read]
        full = [k for k, pair in enumerate(read) if all(len(text.units.words) for text in pair)]
        for group in _groups([read[k] for k in full]):
            rows = [full[k] for k in group]
            for row, logits in zip(rows, self._run([read[k] for k in rows], seen=seen), strict=True):
                result[row] = result[row]._replace(logits=logits)
        return result

    def _run(self, read: Sequence[tuple[ReadText, ReadText]], *, seen: bool) -> Iterator[Logits]:
        """Yield the mean of networks and trees for each segment; sentences and gaps are judged by networks alone."""
        matched = [match(*pair, self._tables) for pair in read]
        if not seen:
            matched = [_forget_unknown(segment) for segment in matched]
        normed = [[self._normalise(side) for side in segment.features] for segment in matched]
        batch = self._batch(read, matched, normed)
        networks = [run(network, batch) for network in self._networks]
        here, there = (np.mean([network.words[side] for network in networks], axis=0) for side in (0, 1))
        sentences = np.mean([network.sentences for network in networks], axis=0)
        trees = {name: self._ask_trees(name, TREES[name], matched) for name in self._trees}
        gaps, attention = networks[0].gaps, networks[0].attention
        heads = self._ask_heads(read, normed) if self._heads else {}
        for place, pair in enumerate(read):
            words, others = (len(text.units.words) for text in pair)
            hypothesis = {kind: here[place, :words, k] for k, kind in enumerate(self.kinds)}
            source = there[place, :others, 0]
            if trees:
                hypothesis = {kind: (logits + trees[kind][place]) / 2 for kind, logits in hypothesis.items()}
                source = (source + trees["source_edits"][place]) / 2
            yield Logits(
                hypothesis,
                source,
                {kind: float(sentences[place, k]) for k, kind in enumerate(self.kinds)},
                None if gaps is None else gaps[place, : words + 1, 0],
                None if attention is None else (attention[0][place, :, :words], attention[1][place, :, :others]),
                {name: float(scores[place]) for name, scores in heads.items()},
            )

    def _ask_heads(
        self, read: Sequence[tuple[ReadText, ReadText]], words: Sequence[Sequence[Array]]
    ) -> dict[str, Array]:
        texts = [[text.whole for text in pair] for pair in read]
        summaries = np.stack([summarise(wholes, sides) for wholes, sides in zip(texts, words, strict=True)])
        return {name: multiply(summaries, weights)[:, 0] + bias for name, (weights, bias) in self._heads.items()}

    def _ask_trees(self, name: str, side: int, matched: Sequence[Matched]) -> list[Array]:
        features = [segment.features[side] for segment in matched]
        return np.split(
            self._trees[name].logits(np.concatenate(features)), np.cumsum([len(feature) for feature in features])[:-1]
        )

    def _batch(
        self,
        read: Sequence[tuple[ReadText, ReadText]],
        matched: Sequence[Matched],
        words: Sequence[Sequence[Array]],
    ) -> Batch:
        sizes = np.array([[len(feature) for feature in segment.features] for segment in matched])
        cosines = np.zeros((len(read), *sizes.max(axis=0).tolist()), dtype=np.float32)
        for place, (segment, (here, there)) in enumerate(zip(matched, sizes.tolist(), strict=True)):
            cosines[place, :here, :there] = segment.cosines
        features, vectors, present = (
            [_pad([sides[side] for sides in words]) for side in (0, 1)],
            [_pad(self._project([pair[side] for pair in read])) for side in (0, 1)],
            [np.arange(sizes[:, side].max()) < sizes[:, side, None] for side in (0, 1)],
        )
        return Batch((features[0], features[1]), (vectors[0], vectors[1]), cosines, (present[0], present[1]))

    def _normalise(self, features: Array) -> Array:
        normed = np.clip((features - self._norm["mean"]) / self._norm["deviation"], -CLIP, CLIP)
        result: Array = np.nan_to_num(normed, nan=0.0)
        return result

    def _project(self, texts: Sequence[ReadText]) -> list[Array]:
        """Return the vectors of the words of each text, on fewer components."""
        rows = np.concatenate([np.concatenate([text.words, text.projections], axis=1) for text in texts])
        components = multiply(rows, self._components) / self._norm["scale"]
        return np.split(components, np.cumsum([len(text.words) for text in texts])[:-1])

    def _estimate(self, output: Known, languages: str) -> Estimate:
        if output.logits is None:
            # A side without a word: the worst score, and every word of the other side is wrong.
            here, there = (np.ones(len(spans)) for spans in output.spans)
            return Estimate(0.0, (here, there), output.spans, np.append(here, 1.0) if self._judges_gaps else None)
        kinds = self.pairs.get(languages, self.kinds[:1])
        by_people = [kind for kind in self.kinds if kind in KINDS] if "spans" in kinds else kinds
        words: FloatVector = np.mean([self._probability(kind, output.logits.words[kind]) for kind in by_people], axis=0)
        source = self._probability("source_edits", output.logits.source)
        judgement = float(np.mean([self._judgement(kind, languages, output.logits) for kind in kinds]))
        score = (2 * judgement + 1 - float(words.mean())) / 3
        gaps = (
            self._probability("gaps", output.logits.gaps)
            if self._judges_gaps and output.logits.gaps is not None
            else None
        )
        return Estimate(score, (words, source), output.spans, gaps)

    def _probability(self, name: str, logits: Array) -> FloatVector:
        slope, offset = self._calibration[name]
        result: FloatVector = expit(slope * logits.astype(np.float64) + offset)
        return result

    def _judgement(self, kind: Kind, languages: str, logits: Logits) -> float:
        """Return the expected judgement from 0 to 1, with the language pair's own head where it has one."""
        centre, spread = self._calibration[f"{kind}_scores"]
        standardised = (logits.sentence[kind] - centre) / spread
        head = logits.heads.get(f"{languages}.{kind}")
        if head is not None:
            standardised = mix(standardised, head) / self._calibration[f"{kind}_mixed"][0]
        return float(np.clip(0.5 + standardised / DEVIATIONS, 0, 1))


def _forget_unknown(matched: Matched) -> Matched:
    """Return a segment without the columns of the tables, where these know too little of it."""
    words = matched.features[0]
    translated = words[words[:, _COPIED] == 0, _TRANSLATION] > 0
    if not len(translated) or np.mean(translated) >= _TRANSLATED_SHARE:
        return matched
    here, there = (np.where(np.isin(np.arange(side.shape[1]), _LEARNED), np.nan, side) for side in matched.features)
    return matched._replace(features=(here.astype(np.float32), there.astype(np.float32)))


def mix(network: float, head: float) -> float:
    """Return three parts the judgement of the network and two parts that of the head, both standardised."""
    return (3 * network + 2 * head) / 5


def _under(arrays: Mapping[str, NDArray[np.generic]], prefix: str) -> dict[str, NDArray[np.generic]]:
    return {name.removeprefix(prefix): values for name, values in arrays.items() if name.startswith(prefix)}


def _groups(read: Sequence[tuple[ReadText, ReadText]]) -> Iterator[list[int]]:
    """Yield segments of similar length, with a bounded number of words together."""
    sizes = [sum(len(text.units.words) for text in pair) for pair in read]
    group: list[int] = []
    for k in sorted(range(len(read)), key=sizes.__getitem__):
        if group and (len(group) + 1) * sizes[k] > _WORDS_AT_ONCE:
            yield group
            group = []
        group.append(k)
    if group:
        yield group


def _pad(rows: Sequence[Array]) -> Array:
    result = np.zeros((len(rows), max(map(len, rows)), rows[0].shape[1]), dtype=np.float32)
    for place, row in enumerate(rows):
        result[place, : len(row)] = row
    return result


def _pool(words: Words, estimate: Estimate, side: int) -> FloatVector:
    """Return the error probability of each word; a word of several units has that of the worst."""
    spans = [(start, end) for start, end in estimate.spans[side].tolist()]
    pieces = Pieces(spans, [words.text[start:end] for start, end in spans])
    return -pool_words(words, pieces, -estimate.errors[side], pool="min", fill="value", value=0.0).values


def _pool_gaps(words: Words, estimate: Estimate) -> FloatVector:
    starts = estimate.spans[0][:, 0]
    places = [int(np.searchsorted(starts, start)) for start, _ in words.spans]
    gaps: FloatVector = np.asarray(estimate.gaps)[[*places, -1]]
    return gaps


@read_once(4)
def load(path: Path) -> Estimator:
    """Return the estimator in a file; a damaged or unknown one is refused."""
    if path.name == WEIGHTS:
        # Imported here: what it holds may need torch, and it builds on this module.
        from whyscore.metrics.estimators.joint import load_folder  # noqa: PLC0415

        return load_folder(path.parent)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        form, digest = int(arrays.pop("format")), str(arrays.pop("digest"))
    except UNREADABLE_ARRAYS as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"cannot be read as weights of qe: {reason}", file=str(path)) from error
    if form != FORMAT:
        raise DataError(f"has format {form}, this version of whyscore reads format {FORMAT}", file=str(path))
    if digest_of(arrays) != digest:
        raise DataError(f"its numbers do not match its digest {digest}: the file is damaged", file=str(path))
    try:
        return Estimator(arrays, digest)
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise DataError(f"holds no weights of qe: {type(error).__name__} {error}", file=str(path)) from error


def digest_of(arrays: Mapping[str, NDArray[np.generic]]) -> str:
    """Return a short name for arrays: names, shapes and numbers."""
    whole = hashlib.blake2b(digest_size=6)
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name])
        whole.update(f"{name} {values.dtype.str} {values.shape}\n".encode())
        whole.update(values.tobytes())
    return whole.hexdigest()
