"""Test every function in front of a store that takes connections and never answers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from checkout.adapters.aws import BRIEF, USUAL, longest
from sandbox.template import resources

pytestmark = pytest.mark.untraced

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {
    "PYTHONPATH": f"{ROOT / 'layers/common'}:{ROOT / 'functions'}:{ROOT}",
    "BASE_URL": "https://pay.example",
    "ENCRYPTION_KEY": "11" * 32,
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
}
# Prints for each request the status and how many connections the store got. With `times` as in
# production the answer takes seconds; the counts are the same with a tenth of them.
SCRIPT = """
import json, os, socket, sys, threading, time
package, divisor, *requests = sys.argv[1:]
server = socket.create_server(("127.0.0.1", 0))
taken = []
def take():
    while True:
        taken.append(server.accept())
threading.Thread(target=take, daemon=True).start()
os.environ["DATABASE_URL"] = f"dynamodb+http://127.0.0.1:{server.getsockname()[1]}/test"
from botocore.config import Config
from checkout.adapters import aws
for name in ("USUAL", "BRIEF"):
    usual = getattr(aws, name)
    part = {key: getattr(usual, key) / int(divisor) for key in ("connect_timeout", "read_timeout")}
    setattr(aws, name, usual.merge(Config(**part)))
from importlib import import_module
from sandbox.gateway import LambdaContext
from tests.support.merchant_api import gateway_event
app = import_module(f"{package}.app")
headers = {"Authorization": "Bearer sk_live_" + "a" * 43, "Content-Type": "application/json"}
if package == "dashboard":
    headers |= {"Origin": "https://pay.example"}
for request in requests:
    method, path = request.split()
    event = gateway_event(method, path, "", headers, b"{}" if method == "POST" else None)
    event["cookies"] = ["__Host-dashboard=" + "a" * 64]
    before, begun = len(taken), time.monotonic()
    answer = app.handler(event, LambdaContext(package, 1024, 15.0))
    took, connections = time.monotonic() - begun, len(taken) - before
    print(json.dumps({"status": answer["statusCode"], "connections": connections, "took": took}))
"""
SESSION = "cs_" + "a" * 22
REQUESTS = {
    "api": ["GET /api/checkout/sessions", f"POST /api/checkout/sessions/{SESSION}/cancel"],
    "pay": [f"GET /pay/{SESSION}", f"GET /pay/{SESSION}/status"],
    "dashboard": ["GET /dashboard"],
}


def asked(package: str, *requests: str, divisor: int) -> list[dict[str, Any]]:
    """Return how the function answered, in a process of its own."""
    command = [sys.executable, "-c", SCRIPT, package, str(divisor), *requests]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    lines = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    return [line for line in lines if "connections" in line]


@pytest.mark.parametrize("package", REQUESTS)
def test_a_store_that_never_answers_is_a_503_after_two_connections(package: str) -> None:
    answers = asked(package, *REQUESTS[package], divisor=10)
    told = [(each["status"], each["connections"]) for each in answers]
    assert told == [(503, 2)] * len(REQUESTS[package])  # what `longest(USUAL)` counts


@pytest.mark.parametrize("package", ["api", "pay", "dashboard"])
def test_every_function_has_time_to_say_so(package: str) -> None:
    [function] = [
        each
        for each in resources("AWS::Serverless::Function").values()
        if each["Handler"] == f"{package}.app.handler"
    ]
    assert longest(USUAL) + longest(BRIEF) <= 8 < function["Timeout"]


@pytest.mark.endurance
def test_the_answer_comes_within_eight_seconds() -> None:
    [answer] = asked("api", "GET /api/checkout/sessions", divisor=1)
    assert answer["status"] == 503
    assert answer["took"] < 8
