"""Every recorded answer of a running provider, and what a client should conclude from it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from checkout.open_payments.conclusions import conclude, reason
from checkout.open_payments.errors import (
    Conclusion,
    NotSent,
    OpenPaymentsError,
    OutcomeUnknown,
    Reason,
    Refused,
    UntrustedAnswer,
)
from checkout.open_payments.exchange import Exchange
from tests.open_payments.script import Script, answer, identity, load

ANSWERS = load("answers.json")
TO_CLIENTS = [case for case in ANSWERS if "operation" in case]


def _replay(case: dict[str, Any]) -> None:
    script = Script(answer(case["status"], case["body"]))
    deadline = script.time + timedelta(seconds=60)
    exchange = Exchange(script, identity(), now=script.now, deadline=deadline)
    url = "https://wallet.example/resource"
    if case["operation"] in ("cancel_grant", "revoke_token"):
        exchange.empty(case["operation"], "DELETE", url, token="t")
    else:
        expect = 201 if case["status"] == 201 else 200
        exchange.json(case["operation"], "POST", url, token="t", expect=expect)


def test_no_recorded_answer_is_left_out() -> None:
    assert len(ANSWERS) == 133 + 13
    assert all(("operation" in case) != ("seen_by" in case) for case in ANSWERS)
    assert {case["conclusion"] for case in TO_CLIENTS} == {"success", *Conclusion}


@pytest.mark.parametrize("case", TO_CLIENTS, ids=lambda case: case["name"])
def test_the_right_conclusion_is_drawn_from_each_recorded_answer(case: dict[str, Any]) -> None:
    if case["conclusion"] == "success":
        _replay(case)
        return
    with pytest.raises(OpenPaymentsError) as caught:
        _replay(case)
    assert conclude(caught.value) == case["conclusion"]
    assert caught.value.operation == case["operation"]


def test_trap_07_a_quote_that_may_have_paid_already_is_never_taken_for_unpaid() -> None:
    for name in ("OP: same quoteId again at once (same token)", "OP: expired quote"):
        case = next(case for case in TO_CLIENTS if case["name"] == name)
        with pytest.raises(Refused) as caught:
            _replay(case)
        assert caught.value.reason is Reason.INVALID_QUOTE
        assert conclude(caught.value) is Conclusion.RECONCILE


def test_trap_10_an_unknown_id_is_not_found_although_it_says_401() -> None:
    names = [
        "IP: GET unknown id, with token",
        "IP: GET unknown id, public",
        "IP: public GET once expired",
        "IP: complete once expired",
        "quote: GET unknown",
    ]
    for name in names:
        case = next(case for case in TO_CLIENTS if case["name"] == name)
        assert case["status"] == 401
        with pytest.raises(Refused) as caught:
            _replay(case)
        assert caught.value.reason is Reason.NOT_FOUND


def test_trap_11_an_expired_token_is_told_by_403_and_asks_for_rotation() -> None:
    case = next(case for case in TO_CLIENTS if case["name"] == "token: expired, create")
    assert case["status"] == 403
    with pytest.raises(Refused) as caught:
        _replay(case)
    assert caught.value.reason is Reason.TOKEN_INACTIVE
    assert conclude(caught.value) is Conclusion.ROTATE


def test_trap_12_wallets_that_are_not_connected_are_a_reason_of_their_own() -> None:
    assert reason("create_quote", 400, "400", "invalid receiver") is Reason.INVALID_RECEIVER


@pytest.mark.parametrize("status", [408, 409, 425, 429])
def test_a_busy_server_says_nothing_about_the_effect(status: int) -> None:
    why = reason("create_outgoing_payment", status, str(status), "invalid quote")
    assert why is Reason.BUSY
    for operation, next_step in (
        ("create_outgoing_payment", Conclusion.RECONCILE),
        ("continue_grant", Conclusion.NEW_GRANT),
        ("rotate_token", Conclusion.NEW_GRANT),
        ("create_quote", Conclusion.RETRY),
        ("get_incoming_payment", Conclusion.RETRY),
    ):
        busy = Refused("busy", operation=operation, status=status, reason=Reason.BUSY)
        assert conclude(busy) is next_step


def test_only_wrong_state_on_complete_means_that_it_is_closed() -> None:
    operation = "complete_incoming_payment"
    assert reason(operation, 409, "409", "wrong state") is Reason.WRONG_STATE
    assert reason(operation, 409, "409", "lock held") is Reason.BUSY
    assert reason("create_quote", 409, "409", "wrong state") is Reason.BUSY


@pytest.mark.parametrize(
    ("operation", "status", "code", "description", "why"),
    [
        ("rotate_token", 404, "", "", Reason.TOKEN_GONE),
        ("revoke_token", 410, "", "", Reason.TOKEN_GONE),
        ("rotate_token", 400, "invalid_rotation", "", Reason.TOKEN_GONE),
        ("continue_grant", 404, "", "", Reason.NOT_FOUND),
        ("continue_grant", 403, "user_denied", "", Reason.GRANT_GONE),
        ("continue_grant", 401, "", "", Reason.OTHER),
        ("get_wallet_address", 404, "", "", Reason.NOT_FOUND),
        ("get_received", 410, "", "", Reason.NOT_FOUND),
        ("get_incoming_payment", 401, "401", "Invalid Token", Reason.TOKEN_INACTIVE),
        ("create_incoming_payment", 403, "403", "action not performed", Reason.OTHER),
        ("create_quote", 418, "too_fast", "", Reason.OTHER),
    ],
)
def test_answers_that_were_not_recorded_fall_to_the_nearest_row(
    operation: str, status: int, code: str, description: str, why: Reason
) -> None:
    assert reason(operation, status, code, description) is why


@pytest.mark.parametrize("why", [why for why in Reason if why is not Reason.BUSY])
def test_every_reason_leads_somewhere(why: Reason) -> None:
    refused = Refused("no", operation="create_quote", status=400, reason=why)
    assert conclude(refused) in Conclusion


def test_trap_06_a_lost_continuation_or_rotation_is_never_sent_again() -> None:
    for operation in ("continue_grant", "rotate_token"):
        for error in (OutcomeUnknown, UntrustedAnswer):
            assert conclude(error("lost", operation=operation)) is Conclusion.NEW_GRANT


def test_the_unknown_is_reconciled_where_money_may_have_moved_and_repeated_elsewhere() -> None:
    for error in (OutcomeUnknown, UntrustedAnswer):
        lost = error("lost", operation="create_outgoing_payment")
        assert conclude(lost) is Conclusion.RECONCILE
    assert conclude(OutcomeUnknown("lost", operation="create_quote")) is Conclusion.RETRY
    assert conclude(UntrustedAnswer("odd", operation="create_quote")) is Conclusion.GIVE_UP
    assert conclude(NotSent("no", operation="create_outgoing_payment")) is Conclusion.RETRY
