"""The server: run folders to explore, a page to try a sentence, and the same as JSON with OpenAPI."""

from dataclasses import dataclass

from whyscore.settings import option

LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")
"""Names that only this machine can reach."""


@dataclass(frozen=True, kw_only=True)
class ServeSettings:
    """Where and to whom runs are served."""

    host: str = option("127.0.0.1", "address to listen on; by default only this machine can reach it", basic=True)
    port: int = option(8000, "port to listen on; 0 takes a free one", least=0, most=65_535, metavar="N", basic=True)
    allow_hosts: tuple[str, ...] = option(
        (), "further host names to answer to", flags=("--allow-host",), metavar="NAME", basic=True
    )
    workers: int = option(2, "requests answered at a time", least=1, metavar="N")
    queue: int = option(256, "requests that may wait", least=1, metavar="N")
