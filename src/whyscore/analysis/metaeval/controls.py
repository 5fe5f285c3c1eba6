"""What an explainer of errors must beat: properties of the word alone, which know nothing of the translation.

1. `length`: longer words are wrong more often.
2. `surprisal`: rare words too, by the unigram model of the built-in encoder's subwords.
3. `frequency`: the same by word frequencies, where the language is known and the package `wordfreq` is there.

Word scores whose AUC is below the best of them get the finding `below-control`: a reader should not trust them more
than a word list.
"""

from collections.abc import Mapping

import numpy as np

from whyscore.models.surprisal import frequency_problem, frequency_surprisal, piece_surprisal
from whyscore.types import Finding, FloatVector, Words

CONTROLS = ("length", "surprisal", "frequency")
BELOW = "below-control"


def control_scores(name: str, words: Words, language: str | None = None) -> FloatVector | None:
    """Return the error score of each word; None where the control needs word frequencies that are not there."""
    if name == "length":
        return np.array([float(len(word)) for word in words])
    if name == "surprisal":
        return piece_surprisal(words)
    return None if frequency_problem(language) is not None else frequency_surprisal(words, str(language))


def below_control(who: str, auc: float, controls: Mapping[str, float]) -> Finding | None:
    """Return the finding about word scores whose AUC is below that of the best control; None where it is not."""
    name = max(controls, key=controls.__getitem__, default=None)
    if name is None or not auc < controls[name]:
        return None
    what = {"length": "the length", "surprisal": "the surprisal", "frequency": "the frequency"}[name]
    message = f"AUC {auc:.3f} is below that of {what} of the word alone ({controls[name]:.3f}): do not rely on it"
    return Finding(BELOW, f"{who}: {message}")
