"""Creation: what is stored, what is refused, and the same answer to the same idempotency key."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from checkout.domain.ground.errors import (
    AmountNotRepresentable,
    AmountTooLarge,
    AmountTooSmall,
    CurrencyMismatch,
    CurrencyNotSupported,
    UrlInvalid,
)
from checkout.domain.merchant.record import ApiKey
from checkout.domain.session.new import NewSession
from checkout.domain.session.record import LineItem, Session, Status
from checkout.flows.session.create import create_session
from open_payments.models import Amount
from tests.support.basics import NOW
from tests.support.merchant_api import MerchantApi


def new(unit_amount: int = 1000, currency: str = "usd", **changes: Any) -> NewSession:
    fields: dict[str, Any] = {
        "line_items": (LineItem(currency, "Tea", None, unit_amount, 2),),
        "success_url": "https://shop.example/thanks?s={CHECKOUT_SESSION_ID}",
        "cancel_url": "https://shop.example/basket?s={CHECKOUT_SESSION_ID}",
    }
    return NewSession(**(fields | changes))


def create(api: MerchantApi, asked: NewSession, key: ApiKey | None = None) -> Session:
    created = create_session(api.services, key or api.key, asked, None)
    return api.stored(json.loads(created.body)["id"])


def test_a_created_session_is_stored_as_it_was_answered(api: MerchantApi) -> None:
    created = create_session(api.services, api.key, new(), None)
    body = json.loads(created.body)
    session = api.stored(body["id"])
    assert (created.status, created.replayed) == (201, False)
    assert session.status is Status.OPEN
    assert session.merchant == "mer_1"
    assert session.amount_total == body["amount_total"] == 2000
    assert session.receive == Amount(2000, "USD", 2)
    assert session.expires_at == NOW + timedelta(days=1)
    assert session.success_url == f"https://shop.example/thanks?s={session.id}"
    assert session.cancel_url == f"https://shop.example/basket?s={session.id}"
    assert [entry.event for entry in session.history] == ["created"]


@pytest.mark.parametrize(
    ("code", "scale", "currency", "unit_amount", "receive"),
    [
        ("JPY", 0, "jpy", 500, 1000),
        ("KWD", 3, "kwd", 1, 2),
        ("EUR", 9, "eur", 1, 20_000_000),
        ("USD", 0, "usd", 50, 1),
    ],
)
def test_the_total_is_converted_exactly_into_the_wallets_scale(
    api: MerchantApi, code: str, scale: int, currency: str, unit_amount: int, receive: int
) -> None:
    _, key = api.join("mer_3", asset_code=code, asset_scale=scale)
    assert create(api, new(unit_amount, currency), key).receive == Amount(receive, code, scale)


@pytest.mark.parametrize(
    ("asked", "error", "param"),
    [
        (new(0), AmountTooSmall, "line_items"),
        (
            new(
                line_items=(
                    LineItem("usd", "Tea", None, 999_999_999_999, 1000),
                    LineItem("usd", "Tea", None, 1000, 1),
                )
            ),
            AmountTooLarge,
            "line_items",
        ),
        (
            new(line_items=(LineItem("usd", "A", None, 1, 1), LineItem("eur", "B", None, 1, 1))),
            CurrencyMismatch,
            "line_items[1].price_data.currency",
        ),
        (new(currency="eur"), CurrencyNotSupported, "line_items[0].price_data.currency"),
        (new(success_url="http://shop.example/"), UrlInvalid, "success_url"),
        (new(cancel_url="javascript:alert(1)"), UrlInvalid, "cancel_url"),
    ],
)
def test_what_cannot_be_charged_is_refused_and_nothing_is_stored(
    api: MerchantApi, asked: NewSession, error: type[Exception], param: str
) -> None:
    with pytest.raises(error) as refused:
        create_session(api.services, api.key, asked, "key-1")
    assert getattr(refused.value, "param", None) == param
    assert not api.dynamo.calls


def test_a_total_finer_than_the_wallet_counts_is_refused(api: MerchantApi) -> None:
    _, key = api.join("mer_3", asset_code="USD", asset_scale=0)
    with pytest.raises(AmountNotRepresentable):
        create(api, new(1), key)


def test_http_addresses_are_taken_only_while_the_service_is_http() -> None:
    asked = new(success_url="http://localhost:3000/")
    assert create(MerchantApi(base_url="http://localhost:4000"), asked)
    with pytest.raises(UrlInvalid):
        create(MerchantApi(), asked)


# --- idempotency


def test_defaults_spelled_out_and_keys_in_another_order_are_the_same_parameters() -> None:
    one = new(metadata_json='{"a":1,"b":2}')
    assert one.fingerprint() == new(metadata_json='{"b":2,"a":1}').fingerprint()
    assert one.fingerprint() == replace(one, expires_in_seconds=86_400).fingerprint()
    others = ['{"a":1.0,"b":2}', '{"a":true,"b":2}', '{"a":"1","b":2}', '{"a":1}']
    assert (
        len({new(metadata_json=text).fingerprint() for text in others} | {one.fingerprint()}) == 5
    )


def test_another_merchants_key_that_reads_like_ours_is_another_key(api: MerchantApi) -> None:
    shifted = replace(api.key, merchant="mer_11")  # mer_1 and "1x" read as mer_11 and "x"
    assert not create_session(api.services, api.key, new(), "1x").replayed
    assert not create_session(api.services, shifted, new(), "x").replayed


def test_a_key_is_free_after_24_hours_and_not_a_millisecond_before(api: MerchantApi) -> None:
    create_session(api.services, api.key, new(), "key-1")
    api.clock.pass_time(24 * 3600 - 0.001)
    assert create_session(api.services, api.key, new(), "key-1").replayed
    api.clock.pass_time(0.001)
    assert not create_session(api.services, api.key, new(1001), "key-1").replayed
    assert create_session(api.services, api.key, new(1001), "key-1").replayed


def test_keys_of_every_allowed_length_are_taken(api: MerchantApi) -> None:
    for key in ("a", " ~", "a" * 255):
        assert not create_session(api.services, api.key, new(), key).replayed
