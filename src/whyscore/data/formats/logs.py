"""Logs of evaluation harnesses as data: samples with what a model generated and its targets.

lm-evaluation-harness (`--log_samples`), `samples_TASK_DATE.jsonl`, one sample per line:

| field | becomes |
|---|---|
| `doc_id` | id |
| `filtered_resps`, or `resps` | hypothesis: the first response |
| `target`, a text or a list of texts | references |
| `doc`: `source`, `src`, `document` or `article` | source |
| numbers under the names in `metrics` | further columns |

The system is the folder of the file, which lm-evaluation-harness names after the model; with several filters, each is a
system. Likelihoods of multiple-choice tasks are no texts and are refused.

Inspect (inspect_ai), `.json`, or `.eval`: a zip archive with `header.json` and one file per sample:

| field | becomes |
|---|---|
| `id`, with `epoch` where there are several | id |
| `output`: the content of the first choice | hypothesis |
| `target`, a text or a list of texts | references |
| `input`, a text or the last message of the user | source |
| `eval.model` | system |
| numbers in `scores` | further columns |
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from whyscore.data.files import Limits, TextFile, open_bundle
from whyscore.data.formats.jsonl import objects, parse_object
from whyscore.errors import DataError
from whyscore.types import Dataset, Entry, Segment

_SAMPLE = {"doc_id", "doc", "target", "resps"}
_SOURCES = ("source", "src", "document", "article")
Object = Mapping[str, object]


def is_lm_eval(keys: Iterable[str]) -> bool:
    """Return whether an object has the fields of a sample of lm-evaluation-harness."""
    return set(keys) >= _SAMPLE


def lm_eval_of(file: TextFile) -> Dataset:
    """Return the data set in a file of samples of lm-evaluation-harness."""
    path = Path(file.name)
    model = path.parent.name if path.name.startswith("samples_") and path.parent.name else path.stem
    samples = list(objects(file, []))
    file.refuse_empty("one sample per line")
    filters = {str(sample.get("filter", "none")) for _, sample in samples}
    entries = []
    for line, sample in samples:
        system = model if len(filters) == 1 else f"{model} ({sample.get('filter', 'none')})"
        entries.append(_sample(sample, system, file.name, line))
    return Dataset(path.name, tuple(entries), None, tuple(file.findings))


def _sample(sample: Object, system: str, file: str, line: int) -> Entry:
    response: object = sample.get("filtered_resps") or sample["resps"]
    while isinstance(response, list) and response:
        response = response[0]
    if not isinstance(response, str):
        raise DataError(
            f"the response is {response!r}, expected a text: only tasks that generate text can be read",
            file=file,
            line=line,
        )
    doc = sample["doc"] if isinstance(sample["doc"], dict) else {}
    source = next((doc[name] for name in _SOURCES if isinstance(doc.get(name), str)), None)
    segment = Segment(response, source, _texts(sample["target"], f"{file}:{line}"))
    names = sample.get("metrics")
    numbers = {str(name): sample.get(str(name)) for name in names} if isinstance(names, list) else {}
    return Entry(str(sample["doc_id"]), system, segment, extra=_numbers(numbers))


def inspect_of(path: str | Path, limits: Limits) -> Dataset:
    """Return the data set in a log of inspect_ai."""
    place = Path(path)
    if place.suffix.lower() == ".json":
        log = _log("\n".join(TextFile(path, limits=limits).lines()), str(path))
        header, samples = log, log.get("samples") or []
        named = [(str(path), sample) for sample in samples] if isinstance(samples, list) else []
    else:
        bundle = open_bundle(path, "a log of inspect_ai", limits)
        if "header.json" not in bundle.members:
            raise DataError("holds no header.json: expected a finished log of inspect_ai", file=str(path))
        header = _log("\n".join(bundle.lines("header.json").texts), bundle.file("header.json"))
        inside = [name for name, full in bundle.members.items() if full.startswith("samples/")]
        named = [
            (bundle.file(name), parse_object("\n".join(bundle.lines(name).texts), bundle.file(name), 1))
            for name in inside
        ]
    about = header.get("eval")
    model = about.get("model") if isinstance(about, dict) else None
    if not isinstance(model, str) or not named:
        raise DataError("is not a log of inspect_ai with samples: JSON lines end in .jsonl", file=str(path))
    entries = tuple(_read_samples(named, model))
    return Dataset(place.name, entries)


def _log(text: str, file: str) -> dict[str, object]:
    if not text.lstrip().startswith("{"):
        raise DataError("is not a log of inspect_ai: JSON lines end in .jsonl", file=file)
    return parse_object(text, file, 1)


def _read_samples(named: list[tuple[str, object]], model: str) -> Iterator[Entry]:
    samples = [(file, sample) for file, sample in named if isinstance(sample, dict)]
    epochs = any(sample.get("epoch", 1) != 1 for _, sample in samples)
    for file, sample in samples:
        name = f"{sample.get('id')}/{sample.get('epoch', 1)}" if epochs else str(sample.get("id"))
        where = f"{file}: sample {name}"
        answer = _answer(sample.get("output"))
        if answer is None:
            raise DataError(f"{where} has no output: the evaluation was not finished, or failed there")
        source = _source(sample.get("input"))
        scores = sample.get("scores")
        results = scores.items() if isinstance(scores, dict) else ()
        values = {str(key): result.get("value") for key, result in results if isinstance(result, dict)}
        yield Entry(name, model, Segment(answer, source, _texts(sample.get("target"), where)), extra=_numbers(values))


def _answer(output: object) -> str | None:
    """Return what the model said."""
    if not isinstance(output, dict):
        return None
    choices = output.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    answer = _content(first.get("message")) if isinstance(first, dict) else None
    completion = output.get("completion")
    return answer if answer is not None else completion if isinstance(completion, str) else None


def _source(prompt: object) -> str | None:
    """Return what the model was asked: a text, or the last message of the user."""
    if isinstance(prompt, str):
        return prompt
    messages = prompt if isinstance(prompt, list) else []
    users = [message for message in messages if isinstance(message, dict) and message.get("role") == "user"]
    return _content(users[-1]) if users else None


def _content(message: object) -> str | None:
    """Return the text of a message: a text, or the texts of its parts."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
        content = "".join(part for part in parts if isinstance(part, str)) if parts else None
    return content if isinstance(content, str) else None


def _texts(target: object, where: str) -> tuple[str, ...]:
    texts = target if isinstance(target, list) else [target]
    if not all(isinstance(text, str) for text in texts):
        raise DataError(f"{where}: the target is {target!r}, expected a text or a list of texts")
    return tuple(text for text in texts if isinstance(text, str) and text)


def _numbers(values: Mapping[str, object]) -> dict[str, float]:
    numbers = {name: value for name, value in values.items() if isinstance(value, int | float)}
    return {name: float(value) for name, value in numbers.items() if math.isfinite(value)}
