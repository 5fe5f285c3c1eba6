"""Language models: a masker that asks one for words in a hidden place, and how probable a text is to one.

Infilling:

1. A masked model reads the whole text with its mask token in the place of the word; a causal one reads what stands
   before the word.
2. All places of all texts are asked together: equal questions once, sorted by length, in batches of bounded size.
3. Candidates are the pieces of the vocabulary that are words by themselves: those the tokenizer gives back, alone, for
   a blank and their text. Probabilities are the softmax over the whole vocabulary, in float64.
4. Which candidates are kept, and with what weight, is decided as for all infill maskers (`whyscore.text.infill`).

Texts longer than the model can read are read in a window around the place. Weights are loaded from safetensors alone
and no code of a model repository is run. torch and transformers are imported at the first use.

Log-probability of a text under a causal model:

1. The text is read after the model's start token, so that a text of one piece has a value too.
2. The value is the mean over the pieces of log p(piece | start, pieces before it), in float64; one mean, once.
3. A text without pieces has the log-probability of ending at once, log p(end | start).

Texts are read without outer white space, each distinct one once; those too long are cut, counted and told.
"""

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray

from whyscore.errors import MissingExtra, SpecError
from whyscore.models.checkpoints import (
    NETWORKS,
    ModelLocation,
    Precision,
    coder_of,
    config_of,
    licence_of,
    package,
    quiet,
    ready,
    refuse,
    revision,
    warn_of,
    weights_of,
)
from whyscore.models.heads import widened
from whyscore.models.pairs import Coder, Cuts, Row, as_tensors, in_batches, positions
from whyscore.protocols import Probes
from whyscore.settings import check_fields
from whyscore.text.infill import Candidates, Choice, Hidden, Mode, check_choice, render
from whyscore.text.maskers import Asked
from whyscore.types import FloatMatrix, Words

if TYPE_CHECKING:
    from torch.nn import Module


Kind = Literal["masked", "causal"]

_ENDINGS: dict[str, Kind] = {"ForMaskedLM": "masked", "ForCausalLM": "causal", "LMHeadModel": "causal"}
_CLASSES: dict[Kind, str] = {"masked": "AutoModelForMaskedLM", "causal": "AutoModelForCausalLM"}
# Tokenizers without a limit of their own report 1e30.
_NO_LIMIT = 1_000_000
_USUAL_LIMIT = 512


@dataclass(frozen=True, slots=True)
class InfillModel:
    """Hides a word behind words that a language model of transformers finds probable there.

    `model` is a local folder, a hub name or name@revision; `kind` is read from its configuration unless given.
    `batch` bounds the pieces, padding counted, that are computed at once.
    """

    model: str
    kind: Literal["auto", "masked", "causal"] = "auto"
    threshold: float = 1e-4
    top: int | None = None
    mode: Mode = "default"
    draws: int = 10
    device: str = "cpu"
    batch: int = 8192

    def __post_init__(self) -> None:
        check_fields(self)
        check_choice("infill_model", self.threshold, self.top, self.draws)
        if self.batch < 1:
            raise SpecError(f"infill_model: batch is {self.batch!r}, expected 1 or more")

    def render(self, asked: Asked) -> list[Probes]:
        model = load(self.model, self.kind, self.device)
        choice = Choice(self.threshold, self.top, self.mode)

        def source(hidden: Hidden) -> Sequence[Candidates]:
            return model.candidates(hidden, choice, self.batch)

        return render(asked, source, self.draws)


class Question(NamedTuple):
    """Pieces to read, and the position whose prediction is wanted."""

    pieces: tuple[int, ...]
    at: int


IntegerMatrix = NDArray[np.int64]

Predict = Callable[[IntegerMatrix, IntegerMatrix, Sequence[int]], FloatMatrix]
"""Padded pieces, which of them are real, the positions asked -> probabilities, questions x vocabulary."""


class Coded(TypedDict):
    """Texts as pieces: their numbers, and where asked for their spans and which of them are special."""

    input_ids: list[list[int]]
    offset_mapping: list[list[tuple[int, int]]]
    special_tokens_mask: list[list[int]]


class Tokenizer(Protocol):
    """What is used of a fast tokenizer of transformers."""

    is_fast: bool
    model_max_length: int
    mask_token: str | None
    mask_token_id: int | None
    pad_token_id: int | None
    bos_token_id: int | None
    eos_token_id: int | None
    all_special_ids: list[int]

    def __len__(self) -> int:
        """Return the size of the vocabulary."""

    def __call__(self, texts: list[str], **options: object) -> Coded:
        """Return the pieces of each text."""

    def decode(self, pieces: list[int]) -> str:
        """Return the text of pieces."""


class LanguageModel:
    """A tokenizer and a network that says which piece comes at a place."""

    def __init__(self, name: str, tokenizer: Tokenizer, predict: Predict, kind: Kind, positions: int | None) -> None:
        if not tokenizer.is_fast:
            raise SpecError(f"infill_model: {name!r} has no fast tokenizer, which is needed to find places in texts")
        self._name, self._tokenizer, self._predict, self._kind = name, tokenizer, predict, kind
        self._words, self._texts = _words_of(tokenizer)
        self._limit = _limit(tokenizer, positions)

    def candidates(self, hidden: Hidden, choice: Choice, batch: int) -> list[Candidates]:
        """Return the candidates for each hidden word."""
        asked = self._masked(hidden) if self._kind == "masked" else self._causal(hidden)
        found: dict[Question, Candidates] = {}
        for questions in _batches(dict.fromkeys(asked), batch):
            pieces, real = _padded(questions, self._tokenizer.pad_token_id or 0)
            rows = self._predict(pieces, real, [question.at for question in questions])[:, self._words]
            for question, row in zip(questions, rows, strict=True):
                found[question] = choice.of(self._texts, row)
        return [found[question] for question in asked]

    def _masked(self, hidden: Hidden) -> list[Question]:
        """Return the texts with the mask token in the place of each word."""
        mask, number = self._tokenizer.mask_token, self._tokenizer.mask_token_id
        if mask is None or number is None:
            raise SpecError(f"infill_model: {self._name!r} has no mask token; use kind='causal'")
        before, after = _frame(self._tokenizer)
        room = self._limit - len(before) - len(after)
        starts = [words.spans[word][0] for words, word in hidden]
        texts = [_replaced(words, word, mask) for words, word in hidden]
        coded = self._tokenizer(texts, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        result = []
        for pieces, offsets, start in zip(coded["input_ids"], coded["offset_mapping"], starts, strict=True):
            spot = _spot(pieces, offsets, number, start)
            first = max(0, min(spot - room // 2, len(pieces) - room))
            result.append(Question((*before, *pieces[first : first + room], *after), len(before) + spot - first))
        return result

    def _causal(self, hidden: Hidden) -> list[Question]:
        """Return what stands before each word; its last position predicts the word."""
        begin = self._tokenizer.bos_token_id
        begin = self._tokenizer.eos_token_id if begin is None else begin
        if begin is None:
            raise SpecError(f"infill_model: {self._name!r} has no token that begins a text; use a masked model")
        texts = [words.text[: words.spans[word][0]].rstrip() for words, word in hidden]
        coded = self._tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
        seen = [(begin, *pieces[max(0, len(pieces) - self._limit + 1) :]) for pieces in coded]
        return [Question(pieces, len(pieces) - 1) for pieces in seen]


@lru_cache(maxsize=2)
def load(name: str, kind: Literal["auto", "masked", "causal"], device: str) -> LanguageModel:
    """Return a loaded language model; the same one again for the same name."""
    transformers, torch = _package("transformers"), _package("torch")
    path, revision = _located(name)
    bars = transformers.utils.logging.is_progress_bar_enabled()
    transformers.utils.logging.disable_progress_bar()
    try:
        config = transformers.AutoConfig.from_pretrained(path, revision=revision)
        chosen = _kind(name, config.architectures or []) if kind == "auto" else kind
        tokenizer = transformers.AutoTokenizer.from_pretrained(path, revision=revision)
        network = getattr(transformers, _CLASSES[chosen]).from_pretrained(
            path, revision=revision, use_safetensors=True, dtype=torch.float32
        )
    except OSError as error:
        reason = str(error).strip().split("\n")[0]
        raise MissingExtra(
            f"the language model {name!r} cannot be loaded: {reason} Give the folder or the hub name of a model with "
            "safetensors weights"
        ) from error
    finally:
        if bars:
            transformers.utils.logging.enable_progress_bar()
    network = network.to(device).eval()

    def predict(pieces: IntegerMatrix, real: IntegerMatrix, at: Sequence[int]) -> FloatMatrix:
        with torch.inference_mode():
            asked = {"input_ids": torch.from_numpy(pieces), "attention_mask": torch.from_numpy(real)}
            logits = network(**{key: value.to(device) for key, value in asked.items()}).logits
            chosen = logits[torch.arange(len(at), device=device), torch.tensor(at, device=device)]
            result: FloatMatrix = chosen.double().softmax(dim=-1).cpu().numpy()
        return result

    return LanguageModel(name, tokenizer, predict, chosen, getattr(config, "max_position_embeddings", None))


def _package(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra.of("infill_model", "neural") from error


def _located(name: str) -> tuple[str, str | None]:
    """Return the path or hub name, and the revision if one is named.

    >>> _located("org/model@main")
    ('org/model', 'main')
    """
    if Path(name).exists() or "@" not in name:
        return name, None
    path, _, revision = name.rpartition("@")
    return path, revision


def _kind(name: str, architectures: Sequence[str]) -> Kind:
    for architecture in architectures:
        for ending, kind in _ENDINGS.items():
            if architecture.endswith(ending):
                return kind
    raise SpecError(
        f"infill_model: {name!r} is {', '.join(architectures) or 'of no known kind'}, not a language model; "
        "name another, or say kind='masked' or kind='causal'"
    )


def _words_of(tokenizer: Tokenizer) -> tuple[list[int], list[str]]:
    """Return the pieces that are words by themselves, and their texts."""
    special = set(tokenizer.all_special_ids)
    texts = {piece: tokenizer.decode([piece]).strip() for piece in range(len(tokenizer)) if piece not in special}
    alone = tokenizer([f" {text}" for text in texts.values()], add_special_tokens=False, verbose=False)["input_ids"]
    whole = [piece for piece, coded in zip(texts, alone, strict=True) if coded == [piece] and texts[piece]]
    return whole, [texts[piece] for piece in whole]


def _limit(tokenizer: Tokenizer, positions: int | None) -> int:
    """Return how many pieces can be read at once."""
    if tokenizer.model_max_length < _NO_LIMIT:
        return min(tokenizer.model_max_length, positions or _NO_LIMIT)
    # RoBERTa counts positions from the padding piece's number on, so as many are lost.
    lost = 0 if tokenizer.pad_token_id is None else tokenizer.pad_token_id + 1
    return _USUAL_LIMIT if positions is None else positions - lost


def _frame(tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """Return the special pieces that the tokenizer puts before and after a text."""
    coded = tokenizer(["a"], return_special_tokens_mask=True)
    pieces, special = coded["input_ids"][0], coded["special_tokens_mask"][0]
    inside = [number for number, flag in enumerate(special) if not flag]
    first, last = (inside[0], inside[-1] + 1) if inside else (len(pieces), len(pieces))
    return pieces[:first], pieces[last:]


def _replaced(words: Words, word: int, text: str) -> str:
    start, end = words.spans[word]
    return f"{words.text[:start]}{text}{words.text[end:]}"


def _spot(pieces: Sequence[int], offsets: Sequence[tuple[int, int]], mask: int, start: int) -> int:
    """Return the position of our mask, which need not be the only one in the text."""
    found = (
        position
        for position, (piece, (first, last)) in enumerate(zip(pieces, offsets, strict=True))
        if piece == mask and first <= start < last
    )
    return next(found)


def _batches(questions: Iterable[Question], size: int) -> Iterator[list[Question]]:
    """Yield the questions from short to long, in batches of at most `size` pieces with padding."""
    batch: list[Question] = []
    for question in sorted(questions, key=lambda question: (len(question.pieces), question)):
        if batch and len(question.pieces) * (len(batch) + 1) > size:
            yield batch
            batch = []
        batch.append(question)
    if batch:
        yield batch


def _padded(questions: Sequence[Question], filler: int) -> tuple[IntegerMatrix, IntegerMatrix]:
    """Return the pieces as one table, and which of them are real."""
    longest = max(len(question.pieces) for question in questions)
    pieces = np.full((len(questions), longest), filler, dtype=np.int64)
    real = np.zeros((len(questions), longest), dtype=np.int64)
    for row, question in enumerate(questions):
        pieces[row, : len(question.pieces)] = question.pieces
        real[row, : len(question.pieces)] = 1
    return pieces, real


WHO = "language model"

# Logits take the size of the vocabulary for every piece.
_BUDGET = 1024


@dataclass(frozen=True, eq=False)
class Causal:
    """A loaded causal language model."""

    coder: Coder
    network: "Module"
    start: int
    end: int
    limit: int
    device: str
    cuts: Cuts

    def means(self, texts: Sequence[str]) -> dict[str, float]:
        """Return the mean log-probability of each distinct text."""
        coded = self.coder.code(texts)
        room = self.limit - 1
        self.cuts.add(sum(len(found.ids) > room for found in coded.values()), len(coded))
        rows = [Row((self.start, *(found.ids[:room] or (self.end,))), 0) for found in coded.values()]

        def compute(batch: list[int]) -> list[float]:
            return self._computed([rows[number] for number in batch])

        values = in_batches([len(row.ids) for row in rows], _BUDGET, compute, WHO)
        return dict(zip(coded, values, strict=True))

    def _computed(self, rows: Sequence[Row]) -> list[float]:
        torch = importlib.import_module("torch")
        inputs = as_tensors(rows, self.coder.padding, self.device)
        with torch.inference_mode():
            logits = self.network(input_ids=inputs.ids, attention_mask=inputs.mask).logits[:, :-1]
            following = inputs.ids[:, 1:, None]
            values = widened(logits).log_softmax(-1).gather(2, following)[:, :, 0]
            real = inputs.mask[:, 1:]
            means: list[float] = ((values * real).sum(1) / real.sum(1)).cpu().tolist()
        return means


def revision_of(name: str) -> str:
    """Return what tells the weights of a language model from others."""
    home, weights = weights_of(name, NETWORKS[:1], WHO)
    return revision(home, [weights])


def load_text_model(name: str, device: str, precision: Precision) -> Causal:
    """Return a loaded model; the same one again for the same files and options."""
    home, weights = weights_of(name, NETWORKS[:1], WHO)
    return _load(home, weights, weights.stat().st_mtime_ns, device, precision)


@lru_cache(maxsize=1)
def _load(home: ModelLocation, weights: Path, _: int, device: str, precision: Precision) -> Causal:
    transformers, torch = package("transformers", WHO), package("torch", WHO)
    config = config_of(home, WHO)
    start = config.eos_token_id if config.bos_token_id is None else config.bos_token_id
    end = start if config.eos_token_id is None else config.eos_token_id
    if not isinstance(start, int) or not isinstance(end, int):
        raise SpecError(f"{WHO}: {home.name} names no token that begins a text; choose a causal model such as gpt2")
    try:
        with quiet():
            network, report = transformers.AutoModelForCausalLM.from_pretrained(
                home.folder, config=config, dtype=torch.float32, use_safetensors=True, output_loading_info=True
            )
    except ValueError as error:
        raise SpecError(f"{WHO}: {home.name} is a {config.model_type} model, expected a causal one, as gpt2") from error
    refuse(weights, sorted(report["missing_keys"]), [], {})
    warn_of(home.name, licence_of(home.name, home.folder))
    table = getattr(config, "max_position_embeddings", None)
    limit = positions(config.to_dict() | {"max_position_embeddings": table})
    network = ready(network, device, precision).eval()
    return Causal(coder_of(home, WHO), network, start, end, limit, device, Cuts(WHO, limit))
