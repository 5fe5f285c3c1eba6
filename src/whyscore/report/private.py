"""A report that may leave the house: numbers and charts, and no text of the data.

Left out are the segment browser, lists of words and of matched pairs, pictures that other jobs made, the command line
(it may hold texts), and the wording of remarks and problems (they may quote), but for those on tests. What stays: names
of systems, metrics, features and segments, every score, interval and test, and how many words cost how much.
"""

from dataclasses import replace

from whyscore.report.model import Matches, Report, Step

_TESTS = "tests: "


def without_texts(report: Report) -> Report:
    """Return the report without any text of the data."""
    made = report.made
    return replace(
        report,
        explorer={},
        costly=(),
        figures=(),
        matches=tuple(Matches(one.metric, one.systems, ()) for one in report.matches),
        steps=tuple(Step(step.text) for step in report.steps if not step.controls),
        made=replace(made, command=None, findings=_counted(made.findings, "remark"), problems=_problems(made.problems)),
        texts=False,
    )


def _problems(told: tuple[str, ...]) -> tuple[str, ...]:
    """Return the problems of tests, which speak of systems and numbers alone, and how many others there are."""
    tests = tuple(text for text in told if text.startswith(_TESTS))
    return tests + _counted(tuple(text for text in told if not text.startswith(_TESTS)), "problem")


def _counted(told: tuple[str, ...], what: str) -> tuple[str, ...]:
    """Return how many there are, instead of what they say."""
    if not told:
        return ()
    return (f"{len(told)} {what}{'' if len(told) == 1 else 's'}: see the report with texts",)
