"""What workers of the server are asked to do in tests; a worker has to import it."""

import os
import time

from whyscore.scoring.store import Store


def sleep(seconds: float, _: Store | None) -> str:
    time.sleep(seconds)
    return "done"


def make_no_report(_: object, __: Store | None) -> str:
    return sleep(60, None)


def process(_: object, __: Store | None) -> int:
    return os.getpid()


def take(megabytes: int, _: Store | None) -> int:
    return len(bytearray(megabytes * 2**20))


def fail(_: object, __: Store | None) -> None:
    raise RuntimeError("/secret/path")


def end(_: object, __: Store | None) -> None:
    os._exit(3)
