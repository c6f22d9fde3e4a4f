"""Both sides of the comparison answer every kind of event, and make the same calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent.parent
SCRIPT = """
import json
from benchmarks.cpu import Wire, sides
wire = Wire()
events, ours, theirs = sides(wire)
calls = []
for kind, event in events.items():
    for side in (ours, theirs):
        answer = side(event)
        calls.append([kind, answer["statusCode"], len(json.loads(answer["body"]).get("data", []))])
print(json.dumps(calls))
"""


def test_both_sides_answer_every_kind_of_event() -> None:
    """In a process of its own, because the API keeps the clients that it has made."""
    places = os.pathsep.join(("layers/common", "functions"))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": places},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == [
        [kind, status, listed]
        for kind, status, listed in (
            ("create", 201, 0),
            ("key", 201, 0),
            ("get", 200, 0),
            ("list", 200, 100),
        )
        for _ in ("ours", "theirs")
    ]
