"""The merchant API from API Gateway's event to the answer: what it does."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from api import http
from api.app import app, handler
from api.http import PAGE_BYTES
from api.v1.app import app as v1_app
from checkout.domain.ground.errors import Unavailable
from checkout.domain.merchant import doors
from checkout.domain.merchant.record import Suspension
from checkout.domain.payment.in_flight import Attention, IncomingPaymentRef, Phase
from checkout.domain.session.record import LineItem, Status
from checkout.flows.session import metadata
from checkout.version import VERSION
from checkout.web import BODY_MAX
from tests.support.basics import NOW, HandClock, between
from tests.support.doors import logged
from tests.support.merchant_api import (
    PREFIX,
    SESSIONS,
    Answer,
    MerchantApi,
    a_body,
    an_item,
    gateway_event,
)
from tests.support.services import put_key
from tests.support.stripe_api import StripeApi

PICTURE = "https://cdn.shop.example/tea.webp"

REQUEST_ID = re.compile(r"req_[0-9A-Za-z]{22}")


def ids(answer: Answer) -> list[str]:
    assert answer.status == 200, answer
    return [session["id"] for session in answer.json["data"]]


def test_every_route_of_both_apis_is_among_the_doors() -> None:
    included: Any = [*app.routes, *v1_app.routes]
    found = {
        (method, route.path)
        for each in included
        for route in each.original_router.routes
        if "{rest:path}" not in route.path
        for method in route.methods
    }
    assert found == set(doors.API) | doors.OPEN


def test_a_session_is_created_and_read_back_as_it_was_answered(api: MerchantApi) -> None:
    created = api.post(
        SESSIONS,
        a_body(
            line_items=[
                an_item(name=" Tea ", currency="USD", description="Green", image=PICTURE),
                an_item(),
            ],
            metadata={"order": "1234", "paid": False, "rate": 1.0, "n": 1, "none": None},
            expires_in_seconds=300,
            client_reference_id="Bestellung 42 ☕",
        ),
    )
    assert created.status == 201
    session = created.json
    assert re.fullmatch(r"cs_[0-9A-Za-z]{22}", session["id"])
    assert session == {
        "id": session["id"],
        "object": "checkout.session",
        "status": "open",
        "url": f"https://pay.example/pay/{session['id']}",
        "amount_total": 4000,
        "currency": "usd",
        "mode": "payment",
        "line_items": [an_item(description="Green", image=PICTURE), an_item()],
        "metadata": {"order": "1234", "paid": False, "rate": 1.0, "n": 1, "none": None},
        "success_url": f"https://shop.example/thanks?s={session['id']}",
        "cancel_url": "https://shop.example/basket",
        "customer_wallet": None,
        "incoming_payment": None,
        "outgoing_payment": None,
        "expires_at": "2026-03-01T12:05:00.000Z",
        "created_at": "2026-03-01T12:00:00.000Z",
        "completed_at": None,
        "amount_received": None,
        "client_reference_id": "Bestellung 42 ☕",
        "customer_debit": None,
        "amount_refunded": 0,
        "customer_details": None,
    }
    assert '"metadata":{"order":"1234","paid":false,"rate":1.0,"n":1,"none":null}' in created.body
    read = api.get(f"{SESSIONS}/{session['id']}")
    assert (read.status, read.body) == (200, created.body)
    listed = api.get(SESSIONS)
    assert listed.json == {
        "object": "list",
        "url": SESSIONS,
        "data": [session],
        "has_more": False,
        "next_cursor": None,
    }


def test_quantity_and_expiry_have_their_defaults(api: MerchantApi) -> None:
    item = an_item()
    del item["quantity"]
    session = api.post(SESSIONS, a_body(line_items=[item])).json
    assert session["line_items"][0]["quantity"] == 1
    assert session["expires_at"] == "2026-03-02T12:00:00.000Z"
    assert session["metadata"] == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"line_items": [an_item()] * 100},
        {"line_items": [an_item(unit_amount=0), an_item()]},
        {"line_items": [an_item(unit_amount=999_999_999_999, quantity=1000)]},
        {"line_items": [an_item(unit_amount=1, quantity=1_000_000)]},
        {"line_items": [an_item(name="N" * 200, description="D" * 1000)]},
        {"line_items": [an_item(name="😀" * 200, description="")]},
        {"line_items": [an_item(name="\n" + "N" * 200 + " " * 500)]},
        {"client_reference_id": "😀" * 200},
        {"collect": None},
        {"collect": {"questions": [{"label": "😀" * 100, "kind": "text"}] * 3}},
        {"collect": {"questions": [{"label": "Q", "kind": "dropdown", "options": ["O" * 100]}]}},
        {"locale": "sw"},
        {"locale": "PT-br"},
        {"locale": "en-" + "a1b2c3d4-" * 3 + "a1b2c"},
        {"expires_in_seconds": 300},
        {"expires_in_seconds": 86_400},
        {"metadata": {}},
        {"metadata": {f"{number:040d}": "v" * 500 for number in range(50)}},
        {"metadata": {"a": 2**53 - 1, "b": -1.5e300, "c": "\x01\n"}},
    ],
)
def test_everything_up_to_the_bounds_is_taken(api: MerchantApi, changes: dict[str, Any]) -> None:
    created = api.post(SESSIONS, a_body(**changes))
    assert created.status == 201, created
    assert api.get(f"{SESSIONS}/{created.json['id']}").body == created.body


def test_the_language_of_the_pages_is_stored_and_not_told(api: MerchantApi) -> None:
    created = api.post(SESSIONS, a_body(locale="pt-BR"))
    assert "locale" not in created.json
    assert api.stored(created.json["id"]).locale == "pt-BR"


def test_the_largest_body_is_stored_answered_and_replayed(api: MerchantApi) -> None:
    items = [an_item(name="ä" * 200, description="ä" * 1000) for _ in range(100)]
    raw = json.dumps(a_body(line_items=items), ensure_ascii=False).encode()
    assert BODY_MAX - 20_000 < len(raw) < BODY_MAX
    raw = raw[:-1] + b" " * (BODY_MAX - len(raw)) + b"}"
    answers = [api.post(SESSIONS, raw, headers={"Idempotency-Key": "large"}) for _ in range(2)]
    assert [answer.status for answer in answers] == [201, 201]
    assert answers[0].body == answers[1].body


# --- idempotency


def test_a_replay_gives_the_same_bytes_and_says_so(api: MerchantApi) -> None:
    first = api.post(SESSIONS, a_body(), headers={"Idempotency-Key": "order-1"})
    api.clock.pass_time(60)
    again = api.post(SESSIONS, a_body(), headers={"idempotency-key": "order-1"})
    assert (again.status, again.body) == (first.status, first.body)
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert again.headers["request-id"] != first.headers["request-id"]
    assert len(api.rows("checkout_sessions")) == 1


def test_refused_requests_leave_the_key_free(api: MerchantApi) -> None:
    header = {"Idempotency-Key": "order-1"}
    assert api.post(SESSIONS, a_body(mode="x"), headers=header).status == 400
    assert api.post(SESSIONS, a_body(success_url="x"), headers=header).status == 400
    assert api.post(SESSIONS, a_body(), headers=header, key="sk_wrong").status == 401
    created = api.post(SESSIONS, a_body(), headers=header)
    assert created.status == 201
    assert "idempotent-replayed" not in created.headers


# --- lists


def test_a_suspended_merchant_gets_its_stored_answers_and_no_new_session(api: MerchantApi) -> None:
    header = {"Idempotency-Key": "order-1"}
    first = api.post(SESSIONS, a_body(), headers=header)
    put_key(api.dynamo, PREFIX, replace(api.key, suspended=Suspension.WITH_ALL))
    assert api.post(SESSIONS, a_body(), headers=header).json == first.json
    refused = api.post(SESSIONS, a_body())
    assert refused.status == 403
    error = refused.json["error"]
    assert (error["type"], error["code"]) == ("permission_error", "merchant_suspended")
    assert api.get(f"{SESSIONS}/{first.json['id']}").status == 200


def test_pages_follow_each_other_by_cursor(api: MerchantApi) -> None:
    made = []
    for _ in range(5):
        made.append(api.post(SESSIONS, a_body()).json["id"])
        api.clock.pass_time(0.001)
    first = api.get(SESSIONS, {"limit": 2})
    second = api.get(SESSIONS, {"limit": 2, "cursor": first.json["next_cursor"]})
    third = api.get(SESSIONS, {"limit": 2, "cursor": second.json["next_cursor"]})
    assert [page.json["has_more"] for page in (first, second, third)] == [True, True, False]
    assert third.json["next_cursor"] is None
    assert ids(first) + ids(second) + ids(third) == made[::-1]


@pytest.mark.endurance
@pytest.mark.parametrize("letter", ["N", '"', "😀"])
def test_a_page_of_large_sessions_ends_before_lambda_refuses_it(
    api: MerchantApi, letter: str
) -> None:
    """100 sessions of 128 KiB: a quote is four bytes of Lambda's answer, an emoji twelve."""
    items = (LineItem("usd", letter * 200, "D" * 1000, 1000, 2),) * 100
    made = []
    for _ in range(100):
        api.clock.pass_time(0.001)
        made.append(api.store(line_items=items, created_at=api.clock.now()).id)
    found: list[str] = []
    query: dict[str, Any] = {"limit": 100}
    pages = 0
    more = True
    while more:
        page = api.get(SESSIONS, query)
        assert len(json.dumps(page.body)) < PAGE_BYTES + 1000
        found += ids(page)
        more = page.json["has_more"]
        query |= {"cursor": page.json["next_cursor"], "status": "open"}
        pages += 1
    assert found == made[::-1]
    assert pages >= 3


def test_a_list_shows_ten_unless_asked_for_more(api: MerchantApi) -> None:
    for _ in range(12):
        api.store()
    assert len(ids(api.get(SESSIONS))) == 10
    assert len(ids(api.get(SESSIONS, {"limit": "0012"}))) == 12


def test_a_list_leaves_out_what_cannot_be_read(api: MerchantApi) -> None:
    first, damaged, last = sorted((api.store() for _ in range(3)), key=lambda each: each.id)
    api.dynamo.update_item(
        TableName=f"{PREFIX}-checkout_sessions",
        Key={"id": {"S": damaged.id}},
        UpdateExpression="REMOVE #status",
        ExpressionAttributeNames={"#status": "status"},
    )
    assert sorted(ids(api.get(SESSIONS))) == [first.id, last.id]


def test_filters_are_by_status_and_by_unix_seconds(api: MerchantApi) -> None:
    start = int(NOW.timestamp())
    first = api.store(status=Status.CANCELED).id
    second = api.store(created_at=NOW + timedelta(seconds=1)).id
    assert ids(api.get(SESSIONS, {"status": "canceled"})) == [first]
    assert ids(api.get(SESSIONS, {"created[gte]": start + 1})) == [second]
    assert ids(api.get(SESSIONS, {"created[lt]": start + 1})) == [first]
    assert ids(api.get(SESSIONS, {"created[gte]": start, "created[lt]": 9_999_999_999})) == [
        second,
        first,
    ]
    assert ids(api.send("GET", SESSIONS, query=f"created%5Blt%5D={start + 1}")) == [first]


# --- expire and cancel


@pytest.mark.parametrize(("action", "status"), [("expire", "expired"), ("cancel", "canceled")])
@pytest.mark.parametrize("raw", [None, b"", b"{}", b" { } "])
def test_ending_a_session_answers_with_it(
    api: MerchantApi, action: str, status: str, raw: bytes | None
) -> None:
    session = api.store(status=Status.AWAITING_APPROVAL)
    ended = api.post(f"{SESSIONS}/{session.id}/{action}", raw)
    assert (ended.status, ended.json["status"]) == (200, status)
    assert api.get(f"{SESSIONS}/{session.id}").json == ended.json


def test_an_empty_body_needs_no_content_type(api: MerchantApi) -> None:
    session = api.store()
    headers = {"Content-Type": ""}
    assert api.post(f"{SESSIONS}/{session.id}/cancel", headers=headers).status == 200


@pytest.mark.parametrize("action", ["expire", "cancel"])
def test_a_wrong_state_and_a_payment_under_way_are_told_apart(
    api: MerchantApi, action: str
) -> None:
    done = api.store(status=Status.COMPLETED)
    refused = api.post(f"{SESSIONS}/{done.id}/{action}")
    assert (refused.status, refused.code) == (400, "session_unexpected_state")
    for word in ("completed", "open", "awaiting_approval"):
        assert word in refused.json["error"]["message"]
    paying = api.store(status=Status.AWAITING_APPROVAL, phase=Phase.PAYING)
    refused = api.post(f"{SESSIONS}/{paying.id}/{action}")
    assert (refused.status, refused.code) == (409, "payment_in_progress")
    assert refused.json["error"]["type"] == "conflict_error"


@pytest.mark.parametrize("action", ["expire", "cancel"])
def test_an_end_that_is_asked_for_again_gives_the_same_bytes(api: MerchantApi, action: str) -> None:
    session = api.store(status=Status.AWAITING_APPROVAL)
    header = {"Idempotency-Key": "end-1"}
    first = api.post(f"{SESSIONS}/{session.id}/{action}", headers=header)
    api.clock.pass_time(24 * 3600 - 1)
    again = api.post(f"{SESSIONS}/{session.id}/{action}", headers=header)
    assert (again.status, again.body) == (first.status, first.body) == (200, first.body)
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    api.clock.pass_time(1)
    late = api.post(f"{SESSIONS}/{session.id}/{action}", headers=header)
    assert late.code == "session_unexpected_state"


def test_the_answer_that_is_kept_is_that_of_the_end_that_was_written(api: MerchantApi) -> None:
    session, [key] = api.store(), api.services.api_keys.of("mer_1")
    services = api.services

    def labeled() -> None:
        metadata.update(services, key, session.id, lambda known: {**known, "label": "late"})

    api.services = replace(services, sessions=between(services.sessions, "save", labeled))
    first, again = (
        api.post(f"{SESSIONS}/{session.id}/cancel", headers={"Idempotency-Key": "end-1"})
        for _ in range(2)
    )
    assert first.json["metadata"] == {"label": "late"}
    assert again.headers["idempotent-replayed"] == "true"
    assert again.body == first.body


def test_the_key_of_one_end_fits_no_other_request(api: MerchantApi) -> None:
    header = {"Idempotency-Key": "end-1"}
    one, other = api.store(), api.store()
    assert api.post(f"{SESSIONS}/{one.id}/expire", headers=header).status == 200
    for path, body in (
        (f"{SESSIONS}/{one.id}/cancel", None),
        (f"{SESSIONS}/{other.id}/expire", None),
        (SESSIONS, a_body()),
    ):
        refused = api.post(path, body, headers=header)
        assert (refused.status, refused.code) == (400, "idempotency_key_reused"), path
    assert api.stored(other.id) == other
    assert len(api.rows("checkout_sessions")) == 2
    foreign = {"key": api.other_secret, "headers": header}
    assert api.post(f"{SESSIONS}/{one.id}/expire", **foreign).code == "resource_missing"


def test_a_refused_end_leaves_its_key_free(api: MerchantApi) -> None:
    header = {"Idempotency-Key": "end-1"}
    session = api.store(status=Status.COMPLETED)
    for _ in range(2):
        refused = api.post(f"{SESSIONS}/{session.id}/expire", headers=header)
        assert refused.code == "session_unexpected_state"
    kept = [each for each in api.rows("idempotency_keys") if not logged(each)]
    assert kept == []
    assert api.post(f"{SESSIONS}/{api.store().id}/expire", headers=header).status == 200


def test_an_end_with_a_key_is_one_transaction(api: MerchantApi) -> None:
    session = api.store()
    api.dynamo.calls.clear()
    api.post(f"{SESSIONS}/{session.id}/expire", headers={"Idempotency-Key": "end-1"})
    # The key, the session, the merchant (does it want the event?), and the write.
    assert api.dynamo.calls == {"get_item": 3, "transact_write_items": 1}


# --- a part of the money

PART: dict[str, Any] = {
    "status": Status.PROCESSING,
    "received": 700,
    "attention": Attention.PARTIAL_PAYMENT,
    "incoming_payment": IncomingPaymentRef("https://wallet.example/in/1", NOW + timedelta(days=1)),
}


def test_a_part_of_the_money_is_accepted_as_paid(api: MerchantApi) -> None:
    session = api.store(**PART, check_at=NOW)
    done = api.post(f"{SESSIONS}/{session.id}/accept_as_paid")
    assert done.status == 200
    assert (done.json["status"], done.json["amount_received"]) == ("completed", 700)
    assert done.json["completed_at"] == "2026-03-01T12:00:00.000Z"
    assert api.get(f"{SESSIONS}/{session.id}").json == done.json
    assert api.stored(session.id).history[-1].note == f"by first (…{api.secret[-4:]})"


def test_a_part_that_no_more_can_follow_is_given_up(api: MerchantApi) -> None:
    session = api.store(**PART, check_at=None)
    done = api.post(f"{SESSIONS}/{session.id}/give_up")
    assert done.status == 200
    assert (done.json["status"], done.json["amount_received"]) == ("expired", 700)
    assert done.json["completed_at"] is None


@pytest.mark.parametrize("action", ["give_up", "expire", "cancel"])
def test_while_more_can_arrive_the_incoming_payment_is_closed_first(
    api: MerchantApi, action: str
) -> None:
    session = api.store(**PART, check_at=NOW + timedelta(hours=1))
    refused = api.post(f"{SESSIONS}/{session.id}/{action}")
    assert (refused.status, refused.code) == (409, "payment_in_progress")
    assert "7.00 USD of 20.00 USD has arrived" in refused.json["error"]["message"]
    after = api.stored(session.id)
    assert (after.status, after.closing_at, after.check_at) == (Status.PROCESSING, NOW, NOW)


@pytest.mark.parametrize("action", ["accept_as_paid", "give_up"])
@pytest.mark.parametrize("status", [Status.OPEN, Status.COMPLETED, Status.EXPIRED])
def test_without_a_part_of_the_money_there_is_nothing_to_decide(
    api: MerchantApi, action: str, status: Status
) -> None:
    session = api.store(status=status)
    refused = api.post(f"{SESSIONS}/{session.id}/{action}")
    assert (refused.status, refused.code) == (400, "session_unexpected_state")
    assert "only a part of the payment has arrived" in refused.json["error"]["message"]
    assert api.stored(session.id) == session


# --- the service


class TimeUp(HandClock):
    """One by which the session's time is over from one of the looks at it on."""

    def __init__(self, api: MerchantApi, look: int) -> None:
        self.calls, self.look, self.read = api.dynamo.calls, look, 0

    def now(self) -> datetime:
        self.look -= 1
        if self.look == 0:
            self.read = self.calls.total()
        return NOW if self.look > 0 else NOW + timedelta(minutes=31)


@pytest.mark.parametrize("base", [SESSIONS, "/v1/checkout/sessions"])
@pytest.mark.parametrize("path", ["", "/{id}", "/{id}?expand"])
def test_a_session_is_shown_expired_only_if_it_was_read_after_its_expiry(
    base: str, path: str
) -> None:
    shown = set()
    for look in range(1, 9):
        api = StripeApi()
        session = api.store(expires_at=NOW + timedelta(minutes=30))
        clock = TimeUp(api, look)
        api.services = replace(api.services, clock=clock)
        found, _, expands = f"{base}{path.format(id=session.id)}".partition("?")
        expand = {"expand[]": "payment_attempts" if base == SESSIONS else "line_items"}
        answer = api.get(found, expand if expands else None).json
        status = answer.get("data", [answer])[0]["status"]
        if status == "expired":
            assert api.dynamo.calls.total() > clock.read, "nothing was read since"
        shown.add(status)
    assert shown == {"open", "expired"}


def test_health_needs_no_key_and_tells_uptime_and_version(api: MerchantApi) -> None:
    async def started_at() -> Any:
        return NOW - timedelta(seconds=61.9)

    with api.installed():
        app.dependency_overrides[http.started_at] = started_at
        event = gateway_event("GET", "/api/health", "", {}, None)
        answer = handler(event, None)
    assert answer["statusCode"] == 200
    assert json.loads(answer["body"]) == {
        "status": "healthy",
        "uptime": 61,
        "version": VERSION,
        "checks": {"database": "ok"},
    }
    assert REQUEST_ID.fullmatch(answer["headers"]["request-id"])


def test_the_process_knows_since_when_it_runs() -> None:
    event = gateway_event("GET", "/api/health", "", {}, None)
    api = MerchantApi()
    api.clock.pass_time(10**9)  # this test's clock, far behind the process's start
    with api.installed():
        assert json.loads(handler(event, None)["body"])["uptime"] > 0


class Down:
    """A data store that does not answer."""

    def ping(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        raise Unavailable("The data store does not answer.")


def test_without_its_store_the_service_is_unhealthy_and_unavailable(api: MerchantApi) -> None:
    down: Any = Down()
    api.services = replace(api.services, database=down, sessions=down)
    health = api.get("/api/health", key=None)
    assert (health.status, health.json["status"]) == (503, "unhealthy")
    assert health.json["checks"] == {"database": "failing"}
    for answer in (api.post(SESSIONS, a_body()), api.get(SESSIONS)):
        assert (answer.status, answer.code) == (503, "unavailable")
        assert answer.json["error"]["type"] == "api_error"


def test_a_text_body_that_is_not_in_base64_is_read_too(api: MerchantApi) -> None:
    headers = {"content-type": "application/json", "AUTHORIZATION": f"bearer {api.secret}"}
    event = gateway_event("POST", SESSIONS, "", headers, None) | {
        "body": json.dumps(a_body(metadata={"ä": "😀"}), ensure_ascii=False)
    }
    with api.installed():
        answer = handler(event, None)
    assert answer["statusCode"] == 201
    assert json.loads(answer["body"])["metadata"] == {"ä": "😀"}
