"""Judged summaries as their authors publish them: SummEval and REALSumm.

SummEval (Fabbri et al. 2021), `model_annotations.aligned.jsonl`, one summary per line:

| field | becomes |
|---|---|
| `id` | id and document |
| `model_id` | system |
| `decoded` | hypothesis |
| `references`, or `reference` | references |
| `text` (in the paired file) | source |
| `expert_annotations`: coherence, consistency, fluency, relevance of three raters | mean under the same names |
| `turker_annotations`, of five | mean under `turker_coherence` ... |

REALSumm (Bhandari et al. 2020), `abs.pkl` and `ext.pkl`, or a folder that holds them: a dictionary of documents with
`ref_summ` and `system_summaries`, each with `system_summary` and `scores`. `litepyramid_recall` is the human score; all
other scores stay as columns. Systems are named as there, without `.txt`; one that both files hold gets `_ext` in the
second. `<t>` and `</t>`, which surround sentences, are left out.

Pickled files can run code when they are read. These hold dictionaries, texts and numbers, and nothing else is let in:
any other object is refused before it is made. A few bytes can also ask for gigabytes, or name the same dictionary a
thousand times: there are no more places and no more summaries in a file than it has bytes.
"""

import io
import math
import pickle
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NoReturn, cast

from whyscore.data.files import Limits, TextFile
from whyscore.data.formats.jsonl import objects
from whyscore.errors import DataError
from whyscore.text.files import check_places
from whyscore.types import Dataset, Entry, Segment

ASPECTS = ("coherence", "consistency", "fluency", "relevance")
PYRAMID = "litepyramid_recall"
REALSUMM = ("abs.pkl", "ext.pkl")
_KEYS = {"decoded", "expert_annotations", "model_id"}
_RATERS = {"expert_annotations": "", "turker_annotations": "turker_"}


def is_summeval(keys: Iterable[str]) -> bool:
    """Return whether an object has the fields of SummEval's annotations."""
    return set(keys) >= _KEYS


def summeval_of(file: TextFile) -> Dataset:
    """Return the data set in a file of SummEval's annotations."""
    entries = []
    for line, value in objects(file, []):
        entries.append(_annotated(value, file.name, line))
    file.refuse_empty("one summary per line")
    return Dataset(Path(file.name).name, tuple(entries), None, tuple(file.findings))


def _annotated(value: Mapping[str, object], file: str, line: int) -> Entry:
    name, system, summary = (_text(value, key, file, line) for key in ("id", "model_id", "decoded"))
    references = value.get("references", value.get("reference"))
    listed = [references] if isinstance(references, str) else references
    if not isinstance(listed, list) or not all(isinstance(text, str) for text in listed):
        raise DataError("'references' must be a list of texts", file=file, line=line)
    source = value.get("text")
    segment = Segment(summary, source if isinstance(source, str) else None, tuple(cast("list[str]", listed)))
    human = {
        f"{prefix}{aspect}": _mean(value.get(field), aspect, file, line)
        for field, prefix in _RATERS.items()
        if value.get(field)
        for aspect in ASPECTS
    }
    return Entry(name, system, segment, human, document=name)


def _text(value: Mapping[str, object], key: str, file: str, line: int) -> str:
    found = value.get(key)
    if not isinstance(found, str) or not (found or key == "decoded"):
        raise DataError(f"{key!r} is {found!r}, expected a text", file=file, line=line)
    return found


def _mean(raters: object, aspect: str, file: str, line: int) -> float:
    """Return the mean rating of an aspect; ratings are whole numbers, so that equal means stay equal."""
    ratings = (
        [rater.get(aspect) if isinstance(rater, dict) else None for rater in raters] if isinstance(raters, list) else []
    )
    numbers = [float(rating) for rating in ratings if isinstance(rating, int | float) and math.isfinite(rating)]
    if not numbers or len(numbers) < len(ratings):
        raise DataError(
            f"cannot read the ratings of {aspect}: expected a number from every rater", file=file, line=line
        )
    return math.fsum(numbers) / len(numbers)


def realsumm_of(path: str | Path, limits: Limits) -> Dataset:
    """Return the data set in a file of REALSumm, or in the folder of both."""
    place = Path(path)
    files = [place / name for name in REALSUMM if (place / name).is_file()] if place.is_dir() else [place]
    taken: set[str] = set()
    entries: list[Entry] = []
    for file in files:
        documents = _plain_values(file, limits)
        most = file.stat().st_size
        own = list(islice(_judged(documents, str(file), taken), most + 1))
        if len(own) > most:
            raise DataError(f"names the same summaries again and again: more than {most}, its bytes", file=str(file))
        taken |= {entry.system for entry in own}
        entries += own
    if not entries:
        raise DataError("holds no summary", file=str(path))
    return Dataset(place.name, tuple(entries))


def _judged(documents: object, file: str, taken: set[str]) -> Iterator[Entry]:
    if not isinstance(documents, dict):
        raise DataError("expected a dictionary of documents, as in REALSumm", file=file)
    for number, document in documents.items():
        reference, systems = _fields(document, ("ref_summ", "system_summaries"), f"document {number}", file)
        if not isinstance(systems, dict):
            raise DataError(f"document {number}: 'system_summaries' is not a dictionary", file=file)
        for key, summary in systems.items():
            where = f"document {number}, {key}"
            text, scores = _fields(summary, ("system_summary", "scores"), where, file)
            if not (isinstance(reference, str) and isinstance(text, str) and isinstance(scores, dict)):
                raise DataError(f"{where}: expected two texts and a dictionary of scores", file=file)
            name = str(key).removesuffix(".txt")
            system = f"{name}_ext" if name in taken else name
            numbers = {str(score): value for score, value in scores.items() if _is_number(value)}
            human = {PYRAMID: numbers.pop(PYRAMID)} if PYRAMID in numbers else {}
            segment = Segment(_unmarked(text), None, (_unmarked(reference),))
            yield Entry(str(number), system, segment, human, document=str(number), extra=numbers)


def _fields(value: object, names: Sequence[str], where: str, file: str) -> list[object]:
    if not isinstance(value, dict) or any(name not in value for name in names):
        raise DataError(f"{where}: expected {' and '.join(map(repr, names))}", file=file)
    return [value[name] for name in names]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _unmarked(text: str) -> str:
    return " ".join(text.replace("<t>", " ").replace("</t>", " ").split())


class _Dtype:
    """Stands for the type of a number that numpy pickled."""

    def __init__(self, code: str, *_: object) -> None:
        self.code = code

    def __setstate__(self, _state: object) -> None:
        """Ignore byte order and alignment: the machines that wrote these files were little-endian."""


def _scalar(dtype: object, content: object) -> float:
    """Return a number that numpy pickled."""
    codes = {"f8": "<d", "f4": "<f", "i8": "<q", "i4": "<i"}
    if not isinstance(dtype, _Dtype) or dtype.code not in codes or not isinstance(content, bytes):
        raise pickle.UnpicklingError("holds a number of an unknown type")
    return float(struct.unpack(codes[dtype.code], content)[0])


class _Plain(pickle.Unpickler):
    """Reads dictionaries, lists, texts and numbers, those of numpy included; refuses everything else."""

    def find_class(self, module: str, name: str) -> object:
        known = {
            ("numpy.core.multiarray", "scalar"): _scalar,
            ("numpy._core.multiarray", "scalar"): _scalar,
            ("numpy", "dtype"): _Dtype,
        }
        if (module, name) not in known:
            raise pickle.UnpicklingError(f"names {module}.{name}: only dictionaries, texts and numbers are read")
        return known[module, name]

    def persistent_load(self, _name: object) -> NoReturn:
        raise pickle.UnpicklingError("points outside the file")


def _plain_values(file: Path, limits: Limits) -> object:
    try:
        if file.stat().st_size > limits.file:
            raise DataError(f"has more than {limits.file} bytes: raise --max-file", file=str(file))
        content = file.read_bytes()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=str(file)) from error
    try:
        check_places(content)
        return cast("object", _Plain(io.BytesIO(content)).load())
    except Exception as error:  # a damaged file raises whatever its instructions happen to run into
        told = " ".join(str(error).split())[:200] or type(error).__name__
        raise DataError(f"is not a REALSumm file: {told}", file=str(file)) from error
