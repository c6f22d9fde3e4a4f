"""Test stages and all others ask the wallets of their own kind only."""

from __future__ import annotations

import pytest

from checkout.adapters.outbound.stages import StageTransport
from checkout.open_payments.errors import NotSent
from checkout.open_payments.transport import Request, Response

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


@pytest.mark.parametrize("url", REAL)
def test_a_live_stage_asks_any_wallet_of_no_test_stage(url: str) -> None:
    wire = Wire()
    StageTransport(wire, "").send(Request("GET", url, {}), timeout=1)
    assert wire.sent == [url]


@pytest.mark.parametrize("url", TEST + OTHERS)
def test_a_live_stage_asks_no_wallet_of_a_test_stage(url: str) -> None:
    wire = Wire()
    with pytest.raises(NotSent, match="no real money"):
        StageTransport(wire, "").send(Request("GET", url, {}), timeout=1)
    assert wire.sent == []


@pytest.mark.parametrize("url", TEST)
def test_a_test_stage_asks_its_own_wallets(url: str) -> None:
    wire = Wire()
    StageTransport(wire, OWN).send(Request("GET", url, {}), timeout=1)
    assert wire.sent == [url]


@pytest.mark.parametrize(
    "url",
    [
        *REAL,
        *OTHERS,
        OWN,
        f"{OWN}.evil.example/alice",
        f"{OWN}/%2e%2e/api/checkout/sessions",
        f"{OWN}/../pay/x",
    ],
)
def test_a_test_stage_asks_no_other_wallets(url: str) -> None:
    wire = Wire()
    with pytest.raises(NotSent, match="its own wallets"):
        StageTransport(wire, OWN).send(Request("POST", url, {}), timeout=1)
    assert wire.sent == []
