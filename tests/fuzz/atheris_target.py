"""Coverage-guided fuzzing: `python tests/fuzz/atheris_target.py TARGET -max_total_time=60`.

TARGET is one of `support.fuzz_targets`: spec, spans, readers, parsers. Begins with its seeds, unless a folder of
inputs is named. Only errors of whyscore's own are allowed.
"""

import sys
import tempfile
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))  # support

# What turns bytes into values; all of whyscore would take a minute to prepare.
READING = [
    "whyscore.data", "whyscore.registry", "whyscore.text.files", "whyscore.text.alignment",
    "whyscore.text.infill",
    "whyscore.explainers.logprob", "whyscore.metrics.lookup", "whyscore.metrics.matching.weights",
    "whyscore.metrics.matching.weights", "whyscore.metrics.learned.comet.checkpoint", "whyscore.models.maps",
    "whyscore.models.lexicon",
    "whyscore.models.checkpoints", "whyscore.models.word_vectors",
    "whyscore.analysis.calibrate.file", "whyscore.analysis.decompose.sentences", "whyscore.taggers.conllu",
    "whyscore.report.build",
]  # fmt: skip

with atheris.instrument_imports(include=READING):
    from support.fuzz_targets import TARGETS, seeds

    if sys.argv[1:2] == ["parsers"]:
        import support.parsers  # noqa: F401 - the target imports it too late to be followed


def main() -> None:
    """Fuzz the target that the command line names."""
    program, target, *options = sys.argv
    folder = Path(tempfile.mkdtemp(prefix=f"whyscore-{target}-"))
    for number, seed in enumerate(seeds(target)):
        (folder / str(number)).write_bytes(seed)
    named = any(not option.startswith("-") for option in options)
    atheris.Setup([program, *options, *([] if named else [str(folder)])], TARGETS[target])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
