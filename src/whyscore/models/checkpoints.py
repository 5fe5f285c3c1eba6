"""Checkpoints: where the files of a model are, and what is in them.

1. A model is a local folder, a hub name, or `name@revision`. Files of the hub are fetched by its own client, which
   honours HF_HUB_OFFLINE. A missing file is an error that names it and the command that fetches it.
2. Weights are safetensors where there are any, whole or in shards. A `.bin`, `.ckpt` or `.pth` file is read as tensors
   in plain containers and nothing else; what would run code is refused unless the caller trusts the file.
3. Weights that do not fit their network (missing, one too many, of another size) are errors with their names.
4. The revision is the hub's commit, or a digest of the weights of a local folder, and of the configuration and the
   tokenizer beside them.

No code of a model repository is ever run. torch and transformers are imported at the first use.

The licence of the weights is that of the front matter of the model's card (`README.md`), else that of a table of known
weights, looked up by the model's own name, else `unknown`.

Newer versions of transformers make up an empty tokenizer where a folder has none, which would read every text as
unknown pieces; so its files are asked for first.
"""

import contextlib
import hashlib
import importlib
import io
import json
import pickle
import re
import zipfile
from argparse import Namespace
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from whyscore.errors import DataError, MissingExtra, SpecError, need_package
from whyscore.models.linear import quantise, speed_up
from whyscore.models.pairs import Coder
from whyscore.models.tensors import SUFFIX, check_tensors
from whyscore.registry import spec_of
from whyscore.settings import Precision
from whyscore.text.files import State, check_places, digest_file, read_once, state_of, whole
from whyscore.types import Signature
from whyscore.version import __version__

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from transformers import PretrainedConfig

import warnings

_FREE, _RESEARCH = "apache-2.0", "cc-by-nc-sa-4.0"

_KNOWN: dict[str, tuple[str, str]] = {
    "wmt22-comet-da": ("Unbabel", _FREE),
    "wmt20-comet-qe-da": ("Unbabel", _FREE),
    "wmt22-cometkiwi-da": ("Unbabel", _RESEARCH),
    "wmt23-cometkiwi-da-xl": ("Unbabel", _RESEARCH),
    "wmt23-cometkiwi-da-xxl": ("Unbabel", _RESEARCH),
    "unite-mup": ("Unbabel", _FREE),
    "wmt22-unite-da": ("Unbabel", _RESEARCH),
    "unite-xl": ("Unbabel", _RESEARCH),
    "unite-xxl": ("Unbabel", _RESEARCH),
    "xcomet-xl": ("Unbabel", _RESEARCH),
    "xcomet-xxl": ("Unbabel", _RESEARCH),
    "bart-large-cnn": ("facebook", "mit"),
}

_FRONT = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_ALIASES = 10
"""Aliases that a YAML document may hold: each of them may double what it stands for."""
_NON_COMMERCIAL = re.compile(r"(?:^|[-_ ])nc(?:[-_ ]|$)|non-?commercial", re.IGNORECASE)


class LicenceWarning(UserWarning):
    """The weights of a model may not be used for everything."""


def licence_of(name: str, folder: Path) -> str:
    """Return the licence of a model's weights, as its card or the table names it, or `unknown`."""
    card = folder / "README.md"
    return (_read_licence(card) if card.is_file() else None) or _entry(_short(name))[1] or "unknown"


def owner_of(short: str) -> str | None:
    """Return who publishes a model of this short name on the hub, as far as known."""
    return _entry(short)[0]


def warn_of(name: str, licence: str) -> None:
    """Warn where a licence forbids commercial use."""
    if _NON_COMMERCIAL.search(licence):
        message = f"the weights of {name} are licensed {licence}: they are for non-commercial use only"
        warnings.warn(message, LicenceWarning, stacklevel=2)


def _short(name: str) -> str:
    return Path(name.partition("@")[0]).name


def _entry(short: str) -> tuple[str | None, str | None]:
    return _KNOWN.get(short.casefold(), (None, None))


@read_once(64)
def _read_licence(card: Path) -> str | None:
    """Return what the front matter of a card says; a card without one says nothing."""
    front = front_matter(card) or ""
    stated = _value(front, "license")
    # Cards of the hub write `other` and put the name of the licence beside it.
    named = _value(front, "license_name") if stated == "other" else None
    return named or stated


def front_matter(card: Path) -> str | None:
    """Return the YAML at the top of a model card, or None where there is none."""
    match = _FRONT.match(card.read_text("utf-8", errors="replace"))
    return match[1] if match else None


def _value(front: str, key: str) -> str | None:
    r"""Return the text, or the texts of the list, that a key of the front matter has.

    >>> _value("license:\n- mit\n- gpl\ntags: []", "license")
    'mit, gpl'
    """
    match = re.search(rf"^{key}:[ \t]*(\S.*)?((?:\n[ \t]*-.*)*)", front, re.MULTILINE)
    if not match:
        return None
    parts = [match[1] or "", *(line.strip().removeprefix("-") for line in match[2].splitlines())]
    return ", ".join(part.strip().strip("'\"").lower() for part in parts if part.strip()) or None


# In int8, linear layers multiply integers and all else is float32.
_TYPES: dict[Precision, str] = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "int8": "float32"}

SMALL = ("*.json", "*.model", "*.txt", "README.md")
"""What the hub is asked for besides weights: configuration, tokenizer, card."""

_READ = (*SMALL, "*.yaml", "*.safetensors", "*.bin", "vocab*", "*.spm")
"""What networks and tokenizers are read from."""

NETWORKS = (
    ("model.safetensors", "model.safetensors.index.json"),
    ("pytorch_model.bin", "pytorch_model.bin.index.json"),
)
"""Where transformers keeps weights, better formats first: whole, or in shards with an index."""

LEFTOVERS = ("pooler.", "position_ids")
"""Weights of encoders that no metric reads: a head of pre-training, and numbers that newer versions compute."""

_HUB_NAME = re.compile(r"[\w-][\w.-]*(/[\w.-]+)?(@[\w./-]+)?")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHOWN = 5
_INDEX = ".index.json"


# Trainers put their settings beside the weights, in dictionaries with attributes.
_HARMLESS: tuple[tuple[type, str], ...] = (
    (Namespace, "argparse.Namespace"),
    (OrderedDict, "pytorch_lightning.utilities.parsing.AttributeDict"),
    (OrderedDict, "lightning.pytorch.utilities.parsing.AttributeDict"),
    (OrderedDict, "lightning_fabric.utilities.data.AttributeDict"),
    (OrderedDict, "lightning.fabric.utilities.data.AttributeDict"),
)


class ModelRequest(NamedTuple):
    """Which model is wanted, and how it computes."""

    model: str
    device: str
    precision: Precision
    allow_pickle: bool


class ModelLocation(NamedTuple):
    """Where the files of a model are, and the name it was asked for by."""

    name: str
    folder: Path
    hub: bool
    """Whether the folder is the hub's own copy."""


def package(name: str, who: str) -> ModuleType:
    """Return a package that only some installations have."""
    with need_package(MissingExtra.of(who, "neural")):
        return importlib.import_module(name)


def find(name: str, patterns: Sequence[str], who: str) -> ModelLocation:
    """Return where a model is, fetching the files that fit the patterns from the hub if it is no local folder."""
    local = Path(name).expanduser()
    if local.is_dir():
        return ModelLocation(name, local, hub=False)
    if not _HUB_NAME.fullmatch(name):
        raise MissingExtra(f"{who}: no folder {name}. {_fetch(name, '')}")
    try:
        return ModelLocation(name, _fetch_folder(name, tuple(patterns), who), hub=True)
    except (OSError, ValueError) as error:
        raise _not_fetched(name, patterns, error, who) from error


@lru_cache(maxsize=256)
def _fetch_folder(name: str, patterns: tuple[str, ...], who: str) -> Path:
    """Return the hub's folder, asked for once per process: even without news an answer takes a while."""
    repository, _, revision = name.partition("@")
    hub = package("huggingface_hub", who)
    return Path(hub.snapshot_download(repository, revision=revision or None, allow_patterns=list(patterns)))


def need(home: ModelLocation, files: Sequence[str], who: str) -> Path:
    """Return the first of these files that is there; none is an error with the command that fetches the first."""
    for file in files:
        if (home.folder / file).is_file():
            return home.folder / file
    tried = " or ".join(files)
    raise MissingExtra(f"{who}: {home.folder} has no {tried}. {_fetch(home.name, files[0])}")


def weights_of(name: str, groups: Sequence[Sequence[str]], who: str) -> tuple[ModelLocation, Path]:
    """Return the weights of a model: the file, or the index of the shards; worse formats are fetched only at need."""
    for group in groups:
        home = find(name, [*SMALL, *group, *(pattern for file in group for pattern in _shards(file))], who)
        for file in group:
            if (home.folder / file).is_file():
                return home, home.folder / file
    return home, need(home, [file for group in groups for file in group], who)


def read(path: Path, who: str, *, allow_pickle: bool = False) -> dict[str, "Tensor"]:
    """Return the weights of a file, or of all shards of an index, by name."""
    if path.name.endswith(_INDEX):
        return {key: value for part in parts_of(path) for key, value in _read(part, who, trusted=allow_pickle).items()}
    return _read(path, who, trusted=allow_pickle)


def hyper_parameters(path: Path) -> dict[str, object]:
    """Return the settings that a trainer stored beside the weights; none where the format has no place for them.

    No tensor is read, and nothing of the file is run: what is no plain value becomes an empty stand-in.
    """
    try:
        if not zipfile.is_zipfile(path):
            return {}
        pickled = _read_entry(path, "/data.pkl")
        check_places(pickled)
        content = _PlainValues(io.BytesIO(pickled)).load()
    except Exception as error:
        # A damaged pickle raises whatever its instructions happen to run into.
        raise DataError(f"is damaged: {_first_line(error)}", file=str(path)) from error
    stored = content.get("hyper_parameters") if isinstance(content, Mapping) else None
    return dict(stored) if isinstance(stored, Mapping) else {}


def _read_entry(path: Path, ending: str) -> bytes:
    """Return the one entry of an archive whose name ends so; torch packs none, so each is smaller than the file."""
    with zipfile.ZipFile(path) as archive:
        (entry,) = (entry for entry in archive.infolist() if entry.filename.endswith(ending))
        if entry.file_size > path.stat().st_size:
            raise ValueError(f"{entry.filename} has {entry.file_size} bytes, more than the file")
        return archive.read(entry)


class _StandIn(dict[object, object]):
    """What a pickled file gets for everything that is no plain value: a dictionary that ignores its past."""

    __hash__ = object.__hash__  # type: ignore[assignment] # it may be a key of another one

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__()

    def __setstate__(self, _: object) -> None:
        """Ignore what a pickled object remembers."""

    def append(self, _: object) -> None:
        """Ignore what a pickled list of another kind holds."""

    def extend(self, _: object) -> None:
        """Ignore what a pickled list of another kind holds."""


class _PlainValues(pickle.Unpickler):
    """Reads numbers, texts, lists and dictionaries of a pickled file, and no class or function that it names."""

    def find_class(self, _: str, __: str) -> type:
        return _StandIn

    def persistent_load(self, _: object) -> None:
        return None


def parts_of(path: Path) -> list[Path]:
    """Return the files that hold the weights: the file itself, or the shards that an index names."""
    if not path.name.endswith(_INDEX):
        return [path]
    named = read_json(path).get("weight_map")
    if not isinstance(named, dict):
        raise DataError(f"expected weight_map, the shard of each weight, found {named!r}", file=str(path))
    astray = [part for part in named.values() if not (isinstance(part, str) and part and Path(part).name == part)]
    if astray:
        raise DataError(f"expected names of files beside it in weight_map, found {astray[0]!r}", file=str(path))
    parts = [path.parent / part for part in sorted(set(named.values()))]
    missing = [part.name for part in parts if not _there(part)]
    if missing:
        raise DataError(f"names {missing[0]!r}, which is not beside it: fetch the whole folder again", file=str(path))
    return parts


def _there(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # no name of a file
        return False


def _read(path: Path, who: str, *, trusted: bool) -> dict[str, "Tensor"]:
    if path.suffix == SUFFIX:
        check_tensors([path])
        errors = package("safetensors", who).SafetensorError
        try:
            loaded: dict[str, Tensor] = package("safetensors.torch", who).load_file(path)
        except (errors, OSError, ValueError, RuntimeError) as error:
            raise DataError(f"is damaged or cut off: {_first_line(error)}; fetch it again", file=str(path)) from error
        return loaded
    return _tensors(_unpickle(path, who, trusted=trusted), path, who)


def read_json(path: Path) -> dict[str, object]:
    """Return a JSON object."""
    try:
        content = json.loads(path.read_text("utf-8"), parse_int=whole)
    except (ValueError, RecursionError) as error:
        raise DataError(f"is not JSON: {error}", file=str(path)) from error
    if not isinstance(content, dict):
        raise DataError(f"expected a JSON object, found {type(content).__name__}", file=str(path))
    return content


def read_yaml(text: str, who: str) -> object:
    """Return the plain values of a YAML document; a document of anything else raises a ValueError."""
    yaml = package("yaml", who)

    class Loader(yaml.SafeLoader):  # type: ignore[misc, name-defined]
        aliases = 0

        def compose_node(self, parent: object, index: object) -> object:
            self.aliases += self.check_event(yaml.AliasEvent)
            if self.aliases > _ALIASES:
                raise ValueError(f"more than {_ALIASES} aliases")
            return super().compose_node(parent, index)

    try:
        return Loader(text).get_single_data()
    except Exception as error:
        # A tagged value (`!!int ''`, `!!timestamp x`) raises whatever the constructor of its kind runs into.
        raise ValueError(_first_line(error)) from error


def refuse(where: Path, missing: Sequence[str], unexpected: Sequence[str], sizes: Mapping[str, str]) -> None:
    """Raise an error that names the weights that do not fit, if there are any."""
    problems = [f"missing {_list_some(missing)}"] if missing else []
    problems += [f"unexpected {_list_some(unexpected)}"] if unexpected else []
    problems += (
        [f"of another size {_list_some([f'{key} {size}' for key, size in sorted(sizes.items())])}"] if sizes else []
    )
    if problems:
        raise DataError(f"the weights do not fit the model: {'; '.join(problems)}", file=str(where))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers from printing while weights are loaded: what it would say becomes an error of ours."""
    logging = importlib.import_module("transformers").utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def ready(network: "Module", device: str, precision: Precision) -> "Module":
    """Return the network on its device, in the precision asked for."""
    if precision == "int8" and device != "cpu":
        raise SpecError(f"precision='int8' runs on the processor alone, got device={device!r}; use bf16 there")
    moved: Module = network.to(device=device, dtype=getattr(importlib.import_module("torch"), _TYPES[precision]))
    speed_up(moved)
    if precision == "int8":
        quantise(moved)
    return moved


def device_of(name: str, who: str) -> str:
    """Return the device a name stands for: `auto` is the first GPU, else the processor."""
    torch = package("torch", who)
    if name == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = _first_line(error)
        raise SpecError(f"{who}: cannot use the device {name!r} ({reason}); say auto, cpu, cuda or mps") from error
    return name


def revision(home: ModelLocation, files: Sequence[Path]) -> str:
    """Return what tells these weights from others: the hub's commit, or a digest of the files."""
    if home.hub and _COMMIT.fullmatch(home.folder.name):
        return home.folder.name[:12]
    parts = [part for path in files for part in parts_of(path)]
    if Path(home.name).expanduser().is_dir():
        settings = {file for pattern in (*SMALL, "*.yaml") for file in home.folder.glob(pattern)}
        parts += sorted(file for file in settings if file.suffix != ".md" and file not in parts)
    return hashlib.blake2b(b"".join(map(digest_file, parts)), digest_size=6).hexdigest()


def state_of_model(folder: str | Path) -> State | None:
    """Return what changes when a file does that a model is read from; None where there is no such folder.

    Logs and the like do not count; a folder inside does where it has a configuration, as modules of a model have.
    """
    place = Path(folder).expanduser()
    modules = {place, *(file.parent for file in place.rglob("config.json"))}
    files = {file for module in modules for pattern in _READ for file in module.glob(pattern)}
    return tuple((str(file), state_of(file)) for file in sorted(files)) or None


def _shards(file: str) -> tuple[str, ...]:
    stem, _, ending = file.partition(".")
    return (f"{stem}-*-of-*.{ending.removesuffix(_INDEX)}",) if file.endswith(_INDEX) else ()


def _fetch(name: str, file: str) -> str:
    """Return the command that brings a file where it was looked for."""
    local = not _HUB_NAME.fullmatch(name) or Path(name).is_dir()
    short = Path(name).name or name
    repository = f"{owner_of(short) or 'OWNER'}/{short}" if local else name.partition("@")[0]
    command = " ".join(part for part in ("hf download", repository, file) if part)
    return f"Fetch it with: {command}{f' --local-dir {name}' if local else ''}"


def _not_fetched(name: str, patterns: Sequence[str], error: Exception, who: str) -> MissingExtra:
    reason = _first_line(error)
    if type(error).__name__ == "GatedRepoError":
        page = f"https://huggingface.co/{name.partition('@')[0]}"
        return MissingExtra(f"{who}: {name} is gated. Accept the licence at {page} and log in with: hf auth login")
    missing = next((pattern for pattern in patterns if pattern not in SMALL), patterns[0])
    reason = reason.removeprefix("Got: ").rstrip(".")
    return MissingExtra(f"{who}: cannot download {missing} of {name} ({reason}). {_fetch(name, '')}")


def _unpickle(path: Path, who: str, *, trusted: bool) -> object:
    torch = package("torch", who)
    if trusted:
        return torch.load(path, map_location="cpu", weights_only=False)
    try:
        with torch.serialization.safe_globals(list(_HARMLESS)):
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        match = re.search(r"GLOBAL ([\w.]+)", str(error))
        what = f"it needs {match[1]}" if match else "it holds more than tensors"
        raise DataError(
            f"is not read, as it could run code while loading: {what}. Convert it to safetensors, or say "
            "allow_pickle=True if you trust whoever made it",
            file=str(path),
        ) from error
    except Exception as error:
        # A damaged pickle raises whatever its instructions happen to run into.
        raise DataError(f"is damaged: {_first_line(error)}", file=str(path)) from error


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _tensors(content: object, path: Path, who: str) -> dict[str, "Tensor"]:
    """Return the named tensors of a file: it holds them directly, or under `state_dict` as trainers write it."""
    torch = package("torch", who)
    inner = content.get("state_dict", content) if isinstance(content, Mapping) else content
    if not isinstance(inner, Mapping) or not all(isinstance(value, torch.Tensor) for value in inner.values()):
        raise DataError("holds no weights by name (a state dict)", file=str(path))
    return dict(inner)


def _list_some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


VOCABULARIES = ("tokenizer.json", "sentencepiece.bpe.model", "spiece.model", "vocab.json", "vocab.txt")


def load_pretrained(kind: str, name: str | Path, who: str, **options: object) -> Any:  # noqa: ANN401 - `kind` decides
    """Return what a class of transformers reads; code that a model brings is refused, without asking the user."""
    reader = getattr(package("transformers", who), kind)
    return reader.from_pretrained(name, trust_remote_code=False, **options)


def config_of(home: ModelLocation, who: str, kind: str = "AutoConfig") -> "PretrainedConfig":
    """Return the configuration of a model; `kind` is the class of transformers that reads it."""
    need(home, ["config.json"], who)
    try:
        with quiet():
            config: PretrainedConfig = load_pretrained(kind, home.folder, who)
    except (OSError, ValueError) as error:
        raise _unreadable("config.json", home, error, who) from error
    return config


def coder_of(home: ModelLocation, who: str) -> Coder:
    """Return the tokenizer of a model."""
    file = need(home, VOCABULARIES, who)
    try:
        with quiet():
            tokenizer = load_pretrained("AutoTokenizer", home.folder, who)
    except Exception as error:
        # The tokenizers package raises bare exceptions for files it cannot read.
        raise _unreadable(file.name, home, error, who) from error
    return Coder(tokenizer, who)


class Weights(NamedTuple):
    """Tensors by name, the file they come from, and what stood before the names there."""

    tensors: Mapping[str, "Tensor"]
    file: Path
    prefix: str = ""


def build_network(  # noqa: D417 - `options` go to the network's class as they are
    network: Callable[..., object],
    config: object,
    weights: Weights,
    home: ModelLocation,
    request: ModelRequest,
    **options: object,
) -> "Module":
    """Return a network of a class of transformers with exactly these weights, leftovers aside, in evaluation mode.

    A licence that forbids commercial use is told.

    Args:
        network: The class.
        config: Its configuration.
        weights: Named as the class names them.
        home: The model they belong to.
        request: Where it computes, and in which precision.
    """
    _, where, prefix = weights
    with quiet():
        loaded, report = network.from_pretrained(  # type: ignore[attr-defined]
            None,
            config=config,
            state_dict=dict(weights.tensors),
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **options,
        )
    sizes = {entry[0]: f"{tuple(entry[1])} instead of {tuple(entry[2])}" for entry in report["mismatched_keys"]}
    missing = sorted(f"{prefix}{key}" for key in report["missing_keys"] if key not in sizes)
    others = [key for key in report["unexpected_keys"] if not any(part in key for part in LEFTOVERS)]
    unexpected = sorted(f"{prefix}{key}" for key in others)
    refuse(where, missing, unexpected, {f"{prefix}{key}": size for key, size in sizes.items()})
    warn_of(home.name, licence_of(home.name, home.folder))
    return ready(loaded.eval(), request.device, request.precision)


def _unreadable(file: str, home: ModelLocation, error: Exception, who: str) -> MissingExtra:
    reason = _first_line(error)
    cure = "Fetch it again, or install the package it asks for; models that bring their own code are not run"
    return MissingExtra(f"{who}: {home.folder / file} cannot be read: {reason} {cure}")


def model_signature(
    metric: object, home: ModelLocation, files: Sequence[Path], *, precision: Precision, limit: int, **facts: str
) -> Signature:
    """Return the spec of a metric with the model's revision, precision, limit and licence.

    `trunc` is the number of pieces after which inputs are cut; `facts` stand between it and the licence.
    """
    beginning = {"rev": revision(home, files), "prec": precision, "trunc": str(limit), **facts}
    ending = {"licence": licence_of(home.name, home.folder), "version": __version__}
    return Signature(spec_of(metric), tuple((beginning | ending).items()))
