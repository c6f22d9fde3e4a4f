"""Test every function in front of a store that takes connections and never answers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from checkout.adapters.patience import BRIEF, USUAL, longest
from sandbox.template import resources

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {
    "PYTHONPATH": f"{ROOT / 'layers/common'}:{ROOT / 'functions'}:{ROOT}",
    "BASE_URL": "https://pay.example",
    "ENCRYPTION_KEY": "11" * 32,
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
}
# Prints the status, the code and how many connections the store got. With `times` as in
# production the answer takes seconds; what is counted is the same with a tenth of them.
SCRIPT = """
import json, os, socket, sys, threading, time
package, method, path, divisor = sys.argv[1:5]
server = socket.create_server(("127.0.0.1", 0))
taken = []
def take():
    while True:
        taken.append(server.accept())
threading.Thread(target=take, daemon=True).start()
os.environ["DATABASE_URL"] = f"dynamodb+http://127.0.0.1:{server.getsockname()[1]}/test"
from botocore.config import Config
from checkout.adapters import patience
for name in ("USUAL", "BRIEF"):
    usual = getattr(patience, name)
    part = {key: getattr(usual, key) / int(divisor) for key in ("connect_timeout", "read_timeout")}
    setattr(patience, name, usual.merge(Config(**part)))
from importlib import import_module
from sandbox.gateway import LambdaContext
from tests.merchant_api import gateway_event
app = import_module(f"{package}.app")
headers = {"Authorization": "Bearer sk_" + "a" * 43, "Content-Type": "application/json"}
if package == "dashboard":
    headers |= {"Origin": "https://pay.example"}
event = gateway_event(method, path, "", headers, b"{}" if method == "POST" else None)
event["cookies"] = ["__Host-dashboard=" + "a" * 64]
begun = time.monotonic()
answer = app.handler(event, LambdaContext(package, 1024, 15.0))
took = time.monotonic() - begun
print(json.dumps({"status": answer["statusCode"], "connections": len(taken), "took": took}))
"""
SESSION = "cs_" + "a" * 22
REQUESTS = [
    ("api", "GET", "/api/checkout/sessions"),
    ("api", "POST", f"/api/checkout/sessions/{SESSION}/cancel"),
    ("pay", "GET", f"/pay/{SESSION}"),
    ("pay", "GET", f"/pay/{SESSION}/status"),
    ("dashboard", "GET", "/dashboard"),
]


def asked(package: str, method: str, path: str, *, divisor: int) -> dict[str, Any]:
    """Return how the function answered, in a process of its own."""
    command = [sys.executable, "-c", SCRIPT, package, method, path, str(divisor)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


@pytest.mark.parametrize(("package", "method", "path"), REQUESTS)
def test_a_store_that_never_answers_is_a_503_after_two_connections(
    package: str, method: str, path: str
) -> None:
    answer = asked(package, method, path, divisor=10)
    assert answer["status"] == 503
    assert answer["connections"] == 2  # what `longest(USUAL)` counts


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
    answer = asked("api", "GET", "/api/checkout/sessions", divisor=1)
    assert answer["status"] == 503
    assert answer["took"] < 8
