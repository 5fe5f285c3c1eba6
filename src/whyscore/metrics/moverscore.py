"""MoverScore (Zhao et al. 2019, arXiv 1909.02622) and XMoverScore (Zhao et al. 2020, arXiv 2005.01196; Leiter 2021).

1. Both texts become units with a vector and a mass (`moverscore_units`): pieces, or n-grams of them. MoverScore reads
   a reference, XMoverScore the source, whose vectors can be mapped into the hypothesis' language (`map`).
2. d is the least work that moves the mass of one text to that of the other (`moverscore_transport`).
3. The score is 1 - d or 1 / (1 + d), the mean or the best over several references; higher is better.
4. `lm` adds 0.1 times the mean log-probability of the hypothesis under a causal language model; word scores leave it
   out, as it says nothing of the pair.

Word scores: minus the distance to the nearest unit of the other text, or minus the transported cost
(`moverscore_words`). What the published versions differ in: `moverscore_versions`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal

from whyscore.errors import MissingInput, SpecError
from whyscore.metrics.moverscore_base import Mover
from whyscore.metrics.moverscore_pairs import Pair
from whyscore.metrics.moverscore_units import Apply
from whyscore.metrics.moverscore_versions import MOVERSCORE, XMOVERSCORE, Axes
from whyscore.metrics.needs import need_references, need_source, present
from whyscore.models.maps import Kind, LanguageMap, read_map
from whyscore.protocols import Encoder
from whyscore.types import FloatMatrix, Inputs, Place, Segment, Side, Signature


@dataclass(frozen=True, slots=True)
class MoverScore(Mover):
    """How little work it takes to move the words of the hypothesis to those of a reference, 0 to 1; higher is better.

    Options that are None are as the version has them.

    Args:
        model: embedded, static, a folder or a hub name; None for what the version was published with.
        version: v2 (the published library, distilbert) or v1 (2019: five layers of a BERT trained on MNLI).
        layer: of a network; None for the last.
        layers: how many of the last layers are joined by minimum, mean and maximum.
        tokens: keep all pieces, or drop punctuation and pieces that do not start a word.
        stop_words: file with words to drop, one a line; read with tokens='drop'.
        specials: whether special pieces carry mass (include), none (weightless), or are gone (exclude).
        ngram: how many pieces a unit has.
        ngram_mean: how the vectors of a unit are averaged.
        idf: file of texts, one a line, to weigh pieces by; 'uniform' for no weights.
        idf_hypothesis: file of texts for the pieces of the hypothesis; None for the same as idf.
        cost: squared distance, or Euclid's.
        flow_drop: share of the smallest flows that is left out.
        form: how the distance becomes a score.
        lm: causal language model whose mean log-probability of the hypothesis is added.
        lm_weight: how much that counts.
        word: what a word is given: distance to the nearest (min), or transported cost (flow).
        pool: how pieces make a word, for word='min'.
        fill: what a word without a piece gets; None for previous where pieces are dropped, else error.
        mode: `compat` is the published code, `paper` as printed: no special pieces, Euclid's distance.
        device: auto, cpu, cuda, cuda:1, mps.
        precision: of the networks.
        long: what becomes of texts the model cannot read whole.
        references: whether the mean over several references counts or the best.
    """

    version: Literal["v1", "v2"] = "v2"
    references: Literal["mean", "max"] = "mean"

    inputs: ClassVar[Inputs] = Inputs.HYPOTHESIS | Inputs.REFERENCES
    who: ClassVar[str] = "moverscore"
    versions: ClassVar[dict[str, Axes]] = MOVERSCORE

    def _best_counts(self) -> bool:
        return self.references == "max"

    def _checked(self, segments: Sequence[Segment]) -> Sequence[Segment]:
        try:
            need_references(self.who, segments)
        except MissingInput as error:
            raise MissingInput(f"{error}, such as xmoverscore") from None
        return segments

    def _check_place(self, place: Place) -> None:
        if place.side is Side.SOURCE:
            raise SpecError("moverscore does not read the source: explain the hypothesis or a reference")

    def _pairs(self, segment: Segment) -> list[Pair]:
        return [(reference, segment.hypothesis) for reference in present(segment.references)]


@dataclass(frozen=True, slots=True)
class XMoverScore(Mover):
    """How little work it takes to move the words of the hypothesis to those of the source, -1 to 1; higher is better.

    Options that are None are as the version has them.

    Args:
        model: embedded, static, a folder or a hub name; None for embedded.
        version: v1-keep (v1 with all pieces), v1 (2020) or v2 (baseline of Eval4NLP 2021: layer 8, pairs of pieces).
        layer: of a network; None for the last, in v2 for the eighth.
        layers: how many of the last layers are joined by minimum, mean and maximum.
        tokens: keep all pieces, or drop punctuation and pieces that do not start a word.
        stop_words: file with words to drop, one a line; read with tokens='drop'.
        specials: whether special pieces carry mass (include), none (weightless), or are gone (exclude).
        ngram: how many pieces a unit has.
        ngram_mean: how the vectors of a unit are averaged.
        idf: file of texts in the source language, one a line, to weigh pieces by; None or 'uniform' for no weights.
        idf_hypothesis: file of texts for the pieces of the hypothesis; None for the same as idf.
        cost: squared distance, or Euclid's.
        flow_drop: share of the smallest flows that is left out.
        form: how the distance becomes a score.
        lm: causal language model whose mean log-probability of the hypothesis is added.
        lm_weight: how much that counts.
        word: what a word is given: distance to the nearest (min), or transported cost (flow).
        pool: how pieces make a word, for word='min'.
        fill: what a word without a piece gets; None for previous where pieces are dropped, else error.
        mode: `compat` is the published code, `paper` as printed: no special pieces, Euclid's distance, umd for both.
        device: auto, cpu, cuda, cuda:1, mps.
        precision: of the networks.
        long: what becomes of texts the model cannot read whole.
        map: file of a map between the languages, see whyscore learn-map.
        remap: which of its maps: clp (projection) or umd (mismatch direction); None for clp where the file has it.
    """

    version: Literal["v1", "v1-keep", "v2"] = "v1-keep"
    map: str | None = None
    remap: Kind | None = None

    inputs: ClassVar[Inputs] = Inputs.HYPOTHESIS | Inputs.SOURCE
    who: ClassVar[str] = "xmoverscore"
    versions: ClassVar[dict[str, Axes]] = XMOVERSCORE

    def __post_init__(self) -> None:
        """Refuse a kind of map without a map, besides options out of range."""
        Mover.__post_init__(self)
        if self.remap is not None and self.map is None:
            model = "" if self.model is None else f" --model {self.model}"
            raise SpecError(
                f"xmoverscore: remap={self.remap!r} needs a map for the two languages. Learn one: whyscore learn-map "
                f"-s src.txt -t tgt.txt{model} -o map.npz, and give it as map='map.npz'"
            )

    def _maps(self, encoder: Encoder) -> tuple[Apply | None, Apply | None]:
        if self.map is None:
            return None, None
        learned, kind = self._map()
        signature, name = _as_learned(encoder.signature(), learned), str(self.map)

        def mapped(rows: FloatMatrix) -> FloatMatrix:
            learned.check(name, signature, rows.shape[1])
            return learned.apply(rows, kind)

        return mapped, mapped if kind == "umd" and self.mode == "paper" else None

    def _map(self) -> tuple[LanguageMap, Kind]:
        path = Path(str(self.map)).expanduser()
        learned = _read(path, path.stat().st_mtime_ns if path.is_file() else 0)
        return learned, self.remap or ("umd" if learned.projection is None else "clp")

    def _more_facts(self) -> dict[str, str]:
        if self.map is None:
            return {}
        learned, kind = self._map()
        return {"map": f"{kind}-{learned.digest}"}

    def _checked(self, segments: Sequence[Segment]) -> Sequence[Segment]:
        try:
            need_source(self.who, segments)
        except MissingInput as error:
            raise MissingInput(f"{error}, such as moverscore") from None
        return segments

    def _check_place(self, place: Place) -> None:
        if place.side is Side.REFERENCE:
            raise SpecError("xmoverscore does not read references: explain the hypothesis or the source")

    def _pairs(self, segment: Segment) -> list[Pair]:
        return [(segment.source or "", segment.hypothesis)]


def _as_learned(signature: Signature, learned: LanguageMap) -> Signature:
    """Return an encoder's signature by the name the map knows it by, if the weights are the same."""
    same = dict(signature.facts).get("rev") == learned.facts.get("rev", "")
    return Signature(learned.facts.get("model", signature.spec), signature.facts) if same else signature


@lru_cache(maxsize=8)
def _read(path: Path, _: int) -> LanguageMap:
    return read_map(path)
