"""Serve runs until interrupted: what `whyscore serve` does."""

from collections.abc import Callable, Sequence
from pathlib import Path

from whyscore.errors import MissingExtra, SpecError, UserError
from whyscore.scoring.store import Store

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""What only this machine can reach."""
_PORTS = 65_535


def serve(
    runs: str | Path | Sequence[str | Path] = (),
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    allow_hosts: Sequence[str] = (),
    workers: int = 2,
    queue: int = 256,
    store: Store | None = None,
    quiet: bool = True,
    begun: Callable[[], None] | None = None,
) -> None:
    """Look at runs in the browser, try a sentence live, ask by JSON; it goes on until it is interrupted.

    Args:
        runs: Run folders of `evaluate`.
        host: The address to listen at; by itself only this machine can reach it.
        port: From 0, which takes a free one, to 65535.
        allow_hosts: Further names it may be called by.
        workers: Questions answered at a time.
        queue: Questions that may wait.
        store: Where scores are kept, for example `whyscore.store()`.
        quiet: No lines about requests on stderr.
        begun: Called when everything was found right, before it listens.
    """
    try:
        import uvicorn  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise MissingExtra.of("whyscore serve", "web") from error
    from whyscore.web.app import Settings, create  # noqa: PLC0415 - an optional package

    for name, number in (("workers", workers), ("queue", queue)):
        if number < 1:
            raise SpecError(f"{name} is {number}, expected 1 or more")
    if not 0 <= port <= _PORTS:
        raise SpecError(f"port is {port}, expected a number from 0 to {_PORTS}")
    folders = [runs] if isinstance(runs, str | Path) else runs
    hosts = (*LOOPBACK, "[::1]", host, *allow_hosts)
    settings = Settings(_named(folders), store, hosts, workers, queue)
    if begun is not None:
        begun()
    level = "warning" if quiet else "info"
    uvicorn.run(create(settings), host=host, port=port, log_level=level, server_header=False)


def _named(folders: Sequence[str | Path]) -> dict[str, Path]:
    """Return the folders by name; equal names get a number."""
    found: dict[str, Path] = {}
    for given in folders:
        folder = Path(given).resolve()
        if not folder.is_dir():
            raise UserError(f"no run folder {str(given)!r}: make one with whyscore evaluate ... -o {given}")
        name, number = folder.name, 2
        while name in found:
            name, number = f"{folder.name}-{number}", number + 1
        found[name] = folder
    return found
