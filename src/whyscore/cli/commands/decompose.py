"""`whyscore decompose`: how much of the score is lost on nouns, names, numbers ..."""

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import get_args

from whyscore.analysis.decompose.decompose import decompose, plan
from whyscore.analysis.decompose.result import Decompositions
from whyscore.analysis.decompose.settings import Held, Level, Mode, Settings, Tokens
from whyscore.cli.legacy import dataset, progress, resources
from whyscore.cli.options import Parser, add_inputs, add_metrics, add_output, add_running
from whyscore.cli.output import document, emit, format_of, tell, tell_signatures
from whyscore.data.records import row_lines
from whyscore.errors import UserError
from whyscore.present import render
from whyscore.report.tables import difference_table, long_table, scorer_table, segment_table, share_table
from whyscore.text.placeholders import Unit, hide_in_text
from whyscore.types import Dataset
from whyscore.types.table import Table

EXAMPLES = """\
examples:
  whyscore decompose -r ref.txt -t sysA.txt sysB.txt -m bleu --tagger rules -f json
  whyscore decompose -r ref.txt -t sysA.txt sysB.txt -m bleu --tagger spacy -l en
  whyscore decompose -r ref.txt -t sys.txt -m bleu --tagger "pretagged(reference='ref.tag', hypothesis='sys.tag')"
  whyscore decompose -r ref.txt -t sys.txt -m rouge --tagger rules --scorers sentiment
  whyscore decompose --sample -m bleu --features number capitalised
"""

# Runs of characters that no writer uses: masks.
_PRIVATE = re.compile("[\ue000-\uf8ff\U000f0000-\U0010fffd]+")
_CORRECTIONS = {"bh": "benjamini_hochberg", "holm": "holm", "bonferroni": "bonferroni", "none": "none"}


def add_arguments(parser: Parser) -> None:
    """Add inputs, metrics, taggers, features and output."""
    add_metrics(parser)
    add_features(parser)
    parser.add_argument(
        "--scorers", nargs="+", action="extend", default=[], metavar="SPEC",
        help="sentence scorers: sentiment, \"lexicon(path='concreteness.tsv')\"",
    )  # fmt: skip
    parser.add_argument(
        "--level", choices=get_args(Level), default="segment", help="means of segments, or corpus scores"
    )
    parser.add_argument(
        "-e",
        "--explainer",
        metavar="SPEC",
        help="add the summed importance of each feature's words: shap, 'lime(samples=100)'",
    )
    parser.add_argument("--correction", choices=tuple(_CORRECTIONS), default="bh", help="of the tests between systems")
    parser.add_argument("--labels", choices=("field", "paper", "code"), help="names of the discrepancy columns")
    parser.add_argument("--segments", action="store_true", help="the numbers of every segment instead of the features")
    parser.add_argument("--draws", type=int, default=2000, metavar="N", help="bootstrap samples and swaps; 0: none")
    parser.add_argument(
        "--examples", type=int, default=0, metavar="N", help="show N segments that moved each share most"
    )
    parser.add_argument("--figures", metavar="DIR", help="also draw the charts into this folder")
    add_inputs(parser)
    add_output(parser)
    add_running(parser)


def add_features(parser: Parser) -> None:
    """Add tagger, features and how they are hidden."""
    parser.add_argument("--tagger", default="rules", metavar="SPEC", help="rules (default), spacy, pretagged(...), ...")
    parser.add_argument(
        "--features", nargs="+", action="extend", metavar="EXPR",
        help="NOUN, ent:PERSON, NOUN=NN,NNS, number, words:he,she ... (default: all that the tagger gives)",
    )  # fmt: skip
    parser.add_argument("--mode", choices=get_args(Mode), default="paper", help="compat: as in the published tables")
    parser.add_argument("--unit", choices=get_args(Unit), default="word", help="hide each word of a span, or it as one")
    parser.add_argument(
        "--need", choices=get_args(Held), default="any", help="segments whose references have the feature: any, or all"
    )
    parser.add_argument("--tokens", choices=get_args(Tokens), help="what counts as a token (default: the metric's own)")
    parser.add_argument("--initial", choices=("any", "lower"), help="lower: only words that begin with a to z")


def run(arguments: argparse.Namespace) -> int:
    """Decompose everything that was asked for and write it out."""
    if not arguments.metrics:
        raise UserError("no metric: name one with -m, for example -m bleu")
    data = features_dataset(arguments)
    settings = settings_of(arguments)
    if arguments.dry_run:
        emit(arguments, _planned(arguments, data, settings))
        return 0
    with progress(arguments) as bar:
        found = decompose(
            data,
            arguments.metrics,
            tagger=arguments.tagger,
            features=arguments.features,
            scorers=arguments.scorers,
            mode=settings.mode,
            unit=settings.unit,
            level=settings.level,
            references=settings.references,
            tokens=settings.tokens,
            initial=settings.initial,
            explainer=settings.explainer,
            draws=settings.draws,
            correction=settings.correction,
            examples=settings.examples,
            seed=settings.seed,
            resources=resources(arguments, bar),
        )
    chosen = format_of(arguments)
    emit(arguments, _lines(arguments, data, found, chosen))
    if chosen == "text":
        for note in found.notes:
            tell(arguments, f"note: {note}")
        tell_signatures(arguments, found.signatures.values())
    _draw(arguments, found)
    return 0


def features_dataset(arguments: argparse.Namespace) -> Dataset:
    """Return the data set; a language alone (`-l en`) is that of hypotheses and references."""
    if arguments.lang_pair and "-" not in arguments.lang_pair:
        arguments.lang_pair = f"und-{arguments.lang_pair}"
    return dataset(arguments)


def settings_of(arguments: argparse.Namespace) -> Settings:
    """Return the settings that the options stand for."""
    return Settings(
        mode=arguments.mode,
        unit=arguments.unit,
        level=getattr(arguments, "level", "segment"),
        references=arguments.need,
        tokens=arguments.tokens,
        initial=arguments.initial,
        draws=getattr(arguments, "draws", 0),
        correction=_CORRECTIONS[getattr(arguments, "correction", "bh")],
        examples=getattr(arguments, "examples", 0),
        explainer=getattr(arguments, "explainer", None),
        seed=arguments.seed,
    )


def _planned(arguments: argparse.Namespace, data: Dataset, settings: Settings) -> Iterator[str]:
    held = resources(arguments)
    for metric in arguments.metrics:
        cost = plan(
            data, metric, tagger=arguments.tagger, features=arguments.features, settings=settings, resources=held
        )
        yield (
            f"{metric}: {cost.texts} texts, {cost.distinct_texts} distinct, {cost.tagged} tagged now; "
            f"{cost.asked} segments asked, {cost.distinct} distinct, {cost.stored} already stored\n"
        )


def _lines(arguments: argparse.Namespace, data: Dataset, found: Decompositions, chosen: str) -> Iterator[str]:
    if chosen in ("json", "jsonl"):
        signatures = {name: str(signature) for name, signature in found.signatures.items()}
        lines = row_lines("decomposition", data, _records(arguments, found), signatures)
        yield from document(lines) if chosen == "json" else lines
        return
    tables = _tables(arguments, found, chosen)
    shown = [render(table, chosen, decimals=arguments.width, safe=arguments.safe_csv) for table in tables]
    yield "\n".join(shown)
    if chosen == "text":
        yield from example_lines(found)


def _records(arguments: argparse.Namespace, found: Decompositions) -> Iterator[dict[str, object]]:
    if arguments.segments:
        for row in found:
            names = {"system": row.system, "metric": row.metric, "feature": row.feature}
            yield from (names | record for record in (row.segments.records() if row.segments else ()))
        return
    for row in found:
        examples = [asdict(one) for one in row.examples]
        yield row.record() | ({"examples": examples} if arguments.examples else {})
    yield from (test.record() for test in found.tests)
    yield from (scorer.record() for scorer in found.scorers)


def example_lines(found: Decompositions) -> Iterator[str]:
    """Yield the examples of each row: what was hidden in brackets, and the texts as they were scored."""
    for row in found:
        for one in row.examples:
            yield f"\n{row.system} {one.id} · {row.feature} · {row.metric} {one.sigma:.3f}, "
            yield f"best case {one.oracle:.3f}, worst case {one.anti:.3f}\n"
            texts = [("hypothesis", one.hypothesis, one.hypothesis_spans, one.masked_hypothesis)]
            masked = one.masked_references or (None,) * len(one.references)
            held = zip(one.references, one.reference_spans, masked, strict=True)
            texts += [("reference", *each) for each in held]
            for side, text, spans, hidden in texts:
                yield f"  {side:<11}{hide_in_text(text, spans, [f'[{text[a:b]}]' for a, b in spans])}\n"
                if hidden is not None:
                    yield f"  {'scored':<11}{_PRIVATE.sub('□' if side == 'hypothesis' else '■', hidden)}\n"


def _tables(arguments: argparse.Namespace, found: Decompositions, chosen: str) -> Sequence[Table]:
    if arguments.segments:
        return [segment_table(found)]
    if chosen in ("tsv", "csv"):
        return [long_table(found)]
    labels = arguments.labels or ("code" if arguments.mode == "compat" else "field")
    shares = share_table(found, labels, "both" if arguments.mode == "compat" else "all", arguments.width or 3)
    if chosen == "text":  # signatures go to stderr, where they do not disturb what is copied or piped
        shares = Table(shares.columns, shares.rows, shares.higher_is_better, shares.best, shares.notes[:1])
    extra = ([difference_table(found)] if found.tests else []) + ([scorer_table(found)] if found.scorers else [])
    return [shares, *extra]


def _draw(arguments: argparse.Namespace, found: Decompositions) -> None:
    if not arguments.figures:
        return
    # Imported when charts are drawn: altair costs more than all the rest.
    from whyscore.report.figures.decompose import draw  # noqa: PLC0415

    for path in draw(found, Path(arguments.figures)):
        tell(arguments, f"figure: {path}")
