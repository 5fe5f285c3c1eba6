"""Coverage-guided fuzzing: `python tests/fuzz/atheris_target.py TARGET -max_total_time=60`.

TARGET is one of `support.fuzz_targets`: spec, spans, readers, parsers. Begins with its seeds, unless a folder of
inputs is named. Only errors of whyscore's own are allowed.
"""

import sys
import tempfile
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))  # support

# What turns bytes into values: to prepare all of whyscore takes longer than a short round.
READING = (
    "whyscore.analysis.calibrate.file", "whyscore.analysis.decompose.sentences",
    "whyscore.analysis.metaeval.annotators", "whyscore.analysis.metaeval.tables", "whyscore.data",
    "whyscore.experiments.bmx.summeval", "whyscore.experiments.muler.submissions", "whyscore.explainers.logprob",
    "whyscore.marking", "whyscore.metrics.estimators.qe", "whyscore.metrics.estimators.tables",
    "whyscore.metrics.learned.comet.checkpoint", "whyscore.metrics.learned.transquest", "whyscore.metrics.lookup",
    "whyscore.metrics.matching.moverscore", "whyscore.metrics.matching.weights", "whyscore.models.checkpoints",
    "whyscore.models.encoders.sentence", "whyscore.models.encoders.stacks", "whyscore.models.lexicon",
    "whyscore.models.maps", "whyscore.models.tensors", "whyscore.models.word_vectors", "whyscore.registry",
    "whyscore.report.build", "whyscore.report.figures", "whyscore.settings", "whyscore.taggers", "whyscore.text",
    "whyscore.types",
)  # fmt: skip


def not_followed() -> list[str]:
    """Return the modules outside `READING`: what to include atheris tells by the first part of a name alone."""
    root = Path(__file__).parents[2] / "src"
    paths = [path.relative_to(root).with_suffix("").parts for path in (root / "whyscore").rglob("*.py")]
    names = [".".join(parts).removesuffix(".__init__") for parts in paths]
    return [name for name in names if not any(f"{name}.".startswith(f"{reading}.") for reading in READING)]


with atheris.instrument_imports(include=["whyscore"], exclude=not_followed()):
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
