"""Pairs of texts for TER, and how many edits sacreBLEU counts in them.

    python tests/support/ter_pairs.py ../shared/data    # write tests/data/ter/edits.txt anew, with sacrebleu 2.6.0

1. 10,000 outputs of four systems with their references (WMT 2018 ru-en, WMT 2019 de-en).
2. 10,000 translations with their post-edits (MLQE-PE, seven language pairs).
3. 1,000 pairs made of the first 200: alignments that leave the diagonal, repeated words, more candidates for shifts
   than Tercom looks at, and texts of very different lengths.

The first line of the file names the texts by a digest, so that counts are never compared with those of other texts.
"""

import gzip
import hashlib
import json
import random
import sys
from collections.abc import Iterator
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import NamedTuple

RECORDED = Path(__file__).resolve().parents[1] / "data" / "ter" / "edits.txt"
POST_EDITS = 10_000


class Pair(NamedTuple):
    """Two texts as lists of words."""

    hypothesis: list[str]
    reference: list[str]


def real_pairs(data: Path) -> list[Pair]:
    """Return the outputs of systems with their references, then translations with their post-edits."""
    pairs = []
    for year in ("wmt18_ruen", "wmt19_deen"):
        (reference,) = (data / "muler" / year).glob("*ref.en")
        for output in sorted((data / "muler" / year).glob("newstest*")):
            if output != reference:
                lines = zip(
                    output.read_text("utf-8").splitlines(), reference.read_text("utf-8").splitlines(), strict=True
                )
                pairs += [_pair(*line) for line in lines]
    with gzip.open(data / "quality_estimation" / "mlqe_pe_train.jsonl.gz", "rt", encoding="utf-8") as file:
        # The rows are sorted by language pair: every fourth one has all of them.
        records = map(json.loads, islice(file, 0, None, 4))
        pairs += [_pair(record["mt"], record["pe"]) for record in islice(records, POST_EDITS)]
    return pairs


def _pair(hypothesis: str, reference: str) -> Pair:
    return Pair(hypothesis.lower().split(), reference.lower().split())


def nasty_pairs(pairs: list[Pair]) -> Iterator[Pair]:
    """Yield ten pairs made of each two."""
    rng = random.Random(0)
    for (hypothesis, reference), (second, other) in zip(pairs[::2], pairs[1::2], strict=True):
        yield Pair(hypothesis, other)
        yield Pair(hypothesis + second, other + reference)
        yield Pair(reference[::-1], reference)
        yield Pair(hypothesis * 4, reference)
        yield Pair(hypothesis, reference * 4)
        yield Pair(hypothesis[:1], reference + other)
        yield Pair([word for word in hypothesis for _ in range(3)], reference)
        yield Pair(["the"] * 60 + hypothesis, other + ["the"] * 50)
        yield Pair(rng.sample(hypothesis + second, len(hypothesis + second)), hypothesis + second)
        yield Pair(rng.choices("abc", k=rng.randrange(1, 90)), rng.choices("abc", k=rng.randrange(1, 90)))


def all_pairs(data: Path) -> list[Pair]:
    """Return all pairs, the nasty ones last."""
    pairs = real_pairs(data)
    return [*pairs, *nasty_pairs(pairs[:200])]


def digest(pairs: list[Pair]) -> str:
    """Return what names the pairs."""
    return hashlib.sha256(json.dumps(pairs).encode()).hexdigest()


def read_recorded(pairs: list[Pair]) -> list[int]:
    """Return sacreBLEU's edits of the pairs."""
    head, *lines = RECORDED.read_text("utf-8").splitlines()
    assert head.split("\t")[1] == digest(pairs), f"the texts are not those of {RECORDED.name}: write it anew"
    return [int(line) for line in lines]


def main() -> None:
    """Write sacreBLEU's edits of all pairs."""
    from sacrebleu.metrics.lib_ter import translation_edit_rate

    pairs = all_pairs(Path(sys.argv[1]))
    edits = [translation_edit_rate(*pair)[0] for pair in pairs]
    RECORDED.parent.mkdir(parents=True, exist_ok=True)
    head = f"sacrebleu {version('sacrebleu')}\t{digest(pairs)}"
    RECORDED.write_text("\n".join([head, *map(str, edits)]) + "\n", "utf-8")


if __name__ == "__main__":
    main()
