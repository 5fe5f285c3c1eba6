"""MetricX-23 and -24, after Juraska et al. (2023, 2024): mT5 as a regression model.

1. Segments become one string. MetricX-24: `source: .. candidate: .. reference: ..`, without the last part where no
   reference is read; MetricX-23: `candidate: .. reference: ..`, or `candidate: .. source: ..`.
2. The string is cut at 1 536 (23: 1 024) pieces; the end token is left out of each row before rows are padded.
3. The decoder takes one step from token 0. The logit of vocabulary number 250089 is the score, clipped to 0 .. 25:
   the errors a human annotator would count, so lower is better.

Only that one row of the output layer is computed. Several references are scored one by one; `references` says whether
their mean or the best one, the lowest, counts.
"""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, cast

import numpy as np

from whyscore.errors import DataError, SpecError
from whyscore.metrics.needs import need_inputs, present
from whyscore.models.checkpoints import (
    NETWORKS,
    SMALL,
    VOCABULARIES,
    ModelLocation,
    ModelRequest,
    Weights,
    build_network,
    coder_of,
    config_of,
    device_of,
    find,
    model_signature,
    package,
    read,
    read_json,
    weights_of,
)
from whyscore.models.pairs import Cuts, Row, TextNetwork, as_tensors
from whyscore.registry import runs_code
from whyscore.settings import Precision, check_fields
from whyscore.text.files import read_once
from whyscore.types import FloatVector, Inputs, Segment, Signature

if TYPE_CHECKING:
    from torch import Tensor

WHO = "metricx"
LIMITS = {23: 1024, 24: 1536}
WORST = 25.0
_OUTPUT = "lm_head.weight"


@dataclass(frozen=True, slots=True)
class MetricX:
    """Predicted errors, from 0 (none) to 25; lower is better.

    Args:
        model: local folder, hub name or name@revision.
        version: 23 or 24, which write their input differently.
        against: what the hypothesis is compared with; `reference` of version 24 reads the source as well. `auto` takes
            the source for models with `qe` in their name.
        references: whether the mean over several references counts or the best, the lowest.
        tokenizer: folder or hub name, for models that come without one.
        logit: number in the vocabulary whose logit is the score.
        device: auto, cpu, cuda, cuda:1, mps.
        precision: of the network.
        allow_pickle: read files that could run code while loading; only for files you trust.
    """

    model: str
    version: Literal[23, 24] = 24
    against: Literal["auto", "reference", "source"] = "auto"
    references: Literal["mean", "min"] = "mean"
    tokenizer: str = "google/mt5-small"
    logit: int = 250_089
    device: str = "auto"
    precision: Precision = "fp32"
    allow_pickle: bool = runs_code(default=False)

    higher_is_better: ClassVar[bool] = False
    original: ClassVar[str] = "google-research/metricx fc4978e"

    def __post_init__(self) -> None:
        check_fields(self)
        if self.logit < 0:
            raise SpecError(f"metricx: logit is {self.logit}, expected 0 or more")

    @property
    def inputs(self) -> Inputs:
        if not self._with_reference():
            return Inputs.HYPOTHESIS | Inputs.SOURCE
        source = Inputs.SOURCE if self.version == 24 else Inputs(0)  # noqa: PLR2004 - a version
        return Inputs.HYPOTHESIS | Inputs.REFERENCES | source

    def signature(self) -> Signature:
        home, weights = weights_of(self.model, NETWORKS, WHO)
        against = "reference" if self._with_reference() else "source"
        limit = LIMITS[self.version]
        return model_signature(self, home, [weights], precision=self.precision, limit=limit, against=against)

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        need_inputs(WHO, segments, self.inputs)
        inputs = [self.strings(segment) for segment in segments]
        request = ModelRequest(self.model, device_of(self.device, WHO), self.precision, self.allow_pickle)
        home, weights = weights_of(self.model, NETWORKS, WHO)
        model = _load(weights, home, request, self.tokenizer, self.logit, LIMITS[self.version])
        scores = model.scores([text for texts in inputs for text in texts])
        over = np.mean if self.references == "mean" else np.min
        return np.array([over([scores[text] for text in texts]) for texts in inputs], dtype=np.float64)

    def strings(self, segment: Segment) -> list[str]:
        """Return what the model reads, once per reference; outer white space of the texts is left out."""
        source, hypothesis = (segment.source or "").strip(), segment.hypothesis.strip()
        if self.version == 23:  # noqa: PLR2004 - a version
            before, named = f"candidate: {hypothesis}", f" source: {source}"
        else:
            before, named = f"source: {source} candidate: {hypothesis}", ""
        if not self._with_reference():
            return [f"{before}{named}"]
        return [f"{before} reference: {reference.strip()}" for reference in present(segment.references)]

    def _with_reference(self) -> bool:
        if self.against == "auto":
            return "qe" not in Path(self.model.partition("@")[0]).name.lower().split("-")
        return self.against == "reference"


@dataclass
class MetricXModel(TextNetwork):
    """A loaded model."""

    output: "Tensor"
    """The one row of the output layer that counts, scaled."""

    def scores(self, texts: Sequence[str]) -> dict[str, float]:
        coded = self.coder.code(texts, strip=False)
        # The limit counts the end token, which is then left out.
        room = self.limit - len(self.coder.frame.after)
        self.cuts.add(sum(len(text.ids) > room for text in coded.values()), len(coded))
        rows = [Row(text.ids[:room], 0) for text in coded.values()]
        return dict(zip(coded, self.compute_rows(rows, self._score_rows), strict=True))

    def _score_rows(self, rows: Sequence[Row]) -> list[float]:
        torch = importlib.import_module("torch")
        inputs = as_tensors(rows, self.coder.padding, self.device)
        with torch.inference_mode():
            state = self.network(
                input_ids=inputs.ids,
                attention_mask=inputs.mask,
                decoder_input_ids=torch.zeros((len(rows), 1), dtype=torch.long, device=self.device),
                use_cache=False,
                return_dict=True,
            ).last_hidden_state[:, 0]
            scores = (state.float() @ self.output).clamp(0.0, WORST)
        return cast("list[float]", scores.tolist())


@read_once(2)
def _load(  # noqa: PLR0917 - for this module alone
    path: Path, home: ModelLocation, request: ModelRequest, tokenizer: str, logit: int, limit: int
) -> MetricXModel:
    """Return a loaded model; the same one again for the same files and options."""
    transformers = package("transformers", WHO)
    # The class that the file names is of the publisher's own making, so that of mT5 is taken by name.
    config = config_of(home, WHO, "MT5Config")
    settings = read_json(home.folder / "config.json")
    has_vocabulary = any((home.folder / file).is_file() for file in VOCABULARIES)
    coder = coder_of(home if has_vocabulary else find(tokenizer, SMALL, WHO), WHO)
    weights = read(path, WHO, allow_pickle=request.allow_pickle)
    output = _row(weights, logit, path)
    inner = Weights({k: v for k, v in weights.items() if k != _OUTPUT}, path)
    network = build_network(transformers.MT5Model, config, inner, home, request)
    # mT5 has an output layer of its own; a shared one is scaled down, as in T5.
    scale = float(config.d_model**-0.5) if settings.get("tie_word_embeddings") else 1.0
    device = request.device
    return MetricXModel(coder, network, limit, device, Cuts(WHO, limit), scale * output.to(device))


def _row(weights: dict[str, "Tensor"], logit: int, path: Path) -> "Tensor":
    table = weights.get(_OUTPUT, weights.get("shared.weight"))
    if table is None:
        raise DataError(f"the weights do not fit the model: missing {_OUTPUT}", file=str(path))
    if logit >= len(table):
        raise SpecError(f"{WHO}: logit is {logit}, but the vocabulary of the model ends at {len(table) - 1}")
    return table[logit].float()
