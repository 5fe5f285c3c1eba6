"""Coverage-guided fuzzing of the spec parser and the readers: `python tests/fuzz/atheris_target.py -max_total_time=60`.

The first byte chooses what is fuzzed, the rest is given to it. Only errors of whyscore's own are allowed.
"""

import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["whyscore.io", "whyscore.registry.specs"]):
    from whyscore.io.explanation_records import read_explanations
    from whyscore.io.foreign import read_foreign
    from whyscore.io.reading import read
    from whyscore.io.xliff import read_xliff
    from whyscore.registry.specs import parse

from whyscore.errors import WhyscoreError
from whyscore.types import Dataset, Entry, Segment

TEXTS = Dataset("texts", (Entry("0", "a", Segment("a bad cat", "x y", ("a",))),))
NAMES = ["a.jsonl", "a.tsv", "a.csv", "a.txt", "a.xlf", "a.rating", "a.tgt-tags", "a.tsv.gz", "a"]
FOLDER = Path(tempfile.mkdtemp())


def once(data: bytes) -> None:
    """Give bytes to one reader, or to the parser of specs."""
    which, content = data[0] if data else 0, data[1:]
    if which % 10 == 0:
        with suppress(WhyscoreError):
            parse(content.decode("utf-8", "replace"))
        return
    path = FOLDER / NAMES[which % len(NAMES)]
    path.write_bytes(content)
    for reader in (read, read_explanations, read_xliff, lambda file: read_foreign(file, texts=TEXTS)):
        with suppress(WhyscoreError):
            reader(path)


if __name__ == "__main__":
    atheris.Setup(sys.argv, once)
    atheris.Fuzz()
