"""The routes of the refund budget: rights, answers and refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checkout.domain.mandate import MandateStatus
from checkout.domain.people import Scope
from tests.support.basics import NOW, a_mandate
from tests.support.merchant_api import PREFIX, MerchantApi
from tests.support.services import put_key, store_mandate

BUDGET = "/api/checkout/refund_budget"


@pytest.fixture
def api() -> MerchantApi:
    return MerchantApi()


def request(api: MerchantApi, amount: object = 50000, **headers: str) -> Any:
    return api.post(BUDGET, {"amount": amount}, key=api.refunder, headers=headers)


def test_a_budget_is_requested_and_an_owner_has_to_approve_it(api: MerchantApi) -> None:
    assert api.get(BUDGET).code == "resource_missing"
    made = request(api)
    assert made.status == 200
    assert made.json == {
        "id": "man_1",
        "object": "refund_budget",
        "status": "pending",
        "amount": None,
        "currency": None,
        "spent": None,
        "left": None,
        "interval": "month",
        "renews_at": None,
        "requested_amount": 50000,
        "approval_url": "https://pay.example/dashboard/budget",
        "created_at": "2026-03-01T12:00:00.000Z",
        "ended_at": None,
    }
    assert api.get(BUDGET).json == made.json


def test_a_budget_in_use_stays_so_until_another_is_approved(api: MerchantApi) -> None:
    store_mandate(api.dynamo, PREFIX, a_mandate())
    made = request(api, 20000).json
    found = (made["status"], made["amount"], made["left"], made["requested_amount"])
    assert found == ("active", 10000, 7000, 20000)
    assert made["approval_url"]


def test_a_key_without_the_scope_requests_and_ends_nothing(api: MerchantApi) -> None:
    store_mandate(api.dynamo, PREFIX, a_mandate())
    before = api.get(BUDGET).json
    for answer in (api.post(BUDGET, {"amount": 1}), api.post(f"{BUDGET}/end")):
        assert (answer.status, answer.code) == (403, "permission_missing")
    assert api.get(BUDGET).json == before, "it may read"


def test_another_merchants_budget_is_neither_shown_nor_ended(api: MerchantApi) -> None:
    store_mandate(api.dynamo, PREFIX, a_mandate(id="man_2", merchant="mer_2"))
    assert api.get(BUDGET).status == 404
    assert api.post(f"{BUDGET}/end", key=api.refunder).code == "refund_unexpected_state"


def test_it_is_ended_and_its_grant_is_left_to_be_canceled(api: MerchantApi) -> None:
    store_mandate(api.dynamo, PREFIX, a_mandate(token="sealed-token", handle="sealed-handle"))
    ended = api.post(f"{BUDGET}/end", key=api.refunder)
    assert (ended.json["status"], ended.json["renews_at"]) == ("ended", None)
    [left] = api.services.tasks.left  # type: ignore[attr-defined]
    assert (left.session, left.grant) == ("man_1", "sealed-handle")
    rows = str(api.dynamo.rows(f"{PREFIX}-checkout_sessions"))
    assert "sealed" not in rows
    again = api.post(f"{BUDGET}/end", key=api.refunder)
    assert (again.status, again.code) == (400, "refund_unexpected_state")


def test_one_that_was_never_approved_cannot_be_ended(api: MerchantApi) -> None:
    assert api.post(f"{BUDGET}/end", key=api.refunder).code == "refund_unexpected_state"
    request(api)
    assert api.post(f"{BUDGET}/end", key=api.refunder).code == "refund_unexpected_state"


def test_a_replay_gets_the_first_answer(api: MerchantApi) -> None:
    key = {"idempotency-key": "one"}
    first = request(api, 500, **key)
    api.clock.pass_time(60)
    request(api, 700)
    replay = request(api, 500, **key)
    assert (replay.body, replay.headers["idempotent-replayed"]) == (first.body, "true")
    assert api.get(BUDGET).json["requested_amount"] == 700
    assert request(api, 900, **key).code == "idempotency_key_reused"


@pytest.mark.parametrize(
    ("amount", "code"),
    [
        (0, "amount_too_small"),
        (-1, "amount_too_small"),
        (10**15, "amount_too_large"),
        (1.5, "parameter_invalid_integer"),
        ("500", "parameter_invalid_integer"),
        (None, "parameter_invalid_integer"),
    ],
)
def test_a_wrong_amount_is_refused(api: MerchantApi, amount: object, code: str) -> None:
    refused = request(api, amount)
    assert (refused.status, refused.code) == (400, code)
    assert refused.json["error"]["param"] == "amount"
    assert api.get(BUDGET).status == 404, "nothing was begun"


def test_an_amount_that_the_wallet_cannot_count_is_refused(api: MerchantApi) -> None:
    secret, key = api.join("mer_3", asset_scale=0)
    put_key(api.dynamo, PREFIX, replace(key, scopes=tuple(Scope)))
    made = api.post(BUDGET, {"amount": 150}, key=secret)
    assert (made.status, made.code) == (400, "amount_not_representable")


def test_no_grant_is_shown(api: MerchantApi) -> None:
    secrets: dict[str, Any] = {"token": "sealed-t", "handle": "sealed-h", "grant": "sealed-g"}
    secrets["interact_url"] = "https://secret.example"
    store_mandate(api.dynamo, PREFIX, a_mandate(**secrets))
    body = api.get(BUDGET).body
    assert "sealed" not in body
    assert "secret" not in body


@pytest.mark.parametrize("status", [MandateStatus.LOST, MandateStatus.REVOKED])
def test_one_that_was_lost_asks_for_another_approval(
    api: MerchantApi, status: MandateStatus
) -> None:
    store_mandate(api.dynamo, PREFIX, a_mandate(status, over_at=NOW))
    shown = api.get(BUDGET).json
    assert (shown["status"], shown["renews_at"]) == (status.value, None)
    assert shown["approval_url"] == "https://pay.example/dashboard/budget"
