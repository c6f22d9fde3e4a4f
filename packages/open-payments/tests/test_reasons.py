"""Every recorded answer of a running provider, the reason it gives, and whether to try again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from client_script import Script, answer, identity, load

from open_payments.errors import (
    NotSent,
    OpenPaymentsError,
    OutcomeUnknown,
    Reason,
    Refused,
    UntrustedAnswer,
)
from open_payments.exchange import Exchange, reason

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
    assert len(ANSWERS) == 133 + 13 + 9
    assert all(("operation" in case) != ("seen_by" in case) for case in ANSWERS)
    not_refusals = {"success", "unknown"}
    not_recorded = {Reason.BUSY, Reason.INTERACTION_REQUIRED, Reason.CLIENT_FORM}
    assert {case["outcome"] for case in TO_CLIENTS} == {*Reason, *not_refusals} - not_recorded


@pytest.mark.parametrize("case", TO_CLIENTS, ids=lambda case: case["name"])
def test_each_recorded_answer_has_its_reason_and_is_repeated_only_where_that_may_help(
    case: dict[str, Any],
) -> None:
    if case["outcome"] == "success":
        _replay(case)
        return
    with pytest.raises(OpenPaymentsError) as caught:
        _replay(case)
    outcome = caught.value.reason if isinstance(caught.value, Refused) else "unknown"
    assert outcome == case["outcome"]
    assert caught.value.retryable == case.get("retryable", False)
    assert caught.value.operation == case["operation"]


@pytest.mark.parametrize("status", [408, 409, 425, 429])
def test_a_busy_server_says_nothing_about_the_effect(status: int) -> None:
    why = reason("create_outgoing_payment", status, str(status), "invalid quote")
    assert why is Reason.BUSY
    once = {"create_outgoing_payment", "continue_grant", "rotate_token"}
    for operation in once | {"create_quote", "get_incoming_payment"}:
        busy = Refused("busy", operation=operation, status=status, reason=Reason.BUSY)
        assert busy.retryable is (operation not in once)


@pytest.mark.parametrize(
    ("operation", "status", "code", "description", "why"),
    [
        ("rotate_token", 404, "", "", Reason.NOT_FOUND),
        ("revoke_token", 410, "", "", Reason.NOT_FOUND),
        ("rotate_token", 400, "invalid_rotation", "", Reason.NOT_ROTATED),
        ("rotate_token", 401, "invalid_client", "invalid access token", Reason.TOKEN_GONE),
        ("get_outgoing_payment", 404, "404", "Outgoing payment does not exist", Reason.NOT_OURS),
        ("get_outgoing_payment", 401, "401", "Unauthorized", Reason.NOT_FOUND),
        ("get_quote", 404, "404", "Quote does not exist", Reason.NOT_OURS),
        ("complete_incoming_payment", 409, "409", "wrong state", Reason.WRONG_STATE),
        ("complete_incoming_payment", 409, "409", "lock held", Reason.BUSY),
        ("create_quote", 409, "409", "wrong state", Reason.BUSY),
        ("get_outgoing_payment", 404, "", "Not Found", Reason.NOT_FOUND),
        ("continue_grant", 404, "", "", Reason.NOT_FOUND),
        ("continue_grant", 403, "user_denied", "", Reason.GRANT_GONE),
        ("continue_grant", 401, "", "", Reason.OTHER),
        ("get_wallet_address", 404, "", "", Reason.NOT_FOUND),
        ("get_jwks", 410, "", "", Reason.NOT_FOUND),
        ("get_incoming_payment", 401, "401", "Invalid Token", Reason.TOKEN_INACTIVE),
        ("create_incoming_payment", 403, "403", "action not performed", Reason.OTHER),
        ("create_quote", 418, "too_fast", "", Reason.OTHER),
        ("continue_grant", 429, "too_fast", "", Reason.TOO_FAST),
        ("continue_grant", 429, "", "Too many requests", Reason.BUSY),
        ("create_quote", 429, "too_fast", "", Reason.BUSY),
    ],
)
def test_answers_that_were_not_recorded_fall_to_the_nearest_row(
    operation: str, status: int, code: str, description: str, why: Reason
) -> None:
    assert reason(operation, status, code, description) is why


@pytest.mark.parametrize("error", [OutcomeUnknown, UntrustedAnswer])
def test_trap_06_a_lost_payment_continuation_or_rotation_is_never_sent_again(
    error: type[OutcomeUnknown],
) -> None:
    for operation in ("create_outgoing_payment", "continue_grant", "rotate_token"):
        assert not error("lost", operation=operation).retryable


def test_the_unknown_is_repeated_where_no_money_may_have_moved() -> None:
    assert OutcomeUnknown("lost", operation="create_quote").retryable
    assert not UntrustedAnswer("odd", operation="create_quote").retryable
    assert NotSent("no", operation="create_outgoing_payment").retryable
