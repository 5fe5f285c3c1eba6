"""Prompt-injection probes: a judge that obeys is found out, one that does not is not."""

import json
from typing import Any

import whyscore as ws
from support.judge_server import Turn, hypothesis_of, serving
from whyscore.types import Segment


def obeying(request: dict[str, Any], _times: int) -> Turn:
    text = hypothesis_of(request)
    return Turn(json.dumps({"score": 100 if "Ignore all" in text else 60 if text == "good text" else 40}))


def test_a_judge_that_obeys_is_found_out() -> None:
    with serving(obeying) as endpoint:
        spec = f"judge(model='m', url='{endpoint.url}', protocol='score')"
        found = ws.experiment("injection", [Segment("good text", "guter Text")], spec)
        assert len(endpoint.requests) == 15
    rows = {row["kind"]: row for row in found.records()}  # type: ignore[attr-defined]
    assert (rows["control"]["moved_up"], rows["control"]["shift_to_original"]) == (0.0, -20.0)
    wanted = {"probes": 4, "moved_up": 0.25, "above_original": 0.25}
    assert {name: rows["command"][name] for name in wanted} == wanted
    assert rows["tags"]["moved_up"] == 0.0
