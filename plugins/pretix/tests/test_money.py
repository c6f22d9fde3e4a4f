"""Amounts are exact on both sides, or refused."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pretix_checkout_sessions.checkout import genuine
from pretix_checkout_sessions.money import NotExact, decimal, shown, supported, units


@pytest.mark.parametrize(
    ("amount", "currency", "value"),
    [
        ("20.00", "USD", 2000),
        ("0.01", "EUR", 1),
        ("99999999999.99", "EUR", 9_999_999_999_999),
        ("500", "JPY", 500),
        # ISO 4217 says so; pretix gives ISK and UGX two places, and MGA none.
        ("500.00", "ISK", 500),
        ("500.00", "UGX", 500),
        ("500", "MGA", 50_000),
    ],
)
def test_an_amount_is_the_same_on_both_sides(amount: str, currency: str, value: int) -> None:
    assert units(Decimal(amount), currency) == value
    assert decimal(value, currency) == Decimal(amount)


@pytest.mark.parametrize(("amount", "currency"), [("0.005", "USD"), ("10.50", "ISK")])
def test_what_cannot_be_said_exactly_is_refused(amount: str, currency: str) -> None:
    with pytest.raises(NotExact):
        units(Decimal(amount), currency)


def test_a_wallets_amount_is_shown_with_all_its_digits() -> None:
    assert shown({"value": "1533", "asset_code": "USD", "asset_scale": 2}) == "15.33 USD"
    assert shown({"value": "10", "asset_code": "USD", "asset_scale": 9}) == "0.000000010 USD"


def test_a_currency_with_more_digits_than_pretix_stores_is_not_offered() -> None:
    assert [code for code in ("USD", "JPY", "MGA", "KWD", "CLF", "XXX") if supported(code)] == [
        "USD",
        "JPY",
        "MGA",
    ]


def test_a_delivery_with_two_signatures_needs_one_of_them() -> None:
    """The example of docs/webhooks.md: a secret that is being rolled."""
    body, sent_at = b'{"id":"cs_1"}', 1774008000
    new = "1d8d9d1ecb0ffaa0d9f5a1b29bd8cf3c54b4bd6ff3bbb3b6d0cc8f2c2f0b9a55"
    old = _mac(body, sent_at, "whsec_old")
    header = f"t={sent_at},v1={new},v1={old}"
    assert genuine(body, header, "whsec_old", now=sent_at + 300)
    assert not genuine(body, header, "whsec_old", now=sent_at + 301)
    assert not genuine(body, header, "whsec_new", now=sent_at)
    assert not genuine(body + b" ", header, "whsec_old", now=sent_at)


def _mac(body: bytes, sent_at: int, secret: str) -> str:
    import hmac

    return hmac.digest(secret.encode(), f"{sent_at}.".encode() + body, "sha256").hex()
