"""What a judge is asked: protocols, their prompts, and the form of their answers.

| protocol | asks for | score of an answer |
|---|---|---|
| `score` | a number | direct assessment, 0 to 100 |
| `esa` | error spans, then a number | error span annotation (Kocmi et al. 2024, arXiv 2406.11580), 0 to 100 |
| `mqm` | error spans with category and severity | minus their MQM weights as WMT has them, -25 at the least |
| `pairwise` | A, B or tie; hypothesis and reference in both orders | 100 if the hypothesis is better, 50 for a tie, 0 |
| `summary` | the four aspects of SummEval, 1 to 5 | their mean |

A prompt is a text file with the lines `=== system` and `=== user` before the two messages (a file without them is the
user's message), and with fields in braces; other braces are left alone:

| field | becomes |
|---|---|
| `{texts}` | the texts that the judge reads, each between its tags, after the context |
| `{context}` | the segments before it in its document, where there are any |
| `{source}` `{hypothesis}` `{reference}` | one of them (all references together) |
| `{languages}` | ` from English into German`, or nothing where the languages are not known |
| `{source_language}` `{target_language}` | the names of the languages |
| `{code}` | what the tags carry |

Texts are untrusted. Each stands between tags that carry a code, which is a digest of all texts of the question and
occurs in none of them: no text can close its own tag.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib import resources
from pathlib import Path
from typing import Literal, NamedTuple

from whyscore.data.codec import Where, convert_segment
from whyscore.errors import DataError, SpecError
from whyscore.metrics.learned.prompts import language_name, language_pair
from whyscore.metrics.needs import present
from whyscore.scoring.answers import read_lines
from whyscore.text.files import text_of
from whyscore.types import Inputs, Segment

Name = Literal["score", "esa", "mqm", "pairwise", "summary"]
Against = Literal["source", "reference", "both"]
Message = dict[str, str]
ASPECTS = ("coherence", "consistency", "fluency", "relevance")
SEVERITIES = ("neutral", "minor", "major", "critical")
_FIELD = re.compile(r"\{([a-z_]+)\}")
_FIELDS = (
    "texts",
    "context",
    "source",
    "hypothesis",
    "reference",
    "languages",
    "source_language",
    "target_language",
    "code",
)
_ROLE = re.compile(r"^=== (system|user)\s*$", re.MULTILINE)
_TEXTS: Mapping[str, Inputs] = {
    "source": Inputs.SOURCE,
    "hypothesis": Inputs.HYPOTHESIS,
    "reference": Inputs.REFERENCES,
}
_AGAINST: Mapping[str, Inputs] = {
    "source": Inputs.HYPOTHESIS | Inputs.SOURCE | Inputs.CONTEXT,
    "reference": Inputs.HYPOTHESIS | Inputs.REFERENCES | Inputs.CONTEXT,
    "both": Inputs.HYPOTHESIS | Inputs.SOURCE | Inputs.REFERENCES | Inputs.CONTEXT,
}
_CONTEXT = "Before it in the same document ({count}), for context only: do not judge this part, report no errors in it."


def _strict(properties: Mapping[str, object]) -> dict[str, object]:
    """Return the schema of an object with these properties and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


_ERRORS: dict[str, object] = {
    "type": "array",
    "items": _strict(
        {
            "quote": {"type": "string"},
            "in": {"enum": ["translation", "source"]},
            "category": {"type": "string"},
            "severity": {"enum": list(SEVERITIES)},
            "reason": {"type": "string"},
        }
    ),
}
_SCORE = {"type": "number", "minimum": 0, "maximum": 100}
_ASPECT = {"type": "number", "minimum": 1, "maximum": 5}


@dataclass(frozen=True, slots=True)
class Protocol:
    """What is asked for, and how large the scores are."""

    name: Name
    schema: Mapping[str, object]
    scale: float
    """The range of the scores."""
    spans: bool = False
    orders: int = 1
    columns: tuple[str, ...] = ()
    """Numbers beside the score."""
    source: str = "source"
    hypothesis: str = "translation"
    """What the tags around the two are called."""

    def label(self, text: str) -> str:
        """Return what the tags around a text are called."""
        return {"source": self.source, "hypothesis": self.hypothesis}.get(text, text)


_PROTOCOLS = (
    Protocol("score", _strict({"score": _SCORE}), 100.0),
    Protocol("esa", _strict({"errors": _ERRORS, "score": _SCORE}), 100.0, spans=True),
    Protocol("mqm", _strict({"errors": _ERRORS}), 25.0, spans=True),
    Protocol(
        "pairwise",
        _strict({"better": {"enum": ["A", "B", "tie"]}, "reason": {"type": "string"}}),
        100.0,
        orders=2,
        columns=("first",),
    ),
    Protocol(
        "summary",
        _strict(dict.fromkeys(ASPECTS, _ASPECT)),
        5.0,
        columns=ASPECTS,
        source="document",
        hypothesis="summary",
    ),
)
PROTOCOLS: Mapping[str, Protocol] = {protocol.name: protocol for protocol in _PROTOCOLS}


class Example(NamedTuple):
    """A segment with the answer that is expected."""

    segment: Segment
    answer: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """A protocol with its prompt, ready to be filled with segments."""

    protocol: Protocol
    template: str
    inputs: Inputs
    languages: str | None = None
    examples: tuple[Example, ...] = ()

    @property
    def digest(self) -> str:
        """Names the prompt, the form of the answer and the examples."""
        shown = [[list(_texts(example.segment, self.inputs).items()), example.answer] for example in self.examples]
        parts = json.dumps([self.template, self.protocol.schema, shown], sort_keys=True)
        return blake2b(parts.encode(), digest_size=6).hexdigest()

    def messages(self, segment: Segment, order: int = 0) -> list[Message]:
        """Return the conversation about a segment: instructions, examples, question."""
        system, user = _messages(self.template)
        code = _code([segment, *segment.context, *(example.segment for example in self.examples)])
        conversation = [{"role": "system", "content": self._fill(system, segment, order, code)}] if system else []
        for example in self.examples:
            conversation.append({"role": "user", "content": self._fill(user, example.segment, 0, code)})
            conversation.append({"role": "assistant", "content": example.answer})
        return [*conversation, {"role": "user", "content": self._fill(user, segment, order, code)}]

    def _fill(self, template: str, segment: Segment, order: int, code: str) -> str:
        texts, context = self._tag_texts(segment, order, code), self._context(segment, code)
        source, target = language_pair(self.languages, "judge") if self.languages else ("", "")
        names = [language_name(language) for language in (source, target)]
        values = {
            **{name: "\n".join(text for label, text in texts if label == name) for name in _TEXTS},
            "context": context,
            "texts": "\n".join(
                [*([context] if context and "{context}" not in template else ()), *(text for _, text in texts)]
            ),
            "languages": f" from {names[0]} into {names[1]}" if self.languages else "",
            "source_language": names[0],
            "target_language": names[1],
            "code": code,
        }
        return _FIELD.sub(lambda match: values.get(match[1], match[0]), template)

    def _context(self, segment: Segment, code: str) -> str:
        """Return the segments before, the source and the translation of each between tags of their own."""
        if not segment.context:
            return ""
        count = len(segment.context)
        introduction = _CONTEXT.format(count=f"{count} segment{'s' if count > 1 else ''}")
        names = [name for name in ("source", "hypothesis") if _TEXTS[name] in self.inputs]
        each = [
            f"<context {self.protocol.label(name)} {code}>\n{text}\n</context {self.protocol.label(name)} {code}>"
            for previous in segment.context
            for name in names
            if (text := previous.source if name == "source" else previous.hypothesis)
        ]
        return "\n".join([introduction, *each, ""])

    def _tag_texts(self, segment: Segment, order: int, code: str) -> list[tuple[str, str]]:
        """Return each text between its tags, after what it is; of two translations, in the order that is asked for."""
        label = self.protocol.label
        tagged = [(name, label(name), text) for name, texts in _texts(segment, self.inputs).items() for text in texts]
        if self.protocol.orders > 1:
            reference = next(item for item in tagged if item[0] == "reference")
            rivals = (reference, tagged[-1]) if order == 0 else (tagged[-1], reference)
            named = zip(("A", "B"), rivals, strict=True)
            tagged = [item for item in tagged if item[0] == "source"]
            tagged += [(name, f"{label('hypothesis')} {letter}", text) for letter, (name, _, text) in named]
        return [(name, f"<{tag} {code}>\n{text}\n</{tag} {code}>") for name, tag, text in tagged]


def _texts(segment: Segment, inputs: Inputs) -> dict[str, tuple[str, ...]]:
    texts = {"source": (segment.source or "",)} if Inputs.SOURCE in inputs else {}
    hypothesis = {"hypothesis": (segment.hypothesis,)}
    references = {"reference": present(segment.references)} if Inputs.REFERENCES in inputs else {}
    return texts | references | hypothesis


def _code(segments: Sequence[Segment]) -> str:
    """Return a code that depends on all texts and occurs in none of them."""
    texts = "\0".join(
        "\0".join((segment.hypothesis, segment.source or "", *segment.references)) for segment in segments
    )
    number = 0
    while True:
        code = blake2b(f"{number}:{texts}".encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
        if code not in texts:
            return code
        number += 1


def make_prompt(name: str, file: str | None, against: Against, languages: str | None, examples: str | None) -> Prompt:
    """Return the prompt of a protocol, or a user's own for its answers."""
    protocol = PROTOCOLS[name]
    template = _read_built_in(name) if file is None else _read(file)
    fields = set(_FIELD.findall(template))
    inputs = _AGAINST[against]
    if protocol.orders > 1:
        inputs |= Inputs.REFERENCES
    if "texts" not in fields:
        inputs = Inputs(0)
        for field in fields & _TEXTS.keys():
            inputs |= _TEXTS[field]
        inputs |= Inputs.CONTEXT if "context" in fields else Inputs(0)
    return Prompt(protocol, template, inputs, languages, _examples(examples) if examples else ())


@cache
def _read_built_in(name: str) -> str:
    return (resources.files("whyscore.metrics.judge") / "prompts" / f"{name}.txt").read_text(encoding="utf-8")


def _read(file: str) -> str:
    """Return a user's prompt, or say which field it lacks or does not know."""
    text = text_of(str(Path(file).expanduser()))
    fields = _FIELD.findall(text)
    unknown = [field for field in fields if field not in _FIELDS]
    if unknown:
        names = ", ".join(f"{{{field}}}" for field in _FIELDS)
        raise DataError(f"no field {{{unknown[0]}}} in a prompt; there are: {names}", file=file)
    if not {"texts", "hypothesis"} & set(fields):
        raise DataError("a prompt needs {texts} or {hypothesis}: the judge would not see what it judges", file=file)
    return text


def _messages(template: str) -> tuple[str, str]:
    """Return what the system says (nothing, perhaps) and what the user says."""
    _, *parts = _ROLE.split(template)
    if not parts:
        return "", template.strip()
    messages = {role: text.strip() for role, text in zip(parts[::2], parts[1::2], strict=True)}
    return messages.get("system", ""), messages.get("user", "")


def _examples(file: str) -> tuple[Example, ...]:
    """Return the examples in a file of JSON lines: texts, and the answer as an object or a text."""
    examples = []
    for number, value in read_lines(Path(file).expanduser()):
        answer = value.get("answer")
        if not isinstance(answer, str | dict):
            raise DataError(f"'answer' is {answer!r}, expected a text or an object", file=file, line=number)
        segment = convert_segment(value, Where(file, number))
        examples.append(Example(segment, answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)))
    if not examples:
        raise SpecError(f"judge: {file} holds no example: one object a line with the texts and 'answer'")
    return tuple(examples)
