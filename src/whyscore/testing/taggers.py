"""The contract of a tagger as checks, for authors of plugins: call `check_tagger(MyTagger())` in a test.

1. One answer per text, in order; none for no texts; each depends on its text alone.
2. Every stretch lies in its text, is not empty and carries features: those that `labels` names, where there is one.
3. The signature says the same when asked twice.
"""

from collections.abc import Sequence

from whyscore.errors import ContractError
from whyscore.protocols import SupportsLabels, Tagger
from whyscore.types import Signature

TEXTS = (
    "Ada Lovelace wrote 3 programs, not 12, in London.",
    "",
    "she can't see him: \u201cnever\u201d!",
    "  \u092f\u0939 \u090f\u0915 \u092c\u093f\u0932\u094d\u0932\u0940 \u0939\u0948  ",
    "\u6211\u6709\u4e00\u53ea\u732b\u3002",
    "Ada Lovelace wrote 3 programs, not 12, in London.",
)
"""Texts of several scripts, an empty one and a repetition."""


def check_tagger(tagger: Tagger, texts: Sequence[str] = TEXTS) -> None:
    """Raise a ContractError if a tagger breaks its protocol; say nothing if it does not."""
    name = type(tagger).__name__
    if not isinstance(tagger, Tagger):
        raise ContractError(f"{name} is no tagger: it needs signature() and tag(texts)")
    if not isinstance(tagger.signature(), Signature) or str(tagger.signature()) != str(tagger.signature()):
        raise ContractError(f"{name}.signature() must be the same Signature each time, got {tagger.signature()!r}")
    answers = tagger.tag(list(texts))
    if len(answers) != len(texts) or len(tagger.tag([])):
        raise ContractError(f"{name}.tag must give one answer per text, got {len(answers)} for {len(texts)}")
    labels = set(tagger.labels()) if isinstance(tagger, SupportsLabels) else None
    for text, tags in zip(texts, answers, strict=True):
        if tuple(tagger.tag([text])[0]) != tuple(tags):
            raise ContractError(f"{name}.tag gives other tags for {text!r} alone than among others")
        for start, end, features in tags:
            if not 0 <= start < end <= len(text) or not features:
                raise ContractError(
                    f"{name}.tag gives ({start}, {end}, {features!r}) for {text!r}, outside of it or empty"
                )
            if labels is not None and not labels >= set(features):
                raise ContractError(f"{name}.labels() does not name {sorted(set(features) - labels)}")
