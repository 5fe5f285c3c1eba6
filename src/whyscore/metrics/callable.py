"""Any Python function as a metric.

1. The function is given in Python, or named: `package.module:function`, `path/file.py:function`.
2. It takes one list of segments, or two lists of texts: hypotheses and first references (sources, where `reads` names
   the source and not the references). Which of the two is read off the number of its positional arguments without
   default: one or two. `takes` overrides that.
3. It returns one finite number per segment, as a list or an array; everything else is refused with what came.
4. A metric keeps the function that it began with. A file is loaded again for the next metric when it, or a module
   beside it that it imports, has changed. A module that was imported by its name stays what it was, as any import does.
5. Modules beside a file are imported from their text, whatever bytecode there is. Where the text of one that was
   imported before has changed or is not known (somebody else imported it first), all modules beside that the file
   imports are dropped from `sys.modules`, to be imported again; who holds the old ones keeps them. Nothing is dropped
   while texts stay the same, and never what the file does not import.
6. While a file is loaded or its function runs, the modules beside it are found without a path to them, and before those
   of the same names elsewhere, other than installed ones. So two versions of a metric can stand side by side.

Finds the function that a text such as `package.module:function` or `path/file.py:function` names.
"""

import codecs
import contextlib
import importlib
import importlib.util
import inspect
import io
import os
import sys
import threading
import traceback
import warnings
from collections.abc import Callable as AnyFunction
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from functools import lru_cache, reduce
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Literal, NamedTuple, NoReturn, TextIO
from weakref import WeakKeyDictionary

import numpy as np

from whyscore.errors import ContractError, SpecError, TextFailure, UnknownName, UserError
from whyscore.metrics.needs import need_references, need_source, quote_start
from whyscore.registry import format_value, runs_code, spec_of
from whyscore.settings import check_fields
from whyscore.text.sources import is_installed, read_sources
from whyscore.types import FloatVector, Inputs, Segment, Signature

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

Function = AnyFunction[..., object]


class Beside(NamedTuple):
    """The modules beside a file that it imports."""

    root: str = ""
    """The folder where they are found."""
    files: Mapping[str, str] = MappingProxyType({})
    """By their full names."""


class Found(NamedTuple):
    """A function with the digest of its file and what that imports; None where there is no file to read."""

    function: Function
    digest: str | None = None
    beside: Beside = Beside()


def find(target: str) -> Found:
    """Return the function that `target` names; every reason why it cannot be had is a user error."""
    place, colon, name = target.rpartition(":")
    if not (place and colon and name):
        raise SpecError(f"cannot read the function {target!r}: write package.module:function or path/file.py:function")
    if place.endswith(".py") or "/" in place or "\\" in place:
        path = Path(place)
        if not path.is_file():
            raise SpecError(f"no file {place!r} for the function {target!r}; the path counts from {Path.cwd()}")
        sources = read_sources(path.resolve())
        _forget_changed(sources.beside)
        files = {module: os.path.realpath(file) for module, file in sources.modules.items()}
        beside = Beside(str(sources.root), files)
        with _import_beside(beside):
            loaded = _from_file(str(path.resolve()), sources.digest)
        return Found(_attribute(loaded, place, name), sources.digest, beside)
    module = _from_name(place)
    return Found(_attribute(module, place, name), _digest_of_module(module))


_DIGESTS: WeakKeyDictionary[ModuleType, str] = WeakKeyDictionary()
"""What modules were when they were used first."""


def _digest_of_module(module: ModuleType) -> str | None:
    """Return the digest of the file that a module was imported from, as it was at first."""
    origin = inspect.getsourcefile(module) if getattr(module, "__file__", None) else None
    if origin is None:
        return None
    digest = read_sources(Path(origin).resolve()).digest
    first = _DIGESTS.setdefault(module, digest)
    if first != digest:
        warnings.warn(f"{origin} has changed since it was imported: start Python again to use it", stacklevel=2)
    return first


class _Uncached(SourceFileLoader):
    """Loads a file as it is: cached bytecode is known by a size and a second, which a change may leave as they are."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        content = self.get_data(path)
        file = os.path.realpath(path)
        if file in _BESIDE:
            if _BESIDE[file] not in (None, content):  # other modules may hold what they imported of the old text
                _forget_texts()
            _BESIDE[file] = content
        return self.source_to_code(content, path)

    def exec_module(self, module: ModuleType) -> None:
        for key, part in list(sys.modules.items()):  # modules of a package that was imported before
            package, _, name = key.rpartition(".")
            if package == module.__name__:
                setattr(module, name, part)
        super().exec_module(module)


_BESIDE: dict[str, bytes | None] = {}
"""The files beside metrics, with the text that a module was made of; None where it is not known, or may be outdated."""


def _forget_texts() -> None:
    _BESIDE.update(dict.fromkeys(_BESIDE))


class _Finder:
    """Finds modules along their path, as Python does, or beside the file that runs, and loads those as they are."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target)
        beside = _IMPORTING.get()
        top = path is None and beside is not None and name in {module.partition(".")[0] for module in beside.files}
        if beside is not None and top and (spec is None or not is_installed(spec.origin or "")):
            spec = PathFinder.find_spec(name, [beside.root], target) or spec
        if spec is not None and spec.origin is not None and os.path.realpath(spec.origin) in _BESIDE:
            spec.loader = _Uncached(name, spec.origin)
        return spec


_IMPORTING: ContextVar[Beside | None] = ContextVar("_IMPORTING", default=None)
"""The modules beside the file that is loaded, or whose function runs."""


@contextlib.contextmanager
def _import_beside(beside: Beside) -> Iterator[None]:
    """Let imports find the modules beside a file; those of the same names from elsewhere are put aside meanwhile."""
    others = {}
    for name, file in beside.files.items():
        place = getattr(sys.modules.get(name), "__file__", None)
        if place is not None and os.path.realpath(place) != file and not is_installed(place):
            others[name] = sys.modules.pop(name)
    token = _IMPORTING.set(beside)
    try:
        yield
    finally:
        _IMPORTING.reset(token)
        sys.modules.update(others)


def _forget_changed(beside: Mapping[Path, bytes]) -> None:
    """Let the modules of these files be imported again, if one was made of another text than now, or nobody knows."""
    contents = {os.path.realpath(file): content for file, content in beside.items()}
    _BESIDE.update({file: _BESIDE.get(file) for file in contents})
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(sys.meta_path.index(PathFinder), _Finder)
    names = {Path(file).name for file in contents}
    modules = {}
    for key, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if key != "__main__" and isinstance(path, str) and Path(path).name in names:
            file = os.path.realpath(path)
            if file in contents:
                modules[key] = file
    if any(_BESIDE[file] != contents[file] for file in modules.values()):
        for key in modules:
            sys.modules.pop(key, None)
        _forget_texts()


@lru_cache(maxsize=64)
def _from_file(path: str, digest: str) -> ModuleType:
    """Return the module in a file."""
    name = f"whyscore_function_{digest}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_Uncached(name, path))
    if spec is None or spec.loader is None:
        raise SpecError(f"{path!r} is no Python file: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses in the file look their own module up.
    sys.modules[spec.name] = module
    try:
        with _contain_output():
            spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit and the like, too
        del sys.modules[spec.name]
        raise UserError(f"{path} cannot be loaded: {_failure(error, path)}") from error
    return module


def _from_name(name: str) -> ModuleType:
    try:
        with _contain_output():
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise SpecError(f"no module named {error.name!r}: install it, or write path/file.py:function") from error
        raise UserError(f"{name} cannot be loaded: {_failure(error, None)}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit and the like, too
        raise UserError(f"{name} cannot be loaded: {_failure(error, None)}") from error


_CONTAINED: list[int] = []
"""The threads that are running a user's function."""
_CONTAINMENT = contextlib.ExitStack()
_CONTAINING = threading.Lock()


@contextlib.contextmanager
def _contain_output() -> Iterator[None]:
    """Send what is printed in any way to stderr, stdout being for results, and let `os._exit` be an error.

    Threads that run no such function, and processes that the function starts, may end themselves; this thread ends with
    the results. Output is the whole process's: the first function in redirects it, the last one out restores it.
    """
    thread = threading.get_ident()
    with _CONTAINING:
        if not _CONTAINED:
            _redirect(_CONTAINMENT)
        _CONTAINED.append(thread)
    try:
        yield
    finally:
        with _CONTAINING:
            _CONTAINED.remove(thread)
            if not _CONTAINED:
                _CONTAINMENT.close()


@contextlib.contextmanager
def _end_children() -> Iterator[None]:
    """End a process that a function forked where it comes back from the function: the rest is its parent's work."""
    owner = os.getpid()
    try:
        yield
    finally:
        if os.getpid() != owner:
            os._exit(1)


class _Bytes(io.RawIOBase):
    """The bytes below a function's stream: they become text of the program's, which they never close."""

    name = "<stderr>"

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def write(self, data: "ReadableBuffer", /) -> int:
        content = bytes(data)
        self._stream.write(self._decoder.decode(content))
        return len(content)

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        """Close nothing: whoever wraps these bytes closes them when it is collected, and the program goes on."""


class _Messages(io.TextIOWrapper):
    """A stream of a function's own, which it can wrap, detach or close like any, and not close for others."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(_Bytes(stream), "utf-8", "backslashreplace", "", write_through=True)

    def close(self) -> None:
        """Close nothing: other functions may go on writing to it."""


def _redirect(stack: contextlib.ExitStack) -> None:
    """Replace `os._exit` and stdout until the stack is closed; folder, streams and umask are then what they were."""
    end, owner = os._exit, os.getpid()

    def refuse(code: int) -> NoReturn:
        if os.getpid() != owner:
            end(code)
        if threading.get_ident() not in _CONTAINED:
            end(code or 1)  # what is ended before its results is no success
        raise SystemExit(code)

    stack.callback(setattr, os, "_exit", end)
    os._exit = refuse  # type: ignore[assignment]
    mask = os.umask(0o077)
    os.umask(mask)
    stack.callback(os.umask, mask)
    with contextlib.suppress(OSError):  # no such folder
        stack.enter_context(contextlib.chdir("."))
    stdout = sys.__stdout__
    with contextlib.suppress(OSError, ValueError, AttributeError):  # no such files, or closed ones
        stdout.flush()  # type: ignore[union-attr]
        for number in (1, 2):
            copy = os.dup(number)
            stack.callback(os.close, copy)
            stack.callback(os.dup2, copy, number)
        os.dup2(2, 1)
        stack.callback(stdout.flush)  # type: ignore[union-attr]
    stack.enter_context(contextlib.redirect_stdout(_Messages(sys.stderr)))
    stack.enter_context(contextlib.redirect_stderr(_Messages(sys.stderr)))


def _failure(error: BaseException, path: str | None) -> str:
    """Return the kind of error, its message, and the line of the file where it rose."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    if isinstance(error, SyntaxError):
        lines, message = [error.lineno], error.msg
    else:
        message = str(error)
    where = f" (line {lines[-1]})" if lines else ""
    return f"{type(error).__name__}: {message}{where}"


def _attribute(module: ModuleType, place: str, name: str) -> Function:
    try:
        function: object = reduce(getattr, name.split("."), module)
    except AttributeError:
        names = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise UnknownName.among(f"function in {place}", name, names) from None
    if not callable(function):
        raise SpecError(f"{name!r} in {place} is {type(function).__name__}, expected a function")
    return function


_INPUTS = {"hypothesis": Inputs.HYPOTHESIS, "source": Inputs.SOURCE, "references": Inputs.REFERENCES}
_ANY = ("hypothesis", "source", "references")
_EVERYTHING = Inputs.HYPOTHESIS | Inputs.SOURCE | Inputs.REFERENCES
_CHECKED_EVERY = 32
"""Segments after which a function is asked again about the one that it scored before."""


@dataclass
class _Witness:
    """A segment that a function scored, with its score: the last of its first call, by then others had been scored."""

    segment: Segment
    score: float
    unchecked: int = 0
    """Segments that were scored since the score was checked."""


_WITNESSES: dict[Signature, _Witness] = {}
_TAKES: dict[int, Literal["segments", "texts"]] = {1: "segments", 2: "texts"}


@dataclass(frozen=True, slots=True)
class Callable:
    """A metric made of a function.

    Args:
        target: the function, or its name as `package.module:function` or `path/file.py:function`.
        takes: what the function is called with; None reads it off its arguments.
        reads: the texts of a segment that it depends on; what it does not read need not be given, and segments that
            differ only there are scored once.
        higher_is_better: whether a larger number means a better hypothesis.
        masking: `character` where it compares runs of characters, blind to what they mean, `opaque` where it reads
            words; None finds out by scoring a few sentences. A decomposition masks texts accordingly.
        score_scale: its score of a perfect hypothesis, 100 or 1; None finds out.
        version: printed in the signature; change it when the function changes in a way its file does not show.
    """

    target: str | AnyFunction[..., object] = runs_code()
    takes: Literal["segments", "texts"] | None = None
    reads: tuple[str, ...] = _ANY
    higher_is_better: bool = True
    version: str = ""
    masking: Literal["character", "opaque"] | None = None
    score_scale: float | None = None
    _found: list[Found] = field(default_factory=list, init=False, repr=False, compare=False)
    """The function that the target names, once it was needed."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.score_scale is not None and not self.score_scale > 0:
            raise SpecError(f"callable: score_scale is {self.score_scale!r}, expected a number above 0")
        for name in self.reads:
            if name not in _INPUTS:
                raise SpecError(f"callable: {UnknownName.among('text of a segment', name, _INPUTS)}")
        if "hypothesis" not in self.reads:
            raise SpecError(f"callable: reads is {self.reads!r}, expected 'hypothesis' and what else it depends on")

    def __getstate__(self) -> list[object]:
        """Return the options alone: another process finds the function by its name."""
        return [[] if option.name == "_found" else getattr(self, option.name) for option in fields(self)]

    @property
    def inputs(self) -> Inputs:
        inputs = Inputs(0)
        for name in self.reads:
            inputs |= _INPUTS[name]
        # Two lists are hypotheses and references: the source never reaches the function.
        return inputs & ~Inputs.SOURCE if self.reads == _ANY and self._called_with == "texts" else inputs

    @property
    def _called_with(self) -> str:
        return self.takes or _infer_takes(self._function, self.name)

    @property
    def _source(self) -> Found:
        return self._find(self.target) if isinstance(self.target, str) else Found(self.target)

    @property
    def _function(self) -> Function:
        return self._source.function

    def _find(self, target: str) -> Found:
        if not self._found:
            self._found.append(find(target))
        return self._found[0]

    @property
    def needs(self) -> Inputs:
        return Inputs.HYPOTHESIS if self.inputs == _EVERYTHING else self.inputs

    @property
    def name(self) -> str:
        """What the function is called in messages."""
        if isinstance(self.target, str):
            return self.target
        module = getattr(self.target, "__module__", None) or "?"
        return f"{module}:{getattr(self.target, '__qualname__', type(self.target).__qualname__)}"

    def signature(self) -> Signature:
        facts = (("version", self.version),) if self.version else ()
        if not isinstance(self.target, str):
            return Signature(self._spec_of_object(), facts, stable=False)
        digest = self._find(self.target).digest
        return Signature(spec_of(self), (("digest", digest or "none"), *facts), stable=digest is not None)

    def score(self, segments: Sequence[Segment]) -> FloatVector:
        if not segments:
            return np.empty(0, dtype=np.float64)
        if not isinstance(self.target, str):
            return self._call(segments)
        signature = self.signature()
        witness = _WITNESSES.get(signature)
        if witness is None:
            values = self._call(segments)
            witness = _Witness(segments[-1], float(values[-1]))
            self._check_steady(witness, self._call(segments[-1:])[0])
            _WITNESSES[signature] = witness
            return values
        witness.unchecked += len(segments)
        if witness.unchecked < _CHECKED_EVERY:
            return self._call(segments)
        values = self._call(segments, witness.segment)
        self._check_steady(witness, values[-1])
        witness.unchecked = 0
        return values[:-1]

    def _check_steady(self, witness: _Witness, again: float) -> None:
        if not np.isclose(again, witness.score, rtol=1e-4, atol=1e-6):
            first = f"{witness.score:.6g} for {quote_start(witness.segment.hypothesis)}"
            raise ContractError(
                f"{self.name} gave {first} and {again:.6g} when asked again: its numbers depend on chance or on the "
                "other segments, and cannot be used"
            )

    def _call(self, segments: Sequence[Segment], *again: Segment) -> FloatVector:
        """Return what the function gives for segments, and for some `again`, or say what is wrong with it."""
        segments = [*segments, *again]
        function = self._function
        arguments = self._arguments(self._called_with, segments)
        originals = self._arguments(self._called_with, segments)
        subject = quote_start(segments[0].hypothesis) if len(segments) == 1 else _count(segments, len(again))
        try:
            with _contain_output(), _end_children(), _import_beside(self._source.beside):
                answer = function(*arguments)
        except KeyboardInterrupt:
            raise
        except Exception as error:
            raise TextFailure(
                self.name, f"failed on {subject}: {_describe_error(error)}{_line_of(error, function)}"
            ) from error
        except BaseException as error:  # SystemExit and the like: a metric does not end the program
            raise ContractError(
                f"{self.name} tried to end the program on {subject}: {_describe_error(error)}"
            ) from error
        if arguments != originals:
            raise ContractError(f"{self.name} changed what it was given: let it work on a copy, list(texts)")
        return _check_answer(answer, segments, self.name, len(again))

    def _arguments(self, takes: str, segments: Sequence[Segment]) -> tuple[list[object], ...]:
        if takes == "segments":
            # Copies: one that a function changes in spite of all is not the one that other metrics score.
            return (
                [
                    Segment(segment.hypothesis, segment.source, segment.references, segment.context)
                    for segment in segments
                ],
            )
        hypotheses: list[object] = [segment.hypothesis for segment in segments]
        if "references" not in self.reads and "source" in self.reads:
            need_source(self.name, segments)
            return hypotheses, [segment.source for segment in segments]
        need_references(self.name, segments)
        return hypotheses, [segment.references[0] for segment in segments]

    def _spec_of_object(self) -> str:
        """Return the spec with the name of the function in angle brackets: it can be read, not rebuilt."""
        options = [format_value(f"<{self.name}>")]
        for option in fields(self)[1:]:
            value = getattr(self, option.name)
            if option.init and value != option.default:
                options.append(f"{option.name}={format_value(value)}")
        return f"callable({', '.join(options)})"


def _infer_takes(function: Function, name: str) -> str:
    """Return what the function wants to be called with, by the number of its arguments."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise SpecError(f"cannot see the arguments of {name}: say takes='segments' or takes='texts'") from None
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [
        parameter.name
        for parameter in parameters
        if parameter.kind in positional and parameter.default is inspect.Parameter.empty
    ]
    if len(needed) not in _TAKES:
        raise SpecError(
            f"{name} has {len(needed)} arguments without default ({', '.join(needed) or 'none'}), expected one "
            "(segments) or two (hypotheses, references). Say takes='segments' or takes='texts' if that is wrong"
        )
    return _TAKES[len(needed)]


def _describe_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _line_of(error: BaseException, function: Function) -> str:
    """Return where the error rose: the last line that was run in the file of the function."""
    code = getattr(inspect.unwrap(function), "__code__", None) or getattr(type(function).__call__, "__code__", None)
    file = getattr(code, "co_filename", None)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f" ({file}, line {lines[-1]})" if lines else ""


def _count(segments: Sequence[Segment], again: int) -> str:
    repeated = f" ({len(segments) - again} and an earlier one again, as a check)" if again else ""
    return f"{len(segments)} segments{repeated}"


def _check_answer(answer: object, segments: Sequence[Segment], name: str, again: int = 0) -> FloatVector:
    """Return the answer as numbers, or say what is wrong with it; the last `again` segments were scored before."""
    expected = f"{name} must return {len(segments)} numbers for {_count(segments, again)}"
    try:
        values = np.asarray(answer)
    except (TypeError, ValueError) as error:
        raise ContractError(f"{expected}, got {type(answer).__name__}: {error}") from error
    if values.dtype.kind not in "fiub":
        raise ContractError(f"{expected}, got {quote_start(repr(answer))[1:-1]} ({type(answer).__name__})")
    if values.shape != (len(segments),):
        raise ContractError(f"{expected}, got {_shape(values)}")
    if np.ma.is_masked(answer):
        raise ContractError(f"{expected}, got an array that masks some")
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        text = quote_start(segments[int(bad[0])].hypothesis)
        more = f" and {bad.size - 1} more" if bad.size > 1 else ""
        raise TextFailure(name, f"gave {values[bad[0]]} for {text}{more}; scores must be finite")
    return values.astype(np.float64)


def _shape(values: "np.ndarray[tuple[int, ...], np.dtype[np.generic]]") -> str:
    if values.ndim == 0:
        return f"the single number {values}"
    return f"{len(values)} numbers" if values.ndim == 1 else f"an array of shape {values.shape}"
