"""Finds the function that a text such as `package.module:function` or `path/file.py:function` names."""

import hashlib
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable
from functools import lru_cache, reduce
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from whyscore.errors import SpecError, UnknownName, UserError

Function = Callable[..., object]


class Found(NamedTuple):
    """A function with the digest of the file it stands in; None where there is no file to read."""

    function: Function
    digest: str | None


def find(target: str) -> Found:
    """Return the function that `target` names; every reason why it cannot be had is a user error."""
    place, colon, name = target.rpartition(":")
    if not (place and colon and name):
        raise SpecError(f"cannot read the function {target!r}: write package.module:function or path/file.py:function")
    if place.endswith(".py") or "/" in place or "\\" in place:
        path = Path(place)
        if not path.is_file():
            raise SpecError(f"no file {place!r} for the function {target!r}; the path counts from {Path.cwd()}")
        module, digest = _from_file(str(path.resolve()))
        return Found(_attribute(module, place, name), digest)
    module = _from_name(place)
    origin = inspect.getsourcefile(module) if getattr(module, "__file__", None) else None
    return Found(_attribute(module, place, name), _digest(Path(origin).read_bytes()) if origin else None)


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=6).hexdigest()


@lru_cache(maxsize=64)
def _from_file(path: str) -> tuple[ModuleType, str]:
    """Return the module in a file and the digest of the file.

    As with an import the first answer stays: one process never mixes numbers of two versions of a function.
    """
    digest = _digest(Path(path).read_bytes())
    spec = importlib.util.spec_from_file_location(f"whyscore_function_{digest}", path)
    if spec is None or spec.loader is None:
        raise SpecError(f"{path!r} is no Python file: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses in the file look their own module up.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[spec.name]
        raise UserError(f"{path} cannot be loaded: {_told(error, path)}") from error
    return module, digest


def _from_name(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise SpecError(f"no module named {error.name!r}: install it, or write path/file.py:function") from error
        raise UserError(f"{name} cannot be loaded: {_told(error, None)}") from error
    except Exception as error:
        raise UserError(f"{name} cannot be loaded: {_told(error, None)}") from error


def _told(error: Exception, path: str | None) -> str:
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
        found: object = reduce(getattr, name.split("."), module)
    except AttributeError:
        known = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise UnknownName.among(f"function in {place}", name, known) from None
    if not callable(found):
        raise SpecError(f"{name!r} in {place} is {type(found).__name__}, expected a function")
    return found
