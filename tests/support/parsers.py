"""Every parser of user files outside the readers of data sets, with valid files for each.

A `ParserFixture` is a folder of valid files, the function that parses it, and which of the files may be corrupted.
Whatever the bytes, parsing gives a value or one error of whyscore's own, on one line. `run_folders` has the folders
that whyscore writes itself.
"""

import gzip
import io
import json
import pickle
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, cast

import numpy as np
import openpyxl
from numpy.typing import NDArray

from whyscore.analysis.boost import boosted
from whyscore.analysis.calibrate.file import Calibration
from whyscore.analysis.decompose.sentences import Columns, lexicon_values
from whyscore.analysis.metaeval.annotators import read_annotators
from whyscore.analysis.metaeval.tables import read_columns, read_wmt, score_table, with_ratings, with_records
from whyscore.data.formats.wmt import read_submissions
from whyscore.data.reading import read as read_data
from whyscore.errors import WhyscoreError
from whyscore.experiments.bmx.summeval import ASPECTS, SPLIT, read_summeval
from whyscore.experiments.muler.submissions import read_shares, tally
from whyscore.explainers.logprob import LogProb
from whyscore.garbage import gc_paused
from whyscore.metrics import lookup as lookup_file
from whyscore.metrics.estimators.qe import FORMAT, TREES, digest_of, load
from whyscore.metrics.estimators.tables import Tables, make_table, word_keys
from whyscore.metrics.learned.comet import checkpoint as comet_settings
from whyscore.metrics.learned.transquest import layout_of
from whyscore.metrics.matching import weights as matching_weights
from whyscore.metrics.matching import weights as moverscore_masses
from whyscore.metrics.matching.moverscore import stop_words
from whyscore.models.checkpoints import ModelLocation, licence_of, read, read_json
from whyscore.models.encoders import sentence
from whyscore.models.encoders.stacks import languages_of
from whyscore.models.lexicon import learn_lexicon, read_lexicon, write_lexicon
from whyscore.models.maps import LanguageMap, read_links, read_map, write_map
from whyscore.models.word_vectors import BinaryVectors, TextVectors
from whyscore.protocols import Encoder
from whyscore.registry import build
from whyscore.report.build import figures_in
from whyscore.taggers.aligned import Lines, Pretagged
from whyscore.taggers.conllu import Conllu
from whyscore.taggers.lexicon import Lexicon
from whyscore.text.infill import Infill, InfillFile
from whyscore.text.splitters import white_space
from whyscore.types import Place, Segment, Side

Files = Mapping[str, bytes]


class ParserFixture(NamedTuple):
    """Valid files by name, what parses their folder, and which of them may be corrupted (all, if none is named)."""

    files: Files
    parse: Callable[[Path], object]
    corruptible: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The files that may be corrupted."""
        return self.corruptible or tuple(sorted(self.files))

    def write(self, folder: Path, changed: Files | None = None) -> Path:
        """Write the files to the folder, some of them with other contents, and return it."""
        for name, content in {**self.files, **(changed or {})}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        return folder


def refusal(fixture: ParserFixture, folder: Path) -> str | None:
    """Return the error with which a folder is refused, None where it is parsed; anything else is raised."""
    try:
        with gc_paused():  # as in read_everything
            fixture.parse(folder)
    except WhyscoreError as error:
        told = str(error)
        if "\n" in told.strip() or not told.strip():
            raise AssertionError(f"an error is one line, got {told!r}") from error
        return told
    return None


class _Encoded(NamedTuple):
    pieces: tuple[str, ...]


class _Pieces(NamedTuple):
    """An encoder whose pieces are words."""

    name: str = "words"

    def encode(self, texts: Sequence[str]) -> list[_Encoded]:
        """Return the words of each text."""
        return [_Encoded(tuple(text.split())) for text in texts]


_ENCODER = cast("Encoder", _Pieces())
_WORDS = white_space("a bad cat")
_HIDDEN = [(_WORDS, np.array([[True, False, True]]))]
_SEGMENT = Segment("a bad cat", "x y", ("a cat",))


def _json(*rows: object) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _at(name: str, opened: Callable[[str], object], content: bytes) -> ParserFixture:
    """Return the fixture of a parser of one file."""
    return ParserFixture({name: content}, lambda folder: opened(str(folder / name)))


_CANDIDATE = {"text": "a bad cat", "word": 1, "candidate": "good", "probability": 0.5}
_LOGPROBS = {"tokens": ["▁a", "▁b", "ad", "▁cat"], "logprobs": [-0.5, -1, -2.0, -0.25, -3]}
_CONLLU = (
    b"# text = a bad cat\n1\ta\ta\tDET\tDT\tNum=Sing|X=y\t3\tdet\t_\t_\n2-3\tbad cat\t_\t_\t_\t_\t_\t_\t_\tNER=B-X\n"
    b"2\tbad\tbad\tADJ\tJJ\t_\t3\tamod\t_\t_\n3\tcat\tcat\tNOUN\tNN\t_\t0\troot\t_\tSpaceAfter=No\n"
)
_SVG = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><g><rect width="1" fill="url(#a)"/>'
    b"<text>a &amp; b</text></g></svg>"
)
_HPARAMS = (
    b"class_identifier: unified_metric\npretrained_model: xlm-roberta-large\nhidden_sizes:\n- 8\n- 4\nlayer: mix\n"
    b"sent_layer: mix\nword_layer: 2\nword_level_training: true\nactivations: Tanh\nlayer_norm: false\npool: avg\n"
    b"final_activation: null\nlayer_transformation: sparsemax\ninput_segments:\n- mt\n- src\n"
)
_OPTIONS = {
    "class_identifier": "unified_metric", "pretrained_model": "xlm-roberta-large", "hidden_sizes": [8, 4],
    "layer": "mix", "layer_transformation": "softmax", "sent_layer": 1, "word_layer": 2, "word_level_training": True,
    "activations": "Tanh", "final_activation": None, "input_segments": ["mt", "src"], "error_labels": ["minor"],
}  # fmt: skip
_CARD = b"---\nlanguage:\n- de\n- no\nlicense: other\nlicense_name: mine\n---\n# A card\n"
_RATED = b"system,seg_id,rater,severity,category,human,chrf\na,0,r,Major,Accuracy,1,2\nb,0,r,Minor,Fluency,0.5,1\n"
_RECORDS = _json(
    {"schema": "whyscore/1", "schema_version": 1, "kind": "scores", "created": "2026-01-01T00:00:00Z", "data": "d"},
    {"system": "a", "id": "0", "metric": "m", "score": 0.5},
)
_INSTANCE = {"instance_id": "i", "references": ["a cat"], "systems": {"a": "a bad cat"}}
_ASPECTS = dict.fromkeys(ASPECTS, 3)
_ANNOTATED = {
    "id": "i",
    "model_id": "a",
    "decoded": "a bad cat",
    "references": ["a cat"],
    "expert_annotations": [_ASPECTS],
}
_SUMMARY = {"system_summary": "<t> a bad cat </t>", "scores": {"litepyramid_recall": np.float64(0.5), "js-2": -1.5}}
_REALSUMM = {7: {"doc_id": 7, "ref_summ": "<t> a cat </t>", "system_summaries": {"a.txt": _SUMMARY}}}
_RATINGS = ",".join(["instance_id", "system", SPLIT, *(f"expert_{aspect}_raw" for aspect in ASPECTS)])


def _calibration() -> bytes:
    setting = dict.fromkeys(("name", "group", "human", "coefficient", "level", "data", "documents"), "a")
    numbers = ("n", "improving", "improving_more", "configurations")
    setting |= dict.fromkeys(numbers, 4)  # type: ignore[arg-type]
    shares = ("before", "after", "degenerate", "own_p", "own_w", "best_p", "best_w", "best_gain")
    setting |= dict.fromkeys(shares, 0.5)  # type: ignore[arg-type]
    outcome = {"source": "erasure", "protocol": "in-domain", "setting": "a", "n": 4, "w": 0.5, "p": None}
    outcome |= dict.fromkeys(("before", "after", "gain"), 0.25)
    found = {
        "schema": "whyscore/1", "schema_version": 1, "kind": "calibration", "metric": "token_f1",
        "metric_signature": str(build("token_f1").signature()), "explainer": "erasure", "masker": None,
        "unit": "word", "parts": "all",
        "aggregator": "power_mean(1.5)", "rule": "median", "epsilon": 0.0, "parameters": [1.5], "weights": [0.5],
        "scale": "none", "shift": 0.0, "stretch": 1.0, "p": 1.5, "w": 0.5, "shrinkage": None, "nearest": 1.5,
        "degenerate": 0.0, "settings": [setting], "outcomes": [outcome], "verdict": "better", "notes": ["n"],
        "inputs": ["0123456789abcdef"], "seed": 0, "versions": {"whyscore": "1"},
    }  # fmt: skip
    return json.dumps(found, indent=1).encode()


def _boosting(path: str) -> object:
    found = Calibration.load(path)
    return boosted(calibration=found), found.digest, found.overlap([_SEGMENT]), found.boosted


def _map(name: str) -> bytes:
    """Return a map as it is written to a file of that name."""
    with TemporaryDirectory() as place:
        write_map(LanguageMap(np.eye(3), np.array([1.0, 0.0, 0.0]), {"model": "m"}), Path(place) / name)
        return (Path(place) / name).read_bytes()


@lru_cache(maxsize=2)
def _lexicon(name: str) -> bytes:
    """Return a lexicon as it is written to a file of that name."""
    with TemporaryDirectory() as place:
        write_lexicon(learn_lexicon(["das Haus", "das Buch"], ["the house", "the book"]), Path(place) / name)
        return (Path(place) / name).read_bytes()


@lru_cache(maxsize=1)
def _estimator() -> bytes:
    """Return a small file of weights as `qe` reads it."""
    table = make_table(word_keys(["cat"]), [np.ones(1, dtype=np.float32)] * 2, 0.0, 1.0)
    card = {"pairs": {"de-en": ["edits"]}, "networks": 0, "calibration": {}}
    arrays: dict[str, NDArray[np.generic]] = Tables(*[table] * 6).arrays()
    arrays |= {name: np.ones(1, dtype=np.float32) for name in ("mean", "deviation", "scale")}
    arrays["components"] = np.ones((1, 1), dtype=np.float32)
    arrays["card"] = np.frombuffer(json.dumps(card).encode(), dtype=np.uint8)
    for name in TREES:
        parts = {part: np.zeros((1, 1)) for part in ("features", "thresholds", "missing_left", "values")}
        parts |= {"children": np.zeros((1, 1, 2)), "start": np.zeros(2)}
        arrays |= {f"trees.{name}.{part}": values for part, values in parts.items()}
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, format=np.array(FORMAT), digest=np.array(digest_of(arrays)), **arrays)
    return file.getvalue()


def _linked(path: str) -> object:
    return read_lexicon(path).links(["the", "house"], ["das", "Haus"])


def _mapped(path: str) -> object:
    found = read_map(path)
    kinds = [kind for kind, held in (("clp", found.projection), ("umd", found.direction)) if held is not None]
    return [found.apply(np.ones((2, found.width)), kind) for kind in kinds]  # type: ignore[arg-type]


def _fasttext() -> bytes:
    head = struct.pack("<2i12id3i2q", 793712314, 12, 2, 5, 5, 1, 5, 1, 1, 1, 3, 2, 3, 0, 1e-4, 2, 2, 0, 9, -1)
    words = b"".join(word + b"\0" + struct.pack("<qb", 3, 0) for word in (b"</s>", b"cat"))
    return head + words + struct.pack("<b2q", 0, 5, 2) + np.arange(10, dtype="<f4").tobytes()


def _tensors() -> bytes:
    header = json.dumps({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    return struct.pack("<Q", len(header)) + header + np.ones(2, dtype="<f4").tobytes()


def _tagged(tagger: Callable[[str, str], Conllu | Pretagged]) -> Callable[[str], object]:
    def opened(path: str) -> object:
        made = tagger(path, path)
        return made.tag_lines(Lines([["a bad cat"]], {"a": ["a bad cat"]})), made.signature()

    return opened


def _scored(path: str) -> object:
    columns = read_columns(path)
    return score_table(columns, ["human", "chrf"])


def _joined(path: str) -> object:
    rated = Path(path).with_name("sound.csv")
    rated.write_bytes(_RATED)
    table = score_table(read_columns(rated), ["human"])
    return with_ratings(table, path) if path.endswith(".csv") else with_records(table, path)


def _explained(path: str) -> object:
    return LogProb(path).word_scores([_SEGMENT], Place(Side.HYPOTHESIS), [_WORDS])


def _vectors(kind: type[TextVectors] | type[BinaryVectors]) -> Callable[[str], object]:
    return lambda path: (kind(path).vectors(["cat", "a", "dog"]), kind(path).signature())


@lru_cache(maxsize=1)
def _workbook() -> bytes:
    book, buffer = openpyxl.Workbook(), io.BytesIO()
    for row in (("source", "mt", "ref"), ("eine Katze", "a cat", "the cat")):
        book.active.append(row)
    book.save(buffer)
    return buffer.getvalue()


def parsers() -> Mapping[str, ParserFixture]:
    """Return the fixtures of files, tables, models and lists, by name."""
    vectors = b"2 3\ncat 1 0 0.5\na -1 2e-3 0\n"
    numbers = io.BytesIO()
    np.savetxt(numbers, np.eye(3))
    lines = b"a bad cat\nthe dog\n"
    index = json.dumps({"metadata": {"total_size": 8}, "weight_map": {"a": "model-1.safetensors"}}).encode()
    quest = {"max_seq_length": 8, "labels_list": ["OK", "BAD"], "tag": "_"}
    read_card = ParserFixture(
        {"README.md": _CARD}, lambda folder: (languages_of(folder), licence_of(str(folder), folder))
    )  # fmt: skip
    return {
        "lookup.jsonl": _at("scores.jsonl", lambda path: lookup_file.read(path, "score"),
                            _json({"hypothesis": "a", "source": "b", "references": ["c"], "score": 1.5})),
        "lookup.csv": _at("scores.csv", lambda path: lookup_file.read(path, "score"), b'hypothesis,score\n"a, b",1\n'),
        "lookup.tsv": _at("scores.tsv", lambda path: lookup_file.read(path, "score"), b"hypothesis\tscore\na\t-1e3\n"),
        "infill.jsonl": _at("infill.jsonl", lambda path: InfillFile(path).render(_HIDDEN), _json(_CANDIDATE)),
        "corpus.txt": _at("corpus.txt", lambda path: Infill(path).render(_HIDDEN), lines),
        "idf.json": _at("idf.json", lambda path: matching_weights.read_idf(path, _ENCODER),
                        b'{"unknown": 6.9, "known": {"a": 0.1, "b": 2}}\n'),
        "idf.txt": _at("idf.txt", lambda path: matching_weights.read_idf(path, _ENCODER).digest, lines),
        "masses.txt": _at("masses.txt", lambda path: moverscore_masses.table_of(path, _ENCODER).digest, lines),  # type: ignore[union-attr]
        "book.xlsx": _at("book.xlsx", read_data, _workbook()),
        "stop.txt": _at("stop.txt", stop_words, b"the\na\n"),
        "baseline.tsv": _at("baseline.tsv", lambda path: matching_weights.read_baseline(path, 1),
                            b"LAYER\tP\tR\tF\n0\t0.1\t0.2\t0.3\n1\t0.5\t0.5\t0.25\n"),
        "logprob.jsonl": _at("logprob.jsonl", _explained, _json(_LOGPROBS)),
        "logprob.bpe": ParserFixture({"bpe/mt.bpe": b"a b@@ ad cat\n", "bpe/word_probas": b"-0.5 -1 -2 -0.25\n"},
                            lambda folder: _explained(str(folder / "bpe"))),
        "calibration.json": _at("c.json", _boosting, _calibration()),
        "lexicon.tsv": _at("l.tsv", lambda path: lexicon_values(path, Columns()), b"Word\tConc.M\ncat\t4.5\na\t1\n"),
        "lexicon.csv": _at("l.csv", lambda path: lexicon_values(path, Columns("Valence")),
                           b'"Word","V.Mean.Sum"\n"cat",4.5\n"a b",1\n'),
        "qe.npz": _at("qe.npz", lambda path: load(Path(path)), _estimator()),
        "list.txt": _at("list.txt", lambda path: Lexicon((f"list:{path}",)).tag(["a bad cat"]), b"bad cat\na\n"),
        "a.conllu": _at("a.conllu", _tagged(Conllu), _CONLLU),
        "tags.txt": _at("tags.txt", _tagged(Pretagged), b"DT JJ NN\n"),
        "hparams.yaml": _at("hparams.yaml", lambda path: comet_settings.settings_of(str(Path(path).parent)), _HPARAMS),
        "hparams as JSON": _at("hparams.yaml", lambda path: comet_settings.settings_of(str(Path(path).parent)),
                               json.dumps(_OPTIONS).encode()),
        "transquest": ParserFixture(
            {"model_args.json": json.dumps(quest).encode(), "config.json": b'{"id2label": {"0": "OK", "1": "BAD"}}',
             "1_Pooling/config.json": b'{"pooling_mode_mean_tokens": true}', "model.safetensors": _tensors()},
            lambda folder: layout_of(str(folder), "micro"),
            ("model_args.json", "config.json", "1_Pooling/config.json"),
        ),
        "README.md": read_card,
        "sentence": ParserFixture(
            {"modules.json": _json([{"idx": 0, "type": "a.Transformer", "path": ""}]),
             "1_Pooling/config.json": b'{"pooling_mode_mean_tokens": true}'},
            lambda folder: (sentence._modules(ModelLocation("m", folder, hub=False)),
                            sentence._pools(folder / "1_Pooling" / "config.json")),
        ),
        "config.json": _at("config.json", lambda path: read_json(Path(path)), b'{"model_type": "bert"}'),
        "weights": ParserFixture({"model.safetensors.index.json": index, "model-1.safetensors": _tensors()},
                        lambda folder: read(folder / "model.safetensors.index.json", "comet")),
        "translations.npz": _at("translations.npz", _linked, _lexicon("translations.npz")),
        "translations.tsv": _at("translations.tsv", _linked, _lexicon("translations.tsv")),
        "map.npz": _at("map.npz", _mapped, _map("map.npz")),
        "map.safetensors": _at("map.safetensors", _mapped, _map("map.safetensors")),
        "map.txt": _at("map.txt", _mapped, numbers.getvalue()),
        "vectors.vec": _at("vectors.vec", _vectors(TextVectors), vectors),
        "vectors.vec.gz": _at("vectors.vec.gz", _vectors(TextVectors), gzip.compress(vectors, mtime=0)),
        "vectors.bin": _at("vectors.bin", _vectors(BinaryVectors), _fasttext()),
        "links.txt": _at("links.txt", lambda path: read_links(Path(path).read_text("utf-8", "replace").split("\n")),
                         b"0-0 1-2\n0-1\n"),
        "picture.svg": ParserFixture({"figures/a.svg": _SVG, "figures/a.txt": b"a caption\n"}, figures_in),
        "table.csv": _at("table.csv", _scored, _RATED),
        "table.jsonl": _at("table.jsonl", _scored, _json({"system": "a", "seg_id": 0, "human": 1, "chrf": 2})),
        "ratings.csv": _at("ratings.csv", _joined, _RATED),
        "records.jsonl": _at("records.jsonl", _joined, _RECORDS),
        "wmt": ParserFixture({"human-scores/en-de.mqm.seg.score": b"a\t0.5\nb None\n",
                     "metric-scores/en-de/bleu-refA.seg.score": b"a\t1\nb 2\n"},
                    lambda folder: read_wmt(folder, "en-de", "mqm")),
        "submissions": ParserFixture({"newstest2019.a.0.de-en": b"a cat\na dog\n",
                             "newstest2019-deen-ref.en": b"a cat\nthe dog\n"}, read_submissions),
        "judged": ParserFixture({"sheet.tsv": b"item\tjudgement\n1\t2\n",
                        "key.jsonl": _json({"item": 1, "group": None, "feature": "N", "systems": ["a", "b"],
                                            "better": 1})},
                       lambda folder: tally([folder / "sheet.tsv"])),
        "shares.tsv": _at("shares.tsv", read_shares,
                          b"system\tfeature\tsigma_all\tsigma\toracle\tanti\na\tN\t.1\t.1\t.2\t0\n"),
        "annotators.tags": _at("annotators.tags", lambda path: read_annotators([path]), b"0 1 0\n1 1\n"),
        "annotations.jsonl": _at("annotations.jsonl", read_data, _json(_ANNOTATED)),
        "abs.pkl": _at("abs.pkl", read_data, pickle.dumps(_REALSUMM, protocol=3)),
        "summeval": ParserFixture({"scores.csv": f"{_RATINGS}\ni,a,0{',1|2' * len(ASPECTS)}\n".encode(),
                          "texts.jsonl": _json(_INSTANCE)},
                         lambda folder: read_summeval(folder / "scores.csv", folder / "texts.jsonl")),
    }  # fmt: skip
