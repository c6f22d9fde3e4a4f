"""Test stages and all others ask the wallets of their own kind only."""

from __future__ import annotations

import pytest

from checkout.adapters.outbound.wallets import StageTransport
from open_payments.errors import NotSent
from open_payments.transports import Request, Response

OWN = "https://test.example/test-wallets"


class Wire:
    """A transport that notes what it was asked to send."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def send(self, request: Request, *, timeout: float) -> Response:
        self.sent.append(request.url)
        return Response(200, {}, b"{}")


REAL = [
    "https://wallet.example/alice",
    "https://wallet.example/test-wallets-of-mine/alice",
    "https://wallet.example/alice?next=/test-wallets/",
]
TEST = [
    f"{OWN}/alice",
    f"{OWN}/auth/grants",
    f"{OWN}/incoming-payments?wallet-address=x",
]
OTHERS = [
    "https://other.example/test-wallets/alice",
    "https://other.example/Test-Wallets/alice",
    "https://other.example/%74est-wallets/alice",
    "https://other.example/deep/test-wallets/alice",
    "https://other.example/test-wallets",
]


@pytest.mark.parametrize(
    ("own", "url"), [*(("", each) for each in REAL), *((OWN, each) for each in TEST)]
)
def test_a_stage_asks_the_wallets_of_its_own_kind(own: str, url: str) -> None:
    wire = Wire()
    StageTransport(wire, own).send(Request("GET", url, {}), timeout=1)
    assert wire.sent == [url]


LOOKALIKES = [
    OWN,
    f"{OWN}.evil.example/alice",
    f"{OWN}/%2e%2e/api/checkout/sessions",
    f"{OWN}/../pay/x",
]


@pytest.mark.parametrize(
    ("own", "why", "url"),
    [
        *(("", "no real money", each) for each in TEST + OTHERS),
        *((OWN, "its own wallets", each) for each in REAL + OTHERS + LOOKALIKES),
    ],
)
def test_a_stage_asks_no_other_wallets(own: str, why: str, url: str) -> None:
    wire = Wire()
    with pytest.raises(NotSent, match=why):
        StageTransport(wire, own).send(Request("POST", url, {}), timeout=1)
    assert wire.sent == []
