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
Causal models are folders of transformers or GGUF files (`whyscore.models.gguf`).
"""

import contextlib
import copy
import importlib
import inspect
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np

from whyscore.errors import DataError, MissingExtra, SpecError
from whyscore.models import gguf
from whyscore.models.checkpoints import (
    NETWORKS,
    ModelLocation,
    coder_of,
    config_of,
    licence_of,
    load_pretrained,
    package,
    parts_of,
    quiet,
    ready,
    refuse,
    revision,
    warn_of,
    weights_of,
)
from whyscore.models.heads import widen
from whyscore.models.pairs import Coded as PiecedText
from whyscore.models.pairs import Coder, Cuts, Inputs, Row, Tokenizer, as_tensors, budget_of, in_batches, positions
from whyscore.models.tensors import SUFFIX, check_tensors
from whyscore.protocols import Probes
from whyscore.settings import Precision, check_fields
from whyscore.text.files import read_once
from whyscore.text.infill import Candidates, Choice, Hidden, Mode, check_choice, render
from whyscore.text.maskers import MaskedTexts
from whyscore.types import FloatMatrix, FloatVector, Words

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from transformers import DynamicCache, PretrainedConfig


Kind = Literal["masked", "causal"]
INFILL = "infill_model"

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

    def render(self, texts: MaskedTexts) -> list[Probes]:
        model = load(self.model, self.kind, self.device)
        choice = Choice(self.threshold, self.top, self.mode)

        def source(hidden: Hidden) -> Sequence[Candidates]:
            return model.candidates(hidden, choice, self.batch)

        return render(texts, source, self.draws)


class Question(NamedTuple):
    """Pieces to read, and the position whose prediction is wanted."""

    pieces: tuple[int, ...]
    at: int


Predict = Callable[[Sequence[Question]], FloatMatrix]
"""Questions -> probabilities, questions x vocabulary."""


class Vocabulary(Tokenizer, Protocol):
    """What is used of a tokenizer besides its pieces."""

    model_max_length: int
    mask_token: str | None
    mask_token_id: int | None
    bos_token_id: int | None
    eos_token_id: int | None
    all_special_ids: list[int]

    def __len__(self) -> int:
        """Return the size of the vocabulary."""

    def decode(self, pieces: list[int]) -> str:
        """Return the text of pieces."""


class LanguageModel:
    """A tokenizer and a network that says which piece comes at a place."""

    def __init__(self, name: str, tokenizer: Vocabulary, predict: Predict, kind: Kind, positions: int | None) -> None:
        self._coder = Coder(tokenizer, f"{INFILL}: {name!r}")
        self._name, self._tokenizer, self._predict, self._kind = name, tokenizer, predict, kind
        self._words, self._texts = _words_of(tokenizer, self._coder)
        self._limit = _limit(tokenizer, positions)

    def candidates(self, hidden: Hidden, choice: Choice, batch: int) -> list[Candidates]:
        """Return the candidates for each hidden word."""
        requests = self._mask(hidden) if self._kind == "masked" else self._causal(hidden)
        questions = list(dict.fromkeys(requests))

        def compute(numbers: list[int]) -> list[Candidates]:
            rows = self._predict([questions[number] for number in numbers])[:, self._words]
            return [choice.of(self._texts, row) for row in rows]

        answers = in_batches([len(question.pieces) for question in questions], batch, compute, INFILL)
        answer_of = dict(zip(questions, answers, strict=True))
        return [answer_of[question] for question in requests]

    def _mask(self, hidden: Hidden) -> list[Question]:
        """Return the texts with the mask token in the place of each word."""
        mask, number = self._tokenizer.mask_token, self._tokenizer.mask_token_id
        if mask is None or number is None:
            raise SpecError(f"infill_model: {self._name!r} has no mask token; use kind='causal'")
        before, after = self._coder.frame.before, self._coder.frame.after
        room = self._limit - len(before) - len(after)
        starts = [words.spans[word][0] for words, word in hidden]
        texts = [_replace_word(words, word, mask) for words, word in hidden]
        coded = self._coder.code(texts, strip=False)
        result = []
        for text, start in zip(texts, starts, strict=True):
            pieces, spans, _ = coded[text]
            spot = _spot(pieces, spans, number, start)
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
        coded = self._coder.code(texts, strip=False)
        seen = [(begin, *coded[text].ids[max(0, len(coded[text].ids) - self._limit + 1) :]) for text in texts]
        return [Question(pieces, len(pieces) - 1) for pieces in seen]


@read_once(2)
def load(name: str, kind: Literal["auto", "masked", "causal"], device: str) -> LanguageModel:
    """Return a loaded language model; the same one again for the same name."""
    package("transformers", INFILL)
    torch = package("torch", INFILL)
    path, _, named = name.rpartition("@") if "@" in name and not Path(name).exists() else (name, "", "")
    check_tensors(Path(path).glob(f"*{SUFFIX}"))
    try:
        with quiet():
            config = load_pretrained("AutoConfig", path, INFILL, revision=named or None)
            model_kind = _kind(name, config.architectures or []) if kind == "auto" else kind
            tokenizer = load_pretrained("AutoTokenizer", path, INFILL, revision=named or None)
            network = load_pretrained(
                _CLASSES[model_kind],
                path,
                INFILL,
                revision=named or None,
                use_safetensors=True,
                dtype=torch.float32,
            )
    except SpecError:
        raise
    except Exception as error:
        # The tokenizers package raises bare exceptions for files it cannot read.
        reason = str(error).strip().split("\n")[0]
        raise MissingExtra(
            f"the language model {name!r} cannot be loaded: {reason} Give the folder or the hub name of a model with "
            "safetensors weights"
        ) from error
    network = network.to(device).eval()

    def predict(questions: Sequence[Question]) -> FloatMatrix:
        inputs = as_tensors([Row(question.pieces, 0) for question in questions], tokenizer.pad_token_id or 0, device)
        with torch.inference_mode():
            logits = network(input_ids=inputs.ids, attention_mask=inputs.mask).logits
            predictions = logits[list(range(len(questions))), [question.at for question in questions]]
            result: FloatMatrix = predictions.double().softmax(dim=-1).cpu().numpy()
        return result

    return LanguageModel(name, tokenizer, predict, model_kind, getattr(config, "max_position_embeddings", None))


def _kind(name: str, architectures: Sequence[str]) -> Kind:
    for architecture in architectures:
        for ending, kind in _ENDINGS.items():
            if architecture.endswith(ending):
                return kind
    raise SpecError(
        f"infill_model: {name!r} is {', '.join(architectures) or 'of no known kind'}, not a language model; "
        "name another, or say kind='masked' or kind='causal'"
    )


def _words_of(tokenizer: Vocabulary, coder: Coder) -> tuple[list[int], list[str]]:
    """Return the pieces that are words by themselves, and their texts."""
    special = set(tokenizer.all_special_ids)
    texts = {piece: tokenizer.decode([piece]).strip() for piece in range(len(tokenizer)) if piece not in special}
    alone = coder.code([f" {text}" for text in texts.values()], strip=False)
    whole = [piece for piece, text in texts.items() if text and alone[f" {text}"].ids == (piece,)]
    return whole, [texts[piece] for piece in whole]


def _limit(tokenizer: Vocabulary, positions: int | None) -> int:
    """Return how many pieces can be read at once."""
    if tokenizer.model_max_length < _NO_LIMIT:
        return min(tokenizer.model_max_length, positions or _NO_LIMIT)
    # RoBERTa counts positions from the padding piece's number on, so as many are lost.
    lost = 0 if tokenizer.pad_token_id is None else tokenizer.pad_token_id + 1
    return _USUAL_LIMIT if positions is None else positions - lost


def _replace_word(words: Words, word: int, text: str) -> str:
    start, end = words.spans[word]
    return f"{words.text[:start]}{text}{words.text[end:]}"


def _spot(pieces: Sequence[int], offsets: Sequence[tuple[int, int]], mask: int, start: int) -> int:
    """Return the position of our mask, which need not be the only one in the text."""
    positions = (
        position
        for position, (piece, (first, last)) in enumerate(zip(pieces, offsets, strict=True))
        if piece == mask and first <= start < last
    )
    return next(positions)


WHO = "language model"

_LOGITS = 2**28  # numbers: a batch has one for every piece of the vocabulary at every position
_WORTH = 16  # pieces that rows must have in common before they are read once for all
_SLICE = 256  # positions whose logits are held in float64 at a time


@dataclass(frozen=True, eq=False)
class Causal:
    """A loaded causal language model."""

    coder: Coder
    network: "Module"
    start: int
    end: int
    limit: int
    vocabulary: int
    device: str
    cuts: Cuts

    def means(self, texts: Sequence[str], *, begin: bool = True) -> dict[str, float]:
        """Return the mean log-probability of each distinct text, blanks at its ends left out.

        Without `begin`, the model is not told that a text begins there, and texts are read as they are: the mean is
        over the pieces after the first, and 0 where there are none.
        """
        coded = self.coder.code(texts, strip=begin)
        room = self.limit - int(begin)
        self.cuts.add(sum(len(text.ids) > room for text in coded.values()), len(coded))
        if begin:
            rows = {text: Row((self.start, *(coding.ids[:room] or (self.end,))), 1) for text, coding in coded.items()}
        else:
            rows = {text: Row(coding.ids[:room], 1) for text, coding in coded.items() if len(coding.ids) > 1}
        values = zip(rows, self.log_probabilities(list(rows.values())), strict=True)
        return dict.fromkeys(coded, 0.0) | {text: float(logs.mean()) for text, logs in values}

    def pieces(self, texts: Sequence[str]) -> dict[str, tuple[PiecedText, FloatVector]]:
        """Return the pieces of each distinct text, and the log-probability of those that are read."""
        coded = self.coder.code(texts)
        room = self.limit - 1
        self.cuts.add(sum(len(text.ids) > room for text in coded.values()), len(coded))
        rows = {text: Row((self.start, *coding.ids[:room]), 1) for text, coding in coded.items() if coding.ids}
        values = dict(zip(rows, self.log_probabilities(list(rows.values())), strict=True))
        return {text: (coding, values.get(text, np.zeros(0))) for text, coding in coded.items()}

    def log_probabilities(self, rows: Sequence[Row]) -> list[FloatVector]:
        """Return the log-probability of each piece after the first ones of its row, given all pieces before it.

        What all rows begin with, the examples of a prompt, is read once.
        """
        shared = _shared_start(rows)
        states = self._states(shared) if shared else None
        rest = [Row(row.ids[len(shared) :], row.first - len(shared)) for row in rows]

        def compute(batch: list[int]) -> list[FloatVector]:
            return self._compute([rest[number] for number in batch], len(shared), states)

        budget = min(budget_of(self.device), _LOGITS // self.vocabulary)
        return in_batches([len(row.ids) for row in rest], budget, compute, WHO)

    def _states(self, ids: Sequence[int]) -> "DynamicCache":
        """Return what the network keeps of a text that others follow."""
        torch, transformers = importlib.import_module("torch"), importlib.import_module("transformers")
        states: DynamicCache = transformers.DynamicCache(config=self.network.config)
        with torch.inference_mode():
            self._network(as_tensors([Row(tuple(ids), 0)], self.coder.padding, self.device), 1, states)
        return states

    def _compute(self, rows: Sequence[Row], shared: int, states: "DynamicCache | None") -> list[FloatVector]:
        torch = importlib.import_module("torch")
        inputs = as_tensors(rows, self.coder.padding, self.device)
        # Position k predicts piece k + 1; nothing is asked of those before the first wanted piece.
        first = min(row.first for row in rows)
        count = inputs.ids.shape[1] - first + 1
        scored = (inputs.mask * inputs.types)[:, first:].bool()
        read = inputs._replace(mask=torch.nn.functional.pad(inputs.mask, (shared, 0), value=1))
        with torch.inference_mode():
            logits = self._network(read, count, _repeat(states, len(rows)))[:, -count:-1][scored]
            values = _log_probability(logits, inputs.ids[:, first:][scored]).cpu().double()
        return [part.numpy() for part in torch.split(values, [len(row.ids) - row.first for row in rows])]

    def _network(self, inputs: Inputs, count: int, states: "DynamicCache | None") -> "Tensor":
        """Return the logits, of the last `count` positions alone where the network can leave out the others."""
        takes = inspect.signature(self.network.forward).parameters
        options: dict[str, object] = {"logits_to_keep": count} if "logits_to_keep" in takes else {}
        options |= {"use_cache": False} if states is None else {"use_cache": True, "past_key_values": states}
        logits: Tensor = self.network(input_ids=inputs.ids, attention_mask=inputs.mask, **options).logits
        return logits


def _shared_start(rows: Sequence[Row]) -> tuple[int, ...]:
    """Return what all rows begin with, short of the last piece before what is asked; nothing where it saves little."""
    if len(rows) <= 1:
        return ()
    low, high = min(row.ids for row in rows), max(row.ids for row in rows)
    most = min(row.first for row in rows) - 1
    same = next((k for k in range(most) if low[k] != high[k]), most)
    return low[:same] if same >= _WORTH else ()


def _repeat(states: "DynamicCache | None", times: int) -> "DynamicCache | None":
    """Return a copy for each row of a batch: networks write into what they are given."""
    if states is None:
        return None
    copies = copy.deepcopy(states)
    copies.batch_repeat_interleave(times)
    return copies


def _log_probability(logits: "Tensor", pieces: "Tensor") -> "Tensor":
    """Return the log-probability of one piece per row of logits."""
    torch = importlib.import_module("torch")
    parts = zip(torch.split(logits, _SLICE), torch.split(pieces, _SLICE), strict=True)
    values = [widen(part).log_softmax(-1).gather(1, ids[:, None])[:, 0] for part, ids in parts]
    result: Tensor = torch.cat(values)
    return result


def text_model_files(name: str) -> tuple[ModelLocation, Path]:
    """Return where a language model is, and its weights: a folder with safetensors, a hub name, or a GGUF file."""
    if not name.endswith(gguf.SUFFIX):
        return weights_of(name, NETWORKS[:1], WHO)
    path = Path(name).expanduser()
    if not path.is_file():
        command = f"hf download OWNER/NAME {path.name} --local-dir {path.parent}"
        raise MissingExtra(f"{WHO}: no file {name}. Fetch it with: {command}")
    return ModelLocation(name, path.parent, hub=False), path


def revision_of(name: str) -> str:
    """Return what tells the weights of a language model from others."""
    home, weights = text_model_files(name)
    return revision(home, [weights])


def text_limit_of(name: str) -> int:
    """Return how many pieces a language model reads, without loading it."""
    home, weights = text_model_files(name)
    if weights.suffix == gguf.SUFFIX:
        return gguf.limit_of(weights)
    return _limit_in(config_of(home, WHO))


def text_licence_of(name: str) -> str:
    """Return the licence of the weights of a language model, as far as it is known."""
    home, weights = text_model_files(name)
    named = gguf.licence_in(weights) if weights.suffix == gguf.SUFFIX else None
    return named or licence_of(home.name, home.folder)


def load_text_model(name: str, device: str, precision: Precision) -> Causal:
    """Return a loaded model; the same one again for the same files and options."""
    home, weights = text_model_files(name)
    return _load(weights, home, device, precision)


@read_once(1)
def _load(weights: Path, home: ModelLocation, device: str, precision: Precision) -> Causal:
    config, coder, network = _gguf_parts(weights) if weights.suffix == gguf.SUFFIX else _folder_parts(home, weights)
    start, end = _ends(config, home)
    warn_of(home.name, text_licence_of(home.name))
    limit, vocabulary = _limit_in(config), int(config.get_text_config().vocab_size)
    ready_network = ready(network, device, precision).eval()
    model = Causal(coder, ready_network, start, end, limit, vocabulary, device, Cuts(WHO, limit))
    if not _is_causal(model):
        raise _not_causal(home, config)
    return model


class _Parts(NamedTuple):
    config: "PretrainedConfig"
    coder: Coder
    network: "Module"


def _folder_parts(home: ModelLocation, weights: Path) -> _Parts:
    config = config_of(home, WHO)
    check_tensors(parts_of(weights))
    network = _network(home, weights, config, use_safetensors=True)
    return _Parts(config, coder_of(home, WHO), network)


def _gguf_parts(path: Path) -> _Parts:
    """Return the parts of a GGUF file; transformers turns the weights into plain numbers."""
    gguf.need_reader(WHO)
    gguf.header_of(path)
    home, options = ModelLocation(str(path), path.parent, hub=False), {"gguf_file": path.name}
    # The bar of the conversion has no switch of its own.
    with gguf.blame_file(path), quiet(), contextlib.redirect_stderr(io.StringIO()):
        config = load_pretrained("AutoConfig", home.folder, WHO, **options)
        coder = Coder(load_pretrained("AutoTokenizer", home.folder, WHO, **options), WHO)
        return _Parts(config, coder, _network(home, path, config, **options))


def _network(home: ModelLocation, weights: Path, config: "PretrainedConfig", **options: object) -> "Module":
    transformers, torch = package("transformers", WHO), package("torch", WHO)
    if type(config) not in transformers.MODEL_FOR_CAUSAL_LM_MAPPING or config.is_encoder_decoder:
        raise _not_causal(home, config)
    options |= {"config": config, "dtype": torch.float32}
    try:
        with quiet():
            network, report = load_pretrained(
                "AutoModelForCausalLM", home.folder, WHO, output_loading_info=True, **options
            )
    except (package("safetensors", WHO).SafetensorError, OSError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise DataError(f"is damaged, or not the weights of its configuration: {reason}", file=str(weights)) from error
    refuse(weights, sorted(report["missing_keys"]), [], {})
    loaded: Module = network
    return loaded


def _not_causal(home: ModelLocation, config: "PretrainedConfig") -> SpecError:
    return SpecError(f"{WHO}: {home.name} is a {config.model_type} model, expected a causal one, as gpt2")


def _ends(config: "PretrainedConfig", home: ModelLocation) -> tuple[int, int]:
    """Return the tokens that begin and end a text; where there is but one, it does both."""
    text_config = config.get_text_config()
    named = [
        token[0] if isinstance(token, list) else token for token in (text_config.bos_token_id, text_config.eos_token_id)
    ]
    tokens = [token for token in named if isinstance(token, int)]
    if not tokens:
        raise SpecError(f"{WHO}: {home.name} names no token that begins a text; choose a causal model such as gpt2")
    return tokens[0], tokens[-1]


def _limit_in(config: "PretrainedConfig") -> int:
    table = getattr(config.get_text_config(), "max_position_embeddings", None)
    return positions(config.to_dict() | {"max_position_embeddings": table})


def _is_causal(model: Causal) -> bool:
    """Return whether a prediction stays as it is when other pieces follow; encoders load as causal models, too."""
    others = [piece for piece in range(model.vocabulary) if piece != model.start][:2]
    rows = [Row((model.start, others[0], last), 1) for last in (others[0], others[-1])]
    first, second = (values[0] for values in model.log_probabilities(rows))
    return bool(np.isclose(first, second, rtol=1e-5, atol=1e-5))
