"""The server: run folders to explore, a page to try a sentence, and the same as JSON with OpenAPI."""

from dataclasses import dataclass

from whyscore.errors import UserError
from whyscore.settings import check, option

LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")
"""Names that only this machine can reach."""


@dataclass(frozen=True, kw_only=True)
class ServeSettings:
    """Where and to whom runs are served."""

    host: str = option("127.0.0.1", "address to listen on; by default only this machine can reach it", basic=True)
    port: int = option(8000, "port to listen on; 0 takes a free one", least=0, most=65_535, metavar="N", basic=True)
    allow_hosts: tuple[str, ...] = option(
        (), "additional host names to accept", flags=("--allow-host",), metavar="NAME", basic=True
    )
    token: str | None = option(
        None, "access token; required if --host admits other machines", metavar="TEXT", basic=True
    )
    workers: int = option(
        2, "number of requests answered at the same time, each in its own process", least=1, metavar="N"
    )
    queue: int = option(256, "number of requests that may wait in the queue", least=1, metavar="N")
    seconds: float = option(30.0, "time limit per request, in seconds", least=0.1, metavar="N")
    memory: int = option(1000, "memory limit per request, in megabytes", least=10, metavar="N")

    def __post_init__(self) -> None:
        """Refuse to let other machines in without a token."""
        check(self)
        if self.token and not (self.token.isascii() and self.token.isprintable()):
            raise UserError("--token has characters that a request cannot carry: use printable ASCII characters")
        if self.host not in LOOPBACK and not self.token:
            raise UserError(
                f"--host {self.host} lets other machines in: add --token TEXT, which every request must then carry"
            )
