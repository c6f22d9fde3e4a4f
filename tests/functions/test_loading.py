"""Each function loads what it needs and no more: what is loaded is paid for at every cold start."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WEB = {"fastapi", "jinja2", "starlette", "mangum", "pydantic"}
WALLETS = {"checkout.open_payments.client", "checkout.adapters.outbound.http"}
STRIPE = {"api.v1", "api.v1.app", "checkout.domain.stripe_objects"}  # at the first request to /v1
PASSKEYS = {"webauthn", "OpenSSL", "cbor2"}  # at the first use of a passkey
LOADED = "import json, sys, {}; print(json.dumps(list(sys.modules)))"


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("api.app", {"httpx", "httpcore", "jinja2"} | STRIPE),
        ("api.v1.app", {"httpx", "httpcore", "jinja2", "cryptography"} | WALLETS),
        ("dashboard.app", {"httpx", "httpcore", "api"} | WALLETS),
        ("expirer.app", WEB),
        ("expirer.cleanup", WEB),
        ("webhook_sender.app", WEB | {"httpcore"}),
    ],
)
def test_a_function_loads_nothing_that_it_does_not_use(module: str, unwanted: set[str]) -> None:
    """Nor makes its services: there are no settings here to make them from."""
    paths = f"{ROOT / 'layers/common'}:{ROOT / 'functions'}"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LOADED.format(module)],
        env={"PYTHONPATH": paths},
        capture_output=True,
        check=True,
    )
    loaded = set(json.loads(done.stdout))
    assert module in loaded
    assert not loaded & (unwanted | PASSKEYS)
