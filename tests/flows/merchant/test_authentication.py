from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import timedelta

import pytest

from checkout.domain.ground.errors import ApiKeyInvalid, ApiKeyMissing, PermissionMissing
from checkout.domain.ground.ids import new_api_key
from checkout.domain.merchant.doors import API
from checkout.domain.merchant.people import Scope
from checkout.flows.merchant.api_keys import authenticate, scope_of
from tests.support.basics import NOW, seeded
from tests.support.merchant_api import PREFIX, MerchantApi
from tests.support.services import put_key


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_a_key_is_known_by_its_hash(api: MerchantApi, scheme: str) -> None:
    assert authenticate(api.services, f"{scheme} {api.secret}", "POST").merchant == "mer_1"
    assert authenticate(api.services, f"  {scheme}   {api.secret} ", "POST").merchant == "mer_1"
    assert authenticate(api.services, f"{scheme} {api.other_secret}", "POST").merchant == "mer_2"


@pytest.mark.parametrize(
    "header", [None, "", " ", "Bearer", "Bearer ", "Basic c2s6", "sk_x", "Token sk_x"]
)
def test_without_bearer_credentials_the_key_is_missing(
    api: MerchantApi, header: str | None
) -> None:
    with pytest.raises(ApiKeyMissing):
        authenticate(api.services, header, "POST")
    assert not api.dynamo.calls


@pytest.mark.parametrize(
    "presented",
    [
        "x",
        "sk_",
        "sk_short",
        "sk_" + "a" * 42,
        "sk_" + "a" * 44,
        "sk_" + "a" * 42 + "é",
        "pk_" + "a" * 43,
        "sk_" + "a" * 20 + " " + "a" * 22,
    ],
)
def test_what_cannot_be_a_key_is_invalid_without_a_look_up(
    api: MerchantApi, presented: str
) -> None:
    with pytest.raises(ApiKeyInvalid):
        authenticate(api.services, f"Bearer {presented}", "POST")
    assert not api.dynamo.calls


def test_unknown_and_revoked_keys_get_the_same_answer_without_the_key_in_it(
    api: MerchantApi,
) -> None:
    stranger = new_api_key(seeded(99))
    with pytest.raises(ApiKeyInvalid) as unknown:
        authenticate(api.services, f"Bearer {stranger}", "POST")
    put_key(api.dynamo, PREFIX, replace(api.key, revoked_at=NOW))
    with pytest.raises(ApiKeyInvalid) as revoked:
        authenticate(api.services, f"Bearer {api.secret}", "POST")
    assert unknown.value.message == revoked.value.message
    assert api.secret not in repr(revoked.value)


DIGITS = "k" * 43


def test_a_key_of_today_is_known_only_as_it_was_shown(api: MerchantApi) -> None:
    put_key(api.dynamo, PREFIX, replace(api.key, hash=sha256(f"sk_live_{DIGITS}")))
    assert authenticate(api.services, f"Bearer sk_live_{DIGITS}", "POST").id == api.key.id
    with pytest.raises(ApiKeyInvalid):
        authenticate(api.services, f"Bearer sk_{DIGITS}", "POST")


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_use_of_a_key_is_noted_at_most_once_a_minute(api: MerchantApi) -> None:
    header = f"Bearer {api.secret}"
    authenticate(api.services, header, "POST")
    assert api.dynamo.calls == {"get_item": 1}
    api.clock.pass_time(61)
    authenticate(api.services, header, "POST")
    assert api.dynamo.calls == {"get_item": 2, "update_item": 1}
    api.clock.pass_time(59)
    assert authenticate(api.services, header, "POST").last_used_at is not None
    assert api.dynamo.calls == {"get_item": 3, "update_item": 1}


@pytest.mark.parametrize(
    ("scope", "method", "other"),
    [(Scope.READ, "GET", "POST"), (Scope.READ, "HEAD", "DELETE"), (Scope.MANAGE, "POST", "GET")],
)
def test_a_key_with_one_scope_is_refused_what_needs_the_other(
    api: MerchantApi, scope: Scope, method: str, other: str
) -> None:
    put_key(api.dynamo, PREFIX, replace(api.key, scopes=(scope,)))
    header = f"Bearer {api.secret}"
    assert authenticate(api.services, header, method).scopes == (scope,)
    with pytest.raises(PermissionMissing, match="lacks the scope"):
        authenticate(api.services, header, other)


READS = [
    ("GET", "/api/checkout/sessions"),
    ("GET", "/api/checkout/sessions/{session_id}"),
    ("HEAD", "/api/health"),
    ("GET", "/v1/webhook_endpoints"),
]
WRITES = [
    ("POST", "/api/checkout/sessions"),
    ("POST", "/v1/checkout/sessions"),
    ("POST", "/v1/checkout/sessions/{session_id}"),
]
MANAGES = [
    ("POST", "/api/checkout/sessions/{session_id}/expire"),
    ("POST", "/api/checkout/sessions/{session_id}/cancel"),
    ("POST", "/api/checkout/sessions/{session_id}/accept_as_paid"),
    ("POST", "/api/checkout/sessions/{session_id}/give_up"),
    ("POST", "/v1/checkout/sessions/{session_id}/expire"),
    ("POST", "/v1/webhook_endpoints"),
    ("POST", "/v1/webhook_endpoints/{identity}"),
    ("DELETE", "/v1/webhook_endpoints/{identity}"),
    ("POST", "/api/checkout/sessions/{session_id}/what-comes-later"),
    ("PATCH", ""),
]


REFUNDS = [
    ("POST", "/api/checkout/refunds"),
    ("POST", "/api/checkout/refunds/{refund_id}/cancel"),
    ("POST", "/v1/refunds"),
    ("POST", "/v1/refunds/{refund_id}"),
    ("POST", "/v1/refunds/{refund_id}/cancel"),
]


@pytest.mark.parametrize(
    ("scope", "routes"),
    [
        (Scope.READ, READS),
        (Scope.WRITE, WRITES),
        (Scope.MANAGE, MANAGES),
        (Scope.REFUND, REFUNDS),
    ],
)
def test_a_route_needs_one_scope(scope: Scope, routes: list[tuple[str, str]]) -> None:
    assert {scope_of(method, route) for method, route in routes} == {scope}


def test_no_write_is_left_out() -> None:
    assert {at for at in API if at[0] != "GET"} <= {*WRITES, *MANAGES, *REFUNDS}


def test_a_key_that_has_ended_is_as_invalid_as_an_unknown_one(api: MerchantApi) -> None:
    put_key(api.dynamo, PREFIX, replace(api.key, ends_at=NOW + timedelta(seconds=1)))
    header = f"Bearer {api.secret}"
    assert authenticate(api.services, header, "POST").ends_at is not None
    api.clock.pass_time(1)
    with pytest.raises(ApiKeyInvalid):
        authenticate(api.services, header, "GET")
