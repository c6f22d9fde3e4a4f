"""A transport that answers from a script and keeps what was sent, and who signs in these tests."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from open_payments import testing
from open_payments.models import AccessToken, ClientIdentity, Continuation, WalletAddress
from open_payments.protocol import OpenPayments
from open_payments.testing import answer as answer
from open_payments.transports import Request

DATA = Path(__file__).parents[1] / "conformance"
START = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)

SHOP = "https://shop.example/till"
ALICE = WalletAddress(
    id="https://wallet.example/alice",
    asset_code="EUR",
    asset_scale=2,
    auth_server="https://auth.wallet.example/tenant",
    resource_server="https://wallet.example/tenant",
    public_name="Alice",
)
TOKEN = AccessToken("OS9M2PMHKUR64TB8", "https://auth.wallet.example/token/1")
CONTINUATION = Continuation("https://auth.wallet.example/continue/1", "33OMUKMKSKU80UPR", START)


def words(text: str) -> list[str]:
    """Return the words of a text, such as the URLs of a long list of cases."""
    return text.split()


def load(name: str) -> Any:
    return json.loads((DATA / name).read_text())


def identity(wallet_address: str = SHOP) -> ClientIdentity:
    """The key of RFC 8032, section 7.1, test 1: public knowledge."""
    key = load("vectors.json")["key"]
    return ClientIdentity(wallet_address, key["keyId"], bytes.fromhex(key["seed_hex"]))


class Script(testing.Script):
    """A script whose client signs with the test's key."""

    def client(self, seconds: float = 60, **options: Any) -> OpenPayments:
        return OpenPayments(
            self,
            options.pop("identity", identity()),
            now=self.now,
            deadline=self.time + timedelta(seconds=seconds),
            **options,
        )


def money(value: int, asset_code: str = "EUR", asset_scale: object = 2) -> dict[str, object]:
    return {"value": str(value), "assetCode": asset_code, "assetScale": asset_scale}


def header(request: Request, name: str) -> str:
    return {key.lower(): value for key, value in request.headers.items()}[name.lower()]
