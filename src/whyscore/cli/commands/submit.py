"""`whyscore submit`: a folder that can be handed in to a shared task."""

import argparse

from whyscore.analysis.submit import TASKS, submit
from whyscore.cli.commands.metaeval.words import planned
from whyscore.cli.legacy import dataset, progress, resources
from whyscore.cli.options import Parser, add_inputs, add_metrics, add_running
from whyscore.cli.output import tell
from whyscore.data.formats.eval4nlp import TRACKS
from whyscore.errors import UserError

EXAMPLES = """\
examples:
  whyscore submit eval4nlp -s dev.src -t dev.mt -m transquest -e erasure --team me --track constrained -o submission/
  whyscore submit wmt22 -s src_tok -t mt_tok -r ref_tok -m chrf -e lime --team me -o submission/
"""


def add_arguments(parser: Parser) -> None:
    """Add the task, what is explained, and who hands in."""
    parser.add_argument("task", choices=tuple(TASKS), help="whose files to write")
    add_metrics(parser)
    parser.add_argument("-e", "--explainer", "--explainers", dest="explainer", metavar="SPEC", help="one explainer")
    parser.add_argument("--team", metavar="NAME", help="who hands in")
    parser.add_argument("--track", choices=TRACKS, default="constrained", help="constrained: no word labels were used")
    parser.add_argument("--description", metavar="TEXT", help="one line (default: metric and explainer)")
    parser.add_argument("-o", "--output", metavar="FOLDER", help="where the files go")
    parser.add_argument("-v", "--verbose", action="store_true", help="all findings on stderr")
    add_inputs(parser)
    add_running(parser)


def run(arguments: argparse.Namespace) -> int:
    """Explain, write the folder, and print its files."""
    for name, what in (("metrics", "-m METRIC"), ("explainer", "-e EXPLAINER"), ("team", "--team"), ("output", "-o")):
        if not getattr(arguments, name):
            raise UserError(f"a submission needs {what}")
    if len(arguments.metrics) > 1:
        raise UserError(f"one metric a submission, got {' '.join(arguments.metrics)}")
    data = dataset(arguments)
    if len(data.systems) > 1:
        raise UserError(f"one system a submission, got {', '.join(data.systems)}")
    if arguments.dry_run:
        for line in planned(arguments, data.segments, arguments.metrics, [arguments.explainer]):
            print(line, end="")
        return 0
    with progress(arguments) as bar:
        done = submit(
            data,
            arguments.metrics[0],
            arguments.explainer,
            arguments.output,
            team=arguments.team,
            track=arguments.track,
            description=arguments.description,
            task=arguments.task,
            seed=arguments.seed,
            resources=resources(arguments, bar),
        )
    for file in done.files:
        print(file)
    tell(arguments, f"{len(data)} segments; sides: {', '.join(done.submission.sides)}. Check with whyscore validate")
    return 0
