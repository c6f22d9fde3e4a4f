"""All sides of the comparison answer every kind of event, and make the calls that ours makes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent.parent
SCRIPT = """
import contextlib, io, json
from benchmarks.cpu import NAMES, Bench
bench = Bench()
found = {}
with contextlib.redirect_stdout(io.StringIO()):
    for name in NAMES:
        for side in (bench.kinds[name].ours, bench.bare[name], bench.lean[name]):
            assert bench.repeat(name, side) > 0  # it compares the answer with ours
        found[name] = [call for call, _ in bench.kinds[name].recorded.calls]
print(json.dumps(found))
"""


def test_each_side_answers_every_kind_of_event_with_the_same_calls() -> None:
    """In a process of its own, because the services are those of a process in Lambda."""
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
    assert found["create"] == ["get_item", "put_item"]
    assert found["key"] == ["get_item", "put_item", "put_item"]
    assert found["get"] == ["get_item", "get_item"]
    assert found["list"] == ["get_item", "update_item", "query", "batch_get_item"]
    assert found["page"] == found["status"] == ["get_item"]
    assert found["callback"][-2:] == ["transact_write_items", "send_message_batch"]
    assert len(found) == 9
