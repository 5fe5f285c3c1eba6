"""A file that a spec names is part of the signature: numbers of its old content are not taken for those of the new."""

import os
from pathlib import Path

import pytest

from whyscore.registry import build

IDF = b'{"unknown": 1.0, "known": {"a": 1.0}}'
ANSWERS = b'{"hypothesis": "a", "answer": "{\\"score\\": 1}"}\n'
FILES = {"h.conllu": b"1\ta\ta\tNOUN\n", "h.tags": b"A\n", "answers.jsonl": ANSWERS}

NAMED = [
    ("metric", "boosted(metric=chrf, explainer=logprob(path='f'))", b'{"a": 1}\n', b'{"a": 2}\n'),
    ("metric", "boosted(metric=chrf, explainer=evidence(lexicon='f'))", b"a\tb\t0.5\t0.5\n", b"a\tb\t0.4\t0.5\n"),
    ("metric", "boosted(metric=chrf, masker=infill_file('f'))", b"a b\n", b"a c\n"),
    ("metric", "ensemble(chrf, lookup('f'))", b"hypothesis\tscore\na\t1\n", b"hypothesis\tscore\na\t2\n"),
    ("metric", "lookup('f')", b"hypothesis\tscore\na\t1\n", b"hypothesis\tscore\na\t2\n"),
    ("metric", "xbertscore(model=embedded, against=reference, idf='f.json')", IDF, IDF.replace(b"1.0", b"2.0")),
    ("metric", "moverscore(model=embedded, idf='f.json')", IDF, IDF.replace(b"1.0", b"2.0")),
    ("metric", "mee(words='f.vec', language='en')", b"2 2\na 1 0\nb 0 1\n", b"2 2\na 1 0\nb 1 1\n"),
    ("metric", "judge(recorded='f')", ANSWERS, ANSWERS.replace(b"1", b"2")),
    ("metric", "judge(recorded='answers.jsonl', prompt='f')", b"Rate {hypothesis} now.", b"Rate {hypothesis} not."),
    ("metric", "f.py:score", b"def score(h, r):\n    return [1]\n", b"def score(h, r):\n    return [2]\n"),
    ("tagger", "lexicon('A=list:f')", b"abc\n", b"abd\n"),
    ("tagger", "conllu('f', 'h.conllu')", b"1\ta\ta\tNOUN\n", b"1\ta\ta\tVERB\n"),
    ("tagger", "pretagged('f', 'h.tags')", b"A\n", b"B\n"),
    ("scorer", "lexicon('f')", b"word\tvalue\na\t1\n", b"word\tvalue\na\t2\n"),
]


@pytest.mark.parametrize(("kind", "spec", "before", "after"), NAMED, ids=[f"{kind} {spec}" for kind, spec, *_ in NAMED])
def test_another_content_is_another_signature(
    kind: str, spec: str, before: bytes, after: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the size of the file nor its time tells that it has changed."""
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        Path(name).write_bytes(content)
    file = Path(next((name for name in ("f.py", "f.vec", "f.json") if name in spec), "f"))
    file.write_bytes(before)
    state, signature = file.stat(), build(spec, kind).signature()
    assert len(before) == len(after)
    file.write_bytes(after)
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert build(spec, kind).signature() != signature
    file.write_bytes(before)
    assert build(spec, kind).signature() == signature
