"""MuLER over many submissions: figures 3 to 6 and 10 to 12, and the pairs of systems that people judge (Table 10).

Figures: shares that `decompose` wrote, of any number of runs, or a table of stored values, become the charts of
`whyscore.report.figures.decompose` and the correlations that stand in them.

Pairs: does the metric's share say what people see?

1. Of the systems of a group, those pairs whose scores differ by at most `close` and whose shares of a feature differ by
   at least `far`; the widest apart first. A is the system with the smaller share, which should be better.
2. Of the segments where reference and both hypotheses have the feature and the hypotheses differ, some at random.
3. The sheet shows them in random order, each time in random order of A and B, without the systems' names; the key, a
   file of its own, says who is who.
4. The filled sheet is tallied: A = B, A > B, B > A, with a two-sided sign test over those that are not equal.
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import ClassVar, cast

from markupsafe import Markup

from whyscore import decompose
from whyscore.analysis.common import MetricLike, Segments, as_dataset
from whyscore.analysis.decompose import DecomposeSettings, Decomposition, Decompositions, ScorerDifference, share_of
from whyscore.analysis.metaeval import Columns, read_columns
from whyscore.data.codec import Where, convert, decode, is_header, read_records
from whyscore.data.files import TextFile
from whyscore.data.naming import few, plain_name
from whyscore.data.writing import make_folder
from whyscore.errors import DataError, UserError
from whyscore.marking import Span
from whyscore.report.figures.decompose import draw, measure_rows
from whyscore.scoring.stack import LOCAL, Resources
from whyscore.settings import again, option, takes
from whyscore.text.placeholders import hide_in_text
from whyscore.text.randomness import generator
from whyscore.types import Entry, FeatureShare
from whyscore.types.data import natural_order
from whyscore.types.result import Record, Result, Table

_STORED = {"sigma_all": "bleu_all", "sigma": "bleu_indices_implied", "oracle": "max_bleu", "anti": "min_bleu"}
"""Names that published tables have for the numbers of a row."""
_SHEET, _PAGE, _KEY = "sheet.tsv", "sheet.html", "key.jsonl"
_COLUMNS = ("item", "feature", "source", "reference", "text 1", "text 2", "judgement")
_JUDGEMENTS = {"1": 1, "2": 2, "0": 0, "=": 0}


@dataclass(frozen=True, slots=True)
class CorrelationRow:
    """How the share of a feature goes with score and range over the systems of a group."""

    group: str | None
    metric: str
    feature: str
    n: int
    score: float | None
    """Pearson of the score of all segments with -share."""
    range: float | None
    """Pearson of range with share."""


class Correlations(Result, list[CorrelationRow]):
    """The correlations of every feature, and the files that were drawn."""

    kind: ClassVar[str] = "decomposition"
    __repr__ = Result.__repr__

    def __init__(self, rows: Sequence[CorrelationRow], figures: Sequence[Path]) -> None:
        super().__init__(rows)
        self.figures = tuple(figures)

    def records(self) -> Iterator[Record]:
        return (asdict(row) for row in self)

    def display_tables(self) -> Sequence[Table]:
        columns = {"group": "group", "metric": "metric", "feature": "feature", "n": "systems",
                   "score": "r of -share with score", "range": "r of share with range"}  # fmt: skip
        return [Table.of(self.records(), columns, ("group",))]


def figures(files: Sequence[str | Path], folder: str | Path | None = None) -> Correlations:
    """Return the correlations of shares with score and range over systems, and draw the charts into a folder.

    Args:
        files: What `decompose -f jsonl` wrote, or tables (TSV, CSV) with the columns system, feature, sigma_all, sigma,
            oracle and anti (bleu_all, bleu_indices_implied, max_bleu and min_bleu in the paper's files), perhaps group.
        folder: Where charts are drawn; None draws none.
    """
    shares = Decompositions()
    for path in files:
        part = read_shares(path)
        shares.extend(part)
        shares.scorers.extend(part.scorers)
    if not shares:
        raise UserError("no share to draw: give files that `whyscore decompose -f jsonl` wrote")
    rows: dict[tuple[str | None, str, str, int], dict[str, float | None]] = {}
    for measured in measure_rows(shares):
        names = tuple(measured[name] for name in ("group", "metric", "feature", "n"))
        coefficients = rows.setdefault(cast("tuple[str | None, str, str, int]", names), {})
        coefficients[str(measured["measure"])] = cast("float | None", measured["pearson"])
    if not rows:
        most = max(len({row.system for row in shares if row.group == group}) for group in {row.group for row in shares})
        raise UserError(f"no correlation over systems: it takes three in a group, and the largest has {most}")
    drawn = draw(shares, Path(folder)) if folder is not None else []
    ranges = {names: row["range"] for names, row in rows.items()}
    turned = {names: None if value is None else -value for names, value in ranges.items()}
    correlations = [CorrelationRow(*names, row["sigma_all"], turned[names]) for names, row in rows.items()]
    return Correlations(correlations, drawn)


def read_shares(path: str | Path) -> Decompositions:
    """Return the shares in records of `decompose` or in a table."""
    if plain_name(path).suffix.lower() not in (".tsv", ".csv") and is_header(TextFile(path).first()):
        rows: list[Decomposition] = []
        scorers: list[ScorerDifference] = []
        for line, record in read_records(path, kind="decomposition").numbered():
            where = Where(str(path), line)
            if record.get("row") == "scorer":
                scorers.append(convert(ScorerDifference, record, where))
            elif "row" not in record:
                share = convert(FeatureShare, {**record, "examples": ()}, where)
                rows.append(Decomposition(**{name: getattr(share, name) for name in FeatureShare.__dataclass_fields__}))
        return Decompositions(rows, scorers=scorers)
    return Decompositions(_table_rows(read_columns(path)))


def _table_rows(columns: Columns) -> Iterator[Decomposition]:
    names = {role: role if role in columns.values else other for role, other in _STORED.items()}
    missing = [name for name in ("system", "feature", *names.values()) if name not in columns.values]
    if missing:
        there = ", ".join(columns.values)
        raise DataError(f"no column {missing[0]!r} in this table of shares; there are: {there}", file=columns.name)
    numbers = {role: columns.numbers(name).tolist() for role, name in names.items()}
    groups = columns.names("group") if "group" in columns.values else (None,) * len(columns.lines)
    for k, (system, feature) in enumerate(zip(columns.names("system"), columns.names("feature"), strict=True)):
        cases = {role: values[k] for role, values in numbers.items()}
        share = share_of(cases["sigma"], cases["oracle"], cases["anti"])
        wide = {"gain": cases["oracle"] - cases["sigma"], "range": cases["oracle"] - cases["anti"]}
        metric = "bleu" if "bleu_all" in names.values() else "score"
        yield Decomposition(system, metric, feature, **cases, **wide, share=share, group=groups[k])


@dataclass(frozen=True, kw_only=True)
class PairsSettings(DecomposeSettings):
    """Which pairs of systems are judged by people, and on how many segments."""

    close: float = option(0.01, "largest difference of scores, from 0 to 1", least=0, metavar="D", basic=True)
    far: float = option(0.02, "smallest difference of shares", least=0, metavar="D", basic=True)
    pairs: int = option(1, "pairs of systems of each feature and group", least=1, metavar="N", basic=True)
    items: int = option(50, "segments of each pair", least=1, metavar="N", basic=True)
    draws: int = again(DecomposeSettings, "draws", 0)
    examples: int = again(DecomposeSettings, "examples", 0)


@dataclass(frozen=True, slots=True)
class PairRow:
    """Two systems with close scores; `better` has the smaller share."""

    group: str | None
    metric: str
    feature: str
    better: str
    worse: str
    scores: tuple[float, float]
    shares: tuple[float, float]
    segments: int
    """How many of them were put on the sheet."""


@dataclass(frozen=True, slots=True)
class Item:
    """A line of the sheet, and who wrote its texts."""

    item: int
    feature: str
    source: str
    reference: str
    texts: tuple[str, str]
    group: str | None
    id: str
    systems: tuple[str, str]
    better: int
    """Which text, 1 or 2, is that of the system with the smaller share."""


@dataclass(frozen=True, repr=False)
class Pairs(Result):
    """The pairs that were found, and the sheet for people."""

    pairs: tuple[PairRow, ...]
    items: tuple[Item, ...] = field(repr=False)
    kind: ClassVar[str] = "decomposition"

    def records(self) -> Iterator[Record]:
        return (asdict(row) for row in self.pairs)

    def tables(self, *, long: bool = False) -> Sequence[Table]:
        del long
        columns = ("group", "feature", "A: smaller share", "B", "score A", "score B", "share A", "share B", "segments")
        rows = [(pair.group or "", pair.feature, pair.better, pair.worse, *pair.scores, *pair.shares, pair.segments)
                for pair in self.pairs]  # fmt: skip
        grouped = any(pair.group for pair in self.pairs)
        return [Table(columns[not grouped :], tuple(row[not grouped :] for row in rows))]

    def write(self, folder: str | Path) -> list[Path]:
        """Return the files that were written: the sheet as TSV and as a page, and the key."""
        root = Path(folder)
        if (root / _SHEET).exists():
            raise UserError(f"{root / _SHEET} is there already, perhaps filled in: choose another folder with -o")
        make_folder(root)
        files = {_SHEET: sheet_lines(self.items), _PAGE: sheet_page(self.items), _KEY: key_lines(self.items)}
        for name, text in files.items():
            (root / name).write_text(text, "utf-8")
        return [root / name for name in files]


@takes(PairsSettings)
def pairs(data: Segments, metric: MetricLike, *, settings: PairsSettings, resources: Resources = LOCAL) -> Pairs:
    """Return pairs of systems close in the metric and far apart on a feature, with segments for people to judge."""
    dataset = as_dataset(data)
    decompositions = decompose(dataset, metric, settings=settings, resources=resources)
    selection = _choose_pairs(decompositions, settings)
    texts = {(entry.system, entry.id): entry for entry in dataset.entries}
    items: list[Item] = []
    rows: list[PairRow] = []
    for better, worse in selection:
        pair_items = list(_items(better, worse, texts, settings))
        items += pair_items
        scores, shares = (float(row.sigma_all or 0.0) for row in (better, worse)), (better.share, worse.share)
        names = better.group, better.metric, better.feature, better.system, worse.system
        rows.append(PairRow(*names, tuple(scores), shares, len(pair_items)))  # type: ignore[arg-type]
    items.sort(key=lambda item: (item.feature, str(item.group), item.systems, natural_order(item.id)))
    order = generator(settings.seed, "muler-pairs", "order").permutation(len(items)).tolist()
    return Pairs(tuple(rows), tuple(replace(items[k], item=number) for number, k in enumerate(order, start=1)))


def _choose_pairs(shares: Decompositions, settings: PairsSettings) -> list[tuple[Decomposition, Decomposition]]:
    """Return the pairs of rows that are wanted, the one with the smaller share first."""
    by_feature: dict[tuple[str | None, str], list[Decomposition]] = {}
    for row in shares:
        if row.share is not None:
            by_feature.setdefault((row.group, row.feature), []).append(row)
    every = [
        pair
        for rows in by_feature.values()
        for pair in combinations(sorted(rows, key=lambda row: (_share(row), row.system)), 2)
    ]
    if not every:
        raise UserError("no two systems of a group to compare: give two or more systems, or other columns with --group")
    eligible = [pair for pair in every if _apart(pair) <= settings.close and _between(pair) >= settings.far]
    if not eligible:
        nearest = max((pair for pair in every if _apart(pair) <= settings.close), key=_between, default=None)
        hint = "no two systems have scores that close"
        if nearest is not None:
            names = f"{nearest[0].system} and {nearest[1].system} on {nearest[0].feature}"
            hint = f"of systems that close the farthest apart are {names}: {_between(nearest):.3f}"
        limits = f"within {settings.close:g} of each other in the metric and {settings.far:g} apart in the share"
        raise UserError(f"no two systems are {limits}; {hint}. Raise --close or lower --far")
    best = []
    for key in by_feature:
        candidates = [pair for pair in eligible if (pair[0].group, pair[0].feature) == key]
        best += sorted(candidates, key=lambda pair: (-_between(pair), pair[0].system))[: settings.pairs]
    return best


def _share(row: Decomposition) -> float:
    return float(row.share or 0.0)


def _apart(pair: tuple[Decomposition, Decomposition]) -> float:
    return abs(float(pair[0].sigma_all or 0.0) - float(pair[1].sigma_all or 0.0))


def _between(pair: tuple[Decomposition, Decomposition]) -> float:
    return _share(pair[1]) - _share(pair[0])


def _items(
    better: Decomposition, worse: Decomposition, texts: Mapping[tuple[str, str], Entry], settings: PairsSettings
) -> Iterator[Item]:
    """Yield segments in which both systems have the feature and differ, in random order of the systems."""
    spans = [_spans(row) for row in (better, worse)]
    shared = sorted(spans[0].keys() & spans[1].keys(), key=natural_order)
    differing = [k for k in shared if len({texts[row.system, k].segment.hypothesis for row in (better, worse)}) > 1]
    rng = generator(settings.seed, "muler-pairs", better.feature, better.system, worse.system, str(better.group))
    for k in sorted(rng.permutation(len(differing)).tolist()[: settings.items]):
        name = differing[k]
        shown = [
            _bracket(texts[row.system, name].segment.hypothesis, system_spans[name][0])
            for row, system_spans in zip((better, worse), spans, strict=True)
        ]
        first = int(rng.integers(2))
        entry = texts[better.system, name].segment
        yield Item(
            0,
            better.feature,
            entry.source or "",
            _bracket(entry.references[0], spans[0][name][1]),
            (shown[first], shown[1 - first]),
            better.group,
            name,
            (better.system, worse.system),
            1 + first,
        )


def _spans(row: Decomposition) -> dict[str, tuple[tuple[Span, ...], tuple[Span, ...]]]:
    """Return the spans of the hypothesis and of the first reference by segment."""
    if row.segments is None:
        return {}
    segments = zip(row.segments.ids, row.segments.hypothesis_spans, row.segments.reference_spans, strict=True)
    return {name: (hypothesis, references[0]) for name, hypothesis, references in segments}


def _bracket(text: str, spans: Sequence[Span]) -> str:
    return hide_in_text(text, spans, [f"[{text[start:end]}]" for start, end in spans])


def sheet_lines(items: Sequence[Item]) -> str:
    """Return the sheet as TSV; its last column is for people."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter="\t", lineterminator="\n")
    writer.writerow(_COLUMNS)
    for item in items:
        cells = (item.source, item.reference, *item.texts)
        writer.writerow((item.item, item.feature, *(" ".join(cell.split()) for cell in cells), ""))
    return buffer.getvalue()


def key_lines(items: Sequence[Item]) -> str:
    """Return who wrote which text, one line of JSON per item."""
    names = ("item", "group", "feature", "id", "systems", "better")
    return "".join(f"{json.dumps({name: getattr(item, name) for name in names})}\n" for item in items)


_HEAD = Markup("""\
<!doctype html><html lang="en"><meta charset="utf-8"><title>Which text says it better?</title>
<style>body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}fieldset{margin:1rem 0}</style>
<h1>Which text says it better?</h1>
<p>Compare the words in brackets with those of the reference, and nothing else. Then save the sheet.</p>
""")
_ITEM = Markup("""\
<fieldset data-item="{item}"><legend>{item}: {feature}</legend>
<p>{source}</p><p>Reference: {reference}</p><p>Text 1: {one}</p><p>Text 2: {two}</p>
<label><input type="radio" name="{item}" value="1"> text 1</label>
<label><input type="radio" name="{item}" value="0"> equal</label>
<label><input type="radio" name="{item}" value="2"> text 2</label></fieldset>
""")
_TAIL = Markup("""\
<p><button>Save the sheet</button></p>
<script>
document.querySelector("button").onclick = () => {
  const lines = ["item\\tjudgement"];
  for (const one of document.querySelectorAll("fieldset")) {
    const chosen = one.querySelector("input:checked");
    lines.push(one.dataset.item + "\\t" + (chosen ? chosen.value : ""));
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([lines.join("\\n") + "\\n"]));
  link.download = "filled.tsv";
  link.click();
};
</script></html>
""")


def sheet_page(items: Sequence[Item]) -> str:
    """Return the sheet as a page that saves the judgements as TSV."""
    parts = [
        _ITEM.format(
            item=item.item,
            feature=item.feature,
            source=item.source,
            reference=item.reference,
            one=item.texts[0],
            two=item.texts[1],
        )
        for item in items
    ]
    return str(_HEAD + Markup("").join(parts) + _TAIL)


@dataclass(frozen=True, slots=True)
class TallyRow:
    """How often people found two systems equal, or one of them better; `a` is the one with the smaller share."""

    sheet: str
    group: str | None
    feature: str
    better: str
    worse: str
    n: int
    equal: int
    a: int
    b: int
    p: float | None
    """Of a two-sided sign test over the items that are not equal; None where all are."""


class Tally(Result, list[TallyRow]):
    """One row per sheet and pair of systems, and one over all pairs."""

    kind: ClassVar[str] = "decomposition"
    __repr__ = Result.__repr__

    def records(self) -> Iterator[Record]:
        return (asdict(row) for row in self)

    def display_tables(self) -> Sequence[Table]:
        columns = ("sheet", "group", "feature", "A: smaller share", "B", "n", "A = B", "A > B", "B > A", "p")
        rows = [(row.sheet, row.group or "", *tuple(asdict(row).values())[2:]) for row in self]
        note = "p: two-sided sign test over the items that are not equal"
        return [Table(columns, tuple(rows), notes=(note,))]


@dataclass(frozen=True, slots=True)
class _Known:
    """What the key says of an item."""

    item: int
    group: str | None
    feature: str
    systems: tuple[str, str]
    better: int


def tally(sheets: Sequence[str | Path], key: str | Path | None = None, *, partial: bool = False) -> Tally:
    """Return how often A was as good as B, better, or worse.

    Args:
        sheets: Filled sheets, one per annotator.
        key: Who wrote which text; None takes `key.jsonl` beside the first sheet.
        partial: Whether items without a judgement are left out instead of refused.
    """
    key_items = _read_key(Path(key) if key is not None else Path(sheets[0]).parent / _KEY)
    rows: list[TallyRow] = []
    for sheet in sheets:
        judgements = _read_judgements(Path(sheet), key_items, partial=partial)
        pairs = dict.fromkeys((item.group, item.feature, item.systems) for item in key_items.values())
        for group, feature, systems in pairs:
            members = [
                k
                for k, item in key_items.items()
                if (item.group, item.feature, item.systems) == (group, feature, systems)
            ]
            rows.append(_tally(str(sheet), (group, feature, *systems), members, key_items, judgements))
        if len(pairs) > 1:
            rows.append(_tally(str(sheet), (None, "all", "A", "B"), list(key_items), key_items, judgements))
    return Tally(rows)


def _read_key(path: Path) -> dict[int, _Known]:
    if not path.is_file():
        raise UserError(f"{path} is not there: it says who wrote which text. Name the file with --key")
    file = TextFile(path)
    items = {}
    for line, text in enumerate(file.lines(), start=1):
        item = decode(_Known, text, Where(str(path), line, "write the sheet again"))
        items[item.item] = item
    file.refuse_empty("one item per line")
    return items


def _read_judgements(path: Path, key: Mapping[int, _Known], *, partial: bool) -> dict[int, int]:
    """Return the judgements of a sheet by item; what is missing, unknown or there twice is refused."""
    columns = read_columns(path)
    for name in ("item", "judgement"):
        if name not in columns.values:
            raise DataError(f"no column {name!r}: fill in the sheet as it was written", file=str(path), line=1)
    judgements: dict[int, int] = {}
    lines: dict[int, int] = {}
    blank: list[int] = []
    for line, item, cell in zip(columns.lines, columns.values["item"], columns.values["judgement"], strict=True):
        text, answer = str(item or "").strip(), str("" if cell is None else cell).strip()
        number = int(text) if text.isascii() and text.isdigit() else -1
        if number not in key:
            raise DataError(f"no item {text!r} in the key: keep the numbers of the sheet", file=str(path), line=line)
        if number in lines:
            message = f"item {number} stands in line {lines[number]} already: keep one judgement of each item"
            raise DataError(message, file=str(path), line=line)
        lines[number] = line
        if not answer:
            blank.append(number)
        elif answer not in _JUDGEMENTS:
            message = f"the judgement of item {number} is {answer!r}, expected 1 or 2 for the better text, 0 for equal"
            raise DataError(message, file=str(path), line=line)
        else:
            judgements[number] = _JUDGEMENTS[answer]
    missing = [str(number) for number in key if number not in lines]
    if missing:
        message = f"lacks {len(missing)} of {len(key)} items: {few(missing)}. Put their lines back"
        raise DataError(message, file=str(path))
    if blank and not (partial and judgements):
        message = f"{len(blank)} of {len(key)} items have no judgement, the first is item {blank[0]}: fill them in"
        more = ", or count the others with --partial" if judgements else ""
        raise DataError(f"{message}{more}", file=str(path), line=lines[blank[0]])
    return judgements


def _tally(
    sheet: str,
    names: tuple[str | None, str, str, str],
    items: Sequence[int],
    key: Mapping[int, _Known],
    judgements: Mapping[int, int],
) -> TallyRow:
    answers = [(judgements[k], key[k].better) for k in items if k in judgements]
    a = sum(answer == better for answer, better in answers)
    equal = sum(answer == 0 for answer, _ in answers)
    b = len(answers) - a - equal
    return TallyRow(sheet, *names, len(answers), equal, a, b, sign_test(a, b))


def sign_test(a: int, b: int) -> float | None:
    """Return the two-sided p of a against b under even chances; None where both are 0.

    >>> sign_test(8, 2), sign_test(0, 0)
    (0.109375, None)
    """
    if not a + b:
        return None
    from scipy.stats import binomtest  # noqa: PLC0415 - costs more than all the rest

    return float(binomtest(a, a + b).pvalue)
