"""Every command and every function returns what was recorded of it.

A change that is meant is recorded again with `python tests/support/recorder.py --write CASE ...` and told in the
changelog. Processors round the last digits differently, in single precision the seventh: decimals may differ by a
relative error of 1e-6. `RECORDED_NEAR=0` asks for every digit, on the machine that recorded them.
"""

import os
from pathlib import Path

import pytest

from support import recorder

NEAR = float(os.environ.get("RECORDED_NEAR", "1e-6"))


@pytest.mark.parametrize("name", recorder.CASES)
def test_a_case_gives_what_was_recorded(name: str, tmp_path: Path) -> None:
    found = recorder.run(recorder.CASES[name], tmp_path.resolve())
    told = recorder.differences(recorder.recording(name), found, NEAR)
    if told:
        shown = "\n".join(told[: recorder.SHOWN])
        pytest.fail(f"{len(told)} differences in {name}, the first:\n{shown}", pytrace=False)


def test_every_recording_belongs_to_a_case() -> None:
    assert {path.stem for path in recorder.RECORDED.glob("*.json")} == set(recorder.CASES)


@pytest.mark.parametrize(
    ("expected", "found", "told"),
    [
        ({"a": 0.1}, {"a": 0.1}, []),
        ({"a": 0.1}, {"a": 0.10000000000000002}, ["value.a: 0.1 became 0.10000000000000002"]),
        ({"a": float("nan")}, {"a": float("nan")}, []),
        ({"a": None}, {"a": 0.0}, ["value.a: None became 0.0"]),
        ({"a": [1, 2]}, {"a": [1]}, ["value.a: 2 became 1 items"]),
        ({"a": "x", "note": "old"}, {"a": "y", "note": "new"}, ["value.a: 'x' became 'y'"]),
        ({"note": "old"}, {}, ["value: note is gone"]),
    ],
)
def test_differences_of_data_are_told_with_their_paths(
    expected: dict[str, object], found: dict[str, object], told: list[str]
) -> None:
    assert recorder.differences({"value": expected, "files": {}}, {"value": found, "files": {}}) == told


@pytest.mark.parametrize(
    ("expected", "found", "same"),
    [
        (0.5, 0.5 + 4e-7, True),
        (0.5, 0.5 + 4e-6, False),
        (5, 6, False),
        (1, 1.0, False),
        (True, 1, False),
        ("w=0.5000000 of 3", "w=0.5000004 of 3", True),
        ("w=0.5000000 of 3", "w=0.5000040 of 3", False),
        ("w=0.5 of 3", "w=0.5 of 4", False),
    ],
)
def test_decimals_may_differ_by_what_processors_round(expected: object, found: object, same: object) -> None:
    assert (recorder.differences({"value": expected, "files": {}}, {"value": found, "files": {}}, 1e-6) == []) is same


def test_text_is_compared_by_its_numbers_alone() -> None:
    def printed(text: str, code: int = 0) -> dict[str, object]:
        stdout = recorder.parsed(text, "text", Path("nowhere"))
        return {"commands": [{"code": code, "stdout": stdout, "stderr": {"text": ""}}], "files": {}}

    old = printed("chrf 12.50 of 3 segments, bleu -0.125")
    assert recorder.differences(old, printed("bleu: -0.125; chrf: 12.50")) == []
    assert recorder.differences(old, printed("bleu: -0.125; chrf: 12.51")) == [
        "command 1 stdout: numbers 12.50 are gone, 12.51 are new"
    ]
    assert len(recorder.differences(old, printed("bleu: -0.125; chrf: 12.50", code=3))) == 1
