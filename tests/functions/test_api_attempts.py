"""Payment attempts in the API: with the session if asked for, and as a list."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from checkout.domain.ground.ids import new_session_id
from checkout.domain.payment.attempt import Outcome
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Problem
from checkout.domain.session.public import MESSAGES
from checkout.domain.session.record import Session, Status
from tests.support.attempts import after, awaiting, of, paying, processing, refused
from tests.support.basics import NOW, a_session
from tests.support.merchant_api import SESSIONS, MerchantApi

PAID = after(processing(refused(), 2), Event.RECONCILED, received=2000, completed_at=NOW)


def stored(api: MerchantApi, session: Session) -> str:
    kept = replace(session, id=new_session_id(api.services.random_bytes))
    assert api.services.sessions.create(kept, None) is None
    return f"{SESSIONS}/{kept.id}"


def test_a_session_has_its_attempts_only_if_they_are_asked_for(api: MerchantApi) -> None:
    path = stored(api, refused())
    plain, expanded = api.get(path).json, api.get(path, {"expand": "payment_attempts"}).json
    assert {name: expanded[name] for name in plain} == plain
    assert list(expanded) == [*plain, "payment_attempts", "last_payment_error"]
    assert api.get(path, {"expand[]": "payment_attempts"}).json == expanded
    assert api.get(path, {"expand": "x"}).json["error"]["code"] == "parameter_invalid"
    listed = api.get(f"{path}/attempts").json
    assert listed["data"] == expanded["payment_attempts"]
    assert listed["last_payment_error"] == expanded["last_payment_error"]


def test_each_attempt_is_told_with_its_own_evidence(api: MerchantApi) -> None:
    answer = api.get(f"{stored(api, PAID)}/attempts").json
    first, second = answer["data"]
    assert (answer["total_count"], answer["has_more"]) == (2, False)
    assert first == {
        "object": "payment_attempt",
        "number": 1,
        "outcome": "refused",
        "ended_by": "customer_wallet",
        "error": {
            "code": "payment_refused",
            "message": f"{MESSAGES[Problem.PAYMENT_REFUSED]} (no_funds)",
        },
        "reported_by_browser": None,
        "wallet_typed": "$wallet.example/1",
        "customer_wallet": of(1, "wallets"),
        "incoming_payment": of(1, "incoming"),
        "quote": of(1, "quotes"),
        "customer_debit": {"value": "20", "asset_code": "EUR", "asset_scale": 2},
        "quote_expires_at": None,
        "outgoing_payment": None,
        "amount_received": None,
        "submitted_at": "2026-03-01T12:00:01.000Z",
        "wallet_resolved_at": "2026-03-01T12:00:02.000Z",
        "prepared_at": "2026-03-01T12:00:04.000Z",
        "reported_at": None,
        "approved_at": "2026-03-01T12:00:05.000Z",
        "sent_at": "2026-03-01T12:00:06.000Z",
        "accepted_at": None,
        "ended_at": "2026-03-01T12:00:07.000Z",
    }
    assert (second["outcome"], second["outgoing_payment"]) == ("paid", of(2, "outgoing"))
    assert (second["amount_received"], second["error"]) == (2000, None)


DECLINED = after(awaiting(), Event.RETURN_REPORTED, reported=Outcome.DECLINED)


@pytest.mark.parametrize(
    ("session", "code"),
    [
        (a_session(), None),
        (awaiting(), None),
        (DECLINED, "declined"),
        (awaiting(DECLINED, 2), "declined"),
        (after(DECLINED, Event.APPROVAL_CLAIMED, lease_until=NOW + timedelta(days=1)), None),
        (refused(), "payment_refused"),
        (paying(refused(), 2), "payment_refused"),
        (PAID, None),
        (after(awaiting(), Event.CANCEL_REQUESTED), None),
    ],
)
def test_the_last_payment_error_is_that_of_the_last_attempt_that_failed(
    api: MerchantApi, session: Session, code: str | None
) -> None:
    path = stored(api, session)
    answer = api.get(f"{path}/attempts")
    error = answer.json["last_payment_error"]
    assert (error and error["code"]) == code
    expanded = api.get(path, {"expand": "payment_attempts"}).json
    assert expanded["last_payment_error"] == error


def test_each_problem_and_each_report_has_a_message() -> None:
    assert set(MESSAGES) == {*Problem, Outcome.DECLINED, Outcome.TIMED_OUT}


def test_the_attempts_of_another_merchants_session_are_not_found(api: MerchantApi) -> None:
    theirs = api.store(merchant="mer_other", status=Status.OPEN)
    assert api.get(f"{SESSIONS}/{theirs.id}/attempts").status == 404
