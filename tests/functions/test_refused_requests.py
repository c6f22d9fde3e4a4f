"""The log of refused requests: what a developer sees, what is never in it, what a flood costs."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from checkout.adapters.dynamo.expiring_tokens import REFUSED_ROW
from checkout.domain.ground.errors import Unavailable
from checkout.domain.merchant.failed_requests import (
    LAST,
    MESSAGE_MAX,
    FailedRequest,
    FailedRequests,
)
from checkout.flows.merchant import api_keys
from tests.support.basics import NOW
from tests.support.dashboard_pages import Browser, Dashboard
from tests.support.merchant_api import PREFIX, SESSIONS, a_body
from tests.support.services import put_key
from tests.support.stripe_api import ENDPOINTS, PAYMENTS, StripeApi


def log(shop: Dashboard) -> tuple[FailedRequest, ...]:
    [key] = shop.services.api_keys.of("mer_1")
    return shop.services.failed_requests.of(key.id).entries[::-1]


def stored(shop: Dashboard) -> list[dict[str, Any]]:
    rows = shop.rows("idempotency_keys")
    return [each for each in rows if each["key"]["S"].startswith(REFUSED_ROW)]


def a_refusal(second: int = 0) -> FailedRequest:
    return FailedRequest(
        NOW + timedelta(seconds=second), "GET", "/", 400, "c", "m", f"req_{second}"
    )


def test_a_refused_request_is_shown_with_what_was_wrong(shop: Dashboard, browser: Browser) -> None:
    body = {**a_body(), "sucess_url": "x"}
    answer = shop.post(SESSIONS, body)
    [found] = log(shop)
    assert (found.method, found.route, found.status) == ("POST", SESSIONS, 400)
    assert (found.code, found.param) == ("parameter_unknown", "sucess_url")
    assert found.request_id == answer.headers["request-id"]
    [key] = shop.services.api_keys.of("mer_1")
    assert f"/dashboard/keys/{key.id}/refused" in browser.get("/keys").page.links
    page = browser.get(f"/keys/{key.id}/refused").page
    for said in ("parameter_unknown", "sucess_url", found.request_id, SESSIONS):
        assert said in page.main


def test_a_route_has_no_id_and_a_query_is_not_kept(shop: Dashboard) -> None:
    shop.get(f"{SESSIONS}/cs_0123456789abcdefABCDEF")
    shop.get(SESSIONS, {"limit": "secret-thing"})
    assert [each.route for each in log(shop)] == [SESSIONS, SESSIONS + "/{session_id}"]
    assert "cs_0123456789abcdefABCDEF" not in repr(log(shop))


@pytest.mark.parametrize(
    "secret",
    [
        *(f"sk_{'aB3' * 14}x", f"sk_test_{'aB3' * 14}x", f"rk_live_{'aB3' * 14}x"),
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    ],
)
def test_a_key_in_a_wrong_place_is_not_kept(shop: Dashboard, secret: str) -> None:
    shop.post(SESSIONS, a_body() | {secret: "x"})
    shop.post(SESSIONS, a_body(success_url=secret, currency=secret))
    shop.post(SESSIONS, a_body() | {"metadata": {f"key {secret}": 1}})
    shop.get(SESSIONS, {f"a{secret}": secret})
    for path in (secret, f"x{secret}"):
        assert secret[:20] not in shop.get(f"{SESSIONS}/{path}").body
    kept = log(shop)
    assert len(kept) == 6
    assert secret[:20] not in repr(kept)
    assert "***" in repr(kept)


def test_nothing_is_written_for_what_succeeds_and_for_what_has_no_key(shop: Dashboard) -> None:
    assert shop.post(SESSIONS, a_body()).status == 201
    assert shop.get(SESSIONS).status == 200
    for key in ("sk_" + "0" * 43, "", "nonsense"):
        assert shop.get(SESSIONS, headers={"authorization": f"Bearer {key}"}).status == 401
    assert stored(shop) == []


def test_a_key_without_the_scope_sees_why(shop: Dashboard) -> None:
    [key] = shop.services.api_keys.of("mer_1")
    put_key(shop.dynamo, PREFIX, replace(key, scopes=()))
    assert shop.get(SESSIONS).status == 403
    assert [each.code for each in log(shop)] == ["permission_missing"]


def test_v1_is_in_it_too_at_both_functions() -> None:
    api = StripeApi()
    with api.installed():
        assert api.ask(f"{PAYMENTS}/pi_0123456789abcdefABCDEF").status == 404
        assert api.manage("GET", f"{ENDPOINTS}/we_0123456789abcdefABCDEF").status == 404
    [key] = api.services.api_keys.of("mer_1")
    found = [each.route for each in api.services.failed_requests.of(key.id).entries]
    assert found == [f"{PAYMENTS}/{{payment_id}}", f"{ENDPOINTS}/{{identity}}"]


def test_a_flood_costs_little_and_leaves_the_last_ten(shop: Dashboard) -> None:
    for _ in range(30):
        shop.get(f"{SESSIONS}/x")
    [row] = stored(shop)
    assert int(row["version"]["N"]) == 10, "a process writes ten, and then one each six seconds"
    shop.clock.pass_time(61)
    for number in range(10):
        shop.get(SESSIONS, {f"field_{number}": "x"})
    assert [each.param for each in log(shop)] == [f"field_{9 - number}" for number in range(LAST)]
    assert len(str(stored(shop))) < 3_000


def test_a_message_is_bounded() -> None:
    long = replace(a_refusal(), message="x" * 9_999)
    assert len(FailedRequests(key="key_1").with_one(long).entries[0].message) == MESSAGE_MAX


def test_another_merchants_log_is_not_there(shop: Dashboard, browser: Browser) -> None:
    [theirs] = shop.services.api_keys.of("mer_2")
    assert browser.get(f"/keys/{theirs.id}/refused").status == 404


def test_a_log_that_cannot_be_written_fails_no_request(shop: Dashboard) -> None:
    class Away:
        def of(self, key_id: str) -> FailedRequests:
            raise Unavailable("The store is away.")

    [key] = shop.services.api_keys.of("mer_1")
    away: Any = Away()
    api_keys.note_failed_request(replace(shop.services, failed_requests=away), key, a_refusal())
    assert stored(shop) == []


def test_of_two_at_once_one_is_kept(shop: Dashboard) -> None:
    [key] = shop.services.api_keys.of("mer_1")
    first = FailedRequests(key=key.id).with_one(a_refusal())
    assert shop.services.failed_requests.put(first)
    assert not shop.services.failed_requests.put(first)
    second = first.with_one(a_refusal(9))
    assert shop.services.failed_requests.put(second)
    assert not shop.services.failed_requests.put(second)


def test_the_row_ends_a_day_after_the_last_refusal(shop: Dashboard) -> None:
    shop.get(f"{SESSIONS}/x")
    [row] = stored(shop)
    # DynamoDB gets another day before it deletes a row.
    assert int(row["ttl"]["N"]) == int((shop.clock.now() + timedelta(days=1 + 1)).timestamp())


def test_a_day_after_the_last_refusal_nothing_is_shown(shop: Dashboard) -> None:
    """DynamoDB may delete the row days later."""
    shop.get(f"{SESSIONS}/x")
    [key] = shop.services.api_keys.of("mer_1")

    def read() -> tuple[FailedRequest, ...]:
        return api_keys.failed_requests_of(shop.services, key, key.id)[1]

    shop.clock.pass_time(24 * 60 * 60 - 1)
    assert len(read()) == 1
    shop.clock.pass_time(1)
    assert (read(), len(log(shop))) == ((), 1)
    page = shop.signed_in().get(f"/keys/{key.id}/refused").page
    assert "No request with this key was refused within a day." in page.main
