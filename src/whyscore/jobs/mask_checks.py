"""Does a mask string reach the metric as it was written?

A metric may lower-case, strip or cut texts before it looks at them: `[MASK]` becomes `[mask]`, three tokens, nothing.
Then hidden words are not what the masker says they are. Nothing but scores is needed to find out, once for each metric
and mask:

1. Take the first segment with words; the mask stands for its middle word, in the hypothesis and in the references.
2. Put in the hypothesis what pre-processing could make of the mask: nothing, small letters, the mask without its
   punctuation, its parts cut by spaces. Where the score stays, the metric cannot tell the two apart.
3. What another word makes of the score is the measure: where even that changes nothing, or where a space inside a word
   changes nothing, there is no verdict.

A plain word such as UNKWORDZ is one unknown word in small letters, too: that is no complaint.
"""

import re
import string
import warnings
from collections.abc import Sequence

from whyscore.errors import WhyscoreError
from whyscore.protocols import Masker, Metric
from whyscore.text.maskers import Replace
from whyscore.types import FloatVector, Segment

_OTHER, _CUT = "zqxjkv", "zqx jkv"  # a word that no text holds, whole and in two
_SAME = 1e-4  # of what another word makes of the score
_PARTS = re.compile(r"\w+|[^\w\s]")

_KNOWN: dict[tuple[str, str], str | None] = {}
"""Verdicts by signature and mask, so that a metric is asked once."""


class MaskWarning(UserWarning):
    """The mask string does not survive what a metric does to texts first."""


def check_mask(metric: Metric, masker: Masker | None, segments: Sequence[Segment]) -> None:
    """Warn where the metric does not see the mask string as it was written; the default one is known to be a word."""
    if not isinstance(masker, Replace) or masker == Replace():
        return
    signature = metric.signature()
    key = (str(signature), masker.token)
    if key not in _KNOWN or not signature.stable:
        _KNOWN[key] = _fate(metric, masker.token, segments)
    fate = _KNOWN[key]
    if fate is not None:
        told = f"{signature.spec} {fate} the mask {masker.token!r} before it scores: hidden words are not what you say"
        warnings.warn(f"{told}; choose a plain word, or masker='delete'", MaskWarning, stacklevel=3)


def _fate(metric: Metric, token: str, segments: Sequence[Segment]) -> str | None:
    """Return what happens to a mask, None where nothing does or nobody can tell."""
    segment = next((one for one in segments if one.hypothesis.split()), None)
    if segment is None or not token.strip():
        return None
    variants = _variants(token)
    try:
        scores = metric.score(_probes(segment, token, [token, _OTHER, _CUT, *variants.values()]))
    except WhyscoreError:
        return None  # told where the segments themselves are scored
    return _verdict(scores, list(variants))


def _variants(token: str) -> dict[str, str]:
    """Return what pre-processing could make of a mask, by the name of what it did."""
    found = {"drops": ""}
    if token.isalnum():
        return found
    bare = token.strip(string.punctuation)
    made = {"lower-cases": token.lower(), "strips": bare, "cuts up": " ".join(_PARTS.findall(token))}
    return found | {fate: text for fate, text in made.items() if text not in ("", token)}


def _probes(segment: Segment, token: str, texts: Sequence[str]) -> list[Segment]:
    """Return the segment with each text for the middle word of the hypothesis; references have the mask there."""
    words = segment.hypothesis.split()
    middle = len(words) // 2

    def rendered(text: str) -> str:
        return " ".join([*words[:middle], *([text] if text else []), *words[middle + 1 :]])

    references = tuple(rendered(token) for _ in segment.references)
    return [Segment(rendered(text), segment.source, references) for text in texts]


def _verdict(scores: FloatVector, fates: Sequence[str]) -> str | None:
    whole, other, cut, *rest = scores.tolist()
    scale = abs(whole - other)
    if not scale > 0:
        return None
    blind_to_spaces = abs(other - cut) <= _SAME * scale
    for fate, score in zip(fates, rest, strict=True):
        if abs(score - whole) <= _SAME * scale and not (fate == "cuts up" and blind_to_spaces):
            return fate
    return None
