"""Stripe's own libraries refund in the local world: the customer's wallet has the money again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import httpx2
import pytest

from sandbox.place import Place
from tests.interop.packages import DJANGO, STRIPE, environment, installed
from tests.interop.refunding import Owner
from tests.interop.shops import forwarding, process
from tests.support.merchant_api import a_body
from tests.support.processes import call, free_base, own_key

HERE: Final = Path(__file__).parent

pytestmark = [pytest.mark.interop, pytest.mark.enable_socket]


@pytest.fixture(scope="module")
def refunder(owner: Owner) -> str:
    return owner.new_key("refund")


def sold(place: Place, owner: Owner) -> str:
    """Sell for 20.00 USD; return the id of the payment."""
    session = call(place, "", a_body()).json()
    owner.pay(session["url"])
    return str(session["id"]).replace("cs_", "pi_", 1)


def refunds(
    command: list[str], env: dict[str, str], place: Place, owner: Owner, refunder: str, seller: str
) -> None:
    """Let the library refund 5.00 of a payment, approve it, and let it read the result."""
    facts = {
        "API_BASE": place.checkout,
        "API_KEY": refunder,
        "OTHER_KEY": seller,
        "PAYMENT": sold(place, owner),
    }
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=HERE, env={**env, **facts}, stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdin is not None
        refund_id = running.stdout.readline().strip()
        assert refund_id.startswith("re_"), running.communicate()[1]
        refund = owner.approve_refund(refund_id)
        out, err = running.communicate("go\n", timeout=60)
        assert (running.returncode, out.strip()) == (0, "done"), err
    assert refund["arrival_confirmed"]


@pytest.mark.parametrize("release", STRIPE)
def test_stripe_python_refunds(
    release: str, place: Place, owner: Owner, refunder: str, seller: str
) -> None:
    env = environment(installed(release))
    command = [sys.executable, str(HERE / "stripe_refund.py")]
    refunds(command, env, place, owner, refunder, seller)


def test_django_payments_confirms_a_payment_and_refunds(
    place: Place, owner: Owner, refunder: str, seller: str, tmp_path: Path
) -> None:
    port = free_base()
    added = httpx2.post(
        f"{place.checkout}/v1/webhook_endpoints",
        data={
            "url": f"https://localhost:{place.listener_port}/",
            "enabled_events[0]": "checkout.session.completed",
        },
        auth=(own_key(place), ""),
        trust_env=False,
    )
    assert added.status_code == 200, added.text
    env = environment(
        installed(*DJANGO),
        API_BASE=place.checkout,
        API_KEY=seller,
        REFUND_KEY=refunder,
        WEBHOOK_SECRET=added.json()["secret"],
        PORT=str(port),
        FILE=str(tmp_path / "shop.sqlite3"),
    )
    command = [sys.executable, str(HERE / "django_shop.py")]
    with (
        process(command, env, tmp_path) as shop,
        forwarding(place, f"http://127.0.0.1:{port}/process/default/"),
    ):
        assert shop.stdout is not None
        owner.pay(shop.stdout.readline().strip())
        assert shop.stdout.readline().split() == ["confirmed", "expired"]
        refund_id, left = shop.stdout.readline().split()
        assert left == "15.00"
    refund = owner.approve_refund(refund_id)
    assert (refund["amount_sent"], refund["arrival_confirmed"]) == (500, True)


def test_stripe_node_refunds(
    node: str, place: Place, owner: Owner, refunder: str, seller: str
) -> None:
    refunds([node, "stripe_refund.mjs"], dict(os.environ), place, owner, refunder, seller)
