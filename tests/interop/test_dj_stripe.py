"""dj-stripe, whole and unmodified from the registry: its own sync and webhook view, on our /v1."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

import httpx2
import pytest

from sandbox.place import Place
from tests.interop.packages import DJ_STRIPE, environment, installed
from tests.interop.refunding import Owner
from tests.interop.shops import forwarding, process
from tests.support.processes import free_base

HERE: Final = Path(__file__).parent
FORGED: Final = {"id": "evt_1", "livemode": False, "type": "checkout.session.completed"}

pytestmark = [pytest.mark.interop, pytest.mark.enable_socket]


def test_dj_stripe_syncs_and_its_view_takes_our_events(
    place: Place, owner: Owner, tmp_path: Path
) -> None:
    port = free_base()
    env = environment(
        installed(*DJ_STRIPE),
        PORT=str(port),
        FILE=str(tmp_path / "shop.sqlite3"),
        HOOKS=f"https://localhost:{place.listener_port}/",
        API_BASE=place.checkout,
        API_KEY=owner.new_key("refund"),
    )
    with process([sys.executable, str(HERE / "djstripe_shop.py")], env, tmp_path) as shop:
        assert shop.stdout is not None
        view, page = shop.stdout.readline().split()
        hook = f"http://127.0.0.1:{port}{view}"
        for headers in ({}, {"Stripe-Signature": "t=1,v1=00"}):
            forged = httpx2.post(hook, json=FORGED, headers=headers, trust_env=False)
            assert forged.status_code == 400
        with forwarding(place, hook):
            owner.pay(page)
            owner.approve_refund(shop.stdout.readline().strip())
            told = json.loads(shop.stdout.readline())
    print(told)
    assert told == {
        "Account": 1,
        "Session": 2,
        "PaymentIntent": 1,
        "Charge": 1,
        "Refund": 1,
        "Event": 4,
        "WebhookEndpoint": 1,
    }
